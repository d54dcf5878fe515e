//! What each operation promises, one handle at a time.

use super::world::{advance, small, tiny, tiny_of};
use crate::tier_cache::cache::*;
use crate::tier_cache::step::{Fate, with_fate};
use std::time::Duration;

const SECOND: Option<Duration> = Some(Duration::from_secs(1));

#[test]
fn conditional_stores() {
    let cache = small().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    assert!(!handle.replace("k", "0", None).unwrap());
    assert!(handle.insert_new("k", "1", None).unwrap());
    assert!(!handle.insert_new("k", "2", None).unwrap());
    assert!(handle.replace("k", "3", None).unwrap());
    let (value, version) = handle.get_versioned("k").unwrap().unwrap();
    assert_eq!(value, b"3");
    handle.insert("k", "4").unwrap();
    assert!(!handle.compare_exchange("k", version, "5", None).unwrap());
    let (_, version) = handle.get_versioned("k").unwrap().unwrap();
    assert!(handle.compare_exchange("k", version, "5", None).unwrap());
    assert!(!handle.compare_exchange("k", version, "6", None).unwrap(), "a version is used up");
    assert!(!handle.compare_exchange("absent", version, "6", None).unwrap());
    assert_eq!(handle.get_str("k").unwrap().as_deref(), Some("5"));
    drop(handle);
    assert_eq!(cache.check().unwrap().entries, 1);
}

#[test]
fn numbers() {
    let cache = small().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    assert_eq!(handle.incr("n", 1, None, None), Ok(None));
    assert_eq!(handle.incr("n", 5, Some(10), SECOND), Ok(Some(15)));
    assert_eq!(handle.decr("n", 20, None, None), Ok(Some(-5)));
    assert!(handle.ttl("n").unwrap().unwrap().is_some(), "an increment keeps the expiry");
    handle.insert("n", i64::MAX.to_string()).unwrap();
    assert_eq!(handle.incr("n", 1, None, None), Err(CacheError::NotANumber));
    handle.insert("text", "x").unwrap();
    assert_eq!(handle.incr("text", 1, Some(0), None), Err(CacheError::NotANumber));
    assert_eq!(handle.get_str("text").unwrap().as_deref(), Some("x"));
}

#[test]
fn expiry_is_noticed_without_anybody_sweeping() {
    let cache = small().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert_for("short", "1", SECOND).unwrap();
    handle.insert_for("long", "2", Some(Duration::from_secs(100))).unwrap();
    handle.insert("ever", "3").unwrap();
    assert!(handle.touch("long", None).unwrap());
    assert!(!handle.touch("absent", None).unwrap());
    assert_eq!(handle.ttl("long").unwrap(), Some(None));
    assert!(handle.ttl("short").unwrap().unwrap().unwrap() <= Duration::from_secs(1));
    advance(&cache, 1_500);
    assert_eq!(handle.get("short").unwrap(), None);
    assert_eq!(handle.ttl("short").unwrap(), None);
    assert!(!handle.replace("short", "x", None).unwrap());
    assert!(!handle.touch("short", None).unwrap());
    assert!(!handle.remove("short").unwrap());
    assert!(handle.insert_new("short", "new", None).unwrap());
    advance(&cache, 1_000_000);
    assert_eq!(handle.get_str("short").unwrap().as_deref(), Some("new"));
    assert_eq!(handle.get_str("long").unwrap().as_deref(), Some("2"));
    assert_eq!(cache.len(), 3);
    drop(handle);
    cache.check().unwrap();
}

/// The machine's clock is set back: time stands still until it has caught up, and what was found
/// expired stays so.
#[test]
fn a_clock_set_back_freezes_time_and_revives_nothing() {
    const DAY: i64 = 86_400_000;
    let cache = small().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    let left = |handle: &mut Handle<'_>| handle.ttl("long").unwrap().unwrap().unwrap();
    handle.insert_for("k", "1", SECOND).unwrap();
    handle.insert_for("long", "2", Some(Duration::from_secs(3600))).unwrap();
    advance(&cache, 5_000);
    assert_eq!(handle.get("k").unwrap(), None);
    let before = left(&mut handle);
    advance(&cache, -DAY);
    assert_eq!(handle.get("k").unwrap(), None, "revived");
    assert_eq!(cache.reader().get("k").unwrap(), None, "revived");
    assert!(left(&mut handle) < before + Duration::from_secs(5), "went back");
    let frozen = left(&mut handle);
    advance(&cache, DAY / 2);
    assert_eq!(left(&mut handle), frozen, "stands still");
    advance(&cache, DAY / 2 + 10_000);
    assert!(left(&mut handle) < frozen - Duration::from_secs(5), "goes on");
}

