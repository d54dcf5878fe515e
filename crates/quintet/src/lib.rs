//! Five concurrent hash tables, each built for one job.

#[allow(dead_code)] // each family uses its share
mod sync;

/// Rooms below the tables, for the `quintet` command to measure. Not part of the API: may change at any time.
#[doc(hidden)]
pub mod internal {
    pub use crate::sync::barrier::Barrier;
}
