//! Maps to and from what serde knows.

use super::HashMap;
use super::pair::{Key, Value};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::hash::BuildHasher;
use std::marker::PhantomData;

impl<K, V, S> Serialize for HashMap<K, V, S>
where
    K: Key + Serialize,
    V: Value + Serialize,
    S: BuildHasher,
{
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.collect_map(&self.pin())
    }
}

struct Entries<K, V, S>(PhantomData<(K, V, S)>);

impl<'de, K, V, S> Visitor<'de> for Entries<K, V, S>
where
    K: Key + Deserialize<'de>,
    V: Value + Deserialize<'de>,
    S: BuildHasher + Default,
{
    type Value = HashMap<K, V, S>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let map = HashMap::default();
        let pin = map.pin();
        while let Some((key, value)) = entries.next_entry()? {
            pin.insert(key, value);
        }
        drop(pin);
        Ok(map)
    }
}

impl<'de, K, V, S> Deserialize<'de> for HashMap<K, V, S>
where
    K: Key + Deserialize<'de>,
    V: Value + Deserialize<'de>,
    S: BuildHasher + Default,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let map = HashMap::from([("a".to_string(), 1), ("b".to_string(), 2)]);
        let text = serde_json::to_string(&map).unwrap();
        let back: HashMap<String, i32> = serde_json::from_str(&text).unwrap();
        assert_eq!(back, map);
        let last: HashMap<String, i32> = serde_json::from_str(r#"{"a": 1, "a": 2}"#).unwrap();
        assert_eq!(last.get_cloned("a"), Some(2));
        assert!(serde_json::from_str::<HashMap<String, i32>>("[]").is_err());
    }
}
