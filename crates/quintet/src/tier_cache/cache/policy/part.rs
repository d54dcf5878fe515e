//! Parts of the array of ages, and their entries in order.

use crate::sync::Ordering;
use crate::sync::prefetch::prefetch_read;
use crate::tier_cache::cache::evict::{Candidate, KEPT};
use crate::tier_cache::cache::view::{Age, DEADLINE_MS, Global, View};
use crate::tier_cache::step::{Point, add, store_hint};
use std::ops::Range;

/// Blocks of a part, at least.
const PART: usize = 1024;
/// Entries that are put in order at a time.
const RUN: usize = 64;
/// Entries that should be looked at together, at least and at most.
const FEW: usize = 256;
const MANY: usize = 2048;
/// The most parts that are joined, as a power of two.
const MOST_JOINED: u64 = 10;

/// How many parts so many blocks have.
pub(super) fn parts(blocks: usize) -> usize {
    (blocks / PART).max(1)
}

/// A part whose turn it is, or several that are joined because their entries are long and few.
pub(super) struct Part {
    pub(super) number: usize,
    pub(super) blocks: Range<usize>,
    joined: u64,
}

/// Victims that one search may choose of so many entries: few, so that none waits long to leave.
pub(super) fn wanted(entries: usize) -> usize {
    (entries / 64).clamp(1, KEPT)
}

/// Numbers in ascending order, sorted as far as they are asked for.
pub(super) struct Ascending {
    ranks: Vec<u64>,
    at: usize,
    sorted: usize,
}

impl Ascending {
    pub(super) fn new(ranks: Vec<u64>) -> Self {
        Self { ranks, at: 0, sorted: 0 }
    }

    /// How many are left.
    pub(super) fn len(&self) -> usize {
        self.ranks.len() - self.at
    }

    fn sort_more(&mut self) {
        let rest = &mut self.ranks[self.sorted..];
        let run = rest.len().min(RUN);
        if run < rest.len() {
            rest.select_nth_unstable(run);
        }
        rest[..run].sort_unstable();
        self.sorted += run;
    }

    /// The next one is the first of a run.
    pub(super) fn is_at_a_run(&self) -> bool {
        self.at == self.sorted
    }

    /// Shows each of those that are sorted by now and left.
    pub(super) fn coming(&mut self) -> &[u64] {
        if self.at == self.sorted {
            self.sort_more();
        }
        &self.ranks[self.at..self.sorted]
    }
}

impl Iterator for Ascending {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.at == self.sorted {
            self.sort_more();
        }
        let next = *self.ranks[..self.sorted].get(self.at)?;
        self.at += 1;
        Some(next)
    }
}

impl View<'_> {
    /// The part whose turn it is (`policy` P4).
    pub(super) fn next_part(&self) -> Part {
        let blocks = self.ages.len();
        // ORDERING: Relaxed: a hint.
        let joined = self.global(Global::Joined).load(Ordering::Relaxed).min(MOST_JOINED);
        let parts = (parts(blocks) >> joined).max(1);
        let number = match parts {
            1 => 0,
            _ => add(Point::Tick, self.global(Global::Hand), 1) as usize % parts,
        };
        let start = |number: usize| (number as u64 * blocks as u64 / parts as u64) as usize;
        Part { number, blocks: start(number)..start(number + 1), joined }
    }

    /// So many entries were seen in a part: as many parts are joined from now on as make it enough.
    fn join_parts(&self, part: &Part, entries: usize) {
        let joined = match entries {
            ..FEW if part.blocks.len() < self.ages.len() => part.joined + 1,
            MANY.. => part.joined.saturating_sub(1),
            _ => part.joined,
        };
        if joined != part.joined {
            store_hint(Point::Age, self.global(Global::Joined), joined.min(MOST_JOINED));
        }
    }

    /// Shows the ages of a part's entries in a tier that are not outlived; those that are, and
    /// all others of the part that are, come first of all (`evict` L2): they are returned.
    pub(super) fn look_at(
        &self,
        part: &Part,
        tier: usize,
        shunned: &[u32],
        mut see: impl FnMut(u32, Age),
    ) -> Vec<Candidate> {
        let now = self.now() / DEADLINE_MS;
        let single = self.memory.tiers() == 1;
        let (mut outlived, mut entries) = (Vec::new(), 0);
        for block in part.blocks.clone() {
            // ORDERING: Relaxed: hints (`policy` P1).
            let age = Age(self.ages[block].load(Ordering::Relaxed));
            if !age.is_entry() || shunned.contains(&(block as u32)) {
                continue;
            }
            entries += 1;
            if age.deadline() != 0 && age.deadline() <= now {
                outlived.extend(self.candidate(block as u32));
            } else if single || age.tier() == tier {
                see(block as u32, age);
            }
        }
        self.join_parts(part, entries);
        outlived
    }

    /// Asks for the words of those that are looked at next.
    pub(super) fn expect_all(&self, blocks: impl Iterator<Item = u32>) {
        for block in blocks {
            if let Ok(record) = self.memory.record(block) {
                prefetch_read(record.word());
            }
        }
    }
}
