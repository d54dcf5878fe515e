//! Stores: one suite over all of them, and what each has of its own. LMDB is always there where it
//! was built; Redis is started here, on loopback, and where there is none the tests say so in a
//! line and are skipped.

#![cfg(target_os = "linux")]
// A build without stores has nothing but `none`.
#![cfg_attr(not(any(feature = "lmdb", feature = "redis")), allow(dead_code))]

#[cfg(feature = "lmdb")]
mod attacks;
#[cfg(any(feature = "lmdb", feature = "redis"))]
mod cache;
mod conformance;
#[cfg(any(feature = "lmdb", feature = "redis"))]
mod crew;
mod dir;
#[cfg(any(feature = "lmdb", feature = "redis"))]
mod examples;
#[cfg(any(feature = "lmdb", feature = "redis"))]
mod kills;
#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "redis")]
mod server;
#[cfg(feature = "redis")]
mod shared;

use quintet::store::*;
use std::time::Duration;

/// Long enough for a machine that does other things too.
pub(crate) const WITHIN: Duration = Duration::from_secs(20);

/// A record that does not end.
pub(crate) fn record<'r>(key: &'r [u8], version: u64, value: &'r [u8]) -> Record<'r> {
    Record { key, version, expiry: None, value: Some(value) }
}

/// What a store has under one key: version and value.
pub(crate) fn look(store: &dyn Store, key: &[u8]) -> Option<(u64, Vec<u8>)> {
    let mut found = store.get(&[key]).unwrap();
    assert_eq!(found.len(), 1);
    found.pop().flatten().map(|found| (found.version, found.value))
}

#[test]
fn none_takes_everything_and_keeps_nothing() {
    let store = "none".parse::<StoreAddress>().unwrap().open().unwrap();
    assert_eq!(store.put(&[record(b"key", 1, b"value")], WITHIN), Ok(1));
    assert_eq!(store.remove(&[(b"key", 2)], WITHIN), Ok(1));
    assert_eq!(look(&*store, b"key"), None);
    assert_eq!((store.sync(), store.newest()), (Ok(()), Ok(None)));
    assert_eq!((store.stats().puts, store.stats().gets, store.stats().hits), (2, 1, 0));
}

#[cfg(not(feature = "lmdb"))]
#[test]
fn a_build_without_lmdb_says_how_to_get_it() {
    let error = "lmdb:/nowhere".parse::<StoreAddress>().unwrap().open().unwrap_err();
    assert_eq!(error, StoreError::NotBuilt("lmdb"));
}

#[cfg(not(feature = "redis"))]
#[test]
fn a_build_without_redis_says_how_to_get_it() {
    let error = "redis://localhost".parse::<StoreAddress>().unwrap().open().unwrap_err();
    assert_eq!(error, StoreError::NotBuilt("redis"));
}
