//! Recorded histories of threads on few keys and fewer buckets: linearizable per key.

use super::world::{World, key};
use crate::tier_cache::*;
use quintet_testkit::conformance::{self, HandleUnderTest, TableUnderTest};
use quintet_testkit::model::{Kind, Op, Ret};
use std::time::Duration;

/// All keys of a history fit into these windows: nobody has to leave.
const CROWDED: Geometry = Geometry { buckets: 5, window: 32, records: 200, seats: 20 };

struct Table(World);

impl TableUnderTest for Table {
    const OPS: &'static [Kind] = &[Kind::Get, Kind::InsertNew, Kind::Replace, Kind::Delete];
    type Handle<'t> = Access<'t>;

    fn handle(&self) -> Access<'_> {
        let mut handle = self.0.map(0).handle().unwrap();
        handle.set_timeout(Duration::from_secs(20));
        Access(handle)
    }

    fn entries(&self) -> Option<usize> {
        Some(self.0.map(0).check().unwrap().live as usize)
    }
}

struct Access<'t>(Handle<'t>);

impl HandleUnderTest for Access<'_> {
    fn apply(&mut self, number: u64, op: Op) -> Ret {
        let input = key(number as u32 + 1, (number * 7 % 5) as u32);
        let answer = match op {
            Op::Get => self.0.get(input).map(Ret::Value),
            Op::InsertNew(value) => self.0.add(input, value).map(|_| Ret::Flag(true)),
            Op::Replace(value) => self.0.update(input, value).map(|_| Ret::Flag(true)),
            Op::Delete => self.0.remove(input).map(|()| Ret::Flag(true)),
            other => panic!("not offered: {other:?}"),
        };
        match answer {
            Err(MapError::Exists | MapError::NotFound) => Ret::Flag(false),
            other => other.unwrap(),
        }
    }
}

#[test]
fn histories_of_threads_are_linearizable() {
    conformance::linearizable(|_| Table(World::new(CROWDED)));
}
