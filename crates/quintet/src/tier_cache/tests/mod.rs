//! The map on the heap of one process, with simulated peers.

mod basic;
mod crashes;
mod placement;
mod situations;
mod world;
