//! The sizes of a cache, and where its arrays lie in the segment.

use super::block::{CHAIN_HEADER, HEAD_HEADER};
use super::policy::Policy;
use crate::region::shm::{SegmentError, Wanted, body_at};
use crate::sync::{AtomicPair, MODEL};
use crate::tier_cache::memory::{BOOK_WORDS, Geometry, MAX_TIERS, SEAT_WORDS, WINDOW};
use crate::tier_cache::{MapError, OpenError};

pub(super) const KIND: u64 = u64::from_le_bytes(*b"tiercach");
/// The one format that is read and written.
///
/// | format | |
/// |---|---|
/// | 1 to 3 | of earlier versions, refused |
/// | 4 | everything that is described here |
pub(super) const FORMAT: u64 = 4;
/// The longest key.
pub const MAX_KEY: usize = 64 << 10;
/// Words of statistics per seat: what it counted, and from [`STAT_BASE`] on what that was when it
/// was taken.
pub(super) const STAT_WORDS: usize = 48;
pub(super) const STAT_BASE: usize = 32;
/// Words of a process: see [`members`](super::members).
pub(super) const PROCESS_WORDS: usize = 16;
/// Words of an account: see [`quota`](super::quota).
pub(super) const ACCOUNT_WORDS: usize = 8;
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
pub(super) const GLOBAL_WORDS: usize = 128;
/// Leases a seat can hold at once.
pub(super) const SEAT_LEASES: usize = 8;
/// What a handle takes.
pub(super) const SEAT_BYTES: usize = (SEAT_WORDS + STAT_WORDS + SEAT_LEASES) * 8;

pub(super) const FIELDS: [&str; 16] = [
    "buckets",
    "blocks",
    "handles",
    "words of a block",
    "longest value",
    "pace",
    "eviction",
    "leases",
    "capacity",
    "processes",
    "tiers",
    "control words",
    "store",
    "namespaces",
    "sums",
    "policy",
];

/// Expiries end here.
pub(super) const MAX_EXPIRY: u64 = (1 << 48) - 1;

/// The field `store`: what a cache does with its store, whose address is the segment's note. 0 is
/// none.
///
/// | bit | |
/// |---|---|
/// | 0 | there is a store |
/// | 1 | who finds no room drops entries instead of waiting for the store |
/// | 2 | what a lookup finds in the store is kept in memory |
/// | 3 | what the store has from earlier caches is found |
/// | 4 | that a key is absent from memory and store is kept in memory |
///
/// With a store the segment has an array of a *book* for each bucket, then a version for each
/// block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Stored(pub(crate) u64);

impl Stored {
    pub(crate) const NONE: Self = Self(0);
    pub(super) const HAS: u64 = 1;
    pub(super) const DROPS: u64 = 1 << 1;
    pub(super) const KEEPS: u64 = 1 << 2;
    pub(super) const ADOPTS: u64 = 1 << 3;
    pub(super) const ABSENCES: u64 = 1 << 4;
    const ALL: u64 = (1 << 5) - 1;

    #[inline(always)]
    pub(super) fn exists(self) -> bool {
        self.0 != 0
    }

    pub(super) fn has(self, bit: u64) -> bool {
        self.0 & bit != 0
    }

    fn is_legal(self) -> bool {
        self.0 & !Self::ALL == 0 && (self.0 == 0 || self.has(Self::HAS))
    }
}

/// What is asked of a segment: this kind and format, of whatever sizes.
pub(super) const fn wanted(any_owner: bool) -> Wanted<'static> {
    const ANY: [(&str, Option<u64>); 16] = {
        let mut any = [("", None); 16];
        let mut at = 0;
        while at < any.len() {
            any[at].0 = FIELDS[at];
            at += 1;
        }
        any
    };
    Wanted { kind: KIND, formats: (FORMAT, FORMAT), fields: &ANY, any_owner }
}

/// The sizes of a cache, all recorded in its header. The field `tiers` has their number in bits
/// 7..0, promotion in bit 8, accounts in bit 9; all tiers have the same buckets, and one control
/// word for each of them.
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
    /// Bytes that were asked for.
    pub(crate) capacity: u64,
    pub(crate) processes: u32,
    /// Namespaces, the unnamed one included.
    pub(crate) spaces: u32,
    /// Entries have sums.
    pub(crate) sums: bool,
    pub(crate) tiers: u32,
    /// A use moves an entry to the first tier.
    pub(crate) promotes: bool,
    /// Who leaves when room is needed.
    pub(crate) policy: Policy,
    /// Accounts are kept, so that there can be quotas.
    pub(crate) quotas: bool,
    pub(crate) store: Stored,
}

