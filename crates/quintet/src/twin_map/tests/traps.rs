//! What goes wrong in maps of this kind, each as a test named after the story.

use super::super::*;
use super::expect_both;
use crate::sync::{Arc, AtomicBool, AtomicU64, AtomicUsize, Ordering, thread};
use std::cell::Cell;
use std::hash::{BuildHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// User code panics when this reaches 1.
    static FUSE: Cell<usize> = const { Cell::new(0) };
}

fn burn() {
    let left = FUSE.get();
    FUSE.set(left.saturating_sub(1));
    assert_ne!(left, 1, "user code panics, on purpose");
}

fn panics<R>(f: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

/// Forgetting the write guard skipped the publish; the next guard replayed the log on a copy that
/// had it already: freed values were read.
#[test]
fn a_forgotten_write_guard_leaves_its_batch_to_the_next() {
    let (mut writer, reader) = TwinMap::<u64, String>::new().split();
    for round in 0..4 {
        let mut write = writer.guard();
        write.insert(1, format!("first {round}"));
        write.insert(2, "gone".to_owned());
        write.remove(&2);
        std::mem::forget(write);
        let mut write = writer.guard();
        assert_eq!(write.get(&1).map(String::as_str), Some(format!("first {round}").as_str()));
        write.insert(1, format!("second {round}"));
        write.publish();
        expect_both(&mut writer, &reader, &[(1, &format!("second {round}"))]);
    }
    assert_eq!(writer.stats().rebuilds, 0);
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Bomb(u64);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 == 13 && !thread::panicking() {
            burn();
        }
    }
}

/// A value whose drop panicked in the replay made the copies differ for ever.
#[test]
fn a_drop_that_panics_in_the_replay_leaves_both_copies_equal() {
    let (mut writer, reader) = TwinMap::<u64, Bomb>::new().split();
    writer.guard().extend([(1, Bomb(13)), (2, Bomb(2))]);
    let mut write = writer.guard();
    std::mem::forget(write.insert(1, Bomb(1)));
    write.insert(3, Bomb(3));
    write.publish();
    FUSE.set(1);
    assert!(panics(|| drop(writer.guard())), "the user's panic is told");
    for _ in 0..3 {
        let guard = reader.pin();
        assert_eq!(guard.get(&1), Some(&Bomb(1)));
        assert_eq!(guard.len(), 3);
        drop(guard);
        writer.guard().publish();
    }
    assert_eq!(writer.stats().rebuilds, 0);
}

#[derive(Clone, Debug)]
struct Fragile(u64);

impl PartialEq for Fragile {
    fn eq(&self, other: &Self) -> bool {
        burn();
        self.0 == other.0
    }
}
impl Eq for Fragile {}
impl Hash for Fragile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        burn();
        self.0.hash(state);
    }
}

/// `Hash` or `Eq` panics at any moment: while the batch is made, or in the replay. No entry is
/// lost, the copies agree.
#[test]
fn hash_and_eq_that_panic_lose_nothing() {
    for fuse in 1..200 {
        let (mut writer, reader) = TwinMap::<Fragile, u64>::new().split();
        FUSE.set(0);
        writer.guard().extend((0..20).map(|n| (Fragile(n), n)));
        drop(writer.guard());
        FUSE.set(fuse);
        let mut write = writer.guard();
        let mut expected: Vec<u64> = (0..20).collect();
        for n in 20..50 {
            if !panics(|| write.insert(Fragile(n), n)) {
                expected.push(n);
            }
        }
        for n in 0..5 {
            if !panics(|| write.remove(&Fragile(n))) {
                expected.retain(|held| *held != n);
            }
        }
        // Anything that is left burns in the publish's repair or in the replay.
        let published = !panics(|| write.publish());
        FUSE.set(0);
        if !published {
            continue; // no copy could be had: discarded, as told
        }
        for _ in 0..2 {
            let guard = reader.pin();
            let mut seen: Vec<u64> = guard.values().copied().collect();
            seen.sort_unstable();
            assert_eq!(seen, expected, "fuse {fuse}");
            assert!(expected.iter().all(|n| guard.contains_key(&Fragile(*n))));
            drop(guard);
            writer.guard().publish();
        }
    }
}

