//! `quintet race`: each table against its rivals on this machine.
//!
//! Tables run interleaved in one process in rounds (A B C, A B C, …) after a warm-up, with the same
//! keys and hasher, and every answer is checked. A ratio is the median over the rounds of the
//! rounds' own ratios, so that weather shared by all tables cancels.
//!
//! A family joins by a file in [`families`]; a general map joins a family by one line,
//! `Table::words::<M>(Role::Ours)`, where `M` implements the rivals' own trait.

mod crew;
mod families;
mod family;
mod ground;
mod jobs;
mod keys;
mod ours;
mod page;
mod plan;
mod racers;
mod record;
mod runner;
mod scale;
mod show;
mod stats;
mod watch;
mod weather;

use crate::args::{self, RaceArgs, WeighArgs};
use crate::fail::{Exit, Fail};
use crate::nearest;
use crate::output::Output;
use crate::ui;
use family::Family;
use plan::{Clock, Wish};
use runner::{Course, Outcome};
use std::path::Path;
use std::time::Duration;
use watch::Watch;

/// Rounds, unless the user asks for another number.
const ROUNDS: usize = 7;
/// A quick race over all families.
const HEADLINES: Duration = Duration::from_secs(90);
/// A quick race of one family.
const FAMILY: Duration = Duration::from_secs(5 * 60);

/// Runs the race.
pub(crate) fn run(args: &RaceArgs) -> Result<Exit, Fail> {
    if jobs::shared::work() {
        return Ok(Exit::Fine);
    }
    let families = families::all();
    if args.list {
        show::list(&families);
        return Ok(Exit::Fine);
    }
    let chosen = choose(&families, args.family.as_deref())?;
    let wish = wish(args)?;
    let stages = plan::stages(&chosen, &wish);
    if stages.is_empty() {
        let all = chosen.iter().flat_map(|family| family.workloads).map(|workload| workload.name);
        let advice = nearest::advice("--workload", &wish.prefix, all);
        return Err(Fail::misuse(format!("no workload {:?}", wish.prefix), "", advice));
    }
    check_tables(&chosen, &args.tables)?;
    let json = args.json.as_deref().map(Output::open).transpose()?;
    let html = args.html.as_deref().map(Output::open).transpose()?;
    let quiet = [&args.json, &args.html].into_iter().flatten().any(|path| path == Path::new("-"));
    let contests: usize = stages.iter().map(plan::Stage::contests).sum();
    let budget = match (wish.quick, args.family.as_deref()) {
        (false, _) => None,
        (true, None) => Some(HEADLINES),
        (true, Some("all")) => Some(FAMILY * chosen.len() as u32),
        (true, Some(_)) => Some(FAMILY),
    };
    // Starting, checking and dropping the last tables is part of the promise.
    let mut course = Course {
        rounds: args.rounds.unwrap_or(ROUNDS),
        clock: Clock::new(budget.map(|budget| budget.mul_f64(0.87)), &stages),
        bar: ui::progress(contests as u64),
        watch: Watch::start(),
    };
    let mut records = Vec::new();
    let mut skipped = Vec::new();
    for stage in &stages {
        let mut tables = (stage.family.tables)();
        tables.retain(|table| is_asked_for(&args.tables, table.label.name));
        let outcome = match stage.is_weighed() {
            true => weigh_stage(stage, &tables, &mut course)?,
            false => runner::run_stage(stage, &tables, &mut course)?,
        };
        if !quiet {
            course.bar.suspend(|| show::blocks(&outcome.records));
        }
        records.extend(outcome.records);
        skipped.extend(outcome.skipped);
    }
    course.bar.finish_and_clear();
    for contest in skipped {
        eprintln!("not run: {contest}");
    }
    let most = wish.threads.iter().copied().max().unwrap_or(1);
    if let Some(warning) = weather::warning(most) {
        eprintln!("{warning}");
    }
    runner::join_latency(&mut records);
    if let Some(json) = json {
        json.finish(&record::json_lines(&records))?;
    }
    if let Some(html) = html {
        html.finish(&page::page(&records))?;
    }
    Ok(Exit::Fine)
}

