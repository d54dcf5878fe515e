//! What a table is made with.

use crate::region::Pages;
use crate::sync::MODEL;
use crate::sync::six::{LANE_BITS, LANES};

/// What a table is made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// log2 of the numbers of its places, of which a line has 2^[`LANE_BITS`] and uses [`LANES`].
    pub(crate) bits: u32,
    /// log2 of the number of shards; each has a line at least.
    pub(crate) shard_bits: u32,
    /// It has the shard of small tables, and is left at once (`grow` G10).
    pub(crate) small: bool,
    /// The share of the places that may be dealt out.
    pub(crate) load_factor: f64,
    pub(crate) pages: Pages,
    /// The era before it was published.
    pub(crate) birth: u64,
    /// The order of insertion is kept.
    pub(crate) ordered: bool,
}

impl Plan {
    /// A 32-bit hash has no more starts, and a 32-bit number of `order` has one value to spare.
    pub(crate) const MAX_BITS: u32 = 31;

    /// How many items fit.
    pub(crate) fn capacity(&self) -> usize {
        let places = (LANES as u64) << self.line_bits();
        let slots = (self.load_factor * places as f64) as u64;
        slots.clamp(1, places - 1) as usize
    }

    /// log2 of the number of lines.
    pub(crate) const fn line_bits(&self) -> u32 {
        self.bits - LANE_BITS
    }

    /// log2 of the lines in a chunk of a migration: part of one shard's range.
    pub(crate) fn chunk_bits(&self) -> u32 {
        const CHUNK_BITS: u32 = if MODEL { 1 } else { 3 };
        CHUNK_BITS.min(self.line_bits() - self.shard_bits)
    }

    /// From how many places on the next table is prepared.
    pub(super) fn filling_from(&self) -> usize {
        self.capacity() - self.capacity() / 16
    }

    /// How many items go in before the next table is prepared, whatever credit the shards have.
    pub(super) fn room(&self) -> usize {
        let credit = (self.batch() as usize - 1) << self.shard_bits;
        self.filling_from().saturating_sub(credit + 1)
    }

    /// Places that a shard is given at a time, to deal them out (`table` T4). One by one if their
    /// order counts.
    pub(super) fn batch(&self) -> u32 {
        if self.ordered {
            return 1;
        }
        // Small tables have credit under a model checker, too.
        let (part, most) = if MODEL { (2, 3) } else { (16, 64) };
        let share = (self.capacity() / part) >> self.shard_bits;
        share.clamp(1, most) as u32
    }
}
