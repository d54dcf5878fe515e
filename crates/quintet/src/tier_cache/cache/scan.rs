//! Scans: every entry, bucket by bucket, while others write.
//!
//! A key's bucket never changes, so a key that is there during the whole scan is shown exactly
//! once; one that comes or goes meanwhile is shown at most once. A bucket is read like a miss:
//! again, until its control word was free and the same on both sides.

use super::TierCache;
use super::block::{Block, Pieces};
use super::error::CacheError;
use super::read::Target;
use super::spaces::{Namespace, Space};
use super::view::View;
use crate::sync::{Ordering, fence};
use crate::tier_cache::map::{DEFAULT_TIMEOUT, Map};
use crate::tier_cache::step::{Point, crash_point};
use crate::tier_cache::wait::Wait;
use crate::tier_cache::word::{Cbits, Link};
use std::time::Duration;

/// Buckets of a page at most, so that none takes long.
const PAGE: u64 = 4096;

/// An entry, copied.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ScannedEntry {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
    /// How long it will live; `None` if it does not expire.
    pub ttl: Option<Duration>,
}

/// An entry as it lies there.
pub(super) struct Copied {
    /// Its namespace, unless that has been cleared since, and the generation it was written in.
    pub(super) space: Option<Space>,
    pub(super) generation: u32,
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
    pub(super) expiry: u64,
    pub(super) expired: bool,
    /// No operation wrote that.
    pub(super) damaged: bool,
}

/// All entries of a cache; see [`TierCache::scan`].
#[derive(Debug)]
pub struct Scan<'c> {
    view: &'c View<'c>,
    map: Option<Map<'c>>,
    bucket: u32,
    found: Vec<ScannedEntry>,
}

impl TierCache {
    /// Every entry. Stops nobody; a key that is there during the whole scan is shown exactly once.
    pub fn scan(&self) -> Scan<'_> {
        let map = self.segment.is_writable().then(|| self.map());
        Scan { view: self.view(), map, bucket: 0, found: Vec::new() }
    }
}

/// Some entries of a scan by cursor; see [`TierCache::scan_from`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ScanPage {
    /// The entries.
    pub entries: Vec<ScannedEntry>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<u64>,
}

impl TierCache {
    /// A page of a scan: the entries of a namespace whose keys begin with `prefix`, from a cursor
    /// on (0 is the beginning), until there are at least `most` of them or a stretch of buckets has
    /// been looked at. Nothing is held between two pages. A key that is there during the whole scan
    /// is shown exactly once.
    pub fn scan_from(
        &self,
        cursor: u64,
        namespace: Namespace,
        prefix: &[u8],
        most: usize,
    ) -> Result<ScanPage, CacheError> {
        let mut scan = self.scan();
        let buckets = scan.view.sizes.buckets as u64;
        scan.bucket = cursor.min(buckets) as u32;
        let end = cursor.saturating_add(PAGE).min(buckets);
        let mut page = ScanPage::default();
        while (scan.bucket as u64) < end && page.entries.len() < most.max(1) {
            scan.read_bucket()?;
            scan.bucket += 1;
            let found = scan.found.drain(..);
            let meant = |entry: &ScannedEntry| {
                entry.namespace == namespace && entry.key.starts_with(prefix)
            };
            page.entries.extend(found.filter(meant));
        }
        page.next = Some(scan.bucket as u64).filter(|next| *next < buckets);
        Ok(page)
    }
}

