//! Every operation of `WordMap` by every way in: the map itself, a guard, a handle, and a handle
//! that owns its map.

use quintet::word_map::Handle;
use quintet::{AllocError, Compute, Computed, Rejected, WordMap};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

type Map = WordMap<u64, u64>;

/// Refuses blocks of zeros, as slots are, to a thread that has asked for it.
struct Stingy;

thread_local! {
    static REFUSE: Cell<bool> = const { Cell::new(false) };
}

#[global_allocator]
static ALLOCATOR: Stingy = Stingy;

// SAFETY: the system's allocator, or null.
unsafe impl GlobalAlloc for Stingy {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if REFUSE.try_with(Cell::get).unwrap_or(false) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: out of the system's allocator.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Does the same with a map of these entries by every way in.
macro_rules! each_way {
    ($entries:expr, |$map:ident, $way:ident| $work:block) => {
        each_way!(@ $entries, "the map itself", $map, $way, &*$map, $work);
        each_way!(@ $entries, "a guard", $map, $way, &$map.pin(), $work);
        each_way!(@ $entries, "a handle", $map, $way, &$map.handle(), $work);
        each_way!(@ $entries, "a handle that owns", $map, $way, &$map.owned_handle(), $work);
    };
    (@ $entries:expr, $name:literal, $map:ident, $way:ident, $make:expr, $work:block) => {
        let $map: Arc<Map> = Arc::new($entries.into_iter().collect());
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let $way = $make;
            $work
        }));
        assert!(outcome.is_ok(), "by {}", $name);
    };
}

fn squares(keys: std::ops::Range<u64>) -> impl Iterator<Item = (u64, u64)> {
    keys.map(|key| (key, key * key))
}

fn ignore<T>(_: T) {}

/// Makes the map grow and shrink several times.
fn move_on(map: &Map) {
    let handle = map.handle();
    for bits in [12, 14] {
        handle.reserve(1 << bits);
        handle.flush();
    }
    handle.shrink_to_fit();
}

#[test]
fn one_key_at_a_time() {
    each_way!([(1, 10)], |map, way| {
        assert_eq!((way.get(1), way.get(2)), (Some(10), None));
        assert!(way.contains_key(1) && !way.contains_key(2));
        assert_eq!((way.insert(1, 11), way.insert(2, 20)), (Some(10), None));
        assert_eq!(way.insert_new(2, 21), Err(Rejected { current: 20, value: 21 }));
        assert_eq!(way.insert_new(3, 30), Ok(()));
        assert_eq!((way.get_or_insert(3, 31), way.get_or_insert(4, 40)), (30, 40));
        assert_eq!(way.get_or_insert_with(4, || unreachable!("present")), 40);
        let consumed = String::from("50");
        assert_eq!(way.get_or_insert_with(5, || consumed.into_bytes().len() as u64), 2);
        assert_eq!(map.len(), 5);
    });
}

#[test]
fn changes_return_the_new_value() {
    each_way!([(1, 10)], |map, way| {
        assert_eq!(way.update(1, |value| value + 1), Some(11));
        assert_eq!(way.update(2, |_| unreachable!("absent")), None);
        assert_eq!(way.update_or_insert(1, |value| value * 2, 99), 22);
        assert_eq!(way.update_or_insert(2, |_| unreachable!("absent"), 5), 5);
        assert_eq!(way.update_or_insert_with(2, |value| value + 1, || unreachable!("there")), 6);
        assert_eq!(way.update_or_insert_with(3, |_| unreachable!("absent"), || 7), 7);
        let done = |before, after| Computed { before, after };
        assert_eq!(way.compute(3, |_| Compute::Keep), done(Some(7), Some(7)));
        assert_eq!(way.compute(3, |_| Compute::Insert(8)), done(Some(7), Some(8)));
        assert_eq!(way.compute(3, |_| Compute::Remove), done(Some(8), None));
        assert_eq!(way.compute(3, |_| Compute::Remove), done(None, None));
        assert_eq!(way.compute(3, |_| Compute::Insert(9)), done(None, Some(9)));
        assert_eq!(way.compare_exchange(3, 9, 1), Ok(9));
        let rejected = |current| Err(Rejected { current, value: 2 });
        assert_eq!(way.compare_exchange(3, 9, 2), rejected(Some(1)));
        assert_eq!(way.compare_exchange(4, 9, 2), rejected(None));
        assert_eq!(way.remove_if(3, |value| value == 0), Err(1));
        assert_eq!(way.remove_if(3, |value| value == 1), Ok(Some(1)));
        assert_eq!(way.remove_if(3, |_| unreachable!("absent")), Ok(None));
        assert_eq!((way.remove(2), way.remove(2)), (Some(6), None));
        assert_eq!(map.len(), 1);
    });
}

