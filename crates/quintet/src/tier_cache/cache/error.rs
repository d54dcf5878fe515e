//! What can go wrong, and what to do.

use crate::tier_cache::MapError;
use std::fmt;

/// Why an operation of a cache had no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheError {
    /// The key is longer than [`MAX_KEY`](super::MAX_KEY) or than an entry may be.
    KeyTooLarge {
        /// The longest key.
        max: usize,
    },
    /// The value is longer than the cache's maximum.
    ValueTooLarge {
        /// The longest value.
        max: usize,
    },
    /// Nothing is free, and nothing may be evicted.
    Full,
    /// A living peer holds what the operation needs; the wait ended.
    Busy,
    /// The present value is not a decimal number of 64 bits, or would leave their range.
    NotANumber,
    /// The handle may only read.
    ReadOnly,
    /// Every seat is taken by a living thread.
    NoSeat,
    /// This process cannot take part in the cache, for this reason. Readers need not take part.
    Unjoined(String),
    /// The handle was made before a fork, by the parent.
    Forked,
    /// Every namespace is in use.
    TooManyNamespaces,
    /// The namespace that the handle works in has been removed.
    NoNamespace,
    /// The cache was made without leases, or the handle holds as many as it can.
    NoLeases,
    /// The cache was made without quotas.
    NoQuotas,
    /// The calling thread computes the value itself, further out: it would wait for ever.
    Nested,
    /// The sink refused an entry, which therefore stays.
    Sink(String),
    /// There is no room, and this process could not open the store that entries would go to, for
    /// this reason.
    NoStore(String),
    /// There is no room, and the store takes no entries: they stay.
    Store(String),
    /// A value could not be brought into or out of its format.
    Format(String),
    /// The memory holds what no operation writes.
    Corrupt(&'static str),
}

impl CacheError {
    /// There is no room for what was to be stored.
    pub(super) fn is_no_room(&self) -> bool {
        use CacheError::{Full, KeyTooLarge, NoStore, Sink, Store};
        matches!(self, Full | KeyTooLarge { .. } | Sink(_) | NoStore(_) | Store(_))
    }

    /// A number for each kind of error, for other languages. It never changes, and none is used
    /// again.
    pub fn code(&self) -> u16 {
        match self {
            Self::KeyTooLarge { .. } => 1,
            Self::ValueTooLarge { .. } => 2,
            Self::Full => 3,
            Self::Busy => 4,
            Self::NotANumber => 5,
            Self::ReadOnly => 6,
            Self::NoSeat => 7,
            Self::Forked => 8,
            Self::TooManyNamespaces => 9,
            Self::NoNamespace => 10,
            Self::NoLeases => 11,
            Self::Nested => 12,
            Self::Sink(_) => 13,
            Self::Format(_) => 14,
            Self::Corrupt(_) => 15,
            Self::Unjoined(_) => 16,
            Self::NoQuotas => 17,
            Self::NoStore(_) => 18,
            Self::Store(_) => 19,
        }
    }
}

impl From<MapError> for CacheError {
    fn from(error: MapError) -> Self {
        match error {
            MapError::Full => Self::Full,
            MapError::Busy => Self::Busy,
            MapError::NoSeat => Self::NoSeat,
            MapError::Forked => Self::Forked,
            MapError::Corrupt(what) => Self::Corrupt(what),
            // Answered by the operations that can meet them; hashes and buckets are the cache's
            // own.
            _ => Self::Corrupt("an answer no operation of the cache can get"),
        }
    }
}

impl fmt::Display for CacheError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyTooLarge { max } => write!(out, "key too large: at most {max} bytes"),
            Self::ValueTooLarge { max } => write!(
                out,
                "value too large: at most {max} bytes; create the cache with a larger maximum"
            ),
            Self::Full => {
                out.write_str("full: remove entries, allow eviction or create a larger cache")
            }
            Self::NotANumber => {
                out.write_str("not a number: the value is no decimal number of 64 bits")
            }
            Self::ReadOnly => out.write_str("read-only: attach for writing"),
            Self::TooManyNamespaces => out.write_str(
                "too many namespaces: remove one, or create the cache with room for more",
            ),
            Self::NoNamespace => {
                out.write_str("no namespace: it has been removed; ask for it by its name again")
            }
            Self::NoLeases => out.write_str(
                "no lease: create the cache with leases, or end one of this handle's first",
            ),
            Self::NoQuotas => out.write_str("no quotas: create the cache with quotas"),
            Self::Nested => out.write_str(
                "nested: this thread is computing the value already; do not ask for it inside its own computation",
            ),
            Self::Sink(why) => write!(out, "the sink refused: {why}"),
            Self::NoStore(why) => write!(
                out,
                "full, and the store is not open here ({why}); open the store, or remove entries"
            ),
            Self::Store(why) => write!(
                out,
                "full, and the store takes nothing ({why}); wait, or create the cache so that it drops"
            ),
            Self::Format(why) => write!(out, "format: {why}"),
            Self::Busy => MapError::Busy.fmt(out),
            Self::NoSeat => MapError::NoSeat.fmt(out),
            Self::Unjoined(why) => write!(out, "cannot take part: {why}"),
            Self::Forked => MapError::Forked.fmt(out),
            Self::Corrupt(what) => MapError::Corrupt(what).fmt(out),
        }
    }
}

impl std::error::Error for CacheError {}
