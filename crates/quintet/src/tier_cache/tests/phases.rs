//! What must hold at single stores, where the end of a run does not tell: the phase of the intent,
//! the versions that a miss relies on.

use super::situations::{act, set_up};
use super::world::{World, key};
use crate::tier_cache::situations::{Situation, cases};
use crate::tier_cache::step::{Fate, Point, with_fate};
use crate::tier_cache::*;

/// The phases in which a store may be made.
fn allowed(point: Point) -> &'static [Phase] {
    use Phase::{Done, Idle, Open, Planned, Sealed};
    match point {
        Point::ClearLists | Point::Open => &[Idle],
        Point::NameRecord | Point::TakeRecord | Point::Payload => &[Open],
        Point::ListWord | Point::Lock | Point::Relock => &[Open],
        Point::Body | Point::Planned | Point::Undo => &[Open],
        Point::Hole | Point::Sealed | Point::Reopen => &[Planned],
        Point::CellStore | Point::Live | Point::Kill | Point::Done => &[Sealed],
        Point::Delivered | Point::KillOut => &[Done],
        // Also when an operation leaves without effect.
        Point::Release | Point::Idle => &[Open, Done],
        Point::RecoverySeal | Point::RecoveryOpen => &[Planned],
        Point::RecoveryCell | Point::RecoveryLive => &[Sealed],
        Point::RecoveryKill | Point::RecoveryDone => &[Sealed],
        Point::RecoveryFree => &[Open],
        Point::RecoveryKillOut => &[Done],
        Point::RecoveryRelease | Point::RecoveryIdle => &[Open, Done],
        Point::RecoverySeat => &[Idle],
        _ => &[Idle, Open, Planned, Sealed, Done],
    }
}

/// In every case each store is made in its phase, also after a hole was lost to somebody else.
#[test]
fn stores_are_made_in_their_phase() {
    let mut lost = 0;
    for case in Situation::ALL.into_iter().flat_map(cases) {
        for disturbed in [false, true] {
            let world = set_up(&case);
            let (mut first, mut other) = (world.handle(0), world.handle(1));
            let (memory, number) = (world.map(0).memory(), first.seat());
            let mut disturb = disturbed;
            let mut look = |point: Point| {
                let phase = memory.seat(number).unwrap().phase().unwrap();
                assert!(allowed(point).contains(&phase), "{point:?} in {phase:?}: {case:?}");
                lost += (point == Point::Reopen) as usize;
                if point == Point::Hole && std::mem::take(&mut disturb) {
                    act(&mut other, case.second);
                }
            };
            with_fate(Fate::Each, Some(&mut look), || act(&mut first, case.first));
        }
    }
    assert!(lost > 0, "some hole was lost");
}

/// The same for the stores of a recoverer, whenever the first actor died.
#[test]
fn recoverers_store_in_their_phase_too() {
    let mut stores = 0;
    for case in Situation::ALL.into_iter().flat_map(cases) {
        for at in 0.. {
            let world = set_up(&case);
            let mut first = world.handle(0);
            let (memory, number) = (world.map(0).memory(), first.seat());
            let (_, points) = with_fate(Fate::Stop(at), None, || act(&mut first, case.first));
            std::mem::forget(first);
            world.kill(0);
            let mut look = |point: Point| {
                let phase = memory.seat(number).unwrap().phase().unwrap();
                let fits = allowed(point).contains(&phase);
                assert!(fits, "{point:?} in {phase:?}: {case:?} at {at}");
                stores += 1;
            };
            with_fate(Fate::Each, Some(&mut look), || world.map(1).recover()).0.unwrap();
            if at >= points {
                break;
            }
        }
    }
    assert!(stores > 1_000);
}

