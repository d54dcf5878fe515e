//! Changes without a lock, beside writes under the lock of a shard (`table` T8).

use super::*;

/// A set of one item that `ours` changes at once, and `theirs`, who do not know the table, under
/// the lock.
fn one_of_each() -> (Shared<Set>, Member, Member) {
    let (set, ours, theirs) = set_of(LOW);
    drop(theirs);
    let theirs = Member::of(&set);
    (set, ours, theirs)
}

/// What was found under the lock may be gone before it is changed.
#[test]
fn loom_a_removal_at_once_and_a_put_under_the_lock_see_each_other_once() {
    model(|| {
        let (set, ours, theirs) = one_of_each();
        let other = theirs.spawn(|theirs| theirs.insert(LOW, 1));
        let mine = ours.remove(LOW);
        let theirs = other.join().unwrap();
        let left = ours.get(LOW);
        assert!(matches!(
            (mine, theirs, left),
            (Some(10), None, Some(1)) | (Some(1), Some(10), None)
        ));
        assert_eq!(set.len(), usize::from(left.is_some()));
    });
}

/// Both find the same item: one of them takes it out.
#[test]
fn loom_two_removals_take_an_item_out_once() {
    model(|| {
        let (set, ours, theirs) = one_of_each();
        let other = theirs.spawn(|theirs| theirs.remove(LOW));
        let mine = ours.remove(LOW);
        let theirs = other.join().unwrap();
        assert!(matches!((mine, theirs), (Some(10), None) | (None, Some(10))));
        assert_eq!((set.len(), ours.get(LOW)), (0, None));
    });
}

/// A write that finds its item in the old table changes both, and nobody changes the old one alone
/// behind its back.
#[test]
fn loom_a_change_at_once_and_a_write_in_two_tables_see_each_other_once() {
    model(|| {
        let (set, ours, theirs) = set_of(LOW);
        let starter = Member::of(&set);
        let other = theirs.spawn(|theirs| theirs.insert(LOW, 1));
        starter.handle.visit(|visit| set.core.start_for_test(visit, 1));
        let mine = starter.insert(LOW, 2);
        let theirs = other.join().unwrap();
        assert!(matches!(
            (mine, theirs, ours.get(LOW)),
            (Some(10), Some(2), Some(1)) | (Some(1), Some(10), Some(2))
        ));
        assert_eq!(set.len(), 1);
    });
}

/// An item that knows whether it was freed: the test keeps a count of each.
struct Watched(u32);

impl Item for Watched {
    type Key = u32;
    fn matches<Q: ?Sized + Equivalent<u32>>(&self, key: &Q) -> bool {
        // SAFETY: in an `Arc`, of which the test keeps a count.
        let shared = std::mem::ManuallyDrop::new(unsafe { Arc::from_raw(self) });
        assert!(Arc::strong_count(&shared) > 1, "freed under who compares it");
        key.equivalent(&self.0)
    }
    fn same_key(&self, other: &Self) -> bool {
        self.0 == other.0
    }
    fn hash_key<H: Hasher>(&self, state: &mut H) {
        std::hash::Hash::hash(&self.0, state);
    }
}

/// The lock does not keep what is compared under it: an item that was born in a later era is not
/// followed before that is announced.
#[test]
fn loom_a_write_under_the_lock_keeps_what_it_compares() {
    crate::sync::model(2, || {
        let set: ItemSet<Arc<Watched>, Plain> =
            ItemSetBuilder::default().shards(1).hasher(Plain::default()).build();
        let set = Shared::new(set);
        let items: [_; 4] = std::array::from_fn(|_| Arc::new(Watched(LOW)));
        let kept = items.clone();
        let [first, rest @ ..] = items;
        set.pin().insert(first);
        // Does not know the table.
        let ours = set.quiet_handle();
        let others = Shared::clone(&set);
        let other = thread::spawn(move || {
            let mut theirs = others.quiet_handle();
            for item in rest {
                theirs.insert(item);
                theirs.quiescent();
            }
        });
        ours.remove(&LOW);
        other.join().unwrap();
        drop(ours);
        drop(kept);
    });
}
