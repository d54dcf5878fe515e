//! Five concurrent hash tables, each built for one job.

#[allow(dead_code)] // each family uses its share
mod hash;
#[allow(dead_code)]
mod migrate;
#[allow(dead_code)]
mod probe;
#[allow(dead_code)]
mod reclaim;
#[allow(dead_code)]
mod region;
#[allow(dead_code)]
mod roster;
#[allow(dead_code)]
mod sync;
#[allow(dead_code)] // the cache above uses its share
mod tier_cache;

pub mod word_map;

pub use region::{AllocError, Pages};
pub use word_map::WordMap;

/// Rooms below the tables, for the `quintet` command to measure. Not part of the API: may change at any time.
#[doc(hidden)]
pub mod internal {
    pub use crate::reclaim::{
        BATCH, BATCH_BYTES, Backlog, Domain, Freed, Handle, Offline, QuietHandle, Retired, Section,
        Visit,
    };
    pub use crate::region::heap::{Buffer, MAPPED_FROM, PIECE, Zeroed};
    pub use crate::sync::barrier::Barrier;

    /// The map under the cache that processes share.
    pub mod tier {
        pub use crate::tier_cache::*;
    }
}
