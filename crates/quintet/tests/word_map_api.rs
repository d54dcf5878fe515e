//! Everything `WordMap` offers, each thing once.

use quintet::word_map::{TableState, WordMapBuilder};
use quintet::{Compute, Computed, Pages, Rejected, WordMap, word_type};
use std::collections::HashMap;
use std::num::{NonZeroI16, NonZeroU64};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct UserId(u32);
word_type!(UserId(u32));

#[derive(Clone, Copy, Debug, PartialEq)]
struct Point((i32, i32));
word_type!(Point((i32, i32)));

#[test]
fn typed_keys_and_values_come_back_as_they_went_in() {
    fn round_trip<T: quintet::word_map::Word + PartialEq + std::fmt::Debug>(values: &[T]) {
        let map: WordMap<T, T> = WordMap::new();
        let pin = map.pin();
        for &value in values {
            assert_eq!(pin.insert(value, value), None);
            assert_eq!(pin.get(value), Some(value));
        }
        assert_eq!(map.len(), values.len());
        assert!(pin.iter().all(|(key, value)| key == value && values.contains(&key)));
    }
    round_trip(&[0u8, 1, u8::MAX]);
    round_trip(&[i8::MIN, -1, 0, i8::MAX]);
    round_trip(&[u16::MAX, 3]);
    round_trip(&[i32::MIN, -7, 7]);
    round_trip(&[i64::MIN, -1, 0, i64::MAX]);
    round_trip(&[0usize, usize::MAX]);
    round_trip(&[isize::MIN, -1]);
    round_trip(&[true, false]);
    round_trip(&['a', '\0', char::MAX]);
    round_trip(&[0.0f32, -0.0, f32::MAX][..2]);
    round_trip(&[1.5f64, f64::INFINITY]);
    round_trip(&[NonZeroU64::MIN, NonZeroU64::MAX]);
    round_trip(&[NonZeroI16::MIN, NonZeroI16::MAX]);
    round_trip(&[UserId(0), UserId(u32::MAX)]);
    round_trip(&[&1u8, &2u8]);
    round_trip(&[()]);
    round_trip(&[(0u32, 0u32), (1, 0), (0, 1), (u32::MAX, 0), (0, u32::MAX), (u32::MAX, u32::MAX)]);
    round_trip(&[
        (0i32, 0i32),
        (-1, 0),
        (0, -1),
        (-1, -1),
        (i32::MIN, i32::MAX),
        (i32::MAX, i32::MIN),
    ]);
    round_trip(&[(0u8, 0i8), (1, -1), (0, -1), (u8::MAX, i8::MIN)]);
    round_trip(&[(0i8, 0u8), (-1, 1), (-1, 0), (i8::MIN, u8::MAX)]);
    round_trip(&[(0u32, 0u16), (1, 0), (0, 1), (u32::MAX, u16::MAX)]);
    round_trip(&[(-1i16, -1i32), (-1, 0), (0, -1), (i16::MIN, i32::MAX)]);
    round_trip(&[[0u8; 8], [u8::MAX; 8], [1, 2, 3, 4, 5, 6, 7, 8], [8, 7, 6, 5, 4, 3, 2, 1]]);
    round_trip(&[[0u8; 3], [0, 0, 1], [0, 1, 0], [1, 0, 0]]);
    round_trip(&[[0u16; 4], [u16::MAX, 0, 0, 1], [1, 0, 0, u16::MAX]]);
    round_trip(&[[0u32; 2], [u32::MAX, 0], [0, u32::MAX]]);
    round_trip(&[None, NonZeroI16::new(-1), NonZeroI16::new(1), Some(NonZeroI16::MIN)]);
    round_trip(&[None, NonZeroU64::new(1), Some(NonZeroU64::MAX)]);
    round_trip(&[Point((0, -1)), Point((-1, 0)), Point((i32::MIN, i32::MAX))]);
}

#[test]
fn floats_are_told_apart_by_their_bits() {
    let map: WordMap<f64, u8> = WordMap::new();
    let pin = map.pin();
    pin.insert(0.0, 1);
    assert_eq!(pin.get(-0.0), None);
    pin.insert(f64::NAN, 2);
    assert_eq!(pin.get(f64::NAN), Some(2));
}

