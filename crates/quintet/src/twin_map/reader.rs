//! Read handles and guards.
//!
//! A [`Reader`] owns a seat: `Send`, not `Sync` (one thread at a time writes the seat's plain
//! counts).
//!
//! ```compile_fail
//! fn sync<T: Sync>() {}
//! sync::<quintet::twin_map::Reader<u64>>();
//! ```
//!
//! A [`ReadGuard`] stays on its thread: a writer that would wait for one of its own thread knows
//! it. An [`OwnedGuard`] may leave its thread, so nobody knows who has it: it owns its copy, and no
//! writer waits for it.
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

use super::arrive::Arrive;
use super::core::{Core, Edition};
use super::gate::{Gate, SeatState};
use super::local;
use super::refs::Hold;
use super::twin::TwinStats;
use super::wait::{Parker, WaitError};
use super::word::Door;
use crate::roster::Seat;
use crate::sync::{Arc, park_timeout, thread};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

/// A thread's read handle. Clone it for each thread.
pub struct Reader<T> {
    seat: Seat<SeatState>,
    core: Arc<Core<T>>,
}

/// A read handle that several threads may use at once: each reads by a seat of its own, as by the
/// table itself.
pub struct SharedReader<T> {
    core: Arc<Core<T>>,
}

/// One version, as long as the guard lives.
#[must_use = "a guard that is dropped at once guards nothing"]
pub struct ReadGuard<'a, T> {
    /// What is behind the door. No reference: it may be written as soon as the guard has ended,
    /// while its drop still runs.
    edition: NonNull<Edition<T>>,
    gate: &'a Gate,
    seat: &'a SeatState,
    door: Door,
    lent: PhantomData<&'a Core<T>>,
    /// A guard ends on the thread it began on.
    not_send: PhantomData<*const ()>,
}

/// One version, without a lifetime: may be sent to other threads and held across `.await`.
///
/// It owns the copy that it shows, together with the table and other such guards: no writer waits
/// for it. While it lives, a write may have to make another copy of the whole content, once; the
/// last owner of a copy frees it.
#[must_use = "a guard that is dropped at once guards nothing"]
pub struct OwnedGuard<T> {
    edition: Arc<Edition<T>>,
    /// Dropped after the edition.
    _core: Arc<Core<T>>,
}

impl<T> Reader<T> {
    pub(super) fn new(core: &Arc<Core<T>>) -> Self {
        Self { seat: core.gate.join(), core: Arc::clone(core) }
    }

    #[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
    pub(super) fn core(&self) -> &Arc<Core<T>> {
        &self.core
    }

    /// Looks at the current version: plain stores to this handle's own line, no locked instruction.
    /// Never waits.
    ///
    /// # Panics
    /// If a quarter of the address space of guards is alive or forgotten on this handle.
    #[inline(always)]
    pub fn pin(&self) -> ReadGuard<'_, T> {
        let door = self.core.gate.enter(&self.seat);
        // SAFETY: entered by that door, with a seat that lives as long as the guard.
        unsafe { ReadGuard::new(&self.core, &self.seat, door) }
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

    /// Bytes that the copies and the log of changes held at the last publish, as far as the
    /// structure tells.
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

    /// The same for tasks: the publish wakes the task. Needs no particular runtime, and not this
    /// handle.
    pub fn wait_for_async(&self, version: u64) -> Arrive<T> {
        Arrive::new(&self.core, version)
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
            let ticket = self.core.gate.arrivals.enter(Parker::Thread(thread::current()));
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
        let (seat, door) = local::enter(&core.gate);
        // SAFETY: entered by that door, with a seat that the core keeps.
        unsafe { Self::new(core, seat, door) }
    }

    /// # Safety
    /// The calling thread has entered by that door, and leaves it to this guard to end that.
    #[inline(always)]
    unsafe fn new(core: &'a Core<T>, seat: &'a SeatState, door: Door) -> Self {
        // SAFETY: announced (`gate` D3), and what was readable holds a copy (`gate` D1).
        let edition = unsafe { core.edition(door) };
        let (lent, not_send) = (PhantomData, PhantomData);
        Self { edition, gate: &core.gate, seat, door, lent, not_send }
    }

    /// The same guard, without what it guards.
    #[inline(always)]
    pub(super) fn into_hold(self) -> Hold<'a> {
        let this = std::mem::ManuallyDrop::new(self);
        Hold::new(this.gate, this.seat, this.door)
    }

    /// What it shows, for as long as the core lives.
    ///
    /// # Safety
    /// The caller keeps a guard on the place while it uses the reference.
    pub(super) unsafe fn unbound(&self) -> &'a T {
        // SAFETY: the caller's guard keeps it where it is (`gate` D3, `core` C1).
        let edition = unsafe { self.edition.as_ref() };
        // SAFETY: the caller's guard: no writer (`gate` D3).
        unsafe { edition.copy() }
    }
}

impl<T> SharedReader<T> {
    pub(super) fn new(core: &Arc<Core<T>>) -> Self {
        Self { core: Arc::clone(core) }
    }

    /// Looks at the current version by the calling thread's seat. Never waits.
    ///
    /// # Panics
    /// If a quarter of the address space of guards is alive or forgotten on this thread.
    #[inline]
    pub fn pin(&self) -> ReadGuard<'_, T> {
        ReadGuard::of_thread(&self.core)
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
    pub(super) fn new(core: &Arc<Core<T>>) -> Self {
        let guard = ReadGuard::of_thread(core);
        // SAFETY: we have a guard there.
        let edition = unsafe { Edition::share(guard.edition) };
        drop(guard);
        Self { edition, _core: Arc::clone(core) }
    }

    /// The number of publishes that led to this version.
    pub fn version(&self) -> u64 {
        // SAFETY: a copy with more owners than its place is not written (`core` C3).
        unsafe { self.edition.version() }
    }
}

impl<T> Deref for OwnedGuard<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: a copy with more owners than its place is not written (`core` C3).
        unsafe { self.edition.copy() }
    }
}

/// One more owner of the same version.
impl<T> Clone for OwnedGuard<T> {
    fn clone(&self) -> Self {
        Self { edition: Arc::clone(&self.edition), _core: Arc::clone(&self._core) }
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for OwnedGuard<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(out)
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

impl<T> Drop for ReadGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.gate.leave(self.seat, self.door);
    }
}

impl<T> ReadGuard<'_, T> {
    /// The number of publishes that led to this version.
    #[inline]
    pub fn version(&self) -> u64 {
        // SAFETY: while the guard lives it stays (`gate` D3, `core` C1).
        let edition = unsafe { self.edition.as_ref() };
        // SAFETY: while the guard lives it is not written (`gate` D3).
        unsafe { edition.version() }
    }
}

impl<T> Deref for ReadGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: while the guard lives it stays (`gate` D3, `core` C1).
        let edition = unsafe { self.edition.as_ref() };
        // SAFETY: while the guard lives it is not written (`gate` D1, D3).
        unsafe { edition.copy() }
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for ReadGuard<'_, T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(out)
    }
}

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
