//! The command line.

use crate::fail::{Exit, Fail};
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Five concurrent hash tables: race them, torture them, share a cache, choose one.
///
/// Without a command: `quintet race --quick`.
#[derive(Debug, Parser)]
#[command(name = "quintet", version, subcommand_required = false)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure the tables against their rivals on this machine
    #[cfg(feature = "race")]
    Race(RaceArgs),
    /// Stress tables and check every answer they give
    #[cfg(feature = "torture")]
    Torture(TortureArgs),
    /// Use a cache that processes share: create it, read and write it, watch it
    #[cfg(target_os = "linux")]
    Cache(crate::cache::CacheArgs),
    /// Which table do I want?
    Choose,
    /// Weigh one table; the race runs this in a process of its own
    #[cfg(feature = "race")]
    #[command(hide = true)]
    Weigh(WeighArgs),
    /// Run one round of our own tables; `race --against` runs this in both builds
    #[cfg(feature = "race")]
    #[command(hide = true)]
    Lap(LapArgs),
}

impl Default for Command {
    #[cfg(feature = "race")]
    fn default() -> Self {
        Command::Race(RaceArgs { quick: true, ..RaceArgs::default() })
    }
    #[cfg(not(feature = "race"))]
    fn default() -> Self {
        Command::Choose
    }
}

/// Options of `race`.
#[cfg(feature = "race")]
#[derive(Debug, Default, Args)]
pub(crate) struct RaceArgs {
    /// Race one family in all its workloads (`all`: every family that is timed; `policy`: hit
    /// ratios)
    #[arg(long)]
    pub(crate) family: Option<String>,
    /// Only the workloads whose name starts so
    #[arg(long)]
    pub(crate) workload: Option<String>,
    /// Only the tables whose names start so, for example quintet,dashmap; ratios are to the best
    /// rival among them
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) tables: Vec<String>,
    /// Short: at most 90 seconds for one contest of each table, at most 5 minutes for one
    /// family
    #[arg(long)]
    pub(crate) quick: bool,
    /// Take about so long: rounds get shorter, and what has no time left is named
    #[arg(long, value_name = "N")]
    pub(crate) seconds: Option<u64>,
    /// Numbers of threads, for example 1,2
    #[arg(long, value_name = "LIST")]
    pub(crate) threads: Option<String>,
    /// Numbers of keys, for example 10k,1M
    #[arg(long, value_name = "LIST")]
    pub(crate) keys: Option<String>,
    /// Rounds per workload (7; 15 with --against); fewer give ratios that are not worth quoting
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<usize>,
    /// Write one JSON object per line and table to this file (-: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a page with the results to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// With --family policy: draw the hit ratios into this file (SVG)
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// With --family policy: draw other traces
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Instead of rivals, race our own tables of this build and of that one, in rounds A B, B A, …
    #[arg(long, value_name = "BINARY")]
    pub(crate) against: Option<PathBuf>,
    /// Instead of a race, count instructions per operation of our own tables (needs valgrind)
    #[arg(long)]
    pub(crate) count: bool,
    /// Compare the ratios with those of this file, and name what lost more than its spread
    #[arg(long, value_name = "FILE")]
    pub(crate) check: Option<PathBuf>,
    /// Show the ratios of this file as a table of a Markdown page, and stop
    #[arg(long, value_name = "FILE")]
    pub(crate) table: Option<PathBuf>,
    /// List families and workloads with their reasons, and stop
    #[arg(long)]
    pub(crate) list: bool,
}

/// Options of `torture`.
#[cfg(feature = "torture")]
#[derive(Debug, Args)]
pub(crate) struct TortureArgs {
    /// Torture one family (default: all)
    #[arg(long)]
    pub(crate) family: Option<String>,
    /// How long, over all checks
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub(crate) seconds: u64,
    /// Replay the operations of an earlier run
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Threads per check
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) threads: usize,
    /// Write one JSON object per check to this file (-: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// What a child process is to weigh.
#[cfg(feature = "race")]
#[derive(Debug, Args)]
pub(crate) struct WeighArgs {
    /// The family.
    pub(crate) family: String,
    /// The table's name.
    pub(crate) table: String,
    /// The number of keys.
    pub(crate) keys: u64,
}

/// What a child process is to run.
#[cfg(feature = "race")]
#[derive(Debug, Args)]
pub(crate) struct LapArgs {
    /// The family.
    pub(crate) family: String,
    /// The stage.
    pub(crate) stage: String,
    /// The number of keys.
    pub(crate) keys: u64,
    /// The workloads.
    #[arg(long, value_delimiter = ',')]
    pub(crate) workload: Vec<String>,
    /// The numbers of threads.
    #[arg(long, value_delimiter = ',')]
    pub(crate) threads: Vec<usize>,
    /// The tables.
    #[arg(long, value_delimiter = ',')]
    pub(crate) tables: Vec<String>,
    /// How long each round is.
    #[arg(long)]
    pub(crate) stint: crate::race::Stint,
}

/// Reads a list of positive numbers such as `1,2` or `64k,1M`.
#[cfg(feature = "race")]
pub(crate) fn numbers(flag: &str, text: &str, most: u64) -> Result<Vec<u64>, Fail> {
    let refuse = |why: String, example: &str| {
        Fail::misuse(format!("bad value for {flag}: {text:?}"), why, example.to_owned())
    };
    let advice = format!("give whole numbers from 1 to {most}, for example {flag} 1,2");
    text.split(',')
        .map(|part| match number(part.trim()) {
            Some(0) => Err(refuse("zero does no work".to_owned(), &advice)),
            Some(n) if n <= most => Ok(n),
            Some(n) => Err(refuse(format!("{n} is too many"), &advice)),
            None => Err(refuse(format!("{part:?} is not a number"), &advice)),
        })
        .collect()
}

/// A number; `64k` is 64 thousand, `1M` and `10^6` a million.
#[cfg(feature = "race")]
fn number(text: &str) -> Option<u64> {
    if let Some(zeros) = text.strip_prefix("10^") {
        return 10u64.checked_pow(zeros.parse().ok()?);
    }
    let (digits, unit) = match text.char_indices().last()? {
        (end, 'k') => (&text[..end], 1_000),
        (end, 'M') => (&text[..end], 1_000_000),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Turns clap's answer into ours: help and version are fine, all else is three lines.
pub(crate) fn explain(error: clap::Error) -> Result<Exit, Fail> {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // A closed pipe is the reader's choice.
        let _ = error.print();
        return Ok(Exit::Fine);
    }
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let what = lines.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let rest: Vec<&str> = lines.collect();
    let tip = rest.iter().find_map(|line| line.strip_prefix("tip: ")).unwrap_or_default();
    let missing = rest.first().filter(|line| what.ends_with(':') && !line.starts_with("Usage"));
    let why = missing.copied().unwrap_or(tip);
    Err(Fail::misuse(what, why, "quintet --help shows the commands and options"))
}

#[cfg(all(test, feature = "race"))]
mod tests {
    use super::*;

    #[test]
    fn thousands_and_millions_are_understood() {
        let read = |text| numbers("--keys", text, 1 << 31).ok();
        assert_eq!(read("64k, 1M,10^6,7"), Some(vec![64_000, 1_000_000, 1_000_000, 7]));
        for bad in ["k", "1G", "M1", "-1k", "1.5M", "10^", "10^99", "0k", "99999999999M"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
