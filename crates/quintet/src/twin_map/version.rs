//! One copy of a map, and the operations that both copies go through.

use super::absorb::{Absorb, Differs};
use super::ahead::Ahead;
use super::iter::{IntoIter, Iter};
use super::pages::PageAlloc;
use crate::hasher::DefaultHashBuilder;
use crate::region::{AllocError, Pages};
use equivalent::Equivalent;
use hashbrown::HashTable;
use hashbrown::hash_table;
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};

/// One version of a [`TwinMap`](super::TwinMap): what its guards show. A plain map that lends plain
/// references.
pub struct Version<K, V, S = DefaultHashBuilder> {
    table: HashTable<(K, V), PageAlloc>,
    ahead: Ahead,
    hasher: S,
}

/// So few operations are always replayed.
const FEW: usize = 64;

/// A change of a map. Notes how it ended on the first copy, and is checked against that on the
/// second.
#[derive(Debug)]
pub(crate) enum Op<K, V> {
    Insert { hash: u64, key: K, value: V, replaced: bool },
    Remove { hash: u64, key: K },
    Clear,
    Reserve(usize),
    Shrink,
}

/// Which keys a change concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Touch {
    Nothing,
    /// Those of this hash.
    Hash(u64),
    Everything,
}

impl<K, V> Op<K, V> {
    pub(super) fn touches(&self) -> Touch {
        match self {
            Self::Insert { hash, .. } | Self::Remove { hash, .. } => Touch::Hash(*hash),
            Self::Clear => Touch::Everything,
            Self::Reserve(_) | Self::Shrink => Touch::Nothing,
        }
    }
}

/// Keys and values that fell out of a copy.
pub(crate) type Fallen<K, V> = (Option<K>, Option<V>);

pub(super) type Log<K, V> = VecDeque<Op<K, V>>;

impl<K: Clone, V: Clone, S: Clone> Clone for Version<K, V, S> {
    fn clone(&self) -> Self {
        let table = self.table.clone();
        Self { ahead: Ahead::of(&table), table, hasher: self.hasher.clone() }
    }
}

impl<K, V, S: Default> Default for Version<K, V, S> {
    fn default() -> Self {
        Self::with_pages(S::default(), Pages::Huge)
    }
}

impl<K, V, S> Version<K, V, S> {
    pub(super) const fn with_pages(hasher: S, pages: Pages) -> Self {
        Self { table: HashTable::new_in(PageAlloc(pages)), ahead: Ahead::nothing(), hasher }
    }

    /// An empty one with the same hasher and pages.
    pub(super) fn blank(&self) -> Self
    where
        S: Clone,
    {
        Self::with_pages(self.hasher.clone(), self.table.allocator().0)
    }

    /// The number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// True if there are no entries.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// How many entries fit before this copy grows.
    pub fn capacity(&self) -> usize {
        self.table.capacity()
    }

    /// The hasher.
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// All entries, in no particular order; the order may differ from version to version.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter(self.table.iter())
    }

    /// All keys.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &K> + Clone {
        self.table.iter().map(|(key, _)| key)
    }

    /// All values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> + Clone {
        self.table.iter().map(|(_, value)| value)
    }

    /// The entries as the table lends them.
    pub(super) fn entries(&self) -> hash_table::Iter<'_, (K, V)> {
        self.table.iter()
    }

    /// Bytes that this copy's table holds. A map has two copies.
    pub fn memory_bytes(&self) -> usize {
        self.table.allocation_size()
    }
}

impl<K, V, S: BuildHasher> Version<K, V, S> {
    #[inline(always)]
    pub(super) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The value of a key.
    #[inline]
    pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<&V> {
        match self.get_key_value(key) {
            Some((_, value)) => Some(value),
            None => None,
        }
    }

    /// The stored key and its value.
    #[inline]
    pub fn get_key_value<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<(&K, &V)> {
        self.find(self.hash(key), key)
    }

