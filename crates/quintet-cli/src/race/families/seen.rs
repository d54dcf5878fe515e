//! Sets that only grow: ours, and every general map with records for keys and nothing for values.

use crate::race::family::{Family, Measure, Role, Sizes, Table, Workload, at_work};
use crate::race::jobs::seen::{Blob, Direct, Look, Ours, OursBatch, OursTogether};
use quintet_rivals::general::{Dashmap, Mutexed, Papaya, PapayaBatch, SccIndex, SccMap};

/// The family.
pub(crate) fn family() -> Family {
    Family {
        name: "seen",
        about: "sets that only grow: SeenSet against maps used as sets",
        workloads: WORKLOADS,
        tables: at_work!("seen", tables),
        // Headlines are told at the last size: a round fills a set from empty.
        sizes: Sizes {
            quick: &[10_000, 1_000_000, 100_000],
            full: &[1_000_000, 10_000_000],
            shares: &[],
            rare: &[],
        },
    }
}

const fn rate(name: &'static str, stage: &'static str, reason: &'static str) -> Workload {
    Workload { name, reason, stage, turn: name, measure: Measure::Rate }
}

#[rustfmt::skip]
const WORKLOADS: &[Workload] = &[
    rate("grow-16b", "seen-16", "new records of 16 bytes into a set that starts empty: the cost of remembering a state"),
    rate("dup-16b", "seen-16", "one new record to three known ones: what a search asks of its set"),
    rate("grow-16b-kept", "seen-16", "grow-16b without even ground: the allocator keeps what earlier sets left, no memory is touched before"),
    rate("grow-64b", "seen-64", "the same with records of 64 bytes: growth that moves records shows"),
    rate("dup-64b", "seen-64", "one new record of 64 bytes to three known ones"),
    Workload { measure: Measure::Bytes, ..rate("memory-16b", "memory", "resident bytes per record of 16 bytes after growing from empty, in a process of its own") },
];

fn tables() -> Vec<Table> {
    use Role::{Ours as Own, Rival};
    type Small = Blob<16>;
    type Large = Blob<64>;
    vec![
        Table::seen::<Ours<16>, Ours<64>>(Own),
        Table::seen::<OursBatch<16>, OursBatch<64>>(Own),
        Table::seen::<OursTogether<16>, OursTogether<64>>(Own),
        Table::seen::<Direct<Mutexed<Small>, 16>, Direct<Mutexed<Large>, 64>>(Rival),
        Table::seen::<Direct<Dashmap<Small>, 16>, Direct<Dashmap<Large>, 64>>(Rival),
        Table::seen::<Look<Papaya<Small>, 16>, Look<Papaya<Large>, 64>>(Rival),
        Table::seen::<Look<PapayaBatch<Small>, 16>, Look<PapayaBatch<Large>, 64>>(Rival),
        Table::seen::<Look<SccMap<Small>, 16>, Look<SccMap<Large>, 64>>(Rival),
        Table::seen::<Look<SccIndex<Small>, 16>, Look<SccIndex<Large>, 64>>(Rival),
    ]
}
