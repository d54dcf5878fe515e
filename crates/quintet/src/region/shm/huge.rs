//! Large pages for segments: half the time of a random access, where the system grants them.
//!
//! Files in memory have small pages unless the administrator said otherwise; what does work is to ask for pages that exist
//! already to be joined. All of it is a wish: refused, the segment is as good, only slower.

use std::ptr::NonNull;

const HUGE: usize = 2 << 20;
/// Linux 6.1 and later.
const MADV_COLLAPSE: libc::c_int = 25;

/// An address range for a mapping of so many bytes that begins where a large page can.
pub(super) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    if bytes < HUGE {
        return None;
    }
    let span = bytes.checked_add(HUGE)?;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh mapping without any access, at an address of the system's choice.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), span, libc::PROT_NONE, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return None;
    }
    let base = NonNull::new(base.cast::<u8>())?;
    let head = base.addr().get().next_multiple_of(HUGE) - base.addr().get();
    // The last page of the mapping reaches to its end, as the system maps whole pages.
    let kept = bytes.next_multiple_of(4096);
    // SAFETY: the unused head is ours.
    unsafe { unmap(base, 0, head) };
    // SAFETY: the unused tail is ours.
    unsafe { unmap(base, head + kept, span - head - kept) };
    // SAFETY: `head` is below HUGE, inside the reservation.
    Some(unsafe { base.add(head) })
}

/// # Safety
/// The range is ours and nobody refers to it.
unsafe fn unmap(base: NonNull<u8>, from: usize, bytes: usize) {
    if bytes == 0 {
        return;
    }
    // SAFETY: inside the reservation.
    let place = unsafe { base.add(from) };
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(place.as_ptr().cast(), bytes) };
}

/// Asks for the pages of a mapping to be joined to large ones.
pub(super) fn ask_for(memory: NonNull<u8>, bytes: usize) {
    let whole = bytes / HUGE * HUGE;
    if whole > 0 {
        // SAFETY: whole large pages of a mapping of ours; their content stays as it is.
        let _ = unsafe { libc::madvise(memory.as_ptr().cast(), whole, MADV_COLLAPSE) };
    }
}
