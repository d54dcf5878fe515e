//! Policies against what they say: the order in which entries leave, step by step, and what a hit
//! stores.

use super::world::{advance, small, tiny_of};
use crate::tier_cache::cache::*;
use crate::tier_cache::step::{Fate, Point, with_fate};
use quintet_testkit::Rng;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// A policy in its plainest form. Keys are numbers.
trait Oracle: Default {
    fn contains(&self, key: u32) -> bool;
    fn hit(&mut self, key: u32);
    /// Stores a key; `main`: it is remembered.
    fn enter(&mut self, key: u32, main: bool);
    fn leave(&mut self, key: u32);
    fn evict(&mut self) -> u32;
    /// The hand is there.
    fn is_at(&self, _key: u32) -> bool {
        false
    }
}

#[derive(Default)]
struct Sieve {
    /// By the order of entering: key, used.
    entries: BTreeMap<u64, (u32, bool)>,
    hand: u64,
    next: u64,
}

impl Sieve {
    fn place(&self, key: u32) -> Option<u64> {
        self.entries.iter().find(|(_, (other, _))| *other == key).map(|(place, _)| *place)
    }
}

impl Oracle for Sieve {
    fn contains(&self, key: u32) -> bool {
        self.place(key).is_some()
    }

    fn hit(&mut self, key: u32) {
        let place = self.place(key).unwrap();
        self.entries.insert(place, (key, true));
    }

    fn enter(&mut self, key: u32, _: bool) {
        self.next += 1;
        self.entries.insert(self.next, (key, false));
    }

    fn leave(&mut self, key: u32) {
        let place = self.place(key).unwrap();
        self.entries.remove(&place);
    }

    fn evict(&mut self) -> u32 {
        loop {
            let ahead = self.entries.range_mut(self.hand + 1..).next();
            let Some((place, (key, used))) = ahead else {
                self.hand = 0;
                continue;
            };
            (self.hand, *used) = match *used {
                true => (*place, false),
                false => {
                    let key = *key;
                    self.hand = *place;
                    self.entries.remove(&self.hand);
                    return key;
                }
            };
        }
    }

    fn is_at(&self, key: u32) -> bool {
        self.place(key) == Some(self.hand)
    }
}

#[derive(Default)]
struct S3Fifo {
    /// Keys and uses, the oldest first.
    small: VecDeque<(u32, u32)>,
    main: VecDeque<(u32, u32)>,
}

impl Oracle for S3Fifo {
    fn contains(&self, key: u32) -> bool {
        self.small.iter().chain(&self.main).any(|(other, _)| *other == key)
    }

    fn hit(&mut self, key: u32) {
        let mut all = self.small.iter_mut().chain(&mut self.main);
        let (_, uses) = all.find(|(other, _)| *other == key).unwrap();
        *uses = (*uses + 1).min(3);
    }

    fn enter(&mut self, key: u32, main: bool) {
        let queue = if main { &mut self.main } else { &mut self.small };
        queue.push_back((key, 0));
    }

    fn leave(&mut self, key: u32) {
        self.small.retain(|(other, _)| *other != key);
        self.main.retain(|(other, _)| *other != key);
    }

    fn evict(&mut self) -> u32 {
        loop {
            let share = (self.small.len() + self.main.len()) / 10;
            let (mut small, mut main) = (self.small.len(), self.main.len());
            while small + main > 0 {
                if small > share || main == 0 {
                    small -= 1;
                    match self.small.pop_front().unwrap() {
                        (key, 2..) => self.main.push_back((key, 0)),
                        (key, _) => return key,
                    }
                } else {
                    main -= 1;
                    match self.main.pop_front().unwrap() {
                        (key, 0) => return key,
                        (key, uses) => self.main.push_back((key, uses - 1)),
                    }
                }
            }
        }
    }
}

/// Skewed, so that some are used often.
fn some_key(random: &mut Rng) -> u32 {
    random.u32(..110) * random.u32(..110) / 110
}

fn agrees<O: Oracle>(policy: Policy) -> u64 {
    let cache = tiny_of(small().exact_recency().policy(policy), 64);
    let mut handle = cache.handle().unwrap();
    let mut oracle = O::default();
    let mut random = Rng::with_seed(7);
    let mut returned = 0;
    for step in 0..30_000 {
        let key = some_key(&mut random);
        let (bytes, known) = (key.to_le_bytes(), oracle.contains(key));
        match random.u32(..16) {
            0..6 => {
                assert_eq!(handle.get(bytes).unwrap().is_some(), known, "{step}: {key}");
                if known {
                    oracle.hit(key);
                }
            }
            6 => assert_eq!(handle.peek(bytes).unwrap().is_some(), known, "{step}: {key}"),
            7 => {
                assert_eq!(handle.touch(bytes, None).unwrap(), known, "{step}: {key}");
                if known {
                    oracle.hit(key);
                }
            }
            8 if step % 3 == 0 => {
                assert_eq!(handle.remove(bytes).unwrap(), known, "{step}: {key}");
                if known {
                    oracle.leave(key);
                }
            }
            // A value that replaces another lies in another block: the hand may meet it again.
            _ if oracle.is_at(key) => {}
            _ => {
                let report = handle.insert(bytes, step.to_string()).unwrap();
                // A set writes its entry before it lets go of the old one: it may evict that very
                // one.
                for _ in 0..report.evicted {
                    oracle.evict();
                }
                if oracle.contains(key) {
                    oracle.hit(key);
                } else {
                    let main = is_in_main(&cache, &mut handle, key);
                    returned += main as u64;
                    oracle.enter(key, main);
                }
            }
        }
    }
    assert_eq!(cache.stats().forced, 0);
    assert!(cache.stats().evicted > 1000);
    drop(handle);
    cache.check().unwrap();
    returned
}

