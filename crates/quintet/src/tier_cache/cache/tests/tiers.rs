//! Tiers: who lies where, what moves, what leaves, and what is told of it.

use super::world::{advance, small, tiny_of};
use crate::tier_cache::cache::view::Age;
use crate::tier_cache::cache::*;
use crate::tier_cache::step::{Fate, with_fate};
use crate::tier_cache::word::Link;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

fn name(number: u32) -> String {
    format!("key {number}")
}

/// The tier of a key.
fn tier(handle: &mut Handle<'_>, key: &str) -> Option<usize> {
    let (_, version) = handle.get_versioned(key).unwrap()?;
    handle.view.tier_of(Link::from_word(version))
}

fn three(blocks: u32) -> TierCache {
    tiny_of(small().tiers(3).exact_recency(), blocks)
}

fn entries(cache: &TierCache) -> Vec<u64> {
    cache.tier_stats().iter().map(|tier| tier.entries).collect()
}

/// Each tier fills up to its share, the oldest lie in the last one, and leave from there.
#[test]
fn the_oldest_move_down_and_leave_from_the_last() {
    let cache = three(96);
    let mut handle = cache.handle().unwrap();
    (0..96).for_each(|number| _ = handle.insert(name(number), "x").unwrap());
    assert_eq!(entries(&cache), [32, 32, 32]);
    let peek = |cache: &TierCache, number: u32| {
        let links = cache
            .view()
            .links(cache.view().input(Default::default(), name(number).as_bytes()).bucket());
        links
            .into_iter()
            .find(|link| {
                cache.view().judge(*link, Default::default(), name(number).as_bytes())
                    != crate::tier_cache::plan::Verdict::Other
            })
            .and_then(|link| cache.view().tier_of(link))
    };
    for number in 0..96 {
        assert_eq!(peek(&cache, number), Some(2 - number as usize / 32), "{number}");
    }
    for number in 96..200 {
        let inserted = handle.insert(name(number), "x").unwrap();
        assert_eq!(inserted.evicted, 1, "{number}");
        assert_eq!(peek(&cache, number - 96), None, "the oldest of all has left");
    }
    assert_eq!(entries(&cache), [32, 32, 32]);
    let stats = cache.tier_stats();
    assert_eq!((stats[0].demoted, stats[1].demoted, stats[2].demoted), (168, 136, 0));
    drop(handle);
    assert_eq!(cache.check().unwrap().entries, 96);
}

/// A set brings a key to the first tier, whole and alone; a remove takes it from wherever it lies;
/// it does not come back.
#[test]
fn set_and_remove_reach_every_tier() {
    let cache = three(96);
    let mut handle = cache.handle().unwrap();
    (0..70).for_each(|number| _ = handle.insert(name(number), "old").unwrap());
    for number in [0, 20, 69] {
        assert!(handle.insert(name(number), vec![7; 300]).unwrap().replaced);
        assert_eq!(tier(&mut handle, &name(number)), Some(0), "{number}");
        assert_eq!(handle.get(name(number)).unwrap(), Some(vec![7; 300]));
    }
    for number in [1, 21, 68, 20] {
        assert!(handle.remove(name(number)).unwrap());
        assert_eq!(handle.get(name(number)).unwrap(), None);
        assert!(!handle.remove(name(number)).unwrap(), "it lay in one tier");
    }
    assert!(handle.replace(name(2), "new", None).unwrap());
    assert!(!handle.insert_new(name(3), "new", None).unwrap(), "it is there, in an old tier");
    assert_eq!(handle.incr("number", 1, Some(4), None).unwrap(), Some(5));
    drop(handle);
    cache.check().unwrap();
}

/// An entry that has expired in an old tier is a miss, and a set over it leaves one entry.
#[test]
fn outlived_in_an_old_tier() {
    let cache = three(96);
    let mut handle = cache.handle().unwrap();
    handle.insert_for("mortal", "x", Some(Duration::from_secs(1))).unwrap();
    handle.demote_oldest(0, 1).unwrap();
    assert_eq!(tier(&mut handle, "mortal"), Some(1));
    assert!(handle.touch("mortal", Some(Duration::from_secs(2))).unwrap());
    assert_eq!(
        Age(cache
            .view()
            .ages
            .iter()
            .map(|age| age.load(crate::sync::Ordering::Relaxed))
            .max()
            .unwrap())
        .tier(),
        1
    );
    advance(&cache, 5_000);
    assert_eq!(handle.get("mortal").unwrap(), None);
    assert!(!handle.insert("mortal", "y").unwrap().replaced);
    assert_eq!(handle.get("mortal").unwrap(), Some(b"y".to_vec()));
    drop(handle);
    assert_eq!(cache.check().unwrap().entries, 1);
}

