//! Sets of records that carry their key: ours, and every general map with shared records in it.

use crate::race::family::{Bench, Family, MAP_SIZES, Measure, Role, Table, Workload, at_work};
use crate::race::jobs::general::{self, start_both};
use crate::race::ours::in_place::{self, Items};
use crate::race::ours::item::{
    BATCH_LABEL, Boxed, BoxedHandle, BoxedPin, Many, Records, Shared, SharedHandle, SharedPin,
};
use quintet_rivals::Texts;
use quintet_rivals::general::{Dashmap, Map, Papaya, PapayaBatch, RwLocked, SccIndex, SccMap};

/// The family. The workloads of texts hold boxed records, all others shared ones.
pub(crate) fn family() -> Family {
    Family {
        name: "item",
        about: "records with their own key: ItemSet against maps from the key to an Arc",
        workloads: &WORKLOADS,
        tables: at_work!("item", tables),
        sizes: MAP_SIZES,
    }
}

/// Records are allocated: who makes them, and when, matters here. The general workloads make them
/// before the clock runs.
const ALLOCATING: [Workload; 2] = [
    allocating("update-alloc", "full", "update with the new record allocated inside the clock"),
    allocating("insert-alloc", "life", "insert with the record allocated inside the clock"),
];

const fn allocating(name: &'static str, stage: &'static str, reason: &'static str) -> Workload {
    Workload { name, reason, stage, turn: name, measure: Measure::Rate }
}

/// The general workloads, and those that allocate.
const WORKLOADS: [Workload; general::WORKLOADS.len() + ALLOCATING.len()] = {
    let mut all = [ALLOCATING[0]; general::WORKLOADS.len() + ALLOCATING.len()];
    let mut place = 0;
    while place < all.len() {
        all[place] = match place < general::WORKLOADS.len() {
            true => general::WORKLOADS[place],
            false => ALLOCATING[place - general::WORKLOADS.len()],
        };
        place += 1;
    }
    all
};

fn tables() -> Vec<Table> {
    use Role::{Ours, Rival};
    vec![
        table::<Shared, Boxed>(Ours),
        table::<SharedPin, BoxedPin>(Ours),
        table::<SharedHandle, BoxedHandle>(Ours),
        Table { label: BATCH_LABEL, role: Ours, start: start_many, weigh: None },
        Table { label: in_place::LABEL, role: Ours, start: start_in_place, weigh: None },
        table::<Dashmap<Records>, Dashmap<Texts>>(Rival),
        table::<Papaya<Records>, Papaya<Texts>>(Rival),
        table::<PapayaBatch<Records>, PapayaBatch<Texts>>(Rival),
        table::<SccMap<Records>, SccMap<Texts>>(Rival),
        table::<SccIndex<Records>, SccIndex<Texts>>(Rival),
        table::<RwLocked<Records>, RwLocked<Texts>>(Rival),
    ]
}

/// Groups of keys are about lookups.
fn start_many(stage: &str, keys: u64) -> Option<Box<dyn Bench>> {
    if stage == "full" { Some(Box::new(Many::new(keys))) } else { None }
}

/// Items that hold what is overwritten behind a lock of their own.
fn start_in_place(stage: &str, keys: u64) -> Option<Box<dyn Bench>> {
    let joins = in_place::STAGES.contains(&stage);
    joins.then(|| start_both::<Records, Items<Records>, Items<Texts>>(stage, keys)).flatten()
}

fn table<M: Map<Records>, N: Map<Texts>>(role: Role) -> Table {
    Table { start: start_both::<Records, M, N>, ..Table::of::<Records, M>(role) }
}
