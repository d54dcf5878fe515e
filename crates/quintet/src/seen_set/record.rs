//! What a set can hold.

use super::arena::{Arenas, Shape};
use super::budget::{Account, SeenError};
use super::builder::Settings;
use super::core::Entry;
use super::desk::Desk;
use super::offer::{LENGTH, Offer};
use super::spare::Spare;
use super::word::Split;
use crate::region::AllocError;
use crate::sync::Arc;
use std::alloc::Layout;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

/// What a [`SeenSet`](super::SeenSet) can hold: any `T: Hash + Eq + Send + Sync`, and byte strings,
/// `[u8]`.
#[diagnostic::on_unimplemented(
    message = "a `SeenSet` cannot hold `{Self}`",
    label = "not a record",
    note = "a record is `Hash + Eq + Send + Sync`, or a byte string: `[u8]`"
)]
pub trait Record: sealed::Sealed {}

impl<T: Hash + Eq + Send + Sync> Record for T {}
impl Record for [u8] {}

mod sealed {
    use super::{BuildHasher, Hash, LENGTH, Layout};

    /// How records of a kind lie in memory.
    #[doc(hidden)]
    pub trait Sealed {
        /// Size and alignment of a unit, for a width that the user chose or none. `None`: no memory
        /// is so large.
        fn unit(width: Option<usize>) -> Option<Layout>;
        /// Whether records are byte strings, of one width or of their own lengths.
        const TEXT: bool;
        /// Whether records must be dropped.
        const NEEDS_DROP: bool;
        /// The hash of a record.
        fn hash_by(&self, hasher: &impl BuildHasher) -> u64;
        /// Whether two records are equal.
        fn is(&self, other: &Self) -> bool;
        /// The record at `place`.
        ///
        /// # Safety
        /// A record of this kind, in a set of this width, was written there and lives for `'a`.
        unsafe fn view<'a>(place: *const u8, width: Option<usize>) -> &'a Self;
        /// Drops the record at `place`.
        ///
        /// # Safety
        /// As `view`; nobody uses the record afterwards.
        unsafe fn drop_at(place: *mut u8);
    }

    impl<T: Hash + Eq + Send + Sync> Sealed for T {
        const TEXT: bool = false;
        const NEEDS_DROP: bool = std::mem::needs_drop::<T>();

        fn unit(_: Option<usize>) -> Option<Layout> {
            Some(Layout::new::<T>())
        }
        #[inline(always)]
        fn hash_by(&self, hasher: &impl BuildHasher) -> u64 {
            hasher.hash_one(self)
        }
        fn is(&self, other: &Self) -> bool {
            self == other
        }
        #[inline(always)]
        unsafe fn view<'a>(place: *const u8, _: Option<usize>) -> &'a T {
            // SAFETY: a `T` was written there and lives for `'a`, by the caller's promise. It is
            // aligned: the first unit of an extent is, the distance of units is a multiple of the
            // alignment, above 0 even if `T` has no size (`arena` R6), and so is the head before a
            // record.
            unsafe { &*place.cast::<T>() }
        }
        unsafe fn drop_at(place: *mut u8) {
            // SAFETY: the caller's promise.
            unsafe { place.cast::<T>().drop_in_place() };
        }
    }

    impl Sealed for [u8] {
        const TEXT: bool = true;
        const NEEDS_DROP: bool = false;

        fn unit(width: Option<usize>) -> Option<Layout> {
            match width {
                Some(width) => Layout::array::<u8>(width).ok(),
                None => Some(Layout::new::<u64>()),
            }
        }
        #[inline(always)]
        fn hash_by(&self, hasher: &impl BuildHasher) -> u64 {
            hasher.hash_one(self)
        }
        fn is(&self, other: &Self) -> bool {
            self == other
        }
        #[inline(always)]
        unsafe fn view<'a>(place: *const u8, width: Option<usize>) -> &'a [u8] {
            let (first, len) = match width {
                Some(width) => (place, width),
                None => {
                    // SAFETY: a record with its own length begins with it.
                    let len = unsafe { place.cast::<u32>().read_unaligned() };
                    (place.wrapping_add(LENGTH), len as usize)
                }
            };
            // SAFETY: so many bytes were written there, by the caller's promise.
            unsafe { std::slice::from_raw_parts(first, len) }
        }
        unsafe fn drop_at(_: *mut u8) {}
    }
}

/// Where a record came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Origin {
    /// The id of the parent, 0 for none.
    pub(crate) parent: u64,
    pub(crate) label: u32,
}

/// The records of a set: origin, if kept, then the record, in each unit.
#[derive(Debug)]
pub(crate) struct Records<R: ?Sized> {
    pub(crate) arenas: Arenas,
    parents: bool,
    wide: bool,
    /// Bytes from a record's place to its content.
    head: usize,
    width: Option<usize>,
    owned: PhantomData<Box<R>>,
    /// Records come in through a shared reference. With the above: invariant in `R`, so that a set
    /// is never taken for one of records that live longer or less long.
    taken_in: PhantomData<fn(Box<R>)>,
}

impl<R: Record + ?Sized> Records<R> {
    /// How the records of a set lie in memory, if any memory can hold them.
    pub(crate) fn shape(settings: &Settings) -> Result<Shape, SeenError> {
        let origin = match (settings.parents, settings.is_wide()) {
            (false, _) => 0,
            (true, false) => 8,
            (true, true) => 16,
        };
        let unit = R::unit(settings.width).ok_or(AllocError::CapacityOverflow)?;
        let head = usize::next_multiple_of(origin, unit.align());
        // Byte strings with their own lengths are cut into units of 8 bytes.
        let is_cut = R::TEXT && settings.width.is_none();
        let bytes = if is_cut { Some(unit.size()) } else { head.checked_add(unit.size()) };
        let layout = bytes.and_then(|bytes| Layout::from_size_align(bytes, unit.align()).ok());
        let shape = layout.and_then(|layout| Shape::new(layout, head));
        Ok(shape.ok_or(AllocError::CapacityOverflow)?)
    }

