//! The copies, behind the gate that says who may touch which.
//!
//! **C1.** A place has a copy or none. Its two doors hold the same pointer, or null; the plain one
//! owns a count of that `Arc`.
//! **C2.** Every other count belongs to an owned guard, and is taken by a thread that has a guard
//! on the place. So a place that is drained and not readable gains no owners, and a copy there with
//! one count is the writer's alone.
//! **C3.** A copy with more counts belongs to its owners as well: nobody writes it any more. The
//! writer puts another one in its place, and the last owner drops it.

use super::gate::Gate;
use super::word::{DOORS, Door, Place};
use crate::sync::{Arc, Barrier, CachePadded, is_alone};
use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::ptr::{NonNull, null};

/// One copy, and the version it was published as.
#[repr(C)]
pub(super) struct Edition<T> {
    copy: UnsafeCell<T>,
    /// Every guard looks at the copy, and every publish writes the version: they lie on two lines.
    apart: [u64; 7],
    version: UnsafeCell<u64>,
}

// SAFETY: the copy moves to whichever thread drops it (`Send`), and is shared by guards on many
// threads (`Sync`).
unsafe impl<T: Send + Sync> Send for Edition<T> {}
// SAFETY: as above; it is written only while one thread has it alone (C2).
unsafe impl<T: Send + Sync> Sync for Edition<T> {}

impl<T> Edition<T> {
    fn new(copy: T) -> Self {
        Self { copy: UnsafeCell::new(copy), apart: [0; 7], version: UnsafeCell::new(0) }
    }

    /// # Safety
    /// Nobody writes it while the reference lives.
    #[inline(always)]
    pub(super) unsafe fn copy(&self) -> &T {
        // SAFETY: the caller's promise.
        unsafe { &*self.copy.get() }
    }

    /// One more owner.
    ///
    /// # Safety
    /// It is the edition of a place, and the calling thread has a guard there.
    pub(super) unsafe fn share(this: NonNull<Self>) -> Arc<Self> {
        // SAFETY: of an `Arc`, whose count the place keeps meanwhile (C1).
        unsafe { Arc::increment_strong_count(this.as_ptr().cast_const()) };
        // SAFETY: the count just added.
        unsafe { Arc::from_raw(this.as_ptr().cast_const()) }
    }

    /// # Safety
    /// Nobody writes it meanwhile.
    #[inline(always)]
    pub(super) unsafe fn version(&self) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { *self.version.get() }
    }
}

/// Everything that readers and the writer share. The rules of who is where (`gate` D1 to D9) stand
/// above the [`Gate`].
pub(super) struct Core<T> {
    pub(super) gate: Gate,
    editions: CachePadded<[UnsafeCell<*const Edition<T>>; DOORS]>,
}

// SAFETY: copies move to whichever thread drops the core (`Send`), and guards on many threads share
// them (`Sync`); who may write a place is `gate` D2.
unsafe impl<T: Send + Sync> Send for Core<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Core<T> {}

impl<T> Core<T> {
    /// The first place is readable, the second holds its twin, the third is empty.
    pub(super) fn new(first: T, second: T, barrier: Barrier) -> Self {
        let core = Self {
            gate: Gate::new(barrier),
            editions: CachePadded::new(std::array::from_fn(|_| UnsafeCell::new(null()))),
        };
        for (place, copy) in Place::ALL.into_iter().zip([first, second]) {
            // SAFETY: nobody else knows the core yet.
            drop(unsafe { core.put(place, Some(copy)) });
        }
        core
    }

    /// What is behind a door. It stays for as long as the writer leaves the place alone (C1).
    ///
    /// # Safety
    /// The place holds a copy, and the writer leaves it alone meanwhile: it is readable, or
    /// announced as `gate` D3 says, or the caller is the writer.
    #[inline(always)]
    pub(super) unsafe fn edition(&self, door: Door) -> NonNull<Edition<T>> {
        // SAFETY: the caller's promise: nobody changes the pointer.
        let edition = unsafe { *door.of(&self.editions).get() };
        // SAFETY: the caller's promise: there is a copy.
        unsafe { NonNull::new_unchecked(edition.cast_mut()) }
    }

    /// The copy at a place, for the writer, or for who has a guard there.
    ///
    /// # Safety
    /// The place holds a copy, and nobody writes it while the reference lives.
    pub(super) unsafe fn copy(&self, place: Place) -> &T {
        // SAFETY: the caller's promise.
        let edition = unsafe { self.edition(place.plain()) };
        // SAFETY: the place keeps its count (C1).
        let edition = unsafe { edition.as_ref() };
        // SAFETY: the caller's promise: no writer.
        unsafe { edition.copy() }
    }

