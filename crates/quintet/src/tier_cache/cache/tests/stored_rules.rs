//! `tier_cache_stores` N2 to N5 and N9, with a store that does what the test says in the midst of a
//! put or a lookup.

use super::stored::{Dir, empty};
use super::world::advance;
use crate::store::{Found, Record, Store, StoreError, StoreStats};
use crate::tier_cache::cache::stored::{Backing, Recipe};
use crate::tier_cache::cache::*;
use crate::tier_cache::word::Link;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

type During = Box<dyn FnMut(&str) -> Result<(), StoreError> + Send>;

type Versioned = (u64, Option<Vec<u8>>);

/// What the store has, the last deadline it was given, and what happens in the midst of things.
#[derive(Default)]
struct Script {
    records: Mutex<HashMap<Vec<u8>, Versioned>>,
    until: Mutex<Option<SystemTime>>,
    during: Mutex<Option<During>>,
}

impl std::fmt::Debug for Script {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Script")
    }
}

#[derive(Debug)]
struct Scripted(Arc<Script>);

impl Script {
    fn happen(&self, what: &str) -> Result<(), StoreError> {
        // Taken out, so that what happens may come here again.
        let during = self.during.lock().unwrap().take();
        let Some(mut during) = during else { return Ok(()) };
        let happened = during(what);
        self.during.lock().unwrap().get_or_insert(during);
        happened
    }

    fn during(&self, during: impl FnMut(&str) -> Result<(), StoreError> + Send + 'static) {
        *self.during.lock().unwrap() = Some(Box::new(during));
    }
}

