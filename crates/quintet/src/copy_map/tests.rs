//! The map alone and among threads, with tables of every kind.

use super::*;
use crate::sync::{AtomicBool, AtomicUsize, Ordering};
use crate::vocabulary::Compute;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Every key has the same hash.
#[derive(Clone, Copy, Default)]
struct Same;

impl Hasher for Same {
    fn write(&mut self, _: &[u8]) {}
    fn finish(&self) -> u64 {
        7
    }
}

type Flood = BuildHasherDefault<Same>;

fn settings_of<K: Plain + Hash + Eq, V: Plain>(map: &CopyMap<K, V>) -> Settings {
    map.core.settings
}

/// Grows from nothing, shrinks to nothing, and agrees with std all the way.
fn agrees_with_std<V: Plain + PartialEq + std::fmt::Debug>(value: impl Fn(u64) -> V) {
    let map = CopyMap::<u64, V>::new();
    let mut std = HashMap::new();
    let mut random = 1u64;
    for step in 0..40_000u64 {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(step);
        let key = random >> 40 & if step < 25_000 { 0x3fff } else { 0x7ff };
        if random >> 20 & 3 == 0 || step > 35_000 {
            assert_eq!(map.remove(&key), std.remove(&key));
        } else {
            assert_eq!(map.insert(key, value(random)), std.insert(key, value(random)));
        }
        assert_eq!(map.get(&key), std.get(&key).copied());
        assert_eq!(map.get(&(key ^ 1)), std.get(&(key ^ 1)).copied());
    }
    assert_eq!(map.len(), std.len());
    let mut seen: Vec<_> = map.iter().map(|(key, _)| key).collect();
    seen.sort_unstable();
    let mut keys: Vec<_> = std.keys().copied().collect();
    keys.sort_unstable();
    assert_eq!(seen, keys);
    assert!(map.iter().all(|(key, value)| std.get(&key) == Some(&value)));
    map.clear();
    assert!(map.is_empty() && map.iter().next().is_none());
    assert_eq!(map.core.settings.max_load, settings_of(&CopyMap::<u64, V>::new()).max_load);
}

#[test]
fn entries_of_every_size_agree_with_std() {
    agrees_with_std(|_| ());
    agrees_with_std(|random| random);
    agrees_with_std(|random| random as u8);
    agrees_with_std(|random| [random, !random, random << 1]);
    agrees_with_std(|random| [random; 4]);
    agrees_with_std(|random| [random; 5]);
}

#[test]
fn keys_with_one_hash_are_kept_in_bounded_memory() {
    let map = CopyMap::<u64, u64, Flood>::with_hasher(Flood::default());
    let keys = if cfg!(miri) { 300 } else { 20_000u64 };
    for key in 0..keys {
        assert_eq!(map.insert(key, key), None);
    }
    assert_eq!(map.len(), keys as usize);
    assert!((0..keys).step_by(97).all(|key| map.get(&key) == Some(key)));
    assert_eq!((map.get(&keys), map.insert(3, 4), map.get(&3)), (None, Some(3), Some(4)));
    let stats = map.stats();
    assert!(stats.spilled > 0 && stats.table_bytes < 60 * keys as usize + 100_000, "{stats:?}");
    assert_eq!(map.iter().count(), keys as usize);
    map.reserve(100 * keys as usize);
    assert!((0..keys).step_by(97).all(|key| map.contains_key(&key)));
    for key in (0..keys).rev() {
        assert!(map.remove(&key).is_some(), "{key}");
    }
    assert_eq!((map.len(), map.stats().spilled), (0, 0));
}

/// Halves that always agree: whoever sees others has seen a torn entry.
fn halves(number: u64) -> [u64; 3] {
    [number, !number, number.wrapping_mul(3)]
}

fn is_whole(value: [u64; 3]) -> bool {
    value == halves(value[0])
}

