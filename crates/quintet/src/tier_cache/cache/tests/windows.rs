//! Full windows: an add for which somebody has to leave although blocks are free.

use super::world::{declare_dead, small};
use crate::sync::{Arc, AtomicBool, Ordering};
use crate::tier_cache::cache::*;
use crate::tier_cache::step::{Fate, is_stopped, with_fate};
use std::collections::HashMap;
use std::sync::Mutex;

/// Many blocks, few cells.
fn crowded() -> TierCache {
    let sizes = Sizes { blocks: 400, buckets: 3, ..small().sizes().unwrap() };
    TierCache::create_sealed(Sizes { max_value: 200, ..sizes }).unwrap()
}

/// Refuses until it is told otherwise, and notes what it accepted.
#[derive(Clone, Default)]
struct Gate(Arc<AtomicBool>, Arc<Mutex<Vec<Departed>>>);

impl EvictionSink for Gate {
    fn store(&self, batch: &[Departed]) -> Result<(), String> {
        if is_stopped() {
            // The dead deliver nothing.
            return Ok(());
        }
        if !self.0.load(Ordering::Relaxed) {
            return Err("no".into());
        }
        self.1.lock().unwrap().extend_from_slice(batch);
        Ok(())
    }
}

/// A cache whose sink refuses, filled until a set fails for it, in whichever slice it is drawn to;
/// the number of keys that are there.
fn filled() -> (TierCache, Gate, u32) {
    let mut cache = crowded();
    let gate = Gate::default();
    cache.set_sink(gate.clone());
    let mut handle = cache.handle().unwrap();
    let (mut stored, mut refusals) = (0u32, 0);
    while refusals < 40 {
        match handle.insert(stored.to_string(), stored.to_le_bytes()) {
            Ok(report) => {
                assert_eq!(report.evicted, 0);
                (stored, refusals) = (stored + 1, 0);
            }
            Err(error) => {
                assert_eq!(error, CacheError::Sink("no".into()));
                refusals += 1;
            }
        }
        assert!(stored < 100, "more entries than cells");
    }
    drop(handle);
    (cache, gate, stored)
}

/// The oldest leaves, is counted, and its block is free again.
#[test]
fn without_a_sink_it_is_discarded() {
    let cache = crowded();
    let mut handle = cache.handle().unwrap();
    let mut evicted = 0;
    for number in 0..300u32 {
        evicted += handle.insert(number.to_string(), number.to_le_bytes()).unwrap().evicted as u64;
        assert_eq!(handle.get(number.to_string()).unwrap(), Some(number.to_le_bytes().to_vec()));
    }
    drop(handle);
    let (report, stats) = (cache.check().unwrap(), cache.stats());
    assert_eq!((stats.evicted, stats.forced), (0, evicted));
    assert_eq!((report.entries + evicted, report.entries + report.free), (300, 400));
}

/// An error of the sink keeps the entry and fails the set; once it accepts, the entry leaves, once.
#[test]
fn what_the_sink_refuses_stays() {
    let (cache, gate, stored) = filled();
    let mut handle = cache.handle().unwrap();
    let (refused, before) = (stored.to_string(), cache.stats().sink_errors);
    for round in 1..4 {
        assert!(!handle.contains_key(&refused).unwrap());
        for number in 0..stored {
            let value = handle.peek(number.to_string()).unwrap();
            assert_eq!(value, Some(number.to_le_bytes().to_vec()), "{number}");
        }
        assert_eq!(handle.insert(&refused, "x"), Err(CacheError::Sink("no".into())));
        let stats = cache.stats();
        assert_eq!((stats.sink_errors, stats.forced, stats.evicted), (before + round, 0, 0));
    }
    gate.0.store(true, Ordering::Relaxed);
    let report = handle.insert(&refused, "x").unwrap();
    assert!(report.evicted > 0 && handle.contains_key(&refused).unwrap());
    let gone = gate.1.lock().unwrap();
    let stats = cache.stats();
    assert_eq!((stats.forced, stats.evicted), (gone.len() as u64, 0), "counted by its cause");
    assert_eq!(report.evicted as usize, gone.len());
    for number in 0..stored {
        let key = number.to_string();
        let there = gone.iter().filter(|gone| gone.key == key.as_bytes()).count();
        assert_eq!(handle.contains_key(&key).unwrap() as usize + there, 1, "{key}");
    }
    drop(handle);
    cache.check().unwrap();
}

/// Killed at every store, while the sink accepts or refuses: every entry is there or was delivered,
/// with one id.
#[test]
fn killed_while_somebody_leaves() {
    let mut delivered = 0;
    for accepts in [false, true] {
        for n in 0.. {
            let (cache, gate, stored) = filled();
            gate.0.store(accepts, Ordering::Relaxed);
            let mut dead = cache.handle().unwrap();
            let (_, points) =
                with_fate(Fate::Stop(n), None, || drop(dead.insert(stored.to_string(), "x")));
            declare_dead(&cache, &dead);
            std::mem::forget(dead);
            cache.recover().unwrap();
            cache.check().unwrap_or_else(|error| panic!("{error} at {n}"));
            let mut handle = cache.handle().unwrap();
            // Whatever was about to leave may leave again.
            let _ = handle.insert(stored.to_string(), "x");
            let mut ids = HashMap::new();
            for gone in gate.1.lock().unwrap().iter() {
                assert_eq!(*ids.entry(gone.key.clone()).or_insert(gone.id), gone.id, "at {n}");
            }
            assert!(accepts || ids.is_empty());
            delivered += ids.len();
            for number in 0..stored {
                let key = number.to_string();
                let there = ids.contains_key(key.as_bytes());
                assert!(there || handle.contains_key(&key).unwrap(), "{key} at {n}, {accepts}");
            }
            if n >= points {
                break;
            }
        }
    }
    assert!(delivered > 10, "{delivered}");
}

/// Two fill the same few windows: whoever is not there was delivered, once.
#[test]
fn two_make_way_for_each_other() {
    let mut cache = crowded();
    let gate = Gate::default();
    gate.0.store(true, Ordering::Relaxed);
    cache.set_sink(gate.clone());
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let cache = &cache;
            scope.spawn(move || {
                let mut handle = cache.handle().unwrap();
                for number in 0..2_000 {
                    handle.insert(format!("{thread}:{number}"), "x").unwrap();
                }
            });
        }
    });
    let report = cache.check().unwrap();
    let gone = gate.1.lock().unwrap();
    let ids: HashMap<_, _> = gone.iter().map(|gone| (gone.id, &gone.key)).collect();
    assert_eq!(ids.len(), gone.len(), "delivered twice");
    assert_eq!(report.entries as usize + gone.len(), 4_000);
    assert_eq!(cache.stats().forced, gone.len() as u64);
}
