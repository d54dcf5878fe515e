//! An allocator that shreds: fresh and freed memory is filled with a pattern, and freed blocks are
//! held back for a while and inspected before they leave.
//!
//! A read after free then sees [`FREED`] bytes instead of plausible data, and a write after free
//! ends the process. Live bytes are counted, so that leaks and churn can be asserted.
//!
//! ```
//! use quintet_testkit::alloc::Shredder;
//!
//! #[global_allocator]
//! static ALLOCATOR: Shredder = Shredder::new();
//!
//! let before = ALLOCATOR.live_bytes();
//! let kept = vec![1u8; 100_000];
//! assert!(ALLOCATOR.live_bytes() >= before + 100_000);
//! # drop(kept);
//! ```
#![allow(unsafe_code)] // an allocator hands out raw memory

mod quarantine;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use quarantine::{Block, Quarantine};

/// What freed memory is filled with. As a pointer it is not canonical, as an index out of range.
pub const FREED: u8 = 0xdb;

/// What fresh memory is filled with.
pub const FRESH: u8 = 0xa5;

/// The shredding allocator, on top of the system's.
#[derive(Debug)]
pub struct Shredder {
    live_bytes: AtomicUsize,
    live_blocks: AtomicUsize,
    quarantine: Quarantine,
}

impl Default for Shredder {
    fn default() -> Self {
        Self::new()
    }
}

impl Shredder {
    /// For `#[global_allocator] static`.
    pub const fn new() -> Self {
        Self {
            live_bytes: AtomicUsize::new(0),
            live_blocks: AtomicUsize::new(0),
            quarantine: Quarantine::new(),
        }
    }

    /// Bytes allocated and not freed.
    pub fn live_bytes(&self) -> usize {
        // ORDERING: a figure; exact when other threads are quiet.
        self.live_bytes.load(Ordering::Relaxed)
    }

    /// Blocks allocated and not freed.
    pub fn live_blocks(&self) -> usize {
        // ORDERING: a figure; exact when other threads are quiet.
        self.live_blocks.load(Ordering::Relaxed)
    }

    fn count(&self, block: *mut u8, layout: Layout) {
        if !block.is_null() {
            // ORDERING: figures only.
            self.live_bytes.fetch_add(layout.size(), Ordering::Relaxed);
            self.live_blocks.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// SAFETY: all memory comes from and returns to `System` with its own layout; the patterns are
// written only while a block is nobody's: before it is handed out and after it is given back.
unsafe impl GlobalAlloc for Shredder {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller promises a layout of non-zero size.
        let block = unsafe { System.alloc(layout) };
        self.count(block, layout);
        if !block.is_null() {
            // SAFETY: the block is `layout.size()` bytes long and still ours.
            unsafe { block.write_bytes(FRESH, layout.size()) };
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller promises a layout of non-zero size.
        let block = unsafe { System.alloc_zeroed(layout) };
        self.count(block, layout);
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // ORDERING: figures only.
        self.live_bytes.fetch_sub(layout.size(), Ordering::Relaxed);
        self.live_blocks.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the caller gives back a block of this layout, which is ours again.
        unsafe { block.write_bytes(FREED, layout.size()) };
        if let Some(leaving) = self.quarantine.exchange(Block::new(block, layout)) {
            leaving.inspect();
            let (block, layout) = leaving.into_parts();
            // SAFETY: it was given back with this layout and has been ours since.
            unsafe { System.dealloc(block, layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(block: *const u8) -> u8 {
        // SAFETY: the tests read only blocks that are allocated or held in quarantine.
        unsafe { block.read_volatile() }
    }

    fn alloc(shredder: &Shredder, layout: Layout) -> *mut u8 {
        // SAFETY: the tests use layouts of non-zero size.
        unsafe { shredder.alloc(layout) }
    }

    fn dealloc(shredder: &Shredder, block: *mut u8, layout: Layout) {
        // SAFETY: the tests give back once what they got from `alloc` with this layout.
        unsafe { shredder.dealloc(block, layout) }
    }

    #[test]
    fn fresh_and_freed_memory_shows_its_pattern() {
        let shredder = Shredder::new();
        let layout = Layout::from_size_align(64, 8).unwrap();
        let block = alloc(&shredder, layout);
        assert_eq!((read(block), read(block.wrapping_add(63))), (FRESH, FRESH));
        dealloc(&shredder, block, layout);
        assert_eq!((read(block), read(block.wrapping_add(63))), (FREED, FREED));
    }

    #[test]
    fn zeroed_memory_is_zero() {
        let shredder = Shredder::new();
        let layout = Layout::from_size_align(64, 8).unwrap();
        // SAFETY: the layout's size is not zero.
        let block = unsafe { shredder.alloc_zeroed(layout) };
        assert_eq!((read(block), read(block.wrapping_add(63))), (0, 0));
        dealloc(&shredder, block, layout);
    }

    #[test]
    fn counts_what_is_live() {
        let shredder = Shredder::new();
        let layouts = [(100, 1), (5_000, 64), (1 << 20, 4_096)]
            .map(|(size, align)| Layout::from_size_align(size, align).unwrap());
        let blocks = layouts.map(|layout| alloc(&shredder, layout));
        let bytes: usize = layouts.iter().map(Layout::size).sum();
        assert_eq!((shredder.live_bytes(), shredder.live_blocks()), (bytes, 3));
        for (block, layout) in blocks.into_iter().zip(layouts) {
            assert_eq!(block.addr() % layout.align(), 0);
            dealloc(&shredder, block, layout);
        }
        assert_eq!((shredder.live_bytes(), shredder.live_blocks()), (0, 0));
    }

    #[test]
    fn a_freed_block_is_not_handed_out_again_at_once() {
        let shredder = Shredder::new();
        let layout = Layout::from_size_align(48, 8).unwrap();
        let first = alloc(&shredder, layout);
        dealloc(&shredder, first, layout);
        for _ in 0..100 {
            let next = alloc(&shredder, layout);
            assert_ne!(next, first);
            dealloc(&shredder, next, layout);
        }
    }

    #[test]
    fn many_threads_share_it() {
        let shredder = Shredder::new();
        let layout = Layout::from_size_align(32, 8).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let block = alloc(&shredder, layout);
                        dealloc(&shredder, block, layout);
                    }
                });
            }
        });
        assert_eq!(shredder.live_blocks(), 0);
    }
}
