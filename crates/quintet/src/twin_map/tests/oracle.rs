//! Random batches against std's map.

use super::super::*;
use crate::region::Pages;
use quintet_testkit::Rng;
use std::collections::HashMap;

/// What the map must hold: what readers see, and what the writer has staged.
#[derive(Clone, Default)]
struct Model {
    published: HashMap<u64, u64>,
    staged: HashMap<u64, u64>,
}

fn step(rng: &mut Rng, write: &mut WriteGuard<'_, u64, u64>, staged: &mut HashMap<u64, u64>) {
    let (key, value) = (rng.u64(0..40), rng.u64(..));
    match rng.u8(0..20) {
        0..=6 => assert_eq!(write.insert(key, value), staged.insert(key, value)),
        7..=10 => assert_eq!(write.remove(&key), staged.remove(&key)),
        11 => {
            let new = write.update(&key, |old| old ^ 1);
            staged.entry(key).and_modify(|held| *held ^= 1);
            assert_eq!(new, staged.get(&key).copied());
        }
        12 => {
            write.modify(&key, |held| *held += 1);
            staged.entry(key).and_modify(|held| *held += 1);
        }
        13 => {
            write.retain(|key, _| key % 3 != 0);
            staged.retain(|key, _| key % 3 != 0);
        }
        14 => {
            write.clear();
            staged.clear();
        }
        15 => {
            let held = *write.entry(key).and_modify(|held| *held /= 2).or_insert(value);
            let expected = *staged.entry(key).and_modify(|held| *held /= 2).or_insert(value);
            assert_eq!(held, expected);
        }
        16 => match write.entry(key) {
            Entry::Occupied(entry) => assert_eq!(entry.remove(), staged.remove(&key)),
            Entry::Vacant(entry) => {
                assert!(!staged.contains_key(&key));
                assert_eq!(*entry.insert(7), 7);
                staged.insert(key, 7);
            }
        },
        17 => {
            let more = [(key, value), (key + 1, value)];
            write.extend(more);
            staged.extend(more);
        }
        18 => write.reserve(rng.usize(0..100)),
        _ => write.shrink_to_fit(),
    }
    assert_eq!(write.get(&key), staged.get(&key), "the writer reads its own writes");
    assert_eq!(write.len(), staged.len());
}

fn check(seen: &Version<u64, u64>, expected: &HashMap<u64, u64>) {
    assert_eq!(seen.len(), expected.len());
    assert!(seen.iter().all(|(key, value)| expected.get(key) == Some(value)));
    assert!((0..42).all(|key| seen.get(&key) == expected.get(&key)));
    assert_eq!(seen.keys().count(), seen.values().len());
}

fn run(seed: u64, builder: TwinMapBuilder<u64, u64>) {
    let mut rng = Rng::with_seed(seed);
    let (mut writer, reader) = builder.build().split();
    let mut model = Model::default();
    let mut version = 0;
    for _ in 0..200 {
        let mut write = writer.guard();
        for _ in 0..rng.usize(0..12) {
            step(&mut rng, &mut write, &mut model.staged);
        }
        match rng.u8(0..10) {
            0 => {
                write.discard();
                model.staged = model.published.clone();
            }
            1 => std::mem::forget(write), // the batch goes on
            2 if write.staged() == 0 => drop(write),
            n => {
                version += 1;
                if n < 6 && write.staged() > 0 {
                    drop(write);
                } else {
                    assert_eq!(write.publish(), version);
                }
                model.published = model.staged.clone();
            }
        }
        let guard = reader.pin();
        assert_eq!(guard.version(), version);
        check(&guard, &model.published);
    }
    assert_eq!(writer.version(), version);
}

#[test]
fn random_batches_agree_with_std() {
    for seed in 0..60 {
        run(seed, TwinMap::builder());
        run(seed, TwinMap::builder().stalled(Stalled::Copy).capacity(100));
        run(seed, TwinMap::builder().fences().pages(Pages::Small));
    }
}

#[test]
fn large_copies_lie_in_mappings_and_come_back() {
    let entries = 300_000;
    for pages in [Pages::Huge, Pages::Small] {
        let (mut writer, reader) = TwinMap::<u64, u64>::builder().pages(pages).build().split();
        let mut write = writer.guard();
        write.extend((0..entries).map(|n| (n, n)));
        assert!(write.memory_bytes() > 4 << 20);
        write.publish();
        let mut write = writer.guard();
        write.retain(|key, _| key % 100 == 0);
        write.shrink_to_fit();
        write.publish();
        drop(writer.guard());
        let guard = reader.pin();
        assert!(guard.memory_bytes() < 1 << 20, "removed memory returns");
        assert!((0..entries).all(|n| guard.get(&n) == (n % 100 == 0).then_some(&n)));
    }
}

#[test]
fn borrowed_keys_sets_and_conversions() {
    let map: TwinMap<String, u32> =
        [("a".to_owned(), 1), ("b".to_owned(), 2)].into_iter().collect();
    assert_eq!(format!("{:?}", TwinMap::<u8, u8>::from_iter([(1, 2)])), "{1: 2}");
    let same = map.clone();
    assert_eq!(map, same);
    let (mut writer, reader) = map.split();
    let mut write = writer.guard();
    assert_eq!(write.remove("a"), Some(1));
    write.publish();
    assert!(reader.pin().contains_key("b"));
    assert_eq!(reader.pin().get("a"), None);
    assert_ne!(*reader.pin(), *same.pin());

    let (mut writer, reader) = TwinSet::<String>::new().split();
    let mut write = writer.guard();
    assert!(write.insert("x".to_owned()));
    assert!(!write.insert("x".to_owned()));
    write.extend(["y".to_owned(), "z".to_owned()]);
    write.retain(|element| element != "z");
    assert!(write.contains("y"));
    write.publish();
    assert_eq!(reader.pin().get("x").map(String::as_str), Some("x"));
    assert_eq!(reader.pin().len(), 2);
    assert_eq!(writer.stats().published, 1);
}

#[test]
fn out_of_memory_is_an_error_value() {
    let (mut writer, reader) = TwinMap::<u64, u64>::new().split();
    let mut write = writer.guard();
    write.insert(1, 1);
    assert_eq!(write.try_reserve(usize::MAX / 2), Err(crate::AllocError::CapacityOverflow));
    assert!(matches!(
        write.try_reserve(usize::MAX / 64),
        Err(crate::AllocError::OutOfMemory { .. } | crate::AllocError::CapacityOverflow)
    ));
    write.publish();
    assert_eq!(reader.pin().get(&1), Some(&1));
}
