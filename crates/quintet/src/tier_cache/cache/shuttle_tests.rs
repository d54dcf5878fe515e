//! Whole operations of the cache under shuttle, on a cache so small that they all meet: nothing is
//! lost, nothing is delivered twice.

use super::layout::{FORMAT, Stored};
use super::*;
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering, schedules, thread};
use std::collections::HashMap;

const SCHEDULES: usize = 2_000;

fn sizes(blocks: u32, buckets: u32) -> Sizes {
    Sizes {
        format: FORMAT,
        buckets,
        blocks,
        seats: 5,
        block_words: 16,
        max_value: 250,
        pace: 1,
        evicts: true,
        leases: false,
        capacity: 0,
        processes: 1,
        tiers: 1,
        promotes: false,
        policy: Default::default(),
        quotas: false,
        store: Stored::NONE,
        spaces: 1,
        sums: false,
    }
}

type Ledger = Arc<Mutex<HashMap<u64, u32>>>;

/// Counts what it got, and must not be told to forget anything: nobody replaces or removes a key.
struct Counting(Ledger);

impl EvictionSink for Counting {
    fn store(&self, batch: &[Departed]) -> Result<(), String> {
        thread::yield_now();
        let mut ledger = self.0.lock();
        batch.iter().for_each(|gone| *ledger.entry(gone.id).or_default() += 1);
        Ok(())
    }

    fn withdraw(&self, batch: &[Departed]) {
        panic!("somebody else let {batch:?} leave");
    }

    fn batch(&self) -> usize {
        3
    }
}

/// Three fill a cache that is too small for them, in few buckets: whatever was added is there or
/// was delivered once.
#[test]
fn shuttle_cache_every_departure_is_delivered_once() {
    schedules(SCHEDULES, || {
        let mut cache = TierCache::create_sealed(sizes(8, 2)).unwrap();
        let ledger = Ledger::new(Mutex::new(HashMap::new()));
        cache.set_sink(Counting(Arc::clone(&ledger)));
        let cache = Arc::new(cache);
        let worker = |number: u32| {
            let cache = Arc::clone(&cache);
            move || {
                let mut handle = cache.handle().unwrap();
                for step in 0..6u32 {
                    handle.insert(format!("{number}:{step}"), step.to_le_bytes()).unwrap();
                }
            }
        };
        let threads: Vec<_> = (0..3).map(|number| thread::spawn(worker(number))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let report = cache.check().unwrap();
        let delivered = ledger.lock();
        assert!(delivered.values().all(|times| *times == 1), "{delivered:?}");
        assert_eq!(report.entries as usize + delivered.len(), 18);
    });
}

/// Values of several blocks are replaced and removed while others read them.
#[test]
fn shuttle_cache_values_are_whole() {
    schedules(SCHEDULES, || {
        // Nothing to spare: whatever one frees the next one fills.
        let cache = Arc::new(TierCache::create_sealed(sizes(9, 2)).unwrap());
        cache.handle().unwrap().insert("k", vec![9; 200]).unwrap();
        let writer = |byte: u8| {
            let cache = Arc::clone(&cache);
            move || {
                let mut handle = cache.handle().unwrap();
                handle.insert("k", vec![byte; 150 + byte as usize]).unwrap();
                handle.remove("k").unwrap();
                handle.insert("k", vec![byte + 1; 250]).unwrap();
            }
        };
        let writers = [10, 20].map(|byte| thread::spawn(writer(byte)));
        let mut handle = cache.handle().unwrap();
        for _ in 0..4 {
            if let Some(value) = handle.get("k").unwrap() {
                let whole = value.iter().all(|byte| *byte == value[0]);
                assert!(whole && value.len() >= 150, "{value:?}");
            }
        }
        drop(handle);
        writers.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(cache.check().unwrap().entries, 1);
    });
}

/// A computation fails, another takes over, the third waits; and somebody removes the answer.
#[test]
fn shuttle_cache_flights_are_handed_over() {
    schedules(SCHEDULES, || {
        let cache = Arc::new(TierCache::create_sealed(sizes(8, 2)).unwrap());
        let (inside, computed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let ask = |fails: bool| {
            let (cache, inside) = (Arc::clone(&cache), Arc::clone(&inside));
            let computed = Arc::clone(&computed);
            move || {
                let mut handle = cache.handle().unwrap();
                let answer = handle.get_or_try_compute("k", None, || {
                    assert_eq!(inside.fetch_add(1, Ordering::AcqRel), 0, "one at a time");
                    thread::yield_now();
                    inside.fetch_sub(1, Ordering::AcqRel);
                    computed.fetch_add(!fails as usize, Ordering::AcqRel);
                    if fails { Err(()) } else { Ok(vec![1]) }
                });
                assert!(matches!(answer.unwrap(), Ok(value) if value == [1]) || fails);
            }
        };
        let threads = [true, false, false].map(|fails| thread::spawn(ask(fails)));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(computed.load(Ordering::Acquire), 1);
        cache.check().unwrap();
    });
}

/// The same in two halves: one gives its flight up, the others complete theirs or ask again; and
/// one computation is enough.
#[test]
fn shuttle_cache_flights_in_two_halves() {
    schedules(SCHEDULES, || {
        let cache = Arc::new(TierCache::create_sealed(sizes(8, 2)).unwrap());
        let (inside, computed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let ask = |gives_up: bool| {
            let (cache, inside) = (Arc::clone(&cache), Arc::clone(&inside));
            let computed = Arc::clone(&computed);
            move || loop {
                match cache.handle().unwrap().begin("k").unwrap() {
                    Begun::Value(value) => break assert_eq!(value, [1]),
                    Begun::Busy => thread::yield_now(),
                    Begun::Flight(flight) => {
                        assert_eq!(inside.fetch_add(1, Ordering::AcqRel), 0, "one at a time");
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::AcqRel);
                        if gives_up {
                            break drop(flight);
                        }
                        computed.fetch_add(1, Ordering::AcqRel);
                        flight.complete([1], None).unwrap();
                    }
                }
            }
        };
        let threads = [true, false, false].map(|gives_up| thread::spawn(ask(gives_up)));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(computed.load(Ordering::Acquire), 1);
        assert_eq!(cache.check().unwrap().entries, 1, "no flight is left");
    });
}
