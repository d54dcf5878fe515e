//! Our map of plain data: histories of values that must stay together, counters that must add up,
//! and a table that tears its values, which must be caught.

use super::verdict::Verdict;
use super::{Check, Order, linear};
use quintet::copy_map::Handle;
use quintet::{Compute, CopyMap};
use quintet_testkit::conformance::{HandleUnderTest, TableUnderTest};
use quintet_testkit::model::{Kind, Op, Ret};
use quintet_testkit::stress::derive;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check { name: "histories of copies", run: histories },
        Check { name: "of one word, with one lock", run: tight_histories },
        Check { name: "of five words", run: wide_histories },
        Check { name: "copies are whole and add up", run: sums },
        Check { name: "torn copies are caught", run: torn },
    ]
}

fn histories(order: &Order) -> Verdict {
    linear::histories(order, || Map(CopyMap::<u64, Several<3>>::new()))
}

fn wide_histories(order: &Order) -> Verdict {
    linear::histories(order, || Map(CopyMap::<u64, Several<5>>::new()))
}

fn tight_histories(order: &Order) -> Verdict {
    let tight = || CopyMap::<u64, Several<1>>::builder().shards(1).max_load(0.85).build();
    linear::histories(order, || Map(tight()))
}

/// A table that copies words one by one, and confirms nothing: what is found there is as it should
/// be.
fn torn(order: &Order) -> Verdict {
    let tearing = || Tearing {
        values: (0..64).map(|_| [const { AtomicU64::new(0) }; 3]).collect(),
        writers: Mutex::new(()),
    };
    let verdict = linear::few(order, tearing);
    let caught = verdict.violations > 0;
    let notes = if caught { Vec::new() } else { vec!["a torn copy went unseen".to_owned()] };
    Verdict { violations: u64::from(!caught), notes, ..verdict }
}

/// Words that depend on the first one.
type Several<const WORDS: usize> = [u64; WORDS];

/// A number that nobody has put there: what half a value is taken for.
const TORN: u64 = 0x7042_7042_7042_7042;

fn several<const WORDS: usize>(number: u64) -> Several<WORDS> {
    std::array::from_fn(|word| match word {
        0 => number,
        word => number.rotate_left(7 * word as u32) ^ word as u64,
    })
}

fn number<const WORDS: usize>(value: Several<WORDS>) -> u64 {
    if value == several(value[0]) { value[0] } else { TORN }
}

/// Keys of a round.
const KEYS: u64 = 2_000;

/// All threads count on the same keys while others come and go, so that the map grows and shrinks:
/// no step is lost, and nobody sees half a value.
fn sums(order: &Order) -> Verdict {
    let start = Instant::now();
    let (mut operations, wrong) = (0, AtomicU64::new(0));
    let mut round = 0;
    while round < 3 || start.elapsed() < order.time {
        let map = CopyMap::<u64, Several<3>>::new();
        std::thread::scope(|scope| {
            for thread in 0..order.threads as u64 {
                let (map, wrong) = (&map, &wrong);
                let seed = derive(order.seed, round * 1_000 + thread);
                scope.spawn(move || wrong.fetch_add(add(map, thread, seed), Ordering::Relaxed));
            }
        });
        let all = order.threads as u64 * KEYS;
        let there: u64 = map.values().map(number).fold(0, u64::wrapping_add);
        wrong.fetch_add(there.abs_diff(all), Ordering::Relaxed);
        wrong.fetch_add(u64::from(map.len() as u64 != COUNTERS), Ordering::Relaxed);
        operations += all * 4;
        round += 1;
    }
    Verdict { operations, lost: Some(wrong.into_inner()), ..Verdict::default() }
}

/// Keys that are counted on.
const COUNTERS: u64 = 64;

