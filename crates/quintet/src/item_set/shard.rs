//! The locks of the writers.
//!
//! **L1.** Whoever adds an item of a stored hash, or copies it, holds the lock of that hash's
//! shard. What is there is changed without it until it is closed (`table` T8).
//! **L2.** Tables are looked up after the lock was taken, never before: what the last owner saw is
//! seen.
//! **L3.** A thread that holds a lock waits only for locks of a higher number in the same row: that
//! of the shard into whose range an item is displaced, or all of the row (`rebuild`). Where the
//! ring of lines comes round, the number is lower: that lock is tried, and if it is not free the
//! operation lets go and begins again.
//! **L4.** User code under a lock is marked, per thread: a write to the same set from inside would
//! wait for a lock of its own thread, and one to another set for a lock whose owner may wait for
//! this one, crosswise. Any write to any set panics instead.
//! **L7.** An item is counted in under the lock, before it can be found, and counted out in the
//! books of the seat that took it out, afterwards: a removal writes to no line that others write,
//! besides those of its place. Who reads the books first, and then what came, counts none too few.

use super::word::shard_of;
use crate::sync::prefetch::prefetch_write;
use crate::sync::{
    AtomicPtr, AtomicU32, AtomicUsize, CachePadded, Mutex, MutexGuard, Ordering,
    const_where_possible, thread_local_cell,
};
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// The right to change a shard.
pub(crate) type Locked<'s> = MutexGuard<'s, ()>;

/// One shard: a lock, and the number of items that came under it.
#[derive(Debug)]
pub(crate) struct Shard {
    lock: Mutex<()>,
    /// Written under the lock: items that came. Those that went are in the books of the seats (L7).
    came: AtomicUsize,
    /// Written under the lock: the table that `credit` is for. Only compared, never followed.
    table: AtomicPtr<()>,
    /// Written under the lock: places of that table that this shard may deal out without asking it.
    credit: AtomicU32,
}

/// All shards of a set: one for small tables, and a row of `2^bits` for all others.
///
/// **L5.** Each of the two is made once, before the first table that uses it, and stays until the
/// set drops. The pointers are null before. After, one leads to a shard in a box of its own, the
/// other to the first of `2^bits` shards in one box.
#[derive(Debug)]
pub(crate) struct Shards {
    one: AtomicPtr<Shard>,
    row: AtomicPtr<CachePadded<Shard>>,
    bits: u32,
}

/// The shards of a table: those of its set for tables of its kind.
///
/// **L6.** Tables of one kind have the same shards, so that the lock of a hash is the same for all
/// of them. Whoever has locked the shard of a hash and finds a table of the other kind at the root
/// has locked nothing, and begins again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Locks {
    first: NonNull<Shard>,
    bits: u32,
}

// SAFETY: a shard is shared by all threads; it is one of a set's, which outlives those who follow
// this (L5).
unsafe impl Send for Locks {}
// SAFETY: as above.
unsafe impl Sync for Locks {}

impl Shards {
    const_where_possible! {
        /// One shard and `2^bits`, none of which is made yet.
        pub(crate) fn new(bits: u32) -> Self {
            let (one, row) = (ptr::null_mut(), ptr::null_mut());
            Self { one: AtomicPtr::new(one), row: AtomicPtr::new(row), bits }
        }
    }

    /// The shard of small tables, if it is made.
    pub(crate) fn one(&self) -> Option<&Shard> {
        // ORDERING: Acquire: partner is `set_once`.
        let one = self.one.load(Ordering::Acquire);
        // SAFETY: null, or in a box that stays (L5).
        unsafe { one.as_ref() }
    }

    /// The shards of all other tables, if they are made.
    pub(crate) fn row(&self) -> &[CachePadded<Shard>] {
        // ORDERING: Acquire: partner is `set_once`.
        let first = self.row.load(Ordering::Acquire);
        if first.is_null() {
            return &[];
        }
        // SAFETY: not null: `2^bits` of them in one box, which stays (L5).
        unsafe { std::slice::from_raw_parts(first, 1 << self.bits) }
    }

    /// The shards of small tables or of others, made now if not before.
    pub(crate) fn locks(&self, small: bool) -> Locks {
        if small {
            return Locks { first: self.one_or_make(), bits: 0 };
        }
        // The first of them: a padded value lies at the beginning of its padding.
        Locks { first: self.row_or_make().cast(), bits: self.bits }
    }

    fn one_or_make(&self) -> NonNull<Shard> {
        if let Some(one) = self.one() {
            return NonNull::from(one);
        }
        let made = Box::into_raw(Box::new(Shard::new()));
        set_once(&self.one, made).unwrap_or_else(|there| {
            // SAFETY: out of the box above, and nobody has seen it.
            drop(unsafe { Box::from_raw(made) });
            there
        })
    }

    fn row_or_make(&self) -> NonNull<CachePadded<Shard>> {
        if let Some(first) = self.row().first() {
            return NonNull::from(first);
        }
        let made = Box::into_raw(Shard::row(1 << self.bits));
        set_once(&self.row, made.cast()).unwrap_or_else(|there| {
            // SAFETY: out of the box above, and nobody has seen it.
            drop(unsafe { Box::from_raw(made) });
            there
        })
    }

    /// Items that came.
    pub(crate) fn came(&self) -> usize {
        // In this order: what has left the one is found in the row (`hand_over`).
        let few = self.one().map_or(0, Shard::came);
        few + self.row().iter().map(|shard| shard.came()).sum::<usize>()
    }