    /// True if the key is there.
    #[inline]
    pub fn contains_key<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> bool {
        self.get_key_value(key).is_some()
    }

    #[inline]
    pub(super) fn find<Q: Equivalent<K> + ?Sized>(&self, hash: u64, key: &Q) -> Option<(&K, &V)> {
        self.ahead.ask(hash, &self.table);
        match self.table.find(hash, |entry| key.equivalent(&entry.0)) {
            Some((key, value)) => Some((key, value)),
            None => None,
        }
    }
}

/// Changes. Each changes this copy, then logs what it did; a panic in between leaves the copy in
/// doubt and the log right, as the engine wants it (`twin` X4).
impl<K: Hash + Eq, V, S: BuildHasher> Version<K, V, S> {
    /// Sets a value; returns the old one, and the new key if it was not needed.
    #[inline]
    fn set(&mut self, hash: u64, key: K, value: V) -> Option<(K, V)> {
        match self.overwrite(hash, key, value) {
            Ok(old) => Some(old),
            Err((key, value)) => {
                self.add(hash, key, value);
                None
            }
        }
    }

    /// Sets the value of a key that is there; returns the old one, and the new key. `Err`: what was
    /// not needed.
    #[inline(always)]
    fn overwrite(&mut self, hash: u64, key: K, value: V) -> Result<(K, V), (K, V)> {
        match self.table.find_mut(hash, |entry| entry.0 == key) {
            Some(entry) => Ok((key, std::mem::replace(&mut entry.1, value))),
            None => Err((key, value)),
        }
    }

    /// Adds an entry whose key is not there.
    #[inline(never)]
    fn add(&mut self, hash: u64, key: K, value: V) {
        let hasher = &self.hasher;
        let hash_of = |entry: &(K, V)| hasher.hash_one(&entry.0);
        let entry = self.table.insert_unique(hash, (key, value), hash_of);
        let (place, index) = (&raw const *entry.get(), entry.bucket_index());
        let ahead = Ahead::at(place, index);
        // Readers look at it; mostly the table has not moved.
        if self.ahead != ahead {
            self.ahead = ahead;
        }
    }

    fn take<Q: Equivalent<K> + ?Sized>(&mut self, hash: u64, key: &Q) -> Option<(K, V)> {
        let entry = self.table.find_entry(hash, |entry| key.equivalent(&entry.0)).ok()?;
        Some(entry.remove().0)
    }

    #[inline]
    pub(super) fn put(&mut self, log: &mut Log<K, V>, key: K, value: V) -> Option<V>
    where
        K: Clone,
        V: Clone,
    {
        let hash = self.hash(&key);
        self.put_hashed(log, hash, key, value)
    }

    #[inline]
    pub(super) fn put_hashed(
        &mut self,
        log: &mut Log<K, V>,
        hash: u64,
        key: K,
        value: V,
    ) -> Option<V>
    where
        K: Clone,
        V: Clone,
    {
        let logged = (key.clone(), value.clone());
        let old = self.set(hash, key, value);
        let (key, value) = logged;
        log.push_back(Op::Insert { hash, key, value, replaced: old.is_some() });
        old.map(|(_, value)| value)
    }

