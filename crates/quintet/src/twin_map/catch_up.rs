//! From STALE or BROKEN to FRESH: the writer gets a place for itself, and brings the copy there up
//! to date. The rules (`twin` X1 to X7) stand above the [`Twin`].

use super::absorb::Absorb;
use super::twin::{Phase, Stalled, Twin};
use super::user_code::{caught, drop_each};
use super::wait::{GuardError, Patience};
use super::word::{Place, Places};
use crate::sync::{MODEL, park_timeout};
use std::panic::resume_unwind;
use std::time::{Duration, Instant};

/// Logs keep room for so many entries between batches.
const KEPT: usize = 1024;

/// The replay prepares for so many operations ahead.
const AHEAD: usize = 16;

/// A copy of so many bytes takes a microsecond, about.
const BYTES_PER_MICROSECOND: usize = 2_000;

/// No wait is shorter: sleeping and waking take as long.
const SHORTEST: Duration = Duration::from_micros(50);

impl<T: Absorb<Op>, Op> Twin<T, Op> {
    /// Drains the writable copy and brings it up to date (`twin` X1, X2). `Ok(false)`: the task
    /// will be woken.
    pub(super) fn ready(&mut self, patience: Patience<'_>) -> Result<bool, GuardError> {
        if self.phase == Phase::Fresh {
            return Ok(true);
        }
        self.look_ahead();
        self.pace.wake();
        self.may_nap = matches!(patience, Patience::Forever);
        if !self.settled {
            self.settled = self.core.gate.settle();
        }
        if !self.settled {
            return Err(GuardError::BarrierRefused);
        }
        if !self.drain(patience)? {
            return Ok(false);
        }
        self.sweep_spare();
        if self.phase == Phase::Stale && !self.catch_up(patience) {
            self.phase = Phase::Broken;
            self.fallen.take_log(&mut self.log, 0);
            self.renew();
        }
        if self.phase == Phase::Broken {
            self.repair();
        }
        self.phase = Phase::Fresh;
        self.log.shrink_to(KEPT);
        match if self.keeps_fallen { None } else { self.fallen.drop_all() } {
            None => Ok(true),
            Some(panic) => resume_unwind(panic),
        }
    }

    /// Prepares for the first operations of the replay while others are still looked for.
    pub(super) fn look_ahead(&self) {
        // SAFETY: we are the writer, and write nothing meanwhile.
        let copy = unsafe { self.core.peek(self.writable) };
        if let (Some(copy), Phase::Stale) = (copy, self.phase) {
            let first = self.log.len().min(AHEAD);
            self.log.range(..first).for_each(|op| copy.prepare(op));
        }
    }

    /// Waits until nobody is at the writable place, or takes another one instead (`twin` X7).
    fn drain(&mut self, patience: Patience<'_>) -> Result<bool, GuardError> {
        if self.core.gate.is_drained(self.writable) {
            return Ok(true); // mostly, and without a look at the clock
        }
        let first = if self.stalled == Stalled::Wait { patience } else { self.little(patience) };
        let (gate, parks) = (&self.core.gate, &mut self.stats.parks);
        let drained = gate.drain(Places::one(self.writable), first, parks);
        if self.stalled == Stalled::Wait
            || matches!(drained, Ok(Some(_)) | Err(GuardError::BarrierRefused))
        {
            return drained.map(|place| place.is_some());
        }
        // Whoever leaves first, of the copy to be written or of the one that was left behind.
        let either = Places::one(self.spare).or(self.writable);
        match gate.drain(either, patience, parks)? {
            None => return Ok(false),
            Some(place) if place == self.writable || gate.is_clear(self.writable) => {
                return Ok(true);
            }
            Some(_) => {}
        }
        std::mem::swap(&mut self.writable, &mut self.spare);
        self.empty(self.writable);
        self.spare_is_empty = false;
        self.stats.left_behind += 1;
        Ok(true)
    }

