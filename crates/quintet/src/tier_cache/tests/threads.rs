//! Every case again with real threads: first and second start together, many times.

use super::situations::{Answer, act, in_order, outcome, set_up};
use crate::tier_cache::situations::{Case, Situation, cases};
use std::sync::Barrier;
use std::time::Duration;

/// Meetings per variant.
pub(super) const ROUNDS: usize = 20;

fn together(case: &Case, rounds: usize) {
    let ends = [in_order(case, &[0, 1]), in_order(case, &[1, 0])];
    for _ in 0..rounds {
        let world = set_up(case);
        let before = world.left().len();
        let gate = Barrier::new(2);
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let run = |process: usize, action| {
                let (world, gate) = (&world, &gate);
                scope.spawn(move || {
                    let mut handle = world.handle(process);
                    handle.set_timeout(Duration::from_secs(5));
                    gate.wait();
                    act(&mut handle, action)
                })
            };
            let running = [run(0, case.first), run(1, case.second)];
            running.map(|thread| thread.join().unwrap()).to_vec()
        });
        world.map(0).check().unwrap_or_else(|error| panic!("{error}: {case:?}"));
        let got = outcome(&world, answers, before);
        assert!(ends.contains(&got), "{case:?}:\n{got:?}\nnot in\n{ends:#?}");
    }
}

#[test]
fn threads_meet_in_every_situation() {
    for situation in Situation::ALL {
        let cases = cases(situation);
        cases.iter().for_each(|case| together(case, ROUNDS));
    }
}
