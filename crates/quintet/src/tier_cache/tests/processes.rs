//! Real processes on a real segment: killed at every point, killed at any time, stopped, forked.

use super::situations::{Answer, act, in_order, set_up};
use super::world::{SMALL, contents, key};
use crate::tier_cache::situations::{Case, Situation, cases};
use crate::tier_cache::step::{Fate, Point, with_fate};
use crate::tier_cache::*;
use quintet_testkit::crash::{Child, ledger::Ledger, report, task};
use std::time::{Duration, Instant};

pub(super) const CHILD: &str = "tier_cache::tests::processes::child";
/// A hang: no result after this long although nobody alive holds anything.
const HANG: Duration = Duration::from_secs(1);
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A segment that is removed with the test.
pub(super) struct Segment(Place);

impl Segment {
    pub(super) fn new(name: &str) -> Self {
        let place = Place::Name(format!("test-{name}-{}", std::process::id()));
        let _ = SharedMap::remove(&place);
        Self(place)
    }

    pub(super) fn name(&self) -> &str {
        match &self.0 {
            Place::Name(name) => name,
            Place::Path(_) => unreachable!(),
        }
    }

    pub(super) fn create(&self, geometry: Geometry) -> SharedMap {
        let _ = SharedMap::remove(&self.0);
        SharedMap::create(&self.0, geometry, Access::default()).unwrap()
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        let _ = SharedMap::remove(&self.0);
    }
}

/// The entry of every child; in the parent's own run it does nothing.
#[test]
fn child() {
    let Some(task) = task() else { return };
    let words: Vec<&str> = task.split(' ').collect();
    let number = |at: usize| words[at].parse::<usize>().unwrap();
    let place = Place::Name(words[1].to_owned());
    let mut shared = SharedMap::attach(&place, None).unwrap();
    shared.set_sink(|left| report(&format!("left {} {}", left.input.word(), left.value)));
    match words[0] {
        "case" => {
            let case = &cases(Situation::ALL[number(2)])[number(3)];
            let mut handle = shared.map().handle().unwrap();
            let ((), points) = with_fate(Fate::Kill(number(4)), None, || {
                act(&mut handle, case.first);
            });
            report(&format!("survived {points}"));
        }
        "stop" => {
            let mut handle = shared.map().handle().unwrap();
            report("ready");
            let (added, _) = with_fate(Fate::Pause(Point::Release), None, || {
                handle.add(key(number(2) as u32, number(3) as u32), 7)
            });
            report(&format!("went on {}", added.is_ok()));
        }
        "soak" => soak_worker(&shared, number(2), number(3) as u64),
        "hold" => {
            let mut handle = shared.map().handle().unwrap();
            let prepared = handle.prepare(key(7, 1)).unwrap();
            let committed = handle.commit(prepared, 70).unwrap();
            report("held");
            std::thread::sleep(PATIENCE);
            drop(committed);
        }
        "exec" => {
            use std::os::unix::process::CommandExt;
            let mut handle = shared.map().handle().unwrap();
            let prepared = handle.prepare(key(7, 1)).unwrap();
            let committed = handle.commit(prepared, 70).unwrap();
            report("held");
            std::io::stdin().read_line(&mut String::new()).unwrap();
            // The same process with another program: pid and start time stay.
            let error = std::process::Command::new("sleep").arg("20").exec();
            drop(committed);
            panic!("{error}");
        }
        "meet" => super::meetings::actor(&shared),
        "fork" => fork_in_child(&shared),
        other => panic!("unknown task {other}"),
    }
}

