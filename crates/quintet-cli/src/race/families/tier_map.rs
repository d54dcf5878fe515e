//! The map in shared memory against open addressing under a robust process-shared mutex. The racers
//! are processes, children of the race, that share one table; a table that cannot be shared is made
//! by each of them anew.

use crate::race::family::{
    Bench, Family, Heat, Measure, Role, Sample, Sizes, Table, Workload, Wrong, at_work,
};
use crate::race::jobs::shared::{key, obey};
use crate::race::ours::tier_map::{Ours, VERSION};
use crate::race::racers::{Laps, Racers, expect, failed, lap, racer};
use crate::race::stint::Stint;
use quintet_rivals::Label;
#[cfg(target_os = "linux")]
use quintet_rivals::shared::Robust;
use quintet_rivals::shared::{Local, Plain, Shared};
use quintet_testkit::crash::Child;

/// The family.
pub(crate) fn family() -> Family {
    Family {
        name: "tier-map",
        about: "hopscotch in shared memory, by processes",
        workloads: WORKLOADS,
        tables: at_work!("tier-map", tables),
        sizes: Sizes {
            quick: &[10_000, 1_000_000],
            full: &[10_000, 1_000_000],
            shares: &[],
            rare: &[],
        },
    }
}

const fn workload(
    name: &'static str,
    reason: &'static str,
    stage: &'static str,
    turn: &'static str,
) -> Workload {
    Workload { name, reason, stage, turn, measure: Measure::Rate }
}

const WORKLOADS: &[Workload] = &[
    workload(
        "get-load50",
        "lookups with half of the cells in use, as recommended",
        "load50",
        "get",
    ),
    Workload {
        ..workload("get-load80", "lookups with four of five cells in use", "load80", "get")
    },
    workload("get-load100", "lookups after as many adds as there are cells", "load100", "get"),
    workload("get-few", "lookups in few buckets", "load50", "few"),
    workload(
        "get-stopped",
        "the same while a writer is stopped inside each of these buckets",
        "stopped",
        "stopped",
    ),
    workload("update", "replace values: the record is written anew", "load50", "update"),
    workload("add", "fill a table made for its entries", "life", "life"),
    workload("remove", "empty it again", "life", "life"),
];

/// The yardstick of `get-stopped`: the same table, nobody stopped.
const UNDISTURBED: Label = Label::new("quintet (nobody stopped)", VERSION);

fn tables() -> Vec<Table> {
    vec![
        table::<Ours>(Role::Ours),
        #[cfg(target_os = "linux")]
        table::<Robust>(Role::Rival),
        Table {
            label: UNDISTURBED,
            role: Role::Limit,
            start: |stage, keys| if stage == "stopped" { undisturbed(keys) } else { None },
            weigh: None,
        },
        table::<Plain>(Role::Limit),
    ]
}

/// What a child does that was told this table's name.
pub(crate) fn tables_by_name(name: &str) -> Option<fn()> {
    match name {
        name if name == Ours::LABEL.name => Some(obey::<Ours>),
        #[cfg(target_os = "linux")]
        name if name == Robust::LABEL.name => Some(obey::<Robust>),
        name if name == Plain::LABEL.name => Some(obey::<Plain>),
        _ => None,
    }
}

fn table<S: Shared>(role: Role) -> Table {
    Table { label: S::LABEL, role, start: start::<S>, weigh: None }
}

fn undisturbed(keys: u64) -> Option<Box<dyn Bench>> {
    Some(Box::new(Company::<Ours>::filled(keys, 50)?))
}

fn start<S: Shared>(stage: &str, keys: u64) -> Option<Box<dyn Bench>> {
    let percent = match stage {
        "load50" => 50,
        "load80" => 80,
        "load100" => 100,
        "life" if S::writes() => return Some(Box::new(Company::<S>::default())),
        "stopped" => {
            let mut bench = Company::<S>::filled(keys, 50)?;
            bench.stops = S::writes();
            // A table whose lookups wait for a stopped writer has no figure here.
            let takes_part = !bench.stops || bench.can_hold();
            return takes_part.then(|| Box::new(bench) as Box<dyn Bench>);
        }
        _ => return None,
    };
    Some(Box::new(Company::<S>::filled(keys, percent)?))
}

