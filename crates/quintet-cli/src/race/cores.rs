//! A core for each thread.
//!
//! The system likes to move a thread that is woken to the core of the one that woke it. Two threads
//! that run all the time then share that core for the rest of a round, while the other one idles:
//! each does half of what it could, but no line ever changes cores, so both look fast. What they
//! would do to each other is what such a race is about.
//!
//! Unsafe is allowed here because the system has no safe call for it.
#![allow(unsafe_code)]

/// Keeps the calling thread, one of so many, on a core of its own, for as long as it lives. Without
/// as many cores, and where the system does not offer it, nothing happens.
#[cfg(target_os = "linux")]
pub(crate) fn take_core(thread: usize, threads: usize) {
    let Some(allowed) = allowed() else { return };
    // SAFETY: asks about numbers within the set.
    let is_allowed = |core: &usize| unsafe { libc::CPU_ISSET(*core, &allowed) };
    let cores: Vec<usize> = (0..libc::CPU_SETSIZE as usize).filter(is_allowed).collect();
    if threads > cores.len() {
        return;
    }
    // SAFETY: plain bits; all zeroes is the empty set.
    let mut own: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: a number within the set.
    unsafe { libc::CPU_SET(cores[thread], &mut own) };
    // SAFETY: reads a set of this size; if it fails, the thread stays where it may be.
    unsafe { libc::sched_setaffinity(0, size_of_val(&own), &own) };
}

/// The cores on which the calling thread may run.
#[cfg(target_os = "linux")]
fn allowed() -> Option<libc::cpu_set_t> {
    // SAFETY: plain bits; all zeroes is the empty set.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: writes a set of this size.
    let told = unsafe { libc::sched_getaffinity(0, size_of_val(&allowed), &mut allowed) };
    (told == 0).then_some(allowed)
}

/// Elsewhere threads run where the system puts them.
#[cfg(not(target_os = "linux"))]
pub(crate) fn take_core(_thread: usize, _threads: usize) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn count() -> i32 {
        let allowed = allowed().expect("linux tells");
        // SAFETY: counts bits.
        unsafe { libc::CPU_COUNT(&allowed) }
    }

    #[test]
    fn a_thread_has_a_core_of_its_own_if_there_are_so_many() {
        let on = |thread, threads| {
            let run = move || {
                take_core(thread, threads);
                count()
            };
            std::thread::spawn(run).join().expect("does not panic")
        };
        let all = count();
        for thread in 0..all as usize {
            assert_eq!(on(thread, all as usize), 1);
        }
        assert_eq!(on(0, all as usize + 1), all, "too few for all: left alone");
        assert_eq!(count(), all, "the others stay where they may be");
    }
}
