//! The memory of pieces past their grace period, for the next boxes.

use super::collect::{self, Collecting};
use super::retired::Retired;
use super::seat::SeatState;
use std::mem::{MaybeUninit, needs_drop};

/// Boxes a value, in the memory of the next piece that is past its grace period if it may be used
/// again (`reclaim` E11).
///
/// # Safety
/// All pieces of the seat's domain that are reusable are boxes of `T`.
#[inline(always)]
pub(super) unsafe fn boxed<T>(seat: &SeatState, value: T) -> Box<T> {
    match collect::take_reusable(seat) {
        // SAFETY: such a piece, past its grace period; the caller's promise.
        Some(piece) => unsafe { refill(seat, piece, value) },
        None => Box::new(value),
    }
}

/// # Safety
/// The piece is a box of `T`, and nobody refers to it any more.
#[inline(always)]
unsafe fn refill<T>(seat: &SeatState, piece: Retired, value: T) -> Box<T> {
    // SAFETY: out of a box of this layout, and ours alone; what lies there is looked at no more as
    // a `T` but below.
    let mut room: Box<MaybeUninit<T>> = unsafe { Box::from_raw(piece.place().cast()) };
    if needs_drop::<T>() {
        // User code: what it stores meanwhile is boxed anew, so that drops do not run inside of one
        // another without end. If it panics, the room is freed and
        // `value` dropped.
        let _collecting = Collecting::begin(seat);
        // SAFETY: the value that was retired; dropped once, here.
        unsafe { room.assume_init_drop() };
    }
    room.write(value);
    // SAFETY: just written.
    unsafe { room.assume_init() }
}
