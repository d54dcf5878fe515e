//! General maps in the read-mostly role, and two yardsticks of what a read can cost at best: an
//! unshared hashbrown map, and two of them that take turns.

use super::{Guard, Reader, Writer};
use crate::general::{Access, Map};
use crate::{Hasher, Kind, Label};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A general map: every write is visible at once, so a publish does nothing.
#[derive(Debug)]
pub struct General<M>(Arc<M>);

impl<T: Kind, M: Map<T>> Writer<T> for General<M> {
    const LABEL: Label = M::LABEL;
    type Reader = GeneralReader<M>;

    fn with_capacity(capacity: usize) -> Self {
        Self(Arc::new(M::with_capacity(capacity)))
    }
    fn reader(&self) -> GeneralReader<M> {
        GeneralReader(Arc::clone(&self.0))
    }
    fn insert(&mut self, key: T::Key, value: T::Value) {
        self.0.access().insert(key, value);
    }
    fn remove(&mut self, query: &T::Query) {
        self.0.access().remove(query);
    }
    fn publish(&mut self) {}
}

/// A thread's share of a general map.
#[derive(Debug)]
pub struct GeneralReader<M>(Arc<M>);

/// An access object for one read section.
#[derive(Debug)]
pub struct Section<A>(A);

impl<T: Kind, M: Map<T>> Reader<T> for GeneralReader<M> {
    type Guard<'a> = Section<M::Access<'a>>;

    #[inline(always)]
    fn enter(&mut self) -> Section<M::Access<'_>> {
        Section(self.0.access())
    }
}

impl<T: Kind, A: Access<T>> Guard<T> for Section<A> {
    #[inline(always)]
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
        self.0.get(query, f)
    }
}

/// A hashbrown map that nobody changes once it is read: a yardstick, not a rival.
#[derive(Debug)]
pub struct Frozen<T: Kind> {
    map: Arc<hashbrown::HashMap<T::Key, T::Value, Hasher>>,
    kind: PhantomData<T>,
}

impl<T: Kind> Writer<T> for Frozen<T> {
    const LABEL: Label = Label::new("hashbrown (unshared)", "0.17.1");
    type Reader = Self;

    fn with_capacity(capacity: usize) -> Self {
        let map = hashbrown::HashMap::with_capacity_and_hasher(capacity, Hasher::default());
        Self { map: Arc::new(map), kind: PhantomData }
    }
    fn reader(&self) -> Self {
        Self { map: Arc::clone(&self.map), kind: PhantomData }
    }
    /// Changes the map while no reader exists; later changes are dropped.
    fn insert(&mut self, key: T::Key, value: T::Value) {
        if let Some(map) = Arc::get_mut(&mut self.map) {
            map.insert(key, value);
        }
    }
    fn remove(&mut self, query: &T::Query) {
        if let Some(map) = Arc::get_mut(&mut self.map) {
            map.remove(query);
        }
    }
    fn publish(&mut self) {}
}

impl<T: Kind> Reader<T> for Frozen<T> {
    type Guard<'a> = &'a Self;

    #[inline(always)]
    fn enter(&mut self) -> &Self {
        self
    }
}

impl<T: Kind> Guard<T> for &Frozen<T> {
    #[inline(always)]
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
        self.map.get(query).map(f)
    }
}

/// Two hashbrown maps of the same content that nobody changes once they are read. Readers look at
/// the one or at the other, and a publish says at which: what two copies cost in cache, without
/// anything that would keep a reader from a copy that is written. A yardstick, not a rival.
pub struct Turns<T: Kind> {
    shared: Arc<Copies<T>>,
}

struct Copies<T: Kind> {
    maps: [hashbrown::HashMap<T::Key, T::Value, Hasher>; 2],
    turn: AtomicUsize,
}

impl<T: Kind> fmt::Debug for Turns<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Turns").field("len", &self.shared.maps[0].len()).finish_non_exhaustive()
    }
}

impl<T: Kind> Writer<T> for Turns<T> {
    const LABEL: Label = Label::new("hashbrown (two, in turn)", "0.17.1");
    type Reader = Self;

    fn with_capacity(capacity: usize) -> Self {
        let map = || hashbrown::HashMap::with_capacity_and_hasher(capacity, Hasher::default());
        Self { shared: Arc::new(Copies { maps: [map(), map()], turn: AtomicUsize::new(0) }) }
    }
    fn reader(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
    /// Changes the maps while no reader exists; later changes are dropped.
    fn insert(&mut self, key: T::Key, value: T::Value) {
        if let Some(Copies { maps: [one, other], .. }) = Arc::get_mut(&mut self.shared) {
            one.insert(key.clone(), value.clone());
            other.insert(key, value);
        }
    }
    fn remove(&mut self, query: &T::Query) {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.maps.iter_mut().for_each(|map| _ = map.remove(query));
        }
    }
    fn publish(&mut self) {
        self.shared.turn.fetch_xor(1, Ordering::Relaxed);
    }
}

impl<T: Kind> Reader<T> for Turns<T> {
    type Guard<'a> = &'a hashbrown::HashMap<T::Key, T::Value, Hasher>;

    #[inline(always)]
    fn enter(&mut self) -> Self::Guard<'_> {
        &self.shared.maps[self.shared.turn.load(Ordering::Relaxed) % 2]
    }
}

impl<T: Kind> Guard<T> for &hashbrown::HashMap<T::Key, T::Value, Hasher> {
    #[inline(always)]
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
        hashbrown::HashMap::get(self, query).map(f)
    }
}
