//! Whether the machine was free for the race: threads that wait for a core measure the wait.

use std::sync::atomic::{AtomicU64, Ordering};

/// Nanoseconds that racing threads ran, and waited for a core, since the start of the race.
static RAN: AtomicU64 = AtomicU64::new(0);
static WAITED: AtomicU64 = AtomicU64::new(0);

/// To be called by a racing thread before it ends. The kernel counts both for every thread; where
/// it does not tell, the weather counts as fair.
pub(crate) fn report() {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let mut numbers = text.split_whitespace().filter_map(|number| number.parse::<u64>().ok());
    if let (Some(ran), Some(waited)) = (numbers.next(), numbers.next()) {
        // Relaxed: statistics, read when the threads have been joined.
        RAN.fetch_add(ran, Ordering::Relaxed);
        WAITED.fetch_add(waited, Ordering::Relaxed);
    }
}

/// A sentence if threads waited for more than a twentieth of their time. Threads beyond the cores of
/// the machine wait for each other, which says nothing about the weather.
pub(crate) fn warning(most_threads: usize) -> Option<String> {
    let (ran, waited) = (RAN.load(Ordering::Relaxed), WAITED.load(Ordering::Relaxed));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = waited as f64 / (ran + waited).max(1) as f64;
    (share > 0.05 && most_threads <= cores).then(|| {
        format!(
            "this machine was busy: the racing threads waited for a core {:.0} % of their time; \
             figures are low, and locks look better than they are",
            share * 100.0
        )
    })
}
