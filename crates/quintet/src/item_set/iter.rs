//! Walking over a set that changes.
//!
//! **I1.** The walk fixes a table S that was, at one moment, the root without a prev: every item
//! that was there is in a place of S.
//! **I2.** An item that stays keeps its place, and a replacement takes over the place of its key; a
//! place has one slot. So what is there throughout is met once.
//! **I3.** The section holds everything from before the root was loaded (`reclaim` E9): no load
//! needs a check.

use super::core::Core;
use super::inside::{Inside, Pin, QuietHandle, expect};
use super::item::Pointer;
use super::lend::Ref;
use super::table::Table;
use super::{Handle, ItemSet, shard};
use crate::hasher::DefaultHashBuilder;
use crate::reclaim::{Hold, Stay, Visit};
use crate::region::AllocError;
use std::fmt;
use std::hash::BuildHasher;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

/// The iterator of [`Inside::iter`] and [`Inside::iter_exact`].
pub struct Iter<'h, P: Pointer> {
    /// Protected by the section of the handle that is borrowed (I3).
    table: Option<NonNull<Table>>,
    /// Steps made: slots of an ordered table, else places.
    step: usize,
    /// The last step, if it is fixed.
    end: Option<usize>,
    items: PhantomData<&'h P::Item>,
}

impl<P: Pointer> Iter<'_, P> {
    pub(super) fn new(core: &Core, visit: &Visit<'_>, exact: bool) -> Self {
        expect(Self::try_new(core, visit, exact))
    }

    pub(super) fn try_new(core: &Core, visit: &Visit<'_>, exact: bool) -> Result<Self, AllocError> {
        visit.hold_all();
        // Ending a migration needs memory only if its new table turned out too small (`grow` G7).
        let table = core.settle(visit)?;
        let end = exact.then(|| table.map_or(0, Table::end_of_walk));
        Ok(Self { table: table.map(NonNull::from), step: 0, end, items: PhantomData })
    }
}

#[cfg(feature = "rayon")]
impl<P: Pointer> Iter<'_, P> {
    /// The table of an exact walk that has not begun, and its last step.
    pub(super) fn into_range(self) -> (Option<NonNull<Table>>, usize) {
        (self.table, self.end.unwrap_or(0))
    }

    /// A part of such a walk: the steps behind the first, up to the second.
    ///
    /// # Safety
    /// The table comes from [`into_range`](Self::into_range) of a walk of the same items, and the
    /// access that it was made with is borrowed for as long as this lives.
    pub(super) unsafe fn of_range(table: Option<NonNull<Table>>, steps: (usize, usize)) -> Self {
        Self { table, step: steps.0, end: Some(steps.1), items: PhantomData }
    }
}

impl<P: Pointer> Iter<'_, P> {
    /// The next item, as the set holds it.
    pub(crate) fn next_raw(&mut self) -> Option<NonNull<P::Item>> {
        // SAFETY: I3.
        let table = unsafe { self.table?.as_ref() };
        while self.step < self.end.unwrap_or_else(|| table.end_of_walk()) {
            self.step += 1;
            if let Some(item) = NonNull::new(table.walk_at(self.step).cast()) {
                return Some(item);
            }
        }
        None
    }
}

impl<'h, P: Pointer> Iterator for Iter<'h, P> {
    type Item = &'h P::Item;

    fn next(&mut self) -> Option<&'h P::Item> {
        // SAFETY: I3; a place holds an item of `P` or null.
        self.next_raw().map(|item| unsafe { item.as_ref() })
    }
}

impl<P: Pointer> FusedIterator for Iter<'_, P> {}

impl<P: Pointer> fmt::Debug for Iter<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("step", &self.step).finish_non_exhaustive()
    }
}

/// The iterator of [`ItemSet::iter`] and [`ItemSet::iter_exact`]: each item is kept by a section of
/// its own, and the walk by another.
pub struct Refs<'a, P: Pointer> {
    items: Iter<'a, P>,
    stay: Stay<'a>,
}

impl<'a, P: Pointer> Refs<'a, P> {
    /// Goes on with the walk of a guard, which ends and hands over its section.
    pub(crate) fn new<S: BuildHasher>(pin: Pin<'a, P, S>, exact: bool) -> Self {
        let items = pin.visit(|visit| Iter::new(&pin.set().core, visit, exact));
        Self { items, stay: pin.access.stay() }
    }
}

impl<'a, P: Pointer> Iterator for Refs<'a, P> {
    type Item = Ref<'a, P>;

    fn next(&mut self) -> Option<Ref<'a, P>> {
        let item = self.items.next()?;
        // SAFETY: found by a walk in this section, and kept by another on its seat.
        Some(unsafe { Ref::new(self.stay.another(), item) })
    }
}

impl<P: Pointer> FusedIterator for Refs<'_, P> {}

impl<P: Pointer> fmt::Debug for Refs<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refs").field("step", &self.items.step).finish_non_exhaustive()
    }
}

