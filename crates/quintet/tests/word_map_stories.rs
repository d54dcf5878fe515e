//! Workloads that broke other tables of this kind, and what must not happen here.

use quintet::WordMap;
use std::thread;
use std::time::Duration;

const THREADS: u64 = 6;
const KEYS: u64 = 20_000;

/// A table that starts tiny, so that it grows under the threads.
fn together(work: impl Fn(u64, &WordMap) + Sync) -> WordMap {
    let map = WordMap::new();
    thread::scope(|scope| {
        (0..THREADS).for_each(|thread| {
            let (work, map) = (&work, &map);
            scope.spawn(move || work(thread, map));
        });
    });
    map
}

/// All threads add the same keys.
#[test]
fn workload_two_all_add_the_same() {
    let map = together(|_, map| {
        let handle = map.handle();
        (0..KEYS).for_each(|key| {
            handle.insert(key, key + 1);
        });
    });
    assert_eq!(map.len() as u64, KEYS);
    assert!((0..KEYS).all(|key| map.pin().get(key) == Some(key + 1)));
}

/// The same keys, a value of its own per thread; half of the threads sleep now and then.
#[test]
fn workload_four_sleepers_among_writers() {
    let map = together(|thread, map| {
        let handle = map.handle();
        for key in 0..KEYS {
            handle.insert(key, key * THREADS + thread);
            if thread % 2 == 0 && key % 512 == 0 {
                thread::sleep(Duration::from_micros(key % 20));
            }
        }
    });
    assert_eq!(map.len() as u64, KEYS);
    assert!((0..KEYS).all(|key| map.pin().get(key).map(|value| value / THREADS) == Some(key)));
}

/// Ranges of one's own: add, find, remove.
#[test]
fn workload_five_add_find_remove() {
    let map = together(|thread, map| {
        let handle = map.handle();
        let range = thread * KEYS..(thread + 1) * KEYS;
        range.clone().for_each(|key| assert_eq!(handle.insert(key, key), None));
        range.clone().for_each(|key| assert_eq!(handle.get(key), Some(key)));
        range.clone().for_each(|key| assert_eq!(handle.remove(key), Some(key)));
        range.for_each(|key| assert_eq!(handle.get(key), None, "found after remove"));
    });
    assert!(map.is_empty());
}

/// Add, update, remove, add again, find, remove.
#[test]
fn workload_seven_two_lives_of_a_key() {
    let map = together(|thread, map| {
        let handle = map.handle();
        for key in thread * KEYS..(thread + 1) * KEYS {
            assert_eq!(handle.insert(key, 1), None);
            assert_eq!(handle.insert(key, 2), Some(1));
            assert_eq!(handle.remove(key), Some(2));
            assert_eq!(handle.remove(key), None, "removed twice");
            assert_eq!(handle.insert(key, 3 * key), None);
        }
        for key in thread * KEYS..(thread + 1) * KEYS {
            assert_eq!(handle.get(key), Some(3 * key));
            assert_eq!(handle.remove(key), Some(3 * key));
        }
    });
    assert!(map.is_empty());
}

/// Random keys.
#[test]
fn workload_eight_random_keys() {
    let map = together(|thread, map| {
        let handle = map.handle();
        let mut dice = thread + 1;
        for _ in 0..KEYS {
            dice = dice.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            handle.fetch_add((dice >> 33) % KEYS, 1);
        }
    });
    assert_eq!(map.pin().iter().map(|(_, count)| count).sum::<u64>(), THREADS * KEYS);
}

/// Ten million keys come and go, a thousand are there at a time: memory stays where it was.
#[test]
fn churn_at_constant_size_keeps_memory_flat() {
    let turns: u64 = if cfg!(debug_assertions) { 2_000_000 } else { 10_000_000 };
    let map: WordMap = WordMap::new();
    let handle = map.handle();
    let mut most = 0;
    for turn in 0..turns {
        handle.insert(turn, turn);
        if turn >= 1_000 {
            assert_eq!(handle.remove(turn - 1_000), Some(turn - 1_000));
        }
        if turn % 1_000 == 0 {
            most = most.max(map.memory_bytes());
        }
    }
    assert_eq!(map.len(), 1_000);
    // One or two small tables, and those that wait for their batch to fill.
    assert!(most < 4 << 20, "{most} bytes for a thousand entries");
    assert!(map.stats().migrations > 100);
}

/// A handle that sleeps, or was forgotten, holds no memory back.
#[test]
fn idle_and_forgotten_handles_hold_nothing_back() {
    let map: WordMap = WordMap::new();
    let idle = map.handle();
    idle.insert(0, 0);
    let forgotten = map.handle();
    forgotten.insert(1, 1);
    std::mem::forget(forgotten);
    let handle = map.handle();
    for round in 0..20 {
        (2..100_000).for_each(|key| {
            handle.insert(key, round);
        });
        (2..100_000).for_each(|key| {
            handle.remove(key);
        });
    }
    handle.flush();
    assert!(map.memory_bytes() < 1 << 20, "{} bytes", map.memory_bytes());
    assert_eq!(idle.get(0), Some(0));
}

/// A closure may use the map, and may panic: nothing is lost and nobody is stuck.
#[test]
fn closures_may_use_the_map_and_may_panic() {
    let map: WordMap = (0..100).map(|key| (key, key)).collect();
    let handle = map.handle();
    let sum = handle.update(1, |value| value + handle.get(2).unwrap_or(0));
    assert_eq!((sum, handle.get(1)), (Some(3), Some(3)));
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        handle.update(5, |_| panic!("on purpose"));
    }));
    assert!(outcome.is_err());
    assert_eq!(handle.get(5), Some(5));
    (100..10_000).for_each(|key| assert_eq!(handle.insert(key, key), None));
    assert_eq!(map.len(), 10_000);
}

/// Counts of used slots once died with the access that made them: a map filled by one `pin()` per
/// insert never saw that it was full, took its long probes for an attack, and ended in the lines
/// behind its table.
#[test]
fn short_lived_accesses_do_not_lose_count() {
    let entries = 100_000u64;
    let check = |map: &WordMap, how: &str| {
        let stats = map.stats();
        assert_eq!(stats.len as u64, entries, "{how}");
        assert!(stats.load <= 0.85, "{how}: load {}", stats.load);
        let far: usize = stats.probes[15];
        assert!(far * 20 < stats.len, "{how}: {far} entries lie 15 slots or more from home");
    };
    let pinned = WordMap::new();
    (0..entries).for_each(|key| assert_eq!(pinned.pin().insert(key, key), None));
    check(&pinned, "one pin per insert");
    let handled = WordMap::new();
    std::thread::scope(|scope| {
        for part in 0..4 {
            let map = &handled;
            scope.spawn(move || {
                for key in (0..entries).skip(part).step_by(4) {
                    assert_eq!(map.handle().insert(key, key), None);
                }
            });
        }
    });
    check(&handled, "one handle per insert");
}
