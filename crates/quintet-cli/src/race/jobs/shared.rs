//! The processes of a race in shared memory. Each is this program again, a child that does what its
//! parent's lines say and reports by lines:
//!
//! | line | does | answers |
//! |---|---|---|
//! | `enter PATH` | enters a table | `entered` |
//! | `make CELLS ENTRIES` | makes a table of its own and fills it | `entered` |
//! | `survey ENTRIES SEED` | notes which keys are there | `surveyed` |
//! | `round WORKLOAD PART PARTS ENTRIES STINT` | prepares itself | `ready` |
//! | `go` | runs the round | `lap OPERATIONS WRONG NANOSECONDS` |
//! | `hold` | holds the few buckets | `held`, or `cannot` |
//! | `release` | releases them | `released` |
//! | `end` | ends | |

use crate::output::{OnInterrupt, on_interrupt};
use crate::race::crew::{Lap, repeat, undisturbed, warm_up};
use crate::race::families::cache::stores_by_name;
use crate::race::families::tier_map::tables_by_name;
use crate::race::keys::Dice;
use crate::race::stint::Stint;
use crate::race::timer::{clocked, count_instructions};
use quintet_rivals::shared::{Local, Shared};
use quintet_testkit::crash::{report, task};
use std::hint::black_box;
use std::io::stdin;

/// Does a child's work, if this process is one; it ends with its parent.
pub(crate) fn work() -> bool {
    let Some(task) = task() else { return false };
    on_interrupt(OnInterrupt::Ignore);
    let obey = match task.split_once(' ') {
        Some(("race", name)) => tables_by_name(name),
        Some(("race-cache", name)) => stores_by_name(name),
        _ => return false,
    };
    if let Some(obey) = obey {
        obey();
    }
    true
}

/// A one-to-one scramble of 32 bits; 0 and the largest word are no keys.
pub(crate) fn key(number: u64) -> u32 {
    let mut word = number as u32 ^ 0x5bd1_e995;
    word = (word ^ word >> 16).wrapping_mul(0x85eb_ca6b);
    word = (word ^ word >> 13).wrapping_mul(0xc2b2_ae35);
    (word ^ word >> 16).clamp(1, u32::MAX - 1)
}

/// The next line's words; `None` when the parent is gone.
pub(super) fn hear() -> Option<Vec<String>> {
    let mut line = String::new();
    match stdin().read_line(&mut line) {
        Ok(count) if count > 0 => Some(line.split_whitespace().map(str::to_owned).collect()),
        _ => None,
    }
}

/// Hears and obeys until the parent is gone.
pub(crate) fn obey<S: Shared>() {
    let mut table: Option<S> = None;
    let mut survey = Survey::default();
    while let Some(words) = hear() {
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        let number = |at: usize| number(at).unwrap_or(0);
        match (words.first().map(String::as_str), &table) {
            (Some("end"), _) => return,
            (Some("enter"), _) => {
                table = words.get(1).and_then(|path| S::attach(path));
                report(if table.is_some() { "entered" } else { "no table" });
            }
            (Some("make"), _) => {
                table = S::create(number(1) as usize, number(2) as usize);
                if let Some(table) = &table {
                    let mut local = table.local();
                    (0..number(2)).for_each(|entry| _ = local.add(key(entry), entry));
                }
                report(if table.is_some() { "entered" } else { "no table" });
            }
            (Some("survey"), Some(table)) => {
                survey = Survey::new(&mut table.local(), number(1), number(2));
                report("surveyed");
            }
            (Some("round"), Some(table)) => {
                let part = Part { part: number(2), parts: number(3), entries: number(4) };
                let Some(stint) = length(&words) else { return report("what?") };
                report_lap(&match words[1].as_str() {
                    work @ ("add" | "remove") => life(&mut table.local(), work, &part),
                    work => steady(&mut table.local(), survey.order(work), work, stint),
                });
            }
            (Some("hold"), Some(table)) => {
                let held = table.hold(&survey.absent, &mut || {
                    report("held");
                    hear();
                });
                report(if held { "released" } else { "cannot" });
            }
            _ => report("what?"),
        }
    }
}

/// A key that is there, and the number it belongs to.
type Entry = (u32, u32);

