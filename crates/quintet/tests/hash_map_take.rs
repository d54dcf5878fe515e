//! `take`: values that come back to their owner when nobody can be looking at them any more.
#![cfg(not(any(quintet_loom, quintet_shuttle)))]

use quintet::hash_map::{Retired, SetRetired, StillShared, WaitError};
use quintet::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

const SOON: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(1_000);

/// Counts itself, and poisons itself when it is dropped.
#[derive(Debug)]
struct Counted<'c>(&'c AtomicI64, AtomicU64);

const POISON: u64 = 0xdead_dead_dead_dead;

impl<'c> Counted<'c> {
    fn new(alive: &'c AtomicI64, number: u64) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self(alive, AtomicU64::new(number))
    }

    fn number(&self) -> u64 {
        self.1.load(Ordering::Relaxed)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
        assert_ne!(self.1.swap(POISON, Ordering::Relaxed), POISON, "dropped twice");
    }
}

fn why<R>(refused: &StillShared<R>) -> WaitError {
    refused.why
}

#[test]
fn a_value_that_nobody_looks_at_is_had_at_once() {
    let map = HashMap::from([(1, "one".to_string())]);
    let one = map.take(&1).unwrap();
    assert!(map.is_empty() && map.get(&1).is_none() && map.take(&1).is_none());
    assert_eq!((*one.key(), one.as_str()), (1, "one"));
    assert_eq!(one.try_into_inner().unwrap(), "one");
    map.insert(2, "two".to_string());
    assert_eq!(map.take(&2).unwrap().try_into_entry().unwrap(), (2, "two".to_string()));
}

#[test]
fn every_way_in_takes() {
    let map = Arc::new(HashMap::<u64, u64>::new());
    map.insert_many((0..6).map(|key| (key, key * 10)));
    assert_eq!(map.take(&0).unwrap().wait().unwrap(), 0);
    assert_eq!(map.handle().take(&1).unwrap().wait().unwrap(), 10);
    assert_eq!(map.owned_handle().take(&2).unwrap().wait().unwrap(), 20);
    let by_pin = map.pin().take(&3).unwrap();
    assert_eq!(by_pin.wait().unwrap(), 30);
    let mut quiet = map.quiet_handle();
    let by_quiet = quiet.take(&4).unwrap();
    let by_quiet = by_quiet.try_into_inner().expect_err("no quiet point since");
    quiet.quiescent();
    assert_eq!(by_quiet.wait().unwrap(), 40);
    let (set, mut names) = (HashSet::from(["a", "b", "c"].map(String::from)), Vec::new());
    names.push(set.take("a").unwrap().wait().unwrap());
    names.push(set.handle().take("b").unwrap().try_into_inner().unwrap());
    let c = set.pin().take("c").unwrap();
    assert_eq!(*c, "c");
    names.push(c.wait_timeout(LONG).unwrap());
    assert_eq!((names.concat().as_str(), set.len()), ("abc", 0));
}

#[test]
fn who_looks_keeps_the_value_from_its_owner() {
    let map = Arc::new(HashMap::from([(1, vec![7])]));
    let (looking, taken) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let looker = thread::spawn({
        let (map, looking, taken) = (Arc::clone(&map), Arc::clone(&looking), Arc::clone(&taken));
        move || {
            let seen = map.get(&1).unwrap();
            looking.wait();
            taken.wait();
            assert_eq!(*seen, [7]);
        }
    });
    looking.wait();
    let one = map.take(&1).unwrap();
    let one = one.try_into_inner().unwrap_err();
    let refused = one.wait_timeout(SOON).unwrap_err();
    assert_eq!(why(&refused), WaitError::TimedOut);
    // Those that come later do not matter.
    let handle = map.handle();
    let _late = handle.pin();
    taken.wait();
    looker.join().unwrap();
    assert_eq!(refused.retired.wait().unwrap(), [7]);
}

#[test]
fn a_thread_that_is_inside_is_told_that_it_would_wait_for_itself() {
    let map = HashMap::from([(1, 1), (2, 2), (3, 3)]);
    let seen = map.get(&1).unwrap();
    let refused = map.take(&2).unwrap().wait().unwrap_err();
    assert_eq!(why(&refused), WaitError::WouldDeadlock);
    assert!(refused.to_string().contains("inside"));
    let refused = refused.retired.wait_timeout(LONG).unwrap_err();
    assert_eq!(why(&refused), WaitError::WouldDeadlock, "nobody else could end it");
    drop(seen);
    assert_eq!(refused.retired.wait().unwrap(), 2);
    for _entry in &map {
        if let Some(taken) = map.take(&3) {
            assert_eq!(why(&taken.wait().unwrap_err()), WaitError::WouldDeadlock);
        }
    }
    // A section of another map is none of this one's.
    let other = HashMap::from([(1, 1)]);
    let _inside = other.pin();
    assert_eq!(map.take(&1).unwrap().wait().unwrap(), 1);
}

