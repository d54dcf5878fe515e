//! dashmap, with its `inline` feature.

use super::{Access, Map};
use crate::{Hasher, Kind, Label};

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
