//! The pair of tables under loom: every order of steps that the memory model allows, up to two
//! preemptions.
//!
//! Tables are as small as they get: one or two lines of two places, one chunk, one shard unless a
//! test says otherwise. A key is its own hash. The test keeps a count of every item, so that one
//! that was freed too early is seen and never touched.

mod change;
mod small;

use super::*;
use crate::sync::{Arc as Shared, thread};
use std::sync::Arc;

pub(super) const LOW: u32 = 0x11;
const HIGH: u32 = 1 << 31 | 0x22;

#[derive(Debug)]
pub(super) struct Record {
    pub(super) key: u32,
    pub(super) value: u32,
}

impl Keyed for Record {
    type Key = u32;
    fn key(&self) -> &u32 {
        &self.key
    }
}

/// The key is its hash.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plain(u64);

impl Hasher for Plain {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are written as words");
    }
    fn write_u32(&mut self, word: u32) {
        self.0 = word.into();
    }
}

impl BuildHasher for Plain {
    type Hasher = Self;
    fn build_hasher(&self) -> Self {
        *self
    }
}

pub(super) type Set = ItemSet<Arc<Record>, Plain>;
pub(super) type Access = QuietHandle<'static, Arc<Record>, Plain>;

/// A set and one's own handle, made before the threads start.
pub(super) struct Member {
    pub(super) handle: Access,
    /// Dropped after the handle.
    set: Shared<Set>,
}

impl Member {
    fn of(set: &Shared<Set>) -> Self {
        let set = Shared::clone(set);
        // SAFETY: the handle is dropped before its own reference to the set.
        let lasting: &'static Set = unsafe { &*(&raw const *set) };
        Self { handle: lasting.quiet_handle(), set }
    }

    pub(super) fn insert(&self, key: u32, value: u32) -> Option<u32> {
        self.insert_kept(&record(key, value))
    }

    fn insert_kept(&self, record: &Arc<Record>) -> Option<u32> {
        self.handle.insert(Arc::clone(record)).map(|record| record.value)
    }

    pub(super) fn get(&self, key: u32) -> Option<u32> {
        self.handle.get(&key).map(|record| record.value)
    }

    pub(super) fn remove(&self, key: u32) -> Option<u32> {
        self.handle.remove(&key).map(|record| record.value)
    }

    /// Migrates to a table of `2^bits` places, to the end.
    pub(super) fn resize(&self, bits: u32) {
        let core = &self.set.core;
        self.handle.visit(|visit| core.resize(visit, bits, |now, bits| now != bits)).unwrap();
    }

    pub(super) fn spawn<R: 'static>(
        self,
        work: impl FnOnce(&mut Self) -> R + 'static,
    ) -> thread::JoinHandle<R> {
        let mut member = self;
        thread::spawn(move || work(&mut member))
    }
}

pub(super) fn record(key: u32, value: u32) -> Arc<Record> {
    Arc::new(Record { key, value })
}

pub(super) fn model(check: impl Fn() + Sync + Send + 'static) {
    crate::sync::model(2, check);
}

fn sharded(shards: usize) -> Shared<Set> {
    Shared::new(ItemSetBuilder::default().shards(shards).hasher(Plain::default()).build())
}

/// A set with one item, of value 10, in a table of four places: it fits into one of two.
pub(super) fn set_of(key: u32) -> (Shared<Set>, Member, Member) {
    let set = sharded(1);
    let (ours, theirs) = (Member::of(&set), Member::of(&set));
    ours.resize(2);
    assert_eq!(ours.insert(key, 10), None);
    // From here on both remember the table, and change it at once where they can.
    assert_eq!((ours.get(key), theirs.get(key)), (Some(10), Some(10)));
    (set, ours, theirs)
}

