//! The words of `ItemSet`: each operation by each way in, and what they promise among threads.

use quintet::item_set::{Equivalent, Handle, Item, Keyed, MappedRef, QuietHandle, Ref};
use quintet::{AllocError, Compute, ItemSet, Pages};
use std::collections::BTreeSet;
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

/// An entry that knows whether it is alive.
#[derive(Debug)]
struct Entry {
    key: u64,
    value: u64,
    whole: AtomicU64,
    alive: Option<Arc<AtomicI64>>,
}

/// Takes what is of no interest.
fn ignore<T>(_: T) {}

const WHOLE: u64 = 0x600d_600d_600d_600d;

fn entry(key: u64, value: u64) -> Entry {
    Entry { key, value, whole: AtomicU64::new(WHOLE), alive: None }
}

impl Entry {
    fn counted(mut self, alive: &Arc<AtomicI64>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        self.alive = Some(Arc::clone(alive));
        self
    }

    fn look(&self) -> (u64, u64) {
        assert_eq!(self.whole.load(Ordering::Relaxed), WHOLE, "used after its drop");
        (self.key, self.value)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        assert_eq!(self.whole.swap(0, Ordering::Relaxed), WHOLE, "dropped twice");
        self.alive.iter().for_each(|alive| ignore(alive.fetch_sub(1, Ordering::Relaxed)));
    }
}

impl Keyed for Entry {
    type Key = u64;
    fn key(&self) -> &u64 {
        &self.key
    }
}

type Set = ItemSet<Box<Entry>>;

fn filled(keys: u64) -> Set {
    (0..keys).map(|key| entry(key, 0)).collect()
}

