//! What a map is made of, turned into and compared with.

use super::desk::Options;
use super::iter::{IntoIter, Iter};
use super::map::TwinMap;
use super::reader::ReadGuard;
use super::refs::Refs;
use super::version::Version;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hash};

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone + Default> Default
    for TwinMap<K, V, S>
{
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

/// A map of its own with the same content.
impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Clone for TwinMap<K, V, S> {
    fn clone(&self) -> Self {
        match self.desk.look() {
            Some(version) => Self::over(version.clone(), self.desk.options),
            None => Self::blank(self.desk.blank.clone(), self.desk.options),
        }
    }
}

impl<K, V, S> fmt::Debug for TwinMap<K, V, S>
where
    K: Hash + Eq + Clone + fmt::Debug,
    V: Clone + fmt::Debug,
    S: BuildHasher + Clone,
{
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.desk.look() {
            Some(version) => version.fmt(out),
            None => self.desk.blank.fmt(out),
        }
    }
}

/// Compares one version of each.
impl<K, V, S> PartialEq for TwinMap<K, V, S>
where
    K: Hash + Eq + Clone,
    V: Clone + PartialEq,
    S: BuildHasher + Clone,
{
    fn eq(&self, other: &Self) -> bool {
        match (self.desk.look(), other.desk.look()) {
            (Some(own), Some(other)) => *own == *other,
            (own, other) => own.or(other).is_none_or(|version| version.is_empty()),
        }
    }
}

impl<K, V, S> Eq for TwinMap<K, V, S>
where
    K: Hash + Eq + Clone,
    V: Clone + Eq,
    S: BuildHasher + Clone,
{
}

impl<K, V, S> FromIterator<(K, V)> for TwinMap<K, V, S>
where
    K: Hash + Eq + Clone,
    V: Clone,
    S: BuildHasher + Clone + Default,
{
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self::over(entries.into_iter().collect(), Options::DEFAULT)
    }
}

impl<K: Hash + Eq + Clone, V: Clone, const N: usize> From<[(K, V); N]> for TwinMap<K, V> {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

/// The content; the hasher is the table's own.
impl<K: Hash + Eq + Clone, V: Clone, H> From<HashMap<K, V, H>> for TwinMap<K, V> {
    fn from(entries: HashMap<K, V, H>) -> Self {
        entries.into_iter().collect()
    }
}

/// In one version, as [`TwinMap::insert_many`].
impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Extend<(K, V)> for TwinMap<K, V, S> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        self.insert_many(entries);
    }
}

/// In one version, as [`TwinMap::insert_many`].
impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Extend<(K, V)> for &TwinMap<K, V, S> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        self.insert_many(entries);
    }
}

impl<'a, K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> IntoIterator
    for &'a TwinMap<K, V, S>
{
    type Item = super::Ref<'a, (K, V)>;
    type IntoIter = Refs<'a, (K, V), (K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The entries of the current version; clones of them if a reader or an owned guard is left that
/// may look at it still.
impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> IntoIterator for TwinMap<K, V, S> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        self.desk.into_twin().into_readable().into_iter()
    }
}

impl<'g, K, V, S> IntoIterator for &'g ReadGuard<'_, Version<K, V, S>> {
    type Item = (&'g K, &'g V);
    type IntoIter = Iter<'g, K, V>;

    fn into_iter(self) -> Iter<'g, K, V> {
        self.iter()
    }
}
