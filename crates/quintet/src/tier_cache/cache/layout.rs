//! The sizes of a cache, and where its arrays lie in the segment.

use super::block::{CHAIN_HEADER, HEAD_HEADER};
use crate::region::shm::{SegmentError, Wanted};
use crate::sync::{AtomicPair, MODEL};
use crate::tier_cache::memory::{Geometry, SEAT_WORDS, WINDOW};
use crate::tier_cache::{MapError, OpenError};

pub(super) const KIND: u64 = u64::from_le_bytes(*b"tiercach");
/// The format of new caches.
///
/// | format | since it |
/// |---|---|
/// | 1, 2 | earlier layouts, which are refused |
/// | 3 | everything that is described here |
pub(super) const FORMAT: u64 = 3;
const OLDEST_FORMAT: u64 = 3;
/// The longest key.
pub const MAX_KEY: usize = 64 << 10;
/// Words of statistics per seat.
pub(super) const STAT_WORDS: usize = 32;
/// The most namespaces, the unnamed one included.
pub(super) const MAX_SPACES: u32 = if MODEL { 2 } else { 65_536 };
/// Words of a namespace: see [`spaces`](super::spaces).
pub(super) const SPACE_WORDS: usize = 16;
/// The longest value there can be: lengths have 30 bits.
pub(super) const MAX_VALUE: usize = (1 << 30) - 1;
/// Marks of time: of each power of two of spans so many.
pub(super) const MARKS: usize = 16;
pub(super) const MARK_LEVELS: usize = if MODEL { 1 } else { 24 };
/// Words that all share, each group on a line of its own.
pub(super) const GLOBAL_WORDS: usize = 64;
/// Leases a seat can hold at once.
pub(super) const SEAT_LEASES: usize = 8;

pub(super) const FIELDS: [&str; 10] = [
    "buckets",
    "blocks",
    "seats",
    "words of a block",
    "longest value",
    "pace",
    "eviction",
    "leases",
    "namespaces",
    "sums",
];

pub(super) const WANTED: Wanted<'static> = {
    const ANY: [(&str, Option<u64>); 10] = {
        let mut any = [("", None); 10];
        let mut at = 0;
        while at < any.len() {
            any[at].0 = FIELDS[at];
            at += 1;
        }
        any
    };
    Wanted { kind: KIND, formats: (OLDEST_FORMAT, FORMAT), fields: &ANY }
};

/// The sizes of a cache, all recorded in its header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sizes {
    pub(crate) format: u64,
    pub(crate) buckets: u32,
    pub(crate) blocks: u32,
    pub(crate) seats: u32,
    pub(crate) block_words: u32,
    pub(crate) max_value: u32,
    /// Insertions per tick of the recency clock; 0: every access ticks.
    pub(crate) pace: u32,
    pub(crate) evicts: bool,
    pub(crate) leases: bool,
    /// Namespaces, the unnamed one included.
    pub(crate) spaces: u32,
    /// Entries have sums.
    pub(crate) sums: bool,
}

impl Sizes {
    pub(super) fn fields(self) -> [u64; 10] {
        let (evicts, leases) = (self.evicts as u32, self.leases as u32);
        [
            self.buckets,
            self.blocks,
            self.seats,
            self.block_words,
            self.max_value,
            self.pace,
            evicts,
            leases,
            self.spaces,
            self.sums as u32,
        ]
        .map(u64::from)
    }

    /// Reads the fields of a header, none of which is trusted.
    pub(super) fn from_fields(format: u64, fields: [u64; 10]) -> Result<Self, OpenError> {
        let small = |at: usize| {
            u32::try_from(fields[at]).map_err(|_| SegmentError::Mismatch {
                field: FIELDS[at],
                expected: 0,
                found: fields[at],
            })
        };
        let sizes = Self {
            format,
            buckets: small(0)?,
            blocks: small(1)?,
            seats: small(2)?,
            block_words: small(3)?,
            max_value: small(4)?,
            pace: small(5)?,
            evicts: fields[6] != 0,
            leases: fields[7] != 0,
            spaces: small(8)?,
            sums: fields[9] != 0,
        };
        sizes.geometry().verify()?;
        if !sizes.block_words.is_power_of_two() || !(16..=512).contains(&sizes.block_words) {
            return Err(
                MapError::Geometry("words of a block: a power of two from 16 to 512").into()
            );
        }
        if !(1..=MAX_SPACES).contains(&sizes.spaces) {
            return Err(
                MapError::Geometry("namespaces: 1 to 65536, the unnamed one included").into()
            );
        }
        if sizes.max_value as usize > MAX_VALUE || sizes.most_blocks() > sizes.blocks as usize {
            return Err(MapError::Geometry("longest value: more than the blocks can hold").into());
        }
        Ok(sizes)
    }

