//! The usual traits.

use super::core::Core;
use super::{CopyMap, IntoIter, Iter, Plain};
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

impl<K: Plain, V: Plain, S: Default> Default for CopyMap<K, V, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

/// Prints the entries as [`CopyMap::iter`] finds them.
impl<K, V, S> fmt::Debug for CopyMap<K, V, S>
where
    K: Plain + Hash + Eq + fmt::Debug,
    V: Plain + fmt::Debug,
    S: BuildHasher,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// A map with the same settings and hasher, and the entries that [`CopyMap::iter`] finds.
///
/// # Panics
/// If the memory cannot be had.
impl<K: Plain + Hash + Eq, V: Plain, S: BuildHasher + Clone> Clone for CopyMap<K, V, S> {
    fn clone(&self) -> Self {
        let mut settings = self.core.settings;
        settings.first_bits = settings.first_bits.max(settings.bits_for(self.len()));
        let core = Core::new(settings, self.core.hasher.clone());
        let map = Self { core, types: PhantomData };
        map.insert_many(self);
        map
    }
}

/// Equal if they have the same keys with equal values. Exact when nobody writes.
impl<K: Plain + Hash + Eq, V: Plain + PartialEq, S: BuildHasher> PartialEq for CopyMap<K, V, S> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|(key, value)| other.get(&key) == Some(value))
    }
}

impl<K: Plain + Hash + Eq, V: Plain + Eq, S: BuildHasher> Eq for CopyMap<K, V, S> {}

impl<'m, K: Plain + Hash + Eq, V: Plain, S: BuildHasher> IntoIterator for &'m CopyMap<K, V, S> {
    type Item = (K, V);
    type IntoIter = Iter<'m, K, V, S>;

    fn into_iter(self) -> Iter<'m, K, V, S> {
        self.iter()
    }
}

impl<K: Plain + Hash + Eq, V: Plain, S: BuildHasher> IntoIterator for CopyMap<K, V, S> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V, S>;

    fn into_iter(self) -> IntoIter<K, V, S> {
        IntoIter::new(self)
    }
}

impl<K: Plain + Hash + Eq, V: Plain, S: BuildHasher + Default> FromIterator<(K, V)>
    for CopyMap<K, V, S>
{
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let entries = entries.into_iter();
        let map = Self::default();
        map.reserve(entries.size_hint().0);
        map.insert_many(entries);
        map
    }
}

impl<K: Plain + Hash + Eq, V: Plain, S: BuildHasher + Default, const N: usize> From<[(K, V); N]>
    for CopyMap<K, V, S>
{
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<K: Plain + Hash + Eq, V: Plain, S: BuildHasher> Extend<(K, V)> for CopyMap<K, V, S> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        self.insert_many(entries);
    }
}

/// A shared map can be extended by several threads at a time.
impl<K: Plain + Hash + Eq, V: Plain, S: BuildHasher> Extend<(K, V)> for &CopyMap<K, V, S> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        self.insert_many(entries);
    }
}

#[cfg(feature = "serde")]
mod serde_impls {
    use super::{CopyMap, Plain};
    use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
    use serde::ser::{Serialize, Serializer};
    use std::fmt;
    use std::hash::{BuildHasher, Hash};
    use std::marker::PhantomData;

    /// As a map of the entries that [`CopyMap::iter`] finds.
    impl<K, V, S> Serialize for CopyMap<K, V, S>
    where
        K: Plain + Hash + Eq + Serialize,
        V: Plain + Serialize,
        S: BuildHasher,
    {
        fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
            serializer.collect_map(self)
        }
    }

    impl<'de, K, V, S> Deserialize<'de> for CopyMap<K, V, S>
    where
        K: Plain + Hash + Eq + Deserialize<'de>,
        V: Plain + Deserialize<'de>,
        S: BuildHasher + Default,
    {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Entries(PhantomData))
        }
    }

    struct Entries<K, V, S>(PhantomData<CopyMap<K, V, S>>);

    impl<'de, K, V, S> Visitor<'de> for Entries<K, V, S>
    where
        K: Plain + Hash + Eq + Deserialize<'de>,
        V: Plain + Deserialize<'de>,
        S: BuildHasher + Default,
    {
        type Value = CopyMap<K, V, S>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map of plain data")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let map = CopyMap::default();
            // A size that somebody claims is no reason to allocate it.
            let claimed = entries.size_hint().unwrap_or(0).min(1 << 16);
            map.try_reserve(claimed).map_err(A::Error::custom)?;
            while let Some((key, value)) = entries.next_entry()? {
                map.fallible().insert(key, value).map_err(A::Error::custom)?;
            }
            Ok(map)
        }
    }
}
