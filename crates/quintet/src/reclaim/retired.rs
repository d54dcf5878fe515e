//! One piece of garbage.

use crate::sync::prefetch::prefetch_write;

/// Memory is used again. Not where every use of freed memory shall be seen: a checker takes what is
/// used again for alive.
const REUSE: bool = !cfg!(any(quintet_small_batches, quintet_loom, quintet_shuttle));

/// Marks of a piece. Its bytes are far fewer.
const REUSABLE: usize = 1 << (usize::BITS - 1);
const PLAIN: usize = 1 << (usize::BITS - 2);

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
    /// With the marks of what may be used again in the highest bits.
    bytes: usize,
    pub(super) birth: u64,
    /// The batch's stamp; set by sealing.
    pub(super) retire: u64,
}

// SAFETY: `new` demands that the piece may be freed by any thread.
unsafe impl Send for Retired {}

impl Retired {
    /// What a piece costs besides its bytes while it waits: its entry in a list, and what an
    /// allocator adds to a block.
    pub(super) const BESIDES: usize = size_of::<Self>() + 16;

    /// A piece at `place`, born in era `birth`, that `free` will free, in one call or in several.
    ///
    /// # Safety
    /// `free(place)` may be called by any thread, until it says [`Freed::Done`], once nobody refers
    /// to the piece.
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

    /// The same piece, marked as one whose memory may become that of the next box (`reclaim` E11).
    ///
    /// # Safety
    /// Its place came from a `Box<T>`, and all pieces of its domain that are marked are boxes of
    /// the same `T`.
    #[inline(always)]
    #[must_use]
    pub unsafe fn reusable<T>(mut self) -> Self {
        if REUSE && size_of::<T>() > 0 {
            self.bytes |= if std::mem::needs_drop::<T>() { REUSABLE } else { REUSABLE | PLAIN };
        }
        self
    }

    /// Bytes this piece holds back.
    #[inline(always)]
    pub fn bytes(&self) -> usize {
        self.bytes & !(REUSABLE | PLAIN)
    }

    /// What the piece costs while it waits.
    #[inline(always)]
    pub(super) fn weight(&self) -> usize {
        self.bytes() + Self::BESIDES
    }

    /// Whether its memory may become that of the next box (`reclaim` E11).
    #[inline(always)]
    pub(super) fn is_reusable(&self) -> bool {
        self.bytes & REUSABLE != 0
    }

    /// Whether, besides, nothing happens when its value is dropped: it may wait for that.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.bytes & PLAIN != 0
    }

    /// Where it is, for who takes it over instead of freeing it.
    #[inline(always)]
    pub(super) fn place(&self) -> *mut () {
        self.place
    }

    /// Asks the cache for what freeing the piece writes first: what lies before it, a count or the
    /// allocator's.
    #[inline(always)]
    pub(super) fn prefetch(&self) {
        prefetch_write(self.place.wrapping_byte_sub(16));
    }

    /// Frees one step of the piece and hands it back if there is more to do.
    #[inline(always)]
    pub(super) fn step(self) -> Option<Self> {
        // SAFETY: pieces come here after their grace period (`reclaim` E1), and not again after
        // `Done`.
        match unsafe { (self.free)(self.place) } {
            Freed::Done => None,
            Freed::More => Some(self),
        }
    }
}
