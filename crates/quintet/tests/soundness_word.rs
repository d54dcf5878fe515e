//! `WordMap`: safe code breaks nothing. Stories of user code that uses the map from inside an
//! operation, and of what it leaves open. Run under AddressSanitizer too; without it, freed tables
//! are unmapped, and touching one ends the process.

use quintet::access::Access;
use quintet::word_map::Handle;
use quintet::{Compute, WordMap};
use std::cell::{Cell, RefCell};
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Grows the map several times and frees every table in between that nobody holds back; leaves it
/// in the middle of a migration.
fn move_on(map: &Map) {
    let handle = map.handle();
    for bits in 14..17 {
        handle.reserve(1 << bits);
        handle.flush();
    }
    handle.shrink_to_fit();
    let mut key = 1 << 32;
    while map.stats().tables.len() < 2 {
        handle.insert(key, key);
        key += 1;
    }
}

/// The closure of a `compute` under way lets the tables move on, and reads through the same seat:
/// the reading section announces a later era, which says nothing about the links of the tables that
/// the `compute` stands in.
#[test]
fn a_closure_that_reads_does_not_vouch_for_the_tables_of_its_compute() {
    let map: WordMap<u64, u64> = WordMap::new();
    let turns = Cell::new(0);
    let pin = map.pin();
    pin.insert(1, 1);
    let done = pin.compute(7, |found| {
        assert_eq!(found, None);
        if turns.replace(turns.get() + 1) < 6 {
            move_on(&map);
            assert_eq!(pin.get(1), Some(1));
        }
        Compute::Insert(70)
    });
    assert!(done.before.is_none() && turns.get() > 1);
    assert_eq!((pin.get(7), pin.get(1)), (Some(70), Some(1)));
}

/// An iterator that a closure stores elsewhere outlives the operation in which it was made.
#[test]
fn an_iterator_made_by_the_closure_of_an_update_stays_protected() {
    let map: WordMap<u64, u64> = WordMap::new();
    let handle = map.handle();
    (0..10_000).for_each(|key| assert_eq!(handle.insert(key, key), None));
    let stash = RefCell::new(None);
    let before = handle.update(5, |value| {
        *stash.borrow_mut() = Some(handle.iter());
        value
    });
    assert_eq!(before, Some(5));
    move_on(&map);
    let seen = stash.take().map_or(0, Iterator::count);
    assert!(seen >= 10_000, "{seen} entries seen");
}

