//! Policies: which entry leaves when room is needed.
//!
//! A policy is a property of the segment. It decides three things ([`Choose`]): what a use leaves
//! in an entry, how the entry begins in the array of ages, and who is next to leave. What it keeps
//! lies in three places, none of which anybody depends on:
//!
//! | where | [`Policy::Lru`] | [`Policy::S3Fifo`] | [`Policy::Sieve`] |
//! |---|---|---|---|
//! | word of use in the head block, 31..0 | tick of the last use | tick when it was stored | the same |
//! | the same, 63..32 | 0 | uses, up to 3 | 1 if it was used |
//! | array of ages, 31..0 | that tick, or an older one | bit 31 main queue, tick it joined | tick when it was stored |
//! | words of the policy | none | the ghost queue | a hand for each part |
//!
//! **P1.** All of this is a hint; the record array is the truth. Whatever a death leaves half done
//! makes one entry leave earlier or later than it should, nothing else: victims are judged again
//! under the control word of their bucket (`evict` L1), and every entry is found by the walk over
//! the array, whatever the hints say.
//! **P2.** There are no links. The queues are the entries of the array in the order of their
//! ticks; to move an entry to the end of a queue is one exchange of its word in the array.
//! **P3.** A hit stores the word of use if that changes: a new tick, or a counter that is not at
//! its limit yet. Nothing else of a policy is written by who reads.
//! **P4.** The array is looked at in *parts* of 1024 to 2047 blocks, in turn. Each part is a small
//! cache that follows its policy by itself; a cache of fewer blocks is one part. Where entries are
//! long, neighbouring parts are joined until they have some hundreds of them.
//! **P5.** In a cache with tiers the policy chooses who leaves the cache. Entries move down in the
//! order of their ticks: of the last use, or, where uses leave none, of being stored.
//! **P6.** A value that replaces another takes its place in the order, with one use more.

mod ghost;
mod lru;
mod part;
mod s3fifo;
mod sieve;

use super::evict::Ring;
use super::layout::Sizes;
use super::read::current;
use super::view::{Age, Global, View};
use crate::sync::Ordering;
use crate::tier_cache::step::{Point, add, exchange, store_hint};
use crate::tier_cache::word::{InputHash, Link};
use lru::Lru;
use part::parts;
use s3fifo::S3Fifo;
use sieve::Sieve;

/// Which entry leaves when room is needed. Chosen when the cache is made.
///
#[doc = include_str!("../../../../docs/tier_cache_policies.md")]
///
#[doc = include_str!("../../../../docs/tier_cache_policies.svg")]
///
/// # Example
///
/// ```
/// use quintet::cache::{Place, Policy, TierCache};
/// let place = Place::Name(format!("doc-policy-{}", std::process::id()));
/// let cache = TierCache::builder().policy(Policy::S3Fifo).create(&place)?;
/// assert_eq!(cache.policy(), Policy::S3Fifo);
/// assert_eq!(cache.policy().to_string(), "s3fifo");
/// # TierCache::unlink(&place)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// The least recently used entry.
    #[default]
    Lru,
    /// S3-FIFO: new entries are on probation in a tenth of the cache; who is used again there, or
    /// comes back soon after leaving, stays. Takes four bytes per block for what it remembers.
    S3Fifo,
    /// SIEVE: the oldest entry that was not used since the hand last passed it.
    Sieve,
}

impl Policy {
    /// All of them, the default first.
    pub const ALL: [Self; 3] = [Self::Lru, Self::S3Fifo, Self::Sieve];

    /// Its name on the command line and in statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::S3Fifo => "s3fifo",
            Self::Sieve => "sieve",
        }
    }

    /// The number in the header of a segment.
    pub(super) const fn number(self) -> u64 {
        self as u64
    }

    pub(super) fn of_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.number() == number)
    }
}

impl std::fmt::Display for Policy {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.pad(self.name())
    }
}

/// What a policy decides.
trait Choose {
    /// What the counter of uses can say. 0: a use leaves its tick instead.
    const MOST_USES: u64;

    /// The lower half of an entry's word in the array of ages, when it is stored at this tick. A
    /// flight, which is no key's value, has no input.
    fn enter(_view: &View<'_>, _input: Option<InputHash>, tick: u32) -> u32 {
        tick
    }

