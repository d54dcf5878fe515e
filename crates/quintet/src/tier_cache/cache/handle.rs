//! Handles: a thread's access to a cache.

use super::TierCache;
use super::clock::Watch;
use super::error::CacheError;
use super::evict::Ring;
use super::quick::Quick;
use super::quota::SUSPECTS;
use super::read::{Hit, Nothing, Part, Sought, Target, Tried};
use super::spaces::Space;
use super::stats::Count;
use super::stored::Looked;
use super::view::View;
use super::write::Entry;
use crate::sync::fork;
use crate::tier_cache::MapError;
use crate::tier_cache::map;
use crate::tier_cache::memory::MAX_TIERS;
use crate::tier_cache::plan::Want;
use crate::tier_cache::word::{InputHash, Owner};
use std::time::Duration;

/// What an insert did beside storing the value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Inserted {
    /// The key had a value before.
    pub replaced: bool,
    /// Entries that had to be evicted for it.
    pub evicted: u32,
}

/// A thread's access to a cache: it owns a seat. `Send`, one per thread.
#[derive(Debug)]
pub struct Handle<'c> {
    pub(super) cache: &'c TierCache,
    pub(super) inner: map::Handle<'c>,
    pub(super) view: &'c View<'c>,
    pub(super) space: Space,
    /// Hits of this seat that the namespace knows of.
    pub(super) reported: u64,
    pub(super) blocks: Vec<u32>,
    pub(super) cursor: u32,
    /// The process it belongs to.
    pub(super) owner: Owner,
    /// Victims in waiting, of each tier, and those that leave first.
    pub(super) rings: [Ring; SUSPECTS + 1],
    /// Entries of a namespace and of this process that may have to become suspects.
    pub(super) offenders: [Ring; 2],
    pub(super) quota_hand: usize,
    /// Looks for suspects since the last that found one, and how many were known at the first of
    /// them.
    pub(super) vain_looks: usize,
    pub(super) vain_count: u64,
    /// When this handle last counted the accounts anew.
    pub(super) audited: u64,
    /// Blocks that came into each tier, less those that went, that not everybody knows of.
    pub(super) unreported: [i64; MAX_TIERS],
    pub(super) expiry_hand: usize,
    pub(super) forced_out: u32,
    pub(super) dry: u32,
    pub(super) no_evict: bool,
    pub(super) patience: Duration,
    /// When this handle last asked who is alive.
    pub(super) asked: u64,
    pub(super) watch: Watch,
    /// Free blocks that it may keep to itself.
    pub(super) most_kept: usize,
    /// The cache has a store.
    pub(super) stores: bool,
    /// The version of the entry that is placed next, if that is given (`tier_cache_stores` N10 of
    /// the stores).
    pub(super) given: u64,
    /// Batches put so far: tells leases apart.
    pub(super) turn: u32,
    /// Inserts until the next look at how much room there is.
    pub(super) until_nudge: u32,
    /// The forks before it, as long as the quick half of a lookup will do: it verifies no sums.
    forks: usize,
}

impl<'c> Handle<'c> {
    pub(super) fn new(cache: &'c TierCache, inner: map::Handle<'c>) -> Self {
        let view = cache.view();
        view.set_claiming(inner.number, false);
        let owner = view.memory.seat(inner.number).map_or(Owner::NOBODY, |seat| seat.owner());
        view.join(inner.number, owner);
        view.set_putting(inner.number, 0);
        view.mark_time();
        // Handles begin their searches for free blocks far from one another.
        let cursor = inner.number as u64 * view.sizes.blocks as u64 / view.sizes.seats as u64;
        let reported = view.counted(inner.number, Count::Hits);
        Self {
            cache,
            inner,
            view,
            space: Space::default(),
            reported,
            blocks: Vec::new(),
            cursor: cursor as u32,
            owner,
            rings: Default::default(),
            offenders: Default::default(),
            quota_hand: cursor as usize,
            vain_looks: 0,
            vain_count: 0,
            audited: 0,
            unreported: [0; MAX_TIERS],
            expiry_hand: cursor as usize,
            forced_out: 0,
            dry: 0,
            no_evict: false,
            patience: super::flight::DEFAULT_PATIENCE,
            asked: 0,
            watch: Watch::new(),
            most_kept: if view.sizes.evicts && !view.sizes.leases {
                view.sizes.most_kept()
            } else {
                0
            },
            stores: view.sizes.store.exists(),
            given: 0,
            turn: 0,
            until_nudge: 1,
            forks: if view.sizes.sums { usize::MAX } else { fork::seen().0 },
        }
    }

