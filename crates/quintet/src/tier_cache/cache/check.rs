//! The invariants of a cache that nobody writes to.
//!
//! | | |
//! |---|---|
//! | K1 | the cells are those of a map: bits name members, members name bases, nothing is held or half done |
//! | K2 | every cell links to a live head of that generation, hash and bucket; no head is linked twice |
//! | K3 | every live head is linked, and its key is there once |
//! | K4 | every further block is named by the chain of its head, once; chains are as long as their lengths say |
//! | K5 | heads + further blocks + free blocks = blocks; every free block is offered |
//! | K6 | the seats together count as many entries as there are heads |
//! | K7 | every head has an age, so that the hand finds it |
//! | K8 | every head has its sum, in a cache with sums |
//! | K9 | the seats together count as many entries in each tier as lie there |

use super::TierCache;
use super::block::{Block, Meta, Pieces, chain};
use super::read::Target;
use super::stored::LAST_BATCH;
use super::view::{Age, View};
use crate::sync::Ordering;
use crate::tier_cache::check::{home_of, residue};
use crate::tier_cache::memory::MAX_TIERS;
use crate::tier_cache::word::{Cell, Link, RecordState};
use std::collections::HashSet;

/// What a check counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// Entries.
    pub entries: u64,
    /// Blocks of entries beyond their first.
    pub further: u64,
    /// Free blocks.
    pub free: u64,
}

impl TierCache {
    /// Verifies every invariant. Nobody may write meanwhile; [`TierCache::recover`] first if peers
    /// died.
    pub fn check(&self) -> Result<CheckReport, String> {
        // What puts entries into the store writes too. It begins again when it is needed.
        if !self.writer.end(LAST_BATCH) {
            return Err("the store takes too long".into());
        }
        self.rest();
        let (view, map) = (self.view(), self.map());
        residue(&map)?;
        let mut heads = HashSet::new();
        let mut keys = HashSet::new();
        let mut tiers = [0u32; MAX_TIERS];
        for slice in 0..2 {
            for position in 0..view.memory.positions() {
                let cell = view.memory.cell(view.memory.at(slice, position));
                if cell.is_empty() {
                    continue;
                }
                let home = home_of(&map, slice, position, cell)?;
                tiers[view.memory.tier_of(home)] += 1;
                let key = view.check_head(cell, view.memory.bucket_of(home))?;
                if key.is_some_and(|key| !keys.insert(key)) {
                    return Err(format!("K3: the key of {cell:?} is there twice"));
                }
                if !heads.insert(cell.link.record) {
                    return Err(format!("K2: block {} is linked twice", cell.link.record));
                }
            }
        }
        for (tier, lie) in tiers.into_iter().enumerate().take(view.memory.tiers()).skip(1) {
            let counted = view.len_of(tier);
            if lie != counted {
                return Err(format!("K9: {lie} entries in tier {tier}, the seats count {counted}"));
            }
        }
        view.check_blocks(&heads)
    }
}

impl View<'_> {
    /// K2, K7; returns namespace and key, unless it is outlived by its namespace.
    fn check_head(&self, cell: Cell, home: usize) -> Result<Option<(u32, Vec<u8>)>, String> {
        let wrong = |what: &str| Err(format!("{what}: {cell:?} of bucket {home}"));
        let Ok(record) = self.memory.record(cell.link.record) else {
            return wrong("K2: no such block");
        };
        let word = record.state();
        if word.state() != Some(RecordState::Live) || word.generation() != cell.link.generation {
            return wrong("K2: not a live head");
        }
        // ORDERING: Relaxed: nobody writes.
        if record.input().load(Ordering::Relaxed) != (cell.key as u64) << 32 | home as u64 {
            return wrong("K2: another hash");
        }
        let age = Age(self.ages[cell.link.record as usize].load(Ordering::Relaxed));
        if !age.is_entry() {
            return wrong("K7: no age");
        }
        let block = Block::of(record);
        let meta = block.meta();
        let mut key = Vec::new();
        if meta.value() > self.sizes.longest()
            || !Target::take(&mut key, meta.key(), &mut Pieces::of(self.memory, block))
        {
            return wrong("K4: lengths");
        }
        if !self.has_sum(cell.link, block) {
            return wrong("K8: another sum");
        }
        let generation = block.next_and_space().1;
        if generation != self.space_generation(meta.space()) {
            // Outlived. Its namespace may have been removed and another one have its number: then
            // its keys are hashed otherwise.
            return Ok(None);
        }
        let input = self.input(self.space_of(meta.space()), &key);
        if input.hash() != cell.key || input.bucket() as usize != home {
            return wrong("K2: the key has another hash");
        }
        Ok(Some((meta.space(), key)))
    }

    /// K3 to K6.
    fn check_blocks(&self, heads: &HashSet<u32>) -> Result<CheckReport, String> {
        let mut report = CheckReport::default();
        let mut named = HashSet::new();
        for &head in heads {
            let record = self.memory.record(head).map_err(|error| error.to_string())?;
            let link = Link { record: head, generation: record.state().generation() };
            let meta: Meta = Block::of(record).meta();
            let further =
                chain(self.memory, self.sizes, link).map_err(|error| error.to_string())?;
            if 1 + further.len() != self.sizes.blocks_for(meta.key(), meta.value()) {
                return Err(format!("K4: head {head} has {} further blocks", further.len()));
            }
            named.extend(further.iter().map(|(block, _)| *block));
            report.further += further.len() as u64;
        }
        if named.len() as u64 != report.further {
            return Err("K4: a block is in two chains".into());
        }
        for index in 0..self.sizes.blocks {
            let record = self.memory.record(index).map_err(|error| error.to_string())?;
            match record.state().state() {
                Some(RecordState::Live) if heads.contains(&index) => report.entries += 1,
                Some(RecordState::Chained) if named.contains(&index) => {}
                Some(RecordState::Free) if self.is_offered(index) => report.free += 1,
                Some(RecordState::Free) => {
                    return Err(format!("K5: free block {index} is not offered"));
                }
                state => return Err(format!("K5: block {index} belongs to nobody: {state:?}")),
            }
        }
        if self.len() != report.entries {
            return Err(format!("K6: {} entries, the seats count {}", report.entries, self.len()));
        }
        Ok(report)
    }
}
