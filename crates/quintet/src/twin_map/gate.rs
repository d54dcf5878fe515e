//! What readers and the writer share besides the copies: the two words, the seats; entering,
//! leaving, publishing, draining.
//!
//! ```text
//!  reader                                          writer
//!  enter:  i = readable                            publish: state = NOT_WRITABLE
//!          inside[i] = my key    (plain)                    old = readable, = new     (Release)
//!          light barrier ─────────────── `barrier` B1 ──────────────── heavy barrier, or a fence (D8)
//!          readable == i ?       (Acquire)         drain:   (1) every inside[old] == 0 (Acquire)? yes: write
//!          no: leave, again                                 (2) parker = me; state = WAITING(old); heavy barrier ─┐
//!  leave:  inside[i] = 0         (Release)                      every inside[old] == 0? no: (4)                   │
//!          light barrier ─────────────────────── `barrier` B1 ────────────────────────────────────────────────────────────┘
//!             state == WAITING(i)? CAS to CLAIMED           (3) take WAITING back; if CLAIMED, wait for WRITABLE; write
//!             take the parker; state = WRITABLE; wake       (4) park until neither WAITING nor CLAIMED; go to (1)
//! ```
//!
//! **D1.** The readable place holds a copy, and nobody changes it while it is readable.
//! **D2.** A place is written only by the writer, only while it is not readable, and only after a
//! scan that followed the barrier of the exchange that closed its door found nobody there. A reader
//! that the scan missed sees the new `readable` in its second look (`barrier` B1) and leaves.
//! **D3.** A guard exists on a place only between an announcement confirmed by the second look and
//! its end (a second guard on an announced place is only counted): while it lives, no scan finds
//! the place empty, so its copy is not written.
//! **D4.** Readers that come later announce another place, so the old one drains.
//! **D5.** The parker is put in only while the state is neither WAITING nor CLAIMED, and taken out
//! only by the reader that made it CLAIMED. No code of the user runs while it is CLAIMED: a waker
//! is cloned before and woken after.
//! **D6.** The writer waits for one place, or for either of two (the copy to be written, and the
//! one that was left behind). A reader whose leave the rescan of (2) missed sees WAITING (`barrier`
//! B1) and wakes; every round arms, barriers and rescans anew, so no wake-up is lost. A spurious or
//! late wake-up costs one more round.
//! **D7.** One readable word: a publish is one moment for all readers.
//! **D8.** A place has two doors. Who enters by the plain one executes no fence, so a publish that
//! closes it needs the heavy barrier. Who enters by the fenced one does, so a fence on the writer's
//! side is enough. The writer opens the fenced door while publishes follow each other at once. Who
//! leaves executes no fence at either door: before the writer sleeps it always executes the heavy
//! barrier, and a scan without one needs to see no leave.
//! **D9.** A reader that has come by the fenced door many times, and saw no publish meanwhile,
//! opens the plain door of the same place instead: the readable word changes from the one to the
//! other, and the copy stays. A place may be opened again by the door that was closed (`home` H3):
//! a guard belongs to the opening that its second look has seen. The publish learns by its exchange
//! which door it has closed. So readers do not pay for publishes that are long over.

use super::arrivals::Arrivals;
use super::told::Told;
use super::wait::Parker;
use super::word::{DOORS, Door, Place, State};
use crate::roster::{Address, Roster, Seat};
use crate::sync::{
    Arc, AtomicU32, AtomicUsize, Barrier, CachePadded, HandOver, MODEL, Mutex, Ordering,
    fenced::store_fenced, fork,
};

/// What a reader announces: by which doors is it inside?
///
/// **N1.** The words of a door that needs fences have the bit [`FENCED`] always, so that at a plain
/// door, where none has it, one comparison with 0 tells both that no fence is needed and that this
/// is the first guard, or the last.
#[derive(Debug)]
pub(super) struct SeatState {
    /// At most [`FENCED`]: no guard by that door. Else the key of the thread that uses the seat.
    pub(super) inside: [AtomicUsize; DOORS],
    /// Guards beyond the first by that door, [`ONE`] for each: the owner's business alone.
    further: [AtomicUsize; DOORS],
    /// The fenced door by which the owner came last, and how often in a row (D9): a publish opens
    /// another one.
    calm: AtomicUsize,
}

/// The mark of N1: below every count and every thread's key.
pub(super) const FENCED: usize = 1;

/// One guard in a count.
const ONE: usize = 2;

/// Counts do not exceed this: further guards on one handle are refused.
const MOST_GUARDS: usize = usize::MAX / 2;

