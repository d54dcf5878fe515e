//! The locks of the writers.
//!
//! **L1.** Whoever changes what a set says about a stored hash, or copies it, holds the lock of that hash's shard.
//! **L2.** Tables are looked up after the lock was taken, never before: what the last owner saw is seen.
//! **L3.** A thread holds one lock at a time, or takes all in order (`rebuild`).
//! **L4.** User code under a lock is marked, per thread: a write to the same set from inside would wait for a lock of its own thread, and one to another set
//! for a lock whose owner may wait for this one, crosswise. Any write to any set panics instead.

use super::word::shard_of;
use crate::sync::prefetch::prefetch_write;
use crate::sync::{
    AtomicPtr, AtomicU32, AtomicUsize, CachePadded, Mutex, MutexGuard, Ordering,
    const_where_possible, thread_local_cell,
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

/// All shards of a set.
///
/// **L5.** They are made once, before the set's first table, and stay until the set drops. The pointer is null before, and leads to the first of `2^bits` shards in one box
/// after.
#[derive(Debug)]
pub(crate) struct Shards {
    first: AtomicPtr<CachePadded<Shard>>,
    bits: u32,
}

impl Shards {
    const_where_possible! {
        /// `2^bits` shards that are not made yet.
        pub(crate) fn new(bits: u32) -> Self {
            Self { first: AtomicPtr::new(ptr::null_mut()), bits }
        }
    }

    /// The shards, if they are made.
    #[inline(always)]
    pub(crate) fn get(&self) -> &[CachePadded<Shard>] {
        // ORDERING: Acquire: partner is `make`.
        let first = self.first.load(Ordering::Acquire);
        if first.is_null() {
            return &[];
        }
        // SAFETY: not null: `2^bits` of them in one box, which stays (L5).
        unsafe { std::slice::from_raw_parts(first, 1 << self.bits) }
    }

    /// The shards, made now if not before.
    pub(crate) fn get_or_make(&self) -> &[CachePadded<Shard>] {
        if self.get().is_empty() {
            let made = Box::into_raw(Shard::row(1 << self.bits));
            // ORDERING: Release: publishes the shards; partner: `get`. Failure: somebody else was faster.
            let set = self.first.compare_exchange(
                ptr::null_mut(),
                made.cast(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if set.is_err() {
                // SAFETY: out of the box above, and nobody has seen it.
                drop(unsafe { Box::from_raw(made) });
            }
        }
        self.get()
    }

    /// The shard of a stored hash.
    ///
    /// # Safety
    /// They are made, in the sense of happens-before: the caller has followed a link to a table of the set.
    #[inline(always)]
    pub(crate) unsafe fn of(&self, hash: u32) -> &Shard {
        // ORDERING: Relaxed: made before, says the caller.
        let first = self.first.load(Ordering::Relaxed);
        debug_assert!(!first.is_null());
        let place = first.cast_const().wrapping_add(shard_of(hash, self.bits));
        // SAFETY: there are `2^bits` shards (L5).
        unsafe { &*place }
    }
}

impl Drop for Shards {
    fn drop(&mut self) {
        // ORDERING: Relaxed: alone.
        let first = self.first.load(Ordering::Relaxed);
        if !first.is_null() {
            let row = ptr::slice_from_raw_parts_mut(first, 1 << self.bits);
            // SAFETY: out of one box of that length (L5), and nobody else is here.
            drop(unsafe { Box::from_raw(row) });
        }
    }
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

thread_local_cell! {
    /// Whether this thread runs user code under a lock of some set.
    static BUSY: Cell<bool> = Cell::new(false)
}

/// Ends the mark, also when the user code panics.
struct Restore(bool);

impl Drop for Restore {
    #[inline(always)]
    fn drop(&mut self) {
        let _ = BUSY.try_with(|busy| busy.set(self.0));
    }
}

/// Runs `work` with this thread marked as busy (L4).
#[inline(always)]
pub(crate) fn busy<R>(work: impl FnOnce() -> R) -> R {
    let _restore = Restore(BUSY.try_with(|busy| busy.replace(true)).unwrap_or(true));
    work()
}

/// Whether this thread runs user code under a lock of any set.
#[inline(always)]
pub(crate) fn is_busy() -> bool {
    BUSY.try_with(Cell::get).unwrap_or(false)
}

/// To be called by every operation that takes a lock and may wait for it (L4).
///
/// # Panics
/// If this thread runs user code under a lock.
#[inline(always)]
pub(crate) fn assert_not_busy() {
    if is_busy() && !cfg!(quintet_mutation = "crosswise") {
        refuse();
    }
}

#[cold]
fn refuse() -> ! {
    panic!(
        "ItemSet: a write from inside `Item::matches` or `Item::same_key` could wait for itself; \
         read only there, and write after the outer call has returned"
    )
}
