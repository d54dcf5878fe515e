//! `ItemSet` through the conformance suite.

use quintet::item_set::{Handle, Keyed, QuietHandle};
use quintet::{Compute, ItemSet, Pages};
use quintet_testkit::conformance::{GenericFamily, GenericMap, HandleUnderTest, TableUnderTest};
use quintet_testkit::model::{Kind, Op, Ret};
use std::hash::Hash;

/// An entry of a map, kept by a set.
struct Entry<K, V> {
    key: K,
    value: V,
}

impl<K: Hash + Eq, V> Keyed for Entry<K, V> {
    type Key = K;
    fn key(&self) -> &K {
        &self.key
    }
}

type Words = Entry<u64, u64>;

/// A set of words as the suite sees it, by one of its [ways in](Way).
struct Set<const WAY: usize>(ItemSet<Box<Words>>);

/// The ways in.
enum Way<'t> {
    Table(&'t ItemSet<Box<Words>>),
    Pin(&'t ItemSet<Box<Words>>),
    Handle(Handle<'t, Box<Words>>),
    Quiet(QuietHandle<'t, Box<Words>>),
}

const TABLE: usize = 0;
const PIN: usize = 1;
const HANDLE: usize = 2;
const QUIET: usize = 3;

/// The same operation by each way.
macro_rules! apply {
    ($access:expr, $key:expr, $op:expr) => {{
        let (access, key) = ($access, $key);
        let item = |value| Entry { key, value };
        match $op {
            Op::Get => Ret::Value(access.get(&key).map(|item| item.value)),
            Op::Contains => Ret::Flag(access.contains(&key)),
            Op::Insert(new) => Ret::Value(access.insert(item(new)).map(|old| old.value)),
            Op::InsertNew(new) => Ret::Flag(access.insert_new(item(new)).is_ok()),
            Op::GetOrInsert(new) => Ret::Value(Some(match new % 2 {
                0 => access.get_or_insert_with(&key, || item(new)).value,
                _ => access.get_or_insert(item(new)).value,
            })),
            Op::Replace(new) => Ret::Flag(access.replace(item(new)).is_ok()),
            Op::Remove => Ret::Value(access.remove(&key).map(|old| old.value)),
            Op::Delete => {
                let removed = access.remove_if(&key, |_| true);
                Ret::Flag(removed.unwrap_or_else(|_| panic!("agreed to")).is_some())
            }
            Op::CompareExchange { expected, new } => Ret::Exchanged(loop {
                let Some(found) = access.get(&key) else { break Err(None) };
                if found.value != expected {
                    break Err(Some(found.value));
                }
                match access.compare_exchange(&found, item(new)) {
                    Ok(old) => break Ok(old.value),
                    Err(rejected) => match rejected.current.map(|now| now.value) {
                        Some(value) if value == expected => {}
                        other => break Err(other),
                    },
                }
            }),
            Op::FetchAdd(by) => {
                let add = |found: Option<&Words>| {
                    let old = found.map_or(0, |found| found.value);
                    Compute::Insert(Box::new(item(old.wrapping_add(by))))
                };
                Ret::Value(access.compute(&key, add).before.map(|old| old.value))
            }
            Op::AddIfPresent(by) => {
                let new = access.update(&key, |old| item(old.value.wrapping_add(by)));
                Ret::Value(new.map(|new| new.value.wrapping_sub(by)))
            }
            other => panic!("not offered: {other:?}"),
        }
    }};
}

impl<const WAY: usize> TableUnderTest for Set<WAY> {
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
        let set = ItemSet::<Box<Words>>::builder().capacity(entries).try_build();
        set.map(Set).map_err(|error| error.to_string())
    }
}

impl HandleUnderTest for Way<'_> {
    fn apply(&mut self, key: u64, op: Op) -> Ret {
        match self {
            Self::Table(set) => apply!(set, key, op),
            Self::Pin(set) => apply!(&set.pin(), key, op),
            Self::Handle(handle) => apply!(handle, key, op),
            Self::Quiet(handle) => apply!(&*handle, key, op),
        }
    }

    fn quiet(&mut self) {
        if let Self::Quiet(handle) = self {
            handle.quiescent();
        }
    }
}

fn usual(capacity: usize) -> Set<QUIET> {
    Set(ItemSet::with_capacity(capacity))
}

quintet_testkit::table_tests!(usual;
    oracle, linearizable, linearizable_while_growing, single_owner, tiny_table_64_threads,
    one_winner_per_key, thread_exit, thread_local_destruction, churn_keeps_memory_flat,
    removal_returns_memory, flooding, capacity_overflow);

/// The same by guards, with one shard, other pages and another load: rare paths become common ones.
mod tight {
    use super::{ItemSet, PIN, Pages, Set, Words};

    fn tight(capacity: usize) -> Set<PIN> {
        let builder = ItemSet::<Box<Words>>::builder().shards(1).max_load(0.8);
        let builder = builder.pages(Pages::Small);
        Set(builder.capacity(capacity).build())
    }

    quintet_testkit::table_tests!(tight;
        oracle, linearizable, linearizable_while_growing, single_owner, tiny_table_64_threads,
        one_winner_per_key, thread_exit, thread_local_destruction, churn_keeps_memory_flat,
        removal_returns_memory);
}

/// By handles that are outside between operations.
mod handles {
    use super::{HANDLE, ItemSet, Set};

    fn by_handles(capacity: usize) -> Set<HANDLE> {
        Set(ItemSet::with_capacity(capacity))
    }

    quintet_testkit::table_tests!(by_handles;
        oracle, linearizable, linearizable_while_growing, single_owner, one_winner_per_key,
        thread_exit, thread_local_destruction, churn_keeps_memory_flat, removal_returns_memory);
}

/// By the set itself, with few shards.
mod tables {
    use super::{ItemSet, Set, TABLE, Words};

    fn by_itself(capacity: usize) -> Set<TABLE> {
        Set(ItemSet::<Box<Words>>::builder().shards(2).capacity(capacity).build())
    }

    quintet_testkit::table_tests!(by_itself;
        oracle, linearizable, linearizable_while_growing, single_owner, tiny_table_64_threads,
        thread_exit, thread_local_destruction, churn_keeps_memory_flat, removal_returns_memory);
}

/// The set as a map of any types.
struct Map<K: Hash + Eq + Send + Sync, V: Send + Sync>(ItemSet<Box<Entry<K, V>>>);

struct Family;

impl GenericFamily for Family {
    type Map<K, V>
        = Map<K, V>
    where
        K: Hash + Eq + Clone + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static;
}

impl<K, V> GenericMap<K, V> for Map<K, V>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    fn new() -> Self {
        Map(ItemSet::new())
    }

    fn insert(&self, key: K, value: V) {
        self.0.insert(Entry { key, value });
    }

    fn get_with<R>(&self, key: &K, show: impl FnOnce(Option<&V>) -> R) -> R {
        show(self.0.pin().get(key).map(|item| &item.value))
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

    fn forget_guard(&self, key: &K) {
        let pin = self.0.pin();
        pin.get(key);
        std::mem::forget(pin);
    }

    fn try_with_capacity(entries: usize) -> Result<Self, String> {
        let set = ItemSet::<Box<Entry<K, V>>>::builder().capacity(entries).try_build();
        set.map(Map).map_err(|error| error.to_string())
    }
}

/// Any types, and user code that misbehaves.
mod generic {
    quintet_testkit::generic_tests!(super::Family;
        zero_sized, over_aligned, drops_everything_once, colliding_keys, generic_capacity_overflow,
        panicking_hash, panicking_eq, panicking_drop, forgotten_guard, reentry_reads,
        reentry_writes, references_survive_removal);
}
