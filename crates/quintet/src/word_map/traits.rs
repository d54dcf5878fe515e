//! The usual traits.

use super::{Word, WordMap};
use std::fmt;

impl<K: Word, V: Word> Default for WordMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// Prints the entries as [`Handle::iter`](super::Handle::iter) finds them.
impl<K: Word + fmt::Debug, V: Word + fmt::Debug> fmt::Debug for WordMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.pin().iter()).finish()
    }
}

impl<K: Word, V: Word> FromIterator<(K, V)> for WordMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let entries = entries.into_iter();
        let map = Self::with_capacity(entries.size_hint().0);
        (&map).extend(entries);
        map
    }
}

impl<K: Word, V: Word> Extend<(K, V)> for WordMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        (&*self).extend(entries);
    }
}

/// A shared map can be extended by several threads at a time.
impl<K: Word, V: Word> Extend<(K, V)> for &WordMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        let handle = self.handle();
        entries.into_iter().for_each(|(key, value)| {
            handle.insert(key, value);
        });
    }
}

#[cfg(feature = "serde")]
mod serde_impls {
    use super::{Word, WordMap};
    use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
    use serde::ser::{Serialize, Serializer};
    use std::fmt;
    use std::marker::PhantomData;

    /// As a map of the entries that [`Handle::iter`](crate::word_map::Handle::iter) finds.
    impl<K: Word + Serialize, V: Word + Serialize> Serialize for WordMap<K, V> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.pin().iter())
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
            {
                let handle = map.handle();
                while let Some((key, value)) = entries.next_entry()? {
                    handle.insert(key, value);
                }
            }
            Ok(map)
        }
    }
}
