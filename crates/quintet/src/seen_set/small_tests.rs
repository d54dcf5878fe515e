//! Small sets, and how they leave for the row.

use super::word::Split;
use super::*;
use crate::sync::{AtomicUsize, Ordering};
use std::cell::Cell;

/// All words hash to one segment, whatever there are of it: its table must hold them all.
#[derive(Clone, Copy, Default)]
struct Lopsided;

impl std::hash::BuildHasher for Lopsided {
    type Hasher = LopsidedHasher;
    fn build_hasher(&self) -> LopsidedHasher {
        LopsidedHasher(0)
    }
}

struct LopsidedHasher(u64);

impl std::hash::Hasher for LopsidedHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("words only")
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

#[test]
fn a_small_set_leaves_for_the_row_whatever_its_hashes() {
    for shards in [1, 2, 64, 256] {
        let set = SeenSet::builder().shards(shards).hasher(Lopsided).build();
        let handle = set.handle();
        let ids: Vec<_> = (0..30_000u64).map(|n| handle.insert(n).id()).collect();
        for (n, &id) in (0..).zip(&ids) {
            assert_eq!((handle.find(&n), set.get(id)), (Some(id), Some(&n)));
        }
        assert_eq!(set.iter().count(), 30_000);
    }
}

/// At every size: each record once, whether it is in a small table, in its segment's, or in both.
#[test]
fn a_walk_meets_each_record_once_at_every_size() {
    let set = SeenSet::<u64>::new();
    let handle = set.handle();
    for n in 0..16_000u64 {
        handle.insert(n);
        let is_near = |size: u64| n.abs_diff(size) < 3;
        if n < 20
            || n % 1_000 == 0
            || [48, 192, 768, 3_072].into_iter().any(is_near)
            || (12_280..12_600).contains(&n) && n % 7 == 0
        {
            let mut walked: Vec<_> = set.iter().map(|(_, &n)| n).collect();
            walked.sort_unstable();
            assert!(walked.into_iter().eq(0..=n), "{n}");
        }
    }
    assert_eq!(set.stats().len, 16_000);
}

#[test]
fn small_sets_grow_in_few_steps() {
    let set = SeenSet::<u64>::new();
    let handle = set.handle();
    (0..10_000).for_each(|n| _ = handle.insert(n));
    assert_eq!(set.stats().growths, 5);
    assert!(set.stats().slots <= 16_384, "{}", set.stats().slots);
}

#[test]
fn threads_take_a_small_set_to_the_row_together() {
    for _ in 0..20 {
        let set = SeenSet::<u64>::new();
        let new = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (set, new) = (&set, &new);
                scope.spawn(move || {
                    let handle = set.handle();
                    for n in 0..14_000u64 {
                        let n = n * (2 * thread + 1) % 14_000;
                        new.fetch_add(handle.insert(n).is_new().into(), Ordering::Relaxed);
                        assert!(handle.contains(&n), "{n}");
                    }
                });
            }
        });
        assert_eq!((set.len(), set.iter().count()), (new.load(Ordering::Relaxed), set.len()));
    }
}

#[test]
fn room_is_made_from_any_size() {
    for before in [0, 1, 100, 5_000, 12_287, 12_300, 20_000u64] {
        for more in [0, 10, 1_000, 10_000, 50_000] {
            let set = SeenSet::<u64>::new();
            let handle = set.handle();
            (0..before).for_each(|n| _ = handle.insert(n));
            handle.reserve(more);
            assert!(set.capacity() >= before as usize + more, "{before} {more}");
            let all = before + more as u64;
            (0..all).for_each(|n| assert_eq!(handle.insert(n).is_new(), n >= before));
            assert_eq!((set.len(), set.iter().count()), (all as usize, all as usize));
        }
    }
}

/// A record whose id is as large as it likes.
#[derive(Clone, Copy)]
struct Far<'a> {
    id: u64,
    taken_back: &'a Cell<usize>,
}

impl super::core::Entry for Far<'_> {
    const USER: bool = false;
    fn same(self, word: u64, _: u64, split: Split) -> bool {
        split.id(word) == self.id
    }
    fn write(self) -> Option<u64> {
        Some(self.id)
    }
    fn make_room(self) -> Result<(), SeenError> {
        unreachable!("there is always room")
    }
    fn take_back(self) {
        self.taken_back.set(self.taken_back.get() + 1);
    }
}

/// Long byte strings have large ids in the smallest set (`small` Q8).
#[test]
fn an_id_that_small_tables_cannot_hold_makes_the_set_leave_them() {
    let core = super::core::Core::new(super::builder::Settings::DEFAULT);
    let worker = core.join();
    let none = None::<&crate::reclaim::Brief<'_>>;
    let ids = [1, 2, (1 << 26) - 1, 1 << 26, 1 << 31, 3];
    for (n, id) in (0..).zip(ids) {
        let turned = core.split.turn(hash_of(n));
        for new in [true, false] {
            let taken_back = Cell::new(0);
            let far = Far { id, taken_back: &taken_back };
            let outcome = core.insert(&worker, none, turned, far).unwrap();
            assert_eq!((outcome.new, outcome.id), (new, id));
            assert_eq!(taken_back.get() > 0, new && id == 1 << 26, "{id:#x}");
        }
        assert_eq!(core.roots.row().is_some(), id >= 1 << 26 || n > 2);
    }
    let mut walked: Vec<_> =
        super::iter::Words::new(&core).map(|word| core.split.id(word)).collect();
    walked.sort_unstable();
    assert_eq!(walked, [1, 2, 3, (1 << 26) - 1, 1 << 26, 1 << 31]);
}

fn hash_of(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
