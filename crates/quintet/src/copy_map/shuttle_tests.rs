//! Whole growths under shuttle: many schedules of many steps, from the smallest table, with four
//! threads.

use super::*;
use crate::sync::{Arc, schedules, thread};

fn model(check: impl Fn() + Send + Sync + 'static) {
    schedules(2_000, check);
}

/// A map that begins with small tables, or does not.
fn map(small: bool) -> Arc<CopyMap<u64, [u64; 2]>> {
    let settings = Settings { small, ..Settings::usual::<u64, [u64; 2]>() };
    let core = Core::new(settings, DefaultHashBuilder::new());
    Arc::new(CopyMap { core, types: PhantomData })
}

const fn whole(number: u64) -> [u64; 2] {
    [number, !number]
}

fn own_keys_through_growth_and_shrinking(small: bool) {
    model(move || {
        let map = map(small);
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let map = Arc::clone(&map);
                thread::spawn(move || {
                    let handle = map.handle();
                    let key = |index: u64| index << 8 | thread;
                    for index in 0..5 {
                        assert_eq!(handle.insert(key(index), whole(index)), None);
                        assert_eq!(handle.insert(key(index), whole(9)), Some(whole(index)));
                    }
                    for index in 0..5 {
                        assert_eq!(handle.get(&key(index)), Some(whole(9)), "lost");
                        if index % 2 == 0 {
                            assert_eq!(handle.remove(&key(index)), Some(whole(9)));
                            assert_eq!(handle.remove(&key(index)), None, "back again");
                        }
                    }
                    if thread == 0 {
                        handle.shrink_to_fit();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(map.len(), 4 * 2);
        let mut seen: Vec<_> = map.iter().map(|(key, _)| key).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 4 * 2);
    });
}

#[test]
fn shuttle_copy_own_keys_through_growth_and_shrinking() {
    own_keys_through_growth_and_shrinking(false);
}

#[test]
fn shuttle_copy_own_keys_from_a_small_table_on() {
    own_keys_through_growth_and_shrinking(true);
}

#[test]
fn shuttle_copy_counters_add_up_while_the_map_grows() {
    model(|| {
        let map = map(true);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let map = Arc::clone(&map);
                thread::spawn(move || {
                    let handle = map.handle();
                    for key in 0..8 {
                        handle.update_or_insert(key, |value| whole(value[0] + 1), whole(1));
                        let value = handle.get(&key).unwrap();
                        assert_eq!(value, whole(value[0]), "torn");
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!((0..8).all(|key| map.get(&key) == Some(whole(4))));
        assert_eq!(map.iter().count(), 8);
    });
}
