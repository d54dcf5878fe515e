//! What tells the ids of one set from those of all others.
//!
//! ```text
//!   63  62          id_bits            0
//!   ├─0─┼── number ────┼────── unit ───┤      Ids::Narrow: 31 | 32
//!   ├─1─┼── number ────┼────── unit ───┤      Ids::Wide:   23 | 40
//! ```
//!
//! **O1.** A number from 1 on is given once per kind in the life of the process, whatever the sets
//! hold, and never again, even after its set is gone: an id outlives its set. The top bit keeps the
//! kinds apart. So an id whose mark is a set's was given out by that set.
//! **O2.** When the numbers of a kind are used up, further sets share the number 0, the *crowd*.
//! The mark of an id proves nothing there; what proves that a unit is a record is a word of the set
//! that names it. So the sets of the crowd search: a foreign id finds nothing, or some record of
//! the set that was asked, whole and of the right type.

use std::sync::Mutex;

/// The mark of a set, in its place in the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    bits: u64,
    /// What the mark of an id must equal to be beyond doubt. Nothing equals it in the crowd.
    sure: u64,
}

/// How many numbers of each kind have been given.
#[derive(Debug)]
struct Given {
    narrow: u64,
    wide: u64,
}

impl Given {
    /// The next mark of sets with ids of so many bits.
    fn next(&mut self, id_bits: u32) -> Mark {
        if cfg!(quintet_mutation = "mark-collision") {
            self.narrow += 1;
            return Mark { bits: self.narrow << id_bits, sure: self.narrow << id_bits };
        }
        let is_wide = id_bits > 32;
        let given = if is_wide { &mut self.wide } else { &mut self.narrow };
        if *given + 1 == 1 << (63 - id_bits) {
            return Mark::crowd(id_bits);
        }
        *given += 1;
        let bits = u64::from(is_wide) << 63 | *given << id_bits;
        Mark { bits, sure: bits }
    }
}

impl Mark {
    /// A mark that no other set has, as long as there are any (O1, O2).
    pub(super) fn next(id_bits: u32) -> Self {
        static GIVEN: Mutex<Given> = Mutex::new(Given { narrow: 0, wide: 0 });
        GIVEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next(id_bits)
    }

    /// The mark of all sets beyond (O2).
    pub(super) fn crowd(id_bits: u32) -> Self {
        Self { bits: u64::from(id_bits > 32) << 63, sure: u64::MAX }
    }

    #[inline(always)]
    pub(super) fn bits(self) -> u64 {
        self.bits
    }

    /// What the mark of an id of this set equals, but in the crowd.
    #[inline(always)]
    pub(super) fn sure(self) -> u64 {
        self.sure
    }

    /// Whether an id with these marking bits may be one of a crowd to which the set belongs.
    pub(super) fn may_be(self, marking: u64) -> bool {
        self.sure != self.bits && marking == self.bits
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    /// Sets were refused after so many, and marks of the two kinds could be equal.
    #[test]
    fn marks_of_both_kinds_never_meet_and_never_end() {
        let all = [(32, 1u64 << 31), (40, 1 << 23)];
        let mut seen = std::collections::HashSet::new();
        for (id_bits, end) in all {
            for before in [0, 1, 2, 255, 256, 65_535, end - 3] {
                let mut given = Given { narrow: before, wide: before };
                for _ in 0..2 {
                    let mark = given.next(id_bits);
                    assert_eq!(mark.sure(), mark.bits());
                    assert_eq!(mark.bits() & ((1 << id_bits) - 1), 0, "leaves room for the unit");
                    assert_eq!(mark.bits() >> 63, u64::from(id_bits == 40));
                    seen.insert(mark.bits());
                }
            }
            let mut given = Given { narrow: end - 2, wide: end - 2 };
            assert_ne!(given.next(id_bits), Mark::crowd(id_bits));
            for _ in 0..3 {
                let crowd = given.next(id_bits);
                assert_eq!(crowd, Mark::crowd(id_bits));
                assert_ne!(crowd.sure() & (u64::MAX << id_bits), crowd.sure());
                assert!(crowd.may_be(crowd.bits()) && !crowd.may_be(crowd.bits() + (1 << id_bits)));
                assert!(!seen.contains(&crowd.bits()));
            }
        }
        // 0, 1, 2 and 255, 256 follow one another.
        assert_eq!(seen.len(), 2 * (4 + 3 + 2 + 2));
    }
}
