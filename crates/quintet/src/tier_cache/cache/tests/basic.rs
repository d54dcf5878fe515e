//! What one handle sees.

use super::world::{small, tiny};
use crate::tier_cache::cache::*;

#[test]
fn set_get_remove() {
    let cache = small().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    assert_eq!(handle.get("a").unwrap(), None);
    assert!(!handle.insert("a", "1").unwrap().replaced);
    assert!(handle.insert("a", "2").unwrap().replaced);
    handle.insert("", "empty key").unwrap();
    handle.insert("empty value", "").unwrap();
    assert_eq!(handle.get("a").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(handle.get("").unwrap().as_deref(), Some(&b"empty key"[..]));
    assert_eq!(handle.get("empty value").unwrap().as_deref(), Some(&b""[..]));
    assert_eq!(cache.len(), 3);
    assert!(handle.remove("a").unwrap());
    assert!(!handle.remove("a").unwrap());
    assert_eq!(handle.get("a").unwrap(), None);
    drop(handle);
    assert_eq!(cache.check().unwrap().entries, 2);
}

/// Every length around the edges of blocks, keys included.
#[test]
fn any_length_comes_back() {
    let cache = small().max_value(3000).create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    let bytes: Vec<u8> = (0..4000u32).map(|at| (at * 7 + at / 256) as u8).collect();
    for key in [0, 1, 7, 8, 9, 16, 79, 80, 81, 200] {
        for value in (0..330).chain([1000, 2999, 3000]) {
            handle.insert(&bytes[..key], &bytes[key..key + value]).unwrap();
            let got = handle.get(&bytes[..key]).unwrap().unwrap();
            assert_eq!(got, &bytes[key..key + value], "{key} {value}");
        }
    }
    drop(handle);
    assert_eq!(cache.check().unwrap().entries, 10);
}

#[test]
fn too_large_has_no_effect() {
    let cache = small().max_value(100).create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert("k", "old").unwrap();
    let before = cache.stats();
    assert_eq!(handle.insert("k", [0; 101]), Err(CacheError::ValueTooLarge { max: 100 }));
    assert_eq!(
        handle.insert(vec![0; MAX_KEY + 1], "v"),
        Err(CacheError::KeyTooLarge { max: MAX_KEY })
    );
    assert_eq!(
        handle.insert_new("new", [0; 101], None),
        Err(CacheError::ValueTooLarge { max: 100 })
    );
    assert_eq!(cache.stats(), before);
    assert_eq!(handle.get_str("k").unwrap().as_deref(), Some("old"));
    handle.insert("k", [0; 100]).unwrap();
    assert_eq!(handle.get("k").unwrap().unwrap().len(), 100);
}

/// Keys as long as they may be, alike but for their last byte.
#[test]
fn the_longest_keys_come_back() {
    let cache = small().capacity(4 << 20).create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    let keys = [1, 2].map(|last| [vec![7; MAX_KEY - 1], vec![last]].concat());
    handle.insert(&keys[0], "one").unwrap();
    assert_eq!(handle.get(&keys[1]).unwrap(), None);
    handle.insert(&keys[1], "two").unwrap();
    assert_eq!(handle.get_str(&keys[0]).unwrap().as_deref(), Some("one"));
    assert_eq!(handle.get_str(&keys[1]).unwrap().as_deref(), Some("two"));
    drop(handle);
    assert_eq!(cache.check().unwrap().entries, 2);
}

#[test]
fn a_full_cache_evicts_and_counts() {
    let cache = tiny(64);
    let mut handle = cache.handle().unwrap();
    let mut evicted = 0;
    for number in 0..1000u32 {
        let full = cache.stats().used_blocks == 64;
        let report = handle.insert(number.to_string(), number.to_le_bytes()).unwrap();
        assert_eq!(report.evicted, full as u32, "as soon as nothing is free, and not before");
        evicted += report.evicted;
    }
    assert_eq!(evicted as u64, 1000 - cache.len());
    let stats = cache.stats();
    assert_eq!(stats.evicted + stats.forced, evicted as u64);
    assert_eq!(handle.get("999").unwrap().as_deref(), Some(&999u32.to_le_bytes()[..]));
    drop(handle);
    let report = cache.check().unwrap();
    assert!(report.entries >= 60, "{report:?}");
}

#[test]
fn a_cache_that_does_not_evict_is_full() {
    let cache = super::world::tiny_of(small().no_evict(), 64);
    let mut handle = cache.handle().unwrap();
    let mut stored = Vec::new();
    for number in 0..100u32 {
        match handle.insert(number.to_string(), number.to_le_bytes()) {
            Ok(report) => {
                assert_eq!(report.evicted, 0);
                stored.push(number);
            }
            Err(error) => assert_eq!(error, CacheError::Full),
        }
    }
    assert!(stored.len() >= 60, "{}", stored.len());
    for number in &stored {
        let value = handle.get(number.to_string()).unwrap();
        assert_eq!(value.as_deref(), Some(&number.to_le_bytes()[..]));
    }
    assert_eq!(cache.stats().evicted + cache.stats().forced, 0);
    assert!(handle.remove(stored[0].to_string()).unwrap());
    handle.insert("another", "one").unwrap();
    drop(handle);
    cache.check().unwrap();
}

/// The time that this thread was at work, in seconds; whoever else uses the machine does not count.
fn at_work() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure outlives the call and is written by it.
    let told = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(told, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The work per byte, the best of three.
fn work_per_byte(cache: &TierCache, bytes: usize) -> f64 {
    let mut handle = cache.handle().unwrap();
    let value = vec![7; bytes];
    let once = |handle: &mut Handle<'_>| {
        let begun = at_work();
        handle.insert("long", &value).unwrap();
        (at_work() - begun) / bytes as f64
    };
    (0..3).map(|_| once(&mut handle)).fold(f64::MAX, f64::min)
}

/// Sixteen times the bytes take about sixteen times the work, in an empty cache and in one that has
/// to evict for it.
#[test]
fn a_long_value_takes_linear_work() {
    let builder = || TierCache::builder().capacity(128 << 20).handles(4).max_value(8 << 20);
    let cache = builder().create_sealed().unwrap();
    let (short, long) = (work_per_byte(&cache, 512 << 10), work_per_byte(&cache, 8 << 20));
    assert!(long < 4.0 * short, "{long:e} s a byte instead of {short:e}");
    let full = builder().create_sealed().unwrap();
    let mut handle = full.handle().unwrap();
    for number in 0..50_000u32 {
        handle.insert(number.to_le_bytes(), [1; 3000]).unwrap();
    }
    assert!(full.stats().evicted > 0, "it is full");
    let (short, long) = (work_per_byte(&full, 512 << 10), work_per_byte(&full, 8 << 20));
    assert!(long < 4.0 * short, "{long:e} s a byte instead of {short:e}");
    drop(handle);
    full.check().unwrap();
}

/// What a long value needs leaves for it, and little more.
#[test]
fn a_long_value_puts_out_no_more_than_its_room() {
    let cache = TierCache::builder().capacity(16 << 20).handles(4).max_value(1 << 20);
    let cache = cache.create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    for number in 0..40u32 {
        handle.insert(number.to_le_bytes(), vec![1; 900 << 10]).unwrap();
    }
    let before = cache.stats().evicted;
    let report = handle.insert("one more", vec![1; 900 << 10]).unwrap();
    assert!(report.evicted <= 2, "{report:?}");
    assert!(cache.stats().evicted - before <= 2);
    drop(handle);
    cache.check().unwrap();
}

#[test]
fn a_cache_of_64_mib_takes_a_value_of_1_mib() {
    let cache = TierCache::builder().capacity(64 << 20).create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    let value = vec![3; 1 << 20];
    handle.insert("a page of the web", &value).unwrap();
    assert_eq!(handle.get("a page of the web").unwrap(), Some(value));
}
