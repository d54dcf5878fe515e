//! Correct maps by others: the checker must not accuse them.

use super::verdict::Verdict;
use super::{Check, Order, linear};
use quintet_rivals::Words;
use quintet_rivals::general::{Access, Dashmap, Papaya, Precise, SccMap};
use quintet_testkit::conformance::{HandleUnderTest, TableUnderTest};
use quintet_testkit::model::{Kind, Op, Ret};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check { name: "dashmap is linearizable", run: histories::<Dashmap<Words>> },
        Check { name: "papaya is linearizable", run: histories::<Papaya<Words>> },
        Check { name: "scc is linearizable", run: histories::<SccMap<Words>> },
    ]
}

fn histories<M: Precise>(order: &Order) -> Verdict {
    linear::histories(order, || Rival(M::with_capacity(0)))
}

/// A rival as the test kit sees it.
struct Rival<M>(M);

impl<M: Precise> TableUnderTest for Rival<M> {
    const OPS: &'static [Kind] = &[
        Kind::Get,
        Kind::Contains,
        Kind::Insert,
        Kind::InsertNew,
        Kind::Remove,
        Kind::Delete,
        Kind::FetchAdd,
    ];
    type Handle<'t> = &'t Self;

    fn handle(&self) -> &Self {
        self
    }
}

impl<M: Precise> HandleUnderTest for &Rival<M> {
    fn apply(&mut self, key: u64, op: Op) -> Ret {
        let map = &self.0;
        match op {
            Op::Get => Ret::Value(map.access().get(&key, |value| *value)),
            Op::Contains => Ret::Flag(map.access().get(&key, |_| ()).is_some()),
            Op::Insert(value) => Ret::Value(map.exchange(key, value)),
            Op::InsertNew(value) => Ret::Flag(map.insert_new(key, value)),
            Op::Remove => Ret::Value(map.take(key)),
            Op::Delete => Ret::Flag(map.access().remove(&key)),
            Op::FetchAdd(n) => Ret::Value(map.fetch_add(key, n)),
            other => unreachable!("{other:?} is not offered"),
        }
    }
}
