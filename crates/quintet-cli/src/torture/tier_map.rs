//! Worker processes on one shared map, killed at any time; what they had acknowledged must be
//! there.
//!
//! A worker is this program again. It reports every operation before and after; a ledger judges the
//! end.

use super::linear::histories;
use super::verdict::Verdict;
use super::{Check, Order};
use quintet::internals::tier::{Access, Geometry, Handle, InputHash, MapError, Place, SharedMap};
use quintet_testkit::Rng;
use quintet_testkit::conformance::{HandleUnderTest, TableUnderTest};
use quintet_testkit::crash::{Child, ledger::Ledger, report, task};
use quintet_testkit::model::{Kind, Op, Ret};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check { name: "kill -9 at any time", run: |order| run(order, ROOMY) },
        Check { name: "kill -9 in full windows", run: |order| run(order, TIGHT) },
        Check {
            name: "histories of threads",
            run: |order| histories(order, || Table::new(order.threads)),
        },
    ]
}

/// A map for histories: so roomy that nobody has to leave, though the first keys share a bucket.
struct Table(SharedMap);

impl Table {
    fn new(threads: usize) -> Self {
        // Each thread has at most 2,000 keys besides the common ones.
        let records = threads as u32 * 2_100 + 200;
        let seats = threads as u32 + 1;
        let geometry = Geometry { buckets: 4 * records, window: 32, records, seats };
        Self(SharedMap::create_sealed(geometry).expect("memory for a small map"))
    }
}

impl TableUnderTest for Table {
    const OPS: &'static [Kind] = &[Kind::Get, Kind::InsertNew, Kind::Replace, Kind::Delete];
    type Handle<'t> = ThreadOf<'t>;

    fn handle(&self) -> ThreadOf<'_> {
        let mut handle = self.0.map().handle().expect("a seat per thread");
        handle.set_timeout(PATIENCE);
        ThreadOf(handle)
    }
}

struct ThreadOf<'t>(Handle<'t>);

impl HandleUnderTest for ThreadOf<'_> {
    fn apply(&mut self, number: u64, op: Op) -> Ret {
        // Bits 40 and up name a thread's own range, the low ones the key.
        let hash = ((number >> 40) << 16 | number & 0xffff) as u32 + 1;
        let spread = u64::from(hash.wrapping_mul(0x9e37_79b9));
        let buckets = u64::from(self.0.map().geometry().buckets);
        let bucket = if number < 16 { 0 } else { ((spread * buckets) >> 32) as u32 };
        let input = InputHash::new(hash, bucket).expect("a legal key");
        let answer = match op {
            Op::Get => self.0.get(input).map(Ret::Value),
            Op::InsertNew(value) => self.0.add(input, value).map(|_| Ret::Flag(true)),
            Op::Replace(value) => self.0.update(input, value).map(|_| Ret::Flag(true)),
            _ => self.0.remove(input).map(|()| Ret::Flag(true)),
        };
        match answer {
            Ok(ret) => ret,
            Err(MapError::Exists | MapError::NotFound) => Ret::Flag(false),
            Err(_) => Ret::Refused,
        }
    }
}

const ROOMY: Geometry = Geometry { buckets: 256, window: 32, records: 600, seats: 8 };
/// More keys than cells: somebody leaves all the time.
const TIGHT: Geometry = Geometry { buckets: 24, window: 8, records: 200, seats: 8 };
const WORKERS: usize = 2;
const KEYS: u64 = 64;
const PATIENCE: Duration = Duration::from_secs(20);

/// Key `index` of a worker: workers share buckets, never keys.
fn key(worker: usize, index: u64, buckets: u32) -> InputHash {
    let hash = (worker as u32 + 1) << 16 | (index as u32 + 1);
    InputHash::new(hash, index as u32 * 7 % buckets).expect("a legal key")
}

/// Does a worker's task, if this process is one; it ends by being killed.
pub(super) fn work() -> bool {
    let Some(task) = task() else { return false };
    let words: Vec<&str> = task.split(' ').collect();
    let ["tier-map", name, worker, seed] = words[..] else { return false };
    let (Ok(worker), Ok(seed)) = (worker.parse::<usize>(), seed.parse::<u64>()) else {
        return false;
    };
    let Ok(mut shared) = SharedMap::attach(&Place::Name(name.to_owned()), None) else {
        report("failed to attach");
        return true;
    };
    shared.set_sink(|left| report(&format!("left {} {}", left.input.word(), left.value)));
    let map = shared.map();
    let Ok(mut handle) = map.handle() else {
        report("failed to take a seat");
        return true;
    };
    let mut random = Rng::with_seed(seed);
    report("ready");
    for step in 0.. {
        let input = key(worker, random.u64(..KEYS), map.geometry().buckets);
        handle.set_tick(random.u32(..));
        operate(&mut handle, input, seed << 32 | step, random.u32(..8));
    }
    true
}

