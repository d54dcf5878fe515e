//! Recency and eviction.
//!
//! Every block has a word in the array of ages: does an entry begin here, its deadline, the tick of
//! its last use as far as the array knows. The *hand* walks over that array; whoever needs a victim
//! claims the next stretch of it and keeps the oldest entries it saw as its own *ring* of (tick,
//! block, generation), oldest first. An entry of the ring whose block has been used or freed since
//! is a hole and is skipped.
//!
//! **L1.** The record array is the truth: a victim is judged again under the control word of its
//! bucket.
//! **L2.** Entries that have expired come before all others that the same stretch showed.
//! **L3.** A stretch is the whole array if that is small: then the victim is the least recently
//! used entry of all, up to the tick.
//! **L4.** Every eviction is counted, by its cause.
//! **L5.** A hit stores its tick into the record only; the array may be behind, never ahead. Who
//! considers an entry whose array word is behind brings that up to date and looks again. So the
//! first of a stretch, in the order of the array, that is not behind is its oldest. Where uses are
//! counted instead (see [`policy`](super::policy)) the array has the only order there is.
//! **L6.** Entries beyond the quota of whoever they belong to come before all others. In a cache
//! with tiers a victim comes from the oldest tier that has one. The array says which tier an entry
//! lies in, as far as it knows.

use super::block::Block;
use super::error::CacheError;
use super::handle::Handle;
use super::quota::SUSPECTS;
use super::stats::Count;
use super::view::{Age, DEADLINE_MS, Global, View};
use crate::sync::Ordering;
use crate::sync::prefetch::prefetch_read;
use crate::tier_cache::MapError;
use crate::tier_cache::plan::{Task, Verdict, Want};
use crate::tier_cache::step::{Point, add, exchange, store_hint};
use crate::tier_cache::wait::Wait;
use crate::tier_cache::word::{Link, RecordState};

/// Words of the array of ages that one search looks at.
const STRETCH: usize = 1024;
/// Victims one search keeps.
pub(super) const KEPT: usize = 16;
/// Gatherings that do not look at the free bits after one that found too few.
const DRY_SETS: u32 = 32;
/// Looks at one stretch of a large cache whose oldest have all been used since.
const ROUNDS: usize = 4;
/// Searches without any entry before the cache counts as empty of victims, beyond one revolution.
const EXTRA_STRETCHES: usize = 2;

/// A victim in waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Candidate {
    /// Its word of use.
    pub(super) used: u64,
    pub(super) link: Link,
}

/// Victims in waiting, the oldest last.
#[derive(Debug, Default)]
pub(super) struct Ring(Vec<Candidate>);

impl Ring {
    /// Takes these, the first to leave first.
    pub(super) fn fill(&mut self, chosen: Vec<Candidate>) {
        self.0.extend(chosen.into_iter().rev());
    }

    pub(super) fn last(&self) -> Option<Link> {
        self.0.last().map(|candidate| candidate.link)
    }

    /// Adds the entries that begin at these blocks, the oldest last.
    pub(super) fn add_entries(&mut self, view: &View<'_>, blocks: impl Iterator<Item = u32>) {
        for block in blocks {
            let Ok(record) = view.memory.record(block) else { continue };
            let word = record.state();
            // ORDERING: Relaxed: a hint.
            let used = record.tick().load(Ordering::Relaxed);
            if word.state() == Some(RecordState::Live) {
                let link = Link { record: block, generation: word.generation() };
                self.0.push(Candidate { used, link });
            }
        }
    }

    /// The oldest that is not a hole.
    pub(super) fn pop_current(&mut self, view: &View<'_>) -> Option<Link> {
        while let Some(candidate) = self.0.pop() {
            let Some(record) = super::read::current(view, candidate.link) else { continue };
            // ORDERING: Relaxed: a hint.
            let used = record.tick().load(Ordering::Relaxed);
            if used == candidate.used && record.state().state() == Some(RecordState::Live) {
                return Some(candidate.link);
            }
        }
        None
    }
}

/// Entries that looked oldest, the best last: (rank, block).
struct Oldest {
    ranked: [(u64, u32); KEPT],
    held: usize,
}

