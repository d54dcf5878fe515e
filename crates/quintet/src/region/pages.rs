//! The system calls under large buffers. Where there are none, every buffer comes from the global
//! allocator.

use super::Pages;
use std::ptr::NonNull;

/// The size and alignment of a huge page.
pub(super) const HUGE: usize = 2 << 20;

#[cfg(all(test, unix, not(any(quintet_loom, quintet_shuttle, miri))))]
pub(super) use system::present;
#[cfg(all(unix, not(any(quintet_loom, quintet_shuttle, miri))))]
pub(super) use system::{AVAILABLE, clear, map, populate, populate_around, rounded, unmap};

#[cfg(all(unix, not(any(quintet_loom, quintet_shuttle, miri))))]
mod system {
    use super::{HUGE, NonNull, Pages};

    pub(in super::super) const AVAILABLE: bool = true;

    /// What a mapping of `bytes` really spans: whole pages.
    pub(in super::super) fn rounded(bytes: usize, pages: Pages) -> usize {
        match pages {
            Pages::Huge => bytes.next_multiple_of(HUGE),
            Pages::Small => bytes.next_multiple_of(small_page()),
        }
    }

    fn small_page() -> usize {
        // SAFETY: sysconf only reads a constant of the system.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(size).unwrap_or(4096).max(4096)
    }

    /// A zeroed mapping aligned to a huge page, or nothing.
    pub(in super::super) fn map(bytes: usize, pages: Pages) -> Option<NonNull<u8>> {
        let span = bytes.checked_next_multiple_of(HUGE)?;
        let span = rounded(bytes.min(span), pages);
        let reserve = span.checked_add(HUGE)?;
        // SAFETY: a fresh anonymous mapping touches nothing that exists.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                reserve,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANON,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return None;
        }
        let base = NonNull::new(base.cast::<u8>())?;
        let head = base.addr().get().next_multiple_of(HUGE) - base.addr().get();
        // SAFETY: `head` is below HUGE and the reserve holds a further `span` bytes behind it.
        let aligned = unsafe { base.add(head) };
        // SAFETY: the unaligned head is ours and unused.
        unsafe { unmap(base, 0, head) };
        // SAFETY: the tail behind the span is ours and unused.
        unsafe { unmap(aligned, span, reserve - head - span) };
        advise(aligned, span, pages);
        Some(aligned)
    }

    fn advise(base: NonNull<u8>, span: usize, pages: Pages) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            let advice = match pages {
                Pages::Huge => libc::MADV_HUGEPAGE,
                Pages::Small => libc::MADV_NOHUGEPAGE,
            };
            // SAFETY: advice about a mapping of ours; a refusal changes nothing.
            let _ = unsafe { libc::madvise(base.as_ptr().cast(), span, advice) };
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let _ = (base, span, pages);
    }

    /// Makes pages present for writing, where the system has a call for it.
    pub(in super::super) fn populate(base: NonNull<u8>, offset: usize, bytes: usize) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            let page = small_page();
            let from = offset / page * page;
            let span = (offset + bytes).next_multiple_of(page) - from;
            // SAFETY: the caller's range lies inside its mapping.
            let place = unsafe { base.add(from) };
            // SAFETY: the call only makes pages present; their content stays.
            let _ =
                unsafe { libc::madvise(place.as_ptr().cast(), span, libc::MADV_POPULATE_WRITE) };
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let _ = (base, offset, bytes);
    }

    /// Makes the pages that lie inside a block of the global allocator present.
    pub(in super::super) fn populate_around(block: NonNull<u8>, bytes: usize) {
        let head = block.align_offset(small_page());
        if bytes > head + small_page() {
            let whole = (bytes - head) / small_page() * small_page();
            // SAFETY: inside the block.
            populate(unsafe { block.add(head) }, 0, whole);
        }
    }

    /// Gives `bytes` from `offset` on back to the system.
    ///
    /// # Safety
    /// The range is mapped, was made by `map`, and nobody refers to it.
    pub(in super::super) unsafe fn unmap(base: NonNull<u8>, offset: usize, bytes: usize) {
        if bytes == 0 {
            return;
        }
        // SAFETY: the caller's range lies inside its mapping.
        let place = unsafe { base.add(offset) };
        // SAFETY: nobody refers to the range. A refusal (too many mappings) leaks it, nothing
        // worse.
        let _ = unsafe { libc::munmap(place.as_ptr().cast(), bytes) };
    }

    /// Gives the memory of whole pages back but keeps their addresses: they read as zero.
    ///
    /// # Safety
    /// The range is mapped, was made by `map`, and nobody refers to it.
    pub(in super::super) unsafe fn clear(base: NonNull<u8>, offset: usize, bytes: usize) {
        // SAFETY: the caller's range lies inside its mapping.
        let place = unsafe { base.add(offset) };
        // SAFETY: nobody refers to the range. A refusal keeps the memory, nothing worse.
        let _ = unsafe { libc::madvise(place.as_ptr().cast(), bytes, libc::MADV_DONTNEED) };
    }

    /// Bytes of a range that are in memory.
    #[cfg(test)]
    pub(in super::super) fn present(base: NonNull<u8>, bytes: usize) -> usize {
        let mut pages = vec![0u8; bytes / small_page()];
        // SAFETY: the range is mapped, and there is a byte for each of its pages.
        let told = unsafe { libc::mincore(base.as_ptr().cast(), bytes, pages.as_mut_ptr().cast()) };
        assert_eq!(told, 0, "mincore");
        pages.iter().filter(|page| **page & 1 != 0).count() * small_page()
    }
}

#[cfg(all(test, not(all(unix, not(any(quintet_loom, quintet_shuttle, miri))))))]
pub(super) use none::present;
#[cfg(not(all(unix, not(any(quintet_loom, quintet_shuttle, miri)))))]
pub(super) use none::{AVAILABLE, clear, map, populate, populate_around, rounded, unmap};

#[cfg(not(all(unix, not(any(quintet_loom, quintet_shuttle, miri)))))]
mod none {
    use super::{NonNull, Pages};

    pub(in super::super) const AVAILABLE: bool = false;

    pub(in super::super) fn rounded(bytes: usize, _pages: Pages) -> usize {
        bytes
    }

    pub(in super::super) fn map(_bytes: usize, _pages: Pages) -> Option<NonNull<u8>> {
        None
    }

    pub(in super::super) fn populate(_base: NonNull<u8>, _offset: usize, _bytes: usize) {}

    pub(in super::super) fn populate_around(_block: NonNull<u8>, _bytes: usize) {}

    /// # Safety
    /// Never called: nothing is mapped.
    pub(in super::super) unsafe fn unmap(_base: NonNull<u8>, _offset: usize, _bytes: usize) {}

    /// # Safety
    /// Never called: nothing is mapped.
    pub(in super::super) unsafe fn clear(_base: NonNull<u8>, _offset: usize, _bytes: usize) {}

    #[cfg(test)]
    pub(in super::super) fn present(_base: NonNull<u8>, _bytes: usize) -> usize {
        0
    }
}
