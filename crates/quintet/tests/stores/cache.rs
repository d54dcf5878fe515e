//! Caches over stores: processes and the store are killed at random, and what was acknowledged is
//! found, never an older value.
//!
//! `QUINTET_KILLS` says how often (40).

use crate::dir::Dir;
use quintet::cache::{CacheBuilder, CacheError, Place, TierCache};
use quintet_testkit::crash::{Child, report, task};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const WRITERS: u64 = 2;
/// Together about four times what memory holds.
const KEYS: u64 = 3_000;
const PATIENCE: Duration = Duration::from_secs(60);

fn builder(address: &str) -> CacheBuilder {
    TierCache::builder().capacity(384 << 10).handles(16).store(address).unwrap()
}

fn name(key: u64) -> String {
    format!("key:{key}")
}

/// A value that tells its key and its number, and is about two hundred bytes long.
fn value(key: u64, number: u64) -> Vec<u8> {
    let mut value = [key.to_le_bytes(), number.to_le_bytes()].concat();
    value.resize(16 + (number % 300) as usize, number as u8);
    value
}

/// The number of a value of this key, which is whole.
fn number_of(key: u64, found: &[u8]) -> u64 {
    let word = |at: usize| u64::from_le_bytes(found[at..at + 8].try_into().unwrap());
    let number = word(8);
    assert!(found == value(key, number), "key {key}: not the value {number}");
    number
}

