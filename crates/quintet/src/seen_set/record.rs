//! What a set can hold.

use super::arena::{Arenas, Desk};
use super::budget::{Account, SeenError};
use super::builder::SeenSetBuilder;
use super::core::Entry;
use super::spare::Spare;
use crate::region::AllocError;
use crate::sync::Arc;
use std::alloc::Layout;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

/// What a [`SeenSet`](super::SeenSet) can hold: any `T: Hash + Eq + Send + Sync`, and byte strings, `[u8]`.
pub trait Record: sealed::Sealed {}

impl<T: Hash + Eq + Send + Sync> Record for T {}
impl Record for [u8] {}

mod sealed {
    use super::{BuildHasher, Hash, Layout};

    /// How records of a kind lie in memory.
    #[doc(hidden)]
    pub trait Sealed {
        /// Size and alignment of a unit, for a width that the user chose or none. `None`: no memory is so large.
        fn unit(width: Option<usize>) -> Option<Layout>;
        /// Whether records are byte strings, of one width or of their own lengths.
        const TEXT: bool;
        /// Whether records must be dropped.
        const NEEDS_DROP: bool;
        /// The hash of a record.
        fn hash_by(&self, hasher: &impl BuildHasher) -> u64;
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
        #[inline(always)]
        unsafe fn view<'a>(place: *const u8, _: Option<usize>) -> &'a T {
            // SAFETY: a `T` was written there and lives for `'a`, by the caller's promise. It is aligned: the first unit of an extent is, the
            // distance of units is a multiple of the alignment, above 0 even if `T` has no size (R6), and so is the head before a record.
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

    /// Bytes of the length in front of a byte string.
    pub(super) const LENGTH: usize = 4;
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
    /// Records come in through a shared reference. With the above: invariant in `R`, so that a set is never taken for one of records that live
    /// longer or less long.
    taken_in: PhantomData<fn(Box<R>)>,
}

impl<R: Record + ?Sized> Records<R> {
    pub(crate) fn new(
        builder: &SeenSetBuilder,
        ids: u64,
        account: &Arc<Account>,
        spare: &Arc<Spare>,
    ) -> Result<Self, SeenError> {
        let wide = ids > 1 << 32;
        let origin = match (builder.parents, wide) {
            (false, _) => 0,
            (true, false) => 8,
            (true, true) => 16,
        };
        let unit = R::unit(builder.width).ok_or(AllocError::CapacityOverflow)?;
        let head = usize::next_multiple_of(origin, unit.align());
        // Byte strings with their own lengths are cut into units of 8 bytes.
        let is_cut = R::TEXT && builder.width.is_none();
        let bytes = if is_cut { Some(unit.size()) } else { head.checked_add(unit.size()) };
        let layout = bytes.and_then(|bytes| Layout::from_size_align(bytes, unit.align()).ok());
        let layout = layout.ok_or(AllocError::CapacityOverflow)?;
        Ok(Self {
            arenas: Arenas::try_new(layout, ids, builder.pages_wanted(), account, spare)?,
            parents: builder.parents,
            wide,
            head,
            width: builder.width,
            owned: PhantomData,
            taken_in: PhantomData,
        })
    }

    /// The record of an id that this set gave out.
    #[inline(always)]
    pub(crate) fn get(&self, id: u64) -> &R {
        // SAFETY: an id is given out after its record was written (R1), which lives as long as the set.
        unsafe { R::view(self.locate(id), self.width) }
    }

    /// Where the record of an id lies that this set gave out.
    #[inline(always)]
    pub(crate) fn locate(&self, id: u64) -> *const u8 {
        self.arenas.locate(id).wrapping_add(self.head)
    }

