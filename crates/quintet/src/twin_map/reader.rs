//! Read handles and guards.
//!
//! A [`Reader`] owns a seat: `Send`, not `Sync` (one thread at a time writes the seat's plain counts).
//!
//! ```compile_fail
//! fn sync<T: Sync>() {}
//! sync::<quintet::twin_map::Reader<u64>>();
//! ```
//!
//! A [`ReadGuard`] stays on its thread; an [`OwnedGuard`] has a seat of its own and may leave.
//!
//! ```compile_fail
//! fn send<T: Send>() {}
//! send::<quintet::twin_map::ReadGuard<'static, u64>>();
//! ```
//!
//! ```
//! fn send<T: Send>() {}
//! fn sync<T: Sync>() {}
//! send::<quintet::twin_map::Reader<u64>>();
//! send::<quintet::twin_map::OwnedGuard<u64>>();
//! sync::<quintet::twin_map::OwnedGuard<u64>>();
//! send::<quintet::twin_map::SharedReader<u64>>();
//! sync::<quintet::twin_map::SharedReader<u64>>();
//! ```

use super::core::Core;
use super::gate::SeatState;
use super::local;
use super::refs::Hold;
use super::twin::TwinStats;
use super::wait::WaitError;
use super::word::Place;
use crate::roster::Seat;
use crate::sync::{Arc, park_timeout, thread};
use std::marker::PhantomData;
use std::ops::Deref;
use std::time::{Duration, Instant};

/// A thread's read handle. Clone it for each thread.
pub struct Reader<T> {
    seat: Seat<SeatState>,
    core: Arc<Core<T>>,
}

/// A read handle that several threads may use at once: its guards cost two locked instructions on a line that these
/// threads share. Clone it where it gets crowded.
pub struct SharedReader<T> {
    seat: SharedSeat,
    core: Arc<Core<T>>,
}

/// A seat whose counts are changed by read-modify-write only.
struct SharedSeat(Seat<SeatState>);

// SAFETY: all that is done with the seat through a shared reference are atomic read-modify-writes (`enter_shared`,
// `leave_shared`).
unsafe impl Sync for SharedSeat {}

/// One version, as long as the guard lives.
#[must_use = "a guard that is dropped at once guards nothing"]
pub struct ReadGuard<'a, T> {
    core: &'a Core<T>,
    seat: &'a SeatState,
    place: Place,
    /// A guard ends on the thread it began on.
    not_send: PhantomData<*const ()>,
}

/// One version, as long as the guard of a [`SharedReader`] lives.
#[must_use = "a guard that is dropped at once guards nothing"]
pub struct SharedGuard<'a, T> {
    core: &'a Core<T>,
    seat: &'a SeatState,
    place: Place,
}

/// One version, without a lifetime: may be sent to other threads and held across `.await`.
#[must_use = "a guard that is dropped at once guards nothing"]
pub struct OwnedGuard<T> {
    seat: SharedSeat,
    core: Arc<Core<T>>,
    place: Place,
}

impl<T> Reader<T> {
    pub(super) fn new(core: &Arc<Core<T>>) -> Self {
        Self { seat: core.gate.join(), core: Arc::clone(core) }
    }

    /// Looks at the current version: plain stores to this handle's own line, no locked instruction. Never waits.
    ///
    /// # Panics
    /// If a quarter of the address space of guards is alive or forgotten on this handle.
    #[inline(always)]
    pub fn pin(&self) -> ReadGuard<'_, T> {
        let place = self.core.gate.enter(&self.seat);
        ReadGuard { core: &self.core, seat: &self.seat, place, not_send: PhantomData }
    }

    /// Looks at the current version through a guard that borrows nothing.
    pub fn owned_pin(&self) -> OwnedGuard<T> {
        OwnedGuard::new(&self.core)
    }

    /// A handle on the same copies that threads may share.
    pub fn shared(&self) -> SharedReader<T> {
        SharedReader::new(&self.core)
    }

    /// What the writer has done up to its last publish.
    pub fn stats(&self) -> TwinStats {
        self.core.gate.told.stats()
    }

    /// Bytes that the copies and the log of changes held at the last publish, as far as the structure tells.
    pub fn memory_bytes(&self) -> usize {
        self.core.gate.told.bytes()
    }

    /// The version that a guard would show now.
    pub fn version(&self) -> u64 {
        self.pin().version()
    }

    /// True once the writer is gone: nothing will change any more.
    pub fn is_final(&self) -> bool {
        self.core.gate.arrivals.is_orphaned()
    }

    /// Waits until a version is published, and looks at it or a later one.
    pub fn wait_for(&self, version: u64) -> Result<ReadGuard<'_, T>, WaitError> {
        self.wait_until(version, None)
    }

    /// The same, waiting at most so long.
    pub fn wait_for_timeout(
        &self,
        version: u64,
        most: Duration,
    ) -> Result<ReadGuard<'_, T>, WaitError> {
        self.wait_until(version, Instant::now().checked_add(most))
    }

    fn wait_until(
        &self,
        version: u64,
        end: Option<Instant>,
    ) -> Result<ReadGuard<'_, T>, WaitError> {
        let arrived = |guard: &ReadGuard<'_, T>| guard.version() >= version;
        let guard = self.pin();
        if arrived(&guard) {
            return Ok(guard);
        }
        drop(guard);
        loop {
            let ticket = self.core.gate.arrivals.enter();
            let gone = self.core.gate.arrivals.is_orphaned();
            let guard = self.pin();
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let over = left.is_some_and(|left| left.is_zero());
            let arrived = arrived(&guard);
            if arrived || gone || over {
                self.core.gate.arrivals.leave(ticket);
            }
            if arrived {
                return Ok(guard);
            }
            drop(guard);
            match left {
                _ if gone => return Err(WaitError::WriterGone),
                _ if over => return Err(WaitError::TimedOut),
                Some(left) => park_timeout(left),
                None => thread::park(),
            }
            self.core.gate.arrivals.leave(ticket);
        }
    }
}

