//! `quintet race`: each table against its rivals on this machine.
//!
//! Tables run interleaved in one process in rounds (A B C, A B C, …), each after a warm-up that
//! ends when the rates of two consecutive slices agree, with the same keys, drawn beforehand, and
//! the same hasher, and every answer is checked: a rival that answers wrong is struck from the
//! contest. A ratio is the median over the rounds of the rounds' own ratios, so that weather shared
//! by all tables cancels.
//!
//! [`duel`] instead holds our own tables of two builds against each other, or counts their
//! instructions.
//!
//! [`policy`] counts hits instead of time: the same traces for every cache, of one thread.
//!
//! A family joins by a file in [`families`]; a general map joins a family by one line,
//! `Table::words::<M>(Role::Ours)`, where `M` implements the rivals' own trait.

mod about;
mod against;
mod builds;
mod committed;
mod cores;
mod count;
mod crew;
mod duel;
mod families;
mod family;
mod ground;
mod jobs;
mod keys;
mod lap;
mod ours;
mod page;
mod plan;
mod policy;
mod racers;
mod record;
mod runner;
mod scale;
mod show;
mod stats;
mod stint;
mod story;
mod timer;
mod watch;
mod weather;

use crate::args::{self, LapArgs, RaceArgs, WeighArgs};
use crate::fail::{Exit, Fail};
use crate::nearest;
use crate::output::{OnInterrupt, Output, is_interrupted, on_interrupt};
use crate::ui;
use about::Journal;
use family::Family;
use plan::{Clock, Wish};
use record::Record;
use runner::{Course, Outcome};
use std::path::Path;
use std::time::Duration;
pub(crate) use stint::Stint;
use watch::Watch;

/// Rounds, unless the user asks for another number.
const ROUNDS: usize = 7;
/// The story.
const STORY: Duration = Duration::from_secs(90);
/// A quick race of one family.
const FAMILY: Duration = Duration::from_secs(5 * 60);

/// Runs the race.
pub(crate) fn run(args: &RaceArgs) -> Result<Exit, Fail> {
    if jobs::shared::work() {
        return Ok(Exit::Fine);
    }
    if let Some(path) = &args.table {
        ui::say(committed::markdown(&committed::load(path)?).trim_end());
        return Ok(Exit::Fine);
    }
    let families = families::all();
    if args.list {
        show::list(&families);
        return Ok(Exit::Fine);
    }
    if args.family.as_deref() == Some(policy::NAME) {
        return policy::run(args);
    }
    if args.plot.is_some() {
        let advice = "quintet race --family policy --plot FILE";
        return Err(Fail::misuse("--plot draws the policies alone", "", advice));
    }
    let mut chosen = choose(&families, args.family.as_deref())?;
    let mut wish = wish(args)?;
    if wish.story {
        chosen = story::families(&families);
    }
    duel::adjust(args, &mut wish);
    let stages = plan::stages(&chosen, &wish);
    if stages.is_empty() {
        let all = chosen.iter().flat_map(|family| family.workloads).map(|workload| workload.name);
        let advice = nearest::advice("--workload", &wish.prefix, all);
        return Err(Fail::misuse(format!("no workload {:?}", wish.prefix), "", advice));
    }
    check_tables(&chosen, &args.tables)?;
    if duel::is_wanted(args) {
        return duel::run(args, &stages);
    }
    let committed = args.check.as_deref().map(committed::load).transpose()?;
    let json = args.json.as_deref().map(Output::open).transpose()?;
    let html = args.html.as_deref().map(Output::open).transpose()?;
    let quiet = [&args.json, &args.html].into_iter().flatten().any(|path| path == Path::new("-"));
    on_interrupt(OnInterrupt::Keep);
    let journal = Journal::start();
    let mut course = course(args, &wish, &stages, chosen.len());
    let outcome = run_stages(args, &wish, &stages, &mut course, quiet)?;
    let finished = !is_interrupted();
    for contest in outcome.skipped.iter().filter(|_| finished) {
        eprintln!("not run: {contest}");
    }
    let most = wish.threads.iter().copied().max().unwrap_or(1);
    if let Some(warning) = weather::warning(most) {
        eprintln!("{warning}");
    }
    if cfg!(debug_assertions) {
        eprintln!("this build is not optimized: its figures say nothing; cargo run --release");
    }
    let records = outcome.records;
    if finished || !records.is_empty() {
        let header = journal.header(finished);
        if let Some(json) = json {
            let header = record::json_lines(std::slice::from_ref(&header));
            json.finish(&(header + &record::json_lines(&records)))?;
        }
        if let Some(html) = html {
            html.finish(&page::page(&header.about, &records))?;
        }
    }
    match committed {
        _ if !finished => Ok(Exit::Interrupted),
        Some(then) => compare(&then, &records, quiet),
        None => Ok(Exit::Fine),
    }
}

