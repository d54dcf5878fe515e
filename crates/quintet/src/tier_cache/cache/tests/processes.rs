//! Real processes on a real segment: killed at any time, stopped, forked.

use super::world::small;
use crate::tier_cache::cache::*;
use crate::tier_cache::step::{Fate, Point, with_fate};
use quintet_testkit::Rng;
use quintet_testkit::crash::{Child, report, task};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

const CHILD: &str = "tier_cache::cache::tests::processes::child";
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A cache that is removed with the test.
pub(super) struct Named(Place);

impl Named {
    pub(super) fn new(name: &str) -> Self {
        let place = Place::Name(format!("test-cache-{name}-{}", std::process::id()));
        let _ = TierCache::unlink(&place);
        Self(place)
    }

    fn name(&self) -> &str {
        match &self.0 {
            Place::Name(name) => name,
            Place::Path(_) => unreachable!(),
        }
    }

    pub(super) fn path(&self) -> String {
        format!("/dev/shm/quintet-{}", self.name())
    }

    pub(super) fn place(&self) -> &Place {
        &self.0
    }

    pub(super) fn child(&self, task: &str, rest: &str) -> Child {
        Child::of_test(CHILD, &format!("{task} {} {rest}", self.name())).unwrap()
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = TierCache::unlink(&self.0);
    }
}

