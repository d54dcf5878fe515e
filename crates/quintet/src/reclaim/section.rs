//! Inside a read section.

use super::books::Books;
use super::collect;
use super::domain::Core;
use super::retired::Retired;
use super::reuse;
use super::seat::{NEVER, SeatState};
use crate::sync::{AtomicU64, Ordering};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Deref;

/// The right of one operation to load shared pointers, checked after each load.
#[derive(Debug)]
pub struct Visit<'a> {
    core: &'a Core,
    seat: &'a SeatState,
    /// What the seat announced as `upper` before this operation loaded its root. The seat may
    /// announce more by now (`reclaim` E9).
    upper: Cell<u64>,
    /// Checks that failed in this operation (`reclaim` E7).
    restarts: Cell<u32>,
    /// The seat's cells belong to the thread that entered.
    not_send: PhantomData<*mut ()>,
}

/// A read section: entered when made, left when dropped.
///
/// Forgetting one is safe: its seat stays inside and holds memory back.
#[derive(Debug)]
pub struct Section<'a> {
    visit: Visit<'a>,
}

/// What is left of a section for who looks no further: it keeps what was found, and is left when
/// dropped, as a [`Section`] is.
#[derive(Debug)]
pub struct Stay<'a> {
    core: &'a Core,
    seat: &'a SeatState,
    /// As in [`Visit`].
    not_send: PhantomData<*mut ()>,
}

/// A seat from which sections of the usual kind are entered.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'a> {
    core: &'a Core,
    seat: &'a SeatState,
    /// As in [`Visit`].
    not_send: PhantomData<*mut ()>,
}

/// A read section in the usual case: no other section open when it was entered, no fence needed,
/// the era unchanged. It has no slow half, so that what the caller holds in registers stays there.
#[derive(Debug)]
pub struct Brief<'a> {
    peek: Peek<'a>,
    seat: &'a SeatState,
    /// As in [`Visit`].
    not_send: PhantomData<*mut ()>,
}

/// A look inside an open section, in the usual case that the era is the one it announced. Like
/// [`Brief`] it has no slow half.
#[derive(Clone, Copy, Debug)]
pub struct Peek<'a> {
    era: &'a AtomicU64,
    upper: u64,
}

/// A look inside a section that is open anyhow, with the seat it was opened on. Like [`Brief`] it
/// has no slow half; unlike it, it leaves nothing.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    peek: Peek<'a>,
    seat: &'a SeatState,
    /// As in [`Visit`].
    not_send: PhantomData<*mut ()>,
}

/// Whoever can say whether a shared pointer may be followed.
pub trait Check {
    /// To be asked after each load of a shared pointer: may it be followed? If not, start again
    /// from the root (`reclaim` E3).
    #[must_use]
    fn check(&self) -> bool;
}

impl Check for Visit<'_> {
    #[inline(always)]
    fn check(&self) -> bool {
        Visit::check(self)
    }
}

impl Check for Section<'_> {
    #[inline(always)]
    fn check(&self) -> bool {
        Visit::check(self)
    }
}

impl Check for Brief<'_> {
    #[inline(always)]
    fn check(&self) -> bool {
        Brief::check(self)
    }
}

impl Check for Peek<'_> {
    #[inline(always)]
    fn check(&self) -> bool {
        Peek::check(self)
    }
}

impl Check for Held<'_> {
    #[inline(always)]
    fn check(&self) -> bool {
        self.peek.check()
    }
}

impl<'a> Held<'a> {
    /// A look by what the seat announces now: to be taken before the root is loaded (`reclaim` E9).
    #[inline(always)]
    pub(super) fn new(core: &'a Core, seat: &'a SeatState) -> Self {
        Self { peek: Peek::new(core, seat.upper()), seat, not_send: PhantomData }
    }

    /// The books of this seat.
    #[inline(always)]
    pub fn books(&self) -> &'a Books {
        &self.seat.books
    }
}

impl<'a> Spot<'a> {
    #[inline(always)]
    pub(super) fn new(core: &'a Core, seat: &'a SeatState) -> Self {
        Self { core, seat, not_send: PhantomData }
    }

    /// Enters a section if the case is the usual one; if not, enter a [`Section`].
    #[inline(always)]
    pub fn enter(self) -> Option<Brief<'a>> {
        let era = &self.core.pulse.era;
        let upper = self.seat.enter_usual(era)?;
        Some(Brief { peek: Peek { era, upper }, seat: self.seat, not_send: PhantomData })
    }
}

