//! The two-copy map: snapshots under stress, values that tell if they were freed, and who parks how
//! often.

use super::verdict::Verdict;
use super::{Check, Order};
use quintet::twin_map::{MapReader, ReadGuard, Stalled, TwinMap, Version, Writer};
use quintet_testkit::latency::faults_and_switches;
use quintet_testkit::model::Cell;
use quintet_testkit::snapshot::{
    self, Publish, SnapshotPlan, SnapshotReader, SnapshotReport, SnapshotUnderTest, SnapshotWriter,
    View,
};
use quintet_testkit::stress::{Stress, derive};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check { name: "snapshots (barrier)", run: snapshots::<PLAIN> },
        Check { name: "snapshots (fence)", run: snapshots::<FENCES> },
        Check { name: "snapshots (copies left behind)", run: snapshots::<COPIES> },
        Check { name: "values live while guarded", run: values },
        Check { name: "parks and preemptions", run: parks },
    ]
}

const PLAIN: u8 = 0;
const FENCES: u8 = 1;
const COPIES: u8 = 2;

struct Map<const FORM: u8>;

#[derive(Clone)]
struct Handle(MapReader<u64, u64>);

struct Publisher(Writer<u64, u64>);

struct Shown<'a>(ReadGuard<'a, Version<u64, u64>>);

impl<const FORM: u8> SnapshotUnderTest for Map<FORM> {
    type Writer = Publisher;
    type Reader = Handle;

    fn pair() -> (Publisher, Handle) {
        let builder = match FORM {
            FENCES => TwinMap::builder().fences(),
            COPIES => TwinMap::builder().stalled(Stalled::Copy),
            _ => TwinMap::builder(),
        };
        let (writer, reader) = builder.build().split();
        (Publisher(writer), Handle(reader))
    }
}

impl SnapshotWriter for Publisher {
    fn publish(&mut self, changes: &[(u64, Cell)]) {
        let mut write = self.0.guard();
        for &(key, cell) in changes {
            match cell {
                Some(value) => write.insert(key, value),
                None => write.remove(&key),
            };
        }
        write.publish();
    }
}

impl SnapshotReader for Handle {
    fn with_guard(&mut self, show: &mut dyn FnMut(&dyn View)) {
        show(&Shown(self.0.pin()));
    }
}

impl View for Shown<'_> {
    fn get(&self, key: u64) -> Cell {
        self.0.get(&key).copied()
    }

    fn version(&self) -> Option<u64> {
        Some(self.0.version())
    }
}

/// Every guard shows one version, no handle goes back, a publish is one moment for all.
fn snapshots<const FORM: u8>(order: &Order) -> Verdict {
    let end = Instant::now() + order.time;
    let mut report = SnapshotReport::default();
    let mut lane = 0;
    while lane == 0 || Instant::now() < end {
        let plan = SnapshotPlan {
            readers: order.threads.max(1),
            guards: 20_000,
            seed: Some(derive(order.seed, lane)),
            ..SnapshotPlan::default()
        };
        report.merge(snapshot::check(&snapshot::record::<Map<FORM>>(&plan), Publish::AtOnce));
        lane += 1;
    }
    let mut notes = vec![format!(
        "{} versions, {} guards taken during a publish",
        report.versions, report.overlapping
    )];
    notes.extend(report.violations.iter().take(3).map(ToString::to_string));
    Verdict {
        operations: report.guards,
        histories: Some(report.histories),
        violations: report.violations.len() as u64,
        notes,
        ..Verdict::default()
    }
}

const POISON: u64 = 0xdead_dead_dead_dead;
static LIVE: AtomicU64 = AtomicU64::new(0);

/// A value on the heap that writes poison over itself when it is freed.
struct Marked(Box<[AtomicU64; 4]>);

impl Marked {
    fn new(number: u64) -> Self {
        LIVE.fetch_add(1, Ordering::Relaxed);
        Self(Box::new(std::array::from_fn(|_| AtomicU64::new(number))))
    }

    fn number(&self) -> Option<u64> {
        let first = self.0[0].load(Ordering::Relaxed);
        let same = self.0.iter().all(|word| word.load(Ordering::Relaxed) == first);
        (same && first != POISON).then_some(first)
    }
}

