//! A seat of one's own that is outside between operations.

use super::ItemSet;
use super::inside::Pin;
use super::item::Pointer;
use crate::hasher::DefaultHashBuilder;
use crate::home::Home;
use crate::reclaim::{self, Pinned};
use crate::vocabulary::Fallible;
use std::fmt;

/// A seat of one's own at an [`ItemSet`], from [`ItemSet::handle`] or [`ItemSet::owned_handle`]:
/// for a hot loop, or a thread or task that stays.
///
/// It has the operations of the set itself, and lends the same [`Ref`](super::Ref)s. Between
/// operations it is outside and holds nothing back. It is `Send`, and never `Sync`; what it lends
/// stays on its thread, and goes before it does:
///
/// ```compile_fail
/// # use quintet::ItemSet;
/// # let set = ItemSet::<Box<String>>::new();
/// let handle = set.handle();
/// let word = handle.get("apple");
/// std::thread::scope(|scope| scope.spawn(move || handle.contains("apple"))); // `word` is still borrowed
/// assert!(word.is_none());
/// ```
pub struct Handle<'s, P: Pointer, S = DefaultHashBuilder> {
    /// Before the home: the seat is given back while the set is there.
    seat: reclaim::Handle,
    home: Home<'s, ItemSet<P, S>>,
}

impl<'s, P: Pointer, S> Handle<'s, P, S> {
    pub(super) fn new(home: Home<'s, ItemSet<P, S>>) -> Self {
        Self { seat: home.core.domain.join(), home }
    }

    /// The set.
    #[inline(always)]
    pub fn set(&self) -> &ItemSet<P, S> {
        &self.home
    }

    /// A guard on this seat: for several operations in a row, and for plain references.
    #[inline(always)]
    pub fn pin(&self) -> Pin<'_, P, S> {
        Pin::new(Pinned::on(&self.seat), &self.home)
    }

    /// Frees what this handle has taken out and nobody can refer to any more. Does nothing while
    /// something that it lent is alive.
    pub fn flush(&self) {
        self.seat.flush();
    }

    /// The same operations, with an [`AllocError`](crate::AllocError) where they would panic.
    pub fn fallible(&self) -> Fallible<'_, Self> {
        Fallible(self)
    }
}

impl<P: Pointer, S> fmt::Debug for Handle<'_, P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("len", &self.len()).finish_non_exhaustive()
    }
}
