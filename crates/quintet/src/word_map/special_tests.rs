//! Special keys and special values, and movers that sleep or die between freeze and MOVED.

use super::desc::Hand;
use super::moving::carry;
use super::probe::{Place, Slot};
use super::table::Table;
use super::word::{ESC, FROZEN, MOVED, PLAIN, Secrets};
use super::*;
use crate::reclaim::Section;
use crate::sync::Ordering;
use crate::sync::quad::LANES;
use std::collections::BTreeMap;

const SEED: u64 = 7;
const SECRETS: Secrets = Secrets::of(SEED);
/// What a special value is stored as if it were plain; the last two are plain.
const LOW: [u64; 13] =
    [0, 1, 2, 3, 4, 15, FROZEN, FROZEN + 1, ESC - 1, ESC, PLAIN - 1, PLAIN, PLAIN + 1];

type Map = WordMap<u64, u64>;

fn map() -> Map {
    Map::builder().seed(SEED).build()
}

fn special_keys() -> [u64; 2] {
    [SECRETS.add, SECRETS.add ^ 1]
}

#[test]
fn special_values_are_values() {
    for key in [1, 2, SECRETS.add, SECRETS.add ^ 1] {
        let map = map();
        let mut before = None;
        for (turn, value) in LOW.map(|low| low ^ SECRETS.flip).into_iter().enumerate() {
            assert_eq!(map.insert(key, value), before, "{value:#x}");
            assert_eq!((map.get(key), map.len()), (Some(value), 1));
            assert_eq!(map.compare_exchange(key, value, 5), Ok(value));
            assert_eq!(map.compare_exchange(key, 5, value), Ok(5));
            assert!(map.compare_exchange(key, value ^ 1, 5).is_err());
            assert_eq!(map.fetch_add(key, 1), Some(value));
            assert_eq!(map.update(key, |value| value.wrapping_sub(1)), Some(value));
            assert_eq!(map.remove(key), Some(value));
            assert_eq!((map.get(key), map.remove(key)), (None, None));
            assert_eq!(map.insert_new(key, value), Ok(()));
            map.reserve(1_000 << turn.min(4));
            assert_eq!(map.get(key), Some(value), "moved");
            assert_eq!(map.iter().collect::<Vec<_>>(), [(key, value)]);
            map.shrink_to_fit();
            assert_eq!(map.get(key), Some(value), "moved back");
            before = Some(value);
        }
    }
}

#[test]
fn special_keys_are_keys() {
    let map = map();
    let [first, second] = special_keys();
    assert_eq!((map.get(first), map.remove(second), map.fetch_add(first, 3)), (None, None, None));
    assert_eq!(map.insert(second, 4), None);
    map.insert_many((0..5_000).map(|key| (key, key)));
    assert_eq!((map.get(first), map.get(second), map.len()), (Some(3), Some(4), 5_002));
    let seen: BTreeMap<_, _> = map.iter().collect();
    assert_eq!((seen.len(), seen[&first], seen[&second]), (5_002, 3, 4));
    let mut there = [false; 3];
    map.contains_many(&[first, second, 5_000], &mut there);
    assert_eq!(there, [true, true, false]);
    assert_eq!(map.remove_many([first]), 1);
    map.shrink_to_fit();
    assert_eq!((map.get(first), map.get(second)), (None, Some(4)));
    map.clear();
    assert_eq!((map.len(), map.iter().count(), map.get(second)), (0, 0, None));
    map.insert(first, 9);
    assert_eq!(map.drain().collect::<Vec<_>>(), [(first, 9)]);
}

/// A table has 64 cells at least, and each special value that is stored takes one: the map moves on
/// to a table of the same size.
#[test]
fn cells_that_run_out_are_renewed() {
    let map = map();
    map.insert(1, 1);
    let size = map.stats().tables[0].size;
    for turn in 0..2_000 {
        let value = SECRETS.flip ^ (turn % 100);
        map.insert(1, value);
        assert_eq!(map.get(1), Some(value));
    }
    let stats = map.stats();
    assert!(stats.migrations >= 20, "{stats:?}");
    assert_eq!((stats.tables.last().unwrap().size, map.len()), (size, 1));
}

/// Counters that wander through the special values, while the map grows and its cells run out.
#[test]
fn counters_go_through_special_values_while_the_map_grows() {
    const KEYS: u64 = 64;
    let turns = if cfg!(debug_assertions) { 200 } else { 2_000 };
    let map = map();
    let start = SECRETS.flip.wrapping_sub(turns / 2);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let map = &map;
            scope.spawn(move || {
                let handle = map.handle();
                for turn in 0..turns {
                    for key in (0..KEYS).map(|key| key ^ SECRETS.add) {
                        handle.update_or_insert(key, |value| value.wrapping_add(1), start);
                    }
                    handle.insert(thread * turns + turn, SECRETS.flip ^ turn);
                    assert_eq!(handle.get(thread * turns + turn), Some(SECRETS.flip ^ turn));
                }
            });
        }
    });
    let end = start.wrapping_add(4 * turns - 1);
    for key in 0..KEYS {
        assert_eq!(map.get(key ^ SECRETS.add), Some(end), "{key}");
    }
    assert_eq!(map.len() as u64, KEYS + 4 * turns);
}

