//! scc's two hash maps: `HashMap` (locks a bucket) and `HashIndex` (reads without a lock).

use super::{Access, Map, Precise};
use crate::{Hasher, Kind, Label, Words};
use scc::hash_index::Entry;

const VERSION: &str = "3.8.8";

/// `scc::HashMap`.
#[derive(Debug)]
pub struct SccMap<T: Kind>(scc::HashMap<T::Key, T::Value, Hasher>);

impl<T: Kind> Map<T> for SccMap<T> {
    const LABEL: Label = Label::new("scc", VERSION);
    type Access<'a> = &'a Self;

    fn with_capacity(capacity: usize) -> Self {
        Self(scc::HashMap::with_capacity_and_hasher(capacity, Hasher::default()))
    }
    fn access(&self) -> &Self {
        self
    }
}

impl<T: Kind> Access<T> for &SccMap<T> {
    #[inline(always)]
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
        self.0.read_sync(query, |_, value| f(value))
    }
    #[inline(always)]
    fn insert(&mut self, key: T::Key, value: T::Value) -> bool {
        self.0.upsert_sync(key, value).is_none()
    }
    #[inline(always)]
    fn update(&mut self, query: &T::Query, value: T::Value) -> bool {
        self.0.update_sync(query, |_, slot| *slot = value).is_some()
    }
    #[inline(always)]
    fn remove(&mut self, query: &T::Query) -> bool {
        self.0.remove_sync(query).is_some()
    }
}

/// `scc::HashIndex`, read by `peek_with`.
#[derive(Debug)]
pub struct SccIndex<T: Kind>(scc::HashIndex<T::Key, T::Value, Hasher>);

impl<T: Kind> Map<T> for SccIndex<T> {
    const LABEL: Label = Label::new("scc (index)", VERSION);
    type Access<'a> = &'a Self;

    fn with_capacity(capacity: usize) -> Self {
        Self(scc::HashIndex::with_capacity_and_hasher(capacity, Hasher::default()))
    }
    fn access(&self) -> &Self {
        self
    }
}

impl<T: Kind> Access<T> for &SccIndex<T> {
    #[inline(always)]
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
        self.0.peek_with(query, |_, value| f(value))
    }
    #[inline(always)]
    fn insert(&mut self, key: T::Key, value: T::Value) -> bool {
        match self.0.entry_sync(key) {
            Entry::Occupied(mut entry) => {
                entry.update(value);
                false
            }
            Entry::Vacant(entry) => {
                entry.insert_entry(value);
                true
            }
        }
    }
    #[inline(always)]
    fn update(&mut self, query: &T::Query, value: T::Value) -> bool {
        self.0.get_sync(query).map(|mut entry| entry.update(value)).is_some()
    }
    #[inline(always)]
    fn remove(&mut self, query: &T::Query) -> bool {
        self.0.remove_sync(query)
    }
}

impl Precise for SccMap<Words> {
    fn exchange(&self, key: u64, value: u64) -> Option<u64> {
        self.0.upsert_sync(key, value)
    }
    fn insert_new(&self, key: u64, value: u64) -> bool {
        self.0.insert_sync(key, value).is_ok()
    }
    fn take(&self, key: u64) -> Option<u64> {
        self.0.remove_sync(&key).map(|(_, value)| value)
    }
    fn fetch_add(&self, key: u64, n: u64) -> Option<u64> {
        use scc::hash_map::Entry;
        match self.0.entry_sync(key) {
            Entry::Occupied(mut entry) => {
                let old = *entry.get();
                *entry.get_mut() = old.wrapping_add(n);
                Some(old)
            }
            Entry::Vacant(entry) => {
                entry.insert_entry(n);
                None
            }
        }
    }
}
