//! What happened to a store, in this process.

use crate::sync::Ordering;
use crate::sync::constant::AtomicU64;

/// What happened to a store since this process opened it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct StoreStats {
    /// Keys looked up.
    pub gets: u64,
    /// Keys found.
    pub hits: u64,
    /// Records taken, removals included.
    pub puts: u64,
    /// Records that met something newer.
    pub older: u64,
    /// Records that the store let go for room, as far as this process did it.
    pub evicted: u64,
    /// Operations that failed.
    pub errors: u64,
    /// Connections made after the first.
    pub reconnects: u64,
    /// Records it holds, removals included, where it knows that.
    pub entries: Option<u64>,
    /// Bytes in use, where it knows that.
    pub bytes: Option<u64>,
}

/// A counter of [`StoreStats`].
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
#[allow(dead_code)] // a store counts what it has
pub(super) enum Tally {
    Gets,
    Hits,
    Puts,
    Older,
    Evicted,
    Errors,
    Connections,
}

/// The counters of one store.
#[derive(Debug, Default)]
pub(super) struct Counts([AtomicU64; 7]);

impl Counts {
    pub(super) fn add(&self, what: Tally, by: usize) {
        // ORDERING: Relaxed: counts.
        self.0[what as usize].fetch_add(by as u64, Ordering::Relaxed);
    }

    /// Counts an operation that failed.
    #[cfg(any(feature = "lmdb", feature = "redis"))]
    pub(super) fn noting<T>(
        &self,
        done: Result<T, super::StoreError>,
    ) -> Result<T, super::StoreError> {
        self.add(Tally::Errors, done.is_err() as usize);
        done
    }

    pub(super) fn stats(&self) -> StoreStats {
        // ORDERING: Relaxed: counts.
        let of = |what: Tally| self.0[what as usize].load(Ordering::Relaxed);
        StoreStats {
            gets: of(Tally::Gets),
            hits: of(Tally::Hits),
            puts: of(Tally::Puts),
            older: of(Tally::Older),
            evicted: of(Tally::Evicted),
            errors: of(Tally::Errors),
            reconnects: of(Tally::Connections).saturating_sub(1),
            entries: None,
            bytes: None,
        }
    }
}