/// The same in the replay alone, where the second copy must be rebuilt.
#[test]
fn eq_that_panics_in_the_replay_rebuilds_the_copy() {
    let mut rebuilt = 0;
    for fuse in 1..40 {
        let (mut writer, reader) = TwinMap::<Fragile, u64>::new().split();
        FUSE.set(0);
        writer.guard().extend((0..20).map(|n| (Fragile(n), n)));
        let mut write = writer.guard();
        write.extend((10..30).map(|n| (Fragile(n), n + 100)));
        write.publish();
        FUSE.set(fuse);
        let mut write = writer.guard();
        FUSE.set(0);
        write.remove(&Fragile(0));
        write.publish();
        rebuilt += writer.stats().rebuilds;
        let expected = |n| if n < 10 { n } else { n + 100 };
        for _ in 0..2 {
            let guard = reader.pin();
            assert_eq!(guard.len(), 29);
            assert!((1..30).all(|n| guard.get(&Fragile(n)) == Some(&expected(n))));
            drop(guard);
            writer.guard().publish();
        }
    }
    assert!(rebuilt > 10, "{rebuilt}");
}

/// A panic in the middle of a batch published half of it.
#[test]
fn a_panic_while_writing_discards_the_batch() {
    let (mut writer, reader) = TwinMap::<u64, String>::new().split();
    writer.guard().insert(1, "kept".to_owned());
    assert!(panics(|| {
        let mut write = writer.guard();
        write.insert(2, "half".to_owned());
        write.modify(&1, |_| panic!("the other half"));
    }));
    expect_both(&mut writer, &reader, &[(1, "kept")]);
    // Caught inside, the operation alone has not happened.
    let mut write = writer.guard();
    write.insert(3, "more".to_owned());
    assert!(panics(|| write.modify(&1, |_| panic!("not this"))));
    assert!(panics(|| write.retain(|key, _| if *key == 3 { panic!("nor this") } else { true })));
    write.publish();
    expect_both(&mut writer, &reader, &[(1, "kept"), (3, "more")]);
}

#[derive(Clone, Default)]
struct Liar(Arc<AtomicU64>);

impl BuildHasher for Liar {
    type Hasher = std::hash::DefaultHasher;
    fn build_hasher(&self) -> Self::Hasher {
        let mut hasher = Self::Hasher::new();
        hasher.write_u64(self.0.fetch_add(1, Ordering::Relaxed) % 3);
        hasher
    }
}

/// The replay trusted the hasher: it had to be unsafe to choose one. Here a hasher that lies may
/// lose its own keys, and nothing else happens.
#[test]
fn a_hasher_that_lies_is_safe() {
    let (mut writer, reader) =
        TwinMap::<String, String>::builder().hasher(Liar::default()).build().split();
    for round in 0..200u64 {
        let mut write = writer.guard();
        for n in 0..5 {
            write.insert(format!("{}", (round * 7 + n) % 23), format!("{round}"));
            write.remove(&format!("{}", (round * 5 + n) % 23));
        }
        write.publish();
        let guard = reader.pin();
        assert_eq!(guard.iter().count(), guard.len());
    }
}

#[derive(Clone, Debug)]
struct Fickle(u64, Arc<AtomicBool>);

impl PartialEq for Fickle {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 && !self.1.load(Ordering::Relaxed)
    }
}
impl Eq for Fickle {}
impl Hash for Fickle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// A replay that ended differently left the copies different. Here it is noticed, and the copy
/// rebuilt.
#[test]
fn a_replay_that_ends_differently_is_noticed() {
    let odd = Arc::new(AtomicBool::new(false));
    let key = |n| Fickle(n, Arc::clone(&odd));
    let (mut writer, reader) = TwinMap::<Fickle, u64>::new().split();
    writer.guard().extend((0..10).map(|n| (key(n), n)));
    let mut write = writer.guard();
    write.remove(&key(3));
    write.insert(key(4), 40);
    write.publish();
    odd.store(true, Ordering::Relaxed); // from here on no key equals another
    let write = writer.guard();
    odd.store(false, Ordering::Relaxed);
    write.publish();
    assert_eq!(writer.stats().rebuilds, 1);
    let guard = reader.pin();
    assert_eq!(guard.len(), 9);
    assert_eq!((guard.get(&key(3)), guard.get(&key(4))), (None, Some(&40)));
}

