//! Zeroed arrays of slots.
//!
//! **G1.** Every slot of a fresh buffer is `T::zeroed()`.
//! **G2.** A buffer of 2 MiB or more is a mapping of its own, aligned to 2 MiB; a smaller one comes
//! from the global allocator.
//! **G3.** Memory is given back only by the owner of the buffer, from its end, in pieces of at most
//! [`PIECE`] bytes if the owner takes the slow way ([`Buffer::give_back`]), at once if it drops it.
//! A mapped piece that was given back reads as nothing at all: the caller guarantees that no reader
//! is left.
//! **G4.** A request that cannot be met is an error value; nothing is left behind.
//!
//! Under loom atomics are no plain bytes: every slot is built by `T::zeroed()`.

use super::{AllocError, Pages, is_mapped, pages};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::Deref;
use std::ptr::NonNull;

/// Buffers from this size on are mapped (G2).
pub const MAPPED_FROM: usize = pages::HUGE;

/// Smaller buffers are made present by their first use, and small pages so many at a time.
const PRESENT_FROM: usize = 64 << 10;

/// The most that is given back in one step (G3).
pub const PIECE: usize = pages::HUGE;

/// A type that is valid as all zero bytes.
///
/// # Safety
/// Except under loom and shuttle, memory of zero bytes must be a valid value equal to `zeroed()`,
/// and the type must need no drop.
pub unsafe trait Zeroed: Sized {
    /// The value whose bytes are all zero.
    fn zeroed() -> Self;
}

macro_rules! zeroed_atomics {
    ($($ty:ty => $value:expr),+ $(,)?) => { $(
        // SAFETY: natively an atomic has the layout of its integer, and zero is a valid integer; a
        // pair documents that all zero bytes are the pair (0, 0); a line, a quad and tags are
        // arrays of atomics; a six documents that they are an unused one, and a mark is two
        // atomics.
        unsafe impl Zeroed for $ty {
            fn zeroed() -> Self { $value }
        }
    )+ };
}
zeroed_atomics! {
    crate::sync::AtomicU32 => crate::sync::AtomicU32::new(0),
    crate::sync::AtomicU64 => crate::sync::AtomicU64::new(0),
    crate::sync::AtomicUsize => crate::sync::AtomicUsize::new(0),
    crate::sync::AtomicPair => crate::sync::AtomicPair::new(0, 0),
    crate::sync::Line => crate::sync::Line::zeroed(),
    crate::sync::quad::Quad => crate::sync::quad::Quad::zeroed(),
    crate::sync::tags::Tags => crate::sync::tags::Tags::zeroed(),
    crate::sync::six::Six => crate::sync::six::Six::new(),
    crate::sync::six::Mark => crate::sync::six::Mark::new(),
}

/// An owned, zeroed array whose slots are shared by atomic access.
#[derive(Debug)]
pub struct Buffer<T: Zeroed> {
    slots: NonNull<T>,
    len: usize,
    /// Bytes still held; shrinks by `give_back`. 0 for an empty buffer.
    bytes: usize,
    pages: Pages,
}

// SAFETY: a buffer owns its slots like a boxed slice does.
unsafe impl<T: Zeroed + Send> Send for Buffer<T> {}
// SAFETY: shared access to a buffer is shared access to its slots.
unsafe impl<T: Zeroed + Sync> Sync for Buffer<T> {}

impl<T: Zeroed> Buffer<T> {
    /// Allocates `len` zeroed slots (G1, G4).
    pub fn try_new(len: usize, pages: Pages) -> Result<Self, AllocError> {
        let layout = Layout::array::<T>(len).map_err(|_| AllocError::CapacityOverflow)?;
        let bytes = layout.size();
        if bytes == 0 {
            return Ok(Self { slots: NonNull::dangling(), len, bytes, pages });
        }
        let memory = if is_mapped(bytes) {
            pages::map(bytes, pages)
        } else {
            // SAFETY: the layout has a size above zero.
            NonNull::new(unsafe { alloc_zeroed(layout) })
        };
        let slots = memory.ok_or(AllocError::OutOfMemory { bytes })?.cast::<T>();
        if crate::sync::MODEL {
            for index in 0..len {
                // SAFETY: `index` is inside the fresh allocation.
                let place = unsafe { slots.add(index) };
                // SAFETY: the place is valid for writes and not yet shared.
                unsafe { place.write(T::zeroed()) };
            }
        }
        Ok(Self { slots, len, bytes, pages })
    }

    /// [`try_new`](Self::try_new) for a buffer that is about to be filled: what comes from the
    /// global allocator is made present at once, which costs less than page by page.
    pub fn try_new_present(len: usize, pages: Pages) -> Result<Self, AllocError> {
        let buffer = Self::try_new(len, pages)?;
        if pages::AVAILABLE && buffer.bytes >= PRESENT_FROM && !buffer.is_mapping() {
            pages::populate_around(buffer.slots.cast(), buffer.bytes);
        }
        Ok(buffer)
    }

    /// Bytes this buffer holds now.
    pub fn bytes(&self) -> usize {
        if self.is_mapping() { pages::rounded(self.bytes, self.pages) } else { self.bytes }
    }

    /// How many steps make all of its pages present ([`touch`](Self::touch)).
    pub fn touches(&self) -> usize {
        if self.is_mapping() { self.bytes.div_ceil(self.touch_bytes()) } else { 0 }
    }

    /// Makes the pages of one step present ahead of their first use, so that a paced step pays for
    /// it and not an unlucky operation: one huge page, or some small ones. At most a hint: failure
    /// is harmless.
    pub fn touch(&self, step: usize) {
        let from = step * self.touch_bytes();
        if step < self.touches() {
            let to = self.bytes.min(from + self.touch_bytes());
            pages::populate(self.slots.cast(), from, to - from);
        }
    }

