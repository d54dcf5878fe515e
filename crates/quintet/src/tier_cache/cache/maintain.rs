//! Maintenance: what operations would otherwise do when they need it, done ahead.
//!
//! Nobody has to run it. Any number of processes may offer to; one of them is elected, and another takes over when it dies.

use super::TierCache;
use super::error::CacheError;
use super::handle::Handle;
use super::view::{Global, View};
use crate::sync::{Arc, AtomicBool, Ordering, fork, thread};
use crate::tier_cache::map::Peers;
use crate::tier_cache::step::{Point, exchange};
use crate::tier_cache::word::Owner;
use std::time::Duration;

/// Blocks one round looks at for outlived entries.
const EXPIRY_STEP: usize = 1 << 16;
/// Evictions of one round.
const EVICTION_STEP: usize = 1024;

/// What one round of maintenance did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Maintained {
    /// Outlived entries taken away.
    pub expired: usize,
    /// Entries evicted to get back to the reserve.
    pub evicted: usize,
    /// Entries moved down a tier.
    pub demoted: usize,
}

impl View<'_> {
    pub(super) fn free_blocks(&self) -> usize {
        // ORDERING: Relaxed: an estimate.
        self.bits.iter().map(|word| word.load(Ordering::Relaxed).count_ones() as usize).sum()
    }

    /// Blocks that maintenance keeps free, so that sets need not evict: room for the longest value, and at least a 128th of all.
    pub(super) fn reserve(&self) -> usize {
        self.sizes.most_blocks().max(self.sizes.blocks as usize / 128)
    }
}

impl Handle<'_> {
    /// One round: recovers dead peers, finds their blocks, takes away outlived entries, moves entries down that are too many or too old for their tier, evicts down
    /// to the reserve line.
    pub fn maintain(&mut self) -> Result<Maintained, CacheError> {
        self.inner.begin_read()?;
        let mut done = Maintained::default();
        self.view.mark_time();
        self.reclaim(true)?;
        if self.view.may_have_outlived() {
            done.expired = self.expire(EXPIRY_STEP)?;
        }
        if self.view.memory.tiers() > 1 {
            done.demoted = self.maintain_tiers(EVICTION_STEP)?;
        }
        if !self.spares() {
            let is_short = |handle: &Self| {
                let free = handle.view.free_blocks() + handle.inner.kept.len();
                free < handle.view.reserve()
            };
            while done.evicted < EVICTION_STEP && is_short(self) {
                if self.evict_one()? == 0 {
                    break;
                }
                done.evicted += 1;
            }
            // For everybody, not for the next set of this handle only.
            let view = self.view;
            self.inner.kept.drain(..).for_each(|block| view.offer_kept(block));
            self.dry = 0;
        }
        Ok(done)
    }
}

impl TierCache {
    /// This process is the elected one, or has just been elected: nobody living was.
    fn is_maintainer(&self) -> bool {
        let Some(me) = Peers::me(&*self.segment) else { return false };
        let view = self.view();
        let word = view.global(Global::Maintainer);
        // ORDERING: Acquire; partner: the exchange of the last one.
        let elected = Owner(word.load(Ordering::Acquire));
        elected == me
            || (elected == Owner::NOBODY || Peers::is_dead(&*self.segment, elected))
                && exchange(Point::Maintain, word, elected.0, me.0)
    }

    /// Runs maintenance in the calling thread until `stop` is set: a round each `every`, while this process is the elected one.
    pub fn run_maintenance(&self, every: Duration, stop: &AtomicBool) -> Result<(), CacheError> {
        let mut handle = self.handle()?;
        let _office = Office(self);
        // ORDERING: Relaxed: it need not be noticed at once.
        while !stop.load(Ordering::Relaxed) {
            if self.is_maintainer() {
                match handle.maintain() {
                    Ok(_) | Err(CacheError::Busy | CacheError::Sink(_) | CacheError::Full) => {}
                    Err(error) => return Err(error),
                }
            }
            crate::sync::park_timeout(every);
        }
        Ok(())
    }

    /// Starts a thread that runs maintenance until the returned guard is dropped.
    #[cfg(not(any(quintet_loom, quintet_shuttle)))] // a checker's `Arc` cannot be `self`
    pub fn spawn_maintenance(self: &Arc<Self>, every: Duration) -> Maintenance {
        let stop = Arc::new(AtomicBool::new(false));
        let (cache, told) = (Arc::clone(self), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            // An error ends the thread; operations go on without it.
            let _ = cache.run_maintenance(every, &told);
        });
        Maintenance { stop, thread: Some(thread), forks: fork::seen().0 }
    }
}

/// Whoever ends maintenance, also by a panic of its sink, makes way for another.
struct Office<'c>(&'c TierCache);

impl Drop for Office<'_> {
    fn drop(&mut self) {
        // A forked child is somebody else, and was not elected.
        if let Some(me) = Peers::me(&*self.0.segment) {
            exchange(Point::Maintain, self.0.view().global(Global::Maintainer), me.0, 0);
        }
    }
}

/// A running maintenance thread; stopped on drop, which waits for its end. A sink may drop the guard of the thread it is called by: that ends
/// after its round. In a forked child there is no such thread, and nothing to wait for.
#[derive(Debug)]
pub struct Maintenance {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
    forks: usize,
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        // ORDERING: Relaxed: the unpark and the join order it.
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return };
        if fork::seen().0 != self.forks {
            // What the handle names did not come along: it can be neither joined nor detached.
            std::mem::forget(thread);
        } else if thread.thread().id() != thread::current().id() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
