//! Read all the time, changed now and then: our two-copy map against others, and against an
//! unshared map.

use crate::race::family::{Family, MAP_SIZES, Role, Table, at_work};
use crate::race::jobs::mostly::WORKLOADS;
use crate::race::ours::twin::{Fences, Shared, Twin};
use quintet_rivals::Words;
use quintet_rivals::general::{Dashmap, Papaya, PapayaBatch, RwLocked, SccIndex};
use quintet_rivals::read_mostly::{ArcSwapped, Evmap, Flashmap, Frozen, General, LeftRight, Turns};

/// The family.
pub(crate) fn family() -> Family {
    Family {
        name: "twin",
        about: "maps that are read all the time and changed now and then",
        workloads: WORKLOADS,
        tables: at_work!("twin", tables),
        sizes: MAP_SIZES,
    }
}

fn tables() -> Vec<Table> {
    vec![
        Table::mostly::<Twin<Words>>(Role::Ours),
        Table::mostly::<Flashmap<Words>>(Role::Rival),
        Table::mostly::<LeftRight<Words>>(Role::Rival),
        Table::mostly::<Evmap<Words>>(Role::Rival),
        Table::mostly::<ArcSwapped<Words>>(Role::Rival),
        Table::mostly::<General<Dashmap<Words>>>(Role::Rival),
        Table::mostly::<General<Papaya<Words>>>(Role::Rival),
        Table::mostly::<General<PapayaBatch<Words>>>(Role::Rival),
        Table::mostly::<General<SccIndex<Words>>>(Role::Rival),
        Table::mostly::<General<RwLocked<Words>>>(Role::Rival),
        Table::mostly::<Frozen<Words>>(Role::Limit),
        Table::mostly::<Turns<Words>>(Role::Limit),
        Table::mostly::<Fences<Words>>(Role::Limit),
        Table::mostly::<Shared<Words>>(Role::Limit),
    ]
}
