//! Sets to and from what serde knows: a sequence of records. Ids, parents and labels are not kept.

use super::SeenSet;
use super::record::Record;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

impl<R: Record + Serialize + ?Sized, S: BuildHasher> Serialize for SeenSet<R, S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.collect_seq(self.iter().map(|(_, record)| record))
    }
}

/// Reads elements of type `E`, and inserts what they lend.
struct Records<R: ?Sized, S, E>(PhantomData<(Box<R>, S, E)>);

/// What is read for a set of records of type `R`.
trait Element<R: Record + ?Sized> {
    fn insert<S: BuildHasher>(self, set: &SeenSet<R, S>) -> Result<(), super::SeenError>;
}

/// An element that is a record.
struct Whole<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Whole<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self)
    }
}

impl<T: Hash + Eq + Send + Sync> Element<T> for Whole<T> {
    fn insert<S: BuildHasher>(self, set: &SeenSet<T, S>) -> Result<(), super::SeenError> {
        let Self(record) = self;
        set.fallible().insert::<T>(record).map(|_| ())
    }
}

impl Element<[u8]> for Vec<u8> {
    fn insert<S: BuildHasher>(self, set: &SeenSet<[u8], S>) -> Result<(), super::SeenError> {
        set.fallible().insert(&self).map(|_| ())
    }
}

impl<'de, R, S, E> Visitor<'de> for Records<R, S, E>
where
    R: Record + ?Sized,
    S: BuildHasher + Default,
    E: Element<R> + Deserialize<'de>,
{
    type Value = SeenSet<R, S>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut records: A) -> Result<Self::Value, A::Error> {
        let set = SeenSet::default();
        while let Some(record) = records.next_element::<E>()? {
            record.insert(&set).map_err(A::Error::custom)?;
        }
        Ok(set)
    }
}

impl<'de, T, S> Deserialize<'de> for SeenSet<T, S>
where
    T: Deserialize<'de> + Hash + Eq + Send + Sync,
    S: BuildHasher + Default,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Records::<T, S, Whole<T>>(PhantomData))
    }
}

impl<'de, S: BuildHasher + Default> Deserialize<'de> for SeenSet<[u8], S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Records::<[u8], S, Vec<u8>>(PhantomData))
    }
}
