//! The one word of a slot.
//!
//! ```text
//!   63            id_bits            0
//!   ├──── tag ─────┼────── id ───────┤        Ids::Narrow 32 | 32, Ids::Wide 24 | 40, fingerprints 64 | 0
//! ```
//!
//! | Word | Meaning | Changes to |
//! |---|---|---|
//! | 0 | EMPTY: nothing has ever been here | FROZEN or FULL, once |
//! | 2^63 | FROZEN: nothing will ever be here | never |
//! | else | FULL: the tag of a record's hash, and the record's id | never |
//!
//! **B1.** A slot is written once. Ids begin at 1 and fingerprints avoid both special words, so the three cases never overlap.
//! **B2.** The top bits of a hash name the segment, the next ones are the tag; the home, a line, is taken from the top of the
//! tag and grows with it, so that an old cluster lies in one run of the next table.
//! **B3.** The home of a FULL word follows from the word: moving it needs no record and no user code.

use crate::hash;

/// Nothing has ever been here.
pub(crate) const EMPTY: u64 = 0;
/// Nothing will ever be here.
pub(crate) const FROZEN: u64 = 1 << 63;

/// How hashes and words are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    pub(crate) segment_bits: u32,
    id_bits: u32,
    tag_mask: u64,
    segment_mask: u64,
}

impl Split {
    pub(crate) const fn new(id_bits: u32, segment_bits: u32) -> Self {
        let segment_mask = (1 << segment_bits) - 1;
        Self { id_bits, segment_bits, tag_mask: u64::MAX << id_bits, segment_mask }
    }

    /// The bits of a word that hold the tag.
    #[inline(always)]
    pub(crate) const fn tag_mask(self) -> u64 {
        self.tag_mask
    }

    /// A hash, turned: the tag on top, the segment at the bottom (B2).
    #[inline(always)]
    pub(crate) const fn turn(self, hash: u64) -> u64 {
        hash.rotate_left(self.segment_bits)
    }

    /// The segment of a turned hash.
    #[inline(always)]
    pub(crate) const fn segment(self, turned: u64) -> usize {
        (turned & self.segment_mask) as usize
    }

    /// The tag of a turned hash, in its place in the word.
    #[inline(always)]
    pub(crate) const fn tag(self, turned: u64) -> u64 {
        turned & self.tag_mask
    }

    /// A whole turned hash as a word, for sets without records. One fingerprint in 2^62 gives way to its neighbour (B1).
    #[inline(always)]
    pub(crate) const fn print(self, turned: u64) -> u64 {
        if turned & !FROZEN == 0 { turned | 1 } else { turned }
    }

    /// The record of a FULL word.
    #[inline(always)]
    pub(crate) const fn id(self, word: u64) -> u64 {
        word & !self.tag_mask()
    }

    /// The home of a tag or a FULL word among `lines` (B2, B3).
    #[inline(always)]
    pub(crate) const fn home(self, word: u64, lines: usize) -> usize {
        hash::start_scaled(((word & self.tag_mask()) >> 32) as u32, lines as u64)
    }

    /// Ids that exist, the unused 0 included.
    pub(crate) const fn ids(self) -> u64 {
        1 << self.id_bits
    }
}

/// FULL: a word that is neither EMPTY nor FROZEN.
#[inline(always)]
pub(crate) const fn is_full(word: u64) -> bool {
    word & !FROZEN != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_and_id_share_a_word() {
        for (id_bits, segment_bits) in [(32, 0), (32, 6), (40, 8)] {
            let split = Split::new(id_bits, segment_bits);
            for hash in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef, 1 << 63, u64::MAX >> 1] {
                let turned = split.turn(hash);
                for id in [1, 2, split.ids() - 1] {
                    let word = split.tag(turned) | id;
                    assert_eq!(split.id(word), id);
                    assert_eq!(word & split.tag_mask(), split.tag(turned));
                    assert!(is_full(word), "{word:#x}");
                    assert_eq!(split.home(word, 1000), split.home(split.tag(turned), 1000));
                }
                // The top bits (H2).
                let top = hash.checked_shr(64 - segment_bits).unwrap_or(0);
                assert_eq!(split.segment(turned) as u64, top);
            }
        }
    }

    #[test]
    fn homes_follow_the_hash_inside_a_segment() {
        let split = Split::new(32, 2);
        let hashes = (0..1000u64).map(|step| step * (u64::MAX / 4000));
        for slots in [3, 100, 1 << 20] {
            let homes: Vec<_> =
                hashes.clone().map(|hash| split.home(split.tag(split.turn(hash)), slots)).collect();
            assert!(
                homes.is_sorted() && homes[999] < slots && homes[999] >= slots - 1 - slots / 500
            );
        }
    }

    #[test]
    fn fingerprints_avoid_the_special_words() {
        for segment_bits in [0, 6] {
            let split = Split::new(0, segment_bits);
            for hash in [0, 1, 1 << 63, 1 << (63 - segment_bits), u64::MAX, 42] {
                assert!(is_full(split.print(split.turn(hash))));
            }
            assert_eq!(split.print(split.turn(42)).rotate_right(segment_bits), 42);
        }
    }
}
