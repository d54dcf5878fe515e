//! Flights under shuttle: hand-over, panics, tasks that are dropped, inserts meanwhile, circles.

use super::HashMap;
use crate::sync::{Arc, AtomicU64, Ordering, schedules, thread};
use foldhash::fast::FixedState;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};

type Map = HashMap<u64, u64, FixedState>;

/// A map, and how often something was made.
struct World {
    map: Map,
    made: AtomicU64,
}

/// Runs the work of each thread, on an empty map.
fn model(work: &'static [fn(&World)], check: fn(&World)) {
    schedules(500, move || {
        let map = HashMap::builder().shards(1).seed(7).build();
        let world = Arc::new(World { map, made: AtomicU64::new(0) });
        let spawn = |work: &fn(&World)| {
            let (work, world) = (*work, Arc::clone(&world));
            thread::spawn(move || work(&world))
        };
        let threads: Vec<_> = work.iter().map(spawn).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        check(&world);
    });
}

/// Makes a value that tells how many were made before.
fn make(world: &World) -> u64 {
    thread::yield_now();
    // ORDERING: Relaxed: a count.
    world.made.fetch_add(1, Ordering::Relaxed)
}

fn ask(world: &World) {
    assert_eq!(*world.map.get_or_compute(1, || make(world)), 0);
}

fn made(world: &World) -> u64 {
    // ORDERING: Relaxed: all have joined.
    world.made.load(Ordering::Relaxed)
}

#[test]
fn shuttle_map_one_makes_and_all_get_it() {
    model(&[ask, ask, ask, ask], |world| assert_eq!((made(world), world.map.len()), (1, 1)));
}

/// Whoever makes first panics, or fails, or gives up half-way as a task; another takes over.
#[test]
fn shuttle_map_a_maker_that_ends_hands_over() {
    fn panics(world: &World) {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            world.map.get_or_compute(1, || {
                thread::yield_now();
                std::panic::resume_unwind(Box::new(()))
            });
        }));
        // It may have found a value instead.
        assert!(panicked.is_err() || world.map.contains_key(&1));
    }
    fn fails(world: &World) {
        let failed = world.map.get_or_try_compute(1, || {
            thread::yield_now();
            Err("no")
        });
        assert!(failed.is_err() || world.map.contains_key(&1));
    }
    model(&[panics, ask, ask], |world| assert_eq!((made(world), world.map.len()), (1, 1)));
    model(&[fails, ask, ask], |world| assert_eq!((made(world), world.map.len()), (1, 1)));
    model(&[cancels, ask, ask], |world| assert_eq!((made(world), world.map.len()), (1, 1)));
}

/// Wakes nobody: who polls, polls again.
struct Again;

impl Wake for Again {
    fn wake(self: std::sync::Arc<Self>) {}
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&Waker::from(std::sync::Arc::new(Again))))
}

/// A task that is dropped while it makes, or while it waits.
fn cancels(world: &World) {
    let never = pin!(world.map.get_or_compute_async(1, std::future::pending()));
    let found = poll(never).is_ready();
    assert!(!found || world.map.contains_key(&1));
    thread::yield_now();
}

/// A task asks until it is answered.
fn ask_as_a_task(world: &World) {
    let mut asking = pin!(world.map.get_or_compute_async(1, async { make(world) }));
    loop {
        if let Poll::Ready(found) = poll(asking.as_mut()) {
            assert_eq!(*found, 0);
            return;
        }
        thread::yield_now();
    }
}

#[test]
fn shuttle_map_tasks_and_threads_share_a_flight() {
    model(&[ask_as_a_task, ask, ask_as_a_task], |world| assert_eq!(made(world), 1));
}

/// The one who inserts wins, and all see that value then.
#[test]
fn shuttle_map_an_insert_meanwhile_wins() {
    fn insert(world: &World) {
        world.map.insert(1, 100);
        assert_eq!(*world.map.get_or_compute(1, || unreachable!("it is there")), 100);
    }
    fn either(world: &World) {
        let found = *world.map.get_or_compute(1, || make(world));
        assert!(found == 0 || found == 100);
    }
    model(&[insert, either, either], |world| {
        assert_eq!(world.map.get_cloned(&1), Some(100));
        assert!(made(world) <= 1);
    });
}

/// A remove ends no flight; who looks after it makes again.
#[test]
fn shuttle_map_a_remove_ends_no_flight() {
    fn remove(world: &World) {
        world.map.remove(&1);
    }
    fn any(world: &World) {
        let _ = *world.map.get_or_compute(1, || make(world));
    }
    model(&[remove, any, any], |world| assert!((1..=2).contains(&made(world))));
}

/// Two makers that ask for each other's key: one of them is told so, which ends its flight, and the
/// other goes on. If they do not meet, both do.
#[test]
fn shuttle_map_a_circle_is_told() {
    fn cross(world: &World, own: u64, other: u64) {
        let made = catch_unwind(AssertUnwindSafe(|| {
            world.map.get_or_compute(own, || {
                thread::yield_now();
                *world.map.get_or_compute(other, || 10)
            });
        }));
        if made.is_err() {
            // ORDERING: Relaxed: a count.
            world.made.fetch_add(1, Ordering::Relaxed);
        }
    }
    model(&[|world| cross(world, 1, 2), |world| cross(world, 2, 1)], |world| {
        assert_eq!((world.map.len(), made(world) <= 1), (2, true));
    });
}

/// A thread that ends its flight and then waits for another one is in no circle with those whom it
/// has just let go.
#[test]
fn shuttle_map_a_flight_that_is_over_is_no_arrow() {
    fn first(world: &World) {
        world.map.get_or_compute(1, || 1);
        world.map.get_or_compute(2, || 2);
    }
    fn second(world: &World) {
        world.map.get_or_compute(2, || {
            thread::yield_now();
            *world.map.get_or_compute(3, || 3)
        });
        world.map.get_or_compute(1, || 1);
    }
    fn third(world: &World) {
        world.map.get_or_compute(3, || {
            thread::yield_now();
            *world.map.get_or_compute(1, || 1)
        });
    }
    model(&[first, second, third], |world| assert_eq!(world.map.len(), 3));
}

/// Keys that have one hash have flights of their own.
#[test]
fn shuttle_map_flights_of_one_hash_are_told_apart() {
    #[derive(Clone, PartialEq, Eq)]
    struct Same(u64);
    impl std::hash::Hash for Same {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            0.hash(state);
        }
    }
    schedules(500, || {
        let map: HashMap<Same, u64, _> = HashMap::builder().shards(1).seed(7).build();
        let map = Arc::new(map);
        let spawn = |key| {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                let make = || {
                    thread::yield_now();
                    key
                };
                assert_eq!(*map.get_or_compute(Same(key), make), key);
            })
        };
        let threads = [1, 2, 1, 2].map(spawn);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
