//! Random bytes anywhere in a segment: errors, misses or timeouts, never a crash or an endless wait.

use super::world::small;
use crate::tier_cache::cache::*;
use quintet_testkit::Rng;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Uses everything the cache offers. Only that it returns matters.
fn exercise(cache: &TierCache, random: &mut Rng) {
    let _ = cache.recover();
    let _ = cache.check();
    let _ = cache.stats();
    let _ = cache.scan().take(2000).count();
    let _ = cache.namespaces();
    let _ = cache.processes();
    let mut reader = cache.reader();
    reader.set_timeout(Duration::from_micros(50));
    let Ok(mut handle) = cache.handle() else { return };
    handle.set_timeout(Duration::from_micros(50));
    handle.set_patience(Duration::from_micros(50));
    for _ in 0..20 {
        let key = random.u32(..40).to_string();
        let value = vec![1; random.usize(..300)];
        let _ = match random.u32(..12) {
            0 => handle.get(&key).is_ok(),
            1 => handle.set(&key, &value).is_ok(),
            2 => handle.set_for(&key, &value, Some(Duration::from_secs(1))).is_ok(),
            3 => handle.add(&key, &value, None).is_ok(),
            4 => handle.remove(&key).is_ok(),
            5 => handle.incr(&key, 1, Some(0), None).is_ok(),
            6 => handle.touch(&key, None).is_ok(),
            7 => handle.get_or_insert_with(&key, None, || value).is_ok(),
            8 => handle.maintain().is_ok(),
            9 => reader.get(&key).is_ok(),
            10 => handle.get_many(&[&key]).is_ok(),
            _ => handle.replace(&key, &value, None).is_ok(),
        };
    }
}

#[test]
fn random_bytes_never_crash_or_hang() {
    let rounds = std::env::var("QUINTET_CORRUPT").ok().and_then(|text| text.parse().ok());
    let place = Place::Name(format!("test-hostile-{}", std::process::id()));
    let mut random = Rng::with_seed(11);
    let mut entered = 0;
    for round in 0..rounds.unwrap_or(300) {
        let _ = TierCache::remove(&place);
        let cache = small().capacity(128 << 10).handles(2).max_value(900).create(&place).unwrap();
        {
            let mut handle = cache.handle().unwrap();
            for number in 0..60u32 {
                handle.set(number.to_string(), vec![2; number as usize * 9]).unwrap();
            }
        }
        drop(cache);
        let path = format!("/dev/shm/quintet-test-hostile-{}", std::process::id());
        let file = std::fs::File::options().write(true).open(path).unwrap();
        let len = file.metadata().unwrap().len();
        for _ in 0..1 + random.usize(..60) {
            // The header's own pages are judged elsewhere.
            let at = (8192 + 16384 + random.u64(..len - 30000)) / 8 * 8;
            let word = match random.u32(..4) {
                0 => random.u64(..),
                1 => random.u64(..200),
                2 => u64::MAX << random.u32(..64),
                _ => random.u64(..200) << 32 | random.u64(..200),
            };
            file.write_at(&word.to_le_bytes(), at).unwrap();
        }
        if let Ok(cache) = TierCache::attach(&place) {
            entered += 1;
            exercise(&cache, &mut random);
        }
        assert!(entered > 0 || round < 10);
    }
    let _ = TierCache::remove(&place);
}
