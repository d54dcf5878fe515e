//! Has this process been forked, and which thread survived?
//!
//! A forked child has one thread, the one that called fork, and a copy of all memory. The hook does
//! the least a signal handler could: it counts, and remembers the survivor.

use std::sync::atomic::{AtomicUsize, Ordering};

static FORKS: AtomicUsize = AtomicUsize::new(0);
static SURVIVOR: AtomicUsize = AtomicUsize::new(0);

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri))))]
std::thread_local! {
    static ADDRESS: u64 = const { 0 };
}

// A model checker runs all its threads on one: there a thread's name is a number of its own.
#[cfg(any(quintet_loom, quintet_shuttle))]
super::thread_local_cell! {
    static NUMBER: usize = NUMBERS.fetch_add(8, Ordering::Relaxed)
}
#[cfg(any(quintet_loom, quintet_shuttle))]
static NUMBERS: AtomicUsize = AtomicUsize::new(16);

/// A number that names the running thread as long as it lives, and keeps naming it in a forked
/// child. At least 8.
#[inline(always)]
pub(crate) fn thread_key() -> usize {
    #[cfg(any(quintet_loom, quintet_shuttle))]
    return NUMBER.try_with(|number| *number).unwrap_or(8);
    #[cfg(all(
        target_os = "linux",
        target_arch = "x86_64",
        not(any(miri, quintet_loom, quintet_shuttle))
    ))]
    {
        let pointer: usize;
        // SAFETY: on this system the first word of a thread's control block is its own address, and
        // never changes.
        unsafe {
            std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(pure, readonly, nostack, preserves_flags));
        }
        pointer
    }
    #[cfg(not(any(
        quintet_loom,
        quintet_shuttle,
        all(target_os = "linux", target_arch = "x86_64", not(miri))
    )))]
    ADDRESS.try_with(|place| (&raw const *place).addr()).unwrap_or(8)
}

/// How often this process descends from a fork since [`watch`], and the thread that came along
/// last.
#[inline(always)]
pub(crate) fn seen() -> (usize, usize) {
    // ORDERING: the survivor is stored before the count, by the only thread of the child.
    (FORKS.load(Ordering::Acquire), SURVIVOR.load(Ordering::Relaxed))
}

/// How often this process descends from a fork, alone.
#[inline(always)]
pub(crate) fn count() -> usize {
    // ORDERING: Acquire, as in `seen`.
    FORKS.load(Ordering::Acquire)
}

/// Installs the hook once per process. Without it (no unix, or no memory for it) forks stay
/// unnoticed, and the seats of threads that did not come along stay occupied: memory is kept, never
/// freed early.
pub(crate) fn watch() {
    #[cfg(all(unix, not(any(quintet_loom, quintet_shuttle, miri))))]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            // SAFETY: the child handler is a function that lives as long as the program and calls
            // nothing that is unsafe after fork: two atomic stores and an address computation.
            let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        });
    }
}

#[cfg(all(unix, not(any(quintet_loom, quintet_shuttle, miri))))]
extern "C" fn in_child() {
    SURVIVOR.store(thread_key(), Ordering::Relaxed);
    FORKS.fetch_add(1, Ordering::Release);
}
