//! A pool of handles: any thread uses the cache itself, without a handle of its own.
//!
//! **P1.** A *parked* handle is bytes that nobody reads: the cache it belongs to may be moved
//! meanwhile. Whoever takes it writes its references to the cache anew before it is a handle again,
//! for as long as the cache is borrowed. Those into the mapped memory stay: the cache owns the
//! mapping, which does not move with it.
//! **P2.** A slot is locked while its handle is in use. Nobody waits for a slot: who finds all of
//! them in use, by other threads, by itself further out, or at the moment of a fork, takes a seat
//! for this one operation.
//! **P3.** A handle that came along in a fork is the parent's: it is dropped, which changes
//! nothing, and another seat is taken.
//! **P4.** The pool holds an eighth of the seats at most, so that other processes find some.

use super::TierCache;
use super::error::CacheError;
use super::flight::DEFAULT_PATIENCE;
use super::handle::Handle;
use super::spaces::Space;
use crate::sync::{CachePadded, Mutex, fork};
use std::mem::MaybeUninit;

/// The most handles of a pool.
const SLOTS: usize = 16;

/// A handle at rest (P1). Whoever drops it without [`Parked::leave`] keeps its seat taken until the
/// process ends.
#[derive(Debug)]
pub(super) struct Parked {
    handle: Box<MaybeUninit<Handle<'static>>>,
    forks: usize,
}

impl Parked {
    pub(super) fn new(handle: Handle<'_>) -> Self {
        // SAFETY: only the lifetime changes, and nobody uses the handle before `bind` has written
        // its references anew (P1).
        let handle = unsafe { std::mem::transmute::<Handle<'_>, Handle<'static>>(handle) };
        Self { handle: Box::new(MaybeUninit::new(handle)), forks: fork::seen().0 }
    }

    /// It was made by this process.
    pub(super) fn is_ours(&self) -> bool {
        self.forks == fork::count()
    }

    /// The handle, of the cache that it was made by, wherever that is now.
    pub(super) fn bind<'c>(&mut self, cache: &'c TierCache) -> &mut Handle<'c> {
        let place: *mut Handle<'c> = self.handle.as_mut_ptr().cast();
        // SAFETY: the place is that of a handle, in a box.
        let of_cache = unsafe { &raw mut (*place).cache };
        // SAFETY: as above.
        let of_peers = unsafe { &raw mut (*place).inner.map.peers };
        // SAFETY: as above.
        let of_upper = unsafe { &raw mut (*place).inner.map.upper };
        // SAFETY: the place is writable; the old reference is overwritten without being read or
        // dropped, which it need not be.
        unsafe { of_cache.write(cache) };
        // SAFETY: as above.
        unsafe { of_peers.write(&*cache.segment) };
        // SAFETY: as above.
        unsafe { of_upper.write(Some(cache)) };
        // SAFETY: a handle was moved here by `new`, and all its references are of the cache that is
        // borrowed or into its mapping (P1). Nobody else has access: the box is borrowed
        // exclusively for as long.
        unsafe { &mut *place }
    }

    /// Gives the seat back. In a forked child that changes nothing.
    pub(super) fn leave(mut self, cache: &TierCache) {
        let handle: *mut Handle<'_> = self.bind(cache);
        // SAFETY: bound just now, and never used again: what holds it does not drop it.
        unsafe { std::ptr::drop_in_place(handle) };
    }
}

/// Handles at rest, each in a slot of its own.
#[derive(Debug)]
pub(super) struct Pool(Box<[CachePadded<Mutex<Option<Parked>>>]>);

impl Pool {
    pub(super) fn new(seats: u32) -> Self {
        // P4
        let slots = (seats as usize / 8).clamp(1, SLOTS);
        Self((0..slots).map(|_| CachePadded::new(Mutex::new(None))).collect())
    }

    /// Empties it, for who drops the cache.
    pub(super) fn drain(&mut self) -> Vec<Parked> {
        self.0.iter_mut().filter_map(|slot| slot.get_mut().take()).collect()
    }
}

impl TierCache {
    /// A seat, without asking first who is dead.
    pub(super) fn seated(&self) -> Result<Handle<'_>, CacheError> {
        if !self.segment.is_writable() {
            return Err(CacheError::ReadOnly);
        }
        Ok(Handle::new(self, self.map().handle()?))
    }

    /// What the handles of the pool kept to themselves is for everybody.
    pub(super) fn rest(&self) {
        let ours = |slot: &mut Option<Parked>| slot.take().filter(Parked::is_ours);
        let slots = self.pool.0.iter().filter_map(|slot| slot.try_lock());
        slots.filter_map(|mut slot| ours(&mut slot)).for_each(|parked| parked.leave(self));
    }

    /// Runs an operation on a handle of the pool, or on one of its own (P2).
    pub(super) fn with<R>(
        &self,
        run: impl FnOnce(&mut Handle<'_>) -> Result<R, CacheError>,
    ) -> Result<R, CacheError> {
        let slots = &self.pool.0;
        // Threads lie far apart: their keys differ above the bits of a page.
        let mine = fork::thread_key().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        for step in 0..slots.len() {
            let Some(mut slot) = slots[(mine + step) % slots.len()].try_lock() else { continue };
            if slot.as_ref().is_some_and(|parked| !parked.is_ours()) {
                // P3
                slot.take().into_iter().for_each(|parked| parked.leave(self));
            }
            if slot.is_none() {
                *slot = Some(Parked::new(self.seated()?));
            }
            if let Some(parked) = slot.as_mut() {
                let handle = parked.bind(self);
                // An operation that unwound may have left them otherwise.
                (handle.space, handle.patience) = (Space::default(), DEFAULT_PATIENCE);
                return run(handle);
            }
        }
        run(&mut self.seated()?)
    }
}