    /// Counts the items of a small table, whose shard is locked, in the row from now on, which
    /// nobody else uses yet.
    pub(crate) fn hand_over(&self, hashes: impl Iterator<Item = u32>) {
        for shard in self.row() {
            // ORDERING: Relaxed: see `Shard::came`. An attempt before this one may have counted in
            // vain.
            shard.came.store(0, Ordering::Relaxed);
        }
        let mut handed = 0;
        for hash in hashes {
            self.row()[shard_of(hash, self.bits)].count_in();
            handed += 1;
        }
        if let Some(one) = self.one() {
            // What went stays with what came.
            // ORDERING: Release: who does not find them here finds them in the row; partner:
            // `Shard::came`.
            one.came.store(one.came() - handed, Ordering::Release);
        }
    }
}

/// Sets a pointer that is null; else returns where it leads already.
fn set_once<T>(place: &AtomicPtr<T>, made: *mut T) -> Result<NonNull<T>, NonNull<T>> {
    let null = ptr::null_mut();
    // ORDERING: Release: publishes what was made; Acquire, also on failure: what another has made;
    // partners: each other, `one` and `row`.
    let set = place.compare_exchange(null, made, Ordering::AcqRel, Ordering::Acquire);
    // SAFETY: `made` is out of a box, and what is there instead is not null.
    let pointer = |raw| unsafe { NonNull::new_unchecked(raw) };
    set.map(|_| pointer(made)).map_err(pointer)
}

impl Drop for Shards {
    fn drop(&mut self) {
        // ORDERING: Relaxed: alone.
        let one = self.one.load(Ordering::Relaxed);
        if !one.is_null() {
            // SAFETY: out of a box (L5), and nobody else is here.
            drop(unsafe { Box::from_raw(one) });
        }
        // ORDERING: Relaxed: alone.
        let first = self.row.load(Ordering::Relaxed);
        if !first.is_null() {
            let row = ptr::slice_from_raw_parts_mut(first, 1 << self.bits);
            // SAFETY: out of one box of that length (L5), and nobody else is here.
            drop(unsafe { Box::from_raw(row) });
        }
    }
}

impl Locks {
    /// The shard of a stored hash.
    ///
    /// # Safety
    /// Not beyond the life of the set.
    #[inline(always)]
    pub(crate) unsafe fn of<'s>(&self, hash: u32) -> &'s Shard {
        // SAFETY: a hash has one; the caller's promise.
        unsafe { self.at(shard_of(hash, self.bits)) }
    }

    /// The shard of a number below `2^bits`.
    ///
    /// # Safety
    /// There is one, and not beyond the life of the set.
    #[inline(always)]
    pub(crate) unsafe fn at<'s>(&self, number: usize) -> &'s Shard {
        debug_assert!(number < 1 << self.bits);
        let offset = number * size_of::<CachePadded<Shard>>();
        // SAFETY: there are `2^bits` shards at that distance, or one (L5), for as long as the set
        // lives.
        unsafe { &*self.first.as_ptr().cast_const().wrapping_byte_add(offset) }
    }

    /// Whether these are the same (L6).
    #[inline(always)]
    pub(crate) fn are(&self, others: &Self) -> bool {
        self.first == others.first
    }
}

impl Shard {
    pub(crate) fn row(count: usize) -> Box<[CachePadded<Self>]> {
        (0..count).map(|_| CachePadded::new(Self::new())).collect()
    }

    fn new() -> Self {
        Self {
            lock: Mutex::new(()),
            came: AtomicUsize::new(0),
            table: AtomicPtr::new(ptr::null_mut()),
            credit: AtomicU32::new(0),
        }
    }

    #[inline(always)]
    pub(crate) fn lock(&self) -> Locked<'_> {
        self.lock.lock()
    }

    /// Takes the lock if it is free.
    #[inline(always)]
    pub(crate) fn try_lock(&self) -> Option<Locked<'_>> {
        self.lock.try_lock()
    }

    /// Asks the cache for the lock, which will be taken soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        prefetch_write(self);
    }

    /// Items that came here.
    pub(crate) fn came(&self) -> usize {
        // ORDERING: Acquire: partner is `Shards::hand_over`. Otherwise a count; whoever wants it
        // exact has joined the writers.
        self.came.load(Ordering::Acquire)
    }

    /// Counts an item in, before others can find it (L7). The caller holds the lock.
    #[inline(always)]
    pub(crate) fn count_in(&self) {
        // ORDERING: Relaxed: one writer at a time (L1), see `came`.
        self.came.store(self.came.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// It did not come after all.
    #[cold]
    pub(crate) fn count_back(&self) {
        // ORDERING: Relaxed, as in `count_in`.
        self.came.store(self.came.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    }
}

impl Shard {
    /// Places of `table` that this shard may deal out, `most` of them at most. The caller holds the
    /// lock, as for all of these.
    #[inline(always)]
    pub(crate) fn credit(&self, table: *const (), most: u32) -> u32 {
        // ORDERING: Relaxed: one writer at a time (L1). Credit with another table is lost: that one
        // has been left. It may have had the address of this one, and larger batches: hence `most`.
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

/// Shards for tables of no set.
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
pub(super) static LONE: Shards = Shards::new(5);

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    /// A table may come to lie where a larger one was: what is left of the credit with that one may
    /// be more than it has places (`table` T4).
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
        "a write to a table of items or entries from inside the comparison of keys (a key's `Eq`, \
         `Item::matches`, `Item::same_key`) could wait for itself; read only there, and write after \
         the outer call has returned"
    )
}
