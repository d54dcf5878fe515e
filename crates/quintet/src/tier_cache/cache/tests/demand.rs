//! Evictions on demand: by age, by number, by bucket, with values.

use super::world::{advance, small, tiny, tiny_of};
use crate::sync::Ordering;
use crate::tier_cache::cache::spaces::Space;
use crate::tier_cache::cache::*;
use std::time::Duration;

fn keys(gone: &[Departed]) -> Vec<String> {
    gone.iter().map(|gone| String::from_utf8_lossy(&gone.key).into_owned()).collect()
}

const MINUTE: Duration = Duration::from_secs(60);

/// Not used for so long: by get or by set, and never what was used since.
#[test]
fn unused_for_a_time() {
    let cache = tiny(64);
    let mut handle = cache.handle().unwrap();
    // Somebody notices: this handle need not look at the clock at every operation.
    let pass = |ms| {
        advance(&cache, ms);
        cache.view().mark_time();
    };
    for number in 0..4 {
        handle.insert(format!("old {number}"), vec![number; 200]).unwrap();
        pass(10_000);
    }
    pass(100_000);
    handle.insert("fresh", "x").unwrap();
    handle.get("old 1").unwrap();
    assert_eq!(handle.evict_unused(10 * MINUTE, 100).unwrap(), []);
    let gone = handle.evict_unused(MINUTE, 2).unwrap();
    assert_eq!(keys(&gone), ["old 0", "old 2"], "the oldest first, no more than asked for");
    assert_eq!(gone[1].value, [2; 200]);
    assert_eq!(keys(&handle.evict_unused(MINUTE, 100).unwrap()), ["old 3"]);
    assert_eq!(cache.len(), 2);
    pass(100_000);
    assert!(handle.contains_key("fresh").unwrap(), "looking is no use");
    handle.get("old 1").unwrap();
    assert_eq!(keys(&handle.evict_unused(MINUTE, 100).unwrap()), ["fresh"]);
    assert_eq!(handle.evict_unused(Duration::ZERO, 100).unwrap().len(), 1);
    assert_eq!((cache.len(), cache.stats().evicted), (0, 5));
    drop(handle);
    cache.check().unwrap();
}

/// Only read, for an hour, by one who never writes: what it reads is known to be in use.
#[test]
fn readers_move_time_on() {
    let cache = tiny(64);
    let (mut writer, mut reader) = (cache.handle().unwrap(), cache.handle().unwrap());
    writer.insert("read", "x").unwrap();
    writer.insert("left alone", "x").unwrap();
    for _ in 0..60 {
        advance(&cache, 60_000);
        // As many as a handle makes between two looks at the clock, and one.
        (0..70).for_each(|_| drop(reader.get("read").unwrap()));
    }
    assert_eq!(keys(&writer.evict_unused(2 * MINUTE, 9).unwrap()), ["left alone"]);
}

/// Whatever the time asked for and whenever, the answer is off by a seventh of it at most.
#[test]
fn every_age_is_known_up_to_a_seventh() {
    let cache = tiny(64);
    let view = cache.view();
    let mut ticks = std::collections::HashMap::new();
    // Marks are kept by groups of spans: how the present lies in its groups must not matter.
    for number in 0..5_020 {
        advance(&cache, 8_000);
        view.mark_time();
        let span = view.now() / 8_000;
        ticks.insert(view.tick(), span);
        if number < 4_500 {
            continue;
        }
        for age in [
            2, 3, 5, 10, 15, 16, 17, 31, 60, 122, 241, 490, 963, 1000, 1930, 2200, 3600, 3842, 3942,
        ] {
            let tick = view.tick_before(age * 8_000).unwrap();
            let known = span - ticks[&tick];
            // One more where the system's own time passes into the next span in between.
            assert!(known + 1 >= age && known <= age + age / 7 + 4, "{known} for {age}");
        }
    }
}

/// The clock of recency wraps around: the oldest still leave first.
#[test]
fn ticks_wrap_around() {
    let cache = tiny_of(small().exact_recency(), 64);
    cache.view().global(Global::Tick).store(u32::MAX as u64 - 5, Ordering::Relaxed);
    let mut handle = cache.handle().unwrap();
    for number in 0..10 {
        handle.insert(format!("{number}"), "x").unwrap();
    }
    handle.get("0").unwrap();
    assert_eq!(keys(&handle.evict_oldest(3).unwrap()), ["1", "2", "3"]);
    assert_eq!(handle.evict_unused(Duration::ZERO, 9).unwrap().len(), 7);
}

/// Those of one bucket, and no others.
#[test]
fn of_one_bucket() {
    let sizes = Sizes { blocks: 200, buckets: 4, ..small().sizes().unwrap() };
    let cache = TierCache::create_sealed(Sizes { max_value: 200, pace: 0, ..sizes }).unwrap();
    let mut handle = cache.handle().unwrap();
    for number in 0..40 {
        handle.insert(format!("{number}"), "x").unwrap();
    }
    let bucket = |key: &[u8]| cache.view().input(Space::default(), key).bucket();
    let all: Vec<String> = (0..40)
        .map(|n| n.to_string())
        .filter(|key| bucket(key.as_bytes()) == bucket(b"7"))
        .collect();
    let gone = handle.evict_bucket_of("7", 2).unwrap();
    assert_eq!(keys(&gone), all[..2], "the oldest of them");
    let gone = handle.evict_bucket_of("7", 99).unwrap();
    assert_eq!(keys(&gone), all[2..]);
    assert_eq!(cache.len() as usize, 40 - all.len());
    drop(handle);
    cache.check().unwrap();
}

#[test]
fn a_cache_that_never_evicts_refuses() {
    let cache = tiny_of(small().no_evict(), 64);
    let mut handle = cache.handle().unwrap();
    handle.insert("k", "v").unwrap();
    assert_eq!(handle.evict_unused(Duration::ZERO, 9), Err(CacheError::Full));
    assert_eq!(handle.evict_bucket_of("k", 9), Err(CacheError::Full));
    assert_eq!(handle.evict_oldest(9), Err(CacheError::Full));
}