/// Who found an entry expired and never looks at the clock otherwise tells everybody.
#[test]
fn what_a_reader_found_expired_stays_expired() {
    let cache = small().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert_for("k", "1", Some(Duration::from_millis(300))).unwrap();
    advance(&cache, 400);
    assert_eq!(cache.reader().get("k").unwrap(), None);
    advance(&cache, -400);
    assert_eq!(cache.reader().get("k").unwrap(), None, "revived");
    assert_eq!(handle.get("k").unwrap(), None, "revived");
}

/// Looks at the clock keep the floor within a second of the present, without anything having
/// expired.
#[test]
fn a_clock_set_back_costs_a_second_at_most() {
    let cache = small().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert_for("k", "1", Some(Duration::from_secs(3600))).unwrap();
    advance(&cache, 1_800_000);
    handle.maintain().unwrap();
    advance(&cache, -1_000_000);
    let left = handle.ttl("k").unwrap().unwrap().unwrap();
    assert!(left <= Duration::from_secs(1_801), "{left:?}");
}

/// Steps of any size: nothing panics, nothing else happens.
#[test]
fn clock_steps() {
    let cache = small().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    advance(&cache, 10_000_000);
    for step in [5_000, i64::MIN / 2, i64::MAX / 2, i64::MAX / 2, i64::MIN / 2] {
        advance(&cache, step);
        for number in 0..2000u32 {
            handle.insert_for(number.to_string(), "x", SECOND).unwrap();
        }
        handle.maintain().unwrap();
    }
    drop(handle);
    cache.check().unwrap();
}

/// Expired entries are the first victims, whatever their recency.
#[test]
fn the_expired_leave_first() {
    let cache = tiny(64);
    let mut handle = cache.handle().unwrap();
    for number in 0..20u32 {
        handle.insert(format!("old{number}"), "x").unwrap();
    }
    for number in 0..30u32 {
        handle.insert_for(format!("mortal{number}"), "x", SECOND).unwrap();
    }
    advance(&cache, 2_000);
    for number in 0..44u32 {
        handle.insert(format!("new{number}"), "x").unwrap();
    }
    let stats = cache.stats();
    assert_eq!((stats.expired, stats.evicted), (30, 0));
    for number in 0..20u32 {
        assert!(handle.contains_key(format!("old{number}")).unwrap());
    }
}

#[test]
fn namespaces_have_their_own_keys_and_are_flushed_by_one_store() {
    let cache = tiny_of(small().no_evict(), 64);
    let mut handle = cache.handle().unwrap();
    let users = cache.namespace("users").unwrap();
    assert_eq!(cache.namespace("users").unwrap(), users);
    assert_eq!(cache.namespace("").unwrap(), Namespace::default());
    handle.insert("k", "unnamed").unwrap();
    handle.set_namespace(users);
    assert_eq!(handle.get("k").unwrap(), None);
    let mut stored = 0;
    while handle.insert(format!("k{stored}"), "user").is_ok() {
        stored += 1;
    }
    assert!(stored > 50);
    cache.clear_namespace(users).unwrap();
    assert_eq!(handle.get("k0").unwrap(), None);
    for number in 0..stored {
        handle.insert(format!("j{number}"), "again").unwrap();
    }
    handle.set_namespace(Namespace::default());
    assert_eq!(handle.get_str("k").unwrap().as_deref(), Some("unnamed"));
    assert_eq!(
        cache.namespaces().iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["", "users"]
    );
    cache.clear().unwrap();
    assert_eq!(handle.get("k").unwrap(), None);
    assert_eq!(cache.scan().count(), 0);
    handle.maintain().unwrap();
    assert_eq!(cache.len(), 0, "maintenance takes flushed entries away");
    drop(handle);
    cache.check().unwrap();
}

#[test]
fn scans_and_batches() {
    let cache = small().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    let entries: Vec<_> =
        (0..100).map(|number| (format!("k{number}"), vec![number as u8; number])).collect();
    handle.insert_many(&entries, None).unwrap();
    let mut keys: Vec<_> = entries.iter().map(|(key, _)| key.clone()).collect();
    keys.push("absent".into());
    let values = handle.get_many(&keys).unwrap();
    assert_eq!(values[100], None);
    for ((_, value), got) in entries.iter().zip(&values) {
        assert_eq!(got.as_ref(), Some(value));
    }
    let mut scanned: Vec<_> =
        cache.scan().map(|entry| entry.unwrap()).map(|entry| (entry.key, entry.value)).collect();
    let mut wanted: Vec<_> =
        entries.into_iter().map(|(key, value)| (key.into_bytes(), value)).collect();
    scanned.sort();
    wanted.sort();
    assert_eq!(scanned, wanted);
}

