//! `quintet race --family policy`: how often each cache finds what it is asked for.
//!
//! Nothing is timed. Every contestant serves the same trace: it is asked for a key, and given it if
//! it had to say no. The first fifth of a trace fills the caches, the rest counts. Traces are drawn
//! from a seed, so a run repeats; our own caches hash by a seed of their own, which moves their
//! figures by a few hundredths of a point.
//!
//! *At equal entries* all entries weigh the same, and there is room for a share of the keys. *At
//! equal bytes* values have many lengths, an entry weighs the blocks of 128 bytes it takes in a
//! `TierCache`, and there is room for the same share of the weight of all keys.

mod caches;
mod plot;
mod table;
mod trace;

use super::about::Journal;
use super::family::Measure;
use super::page;
use super::record::{self, Record};
use crate::args::{self, RaceArgs};
use crate::fail::{Exit, Fail};
use crate::nearest;
use crate::output::{OnInterrupt, Output, is_interrupted, on_interrupt};
use crate::ui;
use caches::{CONTESTANTS, Contestant};
use std::path::Path;
use trace::{Kind, Trace};

/// The family's name on the command line.
pub(super) const NAME: &str = "policy";
/// What it is, in a line.
pub(super) const ABOUT: &str = "hits of the cache's policies, LRU, moka, quick_cache, clairvoyant";

/// Keys and shares of them, in percent, of a quick race and a full one.
const QUICK: (u64, &[u64]) = (50_000, &[10]);
const FULL: (u64, &[u64]) = (200_000, &[1, 10, 25]);
/// Accesses per key.
const LENGTH: u64 = 12;
/// Entries of the smallest cache.
const FEWEST: u64 = 256;
const SEED: u64 = 27;

/// What an entry weighs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Equal {
    Entries,
    Bytes,
}

impl Equal {
    const ALL: [Self; 2] = [Self::Entries, Self::Bytes];

    fn name(self) -> &'static str {
        match self {
            Self::Entries => "entries",
            Self::Bytes => "bytes",
        }
    }
}

/// One trace, with room for a share of its keys.
#[derive(Clone, Copy, Debug)]
struct Heat {
    kind: Kind,
    equal: Equal,
    percent: u64,
    keys: u64,
}

impl Heat {
    /// `zipf-1.0-entries-10`: the trace, what is equal, percent of the keys.
    fn name(self) -> String {
        format!("{}-{}-{}", self.kind.name(), self.equal.name(), self.percent)
    }
}

/// Names and reasons of the traces, for the list.
pub(super) fn workloads() -> impl Iterator<Item = (&'static str, &'static str)> + Clone {
    Kind::ALL.into_iter().map(|kind| (kind.name(), kind.reason()))
}

/// What the user asked for.
fn heats(args: &RaceArgs) -> Result<Vec<Heat>, Fail> {
    let (keys, percents) = if args.quick { QUICK } else { FULL };
    let sizes = match &args.keys {
        Some(text) => args::numbers("--keys", text, 10_000_000)?,
        None => vec![keys],
    };
    let least = FEWEST * 100 / percents[0];
    if let Some(few) = sizes.iter().find(|keys| **keys < least) {
        let why = format!("{} % of {few} keys is no cache", percents[0]);
        return Err(Fail::misuse("bad value for --keys", why, format!("give at least {least}")));
    }
    let mut heats = Vec::new();
    for keys in sizes {
        for equal in Equal::ALL {
            for &percent in percents {
                let of = |kind| Heat { kind, equal, percent, keys };
                heats.extend(Kind::ALL.into_iter().map(of));
            }
        }
    }
    let prefix = args.workload.as_deref().unwrap_or_default();
    heats.retain(|heat| heat.name().starts_with(prefix));
    if heats.is_empty() {
        let advice = nearest::advice("--workload", prefix, workloads().map(|(name, _)| name));
        return Err(Fail::misuse(format!("no workload {prefix:?}"), "", advice));
    }
    Ok(heats)
}

/// Who takes part.
fn contestants(args: &RaceArgs) -> Result<Vec<Contestant>, Fail> {
    let names = CONTESTANTS.map(|contestant| contestant.label.name);
    let starts = |name: &str, asked: &String| name.starts_with(asked.as_str());
    if let Some(unknown) = args.tables.iter().find(|asked| !names.iter().any(|n| starts(n, asked)))
    {
        let advice = nearest::advice("--tables", unknown, names);
        return Err(Fail::misuse(format!("no table {unknown:?}"), "", advice));
    }
    let asked = |one: &Contestant| {
        args.tables.is_empty() || args.tables.iter().any(|asked| starts(one.label.name, asked))
    };
    Ok(CONTESTANTS.into_iter().filter(asked).collect())
}

