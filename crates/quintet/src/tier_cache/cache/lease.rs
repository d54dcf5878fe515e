//! Leases: reading a value where it lies, without a copy.
//!
//! A cache made with leases lets a handle pin an entry. The entry may be replaced, removed or
//! evicted meanwhile; its blocks stay as they are until the last lease on them ends, or its process
//! is proved dead.
//!
//! **Z1.** A lease is a word of its seat that names the entry. It is stored first; then the entry's
//! generation is looked at once more.
//! **Z2.** Whoever frees an entry of such a cache moves its generation on first, to *limbo*: it
//! cannot be taken. Then it looks for leases. Both sides store before they look, with a fence
//! between: at least one of them sees the other.
//! **Z3.** What is in limbo is freed by exchange, by whoever finds no lease on it: its killer, the
//! last lessee, a recoverer, the sweep.
//! **Z4.** The word is ended by the lease, by its handle when that goes (a forgotten lease cannot
//! be read any more), or for a dead seat. A forked child has a copy of the lease but not the word:
//! its copy shows nothing and ends nothing.

use super::block::{Block, Pieces, chain};
use super::error::CacheError;
use super::handle::Handle;
use super::layout::SEAT_LEASES;
use super::read::{Nothing, Target, Tried, current};
use super::view::View;
use crate::sync::{AtomicU64, Ordering, fence, fork};
use crate::tier_cache::step::{Point, exchange, store};
use crate::tier_cache::word::{Link, RecordState, RecordWord};
use std::marker::PhantomData;

/// No seat has this number: a record prepared by it is in limbo.
pub(super) const LIMBO: u32 = 0x3fff;

/// Is this the word of an entry in limbo, killed at this generation?
pub(super) fn is_limbo_of(word: RecordWord, generation: u32) -> bool {
    word.state() == Some(RecordState::Prepared(LIMBO))
        && word.generation() == generation.wrapping_add(1)
}

/// How a lease names its entry; 0 is none.
fn name(link: Link) -> u64 {
    link.word().wrapping_add(1)
}

impl<'a> View<'a> {
    fn is_leased(&self, link: Link) -> bool {
        // ORDERING: SeqCst fence: our generation store comes before these loads (Z2). Partner: the
        // fence in `lease`.
        fence(Ordering::SeqCst);
        self.leases.iter().any(|word| word.load(Ordering::Acquire) == name(link))
    }

    /// Frees what is in limbo if nobody leases it (Z3).
    pub(super) fn leave_limbo(&self, link: Link) {
        let Ok(record) = self.memory.record(link.record) else { return };
        let word = record.state();
        if !is_limbo_of(word, link.generation) || self.is_leased(link) {
            return;
        }
        let further = chain(self.memory, self.sizes, link).unwrap_or_default();
        if exchange(Point::Lease, record.word(), word.0, word.freed().0) {
            self.offer(link.record);
            self.free_further(&further);
        }
    }

    /// Leases an entry for a seat (Z1). `None` if it has moved on; an error if the seat holds as
    /// many leases as it can.
    pub(super) fn pin(&self, seat: u32, link: Link) -> Result<Option<&'a AtomicU64>, CacheError> {
        let from = seat as usize * SEAT_LEASES;
        let mut places = self.leases.get(from..from + SEAT_LEASES).unwrap_or(&[]).iter();
        let taken = places.find(|place| exchange(Point::Lease, place, 0, name(link)));
        let place = taken.ok_or(CacheError::NoLeases)?;
        // ORDERING: SeqCst fence: the lease is there before we look at the generation (Z1, Z2).
        // Partner: `is_leased`.
        fence(Ordering::SeqCst);
        if current(self, link).is_some() {
            return Ok(Some(place));
        }
        self.end_lease(place);
        Ok(None)
    }

    /// Ends a lease.
    pub(super) fn end_lease(&self, place: &AtomicU64) {
        // ORDERING: Acquire: the name.
        let named = place.load(Ordering::Acquire);
        if named == 0 {
            return;
        }
        store(Point::Lease, place, 0);
        // ORDERING: SeqCst fence: the lease is gone before we look at the entry (Z2).
        fence(Ordering::SeqCst);
        self.leave_limbo(Link::from_word(named.wrapping_sub(1)));
    }

    /// Ends the leases of a seat whose owner is dead or leaves (Z4).
    pub(super) fn end_leases(&self, seat: u32) {
        let from = seat as usize * SEAT_LEASES;
        let places = self.leases.get(from..from + SEAT_LEASES).unwrap_or(&[]);
        places.iter().for_each(|place| self.end_lease(place));
    }
}

