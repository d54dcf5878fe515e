//! `ItemSet`: safe code breaks nothing. Stories of user code that uses sets from inside an
//! operation, and of hashes that no set has made. Run under AddressSanitizer too; without it, an
//! item knows when it is used after its drop.

use quintet::ItemSet;
use quintet::access::Hold;
use quintet::item_set::{Equivalent, Inside, Item, Keyed};
use std::cell::RefCell;
use std::hash::{BuildHasher, Hash, Hasher};
use std::mem::forget;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

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

    fn matches<Q: ?Sized + Equivalent<u64>>(&self, key: &Q) -> bool {
        self.assert_alive();
        // Gone with the other locals of a thread that ends.
        if let Ok(Some(inside)) = INSIDE.try_with(|slot| slot.borrow_mut().take()) {
            inside();
        }
        key.equivalent(&self.key)
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
    let handle = set.quiet_handle();
    let mut key = 0;
    while set.stats().migrating.is_none() {
        handle.insert(Record::new(key, 0));
        key += 1;
    }
    handle.insert(Record::new(key, 0));
    // What was put before the migration began and lies behind the others is moved last.
    (set, key - 2)
}

/// Inside of a lookup: the item is replaced in both tables, the old table leaves the set, and the
/// item is freed. The old table still has a link to it, and is where the lookup goes on. A read of
/// the same seat announces the present era.
fn replaced_in_the_old_table(set: &'static Set, victim: u64, read: impl FnOnce()) {
    let mut handle = set.quiet_handle();
    handle.insert(Record::new(0, 1));
    handle.flush();
    handle.insert(Record::new(victim, 1));
    assert!(handle.iter().next().is_some(), "the migration is over");
    assert_eq!(handle.remove(&victim).map(|item| item.value), Some(1));
    handle.flush();
    assert!(handle.get(&victim).is_none());
    handle.flush();
    read();
}

fn lookup_beside<A: Hold, H: Deref<Target = ItemSet<Box<Record>, Same>>>(
    handle: &'static Inside<A, H>,
    victim: u64,
) {
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
    lookup_beside(Box::leak(Box::new(set.quiet_handle())), victim);
}

#[test]
fn a_read_inside_matches_does_not_vouch_for_the_old_table_of_a_guard() {
    let (set, victim) = migrating();
    lookup_beside(Box::leak(Box::new(set.pin())), victim);
}

/// Hashes that no set has made: their tags may be that of no place, or of the places that a line
/// does not have.
#[test]
fn a_foreign_hash_finds_nothing_and_breaks_nothing() {
    let set = ItemSet::<Box<Record>>::new();
    let handle = set.quiet_handle();
    (0..1_000).for_each(|key| assert!(handle.insert(Record::new(key, 0)).is_none()));
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
    handle.insert(Record::new(1, 1));
    assert_eq!(handle.get(&1).map(|item| item.value), Some(1));
}

/// An item that calls itself the same, or another one, against the truth, now and then.
struct Liar {
    key: u64,
    lies: Arc<AtomicU64>,
}

impl Liar {
    /// The next of a row of numbers that look like chance.
    fn draw(row: &AtomicU64) -> u64 {
        let next = row.load(Ordering::Relaxed).wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        row.store(next, Ordering::Relaxed);
        next >> 33
    }
}

impl Item for Liar {
    type Key = u64;

    fn matches<Q: ?Sized + Equivalent<u64>>(&self, key: &Q) -> bool {
        (key.equivalent(&self.key)) != (Self::draw(&self.lies) % 30 == 0)
    }
    fn same_key(&self, other: &Self) -> bool {
        self.matches(&other.key)
    }
    fn hash_key<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

/// An item that lies in both tables of a migration, and that `same_key` found in the old one only,
/// was retired and stayed in the new one.
#[test]
fn an_item_that_lies_is_dropped_once() {
    for seed in 1..100 {
        let row = Arc::new(AtomicU64::new(seed));
        let set = ItemSet::<Arc<Liar>>::builder().shards(1).hasher(Same).build();
        let mut kept = Vec::new();
        for _ in 0..1_000 {
            let key = Liar::draw(&row) % 100;
            match Liar::draw(&row) % 8 {
                0 => drop(set.pin().remove_owned(&key)),
                1 => set.pin().reserve(Liar::draw(&row) as usize % 500),
                2 => set.pin().shrink_to_fit(),
                3 if key < 10 => set.pin().retain(|item| item.key % 2 == 0),
                _ => {
                    let item = Arc::new(Liar { key, lies: Arc::clone(&row) });
                    kept.push([Arc::clone(&item), Arc::clone(&item)]);
                    set.pin().insert(item);
                }
            }
        }
        drop(set);
        let counts = kept.iter().map(|[item, _]| Arc::strong_count(item));
        assert!(counts.clone().all(|count| count == 2), "dropped twice, or never");
    }
}

type Plain = ItemSet<Box<Record>>;

/// Replaces, grows, shrinks and frees.
fn churn(set: &Plain) {
    let mut handle = set.quiet_handle();
    for key in 0..2_000 {
        handle.insert(Record::new(key, 1));
    }
    handle.retain(|item| item.key < 10);
    handle.shrink_to_fit();
    handle.flush();
}

/// Forgotten handles, guards, iterators, rests and removed items hold memory back at worst.
#[test]
fn what_is_forgotten_holds_memory_back_at_worst() {
    let set = Plain::new();
    let mut handle = set.quiet_handle();
    handle.insert(Record::new(1, 1));
    forget(handle.remove_owned(&1));
    forget(handle.offline());
    forget(set.pin());
    forget(set.quiet_handle());
    churn(&set);
    assert_eq!(handle.get(&1).map(|item| item.value), Some(1));
    handle.quiescent();
    assert_eq!(set.pin().get(&1).map(|item| item.value), Some(1));
    drop(handle);
    churn(&set);
    assert_eq!(set.len(), 10);
}

/// A thread that ends with a forgotten guard, while the set goes.
#[test]
fn a_thread_that_forgot_a_guard_ends_while_the_set_goes() {
    for turn in 0..200 {
        let set = Arc::new(Plain::new());
        set.pin().insert(Record::new(1, 1));
        let shared = Arc::clone(&set);
        let gone = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&gone);
        let thread = std::thread::spawn(move || {
            forget(shared.pin());
            shared.pin().insert(Record::new(1, turn));
            // Its seat is given up when its locals go, which is after this.
            drop(shared);
            ended.store(true, Ordering::Release);
        });
        while !gone.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
        drop(set);
        thread.join().unwrap();
    }
}

