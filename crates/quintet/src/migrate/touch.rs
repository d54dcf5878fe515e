//! The first touch of a table's pages, at a pace.

use crate::region::heap::{Buffer, Zeroed};
use crate::sync::{AtomicUsize, Ordering, load_hint};

/// Deals out the steps that make a buffer's pages present (M10).
#[derive(Debug)]
pub(crate) struct FirstTouch {
    cursor: AtomicUsize,
    steps: usize,
}

impl FirstTouch {
    pub(crate) fn of<T: Zeroed>(buffer: &Buffer<T>) -> Self {
        Self { cursor: AtomicUsize::new(0), steps: buffer.touches() }
    }

    /// Every step has been dealt out.
    #[inline(always)]
    pub(crate) fn is_dealt(&self) -> bool {
        load_hint(&self.cursor) >= self.steps
    }

    /// Takes one step. False if none is left.
    pub(crate) fn step<T: Zeroed>(&self, buffer: &Buffer<T>) -> bool {
        if self.is_dealt() {
            return false;
        }
        // ORDERING: Relaxed: only deals out numbers; pages are made present by the system.
        let step = self.cursor.fetch_add(1, Ordering::Relaxed);
        if step < self.steps {
            buffer.touch(step);
        }
        step < self.steps
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;
    use crate::region::Pages;
    use crate::sync::AtomicU64;

    #[test]
    fn steps_make_everything_present() {
        for (pages, bytes) in [(Pages::Small, 3 << 20), (Pages::Huge, 5 << 20), (Pages::Huge, 100)]
        {
            let buffer = Buffer::<AtomicU64>::try_new(bytes / 8, pages).unwrap();
            let touch = FirstTouch::of(&buffer);
            let mut steps = 0;
            while touch.step(&buffer) {
                steps += 1;
            }
            assert!(touch.is_dealt());
            assert_eq!(steps, buffer.touches());
            assert!(buffer.present() >= bytes / 8 * 8, "{pages:?}");
        }
    }
}