    pub(super) fn geometry(self) -> Geometry {
        let Self { buckets, blocks, seats, .. } = self;
        Geometry { buckets, window: WINDOW, records: blocks, seats }
    }

    /// Payload words of an entry's first block, and of each further one.
    pub(super) fn room(self) -> (usize, usize) {
        (self.block_words as usize - HEAD_HEADER, self.block_words as usize - CHAIN_HEADER)
    }

    /// Blocks an entry needs.
    pub(super) fn blocks_for(self, key: usize, value: usize) -> usize {
        let words = key.div_ceil(8) + value.div_ceil(8);
        let (head, chain) = self.room();
        1 + words.saturating_sub(head).div_ceil(chain)
    }

    /// Free blocks that a handle keeps for itself, all of them together a quarter at most.
    pub(super) fn most_kept(self) -> usize {
        (self.blocks as usize / (4 * self.seats as usize)).min(16)
    }

    /// The longest value of any entry: a flight's, where values are shorter than that.
    pub(super) fn longest(self) -> usize {
        (self.max_value as usize).max(super::flight::HOLDER)
    }

    /// Blocks of the longest value under a short key. A long key takes away from the value.
    pub(super) fn most_blocks(self) -> usize {
        self.blocks_for(256, self.max_value as usize)
    }
}

/// Where each array begins in the body, in bytes, and where the last one ends.
pub(super) struct Offsets {
    pub(super) globals: usize,
    pub(super) seats: usize,
    pub(super) stats: usize,
    pub(super) leases: usize,
    pub(super) spaces: usize,
    pub(super) marks: usize,
    pub(super) summary: usize,
    pub(super) bits: usize,
    pub(super) ages: usize,
    pub(super) sums: usize,
    pub(super) controls: usize,
    pub(super) cells: usize,
    pub(super) blocks: usize,
    pub(super) end: usize,
}

impl Sizes {
    pub(super) fn bit_words(self) -> usize {
        (self.blocks as usize).div_ceil(64)
    }

    pub(super) fn summary_words(self) -> usize {
        self.bit_words().div_ceil(64)
    }

    /// Words of the sums: one for each block, since each has its own writer.
    pub(super) fn sum_words(self) -> usize {
        if self.sums { self.blocks as usize } else { 0 }
    }

    /// Words that mark the passing of time.
    pub(super) fn marks(self) -> usize {
        MARK_LEVELS * MARKS
    }

    pub(super) fn offsets(self) -> Offsets {
        let mut at = 0;
        let mut array = |bytes: usize| {
            let from = at;
            at += bytes.next_multiple_of(128);
            from
        };
        let seats = self.seats as usize;
        Offsets {
            globals: array(GLOBAL_WORDS * 8),
            seats: array(seats * SEAT_WORDS * 8),
            stats: array(seats * STAT_WORDS * 8),
            leases: array(seats * SEAT_LEASES * 8),
            spaces: array(self.spaces as usize * SPACE_WORDS * 8),
            marks: array(self.marks() * 8),
            summary: array(self.summary_words() * 8),
            bits: array(self.bit_words() * 8),
            ages: array(self.blocks as usize * 8),
            sums: array(self.sum_words() * 8),
            controls: array(self.buckets as usize * 8),
            cells: array(self.geometry().cells() * size_of::<AtomicPair>()),
            blocks: array(self.blocks as usize * self.block_words as usize * 8),
            end: at,
        }
    }
}
