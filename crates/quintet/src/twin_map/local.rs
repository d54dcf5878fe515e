//! The calling thread's own seats, one per table that it reads through the table itself.
//!
//! **L1.** A local seat is taken by its thread at its first guard of a table, and vacated when the
//! thread ends, or when the table is gone and the thread reads another one for the first time.
//! **L2.** `LAST` names a seat that `SEATS` owns, or nothing: it is cleared before an owner goes.
//! **L3.** When the thread's locals go while a guard lives, the seat is abandoned: it stays taken,
//! by nobody, until the roster drops. When they are gone, each guard gets a seat of its own, which
//! is abandoned while the guard lives and vacated by the next one of that kind.

use super::gate::{Gate, SeatState};
use super::word::Door;
use crate::roster::{Roster, Seat};
use crate::sync::{Arc, thread_local_cell};
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
        // A seat that is left quiet is vacated by its drop.
        let seats = self.0.get_mut().drain(..);
        seats.filter(|seat| !seat.is_quiet()).for_each(Seat::abandon);
    }
}

/// Enters by the calling thread's seat.
#[inline(always)]
pub(super) fn enter(gate: &Gate) -> (&SeatState, Door) {
    let roster = &raw const **gate.roster();
    match LAST.try_with(Cell::get) {
        Ok((last, seat)) if std::ptr::eq(last, roster) => {
            // SAFETY: `SEATS` owns the seat (L2), and the gate keeps the roster and so the seat.
            let seat = unsafe { &*seat };
            (seat, gate.enter(seat))
        }
        _ => enter_slowly(gate),
    }
}

#[cold]
#[inline(never)]
fn enter_slowly(gate: &Gate) -> (&SeatState, Door) {
    let found = SEATS.try_with(|seats| {
        let mut seats = seats.0.borrow_mut();
        let known = seats.iter().position(|seat| Arc::ptr_eq(seat.roster(), gate.roster()));
        let index = known.unwrap_or_else(|| {
            // A forgotten guard of a table that is gone guards nothing (L1).
            seats.retain(|seat| !seat.roster().is_closed());
            seats.push(gate.join());
            seats.len() - 1
        });
        // SAFETY: the gate keeps the roster for as long as the result is borrowed.
        let state: &SeatState = unsafe { seats[index].state_unbound() };
        let _ = LAST.try_with(|last| last.set((&raw const **gate.roster(), state)));
        state
    });
    match found {
        Ok(seat) => (seat, gate.enter(seat)),
        Err(_) => gate.enter_orphaned(),
    }
}

/// How many seats the calling thread keeps.
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
pub(super) fn seats() -> usize {
    SEATS.with(|seats| seats.0.borrow().len())
}
