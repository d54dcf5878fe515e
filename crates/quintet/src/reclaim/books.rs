//! What a seat counts for the table of its domain.
//!
//! **A1.** The books of a seat are written by its owner only, by plain stores. No user code runs
//! between the loads and the stores of one entry: operations of one seat that are inside of one
//! another write one after the other. So whenever nobody writes, the sum of `live` over all seats
//! ever made is the number of entries.
//! **A2.** The books stay with the seat when its owner leaves, and the next owner counts on:
//! nothing that was counted and not yet reported is lost, however short-lived the accesses are. So
//! the sum is over vacant seats too, and over abandoned ones (`roster` Q6).
//! **A3.** A domain whose seats keep books serves one table.
//! **A4.** Besides counts a seat keeps two notes for its table, which mean what the table says: a
//! number, 0 for none, and a hint. They stay with the seat as the counts do. Who works with the
//! number takes it out of the books first and puts it back when it is done. Who does not come back,
//! by a panic, by death or by a fork, leaves books without one.

use crate::sync::{AtomicI64, Ordering};
use std::cell::Cell;

/// The books of one seat.
#[derive(Debug)]
pub struct Books {
    /// Entries added minus entries removed.
    live: AtomicI64,
    /// What `used` and `removed` count for: the table's number among those that its map has made.
    table: Cell<u64>,
    /// Slots used and not yet reported.
    used: Cell<u8>,
    /// Entries removed and not yet reported.
    removed: Cell<u8>,
    /// The table's hint for this seat (A4).
    hint: Cell<u8>,
    /// The table's number for this seat (A4).
    number: Cell<u32>,
}

impl Books {
    pub(super) fn new() -> Self {
        Self {
            live: AtomicI64::new(0),
            table: Cell::new(u64::MAX),
            used: Cell::new(0),
            removed: Cell::new(0),
            hint: Cell::new(0),
            number: Cell::new(0),
        }
    }

    /// Takes the number out (A4). 0: there is none.
    pub fn take_number(&self) -> u32 {
        self.number.take()
    }

    /// Puts the number back, or the first one in.
    pub fn put_number(&self, number: u32) {
        self.number.set(number);
    }

    /// The hint.
    #[inline(always)]
    pub fn hint(&self) -> u8 {
        self.hint.get()
    }

    /// Changes the hint.
    #[inline(always)]
    pub fn set_hint(&self, hint: u8) {
        self.hint.set(hint);
    }

    /// Counts entries that came, or, below 0, went.
    #[inline(always)]
    pub fn add(&self, change: i64) {
        // ORDERING: Relaxed: our own store (A1). Release: who reads that an entry went knows that
        // it had come; partner: `live`.
        self.live.store(self.live.load(Ordering::Relaxed) + change, Ordering::Release);
    }

    /// Entries that this seat has seen come, less those it has seen go.
    pub fn live(&self) -> i64 {
        // ORDERING: Acquire: partner is `add`.
        self.live.load(Ordering::Acquire)
    }

    /// Counts a slot of `table` as used; a full batch is handed out to be reported.
    #[inline(always)]
    pub fn count_used(&self, table: u64, batch: u8) -> Option<usize> {
        self.count(table, &self.used, batch)
    }

    /// Counts a removal from `table`; a full batch is handed out to be reported.
    #[inline(always)]
    pub fn count_removed(&self, table: u64, batch: u8) -> Option<usize> {
        self.count(table, &self.removed, batch)
    }

    #[inline(always)]
    fn count(&self, table: u64, counter: &Cell<u8>, batch: u8) -> Option<usize> {
        if self.table.get() != table {
            // What was counted for another table is forgotten: that table has been left.
            self.table.set(table);
            self.used.set(0);
            self.removed.set(0);
        }
        // Below the batch, which is below 256.
        let count = counter.get() + 1;
        let full = count >= batch;
        counter.set(if full { 0 } else { count });
        full.then_some(usize::from(count))
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::super::Domain;

    #[test]
    fn the_sum_outlives_the_owners() {
        let domain = Domain::new();
        let forgotten = domain.join();
        for by in 1..=3 {
            domain.join().pin().books().add(by);
        }
        domain.pin().books().add(10);
        std::thread::scope(|scope| {
            let _ = scope.spawn(|| domain.pin().books().add(-4));
        });
        forgotten.pin().books().add(100);
        std::mem::forget(forgotten);
        assert_eq!(domain.live(), 112);
    }

    #[test]
    fn the_next_owner_of_a_seat_counts_on() {
        let domain = Domain::new();
        let count = |table| domain.join().pin().books().count_used(table, 3);
        assert_eq!([count(0), count(0), count(0), count(0)], [None, None, Some(3), None]);
        assert_eq!([count(1), count(1), count(1)], [None, None, Some(3)], "another table");
    }

    #[test]
    fn what_is_used_and_what_is_removed_are_counted_apart() {
        let domain = Domain::new();
        let section = domain.pin();
        let books = section.books();
        assert_eq!([books.count_used(0, 2), books.count_removed(0, 2)], [None, None]);
        assert_eq!([books.count_removed(0, 2), books.count_used(0, 2)], [Some(2), Some(2)]);
        books.count_used(0, 2);
        assert_eq!([books.count_removed(1, 2), books.count_used(1, 2)], [None, None]);
    }
}
