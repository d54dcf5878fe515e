//! `HashMap::get_or_compute` and its kin, and guards across `.await`, under tokio.
#![cfg(not(any(quintet_loom, quintet_shuttle)))]

use quintet::HashMap;
use quintet::hash_map::WaitError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;
use tokio::runtime::Builder;

const LONG: Duration = Duration::from_secs(1_000);

fn text(panic: Box<dyn std::any::Any + Send>) -> String {
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn of_many_callers_one_makes() {
    let (map, made) = (HashMap::<String, u64>::new(), AtomicU64::new(0));
    let start = Barrier::new(8);
    thread::scope(|scope| {
        for number in 0..8 {
            let (map, made, start) = (&map, &made, &start);
            scope.spawn(move || {
                start.wait();
                for key in 0..200 {
                    let make = || made.fetch_add(1, Ordering::Relaxed);
                    match number % 2 {
                        0 => drop(map.get_or_compute(key.to_string(), make)),
                        _ => drop(map.handle().get_or_compute(key.to_string(), make)),
                    }
                }
            });
        }
    });
    assert_eq!((made.into_inner(), map.len()), (200, 200));
}

#[test]
fn what_is_made_is_not_seen_before_it_is_there_and_what_is_inserted_meanwhile_stays() {
    let map = HashMap::<u64, u64>::new();
    let value = *map.get_or_compute(1, || {
        assert!(map.get(&1).is_none() && map.is_empty() && map.iter().next().is_none());
        assert!(map.remove(&1).is_none(), "no flight is taken out");
        map.insert(1, 5);
        7
    });
    assert_eq!((value, map.get_cloned(&1)), (5, Some(5)));
    assert_eq!(map.get_or_try_compute(2, || Err::<u64, _>("no")).map(|v| *v), Err("no"));
    assert_eq!(map.get_or_try_compute(2, || Ok::<_, ()>(3)).map(|v| *v), Ok(3));
}

#[test]
fn a_maker_that_asks_for_its_own_key_is_told_so() {
    let map = HashMap::<u64, u64>::new();
    let nested = || {
        map.get_or_compute(1, || *map.get_or_compute(1, || 2));
    };
    let advice = text(catch_unwind(AssertUnwindSafe(nested)).unwrap_err());
    assert!(advice.contains("for ever") && advice.contains("timeout"), "{advice}");
    let nested = |_: ()| map.get_or_compute_timeout(1, LONG, || 2).map(|value| *value);
    assert_eq!(*map.get_or_compute(2, || nested(()).unwrap()), 2, "another key is no circle");
    assert!(map.contains_key(&1), "the flight ended with its maker");
    map.clear();
    map.get_or_compute(1, || {
        assert_eq!(map.get_or_compute_timeout(1, LONG, || 2).err(), Some(WaitError::WouldDeadlock));
        3
    });
}

/// Three makers, each asking for the key of the next: one is told so, by a panic that ends its
/// flight, and the others go on.
#[test]
fn a_circle_of_threads_panics_with_advice_and_nobody_waits_for_ever() {
    let (map, start) = (HashMap::<u64, u64>::new(), Barrier::new(3));
    let told: usize = thread::scope(|scope| {
        let threads = [0, 1, 2].map(|own| {
            let (map, start) = (&map, &start);
            scope.spawn(move || {
                let made = catch_unwind(AssertUnwindSafe(|| {
                    map.get_or_compute(own, || {
                        start.wait();
                        *map.get_or_compute((own + 1) % 3, || 7)
                    });
                }));
                made.map_err(|panic| assert!(text(panic).contains("for ever"))).is_err()
            })
        });
        threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
    });
    assert_eq!((told, map.len()), (1, 3));
}

#[test]
fn a_wait_ends_in_time() {
    let (map, begun, done) = (HashMap::<u64, u64>::new(), Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            map.get_or_compute(1, || {
                begun.wait();
                done.wait();
                1
            });
        });
        begun.wait();
        let soon = Duration::from_millis(5);
        let late = map.get_or_compute_timeout(1, soon, || unreachable!("another makes"));
        assert_eq!(late.err(), Some(WaitError::TimedOut));
        assert!(WaitError::TimedOut.to_string().contains("in time"));
        done.wait();
        assert_eq!(map.get_or_compute_timeout(1, Duration::MAX, || 2).as_deref(), Ok(&1));
    });
}

#[test]
fn a_maker_that_panics_hands_over_to_who_waits() {
    let (map, begun) = (HashMap::<u64, u64>::new(), Barrier::new(2));
    thread::scope(|scope| {
        let first = scope.spawn(|| {
            map.get_or_compute(1, || {
                begun.wait();
                thread::sleep(Duration::from_millis(5));
                panic!("of the maker")
            });
        });
        begun.wait();
        assert_eq!(*map.get_or_compute(1, || 2), 2);
        assert!(first.join().is_err());
    });
}

#[test]
fn of_many_tasks_one_makes_and_one_that_is_dropped_hands_over() {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let (map, made) = (Arc::new(HashMap::<u64, u64>::new()), Arc::new(AtomicU64::new(0)));
    runtime.block_on(async {
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let first = tokio::spawn({
            let map = Arc::clone(&map);
            async move {
                let make = async {
                    let _ = begun.send(());
                    std::future::pending().await
                };
                map.get_or_compute_async(1, make).await;
            }
        });
        has_begun.await.unwrap();
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                let (map, made) = (Arc::clone(&map), Arc::clone(&made));
                tokio::spawn(async move {
                    let make = async {
                        tokio::time::sleep(Duration::from_millis(2)).await;
                        made.fetch_add(1, Ordering::Relaxed)
                    };
                    *map.get_or_compute_async(1, make).await
                })
            })
            .collect();
        let waits = tokio::time::timeout(
            Duration::from_millis(5),
            map.get_or_compute_async(1, async { 9 }),
        );
        assert!(waits.await.is_err(), "the timeout of the runtime ends a wait");
        first.abort();
        for task in tasks {
            assert_eq!(task.await.unwrap(), 0);
        }
        assert_eq!(
            map.get_or_try_compute_async(2, async { Err("no") }).await.map(|v| *v),
            Err("no")
        );
        assert_eq!(
            map.get_or_try_compute_async(2, async { Ok::<_, ()>(3) }).await.map(|v| *v),
            Ok(3)
        );
    });
    assert_eq!(made.load(Ordering::Relaxed), 1);
}

/// An owned quiet handle is `Send` with what it lends: it goes with its task from thread to thread.
#[test]
fn a_guard_lives_across_an_await() {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let map = Arc::new(HashMap::<u64, String>::new());
    (0..100).for_each(|key| drop(map.insert(key, key.to_string())));
    runtime.block_on(async {
        let tasks: Vec<_> = (0..16)
            .map(|task| {
                let map = Arc::clone(&map);
                tokio::spawn(async move {
                    let (mut handle, own) = (map.owned_quiet_handle(), map.owned_handle());
                    for key in 0..100 {
                        let held = handle.get(&key);
                        own.insert(key, key.to_string());
                        tokio::task::yield_now().await;
                        assert_eq!(held.map(String::as_str), Some(key.to_string().as_str()));
                        if key % 10 == task % 10 {
                            handle.quiescent();
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(map.len(), 100);
}
