//! What somebody does who has not read the page: it works, or is told, and nothing is lost.

use super::super::*;
use std::cell::Cell;
use std::hash::{BuildHasher, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// The hasher panics when this reaches 1.
    static FUSE: Cell<usize> = const { Cell::new(0) };
}

fn panics<R>(f: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

/// Hashes numbers, until it panics.
#[derive(Clone, Default)]
struct Moody;

/// What it makes.
struct Sum(u64);

impl BuildHasher for Moody {
    type Hasher = Sum;
    fn build_hasher(&self) -> Sum {
        let left = FUSE.get();
        FUSE.set(left.saturating_sub(1));
        assert_ne!(left, 1, "the hasher panics, on purpose");
        Sum(0)
    }
}

impl Hasher for Sum {
    fn finish(&self) -> u64 {
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.wrapping_mul(31) + u64::from(*byte));
    }
}

/// A hasher that panics at any moment of a single write, also while a table grows or is brought up
/// to date: what the call says has happened, nothing else, and the table is not locked for ever.
#[test]
fn a_hasher_that_panics_leaves_the_table_as_it_was() {
    for fuse in 1..120 {
        let map = TwinMap::<u64, u64, Moody>::with_hasher(Moody);
        FUSE.set(0);
        let mut expected: Vec<u64> = (0..3).collect();
        map.replace_all(expected.iter().map(|n| (*n, *n)));
        FUSE.set(fuse);
        for n in 3..40 {
            if !panics(|| map.insert(n, n)) {
                expected.push(n);
            }
        }
        FUSE.set(0);
        for _ in 0..2 {
            let mut seen: Vec<u64> = map.pin().keys().copied().collect();
            seen.sort_unstable();
            assert_eq!(seen, expected, "fuse {fuse}");
            map.insert(0, 0);
        }
    }
}

/// Keys and values without a size have places, copies and versions all the same.
#[test]
fn nothing_at_all_is_kept_in_two_copies() {
    let map = TwinMap::<(), ()>::new();
    let before = map.pin();
    assert_eq!(map.insert((), ()), None);
    assert_eq!(map.insert((), ()), Some(()));
    assert_eq!(map.update(&(), |()| ()), Some(()));
    assert_eq!((before.len(), map.pin().len()), (0, 1));
    map.retain(|(), ()| false);
    assert!(map.pin().is_empty());
    map.replace_all([((), ()), ((), ())]);
    let kept = map.owned_pin();
    assert_eq!(map.remove(&()), Some(()));
    assert_eq!((kept.len(), map.pin().len(), before.len()), (1, 0, 0));
}

/// New content is made before the lock is taken: an iterator that panics changes nothing, one that
/// reads and writes the table itself does so before all is replaced; old guards show what they
/// showed.
#[test]
fn content_is_replaced_by_iterators_of_any_kind() {
    let map = TwinMap::<u64, String>::new();
    map.insert(1, "old".to_owned());
    let old = map.pin();
    let until = |end: u64| (0..100_000).inspect(move |n| assert_ne!(*n, end, "on purpose"));
    assert!(panics(|| map.replace_all(until(50_000).map(|n| (n, n.to_string())))));
    assert_eq!((map.pin().len(), map.version()), (1, 1));
    map.replace_all(until(u64::MAX).map(|n| {
        if n % 10_000 == 0 {
            map.insert(n, "on the way".to_owned());
        }
        (n, n.to_string())
    }));
    let new = map.pin();
    assert_eq!((new.len(), new.get(&10_000).map(String::as_str)), (100_000, Some("10000")));
    assert_eq!((old.len(), old.get(&1).map(String::as_str)), (1, Some("old")));
}
