//! Sweeps: blocks that a crash left over, entries that have outlived themselves.
//!
//! | block | what the orphan sweep does |
//! |---|---|
//! | free, not offered | offers it |
//! | chained to a head that is not of the named generation, prepared or live | frees it (`free` F3) |
//! | prepared by a seat that is in no operation | frees it |
//!
//! Each decision is carried out by exchange with the word it was made on, so that sweeps run beside
//! everything else.

use super::block::Block;
use super::clock::monotonic_ms;
use super::error::CacheError;
use super::handle::Handle;
use super::lease::{LIMBO, is_limbo_of};
use super::view::{Age, DEADLINE_MS, Global, View};
use crate::sync::{AtomicU64, Ordering};
use crate::tier_cache::MapError;
use crate::tier_cache::step::{Point, add, exchange, store};
use crate::tier_cache::word::{Link, Owner, Phase, RecordState, RecordWord};

/// Between two questions who is alive, in a cache that can evict.
const ASK_MS: u64 = 100;

/// What an orphan sweep found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Swept {
    /// Blocks that belonged to nobody and are free now.
    pub orphans: u64,
    /// Free blocks that nobody would have found.
    pub hidden: u64,
}

impl View<'_> {
    /// A chained block's head does not own it any more.
    fn is_orphan(&self, block: Block<'_>) -> bool {
        let head = block.owner();
        let Ok(record) = self.memory.record(head.record) else { return true };
        let word = record.state();
        let owns = matches!(word.state(), Some(RecordState::Live | RecordState::Prepared(_)));
        let living = owns && word.generation() == head.generation;
        !living && !is_limbo_of(word, head.generation)
    }

    /// The seat that prepared a block is in no operation: seen between two looks at the same word.
    fn is_abandoned(&self, number: u32) -> bool {
        let Ok(seat) = self.memory.seat(number) else { return true };
        seat.owner() == Owner::NOBODY || seat.phase() == Ok(Phase::Idle)
    }

    /// Whoever looks for free blocks finds this one.
    pub(super) fn is_offered(&self, block: u32) -> bool {
        let has = |words: &[AtomicU64], bit: usize| {
            // ORDERING: Acquire; partner: `offer`.
            let word = words.get(bit / 64).map_or(0, |word| word.load(Ordering::Acquire));
            word >> (bit % 64) & 1 == 1
        };
        has(self.bits, block as usize) && has(self.summary, block as usize / 64)
    }

    /// Looks at every block. Whoever dies at it leaves the wish for a sweep behind; so does who
    /// dies meanwhile.
    pub(super) fn sweep_orphans(&self) -> Result<Swept, MapError> {
        let mut swept = Swept::default();
        let wanted = self.global(Global::SweepsWanted);
        let before = add(Point::Sweep, wanted, 1) + 1;
        for index in 0..self.sizes.blocks {
            let record = self.memory.record(index)?;
            let word = record.state();
            let lost = match word.state() {
                Some(RecordState::Free) if !self.is_offered(index) => {
                    // Somebody may be between freeing and offering it: offered twice is offered.
                    self.offer(index);
                    swept.hidden += 1;
                    false
                }
                Some(RecordState::Chained) => self.is_orphan(Block::of(record)),
                Some(RecordState::Prepared(LIMBO)) => {
                    let generation = word.generation().wrapping_sub(1);
                    self.leave_limbo(Link { record: index, generation });
                    false
                }
                Some(RecordState::Prepared(seat)) => self.is_abandoned(seat),
                _ => false,
            };
            if lost && self.free_as_seen(index, word) {
                swept.orphans += 1;
            }
        }
        self.recount_tiers();
        if self.doubts() != 0 {
            self.recount_accounts();
        }
        add(Point::Sweep, self.global(Global::Sweeps), 1);
        add(Point::Sweep, self.global(Global::Orphans), swept.orphans);
        exchange(Point::Sweep, wanted, before, 0);
        Ok(swept)
    }

    fn free_as_seen(&self, index: u32, word: RecordWord) -> bool {
        let Ok(record) = self.memory.record(index) else { return false };
        let freed = exchange(Point::Sweep, record.word(), word.0, word.freed().0);
        if freed {
            self.offer(index);
        }
        freed
    }

    /// The entry that begins at a block, if it is outlived.
    fn outlived_at(&self, index: u32) -> Option<Link> {
        let record = self.memory.record(index).ok()?;
        let word = record.state();
        let link = Link { record: index, generation: word.generation() };
        let block = Block::of(record);
        let outlived =
            word.state() == Some(RecordState::Live) && self.is_outlived(block, block.meta());
        (outlived && super::read::current(self, link).is_some()).then_some(link)
    }

    /// Some entry may have expired, or belong to a flushed namespace.
    pub(super) fn may_have_outlived(&self) -> bool {
        // ORDERING: Acquire; partner: the flush.
        let due = self.global(Global::Earliest).load(Ordering::Acquire);
        let flushed = self.global(Global::Flushed).load(Ordering::Acquire) != 0;
        flushed || due != 0 && due - 1 <= self.now() / DEADLINE_MS
    }
}

