//! The calling thread's own seats, one per domain it has pinned.
//!
//! **K1.** A local seat is taken by its thread at the first `pin` of a domain and vacated when the
//! thread ends, or when the domain is gone and the thread pins another.
//! **K2.** `LAST` names a seat that `SEATS` owns, or nothing: it is cleared before an owner goes.
//! **K3.** When the thread's locals are gone, or go while a section is open, the seat is abandoned
//! (`roster` Q6), and vacated when that section is left ([`orphan`](SeatState::orphan)). A section
//! that was forgotten is never left: its seat stays as it is until the roster drops.
//! **K4.** A thread that ends writes no cell of a seat that the domain's drop looks at: the domain
//! may be dropped at the same time, since a forgotten section borrows nothing.

use super::domain::Core;
use super::seat::SeatState;
use crate::roster::{Roster, Seat};
use crate::sync::{Arc, Ordering, fork, thread_local_cell};
use std::cell::{Cell, RefCell};
use std::ptr::null;

type Last = (*const Roster<SeatState>, *const SeatState);

thread_local_cell! {
    static LAST: Cell<Last> = Cell::new((null(), null()))
}
thread_local_cell! {
    static SEATS: Seats = Seats(RefCell::new(Vec::new()))
}

#[derive(Debug)]
struct Seats(RefCell<Vec<Seat<SeatState>>>);

impl Drop for Seats {
    fn drop(&mut self) {
        let _ = LAST.try_with(|last| last.set((null(), null())));
        for seat in self.0.get_mut().drain(..) {
            vacate(seat);
        }
    }
}

/// Vacates a seat, now or when its open section is left (K3).
fn vacate(seat: Seat<SeatState>) {
    // ORDERING: Relaxed, as where it was set.
    seat.thread.store(0, Ordering::Relaxed);
    seat.set_laden(seat.is_laden());
    if seat.is_inside() {
        orphan(seat);
    }
}

fn orphan(seat: Seat<SeatState>) {
    seat.orphan(seat.address());
    seat.abandon();
}

/// The calling thread's seat in `core`'s roster.
#[inline(always)]
pub(super) fn seat(core: &Core) -> &SeatState {
    last(core).unwrap_or_else(|| seat_slow(core))
}

/// The same, if it was the last one this thread used.
#[inline(always)]
pub(super) fn last(core: &Core) -> Option<&SeatState> {
    let roster = &raw const *core.roster;
    match LAST.try_with(Cell::get) {
        // SAFETY: `SEATS` owns the seat (K2), and `core` keeps the roster and so the node alive.
        Ok((last, seat)) if std::ptr::eq(last, roster) => Some(unsafe { &*seat }),
        _ => None,
    }
}

#[cold]
fn seat_slow(core: &Core) -> &SeatState {
    let found = SEATS.try_with(|seats| {
        let mut seats = seats.0.borrow_mut();
        let known = seats.iter().position(|seat| Arc::ptr_eq(seat.roster(), &core.roster));
        let index = known.unwrap_or_else(|| {
            seats.retain(|seat| !seat.roster().is_closed()); // (K1)
            let seat = core.take_seat();
            // ORDERING: Release for the second: partner is the sweep of a forked child, which must
            // not take this for a seat of the parent.
            seat.forks.store(fork::seen().0 as u32, Ordering::Relaxed);
            seat.thread.store(fork::thread_key(), Ordering::Release);
            seats.push(seat);
            seats.len() - 1
        });
        // SAFETY: `core` keeps the roster alive for as long as the result is borrowed.
        let state: &SeatState = unsafe { seats[index].state_unbound() };
        let _ = LAST.try_with(|last| last.set((&raw const *core.roster, state)));
        state
    });
    found.unwrap_or_else(|_| {
        // The thread's locals are gone: a seat for one section (K3).
        let seat = core.take_seat();
        // SAFETY: `core` keeps the roster alive for as long as the result is borrowed.
        let state: &SeatState = unsafe { seat.state_unbound() };
        orphan(seat);
        state
    })
}

/// How many seats the calling thread keeps.
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
pub(super) fn seats() -> usize {
    SEATS.with(|seats| seats.0.borrow().len())
}
