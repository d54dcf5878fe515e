//! Looking for a key in one table (`table` T2), and at whole buckets. Nobody here holds a lock
//! while user code runs.

use super::bucket::{Bucket, Disturbed, Header, MOST_LANES, tag_of};
use super::plain::{Entry, Plain, Shape};
use super::table::Table;
use crate::sync::{Backoff, MODEL};

/// Looks at a bucket that writers disturb, before a reader takes their lock.
const PATIENCE: usize = if MODEL { 1 } else { 64 };

/// Steps of a way that the usual case goes: those within the group of home, whose headers share a
/// line.
pub(super) const NEAR: usize = 8;

/// What was seen on the first steps of a way that ends there.
pub(super) struct Near {
    pub(super) headers: [Header; NEAR],
    /// The step where it ends.
    pub(super) last: usize,
    /// The lane there that has the key.
    pub(super) met: Option<(usize, Entry)>,
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
    pub(super) list: Option<u64>,
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

    /// How many headers there are.
    #[inline(always)]
    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    /// That of a step.
    #[inline(always)]
    pub(super) fn header(&self, step: usize) -> Header {
        self.near.get(step).copied().unwrap_or_else(|| self.far[step - self.near.len()])
    }
}

impl<K: Plain, V: Plain> Table<K, V> {
    /// Looks for a key at its home. `None`: that does not decide.
    #[inline(always)]
    pub(super) fn glance(&self, hash: u64, same: impl Fn(&K) -> bool) -> Option<Option<V>> {
        let bucket = self.bucket(self.home(hash));
        // Both lines at once. One who misses asks for its lanes in vain, but waits for nothing.
        bucket.prefetch(false);
        let (header, met) = self.ask(bucket, hash, &same).ok()?;
        match met {
            // SAFETY: packed by whoever filled the lane, and read at one moment (`plain` P2).
            Some((_, entry)) => Some(Some(unsafe { Shape::<K, V>::value(&entry) })),
            None if header.is_passed() => self.glance_near(hash, &same),
            None if self.is_left() => None,
            None => Some(None),
        }
    }

    /// The same on the first steps of the way.
    #[inline(never)]
    fn glance_near(&self, hash: u64, same: &impl Fn(&K) -> bool) -> Option<Option<V>> {
        match self.ask_near(hash, same)?.met {
            // SAFETY: as in `glance`.
            Some((_, entry)) => Some(Some(unsafe { Shape::<K, V>::value(&entry) })),
            None if self.is_left() => None,
            None => Some(None),
        }
    }

    /// Asks the buckets of the first steps for a key. `None`: that does not decide, or a writer is
    /// at work.
    #[inline(always)]
    pub(super) fn ask_near(&self, hash: u64, same: &impl Fn(&K) -> bool) -> Option<Near> {
        let mut headers = [Header::NONE; NEAR];
        for (last, place) in headers.iter_mut().enumerate().take(self.reach()) {
            let (header, met) = self.ask(self.bucket_on_way(hash, last), hash, same).ok()?;
            *place = header;
            if met.is_some() || !header.is_passed() {
                return Some(Near { headers, last, met });
            }
        }
        None
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
            // SAFETY: packed by whoever filled the lane, and read at one moment (`plain` P2).
            let key = unsafe { Shape::<K, V>::key(&entry) };
            if same(&key) {
                return Ok((header, Some((lane, entry))));
            }
        }
        // Nothing was read, so that it does not matter whether a writer is at work: an overwrite
        // changes no tag.
        Ok((header, None))
    }

    /// The same with patience, and at last with the lock (`shard` L1: user code runs after it).
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

    /// Goes the way of a key (`table` T2). If it is not met, the trace says why.
    #[inline(always)]
    pub(super) fn seek(
        &self,
        hash: u64,
        same: &impl Fn(&K) -> bool,
        trace: &mut Trace,
    ) -> Option<Met> {
        for step in 0..self.reach() {
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

    /// Looks for a key in the list of its shard, some at a time: user code runs when the lock is
    /// free again.
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
    #[inline(always)]
    pub(super) fn whole(&self, number: usize) -> (Header, [Entry; MOST_LANES]) {
        let bucket = self.bucket(number);
        let header = bucket.header();
        let mut entries = [Entry::default(); MOST_LANES];
        for lane in bucket.used(header) {
            entries[lane] = bucket.own_entry(lane);
        }
        // One look confirms them all.
        if bucket.is_still(header) { (header, entries) } else { self.whole_again(number) }
    }

    #[cold]
    #[inline(never)]
    fn whole_again(&self, number: usize) -> (Header, [Entry; MOST_LANES]) {
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
        let start = home & !self.group();
        (self.group() + 1..self.reach())
            .step_by(self.group() + 1)
            .map(move |step| self.on_way(start, step))
    }

    /// The number of the shard in whose range a bucket lies.
    pub(super) const fn shard_of_bucket(&self, number: usize) -> usize {
        number >> (self.plan().bits - self.plan().shard_bits)
    }
}
