//! Crashes of crashes: the first actor dies at its n-th store, whoever recovers it dies at its m-th.

use super::situations::{act, in_order, outcome, set_up};
use super::world::{World, key};
use crate::tier_cache::situations::{Case, Situation, cases};
use crate::tier_cache::step::{Fate, with_fate};
use crate::tier_cache::*;

/// First dies at n, second at m, a third recovers. Every prefix of the order is a legal end.
fn two_deaths(case: &Case, stride: usize) -> usize {
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
    reader.set_timeout(std::time::Duration::ZERO);
    assert_eq!(reader.get(key(1, 1)), Ok(Some(10)));
    assert_eq!(reader.get(key(2, 1)), Ok(Some(20)));
    assert_eq!(reader.get(key(3, 1)), Err(MapError::Busy));
    assert_eq!(world.handle(1).get(key(3, 1)), Ok(None), "a handle recovers");
}
