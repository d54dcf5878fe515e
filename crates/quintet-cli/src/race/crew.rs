//! Threads that start together, and what they did.

use super::family::Sample;
use std::sync::Barrier;
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

/// Runs `work` on so many threads. Each prepares itself, waits at the gate, then measures.
pub(crate) fn crew<R: Send>(threads: usize, work: impl Fn(usize, &Barrier) -> R + Sync) -> Vec<R> {
    let gate = Barrier::new(threads);
    std::thread::scope(|scope| {
        let spawn = |thread| {
            let (work, gate) = (&work, &gate);
            scope.spawn(move || work(thread, gate))
        };
        let running: Vec<_> = (0..threads).map(spawn).collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// Repeats `batch` for about `slot`, after a tenth of it unmeasured. `batch` says how many
/// operations it did and how many answers were wrong.
#[inline(always)]
pub(crate) fn for_a_while(
    slot: Duration,
    gate: &Barrier,
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
