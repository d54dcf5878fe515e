//! The writer: a thread of each process that evicts to the store ahead of need, so that a store
//! which keeps up is never waited for.
//!
//! It begins when an operation of its process first needs room, and keeps a *reserve* of free
//! blocks from then on: whenever fewer are free, it puts a batch of the least recently used entries
//! into the store, and unlinks them. What it has under way is the queue: at most a batch, in memory
//! and found there until the store has it. So a process that is killed loses nothing of it, and one
//! that ends waits for the batch under way, which has a deadline.

use super::super::TierCache;
use super::super::error::CacheError;
use super::super::handle::Handle;
use super::super::stats::Count;
use super::super::view::View;
use super::leave::BATCH;
use crate::sync::constant::Mutex;
use crate::sync::{AtomicBool, Ordering, fork};
use crate::tier_cache::wait::Wait;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long the end of a process waits for a batch: longer than a put may take.
pub(in super::super) const LAST_BATCH: Duration = Duration::from_secs(5);
/// A round without being woken.
const ROUND: Duration = Duration::from_millis(100);

/// The writer of a process, if it has begun.
#[derive(Debug, Default)]
pub(in super::super) struct Writer {
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
    forks: usize,
}

impl View<'_> {
    /// Blocks that the writer keeps free.
    fn store_reserve(&self) -> usize {
        let blocks = self.sizes.blocks as usize;
        (blocks / 16).clamp(1, 1 << 16).max(self.sizes.most_blocks().min(blocks / 2))
    }
}

impl Writer {
    /// Wakes it, or lets it begin. False if there is none: whoever needs room makes it.
    fn wake(&self, cache: &TierCache) -> bool {
        // At the moment of a fork somebody may have held it: then the child does without.
        let Some(mut running) = self.running.try_lock() else { return true };
        if let Some(old) = running.take_if(|running| running.forks != fork::seen().0) {
            // What the handle names did not come along: it can be neither joined nor detached.
            std::mem::forget(old.thread);
        }
        match &*running {
            Some(known) if !known.thread.is_finished() => known.thread.thread().unpark(),
            // It found no seat, for example: this time the caller does it.
            Some(_) => *running = None,
            None => *running = begin(cache),
        }
        running.is_some()
    }

    /// Waits for the batch under way, not longer than this. False if it is still under way: the
    /// thread has all it needs, and ends by itself.
    pub(in super::super) fn end(&self, within: Duration) -> bool {
        let Some(mut running) = self.running.try_lock() else { return true };
        let Some(known) = running.take() else { return true };
        if known.forks != fork::seen().0 {
            std::mem::forget(known.thread);
            return true;
        }
        // ORDERING: Relaxed: the unpark and the join order it.
        known.stop.store(true, Ordering::Relaxed);
        known.thread.thread().unpark();
        let begun = Instant::now();
        while !known.thread.is_finished() {
            if begun.elapsed() >= within {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        known.thread.join().is_ok()
    }
}

fn begin(cache: &TierCache) -> Option<Running> {
    let twin = cache.twin();
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    let named = thread::Builder::new().name("quintet-store".into());
    let thread = named.spawn(move || run(&twin, &told)).ok()?;
    Some(Running { stop, thread, forks: fork::seen().0 })
}

fn run(cache: &TierCache, stop: &AtomicBool) {
    let Ok(mut handle) = cache.handle() else { return };
    // ORDERING: Relaxed: it need not be noticed at once.
    while !stop.load(Ordering::Relaxed) {
        match handle.fill_reserve() {
            Ok(true) => {}
            // The reserve is full, or the store does not take anything just now.
            Ok(false) | Err(CacheError::Busy | CacheError::Store(_) | CacheError::Full) => {
                thread::park_timeout(ROUND);
            }
            Err(_) => return,
        }
    }
}

impl Handle<'_> {
    /// One batch, if too few blocks are free. True if there is more to do.
    fn fill_reserve(&mut self) -> Result<bool, CacheError> {
        let view = self.view;
        let free = view.free_blocks();
        if free >= view.store_reserve() {
            return Ok(false);
        }
        let links = self.victims(BATCH);
        let left = self.put_away(&links, Count::Evicted, &mut Vec::new())?;
        // For everybody.
        self.inner.kept.drain(..).for_each(|block| view.offer_kept(block));
        self.dry = 0;
        Ok(left > 0)
    }

    /// An insert: the writer should begin before there is no room at all.
    pub(in super::super) fn look_ahead(&mut self) {
        self.until_nudge = self.until_nudge.saturating_sub(1);
        if self.until_nudge == 0 {
            self.nudge_writer();
        }
    }

    #[cold]
    fn nudge_writer(&mut self) {
        let reserve = self.view.store_reserve();
        self.until_nudge = (reserve / 8).clamp(16, 4096) as u32;
        if self.view.free_blocks() < reserve {
            self.cache.writer.wake(self.cache);
        }
    }

    /// What the writer freed lies in another core's cache, like the bits that lead to it: finds
    /// several blocks at a time, and lets each be fetched while something else is done.
    #[cold]
    pub(in super::super) fn stock_up(&mut self) {
        if self.spares() {
            return;
        }
        let kept = &mut self.inner.kept;
        self.view.find_free(self.cursor, self.most_kept, kept);
        self.view.keep_back(kept);
        if let Some(&last) = kept.last() {
            self.cursor = last;
        }
    }

    /// There is no room: waits for the writer, or drops entries, as the cache was made.
    pub(in super::super) fn make_room(&mut self, short: usize) -> Result<bool, CacheError> {
        let Some(backing) = self.cache.backing.clone() else { return Ok(false) };
        backing.is_open()?;
        if self.drops() {
            self.cache.writer.wake(self.cache);
            return self.drop_oldest(short);
        }
        let mut wait = Wait::new(self.inner.timeout);
        let mut searched = false;
        loop {
            // Those found so far may be among the free ones.
            let need = short + self.blocks.len();
            if self.view.free_blocks() >= need {
                let mut found = Vec::new();
                self.view.find_free(self.cursor, need, &mut found);
                if found.len() >= need {
                    return Ok(true);
                }
                // Somebody died between a free block's bit and the mark that leads to it.
                if wait.is_long() && !std::mem::replace(&mut searched, true) {
                    self.reclaim(true)?;
                    self.find_hidden()?;
                    continue;
                }
            }
            if !self.cache.writer.wake(self.cache) {
                let links = self.victims(BATCH);
                if self.put_away(&links, Count::Evicted, &mut Vec::new())? > 0 {
                    return Ok(true);
                }
            }
            if wait.pause().is_err() {
                let slow = || "it takes entries too slowly".to_owned();
                return Err(CacheError::Store(backing.last_error().unwrap_or_else(slow)));
            }
        }
    }
}

impl TierCache {
    /// Ends the use of the cache: what this process is putting into the store is waited for, at
    /// most so long. False if the store had not answered by then; what it was to get is in memory
    /// until it has it. Dropping the cache does the same, within five seconds.
    ///
    /// ```
    /// use quintet::cache::TierCache;
    /// use std::time::Duration;
    ///
    /// let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
    /// assert!(cache.close(Duration::from_secs(1)), "there is no store to wait for");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(self, within: Duration) -> bool {
        self.writer.end(within)
    }
}
