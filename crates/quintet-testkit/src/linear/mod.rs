//! Linearizability: can a history be explained by some order of single operations?
//!
//! An operation takes effect at one moment between its two stamps. A history is linearizable if
//! such moments exist for all its operations so that the sequential model returns what was
//! returned. Keys are independent of one another, so each is checked alone: [`Report`] counts.
//!
//! What is per table and not per key (`len`, iteration, `clear`) is outside this check.
//!
//! # How it searches
//!
//! Wing and Gong's search with Lowe's memory of configurations. Each thread's operations on one
//! key form a *lane*; a *configuration* is how far each lane has come, and what the key holds.
//! With the lanes' first open operations, the *deadline* is the earliest return among them.
//!
//! 1. An operation may come next only if it was invoked no later than the deadline.
//! 2. A pure operation (it leaves the key alone whatever the key holds) that may come next and
//!    fits, comes next: in any explanation it could be moved here. So overlapping reads never
//!    branch.
//! 3. Otherwise each operation that may come next and fits is tried; a configuration with several
//!    candidates is remembered and never entered twice.
//! 4. If none is left, the last choice is taken back. The configuration with the latest deadline
//!    that got stuck makes the [`Witness`]: nothing explains the operation of that deadline.
//!
//! [`Ret::Unknown`](crate::model::Ret::Unknown) may also be left out. Steps are counted against a
//! budget per key, beyond which the answer is *unknown*, never *pass*.

mod search;
#[cfg(test)]
mod tests;
mod witness;

use std::fmt;

pub use witness::Witness;

use crate::history::{History, Operation};
use crate::model::MapModel;
use search::{Search, Verdict};

/// Checks a history that began with an empty table.
pub fn check(history: &History) -> Report {
    Checker::default().check(history)
}

/// How to check.
#[derive(Clone, Debug)]
pub struct Checker {
    step_budget: u64,
    forgetful: bool,
    initial: MapModel,
}

/// What a check found; reports of several histories add up.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Operations checked.
    pub operations: u64,
    /// Histories checked.
    pub histories: u64,
    /// Operations that might have come next, summed over all configurations entered.
    pub steps: u64,
    /// Operations that overlapped another one on their key.
    pub overlapping: u64,
    /// One witness per violated key.
    pub violations: Vec<Witness>,
    /// Keys whose search ran out of budget.
    pub unknown: u64,
}

impl Default for Checker {
    fn default() -> Self {
        Self { step_budget: 4_000_000, forgetful: false, initial: MapModel::new() }
    }
}

impl Checker {
    /// Sets how many steps one key may cost.
    pub fn step_budget(mut self, steps: u64) -> Self {
        self.step_budget = steps;
        self
    }

    /// Allows a key to vanish at any moment, as in a cache that evicts.
    pub fn forgetful(mut self) -> Self {
        self.forgetful = true;
        self
    }

    /// Sets what the table held when the history began.
    pub fn initial(mut self, model: MapModel) -> Self {
        self.initial = model;
        self
    }

    /// Checks a history, key by key.
    pub fn check(&self, history: &History) -> Report {
        let recorded = history.operations();
        // Stable by key, so that a key's operations stay grouped by thread and in order.
        let mut by_key: Vec<(u64, usize)> =
            recorded.iter().enumerate().map(|(at, operation)| (operation.key, at)).collect();
        by_key.sort_unstable();
        let operations: Vec<Operation> = by_key.iter().map(|&(_, at)| recorded[at]).collect();
        let mut report = Report { histories: 1, ..Report::default() };
        for key in operations.chunk_by(|a, b| a.key == b.key) {
            self.check_key(key, &mut report);
        }
        report
    }

    fn check_key(&self, operations: &[Operation], report: &mut Report) {
        let initial = self.initial.get(operations[0].key);
        let mut search = Search::new(operations, initial, self.forgetful);
        match search.run(self.step_budget) {
            Verdict::Pass => {}
            Verdict::Violation(witness) => report.violations.push(witness),
            Verdict::Unknown => report.unknown += 1,
        }
        report.operations += operations.len() as u64;
        report.steps += search.steps();
        report.overlapping += overlapping(operations);
    }
}

/// How many operations overlap another one.
fn overlapping(operations: &[Operation]) -> u64 {
    let mut spans: Vec<(u64, u64)> = operations.iter().map(|o| (o.invoked, o.returned)).collect();
    spans.sort_unstable();
    let mut latest_return = 0;
    let mut count = 0;
    for (at, &(invoked, returned)) in spans.iter().enumerate() {
        let before = at > 0 && invoked < latest_return;
        let after = spans.get(at + 1).is_some_and(|next| next.0 < returned);
        count += u64::from(before || after);
        latest_return = latest_return.max(returned);
    }
    count
}

impl Report {
    /// No violation, and nothing left undecided.
    pub fn passed(&self) -> bool {
        self.violations.is_empty() && self.unknown == 0
    }

    /// Steps per operation: 1 means that the threads took turns and little was tested.
    pub fn overlap(&self) -> f64 {
        self.steps as f64 / self.operations.max(1) as f64
    }

    /// Adds another report.
    pub fn merge(&mut self, other: Report) {
        self.operations += other.operations;
        self.histories += other.histories;
        self.steps += other.steps;
        self.overlapping += other.overlapping;
        self.violations.extend(other.violations);
        self.unknown += other.unknown;
    }

    /// Ends a test.
    ///
    /// # Panics
    /// Unless the report [passed](Self::passed), with the first witnesses.
    #[track_caller]
    pub fn expect_pass(&self, what: &str) {
        assert!(self.passed(), "{what} is not linearizable: {self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} operations in {} histories, overlap {:.2}, {} violations, {} unknown",
            self.operations,
            self.histories,
            self.overlap(),
            self.violations.len(),
            self.unknown,
        )?;
        self.violations.iter().take(3).try_for_each(|witness| write!(f, "\n{witness}"))
    }
}