    pub(crate) fn new(
        settings: &Settings,
        shape: Shape,
        account: &Arc<Account>,
        spare: &Arc<Spare>,
    ) -> Self {
        Self {
            arenas: Arenas::new(shape, settings.ids(), settings.pages, account, spare),
            parents: settings.parents,
            wide: settings.is_wide(),
            head: shape.head,
            width: settings.width,
            owned: PhantomData,
            taken_in: PhantomData,
        }
    }

    /// The record of an id that this set gave out.
    #[inline(always)]
    pub(crate) fn get(&self, id: u64) -> &R {
        // SAFETY: an id is given out after its record was written (`arena` R1), which lives as long
        // as the set.
        unsafe { R::view(self.locate(id), self.width) }
    }

    /// Where the record of an id lies that this set gave out.
    #[inline(always)]
    pub(crate) fn locate(&self, id: u64) -> *const u8 {
        self.arenas.locate(id).wrapping_add(self.head)
    }

    /// The record at a place.
    ///
    /// # Safety
    /// `locate` gave the place for a record that is in the set.
    #[inline(always)]
    pub(crate) unsafe fn at(&self, place: *const u8) -> &R {
        // SAFETY: a word is in the set after its record was written (`arena` R1), which lives as
        // long as the set.
        unsafe { R::view(place, self.width) }
    }

    /// Whether a set of these records takes what is offered.
    #[inline(always)]
    pub(crate) fn check(&self, offer: &impl Offer<R>) -> Result<(), SeenError> {
        offer.fits(self.width)
    }

    /// The origin of an id that this set gave out.
    pub(crate) fn origin(&self, id: u64) -> Origin {
        if !self.parents {
            return Origin::default();
        }
        let place = self.arenas.locate(id).cast::<u64>();
        // SAFETY: the origin was written with the record.
        let first = unsafe { place.read_unaligned() };
        if !self.wide {
            return Origin { parent: first & u64::from(u32::MAX), label: (first >> 32) as u32 };
        }
        // SAFETY: as above, the second word.
        let second = unsafe { place.wrapping_add(1).read_unaligned() };
        Origin { parent: first, label: second as u32 }
    }

    #[inline(always)]
    fn write_origin(&self, place: *mut u8, origin: Origin) {
        if !self.parents {
            return;
        }
        let place = place.cast::<u64>();
        let narrow = origin.parent | u64::from(origin.label) << 32;
        let first = if self.wide { origin.parent } else { narrow };
        // SAFETY: the unit was just taken and begins with the origin.
        unsafe { place.write_unaligned(first) };
        if self.wide {
            // SAFETY: as above, the second word.
            unsafe { place.wrapping_add(1).write_unaligned(u64::from(origin.label)) };
        }
    }

    /// Drops the record of an id.
    ///
    /// # Safety
    /// The set is about to go, and the id is dropped once.
    pub(crate) unsafe fn drop_record(&self, id: u64) {
        let place = self.arenas.locate(id).wrapping_add(self.head);
        // SAFETY: the caller's promise.
        unsafe { R::drop_at(place) };
    }
}

/// A record on its way in. It stays the caller's until it is in the set.
pub(crate) struct Incoming<'a, R: Record + ?Sized, O> {
    pub(crate) records: &'a Records<R>,
    pub(crate) desk: &'a Desk,
    pub(crate) offer: &'a O,
    pub(crate) origin: Origin,
}

impl<R: Record + ?Sized, O> Clone for Incoming<'_, R, O> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Record + ?Sized, O> Copy for Incoming<'_, R, O> {}

impl<R: Record + ?Sized, O: Offer<R>> Incoming<'_, R, O> {
    #[inline(always)]
    fn has_own_length(&self) -> bool {
        R::TEXT && self.records.width.is_none()
    }

    #[inline(always)]
    fn units(&self) -> u64 {
        match self.has_own_length() {
            false => 1,
            true => self.records.arenas.units(self.records.head + LENGTH + self.offer.bytes()),
        }
    }
}

impl<R: Record + ?Sized, O: Offer<R>> Entry for Incoming<'_, R, O> {
    const USER: bool = O::USER;

    #[inline(always)]
    fn same(self, word: u64, _: u64, split: Split) -> bool {
        self.offer.is(self.records.get(split.id(word)))
    }

    #[inline(always)]
    fn make(self) {
        self.offer.make();
    }

    #[inline(always)]
    fn write(self) -> Option<u64> {
        let (id, place) = self.records.arenas.take(self.desk, self.units())?;
        self.records.write_origin(place, self.origin);
        let place = place.wrapping_add(self.records.head);
        // SAFETY: the units were just taken, are ours alone (`arena` R2) and aligned (`arena` R6).
        // The offer was made, and is the caller's to forget if the record gets in; if not,
        // `take_back` forgets the place.
        unsafe { self.offer.write(place, self.has_own_length()) };
        Some(id)
    }

    fn make_room(self) -> Result<(), SeenError> {
        self.records.arenas.extend(self.desk, self.units())
    }

    #[inline(always)]
    fn take_back(self) {
        self.records.arenas.take_back(self.desk, self.units());
    }
}
