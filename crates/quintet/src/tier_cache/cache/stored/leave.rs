//! Leaving memory: put, then unlinked (`tier_cache_stores` N2 to N6); dropped (`tier_cache_stores`
//! N7); removed (`tier_cache_stores` N8).

use super::super::error::CacheError;
use super::super::handle::Handle;
use super::super::layout::Stored;
use super::super::sink::{Claims, Departed};
use super::super::spaces::Space;
use super::super::stats::Count;
use super::super::view::{Global, View};
use super::super::write::Entry;
use super::book::{ABSENT, Seen};
use crate::store::{Record, StoreError};
use crate::sync::Ordering;
use crate::tier_cache::MapError;
use crate::tier_cache::plan::{Task, Verdict, Want};
use crate::tier_cache::step::{Point, add};
use crate::tier_cache::word::{Link, Probe};
use std::time::{Duration, SystemTime};

/// How long a put may take, and how much longer its leases last (`stored` B4), in milliseconds.
const PUT_MS: u64 = 2_000;
const MARGIN_MS: u64 = 1_000;
/// Entries of one batch.
pub(super) const BATCH: usize = 256;
/// A tombstone expired at this moment (`stored` B2).
const GONE: u64 = 1;

/// One that is about to be put.
struct Leaver {
    link: Link,
    bucket: u32,
    key: Vec<u8>,
    version: u64,
    expiry: Option<SystemTime>,
    value: Option<Vec<u8>>,
    shown: Option<Departed>,
}

/// What is to be done with a victim.
enum Fate {
    Put(Box<Leaver>),
    /// Nobody will ever look for it in the store.
    Unlink,
    /// Nobody must get it from the store.
    Drop,
    /// It has moved on.
    Spare,
}

/// Leases held for a batch; those of a put without an answer are left to their end
/// (`tier_cache_stores` N5).
struct Leases {
    held: Vec<(u32, u64)>,
    end: u64,
    tag: u16,
}

impl Leases {
    fn take(&mut self, view: &View<'_>, bucket: u32) -> bool {
        if self.held.iter().any(|(held, _)| *held == bucket) {
            return true;
        }
        let taken = view.take_bucket_lease(bucket, self.end, self.tag);
        self.held.extend(taken.map(|lease| (bucket, lease)));
        taken.is_some()
    }

    fn end(self, view: &View<'_>) {
        self.held.into_iter().for_each(|(bucket, lease)| view.end_bucket_lease(bucket, lease));
    }
}

impl View<'_> {
    /// A moment of the segment's time on the wall clock.
    fn wall(&self, moment: u64) -> SystemTime {
        // ORDERING: Relaxed: written before the segment could be attached to.
        let created = self.created.load(Ordering::Relaxed);
        SystemTime::UNIX_EPOCH + Duration::from_millis(created.saturating_add(moment))
    }

    /// A moment of the wall clock in the segment's time, at least 1.
    pub(super) fn moment_of(&self, wall: SystemTime) -> u64 {
        // ORDERING: Relaxed, as above.
        let created = self.created.load(Ordering::Relaxed);
        let since = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        ms.saturating_sub(created).clamp(1, super::super::layout::MAX_EXPIRY)
    }

    /// What is to be done with this entry, and its copy. Its bucket is leased.
    fn fate_of(&self, link: Link, bucket: u32) -> Fate {
        let Ok(copy) = self.copy_whole(link) else { return Fate::Spare };
        let version = self.version_of(link);
        let Some(space) = copy.space.filter(|_| version != ABSENT) else { return Fate::Unlink };
        if copy.damaged {
            return Fate::Drop;
        }
        let key = self.store_key(space.number(), copy.generation, &copy.key);
        let expiry = (copy.expiry != 0).then(|| self.wall(copy.expiry));
        let value = (!copy.expired).then(|| copy.value.clone());
        let shown = (!copy.expired).then(|| Departed::of(link, self.shown(space, copy)));
        Fate::Put(Box::new(Leaver { link, bucket, key, version, expiry, value, shown }))
    }
}

