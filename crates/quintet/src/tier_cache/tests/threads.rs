//! Every case again with real threads: two to four start together, dawdling at random before their
//! stores.

use super::situations::{Answer, act, cast, ends, outcome, set_up};
use crate::tier_cache::situations::{Case, Situation, cases};
use crate::tier_cache::step::{Fate, with_fate};
use std::sync::Barrier;
use std::time::Duration;

/// Meetings of 2, 3 and 4 threads per variant.
pub(super) const ROUNDS: [usize; 3] = [20, 5, 5];

pub(super) fn together(case: &Case, actors: usize, rounds: usize) {
    let ends = ends(case, actors);
    let cast = cast(case, actors);
    for round in 0..rounds as u64 {
        let world = set_up(case);
        let before = world.left().len();
        let gate = Barrier::new(actors);
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let run = |(actor, action): (usize, &crate::tier_cache::situations::Action)| {
                let (world, gate, action) = (&world, &gate, *action);
                scope.spawn(move || {
                    let mut handle = world.handle(actor);
                    handle.set_timeout(Duration::from_secs(5));
                    gate.wait();
                    let fate = Fate::Dawdle(round << 8 | actor as u64);
                    with_fate(fate, None, || act(&mut handle, action)).0
                })
            };
            let running: Vec<_> = cast.iter().enumerate().map(run).collect();
            running.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        world.map(0).check().unwrap_or_else(|error| panic!("{error}: {case:?}"));
        let got = outcome(&world, answers, before);
        assert!(ends.contains(&got), "{case:?}, {actors} actors:\n{got:?}\nnot in\n{ends:#?}");
    }
}

#[test]
fn threads_meet_in_every_situation() {
    for situation in Situation::ALL {
        for case in cases(situation) {
            (2..).zip(ROUNDS).for_each(|(actors, rounds)| together(&case, actors, rounds));
        }
    }
}
