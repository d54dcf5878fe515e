//! How the words of a table get into a successor that is [`FACTOR`] times as large: by plain
//! stores, whoever else does the same. Here for the factor 2.
//!
//! ```text
//!   T:  ─gap─┤ a │ a+1 │ ... │ b ├─gap─        a cluster: full lines, and the one with a gap that ends it
//!              ╲                  ╲
//!   S:          2a │ 2a+1 │ ... │ 2b+1         its words, and nobody else's
//! ```
//!
//! **D1.** A sealed line of T changes no more (`table` T4). Nothing runs over from a line with a
//! gap; so the words of a cluster of lines a to b have their homes there, those in the lines up to
//! r are at most as many as these lines' slots, and so are those whose home is j or later for the
//! lines j to r. Home j becomes 2j or 2j + 1 of S: so the words in a to r land in 2a to 2r + 1, and
//! do not run over from there.
//! **D2.** Where a word goes follows from T alone: in the order of T's slots, to the first line
//! from its home in S that has a slot left. So all who carry a cluster store the same words into
//! the same slots, and storing a word once more changes nothing, however late.
//! **D3.** Only words of the first [`REACH`] lines of a cluster are stored so. Those of further
//! lines go in by exchange, like guests. The distance from the beginning of a cluster follows from
//! T alone too.
//! **D4.** Nobody stores by exchange into a line x of S before he has carried the cluster of line
//! x/2 of T himself, as far as D3 says. So what he finds EMPTY nobody is going to store a word into
//! by D2: by D1 the words that go to x are that cluster's.

use super::grow::FACTOR;
use super::table::Table;
use crate::sync::line::LINE;
use crate::sync::{MODEL, Ordering};

/// Lines from the beginning of a cluster whose words are stored plainly (D3).
pub(super) const REACH: usize = if MODEL { 2 } else { 32 };

/// Where the next word of each line goes that a cluster may reach.
struct Fill {
    /// The line of T at which the cluster begins.
    start: usize,
    /// Slots in use, by line of S from `FACTOR * start` on; of lines that the cluster has reached.
    used: [u8; FACTOR * REACH],
}

impl Table {
    /// The successor has [`FACTOR`] times as many lines: words are carried, not copied one by one
    /// (D1).
    pub(super) fn is_carried_to(&self, next: &Self) -> bool {
        next.lines() == FACTOR * self.lines()
    }

    /// The line at which the cluster of a line begins, if that is near enough (D3).
    fn cluster_of(&self, line: usize) -> Option<usize> {
        let lines = self.lines();
        let mut start = line;
        for _ in 0..REACH.min(lines) {
            let before = if start == 0 { lines - 1 } else { start - 1 };
            if self.seal(before, |_| ()) {
                return Some(start);
            }
            start = before;
        }
        None
    }

    /// Makes a chunk done, beside anybody who does the same (`table` T4).
    pub(super) fn carry_chunk(&self, chunk: usize, next: &Self) {
        let lines = self.lines();
        let range = self.chunk(chunk);
        let mut fill = self.cluster_of(range.start).map(Fill::new);
        // What comes before the chunk is carried once more, since it decides where the rest goes.
        let ahead = fill.as_ref().map_or(0, |fill| fill.distance(range.start, lines));
        let mut line = fill.as_ref().map_or(range.start, |fill| fill.start);
        for _ in 0..ahead + range.len() {
            let gap = match &mut fill {
                Some(fill) => self.carry_line(line, fill, next),
                None => self.copy_line(line, next),
            };
            let after = self.after(line);
            if gap {
                fill.get_or_insert_with(|| Fill::new(after)).start = after;
            } else if fill.as_ref().is_some_and(|fill| fill.distance(line, lines) + 1 >= REACH) {
                fill = None;
            }
            line = after;
        }
    }

    /// Makes line `x` of the successor ready for an exchange (D4).
    pub(super) fn carry_to(&self, x: usize, next: &Self) {
        let lines = self.lines();
        let Some(start) = self.cluster_of(x / FACTOR) else { return };
        let mut fill = Fill::new(start);
        let mut line = start;
        for _ in 0..REACH.min(lines) {
            if self.carry_line(line, &mut fill, next) {
                return;
            }
            line = self.after(line);
        }
    }

    /// Stores the words of a line (D2). True if it has a gap.
    #[inline(always)]
    fn carry_line(&self, line: usize, fill: &mut Fill, next: &Self) -> bool {
        let at = FACTOR * fill.distance(line, self.lines());
        fill.used[at..at + FACTOR].fill(0);
        // A cluster that has not come round the end of T has not come round the end of S.
        match line >= fill.start {
            true => self.carry_words::<false>(line, fill, next),
            false => self.carry_words::<true>(line, fill, next),
        }
    }

    #[inline(never)]
    fn carry_words<const ROUND: bool>(&self, line: usize, fill: &mut Fill, next: &Self) -> bool {
        let (lines, base) = (next.lines(), FACTOR * fill.start);
        self.seal(line, |word| {
            let home = next.home_of(word);
            let mut to = if ROUND && home < base { home + lines - base } else { home - base };
            while usize::from(fill.used[to % (FACTOR * REACH)]) == LINE {
                to += 1;
            }
            let used = &mut fill.used[to % (FACTOR * REACH)];
            let x = if ROUND && base + to >= lines { base + to - lines } else { base + to };
            let place = &next.line(x).words()[usize::from(*used) % LINE];
            *used += 1;
            // ORDERING: Release: passes on the record; partner: `find_in`. Others store the same
            // word here, or nothing (D2, D4).
            place.store(word, Ordering::Release);
        })
    }

    /// Copies the words of a line that is too far from the beginning of its cluster. True if it has
    /// a gap.
    fn copy_line(&self, line: usize, next: &Self) -> bool {
        self.seal(line, |word| next.copy_in(word, |x| self.carry_to(x, next)))
    }
}

impl Fill {
    fn new(start: usize) -> Self {
        Self { start, used: [0; FACTOR * REACH] }
    }

    /// Lines between the beginning of the cluster and a line of it.
    fn distance(&self, line: usize, lines: usize) -> usize {
        if line >= self.start { line - self.start } else { line + lines - self.start }
    }
}