/// One real death. Returns false when the operation has no such point.
fn kill_at(segment: &Segment, situation: usize, index: usize, case: &Case, at: usize) -> bool {
    let shared = segment.create(SMALL);
    let mut handle = shared.map().handle().unwrap();
    for action in &case.before {
        assert_eq!(act(&mut handle, *action), Answer::Done);
    }
    let task = format!("case {} {situation} {index} {at}", segment.name());
    let mut child = Child::of_test(CHILD, &task).unwrap();
    let status = child.wait(PATIENCE).unwrap().expect("the child ends");
    let start = Instant::now();
    let second = act(&mut handle, case.second);
    assert!(start.elapsed() < HANG, "{case:?} at {at}: hang");
    assert_ne!(second, Answer::Busy, "{case:?} at {at}");
    drop(handle);
    shared.map().recover().unwrap();
    shared.map().check().unwrap_or_else(|error| panic!("{error}: {case:?} at {at}"));
    let got = (second, contents(&shared.map()));
    let orders = [in_order(case, &[0, 1]), in_order(case, &[1]), in_order(case, &[1, 0])];
    let fits = orders.iter().any(|end| (end.answers[1], &end.contents) == (got.0, &got.1));
    assert!(fits, "{case:?} at {at}: {got:?} not in {orders:#?}");
    !status.success()
}

/// Every situation, its first variant, the first actor killed by SIGKILL at every point.
#[test]
fn killed_at_every_point() {
    let segment = Segment::new("points");
    let all = std::env::var("QUINTET_ALL_CASES").is_ok();
    for (number, situation) in Situation::ALL.into_iter().enumerate() {
        let mut runs = 0;
        for (index, case) in cases(situation).iter().enumerate() {
            if index > 0 && !all {
                break;
            }
            drop(set_up(case));
            runs += (0..).take_while(|at| kill_at(&segment, number, index, case, *at)).count() + 1;
        }
        println!("process | {} | {} | {runs}", situation.number(), situation.title());
    }
}

const SOAK: Geometry = Geometry { buckets: 64, window: 32, records: 400, seats: 8 };
const SOAK_KEYS: u64 = 60;

/// Key `index` of a worker: workers share buckets, never keys.
fn soak_key(worker: usize, index: u64) -> InputHash {
    key((worker as u32 + 1) << 16 | (index as u32 + 1), (index * 7 % 64) as u32)
}

fn soak_worker(shared: &SharedMap, worker: usize, seed: u64) {
    let mut handle = shared.map().handle().unwrap();
    let mut random = quintet_testkit::Rng::with_seed(seed);
    report("ready");
    for step in 0.. {
        let input = soak_key(worker, random.u64(..SOAK_KEYS));
        let (name, value) = (input.word(), seed << 32 | step);
        handle.set_tick(random.u32(..));
        let answer = match random.u32(..8) {
            0..4 => {
                report(&format!("add {name} {value}"));
                handle.add(input, value).map(|_| "done".to_owned())
            }
            4 => {
                report(&format!("update {name} {value}"));
                handle.update(input, value).map(|_| "done".to_owned())
            }
            5 => {
                report(&format!("remove {name}"));
                handle.remove(input).map(|()| "done".to_owned())
            }
            _ => {
                report(&format!("get {name}"));
                handle.get(input).map(|found| match found {
                    Some(value) => format!("saw {name} {value}"),
                    None => format!("missed {name}"),
                })
            }
        };
        match answer {
            Ok(answer) if answer == "done" => report(&format!("done {name}")),
            Ok(answer) => report(&answer),
            Err(MapError::Exists | MapError::NotFound) => report(&format!("refused {name}")),
            Err(error) => report(&format!("failed {name} {error}")),
        }
    }
}

