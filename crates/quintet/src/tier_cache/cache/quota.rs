//! Quotas: who has how much in the cache, and what becomes of those who take more.
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
//!
//! For each block a word says who pays for the entry that begins there ([`Payer`]); 0: nobody.
//!
//! **A1.** Who pays is written before an entry is linked, and taken away, by exchange, by whoever
//! frees it: so it is accounted off once.
//! **A2.** Counts are hints. Who is killed between a store and its count leaves them wrong; every
//! orphan sweep counts anew, and so does maintenance every few seconds.
//! **A3.** A quota refuses nothing. Who inserts faster than its limit has that very entry made a
//! *suspect*; who has more than its limit, its oldest ones, as far as a look at a part of the cache
//! shows them, until that is no longer so.
//! **A4.** A suspect lies in the last tier, is found like any other entry, and is not counted any
//! more. Whoever needs room takes suspects first, also in a cache with one tier. It stays a suspect
//! until it leaves or is replaced.
//! **A5.** A namespace pays for what was written in its present life: who clears or removes it has
//! its account begin anew, and what was written before is accounted off its process only.
//! **A6.** The work is the offender's: its own inserts look for what it has to lose.

use super::TierCache;
use super::block::Block;
use super::error::CacheError;
use super::evict::Ring;
use super::handle::Handle;
use super::layout::ACCOUNT_WORDS;
use super::members::Holding;
use super::read::current;
use super::spaces::{Namespace, Space};
use super::view::{Age, Global, View};
use crate::region::shm::Segment;
use crate::sync::{AtomicU64, Ordering};
use crate::tier_cache::memory::MAX_TIERS;
use crate::tier_cache::step::{Point, add, exchange, store_hint};
use crate::tier_cache::word::{Link, Owner, RecordState};

/// What somebody may have in a cache, and how fast it may fill it. Without a limit, whatever there
/// is room for.
///
/// Nothing is refused: what is beyond a quota leaves before anything else does, as soon as somebody
/// needs the room.
///
/// ```
/// use quintet::cache::Quota;
///
/// let quota = Quota::default().entries(10_000).inserts_per_second(500);
/// assert_eq!((quota.entries, quota.bytes, quota.inserts_per_second), (Some(10_000), None, Some(500)));
/// assert!(!quota.is_unlimited() && Quota::default().is_unlimited());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Quota {
    /// The most entries.
    pub entries: Option<u64>,
    /// The most bytes of their blocks; whole blocks count.
    pub bytes: Option<u64>,
    /// The most inserts in a second.
    pub inserts_per_second: Option<u32>,
}

impl Quota {
    /// At most so many entries.
    #[must_use]
    pub fn entries(self, most: u64) -> Self {
        Self { entries: Some(most), ..self }
    }

    /// At most so many bytes of blocks.
    #[must_use]
    pub fn bytes(self, most: u64) -> Self {
        Self { bytes: Some(most), ..self }
    }

    /// At most so many inserts in a second.
    #[must_use]
    pub fn inserts_per_second(self, most: u32) -> Self {
        Self { inserts_per_second: Some(most), ..self }
    }

    /// There is no limit.
    pub fn is_unlimited(self) -> bool {
        self == Self::default()
    }
}

const ENTRIES: usize = 3;
const BLOCKS: usize = 4;
const RATE: usize = 5;
const SUSPECTED: usize = 6;
/// Words of payers that one look takes in, what it keeps of them, and the looks of one search.
const STRETCH: usize = 1024;
const KEPT: usize = 16;
const LOOKS: usize = 8;
/// Entries that one insert makes suspects for being too many: one for itself, one to catch up.
const SUSPECTS_PER_SET: usize = 2;
/// The ring of suspects comes behind those of the tiers.
pub(super) const SUSPECTS: usize = MAX_TIERS;
/// Who has looked for suspects in vain looks again at one call in so many.
const VAIN_CALLS: usize = 64;
/// Between two counts by maintenance.
const AUDIT_MS: u64 = 10_000;

/// Who pays for an entry: 63 it is a suspect, 62..47 namespace, 46..33 slot of the process and one,
/// 32..20 its blocks, 19..0 the end of the incarnation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Payer(u64);

const SUSPECT: u64 = 1 << 63;
const INCARNATION: u64 = (1 << 20) - 1;

