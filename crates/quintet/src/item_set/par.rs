//! Walking over a set by several threads at once (feature `rayon`).
//!
//! **W1.** The walk is that of `iter_exact`: one table, fixed when it begins, and kept by the
//! section of the guard or handle that is borrowed (`iter` I1, I3). Its steps are dealt out in
//! ranges; each step belongs to one of them, so that each item is met once, as by one thread
//! (`iter` I2).
//! **W2.** A walker needs no seat of its own: nothing that it follows can be freed while the access
//! is borrowed, and it follows the places of one table only.

use super::ItemSet;
use super::inside::Inside;
use super::item::Pointer;
use super::iter::Iter;
use super::table::Table;
use crate::reclaim::Hold;
use rayon::iter::plumbing::{Folder, UnindexedConsumer, UnindexedProducer, bridge_unindexed};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::fmt;
use std::hash::BuildHasher;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

/// The parallel iterator of [`Inside::par_iter`].
pub struct ParIter<'h, P: Pointer> {
    /// As in [`Iter`].
    table: Option<NonNull<Table>>,
    /// The steps that are still to be made: those behind the first, up to the second.
    steps: (usize, usize),
    items: PhantomData<&'h P::Item>,
}

// SAFETY: a range of a table that the borrowed access keeps, whichever thread looks at it (W2). It
// gives out references to items, which are `Sync`.
unsafe impl<P: Pointer> Send for ParIter<'_, P> {}

/// Fewer steps than these are not worth a thread.
const FEW: usize = 512;

impl<P: Pointer, S: BuildHasher, A: Hold, H: Deref<Target = ItemSet<P, S>>> Inside<A, H> {
    /// The items that are there now, dealt out to the threads of rayon, as
    /// [`iter_exact`](Self::iter_exact) sees them. The references last as long as the access is
    /// borrowed.
    ///
    /// ```
    /// use quintet::{ItemSet, item_set::Keyed};
    /// use rayon::prelude::*;
    ///
    /// struct Page(u64, String);
    /// impl Keyed for Page {
    ///     type Key = u64;
    ///     fn key(&self) -> &u64 {
    ///         &self.0
    ///     }
    /// }
    ///
    /// let pages = ItemSet::<Box<Page>>::new();
    /// pages.insert_many((0..1000).map(|number| Page(number, "text".repeat(3))));
    /// let bytes: usize = pages.pin().par_iter().map(|page| page.1.len()).sum();
    /// assert_eq!(bytes, 12_000);
    /// ```
    pub fn par_iter(&self) -> ParIter<'_, P> {
        ParIter::new(self.iter_exact())
    }
}

impl<'h, P: Pointer, S, A, H> IntoParallelIterator for &'h Inside<A, H>
where
    P::Item: Sync + 'h,
    S: BuildHasher,
    A: Hold,
    H: Deref<Target = ItemSet<P, S>>,
{
    type Item = &'h P::Item;
    type Iter = ParIter<'h, P>;

    fn into_par_iter(self) -> ParIter<'h, P> {
        self.par_iter()
    }
}

impl<'h, P: Pointer> ParIter<'h, P> {
    /// What a walk that has not begun will see.
    fn new(walk: Iter<'h, P>) -> Self {
        let (table, end) = walk.into_range();
        Self { table, steps: (0, end), items: PhantomData }
    }
}

impl<'h, P: Pointer> ParallelIterator for ParIter<'h, P>
where
    P::Item: Sync,
{
    type Item = &'h P::Item;

    fn drive_unindexed<C: UnindexedConsumer<Self::Item>>(self, consumer: C) -> C::Result {
        bridge_unindexed(self, consumer)
    }
}

impl<'h, P: Pointer> UnindexedProducer for ParIter<'h, P>
where
    P::Item: Sync,
{
    type Item = &'h P::Item;

    fn split(self) -> (Self, Option<Self>) {
        let (from, to) = self.steps;
        if to - from < 2 * FEW {
            return (self, None);
        }
        let middle = from + (to - from) / 2;
        let part = |steps| Self { table: self.table, steps, items: PhantomData };
        (part((from, middle)), Some(part((middle, to))))
    }

    fn fold_with<F: Folder<Self::Item>>(self, folder: F) -> F {
        // SAFETY: of a walk of this access (W1).
        folder.consume_iter(unsafe { Iter::<P>::of_range(self.table, self.steps) })
    }
}

impl<P: Pointer> fmt::Debug for ParIter<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParIter").finish_non_exhaustive()
    }
}
