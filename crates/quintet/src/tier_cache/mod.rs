//! The hopscotch map under the cache that processes share.
//!
#![doc = include_str!("../../docs/tier_cache.md")]
//!
//! # Rooms
//!
//! | Room | Holds |
//! |---|---|
//! | `word` | packed words: hashes, tokens, cells, control words, records |
//! | `memory` | the four arrays, wherever they lie; seats and their intents |
//! | `step` | the doors to shared memory, each store a crash point |
//! | `plan`, `planner` | what an operation will store, in which order |
//! | `operate` | the frame of a writing operation, store by store |
//! | `sum` | what tells a damaged record |
//! | `get` | reading: certified hits, validated misses |
//! | `recover` | what a survivor does for a dead peer |
//! | `check` | the nine invariants |
//! | `map`, `stages` | the map, its handles, the three stages of an add; the stages apart |
//! | `shared` | the map in a segment that processes share |
//! | `cache` | the cache on top of it |
//! | `store` | where entries go that leave it |
//! | `situations` | the 24 situations two operations can meet in |

pub mod cache;
mod check;
mod error;
mod get;
pub mod map;
mod memory;
mod operate;
mod plan;
mod planner;
mod recover;
mod shared;
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod situations;
mod stages;
mod step;
pub mod store;
mod sum;
mod wait;
mod word;

#[cfg(all(test, quintet_loom))]
mod loom_tests;
#[cfg(all(test, quintet_shuttle, not(quintet_loom)))]
mod shuttle_tests;
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests;

#[doc = include_str!("../../docs/tier_cache_seed.md")]
pub mod seed {}

#[doc(hidden)]
pub use crate::region::shm::{Access, Place, SegmentError};
#[doc(hidden)]
pub use check::{CellState, Report};
#[doc(hidden)]
pub use error::{MapError, OpenError};
#[doc(hidden)]
pub use map::{
    Committed, DEFAULT_TIMEOUT, Handle, Left, Map, Peers, Prepared, Reader, Sink, Stages,
};
#[doc(hidden)]
pub use memory::{Geometry, Heap, MAX_TIERS, Memory, RECORD_WORDS, SEAT_WORDS, WINDOW};
#[doc(hidden)]
pub use shared::SharedMap;
#[doc(hidden)]
pub use word::{
    Cbits, Cell, Control, InputHash, Link, MAX_BUCKETS, Owner, Phase, Probe, RecordState,
    RecordWord, Token,
};
