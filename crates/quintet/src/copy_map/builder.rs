//! How a map is set up.

use super::plain::{Plain, Shape};
use super::table::GROUP_BITS;
use super::{CopyMap, Invariant};
use crate::hasher::DefaultHashBuilder;
use crate::migrate::capacity_for;
use crate::region::{AllocError, Pages};
use crate::sync::MODEL;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

const MAX_LOAD: f64 = 0.75;
const SHARDS: usize = if MODEL { 2 } else { 32 };
/// Chunks that each change moves while the map is migrating: 32 to 48 lanes.
const QUOTA: usize = if MODEL { 1 } else { 2 };

/// What all tables of a map have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) max_load: f64,
    pub(super) shard_bits: u32,
    pub(super) quota: usize,
    pub(super) pages: Pages,
    /// log2 of the buckets of the first table.
    pub(super) first_bits: u32,
    /// Entries that a bucket may have on average: its share of lanes.
    pub(super) per_bucket: f64,
    /// Tables may be small: have a shard of their own, and be left at once. Models say so
    /// themselves.
    pub(super) small: bool,
}

impl Settings {
    /// Those of a map that nobody has set up.
    pub(super) const fn usual<K: Plain, V: Plain>() -> Self {
        Self {
            max_load: MAX_LOAD,
            shard_bits: SHARDS.trailing_zeros(),
            quota: QUOTA,
            pages: Pages::Huge,
            first_bits: 0,
            per_bucket: MAX_LOAD * Shape::<K, V>::LANES as f64,
            small: !MODEL,
        }
    }

    /// log2 of the buckets of a table into which so many entries go.
    pub(super) fn bits_for(&self, entries: usize) -> u32 {
        capacity_for(entries, |_| self.per_bucket)
    }

    /// log2 of the buckets of the smallest table.
    pub(super) const fn min_bits(&self) -> u32 {
        if self.small { 0 } else { self.full_bits() }
    }

    /// log2 of the buckets of the smallest table that is not small: a group for each shard.
    pub(super) const fn full_bits(&self) -> u32 {
        self.shard_bits + GROUP_BITS
    }
}

/// Sets up a [`CopyMap`].
///
/// ```
/// use quintet::CopyMap;
///
/// let map: CopyMap<u64, [u64; 3]> = CopyMap::builder().capacity(10_000).max_load(0.6).build();
/// map.insert(7, [1, 2, 3]);
/// assert_eq!(map.get(&7), Some([1, 2, 3]));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct CopyMapBuilder<K, V, S = DefaultHashBuilder> {
    capacity: usize,
    max_load: f64,
    shards: usize,
    pages: Pages,
    hasher: S,
    types: Invariant<(K, V)>,
}

impl<K: Plain, V: Plain> Default for CopyMapBuilder<K, V> {
    fn default() -> Self {
        Self {
            capacity: 0,
            max_load: MAX_LOAD,
            shards: SHARDS,
            pages: Pages::default(),
            hasher: DefaultHashBuilder::new(),
            types: PhantomData,
        }
    }
}

impl<K: Plain, V: Plain, S> CopyMapBuilder<K, V, S> {
    /// Room for this many entries before the first growth. 0, the default, allocates nothing until
    /// the first insert.
    pub fn capacity(mut self, entries: usize) -> Self {
        self.capacity = entries;
        self
    }

    /// The share of the lanes that may be used before the map moves to another table: 0.4 to 0.85,
    /// by default 0.75. Values outside are brought to the nearest end. Less means faster lookups,
    /// more means less memory.
    pub fn max_load(mut self, share: f64) -> Self {
        self.max_load = if share.is_nan() { MAX_LOAD } else { share.clamp(0.4, 0.85) };
        self
    }

    /// How many locks the writers share: brought to a power of two from 1 to 4096, by default 32.
    /// Four times the number of threads that write is plenty.
    pub fn shards(mut self, count: usize) -> Self {
        self.shards = count;
        self
    }

    /// Which pages tables of 2 MiB and more lie in.
    pub fn pages(mut self, pages: Pages) -> Self {
        self.pages = pages;
        self
    }

    /// Another hasher. One without a random key lets those who choose the keys make them collide.
    pub fn hasher<H>(self, hasher: H) -> CopyMapBuilder<K, V, H> {
        let Self { capacity, max_load, shards, pages, types, .. } = self;
        CopyMapBuilder { capacity, max_load, shards, pages, hasher, types }
    }

    /// The usual hasher with a fixed seed, so that runs repeat.
    pub fn seed(self, seed: u64) -> CopyMapBuilder<K, V, foldhash::fast::FixedState> {
        self.hasher(foldhash::fast::FixedState::with_seed(seed))
    }

    /// Builds the map.
    ///
    /// # Panics
    /// If the memory for the capacity cannot be had; [`try_build`](Self::try_build) returns an
    /// error instead.
    pub fn build(self) -> CopyMap<K, V, S>
    where
        K: Hash + Eq,
        S: BuildHasher,
    {
        self.try_build().unwrap_or_else(|error| panic!("CopyMap: {error}"))
    }

    /// Builds the map, or says why its memory cannot be had.
    ///
    /// # Errors
    /// If the memory for the capacity cannot be had.
    pub fn try_build(self) -> Result<CopyMap<K, V, S>, AllocError>
    where
        K: Hash + Eq,
        S: BuildHasher,
    {
        let shards = self.shards.clamp(1, 4096).next_power_of_two();
        let mut settings = Settings {
            max_load: self.max_load,
            shard_bits: shards.trailing_zeros(),
            pages: self.pages,
            per_bucket: self.max_load * Shape::<K, V>::LANES as f64,
            ..Settings::usual::<K, V>()
        };
        settings.first_bits = settings.bits_for(self.capacity);
        CopyMap::with_settings(settings, self.hasher, self.capacity > 0)
    }
}
