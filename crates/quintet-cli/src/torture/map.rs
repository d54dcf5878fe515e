//! Our map: histories, keys with one owner each, and values that one caller makes.

use super::verdict::Verdict;
use super::{Check, Order, linear};
use quintet::hash_map::{Handle, QuietHandle};
use quintet::{Compute, HashMap};
use quintet_testkit::conformance::{HandleUnderTest, TableUnderTest};
use quintet_testkit::model::{Kind, Op, Ret};
use quintet_testkit::stress::derive;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check { name: "histories are linearizable", run: histories },
        Check { name: "by guards, with one lock, too", run: tight_histories },
        Check { name: "by handles and the map itself", run: outer_histories },
        Check { name: "what is made is made once", run: made_once },
    ]
}

fn histories(order: &Order) -> Verdict {
    counted(|| linear::histories(order, || Map::<QUIET>(HashMap::new())))
}

fn tight_histories(order: &Order) -> Verdict {
    let tight = || HashMap::builder().shards(1).max_load(0.8).build();
    counted(|| linear::histories(order, || Map::<PIN>(tight())))
}

fn outer_histories(order: &Order) -> Verdict {
    counted(|| linear::histories(order, || Map::<OUTSIDE>(HashMap::new())))
}

/// Keys of a round.
const KEYS: u64 = 2_000;

/// All threads ask for the same keys, whose makers sometimes fail at first; each key is made once,
/// and nobody sees another value.
fn made_once(order: &Order) -> Verdict {
    counted(|| {
        let start = Instant::now();
        let (mut operations, lost) = (0, AtomicU64::new(0));
        let mut round = 0;
        while round < 3 || start.elapsed() < order.time {
            let (map, made) = (HashMap::<u64, Value>::new(), AtomicU64::new(0));
            std::thread::scope(|scope| {
                for thread in 0..order.threads as u64 {
                    let (map, made, lost) = (&map, &made, &lost);
                    let seed = derive(order.seed, round * 1_000 + thread);
                    scope.spawn(move || {
                        lost.fetch_add(ask(map, made, seed), Ordering::Relaxed);
                    });
                }
            });
            lost.fetch_add(made.into_inner().abs_diff(KEYS), Ordering::Relaxed);
            operations += order.threads as u64 * KEYS;
            round += 1;
        }
        Verdict { operations, lost: Some(lost.into_inner()), ..Verdict::default() }
    })
}

/// Counts wrong answers.
fn ask(map: &HashMap<u64, Value>, made: &AtomicU64, seed: u64) -> u64 {
    let mut wrong = 0;
    for key in 0..KEYS {
        // Some makers fail once: who waits for them makes.
        let mut fails = derive(seed, key) % 4 == 0;
        loop {
            let found = map.get_or_try_compute(key, || {
                if std::mem::take(&mut fails) {
                    return Err(());
                }
                made.fetch_add(1, Ordering::Relaxed);
                Ok(Value::new(key))
            });
            match found {
                Ok(found) => {
                    wrong += u64::from(found.number() != key);
                    break;
                }
                Err(()) => std::thread::yield_now(),
            }
        }
    }
    wrong
}

/// Values made and not dropped, by all checks of this process.
static ALIVE: AtomicI64 = AtomicI64::new(0);

/// Runs a check after which no value may be left.
fn counted(check: impl FnOnce() -> Verdict) -> Verdict {
    let before = ALIVE.load(Ordering::Relaxed);
    let verdict = check();
    let leaks = ALIVE.load(Ordering::Relaxed).abs_diff(before);
    Verdict { leaks: Some(leaks), ..verdict }
}

const POISON: u64 = 0xdead_dead_dead_dead;

/// Poisons itself when it is dropped.
struct Value(AtomicU64);

impl Value {
    fn new(value: u64) -> Self {
        ALIVE.fetch_add(1, Ordering::Relaxed);
        Self(AtomicU64::new(value))
    }

    fn number(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Relaxed);
        self.0.store(POISON, Ordering::Relaxed);
    }
}

/// A map as the test kit sees it, by one of the [ways in](Access).
struct Map<const WAY: usize>(HashMap<u64, Value>);

/// By quiet handles, by a guard for each operation, or by a handle and the map itself in turn.
enum Access<'t> {
    Quiet(QuietHandle<'t, u64, Value>),
    Pin(&'t HashMap<u64, Value>),
    Outside(Handle<'t, u64, Value>, bool),
}

const QUIET: usize = 0;
const PIN: usize = 1;
const OUTSIDE: usize = 2;

impl<const WAY: usize> TableUnderTest for Map<WAY> {
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
        Ret::Value(match $op {
            Op::Get => access.get(&key).map(|found| found.number()),
            Op::Insert(new) => access.insert(key, Value::new(new)).map(|old| old.number()),
            Op::InsertNew(new) => {
                return Ret::Flag(access.insert_new(key, Value::new(new)).is_ok());
            }
            Op::GetOrInsert(new) => {
                Some(access.entry(key).or_insert_with(|| Value::new(new)).number())
            }
            Op::Remove => access.remove(&key).map(|old| old.number()),
            Op::Delete => {
                return Ret::Flag(access.remove_if(&key, |_| true).is_ok_and(|old| old.is_some()));
            }
            Op::FetchAdd(by) => {
                let add = |found: Option<&Value>| {
                    let old = found.map_or(0, Value::number);
                    Compute::Insert(Value::new(old.wrapping_add(by)))
                };
                access.compute(key, add).before.map(|old| old.number())
            }
            Op::AddIfPresent(by) => {
                let add = |old: &Value| Value::new(old.number().wrapping_add(by));
                let new = access.entry(key).and_update(add).get();
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
            Self::Pin(map) => apply!(&map.pin(), key, op),
            Self::Outside(handle, by_handle) => {
                *by_handle ^= true;
                if *by_handle { apply!(&*handle, key, op) } else { apply!(handle.map(), key, op) }
            }
        }
    }

    fn quiet(&mut self) {
        if let Self::Quiet(handle) = self {
            handle.quiescent();
        }
    }
}
