//! `HashMap`: every operation, by every way in.
#![cfg(not(any(quintet_loom, quintet_shuttle)))]
#![allow(clippy::map_clone)] // the same words by ways that lend references and by such that lend a `Ref`

use quintet::hash_map::Ref;
use quintet::{Compute, HashMap, Rejected};
use std::collections;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes one test per way into a map: the map itself, a guard, a handle, a quiet handle.
macro_rules! by_every_way {
    ($($story:ident |$way:ident, $map:ident| $body:block)*) => {$(
        mod $story {
            use super::*;

            #[test]
            fn table() {
                let $map = HashMap::<String, u64>::new();
                let $way = &$map;
                $body
            }
            #[test]
            fn pin() {
                let $map = HashMap::<String, u64>::new();
                let $way = &$map.pin();
                $body
            }
            #[test]
            fn handle() {
                let $map = Arc::new(HashMap::<String, u64>::new());
                let $way = &$map.owned_handle();
                $body
            }
            #[test]
            fn quiet_handle() {
                let $map = Arc::new(HashMap::<String, u64>::new());
                let $way = &$map.owned_quiet_handle();
                $body
            }
        }
    )*};
}

/// A key.
fn key(name: &str) -> String {
    name.to_string()
}

by_every_way! {
    looking_up |way, map| {
        assert!(map.is_empty() && way.get("a").is_none());
        way.insert(key("a"), 1);
        assert_eq!(way.get("a").map(|value| *value), Some(1));
        assert_eq!(way.get_cloned("a"), Some(1));
        assert_eq!(way.with("a", |value| value + 1), Some(2));
        assert_eq!(way.with("b", |value| value + 1), None);
        assert!(way.contains_key("a") && !way.contains_key("b"));
        assert!(way.get_key_value("a").is_some());
        let mut there = [false; 2];
        way.contains_many(["b", "a"], &mut there);
        assert_eq!(there, [false, true]);
        let mut found = [const { None }; 3];
        way.get_many(["a", "b", "a"], &mut found);
        assert_eq!(found.map(|value| value.map(|value| *value)), [Some(1), None, Some(1)]);
    }

    storing |way, map| {
        assert!(way.insert(key("a"), 1).is_none());
        assert_eq!(way.insert(key("a"), 2).map(|old| *old), Some(1));
        let Err(Rejected { current, value }) = way.insert_new(key("a"), 3) else { panic!() };
        assert_eq!((*current, value), (2, 3));
        assert!(way.insert_new(key("b"), 3).is_ok());
        assert_eq!(*way.get_or_insert(key("b"), 9), 3);
        assert_eq!(*way.get_or_insert(key("c"), 4), 4);
        assert_eq!(*way.get_or_insert_with(key("d"), || 5), 5);
        assert_eq!(*way.get_or_insert_with(key("d"), || unreachable!("it is there")), 5);
        assert_eq!(way.update("d", |value| value * 2).map(|new| *new), Some(10));
        assert!(way.update("e", |_| unreachable!("nothing is there")).is_none());
        assert_eq!(*way.update_or_insert(key("d"), |value| value + 1, 0), 11);
        assert_eq!(*way.update_or_insert(key("e"), |value| value + 1, 7), 7);
        assert_eq!(*way.update_or_insert_with(key("e"), |value| value + 1, || 0), 8);
        assert_eq!(*way.update_or_insert_with(key("f"), |value| value + 1, || 9), 9);
        assert_eq!(way.swap("f", 10).map(|old| *old), Ok(9));
        assert_eq!(way.swap("g", 10).map(|old| *old), Err(10));
        assert_eq!(way.compare_exchange("f", &10, 11).map(|old| *old).ok(), Some(10));
        let Err(Rejected { current, value }) = way.compare_exchange("f", &10, 12) else { panic!() };
        assert_eq!((current.map(|now| *now), value), (Some(11), 12));
        let Err(Rejected { current, value }) = way.compare_exchange("g", &10, 12) else { panic!() };
        assert!(current.is_none() && value == 12);
        assert_eq!(way.insert_many([(key("f"), 1), (key("g"), 2), (key("h"), 3)]), 2);
        assert_eq!(map.len(), 8);
    }

    computing |way, map| {
        let done = way.compute(key("a"), |found| {
            assert!(found.is_none());
            Compute::Insert(1)
        });
        assert!(done.before.is_none() && done.after.map(|new| *new) == Some(1));
        let done = way.compute(key("a"), |_| Compute::Keep);
        assert_eq!((done.before.map(|v| *v), done.after.map(|v| *v)), (Some(1), Some(1)));
        let done = way.compute(key("a"), |found| Compute::Insert(found.map_or(0, |v| v + 1)));
        assert_eq!((done.before.map(|v| *v), done.after.map(|v| *v)), (Some(1), Some(2)));
        let done = way.compute(key("a"), |_| Compute::Remove);
        assert!(done.before.map(|v| *v) == Some(2) && done.after.is_none());
        let done = way.compute(key("a"), |_| Compute::Remove);
        assert!(done.before.is_none() && done.after.is_none() && map.is_empty());
    }

    taking_out |way, map| {
        way.insert_many((0..10).map(|number| (number.to_string(), number)));
        assert_eq!(way.remove("0").map(|old| *old), Some(0));
        assert!(way.remove("0").is_none());
        assert!(way.remove_entry("1").is_some() && way.remove_entry("1").is_none());
        assert_eq!(way.remove_if("2", |value| *value == 7).map(|_| ()).map_err(|v| *v), Err(2));
        assert_eq!(way.remove_if("2", |_| true).ok().flatten().map(|old| *old), Some(2));
        assert!(way.remove_if("2", |_| true).is_ok_and(|old| old.is_none()));
        assert_eq!(way.remove_many(["2", "3", "4"]), 2);
        way.retain(|name, value| name != "5" && *value != 6);
        assert_eq!(map.len(), 3);
        assert_eq!(way.extract_if(|name, _| name == "7").count(), 1);
        assert_eq!(way.drain().count(), 2);
        way.insert(key("a"), 1);
        drop(way.drain());
        way.insert(key("a"), 1);
        way.clear();
        assert!(map.is_empty());
        way.shrink_to_fit();
    }

    walking |way, map| {
        way.insert_many((0..100).map(|number| (number.to_string(), number)));
        assert_eq!(way.iter().count(), 100);
        assert_eq!(way.iter_exact().count(), 100);
        assert_eq!(way.keys().map(|name| name.parse::<u64>().unwrap()).sum::<u64>(), 4950);
        assert_eq!(way.values().map(|value| *value).sum::<u64>(), 4950);
        assert_eq!(way.into_iter().count(), map.len());
    }

    figures |way, map| {
        way.reserve(1_000);
        assert!(way.capacity() >= 1_000 && way.try_reserve(usize::MAX).is_err());
        let before = way.memory_bytes();
        way.insert(key("a"), 1);
        assert!(way.memory_bytes() >= before + 32 && !way.is_empty());
        assert_eq!((way.len(), way.stats().len, map.len()), (1, 1, 1));
    }

    entries |way, map| {
        assert!(way.entry(key("a")).get().is_none());
        assert!(way.entry(key("a")).and_update(|value| value + 1).get().is_none());
        assert_eq!(way.entry(key("a")).key(), "a");
        assert_eq!(way.entry_ref("a").key(), "a");
        assert_eq!(*way.entry(key("a")).or_insert(1), 1);
        assert_eq!(*way.entry(key("a")).or_insert(2), 1);
        assert_eq!(*way.entry_ref("b").or_insert_with(|| 2), 2);
        assert_eq!(*way.entry_ref("cc").or_insert_with_key(|name| name.len() as u64), 2);
        assert_eq!(*way.entry_ref("d").or_default(), 0);
        assert_eq!(*way.entry_ref("d").and_update(|value| value + 5).or_default(), 5);
        assert_eq!(*way.entry_ref("d").and_modify(|value| *value += 5).or_default(), 10);
        let twice = way.entry(key("d")).and_update(|value| value + 1).and_update(|value| value * 2);
        assert_eq!(*twice.or_insert(0), 22);
        assert_eq!(way.entry_ref("d").and_modify(|value| *value = 7).get().map(|v| *v), Some(7));
        assert_eq!(*way.entry_ref("e").and_update(|_| unreachable!()).or_insert(3), 3);
        assert_eq!(*way.entry(key("e")).insert_entry(4), 4);
        assert_eq!(*way.entry_ref("f").insert_entry(5), 5);
        assert_eq!(way.entry_ref("f").remove_entry().map(|v| *v), Some(5));
        assert!(way.entry(key("f")).remove_entry().is_none());
        assert_eq!(map.len(), 5);
    }

    without_panics |way, map| {
        let way = way.fallible();
        assert!(way.insert(key("a"), 1).unwrap().is_none());
        assert!(way.insert_new(key("a"), 2).unwrap().is_err());
        assert_eq!(way.get_or_insert(key("b"), 2).map(|v| *v), Ok(2));
        assert_eq!(way.get_or_insert_with(key("b"), || 3).map(|v| *v), Ok(2));
        assert_eq!(way.update("b", |v| v + 1).unwrap().map(|v| *v), Some(3));
        assert_eq!(way.update_or_insert(key("c"), |v| v + 1, 5).map(|v| *v), Ok(5));
        assert_eq!(way.update_or_insert_with(key("c"), |v| v + 1, || 5).map(|v| *v), Ok(6));
        assert!(way.compute(key("c"), |_| Compute::Remove).unwrap().after.is_none());
        assert!(way.compare_exchange("a", &1, 2).unwrap().is_ok());
        assert!(way.swap("c", 2).unwrap().is_err());
        assert_eq!(way.insert_many([(key("a"), 1), (key("z"), 1)]), Ok(1));
        assert_eq!(map.len(), 3);
    }
}

