//! Reading: a certified copy, or a validated miss.
//!
//! **G1.** A match of hash and place in one 16-byte load is a candidate. The copy counts only if
//! the head's generation is the cell's before and after it: a record, and with it its further
//! blocks, is reused only after its generation moved on (`free` F2).
//! **G2.** Whole keys are compared. A candidate with another key is passed over; the search goes
//! on.
//! **G3.** A candidate with the right key that is outlived ends the search as a miss.
//! **G4.** A miss is believed if the bucket's control word was free and the same before and after
//! the search. Tiers are searched from young to old; what ends the search in one is not looked for
//! in the next.
//! **G5.** A hit stores nothing but the word of use of its entry, if that changes, and its own
//! counters.

use super::block::{Block, Meta, Pieces};
use super::copy::copy_out;
use super::error::CacheError;
use super::spaces::Space;
use super::stored::Seen;
use super::view::View;
use crate::sync::prefetch::prefetch_read;
use crate::sync::{AtomicU64, Ordering, fence};
use crate::tier_cache::MapError;
use crate::tier_cache::map::Map;
use crate::tier_cache::memory::Record;
use crate::tier_cache::step::{Point, crash_point};
use crate::tier_cache::wait::Wait;
use crate::tier_cache::word::{Cbits, InputHash, Link, RecordWord};
use std::time::Duration;

/// Receives the bytes of a value. It may be called several times for one read; the last call
/// counts.
pub(super) trait Target {
    /// Takes `bytes` bytes out of the words that follow. False: the words ended early.
    fn take(&mut self, bytes: usize, pieces: &mut Pieces<'_>) -> bool;

    /// Takes a value that does not lie in the segment.
    fn fill(&mut self, value: &[u8]);
}

/// Only whether the key is there.
pub(super) struct Nothing;

impl Target for Nothing {
    fn take(&mut self, _: usize, _: &mut Pieces<'_>) -> bool {
        true
    }

    fn fill(&mut self, _: &[u8]) {}
}

/// As much of a value as a slice holds, and how long it is.
pub(super) struct Part<'p> {
    pub(super) place: &'p mut [u8],
    pub(super) length: usize,
}

impl Target for Part<'_> {
    fn take(&mut self, bytes: usize, pieces: &mut Pieces<'_>) -> bool {
        self.length = bytes;
        let end = bytes.min(self.place.len());
        let mut rest = &mut self.place[..end];
        while !rest.is_empty() {
            let Some(piece) = pieces.take(rest.len().div_ceil(8)) else { return false };
            let (now, later) = rest.split_at_mut(rest.len().min(piece.len() * 8));
            let (whole, part) = piece.split_at(now.len() / 8);
            // SAFETY: so many whole words fit into `now`.
            unsafe { copy_out(whole, now.as_mut_ptr()) };
            for (place, word) in now[whole.len() * 8..].chunks_mut(8).zip(part) {
                // ORDERING: Relaxed: certified by the second look at the generation (G1).
                place.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes()[..place.len()]);
            }
            rest = later;
        }
        true
    }

    fn fill(&mut self, value: &[u8]) {
        self.length = value.len();
        let end = value.len().min(self.place.len());
        self.place[..end].copy_from_slice(&value[..end]);
    }
}

impl Target for Vec<u8> {
    #[inline(always)]
    fn take(&mut self, bytes: usize, pieces: &mut Pieces<'_>) -> bool {
        self.clear();
        self.reserve(bytes.next_multiple_of(8));
        while self.len() < bytes {
            let Some(piece) = pieces.take((bytes - self.len()).div_ceil(8)) else { return false };
            append(self, piece, bytes);
        }
        true
    }

    fn fill(&mut self, value: &[u8]) {
        self.clear();
        self.extend_from_slice(value);
    }
}

/// Appends words until `bytes` are there.
#[inline(always)]
fn append(out: &mut Vec<u8>, words: &[AtomicU64], bytes: usize) {
    let from = out.len();
    debug_assert!(out.capacity() >= from + words.len() * 8);
    // SAFETY: the vector has room for whole words (reserved by the caller).
    let to = unsafe { out.as_mut_ptr().add(from) };
    // SAFETY: as above.
    unsafe { copy_out(words, to) };
    let len = (from + words.len() * 8).min(bytes);
    // SAFETY: all bytes up to there have just been written.
    unsafe { out.set_len(len) };
}

