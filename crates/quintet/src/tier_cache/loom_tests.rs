//! The orders that only weak memory breaks: the reader's certificate, the validated miss, the lock,
//! the hand-over to a recoverer. Small maps; loom runs every interleaving and every allowed
//! reordering within its bound.

use super::*;
use crate::sync::{Arc, AtomicBool, Ordering, thread};

const TINY: Geometry = Geometry { buckets: 2, window: 2, records: 3, seats: 2 };

struct Peer {
    slot: u32,
    other_is_dead: AtomicBool,
}

impl Peers for Peer {
    fn me(&self) -> Option<Owner> {
        Some(Owner::new(self.slot, 1))
    }

    fn is_dead(&self, owner: Owner) -> bool {
        // ORDERING: Acquire: the proof of death orders the dead one's stores before ours.
        owner.slot() as u32 != self.slot && self.other_is_dead.load(Ordering::Acquire)
    }
}

struct World {
    heap: Heap,
    peers: [Peer; 2],
}

impl World {
    fn new(geometry: Geometry) -> Arc<Self> {
        let peer = |slot| Peer { slot, other_is_dead: AtomicBool::new(false) };
        Arc::new(Self { heap: Heap::try_new(geometry).unwrap(), peers: [peer(0), peer(1)] })
    }

    fn map(&self, process: usize) -> Map<'_> {
        Map::new(self.heap.memory(), &self.peers[process], &|_| {})
    }
}

fn key(hash: u32, bucket: u32) -> InputHash {
    InputHash::new(hash, bucket).unwrap()
}

fn model(body: impl Fn() + Sync + Send + 'static) {
    crate::sync::model(2, body);
}

/// A record is freed, reused for another key and value, while a reader copies it: the value is the
/// key's own or none.
#[test]
fn loom_a_reused_record_is_never_taken_for_the_old_one() {
    reused_record(|map| map);
}

/// A reader without the quick first look: a record that has moved on is no damage if its bucket's
/// word has moved on too.
#[test]
fn loom_a_reused_record_is_no_damage() {
    reused_record(|map| map.verifying());
}

fn reused_record(reading: fn(Map<'_>) -> Map<'_>) {
    model(move || {
        let world = World::new(Geometry { records: 1, ..TINY });
        world.map(0).handle().unwrap().add(key(1, 0), 10).unwrap();
        let other = Arc::clone(&world);
        let writer = thread::spawn(move || {
            let mut handle = other.map(0).handle().unwrap();
            handle.remove(key(1, 0)).unwrap();
            handle.add(key(2, 0), 20).unwrap();
        });
        let seen = reading(world.map(1)).reader().get(key(1, 0)).unwrap();
        assert!(matches!(seen, None | Some(10)), "{seen:?}");
        writer.join().unwrap();
        assert_eq!(reading(world.map(1)).reader().get(key(2, 0)), Ok(Some(20)));
    });
}

/// An element that moves (collision, then crop) is found at every moment.
#[test]
fn loom_a_moving_element_is_always_found() {
    model(|| {
        let world = World::new(Geometry { records: 4, ..TINY });
        let mut handle = world.map(0).handle().unwrap();
        handle.set_ties(1);
        handle.add(key(1, 0), 10).unwrap();
        handle.add(key(2, 0), 20).unwrap();
        drop(handle);
        let other = Arc::clone(&world);
        let writer = thread::spawn(move || {
            let mut handle = other.map(0).handle().unwrap();
            handle.add(key(3, 0), 30).unwrap();
        });
        assert_eq!(world.map(1).reader().get(key(1, 0)), Ok(Some(10)));
        assert_eq!(world.map(1).reader().get(key(2, 0)), Ok(Some(20)));
        writer.join().unwrap();
    });
}

/// An update is seen whole: old value or new, and once new, always new.
#[test]
fn loom_updates_are_seen_in_order() {
    model(|| {
        let world = World::new(TINY);
        world.map(0).handle().unwrap().add(key(1, 0), 10).unwrap();
        let other = Arc::clone(&world);
        let writer = thread::spawn(move || {
            other.map(0).handle().unwrap().update(key(1, 0), 11).unwrap();
        });
        let reader = world.map(1).reader();
        let first = reader.get(key(1, 0)).unwrap().unwrap();
        let second = reader.get(key(1, 0)).unwrap().unwrap();
        assert!(first <= second && second <= 11, "{first} then {second}");
        writer.join().unwrap();
    });
}

/// A miss is believed only if nobody wrote meanwhile: a key that moves between add and remove of
/// another is no miss.
#[test]
fn loom_two_writers_of_one_bucket_exclude_each_other() {
    model(|| {
        let world = World::new(Geometry { records: 4, ..TINY });
        let other = Arc::clone(&world);
        let writer =
            thread::spawn(move || other.map(0).handle().unwrap().add(key(1, 0), 10).map(|_| ()));
        let mine = world.map(1).handle().unwrap().add(key(1, 0), 20).map(|_| ());
        let theirs = writer.join().unwrap();
        assert_eq!(mine.is_ok() as u32 + theirs.is_ok() as u32, 1, "{mine:?} {theirs:?}");
        let value = if mine.is_ok() { 20 } else { 10 };
        assert_eq!(world.map(0).reader().get(key(1, 0)), Ok(Some(value)));
        world.map(0).check().unwrap();
    });
}

/// A commit that was never completed is rolled forward by whoever meets it, while a reader hits
/// behind it.
#[test]
fn loom_a_survivor_completes_the_dead() {
    model(|| {
        let world = World::new(Geometry { records: 4, ..TINY });
        let mut dead = world.map(0).handle().unwrap();
        let prepared = dead.prepare(key(1, 0)).unwrap();
        std::mem::forget(dead.commit(prepared, 10).unwrap());
        std::mem::forget(dead);
        world.peers[1].other_is_dead.store(true, Ordering::Release);
        let other = Arc::clone(&world);
        let writer = thread::spawn(move || {
            other.map(1).handle().unwrap().add(key(2, 0), 20).unwrap();
        });
        assert_eq!(world.map(1).reader().get(key(1, 0)), Ok(Some(10)));
        writer.join().unwrap();
        world.map(1).recover().unwrap();
        assert_eq!(world.map(1).check().unwrap().live, 2);
    });
}
