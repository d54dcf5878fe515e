//! The clock of a round, and its instruction counter.
//!
//! Where instructions are counted the program runs under callgrind, which is told to collect
//! exactly where the clock would run. It is told by a sequence of instructions that change nothing:
//! natively they are a few rotations that cancel.
//!
//! Unsafe is allowed here because that sequence has no safe form.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Whether this process counts instructions.
static COUNTS: AtomicBool = AtomicBool::new(false);

/// From now on every clock of this process switches the counter as well.
pub(crate) fn count_instructions() {
    // Relaxed: said before the threads that read it are started.
    COUNTS.store(true, Ordering::Relaxed);
}

/// Runs `work`, and says how long it took.
#[inline(always)]
pub(crate) fn clocked<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let counts = COUNTS.load(Ordering::Relaxed);
    let start = Instant::now();
    if counts {
        toggle();
    }
    let result = work();
    if counts {
        toggle();
    }
    (result, start.elapsed())
}

/// Callgrind's request to start or stop collecting events of the calling thread.
#[cfg(target_arch = "x86_64")]
const TOGGLE_COLLECT: usize = 0x4354_0002;

#[cfg(target_arch = "x86_64")]
#[cold]
fn toggle() {
    let request = [TOGGLE_COLLECT, 0, 0, 0, 0, 0];
    // SAFETY: the rotations of the register cancel and the exchange is of a register with itself;
    // valgrind, which knows the sequence, reads the six words of the request and answers in the
    // other register.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") request.as_ptr(),
            inout("rdx") 0usize => _,
            inout("rdi") 0usize => _,
        );
    }
}

/// Elsewhere nothing is counted.
#[cfg(not(target_arch = "x86_64"))]
fn toggle() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_changes_no_result() {
        count_instructions();
        assert_eq!(clocked(|| 6 * 7).0, 42);
    }
}
