//! Blocks: the records of the map below, each a fixed number of words.
//!
//! | word | head of an entry | further block |
//! |---|---|---|
//! | 0 | state, seat, generation | the same |
//! | 1 | hash and bucket | 63..32 head's index, 31..0 head's generation |
//! | 2 | 63..47 key length, 46 flight, 45..30 namespace, 29..0 value length | next block + 1 |
//! | 3 | word of use: tick of the last one, or how many ([`policy`](super::policy)) | not used: a late reader may store here |
//! | 4 | expiry in milliseconds, 0 for never | payload |
//! | 5 | 63..32 namespace's generation, 31..0 next block + 1 | payload |
//! | 6.. | payload | payload |
//!
//! The payload is the key, padded to whole words, then the value, padded likewise.

use super::layout::Sizes;
use crate::sync::prefetch::prefetch_write;
use crate::sync::{AtomicU64, Ordering};
use crate::tier_cache::MapError;
use crate::tier_cache::memory::{Memory, Record};
use crate::tier_cache::word::{Link, RecordState};

pub(super) const HEAD_HEADER: usize = 6;
pub(super) const CHAIN_HEADER: usize = 4;

const META: usize = 2;
const EXPIRY: usize = 4;
const NEXT: usize = 5;
const CHAIN_NEXT: usize = 2;

/// The bits of a value's length.
const VALUE: u64 = super::layout::MAX_VALUE as u64;

/// Lengths and namespace of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Meta(pub(super) u64);

impl Meta {
    #[inline(always)]
    pub(super) fn new(key: usize, space: u32, value: usize) -> Self {
        Self((key as u64) << 47 | (space as u64 & 0x1_ffff) << 30 | value as u64 & VALUE)
    }

    pub(super) fn key(self) -> usize {
        (self.0 >> 47) as usize
    }

    /// The number of the namespace, with the bit that tells a flight.
    pub(super) fn space(self) -> u32 {
        (self.0 >> 30) as u32 & 0x1_ffff
    }

    #[inline(always)]
    pub(super) fn value(self) -> usize {
        (self.0 & VALUE) as usize
    }

    /// Everything but the value's length.
    #[inline(always)]
    pub(super) fn of_key(self) -> u64 {
        self.0 >> 30
    }
}

/// The name a chained block carries: its head.
pub(super) fn owner_word(head: Link) -> u64 {
    head.word()
}

/// The words of a block, as a head or a further block sees them.
#[derive(Clone, Copy)]
pub(super) struct Block<'a>(pub(super) &'a [AtomicU64]);

impl<'a> Block<'a> {
    #[inline(always)]
    pub(super) fn of(record: Record<'a>) -> Self {
        Self(record.words())
    }

    #[inline(always)]
    fn load(self, at: usize) -> u64 {
        // ORDERING: Relaxed: certified by the generation on both sides, or read under the control
        // word.
        self.0[at].load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn meta(self) -> Meta {
        Meta(self.load(META))
    }

    pub(super) fn meta_word(self) -> &'a AtomicU64 {
        &self.0[META]
    }

    #[inline(always)]
    pub(super) fn expiry(self) -> u64 {
        self.load(EXPIRY)
    }

    pub(super) fn expiry_word(self) -> &'a AtomicU64 {
        &self.0[EXPIRY]
    }

    /// The namespace's generation and the next block, of a head.
    #[inline(always)]
    pub(super) fn next_and_space(self) -> (Option<u32>, u32) {
        let word = self.load(NEXT);
        ((word as u32).checked_sub(1), (word >> 32) as u32)
    }

    pub(super) fn next_word(self) -> &'a AtomicU64 {
        &self.0[NEXT]
    }

    pub(super) fn chain_next(self) -> Option<u32> {
        (self.load(CHAIN_NEXT) as u32).checked_sub(1)
    }

    pub(super) fn chain_next_word(self) -> &'a AtomicU64 {
        &self.0[CHAIN_NEXT]
    }

    pub(super) fn owner(self) -> Link {
        Link::from_word(self.load(1))
    }

    pub(super) fn owner_word(self) -> &'a AtomicU64 {
        &self.0[1]
    }
}

/// The payload of an entry, piece by piece. Every index is checked; a chain that ends early ends
/// the walk.
pub(super) struct Pieces<'a> {
    memory: Memory<'a>,
    words: &'a [AtomicU64],
    next: Option<u32>,
}

impl<'a> Pieces<'a> {
    #[inline(always)]
    pub(super) fn of(memory: Memory<'a>, head: Block<'a>) -> Self {
        Self { memory, words: &head.0[HEAD_HEADER..], next: head.next_and_space().0 }
    }

    /// The next words, at most `most`.
    #[inline(always)]
    pub(super) fn take(&mut self, most: usize) -> Option<&'a [AtomicU64]> {
        if self.words.is_empty() {
            let block = Block::of(self.memory.record(self.next?).ok()?);
            self.next = block.chain_next();
            self.words = &block.0[CHAIN_HEADER..];
        }
        let (piece, rest) = self.words.split_at(most.min(self.words.len()));
        self.words = rest;
        Some(piece)
    }
}

/// How far ahead of a walk along a chain memory is asked for.
const AHEAD: u32 = 16;

/// The further blocks of an entry that are its own, in order.
pub(super) fn chain(
    memory: Memory<'_>,
    sizes: Sizes,
    head: Link,
) -> Result<Vec<(u32, u64)>, MapError> {
    let block = Block::of(memory.record(head.record)?);
    let meta = block.meta();
    let expected = sizes.blocks_for(meta.key(), meta.value()).min(sizes.blocks as usize);
    let mut found = Vec::with_capacity(expected);
    let mut next = block.next_and_space().0;
    while let Some(index) = next {
        let Ok(record) = memory.record(index) else { break };
        // Blocks of an entry mostly lie in a row.
        if let Ok(ahead) = memory.record(index.saturating_add(AHEAD)) {
            prefetch_write(ahead.word());
        }
        let (word, block) = (record.state(), Block::of(record));
        let ours = word.state() == Some(RecordState::Chained) && block.owner() == head;
        if !ours || found.len() >= sizes.blocks as usize {
            break;
        }
        found.push((index, word.0));
        next = block.chain_next();
    }
    Ok(found)
}
