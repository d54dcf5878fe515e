//! The map against its oracle, alone and among threads.

use super::*;
use crate::Compute;
use std::collections::HashMap;

/// A generator that is good enough to shuffle operations.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn every_word_is_a_key_and_a_value() {
    let map = WordMap::new();
    let handle = map.handle();
    let words = [0, 1, 2, 3, 7, 8, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1, 0x5555];
    for (index, &key) in words.iter().enumerate() {
        assert_eq!(handle.insert(key, words[words.len() - 1 - index]), None);
    }
    for (index, &key) in words.iter().enumerate() {
        assert_eq!(handle.get(key), Some(words[words.len() - 1 - index]));
    }
    assert_eq!(map.len(), words.len());
}

#[test]
fn follows_the_oracle_through_growth_and_shrinking() {
    for seed in 1..20 {
        let map = WordMap::<u64, u64>::builder().seed(seed).build();
        let handle = map.handle();
        let mut oracle = HashMap::new();
        let mut dice = Dice(seed * 0x9e37_79b9);
        for step in 0..60_000u64 {
            // Grow for a while, then shrink for a while.
            let growing = step / 10_000 % 2 == 0;
            let key = dice.roll() % if growing { 5_000 } else { 500 };
            match (dice.roll() % 8, growing) {
                (0..=3, true) | (0, false) => {
                    assert_eq!(handle.insert(key, step), oracle.insert(key, step));
                }
                (4, _) => assert_eq!(handle.get(key), oracle.get(&key).copied()),
                (5, true) => {
                    let old = oracle.get(&key).copied();
                    assert_eq!(handle.insert_new(key, step).err().map(|no| no.current), old);
                    oracle.entry(key).or_insert(step);
                }
                _ => {
                    let key = if growing { key } else { dice.roll() % 5_000 };
                    assert_eq!(handle.remove(key), oracle.remove(&key));
                }
            }
        }
        assert_eq!(map.len(), oracle.len());
        let mut seen: Vec<_> = handle.iter().collect();
        let mut expected: Vec<_> = oracle.into_iter().collect();
        seen.sort_unstable();
        expected.sort_unstable();
        assert_eq!(seen, expected);
    }
}

/// What is left is moved to a fourth of the size each time, and in the end there is a small table.
#[test]
fn a_map_that_is_emptied_shrinks_in_few_steps() {
    const ENTRIES: u64 = 100_000;
    let map = WordMap::<u64, u64>::with_capacity(ENTRIES as usize);
    let handle = map.handle();
    (0..ENTRIES).for_each(|key| {
        handle.insert(key, key);
    });
    assert_eq!(map.stats().migrations, 0);
    let size = map.stats().tables[0].size;
    (0..ENTRIES).for_each(|key| {
        assert_eq!(handle.remove(key), Some(key));
    });
    let stats = map.stats();
    let steps = size.ilog2() as usize / 2;
    assert!(stats.migrations <= steps, "{} steps down from {size}", stats.migrations);
    let left: usize = stats.tables.iter().map(|table| table.size).sum();
    // Where the last step ends depends on when it began.
    assert!(left <= size / 64, "{left} of {size}");
}

#[test]
fn a_removed_key_is_absent_and_a_second_remove_says_so() {
    let map = WordMap::new();
    let handle = map.handle();
    for key in 0..1_000u64 {
        handle.insert(key, key);
        assert_eq!(handle.remove(key), Some(key));
        assert_eq!(handle.get(key), None);
        assert_eq!(handle.remove(key), None);
    }
    assert!(map.is_empty());
}

/// Six threads, each with keys of its own, from a tiny table: nothing is lost, nothing comes back.
#[test]
fn single_owner_stress_from_a_tiny_table() {
    let rounds = if cfg!(debug_assertions) { 6 } else { 60 };
    for round in 0..rounds {
        let map = WordMap::new();
        std::thread::scope(|scope| {
            for thread in 0..6u64 {
                let map = &map;
                scope.spawn(move || own_keys(&map.handle(), thread, round));
            }
        });
        assert_eq!(map.len(), 6 * 5_000, "a third of the keys stays");
    }
}

