//! Two copies: reads at the price of a plain map, one writer that publishes.

mod absorb;
mod core;
mod entry;
mod front;
mod pages;
mod reader;
mod set;
mod table;
mod twin;
mod wait;
mod word;
mod writer;

#[cfg(all(test, quintet_loom))]
mod loom_tests;
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests;

pub use absorb::{Absorb, Differs};
pub use entry::{Entry, Occupied, Vacant};
pub use front::{BatchPanicked, Front};
pub use reader::{Guard, OwnedGuard, Reader, SharedGuard, SharedReader};
pub use set::{SetWriteGuard, SetWriter, TwinSet};
pub use table::{Iter, TwinMap};
pub use twin::{Acquire, Stalled, Twin, TwinStats, Write};
pub use wait::{GuardError, WaitError};
pub use writer::{AcquireMap, Builder, MapReader, WriteGuard, Writer};

use std::hash::Hash;

/// An empty map: its writer, and a first reader to clone.
pub fn new<K: Hash + Eq + Clone, V: Clone>() -> (Writer<K, V>, MapReader<K, V>) {
    Builder::new().build()
}

/// An empty map with room for so many entries in each copy.
pub fn with_capacity<K: Hash + Eq + Clone, V: Clone>(
    entries: usize,
) -> (Writer<K, V>, MapReader<K, V>) {
    Builder::new().capacity(entries).build()
}
