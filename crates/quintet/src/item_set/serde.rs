//! Sets to and from sequences of their items.

use super::ItemSet;
use super::item::Pointer;
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::hash::BuildHasher;
use std::marker::PhantomData;

impl<P: Pointer<Item: Serialize>, S: BuildHasher> Serialize for ItemSet<P, S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.collect_seq(&self.pin())
    }
}

struct Items<P, S>(PhantomData<(P, S)>);

impl<'de, P, S> Visitor<'de> for Items<P, S>
where
    P: Pointer<Item: Deserialize<'de>> + From<P::Item>,
    S: BuildHasher + Default,
{
    type Value = ItemSet<P, S>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a sequence of items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let set = ItemSet::default();
        while let Some(item) = items.next_element::<P::Item>()? {
            set.insert(item);
        }
        Ok(set)
    }
}

impl<'de, P, S> Deserialize<'de> for ItemSet<P, S>
where
    P: Pointer<Item: Deserialize<'de>> + From<P::Item>,
    S: BuildHasher + Default,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Items(PhantomData))
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn there_and_back() {
        let set: ItemSet<Box<(String, u32)>> = [("a".to_owned(), 1), ("b".to_owned(), 2)].into();
        let text = serde_json::to_string(&set).unwrap();
        let back: ItemSet<Arc<(String, u32)>> = serde_json::from_str(&text).unwrap();
        assert_eq!(back.len(), 2);
        assert_eq!(back.get("b").map(|entry| entry.1), Some(2));
        let numbers: ItemSet<Box<u32>> = serde_json::from_str("[1, 2, 2]").unwrap();
        assert_eq!(numbers.len(), 2);
        assert!(serde_json::from_str::<ItemSet<Box<u32>>>("{}").is_err());
    }
}
