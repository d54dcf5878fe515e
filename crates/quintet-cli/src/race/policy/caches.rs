//! The contestants.

use super::trace::{Trace, value_bytes};
use super::{Equal, Heat};
use crate::fail::Fail;
use quintet::cache::{CacheBuilder, Policy, TierCache};
use quintet_rivals::Label;
use quintet_rivals::cache::{Weighted, WeightedMoka, WeightedQuick};
use std::collections::BTreeSet;

/// What the names of ours begin with.
pub(super) const OURS: &str = "quintet";

/// One that takes part.
#[derive(Clone, Copy)]
pub(super) struct Contestant {
    pub(super) label: Label,
    /// A yardstick that is nobody's rival.
    pub(super) is_limit: bool,
    run: fn(&Trace, Heat) -> Result<f64, Fail>,
}

impl Contestant {
    /// The share of hits in a trace.
    pub(super) fn run(&self, trace: &Trace, heat: Heat) -> Result<f64, Fail> {
        (self.run)(trace, heat)
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

const fn ours(name: &'static str, run: fn(&Trace, Heat) -> Result<f64, Fail>) -> Contestant {
    Contestant { label: Label::new(name, VERSION), is_limit: false, run }
}

const fn limit(name: &'static str, run: fn(&Trace, Heat) -> Result<f64, Fail>) -> Contestant {
    Contestant { label: Label { name, version: None }, is_limit: true, run }
}

pub(super) const CONTESTANTS: [Contestant; 7] = [
    ours("quintet lru", |trace, heat| tier_cache(trace, heat, Policy::Lru)),
    ours("quintet s3fifo", |trace, heat| tier_cache(trace, heat, Policy::S3Fifo)),
    ours("quintet sieve", |trace, heat| tier_cache(trace, heat, Policy::Sieve)),
    Contestant { label: WeightedMoka::LABEL, is_limit: false, run: rival::<WeightedMoka> },
    Contestant { label: WeightedQuick::LABEL, is_limit: false, run: rival::<WeightedQuick> },
    limit("exact LRU", |trace, heat| {
        let (room, _) = room(heat);
        let mut lru = Lru::new(trace.bound, room);
        Ok(share(trace, |key, _| lru.access(key, weight(heat.equal, key))))
    }),
    limit("clairvoyant", |trace, heat| Ok(clairvoyant(trace, heat))),
];

/// Blocks that an entry takes, of 128 bytes: its first one has room for a key of eight bytes and 72
/// of the value, each further one for 96.
fn weight(equal: Equal, key: u32) -> u32 {
    match equal {
        Equal::Entries => 1,
        Equal::Bytes => 1 + value_bytes(key).div_ceil(8).saturating_sub(9).div_ceil(12) as u32,
    }
}

/// Weight that fits, and about how many entries that is: a share of the keys of the heat.
fn room(heat: Heat) -> (u64, usize) {
    let all: u64 = (0..heat.keys as u32).map(|key| u64::from(weight(heat.equal, key))).sum();
    (all * heat.percent / 100, (heat.keys * heat.percent / 100) as usize)
}

/// Asks for each key of a trace. `access`: the key, and at which step; true for a hit.
fn share(trace: &Trace, mut access: impl FnMut(u32, usize) -> bool) -> f64 {
    let mut hits = 0;
    for (step, key) in trace.keys.iter().enumerate() {
        hits += u64::from(access(*key, step) && step >= trace.warm_up());
    }
    hits as f64 / (trace.keys.len() - trace.warm_up()) as f64
}

fn rival<C: Weighted>(trace: &Trace, heat: Heat) -> Result<f64, Fail> {
    let (room, entries) = room(heat);
    let mut cache = C::new(room, entries);
    Ok(share(trace, |key, _| {
        let hit = cache.get(u64::from(key));
        if !hit {
            cache.insert(u64::from(key), weight(heat.equal, key));
        }
        hit
    }))
}

fn tier_cache(trace: &Trace, heat: Heat, policy: Policy) -> Result<f64, Fail> {
    let failed = |why: String| Fail::no("the cache failed", why, "try fewer --keys");
    let cache = with_blocks(room(heat).0, policy).map_err(failed)?;
    let mut handle = cache.handle().map_err(|error| failed(error.to_string()))?;
    let value = vec![7; 4096];
    let mut found = Vec::new();
    let mut error = None;
    let ratio = share(trace, |key, _| {
        let hit = handle.get_into(key_bytes(key), &mut found);
        if let Ok(false) = hit {
            let length = if heat.equal == Equal::Bytes { value_bytes(key) } else { 64 };
            error = handle.insert(key_bytes(key), &value[..length]).err().or(error.take());
        }
        hit.unwrap_or_default()
    });
    error.map_or(Ok(ratio), |error| Err(failed(error.to_string())))
}

fn key_bytes(key: u32) -> [u8; 8] {
    u64::from(key).to_le_bytes()
}

/// A cache with exactly so many blocks: the capacity that gives them is searched for.
fn with_blocks(blocks: u64, policy: Policy) -> Result<TierCache, String> {
    let builder = |bytes: u64| -> CacheBuilder {
        let builder = TierCache::builder().handles(1).processes(1).namespaces(1).block(128);
        builder.max_value(2048).policy(policy).capacity(bytes as usize)
    };
    let (mut low, mut high) = (blocks * 128, blocks * 256 + (1 << 20));
    while low < high {
        let middle = low.midpoint(high);
        // Too small a one is refused: it has no blocks.
        let made = builder(middle).create_sealed();
        match made.as_ref().map_or(0, |cache| cache.stats().blocks) {
            few if few < blocks => low = middle + 1,
            many if many > blocks => high = middle,
            _ => return made.map_err(|error| error.to_string()),
        }
    }
    builder(high).create_sealed().map_err(|error| error.to_string())
}

/// Least recently used, to the last access: a list through arrays.
struct Lru {
    /// Neighbours of each key; the last place is the list's own.
    links: Vec<(u32, u32)>,
    weights: Vec<u32>,
    room: u64,
}

impl Lru {
    fn new(bound: u32, room: u64) -> Self {
        let links = (0..=bound).map(|at| (at, at)).collect();
        Self { links, weights: vec![0; bound as usize], room }
    }

    fn end(&self) -> u32 {
        self.links.len() as u32 - 1
    }

    fn unlink(&mut self, key: u32) {
        let (before, after) = self.links[key as usize];
        self.links[before as usize].1 = after;
        self.links[after as usize].0 = before;
    }

    fn access(&mut self, key: u32, weight: u32) -> bool {
        let hit = self.weights[key as usize] != 0;
        if hit {
            self.unlink(key);
        } else {
            self.weights[key as usize] = weight;
            while self.room < u64::from(weight) {
                let oldest = self.links[self.end() as usize].1;
                self.unlink(oldest);
                self.room += u64::from(std::mem::take(&mut self.weights[oldest as usize]));
            }
            self.room -= u64::from(weight);
        }
        let (end, newest) = (self.end(), self.links[self.end() as usize].0);
        self.links[key as usize] = (newest, end);
        self.links[newest as usize].1 = key;
        self.links[end as usize].0 = key;
        hit
    }
}

/// Belady's rule: who is asked for last leaves first, the newcomer included. With weights, where
/// the best choice is hard to find, it is a very good one.
fn clairvoyant(trace: &Trace, heat: Heat) -> f64 {
    const NEVER: u32 = u32::MAX;
    let mut coming = vec![NEVER; trace.bound as usize];
    let mut next = vec![NEVER; trace.keys.len()];
    for (step, key) in trace.keys.iter().enumerate().rev() {
        next[step] = std::mem::replace(&mut coming[*key as usize], step as u32);
    }
    let mut room = room(heat).0 as i64;
    let mut held = BTreeSet::new();
    share(trace, |key, step| {
        let hit = held.remove(&(step as u32, key));
        if !hit {
            room -= i64::from(weight(heat.equal, key));
        }
        held.insert((next[step], key));
        while room < 0 {
            let Some((_, last)) = held.pop_last() else { break };
            room += i64::from(weight(heat.equal, last));
        }
        hit
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_lru_evicts_the_least_recently_used() {
        let mut lru = Lru::new(10, 3);
        let hits: Vec<bool> =
            [1, 2, 3, 1, 4, 2, 1, 3].into_iter().map(|key| lru.access(key, 1)).collect();
        assert_eq!(hits, [false, false, false, true, false, false, true, false]);
        let mut lru = Lru::new(10, 4);
        assert!(!lru.access(1, 2) && !lru.access(2, 2) && !lru.access(3, 3));
        assert!(lru.access(3, 3) && !lru.access(1, 1) && !lru.access(2, 2));
    }

    #[test]
    fn the_clairvoyant_keeps_whom_it_will_be_asked_for() {
        let trace = Trace { keys: vec![1, 2, 3, 1, 2, 4, 1, 2, 3], bound: 5 };
        let heat = Heat {
            kind: super::super::trace::Kind::Loop,
            equal: Equal::Entries,
            percent: 50,
            keys: 4,
        };
        // Room for two: 1 and 2 stay. The first access is the warm-up.
        assert_eq!(clairvoyant(&trace, heat), 4.0 / 8.0);
    }

    #[test]
    fn ours_have_as_many_blocks_as_the_others_have_room() {
        for (blocks, policy) in [(500, Policy::Lru), (5000, Policy::S3Fifo), (777, Policy::Sieve)] {
            assert_eq!(with_blocks(blocks, policy).unwrap().stats().blocks, blocks);
        }
    }

    /// What the race takes an entry for is what it takes.
    #[test]
    fn entries_weigh_what_they_take() {
        let cache = with_blocks(5000, Policy::Lru).unwrap();
        let mut handle = cache.handle().unwrap();
        let mut blocks = 0;
        for key in 0..400 {
            handle.insert(key_bytes(key), vec![0; value_bytes(key)]).unwrap();
            blocks += u64::from(weight(Equal::Bytes, key));
        }
        assert_eq!(cache.stats().used_blocks, blocks);
    }
}
