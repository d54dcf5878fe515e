//! The slot's first word: what it says, and how a position gives the key back.
//!
//! A slot is two words. The second is the value, all 64 bits of it. The first holds everything else. A table with
//! 2^k homes takes the top k bits of the hash as the home, so a slot needs to keep only the rest. Homes are one slot
//! apart in small tables and [`GROUP`] in the others, where each home is the beginning of a cache line:
//!
//! ```text
//!   63                          k        3     0
//!   +---------------------------+--------+-----+
//!   | hash without its top k    |  disp  |state|
//!   +---------------------------+--------+-----+
//! ```
//!
//! `disp` says how far from its home the entry lies; home = slot - disp, hash = home and rest, key = `unmix(hash)`.
//!
//! **P1.** The hash is a bijection of the key, so word and position determine the key, for every key.
//! **P2.** A word without a key is 0 (EMPTY) or 1 (EMPTY-frozen); every word with a key is 2 or more.
//! **P3.** The word of key k at displacement d + 1 is its word at d plus [`STEP`]: a probe adds one constant.
//! **P4.** `word ^ sought < 8` if and only if the rest, and therefore the key, is the one sought, or the word has no key
//! and the sought rest is 0; in both cases the difference is the state.

use crate::sync::MODEL;
use std::fmt;

/// What a slot is. The arrows are the only transitions; each is one compare-exchange of both words.
///
/// ```text
///              insert, copy            remove
///     EMPTY ------------------> LIVE <--------> TOMB
///       |                        |     insert     |
///       | freeze                 | freeze         | freeze
///       v                        v                v
///  EMPTY-frozen             LIVE-frozen      TOMB-frozen
///                                | copied
///                                v
///                            LIVE-done
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// Never used. Ends every probe.
    Empty = 0,
    /// Closed before it was used: whoever comes here goes on in the successor. Done.
    EmptyFrozen = 1,
    /// Holds a key and its value.
    Live = 2,
    /// Holds a key and its last value in this table; to be copied.
    LiveFrozen = 3,
    /// Copied: the successor knows more about this key. Done.
    LiveDone = 4,
    /// Holds a key that was removed. Only the same key may come back here.
    Tomb = 5,
    /// A removed key that will not be copied. Done.
    TombFrozen = 6,
}

/// From the word at one displacement to the word at the next (P3).
pub(crate) const STEP: u64 = 8;
const STATE: u64 = STEP - 1;

/// A slot's first word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotWord(u64);

impl SlotWord {
    pub(crate) const EMPTY: Self = Self(State::Empty as u64);
    pub(crate) const EMPTY_FROZEN: Self = Self(State::EmptyFrozen as u64);

    #[inline(always)]
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[inline(always)]
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    /// False for EMPTY and EMPTY-frozen (P2).
    #[inline(always)]
    pub(crate) const fn has_key(self) -> bool {
        self.0 > Self::EMPTY_FROZEN.0
    }

    #[inline(always)]
    pub(crate) const fn state(self) -> State {
        match self.0 & STATE {
            0 => State::Empty,
            1 => State::EmptyFrozen,
            2 => State::Live,
            3 => State::LiveFrozen,
            4 => State::LiveDone,
            5 => State::Tomb,
            // Seven is never stored; reading it as done keeps this function total.
            _ => State::TombFrozen,
        }
    }

    /// The same key and state `count` slots further on (P3).
    #[inline(always)]
    pub(crate) const fn further(self, count: usize) -> Self {
        Self(self.0.wrapping_add(count as u64 * STEP))
    }

    /// The same key in another state.
    #[inline(always)]
    pub(crate) const fn with(self, state: State) -> Self {
        Self(self.0 & !STATE | state as u64)
    }

    /// What the migration turns this word into first; `None` if it is frozen or done already.
    pub(crate) const fn frozen(self) -> Option<Self> {
        match self.state() {
            State::Empty => Some(Self::EMPTY_FROZEN),
            State::Live => Some(self.with(State::LiveFrozen)),
            State::Tomb => Some(self.with(State::TombFrozen)),
            _ => None,
        }
    }