impl<'a> Brief<'a> {
    /// The books of this seat.
    #[inline(always)]
    pub fn books(&self) -> &'a Books {
        &self.seat.books
    }

    /// To be asked after each load of a shared pointer: may it be followed? If not, give up
    /// (`reclaim` E3).
    #[inline(always)]
    #[must_use]
    pub fn check(&self) -> bool {
        self.peek.check()
    }

    /// Leaves the section, for who has run no user code in it: none was opened inside (`reclaim`
    /// E10).
    #[inline(always)]
    pub fn leave_alone(self) {
        self.seat.leave_usual();
        std::mem::forget(self);
    }
}

impl<'a> Peek<'a> {
    #[inline(always)]
    pub(super) fn new(core: &'a Core, upper: u64) -> Self {
        Self { era: &core.pulse.era, upper }
    }

    /// The era that the section announced as its last.
    #[inline(always)]
    pub fn upper(&self) -> u64 {
        self.upper
    }

    /// To be asked after each load of a shared pointer: may it be followed? If not, give up, and
    /// ask the section (`reclaim` E3).
    #[inline(always)]
    #[must_use]
    pub fn check(&self) -> bool {
        // ORDERING: Relaxed, as in `Visit::check`.
        self.era.load(Ordering::Relaxed) == self.upper
    }
}

impl Drop for Brief<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.seat.leave_briefly();
    }
}

impl<'a> Visit<'a> {
    #[inline(always)]
    pub(super) fn new(core: &'a Core, seat: &'a SeatState, upper: u64) -> Self {
        Self { core, seat, upper: Cell::new(upper), restarts: Cell::new(0), not_send: PhantomData }
    }

    /// A look inside this operation in the usual case.
    #[inline(always)]
    pub fn peek(&self) -> Peek<'a> {
        Peek::new(self.core, self.upper.get())
    }

    /// The books of this seat.
    #[inline(always)]
    pub fn books(&self) -> &'a Books {
        &self.seat.books
    }

    /// To be asked after each load of a shared pointer: may it be followed? If not, start again
    /// from the root (`reclaim` E3). At most two answers in one operation are "no" (`reclaim` E7),
    /// and one more on a seat that was outside (`reclaim` E8).
    #[inline(always)]
    #[must_use]
    pub fn check(&self) -> bool {
        // ORDERING: Relaxed: the pointer was loaded with Acquire, so this load comes after it.
        if self.core.pulse.era.load(Ordering::Relaxed) == self.upper.get() {
            return true;
        }
        // By value: a view whose address is taken lives in memory, not in registers.
        let (allowed, restarts) =
            check_slow(self.core, self.seat, self.upper.get(), self.restarts.get());
        self.restarts.set(restarts);
        self.upper.set(self.seat.upper());
        allowed
    }

    /// Whether the era is still the one in which the operation began: nothing was retired that only
    /// this section holds back.
    #[inline(always)]
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.restarts.get() == 0 && self.peek().check()
    }

    /// From here on every load is safe without a check, and everything retired meanwhile is held
    /// back. For whatever cannot start again: iterators, long guards. To be called before the root
    /// is loaded.
    pub fn hold_all(&self) {
        come_in(self.core, self.seat);
        self.seat.widen(NEVER);
        self.upper.set(NEVER);
    }

    /// Hands a piece over to be freed when no section can refer to it.
    ///
    /// # Safety
    /// No path from the root leads to the piece any more, and it is retired once.
    pub unsafe fn retire(&self, piece: Retired) {
        collect::retire(self.core, self.seat, piece);
        collect::free_some(self.core, self.seat, false);
    }

    /// The same without freeing what is ready: the caller has done that, by
    /// [`free_some`](Self::free_some).
    ///
    /// # Safety
    /// As for [`retire`](Self::retire).
    #[inline(always)]
    pub unsafe fn retire_only(&self, piece: Retired) {
        collect::retire(self.core, self.seat, piece);
    }

    /// Frees the next piece that is past its grace period, as [`retire`](Self::retire) does: for
    /// callers that have a better moment for it. With `using` it leaves them to the caller's
    /// `boxed`.
    #[inline(always)]
    pub fn free_some(&self, using: bool) {
        collect::free_some(self.core, self.seat, using);
    }

    /// Boxes a value, in the memory of a piece that is past its grace period if there is one.
    ///
    /// # Safety
    /// As for [`Hold::boxed`](super::Hold::boxed).
    #[inline(always)]
    pub(super) unsafe fn boxed<T>(&self, value: T) -> Box<T> {
        // SAFETY: the caller's promise.
        unsafe { reuse::boxed(self.seat, value) }
    }

    /// The present era: the birth stamp of what is published next (`reclaim` E2).
    #[inline(always)]
    pub fn era(&self) -> u64 {
        // ORDERING: Relaxed: a stale stamp is an earlier birth, which only holds memory longer.
        self.core.pulse.era.load(Ordering::Relaxed)
    }
}

