//! What one thread brings along: a seat to enter sections by, and its share of the books.
//!
//! **A1.** A tally is written by its owner only, by plain stores; the sum over all tallies ever joined is the number of
//! entries whenever nobody writes.
//! **A2.** A tally stays in the roster when its owner leaves, and the next owner counts on: nothing that was counted and not yet
//! reported is lost, however short-lived the accesses are.

use super::core::Core;
use super::table::Table;
use crate::reclaim::{Brief, Handle, Section};
use crate::roster::{Roster, Seat};
use crate::sync::{AtomicI64, Ordering};
use std::cell::{Cell, OnceCell};

/// The books of one seat.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Entries added minus entries removed.
    live: AtomicI64,
    /// The table that `used` and `removed` count for.
    table: Cell<u64>,
    /// Slots used and not yet reported.
    used: Cell<usize>,
    /// Entries removed and not yet reported.
    removed: Cell<usize>,
}

// SAFETY: other threads read `live` only; the cells belong to the seat's owner, and the roster hands them over (Q1, Q3).
unsafe impl Sync for Tally {}

impl Tally {
    fn new() -> Self {
        Self {
            live: AtomicI64::new(0),
            table: Cell::new(u64::MAX),
            used: Cell::new(0),
            removed: Cell::new(0),
        }
    }

    #[inline(always)]
    pub(crate) fn add(&self, change: i64) {
        // ORDERING: Relaxed: a statistic with one writer (A1).
        self.live.store(self.live.load(Ordering::Relaxed) + change, Ordering::Relaxed);
    }

    pub(crate) fn live(&self) -> i64 {
        // ORDERING: Relaxed, as in `add`.
        self.live.load(Ordering::Relaxed)
    }

    /// Counts a slot of `table` as used. True if the table has reported enough of them to be left.
    #[inline(always)]
    pub(crate) fn count_used(&self, table: &Table) -> bool {
        match self.count(table, &self.used) {
            None => false,
            Some(used) => table.add_used(used) >= table.threshold(),
        }
    }

    /// Counts a removal from `table`. True when so many have been reported that it may have become too large.
    #[inline(always)]
    pub(crate) fn count_removed(&self, table: &Table) -> bool {
        match self.count(table, &self.removed) {
            None => false,
            Some(removed) => table.add_removed(removed),
        }
    }

    /// Counts one more; a full batch is handed out to be reported.
    #[inline(always)]
    fn count(&self, table: &Table, counter: &Cell<usize>) -> Option<usize> {
        if self.table.get() != table.plan().id {
            // What was counted for another table is forgotten: that table has been left.
            self.table.set(table.plan().id);
            self.used.set(0);
            self.removed.set(0);
        }
        let count = counter.get() + 1;
        let full = count >= table.batch();
        counter.set(if full { 0 } else { count });
        full.then_some(count)
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
}

impl Access {
    pub(crate) fn own(core: &Core) -> Self {
        Self::new(Entrance::Own(core.domain.join()))
    }

    pub(crate) fn of_thread() -> Self {
        Self::new(Entrance::Thread)
    }

    fn new(entrance: Entrance) -> Self {
        Self { entrance, tally: OnceCell::new() }
    }

    /// Enters a section; it ends with the operation.
    #[inline(always)]
    pub(crate) fn enter<'s>(&'s self, core: &'s Core) -> Section<'s> {
        match &self.entrance {
            Entrance::Own(handle) => handle.pin(),
            Entrance::Thread => core.domain.pin(),
        }
    }

    /// Enters a section in the usual case; see [`Brief`].
    #[inline(always)]
    pub(crate) fn enter_briefly<'s>(&'s self, core: &'s Core) -> Option<Brief<'s>> {
        let spot = match &self.entrance {
            Entrance::Own(handle) => handle.spot(),
            Entrance::Thread => core.domain.spot()?,
        };
        spot.enter()
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
        self.tally.get_or_init(|| Roster::join(&core.tallies, Tally::new))
    }
}
