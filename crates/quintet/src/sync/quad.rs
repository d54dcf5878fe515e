//! One cache line of a table of items: four hashes, four births, four items.
//!
//! ```text
//!   byte 0         16          32                              64
//!        [ h h h h | b b b b | item   item   item   item ]
//! ```
//!
//! **V1.** Every access to a lane is atomic by itself; a look at all four hashes at once is four loads in no order among
//! themselves, each an Acquire load. On x86-64 it is one aligned vector load, which the processor does not tear within a lane, written in assembly since
//! Rust has no atomic vectors.
//! **V2.** Zero bytes are a line of four EMPTY hashes.

use super::{AtomicPtr, AtomicU32, MODEL};

/// Lanes of a line: fewer under a model checker, so that lines are full sooner.
pub(crate) const LANES: usize = if MODEL { 2 } else { 4 };

/// log2 of [`LANES`].
pub(crate) const LANE_BITS: u32 = LANES.ilog2();

/// A line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Quad {
    pub(crate) hashes: [AtomicU32; LANES],
    pub(crate) births: [AtomicU32; LANES],
    pub(crate) items: [AtomicPtr<()>; LANES],
}

impl Quad {
    pub(crate) fn new() -> Self {
        Self {
            hashes: std::array::from_fn(|_| AtomicU32::new(0)),
            births: std::array::from_fn(|_| AtomicU32::new(0)),
            items: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())),
        }
    }

    /// The lanes whose hash is `hash`, one bit each (V1). No branch depends on them.
    #[inline(always)]
    pub(crate) fn lanes_of(&self, hash: u32) -> u32 {
        self.look(hash)
    }

    #[cfg(all(
        target_arch = "x86_64",
        not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))
    ))]
    #[inline(always)]
    fn look(&self, hash: u32) -> u32 {
        let lanes: u32;
        // SAFETY: 16 aligned bytes of a valid line are loaded. ORDERING: Acquire: every load of this processor is one, and to the compiler
        // the block may touch all memory.
        unsafe {
            std::arch::asm!(
                "movd {sought}, {hash:e}",
                "pshufd {sought}, {sought}, 0",
                "pcmpeqd {sought}, xmmword ptr [{line}]",
                "movmskps {lanes:e}, {sought}",
                sought = out(xmm_reg) _,
                hash = in(reg) hash,
                line = in(reg) self,
                lanes = lateout(reg) lanes,
                options(nostack, preserves_flags),
            );
        }
        lanes
    }

    #[cfg(not(all(
        target_arch = "x86_64",
        not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))
    )))]
    #[inline(always)]
    fn look(&self, hash: u32) -> u32 {
        // ORDERING: Acquire (V1).
        (0..LANES).fold(0, |lanes, lane| {
            let found = self.hashes[lane].load(super::Ordering::Acquire) == hash;
            lanes | u32::from(found) << lane
        })
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::super::Ordering;
    use super::*;

    #[test]
    fn a_line_is_a_line() {
        assert_eq!((size_of::<Quad>(), align_of::<Quad>()), (64, 64));
    }

    #[test]
    fn finds_every_lane_of_a_hash() {
        let line = Quad::new();
        assert_eq!(line.lanes_of(0), 0b1111, "EMPTY");
        for (lane, hash) in [7, u32::MAX, 7, 1 << 31].into_iter().enumerate() {
            line.hashes[lane].store(hash, Ordering::Relaxed);
        }
        assert_eq!([7, u32::MAX, 1 << 31, 0, 8].map(|hash| line.lanes_of(hash)), [5, 2, 8, 0, 0]);
    }
}
