//! Platforms without shared segments.

/// Never made here.
#[derive(Debug)]
pub(crate) enum Segment {}