#[test]
fn numbers_are_counted_with() {
    each_way!([(1, 6)], |_map, way| {
        assert_eq!((way.fetch_add(1, 1), way.fetch_sub(1, 2)), (Some(6), Some(7)));
        assert_eq!((way.fetch_max(1, 9), way.fetch_min(1, 3)), (Some(5), Some(9)));
        assert_eq!((way.fetch_and(1, 2), way.fetch_or(1, 5)), (Some(3), Some(2)));
        assert_eq!((way.fetch_xor(1, 1), way.get(1)), (Some(7), Some(6)));
        assert_eq!((way.fetch_sub(2, 1), way.get(2)), (None, Some(u64::MAX)));
        assert_eq!((way.fetch_and(3, 1), way.get(3)), (None, None));
    });
}

#[test]
fn many_at_a_time() {
    each_way!(squares(0..0), |map, way| {
        for count in [0, 1, 31, 32, 33, 1_000] {
            let new = count as usize - map.len();
            assert_eq!(way.insert_many(squares(0..count)), new, "{count}");
        }
        let keys: Vec<_> = (500..1_500).collect();
        let mut values = vec![Some(1); keys.len()];
        way.get_many(&keys, &mut values);
        assert!(keys.iter().zip(&values).all(|(&key, &value)| value == map.get(key)));
        let mut there = vec![false; keys.len()];
        way.contains_many(&keys, &mut there);
        assert!(values.iter().zip(&there).all(|(value, &there)| value.is_some() == there));
        assert_eq!(way.remove_many(keys), 500);
        assert_eq!(way.remove_many([1, 1, 1]), 1);
        assert_eq!((map.len(), way.iter().count()), (499, 499));
        assert_eq!(way.fetch_add_many((0..40).map(|key| (key * 20, 1))), 15);
        assert_eq!((way.get(20), way.get(780), map.len()), (Some(401), Some(1), 514));
    });
}

#[test]
fn all_of_it() {
    each_way!(squares(0..3_000), |map, way| {
        let seen: BTreeMap<_, _> = way.iter().collect();
        assert!(seen.into_iter().eq(squares(0..3_000)));
        assert_eq!(way.keys().collect::<HashSet<_>>(), (0..3_000).collect());
        assert_eq!(way.values().sum::<u64>(), squares(0..3_000).map(|(_, value)| value).sum());
        way.retain(|key, value| key * key == value && key % 3 != 0);
        assert_eq!((way.len(), map.len()), (2_000, 2_000));
        let drained: Vec<_> = way.drain().take(500).collect();
        assert!(drained.iter().all(|&(key, value)| value == key * key && !map.contains_key(key)));
        assert_eq!(way.len(), 1_500);
        assert_eq!(way.drain().count(), 1_500);
        assert!(way.is_empty());
        way.insert(1, 1);
        way.clear();
        assert!(way.is_empty() && way.iter().next().is_none());
    });
}

#[test]
fn room() {
    each_way!(squares(0..0), |map, way| {
        assert_eq!((way.capacity(), way.memory_bytes()), (0, 0));
        for wanted in [1, 20, 300, 4_000, 50_000] {
            way.clear();
            way.reserve(wanted);
            let (capacity, before) = (way.capacity() as u64, way.stats().migrations);
            assert!(capacity as usize >= wanted, "{capacity} for {wanted}");
            assert_eq!(way.insert_many(squares(0..wanted as u64)), wanted);
            // The smallest table may be left early, for one long probe.
            assert!(wanted < 300 || way.stats().migrations == before, "it has grown");
        }
        assert!(way.try_reserve(usize::MAX).is_err() && way.try_reserve(1 << 50).is_err());
        assert_eq!(way.stats().len, 50_000);
        way.retain(|key, _| key < 5);
        way.shrink_to_fit();
        way.flush();
        assert!(way.capacity() >= 5 && way.capacity() < 100);
        assert_eq!((map.len(), way.iter().count()), (5, 5));
    });
}

