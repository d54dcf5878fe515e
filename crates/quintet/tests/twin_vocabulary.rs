//! Every operation of `TwinMap` and `TwinSet` on the table itself, its guards and its handles; many
//! writers; user code that comes back.

use quintet::twin_map::{GuardError, ReadGuard, Ref, Stalled, TwinMapBuilder};
use quintet::{Compute, Computed, Rejected, TwinMap, TwinSet};
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

fn panics<R>(f: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

/// Runs a story that must end. One that hangs fails the test instead of hanging it.
fn ends<R: Send + 'static>(story: impl FnOnce() -> R + Send + 'static) -> R {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = tell.send(catch_unwind(AssertUnwindSafe(story)));
    });
    let told = told.recv_timeout(Duration::from_secs(60)).expect("the story ends in time");
    told.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
}

#[test]
fn every_write_of_the_page() {
    let map = TwinMap::new();
    assert_eq!(map.insert(1, 10), None);
    assert_eq!(map.insert(1, 11), Some(10));
    assert_eq!(map.insert_new(1, 12), Err(Rejected { current: 11, value: 12 }));
    assert_eq!(map.insert_new(2, 20), Ok(()));
    assert_eq!((map.get_or_insert(2, 0), map.get_or_insert(3, 30)), (20, 30));
    assert_eq!(map.get_or_insert_with(3, || panic!("is there")), 30);
    assert_eq!(map.get_or_insert_with(4, || 40), 40);
    assert_eq!((map.update(&4, |old| old + 1), map.update(&5, |old| old + 1)), (Some(41), None));
    assert_eq!(map.update_or_insert(4, |old| old + 1, 0), 42);
    assert_eq!(map.update_or_insert(5, |old| old + 1, 50), 50);
    assert_eq!(map.update_or_insert_with(5, |old| old + 1, || 0), 51);
    assert_eq!(map.update_or_insert_with(6, |old| old + 1, || 60), 60);
    let computed = |before, after| Computed { before, after };
    assert_eq!(map.compute(7, |_| Compute::Keep), computed(None, None));
    assert_eq!(map.compute(7, |_| Compute::Remove), computed(None, None));
    assert_eq!(map.compute(7, |_| Compute::Insert(70)), computed(None, Some(70)));
    assert_eq!(map.compute(7, |_| Compute::Keep), computed(Some(70), Some(70)));
    let more = |old: Option<&i32>| Compute::Insert(old.unwrap() + 1);
    assert_eq!(map.compute(7, more), computed(Some(70), Some(71)));
    assert_eq!(map.compute(7, |_| Compute::Remove), computed(Some(71), None));
    assert_eq!((map.remove(&6), map.remove(&6)), (Some(60), None));
    assert_eq!(map.remove_if(&5, |value| *value == 0), Err(51));
    assert_eq!(map.remove_if(&5, |value| *value == 51), Ok(Some(51)));
    assert_eq!(map.remove_if(&5, |_| true), Ok(None));
    assert_eq!(map.insert_many([(8, 80), (4, 44), (9, 90)]), 2);
    assert_eq!(map.remove_many(&[8, 9, 99]), 2);
    map.retain(|key, value| *key != 3 && *value != 44);
    assert_eq!(map, TwinMap::from([(1, 11), (2, 20)]));
    map.replace_all([(1, 1), (5, 5)]);
    assert_eq!(map, TwinMap::from([(1, 1), (5, 5)]));
    let version = map.version();
    let both = map.batch(|write| {
        write.insert(6, 6);
        assert_eq!((write.get(&6), map.get(&6).is_none()), (Some(&6), true));
        assert_eq!(write.modify(&6, |value| *value += 1), Some(7));
        write.remove(&5)
    });
    assert_eq!((both, map.version() - version, map.len()), (Some(5), 1, 2));
    map.clear();
    assert!(map.is_empty());
}

