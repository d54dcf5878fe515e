//! Our own tables and rooms behind the rivals' traits.

pub(crate) mod reclaim;
pub(crate) mod tier_map;
pub(crate) mod word;
