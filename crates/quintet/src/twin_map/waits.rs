//! Writers that wait for each other across tables.
//!
//! ```text
//!   a thread ──waits for the readers of──▶ a place ──has guards of──▶ threads
//!   a thread ──waits for──▶ the lock of a desk ──is held by──▶ a thread
//! ```
//!
//! **K1.** A thread that is about to wait for ever enters the list, then follows the arrows from
//! where it stands. If they lead back to it, the wait would never end: it is told so, and leaves
//! the list.
//! **K2.** Whoever is in the list does nothing but wait. What it holds, it has written down before
//! it entered (its key in a seat, its name as the holder of a lock), and the lock of the list hands
//! that over. So the last one to enter sees the whole circle.
//! **K3.** An entry's places live as long as the entry: they belong to the table that its thread
//! waits for, which that thread borrows.
//! **K4.** Only who waits for ever enters: who may give up ends every circle by itself.
//! **K5.** Who waits for either of two places is told only if both lead back to it. On the way to
//! others both count: in rare cases somebody is told who might have come through.

use super::gate::Gate;
use super::word::{Place, Places};
use crate::sync::constant::{Mutex, MutexGuard};
use crate::sync::{AtomicUsize, MODEL, Ordering, fork};

/// What a thread waits for.
#[derive(Clone, Copy)]
enum For {
    Readers(*const Gate, Place),
    /// The name of the holder is there.
    Lock(*const AtomicUsize),
}

struct Wait {
    thread: usize,
    what: For,
}

// SAFETY: pointers to what is `Sync`, followed under K3 only.
unsafe impl Send for Wait {}

static WAITS: Mutex<Vec<Wait>> = Mutex::new(Vec::new());

fn waits() -> MutexGuard<'static, Vec<Wait>> {
    WAITS.lock()
}

/// A wait in the list. Leaves it when dropped.
pub(super) struct Waiting<'t> {
    thread: usize,
    /// What it waits for outlives it (K3).
    _borrows: std::marker::PhantomData<&'t Gate>,
}

impl<'t> Waiting<'t> {
    /// Enters the list to wait for the readers of one of the places; None if that would never end.
    pub(super) fn for_readers(gate: &'t Gate, places: Places) -> Option<Self> {
        Self::enter(places.iter().map(|place| For::Readers(gate, place)))
    }

    /// Enters the list to wait for a lock; None if that would never end.
    pub(super) fn for_lock(holder: &'t AtomicUsize) -> Option<Self> {
        Self::enter(std::iter::once(For::Lock(holder)))
    }

    /// One of these is enough.
    fn enter(any: impl Iterator<Item = For> + Clone) -> Option<Self> {
        let thread = fork::thread_key();
        let this = Self { thread, _borrows: std::marker::PhantomData };
        if MODEL {
            return Some(this); // models have one table, and no list that outlives them
        }
        let mut waits = waits();
        if any.clone().all(|what| leads_to(&waits, what, thread)) {
            std::mem::forget(this);
            return None;
        }
        waits.extend(any.map(|what| Wait { thread, what }));
        Some(this)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !MODEL {
            // A thread is in one wait at a time.
            waits().retain(|wait| wait.thread != self.thread);
        }
    }
}

/// Whether the arrows from `start` lead to a thread (K1).
fn leads_to(waits: &[Wait], start: For, thread: usize) -> bool {
    let (mut open, mut seen) = (vec![start], Vec::new());
    while let Some(what) = open.pop() {
        for holder in holders(what) {
            if holder == thread {
                return true;
            }
            if !seen.contains(&holder) {
                seen.push(holder);
                open.extend(
                    waits.iter().filter(|wait| wait.thread == holder).map(|wait| wait.what),
                );
            }
        }
    }
    false
}

/// The threads that what somebody waits for belongs to.
fn holders(what: For) -> Vec<usize> {
    match what {
        // SAFETY: of the caller, or of an entry of the list, which is locked (K3).
        For::Readers(gate, place) => unsafe { &*gate }.inside(place),
        For::Lock(holder) => {
            // SAFETY: as above.
            let holder = unsafe { &*holder };
            // ORDERING: Relaxed: K2; who is not in the list does not matter.
            vec![holder.load(Ordering::Relaxed)]
        }
    }
}
