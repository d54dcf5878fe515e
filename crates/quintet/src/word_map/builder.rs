//! How a map is set up.

use super::table::load;
use super::word::Shape;
use super::{Invariant, Word, WordMap};
use crate::hash;
use crate::migrate::{capacity_for, least_quota};
use crate::region::{AllocError, Pages};
use crate::sync::MODEL;
use std::fmt;
use std::marker::PhantomData;

const MAX_LOAD: f64 = 0.7;
const QUOTA: usize = if MODEL { 2 } else { 128 };

/// What all tables of a map have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) max_load: f64,
    /// Slots that each operation moves while the map is migrating.
    pub(crate) quota: usize,
    pub(crate) pages: Pages,
    /// The seed that was asked for; else every table that needs a new one draws it.
    pub(crate) seed: Option<u64>,
    /// log2 of the size of the first table.
    pub(crate) first_bits: u32,
}

impl Settings {
    /// Those of a map that nobody has set up.
    pub(super) const DEFAULT: Self = Self {
        max_load: MAX_LOAD,
        quota: QUOTA,
        pages: Pages::Huge,
        seed: None,
        first_bits: Shape::MIN_BITS,
    };

    /// The seed of the first table.
    pub(super) fn first_seed(&self) -> u64 {
        self.seed.unwrap_or_else(hash::random_seed)
    }

    /// The seed after `seed`.
    pub(crate) fn next_seed(&self, seed: u64) -> u64 {
        if self.seed.is_some() { seed.wrapping_add(1) } else { hash::random_seed() }
    }
}

/// Sets up a [`WordMap`].
///
/// ```
/// use quintet::WordMap;
///
/// let map = WordMap::builder().capacity(10_000).max_load(0.65).build();
/// map.insert(7u32, 49u64);
/// assert_eq!(map.get(7), Some(49));
/// ```
#[derive(Clone, Copy)]
#[must_use = "a builder does nothing until `build`"]
pub struct WordMapBuilder<K, V> {
    capacity: usize,
    max_load: f64,
    quota: usize,
    pages: Pages,
    seed: Option<u64>,
    types: Invariant<(K, V)>,
}

impl<K, V> fmt::Debug for WordMapBuilder<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WordMapBuilder")
            .field("capacity", &self.capacity)
            .field("max_load", &self.max_load)
            .field("m", &self.quota)
            .field("pages", &self.pages)
            .field("seed", &self.seed)
            .finish()
    }
}

impl<K: Word, V: Word> Default for WordMapBuilder<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> WordMapBuilder<K, V> {
    pub(super) fn new() -> Self {
        Self {
            capacity: 0,
            max_load: MAX_LOAD,
            quota: QUOTA,
            pages: Pages::default(),
            seed: None,
            types: PhantomData,
        }
    }

    /// Room for this many entries before the first growth. 0, the default, allocates nothing until
    /// the first insert.
    pub fn capacity(mut self, entries: usize) -> Self {
        self.capacity = entries;
        self
    }

    /// The share of a table that may be in use before the map moves to another: 0.5 to 0.8, by
    /// default 0.7. Values outside are brought to the nearest end. Less means faster misses, more
    /// means less memory. Tables of up to half a megabyte are filled by half of that.
    pub fn max_load(mut self, share: f64) -> Self {
        self.max_load = if share.is_nan() { MAX_LOAD } else { share.clamp(0.5, 0.8) };
        self
    }

    /// The number M of slots that each operation moves while the map is migrating, by default 128.
    /// More ends migrations sooner, less makes the single operation shorter. Raised to
    /// [`least_m`](Self::least_m) if it is smaller, so that a new table cannot fill up before the
    /// old one is empty.
    pub fn m(mut self, slots: usize) -> Self {
        self.quota = slots.min(1 << 20);
        self
    }

    /// The least M for the load chosen so far. The proof is in the chapter on the proof of M of the
    /// map's page.
    pub fn least_m(&self) -> usize {
        least_quota(self.max_load)
    }

    /// Which pages tables of 2 MiB and more lie in.
    pub fn pages(mut self, pages: Pages) -> Self {
        self.pages = pages;
        self
    }

    /// A fixed seed for the hash, so that runs repeat. By default it is random, which is what
    /// protects the map against keys that were chosen to collide.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Builds the map.
    ///
    /// # Panics
    /// If the memory for the capacity cannot be had; [`try_build`](Self::try_build) returns an
    /// error instead.
    pub fn build(self) -> WordMap<K, V> {
        self.try_build().unwrap_or_else(|error| panic!("WordMap: {error}"))
    }

    /// [`build`](Self::build) that returns an error.
    ///
    /// # Errors
    /// If the memory for the capacity cannot be had.
    pub fn try_build(self) -> Result<WordMap<K, V>, AllocError> {
        let quota = if MODEL { self.quota } else { self.quota.max(self.least_m()) };
        let share = |bits| load(bits, self.max_load);
        let first_bits = capacity_for(self.capacity, share).max(Shape::MIN_BITS);
        let settings = Settings {
            max_load: self.max_load,
            quota: quota.max(1),
            pages: self.pages,
            seed: self.seed,
            first_bits,
        };
        WordMap::with_settings(settings, self.capacity > 0)
    }
}
