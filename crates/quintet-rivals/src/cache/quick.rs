//! quick_cache's synchronous cache.

use super::Cache;
use crate::{Hasher, Kind, Label};
use quick_cache::UnitWeighter;
use quick_cache::sync::DefaultLifecycle;

/// `quick_cache::sync::Cache`.
pub struct QuickCache<T: Kind>(quick_cache::sync::Cache<T::Key, T::Value, UnitWeighter, Hasher>);

impl<T: Kind> Cache<T> for QuickCache<T> {
    const LABEL: Label = Label::new("quick_cache", "0.7.0");

    fn with_capacity(capacity: usize) -> Self {
        Self(quick_cache::sync::Cache::with(
            capacity,
            capacity as u64,
            UnitWeighter,
            Hasher::default(),
            DefaultLifecycle::default(),
        ))
    }
    #[inline(always)]
    fn get<R>(&self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
        self.0.get(query).map(|value| f(&value))
    }
    #[inline(always)]
    fn insert(&self, key: T::Key, value: T::Value) {
        self.0.insert(key, value);
    }
    #[inline(always)]
    fn remove(&self, query: &T::Query) {
        self.0.remove(query);
    }
}