/// What `dashmap` and a lock would deadlock on: a reference held while the same key is written, by
/// the same thread, while walking.
#[test]
fn holding_a_reference_blocks_nothing() {
    let map = HashMap::builder().shards(1).build();
    (0..100).for_each(|number| drop(map.insert(number, 0)));
    for entry in map.iter().filter(|entry| *entry.key() < 1_000) {
        let held = map.get(entry.key());
        map.insert(*entry.key(), 1);
        map.update(entry.key(), |value| {
            map.remove(&1_000);
            map.insert(2_000, *value);
            value + 1
        });
        assert_eq!(held.as_deref(), Some(&0));
    }
    assert_eq!(map.len(), 101);
    assert!(map.iter().all(|entry| *entry == 2 || *entry.key() == 2_000));
}

/// `and_update(..).or_insert(..)` is one step: nothing is lost between its halves, though others
/// remove.
#[test]
fn an_entry_is_one_atomic_step() {
    let counts = HashMap::<u64, u64>::new();
    let taken = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for step in 0..20_000 {
                    counts.entry(step % 3).and_update(|count| count + 1).or_insert(1);
                }
            });
        }
        scope.spawn(|| {
            for step in 0..20_000 {
                if let Some(count) = counts.remove(&(step % 3)) {
                    taken.fetch_add(*count, Ordering::Relaxed);
                }
            }
        });
    });
    let left: u64 = counts.iter().map(|count| *count).sum();
    assert_eq!(left + taken.into_inner(), 60_000);
}

