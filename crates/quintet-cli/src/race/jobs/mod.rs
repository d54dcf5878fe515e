//! The work that tables do in a race, written once per job and compiled for each table.

pub(crate) mod general;
mod life;
mod mixed;
mod steady;
mod window;
