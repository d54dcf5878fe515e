//! The set against its oracle, alone and among threads.

use super::*;
use crate::region::Pages;
use std::collections::HashMap;
use std::sync::Arc;

/// An item for every test: a number under a number.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) key: u64,
    pub(super) value: u64,
}

impl Keyed for Record {
    type Key = u64;
    fn key(&self) -> &u64 {
        &self.key
    }
}

pub(super) fn record(key: u64, value: u64) -> Record {
    Record { key, value }
}

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

fn value(found: Option<&Record>) -> Option<u64> {
    found.map(|record| record.value)
}

#[test]
fn follows_the_oracle_through_growth_and_shrinking() {
    for seed in 1..8 {
        let set = ItemSet::<Box<Record>>::builder().shards(4).seed(seed).build();
        let mut handle = set.quiet_handle();
        let mut oracle = HashMap::new();
        let mut dice = Dice(seed * 0x9e37_79b9);
        for step in 0..60_000u64 {
            // Grow for a while, then shrink for a while.
            let growing = step / 10_000 % 2 == 0;
            let key = dice.roll() % 5_000;
            let item = record(key, step);
            match (dice.roll() % 8, growing) {
                (0..=2, true) | (0, false) => {
                    assert_eq!(value(handle.insert(item)), oracle.insert(key, step));
                }
                (3, _) => assert_eq!(value(handle.get(&key)), oracle.get(&key).copied()),
                (4, true) => {
                    let old = handle.insert_new(item).err().map(|rejected| rejected.current.value);
                    assert_eq!(old, oracle.get(&key).copied());
                    oracle.entry(key).or_insert(step);
                }
                (5, _) => match (handle.replace(item), oracle.get_mut(&key)) {
                    (Ok(old), Some(known)) => {
                        assert_eq!(old.value, std::mem::replace(known, step));
                    }
                    (Err(item), None) => assert_eq!(item.value, step),
                    (got, known) => panic!("{got:?} where {known:?} was"),
                },
                (6, true) => {
                    let known = *oracle.entry(key).or_insert(step);
                    assert_eq!(handle.get_or_insert_with(&key, || item).value, known);
                }
                _ => assert_eq!(value(handle.remove(&key)), oracle.remove(&key)),
            }
            if step % 64 == 0 {
                handle.quiescent();
            }
        }
        assert_eq!(set.len(), oracle.len());
        let mut seen: Vec<_> = handle.iter_exact().map(|item| (item.key, item.value)).collect();
        let mut expected: Vec<_> = oracle.into_iter().collect();
        seen.sort_unstable();
        expected.sort_unstable();
        assert_eq!(seen, expected);
        assert!(set.stats().migrations > 3, "{:?}", set.stats());
    }
}

/// Six threads, each with keys of its own, from a tiny table: nothing is lost, nothing comes back.
#[test]
fn single_owner_stress_from_a_tiny_table() {
    let rounds = if cfg!(debug_assertions) { 4 } else { 40 };
    for round in 0..rounds {
        let set = ItemSet::<Box<Record>>::builder().shards(1 << (round % 5)).build();
        std::thread::scope(|scope| {
            for thread in 0..6u64 {
                let set = &set;
                scope.spawn(move || own_keys(&mut set.quiet_handle(), thread, round));
            }
        });
        assert_eq!(set.len(), 6 * 1_000, "a third of the keys stays");
    }
}

fn own_keys(handle: &mut QuietHandle<'_, Box<Record>>, thread: u64, round: u64) {
    let key = |index: u64| index * 6 + thread;
    for index in 0..3_000 {
        let mark = index ^ round;
        assert_eq!(value(handle.insert(record(key(index), mark))), None);
        assert_eq!(value(handle.insert(record(key(index), mark + 1))), Some(mark));
        if index % 3 != 0 {
            assert_eq!(value(handle.remove(&key(index))), Some(mark + 1), "lost");
            assert_eq!(value(handle.get(&key(index))), None, "found after remove");
        }
        let old = index / 2;
        assert_eq!(handle.get(&key(old)).is_some(), old % 3 == 0, "lost or back again");
        handle.quiescent();
    }
    for index in 0..3_000 {
        assert_eq!(handle.get(&key(index)).is_some(), index % 3 == 0, "lost or back again");
    }
}

