//! `race --against` and `race --count` from the command line: our own tables alone, in processes of
//! their own.

use super::about::Journal;
use super::builds::Build;
use super::plan::{Stage, Wish};
use super::record::json_lines;
use super::{against, count, family, is_asked_for};
use crate::args::RaceArgs;
use crate::fail::{Exit, Fail};
use crate::output::{OnInterrupt, Output, is_interrupted, on_interrupt};
use crate::ui;
use std::path::Path;

/// Keys where instructions are counted, unless the user asks for another number: what they are does
/// not depend on it.
pub(crate) const COUNTED: u64 = 10_000;

/// Whether builds are held against each other, or instructions counted.
pub(crate) fn is_wanted(args: &RaceArgs) -> bool {
    args.count || args.against.is_some()
}

/// Changes the defaults of a race: the sizes of a quick one, and where instructions are counted few
/// keys and one thread.
pub(crate) fn adjust(args: &RaceArgs, wish: &mut Wish) {
    wish.quick |= is_wanted(args);
    if args.count {
        wish.keys.get_or_insert_with(|| vec![COUNTED]);
        if args.threads.is_none() {
            wish.threads = vec![1];
        }
    }
}

/// Holds the builds against each other, or counts.
pub(crate) fn run(args: &RaceArgs, stages: &[Stage<'_>]) -> Result<Exit, Fail> {
    let other = args.against.as_deref().map(Build::of).transpose()?;
    let json = args.json.as_deref().map(Output::open).transpose()?;
    let quiet = args.json.as_deref() == Some(Path::new("-"));
    on_interrupt(OnInterrupt::Keep);
    let journal = Journal::start();
    let lines = match other {
        other if args.count => run_count(args, stages, other, quiet)?,
        Some(other) => run_against(args, stages, other, quiet)?,
        None => String::new(),
    };
    let finished = !is_interrupted();
    if let Some(json) = json.filter(|_| finished || !lines.is_empty()) {
        let header = json_lines(std::slice::from_ref(&journal.header(finished)));
        json.finish(&(header + &lines))?;
    }
    Ok(if finished { Exit::Fine } else { Exit::Interrupted })
}

/// The names of our own tables that are asked for.
fn tables(args: &RaceArgs, stage: &Stage<'_>) -> Vec<String> {
    let ours = (stage.family.tables)().into_iter().filter(|table| table.role == family::Role::Ours);
    let names = ours.map(|table| table.label.name.to_owned());
    names.filter(|name| is_asked_for(&args.tables, name)).collect()
}

fn run_against(
    args: &RaceArgs,
    stages: &[Stage<'_>],
    other: Build,
    quiet: bool,
) -> Result<String, Fail> {
    let rounds = args.rounds.unwrap_or(against::ROUNDS);
    let bar = ui::progress((stages.len() * rounds) as u64);
    let mut games = against::Match { this: Build::this()?, other, rounds, tables: Vec::new(), bar };
    let mut cells = Vec::new();
    for stage in stages.iter().take_while(|_| !is_interrupted()) {
        games.tables = tables(args, stage);
        let found = against::run_stage(stage, &games)?;
        if !quiet {
            games.bar.suspend(|| against::show(stage, &found));
        }
        cells.extend(found);
    }
    games.bar.finish_and_clear();
    if !quiet {
        against::verdict(&cells);
    }
    Ok(json_lines(&cells))
}

fn run_count(
    args: &RaceArgs,
    stages: &[Stage<'_>],
    other: Option<Build>,
    quiet: bool,
) -> Result<String, Fail> {
    count::check()?;
    let bar = ui::progress(stages.iter().map(|stage| against::rates(stage).len() as u64).sum());
    let mut counting = count::Count { this: Build::this()?, other, tables: Vec::new(), bar };
    let mut cells = Vec::new();
    for stage in stages.iter().take_while(|_| !is_interrupted()) {
        counting.tables = tables(args, stage);
        let found = count::run_stage(stage, &counting)?;
        if !quiet {
            counting.bar.suspend(|| count::show(stage, &found));
        }
        cells.extend(found);
    }
    counting.bar.finish_and_clear();
    if !quiet && counting.other.is_some() {
        count::verdict(&cells);
    }
    Ok(json_lines(&cells))
}
