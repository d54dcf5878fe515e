//! One test for each known hole of this kind of set: what once went wrong, or would.

use super::core::Stop;
use super::plan::Plan;
use super::table::Table;
use super::tests::{Record, record};
use super::word::Birth;
use super::*;
use crate::region::Pages;
use crate::sync::six::{LANE_BITS, LANES};
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::mpsc;

type Set = ItemSet<Arc<Record>>;

/// A set of `items` in which a migration to `2^bits` places has begun and nothing is copied yet.
fn migrating(items: u64, bits: u32) -> Set {
    let set = Set::builder().shards(4).build();
    let pin = set.pin();
    (0..items).for_each(|key| assert!(pin.insert(record(key, 0)).is_none()));
    pin.visit(|visit| {
        set.core.settle(visit).unwrap();
        set.core.start_for_test(visit, bits);
    });
    drop(pin);
    assert!(set.stats().migrating.is_some());
    set
}

fn value(set: &Set, key: u64) -> Option<u64> {
    set.pin().get(&key).map(|record| record.value)
}

/// Hole 1: which table does a reader ask, and what if they differ? New first, and they never differ
/// about what both have.
#[test]
fn reads_between_two_tables_are_those_of_one_set() {
    let set = migrating(40, 8);
    let pin = set.pin();
    for key in 0..40 {
        assert_eq!(value(&set, key), Some(0), "not copied yet");
        assert_eq!(pin.insert(record(key, 1)).map(|old| old.value), Some(0));
        assert_eq!(value(&set, key), Some(1));
        assert_eq!(pin.remove(&key).map(|old| old.value), Some(1));
        assert_eq!(value(&set, key), None, "a stale copy shows through");
        assert!(pin.insert(record(key, 2)).is_none());
        assert_eq!(value(&set, key), Some(2));
    }
}

/// Holes 2 and 3 need another thread in the middle: `loom_a_removed_item_is_not_resurrected`,
/// `loom_a_late_insert_is_not_lost`. Here, what the copier does when it comes after the end:
/// nothing.
#[test]
fn a_copier_that_comes_after_the_end_copies_nothing() {
    let set = migrating(40, 8);
    let pin = set.pin();
    pin.visit(|visit| {
        let super::core::Pair { new, old } = set.core.pair(visit).unwrap().unwrap();
        let old = old.unwrap();
        set.core.settle(visit).unwrap();
        (0..40).for_each(|key| assert!(set.pin().remove(&key).is_some()));
        for chunk in 0..old.chunks() {
            let late = set.core.migrate_chunk(new, old, chunk);
            assert!(matches!(late, Err(super::core::Stop::Restart)));
        }
    });
    assert!((0..40).all(|key| value(&set, key).is_none()) && pin.iter().next().is_none());
}

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// Counts the calls of its user code.
struct Counting(u64);

impl Item for Counting {
    type Key = u64;
    fn matches<Q: ?Sized + Equivalent<u64>>(&self, key: &Q) -> bool {
        CALLS.set(CALLS.get() + 1);
        key.equivalent(&self.0)
    }
    fn same_key(&self, other: &Self) -> bool {
        CALLS.set(CALLS.get() + 1);
        self.0 == other.0
    }
    fn hash_key<H: Hasher>(&self, state: &mut H) {
        CALLS.set(CALLS.get() + 1);
        state.write_u64(self.0);
    }
}

/// Hole 4: migration asked the items for their hashes; a panic there lost a slot for ever.
#[test]
fn migration_runs_no_user_code() {
    let set = ItemSet::<Box<Counting>>::with_capacity(1_000);
    let pin = set.pin();
    (0..1_000).for_each(|key| assert!(pin.insert(Counting(key)).is_none()));
    let before = CALLS.get();
    assert!(before >= 1_000);
    pin.reserve(100_000);
    pin.shrink_to_fit();
    assert_eq!((CALLS.get(), set.stats().migrations), (before, 2));
    assert!((0..1_000).all(|key| pin.contains(&key)));
}

/// Hole 5: a cursor past the end was taken for completion, while chunks were still in somebody's
/// hands.
#[test]
fn chunks_in_sleeping_hands_are_done_by_others() {
    let set = migrating(40, 8);
    let pin = set.pin();
    let dealt = pin.visit(|visit| {
        let pair = set.core.pair(visit).unwrap().unwrap();
        // Movers that take everything and fall asleep.
        let chunks = pair.new.work().progress().1;
        (0..chunks).for_each(|_| assert!(!pair.new.work().claim().unwrap().again));
        pair.new.work().progress()
    });
    assert_eq!(dealt.0, dealt.1, "the cursor is past the end");
    assert!(set.stats().migrating.is_some(), "which is not completion");
    (0..40).for_each(|key| assert!(pin.insert(record(key + 100, 1)).is_none()));
    assert!(set.stats().migrating.is_none() && set.stats().chunks_again > 0);
    assert!((0..40).all(|key| value(&set, key) == Some(0)));
}

