//! Sequential models: what a table would do if only one thread used it.
//!
//! Everything starts from one cell: what one key holds ([`Cell`]), and what an [`Op`] does to it
//! ([`run`]). [`MapModel`] is a map of cells, and thereby also the counter map
//! ([`Op::FetchAdd`]) and the set ([`Op::SetInsert`]). [`SnapshotModel`] keeps every published
//! version of a map, [`LruModel`] a cache that forgets the least recently used key.

mod lru;
mod map;
mod op;
mod snapshot;

pub use lru::LruModel;
pub use map::{MapModel, Mismatch};
pub use op::{Cell, Kind, Op, Ret, accepts, is_pure, run};
pub use snapshot::SnapshotModel;