fn own_keys(handle: &Handle<'_, u64, u64>, thread: u64, round: u64) {
    let key = |index: u64| index * 6 + thread;
    for index in 0..15_000 {
        let value = index ^ round;
        assert_eq!(handle.insert(key(index), value), None);
        assert_eq!(handle.insert(key(index), value + 1), Some(value));
        if index % 3 != 0 {
            assert_eq!(handle.remove(key(index)), Some(value + 1), "lost");
            assert_eq!(handle.get(key(index)), None, "found after remove");
        }
        let old = index / 2;
        assert_eq!(handle.get(key(old)).is_some(), old % 3 == 0, "lost or back again");
    }
    for index in 0..15_000 {
        assert_eq!(handle.get(key(index)).is_some(), index % 3 == 0, "lost or back again");
    }
}

/// A closure that writes by the same seat, between the look and the exchange of its caller: both
/// are counted (`books` A1).
#[test]
fn writes_inside_of_writes_are_counted() {
    let map = WordMap::<u64, u64>::new();
    let (handle, pin) = (map.handle(), map.pin());
    for key in 0..5_000 {
        let _ = handle.compute(key, |_| {
            handle.insert(key + 100_000, 1);
            let _ = pin.compute(key + 200_000, |_| {
                pin.insert(key + 300_000, 1);
                Compute::Insert(1)
            });
            Compute::Insert(1)
        });
        let _ = map.compute(key + 300_000, |_| {
            pin.remove(key + 200_000);
            Compute::Remove
        });
    }
    assert_eq!((map.len(), handle.iter().count()), (10_000, 10_000));
}

/// Pins that live for one write each, by threads that come and go: seats are taken over, and count
/// on (`books` A2).
#[test]
fn writes_by_short_pins_are_counted() {
    let map = WordMap::<u64, u64>::new();
    for round in 0..20u64 {
        std::thread::scope(|scope| {
            for thread in 0..3u64 {
                let (map, base) = (&map, (round * 3 + thread) * 1_000);
                scope.spawn(move || {
                    (0..1_000).for_each(|key| assert_eq!(map.pin().insert(base + key, 1), None));
                    (0..500).for_each(|key| assert!(map.pin().remove(base + key).is_some()));
                });
            }
        });
    }
    assert_eq!((map.len(), map.pin().iter().count()), (30_000, 30_000));
}

/// Keys that have the last home in common under the first seed, and under the second as well: they
/// fill its reach and go on behind the table. The map slows down; it neither grows without end nor
/// loses anything.
#[test]
fn a_flood_under_two_seeds_ends_behind_the_table() {
    let (secrets, shape) = (word::Secrets::of(7), word::Shape::new(11));
    let last = |seed, key: u64| {
        shape.home(word::Folder::new(seed).hash(key ^ secrets.add)) == shape.size() / 4 - 1
    };
    let keys: Vec<u64> = (0..).filter(|&key| last(7, key) && last(8, key)).take(320).collect();
    let (keys, others) = keys.split_at(300);
    let map = WordMap::<u64, u64>::builder().seed(7).capacity(700).build();
    let handle = map.handle();
    for (value, &key) in keys.iter().enumerate() {
        assert_eq!(handle.insert(key, value as u64), None);
    }
    let stats = map.stats();
    assert_eq!((stats.tables.len(), stats.tables[0].size), (1, 2048), "{stats:?}");
    assert_eq!(stats.migrations, 1, "one reseed");
    assert!(stats.probes.iter().sum::<usize>() < 300, "some are behind the table");
    let all = |last| {
        let value = |(value, key): (usize, &u64)| handle.get(*key) == Some(value as u64);
        keys[..299].iter().enumerate().all(value) && handle.get(keys[299]) == last
    };
    assert!(all(Some(299)));
    assert_eq!(handle.remove(keys[299]), Some(299));
    assert_eq!(handle.remove(keys[299]), None);
    assert!(all(None));
    assert_eq!(handle.insert(keys[299], 99), None);
    assert!(others.iter().all(|key| handle.get(*key).is_none()));
    let mut seen: Vec<_> = handle.iter().map(|(key, _)| key).collect();
    seen.sort_unstable();
    let mut expected = keys.to_vec();
    expected.sort_unstable();
    assert_eq!(seen, expected);
    // Growth takes along what is behind.
    handle.reserve(10_000);
    assert!(all(Some(99)));
    assert_eq!(map.len(), 300);
}