/// Copies that shared values bitwise let readers of the old version change what the new one shows.
#[test]
fn values_with_interior_mutability_are_not_shared() {
    struct Counter(AtomicU64);
    impl Clone for Counter {
        fn clone(&self) -> Self {
            Self(AtomicU64::new(self.0.load(Ordering::Relaxed)))
        }
    }
    let (mut writer, reader) = TwinMap::<u64, Counter>::new().split();
    writer.guard().insert(1, Counter(AtomicU64::new(0)));
    let first = reader.pin().get(&1).map(std::ptr::from_ref);
    reader.pin()[&1].0.fetch_add(5, Ordering::Relaxed);
    writer.guard().publish();
    let second = reader.pin().get(&1).map(std::ptr::from_ref);
    assert_ne!(first, second);
    assert_eq!(reader.pin()[&1].0.load(Ordering::Relaxed), 0, "each copy has its own");
}

/// The same with values that own memory: one list, freed twice.
#[test]
fn values_that_own_memory_are_freed_once_each() {
    static LIVE: AtomicUsize = AtomicUsize::new(0);
    struct Counted(std::sync::Mutex<Vec<u64>>);
    impl Counted {
        fn new(list: Vec<u64>) -> Self {
            LIVE.fetch_add(1, Ordering::Relaxed);
            Self(std::sync::Mutex::new(list))
        }
    }
    impl Clone for Counted {
        fn clone(&self) -> Self {
            Self::new(self.0.lock().unwrap().clone())
        }
    }
    impl Drop for Counted {
        fn drop(&mut self) {
            LIVE.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let (mut writer, reader) = TwinMap::<u64, Counted>::new().split();
    for round in 0..50u64 {
        let mut write = writer.guard();
        write.insert(round % 7, Counted::new(vec![round]));
        write.remove(&(round % 5));
        if round % 11 == 0 {
            write.discard();
        }
        reader.pin().values().for_each(|list| list.0.lock().unwrap().push(round));
    }
    drop(writer);
    drop(reader);
    assert_eq!(LIVE.load(Ordering::Relaxed), 0);
}

/// `Clone` panics: the insert has not happened.
#[test]
fn a_clone_that_panics_has_not_inserted() {
    struct Heavy(u64);
    impl Clone for Heavy {
        fn clone(&self) -> Self {
            burn();
            Self(self.0)
        }
    }
    for fuse in 1..30 {
        FUSE.set(0);
        let (mut writer, reader) = TwinMap::<u64, Heavy>::new().split();
        writer.guard().extend((0..5).map(|n| (n, Heavy(n))));
        let mut write = writer.guard();
        let mut expected = 5;
        FUSE.set(fuse);
        for n in 5..12 {
            expected += usize::from(!panics(|| write.insert(n, Heavy(n))));
        }
        FUSE.set(0);
        write.publish();
        writer.guard().publish();
        let guard = reader.pin();
        assert_eq!(guard.len(), expected);
        assert!(guard.iter().all(|(key, value)| *key == value.0));
    }
}

/// Guards forgotten on two old versions take all places but the readable one: writers without a
/// limit wait, those with one are told, and readers notice nothing. The guards stay when their
/// threads have ended: what was read through them may be in use.
#[test]
fn guards_forgotten_on_two_old_versions_hold_up_writers_that_are_told() {
    let map = TwinMap::<u32, u32>::new();
    for n in 0..2 {
        thread::scope(|scope| {
            scope.spawn(|| std::mem::forget(map.pin())).join().unwrap();
        });
        map.insert(n, n);
    }
    assert_eq!(map.stats().left_behind, 1, "the first of them cost a copy");
    assert_eq!(map.try_batch(|write| write.insert(2, 2)), Err(GuardError::Occupied));
    let soon = std::time::Duration::from_millis(5);
    assert_eq!(map.batch_timeout(soon, |write| write.insert(2, 2)), Err(GuardError::TimedOut));
    assert_eq!(map.len(), 2);
}
