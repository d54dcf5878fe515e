//! Where the records lie.
//!
//! ```text
//!   id = granule | unit ──▶ directory[granule] ──▶ base ── + unit · stride ──▶ record
//!   id < NURSERY: bundle | slice | unit ──▶ nursery[bundle][slice] ──▶ base ── + unit · stride ──▶ record
//! ```
//!
//! A record takes one unit, or, if records have their own lengths, as many units of 8 bytes as it
//! needs. Granules are runs of [`GRANULE`] units. Handles take extents of whole granules and fill
//! them from the front; each is an eighth of what the handle has filled before, so that little
//! waits unfilled and a large extent lies in large pages. Small sets are small: the first
//! [`NURSERY`] ids are dealt out in slices of [`SLICE`] units, to each desk as many as it has had
//! before.
//!
//! **R1.** A record is written before its id is in a slot, and neither moved nor freed before the
//! set drops.
//! **R2.** An extent belongs to one desk; the owner of the desk alone writes there. Others read
//! records whose ids they found in slots, or were told by somebody who did.
//! **R3.** Between writing a record and the exchange of the slot no user code runs, so the record
//! is the last of its arena, and the loser of the exchange takes it back at once.
//! **R4.** Unit 0 is no record: id 0 means none. It has a place all the same, though perhaps at
//! null: nobody looks there, but whoever asks the cache for it need not ask first whether there is
//! a record.
//! **R5.** Tables leave memory about as fast as records of 16 bytes need it. So a desk takes what
//! they have left before it goes on in its own extent: a set that grows asks the system for a third
//! less.
//! **R6.** The stride is a multiple of the alignment and not 0, whatever the record's size: every
//! unit has an address of its own, and an aligned one. A granule of units is not larger than what
//! can be addressed, so that sizes do not wrap.
//! **R7.** The directory is one array, so that a record is found by two loads. When it is full a
//! larger one, of the same entries, takes its place, under the lock; it stays until the set drops.
//! Whoever knows an id learnt of it after its granule was entered, and so finds the directory of
//! then or a later one.

use super::budget::{Account, SeenError};
use super::desk::Desk;
use super::spare::{Piece, Spare};
use crate::region::heap::{Buffer, Zeroed};
use crate::region::{AllocError, Pages};
use crate::sync::prefetch::prefetch_read;
use crate::sync::{Arc, AtomicPtr, MODEL, Mutex, Ordering};
use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;

/// Units of a granule.
pub(crate) const GRANULE: u64 = if MODEL { 4 } else { 1024 };
/// Units of a slice.
const SLICE: u64 = if MODEL { 2 } else { 8 };
/// Ids that are dealt out in slices. The first granule has these ids, and is no other.
const NURSERY: u64 = if MODEL { 4 } else { 256 };
const SLICES: usize = (NURSERY / SLICE) as usize;
/// Slices of a bundle.
const BUNDLE: usize = if MODEL { 1 } else { 8 };

/// Where the slices of a bundle begin.
type Bundle = [AtomicPtr<u8>; BUNDLE];
/// Entries of the first directory.
const FIRST_DIRECTORY: u64 = if MODEL { 2 } else { 64 };
/// Extents of this size and more come in huge pages, of which the system makes four times as much
/// in a given time as of small ones.
const HUGE: usize = 2 << 20;
/// An extent of this size, wanted when eight times as much is filled, is made a huge page.
const ALMOST_HUGE: usize = HUGE / 16;
const LARGEST_EXTENT: usize = 32 << 20;
/// Bytes that a desk takes at a time from a large extent, before it asks again for what tables have
/// left.
const STEP: usize = 64 << 10;
/// How many bytes ahead of the next record lines are asked for.
const AHEAD: usize = 256;

/// A word of raw memory.
#[repr(transparent)]
struct Raw(UnsafeCell<MaybeUninit<u64>>);

// SAFETY: shared access goes through raw pointers, by the rules R1 and R2.
unsafe impl Sync for Raw {}
// SAFETY: any bytes are valid, zero bytes too; nothing to drop.
unsafe impl Zeroed for Raw {
    fn zeroed() -> Self {
        Self(UnsafeCell::new(MaybeUninit::zeroed()))
    }
}

