//! Free blocks.
//!
//! **F1.** A block belongs to whoever changed its own word from free, and to nobody else. The bits
//! that say where free blocks are, and the summary that says which words of bits are not zero, are
//! hints: wrong ones cost time.
//! **F2.** Freeing an entry: its age is cleared, the head's word becomes free with the next
//! generation, then each further block by exchange. So a further block is reused only after no copy
//! of the entry can be certified any more.
//! **F3.** A further block whose head is not of the generation it names, prepared or live, is an
//! orphan: whoever finds it may free it, by exchange. Crashes leave such blocks, and lost bits;
//! [`sweep`](super::sweep) finds both.
//! **F4.** A further block is named by its predecessor before it is taken, and names its head
//! before it counts as chained.
//! **F5.** One search looks at each word of bits once. Who has to search again forgets what the
//! bits showed before and keeps only what its handle had kept: so an entry of n blocks costs n
//! looks, not n².

use super::block::{Block, chain, owner_word};
use super::lease::LIMBO;
use super::view::{Age, Global, View};
use crate::sync::prefetch::prefetch_write;
use crate::sync::{AtomicU64, Ordering, fence};
use crate::tier_cache::MapError;
use crate::tier_cache::memory::Record;
use crate::tier_cache::step::{
    Point, add_bits, clear_bits, exchange, store, store_hint, store_payload,
};
use crate::tier_cache::word::{Link, RecordState, RecordWord};

/// Blocks whose bits lie in one word, collected to be changed together: most of a long entry's are
/// neighbours.
#[derive(Default)]
struct Runs {
    word: usize,
    blocks: u64,
}

impl Runs {
    /// Adds a block; returns the last run if the block begins another.
    fn add(&mut self, block: u32) -> Option<(usize, u64)> {
        let (word, bit) = (block as usize / 64, 1 << (block % 64));
        if word == self.word {
            self.blocks |= bit;
            return None;
        }
        let last = std::mem::replace(self, Self { word, blocks: bit });
        (last.blocks != 0).then_some((last.word, last.blocks))
    }
}

impl<'a> View<'a> {
    /// Says that a block is free.
    pub(super) fn offer(&self, block: u32) {
        self.offer_all(block as usize / 64, 1 << (block % 64));
    }

    /// Says that these blocks of a word of bits are free.
    fn offer_all(&self, word: usize, blocks: u64) {
        let (Some(bits), Some(summary)) = (self.bits.get(word), self.summary.get(word / 64)) else {
            return;
        };
        add_bits(Point::FreeBit, bits, blocks);
        let mark = 1 << (word % 64);
        // ORDERING: Relaxed: a hint.
        if summary.load(Ordering::Relaxed) & mark == 0 {
            add_bits(Point::FreeBit, summary, mark);
        }
    }

    /// The bit says free and the block says otherwise, or it has just been taken.
    pub(super) fn withdraw(&self, block: u32) {
        self.withdraw_all(block as usize / 64, 1 << (block % 64));
    }

    /// These blocks of a word of bits have been taken. One that its last user kept was never
    /// offered.
    fn withdraw_all(&self, word: usize, blocks: u64) {
        let Some(bits) = self.bits.get(word) else { return };
        // ORDERING: Relaxed: a hint.
        if bits.load(Ordering::Relaxed) & blocks != 0 {
            clear_bits(Point::FreeBit, bits, blocks);
        }
    }

    /// These free blocks are their finder's from here on, as far as nobody else found them too.
    pub(super) fn keep_back(&self, blocks: &[u32]) {
        let mut runs = Runs::default();
        for &block in blocks {
            if let Some((word, run)) = runs.add(block) {
                self.withdraw_all(word, run);
            }
        }
        self.withdraw_all(runs.word, runs.blocks);
    }

    fn is_free(&self, block: u32) -> bool {
        let record = self.memory.record(block);
        record.is_ok_and(|record| record.state().state() == Some(RecordState::Free))
    }

    /// Says that a block is free that its handle had kept, if it still is.
    pub(super) fn offer_kept(&self, block: u32) {
        if self.is_free(block) {
            self.offer(block);
        }
    }

    /// Checks a candidate; a wrong bit is corrected.
    fn confirm(&self, block: u32) -> bool {
        if block >= self.sizes.blocks {
            return false;
        }
        if self.is_free(block) {
            return true;
        }
        self.withdraw(block);
        // ORDERING: the exchange above comes before this load: who freed the block after our first
        // look and offered it before we withdrew is seen here.
        if self.is_free(block) {
            self.offer(block);
        }
        false
    }

