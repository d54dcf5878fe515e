//! Asking the cache for a line before it is needed.
//!
//! Unsafe is allowed here because the instruction has no safe form.
#![allow(unsafe_code)]

/// Hints that `place` will be read soon, where the processor takes such hints.
#[inline(always)]
pub(super) fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch does not change what the program sees, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
