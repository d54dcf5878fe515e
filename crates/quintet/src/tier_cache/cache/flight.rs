//! Single flight: one computes, in all processes; the others wait for its result.
//!
//! A *flight* is a word chosen by the key's hash. It is 0, or names the seat that computes and the process that owned the seat then.
//!
//! **H1.** It is taken by exchange, from 0 or from a name whose process is proved dead or no longer owns the seat.
//! **H2.** Whoever took it looks for the key once more before it computes: the last one may have just stored it.
//! **H3.** It is given back by exchange, also if the computation unwinds, but not by a child that was forked in it. Keys that share a flight wait for one
//! another, nothing worse.

use super::error::CacheError;
use super::handle::Handle;
use super::layout::FLIGHTS;
use super::read::Target;
use super::stats::Count;
use super::view::View;
use crate::sync::{AtomicU64, Ordering, fork};
use crate::tier_cache::map::Map;
use crate::tier_cache::step::{Point, exchange};
use crate::tier_cache::wait::Wait;
use crate::tier_cache::word::Owner;
use std::convert::Infallible;
use std::time::Duration;

/// How long a caller waits for somebody else's computation by default.
pub(super) const DEFAULT_PATIENCE: Duration = Duration::from_secs(60);

/// Seat + 1, process slot, incarnation.
fn name(seat: u32, owner: Owner) -> u64 {
    (seat as u64 + 1) << 48
        | (owner.slot() as u64 & 0xff) << 40
        | owner.incarnation() & ((1 << 40) - 1)
}

/// The one who took the flight cannot be computing any more.
fn is_over(view: &View<'_>, map: &Map<'_>, flight: u64) -> bool {
    let seat = (flight >> 48) as u32;
    let Some(Ok(words)) = seat.checked_sub(1).map(|seat| view.memory.seat(seat)) else {
        // Bits no operation writes.
        return true;
    };
    let owner = words.owner();
    owner == Owner::NOBODY || name(seat - 1, owner) != flight || map.peers.is_dead(owner)
}

/// A flight held.
struct Held<'a> {
    word: &'a AtomicU64,
    name: u64,
    forks: usize,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if fork::seen().0 == self.forks {
            exchange(Point::Flight, self.word, self.name, 0);
        }
    }
}

impl<'c> Handle<'c> {
    /// Sets how long [`Handle::get_or_insert_with`] waits for a living peer's computation: a minute by default.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// The value of a key; if it is absent, what `compute` returns, stored for `ttl`. Among all callers in all processes one computes
    /// and the others wait for its result; if it dies, another takes over.
    pub fn get_or_insert_with(
        &mut self,
        key: impl AsRef<[u8]>,
        ttl: Option<Duration>,
        compute: impl FnOnce() -> Vec<u8>,
    ) -> Result<Vec<u8>, CacheError> {
        let computed = self.get_or_try_insert_with(key, ttl, || Ok::<_, Infallible>(compute()))?;
        match computed {
            Ok(value) => Ok(value),
            Err(never) => match never {},
        }
    }

    /// Like [`Handle::get_or_insert_with`]; an error of `compute` is handed on, and the next caller computes.
    pub fn get_or_try_insert_with<E>(
        &mut self,
        key: impl AsRef<[u8]>,
        ttl: Option<Duration>,
        compute: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Result<Vec<u8>, E>, CacheError> {
        let key = key.as_ref();
        let mut value = Vec::new();
        if self.get_into(key, &mut value)? {
            return Ok(Ok(value));
        }
        let view = self.view;
        let mut wait = Wait::new(self.patience);
        let _held = loop {
            if let Some(held) = self.try_take_off(key)? {
                break held;
            }
            wait.pause()?;
            // Not counted: it is the same lookup.
            if self.look(key, &mut value)? {
                return Ok(Ok(value));
            }
        };
        // H2
        if self.look(key, &mut value)? {
            return Ok(Ok(value));
        }
        let computed = match compute() {
            Ok(value) => value,
            Err(error) => return Ok(Err(error)),
        };
        self.set_for(key, &computed, ttl)?;
        view.count(self.inner.number, Count::Computed, 1);
        Ok(Ok(computed))
    }

    /// H1.
    fn try_take_off(&mut self, key: &[u8]) -> Result<Option<Held<'c>>, CacheError> {
        let view = self.view;
        let hash = super::hash::hash(view.seed, self.space.salt(), key);
        let word = &view.flights[hash as usize % FLIGHTS];
        // ORDERING: Acquire; partner: the exchange that gave it back.
        let flight = word.load(Ordering::Acquire);
        if flight != 0 && !is_over(&view, &self.inner.map, flight) {
            return Ok(None);
        }
        let me = self.inner.me;
        let name = name(self.inner.number, me);
        let taken = exchange(Point::Flight, word, flight, name);
        Ok(taken.then(|| Held { word, name, forks: fork::seen().0 }))
    }

    /// A lookup that is not counted.
    fn look(&mut self, key: &[u8], value: &mut impl Target) -> Result<bool, CacheError> {
        let input = self.view.input(self.space, key);
        Ok(self.read_slow(input, key, value)?.is_some())
    }
}
