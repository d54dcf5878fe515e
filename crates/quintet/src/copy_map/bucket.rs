//! A bucket: a header, and four lanes that lie elsewhere.
//!
//! ```text
//!   headers  [ version 32 | passed 4 | tags 4 × 7 ] ...            one word for each bucket, eight to a line
//!   lanes    [ lane 0 | lane 1 | lane 2 | lane 3 ] ...             WORDS words each
//!
//!   version, even ──overwrite: odd (Relaxed) · Release fence · words (Relaxed) · even again, + 2 (Release)──▶
//!   tag 0         ──fill:  Release fence · words (Relaxed) · header with the tag, version + 2 (Release)──▶ tag t
//!   tag t         ──clear: header without the tag, version + 2 (Release)──▶ tag 0
//!   one word      ──overwrite of a value that lies in it: that word (Release)──▶
//! ```
//!
//! **B1.** A bucket is written by one thread at a time: the owner of its shard's lock, or one who
//! is alone
//! with the table.
//! **B2.** A reader loads the header (Acquire), copies the words of a lane whose tag it seeks
//! (Relaxed), and
//! loads the header once more, behind an Acquire fence. If it is the same, and even, the words are
//! of one
//! moment: whoever changes the words of a lane has changed the header before, and there is a
//! Release fence
//! in between. A reader that has copied a changed word finds the changed header: fence to fence.
//! Versions
//! come round after 2^31 changes of one bucket within one look.
//! **B3.** The words of a lane with tag 0 belong to nobody: to fill it they are written under the
//! header
//! that says so. A header that still named the lane is gone (B2).
//! **B4.** A value that lies in one word is overwritten by one store. Header and key stay: a reader
//! has the
//! value before, or the one after, and is not disturbed.
//! **B5.** `passed` counts the entries that were put behind this bucket on their way from home. At
//! 15 it
//! stays: it says that there may be some. It changes without a version: no words depend on it.
//! **B6.** Zero bytes are an empty bucket.
//! **B7.** The tag of a used lane is not 0, and that of a free one is. The search for a tag names
//! the lanes
//! that have it and no others, so never a free one.
//!
//! Tags, the count and the version are one word: a look at a bucket that has nothing is one load,
//! with
//! nothing to be confirmed, and tags are compared in a register. Headers lie apart from the lanes:
//! two bytes
//! for an entry, so that those of a million stay in the cache, and a miss asks nothing else. Where
//! header and
//! lanes are both follow from the hash, so that both are fetched at the same time.

use super::plain::{Entry, MOST_WORDS, Plain, Shape};
use crate::region::heap::Zeroed;
use crate::sync::prefetch::{prefetch_read, prefetch_write};
use crate::sync::{AtomicU64, Ordering, fence};
use std::marker::PhantomData;
use std::ptr;

/// Lanes of a bucket at most: so many tags fit into a header.
pub(super) const MOST_LANES: usize = 4;

/// Words of a line.
pub(super) const LINE_WORDS: usize = 8;

/// A cache line of words.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Line([AtomicU64; LINE_WORDS]);

// Buckets are found by counting words.
const _: () = assert!(size_of::<Line>() == LINE_WORDS * size_of::<AtomicU64>());