    /// The cache.
    pub fn cache(&self) -> &'c TierCache {
        self.cache
    }

    /// Sets how long an operation waits for a living peer before it returns [`CacheError::Busy`]:
    /// one second by default. Hits never wait.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.inner.set_timeout(timeout);
    }

    /// With `true`, operations of this handle evict nothing: they return [`CacheError::Full`]
    /// instead.
    pub fn set_no_evict(&mut self, no_evict: bool) {
        self.no_evict = no_evict;
    }

    pub(super) fn spares(&self) -> bool {
        self.no_evict || !self.view.sizes.evicts
    }

    pub(super) fn read(
        &mut self,
        key: &[u8],
        target: &mut impl Target,
    ) -> Result<Option<Hit>, CacheError> {
        self.inner.begin_read()?;
        self.pass_time();
        let input = self.view.input(self.space, key);
        let hit = match self.view.read_all(input, self.space, key, target) {
            Tried::Hit(hit) => Some(hit),
            _ => self.read_slow(input, key, target)?,
        };
        self.count_read(hit);
        Ok(hit)
    }

    /// The same for a key that most likely is absent: the search that certifies a miss is the
    /// first.
    fn read_unlisted(
        &mut self,
        key: &[u8],
        target: &mut impl Target,
    ) -> Result<Option<Hit>, CacheError> {
        self.inner.begin_read()?;
        self.pass_time();
        let hit = self.read_slow(self.view.input(self.space, key), key, target)?;
        self.count_read(hit);
        Ok(hit)
    }

    #[inline(always)]
    fn count_read(&self, hit: Option<Hit>) {
        let what = if hit.is_some() { Count::Hits } else { Count::Misses };
        self.view.count(self.inner.number, what, 1);
        if let Some(tier @ 1..) = hit.map(|hit| hit.tier as usize) {
            self.view.count_in(self.inner.number, Count::TierHits, tier, 1);
        }
    }

    #[cold]
    pub(super) fn read_slow(
        &mut self,
        input: InputHash,
        key: &[u8],
        target: &mut impl Target,
    ) -> Result<Option<Hit>, CacheError> {
        if self.stores {
            return Ok(match self.look_once(key, target)? {
                Looked::Hit(hit) => Some(hit),
                _ => None,
            });
        }
        self.read_slow_in(self.space, input, key, target)
    }

    /// The same in memory only, in any namespace, and what a miss saw.
    pub(super) fn seek(
        &self,
        space: Space,
        input: InputHash,
        key: &[u8],
        target: &mut impl Target,
    ) -> Result<Sought, CacheError> {
        self.inner.begin_read()?;
        let (map, timeout) = (&self.inner.map, self.inner.timeout);
        self.view.seek(Some(map), timeout, input, space, key, target)
    }

    /// In memory only, in any namespace.
    pub(super) fn read_slow_in(
        &self,
        space: Space,
        input: InputHash,
        key: &[u8],
        target: &mut impl Target,
    ) -> Result<Option<Hit>, CacheError> {
        self.inner.begin_read()?;
        let (map, timeout) = (&self.inner.map, self.inner.timeout);
        self.view.read_slow(Some(map), timeout, input, space, key, target)
    }

    pub(super) fn entry<'e>(
        &self,
        key: &'e [u8],
        value: &'e [u8],
        ttl: Option<Duration>,
    ) -> Entry<'e> {
        let input = self.view.input(self.space, key);
        Entry { input, space: self.space, key, value, expiry: self.view.expiry(ttl) }
    }

    /// The value of a key. Waits for nobody if the key is there.
    pub fn get(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, CacheError> {
        let mut value = Vec::new();
        Ok(self.get_into(key, &mut value)?.then_some(value))
    }

    /// Like [`Handle::get`], into a buffer of the caller's, whose content is replaced. False:
    /// absent, and the buffer's content is not meaningful.
    #[inline]
    pub fn get_into(
        &mut self,
        key: impl AsRef<[u8]>,
        value: &mut Vec<u8>,
    ) -> Result<bool, CacheError> {
        let key = key.as_ref();
        if fork::count() == self.forks {
            match self.view.quick(self.space, key, value) {
                Quick::Hit { link, used } => {
                    self.pass_time();
                    self.view.note_use(link, used);
                    self.view.count(self.inner.number, Count::Hits, 1);
                    return Ok(true);
                }
                Quick::Unlisted => return self.get_unlisted(key, value),
                Quick::Unsure => {}
            }
        }
        self.get_into_slow(key, value)
    }

    #[inline(never)]
    fn get_into_slow(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, CacheError> {
        let Some(hit) = self.read(key, value)? else { return Ok(false) };
        self.use_hit(hit);
        Ok(true)
    }

    #[inline(never)]
    fn get_unlisted(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, CacheError> {
        let Some(hit) = self.read_unlisted(key, value)? else { return Ok(false) };
        self.use_hit(hit);
        Ok(true)
    }

    /// A hit counts as a use: its word of use, and where a use promotes, its tier.
    fn use_hit(&mut self, hit: Hit) {
        self.view.note_use(hit.link, hit.used);
        if hit.tier > 0 && self.view.sizes.promotes {
            self.promote(hit.link);
        }
    }

    /// Like [`Handle::get`], into a slice: as much of the value as fits, and how long it is.
    /// `None`: absent, and what the slice holds is not meaningful.
    pub fn get_into_slice(
        &mut self,
        key: impl AsRef<[u8]>,
        value: &mut [u8],
    ) -> Result<Option<usize>, CacheError> {
        let mut part = Part { place: value, length: 0 };
        let Some(hit) = self.read(key.as_ref(), &mut part)? else { return Ok(None) };
        self.use_hit(hit);
        Ok(Some(part.length))
    }

    /// The value and its version, for [`Handle::compare_exchange`]. Every store makes a new one.
    pub fn get_versioned(
        &mut self,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<(Vec<u8>, u64)>, CacheError> {
        let mut value = Vec::new();
        let Some(hit) = self.bring(key.as_ref(), &mut value)? else { return Ok(None) };
        self.use_hit(hit);
        Ok(Some((value, hit.link.word())))
    }

    /// The value of a key, without counting as a use of it.
    pub fn peek(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, CacheError> {
        let mut value = Vec::new();
        Ok(self.read(key.as_ref(), &mut value)?.map(|_| value))
    }

    /// Is the key there? Does not count as a use of it.
    pub fn contains_key(&mut self, key: impl AsRef<[u8]>) -> Result<bool, CacheError> {
        Ok(self.read(key.as_ref(), &mut Nothing)?.is_some())
    }

    /// Stores a value, whether the key is there or not.
    pub fn insert(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<Inserted, CacheError> {
        self.insert_for(key, value, None)
    }

    /// Stores a value that expires after `ttl`, if that is given.
    pub fn insert_for(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Option<Duration>,
    ) -> Result<Inserted, CacheError> {
        let report = self.put(key.as_ref(), value.as_ref(), ttl, Want::Any)?;
        report.map_err(CacheError::from)
    }

    pub(super) fn put(
        &mut self,
        key: &[u8],
        value: &[u8],
        ttl: Option<Duration>,
        want: Want,
    ) -> Result<Result<Inserted, MapError>, CacheError> {
        self.store(self.entry(key, value, ttl), want)
    }

    /// Places an entry and counts it.
    pub(super) fn store(
        &mut self,
        entry: Entry<'_>,
        want: Want,
    ) -> Result<Result<Inserted, MapError>, CacheError> {
        self.forced_out = 0;
        self.pass_time();
        let placed = self.place(entry, want)?;
        let report = placed.map(|placed| {
            self.view.count(self.inner.number, Count::Sets, 1);
            Inserted { replaced: placed.replaced, evicted: self.forced_out + placed.forced }
        });
        if self.view.memory.tiers() > 1 && report.is_ok() {
            self.settle_tiers();
        }
        if self.stores {
            self.look_ahead();
        }
        Ok(report)
    }

    /// Removes a key and returns its value.
    pub fn pop(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, CacheError> {
        let key = key.as_ref();
        let mut value = Vec::new();
        loop {
            let Some(hit) = self.bring(key, &mut value)? else { return Ok(None) };
            // Replaced or removed meanwhile: what is there now is another value.
            if self.take_exactly(self.space, key, hit.link)? {
                self.view.count(self.inner.number, Count::Removes, 1);
                return Ok(Some(value));
            }
        }
    }

    /// Removes many keys. Returns how many were there.
    pub fn remove_many<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<usize, CacheError> {
        keys.iter().try_fold(0, |count, key| Ok(count + self.remove(key)? as usize))
    }

    /// Removes a key. False if it was absent.
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<bool, CacheError> {
        let key = key.as_ref();
        self.take_key(self.view.input(self.space, key), self.space, key)
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        // In a forked child they are the parent's to offer.
        if self.inner.begin_read().is_ok() {
            self.report_hits();
            self.report_tiers();
            self.tell_process();
            let kept = self.inner.kept.drain(..).chain(self.blocks.drain(..));
            kept.for_each(|block| self.view.offer_kept(block));
            if self.view.sizes.leases {
                self.view.end_leases(self.inner.number);
            }
        }
    }
}