    /// Whether the record at a place is this one.
    ///
    /// # Safety
    /// `locate` gave the place for a record that is in the set.
    #[inline(always)]
    pub(crate) unsafe fn is_at(&self, place: *const u8, record: &R) -> bool
    where
        R: Eq,
    {
        // SAFETY: a word is in the set after its record was written (R1), which lives as long as the set.
        let kept = unsafe { R::view(place, self.width) };
        kept == record
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

impl Records<[u8]> {
    /// A record of another length than the set's cannot be taken in.
    #[inline(always)]
    pub(crate) fn check_width(&self, bytes: &[u8]) -> Result<(), SeenError> {
        match self.width {
            Some(width) if width != bytes.len() => {
                Err(SeenError::Width { expected: width, found: bytes.len() })
            }
            None if bytes.len() > u32::MAX as usize => {
                Err(SeenError::Width { expected: u32::MAX as usize, found: bytes.len() })
            }
            _ => Ok(()),
        }
    }
}

/// A typed record on its way in. It stays the caller's until it is in the set.
pub(crate) struct Typed<'a, T> {
    pub(crate) records: &'a Records<T>,
    pub(crate) desk: &'a Desk,
    pub(crate) record: &'a T,
    pub(crate) origin: Origin,
    pub(crate) id_mask: u64,
}

impl<T: Hash + Eq + Send + Sync> Entry for Typed<'_, T> {
    const USER: bool = true;

    #[inline(always)]
    fn same(&self, word: u64) -> bool {
        self.records.get(word & self.id_mask) == self.record
    }

    #[inline(always)]
    fn write(&mut self) -> Option<u64> {
        let (id, place) = self.records.arenas.take(self.desk, 1)?;
        self.records.write_origin(place, self.origin);
        let place = place.wrapping_add(self.records.head).cast::<T>();
        // SAFETY: the unit was just taken, is ours alone (R2) and aligned (R6). The bits are the caller's to forget if the record gets in,
        // and are forgotten here by `take_back` if not.
        unsafe { std::ptr::copy_nonoverlapping(self.record, place, 1) };
        Some(id)
    }

    fn make_room(&mut self) -> Result<(), SeenError> {
        self.records.arenas.extend(self.desk, 1)
    }

    #[inline(always)]
    fn take_back(&mut self) {
        self.records.arenas.take_back(self.desk, 1);
    }
}

/// A byte string on its way in.
pub(crate) struct Text<'a> {
    pub(crate) records: &'a Records<[u8]>,
    pub(crate) desk: &'a Desk,
    pub(crate) record: &'a [u8],
    pub(crate) origin: Origin,
    pub(crate) id_mask: u64,
}

impl Text<'_> {
    #[inline(always)]
    fn units(&self) -> u64 {
        match self.records.width {
            Some(_) => 1,
            None => {
                self.records.arenas.units(self.records.head + sealed::LENGTH + self.record.len())
            }
        }
    }
}

impl Entry for Text<'_> {
    const USER: bool = false;

    #[inline(always)]
    fn same(&self, word: u64) -> bool {
        self.records.get(word & self.id_mask) == self.record
    }

    #[inline(always)]
    fn write(&mut self) -> Option<u64> {
        let (id, place) = self.records.arenas.take(self.desk, self.units())?;
        self.records.write_origin(place, self.origin);
        let mut content = place.wrapping_add(self.records.head);
        if self.records.width.is_none() {
            // SAFETY: the units were just taken, are ours alone (R2) and begin with the length. It fits: `check_width`.
            unsafe { content.cast::<u32>().write_unaligned(self.record.len() as u32) };
            content = content.wrapping_add(sealed::LENGTH);
        }
        // SAFETY: so many bytes were asked for, or are the set's width, which was checked.
        unsafe { content.copy_from_nonoverlapping(self.record.as_ptr(), self.record.len()) };
        Some(id)
    }

    fn make_room(&mut self) -> Result<(), SeenError> {
        self.records.arenas.extend(self.desk, self.units())
    }

    #[inline(always)]
    fn take_back(&mut self) {
        self.records.arenas.take_back(self.desk, self.units());
    }
}
