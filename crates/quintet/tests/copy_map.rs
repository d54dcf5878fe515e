//! `CopyMap` through the conformance suite: values of one word, and values of three that must stay
//! together.

use quintet::CopyMap;
use quintet::copy_map::{Handle, Plain};
use quintet_testkit::conformance::{HandleUnderTest, Plan, TableUnderTest, record};
use quintet_testkit::linear::check;
use quintet_testkit::model::{Kind, Op, Ret};
use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// How a number of the suite becomes a value, and back.
trait Stored: Plain + PartialEq {
    fn of(number: u64) -> Self;
    fn number(self) -> u64;
}

impl Stored for u64 {
    fn of(number: u64) -> Self {
        number
    }
    fn number(self) -> u64 {
        self
    }
}

/// A number nobody has put there: what half a value is taken for.
const TORN: u64 = 0x7042_7042_7042_7042;

/// Three words that depend on each other.
impl Stored for [u64; 3] {
    fn of(number: u64) -> Self {
        [number, !number, number.rotate_left(17)]
    }
    fn number(self) -> u64 {
        if self == Self::of(self[0]) { self[0] } else { TORN }
    }
}

/// A map as the suite sees it.
struct Copies<V: Stored>(CopyMap<u64, V>);

struct Access<'t, V: Stored>(Handle<'t, u64, V>);

impl<V: Stored> TableUnderTest for Copies<V> {
    const OPS: &'static [Kind] = &[
        Kind::Get,
        Kind::Contains,
        Kind::Insert,
        Kind::InsertNew,
        Kind::GetOrInsert,
        Kind::Remove,
        Kind::CompareExchange,
        Kind::FetchAdd,
        Kind::AddIfPresent,
    ];

    type Handle<'t> = Access<'t, V>;

    fn handle(&self) -> Access<'_, V> {
        Access(self.0.handle())
    }

    fn entries(&self) -> Option<usize> {
        Some(self.0.len())
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    fn try_with_capacity(entries: usize) -> Result<Self, String> {
        let map = CopyMap::builder().capacity(entries).try_build();
        map.map(Copies).map_err(|error| error.to_string())
    }
}

impl<V: Stored> HandleUnderTest for Access<'_, V> {
    fn apply(&mut self, key: u64, op: Op) -> Ret {
        let map = &self.0;
        let number = |value: Option<V>| Ret::Value(value.map(V::number));
        let add = |by: u64| move |value: V| V::of(value.number().wrapping_add(by));
        match op {
            Op::Get => number(map.get(&key)),
            Op::Contains => Ret::Flag(map.contains_key(&key)),
            Op::Insert(value) => number(map.insert(key, V::of(value))),
            Op::InsertNew(value) => Ret::Flag(map.insert_new(key, V::of(value)).is_ok()),
            Op::GetOrInsert(value) => number(Some(map.get_or_insert(key, V::of(value)))),
            Op::Remove => number(map.remove(&key)),
            Op::CompareExchange { expected, new } => {
                let done = map.compare_exchange(&key, V::of(expected), V::of(new));
                let done = done.map(V::number);
                Ret::Exchanged(done.map_err(|no| no.current.map(V::number)))
            }
            Op::FetchAdd(by) => {
                let mut before = None;
                map.compute(key, |found| {
                    before = found;
                    quintet::Compute::Insert(found.map_or(V::of(by), add(by)))
                });
                number(before)
            }
            Op::AddIfPresent(by) => {
                let new = map.update(&key, add(by));
                Ret::Value(new.map(|value| value.number().wrapping_sub(by)))
            }
            other => panic!("not offered: {other:?}"),
        }
    }

    fn quiet(&mut self) {
        self.0.flush();
    }
}

mod words {
    use super::{Copies, CopyMap};

    fn usual(capacity: usize) -> Copies<u64> {
        Copies(CopyMap::with_capacity(capacity))
    }

    quintet_testkit::table_tests!(usual;
        oracle, linearizable, linearizable_while_growing, single_owner, tiny_table_64_threads,
        one_winner_per_key, thread_exit, thread_local_destruction, churn_keeps_memory_flat,
        removal_returns_memory, flooding, capacity_overflow);
}

mod triples {
    use super::{Copies, CopyMap};

    fn usual(capacity: usize) -> Copies<[u64; 3]> {
        Copies(CopyMap::with_capacity(capacity))
    }

    quintet_testkit::table_tests!(usual;
        oracle, linearizable, linearizable_while_growing, single_owner, tiny_table_64_threads,
        one_winner_per_key);
}

/// What `CopyMap` would be without its versions: writers have a lock, but readers load the words of
/// a value one by one. The checker must see it.
struct TearsOnPurpose {
    values: Vec<[AtomicU64; 3]>,
    writers: Mutex<()>,
}