#[test]
fn a_given_value_is_moved_and_never_cloned_or_lost() {
    /// Neither it nor its key can be cloned.
    #[derive(PartialEq, Eq, Hash, Debug)]
    struct Sole(u64);
    let map = HashMap::<Sole, Sole>::new();
    assert!(map.insert_new(Sole(1), Sole(2)).is_ok());
    let Rejected { current, value } = map.insert_new(Sole(1), Sole(3)).unwrap_err();
    assert_eq!((&*current, value), (&Sole(2), Sole(3)));
    drop(current);
    map.update_or_insert(Sole(1), |old| Sole(old.0 + 1), Sole(9));
    map.compute(Sole(2), |_| Compute::Insert(Sole(5)));
    map.entry(Sole(2)).and_update(|old| Sole(old.0 + 1)).or_insert(Sole(0));
    assert_eq!(map.get(&Sole(2)).as_deref(), Some(&Sole(6)));
    assert_eq!(map.into_values().map(|value| value.0).sum::<u64>(), 9);
}

#[test]
fn the_only_owner_changes_in_place() {
    let mut map: HashMap<u64, String> = (0..1_000).map(|n| (n, n.to_string())).collect();
    map.get_mut(&7).unwrap().push('!');
    assert!(map.get_mut(&1_000).is_none());
    for (number, text) in map.iter_mut() {
        *text = format!("{number}:{text}");
    }
    for (_, text) in &mut map {
        text.push('.');
    }
    map.values_mut().for_each(|text| text.push('?'));
    assert_eq!(map.values_mut().len(), 1_000);
    assert_eq!(map.get(&7).as_deref().map(String::as_str), Some("7:7!.?"));
    assert_eq!(map.get(&8).as_deref().map(String::as_str), Some("8:8.?"));
}

