//! The quick half of a lookup: the key lies in its bucket in the first tier, its entry in one
//! block, and nothing is unusual.
//!
//! Everything else says "no" here and is looked at again by [`read`](super::read), whose rules hold
//! here too. What decides the time of a lookup in a large cache is how many of them the processor
//! keeps in flight, so every instruction counts.

use super::block::{HEAD_HEADER, Meta};
use super::copy::copy_out;
use super::spaces::Space;
use super::view::View;
use crate::sync::prefetch::prefetch_read;
use crate::sync::{AtomicU64, Ordering, fence};
use crate::tier_cache::word::Link;

/// What a quick look came to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Quick {
    /// The key's entry, and the word of use it carried.
    Hit { link: Link, used: u64 },
    /// The first tier names nothing with the key's hash: it is absent there, unless it was just on
    /// its way.
    Unlisted,
    /// Nothing is known.
    Unsure,
}

#[inline(always)]
fn load(word: &AtomicU64) -> u64 {
    // ORDERING: Relaxed: certified by the second look at the generation (`read` G1).
    word.load(Ordering::Relaxed)
}

/// The words of a key are these. The padding of the last one is zero.
#[inline(always)]
fn same(key: &[u8], words: &[AtomicU64]) -> bool {
    if let (Some((low, high)), [first, second]) = (halves(key), words) {
        return (low ^ load(first)) | (high ^ load(second)) == 0;
    }
    super::read::words_of(key).zip(words).all(|(word, place)| load(place) == word)
}

/// The two words of a key of sixteen bytes, the most common length of ids.
#[inline(always)]
fn halves(key: &[u8]) -> Option<(u64, u64)> {
    let key: &[u8; 16] = key.try_into().ok()?;
    let both = u128::from_le_bytes(*key);
    Some((both as u64, (both >> 64) as u64))
}

/// Replaces the content of a vector by the first `bytes` of these words.
#[inline(always)]
fn fill(value: &mut Vec<u8>, words: &[AtomicU64], bytes: usize) {
    value.clear();
    if value.capacity() < words.len() * 8 {
        value.reserve(words.len() * 8);
    }
    // SAFETY: the capacity covers all words.
    unsafe { copy_out(words, value.as_mut_ptr()) };
    debug_assert!(bytes <= words.len() * 8);
    // SAFETY: the words cover at least so many bytes (the caller rounds up to words), all of them
    // just written.
    unsafe { value.set_len(bytes) };
}

impl View<'_> {
    /// A certified copy of the key's value, if all is as usual.
    #[inline(always)]
    pub(super) fn quick(&self, space: Space, key: &[u8], value: &mut Vec<u8>) -> Quick {
        let input = self.input(space, key);
        let base = self.memory.base_link(input);
        let Some(link) = base.or_else(|| self.memory.member_link(input)) else {
            return Quick::Unlisted;
        };
        match self.quick_at(link, space, key, value) {
            Some(used) => Quick::Hit { link, used },
            None => Quick::Unsure,
        }
    }

    /// The word of use of the entry, whose value has been copied, if it is the key's.
    #[inline(always)]
    fn quick_at(&self, link: Link, space: Space, key: &[u8], value: &mut Vec<u8>) -> Option<u64> {
        let record = self.memory.record(link.record).ok()?;
        let words = record.words();
        let [_, _, meta, used, expiry, next, payload @ ..] = words else { return None };
        // The second line of the block, whatever the first one says.
        prefetch_read(payload.last()?);
        let generation = record.state().generation();
        let meta = Meta(load(meta));
        let (keys, values) = ((key.len() + 7) >> 3, (meta.value() + 7) >> 3);
        let space_word = self.life_word(space.number())?;
        // ORDERING: Acquire; partner: the flush, as in `View::space_generation`.
        let flushes = space_word.load(Ordering::Acquire) as u32;
        let usual = generation == link.generation
            && meta.of_key() == Meta::new(key.len(), space.number(), 0).of_key()
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
        let used = load(used);
        // ORDERING: Acquire fence: as in `View::attempt`.
        fence(Ordering::Acquire);
        let again = load(record.word()) as u32;
        (again == link.generation).then_some(used)
    }
}

const _: () = assert!(HEAD_HEADER == 6);
