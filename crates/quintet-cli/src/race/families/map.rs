//! Maps of any keys and values: ours, and every general map, with words, 24-byte values and texts.

use crate::race::family::{Family, MAP_SIZES, Role, Table, Workload};
use crate::race::jobs::general::{self, start_three};
use crate::race::ours::map::{Usual, UsualBatch};
use quintet_rivals::general::{
    Dashmap, Flurry, Map, Mutexed, Papaya, PapayaBatch, RwLocked, SccIndex, SccMap,
};
use quintet_rivals::{Texts, Triples, Words};

/// The family.
pub(crate) fn family() -> Family {
    Family {
        name: "map",
        about: "keys and values of any types: HashMap against every general map",
        workloads: &WORKLOADS,
        tables,
        sizes: MAP_SIZES,
    }
}

/// The general workloads, and those of 24-byte values.
const WORKLOADS: [Workload; general::WORKLOADS.len() + general::WIDE.len()] = {
    let mut all = [general::WIDE[0]; general::WORKLOADS.len() + general::WIDE.len()];
    let mut place = 0;
    while place < all.len() {
        all[place] = match place < general::WORKLOADS.len() {
            true => general::WORKLOADS[place],
            false => general::WIDE[place - general::WORKLOADS.len()],
        };
        place += 1;
    }
    all
};

/// One line per contestant. A map of words and 24-byte values alone, without texts, takes part by a `start` of its own.
fn tables() -> Vec<Table> {
    use Role::{Ours, Rival};
    vec![
        table::<Usual<Words>, Usual<Triples>, Usual<Texts>>(Ours),
        table::<UsualBatch<Words>, UsualBatch<Triples>, UsualBatch<Texts>>(Ours),
        table::<Papaya<Words>, Papaya<Triples>, Papaya<Texts>>(Rival),
        table::<PapayaBatch<Words>, PapayaBatch<Triples>, PapayaBatch<Texts>>(Rival),
        table::<Dashmap<Words>, Dashmap<Triples>, Dashmap<Texts>>(Rival),
        table::<SccMap<Words>, SccMap<Triples>, SccMap<Texts>>(Rival),
        table::<SccIndex<Words>, SccIndex<Triples>, SccIndex<Texts>>(Rival),
        table::<Flurry<Words>, Flurry<Triples>, Flurry<Texts>>(Rival),
        table::<RwLocked<Words>, RwLocked<Triples>, RwLocked<Texts>>(Rival),
        table::<Mutexed<Words>, Mutexed<Triples>, Mutexed<Texts>>(Rival),
    ]
}

fn table<M: Map<Words>, W: Map<Triples>, N: Map<Texts>>(role: Role) -> Table {
    Table { start: start_three::<M, W, N>, ..Table::words::<M>(role) }
}
