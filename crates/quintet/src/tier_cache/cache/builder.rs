//! How a cache is made.

use super::TierCache;
use super::layout::{FORMAT, MAX_SPACES, SPACE_WORDS, Sizes};
use crate::region::shm::{Access, Place, SegmentError};
use crate::tier_cache::{MapError, OpenError};

/// Sizes and rights of a new cache.
#[derive(Debug, Clone)]
#[must_use]
pub struct CacheBuilder {
    pub(super) capacity: usize,
    max_value: Option<usize>,
    block: usize,
    seats: u32,
    evicts: bool,
    exact: bool,
    leases: bool,
    access: Access,
    spaces: Option<u32>,
    sums: bool,
}

impl Default for CacheBuilder {
    fn default() -> Self {
        Self {
            capacity: 64 << 20,
            max_value: None,
            block: 128,
            seats: 128,
            evicts: true,
            exact: false,
            leases: false,
            access: Access::default(),
            spaces: None,
            sums: false,
        }
    }
}

impl CacheBuilder {
    /// Bytes of the segment, all told: 64 MiB by default. An entry with a key of 16 and a value of 64 bytes takes about 180.
    pub fn capacity(mut self, bytes: usize) -> Self {
        self.capacity = bytes;
        self
    }

    /// Chooses a capacity with room for so many entries of these lengths.
    pub fn for_entries(mut self, entries: usize, key: usize, value: usize) -> Self {
        // A block that is out of range is refused when the cache is made.
        let block_words = (self.block / 8).clamp(16, 512) as u32;
        let each = Sizes { block_words, ..self.empty() };
        let blocks = entries.saturating_mul(each.blocks_for(key, value));
        let sizes = Sizes { blocks: blocks.clamp(64, 1 << 30) as u32, ..each };
        self.capacity = with_buckets(sizes).offsets().end + (1 << 16);
        self
    }

    /// The longest value: by default the smaller of 1 MiB and a 64th of the capacity.
    pub fn max_value(mut self, bytes: usize) -> Self {
        self.max_value = Some(bytes);
        self
    }

    /// Bytes of a block, a power of two from 128 (the default) to 4096. Entries take whole blocks. A value of many blocks is stored
    /// faster the fewer there are: with blocks of 1024 bytes in about a quarter of the time, within twice that of a plain copy.
    pub fn block(mut self, bytes: usize) -> Self {
        self.block = bytes;
        self
    }

    /// Handles that can write at once, in all processes: 128 by default.
    pub fn handles(mut self, seats: u32) -> Self {
        self.seats = seats;
        self
    }

    /// Namespaces there can be beside the unnamed one, up to 65,535, each for 128 bytes: by default as many as a 64th of the capacity holds.
    pub fn namespaces(mut self, most: u32) -> Self {
        self.spaces = Some(most);
        self
    }

    /// Nothing is ever evicted: a set that finds no room returns [`CacheError::Full`](super::CacheError::Full).
    pub fn no_evict(mut self) -> Self {
        self.evicts = false;
        self
    }

    /// Every access counts for recency, not only the first in a 128th of the cache's turnover. For small caches whose hits are
    /// few: each access stores to a word all processes share.
    pub fn exact_recency(mut self) -> Self {
        self.exact = true;
        self
    }

    /// Every entry has a sum (CRC-32C) over its key, its value and where it belongs, which every lookup verifies: what was damaged in memory or in the
    /// file is [`CacheError::Corrupt`](super::CacheError::Corrupt), not a wrong value. Takes 8 bytes per block, and gets take longer.
    pub fn checksums(mut self) -> Self {
        self.sums = true;
        self
    }

    /// Values can be leased, that is read where they lie ([`Handle::lease`](super::Handle::lease)); stores take a little longer.
    pub fn leases(mut self) -> Self {
        self.leases = true;
        self
    }

    /// Who may use the cache: its creator by default.
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    fn empty(&self) -> Sizes {
        Sizes {
            format: FORMAT,
            buckets: 1,
            blocks: 1,
            seats: self.seats,
            block_words: (self.block / 8) as u32,
            max_value: 0,
            pace: 1,
            evicts: self.evicts,
            leases: self.leases,
            spaces: self.spaces(),
            sums: self.sums,
        }
    }

    /// The unnamed one included.
    fn spaces(&self) -> u32 {
        let fair = (self.capacity / 64 / (SPACE_WORDS * 8)).max(64).min(MAX_SPACES as usize);
        self.spaces.map_or(fair as u32, |most| most.saturating_add(1)).min(MAX_SPACES + 1)
    }

    pub(super) fn sizes(&self) -> Result<Sizes, OpenError> {
        if !self.block.is_power_of_two() || !(128..=4096).contains(&self.block) {
            return Err(MapError::Geometry("block: a power of two from 128 to 4096 bytes").into());
        }
        if self.seats == 0 || self.seats > 1 << 13 {
            return Err(MapError::Geometry("handles: 1 to 8192").into());
        }
        let fits = |blocks: usize| {
            let sizes = Sizes { blocks: blocks as u32, ..self.empty() };
            with_buckets(sizes).offsets().end <= self.capacity
        };
        let (mut few, mut many) = (0usize, (self.capacity / self.block + 1).min(1 << 30));
        while few + 1 < many {
            let middle = few.midpoint(many);
            if fits(middle) { few = middle } else { many = middle }
        }
        if few < 64 {
            return Err(MapError::Geometry(
                "capacity: too small; take at least 256 KiB, or fewer handles",
            )
            .into());
        }
        let max_value = self.max_value.unwrap_or((1 << 20).min(self.capacity / 64));
        let pace = if self.exact { 0 } else { (few / 128).max(1) as u32 };
        let sizes = with_buckets(Sizes { blocks: few as u32, pace, ..self.empty() });
        let max = u32::try_from(max_value).unwrap_or(u32::MAX);
        let sizes = Sizes { max_value: max, ..sizes };
        if sizes.most_blocks() > few / 8 {
            return Err(
                MapError::Geometry("longest value: at most an eighth of the capacity").into()
            );
        }
        Sizes::from_fields(FORMAT, sizes.fields())
    }

    /// Makes a new cache.
    pub fn create(&self, place: &Place) -> Result<TierCache, OpenError> {
        TierCache::create(place, self.sizes()?, self.access)
    }

    /// Makes a cache without a name whose memory cannot be truncated, to hand to children.
    pub fn create_sealed(&self) -> Result<TierCache, OpenError> {
        TierCache::create_sealed(self.sizes()?)
    }

    /// Makes the cache, or attaches to the one that is there, whatever its sizes. Waits a while for another creator.
    pub fn create_or_attach(&self, place: &Place) -> Result<TierCache, OpenError> {
        let mut last = None;
        for _ in 0..100 {
            for attempt in [self.create(place), TierCache::attach(place)] {
                match attempt {
                    Err(OpenError::Segment(
                        error @ (SegmentError::Exists(_)
                        | SegmentError::NotReady(_)
                        | SegmentError::NotFound(_)
                        | SegmentError::Abandoned(_)),
                    )) => last = Some(error),
                    done => return done,
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Err(last.map_or(OpenError::Map(MapError::Busy), OpenError::Segment))
    }
}

/// Two cells per block, so that practically no entry has to leave for its bucket's sake.
fn with_buckets(sizes: Sizes) -> Sizes {
    Sizes { buckets: sizes.blocks, ..sizes }
}
