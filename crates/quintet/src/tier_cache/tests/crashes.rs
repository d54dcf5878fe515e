//! Crashes of crashes: the first actor dies at its n-th store, whoever recovers it dies at its
//! m-th.

use super::situations::{Answer, Outcome, act, in_order, orders, outcome, performed, set_up};
use super::world::{World, key};
use crate::tier_cache::situations::{Action, Case, Situation, cases};
use crate::tier_cache::step::{Fate, Point, with_fate};
use crate::tier_cache::wait::Wait;
use crate::tier_cache::*;
use std::time::Duration;

/// First dies at n, second at m, a third recovers. Every prefix of the order is a legal end.
pub(super) fn two_deaths(case: &Case, stride: usize) -> usize {
    let ends = [
        in_order(case, &[]),
        in_order(case, &[0]),
        in_order(case, &[1]),
        in_order(case, &[0, 1]),
        in_order(case, &[1, 0]),
    ];
    let mut runs = 0;
    for at in 0.. {
        let mut last = false;
        for then in (at % stride..).step_by(stride) {
            let world = set_up(case);
            let before = world.left().len();
            let (mut first, mut second) = (world.handle(0), world.handle(1));
            let (_, points) = with_fate(Fate::Stop(at), None, || act(&mut first, case.first));
            std::mem::forget(first);
            world.kill(0);
            let (_, more) = with_fate(Fate::Stop(then), None, || act(&mut second, case.second));
            std::mem::forget(second);
            world.kill(1);
            world.map(2).recover().unwrap();
            let report = world.map(2).check();
            report.unwrap_or_else(|error| panic!("{error}: {case:?} at {at}, {then}"));
            let got = outcome(&world, Vec::new(), before);
            let fits = ends.iter().any(|end| got.contents == end.contents && got.left == end.left);
            assert!(fits, "{case:?} at {at}, {then}:\n{got:?}\nnot in\n{ends:#?}");
            runs += 1;
            last = at >= points;
            if then >= more {
                break;
            }
        }
        if last {
            return runs;
        }
    }
    unreachable!()
}

#[test]
fn recoverers_die_too() {
    let mut runs = 0;
    for situation in Situation::ALL {
        for case in cases(situation) {
            runs += two_deaths(&case, 3);
        }
    }
    println!("{runs} pairs of deaths");
    assert!(runs > 10_000);
}

/// How a case may end if its first operation may not have happened, its second has, and a third has
/// unless it was busy.
fn ends_with_a_third(case: &Case, third: Action) -> Vec<Outcome> {
    let cast = [case.first, case.second, third];
    let subsets = [&[1][..], &[0, 1], &[1, 2], &[0, 1, 2]];
    let named = |subset: &[usize]| -> Vec<Outcome> {
        let order = |order: &Vec<usize>| order.iter().map(|at| subset[*at]).collect::<Vec<_>>();
        let all = orders(subset.len());
        all.iter().map(|places| performed(case, &cast, &order(places))).collect()
    };
    subsets.into_iter().flat_map(named).collect()
}