#[test]
fn the_reserve_is_kept_by_maintenance() {
    let cache = small().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    let free = || cache.stats().blocks - cache.stats().used_blocks;
    let reserve = cache.view().reserve() as u64;
    let mut number = 0u32;
    let mut set = |handle: &mut Handle<'_>| {
        number += 1;
        handle.insert(number.to_string(), "x").unwrap().evicted
    };
    while free() > reserve {
        set(&mut handle);
    }
    assert_eq!(handle.maintain().unwrap().evicted, 0, "at the line");
    set(&mut handle);
    assert_eq!(handle.maintain().unwrap().evicted, 1, "below it");
    for _ in 0..3000 {
        set(&mut handle);
    }
    assert!(handle.maintain().unwrap().evicted > 0);
    assert!(free() >= reserve, "room is made ahead");
    assert_eq!(handle.maintain().unwrap().evicted, 0);
    for _ in 0..reserve {
        assert_eq!(set(&mut handle), 0);
    }
}

#[test]
fn a_reader_stores_nothing_and_sees_everything() {
    let place = Place::Name(format!("test-reader-{}", std::process::id()));
    let _ = TierCache::unlink(&place);
    let cache = small().create(&place).unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert("k", [7; 500]).unwrap();
    let other = TierCache::attach_read_only(&place).unwrap();
    assert_eq!(other.handle().err(), Some(CacheError::ReadOnly));
    assert_eq!(other.clear(), Err(CacheError::ReadOnly));
    assert_eq!(other.namespace("new"), Err(CacheError::ReadOnly));
    assert_eq!(other.recover(), Err(CacheError::ReadOnly));
    let reader = other.reader();
    assert_eq!(reader.get("k").unwrap(), Some(vec![7; 500]));
    assert_eq!(reader.get("absent").unwrap(), None);
    assert_eq!((other.len(), other.scan().count()), (1, 1));
    assert_eq!(cache.processes().len(), 1);
    TierCache::unlink(&place).unwrap();
}

/// All processes gone, the segment kept: the data are there.
#[test]
fn warm_restart() {
    let path = std::env::temp_dir().join(format!("quintet-warm-{}", std::process::id()));
    let place = Place::Path(path);
    let _ = TierCache::unlink(&place);
    {
        let cache = small().create_or_attach(&place).unwrap();
        let mut handle = cache.handle().unwrap();
        for number in 0..500u32 {
            handle.insert(number.to_string(), number.to_le_bytes()).unwrap();
        }
    }
    let cache = small().create_or_attach(&place).unwrap();
    let mut handle = cache.handle().unwrap();
    for number in 0..500u32 {
        let value = handle.get(number.to_string()).unwrap();
        assert_eq!(value.as_deref(), Some(&number.to_le_bytes()[..]));
    }
    drop(handle);
    assert_eq!(cache.check().unwrap().entries, 500);
    TierCache::unlink(&place).unwrap();
}

/// An entry whose bucket somebody held when maintenance came for it is taken in a later round.
#[test]
fn what_was_held_when_it_expired_is_taken_later() {
    let cache = tiny_of(small(), 64);
    let (mut handle, mut other) = (cache.handle().unwrap(), cache.handle().unwrap());
    handle.insert_for("mortal", "x", Some(Duration::from_secs(1))).unwrap();
    let bucket = |key: &str| cache.view().input(handle.space, key.as_bytes()).bucket();
    let its = bucket("mortal");
    let neighbour = (0..).map(|n: u32| n.to_string()).find(|key| bucket(key) == its).unwrap();
    advance(&cache, 5_000);
    let mut met = false;
    let mut come = |_| {
        if !met && cache.view().memory.control(its).owner().is_some() {
            met = true;
            other.maintain().unwrap();
        }
    };
    with_fate(Fate::Each, Some(&mut come), || handle.insert(&neighbour, "y").unwrap());
    assert!(met && cache.len() == 2, "it is held");
    assert_eq!(other.maintain().unwrap().expired, 1);
    assert_eq!(cache.len(), 1);
}
