//! leapfrog's `LeapMap`, with its `stable_alloc` feature. Numbers only: its values need atomics
//! and two reserved values.
//!
//! Not exact: when two threads insert and remove the same keys, the inserts that said "new" minus
//! the removes that said "was there" differ from what is present at the end, with one thread never.
//!
//! Not lasting: a sliding window of 10,000 keys, moved on by one thread, ends in an endless loop
//! inside `insert` (helping a migration that never finishes); with debug assertions it panics.

use super::{Access, Map};
use crate::{Hasher, Label, Words};

/// `leapfrog::LeapMap`.
pub struct Leapfrog(leapfrog::LeapMap<u64, u64, Hasher>);

impl std::fmt::Debug for Leapfrog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leapfrog").finish_non_exhaustive()
    }
}

impl Map<Words> for Leapfrog {
    const LABEL: Label = Label::new("leapfrog", "0.3.3");
    const EXACT: bool = false;
    const LASTING: bool = false;
    type Access<'a> = &'a Self;

    fn with_capacity(capacity: usize) -> Self {
        Self(leapfrog::LeapMap::with_capacity_and_hasher(capacity, Hasher::default()))
    }
    fn access(&self) -> &Self {
        self
    }
}

impl Access<Words> for &Leapfrog {
    #[inline(always)]
    fn get<R>(&mut self, query: &u64, f: impl FnOnce(&u64) -> R) -> Option<R> {
        self.0.get(query)?.value().map(|value| f(&value))
    }
    #[inline(always)]
    fn insert(&mut self, key: u64, value: u64) -> bool {
        self.0.insert(key, value).is_none()
    }
    #[inline(always)]
    fn update(&mut self, query: &u64, value: u64) -> bool {
        self.0.update(query, value).is_some()
    }
    #[inline(always)]
    fn remove(&mut self, query: &u64) -> bool {
        self.0.remove(query).is_some()
    }
}
