//! The order in which slots are looked at: pure, no atomics, no unsafe code.
//!
//! **L1.** Linear probing from a start visits `start, start + 1, ...`: the next slot is usually on the same cache line.
//! **L2.** A walk ends after `limit` slots, whatever the table holds: a cap that triggers growth, a reseed or
//! patience, and a bound on every loop.
//! **L3.** `Linear` never wraps: a table has `limit - 1` slots behind its last start, so that clusters
//! keep their order. `Ring` wraps at the end of a table that has none.

/// A capped walk that does not wrap (L1, L2, L3).
#[derive(Debug, Clone)]
pub(crate) struct Linear {
    next: usize,
    end: usize,
}

impl Linear {
    pub(crate) const fn new(start: usize, limit: usize) -> Self {
        Self { next: start, end: start.saturating_add(limit) }
    }
}

impl Iterator for Linear {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.next == self.end {
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }
}

/// A capped walk around a table of any size (L1, L2).
#[derive(Debug, Clone)]
pub(crate) struct Ring {
    next: usize,
    slots: usize,
    left: usize,
}

impl Ring {
    /// At most `limit` slots, and never one twice.
    pub(crate) const fn new(start: usize, slots: usize, limit: usize) -> Self {
        Self { next: start, slots, left: if limit < slots { limit } else { slots } }
    }
}

impl Iterator for Ring {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let at = self.next;
        self.next = if at + 1 == self.slots { 0 } else { at + 1 };
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_walks_its_limit_and_stops() {
        assert_eq!(Linear::new(5, 3).collect::<Vec<_>>(), [5, 6, 7]);
        assert_eq!(Linear::new(5, 0).next(), None);
        assert_eq!(Linear::new(usize::MAX - 1, 5).count(), 1);
    }

    #[test]
    fn ring_visits_every_slot_once() {
        for slots in [1, 2, 7, 64] {
            for start in 0..slots {
                let mut seen: Vec<_> = Ring::new(start, slots, usize::MAX).collect();
                assert_eq!(seen[0], start);
                seen.sort_unstable();
                assert_eq!(seen, (0..slots).collect::<Vec<_>>());
            }
        }
        assert_eq!(Ring::new(6, 7, 3).collect::<Vec<_>>(), [6, 0, 1]);
    }
}