    /// Whether it is a mapping of its own (G2), however much of it was given back.
    fn is_mapping(&self) -> bool {
        is_mapped(self.len * size_of::<T>())
    }

    /// What is given back in one step: many small pages take longer than a huge one.
    fn piece(&self) -> usize {
        match self.pages {
            Pages::Huge => PIECE,
            Pages::Small => PIECE / 8,
        }
    }

    fn touch_bytes(&self) -> usize {
        match self.pages {
            Pages::Huge => pages::HUGE,
            Pages::Small => PRESENT_FROM,
        }
    }

    /// Bytes in memory, as far as the system tells.
    #[cfg(test)]
    pub(crate) fn present(&self) -> usize {
        let held = pages::rounded(self.bytes, self.pages);
        if self.is_mapping() { pages::present(self.slots.cast(), held) } else { self.bytes }
    }

    /// Gives back one piece from the end (G3). True when nothing is left.
    ///
    /// # Safety
    /// No reference into the buffer exists and none is made afterwards: only `give_back` and drop
    /// follow.
    pub unsafe fn give_back(&mut self) -> bool {
        if !self.is_mapping() {
            return true;
        }
        let held = pages::rounded(self.bytes, self.pages);
        let rest = held.saturating_sub(1) / self.piece() * self.piece();
        // SAFETY: the mapping spans `held` bytes, `rest` is a multiple of the piece below that,
        // and the caller has no reader left.
        unsafe { pages::unmap(self.slots.cast(), rest, held - rest) };
        self.bytes = rest;
        self.bytes == 0
    }
}

impl<T: Zeroed> Deref for Buffer<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` slots are valid from `try_new` on (G1), until `give_back`, whose caller
        // promises to make no reference any more.
        unsafe { std::slice::from_raw_parts(self.slots.as_ptr(), self.len) }
    }
}

impl<T: Zeroed> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        if crate::sync::MODEL {
            for index in 0..self.len {
                // SAFETY: `index` is inside the allocation.
                let place = unsafe { self.slots.add(index) };
                // SAFETY: the slot was built by `try_new` and is dropped once.
                unsafe { place.drop_in_place() };
            }
        }
        if self.is_mapping() {
            let held = pages::rounded(self.bytes, self.pages);
            // SAFETY: the mapping spans `held` bytes and nobody refers to it any more.
            unsafe { pages::unmap(self.slots.cast(), 0, held) };
        } else if let Ok(layout) = Layout::array::<T>(self.len) {
            // SAFETY: allocated in `try_new` with this layout.
            unsafe { dealloc(self.slots.as_ptr().cast(), layout) };
        }
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;
    use crate::sync::{AtomicU64, Ordering};

    #[test]
    fn small_and_large_buffers_are_zero_and_writable() {
        for pages in [Pages::Huge, Pages::Small] {
            for len in [0, 1, 1000, MAPPED_FROM / 8, MAPPED_FROM / 8 * 3 + 5] {
                let buffer = Buffer::<AtomicU64>::try_new(len, pages).unwrap();
                assert_eq!(buffer.len(), len);
                assert!(buffer.iter().all(|slot| slot.load(Ordering::Relaxed) == 0));
                buffer.iter().for_each(|slot| slot.store(7, Ordering::Relaxed));
                assert!(buffer.bytes() >= len * 8);
            }
        }
    }

    #[test]
    fn large_buffers_are_aligned_to_huge_pages() {
        let buffer = Buffer::<AtomicU64>::try_new(MAPPED_FROM / 8, Pages::Huge).unwrap();
        if pages::AVAILABLE {
            assert_eq!(buffer.as_ptr().addr() % MAPPED_FROM, 0);
        }
    }

    #[test]
    fn an_absurd_size_is_an_error_value() {
        let overflow = Buffer::<AtomicU64>::try_new(usize::MAX / 4, Pages::Huge);
        assert_eq!(overflow.err(), Some(AllocError::CapacityOverflow));
        for pages in [Pages::Huge, Pages::Small] {
            let refused = Buffer::<AtomicU64>::try_new((isize::MAX as usize - 64) / 8, pages);
            assert!(matches!(refused.err(), Some(AllocError::OutOfMemory { .. })));
        }
    }

    #[test]
    fn given_back_in_pieces_from_the_end() {
        for pages in [Pages::Huge, Pages::Small] {
            let len = PIECE / 8 * 3 + 100;
            let mut buffer = Buffer::<AtomicU64>::try_new(len, pages).unwrap();
            (0..buffer.touches()).for_each(|step| buffer.touch(step));
            assert!(buffer.present() >= len * 8);
            buffer.iter().for_each(|slot| slot.store(1, Ordering::Relaxed));
            let mut steps = 1;
            // SAFETY: no reference into the buffer is alive.
            while !unsafe { buffer.give_back() } {
                steps += 1;
                assert!(buffer.bytes() <= len * 8 - (steps - 2) * buffer.piece());
            }
            let pieces = (len * 8).div_ceil(buffer.piece());
            assert_eq!(steps, if pages::AVAILABLE { pieces } else { 1 });
        }
    }

    #[test]
    fn half_given_back_and_dropped() {
        let mut buffer = Buffer::<AtomicU64>::try_new(PIECE / 8 * 4, Pages::Huge).unwrap();
        // SAFETY: no reference into the buffer is alive.
        let done = unsafe { buffer.give_back() };
        assert_eq!(done, !pages::AVAILABLE);
    }
}
