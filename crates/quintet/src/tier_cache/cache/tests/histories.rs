//! Recorded histories on few keys and fewer buckets: linearizable per key. By threads whose handles
//! belong to two attachments of one segment, by processes, and by processes that are killed.

use super::processes::{Named, PATIENCE};
use super::world::tiny_of;
use crate::tier_cache::cache::*;
use crate::tier_cache::step::{Fate, with_fate};
use quintet_testkit::Rng;
use quintet_testkit::conformance::{self, HandleUnderTest, TableUnderTest};
use quintet_testkit::crash::report;
use quintet_testkit::history::{Clock, ClockKind, History, Operation};
use quintet_testkit::linear;
use quintet_testkit::model::{Kind, Op, Ret};
use std::time::Duration;

const OPS: &[Kind] = &[
    Kind::Get,
    Kind::Put,
    Kind::InsertNew,
    Kind::Replace,
    Kind::Delete,
    Kind::CompareExchange,
    Kind::AddIfPresent,
];

struct Table([TierCache; 2], crate::sync::AtomicUsize);

impl TableUnderTest for Table {
    const OPS: &'static [Kind] = OPS;
    type Handle<'t> = Access<'t>;

    fn handle(&self) -> Access<'_> {
        let turn = self.1.fetch_add(1, crate::sync::Ordering::Relaxed);
        Access(patient(&self.0[turn % 2]))
    }

    fn entries(&self) -> Option<usize> {
        Some(self.0[0].check().unwrap().entries as usize)
    }
}

fn patient(cache: &TierCache) -> Handle<'_> {
    let mut handle = cache.handle().unwrap();
    handle.set_timeout(PATIENCE);
    handle
}

struct Access<'t>(Handle<'t>);

/// A decimal number, in one block or several, by the value.
fn text(value: u64) -> Vec<u8> {
    let digits = value.to_string();
    let mut text = vec![b'0'; (value % 300) as usize];
    text.extend(digits.as_bytes());
    text
}

/// Written as above, or by an addition.
fn number(bytes: &[u8]) -> u64 {
    let value = std::str::from_utf8(bytes).unwrap().parse().expect("torn");
    assert!(bytes == text(value) || bytes == value.to_string().as_bytes(), "torn");
    value
}

impl HandleUnderTest for Access<'_> {
    fn apply(&mut self, key: u64, op: Op) -> Ret {
        apply(&mut self.0, key, op).unwrap()
    }
}

fn apply(handle: &mut Handle<'_>, key: u64, op: Op) -> Result<Ret, CacheError> {
    if handle.cache().tiers() > 1 {
        handle.demote_oldest(key as usize % 2, 2)?;
    }
    let key = key.to_le_bytes();
    Ok(match op {
        Op::Get => Ret::Value(handle.get(key)?.map(|value| number(&value))),
        Op::Put(value) => {
            handle.insert(key, text(value))?;
            Ret::Done
        }
        Op::InsertNew(value) => Ret::Flag(handle.insert_new(key, text(value), None)?),
        Op::Replace(value) => Ret::Flag(handle.replace(key, text(value), None)?),
        Op::Delete => Ret::Flag(handle.remove(key)?),
        Op::CompareExchange { expected, new } => loop {
            let Some((value, version)) = handle.get_versioned(key)? else {
                break Ret::Exchanged(Err(None));
            };
            let value = number(&value);
            if value != expected {
                break Ret::Exchanged(Err(Some(value)));
            }
            if handle.compare_exchange(key, version, text(new), None)? {
                break Ret::Exchanged(Ok(expected));
            }
        },
        Op::AddIfPresent(n) => {
            let sum = handle.incr(key, n as i64, None, None)?;
            Ret::Value(sum.map(|sum| sum as u64 - n))
        }
        other => panic!("not offered: {other:?}"),
    })
}

/// Few buckets: everybody meets everybody.
fn crowded() -> Sizes {
    let builder = TierCache::builder().capacity(512 << 10).handles(20);
    Sizes { buckets: 5, ..tiny_of(builder, 1500).sizes }
}

fn linearizable(sizes: Sizes) {
    conformance::linearizable(|_| {
        let first = TierCache::create_sealed(sizes).unwrap();
        let second = TierCache::attach_sealed(first.inheritable().unwrap()).unwrap();
        Table([first, second], crate::sync::AtomicUsize::new(0))
    });
}

#[test]
fn histories_are_linearizable() {
    linearizable(crowded());
}

/// A use promotes, and every handle moves something down before each operation.
#[test]
fn histories_across_tiers_are_linearizable() {
    linearizable(Sizes { tiers: 3, promotes: true, ..crowded() });
}

const KEYS: u64 = 6;