/// Every operation of the column, by one way in.
macro_rules! every_operation {
    ($set:expr, $way:expr) => {{
        let (set, way): (&Set, _) = ($set, $way);
        set.clear();
        // Looking up and storing.
        assert!(way.is_empty() && way.len() == 0 && way.get(&1).is_none() && !way.contains(&1));
        assert!(way.insert(entry(1, 10)).is_none());
        assert_eq!(way.insert(entry(1, 11)).unwrap().look(), (1, 10));
        let rejected = way.insert_new(entry(1, 12)).unwrap_err();
        assert_eq!((rejected.current.look(), rejected.value.look()), ((1, 11), (1, 12)));
        assert!(way.insert_new(entry(2, 20)).is_ok());
        assert_eq!(way.get_or_insert(entry(2, 21)).value, 20);
        assert_eq!(way.get_or_insert(entry(3, 30)).value, 30);
        assert_eq!(way.get_or_insert_with(&3, || entry(3, 31)).value, 30);
        assert_eq!(way.get_or_insert_with(&4, || entry(4, 40)).value, 40);
        assert_eq!(way.replace(entry(4, 41)).unwrap().value, 40);
        assert_eq!(way.replace(entry(5, 50)).unwrap_err().look(), (5, 50));
        let hash = set.hash_of(&4);
        assert_eq!(way.get_hashed(hash, &4).unwrap().value, 41);
        assert_eq!(way.put_hashed(hash, &4, Some(Box::new(entry(4, 40)))).unwrap().value, 41);
        way.prefetch(hash);
        // Read, think, write.
        assert_eq!(way.update(&4, |old| entry(4, old.value + 1)).unwrap().value, 41);
        assert!(way.update(&5, |_| -> Entry { unreachable!("absent") }).is_none());
        let add = |old: &Entry| entry(old.key, old.value + 1);
        assert_eq!(way.update_or_insert(add, entry(5, 50)).value, 50);
        assert_eq!(way.update_or_insert(add, entry(5, 99)).value, 51);
        assert_eq!(way.update_or_insert_with(&6, add, || entry(6, 60)).value, 60);
        let never = || -> Entry { unreachable!("present") };
        assert_eq!(way.update_or_insert_with(&6, add, never).value, 61);
        let kept = way.compute(&6, |old| {
            (old.unwrap().value == 61).then_some(()).map_or(Compute::Remove, |()| Compute::Keep)
        });
        assert_eq!([kept.before, kept.after].map(|seen| seen.unwrap().value), [61, 61]);
        let put =
            way.compute(&6, |old| Compute::Insert(Box::new(entry(6, old.unwrap().value + 1))));
        assert_eq!([put.before, put.after].map(|seen| seen.unwrap().value), [61, 62]);
        let gone = way.compute(&6, |_| Compute::Remove);
        assert!(gone.before.unwrap().value == 62 && gone.after.is_none());
        let new = way.compute(&6, |old| Compute::Insert(Box::new(entry(6, old.map_or(63, |_| 0)))));
        assert!(new.before.is_none() && new.after.unwrap().value == 63);
        assert!(way.compute(&7, |_| Compute::Remove).before.is_none());
        assert!(way.compute(&7, |_| Compute::Keep).after.is_none());
        let current = way.get(&6).unwrap();
        assert_eq!(way.compare_exchange(&current, entry(6, 64)).unwrap().value, 63);
        let late = way.compare_exchange(&current, entry(6, 65)).unwrap_err();
        assert_eq!((late.current.unwrap().value, late.value.value), (64, 65));
        assert!(way.compare_exchange(&entry(7, 0), entry(7, 1)).unwrap_err().current.is_none());
        ignore(current);
        // Taking out.
        assert_eq!(way.remove_if(&6, |old| old.value == 0).unwrap_err().value, 64);
        assert_eq!(way.remove_if(&6, |old| old.value == 64).unwrap().unwrap().value, 64);
        assert!(way.remove_if(&6, |_| unreachable!("absent")).unwrap().is_none());
        assert_eq!(way.remove(&5).unwrap().value, 51);
        assert!(way.remove(&5).is_none());
        way.retain(|entry| entry.key != 4);
        assert!(!way.contains(&4) && way.len() == 3);
        // Many.
        assert_eq!(way.insert_many((0..100).map(|key| entry(key, key + 1))), 97);
        let mut there = [false; 3];
        way.contains_many([&99, &100, &0], &mut there);
        assert_eq!(there, [true, false, true]);
        let keys: Vec<u64> = (50..150).collect();
        let mut found: Vec<_> = keys.iter().map(|_| None).collect();
        way.get_many(&keys, &mut found);
        for (key, found) in keys.iter().zip(&found) {
            assert_eq!(found.as_ref().map(|found| found.value), (*key < 100).then_some(key + 1));
        }
        assert_eq!(way.remove_many(&keys), 50);
        assert!(found.iter().flatten().all(|found| found.look().0 < 100), "what was lent is kept");
        drop(found);
        // Walks.
        assert_eq!(way.iter().map(|entry| entry.key).collect::<BTreeSet<_>>(), (0..50).collect());
        assert_eq!(way.iter_exact().map(|entry| entry.look()).count(), 50);
        assert_eq!(way.into_iter().count(), 50);
        assert_eq!(way.drain().take(20).map(|entry| entry.look()).count(), 20);
        assert!(way.is_empty(), "the rest goes with the walk");
        // Room and figures.
        way.reserve(1_000);
        assert!(way.try_reserve(usize::MAX).is_err() && way.capacity() >= 1_000);
        assert!(way.memory_bytes() >= way.stats().table_bytes);
        way.shrink_to_fit();
        assert!(way.capacity() < 1_000);
        // With errors.
        let tries = || -> Result<(), AllocError> {
            let way = way.fallible();
            assert!(way.insert(entry(1, 1))?.is_none());
            assert!(way.insert_new(entry(1, 2))?.is_err());
            assert_eq!(way.get_or_insert(entry(1, 2))?.value, 1);
            assert_eq!(way.get_or_insert_with(&1, || entry(1, 2))?.value, 1);
            assert_eq!(way.replace(entry(1, 2))?.unwrap().value, 1);
            assert_eq!(way.update(&1, |_| entry(1, 3))?.unwrap().value, 3);
            assert_eq!(way.update_or_insert(|_| entry(1, 4), entry(1, 0))?.value, 4);
            assert_eq!(way.update_or_insert_with(&1, |_| entry(1, 5), || entry(1, 0))?.value, 5);
            assert_eq!(way.compute(&1, |_| Compute::Keep)?.after.unwrap().value, 5);
            assert!(way.compare_exchange(&entry(1, 5), entry(1, 6))?.is_err());
            assert_eq!(way.insert_many([entry(1, 7), entry(2, 7)])?, 1);
            Ok(())
        };
        tries().unwrap();
        way.clear();
        assert!(set.is_empty());
    }};
}

