//! Stress: many threads from one seed, replayed, and a hang noticed.
//!
//! ```
//! use quintet_testkit::stress::Stress;
//!
//! let sums = Stress::new("adding").threads(4).run(|worker| {
//!     worker.pause(); // perhaps lets another thread run
//!     worker.rng.u64(0..10)
//! });
//! assert_eq!(sums.len(), 4);
//! ```
//!
//! A run prints its seed first, unless the caller gave one. `QUINTET_SEED` replays it. Each thread
//! draws from a generator derived from the seed and its number, so what it does is the same again;
//! the interleaving is the machine's. Nothing here uses std locks, which ThreadSanitizer reports.

mod seed;
mod watchdog;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

pub use seed::{SEED_VARIABLE, derive, seed_from_environment};
pub use watchdog::{Watchdog, within};

use crate::Rng;

/// A stress run.
#[derive(Clone, Debug)]
pub struct Stress {
    name: String,
    seed: Option<u64>,
    threads: usize,
    time_limit: Duration,
    pause_every: u32,
}

/// What a thread of a stress run has.
#[derive(Debug)]
pub struct Worker<'r> {
    /// The thread's generator.
    pub rng: Rng,
    /// Decides about pauses, so that they do not change what `rng` draws.
    pauses: Rng,
    pause_every: u32,
    thread: usize,
    threads: usize,
    seed: u64,
    meetings: usize,
    shared: &'r Shared,
}

/// What the threads of a run share.
#[derive(Debug, Default)]
struct Shared {
    failed: AtomicBool,
    /// How often any thread came to a meeting.
    arrived: AtomicUsize,
}

impl Stress {
    /// A run of two threads that pause in 1 of 64 places and may take two minutes.
    pub fn new(name: &str) -> Self {
        let time_limit = Duration::from_secs(120);
        Self { name: name.to_owned(), seed: None, threads: 2, time_limit, pause_every: 64 }
    }

    /// Sets the seed, which is then the caller's to print.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the number of threads.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets after how long the process is aborted with a message.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Sets how rarely [`Worker::pause`] pauses: once in `n`; 0 is never.
    pub fn pause_every(mut self, n: u32) -> Self {
        self.pause_every = n;
        self
    }

    /// Runs `work` in all threads at once and returns their results by thread number.
    ///
    /// # Panics
    /// If a thread panics, with its name, its message and the seed.
    pub fn run<R: Send>(self, work: impl Fn(&mut Worker<'_>) -> R + Sync) -> Vec<R> {
        let seed = self.seed.unwrap_or_else(|| {
            let seed = seed_from_environment();
            eprintln!("{}: seed {seed:#x}, {} threads", self.name, self.threads);
            seed
        });
        let what = format!("{} (seed {seed:#x})", self.name);
        let _watchdog = Watchdog::start(&what, self.time_limit);
        let shared = Shared::default();
        let work = &work;
        let results: Vec<_> = thread::scope(|scope| {
            let spawn = |thread: usize| {
                let mut worker = self.worker(thread, seed, &shared);
                let run = move || {
                    worker.meet();
                    let result = catch_unwind(AssertUnwindSafe(|| work(&mut worker)));
                    if result.is_err() {
                        // ORDERING: only tells to stop; partner is the load in `keep_going`.
                        worker.shared.failed.store(true, Ordering::Relaxed);
                    }
                    result
                };
                let builder = thread::Builder::new().name(format!("{}-{thread}", self.name));
                builder.spawn_scoped(scope, run).expect("a thread can be started")
            };
            let threads: Vec<_> = (0..self.threads).map(spawn).collect();
            threads.into_iter().map(|thread| thread.join().expect("panics are caught")).collect()
        });
        results.into_iter().enumerate().map(|(t, r)| self.unwrap(r, t, seed)).collect()
    }

    fn worker<'r>(&self, thread: usize, seed: u64, shared: &'r Shared) -> Worker<'r> {
        let lane = 2 * thread as u64;
        Worker {
            rng: Rng::with_seed(derive(seed, lane)),
            pauses: Rng::with_seed(derive(seed, lane + 1)),
            pause_every: self.pause_every,
            thread,
            threads: self.threads,
            seed,
            meetings: 0,
            shared,
        }
    }

    fn unwrap<R>(&self, result: thread::Result<R>, thread: usize, seed: u64) -> R {
        result.unwrap_or_else(|panic| {
            let name = &self.name;
            let message = panic_message(panic.as_ref());
            panic!("thread {name}-{thread}: {message}\nreplay with {SEED_VARIABLE}={seed:#x}")
        })
    }
}

