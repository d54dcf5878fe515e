//! The cache against its promises.

mod basic;
mod oracle;
mod semantics;
mod world;
