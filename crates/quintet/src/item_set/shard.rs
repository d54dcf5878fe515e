//! The locks of the writers.
//!
//! **L1.** Whoever changes what a set says about a stored hash, or copies it, holds the lock of that hash's shard.
//! **L2.** Tables are looked up after the lock was taken, never before: what the last owner saw is seen.
//! **L3.** A thread holds one lock at a time, or takes all in order (`rebuild`).
//! **L4.** User code under a lock is marked: a write to the same set from inside would wait for a lock of its own thread, or
//! crosswise for another's. It panics instead.

use crate::sync::prefetch::prefetch_write;
use crate::sync::{
    AtomicPtr, AtomicU32, AtomicUsize, CachePadded, Mutex, MutexGuard, Ordering, thread_local_cell,
};
use std::cell::Cell;
use std::ptr;

/// One shard: a lock, and the number of its items.
#[derive(Debug)]
pub(crate) struct Shard {
    lock: Mutex<()>,
    /// Written under the lock.
    live: AtomicUsize,
    /// Written under the lock: removals so far.
    removed: AtomicUsize,
    /// Written under the lock: the table that `credit` is for. Only compared, never followed.
    table: AtomicPtr<()>,
    /// Written under the lock: places of that table that this shard may deal out without asking it.
    credit: AtomicU32,
}

impl Shard {
    pub(crate) fn row(count: usize) -> Box<[CachePadded<Self>]> {
        let shard = |_| {
            CachePadded::new(Self {
                lock: Mutex::new(()),
                live: AtomicUsize::new(0),
                removed: AtomicUsize::new(0),
                table: AtomicPtr::new(ptr::null_mut()),
                credit: AtomicU32::new(0),
            })
        };
        (0..count).map(shard).collect()
    }

    #[inline(always)]
    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock()
    }

    /// Takes the lock if it is free.
    #[inline(always)]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, ()>> {
        self.lock.try_lock()
    }

    /// Asks the cache for the lock, which will be taken soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        prefetch_write(self);
    }

    /// Items in this shard.
    pub(crate) fn live(&self) -> usize {
        // ORDERING: Relaxed: a count; whoever wants it exact has joined the writers.
        self.live.load(Ordering::Relaxed)
    }

    /// Counts an item in. The caller holds the lock.
    #[inline(always)]
    pub(crate) fn count_in(&self) {
        // ORDERING: Relaxed: one writer at a time (L1), see `live`.
        self.live.store(self.live.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Counts an item out; true now and then, when it is worth asking whether the set has become too large.
    #[inline(always)]
    pub(crate) fn count_out(&self) -> bool {
        // ORDERING: Relaxed, as in `count_in`.
        self.live.store(self.live.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        let removed = self.removed.load(Ordering::Relaxed).wrapping_add(1);
        self.removed.store(removed, Ordering::Relaxed);
        removed % 32 == 0
    }
}

impl Shard {
    /// Places of `table` that this shard may deal out, `most` of them at most. The caller holds the lock, as for all of these.
    #[inline(always)]
    pub(crate) fn credit(&self, table: *const (), most: u32) -> u32 {
        // ORDERING: Relaxed: one writer at a time (L1). Credit with another table is lost: that one has been left. It may have had the
        // address of this one, and larger batches: hence `most`.
        let credit = self.credit.load(Ordering::Relaxed).min(most);
        if ptr::eq(self.table.load(Ordering::Relaxed), table) { credit } else { 0 }
    }

    /// Deals out one of them.
    #[inline(always)]
    pub(crate) fn spend(&self, credit: u32) {
        // ORDERING: Relaxed, as in `credit`.
        self.credit.store(credit - 1, Ordering::Relaxed);
    }

    /// Gives this shard credit with `table`, and takes what it had.
    pub(crate) fn grant(&self, table: *const (), credit: u32) {
        // ORDERING: Relaxed, as in `credit`.
        self.table.store(table.cast_mut(), Ordering::Relaxed);
        self.credit.store(credit, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    /// A table may come to lie where a larger one was: what is left of the credit with that one may be more than it has places (T4).
    #[test]
    fn credit_is_with_one_table_and_never_more_than_it_gives() {
        let shards = Shard::row(1);
        let [table, other] = [64, 128].map(ptr::without_provenance::<()>);
        let spend = |credit| {
            if credit > 0 {
                shards[0].spend(credit)
            }
        };
        let spent = |table, most| {
            (0..100)
                .filter(|_| Some(shards[0].credit(table, most)).inspect(|c| spend(*c)) > Some(0))
                .count()
        };
        assert_eq!(spent(table, 63), 0);
        shards[0].grant(table, 63);
        assert_eq!(spent(other, 63), 0, "of another table");
        assert_eq!(spent(table, 0), 0, "of one that gives single places");
        assert_eq!(spent(table, 7), 7);
        shards[0].grant(table, 3);
        assert_eq!(spent(table, 7), 3);
    }
}

/// A set whose user code this thread runs under a lock.
struct Busy {
    set: *const (),
    outer: *const Busy,
}

thread_local_cell! {
    static INNERMOST: Cell<*const Busy> = Cell::new(ptr::null())
}

/// Ends the mark, also when the user code panics.
struct Restore(*const Busy);

impl Drop for Restore {
    #[inline(always)]
    fn drop(&mut self) {
        let _ = INNERMOST.try_with(|innermost| innermost.set(self.0));
    }
}

/// Runs `work` with `set` marked as busy on this thread (L4).
#[inline(always)]
pub(crate) fn busy<R>(set: *const (), work: impl FnOnce() -> R) -> R {
    let outer = INNERMOST.try_with(Cell::get).unwrap_or(ptr::null());
    let mark = Busy { set, outer };
    let _restore = Restore(outer);
    let _ = INNERMOST.try_with(|innermost| innermost.set(&raw const mark));
    work()
}

/// Whether this thread runs user code under a lock of any set.
#[inline(always)]
pub(crate) fn is_busy() -> bool {
    !INNERMOST.try_with(Cell::get).unwrap_or(ptr::null()).is_null()
}

/// To be called by every operation that takes a lock of `set` (L4), and may wait for it.
///
/// # Panics
/// If this thread runs user code under a lock of the same set.
#[inline(always)]
pub(crate) fn assert_not_busy(set: *const ()) {
    let innermost = INNERMOST.try_with(Cell::get).unwrap_or(ptr::null());
    if !innermost.is_null() {
        assert_not_among(set, innermost);
    }
}

#[cold]
fn assert_not_among(set: *const (), mut mark: *const Busy) {
    // SAFETY: marks lie in stack frames of this thread that are still open (`busy` restores before it returns).
    while let Some(busy) = unsafe { mark.as_ref() } {
        assert!(
            !ptr::eq(busy.set, set),
            "ItemSet: a write from inside `Item::matches` of the same set would wait for itself; \
             read only there, and write after the outer call has returned"
        );
        mark = busy.outer;
    }
}
