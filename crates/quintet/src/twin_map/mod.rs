//! Two copies: reads at the price of a plain map, one writer that publishes.

mod absorb;
mod core;
mod reader;
mod twin;
mod wait;
mod word;

#[cfg(all(test, quintet_loom))]
mod loom_tests;

pub use absorb::{Absorb, Differs};
pub use reader::{Guard, OwnedGuard, Reader, SharedGuard, SharedReader};
pub use twin::{Acquire, Stalled, Twin, TwinStats, Write};
pub use wait::{GuardError, WaitError};
