//! What makes the claims about concurrent tables checkable.
//!
//! The kit knows no table. A table joins by a small adapter ([`conformance::TableUnderTest`] for
//! words, [`conformance::GenericFamily`] for any types, [`snapshot::SnapshotUnderTest`] for
//! two-copy maps) and then runs through everything below.
//!
//! | Room | Question it answers |
//! |---|---|
//! | [`model`] | what would a table do if only one thread used it? |
//! | [`history`] | who called what, when, and what came back? |
//! | [`linear`] | can that history be explained by some order of single operations? |
//! | [`snapshot`] | did every read guard see exactly one published version, and never an older one? |
//! | [`stress`] | how do I run many threads from one seed, replay them, and notice a hang? |
//! | [`latency`] | how slow is the slowest operation, apart from what the machine did to it? |
//! | [`crash`] | what remains when a process is killed or stopped at any moment? |
//! | [`alloc`] | does anybody read or write freed memory, and how many bytes are live? |
//! | [`conformance`] | does a table behave in all the corners? One function per corner. |
//! | [`controls`] | would the checkers notice a bug? Tables that are wrong on purpose. |
//!
//! A room imports only rooms above it in this table, except that `conformance` records histories
//! with `stress`, and `controls` uses `conformance`.
//!
//! A failing test prints a seed. `QUINTET_SEED=<seed>` replays it: the operations of every thread
//! are the same again, the interleaving is the machine's.
#![deny(unsafe_code)]

pub mod alloc;
pub mod conformance;
pub mod controls;
pub mod crash;
pub mod history;
pub mod latency;
pub mod linear;
pub mod model;
pub mod snapshot;
pub mod stress;

pub use fastrand::Rng;
