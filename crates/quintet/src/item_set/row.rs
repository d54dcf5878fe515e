//! A line of a table, with the marks of its places.

use super::table::Raw;
use super::word::{Birth, EMPTY, tag_of};
use crate::sync::Ordering;
use crate::sync::prefetch::prefetch_write;
use crate::sync::six::{LANES, Lanes, Mark, NO_TAG, Six};

/// A line, and the marks of its places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'t> {
    line: &'t Six,
    marks: &'t [Mark; LANES],
}

impl<'t> Row<'t> {
    #[inline(always)]
    pub(super) const fn new(line: &'t Six, marks: &'t [Mark; LANES]) -> Self {
        Self { line, marks }
    }

    #[inline(always)]
    pub(super) const fn line(self) -> &'t Six {
        self.line
    }

    /// The mark of the first of some lanes.
    #[inline(always)]
    pub(super) fn mark(self, lanes: Lanes) -> &'t Mark {
        lanes.first_of(self.marks)
    }

    /// Closes the places of a line that were ever used and are `ours`, and shows the hash, the item
    /// and the birth of each. The item may be null. The caller holds the lock of their shard, or is
    /// alone.
    #[inline(always)]
    pub(super) fn close<E>(
        self,
        ours: impl Fn(u32) -> bool,
        mut show: impl FnMut(u32, Raw, Birth) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut lanes = self.line.used();
        while !lanes.is_empty() {
            let mark = self.mark(lanes);
            // ORDERING: Relaxed: who asks for hashes holds the lock of their shard, or is alone
            // (`table` T3): a place that another shard is just claiming has none yet, or a foreign
            // one.
            let hash = mark.hash.load(Ordering::Relaxed);
            if hash != EMPTY && ours(hash) {
                let item = self.line.first_item(lanes).close();
                // ORDERING: Relaxed: `close` came first (`table` T6).
                show(hash, item, Birth::from_bits(mark.birth.load(Ordering::Relaxed)))?;
            }
            lanes = lanes.rest();
        }
        Ok(())
    }

    /// Asks the cache for both, which will be written.
    #[inline(always)]
    pub(super) fn prefetch_to_write(self) {
        prefetch_write(self.line);
        prefetch_write(self.marks);
    }

    /// Claims the first of some unused lanes. The caller holds the lock of the line's shard and of
    /// the hash's (`table` T1, T3).
    #[inline(always)]
    pub(super) fn claim(self, hash: u32, lanes: Lanes) {
        let tag = self.line.first_tag(lanes);
        // ORDERING: Relaxed: one writer at a time (`table` T3); a tag hands over nothing, what is
        // in its place is published by `fill`.
        debug_assert_eq!(tag.load(Ordering::Relaxed), NO_TAG);
        tag.store(tag_of(hash), Ordering::Relaxed);
        // ORDERING: Relaxed: asked for under the lock of its own shard, which is held here.
        self.mark(lanes).hash.store(hash, Ordering::Relaxed);
    }

    /// Puts an item into the first of some lanes, where none is. The caller holds the lock of its
    /// shard (`table` T8).
    #[inline(always)]
    pub(super) fn fill(self, lanes: Lanes, item: Raw, birth: Birth) {
        // ORDERING: Relaxed (`table` T6).
        self.mark(lanes).birth.store(birth.bits(), Ordering::Relaxed);
        self.line.first_item(lanes).put(item);
    }
}