    /// Asks for the first line of a block whose word is going to be changed.
    #[inline(always)]
    pub(super) fn expect_word(&self, block: u32) {
        if let Ok(record) = self.memory.record(block) {
            prefetch_write(record.word());
        }
    }

    /// Asks for the memory of a block that is going to be written.
    pub(super) fn expect_block(&self, block: u32) {
        if let Ok(record) = self.memory.record(block) {
            for word in record.words().iter().step_by(8).take(2) {
                prefetch_write(word);
            }
        }
        if let Some(age) = self.ages.get(block as usize) {
            prefetch_write(age);
        }
    }

    /// Blocks that their handle kept, as far as they are still free: others may find and take them
    /// too.
    pub(super) fn find_kept(&self, kept: &mut Vec<u32>, most: usize, found: &mut Vec<u32>) {
        while found.len() < most {
            let Some(block) = kept.pop() else { return };
            if self.is_free(block) && !found.contains(&block) {
                found.push(block);
            }
        }
    }

    /// Free blocks from `cursor` on, at most `most` in all, behind those that are `found` already:
    /// few, that their handle kept. They belong to nobody yet. Every word of bits is looked at
    /// once, so that no block is found twice (F5).
    pub(super) fn find_free(&self, cursor: u32, most: usize, found: &mut Vec<u32>) {
        let first = cursor as usize / 64;
        let kept = found.len();
        self.search_word(first, most, kept, found);
        let groups = self.summary.len();
        for step in 0..groups {
            if found.len() >= most {
                return;
            }
            let group = (first / 64 + step) % groups;
            // ORDERING: Relaxed: a hint.
            let mut marks = self.summary[group].load(Ordering::Relaxed);
            while marks != 0 && found.len() < most {
                let word = group * 64 + marks.trailing_zeros() as usize;
                marks &= marks - 1;
                if word != first && !self.search_word(word, most, kept, found) {
                    self.unmark(word);
                }
            }
        }
    }

    /// False if the word has no bits at all.
    fn search_word(&self, word: usize, most: usize, kept: usize, found: &mut Vec<u32>) -> bool {
        let Some(place) = self.bits.get(word) else { return false };
        // ORDERING: Acquire; partner: `offer`.
        let bits = place.load(Ordering::Acquire);
        let mut rest = bits;
        // Their words are on their way while the first is looked at.
        if most - found.len().min(most) > 1 {
            let mut ahead = bits;
            while ahead != 0 {
                self.expect_word(word as u32 * 64 + ahead.trailing_zeros());
                ahead &= ahead - 1;
            }
        }
        while rest != 0 && found.len() < most {
            let block = word as u32 * 64 + rest.trailing_zeros();
            rest &= rest - 1;
            if self.confirm(block) && !found[..kept].contains(&block) {
                found.push(block);
            }
        }
        bits != 0
    }

    /// A word of bits is zero: the summary forgets it, unless somebody has just set one.
    fn unmark(&self, word: usize) {
        let (Some(summary), Some(bits)) = (self.summary.get(word / 64), self.bits.get(word)) else {
            return;
        };
        let mark = 1 << (word % 64);
        clear_bits(Point::FreeBit, summary, mark);
        // ORDERING: Acquire: after the exchange above. Who set a bit and saw the mark still there
        // is seen here.
        if bits.load(Ordering::Acquire) != 0 {
            add_bits(Point::FreeBit, summary, mark);
        }
    }