    /// Looks at the next part and puts the first of a tier that should leave into the ring.
    fn search(view: &View<'_>, tier: usize, ring: &mut Ring, shunned: &[u32]);

    /// An entry of so many blocks that had this place in the order left to make room.
    fn left(_view: &View<'_>, _input: InputHash, _order: u32, _blocks: usize) {}
}

/// Calls a function of the policy.
macro_rules! by_policy {
    ($view:ident, $call:ident, $($argument:expr),+) => {
        match $view.sizes.policy {
            Policy::Lru => Lru::$call($($argument),+),
            Policy::S3Fifo => S3Fifo::$call($($argument),+),
            Policy::Sieve => Sieve::$call($($argument),+),
        }
    };
}

/// One use, in the word of use.
const USE: u64 = 1 << 32;

/// The uses that the word counts.
fn uses(word: u64) -> u64 {
    word / USE
}

impl Sizes {
    /// Words that the policy keeps for all entries together.
    pub(super) fn policy_words(self) -> usize {
        match self.policy {
            Policy::Lru => 0,
            Policy::S3Fifo => ghost::words(self.blocks as usize),
            Policy::Sieve => parts(self.blocks as usize),
        }
    }
}

impl View<'_> {
    fn most_uses(&self) -> u64 {
        match self.sizes.policy {
            Policy::Lru => Lru::MOST_USES,
            Policy::S3Fifo => S3Fifo::MOST_USES,
            Policy::Sieve => Sieve::MOST_USES,
        }
    }

    /// Uses leave their tick: then the array of ages may be behind it.
    pub(super) fn stamps_uses(&self) -> bool {
        self.sizes.policy == Policy::Lru
    }

    /// A use of an entry whose word of use was `used` (P3). The record may be another's by now:
    /// then its recency is a little off, nothing worse.
    #[inline(always)]
    pub(super) fn note_use(&self, link: Link, used: u64) {
        if !self.plain {
            return self.note_otherwise(link, used);
        }
        let tick = self.tick() as u64;
        if used != tick {
            self.set_use(link, tick);
        }
    }

    /// Where every access is a tick, or uses are counted.
    #[inline(never)]
    fn note_otherwise(&self, link: Link, used: u64) {
        match self.most_uses() {
            0 => self.set_use(link, self.tick_of_access() as u64),
            most if uses(used) < most => self.set_use(link, used + USE),
            _ => {}
        }
    }

    #[inline(never)]
    fn set_use(&self, link: Link, used: u64) {
        if let Some(record) = current(self, link) {
            store_hint(Point::Touch, record.tick(), used);
        }
    }

    /// A use by somebody who has not read the entry.
    pub(super) fn note_use_of(&self, link: Link) {
        if let Some(record) = current(self, link) {
            // ORDERING: Relaxed: a hint.
            self.note_use(link, record.tick().load(Ordering::Relaxed));
        }
    }

    /// The lower half of the age of an entry that is stored now.
    pub(super) fn order_of_new(&self, input: Option<InputHash>, tick: u32) -> u32 {
        by_policy!(self, enter, self, input, tick)
    }

    /// The lower half of the age of an entry that is there: its last tick, where uses leave one.
    pub(super) fn order_of(&self, link: Link) -> u32 {
        let (age, record) = (self.ages.get(link.record as usize), current(self, link));
        // ORDERING: Relaxed: hints.
        match (self.stamps_uses(), age, record) {
            (true, _, Some(record)) => record.tick().load(Ordering::Relaxed) as u32,
            (_, Some(age), _) => Age(age.load(Ordering::Relaxed)).tick(),
            _ => self.tick(),
        }
    }

    /// Ticks since an entry's place in the order was given, or older.
    pub(super) fn ticks_in_order(&self, age: Age) -> u32 {
        let ticks = self.tick().wrapping_sub(age.tick());
        if self.sizes.policy == Policy::S3Fifo { s3fifo::ticks(ticks) } else { ticks }
    }

    /// Looks for entries of a tier that should leave the cache.
    pub(super) fn search_victims(&self, tier: usize, ring: &mut Ring, shunned: &[u32]) {
        by_policy!(self, search, self, tier, ring, shunned);
    }

    /// An entry with this age and so many blocks left to make room.
    pub(super) fn note_left(&self, input: InputHash, age: Age, blocks: usize) {
        if !self.stamps_uses() {
            by_policy!(self, left, self, input, age.tick(), blocks);
        }
    }

    /// P6: under the control word of their bucket, before the old one is freed.
    #[inline(never)]
    pub(super) fn inherit(&self, new: Link, old: Link) {
        let (Some(from), Some(to)) = (current(self, old), current(self, new)) else { return };
        let ages = (self.ages.get(old.record as usize), self.ages.get(new.record as usize));
        let (Some(older), Some(newer)) = ages else { return };
        // ORDERING: Relaxed: hints.
        let older = Age(older.load(Ordering::Relaxed));
        let known = newer.load(Ordering::Relaxed);
        if older.is_entry() {
            exchange(Point::Age, newer, known, Age(known).with_tick(older.tick()).0);
        }
        // ORDERING: Relaxed: hints.
        let used = from.tick().load(Ordering::Relaxed);
        let stored = to.tick().load(Ordering::Relaxed) as u32 as u64;
        let counted = (uses(used) + 1).min(self.most_uses()) * USE;
        store_hint(Point::Touch, to.tick(), stored | counted);
    }

    /// The tick of an entry that joins the end of a queue. In a small cache each has its own.
    fn tick_of_move(&self) -> u32 {
        match self.sizes.pace {
            0 | 1 => (add(Point::Tick, self.global(Global::Tick), 1) as u32).wrapping_add(1),
            _ => self.tick(),
        }
    }
}
