//! Single flight: one computes, in all processes; the others wait for its result, or do something
//! else meanwhile.
//!
//! A *flight* is an entry of its own kind under the very key that is computed: so there are as many
//! as there is room for, and no two keys share one. Its value is its *holder*: a token, the
//! process, the seat if it ends with that, the thread. Lookups and scans never meet it.
//!
//! **H1.** It is added where there is none, or replaces one that is over: its token is 0, its
//! process is proved dead, or its seat is another's.
//! **H2.** Whoever began it looks for the key once more: the last one may have just stored it.
//! **H3.** It is ended by taking it out, or where no seat is free for that by changing its token to
//! 0, in any case also if the computation unwinds, but not by a child that was forked in it. The
//! token is drawn at random: an exchange changes this flight's word or none.
//! **H4.** A flight that is not over is no victim of an eviction for room. One that is over leaves
//! like any entry that was not used since.
//! **H5.** Who would wait for a flight that the same thread began is told so instead.
//! **H6.** A lookup that goes on to the store takes a flight as well where what it finds is kept:
//! the others wait for it, once, and then look in memory. Its seat is marked, so that no lookup
//! waits for a computation. Whoever finds no room for one, or has waited, asks the store without.

use super::TierCache;
use super::block::{Block, Pieces};
use super::error::CacheError;
use super::handle::{Handle, Inserted};
use super::read::current;
use super::spaces::Space;
use super::stats::Count;
use super::stored::Looked;
use super::view::View;
use super::write::Entry;
use crate::sync::{Arc, AtomicU64, fork};
use crate::tier_cache::MapError;
use crate::tier_cache::map::Map;
use crate::tier_cache::plan::Want;
use crate::tier_cache::step::{Point, exchange};
use crate::tier_cache::wait::Wait;
use crate::tier_cache::word::{Link, Owner};
use std::convert::Infallible;
use std::ops::Deref;
use std::time::Duration;

/// How long a caller waits for somebody else's computation by default.
pub(super) const DEFAULT_PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of a flight's value.
pub(super) const HOLDER: usize = 32;
/// The flight does not end with a seat.
const NO_SEAT: u64 = u64::MAX;
/// Beside its seat: it asks the store (H6).
const FETCHES: u64 = 1 << 32;

/// Who computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Holder {
    token: u64,
    owner: Owner,
    seat: u64,
    thread: u64,
}

impl Holder {
    fn bytes(self) -> [u8; HOLDER] {
        let words = [self.token, self.owner.0, self.seat, self.thread];
        let mut bytes = [0; HOLDER];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let mut words = bytes.chunks_exact(8).map(|word| word.try_into().map(u64::from_le_bytes));
        let mut next = || words.next()?.ok();
        Some(Self { token: next()?, owner: Owner(next()?), seat: next()?, thread: next()? })
    }

    /// H1.
    fn is_over(self, view: &View<'_>, map: &Map<'_>) -> bool {
        let number = if self.fetches() { self.seat & !FETCHES } else { self.seat };
        let seat = u32::try_from(number).ok().map(|seat| view.memory.seat(seat));
        let unseated = match seat {
            Some(Ok(words)) => words.owner() != self.owner,
            Some(Err(_)) => true,
            None => self.seat != NO_SEAT,
        };
        self.token == 0 || self.owner == Owner::NOBODY || unseated || map.peers.is_dead(self.owner)
    }

    /// H6.
    fn fetches(self) -> bool {
        self.seat != NO_SEAT && self.seat & FETCHES != 0
    }

    /// H5.
    fn is_of_this_thread(self, me: Owner) -> bool {
        self.owner == me && self.thread == fork::thread_key() as u64
    }
}

/// A flight held.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    space: Space,
    link: Link,
    token: u64,
    forks: usize,
}

impl Held {
    fn is_ours(self) -> bool {
        self.forks == fork::seen().0
    }
}

/// What [`Handle::begin`] found.
#[derive(Debug)]
pub enum Begun<'c> {
    /// The key is there.
    Value(Vec<u8>),
    /// It is not, and the caller is the one to compute it.
    Flight(Flight<'c>),
    /// Somebody else, in this process or another, is computing it.
    Busy,
}