// SAFETY: natively an array of atomic integers, for which zero bytes are zero.
unsafe impl Zeroed for Line {
    fn zeroed() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header(u64);

/// Some lanes: the highest bit of each one's tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lanes(u32);

/// Bits of a tag.
const TAG_BITS: u32 = 7;
/// The lowest bit of each tag.
const EACH: u32 = 1 | 1 << TAG_BITS | 1 << (2 * TAG_BITS) | 1 << (3 * TAG_BITS);
/// The highest bit of each tag.
const TOPS: u32 = EACH << (TAG_BITS - 1);
const TAG: u64 = (1 << TAG_BITS) - 1;
const TAGS: u64 = EACH as u64 * TAG;
const PASSED: u64 = TAGS + 1;
/// The count stays there.
const MANY: u64 = 15;
const VERSION: u64 = 1 << 32;

/// The lanes whose tag is 0 in these bits.
#[inline(always)]
const fn zeros(tags: u32) -> u32 {
    let below = EACH * (TAG as u32 >> 1);
    // No tag carries into the next one.
    !(((tags & below) + below) | tags) & TOPS
}

/// The tag of a hash (B7): its top bits that do not decide on the home, but in very large tables.
#[inline(always)]
pub(super) const fn tag_of(hash: u64) -> u8 {
    let tag = (hash >> 18) & TAG;
    tag as u8 | (tag == 0) as u8
}

impl Header {
    /// That of an empty bucket.
    pub(super) const NONE: Self = Self(0);

    /// One that a writer has left for a moment: who has the lock never finds it.
    pub(super) const BUSY: Self = Self(VERSION);

    /// A writer is at work.
    #[inline(always)]
    pub(super) const fn is_busy(self) -> bool {
        self.0 & VERSION != 0
    }

    /// The lanes with this tag, which is not 0 (B7).
    #[inline(always)]
    const fn lanes_of(self, tag: u8) -> Lanes {
        Lanes(zeros(self.0 as u32 ^ (tag as u32 * EACH)))
    }

    /// The free lanes, of those that a bucket of `lanes` has.
    #[inline(always)]
    const fn free(self, lanes: usize) -> Lanes {
        Lanes(zeros(self.0 as u32) & ((1 << (TAG_BITS * lanes as u32)) - 1))
    }

    /// The used lanes.
    #[inline(always)]
    const fn used(self) -> Lanes {
        Lanes(!zeros(self.0 as u32) & TOPS)
    }

    /// Entries may lie behind this bucket (B5).
    #[inline(always)]
    pub(super) const fn is_passed(self) -> bool {
        self.0 & (MANY * PASSED) != 0
    }

    #[inline(always)]
    const fn tag(self, lane: usize) -> u8 {
        (self.0 >> (TAG_BITS as usize * lane) & TAG) as u8
    }

    /// The same after a change, with this tag in a lane.
    #[inline(always)]
    const fn with(self, lane: usize, tag: u8) -> Self {
        let place = TAG_BITS as usize * lane;
        let bits = self.0 & !(TAG << place) | (tag as u64) << place;
        Self(bits.wrapping_add(2 * VERSION))
    }

    /// The same after a change that freed all lanes.
    #[inline(always)]
    const fn without_tags(self) -> Self {
        Self((self.0 & !TAGS).wrapping_add(2 * VERSION))
    }

    /// The same while words are changed, and after that: the next version.
    #[inline(always)]
    const fn next(self) -> Self {
        Self(self.0.wrapping_add(VERSION))
    }

    /// One more, or one less, behind this bucket.
    const fn counted(self, more: bool) -> Self {
        match ((self.0 / PASSED) & MANY, more) {
            (MANY, _) | (0, false) => self,
            (_, true) => Self(self.0 + PASSED),
            (_, false) => Self(self.0 - PASSED),
        }
    }
}

impl Iterator for Lanes {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let lane = self.0.trailing_zeros() / TAG_BITS;
        (self.0 != 0).then(|| {
            self.0 &= self.0 - 1;
            lane as usize
        })
    }
}

/// A writer was at work on the bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disturbed;

/// A bucket of a table.
pub(super) struct Bucket<'t, K, V> {
    head: &'t AtomicU64,
    words: &'t [AtomicU64],
    types: PhantomData<fn(K, V)>,
}

impl<K, V> Clone for Bucket<'_, K, V> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Bucket<'_, K, V> {}

impl<'t, K: Plain, V: Plain> Bucket<'t, K, V> {
    /// Words of the lanes of a bucket.
    pub(super) const WORDS: usize = Shape::<K, V>::LANES * Shape::<K, V>::WORDS;