/// Threads write to the same few keys, and to others so that the map grows and shrinks; nobody sees
/// half an entry, or misses a key that stays.
#[test]
fn nobody_sees_half_an_entry_or_misses_what_stays() {
    let map = CopyMap::<u64, [u64; 3]>::new();
    let stay = 64;
    (0..stay).for_each(|key| {
        map.insert(key << 32, halves(key));
    });
    let (done, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    let rounds = if cfg!(miri) { 1 } else { 12 };
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (map, done, reads) = (&map, &done, &reads);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    for key in 0..stay {
                        let value = map.get(&(key << 32)).expect("stays");
                        assert!(is_whole(value), "{value:?}");
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                    if reader == 0 {
                        let there = map.iter().filter(|(key, value)| {
                            assert!(is_whole(*value));
                            key << 32 >> 32 == 0
                        });
                        assert_eq!(there.count(), stay as usize, "seen once each");
                    }
                }
            });
        }
        let writers: Vec<_> = (1..3u64)
            .map(|writer| {
                let map = &map;
                scope.spawn(move || {
                    let count = if cfg!(miri) { 100 } else { 5_000 };
                    for round in 0..rounds {
                        for number in 0..count {
                            map.update(&((number % stay) << 32), |value| halves(value[0] + 1));
                            assert_eq!(map.insert(number << 8 | writer, halves(round)), None);
                        }
                        for number in 0..count {
                            assert_eq!(map.remove(&(number << 8 | writer)), Some(halves(round)));
                        }
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(map.len(), stay as usize);
    let updates: u64 = map.values().map(|value| value[0]).sum();
    let count = if cfg!(miri) { 100 } else { 5_000 };
    assert_eq!(updates, (0..stay).sum::<u64>() + 2 * rounds * count, "no update was lost");
}

#[test]
fn memory_comes_and_goes() {
    let map = CopyMap::<u64, u64>::new();
    let entries = if cfg!(miri) { 2_000 } else { 1_000_000u64 };
    (0..entries).for_each(|key| {
        map.insert(key, key);
    });
    map.flush();
    let full = map.memory_bytes();
    if !cfg!(miri) {
        assert!(full <= 44 * entries as usize, "{}", full / entries as usize);
    }
    (0..entries).for_each(|key| {
        map.remove(&key);
    });
    map.flush();
    let stats = map.stats();
    assert!(map.memory_bytes() <= full / 20 || cfg!(miri), "{stats:?}");
    map.shrink_to_fit();
    assert!(map.is_empty());
}

#[test]
fn a_reserved_map_does_not_grow() {
    for entries in [1, 2, 3, 10, 100, 288, 289, 1_000, 5_000, 50_000] {
        let map = CopyMap::<u64, u64>::new();
        map.reserve(entries);
        assert!(map.capacity() >= entries);
        let (before, stats) = (map.memory_bytes(), map.stats());
        (0..entries as u64).for_each(|key| {
            map.insert(key, key);
        });
        assert_eq!(map.stats().lanes, stats.lanes, "{entries}");
        assert!(map.memory_bytes() <= before + 1_000, "{entries}");
    }
}

/// A key whose hash panics, or is another one each time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
struct Liar(u64);

// SAFETY: a number.
unsafe impl Plain for Liar {}

std::thread_local! {
    static LIES: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

const PANIC: u64 = u64::MAX;

impl Hash for Liar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match LIES.get() {
            PANIC => panic!("no hash"),
            0 => state.write_u64(self.0),
            lie => {
                LIES.set(lie.wrapping_mul(0x5851_f42d_4c95_7f2d) | 1);
                state.write_u64(lie);
            }
        }
    }
}

/// The shard of an entry is the one whose lock is held, whatever its hash says when it is moved
/// (`grow` G4).
#[test]
fn hashes_that_change_lose_no_memory_and_tear_nothing() {
    let map = CopyMap::<Liar, [u64; 3]>::new();
    std::thread::scope(|scope| {
        for seed in 1..4u64 {
            let map = &map;
            scope.spawn(move || {
                LIES.set(seed);
                for number in 0..4_000 {
                    map.insert(Liar(number), halves(number));
                    assert!(map.get(&Liar(number / 2)).is_none_or(is_whole));
                    if number % 3 == 0 {
                        map.remove(&Liar(number));
                    }
                }
                assert!(map.iter().all(|(_, value)| is_whole(value)));
            });
        }
    });
    map.shrink_to_fit();
}

#[test]
fn a_panic_of_a_hash_leaves_the_map_as_it_was() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let map = CopyMap::<Liar, u64>::new();
    (0..3_000).for_each(|key| {
        map.insert(Liar(key), key);
    });
    map.core.start_for_test(&map.core.domain.pin(), 13);
    for key in [5, 3_000] {
        LIES.set(PANIC);
        assert!(catch_unwind(AssertUnwindSafe(|| map.insert(Liar(key), 1))).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| map.iter().count())).is_err());
        LIES.set(0);
    }
    // Somebody who hashes well meets one who does not half-way through a chunk.
    let hash = map.core.hash(&Liar(9_999));
    LIES.set(PANIC);
    let helps = || {
        map.core.change::<true, _>(
            &map.core.domain.join(),
            hash,
            None,
            |_| false,
            |_| Compute::Keep,
        )
    };
    assert!(catch_unwind(AssertUnwindSafe(helps)).is_err(), "it moves entries, and panics");
    LIES.set(0);
    assert_eq!(map.len(), 3_000);
    assert!((0..3_000).all(|key| map.get(&Liar(key)) == Some(key)));
    map.shrink_to_fit();
    assert!((0..3_000).all(|key| map.remove(&Liar(key)) == Some(key)));
}

/// Closures run with no lock held: they may use the map, the same key too.
#[test]
fn closures_may_use_the_map() {
    let map = CopyMap::<u64, u64>::new();
    map.insert(1, 1);
    let mut runs = 0;
    let updated = map.update(&1, |value| {
        runs += 1;
        if runs == 1 {
            map.insert(1, 10);
            (2..2_000).for_each(|key| {
                map.insert(key, key);
            });
        }
        value + 1
    });
    assert_eq!((updated, runs, map.get(&1)), (Some(11), 2, Some(11)));
    let made = map.get_or_insert_with(5_000, || {
        map.insert(5_000, 1);
        2
    });
    assert_eq!((made, map.get(&5_000)), (1, Some(1)));
    map.retain(|key, _| {
        map.insert(key + 10_000, 0);
        key < 100
    });
    assert_eq!(map.iter().filter(|(key, _)| *key < 10_000).count(), 99);
}

#[test]
fn a_migration_that_was_left_half_way_is_seen_whole() {
    let map = CopyMap::<u64, u64>::new();
    (0..5_000).for_each(|key| {
        map.insert(key, key);
    });
    for bits in [14, 11, 9] {
        map.core.start_for_test(&map.core.domain.pin(), bits);
        // Two chunks are moved by each.
        (0..40).for_each(|key| assert_eq!(map.insert(key, key), Some(key)));
        assert!(map.stats().migrating.is_some(), "{bits}");
        assert!((0..5_000).all(|key| map.get(&key) == Some(key)));
        let mut seen: Vec<_> = map.keys().collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..5_000), "{bits}");
        assert_eq!((map.remove(&77), map.insert(77, 77), map.len()), (Some(77), None, 5_000));
        map.shrink_to_fit();
    }
}
