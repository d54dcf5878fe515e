//! Controls: would the checkers notice a bug? Tables that are wrong on purpose.
//!
//! [`run`] records histories of every control and counts in how many of them a violation is found:
//! all of them for a broken table, none for a correct one. A control that is not caught means that
//! the checkers, the plan or the machine do not test what they claim to.

mod broken;
mod broken_twin;
mod mutex_map;
#[cfg(test)]
mod tests;

use std::fmt;

pub use broken::{Broken, Bug};
pub use broken_twin::Twin;
pub use mutex_map::{MutexFamily, MutexMap};

use crate::conformance::{self, Plan, TableUnderTest};
use crate::linear;
use crate::snapshot::{self, Publish, SnapshotPlan, SnapshotReport, SnapshotUnderTest};
use crate::stress::derive;

/// One in so many operations of a broken table goes wrong.
pub const BUG_RATE: u32 = 1_000;

/// How many histories of each control to check.
#[derive(Clone, Debug)]
pub struct ControlPlan {
    /// Histories of each control.
    pub histories: usize,
    /// Operations of each history.
    pub operations: usize,
    /// Keys.
    pub keys: u64,
    /// Threads.
    pub threads: usize,
    /// The seed of all of them.
    pub seed: u64,
}

impl ControlPlan {
    /// 20 histories of 100,000 operations on 64 keys by 4 threads.
    pub fn new(seed: u64) -> Self {
        Self { histories: 20, operations: 100_000, keys: 64, threads: 4, seed }
    }
}

/// What came of one control.
#[derive(Clone, Debug)]
pub struct ControlReport {
    /// The control.
    pub name: &'static str,
    /// Whether it is wrong on purpose.
    pub broken: bool,
    /// Histories checked.
    pub histories: u64,
    /// Histories in which a violation was found.
    pub caught: u64,
    /// Keys (or guards) violated in all of them.
    pub violations: u64,
    /// Keys that were left undecided.
    pub unknown: u64,
    /// Operations (or guards) checked.
    pub operations: u64,
    /// Steps per operation; for two-copy maps 1 plus the share of guards taken during a publish.
    pub overlap: f64,
    /// The first violation found, in words.
    pub witness: Option<String>,
}

impl ControlReport {
    /// A broken control was caught in every history, a correct one passed in every history.
    pub fn as_expected(&self) -> bool {
        let expected = if self.broken { self.histories } else { 0 };
        self.caught == expected && (self.broken || self.unknown == 0)
    }
}

impl fmt::Display for ControlReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.broken { "broken" } else { "correct" };
        write!(
            f,
            "{} ({kind}): caught in {} of {} histories by {} violations, {} operations, overlap {:.2}",
            self.name, self.caught, self.histories, self.violations, self.operations, self.overlap
        )
    }
}

/// Runs all controls: the correct ones first, then each [`Bug`], then the broken two-copy maps.
pub fn run(plan: &ControlPlan) -> Vec<ControlReport> {
    let mut reports = vec![tables(plan, "mutexed map", false, |_| MutexMap::with_capacity(0))];
    for bug in Bug::ALL {
        reports.push(tables(plan, bug.name(), true, |seed| Broken::new(bug, seed)));
    }
    reports.push(twins::<Twin<false, false>>(plan, "swapped snapshot", false));
    reports.push(twins::<Twin<true, false>>(plan, "torn snapshot", true));
    reports.push(twins::<Twin<false, true>>(plan, "older snapshot", true));
    reports
}

/// Checks histories of tables made from a seed each.
pub fn tables<T: TableUnderTest>(
    plan: &ControlPlan,
    name: &'static str,
    broken: bool,
    make: impl Fn(u64) -> T,
) -> ControlReport {
    let mut all = linear::Report::default();
    let mut caught = 0;
    for history in 0..plan.histories as u64 {
        let seed = derive(plan.seed, history);
        let plan = Plan {
            threads: plan.threads,
            operations: plan.operations,
            keys: plan.keys,
            seed: Some(seed),
            ..Plan::default()
        };
        let report = linear::check(&conformance::record(&make(seed), &plan));
        caught += u64::from(!report.violations.is_empty());
        all.merge(report);
    }
    ControlReport {
        name,
        broken,
        histories: all.histories,
        caught,
        violations: all.violations.len() as u64,
        unknown: all.unknown,
        operations: all.operations,
        overlap: all.overlap(),
        witness: all.violations.first().map(ToString::to_string),
    }
}

/// Checks histories of a two-copy map, with a guard for four operations of the plan.
pub fn twins<S: SnapshotUnderTest>(
    plan: &ControlPlan,
    name: &'static str,
    broken: bool,
) -> ControlReport {
    let mut all = SnapshotReport::default();
    let mut caught = 0;
    for history in 0..plan.histories as u64 {
        let plan = SnapshotPlan {
            guards: plan.operations / 4,
            seed: Some(derive(plan.seed, history)),
            ..SnapshotPlan::default()
        };
        let report = snapshot::check(&snapshot::record::<S>(&plan), Publish::AtOnce);
        caught += u64::from(!report.passed());
        all.merge(report);
    }
    ControlReport {
        name,
        broken,
        histories: all.histories,
        caught,
        violations: all.violations.len() as u64,
        unknown: 0,
        operations: all.guards,
        overlap: 1.0 + all.overlapping as f64 / all.guards.max(1) as f64,
        witness: all.violations.first().map(ToString::to_string),
    }
}