    /// As much of a patience as it takes to make a copy (`twin` X7). A task cannot be woken by a
    /// clock: it does not wait.
    fn little(&self, patience: Patience<'_>) -> Patience<'static> {
        let bytes = self.bytes.iter().max().copied().unwrap_or(0);
        let most = Duration::from_micros((bytes / BYTES_PER_MICROSECOND) as u64).max(SHORTEST);
        match patience {
            _ if MODEL => Patience::None,
            Patience::None | Patience::Task(_) => Patience::None,
            Patience::Forever => Patience::Until(Instant::now() + most),
            Patience::Until(end) | Patience::Brief(end) => {
                Patience::Until(end.min(Instant::now() + most))
            }
        }
    }

    /// Gives up the copy at a place that is drained.
    pub(super) fn empty(&mut self, place: Place) {
        // SAFETY: we are the writer; not readable since a settled publish, and drained (`gate` D2).
        self.fallen.editions.extend(unsafe { self.core.put(place, None) });
        *place.of_mut(&mut self.bytes) = 0;
    }

    /// Gives up the copy that was left behind, once its readers have gone.
    fn sweep_spare(&mut self) {
        if !self.spare_is_empty && self.core.gate.is_clear(self.spare) {
            self.empty(self.spare);
            self.spare_is_empty = true;
        }
    }

    /// Brings the stale copy up to date by the log; false if it is to be made anew (`twin` X7).
    fn catch_up(&mut self, patience: Patience<'_>) -> bool {
        // SAFETY: the readable copy is not written (`gate` D1).
        let truth = unsafe { self.core.copy(self.readable) };
        // SAFETY: we are the writer.
        let is_there = unsafe { self.core.peek(self.writable) }.is_some();
        if !is_there {
            return false; // left behind
        }
        if truth.is_copied_sooner(self.log.len()) {
            self.stats.copied += 1;
            return false;
        }
        if !self.await_owners(patience) {
            self.stats.left_behind += 1;
            return false;
        }
        if !self.replay() {
            self.stats.rebuilds += 1;
            return false;
        }
        true
    }

    /// Waits a little until the writable copy is ours alone (`core` C3); false if it is not.
    fn await_owners(&self, patience: Patience<'_>) -> bool {
        // SAFETY: `ready` has drained the place (`gate` D2); the reference is not used.
        let is_ours = || unsafe { self.core.copy_mut(self.writable) }.is_some();
        if is_ours() {
            return true;
        }
        let Patience::Until(end) = self.little(patience) else { return false };
        while Instant::now() < end {
            park_timeout(SHORTEST);
            if is_ours() {
                return true;
            }
        }
        false
    }

    /// Applies the log to the stale copy, one operation at a time; false if the copy is not to be
    /// trusted. The caller has drained the place, and found a copy there that is the writer's
    /// alone.
    pub(super) fn replay(&mut self) -> bool {
        // SAFETY: the readable copy is not written (`gate` D1).
        let truth = unsafe { self.core.copy(self.readable) };
        // SAFETY: the caller has drained the place (`gate` D2), and found the copy to be ours alone
        // (`core` C2).
        let copy = unsafe { self.core.copy_mut_again(self.writable) };
        let (log, old) = (&mut self.log, &mut self.fallen.old);
        let replayed = caught(|| {
            while let Some(op) = log.pop_front() {
                if let Some(later) = log.get(AHEAD - 1) {
                    copy.prepare(later);
                }
                if copy.absorb_second(op, old).is_err() {
                    return false;
                }
            }
            copy.agrees(truth)
        });
        replayed.unwrap_or_else(|payload| {
            drop_each(std::iter::once(payload));
            false
        })
    }

    /// Makes a copy in doubt anew. A panic leaves the phase BROKEN (`twin` X4).
    pub(super) fn repair(&mut self) {
        self.stats.rebuilds += 1;
        self.renew();
    }

    /// Makes the writable copy anew: the readable copy, then what is staged. A panic leaves the
    /// phase BROKEN (`twin` X4).
    fn renew(&mut self) {
        self.phase = Phase::Broken;
        // SAFETY: the readable copy is not written (`gate` D1).
        let truth = unsafe { self.core.copy(self.readable) };
        let keeps_memory = !std::mem::needs_drop::<T::Old>();
        // SAFETY: the place was drained before the phase left STALE, and has not been readable
        // since (`gate` D2).
        match unsafe { self.core.copy_mut(self.writable) } {
            Some(copy) if keeps_memory => copy.rebuild_into(truth),
            _ => {
                let copy = T::rebuild(truth);
                // SAFETY: as above; the reference to the old copy is gone.
                self.fallen.editions.extend(unsafe { self.core.put(self.writable, Some(copy)) });
            }
        }
        // SAFETY: as above; there is a copy now, and it is ours alone.
        let copy = unsafe { self.core.copy_mut_again(self.writable) };
        for op in &mut self.log {
            self.fallen.old.extend(copy.absorb_first(op));
        }
        self.phase = Phase::Fresh;
    }
}
