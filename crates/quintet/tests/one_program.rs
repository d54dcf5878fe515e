//! One program per table, the same line by line: who has learned one table has learned the next.
//!
//! The programs are held against each other: what a table has at all, it calls by the name that the
//! others use, in the same place. A line that a table has not is left out.

use quintet::{Compute, CopyMap, HashMap, ItemSet, SeenSet, TwinMap, WordMap};
use std::sync::Arc;
use std::thread;

#[test]
fn word_map() {
    let table = Arc::new(WordMap::builder().capacity(100).build());
    assert_eq!(table.insert(1, 10), None);
    assert_eq!(table.insert(1, 11), Some(10));
    assert_eq!(table.get(1), Some(11));
    assert!(table.contains_key(1));
    assert_eq!(table.insert_new(1, 12).unwrap_err().current, 11);
    assert_eq!(table.get_or_insert_with(2, || 20), 20);
    assert_eq!(table.update(2, |value| value + 1), Some(21));
    assert_eq!(table.update_or_insert_with(3, |value| value + 1, || 30), 30);
    let done = table.compute(3, |_| Compute::Remove);
    assert_eq!((done.before, done.after), (Some(30), None));
    assert_eq!(table.remove_if(2, |value| value == 0), Err(21));
    assert_eq!(table.remove(2), Some(21));
    thread::scope(|scope| {
        for part in 0..4 {
            let table = &table;
            scope.spawn(move || {
                let handle = table.handle();
                for step in 0..25 {
                    handle.insert(part * 25 + step, 1);
                }
            });
        }
    });
    let handle = table.owned_handle();
    assert!(thread::spawn(move || handle.contains_key(99)).join().unwrap());
    let pin = table.pin();
    assert_eq!((pin.get(7), pin.get(8)), (Some(1), Some(1)));
    drop(pin);
    assert_eq!(table.insert_many([(100, 1), (101, 1)]), 2);
    assert_eq!(table.remove_many([100, 101]), 2);
    assert_eq!(table.iter().count(), 100);
    assert_eq!((&*table).into_iter().map(|(_, value)| value).sum::<u64>(), 100);
    table.retain(|key, _| key < 50);
    assert_eq!(table.len(), 50);
    table.reserve(1_000);
    assert!(table.capacity() >= 1_050 && table.memory_bytes() > 0);
    table.clear();
    assert!(table.is_empty());
    assert_eq!(table.fallible().insert(1, 10), Ok(None));
}

#[test]
fn hash_map() {
    let table = Arc::new(HashMap::builder().capacity(100).build());
    assert!(table.insert(1, 10).is_none());
    assert_eq!(table.insert(1, 11).as_deref(), Some(&10));
    assert_eq!(table.get(&1).as_deref(), Some(&11));
    assert!(table.contains_key(&1));
    assert_eq!(*table.insert_new(1, 12).unwrap_err().current, 11);
    assert_eq!(*table.get_or_insert_with(2, || 20), 20);
    assert_eq!(table.update(&2, |value| value + 1).as_deref(), Some(&21));
    assert_eq!(*table.update_or_insert_with(3, |value| value + 1, || 30), 30);
    let done = table.compute(3, |_| Compute::Remove);
    assert_eq!((done.before.as_deref(), done.after.as_deref()), (Some(&30), None));
    assert_eq!(*table.remove_if(&2, |value| *value == 0).unwrap_err(), 21);
    assert_eq!(table.remove(&2).as_deref(), Some(&21));
    thread::scope(|scope| {
        for part in 0..4 {
            let table = &table;
            scope.spawn(move || {
                let handle = table.handle();
                for step in 0..25 {
                    handle.insert(part * 25 + step, 1);
                }
            });
        }
    });
    let handle = table.owned_handle();
    assert!(thread::spawn(move || handle.contains_key(&99)).join().unwrap());
    let pin = table.pin();
    assert_eq!((pin.get(&7), pin.get(&8)), (Some(&1), Some(&1)));
    drop(pin);
    assert_eq!(table.insert_many([(100, 1), (101, 1)]), 2);
    assert_eq!(table.remove_many([&100, &101]), 2);
    assert_eq!(table.iter().count(), 100);
    assert_eq!((&*table).into_iter().map(|value| *value).sum::<u64>(), 100);
    table.retain(|key, _| *key < 50);
    assert_eq!(table.len(), 50);
    table.reserve(1_000);
    assert!(table.capacity() >= 1_050 && table.memory_bytes() > 0);
    table.clear();
    assert!(table.is_empty());
    assert!(table.fallible().insert(1, 10).unwrap().is_none());
}

