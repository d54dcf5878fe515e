//! Where a handle writes its records, and counts them.

use super::arena::Extent;
use crate::sync::{AtomicU64, Ordering};
use std::cell::{Cell, OnceCell};
use std::ptr;

/// A handle's place in the arenas and in the books. Stays in the roster when its owner leaves, and
/// the next owner goes on.
#[derive(Debug)]
pub(crate) struct Desk {
    /// Records inserted by the owners of this desk: one writer, read by everybody.
    inserted: AtomicU64,
    pub(super) place: Cell<*mut u8>,
    pub(super) next_id: Cell<u64>,
    /// The first id that is not the desk's.
    pub(super) end_id: Cell<u64>,
    pub(super) slices: Cell<u64>,
    pub(super) granules: Cell<u64>,
    /// What is left of the last extent that no table has left.
    pub(super) aside: Cell<Extent>,
    /// Inserts into small tables that none has been told of; fewer than the largest batch.
    small: Cell<u8>,
    /// The same per segment, made with the first insert into one.
    pending: OnceCell<Box<[Cell<u8>]>>,
}

// SAFETY: the cells belong to the owner of the desk, of which there is one at a time; a roster
// hands them over in order.
unsafe impl Sync for Desk {}
// SAFETY: the pointer leads into an extent, which any thread may use by `arena` R2.
unsafe impl Send for Desk {}

impl Desk {
    pub(crate) fn new() -> Self {
        Self {
            inserted: AtomicU64::new(0),
            place: Cell::new(ptr::null_mut()),
            next_id: Cell::new(0),
            end_id: Cell::new(0),
            slices: Cell::new(0),
            granules: Cell::new(0),
            aside: Cell::default(),
            small: Cell::new(0),
            pending: OnceCell::new(),
        }
    }

    #[inline(always)]
    pub(crate) fn count_insert(&self) {
        // ORDERING: Relaxed: a statistic with one writer.
        self.inserted.store(self.inserted.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// The inserts into one of so many segments that no table has been told of.
    #[inline(always)]
    pub(crate) fn pending(&self, segment: usize, segments: usize) -> &Cell<u8> {
        let pending = match self.pending.get() {
            Some(pending) => pending,
            None => self.make_pending(segments),
        };
        debug_assert!(segment < pending.len());
        // SAFETY: a segment is a number of `segment_bits` bits, and there are so many counters.
        unsafe { pending.get_unchecked(segment) }
    }

    #[cold]
    fn make_pending(&self, segments: usize) -> &[Cell<u8>] {
        self.pending.get_or_init(|| (0..segments).map(|_| Cell::new(0)).collect())
    }

    /// The inserts into small tables that none has been told of.
    pub(crate) fn small(&self) -> &Cell<u8> {
        &self.small
    }

    pub(crate) fn inserted(&self) -> u64 {
        // ORDERING: Relaxed, as above.
        self.inserted.load(Ordering::Relaxed)
    }
}