#[test]
fn each_change_says_what_was_there() {
    let map: WordMap<u64, u64> = WordMap::new();
    let pin = map.pin();
    assert_eq!(pin.insert_new(1, 10), Ok(()));
    assert_eq!(pin.insert_new(1, 11), Err(Rejected { current: 10, value: 11 }));
    let rejected = |current, value| Err(Rejected { current, value });
    assert_eq!(pin.compare_exchange(1, 9, 12), rejected(Some(10), 12));
    assert_eq!(pin.compare_exchange(1, 10, 12), Ok(10));
    assert_eq!(pin.compare_exchange(2, 0, 1), rejected(None, 1));
    assert_eq!(pin.update(1, |value| value * 2), Some(24));
    assert_eq!(pin.update(2, |_| unreachable!("absent")), None);
    assert_eq!(pin.get_or_insert_with(1, || unreachable!("present")), 24);
    assert_eq!(pin.get_or_insert_with(2, || 5), 5);
    assert_eq!(pin.get_or_insert(2, 6), 5);
    let done = |before, after| Computed { before, after };
    let raise =
        |found: Option<u64>| found.map_or(Compute::Keep, |value| Compute::Insert(value + 1));
    assert_eq!(pin.compute(2, raise), done(Some(5), Some(6)));
    assert_eq!(pin.compute(9, raise), done(None, None));
    assert_eq!(pin.compute(2, |_| Compute::Remove), done(Some(6), None));
    assert!(!pin.contains_key(2) && pin.contains_key(1));
    assert_eq!(pin.fallible().insert(3, 3), Ok(None));
}

#[test]
fn numbers_are_counted_with() {
    let map: WordMap<u8, i16> = WordMap::new();
    let pin = map.pin();
    assert_eq!(pin.fetch_add(0, 5), None);
    assert_eq!(pin.fetch_add(0, i16::MAX), Some(5));
    assert_eq!(pin.get(0), Some(5i16.wrapping_add(i16::MAX)));
    assert_eq!(pin.fetch_sub(1, 5), None);
    assert_eq!(pin.get(1), Some(-5));
    assert_eq!(pin.fetch_max(1, 3), Some(-5));
    assert_eq!(pin.fetch_min(1, 7), Some(3));
    assert_eq!(pin.fetch_or(1, 4), Some(3));
    assert_eq!(pin.fetch_and(1, 6), Some(7));
    assert_eq!(pin.fetch_xor(1, 2), Some(6));
    assert_eq!(pin.get(1), Some(4));
    assert_eq!(pin.fetch_and(9, 1), None);
    assert_eq!(pin.get(9), None, "nothing to keep bits of");
}

#[test]
fn many_at_once_is_one_by_one() {
    let map: WordMap<u64, u64> = WordMap::new();
    let pin = map.pin();
    for length in [0usize, 1, 31, 32, 33, 1_000] {
        let entries: Vec<_> = (0..length as u64).map(|key| (key * 3, key)).collect();
        let new = entries.iter().filter(|(key, _)| !pin.contains_key(*key)).count();
        assert_eq!(pin.insert_many(entries), new);
        let keys: Vec<_> = (0..3 * length as u64).collect();
        let mut values = vec![Some(99); keys.len()];
        pin.get_many(&keys, &mut values);
        for (key, value) in keys.iter().zip(values) {
            assert_eq!(value, (key % 3 == 0).then_some(key / 3));
        }
    }
}

#[test]
#[should_panic(expected = "one place per key")]
fn many_needs_a_place_for_each() {
    WordMap::<u64, u64>::new().pin().get_many(&[1, 2], &mut [None]);
}

#[test]
fn retain_clear_and_drain_remove_what_they_say() {
    let map: WordMap<u64, u64> = (0..5_000).map(|key| (key, key % 7)).collect();
    let pin = map.handle();
    pin.retain(|_, value| value != 3);
    assert_eq!(map.len(), pin.iter().count());
    assert!(pin.iter().all(|(key, value)| key % 7 == value && value != 3));
    let drained: HashMap<_, _> = pin.drain().take(100).collect();
    assert_eq!(drained.len(), 100);
    assert!(drained.keys().all(|key| !pin.contains_key(*key)));
    pin.clear();
    assert!(map.is_empty() && pin.iter().next().is_none());
    assert!(map.memory_bytes() < 16 << 10, "{} bytes", map.memory_bytes());
}

#[test]
fn room_is_made_and_given_back_on_request() {
    let map: WordMap<u64, u64> = WordMap::builder().pages(Pages::Small).build();
    let pin = &map;
    assert_eq!(map.memory_bytes(), 0, "an empty map has no table");
    pin.reserve(100_000);
    let size = map.stats().tables[0].size;
    (0..100_000).for_each(|key| assert_eq!(pin.insert(key, key), None));
    let stats = map.stats();
    assert_eq!((stats.tables[0].size, stats.migrations), (size, 0), "it did not grow");
    assert_eq!(stats.probes.iter().sum::<usize>(), 100_000);
    assert_eq!(stats.tables[0].state, TableState::Alone);
    assert!((0.3..0.8).contains(&stats.load));
    (100..100_000).for_each(|key| assert_eq!(pin.remove(key), Some(key)));
    pin.shrink_to_fit();
    assert!(map.stats().tables[0].size <= 512);
    assert!((0..100).all(|key| pin.get(key) == Some(key)));
    assert!(pin.try_reserve(usize::MAX).is_err());
    assert_eq!(map.len(), 100);
}

#[test]
fn absurd_wishes_are_errors_that_say_what_to_do() {
    let refused = WordMap::<u64, u64>::builder().capacity(1 << 60).try_build();
    let text = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(text.contains("capacity"), "{text}");
    let builder = WordMap::builder().max_load(9.0).m(0);
    assert!(builder.least_m() >= 9);
    let map: WordMap<u64, u64> = builder.build();
    (0..10_000).for_each(|key| {
        map.pin().insert(key, key);
    });
    assert_eq!(map.len(), 10_000);
}