#[test]
fn items_come_in_the_order_of_their_insertion_until_the_set_is_rebuilt() {
    let set = ItemSet::<Box<Record>>::builder().capacity(1_000).ordered(true).build();
    let pin = set.pin();
    (0..1_000).for_each(|key| assert!(pin.insert(record(key * 7, key)).is_none()));
    pin.insert(record(70, 1_010));
    assert_eq!(set.stats().migrations, 0);
    let values: Vec<_> = pin.iter().map(|item| item.value % 1_000).collect();
    assert_eq!(values, (0..1_000).collect::<Vec<_>>());
}

/// The room that was asked for is there: no part of it is lost to what shards hold as credit, or to
/// the preparation of the next table.
#[test]
fn a_set_made_for_so_many_items_takes_them_without_growth() {
    let largest = |bits: u32| {
        let made_for = |items: &usize| {
            let set = ItemSet::<Box<Record>>::with_capacity(*items);
            set.stats().places > 1usize << bits
        };
        (1usize << (bits - 2)..1 << bits).find(made_for).expect("there is an end") - 1
    };
    for ordered in [false, true] {
        for items in [100, 1_000, 10_000, 123_456, largest(9), largest(12), largest(14)] {
            let set = ItemSet::<Box<Record>>::builder().capacity(items).ordered(ordered).build();
            let made = set.stats();
            (0..items as u64).for_each(|key| assert!(set.pin().insert(record(key, key)).is_none()));
            let now = set.stats();
            assert_eq!((now.len, now.migrations), (items, 0));
            assert_eq!(
                (now.places, now.table_bytes),
                (made.places, made.table_bytes),
                "{items} items: the next table was prepared"
            );
        }
    }
}

#[test]
fn shared_items_outlive_the_set() {
    let set = ItemSet::<Arc<Record>>::new();
    let kept = Arc::new(record(1, 10));
    assert!(set.pin().insert(Arc::clone(&kept)).is_none());
    assert_eq!(Arc::strong_count(&kept), 2);
    drop(set);
    assert_eq!(Arc::strong_count(&kept), 1);
    assert_eq!(kept.value, 10);
}

#[test]
fn an_owner_keeps_what_was_replaced_and_drops_it_when_it_is_safe() {
    let set = ItemSet::<Arc<Record>>::new();
    let kept = Arc::new(record(1, 10));
    let mut handle = set.quiet_handle();
    handle.insert(Arc::clone(&kept));
    let owner = handle.insert_owned(record(1, 11)).expect("there was one");
    assert_eq!((owner.value, Arc::strong_count(&kept)), (10, 2));
    drop(owner);
    assert_eq!(handle.remove_owned(&1).map(|owner| owner.value), Some(11));
    assert!(handle.remove_owned(&1).is_none());
    handle.flush();
    assert_eq!(Arc::strong_count(&kept), 1, "dropped at the quiet point");
}

/// Who iterates has announced all eras to come, which says nothing about the birth of what it puts
/// meanwhile.
#[test]
fn what_is_put_while_iterating_is_held_for_its_readers() {
    let set = ItemSet::<Arc<Record>>::new();
    let (mut ours, theirs) = (set.quiet_handle(), set.quiet_handle());
    ours.insert(record(1, 10));
    assert!(ours.get(&1).is_some() && theirs.get(&1).is_some());
    let kept = [2, 1].map(|key| Arc::new(record(key, 20)));
    let mut walk = ours.iter();
    assert!(walk.next().is_some());
    assert!(ours.insert(Arc::clone(&kept[0])).is_none(), "added");
    assert!(ours.insert(Arc::clone(&kept[1])).is_some(), "replaced");
    let found = [theirs.get(&2), theirs.get(&1)];
    assert_eq!(found.map(value), [Some(20), Some(20)]);
    assert!(ours.remove(&2).is_some() && ours.remove(&1).is_some());
    ours.flush();
    assert_eq!(kept.each_ref().map(Arc::strong_count), [2, 2], "freed under a reader");
    assert_eq!(found.map(value), [Some(20), Some(20)]);
}

