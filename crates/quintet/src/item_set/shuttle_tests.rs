//! Whole growths under shuttle: many schedules of many steps, from the smallest table, with four
//! threads.

use super::*;
use crate::sync::{Arc, schedules, thread};

struct Record {
    key: u64,
    value: u64,
}

impl Keyed for Record {
    type Key = u64;
    fn key(&self) -> &u64 {
        &self.key
    }
}

type Set = ItemSet<Box<Record>, foldhash::fast::FixedState>;

fn model(shards: usize, check: impl Fn(Arc<Set>) + Send + Sync + 'static) {
    let make = move |small| {
        let mut set = ItemSet::<Box<Record>>::builder().shards(shards).seed(7).build();
        set.core.settings.small = small;
        Arc::new(set)
    };
    let check = Arc::new(check);
    for small in [false, true] {
        let check = Arc::clone(&check);
        schedules(1_000, move || check(make(small)));
    }
}

/// Runs `work` in four threads.
fn crew(
    set: &Arc<Set>,
    work: fn(&mut QuietHandle<'_, Box<Record>, foldhash::fast::FixedState>, u64),
) {
    let spawn = |thread| {
        let set = Arc::clone(set);
        thread::spawn(move || work(&mut set.quiet_handle(), thread))
    };
    let threads: Vec<_> = (0..4).map(spawn).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

fn value(found: Option<&Record>) -> Option<u64> {
    found.map(|record| record.value)
}

fn own_keys(set: Arc<Set>) {
    crew(&set, |handle, thread| {
        let key = |index: u64| index * 4 + thread;
        for index in 0..8 {
            assert_eq!(value(handle.insert(Record { key: key(index), value: index })), None);
            let again = handle.insert(Record { key: key(index), value: index + 1 });
            assert_eq!(value(again), Some(index));
            handle.quiescent();
        }
        for index in 0..8 {
            assert_eq!(value(handle.get(&key(index))), Some(index + 1), "lost");
            if index % 2 == 0 {
                assert_eq!(value(handle.remove(&key(index))), Some(index + 1));
                assert_eq!(value(handle.remove(&key(index))), None, "back again");
            }
            handle.quiescent();
        }
    });
    let mut keys: Vec<_> = set.pin().iter_exact().map(|record| record.key).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!((keys.len(), set.len()), (16, 16));
}

#[test]
fn shuttle_own_keys_through_growth_and_shrinking() {
    model(4, own_keys);
}

#[test]
fn shuttle_own_keys_under_one_lock() {
    model(1, own_keys);
}

/// Four threads insert the same keys while the set grows: each key has one winner.
#[test]
fn shuttle_one_winner_per_key_while_the_set_grows() {
    model(2, |set| {
        crew(&set, |handle, thread| {
            for key in 0..8 {
                if let Err(rejected) = handle.insert_new(Record { key, value: thread }) {
                    assert_ne!(rejected.current.value, thread, "inserted twice");
                }
                handle.quiescent();
            }
        });
        assert_eq!(set.len(), 8);
        assert_eq!(set.pin().iter_exact().count(), 8);
    });
}

/// Four threads count under the same keys while the set grows: nothing is lost, whichever way a
/// count takes.
#[test]
fn shuttle_counts_are_exact_while_the_set_grows() {
    model(2, |set| {
        crew(&set, |handle, thread| {
            let add = |old: &Record| Record { key: old.key, value: old.value + 1 };
            for key in 0..6 {
                let first = || Record { key, value: 1 };
                if thread % 2 == 0 {
                    handle.update_or_insert_with(&key, add, first);
                } else {
                    handle.set().update_or_insert(add, first());
                }
                handle.insert(Record { key: 100 + key * 4 + thread, value: 0 });
                handle.quiescent();
            }
        });
        assert!((0..6).all(|key| value(set.pin().get(&key)) == Some(4)), "a count is lost");
        assert_eq!(set.len(), 6 + 24);
    });
}
