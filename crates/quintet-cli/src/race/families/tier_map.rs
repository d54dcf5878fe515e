//! The map in shared memory against open addressing under a robust process-shared mutex.

use crate::race::crew::{Lap, crew, for_a_while, joint_rate, span, wrong};
use crate::race::family::{
    Bench, Family, Heat, Measure, Role, Sample, Sizes, Table, Workload, Wrong,
};
use crate::race::keys::{Draw, Uniform};
use crate::race::ours::tier_map::Ours;
use quintet_rivals::shared::{Local, Plain, Shared};
use std::time::{Duration, Instant};

/// The family.
pub(crate) fn family() -> Family {
    Family {
        name: "tier-map",
        about: "hopscotch in shared memory",
        workloads: WORKLOADS,
        tables,
        sizes: Sizes { quick: &[10_000, 1_000_000], full: &[10_000, 1_000_000] },
    }
}

const fn workload(
    name: &'static str,
    reason: &'static str,
    stage: &'static str,
    turn: &'static str,
) -> Workload {
    Workload { name, reason, stage, turn, measure: Measure::Rate, headline: false }
}

const WORKLOADS: &[Workload] = &[
    workload(
        "get-load50",
        "lookups with half of the cells in use, as recommended",
        "load50",
        "get",
    ),
    Workload {
        headline: true,
        ..workload("get-load80", "lookups with four of five cells in use", "load80", "get")
    },
    workload("get-load100", "lookups after as many adds as there are cells", "load100", "get"),
    workload("update", "replace values: the record is written anew", "load50", "update"),
    workload("add", "fill a table made for its entries", "life", "life"),
    workload("remove", "empty it again", "life", "life"),
];

fn tables() -> Vec<Table> {
    vec![
        table::<Ours>(Role::Ours),
        #[cfg(unix)]
        table::<quintet_rivals::shared::Robust>(Role::Rival),
        table::<Plain>(Role::Limit),
    ]
}

fn table<S: Shared>(role: Role) -> Table {
    Table { label: S::LABEL, role, start: start::<S>, weigh: None }
}

fn start<S: Shared>(stage: &str, keys: u64) -> Option<Box<dyn Bench>> {
    let percent = match stage {
        "load50" => 50,
        "load80" => 80,
        "load100" => 100,
        "life" if S::writes() => return Some(Box::new(Life::<S> { table: None })),
        _ => return None,
    };
    let table = S::create((keys * 100 / percent) as usize, keys as usize)?;
    let mut present = Vec::new();
    {
        let mut local = table.local();
        for number in 0..keys {
            local.add(key(number), number);
        }
        // Full windows gave some entries up.
        present
            .extend((0..keys).filter(|number| local.get(key(*number)).is_some()).map(|n| n as u32));
    }
    Some(Box::new(Steady { table, present }))
}

/// A one-to-one scramble of 32 bits; 0 and the largest word are no keys.
fn key(number: u64) -> u32 {
    let mut word = number as u32 ^ 0x5bd1_e995;
    word = (word ^ word >> 16).wrapping_mul(0x85eb_ca6b);
    word = (word ^ word >> 13).wrapping_mul(0xc2b2_ae35);
    (word ^ word >> 16).clamp(1, u32::MAX - 1)
}

/// A table that keeps its keys.
struct Steady<S> {
    table: S,
    present: Vec<u32>,
}

impl<S: Shared> Bench for Steady<S> {
    fn round(&mut self, heat: &Heat, slot: Duration) -> Result<Sample, Wrong> {
        if heat.workload.name == "update" && !S::writes() {
            return Ok(Sample::default());
        }
        let laps = crew(heat.threads, |thread, gate| {
            let mut local = self.table.local();
            let mut draw = Uniform::new(self.present.len() as u64, heat.round, thread);
            for_a_while(slot, gate, || {
                let mut wrong = 0;
                for _ in 0..256 {
                    let number = u64::from(self.present[draw.next() as usize]);
                    wrong += u64::from(!match heat.workload.name {
                        "update" => local.update(key(number), number),
                        _ => local.get(key(number)) == Some(number),
                    });
                }
                (256, wrong)
            })
        });
        Wrong::unless_zero(wrong(&laps), heat.workload.name)?;
        Ok(joint_rate(&laps))
    }
}

/// A table that is filled and emptied.
struct Life<S> {
    table: Option<S>,
}

impl<S: Shared> Life<S> {
    fn in_parts(
        &self,
        heat: &Heat,
        work: impl Fn(&mut S::Local<'_>, u64) -> bool + Sync,
    ) -> Vec<Lap> {
        let table = self.table.as_ref().expect("made before");
        crew(heat.threads, |thread, gate| {
            let mut local = table.local();
            let each = heat.keys / heat.threads as u64;
            let from = each * thread as u64;
            gate.wait();
            let start = Instant::now();
            let wrong =
                (from..from + each).map(|number| u64::from(!work(&mut local, number))).sum();
            Lap { operations: each, wrong, start, end: Instant::now() }
        })
    }
}

impl<S: Shared> Bench for Life<S> {
    fn round(&mut self, heat: &Heat, _: Duration) -> Result<Sample, Wrong> {
        let adds = heat.workload.name == "add";
        if adds || self.table.is_none() {
            self.table = None;
            self.table = S::create(heat.keys as usize * 2, heat.keys as usize);
            if self.table.is_none() {
                return Err(Wrong("no shared memory".to_owned()));
            }
        }
        if !adds {
            // Present already if the turn ran in order.
            self.in_parts(heat, |local, number| {
                local.get(key(number)).is_some() || local.add(key(number), number)
            });
        }
        let laps = self.in_parts(heat, |local, number| match adds {
            true => local.add(key(number), number),
            false => local.remove(key(number)),
        });
        Wrong::unless_zero(wrong(&laps), heat.workload.name)?;
        let operations: u64 = laps.iter().map(|lap| lap.operations).sum();
        Ok(Sample {
            mops: operations as f64 / span(&laps).as_secs_f64() / 1e6,
            ..Sample::default()
        })
    }
}
