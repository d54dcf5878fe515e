//! The clock that all recorders of one history share.
#![allow(unsafe_code)] // a serializing instruction beside the time stamp; the machine's clock

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Which clock stamps a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ClockKind {
    /// One shared counter. Every stamp is distinct, so histories are as sharp as they can be. But
    /// every operation passes through two locked instructions on one line, which order the threads'
    /// memory accesses: bugs that need weak memory or a full store buffer stay hidden, and more
    /// threads contend.
    #[default]
    Counter,
    /// The monotonic clock. Threads share nothing, so nothing is ordered by measuring. Equal
    /// stamps count as overlap. An operation whose effect is still in a store buffer when it
    /// returns can be seen as late, which the counter would hide.
    Time,
    /// The machine's monotonic clock, whose stamps mean the same in all processes. Otherwise like
    /// [`ClockKind::Time`].
    #[cfg(unix)]
    Machine,
}

/// A clock shared by the recorders of one history.
#[derive(Debug)]
pub struct Clock {
    source: Source,
}

#[derive(Debug)]
enum Source {
    Counter(Line),
    Time(Instant),
    #[cfg(unix)]
    Machine,
}

/// The counter alone on its cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line(AtomicU64);

impl Clock {
    /// A clock of the given kind.
    pub fn new(kind: ClockKind) -> Self {
        let source = match kind {
            ClockKind::Counter => Source::Counter(Line::default()),
            ClockKind::Time => Source::Time(Instant::now()),
            #[cfg(unix)]
            ClockKind::Machine => Source::Machine,
        };
        Self { source }
    }

    /// A shared counter.
    pub fn counter() -> Self {
        Self::new(ClockKind::Counter)
    }

    /// The time. Later on one thread is never smaller; a call between two stamps happened between
    /// them.
    #[inline]
    pub fn now(&self) -> u64 {
        match &self.source {
            // ORDERING: as an acquire the stamp comes before what the thread does next, as a
            // release after what it did before; its partners are all other stamps.
            Source::Counter(line) => line.0.fetch_add(1, Ordering::AcqRel),
            Source::Time(start) => {
                settle();
                let elapsed = start.elapsed();
                settle();
                u64::try_from(elapsed.as_nanos()).expect("a history of less than 500 years")
            }
            #[cfg(unix)]
            Source::Machine => {
                settle();
                let now = machine_ns();
                settle();
                now
            }
        }
    }
}

/// Nanoseconds since a moment that all processes agree on.
#[cfg(unix)]
fn machine_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure outlives the call, which fills it in.
    let told = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    assert_eq!(told, 0, "there is a monotonic clock");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Finishes earlier loads and instructions before later ones start, without touching memory.
#[inline]
fn settle() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: `lfence` has no operands and changes neither registers, flags nor memory.
    unsafe {
        std::arch::asm!("lfence", options(nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: `isb` has no operands and changes neither registers, flags nor memory.
    unsafe {
        std::arch::asm!("isb", options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    // ORDERING: stands in for the instruction; it has no partner.
    std::sync::atomic::fence(Ordering::SeqCst);
}
