//! One byte for each lane of a [`Quad`](super::quad::Quad): what a lookup asks instead of the line.
//!
//! **TG1.** A byte is 0, or the tag of its lane's key, and changes once. Whoever stores it stores the same.
//! **TG2.** [`Tags::lack`] loads each byte of two neighbours once, in any order. Its order to other accesses is that of a Relaxed load.
//!
//! | Where | How |
//! |---|---|
//! | x86-64 | one 8-byte load in assembly, compared with SSE2, which every x86-64 has |
//! | elsewhere, ThreadSanitizer, Miri, loom, shuttle | byte by byte |

use super::quad::LANES;
use super::{AtomicU8, Ordering};

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

    /// True if neither line has this tag, and one of them a lane without one.
    #[inline(always)]
    pub(crate) fn lack(pair: &[Self; 2], tag: u8) -> bool {
        #[cfg(all(
            target_arch = "x86_64",
            not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))
        ))]
        // SAFETY: SSE2 belongs to every x86-64, and the pair is valid.
        return unsafe { x86::lack(pair, tag) };
        #[allow(unreachable_code, reason = "one of the two")]
        {
            let all = || pair.iter().flat_map(|tags| (0..LANES).map(|lane| tags.get(lane)));
            let (mut same, mut zero) = (false, false);
            all().for_each(|found| {
                same |= found == tag;
                zero |= found == 0;
            });
            zero && !same
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))))]
mod x86 {
    use super::Tags;
    use std::arch::asm;
    use std::arch::x86_64::*;

    /// See [`Tags::lack`].
    ///
    /// # Safety
    /// The pair is valid; SSE2 is there.
    #[inline(always)]
    #[allow(unused_unsafe, clippy::multiple_unsafe_ops_per_block)] // pure arithmetic, unsafe for older compilers only
    pub(super) unsafe fn lack(pair: &[Tags; 2], tag: u8) -> bool {
        let place = &raw const *pair;
        let found: __m128i;
        // SAFETY: 8 valid bytes. Whatever the alignment, each byte is one access.
        // ORDERING: every x86 load is Acquire.
        unsafe {
            asm!(
                "movq {found}, qword ptr [{place}]",
                found = out(xmm_reg) found,
                place = in(reg) place, options(nostack, preserves_flags, readonly),
            );
        }
        // SAFETY: SSE2 is there; the rest is arithmetic. One comparison answers both questions: the lower half with 0, the upper half with the tag.
        unsafe {
            let tags = _mm_cvtsi64_si128((u64::from(tag) * 0x0101_0101_0101_0101) as i64);
            let sought = _mm_slli_si128::<8>(tags);
            let both = _mm_cmpeq_epi8(_mm_unpacklo_epi64(found, found), sought);
            let lanes = _mm_movemask_epi8(both);
            (1..=0xff).contains(&lanes)
        }
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    fn line(tags: [u8; LANES]) -> Tags {
        Tags(tags.map(AtomicU8::new))
    }

    #[test]
    fn a_tag_is_lacking_where_there_is_room_and_no_such_tag() {
        for lane in 0..2 * LANES {
            for other in 0..2 * LANES {
                let mut tags = [7; 2 * LANES];
                let lack = |tags: [u8; 2 * LANES]| {
                    let (a, b) = (tags[..LANES].try_into(), tags[LANES..].try_into());
                    Tags::lack(&[line(a.unwrap()), line(b.unwrap())], 9)
                };
                assert!(!lack(tags), "full");
                tags[lane] = 0;
                assert!(lack(tags));
                tags[other] = 9;
                assert!(!lack(tags), "there, whatever else is");
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
