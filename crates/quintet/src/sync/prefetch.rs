//! Asking the cache for a line before it is needed.

/// Hints that `place` will be written soon. Never faults, whatever the address.
#[inline(always)]
pub(crate) fn prefetch_write<T>(place: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch of any address is architecturally without effect on the program; older
    // processors take this one for an instruction that does nothing.
    unsafe {
        std::arch::asm!("prefetchw [{p}]", p = in(reg) place, options(nostack, readonly, preserves_flags));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    prefetch_read(place);
}

/// Hints that `place` will be read soon. Never faults, whatever the address.
#[inline(always)]
pub(crate) fn prefetch_read<T>(place: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch of any address is architecturally without effect on the program.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(place.cast());
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: a prefetch of any address is architecturally without effect on the program.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{p}]", p = in(reg) place, options(nostack, readonly, preserves_flags));
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    let _ = place;
}
