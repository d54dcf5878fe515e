//! `race --against`: this build and another one, cell by cell, in rounds A B, B A, A B, …

use super::builds::{Build, Task};
use super::family::Measure;
use super::lap::Line;
use super::plan::Stage;
use super::stats::{Ratio, median, ratio};
use super::stint::Stint;
use crate::fail::Fail;
use crate::output::is_interrupted;
use crate::ui::{self, Tone, count, paint, say};
use indicatif::ProgressBar;
use serde::Serialize;
use std::time::Duration;

/// Rounds, unless the user asks for another number.
pub(crate) const ROUNDS: usize = 15;
/// The measured time of a cell in a round.
const LENGTH: Duration = Duration::from_millis(100);
/// A cell whose median is below this has lost.
pub(crate) const LOST: f64 = 0.97;

/// One cell: a table in a workload with so many threads and keys. Above 1 this build is faster.
#[derive(Debug, Serialize)]
#[allow(missing_docs, reason = "the fields are the columns of the JSON lines")]
pub(crate) struct Cell {
    pub(crate) family: &'static str,
    pub(crate) workload: String,
    pub(crate) table: String,
    pub(crate) threads: usize,
    pub(crate) keys: u64,
    pub(crate) rounds: usize,
    pub(crate) mops: f64,
    pub(crate) other_mops: f64,
    pub(crate) ratio: f64,
    pub(crate) ratio_low: f64,
    pub(crate) ratio_high: f64,
}

impl Cell {
    /// The cell in a few words.
    pub(crate) fn name(&self) -> String {
        cell_name(&self.workload, self.keys, self.threads, &self.table)
    }
}

/// A cell in so few words that a line has room for its figures: all tables here are ours, and only
/// their forms are told.
pub(crate) fn cell_name(workload: &str, keys: u64, threads: usize, table: &str) -> String {
    let form = table.strip_prefix("quintet").unwrap_or(table);
    format!("{workload} {} {threads}t{form}", count(keys))
}

/// What both builds need.
pub(crate) struct Match {
    /// This build.
    pub(crate) this: Build,
    /// The other one.
    pub(crate) other: Build,
    /// How many rounds.
    pub(crate) rounds: usize,
    /// The tables.
    pub(crate) tables: Vec<String>,
    /// The progress.
    pub(crate) bar: ProgressBar,
}

/// The names of the workloads of a stage that have a rate.
pub(crate) fn rates(stage: &Stage<'_>) -> Vec<&'static str> {
    let all = stage.turns.iter().flatten();
    all.filter(|workload| workload.measure == Measure::Rate).map(|w| w.name).collect()
}

/// Holds the builds against each other in one stage.
pub(crate) fn run_stage(stage: &Stage<'_>, games: &Match) -> Result<Vec<Cell>, Fail> {
    let task = Task {
        stage,
        workloads: rates(stage),
        threads: stage.threads.clone(),
        tables: &games.tables,
        stint: Stint::Time(LENGTH),
    };
    if task.workloads.is_empty() || task.tables.is_empty() {
        return Ok(Vec::new());
    }
    let mut rounds = Vec::new();
    for round in 0..games.rounds {
        if is_interrupted() {
            break;
        }
        let name = format!("{} {}, {} keys", stage.family.name, stage.name, count(stage.keys));
        games.bar.set_message(format!("{name}: round {} of {}", round + 1, games.rounds));
        let (first, second) =
            if round % 2 == 0 { (&games.this, &games.other) } else { (&games.other, &games.this) };
        let (first, second) = (first.run(&task, &[])?, second.run(&task, &[])?);
        rounds.push(if round % 2 == 0 { (first, second) } else { (second, first) });
        games.bar.inc(1);
    }
    Ok(cells(stage, &rounds))
}

/// Pairs what the builds did round by round. A cell that one of them does not have is left out.
fn cells(stage: &Stage<'_>, rounds: &[(Vec<Line>, Vec<Line>)]) -> Vec<Cell> {
    let Some((first, _)) = rounds.first() else { return Vec::new() };
    let cell = |line: &Line| {
        let same = |other: &&Line| {
            (&other.table, &other.workload, other.threads)
                == (&line.table, &line.workload, line.threads)
        };
        let rate = |lines: &[Line]| lines.iter().find(same).map(|line| line.mops);
        let pairs = rounds.iter().filter_map(|(a, b)| Some((rate(a)?, rate(b)?)));
        let (this, other): (Vec<f64>, Vec<f64>) = pairs.unzip();
        let Ratio { median: middle, low, high } = ratio(&this, &other, true)?;
        Some(Cell {
            family: stage.family.name,
            workload: line.workload.clone(),
            table: line.table.clone(),
            threads: line.threads,
            keys: stage.keys,
            rounds: this.len(),
            mops: median(&this),
            other_mops: median(&other),
            ratio: middle,
            ratio_low: low,
            ratio_high: high,
        })
    };
    first.iter().filter_map(cell).collect()
}

/// Prints the cells of a stage.
pub(crate) fn show(stage: &Stage<'_>, cells: &[Cell]) {
    let Some(first) = cells.first() else { return };
    let title = format!("{} {}, {} rounds", stage.family.name, stage.name, first.rounds);
    let heads = format!("{:>9}{:>9}{:>21}", "Mops", "other", "ratio");
    say(&format!("\n{}{heads}", paint(&format!("{title:<40}"), Tone::Bold)));
    for cell in cells {
        let ratio = format!("{:.2} ({:.2} to {:.2})", cell.ratio, cell.ratio_low, cell.ratio_high);
        let figures = format!("{:>9.4}{:>9.4}{ratio:>21}", cell.mops, cell.other_mops);
        let line = format!("  {:<38}{figures}", cell.name());
        let tone = if cell.ratio < LOST { Tone::Bad } else { Tone::Good };
        say(&if (LOST..1.0 / LOST).contains(&cell.ratio) { line } else { paint(&line, tone) });
    }
}

/// Says which cells lost.
pub(crate) fn verdict(cells: &[Cell]) {
    let lost: Vec<&Cell> = cells.iter().filter(|cell| cell.ratio < LOST).collect();
    say(&format!("\n{} of {} cells are below {LOST}", lost.len(), cells.len()));
    for cell in lost {
        ui::say(&format!("  {} {}: {:.2}", cell.family, cell.name(), cell.ratio));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race::{families, plan};

    fn line(table: &str, mops: f64) -> Line {
        let (table, workload) = (table.to_owned(), "hit".to_owned());
        Line { table, workload, threads: 1, mops, operations: 1 }
    }

    #[test]
    fn builds_are_compared_round_by_round() {
        let families = families::all();
        let wish = plan::Wish {
            story: false,
            prefix: "hit".to_owned(),
            threads: vec![1],
            keys: Some(vec![100]),
            quick: true,
        };
        let word = families.iter().find(|family| family.name == "word").unwrap();
        let stages = plan::stages(&[word], &wish);
        // The second round is slow for both; a table that the other build lacks has no cell.
        let rounds: Vec<_> = [(10.0, 20.0), (1.0, 2.0), (11.0, 20.0)]
            .map(|(a, b)| (vec![line("quintet", a), line("new", 1.0)], vec![line("quintet", b)]))
            .into();
        let cells = cells(&stages[0], &rounds);
        assert_eq!(cells.len(), 1);
        assert_eq!((cells[0].ratio, cells[0].ratio_low, cells[0].ratio_high), (0.5, 0.5, 0.55));
        assert_eq!((cells[0].mops, cells[0].other_mops, cells[0].rounds), (10.0, 20.0, 3));
    }
}
