//! A bucket: a header and up to three lanes, on one cache line or on two that are adjacent.
//!
//! ```text
//!   word 0                                     1             1 + WORDS
//!        [ version 36 | passed 4 | tags 3 × 8 ][ lane 0 ... ][ lane 1 ... ][ lane 2 ... ]
//!
//!   version, even ──overwrite: odd (Relaxed) · Release fence · words (Relaxed) · even again, + 2 (Release)──▶
//!   tag 0         ──fill:  Release fence · words (Relaxed) · header with the tag, version + 2 (Release)──▶ tag t
//!   tag t         ──clear: header without the tag, version + 2 (Release)──▶ tag 0
//!   one word      ──overwrite of a value that lies in it: that word (Release)──▶
//! ```
//!
//! **B1.** A bucket is written by one thread at a time: the owner of its shard's lock, or one who is alone with the table.
//! **B2.** A reader loads the header (Acquire), copies the words of a lane whose tag it seeks (Relaxed), and loads the header once more, behind an Acquire fence. If it is the
//! same, and even, the words are of one moment: whoever changes the words of a lane has changed the header before, and there is a Release fence in between. A reader that has copied a
//! changed word finds the changed header: fence to fence. Versions come round after 2^35 changes of one bucket within one look.
//! **B3.** The words of a lane with tag 0 belong to nobody: to fill it they are written under the header that says so. A header that still named the lane is gone (B2).
//! **B4.** A value that lies in one word is overwritten by one store. Header and key stay: a reader has the value before, or the one after, and is not disturbed.
//! **B5.** `passed` counts the entries that were put behind this bucket on their way from home. At 15 it stays: it says that there may be some. It changes without a version: no words
//! depend on it.
//! **B6.** Zero bytes are an empty bucket.
//! **B7.** The tag of a used lane has its highest bit set, and that of a free one is 0. So free lanes are found by that bit alone, and the search for a tag, which may name a lane too many behind one
//! that it names rightly, never names a free one: that lane's tag differs in the lowest bit only, and what is sought has the highest.
//!
//! Three tags, the count and the version are one word: a look at a bucket that has nothing is one load, with nothing to be confirmed, and tags are compared in a register.

use super::plain::{Entry, MOST_WORDS, Plain, Shape};
use crate::region::heap::Zeroed;
use crate::sync::{AtomicU64, Ordering, fence};
use std::marker::PhantomData;

/// Words of the largest bucket.
pub(super) const BUCKET_WORDS: usize = 16;

/// Lanes of a bucket at most: so many tags fit into a header.
pub(super) const MOST_LANES: usize = 3;

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

