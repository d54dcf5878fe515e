//! Where the copies lie: from 2 MiB on in mappings of their own, with huge pages if wished.

use crate::region::{self, Pages};
use allocator_api2::alloc::{AllocError, Allocator, Global};
use std::alloc::Layout;
use std::ptr::NonNull;

/// An allocator that maps large pieces.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PageAlloc(pub(super) Pages);

/// What mappings are aligned to. What needs more comes from the global allocator, which grants any
/// alignment.
const ALIGNED: usize = 2 << 20;

/// True if a piece is a mapping of its own.
fn is_mapped(layout: Layout) -> bool {
    layout.align() <= ALIGNED && region::is_mapped(layout.size())
}

// SAFETY: a piece is either the global allocator's or a mapping of its own, told apart by its
// layout alone, so that every clone can free it; both stay where they are, and are aligned as the
// layout asks.
unsafe impl Allocator for PageAlloc {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if is_mapped(layout) {
            let start = region::map(layout.size(), self.0).ok_or(AllocError)?;
            return Ok(NonNull::slice_from_raw_parts(start, layout.size()));
        }
        Global.allocate(layout)
    }

    unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
        if is_mapped(layout) {
            // SAFETY: `allocate` mapped this many bytes there with the same pages.
            unsafe { region::unmap(start, layout.size(), self.0) };
        } else {
            // SAFETY: the caller's promise, for a piece of the global allocator.
            unsafe { Global.deallocate(start, layout) };
        }
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_pieces_come_and_go() {
        for pages in [Pages::Huge, Pages::Small] {
            for size in [16, 4096, (2 << 20) - 16, 2 << 20, (5 << 20) + 48] {
                let alloc = PageAlloc(pages);
                let layout = Layout::from_size_align(size, 16).unwrap();
                let piece = alloc.allocate(layout).unwrap().cast::<u8>();
                assert_eq!(piece.addr().get() % 16, 0);
                // SAFETY: the piece has this many bytes.
                unsafe { piece.write_bytes(7, size) };
                // SAFETY: allocated above.
                unsafe { alloc.deallocate(piece, layout) };
            }
        }
    }
}
