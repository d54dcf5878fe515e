//! Maps of any keys and values: ours, and every general map, with words, 24-byte values, 16-byte
//! keys and texts.

use crate::race::family::{Bench, Family, MAP_SIZES, Role, Table, Workload, at_work};
use crate::race::jobs::general::{self, start_all, start_both, start_plain};
use crate::race::ours::in_place::{self, Counters, LockedTexts};
use crate::race::ours::map::{Inline, Usual, UsualBatch};
use quintet_rivals::general::{
    Dashmap, Flurry, Mutexed, Papaya, PapayaBatch, RwLocked, SccIndex, SccMap,
};
use quintet_rivals::{Digests, Texts, Triples, Words};

/// The family.
pub(crate) fn family() -> Family {
    Family {
        name: "map",
        about: "keys and values of any types: HashMap and CopyMap against every general map",
        workloads: &WORKLOADS,
        tables: at_work!("map", tables),
        sizes: MAP_SIZES,
    }
}

const WIDE: usize = general::WORKLOADS.len();
const DIGEST: usize = WIDE + general::WIDE.len();

/// The general workloads, those of 24-byte values, and those of 16-byte keys.
const WORKLOADS: [Workload; DIGEST + general::DIGEST.len()] = {
    let mut all = [general::WIDE[0]; DIGEST + general::DIGEST.len()];
    let mut place = 0;
    while place < all.len() {
        all[place] = if place < WIDE {
            general::WORKLOADS[place]
        } else if place < DIGEST {
            general::WIDE[place - WIDE]
        } else {
            general::DIGEST[place - DIGEST]
        };
        place += 1;
    }
    all
};

/// One contestant, by its name for every kind of entries.
macro_rules! table {
    ($role:expr, $map:ident) => {
        Table {
            start: start_all::<$map<Words>, $map<Triples>, $map<Digests>, $map<Texts>>,
            ..Table::words::<$map<Words>>($role)
        }
    };
}

/// One line per contestant. A map of plain data has no texts.
fn tables() -> Vec<Table> {
    use Role::{Ours, Rival};
    vec![
        table!(Ours, Usual),
        table!(Ours, UsualBatch),
        Table {
            start: start_plain::<Inline<Words>, Inline<Triples>, Inline<Digests>>,
            ..Table::words::<Inline<Words>>(Ours)
        },
        Table { label: in_place::LABEL, role: Ours, start: start_in_place, weigh: None },
        table!(Rival, Papaya),
        table!(Rival, PapayaBatch),
        table!(Rival, Dashmap),
        table!(Rival, SccMap),
        table!(Rival, SccIndex),
        table!(Rival, Flurry),
        table!(Rival, RwLocked),
        table!(Rival, Mutexed),
    ]
}

/// Words in atomics, and texts behind locks of their own.
fn start_in_place(stage: &str, keys: u64) -> Option<Box<dyn Bench>> {
    let joins = in_place::STAGES.contains(&stage);
    joins.then(|| start_both::<Words, Counters, LockedTexts>(stage, keys)).flatten()
}
