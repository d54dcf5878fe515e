//! `WordMap` through the conformance suite.

use quintet::word_map::Handle;
use quintet::{Pages, WordMap};
use quintet_testkit::conformance::{HandleUnderTest, TableUnderTest};
use quintet_testkit::model::{Kind, Op, Ret};

/// A map as the suite sees it.
struct Words(WordMap);

struct Access<'t>(Handle<'t, u64, u64>);

impl TableUnderTest for Words {
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

    type Handle<'t> = Access<'t>;

    fn handle(&self) -> Access<'_> {
        Access(self.0.handle())
    }

    fn entries(&self) -> Option<usize> {
        Some(self.0.len())
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    fn try_with_capacity(entries: usize) -> Result<Self, String> {
        let map = WordMap::builder().capacity(entries).try_build();
        map.map(Words).map_err(|error| error.to_string())
    }
}

impl HandleUnderTest for Access<'_> {
    fn apply(&mut self, key: u64, op: Op) -> Ret {
        let map = &self.0;
        match op {
            Op::Get => Ret::Value(map.get(key)),
            Op::Contains => Ret::Flag(map.contains_key(key)),
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
            other => panic!("not offered: {other:?}"),
        }
    }

    fn quiet(&mut self) {
        self.0.flush();
    }
}

fn usual(capacity: usize) -> Words {
    Words(WordMap::with_capacity(capacity))
}

quintet_testkit::table_tests!(usual;
    oracle, linearizable, linearizable_while_growing, single_owner, tiny_table_64_threads,
    one_winner_per_key, thread_exit, thread_local_destruction, churn_keeps_memory_flat,
    removal_returns_memory, flooding, capacity_overflow);

/// The same with other settings: rare paths become common ones.
mod tight {
    use super::{Pages, WordMap, Words};

    fn tight(capacity: usize) -> Words {
        let builder = WordMap::builder().max_load(0.8).m(1).pages(Pages::Small).seed(7);
        Words(builder.capacity(capacity).build())
    }

    quintet_testkit::table_tests!(tight;
        oracle, linearizable, linearizable_while_growing, single_owner, tiny_table_64_threads,
        one_winner_per_key, churn_keeps_memory_flat, removal_returns_memory);
}
