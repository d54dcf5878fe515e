//! Changing one table, for the owner of the shard's lock (`shard` L1).

use super::bucket::{Header, tag_of};
use super::plain::{Entry, Plain};
use super::seek::{Met, Near, Place, Trace};
use super::table::Table;
use crate::region::AllocError;
use crate::sync::Ordering;

/// For the owner of the shard's lock.
impl<K: Plain, V: Plain> Table<K, V> {
    /// What is there now, if the entry that was met has not left its place.
    #[inline(always)]
    pub(super) fn still(&self, hash: u64, met: &Met) -> Option<Entry> {
        match met.place {
            Place::Lane { step, lane } => {
                let bucket = self.bucket_on_way(hash, step);
                bucket.holds(lane, &met.entry).then(|| bucket.own_entry(lane))
            }
            Place::Slot(slot) => self.spill(hash).holds(slot, hash, &met.entry),
        }
    }

    /// Whether all is as the trace says.
    #[inline(always)]
    pub(super) fn is_as(&self, hash: u64, trace: &Trace) -> bool {
        (0..trace.steps())
            .all(|step| self.bucket_on_way(hash, step).own_header() == trace.header(step))
            && trace.list.is_none_or(|version| self.spill(hash).version() == version)
    }

    /// Whether the buckets that decide are as they were seen near home.
    #[inline(always)]
    pub(super) fn is_as_near(&self, hash: u64, near: &Near) -> bool {
        // Of an entry that was met its own bucket decides (`at_home` H1), of an absent key all of
        // them.
        let from = if near.met.is_some() { near.last } else { 0 };
        (from..=near.last)
            .all(|step| self.bucket_on_way(hash, step).own_header() == near.headers[step])
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
                step
            }
            Place::Slot(slot) => {
                self.spill(hash).clear(slot);
                self.reach()
            }
        };
        self.count_passed(hash, steps, false);
    }

    /// Fills a lane that is free by this header.
    #[inline(always)]
    fn fill(&self, number: usize, header: Header, lane: usize, hash: u64, entry: &Entry) {
        if self.plan().small {
            // ORDERING: Relaxed: read under the same lock.
            self.hash_of(number, lane).store(hash, Ordering::Relaxed);
        }
        self.bucket(number).fill(header, lane, tag_of(hash), entry);
    }

    /// Puts in an entry whose key is absent, if there is a lane at its home, which has this header.
    #[inline(always)]
    pub(super) fn put_at_home(&self, header: Header, hash: u64, entry: &Entry) -> Option<()> {
        let home = self.home(hash);
        let lane = self.bucket(home).free_lane(header)?;
        self.fill(home, header, lane, hash, entry);
        Some(())
    }

    /// One more, or one less, has passed the buckets of so many steps (`table` T1).
    #[inline(always)]
    pub(super) fn count_passed(&self, hash: u64, steps: usize, more: bool) {
        for step in 0..steps {
            self.bucket_on_way(hash, step).count_passed(more);
        }
    }

    /// Puts in an entry whose key is absent. False if it has gone to the list.
    #[inline(always)]
    pub(super) fn put(&self, hash: u64, entry: &Entry) -> Result<bool, AllocError> {
        for step in 0..self.reach() {
            let number = self.on_way(self.home(hash), step);
            let bucket = self.bucket(number);
            let header = bucket.own_header();
            let Some(lane) = bucket.free_lane(header) else { continue };
            // `table` T1: in this order.
            self.count_passed(hash, step, true);
            self.fill(number, header, lane, hash, entry);
            return Ok(true);
        }
        self.spill(hash).push(hash, entry)?;
        self.count_passed(hash, self.reach(), true);
        Ok(false)
    }

    /// Puts in an entry that was moved: at its home, as a rule.
    #[inline(always)]
    pub(super) fn put_moved(&self, hash: u64, entry: &Entry) -> Result<(), AllocError> {
        let bucket = self.bucket(self.home(hash));
        let header = bucket.own_header();
        // A small table keeps hashes besides.
        match bucket.free_lane(header) {
            Some(lane) if !self.plan().small => {
                bucket.fill(header, lane, tag_of(hash), entry);
                Ok(())
            }
            _ => self.put_further(hash, entry),
        }
    }

    #[cold]
    #[inline(never)]
    fn put_further(&self, hash: u64, entry: &Entry) -> Result<(), AllocError> {
        self.put(hash, entry).map(drop)
    }

    /// All entries of a small table, with their hashes (`table` T5).
    pub(super) fn all(&self) -> Vec<(u64, Entry)> {
        let mut all = Vec::new();
        for number in 0..self.buckets() {
            let bucket = self.bucket(number);
            for lane in bucket.used(bucket.own_header()) {
                // ORDERING: Relaxed: written under the same lock.
                let hash = self.hash_of(number, lane).load(Ordering::Relaxed);
                all.push((hash, bucket.own_entry(lane)));
            }
        }
        let (mut from, mut one) = (0, [(0, 0, Entry::default())]);
        while self.spills[0].some(from, |_| true, &mut one) > 0 {
            from = one[0].0 + 1;
            all.push((one[0].1, one[0].2));
        }
        all
    }
}
