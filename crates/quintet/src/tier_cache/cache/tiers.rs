//! Tiers: who moves down, and when; who moves up; what each tier holds.
//!
//! All tiers share the blocks. A tier has its *share* of them, the same for each: while it holds
//! more, each set moves some of its oldest to the next one, which is a move of a cell in the map
//! below and touches no bytes. The last tier only loses entries, to whoever needs room.
//!
//! **M1.** What lies in which tier is in the cells, and what each seat changed of it in its counts:
//! both are exact, whoever dies.
//! **M2.** The array of ages says the tier of an entry as far as it knows, and a word for each tier
//! how many blocks it holds, as far as handles have reported: hints. Who finds that an entry lies
//! elsewhere corrects the array; every orphan sweep counts the blocks anew.
//! **M3.** A set has taken effect before anybody moves for its sake: what goes wrong then is not
//! its failure, and the next one tries again.
//! **M4.** Age decides who moves first, not whether somebody does: a tier with too many loses its
//! oldest, however young they are. What was not used for the *cooling* time is moved by
//! maintenance, however few there are.

use super::TierCache;
use super::block::Block;
use super::error::CacheError;
use super::handle::Handle;
use super::stats::Count;
use super::view::{Age, Global, View};
use crate::sync::{AtomicU64, Ordering};
use crate::tier_cache::MapError;
use crate::tier_cache::memory::MAX_TIERS;
use crate::tier_cache::plan::{Plan, Shift, Task, Verdict, Way};
use crate::tier_cache::step::{Point, add, exchange, store_hint};
use crate::tier_cache::word::{Link, RecordState};
use std::time::Duration;

/// Entries that one set moves down from each tier at most: one for itself, one to catch up.
const MOVES_PER_SET: usize = 2;
/// Victims that turn out not to be movable before a set gives up, and those that turn out to lie
/// elsewhere.
const TRIES: usize = 4;
const CORRECTIONS: usize = 256;

/// What a tier holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TierStats {
    /// Entries, those that have expired unnoticed included.
    pub entries: u64,
    /// Bytes of their blocks, as far as handles have reported them.
    pub bytes: u64,
    /// Lookups that found their key here.
    pub hits: u64,
    /// Entries that moved from here to the next tier.
    pub demoted: u64,
    /// No entry here was unused for longer, as far as is known. `None`: there is none.
    pub oldest: Option<Duration>,
    /// Every entry here was unused for at least so long, as far as is known.
    pub newest: Option<Duration>,
}

/// Changes of tiers that a plan makes, with the blocks they are about.
#[derive(Default)]
pub(super) struct Shifted {
    blocks: [i64; MAX_TIERS],
    moved: [Option<(Link, u8, u8)>; MAX_TIERS],
}

/// What became of an entry that should move.
enum Moved {
    Yes,
    /// It lies in another tier: the array of ages has been corrected.
    Elsewhere,
    /// This one would have to leave the last tier for it.
    Blocked(Link),
    No,
}

