//! Where the evicted go.

use super::world::{declare_dead, small, tiny};
use crate::sync::Arc;
use crate::tier_cache::cache::*;
use crate::tier_cache::step::{Fate, is_stopped, with_fate};
use crate::tier_cache::word::RecordState;
use std::collections::HashMap;
use std::sync::Mutex;

type Log = Arc<Mutex<Vec<Departed>>>;

fn logged(cache: &mut TierCache) -> Log {
    let log = Log::default();
    let to = Arc::clone(&log);
    cache.set_sink(move |batch: &[Departed]| {
        // The dead deliver nothing.
        if !is_stopped() {
            to.lock().unwrap().extend_from_slice(batch);
        }
        Ok(())
    });
    log
}

/// Two threads evict; every entry that is not there was delivered, each departure once.
#[test]
fn each_departure_is_delivered_once() {
    let mut cache = small().capacity(128 << 10).create_sealed().unwrap();
    let log = logged(&mut cache);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let cache = &cache;
            scope.spawn(move || {
                let mut handle = cache.handle().unwrap();
                for number in 0..5000u32 {
                    handle.insert(format!("{thread}:{number}"), number.to_le_bytes()).unwrap();
                }
            });
        }
    });
    let mut delivered = HashMap::new();
    for gone in log.lock().unwrap().iter() {
        *delivered.entry(gone.key.clone()).or_insert(0) += 1;
        let number = u32::from_le_bytes(gone.value[..].try_into().unwrap());
        assert!(gone.key.ends_with(format!(":{number}").as_bytes()), "{gone:?}");
    }
    let mut handle = cache.handle().unwrap();
    for thread in 0..2 {
        for number in 0..5000u32 {
            let key = format!("{thread}:{number}");
            let here = handle.contains_key(&key).unwrap() as i32;
            let there = delivered.get(key.as_bytes()).copied().unwrap_or(0);
            assert_eq!(here + there, 1, "{key}");
        }
    }
    let stats = cache.stats();
    assert_eq!(stats.evicted + stats.forced, delivered.len() as u64);
}