/// The entry of a key is in the main queue of S3-FIFO.
fn is_in_main(cache: &TierCache, handle: &mut Handle<'_>, key: u32) -> bool {
    let hit = handle.read(&key.to_le_bytes(), &mut super::super::read::Nothing).unwrap().unwrap();
    let age = cache.view().ages[hit.link.record as usize].load(crate::sync::Ordering::Relaxed);
    cache.policy() == Policy::S3Fifo && age >> 31 & 1 == 1
}

#[test]
fn sieve_evicts_whom_the_hand_meets_unused() {
    agrees::<Sieve>(Policy::Sieve);
}

#[test]
fn s3fifo_evicts_from_the_ends_of_its_queues() {
    let returned = agrees::<S3Fifo>(Policy::S3Fifo);
    assert!(returned > 500, "{returned} came back while they were remembered");
}

/// Who left the small queue and comes back begins in the main one; who comes for the first time
/// does not.
#[test]
fn the_ghost_queue_remembers_who_left() {
    let cache = tiny_of(small().exact_recency().policy(Policy::S3Fifo), 256);
    let mut handle = cache.handle().unwrap();
    for key in 0..1000u32 {
        handle.insert(key.to_le_bytes(), "x").unwrap();
        assert!(!is_in_main(&cache, &mut handle, key), "{key}");
    }
    let gone: Vec<u32> =
        (0..1000u32).filter(|key| !handle.contains_key(key.to_le_bytes()).unwrap()).collect();
    assert!(gone.len() >= 1000 - 256);
    let mut back = 0;
    for key in gone.iter().rev().take(100) {
        handle.insert(key.to_le_bytes(), "x").unwrap();
        back += is_in_main(&cache, &mut handle, *key) as u32;
    }
    assert!(back >= 95, "{back} of 100 that left last");
    let mut late = 0;
    for key in &gone[..100] {
        handle.insert(key.to_le_bytes(), "x").unwrap();
        late += is_in_main(&cache, &mut handle, *key) as u32;
    }
    assert!(late <= 30, "{late} of 100 that left first, three times as many ago as it holds");
}

/// Under a policy that counts, a hit stores a counter that changed and nothing else; at its limit
/// nothing at all.
#[test]
fn a_hit_stores_a_counter_up_to_its_limit() {
    for (policy, limit) in [(Policy::S3Fifo, 3), (Policy::Sieve, 1)] {
        let cache = tiny_of(small().policy(policy), 64);
        let mut handle = cache.handle().unwrap();
        handle.insert("k", "v").unwrap();
        let stores = |handle: &mut Handle<'_>| {
            let mut stores = Vec::new();
            let mut note = |point| match point {
                Point::ReadControl | Point::ReadCell | Point::ReadRecord => {}
                Point::ReadValue | Point::ReadAgain | Point::Stat | Point::Time => {}
                store => stores.push(store),
            };
            let (found, _) = with_fate(Fate::Each, Some(&mut note), || handle.get("k").unwrap());
            assert!(found.is_some());
            stores
        };
        for _ in 0..limit {
            assert_eq!(stores(&mut handle), [Point::Touch], "{policy}");
        }
        for _ in 0..3 {
            assert_eq!(stores(&mut handle), [], "{policy}");
        }
    }
}

/// What has expired leaves before anything else.
#[test]
fn the_expired_leave_first() {
    for policy in Policy::ALL {
        let cache = tiny_of(small().policy(policy), 64);
        let mut handle = cache.handle().unwrap();
        for key in 0..64u32 {
            let ttl = (key % 8 == 7).then_some(Duration::from_secs(1));
            handle.insert_for(key.to_le_bytes(), "x", ttl).unwrap();
            handle.get(key.to_le_bytes()).unwrap();
        }
        advance(&cache, 10_000);
        for key in 100..108u32 {
            handle.insert(key.to_le_bytes(), "x").unwrap();
        }
        assert_eq!((cache.stats().expired, cache.stats().evicted), (8, 0), "{policy}");
    }
}

