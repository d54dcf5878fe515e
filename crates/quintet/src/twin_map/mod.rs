//! Maps and sets in two copies: reads cost what a read of a plain `hashbrown` map costs; writers
//! publish.
//!
//! [`TwinMap`] and [`TwinSet`] are the tables themselves: many readers, and writers that take
//! turns. [`TwinMap::split`] gives one [`Writer`] and [`Reader`]s instead; [`InertMap`] is a map
//! whose copies share what they hold; [`Twin`] is the engine, for structures of your own.
//!
//! | Guard | From | Lives | Costs |
//! |---|---|---|---|
//! | [`ReadGuard`], [`Ref`] | the table, a [`Reader`], a [`SharedReader`] | on its thread | plain stores to a line of one's own |
//! | [`OwnedGuard`] | `owned_pin` | on any thread, without a lifetime, across `.await` | two locked instructions on a shared line; while it lives, perhaps a copy |
//!
//! ```compile_fail
//! # let map = quintet::TwinMap::<u32, u32>::new();
//! let guard = map.pin();
//! std::thread::scope(|scope| scope.spawn(|| guard.len()).join()).unwrap(); // error: a guard stays on its thread
//! ```
//!
//! ```
//! # let map = quintet::TwinMap::<u32, u32>::new();
//! let guard = map.owned_pin();
//! std::thread::spawn(move || guard.len()).join().unwrap();
//! ```
//!
//! Taking and dropping a guard never waits: plain stores to the handle's own line and two loads of
//! a shared one, no locked instruction (where the system has no process-wide barrier: a fence
//! each). A guard is tried again if a publish falls into its taking. The reader that leaves last,
//! when a writer sleeps, also wakes it.
//!
//! The second application of each change is checked: if it panics or ends differently, that copy is
//! rebuilt from the other before anybody sees it. So any hasher and any key will do.
//!
//! The algorithm is told step by step in [`algorithm`]; moving from other crates in [`migration`].

mod absorb;
mod ahead;
mod alias;
mod arrivals;
mod arrive;
mod builder;
mod catch_up;
mod core;
mod desk;
mod drain;
mod entry;
mod fallen;
mod forms;
mod gate;
mod home;
mod inert;
mod iter;
mod local;
mod map;
mod map_traits;
mod map_write;
mod pace;
mod pages;
mod reader;
mod refs;
mod retain;
#[cfg(feature = "serde")]
mod serde;
mod set;
mod set_writer;
mod sleepers;
mod told;
mod twin;
mod user_code;
mod version;
mod wait;
mod waits;
mod watch;
mod word;
mod write;
mod writer;

#[cfg(all(test, quintet_loom))]
mod loom_desk_tests;
#[cfg(all(test, quintet_loom))]
mod loom_tests;
#[cfg(all(test, quintet_shuttle, not(quintet_loom)))]
mod shuttle_tests;
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests;

pub use absorb::{Absorb, Differs};
pub use alias::Inert;
pub use arrive::Arrive;
pub use builder::{TwinMapBuilder, TwinSetBuilder};
pub use entry::{Entry, Occupied, Vacant};
pub use inert::{Evicted, InertMap, InertWriteGuard, InertWriter};
pub use iter::{IntoIter, Iter};
pub use map::TwinMap;
pub use reader::{OwnedGuard, ReadGuard, Reader, SharedReader};
pub use refs::{Ref, Refs};
pub use set::TwinSet;
pub use set_writer::{SetIntoIter, SetIter, SetVersion, SetWriteGuard, SetWriter};
pub use twin::{Acquire, Stalled, Twin, TwinStats};
pub use version::Version;
pub use wait::{GuardError, WaitError};
pub use write::Write;
pub use writer::{AcquireMap, MapReader, WriteGuard, Writer};

#[doc = include_str!("../../docs/twin_map.md")]
pub mod algorithm {}

#[doc = include_str!("../../docs/twin_map_migration.md")]
pub mod migration {}
