//! Evictions that somebody asks for: the oldest, the unused, those of one bucket. What leaves is
//! returned, and goes to the sink if there is one.

use super::error::CacheError;
use super::handle::Handle;
use super::read::current;
use super::sink::Departed;
use super::view::{Age, View};
use crate::sync::Ordering;
use crate::tier_cache::word::{Link, RecordState};
use std::time::Duration;

impl View<'_> {
    /// The live entry that begins at a block, and how many ticks ago it was used.
    fn entry_at(&self, block: u32) -> Option<(u32, Link)> {
        let record = self.memory.record(block).ok()?;
        let word = record.state();
        let link = Link { record: block, generation: word.generation() };
        (word.state() == Some(RecordState::Live)).then(|| (self.ticks_since(link), link))
    }

    /// Ticks since the last use of an entry.
    fn ticks_since(&self, link: Link) -> u32 {
        // ORDERING: Relaxed: a hint.
        let used = current(self, link).map(|record| record.tick().load(Ordering::Relaxed) as u32);
        used.map_or(0, |used| self.tick().wrapping_sub(used))
    }

    /// Entries that were not used for at least so many ticks, the oldest first, at most `most`; of
    /// one tier, if that is given.
    pub(super) fn unused_for(&self, tier: Option<usize>, ticks: u32, most: usize) -> Vec<Link> {
        let now = self.tick();
        let mut found = Vec::new();
        for (block, age) in self.ages.iter().enumerate() {
            // ORDERING: Relaxed: a hint. The array may be behind, never ahead.
            let age = Age(age.load(Ordering::Relaxed));
            let meant = tier.is_none_or(|tier| age.tier() == tier);
            let old = !self.stamps_uses() || now.wrapping_sub(age.tick()) >= ticks;
            if age.is_entry() && meant && old {
                found.extend(self.entry_at(block as u32).filter(|(age, _)| *age >= ticks));
            }
        }
        found.sort_unstable_by_key(|(age, link)| (std::cmp::Reverse(*age), link.record));
        found.truncate(most);
        found.into_iter().map(|(_, link)| link).collect()
    }
}

impl View<'_> {
    /// What was not used for so long was not used for so many ticks. `None` if nothing is known of
    /// that time.
    pub(super) fn ticks_unused(&self, time: Duration) -> Option<u32> {
        self.mark_time();
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        match self.tick_before(ms) {
            _ if time.is_zero() => Some(0),
            tick => tick.map(|tick| self.tick().wrapping_sub(tick)),
        }
    }
}