#[test]
fn copy_map() {
    let table = Arc::new(CopyMap::<u64, u64>::builder().capacity(100).build());
    assert_eq!(table.insert(1, 10), None);
    assert_eq!(table.insert(1, 11), Some(10));
    assert_eq!(table.get(&1), Some(11));
    assert!(table.contains_key(&1));
    assert_eq!(table.insert_new(1, 12).unwrap_err().current, 11);
    assert_eq!(table.get_or_insert_with(2, || 20), 20);
    assert_eq!(table.update(&2, |value| value + 1), Some(21));
    assert_eq!(table.update_or_insert_with(3, |value| value + 1, || 30), 30);
    let done = table.compute(3, |_| Compute::Remove);
    assert_eq!((done.before, done.after), (Some(30), None));
    assert_eq!(table.remove_if(&2, |value| value == 0), Err(21));
    assert_eq!(table.remove(&2), Some(21));
    thread::scope(|scope| {
        for part in 0..4 {
            let table = &table;
            scope.spawn(move || {
                let handle = table.handle();
                for step in 0..25 {
                    handle.insert(part * 25 + step, 1);
                }
            });
        }
    });
    let handle = table.owned_handle();
    assert!(thread::spawn(move || handle.contains_key(&99)).join().unwrap());
    let pin = table.pin();
    assert_eq!((pin.get(&7), pin.get(&8)), (Some(1), Some(1)));
    drop(pin);
    assert_eq!(table.insert_many([(100, 1), (101, 1)]), 2);
    assert_eq!(table.remove_many([100, 101]), 2);
    assert_eq!(table.iter().count(), 100);
    assert_eq!((&*table).into_iter().map(|(_, value)| value).sum::<u64>(), 100);
    table.retain(|key, _| key < 50);
    assert_eq!(table.len(), 50);
    table.reserve(1_000);
    assert!(table.capacity() >= 1_050 && table.memory_bytes() > 0);
    table.clear();
    assert!(table.is_empty());
    assert_eq!(table.fallible().insert(1, 10), Ok(None));
}

#[test]
fn item_set() {
    let table = Arc::new(ItemSet::<Box<(u64, u64)>>::builder().capacity(100).build());
    assert!(table.insert((1, 10)).is_none());
    assert_eq!(table.insert((1, 11)).map(|item| item.1), Some(10));
    assert_eq!(table.get(&1).map(|item| item.1), Some(11));
    assert!(table.contains(&1));
    assert_eq!(table.insert_new((1, 12)).unwrap_err().current.1, 11);
    assert_eq!(table.get_or_insert_with(&2, || (2, 20)).1, 20);
    assert_eq!(table.update(&2, |item| (2, item.1 + 1)).map(|item| item.1), Some(21));
    assert_eq!(table.update_or_insert_with(&3, |item| (3, item.1 + 1), || (3, 30)).1, 30);
    let done = table.compute(&3, |_| Compute::Remove);
    assert_eq!((done.before.map(|item| item.1), done.after.map(|item| item.1)), (Some(30), None));
    assert_eq!(table.remove_if(&2, |item| item.1 == 0).unwrap_err().1, 21);
    assert_eq!(table.remove(&2).map(|item| item.1), Some(21));
    thread::scope(|scope| {
        for part in 0..4 {
            let table = &table;
            scope.spawn(move || {
                let handle = table.handle();
                for step in 0..25 {
                    handle.insert((part * 25 + step, 1));
                }
            });
        }
    });
    let handle = table.owned_handle();
    assert!(thread::spawn(move || handle.contains(&99)).join().unwrap());
    let pin = table.pin();
    assert_eq!((pin.get(&7), pin.get(&8)), (Some(&(7, 1)), Some(&(8, 1))));
    drop(pin);
    assert_eq!(table.insert_many([(100, 1), (101, 1)]), 2);
    assert_eq!(table.remove_many([&100, &101]), 2);
    assert_eq!(table.iter().count(), 100);
    assert_eq!((&*table).into_iter().map(|item| item.1).sum::<u64>(), 100);
    table.retain(|item| item.0 < 50);
    assert_eq!(table.len(), 50);
    table.reserve(1_000);
    assert!(table.capacity() >= 1_050 && table.memory_bytes() > 0);
    table.clear();
    assert!(table.is_empty());
    assert!(table.fallible().insert((1, 10)).unwrap().is_none());
}

