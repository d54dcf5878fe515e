//! Threads that start together, and what they did.

use super::family::Sample;
use super::stint::Stint;
use super::timer::clocked;
use super::weather;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// What one thread did while its clock ran.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lap {
    /// Operations done.
    pub(crate) operations: u64,
    /// Wrong answers among them, and among those of the warm-up.
    pub(crate) wrong: u64,
    /// How long it took.
    pub(crate) busy: Duration,
}

impl Lap {
    /// The same without what the thread waited for a core in `all` of its time, of which its clock
    /// ran in a part.
    fn without(self, waited: Duration, all: Duration) -> Lap {
        let share = waited.as_secs_f64() / all.as_secs_f64().max(f64::MIN_POSITIVE);
        Lap { busy: self.busy.mul_f64((1.0 - share).clamp(0.01, 1.0)), ..self }
    }
}

/// Runs a thread's lap; see [`weather::left_out`].
#[inline(always)]
pub(crate) fn undisturbed(lap: impl FnOnce() -> Lap) -> Lap {
    let (before, start) = (weather::left_out(), Instant::now());
    let lap = lap();
    lap.without(weather::left_out().saturating_sub(before), start.elapsed())
}

/// Where threads wait for each other. It opens as well when one of them panics, so that the others
/// end and the panic is told.
pub(crate) struct Gate {
    missing: AtomicUsize,
    broken: AtomicBool,
}

impl Gate {
    /// Says that the calling thread is here.
    pub(crate) fn arrive(&self) {
        // ORDERING: Release pairs with the Acquire of `is_open`: what a thread did before the gate
        // is seen by all after it.
        self.missing.fetch_sub(1, Ordering::Release);
    }

    /// Whether all threads are here.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        // ORDERING: Acquire pairs with the Release of `arrive`. Relaxed: a broken gate only ends
        // the waiting.
        self.missing.load(Ordering::Acquire) == 0 || self.broken.load(Ordering::Relaxed)
    }

    /// Waits until all threads are here.
    pub(crate) fn wait(&self) {
        self.arrive();
        while !self.is_open() {
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

/// Repeats `batch` for a stint, after a warm-up. `batch` says how many operations it did and how
/// many answers were wrong.
#[inline(always)]
pub(crate) fn for_a_while(stint: Stint, gate: &Gate, mut batch: impl FnMut() -> (u64, u64)) -> Lap {
    for_a_while_with(stint, gate, (), |()| (), |()| batch())
}

/// The same with a `prepare` before each batch, during which the clock stands still.
///
/// A thread that has warmed up goes on until all have: none starts its clock beside idle ones.
#[inline(always)]
pub(crate) fn for_a_while_with<H>(
    stint: Stint,
    gate: &Gate,
    mut hand: H,
    mut prepare: impl FnMut(&mut H),
    mut batch: impl FnMut(&mut H) -> (u64, u64),
) -> Lap {
    let mut step = || {
        prepare(&mut hand);
        let ((operations, wrong), busy) = clocked(|| batch(&mut hand));
        Lap { operations, wrong, busy }
    };
    let mut early = warm_up(stint, &mut step);
    gate.arrive();
    while !gate.is_open() {
        match stint {
            Stint::Time(_) => early += step().wrong,
            Stint::Operations(_) => std::thread::yield_now(),
        }
    }
    let lap = undisturbed(|| repeat(stint, &mut step));
    Lap { wrong: lap.wrong + early, ..lap }
}

/// Slices of a warm-up are alike if their rates differ by less than this.
const ALIKE: f64 = 0.05;
/// A warm-up has so many slices at most: a machine may be too busy for two of them to agree.
const SLICES: usize = 10;

/// Runs `step` in slices until the rates of two consecutive ones agree. Returns the wrong answers.
pub(crate) fn warm_up(stint: Stint, step: &mut impl FnMut() -> Lap) -> u64 {
    let Some(slice) = stint.slice() else { return 0 };
    let (mut last, mut wrong) = (f64::INFINITY, 0);
    for _ in 0..SLICES {
        let lap = repeat(Stint::Time(slice), step);
        let rate = lap.operations as f64 / lap.busy.as_secs_f64();
        wrong += lap.wrong;
        if (rate / last - 1.0).abs() < ALIKE {
            break;
        }
        last = rate;
    }
    wrong
}

/// Repeats `step` until the stint is over, at least once.
pub(crate) fn repeat(stint: Stint, step: &mut impl FnMut() -> Lap) -> Lap {
    let mut all = Lap::default();
    loop {
        let lap = step();
        all.operations += lap.operations;
        all.wrong += lap.wrong;
        all.busy += lap.busy;
        if stint.is_over(all.operations, all.busy) {
            return all;
        }
    }
}

/// Wrong answers of all laps.
pub(crate) fn wrong(laps: &[Lap]) -> u64 {
    laps.iter().map(|lap| lap.wrong).sum()
}

fn operations(laps: &[Lap]) -> u64 {
    laps.iter().map(|lap| lap.operations).sum()
}

/// The rate of threads that each ran for the same time.
pub(crate) fn joint_rate(laps: &[Lap]) -> Sample {
    let rate = |lap: &Lap| lap.operations as f64 / lap.busy.as_secs_f64() / 1e6;
    let mops = laps.iter().map(rate).sum();
    Sample { mops, operations: operations(laps), ..Sample::default() }
}

/// Threads that shared fixed work, as one lap: the one that was busy longest decides.
pub(crate) fn shared_work(laps: &[Lap]) -> Lap {
    let busy = laps.iter().map(|lap| lap.busy).max().expect("a crew has members");
    Lap { operations: operations(laps), wrong: wrong(laps), busy }
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

    /// A step that does one operation in so many milliseconds of its own clock.
    fn steps(milliseconds: &[u64]) -> impl FnMut() -> Lap {
        let mut rest = milliseconds.iter().copied();
        move || {
            let busy = Duration::from_millis(rest.next().expect("as many steps as told"));
            Lap { operations: 1, wrong: 1, busy }
        }
    }

    #[test]
    fn a_warm_up_ends_when_two_slices_agree() {
        let stint = Stint::Time(Duration::from_millis(10));
        let wrong = warm_up(stint, &mut steps(&[9, 4, 2, 2, 1, 1]));
        assert_eq!(wrong, 4, "the third and the fourth slice agree");
        let never = [9, 1, 9, 1, 9, 1, 9, 1, 9, 1, 9, 1];
        assert_eq!(warm_up(stint, &mut steps(&never)), SLICES as u64);
        assert_eq!(warm_up(Stint::Operations(5), &mut steps(&[])), 0);
    }

    #[test]
    fn what_a_thread_waited_is_left_out_in_proportion() {
        let ms = Duration::from_millis;
        let lap = Lap { operations: 7, wrong: 0, busy: ms(80) };
        assert_eq!(lap.without(ms(0), ms(100)).busy, ms(80));
        assert_eq!(lap.without(ms(50), ms(100)).busy, ms(40));
        assert!(lap.without(ms(200), ms(100)).busy > ms(0), "never nothing");
    }

    #[test]
    fn every_batch_is_prepared_once() {
        let stint = Stint::Operations(8);
        let laps = crew(1, |_, gate| {
            for_a_while_with(stint, gate, 0, |hand| *hand += 1, |hand| (*hand, 0))
        });
        // 1 + 2 + 3 + 4 operations are the first that are enough.
        assert_eq!(laps[0].operations, 10);
    }
}
