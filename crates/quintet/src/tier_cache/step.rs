//! The doors to shared memory: every store goes through one of them and is a crash point.
//!
//! In tests a thread can be told to die at its n-th point (by signal, or by losing every later
//! store), or to let something else happen there. In other builds a point is nothing.

use super::word::Cell;
use crate::sync::{AtomicPair, AtomicU64, Ordering};

/// Names a store to shared memory, after the step of the protocol it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub(crate) enum Point {
    ClearLists,
    Open,
    NameRecord,
    TakeRecord,
    Payload,
    ListWord,
    Lock,
    Relock,
    Body,
    Planned,
    Hole,
    Reopen,
    Sealed,
    CellStore,
    Live,
    Kill,
    Count,
    Done,
    Release,
    Delivered,
    KillOut,
    Idle,
    Undo,
    Join,
    Leave,
    RecoveryLock,
    RecoverySeal,
    RecoveryOpen,
    RecoveryCell,
    RecoveryLive,
    RecoveryKill,
    RecoveryCount,
    RecoveryDone,
    RecoveryFree,
    RecoveryRelease,
    RecoveryKillOut,
    RecoveryIdle,
    RecoverySeat,
    RecoveryUnlock,
    /// A further block of an entry names its head.
    Chain,
    Unchain,
    FreeBit,
    Age,
    /// The ghost queue.
    Ghost,
    Touch,
    Expiry,
    Claim,
    Tick,
    Stat,
    Space,
    Flight,
    Lease,
    Time,
    Sweep,
    Maintain,
    /// A count of a quota, or who pays for an entry.
    Account,
    /// The book of a bucket: its last version and that of an entry, its watermark, its lease.
    Version,
    Watermark,
    BucketLease,
    /// Loads of a get: points for interleaving only.
    ReadControl,
    ReadCell,
    ReadRecord,
    ReadValue,
    ReadAgain,
}

#[cfg(test)]
impl Point {
    /// True for the loads of a get: nothing is left half done there.
    #[allow(dead_code)] // model checkers use fewer
    pub(crate) fn is_load(self) -> bool {
        self as u8 >= Self::ReadControl as u8
    }

    /// How many kinds of stores there are.
    #[allow(dead_code)] // model checkers use fewer
    pub(crate) const STORES: usize = Self::ReadControl as usize;
}

/// Marks a point. True: the thread counts as dead from here on, its stores have no effect.
macro_rules! crash_point {
    ($point:expr) => {{
        #[cfg(test)]
        {
            crate::tier_cache::step::reached($point)
        }
        #[cfg(not(test))]
        {
            let _ = $point;
            false
        }
    }};
}
pub(crate) use crash_point;

/// A release store.
#[inline(always)]
pub(crate) fn store(point: Point, word: &AtomicU64, value: u64) {
    if crash_point!(point) {
        return;
    }
    // ORDERING: Release: a survivor that sees this store sees all earlier ones of this thread, as a
    // killed process leaves a prefix of its stores. Partner: the Acquire loads of recovery,
    // planners and waiters.
    word.store(value, Ordering::Release);
}

/// Raises a word to at least `value`.
#[inline(always)]
pub(crate) fn raise(point: Point, word: &AtomicU64, value: u64) {
    if crash_point!(point) {
        return;
    }
    // ORDERING: Relaxed: the word says all there is to know; nothing is published by it.
    word.fetch_max(value, Ordering::Relaxed);
}

