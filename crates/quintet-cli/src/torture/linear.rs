//! Histories of a table, recorded and checked until the time is up.

use super::Order;
use super::verdict::Verdict;
use quintet_testkit::conformance::{Plan, TableUnderTest, record};
use quintet_testkit::history::ClockKind;
use quintet_testkit::linear::{Report, check};
use quintet_testkit::stress::derive;
use std::time::Instant;

/// Records at least one history of each shape: few keys and many, with and without growth.
pub(super) fn histories<T: TableUnderTest>(order: &Order, make: impl Fn() -> T) -> Verdict {
    let shapes = [
        Plan { keys: 64, ..Plan::default() },
        Plan { keys: 16, clock: ClockKind::Time, ..Plan::default() },
        Plan { keys: 64, ballast: 2_000, ..Plan::default() },
    ];
    of_shapes(order, &shapes, make)
}

/// Histories of 64 keys that are never more.
pub(super) fn few<T: TableUnderTest>(order: &Order, make: impl Fn() -> T) -> Verdict {
    of_shapes(order, &[Plan { keys: 64, ..Plan::default() }], make)
}

fn of_shapes<T: TableUnderTest>(order: &Order, shapes: &[Plan], make: impl Fn() -> T) -> Verdict {
    let start = Instant::now();
    let mut report = Report::default();
    for (number, shape) in (0u64..).zip(shapes.iter().cycle()) {
        if number >= shapes.len() as u64 && start.elapsed() >= order.time {
            break;
        }
        let seed = Some(derive(order.seed, number));
        let plan = Plan { threads: order.threads, seed, ..shape.clone() };
        report.merge(check(&record(&make(), &plan)));
    }
    Verdict {
        operations: report.operations,
        histories: Some(report.histories),
        violations: report.violations.len() as u64,
        unknown: Some(report.unknown),
        overlap: Some((report.overlap() * 1e4).round() / 1e4),
        notes: report.violations.iter().take(2).map(ToString::to_string).collect(),
        ..Verdict::default()
    }
}