impl Handle<'_> {
    /// Nothing is free: recovers the dead and finds the blocks they left. Where somebody else can
    /// still be evicted (not `urgent`), it asks who is alive only now and then. False if that freed
    /// nothing.
    pub(super) fn reclaim(&mut self, urgent: bool) -> Result<bool, CacheError> {
        let view = self.view;
        let is_wanted = || {
            // ORDERING: Acquire; partner: `recovered`.
            let wanted = view.global(Global::SweepsWanted).load(Ordering::Acquire);
            // ORDERING: Relaxed: a count. Before the first sweep the creator is at it, or died.
            wanted != 0 || view.global(Global::Sweeps).load(Ordering::Relaxed) == 0
        };
        if !urgent && !is_wanted() && !self.is_time_to_ask() {
            return Ok(false);
        }
        // ORDERING: Relaxed: a count.
        let recoveries = || self.view.global(Global::Recoveries).load(Ordering::Relaxed);
        let before = recoveries();
        self.inner.map.recover()?;
        // Whoever completes an operation may free what it replaces.
        let mut found = recoveries() != before;
        if is_wanted() {
            let swept = self.view.sweep_orphans()?;
            found |= swept.orphans + swept.hidden > 0;
        }
        if self.spares() && self.view.may_have_outlived() {
            found |= self.expire(usize::MAX)? > 0;
        }
        Ok(found)
    }

    /// The last resort: what others keep to themselves, living ones too. False if there was
    /// nothing.
    pub(super) fn find_hidden(&mut self) -> Result<bool, CacheError> {
        // Where nothing is ever evicted nobody keeps anything; a handle that may not evict is
        // refused often.
        if !self.view.sizes.evicts || self.spares() && !self.is_time_to_ask() {
            return Ok(false);
        }
        let swept = self.view.sweep_orphans()?;
        self.dry = 0;
        Ok(swept.orphans + swept.hidden > 0)
    }

    /// At most ten times a second, and the first time.
    fn is_time_to_ask(&mut self) -> bool {
        let now = monotonic_ms();
        let due = now.wrapping_sub(self.asked) >= ASK_MS;
        if due {
            self.asked = now;
        }
        due
    }

    /// Takes away entries that have outlived themselves, among the next `most` blocks. Returns how
    /// many.
    pub(super) fn expire(&mut self, most: usize) -> Result<usize, CacheError> {
        let view = self.view;
        let whole = most >= view.sizes.blocks as usize;
        let flushed = view.global(Global::Flushed);
        // ORDERING: Acquire; partner: the flush.
        let before = flushed.load(Ordering::Acquire);
        if whole {
            // Whatever is added from here on sets them anew.
            store(Point::Sweep, flushed, 0);
            store(Point::Sweep, view.global(Global::Earliest), 0);
        }
        let mut stayed = 0;
        let taken = self.take_outlived(most, whole, &mut stayed);
        if whole && (stayed > 0 || taken.is_err()) {
            // Somebody held it, or the store did not take it: the next round looks again.
            if before != 0 {
                store(Point::Sweep, flushed, before);
            }
            view.lower_earliest(Age::new(0, 1));
        }
        taken
    }

    /// `stayed`: how many could not be taken just now.
    fn take_outlived(
        &mut self,
        most: usize,
        whole: bool,
        stayed: &mut usize,
    ) -> Result<usize, CacheError> {
        let view = self.view;
        let blocks = view.sizes.blocks as usize;
        let (mut taken, mut outlived) = (0, Vec::new());
        for _ in 0..most.min(blocks) {
            let index = self.expiry_hand % blocks;
            self.expiry_hand = (index + 1) % blocks;
            // ORDERING: Relaxed: a hint.
            let age = Age(view.ages[index].load(Ordering::Relaxed));
            if !age.is_entry() {
                continue;
            }
            match view.outlived_at(index as u32) {
                Some(link) if self.stores => outlived.push(link),
                Some(link) if self.evict(link)? => taken += 1,
                Some(_) => *stayed += 1,
                None if whole => self.note_deadline(age),
                None => {}
            }
        }
        for links in outlived.chunks(64) {
            let left = self.put_away(links, super::stats::Count::Expired, &mut Vec::new())?;
            taken += left;
            *stayed += links.len().saturating_sub(left);
        }
        Ok(taken)
    }

    fn note_deadline(&self, age: Age) {
        if age.deadline() != 0 {
            self.view.lower_earliest(age);
        }
    }
}
