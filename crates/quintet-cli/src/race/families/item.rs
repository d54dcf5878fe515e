//! Sets of records that carry their key: ours, and every general map with shared records in it.

use crate::race::family::{Family, MAP_SIZES, Role, Table};
use crate::race::jobs::general::{WORKLOADS, start_both};
use crate::race::ours::item::{Boxed, Records, Shared};
use quintet_rivals::Texts;
use quintet_rivals::general::{Dashmap, Map, Papaya, PapayaBatch, RwLocked, SccIndex, SccMap};

/// The family. The workloads of texts hold boxed records, all others shared ones.
pub(crate) fn family() -> Family {
    Family {
        name: "item",
        about: "records with their own key: ItemSet against maps from the key to an Arc",
        workloads: WORKLOADS,
        tables,
        sizes: MAP_SIZES,
    }
}

fn tables() -> Vec<Table> {
    use Role::{Ours, Rival};
    vec![
        table::<Shared<false>, Boxed<false>>(Ours),
        table::<Shared<true>, Boxed<true>>(Ours),
        table::<Dashmap<Records>, Dashmap<Texts>>(Rival),
        table::<Papaya<Records>, Papaya<Texts>>(Rival),
        table::<PapayaBatch<Records>, PapayaBatch<Texts>>(Rival),
        table::<SccMap<Records>, SccMap<Texts>>(Rival),
        table::<SccIndex<Records>, SccIndex<Texts>>(Rival),
        table::<RwLocked<Records>, RwLocked<Texts>>(Rival),
    ]
}

fn table<M: Map<Records>, N: Map<Texts>>(role: Role) -> Table {
    Table { start: start_both::<Records, M, N>, ..Table::of::<Records, M>(role) }
}
