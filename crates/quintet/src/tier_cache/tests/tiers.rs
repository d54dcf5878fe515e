//! Three tiers: the 24 situations again, moves and whatever can meet them, and histories across
//! moves.

use super::crashes::two_deaths;
use super::situations::{act, inject, kill, set_up};
use super::threads::together;
use super::world::{World, key};
use crate::tier_cache::situations::{Case, Situation, cases, moves, tiered};
use crate::tier_cache::step::{Fate, with_fate};
use crate::tier_cache::*;
use quintet_testkit::conformance::{self, HandleUnderTest, TableUnderTest};
use quintet_testkit::model::{Kind, Op, Ret};
use std::time::Duration;

fn sum(cases: impl IntoIterator<Item = Case>, mode: fn(&Case) -> usize) -> usize {
    cases.into_iter().map(|case| mode(&case)).sum()
}

/// The second operation at every point of the first.
#[test]
fn the_24_situations_in_three_tiers() {
    let runs: usize = Situation::ALL.into_iter().map(|which| sum(tiered(which), inject)).sum();
    println!("{runs} interleavings");
    assert!(runs > 10_000);
}

/// The first actor dies at every point, then the second acts.
#[test]
fn deaths_in_the_24_situations_in_three_tiers() {
    let runs: usize = Situation::ALL.into_iter().map(|which| sum(tiered(which), kill)).sum();
    println!("{runs} deaths");
    assert!(runs > 10_000);
}

/// A move, and whatever can meet it: injected at every point, and with the mover killed at every
/// point.
#[test]
fn what_meets_a_move() {
    let (injected, killed) = (sum(moves(), inject), sum(moves(), kill));
    println!("{injected} interleavings, {killed} deaths");
    assert!(injected > 5_000 && killed > 5_000);
}

/// The mover dies, and so does who recovers it.
#[test]
fn recoverers_of_moves_die_too() {
    let runs = sum(moves(), |case| two_deaths(case, 7));
    println!("{runs} pairs of deaths");
    assert!(runs > 10_000);
}

/// Threads that move and threads that do something else start together.
#[test]
fn threads_meet_a_move() {
    for case in moves() {
        (2..).zip([6, 3, 2]).for_each(|(actors, rounds)| together(&case, actors, rounds));
    }
}

/// Whoever is there before and after a move is found at every store of it, and at every store of
/// its recovery.
#[test]
fn a_key_is_found_at_every_instant_of_a_move() {
    let mut looks = 0;
    for case in moves().into_iter().chain(Situation::ALL.into_iter().flat_map(cases)) {
        let before = set_up(&case).contents();
        let after = super::situations::in_order(&case, &[0]).contents;
        let stay: Vec<_> = before.keys().filter(|name| after.contains_key(name)).copied().collect();
        let world = set_up(&case);
        let mut reader = world.map(2).reader();
        reader.set_timeout(Duration::ZERO);
        let mut look = |point| {
            for (hash, bucket) in &stay {
                let found = reader.get(key(*hash, *bucket));
                assert!(matches!(found, Ok(Some(_))), "{found:?} at {point:?}: {case:?}");
                looks += 1;
            }
        };
        let mut first = world.handle(0);
        with_fate(Fate::Each, Some(&mut look), || act(&mut first, case.first));
    }
    assert!(looks > 10_000);
}

/// However often a key was moved, set and moved again: once it is removed it is gone from every
/// tier.
#[test]
fn a_removed_key_never_comes_back() {
    let world = World::with_tiers(Geometry { buckets: 4, window: 4, records: 60, seats: 2 }, 4);
    let mut handle = world.handle(0);
    let mut dice = 1u64;
    for round in 0..40_000u32 {
        dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let hash = (dice >> 33) as u32 % 12 + 1;
        let input = key(hash, hash % 4);
        handle.set_tick(round);
        let done = match dice >> 60 {
            0..5 => handle.set(input, round as u64).map(|_| ()),
            5..9 => handle.demote(input),
            9..11 => handle.promote(input),
            11..13 => handle.add(input, 1).map(|_| ()),
            _ => {
                let there = handle.get(input).unwrap().is_some();
                let removed = handle.remove(input);
                assert_eq!(removed.is_ok(), there);
                assert_eq!(handle.get(input), Ok(None), "round {round}");
                Ok(())
            }
        };
        assert!(matches!(done, Ok(()) | Err(MapError::NotFound | MapError::Exists)), "{done:?}");
        if round % 64 == 0 {
            world.map(0).check().unwrap();
        }
    }
    drop(handle);
    world.map(0).check().unwrap();
}

/// A chain through every tier, and out of the last one.
#[test]
fn full_windows_push_down_and_out() {
    let geometry = Geometry { buckets: 1, window: 2, records: 40, seats: 1 };
    let world = World::with_tiers(geometry, 3);
    let mut handle = world.handle(0);
    for hash in 1..=12 {
        handle.set_tick(hash);
        handle.add(key(hash, 0), hash as u64).unwrap();
        world.map(0).check().unwrap();
    }
    assert!(world.left().is_empty(), "two slices of two cells in three tiers hold twelve");
    assert_eq!(world.contents().len(), 12);
    handle.set_tick(13);
    handle.add(key(13, 0), 13).unwrap();
    let left = world.left();
    assert_eq!((left.len(), world.contents().len()), (1, 12));
    assert!(left[0].value <= 4, "one of the oldest: {left:?}");
}

/// In windows that hold everything, whoever works on them.
struct Table(World);

impl TableUnderTest for Table {
    const OPS: &'static [Kind] = &[Kind::Get, Kind::InsertNew, Kind::Replace, Kind::Delete];
    type Handle<'t> = Access<'t>;

    fn handle(&self) -> Access<'_> {
        let mut handle = self.0.map(0).handle().unwrap();
        handle.set_timeout(Duration::from_secs(20));
        Access { handle, turn: 0 }
    }

    fn entries(&self) -> Option<usize> {
        Some(self.0.map(0).check().unwrap().live as usize)
    }
}

struct Access<'t> {
    handle: Handle<'t>,
    turn: u64,
}

impl HandleUnderTest for Access<'_> {
    fn apply(&mut self, number: u64, op: Op) -> Ret {
        let place = |number: u64| key(number as u32 + 1, (number * 7 % 5) as u32);
        let input = place(number);
        // Moves change nothing that anybody can see: of this key, and of its neighbours.
        self.turn += 1;
        let moved = match self.turn % 4 {
            0 => self.handle.promote(input),
            1 => self.handle.demote(place(number ^ 1)),
            _ => self.handle.demote(input),
        };
        assert!(matches!(moved, Ok(()) | Err(MapError::NotFound)), "{moved:?}");
        let answer = match op {
            Op::Get => self.handle.get(input).map(Ret::Value),
            Op::InsertNew(value) => self.handle.add(input, value).map(|_| Ret::Flag(true)),
            Op::Replace(value) => self.handle.update(input, value).map(|_| Ret::Flag(true)),
            Op::Delete => self.handle.remove(input).map(|()| Ret::Flag(true)),
            other => panic!("not offered: {other:?}"),
        };
        match answer {
            Err(MapError::Exists | MapError::NotFound) => Ret::Flag(false),
            other => other.unwrap(),
        }
    }
}

#[test]
fn histories_across_moves_are_linearizable() {
    let geometry = Geometry { buckets: 5, window: 32, records: 200, seats: 20 };
    conformance::linearizable(|_| Table(World::with_tiers(geometry, 3)));
}