/// An empty set with a table of `2^bits` places, and two members. If they are `acquainted` with it,
/// they add to it at once.
fn empty_set(shards: usize, bits: u32, acquainted: bool) -> (Shared<Set>, Member, Member) {
    let builder = ItemSetBuilder::default().shards(shards).max_load(0.8);
    let set = Shared::new(builder.hasher(Plain::default()).build());
    let (ours, theirs) = (Member::of(&set), Member::of(&set));
    ours.resize(bits);
    if acquainted {
        assert_eq!((ours.get(LOW), theirs.get(LOW)), (None, None));
    }
    (set, ours, theirs)
}

/// A model of members that know the table, and one of such that do not.
fn model_both(check: fn(bool)) {
    for acquainted in [false, true] {
        model(move || check(acquainted));
    }
}

#[test]
fn loom_two_puts_of_one_key_see_each_other_once() {
    model_both(|acquainted| {
        let (set, ours, theirs) = empty_set(1, 2, acquainted);
        let other = theirs.spawn(|theirs| theirs.insert(LOW, 1));
        let mine = ours.insert(LOW, 2);
        let theirs = other.join().unwrap();
        let left = ours.get(LOW);
        assert!(matches!(
            (mine, theirs, left),
            (None, Some(2), Some(1)) | (Some(1), None, Some(2))
        ));
        assert_eq!(set.len(), 1);
    });
}

/// The same where the shard has credit, so that each may add at once to the home line: the second
/// must see the first's tag under the lock.
#[test]
fn loom_two_additions_to_one_home_see_each_other_once() {
    model(|| {
        let (set, ours, theirs) = empty_set(1, 3, true);
        assert_eq!(ours.insert(HIGH, 7), None);
        let other = theirs.spawn(|theirs| theirs.insert(LOW, 1));
        let mine = ours.insert(LOW, 2);
        let theirs = other.join().unwrap();
        assert!(matches!(
            (mine, theirs, ours.get(LOW)),
            (None, Some(2), Some(1)) | (Some(1), None, Some(2))
        ));
        assert_eq!((set.len(), ours.get(HIGH)), (2, Some(7)));
    });
}

/// Both find the item before they have the lock; the second must see the first's item under it, or
/// one is retired twice.
#[test]
fn loom_two_replacements_see_each_other_once() {
    model(|| {
        let (set, ours, theirs) = set_of(LOW);
        let other = theirs.spawn(|theirs| theirs.insert(LOW, 1));
        let mine = ours.insert(LOW, 2);
        let theirs = other.join().unwrap();
        assert!(matches!(
            (mine, theirs, ours.get(LOW)),
            (Some(10), Some(2), Some(1)) | (Some(1), Some(10), Some(2))
        ));
        assert_eq!(set.len(), 1);
    });
}

/// An item whose content the model sees.
struct Seen {
    key: u32,
    content: crate::sync::AtomicU32,
}

impl Keyed for Seen {
    type Key = u32;
    fn key(&self) -> &u32 {
        &self.key
    }
}

/// Whoever finds an item finds what was written into it before it was put: a new one, and one that
/// replaces another.
#[test]
fn loom_an_item_comes_with_its_content() {
    use crate::sync::{AtomicU32, Ordering::Relaxed};
    for replaces in [false, true] {
        model(move || {
            let builder = ItemSetBuilder::<Box<Seen>>::default().shards(1);
            let set = Shared::new(builder.hasher(Plain::default()).capacity(1).build());
            let put = |content| {
                // Entered first: there is a fence in it.
                let pin = set.pin();
                let item = Seen { key: LOW, content: AtomicU32::new(0) };
                item.content.store(content, Relaxed);
                pin.insert(item);
            };
            if replaces {
                put(1);
            }
            let reader = Shared::clone(&set);
            let reader = thread::spawn(move || {
                let pin = reader.pin();
                pin.get(&LOW).map(|item| item.content.load(Relaxed))
            });
            put(2);
            let found = reader.join().unwrap();
            assert!(found == Some(2) || found == replaces.then_some(1), "{found:?}");
        });
    }
}

