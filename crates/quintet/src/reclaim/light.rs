//! Which seats announce without a fence, and what a collector has to do for it.
//!
//! Who enters and leaves with every operation cannot afford a fence each time. Its seat is *light*:
//! what it announces may be on its way, and a collector must interrupt all threads before it looks.
//! Who announces once per era can afford one. Its seat is *fenced*, and the collector's own fence
//! is enough.
//!
//! ```text
//!            ┌────── lighten: counted, then a fence ──────▶┐
//!          FENCED                                         LIGHT         (both while the seat is outside)
//!            └◀───── weigh down: fenced, then uncounted ───┘
//! ```
//!
//! **F1.** The roster's `marked` counts the seats that may announce without a fence, *light*,
//! vacant ones too.
//! **F2.** A collector asks for that number behind a fence that follows its seal. If it reads 0, a
//! seat that becomes light later has its fence after the collector's, and sees all unlinks of the
//! batch; one that was light before has ended its sections, which the collector sees as well
//! (Release, Acquire). All others announce with a fence. So the collector's fence does what the
//! heavy barrier would (`barrier` B1).
//! **F3.** Quiet handles are fenced: they announce when the era has moved on and at no other quiet
//! point. Handles that pin are light. A thread's own seat becomes light when it is pinned often: a
//! look at a table now and then must not make all collectors interrupt everybody. Whoever takes a
//! seat makes it what it needs.

use super::collect::FULL;
use super::domain::Core;
use super::seat::SeatState;
use crate::sync::{MODEL, Ordering, fence};

/// A thread's own seat is light from so many sections on (F3).
const OFTEN: u16 = if MODEL { 2 } else { 64 };

/// Where a fence is enough, batches are so many times smaller: what is freed is still in the cache,
/// for the next allocation.
const SMALLER: usize = 2;

impl Core {
    /// Lets a seat that is outside announce without a fence, if the system grants the barrier that
    /// needs it.
    pub(super) fn lighten(&self, seat: &SeatState) {
        if self.pulse.barrier.is_usual() && seat.is_fenced() {
            // ORDERING: Relaxed and a fence: partner is the collector's fence (F2).
            self.roster.marked.fetch_add(1, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            seat.set_fenced(false);
        }
    }

    /// Makes a seat that is outside announce with a fence.
    pub(super) fn weigh_down(&self, seat: &SeatState) {
        if !seat.is_fenced() {
            seat.set_fenced(true);
            // ORDERING: Release: the seat's light sections are over; partner: `is_light`.
            self.roster.marked.fetch_sub(1, Ordering::Release);
        }
    }

    /// Whether some seat may announce without a fence.
    fn is_light(&self) -> bool {
        // ORDERING: Acquire: partner is `weigh_down`.
        self.roster.marked.load(Ordering::Acquire) != 0
    }

    /// The collector's barrier between seal and scan (`reclaim` E4, F2). False if it was refused.
    pub(super) fn heavy(&self) -> bool {
        // ORDERING: SeqCst: partners are the fences of `lighten`, and of fenced announcements
        // (`barrier` B1).
        fence(Ordering::SeqCst);
        if !self.is_light() {
            return true;
        }
        // ORDERING: Relaxed: statistics.
        self.barriers.fetch_add(1, Ordering::Relaxed);
        self.pulse.barrier.heavy()
    }

    /// How much, by weight, is worth a barrier.
    pub(super) fn batch(&self) -> usize {
        if self.is_light() { FULL } else { FULL.div_ceil(SMALLER) }
    }

    /// Opens a section that is not of the usual kind: a nested one, or one on a fenced seat.
    #[cold]
    pub(super) fn enter_unusual(&self, seat: &SeatState) -> u64 {
        if !seat.is_inside() && seat.count_pin(&self.pulse.era) >= OFTEN {
            self.lighten(seat);
        }
        seat.enter_usual(&self.pulse.era).unwrap_or_else(|| seat.enter_unusual(&self.pulse.era))
    }
}
