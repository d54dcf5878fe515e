//! Recorded histories on few keys and fewer buckets: linearizable per key. Handles belong to two attachments of one segment, as those of
//! two processes would.

use super::world::tiny_of;
use crate::tier_cache::cache::*;
use quintet_testkit::conformance::{self, HandleUnderTest, TableUnderTest};
use quintet_testkit::model::{Kind, Op, Ret};
use std::time::Duration;

struct Table([TierCache; 2], crate::sync::AtomicUsize);

impl TableUnderTest for Table {
    const OPS: &'static [Kind] =
        &[Kind::Get, Kind::Put, Kind::InsertNew, Kind::Replace, Kind::Delete];
    type Handle<'t> = Access<'t>;

    fn handle(&self) -> Access<'_> {
        let turn = self.1.fetch_add(1, crate::sync::Ordering::Relaxed);
        let mut handle = self.0[turn % 2].handle().unwrap();
        handle.set_timeout(Duration::from_secs(20));
        Access(handle)
    }

    fn entries(&self) -> Option<usize> {
        Some(self.0[0].check().unwrap().entries as usize)
    }
}

struct Access<'t>(CacheHandle<'t>);

/// One block or several, by the value.
fn bytes(value: u64) -> Vec<u8> {
    let mut bytes = value.to_le_bytes().to_vec();
    bytes.resize(8 + (value % 300) as usize, value as u8);
    bytes
}

fn number(bytes: &[u8]) -> u64 {
    let value = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert_eq!(bytes, self::bytes(value), "torn");
    value
}

impl HandleUnderTest for Access<'_> {
    fn apply(&mut self, key: u64, op: Op) -> Ret {
        let key = key.to_le_bytes();
        match op {
            Op::Get => Ret::Value(self.0.get(key).unwrap().map(|value| number(&value))),
            Op::Put(value) => {
                self.0.set(key, bytes(value)).unwrap();
                Ret::Done
            }
            Op::InsertNew(value) => Ret::Flag(self.0.add(key, bytes(value), None).unwrap()),
            Op::Replace(value) => Ret::Flag(self.0.replace(key, bytes(value), None).unwrap()),
            Op::Delete => Ret::Flag(self.0.remove(key).unwrap()),
            other => panic!("not offered: {other:?}"),
        }
    }
}

#[test]
fn histories_are_linearizable() {
    conformance::linearizable(|_| {
        let builder = TierCache::builder().capacity(512 << 10).handles(20);
        let first = tiny_of(builder, 1500);
        // Few buckets: everybody meets everybody.
        let sizes = Sizes { buckets: 5, ..first.sizes };
        let first = TierCache::create_sealed(sizes).unwrap();
        let second = TierCache::attach_sealed(first.inheritable().unwrap()).unwrap();
        Table([first, second], crate::sync::AtomicUsize::new(0))
    });
}
