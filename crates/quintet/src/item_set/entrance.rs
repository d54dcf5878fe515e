//! How a thread is inside of a set.

use crate::reclaim::{Domain, Offline, Peek, QuietHandle, Retired, Section, Visit};
use std::cell::Cell;

/// How a thread is inside: with quiet points, or by a guard.
pub trait Entrance: sealed::Enter {}

/// Inside all the time, except at its quiet points.
#[derive(Debug)]
pub struct Quiet {
    seat: QuietHandle,
    /// The address of a table of the set that was alone when this section looked (O2).
    known: Cell<usize>,
    /// What this section announced as its last era when it looked: at most what it announces now. 0, which is no era, before.
    upper: Cell<u64>,
}

/// The address of no table, and not null either, which is what the root is at first.
const NOTHING: usize = 1;

/// Inside for as long as a guard lives.
#[derive(Debug)]
pub struct Pinned<'s>(Section<'s>);

impl Quiet {
    pub(super) fn new(domain: &Domain) -> Self {
        Self { seat: domain.join_quiet(), known: Cell::new(NOTHING), upper: Cell::new(0) }
    }

    #[inline(always)]
    fn forget(&self) {
        self.known.set(NOTHING);
        self.upper.set(0);
    }

    /// A quiet point.
    #[inline(always)]
    pub(super) fn quiescent(&mut self) {
        self.forget();
        self.seat.quiescent();
    }

    /// A quiet point that lasts until the guard drops.
    pub(super) fn offline(&mut self) -> Offline<'_> {
        self.forget();
        self.seat.offline()
    }

    /// A quiet point that also frees all it can.
    pub(super) fn flush(&mut self) {
        self.forget();
        self.seat.flush();
    }
}

impl<'s> Pinned<'s> {
    pub(super) fn new(domain: &'s Domain) -> Self {
        Self(domain.pin())
    }
}

mod sealed {
    use super::{Peek, Retired, Visit};

    pub trait Enter {
        /// Remembers a table from one operation to the next.
        const REMEMBERS: bool;
        /// Whether this is the table it remembers. Never true of null.
        fn knows(&self, table: *const ()) -> bool;
        /// Remembers a table that this section has checked, and that was alone, until the section ends (O2).
        fn remember(&self, table: *const (), looked: Peek<'_>);
        /// A look with what it remembers. To be taken by an operation before its root is loaded, or before any user code has run since (E9).
        fn peek(&self) -> Peek<'_>;
        /// A look with what the section announces now. To be taken as `peek` is.
        fn look(&self) -> Peek<'_>;
        /// A view of its own for one operation (E9).
        fn visit<R>(&self, work: impl FnOnce(&Visit<'_>) -> R) -> R;
        /// [`Visit::retire_only`]. On the way of every overwrite: a closure would be a call.
        ///
        /// # Safety
        /// As there.
        unsafe fn retire_only(&self, piece: Retired);
    }
}

impl Entrance for Quiet {}
impl sealed::Enter for Quiet {
    const REMEMBERS: bool = true;

    #[inline(always)]
    fn knows(&self, table: *const ()) -> bool {
        table.addr() == self.known.get()
    }

    #[inline(always)]
    fn remember(&self, table: *const (), looked: Peek<'_>) {
        self.known.set(table.addr());
        self.upper.set(looked.upper());
    }

    #[inline(always)]
    fn peek(&self) -> Peek<'_> {
        self.seat.peek_at(self.upper.get())
    }

    #[inline(always)]
    fn look(&self) -> Peek<'_> {
        self.seat.peek()
    }

    #[inline(always)]
    fn visit<R>(&self, work: impl FnOnce(&Visit<'_>) -> R) -> R {
        work(&self.seat.visit())
    }

    #[inline(always)]
    unsafe fn retire_only(&self, piece: Retired) {
        // SAFETY: as the caller promises.
        unsafe { self.seat.visit().retire_only(piece) };
    }
}

impl Entrance for Pinned<'_> {}
impl sealed::Enter for Pinned<'_> {
    // Most guards live for one operation.
    const REMEMBERS: bool = false;

    #[inline(always)]
    fn knows(&self, _table: *const ()) -> bool {
        false
    }

    #[inline(always)]
    fn remember(&self, _table: *const (), _looked: Peek<'_>) {}

    #[inline(always)]
    fn peek(&self) -> Peek<'_> {
        self.0.visit().peek()
    }

    #[inline(always)]
    fn look(&self) -> Peek<'_> {
        self.0.visit().peek()
    }

    #[inline(always)]
    fn visit<R>(&self, work: impl FnOnce(&Visit<'_>) -> R) -> R {
        if cfg!(quintet_mutation = "shared-view") {
            return work(&self.0);
        }
        work(&self.0.visit())
    }

    #[inline(always)]
    unsafe fn retire_only(&self, piece: Retired) {
        // SAFETY: as the caller promises.
        unsafe { self.0.visit().retire_only(piece) };
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::sealed::Enter;
    use super::*;

    /// Behind a quiet point the table may have been freed, and another may lie at its address (O2).
    #[test]
    fn a_quiet_point_forgets_the_table() {
        let domain = Domain::new();
        let mut quiet = Quiet::new(&domain);
        let table = (&raw const domain).cast::<()>();
        let points: [fn(&mut Quiet); 3] =
            [Quiet::quiescent, Quiet::flush, |quiet| drop(quiet.offline())];
        assert!(!quiet.knows(std::ptr::null()), "an empty set");
        for point in points {
            quiet.remember(table, quiet.look());
            assert!(quiet.knows(table) && quiet.peek().check());
            point(&mut quiet);
            assert!(!quiet.knows(table) && !quiet.knows(std::ptr::null()));
            assert!(!quiet.peek().check() && quiet.look().check());
        }
    }
}
