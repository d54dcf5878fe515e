//! Mapping a segment's file, in huge pages where its file system can have them.
//!
//! A file in memory gets small pages unless the system was told otherwise. But a range of it can be
//! *gathered* into a huge page at any time, and every process that maps it at an address aligned to
//! 2 MiB then sees huge pages. Random reads of a large segment are 1.5 to 2 times as fast. All of
//! it is a favour: what the system refuses stays as it is.

use super::super::pages::HUGE;
use super::super::{self as region, Pages};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::NonNull;

/// Maps the first `bytes` of a file, large ones aligned to a huge page.
pub(super) fn map(file: &impl AsRawFd, bytes: usize, writable: bool) -> io::Result<NonNull<u8>> {
    let protection = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
    let fd = file.as_raw_fd();
    let aligned = if bytes >= HUGE { region::map(bytes, Pages::Small) } else { None };
    let (place, fixed) = match aligned {
        Some(place) => (place.as_ptr().cast(), libc::MAP_FIXED),
        None => (std::ptr::null_mut(), 0),
    };
    // SAFETY: a fresh shared mapping at an address of the system's choice, or in place of a fresh
    // mapping of ours that spans the same pages.
    let mapped = unsafe { libc::mmap(place, bytes, protection, libc::MAP_SHARED | fixed, fd, 0) };
    if mapped != libc::MAP_FAILED {
        return NonNull::new(mapped.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into());
    }
    let error = io::Error::last_os_error();
    if let Some(place) = aligned {
        // SAFETY: made above with this size; the failed call left it as it was, and nobody knows
        // it.
        unsafe { region::unmap(place, bytes, Pages::Small) };
    }
    Err(error)
}

/// Gathers a fresh file of `bytes`, nothing of which is allocated yet, into huge pages.
pub(super) fn gather(file: &impl AsRawFd, bytes: usize) {
    let fd = file.as_raw_fd();
    if bytes < HUGE || !has_room_in_memory(fd, bytes) {
        return;
    }
    // SAFETY: a call on our descriptor with integer arguments.
    if unsafe { libc::ftruncate(fd, bytes as libc::off_t) } != 0 {
        return;
    }
    let Ok(view) = map(&fd, bytes, true) else { return };
    // One page per range: the rest of the range is taken and cleared when it is gathered.
    let whole = bytes / HUGE * HUGE;
    let first_pages = (0..whole).step_by(HUGE).all(|from| {
        // SAFETY: as above.
        unsafe { libc::fallocate(fd, 0, from as libc::off_t, 4096) == 0 }
    });
    if first_pages {
        // SAFETY: advice about a mapping of ours; a refusal changes nothing.
        unsafe { libc::madvise(view.as_ptr().cast(), whole, libc::MADV_COLLAPSE) };
    }
    // SAFETY: mapped above with this size.
    unsafe { libc::munmap(view.as_ptr().cast(), bytes) };
}

/// The file lies in memory, and its file system has so much left (or no limit).
fn has_room_in_memory(fd: RawFd, bytes: usize) -> bool {
    // SAFETY: a C structure of integers, for which zero is valid.
    let mut system: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the structure outlives the call and is written by it.
    let known = unsafe { libc::fstatfs(fd, &mut system) } == 0;
    let left = (system.f_bavail as u64).saturating_mul(system.f_bsize as u64);
    known
        && system.f_type as i64 == i64::from(libc::TMPFS_MAGIC as i32)
        && (system.f_blocks == 0 || left >= bytes as u64)
}