/// Tries until the store answers; another error is none that it may get.
fn insist<T>(mut act: impl FnMut() -> Result<T, CacheError>) -> T {
    let since = Instant::now();
    loop {
        match act() {
            Ok(done) => return done,
            Err(CacheError::Store(_) | CacheError::Busy | CacheError::NoStore(_)) => {}
            Err(error) => panic!("{error}"),
        }
        assert!(since.elapsed() < PATIENCE, "the store does not come back");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Writes and removes its keys, and says before what it is about to do, and after that it has.
#[test]
fn cache_kills_child() {
    let Some(task) = task() else { return };
    let mut words = task.split(' ');
    let writer: u64 = words.next().unwrap().parse().unwrap();
    let place = Place::Name(words.next().unwrap().to_owned());
    let mut number: u64 = words.next().unwrap().parse().unwrap();
    let cache = TierCache::attach(&place).unwrap();
    let mut handle = cache.handle().unwrap();
    let mut random = number | 1;
    loop {
        number += 1;
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = writer * KEYS + (random >> 33) % KEYS;
        if random >> 60 == 0 {
            report(&format!("will {key} {number}"));
            insist(|| handle.remove(name(key)));
            report(&format!("gone {key} {number}"));
        } else {
            insist(|| handle.insert(name(key), value(key, number)));
            report(&format!("has {key} {number}"));
        }
    }
}

/// What is known of a key.
#[derive(Clone, Copy, Default)]
struct Known {
    /// The last acknowledged write, and whether that was a removal.
    number: u64,
    gone: bool,
    /// The last removal that was announced.
    will: u64,
    seen: u64,
}

#[derive(Default)]
struct Book {
    known: HashMap<u64, Known>,
    last: u64,
    looks: u64,
    skipped: u64,
}

impl Book {
    fn read(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let (key, number) = (words[1].parse().unwrap(), words[2].parse().unwrap());
        self.last = self.last.max(number);
        let known = self.known.entry(key).or_insert(Known { gone: true, ..Known::default() });
        match words[0] {
            "will" => known.will = number,
            what => (known.number, known.gone) = (number, what == "gone"),
        }
    }

    fn hear(&mut self, writers: &[Child]) {
        for writer in writers {
            while let Some(line) = writer.line(Duration::ZERO) {
                self.read(&line);
            }
        }
    }

    fn hears_of_removal(&mut self, writers: &[Child], key: u64, number: u64) -> bool {
        std::thread::sleep(Duration::from_millis(30));
        self.hear(writers);
        self.known.get(&key).is_some_and(|known| known.will > number)
    }

    /// Looks at a key. A store that does not answer is no loss.
    fn look(&mut self, cache: &TierCache, writers: &[Child], key: u64) {
        let before =
            self.known.get(&key).copied().unwrap_or(Known { gone: true, ..Known::default() });
        let errors = cache.stats().store_errors;
        let found = cache.get(name(key)).unwrap().map(|found| number_of(key, &found));
        let left_alone = cache.store_state().unwrap().left_alone;
        let unanswered = left_alone || cache.stats().store_errors != errors;
        self.hear(writers);
        let after = self.known.get(&key).copied().unwrap_or_default();
        self.looks += 1;
        let Known { number, gone, .. } = before;
        match found {
            Some(found) => {
                assert!(found >= number, "key {key}: {found} is stale, {number} was acknowledged");
                assert!(!(gone && found == number), "key {key}: {found} was removed");
                assert!(found >= before.seen, "key {key}: {found} after {}", before.seen);
                self.known.entry(key).or_default().seen = found;
            }
            None if gone || after.will > number || after.gone => {}
            None if unanswered => self.skipped += 1,
            // What was announced may be on its way to this process.
            None if self.hears_of_removal(writers, key, number) => {}
            None => panic!("key {key}: lost, {number} was acknowledged"),
        }
    }
}

/// `kill` kills and restarts the store, every so often.
fn survives(label: &str, address: &str, mut kill: Option<&mut dyn FnMut()>) {
    let kills =
        std::env::var("QUINTET_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(40u64);
    let named = format!("quintet-test-{label}-{}", std::process::id());
    let place = Place::Name(named.clone());
    let cache = builder(address).create(&place).unwrap();
    struct Gone(Place);
    impl Drop for Gone {
        fn drop(&mut self) {
            let _ = TierCache::unlink(&self.0);
        }
    }
    let _gone = Gone(place);
    let start = |writer: u64, number: u64| {
        let task = format!("{writer} {named} {number}");
        Child::of_test("cache::cache_kills_child", &task).unwrap()
    };
    let mut writers: Vec<Child> = (0..WRITERS).map(|writer| start(writer, 1)).collect();
    let (mut book, mut stores) = (Book::default(), 0);
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move || {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    for _ in 0..kills {
        let until = Instant::now() + Duration::from_micros(next() % 60_000);
        let told = book.last;
        while Instant::now() < until || book.last == told {
            book.hear(&writers);
            for _ in 0..16 {
                book.look(&cache, &writers, next() % (WRITERS * KEYS));
            }
            assert!(Instant::now() < until + PATIENCE, "nobody stores anything");
        }
        match (&mut kill, next() % 3) {
            (Some(kill), 0) => {
                kill();
                stores += 1;
            }
            (_, lot) => {
                let number = lot % WRITERS;
                let writer = &mut writers[number as usize];
                writer.kill().unwrap();
                writer.rest().iter().for_each(|line| book.read(line));
                // Far above what the dead one may have written and not told.
                *writer = start(number, book.last + 1_000_000);
                book.last += 1_000_000;
            }
        }
    }
    writers.iter_mut().for_each(|writer| _ = writer.kill().unwrap());
    for writer in &writers {
        writer.rest().iter().for_each(|line| book.read(line));
    }
    // The store answers again, and what is in doubt is over.
    insist(|| cache.insert("end", "end"));
    std::thread::sleep(Duration::from_millis(1_100));
    let skipped = std::mem::take(&mut book.skipped);
    for key in 0..WRITERS * KEYS {
        book.look(&cache, &[], key);
    }
    cache.recover().unwrap();
    cache.check().unwrap();
    let stats = cache.stats();
    println!(
        "{label}: {kills} kills, {stores} of them of the store: {} keys, {} looks ({skipped} while the store was away), {} store hits, {} writes, {} errors, {} drops; none lost, none stale",
        book.known.len(),
        book.looks,
        stats.store_hits,
        stats.store_writes,
        stats.store_errors,
        stats.store_drops
    );
    assert_eq!((book.skipped, stats.store_drops), (0, 0));
    assert!(stats.store_hits > 0 && stats.store_writes > 0);
}

#[cfg(feature = "lmdb")]
#[test]
fn a_cache_over_lmdb_survives_kills() {
    let dir = Dir::new("cache-kills");
    let address = format!("lmdb:{}?size=32MiB&sync=none", dir.path().display());
    survives("lmdb", &address, None);
}

/// With `appendfsync always`, so that what is acknowledged is on the server's disk.
#[cfg(feature = "redis")]
#[test]
fn a_cache_over_redis_survives_kills() {
    use crate::server::{Server, there_is_redis};
    if !there_is_redis() {
        return;
    }
    let durable = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    let mut server = Server::start("cache-kills", &durable);
    let address = format!("{}?timeout=5s", server.address());
    let mut kill = || {
        server.kill();
        assert!(server.run());
    };
    survives("redis", &address, Some(&mut kill));
}

/// A store that is away: memory goes on, what does not fit is dropped where that was chosen, and
/// found again what the store had.
#[cfg(feature = "redis")]
#[test]
fn a_cache_goes_on_while_its_store_is_away() {
    use crate::server::{Server, there_is_redis};
    if !there_is_redis() {
        return;
    }
    let durable = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    let mut server = Server::start("cache-away", &durable);
    let make = || builder(&format!("{}?timeout=500ms", server.address()));
    let (waits, drops) =
        (make().create_sealed().unwrap(), make().drop_when_behind().create_sealed().unwrap());
    waits.insert("first", "1").unwrap();
    let mut handle = waits.handle().unwrap();
    while !handle.evict_oldest(64).unwrap().is_empty() {}
    assert!(waits.get("first").unwrap().is_some(), "in the store");
    server.kill();
    assert_eq!(waits.get("first").unwrap(), None, "nobody knows");
    handle.set_timeout(Duration::from_millis(200));
    let refused = (0..10_000).find_map(|key| handle.insert(name(key), value(key, 200)).err());
    assert!(matches!(refused, Some(CacheError::Store(_))), "{refused:?}");
    assert!(handle.get(name(0)).unwrap().is_some(), "memory goes on");
    for key in 0..10_000 {
        drops.insert(name(key), value(key, 200)).unwrap();
    }
    let stats = drops.stats();
    assert!(stats.store_drops > 1_000, "{stats:?}");
    assert!(drops.store_state().unwrap().last_error.is_some());
    assert!(server.run());
    let since = Instant::now();
    while waits.get("first").unwrap().is_none() {
        assert!(since.elapsed() < PATIENCE, "the store is there again");
        std::thread::sleep(Duration::from_millis(20));
    }
    insist(|| handle.insert("more", "2"));
}

/// Two caches, as on two machines, over one cluster: each finds what the other put there.
#[cfg(feature = "redis")]
#[test]
fn two_caches_share_a_cluster() {
    use crate::server::{cluster, cluster_address, there_is_redis};
    if !there_is_redis() {
        return;
    }
    let Some(nodes) = cluster("cache-cluster") else { return };
    let make = || builder(&cluster_address(&nodes)).adopt_store().create_sealed().unwrap();
    let (here, there) = (make(), make());
    for key in 0..200 {
        here.insert(name(key), value(key, key)).unwrap();
    }
    let mut handle = here.handle().unwrap();
    while !handle.evict_oldest(64).unwrap().is_empty() {}
    for key in 0..200 {
        assert_eq!(there.get(name(key)).unwrap(), Some(value(key, key)));
    }
    // The later write wins, wherever it was made.
    std::thread::sleep(Duration::from_millis(20));
    there.insert(name(7), value(7, 700)).unwrap();
    let mut other = there.handle().unwrap();
    while !other.evict_oldest(64).unwrap().is_empty() {}
    assert_eq!(here.get(name(7)).unwrap(), Some(value(7, 700)));
}
