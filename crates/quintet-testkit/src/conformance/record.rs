//! Runs random operations on a table from several threads and writes down the history.

use super::adapter::removing;
use super::{HandleUnderTest, Owner, TableUnderTest};
use crate::Rng;
use crate::history::{Clock, ClockKind, History, Recorder};
use crate::linear::{self, Report};
use crate::model::{Kind, Op, Ret};
use crate::stress::{Stress, Worker, derive, seed_from_environment};

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Threads.
    pub threads: usize,
    /// Recorded operations of all threads together.
    pub operations: usize,
    /// Keys, from 0 on. Half of the operations meet on the first [`HOT`]; a table without removal
    /// gets fresh keys all the time instead.
    pub keys: u64,
    /// Other keys that each thread inserts and removes again, so that the table keeps growing and
    /// shrinking; 0 for none.
    pub ballast: u64,
    /// The clock.
    pub clock: ClockKind,
    /// The seed; `None` takes one from the environment or by chance, and prints it.
    pub seed: Option<u64>,
    /// A thread pauses before one in so many operations; 0 is never.
    pub pause_every: u32,
    /// All threads wait for one another after so many operations each, so that they run at the
    /// same time and not one after the other; 0 is never.
    pub meet_every: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            threads: 4,
            operations: 100_000,
            keys: 64,
            ballast: 0,
            clock: ClockKind::Counter,
            seed: None,
            pause_every: 64,
            meet_every: 32,
        }
    }
}

/// Keys that take half of the operations, so that operations overlap.
pub const HOT: u64 = 2;

/// Runs the plan on a table that is still empty.
///
/// # Panics
/// If a thread panics, or if ballast is not what its owner left, with the seed.
pub fn record<T: TableUnderTest>(table: &T, plan: &Plan) -> History {
    let clock = Clock::new(plan.clock);
    let mut stress = Stress::new("history").threads(plan.threads).pause_every(plan.pause_every);
    if let Some(seed) = plan.seed {
        stress = stress.seed(seed);
    }
    let logs = stress.run(|worker| work(table, plan, &clock, worker));
    History::join(logs)
}

fn work<'c, T: TableUnderTest>(
    table: &T,
    plan: &Plan,
    clock: &'c Clock,
    worker: &mut Worker<'_>,
) -> Recorder<'c> {
    let operations = plan.operations / plan.threads;
    let thread = u32::try_from(worker.thread()).expect("few threads");
    let mut log = clock.recorder(thread, operations);
    let mut handle = table.handle();
    let mut source = OpSource::new(thread, T::OPS);
    let mut owner = Owner::new::<T>(worker.thread() as u64, plan.ballast);
    let slides = removing::<T>().is_none();
    for i in 0..operations as u64 {
        if !worker.keep_going() {
            break;
        }
        if plan.meet_every > 0 && i % plan.meet_every == 0 {
            worker.meet();
        }
        worker.pause();
        let key = if slides {
            i / 4 + worker.rng.u64(0..8)
        } else if worker.rng.bool() {
            worker.rng.u64(0..HOT.min(plan.keys))
        } else {
            worker.rng.u64(0..plan.keys)
        };
        let op = source.next(key, &mut worker.rng);
        let ret = log.call(key, op, || handle.apply(key, op));
        source.learn(key, op, ret);
        if plan.ballast > 0 {
            owner.step(&mut handle, &mut worker.rng);
        }
        if i % 16 == 0 {
            handle.quiet();
        }
    }
    log
}

/// Draws the operations of one thread: every written value is unique, and a compare-exchange
/// expects what the thread last saw.
pub(super) struct OpSource {
    kinds: &'static [Kind],
    next_value: u64,
    last_seen: Vec<u64>,
}

/// For how many keys the last value is remembered; others share.
const REMEMBERED: u64 = 256;

impl OpSource {
    pub(super) fn new(thread: u32, kinds: &'static [Kind]) -> Self {
        let next_value = (u64::from(thread) + 1) << 40;
        Self { kinds, next_value, last_seen: vec![0; REMEMBERED as usize] }
    }

    pub(super) fn next(&mut self, key: u64, rng: &mut Rng) -> Op {
        let kind = self.kinds[rng.usize(0..self.kinds.len())];
        let expected = self.last_seen[(key % REMEMBERED) as usize];
        self.next_value += 1;
        match kind {
            Kind::FetchAdd | Kind::AddIfPresent => kind.with(rng.u64(1..4), 0),
            _ => kind.with(self.next_value, expected),
        }
    }

    pub(super) fn learn(&mut self, key: u64, op: Op, ret: Ret) {
        let now = match (op, ret) {
            (Op::Get | Op::GetOrInsert(_), Ret::Value(Some(value))) => value,
            (Op::Put(value) | Op::Insert(value) | Op::InsertNew(value), _) => value,
            (Op::Replace(value), Ret::Flag(true)) => value,
            (Op::CompareExchange { new, .. }, Ret::Exchanged(Ok(_))) => new,
            (Op::CompareExchange { .. }, Ret::Exchanged(Err(Some(value)))) => value,
            (Op::FetchAdd(n), Ret::Value(old)) => old.unwrap_or(0).wrapping_add(n),
            _ => return,
        };
        self.last_seen[(key % REMEMBERED) as usize] = now;
    }
}

/// Threads on few keys: the history is linearizable.
pub fn linearizable<T: TableUnderTest>(make: impl Fn(usize) -> T) {
    histories(make, &Plan::default()).expect_pass("the table");
}

/// The same while the table grows and shrinks.
pub fn linearizable_while_growing<T: TableUnderTest>(make: impl Fn(usize) -> T) {
    let plan = Plan { ballast: 2_000, ..Plan::default() };
    histories(make, &plan).expect_pass("the growing table");
}

/// One history for each clock and for few and many threads.
fn histories<T: TableUnderTest>(make: impl Fn(usize) -> T, plan: &Plan) -> Report {
    let seed = seed_from_environment();
    eprintln!("histories: seed {seed:#x}");
    let mut report = Report::default();
    for (lane, (clock, threads, keys)) in
        [(ClockKind::Counter, 4, 64), (ClockKind::Time, 4, 16), (ClockKind::Counter, 16, 16)]
            .into_iter()
            .enumerate()
    {
        let seed = Some(derive(seed, lane as u64));
        let plan = Plan { clock, threads, keys, seed, ..plan.clone() };
        report.merge(linear::check(&record(&make(0), &plan)));
    }
    eprintln!("histories: {report}");
    report
}
