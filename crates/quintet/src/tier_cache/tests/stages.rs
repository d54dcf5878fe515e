//! The three stages of adding, by different threads and over the death of one.

use super::world::{SMALL, World, contents, key};
use crate::sync::{AtomicBool, AtomicUsize, Ordering};
use crate::tier_cache::*;
use std::collections::BTreeMap;
use std::time::Duration;

const ROOMY: Geometry = Geometry { buckets: 64, window: 16, records: 400, seats: 24 };

fn inputs(count: u32) -> Vec<InputHash> {
    (1..=count).map(|hash| key(hash, hash % ROOMY.buckets)).collect()
}

/// Stage 1 for all, then stage 2 for all: they are found by token and by hash, and their buckets
/// are held until stage 3.
#[test]
fn a_batch_of_stages_one_and_two() {
    let world = World::new(ROOMY);
    let map = world.map(0);
    let stages = Stages::new(map, 20);
    let inputs = inputs(16);
    let prepared = stages.prepare_many(&inputs);
    assert_eq!(stages.pending(), 0, "the first stage holds nothing");
    let tokens = stages.commit_many(prepared.into_iter().zip(100..));
    assert_eq!(stages.pending(), 16);
    let mut reader = map.reader();
    reader.set_timeout(Duration::ZERO);
    for (at, (token, input)) in tokens.iter().zip(&inputs).enumerate() {
        let token = token.as_ref().unwrap();
        assert_eq!(token.input(), *input);
        assert_eq!(reader.get(*token), Ok(Some(100 + at as u64)), "a hit waits for nobody");
        assert_eq!(reader.get(*input), Ok(Some(100 + at as u64)));
        let absent = key(1000, input.bucket());
        assert_eq!(reader.get(absent), Err(MapError::Busy), "a miss in a held bucket waits");
    }
    assert_eq!(stages.complete_all(), 16);
    assert_eq!(reader.get(key(1000, 1)), Ok(None));
    assert!(stages.prepare_many(&[key(1, ROOMY.buckets)])[0].is_err());
    drop(stages);
    assert_eq!(map.check().unwrap().live, 16);
}

/// More adds than seats, all into few buckets, and nobody serves: whoever commits completes what
/// stands in its way.
#[test]
fn without_service_nobody_waits_for_it() {
    let world = World::new(ROOMY);
    let stages = Stages::new(world.map(0), 3);
    for hash in 1..=30 {
        let prepared = stages.prepare_many(&[key(hash, hash % 2)]);
        for token in stages.commit_many(prepared.into_iter().zip([hash as u64])) {
            assert_eq!(world.map(1).reader().get(token.unwrap()), Ok(Some(hash as u64)));
        }
        assert!(stages.pending() <= 3);
    }
    drop(stages);
    assert_eq!(world.map(0).check().unwrap().live, 30);
    assert_eq!(world.map(0).handle().unwrap().seat(), 0, "all seats were given back");
}

/// A key that is there is refused, and its bucket is not held for it.
#[test]
fn what_is_refused_is_not_pending() {
    let world = World::new(ROOMY);
    let stages = Stages::new(world.map(0), 4);
    let add = || stages.commit_many(stages.prepare_many(&[key(5, 5)]).into_iter().zip([1]));
    assert!(add()[0].is_ok());
    stages.complete_all();
    assert_eq!(add(), [Err(MapError::Exists)]);
    assert_eq!(stages.pending(), 0);
}

