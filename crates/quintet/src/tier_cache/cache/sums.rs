//! Sums of entries, for caches that were made with them.
//!
//! An array of a word per block: of a head, CRC-32C over its hash and bucket, its lengths and
//! namespace, its key and its value, and its generation.
//!
//! **U1.** It is stored before the entry is linked, and nothing that it covers changes while that
//! is linked. A flight has none: its token changes.
//! **U2.** It is read between the two looks at the generation (`read` G1), like what it covers: a
//! copy that is certified and does not fit is damaged.

use super::block::{Block, Pieces};
use super::spaces::Space;
use super::view::View;
use crate::sync::{AtomicU64, Ordering};
use crate::tier_cache::step::store_payload;
use crate::tier_cache::sum;
use crate::tier_cache::word::Link;

impl<'a> View<'a> {
    /// The sum of what an entry holds now. `None` if its chain is shorter than its lengths say.
    fn sum_of(&self, link: Link, block: Block<'a>) -> Option<u32> {
        let meta = block.meta();
        let mut words = meta.key().div_ceil(8) + meta.value().div_ceil(8);
        let mut pieces = Pieces::of(self.memory, block);
        // Hash and bucket, and the word behind them: lengths and namespace.
        let mut sum = sum::over(!0, block.0.get(1..3)?);
        while words > 0 {
            let piece = pieces.take(words)?;
            sum = sum::over(sum, piece);
            words -= piece.len();
        }
        Some(!sum::over(sum, &[AtomicU64::new(link.generation as u64)]))
    }

    /// U1.
    pub(super) fn set_sum(&self, head: Link, block: Block<'a>) {
        let Some(place) = self.sums.get(head.record as usize) else { return };
        if let Some(sum) = self.sum_of(head, block) {
            store_payload(place, sum as u64);
        }
    }

    /// U2. True also where entries have no sums.
    #[inline(always)]
    pub(super) fn has_sum(&self, link: Link, block: Block<'a>) -> bool {
        !self.sizes.sums || self.fits_sum(link, block)
    }

    #[inline(never)]
    fn fits_sum(&self, link: Link, block: Block<'a>) -> bool {
        let Some(place) = self.sums.get(link.record as usize) else { return false };
        // ORDERING: Relaxed: certified by the second look at the generation (`read` G1).
        let stored = place.load(Ordering::Relaxed);
        Space::is_flight(block.meta().space())
            || self.sum_of(link, block).is_some_and(|sum| sum as u64 == stored)
    }
}