impl<'a, T> ReadGuard<'a, T> {
    /// Enters by the calling thread's seat.
    #[inline(always)]
    pub(super) fn of_thread(core: &'a Core<T>) -> Self {
        let (seat, place) = local::enter(&core.gate);
        Self { core, seat, place, not_send: PhantomData }
    }

    /// The same guard, without what it guards.
    #[inline(always)]
    pub(super) fn into_hold(self) -> Hold<'a> {
        let this = std::mem::ManuallyDrop::new(self);
        Hold::new(&this.core.gate, this.seat, this.place)
    }

    /// What it shows, for as long as the core lives.
    ///
    /// # Safety
    /// The caller keeps a guard on the place while it uses the reference.
    pub(super) unsafe fn unbound(&self) -> &'a T {
        // SAFETY: the caller's promise (D3).
        unsafe { self.core.copy(self.place) }
    }
}

impl<T> SharedReader<T> {
    pub(super) fn new(core: &Arc<Core<T>>) -> Self {
        Self { seat: SharedSeat(core.gate.join()), core: Arc::clone(core) }
    }

    /// Looks at the current version. Never waits.
    ///
    /// # Panics
    /// If a quarter of the address space of guards is alive or forgotten on this handle.
    #[inline]
    pub fn pin(&self) -> SharedGuard<'_, T> {
        let place = self.core.gate.enter_shared(&self.seat.0);
        SharedGuard { core: &self.core, seat: &self.seat.0, place }
    }

    /// Looks at the current version through a guard that borrows nothing.
    pub fn owned_pin(&self) -> OwnedGuard<T> {
        OwnedGuard::new(&self.core)
    }

    /// A handle for one thread.
    pub fn reader(&self) -> Reader<T> {
        Reader::new(&self.core)
    }
}

impl<T> OwnedGuard<T> {
    fn new(core: &Arc<Core<T>>) -> Self {
        let seat = SharedSeat(core.gate.join());
        let place = core.gate.enter_shared(&seat.0);
        Self { seat, core: Arc::clone(core), place }
    }
}

impl<T> Clone for Reader<T> {
    fn clone(&self) -> Self {
        Self::new(&self.core)
    }
}

impl<T> Clone for SharedReader<T> {
    fn clone(&self) -> Self {
        Self::new(&self.core)
    }
}

impl<T> Drop for Reader<T> {
    fn drop(&mut self) {
        // Guards borrow the handle: those still counted were forgotten, and no reference is left.
        self.core.gate.leave_all(&self.seat);
    }
}

impl<T> Drop for SharedReader<T> {
    fn drop(&mut self) {
        // As above.
        self.core.gate.leave_all(&self.seat.0);
    }
}

impl<T> Drop for ReadGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.core.gate.leave(self.seat, self.place);
    }
}

impl<T> Drop for SharedGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.core.gate.leave_shared(self.seat, self.place);
    }
}

impl<T> Drop for OwnedGuard<T> {
    fn drop(&mut self) {
        self.core.gate.leave_shared(&self.seat.0, self.place);
    }
}

macro_rules! guards {
    ($($guard:ty),+) => { $(
        impl<T> $guard {
            /// The number of publishes that led to this version.
            #[inline]
            pub fn version(&self) -> u64 {
                // SAFETY: while the guard lives its copy is not written (D3).
                unsafe { self.core.version(self.place) }
            }
        }

        impl<T> Deref for $guard {
            type Target = T;

            #[inline(always)]
            fn deref(&self) -> &T {
                // SAFETY: while the guard lives its copy is there and not written (D1, D3).
                unsafe { self.core.copy(self.place) }
            }
        }

        impl<T: std::fmt::Debug> std::fmt::Debug for $guard {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                (**self).fmt(out)
            }
        }
    )+ };
}
guards!(ReadGuard<'_, T>, SharedGuard<'_, T>, OwnedGuard<T>);

impl<T> std::fmt::Debug for Reader<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Reader").field("version", &self.version()).finish_non_exhaustive()
    }
}

impl<T> std::fmt::Debug for SharedReader<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SharedReader")
            .field("version", &self.pin().version())
            .finish_non_exhaustive()
    }
}
