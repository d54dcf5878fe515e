//! The processes that take part: what each of them did, and what it does for all.
//!
//! | word of a row | |
//! |---|---|
//! | 0 | whose it is: slot and incarnation |
//! | 1.. | what handles that are gone have counted, in the order of [`Tally`] |
//!
//! **R1.** A process has the row of its slot, which names it. Whoever takes a handle and finds
//! another name there writes its own and clears the row: what a process did that is no more, nobody
//! asks.
//! **R2.** A seat counts for the process that owns it, less its *base*: what it had counted when it
//! was taken. A handle that goes adds the difference to the row of its process and then moves the
//! base on. Who reads in between may see it twice.
//! **R3.** So an operation pays nothing for being counted by process.

use super::TierCache;
use super::handle::Handle;
use super::layout::{PROCESS_WORDS, STAT_BASE, STAT_WORDS};
use super::maintain::Roles;
use super::stats::Count;
use super::view::View;
use crate::region::shm::Peer;
use crate::sync::{AtomicU64, MODEL, Ordering};
use crate::tier_cache::memory::MAX_TIERS;
use crate::tier_cache::step::{Point, add, exchange, store_hint};
use crate::tier_cache::word::Owner;

/// A process that takes part in a cache, and what it did since it came.
///
/// ```
/// use quintet::cache::TierCache;
///
/// let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
/// let mut handle = cache.handle()?;
/// handle.insert("key", "value")?;
/// handle.get("key")?;
/// let [me] = cache.processes()[..] else { panic!("nobody else takes part") };
/// assert_eq!((me.pid, me.handles, me.inserts, me.hits), (std::process::id(), 1, 1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Attached {
    /// Its id, in its own pid namespace.
    pub pid: u32,
    /// It lives in the caller's pid namespace, where its id means the same.
    pub here: bool,
    /// Its handles that can write.
    pub handles: u32,
    /// Lookups that found their key.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Values stored.
    pub inserts: u64,
    /// Keys removed.
    pub removes: u64,
    /// Entries that it evicted, for whatever reason.
    pub evicted: u64,
    /// Entries that it moved down a tier.
    pub demoted: u64,
    /// Entries that its sink accepted.
    pub delivered: u64,
    /// Bytes of the blocks that it filled.
    pub stored_bytes: u64,
    /// What it does for all.
    pub roles: Roles,
    /// What it has in the cache, where accounts are kept
    /// ([`CacheBuilder::quotas`](super::CacheBuilder::quotas)).
    pub holds: Option<Holding>,
}

/// What somebody has in a cache that keeps accounts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Holding {
    /// Entries within the quota, as far as is known.
    pub entries: u64,
    /// Bytes of their blocks.
    pub bytes: u64,
    /// Entries beyond it, ever: they became suspects, which leave first.
    pub suspected: u64,
}

/// What a seat or a process did.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Tally([u64; TALLIES]);

const TALLIES: usize = 8;
const HITS: usize = 0;
const MISSES: usize = 1;
const INSERTS: usize = 2;
const REMOVES: usize = 3;
const EVICTED: usize = 4;
const DEMOTED: usize = 5;
const DELIVERED: usize = 6;
/// Blocks of entries beyond their first.
const FURTHER: usize = 7;

impl Tally {
    fn map(self, other: Self, with: impl Fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|at| with(self.0[at], other.0[at])))
    }

    fn plus(self, other: Self) -> Self {
        self.map(other, u64::wrapping_add)
    }

    fn less(self, other: Self) -> Self {
        self.map(other, u64::wrapping_sub)
    }
}

/// The words of a tally.
fn read(words: &[AtomicU64]) -> Tally {
    // ORDERING: Relaxed: counts.
    let load = |at: usize| words.get(at).map_or(0, |word| word.load(Ordering::Relaxed));
    Tally(std::array::from_fn(load))
}

impl<'a> View<'a> {
    /// What a seat counted since the cache was made, whoever owned it.
    fn tally(&self, seat: u32) -> Tally {
        let of = |what| self.counted(seat, what);
        let demoted = (0..MAX_TIERS).map(|tier| self.counted_in(seat, Count::Demoted, tier));
        let mut tally = Tally::default();
        tally.0[HITS] = of(Count::Hits);
        tally.0[MISSES] = of(Count::Misses);
        tally.0[INSERTS] = of(Count::Sets);
        tally.0[REMOVES] = of(Count::Removes);
        tally.0[EVICTED] = of(Count::Evicted) + of(Count::Forced) + of(Count::Expired);
        tally.0[DEMOTED] = demoted.sum();
        tally.0[DELIVERED] = of(Count::Delivered);
        tally.0[FURTHER] = of(Count::Further);
        tally
    }