/// First dies at n. Whoever recovers it dies at m. A second writer is at work in the bucket when,
/// at each of its points, a second recoverer comes and a third writer tries the same bucket.
fn second_waiter(case: &Case, n: usize) -> (usize, bool) {
    let Action::Add { bucket, .. } = case.first else { return (0, true) };
    let third = Action::Add { hash: 77, bucket, tie: 0, tick: 200, value: 770 };
    let ends = ends_with_a_third(case, third);
    let (mut runs, mut last) = (0, false);
    for m in 0.. {
        let mut recovered = false;
        for at in 0.. {
            let world = set_up(case);
            let before = world.left().len();
            let mut first = world.handle(0);
            let (_, points) = with_fate(Fate::Stop(n), None, || act(&mut first, case.first));
            std::mem::forget(first);
            world.kill(0);
            last = n >= points;
            let recover = || world.map(1).recover();
            let (_, needed) = with_fate(Fate::Stop(m), None, recover);
            recovered = m >= needed;
            world.kill(1);
            let mut second = world.handle(2);
            let mut other = world.handle(3);
            let mut answer = None;
            let mut meanwhile = |_| {
                // Busy if the second is the one that recovers just now.
                let _ = world.map(4).recover_dead(Wait::new(Duration::ZERO));
                answer = Some(act(&mut other, third));
            };
            let fate = Fate::Inject(at);
            let (mine, _) = with_fate(fate, Some(&mut meanwhile), || act(&mut second, case.second));
            drop((second, other));
            world.map(4).recover().unwrap();
            let report = world.map(4).check();
            report.unwrap_or_else(|error| panic!("{error}: {case:?} at {n}, {m}, {at}"));
            let theirs = answer.unwrap_or(Answer::Busy);
            let got = outcome(&world, vec![mine, theirs], before);
            let fits = |end: &Outcome| {
                end.answers[1..] == got.answers
                    && (&end.contents, &end.left) == (&got.contents, &got.left)
            };
            assert!(
                ends.iter().any(fits),
                "{case:?} at {n}, {m}, {at}:\n{got:?}\nnot in\n{ends:#?}"
            );
            runs += 1;
            if answer.is_none() {
                break;
            }
        }
        if recovered {
            break;
        }
    }
    (runs, last)
}

/// What a recoverer decided must hold for the next one, although others have been at work in the
/// bucket since.
#[test]
fn a_second_recoverer_comes_while_others_work() {
    let mut runs = 0;
    let add = |hash: u32| Action::Add { hash, bucket: 2, tie: 0, tick: 100, value: hash as u64 };
    // Both displace the same element into the same cell: what the second stores there is what the
    // dead one had planned.
    let before = cases(Situation::AddCollisionAndGet)[0].before.clone();
    let same_hole = Case { tiers: 1, before, shape: |_, _| {}, first: add(9), second: add(8) };
    let mut every_point = |case: &Case| {
        for n in 0.. {
            let (more, last) = second_waiter(case, n);
            runs += more;
            if last {
                break;
            }
        }
    };
    every_point(&same_hole);
    for situation in [
        Situation::AddCollisionSpace,
        Situation::AddCollisionAndEmpty,
        Situation::AddCollisionAndUpdate,
        Situation::UsurpAndUpdate,
        Situation::UsurpAndDelete,
    ] {
        let all = cases(situation);
        let fitting = all.iter().filter(|case| {
            matches!(case.first, Action::Add { .. }) && !matches!(case.second, Action::Get { .. })
        });
        fitting.take(2).for_each(&mut every_point);
    }
    println!("{runs} recoveries amid others' work");
    assert!(runs > 1_000);
}

/// Just before a recoverer takes the recovery word somebody else has done all the work, and the
/// seat has a living owner again, in mid-operation.
#[test]
fn a_late_recoverer_leaves_the_next_owner_alone() {
    let world = World::small();
    let mut dead = world.handle(0);
    let prepared = dead.prepare(key(1, 1)).unwrap();
    std::mem::forget(dead.commit(prepared, 10).unwrap());
    let number = dead.seat();
    std::mem::forget(dead);
    world.kill(0);
    let mut late = true;
    let mut meanwhile = |point| {
        if point == Point::RecoveryLock && std::mem::take(&mut late) {
            world.map(2).recover().unwrap();
            let mut next = world.handle(3);
            assert_eq!(next.seat(), number);
            let prepared = next.prepare(key(2, 1)).unwrap();
            std::mem::forget(next.commit(prepared, 20).unwrap());
            std::mem::forget(next);
        }
    };
    with_fate(Fate::Each, Some(&mut meanwhile), || world.map(1).recover()).0.unwrap();
    assert!(!late);
    let seat = world.map(1).memory().seat(number).unwrap();
    assert_eq!(seat.phase(), Ok(Phase::Sealed), "its operation is its own");
    assert_eq!(world.map(1).memory().control(1).owner(), Some(number));
}