/// Workers are killed at any time, again and again; nothing acknowledged is lost, nobody hangs,
/// nothing leaks.
#[test]
fn killed_at_any_time() {
    let cycles =
        std::env::var("QUINTET_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let segment = Segment::new("soak");
    let shared = segment.create(SOAK);
    let mut ledger = Ledger::default();
    let mut random = quintet_testkit::Rng::with_seed(3);
    let early = std::cell::RefCell::new(Vec::new());
    let spawn = |worker: usize, seed: usize| {
        let task = format!("soak {} {worker} {seed}", segment.name());
        let child = Child::of_test(CHILD, &task).unwrap();
        // Taking its seat it may recover a dead one, whose departures it reports first.
        loop {
            match child.line(PATIENCE).expect("the worker starts").as_str() {
                "ready" => return child,
                left => early.borrow_mut().push(left.to_owned()),
            }
        }
    };
    let mut workers = [spawn(0, 1), spawn(1, 2)];
    let mut lines = 0;
    for cycle in 0..cycles {
        std::thread::sleep(Duration::from_micros(random.u64(..8000)));
        let worker = random.usize(..2);
        workers[worker].kill().unwrap();
        for line in workers[worker].rest() {
            assert!(ledger.read(&line).unwrap(), "{line}");
            lines += 1;
        }
        workers[worker] = spawn(worker, cycle + 3);
    }
    for worker in &mut workers {
        worker.kill().unwrap();
        for line in worker.rest() {
            assert!(ledger.read(&line).unwrap(), "{line}");
        }
    }
    for line in early.borrow_mut().drain(..) {
        assert!(ledger.read(&line).unwrap(), "{line}");
    }
    let late = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut shared = shared;
    let log = std::sync::Arc::clone(&late);
    shared.set_sink(move |left| log.lock().unwrap().push((left.input.word(), left.value)));
    shared.map().recover().unwrap();
    let report = shared.map().check().unwrap();
    for (name, value) in late.lock().unwrap().drain(..) {
        ledger.left(name, value);
    }
    let reader = shared.map().reader();
    let look = |name| reader.get(InputHash::from_word(name).unwrap()).unwrap();
    let present = ledger.close(look).unwrap();
    assert_eq!(present as u32, report.live, "no cell leaked");
    println!("{cycles} kills, {lines} reports, {present} entries in the end");
}

/// Behind a stopped owner hits are undisturbed, misses and writes are busy at their timeout, other
/// buckets do not notice.
#[test]
fn stopped_inside_a_bucket() {
    let segment = Segment::new("stop");
    let shared = segment.create(SMALL);
    let mut handle = shared.map().handle().unwrap();
    handle.set_timeout(Duration::from_millis(30));
    let token = handle.add(key(5, 1), 50).unwrap();
    let mut child = Child::of_test(CHILD, &format!("stop {} 6 1", segment.name())).unwrap();
    assert_eq!(child.line(PATIENCE).as_deref(), Some("ready"));
    let start = Instant::now();
    while handle.get(key(99, 1)) != Err(MapError::Busy) {
        assert!(start.elapsed() < PATIENCE, "the child reaches its point");
    }
    assert_eq!(handle.get(token), Ok(Some(50)));
    assert_eq!(handle.get(key(6, 1)), Ok(Some(7)), "linked, though not released");
    assert_eq!(handle.add(key(8, 1), 1), Err(MapError::Busy));
    assert_eq!(handle.remove(token), Err(MapError::Busy));
    handle.add(key(8, 2), 1).unwrap();
    assert_eq!(handle.get(key(99, 3)), Ok(None));
    child.resume();
    assert_eq!(child.line(PATIENCE).as_deref(), Some("went on true"));
    assert!(child.wait(PATIENCE).unwrap().is_some());
    handle.set_timeout(HANG);
    assert_eq!(handle.get(key(99, 1)), Ok(None));
    // The same again, and this time it is killed while stopped.
    let mut child = Child::of_test(CHILD, &format!("stop {} 9 1", segment.name())).unwrap();
    assert_eq!(child.line(PATIENCE).as_deref(), Some("ready"));
    while handle.get(key(9, 1)) != Ok(Some(7)) {
        assert!(start.elapsed() < PATIENCE, "the child reaches its point");
    }
    child.kill().unwrap();
    handle.add(key(10, 1), 1).unwrap();
    assert_eq!(handle.get(key(9, 1)), Ok(Some(7)));
    drop(handle);
    shared.map().recover().unwrap();
    shared.map().check().unwrap();
}

/// A zombie still has a pid, but it holds no lock.
#[test]
fn a_zombie_is_dead() {
    let segment = Segment::new("zombie");
    let shared = segment.create(SMALL);
    let mut handle = shared.map().handle().unwrap();
    let mut child = Child::of_test(CHILD, &format!("hold {}", segment.name())).unwrap();
    assert_eq!(child.line(PATIENCE).as_deref(), Some("held"));
    handle.set_timeout(Duration::from_millis(20));
    assert_eq!(handle.add(key(8, 1), 1), Err(MapError::Busy), "alive");
    child.kill_only().unwrap();
    handle.set_timeout(HANG);
    handle.add(key(8, 1), 1).unwrap();
    assert_eq!(handle.get(key(7, 1)), Ok(Some(70)));
    drop(handle);
    shared.map().recover().unwrap();
    shared.map().check().unwrap();
}

/// A process that became another program lives on under its pid, but it takes part no more.
#[test]
fn exec_ends_the_membership() {
    let segment = Segment::new("exec");
    let shared = segment.create(SMALL);
    let mut handle = shared.map().handle().unwrap();
    let mut child = Child::of_test(CHILD, &format!("exec {}", segment.name())).unwrap();
    assert_eq!(child.line(PATIENCE).as_deref(), Some("held"));
    handle.set_timeout(Duration::from_millis(20));
    assert_eq!(handle.add(key(8, 1), 1), Err(MapError::Busy), "alive");
    child.tell("exec");
    let start = Instant::now();
    while handle.add(key(8, 1), 1) == Err(MapError::Busy) {
        assert!(start.elapsed() < PATIENCE, "the other program holds nothing");
    }
    assert_eq!(handle.get(key(8, 1)), Ok(Some(1)));
    assert_eq!(handle.get(key(7, 1)), Ok(Some(70)));
    assert!(child.wait(Duration::ZERO).unwrap().is_none(), "and is alive");
    child.kill().unwrap();
    drop(handle);
    shared.map().recover().unwrap();
    shared.map().check().unwrap();
}

/// Runs in a child: forks with a handle in hand, inside a held bucket.
fn fork_in_child(shared: &SharedMap) {
    let mut handle = shared.map().handle().unwrap();
    let mut inherited = shared.map().handle().unwrap();
    handle.add(key(1, 1), 10).unwrap();
    let prepared = handle.prepare(key(7, 1)).unwrap();
    let committed = handle.commit(prepared, 70).unwrap();
    // SAFETY: the child below uses this library only, whose state is atomics.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // The parent's lock is not ours to hold: nothing but the lock tells that the parent is
        // dead.
        let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let targets = descriptors.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        let ours = targets.filter(|path| path.to_string_lossy().contains("/quintet-")).count();
        assert_eq!(ours, 1, "the mapped file; the child closed the other one");
        assert_eq!(inherited.add(key(9, 5), 90), Err(MapError::Forked), "the parent's seat");
        // The bucket is the parent's, who is alive: busy. Elsewhere a handle of our own works.
        let mut own = shared.map().handle().unwrap();
        own.set_timeout(Duration::from_millis(20));
        assert_eq!(own.add(key(8, 1), 1), Err(MapError::Busy));
        own.add(key(8, 2), 80).unwrap();
        report("child has its own seat");
        loop {
            std::thread::sleep(Duration::from_millis(1));
            if own.add(key(8, 1), 1).is_ok() {
                break;
            }
        }
        report("parent's death was noticed");
        std::mem::forget(committed);
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(0) };
    }
    std::thread::sleep(PATIENCE);
    drop(committed);
}

