//! left-right over two hashbrown maps.

use super::{Guard, Reader, Writer};
use crate::{Hasher, Kind, Label};
use left_right::{Absorb, ReadGuard, ReadHandle, WriteHandle};
use std::marker::PhantomData;

/// One of the two copies.
pub struct Copy<T: Kind> {
    map: hashbrown::HashMap<T::Key, T::Value, Hasher>,
    kind: PhantomData<T>,
}

impl<T: Kind> Clone for Copy<T> {
    fn clone(&self) -> Self {
        Self { map: self.map.clone(), kind: PhantomData }
    }
}

/// A change.
pub enum Change<T: Kind> {
    /// Sets a value.
    Insert(T::Key, T::Value),
    /// Removes a key.
    Remove(T::Key),
}

impl<T: Kind> Absorb<Change<T>> for Copy<T> {
    fn absorb_first(&mut self, change: &mut Change<T>, _: &Self) {
        match change {
            Change::Insert(key, value) => drop(self.map.insert(key.clone(), value.clone())),
            Change::Remove(key) => drop(self.map.remove::<T::Key>(key)),
        }
    }
    fn absorb_second(&mut self, change: Change<T>, _: &Self) {
        match change {
            Change::Insert(key, value) => drop(self.map.insert(key, value)),
            Change::Remove(key) => drop(self.map.remove::<T::Key>(&key)),
        }
    }
    fn sync_with(&mut self, first: &Self) {
        *self = first.clone();
    }
}

/// `left_right::WriteHandle` over hashbrown.
pub struct LeftRight<T: Kind> {
    write: WriteHandle<Copy<T>, Change<T>>,
}

impl<T: Kind> Writer<T> for LeftRight<T> {
    const LABEL: Label = Label::new("left-right", "0.11.8");
    type Reader = LeftRightReader<T>;

    fn with_capacity(capacity: usize) -> Self {
        let map = hashbrown::HashMap::with_capacity_and_hasher(capacity, Hasher::default());
        let (write, _) = left_right::new_from_empty(Copy { map, kind: PhantomData });
        Self { write }
    }
    fn reader(&self) -> LeftRightReader<T> {
        LeftRightReader(ReadHandle::clone(&self.write))
    }
    fn insert(&mut self, key: T::Key, value: T::Value) {
        self.write.append(Change::Insert(key, value));
    }
    fn remove(&mut self, query: &T::Query) {
        self.write.append(Change::Remove(T::own(query)));
    }
    fn publish(&mut self) {
        self.write.publish();
    }
}

/// A thread's read handle.
pub struct LeftRightReader<T: Kind>(ReadHandle<Copy<T>>);

impl<T: Kind> Reader<T> for LeftRightReader<T> {
    type Guard<'a> = ReadGuard<'a, Copy<T>>;

    #[inline(always)]
    fn enter(&mut self) -> ReadGuard<'_, Copy<T>> {
        self.0.enter().expect("the writer outlives its readers")
    }
}

impl<T: Kind> Guard<T> for ReadGuard<'_, Copy<T>> {
    #[inline(always)]
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
        self.map.get(query).map(f)
    }
}
