//! What collections of the standard library do, too.

use super::pair::{Key, Value};
use super::{Handle, HashMap};
use crate::hasher::DefaultHashBuilder;
use std::collections;
use std::fmt;
use std::hash::BuildHasher;

impl<K: Key, V: Value, S: BuildHasher + Default> FromIterator<(K, V)> for HashMap<K, V, S> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let map = Self::default();
        (&map).extend(entries);
        map
    }
}

impl<K: Key, V: Value, const N: usize> From<[(K, V); N]> for HashMap<K, V, DefaultHashBuilder> {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

/// With a hasher of its own.
impl<K: Key, V: Value, S, T> From<collections::HashMap<K, V, T>> for HashMap<K, V, S>
where
    S: BuildHasher + Default,
{
    fn from(entries: collections::HashMap<K, V, T>) -> Self {
        entries.into_iter().collect()
    }
}

/// With a hasher of its own.
impl<K: Key, V: Value, S, T> From<HashMap<K, V, S>> for collections::HashMap<K, V, T>
where
    T: BuildHasher + Default,
{
    fn from(map: HashMap<K, V, S>) -> Self {
        map.into_iter().collect()
    }
}

/// What a hostile or careless hint may reserve at most.
const TRUSTED: usize = 1 << 16;

impl<K: Key, V: Value, S: BuildHasher> Extend<(K, V)> for &HashMap<K, V, S> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        let (entries, pin) = (entries.into_iter(), self.pin());
        pin.reserve(entries.size_hint().0.min(TRUSTED));
        pin.insert_many(entries);
    }
}

impl<K: Key, V: Value, S: BuildHasher> Extend<(K, V)> for HashMap<K, V, S> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        (&*self).extend(entries);
    }
}

impl<'e, K: Key + Copy, V: Value + Copy, S: BuildHasher> Extend<(&'e K, &'e V)>
    for HashMap<K, V, S>
{
    fn extend<I: IntoIterator<Item = (&'e K, &'e V)>>(&mut self, entries: I) {
        (&*self).extend(entries.into_iter().map(|(key, value)| (*key, *value)));
    }
}

impl<K: Key, V: Value, S: BuildHasher> Extend<(K, V)> for Handle<'_, K, V, S> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        self.insert_many(entries);
    }
}

/// A map of its own, with the settings of this one, and copies of what is there during the walk.
impl<K: Key + Clone, V: Value + Clone, S: BuildHasher + Clone> Clone for HashMap<K, V, S> {
    fn clone(&self) -> Self {
        Self::over(self.pairs.clone())
    }
}

/// Whether both hold equal values under the same keys. Exact when nobody writes.
impl<K: Key, V: Value + PartialEq, S: BuildHasher, T: BuildHasher> PartialEq<HashMap<K, V, T>>
    for HashMap<K, V, S>
{
    fn eq(&self, other: &HashMap<K, V, T>) -> bool {
        self.pairs == other.pairs
    }
}

impl<K: Key, V: Value + Eq, S: BuildHasher> Eq for HashMap<K, V, S> {}

impl<K: Key, V: Value, S: Default> Default for HashMap<K, V, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

/// Shows the entries, as [`iter`](HashMap::iter) sees them.
impl<K: Key + fmt::Debug, V: Value + fmt::Debug, S: BuildHasher> fmt::Debug for HashMap<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.pin()).finish()
    }
}
