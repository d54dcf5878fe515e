//! Whether the machine was free for the race: threads that wait for a core measure the wait.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Nanoseconds that racing threads ran, and waited for a core, since the start of the race.
static RAN: AtomicU64 = AtomicU64::new(0);
static WAITED: AtomicU64 = AtomicU64::new(0);

/// To be called by a racing thread before it ends. The kernel counts both for every thread; where
/// it does not tell, the weather counts as fair.
pub(crate) fn report() {
    let (ran, waited) = ran_and_waited();
    // Relaxed: statistics, read when the threads have been joined.
    RAN.fetch_add(ran, Ordering::Relaxed);
    WAITED.fetch_add(waited, Ordering::Relaxed);
}

/// Nanoseconds that the calling thread ran, and waited for a core; zeroes where the system does not
/// tell.
fn ran_and_waited() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let mut numbers = text.split_whitespace().map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// A process with this variable, and those it starts, leave out of their clocks what their threads
/// waited for a core. Two builds that are held against each other do: others may use the machine,
/// and what a thread waits for a lock still counts.
pub(crate) const LEAVES_OUT: &str = "QUINTET_LEAVES_OUT_WAITS";

/// How long the calling thread has waited for a core so far, if that is left out.
pub(crate) fn left_out() -> Duration {
    static LEFT_OUT: OnceLock<bool> = OnceLock::new();
    match LEFT_OUT.get_or_init(|| std::env::var_os(LEAVES_OUT).is_some()) {
        true => Duration::from_nanos(ran_and_waited().1),
        false => Duration::ZERO,
    }
}

/// A sentence if threads waited for more than a twentieth of their time. Threads beyond the cores
/// of the machine wait for each other, which says nothing about the weather.
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