/// The iterator of [`Inside::drain`]. What it has not come to when it is dropped is taken out then,
/// except inside of a comparison of keys, where nothing can be.
pub struct Drain<'h, P: Pointer, I = QuietHandle<'h, P>> {
    items: Iter<'h, P>,
    inside: &'h I,
    /// Takes out an item that was seen. Here, so that dropping needs to know nothing of the kind of
    /// access.
    take: fn(&I, &P::Item) -> bool,
}

impl<'h, P: Pointer, A: Hold, H> Drain<'h, P, Inside<A, H>> {
    pub(super) fn new<S: BuildHasher>(inside: &'h Inside<A, H>, items: Iter<'h, P>) -> Self
    where
        H: Deref<Target = ItemSet<P, S>>,
    {
        Self { items, inside, take: Inside::take_seen }
    }
}

impl<'h, P: Pointer, I> Iterator for Drain<'h, P, I> {
    type Item = &'h P::Item;

    fn next(&mut self) -> Option<&'h P::Item> {
        self.items.find(|item| (self.take)(self.inside, item))
    }
}

impl<P: Pointer, I> FusedIterator for Drain<'_, P, I> {}

impl<P: Pointer, I> Drop for Drain<'_, P, I> {
    fn drop(&mut self) {
        take_rest(self);
    }
}

impl<P: Pointer, I> fmt::Debug for Drain<'_, P, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").field("step", &self.items.step).finish_non_exhaustive()
    }
}

/// The iterator of [`ItemSet::drain`]. What it has not come to when it is dropped is taken out
/// then, except inside of a comparison of keys, where nothing can be.
pub struct DrainRefs<'a, P: Pointer, S: BuildHasher = DefaultHashBuilder> {
    items: Refs<'a, P>,
    /// Another section of the same seat, to write by.
    pin: Pin<'a, P, S>,
}

impl<'a, P: Pointer, S: BuildHasher> DrainRefs<'a, P, S> {
    pub(crate) fn new(walk: Pin<'a, P, S>, pin: Pin<'a, P, S>) -> Self {
        Self { items: Refs::new(walk, true), pin }
    }
}

impl<'a, P: Pointer, S: BuildHasher> Iterator for DrainRefs<'a, P, S> {
    type Item = Ref<'a, P>;

    fn next(&mut self) -> Option<Ref<'a, P>> {
        self.items.find(|item| self.pin.take_seen(item))
    }
}

impl<P: Pointer, S: BuildHasher> FusedIterator for DrainRefs<'_, P, S> {}

impl<P: Pointer, S: BuildHasher> Drop for DrainRefs<'_, P, S> {
    fn drop(&mut self) {
        take_rest(self);
    }
}

impl<P: Pointer, S: BuildHasher> fmt::Debug for DrainRefs<'_, P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DrainRefs").field("step", &self.items.items.step).finish_non_exhaustive()
    }
}

/// Takes out what a drain has not come to, when it is dropped. Inside of a comparison, where a
/// write is refused by a panic, it takes out nothing: the drain may be dropped because of just that
/// panic, and a second one would end the process.
fn take_rest(drain: &mut impl Iterator) {
    if !shard::is_busy() {
        drain.for_each(drop);
    }
}

/// What a set held: the iterator of a set that is consumed.
pub struct IntoIter<P>(std::vec::IntoIter<P>);

impl<P> Iterator for IntoIter<P> {
    type Item = P;

    fn next(&mut self) -> Option<P> {
        self.0.next()
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<P> ExactSizeIterator for IntoIter<P> {}
impl<P> FusedIterator for IntoIter<P> {}

impl<P> fmt::Debug for IntoIter<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoIter").field("left", &self.len()).finish_non_exhaustive()
    }
}

impl<P: Pointer, S> IntoIterator for ItemSet<P, S> {
    type Item = P;
    type IntoIter = IntoIter<P>;

    fn into_iter(mut self) -> IntoIter<P> {
        let mut items = Vec::with_capacity(self.len());
        // SAFETY: made by `into_raw`, and taken out once.
        self.core.dismantle(|raw| items.push(unsafe { P::from_raw(raw) }));
        IntoIter(items.into_iter())
    }
}

impl<'h, P, S, A, H> IntoIterator for &'h Inside<A, H>
where
    P: Pointer + 'h,
    S: BuildHasher,
    A: Hold,
    H: Deref<Target = ItemSet<P, S>>,
{
    type Item = &'h P::Item;
    type IntoIter = Iter<'h, P>;

    fn into_iter(self) -> Iter<'h, P> {
        self.iter()
    }
}

impl<'a, P: Pointer, S: BuildHasher> IntoIterator for &'a ItemSet<P, S> {
    type Item = Ref<'a, P>;
    type IntoIter = Refs<'a, P>;

    fn into_iter(self) -> Refs<'a, P> {
        self.iter()
    }
}

impl<'a, P: Pointer, S: BuildHasher> IntoIterator for &'a Handle<'_, P, S> {
    type Item = Ref<'a, P>;
    type IntoIter = Refs<'a, P>;

    fn into_iter(self) -> Refs<'a, P> {
        self.iter()
    }
}
