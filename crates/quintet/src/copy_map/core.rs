//! The map: lookups along the chain of tables, and changes.
//!
//! ```text
//!   root ──▶ T ──next──▶ S         S takes what is new and, chunk by chunk, what T has; when T is empty the root leaves it for S
//! ```
//!
//! **C1.** Everybody starts at the root and goes along the chain: from a table that has not got the
//! key, and is left, to the next. Entries are moved forward only, into the next table before they
//! leave the one before (`grow` G2). So who has missed a key in T, and then finds that T is not
//! left, has missed it; and who goes on to S finds there what T has lost.
//! **C2.** A change looks first, without a lock: it finds where its key is, or the trace of a way
//! on which it is not. Then its user code runs (`Eq` while it looks, closures after). Then it takes
//! the lock, makes sure that what it has seen is still so, and does what is wanted; otherwise it
//! begins again. No user code runs under a lock.
//! **C3.** What is still so: of an entry that was met, its place and the bytes of its key, and, if
//! the change depends on its value, that too: values are plain data, and the same bytes are the
//! same value. Of a key that was not met: every header on its way, and the version of the list, if
//! the way went there. A key is added only to a table that is not left.
//! **C4.** The lock of a hash is the same for all tables that are not small (`shard` L2). A small
//! table is changed only while it is the root; it is left under its lock.
//! **C5.** All that can fail comes before the first change: a panic of user code, or an error,
//! leaves everything as it was.

use super::builder::Settings;
use super::plain::{Entry, Plain, Shape};
use super::seek::{Met, Trace};
use super::shard::Shard;
use super::table::Table;
use crate::migrate::{Link, Restart};
use crate::reclaim::{Access, Domain, Visit};
use crate::region::AllocError;
use crate::sync::{AtomicUsize, CachePadded, LazyArc, MODEL, const_where_possible};
use crate::vocabulary::{Compute, Computed};
use equivalent::Equivalent;
use std::fmt;
use std::hash::{BuildHasher, Hash};

/// Why an attempt ended without an answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    /// Begin again at the root.
    Restart,
    /// There is no table yet.
    NoTable,
    /// Memory was needed and could not be had.
    Alloc(AllocError),
}

impl From<Restart> for Stop {
    fn from(Restart: Restart) -> Self {
        Self::Restart
    }
}

impl From<AllocError> for Stop {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

/// What a change leaves to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// Few lanes are left.
    Filling,
    /// No lane was left on the way.
    Crowded,
    /// Much was removed.
    Emptying,
}

/// A map of plain data.
pub(super) struct Core<K, V, S> {
    pub(super) root: Link<Table<K, V>>,
    /// The shards of all tables that are not small.
    pub(super) row: LazyArc<Box<[CachePadded<Shard>]>>,
    pub(super) settings: Settings,
    pub(super) domain: Domain,
    /// Migrations completed.
    pub(super) migrations: AtomicUsize,
    /// Chunks handed out a second time.
    pub(super) again: AtomicUsize,
    pub(super) hasher: S,
}

