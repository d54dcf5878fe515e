//! Our own tables and rooms behind the rivals' traits.

#[cfg(target_os = "linux")]
pub(crate) mod cache;
pub(crate) mod in_place;
pub(crate) mod item;
pub(crate) mod map;
pub(crate) mod reclaim;
pub(crate) mod tier_map;
pub(crate) mod twin;
pub(crate) mod word;
