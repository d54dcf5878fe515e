//! Quotas: who has how much in the cache, and what becomes of those who take more.
//!
//! What [`accounts`](super::accounts) say decides (`accounts` A1 to A3).
//!
//! **Q1.** A quota refuses nothing. Who fills memory faster than its limit has that very entry made
//! a *suspect*; who has more than its limit, its oldest ones, as far as a look at a part of the
//! cache shows them, until that is no longer so.
//! **Q2.** A suspect lies in the last tier, is found like any other entry, and is not counted any
//! more. Whoever needs room takes suspects first, also in a cache with one tier. It stays a suspect
//! until it leaves or is replaced.
//! **Q3.** The work is the offender's: its own inserts look for what it has to lose.

use super::TierCache;
use super::accounts::{Payer, RATE, Who};
use super::error::CacheError;
use super::evict::Ring;
use super::handle::Handle;
use super::members::Holding;
use super::spaces::{Namespace, Space};
use super::view::{Age, View};
use crate::region::shm::Segment;
use crate::sync::{AtomicU64, Ordering};
use crate::tier_cache::memory::MAX_TIERS;
use crate::tier_cache::step::{Point, exchange, store_hint};
use crate::tier_cache::word::{Link, Owner};

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
/// Between two counts of a handle.
const AUDIT_MS: u64 = 10_000;

impl<'a> View<'a> {
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
    /// After an entry was placed: who has too much now, or is too fast, loses by it (Q1).
    #[inline(never)]
    pub(super) fn charge(&mut self, link: Link, space: Space) {
        let view = self.view;
        if Space::is_flight(space.number()) {
            return;
        }
        self.audit();
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

    /// An entry becomes a suspect: it leaves first, and lies in the last tier (Q2).
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

    /// The next suspect that is not shunned, if there is one within a few looks (Q2).
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
    /// (`accounts` A2). Until the number changes, one call in many looks.
    fn looks_in_vain(&mut self, known: u64) -> bool {
        if self.vain_count != known {
            (self.vain_count, self.vain_looks) = (known, 0);
        }
        let all = self.view.payers.len().div_ceil(STRETCH);
        let is_vain = self.vain_looks > all;
        self.vain_looks += usize::from(is_vain);
        is_vain && self.vain_looks % VAIN_CALLS != 0
    }

    /// Counts anew where that is due (`accounts` A2).
    pub(super) fn audit(&mut self) {
        if !self.view.sizes.quotas || self.view.doubts() == 0 {
            return;
        }
        let now = super::clock::monotonic_ms();
        if now.wrapping_sub(self.audited) >= AUDIT_MS {
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
