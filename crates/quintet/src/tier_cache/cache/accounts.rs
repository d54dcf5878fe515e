//! Accounts: who has how much in the cache.
//!
//! Where a cache keeps accounts, each namespace has one under its number, behind them each process
//! under that of its slot, and behind these lies one whose limits are those of every process.
//!
//! | word of an account | |
//! |---|---|
//! | 0 | most entries, one on; 0: no limit |
//! | 1 | most blocks, one on |
//! | 2 | most inserts in a second, one on |
//! | 3 | entries |
//! | 4 | blocks |
//! | 5 | 63..32 a second, 31..0 inserts in it |
//! | 6 | entries that became suspects, ever |
//! | 7 | blocks that were booked on or off, ever |
//!
//! For each block a word says who pays for the entry that begins there ([`Payer`]); 0: nobody.
//!
//! **A1.** Who pays is written, and booked, before an entry is linked, and taken away, by exchange,
//! by whoever frees it: so it is accounted off once. This holds for whatever takes blocks but
//! flights: entries, what a lookup brings in from the store, marks of removals and of absence.
//! **A2.** Counts are hints. Who is killed between a store and its count leaves them wrong, and so
//! may who inserts while its namespace is cleared: then a count is *due*. It is made by the orphan
//! sweep that follows a death, by maintenance, and by who inserts, some seconds apart, until one
//! has met nobody at work. What was booked while it looked is its margin of error: within that it
//! leaves an account as it is.
//! **A3.** A namespace pays for what was written in its present life: who clears or removes it has
//! its account begin anew, and what was written before is accounted off its process only.

use super::block::Block;
use super::layout::ACCOUNT_WORDS;
use super::members::Holding;
use super::read::current;
use super::spaces::Space;
use super::view::{Global, View};
use crate::sync::{AtomicU64, Ordering};
use crate::tier_cache::step::{Point, add, exchange, store_hint};
use crate::tier_cache::word::{Link, Owner, RecordState};

const ENTRIES: usize = 3;
const BLOCKS: usize = 4;
pub(super) const RATE: usize = 5;
const SUSPECTED: usize = 6;
const CHANGES: usize = 7;

/// Who pays for an entry: 63 it is a suspect, 62..47 namespace, 46..33 slot of the process and one,
/// 32..20 its blocks, 19..0 the end of the incarnation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Payer(pub(super) u64);

const SUSPECT: u64 = 1 << 63;
const INCARNATION: u64 = (1 << 20) - 1;

impl Payer {
    pub(super) fn new(space: u32, process: Owner, blocks: usize) -> Self {
        let slot = (process.slot() as u64).wrapping_add(1) & 0x3fff;
        let whose = (space as u64 & 0xffff) << 47 | slot << 33;
        Self(whose | code(blocks as u64) << 20 | process.incarnation() & INCARNATION)
    }

    pub(super) fn is_suspect(self) -> bool {
        self.0 & SUSPECT != 0
    }

    pub(super) fn space(self) -> u32 {
        (self.0 >> 47) as u32 & 0xffff
    }

    pub(super) fn slot(self) -> usize {
        ((self.0 >> 33) as usize & 0x3fff).wrapping_sub(1)
    }

    /// The entry counts for this process, not for an earlier one of its slot.
    pub(super) fn is_of(self, process: Owner) -> bool {
        self.slot() == process.slot() && (self.0 ^ process.incarnation()) & INCARNATION == 0
    }

    pub(super) fn blocks(self) -> u64 {
        (self.0 >> 20 & 0xff) << (self.0 >> 28 & 0x1f)
    }
}

/// A number of blocks in 13 bits: eight of them, and by how many they are shifted. Rounded up by
/// less than a 127th.
fn code(blocks: u64) -> u64 {
    let blocks = blocks.clamp(1, 1 << 31);
    let shift = 64u32.saturating_sub(blocks.leading_zeros()).saturating_sub(8) as u64;
    let kept = blocks.div_ceil(1 << shift);
    if kept < 256 { shift << 8 | kept } else { (shift + 1) << 8 | 128 }
}

