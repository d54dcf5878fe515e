//! Who owns which copy: owned guards, copies that were left to them, copies that are made instead
//! of a replay.

use super::super::*;
use crate::sync::{Arc, AtomicUsize, Ordering, thread};
use std::time::Duration;

/// One thread holds owned guards of many versions and goes on writing: nobody waits, and each copy
/// is freed with its last owner.
#[test]
fn owned_guards_of_many_versions_hold_up_nobody() {
    for stalled in [Stalled::Wait, Stalled::Copy] {
        let value = Arc::new(());
        let map = TwinMap::builder().stalled(stalled).build();
        let mut held = Vec::new();
        for n in 0..8 {
            map.insert(n, Arc::clone(&value));
            held.extend([map.owned_pin(), map.handle().shared().owned_pin()]);
        }
        assert_eq!(map.stats().left_behind, 6, "{stalled:?}");
        for (at, guard) in held.iter().enumerate() {
            assert_eq!((guard.len(), guard.version()), (at / 2 + 1, at as u64 / 2 + 1));
        }
        let mut before = Arc::strong_count(&value);
        while held.len() > 2 {
            let (guard, other) = (held.remove(0), held.remove(0));
            let (size, clone) = (guard.len(), guard.clone());
            drop(guard);
            assert_eq!(Arc::strong_count(&value), before, "a copy went before its last owner");
            thread::spawn(move || drop((clone, other))).join().unwrap();
            // The copy before the current one is still the table's.
            let freed = if held.len() > 2 { size } else { 0 };
            assert_eq!(before - Arc::strong_count(&value), freed);
            before = Arc::strong_count(&value);
        }
        map.clear();
        map.clear();
        assert_eq!(held[0].len(), 8);
        drop(held);
        map.clear();
        map.clear();
        assert_eq!(Arc::strong_count(&value), 1);
    }
}

/// An owned guard that goes in time costs no copy.
#[test]
fn a_copy_whose_owners_have_gone_is_written_again() {
    let (mut writer, reader) = TwinMap::<u64, u64>::new().split();
    for n in 0..50 {
        let guard = reader.owned_pin();
        writer.guard().insert(n, n);
        assert_eq!(guard.len(), n as usize);
        drop(guard);
    }
    assert_eq!((writer.stats().left_behind, writer.stats().rebuilds), (0, 0));
}

/// Writers leave what is owned at once where they may not wait.
#[test]
fn a_guard_that_never_ends_is_no_reason_to_refuse() {
    let map = TwinMap::from([(0, 0)]);
    std::mem::forget(map.owned_pin());
    for n in 1..10 {
        map.try_batch(|write| write.insert(n, n)).unwrap();
        std::mem::forget(map.owned_pin());
    }
    map.batch_timeout(Duration::ZERO, |write| write.insert(10, 10)).unwrap();
    assert_eq!(map.len(), 11);
}

/// What was taken out of an inert map is not handed back while an owned guard shows it.
#[test]
fn an_owned_guard_of_an_inert_map_keeps_what_it_shows() {
    let (mut writer, reader) = InertMap::<u64, Arc<u64>>::builder().build_inert();
    let value = Arc::new(7);
    writer.guard().insert(1, Arc::clone(&value));
    let held = reader.owned_pin();
    writer.guard().remove(&1);
    for n in 2..20 {
        writer.guard().insert(n, Arc::new(n));
        assert_eq!(writer.evicted().count(), 0);
        assert_eq!(held.get(&1).map(|value| **value), Some(7));
        assert_eq!(Arc::strong_count(&value), 2);
    }
    drop(held);
    writer.guard().insert(20, Arc::new(20));
    assert_eq!(writer.evicted().map(|value| *value).collect::<Vec<_>>(), [7]);
    assert_eq!(Arc::strong_count(&value), 1);
    // The writer goes first.
    writer.guard().insert(1, Arc::clone(&value));
    let held = reader.owned_pin();
    writer.guard().remove(&1);
    drop((writer, reader));
    assert_eq!(held.get(&1).map(|value| **value), Some(7));
    drop(held);
    assert_eq!(Arc::strong_count(&value), 1);
}