#[test]
fn every_operation_by_every_way() {
    for shards in [1, 32] {
        let set = Arc::new(Set::builder().shards(shards).max_load(0.6).pages(Pages::Small).build());
        every_operation!(&set, &*set);
        every_operation!(&set, &set.pin());
        every_operation!(&set, &set.handle());
        let handle = set.handle();
        every_operation!(&set, &handle.pin());
        every_operation!(&set, &set.owned_handle());
        let mut quiet = set.owned_quiet_handle();
        every_operation!(&set, &quiet);
        quiet.quiescent();
        drop(quiet.offline());
        quiet.flush();
        drop(quiet);
        set.pin().flush();
        handle.flush();
        set.flush();
        assert_eq!(set.stats().backlog_items, 0);
    }
}

/// A seat that is inside has owners of what it takes out.
#[test]
fn what_was_taken_out_may_be_owned() {
    let set = filled(1);
    assert_eq!(set.pin().insert_owned(entry(0, 1)).unwrap().look(), (0, 0));
    assert_eq!(set.pin().remove_owned(&0).unwrap().look(), (0, 1));
    assert!(set.quiet_handle().remove_owned(&0).is_none());
}

/// Not scoped, and the caller's share is gone before the thread begins.
#[test]
fn an_owned_handle_outlives_the_share_it_was_made_from() {
    let alive = Arc::new(AtomicI64::new(0));
    let set = Arc::new(Set::new());
    let (own, mut quiet) = (set.owned_handle(), set.owned_quiet_handle());
    set.insert(entry(1, 10).counted(&alive));
    let gone = Arc::new(Barrier::new(2));
    let wait = Arc::clone(&gone);
    let thread = std::thread::spawn(move || {
        wait.wait();
        assert_eq!(own.get(&1).unwrap().look(), (1, 10));
        drop(own);
        assert_eq!(quiet.get(&1).unwrap().look(), (1, 10));
        quiet.quiescent();
        quiet
    });
    drop(set);
    gone.wait();
    let last = thread.join().unwrap();
    assert_eq!(alive.load(Ordering::Relaxed), 1);
    drop(last);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

/// By value: it frees its set before the call returns.
#[test]
fn the_last_owner_of_a_set_may_be_its_handle() {
    fn end<H>(handle: H, work: impl FnOnce(&H)) {
        work(&handle);
    }
    let alive = Arc::new(AtomicI64::new(0));
    let make = || {
        let set = Arc::new(Set::new());
        (0..100).for_each(|key| drop(set.insert(entry(key, 0).counted(&alive))));
        set
    };
    let handle = make().owned_handle();
    end(handle, |handle: &Handle<'static, _>| {
        assert_eq!(handle.insert(entry(1, 1).counted(&alive)).unwrap().look(), (1, 0));
        assert_eq!(handle.remove(&2).unwrap().look(), (2, 0));
    });
    assert_eq!(alive.load(Ordering::Relaxed), 0);
    let handle = make().owned_quiet_handle();
    end(handle, |handle: &QuietHandle<'static, _>| {
        assert_eq!(handle.insert(entry(1, 1).counted(&alive)).unwrap().look(), (1, 0));
        assert_eq!(handle.remove(&2).unwrap().look(), (2, 0));
    });
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