impl<'a> Section<'a> {
    #[inline(always)]
    pub(super) fn enter(core: &'a Core, seat: &'a SeatState) -> Self {
        let upper = seat.enter_usual(&core.pulse.era).unwrap_or_else(|| core.enter_unusual(seat));
        Self { visit: Visit::new(core, seat, upper) }
    }

    /// The view of one operation inside this section (`reclaim` E9).
    #[inline(always)]
    pub fn visit(&self) -> Visit<'a> {
        Visit::new(self.visit.core, self.visit.seat, self.visit.seat.upper())
    }

    /// The same in the usual case.
    #[inline(always)]
    pub(super) fn held(&self) -> Held<'a> {
        Held::new(self.visit.core, self.visit.seat)
    }

    /// Enters another section on the same seat.
    #[inline(always)]
    pub(super) fn another(&self) -> Self {
        Self::enter(self.visit.core, self.visit.seat)
    }

    /// The same section, without the right to look further.
    #[inline(always)]
    pub(super) fn stay(self) -> Stay<'a> {
        let Visit { core, seat, .. } = self.visit;
        // The section is not left: what takes its place leaves it.
        std::mem::forget(self);
        Stay { core, seat, not_send: PhantomData }
    }
}

impl Stay<'_> {
    /// Enters another section on the same seat: what this one keeps, that one keeps too (`reclaim`
    /// E10).
    pub fn another(&self) -> Self {
        Section::enter(self.core, self.seat).stay()
    }
}

impl Drop for Stay<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        leave(self.core, self.seat);
    }
}

impl<'a> Deref for Section<'a> {
    type Target = Visit<'a>;
    #[inline(always)]
    fn deref(&self) -> &Visit<'a> {
        &self.visit
    }
}

impl Drop for Section<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        leave(self.visit.core, self.visit.seat);
    }
}

/// Leaves a section.
#[inline(always)]
fn leave(core: &Core, seat: &SeatState) {
    if seat.leave() {
        leave_slow(core, seat);
    }
}

/// The era is not `known`, the last one that the operation announced or found announced. Says no
/// and lets the seat announce the present one, unless the operation has known from its beginning
/// that all is held (`reclaim` E9). Returns the answer and the new count of restarts.
#[cold]
#[inline(never)]
fn check_slow(core: &Core, seat: &SeatState, known: u64, restarts: u32) -> (bool, u32) {
    if known == NEVER {
        return (true, restarts);
    }
    if come_in(core, seat) {
        return (false, restarts);
    }
    let announced = seat.upper();
    // ORDERING: Acquire, as in `announce`.
    let now = core.pulse.era.load(Ordering::Acquire);
    if cfg!(quintet_mutation = "nested-widening") && (announced == NEVER || announced == now) {
        return (true, restarts);
    }
    if restarts >= 1 && announced != NEVER {
        seat.widen(NEVER);
    } else if announced < now {
        seat.widen(now);
    }
    (false, restarts + 1)
}

/// Enters if the seat is outside (`reclaim` E8). True if it was.
fn come_in(core: &Core, seat: &SeatState) -> bool {
    let outside = !seat.is_inside();
    if outside {
        seat.enter_unusual(&core.pulse.era);
    }
    outside
}

/// The outermost section was left and work waits: a full batch, or a seat nobody owns.
#[cold]
fn leave_slow(core: &Core, seat: &SeatState) {
    collect::collect(core, seat, false);
    seat.vacate_if_orphaned(&core.roster);
}
