//! What one thread brings along: a seat to enter sections by, and its share of the books.
//!
//! **A1.** A tally is written by its owner only, by plain stores; the sum over all tallies ever joined is the number of
//! entries whenever nobody writes. A tally stays in the roster when its owner leaves, and the next owner counts on.

use super::core::Core;
use super::table::Table;
use crate::reclaim::{Handle, Section};
use crate::roster::{Roster, Seat};
use crate::sync::{AtomicI64, Ordering};
use std::cell::{Cell, OnceCell};

/// Entries added minus entries removed by the owners of one seat.
#[derive(Debug)]
pub(crate) struct Tally(AtomicI64);

impl Tally {
    #[inline(always)]
    pub(crate) fn add(&self, change: i64) {
        // ORDERING: Relaxed: a statistic with one writer (A1).
        self.0.store(self.0.load(Ordering::Relaxed) + change, Ordering::Relaxed);
    }

    pub(crate) fn live(&self) -> i64 {
        // ORDERING: Relaxed: as above.
        self.0.load(Ordering::Relaxed)
    }
}

/// Where sections are entered.
#[derive(Debug)]
enum Entrance {
    /// A seat of one's own.
    Own(Handle),
    /// The calling thread's seat.
    Thread,
}

/// One thread's means of working on a map.
#[derive(Debug)]
pub(crate) struct Access {
    entrance: Entrance,
    tally: OnceCell<Seat<Tally>>,
    /// The table that `used` and `removed` count for.
    table: Cell<u64>,
    used: Cell<usize>,
    removed: Cell<usize>,
}

impl Access {
    pub(crate) fn own(core: &Core) -> Self {
        Self::new(Entrance::Own(core.domain.join()))
    }

    pub(crate) fn of_thread() -> Self {
        Self::new(Entrance::Thread)
    }

    fn new(entrance: Entrance) -> Self {
        Self {
            entrance,
            tally: OnceCell::new(),
            table: Cell::new(u64::MAX),
            used: Cell::new(0),
            removed: Cell::new(0),
        }
    }

    /// Enters a section; it ends with the operation.
    #[inline(always)]
    pub(crate) fn enter<'s>(&'s self, core: &'s Core) -> Section<'s> {
        match &self.entrance {
            Entrance::Own(handle) => handle.pin(),
            Entrance::Thread => core.domain.pin(),
        }
    }

    /// Frees what this thread has retired and nobody can reach any more.
    pub(crate) fn flush(&self, core: &Core) {
        match &self.entrance {
            Entrance::Own(handle) => handle.flush(),
            Entrance::Thread => core.domain.flush(),
        }
    }

    /// This thread's tally, taken when first needed.
    #[inline(always)]
    pub(crate) fn tally(&self, core: &Core) -> &Tally {
        self.tally.get_or_init(|| Roster::join(&core.tallies, || Tally(AtomicI64::new(0))))
    }

    /// Counts a slot of `table` as used. True if the table has reported enough of them to be left.
    #[inline(always)]
    pub(crate) fn count_used(&self, table: &Table) -> bool {
        self.look_at(table);
        let used = self.used.get() + 1;
        if used < table.batch() {
            self.used.set(used);
            return false;
        }
        self.used.set(0);
        table.add_used(used) >= table.threshold()
    }

    /// Counts a removal from `table`. True when so many have been reported that it may have become too large.
    #[inline(always)]
    pub(crate) fn count_removed(&self, table: &Table) -> bool {
        self.look_at(table);
        let removed = self.removed.get() + 1;
        if removed < table.batch() {
            self.removed.set(removed);
            return false;
        }
        self.removed.set(0);
        table.add_removed(removed)
    }

    /// What has been counted and not reported: the table's id, slots used, entries removed. Counts from zero again.
    pub(super) fn take_counts(&self) -> Option<(u64, usize, usize)> {
        let (used, removed) = (self.used.take(), self.removed.take());
        (used + removed > 0).then(|| (self.table.get(), used, removed))
    }

    /// What was counted for another table is forgotten: that table has been left.
    #[inline(always)]
    fn look_at(&self, table: &Table) {
        if self.table.get() != table.plan().id {
            self.table.set(table.plan().id);
            self.used.set(0);
            self.removed.set(0);
        }
    }
}
