//! Walking over a map by several threads at once (feature `rayon`).
//!
//! **R1.** A walk goes through the hashes in order, whatever the tables do (`iter` I1). Ranges of
//! hashes are walks of their own: each hash belongs to one of them, so that what holds for one walk
//! holds for all together.

use super::iter::Iter;
use super::{CopyMap, Handle, Plain};
use crate::hasher::DefaultHashBuilder;
use crate::reclaim::Access;
use rayon::iter::plumbing::{Folder, UnindexedConsumer, UnindexedProducer, bridge_unindexed};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::ops::RangeInclusive;

/// The parallel iterator of [`CopyMap::par_iter`].
pub struct ParIter<'m, K, V, S = DefaultHashBuilder> {
    map: &'m CopyMap<K, V, S>,
    /// The hashes.
    hashes: RangeInclusive<u64>,
}

/// A range of this size is not split any more.
const LEAST: u64 = 1 << 56;

impl<'m, K, V, S> ParIter<'m, K, V, S> {
    fn new(map: &'m CopyMap<K, V, S>) -> Self {
        Self { map, hashes: 0..=u64::MAX }
    }
}

impl<K: Plain + Hash + Eq, V: Plain, S: BuildHasher + Sync> CopyMap<K, V, S> {
    /// The entries, dealt out to the threads of rayon, each found as [`iter`](Self::iter) finds it.
    ///
    /// ```
    /// use rayon::prelude::*;
    ///
    /// let squares = quintet::CopyMap::<u64, u64>::new();
    /// squares.insert_many((0..1000).map(|n| (n, n * n)));
    /// assert_eq!(squares.par_iter().filter(|(_, square)| square % 2 == 0).count(), 500);
    /// ```
    pub fn par_iter(&self) -> ParIter<'_, K, V, S> {
        ParIter::new(self)
    }
}

impl<K, V, S, A> Handle<'_, K, V, S, A>
where
    K: Plain + Hash + Eq,
    V: Plain,
    S: BuildHasher + Sync,
    A: Access,
{
    /// [`CopyMap::par_iter`].
    pub fn par_iter(&self) -> ParIter<'_, K, V, S> {
        ParIter::new(self.map())
    }
}

impl<'m, K, V, S> IntoParallelIterator for &'m CopyMap<K, V, S>
where
    K: Plain + Hash + Eq,
    V: Plain,
    S: BuildHasher + Sync,
{
    type Item = (K, V);
    type Iter = ParIter<'m, K, V, S>;

    fn into_par_iter(self) -> ParIter<'m, K, V, S> {
        self.par_iter()
    }
}

impl<K, V, S> ParallelIterator for ParIter<'_, K, V, S>
where
    K: Plain + Hash + Eq,
    V: Plain,
    S: BuildHasher + Sync,
{
    type Item = (K, V);

    fn drive_unindexed<C: UnindexedConsumer<Self::Item>>(self, consumer: C) -> C::Result {
        bridge_unindexed(self, consumer)
    }
}

impl<K, V, S> UnindexedProducer for ParIter<'_, K, V, S>
where
    K: Plain + Hash + Eq,
    V: Plain,
    S: BuildHasher + Sync,
{
    type Item = (K, V);

    fn split(self) -> (Self, Option<Self>) {
        let (from, to) = (*self.hashes.start(), *self.hashes.end());
        if to - from < LEAST {
            return (self, None);
        }
        let middle = from + (to - from) / 2;
        let part = |hashes| Self { map: self.map, hashes };
        (part(from..=middle), Some(part(middle + 1..=to)))
    }

    fn fold_with<F: Folder<Self::Item>>(self, folder: F) -> F {
        folder.consume_iter(Iter::of_range(self.map, self.hashes))
    }
}

impl<K, V, S> fmt::Debug for ParIter<'_, K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParIter").finish_non_exhaustive()
    }
}
