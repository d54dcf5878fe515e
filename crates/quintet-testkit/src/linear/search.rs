//! The search for an explanation of one key.

use std::collections::HashSet;

use super::Witness;
use crate::history::Operation;
use crate::model::{Cell, Kind, Ret, accepts, is_pure};

/// An operation comes next; or, if its outcome is unknown, it never happened; or, if keys may be
/// forgotten too, its key was forgotten just before it.
const ALTERNATIVES: usize = 3;

/// The answer for one key.
pub(super) enum Verdict {
    Pass,
    Violation(Witness),
    Unknown,
}

/// One operation put into the order.
struct Step {
    lane: usize,
    /// What the key held before it.
    before: Cell,
    /// The alternative to try next from here; `None` if there was no choice.
    next_choice: Option<usize>,
}

pub(super) struct Search<'h> {
    lanes: Vec<&'h [Operation]>,
    /// How many operations of each lane are in the order.
    front: Vec<usize>,
    cell: Cell,
    forgetful: bool,
    path: Vec<Step>,
    seen: HashSet<Box<[u64]>>,
    steps: u64,
    stuck: Option<Witness>,
}

impl<'h> Search<'h> {
    /// `operations` are those of one key, grouped by thread, each thread's in order.
    pub(super) fn new(operations: &'h [Operation], initial: Cell, forgetful: bool) -> Search<'h> {
        let lanes: Vec<_> = operations.chunk_by(|a, b| a.thread == b.thread).collect();
        let front = vec![0; lanes.len()];
        Search {
            lanes,
            front,
            cell: initial,
            forgetful,
            path: Vec::with_capacity(operations.len()),
            seen: HashSet::new(),
            steps: 0,
            stuck: None,
        }
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    pub(super) fn run(&mut self, budget: u64) -> Verdict {
        if self.lanes.iter().any(|lane| lane.iter().any(lacks_id)) {
            return Verdict::Unknown;
        }
        let mut choice = 0;
        while let Some(deadline) = self.deadline() {
            if self.steps > budget {
                return Verdict::Unknown;
            }
            let moved = if choice == 0 {
                self.enter(deadline)
            } else {
                self.steps += 1;
                self.take_choice(choice, deadline, true)
            };
            if moved {
                choice = 0;
                continue;
            }
            self.note_stuck(deadline);
            match self.take_back() {
                Some(next) => choice = next,
                None => return Verdict::Violation(self.stuck.take().expect("got stuck before")),
            }
        }
        Verdict::Pass
    }

    /// The earliest return among the open operations; `None` when all are in the order.
    fn deadline(&self) -> Option<u64> {
        self.open().map(|(_, operation)| operation.returned).min()
    }

    /// The first operation of each lane that is not in the order.
    fn open(&self) -> impl Iterator<Item = (usize, &'h Operation)> + '_ {
        let fronts = self.lanes.iter().zip(&self.front).enumerate();
        fronts.filter_map(|(lane, (operations, &front))| Some((lane, operations.get(front)?)))
    }

    /// Goes on from a configuration that was just reached.
    fn enter(&mut self, deadline: u64) -> bool {
        let mut candidates = 0;
        let mut forced = None;
        for (lane, operation) in self.open() {
            if operation.invoked > deadline {
                continue;
            }
            candidates += 1;
            if is_pure(operation.op, operation.ret)
                && self.accepts(operation) == Some(self.cell)
                && forced.is_none()
            {
                forced = Some(lane);
            }
        }
        self.steps += candidates;
        if let Some(lane) = forced {
            self.advance(lane, self.cell, None);
            return true;
        }
        let branches = candidates > 1;
        if branches && !self.seen.insert(self.configuration()) {
            return false;
        }
        self.take_choice(0, deadline, branches)
    }

    /// Tries the alternatives from number `first` on, [`ALTERNATIVES`] per lane.
    fn take_choice(&mut self, first: usize, deadline: u64, branches: bool) -> bool {
        for choice in first..ALTERNATIVES * self.lanes.len() {
            let lane = choice / ALTERNATIVES;
            let Some(operation) = self.lanes[lane].get(self.front[lane]) else { continue };
            if operation.invoked > deadline {
                continue;
            }
            let unknown = operation.ret == Ret::Unknown;
            let after = match choice % ALTERNATIVES {
                0 => self.accepts(operation),
                1 if unknown => Some(self.cell),
                2 if unknown && self.forgetful => accepts(None, operation.op, operation.ret),
                _ => None,
            };
            if let Some(after) = after {
                self.advance(lane, after, (branches || unknown).then_some(choice + 1));
                return true;
            }
        }
        false
    }

    /// What the key holds after `operation`, if it fits now. A key that may be forgotten is
    /// forgotten only where nothing else fits: a known outcome fits either way alike or one way
    /// only.
    fn accepts(&self, operation: &Operation) -> Option<Cell> {
        let after = accepts(self.cell, operation.op, operation.ret);
        if after.is_none() && self.forgetful {
            return accepts(None, operation.op, operation.ret);
        }
        after
    }

    fn advance(&mut self, lane: usize, after: Cell, next_choice: Option<usize>) {
        self.path.push(Step { lane, before: self.cell, next_choice });
        self.front[lane] += 1;
        self.cell = after;
    }

    /// Returns to the last configuration with an untried alternative, and names it.
    fn take_back(&mut self) -> Option<usize> {
        loop {
            let step = self.path.pop()?;
            self.front[step.lane] -= 1;
            self.cell = step.before;
            if step.next_choice.is_some() {
                return step.next_choice;
            }
        }
    }

    fn configuration(&self) -> Box<[u64]> {
        let cell = [u64::from(self.cell.is_some()), self.cell.unwrap_or(0)];
        self.front.iter().map(|&front| front as u64).chain(cell).collect()
    }

    fn note_stuck(&mut self, deadline: u64) {
        let culprit = self.open().map(|(_, o)| o).find(|o| o.returned == deadline);
        let culprit = *culprit.expect("the deadline is somebody's return");
        match &mut self.stuck {
            Some(witness) if witness.culprit.returned > deadline => {}
            Some(witness) if witness.culprit.returned == deadline => witness.may_hold(self.cell),
            _ => {
                let recent = self.path.len().saturating_sub(Witness::RECENT);
                let mut front = self.front.clone();
                let mut before = Vec::new();
                for step in self.path[recent..].iter().rev() {
                    front[step.lane] -= 1;
                    before.push(self.lanes[step.lane][front[step.lane]]);
                }
                before.reverse();
                let open = self.open().map(|(_, o)| o).filter(|o| o.invoked <= deadline);
                let beside = open.filter(|&o| *o != culprit).copied().collect();
                self.stuck = Some(Witness::new(culprit, self.cell, before, beside));
            }
        }
    }
}

/// An insert that never told the id it chose cannot be replayed.
fn lacks_id(operation: &Operation) -> bool {
    operation.ret == Ret::Unknown && operation.op.kind() == Kind::SetInsert
}
