//! Workers of a web server, a process each, share one cache in front of LMDB: a page is rendered
//! once for all of them, and pages that no longer fit in memory are found on disk.
//!
//! ```sh
//! cargo run --release -p quintet --features lmdb --example web_workers
//! ```

use quintet::cache::{CacheError, Place, TierCache};
use std::error::Error;
use std::process::{Child, Command};
use std::time::Duration;

const WORKERS: u64 = 4;
pub(crate) const PAGES: u64 = 4_000;

/// What takes long, and should be done once.
fn render(page: u64) -> Vec<u8> {
    format!("<h1>Page {page}</h1>").into_bytes().repeat(16)
}

/// A worker attaches by the name alone: the segment knows its store. Returns how many pages it
/// rendered.
pub(crate) fn serve(place: &Place, worker: u64) -> Result<u64, CacheError> {
    let cache =
        TierCache::attach(place).map_err(|error| CacheError::Unjoined(error.to_string()))?;
    let mut handle = cache.handle()?;
    handle.set_timeout(Duration::from_secs(10));
    let mut rendered = 0;
    for turn in 0..PAGES {
        // Each begins elsewhere, and all of them want every page.
        let page = (turn + worker * PAGES / WORKERS) % PAGES;
        let body = handle.get_or_compute(format!("/page/{page}"), None, || {
            rendered += 1;
            render(page)
        })?;
        assert_eq!(body, render(page));
    }
    Ok(rendered)
}

/// `start` starts a worker for the cache of this name. Returns how many pages were rendered.
pub(crate) fn run(
    start: impl Fn(&str, u64) -> std::io::Result<Child>,
) -> Result<u64, Box<dyn Error>> {
    let name = format!("web-workers-{}", std::process::id());
    let place = Place::Name(name.clone());
    let directory = std::env::temp_dir().join(&name);
    let store = format!("lmdb:{}?size=64MiB", directory.display());
    let cache = TierCache::builder().capacity(1 << 20).store(&store)?.create(&place)?;
    let workers = (0..WORKERS).map(|worker| start(&name, worker)).collect::<Result<Vec<_>, _>>()?;
    let ended: Vec<_> = workers.into_iter().map(|mut worker| worker.wait()).collect();
    TierCache::unlink(&place)?;
    let stats = cache.stats();
    println!(
        "{} pages rendered for {} requests; {} answered by the store, {} put there",
        stats.computed,
        WORKERS * PAGES,
        stats.store_hits,
        stats.store_writes
    );
    drop(cache);
    std::fs::remove_dir_all(directory)?;
    for status in ended {
        if !status?.success() {
            return Err("a worker failed".into());
        }
    }
    Ok(stats.computed)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    if let (Some(name), Some(worker)) = (arguments.next(), arguments.next()) {
        let worker: u64 = worker.parse()?;
        println!("worker {worker} rendered {}", serve(&Place::Name(name), worker)?);
        return Ok(());
    }
    let start = |name: &str, worker: u64| {
        Command::new(std::env::current_exe()?).args([name, &worker.to_string()]).spawn()
    };
    run(start).map(|_| ())
}