/// Gives the root a successor, and freezes the slot of `key` there as a mover does. Shows what the
/// mover holds then.
fn with_frozen(map: &Map, key: u64, sleep: impl FnOnce(&Table, Slot<'_>, &Table, Hand<'_>, u64)) {
    let core = &map.core;
    let section: Section<'_> = core.domain.pin();
    section.hold_all();
    let Ok(Some(table)) = core.settle(&section) else { panic!("there is a table") };
    let value = map.get(key).unwrap();
    core.start(&section, table, table.plan().bits + 2, table.plan().seed, false).unwrap();
    let next = table.next().follow(&section).unwrap().unwrap();
    let Place::Slot(slot) = table.probe(table.k(key)) else { panic!("the key is there") };
    if SECRETS.plain(value).is_none() {
        next.make_cells(1).unwrap();
    }
    let word = slot.value.load(Ordering::Acquire);
    let hand = core.descriptors.hand(section.books()).unwrap();
    let frozen = hand.hold(value);
    slot.value
        .compare_exchange(word, frozen, Ordering::AcqRel, Ordering::Acquire)
        .expect("nobody else is here");
    sleep(table, slot, next, hand, value);
}

/// A mover sleeps between freeze and MOVED. Others read, change and remove the key, and move on;
/// when it wakes it brings nothing back.
#[test]
fn a_mover_that_sleeps_with_a_frozen_entry_holds_nobody() {
    for value in [50, SECRETS.flip ^ 3] {
        for key in [5, SECRETS.add ^ 1] {
            let map = map();
            map.insert_many((0..8).map(|key| (key, key)));
            map.insert(key, value);
            with_frozen(&map, key, |table, slot, next, hand, frozen| {
                std::thread::scope(|scope| {
                    let _ = scope.spawn(|| {
                        let handle = map.handle();
                        assert_eq!(handle.get(key), Some(value), "as long as it is frozen");
                        assert_eq!(handle.insert(key, 51), Some(value));
                        assert_eq!(slot.value.load(Ordering::Acquire), MOVED);
                        assert_eq!((handle.get(key), handle.remove(key)), (Some(51), Some(51)));
                        handle.insert_many((100..2_000).map(|key| (key, key)));
                        assert_eq!(handle.get(key), None);
                    });
                });
                let carried = carry(slot.value, next, table.k(key), frozen);
                assert_eq!(carried, Ok(false), "it was there before");
                hand.put_back();
                assert_eq!(map.get(key), None, "a sleeping mover has brought it back");
            });
            map.reserve(10_000);
            assert_eq!(map.get(key), None);
            assert_eq!(
                (1..8).filter(|key| map.get(*key).is_some()).count() + usize::from(key == 5),
                7
            );
        }
    }
}

/// A mover dies between freeze and MOVED: its number is gone, and its seat takes another.
#[test]
fn a_mover_that_dies_with_a_frozen_entry_loses_its_number_alone() {
    let map = map();
    map.insert_many((0..8).map(|key| (key, key + 10)));
    with_frozen(&map, 5, |_, slot, _, hand, _| {
        // Not put back.
        let _lost = hand;
        assert!(slot.value.load(Ordering::Acquire) >= FROZEN);
    });
    assert_eq!(map.get(5), Some(15), "whoever comes by the same seat finds it");
    map.insert_many((100..5_000).map(|key| (key, key)));
    assert!((0..8).all(|key| map.get(key) == Some(key + 10)));
    assert_eq!(map.core.descriptors.count(), 2);
}

/// The tags of the table that is left know nothing of what went to its successor.
#[test]
fn tags_that_say_no_during_a_migration_are_not_believed() {
    let map = map();
    map.insert_many((0..8).map(|key| (key, key)));
    let handle = map.handle();
    assert_eq!(handle.get(1_000_000), None, "from now on the tags are asked");
    with_frozen(&map, 5, |table, slot, next, hand, value| {
        for key in 1_000..1_010 {
            assert_eq!((handle.get(key), handle.insert(key, key)), (None, None));
            assert_eq!(handle.get(key), Some(key));
        }
        carry(slot.value, next, table.k(5), value).unwrap();
        hand.put_back();
    });
    assert_eq!((handle.get(5), map.len()), (Some(5), 18));
}

/// An insert that sleeps between key and tag hides nobody: neither who goes past its lane, nor who
/// gives its key a value.
#[test]
fn a_lane_without_its_tag_hides_nobody() {
    let map = map();
    assert_eq!(map.insert(0, 0), None);
    let handle = map.handle();
    let section = map.core.domain.pin();
    let table = map.core.root.follow(&section).unwrap().unwrap();
    let home = |key: u64| table.shape().home(table.hash(table.k(key)));
    let same: Vec<u64> = (1..).filter(|key| home(*key) == 1 - home(0).min(1)).take(6).collect();
    let line = table.line(home(same[0]));
    for (lane, key) in same[..LANES].iter().enumerate() {
        // Claimed, and no more.
        line.key(lane).store(table.k(*key), Ordering::Release);
    }
    for (turn, key) in [same[4], same[1], same[5], same[3]].into_iter().enumerate() {
        assert_eq!((handle.insert(key, 7), handle.get(1_000_000)), (None, None), "and wary");
        assert_eq!(handle.get(key), Some(7), "{turn}");
    }
    assert_eq!((handle.get(same[0]), handle.remove(same[2]), map.len()), (None, None, 5));
}

/// Every seat that moves has a descriptor of its own, however many there are.
#[test]
fn thousands_of_seats_move_entries() {
    let map = map();
    let handles: Vec<_> = (0..3_000).map(|_| map.handle()).collect();
    for turn in 0..40 {
        for (number, handle) in handles.iter().enumerate() {
            assert_eq!(handle.insert(number as u64 * 40 + turn, turn), None);
        }
    }
    assert!(map.core.descriptors.count() > 500, "{}", map.core.descriptors.count());
    assert_eq!(map.len(), 120_000);
    assert!((0..120_000).all(|key| map.get(key) == Some(key % 40)));
}