thread_local! {
    static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
}

/// Works on a set when its thread's locals go.
struct Late(Arc<Plain>);

impl Drop for Late {
    fn drop(&mut self) {
        self.0.pin().insert(Record::new(2, 2));
        forget(self.0.pin());
        churn(&self.0);
        let own = self.0.owned_handle();
        let lent = [own.get(&2), self.0.get(&2)];
        forget(self.0.get(&2));
        assert_eq!(own.update(&2, |old| Record::new(2, old.value)).map(|new| new.value), Some(1));
        lent.iter().flatten().for_each(|item| item.assert_alive());
        assert_eq!((self.0.pin().iter().count(), self.0.iter().count()), (10, 10));
    }
}

#[test]
fn a_set_is_used_while_the_locals_of_a_thread_go() {
    for first in [true, false] {
        let set = Arc::new(Plain::new());
        let shared = Arc::clone(&set);
        let set_up = move || {
            // Locals go in the order opposite to that of their first use.
            if first {
                shared.pin().insert(Record::new(1, 1));
            }
            LATE.set(Some(Late(Arc::clone(&shared))));
            shared.pin().insert(Record::new(1, 1));
        };
        std::thread::spawn(set_up).join().unwrap();
        assert_eq!(set.pin().get(&2).map(|item| item.value), Some(1));
    }
}

#[test]
fn extremes_of_capacity_are_errors() {
    for capacity in [usize::MAX, isize::MAX as usize, usize::MAX / 32, 1 << 48] {
        assert!(Plain::builder().capacity(capacity).try_build().is_err());
        let set = Plain::new();
        assert!(set.quiet_handle().try_reserve(capacity).is_err());
        set.pin().insert(Record::new(1, 1));
        assert!(set.pin().try_reserve(capacity).is_err());
        assert!(set.pin().get(&1).is_some());
    }
    for (capacity, shards) in [(0, 0), (1, 1), (1, usize::MAX), (0, 3)] {
        let set = Plain::builder().capacity(capacity).shards(shards).build();
        set.pin().insert(Record::new(u64::MAX, 1));
        set.pin().shrink_to_fit();
        assert!(set.pin().get(&u64::MAX).is_some());
    }
}

/// An item without bytes: all of them lie at one address, and all have one key.
#[derive(Debug)]
struct Nothing;

static NOTHINGS: AtomicUsize = AtomicUsize::new(0);

impl Drop for Nothing {
    fn drop(&mut self) {
        NOTHINGS.fetch_add(1, Ordering::Relaxed);
    }
}

impl Keyed for Nothing {
    type Key = ();
    fn key(&self) -> &() {
        &()
    }
}

#[test]
fn items_without_a_size_are_dropped_once_each() {
    let set = ItemSet::<Box<Nothing>>::new();
    let mut handle = set.quiet_handle();
    assert!(handle.insert(Nothing).is_none() && handle.insert(Nothing).is_some());
    assert!(handle.insert_new(Nothing).is_err() && handle.remove(&()).is_some());
    assert!(handle.remove(&()).is_none());
    handle.insert(Nothing);
    assert_eq!(handle.iter().count(), 1);
    handle.flush();
    drop(handle);
    drop(set);
    assert_eq!(NOTHINGS.load(Ordering::Relaxed), 4);
}

/// Items that lie at multiples of a page.
#[repr(align(4096))]
struct Page(u64);

impl Keyed for Page {
    type Key = u64;
    fn key(&self) -> &u64 {
        &self.0
    }
}

#[test]
fn items_of_large_alignment_lie_where_they_must() {
    let boxed = ItemSet::<Box<Page>>::new();
    let shared = ItemSet::<Arc<Page>>::new();
    for key in 0..100 {
        boxed.pin().insert(Page(key));
        shared.pin().insert(Page(key));
    }
    let (boxed, shared) = (boxed.pin(), shared.pin());
    for page in boxed.iter().chain(shared.iter()) {
        assert_eq!((&raw const *page).addr() % 4096, 0);
    }
    assert_eq!(boxed.remove(&5).map(|page| page.0), Some(5));
    assert_eq!(shared.get_arc(&5).map(|page| Arc::strong_count(&page)), Some(1));
}

/// In a child of a process its own tables work on.
#[test]
#[cfg(unix)]
fn a_forked_child_uses_the_set() {
    let set = Plain::new();
    churn(&set);
    let handle = set.quiet_handle();
    // SAFETY: the child works on this set, which no other thread knows, and leaves without
    // unwinding or running destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let worked = catch_unwind(AssertUnwindSafe(|| {
            churn(&set);
            handle.insert(Record::new(100, 1));
            set.pin().get(&5).is_some() && handle.iter().count() == 11
        }));
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!worked.unwrap_or(false))) };
    }
    let mut status = -1;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child failed");
    assert!(set.pin().get(&100).is_none(), "the parent's own");
}
