//! A mapping that is given back bit by bit.
//!
//! **V1.** Every byte is zero until it is written, and zero again after its page was given back.
//! **V2.** Pages are given back only by [`Mapping::give_back`] and by the drop.

use super::{Pages, pages};
use std::ops::Range;
use std::ptr::NonNull;

/// A zeroed mapping, aligned to 2 MiB. Pages become present when they are first touched.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    pages: Pages,
}

// SAFETY: a mapping owns its memory; whoever hands out parts of it says who may do what with them.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// A mapping of so many bytes, or nothing.
    pub(crate) fn try_new(bytes: usize, pages: Pages) -> Option<Self> {
        Some(Self { start: pages::map(bytes, pages)?, bytes, pages })
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Makes a range present ahead of its use. At most a hint.
    pub(crate) fn populate(&self, offset: usize, bytes: usize) {
        if bytes > 0 && offset + bytes <= self.bytes {
            pages::populate(self.start, offset, bytes);
        }
    }

    /// Gives back the pages that touch `part` and lie in `unused` as a whole (V1).
    ///
    /// # Safety
    /// Nobody refers to memory in `unused`.
    pub(crate) unsafe fn give_back(&self, part: Range<usize>, unused: Range<usize>) {
        let page = pages::rounded(1, self.pages);
        // The page at the end of the mapping ends where nothing follows.
        let end =
            if unused.end == self.bytes { unused.end.next_multiple_of(page) } else { unused.end };
        let from = (part.start / page * page).max(unused.start.next_multiple_of(page));
        let to = part.end.next_multiple_of(page).min(end / page * page);
        if from < to {
            // SAFETY: whole pages of this mapping, to which nobody refers.
            unsafe { pages::clear(self.start, from, to - from) };
        }
    }

    /// Bytes in memory, as far as the system tells: for tests.
    #[cfg(test)]
    pub(crate) fn present(&self) -> usize {
        pages::present(self.start, pages::rounded(self.bytes, self.pages))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made by `map` for this size, and nobody refers to it any more.
        unsafe { pages::unmap(self.start, 0, pages::rounded(self.bytes, self.pages)) };
    }
}
