//! Our own tables and rooms behind the rivals' traits.

pub(crate) mod reclaim;
pub(crate) mod word;
