//! A view of a cache's arrays: what every handle works on.

use super::block::{Block, Meta};
use super::hash::hash;
use super::layout::*;
use super::policy::Policy;
use super::spaces::Space;
use crate::hash::start_scaled;
use crate::region::shm::Segment;
use crate::sync::{AtomicPair, AtomicU64, Ordering};
use crate::tier_cache::memory::{Memory, SEAT_WORDS};
use crate::tier_cache::plan::Verdict;
use crate::tier_cache::word::{InputHash, Link};

/// Words that all share. Hot ones lie on lines of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(super) enum Global {
    /// The recency clock.
    Tick = 0,
    /// The last span of time that was marked.
    Span = 1,
    /// Where the next search for victims begins.
    Hand = 8,
    /// Parts of the array of ages that are looked at together, as a power of two.
    Joined = 9,
    /// No entry expires before this moment, in units of [`DEADLINE_MS`].
    Earliest = 16,
    /// Peers that died since the last orphan sweep: blocks may have been lost to the free bits.
    SweepsWanted = 17,
    /// A namespace was flushed and nobody has looked at every entry since.
    Flushed = 18,
    /// No moment before this one comes again: the segment's time does not go back, whatever happens
    /// to the machine's clock.
    Floor = 24,
    /// Operations of dead peers that were completed or undone.
    Recoveries = 32,
    /// Blocks that an orphan sweep found.
    Orphans = 33,
    /// Orphan sweeps.
    Sweeps = 34,
    /// The process that maintains, ahead of need; those that demote and that deliver come behind
    /// the next.
    Maintainer = 48,
    /// The process that makes or removes a namespace.
    Naming = 49,
    Demoter = 50,
    Deliverer = 51,
    /// Blocks of the first tier; each further one has its word on the next line.
    TierBlocks = 64,
    /// Milliseconds after which maintenance moves an unused entry down a tier; 0 for never.
    Cooling = 65,
    /// Entries of those who exceed their quotas, as far as is known: they leave first.
    Suspects = 66,
    /// How often that changed.
    SuspectChanges = 67,
    /// How often accounts may have come to say something wrong since they were counted.
    AccountsDue = 68,
    /// Of a cache with a store, in all processes: lookups it answered, lookups it did not, records
    /// it took, operations that failed.
    StoreHits = 96,
    StoreMisses = 97,
    StoreWrites = 98,
    StoreErrors = 99,
    /// Entries that left without the store having them.
    StoreDrops = 100,
    /// Values of the store that were below the watermark of their bucket.
    StoreRefused = 101,
    /// Every version is greater than this one.
    StoreBase = 102,
}

/// The unit of deadlines in the array of ages.
pub(super) const DEADLINE_MS: u64 = 125;

/// What the array of ages holds for a block: bit 63 an entry begins here, 62..60 its tier, 59..32
/// its deadline (0: none), 31..0 its tick, or what else its policy orders by. A deadline has 27
/// bits, or is kept to 128 units if it needs more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Age(pub(super) u64);

impl Age {
    pub(super) fn new(tick: u32, expiry: u64) -> Self {
        let deadline = match expiry {
            0 => 0,
            // One on: an entry is never taken for outlived too early.
            ms => ms / DEADLINE_MS + 1,
        };
        let kept = if deadline < FAR { deadline } else { FAR | ((deadline >> 7) + 1).min(FAR - 1) };
        Self(1 << 63 | kept << 32 | tick as u64)
    }

    pub(super) fn is_entry(self) -> bool {
        self.0 >> 63 == 1
    }

    pub(super) fn tick(self) -> u32 {
        self.0 as u32
    }

    pub(super) fn with_tick(self, tick: u32) -> Self {
        Self(self.0 & !(u32::MAX as u64) | tick as u64)
    }

    pub(super) fn deadline(self) -> u64 {
        let kept = self.0 >> 32 & (2 * FAR - 1);
        if kept < FAR { kept } else { (kept - FAR) << 7 }
    }

    /// The tier, as far as the array knows.
    pub(super) fn tier(self) -> usize {
        (self.0 >> 60) as usize & 7
    }

    pub(super) fn with_tier(self, tier: usize) -> Self {
        Self(self.0 & !(7 << 60) | (tier as u64 & 7) << 60)
    }
}

/// Deadlines from here on are kept in larger units.
const FAR: u64 = 1 << 27;

