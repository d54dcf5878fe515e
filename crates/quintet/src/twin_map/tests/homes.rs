//! Readers that are sent home (`home` H1 to H7). Tests insist on it, instead of waiting for a rest.

use super::super::home::Naps;
use super::*;
use crate::sync::{Arc, AtomicBool, Ordering, thread};

/// A sum, and where it lies: which copy is it? Told to, its second application panics or differs.
struct Sum {
    sum: u64,
    at: Box<u8>,
    trouble: Arc<AtomicBool>,
}

impl Absorb<u64> for Sum {
    type Old = ();
    fn absorb_first(&mut self, op: &mut u64) -> Option<()> {
        self.sum += *op;
        None
    }
    fn absorb_second(&mut self, op: u64, _: &mut Vec<()>) -> Result<(), Differs> {
        if self.trouble.swap(false, Ordering::Relaxed) {
            assert!(op & 1 == 0, "an odd one panics, an even one differs");
            return Err(Differs);
        }
        self.sum += op;
        Ok(())
    }
    fn rebuild(from: &Self) -> Self {
        Self { sum: from.sum, at: Box::new(0), trouble: Arc::clone(&from.trouble) }
    }
    fn agrees(&self, other: &Self) -> bool {
        self.sum == other.sum
    }
}

fn homing(stalled: Stalled) -> (Twin<Sum, u64>, Reader<Sum>) {
    let first = Sum { sum: 0, at: Box::new(0), trouble: Arc::default() };
    let (mut twin, reader) = Twin::with_stalled(first, stalled);
    twin.pace.insists = true;
    (twin, reader)
}

fn add(twin: &mut Twin<Sum, u64>, op: u64) {
    let mut write = twin.guard();
    write.apply(op);
    write.publish();
}

/// Which copy a guard shows.
fn place(sum: &Sum) -> usize {
    std::ptr::from_ref(&*sum.at).addr()
}

#[test]
fn readers_return_to_the_copy_they_came_from() {
    let (mut twin, reader) = homing(Stalled::Copy);
    let home = place(&reader.pin());
    for n in 1..=10 {
        add(&mut twin, 1);
        let guard = reader.pin();
        assert_eq!((guard.sum, guard.version(), place(&guard)), (n, n, home));
        assert!(!reader.core().gate.peek().is_fenced());
    }
    assert_eq!((twin.stats().returned, twin.stats().published), (10, 10));
    assert_eq!(reader.stats(), twin.stats());
    // The other copy lacks nothing: the next one is published from it, and stays.
    twin.pace.insists = false;
    add(&mut twin, 1);
    let guard = reader.pin();
    assert_eq!((guard.sum, guard.version()), (11, 11));
    assert_ne!(place(&guard), home);
    assert_eq!(twin.stats().returned, 10);
}

/// Whoever is at home keeps what it sees; readers stay with the new version, by the plain door
/// (`home` H5).
#[test]
fn a_guard_at_home_keeps_readers_away() {
    for stalled in [Stalled::Wait, Stalled::Copy] {
        let (mut twin, reader) = homing(stalled);
        let kept = reader.pin();
        add(&mut twin, 1);
        assert_eq!((kept.sum, kept.version(), twin.stats().returned), (0, 0, 0));
        let guard = reader.pin();
        assert_eq!((guard.sum, guard.version()), (1, 1));
        assert_ne!(place(&guard), place(&kept));
        assert!(!reader.core().gate.peek().is_fenced());
        drop((guard, kept));
        // The visited copy has become home.
        let home = place(&reader.pin());
        add(&mut twin, 1);
        let guard = reader.pin();
        assert_eq!((guard.sum, place(&guard), twin.stats().returned), (2, home, 1));
    }
}

#[test]
fn an_owned_guard_at_home_keeps_what_it_shows() {
    let (mut twin, reader) = homing(Stalled::Copy);
    let kept = reader.owned_pin();
    for n in 1..=3 {
        add(&mut twin, 1);
        assert_eq!((kept.sum, kept.version()), (0, 0));
        assert_eq!((reader.pin().sum, reader.version()), (n, n));
    }
    assert_eq!((twin.stats().returned, twin.stats().left_behind), (2, 1));
}

