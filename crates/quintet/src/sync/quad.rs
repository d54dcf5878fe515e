//! Four keys and their values on one cache line.
//!
//! ```text
//!   0        8        16       24       32       40       48       56       64
//!   +--------+--------+--------+--------+--------+--------+--------+--------+
//!   |   K0   |   K1   |   K2   |   K3   |   V0   |   V1   |   V2   |   V3   |
//!   +--------+--------+--------+--------+--------+--------+--------+--------+
//! ```
//!
//! **QD1.** [`Quad::look`] loads each key word once, each load Acquire and of one moment; the four
//! may be of different moments. Both its answers come from the same four words.
//! **QD2.** No branch depends on the words before the answer: a line that arrives late holds up
//! what follows only where its answer is used.
//!
//! | Where | How |
//! |---|---|
//! | x86-64 | two 16-byte loads in assembly, compared with SSE2, which every x86-64 has |
//! | elsewhere, ThreadSanitizer, Miri, loom, shuttle | word by word |

use super::AtomicU64;
#[cfg(any(not(target_arch = "x86_64"), quintet_loom, quintet_shuttle, quintet_tsan, miri))]
use super::Ordering;

/// Lanes of a line. Two under a model checker: the fewest that can be of different moments.
pub(crate) const LANES: usize = if super::MODEL { 2 } else { 4 };

/// Keys and values of a line. All zero bytes are a line of zeros.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Quad {
    keys: [AtomicU64; LANES],
    values: [AtomicU64; LANES],
}

/// What one look has found: one bit per lane, the first lane lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Lanes whose key word is the one sought.
    pub(crate) same: u32,
    /// Lanes whose key word is 0.
    pub(crate) zero: u32,
}

/// The first lane of some; there is one.
#[inline(always)]
pub(crate) fn first(lanes: u32) -> usize {
    debug_assert!(lanes != 0);
    lanes.trailing_zeros() as usize % LANES
}

impl Quad {
    pub(crate) fn zeroed() -> Self {
        let zeros = || std::array::from_fn(|_| AtomicU64::new(0));
        Self { keys: zeros(), values: zeros() }
    }

    #[inline(always)]
    pub(crate) fn key(&self, lane: usize) -> &AtomicU64 {
        &self.keys[lane]
    }

    #[inline(always)]
    pub(crate) fn value(&self, lane: usize) -> &AtomicU64 {
        &self.values[lane]
    }

    /// Compares all keys with `sought` and with 0 (QD1).
    #[cfg(all(
        target_arch = "x86_64",
        not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))
    ))]
    #[inline(always)]
    pub(crate) fn look(&self, sought: u64) -> Look {
        // SAFETY: SSE2 belongs to every x86-64, and the line is valid and aligned.
        unsafe { x86::look(self, sought) }
    }

    /// Compares all keys with `sought` and with 0 (QD1).
    #[cfg(any(not(target_arch = "x86_64"), quintet_loom, quintet_shuttle, quintet_tsan, miri))]
    #[inline(always)]
    pub(crate) fn look(&self, sought: u64) -> Look {
        let (mut same, mut zero) = (0, 0);
        for (lane, key) in self.keys.iter().enumerate() {
            // ORDERING: Acquire (QD1); partner: the exchange that stored the word.
            let word = key.load(Ordering::Acquire);
            same |= u32::from(word == sought) << lane;
            zero |= u32::from(word == 0) << lane;
        }
        Look { same, zero }
    }
}

#[cfg(all(target_arch = "x86_64", not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))))]
mod x86 {
    use super::{Look, Quad};
    use std::arch::asm;
    use std::arch::x86_64::*;

    const LOWER: i32 = 0b10_00_10_00;
    const UPPER: i32 = 0b11_01_11_01;

    /// See [`Quad::look`].
    ///
    /// # Safety
    /// The line is valid; SSE2 is there.
    #[inline(always)]
    #[allow(unused_unsafe, clippy::multiple_unsafe_ops_per_block)] // pure arithmetic, unsafe for older compilers only
    pub(super) unsafe fn look(line: &Quad, sought: u64) -> Look {
        let place = &raw const *line;
        let (a, b): (__m128, __m128);
        // SAFETY: 32 valid bytes, aligned to 64. Each half of an aligned 16-byte load is one access
        // on every x86-64.
        // ORDERING: every x86 load is Acquire, and the compiler keeps later accesses behind the
        // block.
        unsafe {
            asm!(
                "movaps {a}, xmmword ptr [{place}]",
                "movaps {b}, xmmword ptr [{place} + 16]",
                a = out(xmm_reg) a, b = out(xmm_reg) b,
                place = in(reg) place, options(nostack, preserves_flags),
            );
        }
        // SAFETY: SSE2 is there; the rest is arithmetic.
        unsafe {
            let lower = _mm_castps_si128(_mm_shuffle_ps::<LOWER>(a, b));
            let upper = _mm_castps_si128(_mm_shuffle_ps::<UPPER>(a, b));
            let key = _mm_cvtsi64_si128(sought as i64);
            let same_lower = _mm_cmpeq_epi32(lower, _mm_shuffle_epi32::<0>(key));
            let same_upper = _mm_cmpeq_epi32(upper, _mm_shuffle_epi32::<0x55>(key));
            let same = _mm_and_si128(same_lower, same_upper);
            let zero = _mm_cmpeq_epi32(_mm_or_si128(lower, upper), _mm_setzero_si128());
            Look {
                same: _mm_movemask_ps(_mm_castsi128_ps(same)) as u32,
                zero: _mm_movemask_ps(_mm_castsi128_ps(zero)) as u32,
            }
        }
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;
    use crate::sync::Ordering;

    fn line(keys: [u64; 4]) -> Quad {
        let line = Quad::zeroed();
        for (lane, key) in keys.into_iter().enumerate() {
            line.key(lane).store(key, Ordering::Relaxed);
        }
        line
    }

    #[test]
    fn a_look_finds_the_key_and_the_zeros() {
        let key = 0x1234_5678_9abc_def0;
        let look = line([key, 0, key ^ 1, key ^ 1 << 63]).look(key);
        assert_eq!(look, Look { same: 0b0001, zero: 0b0010 });
        let halves = [key >> 32, key << 32, key & 0xffff_ffff, key];
        assert_eq!(line(halves).look(key), Look { same: 0b1000, zero: 0 });
        assert_eq!(line([1 << 32, 1, 0, 0]).look(1), Look { same: 0b0010, zero: 0b1100 });
        assert_eq!(first(0b1100), 2);
    }

    #[test]
    fn each_lane_has_its_own_bit() {
        for lane in 0..LANES {
            let mut keys = [7; 4];
            keys[lane] = u64::MAX;
            assert_eq!(line(keys).look(u64::MAX), Look { same: 1 << lane, zero: 0 });
            keys[lane] = 0;
            let line = line(keys);
            assert_eq!(line.look(u64::MAX), Look { same: 0, zero: 1 << lane });
            line.value(lane).store(u64::MAX, Ordering::Relaxed);
            assert_eq!(
                line.look(u64::MAX),
                Look { same: 0, zero: 1 << lane },
                "values do not count"
            );
        }
    }

    #[test]
    fn a_line_is_a_cache_line() {
        assert_eq!((size_of::<Quad>(), align_of::<Quad>()), (64, 64));
    }
}