#[test]
fn every_operation_of_a_batch() {
    let map = TwinMap::from([(1, 10)]);
    map.batch(|write| {
        assert_eq!(write.insert_new(1, 0), Err(Rejected { current: 10, value: 0 }));
        assert_eq!(write.insert_new(2, 20), Ok(()));
        assert_eq!((write.get_or_insert(2, 0), write.get_or_insert(3, 30)), (20, 30));
        assert_eq!(write.get_or_insert_with(4, || 40), 40);
        assert_eq!(
            (write.update(&4, |old| old + 1), write.update(&9, |old| *old)),
            (Some(41), None)
        );
        assert_eq!(write.update_or_insert(4, |old| old + 1, 0), 42);
        assert_eq!(write.update_or_insert_with(5, |old| old + 1, || 50), 50);
        let computed = write.compute(5, |old| Compute::Insert(old.unwrap() + 1));
        assert_eq!(computed, Computed { before: Some(50), after: Some(51) });
        assert_eq!(write.compute(5, |_| Compute::Remove).after, None);
        assert_eq!(write.compute(5, |_| Compute::Keep).before, None);
        assert_eq!(write.remove_if(&4, |value| *value == 0), Err(42));
        assert_eq!(write.remove_if(&4, |value| *value == 42), Ok(Some(42)));
        assert_eq!(write.remove_if(&4, |_| true), Ok(None));
        assert_eq!((write.insert_many([(6, 6), (1, 1)]), write.remove_many(&[6, 7])), (1, 1));
        write.retain(|key, _| *key != 3);
        write.reserve(100);
        assert!(write.try_reserve(usize::MAX).is_err());
        write.shrink_to_fit();
    });
    assert_eq!(map, TwinMap::from([(1, 1), (2, 20)]));
    assert_eq!(map.stats().published, 1);
}

/// What reads, by every way in.
macro_rules! reads {
    ($way:expr) => {{
        let way = $way;
        assert_eq!(way.get(&2).map(|value| value.len()), Some(3));
        assert!(way.get(&9).is_none() && way.contains_key(&1) && !way.contains_key(&9));
        assert_eq!((way.len(), way.is_empty()), (2, false));
        assert!(way.capacity() >= 2 && way.memory_bytes() > 0);
        let keys: HashSet<u64> = way.keys().map(|key| *key).collect();
        let values: HashSet<String> = way.values().map(|value| value.clone()).collect();
        assert_eq!((keys, values.len(), way.iter().len()), (HashSet::from([1, 2]), 2, 2));
    }};
}

#[test]
fn every_read_of_the_page_by_every_way() {
    let map = Arc::new(TwinMap::from([(1, "one".to_owned()), (2, "two".to_owned())]));
    reads!(&*map);
    reads!(map.pin());
    reads!(map.handle());
    reads!(map.owned_handle());
    assert_eq!(map.stats(), map.handle().stats());
    assert_eq!((map.version(), map.handle().version(), map.pin().version()), (0, 0, 0));
    for (key, value) in &map.pin() {
        assert_eq!(map.get(key).as_deref(), Some(value));
    }
    for (key, value) in &*map.pin() {
        assert_eq!(map.pin()[key], *value);
    }
    for entry in &*map {
        assert_eq!(map.pin().get(&entry.0), Some(&entry.1));
    }
    let part: Ref<'_, str> = Ref::map(map.get(&1).unwrap(), |value| &value[1..]);
    assert_eq!((&*part, format!("{part} {part:?}").as_str()), ("ne", "ne \"ne\""));
    assert!(Ref::filter_map(part, |_| None::<&u8>).is_err());
    assert_eq!(*ReadGuard::map(map.pin(), |version| &version[&2]), "two");
    assert!(ReadGuard::filter_map(map.pin(), |version| version.get(&3)).is_err());
    let (one, other) = (map.handle(), map.handle());
    assert_eq!(one.get(&1).as_deref(), other.get(&1).as_deref());
}

#[test]
fn tables_are_made_of_and_turned_into_what_std_has() {
    let map: TwinMap<u32, u32> = HashMap::from([(1, 1)]).into();
    (&map).extend([(2, 2)]);
    let mut more = map.clone();
    more.extend([(3, 3)]);
    assert_ne!(map, more);
    assert_eq!((map.len(), more.len()), (2, 3), "a clone is a map of its own");
    assert_eq!(format!("{:?}", TwinMap::from([(1, 2)])), "{1: 2}");
    let content: HashMap<u32, u32> = more.into_iter().collect();
    assert_eq!(content, HashMap::from([(1, 1), (2, 2), (3, 3)]));
    assert_eq!(TwinMap::<u32, u32>::default(), TwinMap::new());
    assert_eq!(TwinMap::new(), map.into_iter().take(0).collect::<TwinMap<u32, u32>>());
    let map = TwinMap::builder().capacity(9).build();
    assert!(map.capacity() >= 9);
    map.insert("types", "inferred");
    let map = TwinMap::builder().seed(7).stalled(Stalled::Copy).build();
    map.insert(1, 2);
    assert!(TwinMap::<u64, u64>::builder().capacity(usize::MAX).try_build().is_err());
    let state = std::hash::RandomState::new();
    let map = TwinMap::with_capacity_and_hasher(5, state.clone());
    map.insert(1, 2);
    assert_eq!(TwinMap::with_hasher(state).insert(1, 2), None);
    assert_eq!(TwinMap::with_capacity(5).insert(1, 2), None);
    assert!(format!("{:?}", TwinMapBuilder::<u8, u8>::new().capacity(3)).contains("capacity: 3"));
}

