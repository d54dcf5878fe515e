//! The ways into a set: a chain of small tables for all segments, and a row of links, one for the
//! chain of each segment.
//!
//! ```text
//!   row ──▶ NOWHERE: every link is empty                 row ──▶ [ link of segment 0 | link of segment 1 | ... ]
//!   small ──▶ T                                                     │                    └─ empty: still in T
//!                                                         small ──▶ T ──next──▶ D        └──▶ the segment's own table
//! ```
//!
//! **N1.** `row` leads to [`NOWHERE`], whose links stay empty, or to the row: as many links as
//! there are segments, in one box that is made once and stays until the set drops. So whoever looks
//! for a segment's table looks up one link, without asking first whether there is a row.
//! **N2.** A segment whose link is empty is in the chain of small tables, if there is one. Its link
//! is set once, from empty (`link` M13).

use super::table::Table;
use crate::migrate::Link;
use crate::sync::{AtomicPtr, Ordering};
use std::ptr;

/// The most segments that a set has.
pub(super) const MOST: usize = 256;

/// The row of all sets that have none of their own (N1).
#[cfg(not(any(quintet_loom, quintet_shuttle)))]
// SAFETY: it never leads anywhere.
static NOWHERE: [Link<Table>; MOST] = [const { unsafe { Link::empty() } }; MOST];

/// Both ways in.
#[derive(Debug)]
pub(super) struct Roots {
    row: AtomicPtr<Link<Table>>,
    len: usize,
    small: Link<Table>,
    /// Model checkers have no constants.
    #[cfg(any(quintet_loom, quintet_shuttle))]
    nowhere: Box<[Link<Table>]>,
}

/// Links that lead nowhere yet.
fn empty_row(len: usize) -> Box<[Link<Table>]> {
    // SAFETY: only sections of the set's domain lead here, and all that they find is used inside of
    // them (`link` M12).
    (0..len).map(|_| unsafe { Link::empty() }).collect()
}

impl Roots {
    /// For so many segments, without a row.
    pub(super) fn new(len: usize) -> Self {
        debug_assert!(len <= MOST);
        #[cfg(any(quintet_loom, quintet_shuttle))]
        let nowhere = empty_row(len);
        #[cfg(not(any(quintet_loom, quintet_shuttle)))]
        let nowhere = &NOWHERE;
        Self {
            row: AtomicPtr::new(nowhere.as_ptr().cast_mut()),
            len,
            // SAFETY: as for a row.
            small: unsafe { Link::empty() },
            #[cfg(any(quintet_loom, quintet_shuttle))]
            nowhere,
        }
    }

    /// Segments. Also the number by which the chain of small tables goes where segments have
    /// numbers.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn nowhere(&self) -> *mut Link<Table> {
        #[cfg(any(quintet_loom, quintet_shuttle))]
        let nowhere = &self.nowhere;
        #[cfg(not(any(quintet_loom, quintet_shuttle)))]
        let nowhere = &NOWHERE;
        nowhere.as_ptr().cast_mut()
    }

    /// The chain of small tables.
    #[inline(always)]
    pub(super) fn small(&self) -> &Link<Table> {
        &self.small
    }

    /// The link of a segment, to be followed and not to be set (N1).
    #[inline(always)]
    pub(super) fn link(&self, segment: usize) -> &Link<Table> {
        debug_assert!(segment < self.len);
        // ORDERING: Acquire: partner is `make_row`.
        let first = self.row.load(Ordering::Acquire);
        // SAFETY: as many links as there are segments, or more, lie there for as long as the set
        // lives (N1).
        unsafe { &*first.wrapping_add(segment) }
    }

    /// The row, if there is one.
    pub(super) fn row(&self) -> Option<&[Link<Table>]> {
        // ORDERING: Acquire: partner is `make_row`.
        let first = self.row.load(Ordering::Acquire);
        // SAFETY: not NOWHERE: so many links in one box, which stays (N1).
        (first != self.nowhere()).then(|| unsafe { std::slice::from_raw_parts(first, self.len) })
    }

    /// The row, made now if not before.
    pub(super) fn make_row(&self) -> &[Link<Table>] {
        if self.row().is_none() {
            let made = Box::into_raw(empty_row(self.len));
            // ORDERING: Release: publishes the links; partners: `link`, `row`. Failure: nothing is
            // learnt here.
            let set = self.row.compare_exchange(
                self.nowhere(),
                made.cast(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if set.is_err() {
                // SAFETY: out of the box above, and nobody has seen it.
                drop(unsafe { Box::from_raw(made) });
            }
        }
        self.row().expect("a row stays (N1)")
    }
}

impl Drop for Roots {
    fn drop(&mut self) {
        // SAFETY: alone; each table of the chain is behind one link, and what has left it belongs
        // to the domain.
        unsafe { self.small.drop_chain(Table::next_mut) };
        // ORDERING: Relaxed: alone.
        let first = self.row.load(Ordering::Relaxed);
        if first == self.nowhere() {
            return;
        }
        // SAFETY: not NOWHERE: out of one box of that length (N1), and nobody else is here.
        let mut row = unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(first, self.len)) };
        for root in &mut row {
            // SAFETY: as above.
            unsafe { root.drop_chain(Table::next_mut) };
        }
    }
}
