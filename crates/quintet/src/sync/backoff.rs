//! Waiting politely for another thread's next step.

use super::{MODEL, spin_loop, thread};

/// Spins a little longer each time, then yields the processor.
///
/// Only for waits whose end another *running* thread is about to bring; anything longer parks.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    step: u32,
}

impl Backoff {
    const SPIN_STEPS: u32 = 6;

    pub(crate) const fn new() -> Self {
        Self { step: 0 }
    }

    /// Waits a moment. A model checker is told to run somebody else at once.
    pub(crate) fn snooze(&mut self) {
        if MODEL || self.step > Self::SPIN_STEPS {
            thread::yield_now();
            return;
        }
        for _ in 0..1u32 << self.step {
            spin_loop();
        }
        self.step += 1;
    }

    /// True once spinning has given way to yielding.
    #[allow(dead_code)]
    pub(crate) const fn is_yielding(&self) -> bool {
        self.step > Self::SPIN_STEPS
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::Backoff;

    #[test]
    fn spins_first_and_then_yields() {
        let mut backoff = Backoff::new();
        assert!(!backoff.is_yielding());
        for _ in 0..=Backoff::SPIN_STEPS {
            backoff.snooze();
        }
        assert!(backoff.is_yielding());
        backoff.snooze();
    }
}
