//! One table: buckets, and a list for each shard.
//!
//! ```text
//!   hash     [ shard | ............ ]                    its top bits
//!   buckets  [ group of 8 | group of 8 | ... ]  [ ... ]  one range for each shard, of whole groups
//!
//!   way of a key:  home, home ^ 1, ... home ^ 7 in its group · the same in the next group of the range · ... · the list of its shard
//! ```
//!
//! **T1.** An entry lies on the way of its key, and stays at its place for as long as it is in the table. Every bucket before it on the way counts it as passed (B5), before it is there
//! and until it is gone.
//! **T2.** So who goes the way of a key up to a bucket that is not passed has met the key, if it was there all the time. Who does not meet it may say that it is absent: at some moment in
//! between it was.
//! **T3.** A key is in one place of one table at most, except while it is moved: then it is in the successor first (G2).
//! **T4.** The way has no more than [`REACH`] buckets, and does not leave the shard's range. Who finds no lane on it goes to the list: a table is never full.
//! **T5.** A small table keeps the hashes of its lanes, so that it can be left under its lock: no user code runs there.

use super::bucket::{Bucket, Disturbed, Header, LINE_WORDS, Line, MOST_LANES};
use super::plain::{Entry, Plain, Shape};
use super::shard::{Row, Shard};
use super::spill::Spill;
use crate::migrate::{Election, FirstTouch, Leave, Link, Work};
use crate::region::heap::Buffer;
use crate::region::{AllocError, Pages};
use crate::sync::prefetch::{prefetch_read, prefetch_write};
use crate::sync::{AtomicBool, AtomicU64, Backoff, MODEL, Ordering};
use std::fmt;

/// log2 of the buckets of a group: a chunk of a migration.
pub(super) const GROUP_BITS: u32 = if MODEL { 0 } else { 3 };

/// Buckets of a group.
pub(super) const GROUP: usize = 1 << GROUP_BITS;

/// Buckets on the way of a key (T4).
pub(super) const REACH: usize = if MODEL { 2 } else { 64 };

/// Looks at a bucket that writers disturb, before a reader takes their lock.
const PATIENCE: usize = if MODEL { 1 } else { 64 };

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
    /// Tells the tables of a map apart; later ones have larger numbers.
    pub(super) id: u64,
}

impl Plan {
    /// A 64-bit hash names no more homes, beside its tag.
    pub(super) const MAX_BITS: u32 = 38;
}

/// Where an entry lies.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// In a lane of the bucket that is so many steps from home.
    Lane { step: usize, lane: usize },
    /// In a slot of the list.
    Slot(usize),
}

/// An entry that was met.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    pub(super) place: Place,
    pub(super) entry: Entry,
}

/// What was seen on the way of a key that was not met: while it is the same, the key is absent.
#[derive(Debug)]
pub(super) struct Trace {
    /// The first headers.
    near: [Header; 8],
    /// The others: few keys go that far.
    far: Vec<Header>,
    steps: usize,
    /// The version of the list, if the way went there.
    list: Option<u64>,
}

impl Trace {
    #[inline(always)]
    pub(super) fn new(any: Header) -> Self {
        Self { near: [any; 8], far: Vec::new(), steps: 0, list: None }
    }

    #[inline(always)]
    fn push(&mut self, header: Header) {
        match self.near.get_mut(self.steps) {
            Some(place) => *place = header,
            None => self.far.push(header),
        }
        self.steps += 1;
    }

    #[inline(always)]
    fn headers(&self) -> impl Iterator<Item = Header> + '_ {
        self.near.iter().chain(&self.far).copied().take(self.steps)
    }
}

/// One table. The first fields are read by every operation and never change.
pub(super) struct Table<K, V> {
    lines: Buffer<Line>,
    /// Turns a hash into its home: the top `bits` of 63.
    shift: u32,
    shard_shift: u32,
    /// The buckets of a shard's range, less one.
    range: usize,
    /// The buckets of a group, less one.
    group: usize,
    /// Steps of a way.
    reach: usize,
    /// The lanes of one shard's range that may be used.
    share: usize,
    shards: Row,
    /// Entries are being moved to `next`, which takes what is new.
    left: AtomicBool,
    /// The table that follows, set once.
    next: Link<Self>,
    spills: Box<[Spill<K, V>]>,
    /// By lane, of a small table (T5).
    hashes: Option<Box<[AtomicU64]>>,
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
        // SAFETY: the caller's promise.
        unsafe { self.lines.give_back() }
    }
}

