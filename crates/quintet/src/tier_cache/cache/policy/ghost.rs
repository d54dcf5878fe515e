//! The ghost queue of S3-FIFO: who left the small queue, for about as long as it takes to fill the
//! cache once.
//!
//! It has a *slot* for each block, in sets of sixteen that share a line of memory. A slot holds 24
//! bits of a key's hash and when it was written, in 128ths of a turnover, up to two; 0 is none. Who
//! is remembered takes the oldest slot of its set, and empties as many more as it had further
//! blocks. Two of whom only one is written, or a mistaken match (one in a million), make an entry
//! begin in the other queue than it should (`policy` P1).

use crate::hash::start_scaled;
use crate::sync::{AtomicU64, Ordering};
use crate::tier_cache::step::{Point, exchange};
use crate::tier_cache::word::InputHash;

/// Words of a set, two slots each.
const SET_WORDS: usize = 8;

/// Words for so many blocks.
pub(super) fn words(blocks: usize) -> usize {
    blocks.div_ceil(2 * SET_WORDS) * SET_WORDS
}

pub(super) struct Ghost<'a>(pub(super) &'a [AtomicU64]);

/// What a slot says of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Slot(u32);

impl Slot {
    fn new(print: u32, turn: u32) -> Self {
        Self(print << 8 | turn & 0xff)
    }

    fn has(self, print: u32) -> bool {
        self.0 >> 8 == print
    }

    /// How much it deserves to be overwritten: the same key, none, the oldest.
    fn staleness(self, print: u32, turn: u32) -> u32 {
        match self {
            same if same.has(print) => u32::MAX,
            Self(0) => u32::MAX - 1,
            Self(word) => turn.wrapping_sub(word) & 0xff,
        }
    }
}

/// The slots of a word.
fn slots(word: u64) -> [Slot; 2] {
    [Slot(word as u32), Slot((word >> 32) as u32)]
}

/// The word with another slot.
fn with_slot(word: u64, half: usize, slot: Slot) -> u64 {
    let shift = 32 * half as u32;
    word & !((u32::MAX as u64) << shift) | (slot.0 as u64) << shift
}

impl<'a> Ghost<'a> {
    /// The set of a key, and its print, which is not 0.
    fn set(&self, input: InputHash) -> (&'a [AtomicU64], u32) {
        let mixed = input.word().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let sets = self.0.len() / SET_WORDS;
        let at = start_scaled((mixed >> 32) as u32, sets as u64) * SET_WORDS;
        let set = self.0.get(at..at + SET_WORDS).unwrap_or(&[]);
        // Other bits of the hash than those that choose the set.
        (set, (input.hash() & 0xff_ffff).max(1))
    }

    /// Remembers who left at this moment, and forgets as much as it takes: one slot for each of
    /// its blocks, the oldest first.
    pub(super) fn remember(&self, input: InputHash, turn: u32, blocks: usize) {
        let (set, print) = self.set(input);
        // ORDERING: Relaxed: hints.
        let words = set.iter().map(|place| place.load(Ordering::Relaxed));
        let found = words.flat_map(slots).map(|slot| slot.staleness(print, turn));
        let mut order: Vec<(u32, usize)> = found.zip(0..).collect();
        order.sort_unstable_by(|one, other| other.cmp(one));
        for (rank, (_, slot)) in order.into_iter().take(blocks.max(1)).enumerate() {
            let (place, half) = (&set[slot / 2], slot % 2);
            // ORDERING: Relaxed: a hint.
            let word = place.load(Ordering::Relaxed);
            let slot = if rank == 0 { Slot::new(print, turn) } else { Slot(0) };
            if slots(word)[half] != slot {
                // Fails if somebody else writes there just now: one of the two is not remembered.
                exchange(Point::Ghost, place, word, with_slot(word, half, slot));
            }
        }
    }

    /// Whether it is remembered; not from now on.
    pub(super) fn forget(&self, input: InputHash) -> bool {
        let (set, print) = self.set(input);
        for place in set {
            // ORDERING: Relaxed: hints.
            let word = place.load(Ordering::Relaxed);
            for (half, slot) in slots(word).into_iter().enumerate() {
                if slot.has(print) {
                    exchange(Point::Ghost, place, word, with_slot(word, half, Slot(0)));
                    return true;
                }
            }
        }
        false
    }
}