/// Where a use promotes, it does; where not, an entry stays, and leaves last of its tier.
#[test]
fn promotion_is_a_choice() {
    for promotes in [false, true] {
        let builder = small().tiers(3).exact_recency();
        let builder = if promotes { builder.promote() } else { builder };
        let cache = tiny_of(builder, 96);
        let mut handle = cache.handle().unwrap();
        (0..96).for_each(|number| _ = handle.insert(name(number), "x").unwrap());
        assert!(handle.get(name(5)).unwrap().is_some());
        assert!(handle.peek(name(6)).unwrap().is_some(), "looking is no use");
        let hits = cache.tier_stats()[2].hits;
        assert!(hits >= 2, "{hits}");
        assert_eq!(tier(&mut handle, &name(5)), Some(if promotes { 0 } else { 2 }));
        (96..96 + 31).for_each(|number| _ = handle.insert(name(number), "x").unwrap());
        assert!(handle.contains_key(name(5)).unwrap(), "used last of its tier");
        assert!(!handle.contains_key(name(6)).unwrap());
        drop(handle);
        cache.check().unwrap();
    }
}

/// By number, by age and by bucket, of one tier, with values.
#[test]
fn evictions_of_a_tier() {
    let cache = three(96);
    let mut handle = cache.handle().unwrap();
    (0..96).for_each(|number| _ = handle.insert(name(number), number.to_string()).unwrap());
    let keys = |gone: Vec<Departed>| -> Vec<String> {
        gone.into_iter().map(|gone| String::from_utf8(gone.value).unwrap()).collect()
    };
    assert_eq!(keys(handle.evict_oldest_in(1, 3).unwrap()), ["32", "33", "34"]);
    assert_eq!(keys(handle.evict_oldest_in(0, 1).unwrap()), ["64"]);
    assert_eq!(keys(handle.evict_oldest(2).unwrap()), ["0", "1"], "the oldest of all");
    assert_eq!(keys(handle.evict_oldest_in(7, 2).unwrap()), [""; 0]);
    assert_eq!(handle.evict_unused_in(0, Duration::ZERO, 5).unwrap().len(), 5);
    assert_eq!(entries(&cache), [26, 29, 30]);
    let evict = |handle: &mut Handle<'_>, tier, number| -> Vec<Vec<u8>> {
        let gone = handle.evict_bucket_of_in(tier, name(number), 9).unwrap();
        gone.into_iter().map(|gone| gone.key).collect()
    };
    let (fifth, sixth) = (name(5).into_bytes(), name(6).into_bytes());
    let gone = evict(&mut handle, 2, 5);
    assert_eq!(gone.iter().filter(|key| **key == fifth).count(), 1);
    assert!(!evict(&mut handle, 0, 6).contains(&sixth), "it is in another tier");
    // Both may be in one bucket.
    let stays = !gone.contains(&sixth);
    assert_eq!(handle.contains_key(name(6)).unwrap(), stays);
    drop(handle);
    cache.check().unwrap();
}

/// Every key is in the cache, or the sink got it once; what is there is there.
#[test]
fn each_departure_is_delivered_once() {
    let mut cache = three(96);
    let gone = std::sync::Arc::new(Mutex::new(Vec::new()));
    let log = std::sync::Arc::clone(&gone);
    cache.set_sink(move |batch: &[Departed]| {
        log.lock().unwrap().extend(batch.iter().map(|gone| gone.key.clone()));
        Ok(())
    });
    let mut handle = cache.handle().unwrap();
    (0..1000).for_each(|number| _ = handle.insert(name(number), "x").unwrap());
    let gone = gone.lock().unwrap().clone();
    let distinct: BTreeSet<_> = gone.iter().cloned().collect();
    assert_eq!(distinct.len(), gone.len(), "once each");
    for number in 0..1000 {
        let there = handle.contains_key(name(number)).unwrap();
        assert_ne!(there, distinct.contains(name(number).as_bytes()), "{number}");
    }
    drop(handle);
    cache.check().unwrap();
}

/// Threads set, remove, move and look; nothing is torn, lost or doubled.
#[test]
fn threads_in_three_tiers() {
    let cache = tiny_of(small().tiers(3).promote(), 400);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let cache = &cache;
            scope.spawn(move || {
                let mut random = quintet_testkit::Rng::with_seed(thread);
                let mut handle = cache.handle().unwrap();
                handle.set_timeout(Duration::from_secs(20));
                // Its own keys, of which it knows everything but whether they were evicted.
                let mut known: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
                for round in 0..20_000u64 {
                    let number = random.u64(..60);
                    let key = (thread << 32 | number).to_le_bytes();
                    match random.u32(..10) {
                        0..4 => {
                            let value = vec![round as u8; random.usize(1..300)];
                            handle.insert(key, &value).unwrap();
                            known.insert(number, value);
                        }
                        4 => {
                            handle.remove(key).unwrap();
                            known.remove(&number);
                            assert_eq!(handle.get(key).unwrap(), None, "removed");
                        }
                        5 => _ = handle.demote_oldest(random.usize(..2), 3).unwrap(),
                        _ => {
                            let found = handle.get(key).unwrap();
                            let right = found.is_none() || found.as_ref() == known.get(&number);
                            assert!(right, "{found:?}, not {:?}", known.get(&number));
                        }
                    }
                }
            });
        }
    });
    cache.check().unwrap();
    let stats = cache.tier_stats();
    assert!(stats[0].demoted > 0 && stats[1].demoted > 0, "{stats:?}");
    assert!(cache.view().total(stats::Count::Promoted) > 0);
}