/// In the middle of a migration as well: each entry is met once, wherever it lies.
#[test]
fn the_only_owner_meets_each_entry_once_while_the_map_moves() {
    let mut map = HashMap::<u64, u64>::builder().shards(2).build();
    for number in 0..3_000 {
        map.insert(number, 0);
        if number % 50 == 0 {
            map.iter_mut().for_each(|(_, value)| *value += 1);
            assert!(map.values_mut().len() == number as usize + 1);
        }
    }
    for (number, value) in map {
        assert_eq!(value, 60 - number.div_ceil(50), "{number}");
    }
}

#[test]
fn a_map_is_a_collection() {
    let map = HashMap::from([("a", 1), ("b", 2)]);
    let std = collections::HashMap::<_, _>::from([("a", 1), ("b", 2)]);
    assert_eq!(map, HashMap::<_, _>::from(std.clone()));
    assert_eq!(collections::HashMap::<_, _>::from(map.clone()), std);
    let mut other: HashMap<&str, i32> = map.clone().into_iter().collect();
    assert_eq!(other, map);
    other.extend([("c", 3)]);
    other.extend([(&"d", &4)]);
    map.handle().extend([("e", 5)]);
    assert!(other != map && other.len() == 4 && map.len() == 3);
    let mut keys: Vec<_> = other.clone().into_keys().collect();
    keys.sort();
    assert_eq!((keys, other.into_values().sum::<i32>()), (vec!["a", "b", "c", "d"], 10));
    assert_eq!(map.clone().into_iter().len(), 3);
    assert_eq!(HashMap::<u8, u8>::default(), HashMap::new());
    assert!(HashMap::<u8, u8>::with_capacity(100).capacity() >= 100);
    let hasher = std::hash::RandomState::new();
    let map = HashMap::with_capacity_and_hasher(10, hasher.clone());
    map.insert(1, 2);
    assert_eq!(map, HashMap::from([(1, 2)]));
    let _ = (
        HashMap::<u8, u8, _>::with_hasher(hasher).hasher(),
        HashMap::<u8, u8>::builder().seed(1).build(),
    );
}

#[test]
fn what_is_lent_shows_key_and_value() {
    let map = HashMap::from([("a".to_string(), (1, "x".to_string()))]);
    let entry = map.get("a").unwrap();
    assert_eq!((entry.key().as_str(), entry.value().0, entry.pair().1.0), ("a", 1, 1));
    let again = Ref::clone(&entry);
    assert!(again == entry);
    map.clear();
    map.flush();
    let part = Ref::map(entry, |value| value.1.as_str());
    assert_eq!((&*part, Ref::into_key(again).as_str()), ("x", "a"));
}

/// What is printed are contents and counts.
#[test]
fn everything_can_be_printed() {
    let map = HashMap::from([("x", 1)]);
    assert_eq!(
        format!("{map:?} {:?} {}", map.get("x"), map.get("x").unwrap()),
        r#"{"x": 1} Some(1) 1"#
    );
    let (own, mut quiet) = (map.handle(), map.quiet_handle());
    let texts = [
        format!("{own:?}{quiet:?}{:?}{:?}{:?}", map.pin(), map.fallible(), map.entry("x")),
        format!("{:?}{:?}{:?}{:?}", map.iter(), map.pin().iter(), map.keys(), map.values()),
        format!("{:?}{:?}", map.extract_if(|_, _| false), map.pin().extract_if(|_, _| false)),
        format!("{:?}{:?}{:?}", map.pin().keys(), map.pin().values(), map.drain()),
        format!("{:?}{:?}", quiet.offline(), HashMap::<u8, u8>::builder()),
        format!("{:?}", map.entry("x").and_update(|x| x + 1)),
        format!("{:?}{:?}", map.clone().into_iter(), map.clone().into_keys()),
        format!("{:?}{:?}", map.clone().iter_mut(), map.clone().values_mut()),
    ];
    assert!(texts.iter().all(|text| !text.contains("0x")), "{texts:#?}");
}
