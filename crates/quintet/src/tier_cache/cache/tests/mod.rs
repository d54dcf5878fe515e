//! The cache against its promises.

mod basic;
mod churn;
mod crashes;
mod demand;
mod format;
mod histories;
mod hostile;
mod leases;
mod opening;
mod oracle;
mod processes;
mod semantics;
mod sinks;
mod spaces;
mod windows;
mod world;