/// Puts a count right that is further from what was counted than what changed meanwhile (A2).
fn correct(place: &AtomicU64, counted: u64, changed: u64) {
    // ORDERING: Relaxed: a hint.
    let off = counted.wrapping_sub(place.load(Ordering::Relaxed));
    if (off as i64).unsigned_abs() > changed {
        add(Point::Account, place, off);
    }
}

/// Whose entries are too many.
#[derive(Clone, Copy)]
pub(super) enum Who {
    Space(u32),
    Process(Owner),
}

impl<'a> View<'a> {
    pub(super) fn account(&self, number: usize) -> Option<&'a [AtomicU64]> {
        let from = number.checked_mul(ACCOUNT_WORDS)?;
        self.accounts.get(from..from.checked_add(ACCOUNT_WORDS)?)
    }

    /// Account and limits of a namespace or a process.
    pub(super) fn account_of(&self, who: Who) -> Option<(&'a [AtomicU64], &'a [AtomicU64])> {
        let (spaces, processes) = (self.sizes.spaces as usize, self.sizes.processes as usize);
        match who {
            Who::Space(number) if (number as usize) < spaces => {
                let account = self.account(number as usize)?;
                Some((account, account))
            }
            Who::Process(process) if process.slot() < processes => {
                Some((self.account(spaces + process.slot())?, self.account(spaces + processes)?))
            }
            _ => None,
        }
    }

    /// The account of each process begins empty.
    pub(super) fn open_account(&self, process: Owner) {
        let account = self.account_of(Who::Process(process)).map_or(&[][..], |account| account.0);
        account.iter().for_each(|word| store_hint(Point::Account, word, 0));
    }

    /// A namespace that is made has no limits yet.
    pub(super) fn open_space_account(&self, number: u32) {
        let account = self.account_of(Who::Space(number)).map_or(&[][..], |account| account.0);
        account.iter().for_each(|word| store_hint(Point::Account, word, 0));
    }

    /// A block is taken to begin an entry with. Somebody who was killed may have left a payer.
    pub(super) fn forget_payer(&self, block: u32) {
        let left = self.payers.get(block as usize);
        // ORDERING: Relaxed: only who has the block writes here, or whoever marks a suspect, which
        // an exchange with what was there before decides.
        if let Some(place) = left.filter(|place| place.load(Ordering::Relaxed) != 0) {
            store_hint(Point::Account, place, 0);
        }
    }

    /// A1: who pays for the entry that begins here, written in this generation of its namespace.
    pub(super) fn set_payer(&self, block: u32, of: (Space, u32), process: Owner, blocks: usize) {
        let (space, generation) = of;
        let Some(place) = self.payers.get(block as usize) else { return };
        if Space::is_flight(space.number()) {
            return;
        }
        let payer = Payer::new(space.number(), process, blocks);
        store_hint(Point::Account, place, payer.0);
        self.book(payer, self.generation_for(space) == Some(generation), 1);
    }

    /// A1: nobody pays any more.
    #[cold]
    pub(super) fn drop_payer(&self, block: u32) {
        let Some(place) = self.payers.get(block as usize) else { return };
        let payer = loop {
            // ORDERING: Relaxed: the exchange decides.
            let seen = place.load(Ordering::Relaxed);
            if seen == 0 || exchange(Point::Account, place, seen, 0) {
                break Payer(seen);
            }
        };
        match payer {
            Payer(0) => {}
            payer if payer.is_suspect() => self.count_suspect(u64::MAX),
            payer => self.book(payer, self.is_of_this_life(block), u64::MAX),
        }
    }

    /// Books an entry on or off: `by` is 1 or -1. `of_space`: its namespace pays for it (A3).
    fn book(&self, payer: Payer, of_space: bool, by: u64) {
        let space = Some(Who::Space(payer.space())).filter(|_| of_space);
        let space = space.and_then(|space| self.account_of(space));
        let process = self.member(payer.slot()).filter(|process| payer.is_of(*process));
        let process = process.and_then(|process| self.account_of(Who::Process(process)));
        for (account, _) in [space, process].into_iter().flatten() {
            add(Point::Account, &account[CHANGES], payer.blocks());
            add(Point::Account, &account[ENTRIES], by);
            add(Point::Account, &account[BLOCKS], by.wrapping_mul(payer.blocks()));
        }
    }

    /// One suspect more or less: `by` is 1 or -1.
    fn count_suspect(&self, by: u64) {
        add(Point::Account, self.global(Global::SuspectChanges), 1);
        add(Point::Account, self.global(Global::Suspects), by);
    }

    /// The entry that begins here was written since its namespace was last cleared (A3). To be
    /// asked before somebody may free it.
    pub(super) fn is_of_this_life(&self, block: u32) -> bool {
        self.memory.record(block).is_ok_and(|record| {
            let block = Block::of(record);
            self.space_written_in(block, block.meta()).is_some()
        })
    }

    /// A namespace was cleared or removed: it has nothing (A3).
    pub(super) fn empty_space_account(&self, number: u32) {
        if let Some((account, _)) = self.account_of(Who::Space(number)) {
            [ENTRIES, BLOCKS].iter().for_each(|at| store_hint(Point::Account, &account[*at], 0));
            self.doubt_accounts();
        }
    }

    /// Somebody may have been about to change an account (A2).
    pub(super) fn doubt_accounts(&self) {
        if self.sizes.quotas {
            add(Point::Account, self.global(Global::AccountsDue), 1);
        }
    }

    /// How often accounts came into doubt since they were last counted; 0: they are right.
    pub(super) fn doubts(&self) -> u64 {
        // ORDERING: Relaxed: noticed soon enough.
        self.global(Global::AccountsDue).load(Ordering::Relaxed)
    }

    /// Entries and blocks of an account, which may be behind (A2).
    pub(super) fn booked(account: &[AtomicU64]) -> [u64; 2] {
        // ORDERING: Relaxed: hints.
        [ENTRIES, BLOCKS].map(|at| (account[at].load(Ordering::Relaxed) as i64).max(0) as u64)
    }

    /// Marks an entry as a suspect (`quota` Q2). False if it is one, or is gone.
    pub(super) fn mark_suspect(&self, link: Link) -> bool {
        let Some(place) = self.payers.get(link.record as usize) else { return false };
        // ORDERING: Relaxed: the exchange decides. If the block is another entry's of the same
        // payer by then, that is marked.
        let payer = Payer(place.load(Ordering::Relaxed));
        let lives = current(self, link)
            .is_some_and(|record| record.state().state() == Some(RecordState::Live));
        let of_space = self.is_of_this_life(link.record);
        if payer.0 == 0
            || payer.is_suspect()
            || !lives
            || !exchange(Point::Account, place, payer.0, payer.0 | SUSPECT)
        {
            return false;
        }
        self.count_suspect(1);
        self.book(payer, of_space, u64::MAX);
        let process = self.member(payer.slot()).filter(|process| payer.is_of(*process));
        for who in [Some(Who::Space(payer.space())), process.map(Who::Process)] {
            if let Some((account, _)) = who.and_then(|who| self.account_of(who)) {
                add(Point::Account, &account[SUSPECTED], 1);
            }
        }
        true
    }

    pub(super) fn suspects(&self) -> u64 {
        // ORDERING: Relaxed: a hint.
        let count = self.global(Global::Suspects).load(Ordering::Relaxed);
        (count as i64).max(0) as u64
    }

    /// What was booked on any account, and of suspects, ever.
    fn changes(&self) -> Vec<u64> {
        let of = |account: &[AtomicU64]| account[CHANGES].load(Ordering::Relaxed);
        // ORDERING: Relaxed, as above: a count that only grows, of what others do meanwhile.
        let suspects = self.global(Global::SuspectChanges).load(Ordering::Relaxed);
        self.accounts.chunks_exact(ACCOUNT_WORDS).map(of).chain([suspects]).collect()
    }

    /// Counts everything anew (A2).
    pub(super) fn recount_accounts(&self) {
        if !self.sizes.quotas {
            return;
        }
        let (doubts, before) = (self.doubts(), self.changes());
        let (counts, suspects) = self.count_payers();
        let changed: Vec<u64> =
            self.changes().iter().zip(before).map(|(now, then)| now.wrapping_sub(then)).collect();
        let accounts = self.accounts.chunks_exact(ACCOUNT_WORDS);
        for ((account, counted), changed) in accounts.zip(counts).zip(&changed) {
            correct(&account[ENTRIES], counted[0], *changed);
            correct(&account[BLOCKS], counted[1], *changed);
        }
        let of_suspects = changed.last().copied().unwrap_or(0);
        correct(self.global(Global::Suspects), suspects, of_suspects);
        if changed.iter().all(|changed| *changed == 0) {
            // Fails if there are new doubts.
            exchange(Point::Account, self.global(Global::AccountsDue), doubts, 0);
        }
    }

    /// The entries and blocks that each account pays for, and the suspects, by a look at all.
    fn count_payers(&self) -> (Vec<[u64; 2]>, u64) {
        let mut counts = vec![[0u64; 2]; self.accounts.len() / ACCOUNT_WORDS];
        let mut suspects = 0;
        let spaces = self.sizes.spaces as usize;
        for (block, payer) in self.payers.iter().enumerate() {
            // ORDERING: Relaxed: hints.
            let payer = Payer(payer.load(Ordering::Relaxed));
            if payer.0 == 0 || !self.begins_entry(block as u32) {
                continue;
            }
            if payer.is_suspect() {
                suspects += 1;
                continue;
            }
            let process = self.member(payer.slot()).filter(|process| payer.is_of(*process));
            let process = process.map(|process| spaces + process.slot());
            let space = Some(payer.space() as usize);
            let space = space.filter(|_| self.is_of_this_life(block as u32));
            for number in [space, process].into_iter().flatten() {
                if let Some([entries, blocks]) = counts.get_mut(number) {
                    *entries += 1;
                    *blocks += payer.blocks();
                }
            }
        }
        (counts, suspects)
    }

    /// An entry begins here, or is being prepared: not only what somebody left who was killed.
    fn begins_entry(&self, block: u32) -> bool {
        let state = self.memory.record(block).ok().and_then(|record| record.state().state());
        matches!(state, Some(RecordState::Live | RecordState::Prepared(_)))
    }

    pub(super) fn holding(&self, who: Who) -> Option<Holding> {
        let (account, _) = self.account_of(who)?;
        let [entries, blocks] = Self::booked(account);
        // ORDERING: Relaxed: a count.
        let suspected = account[SUSPECTED].load(Ordering::Relaxed);
        let bytes = blocks.saturating_mul(self.sizes.block_words as u64 * 8);
        Some(Holding { entries, bytes, suspected })
    }

    /// What a process has in the cache, if accounts are kept.
    pub(super) fn holding_of(&self, process: Owner) -> Option<Holding> {
        self.holding(Who::Process(process))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a payer says is what it was told, up to the rounding of long entries.
    #[test]
    fn payers_say_what_they_were_told() {
        for blocks in (1..2000).chain([4095, 4096, 4097, 65_535, 1 << 20, (1 << 23) + 1]) {
            let payer = Payer::new(65_535, Owner::new(8191, 77), blocks);
            assert_eq!((payer.space(), payer.slot()), (65_535, 8191));
            assert!(payer.is_of(Owner::new(8191, 77)) && !payer.is_of(Owner::new(8191, 78)));
            assert!(!payer.is_suspect() && Payer(payer.0 | SUSPECT).is_suspect());
            let kept = payer.blocks() as usize;
            assert!(kept >= blocks && kept - blocks <= blocks / 127, "{blocks}: {kept}");
        }
    }
}
