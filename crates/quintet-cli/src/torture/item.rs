//! Our set of items: histories, and keys with one owner each, while the set grows and shrinks.

use super::verdict::Verdict;
use super::{Check, Order, linear};
use quintet::item_set::{Handle, Keyed, QuietHandle};
use quintet::{Compute, ItemSet};
use quintet_testkit::conformance::{HandleUnderTest, TableUnderTest};
use quintet_testkit::model::{Kind, Op, Ret};
use quintet_testkit::stress::derive;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check { name: "histories are linearizable", run: histories },
        Check { name: "by guards, with one lock, too", run: tight_histories },
        Check { name: "by handles and the set itself", run: outer_histories },
        Check { name: "own keys, from a tiny table", run: own_keys },
    ]
}

fn histories(order: &Order) -> Verdict {
    counted(|| linear::histories(order, || Set::<QUIET>(ItemSet::new())))
}

fn tight_histories(order: &Order) -> Verdict {
    let tight = || ItemSet::<Box<Record>>::builder().shards(1).max_load(0.8).build();
    counted(|| linear::histories(order, || Set::<PIN>(tight())))
}

fn outer_histories(order: &Order) -> Verdict {
    counted(|| linear::histories(order, || Set::<OUTSIDE>(ItemSet::new())))
}

/// Every thread puts, replaces and removes keys of its own and knows each answer; every round
/// begins with an empty set.
fn own_keys(order: &Order) -> Verdict {
    counted(|| {
        let start = Instant::now();
        let (mut operations, lost) = (0, AtomicU64::new(0));
        let mut round = 0;
        while round < 3 || start.elapsed() < order.time {
            let set = ItemSet::<Box<Record>>::builder().shards(1 << (round % 6)).build();
            std::thread::scope(|scope| {
                for thread in 0..order.threads as u64 {
                    let (set, lost) = (&set, &lost);
                    let base = derive(order.seed, round) << 20;
                    scope.spawn(move || {
                        let wrong =
                            own(&mut set.quiet_handle(), base, thread, order.threads as u64);
                        lost.fetch_add(wrong, Ordering::Relaxed);
                    });
                }
            });
            let left = KEPT * order.threads as u64;
            lost.fetch_add(left.abs_diff(set.len() as u64), Ordering::Relaxed);
            operations += order.threads as u64 * KEYS * 6;
            round += 1;
        }
        Verdict { operations, lost: Some(lost.into_inner()), ..Verdict::default() }
    })
}

/// Keys of one owner in a round, and how many of them it keeps.
const KEYS: u64 = 30_000;
const KEPT: u64 = KEYS / 3;

/// Counts wrong answers: keys that were lost, or came back, or whose item was freed while it was
/// shown.
fn own(handle: &mut QuietHandle<'_, Box<Record>>, base: u64, thread: u64, threads: u64) -> u64 {
    let key = |index: u64| base.wrapping_add(index * threads + thread);
    let mut wrong = 0;
    let mut expect = |right: bool| wrong += u64::from(!right);
    let number = |found: Option<&Record>| found.map(Record::number);
    for index in 0..KEYS {
        expect(handle.insert(Record::new(key(index), index)).is_none());
        let replaced = number(handle.insert(Record::new(key(index), index + 1)));
        expect(replaced == Some(index));
        if index % 3 != 0 {
            expect(number(handle.remove(&key(index))) == Some(index + 1));
            expect(handle.get(&key(index)).is_none());
            expect(handle.remove(&key(index)).is_none());
        }
        let old = index / 2;
        expect(number(handle.get(&key(old))) == (old % 3 == 0).then_some(old + 1));
        if index % 16 == 0 {
            handle.quiescent();
        }
    }
    for index in 0..KEYS {
        expect(handle.get(&key(index)).is_some() == (index % 3 == 0));
    }
    wrong
}

/// Records made and not dropped, by all checks of this process.
static ALIVE: AtomicI64 = AtomicI64::new(0);

