//! Walking over the records: over slots, not arenas, so that only what is in the set is seen.
//!
//! **V1.** A walk has a seat of its own, which is inside from before the first table was loaded
//! until the walk is dropped, and holds everything: it has no quiet point. So the tables stay, on
//! whatever thread the walk is; a walk that was forgotten holds back what the set leaves.

use super::core::Core;
use super::inner::Inner;
use super::record::Record;
use super::table::Table;
use super::word::Split;
use super::{RecordId, SeenSet};
use crate::migrate::Restart;
use crate::reclaim::{Access, QuietHandle, Section};
use crate::sync::Ordering;
use crate::sync::line::LINE;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;

/// An iterator over the records of a set, by [`SeenSet::iter`].
///
/// ```
/// fn sent<T: Send>() {}
/// sent::<quintet::seen_set::Iter<'_, String, std::hash::RandomState>>();
/// ```
pub struct Iter<'s, R: Record + ?Sized, S> {
    /// Nothing, in a set that was never used.
    inside: Option<(&'s Inner<R>, Words<'s>)>,
    of: PhantomData<&'s SeenSet<R, S>>,
}

impl<'s, R: Record + ?Sized, S> Iter<'s, R, S> {
    pub(super) fn new(set: &'s SeenSet<R, S>) -> Self {
        let inside = set.made().map(|inner| (inner, Words::new(&inner.core)));
        Self { inside, of: PhantomData }
    }
}

impl<R: Record + ?Sized, S> fmt::Debug for Iter<'_, R, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.inside.as_ref().map_or(0, |(inner, _)| inner.core.len());
        out.debug_struct("Iter").field("of", &len).finish_non_exhaustive()
    }
}

impl<'s, R: Record + ?Sized, S> Iterator for Iter<'s, R, S> {
    type Item = (RecordId, &'s R);

    fn next(&mut self) -> Option<Self::Item> {
        let (inner, words) = self.inside.as_mut()?;
        let word = words.next()?;
        Some((inner.id(word), inner.records.get(inner.core.split.id(word))))
    }
}

impl<R: Record + ?Sized, S> FusedIterator for Iter<'_, R, S> {}

/// The words of a set, segment by segment, as tables of segments have them.
#[derive(Debug)]
pub(super) struct Words<'s> {
    core: &'s Core,
    /// Holds back every table retired from here on (V1).
    seat: QuietHandle,
    segment: usize,
    stretch: Option<Stretch>,
}

/// What is left of the lines in which a segment's words lie. The seat of the walk keeps the table
/// in place.
#[derive(Debug)]
struct Stretch {
    table: *const Table,
    /// Slots up to here have been looked at, counted on beyond the end of the ring.
    next: usize,
    /// The last line that is a home of the segment.
    last: usize,
    /// The slot at which all lines have been passed.
    end: usize,
    /// The line has a gap.
    gap: bool,
    /// The only segment whose words count, of a small table.
    of: Option<usize>,
}

// SAFETY: the table is shared with all threads that use the set, and is protected by the seat of
// the walk, which goes along (V1).
unsafe impl Send for Stretch {}

impl Stretch {
    /// All of a segment's own table.
    fn whole(table: &Table) -> Self {
        let last = table.lines() - 1;
        Self { table, next: 0, last, end: table.len(), gap: false, of: None }
    }

    /// The share of a segment in a small one (`small` Q2).
    fn share(table: &Table, split: Split, segment: usize) -> Self {
        let (first, last) = split.share(segment, table.lines());
        let (next, end) = (first * LINE, first * LINE + table.len());
        Self { table, next, last, end, gap: false, of: Some(segment) }
    }

    fn next(&mut self, split: Split) -> Option<u64> {
        // SAFETY: loaded while the seat held everything, as it still does (V1); a table that is not
        // retired goes with the set, which the walk borrows.
        let table = unsafe { &*self.table };
        while self.next < self.end {
            let slot = self.next;
            if slot % LINE == 0 {
                if slot / LINE > self.last && self.gap {
                    return None;
                }
                self.gap = false;
            }
            self.next += 1;
            let Some(word) = table.word_at(slot % table.len()) else {
                self.gap = true;
                continue;
            };
            let Some(segment) = self.of else { return Some(word) };
            let (word, of) = split.widen(word);
            if of == segment {
                return Some(word);
            }
        }
        None
    }
}

impl<'s> Words<'s> {
    pub(super) fn new(core: &'s Core) -> Self {
        let seat = core.domain.join_quiet();
        seat.section().hold_all();
        Self { core, seat, segment: 0, stretch: None }
    }

    /// Where the words of a segment lie, its growth ended. Everything inserted before is there.
    fn open(&self, segment: usize) -> Result<Option<Stretch>, Restart> {
        let (core, section) = (self.core, &self.seat.section());
        if let Some(table) = core.settle(section, segment)? {
            return Ok(Some(Stretch::whole(table)));
        }
        match core.settle(section, core.small())? {
            // Its share was moved meanwhile (`small` Q7).
            Some(table) if table.is_door() && !core.link(segment).is_empty() => Err(Restart),
            Some(table) => Ok(Some(Stretch::share(table, core.split, segment))),
            None => Ok(None),
        }
    }
}

impl Iterator for Words<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            if let Some(stretch) = &mut self.stretch {
                if let Some(word) = stretch.next(self.core.split) {
                    return Some(word);
                }
                self.stretch = None;
            }
            if self.segment == self.core.roots.len() {
                return None;
            }
            if let Ok(stretch) = self.open(self.segment) {
                self.stretch = stretch;
                self.segment += 1;
            }
        }
    }
}

impl Core {
    /// Every word once; only for a set that nobody else uses.
    pub(super) fn for_each_word(&self, mut visit: impl FnMut(u64)) {
        for word in Words::new(self) {
            visit(word);
        }
    }

    /// The tables that the operations of a chain go through, for statistics.
    pub(super) fn entrance<'s>(&self, section: &'s Section<'_>, segment: usize) -> Vec<&'s Table> {
        loop {
            let mut chain = Vec::new();
            let mut link = self.root(segment).follow(section);
            while let Ok(Some(table)) = link {
                chain.push(table);
                link = table.next().follow(section);
            }
            if link.is_ok() {
                return chain;
            }
        }
    }

    pub(super) fn growths_done(&self) -> u64 {
        // ORDERING: Relaxed: a statistic.
        self.growths.load(Ordering::Relaxed)
    }
}