    /// Takes a free block for `seat`. `None` if somebody was faster. Whoever takes it withdraws its
    /// bit, sooner or later.
    pub(super) fn take(&self, seat: u32, block: u32, word: RecordWord) -> Option<Record<'a>> {
        let record = self.memory.record(block).ok()?;
        if !exchange(Point::TakeRecord, record.word(), word.0, word.prepared(seat).0) {
            return None;
        }
        // ORDERING: Release fence: whoever reads a word we store into the block and then passes its
        // own Acquire fence also sees that the generation of the block's last entry has moved on.
        // Partner: the fence in `View::attempt`.
        fence(Ordering::Release);
        Some(record)
    }

    /// Takes a free block to begin an entry with. `None` if somebody was faster.
    pub(super) fn take_head(&self, seat: u32, block: u32, word: RecordWord) -> Option<Record<'a>> {
        let record = self.take(seat, block, word)?;
        self.withdraw(block);
        Some(record)
    }

    /// Takes the further blocks of the entry that begins at `head`, whose word names the first of
    /// them, and fills each while it is at hand. False if somebody was faster with one: those taken
    /// so far are the head's.
    pub(super) fn take_all_further(
        &self,
        seat: u32,
        head: Link,
        named: (&'a AtomicU64, u64),
        blocks: &[u32],
        fill: &mut impl FnMut(Block<'a>),
    ) -> bool {
        let mut taken = 0;
        let mut named = named;
        let mut runs = Runs::default();
        for &block in blocks {
            let Some(next) = self.take_further(seat, head, named, block) else { break };
            named = (next.chain_next_word(), 0);
            fill(next);
            taken += 1;
            if let Some((word, run)) = runs.add(block) {
                self.withdraw_all(word, run);
            }
        }
        self.withdraw_all(runs.word, runs.blocks);
        taken == blocks.len()
    }

    /// Takes a further block for the entry that begins at `head` (F4). `named`: the predecessor's
    /// word for it, and what else that word says.
    fn take_further(
        &self,
        seat: u32,
        head: Link,
        (named, rest): (&AtomicU64, u64),
        block: u32,
    ) -> Option<Block<'a>> {
        let word = self.memory.record(block).ok()?.state();
        if word.state() != Some(RecordState::Free) {
            return None;
        }
        store(Point::NameRecord, named, rest | (block as u64 + 1));
        let Some(record) = self.take(seat, block, word) else {
            store(Point::NameRecord, named, rest);
            return None;
        };
        let further = Block::of(record);
        store_payload(further.chain_next_word(), 0);
        store_payload(further.owner_word(), owner_word(head));
        store(Point::Chain, record.word(), word.chained().0);
        Some(further)
    }

    /// Frees an entry of this generation, live or prepared (F2). Nothing if it is free already.
    pub(super) fn free(&self, point: Point, link: Link, keeps: bool) -> Result<(), MapError> {
        let record = self.memory.record(link.record)?;
        let word = record.state();
        let takable = matches!(word.state(), Some(RecordState::Live | RecordState::Prepared(_)));
        if word.generation() != link.generation || !takable {
            return Ok(());
        }
        let further = match Block::of(record).next_and_space().0 {
            None => Vec::new(),
            Some(_) => chain(self.memory, self.sizes, link)?,
        };
        if let Some(age) = self.ages.get(link.record as usize) {
            store_hint(Point::Age, age, 0);
        }
        if self.sizes.quotas {
            self.drop_payer(link.record);
        }
        if self.sizes.leases {
            store(point, record.word(), word.freed().prepared(LIMBO).0);
            self.leave_limbo(link);
            return Ok(());
        }
        store(point, record.word(), word.freed().0);
        if !keeps {
            self.offer(link.record);
        }
        self.free_further(&further);
        Ok(())
    }

    /// Frees chained blocks as they were seen, as far as nobody else has.
    pub(super) fn free_further(&self, further: &[(u32, u64)]) {
        let mut runs = Runs::default();
        for &(block, word) in further {
            let Ok(record) = self.memory.record(block) else { continue };
            let freed = RecordWord(word).freed().0;
            if !exchange(Point::Unchain, record.word(), word, freed) {
                continue;
            }
            if let Some((word, run)) = runs.add(block) {
                self.offer_all(word, run);
            }
        }
        if runs.blocks != 0 {
            self.offer_all(runs.word, runs.blocks);
        }
    }

    /// Notes the age of a fresh entry, before it is linked: the hand finds every entry.
    pub(super) fn set_age(&self, block: u32, tick: u32, expiry: u64, tier: usize) {
        let age = Age::new(tick, expiry).with_tier(tier);
        if let Some(place) = self.ages.get(block as usize) {
            store_hint(Point::Age, place, age.0);
        }
        if age.deadline() != 0 {
            self.lower_earliest(age);
        }
    }

    /// No entry expires before the earliest deadline, which is kept one on: 0 is none.
    pub(super) fn lower_earliest(&self, age: Age) {
        let earliest = self.global(Global::Earliest);
        // ORDERING: Relaxed: a lower bound, and a hint.
        let mut known = earliest.load(Ordering::Relaxed);
        while age.deadline() < known.wrapping_sub(1) {
            if exchange(Point::Age, earliest, known, age.deadline() + 1) {
                break;
            }
            known = earliest.load(Ordering::Relaxed);
        }
    }
}
