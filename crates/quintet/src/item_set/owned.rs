//! Items beyond a reference: shared ones, and those that have left their set.

use super::ItemSet;
use super::core::Outcome;
use super::inside::{Inside, QuietHandle};
use super::item::Pointer;
use crate::reclaim::Hold;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

/// An item that was taken out of a set, from [`Inside::insert_owned`] or [`Inside::remove_owned`].
/// Others may still be reading it: dropping this hands it to the set, which drops it when nobody
/// can refer to it any more. Forgetting this leaks the item.
pub struct Removed<'h, P: Pointer, I = QuietHandle<'h, P>> {
    inside: &'h I,
    raw: *mut (),
    birth: u64,
    /// Here, so that dropping needs to know nothing of the kind of access.
    retire: fn(&I, *mut (), u64),
    item: PhantomData<P>,
}

impl<'h, P: Pointer, A: Hold, H> Removed<'h, P, Inside<A, H>> {
    pub(super) fn new<S>(inside: &'h Inside<A, H>, outcome: Outcome) -> Option<Self>
    where
        H: Deref<Target = ItemSet<P, S>>,
    {
        let raw = outcome.before;
        let retire = |inside: &Inside<A, H>, raw, birth| inside.retire(raw, birth, false);
        outcome.taken.map(|birth| Self { inside, raw, birth, retire, item: PhantomData })
    }
}

impl<P: Pointer, I> Deref for Removed<'_, P, I> {
    type Target = P::Item;

    fn deref(&self) -> &P::Item {
        // SAFETY: an item of `P` that is not retired before this is dropped.
        unsafe { &*self.raw.cast::<P::Item>() }
    }
}

impl<P: Pointer, I> Drop for Removed<'_, P, I> {
    fn drop(&mut self) {
        (self.retire)(self.inside, self.raw, self.birth);
    }
}

impl<P: Pointer<Item: fmt::Debug>, I> fmt::Debug for Removed<'_, P, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Removed").field(&**self).finish()
    }
}

/// A shared item as [`Inside::get_arc`] found it: clone it to keep it.
pub struct ArcRef<'h, T> {
    /// The set's own count, which is not ours to give back.
    item: ManuallyDrop<Arc<T>>,
    handle: PhantomData<&'h T>,
}

impl<T> ArcRef<'_, T> {
    /// # Safety
    /// `raw` came from `Arc::into_raw` and is protected for the lifetime.
    pub(super) unsafe fn new(raw: *mut ()) -> Self {
        // SAFETY: the caller's promise; never dropped, so that the count stays the set's.
        let item = unsafe { Arc::from_raw(raw.cast_const().cast()) };
        Self { item: ManuallyDrop::new(item), handle: PhantomData }
    }
}

impl<T> Deref for ArcRef<'_, T> {
    type Target = Arc<T>;

    #[inline(always)]
    fn deref(&self) -> &Arc<T> {
        &self.item
    }
}

impl<T: fmt::Debug> fmt::Debug for ArcRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.item.fmt(f)
    }
}
