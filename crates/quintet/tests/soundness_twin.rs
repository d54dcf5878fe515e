//! What safe code might try with a `TwinMap`, and must not succeed with. `docs/soundness.md` says
//! which test stands for what.

use quintet::twin_map::{GuardError, InertMap, MapReader, Stalled, Version, WaitError, WriteGuard};
use quintet::{Pages, TwinMap, TwinSet};
use std::cell::{Cell, RefCell};
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

fn panics<R>(f: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

/// Runs a story that must end. One that hangs fails the test instead of hanging it.
fn ends<R: Send + 'static>(story: impl FnOnce() -> R + Send + 'static) -> R {
    let (tell, told) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let _ = tell.send(catch_unwind(AssertUnwindSafe(story)));
    });
    let Ok(told) = told.recv_timeout(Duration::from_secs(20)) else {
        drop(thread); // hangs for ever
        panic!("the story has not ended in time");
    };
    told.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
}

/// A `retain` whose closure panicked was published half done.
#[test]
fn a_retain_that_panics_has_not_happened() {
    let (mut writer, reader) = TwinMap::<u64, u64>::new().split();
    writer.guard().extend((0..1_000).map(|n| (n, n)));
    let mut write = writer.guard();
    write.insert(1_000, 0);
    let mut calls = 0;
    assert!(panics(|| write.retain(|_, _| {
        calls += 1;
        assert!(calls < 500, "on purpose");
        calls % 7 != 0
    })));
    assert_eq!(write.len(), 1_001, "the guard shows what has happened, and no more");
    assert_eq!(write.staged(), 1);
    write.publish();
    for _ in 0..2 {
        assert_eq!(reader.pin().len(), 1_001);
        assert!((0..=1_000).all(|n| reader.pin().contains_key(&n)));
        writer.guard().publish();
    }
}

thread_local! {
    static FRONT: RefCell<Option<Arc<TwinMap<u64, Noisy>>>> = const { RefCell::new(None) };
}

/// A value whose `Drop` writes a note into the map it was in.
#[derive(Clone, Debug)]
struct Noisy(u64);

impl Drop for Noisy {
    fn drop(&mut self) {
        if self.0 == 1 {
            let front = FRONT.with_borrow(|front| front.clone());
            if let Some(front) = front {
                front.insert(99, Noisy(0));
            }
        }
    }
}

/// A `Drop` that writes to its own table waited for itself, with the writer locked for ever.
#[test]
fn a_drop_that_commits_to_its_own_front_does_not_hang() {
    ends(|| {
        let front = Arc::new(TwinMap::<u64, Noisy>::new());
        let reader = front.handle();
        front.insert(1, Noisy(1));
        FRONT.with_borrow_mut(|own| *own = Some(front.clone()));
        let mut notes = 0;
        for round in 0..4 {
            front.remove(&99);
            front.insert(1, Noisy(1 + round % 2));
            notes += u32::from(reader.contains_key(&99));
        }
        assert!(notes > 0, "what the values wrote when they went is in the map");
        FRONT.with_borrow_mut(|own| *own = None);
        front.insert(2, Noisy(2));
        assert!(reader.pin().contains_key(&2));
    });
}

thread_local! {
    /// User code panics when this reaches 1.
    static FUSE: Cell<usize> = const { Cell::new(0) };
    /// What the next `Hash`, `Eq` or `Clone` does besides.
    static DEED: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

fn user_code() {
    let left = FUSE.get();
    FUSE.set(left.saturating_sub(1));
    assert_ne!(left, 1, "on purpose");
    let deed = DEED.with_borrow_mut(Option::take);
    deed.into_iter().for_each(|deed| deed());
}

/// Runs user code in `Hash`, `Eq`, `Clone` and `Drop`.
#[derive(Debug)]
struct Live(u64);

impl Clone for Live {
    fn clone(&self) -> Self {
        user_code();
        Self(self.0)
    }
}
impl Drop for Live {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            user_code();
        }
    }
}
impl PartialEq for Live {
    fn eq(&self, other: &Self) -> bool {
        user_code();
        self.0 == other.0
    }
}
impl Eq for Live {}
impl Hash for Live {
    fn hash<H: Hasher>(&self, state: &mut H) {
        user_code();
        self.0.hash(state);
    }
}

