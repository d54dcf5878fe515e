//! The 24 situations, each with its variants, in two of the four modes: the second operation
//! injected at every point of the first, and the first actor killed at every point before the
//! second acts. `threads` and `meetings` are the other two.
//!
//! The oracle is the map itself, run in order: two operations that overlap must end as one of the
//! two orders does, in results, contents and departures; an operation whose actor dies has happened
//! or has not.

use super::world::{SMALL, World, add_tie, key};
use crate::tier_cache::situations::{Action, Case, Situation, cases};
use crate::tier_cache::step::{Fate, with_fate};
use crate::tier_cache::*;
use std::collections::{BTreeMap, BTreeSet};

/// What an action returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub(super) enum Answer {
    Done,
    Value(Option<u64>),
    Exists,
    NotFound,
    Busy,
}

/// What is left of a run that an observer can tell.
#[derive(Clone, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub(super) struct Outcome {
    pub(super) answers: Vec<Answer>,
    pub(super) contents: BTreeMap<(u32, u32), u64>,
    pub(super) left: BTreeSet<(u64, u64)>,
}

pub(super) fn act(handle: &mut Handle<'_>, action: Action) -> Answer {
    let answer = match action {
        Action::Add { hash, bucket, tie, tick, value } => {
            handle.set_tick(tick);
            add_tie(handle, key(hash, bucket), tie, value).map(|_| Answer::Done)
        }
        Action::Update { hash, bucket, value } => {
            handle.update(key(hash, bucket), value).map(|_| Answer::Done)
        }
        Action::Remove { hash, bucket } => handle.remove(key(hash, bucket)).map(|_| Answer::Done),
        Action::Get { hash, bucket } => handle.get(key(hash, bucket)).map(Answer::Value),
        Action::Set { hash, bucket, tick, value } => {
            handle.set_tick(tick);
            handle.set_ties(1);
            handle.set(key(hash, bucket), value).map(|_| Answer::Done)
        }
        Action::Demote { hash, bucket } => {
            handle.set_ties(1);
            handle.demote(key(hash, bucket)).map(|()| Answer::Done)
        }
        Action::Promote { hash, bucket } => {
            handle.set_ties(1);
            handle.promote(key(hash, bucket)).map(|()| Answer::Done)
        }
    };
    match answer {
        Ok(answer) => answer,
        Err(MapError::Exists) => Answer::Exists,
        Err(MapError::NotFound) => Answer::NotFound,
        Err(MapError::Busy) => Answer::Busy,
        Err(error) => panic!("{action:?}: {error}"),
    }
}

pub(super) fn set_up(case: &Case) -> World {
    let world = World::with_tiers(SMALL, case.tiers);
    let mut handle = world.handle(5);
    for action in &case.before {
        let answer = act(&mut handle, *action);
        // A full window may have sent it out, or to the last tier, before.
        let moved = matches!(action, Action::Demote { .. }) && answer == Answer::NotFound;
        assert!(answer == Answer::Done || moved, "{action:?} of {case:?}: {answer:?}");
    }
    drop(handle);
    world.map(5).check().unwrap();
    (case.shape)(&world.map(5), case);
    world
}

pub(super) fn outcome(world: &World, answers: Vec<Answer>, before: usize) -> Outcome {
    let left = world.left()[before..].iter().map(|left| (left.input.word(), left.value)).collect();
    Outcome { answers, contents: world.contents(), left }
}

/// The case's operations for so many actors: first, second, first again, second again.
pub(super) fn cast(case: &Case, actors: usize) -> Vec<Action> {
    [case.first, case.second].into_iter().cycle().take(actors).collect()
}

/// Every order of so many.
pub(super) fn orders(actors: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for next in 0..actors {
        let insert = |order: &Vec<usize>, at: usize| {
            let mut order = order.clone();
            order.insert(at, next);
            order
        };
        all = all.iter().flat_map(|order| (0..=next).map(|at| insert(order, at))).collect();
    }
    all
}

/// How the case may end with so many actors.
pub(super) fn ends(case: &Case, actors: usize) -> Vec<Outcome> {
    let mut ends: Vec<Outcome> =
        orders(actors).iter().map(|order| performed(case, &cast(case, actors), order)).collect();
    ends.sort();
    ends.dedup();
    ends
}

/// Runs `order` one after the other; answers are stored in the order of the case (first, second).
pub(super) fn in_order(case: &Case, order: &[usize]) -> Outcome {
    performed(case, &cast(case, 2), order)
}

/// Runs those of the cast that `order` names, one after the other. Who does not act counts as busy.
pub(super) fn performed(case: &Case, cast: &[Action], order: &[usize]) -> Outcome {
    let world = set_up(case);
    let before = world.left().len();
    let mut handle = world.handle(0);
    let mut answers = vec![Answer::Busy; cast.len()];
    for which in order {
        answers[*which] = act(&mut handle, cast[*which]);
    }
    drop(handle);
    world.map(0).check().unwrap_or_else(|error| panic!("{error}: {case:?}"));
    outcome(&world, answers, before)
}

