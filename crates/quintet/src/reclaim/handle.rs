//! Seats that somebody owns.
//!
//! Both are `Send` and not `Sync`: a seat is written by one thread at a time.
//!
//! ```compile_fail
//! fn sync<T: Sync>() {}
//! sync::<quintet::access::Handle>();
//! ```
//!
//! ```compile_fail
//! fn sync<T: Sync>() {}
//! sync::<quintet::access::QuietHandle>();
//! ```
//!
//! ```
//! fn send<T: Send>() {}
//! send::<quintet::access::Handle>();
//! send::<quintet::access::QuietHandle>();
//! ```

use super::collect;
use super::domain::{Core, Domain};
use super::seat::{DUE, SeatState};
use super::section::{Held, Peek, Section, Spot, Visit};
use crate::roster::Seat;
use crate::sync::{Arc, Ordering};
use std::cell::Cell;

/// A registered seat: each read section is entered by [`pin`](Self::pin).
#[derive(Debug)]
pub struct Handle {
    seat: Seat<SeatState>,
    core: Arc<Core>,
}

/// A registered seat that is always inside a read section, except at its quiet points.
///
/// Reading costs nothing but the checks. The owner promises, by `&mut self`, that it holds no
/// reference when it calls [`quiescent`](Self::quiescent).
#[derive(Debug)]
pub struct QuietHandle {
    inner: Handle,
    memory: Memory,
}

/// A table that a quiet handle has seen since its last quiet point (`access` H4).
#[derive(Debug)]
pub(super) struct Memory {
    /// Its address.
    known: Cell<usize>,
    /// What the section announced as its last era when it looked: at most what it announces now. 0,
    /// which is no era, before.
    upper: Cell<u64>,
}

/// The address of no table, and not null either, which is what a root is at first.
const NOTHING: usize = 1;

/// While this lives, its [`QuietHandle`] is outside and holds nothing back.
#[derive(Debug)]
pub struct Offline<'a> {
    handle: &'a mut QuietHandle,
}

impl Handle {
    pub(super) fn new(domain: &Domain) -> Self {
        let core = domain.share();
        let seat = core.take_seat();
        core.lighten(&seat);
        Self { seat, core }
    }

    /// Enters a read section.
    #[inline(always)]
    pub fn pin(&self) -> Section<'_> {
        Section::enter(&self.core, &self.seat)
    }

    /// This seat, for a section in the usual case.
    #[inline(always)]
    pub fn spot(&self) -> Spot<'_> {
        Spot::new(&self.core, &self.seat)
    }

    /// Bytes that this seat has retired and that are not freed yet.
    pub fn backlog_bytes(&self) -> usize {
        // ORDERING: Relaxed: our own store.
        self.seat.bytes.load(Ordering::Relaxed)
    }

    /// Frees what can be freed now. Does nothing while a section is open.
    pub fn flush(&self) {
        if !self.seat.is_inside() {
            collect::collect(&self.core, &self.seat, true);
            collect::return_all(&self.core);
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Sections borrow the handle: those still open were forgotten, and no reference is left.
        self.seat.leave_all();
        self.core.weigh_down(&self.seat);
        // Until it is known better: the drop of a piece may panic.
        self.seat.set_laden(true);
        collect::leave(&self.core, &self.seat);
        self.seat.set_laden(self.seat.is_laden());
    }
}

impl Memory {
    fn new() -> Self {
        Self { known: Cell::new(NOTHING), upper: Cell::new(0) }
    }

    #[inline(always)]
    fn forget(&self) {
        self.known.set(NOTHING);
        self.upper.set(0);
    }

    #[inline(always)]
    pub(super) fn knows(&self, table: *const ()) -> bool {
        table.addr() == self.known.get()
    }

    #[inline(always)]
    pub(super) fn remember(&self, table: *const (), looked: Peek<'_>) {
        self.known.set(table.addr());
        self.upper.set(looked.upper());
    }

    #[inline(always)]
    pub(super) fn upper(&self) -> u64 {
        self.upper.get()
    }
}

impl QuietHandle {
    pub(super) fn new(domain: &Domain) -> Self {
        let core = domain.share();
        let inner = Handle { seat: core.take_seat(), core };
        let handle = Self { inner, memory: Memory::new() };
        handle.go_inside();
        handle
    }

    fn go_inside(&self) {
        self.inner.seat.enter_unusual(&self.inner.core.pulse.era);
    }

    /// What it remembers.
    #[inline(always)]
    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Enters a section inside of the one that lasts until the next quiet point.
    #[inline(always)]
    pub(super) fn enter(&self) -> Section<'_> {
        if !self.inner.seat.is_inside() {
            self.go_inside(); // (`reclaim` E8)
        }
        self.inner.pin()
    }

    /// The seat and what it announces, in the usual case.
    #[inline(always)]
    pub(super) fn held(&self) -> Held<'_> {
        Held::new(&self.inner.core, &self.inner.seat)
    }

    /// Loads shared pointers, without entering anything.
    #[inline(always)]
    pub fn visit(&self) -> Visit<'_> {
        Visit::new(&self.inner.core, &self.inner.seat, self.inner.seat.upper())
    }

    /// The same in the usual case.
    #[inline(always)]
    pub fn peek(&self) -> Peek<'_> {
        Peek::new(&self.inner.core, self.inner.seat.upper())
    }

    /// The same for who remembers the [`upper`](Peek::upper) of an earlier look in the same
    /// section; 0 for none.
    #[inline(always)]
    pub(super) fn peek_at(&self, upper: u64) -> Peek<'_> {
        debug_assert!(upper <= self.inner.seat.upper());
        Peek::new(&self.inner.core, upper)
    }

    /// A quiet point: no reference is held. Everything retired before it may go.
    #[inline]
    pub fn quiescent(&mut self) {
        self.memory.forget();
        if !self.inner.seat.is_fresh(&self.inner.core.pulse.era) {
            self.announce_anew();
        }
    }

    #[inline(never)]
    fn announce_anew(&mut self) {
        self.inner.seat.leave_all();
        if self.inner.seat.is_asked(DUE) {
            collect::collect(&self.inner.core, &self.inner.seat, false);
        }
        self.go_inside();
    }

    /// A quiet point that lasts until the guard drops: for threads that park.
    pub fn offline(&mut self) -> Offline<'_> {
        self.memory.forget();
        self.inner.seat.leave_all();
        collect::collect(&self.inner.core, &self.inner.seat, false);
        collect::free_ready(&self.inner.core, &self.inner.seat);
        Offline { handle: self }
    }

    /// A quiet point that also frees all it can.
    pub fn flush(&mut self) {
        self.memory.forget();
        self.inner.seat.leave_all();
        self.inner.flush();
        self.go_inside();
    }
}

impl Drop for Offline<'_> {
    fn drop(&mut self) {
        self.handle.go_inside();
    }
}
