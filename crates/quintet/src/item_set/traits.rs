//! What collections of the standard library do, too.

use super::inside::expect;
use super::item::{Duplicate, Pointer};
use super::{Handle, Inside, ItemSet};
use crate::hasher::DefaultHashBuilder;
use crate::reclaim::Hold;
use std::hash::BuildHasher;
use std::ops::Deref;
use std::ptr;

impl<P: Pointer, S: BuildHasher + Default, I: Into<P>> FromIterator<I> for ItemSet<P, S> {
    fn from_iter<T: IntoIterator<Item = I>>(items: T) -> Self {
        let set = Self::default();
        (&set).extend(items);
        set
    }
}

impl<P: Pointer, I: Into<P>, const N: usize> From<[I; N]> for ItemSet<P, DefaultHashBuilder> {
    fn from(items: [I; N]) -> Self {
        items.into_iter().collect()
    }
}

/// What a hostile or careless hint may reserve at most.
const TRUSTED: usize = 1 << 16;

impl<P: Pointer, S: BuildHasher, I: Into<P>> Extend<I> for &ItemSet<P, S> {
    fn extend<T: IntoIterator<Item = I>>(&mut self, items: T) {
        let (items, pin) = (items.into_iter(), self.pin());
        pin.reserve(items.size_hint().0.min(TRUSTED));
        pin.insert_many(items);
    }
}

impl<P: Pointer, S: BuildHasher, I: Into<P>> Extend<I> for ItemSet<P, S> {
    fn extend<T: IntoIterator<Item = I>>(&mut self, items: T) {
        (&*self).extend(items);
    }
}

/// A set of its own, with the settings of this one, and what is there during the walk: copies of
/// what boxes hold, shares of what is shared.
impl<P: Duplicate, S: BuildHasher + Clone> Clone for ItemSet<P, S> {
    fn clone(&self) -> Self {
        let settings = self.core.settings;
        let set = expect(Self::with_settings(settings, self.hasher.clone(), false));
        let (ours, theirs) = (self.pin(), set.pin());
        theirs.reserve(self.len());
        theirs.insert_many(ours.iter_exact().map(|item| {
            let raw = ptr::from_ref(item).cast_mut().cast();
            // SAFETY: a raw item of the set, which the guard keeps.
            unsafe { P::duplicate(raw) }
        }));
        drop(theirs);
        set
    }
}

/// Whether both hold equal items under the same keys. Exact when nobody writes.
impl<P: Pointer<Item: PartialEq>, S: BuildHasher, T: BuildHasher> PartialEq<ItemSet<P, T>>
    for ItemSet<P, S>
{
    fn eq(&self, other: &ItemSet<P, T>) -> bool {
        let (ours, theirs) = (self.pin(), other.pin());
        self.len() == other.len()
            && ours
                .iter_exact()
                .all(|item| theirs.find_item(item).is_some_and(|found| found == item))
    }
}

impl<P: Pointer<Item: Eq>, S: BuildHasher> Eq for ItemSet<P, S> {}

impl<P: Pointer, S: BuildHasher, A: Hold, H: Deref<Target = ItemSet<P, S>>> Inside<A, H> {
    /// The item that has the key of another.
    fn find_item(&self, item: &P::Item) -> Option<&P::Item> {
        let hash = self.set().hash_of_item(item);
        self.show(self.find_slowly(hash, ItemSet::<P, S>::item_matcher(item)))
    }
}

impl<P: Pointer, S: BuildHasher, I: Into<P>> Extend<I> for Handle<'_, P, S> {
    fn extend<T: IntoIterator<Item = I>>(&mut self, items: T) {
        self.insert_many(items);
    }
}
