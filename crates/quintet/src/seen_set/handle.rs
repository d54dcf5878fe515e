//! A thread's registered access.

use super::core::Worker;
use super::inner::{At, Inner};
use super::iter::Iter;
use super::many::GROUP;
use super::offer::{AsRecord, IntoRecord};
use super::operations::{operations, refused};
use super::record::Record;
use super::{Insertion, RecordId, SeenError, SeenSet, SeenStats};
use crate::hasher::DefaultHashBuilder;
use crate::home::Home;
use crate::reclaim::{Access, Section};
use crate::vocabulary::Fallible;
use std::fmt;
use std::hash::BuildHasher;
use std::ptr::NonNull;

/// A thread's access to a [`SeenSet`], by [`SeenSet::handle`]: one per thread, kept as long as the
/// thread works on the set.
///
/// A handle is `Send` but not `Sync`.
///
/// ```compile_fail
/// fn shared<T: Sync>() {}
/// shared::<quintet::seen_set::Handle<'_, u64>>();
/// ```
pub struct Handle<'s, R: Record + ?Sized, S = DefaultHashBuilder> {
    worker: Worker,
    inner: Place<R>,
    /// Behind the worker, whose seat goes first.
    home: Home<'s, SeenSet<R, S>>,
}

/// What the set of a home is: there for as long as the home (`carry` D1). No reference, as there
/// (`carry` D3).
struct Place<R: Record + ?Sized>(NonNull<Inner<R>>);

// SAFETY: it lends the set's content, and drops nothing.
unsafe impl<R: Record + ?Sized> Send for Place<R> where Inner<R>: Sync {}

/// While this lives, its [`Handle`] is not waited for. See [`Handle::offline`].
pub struct Offline<'h, 's, R: Record + ?Sized, S>(&'h mut Handle<'s, R, S>);

impl<'s, R: Record + ?Sized, S> Handle<'s, R, S> {
    pub(super) fn new(home: Home<'s, SeenSet<R, S>>) -> Self {
        let inner = home.inner().unwrap_or_else(|error| refused(error));
        Self { worker: inner.core.join(), inner: Place(NonNull::from(inner)), home }
    }

    /// The set this handle belongs to.
    pub fn set(&self) -> &SeenSet<R, S> {
        &self.home
    }

    #[inline(always)]
    fn inner(&self) -> &Inner<R> {
        // SAFETY: the home keeps the set, which keeps what it has made; borrowed from the handle
        // (`carry` D1, D2).
        unsafe { self.inner.0.as_ref() }
    }

    /// Takes the handle out of meetings until the guard drops: for a thread that will be busy
    /// elsewhere for a while. Only `Growth::Together` has meetings.
    pub fn offline(&mut self) -> Offline<'_, 's, R, S> {
        self.inner().core.leave(&self.worker);
        Offline(self)
    }
}

impl<R: Record + ?Sized, S> Handle<'_, R, S> {
    #[inline(always)]
    pub(super) fn at(&self) -> Result<At<'_, R, S, &Worker>, SeenError> {
        Ok(At { inner: self.inner(), hasher: &self.home.hasher, worker: &self.worker })
    }

    #[inline(always)]
    fn made(&self) -> Option<&Inner<R>> {
        Some(self.inner())
    }

    /// Comes to a meeting that is called, and goes inside.
    #[inline(always)]
    fn inside(&self) -> Option<(&Inner<R>, Section<'_>)> {
        let (inner, access) = (self.inner(), &self.worker.access);
        if inner.core.meeting.is_some() {
            inner.core.attend_if_called(&self.worker, &access.section());
        }
        Some((inner, access.section()))
    }
}

/// As the methods of [`SeenSet`], by a seat and a desk of its own.
impl<R: Record + ?Sized, S: BuildHasher> Handle<'_, R, S> {
    operations!();
}

impl<R: Record + ?Sized, S> Drop for Handle<'_, R, S> {
    fn drop(&mut self) {
        self.inner().core.leave(&self.worker);
    }
}

impl<R: Record + ?Sized, S> Drop for Offline<'_, '_, R, S> {
    fn drop(&mut self) {
        if let Some(meeting) = &self.0.inner().core.meeting {
            self.0.worker.place.set(meeting.join());
        }
    }
}

impl<R: Record + ?Sized, S> fmt::Debug for Handle<'_, R, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Handle").field("set", self.set()).finish_non_exhaustive()
    }
}

impl<R: Record + ?Sized, S> fmt::Debug for Offline<'_, '_, R, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Offline").field(&self.0).finish()
    }
}
