//! dashmap, with its `inline` feature.

use super::{Access, Map, Precise};
use crate::{Hasher, Kind, Label, Words};
use dashmap::Entry;

/// `dashmap::DashMap`.
#[derive(Debug)]
pub struct Dashmap<T: Kind>(dashmap::DashMap<T::Key, T::Value, Hasher>);

impl<T: Kind> Map<T> for Dashmap<T> {
    const LABEL: Label = Label::new("dashmap", "6.2.1");
    type Access<'a> = &'a Self;

    fn with_capacity(capacity: usize) -> Self {
        Self(dashmap::DashMap::with_capacity_and_hasher(capacity, Hasher::default()))
    }
    fn access(&self) -> &Self {
        self
    }
}

impl<T: Kind> Access<T> for &Dashmap<T> {
    #[inline(always)]
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
        self.0.get(query).map(|entry| f(entry.value()))
    }
    #[inline(always)]
    fn insert(&mut self, key: T::Key, value: T::Value) -> bool {
        self.0.insert(key, value).is_none()
    }
    #[inline(always)]
    fn update(&mut self, query: &T::Query, value: T::Value) -> bool {
        self.0.get_mut(query).map(|mut entry| *entry.value_mut() = value).is_some()
    }
    #[inline(always)]
    fn remove(&mut self, query: &T::Query) -> bool {
        self.0.remove(query).is_some()
    }
}

impl Precise for Dashmap<Words> {
    fn exchange(&self, key: u64, value: u64) -> Option<u64> {
        self.0.insert(key, value)
    }
    fn insert_new(&self, key: u64, value: u64) -> bool {
        match self.0.entry(key) {
            Entry::Occupied(_) => false,
            Entry::Vacant(entry) => {
                entry.insert(value);
                true
            }
        }
    }
    fn take(&self, key: u64) -> Option<u64> {
        self.0.remove(&key).map(|(_, value)| value)
    }
    fn fetch_add(&self, key: u64, n: u64) -> Option<u64> {
        match self.0.entry(key) {
            Entry::Occupied(mut entry) => {
                let old = *entry.get();
                entry.insert(old.wrapping_add(n));
                Some(old)
            }
            Entry::Vacant(entry) => {
                entry.insert(n);
                None
            }
        }
    }
}
