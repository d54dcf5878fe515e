//! Requests read a configuration all the time, and an operator changes it now and then: each
//! request sees one version, whole, for as long as it works with it.
//!
//! ```sh
//! cargo run --release -p quintet --example hot_configuration
//! ```

use quintet::TwinMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

static ROUTES: TwinMap<&str, u16> = TwinMap::new();
static DONE: AtomicBool = AtomicBool::new(false);
static SERVED: AtomicU64 = AtomicU64::new(0);

/// Two ports of one release: a request that saw one of each would be served by two releases.
fn serve() {
    let routes = ROUTES.handle();
    while !DONE.load(Ordering::Relaxed) {
        let version = routes.pin();
        assert_eq!(version["/api"] + 1, version["/admin"], "half of a release");
        SERVED.fetch_add(1, Ordering::Relaxed);
    }
}

fn main() {
    ROUTES.batch(|write| {
        write.insert("/api", 8000);
        write.insert("/admin", 8001);
    });
    std::thread::scope(|scope| {
        scope.spawn(serve);
        scope.spawn(serve);
        for release in 1..=50 {
            std::thread::sleep(Duration::from_millis(2));
            // Both at one moment; no request waits for it.
            ROUTES.batch(|write| {
                write.insert("/api", 8000 + 2 * release);
                write.insert("/admin", 8001 + 2 * release);
            });
        }
        DONE.store(true, Ordering::Relaxed);
    });
    let served = SERVED.load(Ordering::Relaxed);
    println!("{served} requests, 50 releases, none half seen");
    assert_eq!(ROUTES.get("/admin").as_deref(), Some(&8101));
}