#[test]
fn every_operation_of_a_set() {
    let set = Arc::new(TwinSet::new());
    assert!(set.is_empty() && !set.remove("a") && set.get("a").is_none());
    assert!(set.insert("a") && !set.insert("a"));
    assert_eq!((set.insert_many(["b", "c"]), set.remove_many(["c", "d"])), (2, 1));
    assert_eq!((set.get("b").as_deref(), set.len()), (Some(&"b"), 2));
    set.retain(|element| *element != "b");
    assert_eq!(*set, TwinSet::from(["a"]));
    set.replace_all(["x", "y"]);
    set.batch(|write| {
        assert!(write.insert("z") && write.remove("x") && write.contains("y"));
    });
    for way in [set.handle(), set.owned_handle()] {
        assert!(way.contains("y") && way.get("z").is_some() && way.len() == 2);
        assert_eq!(way.iter().map(|element| *element).collect::<HashSet<_>>().len(), 2);
    }
    let seen: HashSet<&str> = (&set.pin()).into_iter().copied().collect();
    assert_eq!(seen, (&*set).into_iter().map(|element| *element).collect());
    assert!(set.capacity() >= 2 && set.memory_bytes() > 0 && set.stats().published == 7);
    set.reserve(100);
    assert!(set.try_reserve(usize::MAX).is_err());
    set.shrink_to_fit();
    let mut other = (*set).clone();
    other.extend(["w"]);
    assert_eq!((set.len(), other.len()), (2, 3));
    assert_eq!(TwinSet::from(HashSet::from([1, 2])).into_iter().sum::<i32>(), 3);
    assert_eq!(format!("{:?}", TwinSet::from([1])), "{1}");
    let (mut writer, reader) = other.split();
    writer.guard().clear();
    assert_eq!((reader.len(), writer.into_set().len()), (0, 0));
    set.clear();
    assert_eq!(*set, TwinSet::builder().capacity(4).build());
}

/// Reads of a table that was never written find nothing, and most writes change nothing.
#[test]
fn a_table_that_was_never_written() {
    let map = TwinMap::<String, String>::new();
    assert!(map.get("a").is_none() && !map.contains_key("a") && map.is_empty());
    assert_eq!((map.iter().len(), map.capacity(), map.memory_bytes(), map.version()), (0, 0, 0, 0));
    assert_eq!((map.remove("a"), map.update("a", |old| old.clone())), (None, None));
    assert_eq!(map.remove_if("a", |_| true), Ok(None));
    map.clear();
    map.shrink_to_fit();
    map.retain(|_, _| false);
    assert_eq!((format!("{map:?}"), map.clone() == map, map.version()), ("{}".to_owned(), true, 0));
    assert_eq!((map.pin().len(), map.handle().len()), (0, 0));
}

/// A writer and the table over the same copies.
#[test]
fn a_table_is_split_and_put_together_again() {
    let map = TwinMap::from([(1, 1)]);
    let early = map.handle();
    let (mut writer, reader) = map.split();
    writer.guard().insert(2, 2);
    let map = writer.into_map();
    map.insert(3, 3);
    assert_eq!((early.len(), reader.len(), map.len()), (3, 3, 3));
    assert_eq!((map.version(), reader.version(), map.stats().published), (2, 2, 2));
    let (mut writer, _) = map.split();
    let mut write = writer.guard();
    write.insert(4, 4);
    std::mem::forget(write);
    let map = TwinMap::from_writer(writer);
    assert_eq!(map.len(), 3, "not published yet");
    map.insert(5, 5);
    assert_eq!(map.len(), 5);
    drop(map);
    assert!(early.is_final());
    assert_eq!(early.len(), 5);
}

/// A handle without a lifetime works in a thread that outlives the caller's share, and may be the
/// last owner of the copies.
#[test]
fn an_owned_handle_outlives_the_table() {
    let value = Arc::new(());
    let map = Arc::new(TwinMap::from([(1, Arc::clone(&value))]));
    let (handle, last) = (map.owned_handle(), map.owned_handle());
    let (go, gone) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        gone.recv().unwrap();
        assert!(handle.is_final() && handle.contains_key(&1));
        handle
    });
    drop(map);
    go.send(()).unwrap();
    drop(thread.join().unwrap());
    assert_eq!(Arc::strong_count(&value), 3, "two copies");
    drop(last);
    assert_eq!(Arc::strong_count(&value), 1);
}