/// An owned quiet handle is the guard that a task may hold while it waits.
#[test]
fn tasks_hold_what_an_owned_quiet_handle_lends() {
    async fn task(set: Arc<Set>) -> u64 {
        let mut handle = set.owned_quiet_handle();
        drop(set);
        let found = handle.get(&1);
        std::future::ready(()).await;
        let value = found.map_or(0, |found| found.look().1);
        handle.quiescent();
        std::future::ready(()).await;
        value
    }
    fn send<T: Send>(task: T) -> T {
        task
    }
    let set = Arc::new(filled(2));
    let mut task = Box::pin(send(task(set)));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert_eq!(task.as_mut().poll(&mut context), std::task::Poll::Ready(0));
}

const THREADS: u64 = 4;
const TURNS: u64 = if cfg!(debug_assertions) { 20_000 } else { 100_000 };

/// Counts up by each operation that can, while the set grows and shrinks below: no count is lost.
#[test]
fn counting_by_four_threads_is_exact() {
    let set = Set::builder().shards(2).build();
    (0..6).for_each(|key| drop(set.insert(entry(key, 0))));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let set = &set;
            scope.spawn(move || {
                let (own, mut quiet) = (set.handle(), set.quiet_handle());
                let add = |old: &Entry| entry(old.look().0, old.value + 1);
                for turn in 0..TURNS {
                    assert!(set.update(&0, add).unwrap().value > 0);
                    own.update_or_insert(add, entry(1, u64::MAX));
                    quiet.update_or_insert_with(&2, add, || -> Entry { unreachable!("there") });
                    let add_one =
                        |old: Option<&Entry>| Compute::Insert(Box::new(add(old.unwrap())));
                    let done = set.pin().compute(&3, add_one).after.map(|new| new.value);
                    assert!(done > Some(0));
                    let mut new = Box::new(entry(4, 0));
                    loop {
                        let seen = own.get(&4).unwrap();
                        new.value = seen.look().1 + 1;
                        match own.compare_exchange(&seen, new) {
                            Ok(old) => break assert_eq!(old.look(), seen.look()),
                            Err(rejected) => new = rejected.value,
                        }
                    }
                    // The set moves on: keys of one's own come and go.
                    set.insert(entry(100 + thread * TURNS + turn, 0));
                    if turn % 4 == 3 {
                        let own = (turn - 3..=turn).map(|turn| 100 + thread * TURNS + turn);
                        let keys: Vec<_> = own.collect();
                        assert_eq!(set.remove_many(&keys), 4);
                        quiet.quiescent();
                    }
                }
            });
        }
    });
    let counts = [0, 1, 2, 3, 4].map(|key| set.get(&key).unwrap().value);
    assert_eq!(counts, [THREADS * TURNS; 5]);
    assert_eq!(set.len(), 6);
}

/// Each state is taken out by one thread, whatever is put back meanwhile.
#[test]
fn what_remove_if_agrees_to_is_taken_by_one() {
    let set = filled(1);
    let (taken, put) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (set, taken, put) = (&set, &taken, &put);
            scope.spawn(move || {
                for turn in 1..=TURNS {
                    let value = turn * THREADS + thread;
                    if set.insert_new(entry(0, value)).is_ok() {
                        put.fetch_add(value, Ordering::Relaxed);
                    }
                    match set.remove_if(&0, |entry| entry.value % THREADS == thread) {
                        Ok(Some(entry)) => {
                            assert_eq!(entry.look().1 % THREADS, thread);
                            taken.fetch_add(entry.value, Ordering::Relaxed);
                        }
                        Ok(None) => {}
                        Err(stays) => {
                            assert_ne!(stays.look().1 % THREADS, thread);
                            let taken_by = set.compute(&0, |entry| match entry {
                                Some(entry) if entry.value % 2 == 0 => Compute::Remove,
                                _ => Compute::Keep,
                            });
                            if taken_by.after.is_none() {
                                let value = taken_by.before.map_or(0, |entry| entry.look().1);
                                taken.fetch_add(value, Ordering::Relaxed);
                            }
                        }
                    }
                }
            });
        }
    });
    let left = set.get(&0).map_or(0, |entry| entry.value);
    assert_eq!(taken.into_inner() + left, put.into_inner());
}

