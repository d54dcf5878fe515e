//! References into the table: held, forgotten, and used while the table is used.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::{GenericFamily, GenericMap, expect};
use crate::conformance::threads::LIMIT;
use crate::stress::within;

/// A value that shows when its memory was reused.
type Marked = [u64; 8];

fn marked(number: u64) -> Marked {
    [number; 8]
}

#[track_caller]
fn assert_intact(value: &Marked) {
    assert!(value.iter().all(|word| *word == value[0]), "torn or freed: {value:x?}");
}

/// A guard that is never dropped blocks neither readers nor writers nor growth.
pub fn forgotten_guard<F: GenericFamily>() {
    within("forgotten_guard", LIMIT, || {
        let map = F::Map::<u64, Marked>::new();
        (0..100).for_each(|key| map.insert(key, marked(key)));
        thread::scope(|scope| {
            scope.spawn(|| (0..10).for_each(|key| map.forget_guard(&key)));
        });
        map.forget_guard(&20);
        thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..20 {
                    (0..200).for_each(|key| map.insert(key + round, marked(key)));
                    (0..200).for_each(|key| assert!(map.remove(&(key + round))));
                }
            });
        });
        map.insert(7, marked(7));
        expect(&map, &7, Some(marked(7)));
    });
}

/// The table is read while a reference into it is held.
pub fn reentry_reads<F: GenericFamily>() {
    within("reentry_reads", LIMIT, || {
        let map = F::Map::<u64, Marked>::new();
        (0..100).for_each(|key| map.insert(key, marked(key)));
        for key in 0..100 {
            map.get_with(&key, |outer| {
                for other in 0..100 {
                    expect(&map, &other, Some(marked(other)));
                }
                assert_eq!(outer, Some(&marked(key)));
            });
        }
    });
}

/// The table is written and grown by the thread that holds a reference into it, and the very
/// entry is replaced and removed: the reference stays valid.
pub fn reentry_writes<F: GenericFamily>() {
    within("reentry_writes", LIMIT, || {
        let map = F::Map::<u64, Marked>::new();
        for key in 0..50 {
            map.insert(key, marked(key));
            map.get_with(&key, |held| {
                map.insert(key, marked(1_000 + key));
                (100..300).for_each(|other| map.insert(other, marked(other)));
                assert!(map.remove(&key));
                (100..300).for_each(|other| assert!(map.remove(&other)));
                assert_eq!(held, Some(&marked(key)), "the reference shows what it showed");
            });
            expect(&map, &key, None);
        }
        assert_eq!(map.entries(), 0);
    });
}

/// Readers look at values while others replace and remove them: no value is torn or freed.
/// Strongest with the shredding allocator.
pub fn references_survive_removal<F: GenericFamily>() {
    const KEYS: u64 = 16;
    within("references_survive_removal", LIMIT, || {
        let map = F::Map::<u64, Box<Marked>>::new();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut turn = 0;
                    // ORDERING: only tells to stop; partner is the store below.
                    while !done.load(Ordering::Relaxed) {
                        turn += 1;
                        map.get_with(&(turn % KEYS), |value| {
                            let Some(value) = value else { return };
                            assert_intact(value);
                            if turn % 8 == 0 {
                                thread::yield_now();
                            }
                            assert_intact(value);
                        });
                    }
                });
            }
            for number in 0..30_000 {
                map.insert(number % KEYS, Box::new(marked(number)));
                if number % 3 == 0 {
                    map.remove(&((number / 3) % KEYS));
                }
            }
            // ORDERING: only tells to stop; partner is the load above.
            done.store(true, Ordering::Relaxed);
        });
    });
}