/// A compare-exchange; true if it took effect.
#[inline(always)]
pub(crate) fn exchange(point: Point, word: &AtomicU64, old: u64, new: u64) -> bool {
    if crash_point!(point) {
        return true;
    }
    // ORDERING: AcqRel: takes over what the last writer did (its Release store), publishes our
    // earlier stores.
    word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// A compare-exchange of a whole cell; true if it took effect.
#[inline(always)]
pub(crate) fn exchange_cell(point: Point, cell: &AtomicPair, old: Cell, new: Cell) -> bool {
    if crash_point!(point) {
        return true;
    }
    // ORDERING: AcqRel inside the pair (its `planner` P4). Partner: the Acquire cell loads of gets
    // and planners.
    cell.compare_exchange(old.words(), new.words()).is_ok()
}

/// A store of a whole cell that is guarded by a held word; false if it was not what the word's
/// holder left there.
#[inline(always)]
pub(crate) fn replace_cell(point: Point, cell: &AtomicPair, old: Cell, new: Cell) -> bool {
    if crash_point!(point) {
        return true;
    }
    let intact = cell.load() == old.words();
    if intact {
        // ORDERING: Release inside the pair (its `planner` P6). Nobody else stores: exchanges by
        // others expect an empty cell, and a guarded cell is empty in neither state but the last.
        // Partner: the Acquire cell loads of gets and planners.
        cell.store(new.words());
    }
    intact
}

/// A store into a record nobody can reach yet.
#[inline(always)]
pub(crate) fn store_payload(word: &AtomicU64, value: u64) {
    if crash_point!(Point::Payload) {
        return;
    }
    // ORDERING: Relaxed: published by the Release of the exchange that links the record; kept
    // behind the generation by the Release fence of `take_record`.
    word.store(value, Ordering::Relaxed);
}

/// A store of a hint: nothing depends on its truth or its order.
#[inline(always)]
pub(crate) fn store_hint(point: Point, word: &AtomicU64, value: u64) {
    if crash_point!(point) {
        return;
    }
    // ORDERING: Relaxed: a hint.
    word.store(value, Ordering::Relaxed);
}

/// Sets bits.
#[inline(always)]
pub(crate) fn add_bits(point: Point, word: &AtomicU64, bits: u64) {
    if crash_point!(point) {
        return;
    }
    // ORDERING: AcqRel: who sees the bits sees what was stored before them.
    word.fetch_or(bits, Ordering::AcqRel);
}

/// Clears bits.
#[inline(always)]
pub(crate) fn clear_bits(point: Point, word: &AtomicU64, bits: u64) {
    if crash_point!(point) {
        return;
    }
    // ORDERING: AcqRel: a look at what the bits stand for comes after it.
    word.fetch_and(!bits, Ordering::AcqRel);
}

/// Counts up; returns the old value.
#[inline(always)]
pub(crate) fn add(point: Point, word: &AtomicU64, by: u64) -> u64 {
    if crash_point!(point) {
        return 0;
    }
    // ORDERING: Relaxed: a count.
    word.fetch_add(by, Ordering::Relaxed)
}

#[cfg(test)]
#[allow(unused_imports)] // model checkers use fewer
pub(crate) use control::{Fate, by_words, is_by_words, is_stopped, reached, with_fate};

#[cfg(test)]
mod control {
    use super::Point;
    use std::cell::{Cell, RefCell};

    /// What happens to this thread at its n-th point (counted from 0).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum Fate {
        /// Nothing; points are counted.
        Count,
        /// The n-th store and all later ones have no effect.
        Stop(usize),
        /// The process kills itself before the n-th store.
        #[cfg(unix)]
        Kill(usize),
        /// The process stops itself whenever it is about to make this store, until somebody
        /// continues it.
        #[cfg(unix)]
        Pause(Point),
        /// The injected action runs before the n-th store.
        Inject(usize),
        /// The injected action runs before every point.
        Each,
        /// Waits a random moment before some points, drawn from this seed.
        Dawdle(u64),
    }

    type Action = &'static mut dyn FnMut(Point);

    std::thread_local! {
        static FATE: Cell<Option<Fate>> = const { Cell::new(None) };
        static SEEN: Cell<usize> = const { Cell::new(0) };
        static ACTION: RefCell<Option<Action>> = const { RefCell::new(None) };
        static DICE: Cell<u64> = const { Cell::new(0) };
        static BY_WORDS: Cell<bool> = const { Cell::new(false) };
    }

    /// Runs `body` under a fate; returns its result and the number of points it passed.
    pub(crate) fn with_fate<R>(
        fate: Fate,
        action: Option<&mut dyn FnMut(Point)>,
        body: impl FnOnce() -> R,
    ) -> (R, usize) {
        /// Nothing of this call outlives it, also if the body unwinds.
        struct Reset;
        impl Drop for Reset {
            fn drop(&mut self) {
                FATE.set(None);
                ACTION.with_borrow_mut(|place| *place = None);
            }
        }
        let _reset = Reset;
        FATE.set(Some(fate));
        SEEN.set(0);
        if let Fate::Dawdle(seed) = fate {
            DICE.set(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        }
        // SAFETY: the reference is gone when this call returns (`Reset`), so it never outlives its
        // lifetime.
        let action = action
            .map(|action| unsafe { std::mem::transmute::<&mut dyn FnMut(Point), Action>(action) });
        ACTION.with_borrow_mut(|place| *place = action);
        let result = body();
        (result, SEEN.get())
    }

    /// Every word of a payload that this thread writes meanwhile is a point, not every piece.
    pub(crate) fn by_words<R>(body: impl FnOnce() -> R) -> R {
        struct Reset;
        impl Drop for Reset {
            fn drop(&mut self) {
                BY_WORDS.set(false);
            }
        }
        let _reset = Reset;
        BY_WORDS.set(true);
        body()
    }

    pub(crate) fn is_by_words() -> bool {
        BY_WORDS.get()
    }

    /// The thread counts as dead: it must not wait for effects of its own stores.
    pub(crate) fn is_stopped() -> bool {
        matches!(FATE.get(), Some(Fate::Stop(at)) if SEEN.get() > at)
    }

    pub(crate) fn reached(point: Point) -> bool {
        let Some(fate) = FATE.get() else { return false };
        let seen = SEEN.get();
        SEEN.set(seen + 1);
        match fate {
            Fate::Count => false,
            Fate::Dawdle(_) => {
                dawdle();
                false
            }
            Fate::Stop(at) => seen >= at,
            #[cfg(unix)]
            Fate::Kill(at) => {
                if seen == at {
                    signal(libc::SIGKILL);
                }
                false
            }
            #[cfg(unix)]
            Fate::Pause(at) => {
                if point == at {
                    signal(libc::SIGSTOP);
                }
                false
            }
            Fate::Inject(at) => {
                if seen == at {
                    inject(fate, point);
                }
                false
            }
            Fate::Each => {
                inject(fate, point);
                false
            }
        }
    }

    /// Runs the action; its own points are not this operation's.
    fn inject(fate: Fate, point: Point) {
        FATE.set(None);
        let seen = SEEN.get();
        if let Some(action) = ACTION.with_borrow_mut(Option::take) {
            action(point);
            ACTION.with_borrow_mut(|place| *place = Some(action));
        }
        SEEN.set(seen);
        FATE.set(Some(fate));
    }

    /// Mostly nothing, sometimes a short spin, seldom the end of the time slice.
    fn dawdle() {
        let mut dice = DICE.get();
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        DICE.set(dice);
        match dice >> 60 {
            0 => std::thread::yield_now(),
            1..4 => (0..dice >> 32 & 0x3ff).for_each(|_| std::hint::spin_loop()),
            _ => {}
        }
    }

    #[cfg(unix)]
    fn signal(number: i32) {
        // SAFETY: a signal to the calling thread, which takes it before it goes on.
        unsafe { libc::raise(number) };
    }
}