    /// The bucket of a number.
    ///
    /// # Safety
    /// The heads have a word of that number, and the lines have [`WORDS`](Self::WORDS) for it and
    /// for each before it.
    #[inline(always)]
    pub(super) unsafe fn of(heads: &'t [AtomicU64], lines: &'t [Line], number: usize) -> Self {
        debug_assert!((number + 1) * Self::WORDS <= lines.len() * LINE_WORDS);
        // SAFETY: the caller's promise.
        let head = unsafe { heads.get_unchecked(number) };
        let first = lines.as_ptr().cast::<AtomicU64>().wrapping_add(number * Self::WORDS);
        // SAFETY: as above; lines are words without gaps, borrowed for as long.
        let words = unsafe { std::slice::from_raw_parts(first, Self::WORDS) };
        Self { head, words, types: PhantomData }
    }

    /// Where its header is.
    #[inline(always)]
    pub(super) fn head(self) -> *const u8 {
        ptr::from_ref(self.head).cast()
    }

    #[inline(always)]
    fn word(self, lane: usize, index: usize) -> &'t AtomicU64 {
        let place = lane * Shape::<K, V>::WORDS + index;
        debug_assert!(place < Self::WORDS && index < Shape::<K, V>::WORDS);
        // SAFETY: lanes come out of a header, which names those of the shape only, or from a loop
        // over them.
        unsafe { self.words.get_unchecked(place) }
    }

    /// The header, and with it all that it names.
    #[inline(always)]
    pub(super) fn header(self) -> Header {
        // ORDERING: Acquire: partners are the Release stores of `store`: the words that a header
        // names come with it.
        Header(self.head.load(Ordering::Acquire))
    }

    /// The header for who has the lock (B1).
    #[inline(always)]
    pub(super) fn own_header(self) -> Header {
        // ORDERING: Relaxed: written under the same lock.
        Header(self.head.load(Ordering::Relaxed))
    }

    /// The lanes that may have this tag, by a header: all that have it, and no others (B7).
    #[inline(always)]
    pub(super) fn lanes_of(self, header: Header, tag: u8) -> Lanes {
        header.lanes_of(tag)
    }

    /// The first free lane, by a header.
    #[inline(always)]
    pub(super) fn free_lane(self, header: Header) -> Option<usize> {
        header.free(Shape::<K, V>::LANES).next()
    }

    /// The lanes that a header says are used.
    #[inline(always)]
    pub(super) fn used(self, header: Header) -> Lanes {
        header.used()
    }

    /// The words of a lane, each of its own moment.
    #[inline(always)]
    fn copy(self, lane: usize) -> Entry {
        let mut entry = [0; MOST_WORDS];
        // By number, which is a constant: this becomes so many loads, and no loop.
        #[allow(clippy::needless_range_loop)]
        for index in 0..Shape::<K, V>::WORDS {
            // ORDERING: Relaxed: confirmed by the header afterwards (B2), or by the lock.
            entry[index] = self.word(lane, index).load(Ordering::Relaxed);
        }
        entry
    }

    /// The entry of a lane that the header names, if it is still the header (B2).
    #[inline(always)]
    pub(super) fn read(self, header: Header, lane: usize) -> Result<Entry, Disturbed> {
        let entry = self.copy(lane);
        if self.is_still(header) { Ok(entry) } else { Err(Disturbed) }
    }

    /// Whether what was copied since the header was loaded is of one moment (B2).
    #[inline(always)]
    pub(super) fn is_still(self, header: Header) -> bool {
        if cfg!(quintet_mutation = "torn-copy") {
            return true;
        }
        // ORDERING: Acquire fence: partners are the Release fences of `fill` and `overwrite`, and
        // the Release store of a single word.
        fence(Ordering::Acquire);
        // ORDERING: Relaxed: behind the fence.
        self.head.load(Ordering::Relaxed) == header.0 && !header.is_busy()
    }

    /// The entry of a lane, for who has the lock (B1), or looks at the header afterwards.
    #[inline(always)]
    pub(super) fn own_entry(self, lane: usize) -> Entry {
        self.copy(lane)
    }

    /// Whether a lane is used and has the key of this entry, for who has the lock.
    #[inline(always)]
    pub(super) fn holds(self, lane: usize, entry: &Entry) -> bool {
        self.own_header().tag(lane) != 0 && Shape::<K, V>::same_key(&self.copy(lane), entry)
    }

    #[inline(always)]
    fn store(self, header: Header) {
        // ORDERING: Release: the words that it names come first; partner: `header`.
        self.head.store(header.0, Ordering::Release);
    }

    #[inline(always)]
    fn store_words(self, lane: usize, entry: &Entry, from: usize) {
        #[allow(clippy::needless_range_loop)] // as in `copy`
        for index in from..Shape::<K, V>::WORDS {
            // ORDERING: Relaxed: between a fence and a Release store of the header.
            self.word(lane, index).store(entry[index], Ordering::Relaxed);
        }
    }

    /// Puts an entry into a lane that is free by the header (B3). By the owner of the lock, as all
    /// that follows.
    #[inline(always)]
    pub(super) fn fill(self, header: Header, lane: usize, tag: u8, entry: &Entry) {
        debug_assert!(header == self.own_header());
        debug_assert!(header.tag(lane) == 0 && tag != 0 && !header.is_busy());
        // ORDERING: Release: who copies a word that follows finds the header that freed the lane,
        // or a later one; partner: `read`.
        fence(Ordering::Release);
        self.store_words(lane, entry, 0);
        self.store(header.with(lane, tag));
    }

    /// Frees a lane.
    #[inline(always)]
    pub(super) fn clear(self, lane: usize) {
        self.store(self.own_header().with(lane, 0));
    }

    /// Asks the cache for the lanes, which will be read or changed soon.
    #[inline(always)]
    pub(super) fn prefetch(self, write: bool) {
        let ask: fn(*const u8) = if write { prefetch_write } else { prefetch_read };
        for line in 0..Self::WORDS.div_ceil(LINE_WORDS) {
            ask(self.words.as_ptr().wrapping_add(line * LINE_WORDS).cast());
        }
    }

    /// Frees all lanes, by the header that the caller has just looked at.
    #[inline(always)]
    pub(super) fn clear_all(self, header: Header) {
        self.store(header.without_tags());
    }

    /// Replaces the value in a lane by that of an entry with the same key.
    #[inline(always)]
    pub(super) fn overwrite(self, lane: usize, entry: &Entry) {
        let from = Shape::<K, V>::VALUE_FROM;
        if Shape::<K, V>::VALUE_IN_ONE {
            if from < Shape::<K, V>::WORDS {
                // ORDERING: Release: what the writer did before comes with the value; partner: the
                // fence of `read` (B4).
                self.word(lane, from).store(entry[from], Ordering::Release);
            }
            return;
        }
        let busy = self.own_header().next();
        // ORDERING: Relaxed: the fence behind it orders it before the words.
        self.head.store(busy.0, Ordering::Relaxed);
        // ORDERING: Release: who copies a word that follows finds the odd header, or a later one;
        // partner: `read`.
        fence(Ordering::Release);
        self.store_words(lane, entry, from);
        self.store(busy.next());
    }

    /// Counts an entry that lies behind this bucket (B5).
    #[inline(always)]
    pub(super) fn count_passed(self, more: bool) {
        self.store(self.own_header().counted(more));
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    type Pair = Shape<u64, [u64; 2]>;

    fn bucket<'t>(heads: &'t [AtomicU64], lines: &'t [Line; 2]) -> Bucket<'t, u64, [u64; 2]> {
        // SAFETY: two lines are more than the lanes of a bucket.
        unsafe { Bucket::of(&heads[..1], lines, 0) }
    }

    fn header(tags: [u64; 4], above: u64) -> Header {
        Header(tags.into_iter().rev().fold(0, |all, tag| all << TAG_BITS | tag) | above)
    }

    /// Whatever the tags are: those that are sought are named, and no other lane ever is (B7).
    #[test]
    fn tags_are_found_in_their_lanes_only() {
        let some = [0, 1, 2, 3, 0x3f, 0x40, 0x41, 0x7e, 0x7f];
        for number in 0..some.len().pow(4) {
            let tags = [1, 9, 81, 729].map(|by| some[number / by % 9]);
            for above in [0, (MANY * PASSED) | VERSION, u64::MAX << 28] {
                let header = header(tags, above);
                let lanes = |tag| (0..4).filter(move |lane| tags[*lane] == tag);
                for tag in some {
                    assert!(header.lanes_of(tag as u8).eq(lanes(tag)), "{header:?} {tag}");
                }
                assert!(header.free(4).eq(lanes(0)));
                assert!(header.free(1).eq(lanes(0).filter(|lane| *lane == 0)));
                assert!(header.used().eq((0..4).filter(|lane| tags[*lane] != 0)));
                assert!((0..4).all(|lane| u64::from(header.tag(lane)) == tags[lane]));
            }
        }
    }

    #[test]
    fn no_hash_has_the_tag_of_a_free_lane() {
        let mut seen = [false; 128];
        (0..128).for_each(|bits: u64| seen[usize::from(tag_of(bits << 18))] = true);
        assert!(!seen[0] && seen[1..].iter().all(|seen| *seen));
        assert_ne!(tag_of(u64::MAX), 0);
    }

    #[test]
    fn a_count_of_many_stays() {
        let mut header = Header(TAGS);
        assert!(!header.is_passed() && header.counted(false) == header);
        (0..14).for_each(|_| header = header.counted(true));
        assert!(header.is_passed() && header.counted(false).counted(true) == header);
        (0..14).for_each(|_| header = header.counted(false));
        assert_eq!(header, Header(TAGS));
        (0..40).for_each(|_| header = header.counted(true));
        assert_eq!(header.counted(false), header);
        assert_eq!(header.0 & TAGS, TAGS);
        assert!(!header.is_busy());
    }

    /// Every change that a copy may meet half-way gives the header another version.
    #[test]
    fn a_copy_across_a_change_is_refused() {
        let (heads, lines) = ([AtomicU64::new(0)], [Line::zeroed(), Line::zeroed()]);
        let bucket = bucket(&heads, &lines);
        bucket.fill(bucket.own_header(), 1, 0x49, &Pair::pack(7, [1, 2]));
        let seen = bucket.header();
        assert_eq!(bucket.lanes_of(seen, 0x49).collect::<Vec<_>>(), [1]);
        assert!(Pair::same(&bucket.read(seen, 1).unwrap(), &Pair::pack(7, [1, 2])));
        bucket.overwrite(1, &Pair::pack(7, [3, 4]));
        assert!(bucket.read(seen, 1).is_err());
        let seen = bucket.header();
        bucket.clear(1);
        assert!(bucket.read(seen, 1).is_err());
        bucket.fill(bucket.own_header(), 1, 0x49, &Pair::pack(8, [1, 2]));
        assert!(bucket.read(seen, 1).is_err(), "the lane is another's");
        assert!(bucket.read(bucket.header().next(), 1).is_err(), "a writer is at work");
        assert!(bucket.holds(1, &Pair::pack(8, [0, 0])));
        assert!(!bucket.holds(1, &Pair::pack(7, [1, 2])) && !bucket.holds(0, &[0; 6]));
    }

    #[test]
    fn versions_come_round_without_touching_the_rest() {
        let header = Header(!VERSION);
        assert!(!header.is_busy() && header.with(0, 0x7f).0 == TAGS | (MANY * PASSED));
    }
}
