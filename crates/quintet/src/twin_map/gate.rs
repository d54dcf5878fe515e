//! What readers and the writer share besides the copies: the two words, the seats; entering, leaving, publishing, draining.
//!
//! ```text
//!  reader                                          writer
//!  enter:  i = readable                            publish: state = NOT_WRITABLE
//!          inside[i] = my key    (plain)                    readable = new            (Release)
//!          light barrier ─────────────── B1 ──────────────── heavy barrier
//!          readable == i ?       (Acquire)         drain:   (1) every inside[old] == 0 (Acquire)? yes: write
//!          no: leave, again                                 (2) parker = me; state = WAITING(old); heavy barrier ─┐
//!  leave:  inside[i] = 0         (Release)                      every inside[old] == 0? no: (4)                   │
//!          light barrier ─────────────────────── B1 ────────────────────────────────────────────────────────────┘
//!             state == WAITING(i)? CAS to CLAIMED           (3) take WAITING back; if CLAIMED, wait for WRITABLE; write
//!             take the parker; state = WRITABLE; wake       (4) park until neither WAITING nor CLAIMED; go to (1)
//! ```
//!
//! **D1.** The readable place holds a copy, and nobody changes it while it is readable.
//! **D2.** A place is written only by the writer, only while it is not readable, and only after a scan that followed the publish's
//! heavy barrier found nobody there. A reader that the scan missed sees the new `readable` in its second look (B1) and leaves.
//! **D3.** A guard exists on a place only between an announcement confirmed by the second look and its end (a second guard on an
//! announced place is only counted): while it lives, no scan finds the place empty, so its copy is not written.
//! **D4.** Readers that come later announce another place, so the old one drains.
//! **D5.** The parker is put in only while the state is neither WAITING nor CLAIMED, and taken out only by the reader that made it CLAIMED. No code of the
//! user runs while it is CLAIMED: a waker is cloned before and woken after.
//! **D6.** A reader whose leave the rescan of (2) missed sees WAITING (B1) and wakes; every round arms, barriers and rescans anew, so
//! no wake-up is lost. A spurious or late wake-up costs one more round.
//! **D7.** One readable word: a publish is one moment for all readers.

use super::arrivals::Arrivals;
use super::twin::TwinStats;
use super::wait::{GuardError, Parker, Patience};
use super::word::{PLACES, Place, State};
use crate::roster::{Address, Roster, Seat};
use crate::sync::{
    Arc, AtomicU32, AtomicU64, AtomicUsize, Backoff, Barrier, CachePadded, HandOver, MODEL, Mutex,
    Ordering, fork, park_timeout, thread,
};
use std::time::Instant;

/// What a reader announces: is it at a place?
///
/// **N1.** A seat that needs fences has the bit [`FENCED`] in all its words, so that in the usual case, where none has it, one
/// comparison with 0 tells both that no fence is needed and that this is the first guard, or the last.
#[derive(Debug)]
pub(super) struct SeatState {
    /// At most [`FENCED`]: no guard on that place. Else the key of the one thread that uses the seat, or, in a shared
    /// seat, [`ONE`] for each guard.
    inside: [AtomicUsize; PLACES],
    /// Guards beyond the first on that place, [`ONE`] for each: the owner's business alone.
    further: [AtomicUsize; PLACES],
}

/// The mark of N1: below every count and every thread's key.
const FENCED: usize = 1;

/// One guard in a count.
const ONE: usize = 2;

/// Counts do not exceed this: further guards on one handle are refused.
const MOST_GUARDS: usize = usize::MAX / 2;

/// Looks at the seats before the writer prepares to park.
const LOOKS: usize = if MODEL { 1 } else { 64 };

/// The line that every reader reads and hardly anybody writes.
#[derive(Debug)]
struct Sign {
    readable: AtomicUsize,
    state: AtomicU32,
    barrier: Barrier,
}

/// Who is where. Does not know what the copies are.
pub(super) struct Gate {
    sign: CachePadded<Sign>,
    parker: HandOver<Option<Parker>>,
    roster: Arc<Roster<SeatState>>,
    /// Who waits for a version to come.
    pub(super) arrivals: Arrivals,
    /// What the writer tells of itself.
    pub(super) told: Told,
    /// Seats of threads whose locals are gone (L3).
    orphans: Mutex<Vec<Orphan>>,
}