/// A table and the processes that use it.
struct Company<S> {
    table: Option<S>,
    racers: Racers,
    cells: u64,
    keys: u64,
    /// In `get-stopped`: another process is stopped inside the few buckets.
    stops: bool,
}

impl<S> Default for Company<S> {
    fn default() -> Self {
        Self { table: None, racers: Racers::default(), cells: 0, keys: 0, stops: false }
    }
}

impl<S: Shared> Company<S> {
    /// A table with `keys` entries in `percent` of its cells.
    fn filled(keys: u64, percent: u64) -> Option<Self> {
        let cells = keys * 100 / percent;
        let mut company = Self { cells, keys, ..Self::default() };
        let table = S::create(cells as usize, keys as usize)?;
        if table.path().is_some() {
            let mut local = table.local();
            (0..keys).for_each(|number| _ = local.add(key(number), number));
        }
        company.table = Some(table);
        Some(company)
    }

    /// A process that has entered the table.
    fn hire(&self, number: u64) -> Result<Child, Wrong> {
        let mut child = racer(&format!("race {}", S::LABEL.name))?;
        self.enter(&mut child)?;
        if self.keys > 0 {
            child.tell(&format!("survey {} {number}", self.keys));
            expect(&child, "surveyed")?;
        }
        Ok(child)
    }

    fn enter(&self, child: &mut Child) -> Result<(), Wrong> {
        match self.table.as_ref().and_then(S::path) {
            Some(path) => child.tell(&format!("enter {path}")),
            None => child.tell(&format!("make {} {}", self.cells, self.keys)),
        }
        expect(child, "entered")
    }

    /// Stops a process inside the few buckets while `body` runs.
    fn while_stopped<R>(&self, body: impl FnOnce() -> R) -> Result<R, Wrong> {
        let mut holder = self.hire(0)?;
        holder.tell("hold");
        expect(&holder, "held")?;
        #[cfg(unix)]
        holder.stop();
        let result = body();
        #[cfg(unix)]
        holder.resume();
        holder.tell("release");
        expect(&holder, "released").map(|()| result)
    }

    fn can_hold(&self) -> bool {
        self.while_stopped(|| ()).is_ok()
    }

    /// Every racer does its part of a workload, all at the same time.
    fn race(&mut self, work: &str, heat: &Heat, stint: Stint) -> Result<Laps, Wrong> {
        while self.racers.0.len() < heat.threads {
            let racer = self.hire(self.racers.0.len() as u64 + 1)?;
            self.racers.0.push(racer);
        }
        let laps = lap(&mut self.racers.0[..heat.threads], work, heat.keys, stint)?;
        Wrong::unless_zero(laps.wrong, work)?;
        Ok(laps)
    }
}

impl<S: Shared> Bench for Company<S> {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        let (mops, laps) = match heat.workload.name {
            "update" if !S::writes() => (0.0, Laps::default()),
            work @ ("add" | "remove") => {
                if work == "add" || self.table.is_none() {
                    self.table = None;
                    self.table = S::create(heat.keys as usize * 2, heat.keys as usize);
                    let table = self.table.as_ref().ok_or_else(|| failed("no shared memory"))?;
                    if work == "remove" {
                        // Its turn came without an add before it.
                        let mut local = table.local();
                        (0..heat.keys).for_each(|number| _ = local.add(key(number), number));
                    }
                    let mut racers = std::mem::take(&mut self.racers);
                    racers.0.iter_mut().try_for_each(|racer| self.enter(racer))?;
                    self.racers = racers;
                }
                let laps = self.race(work, heat, stint)?;
                if work == "remove" {
                    self.table = None;
                }
                (laps.operations as f64 / laps.longest.max(1) as f64 * 1e3, laps)
            }
            "get-stopped" if self.stops => {
                // Racers look once before, so that they exist and have seen the table.
                self.race("get-few", heat, stint.tenth())?;
                let racers = std::mem::take(&mut self.racers);
                let mut inside = Self { racers, keys: self.keys, ..Self::default() };
                let laps = self.while_stopped(|| inside.race("get-stopped", heat, stint))?;
                self.racers = inside.racers;
                let laps = laps?;
                (laps.rate * 1e3, laps)
            }
            work => {
                let laps = self.race(work, heat, stint)?;
                (laps.rate * 1e3, laps)
            }
        };
        Ok(Sample { mops, operations: laps.operations, ..Sample::default() })
    }

    fn is_by_processes(&self) -> bool {
        true
    }
}
