//! What must hold at single stores, where the end of a run does not tell: the phase of the intent, the versions that a miss relies on.

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

/// A key that others move back and forth while it is sought is never missed: the miss is not believed, since the versions have moved on.
#[test]
fn a_key_on_the_move_is_no_miss() {
    let mut runs = 0;
    for places in (0..16).flat_map(|a| (a..16).flat_map(move |b| (b..16).map(move |c| [a, b, c]))) {
        let world = World::new(Geometry { buckets: 8, window: 8, records: 40, seats: 4 });
        let (first, mut other) = (world.handle(0), world.handle(1));
        for hash in 1..=6 {
            super::world::add_tie(&mut other, key(hash, 2), 0, hash as u64).unwrap();
        }
        // Slice 0 holds 5 in its base, 1 and 3 as members; 3 is the farthest, which moves when the base is removed.
        let steps: [fn(&mut Handle<'_>); 3] = [
            |other| other.remove(key(5, 2)).unwrap(),
            |other| _ = super::world::add_tie(other, key(9, 2), 0, 9).unwrap(),
            |other| other.remove(key(9, 2)).unwrap(),
        ];
        let mut passed = 0;
        let mut meanwhile = |_| {
            for (place, step) in places.iter().zip(steps) {
                if *place == passed {
                    step(&mut other);
                }
            }
            passed += 1;
        };
        let sought = || first.get(key(3, 2));
        let (found, _) = with_fate(Fate::Each, Some(&mut meanwhile), sought);
        assert_eq!(found, Ok(Some(3)), "steps at {places:?}");
        runs += 1;
    }
    assert!(runs > 500);
}

/// The only record is freed and used again for another key, at each point of a lookup: the value is the key's own, or none.
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
