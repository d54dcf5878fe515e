//! Where does memory lie? Random reads by page size, with and without prefetch.

use crate::race::family::{Family, Measure, Role, Sizes, Table, Workload, at_work};
use crate::race::jobs::lines::{Huge, Plain, Small};

/// The family.
pub(crate) fn family() -> Family {
    Family {
        name: "region",
        about: "random reads of memory by page size",
        workloads: WORKLOADS,
        tables: at_work!("region", tables),
        // Lines of 64 bytes: 256 MiB and 1 GiB.
        sizes: Sizes { quick: &[1 << 22], full: &[1 << 22, 1 << 24], shares: &[], rare: &[] },
    }
}

fn tables() -> Vec<Table> {
    vec![
        Table::ground::<Huge>(Role::Ours),
        Table::ground::<Plain>(Role::Rival),
        Table::ground::<Small>(Role::Limit),
    ]
}

const WORKLOADS: &[Workload] = &[
    Workload {
        name: "read",
        reason: "random lines, one after the other known ahead: what lookups in a large table cost",
        stage: "lines",
        turn: "read",
        measure: Measure::Rate,
    },
    Workload {
        name: "read-prefetch",
        reason: "the same in batches asked for ahead: what get_many can reach",
        stage: "lines",
        turn: "read-prefetch",
        measure: Measure::Rate,
    },
    Workload {
        name: "read-chain",
        reason: "each address depends on the last line: what following pointers costs",
        stage: "lines",
        turn: "read-chain",
        measure: Measure::Rate,
    },
];