impl Leaver {
    fn record(&self) -> Record<'_> {
        match &self.value {
            None => Record::removal(&self.key, self.version),
            Some(value) => Record {
                key: &self.key,
                version: self.version,
                expiry: self.expiry,
                value: Some(value),
            },
        }
    }
}

impl Handle<'_> {
    /// Puts these into the store and unlinks what it took, as far as nobody else does
    /// (`tier_cache_stores` N2 to N6). Returns how many left.
    pub(in super::super) fn put_away(
        &mut self,
        links: &[Link],
        cause: Count,
        shown: &mut Vec<Departed>,
    ) -> Result<usize, CacheError> {
        self.inner.begin_read()?;
        let Some(backing) = self.cache.backing.clone() else { return Ok(0) };
        backing.is_open()?;
        let (view, seat) = (self.view, self.inner.number);
        let mut left = 0;
        let mut claims = Claims::of(view, seat);
        let deadline = view.now().saturating_add(PUT_MS);
        self.turn = self.turn.wrapping_add(1);
        let tag = (seat as u16) << 3 | self.turn as u16 & 7;
        let mut leases = Leases { held: Vec::new(), end: deadline + MARGIN_MS, tag };
        let mut batch: Vec<Leaver> = Vec::new();
        for &link in links {
            let Some(input) = view.entry_input(link) else { continue };
            if self.spares_flight(link) || !view.claim(self.inner.map.peers, seat, link) {
                continue;
            }
            claims.links.push(link);
            if view.is_flight(link) {
                left += self.evict(link)? as usize;
                continue;
            }
            let bucket = input.bucket();
            if !leases.take(view, bucket) || !self.renew_version(link, bucket)? {
                continue;
            }
            match view.fate_of(link, bucket) {
                Fate::Put(leaver) => batch.push(*leaver),
                Fate::Unlink => left += self.evict(link)? as usize,
                Fate::Drop => left += self.drop_entry(link, cause)? as usize,
                Fate::Spare => {}
            }
        }
        if batch.is_empty() {
            leases.end(view);
            return Ok(left);
        }
        view.set_putting(seat, batch.len());
        let put = self.put_batch(&batch, deadline);
        // It may return in a child.
        self.inner.begin_read()?;
        view.set_putting(seat, 0);
        match put {
            Ok(()) => {}
            Err(StoreError::TooLarge { .. }) if batch.len() > 1 => {
                leases.end(view);
                drop(claims);
                for leaver in batch {
                    left += self.put_away(&[leaver.link], cause, shown)?;
                }
                return Ok(left);
            }
            Err(StoreError::TooLarge { .. }) => {
                left += self.drop_entry(batch[0].link, cause)? as usize;
                leases.end(view);
                return Ok(left);
            }
            // `tier_cache_stores` N5: without an answer the leases are left to their end.
            Err(why) => return Err(CacheError::Store(why.to_string())),
        }
        for leaver in batch {
            // `tier_cache_stores` N4
            let stands = || view.version_of(leaver.link) >= view.watermark(leaver.bucket);
            if self.evict_if(leaver.link, cause, &stands)? {
                left += 1;
                shown.extend(leaver.shown);
            }
        }
        leases.end(view);
        Ok(left)
    }

    /// `tier_cache_stores` N3.
    fn put_batch(&self, batch: &[Leaver], deadline: u64) -> Result<(), StoreError> {
        let Some(backing) = &self.cache.backing else { return Ok(()) };
        let records: Vec<_> = batch.iter().map(Leaver::record).collect();
        backing.put(self.view, &records, self.view.wall(deadline))
    }

    /// `tier_cache_stores` N7: an entry that its dropper did not live to unlink, or that never got
    /// a version (`stored` B1), gets one. False if it has moved on.
    fn renew_version(&mut self, link: Link, bucket: u32) -> Result<bool, CacheError> {
        let view = self.view;
        let version = view.version_of(link);
        if version != 0 && version >= view.watermark(bucket) {
            return Ok(true);
        }
        let Some(input) = view.entry_input(link) else { return Ok(false) };
        let judge = |found: Link| match found == link {
            true => {
                view.set_version(link, view.draw(bucket));
                Verdict::Present
            }
            false => Verdict::Other,
        };
        self.inner.begin()?;
        self.inner.open()?;
        match self.inner.lock_and_plan(Probe::from(input), Task::Hold, &judge) {
            Ok(()) => {
                self.inner.carry_out()?;
                self.inner.complete();
                Ok(true)
            }
            Err(MapError::NotFound | MapError::Busy) => {
                self.inner.abandon();
                Ok(false)
            }
            Err(error) => {
                self.inner.abandon();
                Err(error.into())
            }
        }
    }

    /// Where the store does not keep up, entries are dropped.
    pub(in super::super) fn drops(&self) -> bool {
        self.view.sizes.store.has(Stored::DROPS)
    }

    /// `tier_cache_stores` N7. False if it has moved on.
    pub(in super::super) fn drop_entry(
        &mut self,
        link: Link,
        cause: Count,
    ) -> Result<bool, CacheError> {
        let view = self.view;
        let Some(input) = view.entry_input(link) else { return Ok(false) };
        let raise = || {
            view.raise_watermark(input.bucket(), link);
            true
        };
        let went = self.evict_if(link, cause, &raise)?;
        add(Point::Stat, view.global(Global::StoreDrops), went as u64);
        Ok(went)
    }

    /// Drops entries until they had `short` blocks, the least recently used first.
    pub(in super::super) fn drop_oldest(&mut self, short: usize) -> Result<bool, CacheError> {
        let (view, seat) = (self.view, self.inner.number);
        let (mut freed, mut shunned) = (0, Vec::new());
        while freed < short {
            let Some((victim, _)) = self.oldest_victim(&shunned) else { break };
            shunned.push(victim.record);
            let mut claims = Claims::of(view, seat);
            if self.spares_flight(victim) || !view.claim(self.inner.map.peers, seat, victim) {
                continue;
            }
            claims.links.push(victim);
            let blocks = view.blocks_of(victim).max(1);
            let plain = view.is_flight(victim) || view.version_of(victim) == ABSENT;
            let went = match plain {
                true => self.evict(victim)?,
                false => self.drop_entry(victim, Count::Evicted)?,
            };
            freed += if went { blocks } else { 0 };
        }
        Ok(freed > 0)
    }

    /// The next victims, at most so many, the least recently used first.
    pub(super) fn victims(&mut self, most: usize) -> Vec<Link> {
        let mut links: Vec<Link> = Vec::new();
        let mut shunned = Vec::new();
        while links.len() < most {
            let Some((victim, _)) = self.oldest_victim(&shunned) else { break };
            // A large array is not looked at as a whole: after a revolution the same come again.
            if shunned.contains(&victim.record) {
                break;
            }
            shunned.push(victim.record);
            links.push(victim);
        }
        links
    }

    /// `tier_cache_stores` N8: replaces what a key has by a tombstone, if that is as wanted. The
    /// answer of the map below.
    pub(super) fn bury(
        &mut self,
        key: &[u8],
        want: Want,
    ) -> Result<Result<bool, MapError>, CacheError> {
        let input = self.view.input(self.space, key);
        let entry = Entry { input, space: self.space, key, value: b"", expiry: GONE };
        self.pass_time();
        Ok(self.place(entry, want)?.map(|placed| placed.replaced))
    }

    /// `stored` B2: memory and store lack this key, as far as the bucket has given out no version
    /// since.
    pub(super) fn note_absence(&mut self, space: Space, key: &[u8], seen: Seen) {
        let input = self.view.input(space, key);
        let entry = Entry { input, space, key, value: b"", expiry: GONE };
        self.given = ABSENT;
        // Only a hint: what cannot be noted is looked up again.
        let _ = self.place_kept(entry, seen, true);
        self.given = 0;
    }
}
