//! How a table is emptied into its successor: close, freeze, copy, MOVED.
//!
//! ```text
//!   key word    EMPTY ──claim──▶ key                       for ever
//!                 └────close───▶ CLOSED                    for ever
//!
//!   value word  VIRGIN ──writer, copier──▶ live ◀──writer──▶ TOMB
//!                 │                         │ freeze           │
//!                 │                         ▼                  │
//!                 │                     FROZEN + j             │
//!                 │ mover                   │ store            │ mover
//!                 └───────────────────▶  MOVED  ◀──────────────┘     for ever
//! ```
//!
//! **WL4.** Every arrow is one exchange, but for FROZEN → MOVED, which is a store and FROZEN's only
//! exit.
//! 1. Writers: VIRGIN, TOMB or live → live, live → TOMB.
//! 2. Copiers: VIRGIN → live, in S.
//! 3. Movers: VIRGIN or TOMB → MOVED; live → FROZEN + j, after the decoded value was stored in
//!    descriptor j; then the copy; then MOVED. Whoever has finished the copy makes that store.
//! 4. Whoever is going to write the key in S stores MOVED in T first, or has read it.
//!
//! **WL8.** A value that is frozen is the present one: nobody has written the key in S (WL4.4). So
//! a reader answers with the descriptor, if the word is the same after it as before (`desc`
//! WL14.3). A writer or mover that finds a frozen word looks twice in the same way, copies, stores
//! MOVED, and goes on.
//! **WL9.** A copy of (k, x) into S probes S for k, claims a lane if there is none, and exchanges
//! VIRGIN for x. A failed exchange means that it is done: by then k was copied, and written or
//! removed perhaps. A copy never meets CLOSED, nor EMPTY when S is being left: S gets a successor
//! only when T is complete (`grow` G1), and then every live key of T has its lane in S.
//! **WL10.** A mover closes the first EMPTY lane of a line and no other: nobody can claim a later
//! one (`probe` WL5.2).
//! **WL12.** Between freeze and MOVED nothing unwinds or waits, and nothing returns but for want of
//! memory for a block behind S (WL9.5). A mover that sleeps, dies or gives up there holds nobody:
//! its value is in its descriptor, which stays as it is (`desc` WL14.4), and anyone finishes the
//! copy. Its chunk is not done, and is handed out again.

use super::desc::{Descriptors, Hand};
use super::more::{End, More};
use super::probe::{Place, Slot, close};
use super::table::{Table, lines_of};
use super::word::{CLOSED, EMPTY, MOVED, PLAIN, State, TOMB, VIRGIN};
use crate::region::AllocError;
use crate::sync::quad::{LANES, Quad};
use crate::sync::{AtomicU64, Ordering};

/// The value of a word that says FROZEN + `number`, or the word that is there by now (WL8).
pub(super) fn thaw(
    descriptors: &Descriptors,
    place: &AtomicU64,
    word: u64,
    number: usize,
) -> Result<u64, u64> {
    let value = descriptors.value(number);
    // ORDERING: Acquire, for who goes on with what it says now.
    let again = place.load(Ordering::Acquire);
    if again == word { Ok(value) } else { Err(again) }
}

/// Copies a frozen entry into the successor and says so. True if a slot was used there. On an error
/// it is still frozen.
pub(super) fn carry(
    place: &AtomicU64,
    next: &Table,
    k: u64,
    value: u64,
) -> Result<bool, AllocError> {
    let used = next.copy_in(k, value)?;
    say_moved(place);
    Ok(used)
}

/// FROZEN → MOVED, after the copy.
#[inline(always)]
fn say_moved(place: &AtomicU64) {
    // ORDERING: Release: the copy comes first; partner: every load of a value word. It is no
    // exchange, so it ends the release sequence of the value's writer, which the caller has
    // acquired.
    place.store(MOVED, Ordering::Release);
}

/// A mover's exchange of a value word.
#[inline(always)]
fn exchange(place: &AtomicU64, from: u64, to: u64) -> Result<u64, u64> {
    // ORDERING: Release: the descriptor, and the successor. Acquire: the last writer of the value
    // may be another than the one that was loaded (v, w, v again), and copy and MOVED pass its
    // doing on. Partner: every load of a value word.
    place.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
}

impl Table {
    /// Puts an entry of the predecessor here unless the key has been here already (WL9). True if a
    /// slot was used.
    fn copy_in(&self, k: u64, value: u64) -> Result<bool, AllocError> {
        match self.secrets().plain(value) {
            Some(word) if k > CLOSED => self.copy_word(k, word),
            _ => self.copy_in_slow(k, value),
        }
    }

    /// The same for a usual key and the word of a plain value, which all tables of a map write
    /// alike (`word` WL3).
    #[inline(always)]
    fn copy_word(&self, k: u64, word: u64) -> Result<bool, AllocError> {
        let aim = self.aim(k);
        let look = aim.look();
        // If the key is there its tag is not, perhaps: that is for the other half, as a full home
        // is.
        if look.same == 0 && look.zero != 0 {
            if let Some(place) = aim.claim(look) {
                fill(place, word);
                return Ok(true);
            }
        }
        self.copy_in_slow(k, word ^ self.secrets().flip)
    }

    /// The same in every case.
    #[inline(never)]
    fn copy_in_slow(&self, k: u64, value: u64) -> Result<bool, AllocError> {
        loop {
            let (slot, used) = match self.probe(k) {
                Place::Slot(slot) => {
                    self.mark_slot(k, slot);
                    (slot, false)
                }
                Place::Empty(lane, _) if self.claim(k, lane) => (lane.slot, true),
                Place::Empty(..) => continue,
                Place::End(more) => {
                    more.extend()?;
                    continue;
                }
                // WL9: it cannot be. Were it so, S would be left, and T be complete: the key is
                // where it belongs.
                Place::Closed => {
                    debug_assert!(false, "a copy meets a closed lane");
                    return Ok(false);
                }
            };
            fill(slot.value, self.word_of_copy(slot, value));
            return Ok(used);
        }
    }
}

