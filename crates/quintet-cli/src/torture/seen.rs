//! Our set that only grows: histories, ids, and nothing lost, while both kinds of growth run.

use super::verdict::Verdict;
use super::{Check, Order, linear};
use quintet::SeenSet;
use quintet::seen_set::{Growth, Insertion};
use quintet_testkit::conformance::{HandleUnderTest, TableUnderTest};
use quintet_testkit::model::{Kind, Op, Ret};
use quintet_testkit::stress::derive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check { name: "histories are linearizable", run: |order| histories(order, spread) },
        Check { name: "growing together too", run: |order| histories(order, together) },
        Check { name: "one id per record, spread", run: |order| ids(order, spread) },
        Check { name: "one id per record, together", run: |order| ids(order, together) },
    ]
}

/// One segment: threads meet in it, and it grows all the time.
fn spread() -> SeenSet<u64> {
    SeenSet::<u64>::builder().shards(1).max_load(0.9).build()
}

fn together() -> SeenSet<u64> {
    SeenSet::<u64>::builder().growth(Growth::Together).build()
}

fn histories(order: &Order, make: fn() -> SeenSet<u64>) -> Verdict {
    linear::histories(order, || Seen(make()))
}

/// Records of one round: 2^5 · 5^4.
const RECORDS: u64 = 20_000;

/// All threads insert the same records in different orders: each is new once, has one id, and is
/// found.
fn ids(order: &Order, make: fn() -> SeenSet<u64>) -> Verdict {
    let start = Instant::now();
    let (mut operations, mut violations, mut lost) = (0, 0, 0);
    let mut round = 0;
    while round < 3 || start.elapsed() < order.time {
        let set = make();
        let base = derive(order.seed, round);
        let new = AtomicU64::new(0);
        let told: Vec<Vec<Insertion>> = std::thread::scope(|scope| {
            let work = |thread: u64| {
                let (set, new) = (&set, &new);
                move || {
                    let handle = set.handle();
                    let mut told = vec![None; RECORDS as usize];
                    for step in 0..RECORDS {
                        // A stride that shares no factor with the number of records visits all of
                        // them.
                        let at = (step * (20 * thread + 11) + thread) % RECORDS;
                        let insertion = handle.insert(base.wrapping_add(at));
                        new.fetch_add(u64::from(insertion.is_new()), Ordering::Relaxed);
                        told[at as usize] = Some(insertion);
                    }
                    told.into_iter().map(|told| told.expect("every record was visited")).collect()
                }
            };
            let threads: Vec<_> = (0..order.threads as u64).map(|t| scope.spawn(work(t))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        violations += new.into_inner().abs_diff(RECORDS);
        for at in 0..RECORDS as usize {
            let id = told[0][at].id();
            violations += told.iter().filter(|told| told[at].id() != id).count() as u64;
            lost += u64::from(set.get(id) != Some(&base.wrapping_add(at as u64)));
        }
        lost += RECORDS.abs_diff(set.iter().count() as u64);
        operations += RECORDS * order.threads as u64;
        round += 1;
    }
    Verdict { operations, violations, lost: Some(lost), ..Verdict::default() }
}

/// A set as the test kit sees it.
struct Seen(SeenSet<u64>);
/// A handle would be waited for while the threads of a history wait for each other: each operation
/// has its own.
struct Access<'t>(&'t SeenSet<u64>);

impl TableUnderTest for Seen {
    const OPS: &'static [Kind] = &[Kind::Contains, Kind::SetInsert];
    type Handle<'t> = Access<'t>;

    fn handle(&self) -> Access<'_> {
        Access(&self.0)
    }
}

impl HandleUnderTest for Access<'_> {
    fn apply(&mut self, key: u64, op: Op) -> Ret {
        match op {
            Op::Contains => Ret::Flag(self.0.handle().contains(&key)),
            Op::SetInsert => match self.0.handle().insert(key) {
                Insertion::Inserted(id) => Ret::Inserted(id.to_bits()),
                Insertion::Existing(id) => Ret::Existing(id.to_bits()),
            },
            other => unreachable!("{other:?} is not offered"),
        }
    }
}