/// What a closure may do: everything, by every way in.
fn use_the_set(set: &Set) {
    let (own, mut quiet) = (set.handle(), set.quiet_handle());
    assert!(set.get(&1).is_some() && own.get(&1).is_some() && set.pin().get(&1).is_some());
    quiet.insert(entry(50, 0));
    own.update_or_insert(|old| entry(51, old.value + 1), entry(51, 0));
    set.compute(&52, |_| Compute::Insert(Box::new(entry(52, 0))));
    set.pin().remove(&52);
    set.reserve(set.len() + 200);
    set.shrink_to_fit();
    assert!(set.iter().count() > 0 && own.iter().count() > 0);
    quiet.flush();
    own.flush();
    set.flush();
}

#[test]
fn closures_use_the_set_by_every_way_in() {
    macro_rules! by {
        ($set:expr, $way:expr) => {{
            let (set, way): (&Set, _) = ($set, $way);
            let ran = AtomicU64::new(0);
            let inside = |old: &Entry| {
                old.look();
                use_the_set(set);
                ran.fetch_add(1, Ordering::Relaxed);
                entry(old.look().0, old.value + 1)
            };
            let before = way.get(&2).unwrap().value;
            assert_eq!(way.update(&2, inside).unwrap().value, before + 1);
            assert_eq!(way.update_or_insert(inside, entry(2, 0)).value, before + 2);
            assert_eq!(way.update_or_insert_with(&2, inside, || entry(2, 0)).value, before + 3);
            // It changes what it was called for: the answer comes too late, and it is asked again.
            let mut asked = 0;
            let after = way.update(&2, |old| {
                asked += 1;
                if asked < 3 {
                    set.insert(entry(2, 100 * asked));
                }
                entry(2, old.look().1 + 1)
            });
            assert_eq!((after.unwrap().value, asked), (201, 3));
            let computed = way.compute(&3, |old| Compute::Insert(Box::new(inside(old.unwrap()))));
            assert_eq!(computed.after.unwrap().value, computed.before.unwrap().value + 1);
            assert!(way.remove_if(&3, |old| inside(old).value == 0).is_err());
            way.remove(&4);
            let made = way.get_or_insert_with(&4, || {
                use_the_set(set);
                set.insert(entry(4, 7));
                entry(4, 8)
            });
            assert_eq!(made.look(), (4, 7), "who came first");
            way.retain(|old| inside(old).key < 50);
            assert!(ran.into_inner() > 10 && way.contains(&9));
        }};
    }
    let set = filled(10);
    by!(&set, &set);
    by!(&set, &set.pin());
    by!(&set, &set.handle());
    by!(&set, &set.quiet_handle());
}