/// A guard at the third place does not keep readers from going home, nor does a return disturb it.
#[test]
fn a_copy_that_was_left_behind_stays_as_it_is() {
    let (mut twin, reader) = homing(Stalled::Copy);
    let kept = reader.pin();
    for n in 1..=5 {
        add(&mut twin, 1);
        assert_eq!((kept.sum, reader.pin().sum), (0, n));
    }
    assert_eq!((twin.stats().returned, twin.stats().left_behind), (4, 1));
    drop(kept);
    add(&mut twin, 1);
    assert_eq!((reader.pin().sum, twin.stats().returned), (6, 5));
}

/// The publish has happened; readers stay, and the next write makes the copy anew (`home` H5).
#[test]
fn a_replay_that_fails_at_home_costs_a_copy_and_no_change() {
    for op in [1, 2] {
        let (mut twin, reader) = homing(Stalled::Copy);
        add(&mut twin, 10);
        let home = place(&reader.pin());
        reader.pin().trouble.store(true, Ordering::Relaxed);
        add(&mut twin, op);
        let guard = reader.pin();
        assert_eq!((guard.sum, guard.version()), (10 + op, 2));
        assert_ne!(place(&guard), home);
        drop(guard);
        assert_eq!((twin.stats().returned, twin.stats().rebuilds), (1, 1));
        assert!(!reader.core().gate.peek().is_fenced());
        for n in 1..=3 {
            add(&mut twin, 1);
            assert_eq!((reader.pin().sum, reader.version()), (10 + op + n, 2 + n));
        }
        assert_eq!((twin.stats().returned, twin.stats().rebuilds), (4, 1));
    }
}

/// A batch that is dropped, forgotten or discarded before or after a return is what it was.
#[test]
fn batches_around_a_return() {
    let (mut twin, reader) = homing(Stalled::Copy);
    add(&mut twin, 1);
    let mut write = twin.guard();
    write.apply(1);
    drop(write);
    let mut write = twin.guard();
    write.apply(1);
    std::mem::forget(write);
    assert_eq!((twin.guard().sum, reader.pin().sum), (3, 2));
    assert_eq!(reader.pin().sum, 3, "the next guard has published what it found");
    let mut write = twin.guard();
    write.apply(100);
    write.discard();
    assert_eq!(reader.pin().sum, 3);
    add(&mut twin, 1);
    assert_eq!((reader.pin().sum, twin.stats().returned), (4, 4));
    twin.guard().publish();
    assert_eq!((reader.pin().sum, reader.version(), twin.stats().returned), (4, 5, 5));
}

/// A guard that is taken while the writer sends readers home and back shows one version, and none
/// is older than one seen before.
#[test]
fn versions_never_go_back() {
    let (mut twin, reader) = homing(Stalled::Copy);
    let over = AtomicBool::new(false);
    let watch = |reader: Reader<Sum>| {
        let mut last = 0;
        while !over.load(Ordering::Relaxed) {
            let guard = reader.pin();
            assert_eq!(guard.sum, guard.version());
            assert!(guard.version() >= last);
            last = guard.version();
        }
        let owned = reader.owned_pin();
        assert_eq!(owned.sum, owned.version());
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            let reader = reader.clone();
            scope.spawn(|| watch(reader));
        }
        for n in 0..3000 {
            add(&mut twin, 1);
            twin.pace.insists = n % 7 != 0;
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(reader.pin().sum, 3000);
    assert_eq!(twin.stats().rebuilds, 0);
}

/// A table of many writers tells its watches before the log is replayed at home.
#[test]
fn updates_of_many_writers_are_not_lost() {
    let map = TwinMap::<u64, u64>::new();
    map.desk.made().insist_on_returns();
    map.insert(0, 0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..200).all(|_| map.update(&0, |old| old + 1).is_some()));
        }
    });
    assert_eq!(map.get(&0).as_deref(), Some(&600));
    assert!(map.stats().returned > 0);
}

#[test]
fn naps_in_vain_become_rare() {
    let mut naps = Naps::default();
    let mut taken = 0;
    for _ in 0..5000 {
        if naps.is_due() {
            taken += 1;
            naps.ended(true);
        }
    }
    assert!((10..20).contains(&taken), "{taken}");
    while !naps.is_due() {}
    naps.ended(false);
    assert!(naps.is_due() && naps.is_due());
}
