//! The cells of one table, for special values (`word` WL3).
//!
//! **WL13.** A special value lies in a cell, and the slot's value word says in which.
//! 1. *Cells by number.* A writer takes cell i from a counter, at most one per operation and table.
//!    It stores the value, then exchanges the value word to ESC + i. If that fails it may store
//!    another value there: nobody has seen the cell. If it ends without success the cell is lost.
//! 2. *Own cells.* A copy takes none of these. Every slot has an own cell; whoever copies into the
//!    slot stores the same value there, since a slot is frozen once.
//! 3. *Reading.* The value word, then the cell. No second look is needed: a cell that was
//!    published, and an own cell once the word has been OWN, hold one value for the table's life.
//! 4. *No ABA.* A cell is published at most once, and OWN comes from VIRGIN only.
//! 5. *How many.* There are as many numbered cells as the table has slots, twice as many as there
//!    are seats, and 64, whichever is most. So at most half of them are in the hands of operations
//!    under way, and a migration for want of cells is paid for by as many operations as it moves
//!    slots, or half of that.
//! 6. *Memory.* All cells of a table are one array, made when the first special value comes. Large
//!    ones are mapped, and take memory where they are touched. Whoever freezes a special value has
//!    made those of the successor first, so that copies never fail.

use crate::region::heap::Buffer;
use crate::region::{AllocError, Pages};
use crate::sync::{AtomicPtr, AtomicU64, AtomicUsize, MODEL, Ordering};
use std::fmt;
use std::ptr;

/// The fewest numbered cells.
const FEWEST: usize = if MODEL { 4 } else { 64 };
/// The most: their numbers lie between ESC and PLAIN.
const MOST: usize = 1 << 30;

/// The cells of a table: none until they are needed.
pub(crate) struct Cells(AtomicPtr<Made>);

struct Made {
    /// Numbered cells, then the own cells of the slots.
    all: Buffer<AtomicU64>,
    numbered: usize,
    /// Numbered cells taken so far. May run past the end.
    taken: AtomicUsize,
}

impl fmt::Debug for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cells").field(&self.made().is_some()).finish()
    }
}

impl Cells {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    #[inline(always)]
    fn made(&self) -> Option<&Made> {
        // ORDERING: Acquire: partner is the exchange in `make`.
        let made = self.0.load(Ordering::Acquire);
        // SAFETY: out of a box, and freed by the drop alone.
        unsafe { made.as_ref() }
    }

    /// Sees to it that there are cells, for a table of `slots` slots in a map with `seats` seats
    /// (5, 6).
    pub(crate) fn make(&self, slots: usize, seats: usize) -> Result<(), AllocError> {
        if self.made().is_some() {
            return Ok(());
        }
        let numbered = if MODEL { 0 } else { slots }.max(2 * seats).clamp(FEWEST, MOST);
        // Small pages: a few cells of many are used.
        let all = Buffer::try_new(numbered + slots, Pages::Small)?;
        let made = Box::into_raw(Box::new(Made { all, numbered, taken: AtomicUsize::new(0) }));
        // ORDERING: Release: publishes the cells; partner: `made`. Failure: nothing is learnt.
        let set =
            self.0.compare_exchange(ptr::null_mut(), made, Ordering::Release, Ordering::Relaxed);
        if set.is_err() {
            // SAFETY: out of the box above, and nobody has seen it.
            drop(unsafe { Box::from_raw(made) });
        }
        Ok(())
    }

    /// Takes a numbered cell (1). `None`: all are taken. The cells are made.
    pub(crate) fn take(&self) -> Option<usize> {
        let made = self.made()?;
        // ORDERING: Relaxed: only deals out numbers. The load keeps the counter from running away.
        if made.taken.load(Ordering::Relaxed) >= made.numbered {
            return None;
        }
        let cell = made.taken.fetch_add(1, Ordering::Relaxed);
        (cell < made.numbered).then_some(cell)
    }

    /// A numbered cell that was taken. Only of cells that are made.
    pub(crate) fn numbered(&self, cell: usize) -> &AtomicU64 {
        let made = self.made().expect("a number comes from cells");
        &made.all[..made.numbered][cell]
    }

    /// The own cell of a slot. Only of cells that are made.
    pub(crate) fn own(&self, slot: usize) -> &AtomicU64 {
        let made = self.made().expect("made before the freeze");
        &made.all[made.numbered..][slot]
    }

    /// Bytes of cells that are in use, or may be.
    pub(crate) fn bytes(&self) -> usize {
        self.made().map_or(0, |made| made.all.bytes())
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        // ORDERING: Relaxed: alone.
        let made = self.0.load(Ordering::Relaxed);
        if !made.is_null() {
            // SAFETY: out of a box, and freed once, here.
            drop(unsafe { Box::from_raw(made) });
        }
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn cells_are_dealt_out_once_and_then_no_more() {
        let cells = Cells::new();
        assert_eq!((cells.take(), cells.bytes()), (None, 0));
        cells.make(16, 1).unwrap();
        cells.make(16, 1000).unwrap();
        for number in 0..FEWEST {
            assert_eq!(cells.take(), Some(number));
        }
        assert_eq!((cells.take(), cells.take()), (None, None));
        assert_eq!(cells.bytes(), (FEWEST + 16) * 8);
    }

    #[test]
    fn own_cells_are_no_numbered_ones() {
        let cells = Cells::new();
        cells.make(200, 3).unwrap();
        let place = |cell: &AtomicU64| ptr::from_ref(cell).addr();
        assert_eq!(place(cells.own(0)), place(cells.numbered(199)) + 8);
        cells.own(199).store(7, Ordering::Relaxed);
        assert_eq!(cells.own(199).load(Ordering::Relaxed), 7);
    }

    #[test]
    fn many_seats_have_many_cells() {
        let cells = Cells::new();
        cells.make(16, 500).unwrap();
        assert_eq!(std::iter::from_fn(|| cells.take()).count(), 1000);
    }
}
