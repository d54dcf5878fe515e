//! The usual traits.

use super::core::Core;
use super::table::load;
use super::{IntoIter, Iter, Word, WordMap};
use crate::migrate::capacity_for;
use std::fmt;
use std::marker::PhantomData;

impl<K: Word, V: Word> Default for WordMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// Prints the entries as [`WordMap::iter`] finds them.
impl<K: Word + fmt::Debug, V: Word + fmt::Debug> fmt::Debug for WordMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// A map with the same settings, and the entries that [`WordMap::iter`] finds.
///
/// # Panics
/// If the memory cannot be had.
impl<K: Word, V: Word> Clone for WordMap<K, V> {
    fn clone(&self) -> Self {
        let mut settings = self.core.settings;
        let bits = capacity_for(self.len(), |bits| load(bits, settings.max_load));
        settings.first_bits = settings.first_bits.max(bits);
        let map = Self { core: Core::new(settings), types: PhantomData };
        map.insert_many(self);
        map
    }
}

/// Equal if they have the same keys with the same values, compared as words (of floats: by their
/// bits). Exact when nobody writes.
impl<K: Word, V: Word> PartialEq for WordMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        let same = |(key, value): (K, V)| {
            other.get(key).is_some_and(|found| found.to_word() == value.to_word())
        };
        self.len() == other.len() && self.iter().all(same)
    }
}

impl<K: Word, V: Word> Eq for WordMap<K, V> {}

impl<'m, K: Word, V: Word> IntoIterator for &'m WordMap<K, V> {
    type Item = (K, V);
    type IntoIter = Iter<'m, K, V>;

    fn into_iter(self) -> Iter<'m, K, V> {
        self.iter()
    }
}

impl<K: Word, V: Word> IntoIterator for WordMap<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        IntoIter::new(self)
    }
}

impl<K: Word, V: Word> FromIterator<(K, V)> for WordMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let entries = entries.into_iter();
        let map = Self::with_capacity(entries.size_hint().0);
        map.insert_many(entries);
        map
    }
}

impl<K: Word, V: Word, const N: usize> From<[(K, V); N]> for WordMap<K, V> {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<K: Word, V: Word> Extend<(K, V)> for WordMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        self.insert_many(entries);
    }
}

/// A shared map can be extended by several threads at a time.
impl<K: Word, V: Word> Extend<(K, V)> for &WordMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        self.insert_many(entries);
    }
}

#[cfg(feature = "serde")]
mod serde_impls {
    use super::{Word, WordMap};
    use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
    use serde::ser::{Serialize, Serializer};
    use std::fmt;
    use std::marker::PhantomData;

    /// As a map of the entries that [`WordMap::iter`] finds.
    impl<K: Word + Serialize, V: Word + Serialize> Serialize for WordMap<K, V> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self)
        }
    }

    impl<'de, K: Word + Deserialize<'de>, V: Word + Deserialize<'de>> Deserialize<'de>
        for WordMap<K, V>
    {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Entries(PhantomData))
        }
    }

    struct Entries<K, V>(PhantomData<(K, V)>);

    impl<'de, K: Word + Deserialize<'de>, V: Word + Deserialize<'de>> Visitor<'de> for Entries<K, V> {
        type Value = WordMap<K, V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map of words")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            // A size that somebody claims is no reason to allocate it.
            let map = WordMap::with_capacity(entries.size_hint().unwrap_or(0).min(1 << 16));
            while let Some((key, value)) = entries.next_entry()? {
                map.fallible().insert(key, value).map_err(A::Error::custom)?;
            }
            Ok(map)
        }
    }
}
