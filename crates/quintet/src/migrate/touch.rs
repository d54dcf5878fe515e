//! The first touch of a table's pages, at a pace.

use crate::region::heap::{Buffer, Zeroed};
use crate::sync::{AtomicUsize, Ordering, load_hint};

/// Deals out the steps that make a buffer's pages present (`migrate` M10).
#[derive(Debug)]
pub(crate) struct FirstTouch {
    cursor: AtomicUsize,
    steps: usize,
}

impl FirstTouch {
    pub(crate) fn of<T: Zeroed>(buffer: &Buffer<T>) -> Self {
        Self { cursor: AtomicUsize::new(0), steps: buffer.touches() }
    }

    /// The same for two buffers, one after the other.
    pub(crate) fn of_both<T: Zeroed, U: Zeroed>(first: &Buffer<T>, second: &Buffer<U>) -> Self {
        Self { cursor: AtomicUsize::new(0), steps: first.touches() + second.touches() }
    }

    /// Every step has been dealt out.
    #[inline(always)]
    pub(crate) fn is_dealt(&self) -> bool {
        load_hint(&self.cursor) >= self.steps
    }

    /// Takes one step. False if none is left.
    pub(crate) fn step<T: Zeroed>(&self, buffer: &Buffer<T>) -> bool {
        self.deal().inspect(|&step| buffer.touch(step)).is_some()
    }

    /// The same for two buffers.
    pub(crate) fn step_both<T: Zeroed, U: Zeroed>(
        &self,
        first: &Buffer<T>,
        second: &Buffer<U>,
    ) -> bool {
        let touch = |&step: &usize| match step.checked_sub(first.touches()) {
            None => first.touch(step),
            Some(step) => second.touch(step),
        };
        self.deal().inspect(touch).is_some()
    }

    /// The number of a step that nobody has taken.
    fn deal(&self) -> Option<usize> {
        if self.is_dealt() {
            return None;
        }
        // ORDERING: Relaxed: only deals out numbers; pages are made present by the system.
        let step = self.cursor.fetch_add(1, Ordering::Relaxed);
        (step < self.steps).then_some(step)
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

    #[test]
    fn steps_make_two_buffers_present() {
        let buffer = |bytes: usize| Buffer::<AtomicU64>::try_new(bytes / 8, Pages::Huge).unwrap();
        let (first, second) = (buffer(5 << 20), buffer(3 << 20));
        let touch = FirstTouch::of_both(&first, &second);
        let mut steps = 0;
        while touch.step_both(&first, &second) {
            steps += 1;
        }
        assert_eq!(steps, first.touches() + second.touches());
        assert!(first.present() >= 5 << 20 && second.present() >= 3 << 20);
    }
}
