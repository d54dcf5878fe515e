//! Builds of this command that run laps for us: this one, and another one to be held against it.

use super::lap::{GREETING, Line};
use super::plan::Stage;
use super::stint::Stint;
use super::weather;
use crate::fail::{Exit, Fail};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One build.
pub(crate) struct Build {
    program: PathBuf,
}

/// A lap to be run.
pub(crate) struct Task<'a> {
    /// The stage, with its turns.
    pub(crate) stage: &'a Stage<'a>,
    /// Only these workloads of it.
    pub(crate) workloads: Vec<&'static str>,
    /// Numbers of threads.
    pub(crate) threads: Vec<usize>,
    /// The tables, by their whole names.
    pub(crate) tables: &'a [String],
    /// How long each cell is.
    pub(crate) stint: Stint,
}

impl Build {
    /// The build that is running.
    pub(crate) fn this() -> Result<Self, Fail> {
        let program = std::env::current_exe().map_err(|error| {
            Fail::misuse("cannot start this command again", error.to_string(), "")
        })?;
        Ok(Self { program })
    }

    /// The build in this file.
    pub(crate) fn of(path: &Path) -> Result<Self, Fail> {
        let program = path.canonicalize().map_err(|error| {
            let what = format!("cannot find {}", path.display());
            Fail::misuse(what, error.to_string(), "give the path of another build of quintet")
        })?;
        Ok(Self { program })
    }

    /// Runs a lap, under another program if `wrapper` has words.
    pub(crate) fn run(&self, task: &Task<'_>, wrapper: &[&OsStr]) -> Result<Vec<Line>, Fail> {
        let mut command = match wrapper {
            [] => Command::new(&self.program),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(&self.program);
                command
            }
        };
        let threads: Vec<String> = task.threads.iter().map(usize::to_string).collect();
        command.args(["lap", task.stage.family.name, task.stage.name]);
        command.arg(task.stage.keys.to_string());
        command.args(["--workload", &task.workloads.join(",")]);
        command.args(["--threads", &threads.join(","), "--stint", &task.stint.to_string()]);
        command.args(["--tables", &task.tables.join(",")]);
        command.env(weather::LEAVES_OUT, "1");
        let output = command.output().map_err(|error| self.fail("cannot start", error))?;
        let error = String::from_utf8_lossy(&output.stderr);
        let answer = String::from_utf8_lossy(&output.stdout);
        let mut lines = answer.lines();
        if lines.next() != Some(GREETING) {
            return Err(self.fail("does not run the laps of this build", error));
        }
        if output.status.code() == Some(i32::from(Exit::No.code())) {
            let what = format!("{} answered wrong", self.program.display());
            return Err(Fail::no(what, error.trim(), "a build that answers wrong has no speed"));
        }
        let lines: Result<Vec<Line>, _> = lines.map(serde_json::from_str).collect();
        match lines {
            Ok(lines) if output.status.success() => Ok(lines),
            _ => Err(self.fail("failed", format!("{} {error}", output.status))),
        }
    }

    fn fail(&self, what: &str, why: impl ToString) -> Fail {
        let why = why.to_string();
        let why = why.lines().next().unwrap_or_default();
        let advice = "give a build of quintet that shares this race, for example of another commit";
        Fail::misuse(format!("{} {what}", self.program.display()), why, advice)
    }
}
