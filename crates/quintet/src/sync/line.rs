//! A cache line of words, looked over at once.
//!
//! **L1.** [`Line::scan`] loads each word of the line once, each load Acquire and of one moment;
//! the words may be of different moments. For words that change once only, from "gap" to something
//! else, that is enough: what the scan has seen full stays so.
//! **L2.** No branch depends on the words before the answer: a line that arrives late holds up what
//! follows only where its answer is used.
//!
//! | Where | How |
//! |---|---|
//! | x86-64 | four 16-byte loads in assembly, compared with SSE2, which every x86-64 has |
//! | elsewhere, ThreadSanitizer, Miri, loom, shuttle | word by word |

use super::AtomicU64;
#[cfg(any(not(target_arch = "x86_64"), quintet_loom, quintet_shuttle, quintet_tsan, miri))]
use super::Ordering;

/// Words of a line. Two under a model checker: the fewest that can be of different moments.
pub(crate) const LINE: usize = if super::MODEL { 2 } else { 8 };

/// The bit of a word that does not count for a gap.
#[cfg(any(test, not(target_arch = "x86_64"), quintet_loom, quintet_shuttle, quintet_tsan, miri))]
const SIGN: u64 = 1 << 63;

/// Adjacent words on one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Line([AtomicU64; LINE]);

/// What a scan has found: one bit per word, the first word lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Words whose upper half, under the mask, is the one sought.
    pub(crate) alike: Slots,
    /// Words that are 0 but for the topmost bit.
    pub(crate) gaps: Slots,
}

/// Some words of a line, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slots(u32);

impl Slots {
    #[inline(always)]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The first of them; some are there.
    #[inline(always)]
    pub(crate) fn first(self) -> usize {
        debug_assert!(!self.is_empty());
        self.0.trailing_zeros() as usize % LINE
    }
}

impl Slots {
    /// Those that are not among the others.
    #[inline(always)]
    pub(crate) fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// The first of them, or [`LINE`] if there is none. Without a branch.
    #[inline(always)]
    pub(crate) fn first_or_end(self) -> usize {
        (self.0 | 1 << LINE).trailing_zeros() as usize
    }
}

impl Iterator for Slots {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        let first = self.first();
        self.0 &= self.0 - 1;
        Some(first)
    }
}

impl Line {
    pub(crate) fn zeroed() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// The words one by one.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[AtomicU64; LINE] {
        &self.0
    }

    /// Compares the upper halves of all words with that of `sought`, as far as `mask` says, and
    /// looks for gaps (L1).
    #[cfg(all(
        target_arch = "x86_64",
        not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))
    ))]
    #[inline(always)]
    pub(crate) fn scan(&self, sought: u64, mask: u64) -> Found {
        // SAFETY: SSE2 belongs to every x86-64, and the line is valid and aligned.
        unsafe { x86::scan(self, sought, mask) }
    }

    /// Compares the upper halves of all words with that of `sought`, as far as `mask` says, and
    /// looks for gaps (L1).
    #[cfg(any(not(target_arch = "x86_64"), quintet_loom, quintet_shuttle, quintet_tsan, miri))]
    #[inline(always)]
    pub(crate) fn scan(&self, sought: u64, mask: u64) -> Found {
        let (mut alike, mut gaps) = (0, 0);
        for (index, word) in self.0.iter().enumerate() {
            // ORDERING: Acquire (L1); partner: the exchange that stored the word.
            let word = word.load(Ordering::Acquire);
            let bit = 1 << index;
            alike |= if (word ^ sought) & mask >> 32 << 32 == 0 { bit } else { 0 };
            gaps |= if word & !SIGN == 0 { bit } else { 0 };
        }
        Found { alike: Slots(alike), gaps: Slots(gaps) }
    }
}

#[cfg(all(target_arch = "x86_64", not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))))]
mod x86 {
    use super::{Found, Line, Slots};
    use std::arch::asm;
    use std::arch::x86_64::*;

