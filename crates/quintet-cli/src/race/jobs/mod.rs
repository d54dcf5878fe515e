//! The work that tables do in a race, written once per job and compiled for each table.

pub(crate) mod general;
pub(crate) mod life;
pub(crate) mod lines;
mod mixed;
pub(crate) mod mostly;
pub(crate) mod pin_writes;
mod prefetch;
pub(crate) mod sections;
pub(crate) mod seen;
pub(crate) mod shared;
mod steady;
pub(crate) mod stores;
pub(crate) mod tiers;
mod window;