impl Worker<'_> {
    /// The thread's number, from 0.
    pub fn thread(&self) -> usize {
        self.thread
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The seed of the run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether no thread has panicked yet: loops end on `false`.
    pub fn keep_going(&self) -> bool {
        // ORDERING: only tells to stop; partner is the store in `Stress::run`.
        !self.shared.failed.load(Ordering::Relaxed)
    }

    /// Waits until all threads are here, or one has panicked. All threads come equally often.
    pub fn meet(&mut self) {
        self.meetings += 1;
        let everybody = self.meetings * self.threads;
        // ORDERING: what was done before the meeting is seen after it; partner is the load below.
        self.shared.arrived.fetch_add(1, Ordering::AcqRel);
        // ORDERING: partner is the increment above, in the other threads.
        while self.shared.arrived.load(Ordering::Acquire) < everybody && self.keep_going() {
            thread::yield_now();
        }
    }

    /// Perhaps lets other threads run: mostly nothing, else a yield, a spin, or a short sleep.
    pub fn pause(&mut self) {
        if self.pause_every == 0 || self.pauses.u32(0..self.pause_every) != 0 {
            return;
        }
        match self.pauses.u32(0..16) {
            0 => thread::sleep(Duration::from_micros(self.pauses.u64(1..60))),
            1..5 => (0..self.pauses.u32(1..200)).for_each(|_| std::hint::spin_loop()),
            _ => thread::yield_now(),
        }
    }
}

/// The text of a caught panic.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_in_every_thread() {
        let draw = |seed| {
            Stress::new("draw").seed(seed).threads(3).run(|worker| {
                let first = worker.rng.u64(..);
                worker.pause();
                (worker.thread(), first, worker.rng.u64(..))
            })
        };
        let first = draw(1);
        assert_eq!(first, draw(1));
        assert_ne!(first, draw(2));
        assert!(first[0].1 != first[1].1 && first[1].1 != first[2].1);
        assert_eq!(first.iter().map(|r| r.0).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn a_panic_names_thread_message_and_seed() {
        let result = catch_unwind(|| {
            Stress::new("fails").seed(0xabc).threads(3).run(|worker| {
                assert!(worker.thread() != 1, "told so");
                while worker.keep_going() {
                    thread::yield_now();
                }
            })
        });
        let panic = result.unwrap_err();
        let message = panic_message(panic.as_ref());
        assert!(message.contains("fails-1: told so"), "{message}");
        assert!(message.contains("QUINTET_SEED=0xabc"), "{message}");
    }

    #[test]
    fn threads_meet_as_often_as_they_like() {
        let count = AtomicUsize::new(0);
        Stress::new("meeting").seed(1).threads(8).run(|worker| {
            for round in 1..=50 {
                count.fetch_add(1, Ordering::AcqRel);
                worker.meet();
                assert_eq!(count.load(Ordering::Acquire), 8 * round);
                worker.meet();
            }
        });
    }

    #[test]
    fn a_panic_ends_the_meetings() {
        let result = catch_unwind(|| {
            Stress::new("missing").seed(1).threads(3).run(|worker| {
                assert!(worker.thread() != 2, "never comes");
                worker.meet();
            })
        });
        assert!(result.is_err());
    }
}