    /// Nothing is left to do for the migration.
    #[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
    pub(crate) const fn is_done(self) -> bool {
        matches!(self.state(), State::EmptyFrozen | State::LiveDone | State::TombFrozen)
    }
}

impl fmt::Debug for SlotWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.has_key() {
            write!(f, "{:?}({:#x})", self.state(), self.0 >> 3)
        } else {
            write!(f, "{:?}", self.state())
        }
    }
}

/// Slots that a probe compares at once. Four are a cache line.
pub(crate) const GROUP: usize = if MODEL { 2 } else { 4 };

/// Tables of so many slots, or more, have their homes a group apart; smaller ones lack the bits for the displacements.
const GROUPED_BITS: u32 = if MODEL { 2 } else { 10 };

/// False under loom, which has no time for more than a handful of slots: then no table is grouped.
pub(crate) const GROUPS: bool = !cfg!(quintet_loom);

/// The word a key would have, LIVE bits aside, at the displacement reached so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sought(u64);

impl Sought {
    #[inline(always)]
    pub(crate) const fn is(self, word: SlotWord) -> bool {
        word.0 ^ self.0 < STEP
    }

    /// The same `count` slots further on (P3).
    #[inline(always)]
    pub(crate) const fn further(self, count: usize) -> Self {
        Self(self.0.wrapping_add(count as u64 * STEP))
    }

    /// Where in its group a key of a grouped table begins: keys of one home begin at different slots, so that the first is
    /// most often the right one.
    #[inline(always)]
    pub(crate) const fn turn(self) -> usize {
        (self.0 >> (u64::BITS - GROUP.ilog2())) as usize % GROUP
    }

    #[inline(always)]
    pub(crate) const fn word(self, state: State) -> SlotWord {
        SlotWord(self.0 | state as u64)
    }
}

/// Under a model checker tables have a handful of slots: hashes then keep this many low bits zero.
pub(crate) const SPARE_BITS: u32 = if MODEL { 8 } else { 0 };

/// The sizes of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Homes minus one.
    mask: u64,
    /// log2 of the number of homes.
    home_bits: u32,
    /// log2 of the distance between homes.
    apart: u32,
}

impl Shape {
    /// The smallest table.
    pub(crate) const MIN_BITS: u32 = if MODEL { 1 } else { 6 };
    /// A table of 2^48 slots would be larger than any address space.
    pub(crate) const MAX_BITS: u32 = 48;

    /// The shape of a table of size `2^bits`.
    pub(crate) const fn new(bits: u32) -> Self {
        assert!(bits >= Self::MIN_BITS && bits <= Self::MAX_BITS);
        let apart = if !GROUPS || bits < GROUPED_BITS { 0 } else { GROUP.ilog2() };
        Self { mask: (1 << (bits - apart)) - 1, home_bits: bits - apart, apart }
    }

    /// log2 of the size.
    pub(crate) const fn bits(self) -> u32 {
        self.home_bits + self.apart
    }

    /// The slots that homes and the room between them take. Loads are shares of this.
    pub(crate) const fn size(self) -> usize {
        1 << self.bits()
    }

    /// True if homes are a group apart.
    #[inline(always)]
    pub(crate) const fn is_grouped(self) -> bool {
        self.apart != 0
    }

    /// The largest displacement a word can express, one less than a multiple of [`GROUP`]. At load 0.7 the longest run of
    /// 2^28 random keys is about 350 slots.
    pub(crate) const fn reach(self) -> usize {
        let bits = if MODEL {
            1 + self.apart
        } else if self.home_bits - 3 < 10 {
            self.home_bits - 3
        } else {
            10
        };
        (1 << bits) - 1
    }

    /// The size, and behind it room for entries displaced from the last homes: there is no wrap-around.
    pub(crate) const fn slots(self) -> usize {
        self.size() + self.reach()
    }

    /// Where to look for a hash, and for which word.
    #[inline(always)]
    pub(crate) const fn aim(self, hash: u64) -> (usize, Sought) {
        let turned = hash.rotate_left(self.home_bits);
        let home = turned & self.mask;
        ((home << self.apart) as usize, Sought(turned ^ home))
    }

