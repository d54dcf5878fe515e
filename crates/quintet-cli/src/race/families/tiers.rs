//! A cache of three tiers against the same cache with one: what tiers cost, and whom.
//!
//! Both have the same capacity and the same entries. In the cache with three tiers each tier holds
//! a third of them; a workload of a tier asks both caches for the keys of that third. `miss` asks
//! for keys that are in none. `set-new` inserts new keys into a full cache: for each of them one
//! entry leaves, and where there are three tiers, two move down.

use crate::race::family::{Family, Measure, Role, Sizes, Table, Workload, at_work};
use crate::race::jobs::tiers::start;
use quintet_rivals::Label;

/// The family.
pub(crate) fn family() -> Family {
    Family {
        name: "tiers",
        about: "a cache of three tiers against the same cache with one",
        workloads: WORKLOADS,
        tables: at_work!("tiers", tables),
        sizes: Sizes { quick: &[1_000_000], full: &[10_000, 1_000_000], shares: &[], rare: &[] },
    }
}

const fn workload(name: &'static str, reason: &'static str, stage: &'static str) -> Workload {
    Workload { name, reason, stage, turn: name, measure: Measure::Rate }
}

const WORKLOADS: &[Workload] = &[
    Workload {
        ..workload(
            "get-tier0",
            "64 bytes under keys of 16 that lie in the youngest tier",
            "lookups",
        )
    },
    workload("get-tier1", "the same in the second", "lookups"),
    workload("get-tier2", "the same in the oldest", "lookups"),
    workload("miss", "keys that lie in none", "lookups"),
    workload("set-new", "new keys in a full cache", "full"),
];

fn tables() -> Vec<Table> {
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    let table =
        |name, role, start| Table { label: Label::new(name, VERSION), role, start, weigh: None };
    vec![
        table("quintet (three tiers)", Role::Ours, start::<3>),
        table("quintet (one tier)", Role::Rival, start::<1>),
    ]
}
