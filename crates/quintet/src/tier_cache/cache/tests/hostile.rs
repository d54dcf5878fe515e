//! Random bytes anywhere in a segment: errors, misses or timeouts, never a crash or an endless
//! wait.

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
    for _ in 0..40 {
        let key = random.u32(..40).to_string();
        let value = vec![1; random.usize(..300)];
        let _ = match random.u32(..23) {
            0 => handle.get(&key).is_ok(),
            1 => handle.insert(&key, &value).is_ok(),
            2 => handle.insert_for(&key, &value, Some(Duration::from_secs(1))).is_ok(),
            3 => handle.insert_new(&key, &value, None).is_ok(),
            4 => handle.remove(&key).is_ok(),
            5 => handle.incr(&key, 1, Some(0), None).is_ok(),
            6 => handle.touch(&key, None).is_ok(),
            7 => handle.get_or_compute(&key, None, || value).is_ok(),
            8 => handle.maintain().is_ok(),
            9 => reader.get(&key).is_ok(),
            10 => handle.get_many(&[&key]).is_ok(),
            11 => handle
                .lease(&key)
                .is_ok_and(|lease| lease.is_some_and(|lease| !lease.to_vec().is_empty())),
            12 => match handle.get_versioned(&key) {
                Ok(Some((_, version))) => {
                    handle.compare_exchange(&key, version, &value, None).is_ok()
                }
                _ => false,
            },
            13 => handle.evict_oldest(2).is_ok(),
            14 => handle.evict_unused(Duration::ZERO, 2).is_ok(),
            15 => handle.evict_bucket_of(&key, 2).is_ok(),
            16 => handle.insert_many(&[(&key, &value)], None).is_ok(),
            17 => handle.peek(&key).is_ok(),
            18 => handle.ttl(&key).is_ok(),
            19 => handle.decr(&key, 1, None, None).is_ok(),
            20 => cache.namespace(&key).is_ok_and(|space| cache.clear_namespace(space).is_ok()),
            21 => random.u32(..20) == 0 && cache.clear().is_ok(),
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
        let _ = TierCache::unlink(&place);
        let builder = small().capacity(128 << 10).handles(2).max_value(900);
        let builder = if round % 2 == 0 { builder } else { builder.leases() };
        let builder = builder.policy(Policy::ALL[round % 3]);
        let cache = builder.create(&place).unwrap();
        {
            let mut handle = cache.handle().unwrap();
            for number in 0..60u32 {
                handle.insert(number.to_string(), vec![2; number as usize * 9]).unwrap();
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
        if let Ok(mut cache) = TierCache::attach(&place) {
            entered += 1;
            if round % 5 == 0 {
                cache.set_sink(|_: &[Departed]| Ok(()));
            }
            exercise(&cache, &mut random);
        }
        assert!(entered > 0 || round < 10);
    }
    let _ = TierCache::unlink(&place);
}
