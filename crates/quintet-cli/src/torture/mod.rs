//! `quintet torture`.

use crate::args::TortureArgs;
use crate::fail::{Exit, Fail};

/// Runs the torture.
pub(crate) fn run(_args: &TortureArgs) -> Result<Exit, Fail> {
    Ok(Exit::Fine)
}
