//! Everything at once: small caches over a store, under every policy, with quotas, in which
//! processes fill, ask, remove, clear namespaces and remove them, serve, and are killed.

use super::processes::{Named, PATIENCE};
use super::quota_attacks::is_exact;
use super::stored::Dir;
use super::world::small;
use crate::tier_cache::cache::*;
use quintet_testkit::Rng;
use quintet_testkit::crash::{Child, report};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const OWN_KEYS: u64 = 300;
const SHARED: [&str; 3] = ["a", "b", "c"];

/// A value that tells its key and its number, in one block or several.
fn value(key: u64, number: u64) -> Vec<u8> {
    let mut value = [key.to_le_bytes(), number.to_le_bytes()].concat();
    value.resize(16 + (number % 11 * 40) as usize, number as u8);
    value
}

fn number_of(key: u64, found: &[u8]) -> Option<u64> {
    let number = u64::from_le_bytes(found.get(8..16)?.try_into().ok()?);
    (found == value(key, number)).then_some(number)
}

/// What one of the crowd knows of its own keys: the number of each, or that it was removed. Where
/// an operation failed it knows nothing.
struct Member<'c> {
    cache: &'c TierCache,
    handle: Handle<'c>,
    own: Namespace,
    known: HashMap<u64, Option<u64>>,
    random: Rng,
    number: u64,
}

impl Member<'_> {
    /// Writes, removes or looks up one of its own keys; what it did last is what it finds.
    fn mind_its_own(&mut self) {
        self.handle.set_namespace(self.own);
        let key = self.random.u64(..OWN_KEYS);
        let name = key.to_le_bytes();
        self.number += 1;
        match self.random.u32(..8) {
            0..3 => {
                let done = self.handle.insert(name, value(key, self.number)).is_ok();
                self.learn(key, done.then_some(Some(self.number)));
            }
            3 => {
                let done = self.handle.remove(name);
                self.learn(key, done.is_ok().then_some(None));
            }
            _ => {
                let errors = || self.cache.stats().store_errors;
                let before = errors();
                let found = self.handle.get(name);
                let (Ok(found), Some(known)) = (found, self.known.get(&key)) else { return };
                // Where the store did not answer, nobody knows.
                if found.is_none() && errors() != before {
                    return;
                }
                let seen = found.as_deref().map(|found| number_of(key, found).unwrap_or(0));
                if seen != *known {
                    report(&format!("stale: key {key} is {seen:?}, not {known:?}"));
                }
            }
        }
    }

    fn learn(&mut self, key: u64, done: Option<Option<u64>>) {
        match done {
            Some(known) => _ = self.known.insert(key, known),
            None => _ = self.known.remove(&key),
        }
    }

    /// Does something to what all have; whatever is found is whole.
    fn meddle(&mut self) {
        let name = SHARED[self.random.usize(..SHARED.len())];
        let Ok(space) = self.cache.namespace(name) else { return };
        let key = self.random.u64(..400);
        self.number += 1;
        match self.random.u32(..400) {
            0 => _ = self.cache.remove_namespace(name),
            1..3 => _ = self.cache.clear_namespace(space),
            3 => {
                let most = Quota::default().entries(self.random.u64(..60));
                _ = self.cache.set_quota(space, most.inserts_per_second(self.random.u32(..3000)));
            }
            4 => {
                _ = self.cache.set_process_quota(Quota::default().bytes(self.random.u64(..1 << 17)))
            }
            5 => _ = self.handle.maintain(),
            lot => {
                self.handle.set_namespace(space);
                let name = key.to_le_bytes();
                let found = match lot % 5 {
                    0..2 => {
                        _ = self.handle.insert(name, value(key, self.number));
                        return;
                    }
                    2 => self.handle.pop(name),
                    _ => self.handle.get(name),
                };
                if let Ok(Some(found)) = found {
                    if number_of(key, &found).is_none() {
                        report(&format!("torn: key {key} of {:?}", space));
                    }
                }
            }
        }
    }
}

/// A child's part, until it is killed. Its own namespace is nobody else's.
pub(super) fn join(cache: &TierCache, life: u64) {
    let mut handle = cache.handle().unwrap();
    handle.set_timeout(PATIENCE);
    let own = loop {
        // Of those that are gone.
        match cache.namespace(&format!("own {life}")) {
            Ok(own) => break own,
            Err(error) => report(&format!("no namespace: {error}")),
        }
    };
    let random = Rng::with_seed(life);
    let (known, number) = (HashMap::new(), life << 32);
    let mut member = Member { cache, handle, own, known, random, number };
    report("ready");
    loop {
        member.mind_its_own();
        member.meddle();
    }
}

/// Kills in one cache.
fn kills() -> usize {
    std::env::var("QUINTET_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(12)
}

fn hear(child: &Child) {
    for line in child.rest() {
        assert!(line == "ready", "{line}");
    }
}

fn crowd(policy: Policy, tiers: u32) {
    let label = format!("crowd-{policy}-{tiers}");
    let (dir, named) = (Dir::new(&label), Named::new(&label));
    // Nothing has to leave the store.
    let address = dir.address().replace("64MiB", "1GiB");
    let builder = small().store(&address).unwrap();
    let builder = builder.capacity(192 << 10).handles(16).namespaces(64).max_value(4096);
    let builder = builder.keep_found().keep_absent().quotas().policy(policy).tiers(tiers);
    let cache = builder.create(named.place()).unwrap();
    let mut random = Rng::with_seed(tiers as u64);
    let mut life = 0;
    let mut start = || {
        life += 1;
        let child = named.child("crowd", &life.to_string());
        (life, child)
    };
    let mut crowd: Vec<_> = (0..3).map(|_| start()).collect();
    for _ in 0..kills() {
        std::thread::sleep(Duration::from_micros(random.u64(..200_000)));
        let (dead, mut child) = std::mem::replace(&mut crowd[random.usize(..3)], start());
        child.kill().unwrap();
        hear(&child);
        let _ = cache.remove_namespace(&format!("own {dead}"));
    }
    for (_, mut child) in crowd {
        // Its last look was a whole one.
        std::thread::sleep(Duration::from_millis(50));
        child.kill().unwrap();
        hear(&child);
    }
    cache.recover().unwrap();
    // The writer of this process may be at work.
    let since = Instant::now();
    while let Err(error) = cache.check() {
        assert!(since.elapsed() < PATIENCE, "{label}: {error}");
        std::thread::sleep(Duration::from_millis(5));
    }
    cache.recover().unwrap();
    is_exact(&cache, &label);
    let stats = cache.stats();
    println!(
        "{label}: {} sets, {} writes, {} hits there",
        stats.sets, stats.store_writes, stats.store_hits
    );
    assert!(stats.store_writes > 0 && stats.sets > 0);
}

#[test]
fn a_crowd_under_lru() {
    [1, 3].into_iter().for_each(|tiers| crowd(Policy::Lru, tiers));
}

#[test]
fn a_crowd_under_s3fifo() {
    [1, 3].into_iter().for_each(|tiers| crowd(Policy::S3Fifo, tiers));
}

#[test]
fn a_crowd_under_sieve() {
    [1, 3].into_iter().for_each(|tiers| crowd(Policy::Sieve, tiers));
}
