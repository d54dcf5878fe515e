//! What a worker takes over from who started it: a descriptor, or its whole process by a fork.
//!
//! Unsafe is allowed here for the system calls that do it.
#![allow(unsafe_code)]

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// The descriptor of this number, which the starter kept open over exec.
pub(super) fn descriptor(number: RawFd) -> OwnedFd {
    // SAFETY: the starter names a descriptor that it let this process inherit, and nothing else
    // here takes it.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Forks. The child goes on and is killed with its parent; the parent waits for that.
pub(super) fn go_on_in_a_child() {
    let parent = std::process::id();
    // SAFETY: the process has one thread, so the child may do anything.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: a call with integer arguments.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        if std::os::unix::process::parent_id() != parent {
            // SAFETY: the parent was killed before: ends the child as well.
            unsafe { libc::_exit(0) };
        }
        return;
    }
    let mut status = 0;
    // SAFETY: waits for the child made above, whose status outlives the call.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    // SAFETY: ends this process at once.
    unsafe { libc::_exit(0) };
}
