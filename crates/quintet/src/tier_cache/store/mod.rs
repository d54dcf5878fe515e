//! Stores: where entries go that leave a cache, and come back from.
//!
#![doc = include_str!("../../../docs/tier_cache_stores.md")]

mod address;
mod counts;
mod discard;
mod error;
#[cfg(any(all(feature = "lmdb", unix), feature = "redis"))]
mod line;
#[cfg(all(feature = "lmdb", unix))]
mod lmdb;
#[cfg(feature = "redis")]
mod redis;

pub use address::{Credentials, StoreAddress, StoreSync};
pub use counts::StoreStats;
pub use discard::Discard;
pub use error::StoreError;
#[cfg(all(feature = "lmdb", unix))]
pub use lmdb::Lmdb;
#[cfg(feature = "redis")]
pub use redis::Redis;

use std::time::{Duration, SystemTime};

/// How long a store remembers that a key was removed.
pub const REMOVALS_KEPT: Duration = Duration::from_secs(3600);

/// What a store is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'r> {
    /// The key, of any bytes.
    pub key: &'r [u8],
    /// Decides which of two records of a key is kept: the greater. At least 1.
    pub version: u64,
    /// When it ends, on the wall clock; `None`: never.
    pub expiry: Option<SystemTime>,
    /// The value; `None`: the key was removed.
    pub value: Option<&'r [u8]>,
}

impl<'r> Record<'r> {
    /// The record of a removal.
    pub fn removal(key: &'r [u8], version: u64) -> Self {
        let expiry = SystemTime::now().checked_add(REMOVALS_KEPT);
        Self { key, version, expiry, value: None }
    }
}

/// What a store has under a key.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Found {
    /// The version it was put with.
    pub version: u64,
    /// When it ends, on the wall clock; `None`: never.
    pub expiry: Option<SystemTime>,
    /// The value.
    pub value: Vec<u8>,
}

/// A place for what leaves a cache: see [the rules of every store](self#rules-of-every-store).
pub trait Store: Send + Sync + std::fmt::Debug {
    /// Stores these records as far as it has none newer, values and removals alike. What is not
    /// stored before this moment of the wall clock never is. Returns how many it took.
    fn put_until(&self, batch: &[Record<'_>], until: SystemTime) -> Result<usize, StoreError>;

    /// The same, within this time from now.
    fn put(&self, batch: &[Record<'_>], within: Duration) -> Result<usize, StoreError> {
        let now = SystemTime::now();
        self.put_until(batch, now.checked_add(within).unwrap_or(now + Duration::from_secs(3600)))
    }

    /// What it has under each of these keys, in their order.
    fn get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Found>>, StoreError>;

    /// Removes these keys, unless it has something newer than the version beside each. Returns how
    /// many of the removals it took.
    fn remove(&self, batch: &[(&[u8], u64)], within: Duration) -> Result<usize, StoreError> {
        let removals: Vec<_> =
            batch.iter().map(|(key, version)| Record::removal(key, *version)).collect();
        self.put(&removals, within)
    }

    /// Whatever was put before survives what the store can survive, once this returns.
    fn sync(&self) -> Result<(), StoreError>;

    /// The greatest version it was ever given, where it knows that.
    fn newest(&self) -> Result<Option<u64>, StoreError>;

    /// A number that tells it from every other store, also from one that takes its place, where it
    /// has one.
    fn identity(&self) -> Option<u64> {
        None
    }

    /// What happened to it, in this process.
    fn stats(&self) -> StoreStats;
}

/// Milliseconds of the wall clock, 0 for never.
#[cfg(any(feature = "lmdb", feature = "redis"))]
fn expiry_ms(expiry: Option<SystemTime>) -> u64 {
    expiry.map_or(0, |moment| wall_ms(moment).max(1))
}

/// The moment of so many milliseconds of the wall clock; `None` for 0.
#[cfg(any(feature = "lmdb", feature = "redis"))]
fn expiry_of(ms: u64) -> Option<SystemTime> {
    if ms == 0 { None } else { SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(ms)) }
}

#[cfg(any(feature = "lmdb", feature = "redis"))]
fn wall_ms(moment: SystemTime) -> u64 {
    let since = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // Redis has no moments beyond that.
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX).min(i64::MAX as u64 / 2)
}
