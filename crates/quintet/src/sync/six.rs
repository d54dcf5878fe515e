//! One cache line of a table of items: six tags and six items; and what writers know of each place
//! besides.
//!
//! ```text
//!   byte 0             12  14  16                                              64
//!        [ t t t t t t | - | - | item   item   item   item   item   item ]
//! ```
//!
//! **V1.** Every access to a lane is atomic by itself; a look at all tags at once is one load per
//! tag in no order among themselves, each an Acquire load. On x86-64 it is one aligned vector load,
//! which the processor does not tear within a lane, written in assembly since Rust has no atomic
//! vectors.
//! **V2.** Zero bytes are a line of EMPTY tags and null items. Behind the sixth tag lie two spares
//! that are 0 for ever, and count as nothing: who looks for [`NO_TAG`] masks them out, and tags of
//! items are odd ([`Six::lanes_of`]). So all [`Lanes`] are lanes of a line.

use super::item_word::ItemWord;
use super::{AtomicU16, AtomicU32, MODEL};

/// Lanes of a line: fewer under a model checker, so that lines are full sooner.
pub(crate) const LANES: usize = if MODEL { 2 } else { 6 };

/// log2 of the numbers that a line takes when places are numbered. Those from [`LANES`] on stand
/// for no place.
pub(crate) const LANE_BITS: u32 = if MODEL { 1 } else { 3 };

/// The tag of a lane that was never used.
pub(crate) const NO_TAG: u16 = 0;

/// A line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Six {
    tags: [AtomicU16; LANES],
    spare: [u16; 2],
    items: [ItemWord; LANES],
}

/// What only writers ask for: the whole hash of a place, and the birth of its item.
#[derive(Debug)]
#[repr(C, align(8))]
pub(crate) struct Mark {
    pub(crate) hash: AtomicU32,
    pub(crate) birth: AtomicU32,
}

impl Mark {
    pub(crate) fn new() -> Self {
        Self { hash: AtomicU32::new(0), birth: AtomicU32::new(0) }
    }
}

/// Some lanes of a line: two bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lanes(u32);

impl Lanes {
    pub(crate) const NONE: Self = Self(0);
    const ALL: u32 = (1 << (2 * LANES)) - 1;

    /// One lane.
    #[inline(always)]
    pub(crate) const fn only(lane: usize) -> Self {
        Self(3 << (2 * lane))
    }

    #[inline(always)]
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The first lane; there is one.
    #[inline(always)]
    pub(crate) const fn first(self) -> usize {
        (self.0.trailing_zeros() / 2) as usize
    }

    /// What an array has for the first lane; there is one.
    #[inline(always)]
    pub(crate) fn first_of<T, const N: usize>(self, array: &[T; N]) -> &T {
        const { assert!(N >= LANES && size_of::<T>() % 2 == 0) }
        debug_assert!(!self.is_empty() && self.first() < LANES);
        // Each lane has two bits, so the first of them is at half the size of an element times its
        // lane: no need to halve and multiply.
        let offset = self.0.trailing_zeros() as usize * (size_of::<T>() / 2);
        debug_assert_eq!(offset, self.first() * size_of::<T>());
        // SAFETY: lanes are of a line (V2), and the array has an element for each.
        let element = unsafe { array.as_ptr().byte_add(offset) };
        // SAFETY: in bounds, as above, and borrowed from the array.
        unsafe { &*element }
    }

    /// All but the first.
    #[inline(always)]
    pub(crate) const fn rest(self) -> Self {
        let rest = self.0 & self.0.wrapping_sub(1);
        Self(rest & rest.wrapping_sub(1))
    }
}

impl Six {
    pub(crate) fn new() -> Self {
        Self {
            tags: std::array::from_fn(|_| AtomicU16::new(NO_TAG)),
            spare: [0; 2],
            items: std::array::from_fn(|_| ItemWord::new()),
        }
    }

    #[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
    pub(crate) fn tag(&self, lane: usize) -> &AtomicU16 {
        &self.tags[lane]
    }

    #[inline(always)]
    pub(crate) fn item(&self, lane: usize) -> &ItemWord {
        &self.items[lane]
    }

    /// The tag of the first of some lanes.
    #[inline(always)]
    pub(crate) fn first_tag(&self, lanes: Lanes) -> &AtomicU16 {
        lanes.first_of(&self.tags)
    }

    /// The item of the first of some lanes.
    #[inline(always)]
    pub(crate) fn first_item(&self, lanes: Lanes) -> &ItemWord {
        lanes.first_of(&self.items)
    }

    /// The lanes with this tag, which is odd (V1, V2): callers take it from a stored hash, whose
    /// lowest bit is set. No branch depends on them.
    #[inline(always)]
    pub(crate) fn lanes_of(&self, tag: u16) -> Lanes {
        debug_assert_eq!(tag % 2, 1);
        Lanes(self.look(tag))
    }

