//! How fast publishes follow each other: that decides by which door readers enter (`gate` D8).
//!
//! | | Readers | A publish |
//! |---|---|---|
//! | by the plain door | no fence | interrupts all threads of the process: microseconds |
//! | by the fenced door | a fence per section | a fence |

//!
//! It also decides whether readers return to the copy that they came from (`home` H1): only if they
//! will be there for most of the time.

use crate::sync::MODEL;
use std::time::{Duration, Instant};

/// Publishes that leave less than this between them follow each other at once.
const AT_ONCE: Duration = Duration::from_micros(10);

/// After so many of them the fenced door is opened.
const MANY: u32 = 4;

/// Meanwhile the clock is asked at every so many publishes: it costs as much as the publish.
const LOOK: u32 = 64;

/// Publishes are rare if the writer has rested so long before,
const RARE: Duration = Duration::from_micros(50);

/// and so long for each change: several times as long as its replay takes.
const PER_CHANGE: Duration = Duration::from_micros(1);

/// What is known of the last publishes.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Publishes that followed the one before at once, or, with the fenced door open, until the
    /// next look at the clock.
    count: u32,
    hasty: bool,
    /// The last publish has opened the fenced door.
    fenced: bool,
    /// The end of the last publish, or the last look.
    since: Option<Instant>,
    /// From the end of the last publish to the begin of the write under way.
    rest: Duration,
    /// What tests say instead of the clock: are publishes rare?
    #[cfg(test)]
    pub(super) insists: bool,
}

impl Pace {
    /// A write begins.
    #[inline]
    pub(super) fn wake(&mut self) {
        if MODEL {
            return;
        }
        let since = self.since.filter(|_| !self.hasty);
        self.rest = since.map_or(Duration::ZERO, |since| since.elapsed());
    }

    /// Whether readers of a publish with so many changes are worth sending home (`home` H1).
    pub(super) fn is_rare(&self, changes: usize) -> bool {
        #[cfg(test)]
        let is_rare = |_: Duration| self.insists;
        #[cfg(not(test))]
        let is_rare = |rest: Duration| self.has_rested(rest);
        is_rare(RARE + PER_CHANGE * u32::try_from(changes).unwrap_or(u32::MAX))
    }

    /// Whether the writer has rested so long.
    pub(super) fn has_rested(&self, time: Duration) -> bool {
        !self.hasty && self.rest >= time
    }

    /// A publish begins: is the fenced door to be opened? `open_fenced`: it is open now. If readers
    /// have closed it themselves (`gate` D9), there is no hurry. A model sees both doors, and every
    /// change.
    pub(super) fn begin(&mut self, version: u64, open_fenced: bool) -> bool {
        if MODEL {
            return matches!(version % 4, 1 | 2);
        }
        if self.fenced && !open_fenced {
            (self.count, self.hasty, self.fenced, self.since) = (0, false, false, None);
        }
        if !self.hasty {
            let at_once = self.since.is_some_and(|since| since.elapsed() < AT_ONCE);
            self.count = if at_once { self.count + 1 } else { 0 };
            if self.count >= MANY {
                (self.count, self.hasty, self.since) = (LOOK, true, Some(Instant::now()));
            }
        } else if self.count > 1 {
            self.count -= 1;
        } else {
            let at_once = self.since.is_some_and(|since| since.elapsed() < AT_ONCE * LOOK);
            (self.count, self.hasty) = (if at_once { LOOK } else { 0 }, at_once);
            self.since = Some(Instant::now());
        }
        self.hasty
    }

    /// A publish has opened one of the doors.
    pub(super) fn end(&mut self, fenced: bool) {
        self.fenced = fenced;
        if !self.hasty && !MODEL {
            self.since = Some(Instant::now());
        }
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    /// Publishes. The door that is open was opened by the last one, unless readers have closed it.
    fn publish(pace: &mut Pace, readers_closed: bool) -> bool {
        let hasty = pace.begin(0, pace.fenced && !readers_closed);
        pace.end(hasty);
        hasty
    }

    /// So many in a row by the fenced door. A thread may be kept from running at any time: some
    /// time it is not.
    fn storm(pace: &mut Pace) {
        let mut row = 0;
        for _ in 0..1_000_000 {
            row = if publish(pace, false) { row + 1 } else { 0 };
            if row == 3 * LOOK {
                return;
            }
        }
        panic!("the fenced door does not stay open");
    }

    #[test]
    fn publishes_in_a_row_open_the_fenced_door_and_pauses_close_it() {
        let mut pace = Pace::default();
        for _ in 0..100 {
            std::thread::sleep(2 * AT_ONCE);
            assert!(!publish(&mut pace, false));
        }
        storm(&mut pace);
        assert!(!publish(&mut pace, true));
        storm(&mut pace);
        let mut slow = (0..=LOOK).map(|_| {
            std::thread::sleep(2 * AT_ONCE);
            publish(&mut pace, false)
        });
        assert!(slow.any(|hasty| !hasty));
    }
}
