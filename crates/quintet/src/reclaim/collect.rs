//! Sealing, scanning, freeing. Runs outside of sections where it can: a batch sealed inside one's
//! own section is held back by oneself.

use super::domain::Core;
use super::lists::{Kept, Lists};
use super::retired::Retired;
use super::seat::{DUE, NEVER, OUTSIDE, SeatState};
use crate::roster::Roster;
use crate::sync::prefetch::prefetch_write;
use crate::sync::{MODEL, Ordering, fork};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// So many pieces are in a batch at most: one barrier for all of them. Small batches are for tests
/// that want memory to be freed as early as it may be.
pub const BATCH: usize = match (MODEL, cfg!(quintet_small_batches)) {
    (true, _) => 1,
    (_, true) => 2,
    _ => BATCH_BYTES / Retired::BESIDES,
};

/// A batch is sealed when its pieces weigh so much, or a part of it: their bytes with what each
/// costs besides, its entry in a list and the allocator's share. 768 pieces of 64 bytes weigh just
/// this.
pub const BATCH_BYTES: usize = 90 << 10;

/// The same where a batch is small.
pub(super) const FULL: usize = match (MODEL, cfg!(quintet_small_batches)) {
    (true, _) => 1,
    (_, true) => 2 * Retired::BESIDES,
    _ => BATCH_BYTES,
};

/// Pieces from this size on are freed as soon as they may: they are few, and hold much.
const LARGE: usize = 4 << 10;

/// An owner that leaves behind so much, by weight, or a full batch, collects first.
const MUCH: usize = BATCH_BYTES / 4;

/// The cache is asked for a piece so many before it is freed.
const AHEAD: usize = 2;

/// Adds a piece to the seat's batch.
#[inline(always)]
pub(super) fn retire(core: &Core, seat: &SeatState, piece: Retired) {
    let piece_bytes = piece.bytes();
    let (items, bytes) = seat.counted();
    seat.count(items + 1, bytes + piece_bytes);
    let lists = lists_of(core, seat);
    let bag_weight = lists.bag_weight.get() + piece.weight();
    lists.bag_weight.set(bag_weight);
    if piece_bytes >= LARGE {
        lists.bag_mixed.set(true);
    }
    lists.bag.borrow_mut().push(piece);
    if bag_weight >= lists.batch.get() {
        bag_is_full(core, seat, lists);
    }
}

/// The seat's lists, made now if there are none.
#[inline(always)]
fn lists_of<'a>(core: &Core, seat: &'a SeatState) -> &'a Lists {
    #[cold]
    fn make<'a>(core: &Core, seat: &'a SeatState) -> &'a Lists {
        seat.lists.get_or_init(|| Box::new(Lists::new(core.batch())))
    }
    match seat.lists.get() {
        Some(lists) => lists,
        None => make(core, seat),
    }
}

#[cold]
fn bag_is_full(core: &Core, seat: &SeatState, lists: &Lists) {
    seat.ask(DUE);
    // A section that goes on retiring collects while it is open; others when they are left.
    let pieces = lists.bag.borrow().len();
    let much = pieces >= 2 * BATCH || (!MODEL && lists.bag_weight.get() >= 2 * FULL);
    if much || !seat.is_inside() {
        collect(core, seat, false);
    }
}

/// Frees the next piece that is past its grace period: one for each that is retired, so that no
/// operation pays for a whole batch, and the allocator gets back as much as it gives. Two if many
/// have gathered, behind a reader that slept.
///
/// Who boxes with `Visit::boxed` what it stores is `using` them up itself:
/// then nothing is freed, unless many have gathered. And of those that nothing happens to when they
/// are dropped, a batch is left for who stores next (`reclaim` E11).
#[inline(always)]
pub(super) fn free_some(core: &Core, seat: &SeatState, using: bool) {
    if seat.collecting.get() {
        return;
    }
    let Some((piece, left)) = next_ready(seat, using) else { return };
    let _collecting = Collecting::begin(seat);
    free_one(core, seat, piece);
    if left > 2 * BATCH {
        if let Some((piece, _)) = next_ready(seat, using) {
            free_one(core, seat, piece);
        }
    }
}

