//! Tables that are wrong on purpose: the checkers must catch each of them in every history.

use super::verdict::Verdict;
use super::{Check, Order};
use quintet_testkit::controls::{self, ControlPlan};

pub(super) fn checks() -> Vec<Check> {
    vec![Check { name: "seeded bugs are caught", run }]
}

/// Runs all controls; what a checker misses, and what it accuses wrongly, is a violation.
fn run(order: &Order) -> Verdict {
    let mut plan = ControlPlan::new(order.seed);
    plan.threads = order.threads;
    // A full run takes some twenty seconds; less time checks fewer histories of each control.
    plan.histories = (order.time.as_secs_f64() as usize).clamp(2, 20);
    let reports = controls::run(&plan);
    let broken = reports.iter().filter(|report| report.broken);
    let caught = broken.clone().filter(|report| report.as_expected()).count();
    let mut notes = vec![format!("{caught} of {} broken tables caught", broken.count())];
    let missed = reports.iter().filter(|report| !report.as_expected());
    notes.extend(missed.clone().map(ToString::to_string));
    Verdict {
        operations: reports.iter().map(|report| report.operations).sum(),
        histories: Some(reports.iter().map(|report| report.histories).sum()),
        violations: missed.count() as u64,
        unknown: Some(reports.iter().map(|report| report.unknown).sum()),
        notes,
        ..Verdict::default()
    }
}
