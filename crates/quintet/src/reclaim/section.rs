//! Inside a read section.

use super::collect;
use super::domain::Core;
use super::retired::Retired;
use super::seat::{NEVER, SeatState};
use crate::sync::Ordering;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Deref;

/// The right to load shared pointers, checked after each load.
#[derive(Debug)]
pub struct Visit<'a> {
    core: &'a Core,
    seat: &'a SeatState,
    /// Checks that failed in this section (E7).
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

impl<'a> Visit<'a> {
    #[inline(always)]
    pub(super) fn new(core: &'a Core, seat: &'a SeatState) -> Self {
        Self { core, seat, restarts: Cell::new(0), not_send: PhantomData }
    }

    /// To be asked after each load of a shared pointer: may it be followed? If not, start again from the root (E3).
    /// At most two answers in one section are "no" (E7).
    #[inline(always)]
    #[must_use]
    pub fn check(&self) -> bool {
        // ORDERING: Relaxed: the pointer was loaded with Acquire, so this load comes after it; `upper` is our own.
        let now = self.core.pulse.era.load(Ordering::Relaxed);
        now == self.seat.upper.load(Ordering::Relaxed) || self.check_slow()
    }

    #[cold]
    fn check_slow(&self) -> bool {
        if self.seat.upper.load(Ordering::Relaxed) == NEVER {
            return true;
        }
        self.restarts.set(self.restarts.get() + 1);
        let upper = if self.restarts.get() >= 2 {
            NEVER
        } else {
            self.core.pulse.era.load(Ordering::Acquire)
        };
        self.seat.widen(upper, self.core.pulse.barrier);
        false
    }

    /// From here on every load is safe without a check, and everything retired meanwhile is held back. For whatever
    /// cannot start again: iterators, long guards. To be called before the root is loaded.
    pub fn hold_all(&self) {
        self.seat.widen(NEVER, self.core.pulse.barrier);
    }

    /// Hands a piece over to be freed when no section can refer to it.
    ///
    /// # Safety
    /// No path from the root leads to the piece any more, and it is retired once.
    pub unsafe fn retire(&self, piece: Retired) {
        collect::retire(self.core, self.seat, piece);
    }

    /// The present era: the birth stamp of what is published next (E2).
    #[inline(always)]
    pub fn era(&self) -> u64 {
        // ORDERING: Relaxed: a stale stamp is an earlier birth, which only holds memory longer.
        self.core.pulse.era.load(Ordering::Relaxed)
    }
}

impl<'a> Section<'a> {
    #[inline(always)]
    pub(super) fn enter(core: &'a Core, seat: &'a SeatState) -> Self {
        seat.enter(&core.pulse.era, core.pulse.barrier);
        Self { visit: Visit::new(core, seat) }
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
        if self.visit.seat.leave() {
            leave_slow(self.visit.core, self.visit.seat);
        }
    }
}

/// The outermost section was left and work waits: a full batch, or a seat nobody owns.
#[cold]
fn leave_slow(core: &Core, seat: &SeatState) {
    collect::collect(core, seat, false);
    seat.vacate_if_orphaned();
}