/// Hole 6: emptied slots serve only their own hash, so that churn at constant size filled the
/// table.
#[test]
fn churn_of_distinct_keys_keeps_the_table_small() {
    let set = ItemSet::<Box<Record>>::new();
    let mut handle = set.quiet_handle();
    let turns = if cfg!(debug_assertions) { 1_000_000 } else { 10_000_000 };
    for turn in 0..turns {
        assert!(handle.insert(record(turn, turn)).is_none());
        if let Some(old) = turn.checked_sub(1_000) {
            assert!(handle.remove(&old).is_some());
        }
        if turn % 64 == 0 {
            handle.quiescent();
        }
    }
    let stats = set.stats();
    assert_eq!(stats.len, 1_000);
    assert!(stats.capacity <= 8_000, "{stats:?}");
    assert!(set.memory_bytes() < 512 << 10, "{stats:?}");
}

/// Hole 7: the new table may be full before the old one is done. Here it is far too small from the
/// beginning.
#[test]
fn a_new_table_that_is_too_small_is_replaced_and_loses_nothing() {
    let set = Set::builder().shards(4).build();
    let pin = set.pin();
    (0..5_000).for_each(|key| assert!(pin.insert(record(key, 0)).is_none()));
    pin.visit(|visit| {
        set.core.settle(visit).unwrap();
        set.core.start_for_test(visit, 6);
    });
    (5_000..5_100).for_each(|key| assert!(pin.insert(record(key, 0)).is_none()));
    assert_eq!(set.stats().rebuilt, 1, "{:?}", set.stats());
    assert!((0..5_100).all(|key| value(&set, key) == Some(0)));
    assert_eq!(pin.iter_exact().count(), 5_100);
}

fn tiny_plan(bits: u32) -> Plan {
    Plan {
        bits,
        shard_bits: 0,
        small: false,
        load_factor: 0.7,
        pages: Pages::Small,
        birth: 1,
        ordered: bits % 2 == 0,
    }
}

/// A table of no set.
fn lone(bits: u32) -> Result<Box<Table>, AllocError> {
    Table::try_new(tiny_plan(bits), super::shard::LONE.locks(true), None)
}

/// Hole 8: failed allocations ran the slot counter past 32 bits, and there is an end to 32-bit
/// slots.
#[test]
fn asking_a_full_table_changes_nothing_and_sizes_have_an_end() {
    // With slots, and without.
    for bits in [6, 7] {
        let shards = super::shard::Shard::row(1);
        let table = lone(bits).unwrap();
        let item = ptr::without_provenance_mut(8);
        let put = |hash: u32| {
            let sought = table.seek(hash, || true, |_| false).unwrap();
            table.place(&shards[0], hash, &sought, item, Birth::of(1), true).is_ok()
        };
        let placed = (1..10_000u32).filter(|step| put(step.wrapping_mul(0x9e37_79b9) | 1)).count();
        assert_eq!((placed, table.used()), (table.capacity(), table.capacity()));
        assert!(table.is_full());
    }
    let refused = lone(33);
    assert_eq!(refused.err(), Some(AllocError::CapacityOverflow));
    let refused = Set::builder().capacity(1 << 33).try_build();
    assert_eq!(refused.err(), Some(AllocError::CapacityOverflow));
}

/// What is displaced into the range of another shard is dealt out as all else, or the table would
/// be filled to the last (`table` T4); and waits for that shard's lock, or lets go where the ring
/// comes round (`shard` L3).
#[test]
fn a_place_abroad_is_paid_for_and_needs_the_lock_of_its_owner() {
    const SHARD_BITS: u32 = 2;
    let shards = super::shard::Shards::new(SHARD_BITS);
    let plan = Plan { shard_bits: SHARD_BITS, small: false, ..tiny_plan(LANE_BITS + SHARD_BITS) };
    let table = Table::try_new(plan, shards.locks(false), None).unwrap();
    let item = ptr::without_provenance_mut(8);
    // All of them are at home in the last line.
    let add = |step: usize| {
        let hash = u32::MAX - 2 * step as u32;
        let sought = table.seek(hash, || true, |_| false).unwrap();
        table.place(table.shard(hash), hash, &sought, item, Birth::of(1), false)
    };
    assert!((0..LANES).all(|step| add(step).is_ok()));
    let used = table.used();
    let owner = shards.row()[0].lock();
    assert!(matches!(add(LANES), Err(Stop::Restart)));
    assert_eq!(table.used(), used, "nothing has happened");
    drop(owner);
    let more = (LANES..1_000).filter(|step| add(*step).is_ok()).count();
    assert_eq!((LANES + more, table.used()), (table.capacity(), table.capacity()));
}