/// The tag of a hash: bits that decide on the home in very large tables only. It is not 0.
#[inline(always)]
const fn tag_of(hash: u64) -> u8 {
    let tag = (hash >> 18) as u8;
    if tag == 0 { 1 } else { tag }
}

impl<K, V> Table<K, V> {
    /// The next table, for who is alone.
    pub(super) const fn next_mut(&mut self) -> &mut Link<Self> {
        &mut self.next
    }
}

impl<K: Plain, V: Plain> Table<K, V> {
    const LANES: usize = Shape::<K, V>::LANES;

    /// An empty table.
    pub(super) fn try_new(plan: Plan, shards: Row) -> Result<Box<Self>, AllocError> {
        if plan.bits > Plan::MAX_BITS {
            return Err(AllocError::CapacityOverflow);
        }
        debug_assert!(plan.small || plan.bits >= plan.shard_bits + GROUP_BITS);
        let buckets = 1usize.checked_shl(plan.bits).ok_or(AllocError::CapacityOverflow)?;
        let words = buckets.checked_mul(Shape::<K, V>::BUCKET);
        let lines = words.ok_or(AllocError::CapacityOverflow)?.div_ceil(LINE_WORDS);
        let lines = Buffer::try_new(lines, plan.pages)?;
        let range = (buckets >> plan.shard_bits) - 1;
        let chunks = if plan.small { 0 } else { buckets >> GROUP_BITS };
        let refused = |_| AllocError::OutOfMemory { bytes: chunks / 8 };
        let hashes = || (0..buckets * Self::LANES).map(|_| AtomicU64::new(0)).collect();
        Ok(Box::new(Self {
            touch: FirstTouch::of(&lines),
            lines,
            shift: 63 - plan.bits,
            shard_shift: 63 - plan.shard_bits,
            range,
            group: range.min(GROUP - 1),
            reach: REACH.min(range + 1),
            share: ((range + 1) as f64 * Self::LANES as f64 * plan.max_load) as usize,
            shards,
            left: AtomicBool::new(false),
            // SAFETY: only views of the map's domain lead here, and all that they find is used in their sections (M12).
            next: unsafe { Link::empty() },
            spills: (0..1usize << plan.shard_bits).map(|_| Spill::new()).collect(),
            hashes: plan.small.then(hashes),
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
        let hashes = self.hashes.as_ref().map_or(0, |hashes| hashes.len() * size_of::<u64>());
        let spills: usize =
            self.spills.iter().filter(|spill| spill.count() > 0).map(Spill::bytes).sum();
        self.lines.bytes() + hashes + spills
    }

    #[inline(always)]
    pub(super) const fn next(&self) -> &Link<Self> {
        &self.next
    }

    /// Whether entries are moved to the next table. If so, that one is there.
    #[inline(always)]
    pub(super) fn is_left(&self) -> bool {
        // ORDERING: Acquire: partner is `leave`. Who has seen an entry moved away has seen the header that says so, which is behind the mover's look at this.
        self.left.load(Ordering::Acquire)
    }

    /// Entries may be moved to the next table, which is set.
    pub(super) fn leave(&self) {
        debug_assert!(!self.next.is_empty());
        // ORDERING: Release: the next table comes with it; partner: `is_left`.
        self.left.store(true, Ordering::Release);
    }

    /// Makes some of its memory present. False if all of it is, or will be soon (M10).
    pub(super) fn touch_ahead(&self) -> bool {
        self.touch.step(&self.lines)
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

    /// A hash as it is if that is of this shard, else one that is: a hash that is another one each time it is asked for must not lead into a foreign range (L1).
    #[inline(always)]
    pub(super) fn hash_in(&self, shard: usize, hash: u64) -> u64 {
        let top = u64::MAX >> 1 >> self.shard_shift << self.shard_shift << 1;
        hash & !top | (shard as u64) << self.shard_shift << 1
    }

    fn spill(&self, hash: u64) -> &Spill<K, V> {
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
    fn on_way(&self, home: usize, step: usize) -> usize {
        let group = (home & !self.group).wrapping_add(step & !self.group);
        home & !self.range | group & self.range | (home ^ step) & self.group
    }

    #[inline(always)]
    pub(super) fn bucket(&self, number: usize) -> Bucket<'_, K, V> {
        debug_assert!(number < self.buckets());
        // SAFETY: homes have `bits` bits, and ways stay within a range of buckets.
        unsafe { Bucket::of(&self.lines, number) }
    }

    #[inline(always)]
    fn bucket_on_way(&self, hash: u64, step: usize) -> Bucket<'_, K, V> {
        self.bucket(self.on_way(self.home(hash), step))
    }

    /// Asks the cache for the home of a hash.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64, write: bool) {
        let first = self.bucket(self.home(hash)).address();
        let ask = if write { prefetch_write } else { prefetch_read };
        ask(first);
        if Bucket::<K, V>::BYTES > 64 {
            ask(first.wrapping_add(64));
        }
    }
}

impl<K: Plain, V: Plain> Table<K, V> {
    /// Looks for a key at its home. `None`: that does not decide.
    #[inline(always)]
    pub(super) fn glance(&self, hash: u64, same: impl Fn(&K) -> bool) -> Option<Option<Entry>> {
        let bucket = self.bucket(self.home(hash));
        if Bucket::<K, V>::BYTES > 64 {
            prefetch_read(bucket.address().wrapping_add(64));
        }
        let (header, met) = self.ask(bucket, hash, &same).ok()?;
        match met {
            Some((_, entry)) => Some(Some(entry)),
            None if header.is_passed() || self.is_left() => None,
            None => Some(None),
        }
    }

    /// Asks one bucket for a key: its header, and the lane with the key.
    #[inline(always)]
    pub(super) fn ask(
        &self,
        bucket: Bucket<'_, K, V>,
        hash: u64,
        same: &impl Fn(&K) -> bool,
    ) -> Result<(Header, Option<(usize, Entry)>), Disturbed> {
        let header = bucket.header();
        for lane in bucket.lanes_of(header, tag_of(hash)) {
            let entry = bucket.read(header, lane)?;
            // SAFETY: packed by whoever filled the lane, and read at one moment (P2).
            let key = unsafe { Shape::<K, V>::key(&entry) };
            if same(&key) {
                return Ok((header, Some((lane, entry))));
            }
        }
        // Nothing was read, so that it does not matter whether a writer is at work: an overwrite changes no tag.
        Ok((header, None))
    }

    /// The same with patience, and at last with the lock (L1: user code runs after it).
    #[inline(always)]
    fn ask_patiently(
        &self,
        bucket: Bucket<'_, K, V>,
        hash: u64,
        same: &impl Fn(&K) -> bool,
    ) -> (Header, Option<(usize, Entry)>) {
        match self.ask(bucket, hash, same) {
            Ok(answer) => answer,
            Err(_) => self.ask_again(bucket, hash, same),
        }
    }

    #[cold]
    #[inline(never)]
    fn ask_again(
        &self,
        bucket: Bucket<'_, K, V>,
        hash: u64,
        same: &impl Fn(&K) -> bool,
    ) -> (Header, Option<(usize, Entry)>) {
        let mut backoff = Backoff::new();
        for _ in 0..PATIENCE {
            backoff.snooze();
            if let Ok(answer) = self.ask(bucket, hash, same) {
                return answer;
            }
        }
        let (header, entries) = {
            let _lock = self.shard(hash).lock();
            let header = bucket.own_header();
            let lanes = bucket.lanes_of(header, tag_of(hash));
            (header, lanes.map(|lane| (lane, bucket.own_entry(lane))).collect::<Vec<_>>())
        };
        // SAFETY: packed by whoever filled the lane, and read under the lock.
        let is_same = |entry: &Entry| same(&unsafe { Shape::<K, V>::key(entry) });
        (header, entries.into_iter().find(|(_, entry)| is_same(entry)))
    }

    /// Goes the way of a key (T2). If it is not met, the trace says why.
    #[inline(always)]
    pub(super) fn seek(
        &self,
        hash: u64,
        same: &impl Fn(&K) -> bool,
        trace: &mut Trace,
    ) -> Option<Met> {
        for step in 0..self.reach {
            let bucket = self.bucket_on_way(hash, step);
            let (header, met) = self.ask_patiently(bucket, hash, same);
            if let Some((lane, entry)) = met {
                return Some(Met { place: Place::Lane { step, lane }, entry });
            }
            trace.push(header);
            if !header.is_passed() {
                return None;
            }
        }
        self.seek_in_list(hash, same, trace)
    }

    /// The trace of a way that nobody has gone.
    #[inline(always)]
    pub(super) fn no_trace(&self) -> Trace {
        Trace::new(Header::NONE)
    }

    /// Looks for a key in the list of its shard, some at a time: user code runs when the lock is free again.
    #[cold]
    #[inline(never)]
    fn seek_in_list(
        &self,
        hash: u64,
        same: &impl Fn(&K) -> bool,
        trace: &mut Trace,
    ) -> Option<Met> {
        const SOME: usize = 32;
        let spill = self.spill(hash);
        let mut some = [(0, 0, Entry::default()); SOME];
        let mut from = 0;
        loop {
            let count = {
                let _lock = self.shard(hash).lock();
                // That of the beginning: what comes meanwhile was not met.
                trace.list.get_or_insert_with(|| spill.version());
                if spill.count() == 0 { 0 } else { spill.some(from, |it| it == hash, &mut some) }
            };
            for &(slot, _, entry) in &some[..count] {
                // SAFETY: packed by whoever put it there, and read under the lock.
                let key = unsafe { Shape::<K, V>::key(&entry) };
                if same(&key) {
                    return Some(Met { place: Place::Slot(slot), entry });
                }
                from = slot + 1;
            }
            if count < SOME {
                return None;
            }
        }
    }
}

/// Buckets as a whole, for who moves or walks.
impl<K: Plain, V: Plain> Table<K, V> {
    /// The header of a bucket and the entries in its lanes, of one moment.
    pub(super) fn whole(&self, number: usize) -> (Header, [Entry; MOST_LANES]) {
        let bucket = self.bucket(number);
        let mut backoff = Backoff::new();
        for _ in 0..PATIENCE {
            let header = bucket.header();
            let mut entries = [Entry::default(); MOST_LANES];
            let read = bucket.used(header).try_for_each(|lane| {
                entries[lane] = bucket.read(header, lane)?;
                Ok::<(), Disturbed>(())
            });
            if read.is_ok() {
                return (header, entries);
            }
            backoff.snooze();
        }
        let _lock = self.shards[self.shard_of_bucket(number)].lock();
        let (header, mut entries) = (bucket.own_header(), [Entry::default(); MOST_LANES]);
        bucket.used(header).for_each(|lane| entries[lane] = bucket.own_entry(lane));
        (header, entries)
    }

    /// The first buckets of the groups behind that of a home, as far as a way goes.
    pub(super) fn groups_behind(&self, home: usize) -> impl Iterator<Item = usize> + '_ {
        let start = home & !self.group;
        (self.group + 1..self.reach)
            .step_by(self.group + 1)
            .map(move |step| self.on_way(start, step))
    }

    /// The number of the shard in whose range a bucket lies.
    pub(super) const fn shard_of_bucket(&self, number: usize) -> usize {
        number >> (self.plan.bits - self.plan.shard_bits)
    }
}

/// For the owner of the shard's lock.
impl<K: Plain, V: Plain> Table<K, V> {
    /// What is there now, if the entry that was met has not left its place.
    #[inline(always)]
    pub(super) fn still(&self, hash: u64, met: &Met) -> Option<Entry> {
        match met.place {
            Place::Lane { step, lane } => {
                let bucket = self.bucket_on_way(hash, step);
                bucket.holds(lane, tag_of(hash), &met.entry).then(|| bucket.own_entry(lane))
            }
            Place::Slot(slot) => self.spill(hash).holds(slot, hash, &met.entry),
        }
    }