/// Whether a table takes part, if only those that start so do; all do if none is named.
fn is_asked_for(tables: &[String], name: &str) -> bool {
    tables.is_empty() || tables.iter().any(|table| name.starts_with(table))
}

/// Every name given must be the beginning of a table's.
fn check_tables(families: &[&Family], asked: &[String]) -> Result<(), Fail> {
    let tables = families.iter().flat_map(|family| (family.tables)());
    let names: Vec<_> = tables.map(|table| table.label.name).collect();
    let unknown = asked.iter().find(|asked| !names.iter().any(|name| name.starts_with(*asked)));
    match unknown {
        Some(unknown) => {
            let advice = nearest::advice("--tables", unknown, names.iter().copied());
            Err(Fail::misuse(format!("no table {unknown:?}"), "", advice))
        }
        None => Ok(()),
    }
}

/// Weighs the tables of a stage, unless time or system forbid it.
fn weigh_stage(
    stage: &plan::Stage<'_>,
    tables: &[family::Table],
    course: &mut Course,
) -> Result<Outcome, Fail> {
    course.bar.set_message(format!("{} memory, {} keys", stage.family.name, stage.keys));
    let mut outcome = Outcome::default();
    // A generous guess: a microsecond per key and table.
    let work = Duration::from_micros(stage.keys) * tables.len() as u32;
    if !scale::can_weigh() || course.clock.forbids(stage.weight(), work) {
        let why = if scale::can_weigh() { "no time left" } else { "this system does not tell" };
        outcome.skipped.push(format!("{} memory, {} keys: {why}", stage.family.name, stage.keys));
    } else {
        outcome.records = scale::weigh_stage(stage, tables)?;
    }
    course.step(stage.weight(), None);
    Ok(outcome)
}

/// Weighs one table in this process.
pub(crate) fn weigh(args: &WeighArgs) -> Result<Exit, Fail> {
    let families = families::all();
    let family = choose(&families, Some(&args.family))?;
    let tables = family.iter().flat_map(|family| (family.tables)());
    let found = tables.into_iter().find(|table| table.label.name == args.table);
    let line = found.and_then(|table| scale::weigh(&table, args.keys));
    let line = line.ok_or_else(|| {
        Fail::misuse(format!("no table {:?} to weigh", args.table), "", "run quintet race instead")
    })?;
    ui::say(&line);
    Ok(Exit::Fine)
}

/// The families to race.
fn choose<'a>(families: &'a [Family], name: Option<&str>) -> Result<Vec<&'a Family>, Fail> {
    let Some(name) = name.filter(|name| *name != "all") else {
        return Ok(families.iter().collect());
    };
    let found = families.iter().find(|family| family.name == name);
    found.map(|family| vec![family]).ok_or_else(|| {
        let names = families.iter().map(|family| family.name).chain(["all"]);
        let why = format!("the families are {}", names.clone().collect::<Vec<_>>().join(", "));
        let advice = match nearest::nearest(name, names) {
            Some(near) => format!("did you mean --family {near}?"),
            None => "quintet race --list shows what each of them measures".to_owned(),
        };
        Fail::misuse(format!("unknown family {name:?}"), why, advice)
    })
}

/// Checks what the user asked for.
fn wish(args: &RaceArgs) -> Result<Wish, Fail> {
    let threads = args.threads.as_deref().unwrap_or("1,2");
    let threads = args::numbers("--threads", threads, 256)?;
    let keys =
        args.keys.as_deref().map(|keys| args::numbers("--keys", keys, 1 << 31)).transpose()?;
    if args.rounds == Some(0) {
        let advice = format!("leave it out for {ROUNDS} rounds");
        return Err(Fail::misuse("bad value for --rounds: 0", "no round gives no result", advice));
    }
    Ok(Wish {
        headlines: args.quick && args.family.is_none() && args.workload.is_none(),
        prefix: args.workload.clone().unwrap_or_default(),
        threads: threads.into_iter().map(|n| n as usize).collect(),
        keys,
        quick: args.quick,
    })
}
