//! Random bytes anywhere in a segment: errors, misses or timeouts, never a crash or an endless
//! wait.

use super::world::{SMALL, key};
use crate::tier_cache::step::{Fate, with_fate};
use crate::tier_cache::wait::Wait;
use crate::tier_cache::*;
use quintet_testkit::Rng;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Uses everything the map offers. That it returns matters, and that a value it returns was stored.
fn exercise(shared: &SharedMap, random: &mut Rng) {
    let map = shared.map().verifying();
    // Mostly without patience: a recovery word that names a living process is waited for.
    let patience = if random.u32(..256) == 0 { DEFAULT_TIMEOUT } else { Duration::ZERO };
    let _ = map.recover_dead(Wait::new(patience));
    let _ = map.check();
    let mut reader = map.reader();
    reader.set_timeout(Duration::ZERO);
    let Ok(mut handle) = map.handle() else { return };
    handle.set_timeout(Duration::ZERO);
    handle.set_tick(random.u32(..));
    for _ in 0..12 {
        let Ok(input) = InputHash::new(random.u32(1..12), random.u32(..8)) else { continue };
        let _ = match random.u32(..4) {
            0 => handle.add(input, 1).map(|_| ()),
            1 => handle.update(input, 2).map(|_| ()),
            2 => handle.remove(input),
            _ => handle.get(input).map(|found| credible(input, found)),
        };
        let _ = reader.get(input).map(|found| credible(input, found));
    }
    for position in 0..map.geometry().buckets {
        let _ = (map.cell_state(0, position), map.memory().tbits(1, position as usize));
    }
}

/// A hit has a value that somebody stored under this key: the number it was filled with, or what
/// `exercise` stores.
fn credible(input: InputHash, found: Option<u64>) {
    let Some(value) = found else { return };
    let first =
        (1..30).any(|number| key(number, number * 5 % 8) == input && value == number as u64);
    assert!(first || value == 1 || value == 2, "{input:?} has {value}");
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// The bytes of a map with some entries, and three processes that died in mid-operation: each at
/// its `stop`-th point, or with its bucket held if it has fewer.
fn image(stop: usize) -> Vec<u8> {
    let sealed = SharedMap::create_sealed(SMALL).unwrap();
    let mut handle = sealed.map().handle().unwrap();
    for number in 1..30 {
        let _ = handle.add(key(number, number * 5 % 8), number as u64);
    }
    drop(handle);
    let dying: [fn(&mut Handle<'_>); 3] = [
        |handle| _ = handle.add(key(2, 1), 1),
        |handle| _ = handle.update(key(4, 4), 2),
        |handle| _ = handle.remove(key(6, 6)),
    ];
    for operation in dying {
        let process = SharedMap::attach_sealed(sealed.inheritable().unwrap()).unwrap();
        let mut handle = process.map().handle().unwrap();
        handle.set_timeout(Duration::ZERO);
        with_fate(Fate::Stop(stop), None, || operation(&mut handle));
        std::mem::forget(handle);
    }
    let file = std::fs::File::from(sealed.inheritable().unwrap());
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// `QUINTET_CORRUPT` segments, drawn from `QUINTET_CORRUPT_SEED`.
#[test]
fn random_bytes_never_crash_or_hang() {
    let rounds = from_environment("QUINTET_CORRUPT").unwrap_or(20_000) as usize;
    let mut random = Rng::with_seed(from_environment("QUINTET_CORRUPT_SEED").unwrap_or(17));
    let images: Vec<_> = (0..40).map(image).collect();
    let sealed = SharedMap::create_sealed(SMALL).unwrap();
    let file = std::fs::File::from(sealed.inheritable().unwrap());
    let bytes = images[0].len();
    let mut bad = vec![0; bytes];
    let (mut attached, mut longest) = (0, Duration::ZERO);
    for round in 0..rounds {
        bad.copy_from_slice(&images[random.usize(..images.len())]);
        // The header, the slots of processes, or anywhere.
        let part = match round % 8 {
            0 => 0..512,
            1 => 4096..20_480,
            _ => 512..bytes,
        };
        for _ in 0..random.usize(1..24) {
            let at = random.usize(part.clone());
            let size = random.usize(1..9).min(bytes - at);
            match random.u32(..4) {
                0 => bad[at..at + size].fill(0),
                1 => bad[at..at + size].fill(0xff),
                2 => {
                    let from = random.usize(20_480..bytes - 16);
                    bad.copy_within(from..from + size, at);
                }
                _ => bad[at..at + size].iter_mut().for_each(|byte| *byte = random.u8(..)),
            }
        }
        file.write_all_at(&bad, 0).unwrap();
        let start = Instant::now();
        if let Ok(shared) = SharedMap::attach_sealed(sealed.inheritable().unwrap()) {
            exercise(&shared, &mut random);
            attached += 1;
        }
        longest = longest.max(start.elapsed());
    }
    println!("{rounds} corrupted segments, {attached} attached, longest {longest:?}");
    assert!(attached > rounds / 2);
}
