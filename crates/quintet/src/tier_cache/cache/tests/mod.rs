//! The cache against its promises.

mod basic;
mod churn;
mod crashes;
#[cfg(feature = "lmdb")]
mod crowds;
mod demand;
mod flights;
mod format;
mod histories;
mod hostile;
mod kinds;
mod leases;
mod members;
mod opening;
mod oracle;
mod outside;
mod policies;
mod processes;
mod quota_attacks;
mod quotas;
mod semantics;
mod sinks;
mod spaces;
#[cfg(feature = "lmdb")]
mod stored;
mod stored_rules;
mod sums;
mod tiers;
mod windows;
mod world;
