//! What a race is made of: families, workloads, tables, benches.

use super::stint::Stint;
use quintet_rivals::Label;
use quintet_testkit::latency;
use serde::{Deserialize, Serialize};

/// A family of tables that do one job.
pub(crate) struct Family {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What it is, in a line.
    pub(crate) about: &'static str,
    /// What is measured.
    pub(crate) workloads: &'static [Workload],
    /// Who takes part.
    pub(crate) tables: fn() -> Vec<Table>,
    /// How many keys in a quick race, and in a full one.
    pub(crate) sizes: Sizes,
}

/// Numbers of keys.
pub(crate) struct Sizes {
    /// In a quick race.
    pub(crate) quick: &'static [u64],
    /// In a full race.
    pub(crate) full: &'static [u64],
    /// Stages with large entries: a fraction of the keys, one in so many.
    pub(crate) shares: &'static [(&'static str, u64)],
    /// Stages with entries so large that there is one of them in so many keys, however many are
    /// asked for; four at least.
    pub(crate) rare: &'static [(&'static str, u64)],
}

impl Sizes {
    /// How many keys a stage has where the others have `keys`.
    pub(crate) fn of(&self, stage: &str, keys: u64) -> u64 {
        let share = self.shares.iter().find(|(name, _)| *name == stage);
        share.map_or(keys, |(_, share)| keys / share)
    }

    /// How many keys a stage has where so many are asked for.
    pub(crate) fn asked(&self, stage: &str, keys: u64) -> u64 {
        let rare = self.rare.iter().find(|(name, _)| *name == stage);
        rare.map_or(keys, |(_, share)| (keys / share).max(4))
    }
}

/// The sizes of every map: in the first caches, at the edge of the last one, far beyond it.
pub(crate) const MAP_SIZES: Sizes = Sizes {
    quick: &[10_000, 1_000_000],
    full: &[10_000, 1_000_000, 10_000_000],
    shares: &[],
    rare: &[],
};

/// One thing that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    /// Its name; a variant follows a dash.
    pub(crate) name: &'static str,
    /// Why it is measured, in a line.
    pub(crate) reason: &'static str,
    /// Workloads of one stage use the same tables, one after the other.
    pub(crate) stage: &'static str,
    /// Workloads of one turn run back to back on each table before the next table comes.
    pub(crate) turn: &'static str,
    /// What decides.
    pub(crate) measure: Measure,
}

/// What decides a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Measure {
    /// Operations per second: more is better.
    #[default]
    Rate,
    /// The slowest operation: less is better.
    Worst,
    /// Bytes held back per entry while it runs: less is better.
    Held,
    /// Bytes per entry, weighed in a process of its own: less is better.
    Bytes,
    /// The share of hits: more is better.
    Hits,
}

impl Measure {
    /// Which way is better.
    pub(crate) fn more_is_better(self) -> bool {
        matches!(self, Measure::Rate | Measure::Hits)
    }
}

/// On whose side a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Ours: gets a ratio to the best rival.
    Ours,
    /// A rival.
    Rival,
    /// A yardstick that never enters a ratio.
    Limit,
}

/// The tables of a family, where they are part of this build.
macro_rules! at_work {
    ($name:literal, $tables:expr) => {
        if const { crate::race::family::is_compiled($name) } { $tables } else { Vec::new }
    };
}
pub(crate) use at_work;

/// The families that an unoptimized build can race: its figures say nothing, so it has those that
/// its tests need, and compiles in a third of the time.
const UNOPTIMIZED: [&str; 7] =
    ["region", "reclaim", "rivals", "word", "tier-map", "cache", "tiers"];

/// Whether the tables of a family are part of this build. Unit tests read only what families say of
/// themselves: there, nobody takes part. With `QUINTET_ONLY=map` in the environment of the build
/// only that family has tables.
pub(crate) const fn is_compiled(name: &str) -> bool {
    match option_env!("QUINTET_ONLY") {
        _ if cfg!(test) => false,
        Some(only) => same(only, name),
        None if cfg!(debug_assertions) => {
            let mut index = 0;
            while index < UNOPTIMIZED.len() && !same(UNOPTIMIZED[index], name) {
                index += 1;
            }
            index < UNOPTIMIZED.len()
        }
        None => true,
    }
}

