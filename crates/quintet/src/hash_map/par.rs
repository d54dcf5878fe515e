//! Walking over a map or a set by several threads at once (feature `rayon`).

use super::inside::Inside;
use super::pair::{Key, Pair, Value};
use super::set::SetInside;
use crate::item_set;
use crate::reclaim::Hold;
use rayon::iter::plumbing::UnindexedConsumer;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::fmt;
use std::hash::BuildHasher;

/// The parallel iterator of [`Inside::par_iter`].
pub struct ParIter<'h, K: Key + 'h, V: Value + 'h>(item_set::ParIter<'h, Box<Pair<K, V>>>);

/// The parallel iterator of [`SetInside::par_iter`].
pub struct ParKeys<'h, T: Key + 'h>(ParIter<'h, T, ()>);

impl<K: Key, V: Value, S: BuildHasher, A: Hold> Inside<'_, K, V, S, A> {
    /// The entries that are there now, dealt out to the threads of rayon, as
    /// [`iter_exact`](Self::iter_exact) sees them. The references last as long as the guard is
    /// borrowed, so that they may be collected.
    ///
    /// ```
    /// use rayon::prelude::*;
    ///
    /// let squares: quintet::HashMap<u64, u64> = (0..1000).map(|n| (n, n * n)).collect();
    /// let pin = squares.pin();
    /// let even: Vec<_> = pin.par_iter().filter(|(_, square)| *square % 2 == 0).collect();
    /// assert_eq!(even.len(), 500);
    /// assert_eq!((&pin).into_par_iter().map(|(n, _)| n).max(), Some(&999));
    /// ```
    pub fn par_iter(&self) -> ParIter<'_, K, V> {
        ParIter(self.inner.par_iter())
    }
}

impl<T: Key, S: BuildHasher, A: Hold> SetInside<'_, T, S, A> {
    /// The elements that are there now, dealt out to the threads of rayon, as the
    /// [`Inside::par_iter`] of a map does.
    ///
    /// ```
    /// use rayon::prelude::*;
    ///
    /// let words = quintet::HashSet::from(["a", "be", "sea"]);
    /// assert_eq!(words.pin().par_iter().map(|word| word.len()).sum::<usize>(), 6);
    /// ```
    pub fn par_iter(&self) -> ParKeys<'_, T> {
        ParKeys(self.0.par_iter())
    }
}

impl<'h, K: Key, V: Value> ParallelIterator for ParIter<'h, K, V> {
    type Item = (&'h K, &'h V);

    fn drive_unindexed<C: UnindexedConsumer<Self::Item>>(self, consumer: C) -> C::Result {
        self.0.map(|pair| (&pair.key, &pair.value)).drive_unindexed(consumer)
    }
}

impl<'h, T: Key> ParallelIterator for ParKeys<'h, T> {
    type Item = &'h T;

    fn drive_unindexed<C: UnindexedConsumer<Self::Item>>(self, consumer: C) -> C::Result {
        self.0.map(|(element, ())| element).drive_unindexed(consumer)
    }
}

impl<'h, K: Key, V: Value, S, A> IntoParallelIterator for &'h Inside<'_, K, V, S, A>
where
    S: BuildHasher,
    A: Hold,
{
    type Item = (&'h K, &'h V);
    type Iter = ParIter<'h, K, V>;

    fn into_par_iter(self) -> ParIter<'h, K, V> {
        self.par_iter()
    }
}

impl<'h, T: Key, S: BuildHasher, A: Hold> IntoParallelIterator for &'h SetInside<'_, T, S, A> {
    type Item = &'h T;
    type Iter = ParKeys<'h, T>;

    fn into_par_iter(self) -> ParKeys<'h, T> {
        self.par_iter()
    }
}

impl<K: Key, V: Value> fmt::Debug for ParIter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParIter").finish_non_exhaustive()
    }
}

impl<T: Key> fmt::Debug for ParKeys<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParKeys").finish_non_exhaustive()
    }
}
