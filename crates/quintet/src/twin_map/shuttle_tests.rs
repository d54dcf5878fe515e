//! Many writers under shuttle: rounds that are shared, given up, polled for; watches; whatever the
//! order, the outcome is that of some order one by one.

use super::desk::{Desk, Options};
use super::user_code::Planned;
use super::version::Op;
use super::wait::Patience;
use super::*;
use crate::sync::constant::AtomicU64;
use crate::sync::{Arc, Condvar, Mutex, Ordering, schedules, thread};
use crate::vocabulary::Compute;
use shuttle::rand::Rng;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

type Map = TwinMap<u64, u64, foldhash::fast::FixedState>;
type Work<A> = Box<dyn Fn(&Map) -> A + Send>;

const SCHEDULES: usize = 2_000;

/// Sends readers home in half of the schedules.
fn map() -> Map {
    let map: Map = TwinMap::with_hasher(foldhash::fast::FixedState::default());
    if shuttle::rand::thread_rng().gen_bool(0.5) {
        map.desk.made().insist_on_returns();
    }
    map
}

fn patient(stalled: Stalled) -> Map {
    let hasher = foldhash::fast::FixedState::default();
    TwinMapBuilder::new().hasher(hasher).stalled(stalled).build()
}

/// Runs each piece of work in a thread of its own; returns the answers.
fn crew<A: Send + 'static>(map: &Arc<Map>, works: Vec<Work<A>>) -> Vec<A> {
    let spawn = |work: Work<A>| {
        let map = Arc::clone(map);
        thread::spawn(move || work(&map))
    };
    let threads: Vec<_> = works.into_iter().map(spawn).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// How often something was seen, over all schedules of a test.
#[derive(Default)]
struct Seen(AtomicU64);

impl Seen {
    fn note(&self, happened: bool) {
        self.0.fetch_add(u64::from(happened), Ordering::Relaxed);
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed) as usize
    }
}

fn shared<T: Default>() -> (&'static T, &'static T) {
    let leaked: &'static T = Box::leak(Box::default());
    (leaked, leaked)
}

/// Writers that wait together share a version, and each sees its change published when it returns
/// (`desk` F1, F4).
#[test]
fn shuttle_a_round_is_shared_and_published_before_anybody_returns() {
    let (shares, seen) = shared::<Seen>();
    schedules(SCHEDULES, move || {
        let map = Arc::new(map());
        let works = (0..3u64).map(|thread| -> Work<()> {
            Box::new(move |map| {
                for key in [thread, thread + 10] {
                    assert_eq!(map.insert(key, key), None);
                    let version = map.pin();
                    assert_eq!(version.get(&key), Some(&key), "returned before the publish");
                    assert_ne!(version.version(), 0);
                }
            })
        });
        crew(&map, works.collect());
        assert_eq!(map.len(), 6);
        assert_eq!(map.stats().published, map.version());
        assert!((1..=6).contains(&map.version()));
        shares.note(map.version() < 6);
    });
    assert!((1..2 * SCHEDULES).contains(&seen.count()), "{} rounds were shared", seen.count());
}

/// What a batch has applied comes in one version, whoever publishes it (`desk` F1).
#[test]
fn shuttle_nobody_sees_half_a_batch() {
    schedules(SCHEDULES, || {
        let map = Arc::new(map());
        let batch = |start: u64| -> Work<()> {
            Box::new(move |map| map.batch(|write| write.extend([(start, 1), (start + 1, 1)])))
        };
        let look: Work<()> = Box::new(|map| {
            let mut last = 0;
            for _ in 0..3 {
                let version = map.pin();
                assert!(version.version() >= last);
                last = version.version();
                for start in [0, 10] {
                    assert_eq!(version.get(&start), version.get(&(start + 1)), "half a batch");
                }
            }
        });
        crew(&map, vec![batch(0), batch(10), look]);
        assert_eq!(map.len(), 4);
    });
}

/// A writer that panics takes back its own changes; those beside it are published (`desk` F2).
#[test]
fn shuttle_a_panic_takes_back_its_own_changes_alone() {
    let (shares, seen) = shared::<Seen>();
    schedules(SCHEDULES, move || {
        let map = Arc::new(map());
        let sour: Work<()> = Box::new(|map| {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                map.batch(|write| {
                    write.insert(1, 1);
                    write.insert(2, 0);
                    resume_unwind(Box::new(Planned));
                })
            }));
            assert!(panicked.is_err());
        });
        let sweet = |key: u64| -> Work<()> {
            Box::new(move |map| {
                assert_eq!(map.insert(key, 2), None, "shown what did not happen");
                let version = map.pin();
                assert_eq!(version.get(&key), Some(&2), "lost beside a panic");
                assert_eq!(version.get(&1), None);
            })
        };
        crew(&map, vec![sour, sweet(2), sweet(3)]);
        assert_eq!(map.len(), 2);
        shares.note(map.version() == 1);
    });
    assert!((1..2 * SCHEDULES).contains(&seen.count()), "{} rounds were shared", seen.count());
}

