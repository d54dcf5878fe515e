//! Where evicted entries go.
//!
//! **E1.** Whoever is about to put an entry out *claims* it: its word names the seat. Readers and
//! writers do not care; others who look for room pass it over while the claimant lives, and an add
//! whose window leaves it no choice waits.
//! **E2.** With a sink, a victim is delivered first and unlinked after the sink accepted it. An
//! error keeps it. Whoever replaces or removes it meanwhile wins: the sink is told that it did not
//! leave.
//! **E3.** So a departure is delivered at least once, and exactly once as long as no process dies
//! in between. A child that is forked in the sink has no part in it: it neither carries out nor
//! gives back what its parent claimed.
//! **E4.** So is an entry that has to leave a full window: the add lets go of everything, puts that
//! entry out, and plans anew. Only where there is no sink does it leave within the add, claimed.

use super::TierCache;
use super::error::CacheError;
use super::handle::Handle;
use super::scan::ScannedEntry;
use super::spaces::Namespace;
use super::stats::Count;
use super::view::View;
use crate::sync::fork;
use crate::tier_cache::map::Peers;
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
///
/// It may use the cache that calls it, by other handles. One that stores there should do so by a
/// handle that evicts nothing ([`Handle::set_no_evict`]), or it is called again from inside.
pub trait EvictionSink: Send + Sync {
    /// Keeps these entries. An error keeps them in the cache instead, and fails the operation that
    /// needed their room.
    fn store(&self, batch: &[Departed]) -> Result<(), String>;

    /// Entries of an accepted batch that did not leave after all: somebody replaced or removed them
    /// meanwhile. A store deletes what it has under these ids.
    fn withdraw(&self, batch: &[Departed]) {
        let _ = batch;
    }

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

impl Departed {
    pub(super) fn of(link: Link, entry: ScannedEntry) -> Self {
        let ScannedEntry { namespace, key, value, ttl } = entry;
        Self { id: link.word(), namespace, key, value, ttl }
    }
}

impl View<'_> {
    /// E1.
    pub(super) fn claim(&self, peers: &dyn Peers, seat: u32, link: Link) -> bool {
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
                && !peers.is_dead(owner)
        });
        !taken && exchange(Point::Claim, record.word(), word.0, word.claimed(seat).0)
    }

    pub(super) fn unclaim(&self, seat: u32, link: Link) {
        let Some(record) = super::read::current(self, link) else { return };
        let word = record.state();
        if word.state() == Some(RecordState::Live) && word.claimant() == Some(seat) {
            exchange(Point::Claim, record.word(), word.0, word.live().0);
        }
    }
}

/// Claimed victims; whatever is left of them is given back, also if the sink unwinds.
pub(super) struct Claims<'a> {
    view: &'a View<'a>,
    seat: u32,
    pub(super) links: Vec<Link>,
    forks: usize,
}

impl<'a> Claims<'a> {
    pub(super) fn of(view: &'a View<'a>, seat: u32) -> Self {
        view.set_claiming(seat, true);
        Self { view, seat, links: Vec::new(), forks: fork::seen().0 }
    }
}

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        if fork::seen().0 != self.forks {
            return;
        }
        self.links.iter().for_each(|link| self.view.unclaim(self.seat, *link));
        self.view.set_claiming(self.seat, false);
    }
}

impl TierCache {
    /// Sets who receives what this process evicts.
    pub fn set_sink(&mut self, sink: impl EvictionSink + 'static) {
        self.sink = Some(Box::new(sink));
    }
}

