//! flurry, pinned per operation.

use super::{Access, Map};
use crate::{Hasher, Kind, Label};

/// `flurry::HashMap`.
#[derive(Debug)]
pub struct Flurry<T: Kind>(flurry::HashMap<T::Key, T::Value, Hasher>);

impl<T: Kind> Map<T> for Flurry<T> {
    const LABEL: Label = Label::new("flurry", "0.5.2");
    type Access<'a> = &'a Self;

    fn with_capacity(capacity: usize) -> Self {
        let hasher = Hasher::default();
        Self(match capacity {
            0 => flurry::HashMap::with_hasher(hasher),
            _ => flurry::HashMap::with_capacity_and_hasher(capacity, hasher),
        })
    }
    fn access(&self) -> &Self {
        self
    }
}

impl<T: Kind> Access<T> for &Flurry<T> {
    #[inline(always)]
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
        self.0.pin().get(query).map(f)
    }
    #[inline(always)]
    fn insert(&mut self, key: T::Key, value: T::Value) -> bool {
        self.0.pin().insert(key, value).is_none()
    }
    #[inline(always)]
    fn update(&mut self, query: &T::Query, value: T::Value) -> bool {
        self.0.pin().insert(T::own(query), value).is_some()
    }
    #[inline(always)]
    fn remove(&mut self, query: &T::Query) -> bool {
        self.0.pin().remove(query).is_some()
    }
}
