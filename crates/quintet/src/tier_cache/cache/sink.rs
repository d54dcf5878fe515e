//! Where evicted entries go.
//!
//! **E1.** With a sink, a victim is *claimed*: its word names the seat that evicts it. Readers and writers do not care; other evicting
//! handles pass it over while the claimant lives.
//! **E2.** It is delivered first and unlinked after the sink accepted it. An error keeps it. Whoever replaces or removes it meanwhile wins: the
//! eviction then does not happen.
//! **E3.** So a departure is delivered at least once, and exactly once as long as no process dies in between.
//! **E4.** An entry that had to leave a full window is delivered after it is unlinked; refused, it is added again.

use super::TierCache;
use super::error::CacheError;
use super::handle::CacheHandle;
use super::scan::ScannedEntry;
use super::spaces::Namespace;
use super::stats::Count;
use super::view::View;
use super::write::Entry;
use crate::tier_cache::map::Peers;
use crate::tier_cache::plan::Want;
use crate::tier_cache::step::{Point, exchange};
use crate::tier_cache::word::{Link, Owner, RecordState};
use std::time::Duration;

/// An evicted entry.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Departed {
    /// Tells a repetition after a crash (same id) from another departure of the same key.
    pub id: u64,
    /// Its namespace.
    pub namespace: Namespace,
    /// Its key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
    /// How long it would have lived; `None` if it does not expire.
    pub ttl: Option<Duration>,
}

/// Receives evicted entries: a store of another kind, a log, a larger cache.
pub trait EvictionSink: Send + Sync {
    /// Keeps these entries. An error keeps them in the cache instead, and fails the operation that needed their room.
    fn store(&self, batch: &[Departed]) -> Result<(), String>;

    /// The most entries of one batch.
    fn batch(&self) -> usize {
        16
    }
}

impl<F: Fn(&[Departed]) -> Result<(), String> + Send + Sync> EvictionSink for F {
    fn store(&self, batch: &[Departed]) -> Result<(), String> {
        self(batch)
    }
}

fn departed(link: Link, entry: ScannedEntry) -> Departed {
    let ScannedEntry { namespace, key, value, ttl } = entry;
    Departed { id: link.word(), namespace, key, value, ttl }
}

impl View<'_> {
    /// E1.
    fn claim(&self, cache: &TierCache, seat: u32, link: Link) -> bool {
        let Some(record) = super::read::current(self, link) else { return false };
        let word = record.state();
        if word.state() != Some(RecordState::Live) {
            return false;
        }
        let taken = word.claimant().is_some_and(|other| {
            let owner = self.memory.seat(other).map_or(Owner::NOBODY, |words| words.owner());
            // A dead one's claim does not pass to the next owner of its seat.
            other != seat
                && owner != Owner::NOBODY
                && self.is_claiming(other)
                && !cache.is_dead(owner)
        });
        !taken && exchange(Point::Claim, record.word(), word.0, word.claimed(seat).0)
    }

    fn unclaim(&self, seat: u32, link: Link) {
        let Some(record) = super::read::current(self, link) else { return };
        let word = record.state();
        if word.state() == Some(RecordState::Live) && word.claimant() == Some(seat) {
            exchange(Point::Claim, record.word(), word.0, word.live().0);
        }
    }
}

/// Claimed victims; whatever is left of them is given back, also if the sink unwinds.
struct Claims<'a> {
    view: View<'a>,
    seat: u32,
    links: Vec<Link>,
}

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        self.links.iter().for_each(|link| self.view.unclaim(self.seat, *link));
        self.view.set_claiming(self.seat, false);
    }
}

impl TierCache {
    /// Sets who receives what this process evicts.
    pub fn set_sink(&mut self, sink: impl EvictionSink + 'static) {
        self.sink = Some(Box::new(sink));
    }

    /// E4: called by the map below, or by whoever recovers a dead peer.
    pub(super) fn deliver_forced(&self, link: Link) {
        let Some(sink) = &self.sink else { return };
        let Ok(Some(entry)) = self.view().copy(link) else { return };
        let departed = departed(link, entry);
        if sink.store(std::slice::from_ref(&departed)).is_err() {
            self.refused.lock().push(departed);
        }
    }
}

impl CacheHandle<'_> {
    /// Delivers and evicts a batch that begins with `first` (E1 to E3). Returns whether anything was evicted.
    pub(super) fn evict_to_sink(&mut self, first: Link) -> Result<bool, CacheError> {
        let (view, seat) = (self.view, self.inner.number);
        let Some(sink) = &self.cache.sink else { return self.evict(first) };
        view.set_claiming(seat, true);
        let mut claims = Claims { view, seat, links: Vec::new() };
        let mut batch = Vec::new();
        let (mut next, mut outlived) = (Some(first), false);
        while let Some(link) = next {
            if view.claim(self.cache, seat, link) {
                match view.copy(link) {
                    Ok(Some(entry)) => {
                        batch.push(departed(link, entry));
                        claims.links.push(link);
                    }
                    // Nobody wants an outlived one.
                    Ok(None) => outlived |= self.evict(link)?,
                    Err(()) => {}
                }
            }
            let full = batch.len() >= sink.batch().max(1);
            next = if full { None } else { self.ring.pop_current(&view) };
        }
        if batch.is_empty() {
            return Ok(outlived);
        }
        if let Err(why) = sink.store(&batch) {
            view.count(seat, Count::SinkErrors, 1);
            return Err(CacheError::Sink(why));
        }
        view.count(seat, Count::Delivered, batch.len() as u64);
        let mut evicted = outlived;
        for link in std::mem::take(&mut claims.links) {
            let went = self.evict_patiently(link)?;
            if !went {
                view.unclaim(seat, link);
            }
            evicted |= went;
        }
        Ok(evicted)
    }

    /// Evicts up to `most` entries, the least recently used first, and returns them. They go to the sink as well, if there is one.
    /// A cache that never evicts refuses with [`CacheError::Full`].
    pub fn evict_oldest(&mut self, most: usize) -> Result<Vec<Departed>, CacheError> {
        if self.spares() {
            return Err(CacheError::Full);
        }
        let mut gone = Vec::new();
        let mut shunned = Vec::new();
        while gone.len() < most {
            let view = self.view;
            let Some(victim) = view.next_victim(&mut self.ring, &shunned) else { break };
            let copy = view.copy(victim).ok().flatten();
            let went = match &self.cache.sink {
                Some(_) => self.evict_to_sink(victim)? && view.entry_input(victim).is_none(),
                None => self.evict(victim)?,
            };
            match (went, copy) {
                (true, Some(entry)) => gone.push(departed(victim, entry)),
                // Outlived: nobody wants it.
                (true, None) => {}
                (false, _) => shunned.push(victim.record),
            }
        }
        Ok(gone)
    }

    /// Adds again what a sink refused after a full window had put it out.
    pub(super) fn take_back(&mut self) {
        if self.cache.sink.is_none() {
            return;
        }
        let refused = std::mem::take(&mut *self.cache.refused.lock());
        for Departed { namespace, key, value, ttl, .. } in refused {
            let view = self.view;
            view.count(self.inner.number, Count::SinkErrors, 1);
            let input = view.input(namespace.0, &key);
            let (space, expiry) = (namespace.0, view.expiry(ttl));
            let entry = Entry { input, space, key: &key, value: &value, expiry };
            let _ = self.store(entry, Want::Absent);
        }
    }
}
