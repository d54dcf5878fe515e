//! Maps and sets to and from what serde knows. A guard is serialized through the version it shows.

use super::desk::Options;
use super::map::TwinMap;
use super::set::TwinSet;
use super::set_writer::SetVersion;
use super::version::Version;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

/// What a hostile length may reserve at most.
const TRUSTED: usize = 4096;

impl<K: Serialize, V: Serialize, S> Serialize for Version<K, V, S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<T: Serialize, S> Serialize for SetVersion<T, S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<K, V, S> Serialize for TwinMap<K, V, S>
where
    K: Hash + Eq + Clone + Serialize,
    V: Clone + Serialize,
    S: BuildHasher + Clone,
{
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        self.pin().serialize(serializer)
    }
}

impl<T, S> Serialize for TwinSet<T, S>
where
    T: Hash + Eq + Clone + Serialize,
    S: BuildHasher + Clone,
{
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        self.pin().serialize(serializer)
    }
}

impl<'de, K, V, S> Deserialize<'de> for TwinMap<K, V, S>
where
    K: Deserialize<'de> + Hash + Eq + Clone,
    V: Deserialize<'de> + Clone,
    S: BuildHasher + Clone + Default,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Version::deserialize(deserializer).map(|version| Self::over(version, Options::DEFAULT))
    }
}

impl<'de, T, S> Deserialize<'de> for TwinSet<T, S>
where
    T: Deserialize<'de> + Hash + Eq + Clone,
    S: BuildHasher + Clone + Default,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        SetVersion::deserialize(deserializer).map(|version| Self::over(version, Options::DEFAULT))
    }
}

struct Entries<K, V, S>(PhantomData<(K, V, S)>);

impl<'de, K, V, S> Visitor<'de> for Entries<K, V, S>
where
    K: Deserialize<'de> + Hash + Eq,
    V: Deserialize<'de>,
    S: BuildHasher + Default,
{
    type Value = Version<K, V, S>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut map = Version::default();
        map.make_room(entries.size_hint().unwrap_or(0).min(TRUSTED));
        while let Some(entry) = entries.next_entry()? {
            map.extend([entry]);
        }
        Ok(map)
    }
}

struct Elements<T, S>(PhantomData<(T, S)>);

impl<'de, T, S> Visitor<'de> for Elements<T, S>
where
    T: Deserialize<'de> + Hash + Eq,
    S: BuildHasher + Default,
{
    type Value = SetVersion<T, S>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut set = SetVersion::default();
        while let Some(element) = elements.next_element()? {
            set.extend([element]);
        }
        Ok(set)
    }
}

impl<'de, K, V, S> Deserialize<'de> for Version<K, V, S>
where
    K: Deserialize<'de> + Hash + Eq,
    V: Deserialize<'de>,
    S: BuildHasher + Default,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

impl<'de, T, S> Deserialize<'de> for SetVersion<T, S>
where
    T: Deserialize<'de> + Hash + Eq,
    S: BuildHasher + Default,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let map: TwinMap<String, u32> = [("a".to_owned(), 1), ("b".to_owned(), 2)].into();
        let other = map.clone();
        other.insert("c".to_owned(), 3);
        let text = serde_json::to_string(&other).unwrap();
        assert_eq!(text.len(), serde_json::to_string(&*other.pin()).unwrap().len());
        let back: TwinMap<String, u32> = serde_json::from_str(&text).unwrap();
        assert_eq!(back, other);
        assert_ne!(back, map);
        let set: TwinSet<u32> = serde_json::from_str("[1, 2, 2]").unwrap();
        assert_eq!(set.len(), 2);
        assert_eq!(set, serde_json::from_str(&serde_json::to_string(&set).unwrap()).unwrap());
        assert!(serde_json::from_str::<TwinSet<u32>>("{}").is_err());
    }
}
