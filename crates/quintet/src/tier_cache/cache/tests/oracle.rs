//! Random operations against std: contents always, and with exact recency also who leaves.

use super::world::{small, tiny_of};
use crate::tier_cache::cache::*;
use quintet_testkit::Rng;
use std::collections::HashMap;

/// Values of this length take one block, others more.
fn value(random: &mut Rng, longest: usize) -> Vec<u8> {
    let len = random.usize(..=longest);
    let seed = random.u8(..);
    (0..len).map(|at| seed.wrapping_add(at as u8)).collect()
}

/// Nothing has to leave: the cache is a map.
#[test]
fn agrees_with_std() {
    let cache = small().capacity(512 << 10).create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    let mut oracle: HashMap<String, Vec<u8>> = HashMap::new();
    let mut random = Rng::with_seed(1);
    for step in 0..60_000 {
        let key = format!("{:x}", random.u64(..150));
        let long = if random.u8(..10) == 0 { 1000 } else { 90 };
        match random.u32(..10) {
            0..4 => assert_eq!(handle.get(&key).unwrap().as_ref(), oracle.get(&key), "{step}"),
            4..6 => {
                let value = value(&mut random, long);
                let report = handle.insert(&key, &value).unwrap();
                assert_eq!((report.replaced, report.evicted), (oracle.contains_key(&key), 0));
                oracle.insert(key, value);
            }
            6 => {
                let value = value(&mut random, long);
                let added = handle.insert_new(&key, &value, None).unwrap();
                assert_eq!(added, !oracle.contains_key(&key));
                oracle.entry(key).or_insert(value);
            }
            7 => {
                let value = value(&mut random, long);
                let replaced = handle.replace(&key, &value, None).unwrap();
                assert_eq!(replaced, oracle.contains_key(&key));
                oracle.entry(key).and_modify(|old| *old = value);
            }
            _ => assert_eq!(handle.remove(&key).unwrap(), oracle.remove(&key).is_some()),
        }
        assert_eq!(cache.len(), oracle.len() as u64);
    }
    drop(handle);
    assert_eq!(cache.check().unwrap().entries, oracle.len() as u64);
    assert_eq!(cache.stats().orphans, 0);
}

/// The least recently used entry leaves, and no other, as long as every access is a tick.
#[test]
fn evicts_exactly_the_least_recently_used() {
    let cache = tiny_of(small().exact_recency(), 64);
    let mut handle = cache.handle().unwrap();
    // Keys from the least to the most recently used.
    let mut order: Vec<u32> = Vec::new();
    let mut random = Rng::with_seed(2);
    for step in 0..20_000 {
        let key = random.u32(..90);
        let known = order.iter().position(|other| *other == key);
        match random.u32(..8) {
            0..3 => {
                assert_eq!(
                    handle.get(key.to_le_bytes()).unwrap().is_some(),
                    known.is_some(),
                    "{step}"
                );
                if let Some(at) = known {
                    let key = order.remove(at);
                    order.push(key);
                }
            }
            3 => assert_eq!(handle.peek(key.to_le_bytes()).unwrap().is_some(), known.is_some()),
            7 if step % 5 == 0 => {
                assert_eq!(handle.remove(key.to_le_bytes()).unwrap(), known.is_some());
                order.retain(|other| *other != key);
            }
            _ => {
                let report = handle.insert(key.to_le_bytes(), step.to_string()).unwrap();
                // A set writes its entry before it lets go of the old one, so a full cache evicts
                // for an update too.
                for _ in 0..report.evicted {
                    order.remove(0);
                }
                order.retain(|other| *other != key);
                order.push(key);
            }
        }
        assert_eq!(cache.len(), order.len() as u64, "{step}");
    }
    assert_eq!(cache.stats().forced, 0, "the window is never full in so small a cache");
    assert!(cache.stats().evicted > 1000);
}

fn zipf(random: &mut Rng, sums: &[f64]) -> usize {
    let point = random.f64() * sums[sums.len() - 1];
    sums.partition_point(|sum| *sum < point)
}

/// Zipf 1.0, a tenth of the keys fit: within one point of exact LRU.
#[test]
fn hit_ratio_is_that_of_lru() {
    let keys = 40_000;
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=keys)
        .map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        })
        .collect();
    let cache = tiny_of(small(), keys as u32 / 10);
    let cache =
        TierCache::create_sealed(Sizes { pace: keys as u32 / 10 / 128, ..cache.sizes }).unwrap();
    let mut handle = cache.handle().unwrap();
    let mut lru = Lru::new(keys, keys / 10);
    let mut random = Rng::with_seed(3);
    let (mut hits, mut exact, mut all) = (0, 0, 0);
    for step in 0..600_000 {
        let key = zipf(&mut random, &sums);
        let hit = handle.get((key as u64).to_le_bytes()).unwrap().is_some();
        if !hit {
            handle.insert((key as u64).to_le_bytes(), "value").unwrap();
        }
        let known = lru.access(key);
        if step > 100_000 {
            (hits, exact, all) = (hits + hit as u32, exact + known as u32, all + 1);
        }
    }
    let (ours, theirs) = (hits as f64 / all as f64, exact as f64 / all as f64);
    println!("hit ratio {ours:.4}, exact LRU {theirs:.4}");
    assert!((ours - theirs).abs() < 0.01, "{ours} {theirs}");
}

/// Exact LRU by time stamps and a queue with holes.
struct Lru {
    stamps: Vec<u64>,
    queue: std::collections::VecDeque<(u64, usize)>,
    size: usize,
    capacity: usize,
    now: u64,
}

impl Lru {
    fn new(keys: usize, capacity: usize) -> Self {
        Self { stamps: vec![0; keys + 1], queue: Default::default(), size: 0, capacity, now: 0 }
    }

    fn access(&mut self, key: usize) -> bool {
        self.now += 1;
        let known = self.stamps[key] != 0;
        self.stamps[key] = self.now;
        self.queue.push_back((self.now, key));
        self.size += !known as usize;
        while self.size > self.capacity {
            let (stamp, key) = self.queue.pop_front().unwrap();
            if self.stamps[key] == stamp {
                self.stamps[key] = 0;
                self.size -= 1;
            }
        }
        known
    }
}