    /// Whether all is as the trace says.
    #[inline(always)]
    pub(super) fn is_as(&self, hash: u64, trace: &Trace) -> bool {
        let mut headers = trace.headers().enumerate();
        headers.all(|(step, header)| self.bucket_on_way(hash, step).own_header() == header)
            && trace.list.is_none_or(|version| self.spill(hash).version() == version)
    }

    /// Replaces the value of an entry that is still there.
    #[inline(always)]
    pub(super) fn overwrite(&self, hash: u64, place: Place, entry: &Entry) {
        match place {
            Place::Lane { step, lane } => self.bucket_on_way(hash, step).overwrite(lane, entry),
            Place::Slot(slot) => self.spill(hash).overwrite(slot, entry),
        }
    }

    /// Takes out an entry that is still there.
    #[inline(always)]
    pub(super) fn remove(&self, hash: u64, place: Place) {
        let steps = match place {
            Place::Lane { step, lane } => {
                self.bucket_on_way(hash, step).clear(lane);
                self.count_lane_out(self.shard(hash));
                step
            }
            Place::Slot(slot) => {
                self.spill(hash).clear(slot);
                self.reach
            }
        };
        self.count_passed(hash, steps, false);
    }

    /// A lane of a shard's range is free again.
    #[inline(always)]
    pub(super) fn count_lane_out(&self, shard: &Shard) {
        shard.set_used(self.plan.id, shard.used(self.plan.id).saturating_sub(1));
    }

