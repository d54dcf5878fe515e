//! Many writers.

use super::super::*;
use crate::sync::{Arc, AtomicBool, Ordering, thread};
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

/// A thread's guard is seen by the writers of its own table, whichever it has read before, and by no others (L2).
#[test]
fn a_guard_holds_back_its_own_table_alone() {
    let (one, other) = (TwinMap::from([(1, 1)]), TwinMap::from([(1, 1)]));
    drop(one.pin());
    let guard = other.pin();
    one.insert(2, 2);
    other.insert(2, 2);
    assert_eq!(other.try_batch(|write| write.insert(3, 3)), Err(GuardError::Occupied));
    assert_eq!(one.try_batch(|write| write.insert(3, 3)), Ok(None));
    drop(guard);
    assert_eq!(other.try_batch(|write| write.insert(3, 3)), Ok(None));
}