impl Store for Scripted {
    fn put_until(&self, batch: &[Record<'_>], until: SystemTime) -> Result<usize, StoreError> {
        *self.0.until.lock().unwrap() = Some(until);
        self.0.happen("put")?;
        let mut records = self.0.records.lock().unwrap();
        for record in batch {
            let known = records.get(record.key).map_or(0, |(version, _)| *version);
            if known <= record.version {
                let value = record.value.map(<[u8]>::to_vec);
                records.insert(record.key.to_vec(), (record.version, value));
            }
        }
        Ok(batch.len())
    }

    fn get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Found>>, StoreError> {
        let found = |key: &&[u8]| {
            let (version, value) = self.0.records.lock().unwrap().get(*key)?.clone();
            Some(Found { version, expiry: None, value: value? })
        };
        let found = keys.iter().map(found).collect();
        self.0.happen("get")?;
        Ok(found)
    }

    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn newest(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    fn stats(&self) -> StoreStats {
        StoreStats::default()
    }
}

/// A cache over such a store.
fn scripted(dir: &Dir) -> (&'static TierCache, Arc<Script>) {
    let mut cache = dir.builder().create_sealed().unwrap();
    let script = Arc::new(Script::default());
    let store = Box::new(Scripted(Arc::clone(&script)));
    cache.backing = Some(Arc::new(Backing::new(Recipe::default(), Some(store))));
    // What happens in a put uses the cache as well.
    (Box::leak(Box::new(cache)), script)
}

fn text(found: Option<Vec<u8>>) -> Option<String> {
    found.map(|value| String::from_utf8(value).unwrap())
}

/// `tier_cache_stores` N2, N4: until the store has it, an entry is found in memory.
#[test]
fn what_is_being_put_is_found() {
    let dir = Dir::new("being-put");
    let (cache, script) = scripted(&dir);
    let mut handle = cache.handle().unwrap();
    handle.insert("a", "1").unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    script.during(move |what| {
        if what == "put" {
            let found = text(cache.handle().unwrap().get("a").unwrap());
            told.lock().unwrap().push(found);
        }
        Ok(())
    });
    assert_eq!(handle.evict_oldest(1).unwrap().len(), 1);
    assert_eq!(*seen.lock().unwrap(), [Some("1".to_owned())]);
    assert_eq!(text(handle.get("a").unwrap()).as_deref(), Some("1"));
}

/// `tier_cache_stores` N2: one put of a bucket at a time.
#[test]
fn nobody_puts_what_somebody_else_is_putting() {
    let dir = Dir::new("two-puts");
    let (cache, script) = scripted(&dir);
    let mut handle = cache.handle().unwrap();
    handle.insert("a", "old").unwrap();
    let mut first = true;
    script.during(move |what| {
        if what == "put" && std::mem::take(&mut first) {
            let mut other = cache.handle().unwrap();
            other.insert("a", "new").unwrap();
            assert_eq!(other.evict_oldest(1).unwrap().len(), 0, "the bucket is leased");
            assert_eq!(text(other.get("a").unwrap()).as_deref(), Some("new"));
        }
        Ok(())
    });
    handle.evict_oldest(1).unwrap();
    // `tier_cache_stores` N4: what replaced it meanwhile was not unlinked in its stead.
    assert_eq!(text(handle.get("a").unwrap()).as_deref(), Some("new"));
}

/// `tier_cache_stores` N3: the put is over before its lease is.
#[test]
fn a_put_ends_before_its_lease() {
    let dir = Dir::new("deadline");
    let (cache, script) = scripted(&dir);
    let mut handle = cache.handle().unwrap();
    handle.insert("a", "1").unwrap();
    let begun = SystemTime::now();
    assert_eq!(handle.evict_oldest(1).unwrap().len(), 1);
    let until = script.until.lock().unwrap().unwrap();
    let given = until.duration_since(begun).unwrap();
    assert!(given < Duration::from_secs(3), "a lease takes three seconds, the put {given:?}");
}

/// `tier_cache_stores` N4: whose dropper died while it was put is below the watermark, and would
/// not be found.
#[test]
fn what_was_put_below_its_watermark_stays() {
    let dir = Dir::new("put-below");
    let (cache, script) = scripted(&dir);
    let mut handle = cache.handle().unwrap();
    handle.insert("a", "1").unwrap();
    let (_, version) = handle.get_versioned("a").unwrap().unwrap();
    let (mut raised, space) = (false, handle.space);
    script.during(move |what| {
        if what == "put" && !std::mem::replace(&mut raised, true) {
            let view = cache.view();
            let bucket = view.input(space, b"a").bucket();
            view.raise_watermark(bucket, Link::from_word(version));
        }
        Ok(())
    });
    assert_eq!(handle.evict_oldest(1).unwrap().len(), 0);
    assert_eq!(text(handle.get("a").unwrap()).as_deref(), Some("1"));
    empty(&mut handle);
    assert_eq!(text(handle.get("a").unwrap()).as_deref(), Some("1"));
}

/// `tier_cache_stores` N5: a put without an answer may still arrive.
#[test]
fn a_put_without_an_answer_keeps_its_lease() {
    let dir = Dir::new("no-answer");
    let (cache, script) = scripted(&dir);
    let mut handle = cache.handle().unwrap();
    handle.insert("a", "1").unwrap();
    script.during(|what| match what {
        "put" => Err(StoreError::Late),
        _ => Ok(()),
    });
    assert!(matches!(handle.evict_oldest(1), Err(CacheError::Store(_))));
    script.during(|_| Ok(()));
    assert_eq!(handle.evict_oldest(1).unwrap().len(), 0, "in doubt");
    advance(cache, 4_000);
    assert_eq!(handle.evict_oldest(1).unwrap().len(), 1);
}

/// `tier_cache_stores` N9: the store's answer is compared with the watermark after it came; and if
/// that was raised since the miss, memory is looked at again.
#[test]
fn what_a_drop_overtook_is_refused() {
    let dir = Dir::new("overtaken");
    let (cache, script) = scripted(&dir);
    let mut handle = cache.handle().unwrap();
    handle.insert("a", "old").unwrap();
    empty(&mut handle);
    let mut calls = 0;
    script.during(move |what| {
        calls += 1;
        if what == "get" && calls == 1 {
            let mut other = cache.handle().unwrap();
            other.insert("a", "new").unwrap();
            assert!(other.drop_oldest(1).unwrap());
            other.insert("a", "newest").unwrap();
        }
        Ok(())
    });
    assert_eq!(text(handle.get("a").unwrap()).as_deref(), Some("newest"));
    script.during(|_| Ok(()));
    assert!(handle.drop_oldest(1).unwrap());
    assert_eq!(handle.get("a").unwrap(), None);
}

/// What expired while the store was away leaves when it is back.
#[test]
fn what_expired_while_the_store_was_away_leaves_later() {
    let dir = Dir::new("expired-away");
    let (cache, script) = scripted(&dir);
    let mut handle = cache.handle().unwrap();
    handle.insert_for("a", "1", Some(Duration::from_secs(1))).unwrap();
    advance(cache, 5_000);
    script.during(|what| match what {
        "put" => Err(StoreError::Late),
        _ => Ok(()),
    });
    assert!(matches!(handle.maintain(), Err(CacheError::Store(_))));
    script.during(|_| Ok(()));
    advance(cache, 5_000);
    assert_eq!(handle.maintain().unwrap().expired, 1);
    assert_eq!(cache.len(), 0);
}
