//! Freed blocks are held back here for a while, so that a late access hits the pattern.
#![allow(unsafe_code)] // holds raw memory

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::FREED;

/// How many blocks are held back.
const SLOTS: usize = 1_024;

/// Larger blocks leave at once.
const LARGEST: usize = 4_096;

/// A freed block that is filled with [`FREED`].
#[derive(Debug)]
pub(super) struct Block {
    start: *mut u8,
    layout: Layout,
}

/// A ring of blocks; each slot has a lock of one bit, since an allocator cannot wait for std.
#[derive(Debug)]
pub(super) struct Quarantine {
    next: AtomicUsize,
    slots: [Slot; SLOTS],
}

#[derive(Debug)]
struct Slot {
    busy: AtomicBool,
    block: UnsafeCell<Option<Block>>,
}

// SAFETY: a slot's block is touched only by whoever set `busy`; blocks are plain memory that any
// thread may free.
unsafe impl Sync for Slot {}

impl Block {
    pub(super) fn new(start: *mut u8, layout: Layout) -> Self {
        Self { start, layout }
    }

    pub(super) fn into_parts(self) -> (*mut u8, Layout) {
        (self.start, self.layout)
    }

    /// Ends the process if somebody wrote to the block after it was freed.
    pub(super) fn inspect(&self) {
        if let Some(at) = self.first_change() {
            eprintln!("byte {at} of a freed block of {} was written", self.layout.size());
            std::process::abort();
        }
    }

    pub(super) fn first_change(&self) -> Option<usize> {
        // SAFETY: the block is `size` initialized bytes long and in nobody else's hands; a write by
        // a faulty program is what is looked for.
        let bytes = unsafe { std::slice::from_raw_parts(self.start, self.layout.size()) };
        bytes.iter().position(|&byte| byte != FREED)
    }
}

impl Quarantine {
    #[allow(clippy::declare_interior_mutable_const)] // the seed of an array
    pub(super) const fn new() -> Self {
        const EMPTY: Slot = Slot { busy: AtomicBool::new(false), block: UnsafeCell::new(None) };
        Self { next: AtomicUsize::new(0), slots: [EMPTY; SLOTS] }
    }

    /// Takes a block in and hands another one out, or the same if it is too large.
    pub(super) fn exchange(&self, block: Block) -> Option<Block> {
        if block.layout.size() > LARGEST {
            return Some(block);
        }
        // ORDERING: spreads the callers over the slots, hands over nothing.
        let slot = &self.slots[self.next.fetch_add(1, Ordering::Relaxed) % SLOTS];
        // ORDERING: Acquire, to see the slot as its last holder left it; partner is the store.
        while slot.busy.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        // SAFETY: `busy` was free and is ours, so nobody else touches the block.
        let held = unsafe { &mut *slot.block.get() };
        let leaving = held.replace(block);
        // ORDERING: hands the slot to the next holder; partner is the swap.
        slot.busy.store(false, Ordering::Release);
        leaving
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_after_free_is_seen() {
        let mut memory = [FREED; 64];
        let layout = Layout::from_size_align(64, 1).unwrap();
        assert_eq!(Block::new(memory.as_mut_ptr(), layout).first_change(), None);
        memory[17] = 0;
        assert_eq!(Block::new(memory.as_mut_ptr(), layout).first_change(), Some(17));
    }
}