/// Takes out the next piece to be freed, and says how many are left. The lists are not borrowed
/// while it is freed: user code may retire more.
#[inline(always)]
fn next_ready(seat: &SeatState, using: bool) -> Option<(Retired, usize)> {
    let lists = seat.lists.get()?;
    let mut ready = lists.ready.borrow_mut();
    let next = ready.last()?;
    if next.is_reusable() && (using || next.is_plain()) {
        let enough = if using { 2 * lists.batch.get() } else { lists.batch.get() };
        if ready.len() * next.weight() <= enough {
            return None;
        }
    }
    let piece = ready.pop()?;
    let left = ready.len();
    if let Some(next) = ready.get(left.wrapping_sub(AHEAD)) {
        next.prefetch();
    }
    Some((piece, left))
}

#[inline(always)]
fn free_one(core: &Core, seat: &SeatState, piece: Retired) {
    let (items, bytes) = seat.counted();
    seat.count(items - 1, bytes - piece.bytes());
    if let Some(rest) = piece.step() {
        return_later(core, rest);
    }
}

/// Ends the mark, also when a piece panics.
pub(super) struct Collecting<'a>(&'a SeatState);

impl<'a> Collecting<'a> {
    /// Marks the seat: pieces that retire others, or box, free nothing meanwhile.
    #[inline(always)]
    pub(super) fn begin(seat: &'a SeatState) -> Self {
        seat.collecting.set(true);
        Self(seat)
    }
}

impl Drop for Collecting<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.collecting.set(false);
    }
}

/// Takes out a piece past its grace period whose memory may be used again, if that is the next one
/// (`reclaim` E11). It is counted no longer.
#[inline(always)]
pub(super) fn take_reusable(seat: &SeatState) -> Option<Retired> {
    if seat.collecting.get() {
        return None;
    }
    let mut ready = seat.lists.get()?.ready.borrow_mut();
    if !ready.last()?.is_reusable() {
        return None;
    }
    let piece = ready.pop()?;
    if let Some(next) = ready.get(ready.len().wrapping_sub(AHEAD)) {
        prefetch_write(next.place());
    }
    let (items, bytes) = seat.counted();
    seat.count(items - 1, bytes - piece.bytes());
    Some(piece)
}

/// Frees all that is past its grace period.
pub(super) fn free_ready(core: &Core, seat: &SeatState) {
    let Some(lists) = seat.lists.get() else { return };
    if lists.ready.borrow().is_empty() || seat.collecting.replace(true) {
        return;
    }
    let _collecting = Collecting(seat);
    let ready = lists.ready.take();
    let bytes: usize = ready.iter().map(Retired::bytes).sum();
    let (items, held) = seat.counted();
    seat.count(items - ready.len(), held - bytes);
    free_stepwise(core, ready);
}

/// Seals the seat's batch and frees what no section can refer to (`reclaim` E4). With `all`, looks
/// at everything kept as well.
///
/// In the usual case nothing is looked at: a batch of small pieces waits as it is until the next
/// collection, and if no section is left then that was open when it was sealed, all of it is past
/// its grace period.
pub(super) fn collect(core: &Core, seat: &SeatState, all: bool) {
    if seat.lists.get().is_none() && !core.roster.has_laden() {
        return;
    }
    // A piece's own drop may retire or leave a section: its garbage waits for the next round.
    if seat.collecting.replace(true) {
        return;
    }
    seat.settle(DUE);
    let lists = lists_of(core, seat);
    let mixed = lists.bag_mixed.get();
    let mut free = Vec::new();
    let mut batch = lists.take_bag();
    let mut kept = lists.kept.take();
    let mut ready = lists.ready.take();
    let mixed = adopt(core, seat, &mut batch, &mut kept, &mut ready) || mixed;
    let whole = !(mixed || all || MODEL);
    if let Some(stamp) = seal(core, &batch) {
        lists.batch.set(core.batch());
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
        let mut spare = Vec::new();
        if kept.last.0 < scan.floor {
            spare = std::mem::take(&mut kept.last.1);
        }
        // Held back for the second time: who holds what is asked piece by piece.
        kept.take_last().into_iter().filter_map(&mut sort).for_each(|piece| kept.push(piece));
        if !whole {
            batch.iter_mut().for_each(|piece| piece.retire = stamp);
            batch.drain(..).filter_map(sort).for_each(|piece| kept.push(piece));
        }
        move_all(&mut spare, &mut ready);
        if whole && stamp < scan.floor {
            move_all(&mut batch, &mut ready);
        } else if whole {
            kept.last = (stamp, std::mem::replace(&mut batch, spare));
        }
        kept.set_floor(scan.floor);
    }
    let (items, bytes) = seat.counted();
    let freed: usize = free.iter().map(Retired::bytes).sum();
    seat.count(items - free.len(), bytes - freed);
    // Nothing of ours is borrowed while pieces are freed: user code may retire more.
    lists.bag_weight.set(batch.iter().map(Retired::weight).sum());
    lists.bag_mixed.set(mixed && !batch.is_empty());
    lists.bag.replace(batch);
    lists.kept.replace(kept);
    lists.ready.replace(ready);
    let outcome = catch_unwind(AssertUnwindSafe(|| free_stepwise(core, free)));
    seat.collecting.set(false);
    if all {
        free_ready(core, seat);
    }
    propagate(outcome.err());
}

