//! Caches over stores: processes and the store are killed at random, and what was acknowledged is
//! found, never an older value.

pub(crate) use crate::crew::PATIENCE;
use crate::crew::{Crew, Orders, Random, WRITERS, Witness};
use crate::dir::Dir;
use quintet::cache::{CacheBuilder, CacheError, Place, TierCache};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Together about four times what memory holds.
const KEYS: u64 = 3_000;

pub(crate) fn builder(address: &str) -> CacheBuilder {
    TierCache::builder().capacity(384 << 10).handles(16).store(address).unwrap()
}

pub(crate) fn name(key: u64) -> String {
    format!("key:{key}")
}

/// A value that tells its key and its number, and is about two hundred bytes long.
pub(crate) fn value(key: u64, number: u64) -> Vec<u8> {
    let mut value = [key.to_le_bytes(), number.to_le_bytes()].concat();
    value.resize(16 + (number % 300) as usize, number as u8);
    value
}

/// The number of a value of this key, which is whole.
pub(crate) fn number_of(key: u64, found: &[u8]) -> u64 {
    let word = |at: usize| u64::from_le_bytes(found[at..at + 8].try_into().unwrap());
    let number = word(8);
    assert!(found == value(key, number), "key {key}: not the value {number}");
    number
}

/// Tries until the store answers; another error is none that it may get.
pub(crate) fn insist<T>(mut act: impl FnMut() -> Result<T, CacheError>) -> T {
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

/// Puts everything out.
pub(crate) fn empty(cache: &TierCache) {
    let mut handle = cache.handle().unwrap();
    while !handle.evict_oldest(64).unwrap().is_empty() {}
}

/// Writes and removes its keys, and says before what it is about to do, and after that it has.
#[test]
fn cache_kills_child() {
    let Some(mut orders) = Orders::of_this_process() else { return };
    let place = Place::Name(orders.words[0].clone());
    let mut number: u64 = orders.words[1].parse().unwrap();
    let cache = TierCache::attach(&place).unwrap();
    let mut handle = cache.handle().unwrap();
    let mut random = Random(number | 1);
    loop {
        number += 1;
        let lot = random.next();
        let key = orders.writer * KEYS + (lot >> 4) % KEYS;
        if lot % 16 == 0 {
            orders.say(&format!("will {key} {number}"));
            insist(|| handle.remove(name(key)));
            orders.say(&format!("gone {key} {number}"));
        } else {
            insist(|| handle.insert(name(key), value(key, number)));
            orders.say(&format!("has {key} {number}"));
        }
    }
}

/// What is known of a key.
#[derive(Clone, Copy)]
struct Known {
    /// The last acknowledged write, and whether that was a removal.
    number: u64,
    gone: bool,
    /// The last removal that was announced.
    will: u64,
    seen: u64,
}

impl Known {
    /// Nobody wrote it yet.
    const ABSENT: Self = Self { number: 0, gone: true, will: 0, seen: 0 };
}

struct Book<'c> {
    cache: &'c TierCache,
    place: String,
    known: HashMap<u64, Known>,
    last: u64,
    heard: u64,
    looks: u64,
    unanswered: u64,
}

impl Book<'_> {
    fn of(&self, key: u64) -> Known {
        self.known.get(&key).copied().unwrap_or(Known::ABSENT)
    }

    /// Looks at a key, and then hears what the crew had said by then. A store that does not answer
    /// is no loss.
    fn judge(&mut self, crew: Option<&mut Crew>, key: u64) {
        let before = self.of(key);
        let errors = self.cache.stats().store_errors;
        let found = self.cache.get(name(key)).unwrap().map(|found| number_of(key, &found));
        let unanswered = self.cache.stats().store_errors != errors;
        if let Some(crew) = crew {
            crew.hear(self);
        }
        let after = self.of(key);
        self.looks += 1;
        let Known { number, gone, .. } = before;
        match found {
            Some(found) => {
                assert!(found >= number, "key {key}: {found} is stale, {number} was acknowledged");
                assert!(!(gone && found == number), "key {key}: {found} was removed");
                assert!(found >= before.seen, "key {key}: {found} after {}", before.seen);
                self.known.entry(key).or_insert(Known::ABSENT).seen = found;
            }
            // Whoever removes it says so before.
            None if gone || after.will > number => {}
            None if unanswered => self.unanswered += 1,
            None => panic!("key {key}: lost, {number} was acknowledged"),
        }
    }
}