/// What one candidate turned out to be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tried {
    Hit(Hit),
    Outlived,
    Other,
    Stale,
    /// Certified, and yet not what was stored.
    Damaged,
}

/// A certified read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    pub(super) link: Link,
    pub(super) expiry: u64,
    /// Its word of use.
    pub(super) used: u64,
    pub(super) tier: u8,
}

/// What a search of memory came to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sought {
    Hit(Hit),
    /// The key is there, and outlived.
    Gone,
    /// It is not there. What the bucket's book said at that moment.
    Missed(Seen),
}

/// The words of a key, the last one padded.
#[inline(always)]
pub(super) fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(8).map(|chunk| match chunk.try_into() {
        Ok(whole) => u64::from_le_bytes(whole),
        Err(_) => {
            let mut padded = [0; 8];
            padded[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(padded)
        }
    })
}

/// The key's words are the next ones of the payload.
#[inline(always)]
fn same_key(pieces: &mut Pieces<'_>, key: &[u8]) -> bool {
    let mut rest = key;
    while !rest.is_empty() {
        let Some(piece) = pieces.take(rest.len().div_ceil(8)) else { return false };
        let (now, later) = rest.split_at(rest.len().min(piece.len() * 8));
        rest = later;
        // ORDERING: Relaxed: certified by the second look at the generation (G1).
        if !words_of(now).zip(piece).all(|(word, at)| at.load(Ordering::Relaxed) == word) {
            return false;
        }
    }
    true
}

impl<'a> View<'a> {
    pub(super) fn has_key(&self, head: Block<'a>, key: &[u8]) -> bool {
        same_key(&mut Pieces::of(self.memory, head), key)
    }

    /// Reads one candidate (G1 to G3).
    #[inline(always)]
    pub(super) fn attempt(
        &self,
        link: Link,
        space: Space,
        key: &[u8],
        target: &mut impl Target,
    ) -> Tried {
        let Ok(record) = self.memory.record(link.record) else { return Tried::Stale };
        crash_point!(Point::ReadRecord);
        let block = Block::of(record);
        if let Some(second) = block.0.get(8) {
            prefetch_read(second);
        }
        if record.state().generation() != link.generation {
            return Tried::Stale;
        }
        let meta = block.meta();
        let mut pieces = Pieces::of(self.memory, block);
        let same = meta.of_key() == Meta::new(key.len(), space.number(), 0).of_key()
            && same_key(&mut pieces, key);
        crash_point!(Point::ReadValue);
        let whole =
            same && meta.value() <= self.sizes.longest() && target.take(meta.value(), &mut pieces);
        let sound = !same || self.has_sum(link, block);
        let outlived = same && self.is_outlived(block, meta);
        // ORDERING: Relaxed: as in `View::tick`.
        let used = record.tick().load(Ordering::Relaxed);
        let expiry = block.expiry();
        // ORDERING: Acquire fence: if any word above came from a later use of its block, the load
        // below sees a later generation. Partner: the Release fence of whoever took the block.
        fence(Ordering::Acquire);
        crash_point!(Point::ReadAgain);
        if RecordWord(record.word().load(Ordering::Relaxed)).generation() != link.generation {
            return Tried::Stale;
        }
        match (same, outlived, whole) {
            (false, ..) => Tried::Other,
            (_, true, _) => Tried::Outlived,
            _ if !sound => Tried::Damaged,
            (_, _, true) => Tried::Hit(Hit { link, expiry, used, tier: 0 }),
            // Certified, and yet too short: no operation writes that.
            _ => Tried::Stale,
        }
    }

    /// Every candidate of the bucket in every tier, bases and members of both slices.
    #[inline]
    pub(super) fn read_all(
        &self,
        input: InputHash,
        space: Space,
        key: &[u8],
        target: &mut impl Target,
    ) -> Tried {
        match self.read_tier(input.bucket() as usize, input, space, key, target) {
            Tried::Other if self.memory.tiers() > 1 => self.read_older(input, space, key, target),
            found => found,
        }
    }

