//! Small tables, which are left at once (`grow` G10).

use super::*;

/// A set whose tables may be small, with one item, of value 10, in a table of two lines.
fn small_set(shards: usize, key: u32) -> (Shared<Set>, Member, Member) {
    let builder = ItemSetBuilder::default().shards(shards).max_load(0.8);
    let mut set = builder.hasher(Plain::default()).build();
    set.core.settings.small = true;
    let set = Shared::new(set);
    let (ours, theirs) = (Member::of(&set), Member::of(&set));
    ours.resize(2);
    assert_eq!(ours.insert(key, 10), None);
    assert_eq!(set.stats().places, 4);
    assert_eq!((ours.get(key), theirs.get(key)), (Some(10), Some(10)));
    (set, ours, theirs)
}

/// From one shard to four, and from one to the same one: a replacement is not made in the table
/// that was left alone.
#[test]
fn loom_a_put_is_not_lost_in_a_small_table_that_is_left() {
    for shards in [4, 8] {
        model(move || {
            let (set, ours, theirs) = small_set(shards, LOW);
            let other = theirs.spawn(|theirs| theirs.insert(LOW, 11));
            ours.resize(3);
            assert_eq!(other.join().unwrap(), Some(10));
            assert_eq!((ours.get(LOW), set.len()), (Some(11), 1));
        });
    }
}

#[test]
fn loom_a_removed_item_does_not_come_back_with_the_next_table() {
    for shards in [4, 8] {
        model(move || {
            let (set, ours, theirs) = small_set(shards, LOW);
            let other = theirs.spawn(|theirs| theirs.remove(LOW));
            ours.resize(3);
            assert_eq!(other.join().unwrap(), Some(10));
            assert_eq!((ours.get(LOW), set.len()), (None, 0));
        });
    }
}

/// Whoever comes second finds the table filled, and leaves it.
#[test]
fn loom_two_additions_leave_a_small_table() {
    model(|| {
        let (set, ours, theirs) = small_set(4, LOW);
        let other = theirs.spawn(|theirs| theirs.insert(HIGH, 11));
        assert_eq!(ours.insert(HIGH | 4, 12), None);
        assert_eq!(other.join().unwrap(), None);
        let found = [LOW, HIGH, HIGH | 4].map(|key| ours.get(key));
        assert_eq!((found, set.len()), ([Some(10), Some(11), Some(12)], 3));
    });
}

/// Who waits for the lock of the table that is left has locked nothing in the next one (`shard`
/// L6), where others write by now.
#[test]
fn loom_the_lock_of_a_small_table_is_none_of_the_next() {
    model(|| {
        let (set, ours, _) = small_set(4, LOW);
        // One that does not know the table takes its lock from the beginning.
        let other = Member::of(&set).spawn(|theirs| theirs.insert(HIGH, 11));
        ours.resize(3);
        let before = ours.insert(HIGH, 12);
        let theirs = other.join().unwrap();
        let left = ours.get(HIGH);
        assert!(matches!(
            (before, theirs, left),
            (None, Some(12), Some(11)) | (Some(11), None, Some(12))
        ));
        assert_eq!((ours.get(LOW), set.len()), (Some(10), 2));
    });
}

/// A reader finds what is there throughout, and a count of what is there is never 0.
#[test]
fn loom_a_reader_of_a_small_table_that_is_left_never_misses() {
    model(|| {
        let (set, ours, theirs) = small_set(4, LOW);
        let other = theirs.spawn(|theirs| (theirs.set.is_empty(), theirs.get(LOW)));
        ours.resize(3);
        assert_eq!(ours.insert(LOW, 11), Some(10));
        assert!(matches!(other.join().unwrap(), (false, Some(10 | 11))));
        assert_eq!(set.len(), 1);
    });
}
