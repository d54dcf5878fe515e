//! Platforms without shared segments: every constructor says so.

pub use crate::region::shm::{Access, Place, SegmentError};
pub use crate::tier_cache::OpenError;

const UNSUPPORTED: OpenError = OpenError::Segment(SegmentError::Unsupported);

/// A cache that processes share: never made here.
#[derive(Debug)]
pub enum TierCache {}

/// Sizes and rights of a cache that cannot be made here.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct CacheBuilder(());

impl TierCache {
    /// Sizes and rights of a new cache.
    pub fn builder() -> CacheBuilder {
        CacheBuilder::default()
    }

    /// Always [`SegmentError::Unsupported`].
    pub fn attach(_: &Place) -> Result<Self, OpenError> {
        Err(UNSUPPORTED)
    }

    /// Always [`SegmentError::Unsupported`].
    pub fn attach_read_only(_: &Place) -> Result<Self, OpenError> {
        Err(UNSUPPORTED)
    }

    /// Always [`SegmentError::Unsupported`].
    pub fn unlink(_: &Place) -> Result<(), OpenError> {
        Err(UNSUPPORTED)
    }
}

impl CacheBuilder {
    /// Bytes of the segment.
    pub fn capacity(self, _: usize) -> Self {
        self
    }

    /// Always [`SegmentError::Unsupported`].
    pub fn create(&self, _: &Place) -> Result<TierCache, OpenError> {
        Err(UNSUPPORTED)
    }

    /// Always [`SegmentError::Unsupported`].
    pub fn create_sealed(&self) -> Result<TierCache, OpenError> {
        Err(UNSUPPORTED)
    }

    /// Always [`SegmentError::Unsupported`].
    pub fn create_or_attach(&self, _: &Place) -> Result<TierCache, OpenError> {
        Err(UNSUPPORTED)
    }
}