/// Two shards put into one line: the lock of its owner decides (`table` T3).
#[test]
fn loom_two_shards_meet_in_one_line() {
    model_both(|acquainted| {
        let (_set, ours, theirs) = empty_set(2, 3, acquainted);
        // Fill the last line of the lower shard: its next item spills over into the first line of
        // the upper one.
        assert_eq!(ours.insert(0x7000_0000, 1), None);
        assert_eq!(ours.insert(0x7000_0001, 2), None);
        let other = theirs.spawn(|theirs| theirs.insert(0x8000_0000, 4));
        assert_eq!(ours.insert(0x7000_0002, 3), None);
        assert_eq!(other.join().unwrap(), None);
        let keys = [0x7000_0000, 0x7000_0001, 0x7000_0002, 0x8000_0000];
        assert_eq!(keys.map(|key| ours.get(key)), [Some(1), Some(2), Some(3), Some(4)]);
    });
}

/// The same where the ring comes round: the lock of the owner is tried, with the own one held, and
/// both come to an end.
#[test]
fn loom_two_shards_meet_where_the_ring_comes_round() {
    model_both(|acquainted| {
        let (_set, ours, theirs) = empty_set(2, 3, acquainted);
        assert_eq!(ours.insert(0xf000_0000, 1), None);
        assert_eq!(ours.insert(0xf000_0001, 2), None);
        let other = theirs.spawn(|theirs| theirs.insert(LOW, 4));
        assert_eq!(ours.insert(0xf000_0003, 3), None);
        assert_eq!(other.join().unwrap(), None);
        let keys = [0xf000_0000, 0xf000_0001, 0xf000_0003, LOW];
        assert_eq!(keys.map(|key| ours.get(key)), [Some(1), Some(2), Some(3), Some(4)]);
    });
}

/// The same where the upper shard has credit, so that it adds to its home at once; or does not, if
/// the other has come first.
#[test]
fn loom_an_item_at_home_and_one_displaced_meet_in_one_line() {
    model(|| {
        let (_set, ours, theirs) = empty_set(2, 4, true);
        assert_eq!(ours.insert(0xf000_0000, 5), None);
        assert_eq!(ours.insert(0x7000_0000, 1), None);
        assert_eq!(ours.insert(0x7000_0001, 2), None);
        let other = theirs.spawn(|theirs| theirs.insert(0x8000_0000, 4));
        assert_eq!(ours.insert(0x7000_0002, 3), None);
        assert_eq!(other.join().unwrap(), None);
        let keys = [0x7000_0000, 0x7000_0001, 0x7000_0002, 0x8000_0000, 0xf000_0000];
        assert_eq!(keys.map(|key| ours.get(key)), [1, 2, 3, 4, 5].map(Some));
    });
}

#[test]
fn loom_a_replacement_survives_the_copy() {
    model(|| {
        let (_set, ours, theirs) = set_of(LOW);
        let other = theirs.spawn(|theirs| theirs.insert(LOW, 11));
        ours.resize(1);
        assert!(matches!(ours.get(LOW), Some(10 | 11)));
        assert_eq!(other.join().unwrap(), Some(10));
        assert_eq!(ours.get(LOW), Some(11));
    });
}

/// The copier must not bring back what was removed after it had read the slot.
#[test]
fn loom_a_removed_item_is_not_resurrected() {
    model(|| {
        let (set, ours, theirs) = set_of(LOW);
        let other = theirs.spawn(|theirs| theirs.remove(LOW));
        ours.resize(1);
        assert_eq!(other.join().unwrap(), Some(10));
        assert_eq!(ours.get(LOW), None);
        assert_eq!(set.len(), 0);
    });
}

/// A put that began before the new table was published must not end in the old one alone.
#[test]
fn loom_a_late_insert_is_not_lost() {
    model_both(|acquainted| {
        let (_set, ours, theirs) = empty_set(1, 1, acquainted);
        let other = theirs.spawn(|theirs| theirs.insert(HIGH, 7));
        ours.resize(2);
        assert_eq!(other.join().unwrap(), None);
        assert_eq!(ours.get(HIGH), Some(7));
    });
}

