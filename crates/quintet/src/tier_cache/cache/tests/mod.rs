//! The cache against its promises.

mod basic;
mod world;