    pub(super) fn remove<Q>(&mut self, log: &mut Log<K, V>, key: &Q) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let hash = self.hash(key);
        let (key, value) = self.take(hash, key)?;
        log.push_back(Op::Remove { hash, key });
        Some(value)
    }

    pub(super) fn retain(
        &mut self,
        log: &mut Log<K, V>,
        old: &mut Vec<Fallen<K, V>>,
        mut keep: impl FnMut(&K, &V) -> bool,
    ) {
        let hasher = &self.hasher;
        for (key, value) in self.table.extract_if(|(key, value)| !keep(key, value)) {
            let hash = hasher.hash_one(&key);
            log.push_back(Op::Remove { hash, key });
            keep_for_later(old, None, Some(value));
        }
    }

    pub(super) fn clear(&mut self, log: &mut Log<K, V>, old: &mut Vec<Fallen<K, V>>) {
        self.empty(old);
        log.push_back(Op::Clear);
    }

    /// Takes everything out; keeps the memory.
    fn empty(&mut self, old: &mut Vec<Fallen<K, V>>) {
        if std::mem::needs_drop::<(K, V)>() {
            old.extend(self.table.drain().map(|(key, value)| (Some(key), Some(value))));
        } else {
            self.table.clear();
        }
    }

    pub(super) fn reserve(&mut self, log: &mut Log<K, V>, more: usize) {
        self.make_room(more);
        log.push_back(Op::Reserve(more));
    }

    pub(super) fn try_reserve(
        &mut self,
        log: &mut Log<K, V>,
        more: usize,
    ) -> Result<(), AllocError> {
        self.try_make_room(more)?;
        log.push_back(Op::Reserve(more));
        Ok(())
    }

    pub(super) fn try_make_room(&mut self, more: usize) -> Result<(), AllocError> {
        let hasher = &self.hasher;
        let reserved = self.table.try_reserve(more, |entry| hasher.hash_one(&entry.0));
        reserved.map_err(|error| match error {
            hashbrown::TryReserveError::CapacityOverflow => AllocError::CapacityOverflow,
            hashbrown::TryReserveError::AllocError { layout } => {
                AllocError::OutOfMemory { bytes: layout.size() }
            }
        })?;
        self.ahead = Ahead::of(&self.table);
        Ok(())
    }

    pub(super) fn shrink(&mut self, log: &mut Log<K, V>) {
        self.give_back();
        log.push_back(Op::Shrink);
    }

    pub(super) fn make_room(&mut self, more: usize) {
        let hasher = &self.hasher;
        self.table.reserve(more, |entry| hasher.hash_one(&entry.0));
        self.ahead = Ahead::of(&self.table);
    }

    fn give_back(&mut self) {
        let hasher = &self.hasher;
        self.table.shrink_to_fit(|entry| hasher.hash_one(&entry.0));
        self.ahead = Ahead::of(&self.table);
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Absorb<Op<K, V>> for Version<K, V, S> {
    type Old = Fallen<K, V>;

    fn absorb_first(&mut self, op: &mut Op<K, V>) -> Option<Fallen<K, V>> {
        match op {
            Op::Insert { hash, key, value, replaced } => {
                let old = self.set(*hash, key.clone(), value.clone());
                *replaced = old.is_some();
                old.map(|(key, value)| (Some(key), Some(value)))
            }
            Op::Remove { hash, key } => {
                self.take(*hash, key).map(|(key, value)| (Some(key), Some(value)))
            }
            Op::Clear => {
                self.table.clear();
                None
            }
            Op::Reserve(more) => {
                self.make_room(*more);
                None
            }
            Op::Shrink => {
                self.give_back();
                None
            }
        }
    }

    #[inline]
    fn absorb_second(&mut self, op: Op<K, V>, old: &mut Vec<Fallen<K, V>>) -> Result<(), Differs> {
        match op {
            Op::Insert { hash, key, value, replaced: true } => {
                let replaced = self.overwrite(hash, key, value);
                let is_same = replaced.is_ok();
                let (Ok((key, value)) | Err((key, value))) = replaced;
                keep_for_later(old, Some(key), Some(value));
                return if is_same { Ok(()) } else { Err(Differs) };
            }
            Op::Insert { hash, key, value, replaced: false } => {
                if let Some((key, value)) = self.set(hash, key, value) {
                    keep_for_later(old, Some(key), Some(value));
                    return Err(Differs);
                }
            }
            Op::Remove { hash, key } => {
                let Some((other, value)) = self.take(hash, &key) else { return Err(Differs) };
                keep_for_later(old, Some(other), Some(value));
                keep_for_later(old, Some(key), None);
            }
            Op::Clear => self.empty(old),
            Op::Reserve(more) => self.make_room(more),
            Op::Shrink => self.give_back(),
        }
        Ok(())
    }

    #[inline]
    fn prepare(&self, op: &Op<K, V>) {
        if let Op::Insert { hash, .. } | Op::Remove { hash, .. } = op {
            self.ahead.ask_to_write(*hash, &self.table);
        }
    }

    fn rebuild(from: &Self) -> Self {
        from.clone()
    }

    fn rebuild_into(&mut self, from: &Self) {
        self.table.clone_from(&from.table);
        self.ahead = Ahead::of(&self.table);
    }

    fn is_copied_sooner(&self, operations: usize) -> bool {
        // Entries without a drop are copied as bytes, one after the other; operations look for
        // their entries all over the table.
        let worth = if std::mem::needs_drop::<(K, V)>() { 1 } else { 8 };
        operations >= FEW && operations >= self.len() / worth
    }

    fn memory_bytes(&self) -> usize {
        Version::memory_bytes(self)
    }

    fn agrees(&self, other: &Self) -> bool {
        self.len() == other.len()
    }
}

/// What needs no drop needs no list.
fn keep_for_later<K, V>(old: &mut Vec<Fallen<K, V>>, key: Option<K>, value: Option<V>) {
    if std::mem::needs_drop::<(K, V)>() {
        old.push((key, value));
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Extend<(K, V)> for Version<K, V, S> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        let entries = entries.into_iter();
        self.make_room(entries.size_hint().0);
        for (key, value) in entries {
            let hash = self.hash(&key);
            self.set(hash, key, value);
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher + Default> FromIterator<(K, V)> for Version<K, V, S> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        map.extend(entries);
        map
    }
}

impl<K: std::fmt::Debug, V: std::fmt::Debug, S> std::fmt::Debug for Version<K, V, S> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Hash + Eq, V: PartialEq, S: BuildHasher> PartialEq for Version<K, V, S> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self.iter().all(|(key, value)| other.get(key).is_some_and(|held| held == value))
    }
}