/// Nobody who reads an item sees it freed, whatever the writer does meanwhile.
#[test]
fn loom_a_reader_holds_what_it_found_while_the_set_moves_on() {
    model(|| {
        let set = sharded(1);
        let (mut ours, theirs) = (Member::of(&set), Member::of(&set));
        let (first, second) = (record(LOW, 10), record(LOW, 11));
        ours.resize(2);
        ours.insert_kept(&first);
        let (one, two) = (Arc::clone(&first), Arc::clone(&second));
        let other = theirs.spawn(move |theirs| {
            let found = theirs.handle.get(&LOW).expect("present throughout");
            let held = if found.value == 10 { &one } else { &two };
            // The test's two counts, and the set's, which must not be gone.
            assert_eq!(Arc::strong_count(held), 3, "freed under its reader");
        });
        ours.resize(1);
        ours.insert_kept(&second);
        ours.handle.quiescent();
        ours.handle.quiescent();
        other.join().unwrap();
    });
}

/// Many lookups check once for all, and hold what they found all the same: also an item that was
/// born in an era they had not announced.
#[test]
fn loom_many_lookups_hold_what_they_found() {
    model(|| {
        let set = sharded(1);
        let (mut ours, theirs) = (Member::of(&set), Member::of(&set));
        let items = [10, 11, 12, 13].map(|value| record(LOW, value));
        ours.resize(2);
        ours.insert_kept(&items[0]);
        assert_eq!((ours.get(LOW), theirs.get(LOW)), (Some(10), Some(10)));
        let kept = items.clone();
        let other = theirs.spawn(move |theirs| {
            let mut found = [None];
            theirs.handle.get_many(&[LOW], &mut found);
            let value = found[0].expect("present throughout").value;
            // The test's two counts, and the set's, which must not be gone.
            let held = &kept[value as usize - 10];
            assert_eq!(Arc::strong_count(held), 3, "freed under its reader");
        });
        for item in &items[1..] {
            ours.insert_kept(item);
            ours.handle.flush();
        }
        other.join().unwrap();
    });
}

/// The same between two tables: what is there throughout is found.
#[test]
fn loom_many_lookups_during_migration_never_miss() {
    model(|| {
        let (_set, ours, theirs) = set_of(LOW);
        let other = theirs.spawn(|theirs| {
            let mut found = [None; 3];
            theirs.handle.get_many(&[HIGH, LOW, LOW], &mut found);
            found.map(|item| item.map(|item| item.value))
        });
        ours.resize(1);
        assert_eq!(ours.insert(LOW, 11), Some(10));
        assert!(matches!(other.join().unwrap(), [None, Some(10 | 11), Some(10 | 11)]));
    });
}

/// A helper that falls asleep with a chunk in its hands while the set grows twice must not copy
/// what is old by then.
#[test]
fn loom_a_copier_asleep_across_two_growths_changes_nothing() {
    model(|| {
        let (set, ours, theirs) = set_of(LOW);
        ours.handle.visit(|visit| set.core.start_for_test(visit, 1));
        let other = theirs.spawn(|theirs| {
            theirs.handle.visit(|visit| theirs.set.core.help(visit)).unwrap();
        });
        ours.resize(1);
        assert_eq!(ours.remove(LOW), Some(10));
        ours.resize(2);
        assert_eq!(ours.get(LOW), None);
        other.join().unwrap();
        assert_eq!(ours.get(LOW), None, "a sleeping copier has brought it back");
    });
}