/// The forked child neither keeps its parent alive nor uses its seat.
#[test]
fn fork_takes_its_own_seat() {
    let segment = Segment::new("fork");
    let shared = segment.create(SMALL);
    let mut child = Child::of_test(CHILD, &format!("fork {}", segment.name())).unwrap();
    assert_eq!(child.line(PATIENCE).as_deref(), Some("child has its own seat"));
    child.kill_only().unwrap();
    assert_eq!(child.line(PATIENCE).as_deref(), Some("parent's death was noticed"));
    let handle = shared.map().handle().unwrap();
    assert_eq!(handle.get(key(7, 1)), Ok(Some(70)));
    assert_eq!(handle.get(key(8, 2)), Ok(Some(80)));
    drop(handle);
    std::thread::sleep(Duration::from_millis(20));
    shared.map().recover().unwrap();
    shared.map().check().unwrap();
}

/// Read-only: hits, misses and a check, no seat; behind a held bucket a miss is busy.
#[test]
fn read_only_maps_read() {
    let segment = Segment::new("read");
    let shared = segment.create(SMALL);
    let mut handle = shared.map().handle().unwrap();
    handle.add(key(3, 3), 30).unwrap();
    let attached = SharedMap::attach_read_only(&segment.0).unwrap();
    let map = attached.map();
    assert_eq!(map.handle().err(), Some(MapError::NoSeat));
    let mut reader = map.reader();
    reader.set_timeout(Duration::ZERO);
    assert_eq!((reader.get(key(3, 3)), reader.get(key(4, 3))), (Ok(Some(30)), Ok(None)));
    let prepared = handle.prepare(key(5, 3)).unwrap();
    let committed = handle.commit(prepared, 50).unwrap();
    assert_eq!(reader.get(key(5, 3)), Ok(Some(50)));
    assert_eq!(reader.get(key(4, 3)), Err(MapError::Busy));
    assert_eq!(map.recover(), Ok(()));
    drop(committed);
    assert_eq!(map.check().unwrap().live, 2);
}

