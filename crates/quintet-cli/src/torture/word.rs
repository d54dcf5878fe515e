//! Our map of words: histories, and keys with one owner each, while the map grows and shrinks.

use super::verdict::Verdict;
use super::{Check, Order, linear};
use quintet::WordMap;
use quintet::word_map::Handle;
use quintet_testkit::conformance::{HandleUnderTest, TableUnderTest};
use quintet_testkit::model::{Kind, Op, Ret};
use quintet_testkit::stress::derive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check { name: "histories are linearizable", run: histories },
        Check { name: "with the least quota too", run: tight_histories },
        Check { name: "own keys, from a tiny table", run: own_keys },
    ]
}

fn histories(order: &Order) -> Verdict {
    linear::histories(order, || Words(WordMap::new()))
}

fn tight_histories(order: &Order) -> Verdict {
    linear::histories(order, || Words(WordMap::builder().max_load(0.8).m(1).build()))
}

/// Every thread inserts, changes and removes keys of its own and knows each answer; every round
/// begins with an empty map.
fn own_keys(order: &Order) -> Verdict {
    let start = Instant::now();
    let (mut operations, lost) = (0, AtomicU64::new(0));
    let mut round = 0;
    while round < 3 || start.elapsed() < order.time {
        let map = WordMap::new();
        std::thread::scope(|scope| {
            for thread in 0..order.threads as u64 {
                let (map, lost) = (&map, &lost);
                let base = derive(order.seed, round) << 20;
                scope.spawn(move || {
                    let wrong = own(&map.handle(), base, thread, order.threads as u64);
                    lost.fetch_add(wrong, Ordering::Relaxed);
                });
            }
        });
        let left = KEPT * order.threads as u64;
        lost.fetch_add(left.abs_diff(map.len() as u64), Ordering::Relaxed);
        operations += order.threads as u64 * KEYS * 6;
        round += 1;
    }
    Verdict { operations, lost: Some(lost.into_inner()), ..Verdict::default() }
}

/// Keys of one owner in a round, and how many of them it keeps.
const KEYS: u64 = 30_000;
const KEPT: u64 = KEYS / 3;

/// Counts wrong answers: keys that were lost, or came back.
fn own(handle: &Handle<'_, u64, u64>, base: u64, thread: u64, threads: u64) -> u64 {
    let key = |index: u64| base.wrapping_add(index * threads + thread);
    let mut wrong = 0;
    let mut expect = |right: bool| wrong += u64::from(!right);
    for index in 0..KEYS {
        expect(handle.insert(key(index), index).is_none());
        expect(handle.insert(key(index), index + 1) == Some(index));
        if index % 3 != 0 {
            expect(handle.remove(key(index)) == Some(index + 1));
            expect(handle.get(key(index)).is_none());
            expect(handle.remove(key(index)).is_none());
        }
        let old = index / 2;
        expect(handle.get(key(old)).is_some() == (old % 3 == 0));
    }
    for index in 0..KEYS {
        expect(handle.get(key(index)).is_some() == (index % 3 == 0));
    }
    wrong
}

/// A map as the test kit sees it.
struct Words(WordMap);

struct Access<'t>(Handle<'t, u64, u64>);

impl TableUnderTest for Words {
    const OPS: &'static [Kind] = &[
        Kind::Get,
        Kind::Insert,
        Kind::InsertNew,
        Kind::GetOrInsert,
        Kind::Remove,
        Kind::CompareExchange,
        Kind::FetchAdd,
        Kind::AddIfPresent,
    ];
    type Handle<'t> = Access<'t>;

    fn handle(&self) -> Access<'_> {
        Access(self.0.handle())
    }
}

impl HandleUnderTest for Access<'_> {
    fn apply(&mut self, key: u64, op: Op) -> Ret {
        let map = &self.0;
        match op {
            Op::Get => Ret::Value(map.get(key)),
            Op::Insert(value) => Ret::Value(map.insert(key, value)),
            Op::InsertNew(value) => Ret::Flag(map.insert_new(key, value).is_ok()),
            Op::GetOrInsert(value) => Ret::Value(Some(map.get_or_insert(key, value))),
            Op::Remove => Ret::Value(map.remove(key)),
            Op::CompareExchange { expected, new } => {
                Ret::Exchanged(map.compare_exchange(key, expected, new).map_err(|no| no.current))
            }
            Op::FetchAdd(by) => Ret::Value(map.fetch_add(key, by)),
            Op::AddIfPresent(by) => {
                let new = map.update(key, |value| value.wrapping_add(by));
                Ret::Value(new.map(|value| value.wrapping_sub(by)))
            }
            other => unreachable!("{other:?} is not offered"),
        }
    }
}
