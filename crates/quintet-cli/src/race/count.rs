//! `race --count`: instructions and locked instructions per operation, counted by callgrind, of
//! this build and of another one.
//!
//! Only what the clock of a race would time is counted. Locked are instructions with a lock prefix
//! and exchanges with memory, callgrind's global bus events; fences are none.

use super::against::{cell_name, rates};
use super::builds::{Build, Task};
use super::plan::Stage;
use super::stint::Stint;
use crate::fail::Fail;
use crate::output::is_interrupted;
use crate::ui::{Tone, paint, say};
use indicatif::ProgressBar;
use serde::Serialize;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Operations of each thread, at least.
const OPERATIONS: u64 = 200_000;
/// A cell with more times the instructions of the other build than this has lost.
const LOST: f64 = 1.03;

/// Events per operation.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Events {
    instructions: f64,
    locked: f64,
}

/// One cell: a table in a workload with so many threads and keys.
#[derive(Debug, Serialize)]
#[allow(missing_docs, reason = "the fields are the columns of the JSON lines")]
pub(crate) struct Cell {
    family: &'static str,
    workload: &'static str,
    table: String,
    threads: usize,
    keys: u64,
    instructions: f64,
    locked: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_instructions: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_locked: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions_ratio: Option<f64>,
}

/// What counting needs.
pub(crate) struct Count {
    /// This build.
    pub(crate) this: Build,
    /// Another one, if it is to be held against this one.
    pub(crate) other: Option<Build>,
    /// The tables.
    pub(crate) tables: Vec<String>,
    /// The progress.
    pub(crate) bar: ProgressBar,
}

/// Whether instructions can be counted here; the error says what to do.
pub(crate) fn check() -> Result<(), Fail> {
    let mut valgrind = Command::new("valgrind");
    let found = valgrind.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    match found {
        Ok(status) if status.success() && cfg!(target_arch = "x86_64") => Ok(()),
        Ok(_) => Err(Fail::misuse("instructions are counted on x86-64 only", "", "")),
        Err(_) => Err(Fail::misuse(
            "valgrind is not installed, and without it no instructions are counted",
            "",
            "install it, for example: apt-get install valgrind",
        )),
    }
}

/// Counts every cell of a stage.
pub(crate) fn run_stage(stage: &Stage<'_>, counting: &Count) -> Result<Vec<Cell>, Fail> {
    let mut cells = Vec::new();
    for workload in rates(stage) {
        for table in counting.tables.iter().take_while(|_| !is_interrupted()) {
            for &threads in &stage.threads {
                counting.bar.set_message(format!("{} {workload}, {table}", stage.family.name));
                let task = Task {
                    stage,
                    workloads: vec![workload],
                    threads: vec![threads],
                    tables: std::slice::from_ref(table),
                    stint: Stint::Operations(OPERATIONS),
                };
                let Some(this) = events(&counting.this, &task)? else { continue };
                let other = counting.other.as_ref().map(|other| events(other, &task));
                let other = other.transpose()?.flatten();
                cells.push(Cell {
                    family: stage.family.name,
                    workload,
                    table: table.clone(),
                    threads,
                    keys: stage.keys,
                    instructions: this.instructions,
                    locked: this.locked,
                    other_instructions: other.map(|other| other.instructions),
                    other_locked: other.map(|other| other.locked),
                    instructions_ratio: other.map(|other| this.instructions / other.instructions),
                });
            }
        }
        counting.bar.inc(1);
    }
    Ok(cells)
}

/// A directory for what callgrind writes; it goes with this value.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a lap of one cell under callgrind; `None` if the table takes no part in it.
fn events(build: &Build, task: &Task<'_>) -> Result<Option<Events>, Fail> {
    let refuse = |error: std::io::Error| {
        let what = "cannot keep what valgrind writes";
        Fail::misuse(what, error.to_string(), "set TMPDIR to a directory you may write to")
    };
    let scratch = std::env::temp_dir().join(format!("quintet-count-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).map_err(refuse)?;
    let scratch = Scratch(scratch);
    let mut files = std::ffi::OsString::from("--callgrind-out-file=");
    files.push(scratch.0.join("%p"));
    let fixed = ["valgrind", "-q", "--tool=callgrind", "--trace-children=yes", "--collect-bus=yes"];
    let mut wrapper: Vec<&OsStr> = fixed.iter().map(OsStr::new).collect();
    wrapper.extend([OsStr::new("--collect-atstart=no"), &files]);
    let lines = build.run(task, &wrapper)?;
    let Some(operations) = lines.iter().map(|line| line.operations).reduce(|a, b| a + b) else {
        return Ok(None);
    };
    let (mut instructions, mut locked) = (0, 0);
    for file in std::fs::read_dir(&scratch.0).map_err(refuse)? {
        let text = std::fs::read_to_string(file.map_err(refuse)?.path()).map_err(refuse)?;
        instructions += total(&text, "Ir");
        locked += total(&text, "Ge");
    }
    let each = |events: u64| events as f64 / operations.max(1) as f64;
    Ok(Some(Events { instructions: each(instructions), locked: each(locked) }))
}

/// The sum of one event in a file of callgrind's, which leaves zeroes at the end out.
fn total(text: &str, event: &str) -> u64 {
    let words = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace()
    };
    let mut events = words("events:").zip(words("totals:"));
    events.find(|(name, _)| *name == event).and_then(|(_, sum)| sum.parse().ok()).unwrap_or(0)
}

/// Prints the cells of a stage.
pub(crate) fn show(stage: &Stage<'_>, cells: &[Cell]) {
    let Some(first) = cells.first() else { return };
    let title = format!("{} {}, per operation", stage.family.name, stage.name);
    let mut heads = format!("{:>9}{:>8}", "instr", "locked");
    if first.other_instructions.is_some() {
        heads += &format!("{:>9}{:>8}{:>8}", "other", "locked", "ratio");
    }
    say(&format!("\n{}{heads}", paint(&format!("{title:<36}"), Tone::Bold)));
    for cell in cells {
        let Cell { workload, table, threads, keys, instructions, locked, .. } = cell;
        let name = format!("  {}", cell_name(workload, *keys, *threads, table));
        let mut line = format!("{name:<36}{instructions:>9.1}{locked:>8.2}");
        let other = cell.other_instructions.zip(cell.other_locked).zip(cell.instructions_ratio);
        if let Some(((instructions, locked), ratio)) = other {
            line += &format!("{instructions:>9.1}{locked:>8.2}{ratio:>8.3}");
        }
        say(&line);
    }
}

/// Says which cells need more instructions than the other build's.
pub(crate) fn verdict(cells: &[Cell]) {
    let over = |cell: &&Cell| cell.instructions_ratio.is_some_and(|ratio| ratio > LOST);
    let lost: Vec<&Cell> = cells.iter().filter(over).collect();
    say(&format!("\n{} of {} cells need more than {LOST}x", lost.len(), cells.len()));
    for cell in lost {
        let Cell { family, workload, table, threads, keys, .. } = cell;
        say(&format!("  {family} {}", cell_name(workload, *keys, *threads, table)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_by_their_names() {
        let text = "version: 1\nevents: Ir Ge\nsummary: 9 9\n\ntotals: 12345 67\n";
        assert_eq!((total(text, "Ir"), total(text, "Ge")), (12345, 67));
        let nothing_locked = "events: Ir Ge\ntotals: 5\n";
        assert_eq!((total(nothing_locked, "Ir"), total(nothing_locked, "Ge")), (5, 0));
        assert_eq!(total("", "Ir"), 0);
    }
}