/// While somebody alive recovers a seat nobody else does.
#[test]
fn a_living_recoverer_is_left_alone() {
    let world = World::small();
    let mut dead = world.handle(0);
    dead.add(key(2, 1), 20).unwrap();
    let prepared = dead.prepare(key(1, 1)).unwrap();
    std::mem::forget(dead.commit(prepared, 10).unwrap());
    std::mem::forget(dead);
    world.kill(0);
    let (mut at_work, mut refused) = (false, 0);
    let mut meanwhile = |point: Point| {
        if at_work {
            let other = world.map(2).recover_dead(Wait::new(Duration::ZERO));
            // Before the last store the seat is free, and there is nothing left to recover.
            assert!(other == Err(MapError::Busy) || point == Point::RecoveryUnlock, "{point:?}");
            refused += 1;
        }
        at_work |= point == Point::RecoveryLock;
    };
    with_fate(Fate::Each, Some(&mut meanwhile), || world.map(1).recover()).0.unwrap();
    assert!(refused > 3);
    world.map(1).check().unwrap();
}

/// The dead one may have freed a record that has a new user since: recovery does not free it again.
#[test]
fn a_record_freed_before_the_death_belongs_to_its_next_user() {
    let mut reused = 0;
    for n in 0.. {
        let world = World::new(Geometry { buckets: 8, window: 4, records: 2, seats: 4 });
        let (mut first, mut other) = (world.handle(0), world.handle(1));
        let one = key(1, 2);
        first.add(one, 10).unwrap();
        let (_, points) = with_fate(Fate::Stop(n), None, || first.update(one, 11));
        std::mem::forget(first);
        let records = world.map(1).memory();
        let free =
            |index| records.record(index).unwrap().state().state() == Some(RecordState::Free);
        reused += (0..2).any(free) as u32;
        if (0..2).any(free) {
            other.add(key(5, 6), 50).unwrap();
        }
        world.kill(0);
        world.map(2).recover().unwrap();
        let report = world.map(2).check();
        report.unwrap_or_else(|error| panic!("{error}: at {n}"));
        assert!(matches!(other.get(one), Ok(Some(10 | 11))), "at {n}");
        if n >= points {
            break;
        }
    }
    assert!(reused > 2, "the record was free before the end");
}

/// A seat that is not repaired is never handed out, and its words are free afterwards.
#[test]
fn joining_recovers_dead_seats_first() {
    let world = World::new(Geometry { buckets: 8, window: 4, records: 40, seats: 1 });
    let mut dead = world.handle(0);
    let prepared = dead.prepare(key(1, 1)).unwrap();
    std::mem::forget(dead.commit(prepared, 10).unwrap());
    std::mem::forget(dead);
    assert_eq!(world.map(1).handle().err(), Some(MapError::NoSeat), "alive: no doubt, no recovery");
    world.kill(0);
    let next = world.map(1).handle().unwrap();
    assert_eq!(next.get(key(1, 1)), Ok(Some(10)), "a committed add is completed");
    drop(next);
    world.map(1).check().unwrap();
}

/// A reader cannot recover: it hits behind a dead writer, and its misses are busy.
#[test]
fn a_reader_behind_a_dead_writer() {
    let world = World::small();
    let mut dead = world.handle(0);
    dead.add(key(2, 1), 20).unwrap();
    let prepared = dead.prepare(key(1, 1)).unwrap();
    std::mem::forget(dead.commit(prepared, 10).unwrap());
    std::mem::forget(dead);
    world.kill(0);
    let mut reader = world.map(1).reader();
    reader.set_timeout(Duration::ZERO);
    assert_eq!(reader.get(key(1, 1)), Ok(Some(10)));
    assert_eq!(reader.get(key(2, 1)), Ok(Some(20)));
    assert_eq!(reader.get(key(3, 1)), Err(MapError::Busy));
    assert_eq!(world.handle(1).get(key(3, 1)), Ok(None), "a handle recovers");
}