    /// The copy at a place, if there is one.
    ///
    /// # Safety
    /// The caller is the writer, and writes neither the place nor its copy while the reference
    /// lives.
    pub(super) unsafe fn peek(&self, place: Place) -> Option<&T> {
        // SAFETY: the caller's promise.
        let edition = unsafe { *place.plain().of(&self.editions).get() };
        // SAFETY: null, or of an `Arc` whose count the place keeps (C1).
        let edition = unsafe { edition.as_ref() };
        // SAFETY: the caller's promise.
        edition.map(|edition| unsafe { edition.copy() })
    }

    /// The copy at a place, to be written; None if there is none, or if it has other owners (C3).
    ///
    /// # Safety
    /// The caller is the writer and has the place drained (`gate` D2), and makes no second
    /// reference.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn copy_mut(&self, place: Place) -> Option<&mut T> {
        // SAFETY: the caller's promise.
        let edition = unsafe { *place.plain().of(&self.editions).get() };
        if edition.is_null() {
            return None;
        }
        // SAFETY: of an `Arc`, and not dropped: the count stays the place's (C1).
        let mut shared = ManuallyDrop::new(unsafe { Arc::from_raw(edition) });
        if !is_alone(&mut shared) {
            return None;
        }
        // SAFETY: as above.
        let copy = unsafe { &*edition }.copy.get();
        // SAFETY: nobody else has it, and nobody gets it (C2); the caller makes no second
        // reference.
        Some(unsafe { &mut *copy })
    }

    /// The same for who has just had it, and left the place alone since: nobody has come in
    /// between.
    ///
    /// # Safety
    /// As for [`copy_mut`](Self::copy_mut), which has given the copy since the place was drained.
    #[allow(clippy::mut_from_ref)]
    #[inline(always)]
    pub(super) unsafe fn copy_mut_again(&self, place: Place) -> &mut T {
        // SAFETY: the caller's promise.
        let edition = unsafe { *place.plain().of(&self.editions).get() };
        // SAFETY: there is a copy, and the place keeps its count (C1).
        let copy = unsafe { &*edition }.copy.get();
        // SAFETY: it has one count still (C2); the caller makes no second reference.
        unsafe { &mut *copy }
    }

    /// Puts a copy at a place, or none; returns the one that was there. Others may own that.
    ///
    /// # Safety
    /// The caller is the writer, and has the place drained (`gate` D2).
    pub(super) unsafe fn put(&self, place: Place, copy: Option<T>) -> Option<Arc<Edition<T>>> {
        // SAFETY: the caller's promise.
        let old = unsafe { *place.plain().of(&self.editions).get() };
        let new = copy.map_or(null(), |copy| Arc::into_raw(Arc::new(Edition::new(copy))));
        for door in place.doors() {
            // SAFETY: the caller's promise.
            unsafe { *door.of(&self.editions).get() = new };
        }
        // SAFETY: of an `Arc`, and the count that was the place's (C1).
        (!old.is_null()).then(|| unsafe { Arc::from_raw(old) })
    }

    /// Makes `place` readable as `version`; see [`Gate::publish`].
    ///
    /// # Safety
    /// The caller is the writer, and `place` holds a copy that it has alone, and is drained.
    pub(super) unsafe fn publish(&self, place: Place, version: u64, fenced: bool) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.number(place, version) };
        self.gate.publish(place, fenced)
    }

    /// Makes `place` readable as the version that is readable already (`home` H2); see
    /// [`Gate::open`].
    ///
    /// # Safety
    /// As for [`publish`](Self::publish), and the copy equals the readable one.
    pub(super) unsafe fn reopen(&self, place: Place, version: u64) -> bool {
        if !cfg!(quintet_mutation = "home-number") {
            // SAFETY: the caller's promise.
            unsafe { self.number(place, version) };
        }
        self.gate.open(place, false)
    }

    /// # Safety
    /// As for [`publish`](Self::publish).
    unsafe fn number(&self, place: Place, version: u64) {
        // SAFETY: the caller's promise.
        let edition = unsafe { self.edition(place.plain()) };
        // SAFETY: the place keeps its count (C1).
        let edition = unsafe { edition.as_ref() };
        // SAFETY: the caller has it alone (`gate` D2, C2).
        unsafe { *edition.version.get() = version };
    }

    /// The copy at a place, by value. The place has one.
    pub(super) fn into_copy(self, place: Place) -> T {
        // SAFETY: the core is ours alone.
        let edition = unsafe { self.put(place, None) };
        let edition = edition.and_then(|edition| Arc::try_unwrap(edition).ok());
        let Some(edition) = edition else { unreachable!("whoever owns a copy keeps the core") };
        edition.copy.into_inner()
    }
}

impl<T> Drop for Core<T> {
    fn drop(&mut self) {
        // SAFETY: no reader is left, and no writer.
        let editions = Place::ALL.map(|place| unsafe { self.put(place, None) });
        // Should one panic, the others are dropped all the same.
        drop(editions);
    }
}