    #[inline(never)]
    fn read_older(
        &self,
        input: InputHash,
        space: Space,
        key: &[u8],
        target: &mut impl Target,
    ) -> Tried {
        let home = |tier| self.memory.home(tier, input.bucket());
        // Their lines are waited for together.
        for tier in 1..self.memory.tiers() {
            if let Some(cell) = self.memory.cells().get(self.memory.at(0, home(tier))) {
                prefetch_read(cell);
            }
        }
        for tier in 1..self.memory.tiers() {
            match self.read_tier(home(tier), input, space, key, target) {
                Tried::Other => {}
                Tried::Hit(hit) => return Tried::Hit(Hit { tier: tier as u8, ..hit }),
                found => return found,
            }
        }
        Tried::Other
    }

    /// The candidates of a bucket in the tier where its home is.
    #[inline(always)]
    fn read_tier(
        &self,
        home: usize,
        input: InputHash,
        space: Space,
        key: &[u8],
        target: &mut impl Target,
    ) -> Tried {
        for slice in 0..2 {
            crash_point!(Point::ReadCell);
            let base = self.memory.cell(self.memory.at(slice, home));
            if !base.cbits.is_base() {
                continue;
            }
            let mut members = base.cbits.members() | 1;
            while members != 0 {
                let offset = members.trailing_zeros() as usize;
                members &= members - 1;
                crash_point!(Point::ReadCell);
                let cell = match offset {
                    0 => base,
                    _ => self.memory.cell(self.memory.at(slice, home + offset)),
                };
                if cell.key != input.hash() || offset != 0 && cell.cbits != Cbits::member(offset) {
                    continue;
                }
                match self.attempt(cell.link, space, key, target) {
                    Tried::Other => {}
                    found => return found,
                }
            }
        }
        Tried::Other
    }

    /// The general case (G4). `map`: the caller can write, so it recovers a dead owner it would
    /// have to wait for.
    pub(super) fn read_slow(
        &self,
        map: Option<&Map<'_>>,
        timeout: Duration,
        input: InputHash,
        space: Space,
        key: &[u8],
        target: &mut impl Target,
    ) -> Result<Option<Hit>, CacheError> {
        match self.seek(map, timeout, input, space, key, target)? {
            Sought::Hit(hit) => Ok(Some(hit)),
            _ => Ok(None),
        }
    }

    /// The same, and what a miss saw.
    #[cold]
    #[inline(never)]
    pub(super) fn seek(
        &self,
        map: Option<&Map<'_>>,
        timeout: Duration,
        input: InputHash,
        space: Space,
        key: &[u8],
        target: &mut impl Target,
    ) -> Result<Sought, CacheError> {
        let mut wait = Wait::new(timeout);
        let home = input.bucket();
        loop {
            crash_point!(Point::ReadControl);
            let before = self.memory.control(home);
            let tried = self.read_all(input, space, key, target);
            let seen = self.seen(home);
            crash_point!(Point::ReadAgain);
            // ORDERING: the cell loads are Acquire, and the fence makes the looks at generations
            // so: a search that saw a store under the word sees the word locked or one version on.
            // Partner: the Release stores under the word.
            fence(Ordering::Acquire);
            let after = self.memory.control(home);
            let quiet = before == after && before.owner().is_none();
            match (tried, quiet) {
                (Tried::Hit(hit), _) => return Ok(Sought::Hit(hit)),
                (Tried::Damaged, _) => return Err(CacheError::Corrupt("sum of an entry")),
                (Tried::Outlived, _) => return Ok(Sought::Gone),
                (Tried::Other, true) => return Ok(Sought::Missed(seen)),
                // Under a quiet word no cell of the bucket names a record that has moved on.
                (Tried::Stale, true) => return Err(CacheError::Corrupt("cell without record")),
                (_, false) => match (after.owner(), map) {
                    (Some(owner), Some(map)) => map.wait_for(owner, &mut wait)?,
                    (Some(_), None) => wait.pause()?,
                    (None, _) => {}
                },
            }
        }
    }
}

/// The map's errors that a search can meet.
impl From<CacheError> for MapError {
    fn from(error: CacheError) -> Self {
        match error {
            CacheError::Busy => Self::Busy,
            CacheError::Full => Self::Full,
            CacheError::Forked => Self::Forked,
            CacheError::Corrupt(what) => Self::Corrupt(what),
            _ => Self::Corrupt("an error of the cache"),
        }
    }
}

/// The record of a link, if it is still of that generation.
pub(super) fn current<'a>(view: &View<'a>, link: Link) -> Option<Record<'a>> {
    let record = view.memory.record(link.record).ok()?;
    (record.state().generation() == link.generation).then_some(record)
}