/// So many sections by the fenced door without a publish, and it is closed (D9).
const CALM: usize = if MODEL { 1 } else { 4096 };

/// Bits of the door below a count of sections.
const DOOR_BITS: u32 = 3;
const _: () = assert!(DOORS <= 1 << DOOR_BITS);

/// The line that every reader reads and hardly anybody writes.
#[derive(Debug)]
pub(super) struct Sign {
    pub(super) readable: AtomicUsize,
    pub(super) state: AtomicU32,
    pub(super) barrier: Barrier,
}

/// Who is where. Does not know what the copies are.
pub(super) struct Gate {
    pub(super) sign: CachePadded<Sign>,
    pub(super) parker: HandOver<Option<Parker>>,
    roster: Arc<Roster<SeatState>>,
    /// Who waits for a version to come.
    pub(super) arrivals: Arrivals,
    /// What the writer tells of itself.
    pub(super) told: Told,
    /// Seats of threads whose locals are gone (`local` L3).
    orphans: Mutex<Vec<Orphan>>,
}

/// A seat that was abandoned, with its name.
struct Orphan {
    seat: *const SeatState,
    address: Address<SeatState>,
}

// SAFETY: the seat is `Sync`, and lives as long as the roster; its name is a number to everybody
// but the roster.
unsafe impl Send for Orphan {}

impl Drop for Gate {
    fn drop(&mut self) {
        self.roster.close();
    }
}

// SAFETY: all but the parker is `Send` and `Sync` by itself; the parker is `Send`, and has one user
// at a time (D5).
unsafe impl Sync for Gate {}

impl SeatState {
    fn new(barrier: Barrier) -> Self {
        let words = || Door::ALL.map(|door| AtomicUsize::new(mark(barrier, door)));
        Self { inside: words(), further: words(), calm: AtomicUsize::new(0) }
    }

    /// At no place.
    pub(super) fn is_quiet(&self) -> bool {
        // ORDERING: Acquire: partner is the Release of `leave`: the guards have ended.
        self.inside.iter().all(|inside| inside.load(Ordering::Acquire) <= FENCED)
    }

    /// One more guard by a door that this thread has announced already: its copy is not written
    /// while any of them lives (D3), so there is nothing to confirm.
    pub(super) fn enter_again(&self, door: Door) -> Door {
        let further = door.of(&self.further);
        // ORDERING: Relaxed: this thread alone uses it.
        let count = further.load(Ordering::Relaxed);
        if count >= MOST_GUARDS {
            too_many_guards();
        }
        further.store(count + ONE, Ordering::Relaxed);
        door
    }

    /// Counts a section by a fenced door; true if there were many since the last publish (D9).
    fn has_calmed(&self, door: Door) -> bool {
        // ORDERING: Relaxed: this thread alone uses it.
        let last = self.calm.load(Ordering::Relaxed);
        let is_same = last % (1 << DOOR_BITS) == door.word();
        let count = if is_same { (last >> DOOR_BITS) + 1 } else { 1 };
        let calm = count >= CALM;
        let kept = if calm { 0 } else { count };
        self.calm.store((kept << DOOR_BITS) | door.word(), Ordering::Relaxed);
        calm
    }
}

/// What the words of a door are when nobody is there (N1).
fn mark(barrier: Barrier, door: Door) -> usize {
    if barrier.is_usual() && !door.is_fenced() { 0 } else { FENCED }
}