type Move = fn(&mut Handle<'_>);

/// Moves the key 3 of bucket 2 from its cell and back: it is the farthest member, which takes the
/// place of a base that is removed.
const MOVES: [Move; 3] = [
    |other| other.remove(key(5, 2)).unwrap(),
    |other| _ = super::world::add_tie(other, key(9, 2), 0, 9).unwrap(),
    |other| other.remove(key(9, 2)).unwrap(),
];

/// Slice 0 of bucket 2 holds 5 in its base, 1 and 3 as members.
fn before_the_moves() -> World {
    let world = World::new(Geometry { buckets: 8, window: 8, records: 40, seats: 4 });
    let mut other = world.handle(1);
    for hash in 1..=6 {
        super::world::add_tie(&mut other, key(hash, 2), 0, hash as u64).unwrap();
    }
    drop(other);
    world
}

/// Seeks the key 3 while each of the moves happens at some point of the search, for all points.
fn seek_amid_moves(step: impl Fn(&World, usize)) {
    let mut runs = 0;
    for places in (0..16).flat_map(|a| (a..16).flat_map(move |b| (b..16).map(move |c| [a, b, c]))) {
        let world = before_the_moves();
        let first = world.handle(0);
        let mut passed = 0;
        let mut meanwhile = |_| {
            for (number, place) in places.iter().enumerate() {
                if *place == passed {
                    step(&world, number);
                }
            }
            passed += 1;
        };
        let sought = || first.get(key(3, 2));
        let (found, _) = with_fate(Fate::Each, Some(&mut meanwhile), sought);
        assert_eq!(found, Ok(Some(3)), "moves at {places:?}");
        runs += 1;
    }
    assert!(runs > 500);
}

/// A key that others move back and forth while it is sought is never missed: the miss is not
/// believed, since the versions have moved on.
#[test]
fn a_key_on_the_move_is_no_miss() {
    seek_amid_moves(|world, number| MOVES[number](&mut world.handle(1)));
}

/// The same if everybody who moves it dies with the bucket held, and a recoverer releases it.
#[test]
fn a_key_on_the_move_by_the_dead_is_no_miss() {
    // Where each operation has made its stores and has yet to say so.
    let scratch = before_the_moves();
    let sealed = MOVES.map(|step| {
        let (mut passed, mut at) = (0, None);
        let mut look = |point| {
            at = at.or((point == Point::Done).then_some(passed));
            passed += 1;
        };
        let mut handle = scratch.handle(1);
        with_fate(Fate::Each, Some(&mut look), || step(&mut handle));
        at.unwrap()
    });
    seek_amid_moves(|world, number| {
        let process = number + 1;
        let mut dying = world.handle(process);
        with_fate(Fate::Stop(sealed[number]), None, || MOVES[number](&mut dying));
        std::mem::forget(dying);
        world.kill(process);
        world.map(4).recover().unwrap();
    });
}

/// Equal keys in neighbouring buckets: a cell that was this bucket's member when the base was read
/// is the neighbour's when it is read itself.
#[test]
fn a_neighbours_member_with_the_same_key_is_no_hit() {
    for at in 0.. {
        let world = World::new(Geometry { buckets: 8, window: 8, records: 40, seats: 4 });
        let (first, mut other) = (world.handle(0), world.handle(1));
        let add = |other: &mut Handle<'_>, hash, bucket| {
            super::world::add_tie(other, key(hash, bucket), 0, (bucket * 100 + hash) as u64)
                .unwrap()
        };
        // Slice 0: bucket 2 has its base in cell 2 and one in cell 3; bucket 1 has its own there.
        (1..=4).for_each(|hash| _ = add(&mut other, hash, 2));
        assert_eq!(add(&mut other, 1, 1).slice(), 0);
        add(&mut other, 50, 1);
        let mut meanwhile = |_| {
            other.remove(key(1, 2)).unwrap();
            add(&mut other, 51, 1);
            let memory = world.map(0).memory();
            let cell = memory.cell(memory.at(0, 3));
            assert_eq!((cell.key, cell.cbits.back()), (1, Some(2)), "it went there");
        };
        let sought = || first.get(key(1, 2));
        let (found, points) = with_fate(Fate::Inject(at), Some(&mut meanwhile), sought);
        assert!(matches!(found, Ok(None | Some(201))), "{found:?} at {at}");
        if at >= points {
            assert!(at > 3);
            return;
        }
    }
}

/// Whatever a dead actor left, an element that is there before and after its operation is found at
/// every point of the recovery.
#[test]
fn present_keys_are_found_during_a_recovery() {
    let mut looks = 0;
    for case in Situation::ALL.into_iter().flat_map(cases) {
        let before = set_up(&case).contents();
        let after = super::situations::in_order(&case, &[0]).contents;
        for at in 0.. {
            let world = set_up(&case);
            let mut first = world.handle(0);
            let (_, points) = with_fate(Fate::Stop(at), None, || act(&mut first, case.first));
            std::mem::forget(first);
            world.kill(0);
            let mut reader = world.map(2).reader();
            reader.set_timeout(std::time::Duration::ZERO);
            let mut look = |point: Point| {
                for (hash, bucket) in before.keys().filter(|name| after.contains_key(name)) {
                    let found = reader.get(key(*hash, *bucket));
                    assert!(matches!(found, Ok(Some(_))), "{found:?} at {at}, {point:?}: {case:?}");
                    looks += 1;
                }
            };
            with_fate(Fate::Each, Some(&mut look), || world.map(1).recover()).0.unwrap();
            if at >= points {
                break;
            }
        }
    }
    assert!(looks > 10_000);
}

/// The only record is freed and used again for another key, at each point of a lookup: the value is
/// the key's own, or none.
#[test]
fn a_reused_record_is_not_taken_for_the_old_one() {
    for at in 0.. {
        let world = World::new(Geometry { buckets: 8, window: 8, records: 1, seats: 4 });
        let (first, mut other) = (world.handle(0), world.handle(1));
        other.add(key(1, 2), 10).unwrap();
        let mut meanwhile = |_| {
            other.remove(key(1, 2)).unwrap();
            other.add(key(2, 2), 20).unwrap();
        };
        let sought = || first.get(key(1, 2));
        let (found, points) = with_fate(Fate::Inject(at), Some(&mut meanwhile), sought);
        assert!(matches!(found, Ok(None | Some(10))), "{found:?} at {at}");
        if at >= points {
            assert!(at > 3);
            return;
        }
    }
}