/// A flight of one key asks nothing of the memory of who left: the value that follows does.
#[test]
fn a_computed_value_comes_back_to_the_main_queue() {
    let cache = tiny_of(small().exact_recency().policy(Policy::S3Fifo), 64);
    let mut handle = cache.handle().unwrap();
    for key in 0..80u32 {
        handle.insert(key.to_le_bytes(), "x").unwrap();
    }
    assert!(!handle.contains_key(9u32.to_le_bytes()).unwrap());
    handle.get_or_compute(9u32.to_le_bytes(), None, || b"computed".to_vec()).unwrap();
    assert!(is_in_main(&cache, &mut handle, 9));
}

/// Values of one to many blocks, expiry, tiers: contents are right, whoever leaves.
#[test]
fn contents_are_right_under_every_policy() {
    for (policy, tiers) in Policy::ALL.into_iter().flat_map(|policy| [(policy, 1), (policy, 3)]) {
        let cache = tiny_of(small().policy(policy).tiers(tiers), 256);
        let mut handle = cache.handle().unwrap();
        let mut random = Rng::with_seed(5);
        let mut known: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        for step in 0..20_000u32 {
            let key = some_key(&mut random);
            match random.u32(..8) {
                0..4 => {
                    if let Some(value) = handle.get(key.to_le_bytes()).unwrap() {
                        assert_eq!(Some(&value), known.get(&key), "{policy} {tiers} {step}");
                    }
                }
                4 => drop(handle.remove(key.to_le_bytes()).map(|_| known.remove(&key)).unwrap()),
                _ => {
                    let value = vec![step as u8; random.usize(..1200)];
                    handle.insert(key.to_le_bytes(), &value).unwrap();
                    known.insert(key, value);
                }
            }
        }
        assert!(cache.stats().evicted > 500, "{policy} {tiers}");
        drop(handle);
        cache.check().unwrap();
        assert_eq!(cache.stats().orphans, 0);
    }
}

/// In tiers, what leaves leaves from the last one, and uses keep entries there.
#[test]
fn in_tiers_the_policy_decides_in_the_last_one() {
    for policy in [Policy::S3Fifo, Policy::Sieve] {
        let cache = tiny_of(small().policy(policy).tiers(3), 96);
        let mut handle = cache.handle().unwrap();
        for key in 0..2_000u32 {
            handle.insert(key.to_le_bytes(), "x").unwrap();
            for used in 0..8u32 {
                handle.get(used.to_le_bytes()).unwrap();
            }
        }
        let stats = cache.tier_stats();
        assert!(stats[2].entries > 0 && stats[0].demoted > 1000, "{policy}: {stats:?}");
        let kept = (0..8u32).filter(|key| handle.contains_key(key.to_le_bytes()).unwrap()).count();
        assert_eq!(kept, 8, "{policy}: those in use stay");
        drop(handle);
        cache.check().unwrap();
    }
}

/// Who attaches finds the policy the cache was made with; who asks for another is told.
#[test]
fn the_policy_belongs_to_the_segment() {
    let named = super::processes::Named::new("policy");
    let made = small().policy(Policy::Sieve).create(named.place()).unwrap();
    assert_eq!(TierCache::attach(named.place()).unwrap().policy(), Policy::Sieve);
    assert!(small().policy(Policy::Sieve).create_or_attach(named.place()).is_ok());
    assert!(small().create_or_attach(named.place()).is_ok(), "no policy was asked for");
    let error = small().policy(Policy::Lru).create_or_attach(named.place()).unwrap_err();
    assert!(matches!(
        error,
        OpenError::Segment(SegmentError::Mismatch { field: "policy", expected: 0, found: 2 })
    ));
    let fields = Sizes { ..made.sizes }.fields();
    let unknown: [u64; 16] = std::array::from_fn(|at| if at == 15 { 3 } else { fields[at] });
    let error = Sizes::from_fields(made.sizes.format, unknown).unwrap_err();
    assert!(matches!(
        error,
        OpenError::Segment(SegmentError::Mismatch { field: "policy", found: 3, .. })
    ));
}

/// What a policy remembers takes its room from the capacity.
#[test]
fn a_policy_pays_for_its_memory() {
    let of = |policy| small().capacity(4 << 20).policy(policy).sizes().unwrap();
    let (lru, s3fifo, sieve) = (of(Policy::Lru), of(Policy::S3Fifo), of(Policy::Sieve));
    for sizes in [lru, s3fifo, sieve] {
        assert!(sizes.bytes() <= 4 << 20);
    }
    assert_eq!(lru.policy_words(), 0);
    assert_eq!(s3fifo.policy_words(), (s3fifo.blocks as usize).div_ceil(16) * 8);
    assert_eq!(sieve.policy_words(), sieve.blocks as usize / 1024);
    assert!(s3fifo.blocks < lru.blocks && s3fifo.blocks > lru.blocks / 100 * 97);
}