fn numbers(map: &Version<Live, Live>) -> Vec<(u64, u64)> {
    let mut seen: Vec<_> = map.iter().map(|(key, value)| (key.0, value.0)).collect();
    seen.sort_unstable();
    seen
}

/// One change by each way there is; `n` tells which.
fn change(write: &mut WriteGuard<'_, Live, Live>, n: usize) {
    match n {
        0 => drop(write.insert(Live(100), Live(0))),
        1 => drop(write.insert(Live(1), Live(0))), // the key is there: the new one falls out
        2 => drop(write.remove(&Live(2))),
        3 => write.retain(|key, _| key.0 % 2 == 0),
        4 => drop(write.update(&Live(3), |old| {
            user_code();
            Live(old.0 + 50)
        })),
        5 => drop(write.modify(&Live(4), |value| {
            user_code();
            value.0 += 50;
        })),
        6 => drop(write.entry(Live(101)).or_insert_with(|| {
            user_code();
            Live(7)
        })),
        7 => drop(write.entry(Live(5)).and_modify(|value| value.0 = 9)),
        8 => write.clear(),
        9 => write.reserve(1_000),
        _ => write.shrink_to_fit(),
    }
}

/// Every change, with a panic at every call of user code inside it: it has happened whole or not at
/// all, the guard shows which, and so do both copies.
#[test]
fn a_change_that_panics_has_not_happened() {
    for n in 0..11 {
        for fuse in 1..90 {
            FUSE.set(0);
            let (mut writer, reader) = TwinMap::<Live, Live>::new().split();
            writer.guard().extend((0..12).map(|n| (Live(n), Live(n))));
            let mut write = writer.guard();
            write.insert(Live(50), Live(50));
            let before = numbers(&write);
            let staged = write.staged();
            FUSE.set(fuse);
            let failed = panics(|| change(&mut write, n));
            FUSE.set(0);
            let after = numbers(&write);
            // A value that was handed out may panic when its new owner drops it.
            assert!(!failed || after == before || write.staged() > staged, "{n} {fuse}");
            if write.staged() == staged {
                assert_eq!(after, before, "{n} {fuse}");
            }
            write.publish();
            for _ in 0..2 {
                assert_eq!(numbers(&reader.pin()), after, "{n} {fuse}");
                writer.guard().publish();
            }
        }
    }
}

/// The iterator of `extend` panics: what it gave before is in the batch.
#[test]
fn an_iterator_that_panics_ends_the_batch() {
    let (mut writer, reader) = TwinMap::<u64, u64>::new().split();
    let mut write = writer.guard();
    let entries = (0..10).map(|n| {
        assert!(n < 5, "on purpose");
        (n, n)
    });
    assert!(panics(|| write.extend(entries)));
    assert_eq!(write.len(), 5);
    write.publish();
    assert_eq!(reader.pin().len(), 5);
    let mut map = Version::<u64, u64>::default();
    assert!(panics(|| map.extend((0..10).map(|n| (10 / (5 - n), n)))));
    assert!(map.len() < 10);
    // A hint that lies is believed, as everywhere: no memory, a panic, nothing changed.
    struct Liar;
    impl Iterator for Liar {
        type Item = (u64, u64);
        fn next(&mut self) -> Option<(u64, u64)> {
            None
        }
        fn size_hint(&self) -> (usize, Option<usize>) {
            (usize::MAX, None)
        }
    }
    assert!(panics(|| map.extend(Liar)));
}

