//! Other people's concurrent maps behind one trait per job, so that a race can run all of them
//! through the same code.
//!
//! | Job | Trait | Rivals |
//! |---|---|---|
//! | general map | [`general::Map`] | std, hashbrown, dashmap, papaya, scc, flurry, leapfrog |
//! | read-mostly map | [`read_mostly::Writer`] | flashmap, left-right, evmap, arc-swap, and every general map |
//! | cache | [`cache::Cache`] | moka, quick_cache |
//! | cache of bytes that processes share | [`stores::Store`] | lmdb (heed), redis, memcached; moka and quick_cache in one process |
//! | reclamation | [`reclaim::Domain`] | crossbeam-epoch, seize |
//!
//! Rules of fairness:
//!
//! - One file per rival, its newest stable version, in the mode its own documentation calls best.
//! - The same hasher, [`Hasher`], for every rival that accepts one. All do.
//! - Whatever a rival keeps per thread (a pin, a guard, a handle) lives in the access object that a
//!   thread takes once; [`general::Access::quiet`] is the point between batches where a guard held
//!   for a batch is renewed.
//! - Calls are monomorphized: no rival is behind `dyn` on the measured path.
//!
//! Rivals that lack a form:
//!
//! - leapfrog holds only numbers, so it has no [`Texts`] form. It hangs when keys come and
//!   go without end, so it takes no part in `churn`, and its answers to concurrent inserts and
//!   removes of one key do not add up, so where several threads do that it is struck.
//! - dashmap 7 exists as a release candidate only; the newest stable version runs.
//! - whirlwind is asynchronous only and needs a runtime to be driven; it is left out.
#![deny(unsafe_code)]

pub mod cache;
pub mod general;
mod kind;
pub mod read_mostly;
pub mod reclaim;
pub mod shared;
pub mod stores;

pub use kind::{Digests, Keys, Kind, TextRow, Texts, Triples, Words, mix};

/// The hasher of every contestant.
pub type Hasher = foldhash::fast::RandomState;

/// What a table is called in a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The crate's name, with a mode in parentheses where it has several.
    pub name: &'static str,
    /// The version that runs; `None` for what comes with the compiler.
    pub version: Option<&'static str>,
}

impl Label {
    /// A label with a version. A race prints it, with a mark and a space, in a column of 28.
    pub const fn new(name: &'static str, version: &'static str) -> Self {
        assert!(name.len() + 2 < 28, "the name has no room in the columns of a race");
        Self { name, version: Some(version) }
    }
}
