//! Walking over the records: over slots, not arenas, so that only what is in the set is seen.

use super::core::Core;
use super::inner::Inner;
use super::record::Record;
use super::table::Table;
use super::{RecordId, SeenSet};
use crate::reclaim::Section;
use crate::sync::Ordering;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;

/// An iterator over the records of a set, by [`SeenSet::iter`].
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

/// The words of a set, segment by segment.
#[derive(Debug)]
pub(super) struct Words<'s> {
    core: &'s Core,
    /// Holds back every table retired from here on.
    section: Section<'s>,
    segment: usize,
    /// The table of the segment and the next slot. The section keeps it in place.
    table: Option<(*const Table, usize)>,
}

impl<'s> Words<'s> {
    pub(super) fn new(core: &'s Core) -> Self {
        let section = core.pin();
        section.hold_all();
        Self { core, section, segment: 0, table: None }
    }

    /// The next segment's table, its growth ended. Everything inserted before is in it.
    fn open_segment(&mut self) -> Option<Option<*const Table>> {
        if self.segment == self.core.roots.len() {
            return None;
        }
        let table = loop {
            if let Ok(table) = self.core.settle(&self.section, self.segment) {
                break table.map(std::ptr::from_ref);
            }
        };
        self.segment += 1;
        Some(table)
    }
}

impl Iterator for Words<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            if let Some((table, index)) = &mut self.table {
                // SAFETY: loaded inside the section, which holds everything and is still open.
                let table = unsafe { &**table };
                while *index < table.len() {
                    *index += 1;
                    if let Some(word) = table.word_at(*index - 1) {
                        return Some(word);
                    }
                }
                self.table = None;
            }
            self.table = self.open_segment()?.map(|table| (table, 0));
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

    /// The table that a segment's operations enter by, for statistics.
    pub(super) fn entrance<'s>(&self, section: &'s Section<'_>, segment: usize) -> Vec<&'s Table> {
        loop {
            let mut chain = Vec::new();
            let mut link = self.roots[segment].follow(section);
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
