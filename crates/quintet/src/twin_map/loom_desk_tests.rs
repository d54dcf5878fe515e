//! The desk of many writers on small models: every order of two writers, and of a reader beside
//! them.
//!
//! Who polls for the lock (`desk` F6) is left to shuttle: loom lets a `try_lock` that was announced
//! sleep when another thread locks.

use super::desk::{Desk, Options};
use super::user_code::Planned;
use super::version::Op;
use super::*;
use crate::sync::constant::AtomicU64;
use crate::sync::{Arc, Ordering, thread};
use loom::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The sum of the keys inserted. loom reports a write under a guard. While it is told to, copying
/// it panics.
struct Tracked {
    sum: UnsafeCell<u64>,
    sour: std::sync::Arc<AtomicU64>,
}

// SAFETY: loom checks every access.
unsafe impl Send for Tracked {}
// SAFETY: as above.
unsafe impl Sync for Tracked {}

impl Tracked {
    fn get(&self) -> u64 {
        // SAFETY: loom checks that nobody writes meanwhile.
        self.sum.with(|value| unsafe { *value })
    }

    fn add(&mut self, op: &Op<u64, ()>) {
        let Op::Insert { key, .. } = op else { unreachable!("not in these models") };
        // SAFETY: loom checks that nobody else is here.
        self.sum.with_mut(|value| unsafe { *value += key });
    }
}

impl Absorb<Op<u64, ()>> for Tracked {
    type Old = ();
    fn absorb_first(&mut self, op: &mut Op<u64, ()>) -> Option<()> {
        self.add(op);
        None
    }
    fn absorb_second(&mut self, op: Op<u64, ()>, _: &mut Vec<()>) -> Result<(), Differs> {
        self.add(&op);
        Ok(())
    }
    fn rebuild(from: &Self) -> Self {
        if from.sour.load(Ordering::Relaxed) != 0 {
            resume_unwind(Box::new(Planned));
        }
        let sum = UnsafeCell::new(from.get());
        Self { sum, sour: std::sync::Arc::clone(&from.sour) }
    }
    fn agrees(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

type Sums = Arc<Desk<Tracked, u64, ()>>;

fn model(preemptions: usize, test: impl Fn(Sums) + Sync + Send + 'static) {
    crate::sync::model(preemptions, move || {
        let sour = std::sync::Arc::new(AtomicU64::new(0));
        let blank = Tracked { sum: UnsafeCell::new(0), sour };
        let desk = Arc::new(Desk::new(blank, Options { fences: true, ..Options::DEFAULT }));
        desk.made();
        test(desk);
    });
}

fn insert(write: &mut Write<'_, Tracked, Op<u64, ()>>, key: u64) {
    write.apply(Op::Insert { hash: key, key, value: (), replaced: false });
}

/// Adds a power of two, and sees it.
fn add(desk: &Sums, key: u64) -> u64 {
    desk.made().write(|write| insert(write, key));
    let version = desk.pin();
    assert_ne!(version.get() & key, 0, "returned before the publish");
    version.version()
}

/// How often something was seen, over all orders of a model.
fn seen() -> &'static AtomicU64 {
    Box::leak(Box::default())
}

/// Two writers: both are published when they return, in two versions or in one (`desk` F1, F4).
#[test]
fn loom_two_writers_share_a_round_or_do_not() {
    let (one, two) = (seen(), seen());
    model(3, move |desk| {
        let theirs = Arc::clone(&desk);
        let other = thread::spawn(move || add(&theirs, 2));
        let version = add(&desk, 1);
        let version = version.max(other.join().unwrap());
        assert_eq!(desk.pin().get(), 3);
        assert_eq!((desk.pin().version(), desk.stats().published), (version, version));
        [one, two][version as usize - 1].fetch_add(1, Ordering::Relaxed);
    });
    assert_ne!(one.load(Ordering::Relaxed), 0, "nobody shared a round");
    assert_ne!(two.load(Ordering::Relaxed), 0, "everybody shared a round");
}

/// Rounds follow each other at once: nobody takes the end of one for that of another.
#[test]
fn loom_rounds_that_follow_each_other() {
    model(3, |desk| {
        let theirs = Arc::clone(&desk);
        let other = thread::spawn(move || {
            add(&theirs, 2);
            add(&theirs, 4);
        });
        add(&desk, 1);
        other.join().unwrap();
        assert_eq!(desk.pin().get(), 7);
    });
}

/// A writer panics beside another one, which is published (`desk` F2).
#[test]
fn loom_a_writer_panics_beside_another() {
    model(3, |desk| {
        let theirs = Arc::clone(&desk);
        let other = thread::spawn(move || {
            add(&theirs, 2);
        });
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            desk.made().write(|write| {
                insert(write, 1);
                resume_unwind(Box::new(Planned))
            })
        }));
        assert!(panicked.is_err());
        other.join().unwrap();
        assert_eq!((desk.pin().get(), desk.pin().version()), (2, 1));
    });
}