/// All orders of so many numbers.
fn orders(number: usize) -> Vec<Vec<usize>> {
    if number == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(number - 1);
    let insert = |order: &Vec<usize>, at| {
        let mut order = order.clone();
        order.insert(at, number - 1);
        order
    };
    shorter.iter().flat_map(|order| (0..number).map(move |at| insert(order, at))).collect()
}

/// Runs the works beside each other, then in every order one by one: one of those must have ended
/// the same way.
fn one_by_one<A: PartialEq + std::fmt::Debug + Send + 'static>(works: fn() -> Vec<Work<A>>) {
    schedules(SCHEDULES, move || {
        let start = || {
            let map = map();
            map.insert_many([(0, 10), (1, 1)]);
            map
        };
        let content = |map: &Map| {
            let mut content: Vec<_> = map.pin().iter().map(|(key, value)| (*key, *value)).collect();
            content.sort_unstable();
            content
        };
        let map = Arc::new(start());
        let answers = crew(&map, works());
        let outcome = (answers, content(&map));
        let works = works();
        let explains = |order: Vec<usize>| {
            let map = start();
            let mut answers: Vec<Option<A>> = works.iter().map(|_| None).collect();
            order.into_iter().for_each(|at| answers[at] = Some(works[at](&map)));
            (answers.into_iter().flatten().collect::<Vec<_>>(), content(&map)) == outcome
        };
        assert!(orders(works.len()).into_iter().any(explains), "no order explains {outcome:?}");
    });
}

fn add(number: u64) -> Work<Option<u64>> {
    Box::new(move |map| map.update(&0, |old| old + number))
}

/// Updates of one key run with no lock held, and none is lost (`map_write` U1, `watch` W1, W2).
#[test]
fn shuttle_updates_of_one_key_lose_nothing() {
    one_by_one(|| vec![add(1), add(2), add(4)]);
    schedules(SCHEDULES, || {
        let map = Arc::new(map());
        let count = || -> Work<()> {
            Box::new(|map| {
                for _ in 0..2 {
                    map.update_or_insert(0, |old| old + 1, 1);
                }
            })
        };
        crew(&map, vec![count(), count(), count()]);
        assert_eq!(map.get(&0).as_deref(), Some(&6), "a count is lost");
    });
}

/// An update beside a removal and an insertion of its key.
#[test]
fn shuttle_an_update_beside_insert_and_remove() {
    one_by_one(|| vec![add(1), Box::new(|map| map.remove(&0)), Box::new(|map| map.insert(0, 20))]);
    one_by_one(|| {
        vec![
            add(1),
            Box::new(|map| map.remove_if(&0, |value| value % 2 == 0).unwrap_or_else(Some)),
            Box::new(|map| {
                map.compute(0, |old| old.map_or(Compute::Insert(5), |_| Compute::Remove)).after
            }),
        ]
    });
}

/// An update beside a batch that changes the same key twice, and beside one that clears the table.
#[test]
fn shuttle_an_update_beside_a_batch() {
    one_by_one(|| {
        vec![
            add(1),
            Box::new(|map| {
                map.batch(|write| {
                    let old = write.insert(0, 100);
                    write.insert(0, old.unwrap_or(0) * 2);
                    write.remove(&1)
                })
            }),
            Box::new(|map| map.update(&1, |old| old + 5)),
        ]
    });
    one_by_one(|| {
        vec![
            add(1),
            Box::new(|map| {
                map.clear();
                None
            }),
            Box::new(|map| Some(map.update_or_insert(0, |old| old + 2, 50))),
        ]
    });
}

/// The watch of a `retain` is on all keys.
#[test]
fn shuttle_an_update_beside_retain() {
    one_by_one(|| {
        vec![
            add(1),
            Box::new(|map| {
                map.retain(|_, value| value % 2 == 1);
                None
            }),
            Box::new(|map| map.insert(1, 2)),
        ]
    });
}

/// A guard shows one version while two writers publish; they go on when it ends.
#[test]
fn shuttle_a_guard_is_held_while_writers_publish() {
    schedules(SCHEDULES, || {
        let map = Arc::new(map());
        map.insert(0, 0);
        let write = || -> Work<()> {
            Box::new(|map| {
                for _ in 0..2 {
                    map.update(&0, |old| old + 1);
                }
            })
        };
        let read: Work<()> = Box::new(|map| {
            let version = map.pin();
            let (number, value) = (version.version(), version.get(&0).copied());
            thread::yield_now();
            assert_eq!((version.version(), version.get(&0).copied()), (number, value));
            drop(version);
            assert!(map.get(&0).as_deref().copied() >= value);
        });
        crew(&map, vec![write(), write(), read]);
        assert_eq!(map.get(&0).as_deref(), Some(&4));
    });
}