/// 10,000 entries are less than a quarter of what their table may hold, yet too many for the next
/// smaller one, which is filled by half as much.
#[test]
fn a_window_is_not_shrunk_into_a_table_of_the_same_size() {
    const WINDOW: u64 = 10_000;
    let map = WordMap::<u64, u64>::new();
    let handle = map.handle();
    for key in 0..WINDOW {
        handle.insert(key, key);
    }
    let before = map.stats().migrations;
    for key in WINDOW..11 * WINDOW {
        handle.insert(key, key);
        assert_eq!(handle.remove(key - WINDOW), Some(key - WINDOW));
    }
    let migrations = map.stats().migrations - before;
    assert!(migrations <= 8, "{migrations} migrations for 100,000 changes");
}

/// A copy that needs a block behind the successor gets no memory for it: once the process ended
/// there. Now whoever needs the copy hears of it, nothing is lost, and the migration ends when
/// there is memory again.
#[test]
fn a_copy_without_memory_for_a_block_loses_nothing() {
    let (secrets, shape) = (word::Secrets::of(7), word::Shape::new(11));
    let last = |seed, key: u64| {
        shape.home(word::Folder::new(seed).hash(key ^ secrets.add)) == shape.size() / 4 - 1
    };
    let keys: Vec<u64> = (0..).filter(|&key| last(7, key) && last(8, key)).take(300).collect();
    let map = WordMap::<u64, u64>::builder().seed(7).capacity(700).build();
    let handle = map.handle();
    let mut values: HashMap<u64, u64> = keys.iter().map(|&key| (key, key + 1)).collect();
    for (&key, &value) in &values {
        assert_eq!(handle.insert(key, value), None);
    }
    let all = |values: &HashMap<u64, u64>, when| {
        for (&key, &value) in values {
            assert_eq!(handle.get(key), Some(value), "{when}");
        }
    };
    {
        // A successor of the same size and seed: some of the keys lie behind it again.
        let section = map.core.domain.pin();
        let table = map.core.root.follow(&section).unwrap().unwrap();
        map.core.start(&section, table, 11, table.plan().seed, true).unwrap();
    }
    more::tests::REFUSED.set(true);
    let (mut done, mut refused) = (0, 0);
    for round in 2..5 {
        for &key in &keys {
            match handle.fallible().insert(key, key + round) {
                Ok(before) => {
                    assert_eq!(values.insert(key, key + round), before);
                    done += 1;
                }
                Err(_) => refused += 1,
            }
        }
        all(&values, "without memory");
    }
    assert!(done >= 3 * 260 && refused > 0, "{done} {refused}");
    {
        // The seat whose operations have moved what they could.
        let section = crate::reclaim::Access::section(handle.way().access);
        assert!(map.core.settle(&section).is_err());
        // The number that stands in the frozen slot is nobody's any more (`desc` WL14.4), and one
        // is lost.
        let hand = map.core.descriptors.hand(section.books()).unwrap();
        hand.hold(1);
        hand.put_back();
        assert!(map.core.descriptors.count() <= 3, "{}", map.core.descriptors.count());
    }
    all(&values, "frozen");
    more::tests::REFUSED.set(false);
    assert_eq!(map.len(), 300);
    handle.insert(keys[0], 0);
    assert!(map.core.settle(&map.core.domain.pin()).is_ok());
    values.insert(keys[0], 0);
    all(&values, "with memory again");
    assert_eq!((map.stats().tables.len(), map.len()), (1, 300));
}
