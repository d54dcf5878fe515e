//! Two processes share one cache by its name: what one has made, the other finds.
//!
//! ```sh
//! cargo run --release -p quintet --features shm --example shared_cache
//! ```

use quintet::cache::{Place, TierCache};
use std::error::Error;
use std::process::Command;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    // The second process is this program again, with the name as its argument.
    if let Some(name) = std::env::args().nth(1) {
        let cache = TierCache::attach(&Place::Name(name))?;
        let greeting = cache.get("greeting")?.ok_or("the other process has put it there")?;
        println!("found: {}", String::from_utf8_lossy(&greeting));
        cache.insert("answer", "42")?;
        return Ok(());
    }
    let name = format!("example-{}", std::process::id());
    let place = Place::Name(name.clone());
    let cache = TierCache::builder().capacity(1 << 20).create(&place)?;
    cache.insert("greeting", "good morning")?;
    let ended = Command::new(std::env::current_exe()?).arg(&name).status();
    let answer = cache.get("answer")?;
    let mut handle = cache.handle()?; // a seat of one's own, for a loop
    handle.insert_for("session", "ada", Some(Duration::from_secs(60)))?;
    TierCache::unlink(&place)?;
    if !ended?.success() {
        return Err("the second process failed".into());
    }
    println!("answered: {}", String::from_utf8_lossy(&answer.ok_or("no answer")?));
    Ok(())
}