/// A round fails: who left its change in it is told so, and it is not there.
#[test]
fn loom_a_round_fails() {
    let told = seen();
    model(3, move |desk| {
        let theirs = Arc::clone(&desk);
        let other = thread::spawn(move || {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                theirs.made().write(|write| {
                    insert(write, 1);
                    theirs.blank.sour.store(1, Ordering::Relaxed);
                    resume_unwind(Box::new(Planned))
                })
            }));
            assert!(panicked.is_err());
        });
        let write = || desk.made().write(|write| insert(write, 2));
        let added = catch_unwind(AssertUnwindSafe(write));
        other.join().unwrap();
        assert_eq!(desk.pin().get(), if added.is_ok() { 2 } else { 0 });
        let of_another = added.is_err_and(|payload| !payload.is::<Planned>());
        told.fetch_add(u64::from(of_another), Ordering::Relaxed);
        desk.blank.sour.store(0, Ordering::Relaxed);
        let sum = desk.pin().get();
        add(&desk, 4);
        assert_eq!(desk.pin().get(), sum + 4, "what was given up has come back");
    });
    assert_ne!(told.load(Ordering::Relaxed), 0, "nobody was told");
}

/// A guard is held while two writers publish: what it shows does not change.
#[test]
fn loom_a_guard_beside_two_writers() {
    model(2, |desk| {
        let theirs = Arc::clone(&desk);
        let reader = desk.reader();
        let other = thread::spawn(move || {
            add(&theirs, 2);
        });
        let reading = thread::spawn(move || {
            let version = reader.pin();
            let sum = version.get();
            assert_eq!(version.get(), sum);
        });
        add(&desk, 1);
        other.join().unwrap();
        reading.join().unwrap();
        assert_eq!(desk.pin().get(), 3);
    });
}

type Map = TwinMap<u64, u64, foldhash::fast::FixedState>;

fn map_model(test: impl Fn(Arc<Map>) + Sync + Send + 'static) {
    crate::sync::model(3, move || {
        let hasher = foldhash::fast::FixedState::default();
        let map: Map = TwinMapBuilder::new().hasher(hasher).build();
        map.insert(0, 1);
        test(Arc::new(map));
    });
}

/// Two updates of one key: the watch of the one is told of the other, published or staged (`watch`
/// W1, W2).
#[test]
fn loom_two_updates_of_one_key() {
    map_model(|map| {
        let theirs = Arc::clone(&map);
        let other = thread::spawn(move || theirs.update(&0, |old| old * 10));
        let ours = map.update(&0, |old| old + 1);
        let answers = (ours, other.join().unwrap(), map.get(&0).as_deref().copied());
        let orders = [(Some(2), Some(20), Some(20)), (Some(11), Some(10), Some(11))];
        assert!(orders.contains(&answers), "no order explains {answers:?}");
    });
}

/// An update beside the removal of its key.
#[test]
fn loom_an_update_beside_a_removal() {
    map_model(|map| {
        let theirs = Arc::clone(&map);
        let other = thread::spawn(move || theirs.remove(&0));
        let ours = map.update(&0, |old| old + 1);
        let answers = (ours, other.join().unwrap(), map.get(&0).as_deref().copied());
        let orders = [(Some(2), Some(2), None), (None, Some(1), None)];
        assert!(orders.contains(&answers), "no order explains {answers:?}");
    });
}