impl Sizes {
    pub(super) fn fields(self) -> [u64; 16] {
        let [buckets, blocks, seats, block_words, max_value, pace, processes, spaces] = [
            self.buckets,
            self.blocks,
            self.seats,
            self.block_words,
            self.max_value,
            self.pace,
            self.processes,
            self.spaces,
        ]
        .map(u64::from);
        let [evicts, leases, sums] = [self.evicts, self.leases, self.sums].map(u64::from);
        let tiers = self.tiers as u64 | (self.promotes as u64) << 8 | (self.quotas as u64) << 9;
        [
            buckets,
            blocks,
            seats,
            block_words,
            max_value,
            pace,
            evicts,
            leases,
            self.capacity,
            processes,
            tiers,
            buckets,
            self.store.0,
            spaces,
            sums,
            self.policy.number(),
        ]
    }

    /// Reads the fields of a header, none of which is trusted.
    pub(super) fn from_fields(format: u64, fields: [u64; 16]) -> Result<Self, OpenError> {
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
            capacity: fields[8],
            processes: small(9)?,
            tiers: fields[10] as u8 as u32,
            promotes: fields[10] & 1 << 8 != 0,
            store: Stored(fields[12]),
            spaces: small(13)?,
            sums: fields[14] != 0,
            // An unknown one is told below: it would be written back as another.
            policy: Policy::of_number(fields[15]).unwrap_or_default(),
            quotas: fields[10] & 1 << 9 != 0,
        };
        sizes.geometry().verify()?;
        // Whatever else would be written back differs from what a creator writes.
        let store = if sizes.store.is_legal() { sizes.store } else { Stored::NONE };
        let expected = Self { store, ..sizes }.fields();
        if let Some(at) = (0..fields.len()).find(|at| fields[*at] != expected[*at]) {
            let (expected, found) = (expected[at], fields[at]);
            return Err(SegmentError::Mismatch { field: FIELDS[at], expected, found }.into());
        }
        if !(1..=MAX_TIERS as u32).contains(&sizes.tiers) {
            return Err(MapError::Geometry("tiers: 1 to 4").into());
        }
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

    /// Cells of all tiers.
    pub(super) fn cells(self) -> usize {
        self.tiers as usize * self.geometry().cells()
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
    pub(super) members: usize,
    pub(super) leases: usize,
    pub(super) spaces: usize,
    pub(super) accounts: usize,
    pub(super) marks: usize,
    pub(super) summary: usize,
    pub(super) bits: usize,
    pub(super) ages: usize,
    pub(super) sums: usize,
    pub(super) policy: usize,
    pub(super) payers: usize,
    /// Books of buckets and versions of blocks: empty without a store.
    pub(super) books: usize,
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

    /// Words that say who pays for an entry: one for each block, where accounts are kept.
    pub(super) fn payer_words(self) -> usize {
        if self.quotas { self.blocks as usize } else { 0 }
    }

    /// Accounts: of each namespace, of each process, and the limits of all processes.
    pub(super) fn accounts(self) -> usize {
        if self.quotas { self.spaces as usize + self.processes as usize + 1 } else { 0 }
    }

    /// Words of the books and versions of a cache with a store.
    pub(super) fn book_words(self) -> usize {
        let books = self.buckets as usize * BOOK_WORDS + self.blocks as usize;
        if self.store.exists() { books } else { 0 }
    }

    /// Words that mark the passing of time.
    pub(super) fn marks(self) -> usize {
        MARK_LEVELS * MARKS
    }

    /// Bytes of the whole segment.
    pub(super) fn bytes(self) -> usize {
        body_at(self.processes as usize).saturating_add(self.offsets().end)
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
            members: array(self.processes as usize * PROCESS_WORDS * 8),
            leases: array(seats * SEAT_LEASES * 8),
            spaces: array(self.spaces as usize * SPACE_WORDS * 8),
            accounts: array(self.accounts() * ACCOUNT_WORDS * 8),
            marks: array(self.marks() * 8),
            summary: array(self.summary_words() * 8),
            bits: array(self.bit_words() * 8),
            ages: array(self.blocks as usize * 8),
            sums: array(self.sum_words() * 8),
            policy: array(self.policy_words() * 8),
            payers: array(self.payer_words() * 8),
            books: array(self.book_words() * 8),
            controls: array(self.buckets as usize * 8),
            cells: array(self.cells() * size_of::<AtomicPair>()),
            blocks: array(self.blocks as usize * self.block_words as usize * 8),
            end: at,
        }
    }
}