/// The size of a unit, its alignment, and where in it the record begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    stride: usize,
    align: usize,
    pub(super) head: usize,
}

impl Shape {
    /// Units of this layout. `None` if no memory holds a granule of them (R6).
    pub(crate) fn new(unit: Layout, head: usize) -> Option<Self> {
        let align = unit.align();
        let least = if cfg!(quintet_mutation = "zero-sized-align") { 0 } else { 1 };
        let stride = unit.size().max(least).next_multiple_of(align).max(1);
        (stride <= isize::MAX as usize / GRANULE as usize).then_some(Self { stride, align, head })
    }
}

/// All records of a set.
#[derive(Debug)]
pub(crate) struct Arenas {
    /// Where each granule begins (R7).
    directory: AtomicPtr<AtomicPtr<u8>>,
    /// The bundles of slices, each made with its first slice.
    nursery: [AtomicPtr<Bundle>; SLICES / BUNDLE],
    stride: usize,
    align: usize,
    ids: u64,
    pages: Pages,
    account: Arc<Account>,
    spare: Arc<Spare>,
    extents: Mutex<Extents>,
}

/// A run of granules.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    first: u64,
    granules: u64,
    base: *mut u8,
}

impl Default for Extent {
    fn default() -> Self {
        Self { first: 0, granules: 0, base: ptr::null_mut() }
    }
}

struct Extents {
    buffers: Vec<Buffer<Raw>>,
    /// Extents that tables have left.
    reused: Vec<Piece>,
    /// Slices that were dealt out.
    slices: u64,
    granules: u64,
    /// The directory, behind those before it (R7).
    directories: Vec<Box<[AtomicPtr<u8>]>>,
}

impl std::fmt::Debug for Extents {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Extents").field("granules", &self.granules).finish_non_exhaustive()
    }
}