    /// See [`Line::scan`].
    ///
    /// # Safety
    /// The line is valid; SSE2 is there.
    #[inline(always)]
    #[allow(unused_unsafe, clippy::multiple_unsafe_ops_per_block)] // pure arithmetic, unsafe for older compilers only
    pub(super) unsafe fn scan(line: &Line, sought: u64, mask: u64) -> Found {
        let place = &raw const *line;
        let (a, b, c, d): (__m128i, __m128i, __m128i, __m128i);
        // SAFETY: 64 valid bytes, aligned to 64. Each half of an aligned 16-byte load is one access
        // on every x86-64.
        // ORDERING: every x86 load is Acquire, and the compiler keeps later accesses behind the
        // block.
        unsafe {
            asm!(
                "movdqa {a}, xmmword ptr [{place}]",
                "movdqa {b}, xmmword ptr [{place} + 16]",
                "movdqa {c}, xmmword ptr [{place} + 32]",
                "movdqa {d}, xmmword ptr [{place} + 48]",
                a = out(xmm_reg) a, b = out(xmm_reg) b, c = out(xmm_reg) c, d = out(xmm_reg) d,
                place = in(reg) place, options(nostack, preserves_flags),
            );
        }
        // SAFETY: SSE2 is there; the rest is arithmetic.
        unsafe {
            let uppers = [halves::<UPPER>(a, b), halves::<UPPER>(c, d)];
            let lowers = [halves::<LOWER>(a, b), halves::<LOWER>(c, d)];
            let count = _mm_set1_epi32((mask >> 32) as i32);
            let tag = _mm_set1_epi32((sought >> 32 & mask >> 32) as i32);
            let alike = uppers.map(|upper| _mm_cmpeq_epi32(_mm_and_si128(upper, count), tag));
            // A gap is 0 but for the topmost bit, which the shift drops.
            let gap = |upper, lower| _mm_or_si128(_mm_slli_epi32::<1>(upper), lower);
            let zero = _mm_setzero_si128();
            let gaps = [gap(uppers[0], lowers[0]), gap(uppers[1], lowers[1])]
                .map(|word| _mm_cmpeq_epi32(word, zero));
            Found { alike: Slots(bits(alike)), gaps: Slots(bits(gaps)) }
        }
    }

    const UPPER: i32 = 0b11_01_11_01;
    const LOWER: i32 = 0b10_00_10_00;

    /// The upper or the lower halves of four words.
    ///
    /// # Safety
    /// SSE2 is there.
    #[inline(always)]
    #[allow(unused_unsafe, clippy::multiple_unsafe_ops_per_block)] // as above
    unsafe fn halves<const WHICH: i32>(a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: the caller's promise.
        unsafe {
            _mm_castps_si128(_mm_shuffle_ps::<WHICH>(_mm_castsi128_ps(a), _mm_castsi128_ps(b)))
        }
    }

    /// One bit per word.
    ///
    /// # Safety
    /// SSE2 is there.
    #[inline(always)]
    #[allow(unused_unsafe, clippy::multiple_unsafe_ops_per_block)] // as above
    unsafe fn bits([first, last]: [__m128i; 2]) -> u32 {
        // SAFETY: the caller's promise.
        unsafe {
            let eight = _mm_packs_epi32(first, last);
            _mm_movemask_epi8(_mm_packs_epi16(eight, _mm_setzero_si128())) as u32
        }
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;
    use crate::sync::Ordering;

    fn line(words: [u64; 8]) -> Line {
        Line(words.map(AtomicU64::new))
    }

    #[test]
    fn a_scan_finds_tags_and_gaps() {
        let tag = 0xabcd_ef01 << 32;
        let words = [tag | 1, 0, 7, tag | 9, SIGN, tag ^ 1 << 32, u64::MAX, 1 << 32];
        let line = line(words);
        let found = line.scan(tag | 77, u64::MAX << 32);
        assert_eq!(found.alike.collect::<Vec<_>>(), [0, 3]);
        assert_eq!(found.gaps.collect::<Vec<_>>(), [1, 4]);
        assert_eq!((found.alike.first(), found.gaps.first()), (0, 1));
        // A shorter tag: the lowest byte of the upper half does not count.
        let found = line.scan(tag, u64::MAX << 40);
        assert_eq!(found.alike.collect::<Vec<_>>(), [0, 3, 5]);
        // Nothing there.
        assert!(line.scan(0x1234 << 32, u64::MAX << 32).alike.is_empty());
        // The tag 0 is that of a gap as well: it is for the caller to tell.
        assert_eq!(line.scan(0, u64::MAX << 32).alike.collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn each_word_has_its_own_bit() {
        for index in 0..8 {
            let mut words = [u64::MAX; 8];
            words[index] = 5 << 32 | 3;
            assert_eq!(
                line(words).scan(5 << 32, u64::MAX << 32).alike.collect::<Vec<_>>(),
                [index]
            );
            words[index] = 0;
            let fresh = line(words);
            assert_eq!(fresh.scan(5 << 32, u64::MAX << 32).gaps.collect::<Vec<_>>(), [index]);
            fresh.words()[index].store(1, Ordering::Relaxed);
            assert!(fresh.scan(5 << 32, u64::MAX << 32).gaps.is_empty());
        }
    }
}
