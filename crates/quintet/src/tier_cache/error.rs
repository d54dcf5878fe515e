//! What can go wrong, and what to do.

use super::store::StoreError;
use crate::region::shm::SegmentError;
use std::fmt;

/// Why an operation of the map had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MapError {
    /// The key is 0 or `u32::MAX`.
    InvalidKey,
    /// The bucket is beyond the map.
    InvalidBucket {
        /// The index that was asked for.
        bucket: u32,
        /// How many the map has.
        buckets: u32,
    },
    /// The word is an input hash, not a token.
    NotAugmented,
    /// The key is present.
    Exists,
    /// The key is absent.
    NotFound,
    /// Every record is in use.
    Full,
    /// A living peer holds the bucket; the wait ended.
    Busy,
    /// The memory holds what no operation writes.
    Corrupt(&'static str),
    /// Every seat is taken by a living thread.
    NoSeat,
    /// The handle was made before a fork, by the parent.
    Forked,
    /// The geometry is beyond what the words can name.
    Geometry(&'static str),
}

impl fmt::Display for MapError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidKey => out.write_str("invalid key: remap the hashes 0 and 0xffffffff"),
            Self::InvalidBucket { bucket, buckets } => {
                write!(out, "invalid bucket {bucket}: take the hash modulo {buckets}")
            }
            Self::NotAugmented => {
                out.write_str("not a token: use what add returned, or look in both slices")
            }
            Self::Exists => out.write_str("key exists: update it instead"),
            Self::NotFound => out.write_str("key not found"),
            Self::Full => out.write_str("no free record: remove entries or create a larger map"),
            Self::Busy => out.write_str(
                "busy: a peer that is alive holds the bucket; continue or kill it, or wait longer",
            ),
            Self::Corrupt(what) => {
                write!(out, "corrupt memory ({what}): remove the segment and create it anew")
            }
            Self::NoSeat => out.write_str("no free seat: drop a handle or create with more seats"),
            Self::Forked => {
                out.write_str("handle of the parent process: take a new one after fork")
            }
            Self::Geometry(what) => write!(out, "geometry out of range: {what}"),
        }
    }
}

impl std::error::Error for MapError {}

/// Why there is no map.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The segment could not be made or entered.
    Segment(SegmentError),
    /// The geometry, the seats or the content are not what a map needs.
    Map(MapError),
    /// The content of a segment from another boot does not hold together.
    Damaged(String),
    /// The store of a new cache could not be opened.
    Store(StoreError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Segment(error) => error.fmt(out),
            Self::Map(error) => error.fmt(out),
            Self::Store(error) => error.fmt(out),
            Self::Damaged(what) => {
                write!(
                    out,
                    "the segment did not survive the restart ({what}): remove and create it"
                )
            }
        }
    }
}

impl std::error::Error for OpenError {}

impl From<SegmentError> for OpenError {
    fn from(error: SegmentError) -> Self {
        Self::Segment(error)
    }
}

impl From<MapError> for OpenError {
    fn from(error: MapError) -> Self {
        Self::Map(error)
    }
}