/// Runs the race.
pub(super) fn run(args: &RaceArgs) -> Result<Exit, Fail> {
    let (heats, contestants) = (heats(args)?, contestants(args)?);
    let json = args.json.as_deref().map(Output::open).transpose()?;
    let html = args.html.as_deref().map(Output::open).transpose()?;
    let plot = args.plot.as_deref().map(Output::open).transpose()?;
    let files = [&args.json, &args.html, &args.plot];
    let quiet = files.into_iter().flatten().any(|path| path == Path::new("-"));
    on_interrupt(OnInterrupt::Keep);
    let journal = Journal::start();
    let bar = ui::progress((heats.len() * contestants.len()) as u64);
    let mut records = Vec::new();
    for heat in heats {
        bar.set_message(heat.name());
        let trace = Trace::draw(heat.kind, heat.keys, heat.percent, args.seed.unwrap_or(SEED));
        let mut rows = Vec::new();
        for contestant in contestants.iter().take_while(|_| !is_interrupted()) {
            rows.push(row(heat, contestant, contestant.run(&trace, heat)?));
            bar.inc(1);
        }
        if is_interrupted() {
            break;
        }
        compare(&mut rows);
        records.extend(rows);
    }
    bar.finish_and_clear();
    if !quiet {
        ui::say(&table::table(&records));
    }
    let finished = !is_interrupted();
    if finished || !records.is_empty() {
        let header = journal.header(finished);
        if let Some(json) = json {
            let first = record::json_lines(std::slice::from_ref(&header));
            json.finish(&(first + &record::json_lines(&records)))?;
        }
        let drawn = plot::svg(&records);
        if let Some(html) = html {
            html.finish(&(page::page(&header.about, &records) + &drawn))?;
        }
        if let Some(plot) = plot {
            plot.finish(&drawn)?;
        }
    }
    Ok(if finished { Exit::Fine } else { Exit::Interrupted })
}

fn row(heat: Heat, contestant: &Contestant, hit_ratio: f64) -> Record {
    Record {
        family: NAME.to_owned(),
        workload: heat.name(),
        measure: Measure::Hits,
        table: contestant.label.name.to_owned(),
        version: contestant.label.version.map(str::to_owned),
        threads: 1,
        keys: heat.keys,
        rounds: 1,
        hit_ratio: Some(hit_ratio),
        limit: contestant.is_limit,
        ..Record::default()
    }
}

/// Ours get their ratio to the best rival.
fn compare(rows: &mut [Record]) {
    let ours = |row: &Record| row.table.starts_with(caches::OURS);
    let rivals = rows.iter().filter(|row| !row.limit && !ours(row));
    let best = rivals.filter_map(|row| row.hit_ratio).fold(0.0, f64::max);
    for row in rows.iter_mut().filter(|row| ours(row) && best > 0.0) {
        let ratio = row.hit_ratio.map(|ratio| ratio / best);
        (row.ratio_to_best_rival, row.ratio_low, row.ratio_high) = (ratio, ratio, ratio);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(kind: Kind, equal: Equal) -> Vec<(&'static str, f64)> {
        let heat = Heat { kind, equal, percent: 10, keys: 8_000 };
        let trace = Trace::draw(kind, heat.keys, heat.percent, SEED);
        let ratio = |one: &Contestant| (one.label.name, one.run(&trace, heat).unwrap());
        CONTESTANTS.iter().map(ratio).collect()
    }

    fn of(ratios: &[(&str, f64)], name: &str) -> f64 {
        ratios.iter().find(|(other, _)| *other == name).unwrap().1
    }

    /// The promises of the page, on a small trace.
    #[test]
    fn policies_are_as_good_as_they_say() {
        for equal in Equal::ALL {
            let ratios = small(Kind::Zipf10, equal);
            let of = |name| of(&ratios, name);
            assert!((of("quintet lru") - of("exact LRU")).abs() < 0.01, "{equal:?} {ratios:?}");
            assert!(of("quintet s3fifo") > of("moka") - 0.01, "{equal:?} {ratios:?}");
            assert!(of("quintet sieve") > of("exact LRU") + 0.02, "{equal:?} {ratios:?}");
        }
    }

    /// Nobody finds more than who knows what comes, and everybody is asked as often.
    #[test]
    fn the_clairvoyant_is_the_limit() {
        for kind in Kind::ALL {
            let ratios = small(kind, Equal::Entries);
            let most = of(&ratios, "clairvoyant");
            assert!(ratios.iter().all(|(_, ratio)| *ratio <= most + 1e-9), "{kind:?} {ratios:?}");
        }
    }

    #[test]
    fn ours_are_compared_with_the_best_rival() {
        let record = |table: &str, ratio, limit| Record {
            table: table.to_owned(),
            hit_ratio: Some(ratio),
            limit,
            ..Record::default()
        };
        let mut rows = [
            record("quintet lru", 0.4, false),
            record("moka", 0.5, false),
            record("clairvoyant", 0.9, true),
        ];
        compare(&mut rows);
        assert_eq!(rows[0].ratio_to_best_rival, Some(0.8));
        assert_eq!(rows[1].ratio_to_best_rival, None);
    }
}
