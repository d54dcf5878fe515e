//! Sealing, scanning, freeing. Runs outside of sections where it can: a batch sealed inside one's own section is held back by oneself.

use super::domain::Core;
use super::retired::Retired;
use super::seat::{DUE, Kept, NEVER, OUTSIDE, SeatState};
use crate::roster::Roster;
use crate::sync::{MODEL, Ordering, fork};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A batch is sealed when it has this many pieces: one barrier for all of them.
pub const BATCH: usize = if MODEL { 1 } else { 4096 };

/// Or this many bytes.
pub const BATCH_BYTES: usize = 256 << 10;

/// Pieces from this size on are freed as soon as they may: they are few, and hold much.
const LARGE: usize = 4 << 10;

/// Adds a piece to the seat's batch.
pub(super) fn retire(core: &Core, seat: &SeatState, piece: Retired) {
    // ORDERING: Relaxed: our own statistics.
    let bytes = seat.bytes.load(Ordering::Relaxed) + piece.bytes();
    let items = seat.items.load(Ordering::Relaxed) + 1;
    seat.count(items, bytes);
    seat.bag_bytes.set(seat.bag_bytes.get() + piece.bytes());
    let in_bag = {
        let mut bag = seat.bag.borrow_mut();
        bag.push(piece);
        bag.len()
    };
    if in_bag >= BATCH || seat.bag_bytes.get() >= BATCH_BYTES {
        seat.ask(DUE);
        // A section that goes on retiring collects while it is open; others when they are left.
        if !seat.is_inside() || in_bag >= 2 * BATCH {
            collect(core, seat, false);
        }
    }
    free_some(core, seat);
}

/// Frees the next piece that is past its grace period: one for each that is retired, so that no operation pays for a whole batch, and the
/// allocator gets back as much as it gives. Two if many have gathered, behind a reader that slept.
#[inline]
fn free_some(core: &Core, seat: &SeatState) {
    let many = match seat.ready.borrow().len() {
        0 => return,
        ready => ready > 2 * BATCH,
    };
    if seat.collecting.replace(true) {
        return;
    }
    let _collecting = Collecting(seat);
    for _ in 0..1 + usize::from(many) {
        // Not borrowed while the piece is freed: user code may retire more.
        let Some(piece) = seat.ready.borrow_mut().pop() else { return };
        if let Some(next) = seat.ready.borrow().last() {
            next.prefetch();
        }
        // ORDERING: Relaxed: our own statistics.
        let (items, bytes) =
            (seat.items.load(Ordering::Relaxed), seat.bytes.load(Ordering::Relaxed));
        seat.count(items - 1, bytes - piece.bytes());
        if let Some(rest) = piece.step() {
            return_later(core, rest);
        }
    }
}

/// Ends the mark, also when a piece panics.
struct Collecting<'a>(&'a SeatState);

impl Drop for Collecting<'_> {
    fn drop(&mut self) {
        self.0.collecting.set(false);
    }
}

/// Frees all that is past its grace period.
pub(super) fn free_ready(core: &Core, seat: &SeatState) {
    if seat.ready.borrow().is_empty() || seat.collecting.replace(true) {
        return;
    }
    let _collecting = Collecting(seat);
    let ready = seat.ready.take();
    let bytes: usize = ready.iter().map(Retired::bytes).sum();
    // ORDERING: Relaxed: our own statistics.
    let (items, held) = (seat.items.load(Ordering::Relaxed), seat.bytes.load(Ordering::Relaxed));
    seat.count(items - ready.len(), held - bytes);
    free_stepwise(core, ready);
}

/// Seals the seat's batch and frees what no section can refer to (E4). With `all`, looks at everything kept as well.
pub(super) fn collect(core: &Core, seat: &SeatState, all: bool) {
    // A piece's own drop may retire or leave a section: its garbage waits for the next round.
    if seat.collecting.replace(true) {
        return;
    }
    seat.settle(DUE);
    let mut free = Vec::new();
    let mut batch = seat.bag.take();
    let mut kept = seat.kept.take();
    let mut ready = seat.ready.take();
    adopt(core, &mut batch, &mut kept);
    if seal(core, &mut batch) {
        let scan = Scan::of(core);
        // Small pieces wait for their turn; with `all`, nothing waits.
        let mut sort = |piece: Retired| {
            if !scan.allows(&piece) {
                return Some(piece);
            }
            let now = all || MODEL || piece.bytes() >= LARGE;
            if now { &mut free } else { &mut ready }.push(piece);
            None
        };
        if all || kept.is_worth_a_look(scan.floor) {
            kept.look(&mut sort);
        }
        batch.drain(..).filter_map(sort).for_each(|piece| kept.push(piece));
        kept.set_floor(scan.floor);
    }
    let held = batch.iter().chain(&ready);
    let (items, bytes) = held.fold((0, 0), |(n, sum), piece| (n + 1, sum + piece.bytes()));
    let (items, bytes) = (items + kept.len(), bytes + kept.bytes());
    // Nothing of ours is borrowed while pieces are freed: user code may retire more.
    seat.bag_bytes.set(batch.iter().map(Retired::bytes).sum());
    seat.bag.replace(batch);
    seat.kept.replace(kept);
    seat.ready.replace(ready);
    seat.count(items, bytes);
    let outcome = catch_unwind(AssertUnwindSafe(|| free_stepwise(core, free)));
    seat.collecting.set(false);
    if all {
        free_ready(core, seat);
    }
    propagate(outcome.err());
}

