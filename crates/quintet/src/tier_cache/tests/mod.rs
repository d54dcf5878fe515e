//! The map on the heap of one process, with simulated peers.

mod basic;
#[cfg(all(not(quintet_private), target_os = "linux", not(miri)))]
mod corrupt;
mod crashes;
mod histories;
#[cfg(all(not(quintet_private), target_os = "linux", not(miri)))]
mod meetings;
mod phases;
mod placement;
#[cfg(all(not(quintet_private), target_os = "linux", not(miri)))]
mod processes;
mod situations;
mod stages;
mod threads;
mod tiers;
mod world;