/// Counts wrong answers.
fn add(map: &CopyMap<u64, Several<3>>, thread: u64, seed: u64) -> u64 {
    let (handle, mut wrong) = (map.handle(), 0);
    // Keys of its own: they come, and go again.
    let own = |step: u64| (thread + 1) << 32 | step;
    for step in 0..KEYS {
        let key = derive(seed, step) % COUNTERS;
        let next = |value| several(number::<3>(value).wrapping_add(1));
        let after = handle.update_or_insert(key, next, several(1));
        wrong += u64::from(number(after) == TORN);
        wrong += u64::from(handle.insert(own(step), several(step)).is_some());
        let other = derive(seed, !step) % COUNTERS;
        wrong += u64::from(handle.get(&other).is_some_and(|value| number(value) == TORN));
        if step >= KEYS / 2 {
            wrong += u64::from(handle.remove(&own(step)) != Some(several(step)));
            let former = step - KEYS / 2;
            wrong += u64::from(handle.remove(&own(former)) != Some(several(former)));
        }
    }
    // Every counter is there at the end.
    (0..COUNTERS).for_each(|key| {
        handle.get_or_insert(key, several(0));
    });
    wrong
}

/// A map as the test kit sees it.
struct Map<const WORDS: usize>(CopyMap<u64, Several<WORDS>>);

struct Access<'t, const WORDS: usize>(Handle<'t, u64, Several<WORDS>>);

impl<const WORDS: usize> TableUnderTest for Map<WORDS> {
    const OPS: &'static [Kind] = &[
        Kind::Get,
        Kind::Contains,
        Kind::Insert,
        Kind::InsertNew,
        Kind::GetOrInsert,
        Kind::Remove,
        Kind::FetchAdd,
        Kind::AddIfPresent,
    ];
    type Handle<'t> = Access<'t, WORDS>;

    fn handle(&self) -> Access<'_, WORDS> {
        Access(self.0.handle())
    }
}

impl<const WORDS: usize> HandleUnderTest for Access<'_, WORDS> {
    fn apply(&mut self, key: u64, op: Op) -> Ret {
        let map = &self.0;
        let add = |by: u64| move |value| several(number::<WORDS>(value).wrapping_add(by));
        Ret::Value(match op {
            Op::Get => map.get(&key).map(number),
            Op::Contains => return Ret::Flag(map.contains_key(&key)),
            Op::Insert(new) => map.insert(key, several(new)).map(number),
            Op::InsertNew(new) => return Ret::Flag(map.insert_new(key, several(new)).is_ok()),
            Op::GetOrInsert(new) => Some(number(map.get_or_insert(key, several(new)))),
            Op::Remove => map.remove(&key).map(number),
            Op::FetchAdd(by) => {
                let next = |found: Option<_>| {
                    Compute::Insert(found.map_or_else(|| several(by), |found| add(by)(found)))
                };
                map.compute(key, next).before.map(number)
            }
            Op::AddIfPresent(by) => {
                map.update(&key, add(by)).map(|new| number(new).wrapping_sub(by))
            }
            other => unreachable!("{other:?} is not offered"),
        })
    }
}

/// What the map would be without versions: writers have a lock, but readers load word by word.
struct Tearing {
    values: Vec<[AtomicU64; 3]>,
    writers: Mutex<()>,
}

struct TearingAccess<'t>(&'t Tearing);

impl TableUnderTest for Tearing {
    const OPS: &'static [Kind] = &[Kind::Get, Kind::Insert, Kind::Remove];
    type Handle<'t> = TearingAccess<'t>;

    fn handle(&self) -> TearingAccess<'_> {
        TearingAccess(self)
    }
}

impl TearingAccess<'_> {
    fn load(&self, key: u64, between: fn()) -> Option<u64> {
        let words = self.0.values[key as usize % 64].each_ref().map(|word| {
            between();
            word.load(Ordering::Relaxed)
        });
        (words != [0; 3]).then(|| number(words))
    }
}

impl HandleUnderTest for TearingAccess<'_> {
    fn apply(&mut self, key: u64, op: Op) -> Ret {
        let words = match op {
            Op::Insert(new) => several::<3>(new),
            Op::Remove => [0; 3],
            _ => return Ret::Value(self.load(key, std::thread::yield_now)),
        };
        let _lock = self.0.writers.lock();
        let before = self.load(key, || ());
        for (word, part) in self.0.values[key as usize % 64].iter().zip(words) {
            word.store(part, Ordering::Relaxed);
            std::thread::yield_now();
        }
        Ret::Value(before)
    }
}