/// VIRGIN → `word` (WL9).
#[inline(always)]
fn fill(place: &AtomicU64, word: u64) {
    // ORDERING: Release: the own cell, and what the value's writer published; partner: every load
    // of a value word. Failure: it is done, and nothing is learnt.
    let _ = place.compare_exchange(VIRGIN, word, Ordering::Release, Ordering::Relaxed);
}

/// One who moves entries from a table to its successor.
pub(super) struct Mover<'a> {
    pub(super) from: &'a Table,
    pub(super) to: &'a Table,
    pub(super) descriptors: &'a Descriptors,
    pub(super) hand: &'a Hand<'a>,
    /// Slots in a chunk.
    pub(super) chunk: usize,
    /// How many seats there are, for who makes cells.
    pub(super) seats: &'a dyn Fn() -> usize,
}

impl Mover<'_> {
    /// Moves one chunk. Returns how many slots were used in the successor. On an error the chunk is
    /// not done; one slot of it may be frozen (WL12).
    pub(super) fn move_chunk(&self, chunk: usize) -> Result<usize, AllocError> {
        let lines = lines_of(self.chunk);
        let (from, end) = (chunk * lines, self.from.lines.len());
        if from >= end {
            return self.move_the_rest();
        }
        let mut used = 0;
        for index in from..(from + lines).min(end) {
            used += self.move_line(self.from.line(index), |lane| self.from.slot(index, lane))?;
        }
        Ok(used)
    }

    /// What is no line of the table: the special keys, and what lies behind.
    #[cold]
    fn move_the_rest(&self) -> Result<usize, AllocError> {
        let mut used = 0;
        for k in [EMPTY, CLOSED] {
            used += usize::from(self.move_slot(self.from.extra(k as usize), k)?);
        }
        let mut more: &More = &self.from.more;
        loop {
            match more.end() {
                End::Closed => return Ok(used),
                End::Empty if more.close() => return Ok(used),
                End::Empty => {}
                End::Block(block) => {
                    for (line, own) in block.lines() {
                        used += self.move_line(line, |lane| Slot::behind(line, own, lane))?;
                    }
                    more = block.more();
                }
            }
        }
    }

    /// Moves the lanes of a line, and closes the first that is EMPTY (WL10).
    #[inline(always)]
    fn move_line<'t>(
        &self,
        line: &'t Quad,
        slot: impl Fn(usize) -> Slot<'t>,
    ) -> Result<usize, AllocError> {
        let mut used = 0;
        for lane in 0..LANES {
            // ORDERING: Acquire: partners are claim and close.
            let mut k = line.key(lane).load(Ordering::Acquire);
            if k == EMPTY {
                k = close(line.key(lane)).map_or_else(|claimed| claimed, |_| CLOSED);
            }
            if k == CLOSED {
                break;
            }
            let moved = self.move_usual(line.value(lane), k);
            used += usize::from(match moved {
                Some(moved) => moved,
                None => self.move_slot(slot(lane), k)?,
            });
        }
        Ok(used)
    }

    /// Moves a slot in one try, if its value is plain, or gone. `None`: nothing has happened, or it
    /// is frozen and could not be copied.
    #[inline(always)]
    fn move_usual(&self, place: &AtomicU64, k: u64) -> Option<bool> {
        // ORDERING: Acquire: partners are the exchanges of value words.
        let word = place.load(Ordering::Acquire);
        match word {
            PLAIN.. => {
                let frozen = self.hand.hold(word ^ self.from.secrets().flip);
                exchange(place, word, frozen).ok()?;
                let used = self.to.copy_word(k, word).ok()?;
                say_moved(place);
                Some(used)
            }
            TOMB => exchange(place, TOMB, MOVED).ok().map(|_| false),
            _ => None,
        }
    }

    /// Moves one slot, in every case. True if a slot was used in the successor. On an error it may
    /// be frozen (WL12).
    #[inline(never)]
    pub(super) fn move_slot(&self, slot: Slot<'_>, k: u64) -> Result<bool, AllocError> {
        let place = slot.value;
        // ORDERING: Acquire: partners are the exchanges of value words.
        let mut word = place.load(Ordering::Acquire);
        loop {
            let (to, value) = match State::of(word) {
                State::Moved => return Ok(false),
                State::Absent => (MOVED, None),
                State::Frozen(number) => match thaw(self.descriptors, place, word, number) {
                    Ok(value) => return self.carry(place, word, k, value),
                    Err(now) => {
                        word = now;
                        continue;
                    }
                },
                State::Live(live) => {
                    let value = self.from.decode(slot, live);
                    if self.from.secrets().plain(value).is_none() {
                        self.to.make_cells((self.seats)())?; // (`cells` WL13.6)
                    }
                    (self.hand.hold(value), Some(value))
                }
            };
            match exchange(place, word, to) {
                Ok(_) => return value.map_or(Ok(false), |value| self.carry(place, to, k, value)),
                Err(now) => word = now,
            }
        }
    }

    /// [`carry`], by one whose own number may be the one in the word: then it is lost with the
    /// error (`desc` WL14.4).
    fn carry(&self, place: &AtomicU64, word: u64, k: u64, value: u64) -> Result<bool, AllocError> {
        carry(place, self.to, k, value).inspect_err(|_| self.hand.lose_if_in(word))
    }
}
