//! The families, in the order in which they race. A family joins by one file and one line here.

pub(crate) mod cache;
mod item;
mod map;
mod reclaim;
mod region;
mod rivals;
mod seen;
pub(crate) mod tier_map;
mod tiers;
mod twin;
mod word;

use super::family::Family;

/// All families.
pub(crate) fn all() -> Vec<Family> {
    vec![
        region::family(),
        reclaim::family(),
        rivals::family(),
        word::family(),
        item::family(),
        map::family(),
        twin::family(),
        tier_map::family(),
        cache::family(),
        tiers::family(),
        seen::family(),
    ]
}
