//! Processes that miss the same key at the same time.

use crate::cache::{PATIENCE, builder, empty, name, value};
use crate::server::Server;
use quintet::cache::{Place, TierCache};
use quintet_testkit::crash::{Child, report, task};
use std::time::Duration;

const PROCESSES: usize = 4;
const KEYS: u64 = 5;

/// Looks each key up, whenever it is told to.
#[test]
fn shared_child() {
    let Some(named) = task() else { return };
    let cache = TierCache::attach(&Place::Name(named)).unwrap();
    let mut handle = cache.handle().unwrap();
    handle.set_timeout(PATIENCE);
    report("there");
    for line in std::io::stdin().lines() {
        let key = line.unwrap().parse().unwrap();
        report("asks");
        assert_eq!(handle.get(name(key)).unwrap(), Some(value(key, key)));
        report("found");
    }
}

/// Of all processes one asks the store, and the others find in memory what it found. The server
/// stands still until everybody has missed.
#[test]
fn of_all_who_miss_at_the_same_time_one_asks_the_store() {
    let Some(server) = Server::durable("shared") else { return };
    let named = format!("quintet-test-shared-{}", std::process::id());
    let place = Place::Name(named.clone());
    let address = format!("{}?timeout=60s", server.address());
    let cache = builder(&address).keep_found().create(&place).unwrap();
    for key in 0..KEYS {
        cache.insert(name(key), value(key, key)).unwrap();
    }
    empty(&cache);
    let child = |_| Child::of_test("shared::shared_child", &named).unwrap();
    let mut children: Vec<_> = (0..PROCESSES).map(child).collect();
    let hear = |children: &[Child], word: &str| {
        for child in children {
            assert_eq!(child.line(PATIENCE).as_deref(), Some(word));
        }
    };
    hear(&children, "there");
    TierCache::unlink(&place).unwrap();
    for key in 0..KEYS {
        server.signal(libc::SIGSTOP);
        children.iter_mut().for_each(|child| child.tell(&key.to_string()));
        hear(&children, "asks");
        std::thread::sleep(Duration::from_millis(50));
        server.signal(libc::SIGCONT);
        hear(&children, "found");
    }
    let stats = cache.stats();
    assert_eq!((stats.store_hits, stats.store_misses), (KEYS, 0), "{stats:?}");
}