/// A way to find an item, or to take it out.
type Find = for<'h> fn(&'h QuietHandle<'_, Arc<Record>>) -> Option<&'h Record>;

/// A reader that has announced one era finds an item of the next one: alone, among many keys, or in
/// the way of a write.
#[test]
fn what_is_found_in_a_later_era_is_held() {
    let finds: [Find; 3] = [
        |reader| reader.get(&2),
        |reader| {
            let mut found = [None];
            reader.get_many(&[2], &mut found);
            found[0]
        },
        |reader| reader.insert(record(2, 30)),
    ];
    for find in finds {
        let set = ItemSet::<Arc<Record>>::new();
        let (reader, mut writer) = (set.quiet_handle(), set.quiet_handle());
        writer.insert(record(1, 10));
        assert!(reader.get(&1).is_some() && reader.get(&2).is_none());
        assert!(writer.insert(record(1, 11)).is_some());
        writer.flush();
        let kept = Arc::new(record(2, 20));
        assert!(writer.insert(Arc::clone(&kept)).is_none());
        let found = find(&reader);
        assert_eq!(value(found), Some(20));
        writer.remove(&2);
        writer.flush();
        assert_eq!(Arc::strong_count(&kept), 2, "freed under a reader");
        assert_eq!(value(found), Some(20));
    }
}

/// A guard may be forgotten: then its handle is outside, and must come in again before it shows
/// anything.
#[test]
fn a_forgotten_offline_guard_frees_nothing_under_its_handle() {
    let finds: [Find; 4] = [
        |reader| reader.get(&1),
        |reader| reader.iter().next(),
        |reader| reader.insert(record(1, 11)),
        |reader| reader.remove(&1),
    ];
    for find in finds {
        let set = ItemSet::<Arc<Record>>::new();
        let (mut reader, mut writer) = (set.quiet_handle(), set.quiet_handle());
        let kept = Arc::new(record(1, 10));
        assert!(writer.insert(Arc::clone(&kept)).is_none() && reader.get(&1).is_some());
        std::mem::forget(reader.offline());
        let found = find(&reader);
        writer.remove(&1);
        writer.flush();
        assert_eq!(Arc::strong_count(&kept), 2, "freed under a reader");
        assert_eq!(value(found), Some(10));
    }
}

