//! Our tables where values are overwritten in place: what threads change together is an atomic, or
//! lies behind a lock of its own. The table keeps its entry, and nothing is retired.

use quintet::item_set::{self, Keyed};
use quintet::{HashMap, ItemSet, hash_map};
use quintet_rivals::general::{Access, Map};
use quintet_rivals::{Hasher, Kind, Label, Texts, Words};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The row's name.
pub(crate) const LABEL: Label = Label::new("quintet (in place)", env!("CARGO_PKG_VERSION"));

/// What holds a value that threads change together.
pub(crate) trait Place<V>: Send + Sync + 'static {
    /// A place with its first value.
    fn of(value: V) -> Self;
    /// Calls `f` with the value.
    fn look<R>(&self, f: impl FnOnce(&V) -> R) -> R;
    /// Overwrites the value.
    fn overwrite(&self, value: V);
}

impl Place<u64> for AtomicU64 {
    fn of(value: u64) -> Self {
        Self::new(value)
    }
    #[inline(always)]
    fn look<R>(&self, f: impl FnOnce(&u64) -> R) -> R {
        f(&self.load(Ordering::Acquire))
    }
    /// By an exchange: when it returns, the value is no longer in a store buffer.
    #[inline(always)]
    fn overwrite(&self, value: u64) {
        self.swap(value, Ordering::AcqRel);
    }
}

impl<V: Send + 'static> Place<V> for Mutex<V> {
    fn of(value: V) -> Self {
        Self::new(value)
    }
    #[inline(always)]
    fn look<R>(&self, f: impl FnOnce(&V) -> R) -> R {
        f(&self.lock().unwrap_or_else(PoisonError::into_inner))
    }
    #[inline(always)]
    fn overwrite(&self, value: V) {
        *self.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

/// A map whose values lie in such places.
pub(crate) struct Values<T: Kind, P: Place<T::Value>>(HashMap<T::Key, P, Hasher>);

/// One thread's quiet handle.
pub(crate) struct ToValues<'m, T: Kind, P: Place<T::Value>>(
    hash_map::QuietHandle<'m, T::Key, P, Hasher>,
);

/// An item with such a place in it.
pub(crate) struct Held<T: Kind> {
    key: T::Key,
    value: Mutex<T::Value>,
}

impl<T: Kind> Keyed for Held<T> {
    type Key = T::Key;
    #[inline(always)]
    fn key(&self) -> &T::Key {
        &self.key
    }
}

/// A set of such items.
pub(crate) struct Items<T: Kind>(ItemSet<Box<Held<T>>, Hasher>);

/// One thread's quiet handle.
pub(crate) struct ToItems<'m, T: Kind>(item_set::QuietHandle<'m, Box<Held<T>>, Hasher>);

impl<T: Kind, P: Place<T::Value>> Map<T> for Values<T, P> {
    const LABEL: Label = LABEL;
    type Access<'a> = ToValues<'a, T, P>;

    fn with_capacity(capacity: usize) -> Self {
        Self(HashMap::with_capacity_and_hasher(capacity, Hasher::default()))
    }
    fn access(&self) -> ToValues<'_, T, P> {
        ToValues(self.0.quiet_handle())
    }
}

impl<T: Kind, P: Place<T::Value>> Access<T> for ToValues<'_, T, P> {
    #[inline(always)]
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
        self.0.get(query).map(|place| place.look(f))
    }
    #[inline(always)]
    fn insert(&mut self, key: T::Key, value: T::Value) -> bool {
        self.0.insert(key, P::of(value)).is_none()
    }
    #[inline(always)]
    fn update(&mut self, query: &T::Query, value: T::Value) -> bool {
        self.0.get(query).map(|place| place.overwrite(value)).is_some()
    }
    #[inline(always)]
    fn remove(&mut self, query: &T::Query) -> bool {
        self.0.remove(query).is_some()
    }
    #[inline(always)]
    fn quiet(&mut self) {
        self.0.quiescent();
    }
}

impl<T: Kind> Map<T> for Items<T> {
    const LABEL: Label = LABEL;
    type Access<'a> = ToItems<'a, T>;

    fn with_capacity(capacity: usize) -> Self {
        Self(ItemSet::with_capacity_and_hasher(capacity, Hasher::default()))
    }
    fn access(&self) -> ToItems<'_, T> {
        ToItems(self.0.quiet_handle())
    }
}

impl<T: Kind> Access<T> for ToItems<'_, T> {
    #[inline(always)]
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
        self.0.get(query).map(|held| held.value.look(f))
    }
    #[inline(always)]
    fn insert(&mut self, key: T::Key, value: T::Value) -> bool {
        self.0.insert(Held { key, value: Mutex::of(value) }).is_none()
    }
    #[inline(always)]
    fn update(&mut self, query: &T::Query, value: T::Value) -> bool {
        self.0.get(query).map(|held| held.value.overwrite(value)).is_some()
    }
    #[inline(always)]
    fn remove(&mut self, query: &T::Query) -> bool {
        self.0.remove(query).is_some()
    }
    #[inline(always)]
    fn quiet(&mut self) {
        self.0.quiescent();
    }
}

/// Stages whose workloads overwrite, or put and take out.
pub(crate) const STAGES: [&str; 4] = ["full", "half", "text", "half-text"];

/// Words in atomics.
pub(crate) type Counters = Values<Words, AtomicU64>;

/// Values of 64 bytes, each behind a lock.
pub(crate) type LockedTexts = Values<Texts, Mutex<<Texts as Kind>::Value>>;
