//! Platforms without shared segments: every constructor says so.

use super::{Geometry, Left, Map, OpenError};
use crate::region::shm::{Access, Place, SegmentError};

/// A map that processes share: never made here.
#[derive(Debug)]
pub enum SharedMap {}

const UNSUPPORTED: OpenError = OpenError::Segment(SegmentError::Unsupported);

impl SharedMap {
    /// Always [`SegmentError::Unsupported`].
    pub fn create(_: &Place, _: Geometry, _: Access) -> Result<Self, OpenError> {
        Err(UNSUPPORTED)
    }

    /// Always [`SegmentError::Unsupported`].
    pub fn create_sealed(_: Geometry) -> Result<Self, OpenError> {
        Err(UNSUPPORTED)
    }

    /// Always [`SegmentError::Unsupported`].
    pub fn attach(_: &Place, _: Option<Geometry>) -> Result<Self, OpenError> {
        Err(UNSUPPORTED)
    }

    /// Always [`SegmentError::Unsupported`].
    pub fn attach_read_only(_: &Place) -> Result<Self, OpenError> {
        Err(UNSUPPORTED)
    }

    /// Always [`SegmentError::Unsupported`].
    #[cfg(unix)]
    pub fn attach_sealed(_: std::os::fd::OwnedFd) -> Result<Self, OpenError> {
        Err(UNSUPPORTED)
    }

    /// Never called.
    #[cfg(unix)]
    pub fn inheritable(&self) -> Result<std::os::fd::OwnedFd, OpenError> {
        match *self {}
    }

    /// Always [`SegmentError::Unsupported`].
    pub fn remove(_: &Place) -> Result<(), OpenError> {
        Err(UNSUPPORTED)
    }

    /// Never called.
    pub fn set_sink(&mut self, _: impl Fn(Left) + Sync + Send + 'static) {
        match *self {}
    }

    /// Never called.
    pub fn map(&self) -> Map<'_> {
        match *self {}
    }
}
