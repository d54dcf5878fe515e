//! `ItemSet`: user code at each place where a set calls it, doing each thing that it can do there.
//!
//! Each combination ends: with an answer, or with a panic that gives advice. Afterwards the set is
//! whole, no item is lost, dropped twice or used after its drop.

use quintet::ItemSet;
use quintet::access::Hold;
use quintet::item_set::{Equivalent, Inside, Item};
use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};

/// Where a set calls user code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    HashOfKey,
    HashOfItem,
    Matches,
    SameKey,
    DropOf,
    Make,
    Keep,
}
use Place::*;

type Set = ItemSet<Box<Record>>;
type Deed = fn(&Arc<Set>);

thread_local! {
    /// What happens at which place, the next time.
    static PLAN: RefCell<Option<(Place, Deed, Arc<Set>)>> = const { RefCell::new(None) };
    static DONE: Cell<bool> = const { Cell::new(false) };
}

fn come_by(place: Place) {
    let due = PLAN.with_borrow_mut(|plan| plan.take_if(|(at, ..)| *at == place));
    if let Some((_, deed, set)) = due {
        DONE.set(true);
        deed(&set);
    }
}

static ALIVE: AtomicIsize = AtomicIsize::new(0);
const WHOLE: u64 = 0x0f1d_ea5e_5eed_a11e;

#[derive(PartialEq, Eq)]
struct Key(u64);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        come_by(HashOfKey);
        self.0.hash(state);
    }
}

struct Record {
    key: u64,
    whole: AtomicU64,
}

impl Record {
    fn new(key: u64) -> Self {
        ALIVE.fetch_add(1, Ordering::Relaxed);
        Self { key, whole: AtomicU64::new(WHOLE) }
    }

    fn assert_whole(&self) {
        assert_eq!(self.whole.load(Ordering::Relaxed), WHOLE, "used after its drop");
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        assert_eq!(self.whole.swap(0, Ordering::Relaxed), WHOLE, "dropped twice");
        ALIVE.fetch_sub(1, Ordering::Relaxed);
        come_by(DropOf);
    }
}

impl Item for Record {
    type Key = Key;

    fn matches<Q: ?Sized + Equivalent<Key>>(&self, key: &Q) -> bool {
        self.assert_whole();
        come_by(Matches);
        self.assert_whole();
        key.equivalent(&Key(self.key))
    }
    fn same_key(&self, other: &Self) -> bool {
        self.assert_whole();
        come_by(SameKey);
        self.assert_whole();
        other.assert_whole();
        self.key == other.key
    }
    fn hash_key<H: Hasher>(&self, state: &mut H) {
        come_by(HashOfItem);
        self.key.hash(state);
    }
}

const KEYS: u64 = 100;

fn read(set: &Arc<Set>) {
    let pin = set.pin();
    (0..KEYS).filter_map(|key| pin.get(&Key(key))).for_each(Record::assert_whole);
    set.quiet_handle().get(&Key(1)).into_iter().for_each(Record::assert_whole);
}

fn write(set: &Arc<Set>) {
    set.pin().insert(Record::new(1));
    set.quiet_handle().insert(Record::new(2));
    set.pin().remove(&Key(3));
    set.pin().insert(Record::new(3));
}

fn iterate(set: &Arc<Set>) {
    set.pin().iter().for_each(Record::assert_whole);
    set.pin().iter_exact().for_each(Record::assert_whole);
}

fn grow(set: &Arc<Set>) {
    let mut handle = set.quiet_handle();
    handle.reserve(10_000);
    for key in 1_000..2_000 {
        handle.insert(Record::new(key));
    }
    handle.retain(|item| item.key < KEYS);
    handle.shrink_to_fit();
    handle.flush();
}

fn drop_an_owner(set: &Arc<Set>) {
    drop(Arc::clone(set));
    // Another set, whole: the last of its owners.
    let other = Set::new();
    if catch_unwind(AssertUnwindSafe(|| other.pin().insert(Record::new(1)).is_none())).is_ok() {
        other.pin().clear();
    }
}

fn come_and_go(set: &Arc<Set>) {
    let mut handle = set.quiet_handle();
    drop(handle.offline());
    handle.quiescent();
    std::mem::forget(set.pin());
    drop(handle);
    set.flush();
}

fn panic(_: &Arc<Set>) {
    panic!("of the user");
}

const DEEDS: [(&str, Deed); 7] = [
    ("read", read),
    ("write", write),
    ("iterate", iterate),
    ("grow", grow),
    ("drop an owner", drop_an_owner),
    ("come and go", come_and_go),
    ("panic", panic),
];

/// Operations that come by all places, by a handle and by a guard.
fn operate(set: &Set) {
    fn each<S: BuildHasher, A: Hold, H: Deref<Target = ItemSet<Box<Record>, S>>>(
        handle: &Inside<A, H>,
    ) {
        assert!(handle.get(&Key(1)).is_some());
        handle.insert(Record::new(1));
        let _ = handle.insert_new(Record::new(1));
        let _ = handle.replace(Record::new(1));
        drop(handle.insert_owned(Record::new(4)));
        drop(handle.remove_owned(&Key(4)));
        handle.insert(Record::new(4));
        handle.remove(&Key(5));
        handle.get_or_insert_with(&Key(5), || {
            come_by(Make);
            Record::new(5)
        });
        handle.retain(|item| {
            item.assert_whole();
            come_by(Keep);
            item.assert_whole();
            true
        });
        let mut found = [None; 4];
        handle.get_many(&[Key(1), Key(2), Key(3), Key(KEYS)], &mut found);
        found.into_iter().flatten().for_each(Record::assert_whole);
    }
    let mut handle = set.quiet_handle();
    each(&handle);
    handle.flush();
    each(&set.pin());
    handle.flush();
    set.flush();
}

/// One combination, from inside the operation that comes by first. Says whether its place was come
/// by.
fn happens(place: Place, name: &str, deed: Deed) -> bool {
    let set = Arc::new(Set::new());
    (0..KEYS).for_each(|key| assert!(set.pin().insert(Record::new(key)).is_none()));
    DONE.set(false);
    PLAN.with_borrow_mut(|plan| *plan = Some((place, deed, Arc::clone(&set))));
    let ended = catch_unwind(AssertUnwindSafe(|| operate(&set)));
    PLAN.with_borrow_mut(Option::take);
    if let Err(payload) = ended {
        let text = payload.downcast_ref::<&str>().copied().unwrap_or("no text");
        assert!(
            text == "of the user" || text.contains("read only there"),
            "{name} in {place:?}: {text}"
        );
    }
    // Whole, and not locked.
    operate(&set);
    for key in (0..KEYS).filter(|key| *key > 5) {
        assert!(set.pin().get(&Key(key)).is_some(), "{name} in {place:?}: {key} is lost");
    }
    assert_eq!(set.pin().iter_exact().count(), set.len(), "{name} in {place:?}");
    DONE.get()
}

#[test]
fn user_code_does_anything_anywhere() {
    for place in [HashOfKey, HashOfItem, Matches, SameKey, DropOf, Make, Keep] {
        for (name, deed) in DEEDS {
            assert!(happens(place, name, deed), "{name}: nobody comes by {place:?}");
            assert_eq!(ALIVE.load(Ordering::Relaxed), 0, "{name} in {place:?}: items left or lost");
        }
    }
}
