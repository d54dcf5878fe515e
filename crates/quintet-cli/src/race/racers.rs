//! Racing processes, from their parent's side. Each is this program again; lines tell it what to
//! do, see `jobs::shared`.

use super::family::Wrong;
use super::stint::Stint;
use quintet_testkit::crash::Child;
use std::process::Command;
use std::time::Duration;

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// A racing process did not do what it was told.
pub(crate) fn failed(what: impl std::fmt::Display) -> Wrong {
    Wrong(format!("a racing process failed: {what}"))
}

/// Waits for an answer that must be this one.
pub(crate) fn expect(child: &Child, answer: &str) -> Result<(), Wrong> {
    match child.line(PATIENCE) {
        Some(line) if line == answer => Ok(()),
        other => Err(failed(format!("{other:?} instead of {answer:?}"))),
    }
}

/// A process with this task.
pub(crate) fn racer(task: &str) -> Result<Child, Wrong> {
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.arg("race");
    Child::of(command, task).map_err(failed)
}

/// Racing processes. They end by themselves, since one that is killed writes no count of its
/// instructions.
#[derive(Default)]
pub(crate) struct Racers(pub(crate) Vec<Child>);

impl Drop for Racers {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|racer| racer.tell("end"));
        for racer in &mut self.0 {
            // One that does not end is killed with its value.
            let _ = racer.wait(PATIENCE);
        }
    }
}

/// What the racers of a round did together.
#[derive(Default)]
pub(crate) struct Laps {
    /// Operations of all.
    pub(crate) operations: u64,
    /// Wrong answers of all.
    pub(crate) wrong: u64,
    /// Nanoseconds of the slowest.
    pub(crate) longest: u64,
    /// Operations per nanosecond, summed over the racers.
    pub(crate) rate: f64,
}

/// Every racer does its part of a workload, all at the same time.
pub(crate) fn lap(
    racers: &mut [Child],
    work: &str,
    keys: u64,
    stint: Stint,
) -> Result<Laps, Wrong> {
    let parts = racers.len();
    for (part, racer) in racers.iter_mut().enumerate() {
        racer.tell(&format!("round {work} {part} {parts} {keys} {stint}"));
    }
    racers.iter().try_for_each(|racer| expect(racer, "ready"))?;
    racers.iter_mut().for_each(|racer| racer.tell("go"));
    let mut laps = Laps::default();
    for racer in racers {
        let line = racer.line(PATIENCE).unwrap_or_default();
        let numbers: Vec<u64> =
            line.split(' ').skip(1).filter_map(|word| word.parse().ok()).collect();
        let [operations, wrong, nanoseconds] = numbers[..] else { return Err(failed(line)) };
        laps.operations += operations;
        laps.wrong += wrong;
        laps.longest = laps.longest.max(nanoseconds);
        laps.rate += operations as f64 / nanoseconds.max(1) as f64;
    }
    Ok(laps)
}