/// Draws an operation; every written value is the only one of its kind.
fn draw(random: &mut Rng, value: u64, seen: &[u64]) -> (u64, Op) {
    let key = random.u64(..KEYS);
    let kind = OPS[random.usize(..OPS.len())];
    let value = if kind == Kind::AddIfPresent { random.u64(1..4) } else { value };
    (key, kind.with(value, seen[key as usize]))
}

/// A child: works, dawdling before its stores so that it meets the others there. `live`: tells of
/// every operation before and after it, so that it can be killed; else all at the end.
pub(super) fn work(cache: &TierCache, thread: u32, operations: usize, live: bool) {
    let clock = Clock::new(ClockKind::Machine);
    let mut random = Rng::with_seed(thread as u64);
    let mut handle = patient(cache);
    let mut log = Vec::new();
    let mut seen = [0; KEYS as usize];
    report("ready");
    let fate = Fate::Dawdle(thread as u64 + 1);
    with_fate(fate, None, || {
        for step in 0..operations as u64 {
            let (key, op) = draw(&mut random, (thread as u64 + 1) << 32 | step, &seen);
            let invoked = clock.now();
            let begun =
                Operation { key, op, ret: Ret::Unknown, thread, invoked, returned: u64::MAX };
            if live {
                report(&begun.to_text());
            }
            let ret = apply(&mut handle, key, op).unwrap_or_else(|error| panic!("{error}"));
            let done = Operation { ret, returned: clock.now(), ..begun };
            if let Ret::Value(Some(value)) | Ret::Exchanged(Err(Some(value))) = ret {
                seen[key as usize] = value;
            }
            if live { report(&done.to_text()) } else { log.push(done) }
        }
    });
    log.iter().for_each(|done| report(&done.to_text()));
    report("end");
}

/// What a child told: an operation that has returned takes the place of its beginning.
fn read(operations: &mut Vec<Operation>, line: &str) {
    let told = Operation::from_text(line).unwrap_or_else(|| panic!("{line}"));
    let known = operations.last_mut().filter(|known| {
        known.returned == u64::MAX && (known.thread, known.invoked) == (told.thread, told.invoked)
    });
    match known {
        Some(known) => *known = told,
        None => operations.push(told),
    }
}

/// Processes on one segment; their stamps are of the machine's clock.
#[test]
fn histories_of_processes_are_linearizable() {
    let named = Named::new("history");
    let cache =
        TierCache::create(named.place(), crowded(), crate::region::shm::Access::default()).unwrap();
    let child = |thread: u32| named.child("history", &format!("{thread} 4000 0"));
    let children: Vec<_> = (0..4).map(child).collect();
    let mut operations = Vec::new();
    for child in &children {
        loop {
            match child.line(PATIENCE).expect("it works").as_str() {
                "ready" => {}
                "end" => break,
                line => read(&mut operations, line),
            }
        }
    }
    assert_eq!(operations.len(), 16_000);
    let checked = linear::check(&History::from_operations(operations));
    println!("{checked}");
    checked.expect_pass("the cache of processes");
    assert!(checked.overlapping > 0, "they met");
    drop(children);
    cache.recover().unwrap();
    cache.check().unwrap();
}

/// The same, and every now and then one is killed in the middle: what it had begun happened or did
/// not.
#[test]
fn histories_of_killed_processes_are_linearizable() {
    let kills = std::env::var("QUINTET_KILLS").ok().and_then(|text| text.parse().ok());
    let named = Named::new("deaths");
    let cache =
        TierCache::create(named.place(), crowded(), crate::region::shm::Access::default()).unwrap();
    let mut random = Rng::with_seed(5);
    let mut threads = 0;
    let mut spawn = || {
        threads += 1;
        let child = named.child("history", &format!("{threads} 1000000 1"));
        assert_eq!(child.line(PATIENCE).as_deref(), Some("ready"));
        child
    };
    let mut operations = Vec::new();
    let mut children: Vec<_> = (0..3).map(|_| spawn()).collect();
    let kills = kills.unwrap_or(30);
    for kill in 0..kills + 3 {
        std::thread::sleep(Duration::from_micros(random.u64(500..10_000)));
        let at = random.usize(..children.len());
        children[at].kill().unwrap();
        children[at].rest().iter().for_each(|line| read(&mut operations, line));
        match kill < kills {
            true => children[at] = spawn(),
            false => drop(children.swap_remove(at)),
        }
    }
    let lost = operations.iter().filter(|operation| operation.returned == u64::MAX).count();
    let checked = linear::check(&History::from_operations(operations));
    println!("{kills} kills, {lost} operations cut off: {checked}");
    checked.expect_pass("the cache of killed processes");
    cache.recover().unwrap();
    cache.check().unwrap();
}