impl Payer {
    fn new(space: u32, process: Owner, blocks: usize) -> Self {
        let slot = (process.slot() as u64).wrapping_add(1) & 0x3fff;
        let whose = (space as u64 & 0xffff) << 47 | slot << 33;
        Self(whose | code(blocks as u64) << 20 | process.incarnation() & INCARNATION)
    }

    fn is_suspect(self) -> bool {
        self.0 & SUSPECT != 0
    }

    fn space(self) -> u32 {
        (self.0 >> 47) as u32 & 0xffff
    }

    fn slot(self) -> usize {
        ((self.0 >> 33) as usize & 0x3fff).wrapping_sub(1)
    }

    /// The entry counts for this process, not for an earlier one of its slot.
    fn is_of(self, process: Owner) -> bool {
        self.slot() == process.slot() && (self.0 ^ process.incarnation()) & INCARNATION == 0
    }

    fn blocks(self) -> u64 {
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

/// Whose entries are too many.
#[derive(Clone, Copy)]
enum Who {
    Space(u32),
    Process(Owner),
}

impl<'a> View<'a> {
    fn account(&self, number: usize) -> Option<&'a [AtomicU64]> {
        let from = number.checked_mul(ACCOUNT_WORDS)?;
        self.accounts.get(from..from.checked_add(ACCOUNT_WORDS)?)
    }

    /// Account and limits of a namespace or a process.
    fn account_of(&self, who: Who) -> Option<(&'a [AtomicU64], &'a [AtomicU64])> {
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

    /// A1: who pays for the entry that begins here.
    pub(super) fn set_payer(&self, block: u32, space: Space, process: Owner, blocks: usize) {
        let payer = Payer::new(space.number(), process, blocks).0;
        let payer = if Space::is_flight(space.number()) { 0 } else { payer };
        if let Some(place) = self.payers.get(block as usize) {
            store_hint(Point::Account, place, payer);
        }
    }

    /// A1: nobody pays any more. `live`: it was counted.
    #[cold]
    pub(super) fn drop_payer(&self, block: u32, live: bool) {
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
            payer if payer.is_suspect() => {
                _ = add(Point::Account, self.global(Global::Suspects), u64::MAX)
            }
            payer if live => self.book(payer, self.is_of_this_life(block), u64::MAX),
            _ => {}
        }
    }

    /// Books an entry on or off: `by` is 1 or -1. `of_space`: its namespace pays for it (A5).
    fn book(&self, payer: Payer, of_space: bool, by: u64) {
        let space = Some(Who::Space(payer.space())).filter(|_| of_space);
        let space = space.and_then(|space| self.account_of(space));
        let process = self.member(payer.slot()).filter(|process| payer.is_of(*process));
        let process = process.and_then(|process| self.account_of(Who::Process(process)));
        for (account, _) in [space, process].into_iter().flatten() {
            add(Point::Account, &account[ENTRIES], by);
            add(Point::Account, &account[BLOCKS], by.wrapping_mul(payer.blocks()));
        }
    }

    /// The entry that begins here was written since its namespace was last cleared (A5). To be
    /// asked before somebody may free it.
    fn is_of_this_life(&self, block: u32) -> bool {
        self.memory.record(block).is_ok_and(|record| {
            let block = Block::of(record);
            self.space_written_in(block, block.meta()).is_some()
        })
    }

    /// A namespace was cleared or removed: it has nothing (A5).
    pub(super) fn empty_space_account(&self, number: u32) {
        if let Some((account, _)) = self.account_of(Who::Space(number)) {
            [ENTRIES, BLOCKS].iter().for_each(|at| store_hint(Point::Account, &account[*at], 0));
        }
    }

    /// Entries and blocks of an account, which may be behind (A2).
    fn booked(account: &[AtomicU64]) -> [u64; 2] {
        // ORDERING: Relaxed: hints.
        [ENTRIES, BLOCKS].map(|at| (account[at].load(Ordering::Relaxed) as i64).max(0) as u64)
    }

    fn limits(limits: &[AtomicU64]) -> [Option<u64>; 3] {
        // ORDERING: Relaxed: who sees a new limit late holds to the old one.
        [0, 1, 2].map(|at| limits[at].load(Ordering::Relaxed).checked_sub(1))
    }

    fn is_over(&self, who: Who) -> bool {
        let Some((account, limits)) = self.account_of(who) else { return false };
        let ([entries, blocks], limits) = (Self::booked(account), Self::limits(limits));
        limits[0].is_some_and(|most| entries > most) || limits[1].is_some_and(|most| blocks > most)
    }

    /// One more insert in this second: is it beyond the limit? The clock is looked at, where there
    /// is one: a handle that was idle has an old second in mind.
    fn is_too_fast(&self, who: Who) -> bool {
        let Some((account, limits)) = self.account_of(who) else { return false };
        let Some(most) = Self::limits(limits)[2] else { return false };
        let second = (Segment::wall_ms() / 1000) as u32;
        loop {
            // ORDERING: Relaxed: the exchange decides.
            let seen = account[RATE].load(Ordering::Relaxed);
            // Others may have looked at the clock a little later; one that was set back by more
            // begins anew.
            let behind = ((seen >> 32) as u32).wrapping_sub(second);
            let next = if behind <= 2 { seen.wrapping_add(1) } else { (second as u64) << 32 | 1 };
            if exchange(Point::Account, &account[RATE], seen, next) {
                return next as u32 as u64 > most;
            }
        }
    }

    /// Marks an entry as a suspect (A4). False if it is one, or is gone.
    fn mark_suspect(&self, link: Link) -> bool {
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
        add(Point::Account, self.global(Global::Suspects), 1);
        self.book(payer, of_space, u64::MAX);
        let process = self.member(payer.slot()).filter(|process| payer.is_of(*process));
        for who in [Some(Who::Space(payer.space())), process.map(Who::Process)] {
            if let Some((account, _)) = who.and_then(|who| self.account_of(who)) {
                add(Point::Account, &account[SUSPECTED], 1);
            }
        }
        true
    }

    fn suspects(&self) -> u64 {
        // ORDERING: Relaxed: a hint.
        let count = self.global(Global::Suspects).load(Ordering::Relaxed);
        (count as i64).max(0) as u64
    }

    /// The oldest of those entries that are wanted, in the stretch from `hand` on, which moves on;
    /// as far as the array of ages knows.
    fn seek_payer(
        &self,
        hand: &mut usize,
        wanted: impl Fn(u32, Payer) -> bool,
        but: &[u32],
        ring: &mut Ring,
    ) {
        let blocks = self.payers.len();
        let stretch = blocks.min(STRETCH);
        let tick = self.tick();
        let mut found: Vec<(u32, u32)> = Vec::new();
        for _ in 0..stretch {
            let block = if *hand < blocks { *hand } else { 0 };
            *hand = block + 1;
            // ORDERING: Relaxed: hints.
            let payer = Payer(self.payers[block].load(Ordering::Relaxed));
            if payer.0 == 0 || !wanted(block as u32, payer) || but.contains(&(block as u32)) {
                continue;
            }
            let age = Age(self.ages[block].load(Ordering::Relaxed));
            if age.is_entry() {
                found.push((tick.wrapping_sub(age.tick()), block as u32));
            }
        }
        found.sort_unstable();
        let oldest = found.len().saturating_sub(KEPT);
        ring.add_entries(self, found[oldest..].iter().map(|(_, block)| *block));
    }

    /// Counts everything anew (A2).
    pub(super) fn recount_accounts(&self) {
        if !self.sizes.quotas {
            return;
        }
        let mut counts = vec![[0u64; 2]; self.accounts.len() / ACCOUNT_WORDS];
        let mut suspects = 0;
        let spaces = self.sizes.spaces as usize;
        // ORDERING: Acquire; partner: the flush, which says so before the next life begins.
        let flushed = self.global(Global::Flushed).load(Ordering::Acquire) != 0;
        for (block, (payer, age)) in self.payers.iter().zip(self.ages).enumerate() {
            // ORDERING: Relaxed: hints.
            let payer = Payer(payer.load(Ordering::Relaxed));
            if payer.0 == 0 || !Age(age.load(Ordering::Relaxed)).is_entry() {
                continue;
            }
            if payer.is_suspect() {
                suspects += 1;
                continue;
            }
            let process = self.member(payer.slot()).filter(|process| payer.is_of(*process));
            let process = process.map(|process| spaces + process.slot());
            let space = Some(payer.space() as usize);
            let space = space.filter(|_| !flushed || self.is_of_this_life(block as u32));
            for number in [space, process].into_iter().flatten() {
                if let Some([entries, blocks]) = counts.get_mut(number) {
                    *entries += 1;
                    *blocks += payer.blocks();
                }
            }
        }
        for (account, [entries, blocks]) in self.accounts.chunks_exact(ACCOUNT_WORDS).zip(counts) {
            store_hint(Point::Account, &account[ENTRIES], entries);
            store_hint(Point::Account, &account[BLOCKS], blocks);
        }
        store_hint(Point::Account, self.global(Global::Suspects), suspects);
    }

    fn holding(&self, who: Who) -> Option<Holding> {
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

    /// What a namespace has in the cache and may have, if accounts are kept.
    pub(super) fn account_of_space(&self, number: u32) -> Option<(Holding, Quota)> {
        let who = Who::Space(number);
        Some((self.holding(who)?, self.quota(who)))
    }

    fn quota(&self, who: Who) -> Quota {
        let Some((_, limits)) = self.account_of(who) else { return Quota::default() };
        let [entries, blocks, inserts] = Self::limits(limits);
        Quota {
            entries,
            bytes: blocks.map(|blocks| blocks.saturating_mul(self.sizes.block_words as u64 * 8)),
            inserts_per_second: inserts.map(|inserts| inserts.min(u32::MAX as u64) as u32),
        }
    }

    fn set_quota(&self, limits: &[AtomicU64], quota: Quota) {
        let block = self.sizes.block_words as u64 * 8;
        let words = [
            quota.entries,
            quota.bytes.map(|bytes| bytes / block),
            quota.inserts_per_second.map(u64::from),
        ];
        for (place, limit) in limits.iter().zip(words) {
            store_hint(Point::Account, place, limit.map_or(0, |most| most.saturating_add(1)));
        }
    }
}

impl Handle<'_> {
    /// After a set: it is booked, and who has too much now, or is too fast, loses by it (A3).
    #[inline(never)]
    pub(super) fn charge(&mut self, link: Link, space: Space, blocks: usize) {
        let view = self.view;
        if Space::is_flight(space.number()) {
            return;
        }
        // Its block may be somebody else's by now: then that has been booked off.
        let lives = view.generation_for(space).is_some();
        view.book(Payer::new(space.number(), self.owner, blocks), lives, 1);
        let both = [Who::Space(space.number()), Who::Process(self.owner)];
        // Both count it.
        let fast = both.map(|who| view.is_too_fast(who));
        if fast.contains(&true) {
            return self.suspect(link);
        }
        for who in both {
            for _ in 0..SUSPECTS_PER_SET {
                if !view.is_over(who) {
                    break;
                }
                let oldest = self.oldest_of(who).unwrap_or(link);
                self.suspect(oldest);
            }
        }
    }

    /// An entry becomes a suspect: it leaves first, and lies in the last tier (A4).
    fn suspect(&mut self, link: Link) {
        if self.view.mark_suspect(link) {
            self.sink_to_the_last_tier(link);
        }
    }

    /// The oldest entry of somebody who has too many, as far as a few looks show.
    fn oldest_of(&mut self, who: Who) -> Option<Link> {
        let view = self.view;
        let wanted = |block: u32, payer: Payer| {
            !payer.is_suspect()
                && match who {
                    Who::Space(number) => payer.space() == number && view.is_of_this_life(block),
                    Who::Process(process) => payer.is_of(process),
                }
        };
        let ring = match who {
            Who::Space(_) => &mut self.offenders[0],
            Who::Process(_) => &mut self.offenders[1],
        };
        for _ in 0..LOOKS {
            while let Some(link) = ring.pop_current(view) {
                // ORDERING: Relaxed: a hint.
                let payer = view.payers.get(link.record as usize);
                let payer = payer.map_or(0, |payer| payer.load(Ordering::Relaxed));
                if payer != 0 && wanted(link.record, Payer(payer)) {
                    return Some(link);
                }
            }
            view.seek_payer(&mut self.quota_hand, wanted, &[], ring);
        }
        ring.pop_current(view)
    }

    /// The next suspect that is not shunned, if there is one within a few looks (A4).
    pub(super) fn next_suspect(&mut self, shunned: &[u32]) -> Option<Link> {
        let view = self.view;
        if !view.sizes.quotas {
            return None;
        }
        let known = view.suspects();
        if known == 0 || self.looks_in_vain(known) {
            return None;
        }
        let ring = &mut self.rings[SUSPECTS];
        let looks = view.payers.len().div_ceil(STRETCH).min(LOOKS);
        for look in 0..=looks {
            while let Some(link) = ring.pop_current(view) {
                if !shunned.contains(&link.record) {
                    self.vain_looks = 0;
                    return Some(link);
                }
            }
            if look < looks {
                let wanted = |_, payer: Payer| payer.is_suspect();
                view.seek_payer(&mut self.quota_hand, wanted, shunned, ring);
                self.vain_looks += usize::from(shunned.is_empty());
            }
        }
        None
    }

    /// Everything was looked at in vain while so many suspects were known. Either others have just
    /// taken them, or somebody was killed before he could say so: that the next count puts right
    /// (A2). Until the number changes, one call in many looks.
    fn looks_in_vain(&mut self, known: u64) -> bool {
        if self.vain_count != known {
            (self.vain_count, self.vain_looks) = (known, 0);
        }
        let all = self.view.payers.len().div_ceil(STRETCH);
        let is_vain = self.vain_looks > all;
        self.vain_looks += usize::from(is_vain);
        is_vain && self.vain_looks % VAIN_CALLS != 0
    }

    /// Maintenance counts anew now and then (A2).
    pub(super) fn audit(&mut self) {
        let now = super::clock::monotonic_ms();
        if self.view.sizes.quotas && now.wrapping_sub(self.audited) >= AUDIT_MS {
            self.audited = now;
            self.view.recount_accounts();
        }
    }
}

impl TierCache {
    fn accounts(&self) -> Result<&View<'_>, CacheError> {
        match (self.sizes.quotas, self.segment.is_writable()) {
            (false, _) => Err(CacheError::NoQuotas),
            (_, false) => Err(CacheError::ReadOnly),
            _ => Ok(self.view()),
        }
    }