fn operate(handle: &mut Handle<'_>, input: InputHash, value: u64, choice: u32) {
    let name = input.word();
    let answer = match choice {
        0..4 => {
            report(&format!("add {name} {value}"));
            handle.add(input, value).map(|_| format!("done {name}"))
        }
        4 => {
            report(&format!("update {name} {value}"));
            handle.update(input, value).map(|_| format!("done {name}"))
        }
        5 => {
            report(&format!("remove {name}"));
            handle.remove(input).map(|()| format!("done {name}"))
        }
        _ => {
            report(&format!("get {name}"));
            handle.get(input).map(|found| match found {
                Some(value) => format!("saw {name} {value}"),
                None => format!("missed {name}"),
            })
        }
    };
    report(&match answer {
        Ok(answer) => answer,
        Err(MapError::Exists | MapError::NotFound) => format!("refused {name}"),
        Err(error) => format!("failed {name} {error}"),
    });
}

/// Starts a worker. Taking its seat it may recover a dead one: departures reported before it is
/// ready go to `early`.
fn spawn(name: &str, worker: usize, seed: u64, early: &mut Vec<String>) -> Result<Child, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.arg("torture");
    let child = Child::of(command, &format!("tier-map {name} {worker} {seed}"));
    let child = child.map_err(|error| error.to_string())?;
    loop {
        match child.line(PATIENCE) {
            Some(line) if line == "ready" => return Ok(child),
            Some(line) if line.starts_with("left ") => early.push(line),
            other => return Err(format!("worker did not start: {other:?}")),
        }
    }
}

fn run(order: &Order, geometry: Geometry) -> Verdict {
    let name = format!("torture-{}-{}", std::process::id(), geometry.buckets);
    let place = Place::Name(name.clone());
    let _ = SharedMap::remove(&place);
    let mut verdict = Verdict {
        kills: Some(0),
        lost: Some(0),
        hangs: Some(0),
        leaks: Some(0),
        ..Verdict::default()
    };
    let created = SharedMap::create(&place, geometry, Access::default());
    let result = created
        .map_err(|error| error.to_string())
        .and_then(|mut shared| soak(order, &name, &mut shared, &mut verdict));
    let _ = SharedMap::remove(&place);
    if let Err(error) = result {
        verdict.violations += 1;
        verdict.notes.push(error);
    }
    verdict
}

fn soak(
    order: &Order,
    name: &str,
    shared: &mut SharedMap,
    verdict: &mut Verdict,
) -> Result<(), String> {
    let mut random = Rng::with_seed(order.seed);
    let mut ledger = Ledger::default();
    let mut life = 0;
    let mut early = Vec::new();
    let mut next = |worker| {
        life += 1;
        spawn(name, worker, life, &mut early)
    };
    let mut workers = (0..WORKERS).map(&mut next).collect::<Result<Vec<_>, _>>()?;
    let end = Instant::now() + order.time.max(Duration::from_millis(200));
    let mut hear = |child: &mut Child, verdict: &mut Verdict| -> Result<(), String> {
        child.kill().map_err(|error| error.to_string())?;
        *verdict.kills.get_or_insert(0) += 1;
        for line in child.rest() {
            verdict.operations += 1;
            if !ledger.read(&line)? {
                // Nobody alive is ever stopped here: whoever gives up has hung.
                *verdict.hangs.get_or_insert(0) += 1;
                verdict.notes.push(line);
            }
        }
        Ok(())
    };
    while Instant::now() < end {
        std::thread::sleep(Duration::from_micros(random.u64(..6000)));
        let worker = random.usize(..WORKERS);
        hear(&mut workers[worker], verdict)?;
        workers[worker] = next(worker)?;
    }
    for worker in &mut workers {
        hear(worker, verdict)?;
    }
    for line in early {
        ledger.read(&line)?;
    }
    let late = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&late);
    shared.set_sink(move |left| {
        if let Ok(mut log) = log.lock() {
            log.push((left.input.word(), left.value));
        }
    });
    let map = shared.map();
    map.recover().map_err(|error| error.to_string())?;
    let report = map.check()?;
    for (key, value) in late.lock().map_err(|error| error.to_string())?.drain(..) {
        ledger.left(key, value);
    }
    let reader = map.reader();
    let look = |key| InputHash::from_word(key).ok().and_then(|key| reader.get(key).ok().flatten());
    match ledger.close(look) {
        Ok(present) => verdict.leaks = Some(u64::from(report.live).abs_diff(present as u64)),
        Err(error) => {
            verdict.lost = Some(1);
            verdict.notes.push(error);
        }
    }
    Ok(())
}
