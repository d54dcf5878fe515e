//! What one thread brings along: a seat to enter sections by, and its share of the books.
//!
//! **A1.** A tally is written by its owner only, by plain stores; the sum over all tallies ever joined is the number of
//! entries whenever nobody writes.
//! **A2.** A tally stays in the roster when its owner leaves, and the next owner counts on: nothing that was counted and not yet
//! reported is lost, however short-lived the accesses are.

use super::core::Core;
use super::table::Table;
use crate::reclaim::{Handle, Section};
use crate::roster::{Roster, Seat};
use crate::sync::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::cell::OnceCell;

/// The books of one seat.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Entries added minus entries removed.
    live: AtomicI64,
    /// The table that `used` and `removed` count for.
    table: AtomicU64,
    /// Slots used and not yet reported.
    used: AtomicUsize,
    /// Entries removed and not yet reported.
    removed: AtomicUsize,
}

// ORDERING: everything here is Relaxed: statistics with one writer (A1), handed over by the roster.
impl Tally {
    fn new() -> Self {
        Self {
            live: AtomicI64::new(0),
            table: AtomicU64::new(u64::MAX),
            used: AtomicUsize::new(0),
            removed: AtomicUsize::new(0),
        }
    }

    #[inline(always)]
    pub(crate) fn add(&self, change: i64) {
        self.live.store(self.live.load(Ordering::Relaxed) + change, Ordering::Relaxed);
    }

    pub(crate) fn live(&self) -> i64 {
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
    fn count(&self, table: &Table, counter: &AtomicUsize) -> Option<usize> {
        if self.table.load(Ordering::Relaxed) != table.plan().id {
            // What was counted for another table is forgotten: that table has been left.
            self.table.store(table.plan().id, Ordering::Relaxed);
            self.used.store(0, Ordering::Relaxed);
            self.removed.store(0, Ordering::Relaxed);
        }
        let count = counter.load(Ordering::Relaxed) + 1;
        let full = count >= table.batch();
        counter.store(if full { 0 } else { count }, Ordering::Relaxed);
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