/// The second operation at every point of the first. Returns the number of interleavings.
pub(super) fn inject(case: &Case) -> usize {
    let (forth, back) = (in_order(case, &[0, 1]), in_order(case, &[1, 0]));
    let alone = in_order(case, &[0]);
    for at in 0.. {
        let world = set_up(case);
        let before = world.left().len();
        let mut first = world.handle(0);
        let mut second = None;
        let mut other = world.handle(1);
        let action = case.second;
        let mut meanwhile = |point| second = Some((point, act(&mut other, action)));
        let fate = Fate::Inject(at);
        let (mine, points) = with_fate(fate, Some(&mut meanwhile), || act(&mut first, case.first));
        drop(other);
        drop(first);
        world.map(0).check().unwrap_or_else(|error| panic!("{error}: {case:?} at {at}"));
        let Some((point, theirs)) = second else {
            assert!(at >= points);
            return at;
        };
        let got = outcome(&world, vec![mine, theirs], before);
        let fits = got == forth || got == back || theirs == Answer::Busy && got == alone;
        assert!(
            fits,
            "{case:?} at point {at} ({point:?}):\n{got:?}\nneither\n{forth:?}\nnor\n{back:?}"
        );
        if theirs == Answer::Busy {
            // Behind a held bucket only misses and writes may give up.
            if let Action::Get { hash, bucket } = action {
                let present = |outcome: &Outcome| outcome.contents.contains_key(&(hash, bucket));
                let always =
                    present(&alone) && set_up(case).contents().contains_key(&(hash, bucket));
                assert!(!always, "{case:?}: a hit was busy at point {at} ({point:?})");
            }
        }
    }
    unreachable!()
}

/// The first actor dies before its n-th store, for all n; then the second acts. Returns the number
/// of runs.
pub(super) fn kill(case: &Case) -> usize {
    let happened = in_order(case, &[0, 1]);
    let (not, after) = (in_order(case, &[1]), in_order(case, &[1, 0]));
    for at in 0.. {
        let world = set_up(case);
        let before = world.left().len();
        let mut first = world.handle(0);
        let mut second = world.handle(1);
        let (_, points) = with_fate(Fate::Stop(at), None, || act(&mut first, case.first));
        std::mem::forget(first);
        world.kill(0);
        let theirs = act(&mut second, case.second);
        assert_ne!(theirs, Answer::Busy, "{case:?}: nobody alive holds anything, at {at}");
        drop(second);
        world.map(2).recover().unwrap();
        world.map(2).check().unwrap_or_else(|error| panic!("{error}: {case:?} at {at}"));
        let got = outcome(&world, vec![theirs], before);
        let fits = |order: &Outcome| {
            got.answers[0] == order.answers[1]
                && (&got.contents, &got.left) == (&order.contents, &order.left)
        };
        assert!(
            fits(&happened) || fits(&not) || fits(&after),
            "{case:?} at {at}:\n{got:?}\nneither\n{happened:?}\nnor\n{not:?}"
        );
        if at >= points {
            return at;
        }
    }
    unreachable!()
}

/// Meetings per variant of 2, 3 and 4 actors, together.
pub(super) fn meetings(rounds: [usize; 3]) -> usize {
    rounds.iter().sum()
}

/// Meetings of 2, 3 and 4 processes per variant.
pub(super) const PROCESS_ROUNDS: [usize; 3] = [6, 3, 3];

fn run(mode: fn(&Case) -> usize) -> BTreeMap<Situation, usize> {
    let mut table = BTreeMap::new();
    for situation in Situation::ALL {
        let cases = cases(situation);
        assert!(!cases.is_empty(), "{situation:?}");
        let runs = cases.iter().map(mode).sum::<usize>();
        table.insert(situation, runs);
    }
    table
}

/// Both modes for every situation. The table of `docs/tier_cache.md` says how many runs that is;
/// `QUINTET_BLESS=1` writes it anew.
#[test]
fn second_operation_and_death_at_every_point() {
    let (injected, killed) = (run(inject), run(kill));
    let mut table = String::from(
        "| | situation | variants | injected | killed | threads | processes |\n|---|---|---|---|---|---|---|\n",
    );
    for situation in Situation::ALL {
        let variants = cases(situation).len();
        let (number, title) = (situation.number(), situation.title());
        let (injected, killed) = (injected[&situation], killed[&situation]);
        let threads = variants * meetings(super::threads::ROUNDS);
        let processes = variants * meetings(PROCESS_ROUNDS);
        table += &format!(
            "| {number} | {title} | {variants} | {injected} | {killed} | {threads} | {processes} |\n"
        );
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/tier_cache.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (start, end) = ("<!-- table: written by the tests -->\n", "<!-- end of table -->");
    let (head, rest) = page.split_once(start).unwrap();
    let (old, tail) = rest.split_once(end).unwrap();
    if std::env::var("QUINTET_BLESS").is_ok() {
        std::fs::write(path, format!("{head}{start}{table}{end}{tail}")).unwrap();
    } else {
        assert_eq!(old, table, "run the tests once with QUINTET_BLESS=1");
    }
}
