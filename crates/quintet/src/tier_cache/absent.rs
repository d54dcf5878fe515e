//! Platforms without shared segments: every constructor says so.

use super::{Geometry, Map};
use crate::region::shm::{Access, Place, SegmentError};

/// A map that processes share: never made here.
#[derive(Debug)]
pub enum SharedMap {}

impl SharedMap {
    /// Always [`SegmentError::Unsupported`].
    pub fn create(_: &Place, _: Geometry, _: Access) -> Result<Self, SegmentError> {
        Err(SegmentError::Unsupported)
    }

    /// Always [`SegmentError::Unsupported`].
    pub fn attach(_: &Place, _: Option<Geometry>) -> Result<Self, SegmentError> {
        Err(SegmentError::Unsupported)
    }

    /// Never called.
    pub fn map(&self) -> Map<'_> {
        match *self {}
    }
}