#[test]
fn the_usual_traits() {
    let map = WordMap::from([(1u8, 'a'), (2, 'b'), (1, 'c')]);
    assert_eq!((map.len(), map.get(1)), (2, Some('c')));
    let copy = map.clone();
    assert_eq!(copy, map);
    copy.insert(3, 'd');
    assert_ne!(copy, map);
    map.insert(3, 'e');
    assert_ne!(copy, map);
    assert_eq!(copy.compare_exchange(3, 'd', 'e'), Ok('d'));
    assert_eq!(copy, map);
    let mut sum = 0;
    for (key, _) in &map {
        sum += key;
    }
    assert_eq!(sum, 6);
    let mut collected: WordMap<_, _> = copy.into_iter().collect();
    collected.extend([(4, 'f')]);
    (&collected).extend([(5, 'g')]);
    assert_eq!(collected.len(), 5);
    assert_eq!(WordMap::<u8, u8>::default(), WordMap::new());
    let floats = WordMap::from([(1, f64::NAN)]);
    assert_eq!(floats.clone(), floats, "by their bits");
    assert_ne!(WordMap::from([(1, 0.0)]), WordMap::from([(1, -0.0)]));
}

#[test]
fn a_clone_has_the_settings_of_its_map() {
    let map: WordMap = WordMap::builder().seed(7).pages(Pages::Small).build();
    assert_eq!(map.clone().memory_bytes(), 0, "of an empty map");
    map.insert_many((0..5_000).map(|key| (key, key * key)));
    let copy = map.clone();
    assert_eq!((copy.stats().migrations, &copy), (0, &map));
}

#[test]
fn what_is_printed_is_content_or_counts() {
    let map = WordMap::from([(1u8, 'a')]);
    assert_eq!(format!("{map:?}"), "{1: 'a'}");
    assert_eq!(format!("{:?}", map.fallible()), "Fallible({1: 'a'})");
    assert_eq!(
        format!("{:?} {:?}", map.handle(), map.pin()),
        "Handle { len: 1, .. } Handle { len: 1, .. }"
    );
    assert_eq!(format!("{:?}", map.drain()), "Drain { left: 1, .. }");
    for text in [
        format!("{:?}", map.iter()),
        format!("{:?} {:?}", map.keys(), map.values()),
        format!("{:?}", map.stats()),
        format!("{:?}", WordMap::<u8, char>::builder()),
        format!("{:?}", map.into_iter()),
    ] {
        assert!(!text.contains("0x") && !text.contains("Phantom"), "{text}");
    }
}

#[test]
fn a_builder_learns_its_types_from_what_is_done_with_the_map() {
    let map =
        WordMap::builder().capacity(9).max_load(0.6).m(32).pages(Pages::Small).seed(1).build();
    map.insert(1u16, 'x');
    assert_eq!(map.get(1), Some('x'));
    let map = WordMap::new();
    map.fetch_add((1u8, 2u8), 3i16);
    assert_eq!(map.iter().next(), Some(((1, 2), 3)));
    let wishes: WordMapBuilder<u64, u64> = WordMapBuilder::default();
    assert!(wishes.capacity(usize::MAX).try_build().is_err());
    assert!(wishes.capacity(100).build().capacity() >= 100);
}

#[cfg(feature = "serde")]
#[test]
fn a_map_survives_a_journey_as_text() {
    let map: WordMap<u64, i8> = (0..100).map(|key| (key, -(key as i8))).collect();
    let text = serde_json::to_string(&map).unwrap();
    let back: WordMap<u64, i8> = serde_json::from_str(&text).unwrap();
    assert_eq!((back.len(), &back), (100, &map));
    assert!(serde_json::from_str::<WordMap<u64, i8>>("[1]").is_err());
}

/// A walk sees every key that is present all the time exactly once, while others make the map grow
/// and shrink.
#[test]
fn a_walk_during_growth_sees_each_lasting_key_once() {
    let map: WordMap<u64, u64> = (0..2_000).map(|key| (key, key)).collect();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let handle = map.handle();
            let mut wave = 0u64;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let keys =
                    || (wave * 20_000 + 2_000..wave * 20_000 + 22_000).filter(|key| key % 2 == 0);
                keys().for_each(|key| {
                    handle.insert(key, key);
                });
                keys().for_each(|key| {
                    handle.remove(key);
                });
                wave += 1;
            }
        });
        let handle = map.handle();
        for _ in 0..100 {
            let mut seen = vec![0; 2_000];
            for (key, value) in handle.iter() {
                assert_eq!(key, value);
                if let Some(count) = seen.get_mut(key as usize) {
                    *count += 1;
                }
            }
            assert!(seen.iter().all(|count| *count == 1));
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(map.len(), 2_000);
}
