//! One table: buckets, whose headers lie apart from their lanes, and a list for each shard.
//!
//! ```text
//!   hash     [ shard | ............ ]                    its top bits
//!   buckets  [ group of 8 | group of 8 | ... ]  [ ... ]  one range for each shard, of whole groups
//!
//!   way of a key:  home, home ^ 1, ... home ^ 7 in its group · the same in the next group of the range · ... · the list of its shard
//! ```
//!
//! **T1.** An entry lies on the way of its key, and stays at its place for as long as it is in the
//! table. Every bucket before it on the way counts it as passed (`bucket` B5), before it is there
//! and until it is gone.
//! **T2.** So who goes the way of a key up to a bucket that is not passed has met the key, if it
//! was there all the time. Who does not meet it may say that it is absent: at some moment in
//! between it was.
//! **T3.** A key is in one place of one table at most, except while it is moved: then it is in the
//! successor first (`grow` G2).
//! **T4.** The way has no more than [`REACH`] buckets, and does not leave the shard's range. Who
//! finds no lane on it goes to the list: a table is never full.
//! **T5.** A small table keeps the hashes of its lanes, so that it can be left under its lock: no
//! user code runs there.

use super::bucket::{Bucket, LINE_WORDS, Line};
use super::plain::{Plain, Shape};
use super::shard::{Row, Shard};
use super::spill::Spill;
use crate::migrate::{Election, FirstTouch, Leave, Link, Work};
use crate::region::heap::Buffer;
use crate::region::{AllocError, Pages};
use crate::sync::prefetch::{prefetch_read, prefetch_write};
use crate::sync::{AtomicBool, AtomicU64, MODEL, Ordering};
use std::fmt;

/// log2 of the buckets of a group: a chunk of a migration.
pub(super) const GROUP_BITS: u32 = if MODEL { 0 } else { 3 };

/// Buckets of a group.
pub(super) const GROUP: usize = 1 << GROUP_BITS;

/// Buckets on the way of a key (T4).
pub(super) const REACH: usize = if MODEL { 2 } else { 64 };

/// What a table is made with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// log2 of its buckets.
    pub(super) bits: u32,
    /// log2 of its shards.
    pub(super) shard_bits: u32,
    /// It has a shard of its own, and is left at once.
    pub(super) small: bool,
    /// The share of its lanes that may be used.
    pub(super) max_load: f64,
    pub(super) pages: Pages,
    /// The era before it was published.
    pub(super) birth: u64,
}

impl Plan {
    /// A 64-bit hash names no more homes, beside its tag.
    pub(super) const MAX_BITS: u32 = 38;
}

/// One table. The first fields are read by every operation and never change.
pub(super) struct Table<K, V> {
    /// A word for each bucket. In a small table the hashes of its lanes are behind them (T5).
    heads: Buffer<AtomicU64>,
    /// The lanes of all buckets.
    lines: Buffer<Line>,
    /// Turns a hash into its home: the top `bits` of 63.
    shift: u32,
    shard_shift: u32,
    /// The buckets of a shard's range, less one.
    range: usize,
    /// The lanes of one shard's range that may be used.
    share: usize,
    pub(super) shards: Row,
    /// Entries are being moved to `next`, which takes what is new.
    left: AtomicBool,
    /// The table that follows, set once.
    next: Link<Self>,
    pub(super) spills: Box<[Spill<K, V>]>,
    plan: Plan,
    pub(super) election: Election,
    touch: FirstTouch,
    /// Its chunks, to be moved.
    pub(super) work: Work,
}

impl<K, V> fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl<K: Plain, V: Plain> Leave for Table<K, V> {
    fn bytes_and_birth(&self) -> (usize, u64) {
        (self.bytes(), self.plan.birth)
    }

    unsafe fn give_back(&mut self) -> bool {
        if self.lines.bytes() > 0 {
            // SAFETY: the caller's promise.
            let last = unsafe { self.lines.give_back() };
            if !last {
                return false;
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.heads.give_back() }
    }
}

impl<K, V> Table<K, V> {
    /// The next table, for who is alone.
    pub(super) const fn next_mut(&mut self) -> &mut Link<Self> {
        &mut self.next
    }
}

impl<K: Plain, V: Plain> Table<K, V> {
    pub(super) const LANES: usize = Shape::<K, V>::LANES;