impl Gate {
    /// The first place is readable.
    pub(super) fn new(barrier: Barrier) -> Self {
        Self {
            sign: CachePadded::new(Sign {
                readable: AtomicUsize::new(Door::ALL[0].word()),
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
        Roster::join(&self.roster, || SeatState::new(self.sign.barrier))
    }

    pub(super) fn roster(&self) -> &Arc<Roster<SeatState>> {
        &self.roster
    }

    /// Enters by a seat for one guard, which nobody owns (`local` L3). Vacates those of earlier
    /// guards that have ended.
    #[cold]
    pub(super) fn enter_orphaned(&self) -> (&SeatState, Door) {
        let mut orphans = self.orphans.lock();
        orphans.retain(|orphan| {
            // SAFETY: the gate keeps the roster, and so the seat.
            let seat = unsafe { &*orphan.seat };
            if seat.is_quiet() {
                // SAFETY: abandoned below, and vacated once: it leaves the list. A guard that ends
                // does not touch its seat behind the store that makes it quiet, and only the guard
                // it was made for, or one that was counted beside that, has used it.
                unsafe { self.roster.vacate(orphan.address, false) };
                return false;
            }
            true
        });
        let seat = self.join();
        // SAFETY: the gate keeps the roster while the result is borrowed.
        let state: &SeatState = unsafe { seat.state_unbound() };
        // Inside before others may look at it: what is quiet is vacated.
        let door = self.enter(state);
        orphans.push(Orphan { seat: state, address: seat.address() });
        seat.abandon();
        (state, door)
    }

    pub(super) fn has_fences(&self) -> bool {
        !self.sign.barrier.is_usual()
    }

    // ---- readers
    // ----------------------------------------------------------------------------------------------------

    /// Enters the readable copy. Only the thread that owns the seat may call this.
    ///
    /// No value that is stored here is loaded and computed with again by the next section: branches
    /// on it are predicted, so that the cache misses of consecutive sections overlap. How many do
    /// is a question of how few instructions there are.
    #[inline(always)]
    pub(super) fn enter(&self, seat: &SeatState) -> Door {
        let door = self.peek();
        let inside = door.of(&seat.inside);
        // ORDERING: Relaxed: this thread alone writes it.
        if inside.load(Ordering::Relaxed) != 0 {
            return self.enter_slowly(seat);
        }
        // ORDERING: Relaxed: only its absence is acted upon, or the thread's own key; then
        // `barrier` B1, partner: the heavy barrier of `publish`. The usual barrier, by N1.
        inside.store(fork::thread_key(), Ordering::Relaxed);
        Barrier::Asymmetric.light();
        if self.is_readable(door) { door } else { self.enter_elsewhere(seat, door) }
    }

    /// With a guard there already, or with fences.
    #[cold]
    #[inline(never)]
    fn enter_slowly(&self, seat: &SeatState) -> Door {
        loop {
            let door = self.peek();
            let inside = door.of(&seat.inside);
            if inside.load(Ordering::Relaxed) > FENCED {
                return seat.enter_again(door);
            }
            self.enter_by(door, inside);
            if self.is_readable(door) {
                self.calm_down(seat, door);
                return door;
            }
            self.leave(seat, door);
        }
    }

    /// Announces the owner at a door, with the reader's half of the barrier behind that (D8).
    fn enter_by(&self, door: Door, inside: &AtomicUsize) {
        if door.is_fenced() {
            // ORDERING: SeqCst fence behind the store: `barrier` B1; partner: the fence or heavy
            // barrier of `publish`.
            store_fenced(inside, fork::thread_key());
        } else {
            // ORDERING: Relaxed, then `barrier` B1, as in `enter`.
            inside.store(fork::thread_key(), Ordering::Relaxed);
            self.sign.barrier.light();
        }
    }

    /// Opens the plain door instead of a fenced one that has long not been needed (D9). The caller
    /// has a guard there.
    fn calm_down(&self, seat: &SeatState, door: Door) {
        if !door.is_fenced() || !seat.has_calmed(door) {
            return;
        }
        self.open_plain(door.place());
    }

    /// Opens the plain door of a place instead of its fenced one, if that is open. The place stays
    /// readable meanwhile, or its copy is not looked at.
    pub(super) fn open_plain(&self, place: Place) {
        // ORDERING: Relaxed: a read-modify-write, so whoever sees the plain door still synchronizes
        // with the Release of `publish`; nothing of ours is handed over. If it fails, a publish or
        // another reader was quicker.
        let _ = self.sign.readable.compare_exchange(
            place.fenced().word(),
            place.plain().word(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// A publish came in between: leaves, and enters the new place.
    #[cold]
    #[inline(never)]
    fn enter_elsewhere(&self, seat: &SeatState, door: Door) -> Door {
        self.leave(seat, door);
        self.enter_slowly(seat)
    }

    /// Leaves a copy. Only the thread that owns the seat may call this, once per `enter`.
    #[inline(always)]
    pub(super) fn leave(&self, seat: &SeatState, door: Door) {
        // ORDERING: Relaxed: this thread alone writes it.
        if door.of(&seat.further).load(Ordering::Relaxed) != 0 {
            return self.leave_slowly(seat, door);
        }
        // ORDERING: Release: partner is the Acquire of `is_clear`: what the guards read, they read
        // before the writer writes. The usual barrier, by N1.
        door.of(&seat.inside).store(0, Ordering::Release);
        Barrier::Asymmetric.light();
        self.left(door);
    }

    /// With further guards there, or with fences.
    #[cold]
    #[inline(never)]
    fn leave_slowly(&self, seat: &SeatState, door: Door) {
        let further = door.of(&seat.further);
        let count = further.load(Ordering::Relaxed);
        if count > FENCED {
            further.store(count - ONE, Ordering::Relaxed);
            return;
        }
        // ORDERING: Release, as in `leave`.
        door.of(&seat.inside).store(count, Ordering::Release);
        self.sign.barrier.light();
        self.left(door);
    }

    /// Ends all guards of a seat, forgotten ones too. The caller knows that no reference is left.
    pub(super) fn leave_all(&self, seat: &SeatState) {
        for door in Door::ALL {
            let mark = mark(self.sign.barrier, door);
            door.of(&seat.further).store(mark, Ordering::Relaxed);
            let inside = door.of(&seat.inside);
            if inside.load(Ordering::Relaxed) > FENCED {
                // ORDERING: Release, as in `leave`.
                inside.store(mark, Ordering::Release);
                self.sign.barrier.light();
                self.left(door);
            }
        }
    }

    /// The door that is open now. Nothing is announced yet.
    #[inline(always)]
    pub(super) fn peek(&self) -> Door {
        // ORDERING: Relaxed: a guess, confirmed after the announcement.
        let word = self.sign.readable.load(Ordering::Relaxed);
        // SAFETY: only words of doors are stored.
        unsafe { Door::from_word(word) }
    }

    /// The second look, behind a light barrier: true if the announced door is still open (D2, D3).
    #[inline(always)]
    fn is_readable(&self, door: Door) -> bool {
        // ORDERING: Acquire: partner is the Release of `publish`: the copy is seen as it was
        // published.
        self.sign.readable.load(Ordering::Acquire) == door.word()
    }

    /// Nobody of a seat is inside by a door any more, and a light barrier lies behind that: is the
    /// writer waiting for it (D6)?
    #[inline(always)]
    fn left(&self, door: Door) {
        // ORDERING: Acquire: partner is the Release store of `arm`.
        if State::from_word(self.sign.state.load(Ordering::Acquire)).is_waiting() {
            self.wake_writer(door);
        }
    }

    /// Wakes the writer, if it waits for this place.
    #[cold]
    #[inline(never)]
    fn wake_writer(&self, door: Door) {
        // ORDERING: Relaxed: a guess, confirmed by the exchange. If it fails, the writer has begun
        // another round since, or another reader was quicker: a round that was armed after our look
        // at the state sees that we have left (D6).
        let state = State::from_word(self.sign.state.load(Ordering::Relaxed));
        if !state.is_waiting_for(door.place()) {
            return;
        }
        // ORDERING: Acquire: partner is the Release store of `arm`: the parker is there.
        let claim = self.sign.state.compare_exchange(
            state.word(),
            State::CLAIMED.word(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if claim.is_err() {
            return;
        }
        // SAFETY: the state is CLAIMED by us: nobody else uses the parker (D5).
        let parker = self.parker.with_mut(|parker| unsafe { (*parker).take() });
        // ORDERING: Release: partner is the Acquire of `park` and `disarm`: the parker may be
        // written again.
        self.sign.state.store(State::WRITABLE.word(), Ordering::Release);
        if let Some(parker) = parker {
            parker.wake();
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
        let seat = core.join();
        let door = core.enter(&seat);
        door.of(&seat.further).store(MOST_GUARDS, Ordering::Relaxed);
        for _ in 0..3 {
            assert!(catch_unwind(AssertUnwindSafe(|| core.enter(&seat))).is_err());
        }
        assert_eq!(door.of(&seat.further).load(Ordering::Relaxed), MOST_GUARDS);
        core.leave_all(&seat);
        assert!(core.is_clear(door.place()));
    }

    /// Many sections without a publish close the fenced door; a publish starts the count anew (D9).
    #[test]
    fn readers_come_to_rest_by_themselves() {
        let gate = Gate::new(Barrier::Asymmetric);
        let (seat, other, place) = (gate.join(), Place::ALL[0], Place::ALL[1]);
        let visit = |times: usize, place: Place| {
            for _ in 0..times {
                let door = gate.enter(&seat);
                assert_eq!(door.place(), place);
                gate.leave(&seat, door);
            }
        };
        for place in [place, other, place] {
            assert!(gate.publish(place, true));
            visit(CALM - 1, place);
            assert_eq!(gate.peek(), place.fenced());
        }
        visit(1, place);
        assert_eq!(gate.peek(), place.plain());
        visit(2, place);
        assert_eq!(gate.peek(), place.plain());
        assert!(seat.is_quiet());
    }
}
