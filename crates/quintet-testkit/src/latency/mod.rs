//! Latency: how slow is the slowest operation, apart from what the machine did to it?
//!
//! A context switch, a page fault or time stolen by a hypervisor during an operation says nothing
//! about the operation. [`LatencyRecorder`] sets such samples apart and counts them;
//! [`jitter`] measures what an empty loop suffers in the same time.
//!
//! ```
//! use quintet_testkit::latency::{LatencyRecorder, jitter};
//!
//! let mut recorder = LatencyRecorder::new();
//! for i in 0..1_000u64 {
//!     recorder.measure(|| std::hint::black_box(i * i));
//! }
//! let latency = recorder.finish();
//! assert_eq!(latency.samples() + latency.disturbed(), 1_000);
//! println!("{} ns at worst, jitter {} ns", latency.max_ns(), jitter(latency.elapsed()).max_ns());
//! ```
//!
//! # How a disturbance is attributed
//!
//! Asking the kernel costs more than most operations, so it is asked only around slow ones:
//!
//! 1. Whatever disturbs a thread takes longer than [`SUSPECT`]. So the counters are unchanged
//!    across fast samples and fast gaps between them.
//! 2. After a slow gap the counters are read again before the next sample.
//! 3. After a slow sample the counters are read; if they moved since the last reading, they moved
//!    during this sample.
//!
//! A page fault may be the operation's own: who fills a large new block meets its pages one by one.
//! Such samples are set apart too, since a host may take its time for a page;
//! [`Latency::max_own_ns`] counts them.
//!
//! Stolen time is published for the whole machine in steps of a clock tick, so it is asked for only
//! from [`STEAL_SUSPECT`] on, or when the last answer is older than a tick, and can be missed; the
//! jitter of the empty loop shows what remains.

mod disturbance;

use std::marker::PhantomData;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

pub use disturbance::faults_and_switches;
use disturbance::{Known, Moved};

/// Samples and gaps from here on are checked for a disturbance.
pub const SUSPECT: Duration = Duration::from_nanos(400);

/// Samples from here on are checked for stolen time.
pub const STEAL_SUSPECT: Duration = Duration::from_micros(20);

/// Measures operations of one thread.
#[derive(Debug)]
pub struct LatencyRecorder {
    samples: Histogram<u64>,
    faulted: Histogram<u64>,
    disturbed: Histogram<u64>,
    known: Known,
    started: Instant,
    last: Instant,
    /// The counters are those of the thread that made the recorder.
    own_thread: PhantomData<*const ()>,
}

/// What was measured; results of several threads add up.
#[derive(Clone, Debug)]
pub struct Latency {
    samples: Histogram<u64>,
    /// Set apart for page faults alone.
    faulted: Histogram<u64>,
    disturbed: Histogram<u64>,
    elapsed: Duration,
}

impl Default for LatencyRecorder {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyRecorder {
    /// A recorder for the calling thread.
    pub fn new() -> Self {
        let known = Known::now();
        let now = Instant::now();
        Self {
            samples: histogram(),
            faulted: histogram(),
            disturbed: histogram(),
            known,
            started: now,
            last: now,
            own_thread: PhantomData,
        }
    }

    /// Runs an operation and records how long it took.
    #[inline]
    pub fn measure<R>(&mut self, operation: impl FnOnce() -> R) -> R {
        let mut start = Instant::now();
        if start - self.last >= SUSPECT {
            self.known.ask(false);
            start = Instant::now();
        }
        let result = operation();
        self.last = Instant::now();
        self.record(self.last - start);
        result
    }

    /// Ends the measurement.
    pub fn finish(self) -> Latency {
        let elapsed = self.last - self.started;
        let Self { samples, faulted, disturbed, .. } = self;
        Latency { samples, faulted, disturbed, elapsed }
    }

    #[inline]
    fn record(&mut self, took: Duration) {
        let moved = if took >= SUSPECT { self.moved_since(took) } else { Moved::Nothing };
        let into = match moved {
            Moved::Nothing => &mut self.samples,
            Moved::Faults => &mut self.faulted,
            Moved::Thread => &mut self.disturbed,
        };
        into.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// What disturbed a slow sample. The next sample's gap includes this question.
    #[cold]
    fn moved_since(&mut self, took: Duration) -> Moved {
        let moved = self.known.ask(took >= STEAL_SUSPECT);
        self.last = Instant::now();
        moved
    }
}

impl Latency {
    /// Undisturbed samples.
    pub fn samples(&self) -> u64 {
        self.samples.len()
    }

    /// Samples with a context switch, a page fault or stolen time.
    pub fn disturbed(&self) -> u64 {
        self.faulted.len() + self.disturbed.len()
    }

    /// The latency below which the share `quantile` of the undisturbed samples lies.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        self.samples.value_at_quantile(quantile)
    }