impl<'a> View<'a> {
    fn tier_word(&self, tier: usize) -> &'a AtomicU64 {
        &self.globals[Global::TierBlocks as usize + 8 * (tier % MAX_TIERS)]
    }

    /// Blocks of a tier, as far as is known (M2).
    pub(super) fn tier_blocks(&self, tier: usize) -> i64 {
        // ORDERING: Relaxed: a hint.
        self.tier_word(tier).load(Ordering::Relaxed) as i64
    }

    /// Blocks that a tier may hold before it loses its oldest.
    pub(super) fn share(&self) -> i64 {
        self.sizes.blocks as i64 / self.memory.tiers() as i64
    }

    /// Changes that a handle keeps to itself, so that the words of the tiers stay quiet.
    fn grain(&self) -> i64 {
        (self.sizes.blocks as i64 / 1024).clamp(1, 16)
    }

    /// What the plan changes, before what it frees is freed.
    #[inline(always)]
    pub(super) fn weigh_shifts(&self, plan: &Plan) -> Option<Shifted> {
        if self.memory.tiers() == 1 { None } else { Some(self.weigh(plan.shifts())) }
    }

    #[inline(never)]
    fn weigh(&self, shifts: &[Shift]) -> Shifted {
        let mut shifted = Shifted::default();
        let mut moved = shifted.moved.iter_mut();
        for shift in shifts {
            let blocks = self.blocks_of(shift.link) as i64;
            for (tier, by) in [(shift.from, -blocks), (shift.to, blocks)] {
                if let Some(sum) = tier.and_then(|tier| shifted.blocks.get_mut(tier as usize)) {
                    *sum += by;
                }
            }
            if let (Some(from), Some(to)) = (shift.from, shift.to) {
                if let Some(place) = moved.next() {
                    *place = Some((shift.link, from, to));
                }
            }
        }
        shifted
    }

    /// The array of ages knows which tier an entry lies in.
    fn note_tier(&self, link: Link, tier: usize) {
        let Some(place) = self.ages.get(link.record as usize) else { return };
        // Fails if somebody brings its tick up to date: then again, a few times. It is a hint.
        for _ in 0..TRIES {
            // ORDERING: Relaxed: a hint.
            let age = place.load(Ordering::Relaxed);
            if !Age(age).is_entry() || exchange(Point::Age, place, age, Age(age).with_tier(tier).0)
            {
                return;
            }
        }
    }

    /// The tier an entry lies in, as the cells of its bucket are now.
    pub(super) fn tier_of(&self, link: Link) -> Option<usize> {
        let bucket = self.entry_input(link)?.bucket();
        (0..self.memory.tiers()).find(|tier| self.links_in(*tier, bucket).contains(&link))
    }

    /// Counts the blocks of each tier anew (M2).
    pub(super) fn recount_tiers(&self) {
        if self.memory.tiers() == 1 {
            return;
        }
        let mut blocks = [0u64; MAX_TIERS];
        for (index, age) in self.ages.iter().enumerate() {
            // ORDERING: Relaxed: hints.
            let age = Age(age.load(Ordering::Relaxed));
            let Ok(record) = self.memory.record(index as u32) else { continue };
            if !age.is_entry() || record.state().state() != Some(RecordState::Live) {
                continue;
            }
            let meta = Block::of(record).meta();
            let of = self.sizes.blocks_for(meta.key(), meta.value()).min(self.ages.len());
            blocks[age.tier() % MAX_TIERS] += of as u64;
        }
        for (tier, blocks) in blocks.into_iter().enumerate() {
            store_hint(Point::Sweep, self.tier_word(tier), blocks);
        }
    }

    /// The ticks of the oldest and the newest entry of each tier, ages in ticks.
    fn bounds(&self) -> [Option<(u32, u32)>; MAX_TIERS] {
        let now = self.tick();
        let mut bounds = [None; MAX_TIERS];
        for (index, age) in self.ages.iter().enumerate() {
            // ORDERING: Relaxed: hints.
            let age = Age(age.load(Ordering::Relaxed));
            let Ok(record) = self.memory.record(index as u32) else { continue };
            if age.is_entry() && record.state().state() == Some(RecordState::Live) {
                let used = now.wrapping_sub(record.tick().load(Ordering::Relaxed) as u32);
                let known = &mut bounds[age.tier() % MAX_TIERS];
                let (old, young) = known.unwrap_or((used, used));
                *known = Some((used.max(old), used.min(young)));
            }
        }
        bounds
    }
}

