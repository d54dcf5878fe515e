//! Every case again with two to four real processes. They stay for all cases, hear by lines what to
//! do and when, and start at one moment of the clock they share, each a little later by chance.

use super::processes::{CHILD, PATIENCE, Segment};
use super::situations::{Answer, Outcome, PROCESS_ROUNDS, act, cast, ends};
use super::world::{SMALL, contents, key};
use crate::tier_cache::situations::{Case, Situation, cases};
use crate::tier_cache::step::{Fate, with_fate};
use crate::tier_cache::*;
use quintet_testkit::Rng;
use quintet_testkit::crash::{Child, report};
use std::collections::BTreeSet;
use std::time::Duration;

/// Nanoseconds of the clock that all processes of a machine share.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A child: acts when it is told to.
pub(super) fn actor(shared: &SharedMap) {
    let all: Vec<Vec<Case>> = Situation::ALL.into_iter().map(cases).collect();
    let mut handle = shared.map().handle().unwrap();
    handle.set_timeout(Duration::from_secs(5));
    report("ready");
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line).is_ok_and(|count| count > 0) {
        let words: Vec<u64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [situation, index, actor, start, seed] = words[..] else { panic!("{line}") };
        let action = cast(&all[situation as usize][index as usize], 4)[actor as usize];
        while now() < start {
            std::hint::spin_loop();
        }
        let began = now();
        let (answer, _) = with_fate(Fate::Dawdle(seed), None, || act(&mut handle, action));
        report(&format!("answer {} {began} {}", pack(answer), now()));
        line.clear();
    }
}

fn pack(answer: Answer) -> String {
    match answer {
        Answer::Done => "done".to_owned(),
        Answer::Value(None) => "none".to_owned(),
        Answer::Value(Some(value)) => value.to_string(),
        Answer::Exists => "exists".to_owned(),
        Answer::NotFound => "absent".to_owned(),
        Answer::Busy => "busy".to_owned(),
    }
}

fn unpack(text: &str) -> Answer {
    match text {
        "done" => Answer::Done,
        "none" => Answer::Value(None),
        "exists" => Answer::Exists,
        "absent" => Answer::NotFound,
        "busy" => Answer::Busy,
        value => Answer::Value(Some(value.parse().unwrap())),
    }
}

/// Takes everything out again.
fn empty(handle: &mut Handle<'_>) {
    for (hash, bucket) in contents(&handle.map()).into_keys() {
        handle.remove(key(hash, bucket)).unwrap();
    }
}

struct Met {
    outcome: Outcome,
    overlapped: bool,
}

/// One meeting.
fn meet(
    handle: &mut Handle<'_>,
    crew: &mut [Child],
    place: (usize, usize),
    case: &Case,
    random: &mut Rng,
) -> Met {
    empty(handle);
    for action in &case.before {
        assert_eq!(act(handle, *action), Answer::Done);
    }
    let start = now() + 150_000;
    for (actor, child) in crew.iter_mut().enumerate() {
        let (late, seed) = (start + random.u64(..3_000), random.u64(..1 << 40));
        child.tell(&format!("{} {} {actor} {late} {seed}", place.0, place.1));
    }
    let (mut answers, mut left, mut times) = (Vec::new(), BTreeSet::new(), Vec::new());
    for child in crew {
        loop {
            let line = child.line(PATIENCE).expect("an answer");
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words[at].parse::<u64>().unwrap();
            if words[0] == "left" {
                left.insert((number(1), number(2)));
                continue;
            }
            assert_eq!(words[0], "answer", "{line}");
            answers.push(unpack(words[1]));
            times.push((number(2), number(3)));
            break;
        }
    }
    let overlapped = times.iter().map(|time| time.0).max() < times.iter().map(|time| time.1).min();
    let map = handle.map();
    map.check().unwrap_or_else(|error| panic!("{error}: {case:?}"));
    Met { outcome: Outcome { answers, contents: contents(&map), left }, overlapped }
}

#[test]
fn processes_meet_in_every_situation() {
    let segment = Segment::new("meet");
    let shared = segment.create(Geometry { seats: 8, ..SMALL });
    let mut handle = shared.map().handle().unwrap();
    let hire = |_| {
        let child = Child::of_test(CHILD, &format!("meet {}", segment.name())).unwrap();
        assert_eq!(child.line(PATIENCE).as_deref(), Some("ready"));
        child
    };
    let mut crew: Vec<Child> = (0..4).map(hire).collect();
    let mut random = Rng::with_seed(5);
    let (mut meetings, mut overlapped) = (0, 0);
    let factor = if std::env::var("QUINTET_ALL_CASES").is_ok() { 10 } else { 1 };
    for (number, situation) in Situation::ALL.into_iter().enumerate() {
        for (index, case) in cases(situation).iter().enumerate() {
            for (actors, rounds) in (2..).zip(PROCESS_ROUNDS) {
                let ends = ends(case, actors);
                for _ in 0..rounds * factor {
                    let crew = &mut crew[..actors];
                    let met = meet(&mut handle, crew, (number, index), case, &mut random);
                    let got = met.outcome;
                    let fits = ends.contains(&got);
                    assert!(fits, "{case:?}, {actors} processes:\n{got:?}\nnot in\n{ends:#?}");
                    meetings += 1;
                    overlapped += met.overlapped as usize;
                }
            }
        }
    }
    println!("{meetings} meetings, in {overlapped} all were at work at the same time");
    assert!(overlapped * 20 > meetings, "{overlapped} of {meetings}");
}