#[test]
fn closures_that_panic_change_nothing() {
    macro_rules! by {
        ($set:expr, $way:expr) => {{
            let (set, way): (&Set, _) = ($set, $way);
            let fails =
                |work: &mut dyn FnMut()| assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
            fails(&mut || ignore(way.update(&1, |_| -> Entry { panic!("of the user") })));
            fails(&mut || {
                ignore(way.update_or_insert(|_| -> Entry { panic!("of the user") }, entry(1, 9)))
            });
            let make = || -> Entry { panic!("of the user") };
            fails(&mut || ignore(way.update_or_insert_with(&77, |_| entry(77, 0), make)));
            fails(&mut || ignore(way.get_or_insert_with(&77, make)));
            fails(&mut || ignore(way.compute(&1, |_| panic!("of the user"))));
            fails(&mut || ignore(way.remove_if(&1, |_| panic!("of the user"))));
            fails(&mut || way.retain(|_| panic!("of the user")));
            fails(&mut || {
                ignore(
                    way.insert_many(
                        (100..).map(
                            |key| if key < 140 { entry(key, 0) } else { panic!("of the user") },
                        ),
                    ),
                )
            });
            way.retain(|entry| entry.key < 100);
            // Items of another key.
            fails(&mut || ignore(way.update(&1, |_| entry(2, 9))));
            fails(&mut || ignore(way.update_or_insert(|_| entry(2, 9), entry(1, 9))));
            fails(&mut || ignore(way.update_or_insert_with(&77, |_| entry(77, 0), || entry(1, 9))));
            fails(&mut || ignore(way.compute(&1, |_| Compute::Insert(Box::new(entry(2, 9))))));
            fails(&mut || ignore(way.get_or_insert_with(&77, || entry(1, 9))));
            let current = way.get(&1).unwrap();
            fails(&mut || ignore(way.compare_exchange(&current, entry(2, 9)).is_ok()));
            assert_eq!(set.len(), 10);
            assert!(set.iter().all(|entry| entry.look().1 == 0));
        }};
    }
    let set = filled(10);
    by!(&set, &set);
    by!(&set, &set.pin());
    by!(&set, &set.handle());
    by!(&set, &set.quiet_handle());
}

/// Has no key, it says, and the same as all others; and loses patience.
struct Contrary(AtomicU64);

impl Item for Contrary {
    type Key = u64;
    fn matches<Q: ?Sized + Equivalent<u64>>(&self, key: &Q) -> bool {
        assert!(self.0.fetch_add(1, Ordering::Relaxed) < 100, "asked for ever");
        key.equivalent(&u64::MAX)
    }
    fn same_key(&self, _: &Self) -> bool {
        true
    }
    fn hash_key<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(1);
    }
}

/// An item that contradicts itself is refused or lost: nobody goes round in circles.
#[test]
fn an_item_that_contradicts_itself_ends_every_operation() {
    let set = ItemSet::<Box<Contrary>>::new();
    let new = || Contrary(AtomicU64::new(0));
    set.insert(new());
    let refused = |work: &mut dyn FnMut()| {
        let panic = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
        let text = panic.downcast_ref::<&str>().copied().unwrap_or("another");
        assert!(text.contains("an item of the key it was called for"), "{text}");
    };
    refused(&mut || ignore(set.update_or_insert_with(&1, |_| new(), new)));
    refused(&mut || ignore(set.compute(&1, |_| Compute::Insert(Box::new(new())))));
    set.update_or_insert(|_| new(), new());
    assert!(set.update(&1, |_| new()).is_none());
    assert!(set.remove_if(&1, |_| true).is_ok_and(|removed| removed.is_none()));
    // It agrees while it is made, and not afterwards.
    let fickle = ItemSet::<Box<Fickle>>::new();
    fickle.insert(Fickle::default());
    fickle.update_or_insert_with(&1, |_| Fickle::default(), Fickle::default);
    fickle.compute(&1, |_| Compute::Insert(Box::default()));
}

/// Is of the key when it is first asked, and never again; but always the same as others.
#[derive(Default)]
struct Fickle(AtomicU64);

impl Item for Fickle {
    type Key = u64;
    fn matches<Q: ?Sized + Equivalent<u64>>(&self, _: &Q) -> bool {
        let asked = self.0.fetch_add(1, Ordering::Relaxed);
        assert!(asked < 100, "asked for ever");
        asked == 0
    }
    fn same_key(&self, _: &Self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }
    fn hash_key<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(1);
    }
}