/// Nothing is held back but by the guard, and by it only while it lives.
#[test]
fn flush_frees_what_was_left() {
    each_way!(squares(0..50_000), |map, way| {
        way.remove_many(100..50_000);
        way.shrink_to_fit();
        way.flush();
        assert_eq!(map.len(), 100);
    });
    let map: Map = squares(0..50_000).collect();
    {
        let pin = map.pin();
        pin.remove_many(100..50_000);
        pin.shrink_to_fit();
        pin.flush();
        assert!(map.memory_bytes() > 50_000 * 16, "the guard may be inside of the tables left");
    }
    map.flush();
    assert!(map.memory_bytes() < 64 << 10, "{} bytes", map.memory_bytes());
}

#[test]
fn without_memory_the_fallible_forms_return_an_error_and_the_others_panic() {
    each_way!(squares(0..0), |map, way| {
        let fallible = way.fallible();
        REFUSE.set(true);
        let refused = |error| assert!(matches!(error, Some(AllocError::OutOfMemory { .. })));
        refused(fallible.insert(1, 1).err());
        refused(fallible.insert_new(1, 1).err());
        refused(fallible.get_or_insert(1, 1).err());
        refused(fallible.get_or_insert_with(1, || 1).err());
        refused(fallible.update_or_insert(1, |value| value, 1).err());
        refused(fallible.update_or_insert_with(1, |value| value, || 1).err());
        refused(fallible.compute(1, |_| Compute::Insert(1)).err());
        refused(fallible.insert_many([(1, 1)]).err());
        refused(fallible.fetch_add(1, 1).err());
        refused(fallible.fetch_sub(1, 1).err());
        refused(fallible.fetch_max(1, 1).err());
        refused(fallible.fetch_min(1, 1).err());
        refused(fallible.fetch_or(1, 1).err());
        refused(fallible.fetch_xor(1, 1).err());
        refused(way.try_reserve(1).err());
        assert_eq!(fallible.compute(1, |_| Compute::Keep).map(|done| done.after), Ok(None));
        let panics = |work: &dyn Fn()| catch_unwind(AssertUnwindSafe(work)).is_err();
        assert!(panics(&|| ignore(way.insert(1, 1))));
        assert!(panics(&|| way.reserve(1)));
        way.shrink_to_fit();
        REFUSE.set(false);
        assert!(map.is_empty());
        assert_eq!((fallible.insert(1, 2), fallible.fetch_add(1, 3)), (Ok(None), Ok(Some(2))));
        assert_eq!(fallible.insert_new(1, 9), Ok(Err(Rejected { current: 5, value: 9 })));
        assert_eq!((way.get(1), way.len()), (Some(5), 1));
    });
}

/// A handle that owns its map works in a thread that nobody waits for, after everybody else has let
/// go of the map.
#[test]
fn an_owned_handle_outlives_the_arc_it_came_from() {
    let map: Arc<Map> = Arc::new(squares(0..1_000).collect());
    let kept = Arc::downgrade(&map);
    let handle = map.owned_handle();
    let (go, wait) = mpsc::channel::<()>();
    let (answer, answers) = mpsc::channel();
    thread::spawn(move || {
        wait.recv().unwrap();
        move_on(handle.map());
        let more = handle.clone();
        drop(handle);
        assert_eq!(more.insert_many(squares(1_000..20_000)), 19_000);
        answer.send((more.len(), more.iter().count())).unwrap();
        assert_eq!(kept.strong_count(), 1, "this one alone");
        drop(more);
        answer.send((kept.strong_count(), 0)).unwrap();
    });
    drop(map);
    go.send(()).unwrap();
    assert_eq!(answers.recv(), Ok((20_000, 20_000)));
    assert_eq!(answers.recv(), Ok((0, 0)), "the map went with its last handle");
}

/// Passed by value and dropped in the callee, with tables to give back.
#[test]
fn the_last_owner_of_a_map_is_dropped_by_value() {
    fn let_go(handle: Handle<'static, u64, u64>) {
        assert_eq!(handle.get(3), Some(9));
        drop(handle);
    }
    for turn in 0..50 {
        let map: Arc<Map> = Arc::new(squares(0..2_000).collect());
        let (handle, last) = (map.owned_handle(), Arc::downgrade(&map));
        handle.remove_many(10..2_000);
        drop(map);
        if turn % 2 == 0 {
            std::mem::forget(handle.iter());
        }
        move_on(handle.map());
        let_go(handle);
        assert_eq!(last.strong_count(), 0);
    }
}