/// A cache, borrowed or owned together with others.
#[derive(Debug)]
pub(super) enum Shared<'c> {
    Borrowed(&'c TierCache),
    Owned(Arc<TierCache>),
}

impl Deref for Shared<'_> {
    type Target = TierCache;

    fn deref(&self) -> &TierCache {
        match self {
            Self::Borrowed(cache) => cache,
            Self::Owned(cache) => cache,
        }
    }
}

/// [`Begun`], before it is known how the flight has the cache.
#[derive(Debug)]
pub(super) enum Start {
    Value(Vec<u8>),
    Flight(Held),
    Busy,
}

impl Start {
    pub(super) fn begun<'c>(self, cache: Shared<'c>, key: &[u8]) -> Begun<'c> {
        match self {
            Self::Value(value) => Begun::Value(value),
            Self::Busy => Begun::Busy,
            Self::Flight(held) => {
                Begun::Flight(Flight { cache, key: key.to_owned(), held: Some(held) })
            }
        }
    }
}

/// The duty to compute a value. Dropped without [`Flight::complete`], or left by a process that
/// dies, it passes to the next who asks.
#[derive(Debug)]
#[must_use = "dropped, it passes to the next who asks"]
pub struct Flight<'c> {
    cache: Shared<'c>,
    key: Vec<u8>,
    held: Option<Held>,
}

impl Flight<'_> {
    /// The key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Stores the value for `ttl` and ends the flight, which it does also if the value cannot be
    /// stored.
    pub fn complete(
        mut self,
        value: impl AsRef<[u8]>,
        ttl: Option<Duration>,
    ) -> Result<Inserted, CacheError> {
        let Some(held) = self.held else { return Err(CacheError::Forked) };
        if !held.is_ours() {
            return Err(CacheError::Forked);
        }
        let (key, value) = (&self.key, value.as_ref());
        let mut ended = false;
        let done = self.cache.with(|handle| {
            let space = std::mem::replace(&mut handle.space, held.space);
            let stored = handle.insert_for(key, value, ttl);
            handle.space = space;
            handle.view.count(handle.inner.number, Count::Computed, stored.is_ok() as u64);
            ended = handle.end_flight(held, key).is_ok();
            stored
        });
        if ended {
            self.held = None;
        }
        done
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let Some(held) = self.held.take().filter(|held| held.is_ours()) else { return };
        let ended = self.cache.with(|handle| handle.end_flight(held, &self.key));
        if ended.is_err() {
            self.cache.view().void_flight(held, self.key.len());
        }
    }
}

impl<'a> View<'a> {
    /// The entry that a link names is a flight.
    pub(super) fn is_flight(&self, link: Link) -> bool {
        current(self, link).is_some_and(|record| Space::is_flight(Block::of(record).meta().space()))
    }

    /// The words of a flight's value, whatever is there now.
    fn holder_words(&self, link: Link, key: usize) -> Option<&'a [AtomicU64]> {
        let record = current(self, link)?;
        let mut pieces = Pieces::of(self.memory, Block::of(record));
        let mut words = key.div_ceil(8);
        while words > 0 {
            words -= pieces.take(words)?.len();
        }
        pieces.take(1)
    }

    /// Ends a flight without a seat (H3).
    pub(super) fn void_flight(&self, held: Held, key: usize) {
        if let Some(token) = self.holder_words(held.link, key).and_then(<[_]>::first) {
            exchange(Point::Flight, token, held.token, 0);
        }
    }
}

/// Ends a flight, however its computation ends.
struct Ends<'h, 'c, 'k> {
    handle: &'h mut Handle<'c>,
    held: Held,
    key: &'k [u8],
}

impl Drop for Ends<'_, '_, '_> {
    fn drop(&mut self) {
        if self.handle.end_flight(self.held, self.key).is_err() && self.held.is_ours() {
            self.handle.view.void_flight(self.held, self.key.len());
        }
    }
}

