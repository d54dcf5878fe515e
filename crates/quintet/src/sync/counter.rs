//! A sum that many threads change without sharing a cache line.
//!
//! **C1.** The sum of the stripes, read while nobody writes, is exactly the sum of all `add`s.
//! **C2.** Read while others write it lies between the smallest and the largest value the true sum had
//! during the call, plus what was moved between stripes meanwhile: an estimate.

use super::{AtomicI64, CachePadded, MODEL, Ordering, thread_local_cell};

const STRIPES: usize = if MODEL { 2 } else { 16 };

/// A striped counter.
#[derive(Debug)]
pub(crate) struct Striped {
    stripes: [CachePadded<AtomicI64>; STRIPES],
}

thread_local_cell! {
    static STRIPE: std::cell::Cell<usize> = std::cell::Cell::new(usize::MAX)
}

/// The running thread's stripe, dealt round robin.
fn stripe() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    STRIPE
        .try_with(|cell| {
            if cell.get() == usize::MAX {
                let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                cell.set(next % STRIPES);
            }
            cell.get()
        })
        .unwrap_or(0)
}

#[allow(dead_code)]
impl Striped {
    pub(crate) fn new() -> Self {
        Self { stripes: std::array::from_fn(|_| CachePadded::new(AtomicI64::new(0))) }
    }

    /// Adds on the calling thread's stripe.
    #[inline]
    pub(crate) fn add(&self, delta: i64) {
        // ORDERING: Relaxed: a statistic; whoever wants it exact has joined the writers (C1).
        self.stripes[stripe()].fetch_add(delta, Ordering::Relaxed);
    }

    /// The sum: exact when quiet (C1), an estimate otherwise (C2).
    pub(crate) fn sum(&self) -> i64 {
        // ORDERING: Relaxed, as in `add`.
        self.stripes.iter().map(|stripe| stripe.load(Ordering::Relaxed)).sum()
    }

    /// The sum as a size: a moment's negative estimate counts as zero.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.sum()).unwrap_or(0)
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn quiet_sum_is_exact() {
        let counter = Striped::new();
        std::thread::scope(|scope| {
            for thread in 0..40i64 {
                let counter = &counter;
                scope.spawn(move || (0..1_000).for_each(|_| counter.add(thread % 3 - 1)));
            }
        });
        let expected: i64 = (0..40i64).map(|thread| (thread % 3 - 1) * 1_000).sum();
        assert_eq!(counter.sum(), expected);
        assert_eq!(counter.len(), 0, "a negative sum is no size");
    }
}