/// No update is lost, whichever way it is written.
#[test]
fn many_threads_lose_no_update() {
    const ROUNDS: u64 = 400;
    for threads in 2..=4u64 {
        let map = TwinMap::<&str, u64>::new();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let map = &map;
                scope.spawn(move || {
                    for n in 0..ROUNDS {
                        map.update_or_insert("update", |old| old + 1, 1);
                        let add = |old: Option<&u64>| Compute::Insert(old.map_or(1, |old| old + 1));
                        map.compute("compute", add);
                        map.batch(|write| write.update_or_insert("batch", |old| old + 1, 1));
                        // Tokens go and come back: one is there, or somebody has it.
                        if n % 3 == thread % 3 {
                            map.insert_new("token", n).ok();
                            map.remove_if("token", |value| *value == n).ok();
                        }
                    }
                });
            }
        });
        for key in ["update", "compute", "batch"] {
            assert_eq!(map.get(key).as_deref(), Some(&(threads * ROUNDS)), "{key} of {threads}");
        }
    }
}

/// Every element is taken out by exactly one of those who ask, and `retain` loses nothing that came
/// meanwhile.
#[test]
fn many_threads_take_each_element_once() {
    let map = TwinMap::<u64, u64>::from_iter((0..600).map(|n| (n, 0)));
    let stop = AtomicBool::new(false);
    let taken: u64 = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                map.retain(|_, value| *value != 7);
            }
        });
        let takers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let take = |n| u64::from(matches!(map.remove_if(&n, |_| true), Ok(Some(_))));
                    (0..600).map(take).sum::<u64>()
                })
            })
            .collect();
        let marker = scope.spawn(|| {
            for n in 1_000..1_200 {
                map.insert(n, 7);
                map.insert(n, 8); // a retain that saw the 7 must look again
                assert_eq!(map.get(&n).as_deref(), Some(&8), "{n}");
            }
        });
        let taken = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
        marker.join().unwrap();
        stop.store(true, Ordering::Relaxed);
        taken
    });
    assert_eq!(taken, 600);
    assert_eq!(map.len(), 200);
}

/// Uses the table by every way in, and writes more often than there are copies.
fn use_every_way(map: &TwinMap<u64, u64>) {
    for n in 100..104 {
        map.insert(n, n);
        assert_eq!(map.get(&n).as_deref(), Some(&n));
        assert_eq!(map.pin().get(&n), Some(&n));
        assert_eq!(map.handle().get(&n).as_deref(), Some(&n));
        map.batch(|write| write.remove(&n));
        map.update_or_insert(200, |old| old + 1, 1);
        map.compute(201, |_| Compute::Insert(n));
        map.retain(|key, _| *key != 201);
    }
}

#[test]
fn closures_use_the_table_that_calls_them() {
    ends(|| {
        let map = TwinMap::from([(1, 1), (2, 2)]);
        let add = |old: &u64| {
            use_every_way(&map);
            old + 1
        };
        assert_eq!(map.update(&1, add), Some(2));
        assert_eq!(map.update_or_insert(1, add, 0), 3);
        let make = || {
            use_every_way(&map);
            3
        };
        assert_eq!(map.get_or_insert_with(3, make), 3);
        let computed = map.compute(4, |old| {
            use_every_way(&map);
            Compute::Insert(old.map_or(4, |old| *old))
        });
        assert_eq!(computed.after, Some(4));
        let agrees = |_: &u64| {
            use_every_way(&map);
            true
        };
        assert_eq!(map.remove_if(&4, agrees), Ok(Some(4)));
        map.retain(|key, _| {
            use_every_way(&map);
            *key != 2
        });
        map.insert_many((10..12).map(|n| {
            use_every_way(&map);
            (n, n)
        }));
        map.remove(&200);
        assert_eq!(map, TwinMap::from([(1, 3), (3, 3), (10, 10), (11, 11)]));
        let set = TwinSet::from([1, 2]);
        set.retain(|element| set.insert(element + 10) || *element != 2);
        assert!(set.contains(&11) && set.contains(&12));
    });
}