/// A shard is a contiguous range of lines, whatever the size: so its chunks are copied under its
/// lock alone.
#[test]
fn a_shard_is_a_range_of_homes() {
    for hash in [1, 0x1234_5678, 0x8000_0000, u32::MAX] {
        let table = lone(10).unwrap();
        assert_eq!(table.home(hash) >> (10 - LANE_BITS - 4), super::word::shard_of(hash, 4));
        assert_eq!(lone(LANE_BITS).unwrap().home(hash), 0);
    }
}

/// Two hashes may have one tag. An emptied place is filled again by its own hash alone: the copy of
/// a table goes by the hash of the place.
#[test]
fn a_place_is_filled_again_by_its_own_hash_alone() {
    let table = lone(6).unwrap();
    let shards = super::shard::Shard::row(1);
    let (first, second) = (0x0001_2345, 0x0002_2345);
    let item = ptr::without_provenance_mut::<()>(64);
    let put = |hash| {
        let sought = table.seek(hash, || true, |_| false).unwrap();
        table.place(&shards[0], hash, &sought, item, Birth::of(1), true).unwrap();
        table.seek(hash, || true, |_| true).unwrap().place.unwrap()
    };
    let place = put(first);
    assert!(
        table.seek(second, || true, |_| true).unwrap().place.is_none(),
        "an item of another hash is not shown"
    );
    assert!(table.change(place, item, ptr::null_mut(), Birth::of(1)).is_some());
    let other = put(second);
    assert_ne!(place, other);
    assert_eq!((table.hash_at(place), table.hash_at(other)), (first, second));
    assert_eq!(put(first), place, "its own hash may");
}

/// Hole 9: both tables hand back the replaced item; it must be retired once. And an absent key must
/// not go into the old table, not even into an emptied slot of its hash.
#[test]
fn what_both_tables_replace_is_dropped_once() {
    let kept: Vec<_> = (0..40).map(|key| Arc::new(record(key, 0))).collect();
    let set = Set::builder().shards(4).build();
    let mut handle = set.quiet_handle();
    kept.iter().for_each(|item| assert!(handle.insert(Arc::clone(item)).is_none()));
    handle.visit(|visit| {
        set.core.settle(visit).unwrap();
        set.core.start_for_test(visit, 9);
    });
    for item in &kept {
        assert_eq!(handle.insert(record(item.key, 1)).map(|old| old.value), Some(0));
        handle.remove(&item.key);
        assert!(handle.insert(record(item.key, 2)).is_none());
    }
    handle.flush();
    assert!(kept.iter().all(|item| Arc::strong_count(item) == 1), "dropped twice, or never");
    assert_eq!(handle.iter_exact().filter(|item| item.value == 2).count(), 40);
}

/// Does what it is told to while it is compared.
struct Busybody {
    key: u64,
    act: Option<fn(&ItemSet<Box<Busybody>>)>,
    set: Option<&'static ItemSet<Box<Busybody>>>,
}

impl Item for Busybody {
    type Key = u64;
    fn matches<Q: ?Sized + Equivalent<u64>>(&self, key: &Q) -> bool {
        if let (Some(act), Some(set)) = (self.act, self.set) {
            act(set);
        }
        key.equivalent(&self.key)
    }
    fn same_key(&self, other: &Self) -> bool {
        self.matches(&other.key)
    }
    fn hash_key<H: Hasher>(&self, state: &mut H) {
        std::hash::Hash::hash(&self.key, state);
    }
}

fn busybody(key: u64) -> Busybody {
    Busybody { key, act: None, set: None }
}

/// Runs a removal during which `act` is called under the lock; says how it ended.
fn removal_during(act: fn(&ItemSet<Box<Busybody>>)) -> std::thread::Result<bool> {
    let set: &'static ItemSet<Box<Busybody>> = Box::leak(Box::new(ItemSet::new()));
    set.pin().insert(Busybody { key: 1, act: Some(act), set: Some(set) });
    set.pin().insert(busybody(2));
    let ended = catch_unwind(|| set.pin().remove(&1).is_some());
    // Intact and unlocked, whatever happened.
    assert_eq!(set.len(), if ended.is_ok() { 1 } else { 2 });
    assert!(set.pin().get(&2).is_some());
    assert!(set.pin().insert(busybody(2)).is_some());
    ended
}

