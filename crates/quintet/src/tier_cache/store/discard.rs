//! The store that keeps nothing.

use super::counts::{Counts, Tally};
use super::{Found, Record, Store, StoreError, StoreStats};
use std::time::SystemTime;

/// Takes everything and keeps nothing: what leaves the cache is gone.
#[derive(Debug, Default)]
pub struct Discard(Counts);

impl Discard {
    /// A store that keeps nothing.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Store for Discard {
    fn put_until(&self, batch: &[Record<'_>], _: SystemTime) -> Result<usize, StoreError> {
        self.0.add(Tally::Puts, batch.len());
        Ok(batch.len())
    }

    fn get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Found>>, StoreError> {
        self.0.add(Tally::Gets, keys.len());
        Ok(keys.iter().map(|_| None).collect())
    }

    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn newest(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    fn stats(&self) -> StoreStats {
        StoreStats { entries: Some(0), bytes: Some(0), ..self.0.stats() }
    }
}
