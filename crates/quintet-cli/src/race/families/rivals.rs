//! Other crates' general maps against each other.

use crate::race::family::{Family, MAP_SIZES, Role, Table, at_work};
use crate::race::jobs::general::WORKLOADS;
use quintet_rivals::general::{
    Dashmap, Flurry, Leapfrog, Mutexed, Papaya, PapayaBatch, RwLocked, SccIndex, SccMap,
};
use quintet_rivals::{Texts, Words};

/// The family.
pub(crate) fn family() -> Family {
    Family {
        name: "rivals",
        about: "other crates' general maps against each other",
        workloads: WORKLOADS,
        tables: at_work!("rivals", tables),
        sizes: MAP_SIZES,
    }
}

/// Every general map that is not ours.
pub(crate) fn tables() -> Vec<Table> {
    use Role::Rival;
    vec![
        Table::words_and_texts::<Mutexed<Words>, Mutexed<Texts>>(Rival),
        Table::words_and_texts::<RwLocked<Words>, RwLocked<Texts>>(Rival),
        Table::words_and_texts::<Dashmap<Words>, Dashmap<Texts>>(Rival),
        Table::words_and_texts::<Papaya<Words>, Papaya<Texts>>(Rival),
        Table::words_and_texts::<PapayaBatch<Words>, PapayaBatch<Texts>>(Rival),
        Table::words_and_texts::<SccMap<Words>, SccMap<Texts>>(Rival),
        Table::words_and_texts::<SccIndex<Words>, SccIndex<Texts>>(Rival),
        Table::words_and_texts::<Flurry<Words>, Flurry<Texts>>(Rival),
        Table::words::<Leapfrog>(Rival),
    ]
}