/// Whether two texts are the same, known while compiling.
pub(crate) const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}

/// A table that takes part in a family's race.
pub(crate) struct Table {
    /// Name and version.
    pub(crate) label: Label,
    /// On whose side it is.
    pub(crate) role: Role,
    /// Prepares the table for a stage with so many keys; `None` if it does not take part.
    pub(crate) start: fn(stage: &str, keys: u64) -> Option<Box<dyn Bench>>,
    /// For `Measure::Bytes`.
    pub(crate) weigh: Option<Weigh>,
}

/// Fills a table, calls the scale, empties the table, calls the scale.
pub(crate) type Weigh = fn(keys: u64, scale: &mut dyn FnMut());

/// A table on the track.
pub(crate) trait Bench {
    /// Runs one round of a workload, or its fixed work at least once.
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong>;
    /// Whether it takes part in a workload of its stage.
    fn joins(&self, _workload: &Workload) -> bool {
        true
    }
    /// Whether the racers are processes rather than threads of this one.
    fn is_by_processes(&self) -> bool {
        false
    }
    /// Checks after the rounds of a workload that the table holds what it must.
    fn check(&mut self, _heat: &Heat) -> Result<(), Wrong> {
        Ok(())
    }
}

/// One workload, with so many threads, in its `round`-th round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heat {
    /// The workload.
    pub(crate) workload: &'static Workload,
    /// How many threads.
    pub(crate) threads: usize,
    /// How many keys.
    pub(crate) keys: u64,
    /// Counts from 1; 0 is the warm-up.
    pub(crate) round: u64,
}

/// What a round gave.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    /// Millions of operations per second.
    pub(crate) mops: f64,
    /// Operations that were timed.
    pub(crate) operations: u64,
    /// Latency, where the workload stamps its operations.
    pub(crate) latency: Option<Latency>,
    /// Bytes held back per entry, where the workload counts them.
    pub(crate) bytes: Option<f64>,
    /// Share of hits, where the workload counts them.
    pub(crate) hit_ratio: Option<f64>,
}

/// Latency of single operations in a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latency {
    /// Median.
    pub(crate) p50_ns: u64,
    /// 99 of 100 operations are at most so slow.
    pub(crate) p99_ns: u64,
    /// 9,999 of 10,000 operations are at most so slow.
    pub(crate) p9999_ns: u64,
    /// The slowest undisturbed operation.
    pub(crate) max_ns: u64,
    /// The slowest operation in which the thread ran all the time, page faults or not.
    pub(crate) max_faults_ns: u64,
    /// Operations set apart: a context switch, a page fault or stolen time fell into them.
    pub(crate) disturbed: u64,
    /// The worst gap of an empty loop of the same length.
    pub(crate) jitter_ns: u64,
}

impl Latency {
    /// What was measured, beside an empty loop whose worst gap is known.
    pub(crate) fn of(measured: &latency::Latency, jitter_ns: u64) -> Self {
        Self {
            p50_ns: measured.quantile_ns(0.5),
            p99_ns: measured.quantile_ns(0.99),
            p9999_ns: measured.quantile_ns(0.9999),
            max_ns: measured.max_ns(),
            max_faults_ns: measured.max_own_ns(),
            disturbed: measured.disturbed(),
            jitter_ns,
        }
    }
}

/// A table gave a wrong answer.
#[derive(Debug)]
pub(crate) struct Wrong(pub(crate) String);

impl Wrong {
    /// `Ok` if `count` wrong answers are none.
    pub(crate) fn unless_zero(count: u64, what: &str) -> Result<(), Wrong> {
        match count {
            0 => Ok(()),
            n => Err(Wrong(format!("{n} wrong answers to {what}"))),
        }
    }
}
