//! One piece of garbage.

use crate::sync::prefetch::prefetch_write;

/// What a call of a piece's `free` achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freed {
    /// Everything is free; the function is not called again.
    Done,
    /// A part is free; call again, at a pace.
    More,
}

/// Memory that is unreachable for new readers and waits until the old ones have left.
#[derive(Debug)]
pub struct Retired {
    place: *mut (),
    free: unsafe fn(*mut ()) -> Freed,
    bytes: usize,
    pub(super) birth: u64,
    /// The batch's stamp; set by sealing.
    pub(super) retire: u64,
}

// SAFETY: `new` demands that the piece may be freed by any thread.
unsafe impl Send for Retired {}

impl Retired {
    /// What a piece costs besides its bytes while it waits: its entry in a list, and what an allocator adds to a block.
    pub(super) const BESIDES: usize = size_of::<Self>() + 16;

    /// A piece at `place`, born in era `birth`, that `free` will free, in one call or in several.
    ///
    /// # Safety
    /// `free(place)` may be called by any thread, until it says [`Freed::Done`], once nobody refers to the piece.
    pub unsafe fn new(
        place: *mut (),
        bytes: usize,
        birth: u64,
        free: unsafe fn(*mut ()) -> Freed,
    ) -> Self {
        Self { place, free, bytes, birth, retire: u64::MAX }
    }

    /// A boxed value, given as the raw pointer readers have been using.
    ///
    /// # Safety
    /// `place` came from `Box::into_raw` and nobody else frees it.
    pub unsafe fn boxed<T: Send>(place: *mut T, birth: u64) -> Self {
        unsafe fn drop_box<T>(place: *mut ()) -> Freed {
            // SAFETY: made from a box by the caller of `boxed`; called once.
            drop(unsafe { Box::from_raw(place.cast::<T>()) });
            Freed::Done
        }
        // SAFETY: a box of a `Send` value may be dropped by any thread.
        unsafe { Self::new(place.cast(), size_of::<T>(), birth, drop_box::<T>) }
    }

    /// Bytes this piece holds back.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What the piece costs while it waits.
    #[inline(always)]
    pub(super) fn weight(&self) -> usize {
        self.bytes + Self::BESIDES
    }

    /// Asks the cache for what freeing the piece writes first: what lies before it, a count or the allocator's.
    #[inline(always)]
    pub(super) fn prefetch(&self) {
        prefetch_write(self.place.wrapping_byte_sub(16));
    }

    /// Frees one step of the piece and hands it back if there is more to do.
    #[inline(always)]
    pub(super) fn step(self) -> Option<Self> {
        // SAFETY: pieces come here after their grace period (E1), and not again after `Done`.
        match unsafe { (self.free)(self.place) } {
            Freed::Done => None,
            Freed::More => Some(self),
        }
    }
}
