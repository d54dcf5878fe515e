//! Maps of words: ours, and every general map with words in it.

use crate::race::family::{
    Bench, Family, MAP_SIZES, Measure, Role, Table, Workload, at_work, same,
};
use crate::race::jobs::general;
use crate::race::ours::word::{Batch, Many, ManyNew, Small, Usual};
use quintet_rivals::Words;
use quintet_rivals::general::{
    Dashmap, Flurry, Leapfrog, Papaya, PapayaBatch, RwLocked, SccIndex, SccMap,
};

/// The family.
pub(crate) fn family() -> Family {
    Family {
        name: "word",
        about: "words to words: WordMap against every map that can hold them",
        workloads: &WORKLOADS,
        tables: at_work!("word", tables),
        sizes: MAP_SIZES,
    }
}

/// The general workloads without those of texts, and two of our own.
const WORKLOADS: [Workload; 19] = [
    named("hit"),
    Workload {
        name: "get-many",
        reason: "64 keys at a time: what fetching ahead is worth, to be held against our own hit",
        stage: "many",
        turn: "get-many",
        measure: Measure::Rate,
    },
    named("hit-zipf"),
    named("miss"),
    named("update"),
    named("update-zipf"),
    named("mix90"),
    named("mix90-zipf"),
    named("mix50"),
    named("churn"),
    named("insert"),
    named("remove"),
    named("insert-kept"),
    Workload {
        name: "insert-many",
        reason: "by batches: what fetching ahead is worth, to be held against our own insert",
        stage: "many-new",
        turn: "insert-many",
        measure: Measure::Rate,
    },
    named("grow"),
    named("grow-kept"),
    named("grow-latency"),
    named("memory"),
    named("memory-after-remove"),
];

/// The general workload of this name.
const fn named(name: &str) -> Workload {
    let mut index = 0;
    loop {
        let one = &general::WORKLOADS[index];
        if same(one.name, name) {
            return *one;
        }
        index += 1;
    }
}

fn tables() -> Vec<Table> {
    use Role::{Ours, Rival};
    vec![
        Table { start: start_usual, ..Table::words::<Usual>(Ours) },
        Table { start: start_small, ..Table::words::<Small>(Ours) },
        Table::words::<Batch>(Ours),
        Table::words::<Leapfrog>(Rival),
        Table::words::<Dashmap<Words>>(Rival),
        Table::words::<Papaya<Words>>(Rival),
        Table::words::<PapayaBatch<Words>>(Rival),
        Table::words::<SccMap<Words>>(Rival),
        Table::words::<SccIndex<Words>>(Rival),
        Table::words::<RwLocked<Words>>(Rival),
        Table::words::<Flurry<Words>>(Rival),
    ]
}

fn start_usual(stage: &str, keys: u64) -> Option<Box<dyn Bench>> {
    match stage {
        "many" => Some(Box::new(Many::new(keys))),
        "many-new" => Some(Box::new(ManyNew)),
        _ => general::start_words::<Usual>(stage, keys),
    }
}

/// Small pages are about growth.
fn start_small(stage: &str, keys: u64) -> Option<Box<dyn Bench>> {
    if stage == "grow" { general::start_words::<Small>(stage, keys) } else { None }
}