impl Arenas {
    /// Arenas for `ids` units of this shape.
    pub(crate) fn new(
        shape: Shape,
        ids: u64,
        pages: Pages,
        account: &Arc<Account>,
        spare: &Arc<Spare>,
    ) -> Self {
        let (buffers, reused, directories) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            directory: AtomicPtr::new(ptr::null_mut()),
            nursery: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            stride: shape.stride,
            align: shape.align,
            ids,
            pages,
            account: Arc::clone(account),
            spare: Arc::clone(spare),
            extents: Mutex::new(Extents { buffers, reused, slices: 0, granules: 1, directories }),
        }
    }

    /// Units that so many bytes take.
    #[inline(always)]
    pub(crate) fn units(&self, bytes: usize) -> u64 {
        bytes.div_ceil(self.stride).max(1) as u64
    }

    /// The place of a record.
    ///
    /// The id is one that this set gave out: then its granule was entered before (R1).
    #[inline(always)]
    pub(crate) fn locate(&self, id: u64) -> *mut u8 {
        if id < NURSERY {
            return self.locate_in_nursery(id);
        }
        // ORDERING: Acquire: partner is the Release store in `directory_for`, though whoever knows
        // the id has seen it already.
        let directory = self.directory.load(Ordering::Acquire);
        // SAFETY: the granule of an id was entered into this directory or one before it, and both
        // live as long as the set (R7).
        let entry = unsafe { &*directory.wrapping_add((id / GRANULE) as usize) };
        // ORDERING: Acquire: partner is the Release store in `enter`, as above.
        let base = entry.load(Ordering::Acquire);
        base.wrapping_add((id % GRANULE) as usize * self.stride)
    }

    #[inline(always)]
    fn locate_in_nursery(&self, id: u64) -> *mut u8 {
        let slice = (id / SLICE) as usize;
        // ORDERING: Acquire: partner is the Release store in `bundle`, though whoever knows the id
        // has seen it already.
        let bundle = self.nursery[slice / BUNDLE].load(Ordering::Acquire);
        // SAFETY: null, which only id 0 meets (R4), or a box that lives as long as the set.
        let Some(bundle) = (unsafe { bundle.as_ref() }) else { return ptr::null_mut() };
        // ORDERING: Acquire: partner is the Release store in `take_slices`, as above.
        let base = bundle[slice % BUNDLE].load(Ordering::Acquire);
        base.wrapping_add((id % SLICE) as usize * self.stride)
    }

    /// The bundle of a slice, made when first needed.
    fn bundle(&self, _: &mut Extents, slice: usize) -> &Bundle {
        let place = &self.nursery[slice / BUNDLE];
        // ORDERING: Relaxed: written under the lock, which the caller holds.
        let mut bundle = place.load(Ordering::Relaxed);
        if bundle.is_null() {
            let fresh: Bundle = std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut()));
            bundle = Box::into_raw(Box::new(fresh));
            // ORDERING: Release: partner: `locate_in_nursery`.
            place.store(bundle, Ordering::Release);
        }
        // SAFETY: out of a box, which lives as long as the set.
        unsafe { &*bundle }
    }

    /// Takes units from the desk, if there are so many: the id and the place of a record to be
    /// written (R2).
    #[inline(always)]
    pub(crate) fn take(&self, desk: &Desk, units: u64) -> Option<(u64, *mut u8)> {
        let (id, place) = (desk.next_id.get(), desk.place.get());
        if id + units > desk.end_id.get() {
            return None;
        }
        desk.next_id.set(id + units);
        desk.place.set(place.wrapping_add(units as usize * self.stride));
        // A store that waits for its line holds up the exchange behind it.
        prefetch_read(place.wrapping_add(AHEAD));
        Some((id, place))
    }

    /// Takes back what `take` gave last (R3).
    #[inline(always)]
    pub(crate) fn take_back(&self, desk: &Desk, units: u64) {
        desk.next_id.set(desk.next_id.get() - units);
        desk.place.set(desk.place.get().wrapping_sub(units as usize * self.stride));
    }

    /// A fresh extent for the desk, preferably one that a table has left (R5). What is left of the
    /// old one stays unused.
    #[cold]
    #[inline(never)]
    pub(crate) fn extend(&self, desk: &Desk, units: u64) -> Result<(), SeenError> {
        if desk.granules.get() == 0 && self.take_slices(desk, units)? {
            return Ok(());
        }
        let least = units.div_ceil(GRANULE).max(1);
        let extent = match self.reuse(least) {
            Some(extent) => extent,
            None => self.cut(desk, least)?,
        };
        desk.granules.set(desk.granules.get() + extent.granules);
        desk.place.set(extent.base);
        desk.next_id.set(extent.first * GRANULE);
        desk.end_id.set((extent.first + extent.granules) * GRANULE);
        Ok(())
    }

    /// Takes slices for so many units, and as many as the desk has had before. False if there are
    /// not so many.
    fn take_slices(&self, desk: &Desk, units: u64) -> Result<bool, SeenError> {
        let mut extents = self.extents.lock();
        let first = extents.slices;
        let skip = u64::from(first == 0); // (R4)
        let (least, left) = ((units + skip).div_ceil(SLICE), SLICES as u64 - first);
        if least > left {
            return Ok(false);
        }
        let slices = desk.slices.get().clamp(least, left);
        let base = self.buffer(&mut extents, slices * SLICE)?;
        for slice in 0..slices {
            let place = base.wrapping_add((slice * SLICE) as usize * self.stride);
            let slice = (first + slice) as usize;
            let entry = &self.bundle(&mut extents, slice)[slice % BUNDLE];
            // ORDERING: Release: partner: `locate_in_nursery`.
            entry.store(place, Ordering::Release);
        }
        extents.slices += slices;
        desk.slices.set(desk.slices.get() + slices);
        desk.place.set(base.wrapping_add(skip as usize * self.stride));
        desk.next_id.set(first * SLICE + skip);
        desk.end_id.set((first + slices) * SLICE);
        Ok(true)
    }

    /// Memory for so many units. Returns where the first one lies.
    fn buffer(&self, extents: &mut Extents, units: u64) -> Result<*mut u8, SeenError> {
        let bytes = (units as usize)
            .checked_mul(self.stride)
            .and_then(|bytes| bytes.checked_add(self.align.saturating_sub(8)))
            .ok_or(AllocError::CapacityOverflow)?;
        self.account.book_records(bytes)?;
        let buffer = Buffer::<Raw>::try_new_present(bytes.div_ceil(8), self.pages)
            .inspect_err(|_| self.account.give_back_records(bytes))?;
        let raw = buffer.as_ptr().cast_mut().cast::<u8>();
        if extents.buffers.is_empty() {
            // Small sets have few.
            extents.buffers.reserve_exact(1);
        }
        extents.buffers.push(buffer);
        Ok(raw.wrapping_add(raw.align_offset(self.align)))
    }

    /// Cuts a step off what the desk has set aside, or off a new extent, which is set aside then.
    fn cut(&self, desk: &Desk, least: u64) -> Result<Extent, SeenError> {
        let mut aside = desk.aside.take();
        if aside.granules < least {
            let wanted = self.comfortable(desk.granules.get() / 8).max(least);
            aside = self.try_extend(wanted).or_else(|error| match wanted > least {
                true => self.try_extend(least),
                false => Err(error),
            })?;
        }
        let step = (STEP / (GRANULE as usize * self.stride)).max(1) as u64;
        let granules = aside.granules.min(step.max(least));
        let cut = Extent { granules, ..aside };
        desk.aside.set(Extent {
            first: aside.first + granules,
            granules: aside.granules - granules,
            base: aside.base.wrapping_add((granules * GRANULE) as usize * self.stride),
        });
        Ok(cut)
    }

    /// So many granules, or a few more to fill huge pages.
    fn comfortable(&self, granules: u64) -> u64 {
        let granule_bytes = self.stride * GRANULE as usize;
        let bytes = (granules as usize).saturating_mul(granule_bytes).min(LARGEST_EXTENT);
        let bytes = if bytes >= ALMOST_HUGE { bytes.next_multiple_of(HUGE) } else { bytes };
        (bytes / granule_bytes).max(1) as u64
    }

    /// An extent that a table has left.
    fn reuse(&self, least: u64) -> Option<Extent> {
        let granule_bytes = GRANULE as usize * self.stride;
        let piece = self.spare.take((least as usize).checked_mul(granule_bytes)? + self.align)?;
        let (start, bytes) = (piece.start(), piece.bytes());
        let mut extents = self.extents.lock();
        let first = extents.granules;
        let granules = ((bytes - self.align) / granule_bytes) as u64;
        // Kept whatever comes: it is on the records' account.
        extents.reused.push(piece);
        if (first + granules).saturating_mul(GRANULE) > self.ids {
            return None;
        }
        let base = start.wrapping_add(start.align_offset(self.align));
        self.enter(&mut extents, base, granules);
        Some(Extent { first, granules, base })
    }

    fn try_extend(&self, granules: u64) -> Result<Extent, SeenError> {
        let mut extents = self.extents.lock();
        let first = extents.granules;
        let units = granules.checked_mul(GRANULE).ok_or(AllocError::CapacityOverflow)?;
        if (first * GRANULE).saturating_add(units) > self.ids {
            return Err(SeenError::Ids);
        }
        let base = self.buffer(&mut extents, units)?;
        self.enter(&mut extents, base, granules);
        Ok(Extent { first, granules, base })
    }

    /// Enters the granules of a fresh extent into the directory.
    fn enter(&self, extents: &mut Extents, base: *mut u8, granules: u64) {
        let first = extents.granules;
        extents.granules += granules;
        let entries = &self.directory_for(extents)[first as usize..(first + granules) as usize];
        for (granule, entry) in entries.iter().enumerate() {
            let place = base.wrapping_add(granule * GRANULE as usize * self.stride);
            // ORDERING: Release: partner: `locate`.
            entry.store(place, Ordering::Release);
        }
    }

    /// Extents that tables have left.
    #[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
    pub(super) fn reused(&self) -> usize {
        self.extents.lock().reused.len()
    }

    /// A directory with an entry for every granule (R7).
    fn directory_for<'e>(&self, extents: &'e mut Extents) -> &'e [AtomicPtr<u8>] {
        let Extents { directories, granules, .. } = extents;
        let known = directories.last().map_or(&[][..], |last| last);
        if *granules > known.len() as u64 {
            let len = (*granules).next_power_of_two().max(FIRST_DIRECTORY);
            // ORDERING: Relaxed: written under the lock, which the caller holds.
            let known = known.iter().map(|entry| entry.load(Ordering::Relaxed));
            let all = known.chain(std::iter::repeat(ptr::null_mut())).take(len as usize);
            let larger: Box<[_]> = all.map(AtomicPtr::new).collect();
            // ORDERING: Release: partner: `locate`.
            self.directory.store(larger.as_ptr().cast_mut(), Ordering::Release);
            directories.push(larger);
        }
        directories.last().map_or(&[], |last| last)
    }
}

