//! Changing one table, for the owner of the shard's lock (L1).

use super::plain::{Entry, Plain};
use super::seek::{Met, Place, Trace};
use super::shard::Shard;
use super::table::{Table, tag_of};
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
        shard.set_used(self.plan().id, shard.used(self.plan().id).saturating_sub(1));
    }

    /// Fills a free lane. Returns how many lanes of the shard's range are used then.
    #[inline(always)]
    fn fill(&self, shard: &Shard, number: usize, lane: usize, hash: u64, entry: &Entry) -> usize {
        if let Some(hashes) = &self.hashes {
            // ORDERING: Relaxed: read under the same lock.
            hashes[number * Self::LANES + lane].store(hash, Ordering::Relaxed);
        }
        self.bucket(number).fill(lane, tag_of(hash), entry);
        let used = shard.used(self.plan().id) + 1;
        shard.set_used(self.plan().id, used);
        used
    }

    /// Puts in an entry whose key is absent, if there is a lane at its home.
    #[inline(always)]
    pub(super) fn put_at_home(&self, shard: &Shard, hash: u64, entry: &Entry) -> Option<usize> {
        let home = self.home(hash);
        let bucket = self.bucket(home);
        let lane = bucket.free_lane(bucket.own_header())?;
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
            let Some(lane) = bucket.free_lane(bucket.own_header()) else { continue };
            // T1: in this order.
            self.count_passed(hash, step, true);
            let used = self.fill(self.shard(hash), number, lane, hash, entry);
            return Ok(Some(used));
        }
        self.spill(hash).push(hash, entry)?;
        self.count_passed(hash, self.reach, true);
        Ok(None)
    }

    /// Puts in an entry that was moved, without counting its lane: at its home, as a rule. False if it has gone elsewhere, and was counted.
    #[inline(always)]
    pub(super) fn put_moved(&self, hash: u64, entry: &Entry) -> Result<bool, AllocError> {
        let bucket = self.bucket(self.home(hash));
        // A small table keeps hashes besides.
        match bucket.free_lane(bucket.own_header()) {
            Some(lane) if self.hashes.is_none() => {
                bucket.fill(lane, tag_of(hash), entry);
                Ok(true)
            }
            _ => self.put(hash, entry).map(|_| false),
        }
    }

    /// Counts lanes that [`put_moved`](Self::put_moved) has filled.
    pub(super) fn count_lanes_in(&self, shard: &Shard, lanes: usize) {
        shard.set_used(self.plan().id, shard.used(self.plan().id) + lanes);
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
}
