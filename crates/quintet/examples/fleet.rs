//! Two machines of a fleet share a Redis Cluster: each has a cache in memory of its own, and finds
//! in the store what the other put there.
//!
//! ```sh
//! cargo run --release -p quintet --features redis --example fleet -- \
//!     redis://10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379
//! ```
//!
//! Both run in this process here, with a segment each. Of two writes to a key the later one wins in
//! the store; a machine goes on to serve what it has in memory until that expires or leaves, so
//! give values that others change a time to live.

use quintet::cache::{CacheError, TierCache};
use std::error::Error;
use std::time::Duration;

const SESSIONS: u64 = 20_000;

fn key(number: u64) -> String {
    format!("session:{number}")
}

fn session(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(16)
}

/// A machine's cache: small, so that most sessions are in the store only.
fn machine(store: &str) -> Result<TierCache, Box<dyn Error>> {
    let builder = TierCache::builder().capacity(1 << 20).store(store)?;
    // What other machines put there is found, and kept where there is room.
    Ok(builder.adopt_store().keep_found().create_sealed()?)
}

/// Puts out what is in memory, so that the others see it: a machine does that before it is shut
/// down.
fn hand_over(cache: &TierCache) -> Result<u64, CacheError> {
    let mut handle = cache.handle()?;
    let mut count = 0;
    loop {
        match handle.evict_oldest(256)?.len() {
            0 => return Ok(count),
            more => count += more as u64,
        }
    }
}

/// Returns how many sessions the second machine found in the store.
pub(crate) fn run(store: &str) -> Result<u64, Box<dyn Error>> {
    let (first, second) = (machine(store)?, machine(store)?);
    let mut handle = first.handle()?;
    handle.set_timeout(Duration::from_secs(30));
    for number in 0..SESSIONS {
        handle.insert_for(key(number), session(number), Some(Duration::from_secs(600)))?;
    }
    let handed = hand_over(&first)?;
    for number in 0..SESSIONS {
        assert_eq!(second.get(key(number))?, Some(session(number)), "session {number}");
    }
    let found = second.stats().store_hits;
    println!(
        "{SESSIONS} sessions: {} put by the first machine, {handed} of them at its end; {found} \
         found by the second in the store",
        first.stats().store_writes
    );
    Ok(found)
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(store) = std::env::args().nth(1) else {
        println!("give the address of a server or a cluster: redis://HOST:PORT[,HOST:PORT...]");
        return Ok(());
    };
    run(&store).map(|_| ())
}