#[test]
fn twin_map() {
    let table = Arc::new(TwinMap::builder().capacity(100).build());
    assert_eq!(table.insert(1, 10), None);
    assert_eq!(table.insert(1, 11), Some(10));
    assert_eq!(table.get(&1).map(|value| *value), Some(11));
    assert!(table.contains_key(&1));
    assert_eq!(table.insert_new(1, 12).unwrap_err().current, 11);
    assert_eq!(table.get_or_insert_with(2, || 20), 20);
    assert_eq!(table.update(&2, |value| value + 1), Some(21));
    assert_eq!(table.update_or_insert_with(3, |value| value + 1, || 30), 30);
    let done = table.compute(3, |_| Compute::Remove);
    assert_eq!((done.before, done.after), (Some(30), None));
    assert_eq!(table.remove_if(&2, |value| *value == 0), Err(21));
    assert_eq!(table.remove(&2), Some(21));
    thread::scope(|scope| {
        for part in 0..4 {
            let table = &table;
            scope.spawn(move || {
                for step in 0..25 {
                    table.insert(part * 25 + step, 1);
                }
            });
        }
    });
    let handle = table.owned_handle();
    assert!(thread::spawn(move || handle.contains_key(&99)).join().unwrap());
    let pin = table.pin();
    assert_eq!((pin.get(&7), pin.get(&8)), (Some(&1), Some(&1)));
    drop(pin);
    assert_eq!(table.insert_many([(100, 1), (101, 1)]), 2);
    assert_eq!(table.remove_many([&100, &101]), 2);
    assert_eq!(table.iter().count(), 100);
    table.retain(|key, _| *key < 50);
    assert_eq!(table.len(), 50);
    table.reserve(1_000);
    assert!(table.capacity() >= 1_050 && table.memory_bytes() > 0);
    table.clear();
    assert!(table.is_empty());
}

#[test]
fn seen_set() {
    let table = Arc::new(SeenSet::builder().capacity(100).build());
    assert!(table.insert(1u64).is_new());
    let known = table.insert(1);
    assert_eq!(table.get(known.id()).filter(|_| !known.is_new()), Some(&1));
    assert!(table.contains(&1));
    thread::scope(|scope| {
        for part in 0..4 {
            let table = &table;
            scope.spawn(move || {
                let handle = table.handle();
                for step in 0..25 {
                    handle.insert(part * 25 + step);
                }
            });
        }
    });
    let handle = table.owned_handle();
    assert!(thread::spawn(move || handle.contains(&99)).join().unwrap());
    assert_eq!(table.insert_many([100, 101]), 2);
    assert_eq!(table.iter().count(), 102);
    assert_eq!((&*table).into_iter().map(|_| 1).sum::<u64>(), 102);
    assert_eq!(table.len(), 102);
    table.reserve(1_000);
    assert!(table.capacity() >= 1_050 && table.memory_bytes() > 0);
    assert!(!table.is_empty());
    assert!(!table.fallible().insert(1).unwrap().is_new());
}

#[cfg(all(feature = "shm", not(quintet_private), target_os = "linux", not(miri)))]
#[test]
fn tier_cache() {
    let key = |number: u64| number.to_le_bytes();
    let table = Arc::new(quintet::TierCache::builder().capacity(1 << 20).create_sealed().unwrap());
    assert!(!table.insert(key(1), "10").unwrap().replaced);
    assert!(table.insert(key(1), "11").unwrap().replaced);
    assert_eq!(table.get(key(1)).unwrap().as_deref(), Some(&b"11"[..]));
    assert!(table.contains_key(key(1)).unwrap());
    assert!(!table.insert_new(key(1), "12", None).unwrap());
    assert!(!table.remove(key(2)).unwrap());
    thread::scope(|scope| {
        for part in 0..4 {
            let table = &table;
            scope.spawn(move || {
                let mut handle = table.handle().unwrap();
                for step in 0..25 {
                    handle.insert(key(part * 25 + step), "1").unwrap();
                }
            });
        }
    });
    let mut handle = table.owned_handle().unwrap();
    assert!(thread::spawn(move || handle.contains_key(key(99)).unwrap()).join().unwrap());
    assert_eq!(table.insert_many(&[(key(100), "1"), (key(101), "1")], None).unwrap().len(), 2);
    assert_eq!(table.remove_many(&[key(100), key(101)]).unwrap(), 2);
    assert_eq!(table.len(), 100);
    table.clear().unwrap();
    assert!(!table.is_empty(), "what was cleared is swept later");
}

/// The operations that a program calls, line by line.
fn calls(program: &str) -> Vec<Vec<&str>> {
    let text = include_str!("one_program.rs");
    let begin = text.find(&format!("fn {program}() {{")).expect("a program of that name");
    let end = begin + text[begin..].find("\n}\n").expect("its end");
    let of = |line: &'static str| {
        let after = ["table.", "handle.", "pin."].iter().flat_map(|way| line.split(way).skip(1));
        let name =
            |rest: &'static str| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next();
        after.filter_map(name).map(|name| if name == "contains_key" { "contains" } else { name })
    };
    let lines = text[begin..end].lines().map(|line| of(line).collect::<Vec<_>>());
    lines.filter(|names| !names.is_empty()).collect()
}

#[test]
fn the_programs_are_one() {
    let whole = calls("word_map");
    assert!(whole.len() > 25, "{whole:?}");
    assert_eq!(calls("hash_map"), whole);
    assert_eq!(calls("item_set"), whole);
    for part in ["twin_map", "seen_set", "tier_cache"] {
        let mut rest = whole.iter();
        for line in calls(part) {
            assert!(rest.any(|other| *other == line), "{part}: {line:?} is not in its place");
        }
    }
}
