//! moka's synchronous cache.

use super::Cache;
use crate::{Hasher, Kind, Label};

/// `moka::sync::Cache`.
#[derive(Debug)]
pub struct Moka<T: Kind>(moka::sync::Cache<T::Key, T::Value, Hasher>);

impl<T: Kind> Cache<T> for Moka<T> {
    const LABEL: Label = Label::new("moka", "0.12.16");

    fn with_capacity(capacity: usize) -> Self {
        let builder = moka::sync::Cache::builder().max_capacity(capacity as u64);
        Self(builder.initial_capacity(capacity).build_with_hasher(Hasher::default()))
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
        self.0.invalidate(query);
    }
    fn settle(&self) {
        self.0.run_pending_tasks();
    }
}