impl Witness for Book<'_> {
    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let (key, number) = (words[1].parse().unwrap(), words[2].parse().unwrap());
        self.last = self.last.max(number);
        self.heard += 1;
        let known = self.known.entry(key).or_insert(Known::ABSENT);
        match words[0] {
            "will" => known.will = number,
            what => (known.number, known.gone) = (number, what == "gone"),
        }
    }

    fn orders(&mut self, _: u64) -> String {
        // Far above what a dead one may have written and not told.
        self.last += 1_000_000;
        format!("{} {}", self.place, self.last)
    }

    fn look(&mut self, crew: &mut Crew, random: &mut Random) {
        self.judge(Some(crew), random.next() % (WRITERS * KEYS));
    }

    fn heard(&self) -> u64 {
        self.heard
    }
}

/// A name of a cache, which goes with its test.
struct Named(Place);

impl Drop for Named {
    fn drop(&mut self) {
        let _ = TierCache::unlink(&self.0);
    }
}

/// `kill` kills and restarts the store.
fn survives(label: &str, builder: &CacheBuilder, kill: Option<&mut dyn FnMut()>) {
    let named = format!("quintet-test-{label}-{}", std::process::id());
    let place = Named(Place::Name(named.clone()));
    let cache = builder.create(&place.0).unwrap();
    let mut book = Book {
        cache: &cache,
        place: named,
        known: HashMap::new(),
        last: 0,
        heard: 0,
        looks: 0,
        unanswered: 0,
    };
    let mut crew = Crew::new(label, "cache::cache_kills_child", &mut book);
    let (kills, stores) = crew.survive(&mut book, kill);
    // The store answers again, and what is in doubt is over.
    insist(|| cache.insert("end", "end"));
    let since = Instant::now();
    let mut errors = None;
    while errors.replace(cache.stats().store_errors) != Some(cache.stats().store_errors) {
        assert!(since.elapsed() < PATIENCE, "the store does not come back");
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(cache.get("nobody").unwrap(), None);
    }
    let unanswered = std::mem::take(&mut book.unanswered);
    (0..WRITERS * KEYS).for_each(|key| book.judge(None, key));
    cache.recover().unwrap();
    cache.check().unwrap();
    let stats = cache.stats();
    println!(
        "{label}: {kills} kills, {stores} of them of the store: {} keys, {} acknowledged, {} looks \
         ({unanswered} unanswered while the store was away), {} store hits, {} writes, {} errors, \
         {} drops; none lost, none stale",
        book.known.len(),
        book.heard,
        book.looks,
        stats.store_hits,
        stats.store_writes,
        stats.store_errors,
        stats.store_drops
    );
    assert_eq!((book.unanswered, stats.store_drops), (0, 0), "{:?}", cache.store_state());
    assert!(stats.store_hits > 0 && stats.store_writes > 0);
}

#[cfg(feature = "lmdb")]
fn over_lmdb(label: &str, chosen: impl Fn(CacheBuilder) -> CacheBuilder) {
    let dir = Dir::new(label);
    let address = format!("lmdb:{}?size=32MiB&sync=none", dir.path().display());
    survives(label, &chosen(builder(&address)), None);
}

#[cfg(feature = "lmdb")]
#[test]
fn a_cache_over_lmdb_survives_kills() {
    over_lmdb("lmdb", |builder| builder);
}

/// N10, and the marks that a key is nowhere.
#[cfg(feature = "lmdb")]
#[test]
fn a_cache_that_keeps_what_it_finds_survives_kills() {
    over_lmdb("lmdb-keeps", |builder| builder.keep_found().keep_absent());
}

/// With `appendfsync always`, so that what is acknowledged is on the server's disk.
#[cfg(feature = "redis")]
fn over_redis(label: &str, chosen: impl Fn(CacheBuilder) -> CacheBuilder) {
    let Some(mut server) = crate::server::Server::durable(label) else { return };
    let builder = chosen(builder(&format!("{}?timeout=5s", server.address())));
    survives(label, &builder, Some(&mut || server.restart()));
}

#[cfg(feature = "redis")]
#[test]
fn a_cache_over_redis_survives_kills() {
    over_redis("redis", |builder| builder);
}

#[cfg(feature = "redis")]
#[test]
fn a_cache_that_keeps_what_it_finds_survives_kills_of_redis() {
    over_redis("redis-keeps", |builder| builder.keep_found().keep_absent());
}

/// A store that is away: memory goes on, what does not fit is dropped where that was chosen, and
/// found again what the store had.
#[cfg(feature = "redis")]
#[test]
fn a_cache_goes_on_while_its_store_is_away() {
    let Some(mut server) = crate::server::Server::durable("cache-away") else { return };
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
    empty(&here);
    for key in 0..200 {
        assert_eq!(there.get(name(key)).unwrap(), Some(value(key, key)));
    }
    // The later write wins, wherever it was made.
    std::thread::sleep(Duration::from_millis(20));
    there.insert(name(7), value(7, 700)).unwrap();
    empty(&there);
    assert_eq!(here.get(name(7)).unwrap(), Some(value(7, 700)));
}