/// What `Hash`, `Eq`, `Clone` and `Drop` do with the map that calls them, inside every change, and
/// inside a front.
#[test]
fn user_code_may_read_the_map_that_calls_it() {
    ends(|| {
        type Deed = fn(MapReader<Live, Live>);
        let deeds: [Deed; 5] = [
            |reader| assert!(reader.pin().len() >= 12),
            |reader| assert!(reader.pin().iter().all(|(key, value)| key.0 == value.0)),
            |reader| drop((reader.clone(), reader.shared(), reader.owned_pin())),
            |reader| std::mem::forget((reader.clone(), reader.shared())),
            drop,
        ];
        for n in 0..11 {
            for deed in deeds {
                let (mut writer, reader) = TwinMap::<Live, Live>::new().split();
                writer.guard().extend((0..12).map(|n| (Live(n), Live(n))));
                let mut write = writer.guard();
                let inside = reader.clone();
                DEED.with_borrow_mut(|next| *next = Some(Box::new(move || deed(inside))));
                change(&mut write, n);
                write.publish();
                DEED.with_borrow_mut(|next| *next = None);
                writer.guard().publish();
                assert!(reader.pin().len() < 20);
            }
        }
    });
}

/// Writing to a table from inside it: the `Drop` of a value may; `Hash`, `Eq`, `Clone` and the
/// closure of `batch` are told so, and nothing hangs.
#[test]
fn a_front_written_to_from_inside_says_so() {
    ends(|| {
        let front = Arc::new(TwinMap::<Live, Live>::new());
        front.insert_many((0..12).map(|n| (Live(n), Live(n))));
        for n in 0..20 {
            let (inside, outside) = (front.clone(), front.clone());
            DEED.with_borrow_mut(|next| {
                *next = Some(Box::new(move || {
                    assert!(inside.version() > 0 && inside.pin().len() >= 12);
                    inside.insert(Live(1_000), Live(0));
                }));
            });
            let _ = panics(|| outside.insert(Live(100 + n), Live(n)));
            DEED.with_borrow_mut(|next| *next = None);
        }
        let nested = front.batch(|_| {
            assert!(front.version() > 0);
            panics(|| front.remove(&Live(1))) && panics(|| front.batch(|_| ()))
        });
        assert!(nested, "refused");
        assert!(panics(|| front.batch(|_| panic!("on purpose"))));
        // Written by the iterator of a batch: that runs before the lock.
        let entry = |()| (Live(7), front.remove(&Live(8)).map_or(Live(0), |_| Live(7)));
        front.insert_many([()].into_iter().map(entry));
        front.insert(Live(500), Live(500));
        let guard = front.pin();
        assert!(guard.contains_key(&Live(500)) && !guard.contains_key(&Live(8)));
    });
}

/// A write that panicked was published by the next one.
#[test]
fn a_commit_that_panics_is_withdrawn() {
    let map = TwinMap::<u64, u64>::builder().stalled(Stalled::Wait).build();
    map.insert(1, 1);
    let old = map.pin();
    map.insert(2, 2);
    // The writer would wait for this thread's own guard.
    assert!(panics(|| map.insert(3, 3)));
    drop(old);
    map.insert(4, 4);
    assert!(panics(|| map.batch(|write| {
        write.insert(5, 5);
        panic!("on purpose")
    })));
    assert_eq!(map.insert(6, 6), None);
    let guard = map.pin();
    assert!(guard.contains_key(&4) && !guard.contains_key(&3) && !guard.contains_key(&5));
}

/// Forgotten guards and handles hold back a copy at most, and say so.
#[test]
fn what_is_forgotten_is_told_or_harmless() {
    let (mut writer, reader) =
        TwinMap::<u64, String>::builder().stalled(Stalled::Wait).build().split();
    let mut write = writer.guard();
    write.insert(1, "staged".to_owned());
    let _ = std::mem::ManuallyDrop::new(write.entry(2));
    std::mem::forget(write);
    writer.guard().publish();
    assert_eq!(reader.pin().len(), 1);
    std::mem::forget(reader.pin());
    writer.guard().publish();
    assert!(matches!(writer.try_guard(), Err(GuardError::Occupied)));
    assert!(matches!(
        writer.guard_timeout(Duration::from_millis(1)),
        Err(GuardError::WouldDeadlock)
    ));
    drop(reader); // ends its forgotten guards
    writer.guard().publish();
    let reader = writer.reader();
    std::mem::forget(writer.shared_reader());
    std::mem::forget(reader.owned_pin());
    writer.guard().publish();
    writer.try_guard().unwrap().publish(); // nobody waits for owned guards
    std::mem::forget(writer);
    assert_eq!(reader.pin().len(), 1);

    let (mut writer, reader) = InertMap::<u64, Box<u64>>::builder().build_inert();
    let mut write = writer.guard();
    write.insert(1, Box::new(1));
    std::mem::forget(write);
    writer.guard().insert(1, Box::new(2));
    std::mem::forget(writer.evicted());
    assert_eq!(reader.pin().get(&1), Some(&Box::new(2)));
    std::mem::forget(reader);
}