impl Clone for Marked {
    fn clone(&self) -> Self {
        Self::new(self.0[0].load(Ordering::Relaxed))
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        self.0.iter().for_each(|word| word.store(POISON, Ordering::Relaxed));
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a guard shows stays as it is while the guard lives, and in the end everything is freed.
fn values(order: &Order) -> Verdict {
    const KEYS: u64 = 32;
    let live = LIVE.load(Ordering::Relaxed);
    let (writer, reader) = TwinMap::<u64, Marked>::builder().build().split();
    let writer = Mutex::new(writer);
    let reader = Mutex::new(reader);
    let end = Instant::now() + order.time.max(Duration::from_millis(100));
    let stress = Stress::new("twin values").seed(order.seed).threads(order.threads.max(2));
    let stress = stress.time_limit(order.time * 2 + Duration::from_secs(60));
    let results = stress.run(|worker| {
        let (mut operations, mut violations) = (0u64, 0u64);
        let handle = reader.lock().expect("no panic held it").clone();
        while Instant::now() < end && worker.keep_going() {
            operations += 1;
            if worker.thread() == 0 {
                let mut writer = writer.lock().expect("no panic held it");
                let mut write = writer.guard();
                for _ in 0..worker.rng.u32(1..8) {
                    let key = worker.rng.u64(0..KEYS);
                    match worker.rng.u8(0..10) {
                        0..=5 => drop(write.insert(key, Marked::new(key))),
                        6..=8 => drop(write.remove(&key)),
                        _ => write.retain(|held, _| held % 5 != key % 5),
                    }
                }
                match worker.rng.u8(0..16) {
                    0 => write.discard(),
                    1 => std::mem::forget(write),
                    _ => drop(write.publish()),
                }
                continue;
            }
            let guard = handle.pin();
            let key = worker.rng.u64(0..KEYS);
            if let Some(value) = guard.get(&key) {
                violations += u64::from(value.number() != Some(key));
                worker.pause();
                violations += u64::from(value.number() != Some(key));
            }
        }
        (operations, violations)
    });
    drop(writer);
    drop(reader);
    let leaks = LIVE.load(Ordering::Relaxed).saturating_sub(live);
    let (operations, violations) =
        results.into_iter().fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    Verdict { operations, violations, leaks: Some(leaks), ..Verdict::default() }
}

/// One publish every millisecond beside the readers: the writer parks at most as often as readers
/// are preempted.
fn parks(order: &Order) -> Verdict {
    let mut notes = Vec::new();
    let mut verdict = Verdict::default();
    for readers in [1, order.threads.max(2)] {
        let (mut writer, reader) = TwinMap::<u64, u64>::builder().build().split();
        let end = Instant::now() + (order.time / 2).max(Duration::from_millis(100));
        let read = |handle: MapReader<u64, u64>| {
            let (_, before) = faults_and_switches();
            let mut gets = 0u64;
            while Instant::now() < end {
                for key in 0..256 {
                    gets += u64::from(handle.pin().get(&key).is_some()) + 1;
                }
            }
            (gets, faults_and_switches().1 - before)
        };
        let (gets, switches) = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..readers).map(|_| reader.clone()).collect();
            let threads: Vec<_> =
                handles.into_iter().map(|handle| scope.spawn(move || read(handle))).collect();
            while Instant::now() < end {
                std::thread::sleep(Duration::from_millis(1));
                writer.guard().insert(1, 1);
            }
            let join = |sum: (u64, u64), thread: std::thread::ScopedJoinHandle<'_, (u64, u64)>| {
                let part = thread.join().expect("readers do not panic");
                (sum.0 + part.0, sum.1 + part.1)
            };
            threads.into_iter().fold((0, 0), join)
        });
        let stats = writer.stats();
        notes.push(format!(
            "{readers} readers: {} publishes, {} parks, {switches} switches of readers",
            stats.published, stats.parks
        ));
        verdict.operations += gets;
        verdict.violations += u64::from(cfg!(target_os = "linux") && stats.parks > switches);
    }
    Verdict { notes, ..verdict }
}