/// What was changed behind the back of a closure makes it run again, and is not lost.
#[test]
fn a_closure_runs_again_if_what_it_saw_has_changed() {
    ends(|| {
        let map = TwinMap::from([(1, 1), (2, 2)]);
        let mut runs = 0;
        let mut disturb = |value: u64| {
            runs += 1;
            if runs % 2 == 1 {
                map.insert(1, value);
            }
        };
        let mut add = |old: &u64| {
            disturb(10);
            old + 1
        };
        assert_eq!(map.update(&1, &mut add), Some(11));
        assert_eq!(map.update_or_insert(1, &mut add, 0), 11);
        let computed = map.compute(1, |old| {
            disturb(20);
            Compute::Insert(old.unwrap() + 1)
        });
        assert_eq!(computed, Computed { before: Some(20), after: Some(21) });
        let agrees = |value: &u64| {
            disturb(30);
            *value == 21
        };
        assert_eq!(map.remove_if(&1, agrees), Err(30));
        let mut seen = Vec::new();
        map.retain(|key, value| {
            if *key == 1 {
                seen.push(*value);
                disturb(31);
            }
            *value != 30
        });
        assert_eq!((seen, runs), (vec![30, 31], 10));
        assert_eq!(map, TwinMap::from([(1, 31), (2, 2)]));
    });
}

#[test]
fn closures_that_panic_have_changed_nothing() {
    let map = TwinMap::from([(1, 1), (2, 2)]);
    let before = map.clone();
    assert!(panics(|| map.update(&1, |_| panic!("on purpose"))));
    assert!(panics(|| map.update_or_insert(1, |_| panic!("on purpose"), 0)));
    assert!(panics(|| map.update_or_insert_with(9, |old| *old, || panic!("on purpose"))));
    assert!(panics(|| map.get_or_insert_with(9, || panic!("on purpose"))));
    assert!(panics(|| map.compute(1, |_| panic!("on purpose"))));
    assert!(panics(|| map.remove_if(&1, |_| panic!("on purpose"))));
    assert!(panics(|| map.insert_many((0..9).map(|n| (n, 6 / (3 - n))))));
    let mut calls = 0;
    assert!(panics(|| map.retain(|_, _| {
        calls += 1;
        assert!(calls < 2, "on purpose");
        false
    })));
    assert!(panics(|| map.batch(|write| {
        write.clear();
        panic!("on purpose")
    })));
    assert_eq!(map, before);
    map.insert(3, 3);
    assert_eq!((map.len(), map.version()), (3, 1));
}

/// References and iterators stay as they are while others write and the table grows; a writer of
/// another thread waits for the write after next only.
#[test]
fn what_is_lent_stays_while_others_write() {
    let map = TwinMap::<u64, String>::builder().stalled(Stalled::Copy).build();
    map.insert(1, "first".to_owned());
    let value = map.get(&1).unwrap();
    let mut entries = map.iter();
    let guard = map.pin();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..2_000 {
                map.insert(n, n.to_string());
            }
        });
    });
    assert_eq!((&**value, guard.len(), entries.len()), ("first", 1, 1));
    let entry = entries.next().unwrap();
    drop((guard, entries));
    assert_eq!((entry.1.as_str(), &**value), ("first", "first"));
    assert_eq!(map.len(), 2_000);
    assert!(map.stats().left_behind > 0);
}

/// A thread that writes while it reads is told before it would wait for itself, also when another
/// writer waits for it.
#[test]
fn a_thread_does_not_wait_for_its_own_guard() {
    ends(|| {
        let map = TwinMap::builder().stalled(Stalled::Wait).build();
        map.insert(1, 1);
        let value = map.get(&1).unwrap();
        map.insert(2, 2); // the next write goes through
        assert!(panics(|| map.insert(3, 3)));
        assert_eq!(map.try_batch(|_| ()), Err(GuardError::Occupied));
        let most = Duration::from_millis(5);
        assert_eq!(map.batch_timeout(most, |_| ()), Err(GuardError::WouldDeadlock));
        assert_eq!(*value, 1);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| map.insert(4, 4));
            while map.stats().published == 2 && map.try_batch(|_| ()) == Err(GuardError::Occupied) {
                std::thread::sleep(Duration::from_millis(1));
                if other.is_finished() {
                    break;
                }
                // The other one holds the lock by now, or soon, and waits for this thread.
                if panics(|| map.insert(5, 5)) {
                    break;
                }
            }
            drop(value);
            other.join().unwrap();
        });
        map.insert(6, 6);
        assert!(map.contains_key(&4) && !map.contains_key(&3) && map.contains_key(&6));
    });
}
