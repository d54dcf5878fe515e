//! arc-swap over a persistent map (imbl): the writer changes a copy that shares structure and
//! swaps it in. The owner of the writing side keeps the newest version, so no clone is needed
//! before the first change of a batch beyond the structure shared with readers.

use super::{Guard, Reader, Writer};
use crate::{Hasher, Kind, Label};
use arc_swap::{ArcSwap, Cache};
use std::sync::Arc;

type Version<T> = imbl::GenericHashMap<
    <T as Kind>::Key,
    <T as Kind>::Value,
    Hasher,
    imbl::shared_ptr::DefaultSharedPtr,
>;

/// `ArcSwap<imbl::HashMap>`, read through `arc_swap::Cache` as its documentation advises for reads
/// that repeat.
pub struct ArcSwapped<T: Kind> {
    next: Version<T>,
    current: Arc<ArcSwap<Version<T>>>,
}

impl<T: Kind> Writer<T> for ArcSwapped<T> {
    const LABEL: Label = Label::new("arc-swap", "1.9.3");
    type Reader = ArcReader<T>;

    fn with_capacity(_: usize) -> Self {
        let next = Version::<T>::with_hasher(Hasher::default());
        Self { current: Arc::new(ArcSwap::from_pointee(next.clone())), next }
    }
    fn reader(&self) -> ArcReader<T> {
        ArcReader(Cache::new(Arc::clone(&self.current)))
    }
    fn insert(&mut self, key: T::Key, value: T::Value) {
        self.next.insert(key, value);
    }
    fn remove(&mut self, query: &T::Query) {
        self.next.remove(query);
    }
    fn publish(&mut self) {
        self.current.store(Arc::new(self.next.clone()));
    }
}

/// A thread's cached version.
pub struct ArcReader<T: Kind>(Cache<Arc<ArcSwap<Version<T>>>, Arc<Version<T>>>);

/// One version.
pub struct ArcGuard<'a, T: Kind>(&'a Version<T>);

impl<T: Kind> Reader<T> for ArcReader<T> {
    type Guard<'a> = ArcGuard<'a, T>;

    #[inline(always)]
    fn enter(&mut self) -> ArcGuard<'_, T> {
        ArcGuard(self.0.load())
    }
}

impl<T: Kind> Guard<T> for ArcGuard<'_, T> {
    #[inline(always)]
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
        self.0.get(query).map(f)
    }
}
