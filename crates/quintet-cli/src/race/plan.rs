//! What runs, in which order, and for how long.

use super::family::{Family, Measure, Workload};
use super::story;
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

    /// How much longer a contest of this stage takes than one of few keys: tables must be filled.
    pub(crate) fn weight(&self) -> f64 {
        1.0 + (self.keys as f64 / 1e4).log10().max(0.0)
    }

    /// How many contests the stage has: turns times numbers of threads.
    pub(crate) fn contests(&self) -> usize {
        if self.is_weighed() { 1 } else { self.turns.len() * self.threads.len() }
    }
}

/// What the user asked for, checked.
pub(crate) struct Wish {
    /// Only what is [told](super::story).
    pub(crate) story: bool,
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
    // The story is told at the largest quick size alone.
    let own = if wish.story { &own[own.len().saturating_sub(1)..] } else { own };
    let told = story::keys(family.name).filter(|_| wish.story && wish.keys.is_none());
    let sizes = wish.keys.clone().unwrap_or_else(|| told.map_or(own.to_vec(), |keys| vec![keys]));
    let wanted = |workload: &&'static Workload| {
        let is_told = || story::is_told(family.name, workload.name);
        workload.name.starts_with(&wish.prefix) && (!wish.story || is_told())
    };
    let mut stages: Vec<Stage<'a>> = Vec::new();
    for keys in sizes {
        for workload in family.workloads.iter().filter(wanted) {
            let asked = wish.keys.is_some() || told.is_some();
            let keys = if asked { keys } else { family.sizes.of(workload.stage, keys) };
            let keys = family.sizes.asked(workload.stage, keys);
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

/// Divides the time that is left among the contests that are left, by their weight.
pub(crate) struct Clock {
    deadline: Option<Instant>,
    /// The weight of the contests that are left.
    weight: f64,
    /// How much longer contests take than their rounds: tables are made and checked, threads are
    /// started, and wait for a core if the machine is busy.
    stretch: f64,
}

/// Rounds are at most and at least so long.
const LONGEST: Duration = Duration::from_millis(100);
const SHORTEST: Duration = Duration::from_millis(3);
/// In a quick race no table needs longer rounds than this.
const QUICK: Duration = Duration::from_millis(30);
/// What a contest of weight 1 takes at least.
const LEAST: Duration = Duration::from_millis(300);

impl Clock {
    /// A clock that starts now.
    pub(crate) fn new(budget: Option<Duration>, stages: &[Stage<'_>]) -> Self {
        let weight = stages.iter().map(|stage| stage.weight() * stage.contests() as f64).sum();
        Self { deadline: budget.map(|budget| Instant::now() + budget), weight, stretch: 1.5 }
    }

    /// The time that is left; `None` without a budget.
    fn left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Whether the time is up.
    pub(crate) fn is_up(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// How long one round of a contest of this weight may take if it has so many.
    pub(crate) fn slot(&self, weight: f64, rounds: usize) -> Duration {
        let Some(left) = self.left() else { return LONGEST };
        let share = left.mul_f64(weight / self.weight.max(weight) / self.stretch);
        (share / rounds.max(1) as u32).clamp(SHORTEST, QUICK)
    }

    /// Whether work of this length would leave the contests after this one without their least.
    pub(crate) fn forbids(&self, weight: f64, work: Duration) -> bool {
        let least = LEAST.mul_f64((self.weight - weight).max(0.0));
        self.left().is_some_and(|left| work + least.min(left / 4) > left)
    }

    /// Tells the clock that a contest is over, and how its length compares with its rounds.
    pub(crate) fn done(&mut self, weight: f64, stretch: Option<f64>) {
        self.weight -= weight;
        if let Some(stretch) = stretch {
            self.stretch = (self.stretch + stretch.clamp(1.0, 20.0)) / 2.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race::families;

    fn wish(story: bool, prefix: &str) -> Wish {
        let (prefix, threads) = (prefix.to_owned(), vec![1, 2]);
        Wish { story, prefix, threads, keys: None, quick: true }
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
    fn the_story_is_told_at_one_size() {
        let families = families::all();
        for family in story::families(&families) {
            let stages = stages(&[family], &wish(true, ""));
            assert_eq!(stages.iter().map(Stage::contests).sum::<usize>(), 2, "{}", family.name);
            let most = *family.sizes.quick.last().unwrap();
            let keys = |stage: &Stage<'_>| {
                story::keys(family.name).unwrap_or(family.sizes.of(stage.name, most))
            };
            assert!(stages.iter().all(|stage| stage.keys == keys(stage)));
        }
    }

    #[test]
    fn workloads_that_share_a_turn_stay_together() {
        let families = families::all();
        let rivals = families.iter().find(|family| family.name == "rivals").unwrap();
        let stages = stages(&[rivals], &wish(false, ""));
        let life = stages.iter().find(|stage| stage.name == "life").unwrap();
        let turns: Vec<Vec<&str>> =
            life.turns.iter().map(|turn| turn.iter().map(|w| w.name).collect()).collect();
        assert_eq!(turns, [vec!["insert", "remove"], vec!["insert-kept"]]);
    }

    #[test]
    fn the_clock_divides_what_is_left() {
        let families = families::all();
        let stages = stages(&families.iter().collect::<Vec<_>>(), &wish(false, "hit"));
        let weight: f64 = stages.iter().map(|s| s.weight() * s.contests() as f64).sum();
        // As much time as gives rounds of 12 ms, well within the limits.
        let budget = Duration::from_secs_f64(0.012 * 200.0 * 1.5 * weight);
        let mut clock = Clock::new(Some(budget), &stages);
        let even = clock.slot(1.0, 200).as_secs_f64();
        assert!((even / 0.012 - 1.0).abs() < 0.1, "{even}");
        // A machine on which everything takes three times as long gets shorter rounds.
        (0..20).for_each(|_| clock.done(0.0, Some(4.5)));
        let shorter = clock.slot(1.0, 200).as_secs_f64();
        assert!((even / shorter - 3.0).abs() < 0.2, "{shorter}");
        assert!(clock.forbids(1.0, budget));
        assert!(!clock.forbids(1.0, budget / 2));
        assert_eq!(Clock::new(None, &stages).slot(1.0, 1000), LONGEST);
        assert!(Clock::new(Some(Duration::ZERO), &stages).is_up());
    }
}
