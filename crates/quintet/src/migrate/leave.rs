//! The end of a table that nobody is led to any more.

use crate::reclaim::{Freed, Retired, Visit};

/// A table whose memory goes back to the system piece by piece.
pub(crate) trait Leave {
    /// Its bytes, and the era before it was published.
    fn bytes_and_birth(&self) -> (usize, u64);

    /// Gives a piece of its arrays back. True if that was the last.
    ///
    /// # Safety
    /// Nobody else can reach the table, and only this call and the drop follow.
    unsafe fn give_back(&mut self) -> bool;
}

/// Hands a table to the domain, which frees it when nobody can be inside any more.
///
/// # Safety
/// The table came out of a box, no link leads to it any more, any thread may drop it, and it is
/// retired once.
pub(super) unsafe fn retire<T: Leave>(visit: &Visit<'_>, table: *mut T) {
    // SAFETY: not freed yet: it is retired below.
    let (bytes, birth) = unsafe { &*table }.bytes_and_birth();
    // SAFETY: the caller's promise; `free` says when it is done.
    let piece = unsafe { Retired::new(table.cast(), bytes, birth, free::<T>) };
    // SAFETY: the caller has unlinked the table and calls once.
    unsafe { visit.retire(piece) };
}

/// Frees the arrays piece by piece, then the table.
///
/// # Safety
/// `place` is a table that nobody can reach; not called again after [`Freed::Done`].
unsafe fn free<T: Leave>(place: *mut ()) -> Freed {
    let table = place.cast::<T>();
    // SAFETY: nobody else can reach the table.
    let leaving = unsafe { &mut *table };
    // SAFETY: as above, and only this function follows.
    if !unsafe { leaving.give_back() } {
        return Freed::More;
    }
    // SAFETY: made from a box, and not used any more.
    drop(unsafe { Box::from_raw(table) });
    Freed::Done
}
