//! What the kernel says happened to a thread.
#![allow(unsafe_code)] // getrusage has no safe form in std

use std::time::{Duration, Instant};

/// Stolen time is published in steps of this length: asking more often tells nothing new, and costs
/// much.
const TICK: Duration = Duration::from_millis(10);

/// Counters that move when a thread is disturbed, as they were when the kernel was last asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    faults_and_switches: (u64, u64),
    stolen: u64,
    /// When `stolen` was read.
    read: Instant,
}

/// What happened to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// Nothing that is known.
    Nothing,
    /// It met pages that were not there, and nothing else.
    Faults,
    /// It did not run all the time.
    Thread,
}

impl Known {
    pub(super) fn now() -> Self {
        Self {
            faults_and_switches: faults_and_switches(),
            stolen: stolen_ticks(),
            read: Instant::now(),
        }
    }

    /// Asks again, for stolen time as well if `ask_stolen` or if the last answer is old. Says which
    /// counter that was asked for moved; of an old answer about stolen time that means little.
    pub(super) fn ask(&mut self, ask_stolen: bool) -> Moved {
        let before = std::mem::replace(&mut self.faults_and_switches, faults_and_switches());
        let (faults, switches) = self.faults_and_switches;
        let mut moved = match (before.0 != faults, before.1 != switches) {
            (_, true) => Moved::Thread,
            (true, false) => Moved::Faults,
            (false, false) => Moved::Nothing,
        };
        if ask_stolen || self.read.elapsed() >= TICK {
            let stolen = std::mem::replace(&mut self.stolen, stolen_ticks());
            self.read = Instant::now();
            if ask_stolen && stolen != self.stolen {
                moved = Moved::Thread;
            }
        }
        moved
    }
}

/// Page faults and context switches of the calling thread so far; zeroes where the system does
/// not tell.
#[cfg(target_os = "linux")]
pub fn faults_and_switches() -> (u64, u64) {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for a write of one `rusage`.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    assert_eq!(result, 0, "getrusage of the calling thread cannot fail");
    // SAFETY: zeroed at first and written by the call; all of its fields are integers.
    let usage = unsafe { usage.assume_init() };
    let sum = |a: libc::c_long, b: libc::c_long| a.unsigned_abs() + b.unsigned_abs();
    (sum(usage.ru_minflt, usage.ru_majflt), sum(usage.ru_nvcsw, usage.ru_nivcsw))
}

/// Page faults and context switches of the calling thread so far; zeroes where the system does
/// not tell.
#[cfg(not(target_os = "linux"))]
pub fn faults_and_switches() -> (u64, u64) {
    (0, 0)
}

/// Clock ticks stolen from the machine so far; 0 where the system does not tell.
fn stolen_ticks() -> u64 {
    parse_stolen(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
}

/// The eighth number of the line of all processors.
fn parse_stolen(stat: &str) -> u64 {
    let numbers = stat.strip_prefix("cpu ").unwrap_or_default().split_ascii_whitespace();
    numbers.into_iter().nth(7).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn faults_and_switches_are_counted_apart() {
        let (faults, switches) = faults_and_switches();
        std::hint::black_box(vec![1u8; 40 << 20]);
        assert!(faults_and_switches().0 > faults);
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(faults_and_switches().1 > switches);
    }

    #[test]
    fn reads_the_stolen_ticks() {
        let stat = "cpu  11 12 13 14 15 16 17 18 19 20\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(parse_stolen(stat), 18);
        assert_eq!(parse_stolen(""), 0);
        assert_eq!(parse_stolen("cpu  1 2"), 0);
    }
}