    fn base(&self, seat: u32) -> &'a [AtomicU64] {
        let from = seat as usize * STAT_WORDS + STAT_BASE;
        self.stats.get(from..from + TALLIES).unwrap_or(&[])
    }

    /// The seat counts for its owner from here on (R2).
    fn set_base(&self, seat: u32) {
        for (place, count) in self.base(seat).iter().zip(self.tally(seat).0) {
            store_hint(Point::Stat, place, count);
        }
    }

    fn row(&self, process: Owner) -> Option<(&'a AtomicU64, &'a [AtomicU64])> {
        let from = process.slot().checked_mul(PROCESS_WORDS)?;
        let row = self.members.get(from..from.checked_add(PROCESS_WORDS)?)?;
        Some((&row[0], &row[1..1 + TALLIES]))
    }

    /// The process that has this slot, or had it last.
    pub(super) fn member(&self, slot: usize) -> Option<Owner> {
        let name = self.members.get(slot.checked_mul(PROCESS_WORDS)?)?;
        // ORDERING: Relaxed: a name.
        Owner::from_word(name.load(Ordering::Relaxed))
    }

    /// A process takes a seat (R1).
    pub(super) fn join(&self, seat: u32, me: Owner) {
        if MODEL {
            return;
        }
        self.set_base(seat);
        let Some((name, sums)) = self.row(me) else { return };
        // ORDERING: Relaxed: a name that only this process writes while it lives.
        let known = name.load(Ordering::Relaxed);
        if known != me.0 && exchange(Point::Stat, name, known, me.0) {
            sums.iter().for_each(|sum| store_hint(Point::Stat, sum, 0));
            self.open_account(me);
        }
    }

    /// A handle goes: what it counted stays with its process (R2).
    fn tell(&self, seat: u32, me: Owner) {
        let Some((_, sums)) = self.row(me).filter(|_| !MODEL) else { return };
        let new = self.tally(seat).less(read(self.base(seat)));
        for (sum, new) in sums.iter().zip(new.0).filter(|(_, new)| *new != 0) {
            add(Point::Stat, sum, new);
        }
        self.set_base(seat);
    }

    /// What a process did (R2), and with how many handles.
    fn done_by(&self, process: Owner, owners: &[Owner]) -> (u32, Tally) {
        // ORDERING: Relaxed: a name.
        let row = self.row(process).filter(|row| row.0.load(Ordering::Relaxed) == process.0);
        let mut tally = row.map_or(Tally::default(), |(_, sums)| read(sums));
        let mut handles = 0;
        for (seat, _) in owners.iter().enumerate().filter(|(_, owner)| **owner == process) {
            let seat = seat as u32;
            handles += 1;
            tally = tally.plus(self.tally(seat).less(read(self.base(seat))));
        }
        (handles, tally)
    }
}

impl Handle<'_> {
    /// Before the seat is given back.
    pub(super) fn tell_process(&self) {
        if let Ok(seat) = self.view.memory.seat(self.inner.number) {
            self.view.tell(self.inner.number, seat.owner());
        }
    }
}

impl TierCache {
    /// The processes that take part: those that took a handle, unless they are proved dead. Who
    /// only reads does not show.
    pub fn processes(&self) -> Vec<Attached> {
        let view = self.view();
        let owner = |number| view.memory.seat(number).map_or(Owner::NOBODY, |seat| seat.owner());
        let owners: Vec<Owner> = (0..view.sizes.seats).map(owner).collect();
        let block = view.sizes.block_words as u64 * 8;
        let alive = |peer: Peer| {
            if self.segment.is_dead(peer.slot as usize, peer.incarnation) {
                return None;
            }
            let process = Owner::new(peer.slot, peer.incarnation);
            let (handles, Tally(did)) = view.done_by(process, &owners);
            Some(Attached {
                pid: peer.pid,
                here: peer.here,
                handles,
                hits: did[HITS],
                misses: did[MISSES],
                inserts: did[INSERTS],
                removes: did[REMOVES],
                evicted: did[EVICTED],
                demoted: did[DEMOTED],
                delivered: did[DELIVERED],
                stored_bytes: did[INSERTS].wrapping_add(did[FURTHER]).wrapping_mul(block),
                roles: view.roles_of(process),
                holds: view.holding_of(process),
            })
        };
        self.segment.processes().into_iter().filter_map(alive).collect()
    }
}

const _: () = assert!(TALLIES < PROCESS_WORDS && STAT_BASE + TALLIES <= STAT_WORDS);
