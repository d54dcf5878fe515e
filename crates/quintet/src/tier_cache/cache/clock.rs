//! Time: milliseconds that go on over a restart, and the ticks of recency.
//!
//! Expiry is measured by the system's monotonic clock, which all processes of a machine share and nobody can set; the segment
//! keeps what has to be added to it since the machine restarted. Recency has a clock of its own, which counts insertions: it
//! moves on once for every 128th part of the blocks that was filled, so that a cache nobody inserts into is not written by its readers.

use super::view::{Global, View};
use crate::sync::Ordering;
use crate::tier_cache::step::{Point, add, store};

/// The system's coarse monotonic clock, in milliseconds.
pub(super) fn monotonic_ms() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure outlives the call and is written by it.
    let told = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    if told != 0 {
        return 1;
    }
    (time.tv_sec as u64).wrapping_mul(1000).wrapping_add(time.tv_nsec as u64 / 1_000_000)
}

impl View<'_> {
    /// The segment's time in milliseconds, at least 1.
    pub(super) fn now(&self) -> u64 {
        // ORDERING: Relaxed: set once per boot, before anybody works with the segment.
        let epoch = self.global(Global::Epoch).load(Ordering::Relaxed);
        monotonic_ms().wrapping_add(epoch).max(1)
    }

    /// When an entry that lives so long from now on expires; 0 for never.
    pub(super) fn expiry(&self, ttl: Option<std::time::Duration>) -> u64 {
        match ttl {
            None => 0,
            Some(ttl) => {
                let ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
                self.now().saturating_add(ms)
            }
        }
    }

    /// Notes the time, so that it can go on from here after a restart.
    pub(super) fn note_time(&self) {
        store(Point::Time, self.global(Global::LastSeen), self.now());
    }

    /// The machine has restarted: its clock began anew, ours goes on.
    pub(super) fn resume_time(&self) {
        // ORDERING: Acquire: whatever the last process of the former boot noted.
        let last = self.global(Global::LastSeen).load(Ordering::Acquire);
        let epoch = last.wrapping_sub(monotonic_ms()).wrapping_add(1);
        store(Point::Time, self.global(Global::Epoch), epoch);
    }

    /// An insertion of a handle that had made `before` of them. Moves the clock of recency on when it is time.
    pub(super) fn count_insertion(&self, before: u64) {
        let pace = self.sizes.pace.max(1) as u64;
        if before % pace == pace - 1 {
            add(Point::Tick, self.global(Global::Tick), 1);
        }
    }

    /// The tick of an access. Where every access counts, it moves the clock on.
    #[inline(always)]
    pub(super) fn tick_of_access(&self) -> u32 {
        if self.sizes.pace == 0 {
            return add(Point::Tick, self.global(Global::Tick), 1) as u32 + 1;
        }
        self.tick()
    }
}
