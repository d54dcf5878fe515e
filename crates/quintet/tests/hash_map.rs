//! `HashMap` through the conformance suite.
#![allow(clippy::map_clone)] // the same words by ways that lend references and by such that lend a `Ref`

use quintet::hash_map::{Handle, QuietHandle};
use quintet::{Compute, HashMap, Pages};
use quintet_testkit::conformance::{GenericFamily, GenericMap, HandleUnderTest, TableUnderTest};
use quintet_testkit::model::{Kind, Op, Ret};
use std::hash::Hash;

type Words = HashMap<u64, u64>;

/// A map of words as the suite sees it, by one of its [ways in](Way).
struct Map<const WAY: usize>(Words);

/// The ways in.
enum Way<'t> {
    Table(&'t Words),
    Pin(&'t Words),
    Handle(Handle<'t, u64, u64>),
    Quiet(QuietHandle<'t, u64, u64>),
}

const TABLE: usize = 0;
const PIN: usize = 1;
const HANDLE: usize = 2;
const QUIET: usize = 3;

/// The same operation by each way, and where there are two forms of it, by one of them.
macro_rules! apply {
    ($access:expr, $key:expr, $op:expr) => {{
        let (access, key) = ($access, $key);
        match $op {
            Op::Get => Ret::Value(match key % 2 {
                0 => access.get(&key).map(|value| *value),
                _ => access.entry(key).get().map(|value| *value),
            }),
            Op::Contains => Ret::Flag(access.contains_key(&key)),
            Op::Insert(new) => Ret::Value(access.insert(key, new).map(|old| *old)),
            Op::InsertNew(new) => Ret::Flag(access.insert_new(key, new).is_ok()),
            Op::GetOrInsert(new) => Ret::Value(Some(match new % 4 {
                0 => *access.get_or_insert_with(key, || new),
                1 => *access.entry(key).or_insert(new),
                2 => *access.entry_ref(&key).or_insert_with_key(|_| new),
                _ => *access.get_or_insert(key, new),
            })),
            Op::Replace(new) => Ret::Flag(access.swap(&key, new).is_ok()),
            Op::Remove => Ret::Value(match key % 2 {
                0 => access.remove(&key).map(|old| *old),
                _ => access.entry(key).remove_entry().map(|old| *old),
            }),
            Op::Delete => {
                let removed = access.remove_if(&key, |_| true);
                Ret::Flag(removed.unwrap_or_else(|_| panic!("agreed to")).is_some())
            }
            Op::CompareExchange { expected, new } => {
                Ret::Exchanged(match access.compare_exchange(&key, &expected, new) {
                    Ok(old) => Ok(*old),
                    Err(rejected) => Err(rejected.current.map(|now| *now)),
                })
            }
            Op::FetchAdd(by) => {
                let add = |found: Option<&u64>| {
                    Compute::Insert(found.map_or(0, |found| *found).wrapping_add(by))
                };
                Ret::Value(access.compute(key, add).before.map(|old| *old))
            }
            Op::AddIfPresent(by) => {
                let add = |old: &u64| old.wrapping_add(by);
                let new = match by % 2 {
                    0 => access.update(&key, add),
                    _ => access.entry_ref(&key).and_update(add).get(),
                };
                Ret::Value(new.map(|new| new.wrapping_sub(by)))
            }
            other => panic!("not offered: {other:?}"),
        }
    }};
}

impl<const WAY: usize> TableUnderTest for Map<WAY> {
    const OPS: &'static [Kind] = &[
        Kind::Get,
        Kind::Contains,
        Kind::Insert,
        Kind::InsertNew,
        Kind::GetOrInsert,
        Kind::Replace,
        Kind::Remove,
        Kind::Delete,
        Kind::CompareExchange,
        Kind::FetchAdd,
        Kind::AddIfPresent,
    ];

    type Handle<'t> = Way<'t>;

    fn handle(&self) -> Way<'_> {
        match WAY {
            TABLE => Way::Table(&self.0),
            PIN => Way::Pin(&self.0),
            HANDLE => Way::Handle(self.0.handle()),
            _ => Way::Quiet(self.0.quiet_handle()),
        }
    }

    fn entries(&self) -> Option<usize> {
        Some(self.0.len())
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    fn try_with_capacity(entries: usize) -> Result<Self, String> {
        let map = Words::builder().capacity(entries).try_build();
        map.map(Map).map_err(|error| error.to_string())
    }
}

impl HandleUnderTest for Way<'_> {
    fn apply(&mut self, key: u64, op: Op) -> Ret {
        match self {
            Self::Table(map) => apply!(map, key, op),
            Self::Pin(map) => apply!(&map.pin(), key, op),
            Self::Handle(handle) => apply!(&*handle, key, op),
            Self::Quiet(handle) => apply!(&*handle, key, op),
        }
    }

    fn quiet(&mut self) {
        if let Self::Quiet(handle) = self {
            handle.quiescent();
        }
    }
}

fn usual(capacity: usize) -> Map<QUIET> {
    Map(Words::with_capacity(capacity))
}

quintet_testkit::table_tests!(usual;
    oracle, linearizable, linearizable_while_growing, single_owner, tiny_table_64_threads,
    one_winner_per_key, thread_exit, thread_local_destruction, churn_keeps_memory_flat,
    removal_returns_memory, flooding, capacity_overflow);

/// The same by guards, with one shard, other pages and another load: rare paths become common ones.
mod tight {
    use super::{Map, PIN, Pages, Words};

    fn tight(capacity: usize) -> Map<PIN> {
        let builder = Words::builder().shards(1).max_load(0.8);
        let builder = builder.pages(Pages::Small);
        Map(builder.capacity(capacity).build())
    }

    quintet_testkit::table_tests!(tight;
        oracle, linearizable, linearizable_while_growing, single_owner, tiny_table_64_threads,
        one_winner_per_key, thread_exit, thread_local_destruction, churn_keeps_memory_flat,
        removal_returns_memory);
}

/// By handles that are outside between operations.
mod handles {
    use super::{HANDLE, Map, Words};

    fn by_handles(capacity: usize) -> Map<HANDLE> {
        Map(Words::with_capacity(capacity))
    }

    quintet_testkit::table_tests!(by_handles;
        oracle, linearizable, linearizable_while_growing, single_owner, one_winner_per_key,
        thread_exit, thread_local_destruction, churn_keeps_memory_flat, removal_returns_memory);
}

/// By the map itself, with few shards.
mod tables {
    use super::{Map, TABLE, Words};

    fn by_itself(capacity: usize) -> Map<TABLE> {
        Map(Words::builder().shards(2).capacity(capacity).build())
    }

    quintet_testkit::table_tests!(by_itself;
        oracle, linearizable, linearizable_while_growing, single_owner, tiny_table_64_threads,
        thread_exit, thread_local_destruction, churn_keeps_memory_flat, removal_returns_memory);
}

/// The map of any types.
struct Any<K: Hash + Eq + Send + Sync, V: Send + Sync>(HashMap<K, V>);

struct Family;

impl GenericFamily for Family {
    type Map<K, V>
        = Any<K, V>
    where
        K: Hash + Eq + Clone + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static;
}

impl<K, V> GenericMap<K, V> for Any<K, V>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    fn new() -> Self {
        Any(HashMap::new())
    }

    fn insert(&self, key: K, value: V) {
        self.0.insert(key, value);
    }

    fn get_with<R>(&self, key: &K, show: impl FnOnce(Option<&V>) -> R) -> R {
        show(self.0.get(key).as_deref())
    }

    fn remove(&self, key: &K) -> bool {
        self.0.remove(key).is_some()
    }

    fn entries(&self) -> usize {
        self.0.len()
    }

    fn settle(&self) {
        self.0.flush();
    }

    fn update(&self, key: &K, change: impl FnMut(&V) -> V) -> bool {
        self.0.update(key, change).is_some()
    }

    fn forget_guard(&self, key: &K) {
        std::mem::forget(self.0.get(key));
    }

    fn try_with_capacity(entries: usize) -> Result<Self, String> {
        HashMap::builder().capacity(entries).try_build().map(Any).map_err(|error| error.to_string())
    }
}

/// Any types, and user code that misbehaves.
mod generic {
    quintet_testkit::generic_tests!(super::Family;
        zero_sized, over_aligned, drops_everything_once, colliding_keys, generic_capacity_overflow,
        panicking_hash, panicking_eq, panicking_drop, panicking_closure, forgotten_guard, reentry_reads,
        reentry_writes, references_survive_removal);
}