impl Handle<'_> {
    /// The plan was carried out, its words are held: so are its moves.
    #[inline(always)]
    pub(super) fn note_shifts(&mut self, shifted: Option<Shifted>) {
        if let Some(shifted) = shifted {
            self.note_shifted(shifted);
        }
    }

    #[inline(never)]
    fn note_shifted(&mut self, shifted: Shifted) {
        let (view, seat) = (self.view, self.inner.number);
        for (link, from, to) in shifted.moved.into_iter().flatten() {
            view.note_tier(link, to as usize);
            match to > from {
                true => view.count_in(seat, Count::Demoted, from as usize, 1),
                false => _ = view.count(seat, Count::Promoted, 1),
            }
        }
        for (tier, by) in shifted.blocks.into_iter().enumerate() {
            self.unreported[tier] += by;
            if self.unreported[tier].abs() >= view.grain() {
                self.report_tier(tier);
            }
        }
    }

    fn report_tier(&mut self, tier: usize) {
        let by = std::mem::take(&mut self.unreported[tier]);
        if by != 0 {
            add(Point::Stat, self.view.tier_word(tier), by as u64);
        }
    }

    /// Everybody may know.
    pub(super) fn report_tiers(&mut self) {
        (0..self.view.memory.tiers()).for_each(|tier| self.report_tier(tier));
    }

    /// After a set: tiers that hold more than their share lose their oldest (M3).
    #[inline(never)]
    pub(super) fn settle_tiers(&mut self) {
        for tier in 0..self.view.memory.tiers() - 1 {
            for _ in 0..MOVES_PER_SET {
                let full = self.view.tier_blocks(tier) > self.view.share();
                if !full || !matches!(self.demote_one(tier), Ok(true)) {
                    break;
                }
            }
        }
    }

    /// Moves the least recently used entry of a tier to the next. False if there is none that can
    /// be moved just now.
    fn demote_one(&mut self, tier: usize) -> Result<bool, CacheError> {
        let view = self.view;
        let mut shunned = Vec::new();
        for _ in 0..CORRECTIONS {
            if shunned.len() == TRIES {
                break;
            }
            let ring = &mut self.rings[tier];
            let Some(victim) = view.next_oldest(tier, ring, &shunned) else { return Ok(false) };
            match self.demote(victim, tier)? {
                Moved::Yes => return Ok(true),
                Moved::Elsewhere => {}
                Moved::Blocked(_) | Moved::No => shunned.push(victim.record),
            }
        }
        Ok(false)
    }

    /// Moves this entry from a tier to the next, if nobody holds its bucket; an outlived one leaves
    /// instead.
    fn demote(&mut self, link: Link, tier: usize) -> Result<Moved, CacheError> {
        let view = self.view;
        let outlived = super::read::current(view, link).is_none_or(|record| {
            let block = Block::of(record);
            view.is_outlived(block, block.meta())
        });
        // With a store it is a tombstone, and moves like any other.
        if outlived && !self.spares() && !self.stores && !view.is_flight(link) {
            return Ok(if self.evict(link)? { Moved::Yes } else { Moved::No });
        }
        match self.shift(link, Way::Down, Some(tier))? {
            // What leaves the last tier is for the sink.
            Moved::Blocked(leaver) if !self.spares() => {
                Ok(if self.make_way(leaver)? { Moved::Yes } else { Moved::No })
            }
            moved => Ok(moved),
        }
    }

    /// Moves this entry down, for tests that ask for one.
    #[cfg(test)]
    pub(super) fn demote_entry(&mut self, link: Link, tier: usize) {
        assert!(matches!(self.demote(link, tier), Ok(Moved::Yes)));
    }

    fn shift(&mut self, link: Link, way: Way, from: Option<usize>) -> Result<Moved, CacheError> {
        let view = self.view;
        let Some(input) = view.entry_input(link) else { return Ok(Moved::No) };
        let judge = |other: Link| match other == link {
            true => Verdict::Present,
            false => Verdict::Other,
        };
        let spare = self.spares() || self.stores || self.cache.sink.is_some();
        self.inner.begin()?;
        self.inner.set_tick(view.tick());
        self.inner.open()?;
        let task = Task::Move { way, from, tie: self.inner.tie(), spare };
        let timeout = std::mem::replace(&mut self.inner.timeout, Duration::ZERO);
        let done = self.run(input, task, &judge);
        self.inner.timeout = timeout;
        match done {
            Ok(_) => Ok(Moved::Yes),
            Err(MapError::NotFound) => {
                // Under its word it was somewhere else.
                let elsewhere = self.inner.frame.plan.found.is_some();
                if elsewhere {
                    view.note_tier(link, self.inner.frame.plan.tier);
                }
                Ok(if elsewhere { Moved::Elsewhere } else { Moved::No })
            }
            Err(MapError::Full) => Ok(self.inner.frame.plan.out.map_or(Moved::No, Moved::Blocked)),
            Err(MapError::Busy) => Ok(Moved::No),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves an entry as far down as it goes.
    pub(super) fn sink_to_the_last_tier(&mut self, link: Link) {
        for _ in 1..self.view.memory.tiers() {
            if !matches!(self.shift(link, Way::Down, None), Ok(Moved::Yes)) {
                break;
            }
        }
    }

    /// A use moves an entry to the first tier, if nobody holds its bucket. If not, another use
    /// will.
    #[cold]
    pub(super) fn promote(&mut self, link: Link) {
        if matches!(self.shift(link, Way::Up, None), Ok(Moved::Yes)) {
            self.settle_tiers();
        }
    }

    /// Moves up to `most` entries of a tier to the next, the least recently used first. Returns how
    /// many: none from the last tier.
    pub fn demote_oldest(&mut self, tier: usize, most: usize) -> Result<usize, CacheError> {
        self.inner.begin_read()?;
        let mut moved = 0;
        while tier + 1 < self.view.memory.tiers() && moved < most && self.demote_one(tier)? {
            moved += 1;
        }
        Ok(moved)
    }

    /// Moves up to `most` entries of a tier that were not used for at least `time` to the next, the
    /// oldest first. Returns how many. How long an entry was not used is known as for
    /// [`Handle::evict_unused`].
    pub fn demote_unused(
        &mut self,
        tier: usize,
        time: Duration,
        most: usize,
    ) -> Result<usize, CacheError> {
        self.inner.begin_read()?;
        let Some(ticks) = self.view.ticks_unused(time) else { return Ok(0) };
        if tier + 1 >= self.view.memory.tiers() {
            return Ok(0);
        }
        let links = self.view.unused_for(Some(tier), ticks, most);
        links.into_iter().try_fold(0, |moved, link| {
            Ok(moved + matches!(self.demote(link, tier)?, Moved::Yes) as usize)
        })
    }

    /// Ahead of need: each tier with some room, and what is too old for it moved on (M4).
    pub(super) fn maintain_tiers(&mut self, most: usize) -> Result<usize, CacheError> {
        let view = self.view;
        self.report_tiers();
        let room = view.share() / 64;
        let mut moved = 0;
        for tier in 0..view.memory.tiers() - 1 {
            while moved < most && view.tier_blocks(tier) > view.share() - room {
                if !self.demote_one(tier)? {
                    break;
                }
                self.report_tiers();
                moved += 1;
            }
            if let Some(time) = self.cache.cooling() {
                let time = time.saturating_mul(tier as u32 + 1);
                moved += self.demote_unused(tier, time, most.saturating_sub(moved))?;
            }
        }
        Ok(moved)
    }
}

impl TierCache {
    /// How many tiers.
    pub fn tiers(&self) -> usize {
        self.view().memory.tiers()
    }

    /// After this time without use maintenance moves an entry from the first tier to the second,
    /// after twice that to the third, and so on, for all processes; `None`, the default: only when
    /// its tier is full.
    pub fn set_cooling(&self, time: Option<Duration>) -> Result<(), CacheError> {
        if !self.segment.is_writable() {
            return Err(CacheError::ReadOnly);
        }
        let ms = time.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1));
        store_hint(Point::Time, self.view().global(Global::Cooling), ms);
        Ok(())
    }

    /// What [`TierCache::set_cooling`] has set.
    pub fn cooling(&self) -> Option<Duration> {
        // ORDERING: Relaxed: a hint.
        let ms = self.view().global(Global::Cooling).load(Ordering::Relaxed);
        (ms != 0).then(|| Duration::from_millis(ms))
    }

    /// What each tier holds, the youngest first. Looks at every block.
    pub fn tier_stats(&self) -> Vec<TierStats> {
        let view = self.view();
        let tiers = view.memory.tiers();
        let lower: u64 = (1..tiers).map(|tier| view.len_of(tier) as u64).sum();
        let lower_hits: u64 = (1..tiers).map(|tier| view.total_in(Count::TierHits, tier)).sum();
        let bounds = view.bounds();
        let of = |tier: usize| TierStats {
            entries: match tier {
                0 => view.len().saturating_sub(lower),
                _ => view.len_of(tier) as u64,
            },
            bytes: view.tier_blocks(tier).max(0) as u64 * view.sizes.block_words as u64 * 8,
            hits: match tier {
                0 => view.total(Count::Hits).saturating_sub(lower_hits),
                _ => view.total_in(Count::TierHits, tier),
            },
            demoted: view.total_in(Count::Demoted, tier),
            oldest: bounds[tier].map(|(oldest, _)| view.unused_at_most(oldest)),
            newest: bounds[tier].map(|(_, newest)| view.unused_at_least(newest)),
        };
        let mut all: Vec<_> = (0..tiers).map(of).collect();
        if let [only] = &mut all[..] {
            only.bytes = self.stats().used_blocks * view.sizes.block_words as u64 * 8;
        }
        all
    }
}
