//! One byte for each lane of a [`Quad`](super::quad::Quad): what a lookup asks instead of the line.
//!
//! **TG1.** A byte is 0, or the tag of its lane's key, and changes once. Whoever stores it stores
//! the same.
//! **TG2.** [`Tags::lack`] loads each byte of four neighbours once, in any order. Its order to
//! other accesses is that of a Relaxed load.
//!
//! | Where | How |
//! |---|---|
//! | x86-64 | one 16-byte load in assembly, compared with SSE2, which every x86-64 has |
//! | elsewhere, ThreadSanitizer, Miri, loom, shuttle | byte by byte |

use super::quad::LANES;
use super::{AtomicU8, Ordering};

/// Lines that are asked at a time: of four in a row hardly ever all are full.
pub(crate) const ASKED: usize = 4;

/// The tags of a line. All zero bytes are a line of zeros.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Tags([AtomicU8; LANES]);

impl Tags {
    pub(crate) fn zeroed() -> Self {
        Self(std::array::from_fn(|_| AtomicU8::new(0)))
    }

    /// Stores the tag of a lane (TG1).
    #[inline(always)]
    pub(crate) fn set(&self, lane: usize, tag: u8) {
        // ORDERING: Relaxed: what must come after it is an exchange with Release.
        self.0[lane].store(tag, Ordering::Relaxed);
    }

    /// The tag of a lane, or 0.
    #[inline(always)]
    pub(crate) fn get(&self, lane: usize) -> u8 {
        // ORDERING: Relaxed: who has seen it here lets nobody after it see 0, by coherence.
        self.0[lane].load(Ordering::Relaxed)
    }

    /// True if one of the lines has a lane without a tag, and neither it nor one before it has this
    /// tag.
    #[inline(always)]
    pub(crate) fn lack(lines: &[Self; ASKED], tag: u8) -> bool {
        #[cfg(all(
            target_arch = "x86_64",
            not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))
        ))]
        // SAFETY: SSE2 belongs to every x86-64, and the lines are valid.
        return unsafe { x86::lack(lines, tag) };
        #[allow(unreachable_code, reason = "one of the two")]
        {
            for line in lines {
                let tags: [u8; LANES] = std::array::from_fn(|lane| line.get(lane));
                if tags.contains(&tag) {
                    return false;
                }
                if tags.contains(&0) {
                    return true;
                }
            }
            false
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))))]
mod x86 {
    use super::{ASKED, LANES, Tags};
    use std::arch::asm;
    use std::arch::x86_64::*;

    /// See [`Tags::lack`]. May say no where the tag is in one of the lanes behind the first without
    /// a tag that belong to the next line.
    ///
    /// # Safety
    /// The lines are valid; SSE2 is there.
    #[inline(always)]
    #[allow(unused_unsafe, clippy::multiple_unsafe_ops_per_block)] // pure arithmetic, unsafe for older compilers only
    pub(super) unsafe fn lack(lines: &[Tags; ASKED], tag: u8) -> bool {
        const { assert!(size_of::<[Tags; ASKED]>() == 16 && LANES == 4) };
        let place = &raw const *lines;
        let found: __m128i;
        // SAFETY: 16 valid bytes. Whatever the alignment, each byte is one access.
        // ORDERING: every x86 load is Acquire.
        unsafe {
            asm!(
                "movdqu {found}, xmmword ptr [{place}]",
                found = out(xmm_reg) found,
                place = in(reg) place, options(nostack, preserves_flags, readonly),
            );
        }
        // SAFETY: SSE2 is there; the rest is arithmetic.
        let (same, zero) = unsafe {
            let tag = _mm_cvtsi32_si128(i32::from(tag));
            let tag = _mm_shufflelo_epi16::<0>(_mm_unpacklo_epi8(tag, tag));
            let same = _mm_cmpeq_epi8(found, _mm_unpacklo_epi64(tag, tag));
            let zero = _mm_cmpeq_epi8(found, _mm_setzero_si128());
            (_mm_movemask_epi8(same) as u32, _mm_movemask_epi8(zero) as u32)
        };
        // The lanes up to the first without a tag, and three more: its line is among them. Without
        // such a lane all bits, the one that is always set too.
        const ALWAYS: u32 = 1 << 19;
        let asked = (zero ^ zero.wrapping_sub(1)).wrapping_mul(8) | 7;
        (same | ALWAYS) & asked == 0
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    fn line(tags: [u8; LANES]) -> Tags {
        Tags(tags.map(AtomicU8::new))
    }

    const ALL: usize = ASKED * LANES;

    fn lack(tags: [u8; ALL]) -> bool {
        let line = |index: usize| line(std::array::from_fn(|lane| tags[index * LANES + lane]));
        Tags::lack(&std::array::from_fn(line), 9)
    }

    #[test]
    fn a_tag_is_lacking_where_there_is_room_and_no_such_tag_up_to_there() {
        assert!(!lack([7; ALL]) && !lack([9; ALL]), "no room");
        assert!(lack([0; ALL]));
        for room in 0..ALL {
            let mut tags = [7; ALL];
            tags[room] = 0;
            assert!(lack(tags), "{room}");
            for there in (0..ALL).filter(|there| *there != room) {
                let mut tags = tags;
                tags[there] = 9;
                let (line, seen) = (room / LANES, there / LANES);
                assert!(seen > line || !lack(tags), "{room} {there}: the tag counts");
                assert!(there <= room + 3 || lack(tags), "{room} {there}: too far behind");
            }
        }
    }

    #[test]
    fn tags_lie_side_by_side() {
        assert_eq!((size_of::<Tags>(), align_of::<Tags>()), (LANES, 1));
        let tags = line([1, 2, 3, 4]);
        tags.set(2, 9);
        assert_eq!([0, 1, 2, 3].map(|lane| tags.get(lane)), [1, 2, 9, 4]);
    }
}