impl View<'_> {
    /// Looks at the next stretch of ages and keeps the oldest of a tier (L2, L3, L5).
    pub(super) fn search_oldest(&self, tier: usize, ring: &mut Ring, shunned: &[u32]) {
        let blocks = self.ages.len();
        let stretch = blocks.min(STRETCH);
        let kept = (stretch / 64).clamp(1, KEPT);
        let whole = blocks <= STRETCH;
        let from = match whole {
            true => 0,
            false => add(Point::Tick, self.global(Global::Hand), stretch as u64) as usize % blocks,
        };
        let rounds = if whole { blocks / kept + 1 } else { ROUNDS };
        let mut behind = Vec::new();
        for _ in 0..rounds {
            behind.clear();
            let oldest = self.oldest_of(tier, from, stretch, kept, shunned);
            let blocks = &oldest.ranked[..oldest.held];
            for (_, block) in blocks {
                if let Ok(record) = self.memory.record(*block) {
                    prefetch_read(record.word());
                }
            }
            for (_, block) in blocks {
                self.consider(*block, ring, &mut behind);
            }
            if !ring.0.is_empty() || behind.is_empty() {
                return;
            }
        }
        // Everything here is in use: the oldest of those seen last will do.
        let now = self.tick();
        behind.sort_unstable_by_key(|seen| now.wrapping_sub(seen.used as u32));
        ring.0.append(&mut behind);
    }

    /// The oldest of a tier in a stretch, as the array has them.
    fn oldest_of(
        &self,
        tier: usize,
        from: usize,
        stretch: usize,
        kept: usize,
        shunned: &[u32],
    ) -> Oldest {
        let single = self.memory.tiers() == 1;
        let blocks = self.ages.len();
        let now = self.now() / DEADLINE_MS;
        // Rank: outlived first, then age.
        let mut best: [(u64, u32); KEPT] = [(0, 0); KEPT];
        let mut held = 0;
        for step in 0..stretch {
            let block = if from + step < blocks { from + step } else { from + step - blocks };
            // ORDERING: Relaxed: hints (L1).
            let age = Age(self.ages[block].load(Ordering::Relaxed));
            if !age.is_entry() {
                continue;
            }
            let outlived = age.deadline() != 0 && age.deadline() <= now;
            if !single && !outlived && age.tier() != tier {
                continue;
            }
            let rank =
                1 + ((outlived as u64) << 32) + self.ticks_in_order(age).min(u32::MAX - 1) as u64;
            if held == kept && rank <= best[0].0 || shunned.contains(&(block as u32)) {
                continue;
            }
            let place = if held < kept {
                held += 1;
                held - 1
            } else {
                0
            };
            best[place] = (rank, block as u32);
            if held == kept {
                // The weakest of the kept comes first.
                let weakest = (0..held).min_by_key(|at| best[*at].0).unwrap_or(0);
                best.swap(0, weakest);
            }
        }
        best[..held].sort_unstable();
        Oldest { ranked: best, held }
    }

    /// One that looked old: a victim, or behind (L5).
    fn consider(&self, block: u32, ring: &mut Ring, behind: &mut Vec<Candidate>) {
        let (Some(seen), Some(place)) = (self.candidate(block), self.ages.get(block as usize))
        else {
            return;
        };
        // ORDERING: Relaxed: a hint.
        let age = Age(place.load(Ordering::Relaxed));
        let outlived = age.deadline() != 0 && age.deadline() <= self.now() / DEADLINE_MS;
        if age.tick() == seen.used as u32 || outlived || !self.stamps_uses() {
            return ring.0.push(seen);
        }
        if age.is_entry() {
            // Fails if the block has been freed or filled meanwhile: then it has a new age.
            exchange(Point::Age, place, age.0, age.with_tick(seen.used as u32).0);
        }
        behind.push(seen);
    }

    /// The entry that begins at a block, as it is now. An age without one is dropped.
    pub(super) fn candidate(&self, block: u32) -> Option<Candidate> {
        let record = self.memory.record(block).ok()?;
        let word = record.state();
        if word.state() != Some(RecordState::Live) {
            self.drop_phantom(block);
            return None;
        }
        let link = Link { record: block, generation: word.generation() };
        // ORDERING: Relaxed: a hint.
        Some(Candidate { used: record.tick().load(Ordering::Relaxed), link })
    }

    /// A crash left an age where no entry begins any more. It would come first in every search.
    fn drop_phantom(&self, block: u32) {
        let (Ok(record), Some(place)) = (self.memory.record(block), self.ages.get(block as usize))
        else {
            return;
        };
        let is_entry = || {
            let state = record.state().state();
            matches!(state, Some(RecordState::Live | RecordState::Prepared(_)))
        };
        // ORDERING: Acquire: the age is seen before the state, so that a fresh entry's age is not
        // taken for a phantom.
        let age = place.load(Ordering::Acquire);
        if !is_entry() && exchange(Point::Age, place, age, 0) && is_entry() {
            // Taken in between, and given the very age that was dropped.
            store_hint(Point::Age, place, age);
        }
    }

    /// The next victim in a tier, by the policy: not a hole.
    pub(super) fn next_victim(
        &self,
        tier: usize,
        ring: &mut Ring,
        shunned: &[u32],
    ) -> Option<Link> {
        self.next_of(ring, |ring| self.search_victims(tier, ring, shunned))
    }

    /// The next one of a tier by age: not a hole.
    pub(super) fn next_oldest(
        &self,
        tier: usize,
        ring: &mut Ring,
        shunned: &[u32],
    ) -> Option<Link> {
        self.next_of(ring, |ring| self.search_oldest(tier, ring, shunned))
    }

    fn next_of(&self, ring: &mut Ring, mut search: impl FnMut(&mut Ring)) -> Option<Link> {
        let stretches = self.ages.len().div_ceil(STRETCH) + EXTRA_STRETCHES;
        for _ in 0..stretches {
            if let Some(victim) = ring.pop_current(self) {
                return Some(victim);
            }
            search(ring);
        }
        None
    }
}

