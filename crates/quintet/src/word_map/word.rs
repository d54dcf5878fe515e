//! Words: what a key word and a value word say, and where a key has its home.
//!
//! The rules of the table are numbered `table` WL1 to `desc` WL14, and each file has those that it
//! keeps.
//!
//! **WL2.** A key word is 0 (EMPTY), 1 (CLOSED), or the K of a key: `key ^ add`. It is written
//! once. A value word is one of these:
//!
//! | Word | Name | Meaning |
//! |---|---|---|
//! | 0 | VIRGIN | no value yet |
//! | 1 | TOMB | removed |
//! | 2 | MOVED | the successor knows |
//! | 3 | OWN | the value is in this slot's own cell, where a copy has put it |
//! | 16 + j, below 2^30 | FROZEN + j | the value is in descriptor j, and final in this table |
//! | 2^30 + i, below 2^31 | ESC + i | the value is in cell i of this table |
//! | 2^31 and above | plain | `value ^ flip` |
//!
//! **WL3.** Every word is a legal key and a legal value. A value with `value ^ flip` below 2^31 is
//! *special*: it is written as ESC + i or OWN (`cells` WL13). A key with K ≤ 1 is special: its slot
//! is one of two value words without a key word that every table has. `add` and `flip` are secret,
//! and the same for all tables of a map: no key and no value changes its class.

use crate::hash;
use crate::sync::MODEL;
use crate::sync::quad::LANES;

/// A key word that nobody has claimed.
pub(crate) const EMPTY: u64 = 0;
/// A key word that nobody will claim: whoever comes here goes on in the successor.
pub(crate) const CLOSED: u64 = 1;

pub(crate) const VIRGIN: u64 = 0;
pub(crate) const TOMB: u64 = 1;
pub(crate) const MOVED: u64 = 2;
pub(crate) const OWN: u64 = 3;
pub(crate) const FROZEN: u64 = 16;
pub(crate) const ESC: u64 = 1 << 30;
/// From here on a value word is a value. A compare with it has an immediate of 32 bits.
pub(crate) const PLAIN: u64 = 1 << 31;

/// What a value word says (WL2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// VIRGIN or TOMB.
    Absent,
    Moved,
    /// With the number of the descriptor.
    Frozen(usize),
    /// A value, wherever it is.
    Live(Live),
}

/// Where the value of a live word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Live {
    /// Here: `value ^ flip`.
    Plain(u64),
    /// In the slot's own cell.
    Own,
    /// In a cell of the table.
    Esc(usize),
}

impl State {
    #[inline(always)]
    pub(crate) const fn of(word: u64) -> Self {
        match word {
            PLAIN.. => Self::Live(Live::Plain(word)),
            ESC.. => Self::Live(Live::Esc((word - ESC) as usize)),
            FROZEN.. => Self::Frozen((word - FROZEN) as usize),
            VIRGIN | TOMB => Self::Absent,
            OWN => Self::Live(Live::Own),
            // The words between are never stored; reading them as moved keeps this function total.
            _ => Self::Moved,
        }
    }
}

/// What the tables of a map keep to themselves (WL3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Secrets {
    /// A key's K is `key ^ add`.
    pub(crate) add: u64,
    /// A value is stored as `value ^ flip`.
    pub(crate) flip: u64,
}

impl Secrets {
    /// Under a model checker keys are their own K, 0 and 1 are the special keys, and the special
    /// values are those next to 2^63.
    pub(crate) const fn of(seed: u64) -> Self {
        if MODEL {
            return Self { add: 0, flip: 1 << 63 };
        }
        let add = hash::spread(seed);
        Self { add, flip: hash::spread(!add) }
    }

    /// The word of a plain value; `None` of a special one.
    #[inline(always)]
    pub(crate) const fn plain(self, value: u64) -> Option<u64> {
        let word = value ^ self.flip;
        if word >= PLAIN { Some(word) } else { None }
    }
}

/// The tag of a key: never 0.
#[inline(always)]
pub(crate) const fn tag_of(hash: u64) -> u8 {
    hash as u8 | 1
}

/// Spreads what a folded product has in its low bits over the high ones.
const MIDDLE: u64 = 0xd6e8_feb8_6659_fd93;

/// The hash of K: the halves of a product, folded, and once more multiplied: with one product
/// alone, strided keys lie in heaps. Its top bits are the home, so that a table of another size
/// keeps the order of the entries, and the lowest eight are for the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Folder {
    factor: u64,
}

impl Folder {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { factor: hash::odd_factor(hash::spread(!seed)) }
    }

    /// Under a model checker keys have 56 bits and choose their own home by the top ones.
    #[inline(always)]
    pub(crate) const fn hash(self, k: u64) -> u64 {
        if MODEL {
            return k << 8;
        }
        let product = k as u128 * self.factor as u128;
        (product as u64 ^ (product >> 64) as u64).wrapping_mul(MIDDLE)
    }
}