/// A map that is not shared, taken apart: its iterator owns it.
#[test]
fn a_map_is_taken_apart() {
    let map: Map = squares(0..10_000).collect();
    move_on(&map);
    let mut all = map.into_iter();
    let first: Vec<_> = all.by_ref().take(100).collect();
    let rest = thread::spawn(move || all.collect::<Vec<_>>()).join().unwrap();
    let all: BTreeMap<_, _> = first.into_iter().chain(rest).collect();
    assert!(all.into_iter().eq(squares(0..10_000)));
    let map: Map = squares(0..10).collect();
    ignore(map.into_iter());
    assert_eq!(Map::new().into_iter().next(), None);
}

/// Runs the same in so many threads.
fn together(threads: u64, work: impl Fn(u64) + Sync) {
    thread::scope(|scope| {
        for thread in 0..threads {
            let work = &work;
            scope.spawn(move || work(thread));
        }
    });
}

const TURNS: u64 = 20_000;
const KEYS: u64 = 7;

/// Counts by closures, from every way in at once, while the map grows and shrinks: none is lost.
#[test]
fn changes_by_several_threads_lose_nothing() {
    for threads in 2..=4 {
        let map = Arc::new(Map::new());
        together(threads, |thread| {
            let (handle, owned) = (map.handle(), map.owned_handle());
            for turn in 0..TURNS {
                let key = turn % KEYS;
                match (turn + thread) % 4 {
                    0 => ignore(map.update_or_insert(key, |value| value + 1, 1)),
                    1 => {
                        ignore(handle.compute(key, |found| Compute::Insert(found.unwrap_or(0) + 1)))
                    }
                    2 => ignore(owned.fetch_add(key, 1)),
                    _ => {
                        let pin = map.pin();
                        pin.get_or_insert_with(key, || 0);
                        assert!(pin.update(key, |value| value + 1).is_some());
                    }
                }
                // Other keys, so that it grows.
                handle.insert((thread + 1) << 32 | turn, turn);
            }
            assert_eq!(
                handle.remove_many((0..TURNS).map(|turn| (thread + 1) << 32 | turn)),
                TURNS as usize
            );
        });
        assert_eq!(map.values().sum::<u64>(), threads * TURNS);
        assert_eq!(map.len(), KEYS as usize);
    }
}

/// Tokens are put in by one side and taken out by `remove_if` and `compute` on the other: each is
/// taken once.
#[test]
fn each_entry_is_taken_once() {
    for threads in [2, 4] {
        let map = Map::new();
        let (taken, sum) = (AtomicU64::new(0), AtomicU64::new(0));
        let all = threads / 2 * TURNS;
        together(threads, |thread| {
            let handle = map.handle();
            if thread % 2 == 0 {
                for turn in 0..TURNS {
                    let token = thread / 2 * TURNS + turn;
                    assert_eq!(handle.insert_new(token, token + 1), Ok(()));
                }
                return;
            }
            while taken.load(SeqCst) < all {
                for token in 0..all {
                    let out = match token % 2 {
                        0 => handle.remove_if(token, |value| value == token + 1).unwrap_or(None),
                        _ => handle.compute(token, |_| Compute::Remove).before,
                    };
                    if let Some(value) = out {
                        assert_eq!(value, token + 1);
                        taken.fetch_add(1, SeqCst);
                        sum.fetch_add(value, SeqCst);
                    }
                }
            }
        });
        assert_eq!((taken.into_inner(), sum.into_inner()), (all, all * (all + 1) / 2));
        assert!(map.is_empty() && map.iter().next().is_none());
    }
}

/// What a closure does to the map that calls it: by every way in, on the same key and on others,
/// with growth.
fn meddle(map: &Arc<Map>, key: u64) {
    map.insert(key, 1_000);
    map.pin().fetch_add(key, 1);
    map.handle().update(key, |value| value + 1);
    assert_eq!(map.owned_handle().get(key), Some(1_002));
    map.insert_many(squares(100..400));
    assert!(map.iter().count() > 300 && map.drain().next().is_some());
    let _ = map.remove_if(key, |_| map.contains_key(key));
    assert_eq!(map.get(key), None);
    map.get_or_insert_with(key, || map.compute(key, |_| Compute::Keep).after.unwrap_or(7));
    move_on(map);
    map.flush();
}