/// Which keys are there, in a random order: drawn before any clock runs, eight bytes each.
#[derive(Default)]
struct Survey {
    all: Vec<Entry>,
    /// Draws from the keys of the few buckets.
    few: Vec<Entry>,
    /// Keys that are not there and fall into the few buckets.
    absent: Vec<u32>,
}

/// How many buckets are few. A bucket is a range of keys.
const FEW: usize = 4;

impl Survey {
    fn new(local: &mut impl Local, entries: u64, seed: u64) -> Self {
        let mut dice = Dice::new(seed, 0);
        let mut all: Vec<Entry> = (0..entries)
            .map(|number| (key(number), number as u32))
            .filter(|(key, _)| local.get(*key).is_some())
            .collect();
        // The same few for every process.
        let mut sorted: Vec<Entry> = all.iter().take(4096).copied().collect();
        sorted.sort_unstable();
        // Far enough from each other in key order to be in buckets of their own.
        let sorted: Vec<Entry> = sorted.into_iter().step_by(16).take(FEW).collect();
        for last in (1..all.len()).rev() {
            all.swap(last, dice.below(last as u64 + 1) as usize);
        }
        let few = (0..4096).map(|_| sorted[dice.below(sorted.len() as u64) as usize]).collect();
        // The neighbour of a key in key order is almost surely absent and in the same bucket.
        let absent = sorted.iter().map(|(key, _)| key ^ 1);
        let absent = absent.filter(|key| *key != 0 && local.get(*key).is_none()).collect();
        Self { all, few, absent }
    }

    fn order(&self, workload: &str) -> &[Entry] {
        if matches!(workload, "get-few" | "get-stopped") { &self.few } else { &self.all }
    }
}

/// Says `ready`, and waits until all others are.
pub(super) fn gate() {
    report("ready");
    hear();
}

/// Lookups or updates in the given order for a stint.
fn steady(local: &mut impl Local, order: &[Entry], work: &str, stint: Stint) -> Lap {
    let update = work == "update";
    let mut place = 0;
    let batch = || {
        let mut wrong = 0;
        for _ in 0..256 {
            let (key, number) = (order[place].0, u64::from(order[place].1));
            place = if place + 1 == order.len() { 0 } else { place + 1 };
            let right = match update {
                true => local.update(key, number),
                false => local.get(key) == Some(number),
            };
            wrong += u64::from(!right);
        }
        black_box(wrong)
    };
    timed(stint, 256, batch)
}

/// Repeats `batch`, which does so many operations and counts wrong answers, for a stint, after a
/// warm-up.
pub(super) fn timed(stint: Stint, operations: u64, mut batch: impl FnMut() -> u64) -> Lap {
    let mut step = || {
        let (wrong, busy) = clocked(&mut batch);
        Lap { operations, wrong, busy }
    };
    let early = warm_up(stint, &mut step);
    gate();
    let lap = undisturbed(|| repeat(stint, &mut step));
    Lap { wrong: lap.wrong + early, ..lap }
}

/// The length of the round that was told, its last word.
pub(super) fn length(words: &[String]) -> Option<Stint> {
    let stint = words.last()?.parse().ok()?;
    if matches!(stint, Stint::Operations(_)) {
        count_instructions();
    }
    Some(stint)
}

/// Reports what was done.
pub(super) fn report_lap(lap: &Lap) {
    report(&format!("lap {} {} {}", lap.operations, lap.wrong, lap.busy.as_nanos()));
}

/// A process's share of the entries.
struct Part {
    part: u64,
    parts: u64,
    entries: u64,
}

/// Adds or removes a share of the entries.
fn life(local: &mut impl Local, work: &str, part: &Part) -> Lap {
    let each = part.entries / part.parts.max(1);
    let from = each * part.part;
    let keys: Vec<u32> = (from..from + each).map(key).collect();
    gate();
    let (wrong, busy) = clocked(|| {
        let right = |(number, key): &(u64, &u32)| match work {
            "add" => local.add(**key, *number),
            _ => local.remove(**key),
        };
        each - (from..).zip(&keys).filter(right).count() as u64
    });
    Lap { operations: each, wrong, busy }
}
