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
//! **B1.** A slot is written once. Ids begin at 1 and fingerprints avoid both special words, so the
//! three cases never overlap.
//! **B2.** The top bits of a hash name the segment, the next ones are the tag; the home, a line, is
//! taken from the top of the tag and grows with it, so that an old cluster lies in one run of the
//! next table.
//! **B3.** The home of a FULL word follows from the word: moving it needs no record and no user
//! code.
//! **B4.** Small tables (`small`) hold all segments. Their words are *narrow*: the hash is not
//! turned, and the tag takes as many bits of the id's field as name the segment, for which ids must
//! be small. A narrow word and a segment's word follow from each other: both hold the segment's
//! number, the tag and the id.
//!
//! ```text
//!   narrow   ├─ segment ─┼───── tag ─────┼─ id ─┤
//!   turned               ├───── tag ─────┼─────── id ──────┤        in the table of the segment
//! ```

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

    /// A hash that can be a word itself, turned or not, for sets without records. One fingerprint
    /// in 2^62 gives way to its neighbour (B1).
    #[inline(always)]
    pub(crate) const fn print(self, hash: u64) -> u64 {
        let special = FROZEN | FROZEN.rotate_right(self.segment_bits);
        if hash & !special == 0 { hash | 1 } else { hash }
    }

    /// How the words of small tables are divided (B4).
    pub(crate) const fn narrow(self) -> Self {
        Self::new(self.id_bits.saturating_sub(self.segment_bits), 0)
    }

    /// The tag of a narrow word, from the tag and the segment of a turned hash (B4).
    #[inline(always)]
    pub(crate) const fn narrow_tag(self, tag: u64, segment: usize) -> u64 {
        (tag | segment as u64).rotate_right(self.segment_bits)
    }

    /// The word of a segment that says what a narrow word says, and the segment (B4).
    #[inline(always)]
    pub(crate) const fn widen(self, narrow: u64) -> (u64, usize) {
        let split = self.narrow();
        let turned = self.turn(split.tag(narrow));
        (self.tag(turned) | split.id(narrow), self.segment(turned))
    }

    /// The first and the last home of a segment's narrow words among `lines` (B4).
    pub(crate) const fn share(self, segment: usize, lines: usize) -> (usize, usize) {
        let first = (segment as u64).rotate_right(self.segment_bits);
        let narrow = self.narrow();
        (narrow.home(first, lines), narrow.home(first | u64::MAX >> self.segment_bits, lines))
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
                // The top bits (`hash` H2).
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
                let print = split.print(hash);
                assert!(is_full(print) && is_full(split.turn(print)), "{hash:#x}");
                assert_eq!(split.print(print), print);
            }
            assert_eq!(split.print(42), 42);
        }
    }

    #[test]
    fn narrow_words_say_what_the_words_of_segments_say() {
        for (id_bits, segment_bits) in [(32, 0), (32, 6), (32, 8), (40, 8), (0, 0), (0, 6), (0, 8)]
        {
            let split = Split::new(id_bits, segment_bits);
            let narrow = split.narrow();
            for hash in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef, 1 << 63, 1 << 57, u64::MAX >> 1] {
                let hash = if id_bits == 0 { split.print(hash) } else { hash };
                let turned = split.turn(hash);
                let (tag, segment) = (split.tag(turned), split.segment(turned));
                for id in [1, narrow.ids() - 1].map(|id| if id_bits == 0 { 0 } else { id }) {
                    let word = split.narrow_tag(tag, segment) | id;
                    assert_eq!(narrow.tag(word), narrow.tag(hash), "{word:#x} {hash:#x}");
                    assert_eq!(split.widen(word), (tag | id, segment));
                    assert!(is_full(word));
                    for lines in [1, 2, 8, 2048] {
                        let (first, last) = split.share(segment, lines);
                        assert!((first..=last).contains(&narrow.home(word, lines)));
                    }
                }
            }
        }
    }

    #[test]
    fn shares_are_all_lines_in_order() {
        for (id_bits, segment_bits) in [(32, 0), (32, 6), (40, 8), (0, 6)] {
            let split = Split::new(id_bits, segment_bits);
            for lines in [1, 2, 8, 2048] {
                let shares: Vec<_> =
                    (0..1 << segment_bits).map(|segment| split.share(segment, lines)).collect();
                assert_eq!((shares[0].0, shares.last().unwrap().1), (0, lines - 1));
                assert!(shares.windows(2).all(|two| two[1].0 - two[0].1 <= 1));
            }
        }
    }
}
