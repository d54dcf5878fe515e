//! `ItemSet`: items and hashers that contradict themselves lose items, and nothing worse. No
//! operation runs for ever.

use quintet::{Compute, ItemSet};
use std::cell::Cell;
use std::hash::{BuildHasher, Hasher};

thread_local! {
    /// What every key hashes to.
    static HASH: Cell<u64> = const { Cell::new(0) };
}

/// Has one hash for all keys, another at another time.
#[derive(Clone, Copy, Default)]
struct Fickle;

impl Hasher for Fickle {
    fn finish(&self) -> u64 {
        HASH.get()
    }
    fn write(&mut self, _: &[u8]) {}
}

impl BuildHasher for Fickle {
    type Hasher = Self;
    fn build_hasher(&self) -> Self {
        Self
    }
}

/// Two hashes that a reader cannot tell apart: in a set of one line it looks at the low 16 bits
/// only. Writers look at all 32.
fn alike(set: &ItemSet<Box<(u64, u64)>, Fickle>) -> [u64; 2] {
    let folded = |hash| {
        HASH.set(hash);
        set.hash_of(&1)
    };
    let first = folded(1);
    let other = (2..).find(|hash| folded(*hash) as u16 == first as u16 && folded(*hash) != first);
    [1, other.expect("there are many")]
}

/// An item whose hash has changed is seen and cannot be taken hold of.
#[test]
fn an_item_under_another_hash_holds_up_no_update() {
    let set = ItemSet::<Box<(u64, u64)>>::builder().hasher(Fickle).build();
    let [first, other] = alike(&set);
    HASH.set(first);
    set.insert((1, 10));
    assert!(set.get(&1).is_some());
    HASH.set(other);
    assert!(set.update(&1, |item| (1, item.1 + 1)).is_none());
    assert!(matches!(set.remove_if(&1, |_| true), Ok(None)));
    let done = set.compute(&1, |_| Compute::Remove);
    assert!(done.before.is_none() && done.after.is_none());
    HASH.set(first);
    let seen = set.get(&1);
    HASH.set(other);
    assert!(set.compare_exchange(seen.as_deref().unwrap(), (1, 11)).is_err());
    assert_eq!(set.update_or_insert_with(&1, |item| (1, item.1 + 1), || (1, 20)).1, 20);
    assert_eq!(set.update_or_insert(|item| (1, item.1 + 1), (1, 30)).1, 21);
    HASH.set(first);
    assert_eq!(set.update(&1, |item| (1, item.1 + 1)).map(|item| item.1), Some(11));
    assert_eq!(set.len(), 2);
}
