//! `ItemSet`: safe code breaks nothing. Stories of user code that uses sets from inside an operation, and of hashes that no set has made.
//! Run under AddressSanitizer too; without it, an item knows when it is used after its drop.

use quintet::ItemSet;
use quintet::item_set::{Entrance, Handle, Item};
use std::cell::RefCell;
use std::hash::{BuildHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

const ALIVE: u64 = 0x5eed_a11e_0f1d_ea5e;

thread_local! {
    /// What the next `matches` does.
    static INSIDE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Runs `inside` from within the next `matches`.
fn in_the_next_match(inside: impl FnOnce() + 'static) {
    INSIDE.with_borrow_mut(|slot| *slot = Some(Box::new(inside)));
}

/// An item that calls user code when it is compared, and notices when it is used after its drop.
struct Record {
    key: u64,
    value: u64,
    padding: [u64; 4],
    alive: AtomicU64,
}

impl Record {
    fn new(key: u64, value: u64) -> Self {
        Self { key, value, padding: [0; 4], alive: AtomicU64::new(ALIVE) }
    }

    fn assert_alive(&self) {
        assert_eq!(self.alive.load(Ordering::Relaxed), ALIVE, "an item is used after its drop");
        assert_eq!(self.padding, [0; 4]);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.assert_alive();
        self.alive.store(0, Ordering::Relaxed);
    }
}

impl Item for Record {
    type Key = u64;

    fn matches(&self, key: &u64) -> bool {
        self.assert_alive();
        if let Some(inside) = INSIDE.with_borrow_mut(Option::take) {
            inside();
        }
        self.key == *key
    }
    fn same_key(&self, other: &Self) -> bool {
        other.assert_alive();
        self.matches(&other.key)
    }
    fn hash_key<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

/// Gives every key the same hash: every item is compared with every key.
#[derive(Clone, Copy, Default)]
struct Same;

impl Hasher for Same {
    fn finish(&self) -> u64 {
        7
    }
    fn write(&mut self, _bytes: &[u8]) {}
}

impl BuildHasher for Same {
    type Hasher = Self;
    fn build_hasher(&self) -> Self {
        Self
    }
}

type Set<S = Same> = ItemSet<Box<Record>, S>;

/// A set in the middle of a migration, and the key of an item that is in its old table only.
fn migrating() -> (&'static Set, u64) {
    let set: &'static Set = Box::leak(Box::new(ItemSet::builder().hasher(Same).build()));
    let handle = set.handle();
    let mut key = 0;
    while set.stats().migrating.is_none() {
        handle.put(Record::new(key, 0));
        key += 1;
    }
    handle.put(Record::new(key, 0));
    // What was put before the migration began and lies behind the others is moved last.
    (set, key - 2)
}

/// Inside of a lookup: the item is replaced in both tables, the old table leaves the set, and the item is freed. The old table still has a link to
/// it, and is where the lookup goes on. A read of the same seat announces the present era.
fn replaced_in_the_old_table(set: &'static Set, victim: u64, read: impl FnOnce()) {
    let mut handle = set.handle();
    handle.put(Record::new(0, 1));
    handle.flush();
    handle.put(Record::new(victim, 1));
    assert!(handle.iter().next().is_some(), "the migration is over");
    assert_eq!(handle.remove(&victim).map(|item| item.value), Some(1));
    handle.flush();
    assert!(handle.get(&victim).is_none());
    handle.flush();
    read();
}

fn lookup_beside<E: Entrance>(handle: &'static Handle<'static, Box<Record>, Same, E>, victim: u64) {
    let set = handle.set();
    in_the_next_match(move || {
        replaced_in_the_old_table(set, victim, move || assert!(handle.get(&0).is_some()));
    });
    if let Some(item) = handle.get(&victim) {
        item.assert_alive();
    }
    assert!(INSIDE.with_borrow(Option::is_none), "the story was told");
}

#[test]
fn a_read_inside_matches_does_not_vouch_for_the_old_table_of_a_handle() {
    let (set, victim) = migrating();
    lookup_beside(Box::leak(Box::new(set.handle())), victim);
}

#[test]
fn a_read_inside_matches_does_not_vouch_for_the_old_table_of_a_guard() {
    let (set, victim) = migrating();
    lookup_beside(Box::leak(Box::new(set.pin())), victim);
}

/// Hashes that no set has made: their tags may be that of no place, or of the places that a line does not have.
#[test]
fn a_foreign_hash_finds_nothing_and_breaks_nothing() {
    let set = ItemSet::<Box<Record>>::new();
    let handle = set.handle();
    (0..1_000).for_each(|key| assert!(handle.put(Record::new(key, 0)).is_none()));
    let hashes = (0..64).map(|bits| bits << 16).chain([1, u32::MAX, u32::MAX - 1, 0x8000]);
    for hash in hashes {
        // Debug builds say that the hash is another key's.
        let quietly = |work: &mut dyn FnMut()| {
            let ended = catch_unwind(AssertUnwindSafe(work));
            assert!(ended.is_ok() || cfg!(debug_assertions));
        };
        quietly(&mut || handle.prefetch(hash));
        quietly(&mut || {
            if let Some(item) = handle.get_hashed(hash, &5) {
                assert_eq!(item.key, 5);
            }
        });
        for item in [None, Some(Record::new(5, 1))] {
            let mut item = item.map(Box::new);
            quietly(&mut || {
                if let Some(before) = handle.put_hashed(hash, &5, item.take()) {
                    assert_eq!(before.key, 5);
                }
            });
        }
    }
    handle.iter().for_each(Record::assert_alive);
    handle.clear();
    handle.put(Record::new(1, 1));
    assert_eq!(handle.get(&1).map(|item| item.value), Some(1));
}
