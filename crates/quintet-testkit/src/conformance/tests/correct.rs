//! No false alarm: every check on a table that is right.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::conformance::{HandleUnderTest, TableUnderTest};
use crate::model::{Kind, Op, Ret};

mod map {
    use crate::controls::MutexMap;

    crate::table_tests!(MutexMap::with_capacity;
        oracle,
        linearizable,
        linearizable_while_growing,
        single_owner,
        tiny_table_64_threads,
        one_winner_per_key,
        thread_exit,
        thread_local_destruction,
        churn_keeps_memory_flat,
        removal_returns_memory,
        flooding,
        capacity_overflow,
    );
}

/// A set that only grows and gives ids.
struct IdSet(Mutex<HashMap<u64, u64>>);

impl TableUnderTest for IdSet {
    const OPS: &'static [Kind] = &[Kind::SetInsert, Kind::Contains];
    type Handle<'t> = &'t IdSet;

    fn handle(&self) -> &IdSet {
        self
    }
}

impl HandleUnderTest for &IdSet {
    fn apply(&mut self, key: u64, op: Op) -> Ret {
        let mut ids = self.0.lock().unwrap();
        let next = ids.len() as u64;
        match (op, ids.get(&key)) {
            (Op::SetInsert, Some(&id)) => Ret::Existing(id),
            (Op::SetInsert, None) => {
                ids.insert(key, next);
                Ret::Inserted(next)
            }
            (_, found) => Ret::Flag(found.is_some()),
        }
    }
}

mod set {
    use super::IdSet;

    crate::table_tests!(|_| IdSet(Default::default());
        oracle,
        linearizable,
        linearizable_while_growing,
        single_owner,
        tiny_table_64_threads,
        one_winner_per_key,
        unique_ids,
        thread_exit,
        thread_local_destruction,
        flooding,
    );
}

mod any_types {
    crate::generic_tests!(crate::controls::MutexFamily;
        zero_sized,
        over_aligned,
        drops_everything_once,
        panicking_hash,
        panicking_eq,
        panicking_drop,
        panicking_closure,
        forgotten_guard,
        reentry_reads,
        reentry_writes,
        colliding_keys,
        references_survive_removal,
        generic_capacity_overflow,
    );
}

crate::assert_send!(crate::controls::MutexMap);
crate::assert_sync!(crate::controls::MutexMap);
crate::assert_not_send!(crate::latency::LatencyRecorder);
crate::assert_not_sync!(std::cell::Cell<u8>);