/// The entry of every child; in the parent's own run it does nothing.
#[test]
fn child() {
    let Some(task) = task() else { return };
    let words: Vec<&str> = task.split(' ').collect();
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    let place = Place::Name(words[1].to_owned());
    if words[0] == "rush" {
        report("ready");
        let _ = std::io::stdin().read_line(&mut String::new());
        let worked = TierCache::attach(&place).map(|cache| {
            let mut handle = cache.handle().unwrap();
            (0..500u32).all(|number| handle.insert(number.to_string(), [8; 100]).is_ok())
        });
        return report(&worked.map_or_else(|error| error.to_string(), |_| "worked".to_owned()));
    }
    let mut cache = TierCache::attach(&place).unwrap();
    match words[0] {
        "soak" => {
            cache.set_sink(|batch: &[Departed]| {
                for gone in batch {
                    report(&format!(
                        "left {} {}",
                        text(&gone.key),
                        stamp(&gone.value).unwrap_or(0)
                    ));
                }
                Ok(())
            });
            soak_worker(&cache, number(2), number(3));
        }
        "history" => {
            super::histories::work(&cache, number(2) as u32, number(3) as usize, number(4) == 1);
        }
        "torn" => {
            let mut handle = cache.handle().unwrap();
            report("ready");
            for step in 0u64.. {
                handle.insert("k", filled(step, (step % 900) as usize)).unwrap();
            }
        }
        "pause" => {
            let mut handle = cache.handle().unwrap();
            report("ready");
            with_fate(Fate::Pause(Point::Release), None, || handle.insert("stopped", "x"))
                .0
                .unwrap();
            report("went on");
        }
        "compute" => {
            let mut handle = cache.handle().unwrap();
            let value = handle.get_or_compute("answer", None, || {
                report("computing");
                std::thread::sleep(Duration::from_millis(number(2)));
                words[3].as_bytes().to_vec()
            });
            report(&format!("got {}", text(&value.unwrap())));
        }
        "fill" => {
            let mut handle = cache.handle().unwrap();
            for number in 0..200usize {
                handle.insert(number.to_string(), vec![b'x'; 3 * number]).unwrap();
                report(&number.to_string());
            }
        }
        "count" => super::members::work(&cache),
        "serve" => super::members::serve(&cache, words[2]),
        "attack" => super::quotas::attack(&cache),
        #[cfg(feature = "lmdb")]
        "crowd" => super::crowds::join(&cache, number(2)),
        "flood" => super::quotas::flood(&cache),
        "fork" => fork_in_child(&cache),
        "maintain" => {
            let stop = crate::sync::AtomicBool::new(false);
            report("ready");
            cache.run_maintenance(Duration::from_millis(1), &stop).unwrap();
        }
        other => panic!("unknown task {other}"),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A value that shows whether it is whole: its stamp, then bytes that follow from it.
fn filled(stamp: u64, len: usize) -> Vec<u8> {
    let mut value = stamp.to_le_bytes().to_vec();
    value.extend((0..len).map(|at| (stamp as u8).wrapping_add(at as u8)));
    value
}

fn stamp(value: &[u8]) -> Option<u64> {
    let stamp = u64::from_le_bytes(value.get(..8)?.try_into().ok()?);
    (filled(stamp, value.len() - 8) == value).then_some(stamp)
}

const KEYS: u64 = 100;

/// Writes its own keys, of one to several blocks, and reports before and after each operation.
fn soak_worker(cache: &TierCache, worker: u64, seed: u64) {
    let mut handle = cache.handle().unwrap();
    let mut random = Rng::with_seed(seed);
    report("ready");
    for step in 1.. {
        let key = format!("{worker}:{}", random.u64(..KEYS));
        let stamp = seed << 24 | step;
        match random.u32(..10) {
            0..6 => {
                report(&format!("set {key} {stamp}"));
                match handle.insert(&key, filled(stamp, random.usize(..600))) {
                    Ok(_) => report(&format!("done {key}")),
                    Err(CacheError::Full) => report(&format!("full {key}")),
                    Err(error) => report(&format!("failed {key} {error}")),
                }
            }
            6 => {
                report(&format!("del {key} 0"));
                match handle.remove(&key) {
                    Ok(_) => report(&format!("done {key}")),
                    Err(error) => report(&format!("failed {key} {error}")),
                }
            }
            _ => {
                let other = format!("{}:{}", random.u64(..2), random.u64(..KEYS));
                match handle.get(&other) {
                    Ok(None) => {}
                    Ok(Some(value)) if self::stamp(&value).is_some() => {}
                    Ok(Some(_)) => report(&format!("torn {other} 0")),
                    Err(error) => report(&format!("failed {other} {error}")),
                }
            }
        }
    }
}

/// What the reports of killed workers allow: the last acknowledged stamp of each key (0: removed)
/// and those begun since.
#[derive(Default)]
struct Book {
    known: HashMap<String, u64>,
    begun: HashMap<String, Vec<u64>>,
    left: HashSet<(String, u64)>,
    acknowledged: u64,
}

impl Book {
    fn read(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let key = words.get(1).copied().unwrap_or_default().to_owned();
        let stamp = words.get(2).and_then(|word| word.parse().ok()).unwrap_or(0);
        match words[0] {
            "ready" => {}
            "set" | "del" => self.begun.entry(key).or_default().push(stamp),
            "done" => {
                let last = self.begun.remove(&key).and_then(|begun| begun.last().copied());
                self.known.insert(key, last.expect("begun before"));
                self.acknowledged += 1;
            }
            "full" => {
                self.begun.get_mut(&key).and_then(Vec::pop);
            }
            "left" => {
                self.left.insert((key, stamp));
            }
            _ => panic!("{line}"),
        }
    }

    /// An acknowledged value is there, was overwritten by one begun since, or has left.
    fn check(&self, key: &str, found: Option<u64>) {
        let known = self.known.get(key).copied().unwrap_or(0);
        let begun = self.begun.get(key).cloned().unwrap_or_default();
        let now = found.unwrap_or(0);
        let fits = now == known
            || begun.contains(&now)
            || now == 0 && self.left.contains(&(key.to_owned(), known))
            || now == 0 && begun.iter().any(|stamp| self.left.contains(&(key.to_owned(), *stamp)));
        assert!(fits, "{key}: {now}, acknowledged {known}, begun {begun:?}");
    }
}

fn cycles() -> usize {
    std::env::var("QUINTET_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(40)
}

/// Workers are killed at any time, again and again.
fn soak(name: &str, builder: CacheBuilder) {
    let named = Named::new(name);
    let cache = builder.create(&named.0).unwrap();
    let mut book = Book::default();
    let mut random = Rng::with_seed(9);
    let spawn = |worker: usize, seed: usize| {
        let child = named.child("soak", &format!("{worker} {seed}"));
        assert_eq!(child.line(PATIENCE).as_deref(), Some("ready"));
        child
    };
    let mut workers = [spawn(0, 1), spawn(1, 2)];
    for cycle in 0..cycles() {
        std::thread::sleep(Duration::from_micros(random.u64(..20_000)));
        let worker = random.usize(..2);
        workers[worker].kill().unwrap();
        workers[worker].rest().iter().for_each(|line| book.read(line));
        workers[worker] = spawn(worker, cycle + 3);
    }
    for worker in &mut workers {
        worker.kill().unwrap();
        worker.rest().iter().for_each(|line| book.read(line));
    }
    cache.recover().unwrap();
    let checked = cache.check().unwrap();
    let mut handle = cache.handle().unwrap();
    for worker in 0..2 {
        for number in 0..KEYS {
            let key = format!("{worker}:{number}");
            let value = handle.get(&key).unwrap();
            book.check(&key, value.map(|value| stamp(&value).expect("whole")));
        }
    }
    let stats = cache.stats();
    println!(
        "{name}: {} kills, {} acknowledged, {} recoveries, {} orphans, {} evicted, {checked:?}",
        cycles(),
        book.acknowledged,
        stats.recoveries,
        stats.orphans,
        stats.evicted
    );
    if !cache.sizes.evicts {
        assert_eq!((stats.evicted, stats.forced), (0, 0));
    } else {
        assert!(stats.evicted > 0);
    }
}

#[test]
fn killed_at_any_time_nothing_is_lost() {
    soak("spare", small().no_evict());
}

#[test]
fn killed_at_any_time_what_is_gone_was_delivered() {
    soak("evict", small().handles(8).capacity(128 << 10));
}

#[test]
fn killed_at_any_time_with_s3fifo() {
    soak("s3fifo", small().handles(8).capacity(128 << 10).policy(Policy::S3Fifo));
}

#[test]
fn killed_at_any_time_with_sieve() {
    soak("sieve", small().handles(8).capacity(128 << 10).policy(Policy::Sieve));
}

/// A reader never sees a part of one value and a part of another, also if the writer is killed.
#[test]
fn values_are_never_torn() {
    let named = Named::new("torn");
    let cache = small().capacity(128 << 10).create(&named.0).unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert("k", filled(0, 0)).unwrap();
    for _ in 0..3 {
        let mut child = named.child("torn", "");
        assert_eq!(child.line(PATIENCE).as_deref(), Some("ready"));
        let (start, mut seen) = (Instant::now(), HashSet::new());
        while seen.len() < 20 || start.elapsed() < Duration::from_millis(50) {
            assert!(start.elapsed() < PATIENCE, "the writer writes");
            let value = handle.get("k").unwrap().expect("always there");
            seen.insert(stamp(&value).expect("torn"));
        }
        child.kill().unwrap();
        let value = handle.get("k").unwrap().expect("still there");
        stamp(&value).expect("torn");
    }
    drop(handle);
    cache.recover().unwrap();
    assert_eq!(cache.check().unwrap().entries, 1);
}

/// One computes; the others wait. If it is killed, another takes over.
#[test]
fn single_flight_across_processes() {
    let named = Named::new("flight");
    let cache = small().create(&named.0).unwrap();
    let mut handle = cache.handle().unwrap();
    let first = named.child("compute", "100 one");
    assert_eq!(first.line(PATIENCE).as_deref(), Some("computing"));
    let second = named.child("compute", "0 two");
    let mine = handle.get_or_compute("answer", None, || b"three".to_vec()).unwrap();
    assert_eq!(mine, b"one");
    assert_eq!(first.line(PATIENCE).as_deref(), Some("got one"));
    assert_eq!(second.line(PATIENCE).as_deref(), Some("got one"), "it did not compute");
    handle.remove("answer").unwrap();
    let mut first = named.child("compute", "100000 one");
    assert_eq!(first.line(PATIENCE).as_deref(), Some("computing"));
    handle.set_patience(Duration::from_millis(20));
    assert_eq!(handle.get_or_compute("answer", None, Vec::new), Err(CacheError::Busy));
    first.kill().unwrap();
    let mine = handle.get_or_compute("answer", None, || b"three".to_vec()).unwrap();
    assert_eq!(mine, b"three");
    assert_eq!(cache.stats().computed, 2);
}

/// A stopped writer holds up misses and writes of one bucket, nothing else, and sets still find
/// victims.
#[test]
fn stopped_inside_a_bucket() {
    let named = Named::new("stop");
    let cache = small().capacity(128 << 10).create(&named.0).unwrap();
    let mut handle = cache.handle().unwrap();
    handle.set_timeout(Duration::from_millis(30));
    let mut child = named.child("pause", "");
    assert_eq!(child.line(PATIENCE).as_deref(), Some("ready"));
    let start = Instant::now();
    while handle.get("stopped").ok().flatten().is_none() {
        assert!(start.elapsed() < PATIENCE, "the child reaches its point");
    }
    assert_eq!(handle.insert("stopped", "y").err(), Some(CacheError::Busy));
    assert_eq!(handle.remove("stopped").err(), Some(CacheError::Busy));
    let mut busy = 0;
    for number in 0..3000u32 {
        match handle.insert(number.to_string(), "x") {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error, CacheError::Busy);
                busy += 1;
            }
        }
    }
    assert!(busy < 100, "{busy}: other buckets do not notice");
    assert!(handle.get("stopped").unwrap().is_some(), "a victim in a held bucket is passed over");
    child.resume();
    assert_eq!(child.line(PATIENCE).as_deref(), Some("went on"));
    assert!(child.wait(PATIENCE).unwrap().is_some());
    handle.insert("stopped", "y").unwrap();
    drop(handle);
    cache.check().unwrap();
}

fn fork_in_child(cache: &TierCache) {
    let mut handle = cache.handle().unwrap();
    handle.insert("parent", "1").unwrap();
    // SAFETY: the child below uses this library only, whose state is atomics.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        assert_eq!(handle.get("parent"), Err(CacheError::Forked));
        assert_eq!(handle.insert("parent", "2").err(), Some(CacheError::Forked));
        let mut own = cache.handle().unwrap();
        assert_eq!(own.get_str("parent").unwrap().as_deref(), Some("1"));
        own.insert("child", "1").unwrap();
        report("child works");
        std::mem::forget(handle);
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: waits for our own child; the place outlives the call.
    unsafe { libc::waitpid(pid, &mut status, 0) };
    assert_eq!(handle.get_str("child").unwrap().as_deref(), Some("1"));
    report("parent works");
}

#[test]
fn fork_takes_its_own_seat() {
    let named = Named::new("fork");
    let cache = small().create(&named.0).unwrap();
    let mut child = named.child("fork", "");
    assert_eq!(child.line(PATIENCE).as_deref(), Some("child works"));
    assert_eq!(child.line(PATIENCE).as_deref(), Some("parent works"));
    assert!(child.wait(PATIENCE).unwrap().is_some());
    cache.recover().unwrap();
    assert_eq!(cache.check().unwrap().entries, 2);
}

/// One process maintains; another takes over when it dies.
#[test]
fn the_maintainer_is_elected_and_replaced() {
    let named = Named::new("maintain");
    let cache = small().create(&named.0).unwrap();
    let mut handle = cache.handle().unwrap();
    let elected = || cache.view().global(Global::Maintainer).load(crate::sync::Ordering::Acquire);
    let wait_for = |what: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !what() {
            assert!(start.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let mut first = named.child("maintain", "");
    wait_for(&|| elected() != 0);
    let one = elected();
    let mut second = named.child("maintain", "");
    assert_eq!(second.line(PATIENCE).as_deref(), Some("ready"));
    for number in 0..3000u32 {
        handle.insert_for(number.to_string(), "x", Some(Duration::from_millis(1))).unwrap();
    }
    wait_for(&|| cache.is_empty());
    assert_eq!(elected(), one);
    first.kill().unwrap();
    wait_for(&|| elected() != one && elected() != 0);
    second.kill().unwrap();
}