/// An item is itself only.
#[test]
fn a_foreign_reference_does_not_match() {
    let (set, other) = (filled(2), filled(2));
    let (mine, theirs) = (set.get(&1).unwrap(), other.get(&1).unwrap());
    assert!(set.compare_exchange(&theirs, entry(1, 5)).is_err());
    assert!(other.compare_exchange(&mine, entry(1, 5)).is_err());
    assert!(set.compare_exchange(&entry(1, 0), entry(1, 5)).is_err());
    assert!(set.compare_exchange(&mine, entry(1, 5)).is_ok());
    assert_eq!((set.get(&1).unwrap().value, other.get(&1).unwrap().value), (5, 0));
    // A shared item that was taken out and put back is the one that was seen.
    let shared = ItemSet::<Arc<Entry>>::new();
    let item = Arc::new(entry(1, 1));
    shared.insert(Arc::clone(&item));
    shared.remove(&1);
    shared.insert(Arc::clone(&item));
    assert!(shared.compare_exchange(&item, entry(1, 2)).is_ok());
}

/// References, parts and walks stay, on whatever seat, while others overwrite, remove, grow and
/// flush.
#[test]
fn what_is_lent_is_kept_while_others_write_and_grow() {
    let set = Arc::new(filled(100));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let own = set.owned_handle();
            for round in 1..if cfg!(debug_assertions) { 60 } else { 300 } {
                own.insert_many((0..100).map(|key| entry(key, round)));
                own.insert_many((0..3_000).map(|key| entry(1_000 + key, round)));
                let keys: Vec<u64> = (1_000..4_000).collect();
                assert_eq!(own.remove_many(&keys), 3_000);
                own.flush();
            }
            done.store(true, Ordering::Relaxed);
        });
        let own = set.handle();
        let mut kept: Vec<(Ref<'_, _>, u64)> = Vec::new();
        let mut walk = own.iter();
        while !done.load(Ordering::Relaxed) {
            for key in [1, 50, 99] {
                let lent = [own.get(&key), set.get(&key)].map(Option::unwrap);
                let [first, second] = lent;
                let part: MappedRef<'_, u64> = Ref::map(Ref::clone(&second), |entry| &entry.value);
                assert_eq!(*part, second.look().1);
                let value = first.look().1;
                kept.push((first, value));
            }
            match walk.next() {
                Some(entry) => ignore(entry.look()),
                None => walk = own.iter(),
            }
            kept.iter().for_each(|(lent, value)| assert_eq!(lent.look().1, *value));
            if kept.len() > 60 {
                kept.drain(..50);
            }
        }
    });
}

#[test]
fn what_is_lent_may_be_forgotten() {
    let alive = Arc::new(AtomicI64::new(0));
    let set = Arc::new(Set::new());
    (0..10).for_each(|key| drop(set.insert(entry(key, 0).counted(&alive))));
    let own = set.owned_handle();
    forget((own.get(&1), own.iter(), own.pin(), set.get(&1), set.iter(), own.drain()));
    assert!(own.remove(&1).is_some() && own.insert(entry(1, 1).counted(&alive)).is_none());
    own.flush();
    drop(own);
    drop(set);
    assert_eq!(alive.load(Ordering::Relaxed), 0, "freed with the set");
}

#[test]
fn a_set_is_a_collection() {
    let set: ItemSet<Box<(String, u64)>> = [("a".to_string(), 1), ("b".to_string(), 2)].into();
    let mut copy = set.clone();
    assert_eq!(copy, set);
    copy.extend([("b".to_string(), 3)]);
    assert_ne!(copy, set);
    (&copy).extend([Box::new(("b".to_string(), 2))]);
    assert_eq!(copy, set);
    set.handle().extend([("c".to_string(), 3)]);
    let mut sum = 0;
    for entry in &set {
        sum += entry.1;
    }
    for entry in &set.pin() {
        sum += entry.1;
    }
    for entry in &set.handle() {
        sum += entry.1;
    }
    assert_eq!(sum, 18);
    let mut all: Vec<_> = set.into_iter().map(|entry| *entry).collect();
    all.sort();
    assert_eq!(all, [("a".to_string(), 1), ("b".to_string(), 2), ("c".to_string(), 3)]);
    // Shared ones are shared, by copies too.
    let item = Arc::new(("a", 1));
    let shared = ItemSet::from([Arc::clone(&item)]);
    let kept = [shared.get_arc("a"), shared.handle().get_arc("a")];
    let copy = shared.clone();
    assert_eq!(Arc::strong_count(&item), 5);
    assert!(Arc::ptr_eq(&Ref::as_arc(&copy.get("a").unwrap()), &item));
    drop((kept, shared, copy));
    assert_eq!(Arc::strong_count(&item), 1);
    let empty = ItemSet::<Box<u8>>::default();
    assert!(empty.into_iter().next().is_none());
}