#[test]
fn what_is_taken_outlives_its_map() {
    let alive = AtomicI64::new(0);
    let map = HashMap::<u64, Counted<'_>>::new();
    (0..3).for_each(|key| drop(map.insert(key, Counted::new(&alive, key))));
    std::mem::forget(map.pin());
    let [kept, dropped] = [0, 1].map(|key| map.take(&key).unwrap());
    let kept = kept.try_into_inner().unwrap_err();
    drop(map);
    assert_eq!(alive.load(Ordering::Relaxed), 2);
    assert_eq!(kept.wait().unwrap().number(), 0);
    drop(dropped);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[test]
fn each_value_is_dropped_once_whatever_becomes_of_it() {
    let alive = AtomicI64::new(0);
    {
        let map = HashMap::<u64, Counted<'_>>::new();
        thread::scope(|scope| {
            for thread in 0..4 {
                let (map, alive) = (&map, &alive);
                scope.spawn(move || {
                    for turn in 0..2_000 {
                        let key = (turn * 7 + thread) % 32;
                        map.insert(key, Counted::new(alive, key));
                        let seen = map.get(&(key ^ 1));
                        if let Some(taken) = map.take(&key) {
                            assert_eq!(taken.number(), key);
                            let taken = match turn % 4 {
                                0 => Some(taken),
                                1 => taken.try_into_inner().err(),
                                2 => taken.wait_timeout(Duration::ZERO).err().map(|e| e.retired),
                                _ => {
                                    drop(seen);
                                    let waited = taken.wait_timeout(LONG);
                                    assert!(waited.is_ok_and(|value| value.number() == key));
                                    continue;
                                }
                            };
                            assert!(taken.is_none_or(|taken| taken.number() == key));
                        }
                        assert!(seen.is_none_or(|seen| seen.number() == key ^ 1));
                    }
                });
            }
        });
    }
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[test]
fn a_forgotten_one_leaks_its_entry_and_nothing_else() {
    let alive = AtomicI64::new(0);
    let map = HashMap::<u64, Counted<'_>>::new();
    for key in 0..100 {
        map.insert(key, Counted::new(&alive, key));
        // Retired, and not flushed: it waits in the map.
        map.insert(key, Counted::new(&alive, key));
    }
    std::mem::forget(map.take(&7));
    drop(map);
    assert_eq!(alive.load(Ordering::Relaxed), 1);
}

#[test]
fn of_many_takers_one_gets_it() {
    for turn in 0..200 {
        let map = HashMap::from([(turn, Arc::new(turn))]);
        let start = Barrier::new(4);
        let got: usize = thread::scope(|scope| {
            let taker = || {
                start.wait();
                let taken = map.take(&turn).map(|taken| taken.wait().unwrap());
                usize::from(taken.is_some_and(|value| Arc::strong_count(&value) == 1))
            };
            let takers = [(); 4].map(|()| scope.spawn(taker));
            takers.map(|taker| taker.join().unwrap()).iter().sum()
        });
        assert_eq!(got, 1);
    }
}

#[test]
fn tasks_wait_and_are_woken() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
    runtime.unwrap().block_on(async {
        let map = Arc::new(HashMap::<u64, String>::new());
        map.insert(1, "one".into());
        map.insert(2, "two".into());
        assert_eq!(map.take(&1).unwrap().wait_async().await, "one");
        let held = map.owned_quiet_handle();
        let waiting = tokio::spawn(map.take(&2).unwrap().wait_async());
        tokio::time::sleep(SOON).await;
        assert!(!waiting.is_finished(), "the handle may look at it");
        drop(held);
        assert_eq!(waiting.await.unwrap(), "two");
        // A task that is cancelled leaves the value to the map.
        map.insert(3, "three".into());
        let held = map.owned_quiet_handle();
        let waiting = tokio::spawn(map.take(&3).unwrap().wait_async());
        tokio::time::sleep(SOON).await;
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        drop(held);
        let set = HashSet::from([5]);
        assert_eq!(set.take(&5).unwrap().wait_async().await, 5);
    });
}

#[test]
fn they_cross_threads_and_no_other_bounds() {
    fn sent<T: Send + Sync>(_: &T) {}
    let map = HashMap::from([(1, Arc::new(5))]);
    let taken: Retired<i32, Arc<i32>> = map.take(&1).unwrap();
    sent(&taken);
    let value = thread::spawn(move || taken.wait().unwrap()).join().unwrap();
    assert_eq!(Arc::into_inner(value), Some(5));
    let set = HashSet::from(["x".to_string()]);
    let taken: SetRetired<String> = set.take("x").unwrap();
    sent(&taken);
    assert_eq!(thread::spawn(move || taken.wait().unwrap()).join().unwrap(), "x");
}
