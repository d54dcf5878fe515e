//! Walking over a map that changes.
//!
//! **I1.** A walk goes through the hashes from 0 to the last, some at a time: those of one group of
//! buckets. It keeps the hash where it goes on, and no table: the map may grow and shrink
//! meanwhile, and what it leaves is freed.
//! **I2.** For its hashes it looks through the chain as every reader does (`core` C1): at the
//! buckets where they may lie, and at the list; in the next table too, if this one is left after
//! that. A key that is there all the time is met: it stays where it is (`table` T1), or moves on to
//! where the walk looks later.
//! **I3.** What was moved, or removed and put in again, may be met twice while the walk is at its
//! hash: the second one is left out. Behind that hash it is not met any more.

use super::CopyMap;
use super::core::Core;
use super::plain::{Entry, Plain, Shape};
use super::table::{GROUP, GROUP_BITS, Table};
use crate::hasher::DefaultHashBuilder;
use crate::migrate::Restart;
use crate::reclaim::Visit;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

/// The iterator of [`CopyMap::iter`].
///
/// ```
/// fn sent<T: Send>() {}
/// sent::<quintet::copy_map::Iter<'_, u64, u64>>();
/// ```
pub struct Iter<'m, K, V, S = DefaultHashBuilder> {
    walk: Walk<K, V>,
    core: &'m Core<K, V, S>,
}

/// How far a walk is.
struct Walk<K, V> {
    /// The hash where it goes on.
    from: Option<u64>,
    /// The last hash.
    last: u64,
    /// What was met and not given out yet, with its hash.
    met: Vec<(u64, Entry)>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Plain + Hash + Eq, V: Plain> Walk<K, V> {
    fn new(hashes: RangeInclusive<u64>) -> Self {
        let (from, last) = (Some(*hashes.start()), *hashes.end());
        Self { from, last, met: Vec::new(), types: PhantomData }
    }

    /// `core` is the same each time.
    fn next<S: BuildHasher>(&mut self, core: &Core<K, V, S>) -> Option<(K, V)> {
        while self.met.is_empty() {
            let from = self.from?;
            let to = self.look(core, from);
            self.from = to.checked_add(1).filter(|from| *from <= self.last);
        }
        let (_, entry) = self.met.pop()?;
        // SAFETY: read at one moment, or under the lock.
        let key = unsafe { Shape::<K, V>::key(&entry) };
        // SAFETY: as above.
        Some((key, unsafe { Shape::<K, V>::value(&entry) }))
    }

    /// Looks at some hashes from `from` on. Returns the last of them.
    fn look<S: BuildHasher>(&mut self, core: &Core<K, V, S>, from: u64) -> u64 {
        if core.root.is_empty() {
            return u64::MAX;
        }
        let section = core.domain.pin();
        loop {
            self.met.clear();
            if let Ok(to) = self.try_look(core, &section, from) {
                return to;
            }
        }
    }

    fn try_look<S: BuildHasher>(
        &mut self,
        core: &Core<K, V, S>,
        visit: &Visit<'_>,
        from: u64,
    ) -> Result<u64, Restart> {
        let Some(mut table) = core.root.follow(visit)? else { return Ok(u64::MAX) };
        let next = table.next().follow(visit)?;
        let bits = next.map_or(0, |next| next.plan().bits).max(table.plan().bits);
        let to = (from | u64::MAX >> bits.saturating_sub(GROUP_BITS)).min(self.last);
        loop {
            self.look_in(core, table, from, to);
            if !table.is_left() {
                return Ok(to);
            }
            let Some(next) = table.next().follow(visit)? else { return Ok(to) };
            table = next;
        }
    }

    /// Looks at some hashes in one table (I2).
    fn look_in<S: BuildHasher>(
        &mut self,
        core: &Core<K, V, S>,
        table: &Table<K, V>,
        from: u64,
        to: u64,
    ) {
        let group = GROUP.min(table.buckets());
        let (first, last) = (table.home(from) & !(group - 1), table.home(to) & !(group - 1));
        for start in (first..=last).step_by(group) {
            self.look_at(core, table, start, group, from, to);
        }
        // Behind the last of their groups lie only such as have passed all of it (`table` T1).
        let mut behind = table.groups_behind(last);
        let mut start = last;
        while (start..start + group).all(|number| table.bucket(number).header().is_passed()) {
            let Some(next) = behind.next() else { break };
            start = next;
            self.look_at(core, table, start, group, from, to);
        }
        let shard = table.shard_number(from);
        let list = table.spill_of(shard);
        if list.count() > 0 {
            let known = self.met.len();
            let _lock = table.shard_at(shard).lock();
            let (mut slot, mut one) = (0, [(0, 0, Entry::default())]);
            while list.some(slot, |hash| (from..=to).contains(&hash), &mut one) > 0 {
                slot = one[0].0 + 1;
                self.meet(known, one[0].1, one[0].2);
            }
        }
    }

    /// Looks at some hashes in one group.
    fn look_at<S: BuildHasher>(
        &mut self,
        core: &Core<K, V, S>,
        table: &Table<K, V>,
        start: usize,
        group: usize,
        from: u64,
        to: u64,
    ) {
        for number in start..start + group {
            let (header, entries) = table.whole(number);
            for lane in table.bucket(number).used(header) {
                // SAFETY: read at one moment.
                let hash = core.hash(&unsafe { Shape::<K, V>::key(&entries[lane]) });
                if (from..=to).contains(&hash) {
                    self.meet(self.met.len(), hash, entries[lane]);
                }
            }
        }
    }

    /// Notes an entry, unless its key is among the first `known` (I3).
    fn meet(&mut self, known: usize, hash: u64, entry: Entry) {
        let same =
            |other: &(u64, Entry)| other.0 == hash && Shape::<K, V>::same_key(&other.1, &entry);
        if !self.met[..known].iter().any(same) {
            self.met.push((hash, entry));
        }
    }
}

impl<'m, K: Plain + Hash + Eq, V: Plain, S> Iter<'m, K, V, S> {
    pub(super) fn new(map: &'m CopyMap<K, V, S>) -> Self {
        Self { walk: Walk::new(0..=u64::MAX), core: &map.core }
    }