impl View<'_> {
    /// Blocks of the entry that a link names, as far as it is still there.
    pub(super) fn blocks_of(&self, link: Link) -> usize {
        super::read::current(self, link).map_or(0, |record| {
            let meta = Block::of(record).meta();
            self.sizes.blocks_for(meta.key(), meta.value())
        })
    }
}

impl Handle<'_> {
    /// Finds `need` free blocks, evicting as long as there are too few. They belong to nobody yet.
    pub(super) fn gather_blocks(&mut self, need: usize) -> Result<(), CacheError> {
        let view = self.view;
        // Left over from a round that others spoiled: nobody else may know that they are free.
        for block in self.blocks.drain(..) {
            if !view.is_offered(block) {
                self.inner.kept.push(block);
            }
        }
        if self.stores && self.inner.kept.is_empty() {
            self.stock_up();
        }
        let mut wait = Wait::new(self.inner.timeout);
        let mut looks = false;
        let mut kept = 0;
        // What is freed may be taken by others, again and again: a bound, though nobody should
        // reach it.
        for _ in 0..4 * view.sizes.blocks as usize {
            self.blocks.truncate(kept);
            view.find_kept(&mut self.inner.kept, need, &mut self.blocks);
            kept = self.blocks.len();
            if kept < need && (self.is_worth_looking() || looks) {
                view.find_free(self.cursor, need, &mut self.blocks);
                if let Some(&last) = self.blocks.last() {
                    self.cursor = last;
                }
                self.dry = if self.blocks.len() < need { DRY_SETS } else { 0 };
            }
            let short = need - self.blocks.len().min(need);
            if short == 0 {
                return Ok(());
            }
            if self.reclaim(self.spares())? {
                self.dry = 0;
            } else if !self.spares() && self.evict_blocks(short)? {
                // One is kept, the others are where everybody looks.
                looks = short > 1 || self.stores;
            } else if !self.reclaim(true)? && !self.find_hidden()? {
                // Where entries can be evicted and none is there, others have just done so: soon
                // there will be blocks or entries.
                if self.spares() || wait.pause().is_err() {
                    break;
                }
                self.dry = 0;
            }
        }
        view.count(self.inner.number, Count::Refused, 1);
        Err(CacheError::Full)
    }

    /// In a full cache every set evicts: looking through the bits first, in vain, is left to one in
    /// [`DRY_SETS`].
    fn is_worth_looking(&mut self) -> bool {
        self.dry = self.dry.saturating_sub(1);
        self.dry == 0 || self.spares()
    }

    /// Evicts the entries that the policy chooses, until they had `short` blocks. False if there is
    /// none.
    fn evict_blocks(&mut self, short: usize) -> Result<bool, CacheError> {
        if self.stores {
            return self.make_room(short);
        }
        let mut freed = 0;
        while freed < short {
            match self.evict_one()? {
                0 => break,
                blocks => freed += blocks,
            }
            self.forced_out += 1;
        }
        Ok(freed > 0)
    }

    /// Evicts the entry that the policy chooses, and with a sink some more. Returns how many blocks
    /// they had: 0 if there is none.
    pub(super) fn evict_one(&mut self) -> Result<usize, CacheError> {
        let view = self.view;
        // Victims that somebody else holds or claims just now: the next in age takes their place.
        let mut shunned = Vec::new();
        let mut wait = Wait::new(self.inner.timeout);
        loop {
            let Some((victim, tier)) = self.oldest_victim(&shunned) else {
                if shunned.is_empty() {
                    return Ok(0);
                }
                wait.pause()?;
                shunned.clear();
                continue;
            };
            let spared = self.spares_flight(victim);
            let freed = if spared { 0 } else { self.put_out_for_room(victim, tier)? };
            if freed > 0 {
                self.cursor = victim.record;
                // The next one's bucket, while this one's block is filled.
                if let Some(input) = self.rings[tier].last().and_then(|link| view.entry_input(link))
                {
                    view.memory.expect_bucket(input.bucket());
                }
                return Ok(freed);
            }
            shunned.push(victim.record);
        }
    }

    /// The next victim, and the ring it comes from: a suspect, or of all tiers the oldest first
    /// (L6).
    pub(super) fn oldest_victim(&mut self, shunned: &[u32]) -> Option<(Link, usize)> {
        if let Some(suspect) = self.next_suspect(shunned) {
            return Some((suspect, SUSPECTS));
        }
        let view = self.view;
        let tiers = view.memory.tiers();
        // A tier that counts as empty is looked through only if no other has one.
        let counted = |tier: &usize| tiers == 1 || view.tier_blocks(*tier) > 0;
        let others = (0..tiers).rev().filter(|tier| !counted(tier));
        let mut order = (0..tiers).rev().filter(counted).chain(others);
        order.find_map(|tier| {
            let victim = view.next_victim(tier, &mut self.rings[tier], shunned);
            victim.map(|victim| (victim, tier))
        })
    }

    /// Evicts one entry if it is still there (L1, L4).
    pub(super) fn evict(&mut self, victim: Link) -> Result<bool, CacheError> {
        // A victim in a bucket that somebody holds is passed over: there are others.
        let timeout = std::mem::replace(&mut self.inner.timeout, std::time::Duration::ZERO);
        let done = self.evict_patiently(victim, Count::Evicted);
        self.inner.timeout = timeout;
        done
    }

    /// Evicts one entry if it is still there, waiting for its bucket.
    pub(super) fn evict_patiently(
        &mut self,
        victim: Link,
        cause: Count,
    ) -> Result<bool, CacheError> {
        self.evict_if(victim, cause, &|| true)
    }

    /// Evicts one entry if it is still there, and `allows` says so under the control word of its
    /// bucket.
    pub(super) fn evict_if(
        &mut self,
        victim: Link,
        cause: Count,
        allows: &dyn Fn() -> bool,
    ) -> Result<bool, CacheError> {
        let view = self.view;
        let Some(input) = view.entry_input(victim) else { return Ok(false) };
        let Ok(record) = view.memory.record(victim.record) else { return Ok(false) };
        let outlived = {
            let block = Block::of(record);
            // A flight that is over counts as one that has expired.
            view.is_flight(victim) || view.is_outlived(block, block.meta())
        };
        let judge = |link: Link| match link == victim && allows() {
            true => Verdict::Present,
            false => Verdict::Other,
        };
        // ORDERING: Relaxed: a hint.
        let age = Age(view.ages[victim.record as usize].load(Ordering::Relaxed));
        let blocks = if view.stamps_uses() { 1 } else { view.blocks_of(victim) };
        self.inner.begin()?;
        self.inner.open()?;
        match self.run(input, Task::Take { want: Want::Any }, &judge) {
            Ok(_) => {
                let cause = if outlived { Count::Expired } else { cause };
                view.count(self.inner.number, cause, 1);
                if cause == Count::Evicted {
                    view.note_left(input, age, blocks);
                }
                Ok(true)
            }
            Err(MapError::NotFound | MapError::Busy) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
