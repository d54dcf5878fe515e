//! `ItemSet` through the conformance suite.

use quintet::item_set::{Handle, Keyed};
use quintet::{ItemSet, Pages};
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

/// A set of words as the suite sees it: by handles with quiet points, or by a guard for each operation.
struct Set<const PIN: bool>(ItemSet<Box<Words>>);

struct Access<'t, const PIN: bool>(&'t ItemSet<Box<Words>>, Handle<'t, Box<Words>>);

/// The same operation through either access.
macro_rules! apply {
    ($access:expr, $key:expr, $op:expr) => {{
        let (access, key) = ($access, $key);
        let value = |found: Option<&Words>| Ret::Value(found.map(|item| item.value));
        let item = |value| Entry { key, value };
        match $op {
            Op::Get => value(access.get(&key)),
            Op::Contains => Ret::Flag(access.contains(&key)),
            Op::Insert(new) => value(access.put(item(new))),
            Op::InsertNew(new) => Ret::Flag(access.insert_new(item(new)).is_ok()),
            Op::GetOrInsert(new) => value(Some(access.get_or_insert_with(&key, || item(new)))),
            Op::Remove => value(access.remove(&key)),
            other => panic!("not offered: {other:?}"),
        }
    }};
}

impl<const PIN: bool> TableUnderTest for Set<PIN> {
    const OPS: &'static [Kind] = &[
        Kind::Get,
        Kind::Contains,
        Kind::Insert,
        Kind::InsertNew,
        Kind::GetOrInsert,
        Kind::Remove,
    ];

    type Handle<'t> = Access<'t, PIN>;

    fn handle(&self) -> Access<'_, PIN> {
        Access(&self.0, self.0.handle())
    }

    fn entries(&self) -> Option<usize> {
        Some(self.0.len())
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_used()
    }

    fn try_with_capacity(entries: usize) -> Result<Self, String> {
        let set = ItemSet::<Box<Words>>::builder().capacity(entries).try_build();
        set.map(Set).map_err(|error| error.to_string())
    }
}

impl<const PIN: bool> HandleUnderTest for Access<'_, PIN> {
    fn apply(&mut self, key: u64, op: Op) -> Ret {
        if PIN { apply!(&self.0.pin(), key, op) } else { apply!(&self.1, key, op) }
    }

    fn quiet(&mut self) {
        self.1.quiescent();
    }
}

fn usual(capacity: usize) -> Set<false> {
    Set(ItemSet::with_capacity(capacity))
}

quintet_testkit::table_tests!(usual;
    oracle, linearizable, linearizable_while_growing, single_owner, tiny_table_64_threads,
    one_winner_per_key, thread_exit, thread_local_destruction, churn_keeps_memory_flat,
    removal_returns_memory, flooding, capacity_overflow);

/// The same by guards, with one shard, other pages and another load: rare paths become common ones.
mod tight {
    use super::{ItemSet, Pages, Set, Words};

    fn tight(capacity: usize) -> Set<true> {
        let builder = ItemSet::<Box<Words>>::builder().shards(1).load_factor(0.8);
        let builder = builder.pages(Pages::Small);
        Set(builder.capacity(capacity).build())
    }

    quintet_testkit::table_tests!(tight;
        oracle, linearizable, linearizable_while_growing, single_owner, tiny_table_64_threads,
        one_winner_per_key, thread_exit, thread_local_destruction, churn_keeps_memory_flat,
        removal_returns_memory);
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
        self.0.pin().put(Entry { key, value });
    }

    fn get_with<R>(&self, key: &K, show: impl FnOnce(Option<&V>) -> R) -> R {
        show(self.0.pin().get(key).map(|item| &item.value))
    }

    fn remove(&self, key: &K) -> bool {
        self.0.pin().remove(key).is_some()
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
