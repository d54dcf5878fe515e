//! Stores and their users are killed at random: what was acknowledged is found, and nothing goes
//! back.

use crate::crew::{Crew, Orders, PATIENCE, Random, WRITERS, Witness};
use crate::dir::Dir;
use crate::record;
use quintet::store::*;
use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime};

const KEYS: u64 = 24;

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

/// Stores ever greater versions of its keys, and says so. An error leaves a put in doubt: it is put
/// again until the store answers.
#[test]
fn kills_child() {
    let Some(mut orders) = Orders::of_this_process() else { return };
    let store = open(&orders.words[0]);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let mut version = now.as_micros() as u64;
    for turn in 0.. {
        version += 1;
        let numbers: Vec<u64> =
            (0..1 + turn % 3).map(|at| (turn + at) % KEYS + orders.writer * KEYS).collect();
        let keys: Vec<_> = numbers.iter().map(|number| format!("key:{number}")).collect();
        let value = value(version);
        let batch: Vec<_> =
            keys.iter().map(|key| record(key.as_bytes(), version, &value)).collect();
        while store.put(&batch, Duration::from_secs(2)).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
        numbers.iter().for_each(|number| orders.say(&format!("{number} {version}")));
    }
}

fn value(version: u64) -> Vec<u8> {
    vec![version as u8; (version % 500) as usize]
}

/// What is known of each key.
struct Book {
    address: String,
    store: Box<dyn Store>,
    acknowledged: HashMap<u64, u64>,
    seen: HashMap<u64, u64>,
    looks: u64,
    heard: u64,
}

impl Book {
    /// False if the store did not answer.
    fn judge(&mut self) -> bool {
        let keys: Vec<u64> = (0..WRITERS * KEYS).collect();
        let names: Vec<_> = keys.iter().map(|key| format!("key:{key}")).collect();
        let names: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        let Ok(found) = self.store.get(&names) else { return false };
        self.looks += 1;
        for (key, found) in keys.into_iter().zip(found) {
            let version = found.as_ref().map_or(0, |found| found.version);
            let known = self.acknowledged.get(&key).copied().unwrap_or(0);
            let seen = self.seen.entry(key).or_default();
            assert!(version >= known, "key {key}: {version} found, {known} was acknowledged");
            assert!(version >= *seen, "key {key}: {version} after {seen}");
            *seen = version;
            if let Some(found) = found {
                assert!(found.value == value(version), "key {key}: not the value of {version}");
            }
        }
        true
    }
}

impl Witness for Book {
    fn hear(&mut self, line: &str) {
        let (key, version) = line.split_once(' ').unwrap();
        let known = self.acknowledged.entry(key.parse().unwrap()).or_default();
        *known = (*known).max(version.parse().unwrap());
        self.heard += 1;
    }

    fn orders(&mut self, _: u64) -> String {
        self.address.clone()
    }

    fn look(&mut self, _: &mut Crew, _: &mut Random) {
        self.judge();
    }

    fn heard(&self) -> u64 {
        self.heard
    }
}

/// `kill` kills and restarts the store.
fn survives(label: &str, address: &str, kill: Option<&mut dyn FnMut()>) {
    let mut book = Book {
        address: address.to_owned(),
        store: open(address),
        acknowledged: HashMap::new(),
        seen: HashMap::new(),
        looks: 0,
        heard: 0,
    };
    let mut crew = Crew::new(&format!("kills-{label}"), "kills::kills_child", &mut book);
    let (kills, stores) = crew.survive(&mut book, kill);
    let since = Instant::now();
    while !book.judge() {
        assert!(since.elapsed() < PATIENCE, "the store does not answer");
        std::thread::sleep(Duration::from_millis(5));
    }
    println!(
        "{label} by itself: {kills} kills, {stores} of them of the store: {} acknowledged, {} \
         looks; none lost, none stale",
        book.heard, book.looks
    );
    assert_eq!(book.acknowledged.len() as u64, WRITERS * KEYS);
}

#[cfg(feature = "lmdb")]
#[test]
fn lmdb_survives_kills() {
    let dir = Dir::new("kills");
    survives("lmdb", &format!("lmdb:{}?size=16MiB&sync=none", dir.path().display()), None);
}

/// With `appendfsync always`, so that what is acknowledged is on the server's disk.
#[cfg(feature = "redis")]
#[test]
fn redis_survives_kills() {
    let Some(mut server) = crate::server::Server::durable("kills-server") else { return };
    let address = format!("{}?timeout=5s", server.address());
    survives("redis", &address, Some(&mut || server.restart()));
}