    /// Fills a free lane. Returns how many lanes of the shard's range are used then.
    #[inline(always)]
    fn fill(&self, shard: &Shard, number: usize, lane: usize, hash: u64, entry: &Entry) -> usize {
        if let Some(hashes) = &self.hashes {
            // ORDERING: Relaxed: read under the same lock.
            hashes[number * Self::LANES + lane].store(hash, Ordering::Relaxed);
        }
        self.bucket(number).fill(lane, tag_of(hash), entry);
        let used = shard.used(self.plan.id) + 1;
        shard.set_used(self.plan.id, used);
        used
    }

    /// Puts in an entry whose key is absent, if there is a lane at its home.
    #[inline(always)]
    pub(super) fn put_at_home(&self, shard: &Shard, hash: u64, entry: &Entry) -> Option<usize> {
        let home = self.home(hash);
        let bucket = self.bucket(home);
        let lane = bucket.lanes_of(bucket.own_header(), 0).next()?;
        Some(self.fill(shard, home, lane, hash, entry))
    }

    #[inline(always)]
    fn count_passed(&self, hash: u64, steps: usize, more: bool) {
        for step in 0..steps {
            self.bucket_on_way(hash, step).count_passed(more);
        }
    }

    /// Puts in an entry whose key is absent. Returns how many lanes of the shard's range are used then; `None` if it has gone to the list.
    #[inline(always)]
    pub(super) fn put(&self, hash: u64, entry: &Entry) -> Result<Option<usize>, AllocError> {
        for step in 0..self.reach {
            let number = self.on_way(self.home(hash), step);
            let bucket = self.bucket(number);
            let Some(lane) = bucket.lanes_of(bucket.own_header(), 0).next() else { continue };
            // T1: in this order.
            self.count_passed(hash, step, true);
            let used = self.fill(self.shard(hash), number, lane, hash, entry);
            return Ok(Some(used));
        }
        self.spill(hash).push(hash, entry)?;
        self.count_passed(hash, self.reach, true);
        Ok(None)
    }

