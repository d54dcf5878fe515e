//! Runs a two-copy map under stress and writes down what everybody saw.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{GuardLog, PublishLog, SnapshotHistory};
use crate::history::{Clock, ClockKind};
use crate::model::Cell;
use crate::stress::{Stress, Worker};

/// A two-copy map from words to words: one writer, many readers.
pub trait SnapshotUnderTest {
    /// The only writer.
    type Writer: SnapshotWriter;
    /// A read handle, one per thread.
    type Reader: SnapshotReader;

    /// An empty map.
    fn pair() -> (Self::Writer, Self::Reader);
}

/// The writer of a two-copy map.
pub trait SnapshotWriter: Send {
    /// Makes the changes in order and publishes once.
    fn publish(&mut self, changes: &[(u64, Cell)]);
}

/// A reader of a two-copy map.
pub trait SnapshotReader: Clone + Send {
    /// Takes a guard, shows it, and drops it.
    fn with_guard(&mut self, show: &mut dyn FnMut(&dyn View));
}

/// What a guard shows.
pub trait View {
    /// Reads a key.
    fn get(&self, key: u64) -> Cell;

    /// The number of publishes before this version, if the map tells it.
    fn version(&self) -> Option<u64> {
        None
    }
}

/// How to stress a two-copy map.
#[derive(Clone, Debug)]
pub struct SnapshotPlan {
    /// Reading threads; one more writes.
    pub readers: usize,
    /// Guards of all readers together; the writer publishes until they are done.
    pub guards: usize,
    /// Keys, from 0 on.
    pub keys: u64,
    /// Changes per version.
    pub batch: usize,
    /// Reads per guard.
    pub reads: usize,
    /// The clock.
    pub clock: ClockKind,
    /// The seed; `None` takes one from the environment or by chance, and prints it.
    pub seed: Option<u64>,
}

impl Default for SnapshotPlan {
    fn default() -> Self {
        let clock = ClockKind::Counter;
        Self { readers: 3, guards: 100_000, keys: 16, batch: 4, reads: 8, clock, seed: None }
    }
}

/// One thread's log.
enum Log<'c> {
    Writer(PublishLog<'c>),
    Reader(GuardLog<'c>),
}

/// Publishes without pause while the readers take their guards, and returns who saw what.
pub fn record<S: SnapshotUnderTest>(plan: &SnapshotPlan) -> SnapshotHistory {
    let (writer, reader) = S::pair();
    let writer = Mutex::new(Some(writer));
    let readers = Mutex::new(vec![reader; plan.readers]);
    let clock = Clock::new(plan.clock);
    let reading = AtomicUsize::new(plan.readers);
    let mut stress = Stress::new("snapshots").threads(plan.readers + 1);
    if let Some(seed) = plan.seed {
        stress = stress.seed(seed);
    }
    let logs = stress.run(|worker| {
        let own = worker.thread().checked_sub(1);
        let Some(number) = own else {
            let writer = writer.lock().expect("unpoisoned").take().expect("one writer");
            return Log::Writer(write(worker, plan, &clock, writer, &reading));
        };
        let reader = readers.lock().expect("unpoisoned").pop().expect("one per thread");
        let log = GuardLog::new(&clock, u32::try_from(number).expect("few threads"));
        let _finished = OneLess(&reading);
        Log::Reader(read(worker, plan, log, reader))
    });
    let mut published = None;
    let mut guards = Vec::new();
    for log in logs {
        match log {
            Log::Writer(log) => published = Some(log),
            Log::Reader(log) => guards.push(log),
        }
    }
    SnapshotHistory::join(published.expect("thread 0 writes"), guards)
}

/// Tells the writer that a reader is done, also when it panics.
struct OneLess<'d>(&'d AtomicUsize);

impl Drop for OneLess<'_> {
    fn drop(&mut self) {
        // ORDERING: tells to stop and hands over nothing; partner is the load in `write`.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn write<'c>(
    worker: &mut Worker<'_>,
    plan: &SnapshotPlan,
    clock: &'c Clock,
    mut writer: impl SnapshotWriter,
    reading: &AtomicUsize,
) -> PublishLog<'c> {
    let mut log = PublishLog::new(clock);
    let mut version = 0;
    // ORDERING: only tells to stop; partner is the decrement in `OneLess`.
    while reading.load(Ordering::Relaxed) > 0 {
        version += 1;
        worker.pause();
        let change = |_| {
            let key = worker.rng.u64(0..plan.keys);
            (key, (worker.rng.u32(0..4) > 0).then_some(version))
        };
        let changes = (0..plan.batch).map(change).collect();
        log.publish(changes, |changes| writer.publish(changes));
    }
    log
}

fn read<'c>(
    worker: &mut Worker<'_>,
    plan: &SnapshotPlan,
    mut log: GuardLog<'c>,
    mut reader: impl SnapshotReader,
) -> GuardLog<'c> {
    for _ in 0..plan.guards / plan.readers {
        worker.pause();
        let asked = log.now();
        reader.with_guard(&mut |view| {
            let taken = log.now();
            let mut seen = Vec::with_capacity(plan.reads);
            for at in 0..plan.reads {
                if at == plan.reads / 2 {
                    worker.pause();
                }
                let key = worker.rng.u64(0..plan.keys);
                seen.push((key, view.get(key)));
            }
            log.saw(asked, taken, view.version(), seen);
        });
    }
    log
}
