//! The machine under the race.

use std::sync::atomic::{AtomicU64, Ordering};

/// Touches and frees `bytes` once per process before growth is timed: a host may back a page only
/// when it is first touched, and that is nobody's latency. At most 2 GiB.
pub(crate) fn touch_once(bytes: u64) {
    static TOUCHED: AtomicU64 = AtomicU64::new(0);
    let bytes = bytes.min(2 << 30);
    // Relaxed: one thread drives the race; the atomic only makes the static mutable.
    if TOUCHED.fetch_max(bytes, Ordering::Relaxed) < bytes {
        let mut ground = vec![0u8; bytes as usize];
        ground.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        std::hint::black_box(&ground);
    }
}