#[test]
fn the_hashed_forms_are_the_others() {
    let set = ItemSet::<Box<Record>>::new();
    let handle = set.quiet_handle();
    let hash = set.hash_of(&7);
    assert!(handle.put_hashed(hash, &7, Some(Box::new(record(7, 1)))).is_none());
    assert_eq!(value(handle.get_hashed(hash, &7)), Some(1));
    assert_eq!(value(handle.put_hashed(hash, &7, None)), Some(1));
    assert!(handle.put_hashed(hash, &7, None).is_none() && set.is_empty());
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a hash of another key")]
fn a_foreign_hash_is_caught_in_debug_builds() {
    let set = ItemSet::<Box<Record>>::new();
    set.pin().get_hashed(set.hash_of(&7) ^ 1, &7);
}

#[test]
fn retain_clear_reserve_and_shrink() {
    let set = ItemSet::<Box<Record>>::builder().pages(Pages::Small).max_load(0.6).build();
    let mut handle = set.quiet_handle();
    handle.reserve(10_000);
    let roomy = set.stats();
    assert!(roomy.capacity >= 10_000);
    (0..10_000).for_each(|key| assert!(handle.insert(record(key, key)).is_none()));
    assert_eq!(set.stats().migrations, 0, "reserved");
    handle.retain(|item| item.key % 10 == 0);
    assert_eq!(set.len(), 1_000);
    assert!((0..10_000).all(|key| handle.contains(&key) == (key % 10 == 0)));
    handle.shrink_to_fit();
    assert!(set.stats().capacity < roomy.capacity / 4);
    assert!((0..10_000).step_by(10).all(|key| handle.contains(&key)));
    handle.clear();
    assert!(set.is_empty() && handle.iter().next().is_none());
    handle.flush();
    assert_eq!(set.stats().backlog_items, 0);
    assert!(handle.try_reserve(usize::MAX).is_err());
    assert!(handle.fallible().insert(record(1, 1)).unwrap().is_none());
}

/// Keys whose hashes are all the same find each other, and do not make the set grow for ever.
#[test]
fn colliding_hashes_are_slow_and_never_eat_memory() {
    #[derive(Clone, Copy, Default)]
    struct Same;
    impl BuildHasher for Same {
        type Hasher = Same;
        fn build_hasher(&self) -> Same {
            Same
        }
    }
    impl Hasher for Same {
        fn finish(&self) -> u64 {
            u64::MAX
        }
        fn write(&mut self, _: &[u8]) {}
    }
    let set = ItemSet::<Box<Record>>::builder().hasher(Same).build();
    let handle = set.quiet_handle();
    (0..2_000).for_each(|key| assert!(handle.insert(record(key, key)).is_none()));
    (0..2_000).for_each(|key| assert_eq!(value(handle.get(&key)), Some(key)));
    assert!(set.stats().capacity < 2_000 * 8, "{:?}", set.stats());
    (0..2_000).for_each(|key| assert_eq!(value(handle.remove(&key)), Some(key)));
}

quintet_testkit::assert_send!(ItemSet<Box<Record>>);
quintet_testkit::assert_sync!(ItemSet<Box<Record>>);
quintet_testkit::assert_send!(QuietHandle<'static, Box<Record>>);
quintet_testkit::assert_not_sync!(QuietHandle<'static, Box<Record>>);
quintet_testkit::assert_not_send!(Pin<'static, Box<Record>>);
quintet_testkit::assert_not_sync!(Pin<'static, Box<Record>>);

/// What is left when everything has been removed, without a flush: a small table, and the last
/// batches of items.
#[test]
fn removing_everything_gives_the_memory_back() {
    let set = ItemSet::<Box<Record>>::new();
    let mut handle = set.quiet_handle();
    let (mut peak, items) = (0, 1_000_000);
    for key in 0..items {
        assert!(handle.insert(record(key, key)).is_none());
        if key % 256 == 0 {
            handle.quiescent();
            peak = peak.max(set.memory_bytes() + set.len() * size_of::<Record>());
        }
    }
    for key in 0..items {
        assert!(handle.remove(&key).is_some());
        if key % 256 == 0 {
            handle.quiescent();
        }
    }
    handle.quiescent();
    let left = set.memory_bytes();
    eprintln!("{left} of {peak} bytes are left");
    assert!(left <= peak / 20, "{left} of {peak} bytes");
}

/// One handle puts, removes and looks while another moves the set on, without a quiet point in
/// between: what it remembers of the table is no longer true, and must not be believed.
#[test]
fn a_handle_follows_the_set_without_a_quiet_point() {
    let set = ItemSet::<Box<Record>>::builder().shards(1).build();
    let (mut ours, theirs) = (set.quiet_handle(), set.quiet_handle());
    for key in 0..20 {
        assert!(ours.insert(record(key, 0)).is_none());
    }
    ours.quiescent();
    for round in 1..6 {
        assert_eq!(value(ours.get(&3)), Some(round - 1));
        theirs.reserve(40 << (2 * round));
        assert_eq!(value(theirs.insert(record(3, round))), Some(round - 1));
        assert_eq!(value(ours.get(&3)), Some(round), "not from the table that was left");
        assert_eq!(value(ours.insert(record(4, round))), Some(round - 1));
        assert_eq!(value(theirs.get(&4)), Some(round));
        assert_eq!(value(ours.remove(&5)), if round == 1 { Some(0) } else { None });
        assert!(theirs.get(&5).is_none());
    }
}
