//! A store or an exchange, and a sequentially consistent fence behind it.
//!
//! On x86-64 one locked instruction is both: it drains the store buffer, and later loads wait for
//! it. The compiler moves no later load before a sequentially consistent read-modify-write. Two
//! instructions in its place cost the second drain, which is the dearer one. Elsewhere, and under
//! checkers, it is what it says.

use super::{AtomicUsize, Ordering, fence};

/// Whether an exchange is a fence.
const IS_FENCE: bool =
    cfg!(all(target_arch = "x86_64", not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))));

/// Stores, then fences.
#[inline(always)]
pub(crate) fn store_fenced(word: &AtomicUsize, value: usize) {
    if IS_FENCE {
        word.swap(value, Ordering::SeqCst);
    } else {
        // ORDERING: Relaxed, then the fence.
        word.store(value, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}

/// Exchanges with `Release`, then fences.
#[inline(always)]
pub(crate) fn swap_fenced(word: &AtomicUsize, value: usize) -> usize {
    if IS_FENCE {
        word.swap(value, Ordering::SeqCst)
    } else {
        // ORDERING: Release: partners are the loads that the caller names; then the fence.
        let old = word.swap(value, Ordering::Release);
        fence(Ordering::SeqCst);
        old
    }
}
