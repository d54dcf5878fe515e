//! `HashMap` under stress: random programs against std, colliding keys, sleeping readers, panics
//! and drop counts.
#![cfg(not(any(quintet_loom, quintet_shuttle)))]

use quintet::{Compute, HashMap};
use std::collections;
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, Ordering};

/// A small generator: the test repeats by its seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// Every operation, drawn at random, answers as std's map would.
#[test]
fn random_programs_are_those_of_std() {
    for seed in 0..200 {
        let mut draw = Draw(seed);
        let keys = [3, 40, 500][seed as usize % 3];
        let mut map = HashMap::<u64, u64>::builder().shards(1 << (seed % 4)).build();
        let mut oracle = collections::HashMap::<u64, u64>::new();
        for step in 0..400 {
            let (key, new) = (draw.below(keys), step);
            let there = oracle.get(&key).copied();
            match draw.below(20) {
                0..=2 => assert_eq!(map.insert(key, new).map(|v| *v), oracle.insert(key, new)),
                3 => assert_eq!(map.insert_new(key, new).is_ok(), there.is_none()),
                4 => assert_eq!(*map.get_or_insert_with(key, || new), there.unwrap_or(new)),
                5 => assert_eq!(map.update(&key, |v| v + 1).map(|v| *v), there.map(|v| v + 1)),
                6 => {
                    let now = map.entry(key).and_update(|v| v + 2).or_insert(new);
                    assert_eq!(*now, there.map_or(new, |v| v + 2));
                }
                7 => {
                    let done = map.compute(key, |found| match found {
                        Some(value) if value % 2 == 0 => Compute::Remove,
                        Some(_) => Compute::Keep,
                        None => Compute::Insert(new),
                    });
                    assert_eq!(done.before.map(|v| *v), there);
                }
                8 => assert_eq!(map.swap(&key, new).map(|v| *v).ok(), there),
                9 => {
                    let expected = there.unwrap_or(0);
                    assert_eq!(map.compare_exchange(&key, &expected, new).is_ok(), there.is_some());
                }
                10..=12 => assert_eq!(map.remove(&key).map(|v| *v), oracle.remove(&key)),
                13 => {
                    let left = there.filter(|value| value % 3 != 0);
                    assert_eq!(map.remove_if(&key, |v| v % 3 == 0).err().map(|v| *v), left);
                }
                14 => assert_eq!(*map.get_or_compute(key, || new), there.unwrap_or(new)),
                15 => {
                    map.retain(|other, value| (other + value) % 7 != 0);
                    oracle.retain(|other, value| (*other + *value) % 7 != 0);
                }
                16 => {
                    let taken = map.extract_if(|other, _| other % 5 == key % 5).count();
                    assert_eq!(taken, oracle.extract_if(|other, _| other % 5 == key % 5).count());
                }
                17 => assert_eq!(map.get_mut(&key).copied(), there),
                18 => map.values_mut().for_each(|value| *value += 1),
                _ => map.shrink_to_fit(),
            }
            // What the oracle has not been told of above it takes over for this key.
            match map.get_cloned(&key) {
                Some(value) => drop(oracle.insert(key, value)),
                None => drop(oracle.remove(&key)),
            }
            if let Some(added) = map.iter_exact().find(|v| oracle.get(v.key()) != Some(&**v)) {
                // Only a step over all values may have changed others, by one.
                assert_eq!(oracle.get(added.key()).map(|v| v + 1), Some(*added));
                oracle.iter_mut().filter(|(other, _)| **other != key).for_each(|(_, v)| *v += 1);
            }
            assert_eq!(map.len(), oracle.len());
        }
        assert_eq!(collections::HashMap::<_, _>::from(map), oracle);
    }
}

/// All keys have one hash.
#[derive(Default)]
struct Same;

impl Hasher for Same {
    fn finish(&self) -> u64 {
        7
    }
    fn write(&mut self, _: &[u8]) {}
}

/// Slow, never memory.
#[test]
fn twenty_thousand_keys_of_one_hash_take_memory_for_themselves_alone() {
    let map = HashMap::<u64, u64, _>::with_hasher(BuildHasherDefault::<Same>::default());
    // Not by one guard: it would hold back every table that was left.
    (0..20_000).for_each(|key| assert!(map.insert(key, key).is_none()));
    assert!((0..20_000).all(|key| map.get(&key).as_deref() == Some(&key)));
    map.flush();
    assert!(map.memory_bytes() < 20_000 * 128, "{}", map.memory_bytes());
}