impl<'c> Handle<'c> {
    /// Sets how long [`Handle::get_or_compute`] waits for a living peer's computation: a minute by
    /// default.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// The value of a key; or, if it is absent, the duty to compute it; or neither, if somebody
    /// else has that. Never waits for a computation.
    pub fn begin(&mut self, key: impl AsRef<[u8]>) -> Result<Begun<'c>, CacheError> {
        let key = key.as_ref();
        Ok(self.start(key)?.begun(Shared::Borrowed(self.cache), key))
    }

    pub(super) fn start(&mut self, key: &[u8]) -> Result<Start, CacheError> {
        let mut value = Vec::new();
        if self.get_into(key, &mut value)? {
            return Ok(Start::Value(value));
        }
        let Ok(held) = self.take_off(key, NO_SEAT)? else { return Ok(Start::Busy) };
        // H2
        match self.look(key, &mut value) {
            Ok(false) => Ok(Start::Flight(held)),
            found => {
                self.end_flight(held, key)?;
                found.map(|_| Start::Value(value))
            }
        }
    }

    /// The value of a key; if it is absent, what `compute` returns, stored for `ttl`. Among all
    /// callers in all processes one computes and the others wait for its result; if it dies,
    /// another takes over. What could not be stored is returned all the same.
    pub fn get_or_compute(
        &mut self,
        key: impl AsRef<[u8]>,
        ttl: Option<Duration>,
        compute: impl FnOnce() -> Vec<u8>,
    ) -> Result<Vec<u8>, CacheError> {
        match self.get_or_try_compute(key, ttl, || Ok::<_, Infallible>(compute()))? {
            Ok(value) => Ok(value),
            Err(never) => match never {},
        }
    }

    /// Like [`Handle::get_or_compute`]; waits for somebody else's computation for at most
    /// `patience`, then [`CacheError::Busy`].
    pub fn get_or_compute_timeout(
        &mut self,
        key: impl AsRef<[u8]>,
        ttl: Option<Duration>,
        patience: Duration,
        compute: impl FnOnce() -> Vec<u8>,
    ) -> Result<Vec<u8>, CacheError> {
        let compute = || Ok::<_, Infallible>(compute());
        match self.compute_within(key.as_ref(), ttl, patience, compute)? {
            Ok(value) => Ok(value),
            Err(never) => match never {},
        }
    }

    /// Like [`Handle::get_or_compute`]; an error of `compute` is handed on, and the next caller
    /// computes.
    pub fn get_or_try_compute<E>(
        &mut self,
        key: impl AsRef<[u8]>,
        ttl: Option<Duration>,
        compute: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Result<Vec<u8>, E>, CacheError> {
        self.compute_within(key.as_ref(), ttl, self.patience, compute)
    }

    pub(super) fn compute_within<E>(
        &mut self,
        key: &[u8],
        ttl: Option<Duration>,
        patience: Duration,
        compute: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Result<Vec<u8>, E>, CacheError> {
        let mut value = Vec::new();
        if self.get_into(key, &mut value)? {
            return Ok(Ok(value));
        }
        let held = match self.wait_to_compute(key, patience, &mut value) {
            Ok(None) => return Ok(Ok(value)),
            Ok(Some(held)) => held,
            // There is no room for a flight, and none for the value.
            Err(error) if error.is_no_room() => {
                return Ok(compute());
            }
            Err(error) => return Err(error),
        };
        let ends = Ends { handle: self, held, key };
        let computed = match compute() {
            Ok(value) => value,
            Err(error) => return Ok(Err(error)),
        };
        let handle = &mut *ends.handle;
        let stored = handle.insert_for(key, &computed, ttl).is_ok();
        handle.view.count(handle.inner.number, Count::Computed, stored as u64);
        Ok(Ok(computed))
    }

    /// A flight, or `None`: somebody else has stored the value meanwhile.
    fn wait_to_compute(
        &mut self,
        key: &[u8],
        patience: Duration,
        value: &mut Vec<u8>,
    ) -> Result<Option<Held>, CacheError> {
        let mut wait = Wait::new(patience);
        let held = loop {
            match self.take_off(key, self.inner.number as u64)? {
                Ok(held) => break held,
                Err(Some(holder)) if holder.is_of_this_thread(self.inner.me) => {
                    return Err(CacheError::Nested);
                }
                Err(_) => wait.pause()?,
            }
            // Not counted: it is the same lookup. The store is asked by whoever has the flight.
            if self.look_in_memory(key, value)? {
                return Ok(None);
            }
        };
        // H2
        match self.look(key, value) {
            Ok(false) => Ok(Some(held)),
            found => {
                self.end_flight(held, key)?;
                found.map(|_| None)
            }
        }
    }

    /// H1. An error inside: who computes already, as far as that is known.
    fn take_off(
        &mut self,
        key: &[u8],
        seat: u64,
    ) -> Result<Result<Held, Option<Holder>>, CacheError> {
        let space = self.space.flight();
        let input = self.view.input(space, key);
        let want = match self.holder(key)? {
            Ok(want) => want,
            Err(holder) => return Ok(Err(Some(holder))),
        };
        let token = crate::hash::random_seed() | 1;
        let thread = fork::thread_key() as u64;
        let value = Holder { token, owner: self.inner.me, seat, thread }.bytes();
        let placed = self.place(Entry { input, space, key, value: &value, expiry: 0 }, want)?;
        Ok(match placed {
            Ok(placed) => {
                Ok(Held { space: self.space, link: placed.link, token, forks: fork::seen().0 })
            }
            Err(MapError::Exists | MapError::NotFound) => Err(None),
            Err(error) => return Err(error.into()),
        })
    }

    /// Who has the flight of a key; or, if nobody has it, what one that begins now replaces.
    fn holder(&mut self, key: &[u8]) -> Result<Result<Want, Holder>, CacheError> {
        let (view, space) = (self.view, self.space.flight());
        let mut bytes = Vec::new();
        let Some(hit) = self.read_slow_in(space, view.input(space, key), key, &mut bytes)? else {
            return Ok(Ok(Want::Absent));
        };
        Ok(match Holder::of(&bytes) {
            Some(holder) if !holder.is_over(view, &self.inner.map) => Err(holder),
            _ => Ok(Want::Exactly(hit.link)),
        })
    }

    /// H6. Takes the flight of a lookup, or waits for whoever has it, not longer than the handle
    /// waits for anybody. The flight, if it is ours now; the caller looks in memory once more.
    pub(super) fn take_turn(&mut self, key: &[u8]) -> Result<Option<Held>, CacheError> {
        let mut wait = Wait::new(self.inner.timeout);
        let mut awaited = None;
        loop {
            match self.holder(key)? {
                Err(holder) if !holder.fetches() || holder.is_of_this_thread(self.inner.me) => {
                    return Ok(None);
                }
                Err(holder) if *awaited.get_or_insert(holder.token) != holder.token => {
                    return Ok(None);
                }
                Err(_) => {}
                Ok(_) if awaited.is_some() => return Ok(None),
                Ok(_) => {
                    let before = std::mem::replace(&mut self.no_evict, true);
                    let taken = self.take_off(key, FETCHES | self.inner.number as u64);
                    self.no_evict = before;
                    match taken {
                        Ok(Ok(held)) => return Ok(Some(held)),
                        // Somebody was faster.
                        Ok(Err(_)) => {}
                        Err(CacheError::Busy) => return Ok(None),
                        Err(error) if error.is_no_room() => return Ok(None),
                        Err(error) => return Err(error),
                    }
                }
            }
            if wait.pause().is_err() {
                return Ok(None);
            }
        }
    }

    /// H3.
    pub(super) fn end_flight(&mut self, held: Held, key: &[u8]) -> Result<(), CacheError> {
        self.take_exactly(held.space.flight(), key, held.link).map(|_| ())
    }

    /// H4: a victim that must not leave. It counts as used just now.
    pub(super) fn spares_flight(&self, victim: Link) -> bool {
        let view = self.view;
        if !view.is_flight(victim) {
            return false;
        }
        let Ok(Some(entry)) = view.copy_any(victim) else { return false };
        let living =
            Holder::of(&entry.value).is_some_and(|holder| !holder.is_over(view, &self.inner.map));
        if living {
            view.note_use_of(victim);
        }
        living
    }

    /// A lookup that is not counted. What the store has is for those who wait, too.
    fn look(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, CacheError> {
        if self.stores {
            let found = match self.look_through(self.space, key, value, true) {
                Err(error) if error.is_no_room() => {
                    self.look_through(self.space, key, value, false)?
                }
                found => found?,
            };
            return Ok(matches!(found, Looked::Hit(_)));
        }
        self.look_in_memory(key, value)
    }

    fn look_in_memory(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, CacheError> {
        let input = self.view.input(self.space, key);
        Ok(self.read_slow_in(self.space, input, key, value)?.is_some())
    }
}
