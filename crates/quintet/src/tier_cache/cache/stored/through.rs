//! Lookups that go on to the store (`tier_cache_stores` N9), and what they find kept in memory
//! (`tier_cache_stores` N10); writes that depend on what is there.

use super::super::error::CacheError;
use super::super::flight::Held;
use super::super::handle::{Handle, Inserted};
use super::super::layout::Stored;
use super::super::read::{Hit, Sought, Target};
use super::super::reader::Reader;
use super::super::spaces::Space;
use super::super::stats::Count;
use super::super::view::{Global, View};
use super::super::write::{Entry, Placed};
use super::book::Seen;
use super::side::Backing;
use crate::store::{Found, StoreError};
use crate::sync::Ordering;
use crate::tier_cache::MapError;
use crate::tier_cache::plan::Want;
use crate::tier_cache::step::{Point, add};
use crate::tier_cache::word::{InputHash, Link};

/// The link of an entry that is in the store only.
const NOWHERE: Link = Link { record: u32::MAX, generation: 0 };

/// What became of a lookup.
pub(in super::super) enum Looked {
    Hit(Hit),
    /// A tombstone, or an entry that has expired, ended the search.
    Gone,
    /// Memory and store lack it, and the bucket was like this.
    Missed(Seen),
    /// Memory lacks it, the bucket was like this, and the store did not answer.
    Unknown(Seen),
}

/// Whose turn it is to ask the store.
enum Turn {
    /// Not known yet.
    Ahead,
    Mine(Held),
    /// Everybody's.
    Over,
}

/// Rounds of looking again, because somebody wrote to the bucket meanwhile, before the caller is
/// told.
const MAX_ROUNDS: u32 = 1000;

fn again(rounds: &mut u32) -> Result<(), CacheError> {
    #[cfg(test)]
    if crate::tier_cache::step::is_stopped() {
        return Err(CacheError::Busy);
    }
    *rounds += 1;
    if *rounds > MAX_ROUNDS { Err(CacheError::Busy) } else { Ok(()) }
}

