//! What happened: counters that each seat keeps for itself, added up when somebody asks.

use super::layout::STAT_WORDS;
use super::view::{Global, View};
use crate::sync::Ordering;
use crate::tier_cache::memory::MAX_TIERS;
use crate::tier_cache::step::{Point, store, store_hint};

/// A counter of a seat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(super) enum Count {
    Hits = 0,
    Misses = 1,
    Sets = 2,
    Removes = 3,
    Insertions = 4,
    Evicted = 5,
    Forced = 6,
    Expired = 7,
    Delivered = 8,
    SinkErrors = 9,
    // 10 is not used.
    Computed = 11,
    /// Blocks of stored entries beyond their first.
    Further = 12,
    Refused = 13,
    /// Lookups that found their key in a tier but the first: one word for each tier, the first
    /// one's not used.
    TierHits = 14,
    /// Entries that moved from a tier to the next: one word for each tier.
    Demoted = 18,
    /// Entries that moved to the first tier because they were used.
    Promoted = 22,
    /// Not a count: entries that the seat is putting into the store.
    Putting = 30,
    /// Not a count: 1 while the seat delivers claimed victims to its sink.
    Claiming = 31,
}

/// What happened to a cache since it was created, in all processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CacheStats {
    /// Lookups that found their key.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Values stored.
    pub sets: u64,
    /// Keys removed.
    pub removes: u64,
    /// Evicted to make room, as the policy chose them.
    pub evicted: u64,
    /// Evicted because the window of their bucket was full.
    pub forced: u64,
    /// Taken away because they had expired or their namespace was flushed.
    pub expired: u64,
    /// Accepted by a sink.
    pub delivered: u64,
    /// Refused by a sink.
    pub sink_errors: u64,
    /// Values computed by `get_or_compute` and its kin.
    pub computed: u64,
    /// Sets refused because nothing was free and nothing may be evicted.
    pub refused: u64,
    /// Operations of dead peers that were completed or undone.
    pub recoveries: u64,
    /// Blocks that orphan sweeps found.
    pub orphans: u64,
    /// Orphan sweeps.
    pub sweeps: u64,
    /// Lookups that the store answered; they count as hits too.
    pub store_hits: u64,
    /// Lookups that went on to the store and found nothing.
    pub store_misses: u64,
    /// Records put into the store, removals included.
    pub store_writes: u64,
    /// Entries being put just now, which are in memory until the store has them.
    pub store_queue: u64,
    /// Operations of the store that failed.
    pub store_errors: u64,
    /// Entries that left although the store does not have them.
    pub store_drops: u64,
    /// Values of the store that were too old to be shown.
    pub store_refused: u64,
    /// Entries, those that have expired unnoticed included.
    pub entries: u64,
    /// Blocks in use.
    pub used_blocks: u64,
    /// All blocks.
    pub blocks: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// The longest value.
    pub max_value: u64,
    /// Bytes of the segment.
    pub segment_bytes: u64,
    /// Seats in use, of dead peers too.
    pub seats: u64,
    /// All seats.
    pub max_seats: u64,
}

impl CacheStats {
    /// Hits per lookup; 0 before the first.
    pub fn hit_ratio(&self) -> f64 {
        match self.hits + self.misses {
            0 => 0.0,
            all => self.hits as f64 / all as f64,
        }
    }

    /// Blocks in use per block.
    pub fn load(&self) -> f64 {
        self.used_blocks as f64 / self.blocks.max(1) as f64
    }
}

