//! The families, in the order in which they race. A family joins by one file and one line here.

mod reclaim;
mod region;
mod rivals;
mod tier_map;
mod word;

use super::family::Family;

/// All families.
pub(crate) fn all() -> Vec<Family> {
    vec![region::family(), reclaim::family(), rivals::family(), word::family(), tier_map::family()]
}
