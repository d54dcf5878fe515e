//! Random bytes anywhere in a segment: errors, misses or timeouts, never a crash or an endless wait.

use super::world::{SMALL, key};
use crate::tier_cache::*;
use quintet_testkit::Rng;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Uses everything the map offers. Only that it returns matters.
fn exercise(shared: &SharedMap, random: &mut Rng) {
    let map = shared.map();
    let _ = map.recover();
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
            _ => handle.get(input).map(|_| ()),
        };
        let _ = reader.get(input);
    }
    for position in 0..map.geometry().buckets {
        let _ = (map.cell_state(0, position), map.memory().tbits(1, position as usize));
    }
}

#[test]
fn random_bytes_never_crash_or_hang() {
    let rounds = std::env::var("QUINTET_CORRUPT").ok().and_then(|text| text.parse().ok());
    let rounds: usize = rounds.unwrap_or(20_000);
    let sealed = SharedMap::create_sealed(SMALL).unwrap();
    let mut handle = sealed.map().handle().unwrap();
    for number in 1..30 {
        let _ = handle.add(key(number, number * 5 % 8), number as u64);
    }
    // One operation is left open, so that intents are part of the game.
    let prepared = handle.prepare(key(77, 1)).unwrap();
    std::mem::forget(handle.commit(prepared, 7).unwrap());
    std::mem::forget(handle);
    let file = std::fs::File::from(sealed.inheritable().unwrap());
    let bytes = file.metadata().unwrap().len() as usize;
    let mut good = vec![0; bytes];
    file.read_exact_at(&mut good, 0).unwrap();
    let mut random = Rng::with_seed(17);
    let mut attached = 0;
    for round in 0..rounds {
        file.write_all_at(&good, 0).unwrap();
        let header = round % 8 == 0;
        for _ in 0..random.usize(1..24) {
            let at = if header { random.usize(..512) } else { random.usize(20_480..bytes) };
            let size = random.usize(1..9).min(bytes - at);
            let mut noise: Vec<u8> = (0..size).map(|_| random.u8(..)).collect();
            match random.u32(..4) {
                0 => noise.fill(0),
                1 => noise.fill(0xff),
                2 => {
                    file.read_exact_at(&mut noise, random.usize(20_480..bytes - 16) as u64).unwrap()
                }
                _ => {}
            }
            file.write_all_at(&noise, at as u64).unwrap();
        }
        if let Ok(shared) = SharedMap::attach_sealed(sealed.inheritable().unwrap()) {
            exercise(&shared, &mut random);
            attached += 1;
        }
    }
    println!("{rounds} corrupted segments, {attached} attached");
    assert!(attached > rounds / 2);
}
