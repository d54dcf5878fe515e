//! Read, think, write under loom: what the closure was shown is what is replaced, whoever comes
//! between.

use super::loom_tests::{LOW, Member, model, record, set_of};
use super::*;
use crate::vocabulary::Compute;
use std::sync::Arc;

impl Member {
    /// Adds one; returns the new value.
    fn add_one(&self) -> Option<u32> {
        let next = self.handle.update(&LOW, |old| record(old.key, old.value + 1));
        next.map(|new| new.value)
    }
}

#[test]
fn loom_two_updates_lose_nothing() {
    model(|| {
        let (set, ours, theirs) = set_of(LOW);
        let other = theirs.spawn(|theirs| theirs.add_one());
        let both = (ours.add_one(), other.join().unwrap());
        assert!(matches!(both, (Some(11), Some(12)) | (Some(12), Some(11))), "{both:?}");
        assert_eq!((ours.get(LOW), set.len()), (Some(12), 1));
    });
}

#[test]
fn loom_an_update_does_not_bring_back_what_was_removed() {
    model(|| {
        let (set, ours, theirs) = set_of(LOW);
        let other = theirs.spawn(|theirs| theirs.remove(LOW));
        let both = (ours.add_one(), other.join().unwrap());
        assert!(matches!(both, (Some(11), Some(11)) | (None, Some(10))), "{both:?}");
        assert_eq!((ours.get(LOW), set.len()), (None, 0));
    });
}

/// The item is in one table, in both, or in the other.
#[test]
fn loom_an_update_meets_a_migration() {
    model(|| {
        let (set, ours, theirs) = set_of(LOW);
        let other = theirs.spawn(|theirs| theirs.resize(1));
        assert_eq!(ours.add_one(), Some(11));
        other.join().unwrap();
        assert_eq!((ours.get(LOW), ours.add_one(), set.len()), (Some(11), Some(12), 1));
        assert_eq!(ours.remove(LOW), Some(12));
        assert_eq!(ours.get(LOW), None, "a stale copy shows through");
    });
}

/// One stores if there is nothing, the other takes out what it has seen: each state has one
/// successor.
#[test]
fn loom_compute_and_remove_if_agree() {
    model(|| {
        let (set, ours, theirs) = set_of(LOW);
        let other = theirs.spawn(|theirs| {
            let removed = theirs.handle.remove_if(&LOW, |item| item.value == 10);
            removed.map(|item| item.map(|item| item.value)).map_err(|item| item.value)
        });
        let computed = ours.handle.compute(&LOW, |item| {
            Compute::Insert(record(LOW, item.map_or(20, |item| item.value + 1)))
        });
        let values = [computed.before, computed.after].map(|item| item.map(|item| item.value));
        let story = (values, other.join().unwrap(), ours.get(LOW));
        let kept = ([Some(10), Some(11)], Err(11), Some(11));
        let anew = ([None, Some(20)], Ok(Some(10)), Some(20));
        assert!(story == kept || story == anew, "{story:?}");
        assert_eq!(set.len(), 1);
    });
}

/// What is lent by the set itself is there until it is given back, whatever others take out and
/// free.
#[test]
fn loom_what_is_lent_is_kept() {
    model(|| {
        let (set, ours, mut theirs) = set_of(LOW);
        let kept = record(LOW, 11);
        ours.handle.insert(Arc::clone(&kept));
        // Nobody else is inside.
        drop(ours);
        let other = crate::sync::thread::spawn(move || {
            theirs.remove(LOW);
            theirs.handle.flush();
        });
        if let Some(lent) = set.get(&LOW) {
            let again = Ref::clone(&lent);
            drop(lent);
            assert!(Arc::strong_count(&kept) >= 2, "freed under a reader");
            assert_eq!(again.value, 11);
        }
        other.join().unwrap();
    });
}