/// Runs a check after which no record may be left.
fn counted(check: impl FnOnce() -> Verdict) -> Verdict {
    let before = ALIVE.load(Ordering::Relaxed);
    let verdict = check();
    let leaks = ALIVE.load(Ordering::Relaxed).abs_diff(before);
    Verdict { leaks: Some(leaks), ..verdict }
}

const POISON: u64 = 0xdead_dead_dead_dead;

/// Poisons itself when it is dropped.
struct Record {
    key: u64,
    value: AtomicU64,
}

impl Record {
    fn new(key: u64, value: u64) -> Self {
        ALIVE.fetch_add(1, Ordering::Relaxed);
        Self { key, value: AtomicU64::new(value) }
    }

    fn number(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Relaxed);
        self.value.store(POISON, Ordering::Relaxed);
    }
}

impl Keyed for Record {
    type Key = u64;
    fn key(&self) -> &u64 {
        &self.key
    }
}

/// A set as the test kit sees it, by one of the [ways in](Access).
struct Set<const WAY: usize>(ItemSet<Box<Record>>);

/// By quiet handles, by a guard for each operation, or by a handle and the set itself in turn.
enum Access<'t> {
    Quiet(QuietHandle<'t, Box<Record>>),
    Pin(&'t ItemSet<Box<Record>>),
    Outside(Handle<'t, Box<Record>>, bool),
}

const QUIET: usize = 0;
const PIN: usize = 1;
const OUTSIDE: usize = 2;

impl<const WAY: usize> TableUnderTest for Set<WAY> {
    const OPS: &'static [Kind] = &[
        Kind::Get,
        Kind::Insert,
        Kind::InsertNew,
        Kind::GetOrInsert,
        Kind::Remove,
        Kind::Delete,
        Kind::FetchAdd,
        Kind::AddIfPresent,
    ];
    type Handle<'t> = Access<'t>;

    fn handle(&self) -> Access<'_> {
        match WAY {
            QUIET => Access::Quiet(self.0.quiet_handle()),
            PIN => Access::Pin(&self.0),
            _ => Access::Outside(self.0.handle(), false),
        }
    }
}

/// The same operation by each way.
macro_rules! apply {
    ($access:expr, $key:expr, $op:expr) => {{
        let (access, key) = ($access, $key);
        let record = |value| Record::new(key, value);
        Ret::Value(match $op {
            Op::Get => access.get(&key).map(|found| found.number()),
            Op::Insert(new) => access.insert(record(new)).map(|old| old.number()),
            Op::InsertNew(new) => return Ret::Flag(access.insert_new(record(new)).is_ok()),
            Op::GetOrInsert(new) => Some(access.get_or_insert_with(&key, || record(new)).number()),
            Op::Remove => access.remove(&key).map(|old| old.number()),
            Op::Delete => {
                return Ret::Flag(access.remove_if(&key, |_| true).is_ok_and(|old| old.is_some()));
            }
            Op::FetchAdd(by) => {
                let add = |found: Option<&Record>| {
                    let old = found.map_or(0, Record::number);
                    Compute::Insert(Box::new(record(old.wrapping_add(by))))
                };
                access.compute(&key, add).before.map(|old| old.number())
            }
            Op::AddIfPresent(by) => {
                let new = access.update(&key, |old| record(old.number().wrapping_add(by)));
                new.map(|new| new.number().wrapping_sub(by))
            }
            other => unreachable!("{other:?} is not offered"),
        })
    }};
}

impl HandleUnderTest for Access<'_> {
    fn apply(&mut self, key: u64, op: Op) -> Ret {
        match self {
            Self::Quiet(handle) => apply!(&*handle, key, op),
            Self::Pin(set) => apply!(&set.pin(), key, op),
            Self::Outside(handle, by_handle) => {
                *by_handle ^= true;
                if *by_handle { apply!(&*handle, key, op) } else { apply!(handle.set(), key, op) }
            }
        }
    }

    fn quiet(&mut self) {
        if let Self::Quiet(handle) = self {
            handle.quiescent();
        }
    }
}
