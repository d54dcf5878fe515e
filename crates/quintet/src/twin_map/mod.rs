//! `TwinMap`: a map in two copies. Reads cost what a read of a plain `hashbrown` map costs; one writer publishes.
//!
//! # When to use
//!
//! A table that is read all the time and changed now and then: configuration, routing, feature flags, symbol tables. Each
//! thread has its own [`Reader`]; one [`Writer`] collects changes and publishes them as a version.
//!
//! Not for tables that are written as often as they are read (`HashMap`, `WordMap`), and not where two copies of everything are too
//! much memory.
//!
//! # Example
//!
//! ```
//! let (mut writer, reader) = quintet::twin_map::new();
//!
//! let mut write = writer.guard();
//! write.insert("threads", 8);
//! write.insert("depth", 3);
//! assert_eq!(write.get("depth"), Some(&3)); // the writer reads its own writes
//! assert_eq!(reader.guard().len(), 0); // readers do not, until
//! write.publish();
//!
//! std::thread::scope(|scope| {
//!     for _ in 0..4 {
//!         let reader = reader.clone(); // a handle per thread
//!         scope.spawn(move || {
//!             let version = reader.guard();
//!             assert_eq!(version.get("threads"), Some(&8));
//!             assert_eq!(version.get("depth"), Some(&3));
//!         });
//!     }
//! });
//! ```
//!
//! A guard borrows its handle. What must live longer, cross threads or an `.await`, takes an [`OwnedGuard`]:
//!
//! ```compile_fail
//! # let (_writer, reader) = quintet::twin_map::new::<u32, u32>();
//! let guard = reader.guard();
//! std::thread::spawn(move || guard.len()); // error: a guard stays on its thread
//! ```
//!
//! ```
//! # let (_writer, reader) = quintet::twin_map::new::<u32, u32>();
//! let guard = reader.owned_guard();
//! std::thread::spawn(move || guard.len()).join().unwrap();
//! ```
//!
//! # Consistency
//!
//! A guard shows one version, whole and unchanged. A publish is one moment for all readers: whoever takes a guard after
//! [`publish`](WriteGuard::publish) returned sees that version or a later one, and once any reader has seen a version, no later guard of any reader
//! shows an older one. Two guards held at once may show two versions; [`version`](Guard::version) tells which. A snapshot
//! checker runs over recorded histories of every form.
//!
//! # Progress
//!
//! Taking and dropping a guard never waits: plain stores to the handle's own line and two loads of a shared one, no locked instruction
//! (where the system has no process-wide barrier: a fence each). A guard is tried again if a publish falls into its taking. The reader
//! that leaves last, when the writer sleeps, also wakes it.
//!
//! The writer may wait: [`guard`](Writer::guard) needs the copy of the version before the current one, and waits until readers of
//! that version have left. A reader asleep in its guard so blocks the write after next, not the next one. [`try_guard`](Writer::try_guard),
//! [`guard_timeout`](Writer::guard_timeout) and [`guard_async`](Writer::guard_async) do not hang; a thread that would wait for its own guard
//! is told so; [`Stalled::Copy`] leaves the copy to its readers. Dropping the writer never waits.
//!
//! # Growth
//!
//! The writer grows a copy in one go, out of the readers' sight: no reader ever pays for it.
//!
//! # Memory
//!
//! Two copies of the table, keys and values included: each copy owns its own (`Clone`); keep large values in an `Arc`, or
//! share keys and values between the copies if they are [`Inert`] ([`Builder::build_inert`]). Changes wait in
//! a log until they have been applied to both copies. Copies of 2 MiB and more are mapped, in huge pages by default
//! ([`Builder::pages`]). What was replaced or removed in a batch is freed when the next one begins.
//!
//! # Panics
//!
//! A panic in `Hash`, `Eq`, `Clone`, `Drop` or a closure never leaves the copies different. An operation that panicked has not happened (`extend` is as many
//! operations as it has entries, and what an operation has handed out is no longer its own);
//! a write guard dropped by a panic discards its batch; a forgotten one leaves the batch to the next. The second application of each
//! change is checked: if it panics or ends differently, that copy is rebuilt from the other before anybody sees it. So any hasher
//! and any key will do. [`Writer::guard`] panics if its thread holds an old read guard itself.
//!
//! The algorithm is told step by step in [`algorithm`]; moving from other crates in [`migration`].

mod absorb;
mod ahead;
mod arrivals;
mod core;
mod entry;
mod front;
mod inert;
mod pages;
mod reader;
#[cfg(feature = "serde")]
mod serde;
mod set;
mod table;
mod twin;
mod user_code;
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
pub use inert::{Evicted, Inert, InertMap, InertWriteGuard, InertWriter};
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
///
/// # Panics
/// If there is no memory for it.
pub fn with_capacity<K: Hash + Eq + Clone, V: Clone>(
    entries: usize,
) -> (Writer<K, V>, MapReader<K, V>) {
    Builder::new().capacity(entries).build()
}

#[doc = include_str!("../../docs/twin_map.md")]
pub mod algorithm {}

#[doc = include_str!("../../docs/twin_map_migration.md")]
pub mod migration {}
