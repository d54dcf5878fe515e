//! What is lent by who is outside between operations: a pointer, and the section that keeps it.
//!
//! **N1.** The section of a [`Ref`] is open on the seat on which its item was found, and has been
//! without a gap since before it was found: the guard of the operation hands its section over, or
//! another is entered while that one is open. So the item is not freed before the `Ref` is gone
//! (`reclaim` E10).
//! **N2.** A `Ref` that is forgotten leaves its section open: memory is held back, nothing else.
//! **N3.** A section belongs to one thread, and so does its `Ref`: it is neither `Send` nor `Sync`,
//! since a clone enters.

use super::Equivalent;
use super::inside::{KeyOf, Pin};
use super::item::{Item, Pointer};
use super::owned::ArcRef;
use crate::reclaim::Stay;
use crate::region::AllocError;
use crate::vocabulary::{Computed, Rejected};
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// An item, and the read section that keeps it: from the operations of an
/// [`ItemSet`](super::ItemSet) and of a [`Handle`](super::Handle).
///
/// It is no lock: holding one blocks nobody, in any order. It holds back the memory of its item,
/// and of what else was there when it was found.
///
/// ```
/// use quintet::ItemSet;
///
/// let set = ItemSet::<Box<(String, u32)>>::from([("ada".to_string(), 36)]);
/// let ada = set.get("ada").unwrap();
/// set.remove("ada");
/// assert_eq!(ada.1, 36); // still there for who holds it
/// ```
pub struct Ref<'a, P: Pointer> {
    item: NonNull<P::Item>,
    stay: Stay<'a>,
    shown: PhantomData<&'a P::Item>,
}

/// A part of an item, and the read section that keeps it: from [`Ref::map`].
pub struct MappedRef<'a, T: ?Sized> {
    part: NonNull<T>,
    #[allow(dead_code)] // it is its end that matters
    stay: Stay<'a>,
    shown: PhantomData<&'a T>,
}

impl<'a, P: Pointer> Ref<'a, P> {
    /// # Safety
    /// N1: the section is on the seat that found the item, and was entered when one that has kept
    /// it since was open.
    #[inline(always)]
    pub(super) unsafe fn new(stay: Stay<'a>, item: &P::Item) -> Self {
        Self { item: NonNull::from(item), stay, shown: PhantomData }
    }

    /// The same item, kept by one more section. An associated function: `clone` of a `Ref` is that
    /// of its item.
    #[allow(clippy::should_implement_trait)] // as it is with `std::cell::Ref`
    pub fn clone(this: &Self) -> Self {
        Self { item: this.item, stay: this.stay.another(), shown: PhantomData }
    }

    /// A part of the item, kept as the item is.
    pub fn map<T: ?Sized>(this: Self, part: impl FnOnce(&P::Item) -> &T) -> MappedRef<'a, T> {
        let part = NonNull::from(part(&this));
        MappedRef { part, stay: this.stay, shown: PhantomData }
    }
}

impl<T: Item + Send + Sync> Ref<'_, Arc<T>> {
    /// The item as the set holds it: clone it to keep it.
    pub fn as_arc(this: &Self) -> ArcRef<'_, T> {
        // SAFETY: the set's raw items are `Arc<T>`s; kept while this is borrowed (N1).
        unsafe { ArcRef::new(this.item.as_ptr().cast()) }
    }
}

impl<P: Pointer> Deref for Ref<'_, P> {
    type Target = P::Item;

    #[inline(always)]
    fn deref(&self) -> &P::Item {
        // SAFETY: N1.
        unsafe { self.item.as_ref() }
    }
}

impl<T: ?Sized> Deref for MappedRef<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: a part of an item that is kept (N1).
        unsafe { self.part.as_ref() }
    }
}

impl<P: Pointer<Item: fmt::Debug>> fmt::Debug for Ref<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<P: Pointer<Item: fmt::Display>> fmt::Display for Ref<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MappedRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Compares the items.
impl<P: Pointer<Item: PartialEq>> PartialEq for Ref<'_, P> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<P: Pointer<Item: Eq>> Eq for Ref<'_, P> {}

