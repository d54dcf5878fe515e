//! Versioned reads, changes and migration under loom: every order of steps that the memory model
//! allows, up to two preemptions where one table is at work and one (a sleep at any step) where
//! tables are migrated; see `model_of_growth`.
//!
//! Tables are as small as they get: buckets of one lane, groups of one bucket, two shards. A key's
//! top bit is its shard; its hash is the key.

use super::*;
use crate::sync::{Arc, thread};
use std::hash::{BuildHasherDefault, Hasher};

/// A key is its own hash.
#[derive(Clone, Copy, Default)]
struct Own(u64);

impl Hasher for Own {
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

type Value = [u64; 2];
type Map = CopyMap<u64, Value, BuildHasherDefault<Own>>;

/// Two keys of the same home and tag, and one of another shard. Bit 62 tells the first two apart in
/// a table of two buckets for each shard.
const LOW: u64 = 0x11;
const NEAR: u64 = 1 << 62 | 0x11;
const HIGH: u64 = 1 << 63 | 0x11;

/// Two keys whose home is that of `LOW` in a table of two buckets for each shard, too.
const BEHIND: u64 = 1 << 61 | 0x11;
const THIRD: u64 = 1 << 60 | 0x11;

/// A value whose halves agree.
const fn whole(number: u64) -> Value {
    [number, !number]
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    crate::sync::model(2, check);
}

fn map_of(small: bool, entries: &[(u64, u64)]) -> Arc<Map> {
    map_with(Settings { small, ..Settings::usual::<u64, Value>() }, entries)
}

/// Ways of two buckets.
fn map_of_ways(entries: &[(u64, u64)]) -> Arc<Map> {
    map_with(Settings { first_bits: 2, ..Settings::usual::<u64, Value>() }, entries)
}

fn map_with(settings: Settings, entries: &[(u64, u64)]) -> Arc<Map> {
    let map = Map { core: Core::new(settings, Default::default()), types: PhantomData };
    for &(key, number) in entries {
        map.handle().insert(key, whole(number));
    }
    Arc::new(map)
}

fn map(entries: &[(u64, u64)]) -> Arc<Map> {
    map_of(false, entries)
}

fn spawn<R: 'static>(
    map: &Arc<Map>,
    work: impl FnOnce(&Handle<'_, u64, Value, BuildHasherDefault<Own>>) -> R + 'static,
) -> thread::JoinHandle<R> {
    let map = Arc::clone(map);
    thread::spawn(move || work(&map.handle()))
}

/// Migrates to a table of another size, to the end.
fn grow(map: &Map, bits: u32) {
    let seat = map.core.domain.join();
    let section = seat.pin();
    if map.core.settle(&section).unwrap().is_some_and(|table| table.plan().bits < bits) {
        map.core.start_for_test(&section, bits);
    }
    map.core.settle(&section).unwrap();
}

#[test]
fn loom_copy_a_value_of_two_words_is_read_whole() {
    model(|| {
        let map = map(&[(LOW, 1)]);
        let other = spawn(&map, |handle| handle.insert(LOW, whole(2)));
        let seen = map.handle().get(&LOW);
        assert!(seen == Some(whole(1)) || seen == Some(whole(2)), "{seen:?}");
        assert_eq!(other.join().unwrap(), Some(whole(1)));
        assert_eq!(map.handle().get(&LOW), Some(whole(2)));
    });
}

/// The lane of a removed key becomes another's while a reader copies it; both have the same tag.
#[test]
fn loom_copy_a_lane_that_changes_hands_is_read_whole() {
    // With two preemptions a copy that nothing confirms goes unseen here.
    crate::sync::model(3, || {
        let map = map(&[(LOW, 1)]);
        let other = spawn(&map, |handle| {
            assert_eq!(handle.remove(&LOW), Some(whole(1)));
            assert_eq!(handle.insert(NEAR, whole(2)), None);
        });
        let handle = map.handle();
        let seen = handle.get(&LOW);
        assert!(seen.is_none() || seen == Some(whole(1)), "{seen:?}");
        let near = handle.get(&NEAR);
        assert!(near.is_none() || near == Some(whole(2)), "{near:?}");
        other.join().unwrap();
        assert_eq!((handle.get(&LOW), handle.get(&NEAR)), (None, Some(whole(2))));
    });
}

#[test]
fn loom_copy_two_inserts_of_one_key_see_each_other_once() {
    model(|| {
        let map = map(&[(HIGH, 9)]);
        let other = spawn(&map, |handle| handle.insert(LOW, whole(1)));
        let ours = map.handle().insert(LOW, whole(2));
        let theirs = other.join().unwrap();
        let left = map.handle().get(&LOW);
        let (one, two) = (Some(whole(1)), Some(whole(2)));
        assert!(
            (ours, theirs, left) == (None, two, one) || (ours, theirs, left) == (one, None, two)
        );
        assert_eq!(map.len(), 2);
    });
}

/// Two updates of one key: one of them looks again.
#[test]
fn loom_copy_updates_are_not_lost() {
    model(|| {
        let map = map(&[(LOW, 1)]);
        let other = spawn(&map, |handle| handle.update(&LOW, |value| whole(value[0] + 1)));
        map.handle().update(&LOW, |value| whole(value[0] + 1));
        other.join().unwrap();
        assert_eq!(map.handle().get(&LOW), Some(whole(3)));
    });
}

/// A key that has no lane is in the list; one that gets the lane of another meanwhile is found too.
#[test]
fn loom_copy_a_list_is_read_while_it_changes() {
    model(|| {
        let map = map(&[(LOW, 1), (NEAR, 2)]);
        let other = spawn(&map, |handle| {
            assert_eq!(handle.remove(&LOW), Some(whole(1)));
            handle.insert(NEAR, whole(3))
        });
        let seen = map.handle().get(&NEAR);
        assert!(seen == Some(whole(2)) || seen == Some(whole(3)), "{seen:?}");
        assert_eq!(other.join().unwrap(), Some(whole(2)));
        assert_eq!(map.len(), 1);
    });
}

/// Home has a free lane, and somebody lies behind it.
#[test]
fn loom_copy_two_inserts_at_a_home_that_was_passed_see_each_other_once() {
    model(|| {
        let map = map_of_ways(&[(LOW, 9), (BEHIND, 8)]);
        assert_eq!(map.handle().remove(&LOW), Some(whole(9)));
        let other = spawn(&map, |handle| handle.insert(THIRD, whole(1)));
        let ours = map.handle().insert(THIRD, whole(2));
        let theirs = other.join().unwrap();
        let (one, two) = (Some(whole(1)), Some(whole(2)));
        assert!((ours, theirs) == (None, two) || (ours, theirs) == (one, None));
        assert_eq!((map.len(), map.handle().get(&BEHIND)), (2, Some(whole(8))));
    });
}

#[test]
fn loom_copy_who_lies_behind_its_home_is_removed_once() {
    model(|| {
        let map = map_of_ways(&[(LOW, 9), (BEHIND, 8)]);
        let other = spawn(&map, |handle| handle.remove(&BEHIND));
        let handle = map.handle();
        let seen = handle.get(&BEHIND);
        assert!(seen.is_none() || seen == Some(whole(8)), "{seen:?}");
        let ours = handle.remove(&BEHIND);
        assert!(ours.is_some() != other.join().unwrap().is_some());
        assert_eq!((handle.get(&BEHIND), handle.get(&LOW)), (None, Some(whole(9))));
        assert_eq!(map.len(), 1);
    });
}

#[test]
fn loom_copy_a_reader_during_growth_never_misses() {
    crate::sync::model_of_growth(|| {
        let map = map(&[(LOW, 10)]);
        let other = spawn(&map, |handle| handle.get(&LOW));
        grow(&map, 2);
        assert_eq!(map.handle().insert(LOW, whole(11)), Some(whole(10)));
        let seen = other.join().unwrap();
        assert!(seen == Some(whole(10)) || seen == Some(whole(11)), "{seen:?}");
    });
}

/// The key of the list is moved, too.
#[test]
fn loom_copy_a_reader_of_a_list_during_growth_never_misses() {
    crate::sync::model_of_growth(|| {
        let map = map(&[(LOW, 10), (NEAR, 20)]);
        let other = spawn(&map, |handle| handle.get(&NEAR));
        grow(&map, 2);
        assert_eq!(other.join().unwrap(), Some(whole(20)));
        assert_eq!(map.handle().get(&NEAR), Some(whole(20)));
    });
}

#[test]
fn loom_copy_an_insert_during_migration_of_its_shard_is_not_lost() {
    crate::sync::model_of_growth(|| {
        let map = map(&[(LOW, 10)]);
        let other = spawn(&map, |handle| handle.insert(NEAR, whole(7)));
        grow(&map, 2);
        assert_eq!(other.join().unwrap(), None);
        let handle = map.handle();
        assert_eq!((handle.get(&LOW), handle.get(&NEAR)), (Some(whole(10)), Some(whole(7))));
        assert_eq!((map.len(), map.handle().iter().count()), (2, 2));
    });
}

#[test]
fn loom_copy_an_update_survives_migration() {
    crate::sync::model_of_growth(|| {
        let map = map(&[(LOW, 10)]);
        let other = spawn(&map, |handle| handle.update(&LOW, |value| whole(value[0] + 1)));
        grow(&map, 2);
        assert_eq!(other.join().unwrap(), Some(whole(11)));
        assert_eq!((map.handle().get(&LOW), map.len()), (Some(whole(11)), 1));
    });
}

/// The other may fall asleep with a chunk in its hands while the map grows twice.
#[test]
fn loom_copy_a_mover_asleep_across_two_growths_changes_nothing() {
    crate::sync::model_of_growth(|| {
        let map = map(&[(LOW, 10)]);
        let other = {
            let map = Arc::clone(&map);
            thread::spawn(move || grow(&map, 2))
        };
        grow(&map, 2);
        assert_eq!(map.handle().remove(&LOW), Some(whole(10)));
        grow(&map, 3);
        assert_eq!(map.handle().get(&LOW), None);
        other.join().unwrap();
        assert_eq!(map.handle().get(&LOW), None, "a sleeping mover has brought it back");
        assert_eq!(map.len(), 0);
    });
}

/// A small table is left at once while another reads and writes.
#[test]
fn loom_copy_a_small_table_is_left_whole() {
    crate::sync::model_of_growth(|| {
        let map = map_of(true, &[(LOW, 10)]);
        let other = spawn(&map, |handle| {
            assert_eq!(handle.get(&LOW), Some(whole(10)));
            handle.insert(LOW, whole(11))
        });
        grow(&map, 1);
        assert_eq!(other.join().unwrap(), Some(whole(10)));
        assert_eq!((map.handle().get(&LOW), map.len()), (Some(whole(11)), 1));
    });
}

/// A walk keeps no table, and still meets what stays, once.
#[test]
fn loom_copy_a_walk_during_growth_meets_what_stays_once() {
    crate::sync::model_of_growth(|| {
        let map = map(&[(LOW, 10), (HIGH, 20)]);
        let other = {
            let map = Arc::clone(&map);
            thread::spawn(move || map.iter().map(|(key, _)| key).collect::<Vec<_>>())
        };
        grow(&map, 2);
        assert_eq!(other.join().unwrap(), [LOW, HIGH]);
    });
}
