//! The writer's guard.

use super::absorb::Absorb;
use super::twin::{Phase, Twin};
use super::user_code::{caught, drop_each};
use std::collections::VecDeque;
use std::ops::Deref;

/// The writer's guard: reads its own writes, publishes when dropped.
///
/// Dropped by a panic, it discards the batch. Forgotten, it leaves the batch to the next guard.
pub struct Write<'a, T: Absorb<Op>, Op> {
    twin: &'a mut Twin<T, Op>,
    was_panicking: bool,
}

impl<'a, T: Absorb<Op>, Op> Write<'a, T, Op> {
    /// The twin is FRESH.
    pub(super) fn new(twin: &'a mut Twin<T, Op>) -> Self {
        Self { twin, was_panicking: std::thread::panicking() }
    }

    /// Applies an operation; returns what fell out of the copy.
    pub fn apply(&mut self, mut op: Op) -> Option<T::Old> {
        self.change(|copy, log| {
            log.reserve(1);
            let old = copy.absorb_first(&mut op);
            log.push_back(op);
            old
        })
    }

    /// What waits for the publish.
    pub(super) fn log(&self) -> &VecDeque<Op> {
        &self.twin.log
    }

    pub(super) fn change<R>(&mut self, change: impl FnOnce(&mut T, &mut VecDeque<Op>) -> R) -> R {
        self.twin.change(|copy, log, _| change(copy, log))
    }

    /// The same for a change whose pieces fall into a list, to be dropped later (`twin` X5).
    pub(super) fn change_keeping<R>(
        &mut self,
        change: impl FnOnce(&mut T, &mut VecDeque<Op>, &mut Vec<T::Old>) -> R,
    ) -> R {
        self.twin.change(change)
    }

    /// A piece that fell out, to be dropped later (`twin` X5).
    pub(super) fn keep(&mut self, old: T::Old) {
        if std::mem::needs_drop::<T::Old>() {
            self.twin.fallen.old.push(old);
        }
    }

    /// Makes the changes visible to all readers at one moment; returns the number of the new
    /// version. Does so even if nothing has changed.
    pub fn publish(self) -> u64 {
        self.twin.publish_and_return()
    }

    /// Gives up all changes of this batch. The next guard copies the whole structure.
    pub fn discard(self) {
        self.twin.discard();
    }

    /// Gives up the changes behind the first `keep`; the copy is made anew before it is used again
    /// (`twin` X1).
    pub(super) fn take_back(&mut self, keep: usize) {
        if self.twin.log.len() == keep {
            return;
        }
        self.twin.phase = Phase::Broken;
        self.twin.fallen.take_log(&mut self.twin.log, keep);
    }

    /// As [`Twin::take_staged`].
    pub(super) fn take_staged(&mut self) -> Vec<Op> {
        self.twin.take_staged()
    }

    /// Makes a copy in doubt anew, now.
    pub(super) fn make_whole(&mut self) {
        if self.twin.phase == Phase::Broken {
            self.twin.repair();
        }
    }

    /// Publishes without giving up the guard, which is of no use any more. Readers stay at the copy
    /// that was written (`home` H7).
    pub(super) fn publish_now(&mut self) -> u64 {
        self.twin.publish()
    }

    pub(super) fn is_published(&self) -> bool {
        self.twin.phase == Phase::Stale
    }

    /// How many changes wait for the publish.
    pub fn staged(&self) -> usize {
        self.twin.log.len()
    }

    /// The version that readers see now; the publish makes the next one.
    pub fn version(&self) -> u64 {
        self.twin.version
    }
}

impl<T: Absorb<Op>, Op> Deref for Write<'_, T, Op> {
    type Target = T;

    fn deref(&self) -> &T {
        let is_fresh = self.twin.phase == Phase::Fresh;
        let place = if is_fresh { self.twin.writable } else { self.twin.readable }; // (`twin` X2)
        // SAFETY: the guard borrows the writer: nobody writes either place while the reference
        // lives. The readable one holds a copy always (`gate` D1), the writable one if it is FRESH
        // (`twin` X1).
        unsafe { self.twin.core.copy(place) }
    }
}

impl<T: Absorb<Op>, Op> Drop for Write<'_, T, Op> {
    fn drop(&mut self) {
        if self.twin.phase == Phase::Stale {
            return; // published
        }
        if std::thread::panicking() && !self.was_panicking {
            self.twin.discard();
            return;
        }
        if self.twin.log.is_empty() {
            return;
        }
        if let Err(payload) = caught(|| self.twin.publish_and_return()) {
            // The repair panicked again: no copy with this batch can be had.
            drop_each(std::iter::once(payload));
            self.twin.discard();
        }
    }
}

impl<T: Absorb<Op> + std::fmt::Debug, Op> std::fmt::Debug for Write<'_, T, Op> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(out)
    }
}
