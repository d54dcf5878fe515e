//! `pin-writes`: what a write costs that takes a pin for itself, beside the same by a handle.

use crate::race::crew::{crew, for_a_while, joint_rate, wrong};
use crate::race::family::{Bench, Heat, Role, Sample, Table, Wrong};
use crate::race::stint::Stint;
use quintet::item_set::Keyed;
use quintet::{ItemSet, WordMap};
use quintet_rivals::Label;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Writes between two quiet points.
const BATCH: u64 = 256;
/// Keys of each thread: they stay in the nearest caches.
const KEYS: u64 = 512;

/// The tables, by handle and by pin. They take part in `pin-writes` only.
pub(crate) fn tables() -> [Table; 4] {
    [
        table("WordMap (handle)", |stage, _| words::<false>(stage)),
        table("WordMap (pin)", |stage, _| words::<true>(stage)),
        table("ItemSet (handle)", |stage, _| items::<false>(stage)),
        table("ItemSet (pin)", |stage, _| items::<true>(stage)),
    ]
}

fn table(name: &'static str, start: fn(&str, u64) -> Option<Box<dyn Bench>>) -> Table {
    Table { label: Label::new(name, VERSION), role: Role::Ours, start, weigh: None }
}

fn words<const PIN: bool>(stage: &str) -> Option<Box<dyn Bench>> {
    (stage == "pin-writes").then(|| Box::new(Words::<PIN>(WordMap::new())) as Box<dyn Bench>)
}

fn items<const PIN: bool>(stage: &str) -> Option<Box<dyn Bench>> {
    (stage == "pin-writes").then(|| Box::new(Items::<PIN>(ItemSet::new())) as Box<dyn Bench>)
}

/// The keys of a thread, in turn.
fn keys(thread: usize, from: u64) -> impl Iterator<Item = u64> {
    (from..from + BATCH / 2).map(move |step| thread as u64 * KEYS + step % KEYS)
}

/// Inserts and removes words: both are counted.
struct Words<const PIN: bool>(WordMap);

impl<const PIN: bool> Bench for Words<PIN> {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        let laps = crew(heat.threads, |thread, gate| {
            let (map, handle, mut from) = (&self.0, self.0.handle(), 0);
            for_a_while(stint, gate, || {
                let mut wrong = 0;
                for key in keys(thread, from) {
                    let (old, new) = match PIN {
                        true => (map.pin().insert(key, key), map.pin().remove(key)),
                        false => (handle.insert(key, key), handle.remove(key)),
                    };
                    wrong += u64::from(old.is_some()) + u64::from(new != Some(key));
                }
                from += BATCH / 2;
                (BATCH, wrong)
            })
        });
        Wrong::unless_zero(wrong(&laps), heat.workload.name)?;
        Ok(joint_rate(&laps))
    }

    fn check(&mut self, _heat: &Heat) -> Result<(), Wrong> {
        Wrong::unless_zero(self.0.len() as u64, "entries that were removed")
    }
}

/// A record of one cache line.
struct Record {
    key: u64,
    rest: [u64; 7],
}

impl Keyed for Record {
    type Key = u64;
    fn key(&self) -> &u64 {
        &self.key
    }
}

/// Puts records and removes them, which retires them.
struct Items<const PIN: bool>(ItemSet<Box<Record>>);

impl<const PIN: bool> Bench for Items<PIN> {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        let laps = crew(heat.threads, |thread, gate| {
            // A handle that is not used would hold everything back.
            let (set, mut handle, mut from) = (&self.0, (!PIN).then(|| self.0.quiet_handle()), 0);
            for_a_while(stint, gate, || {
                let mut wrong = 0;
                for key in keys(thread, from) {
                    let record = Box::new(Record { key, rest: [key; 7] });
                    let right = |found: Option<&Record>| found.map(|found| found.rest[6]);
                    let (old, new) = match &handle {
                        None => (right(set.pin().insert(record)), right(set.pin().remove(&key))),
                        Some(handle) => (right(handle.insert(record)), right(handle.remove(&key))),
                    };
                    wrong += u64::from(old.is_some()) + u64::from(new != Some(key));
                }
                handle.iter_mut().for_each(|handle| handle.quiescent());
                from += BATCH / 2;
                (BATCH, wrong)
            })
        });
        Wrong::unless_zero(wrong(&laps), heat.workload.name)?;
        Ok(joint_rate(&laps))
    }
}