#[test]
fn keys_of_the_usual_types_need_no_implementation() {
    let words = ItemSet::<Box<String>>::new();
    words.insert("x".to_string());
    assert!(words.contains("x") && words.contains(&"x".to_string()));
    let ages = ItemSet::<Box<(String, u64)>>::from([("x".to_string(), 7)]);
    assert_eq!(ages.get("x").unwrap().1, 7);
    let mut there = [false; 2];
    ages.contains_many(["x", "y"], &mut there);
    assert_eq!(there, [true, false]);
    assert!(ItemSet::<Box<&str>>::from(["x"]).contains("x"));
    assert!(ItemSet::<Arc<Arc<str>>>::from([Arc::<str>::from("x")]).contains("x"));
    assert!(ItemSet::<Box<Box<str>>>::from([Box::<str>::from("x")]).contains("x"));
    assert!(ItemSet::<Box<Vec<u8>>>::from([vec![1u8, 2]]).contains(&[1u8, 2][..]));
    assert!(ItemSet::<Box<i128>>::from([-1]).contains(&-1));
    assert!(ItemSet::<Box<(char, bool)>>::from([('x', true)]).get(&'x').unwrap().1);
    assert!(ItemSet::<Box<bool>>::from([true]).contains(&true));
}

#[test]
fn a_set_is_set_up() {
    let builder = ItemSet::<Box<u64>>::builder().capacity(9).ordered(true).shards(2);
    let set = builder.clone().build();
    assert!(set.insert(7).is_none() && set.contains(&7) && set.capacity() >= 9);
    assert_eq!(builder.seed(1).try_build().unwrap().iter().count(), 0);
    let hasher = std::hash::RandomState::new();
    let set = ItemSet::<Box<u64>, _>::with_hasher(hasher.clone());
    assert!(set.insert(7).is_none());
    assert_eq!(set, ItemSet::from([7u64]));
    assert!(ItemSet::<Box<u64>, _>::with_capacity_and_hasher(100, hasher).capacity() >= 100);
}

/// What is printed are contents and counts.
#[test]
fn everything_can_be_printed() {
    let set = ItemSet::<Box<String>>::from(["x".to_string()]);
    let (own, mut quiet) = (set.handle(), set.quiet_handle());
    assert_eq!(format!("{:?} {}", set.get("x"), set.get("x").unwrap()), "Some(\"x\") x");
    assert_eq!(format!("{:?}", Ref::map(set.get("x").unwrap(), |x| x.as_str())), "\"x\"");
    assert_eq!(format!("{:?}", own.insert_new("x".to_string()).unwrap_err().current), "\"x\"");
    let texts = [
        format!("{set:?}{:?}{own:?}{quiet:?}{:?}", set.pin(), set.fallible()),
        format!("{:?}{:?}{:?}{:?}", set.iter(), set.pin().iter(), set.drain(), set.pin().drain()),
        format!("{:?}{:?}", quiet.offline(), ItemSet::<Box<String>>::builder()),
        format!("{:?}", set.into_iter()),
    ];
    assert!(texts.iter().all(|text| !text.contains("0x")), "{texts:#?}");
}
