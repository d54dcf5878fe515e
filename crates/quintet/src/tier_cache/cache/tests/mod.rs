//! The cache against its promises.

mod basic;
mod crashes;
mod oracle;
mod semantics;
mod world;