fn message(ended: std::thread::Result<bool>) -> String {
    let panic = ended.expect_err("a write from inside must not go through");
    panic.downcast_ref::<&str>().map(ToString::to_string).expect("a text")
}

/// Hole 10: user code under a lock that panics, or uses the set.
#[test]
fn user_code_under_a_lock_may_read_and_panic_and_never_deadlocks() {
    assert!(removal_during(|set| assert!(set.pin().get(&2).is_some())).unwrap(), "reads go on");
    assert!(removal_during(|_| panic!("of the user")).is_err());
    let writes: [fn(&ItemSet<Box<Busybody>>); 6] = [
        |set| assert!(set.pin().insert(busybody(1)).is_some()),
        |set| assert!(set.pin().remove(&2).is_some()),
        |set| set.pin().reserve(1_000),
        |set| set.pin().shrink_to_fit(),
        |set| set.pin().clear(),
        |set| assert!(set.pin().iter().next().is_some()),
    ];
    for write in writes {
        let text = message(removal_during(write));
        assert!(text.contains("read only there"), "no advice: {text}");
    }
    // After the panics this thread is not marked any more.
    assert!(removal_during(|_| {}).unwrap());
}

/// Two sets that write to one another from inside `same_key` would wait crosswise, each for a lock
/// that the other's thread holds.
#[test]
fn two_sets_that_write_crosswise_do_not_deadlock() {
    let text = message(removal_during(|_| {
        let other = ItemSet::<Box<Record>>::new();
        other.pin().insert(record(1, 1));
    }));
    assert!(text.contains("read only there"), "no advice: {text}");
}

/// Hole 11: locks next to each other on one cache line.
#[test]
fn locks_do_not_share_a_line() {
    let shards = super::shard::Shard::row(2);
    let distance = (&raw const shards[1]).addr() - (&raw const shards[0]).addr();
    assert!(distance >= 128);
}

/// Hole 12: iteration during a migration saw items twice.
#[test]
fn iteration_during_a_migration_sees_each_item_once() {
    let set = migrating(40, 8);
    let mut keys: Vec<_> = set.pin().iter_exact().map(|item| item.key).collect();
    keys.sort_unstable();
    assert_eq!(keys, (0..40).collect::<Vec<_>>());
}

/// A thread that sleeps inside holds back what it may refer to, and not what comes after it.
#[test]
fn a_sleeping_reader_holds_back_a_bounded_backlog() {
    const KEYS: u64 = 1_000;
    let overwrites = 1_000_000;
    let set = ItemSet::<Box<Record>>::new();
    let mut handle = set.quiet_handle();
    (0..KEYS).for_each(|key| assert!(handle.insert(record(key, 0)).is_none()));
    let (woken, sleep) = mpsc::channel();
    let (asleep, wait) = mpsc::channel();
    std::thread::scope(|scope| {
        let set = &set;
        scope.spawn(move || {
            let pin = set.pin();
            let found = pin.get(&7).map(|item| item.value);
            asleep.send(found).unwrap();
            sleep.recv().unwrap();
            assert_eq!(pin.get(&7).map(|item| item.value), Some(overwrites));
        });
        assert_eq!(wait.recv().unwrap(), Some(0));
        let mut worst = 0;
        for turn in 1..=overwrites {
            let key = if turn == overwrites { 7 } else { turn % KEYS };
            assert!(handle.insert(record(key, turn)).is_some());
            if turn % 64 == 0 {
                handle.quiescent();
                worst = set.stats().backlog_items.max(worst);
            }
        }
        println!(
            "{overwrites} overwrites beside a sleeping reader: at most {worst} items held back"
        );
        let bound = KEYS as usize + 4 * crate::reclaim::BATCH;
        assert!(worst <= bound, "{worst} items held back, at most {bound} are justified");
        woken.send(()).unwrap();
    });
    handle.flush();
    assert!(set.stats().backlog_items <= crate::reclaim::BATCH);
}

/// A set that shrank looked for the size of what was there at its beginning. What other threads put
/// meanwhile did not fit, the set was rebuilt into a larger table, and shrank again: for ever, and
/// without giving back one of those tables.
#[test]
fn shrinking_beside_puts_ends() {
    for _ in 0..2_000 {
        let set = Set::builder().shards(1).build();
        set.pin().reserve(200);
        let start = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                set.pin().shrink_to_fit();
            });
            start.wait();
            (0..60).for_each(|key| assert!(set.pin().insert(record(key, key)).is_none()));
        });
        assert!((0..60).all(|key| value(&set, key) == Some(key)) && set.len() == 60);
    }
}