type Map = WordMap<u64, u64>;
type Deed = fn(&Arc<Map>);
type Operation<A> = fn(&Handle<'_, u64, u64, A>, &mut dyn FnMut());

const KEYS: u64 = 100;

fn read(map: &Arc<Map>) {
    assert_eq!((map.pin().get(50), map.handle().get(51)), (Some(50), Some(51)));
}

fn write(map: &Arc<Map>) {
    map.pin().insert(1, 1);
    map.handle().remove(1);
    map.pin().fetch_add(1, 1);
}

fn iterate(map: &Arc<Map>) {
    assert!(map.pin().iter().count() >= 90);
}

fn drop_an_owner(map: &Arc<Map>) {
    drop(Arc::clone(map));
    Map::new().pin().insert(1, 1);
}

fn come_and_go(map: &Arc<Map>) {
    drop(map.handle());
    forget(map.pin().iter());
    forget(map.handle());
    map.pin().flush();
    map.flush();
}

fn panic(_: &Arc<Map>) {
    panic!("of the user");
}

const DEEDS: [(&str, Deed); 7] = [
    ("read", read),
    ("write", write),
    ("iterate", iterate),
    ("grow", |map| move_on(map)),
    ("drop an owner", drop_an_owner),
    ("come and go", come_and_go),
    ("panic", panic),
];

/// Operations that call user code, each with what it calls.
fn operations<A: Access>() -> [(&'static str, Operation<A>); 10] {
    [
        ("update", |handle, inside| {
            handle.update(1, |value| {
                inside();
                value
            });
        }),
        ("compute a present key", |handle, inside| {
            handle.compute(2, |found| {
                inside();
                found.map_or(Compute::Remove, Compute::Insert)
            });
        }),
        ("compute an absent key", |handle, inside| {
            handle.compute(7_777, |found| {
                inside();
                found.map_or(Compute::Remove, Compute::Insert)
            });
        }),
        ("remove by compute", |handle, inside| {
            handle.compute(3, |_| {
                inside();
                Compute::Remove
            });
        }),
        ("remove_if", |handle, inside| {
            let _ = handle.remove_if(4, |_| {
                inside();
                true
            });
        }),
        ("update_or_insert_with", |handle, inside| {
            handle.update_or_insert_with(
                5_555,
                |value| value,
                || {
                    inside();
                    5
                },
            );
        }),
        ("get_or_insert_with", |handle, inside| {
            handle.get_or_insert_with(4_444, || {
                inside();
                5
            });
        }),
        ("retain", |handle, inside| {
            handle.retain(|key, _| {
                inside();
                key != 5
            });
        }),
        ("extend", |handle, inside| {
            let mut map = handle.map();
            map.extend((6..9).inspect(|_| inside()).map(|key| (key, key)));
        }),
        ("iterate", |handle, inside| handle.iter().for_each(|_| inside())),
    ]
}

/// Each thing that user code can do, at each place where a map calls it, by a handle and by a
/// guard.
#[test]
fn user_code_does_anything_anywhere() {
    for (number, (operation, by_handle)) in operations().into_iter().enumerate() {
        for (name, deed) in DEEDS {
            for by_guard in [false, true] {
                let map = Arc::new(Map::new());
                (0..KEYS).for_each(|key| assert_eq!(map.pin().insert(key, key), None));
                let turns = Cell::new(0);
                let inside = &mut || {
                    if turns.replace(turns.get() + 1) < 2 {
                        deed(&map);
                    }
                };
                let ended = catch_unwind(AssertUnwindSafe(|| match by_guard {
                    false => by_handle(&map.handle(), inside),
                    true => operations()[number].1(&map.pin(), inside),
                }));
                assert_eq!(ended.is_err(), name == "panic", "{name} in {operation}");
                assert!(turns.get() > 0, "{operation} calls nothing");
                // Whole: what nobody touched is there, and everything works.
                assert!(
                    (10..KEYS).all(|key| map.pin().get(key) == Some(key)),
                    "{name} in {operation}"
                );
                move_on(&map);
                assert_eq!(map.len(), map.pin().iter().count(), "{name} in {operation}");
            }
        }
    }
}

/// Forgotten handles, guards and iterators hold memory back at worst.
#[test]
fn what_is_forgotten_holds_memory_back_at_worst() {
    let map = Map::new();
    let handle = map.handle();
    handle.insert(1, 1);
    forget(handle.iter());
    forget(handle.drain());
    forget(map.pin().iter());
    forget(map.handle());
    move_on(&map);
    assert_eq!((handle.get(1), map.pin().get(1)), (Some(1), Some(1)));
    drop(handle);
    move_on(&map);
    assert_eq!(map.handle().get(1), Some(1));
}

/// A thread that ends with a forgotten section, while the map goes.
#[test]
fn a_thread_that_forgot_a_guard_ends_while_the_map_goes() {
    for turn in 0..200 {
        let map = Arc::new(Map::new());
        map.pin().insert(1, 1);
        let shared = Arc::clone(&map);
        let gone = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&gone);
        let thread = std::thread::spawn(move || {
            forget(shared.pin().iter());
            shared.pin().insert(turn, turn);
            // Its seat is given up when its locals go, which is after this.
            drop(shared);
            ended.store(true, Ordering::Release);
        });
        while !gone.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
        drop(map);
        thread.join().unwrap();
    }
}

thread_local! {
    static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
}

/// Works on a map when its thread's locals go.
struct Late(Arc<Map>);

impl Drop for Late {
    fn drop(&mut self) {
        self.0.pin().insert(2, 2);
        let handle = self.0.handle();
        forget(self.0.pin().iter());
        assert_eq!(handle.iter().count(), 2);
        move_on(&self.0);
    }
}

#[test]
fn a_map_is_used_while_the_locals_of_a_thread_go() {
    for first in [true, false] {
        let map = Arc::new(Map::new());
        let shared = Arc::clone(&map);
        let set_up = move || {
            // Locals go in the order opposite to that of their first use.
            if first {
                shared.pin().insert(1, 1);
            }
            LATE.set(Some(Late(Arc::clone(&shared))));
            shared.pin().insert(1, 1);
        };
        std::thread::spawn(set_up).join().unwrap();
        assert_eq!((map.pin().get(1), map.pin().get(2)), (Some(1), Some(2)));
    }
}

#[test]
fn extremes_of_capacity_are_errors() {
    for capacity in [usize::MAX, isize::MAX as usize, usize::MAX / 32, 1 << 48] {
        assert!(Map::builder().capacity(capacity).try_build().is_err());
        let map = Map::new();
        assert!(map.handle().try_reserve(capacity).is_err());
        map.pin().insert(1, 1);
        assert!(map.pin().try_reserve(capacity).is_err());
        assert_eq!(map.pin().get(1), Some(1));
    }
    for capacity in [0, 1] {
        let map = Map::with_capacity(capacity);
        map.handle().reserve(capacity);
        map.pin().insert(u64::MAX, u64::MAX);
        map.pin().shrink_to_fit();
        assert_eq!(map.pin().get(u64::MAX), Some(u64::MAX));
    }
}

/// Words without a size, and with the largest.
#[test]
fn words_of_every_size_are_kept() {
    let unit: WordMap<(), ()> = WordMap::new();
    assert_eq!((unit.pin().insert((), ()), unit.pin().get(())), (None, Some(())));
    let bits: WordMap<bool, char> = WordMap::new();
    bits.pin().insert(true, char::MAX);
    assert_eq!(bits.pin().iter().collect::<Vec<_>>(), [(true, char::MAX)]);
    let signed: WordMap<i64, f64> = WordMap::new();
    signed.pin().insert(i64::MIN, f64::NEG_INFINITY);
    assert_eq!(signed.pin().get(i64::MIN), Some(f64::NEG_INFINITY));
}

/// In a child of a process with one thread of its own tables work on.
#[test]
#[cfg(unix)]
fn a_forked_child_uses_the_map() {
    let map = Map::new();
    (0..KEYS).for_each(|key| assert_eq!(map.pin().insert(key, key), None));
    let handle = map.handle();
    // SAFETY: the child works on this map, which no other thread knows, and leaves without
    // unwinding or running destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let worked = catch_unwind(AssertUnwindSafe(|| {
            move_on(&map);
            handle.insert(KEYS, KEYS);
            map.pin().get(50) == Some(50) && handle.iter().count() > 100
        }));
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!worked.unwrap_or(false))) };
    }
    let mut status = -1;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child failed");
    assert_eq!(map.pin().get(KEYS), None, "the parent's own");
}
