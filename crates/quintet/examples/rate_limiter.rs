//! At most so many requests of a client per second: one word per client, and no lock.
//!
//! ```sh
//! cargo run --release -p quintet --example rate_limiter
//! ```

use quintet::{Compute, WordMap};
use std::sync::atomic::{AtomicU32, Ordering};

/// Seconds in the upper half of a word, requests in that second in the lower.
struct Limiter {
    clients: WordMap<u64, u64>,
    most: u32,
}

impl Limiter {
    fn allows(&self, client: u64, second: u32) -> bool {
        let window = u64::from(second) << 32;
        let done = self.clients.compute(client, |seen| match seen {
            Some(seen) if seen >> 32 != u64::from(second) => Compute::Insert(window + 1),
            Some(seen) if seen as u32 >= self.most => Compute::Keep,
            Some(seen) => Compute::Insert(seen + 1),
            None => Compute::Insert(window + 1),
        });
        // Kept: the second is used up.
        done.before != done.after
    }

    /// Forgets who has not come for a while: memory follows the clients that do.
    fn tidy(&self, second: u32) {
        self.clients.retain(|_, seen| (seen >> 32) as u32 + 60 > second);
    }
}

fn main() {
    let limiter = Limiter { clients: WordMap::new(), most: 100 };
    let allowed = AtomicU32::new(0);
    for second in 0..3 {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let passed = (0..1_000).filter(|_| limiter.allows(7, second)).count();
                    allowed.fetch_add(passed as u32, Ordering::Relaxed);
                });
            }
        });
    }
    println!("{} of 12000 requests passed in 3 seconds", allowed.load(Ordering::Relaxed));
    assert_eq!(allowed.into_inner(), 300);
    limiter.tidy(100);
    assert!(limiter.clients.is_empty());
}
