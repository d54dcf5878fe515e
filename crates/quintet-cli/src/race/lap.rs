//! One round of our own tables in a process of its own: what `--against` and `--count` start, this build and the other alike.
//!
//! A lap is a stage of a family with its tables one after the other, each made, warmed up, timed and checked. It answers by one JSON object
//! per cell on its standard output, after a greeting.

use super::family::{Family, Heat, Role, Table, Wrong};
use super::plan::{self, Stage, Wish};
use super::stint::Stint;
use super::timer;
use super::watch::Watch;
use crate::args::LapArgs;
use crate::fail::{Exit, Fail};
use crate::output::{OnInterrupt, on_interrupt};
use crate::ui;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The first line of an answer. Two builds understand each other if they agree on it.
pub(crate) const GREETING: &str = "quintet laps, form 1";

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
        headlines: false,
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
                let heat = Heat { workload, threads, keys: stage.keys, round: 1 };
                let mut round = |heat: &Heat, stint| {
                    let what = format!("{} in {}", table.label.name, workload.name);
                    watch.over(what, || bench.round(heat, stint)).map_err(refuse)
                };
                if let Stint::Time(_) = stint {
                    // Fixed work has no warm-up of its own.
                    round(&Heat { round: 0, ..heat }, Stint::Time(Duration::ZERO))?;
                }
                let sample = round(&heat, stint)?;
                bench.check(&heat).map_err(refuse)?;
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