/// Takes over what vacated seats left behind.
fn adopt(core: &Core, batch: &mut Vec<Retired>, kept: &mut Kept) {
    let has_garbage = |seat: &SeatState| seat.items.load(Ordering::Relaxed) > 0;
    while let Some(vacated) = Roster::take_vacant(&core.roster, has_garbage) {
        batch.append(&mut vacated.bag.borrow_mut());
        vacated.bag_bytes.set(0);
        let theirs = vacated.kept.borrow_mut().take();
        kept.adopt(theirs.into_iter().chain(vacated.ready.take()));
        vacated.count(0, 0);
    }
}

/// Stamps the batch and runs its barrier. False if the barrier was refused: nothing may be freed (E6).
fn seal(core: &Core, batch: &mut [Retired]) -> bool {
    if batch.is_empty() {
        // What is kept has had its barrier (E5).
        return true;
    }
    // ORDERING: AcqRel: the unlinks come before (Release, partner: enter's Acquire load of the era); one RMW per
    // batch, never a plain load (E2).
    let stamp = core.pulse.era.fetch_add(1, Ordering::AcqRel);
    if !core.pulse.barrier.heavy() {
        core.refused.fetch_add(1, Ordering::Relaxed);
        return false;
    }
    batch.iter_mut().for_each(|piece| piece.retire = stamp);
    true
}

/// The intervals of all seats that are inside, at one look.
struct Scan {
    inside: Vec<(u64, u64)>,
    floor: u64,
}

impl Scan {
    fn of(core: &Core) -> Self {
        sweep_after_fork(core);
        let mut scan = Self { inside: Vec::new(), floor: NEVER };
        core.roster.visit(|seat| {
            // ORDERING: Acquire: partners are the Release stores of announce, widen and leave.
            let lower = seat.lower.load(Ordering::Acquire);
            let upper = seat.upper.load(Ordering::Acquire);
            if lower < OUTSIDE {
                scan.inside.push((lower, upper));
                scan.floor = scan.floor.min(lower);
            }
        });
        scan
    }

    /// E1.
    fn allows(&self, piece: &Retired) -> bool {
        self.inside.iter().all(|&(lower, upper)| piece.retire < lower || piece.birth > upper)
    }
}

/// In a forked child, vacates the thread-local seats of threads that did not come along.
fn sweep_after_fork(core: &Core) {
    let (forks, survivor) = fork::seen();
    // ORDERING: Relaxed: forks are rare, and sweeping twice is harmless.
    if core.forks.swap(forks, Ordering::Relaxed) == forks {
        return;
    }
    core.roster.visit(|seat| {
        let thread = seat.thread.load(Ordering::Relaxed);
        // A seat taken since the last fork belongs to a thread of this process.
        let of_an_ancestor = seat.forks.load(Ordering::Relaxed) != forks;
        if thread != 0 && thread != survivor && of_an_ancestor {
            seat.go_outside();
        }
    });
}

/// Frees pieces; large ones get their first step now and the rest later, at a pace.
fn free_stepwise(core: &Core, pieces: Vec<Retired>) {
    let mut panic = None;
    for piece in pieces {
        match catch_unwind(AssertUnwindSafe(|| piece.step())) {
            Ok(None) => {}
            Ok(Some(rest)) => return_later(core, rest),
            Err(payload) => panic = panic.or(Some(payload)),
        }
    }
    propagate(panic);
}

fn return_later(core: &Core, piece: Retired) {
    let mut returning = core.returning.lock();
    returning.push(piece);
    // ORDERING: Relaxed: a hint.
    core.pulse.returns.store(returning.len(), Ordering::Relaxed);
}

/// One more step of a large piece. True if more waits.
#[cold]
pub(super) fn return_piece(core: &Core) -> bool {
    let Some(mut returning) = core.returning.try_lock() else { return true };
    let Some(piece) = returning.pop() else { return false };
    if let Some(rest) = piece.step() {
        returning.push(rest);
    }
    // ORDERING: Relaxed: a hint.
    core.pulse.returns.store(returning.len(), Ordering::Relaxed);
    !returning.is_empty()
}

/// Everything that is past its grace period, at once.
pub(super) fn return_all(core: &Core) {
    // ORDERING: Relaxed: a hint.
    while core.pulse.returns.load(Ordering::Relaxed) != 0 && return_piece(core) {}
}

/// Frees pieces to their end.
pub(super) fn free_whole(pieces: Vec<Retired>) {
    let mut panic = None;
    for piece in pieces {
        let whole = || {
            let mut rest = Some(piece);
            while let Some(piece) = rest {
                rest = piece.step();
            }
        };
        panic = catch_unwind(AssertUnwindSafe(whole)).err().or(panic);
    }
    propagate(panic);
}

/// Goes on with a piece's panic, unless one is under way: then one is enough.
fn propagate(panic: Option<Box<dyn std::any::Any + Send>>) {
    match panic {
        Some(payload) if !std::thread::panicking() => resume_unwind(payload),
        _ => {}
    }
}
