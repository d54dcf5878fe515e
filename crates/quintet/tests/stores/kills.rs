//! Stores and their users are killed at random: what was acknowledged is found, and nothing goes back.
//!
//! `QUINTET_KILLS` says how often (40).

use crate::dir::Dir;
use crate::record;
use quintet::store::*;
use quintet_testkit::crash::{Child, report, task};
use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime};

const WRITERS: u64 = 2;
const KEYS: u64 = 24;
const PATIENCE: Duration = Duration::from_secs(60);

fn open(address: &str) -> Box<dyn Store> {
    let address: StoreAddress = address.parse().unwrap();
    let since = Instant::now();
    loop {
        match address.open() {
            Ok(store) => return store,
            Err(error) => assert!(since.elapsed() < PATIENCE, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Stores ever greater versions of its keys, and says so. An error leaves a put in doubt: it is put again until the store answers.
#[test]
fn kills_child() {
    let Some(task) = task() else { return };
    let (writer, address) = task.split_once(' ').unwrap();
    let writer: u64 = writer.parse().unwrap();
    let store = open(address);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let mut version = now.as_micros() as u64;
    for turn in 0.. {
        version += 1;
        let numbers: Vec<u64> =
            (0..1 + turn % 3).map(|at| (turn + at) % KEYS + writer * KEYS).collect();
        let keys: Vec<_> = numbers.iter().map(|number| format!("key:{number}")).collect();
        let value = vec![version as u8; (version % 500) as usize];
        let batch: Vec<_> =
            keys.iter().map(|key| record(key.as_bytes(), version, &value)).collect();
        while store.put(&batch, Duration::from_secs(2)).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
        numbers.iter().for_each(|number| report(&format!("{number} {version}")));
    }
}

/// What is known of each key.
#[derive(Default)]
struct Book {
    acknowledged: HashMap<u64, u64>,
    seen: HashMap<u64, u64>,
    looks: u64,
}

impl Book {
    fn read(&mut self, line: &str) {
        let (key, version) = line.split_once(' ').unwrap();
        let known = self.acknowledged.entry(key.parse().unwrap()).or_default();
        *known = (*known).max(version.parse().unwrap());
    }

    fn look(&mut self, store: &dyn Store) {
        let keys: Vec<u64> = (0..WRITERS * KEYS).collect();
        let names: Vec<_> = keys.iter().map(|key| format!("key:{key}")).collect();
        let names: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        let Ok(found) = store.get(&names) else { return };
        self.looks += 1;
        for (key, found) in keys.into_iter().zip(found) {
            let version = found.as_ref().map_or(0, |found| found.version);
            let known = self.acknowledged.get(&key).copied().unwrap_or(0);
            let seen = self.seen.entry(key).or_default();
            assert!(version >= known, "key {key}: {version} found, {known} was acknowledged");
            assert!(version >= *seen, "key {key}: {version} after {seen}");
            *seen = version;
            if let Some(found) = found {
                let value = vec![version as u8; (version % 500) as usize];
                assert!(found.value == value, "key {key}: not the value of version {version}");
            }
        }
    }
}

/// `kill` kills and restarts the store, every so often.
fn survives(address: &str, mut kill: Option<&mut dyn FnMut()>) {
    let kills =
        std::env::var("QUINTET_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(40u64);
    let start =
        |writer: u64| Child::of_test("kills::kills_child", &format!("{writer} {address}")).unwrap();
    let mut writers: Vec<Child> = (0..WRITERS).map(start).collect();
    let store = open(address);
    let (mut book, mut stores) = (Book::default(), 0);
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..kills {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let until = Instant::now() + Duration::from_micros((random >> 33) % 60_000);
        let mut told = 0;
        while Instant::now() < until || told == 0 {
            for writer in &writers {
                while let Some(line) = writer.line(Duration::from_millis(1)) {
                    book.read(&line);
                    told += 1;
                    if told % 64 == 0 {
                        break;
                    }
                }
            }
            book.look(&*store);
            assert!(Instant::now() < until + PATIENCE, "nobody stores anything");
        }
        match (&mut kill, (random >> 60) % 3) {
            (Some(kill), 0) => {
                kill();
                stores += 1;
            }
            (_, lot) => {
                let number = lot % WRITERS;
                let writer = &mut writers[number as usize];
                writer.kill().unwrap();
                writer.rest().iter().for_each(|line| book.read(line));
                *writer = start(number);
            }
        }
        book.look(&*store);
    }
    writers.iter_mut().for_each(|writer| _ = writer.kill().unwrap());
    for writer in &writers {
        writer.rest().iter().for_each(|line| book.read(line));
    }
    let (looks, since) = (book.looks, Instant::now());
    while book.looks == looks {
        assert!(since.elapsed() < PATIENCE, "the store does not answer");
        book.look(&*store);
    }
    let acknowledged = book.acknowledged.len() as u64;
    println!(
        "{kills} kills, {stores} of them of the store: {} looks, {acknowledged} keys, none lost, none stale",
        book.looks
    );
    assert_eq!(acknowledged, WRITERS * KEYS);
}

#[cfg(feature = "lmdb")]
#[test]
fn lmdb_survives_kills() {
    let dir = Dir::new("kills");
    survives(&format!("lmdb:{}?size=16MiB&sync=none", dir.path().display()), None);
}

/// With `appendfsync always`, so that what is acknowledged is on the server's disk.
#[cfg(feature = "redis")]
#[test]
fn redis_survives_kills() {
    use crate::server::{Server, there_is_redis};
    if !there_is_redis() {
        return;
    }
    let durable = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    let mut server = Server::start("kills-server", &durable);
    let address = format!("{}?timeout=5s", server.address());
    let mut kill = || {
        server.kill();
        assert!(server.run());
    };
    survives(&address, Some(&mut kill));
}