    /// The slowest undisturbed sample, to three digits.
    pub fn max_ns(&self) -> u64 {
        self.samples.max()
    }

    /// The slowest sample in which the thread ran all the time, page faults or not, to three
    /// digits.
    pub fn max_own_ns(&self) -> u64 {
        self.samples.max().max(self.faulted.max())
    }

    /// The slowest sample of all, to three digits.
    pub fn max_disturbed_ns(&self) -> u64 {
        self.max_own_ns().max(self.disturbed.max())
    }

    /// How long the measurement took.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Adds what another thread measured at the same time.
    pub fn merge(&mut self, other: &Latency) {
        self.samples.add(&other.samples).expect("equal bounds");
        self.faulted.add(&other.faulted).expect("equal bounds");
        self.disturbed.add(&other.disturbed).expect("equal bounds");
        self.elapsed = self.elapsed.max(other.elapsed);
    }
}

/// Measures an empty loop for `length`: its slowest turn is what no operation can stay below.
pub fn jitter(length: Duration) -> Latency {
    let mut recorder = LatencyRecorder::new();
    let start = recorder.started;
    loop {
        recorder.measure(|| ());
        if recorder.last - start >= length {
            return recorder.finish();
        }
    }
}

/// Nanoseconds up to 100 seconds, to three digits.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 100_000_000_000, 3).expect("valid bounds")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    fn spin(length: Duration) {
        let start = Instant::now();
        while start.elapsed() < length {}
    }

    #[test]
    fn a_slow_operation_is_a_sample() {
        // Another process may take the core during one of them, hardly during all.
        let mut recorder = LatencyRecorder::new();
        for _ in 0..200 {
            recorder.measure(|| spin(Duration::from_micros(50)));
        }
        let latency = recorder.finish();
        assert_eq!(latency.samples() + latency.disturbed(), 200);
        assert!(latency.samples() > 100, "{}", latency.samples());
        assert!(latency.quantile_ns(0.5) >= 49_900, "{}", latency.quantile_ns(0.5));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_sleep_is_set_apart() {
        let mut recorder = LatencyRecorder::new();
        for _ in 0..5 {
            recorder.measure(|| std::thread::sleep(Duration::from_millis(2)));
        }
        let latency = recorder.finish();
        assert_eq!((latency.samples(), latency.disturbed()), (0, 5));
        assert!(latency.max_disturbed_ns() >= 2_000_000);
        assert_eq!((latency.max_ns(), latency.max_own_ns()), (0, 0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn page_faults_are_set_apart() {
        let mut recorder = LatencyRecorder::new();
        for _ in 0..3 {
            // Larger than what any allocator keeps for reuse.
            recorder.measure(|| black_box(vec![1u8; 40 << 20]));
        }
        let latency = recorder.finish();
        assert_eq!((latency.disturbed(), latency.max_ns()), (3, 0));
        assert!(latency.max_own_ns() <= latency.max_disturbed_ns());
    }

    /// Most of a rehash is its own work, although the new block has pages to be met.
    #[cfg(target_os = "linux")]
    #[test]
    fn page_faults_do_not_hide_an_operation() {
        let mut recorder = LatencyRecorder::new();
        for _ in 0..200 {
            recorder.measure(|| {
                // Larger than what any allocator keeps for reuse; one page of it is met.
                let mut block = black_box(vec![0u8; 40 << 20]);
                block[20 << 20] = 1;
                black_box(&block);
                spin(Duration::from_micros(50));
            });
        }
        // Another process may take the core during some of them, hardly during all.
        let latency = recorder.finish();
        assert_eq!((latency.samples(), latency.max_ns()), (0, 0));
        assert!(latency.max_own_ns() >= 49_000, "{}", latency.max_own_ns());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_happens_between_samples_is_nobodys_fault() {
        let mut recorder = LatencyRecorder::new();
        for _ in 0..50 {
            std::thread::sleep(Duration::from_micros(100));
            black_box(vec![1u8; 1 << 20]);
            recorder.measure(|| spin(Duration::from_micros(5)));
        }
        let latency = recorder.finish();
        assert!(latency.samples() > 40, "{}", latency.samples());
    }

    #[test]
    fn threads_add_up() {
        let measure = || {
            let mut recorder = LatencyRecorder::new();
            (0..100).for_each(|_| recorder.measure(|| ()));
            recorder.finish()
        };
        let mut all = measure();
        all.merge(&std::thread::spawn(measure).join().unwrap());
        assert_eq!(all.samples() + all.disturbed(), 200);
    }

    #[test]
    fn the_empty_loop_runs_as_long_as_asked() {
        let empty = jitter(Duration::from_millis(20));
        assert!(empty.elapsed() >= Duration::from_millis(20));
        assert!(empty.samples() > 1_000);
    }
}