static HASHES: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone, PartialEq, Eq)]
struct Hashed(u64);

impl std::hash::Hash for Hashed {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        HASHES.fetch_add(1, Ordering::Relaxed);
        self.0.hash(state);
    }
}

/// A log longer than the table is not replayed: the copy is made anew, and nobody is hashed for it.
#[test]
fn the_first_write_after_a_load_copies() {
    let (mut writer, reader) = TwinMap::<Hashed, u64>::with_capacity(2000).split();
    writer.guard().extend((0..1000).map(|n| (Hashed(n), n)));
    let before = HASHES.load(Ordering::Relaxed);
    writer.guard().insert(Hashed(1000), 1000);
    assert_eq!((HASHES.load(Ordering::Relaxed) - before, writer.stats().copied), (1, 1));
    let capacity = reader.capacity();
    for version in 2..6 {
        let guard = reader.pin();
        assert_eq!((guard.len(), guard.version(), guard.capacity()), (1001, version, capacity));
        assert!((0..=1000).all(|n| guard.get(&Hashed(n)) == Some(&n)));
        drop(guard);
        writer.guard().publish();
    }
    // Few changes of a large table are replayed, many of a small one are not.
    writer.guard().extend((0..100).map(|n| (Hashed(n), n)));
    drop(writer.guard());
    assert_eq!(writer.stats().copied, 1);
    writer.guard().extend((0..200).map(|n| (Hashed(n), n)));
    drop(writer.guard());
    assert_eq!((writer.stats().copied, writer.stats().rebuilds), (2, 0));
}

/// The same where values own memory, and a table that is shared: everything is freed.
#[test]
fn a_copy_made_instead_of_a_replay_frees_the_old_one() {
    let value = Arc::new(());
    let map = TwinMap::<u64, Arc<()>>::new();
    for round in 0..5 {
        map.replace_all((0..200).map(|n| (n + round, Arc::clone(&value))));
        map.insert(0, Arc::clone(&value));
        map.remove(&0);
    }
    map.clear();
    map.clear();
    map.clear();
    assert!(map.stats().copied >= 5);
    assert_eq!(Arc::strong_count(&value), 1);
}

/// Entries by value are not clones where nobody else can look.
#[test]
fn a_table_is_taken_apart_without_clones() {
    let value = Arc::new(());
    let map = TwinMap::from([(1, Arc::clone(&value)), (2, Arc::clone(&value))]);
    map.remove(&2);
    let mut entries = map.into_iter();
    let (key, kept) = entries.next().unwrap();
    assert_eq!((key, entries.len(), Arc::strong_count(&value)), (1, 0, 2));
    let map = TwinMap::from([(1, kept)]);
    let reader = map.handle();
    let (_, clone) = map.into_iter().next().unwrap();
    assert!(Arc::ptr_eq(&reader.get(&1).unwrap(), &clone));
    assert!(reader.is_final());
    let set = TwinSet::from(["a".to_owned()]);
    let at = set.pin().iter().next().unwrap().as_ptr();
    let element = set.into_iter().next().unwrap();
    assert_eq!(element.as_ptr(), at);
}

/// A guard of a shared reader is its thread's own: a writer that would wait for it knows.
#[test]
fn a_guard_of_a_shared_reader_is_seen() {
    let (mut writer, reader) =
        TwinMap::<u64, u64>::builder().stalled(Stalled::Wait).build().split();
    let shared = reader.shared();
    let guard = shared.pin();
    writer.guard().insert(1, 1);
    assert!(matches!(
        writer.guard_timeout(Duration::from_secs(60)).err(),
        Some(GuardError::WouldDeadlock)
    ));
    drop(guard);
    let map = writer.into_map();
    let guard = shared.pin();
    map.insert(2, 2);
    assert_eq!(
        map.batch_timeout(Duration::from_secs(60), |write| write.insert(3, 3)),
        Err(GuardError::WouldDeadlock)
    );
    assert_eq!(guard.len(), 1);
}