impl Handle<'_> {
    /// Claims are made for the seat, before anything that would refuse a handle of the parent.
    fn begin_eviction(&self) -> Result<(), CacheError> {
        self.inner.begin_read()?;
        if self.spares() { Err(CacheError::Full) } else { Ok(()) }
    }

    /// Evicts up to `most` entries of the oldest tier first, in the order of the cache's
    /// [`Policy`](super::Policy), and returns them. They go to the sink as well, if there is one. A
    /// cache that never evicts refuses with [`CacheError::Full`]. Never more leave at once than the
    /// cache has blocks, whatever is added meanwhile.
    pub fn evict_oldest(&mut self, most: usize) -> Result<Vec<Departed>, CacheError> {
        self.evict_oldest_of(None, most)
    }

    /// [`Handle::evict_oldest`], of one tier.
    pub fn evict_oldest_in(
        &mut self,
        tier: usize,
        most: usize,
    ) -> Result<Vec<Departed>, CacheError> {
        self.known_tier(tier).map_or(Ok(Vec::new()), |tier| self.evict_oldest_of(Some(tier), most))
    }

    fn evict_oldest_of(
        &mut self,
        tier: Option<usize>,
        most: usize,
    ) -> Result<Vec<Departed>, CacheError> {
        self.begin_eviction()?;
        // A sink that stores something for each that leaves would never see the end.
        let most = most.min(self.view.sizes.blocks as usize);
        let mut gone = Vec::new();
        let mut shunned = Vec::new();
        while gone.len() < most {
            let view = self.view;
            let next = match tier {
                Some(tier) => view
                    .next_victim(tier, &mut self.rings[tier], &shunned)
                    .map(|victim| (victim, tier)),
                None => self.oldest_victim(&shunned),
            };
            let Some((victim, of)) = next else { break };
            let mut links = self.batch_of(victim, of, most - gone.len());
            self.keep_those_of(tier, &mut links);
            if !self.put_out(&links, &mut gone)? {
                shunned.push(victim.record);
            }
        }
        Ok(gone)
    }

    /// Evicts up to `most` entries that were not used for at least `time`, the oldest first, and
    /// returns them. How long an entry was not used is known up to sixteen seconds or a seventh of
    /// the time, whichever is longer: some that are just over it stay. A handle that was idle may
    /// take up to 64 uses for as old as its last one before it looks at the clock again. With
    /// [`Duration::ZERO`] every entry counts. Where the policy counts uses instead of noting when
    /// they were, the time since an entry was stored counts.
    pub fn evict_unused(
        &mut self,
        time: Duration,
        most: usize,
    ) -> Result<Vec<Departed>, CacheError> {
        self.evict_unused_of(None, time, most)
    }

    /// [`Handle::evict_unused`], of one tier.
    pub fn evict_unused_in(
        &mut self,
        tier: usize,
        time: Duration,
        most: usize,
    ) -> Result<Vec<Departed>, CacheError> {
        match self.known_tier(tier) {
            None => Ok(Vec::new()),
            tier => self.evict_unused_of(tier, time, most),
        }
    }

    fn evict_unused_of(
        &mut self,
        tier: Option<usize>,
        time: Duration,
        most: usize,
    ) -> Result<Vec<Departed>, CacheError> {
        self.begin_eviction()?;
        let Some(ticks) = self.view.ticks_unused(time) else { return Ok(Vec::new()) };
        let mut links = self.view.unused_for(tier, ticks, most);
        self.keep_those_of(tier, &mut links);
        self.put_out_all(&links)
    }

    /// Evicts up to `most` entries of the bucket that a key falls into, whether that is there or
    /// not, the least recently used first, and returns them.
    pub fn evict_bucket_of(
        &mut self,
        key: impl AsRef<[u8]>,
        most: usize,
    ) -> Result<Vec<Departed>, CacheError> {
        self.evict_bucket(None, key.as_ref(), most)
    }

    /// [`Handle::evict_bucket_of`], of one tier.
    pub fn evict_bucket_of_in(
        &mut self,
        tier: usize,
        key: impl AsRef<[u8]>,
        most: usize,
    ) -> Result<Vec<Departed>, CacheError> {
        match self.known_tier(tier) {
            None => Ok(Vec::new()),
            tier => self.evict_bucket(tier, key.as_ref(), most),
        }
    }

    fn evict_bucket(
        &mut self,
        tier: Option<usize>,
        key: &[u8],
        most: usize,
    ) -> Result<Vec<Departed>, CacheError> {
        self.begin_eviction()?;
        let view = self.view;
        let bucket = view.input(self.space, key).bucket();
        let mut links = match tier {
            Some(tier) => view.links_in(tier, bucket),
            None => view.links(bucket),
        };
        links.sort_by_key(|link| std::cmp::Reverse(view.ticks_since(*link)));
        links.truncate(most);
        self.put_out_all(&links)
    }

    fn known_tier(&self, tier: usize) -> Option<usize> {
        Some(tier).filter(|tier| *tier < self.view.memory.tiers())
    }

    /// Those that lie in the tier, if one is given: the array of ages may be behind.
    fn keep_those_of(&self, tier: Option<usize>, links: &mut Vec<Link>) {
        if tier.is_some() && self.view.memory.tiers() > 1 {
            links.retain(|link| self.view.tier_of(*link) == tier);
        }
    }

    fn put_out_all(&mut self, links: &[Link]) -> Result<Vec<Departed>, CacheError> {
        let batch = self.cache.sink.as_ref().map_or(64, |sink| sink.batch().max(1));
        let mut gone = Vec::new();
        for links in links.chunks(batch) {
            self.put_out(links, &mut gone)?;
        }
        Ok(gone)
    }
}