/// The closure has changed what it was called for: it is called again, and sees its own doing.
#[test]
fn closures_use_the_map_that_calls_them() {
    each_way!(squares(0..50), |map, way| {
        let turns = Cell::new(0);
        let once = || {
            if turns.replace(turns.get() + 1) == 0 {
                meddle(&map, 5);
            }
        };
        let raise = |value| {
            once();
            value + 1
        };
        assert_eq!((way.update(5, raise), turns.take()), (Some(8), 2));
        let raise = |found: Option<u64>| {
            once();
            Compute::Insert(found.unwrap_or(0) + 1)
        };
        assert_eq!((way.compute(5, raise).after, turns.take()), (Some(8), 2));
        let refuse = |value| {
            once();
            value != 7
        };
        assert_eq!((way.remove_if(5, refuse), turns.take()), (Err(7), 2));
        way.remove(5);
        let make = || {
            once();
            9
        };
        assert_eq!((way.get_or_insert_with(5, make), turns.take()), (7, 1));
        way.remove(5);
        assert_eq!((way.update_or_insert_with(5, |value| value + 1, make), turns.take()), (8, 1));
        way.retain(|_, _| {
            once();
            true
        });
        assert_eq!(way.get(5), Some(7));
        turns.set(0);
        way.insert_many((600..700).map(|key| {
            once();
            (key, key)
        }));
        assert!((600..700).all(|key| map.get(key) == Some(key)));
        assert_eq!(map.len(), map.iter().count());
    });
}

#[test]
fn closures_that_panic_leave_all_as_it_was() {
    each_way!(squares(0..100), |map, way| {
        let whole: Map = squares(0..100).collect();
        let panics = |work: &dyn Fn()| {
            let outcome = catch_unwind(AssertUnwindSafe(work));
            assert!(outcome.is_err() && *map == whole);
        };
        panics(&|| ignore(way.update(1, |_| panic!("of the user"))));
        panics(&|| ignore(way.compute(1, |_| panic!("of the user"))));
        panics(&|| ignore(way.compute(1_000, |_| panic!("of the user"))));
        panics(&|| ignore(way.remove_if(1, |_| panic!("of the user"))));
        panics(&|| ignore(way.get_or_insert_with(1_000, || panic!("of the user"))));
        panics(&|| ignore(way.update_or_insert(1, |_| panic!("of the user"), 1)));
        panics(&|| {
            ignore(way.update_or_insert_with(1_000, |value| value, || panic!("of the user")))
        });
        panics(&|| way.retain(|_, _| panic!("of the user")));
        panics(&|| ignore(way.insert_many((0..9).map(|_| panic!("of the user")))));
        panics(&|| ignore(way.remove_many((0..9).map(|_| panic!("of the user")))));
        panics(&|| ignore(way.fallible().compute(1, |_| panic!("of the user"))));
        move_on(&map);
        assert_eq!(*map, whole);
    });
}

/// Held by one thread or another while others write, grow and free.
#[test]
fn an_iterator_lasts_while_the_map_moves_on() {
    each_way!(squares(0..2_000), |map, way| {
        let mut iter = way.iter();
        let first: Vec<_> = iter.by_ref().take(10).collect();
        let stop = AtomicBool::new(false);
        let rest = thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    map.insert_many(squares(2_000..30_000));
                    map.remove_many(2_000..30_000);
                    move_on(&map);
                }
            });
            let rest =
                scope.spawn(move || iter.inspect(|_| thread::yield_now()).collect::<Vec<_>>());
            let rest = rest.join();
            stop.store(true, SeqCst);
            rest.unwrap()
        });
        let mut lasting: Vec<_> =
            first.into_iter().chain(rest).filter(|entry| entry.0 < 2_000).collect();
        lasting.sort_unstable();
        assert!(lasting.into_iter().eq(squares(0..2_000)), "each once");
    });
}

/// As a bridge to several workers does it: one iterator, asked in turn.
#[test]
fn one_iterator_feeds_several_threads() {
    let map: Map = squares(0..10_000).collect();
    let (iter, sum) = (Mutex::new(map.iter()), AtomicU64::new(0));
    together(4, |_| {
        loop {
            let Some((_, value)) = iter.lock().unwrap().next() else { return };
            sum.fetch_add(value, SeqCst);
        }
    });
    assert_eq!(sum.into_inner(), squares(0..10_000).map(|(_, value)| value).sum());
    let drain = Mutex::new(map.drain());
    let drained = AtomicU64::new(0);
    together(4, |_| {
        while drain.lock().unwrap().next().is_some() {
            drained.fetch_add(1, SeqCst);
        }
    });
    assert_eq!((drained.into_inner(), map.len()), (10_000, 0));
}
