//! Threads that start together, and what they did.

use super::family::Sample;
use super::weather;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// What one thread did in its measured time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lap {
    /// Operations done.
    pub(crate) operations: u64,
    /// Wrong answers among them.
    pub(crate) wrong: u64,
    /// When it began.
    pub(crate) start: Instant,
    /// When it ended.
    pub(crate) end: Instant,
}

/// Where threads wait for each other. It opens as well when one of them panics, so that the others
/// end and the panic is told.
pub(crate) struct Gate {
    missing: AtomicUsize,
    broken: AtomicBool,
}

impl Gate {
    /// Waits until all threads are here.
    pub(crate) fn wait(&self) {
        // ORDERING: AcqRel and Acquire: what a thread did before the gate is seen by all after it.
        self.missing.fetch_sub(1, Ordering::AcqRel);
        while self.missing.load(Ordering::Acquire) > 0 && !self.broken.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    }
}

/// Runs `work` on so many threads. Each prepares itself, waits at the gate, then measures.
pub(crate) fn crew<R: Send>(threads: usize, work: impl Fn(usize, &Gate) -> R + Sync) -> Vec<R> {
    let gate = Gate { missing: AtomicUsize::new(threads), broken: AtomicBool::new(false) };
    let run = |thread| {
        let result = catch_unwind(AssertUnwindSafe(|| work(thread, &gate)));
        gate.broken.fetch_or(result.is_err(), Ordering::Relaxed);
        weather::report();
        result.unwrap_or_else(|panic| resume_unwind(panic))
    };
    std::thread::scope(|scope| {
        let run = &run;
        let spawn = |thread| scope.spawn(move || run(thread));
        let running: Vec<_> = (0..threads).map(spawn).collect();
        let join =
            |thread: ScopedJoinHandle<'_, R>| thread.join().unwrap_or_else(|p| resume_unwind(p));
        running.into_iter().map(join).collect()
    })
}

/// Repeats `batch` for about `slot`, after a tenth of it unmeasured. `batch` says how many
/// operations it did and how many answers were wrong.
#[inline(always)]
pub(crate) fn for_a_while(
    slot: Duration,
    gate: &Gate,
    mut batch: impl FnMut() -> (u64, u64),
) -> Lap {
    let warm_up = Instant::now();
    let mut wrong = 0;
    while warm_up.elapsed() < slot / 10 {
        wrong += batch().1;
    }
    gate.wait();
    let start = Instant::now();
    let mut operations = 0;
    loop {
        let (done, bad) = batch();
        operations += done;
        wrong += bad;
        let end = Instant::now();
        if end - start >= slot {
            return Lap { operations, wrong, start, end };
        }
    }
}

/// Wrong answers of all laps.
pub(crate) fn wrong(laps: &[Lap]) -> u64 {
    laps.iter().map(|lap| lap.wrong).sum()
}

/// The rate of threads that each ran for the same time.
pub(crate) fn joint_rate(laps: &[Lap]) -> Sample {
    let rate = |lap: &Lap| lap.operations as f64 / (lap.end - lap.start).as_secs_f64() / 1e6;
    Sample { mops: laps.iter().map(rate).sum(), ..Sample::default() }
}

/// The time from the first start to the last end.
pub(crate) fn span(laps: &[Lap]) -> Duration {
    let start = laps.iter().map(|lap| lap.start).min().expect("a crew has members");
    let end = laps.iter().map(|lap| lap.end).max().expect("a crew has members");
    end - start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_before_the_gate_ends_the_crew() {
        let result = catch_unwind(|| {
            crew(3, |thread, gate| {
                assert_ne!(thread, 1, "told so");
                gate.wait();
            })
        });
        assert!(result.is_err());
    }
}
