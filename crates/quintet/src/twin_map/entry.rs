//! Entries: a key that was looked up once, to be changed or filled.

use super::version::{Op, Version};
use super::write::Write;
use std::hash::{BuildHasher, Hash};

/// A key that was looked up, present or not; made by
/// [`WriteGuard::entry`](super::WriteGuard::entry).
#[derive(Debug)]
pub enum Entry<'g, 'w, K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> {
    /// The key is present.
    Occupied(Occupied<'g, 'w, K, V, S>),
    /// The key is absent.
    Vacant(Vacant<'g, 'w, K, V, S>),
}

/// A key that is present.
#[derive(Debug)]
pub struct Occupied<'g, 'w, K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone>(
    Found<'g, 'w, K, V, S>,
);

/// A key that is absent.
#[derive(Debug)]
pub struct Vacant<'g, 'w, K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone>(
    Found<'g, 'w, K, V, S>,
);

struct Found<'g, 'w, K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> {
    write: &'g mut Write<'w, Version<K, V, S>, Op<K, V>>,
    hash: u64,
    key: K,
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> std::fmt::Debug
    for Found<'_, '_, K, V, S>
{
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Found").field("hash", &self.hash).finish_non_exhaustive()
    }
}

impl<'g, K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Found<'g, '_, K, V, S> {
    /// Sets the value and refers to it.
    fn set(self, value: V) -> &'g V {
        let Self { write, hash, key } = self;
        let asked = key.clone();
        write.change(|map, log| map.put_hashed(log, hash, key, value));
        let write: &'g Write<'_, _, _> = write;
        let Some((_, value)) = write.find(hash, &asked) else {
            panic!("a key that was just inserted is not found: its Eq is not consistent");
        };
        value
    }
}

impl<'g, 'w, K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Entry<'g, 'w, K, V, S> {
    pub(super) fn new(
        write: &'g mut Write<'w, Version<K, V, S>, Op<K, V>>,
        hash: u64,
        key: K,
        occupied: bool,
    ) -> Self {
        let found = Found { write, hash, key };
        if occupied { Self::Occupied(Occupied(found)) } else { Self::Vacant(Vacant(found)) }
    }

    /// The key that was asked for.
    pub fn key(&self) -> &K {
        match self {
            Self::Occupied(Occupied(found)) | Self::Vacant(Vacant(found)) => &found.key,
        }
    }

    /// The value, which is set if the key is absent.
    pub fn or_insert(self, value: V) -> &'g V {
        self.or_insert_with(|| value)
    }

    /// The value, which is made and set if the key is absent.
    pub fn or_insert_with(self, value: impl FnOnce() -> V) -> &'g V {
        match self {
            Self::Occupied(entry) => entry.into_ref(),
            Self::Vacant(entry) => entry.insert(value()),
        }
    }

    /// Changes a clone of the value, if there is one, and puts it in its place.
    pub fn and_modify(mut self, change: impl FnOnce(&mut V)) -> Self {
        if let Self::Occupied(entry) = &mut self {
            entry.modify(change);
        }
        self
    }
}

impl<'g, K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Occupied<'g, '_, K, V, S> {
    /// The value.
    ///
    /// # Panics
    /// If the `Eq` of the key is not consistent, so that it is not found again.
    pub fn get(&self) -> &V {
        found_again(self.0.write.find(self.0.hash, &self.0.key))
    }

    /// The value, for as long as the guard is borrowed.
    ///
    /// # Panics
    /// As [`get`](Self::get).
    pub fn into_ref(self) -> &'g V {
        let Found { write, hash, key } = self.0;
        let write: &'g Write<'_, _, _> = write;
        found_again(write.find(hash, &key))
    }

    /// Sets the value; returns the old one.
    pub fn insert(&mut self, value: V) -> Option<V> {
        let Found { write, hash, key } = &mut self.0;
        let key = key.clone();
        write.change(|map, log| map.put_hashed(log, *hash, key, value))
    }

    /// Changes a clone of the value and puts it in its place; returns the old one.
    pub fn modify(&mut self, change: impl FnOnce(&mut V)) -> Option<V> {
        let mut value = self.get().clone();
        change(&mut value);
        self.insert(value)
    }

    /// Removes the key; returns its value.
    pub fn remove(self) -> Option<V> {
        let Found { write, key, .. } = self.0;
        write.change(|map, log| map.remove(log, &key))
    }
}

impl<'g, K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Vacant<'g, '_, K, V, S> {
    /// Sets the value.
    pub fn insert(self, value: V) -> &'g V {
        self.0.set(value)
    }
}

fn found_again<'a, K, V>(found: Option<(&'a K, &'a V)>) -> &'a V {
    match found {
        Some((_, value)) => value,
        None => panic!("a key that was found is not found again: its Eq is not consistent"),
    }
}