    /// An empty table.
    pub(super) fn try_new(plan: Plan, shards: Row) -> Result<Box<Self>, AllocError> {
        if plan.bits > Plan::MAX_BITS {
            return Err(AllocError::CapacityOverflow);
        }
        debug_assert!(plan.small || plan.bits >= plan.shard_bits + GROUP_BITS);
        let buckets = 1usize.checked_shl(plan.bits).ok_or(AllocError::CapacityOverflow)?;
        let words = buckets.checked_mul(Bucket::<K, V>::WORDS);
        let lines = words.ok_or(AllocError::CapacityOverflow)?.div_ceil(LINE_WORDS);
        let hashes = if plan.small { buckets * Self::LANES } else { 0 };
        let heads = Buffer::try_new(buckets + hashes, plan.pages)?;
        let lines = Buffer::try_new(lines, plan.pages)?;
        let range = (buckets >> plan.shard_bits) - 1;
        let chunks = if plan.small { 0 } else { buckets >> GROUP_BITS };
        let refused = |_| AllocError::OutOfMemory { bytes: chunks / 8 };
        Ok(Box::new(Self {
            touch: FirstTouch::of_both(&heads, &lines),
            heads,
            lines,
            shift: 63 - plan.bits,
            shard_shift: 63 - plan.shard_bits,
            range,
            share: ((range + 1) as f64 * Self::LANES as f64 * plan.max_load) as usize,
            shards,
            left: AtomicBool::new(false),
            // SAFETY: only views of the map's domain lead here, and all that they find is used in
            // their sections (`link` M12).
            next: unsafe { Link::empty() },
            spills: (0..1usize << plan.shard_bits).map(|_| Spill::new()).collect(),
            plan,
            election: Election::new(),
            work: Work::try_new(chunks).map_err(refused)?,
        }))
    }

    pub(super) const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The buckets.
    pub(super) const fn buckets(&self) -> usize {
        1 << self.plan.bits
    }

    /// The lanes.
    pub(super) const fn lanes(&self) -> usize {
        Self::LANES << self.plan.bits
    }

    /// How many entries fit before it is left.
    pub(super) fn capacity(&self) -> usize {
        (self.lanes() as f64 * self.plan.max_load) as usize
    }

    pub(super) fn bytes(&self) -> usize {
        let spills: usize =
            self.spills.iter().filter(|spill| spill.count() > 0).map(Spill::bytes).sum();
        self.heads.bytes() + self.lines.bytes() + spills
    }

    #[inline(always)]
    pub(super) const fn next(&self) -> &Link<Self> {
        &self.next
    }

    /// Whether entries are moved to the next table. If so, that one is there.
    #[inline(always)]
    pub(super) fn is_left(&self) -> bool {
        // ORDERING: Acquire: partner is `leave`. Who has seen an entry moved away has seen the
        // header that says so, which is behind the mover's look at this.
        self.left.load(Ordering::Acquire)
    }

    /// Entries may be moved to the next table, which is set.
    pub(super) fn leave(&self) {
        debug_assert!(!self.next.is_empty());
        // ORDERING: Release: the next table comes with it; partner: `is_left`.
        self.left.store(true, Ordering::Release);
    }

    /// Makes some of its memory present. False if all of it is, or will be soon (`migrate` M10).
    pub(super) fn touch_ahead(&self) -> bool {
        self.touch.step_both(&self.heads, &self.lines)
    }

    /// All shards of this table.
    pub(super) fn shards(&self) -> impl Iterator<Item = &Shard> {
        self.shards.iter().map(|shard| &**shard)
    }

    /// The shard of a hash.
    #[inline(always)]
    pub(super) fn shard(&self, hash: u64) -> &Shard {
        &self.shards[self.shard_number(hash)]
    }

    /// The shard of a number.
    pub(super) fn shard_at(&self, number: usize) -> &Shard {
        &self.shards[number]
    }

