//! papaya, pinned per operation, and pinned once per batch as its documentation advises.

use super::{Access, Map, Precise};
use crate::{Hasher, Kind, Label, Words};
use papaya::{Compute, HashMap, HashMapRef, LocalGuard, Operation};

const VERSION: &str = "0.2.5";

/// `papaya::HashMap` with a pin per operation.
#[derive(Debug)]
pub struct Papaya<T: Kind>(HashMap<T::Key, T::Value, Hasher>);

impl<T: Kind> Map<T> for Papaya<T> {
    const LABEL: Label = Label::new("papaya", VERSION);
    type Access<'a> = &'a Self;

    fn with_capacity(capacity: usize) -> Self {
        Self(HashMap::with_capacity_and_hasher(capacity, Hasher::default()))
    }
    fn access(&self) -> &Self {
        self
    }
}

impl<T: Kind> Access<T> for &Papaya<T> {
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

/// `papaya::HashMap` with a pin per batch.
#[derive(Debug)]
pub struct PapayaBatch<T: Kind>(HashMap<T::Key, T::Value, Hasher>);

/// A pin that lives for a batch. It is absent only inside [`Access::quiet`]: a second pin taken
/// before the first has ended would nest in it and never let go.
pub struct Pinned<'a, T: Kind> {
    map: &'a HashMap<T::Key, T::Value, Hasher>,
    pin: Option<HashMapRef<'a, T::Key, T::Value, Hasher, LocalGuard<'a>>>,
}

impl<T: Kind> Map<T> for PapayaBatch<T> {
    const LABEL: Label = Label::new("papaya (batch)", VERSION);
    type Access<'a> = Pinned<'a, T>;

    fn with_capacity(capacity: usize) -> Self {
        Self(HashMap::with_capacity_and_hasher(capacity, Hasher::default()))
    }
    fn access(&self) -> Pinned<'_, T> {
        Pinned { map: &self.0, pin: Some(self.0.pin()) }
    }
}

impl<'a, T: Kind> Pinned<'a, T> {
    #[inline(always)]
    fn pin(&self) -> &HashMapRef<'a, T::Key, T::Value, Hasher, LocalGuard<'a>> {
        self.pin.as_ref().expect("pinned between quiet points")
    }
}

impl<T: Kind> Access<T> for Pinned<'_, T> {
    #[inline(always)]
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
        self.pin().get(query).map(f)
    }
    #[inline(always)]
    fn insert(&mut self, key: T::Key, value: T::Value) -> bool {
        self.pin().insert(key, value).is_none()
    }
    #[inline(always)]
    fn update(&mut self, query: &T::Query, value: T::Value) -> bool {
        self.pin().insert(T::own(query), value).is_some()
    }
    #[inline(always)]
    fn remove(&mut self, query: &T::Query) -> bool {
        self.pin().remove(query).is_some()
    }
    #[inline(always)]
    fn quiet(&mut self) {
        self.pin = None;
        self.pin = Some(self.map.pin());
    }
}

impl Precise for Papaya<Words> {
    fn exchange(&self, key: u64, value: u64) -> Option<u64> {
        self.0.pin().insert(key, value).copied()
    }
    fn insert_new(&self, key: u64, value: u64) -> bool {
        self.0.pin().try_insert(key, value).is_ok()
    }
    fn take(&self, key: u64) -> Option<u64> {
        self.0.pin().remove(&key).copied()
    }
    fn fetch_add(&self, key: u64, n: u64) -> Option<u64> {
        let add = |entry: Option<(&u64, &u64)>| -> Operation<u64, ()> {
            Operation::Insert(entry.map_or(n, |(_, old)| old.wrapping_add(n)))
        };
        match self.0.pin().compute(key, add) {
            Compute::Updated { old: (_, old), .. } => Some(*old),
            _ => None,
        }
    }
}