impl Handle<'_> {
    /// The victims of one batch: `first`, and with a sink as many further ones of its tier as it
    /// takes, at most `most` in all.
    pub(super) fn batch_of(&mut self, first: Link, tier: usize, most: usize) -> Vec<Link> {
        let most = match &self.cache.sink {
            _ if self.stores => most,
            None => 1,
            Some(sink) => sink.batch().min(most),
        };
        let mut links = vec![first];
        while links.len() < most {
            let Some(link) = self.rings[tier].pop_current(self.view) else { break };
            links.push(link);
        }
        links
    }

    /// Makes room: puts `victim` out, and with a sink a batch of others. Returns how many blocks
    /// they had, 0 if nothing left.
    pub(super) fn put_out_for_room(
        &mut self,
        victim: Link,
        tier: usize,
    ) -> Result<usize, CacheError> {
        let (view, seat) = (self.view, self.inner.number);
        if self.stores {
            let links = self.batch_of(victim, tier, usize::MAX);
            return self.put_away(&links, Count::Evicted, &mut Vec::new());
        }
        if self.cache.sink.is_some() {
            let links = self.batch_of(victim, tier, usize::MAX);
            let blocks: usize = links.iter().map(|link| view.blocks_of(*link)).sum();
            let went = self.put_out(&links, &mut Vec::new())?;
            return Ok(if went { blocks.max(1) } else { 0 });
        }
        let blocks = view.blocks_of(victim);
        let _claims = Claims::of(view, seat);
        if !view.claim(self.inner.map.peers, seat, victim) {
            return Ok(0);
        }
        let went = self.evict(victim);
        if !matches!(went, Ok(true)) {
            view.unclaim(seat, victim);
        }
        went.map(|went| if went { blocks.max(1) } else { 0 })
    }

    /// Puts these out, as far as nobody else does (E1 to E3), and shows what left. Returns whether
    /// anything left: nobody wants to see outlived ones.
    pub(super) fn put_out(
        &mut self,
        links: &[Link],
        shown: &mut Vec<Departed>,
    ) -> Result<bool, CacheError> {
        self.put_out_for(Count::Evicted, links, shown)
    }

    /// E4. False if it did not leave: somebody delivers it, replaces it or has removed it.
    pub(super) fn make_way(&mut self, leaver: Link) -> Result<bool, CacheError> {
        let went = match self.put_out_for(Count::Forced, &[leaver], &mut Vec::new()) {
            Err(CacheError::Store(_)) if self.drops() => self.drop_entry(leaver, Count::Forced)?,
            done => done?,
        };
        self.forced_out += went as u32;
        Ok(went)
    }

    fn put_out_for(
        &mut self,
        cause: Count,
        links: &[Link],
        shown: &mut Vec<Departed>,
    ) -> Result<bool, CacheError> {
        if self.stores {
            return Ok(self.put_away(links, cause, shown)? > 0);
        }
        self.inner.begin_read()?;
        let (view, seat, sink) = (self.view, self.inner.number, &self.cache.sink);
        let mut claims = Claims::of(view, seat);
        let mut batch = Vec::new();
        let mut any = false;
        for &link in links {
            if self.spares_flight(link) || !view.claim(self.inner.map.peers, seat, link) {
                continue;
            }
            match view.copy(link) {
                Ok(Some(entry)) => {
                    batch.push(Departed::of(link, entry));
                    claims.links.push(link);
                }
                Ok(None) => {
                    let went = self.evict(link);
                    if !matches!(went, Ok(true)) {
                        view.unclaim(seat, link);
                    }
                    any |= went?;
                }
                Err(()) => {}
            }
        }
        if batch.is_empty() {
            return Ok(any);
        }
        if let Some(sink) = sink {
            let stored = sink.store(&batch);
            // It may return in a child.
            self.inner.begin_read()?;
            if let Err(why) = stored {
                view.count(seat, Count::SinkErrors, 1);
                return Err(CacheError::Sink(why));
            }
            view.count(seat, Count::Delivered, batch.len() as u64);
        }
        let mut stayed = Vec::new();
        for (link, entry) in std::mem::take(&mut claims.links).into_iter().zip(batch) {
            let went = match sink {
                Some(_) => self.evict_patiently(link, cause),
                None => self.evict(link),
            };
            if matches!(went, Ok(true)) {
                any = true;
                shown.push(entry);
            } else {
                view.unclaim(seat, link);
                stayed.push(entry);
            }
        }
        if let (Some(sink), false) = (sink, stayed.is_empty()) {
            sink.withdraw(&stayed);
        }
        Ok(any)
    }
}
