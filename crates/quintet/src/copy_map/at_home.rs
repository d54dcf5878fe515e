//! The usual case of a change, in few instructions: one table, and the home of the key decides, or
//! the buckets next to it.
//!
//! **H1.** What holds for every change (`core` C2, C3) holds here, with one header for a trace, or
//! those of the first steps, and for the place of an entry: while it is the same, the lanes have
//! the same keys.
//! **H2.** Where that does not decide, or has changed before the lock was taken, nothing has
//! happened, and every case is tried from the beginning.

use super::bucket::Bucket;
use super::core::{Core, Due};
use super::plain::{Entry, Plain, Shape};
use super::shard::Shard;
use super::table::Table;
use crate::reclaim::Check;
use crate::vocabulary::{Compute, Computed};
use std::hash::{BuildHasher, Hash};

impl<K: Plain + Hash, V: Plain, S: BuildHasher> Core<K, V, S> {
    /// Does what `decide` wants, if the case is the usual one (H2).
    #[inline(always)]
    pub(super) fn change_at_home<const BLIND: bool>(
        &self,
        view: &impl Check,
        hash: u64,
        key: Option<K>,
        same: &impl Fn(&K) -> bool,
        decide: &mut impl FnMut(Option<V>) -> Compute<V>,
    ) -> Option<(Computed<V>, Due)> {
        let table = self.root.follow(view).ok()??;
        if !table.next().seems_empty() {
            return None;
        }
        let bucket = table.bucket(table.home(hash));
        // Both lines at once: the lock lets nothing be asked ahead of it.
        bucket.prefetch(true);
        let shard = table.shard(hash);
        shard.prefetch();
        let (header, met) = table.ask(bucket, hash, same).ok()?;
        if met.is_none() && header.is_passed() {
            return self.change_near::<BLIND>(table, hash, key, same, decide);
        }
        // A miss counts only if nothing is moved away (`core` C1).
        if met.is_none() && table.is_left() {
            return None;
        }
        // SAFETY: read at one moment.
        let before = met.as_ref().map(|(_, entry)| unsafe { Shape::<K, V>::value(entry) });
        let wanted = match decide(before) {
            Compute::Insert(value) => Some(value),
            Compute::Remove if before.is_some() => None,
            _ => return Some((Computed { before, after: before }, Due::Nothing)),
        };
        let _lock = shard.lock();
        let is_root = || !table.plan().small || self.root.leads_to(table);
        if bucket.own_header() != header || table.is_left() || !is_root() {
            return None;
        }
        match (met, wanted) {
            (Some((lane, entry)), wanted) => {
                Self::change_lane::<BLIND>(table, shard, bucket, lane, &entry, wanted)
            }
            (None, Some(value)) => {
                table.put_at_home(header, hash, &Shape::<K, V>::pack(key?, value))?;
                let due = Self::added(table, shard, true);
                Some((Computed { before: None, after: wanted }, due))
            }
            (None, None) => None,
        }
    }

    /// The same where others have gone past home, if the way ends soon.
    #[inline(never)]
    fn change_near<const BLIND: bool>(
        &self,
        table: &Table<K, V>,
        hash: u64,
        key: Option<K>,
        same: &impl Fn(&K) -> bool,
        decide: &mut impl FnMut(Option<V>) -> Compute<V>,
    ) -> Option<(Computed<V>, Due)> {
        let near = table.ask_near(hash, same)?;
        // `core` C1, as above.
        if near.met.is_none() && table.is_left() {
            return None;
        }
        // SAFETY: read at one moment.
        let before = near.met.as_ref().map(|(_, entry)| unsafe { Shape::<K, V>::value(entry) });
        let wanted = match decide(before) {
            Compute::Insert(value) => Some(value),
            Compute::Remove if before.is_some() => None,
            _ => return Some((Computed { before, after: before }, Due::Nothing)),
        };
        let shard = table.shard(hash);
        let _lock = shard.lock();
        let is_root = || !table.plan().small || self.root.leads_to(table);
        if !table.is_as_near(hash, &near) || table.is_left() || !is_root() {
            return None;
        }
        match (&near.met, wanted) {
            (Some((lane, entry)), wanted) => {
                let bucket = table.bucket_on_way(hash, near.last);
                let done = Self::change_lane::<BLIND>(table, shard, bucket, *lane, entry, wanted);
                if done.is_some() && wanted.is_none() {
                    // `table` T1: in this order.
                    table.count_passed(hash, near.last, false);
                }
                done
            }
            (None, Some(value)) => {
                // Without memory for the list nothing has happened (H2).
                let in_lane = table.put(hash, &Shape::<K, V>::pack(key?, value)).ok()?;
                let due = Self::added(table, shard, in_lane);
                Some((Computed { before: None, after: wanted }, due))
            }
            (None, None) => None,
        }
    }

    /// Replaces or removes what is in a lane, whose key is still the one that was met. Under the
    /// lock.
    #[inline(always)]
    fn change_lane<const BLIND: bool>(
        table: &Table<K, V>,
        shard: &Shard,
        bucket: Bucket<'_, K, V>,
        lane: usize,
        seen: &Entry,
        wanted: Option<V>,
    ) -> Option<(Computed<V>, Due)> {
        let now = bucket.own_entry(lane);
        // A value in one word changes under the same header (`bucket` B4).
        if !BLIND && !Shape::<K, V>::same(&now, seen) {
            return None;
        }
        // SAFETY: packed by whoever put it there, and read under the lock.
        let before = Some(unsafe { Shape::<K, V>::value(&now) });
        let Some(value) = wanted else {
            bucket.clear(lane);
            let due = if shard.count_out(table.few()) { Due::Emptying } else { Due::Nothing };
            return Some((Computed { before, after: None }, due));
        };
        // The key stays the one that is there.
        // SAFETY: as above.
        let key = unsafe { Shape::<K, V>::key(&now) };
        bucket.overwrite(lane, &Shape::<K, V>::pack(key, value));
        Some((Computed { before, after: wanted }, Due::Nothing))
    }
}