#[test]
fn a_reader_that_sleeps_holds_back_what_was_there() {
    let map = HashMap::<u64, u64>::new();
    (0..64).for_each(|key| drop(map.insert(key, 0)));
    let asleep = map.quiet_handle();
    let held = asleep.get(&7);
    for number in 1..200_000 {
        map.insert(number % 64, number);
    }
    assert!(map.stats().backlog_bytes < 1 << 20, "{:?}", map.stats());
    assert_eq!(held, Some(&0));
}

static ALIVE: AtomicI64 = AtomicI64::new(0);

/// Counts itself.
#[derive(PartialEq)]
struct Counted(u64);

impl Counted {
    fn new(number: u64) -> Self {
        ALIVE.fetch_add(1, Ordering::Relaxed);
        Self(number)
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        assert!(self.0 % 5 != 0, "of the clone");
        Self::new(self.0)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Every value is dropped once, whatever panics on the way.
#[test]
fn every_value_is_dropped_once_also_after_panics() {
    let map = HashMap::<u64, Counted>::new();
    let mut panics = 0;
    std::panic::set_hook(Box::new(|_| {}));
    for step in 0..5_000 {
        let (key, odd) = (step % 50, step % 7 == 0);
        let make = || {
            assert!(!odd, "of the maker");
            Counted::new(step)
        };
        panics += usize::from(
            catch_unwind(AssertUnwindSafe(|| match step % 8 {
                0 => drop(map.insert(key, Counted::new(step))),
                1 => drop(map.insert_new(key, Counted::new(step))),
                2 => drop(map.update(&key, |_| make())),
                3 => drop(map.entry(key).and_modify(|value| value.0 += 1).or_insert_with(make)),
                4 => drop(map.compute(key, |_| Compute::Insert(make()))),
                5 => drop(map.get_or_compute(key, make)),
                6 => drop(map.compare_exchange(&key, &Counted::new(step), Counted::new(step))),
                _ => drop(map.remove(&key)),
            }))
            .is_err(),
        );
    }
    let _ = std::panic::take_hook();
    assert!(panics > 100);
    drop(map);
    assert_eq!(ALIVE.load(Ordering::Relaxed), 0);
}

/// A key whose comparison does what the thread has planned.
#[derive(Clone)]
struct Scheming(u64);

thread_local! {
    static SCHEME: std::cell::RefCell<Option<Box<dyn FnOnce()>>> = const { std::cell::RefCell::new(None) };
}

impl PartialEq for Scheming {
    fn eq(&self, other: &Self) -> bool {
        let scheme = SCHEME.take();
        scheme.into_iter().for_each(|scheme| scheme());
        self.0 == other.0
    }
}
impl Eq for Scheming {}

impl std::hash::Hash for Scheming {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// A drain that goes on inside of a comparison is refused by a panic, which drops it: a second
/// panic there would end the process.
#[test]
fn a_drain_that_goes_on_inside_of_a_comparison_ends_the_call_and_not_the_process() {
    type Map = HashMap<Scheming, u64>;
    let map: &'static Map = Box::leak(Box::new((0..100).map(|key| (Scheming(key), key)).collect()));
    let inside = Box::leak(Box::new(map.pin()));
    let drains: [Box<dyn Iterator<Item = u64>>; 2] = [
        Box::new(map.drain().map(|entry| *entry)),
        Box::new(inside.drain().map(|(_, value)| *value)),
    ];
    for mut drain in drains {
        assert!(drain.next().is_some());
        SCHEME.set(Some(Box::new(move || {
            drain.next();
        })));
        let key = map.keys().next().unwrap().clone();
        let ended = catch_unwind(AssertUnwindSafe(|| map.insert(key, 0).map(drop)));
        assert!(ended.is_err(), "a write inside of a comparison is refused");
    }
    // What the drains have not come to is there, and the map goes on.
    assert_eq!(map.len(), 98);
    assert_eq!(map.iter().count(), 98);
    assert_eq!(map.drain().count(), 98);
}
