//! The writer's side of the gate: publishing, and waiting until a place is empty. The rules (`gate`
//! D1 to D9) stand above the [`Gate`].

use super::gate::{FENCED, Gate, SeatState};
use super::wait::{GuardError, Parker, Patience};
use super::waits::Waiting;
use super::word::{Door, Place, Places, State};
use crate::sync::{Backoff, MODEL, Ordering, fenced::swap_fenced, fork, park_timeout, thread};
use std::time::Instant;

/// Looks at the seats before the writer prepares to park.
const LOOKS: usize = if MODEL { 1 } else { 64 };

impl Gate {
    /// Makes `place` readable by one of its doors, and says whether the barrier was granted: if
    /// not, [`settle`](Self::settle) must succeed before the old place is drained. Only the writer
    /// calls this, with a place that holds a copy and is drained.
    pub(super) fn publish(&self, place: Place, fenced: bool) -> bool {
        let settled = self.open(place, fenced);
        self.arrivals.announce_fenced();
        settled
    }

    /// The same without a word to those who wait for a version: it is the one that was open (`home`
    /// H2). A SeqCst fence lies behind the exchange in any case.
    pub(super) fn open(&self, place: Place, fenced: bool) -> bool {
        let new = if fenced { place.fenced() } else { place.plain() };
        // ORDERING: Relaxed: nobody is waiting; the line below publishes it.
        self.sign.state.store(State::NOT_WRITABLE.word(), Ordering::Relaxed);
        // ORDERING: Release: partner is the Acquire of `is_readable`. The word that was there hands
        // nothing over. SeqCst fence: `barrier` B1; partner: the fence of whoever came by that door
        // if it was a fenced one (`gate` D8), and `arrivals`.
        let old = swap_fenced(&self.sign.readable, new.word());
        // SAFETY: only words of doors are stored.
        let old = unsafe { Door::from_word(old) };
        old.is_fenced() || self.settle()
    }

    /// The heavy barrier between a publish and the first scan (`barrier` B1).
    pub(super) fn settle(&self) -> bool {
        self.sign.barrier.heavy()
    }

    /// True if no guard is on the place. Only after a settled publish of another place.
    pub(super) fn is_clear(&self, place: Place) -> bool {
        let mut clear = true;
        // ORDERING: Acquire: partner is the Release of `leave`.
        let is_out =
            |door: Door, seat: &SeatState| door.of(&seat.inside).load(Ordering::Acquire) <= FENCED;
        self.roster()
            .visit(|seat| clear &= place.doors().into_iter().all(|door| is_out(door, seat)));
        clear
    }

    /// The same for a writer that is about to write there: an earlier wait that was given up may
    /// have left the state armed.
    pub(super) fn is_drained(&self, place: Place) -> bool {
        self.disarm();
        self.is_clear(place)
    }

    /// The first of the places that no guard is on. Only after a settled publish of another place.
    fn first_clear(&self, places: Places) -> Option<Place> {
        places.iter().find(|place| self.is_clear(*place))
    }

    /// The same, with so many looks: most guards are short.
    pub(super) fn soon_clear(&self, places: Places, looks: usize) -> Option<Place> {
        let mut backoff = Backoff::new();
        for _ in 0..looks {
            if let Some(place) = self.first_clear(places) {
                return Some(place);
            }
            if !MODEL && !backoff.is_yielding() {
                backoff.snooze();
            }
        }
        None
    }

    /// True if a guard on the place belongs to the calling thread: waiting for it would never end.
    fn waits_for_itself(&self, place: Place) -> bool {
        let me = fork::thread_key();
        let mut own = false;
        // ORDERING: Relaxed: if it is our key, we wrote it.
        let is_ours =
            |door: Door, seat: &SeatState| door.of(&seat.inside).load(Ordering::Relaxed) == me;
        self.roster()
            .visit(|seat| own |= place.doors().into_iter().any(|door| is_ours(door, seat)));
        own
    }

    /// The threads that have guards on a place.
    pub(super) fn inside(&self, place: Place) -> Vec<usize> {
        let mut keys = Vec::new();
        self.roster().visit(|seat| {
            // ORDERING: Relaxed: who matters has handed it over otherwise (`waits` K2).
            let words = place.doors().map(|door| door.of(&seat.inside).load(Ordering::Relaxed));
            keys.extend(words.into_iter().filter(|word| *word > FENCED));
        });
        keys
    }