    /// The number of a hash's shard.
    #[inline(always)]
    pub(super) fn shard_number(&self, hash: u64) -> usize {
        (hash >> 1 >> self.shard_shift) as usize
    }

    /// A hash as it is if that is of this shard, else one that is: a hash that is another one each
    /// time it is asked for must not lead into a foreign range (`shard` L1).
    #[inline(always)]
    pub(super) fn hash_in(&self, shard: usize, hash: u64) -> u64 {
        let top = u64::MAX >> 1 >> self.shard_shift << self.shard_shift << 1;
        hash & !top | (shard as u64) << self.shard_shift << 1
    }

    pub(super) fn spill(&self, hash: u64) -> &Spill<K, V> {
        &self.spills[self.shard_number(hash)]
    }

    /// The list of a shard.
    pub(super) fn spill_of(&self, shard: usize) -> &Spill<K, V> {
        &self.spills[shard]
    }

    /// The first bucket of a way.
    #[inline(always)]
    pub(super) fn home(&self, hash: u64) -> usize {
        (hash >> 1 >> self.shift) as usize
    }

    /// The bucket of a step on a way.
    #[inline(always)]
    pub(super) fn on_way(&self, home: usize, step: usize) -> usize {
        let group = self.group();
        let start = (home & !group).wrapping_add(step & !group);
        home & !self.range | start & self.range | (home ^ step) & group
    }

    /// The buckets of a group, less one.
    #[inline(always)]
    pub(super) fn group(&self) -> usize {
        self.range.min(GROUP - 1)
    }

    /// Steps of a way (T4).
    #[inline(always)]
    pub(super) fn reach(&self) -> usize {
        REACH.min(self.range + 1)
    }

    /// The hash of what is in a lane of a small table, for the owner of the lock (T5).
    pub(super) fn hash_of(&self, number: usize, lane: usize) -> &AtomicU64 {
        &self.heads[self.buckets() + number * Self::LANES + lane]
    }

    #[inline(always)]
    pub(super) fn bucket(&self, number: usize) -> Bucket<'_, K, V> {
        debug_assert!(number < self.buckets());
        // SAFETY: homes have `bits` bits, and ways stay within a range of buckets.
        unsafe { Bucket::of(&self.heads, &self.lines, number) }
    }

    #[inline(always)]
    pub(super) fn bucket_on_way(&self, hash: u64, step: usize) -> Bucket<'_, K, V> {
        self.bucket(self.on_way(self.home(hash), step))
    }

    /// Asks the cache for the home of a hash.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64, write: bool) {
        let bucket = self.bucket(self.home(hash));
        let ask = if write { prefetch_write } else { prefetch_read };
        ask(bucket.head());
        bucket.prefetch(write);
    }
}

/// How full it is.
impl<K: Plain, V: Plain> Table<K, V> {
    /// Entries of the map, if this is its only table: an estimate while others write.
    pub(super) fn live(&self) -> usize {
        self.shards().map(Shard::live).sum()
    }

    /// Lanes that are used, if this is the only table.
    pub(super) fn used(&self) -> usize {
        self.live().saturating_sub(self.spilled())
    }

    /// With no more entries than that in a shard, the table may have become too large: twice an
    /// eighth of its share.
    #[inline(always)]
    pub(super) const fn few(&self) -> usize {
        self.range_lanes() / 4
    }

    /// So much has gone to a list that a larger table would help; not while this one is less than
    /// half full (`grow` G7).
    pub(super) fn is_crowded(&self, used: usize) -> bool {
        let some = self.range_lanes() / 8;
        used >= self.lanes() / 2 && self.spills.iter().any(|spill| spill.count() > some)
    }

    /// Entries in lists.
    pub(super) fn spilled(&self) -> usize {
        self.spills.iter().map(Spill::count).sum()
    }

    /// Lanes of one shard's range.
    pub(super) const fn range_lanes(&self) -> usize {
        (self.range + 1) * Self::LANES
    }

    /// A shard has so many entries that it is worth asking whether the table is full: now and then
    /// from its share on.
    #[inline(always)]
    pub(super) const fn may_be_full(&self, live: usize) -> bool {
        live > self.share && (live - self.share) % 8 == 1
    }
}