const EACH: u32 = 0x01_01_01;
/// The highest bit of each tag.
const TOPS: u32 = 0x80 * EACH;
const TAGS: u64 = 0xff_ff_ff;
const PASSED: u64 = 1 << 24;
/// The count stays there.
const MANY: u64 = 15;
const VERSION: u64 = 1 << 28;

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

    /// The lanes with this tag, which is not 0. Behind one of them a lane with a similar tag may be named too; a free one is not (B7).
    #[inline(always)]
    const fn lanes_of(self, tag: u8) -> Lanes {
        let differ = self.0 as u32 ^ (tag as u32 * EACH);
        // A byte of zeros borrows from the next one. What lies above the tags is borrowed from at most.
        Lanes(differ.wrapping_sub(EACH) & !differ & TOPS)
    }

    /// The free lanes, of those that a bucket of `lanes` has.
    #[inline(always)]
    const fn free(self, lanes: usize) -> Lanes {
        Lanes(!(self.0 as u32) & TOPS & ((1 << (8 * lanes)) - 1))
    }

    /// The used lanes.
    #[inline(always)]
    const fn used(self) -> Lanes {
        Lanes(self.0 as u32 & TOPS)
    }

    /// Entries may lie behind this bucket (B5).
    #[inline(always)]
    pub(super) const fn is_passed(self) -> bool {
        self.0 & (MANY * PASSED) != 0
    }

    #[inline(always)]
    const fn tag(self, lane: usize) -> u8 {
        (self.0 >> (8 * lane)) as u8
    }

    /// The same after a change, with this tag in a lane.
    #[inline(always)]
    const fn with(self, lane: usize, tag: u8) -> Self {
        let bits = self.0 & !(0xff << (8 * lane)) | (tag as u64) << (8 * lane);
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
        let lane = self.0.trailing_zeros() / 8;
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
    /// The bucket of a number.
    ///
    /// # Safety
    /// The lines have a bucket of that number.
    #[inline(always)]
    pub(super) unsafe fn of(lines: &'t [Line], number: usize) -> Self {
        let first = lines.as_ptr().cast::<AtomicU64>();
        let size = Shape::<K, V>::BUCKET;
        debug_assert!((number + 1) * size <= lines.len() * LINE_WORDS);
        // SAFETY: the caller's promise.
        let first = unsafe { first.add(number * size) };
        // SAFETY: as above; lines are words without gaps, borrowed for as long.
        let words = unsafe { std::slice::from_raw_parts(first, size) };
        Self { words, types: PhantomData }
    }

    /// Where it begins.
    #[inline(always)]
    pub(super) fn address(self) -> *const u8 {
        self.words.as_ptr().cast()
    }

    /// Its bytes.
    pub(super) const BYTES: usize = Shape::<K, V>::BUCKET * size_of::<u64>();

    #[inline(always)]
    fn word(self, lane: usize, index: usize) -> &'t AtomicU64 {
        let place = 1 + lane * Shape::<K, V>::WORDS + index;
        debug_assert!(place < Shape::<K, V>::BUCKET && index < Shape::<K, V>::WORDS);
        // SAFETY: lanes come out of a header, which names those of the shape only, or from a loop over them.
        unsafe { self.words.get_unchecked(place) }
    }

    #[inline(always)]
    fn first(self) -> &'t AtomicU64 {
        // SAFETY: a bucket has a word at least.
        unsafe { self.words.get_unchecked(0) }
    }

    /// The header, and with it all that it names.
    #[inline(always)]
    pub(super) fn header(self) -> Header {
        // ORDERING: Acquire: partners are the Release stores of `store`: the words that a header names come with it.
        Header(self.first().load(Ordering::Acquire))
    }

    /// The header for who has the lock (B1).
    #[inline(always)]
    pub(super) fn own_header(self) -> Header {
        // ORDERING: Relaxed: written under the same lock.
        Header(self.first().load(Ordering::Relaxed))
    }

    /// The lanes that may have this tag, by a header: all that have it, and no free one (B7).
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
        // ORDERING: Acquire fence: partners are the Release fences of `fill` and `overwrite`, and the Release store of a single word.
        fence(Ordering::Acquire);
        // ORDERING: Relaxed: behind the fence.
        self.first().load(Ordering::Relaxed) == header.0 && !header.is_busy()
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
        self.first().store(header.0, Ordering::Release);
    }

    #[inline(always)]
    fn store_words(self, lane: usize, entry: &Entry, from: usize) {
        #[allow(clippy::needless_range_loop)] // as in `copy`
        for index in from..Shape::<K, V>::WORDS {
            // ORDERING: Relaxed: between a fence and a Release store of the header.
            self.word(lane, index).store(entry[index], Ordering::Relaxed);
        }
    }

    /// Puts an entry into a free lane (B3). By the owner of the lock, as all that follows.
    #[inline(always)]
    pub(super) fn fill(self, lane: usize, tag: u8, entry: &Entry) {
        let header = self.own_header();
        debug_assert!(header.tag(lane) == 0 && tag >= 0x80 && !header.is_busy());
        // ORDERING: Release: who copies a word that follows finds the header that freed the lane, or a later one; partner: `read`.
        fence(Ordering::Release);
        self.store_words(lane, entry, 0);
        self.store(header.with(lane, tag));
    }

    /// Frees a lane.
    #[inline(always)]
    pub(super) fn clear(self, lane: usize) {
        self.store(self.own_header().with(lane, 0));
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
                // ORDERING: Release: what the writer did before comes with the value; partner: the fence of `read` (B4).
                self.word(lane, from).store(entry[from], Ordering::Release);
            }
            return;
        }
        let busy = self.own_header().next();
        // ORDERING: Relaxed: the fence behind it orders it before the words.
        self.first().store(busy.0, Ordering::Relaxed);
        // ORDERING: Release: who copies a word that follows finds the odd header, or a later one; partner: `read`.
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

    fn bucket(lines: &[Line]) -> Bucket<'_, u64, [u64; 2]> {
        // SAFETY: two lines are one bucket.
        unsafe { Bucket::of(lines, 0) }
    }

    #[test]
    fn tags_are_found_in_their_lanes_only() {
        let header = Header(0xff_80_a1 | (MANY * PASSED) | VERSION);
        let lanes = |tag| header.lanes_of(tag).collect::<Vec<_>>();
        assert_eq!((lanes(0xa1), lanes(0x80), lanes(0xff)), (vec![0], vec![1], vec![2]));
        assert_eq!((lanes(0x82), lanes(0xfe), lanes(0xa0)), (vec![], vec![], vec![]));
        assert_eq!(Header(0x91_91_91).lanes_of(0x91).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(Header(0).free(2).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(Header(0x81_00_81).free(3).collect::<Vec<_>>(), [1]);
        assert_eq!(Header(0x81_00_81).used().collect::<Vec<_>>(), [0, 2]);
    }

    /// Whatever the tags are: those that are sought are named, and no free lane ever is (B7).
    #[test]
    fn no_search_names_a_free_lane() {
        let tags = || std::iter::once(0).chain(0x80..=0xff_u64);
        for (first, second) in tags().flat_map(|first| tags().map(move |second| (first, second))) {
            for above in [0, (MANY * PASSED) | VERSION, u64::MAX << 24] {
                let header = Header(first | second << 8 | above);
                for tag in [first, second, first ^ 1, second ^ 1, 0x80, 0xff] {
                    let Some(tag @ 0x80..) = u8::try_from(tag).ok() else { continue };
                    let found = header.lanes_of(tag).collect::<Vec<_>>();
                    assert_eq!(found.contains(&0), first == u64::from(tag));
                    assert!(second != u64::from(tag) || found.contains(&1));
                    assert!(second != 0 || !found.contains(&1), "{header:?} {tag}");
                    assert!(!found.contains(&2), "{header:?} {tag}");
                }
            }
        }
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
        let lines = [Line::zeroed(), Line::zeroed()];
        let bucket = bucket(&lines);
        bucket.fill(1, 0x89, &Pair::pack(7, [1, 2]));
        let seen = bucket.header();
        assert_eq!(bucket.lanes_of(seen, 0x89).collect::<Vec<_>>(), [1]);
        assert!(Pair::same(&bucket.read(seen, 1).unwrap(), &Pair::pack(7, [1, 2])));
        bucket.overwrite(1, &Pair::pack(7, [3, 4]));
        assert!(bucket.read(seen, 1).is_err());
        let seen = bucket.header();
        bucket.clear(1);
        assert!(bucket.read(seen, 1).is_err());
        bucket.fill(1, 0x89, &Pair::pack(8, [1, 2]));
        assert!(bucket.read(seen, 1).is_err(), "the lane is another's");
        assert!(bucket.read(bucket.header().next(), 1).is_err(), "a writer is at work");
        assert!(bucket.holds(1, &Pair::pack(8, [0, 0])));
        assert!(!bucket.holds(1, &Pair::pack(7, [1, 2])) && !bucket.holds(0, &[0; 6]));
    }

    #[test]
    fn versions_come_round_without_touching_the_rest() {
        let header = Header(!VERSION);
        assert!(!header.is_busy() && header.with(0, 0xff).0 == TAGS | (MANY * PASSED));
    }
}