/// Threads that add, threads that serve: everything is there or has left once, nothing is pending.
#[test]
fn service_threads_complete_what_others_begin() {
    let world = World::new(ROOMY);
    let map = world.map(0);
    let stages = Stages::new(map, 8);
    let (adders, each) = (3, 60);
    let served: usize = std::thread::scope(|scope| {
        let service: Vec<_> = (0..2).map(|_| scope.spawn(|| stages.run_service())).collect();
        let work = |adder: u32| {
            let stages = &stages;
            move || {
                let keys: Vec<_> = (0..each).map(|at| adder * 1000 + at + 1).collect();
                for batch in keys.chunks(8) {
                    let inputs: Vec<_> = batch.iter().map(|hash| key(*hash, hash % 64)).collect();
                    let values = batch.iter().map(|hash| *hash as u64);
                    let prepared = stages.prepare_many(&inputs);
                    let tokens = stages.commit_many(prepared.into_iter().zip(values));
                    assert!(tokens.iter().all(Result::is_ok), "{tokens:?}");
                }
            }
        };
        let adding: Vec<_> = (0..adders).map(|adder| scope.spawn(work(adder))).collect();
        adding.into_iter().for_each(|thread| thread.join().unwrap());
        stages.stop();
        service.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(stages.pending(), 0);
    assert!(served <= (adders * each) as usize);
    drop(stages);
    let expected: BTreeMap<_, _> = (0..adders)
        .flat_map(|adder| (0..each).map(move |at| adder * 1000 + at + 1))
        .map(|hash| ((hash, hash % 64), hash as u64))
        .collect();
    // Some had to leave full windows: handed out once each, by whoever completed.
    let mut seen = contents(&map);
    assert!(seen.len() < expected.len());
    for Left { input, value, .. } in world.left() {
        assert_eq!(seen.insert((input.hash(), input.bucket()), value), None);
    }
    assert!(seen == expected);
    map.check().unwrap();
}

/// A process dies with adds that nobody has completed. Each seat's intent tells the survivors what
/// is left to do.
#[test]
fn a_killed_adders_stage_is_completed_by_others() {
    let world = World::new(SMALL);
    let mut other = world.handle(0);
    // Two in a bucket, so that the third usurps and displaces.
    (1..=2).for_each(|hash| _ = other.add(key(hash, 3), hash as u64).unwrap());
    let dying = Stages::new(world.map(1), 3);
    let prepared = dying.prepare_many(&[key(7, 3), key(8, 6)]);
    let tokens = dying.commit_many(prepared.into_iter().zip([70, 80]));
    assert_eq!(dying.pending(), 2);
    world.kill(1);
    std::mem::forget(dying);
    // Whoever needs the bucket completes the stage and goes on.
    other.add(key(9, 3), 9).unwrap();
    assert_eq!(other.get(tokens[0].unwrap()), Ok(Some(70)));
    assert_eq!(other.get(key(8, 6)), Ok(Some(80)));
    assert_eq!(other.get(key(100, 6)), Ok(None), "the lookup has completed it");
    drop(other);
    world.map(0).recover().unwrap();
    assert_eq!(world.map(0).check().unwrap().live, 5);
    let seats: Vec<_> = (0..SMALL.seats).map(|_| world.map(0).handle().unwrap()).collect();
    assert_eq!(seats.len(), 4, "the dead one's seats are free");
}

/// The sink unwinds in a service thread: its seat is free, the others go on.
#[test]
fn a_sink_that_unwinds_takes_nothing_with_it() {
    let heap = Heap::try_new(SMALL).unwrap();
    let peer = Forking(AtomicUsize::new(0));
    let angry = AtomicBool::new(true);
    let sink = |_: Left| assert!(!angry.load(Ordering::Relaxed), "no more");
    let map = Map::new(heap.memory(), &peer, &sink);
    let stages = Stages::new(map, 2);
    let mut unwound = 0;
    for hash in 1..=40 {
        let add = || stages.commit_many(stages.prepare_many(&[key(hash, 2)]).into_iter().zip([1]));
        let added = std::panic::catch_unwind(std::panic::AssertUnwindSafe(add));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| stages.complete_all()));
        assert!(added.is_err() || added.unwrap()[0].is_ok());
        unwound += u32::from(done.is_err());
    }
    assert!(unwound > 10, "{unwound}");
    angry.store(false, Ordering::Relaxed);
    let added = stages.commit_many(stages.prepare_many(&[key(99, 3)]).into_iter().zip([1]));
    assert!(added[0].is_ok(), "{added:?}");
    drop(stages);
    map.check().unwrap();
}

/// A process that can be told that it was forked.
struct Forking(AtomicUsize);

impl Peers for Forking {
    fn me(&self) -> Option<Owner> {
        Some(Owner::new(0, 1))
    }

    fn is_dead(&self, _: Owner) -> bool {
        false
    }

    fn forks(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// What is committed and comes along in a fork is the parent's to complete: the child that drops it
/// stores nothing.
#[test]
fn a_forked_child_completes_nothing_of_its_parents() {
    let heap = Heap::try_new(SMALL).unwrap();
    let peer = Forking(AtomicUsize::new(0));
    let sink = |_: Left| {};
    let map = Map::new(heap.memory(), &peer, &sink);
    let mut handle = map.handle().unwrap();
    let prepared = handle.prepare(key(1, 3)).unwrap();
    let committed = handle.commit(prepared, 1).unwrap();
    let stages = Stages::new(map, 1);
    let staged = stages.commit_many(stages.prepare_many(&[key(2, 5)]).into_iter().zip([2]));
    assert!(staged[0].is_ok());
    peer.0.store(1, Ordering::Relaxed);
    drop(committed);
    assert_eq!((stages.complete_all(), stages.pending()), (1, 0), "dropped, which changes nothing");
    for bucket in [3, 5] {
        assert!(heap.memory().control(bucket).owner().is_some(), "{bucket} is held by the parent");
    }
    // The child adds by a seat of its own.
    let own = stages.commit_many(stages.prepare_many(&[key(3, 7)]).into_iter().zip([3]));
    assert!(own[0].is_ok(), "{own:?}");
}
