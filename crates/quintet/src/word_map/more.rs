//! More lines behind a table, for keys that find no lane within reach of their home.
//!
//! A table with a sound hash never needs them: only a copy that meets a run longer than the reach,
//! keys that were made to collide under two seeds, and the smallest tables end here.
//!
//! **WL9.5.** Behind the last line of its reach a probe goes to the *link*: nothing there is EMPTY,
//! a mark is CLOSED, else it leads to a block of lines, which end in a link. The link is a lane
//! like any other, which no key ever equals: it is written once, an insert or a copy at EMPTY puts
//! a block there, and a mover closes it or walks the block. So a copy always finds room.
//! **WL9.6.** A block stays for as long as its table.

use super::word::{CLOSED, EMPTY};
use crate::region::AllocError;
use crate::sync::quad::{LANES, Quad};
use crate::sync::{AtomicPtr, AtomicU64, MODEL, Ordering};
use std::alloc::{Layout, alloc};
use std::fmt;
use std::ptr::{self, null_mut};

/// Lines of a block.
const LINES: usize = if MODEL { 1 } else { 8 };

/// The end of a table, or of a block.
pub(crate) struct More(AtomicPtr<Block>);

/// Some lines, and their own cells (`cells` WL13).
pub(crate) struct Block {
    lines: [Quad; LINES],
    own: [[AtomicU64; LANES]; LINES],
    more: More,
}

/// What a link is.
pub(crate) enum End<'t> {
    Empty,
    Closed,
    Block(&'t Block),
}

/// The link that says CLOSED. Never followed.
fn closed() -> *mut Block {
    ptr::without_provenance_mut(CLOSED as usize)
}

impl fmt::Debug for More {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("More").field(&self.blocks().count()).finish()
    }
}

impl More {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(ptr::without_provenance_mut(EMPTY as usize)))
    }

    pub(crate) fn end(&self) -> End<'_> {
        // ORDERING: Acquire: partners are the exchanges of `extend` and `close`: the block, and the
        // successor.
        let block = self.0.load(Ordering::Acquire);
        if block.is_null() {
            End::Empty
        } else if block == closed() {
            End::Closed
        } else {
            // SAFETY: out of a box, and not freed before the table is (`moving` WL9.6).
            End::Block(unsafe { &*block })
        }
    }

    /// Puts a block behind an EMPTY link. Somebody else may have done so, or have closed it: look
    /// again.
    pub(crate) fn extend(&self) -> Result<(), AllocError> {
        let layout = Layout::new::<Block>();
        #[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
        if tests::REFUSED.get() {
            return Err(AllocError::OutOfMemory { bytes: layout.size() });
        }
        // SAFETY: the layout has a size above zero.
        let block = unsafe { alloc(layout) }.cast::<Block>();
        if block.is_null() {
            return Err(AllocError::OutOfMemory { bytes: layout.size() });
        }
        // SAFETY: fresh, of the right size and alignment.
        unsafe { block.write(Block::new()) };
        if !self.exchange(block) {
            // SAFETY: as a box would have made it, and nobody has seen it.
            drop(unsafe { Box::from_raw(block) });
        }
        Ok(())
    }

    /// Closes an EMPTY link. False: it was not EMPTY.
    pub(crate) fn close(&self) -> bool {
        self.exchange(closed())
    }

    fn exchange(&self, to: *mut Block) -> bool {
        // ORDERING: Release: publishes the block, or that there is a successor; partner: `end`.
        // Failure: nothing is learnt.
        self.0.compare_exchange(null_mut(), to, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// The blocks from here on.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &Block> {
        std::iter::successors(self.block(), |before| before.more.block())
    }

    fn block(&self) -> Option<&Block> {
        match self.end() {
            End::Block(block) => Some(block),
            End::Empty | End::Closed => None,
        }
    }
}

impl Block {
    fn new() -> Self {
        Self {
            lines: std::array::from_fn(|_| Quad::zeroed()),
            own: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
            more: More::new(),
        }
    }

    /// Each line with the own cells of its lanes.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&Quad, &[AtomicU64; LANES])> {
        self.lines.iter().zip(&self.own)
    }

    pub(crate) fn more(&self) -> &More {
        &self.more
    }
}

impl Drop for More {
    fn drop(&mut self) {
        // One after the other: a long chain must not need a deep stack.
        // ORDERING: Relaxed: alone, here and below.
        let mut block = self.0.load(Ordering::Relaxed);
        while !block.is_null() && block != closed() {
            // SAFETY: as a box would have made it, and freed once, here.
            let last = unsafe { Box::from_raw(block) };
            block = last.more.0.load(Ordering::Relaxed);
            last.more.0.store(null_mut(), Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
pub(super) mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        /// No memory for blocks on this thread.
        pub(in super::super) static REFUSED: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn a_link_is_written_once() {
        let link = More::new();
        assert!(matches!(link.end(), End::Empty));
        link.extend().unwrap();
        link.extend().unwrap();
        assert_eq!(link.blocks().count(), 1);
        assert!(!link.close());
        let block = link.blocks().next().unwrap();
        assert!(block.more().close());
        block.more().extend().unwrap();
        assert!(matches!(block.more().end(), End::Closed));
    }

    #[test]
    fn a_long_chain_is_dropped_without_a_deep_stack() {
        let link = More::new();
        let mut last = &link;
        for _ in 0..100_000 {
            last.extend().unwrap();
            last = last.blocks().next().unwrap().more();
        }
        assert_eq!(link.blocks().count(), 100_000);
    }
}
