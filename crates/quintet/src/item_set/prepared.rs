//! The time between two tables: a successor that is there and not used yet, and items that
//! misbehave.

use super::plan::Plan;
use super::table::{DROPPED, Table};
use super::tests::{Record, record};
use super::*;
use crate::region::Pages;
use crate::sync::AtomicUsize;
use crate::sync::Ordering::Relaxed;

type Set = ItemSet<Box<Record>>;

fn is_prepared(set: &Set) -> bool {
    set.pin().visit(|visit| {
        let pair = set.core.pair(visit).ok().flatten();
        pair.is_some_and(|pair| !pair.new.next().seems_empty())
    })
}

fn check(set: &Set, items: u64) {
    let pin = set.pin();
    let found = (0..items).filter(|key| pin.get(key).is_some_and(|item| item.value == key + 1));
    assert_eq!(found.count() as u64, items);
    assert_eq!(set.len() as u64, items);
}

/// The new table is used when each of its pages has been touched, one step by each write, and not
/// before.
#[test]
fn a_successor_is_used_when_its_pages_are_there() {
    let set = Set::builder().pages(Pages::Small).capacity(60_000).build();
    let mut items = 0;
    let mut put = |set: &Set| {
        assert!(set.pin().insert(record(items, items + 1)).is_none());
        items += 1;
        assert!(items < 500_000, "it never came to that");
        items
    };
    while !is_prepared(&set) {
        put(&set);
    }
    assert!(set.stats().migrating.is_none(), "writes go on in the table that is filling up");
    let plan = Plan {
        bits: capacity_bits(&set) + 1,
        shard_bits: 5,
        small: false,
        load_factor: 0.7,
        pages: Pages::Small,
        birth: 0,
        ordered: false,
    };
    let alike = Table::try_new(plan, super::shard::LONE.locks(false), None).unwrap();
    let steps = std::iter::repeat_with(|| alike.touch_ahead()).take_while(|more| *more).count();
    assert!(steps > 16, "{steps}");
    let mut writes = 0;
    while set.stats().migrating.is_none() {
        let items = put(&set);
        writes += 1;
        if writes % 16 == 1 {
            check(&set, items);
        }
    }
    // The writer that prepared it has made the first step.
    assert_eq!(writes, steps, "one step by each write");
    while set.stats().migrating.is_some() {
        put(&set);
    }
    let items = put(&set);
    check(&set, items);
    assert_eq!(set.stats().waited, 0);
}

fn capacity_bits(set: &Set) -> u32 {
    set.stats().places.ilog2()
}

/// A table that is full moves on at once, whatever is not touched yet.
#[test]
fn a_full_table_does_not_wait_for_pages() {
    let set = Set::builder().pages(Pages::Small).capacity(1_000).build();
    (0..1_000).for_each(|key| assert!(set.pin().insert(record(key, key + 1)).is_none()));
    set.pin().visit(|visit| {
        set.core.prepare_for_test(visit, 18);
        assert!(set.stats().table_bytes > 1 << 20, "what is prepared is counted");
        set.core.start_for_test(visit, 12);
    });
    assert_eq!(capacity_bits(&set), 18, "the one that was prepared is taken");
    assert!(set.stats().migrating.is_some());
    check(&set, 1_000);
    set.pin().shrink_to_fit();
    check(&set, 1_000);
}

/// A successor belongs to its table until the root has moved on, and to nobody but the set from
/// then on.
#[test]
fn a_successor_is_dropped_once() {
    let dropped = |work: &dyn Fn()| {
        let before = DROPPED.get();
        work();
        DROPPED.get() - before
    };
    let filled = || {
        let set = Set::new();
        (0..100).for_each(|key| assert!(set.pin().insert(record(key, key)).is_none()));
        set.pin().visit(|visit| set.core.settle(visit).map(drop).unwrap());
        set.pin().shrink_to_fit();
        set.flush();
        set
    };
    let set = filled();
    assert_eq!(dropped(&|| set.pin().visit(|visit| set.core.prepare_for_test(visit, 9))), 0);
    assert_eq!(dropped(&|| set.pin().visit(|visit| assert_eq!(second(&set, visit), Ok(false)))), 1);
    let set = std::cell::Cell::new(Some(set));
    assert_eq!(dropped(&|| drop(set.take())), 2, "prepared, not used");
    let set = filled();
    set.pin().visit(|visit| set.core.start_for_test(visit, 9));
    let set = std::cell::Cell::new(Some(set));
    assert_eq!(dropped(&|| drop(set.take())), 2, "in use");
}

