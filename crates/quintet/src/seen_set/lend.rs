//! Workers for those who have no handle.
//!
//! **L1.** An idle worker belongs to the set, a lent one to who borrowed it: it is in one place at
//! a time, and comes back when the operation ends, also by a panic.
//! **L2.** The lock is held while a worker changes hands and never longer: no user code runs under
//! it. So operations nest: each has a worker of its own.
//! **L3.** A lent worker has no place at the meeting: it is a visitor there (J1 of `together`), and
//! waits for nobody who may wait for it.

use super::core::{Core, Worker};
use super::together::VISITOR;
use std::mem::ManuallyDrop;
use std::ops::Deref;

/// A worker for one operation (L1).
#[derive(Debug)]
pub(super) struct Lent<'c> {
    core: &'c Core,
    worker: ManuallyDrop<Worker>,
}

impl Core {
    /// Lends a worker: an idle one, or a new one.
    pub(super) fn lend(&self) -> Lent<'_> {
        let idle = self.idle.lock().pop();
        let worker = idle.unwrap_or_else(|| self.worker(VISITOR));
        Lent { core: self, worker: ManuallyDrop::new(worker) }
    }
}

impl Deref for Lent<'_> {
    type Target = Worker;

    #[inline(always)]
    fn deref(&self) -> &Worker {
        &self.worker
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // SAFETY: taken once, here; nobody looks at it afterwards.
        let worker = unsafe { ManuallyDrop::take(&mut self.worker) };
        let mut idle = self.core.idle.lock();
        if idle.len() == idle.capacity() {
            // From one on: most sets have one.
            let more = idle.len().max(1);
            idle.reserve_exact(more);
        }
        idle.push(worker);
    }
}
