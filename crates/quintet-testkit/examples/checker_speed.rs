//! Prints how many operations per second are recorded and checked.
//! Run with `cargo run --release -p quintet-testkit --example checker_speed`.

use std::time::Instant;

use quintet_testkit::conformance::{Plan, record};
use quintet_testkit::controls::MutexMap;
use quintet_testkit::history::ClockKind;
use quintet_testkit::linear;

fn main() {
    for (threads, keys, clock) in [
        (2, 64, ClockKind::Counter),
        (4, 64, ClockKind::Counter),
        (4, 64, ClockKind::Time),
        (16, 64, ClockKind::Counter),
        (4, 1, ClockKind::Counter),
        (64, 16, ClockKind::Time),
    ] {
        let plan = Plan { threads, keys, clock, seed: Some(1), ..Plan::default() };
        let start = Instant::now();
        let history = record(&MutexMap::with_capacity(0), &plan);
        let recorded = start.elapsed();
        let start = Instant::now();
        let report = linear::check(&history);
        let checked = start.elapsed();
        let rate = |time: std::time::Duration| plan.operations as f64 / time.as_secs_f64() / 1e6;
        println!(
            "{threads:2} threads, {keys:2} keys, {clock:?}: recorded {:.2} Mops/s, checked {:.2} \
             Mops/s, {report}, {:.1} % overlapping",
            rate(recorded),
            rate(checked),
            100.0 * report.overlapping as f64 / report.operations as f64,
        );
    }
}
