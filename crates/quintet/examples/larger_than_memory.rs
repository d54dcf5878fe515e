//! A data set four times the size of the cache's memory, over LMDB: what each level answers, and
//! how long it takes.
//!
//! ```sh
//! cargo run --release -p quintet --features lmdb --example larger_than_memory [MEMORY in MiB]
//! ```

use quintet::cache::{CacheError, Handle, Place, TierCache};
use quintet::store::{Record, StoreAddress, StoreError};
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

const VALUE: usize = 64;

fn key(number: u64) -> [u8; 16] {
    let mut key = *b"key:............";
    key[4..12].copy_from_slice(&number.to_le_bytes());
    key
}

fn value(number: u64) -> [u8; VALUE] {
    let mut value = [number as u8; VALUE];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
}

fn per(time: Duration, count: u64) -> f64 {
    time.as_nanos() as f64 / count.max(1) as f64
}

/// Inserts the keys of a range, with a pause after each so many where that is given. Returns the
/// time spent inserting.
fn fill(
    handle: &mut Handle<'_>,
    range: std::ops::Range<u64>,
    pause: Option<(u64, Duration)>,
) -> Result<Duration, CacheError> {
    let mut spent = Duration::ZERO;
    let step = pause.map_or(range.end - range.start, |(step, _)| step).max(1);
    let mut from = range.start;
    while from < range.end {
        let to = range.end.min(from + step);
        let begun = Instant::now();
        for number in from..to {
            handle.insert(key(number), value(number))?;
        }
        spent += begun.elapsed();
        if let Some((_, pause)) = pause {
            std::thread::sleep(pause);
        }
        from = to;
    }
    Ok(spent)
}

/// Lookups that the store of this process answered.
fn answered(cache: &TierCache) -> u64 {
    cache.store_state().map_or(0, |state| state.stats.hits)
}

/// Nanoseconds of a record that the store is given without a cache.
fn alone(directory: &Path, memory: usize, many: u64) -> Result<f64, StoreError> {
    let path = directory.join("alone");
    let address = format!("lmdb:{}?size={}MiB&sync=none", path.display(), memory * 16);
    let store = address.parse::<StoreAddress>()?.open()?;
    let (begun, mut number) = (Instant::now(), 0);
    while number < many {
        let of = |number| (key(number), value(number));
        let pairs: Vec<_> = (number..many.min(number + 256)).map(of).collect();
        let records = pairs.iter().map(|(key, value)| Record {
            key,
            version: 1,
            expiry: None,
            value: Some(value),
        });
        store.put(&records.collect::<Vec<_>>(), Duration::from_secs(10))?;
        number += 256;
    }
    Ok(per(begun.elapsed(), many))
}

/// With so many MiB of memory. Returns how many keys memory and the store answered.
pub(crate) fn run(memory: usize) -> Result<[u64; 2], Box<dyn Error>> {
    let name = format!("larger-than-memory-{}", std::process::id());
    let directory = std::env::temp_dir().join(&name);
    let place = Place::Name(name);
    let store = format!("lmdb:{}?size={}MiB&sync=none", directory.display(), memory * 16);
    let cache = TierCache::builder().capacity(memory << 20).store(&store)?.create(&place)?;
    TierCache::unlink(&place)?;
    let mut handle = cache.handle()?;
    let blocks = cache.stats().blocks;
    let many = 4 * blocks;

    // Three quarters of memory: nothing has to leave.
    let room = blocks * 3 / 4;
    let fits = fill(&mut handle, 0..room, None)?;
    let evicting = fill(&mut handle, room..many, None)?;
    // The writer has caught up, and keeps up: pieces of a reserve, with pauses.
    std::thread::sleep(Duration::from_millis(300));
    let before = cache.stats();
    let step = blocks / 32;
    let paced = fill(&mut handle, many..many + blocks, Some((step, Duration::from_millis(100))))?;
    let after = cache.stats();
    let all = many + blocks;

    // Every key, in an order of its own; what the store answered is told by its counter.
    let (mut times, mut counts, mut buffer) = ([Duration::ZERO; 2], [0_u64; 2], Vec::new());
    let mut number = 0;
    for _ in 0..all {
        number = (number + 0x9e37_79b1) % all;
        let known = answered(&cache);
        let begun = Instant::now();
        let found = handle.get_into(key(number), &mut buffer)?;
        let took = begun.elapsed();
        assert!(found && buffer == value(number), "key {number}");
        let level = (answered(&cache) != known) as usize;
        times[level] += took;
        counts[level] += 1;
    }
    let begun = Instant::now();
    let absent = 100_000.min(all);
    for number in all..all + absent {
        assert!(!handle.get_into(key(number), &mut buffer)?);
    }
    let misses = begun.elapsed();
    let stats = cache.stats();
    println!("{all} keys of {VALUE} bytes, {blocks} blocks in memory: every key is found\n");
    println!("| level | answers | of all | ns each |\n|---|---|---|---|");
    for (level, name) in ["memory", "LMDB"].iter().enumerate() {
        let (count, time) = (counts[level], times[level]);
        let share = 100.0 * count as f64 / all as f64;
        println!("| {name} | {count} | {share:.1} % | {:.0} |", per(time, count));
    }
    println!("| neither | {absent} absent keys | | {:.0} |\n", per(misses, absent));
    println!("| inserts | ns each |\n|---|---|");
    println!("| nothing leaves | {:.0} |", per(fits, room));
    println!("| evicting, the store keeps up | {:.0} |", per(paced, blocks));
    println!("| evicting, as fast as it goes | {:.0} |", per(evicting, many - room));
    println!("| LMDB alone, in the same batches | {:.0} |", alone(&directory, memory, many)?);
    println!(
        "\n{} entries left while the store kept up, {} of them put out by an insert; {} writes, \
         {} drops, {} errors in all",
        after.evicted + after.forced - before.evicted - before.forced,
        after.forced - before.forced,
        stats.store_writes,
        stats.store_drops,
        stats.store_errors
    );
    drop(handle);
    drop(cache);
    std::fs::remove_dir_all(directory)?;
    Ok(counts)
}

fn main() -> Result<(), Box<dyn Error>> {
    run(std::env::args().nth(1).map_or(Ok(16), |text| text.parse())?).map(|_| ())
}