impl<K, V, S> fmt::Debug for Core<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Spreads a hash, so that every bit of a weak one reaches the top ones, which decide on shard and
/// home. The lowest bit is set: no hash is 0. Under a model checker keys choose their own place.
#[inline(always)]
const fn fold(hash: u64) -> u64 {
    if MODEL { hash | 1 } else { hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
}

/// What a change has seen.
struct Sight<'v, K, V> {
    first: &'v Table<K, V>,
    trace: Trace,
    /// The next table, if the first is left.
    second: Option<(&'v Table<K, V>, Trace)>,
    /// Whether the key was met in the second.
    met: Option<(bool, Met)>,
}

impl<K, V, S> Core<K, V, S> {
    const_where_possible! {
        /// A map without a table.
        pub(super) fn new(settings: Settings, hasher: S) -> Self {
            Self {
                // SAFETY: only views of the map's domain lead here, and all that they find is used
                // in their sections (`link` M12).
                root: unsafe { Link::empty() },
                row: LazyArc::new(),
                settings,
                domain: Domain::new(),
                migrations: AtomicUsize::new(0),
                again: AtomicUsize::new(0),
                hasher,
            }
        }
    }
}

impl<K: Plain + Hash, V: Plain, S: BuildHasher> Core<K, V, S> {
    #[inline(always)]
    pub(super) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        fold(self.hasher.hash_one(key))
    }

    /// The value of a key.
    #[inline(always)]
    pub(super) fn get<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        access: &impl Access,
        key: &Q,
    ) -> Option<V> {
        self.get_hashed(access, self.hash(key), |other| key.equivalent(other))
    }

    #[inline(always)]
    pub(super) fn get_hashed(
        &self,
        access: &impl Access,
        hash: u64,
        same: impl Fn(&K) -> bool,
    ) -> Option<V> {
        if let Some(brief) = access.usual() {
            if let Ok(Some(table)) = self.root.follow(&brief) {
                if let Some(answer) = table.glance(hash, &same) {
                    return answer;
                }
            }
        }
        self.get_slow(access, hash, same)
    }

    /// A lookup in every case.
    #[cold]
    #[inline(never)]
    fn get_slow(&self, access: &impl Access, hash: u64, same: impl Fn(&K) -> bool) -> Option<V> {
        // Without a table there is nothing to enter for: a map that is not used allocates nothing.
        if self.root.is_empty() {
            return None;
        }
        let section = access.section();
        loop {
            if let Ok(entry) = self.try_get(&section, hash, &same) {
                // SAFETY: met by `seek`, which reads entries of one moment.
                return entry.map(|entry| unsafe { Shape::<K, V>::value(&entry) });
            }
        }
    }

    /// A lookup along the chain (C1).
    fn try_get(
        &self,
        visit: &Visit<'_>,
        hash: u64,
        same: &impl Fn(&K) -> bool,
    ) -> Result<Option<Entry>, Restart> {
        let mut table = self.root.follow(visit)?;
        while let Some(here) = table {
            if let Some(met) = here.seek(hash, same, &mut here.no_trace()) {
                return Ok(Some(met.entry));
            }
            table = if here.is_left() { here.next().follow(visit)? } else { None };
        }
        Ok(None)
    }

    /// Asks the cache for the homes of some hashes.
    #[inline(always)]
    pub(super) fn prefetch(&self, visit: &Visit<'_>, hashes: &[u64], write: bool) {
        if let Ok(Some(table)) = self.root.follow(visit) {
            hashes.iter().for_each(|hash| table.prefetch(*hash, write));
        }
    }

    /// Lets `decide` choose what happens to a key, until one choice takes effect. `key` is what is
    /// stored if it is absent. `BLIND`: the choice does not depend on the value.
    #[inline(always)]
    pub(super) fn change<const BLIND: bool, A: Access>(
        &self,
        access: &A,
        hash: u64,
        key: Option<K>,
        same: impl Fn(&K) -> bool,
        mut decide: impl FnMut(Option<V>) -> Compute<V>,
    ) -> Result<Computed<V>, AllocError> {
        // A view without a slow half, so that what is in registers stays there.
        let at_home = access
            .usual()
            .and_then(|view| self.change_at_home::<BLIND>(&view, hash, key, &same, &mut decide));
        let Some((done, due)) = at_home else {
            return self.change_slowly::<BLIND, A>(access, hash, key, &same, &mut decide);
        };
        // SAFETY: the operation was inside of the domain.
        if due != Due::Nothing || unsafe { self.domain.is_returning_in_use() } {
            self.look_after(access, due);
        }
        Ok(done)
    }

    /// What a change leaves to be done.
    #[cold]
    #[inline(never)]
    fn look_after(&self, access: &impl Access, due: Due) {
        if due != Due::Nothing {
            self.consider(&access.section(), due);
        }
        self.domain.return_piece();
    }

    /// A change in every case.
    #[cold]
    #[inline(never)]
    fn change_slowly<const BLIND: bool, A: Access>(
        &self,
        access: &A,
        hash: u64,
        key: Option<K>,
        same: &impl Fn(&K) -> bool,
        decide: &mut impl FnMut(Option<V>) -> Compute<V>,
    ) -> Result<Computed<V>, AllocError> {
        let section = access.section();
        let (done, due) = loop {
            match self.try_change::<BLIND>(&section, hash, key, same, decide) {
                Ok(done) => break done,
                Err(Stop::Restart) => {}
                Err(Stop::NoTable) => self.first_table(&section, self.settings.first_bits)?,
                Err(Stop::Alloc(error)) => return Err(error),
            }
        };
        drop(section);
        self.look_after(access, due);
        Ok(done)
    }

    /// One attempt (C2).
    #[inline(always)]
    fn try_change<const BLIND: bool>(
        &self,
        visit: &Visit<'_>,
        hash: u64,
        key: Option<K>,
        same: &impl Fn(&K) -> bool,
        decide: &mut impl FnMut(Option<V>) -> Compute<V>,
    ) -> Result<(Computed<V>, Due), Stop> {
        let Some(first) = self.root.follow(visit)? else {
            return match decide(None) {
                Compute::Insert(_) => Err(Stop::NoTable),
                _ => Ok((Computed { before: None, after: None }, Due::Nothing)),
            };
        };
        if !first.next().seems_empty() {
            self.help_on_the_way(visit, first)?;
        }
        let shard = first.shard(hash);
        shard.prefetch();
        let mut sight = Sight { first, trace: first.no_trace(), second: None, met: None };
        Self::look(visit, hash, same, &mut sight)?;
        let before = sight.met.map(|(_, met)| {
            // SAFETY: met by `seek`, which reads entries of one moment.
            unsafe { Shape::<K, V>::value(&met.entry) }
        });
        let wanted = match decide(before) {
            Compute::Insert(value) => Some(value),
            Compute::Remove if before.is_some() => None,
            _ => return Ok((Computed { before, after: before }, Due::Nothing)),
        };
        let _lock = shard.lock();
        if first.plan().small && !self.root.leads_to(first) {
            return Err(Stop::Restart); // (C4)
        }
        match (sight.met, wanted) {
            (Some((in_second, met)), _) => {
                let table = if in_second { sight.second_table() } else { first };
                Self::replace::<BLIND>(table, shard, hash, &met, wanted)
            }
            (None, Some(value)) => {
                let key = key.unwrap_or_else(|| unreachable!("a key that may be added is given"));
                Self::add(&sight, shard, hash, key, value)
            }
            (None, None) => unreachable!("nothing is removed where nothing is"),
        }
    }

    /// Where a key is, or is not.
    #[inline(always)]
    fn look<'v>(
        visit: &'v Visit<'_>,
        hash: u64,
        same: &impl Fn(&K) -> bool,
        sight: &mut Sight<'v, K, V>,
    ) -> Result<(), Stop> {
        match sight.first.seek(hash, same, &mut sight.trace) {
            Some(met) => sight.met = Some((false, met)),
            None if sight.first.is_left() => Self::look_further(visit, hash, same, sight)?,
            None => {}
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn look_further<'v>(
        visit: &'v Visit<'_>,
        hash: u64,
        same: &impl Fn(&K) -> bool,
        sight: &mut Sight<'v, K, V>,
    ) -> Result<(), Stop> {
        let second = sight.first.next().follow(visit)?.ok_or(Stop::Restart)?;
        let (_, trace) = sight.second.insert((second, second.no_trace()));
        let met = second.seek(hash, same, trace);
        // If that is left as well, the root is elsewhere.
        if met.is_none() && second.is_left() {
            return Err(Stop::Restart);
        }
        sight.met = met.map(|met| (true, met));
        Ok(())
    }

    /// Replaces or removes an entry that was met, if it is still so (C3). Under the lock.
    #[inline(always)]
    fn replace<const BLIND: bool>(
        table: &Table<K, V>,
        shard: &Shard,
        hash: u64,
        met: &Met,
        wanted: Option<V>,
    ) -> Result<(Computed<V>, Due), Stop> {
        let now = table.still(hash, met).ok_or(Stop::Restart)?;
        if !BLIND && !Shape::<K, V>::same(&now, &met.entry) {
            return Err(Stop::Restart);
        }
        // SAFETY: packed by whoever put it there, and read under the lock.
        let before = Some(unsafe { Shape::<K, V>::value(&now) });
        let Some(value) = wanted else {
            table.remove(hash, met.place);
            let due = if shard.count_out(table.few()) { Due::Emptying } else { Due::Nothing };
            return Ok((Computed { before, after: None }, due));
        };
        // The key stays the one that is there.
        // SAFETY: as above.
        let key = unsafe { Shape::<K, V>::key(&now) };
        table.overwrite(hash, met.place, &Shape::<K, V>::pack(key, value));
        Ok((Computed { before, after: wanted }, Due::Nothing))
    }

    /// Adds an entry whose key was not met, if it is still so (C3). Under the lock.
    #[inline(always)]
    fn add(
        sight: &Sight<'_, K, V>,
        shard: &Shard,
        hash: u64,
        key: K,
        value: V,
    ) -> Result<(Computed<V>, Due), Stop> {
        let table = sight.second.as_ref().map_or(sight.first, |(second, _)| second);
        let same = sight.first.is_as(hash, &sight.trace)
            && sight.second.as_ref().is_none_or(|(second, trace)| second.is_as(hash, trace));
        if !same || table.is_left() {
            return Err(Stop::Restart);
        }
        let in_lane = table.put(hash, &Shape::<K, V>::pack(key, value))?;
        Ok((Computed { before: None, after: Some(value) }, Self::added(table, shard, in_lane)))
    }

    /// Counts an entry that was put into a lane, or into the list.
    #[inline(always)]
    pub(super) fn added(table: &Table<K, V>, shard: &Shard, in_lane: bool) -> Due {
        match shard.count_in() {
            _ if !in_lane => Due::Crowded,
            live if table.may_be_full(live) => Due::Filling,
            _ => Due::Nothing,
        }
    }

    /// Entries: exact when nobody writes.
    pub(super) fn len(&self) -> usize {
        if self.root.is_empty() {
            return 0;
        }
        let section = self.domain.pin();
        loop {
            if let Ok(table) = self.root.follow(&section) {
                return table.map_or(0, Self::live);
            }
        }
    }

    pub(super) fn live(table: &Table<K, V>) -> usize {
        table.live()
    }
}

impl<'v, K, V> Sight<'v, K, V> {
    fn second_table(&self) -> &'v Table<K, V> {
        match &self.second {
            Some((second, _)) => second,
            None => unreachable!("met in a table that was looked at"),
        }
    }
}

impl<K, V, S> Drop for Core<K, V, S> {
    fn drop(&mut self) {
        // SAFETY: alone; each table of the chain is behind one link, and what has left it belongs
        // to the domain.
        unsafe { self.root.drop_chain(Table::next_mut) };
    }
}
