//! The quick half of a lookup: the key lies in a base of its bucket, its entry in one block, and nothing is unusual.
//!
//! Everything else says "no" here and is looked at again by [`read`](super::read), whose rules hold here too. What decides the
//! time of a lookup in a large cache is how many of them the processor keeps in flight, so every instruction counts.

use super::block::{HEAD_HEADER, Meta};
use super::layout::SPACE_WORDS;
use super::view::View;
use crate::sync::prefetch::prefetch_read;
use crate::sync::{AtomicU64, Ordering, fence};
use crate::tier_cache::word::{Cell, Link};

/// A hit, and the tick it carried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quick {
    pub(super) link: Link,
    pub(super) tick: u32,
}

#[inline(always)]
fn load(word: &AtomicU64) -> u64 {
    // ORDERING: Relaxed: certified by the second look at the generation (G1).
    word.load(Ordering::Relaxed)
}

/// The words of a key are these. The padding of the last one is zero.
#[inline(always)]
fn same(key: &[u8], words: &[AtomicU64]) -> bool {
    let mut different = 0;
    let chunks = key.chunks_exact(8);
    let rest = chunks.remainder();
    for (chunk, word) in chunks.zip(words) {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(chunk);
        different |= u64::from_le_bytes(bytes) ^ load(word);
    }
    if let ([_, ..], Some(word)) = (rest, words.last()) {
        let mut bytes = [0; 8];
        bytes[..rest.len()].copy_from_slice(rest);
        different |= u64::from_le_bytes(bytes) ^ load(word);
    }
    different == 0
}

/// Replaces the content of a vector by the first `bytes` of these words.
#[inline(always)]
fn fill(value: &mut Vec<u8>, words: &[AtomicU64], bytes: usize) {
    if value.capacity() < words.len() * 8 {
        value.reserve(words.len() * 8 - value.len().min(words.len() * 8));
    }
    value.clear();
    if value.capacity() < words.len() * 8 {
        return;
    }
    let to = value.as_mut_ptr();
    for (index, word) in words.iter().enumerate() {
        // SAFETY: word `index` lies inside the capacity, as just checked.
        let place = unsafe { to.add(8 * index) };
        // SAFETY: as above; the address need not be aligned.
        unsafe { place.cast::<u64>().write_unaligned(load(word).to_le()) };
    }
    // SAFETY: the words cover at least so many bytes, all of them just written.
    unsafe { value.set_len(bytes.min(words.len() * 8)) };
}

impl View<'_> {
    /// A certified copy of the key's value, or nothing: then nothing is known.
    #[inline(always)]
    pub(super) fn quick(&self, space: u32, key: &[u8], value: &mut Vec<u8>) -> Option<Quick> {
        let input = self.input(space, key);
        let (home, base) = (input.bucket() as usize, Cell::base_of(input.hash()));
        let selected = self.memory.select(home, Cell::KEY_AND_BASE, base)?;
        let link = Link::from_word(selected.second()?);
        let record = self.memory.record(link.record).ok()?;
        let words = record.words();
        let [_, _, meta, tick, expiry, next, payload @ ..] = words else { return None };
        // The second line of the block, whatever the first one says.
        prefetch_read(payload.last()?);
        let generation = record.state().generation();
        let meta = Meta(load(meta));
        let keys = key.len().div_ceil(8);
        let values = meta.value().div_ceil(8);
        let space_word = self.spaces.get(space as usize * SPACE_WORDS + 1)?;
        // ORDERING: Acquire; partner: the flush, as in `View::space_generation`.
        let flushes = space_word.load(Ordering::Acquire) as u32;
        let usual = generation == link.generation
            && meta.of_key() == Meta::new(key.len(), space, 0).of_key()
            && (load(next) >> 32) as u32 == flushes
            && load(expiry) == 0;
        let (Some(of_key), Some(of_value)) =
            (payload.get(..keys), payload.get(keys..keys + values))
        else {
            return None;
        };
        if !usual || !same(key, of_key) {
            return None;
        }
        fill(value, of_value, meta.value());
        let tick = load(tick) as u32;
        // ORDERING: Acquire fence: as in `View::attempt`.
        fence(Ordering::Acquire);
        let again = load(record.word()) as u32;
        (again == link.generation).then_some(Quick { link, tick })
    }
}

const _: () = assert!(HEAD_HEADER == 6);