impl<'a, P: Pointer, S> Pin<'a, P, S> {
    /// Does an operation, and keeps what it shows: the section goes over to that.
    #[inline(always)]
    pub(crate) fn lend<T: Lent<'a, P>>(self, work: impl FnOnce(&'a Self) -> T) -> T::Kept {
        let guard = &raw const self;
        // SAFETY: the guard is there until its section goes over to what is kept. What is shown
        // refers to items, not to the guard, and `work` is an operation of this room, which shows
        // nothing of the kind to anybody else.
        let shown = work(unsafe { &*guard });
        shown.keep(self.access.stay())
    }

    /// Looks up many keys by one guard, and lends what was found of each.
    pub(crate) fn lend_many<'k, Q, T>(
        self,
        keys: impl ExactSizeIterator<Item = &'k Q> + Clone,
        items: &mut [T],
        show: impl Fn(Option<Ref<'a, P>>) -> T,
    ) where
        Q: ?Sized + Hash + Equivalent<KeyOf<P>> + 'k,
        S: BuildHasher,
    {
        let mut raws = vec![std::ptr::null_mut(); items.len()];
        self.find_many(keys, &mut raws, |raw| raw);
        self.lend_each(raws, items, show);
    }

    /// Many looks by one guard: each that has found something is kept by a section of its own.
    fn lend_each<T>(
        self,
        raws: impl IntoIterator<Item = *mut ()>,
        items: &mut [T],
        show: impl Fn(Option<Ref<'a, P>>) -> T,
    ) {
        let stay = self.access.stay();
        for (item, raw) in items.iter_mut().zip(raws) {
            // SAFETY: found by the guard, whose section is open.
            let found = unsafe { raw.cast::<P::Item>().as_ref() };
            // SAFETY: the same (N1).
            *item = show(found.map(|found| unsafe { Ref::new(stay.another(), found) }));
        }
    }
}

/// What an operation shows to who is inside. Each reference becomes a [`Ref`].
pub(crate) trait Lent<'a, P> {
    type Kept;
    /// Keeps what a guard has shown, by the section of that guard.
    fn keep(self, stay: Stay<'a>) -> Self::Kept;
}

impl<'a, P: Pointer> Lent<'a, P> for &'a P::Item {
    type Kept = Ref<'a, P>;
    #[inline(always)]
    fn keep(self, stay: Stay<'a>) -> Ref<'a, P> {
        // SAFETY: the section of the guard that has found it.
        unsafe { Ref::new(stay, self) }
    }
}

impl<'a, P, T: Lent<'a, P>> Lent<'a, P> for Option<T> {
    type Kept = Option<T::Kept>;
    #[inline(always)]
    fn keep(self, stay: Stay<'a>) -> Self::Kept {
        self.map(|shown| shown.keep(stay))
    }
}

impl<'a, P, T: Lent<'a, P>> Lent<'a, P> for Result<T, AllocError> {
    type Kept = Result<T::Kept, AllocError>;
    fn keep(self, stay: Stay<'a>) -> Self::Kept {
        self.map(|shown| shown.keep(stay))
    }
}

/// Of `replace`.
impl<'a, P: Pointer> Lent<'a, P> for Result<&'a P::Item, P> {
    type Kept = Result<Ref<'a, P>, P>;
    fn keep(self, stay: Stay<'a>) -> Self::Kept {
        self.map(|shown| shown.keep(stay))
    }
}

/// Of `remove_if`.
impl<'a, P: Pointer> Lent<'a, P> for Result<Option<&'a P::Item>, &'a P::Item> {
    type Kept = Result<Option<Ref<'a, P>>, Ref<'a, P>>;
    fn keep(self, stay: Stay<'a>) -> Self::Kept {
        match self {
            Ok(shown) => Ok(shown.keep(stay)),
            Err(shown) => Err(shown.keep(stay)),
        }
    }
}

/// Of `insert_new`.
impl<'a, P: Pointer> Lent<'a, P> for Result<(), Rejected<&'a P::Item, P>> {
    type Kept = Result<(), Rejected<Ref<'a, P>, P>>;
    fn keep(self, stay: Stay<'a>) -> Self::Kept {
        self.map_err(|Rejected { current, value }| Rejected { current: current.keep(stay), value })
    }
}

/// Of `compare_exchange`.
impl<'a, P: Pointer> Lent<'a, P> for Result<&'a P::Item, Rejected<Option<&'a P::Item>, P>> {
    type Kept = Result<Ref<'a, P>, Rejected<Option<Ref<'a, P>>, P>>;
    fn keep(self, stay: Stay<'a>) -> Self::Kept {
        match self {
            Ok(shown) => Ok(shown.keep(stay)),
            Err(Rejected { current, value }) => {
                Err(Rejected { current: current.keep(stay), value })
            }
        }
    }
}

/// What was done, and what was not stored.
impl<'a, P: Pointer, V> Lent<'a, P> for (Computed<&'a P::Item>, Option<V>) {
    type Kept = (Computed<Ref<'a, P>>, Option<V>);
    fn keep(self, stay: Stay<'a>) -> Self::Kept {
        (self.0.keep(stay), self.1)
    }
}

impl<'a, P: Pointer> Lent<'a, P> for Computed<&'a P::Item> {
    type Kept = Computed<Ref<'a, P>>;
    fn keep(self, stay: Stay<'a>) -> Self::Kept {
        let before = self.before.and_then(|shown| Some(shown).keep(stay.another()));
        Computed { before, after: self.after.keep(stay) }
    }
}
