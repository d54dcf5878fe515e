//! Items beyond a reference: shared ones, and those that have left their set.

use super::core::Outcome;
use super::handle::Handle;
use super::item::Pointer;
use crate::hasher::DefaultHashBuilder;
use crate::reclaim::{Hold, QuietHandle};
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

/// An item that was taken out of a set, from [`Handle::put_owned`] or [`Handle::remove_owned`]. Others may still be reading it: dropping this
/// hands it to the set, which drops it when nobody can refer to it any more. Forgetting this leaks the item.
pub struct Removed<'h, P: Pointer, S = DefaultHashBuilder, A: Hold = QuietHandle> {
    handle: &'h Handle<'h, P, S, A>,
    raw: *mut (),
    birth: u64,
}

impl<'h, P: Pointer, S, A: Hold> Removed<'h, P, S, A> {
    pub(super) fn new(handle: &'h Handle<'_, P, S, A>, outcome: Outcome) -> Option<Self> {
        outcome.taken.map(|birth| Self { handle, raw: outcome.before, birth })
    }
}

impl<P: Pointer, S, A: Hold> Deref for Removed<'_, P, S, A> {
    type Target = P::Item;

    fn deref(&self) -> &P::Item {
        // SAFETY: an item of `P` that is not retired before this is dropped.
        unsafe { &*self.raw.cast::<P::Item>() }
    }
}

impl<P: Pointer, S, A: Hold> Drop for Removed<'_, P, S, A> {
    fn drop(&mut self) {
        self.handle.retire(self.raw, self.birth);
    }
}

impl<P: Pointer, S, A: Hold> fmt::Debug for Removed<'_, P, S, A>
where
    P::Item: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Removed").field(&**self).finish()
    }
}

/// A shared item as [`Handle::get_arc`] found it: clone it to keep it.
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