/// All arrays of a cache.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) sizes: Sizes,
    pub(super) seed: u64,
    /// Stores are allowed.
    pub(super) writable: bool,
    /// Where the segment's time begins, on the wall clock.
    pub(super) created: &'a AtomicU64,
    pub(super) memory: Memory<'a>,
    pub(super) globals: &'a [AtomicU64],
    pub(super) stats: &'a [AtomicU64],
    pub(super) members: &'a [AtomicU64],
    pub(super) leases: &'a [AtomicU64],
    pub(super) spaces: &'a [AtomicU64],
    pub(super) accounts: &'a [AtomicU64],
    pub(super) marks: &'a [AtomicU64],
    pub(super) summary: &'a [AtomicU64],
    pub(super) bits: &'a [AtomicU64],
    pub(super) ages: &'a [AtomicU64],
    pub(super) sums: &'a [AtomicU64],
    /// What the policy keeps for all entries together.
    pub(super) policy: &'a [AtomicU64],
    /// A use leaves the tick that all processes share: the usual case.
    pub(super) plain: bool,
    pub(super) payers: &'a [AtomicU64],
}

impl std::fmt::Debug for View<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("View").field("sizes", &self.sizes).finish_non_exhaustive()
    }
}

impl<'a> View<'a> {
    /// `None` if the segment is smaller than its header says.
    pub(super) fn new(segment: &'a Segment, sizes: Sizes) -> Option<Self> {
        let at = sizes.offsets();
        let words = |offset, len| segment.slice::<AtomicU64>(offset, len);
        let seats = sizes.seats as usize;
        let (blocks, block) = (sizes.blocks as usize, sizes.block_words as usize);
        let memory = Memory::new(
            sizes.geometry(),
            words(at.controls, sizes.buckets as usize)?,
            segment.slice::<AtomicPair>(at.cells, sizes.cells())?,
            words(at.blocks, blocks * block)?,
            words(at.seats, seats * SEAT_WORDS)?,
        )
        .with_books(words(at.books, sizes.book_words())?);
        Some(Self {
            sizes,
            seed: segment.seed(),
            writable: segment.is_writable(),
            created: segment.created(),
            memory,
            globals: words(at.globals, GLOBAL_WORDS)?,
            stats: words(at.stats, seats * STAT_WORDS)?,
            members: words(at.members, sizes.processes as usize * PROCESS_WORDS)?,
            leases: words(at.leases, seats * SEAT_LEASES)?,
            spaces: words(at.spaces, sizes.spaces as usize * SPACE_WORDS)?,
            accounts: words(at.accounts, sizes.accounts() * ACCOUNT_WORDS)?,
            marks: words(at.marks, sizes.marks())?,
            summary: words(at.summary, sizes.summary_words())?,
            bits: words(at.bits, sizes.bit_words())?,
            ages: words(at.ages, blocks)?,
            sums: words(at.sums, sizes.sum_words())?,
            policy: words(at.policy, sizes.policy_words())?,
            plain: sizes.policy == Policy::Lru && sizes.pace != 0,
            payers: words(at.payers, sizes.payer_words())?,
        })
    }

    #[inline(always)]
    pub(super) fn global(&self, word: Global) -> &'a AtomicU64 {
        &self.globals[word as usize]
    }

    #[inline(always)]
    pub(super) fn tick(&self) -> u32 {
        // ORDERING: Relaxed: recency decides who leaves, nothing depends on its truth.
        self.global(Global::Tick).load(Ordering::Relaxed) as u32
    }

    /// Hash and bucket of a key.
    #[inline(always)]
    pub(super) fn input(&self, space: Space, key: &[u8]) -> InputHash {
        let hash = hash(self.seed, space.salt(), key);
        let bucket = start_scaled((hash >> 32) as u32, self.sizes.buckets as u64) as u32;
        // The map's two reserved hashes share their neighbours'; whole keys are compared anyway.
        InputHash::of_parts((hash as u32).clamp(1, u32::MAX - 1), bucket)
    }

    /// Has the entry expired, or its namespace been flushed?
    #[inline(always)]
    pub(super) fn is_outlived(&self, block: Block<'a>, meta: Meta) -> bool {
        let expiry = block.expiry();
        let (_, space) = block.next_and_space();
        space != self.space_generation(meta.space()) || expiry != 0 && self.has_passed(expiry)
    }

    /// Judges a record under the control word of its bucket: nobody can free it meanwhile.
    pub(super) fn judge(&self, link: Link, space: Space, key: &[u8]) -> Verdict {
        let Ok(record) = self.memory.record(link.record) else { return Verdict::Other };
        let block = Block::of(record);
        let meta = block.meta();
        if record.state().generation() != link.generation
            || meta.of_key() != Meta::new(key.len(), space.number(), 0).of_key()
            || !self.has_key(block, key)
        {
            return Verdict::Other;
        }
        if self.is_outlived(block, meta) { Verdict::Outlived } else { Verdict::Present }
    }
}
