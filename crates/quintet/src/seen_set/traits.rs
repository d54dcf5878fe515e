//! What the standard library asks of a set.

use super::offer::IntoRecord;
use super::record::Record;
use super::{Iter, SeenPrints, SeenSet};
use std::fmt;
use std::hash::{BuildHasher, Hash};

impl<R: Record + ?Sized, S: Default> Default for SeenSet<R, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

/// Tells how many records there are, and what they take.
impl<R: Record + ?Sized, S> fmt::Debug for SeenSet<R, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = self.made().map_or((0, 0), |inner| {
            let account = &inner.core.account;
            (inner.core.len(), account.tables() + account.records())
        });
        let mut show = out.debug_struct("SeenSet");
        show.field("len", &figures.0).field("memory_bytes", &figures.1).finish_non_exhaustive()
    }
}

/// Sets are equal if they hold equal records; ids do not count. Exact when nobody inserts.
impl<R: Record + ?Sized, S: BuildHasher> PartialEq for SeenSet<R, S> {
    fn eq(&self, other: &Self) -> bool {
        let is_there = |record: &R| {
            other.made().is_some_and(|inner| {
                let hash = record.hash_by(&other.hasher);
                inner.find_by(&inner.core.pin(), hash, |kept| kept.is(record)).is_some()
            })
        };
        self.len() == other.len() && self.iter().all(|(_, record)| is_there(record))
    }
}

impl<R: Record + ?Sized, S: BuildHasher> Eq for SeenSet<R, S> {}

impl<R: Record + ?Sized, S: BuildHasher, Q: IntoRecord<R>> Extend<Q> for &SeenSet<R, S> {
    fn extend<I: IntoIterator<Item = Q>>(&mut self, records: I) {
        self.insert_many(records);
    }
}

impl<R: Record + ?Sized, S: BuildHasher, Q: IntoRecord<R>> Extend<Q> for SeenSet<R, S> {
    fn extend<I: IntoIterator<Item = Q>>(&mut self, records: I) {
        self.insert_many(records);
    }
}

impl<R, S, Q> FromIterator<Q> for SeenSet<R, S>
where
    R: Record + ?Sized,
    S: BuildHasher + Default,
    Q: IntoRecord<R>,
{
    fn from_iter<I: IntoIterator<Item = Q>>(records: I) -> Self {
        let set = Self::default();
        set.insert_many(records);
        set
    }
}

impl<R, S, Q, const N: usize> From<[Q; N]> for SeenSet<R, S>
where
    R: Record + ?Sized,
    S: BuildHasher + Default,
    Q: IntoRecord<R>,
{
    fn from(records: [Q; N]) -> Self {
        records.into_iter().collect()
    }
}

impl<'s, R: Record + ?Sized, S: BuildHasher> IntoIterator for &'s SeenSet<R, S> {
    type Item = (super::RecordId, &'s R);
    type IntoIter = Iter<'s, R, S>;

    fn into_iter(self) -> Iter<'s, R, S> {
        self.iter()
    }
}

impl<S: Default> Default for SeenPrints<S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

/// Tells how many fingerprints there are, and what they take.
impl<S> fmt::Debug for SeenPrints<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut show = out.debug_struct("SeenPrints");
        let (len, bytes) = (self.len(), self.memory_bytes());
        show.field("len", &len).field("memory_bytes", &bytes).finish_non_exhaustive()
    }
}

impl<Q: Hash, S: BuildHasher> Extend<Q> for SeenPrints<S> {
    fn extend<I: IntoIterator<Item = Q>>(&mut self, records: I) {
        self.insert_many(records);
    }
}

impl<Q: Hash, S: BuildHasher> Extend<Q> for &SeenPrints<S> {
    fn extend<I: IntoIterator<Item = Q>>(&mut self, records: I) {
        self.insert_many(records);
    }
}

impl<Q: Hash, S: BuildHasher + Default> FromIterator<Q> for SeenPrints<S> {
    fn from_iter<I: IntoIterator<Item = Q>>(records: I) -> Self {
        let mut set = Self::default();
        set.extend(records);
        set
    }
}
