//! How a map is set up.

use super::HashMap;
use super::pair::{Key, Pair, Value};
use crate::hasher::DefaultHashBuilder;
use crate::item_set::ItemSetBuilder;
use crate::region::{AllocError, Pages};
use std::hash::BuildHasher;

/// Sets up a [`HashMap`].
///
/// ```
/// let map = quintet::HashMap::builder().capacity(10_000).shards(64).build();
/// map.insert("apple", 1);
/// assert!(map.contains_key("apple"));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct HashMapBuilder<K, V, S = DefaultHashBuilder>(ItemSetBuilder<Box<Pair<K, V>>, S>);

impl<K, V> Default for HashMapBuilder<K, V> {
    fn default() -> Self {
        Self(ItemSetBuilder::default())
    }
}

impl<K: Key, V: Value, S> HashMapBuilder<K, V, S> {
    /// Room for this many entries before the first growth. 0, the default, allocates nothing until
    /// the first insert.
    pub fn capacity(self, entries: usize) -> Self {
        Self(self.0.capacity(entries))
    }

    /// The share of the places that are dealt out before the table is left: 0.5 to 0.8, by default
    /// 0.7. Values outside are brought to the nearest end. Less means faster misses, more means
    /// less memory.
    #[doc(alias = "load_factor")]
    pub fn max_load(self, ratio: f64) -> Self {
        Self(self.0.max_load(ratio))
    }

    /// How many locks the writers share: brought to a power of two from 1 to 4096, by default 32.
    /// Four times the number of threads that write is plenty.
    pub fn shards(self, count: usize) -> Self {
        Self(self.0.shards(count))
    }

    /// Which pages arrays of 2 MiB and more lie in.
    pub fn pages(self, pages: Pages) -> Self {
        Self(self.0.pages(pages))
    }

    /// Another hasher. One without a random key lets those who choose the keys make them collide.
    pub fn hasher<H>(self, hasher: H) -> HashMapBuilder<K, V, H> {
        HashMapBuilder(self.0.hasher(hasher))
    }

    /// The usual hasher with a fixed seed, so that runs repeat.
    pub fn seed(self, seed: u64) -> HashMapBuilder<K, V, foldhash::fast::FixedState> {
        HashMapBuilder(self.0.seed(seed))
    }

    /// Builds the map.
    ///
    /// # Panics
    /// If the memory for the capacity cannot be had; [`try_build`](Self::try_build) returns an
    /// error instead.
    pub fn build(self) -> HashMap<K, V, S>
    where
        S: BuildHasher,
    {
        self.try_build().unwrap_or_else(|error| panic!("HashMap: {error}"))
    }

    /// Builds the map, or says why its memory cannot be had.
    pub fn try_build(self) -> Result<HashMap<K, V, S>, AllocError>
    where
        S: BuildHasher,
    {
        self.0.try_build().map(HashMap::over)
    }
}
