//! How a set is set up.

use super::ItemSet;
use super::item::Pointer;
use super::plan::Plan;
use crate::hasher::DefaultHashBuilder;
use crate::migrate::capacity_for;
use crate::region::{AllocError, Pages};
use crate::sync::MODEL;
use crate::sync::six::{LANE_BITS, LANES};
use std::hash::BuildHasher;
use std::marker::PhantomData;

/// What all tables of a set have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) load_factor: f64,
    pub(crate) shard_bits: u32,
    pub(crate) pages: Pages,
    /// Places that each write moves while the set is migrating.
    pub(crate) quota: usize,
    /// log2 of the places of the first table.
    pub(crate) first_bits: u32,
    /// The first table keeps the order of insertion.
    pub(crate) ordered: bool,
    /// Tables may be small: have one shard for all, and be left at once (`grow` G10).
    pub(crate) small: bool,
}

impl Settings {
    /// Those of a set that nobody has set up.
    pub(super) const DEFAULT: Self = Self {
        load_factor: LOAD_FACTOR,
        shard_bits: SHARDS.trailing_zeros(),
        pages: Pages::Huge,
        quota: QUOTA,
        first_bits: 0,
        ordered: false,
        small: SMALL,
    };

    /// The share of the numbers of places that may be dealt out: some stand for no place.
    pub(crate) fn share(&self) -> f64 {
        self.load_factor * (LANES as f64 / f64::from(1u32 << LANE_BITS))
    }

    /// A table of `2^bits` places, or of the least number.
    pub(crate) fn plan(&self, bits: u32, birth: u64, ordered: bool) -> Plan {
        let bits = bits.max(self.min_bits());
        let small = bits < self.full_bits();
        Plan {
            bits,
            shard_bits: if small { 0 } else { self.shard_bits },
            small,
            load_factor: self.load_factor,
            pages: self.pages,
            birth,
            ordered,
        }
    }

    /// log2 of the places of a table into which so many items go before the next one is prepared.
    pub(crate) fn bits_for(&self, items: usize) -> u32 {
        let bits = capacity_for(items, |_| self.share());
        let is_enough = bits > Plan::MAX_BITS || self.plan(bits, 0, false).room() >= items;
        bits + u32::from(!is_enough)
    }

    /// log2 of the places of the smallest table.
    pub(crate) fn min_bits(&self) -> u32 {
        if self.small { LANE_BITS } else { self.full_bits() }
    }

    /// log2 of the places of the smallest table that is not small: at least one line for each
    /// shard.
    pub(crate) fn full_bits(&self) -> u32 {
        (self.shard_bits + LANE_BITS).max(if MODEL { 1 } else { 6 })
    }
}

/// Sets up an [`ItemSet`].
///
/// ```
/// use quintet::ItemSet;
///
/// let set = ItemSet::<Box<String>>::builder().capacity(10_000).shards(64).build();
/// set.insert("apple".to_string());
/// assert!(set.contains("apple"));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct ItemSetBuilder<P, S = DefaultHashBuilder> {
    items: PhantomData<fn() -> P>,
    capacity: usize,
    load_factor: f64,
    shards: usize,
    pages: Pages,
    ordered: bool,
    hasher: S,
}

impl<P> Default for ItemSetBuilder<P> {
    fn default() -> Self {
        Self {
            items: PhantomData,
            capacity: 0,
            load_factor: LOAD_FACTOR,
            shards: SHARDS,
            pages: Pages::default(),
            ordered: false,
            hasher: DefaultHashBuilder::default(),
        }
    }
}

const LOAD_FACTOR: f64 = 0.7;
const SHARDS: usize = 32;
/// Models and scenarios say so themselves.
const SMALL: bool = !MODEL;
/// Places that each write moves while the set is migrating.
const QUOTA: usize = if MODEL { 4 } else { 42 };

impl<P: Pointer, S> ItemSetBuilder<P, S> {
    /// Room for this many items before the first growth. 0, the default, allocates nothing until
    /// the first insert.
    pub fn capacity(mut self, items: usize) -> Self {
        self.capacity = items;
        self
    }

    /// The share of the places that are dealt out before the table is left: 0.5 to 0.8, by default
    /// 0.7. Values outside are brought to the nearest end. Less means faster misses, more means
    /// less memory.
    #[doc(alias = "load_factor")]
    pub fn max_load(mut self, ratio: f64) -> Self {
        self.load_factor = if ratio.is_nan() { LOAD_FACTOR } else { ratio.clamp(0.5, 0.8) };
        self
    }

    /// How many locks the writers share: brought to a power of two from 1 to 4096, by default 32.
    /// Four times the number of threads that write is plenty.
    pub fn shards(mut self, count: usize) -> Self {
        self.shards = count;
        self
    }

    /// Which pages arrays of 2 MiB and more lie in.
    pub fn pages(mut self, pages: Pages) -> Self {
        self.pages = pages;
        self
    }

    /// Whether [iteration](super::ItemSet::iter) follows the order of first insertion, until the
    /// set is first rebuilt: that is, until it grows beyond its [`capacity`](Self::capacity),
    /// shrinks or is compacted. By default it does not, since all inserts have to agree on the
    /// order, by one counter: threads that insert at the same time take it from each other.
    ///
    /// ```
    /// # use quintet::ItemSet;
    /// let set = ItemSet::<Box<String>>::builder().capacity(100).ordered(true).build();
    /// for word in ["one", "two", "three"] {
    ///     set.insert(word.to_string());
    /// }
    /// let words: Vec<_> = set.iter().map(|word| word.clone()).collect();
    /// assert_eq!(words, ["one", "two", "three"]);
    /// ```
    pub fn ordered(mut self, ordered: bool) -> Self {
        self.ordered = ordered;
        self
    }

    /// Another hasher. One without a random key lets those who choose the keys make them collide.
    pub fn hasher<H>(self, hasher: H) -> ItemSetBuilder<P, H> {
        let Self { capacity, load_factor, shards, pages, ordered, .. } = self;
        let items = PhantomData;
        ItemSetBuilder { items, capacity, load_factor, shards, pages, ordered, hasher }
    }

    /// The usual hasher with a fixed seed, so that runs repeat.
    pub fn seed(self, seed: u64) -> ItemSetBuilder<P, foldhash::fast::FixedState> {
        self.hasher(foldhash::fast::FixedState::with_seed(seed))
    }

    /// Builds the set.
    ///
    /// # Panics
    /// If the memory for the capacity cannot be had; [`try_build`](Self::try_build) returns an
    /// error instead.
    pub fn build(self) -> ItemSet<P, S>
    where
        S: BuildHasher,
    {
        self.try_build().unwrap_or_else(|error| panic!("ItemSet: {error}"))
    }

    /// Builds the set, or says why its memory cannot be had.
    pub fn try_build(self) -> Result<ItemSet<P, S>, AllocError>
    where
        S: BuildHasher,
    {
        let shards = self.shards.clamp(1, 4096).next_power_of_two();
        let mut settings = Settings {
            load_factor: self.load_factor,
            shard_bits: shards.trailing_zeros(),
            pages: self.pages,
            quota: QUOTA,
            first_bits: 0,
            ordered: self.ordered,
            // Leaving a small table would end the order.
            small: SMALL && !self.ordered,
        };
        settings.first_bits = settings.bits_for(self.capacity);
        if settings.first_bits > Plan::MAX_BITS {
            return Err(AllocError::CapacityOverflow);
        }
        ItemSet::with_settings(settings, self.hasher, self.capacity > 0)
    }
}
