//! Something shared that is made at the first use.
//!
//! ```text
//!             CAS null → made (Release)
//!      NONE ─────────────────────────────▶ MADE          who comes second drops its own
//! ```
//!
//! **Z1.** The pointer is null, or came from `Arc::into_raw` and owns one count of that `Arc`. It
//! changes once.

use super::{Arc, AtomicPtr, Ordering, const_where_possible};
use std::marker::PhantomData;
use std::ptr::null_mut;

/// An `Arc` that is made at the first use.
#[derive(Debug)]
pub(crate) struct LazyArc<T> {
    place: AtomicPtr<T>,
    /// `Send` and `Sync` as an `Arc` is.
    owns: PhantomData<Arc<T>>,
}

impl<T> LazyArc<T> {
    const_where_possible! {
        /// Nothing yet.
        pub(crate) fn new() -> Self {
            Self { place: AtomicPtr::new(null_mut()), owns: PhantomData }
        }
    }

    /// What was made, if it was.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&T> {
        // ORDERING: Acquire: partner is the exchange of `make`.
        // SAFETY: null, or of an `Arc` of which we own a count (Z1).
        unsafe { self.place.load(Ordering::Acquire).as_ref() }
    }

    /// What was made, for who knows that it was.
    ///
    /// # Safety
    /// It was made before, and the caller has learned of it in order: its own use, or one that
    /// happens before.
    #[inline(always)]
    pub(crate) unsafe fn get_made(&self) -> &T {
        // ORDERING: Acquire, as in `get`.
        let place = self.place.load(Ordering::Acquire);
        debug_assert!(!place.is_null(), "nothing was made");
        // SAFETY: not null, as the caller promises, and of an `Arc` of which we own a count (Z1).
        unsafe { &*place }
    }

    /// What was made, now if not before.
    #[inline(always)]
    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(made) => made,
            // SAFETY: not null, and of an `Arc` of which we own a count (Z1).
            None => unsafe { &*self.make(make) },
        }
    }

    /// The same as a count of one's own.
    pub(crate) fn share(&self, make: impl FnOnce() -> T) -> Arc<T> {
        // ORDERING: Acquire, as in `get`.
        let mut place = self.place.load(Ordering::Acquire);
        if place.is_null() {
            place = self.make(make);
        }
        // SAFETY: from `Arc::into_raw`, and we own a count (Z1).
        unsafe { Arc::increment_strong_count(place) };
        // SAFETY: the count just added is the one that is handed out.
        unsafe { Arc::from_raw(place) }
    }

    #[cold]
    fn make(&self, make: impl FnOnce() -> T) -> *mut T {
        let fresh = Arc::into_raw(Arc::new(make())).cast_mut();
        // ORDERING: Release publishes what was made, Acquire is for what another has made; partner:
        // `get`.
        let outcome =
            self.place.compare_exchange(null_mut(), fresh, Ordering::Release, Ordering::Acquire);
        match outcome {
            Ok(_) => fresh,
            Err(made) => {
                // SAFETY: from `into_raw` above; nobody else has seen it.
                drop(unsafe { Arc::from_raw(fresh) });
                made
            }
        }
    }
}

impl<T> From<Arc<T>> for LazyArc<T> {
    fn from(made: Arc<T>) -> Self {
        Self { place: AtomicPtr::new(Arc::into_raw(made).cast_mut()), owns: PhantomData }
    }
}

impl<T> Drop for LazyArc<T> {
    fn drop(&mut self) {
        // ORDERING: Acquire: what another thread made and we never looked at is ours to drop.
        // Partner: `make`.
        let place = self.place.load(Ordering::Acquire);
        if !place.is_null() {
            // SAFETY: the count that we own (Z1), given up once.
            drop(unsafe { Arc::from_raw(place) });
        }
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn what_is_made_is_made_once_and_dropped_once() {
        for _ in 0..200 {
            let (lazy, start) = (LazyArc::<Arc<u64>>::new(), Barrier::new(2));
            let value = Arc::new(7);
            assert!(lazy.get().is_none());
            let look = || {
                start.wait();
                (&raw const *lazy.get_or_make(|| Arc::clone(&value))).addr()
            };
            let (one, other) = std::thread::scope(|scope| {
                let other = scope.spawn(look);
                (look(), other.join().unwrap())
            });
            assert_eq!(one, other);
            assert_eq!(Arc::strong_count(&value), 2, "the second was dropped");
            let shared = lazy.share(|| unreachable!("made already"));
            drop(lazy);
            assert_eq!((**shared, Arc::strong_count(&value)), (7, 2));
            drop(shared);
            assert_eq!(Arc::strong_count(&value), 1);
        }
    }
}
