//! One round of our own tables in a process of its own: what `--against` and `--count` start, this
//! build and the other alike.
//!
//! A lap is a stage of a family with its tables one after the other, each made, warmed up, timed
//! and checked. A cell is timed in parts of which the fastest counts: whatever else the machine
//! does makes a part slower, never faster. A lap answers by one JSON object per cell on its
//! standard output, after a greeting.

use super::family::{Family, Heat, Role, Sample, Table, Wrong};
use super::plan::{self, Stage, Wish};
use super::stint::Stint;
use super::timer;
use super::watch::Watch;
use crate::args::LapArgs;
use crate::fail::{Exit, Fail};
use crate::output::{OnInterrupt, on_interrupt};
use crate::ui;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The first line of an answer. Two builds understand each other if they agree on it.
pub(crate) const GREETING: &str = "quintet laps, form 2";

/// A cell is timed in so many parts.
const PARTS: u32 = 5;

/// What one table did in one workload with so many threads.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are the columns of the JSON lines")]
pub(crate) struct Line {
    pub(crate) table: String,
    pub(crate) workload: String,
    pub(crate) threads: usize,
    pub(crate) mops: f64,
    pub(crate) operations: u64,
}

/// Runs the laps that were asked for. What this build does not have is left out.
pub(crate) fn run(args: &LapArgs, families: &[Family]) -> Result<Exit, Fail> {
    let family = super::choose(families, Some(&args.family))?;
    let wish = Wish {
        story: false,
        prefix: String::new(),
        threads: args.threads.clone(),
        keys: Some(vec![args.keys]),
        quick: true,
    };
    let mut stages = plan::stages(&family, &wish);
    stages.retain(|stage| stage.name == args.stage);
    if matches!(args.stint, Stint::Operations(_)) {
        timer::count_instructions();
    }
    on_interrupt(OnInterrupt::Ignore);
    let watch = Watch::start();
    ui::say(GREETING);
    for stage in &mut stages {
        for turn in &mut stage.turns {
            turn.retain(|workload| args.workload.iter().any(|name| name == workload.name));
        }
        for table in (stage.family.tables)() {
            if table.role == Role::Ours && args.tables.iter().any(|name| name == table.label.name) {
                run_table(stage, &table, args.stint, &watch)?;
            }
        }
    }
    Ok(Exit::Fine)
}

/// Runs the workloads of a stage on one table.
fn run_table(stage: &Stage<'_>, table: &Table, stint: Stint, watch: &Watch) -> Result<(), Fail> {
    let refuse = |wrong: Wrong| {
        let what = format!("{} gave a wrong answer in {}", table.label.name, stage.family.name);
        Fail::no(what, wrong.0, "report the table's defect")
    };
    let Some(mut bench) = (table.start)(stage.name, stage.keys) else { return Ok(()) };
    for turn in &stage.turns {
        for &threads in &stage.threads {
            for workload in turn {
                if !bench.joins(workload) {
                    continue;
                }
                let heat = |round| Heat { workload, threads, keys: stage.keys, round };
                let mut round = |number: u32, stint| {
                    let what = format!("{} in {}", table.label.name, workload.name);
                    let heat = heat(u64::from(number));
                    watch.over(what, || bench.round(&heat, stint)).map_err(refuse)
                };
                let (sample, rounds) = match stint {
                    Stint::Time(length) => fastest(length, &mut round)?,
                    Stint::Operations(_) => (round(1, stint)?, 1),
                };
                bench.check(&heat(u64::from(rounds))).map_err(refuse)?;
                let line = Line {
                    table: table.label.name.to_owned(),
                    workload: workload.name.to_owned(),
                    threads,
                    mops: sample.mops,
                    operations: sample.operations,
                };
                ui::say(&serde_json::to_string(&line).expect("plain fields"));
            }
        }
    }
    Ok(())
}

/// The fastest part of a cell, and the number of its last round. Fixed work that is longer than a
/// cell shall be is not repeated.
fn fastest(
    length: Duration,
    mut round: impl FnMut(u32, Stint) -> Result<Sample, Fail>,
) -> Result<(Sample, u32), Fail> {
    // Fixed work has no warm-up of its own.
    round(0, Stint::Time(Duration::ZERO))?;
    let start = Instant::now();
    let part = Stint::Time(length / PARTS);
    let (mut best, mut last) = (round(1, part)?, 1);
    while last < PARTS && start.elapsed() < 2 * length {
        last += 1;
        let next = round(last, part)?;
        if next.mops > best.mops {
            best = next;
        }
    }
    Ok((best, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_part_counts() {
        let rates = [9.0, 1.0, 3.0, 2.0, 1.0, 2.0];
        let mut told = Vec::new();
        let (best, last) = fastest(Duration::from_secs(100), |number, stint| {
            told.push(stint);
            Ok(Sample { mops: rates[number as usize], ..Sample::default() })
        })
        .ok()
        .unwrap();
        assert_eq!((best.mops, last), (3.0, 5), "the warm-up does not count");
        assert_eq!(told[0], Stint::Time(Duration::ZERO));
        assert!(told[1..].iter().all(|stint| *stint == Stint::Time(Duration::from_secs(20))));
    }

    #[test]
    fn long_work_is_not_repeated() {
        let slow = |_, _| {
            std::thread::sleep(Duration::from_millis(3));
            Ok(Sample::default())
        };
        let (_, last) = fastest(Duration::from_millis(1), slow).ok().unwrap();
        assert_eq!(last, 1);
    }
}
