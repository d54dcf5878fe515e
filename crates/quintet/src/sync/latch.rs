//! The lock of one line: sixteen bits in the line itself, so that who has fetched the line has fetched its lock.
//!
//! ```text
//!   OPEN ◀──take, let go──▶ HELD
//!    └──close──▶ CLOSED, for ever
//! ```
//!
//! **Y1.** A latch is held for a handful of instructions: no user code, no allocation, no wait for anything else.
//! **Y2.** Who has closed a latch has waited for its last holder, and sees what that one has done. Nobody holds it again.
//! **Y3.** All states are even: what lies among tags that are odd is never taken for one of them.

use super::{AtomicU16, Backoff, Ordering};

const OPEN: u16 = 0;
const HELD: u16 = 2;
const CLOSED: u16 = 4;

/// A latch. Zero bytes are an open one.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Latch(AtomicU16);

/// The right to change what a latch guards, until it is dropped; nothing if the latch is closed.
#[derive(Debug)]
#[must_use]
pub(crate) struct Latched<'l>(Option<&'l Latch>);

impl Latch {
    pub(crate) fn new() -> Self {
        Self(AtomicU16::new(OPEN))
    }

    /// Takes the latch if it is open.
    #[inline(always)]
    pub(crate) fn try_take(&self) -> Option<Latched<'_>> {
        // By a closure: who did not get it has nothing to let go of.
        self.turn(HELD).then(|| Latched(Some(self)))
    }

    /// Takes the latch as soon as it is open, or finds it closed.
    pub(crate) fn take(&self) -> Latched<'_> {
        let mut backoff = Backoff::new();
        loop {
            if let Some(latched) = self.try_take() {
                return latched;
            }
            if self.is_closed() {
                return Latched(None);
            }
            backoff.snooze();
        }
    }

    /// Closes the latch, as soon as nobody holds it (Y2).
    #[inline(always)]
    pub(crate) fn close(&self) {
        let mut backoff = Backoff::new();
        while !self.turn(CLOSED) && !self.is_closed() {
            backoff.snooze();
        }
    }

    /// From open to another state.
    #[inline(always)]
    fn turn(&self, state: u16) -> bool {
        // ORDERING: Acquire: partner is the drop of `Latched`; Release: partner is `is_closed`.
        self.0.compare_exchange(OPEN, state, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn is_closed(&self) -> bool {
        // ORDERING: Acquire: partner is `turn`: what the last holder did, whom the closer has seen (Y2).
        self.0.load(Ordering::Acquire) == CLOSED
    }
}

impl Drop for Latched<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(latch) = self.0 {
            // ORDERING: Release: partner is `turn`. An exchange, not a store: when the change returns it is no longer in a store buffer.
            latch.0.swap(OPEN, Ordering::AcqRel);
        }
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_latch_is_held_by_one_and_closed_for_ever() {
        let latch = Latch::new();
        let held = latch.try_take();
        assert!(held.is_some());
        (0..2)
            .for_each(|_| assert!(latch.try_take().is_none(), "an attempt in vain opens nothing"));
        drop(held);
        drop(latch.take());
        latch.close();
        assert!(latch.try_take().is_none());
        drop(latch.take());
        latch.close();
        assert!(latch.try_take().is_none(), "who finds it closed does not open it");
    }

    #[test]
    fn who_closes_waits_for_the_holder() {
        let latch = Latch::new();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let held = latch.take();
            scope.spawn(|| {
                latch.close();
                assert!(done.load(Ordering::Relaxed));
            });
            std::thread::sleep(std::time::Duration::from_millis(5));
            done.store(true, Ordering::Relaxed);
            drop(held);
        });
    }
}
