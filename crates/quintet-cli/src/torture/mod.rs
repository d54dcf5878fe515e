//! `quintet torture`: stress tables and check every answer they give.
//!
//! A family joins by a file here and one line in [`families`]: a list of checks, each of which runs
//! for a share of the time and reports what it did.

#[cfg(target_os = "linux")]
mod cache;
mod controls;
mod copy;
#[cfg(target_os = "linux")]
mod inherit;
mod item;
mod linear;
mod map;
mod reclaim;
mod rivals;
mod seen;
mod tier_map;
mod twin;
mod verdict;
mod word;

use crate::args::TortureArgs;
use crate::fail::{Exit, Fail};
use crate::nearest;
use crate::output::Output;
use crate::ui::{self, Tone, count, paint, say};
use quintet_testkit::stress::derive;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::Duration;
use verdict::Verdict;

/// A family of checks.
struct Family {
    name: &'static str,
    checks: Vec<Check>,
}

/// One check.
struct Check {
    name: &'static str,
    run: fn(&Order) -> Verdict,
}

/// What a check is to do.
struct Order {
    /// About how long; every check does its least, however short this is.
    time: Duration,
    /// Where its random choices come from.
    seed: u64,
    /// How many threads.
    threads: usize,
}

fn families() -> Vec<Family> {
    vec![
        Family { name: "controls", checks: controls::checks() },
        Family { name: "rivals", checks: rivals::checks() },
        Family { name: "reclaim", checks: reclaim::checks() },
        Family { name: "twin", checks: twin::checks() },
        Family { name: "word", checks: word::checks() },
        Family { name: "item", checks: item::checks() },
        Family { name: "map", checks: map::checks().into_iter().chain(copy::checks()).collect() },
        Family { name: "tier-map", checks: tier_map::checks() },
        #[cfg(target_os = "linux")]
        Family { name: "cache", checks: cache::checks() },
        Family { name: "seen", checks: seen::checks() },
    ]
}

/// Runs the torture.
pub(crate) fn run(args: &TortureArgs) -> Result<Exit, Fail> {
    if tier_map::work() {
        return Ok(Exit::Fine);
    }
    #[cfg(target_os = "linux")]
    if cache::work() {
        return Ok(Exit::Fine);
    }
    let families = choose(args.family.as_deref())?;
    if !(1..=256).contains(&args.threads) {
        let what = format!("bad value for --threads: {}", args.threads);
        return Err(Fail::misuse(what, "", "give a number from 1 to 256, for example --threads 4"));
    }
    if args.seconds == 0 {
        let advice = "give at least one second, for example --seconds 30";
        return Err(Fail::misuse("bad value for --seconds: 0", "no time finds no bug", advice));
    }
    let json = args.json.as_deref().map(Output::open).transpose()?;
    let quiet = args.json.as_deref() == Some(Path::new("-"));
    let seed = args.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
    let tell = |line: &str| if quiet { eprintln!("{line}") } else { say(line) };
    tell(&format!("seed {seed} (replay with --seed {seed} --threads {})", args.threads));
    let checks = families.iter().map(|family| family.checks.len()).sum::<usize>();
    let time = Duration::from_secs(args.seconds) / checks.max(1) as u32;
    let bar = ui::progress(checks as u64);
    let mut lines = String::new();
    let mut failed = 0;
    for family in &families {
        for check in &family.checks {
            bar.set_message(format!("{} {}", family.name, check.name));
            // The seed of a check depends on its name alone, so that one family replays the same.
            let add = |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte));
            let lane = check.name.bytes().fold(0, add);
            let order = Order { time, seed: derive(seed, lane), threads: args.threads };
            let verdict = (check.run)(&order);
            failed += usize::from(!verdict.holds());
            if !quiet {
                bar.suspend(|| show(family.name, check.name, &verdict));
            }
            lines += &verdict.json(family.name, check.name, seed);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    if let Some(json) = json {
        json.finish(&lines)?;
    }
    tell(&format!("{} checks, {failed} failed", checks));
    Ok(if failed == 0 { Exit::Fine } else { Exit::No })
}

fn choose(name: Option<&str>) -> Result<Vec<Family>, Fail> {
    let mut families = families();
    let Some(name) = name.filter(|name| *name != "all") else { return Ok(families) };
    let names: Vec<&str> = families.iter().map(|family| family.name).chain(["all"]).collect();
    if !names.contains(&name) {
        let why = format!("the families are {}", names.join(", "));
        let advice = nearest::advice("--family", name, names);
        return Err(Fail::misuse(format!("unknown family {name:?}"), why, advice));
    }
    families.retain(|family| family.name == name);
    Ok(families)
}

fn show(family: &str, check: &str, verdict: &Verdict) {
    let mark = match verdict.holds() {
        true => paint("ok  ", Tone::Good),
        false => paint("FAIL", Tone::Bad),
    };
    say(&format!("{mark} {:<9}{:<32}{}", family, check, verdict.summary()));
    for line in &verdict.notes {
        say(&format!("       {line}"));
    }
}

/// Operations in words that fit a line.
fn operations(n: u64) -> String {
    format!("{} operations", count(n))
}