impl TableUnderTest for TearsOnPurpose {
    const OPS: &'static [Kind] = &[Kind::Get, Kind::Insert, Kind::Remove];
    type Handle<'t> = Tearing<'t>;

    fn handle(&self) -> Tearing<'_> {
        Tearing(self)
    }
}

struct Tearing<'t>(&'t TearsOnPurpose);

impl Tearing<'_> {
    fn load(&self, key: u64, between: fn()) -> Option<u64> {
        let words = self.0.values[key as usize].each_ref().map(|word| {
            between();
            word.load(Ordering::Relaxed)
        });
        (words != [0; 3]).then(|| words.number())
    }
}

impl HandleUnderTest for Tearing<'_> {
    fn apply(&mut self, key: u64, op: Op) -> Ret {
        let words = match op {
            Op::Insert(value) => <[u64; 3]>::of(value),
            Op::Remove => [0; 3],
            _ => return Ret::Value(self.load(key, thread::yield_now)),
        };
        let _lock = self.0.writers.lock();
        let before = self.load(key, || ());
        for (word, part) in self.0.values[key as usize].iter().zip(words) {
            word.store(part, Ordering::Relaxed);
            thread::yield_now();
        }
        Ret::Value(before)
    }
}

#[test]
fn a_map_that_tears_on_purpose_is_caught() {
    let plan = Plan { keys: 16, threads: 4, ..Plan::default() };
    let values = (0..16).map(|_| Default::default()).collect();
    let table = TearsOnPurpose { values, writers: Mutex::new(()) };
    assert!(!check(&record(&table, &plan)).violations.is_empty());
}

/// All keys have one hash.
#[derive(Clone, Copy, Default)]
struct Same;

impl Hasher for Same {
    fn finish(&self) -> u64 {
        7
    }
    fn write(&mut self, _: &[u8]) {}
}

type Flood = BuildHasherDefault<Same>;

thread_local! {
    static COMPARED: Cell<u64> = const { Cell::new(0) };
}

quintet::plain! {
    /// A key that counts how often it is compared.
    #[derive(Clone, Copy, Debug)]
    struct Counting(u64);
}

impl PartialEq for Counting {
    fn eq(&self, other: &Self) -> bool {
        COMPARED.set(COMPARED.get() + 1);
        self.0 == other.0
    }
}

impl Eq for Counting {}

impl Hash for Counting {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

/// Keys with one hash cost what they cost std's map, which is hashbrown: memory for them alone, and
/// about as many comparisons.
#[test]
fn keys_of_one_hash_take_no_more_than_twice_the_memory_of_hashbrown() {
    for keys in [1_000, 20_000u64] {
        let ours = CopyMap::<u64, u64, _>::with_hasher(Flood::default());
        (0..keys).for_each(|key| assert_eq!(ours.insert(key, key), None));
        ours.flush();
        assert!((0..keys).step_by(111).all(|key| ours.get(&key) == Some(key)));
        let std = HashMap::<u64, u64>::with_capacity(keys as usize);
        // A byte beside each of 8/7 of its places, rounded up to a power of two.
        let theirs = (std.capacity() * 8 / 7).next_power_of_two() * 17;
        let bytes = ours.memory_bytes();
        // What a table of any size has besides.
        assert!(bytes <= 2 * theirs + (32 << 10), "{keys} keys: {bytes}, {theirs}");
        (0..keys).for_each(|key| assert_eq!(ours.remove(&key), Some(key)));
        ours.shrink_to_fit();
        assert!(ours.memory_bytes() <= 32 << 10, "{}", ours.memory_bytes());
    }
}

#[test]
fn keys_of_one_hash_are_compared_no_more_than_five_times_as_often_as_by_hashbrown() {
    const KEYS: u64 = 2_000;
    let counted = |work: &mut dyn FnMut(Counting)| {
        COMPARED.set(0);
        (0..KEYS).map(Counting).for_each(work);
        COMPARED.get()
    };
    let ours = CopyMap::<Counting, u64, _>::with_hasher(Flood::default());
    let mut std = HashMap::<Counting, u64, _>::with_hasher(Flood::default());
    let inserts = counted(&mut |key| assert_eq!(ours.insert(key, 1), None));
    let theirs = counted(&mut |key| assert_eq!(std.insert(key, 1), None));
    assert!(inserts <= 5 * theirs, "{inserts}, {theirs}");
    let gets = counted(&mut |key| assert_eq!(ours.get(&key), Some(1)));
    let theirs = counted(&mut |key| assert!(std.contains_key(&key)));
    assert!(gets <= 5 * theirs, "{gets}, {theirs}");
}