impl View<'_> {
    /// Some block is free, as far as anybody knows.
    fn has_room(&self) -> bool {
        // ORDERING: Relaxed: hints.
        self.summary.iter().any(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// `stored` B3.
    pub(super) fn store_key(&self, space: u32, generation: u32, key: &[u8]) -> Vec<u8> {
        let common = space == 0 && self.sizes.store.has(Stored::ADOPTS);
        let id = if common { 0 } else { self.seed | 1 };
        let mut all = Vec::with_capacity(14 + key.len());
        all.extend_from_slice(&id.to_be_bytes());
        all.extend_from_slice(&(space as u16).to_be_bytes());
        all.extend_from_slice(&generation.to_be_bytes());
        all.extend_from_slice(key);
        all
    }
}

impl Handle<'_> {
    /// A lookup in memory and then in the store. `keeps`: what is found there comes into memory, or
    /// the lookup fails.
    pub(in super::super) fn look_through(
        &mut self,
        space: Space,
        key: &[u8],
        target: &mut impl Target,
        keeps: bool,
    ) -> Result<Looked, CacheError> {
        self.look_in_turn(space, key, target, keeps, &mut Turn::Over)
    }

    /// The same, where of all who ask at the same time one asks the store (`flight` H6).
    pub(in super::super) fn look_once(
        &mut self,
        key: &[u8],
        target: &mut impl Target,
    ) -> Result<Looked, CacheError> {
        let shared = self.view.sizes.store.has(Stored::KEEPS);
        let mut turn = if shared { Turn::Ahead } else { Turn::Over };
        let looked = self.look_in_turn(self.space, key, target, false, &mut turn);
        if let Turn::Mine(held) = turn {
            self.end_flight(held, key)?;
        }
        looked
    }

    fn look_in_turn(
        &mut self,
        space: Space,
        key: &[u8],
        target: &mut impl Target,
        keeps: bool,
        turn: &mut Turn,
    ) -> Result<Looked, CacheError> {
        let view = self.view;
        let input = view.input(space, key);
        let mut rounds = 0;
        loop {
            again(&mut rounds)?;
            let seen = match self.seek(space, input, key, target)? {
                Sought::Hit(hit) => return Ok(Looked::Hit(hit)),
                Sought::Gone => return Ok(Looked::Gone),
                Sought::Missed(seen) => seen,
            };
            if let (Turn::Ahead, true) = (&turn, view.has_room()) {
                *turn = self.take_turn(key)?.map_or(Turn::Over, Turn::Mine);
                continue;
            }
            let Ok(fetched) = self.fetch(space, key)? else { return Ok(Looked::Unknown(seen)) };
            let Some(found) = fetched else {
                let count = view.global(Global::StoreMisses);
                add(Point::Stat, count, 1);
                if view.sizes.store.has(Stored::ABSENCES) && view.has_room() {
                    self.note_absence(space, key, seen);
                }
                return Ok(Looked::Missed(seen));
            };
            // `tier_cache_stores` N9
            let watermark = view.watermark(input.bucket());
            if found.version < watermark {
                if watermark != seen.watermark {
                    continue;
                }
                add(Point::Stat, view.global(Global::StoreRefused), 1);
                return Ok(Looked::Missed(seen));
            }
            add(Point::Stat, view.global(Global::StoreHits), 1);
            target.fill(&found.value);
            let expiry = found.expiry.map_or(0, |moment| view.moment_of(moment));
            let mut hit = Hit { link: NOWHERE, expiry, used: 0, tier: 0 };
            if keeps || view.sizes.store.has(Stored::KEEPS) && view.has_room() {
                match self.keep(space, input, key, &found, expiry, seen, !keeps) {
                    Ok(Some(link)) => hit.link = link,
                    // Somebody wrote to the bucket meanwhile.
                    Ok(None) if keeps => continue,
                    Err(error) if keeps => return Err(error),
                    _ => {}
                }
            }
            return Ok(Looked::Hit(hit));
        }
    }

    /// What the store has of a key, if it answers.
    fn fetch(
        &mut self,
        space: Space,
        key: &[u8],
    ) -> Result<Result<Option<Found>, StoreError>, CacheError> {
        let view = self.view;
        let (Some(backing), Some(generation)) = (&self.cache.backing, view.generation_for(space))
        else {
            return Ok(Ok(None));
        };
        let key = view.store_key(space.number(), generation, key);
        let found = backing.get(view, &key);
        // It may return in a child.
        self.inner.begin_read()?;
        Ok(found)
    }

    /// Places what a lookup keeps. `spares`: it does without rather than make room.
    pub(super) fn place_kept(
        &mut self,
        entry: Entry<'_>,
        seen: Seen,
        spares: bool,
    ) -> Result<Result<Placed, MapError>, CacheError> {
        let before = self.no_evict;
        self.no_evict |= spares;
        let placed = self.place(entry, Want::Since(seen.last));
        self.no_evict = before;
        placed
    }

    #[allow(clippy::too_many_arguments)] // a value, where it belongs, and what was seen
    /// `tier_cache_stores` N10. `None` if the bucket has given out a version since.
    fn keep(
        &mut self,
        space: Space,
        input: InputHash,
        key: &[u8],
        found: &Found,
        expiry: u64,
        seen: Seen,
        spares: bool,
    ) -> Result<Option<Link>, CacheError> {
        let entry = Entry { input, space, key, value: &found.value, expiry };
        self.given = found.version;
        let placed = self.place_kept(entry, seen, spares);
        self.given = 0;
        Ok(placed?.ok().map(|placed| placed.link))
    }

    /// A lookup whose answer is going to be changed: what the store has comes into memory.
    pub(in super::super) fn bring(
        &mut self,
        key: &[u8],
        target: &mut impl Target,
    ) -> Result<Option<Hit>, CacheError> {
        if !self.stores {
            return self.read(key, target);
        }
        self.inner.begin_read()?;
        self.pass_time();
        let hit = match self.look_through(self.space, key, target, true)? {
            Looked::Hit(hit) => Some(hit),
            _ => None,
        };
        let what = if hit.is_some() { Count::Hits } else { Count::Misses };
        self.view.count(self.inner.number, what, 1);
        Ok(hit)
    }

    /// A store that depends on whether the key is there.
    #[cold]
    pub(in super::super) fn put_through(
        &mut self,
        entry: Entry<'_>,
        want: Want,
    ) -> Result<Result<Inserted, MapError>, CacheError> {
        let mut rounds = 0;
        loop {
            again(&mut rounds)?;
            let looked =
                self.look_through(entry.space, entry.key, &mut super::super::read::Nothing, true)?;
            let want = match (looked, want) {
                (Looked::Hit(_), Want::Absent) => return Ok(Err(MapError::Exists)),
                (Looked::Hit(_), want) => want,
                (Looked::Gone, Want::Absent) => Want::Absent,
                // Where the store does not answer, memory decides.
                (Looked::Missed(seen) | Looked::Unknown(seen), Want::Absent) => {
                    Want::Since(seen.last)
                }
                _ => return Ok(Err(MapError::NotFound)),
            };
            match self.store(entry, want)? {
                // Written to meanwhile, or evicted: looked at again.
                Err(MapError::NotFound) => {}
                Err(MapError::Exists) if want == Want::Absent => return Ok(Err(MapError::Exists)),
                done => return Ok(done),
            }
        }
    }

    /// `tier_cache_stores` N8. False if the key was absent.
    #[cold]
    pub(in super::super) fn remove_through(&mut self, key: &[u8]) -> Result<bool, CacheError> {
        let mut rounds = 0;
        loop {
            again(&mut rounds)?;
            let nothing = &mut super::super::read::Nothing;
            let looked = self.look_through(self.space, key, nothing, true);
            let (want, there) = match looked {
                Ok(Looked::Hit(hit)) => (Want::Exactly(hit.link), true),
                Ok(Looked::Gone | Looked::Missed(_)) => return Ok(false),
                // It may have it: the tombstone tells, whenever it answers again.
                Ok(Looked::Unknown(seen)) => (Want::Since(seen.last), false),
                // There is no room to bring it into memory, but there may be for a tombstone.
                Err(CacheError::Full | CacheError::Store(_) | CacheError::NoStore(_)) => {
                    (Want::Any, true)
                }
                Err(error) => return Err(error),
            };
            match self.bury(key, want)? {
                Ok(_) => {
                    self.view.count(self.inner.number, Count::Removes, there as u64);
                    return Ok(there);
                }
                Err(MapError::NotFound | MapError::Exists) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Unlinks this very entry, by a tombstone.
    pub(in super::super) fn bury_exactly(
        &mut self,
        key: &[u8],
        link: Link,
    ) -> Result<bool, CacheError> {
        match self.bury(key, Want::Exactly(link))? {
            Ok(_) => Ok(true),
            Err(MapError::NotFound | MapError::Exists) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a key another expiry: a value of its own, so that a put under way does not bring back
    /// the old one.
    #[cold]
    pub(in super::super) fn touch_through(
        &mut self,
        key: &[u8],
        expiry: u64,
    ) -> Result<Option<Vec<u8>>, CacheError> {
        let mut value = Vec::new();
        let mut rounds = 0;
        loop {
            again(&mut rounds)?;
            let Some(hit) = self.bring(key, &mut value)? else { return Ok(None) };
            let input = self.view.input(self.space, key);
            let entry = Entry { input, space: self.space, key, value: &value, expiry };
            match self.place(entry, Want::Exactly(hit.link))? {
                Ok(_) => return Ok(Some(value)),
                Err(MapError::NotFound | MapError::Exists) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Reader<'_> {
    /// `tier_cache_stores` N9, for whoever has no seat: nothing is kept, and nothing counted.
    #[cold]
    pub(in super::super) fn read_through(
        &self,
        backing: &Backing,
        input: InputHash,
        key: &[u8],
        target: &mut impl Target,
    ) -> Result<Option<Hit>, CacheError> {
        let (view, space) = (self.view, self.space);
        let mut rounds = 0;
        loop {
            again(&mut rounds)?;
            let seen = match view.seek(None, self.timeout, input, space, key, target)? {
                Sought::Hit(hit) => return Ok(Some(hit)),
                Sought::Gone => return Ok(None),
                Sought::Missed(seen) => seen,
            };
            let Some(generation) = view.generation_for(space) else { return Ok(None) };
            let name = view.store_key(space.number(), generation, key);
            let Ok(Some(found)) = backing.get(view, &name) else { return Ok(None) };
            let watermark = view.watermark(input.bucket());
            if found.version >= watermark {
                target.fill(&found.value);
                let expiry = found.expiry.map_or(0, |moment| view.moment_of(moment));
                return Ok(Some(Hit { link: NOWHERE, expiry, used: 0, tier: 0 }));
            }
            if watermark == seen.watermark {
                return Ok(None);
            }
        }
    }
}
