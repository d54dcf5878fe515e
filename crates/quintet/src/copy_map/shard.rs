//! The locks of the writers.
//!
//! **L1.** Whoever changes a bucket or a list holds the lock of its shard, or is alone with the
//! table. A thread holds one such lock at a time, and runs no user code meanwhile: nobody waits for
//! itself, and nobody crosswise.
//! **L2.** The shard of a hash is its top bits: a contiguous range of the buckets of every table.
//! Tables that are not small share one row of shards; a small one has a shard of its own, whose
//! owner makes sure that its table is still the root.
//! **L3.** What a shard counts is written under its lock and read by anybody: exact when nobody
//! writes.

use crate::sync::prefetch::prefetch_write;
use crate::sync::{Arc, AtomicUsize, CachePadded, Mutex, MutexGuard, Ordering};

/// The shards of a table.
pub(super) type Row = Arc<Box<[CachePadded<Shard>]>>;

/// A row of `2^bits` shards.
pub(super) fn row(bits: u32) -> Box<[CachePadded<Shard>]> {
    (0..1usize << bits).map(|_| CachePadded::new(Shard::new())).collect()
}

/// One shard: a lock, and what is counted under it.
#[derive(Debug)]
pub(super) struct Shard {
    lock: Mutex<()>,
    /// Entries.
    live: AtomicUsize,
    /// Removals so far.
    removed: AtomicUsize,
}

impl Shard {
    fn new() -> Self {
        Self { lock: Mutex::new(()), live: AtomicUsize::new(0), removed: AtomicUsize::new(0) }
    }

    #[inline(always)]
    pub(super) fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock()
    }

    /// Asks the cache for the lock, which will be taken soon.
    #[inline(always)]
    pub(super) fn prefetch(&self) {
        prefetch_write(self);
    }

    /// Entries in this shard.
    pub(super) fn live(&self) -> usize {
        // ORDERING: Relaxed: a count (L3).
        self.live.load(Ordering::Relaxed)
    }

    /// Says how many entries there are, for who is alone with the shard.
    pub(super) fn set_live(&self, entries: usize) {
        // ORDERING: Relaxed: published with the table.
        self.live.store(entries, Ordering::Relaxed);
    }

    /// Counts an entry in, and says how many there are. The caller holds the lock, as for all that
    /// follows.
    #[inline(always)]
    pub(super) fn count_in(&self) -> usize {
        // ORDERING: Relaxed: one writer at a time (L1).
        let live = self.live.load(Ordering::Relaxed) + 1;
        self.live.store(live, Ordering::Relaxed);
        live
    }

    /// Counts an entry out; true now and then, when it is worth asking whether the table has become
    /// too large: as a rule by a shard with no more than a `few` entries.
    #[inline(always)]
    pub(super) fn count_out(&self, few: usize) -> bool {
        // ORDERING: Relaxed, as in `count_in`.
        let live = self.live.load(Ordering::Relaxed) - 1;
        self.live.store(live, Ordering::Relaxed);
        let removed = self.removed.load(Ordering::Relaxed).wrapping_add(1);
        self.removed.store(removed, Ordering::Relaxed);
        removed % 32 == 0 && (live <= few || removed % 1024 == 0)
    }
}