/// A set with one item, of value 10, in a table of sixteen places that is being migrated: four
/// chunks, of which each write does one.
fn migrating_with(key: u32) -> (Shared<Set>, Member, Member) {
    let set = sharded(1);
    let (ours, theirs) = (Member::of(&set), Member::of(&set));
    ours.resize(4);
    assert_eq!(ours.insert(key, 10), None);
    ours.handle.visit(|visit| set.core.start_for_test(visit, 3));
    (set, ours, theirs)
}

/// A copier that falls asleep with a chunk in its hands, and wakes when the old table is no longer
/// linked, must not copy: what was removed since was removed from the new table alone.
#[test]
fn loom_a_copier_asleep_beyond_the_end_brings_nothing_back() {
    model(|| {
        let (set, ours, theirs) = set_of(LOW);
        ours.handle.visit(|visit| set.core.start_for_test(visit, 1));
        let other = theirs.spawn(|theirs| {
            theirs.handle.visit(|visit| theirs.set.core.help(visit)).unwrap();
        });
        ours.handle.visit(|visit| set.core.settle(visit).unwrap().is_some());
        assert_eq!(ours.remove(LOW), Some(10));
        other.join().unwrap();
        assert_eq!(ours.get(LOW), None, "a sleeping copier has brought it back");
    });
}

/// A copier reads a place under the lock: what it read before may have been removed from the old
/// table, where alone it was.
#[test]
fn loom_a_copier_reads_under_the_lock() {
    model(|| {
        let (set, ours, theirs) = migrating_with(LOW);
        let other = theirs.spawn(|theirs| {
            theirs.handle.visit(|visit| theirs.set.core.help(visit)).unwrap();
        });
        assert_eq!(ours.remove(LOW), Some(10));
        other.join().unwrap();
        assert_eq!(ours.get(LOW), None, "copied after it was removed");
        assert_eq!(set.len(), 0);
    });
}

/// A put whose shard is copied already must not go to the old table, however early it began.
#[test]
fn loom_an_insert_after_its_shard_was_copied_goes_to_the_new_table() {
    model_both(|acquainted| {
        let (set, ours, theirs) = empty_set(1, 4, acquainted);
        let other = theirs.spawn(|theirs| theirs.insert(LOW, 7));
        ours.handle.visit(|visit| set.core.start_for_test(visit, 3));
        ours.handle.visit(|visit| set.core.help(visit)).unwrap();
        assert_eq!(other.join().unwrap(), None);
        ours.handle.visit(|visit| set.core.settle(visit).unwrap().is_some());
        assert_eq!(ours.get(LOW), Some(7), "put into a table that was copied already");
    });
}

/// A writer that falls asleep with a view of the first table must not write past the third.
#[test]
fn loom_a_third_table_waits_for_the_second() {
    model(|| {
        let (_set, ours, theirs) = set_of(LOW);
        let other = theirs.spawn(|theirs| theirs.insert(LOW, 11));
        ours.resize(1);
        ours.resize(2);
        assert_eq!(other.join().unwrap(), Some(10));
        assert_eq!(ours.get(LOW), Some(11));
    });
}

/// A reader between the two tables finds what is there throughout.
#[test]
fn loom_a_reader_during_migration_never_misses() {
    model(|| {
        let (_set, ours, theirs) = set_of(LOW);
        let other = theirs.spawn(|theirs| theirs.get(LOW));
        ours.resize(1);
        assert_eq!(ours.insert(LOW, 11), Some(10));
        assert!(matches!(other.join().unwrap(), Some(10 | 11)));
    });
}

/// The rebuild under all locks against a reader on its way from the new table to the old one.
#[test]
fn loom_a_reader_during_a_rebuild_never_misses() {
    model(|| {
        let (set, ours, theirs) = set_of(LOW);
        ours.handle.visit(|visit| set.core.start_for_test(visit, 1));
        let other = theirs.spawn(|theirs| theirs.get(LOW));
        ours.handle.visit(|visit| set.core.rebuild(visit)).unwrap();
        assert_eq!(other.join().unwrap(), Some(10));
        assert_eq!(ours.get(LOW), Some(10));
    });
}