    /// True if the calling thread has a guard on some place.
    pub(super) fn is_inside(&self) -> bool {
        Place::ALL.into_iter().any(|place| self.waits_for_itself(place))
    }

    /// True if the writer sleeps until a guard of the calling thread ends.
    pub(super) fn is_awaited(&self) -> bool {
        // ORDERING: Relaxed: a look from time to time.
        let state = State::from_word(self.sign.state.load(Ordering::Relaxed));
        !state.is_hoping()
            && Place::ALL
                .into_iter()
                .any(|place| state.is_waiting_for(place) && self.waits_for_itself(place))
    }

    /// Waits until no guard is on one of the places (`gate` D2), and returns it. `Ok(None)`: not
    /// yet, and the task of the patience will be woken. Adds to `parks` how often the thread slept.
    pub(super) fn drain(
        &self,
        places: Places,
        patience: Patience<'_>,
        parks: &mut u64,
    ) -> Result<Option<Place>, GuardError> {
        // A future that was dropped or forgotten may have left the state armed.
        self.disarm();
        let mut asked = false;
        loop {
            if let Some(place) = self.soon_clear(places, LOOKS) {
                return Ok(Some(place));
            }
            if matches!(patience, Patience::None) {
                return Err(GuardError::Occupied);
            }
            if !asked && places.iter().all(|place| self.waits_for_itself(place)) {
                return Err(GuardError::WouldDeadlock);
            }
            asked = true;
            self.arm(places, patience);
            let clear = self.settle().then(|| self.first_clear(places));
            match (clear, patience) {
                (Some(None), Patience::Task(_)) => return Ok(None),
                (Some(None), _) => {
                    *parks += 1;
                    let parked = self.park_listed(places, patience);
                    if parked.is_err() {
                        self.disarm();
                    }
                    parked?;
                }
                (Some(place), _) => {
                    self.disarm();
                    return Ok(place);
                }
                (None, _) => {
                    self.disarm();
                    return Err(GuardError::BarrierRefused);
                }
            }
        }
    }

    fn arm(&self, places: Places, patience: Patience<'_>) {
        let parker = match patience {
            Patience::Task(waker) => Parker::Task(waker.clone()),
            _ => Parker::Thread(thread::current()),
        };
        let state = match patience {
            Patience::Brief(_) => State::hoping(places),
            _ => State::waiting(places),
        };
        // SAFETY: the state is neither WAITING nor CLAIMED, so this is the only user (`gate` D5).
        let old = self.parker.with_mut(|slot| unsafe { (*slot).replace(parker) });
        // ORDERING: Release: partner is the Acquire of `left` and `wake_writer`: the parker is
        // there. Then `barrier` B1, by the caller.
        self.sign.state.store(state.word(), Ordering::Release);
        drop(old);
    }

    /// [`park`](Self::park); who would sleep for ever enters the list of those who do (`waits` K1).
    fn park_listed(&self, places: Places, patience: Patience<'_>) -> Result<(), GuardError> {
        let waiting = match patience {
            Patience::Forever => {
                Some(Waiting::for_readers(self, places).ok_or(GuardError::WouldDeadlock)?)
            }
            _ => None,
        };
        let parked = self.park(patience);
        drop(waiting);
        if parked { Ok(()) } else { Err(GuardError::TimedOut) }
    }

    /// Sleeps until the state is neither WAITING nor CLAIMED; false if the time is over.
    fn park(&self, patience: Patience<'_>) -> bool {
        loop {
            // ORDERING: Acquire: partner is the Release store of `wake_writer`.
            let state = State::from_word(self.sign.state.load(Ordering::Acquire));
            if !state.is_waiting() && state != State::CLAIMED {
                return true;
            }
            match patience {
                Patience::Until(end) | Patience::Brief(end) => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    park_timeout(left);
                }
                _ => thread::park(),
            }
        }
    }

    /// Takes WAITING back; if a reader has claimed it, waits for the few instructions that it
    /// needs.
    fn disarm(&self) {
        let mut backoff = Backoff::new();
        loop {
            // ORDERING: Acquire: partner is the Release store of `wake_writer`.
            let state = State::from_word(self.sign.state.load(Ordering::Acquire));
            if state == State::CLAIMED {
                backoff.snooze();
                continue;
            }
            if !state.is_waiting() {
                return;
            }
            // ORDERING: Acquire on failure is by the next load; success hands nothing over.
            let taken = self.sign.state.compare_exchange(
                state.word(),
                State::NOT_WRITABLE.word(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if taken.is_ok() {
                return;
            }
        }
    }
}