/// Compares a run with a committed one. A loss is the answer no.
fn compare(then: &[Record], now: &[Record], quiet: bool) -> Result<Exit, Fail> {
    let (losses, compared) = committed::losses(then, now);
    if compared == 0 {
        let advice = "race what the file holds: the same family, workloads, keys and threads";
        return Err(Fail::misuse("nothing of this race is in the record", "", advice));
    }
    if !quiet {
        committed::tell(&losses, compared);
    }
    Ok(if losses.is_empty() { Exit::Fine } else { Exit::No })
}

/// The course of a race over so many families.
fn course(args: &RaceArgs, wish: &Wish, stages: &[plan::Stage<'_>], families: usize) -> Course {
    let contests: usize = stages.iter().map(plan::Stage::contests).sum();
    let budget = match (wish.quick, args.family.as_deref()) {
        _ if args.seconds.is_some() => args.seconds.map(Duration::from_secs),
        (false, _) => None,
        (true, None) => Some(STORY),
        (true, Some("all")) => Some(FAMILY * families as u32),
        (true, Some(_)) => Some(FAMILY),
    };
    Course {
        rounds: args.rounds.unwrap_or(ROUNDS),
        // Starting, checking and dropping the last tables is part of the promise.
        clock: Clock::new(budget.map(|budget| budget.mul_f64(0.87)), stages),
        bar: ui::progress(contests as u64),
        watch: Watch::start(),
    }
}

/// Runs stage after stage, until Ctrl-C.
fn run_stages(
    args: &RaceArgs,
    wish: &Wish,
    stages: &[plan::Stage<'_>],
    course: &mut Course,
    quiet: bool,
) -> Result<Outcome, Fail> {
    let mut all = Outcome::default();
    for stage in stages {
        if is_interrupted() {
            break;
        }
        let mut tables = (stage.family.tables)();
        tables.retain(|table| is_asked_for(&args.tables, table.label.name));
        let outcome = match stage.is_weighed() {
            true => weigh_stage(stage, &tables, course)?,
            false => runner::run_stage(stage, &tables, course)?,
        };
        if !quiet {
            course.bar.suspend(|| {
                if wish.story && !outcome.records.is_empty() {
                    story::open(stage.family.name);
                }
                show::blocks(&outcome.records);
            });
        }
        all.records.extend(outcome.records);
        all.skipped.extend(outcome.skipped);
    }
    course.bar.finish_and_clear();
    if wish.story && !quiet && !is_interrupted() {
        story::close();
    }
    Ok(all)
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

/// Runs one round of our own tables in this process.
pub(crate) fn lap(args: &LapArgs) -> Result<Exit, Fail> {
    lap::run(args, &families::all())
}

/// The families to race.
fn choose<'a>(families: &'a [Family], name: Option<&str>) -> Result<Vec<&'a Family>, Fail> {
    let Some(name) = name.filter(|name| *name != "all") else {
        return Ok(families.iter().collect());
    };
    let found = families.iter().find(|family| family.name == name);
    if found.is_some() && !family::is_compiled(name) {
        let what = format!("the tables of {name} are no part of this build");
        let why = "it was not optimized, or made for another family";
        let advice = format!("cargo run --release -- race --family {name}");
        return Err(Fail::misuse(what, why, advice));
    }
    found.map(|family| vec![family]).ok_or_else(|| {
        let names = families.iter().map(|family| family.name).chain([policy::NAME, "all"]);
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
    if args.seconds == Some(0) {
        let advice = "leave it out, or give a minute: --seconds 60";
        return Err(Fail::misuse("bad value for --seconds: 0", "no time gives no result", advice));
    }
    Ok(Wish {
        story: args.quick && args.family.is_none() && args.workload.is_none(),
        prefix: args.workload.clone().unwrap_or_default(),
        threads: threads.into_iter().map(|n| n as usize).collect(),
        keys,
        quick: args.quick,
    })
}