/// Writers, readers, guards and fronts go in any order.
#[test]
fn every_order_of_going_is_fine() {
    let value = Arc::new(());
    for order in 0..6 {
        let (mut writer, reader) = TwinMap::<u64, Arc<()>>::new().split();
        writer.guard().extend((0..50).map(|n| (n, Arc::clone(&value))));
        let (shared, owned) = (reader.shared(), reader.owned_pin());
        writer.guard().remove(&1);
        match order {
            0 => drop((writer, shared, owned, reader)),
            1 => drop((owned, reader, shared, writer)),
            2 => drop((reader, writer, owned, shared)),
            3 => drop((writer.into_map(), reader, shared, owned)),
            4 => {
                let thread = std::thread::spawn(move || drop((owned, shared, writer)));
                assert!(reader.pin().len() >= 49);
                thread.join().unwrap();
            }
            _ => {
                drop(writer);
                assert!(reader.is_final() && owned.len() == 50 && shared.pin().len() == 49);
            }
        }
    }
    assert_eq!(Arc::strong_count(&value), 1);
}

/// A version is a number, not a token: that of another map is waited for, and nothing else.
#[test]
fn a_version_of_another_map_is_only_a_number() {
    let (mut other, _reader) = TwinMap::<u64, u64>::new().split();
    (0..5).for_each(|_| assert!(other.guard().publish() > 0));
    let (mut writer, reader) = TwinMap::<u64, u64>::new().split();
    let most = Duration::from_millis(1);
    assert!(matches!(reader.wait_for_timeout(other.version(), most), Err(WaitError::TimedOut)));
    (0..5).for_each(|_| assert!(writer.guard().publish() > 0));
    assert!(reader.wait_for_timeout(other.version(), most).is_ok());
}

macro_rules! aligned {
    ($($name:ident $align:literal $size:literal),+) => { $(
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[repr(align($align))]
        struct $name([u8; $size]);

        impl $name {
            #[inline(never)]
            fn story(count: u64) {
                let right = |map: &Version<u64, $name>| {
                    let place = |value: &$name| std::ptr::from_ref(value).addr();
                    map.values().all(|value| place(value) % align_of::<$name>() == 0)
                };
                for pages in [Pages::Huge, Pages::Small] {
                    let (mut writer, reader) = TwinMap::<u64, $name>::builder().pages(pages).build().split();
                    for n in 0..count {
                        writer.guard().insert(n, $name([7; $size]));
                        assert!(right(&reader.pin()), "{} of {}", $align, $size);
                    }
                    assert_eq!(reader.pin().len() as u64, count);
                }
                let (mut writer, reader) = TwinSet::<$name>::new().split();
                writer.guard().insert($name([7; $size]));
                assert!(reader.pin().contains(&$name([7; $size])));
            }
        }
    )+ };
}
aligned!(Nothing1 1 0, Nothing64 64 0, Nothing4096 4096 0, One64 64 1, One4096 4096 1, Far 4194304 1);

/// Tables that lie in mappings of their own are aligned to 2 MiB; entries that need more were not
/// aligned.
#[test]
fn entries_are_aligned_whatever_their_size() {
    Nothing1::story(100);
    Nothing64::story(100);
    Nothing4096::story(100);
    One64::story(100);
    One4096::story(1_000);
    let thread = std::thread::Builder::new().stack_size(256 << 20).spawn(|| Far::story(4));
    thread.unwrap().join().unwrap();
}

