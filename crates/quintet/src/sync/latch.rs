//! A lock for short work: taken by one exchange, let go by one store.
//!
//! **Y1.** `taken` is true while somebody holds the lock. Only its holder stores false.
//! **Y2.** Who finds it taken spins, and then sleeps: it announces itself in `waiting`, and looks at `taken` once more behind the heavy half of a
//! barrier. Who lets go stores `taken`, and looks at `waiting` behind the light half. By B1 one of them sees the other: nobody sleeps at a free lock.
//! **Y3.** A sleeper holds `bed` from its announcement until it sleeps, and whoever wakes takes `bed`: no notice comes between the last look and the sleep.
//! **Y4.** If the barrier is refused, sleepers look again by themselves: late, not never.

use super::{AtomicBool, AtomicUsize, Backoff, Barrier, Condvar, MODEL, Mutex, Ordering};
use std::time::Duration;

/// The lock. What it guards lies elsewhere.
#[derive(Debug)]
pub(crate) struct Latch {
    taken: AtomicBool,
    barrier: Barrier,
    /// Those that sleep, or are about to.
    waiting: AtomicUsize,
    bed: Mutex<()>,
    woken: Condvar,
}

/// Lets go when dropped.
#[derive(Debug)]
pub(crate) struct LatchGuard<'a>(&'a Latch);

/// The longest sleep without a look (Y4).
const LONGEST: Duration = Duration::from_millis(2);

/// The lock that tables use: under a model checker its own, which has fewer steps; the latch has a model for itself.
#[cfg(not(any(quintet_loom, quintet_shuttle)))]
pub(crate) type Lock = Latch;
#[cfg(not(any(quintet_loom, quintet_shuttle)))]
pub(crate) type LockGuard<'a> = LatchGuard<'a>;
#[cfg(any(quintet_loom, quintet_shuttle))]
pub(crate) type Lock = Mutex<()>;
#[cfg(any(quintet_loom, quintet_shuttle))]
pub(crate) type LockGuard<'a> = super::MutexGuard<'a, ()>;

/// A lock that nobody holds.
#[cfg(not(any(quintet_loom, quintet_shuttle)))]
pub(crate) fn lock(barrier: Barrier) -> Lock {
    Latch::new(barrier)
}
#[cfg(any(quintet_loom, quintet_shuttle))]
pub(crate) fn lock(_barrier: Barrier) -> Lock {
    Mutex::new(())
}

#[allow(dead_code)] // under a model checker the tables use its own lock
impl Latch {
    pub(crate) fn new(barrier: Barrier) -> Self {
        Self {
            taken: AtomicBool::new(false),
            barrier,
            waiting: AtomicUsize::new(0),
            bed: Mutex::new(()),
            woken: Condvar::new(),
        }
    }

    #[inline(always)]
    pub(crate) fn lock(&self) -> LatchGuard<'_> {
        if !self.try_take() {
            self.lock_slow();
        }
        LatchGuard(self)
    }

    #[inline(always)]
    fn try_take(&self) -> bool {
        // ORDERING: Acquire: partner is the Release of whoever let go: what was done under the lock is seen.
        !self.taken.swap(true, Ordering::Acquire)
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self) {
        let mut backoff = Backoff::new();
        while !MODEL && !backoff.is_yielding() {
            backoff.snooze();
            // ORDERING: Relaxed: only asks whether the exchange is worth a try.
            if !self.taken.load(Ordering::Relaxed) && self.try_take() {
                return;
            }
        }
        let mut bed = self.bed.lock();
        // ORDERING: Relaxed: ordered by the barrier below (Y2).
        self.waiting.fetch_add(1, Ordering::Relaxed);
        loop {
            // Y4: a refusal costs at most a late look.
            let _ = self.barrier.heavy();
            if self.try_take() {
                break;
            }
            bed = self.woken.wait_for(bed, LONGEST).0;
        }
        // ORDERING: Relaxed: at worst somebody wakes nobody.
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    #[cold]
    #[inline(never)]
    fn wake(&self) {
        let _bed = self.bed.lock(); // Y3
        self.woken.notify_all();
    }
}

impl Drop for LatchGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // ORDERING: Release: partner is the next one's Acquire.
        self.0.taken.store(false, Ordering::Release);
        self.0.barrier.light(); // Y2
        // ORDERING: Relaxed: ordered by the barrier.
        if self.0.waiting.load(Ordering::Relaxed) != 0 {
            self.0.wake();
        }
    }
}

#[cfg(all(test, quintet_loom))]
mod loom_tests {
    use super::super::{Arc, AtomicU64, model, thread};
    use super::*;

    /// Two threads add to a number by load and store: none is lost, nobody sleeps for ever, and no third is let in.
    #[test]
    fn loom_latch_lets_one_in_at_a_time_and_wakes_the_others() {
        model(3, || {
            let shared = Arc::new((Latch::new(Barrier::detect()), AtomicU64::new(0)));
            let add = |shared: &(Latch, AtomicU64)| {
                let _guard = shared.0.lock();
                // ORDERING: Relaxed: the lock orders.
                shared.1.store(shared.1.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            };
            let theirs = Arc::clone(&shared);
            let other = thread::spawn(move || add(&theirs));
            add(&shared);
            other.join().unwrap();
            assert_eq!(shared.1.load(Ordering::Relaxed), 2);
        });
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;
    use std::cell::Cell;

    struct Guarded(Latch, Cell<u64>);
    // SAFETY: the cell is touched under the lock only.
    unsafe impl Sync for Guarded {}

    /// More threads than cores, and holders that give up the processor: sleeping and waking.
    #[test]
    fn nobody_is_lost_among_many_threads() {
        for barrier in [Barrier::detect(), Barrier::Fence] {
            let shared = Guarded(Latch::new(barrier), Cell::new(0));
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        for turn in 0..2_000 {
                            let shared = &shared;
                            let _guard = shared.0.lock();
                            let before = shared.1.get();
                            if turn % 100 == 0 {
                                std::thread::yield_now();
                            }
                            shared.1.set(before + 1);
                        }
                    });
                }
            });
            assert_eq!(shared.1.get(), 16_000);
        }
    }
}