/// A thread that has a guard writes beside others, and its guard never keeps it from returning
/// (`desk` F7): it has written, or is told that somebody waits for the guard (`desk` F6).
#[test]
fn shuttle_a_writer_with_a_guard_is_not_kept_by_it() {
    let (told, was_told) = shared::<Seen>();
    let (wrote, has_written) = shared::<Seen>();
    schedules(SCHEDULES, move || {
        let map = Arc::new(patient(Stalled::Wait));
        map.insert(0, 0);
        let others = || -> Work<bool> {
            Box::new(|map| {
                map.update(&0, |old| old + 1);
                map.update(&0, |old| old + 1).is_some()
            })
        };
        let holds: Work<bool> = Box::new(|map| {
            let version = map.pin();
            let insert = |write: &mut Write<'_, _, _>| writer::WriteGuard::wrap(write).insert(1, 1);
            let written = map.desk.made().write_within(Patience::Forever, insert);
            assert!(!version.contains_key(&1), "a version has changed");
            drop(version);
            match written {
                Ok(old) => assert_eq!((old, map.contains_key(&1)), (None, true)),
                Err(error) => assert_eq!(error, GuardError::WouldDeadlock),
            }
            written.is_ok()
        });
        let written = crew(&map, vec![others(), others(), holds])[2];
        assert_eq!(map.get(&0).as_deref(), Some(&4));
        assert_eq!(map.contains_key(&1), written);
        told.note(!written);
        wrote.note(written);
    });
    assert!(was_told.count() > 0, "nobody was told");
    assert!(has_written.count() > 0, "nobody has written");
}

/// Who may give up waiting leaves nothing to others, for whom it would have to wait (`desk` F4).
#[test]
fn shuttle_who_may_give_up_waits_for_nobody() {
    for patient in [false, true] {
        let (wrote, has_written) = shared::<Seen>();
        schedules(SCHEDULES, move || {
            let map = Arc::new(map());
            let returned = Arc::new((Mutex::new(false), Condvar::new()));
            let (tell, wait) = (Arc::clone(&returned), returned);
            // Waits inside of its batch until the other one has returned.
            let slow: Work<bool> = Box::new(move |map| {
                map.batch(|write| {
                    let mut returned = wait.0.lock();
                    while !*returned {
                        returned = wait.1.wait_for(returned, Duration::MAX).0;
                    }
                    write.insert(0, 0).is_none()
                })
            });
            let quick: Work<bool> = Box::new(move |map| {
                let insert = |write: &mut WriteGuard<'_, _, _, _>| write.insert(1, 1);
                let written = match patient {
                    false => map.try_batch(insert),
                    true => map.batch_timeout(Duration::from_millis(1), insert),
                };
                if written.is_ok() {
                    assert!(map.contains_key(&1), "returned before the publish");
                }
                *tell.0.lock() = true;
                tell.1.notify_all();
                written.is_ok()
            });
            let written = crew(&map, vec![slow, quick])[1];
            assert_eq!(map.len(), 1 + usize::from(written));
            wrote.note(written);
        });
        assert!(has_written.count() > 0, "nobody has written");
    }
}

/// Who gives up has promised nobody to publish (`desk` F4).
#[test]
fn shuttle_who_gives_up_is_left_nothing() {
    let (gave_up, have_given_up) = shared::<Seen>();
    schedules(SCHEDULES, move || {
        let map = Arc::new(map());
        let write = |key: u64| -> Work<bool> { Box::new(move |map| map.insert(key, 1).is_none()) };
        let tries: Work<bool> = Box::new(|map| match map.try_batch(|write| write.insert(2, 1)) {
            Ok(old) => old.is_none(),
            Err(error) => {
                assert_eq!(error, GuardError::Occupied);
                false
            }
        });
        let answers = crew(&map, vec![write(0), write(1), tries]);
        assert_eq!(map.len(), answers.iter().filter(|written| **written).count());
        gave_up.note(!answers[2]);
    });
    assert!(have_given_up.count() > 0, "nobody has given up");
}

/// Sums up the keys of what is inserted. Copying it panics while it is told to; so does the key 13.
struct Sum {
    sum: u64,
    sour: std::sync::Arc<AtomicU64>,
}

impl Sum {
    fn add(&mut self, op: &Op<u64, ()>) {
        match op {
            Op::Insert { key: 13, .. } => {
                self.sum += 1; // half done
                resume_unwind(Box::new(Planned));
            }
            Op::Insert { key, .. } => self.sum += key,
            _ => unreachable!("not in this test"),
        }
    }
}