#[test]
fn capacities_at_the_ends() {
    for capacity in [0, 1, 3, 4, 1 << 10] {
        let (mut writer, reader) = TwinMap::<u64, u64>::with_capacity(capacity).split();
        writer.guard().extend((0..10).map(|n| (n, n)));
        assert_eq!(reader.pin().len(), 10);
    }
    for capacity in [isize::MAX as usize, usize::MAX] {
        assert!(panics(|| TwinMap::<u64, u64>::with_capacity(capacity).split()));
        assert!(panics(|| InertMap::<u64, u64>::builder().capacity(capacity).build_inert()));
        let (mut writer, reader) = TwinMap::<u64, u64>::new().split();
        let mut write = writer.guard();
        write.insert(1, 1);
        assert!(write.try_reserve(capacity).is_err());
        assert!(panics(|| write.reserve(capacity)));
        assert_eq!((write.len(), write.staged()), (1, 1));
        write.publish();
        writer.guard().publish();
        assert_eq!(reader.pin().len(), 1);
    }
}

/// A thread's own data outlives nothing that a map needs.
#[test]
fn maps_are_usable_in_thread_local_destructors() {
    struct Late(MapReader<u64, u64>, Arc<TwinMap<u64, u64>>);
    impl Drop for Late {
        fn drop(&mut self) {
            let before = self.0.pin().len();
            self.1.insert(before as u64, 0);
            assert_eq!((self.0.len(), self.1.pin().len()), (before + 1, before + 1));
            assert_eq!(self.0.owned_pin().len(), before + 1);
        }
    }
    thread_local!(static LATE: RefCell<Option<Late>> = const { RefCell::new(None) });
    let front = Arc::new(TwinMap::<u64, u64>::new());
    let reader = front.handle();
    for _ in 0..3 {
        let late = Late(reader.clone(), front.clone());
        let thread = std::thread::spawn(move || LATE.with_borrow_mut(|own| *own = Some(late)));
        thread.join().unwrap();
    }
    assert_eq!(reader.pin().len(), 3);
}

/// A child that was forked while nobody else used the map reads and writes its copy.
#[cfg(unix)]
#[test]
fn a_forked_child_works_on_its_copy() {
    let (mut writer, reader) = TwinMap::<u64, u64>::new().split();
    writer.guard().insert(1, 1);
    let held = reader.pin();
    // SAFETY: the child calls nothing but this map, and leaves without running anybody's exit code.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let right = !panics(|| {
            writer.guard().insert(2, 2);
            assert_eq!((held.len(), reader.clone().pin().len()), (1, 2));
            drop(held);
            writer.guard().insert(3, 3);
            assert_eq!(reader.pin().len(), 3);
        });
        // SAFETY: ends this process.
        unsafe { libc::_exit(i32::from(!right)) };
    }
    let mut status = -1;
    // SAFETY: waits for the child made above.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0);
    assert_eq!(held.len(), 1);
}

/// A thread with a guard waited for the end of its round, for which it needed the lock again, while
/// the holder of the lock waited for the guard.
#[test]
fn writers_with_guards_of_their_own_do_not_hang() {
    ends(|| {
        let map = TwinMap::<u64, u64>::new();
        std::thread::scope(|scope| {
            for writer in 0..3 {
                let map = &map;
                scope.spawn(move || {
                    for n in 0..3_000 {
                        let guard = (writer == 0).then(|| map.pin());
                        // Told that somebody waits for the guard, or written.
                        let told = panics(|| map.insert(writer, n));
                        assert!(!told || guard.is_some());
                    }
                });
            }
        });
        assert_eq!(map.len(), 3);
    });
}

/// Closures of `update` run with no lock held: a watch that is not told of a publish puts an old
/// value in the place of a newer one.
#[test]
fn updates_beside_each_other_lose_nothing() {
    let map = TwinMap::from([(0, 0), (1, 0)]);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for n in 0..2_000 {
                    map.update(&(n % 2), |old| {
                        std::thread::yield_now();
                        old + 1
                    });
                }
            });
        }
    });
    assert_eq!([0, 1].map(|key| *map.get(&key).unwrap()), [3_000; 2], "an update is lost");
}
