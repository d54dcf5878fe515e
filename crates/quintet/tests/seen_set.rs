//! `SeenSet` through the conformance suite.

use quintet::SeenSet;
use quintet::seen_set::{Growth, Handle, Ids, Insertion};
use quintet_testkit::conformance::{HandleUnderTest, TableUnderTest};
use quintet_testkit::model::{Kind, Op, Ret};

/// A set as the suite sees it. If it grows together, whoever has a handle is waited for, also while
/// the suite's threads wait for each other: then each operation has a handle of its own.
struct Seen {
    set: SeenSet<u64>,
    together: bool,
}

struct Access<'t> {
    set: &'t SeenSet<u64>,
    kept: Option<Handle<'t, u64>>,
}

impl TableUnderTest for Seen {
    const OPS: &'static [Kind] = &[Kind::Contains, Kind::SetInsert];

    type Handle<'t> = Access<'t>;

    fn handle(&self) -> Access<'_> {
        Access { set: &self.set, kept: (!self.together).then(|| self.set.handle()) }
    }

    fn entries(&self) -> Option<usize> {
        assert_eq!(self.set.iter().count(), self.set.len());
        Some(self.set.len())
    }

    fn memory_bytes(&self) -> usize {
        self.set.memory_bytes()
    }

    fn try_with_capacity(entries: usize) -> Result<Self, String> {
        let set = SeenSet::<u64>::builder().capacity(entries).try_build();
        set.map(|set| Seen { set, together: false }).map_err(|error| error.to_string())
    }
}

impl HandleUnderTest for Access<'_> {
    fn apply(&mut self, key: u64, op: Op) -> Ret {
        let fresh = self.kept.is_none().then(|| self.set.handle());
        let handle = self.kept.as_ref().or(fresh.as_ref()).expect("one of them");
        match op {
            Op::Contains => Ret::Flag(handle.contains(&key)),
            Op::SetInsert => {
                let insertion = handle.insert(key);
                assert_eq!(handle.get(insertion.id()), Some(&key));
                match insertion {
                    Insertion::Inserted(id) => Ret::Inserted(id.to_bits()),
                    Insertion::Existing(id) => Ret::Existing(id.to_bits()),
                }
            }
            other => panic!("not offered: {other:?}"),
        }
    }
}

fn usual(capacity: usize) -> Seen {
    Seen { set: SeenSet::with_capacity(capacity), together: false }
}

quintet_testkit::table_tests!(usual;
    oracle, linearizable, linearizable_while_growing, single_owner, tiny_table_64_threads,
    one_winner_per_key, unique_ids, thread_exit, thread_local_destruction, flooding,
    capacity_overflow);

/// One segment that gets as full as it may: rare paths become common ones.
mod tight {
    use super::*;

    fn tight(capacity: usize) -> Seen {
        let builder = SeenSet::<u64>::builder().shards(1).max_load(0.9).ids(Ids::Wide);
        Seen { set: builder.parents(true).capacity(capacity).build(), together: false }
    }

    quintet_testkit::table_tests!(tight;
        oracle, linearizable, linearizable_while_growing, single_owner, tiny_table_64_threads,
        one_winner_per_key, unique_ids);
}

/// Growing together. A forgotten handle would be waited for, so `thread_exit` does not apply.
mod together {
    use super::*;

    fn together(capacity: usize) -> Seen {
        let builder = SeenSet::<u64>::builder().growth(Growth::Together);
        Seen { set: builder.capacity(capacity).build(), together: true }
    }

    quintet_testkit::table_tests!(together;
        oracle, linearizable, linearizable_while_growing, single_owner, tiny_table_64_threads,
        one_winner_per_key, unique_ids, thread_local_destruction, flooding);
}

quintet_testkit::assert_send!(SeenSet<String>);
quintet_testkit::assert_sync!(SeenSet<String>);
quintet_testkit::assert_send!(Handle<'static, [u8]>);
quintet_testkit::assert_not_sync!(Handle<'static, [u8]>);