impl Absorb<Op<u64, ()>> for Sum {
    type Old = ();
    fn absorb_first(&mut self, op: &mut Op<u64, ()>) -> Option<()> {
        self.add(op);
        None
    }
    fn absorb_second(&mut self, op: Op<u64, ()>, _: &mut Vec<()>) -> Result<(), Differs> {
        self.add(&op);
        Ok(())
    }
    fn rebuild(from: &Self) -> Self {
        if from.sour.load(Ordering::Relaxed) != 0 {
            resume_unwind(Box::new(Planned));
        }
        Self { sum: from.sum, sour: std::sync::Arc::clone(&from.sour) }
    }
    fn agrees(&self, other: &Self) -> bool {
        self.sum == other.sum
    }
}

/// A round that cannot be published is given up: all who were in it are told so, and nobody waits
/// for ever.
#[test]
fn shuttle_a_round_that_fails_is_told_to_all() {
    let (told, were_told) = shared::<Seen>();
    schedules(SCHEDULES, move || {
        let sour = std::sync::Arc::new(AtomicU64::new(0));
        let blank = Sum { sum: 0, sour: std::sync::Arc::clone(&sour) };
        let desk = Arc::new(Desk::new(blank, Options::DEFAULT));
        desk.made();
        let write = |key: u64| {
            let (desk, sour) = (Arc::clone(&desk), std::sync::Arc::clone(&sour));
            thread::spawn(move || {
                let written = catch_unwind(AssertUnwindSafe(|| {
                    desk.made().write(|write| {
                        sour.fetch_or(u64::from(key == 13), Ordering::Relaxed);
                        write.apply(Op::Insert { hash: key, key, value: (), replaced: false });
                    });
                }));
                match written {
                    Ok(()) => {
                        assert_ne!(desk.pin().sum & key, 0, "returned before the publish");
                        key
                    }
                    Err(payload) if payload.is::<Planned>() => 0,
                    Err(payload) => {
                        let why = payload.downcast_ref::<&str>().copied().unwrap_or("");
                        assert!(why.contains("another writer's"), "{why}");
                        told.note(true);
                        0
                    }
                }
            })
        };
        let threads = [13, 16, 32, 64].map(write);
        let sum: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(desk.pin().sum, sum, "published and not told, or told and not published");
        sour.store(0, Ordering::Relaxed);
        desk.made().write(|write| {
            write.apply(Op::Insert { hash: 0, key: 128, value: (), replaced: false })
        });
        assert_eq!(desk.pin().sum, sum + 128, "not whole afterwards");
    });
    assert!(were_told.count() > 0, "nobody was told");
}

struct Unpark(thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a task on its thread.
fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(std::sync::Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Tasks wait for the lock and for readers beside writers that block and such that give up, and are
/// woken in every order (`sleepers` Y1 to Y3).
#[test]
fn shuttle_tasks_are_woken_whatever_others_do() {
    for stalled in [Stalled::Wait, Stalled::Copy] {
        schedules(SCHEDULES, move || {
            let map = patient(stalled);
            map.insert(0, 0);
            let task = |key: u64| -> Work<bool> {
                Box::new(move |map| {
                    let written = block_on(map.batch_async(|write| write.insert(key, key)));
                    assert!(map.contains_key(&key), "returned before the publish");
                    written == Ok(None)
                })
            };
            let reads: Work<bool> = Box::new(|map| {
                (0..2).all(|_| {
                    let version = map.pin();
                    thread::yield_now();
                    version.contains_key(&0)
                })
            });
            let gives_up: Work<bool> = Box::new(|map| map.try_batch(|write| write.len()) != Ok(0));
            let blocks: Work<bool> = Box::new(|map| map.insert(3, 3).is_none());
            let works = vec![task(1), task(2), reads, gives_up, blocks];
            assert!(crew(&Arc::new(map), works).into_iter().all(|fine| fine));
        });
    }
}

/// Owned guards come and go on other threads while writers publish: each shows its version.
#[test]
fn shuttle_owned_guards_show_their_version() {
    schedules(SCHEDULES, || {
        let map = Arc::new(map());
        map.insert(0, 1);
        let write: Work<()> = Box::new(|map| {
            for _ in 0..4 {
                map.update(&0, |old| old + 1);
            }
        });
        let look = || -> Work<()> {
            Box::new(|map| {
                let version = map.owned_pin();
                let (number, other) = (version.version(), version.clone());
                assert_eq!(version.get(&0), Some(&number));
                let dropping = thread::spawn(move || assert_eq!(other.get(&0), Some(&number)));
                thread::yield_now();
                assert_eq!(version.get(&0), Some(&number));
                drop(version);
                dropping.join().unwrap();
            })
        };
        crew(&map, vec![write, look(), look()]);
        assert_eq!(map.get(&0).as_deref(), Some(&5));
    });
}
