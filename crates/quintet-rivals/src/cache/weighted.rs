//! Caches whose entries have weights, used by one thread: how well they choose who leaves, not how
//! fast they are. Hashes are the same in every run, so that runs repeat.

use crate::Label;
use foldhash::fast::FixedState;
use quick_cache::Weighter;
use quick_cache::unsync::DefaultLifecycle;

/// A cache of numbers with weights.
pub trait Weighted: Sized {
    /// Name and version.
    const LABEL: Label;

    /// Room for so much weight, which should be about so many entries.
    fn new(weight: u64, entries: usize) -> Self;
    /// Uses a key; false if it is absent.
    fn get(&mut self, key: u64) -> bool;
    /// Stores an absent key.
    fn insert(&mut self, key: u64, weight: u32);
}

/// moka, which is given the time to do what it has put off after every few accesses.
#[derive(Debug)]
pub struct WeightedMoka {
    cache: moka::sync::Cache<u64, u32, FixedState>,
    since: u32,
}

/// moka keeps so many accesses in mind without loss, and more.
const PUT_OFF: u32 = 32;

impl WeightedMoka {
    fn settle(&mut self) {
        self.since += 1;
        if self.since == PUT_OFF {
            self.since = 0;
            self.cache.run_pending_tasks();
        }
    }
}

impl Weighted for WeightedMoka {
    const LABEL: Label = Label::new("moka", "0.12.16");

    fn new(weight: u64, entries: usize) -> Self {
        let builder = moka::sync::Cache::builder().max_capacity(weight).initial_capacity(entries);
        let builder = builder.weigher(|_, weight| *weight);
        Self { cache: builder.build_with_hasher(FixedState::default()), since: 0 }
    }

    fn get(&mut self, key: u64) -> bool {
        self.settle();
        self.cache.get(&key).is_some()
    }

    fn insert(&mut self, key: u64, weight: u32) {
        self.cache.insert(key, weight);
    }
}

/// The weight is the value.
#[derive(Clone, Copy, Debug)]
pub struct ByValue;

impl Weighter<u64, u32> for ByValue {
    fn weight(&self, _: &u64, value: &u32) -> u64 {
        u64::from(*value)
    }
}

/// quick_cache for one thread, all of it in one shard.
pub struct WeightedQuick(quick_cache::unsync::Cache<u64, u32, ByValue, FixedState>);

impl std::fmt::Debug for WeightedQuick {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("WeightedQuick").field("entries", &self.0.len()).finish()
    }
}

impl Weighted for WeightedQuick {
    const LABEL: Label = Label::new("quick_cache", "0.7.0");

    fn new(weight: u64, entries: usize) -> Self {
        let (hasher, life) = (FixedState::default(), DefaultLifecycle::default());
        Self(quick_cache::unsync::Cache::with(entries, weight, ByValue, hasher, life))
    }

    fn get(&mut self, key: u64) -> bool {
        self.0.get(&key).is_some()
    }

    fn insert(&mut self, key: u64, weight: u32) {
        self.0.insert(key, weight);
    }
}