/// What the writer has told of itself when it last published. Each number by itself: nobody relies on how they fit together.
#[derive(Debug, Default)]
pub(super) struct Told {
    published: AtomicU64,
    parks: AtomicU64,
    rebuilds: AtomicU64,
    left_behind: AtomicU64,
    /// Bytes that the copies and the log hold.
    bytes: AtomicUsize,
}

impl Told {
    /// Only the writer calls this.
    pub(super) fn tell(&self, stats: &TwinStats, bytes: usize) {
        // ORDERING: Relaxed, all: statistics.
        self.published.store(stats.published, Ordering::Relaxed);
        self.parks.store(stats.parks, Ordering::Relaxed);
        self.rebuilds.store(stats.rebuilds, Ordering::Relaxed);
        self.left_behind.store(stats.left_behind, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn stats(&self) -> TwinStats {
        // ORDERING: Relaxed, as in `tell`.
        TwinStats {
            published: self.published.load(Ordering::Relaxed),
            parks: self.parks.load(Ordering::Relaxed),
            rebuilds: self.rebuilds.load(Ordering::Relaxed),
            left_behind: self.left_behind.load(Ordering::Relaxed),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        // ORDERING: Relaxed, as in `tell`.
        self.bytes.load(Ordering::Relaxed)
    }
}

/// A seat that was abandoned, with its name.
struct Orphan {
    seat: *const SeatState,
    address: Address<SeatState>,
}

// SAFETY: the seat is `Sync`, and lives as long as the roster; its name is a number to everybody but the roster.
unsafe impl Send for Orphan {}

impl Drop for Gate {
    fn drop(&mut self) {
        self.roster.close();
    }
}

// SAFETY: all but the parker is `Send` and `Sync` by itself; the parker is `Send`, and has one user at a time (D5).
unsafe impl Sync for Gate {}

impl SeatState {
    fn new(mark: usize) -> Self {
        Self {
            inside: std::array::from_fn(|_| AtomicUsize::new(mark)),
            further: std::array::from_fn(|_| AtomicUsize::new(mark)),
        }
    }

    /// At no place.
    pub(super) fn is_quiet(&self) -> bool {
        // ORDERING: Acquire: partner is the Release of `leave`: the guards have ended.
        self.inside.iter().all(|inside| inside.load(Ordering::Acquire) <= FENCED)
    }

    /// One more guard on a place that this thread has announced already: its copy is not written while any of them lives (D3),
    /// so there is nothing to confirm.
    pub(super) fn enter_again(&self, place: Place) -> Place {
        let further = place.of(&self.further);
        // ORDERING: Relaxed: this thread alone uses it.
        let count = further.load(Ordering::Relaxed);
        if count >= MOST_GUARDS {
            too_many_guards();
        }
        further.store(count + ONE, Ordering::Relaxed);
        place
    }
}

impl Gate {
    /// The first place is readable.
    pub(super) fn new(barrier: Barrier) -> Self {
        Self {
            sign: CachePadded::new(Sign {
                readable: AtomicUsize::new(Place::ALL[0].word()),
                state: AtomicU32::new(State::NOT_WRITABLE.word()),
                barrier,
            }),
            parker: HandOver::new(None),
            roster: Roster::new(),
            arrivals: Arrivals::new(),
            told: Told::default(),
            orphans: Mutex::new(Vec::new()),
        }
    }

    pub(super) fn join(&self) -> Seat<SeatState> {
        Roster::join(&self.roster, || SeatState::new(self.mark()))
    }

    pub(super) fn roster(&self) -> &Arc<Roster<SeatState>> {
        &self.roster
    }

    /// Enters by a seat for one guard, which nobody owns (L3). Vacates those of earlier guards that have ended.
    #[cold]
    pub(super) fn enter_orphaned(&self) -> (&SeatState, Place) {
        let mut orphans = self.orphans.lock();
        orphans.retain(|orphan| {
            // SAFETY: the gate keeps the roster, and so the seat.
            let seat = unsafe { &*orphan.seat };
            if seat.is_quiet() {
                // SAFETY: abandoned below, and vacated once: it leaves the list. A guard that ends does not touch its seat behind the store that makes it
                // quiet, and only the guard it was made for, or one that was counted beside that, has used it.
                unsafe { self.roster.vacate(orphan.address, false) };
                return false;
            }
            true
        });
        let seat = self.join();
        // SAFETY: the gate keeps the roster while the result is borrowed.
        let state: &SeatState = unsafe { seat.state_unbound() };
        // Inside before others may look at it: what is quiet is vacated.
        let place = self.enter(state);
        orphans.push(Orphan { seat: state, address: seat.address() });
        seat.abandon();
        (state, place)
    }

    pub(super) fn has_fences(&self) -> bool {
        !self.sign.barrier.is_usual()
    }

    /// What the words of a seat are when it is at no place (N1).
    fn mark(&self) -> usize {
        if self.sign.barrier.is_usual() { 0 } else { FENCED }
    }

    // ---- readers ----------------------------------------------------------------------------------------------------

    /// Enters the readable copy. Only the thread that owns the seat may call this.
    ///
    /// No value that is stored here is loaded and computed with again by the next section: branches on it are predicted, so
    /// that the cache misses of consecutive sections overlap. How many do is a question of how few instructions there are.
    #[inline(always)]
    pub(super) fn enter(&self, seat: &SeatState) -> Place {
        let place = self.peek();
        let inside = place.of(&seat.inside);
        // ORDERING: Relaxed: this thread alone writes it.
        if inside.load(Ordering::Relaxed) != 0 {
            return self.enter_slowly(seat);
        }
        // ORDERING: Relaxed: only its absence is acted upon, or the thread's own key; then B1, partner: the heavy barrier of
        // `publish`. The usual barrier, by N1.
        inside.store(fork::thread_key(), Ordering::Relaxed);
        Barrier::Asymmetric.light();
        if self.is_readable(place) { place } else { self.enter_elsewhere(seat, place) }
    }

    /// With a guard there already, or with fences.
    #[cold]
    #[inline(never)]
    fn enter_slowly(&self, seat: &SeatState) -> Place {
        loop {
            let place = self.peek();
            let inside = place.of(&seat.inside);
            if inside.load(Ordering::Relaxed) > FENCED {
                return seat.enter_again(place);
            }
            // ORDERING: Relaxed, then B1, as in `enter`.
            inside.store(fork::thread_key(), Ordering::Relaxed);
            self.sign.barrier.light();
            if self.is_readable(place) {
                return place;
            }
            self.leave(seat, place);
        }
    }

    /// A publish came in between: leaves, and enters the new place.
    #[cold]
    #[inline(never)]
    fn enter_elsewhere(&self, seat: &SeatState, place: Place) -> Place {
        self.leave(seat, place);
        self.enter_slowly(seat)
    }

    /// Leaves a copy. Only the thread that owns the seat may call this, once per `enter`.
    #[inline(always)]
    pub(super) fn leave(&self, seat: &SeatState, place: Place) {
        // ORDERING: Relaxed: this thread alone writes it.
        if place.of(&seat.further).load(Ordering::Relaxed) != 0 {
            return self.leave_slowly(seat, place);
        }
        // ORDERING: Release: partner is the Acquire of `is_clear`: what the guards read, they read before the writer writes.
        // The usual barrier, by N1.
        place.of(&seat.inside).store(0, Ordering::Release);
        Barrier::Asymmetric.light();
        self.left(place);
    }

    /// With further guards there, or with fences.
    #[cold]
    #[inline(never)]
    fn leave_slowly(&self, seat: &SeatState, place: Place) {
        let further = place.of(&seat.further);
        let count = further.load(Ordering::Relaxed);
        if count > FENCED {
            further.store(count - ONE, Ordering::Relaxed);
            return;
        }
        // ORDERING: Release, as in `leave`.
        place.of(&seat.inside).store(count, Ordering::Release);
        self.sign.barrier.light();
        self.left(place);
    }

    /// The same for a seat that several threads use at once: the counts change by read-modify-write.
    #[inline]
    pub(super) fn enter_shared(&self, seat: &SeatState) -> Place {
        loop {
            let place = self.peek();
            // ORDERING: Relaxed, then B1, as in `enter`.
            if place.of(&seat.inside).fetch_add(ONE, Ordering::Relaxed) >= MOST_GUARDS {
                // Counted back before the panic; the range above MOST_GUARDS is wide enough for all threads there can be.
                place.of(&seat.inside).fetch_sub(ONE, Ordering::Relaxed);
                too_many_guards();
            }
            self.sign.barrier.light();
            if self.is_readable(place) {
                return place;
            }
            self.leave_shared(seat, place);
        }
    }

    /// Leaves a copy entered by `enter_shared`.
    #[inline]
    pub(super) fn leave_shared(&self, seat: &SeatState, place: Place) {
        // ORDERING: Release, as in `leave`; the read-modify-writes of other threads continue the release sequence.
        if place.of(&seat.inside).fetch_sub(ONE, Ordering::Release) <= ONE + FENCED {
            self.sign.barrier.light();
            self.left(place);
        }
    }

    /// Ends all guards of a seat, forgotten ones too. The caller knows that no reference is left.
    pub(super) fn leave_all(&self, seat: &SeatState) {
        for place in Place::ALL {
            place.of(&seat.further).store(self.mark(), Ordering::Relaxed);
            let inside = place.of(&seat.inside);
            if inside.load(Ordering::Relaxed) > FENCED {
                // ORDERING: Release, as in `leave`.
                inside.store(self.mark(), Ordering::Release);
                self.sign.barrier.light();
                self.left(place);
            }
        }
    }

    /// The place that is readable now. Nothing is announced yet.
    #[inline(always)]
    fn peek(&self) -> Place {
        // ORDERING: Relaxed: a guess, confirmed after the announcement.
        let word = self.sign.readable.load(Ordering::Relaxed);
        // SAFETY: only words of places are stored.
        unsafe { Place::from_word(word) }
    }

    /// The second look, behind a light barrier: true if the announced place is still readable (D2, D3).
    #[inline(always)]
    fn is_readable(&self, place: Place) -> bool {
        // ORDERING: Acquire: partner is the Release store of `publish`: the copy is seen as it was published.
        self.sign.readable.load(Ordering::Acquire) == place.word()
    }

    /// Nobody of a seat is at a place any more, and a light barrier lies behind that: is the writer waiting for it (D6)?
    #[inline(always)]
    fn left(&self, place: Place) {
        // ORDERING: Acquire: partner is the Release store of `arm`.
        if State::from_word(self.sign.state.load(Ordering::Acquire)).is_waiting() {
            self.wake_writer(place);
        }
    }

    /// Wakes the writer, if it waits for this place.
    #[cold]
    #[inline(never)]
    fn wake_writer(&self, place: Place) {
        // ORDERING: Acquire: partner is the Release store of `arm`: the parker is there.
        let claim = self.sign.state.compare_exchange(
            State::waiting(place).word(),
            State::CLAIMED.word(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if claim.is_err() {
            return;
        }
        // SAFETY: the state is CLAIMED by us: nobody else uses the parker (D5).
        let parker = self.parker.with_mut(|parker| unsafe { (*parker).take() });
        // ORDERING: Release: partner is the Acquire of `park` and `disarm`: the parker may be written again.
        self.sign.state.store(State::WRITABLE.word(), Ordering::Release);
        if let Some(parker) = parker {
            parker.wake();
        }
    }

    // ---- the writer -------------------------------------------------------------------------------------------------

    /// Makes `place` readable, and says whether the barrier was granted: if not, [`settle`](Self::settle) must succeed before the old place is
    /// drained. Only the writer calls this, with a place that holds a copy and is drained.
    pub(super) fn publish(&self, place: Place) -> bool {
        // ORDERING: Relaxed: nobody is waiting; the line below publishes it.
        self.sign.state.store(State::NOT_WRITABLE.word(), Ordering::Relaxed);
        // ORDERING: Release: partner is the Acquire of `is_readable`.
        self.sign.readable.store(place.word(), Ordering::Release);
        let settled = self.settle();
        self.arrivals.announce();
        settled
    }

    /// The heavy barrier between a publish and the first scan (B1).
    pub(super) fn settle(&self) -> bool {
        self.sign.barrier.heavy()
    }

    /// True if no guard is on the place. Only after a settled publish of another place.
    pub(super) fn is_clear(&self, place: Place) -> bool {
        let mut clear = true;
        // ORDERING: Acquire: partner is the Release of `leave`.
        self.roster.visit(|seat| clear &= place.of(&seat.inside).load(Ordering::Acquire) <= FENCED);
        clear
    }

    /// True if a guard on the place belongs to the calling thread: waiting for it would never end.
    fn waits_for_itself(&self, place: Place) -> bool {
        let me = fork::thread_key();
        let mut own = false;
        // ORDERING: Relaxed: if it is our key, we wrote it.
        self.roster.visit(|seat| own |= place.of(&seat.inside).load(Ordering::Relaxed) == me);
        own
    }

    /// True if the calling thread has a guard on some place.
    pub(super) fn is_inside(&self) -> bool {
        Place::ALL.into_iter().any(|place| self.waits_for_itself(place))
    }

    /// True if the writer sleeps until a guard of the calling thread ends.
    pub(super) fn is_awaited(&self) -> bool {
        // ORDERING: Relaxed: a look from time to time.
        let state = State::from_word(self.sign.state.load(Ordering::Relaxed));
        Place::ALL
            .into_iter()
            .any(|place| state == State::waiting(place) && self.waits_for_itself(place))
    }

    /// Waits until no guard is on the place (D2). `Ok(false)`: not yet, and the task of the patience will be woken. Adds to
    /// `parks` how often the thread slept.
    pub(super) fn drain(
        &self,
        place: Place,
        patience: Patience<'_>,
        parks: &mut u64,
    ) -> Result<bool, GuardError> {
        // A future that was dropped or forgotten may have left the state armed.
        self.disarm();
        let mut asked = false;
        loop {
            let mut backoff = Backoff::new();
            for _ in 0..LOOKS {
                if self.is_clear(place) {
                    return Ok(true);
                }
                if !MODEL && !backoff.is_yielding() {
                    backoff.snooze();
                }
            }
            if matches!(patience, Patience::None) {
                return Err(GuardError::Occupied);
            }
            if !asked && self.waits_for_itself(place) {
                return Err(GuardError::WouldDeadlock);
            }
            asked = true;
            self.arm(place, patience);
            let clear = self.settle().then(|| self.is_clear(place));
            match (clear, patience) {
                (Some(false), Patience::Task(_)) => return Ok(false),
                (Some(false), _) => {
                    *parks += 1;
                    if !self.park(patience) {
                        self.disarm();
                        return Err(GuardError::TimedOut);
                    }
                }
                (Some(true), _) => {
                    self.disarm();
                    return Ok(true);
                }
                (None, _) => {
                    self.disarm();
                    return Err(GuardError::BarrierRefused);
                }
            }
        }
    }

    fn arm(&self, place: Place, patience: Patience<'_>) {
        let parker = match patience {
            Patience::Task(waker) => Parker::Task(waker.clone()),
            _ => Parker::Thread(thread::current()),
        };
        // SAFETY: the state is neither WAITING nor CLAIMED, so this is the only user (D5).
        let old = self.parker.with_mut(|slot| unsafe { (*slot).replace(parker) });
        // ORDERING: Release: partner is the Acquire of `left` and `wake_writer`: the parker is there. Then B1, by the caller.
        self.sign.state.store(State::waiting(place).word(), Ordering::Release);
        drop(old);
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
                Patience::Until(end) => {
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

    /// Takes WAITING back; if a reader has claimed it, waits for the few instructions that it needs.
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

#[cold]
#[inline(never)]
fn too_many_guards() -> ! {
    panic!(
        "too many read guards on one handle: a quarter of the address space of them is alive or forgotten"
    );
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// One guard too many is refused before anything has changed.
    #[test]
    fn a_count_that_would_overflow_is_refused() {
        let core = Gate::new(Barrier::detect());
        let (seat, shared) = (core.join(), core.join());
        let place = core.enter(&seat);
        place.of(&seat.further).store(MOST_GUARDS, Ordering::Relaxed);
        place.of(&shared.inside).store(MOST_GUARDS, Ordering::Relaxed);
        for _ in 0..3 {
            assert!(catch_unwind(AssertUnwindSafe(|| core.enter(&seat))).is_err());
            assert!(catch_unwind(AssertUnwindSafe(|| core.enter_shared(&shared))).is_err());
        }
        assert_eq!(place.of(&seat.further).load(Ordering::Relaxed), MOST_GUARDS);
        assert_eq!(place.of(&shared.inside).load(Ordering::Relaxed), MOST_GUARDS);
        core.leave_all(&seat);
        core.leave_all(&shared);
        assert!(core.is_clear(place));
    }
}
