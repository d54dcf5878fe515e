//! Whole growths under shuttle: many schedules of many steps, from the smallest table, with four
//! threads.

use super::*;
use crate::sync::{Arc, schedules, thread};

fn model(check: impl Fn() + Send + Sync + 'static) {
    schedules(2_000, check);
}

/// A key of thread `thread`, spread over the homes: under a model checker the top bits are the
/// home.
fn key(thread: u64, index: u64) -> u64 {
    (index * 4 + thread) << 50 | index << 8 | thread
}

#[test]
fn shuttle_own_keys_through_growth_and_shrinking() {
    model(|| {
        let map = Arc::new(WordMap::<u64, u64>::new());
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let map = Arc::clone(&map);
                thread::spawn(move || {
                    let handle = map.handle();
                    for index in 0..6 {
                        assert_eq!(handle.insert(key(thread, index), index), None);
                        assert_eq!(handle.insert(key(thread, index), index + 1), Some(index));
                    }
                    for index in 0..6 {
                        assert_eq!(handle.get(key(thread, index)), Some(index + 1), "lost");
                        if index % 2 == 0 {
                            assert_eq!(handle.remove(key(thread, index)), Some(index + 1));
                            assert_eq!(handle.remove(key(thread, index)), None, "back again");
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(map.len(), 4 * 3);
        let mut seen: Vec<_> = map.handle().iter().map(|(key, _)| key).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 4 * 3);
    });
}

#[test]
fn shuttle_counters_add_up_while_the_map_grows() {
    model(|| {
        let map = Arc::new(WordMap::<u64, u64>::new());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let map = Arc::clone(&map);
                thread::spawn(move || {
                    let handle = map.handle();
                    (0..8).for_each(|index| {
                        handle.fetch_add(key(0, index), 1);
                    });
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let handle = map.handle();
        assert!((0..8).all(|index| handle.get(key(0, index)) == Some(4)));
    });
}

/// Keys with one home: they run over the reach and into the list, and through reseeds and growth.
#[test]
fn shuttle_a_flood_is_kept() {
    model(|| {
        let map = Arc::new(WordMap::<u64, u64>::new());
        let threads: Vec<_> = (0..3u64)
            .map(|thread| {
                let map = Arc::clone(&map);
                thread::spawn(move || {
                    let handle = map.handle();
                    for index in 0..3 {
                        assert_eq!(handle.insert(index << 8 | thread, index), None);
                    }
                    assert_eq!(handle.remove(thread), Some(0));
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(map.len(), 3 * 2);
        assert_eq!(map.handle().iter().count(), 3 * 2);
    });
}

/// Values that wander between plain and special ones, of a special key and of another, while the
/// map grows and its cells run out.
#[test]
fn shuttle_special_values_are_kept() {
    const START: u64 = (1 << 63) - 4;
    model(|| {
        let map = Arc::new(WordMap::<u64, u64>::new());
        let threads: Vec<_> = (0..3u64)
            .map(|thread| {
                let map = Arc::clone(&map);
                thread::spawn(move || {
                    let handle = map.handle();
                    for index in 0..4 {
                        for counter in [0, key(3, 0)] {
                            handle.update_or_insert(counter, |value| value + 1, START);
                        }
                        assert_eq!(handle.insert(key(thread, index) | 2, 1 << 63), None);
                        assert_eq!(handle.get(key(thread, index) | 2), Some(1 << 63), "lost");
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((map.get(0), map.get(key(3, 0))), (Some(START + 11), Some(START + 11)));
        assert_eq!(map.len(), 14);
    });
}
