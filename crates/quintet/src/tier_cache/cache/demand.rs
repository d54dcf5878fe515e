//! Evictions that somebody asks for: the oldest, the unused, those of one bucket. What leaves is returned, and goes to the sink if there is one.

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

    /// Entries that were not used for at least so many ticks, the oldest first, at most `most`.
    fn unused_for(&self, ticks: u32, most: usize) -> Vec<Link> {
        let now = self.tick();
        let mut found = Vec::new();
        for (block, age) in self.ages.iter().enumerate() {
            // ORDERING: Relaxed: a hint. The array may be behind, never ahead.
            let age = Age(age.load(Ordering::Relaxed));
            if age.is_entry() && now.wrapping_sub(age.tick()) >= ticks {
                found.extend(self.entry_at(block as u32).filter(|(age, _)| *age >= ticks));
            }
        }
        found.sort_unstable_by_key(|(age, link)| (std::cmp::Reverse(*age), link.record));
        found.truncate(most);
        found.into_iter().map(|(_, link)| link).collect()
    }
}

impl Handle<'_> {
    /// Claims are made for the seat, before anything that would refuse a handle of the parent.
    fn begin_eviction(&self) -> Result<(), CacheError> {
        self.inner.begin_read()?;
        if self.spares() { Err(CacheError::Full) } else { Ok(()) }
    }

    /// Evicts up to `most` entries, the least recently used first, and returns them. They go to the sink as well, if there is one.
    /// A cache that never evicts refuses with [`CacheError::Full`]. Never more leave at once than the cache has blocks, whatever is added meanwhile.
    pub fn evict_oldest(&mut self, most: usize) -> Result<Vec<Departed>, CacheError> {
        self.begin_eviction()?;
        // A sink that stores something for each that leaves would never see the end.
        let most = most.min(self.view.sizes.blocks as usize);
        let mut gone = Vec::new();
        let mut shunned = Vec::new();
        while gone.len() < most {
            let view = self.view;
            let Some(victim) = view.next_victim(&mut self.ring, &shunned) else { break };
            let links = self.batch_of(victim, most - gone.len());
            if !self.put_out(&links, &mut gone)? {
                shunned.push(victim.record);
            }
        }
        Ok(gone)
    }

    /// Evicts up to `most` entries that were not used for at least `time`, the oldest first, and returns them. How long an entry was not used is known up
    /// to sixteen seconds or a seventh of the time, whichever is longer: some that are just over it stay. A handle that was idle may take up to
    /// 64 uses for as old as its last one before it looks at the clock again. With [`Duration::ZERO`] every entry counts.
    pub fn evict_unused(
        &mut self,
        time: Duration,
        most: usize,
    ) -> Result<Vec<Departed>, CacheError> {
        self.begin_eviction()?;
        let view = self.view;
        view.mark_time();
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let ticks = match view.tick_before(ms) {
            _ if time.is_zero() => 0,
            Some(tick) => view.tick().wrapping_sub(tick),
            None => return Ok(Vec::new()),
        };
        self.put_out_all(&view.unused_for(ticks, most))
    }

    /// Evicts up to `most` entries of the bucket that a key falls into, whether that is there or not, the least recently used first, and returns them.
    pub fn evict_bucket_of(
        &mut self,
        key: impl AsRef<[u8]>,
        most: usize,
    ) -> Result<Vec<Departed>, CacheError> {
        self.begin_eviction()?;
        let view = self.view;
        let mut links = view.links(view.input(self.space, key.as_ref()).bucket());
        links.sort_by_key(|link| std::cmp::Reverse(view.ticks_since(*link)));
        links.truncate(most);
        self.put_out_all(&links)
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