impl View<'_> {
    /// A certified copy of the entry a link names; `Err` if it has moved on, `None` if it is
    /// outlived or not an entry.
    pub(super) fn copy(&self, link: Link) -> Result<Option<ScannedEntry>, ()> {
        if self.is_flight(link) { Ok(None) } else { self.copy_any(link) }
    }

    /// The same, of flights too.
    pub(super) fn copy_any(&self, link: Link) -> Result<Option<ScannedEntry>, ()> {
        let copy = self.copy_whole(link)?;
        // A damaged entry is shown to nobody; who looks it up is told, and so is who checks.
        let living = copy.space.filter(|_| !copy.damaged && !copy.expired);
        Ok(living.map(|space| self.shown(space, copy)))
    }

    /// A copy as it is shown.
    pub(super) fn shown(&self, space: Space, copy: Copied) -> ScannedEntry {
        let Copied { key, value, expiry, .. } = copy;
        ScannedEntry { namespace: Namespace(space), key, value, ttl: self.left(expiry) }
    }

    /// A certified copy, whatever has become of the entry meanwhile but that its place has moved
    /// on.
    pub(super) fn copy_whole(&self, link: Link) -> Result<Copied, ()> {
        let record = super::read::current(self, link).ok_or(())?;
        let block = Block::of(record);
        let meta = block.meta();
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut pieces = Pieces::of(self.memory, block);
        let legal = meta.key() <= super::MAX_KEY && meta.value() <= self.sizes.longest();
        let whole =
            legal && key.take(meta.key(), &mut pieces) && value.take(meta.value(), &mut pieces);
        let ((_, generation), expiry) = (block.next_and_space(), block.expiry());
        let space = self.space_written_in(block, meta);
        let expired = expiry != 0 && self.has_passed(expiry);
        let sound = self.has_sum(link, block);
        crash_point!(Point::ReadAgain);
        // ORDERING: Acquire fence: as in `View::attempt`.
        fence(Ordering::Acquire);
        super::read::current(self, link).ok_or(())?;
        let damaged = !whole || !sound;
        Ok(Copied { space, generation, key, value, expiry, expired, damaged })
    }

    /// The links of a bucket in every tier, as its cells are now, the youngest tier first.
    pub(super) fn links(&self, bucket: u32) -> Vec<Link> {
        (0..self.memory.tiers()).flat_map(|tier| self.links_in(tier, bucket)).collect()
    }

    /// The links of a bucket in a tier.
    pub(super) fn links_in(&self, tier: usize, bucket: u32) -> Vec<Link> {
        let home = self.memory.home(tier, bucket);
        let mut links = Vec::new();
        for slice in 0..2 {
            let base = self.memory.cell(self.memory.at(slice, home));
            if !base.cbits.is_base() {
                continue;
            }
            links.push(base.link);
            let mut members = base.cbits.members();
            while members != 0 {
                let offset = members.trailing_zeros() as usize;
                members &= members - 1;
                let cell = self.memory.cell(self.memory.at(slice, home + offset));
                if cell.cbits == Cbits::member(offset) {
                    links.push(cell.link);
                }
            }
        }
        links
    }
}

impl Scan<'_> {
    fn read_bucket(&mut self) -> Result<(), CacheError> {
        let mut wait = Wait::new(DEFAULT_TIMEOUT);
        loop {
            let before = self.view.memory.control(self.bucket);
            let copies: Result<Vec<_>, ()> =
                self.view.links(self.bucket).into_iter().map(|link| self.view.copy(link)).collect();
            let after = self.view.memory.control(self.bucket);
            let quiet = before == after && before.owner().is_none();
            match (copies, quiet) {
                (Ok(copies), true) => {
                    self.found = copies.into_iter().flatten().collect();
                    return Ok(());
                }
                (Err(()), true) => return Err(CacheError::Corrupt("cell without record")),
                (_, false) => match (after.owner(), &self.map) {
                    (Some(owner), Some(map)) => map.wait_for(owner, &mut wait)?,
                    (Some(_), None) => wait.pause()?,
                    (None, _) => {}
                },
            }
        }
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<ScannedEntry, CacheError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.found.pop() {
                return Some(Ok(entry));
            }
            if self.bucket >= self.view.sizes.buckets {
                return None;
            }
            let read = self.read_bucket();
            self.bucket += 1;
            if let Err(error) = read {
                return Some(Err(error));
            }
        }
    }
}