    /// All entries of a small table, with their hashes (T5).
    pub(super) fn all(&self) -> Vec<(u64, Entry)> {
        let mut all = Vec::new();
        let hashes = self.hashes.iter().flat_map(|hashes| hashes.chunks_exact(Self::LANES));
        for (number, hashes) in hashes.enumerate() {
            let bucket = self.bucket(number);
            for lane in bucket.used(bucket.own_header()) {
                // ORDERING: Relaxed: written under the same lock.
                all.push((hashes[lane].load(Ordering::Relaxed), bucket.own_entry(lane)));
            }
        }
        let (mut from, mut one) = (0, [(0, 0, Entry::default())]);
        while self.spills[0].some(from, |_| true, &mut one) > 0 {
            from = one[0].0 + 1;
            all.push((one[0].1, one[0].2));
        }
        all
    }

    /// Lanes that are used: an estimate while others write.
    pub(super) fn used(&self) -> usize {
        self.shards().map(|shard| shard.used(self.plan.id)).sum()
    }

    /// With no more entries than that in a shard, the table may have become too large: twice an eighth of its share.
    #[inline(always)]
    pub(super) const fn few(&self) -> usize {
        self.range_lanes() / 4
    }

    /// So much has gone to a list that a larger table would help; not while this one is less than half full (G7).
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

    /// So many lanes of one shard's range are used that it is worth asking whether the table is full: now and then from its share on.
    #[inline(always)]
    pub(super) const fn may_be_full(&self, used: usize) -> bool {
        used > self.share && (used - self.share) % 8 == 1
    }
}