/// A map in a file, found again after the machine restarted: repaired, checked, entered; damaged,
/// it is refused.
#[test]
fn a_file_outlives_a_restart() {
    use std::os::unix::fs::FileExt;
    const BOOT: u64 = 7 * 8;
    let path = std::env::temp_dir().join(format!("quintet-restart-{}", std::process::id()));
    let place = Place::Path(path.clone());
    let _ = SharedMap::remove(&place);
    let shared = SharedMap::create(&place, SMALL, Access::default()).unwrap();
    let mut handle = shared.map().handle().unwrap();
    handle.add(key(3, 3), 0x1234_5678).unwrap();
    // The machine stops inside an operation.
    let prepared = handle.prepare(key(5, 3)).unwrap();
    std::mem::forget(handle.commit(prepared, 50).unwrap());
    std::mem::forget(handle);
    drop(shared);
    let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    file.write_all_at(&[1; 16], BOOT).unwrap();
    let shared = SharedMap::attach(&place, Some(SMALL)).unwrap();
    assert_eq!(shared.map().reader().get(key(5, 3)), Ok(Some(50)));
    assert_eq!(shared.map().check().unwrap().live, 2);
    let mut boot = [0; 16];
    file.read_exact_at(&mut boot, BOOT).unwrap();
    assert_ne!(boot, [1; 16], "entered in this boot");
    drop(shared);
    // One bit of a value.
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let value = 0x1234_5678_u64.to_ne_bytes();
    let at = bytes.chunks(8).rposition(|word| word == value).unwrap();
    file.write_all_at(&[value[0] ^ 1], at as u64 * 8).unwrap();
    let shared = SharedMap::attach(&place, None).unwrap();
    let found = shared.map().verifying().reader().get(key(3, 3));
    assert!(matches!(found, Err(MapError::Corrupt(_))), "{found:?}");
    drop(shared);
    file.write_all_at(&[1; 16], BOOT).unwrap();
    match SharedMap::attach(&place, None) {
        Err(OpenError::Damaged(what)) => assert!(what.contains("damaged"), "{what}"),
        other => panic!("{other:?}"),
    }
    SharedMap::remove(&place).unwrap();
}

#[test]
fn a_sealed_map_is_handed_on_by_descriptor() {
    let sealed = SharedMap::create_sealed(SMALL).unwrap();
    let mut handle = sealed.map().handle().unwrap();
    handle.add(key(3, 3), 30).unwrap();
    let other = SharedMap::attach_sealed(sealed.inheritable().unwrap()).unwrap();
    let mut second = other.map().handle().unwrap();
    assert_eq!(second.get(key(3, 3)), Ok(Some(30)));
    second.update(key(3, 3), 31).unwrap();
    assert_eq!(handle.get(key(3, 3)), Ok(Some(31)));
    let fd = std::fs::File::from(sealed.inheritable().unwrap());
    assert!(fd.set_len(1).is_err(), "sealed");
}
