//! The machine under the race.
//!
//! Unsafe is allowed here because memory is asked for past the allocator, whose habits are part of
//! what is raced.
#![allow(unsafe_code)]

/// More than a table of the race needs.
#[cfg(target_os = "linux")]
const MOST: u64 = 2 << 30;

/// Touches and gives back `bytes` before growth is timed. The host of a virtual machine may back a
/// page only when it is first touched, and takes back what was free for some seconds; that is no
/// table's work. In large pages, so that what is given back serves those as well as small ones.
#[cfg(target_os = "linux")]
pub(crate) fn touch(bytes: u64) {
    use libc::{MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE};
    let bytes = bytes.min(MOST).next_multiple_of(2 << 20) as usize;
    let (access, kind) = (PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    // SAFETY: a new mapping, of whatever address.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
    if start == MAP_FAILED {
        return;
    }
    // SAFETY: advice on our own mapping.
    unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
    for offset in (0..bytes).step_by(4096) {
        let page = start.cast::<u8>().wrapping_add(offset);
        // SAFETY: inside the mapping, which nobody else knows.
        unsafe { page.write_volatile(1) };
    }
    // SAFETY: the mapping made above, and no pointer to it is left.
    unsafe { libc::munmap(start, bytes) };
}

/// Elsewhere memory is taken as it comes.
#[cfg(not(target_os = "linux"))]
pub(crate) fn touch(_bytes: u64) {}

/// Gives back what the allocator keeps for later: the first table of a program finds nothing kept,
/// and what is kept here depends on the tables before.
pub(crate) fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: takes no pointers and may be called at any time.
        unsafe { libc::malloc_trim(0) };
    }
}
