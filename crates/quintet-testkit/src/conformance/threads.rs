//! Many threads on a small table, and threads that end in awkward ways.

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::adapter::{finds, inserting, reading};
use super::{HandleUnderTest, TableUnderTest};
use crate::model::{Kind, Op, Ret};
use crate::stress::{Stress, within};

const CROWD: usize = 64;

/// What a check may take before it counts as hung.
pub(super) const LIMIT: Duration = Duration::from_secs(120);

/// 64 threads fill a table that starts with no room; everything is there.
pub fn tiny_table_64_threads<T: TableUnderTest>(make: impl Fn(usize) -> T) {
    for capacity in [0, 1] {
        let table = make(capacity);
        let keys = |thread: usize| (0..100).map(move |i| ((i * CROWD) + thread) as u64);
        Stress::new("tiny-table").threads(CROWD).run(|worker| {
            let mut handle = table.handle();
            for key in keys(worker.thread()) {
                worker.pause();
                assert!(!finds(&mut handle, key, inserting::<T>()), "key {key} is new");
                expect_present::<T>(&mut handle, key);
            }
        });
        let mut handle = table.handle();
        (0..CROWD).flat_map(keys).for_each(|key| expect_present::<T>(&mut handle, key));
        if let Some(entries) = table.entries() {
            assert_eq!(entries, 100 * CROWD);
        }
    }
}

fn expect_present<T: TableUnderTest>(handle: &mut impl HandleUnderTest, key: u64) {
    assert!(finds(handle, key, reading::<T>()), "key {key} was inserted and is not found");
}

/// 64 threads insert the same keys; each key is new to exactly one of them.
pub fn one_winner_per_key<T: TableUnderTest>(make: impl Fn(usize) -> T) {
    const KEYS: u64 = 400;
    let table = make(0);
    let insert = inserting::<T>();
    assert_ne!(insert, Kind::Put, "a table that only puts tells no winner");
    let wins = Stress::new("one-winner").threads(CROWD).run(|worker| {
        let mut handle = table.handle();
        let mut won = Vec::new();
        for key in 0..KEYS {
            worker.pause();
            if !finds(&mut handle, key, insert) {
                won.push(key);
            }
        }
        won
    });
    let mut wins: Vec<u64> = wins.into_iter().flatten().collect();
    wins.sort_unstable();
    assert_eq!(wins, (0..KEYS).collect::<Vec<_>>(), "each key is new to exactly one thread");
}

/// The ids of a set are distinct, and everybody is told the same id of a key.
pub fn unique_ids<T: TableUnderTest>(make: impl Fn(usize) -> T) {
    let table = make(0);
    let told = Stress::new("unique-ids").threads(CROWD).run(|worker| {
        let mut handle = table.handle();
        let mut told = Vec::new();
        for i in 0..400 {
            worker.pause();
            let key = i + worker.rng.u64(0..16);
            match handle.apply(key, Op::SetInsert) {
                Ret::Inserted(id) | Ret::Existing(id) => told.push((key, id)),
                other => panic!("a set answered {other:?}"),
            }
        }
        told
    });
    let mut id_of = HashMap::new();
    let mut key_of = HashMap::new();
    for (key, id) in told.into_iter().flatten() {
        assert_eq!(*id_of.entry(key).or_insert(id), id, "two ids for key {key}");
        assert_eq!(*key_of.entry(id).or_insert(key), key, "one id for two keys: {id}");
    }
}

/// How a thread leaves.
#[derive(Clone, Copy, Debug)]
enum Exit {
    Dropped,
    Forgotten,
    Unwound,
}

/// Threads end with their handle dropped, forgotten, or dropped by a panic; what they inserted is
/// there, and the table goes on to work and to grow.
pub fn thread_exit<T: TableUnderTest>(make: impl Fn(usize) -> T) {
    within("thread_exit", LIMIT, || {
        let table = make(0);
        let mut key = 0;
        for wave in 0..40 {
            thread::scope(|scope| {
                for exit in [Exit::Dropped, Exit::Forgotten, Exit::Unwound] {
                    let keys = key..key + 20;
                    key = keys.end;
                    let table = &table;
                    scope.spawn(move || insert_and_leave(table, keys, exit));
                }
            });
            let mut handle = table.handle();
            for key in 0..key {
                expect_present::<T>(&mut handle, key);
            }
            finds(&mut handle, (1 << 50) + wave, inserting::<T>());
        }
    });
}

fn insert_and_leave<T: TableUnderTest>(table: &T, keys: std::ops::Range<u64>, exit: Exit) {
    let mut handle = table.handle();
    for key in keys {
        finds(&mut handle, key, inserting::<T>());
    }
    match exit {
        Exit::Dropped => drop(handle),
        Exit::Forgotten => std::mem::forget(handle),
        Exit::Unwound => {
            let unwind = AssertUnwindSafe(move || {
                let _held = handle;
                resume_unwind(Box::new("leaving"));
            });
            assert!(catch_unwind(unwind).is_err());
        }
    }
}

/// Runs when its thread's locals are destroyed.
struct Late(Box<dyn FnOnce()>);

thread_local! {
    static LATE: RefCell<Option<RunOnDrop>> = const { RefCell::new(None) };
}

struct RunOnDrop(Option<Late>);

impl Drop for RunOnDrop {
    fn drop(&mut self) {
        if let Some(late) = self.0.take() {
            (late.0)();
        }
    }
}

/// The table is used while thread-locals are destroyed, by threads that used it before and by
/// threads that did not.
pub fn thread_local_destruction<T: TableUnderTest>(make: impl Fn(usize) -> T) {
    within("thread_local_destruction", LIMIT, || {
        let table = Arc::new(make(0));
        let answers = Arc::new(Mutex::new(Vec::new()));
        for (number, early, late_first) in
            [(0, false, true), (1, true, true), (2, true, false), (3, false, false)]
        {
            let (table, answers) = (Arc::clone(&table), Arc::clone(&answers));
            let use_table = |table: &T, key| {
                let mut handle = table.handle();
                finds(&mut handle, key, inserting::<T>());
                expect_present::<T>(&mut handle, key);
            };
            let thread = thread::spawn(move || {
                let late_table = Arc::clone(&table);
                let late = Late(Box::new(move || {
                    // A panic here would abort, so the answer is carried out.
                    let late_use = AssertUnwindSafe(|| use_table(&late_table, 100 + number));
                    answers.lock().expect("unpoisoned").push(catch_unwind(late_use).is_ok());
                }));
                let register = || LATE.set(Some(RunOnDrop(Some(late))));
                if late_first {
                    register();
                    early.then(|| use_table(&table, number));
                } else {
                    early.then(|| use_table(&table, number));
                    register();
                }
            });
            thread.join().expect("the thread ends well");
        }
        assert_eq!(*answers.lock().expect("unpoisoned"), [true; 4]);
        let mut handle = table.handle();
        for key in [1, 2, 100, 101, 102, 103] {
            expect_present::<T>(&mut handle, key);
        }
    });
}
