//! When may memory be freed? Our read sections against crossbeam-epoch's and seize's.

use crate::race::family::{Family, Measure, Role, Sizes, Table, Workload, at_work};
use crate::race::jobs::pin_writes;
use crate::race::jobs::sections::Bare;
use crate::race::ours::reclaim::{Fences, Pins, Quiet};
use quintet_rivals::reclaim::{Epoch, Seize};

/// The family.
pub(crate) fn family() -> Family {
    Family {
        name: "reclaim",
        about: "read sections and retired memory",
        workloads: WORKLOADS,
        tables: at_work!("reclaim", tables),
        // Keys are the items that are retired beside a sleeping reader.
        sizes: Sizes { quick: &[1_000_000], full: &[1_000_000], shares: &[], rare: &[] },
    }
}

const WORKLOADS: &[Workload] = &[
    Workload {
        name: "section",
        reason: "enter a read section, load a shared word, leave: every lookup of every table pays it",
        stage: "section",
        turn: "section",
        measure: Measure::Rate,
    },
    Workload {
        name: "retire",
        reason: "make an item of 64 bytes and retire an older one: what every overwrite costs",
        stage: "retire",
        turn: "retire",
        measure: Measure::Rate,
    },
    Workload {
        name: "stalled",
        reason: "retire 10^6 items while a reader sleeps in its section: bytes held back per item",
        stage: "retire",
        turn: "stalled",
        measure: Measure::Held,
    },
    Workload {
        name: "pin-writes",
        reason: "insert and remove by a pin for each: what a write costs without a handle",
        stage: "pin-writes",
        turn: "pin-writes",
        measure: Measure::Rate,
    },
    Workload {
        name: "seats",
        reason: "make a handle and drop it, alone: what a short visit of a thread costs",
        stage: "seats",
        turn: "seats",
        measure: Measure::Rate,
    },
    Workload {
        name: "seats-10",
        reason: "the same beside 10 others",
        stage: "seats",
        turn: "seats",
        measure: Measure::Rate,
    },
    Workload {
        name: "seats-10k",
        reason: "the same beside 10^4 others",
        stage: "seats",
        turn: "seats",
        measure: Measure::Rate,
    },
    Workload {
        name: "seats-left",
        reason: "the same after 10^4 others have left",
        stage: "seats",
        turn: "seats",
        measure: Measure::Rate,
    },
];

fn tables() -> Vec<Table> {
    let mut all = vec![
        Table::domain::<Pins>(Role::Ours),
        Table::domain::<Quiet>(Role::Ours),
        Table::domain::<Epoch>(Role::Rival),
        Table::domain::<Seize>(Role::Rival),
        Table::domain::<Fences>(Role::Limit),
        Bare::<true>::table(),
        Bare::<false>::table(),
    ];
    all.extend(pin_writes::tables());
    all
}