    /// The walk through a range of hashes.
    #[cfg(feature = "rayon")]
    pub(super) fn of_range(map: &'m CopyMap<K, V, S>, hashes: RangeInclusive<u64>) -> Self {
        Self { walk: Walk::new(hashes), core: &map.core }
    }
}

impl<K: Plain + Hash + Eq, V: Plain, S: BuildHasher> Iterator for Iter<'_, K, V, S> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.walk.next(self.core)
    }
}

/// The iterator of [`CopyMap::keys`].
pub struct Keys<'m, K, V, S = DefaultHashBuilder>(pub(super) Iter<'m, K, V, S>);

impl<K: Plain + Hash + Eq, V: Plain, S: BuildHasher> Iterator for Keys<'_, K, V, S> {
    type Item = K;

    fn next(&mut self) -> Option<K> {
        self.0.next().map(|(key, _)| key)
    }
}

/// The iterator of [`CopyMap::values`].
pub struct Values<'m, K, V, S = DefaultHashBuilder>(pub(super) Iter<'m, K, V, S>);

impl<K: Plain + Hash + Eq, V: Plain, S: BuildHasher> Iterator for Values<'_, K, V, S> {
    type Item = V;

    fn next(&mut self) -> Option<V> {
        self.0.next().map(|(_, value)| value)
    }
}

/// The iterator of [`CopyMap::drain`].
pub struct Drain<'m, K, V, S = DefaultHashBuilder> {
    map: &'m CopyMap<K, V, S>,
    keys: Keys<'m, K, V, S>,
}

impl<'m, K: Plain + Hash + Eq, V: Plain, S: BuildHasher> Drain<'m, K, V, S> {
    pub(super) fn new(map: &'m CopyMap<K, V, S>) -> Self {
        Self { map, keys: map.keys() }
    }
}

impl<K: Plain + Hash + Eq, V: Plain, S: BuildHasher> Iterator for Drain<'_, K, V, S> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        loop {
            let key = self.keys.next()?;
            // The value is the one that was removed; a key that somebody else removed is theirs.
            if let Some(value) = self.map.remove(&key) {
                return Some((key, value));
            }
        }
    }
}

/// The iterator of a map that is taken apart.
pub struct IntoIter<K, V, S = DefaultHashBuilder> {
    walk: Walk<K, V>,
    map: CopyMap<K, V, S>,
}

impl<K: Plain + Hash + Eq, V: Plain, S> IntoIter<K, V, S> {
    pub(super) fn new(map: CopyMap<K, V, S>) -> Self {
        Self { walk: Walk::new(0..=u64::MAX), map }
    }
}

impl<K: Plain + Hash + Eq, V: Plain, S: BuildHasher> Iterator for IntoIter<K, V, S> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.walk.next(&self.map.core)
    }
}

/// Each ends for good, and prints where it is.
macro_rules! iterators {
    ($($name:ident [$($lifetime:lifetime)?] $this:ident => $from:expr;)+) => { $(
        impl<K: Plain + Hash + Eq, V: Plain, S: BuildHasher> FusedIterator
            for $name<$($lifetime,)? K, V, S>
        {
        }

        impl<K, V, S> fmt::Debug for $name<$($lifetime,)? K, V, S> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $this = self;
                let is_over = $from.is_none();
                f.debug_struct(stringify!($name)).field("is_over", &is_over).finish_non_exhaustive()
            }
        }
    )+ };
}
iterators! {
    Iter ['_] iter => iter.walk.from;
    Keys ['_] keys => keys.0.walk.from;
    Values ['_] values => values.0.walk.from;
    Drain ['_] drain => drain.keys.0.walk.from;
    IntoIter [] all => all.walk.from;
}
