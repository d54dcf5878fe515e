//! The book of a bucket: last version, watermark, lease. All but the lease change under the
//! bucket's control word.

use super::super::handle::Handle;
use super::super::view::{Global, View};
use crate::region::shm::Segment;
use crate::sync::Ordering;
use crate::sync::prefetch::prefetch_write;
use crate::tier_cache::memory::{BUCKET_LEASE, LAST_VERSION, WATERMARK};
use crate::tier_cache::plan::Task;
use crate::tier_cache::step::{Point, exchange, store, store_payload};
use crate::tier_cache::word::{InputHash, Link};

/// The version of a mark that a key is nowhere (`stored` B2).
pub(in super::super) const ABSENT: u64 = u64::MAX;
/// Versions are milliseconds of the wall clock, and so many bits for those of one millisecond.
const VERSION_BITS: u32 = 20;
/// Bits of a lease that tell its holder; above them is its end, in milliseconds of the segment's
/// time.
const TAG_BITS: u32 = 16;

/// What a lookup saw of the book at the moment of its miss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in super::super) struct Seen {
    pub(in super::super) watermark: u64,
    pub(in super::super) last: u64,
}

impl View<'_> {
    pub(super) fn watermark(&self, bucket: u32) -> u64 {
        // ORDERING: Acquire; partner: the Release store of a drop, which comes before its
        // unlinking.
        self.memory.book(bucket).map_or(0, |book| book[WATERMARK].load(Ordering::Acquire))
    }

    pub(in super::super) fn seen(&self, bucket: u32) -> Seen {
        Seen { watermark: self.watermark(bucket), last: self.memory.last_version(bucket) }
    }

    /// Asks for what an entry that comes into this block will need of the book.
    #[cold]
    pub(in super::super) fn expect_stamp(&self, bucket: u32, block: u32) {
        if let Some(book) = self.memory.book(bucket) {
            prefetch_write(&book[LAST_VERSION]);
        }
        if let Some(version) = self.memory.version_word(block) {
            prefetch_write(version);
        }
    }

    /// `tier_cache_stores` N1. The caller holds the control word.
    pub(super) fn draw(&self, bucket: u32) -> u64 {
        let Some(book) = self.memory.book(bucket) else { return 0 };
        // ORDERING: Relaxed: written when the cache was made.
        let base = self.global(Global::StoreBase).load(Ordering::Relaxed);
        let next = self.memory.last_version(bucket).max(base).saturating_add(1);
        let version = next.max(Segment::wall_ms() << VERSION_BITS);
        store(Point::Version, &book[LAST_VERSION], version);
        version
    }

    /// No version up to this one is given out any more. The caller holds the control word.
    fn pass(&self, bucket: u32, version: u64) {
        if let Some(book) = self.memory.book(bucket).filter(|_| version != ABSENT) {
            if self.memory.last_version(bucket) < version {
                store(Point::Version, &book[LAST_VERSION], version);
            }
        }
    }

    pub(in super::super) fn version_of(&self, link: Link) -> u64 {
        // ORDERING: Acquire; partner: the Release store of who gave it out.
        self.memory.version_word(link.record).map_or(0, |word| word.load(Ordering::Acquire))
    }

    pub(super) fn set_version(&self, link: Link, version: u64) {
        if let Some(word) = self.memory.version_word(link.record) {
            store(Point::Version, word, version);
        }
    }

    /// `stored` B1: the entry is being prepared.
    pub(in super::super) fn clear_version(&self, link: Link) {
        if let Some(word) = self.memory.version_word(link.record) {
            store_payload(word, 0);
        }
    }

    /// `tier_cache_stores` N7, the first half: what is below the entry's version is not found any
    /// more, and neither is the entry's own. The caller holds the control word.
    pub(in super::super) fn raise_watermark(&self, bucket: u32, link: Link) {
        let Some(book) = self.memory.book(bucket) else { return };
        let above = match self.version_of(link) {
            // `stored` B1: whatever the bucket gave out may be an older value of this key.
            0 => self.memory.last_version(bucket),
            version => version,
        };
        if self.watermark(bucket) <= above {
            store(Point::Watermark, &book[WATERMARK], above.saturating_add(1));
        }
    }

    /// `tier_cache_stores` N2, N6. The lease that was taken, or nothing: somebody puts an entry of
    /// this bucket.
    pub(in super::super) fn take_bucket_lease(
        &self,
        bucket: u32,
        end: u64,
        tag: u16,
    ) -> Option<u64> {
        let place = &self.memory.book(bucket)?[BUCKET_LEASE];
        // ORDERING: Acquire; partner: the exchange of who held it last.
        let held = place.load(Ordering::Acquire);
        if held != 0 && !self.has_passed(held >> TAG_BITS) {
            return None;
        }
        let lease = end << TAG_BITS | tag as u64;
        exchange(Point::BucketLease, place, held, lease).then_some(lease)
    }

    /// `tier_cache_stores` N5.
    pub(in super::super) fn end_bucket_lease(&self, bucket: u32, lease: u64) {
        if let Some(book) = self.memory.book(bucket) {
            exchange(Point::BucketLease, &book[BUCKET_LEASE], lease, 0);
        }
    }
}

impl Handle<'_> {
    /// Gives the entry that is being linked its version (`tier_cache_stores` N1, N10). The bucket's
    /// word is held.
    #[cold]
    pub(in super::super) fn stamp(&mut self, input: InputHash, task: &Task) {
        let Task::Place { new, .. } = task else { return };
        let view = self.view;
        if view.is_flight(*new) {
            return;
        }
        let version = match std::mem::take(&mut self.given) {
            0 => view.draw(input.bucket()),
            given => {
                view.pass(input.bucket(), given);
                given
            }
        };
        view.set_version(*new, version);
    }
}