/// A key that nobody takes away is found at every store of a set that moves others, and of a move
/// of itself.
#[test]
fn found_at_every_store_of_a_move() {
    // So many cells that nobody has to leave a full window.
    let sizes = Sizes { buckets: 96, ..three(96).sizes };
    let cache = TierCache::create_sealed(sizes).unwrap();
    let mut handle = cache.handle().unwrap();
    (0..90).for_each(|number| _ = handle.insert(name(number), "x").unwrap());
    let reader = cache.reader();
    let mut looks = 0;
    let mut look = |point| {
        for number in (0..90).step_by(7) {
            let found = reader.get(name(number));
            assert_eq!(found, Ok(Some(b"x".to_vec())), "{number} at {point:?}");
            looks += 1;
        }
    };
    with_fate(Fate::Each, Some(&mut look), || {
        assert_eq!(handle.demote_oldest(0, 12).unwrap(), 12);
        assert_eq!(handle.demote_oldest(1, 40).unwrap(), 40);
        assert_eq!(handle.demote_oldest(2, 9).unwrap(), 0, "there is no tier below");
        (90..96).for_each(|number| _ = handle.insert(name(number), "x").unwrap());
    });
    assert!(looks > 10_000, "{looks}");
    drop(handle);
    cache.check().unwrap();
}

/// Unused for the cooling time: maintenance moves them, however few there are.
#[test]
fn cooling_is_by_age() {
    let cache = three(96);
    let mut handle = cache.handle().unwrap();
    handle.insert("old", "x").unwrap();
    for ms in [20_000, 200_000] {
        advance(&cache, ms);
        cache.view().mark_time();
    }
    handle.insert("young", "x").unwrap();
    assert_eq!(handle.maintain().unwrap().demoted, 0, "nothing is asked for");
    let time = Duration::from_secs(150);
    cache.set_cooling(Some(time)).unwrap();
    assert_eq!(cache.cooling(), Some(time));
    assert_eq!(handle.maintain().unwrap().demoted, 1);
    assert_eq!(handle.maintain().unwrap().demoted, 0, "for the next tier it is too young");
    let stats = cache.tier_stats();
    assert_eq!(entries(&cache), [1, 1, 0]);
    assert!(stats[0].newest.unwrap() < time && stats[1].newest.unwrap() > time, "{stats:?}");
    assert!(handle.contains_key("old").unwrap());
    drop(handle);
    cache.check().unwrap();
}

/// The array of ages says the wrong tier of everything: whoever needs a victim finds out.
#[test]
fn wrong_hints_are_corrected() {
    let cache = three(96);
    let mut handle = cache.handle().unwrap();
    (0..96).for_each(|number| _ = handle.insert(name(number), "x").unwrap());
    for age in cache.view().ages {
        let known = Age(age.load(crate::sync::Ordering::Relaxed));
        if known.is_entry() {
            let wrong = known.with_tier((known.tier() + 1) % 3);
            age.store(wrong.0, crate::sync::Ordering::Relaxed);
        }
    }
    (96..400).for_each(|number| _ = handle.insert(name(number), "x").unwrap());
    cache.recover().unwrap();
    (400..600).for_each(|number| _ = handle.insert(name(number), "x").unwrap());
    assert_eq!(entries(&cache).iter().sum::<u64>(), 96);
    assert!(entries(&cache).iter().all(|entries| *entries > 16), "{:?}", entries(&cache));
    drop(handle);
    cache.check().unwrap();
}

/// What is asked for is what there is, and nonsense is refused.
#[test]
fn tiers_are_part_of_the_sizes() {
    let place = Place::Name(format!("tiers-{}", std::process::id()));
    let made = small().tiers(3).create(&place).unwrap();
    assert_eq!(made.tiers(), 3);
    assert_eq!(TierCache::attach(&place).unwrap().tiers(), 3);
    assert!(small().tiers(2).create_or_attach(&place).is_err());
    assert!(small().tiers(3).create_or_attach(&place).is_ok());
    TierCache::unlink(&place).unwrap();
    assert!(small().tiers(0).create_sealed().is_err());
    assert!(small().tiers(5).create_sealed().is_err());
    assert_eq!(small().create_sealed().unwrap().tiers(), 1);
}
