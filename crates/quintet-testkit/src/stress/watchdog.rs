//! Ends a process that hangs, with a message.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Aborts the process if it is not dropped in time.
#[derive(Debug)]
pub struct Watchdog {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Runs `work`; aborts the process with a message naming `what` if that takes longer than `limit`.
pub fn within<R>(what: &str, limit: Duration, work: impl FnOnce() -> R) -> R {
    let _watchdog = Watchdog::start(what, limit);
    work()
}

impl Watchdog {
    /// Starts watching. A hung thread cannot be unwound, so the whole process ends.
    pub fn start(what: &str, limit: Duration) -> Self {
        let message = format!("{what} hangs: not done after {limit:?}, aborting\n");
        Self::start_with(limit, move || {
            // Straight to standard error: a test's captured output dies with the process.
            let _ = std::io::stderr().write_all(message.as_bytes());
            std::process::abort()
        })
    }

    fn start_with(limit: Duration, bite: impl FnOnce() + Send + 'static) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&done);
        let watch = move || {
            let end = Instant::now() + limit;
            // ORDERING: Acquire, so that leaving comes after all the watched work; partner is the
            // store in `drop`.
            while !seen.load(Ordering::Acquire) {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return bite();
                }
                thread::park_timeout(left);
            }
        };
        let builder = thread::Builder::new().name("watchdog".to_owned());
        let thread = builder.spawn(watch).expect("a thread can be started");
        Self { done, thread: Some(thread) }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // ORDERING: partner is the load in `start_with`.
        self.done.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bitten(limit: Duration, work: impl FnOnce()) -> bool {
        let bitten = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&bitten);
        let watchdog = Watchdog::start_with(limit, move || flag.store(true, Ordering::Release));
        work();
        drop(watchdog);
        bitten.load(Ordering::Acquire)
    }

    #[test]
    fn bites_what_hangs_and_nothing_else() {
        assert!(bitten(Duration::from_millis(20), || thread::sleep(Duration::from_millis(100))));
        assert!(!bitten(Duration::from_secs(60), || ()));
    }

    #[test]
    fn hands_the_result_through() {
        assert_eq!(within("a sum", Duration::from_secs(60), || 1 + 1), 2);
    }
}
