//! Tables of words, each with one fault.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::goes_red;
use crate::conformance::{self, HandleUnderTest, TableUnderTest};
use crate::controls::{Broken, Bug, MutexMap};
use crate::model::{Kind, Op, Ret};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    LosesTheLastKey,
    LosesSomeInserts,
    LosesKeysThatLookAlike,
    EverybodyWins,
    OneIdForAll,
    WritesWhenTheHandleIsDropped,
    NeedsItsThreadLocal,
    NeverFrees,
}

struct Faulty {
    inner: MutexMap,
    fault: Fault,
    inserted: AtomicUsize,
}

struct FaultyHandle<'t> {
    table: &'t Faulty,
    unwritten: Vec<(u64, Op)>,
}

thread_local! {
    static NEEDED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

fn with(fault: Fault) -> impl Fn(usize) -> Faulty {
    let inserted = || AtomicUsize::new(0);
    move |entries| Faulty { inner: MutexMap::with_capacity(entries), fault, inserted: inserted() }
}

impl TableUnderTest for Faulty {
    const OPS: &'static [Kind] = &[Kind::InsertNew, Kind::Get, Kind::Remove, Kind::SetInsert];
    type Handle<'t> = FaultyHandle<'t>;

    fn handle(&self) -> FaultyHandle<'_> {
        FaultyHandle { table: self, unwritten: Vec::new() }
    }

    fn memory_bytes(&self) -> usize {
        16 * self.inserted.load(Ordering::Relaxed)
    }

    fn try_with_capacity(entries: usize) -> Result<Self, String> {
        Ok(with(Fault::NeverFrees)(entries.min(100)))
    }
}

impl HandleUnderTest for FaultyHandle<'_> {
    fn apply(&mut self, key: u64, op: Op) -> Ret {
        let Faulty { inner, fault, inserted } = self.table;
        let inserting = matches!(op, Op::InsertNew(_));
        match fault {
            Fault::LosesTheLastKey if inserting && key == u64::MAX => return Ret::Flag(true),
            Fault::LosesSomeInserts if inserting && key % 97 == 5 => return Ret::Flag(true),
            Fault::LosesKeysThatLookAlike if inserting && key > 0 && key as u32 == 0 => {
                return Ret::Flag(true);
            }
            Fault::WritesWhenTheHandleIsDropped if inserting => {
                self.unwritten.push((key, op));
                return Ret::Flag(true);
            }
            Fault::NeedsItsThreadLocal => NEEDED.with_borrow_mut(|needed| needed.push(key)),
            Fault::NeverFrees => _ = inserted.fetch_add(usize::from(inserting), Ordering::Relaxed),
            _ => {}
        }
        let mut inner = inner;
        let ret = inner.apply(key, op);
        match (fault, ret) {
            (Fault::EverybodyWins, Ret::Flag(_)) => Ret::Flag(true),
            (Fault::OneIdForAll, Ret::Inserted(_)) => Ret::Inserted(7),
            (Fault::OneIdForAll, Ret::Existing(_)) => Ret::Existing(7),
            _ => ret,
        }
    }
}

impl Drop for FaultyHandle<'_> {
    fn drop(&mut self) {
        for (key, op) in std::mem::take(&mut self.unwritten) {
            (&self.table.inner).apply(key, op);
        }
    }
}

#[test]
fn oracle_notices_a_lost_edge_key() {
    goes_red(|| conformance::oracle(with(Fault::LosesTheLastKey)));
}

#[test]
fn tiny_table_notices_lost_inserts() {
    goes_red(|| conformance::tiny_table_64_threads(with(Fault::LosesSomeInserts)));
}

#[test]
fn one_winner_notices_two() {
    goes_red(|| conformance::one_winner_per_key(with(Fault::EverybodyWins)));
}

#[test]
fn unique_ids_notices_a_repeated_id() {
    goes_red(|| conformance::unique_ids(with(Fault::OneIdForAll)));
}

#[test]
fn thread_exit_notices_what_a_forgotten_handle_kept() {
    goes_red(|| conformance::thread_exit(with(Fault::WritesWhenTheHandleIsDropped)));
}

#[test]
fn thread_local_destruction_notices_a_needed_thread_local() {
    goes_red(|| conformance::thread_local_destruction(with(Fault::NeedsItsThreadLocal)));
}

#[test]
fn churn_notices_growing_memory() {
    goes_red(|| conformance::churn_keeps_memory_flat(with(Fault::NeverFrees)));
}

#[test]
fn removal_notices_memory_that_stays() {
    goes_red(|| conformance::removal_returns_memory(with(Fault::NeverFrees)));
}

#[test]
fn flooding_notices_keys_that_vanish() {
    goes_red(|| conformance::flooding(with(Fault::LosesKeysThatLookAlike)));
}

#[test]
fn capacity_overflow_notices_a_promise_that_cannot_be_kept() {
    goes_red(|| conformance::capacity_overflow(with(Fault::NeverFrees)));
}

#[test]
fn histories_notice_a_lost_update() {
    goes_red(|| conformance::linearizable(|_| Broken::new(Bug::LostUpdate, 1)));
}

#[test]
fn owners_notice_a_resurrected_key() {
    goes_red(|| conformance::single_owner(|_| Broken::new(Bug::RemoveResurrected, 1)));
}
