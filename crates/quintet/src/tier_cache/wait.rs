//! Waiting for a peer: spin, then sleep, then give up.

use super::MapError;
use crate::sync::{Backoff, MODEL};
use std::time::{Duration, Instant};

/// One wait, from its first pause to its deadline.
#[derive(Debug)]
pub(crate) struct Wait {
    timeout: Duration,
    since: Option<Instant>,
    nap: Duration,
    backoff: Backoff,
}

const FIRST_NAP: Duration = Duration::from_micros(20);
const LONGEST_NAP: Duration = Duration::from_millis(1);

impl Wait {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { timeout, since: None, nap: FIRST_NAP, backoff: Backoff::new() }
    }

    /// True once spinning has not helped: time to ask whether the peer is alive.
    pub(crate) fn is_long(&self) -> bool {
        MODEL || self.timeout.is_zero() || self.backoff.is_yielding()
    }

    /// Waits a moment, `Busy` after the deadline. A model checker has no clock: it only yields.
    pub(crate) fn pause(&mut self) -> Result<(), MapError> {
        if self.timeout.is_zero() {
            return Err(MapError::Busy);
        }
        if MODEL || !self.backoff.is_yielding() {
            self.backoff.snooze();
            return Ok(());
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() >= self.timeout {
            return Err(MapError::Busy);
        }
        std::thread::sleep(self.nap);
        self.nap = (self.nap * 2).min(LONGEST_NAP);
        Ok(())
    }
}