    /// Holds a namespace to a quota, from now on and for all processes; [`Quota::default`] lifts
    /// it. What it has beyond that becomes suspect with its next inserts: it leaves before anything
    /// else, as soon as somebody needs the room. The cache must have been made with
    /// [`CacheBuilder::quotas`](super::CacheBuilder::quotas).
    ///
    /// ```
    /// use quintet::cache::{Quota, TierCache};
    ///
    /// let cache = TierCache::builder().capacity(1 << 20).quotas().create_sealed()?;
    /// let guests = cache.namespace("guests")?;
    /// cache.set_quota(guests, Quota::default().entries(10))?;
    /// let mut handle = cache.handle()?;
    /// handle.set_namespace(guests);
    /// for number in 0..100 {
    ///     handle.insert(format!("key {number}"), "value")?;
    /// }
    /// let of_guests = &cache.namespace_stats()[1];
    /// // All are still there, since nobody needs the room; ten of them are not suspects.
    /// assert_eq!((of_guests.entries, of_guests.holds.map(|holds| holds.entries)), (100, Some(10)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_quota(&self, space: Namespace, quota: Quota) -> Result<(), CacheError> {
        let view = self.accounts()?;
        view.generation_for(space.0).ok_or(CacheError::NoNamespace)?;
        let account = view.account_of(Who::Space(space.0.number()));
        let (_, limits) = account.ok_or(CacheError::NoNamespace)?;
        view.set_quota(limits, quota);
        Ok(())
    }

    /// What a namespace is held to.
    pub fn quota(&self, space: Namespace) -> Quota {
        let view = self.view();
        match view.generation_for(space.0) {
            Some(_) => view.quota(Who::Space(space.0.number())),
            None => Quota::default(),
        }
    }

    /// Holds each process to a quota, the same for all of them, from now on; [`Quota::default`]
    /// lifts it. See [`TierCache::set_quota`].
    ///
    /// ```
    /// use quintet::cache::{Quota, TierCache};
    ///
    /// let cache = TierCache::builder().capacity(1 << 20).quotas().create_sealed()?;
    /// cache.set_process_quota(Quota::default().inserts_per_second(1000).bytes(512 << 10))?;
    /// assert_eq!(cache.process_quota().inserts_per_second, Some(1000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_process_quota(&self, quota: Quota) -> Result<(), CacheError> {
        let view = self.accounts()?;
        if let Some(limits) = view.account(view.sizes.accounts() - 1) {
            view.set_quota(limits, quota);
        }
        Ok(())
    }

    /// What each process is held to.
    pub fn process_quota(&self) -> Quota {
        let view = self.view();
        view.quota(Who::Process(Owner::new(0, 0)))
    }

    /// Entries beyond the quotas of whoever they belong to, as far as is known: they leave first.
    pub fn suspects(&self) -> u64 {
        self.view().suspects()
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