/// A value, pinned where it lies. In a forked child, which holds no lease, it has no bytes.
#[derive(Debug)]
pub struct Lease<'h> {
    view: &'h View<'h>,
    place: &'h AtomicU64,
    link: Link,
    forks: usize,
    handle: PhantomData<&'h ()>,
}

impl Handle<'_> {
    /// Pins the value of a key. At most eight at a time per handle; the cache must have been made
    /// with leases. Counts as a use.
    pub fn lease(&self, key: impl AsRef<[u8]>) -> Result<Option<Lease<'_>>, CacheError> {
        let (view, key) = (self.view, key.as_ref());
        self.inner.begin_read()?;
        if !view.sizes.leases {
            return Err(CacheError::NoLeases);
        }
        let input = view.input(self.space, key);
        loop {
            let hit = match view.read_all(input, self.space, key, &mut Nothing) {
                Tried::Hit(hit) => hit,
                _ => match self.read_slow_in(self.space, input, key, &mut Nothing)? {
                    Some(hit) => hit,
                    None => return Ok(None),
                },
            };
            if let Some(place) = view.pin(self.inner.number, hit.link)? {
                view.note_use(hit.link, hit.used);
                let forks = fork::seen().0;
                return Ok(Some(Lease { view, place, link: hit.link, forks, handle: PhantomData }));
            }
        }
    }
}

impl Lease<'_> {
    /// The word that pins the entry is this process's (Z4).
    fn is_ours(&self) -> bool {
        fork::seen().0 == self.forks
    }

    fn pieces(&self) -> Option<(usize, Pieces<'_>)> {
        if !self.is_ours() {
            return None;
        }
        let block = Block::of(self.view.memory.record(self.link.record).ok()?);
        let meta = block.meta();
        let mut pieces = Pieces::of(self.view.memory, block);
        let mut words = meta.key().div_ceil(8);
        while words > 0 {
            words -= pieces.take(words)?.len();
        }
        Some((meta.value().min(self.view.sizes.max_value as usize), pieces))
    }

    /// Bytes of the value.
    pub fn len(&self) -> usize {
        self.pieces().map_or(0, |(len, _)| len)
    }

    /// No bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The version of the value.
    pub fn version(&self) -> u64 {
        self.link.word()
    }

    /// A copy of the value.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut value = Vec::new();
        if let Some((len, mut pieces)) = self.pieces() {
            value.take(len, &mut pieces);
        }
        value
    }

    /// The value where it lies, if that is in one piece: so it is if key and value fit into a block
    /// with 56 bytes to spare.
    ///
    /// # Safety
    /// As of [`Lease::chunks`].
    pub unsafe fn contiguous(&self) -> Option<&[u8]> {
        // SAFETY: the caller's promise.
        let chunks = unsafe { self.chunks() };
        match chunks[..] {
            [] => Some(&[]),
            [whole] => Some(whole),
            _ => None,
        }
    }

    /// The value, piece by piece, where it lies.
    ///
    /// # Safety
    /// Every process that is attached for writing keeps to the protocol: nobody writes to a leased
    /// block. Only a hostile or broken one would.
    pub unsafe fn chunks(&self) -> Vec<&[u8]> {
        let Some((mut len, mut pieces)) = self.pieces() else { return Vec::new() };
        let mut chunks = Vec::new();
        while len > 0 {
            let Some(piece) = pieces.take(len.div_ceil(8)) else { break };
            let bytes = len.min(piece.len() * 8);
            // SAFETY: so many bytes lie in the piece, initialized; the caller promises that nobody
            // writes to them while leased.
            chunks.push(unsafe { std::slice::from_raw_parts(piece.as_ptr().cast::<u8>(), bytes) });
            len -= bytes;
        }
        chunks
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if self.is_ours() {
            self.view.end_lease(self.place);
        }
    }
}
