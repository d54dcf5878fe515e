//! Platforms without shared segments: every constructor says so.

use super::{Access, Place, SegmentError, Shape};

/// Never made here.
#[derive(Debug)]
pub(crate) enum Segment {}

impl Segment {
    pub(crate) fn create(_: &Place, _: &Shape<'_>, _: Access) -> Result<Self, SegmentError> {
        Err(SegmentError::Unsupported)
    }
}