/// The sizes of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Lines in which keys have their homes.
    homes: usize,
}

impl Shape {
    /// The smallest table.
    pub(crate) const MIN_BITS: u32 = if MODEL { 1 } else { 4 };
    /// A table of 2^48 slots would be larger than any address space.
    pub(crate) const MAX_BITS: u32 = 48;

    /// The shape of a table of size `2^bits`.
    pub(crate) const fn new(bits: u32) -> Self {
        assert!(bits >= Self::MIN_BITS && bits <= Self::MAX_BITS);
        Self { homes: 1 << (bits - LANES.ilog2()) }
    }

    /// The shape of a table with so many homes.
    #[inline(always)]
    pub(crate) const fn of_homes(homes: usize) -> Self {
        Self { homes }
    }

    /// Lines in which keys have their homes.
    pub(crate) const fn homes(self) -> usize {
        self.homes
    }

    /// The slots of the homes. Loads are shares of this.
    pub(crate) const fn size(self) -> usize {
        self.homes * LANES
    }

    /// The most lines that a probe looks at before it goes to the link. At load 0.7 the longest run
    /// of 10^7 random keys is below 64 lines.
    pub(crate) const fn reach(self) -> usize {
        if MODEL {
            2
        } else if self.homes < 128 {
            self.homes
        } else {
            128
        }
    }

    /// The lines: homes, and behind them room for what the last homes have no room for. There is no
    /// wrap-around.
    pub(crate) const fn lines(self) -> usize {
        if MODEL {
            return self.homes;
        }
        let behind = self.homes / 8;
        self.homes + if behind < 128 { behind } else { 128 }
    }

    /// The home of a hash.
    #[inline(always)]
    pub(crate) const fn home(self, hash: u64) -> usize {
        ((hash as u128 * self.homes as u128) >> 64) as usize
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn words_have_their_classes() {
        let live = |word| State::Live(Live::Plain(word));
        for (word, state) in [
            (VIRGIN, State::Absent),
            (TOMB, State::Absent),
            (MOVED, State::Moved),
            (OWN, State::Live(Live::Own)),
            (FROZEN, State::Frozen(0)),
            (ESC - 1, State::Frozen((ESC - 1 - FROZEN) as usize)),
            (ESC, State::Live(Live::Esc(0))),
            (PLAIN - 1, State::Live(Live::Esc((ESC - 1) as usize))),
            (PLAIN, live(PLAIN)),
            (u64::MAX, live(u64::MAX)),
        ] {
            assert_eq!(State::of(word), state, "{word:#x}");
        }
    }

    #[test]
    fn a_value_is_plain_or_one_of_few() {
        for seed in 0..100 {
            let secrets = Secrets::of(seed);
            for low in [0, 1, 2, 3, 15, 16, FROZEN + 7, ESC, PLAIN - 1] {
                assert_eq!(secrets.plain(low ^ secrets.flip), None);
            }
            for high in [PLAIN, PLAIN + 1, u64::MAX] {
                assert_eq!(secrets.plain(high ^ secrets.flip), Some(high));
            }
            assert_ne!(secrets, Secrets::of(seed + 1));
        }
    }

    #[test]
    fn homes_cover_the_table_and_keep_their_order() {
        for bits in [4, 5, 10, 20, 40] {
            let shape = Shape::new(bits);
            assert_eq!((shape.home(0), shape.home(u64::MAX)), (0, shape.size() / LANES - 1));
            let twice = Shape::new(bits + 1);
            for hash in (0..1_000).map(hash::spread) {
                assert_eq!(twice.home(hash) / 2, shape.home(hash));
            }
        }
    }

    /// Keys in strides of every power of two fill lines about as evenly as random keys do.
    #[test]
    fn strided_keys_spread_over_the_homes() {
        let shape = Shape::new(16);
        for seed in [7, 8, 9] {
            let (secrets, folder) = (Secrets::of(seed), Folder::new(seed));
            for shift in 0..49 {
                let mut homes = vec![0u64; shape.size() / LANES];
                for key in 0..40_000u64 {
                    homes[shape.home(folder.hash(key << shift ^ secrets.add))] += 1;
                }
                let (mut overhang, mut away) = (0u64, 0);
                for count in homes {
                    // Those of earlier homes come first, as the worst case has it.
                    away += (overhang + count).saturating_sub(LANES as u64);
                    overhang = (overhang + count).saturating_sub(LANES as u64);
                }
                // Random keys: 3,900 to 4,400 line steps at this load.
                assert!(away < 5_000, "stride 2^{shift}, seed {seed}: {away}");
            }
        }
    }
}