impl<K: Hash + Eq, V: Eq, S: BuildHasher> Eq for Version<K, V, S> {}

impl<'a, K, V, S> IntoIterator for &'a Version<K, V, S> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

impl<K, V, S> IntoIterator for Version<K, V, S> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        IntoIter(self.table.into_iter())
    }
}

impl<K, V, S: BuildHasher, Q: Hash + Equivalent<K> + ?Sized> std::ops::Index<&Q>
    for Version<K, V, S>
{
    type Output = V;

    /// # Panics
    /// If the key is absent.
    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("no entry found for key")
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    /// What a get asks for ahead is where its table keeps entries, however the table came to lie
    /// there.
    #[test]
    fn every_way_to_move_a_table_is_noticed() {
        let mut map = Version::<u64, u64>::default();
        let right = |map: &Version<u64, u64>| {
            assert_eq!(map.ahead, Ahead::of(&map.table));
            map.ahead
        };
        let empty = right(&map);
        map.extend([(1, 1)]);
        let one = right(&map);
        assert_ne!(one, empty);
        let mut log = Log::new();
        map.reserve(&mut log, 1000);
        let reserved = right(&map);
        assert_ne!(reserved, one);
        for key in 0..100_000 {
            map.put(&mut log, key, key);
        }
        let grown = right(&map);
        assert_ne!(grown, reserved);
        map.retain(&mut log, &mut Vec::new(), |key, _| *key < 10);
        assert_eq!(right(&map), grown);
        map.shrink(&mut log);
        let shrunk = right(&map);
        assert_ne!(shrunk, grown);
        map.try_reserve(&mut log, 1000).unwrap();
        assert_ne!(right(&map), shrunk);
        assert_ne!(right(&map.clone()), right(&map));
    }
}