/// Tries to prepare a second successor.
fn second(set: &Set, visit: &crate::reclaim::Visit<'_>) -> Result<bool, AllocError> {
    let table = set.core.settle(visit)?.unwrap();
    Ok(table
        .next()
        .set_once(Table::try_new(*table.plan(), super::shard::LONE.locks(false), None)?)
        .is_ok())
}

/// Panics when it is dropped, every other time.
struct Bomb {
    key: u64,
}

static BOMBS: AtomicUsize = AtomicUsize::new(0);

impl Keyed for Bomb {
    type Key = u64;
    fn key(&self) -> &u64 {
        &self.key
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        if BOMBS.fetch_add(1, Relaxed) % 2 == 0 && !std::thread::panicking() {
            panic!("a bomb");
        }
    }
}

/// Every item is dropped once, and the set goes on, whatever their drops do.
#[test]
fn drops_that_panic_lose_nothing() {
    const KEYS: u64 = 2_000;
    let set = ItemSet::<Box<Bomb>>::new();
    let mut panics = 0;
    for turn in 0..5 * KEYS {
        let mut handle = set.quiet_handle();
        let put = catch_unwind(AssertUnwindSafe(|| {
            handle.insert(Bomb { key: turn % KEYS });
            handle.quiescent();
            if turn % 500 == 0 {
                handle.flush();
            }
        }));
        panics += usize::from(put.is_err());
        panics += usize::from(catch_unwind(AssertUnwindSafe(|| drop(handle))).is_err());
    }
    assert!(panics > 0);
    assert_eq!(set.len() as u64, KEYS);
    assert!((0..KEYS).all(|key| set.pin().get(&key).is_some()));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(set))).is_err(), "told once more");
    assert_eq!(BOMBS.load(Relaxed) as u64, 5 * KEYS, "each item is dropped once");
}

/// Says that it has every key.
struct Liar {
    key: u64,
}

impl Item for Liar {
    type Key = u64;
    fn matches<Q: ?Sized + Equivalent<u64>>(&self, _: &Q) -> bool {
        true
    }
    fn same_key(&self, other: &Self) -> bool {
        self.key == other.key
    }
    fn hash_key<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.key);
    }
}

/// Keys become the stored hash that they contain.
#[derive(Clone, Default)]
struct Chosen(u64);

impl Hasher for Chosen {
    fn finish(&self) -> u64 {
        // The inverse of the factor in `fold`.
        const INVERSE: u64 = 0xf1de_83e1_9937_733d;
        (self.0 << 32).wrapping_mul(INVERSE)
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are words");
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

impl BuildHasher for Chosen {
    type Hasher = Self;
    fn build_hasher(&self) -> Self {
        self.clone()
    }
}

/// An item of one shard may lie in a line of the next. Whoever asks there with another hash of the
/// same tag must not change it under the wrong lock, whatever the item says about its key: its own
/// shard might be changing it too.
#[test]
fn an_item_that_lies_about_its_key_is_not_changed_under_a_foreign_lock() {
    let set = ItemSet::<Box<Liar>>::builder().shards(2).hasher(Chosen(0)).build();
    // Seven in the last line of the first shard: one is displaced into the second.
    let keys: Vec<u64> = (0..7).map(|number| 0x7fff_0001 + 2 * number).collect();
    keys.iter().for_each(|&key| assert!(set.pin().insert(Liar { key }).is_none()));
    assert_eq!(u64::from(set.hash_of(&keys[0])), keys[0]);
    let foreign = 0x8000_0000 | keys[6] & 0xffff;
    assert!(set.pin().get(&foreign).is_some(), "the liar is met");
    assert!(set.pin().remove(&foreign).is_none());
    assert_eq!(set.len(), 7);
}
