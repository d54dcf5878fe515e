//! One lock around a single-threaded map.

use super::{Access, Map};
use crate::{Hasher, Kind, Label};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

/// `Mutex<std::collections::HashMap>`.
#[derive(Debug)]
pub struct Mutexed<T: Kind>(Mutex<std::collections::HashMap<T::Key, T::Value, Hasher>>);

impl<T: Kind> Mutexed<T> {
    #[inline(always)]
    fn lock(&self) -> MutexGuard<'_, std::collections::HashMap<T::Key, T::Value, Hasher>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Kind> Map<T> for Mutexed<T> {
    const LABEL: Label = Label { name: "std (mutex)", version: None };
    type Access<'a> = &'a Self;

    fn with_capacity(capacity: usize) -> Self {
        let hasher = Hasher::default();
        Self(Mutex::new(std::collections::HashMap::with_capacity_and_hasher(capacity, hasher)))
    }
    fn access(&self) -> &Self {
        self
    }
}

impl<T: Kind> Access<T> for &Mutexed<T> {
    #[inline(always)]
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
        self.lock().get(query).map(f)
    }
    #[inline(always)]
    fn insert(&mut self, key: T::Key, value: T::Value) -> bool {
        self.lock().insert(key, value).is_none()
    }
    #[inline(always)]
    fn update(&mut self, query: &T::Query, value: T::Value) -> bool {
        self.lock().get_mut(query).map(|slot| *slot = value).is_some()
    }
    #[inline(always)]
    fn remove(&mut self, query: &T::Query) -> bool {
        self.lock().remove(query).is_some()
    }
}

/// `RwLock<hashbrown::HashMap>`.
#[derive(Debug)]
pub struct RwLocked<T: Kind>(RwLock<hashbrown::HashMap<T::Key, T::Value, Hasher>>);

impl<T: Kind> Map<T> for RwLocked<T> {
    const LABEL: Label = Label::new("hashbrown (rwlock)", "0.17.1");
    type Access<'a> = &'a Self;

    fn with_capacity(capacity: usize) -> Self {
        let hasher = Hasher::default();
        Self(RwLock::new(hashbrown::HashMap::with_capacity_and_hasher(capacity, hasher)))
    }
    fn access(&self) -> &Self {
        self
    }
}

impl<T: Kind> Access<T> for &RwLocked<T> {
    #[inline(always)]
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(query).map(f)
    }
    #[inline(always)]
    fn insert(&mut self, key: T::Key, value: T::Value) -> bool {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(key, value).is_none()
    }
    #[inline(always)]
    fn update(&mut self, query: &T::Query, value: T::Value) -> bool {
        let mut map = self.0.write().unwrap_or_else(PoisonError::into_inner);
        map.get_mut(query).map(|slot| *slot = value).is_some()
    }
    #[inline(always)]
    fn remove(&mut self, query: &T::Query) -> bool {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(query).is_some()
    }
}