impl Drop for Arenas {
    fn drop(&mut self) {
        for bundle in &self.nursery {
            // ORDERING: Relaxed: nobody else is left.
            let bundle = bundle.load(Ordering::Relaxed);
            if !bundle.is_null() {
                // SAFETY: out of a box in `bundle`, freed once, here.
                drop(unsafe { Box::from_raw(bundle) });
            }
        }
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    fn arenas(stride: usize, align: usize, ids: u64) -> Arenas {
        let account = Arc::new(Account::new(None));
        let spare = Arc::new(Spare::new(&account));
        let unit = Layout::from_size_align(stride, align).unwrap();
        let shape = Shape::new(unit, 0).unwrap();
        Arenas::new(shape, ids, Pages::default(), &account, &spare)
    }

    fn taken(arenas: &Arenas, desk: &Desk, units: u64) -> Result<(u64, *mut u8), SeenError> {
        loop {
            match arenas.take(desk, units) {
                Some(taken) => return Ok(taken),
                None => arenas.extend(desk, units)?,
            }
        }
    }

    #[test]
    fn records_keep_their_places() {
        for (stride, align) in [(0, 1), (0, 64), (1, 1), (16, 8), (24, 8), (128, 128), (0, 4096)] {
            let arenas = arenas(stride, align, 1 << 32);
            let (desk, other) = (Desk::new(), Desk::new());
            let mut places = Vec::new();
            for round in 0..5_000u64 {
                let desk = if round % 3 == 0 { &other } else { &desk };
                let (id, place) = taken(&arenas, desk, 1).unwrap();
                assert_ne!(id, 0);
                assert_eq!(place.addr() % align, 0);
                if round % 7 == 0 {
                    arenas.take_back(desk, 1);
                } else {
                    places.push((id, place));
                }
            }
            places.iter().for_each(|&(id, place)| assert_eq!(arenas.locate(id), place));
            places.sort_unstable_by_key(|&(_, place)| place);
            assert!(
                places.windows(2).all(|two| two[1].1.addr() - two[0].1.addr() >= stride.max(1))
            );
        }
    }

    #[test]
    fn a_record_larger_than_a_granule_has_its_own_extent() {
        let arenas = arenas(8, 8, 1 << 32);
        let desk = Desk::new();
        for units in [1, GRANULE, GRANULE * 5 + 1, 1, 3 * GRANULE] {
            let (id, place) = taken(&arenas, &desk, units).unwrap();
            assert_eq!(arenas.locate(id), place);
            // SAFETY: these units were just taken.
            unsafe { place.write_bytes(7, units as usize * 8) };
        }
    }

    #[test]
    fn ids_end_with_an_error() {
        let arenas = arenas(8, 8, 2 * GRANULE);
        let desk = Desk::new();
        let some = (0..4 * GRANULE).filter(|_| taken(&arenas, &desk, 1).is_ok()).count();
        assert_eq!(some as u64, NURSERY - 1 + GRANULE);
        assert_eq!(taken(&arenas, &desk, 1), Err(SeenError::Ids));
    }
}