/// The owner goes. Its garbage stays with the seat, for the next owner or for who adopts it, unless
/// it is much: so the end of an owner costs the same however many others there are.
pub(super) fn leave(core: &Core, seat: &SeatState) {
    let much = seat.lists.get().is_some_and(|lists| lists.bag_weight.get() >= MUCH);
    if much || seat.is_asked(DUE) {
        collect(core, seat, false);
        free_ready(core, seat);
    }
}

/// Moves all pieces of one list to another, in any order: the fewer are moved, and both keep their
/// memory.
fn move_all(from: &mut Vec<Retired>, to: &mut Vec<Retired>) {
    if to.len() < from.len() {
        std::mem::swap(from, to);
    }
    to.append(from);
}

/// Takes over what vacated seats left behind. True if that was something.
fn adopt(
    core: &Core,
    seat: &SeatState,
    batch: &mut Vec<Retired>,
    kept: &mut Kept,
    ready: &mut Vec<Retired>,
) -> bool {
    let mut adopted = false;
    while let Some(vacated) = Roster::take_laden(&core.roster) {
        let Some(lists) = vacated.lists.get() else { continue };
        let ((items, bytes), (more, more_bytes)) = (seat.counted(), vacated.counted());
        seat.count(items + more, bytes + more_bytes);
        let [mut bag, sealed, mut free] = lists.take_all();
        batch.append(&mut bag);
        kept.adopt(sealed.into_iter());
        ready.append(&mut free);
        vacated.count(0, 0);
        vacated.settle(DUE);
        adopted = true;
    }
    adopted
}

/// Runs the barrier of a batch and returns its stamp. `None` if the barrier was refused: nothing
/// may be freed (`reclaim` E6).
pub(super) fn seal(core: &Core, batch: &[Retired]) -> Option<u64> {
    if batch.is_empty() {
        // What is kept has had its barrier (`reclaim` E5).
        return Some(0);
    }
    // ORDERING: AcqRel: the unlinks come before (Release, partner: enter's Acquire load of the
    // era); one RMW per batch, never a plain load (`reclaim` E2).
    let stamp = core.pulse.era.fetch_add(1, Ordering::AcqRel);
    if !core.heavy() {
        core.refused.fetch_add(1, Ordering::Relaxed);
        return None;
    }
    Some(stamp)
}

/// The intervals of all seats that are inside, at one look.
pub(super) struct Scan {
    inside: Vec<(u64, u64)>,
    floor: u64,
}

impl Scan {
    pub(super) fn of(core: &Core) -> Self {
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

    /// `reclaim` E1.
    pub(super) fn allows(&self, piece: &Retired) -> bool {
        self.inside.iter().all(|&(lower, upper)| piece.retire < lower || piece.birth > upper)
    }
}

/// In a forked child, vacates the thread-local seats of threads that did not come along.
fn sweep_after_fork(core: &Core) {
    let (forks, survivor) = fork::seen();
    // ORDERING: Relaxed: forks are rare, and sweeping twice is harmless.
    if core.forks.load(Ordering::Relaxed) == forks {
        return;
    }
    core.forks.store(forks, Ordering::Relaxed);
    core.roster.visit(|seat| {
        // ORDERING: Acquire: partner is the Release in `local::seat_slow`: who is named has told
        // its forks.
        let thread = seat.thread.load(Ordering::Acquire);
        // A seat taken since the last fork belongs to a thread of this process.
        let of_an_ancestor = seat.forks.load(Ordering::Relaxed) != forks as u32;
        if thread != 0 && thread != survivor && of_an_ancestor {
            // ORDERING: Release, as in `go_outside`.
            seat.lower.store(OUTSIDE, Ordering::Release);
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
