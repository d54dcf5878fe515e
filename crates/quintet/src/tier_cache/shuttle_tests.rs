//! Whole operations under shuttle: many schedules of many steps, on a map so small that every add
//! collides, usurps or drives somebody out.

use super::*;
use crate::sync::{Arc, AtomicBool, AtomicU64, Ordering, schedules, thread};

const TINY: Geometry = Geometry { buckets: 4, window: 3, records: 14, seats: 5 };
const SCHEDULES: usize = 2_000;

/// A process; it may be dead as far as the others are concerned.
struct Peer {
    slot: u32,
    dead: Arc<[AtomicBool; 5]>,
}

impl Peers for Peer {
    fn me(&self) -> Option<Owner> {
        Some(Owner::new(self.slot, 1))
    }

    fn is_dead(&self, owner: Owner) -> bool {
        self.dead.get(owner.slot()).is_some_and(|dead| dead.load(Ordering::Acquire))
    }
}

struct World {
    heap: Heap,
    peers: Vec<Peer>,
    /// Entries that left, by their number.
    left: AtomicU64,
}

impl World {
    fn new() -> Arc<Self> {
        let dead = Arc::new(std::array::from_fn(|_| AtomicBool::new(false)));
        let peer = |slot| Peer { slot, dead: Arc::clone(&dead) };
        let heap = Heap::try_new(TINY).unwrap();
        Arc::new(Self { heap, peers: (0..5).map(peer).collect(), left: AtomicU64::new(0) })
    }

    fn with<R>(&self, process: usize, body: impl FnOnce(&Map<'_>) -> R) -> R {
        let count = |_: Left| _ = self.left.fetch_add(1, Ordering::AcqRel);
        body(&Map::new(self.heap.memory(), &self.peers[process], &count))
    }
}

fn key(hash: u32, bucket: u32) -> InputHash {
    InputHash::new(hash, bucket).unwrap()
}

/// A worker on keys of its own: what it knows of them is true, unless one had to leave.
fn work(world: &World, worker: u32) -> u64 {
    world.with(worker as usize, |map| {
        let mut handle = map.handle().unwrap();
        handle.set_ties(worker as u64 + 3);
        let mut added = 0;
        for step in 0..4u32 {
            let input = key(worker * 16 + step + 1, (worker + step) % TINY.buckets);
            handle.set_tick(worker * 8 + step);
            handle.add(input, step as u64).unwrap();
            added += 1;
            match handle.get(input) {
                Ok(Some(value)) => assert_eq!(value, step as u64),
                // Driven out; the count below knows.
                other => assert_eq!(other, Ok(None)),
            }
            if step % 2 == 1 {
                added -= handle.remove(input).is_ok() as u64;
            } else {
                let _ = handle.update(input, step as u64);
            }
        }
        added
    })
}

/// Three writers whose windows overlap: nothing is lost but what left, and the map holds together.
#[test]
fn shuttle_tier_writers_in_overlapping_windows() {
    schedules(SCHEDULES, || {
        let world = World::new();
        let spawn = |worker| {
            let world = Arc::clone(&world);
            thread::spawn(move || work(&world, worker))
        };
        let threads: Vec<_> = (0..3).map(spawn).collect();
        let added: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        let report = world.with(4, |map| map.check().unwrap());
        assert_eq!(report.live as u64 + world.left.load(Ordering::Acquire), added);
    });
}

/// A writer dies with its bucket held; two others need it at the same time, and a third only reads
/// behind it.
#[test]
fn shuttle_tier_two_waiters_recover_the_dead() {
    schedules(SCHEDULES, || {
        let world = World::new();
        world.with(0, |map| {
            let mut dead = map.handle().unwrap();
            dead.add(key(1, 1), 10).unwrap();
            let prepared = dead.prepare(key(2, 1)).unwrap();
            std::mem::forget(dead.commit(prepared, 20).unwrap());
            std::mem::forget(dead);
        });
        world.peers[0].dead[0].store(true, Ordering::Release);
        let spawn = |worker: u32| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                world.with(worker as usize, |map| {
                    let mut handle = map.handle().unwrap();
                    handle.add(key(worker + 10, 1), 1).unwrap();
                    handle.remove(key(worker + 10, 1)).unwrap();
                    handle.add(key(worker + 20, 2), 1).unwrap();
                });
            })
        };
        let threads: Vec<_> = (1..3).map(spawn).collect();
        world.with(3, |map| {
            assert_eq!(map.reader().get(key(1, 1)), Ok(Some(10)));
            assert_eq!(map.reader().get(key(2, 1)), Ok(Some(20)));
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        world.with(3, |map| {
            map.recover().unwrap();
            assert_eq!(map.check().unwrap().live as u64 + world.left.load(Ordering::Acquire), 4);
        });
    });
}