    /// The hash of the key in `slot`, given its word (P1).
    pub(crate) const fn hash(self, slot: usize, word: SlotWord) -> u64 {
        let home = (slot - self.displacement(word)) as u64 >> self.apart;
        let rest = word.0 & !(self.mask | SPARE_MASK);
        (rest | home).rotate_right(self.home_bits)
    }

    /// How far from home the entry lies.
    pub(crate) const fn displacement(self, word: SlotWord) -> usize {
        ((word.0 & (self.mask | SPARE_MASK)) >> 3) as usize
    }
}

const SPARE_MASK: u64 = (1 << SPARE_BITS) - 1;

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    const STATES: [State; 7] = [
        State::Empty,
        State::EmptyFrozen,
        State::Live,
        State::LiveFrozen,
        State::LiveDone,
        State::Tomb,
        State::TombFrozen,
    ];
    const KEYED: [State; 5] =
        [State::Live, State::LiveFrozen, State::LiveDone, State::Tomb, State::TombFrozen];

    /// Corners first, then a walk through the whole range.
    fn hashes() -> impl Iterator<Item = u64> {
        let corners = [0, 1, 7, 8, u64::MAX, u64::MAX - 7, 1 << 63, (1 << 63) - 1];
        let walk =
            (0..4_000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(i as u32));
        corners.into_iter().chain(walk)
    }

    #[test]
    fn word_and_position_give_the_hash_back() {
        for bits in [6, 7, 9, 12, 13, 14, 24, 33, 48] {
            let shape = Shape::new(bits);
            for hash in hashes() {
                let (home, mut sought) = shape.aim(hash);
                assert_eq!(home as u64, hash >> (64 - shape.home_bits) << shape.apart);
                for displacement in 0..=shape.reach().min(300) {
                    for state in KEYED {
                        let word = sought.word(state);
                        assert_eq!(word.state(), state);
                        assert!(word.has_key(), "{word:?}");
                        assert_eq!(shape.hash(home + displacement, word), hash);
                        assert_eq!(shape.displacement(word), displacement);
                    }
                    sought = sought.further(1);
                }
            }
        }
    }

    #[test]
    fn a_sought_word_matches_its_own_key_only() {
        let shape = Shape::new(6);
        let all: Vec<u64> = hashes().take(300).collect();
        for &a in &all {
            for &b in &all {
                let ((home_a, mut sought), (home_b, _)) = (shape.aim(a), shape.aim(b));
                for step in 0..=shape.reach() {
                    // What key b would look like in the slot that a's probe has reached.
                    let slot = home_a + step;
                    if slot >= home_b && slot - home_b <= shape.reach() {
                        let mut theirs = shape.aim(b).1;
                        (home_b..slot).for_each(|_| theirs = theirs.further(1));
                        for state in KEYED {
                            assert_eq!(sought.is(theirs.word(state)), a == b);
                        }
                    }
                    sought = sought.further(1);
                }
            }
        }
    }

    #[test]
    fn states_pack_and_freeze() {
        for state in STATES {
            assert_eq!(SlotWord::from_bits(state as u64).state(), state);
        }
        assert_eq!(SlotWord::EMPTY.frozen(), Some(SlotWord::EMPTY_FROZEN));
        assert!(!SlotWord::EMPTY.has_key() && !SlotWord::EMPTY_FROZEN.has_key());
        for hash in hashes() {
            let (_, sought) = Shape::new(6).aim(hash);
            let live = sought.word(State::Live);
            assert_eq!(live.frozen(), Some(live.with(State::LiveFrozen)));
            assert_eq!(live.with(State::Tomb).frozen(), Some(live.with(State::TombFrozen)));
            for state in [State::LiveFrozen, State::LiveDone, State::TombFrozen] {
                assert_eq!(live.with(state).frozen(), None);
                assert_eq!(live.with(state).is_done(), state != State::LiveFrozen);
            }
        }
    }

    #[test]
    fn debug_prints_names() {
        let (_, sought) = Shape::new(6).aim(0x1234);
        assert_eq!(format!("{:?}", SlotWord::EMPTY_FROZEN), "EmptyFrozen");
        assert!(format!("{:?}", sought.word(State::Tomb)).starts_with("Tomb("));
    }
}
