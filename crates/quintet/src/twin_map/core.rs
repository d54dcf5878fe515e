//! The copies, behind the gate that says who may touch which.

use super::gate::Gate;
use super::word::{PLACES, Place};
use crate::sync::{Barrier, CachePadded};
use std::cell::UnsafeCell;

struct Slot<T> {
    copy: UnsafeCell<Option<T>>,
    version: UnsafeCell<u64>,
}

/// Everything that readers and the writer share. The rules (D1 to D7) stand above the [`Gate`].
pub(super) struct Core<T> {
    pub(super) gate: Gate,
    slots: [CachePadded<Slot<T>>; PLACES],
}

// SAFETY: copies move to whichever thread drops the core (`Send`), and guards on many threads share them (`Sync`); who may write
// a place is D2.
unsafe impl<T: Send + Sync> Send for Core<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Core<T> {}

impl<T> Core<T> {
    /// The first place is readable, the second holds its twin, the third is empty.
    pub(super) fn new(first: T, second: T, barrier: Barrier) -> Self {
        let slot = |copy| {
            CachePadded::new(Slot { copy: UnsafeCell::new(copy), version: UnsafeCell::new(0) })
        };
        Self {
            gate: Gate::new(barrier),
            slots: [slot(Some(first)), slot(Some(second)), slot(None)],
        }
    }

    /// The copy at a place, for a guard or for the writer.
    ///
    /// # Safety
    /// The place holds a copy, and nobody writes it while the reference lives: it is readable, or announced as D3 says, or the
    /// caller is the writer.
    #[inline(always)]
    pub(super) unsafe fn copy(&self, place: Place) -> &T {
        // SAFETY: the caller's promise: no writer.
        let copy = unsafe { &*place.of(&self.slots).copy.get() };
        // SAFETY: the caller's promise: there is a copy.
        unsafe { copy.as_ref().unwrap_unchecked() }
    }

    /// The copy at a place, if there is one.
    ///
    /// # Safety
    /// Nobody writes the place while the reference lives: the caller is the writer.
    pub(super) unsafe fn peek(&self, place: Place) -> Option<&T> {
        // SAFETY: the caller's promise.
        unsafe { &*place.of(&self.slots).copy.get() }.as_ref()
    }

    /// The version of the copy at a place.
    ///
    /// # Safety
    /// As for [`copy`](Self::copy).
    #[inline(always)]
    pub(super) unsafe fn version(&self, place: Place) -> u64 {
        // SAFETY: the caller's promise: no writer.
        unsafe { *place.of(&self.slots).version.get() }
    }

    /// The place itself, to be written.
    ///
    /// # Safety
    /// The caller is the writer and has the place drained (D2), and makes no second reference.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn slot_mut(&self, place: Place) -> &mut Option<T> {
        // SAFETY: the caller's promise.
        unsafe { &mut *place.of(&self.slots).copy.get() }
    }

    /// Makes `place` readable as `version`; see [`Gate::publish`].
    ///
    /// # Safety
    /// The caller is the writer, and `place` holds a copy and is drained.
    pub(super) unsafe fn publish(&self, place: Place, version: u64) -> bool {
        // SAFETY: the place is drained and not readable (D2).
        unsafe { *place.of(&self.slots).version.get() = version };
        self.gate.publish(place)
    }
}
