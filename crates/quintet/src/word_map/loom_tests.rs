//! The slot protocol under loom: every order of steps that the memory model allows, up to two
//! preemptions where one table is at work and one (a sleep at any step) where tables are migrated;
//! see `model_of_growth`.
//!
//! Tables are as small as they get: one line of two lanes, chunks of a line. From two lines on a
//! key's top bit is its home.

use super::*;
use crate::sync::{Arc, thread};

type Map = WordMap<u64, u64>;

/// A value that needs a cell, and the next one, which does too.
const SPECIAL: u64 = 1 << 63;
const NEXT: u64 = SPECIAL + 1;

/// A key with home 0 and one with home 1 (of two homes).
const LOW: u64 = 0x11;
const HIGH: u64 = 1 << 55 | 0x22;

fn model(check: impl Fn() + Sync + Send + 'static) {
    crate::sync::model(2, check);
}

fn map(entries: &[(u64, u64)]) -> Arc<Map> {
    let map = Map::new();
    {
        let handle = map.handle();
        for &(key, value) in entries {
            handle.insert(key, value);
        }
    }
    Arc::new(map)
}

fn spawn<R: 'static>(
    map: &Arc<Map>,
    work: impl FnOnce(&Handle<'_, u64, u64>) -> R + 'static,
) -> thread::JoinHandle<R> {
    let map = Arc::clone(map);
    thread::spawn(move || work(&map.handle()))
}

/// Migrates to a table of another size, to the end.
fn grow(handle: &Handle<'_, u64, u64>, bits: u32) {
    handle.map().core.grow_to(handle.way().access, bits).unwrap();
}

#[test]
fn loom_two_inserts_of_one_key_see_each_other_once() {
    model(|| {
        let map = map(&[(HIGH, 9)]);
        let other = spawn(&map, |handle| handle.insert(LOW, 1));
        let ours = map.handle().insert(LOW, 2);
        let theirs = other.join().unwrap();
        let left = map.handle().get(LOW);
        assert!(matches!(
            (ours, theirs, left),
            (None, Some(2), Some(1)) | (Some(1), None, Some(2))
        ));
        assert_eq!(map.len(), 2);
    });
}

#[test]
fn loom_insert_and_remove_of_one_key() {
    model(|| {
        let map = map(&[(LOW, 1)]);
        let other = spawn(&map, |handle| handle.remove(LOW));
        let ours = map.handle().insert(LOW, 2);
        let theirs = other.join().unwrap();
        let left = map.handle().get(LOW);
        assert!(matches!(
            (ours, theirs, left),
            (Some(1), Some(2), None) | (None, Some(1), Some(2))
        ));
    });
}

#[test]
fn loom_an_update_survives_the_freeze() {
    crate::sync::model_of_growth(|| {
        let map = map(&[(LOW, 10)]);
        let other = spawn(&map, |handle| handle.fetch_add(LOW, 1));
        let handle = map.handle();
        grow(&handle, 2);
        assert!(matches!(handle.get(LOW), Some(10 | 11)));
        assert_eq!(other.join().unwrap(), Some(10));
        assert_eq!(handle.get(LOW), Some(11));
    });
}

#[test]
fn loom_two_movers_on_one_slot() {
    crate::sync::model_of_growth(|| {
        let map = map(&[(LOW, 10)]);
        let other = spawn(&map, |handle| {
            grow(handle, 2);
            handle.remove(LOW)
        });
        let handle = map.handle();
        grow(&handle, 2);
        let seen = handle.get(LOW);
        assert_eq!(other.join().unwrap(), Some(10));
        assert!(matches!(seen, None | Some(10)));
        assert_eq!(handle.get(LOW), None, "a late mover has brought it back");
        assert_eq!(map.len(), 0);
    });
}

/// The other thread may fall asleep with the entry frozen or half copied while the map grows twice.
#[test]
fn loom_a_mover_asleep_across_two_growths_changes_nothing() {
    crate::sync::model_of_growth(|| {
        let map = map(&[(LOW, 10)]);
        let other = spawn(&map, |handle| grow(handle, 2));
        let handle = map.handle();
        grow(&handle, 2);
        assert_eq!(handle.remove(LOW), Some(10));
        grow(&handle, 3);
        assert_eq!(handle.get(LOW), None);
        other.join().unwrap();
        assert_eq!(handle.get(LOW), None, "a sleeping mover has brought it back");
    });
}

#[test]
fn loom_an_insert_during_growth_is_not_lost() {
    crate::sync::model_of_growth(|| {
        let map = map(&[(LOW, 10)]);
        let other = spawn(&map, |handle| handle.insert(HIGH, 7));
        let handle = map.handle();
        grow(&handle, 2);
        assert_eq!(other.join().unwrap(), None);
        assert_eq!((handle.get(LOW), handle.get(HIGH)), (Some(10), Some(7)));
    });
}

#[test]
fn loom_a_handle_dropped_during_growth_leaves_everything_in_place() {
    crate::sync::model_of_growth(|| {
        let map = map(&[(LOW, 10)]);
        let other = spawn(&map, |handle| {
            handle.insert(LOW, 11);
        });
        let handle = map.handle();
        grow(&handle, 2);
        other.join().unwrap();
        drop(handle);
        let handle = map.handle();
        grow(&handle, 3);
        assert_eq!(handle.get(LOW), Some(11));
        assert_eq!(map.len(), 1);
    });
}

#[test]
fn loom_a_reader_during_growth_never_misses() {
    crate::sync::model_of_growth(|| {
        let map = map(&[(LOW, 10)]);
        let other = spawn(&map, |handle| handle.get(LOW));
        let handle = map.handle();
        grow(&handle, 2);
        assert_eq!(handle.insert(LOW, 11), Some(10));
        assert!(matches!(other.join().unwrap(), Some(10 | 11)));
    });
}

/// The key 0 has no lane, and values next to 2^63 no word of their own.
#[test]
fn loom_a_special_value_of_a_special_key_survives_the_freeze() {
    crate::sync::model_of_growth(|| {
        let map = map(&[(0, 1 << 63)]);
        let other = spawn(&map, |handle| handle.fetch_add(0, 1));
        let handle = map.handle();
        grow(&handle, 2);
        assert!(matches!(handle.get(0), Some(SPECIAL | NEXT)));
        assert_eq!(other.join().unwrap(), Some(SPECIAL));
        assert_eq!(handle.get(0), Some(NEXT));
    });
}

#[test]
fn loom_a_special_value_is_read_whole() {
    model(|| {
        let map = map(&[(LOW, 1)]);
        let other = spawn(&map, |handle| handle.insert(LOW, SPECIAL));
        assert!(matches!(map.handle().get(LOW), Some(1 | SPECIAL)));
        assert_eq!(other.join().unwrap(), Some(1));
        assert_eq!(map.handle().get(LOW), Some(SPECIAL));
    });
}