#[test]
fn an_error_keeps_the_entry() {
    let mut cache = tiny(64);
    cache.set_sink(|_: &[Departed]| Err("no room".to_owned()));
    let mut handle = cache.handle().unwrap();
    let mut stored = 0;
    let error = loop {
        match handle.insert(format!("{stored}"), "x") {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error, CacheError::Sink("no room".into()));
    assert!(stored >= 60);
    for number in 0..stored {
        assert!(handle.contains_key(format!("{number}")).unwrap());
    }
    assert_eq!(cache.stats().evicted, 0);
    assert!(cache.stats().sink_errors > 0);
    handle.remove("0").unwrap();
    handle.insert("another", "x").unwrap();
    drop(handle);
    cache.check().unwrap();
}

/// Replaced while the sink has it: the new value stays.
#[test]
fn whoever_replaces_a_victim_wins() {
    let place = Place::Name(format!("test-sink-{}", std::process::id()));
    let _ = TierCache::unlink(&place);
    let sizes =
        Sizes { blocks: 64, buckets: 64, max_value: 200, pace: 1, ..small().sizes().unwrap() };
    let mut cache = TierCache::create(&place, sizes, Access::default()).unwrap();
    let other = TierCache::attach(&place).unwrap();
    let log = Log::default();
    let to = Arc::clone(&log);
    let inside = Mutex::new(other);
    cache.set_sink(move |batch: &[Departed]| {
        let other = inside.lock().unwrap();
        let mut handle = other.handle().unwrap();
        for gone in batch {
            handle.set_no_evict(true);
            handle.remove("spare").unwrap();
            handle.insert(&gone.key, "newer").unwrap();
        }
        to.lock().unwrap().extend_from_slice(batch);
        Err("kept".into())
    });
    let mut handle = cache.handle().unwrap();
    handle.insert("spare", "x").unwrap();
    for number in 0..63 {
        handle.insert(format!("{number}"), "x").unwrap();
    }
    assert!(handle.insert("more", "x").is_err());
    for gone in log.lock().unwrap().iter() {
        let value = handle.get_str(&gone.key).unwrap();
        assert!(gone.key == b"spare" || value.as_deref() == Some("newer"), "{gone:?}");
    }
    drop(handle);
    cache.check().unwrap();
    TierCache::unlink(&place).unwrap();
}

/// The evicting process dies at each of its stores: at least once, and with the same id.
#[test]
fn a_death_repeats_a_delivery_at_most() {
    for n in 0.. {
        let mut cache = tiny(64);
        let log = logged(&mut cache);
        let mut dead = cache.handle().unwrap();
        for number in 0..64 {
            dead.insert(format!("{number}"), "x").unwrap();
        }
        let (_, points) = with_fate(Fate::Stop(n), None, || drop(dead.insert("more", "x")));
        declare_dead(&cache, &dead);
        std::mem::forget(dead);
        cache.recover().unwrap();
        cache.check().unwrap_or_else(|error| panic!("{error} at {n}"));
        let mut handle = cache.handle().unwrap();
        handle.insert("and more", "x").unwrap();
        let log = log.lock().unwrap();
        let mut ids = HashMap::new();
        for gone in log.iter() {
            let known = ids.entry(gone.key.clone()).or_insert(gone.id);
            assert_eq!(*known, gone.id, "at {n}");
        }
        for number in 0..64 {
            let key = format!("{number}");
            let there = ids.contains_key(key.as_bytes());
            assert!(there || handle.contains_key(&key).unwrap(), "{key} at {n}");
        }
        if n >= points {
            break;
        }
    }
}

/// While one handle delivers a victim, nobody else delivers it too.
#[test]
fn a_claimed_victim_is_passed_over() {
    let mut cache = tiny(64);
    let mut other = TierCache::attach_sealed(cache.inheritable().unwrap()).unwrap();
    let theirs = logged(&mut other);
    let ours = Log::default();
    let to = Arc::clone(&ours);
    cache.set_sink(move |batch: &[Departed]| {
        other.handle().unwrap().evict_oldest(1).unwrap();
        to.lock().unwrap().extend_from_slice(batch);
        Ok(())
    });
    let mut handle = cache.handle().unwrap();
    for number in 0..100 {
        handle.insert(format!("{number}"), "x").unwrap();
    }
    let (ours, theirs) = (ours.lock().unwrap(), theirs.lock().unwrap());
    assert!(!ours.is_empty() && !theirs.is_empty());
    let mut seen = HashMap::new();
    for gone in ours.iter().chain(theirs.iter()) {
        assert_eq!(seen.insert(gone.key.clone(), ()), None, "delivered twice");
        assert!(!handle.contains_key(&gone.key).unwrap());
    }
}

#[test]
fn evictions_on_demand_return_the_oldest() {
    let cache = super::world::tiny_of(small().exact_recency(), 64);
    let mut handle = cache.handle().unwrap();
    for number in 0..10u8 {
        handle.insert([number], [number; 200]).unwrap();
    }
    handle.get([0]).unwrap();
    let gone = handle.evict_oldest(3).unwrap();
    assert_eq!(gone.iter().map(|gone| gone.key[0]).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(gone[0].value, [1; 200]);
    assert_eq!(handle.evict_oldest(100).unwrap().len(), 7);
    assert_eq!((cache.len(), cache.stats().evicted), (0, 10));
}

/// A sink that notes what it was given and what it was told to forget.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<Vec<(bool, Departed)>>>);

impl EvictionSink for Ledger {
    fn store(&self, batch: &[Departed]) -> Result<(), String> {
        self.0.lock().unwrap().extend(batch.iter().map(|gone| (true, gone.clone())));
        Ok(())
    }

    fn withdraw(&self, batch: &[Departed]) {
        self.0.lock().unwrap().extend(batch.iter().map(|gone| (false, gone.clone())));
    }
}

/// Every entry, in the order of their blocks.
fn links_of(handle: &Handle<'_>) -> Vec<Link> {
    let link = |record| {
        let word = handle.view.memory.record(record).unwrap().state();
        let live = word.state() == Some(RecordState::Live);
        live.then_some(Link { record, generation: word.generation() })
    };
    (0..handle.view.sizes.blocks).filter_map(link).collect()
}

/// While one handle delivers its victims, another fills their buckets until everything old has to
/// leave: what is being delivered is not delivered again.
#[test]
fn forced_out_while_it_is_being_delivered() {
    let sizes = Sizes { blocks: 400, buckets: 3, ..small().sizes().unwrap() };
    let mut cache = TierCache::create_sealed(Sizes { max_value: 200, ..sizes }).unwrap();
    let mut other = TierCache::attach_sealed(cache.inheritable().unwrap()).unwrap();
    let ledger = Ledger::default();
    other.set_sink(ledger.clone());
    let (ours, inside) = (ledger.clone(), Mutex::new(0u32));
    cache.set_sink(move |batch: &[Departed]| {
        let mut handle = other.handle().unwrap();
        handle.set_timeout(std::time::Duration::from_millis(20));
        let mut number = inside.lock().unwrap();
        for _ in 0..20 {
            *number += 1;
            match handle.insert(format!("new {number}"), "x") {
                Ok(_) | Err(CacheError::Busy) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        ours.store(batch)
    });
    let mut handle = cache.handle().unwrap();
    let mut old = 0;
    while cache.stats().forced == 0 {
        handle.insert(format!("old {old}"), "x").unwrap();
        old += 1;
    }
    // All of them at once: the other handle has no choice but to wait.
    let links = links_of(&handle);
    let mut gone = Vec::new();
    handle.put_out(&links, &mut gone).unwrap();
    assert_eq!(gone.len(), links.len());
    let mut ids = HashMap::new();
    for (stored, gone) in ledger.0.lock().unwrap().iter() {
        assert!(*stored, "nobody replaced or removed anything");
        assert_eq!(ids.insert(gone.id, ()), None, "{gone:?} was delivered twice");
    }
    assert!(ids.len() > links.len());
    drop(handle);
    cache.check().unwrap();
}

/// Replaced or removed while the sink has it: it did not leave, and the sink is told.
#[test]
fn what_stays_is_withdrawn() {
    let mut cache = tiny(64);
    let other = TierCache::attach_sealed(cache.inheritable().unwrap()).unwrap();
    let ledger = Ledger::default();

    struct Meddler(Ledger, Mutex<TierCache>);
    impl EvictionSink for Meddler {
        fn store(&self, batch: &[Departed]) -> Result<(), String> {
            let other = self.1.lock().unwrap();
            let mut handle = other.handle().unwrap();
            handle.insert("1", "newer").unwrap();
            handle.remove("2").unwrap();
            self.0.store(batch)
        }

        fn withdraw(&self, batch: &[Departed]) {
            self.0.withdraw(batch);
        }
    }
    cache.set_sink(Meddler(ledger.clone(), Mutex::new(other)));
    let mut handle = cache.handle().unwrap();
    for number in 0..4 {
        handle.insert(number.to_string(), "x").unwrap();
    }
    let mut gone = Vec::new();
    handle.put_out(&links_of(&handle), &mut gone).unwrap();
    let keys = |gone: &Departed| String::from_utf8(gone.key.clone()).unwrap();
    assert_eq!(gone.iter().map(keys).collect::<Vec<_>>(), ["0", "3"]);
    let log = ledger.0.lock().unwrap();
    let told = |what: bool| -> Vec<_> {
        log.iter().filter(|(stored, _)| *stored == what).map(|(_, gone)| keys(gone)).collect()
    };
    assert_eq!(
        (told(true), told(false)),
        (["0", "1", "2", "3"].map(str::to_owned).to_vec(), ["1", "2"].map(str::to_owned).to_vec(),)
    );
    assert_eq!(handle.get_str("1").unwrap().as_deref(), Some("newer"));
}
