//! A seat of one's own that is outside between operations.

use super::HashMap;
use super::inside::Pin;
use super::pair::{Key, Pair, Value};
use crate::hasher::DefaultHashBuilder;
use crate::home::Home;
use crate::item_set;
use crate::reclaim::{self, Pinned};
use crate::vocabulary::Fallible;
use std::fmt;

/// A seat of one's own at a [`HashMap`], from [`HashMap::handle`] or [`HashMap::owned_handle`]: for
/// a hot loop, or a thread or task that stays.
///
/// It has the operations of the map itself, and lends the same [`Ref`](super::Ref)s. Between
/// operations it is outside and holds nothing back. It is `Send`, and never `Sync`; what it lends
/// stays on its thread, and goes before it does.
pub struct Handle<'m, K: Key, V: Value, S = DefaultHashBuilder> {
    /// Before the home: the seat is given back while the map is there.
    seat: reclaim::Handle,
    home: Home<'m, HashMap<K, V, S>>,
}

impl<'m, K: Key, V: Value, S> Handle<'m, K, V, S> {
    pub(super) fn new(home: Home<'m, HashMap<K, V, S>>) -> Self {
        Self { seat: home.pairs.domain().join(), home }
    }

    /// The map.
    #[inline(always)]
    pub fn map(&self) -> &HashMap<K, V, S> {
        &self.home
    }

    /// A guard on this seat: for several operations in a row, and for plain references.
    #[inline(always)]
    pub fn pin(&self) -> Pin<'_, K, V, S> {
        Pin::on(Pinned::on(&self.seat), &self.home)
    }

    /// The same below.
    #[inline(always)]
    pub(super) fn inner(&self) -> item_set::Pin<'_, Box<Pair<K, V>>, S> {
        item_set::Pin::new(Pinned::on(&self.seat), &self.home.pairs)
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

impl<K: Key, V: Value, S> fmt::Debug for Handle<'_, K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("len", &self.len()).finish_non_exhaustive()
    }
}
