//! Many writers.

use super::super::*;
use crate::sync::{Arc, AtomicBool, Ordering, thread};
use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn many_writers_lose_nothing_and_share_versions() {
    let map = Arc::new(TwinMap::<u64, u64>::new());
    let threads: Vec<_> = (0..4u64)
        .map(|thread| {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                let reader = map.handle();
                for n in 0..200 {
                    let key = thread * 1000 + n;
                    map.batch(|write| write.extend([(key, n), (key + 500, n)]));
                    let guard = reader.pin();
                    assert_eq!(guard.get(&key), Some(&n), "published when batch returns");
                    assert!(map.version() >= guard.version());
                    drop(guard);
                    assert_eq!(map.remove(&(key + 500)), Some(n));
                    assert!(!reader.contains_key(&(key + 500)));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(map.len(), 800);
    assert!(map.version() <= 1600);
    assert_eq!(map.stats().rebuilds, 0);
    map.clear();
    assert!(map.handle().pin().is_empty());
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Sour(u64);

static SOUR: AtomicBool = AtomicBool::new(false);

impl Hash for Sour {
    fn hash<H: Hasher>(&self, state: &mut H) {
        assert!(self.0 != 13 || !SOUR.load(Ordering::Relaxed), "on purpose");
        self.0.hash(state);
    }
}

/// A batch that panics is left out whole, and its writer gets the panic.
#[test]
fn a_batch_that_panics_is_left_out_alone() {
    let map = TwinMap::<Sour, u64>::new();
    map.insert(Sour(1), 1);
    SOUR.store(true, Ordering::Relaxed);
    let batch = [(Sour(2), 2), (Sour(13), 13)];
    assert!(catch_unwind(AssertUnwindSafe(|| map.insert_many(batch))).is_err());
    map.insert(Sour(3), 3);
    SOUR.store(false, Ordering::Relaxed);
    let mut keys: Vec<u64> = map.keys().map(|key| key.0).collect();
    keys.sort_unstable();
    assert_eq!(keys, [1, 3]);
}

/// A thread keeps one seat per table, and gives it up when the table is gone.
#[test]
fn a_thread_gives_up_the_seats_of_tables_that_are_gone() {
    thread::spawn(|| {
        for n in 0..20u64 {
            let map = TwinMap::from([(n, n)]);
            assert_eq!(map.get(&n).as_deref(), Some(&n));
            assert_eq!(local::seats(), 1);
        }
    })
    .join()
    .unwrap();
}

/// A thread's guard is seen by the writers of its own table, whichever it has read before, and by
/// no others (`local` L2).
#[test]
fn a_guard_holds_back_its_own_table_alone() {
    let table = || {
        let table = TwinMap::builder().stalled(Stalled::Wait).build();
        table.insert(1, 1);
        table
    };
    let (one, other) = (table(), table());
    drop(one.pin());
    let guard = other.pin();
    one.insert(2, 2);
    other.insert(2, 2);
    assert_eq!(other.try_batch(|write| write.insert(3, 3)), Err(GuardError::Occupied));
    assert_eq!(one.try_batch(|write| write.insert(3, 3)), Ok(None));
    drop(guard);
    assert_eq!(other.try_batch(|write| write.insert(3, 3)), Ok(None));
}

type Front = TwinMap<u64, u64>;

/// A table that lives as long as the program, with one entry, and whose writers wait.
fn eternal() -> &'static Front {
    let table = TwinMap::builder().stalled(Stalled::Wait).build();
    table.insert(1, 1);
    Box::leak(Box::new(table))
}

/// Runs when its thread's locals go.
struct AtTheEnd(Cell<Option<Box<dyn FnOnce()>>>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        if let Some(last) = self.0.take() {
            last();
        }
    }
}

thread_local! {
    static AT_THE_END: AtTheEnd = const { AtTheEnd(Cell::new(None)) };
}

/// Runs `begin` on a thread; what it returns runs when the seats of that thread have gone already:
/// a local that is made first goes last.
fn in_two_parts<F: FnOnce() + 'static>(
    begin: impl FnOnce() -> F + Send + 'static,
) -> thread::JoinHandle<()> {
    thread::spawn(|| {
        AT_THE_END.with(|_| {});
        let last = begin();
        AT_THE_END.with(|end| end.0.set(Some(Box::new(last))));
    })
}

/// Two writes: the second needs the copy that an old guard holds back.
fn write_twice(map: &Front) -> Result<Option<u64>, GuardError> {
    map.insert(2, 2);
    map.try_batch(|write| write.insert(3, 3))
}

/// A guard outlives the seats of its thread: its seat stays taken (`local` L3).
#[test]
fn a_guard_that_outlives_its_threads_seats_is_seen() {
    let map = eternal();
    let (ask, asked) = std::sync::mpsc::channel();
    let (answer, answered) = std::sync::mpsc::channel::<()>();
    let thread = in_two_parts(move || {
        let guard = map.pin();
        move || {
            ask.send(()).unwrap();
            answered.recv().unwrap();
            assert_eq!((guard.len(), guard.get(&3)), (1, None));
        }
    });
    asked.recv().unwrap();
    assert_eq!(write_twice(map), Err(GuardError::Occupied));
    answer.send(()).unwrap();
    thread.join().unwrap();
    assert_eq!(map.try_batch(|write| write.insert(3, 3)), Ok(None));
}

/// A guard that begins when the seats of its thread have gone does not use one of them (`local`
/// L2).
#[test]
fn a_guard_that_begins_after_its_threads_seats_is_seen() {
    let map = eternal();
    let (ask, asked) = std::sync::mpsc::channel();
    let (answer, answered) = std::sync::mpsc::channel::<()>();
    let thread = in_two_parts(move || {
        drop(map.pin());
        move || {
            let guard = map.pin();
            ask.send(()).unwrap();
            answered.recv().unwrap();
            assert_eq!((guard.len(), guard.get(&3)), (1, None));
        }
    });
    asked.recv().unwrap();
    assert_eq!(write_twice(map), Err(GuardError::Occupied));
    answer.send(()).unwrap();
    thread.join().unwrap();
    assert_eq!(map.try_batch(|write| write.insert(3, 3)), Ok(None));
}

/// A `Drop` that writes to its own table works, whichever way the value went: replaced, cleared, or
/// with a copy that was made anew.
#[test]
fn a_drop_may_write_to_its_own_table() {
    #[derive(Clone)]
    struct Writes(u64, std::sync::Weak<TwinMap<u64, Writes>>);
    impl Drop for Writes {
        fn drop(&mut self) {
            let Some(map) = self.1.upgrade() else { return };
            if self.0 == 7 {
                map.insert(1_000, Writes(0, std::sync::Weak::new()));
            }
        }
    }
    let map = std::sync::Arc::new(TwinMap::new());
    let value = |n| Writes(n, std::sync::Arc::downgrade(&map));
    for _ in 0..3 {
        map.insert(1, value(7));
        map.insert(1, value(8));
        map.insert_many((0..200).map(|n| (n, value(7))));
        map.insert(1, value(8)); // a copy instead of a replay
        assert!(map.contains_key(&1_000));
        map.replace_all((0..200).map(|n| (n, value(8))));
        map.clear();
        map.insert(2, value(8));
    }
    assert!(map.stats().copied > 0);
}
