//! What operations of all tables take and return.

use std::error::Error;
use std::fmt;

/// What the closure of a `compute` wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "an answer does nothing by itself"]
pub enum Compute<V> {
    /// All stays as it was found, or absent.
    Keep,
    /// This is stored, in place of what was found.
    Insert(V),
    /// What was found goes.
    Remove,
}

/// What a `compute` has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Computed<V> {
    /// What the closure was shown when its answer was carried out.
    pub before: Option<V>,
    /// What is there since.
    pub after: Option<V>,
}

/// A value was not stored: something else is there.
///
/// From `insert_new`, where `current` is what is there, and from `compare_exchange`, where it is an
/// `Option` of that.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rejected<C, V> {
    /// What is there.
    pub current: C,
    /// What was to be stored.
    pub value: V,
}

impl<C: fmt::Debug, V> fmt::Debug for Rejected<C, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejected").field("current", &self.current).finish_non_exhaustive()
    }
}

impl<C, V> fmt::Display for Rejected<C, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not stored: something else is there")
    }
}

impl<C: fmt::Debug, V> Error for Rejected<C, V> {}

/// A table, handle or guard whose operations return an error when memory cannot be had, where they
/// would panic otherwise.
///
/// From the method `fallible` of each.
pub struct Fallible<'a, T: ?Sized>(pub(crate) &'a T);

impl<T: ?Sized> Clone for Fallible<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Fallible<'_, T> {}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Fallible<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fallible").field(&self.0).finish()
    }
}