impl View<'_> {
    /// Counts for a seat. Only its owner does, so a load and a store suffice.
    #[inline(always)]
    pub(super) fn count(&self, seat: u32, what: Count, by: u64) -> u64 {
        let Some(word) = self.stats.get(seat as usize * STAT_WORDS + what as usize) else {
            return 0;
        };
        // ORDERING: Relaxed: a count with one writer.
        let before = word.load(Ordering::Relaxed);
        store_hint(Point::Stat, word, before.wrapping_add(by));
        before
    }

    /// The same for a count that has a word for each tier.
    pub(super) fn count_in(&self, seat: u32, what: Count, tier: usize, by: u64) {
        let word = self.stats.get(seat as usize * STAT_WORDS + what as usize + tier);
        if let Some(word) = word.filter(|_| tier < MAX_TIERS) {
            // ORDERING: Relaxed: a count with one writer.
            store_hint(Point::Stat, word, word.load(Ordering::Relaxed).wrapping_add(by));
        }
    }

    /// What a seat has counted for a tier.
    pub(super) fn counted_in(&self, seat: u32, what: Count, tier: usize) -> u64 {
        let word = self.stats.get(seat as usize * STAT_WORDS + what as usize + tier);
        // ORDERING: Relaxed: a count with one writer.
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    pub(super) fn total_in(&self, what: Count, tier: usize) -> u64 {
        let counts = self.stats.iter().skip(what as usize + tier).step_by(STAT_WORDS);
        // ORDERING: Relaxed: counts.
        counts.fold(0, |sum, word| sum.wrapping_add(word.load(Ordering::Relaxed)))
    }

    /// What a seat has counted.
    pub(super) fn counted(&self, seat: u32, what: Count) -> u64 {
        self.counted_in(seat, what, 0)
    }

    /// So many entries are being put by a seat.
    pub(super) fn set_putting(&self, seat: u32, entries: usize) {
        let word = self.stats.get(seat as usize * STAT_WORDS + Count::Putting as usize);
        if let Some(word) = word.filter(|_| self.sizes.store.exists()) {
            store_hint(Point::Stat, word, entries as u64);
        }
    }

    pub(super) fn set_claiming(&self, seat: u32, claiming: bool) {
        if let Some(word) = self.stats.get(seat as usize * STAT_WORDS + Count::Claiming as usize) {
            store(Point::Claim, word, claiming as u64);
        }
    }

    pub(super) fn is_claiming(&self, seat: u32) -> bool {
        let word = self.stats.get(seat as usize * STAT_WORDS + Count::Claiming as usize);
        // ORDERING: Acquire; partner: `set_claiming`, which comes before the first claim.
        word.is_some_and(|word| word.load(Ordering::Acquire) != 0)
    }

    pub(super) fn total(&self, what: Count) -> u64 {
        self.total_in(what, 0)
    }

    /// Entries, as all seats together counted them.
    pub(super) fn len(&self) -> u64 {
        let seats = (0..self.sizes.seats).filter_map(|number| self.memory.seat(number).ok());
        let sum = seats.fold(0u64, |sum, seat| sum.wrapping_add(seat.count()));
        // Read one after the other while others work, the counts may miss an entry that has just
        // moved.
        if sum > self.sizes.blocks as u64 { 0 } else { sum }
    }

    /// Entries of a tier but the first, as all seats together counted them.
    pub(super) fn len_of(&self, tier: usize) -> u32 {
        let seats = (0..self.sizes.seats).filter_map(|number| self.memory.seat(number).ok());
        seats.fold(0u32, |sum, seat| sum.wrapping_add(seat.count_in(tier)))
    }

    pub(super) fn gather(&self, segment_bytes: u64) -> CacheStats {
        // ORDERING: Relaxed: counts.
        let global = |word| self.global(word).load(Ordering::Relaxed);
        let free: u64 =
            self.bits.iter().map(|word| word.load(Ordering::Relaxed).count_ones() as u64).sum();
        let seats = (0..self.sizes.seats).filter_map(|number| self.memory.seat(number).ok());
        CacheStats {
            hits: self.total(Count::Hits),
            misses: self.total(Count::Misses),
            sets: self.total(Count::Sets),
            removes: self.total(Count::Removes),
            evicted: self.total(Count::Evicted),
            forced: self.total(Count::Forced),
            expired: self.total(Count::Expired),
            delivered: self.total(Count::Delivered),
            sink_errors: self.total(Count::SinkErrors),
            computed: self.total(Count::Computed),
            refused: self.total(Count::Refused),
            recoveries: global(Global::Recoveries),
            orphans: global(Global::Orphans),
            sweeps: global(Global::Sweeps),
            store_hits: global(Global::StoreHits),
            store_misses: global(Global::StoreMisses),
            store_writes: global(Global::StoreWrites),
            store_queue: self.total(Count::Putting),
            store_errors: global(Global::StoreErrors),
            store_drops: global(Global::StoreDrops),
            store_refused: global(Global::StoreRefused),
            entries: self.len(),
            used_blocks: (self.sizes.blocks as u64).saturating_sub(free),
            blocks: self.sizes.blocks as u64,
            block_bytes: self.sizes.block_words as u64 * 8,
            max_value: self.sizes.max_value as u64,
            segment_bytes,
            seats: seats.filter(|seat| seat.owner().0 != 0).count() as u64,
            max_seats: self.sizes.seats as u64,
        }
    }
}