    /// The lanes that were never used (V1).
    #[inline(always)]
    pub(crate) fn unused(&self) -> Lanes {
        Lanes(self.look(NO_TAG) & Lanes::ALL)
    }

    /// The lanes that are used, or were.
    #[inline(always)]
    pub(crate) fn used(&self) -> Lanes {
        Lanes(!self.look(NO_TAG) & Lanes::ALL)
    }

    /// Both: the lanes with this tag, and those that were never used.
    #[inline(always)]
    pub(crate) fn lanes_of_and_unused(&self, tag: u16) -> (Lanes, Lanes) {
        debug_assert_eq!(tag % 2, 1);
        let (lanes, unused) = self.look_for_both(tag);
        (Lanes(lanes), Lanes(unused & Lanes::ALL))
    }

    #[cfg(all(
        target_arch = "x86_64",
        not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))
    ))]
    #[inline(always)]
    fn look_for_both(&self, tag: u16) -> (u32, u32) {
        let (lanes, unused): (u32, u32);
        // SAFETY: as in `look`. ORDERING: Acquire, as there.
        unsafe {
            std::arch::asm!(
                "movdqa {line}, xmmword ptr [{place}]",
                "movd {sought}, {tag:e}",
                "pshuflw {sought}, {sought}, 0",
                "punpcklqdq {sought}, {sought}",
                "pcmpeqw {sought}, {line}",
                "pmovmskb {lanes:e}, {sought}",
                "pxor {sought}, {sought}",
                "pcmpeqw {sought}, {line}",
                "pmovmskb {unused:e}, {sought}",
                line = out(xmm_reg) _,
                sought = out(xmm_reg) _,
                tag = in(reg) tag,
                place = in(reg) self,
                lanes = out(reg) lanes,
                unused = lateout(reg) unused,
                options(nostack, preserves_flags),
            );
        }
        (lanes, unused)
    }

    #[cfg(not(all(
        target_arch = "x86_64",
        not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))
    )))]
    #[inline(always)]
    fn look_for_both(&self, tag: u16) -> (u32, u32) {
        (self.look(tag), self.look(NO_TAG))
    }

    #[cfg(all(
        target_arch = "x86_64",
        not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))
    ))]
    #[inline(always)]
    fn look(&self, tag: u16) -> u32 {
        let lanes: u32;
        // SAFETY: 16 aligned bytes of a valid line are loaded. ORDERING: Acquire: every load of
        // this processor is one, and to the compiler the block may touch all memory.
        unsafe {
            std::arch::asm!(
                "movd {sought}, {tag:e}",
                "pshuflw {sought}, {sought}, 0",
                "punpcklqdq {sought}, {sought}",
                "pcmpeqw {sought}, xmmword ptr [{line}]",
                "pmovmskb {lanes:e}, {sought}",
                sought = out(xmm_reg) _,
                tag = in(reg) tag, // whose upper half is not looked at
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
    fn look(&self, tag: u16) -> u32 {
        // ORDERING: Acquire (V1).
        (0..LANES).fold(0, |lanes, lane| {
            let found = self.tags[lane].load(super::Ordering::Acquire) == tag;
            lanes | u32::from(found) * 3 << (2 * lane)
        })
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::super::Ordering;
    use super::*;

    #[test]
    fn a_line_is_a_line() {
        assert_eq!((size_of::<Six>(), align_of::<Six>(), size_of::<Mark>()), (64, 64, 8));
    }

    #[test]
    fn finds_every_lane_of_a_tag() {
        fn list(mut lanes: Lanes) -> Vec<usize> {
            let mut list = Vec::new();
            while !lanes.is_empty() {
                list.push(lanes.first());
                lanes = lanes.rest();
            }
            list
        }
        let line = Six::new();
        assert_eq!(list(line.unused()), [0, 1, 2, 3, 4, 5]);
        for (lane, tag) in [7, u16::MAX, 7, 1 << 15 | 1, 7].into_iter().enumerate() {
            line.tag(lane).store(tag, Ordering::Relaxed);
        }
        assert_eq!(list(line.lanes_of(7)), [0, 2, 4]);
        assert_eq!(list(line.lanes_of(u16::MAX)), [1]);
        assert_eq!(list(line.lanes_of(1 << 15 | 1)), [3]);
        assert_eq!(list(line.lanes_of(9)), [0; 0]);
        assert_eq!(list(line.unused()), [5], "the spares count as nothing");
        assert_eq!(list(line.used()), [0, 1, 2, 3, 4]);
        for (tag, lanes) in [(7, vec![0, 2, 4]), (u16::MAX, vec![1]), (9, vec![])] {
            let (same, unused) = line.lanes_of_and_unused(tag);
            assert_eq!((list(same), list(unused)), (lanes, vec![5]));
        }
    }
}
