//! What runs, in which order, and for how long.

use super::family::{Family, Measure, Workload};
use std::time::{Duration, Instant};

/// Everything one family does with one number of keys in one stage.
pub(crate) struct Stage<'a> {
    /// The family.
    pub(crate) family: &'a Family,
    /// The stage's name.
    pub(crate) name: &'static str,
    /// How many keys.
    pub(crate) keys: u64,
    /// Turns: workloads that run back to back on each table.
    pub(crate) turns: Vec<Vec<&'static Workload>>,
    /// Numbers of threads.
    pub(crate) threads: Vec<usize>,
}

impl Stage<'_> {
    /// Whether the stage is weighed in child processes rather than timed.
    pub(crate) fn is_weighed(&self) -> bool {
        self.turns.iter().flatten().any(|workload| workload.measure == Measure::Bytes)
    }

    /// How many contests the stage has: turns times numbers of threads.
    pub(crate) fn contests(&self) -> usize {
        if self.is_weighed() { 1 } else { self.turns.len() * self.threads.len() }
    }
}

/// What the user asked for, checked.
pub(crate) struct Wish {
    /// Only the headlines.
    pub(crate) headlines: bool,
    /// Only workloads whose name starts so.
    pub(crate) prefix: String,
    /// Numbers of threads.
    pub(crate) threads: Vec<usize>,
    /// Numbers of keys, if not the families' own.
    pub(crate) keys: Option<Vec<u64>>,
    /// Quick sizes or full ones.
    pub(crate) quick: bool,
}

/// The stages of all families, smallest tables first.
pub(crate) fn stages<'a>(families: &[&'a Family], wish: &Wish) -> Vec<Stage<'a>> {
    families.iter().flat_map(|family| stages_of(family, wish)).collect()
}

fn stages_of<'a>(family: &'a Family, wish: &Wish) -> Vec<Stage<'a>> {
    let own = if wish.quick { family.sizes.quick } else { family.sizes.full };
    // Headlines are told at the largest quick size alone.
    let own = if wish.headlines { &own[own.len().saturating_sub(1)..] } else { own };
    let sizes = wish.keys.clone().unwrap_or_else(|| own.to_vec());
    let wanted = |workload: &&'static Workload| {
        workload.name.starts_with(&wish.prefix) && (workload.headline || !wish.headlines)
    };
    let mut stages: Vec<Stage<'a>> = Vec::new();
    for keys in sizes {
        for workload in family.workloads.iter().filter(wanted) {
            let known = stages.iter_mut().find(|s| s.name == workload.stage && s.keys == keys);
            let Some(stage) = known else {
                let (name, threads) = (workload.stage, wish.threads.clone());
                stages.push(Stage { family, name, keys, turns: vec![vec![workload]], threads });
                continue;
            };
            match stage.turns.iter_mut().find(|turn| turn[0].turn == workload.turn) {
                Some(turn) => turn.push(workload),
                None => stage.turns.push(vec![workload]),
            }
        }
    }
    stages
}

/// Divides the time that is left among the contests that are left.
pub(crate) struct Clock {
    deadline: Option<Instant>,
    contests: usize,
}

/// Rounds are at most and at least so long.
const LONGEST: Duration = Duration::from_millis(100);
const SHORTEST: Duration = Duration::from_millis(4);
/// In a quick race small tables need no longer rounds than this.
const QUICK: Duration = Duration::from_millis(30);

impl Clock {
    /// A clock that starts now.
    pub(crate) fn new(budget: Option<Duration>, contests: usize) -> Self {
        Self { deadline: budget.map(|budget| Instant::now() + budget), contests }
    }

    /// The time that is left; `None` without a budget.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// How long one round may take if a contest has so many.
    pub(crate) fn slot(&self, rounds: usize) -> Duration {
        let Some(left) = self.left() else { return LONGEST };
        // A part is kept back for threads, checks and tables to be made.
        let share = left.mul_f64(0.7) / (self.contests.max(1) as u32);
        (share / rounds.max(1) as u32).clamp(SHORTEST, QUICK)
    }

    /// Whether work of this length would leave the contests after this one without their least.
    pub(crate) fn forbids(&self, work: Duration) -> bool {
        let least = Duration::from_millis(500) * (self.contests.saturating_sub(1)) as u32;
        self.left().is_some_and(|left| work + least > left)
    }

    /// Tells the clock that so many contests are over.
    pub(crate) fn done(&mut self, contests: usize) {
        self.contests = self.contests.saturating_sub(contests);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race::families;

    fn wish(headlines: bool, prefix: &str) -> Wish {
        let (prefix, threads) = (prefix.to_owned(), vec![1, 2]);
        Wish { headlines, prefix, threads, keys: None, quick: true }
    }

    #[test]
    fn every_workload_of_a_family_is_planned_once_per_size() {
        for family in families::all() {
            let stages = stages(&[&family], &wish(false, ""));
            let planned = stages.iter().flat_map(|s| s.turns.iter().flatten()).count();
            assert_eq!(planned, family.workloads.len() * family.sizes.quick.len());
        }
    }

    #[test]
    fn every_family_has_a_headline() {
        for family in families::all() {
            let stages = stages(&[&family], &wish(true, ""));
            assert!(!stages.is_empty(), "{}", family.name);
            assert!(stages.iter().all(|stage| stage.keys == *family.sizes.quick.last().unwrap()));
        }
    }

    #[test]
    fn workloads_that_share_a_turn_stay_together() {
        let families = families::all();
        let rivals = families.iter().find(|family| family.name == "rivals").unwrap();
        let stages = stages(&[rivals], &wish(false, ""));
        let life = stages.iter().find(|stage| stage.name == "life").unwrap();
        assert_eq!(life.turns.len(), 1);
        assert_eq!(life.turns[0].len(), 2);
    }

    #[test]
    fn the_clock_divides_what_is_left() {
        let clock = Clock::new(Some(Duration::from_secs(100)), 10);
        let slot = clock.slot(1000);
        assert!((Duration::from_millis(6)..Duration::from_millis(8)).contains(&slot), "{slot:?}");
        assert!(clock.forbids(Duration::from_secs(96)));
        assert!(!clock.forbids(Duration::from_secs(90)));
        assert_eq!(Clock::new(None, 10).slot(1000), LONGEST);
    }
}
