//! The engine: one writer, two copies, checked replay.
//!
//! ```text
//!             guard: drain the readers, replay the log                       publish
//!   STALE ───────────────────────────────────────────▶ FRESH ─────────────────────────────▶ STALE
//!   log: to be replayed          │                      log: staged     (the places change roles)
//!                                │ a panic, a different outcome        │ a panic in a first application: undo; discard
//!                                ▼                                     ▼
//!                             BROKEN ── guard: drain, rebuild from the readable copy, apply what is staged ──▶ FRESH
//!                                    ── within a guard: the same without the drain
//! ```
//!
//! **X1.** STALE: the writable copy lacks exactly the operations of the log. FRESH: it has exactly those beyond the readable one.
//! BROKEN: it is not to be trusted; the readable copy plus the log is the truth.
//! **X2.** Only a FRESH copy is changed or published, and a guard is given out with a FRESH copy only. While it lives, it shows that copy, or, while no copy
//! with the batch can be had (the repair after a panic has panicked, too), the readable one; never one in doubt.
//! **X3.** The phase is what counts, not whether a guard's drop ran: after a forgotten guard the batch is still staged, and the next
//! guard goes on with it.
//! **X4.** The phase is BROKEN while user code runs on the writable copy: a panic leaves no copy that is trusted wrongly. What the panicking change has
//! logged is taken out of the log again, and the copy is made anew: the change has not happened.
//! **X5.** What falls out of the second copy is dropped after the copies agree, each piece under its own catch.
//! **X6.** User code never runs while a lock of this room is held, but for that of a table that is shared (F3 there); the writer itself is borrowed exclusively, so that
//! nothing it calls can call it.

use super::absorb::Absorb;
use super::core::Core;
use super::reader::{Reader, SharedReader};
use super::user_code::{caught, drop_each};
use super::wait::{GuardError, Patience};
use super::word::{PLACES, Place};
use crate::sync::{Arc, Barrier};
use std::collections::VecDeque;
use std::future::Future;
use std::ops::Deref;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Stale,
    Fresh,
    Broken,
}

/// Logs and lists keep room for so many entries between batches.
const KEPT: usize = 1024;

/// What the writer does when readers do not leave the copy it wants to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Stalled {
    /// Waits for them.
    #[default]
    Wait,
    /// Leaves them that copy and makes a third one from the current version: one copying of the whole
    /// structure instead of a wait. Waits only if the third place is occupied as well.
    Copy,
}

/// What a writer has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TwinStats {
    /// Versions published.
    pub published: u64,
    /// How often the writer slept because readers had not left.
    pub parks: u64,
    /// How often a copy was rebuilt: after a panic, a replay that ended differently, or a discard.
    pub rebuilds: u64,
    /// How often an occupied copy was left to its readers ([`Stalled::Copy`]).
    pub left_behind: u64,
}

/// The writing side of a structure that is kept in two copies.
///
/// [`TwinMap`](crate::TwinMap) and [`TwinSet`](super::TwinSet) stand on it; [`Absorb`] shows how another structure does.
pub struct Twin<T: Absorb<Op>, Op> {
    core: Arc<Core<T>>,
    log: VecDeque<Op>,
    /// How much was logged when the last change began (X4).
    staged: usize,
    /// What fell out of the second copy (X5).
    old: Vec<T::Old>,
    /// Somebody else drops it.
    keeps_old: bool,
    phase: Phase,
    /// Where readers are sent.
    readable: Place,
    /// The copy to be written.
    writable: Place,
    /// The third place.
    spare: Place,
    spare_is_empty: bool,
    /// The barrier of the last publish was granted.
    settled: bool,
    stalled: Stalled,
    version: u64,
    stats: TwinStats,
    /// What each copy held when it was last published: it has not changed since, unless it is about to be published again.
    bytes: [usize; PLACES],
}

/// The writer's guard: reads its own writes, publishes when dropped.
///
/// Dropped by a panic, it discards the batch. Forgotten, it leaves the batch to the next guard.
pub struct Write<'a, T: Absorb<Op>, Op> {
    twin: &'a mut Twin<T, Op>,
    was_panicking: bool,
}

/// A guard to come; made by [`Twin::guard_async`].
#[must_use = "a future does nothing unless awaited"]
pub struct Acquire<'a, T: Absorb<Op>, Op> {
    twin: Option<&'a mut Twin<T, Op>>,
}

impl<T: Absorb<Op>, Op> Twin<T, Op> {
    /// Keeps `first` in two copies.
    pub fn new(first: T) -> (Self, Reader<T>) {
        Self::with(first, Stalled::Wait, Barrier::detect())
    }

    /// The same, with a choice of what happens when readers do not leave.
    pub fn with_stalled(first: T, stalled: Stalled) -> (Self, Reader<T>) {
        Self::with(first, stalled, Barrier::detect())
    }

    pub(super) fn with(first: T, stalled: Stalled, barrier: Barrier) -> (Self, Reader<T>) {
        let second = T::rebuild(&first);
        Self::with_both(first, second, stalled, barrier)
    }

    /// The same with two copies that are equal.
    pub(super) fn with_both(
        first: T,
        second: T,
        stalled: Stalled,
        barrier: Barrier,
    ) -> (Self, Reader<T>) {
        let core = Arc::new(Core::new(first, second, barrier));
        let mut twin = Self {
            core,
            log: VecDeque::new(),
            staged: 0,
            old: Vec::new(),
            keeps_old: false,
            phase: Phase::Stale,
            readable: Place::ALL[0],
            writable: Place::ALL[1],
            spare: Place::ALL[2],
            spare_is_empty: true,
            settled: true,
            stalled,
            version: 0,
            stats: TwinStats::default(),
            bytes: [0; PLACES],
        };
        for place in [twin.writable, twin.readable] {
            twin.measure(place);
        }
        twin.tell();
        let reader = twin.reader();
        (twin, reader)
    }

    /// A further reader.
    pub fn reader(&self) -> Reader<T> {
        Reader::new(&self.core)
    }

    /// A reader that several threads may share.
    pub fn shared_reader(&self) -> SharedReader<T> {
        SharedReader::new(&self.core)
    }

    /// The version that readers see. It counts the publishes.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What has been done so far.
    pub fn stats(&self) -> TwinStats {
        self.stats
    }

    /// Starts a batch of changes, or goes on with the one a forgotten guard has left. Waits for readers that
    /// still look at the version before the current one.
    ///
    /// # Panics
    /// If this thread itself holds such a read guard ([`GuardError::WouldDeadlock`]), or if the system has come to refuse the
    /// barrier. [`guard_timeout`](Self::guard_timeout) returns these as values.
    pub fn guard(&mut self) -> Write<'_, T, Op> {
        match self.ready(Patience::Forever) {
            Ok(_) => Write::new(self),
            Err(error) => panic!("{error}"),
        }
    }

    /// The same without waiting.
    pub fn try_guard(&mut self) -> Result<Write<'_, T, Op>, GuardError> {
        self.ready(Patience::None)?;
        Ok(Write::new(self))
    }

    /// The same, waiting at most so long.
    pub fn guard_timeout(&mut self, most: Duration) -> Result<Write<'_, T, Op>, GuardError> {
        let patience = Instant::now().checked_add(most).map_or(Patience::Forever, Patience::Until);
        self.ready(patience)?;
        Ok(Write::new(self))
    }

    /// The same for tasks: the last reader that leaves wakes the task. Needs no particular runtime.
    pub fn guard_async(&mut self) -> Acquire<'_, T, Op> {
        Acquire { twin: Some(self) }
    }

    /// Drains the writable copy and brings it up to date (X1, X2). `Ok(false)`: the task will be woken.
    fn ready(&mut self, patience: Patience<'_>) -> Result<bool, GuardError> {
        if self.phase == Phase::Fresh {
            return Ok(true);
        }
        if !self.settled {
            self.settled = self.core.gate.settle();
        }
        if !self.settled {
            return Err(GuardError::BarrierRefused);
        }
        if !self.drain(patience)? {
            return Ok(false);
        }
        self.sweep_spare();
        if self.phase == Phase::Stale && !self.replay() {
            self.phase = Phase::Broken;
            drop_each(self.log.drain(..));
        }
        if self.phase == Phase::Broken {
            self.repair();
        }
        self.phase = Phase::Fresh;
        let panic = if self.keeps_old { None } else { drop_each(self.old.drain(..)) };
        self.old.shrink_to(KEPT);
        self.log.shrink_to(KEPT);
        match panic {
            None => Ok(true),
            Some(panic) => resume_unwind(panic),
        }
    }

    fn drain(&mut self, patience: Patience<'_>) -> Result<bool, GuardError> {
        let parks = &mut self.stats.parks;
        if self.stalled == Stalled::Wait {
            return self.core.gate.drain(self.writable, patience, parks);
        }
        match self.core.gate.drain(self.writable, Patience::None, parks) {
            Err(GuardError::Occupied) if self.core.gate.is_clear(self.spare) => {
                std::mem::swap(&mut self.writable, &mut self.spare);
                self.spare_is_empty = false;
                if self.phase == Phase::Stale {
                    drop_each(self.log.drain(..));
                }
                self.phase = Phase::Broken;
                self.stats.left_behind += 1;
                Ok(true)
            }
            Err(GuardError::Occupied) => self.core.gate.drain(self.writable, patience, parks),
            other => other,
        }
    }

    /// Drops the copy that was left behind, once its readers have gone.
    fn sweep_spare(&mut self) {
        if !self.spare_is_empty && self.core.gate.is_clear(self.spare) {
            // SAFETY: not readable since a settled publish, and drained (D2).
            let slot = unsafe { self.core.slot_mut(self.spare) };
            drop_each(slot.take().into_iter());
            self.spare_is_empty = true;
            *self.spare.of_mut(&mut self.bytes) = 0;
        }
    }

    /// Applies the log to the stale copy, one operation at a time; false if the copy is not to be trusted.
    fn replay(&mut self) -> bool {
        // SAFETY: the readable copy is not written (D1).
        let truth = unsafe { self.core.copy(self.readable) };
        // SAFETY: `ready` has drained the place (D2).
        let slot = unsafe { self.core.slot_mut(self.writable) };
        let Some(copy) = slot.as_mut() else { return false };
        let (log, old) = (&mut self.log, &mut self.old);
        let replayed = caught(|| {
            while let Some(op) = log.pop_front() {
                if copy.absorb_second(op, old).is_err() {
                    return false;
                }
            }
            copy.agrees(truth)
        });
        replayed.unwrap_or_else(|payload| {
            drop_each(std::iter::once(payload));
            false
        })
    }

    /// Makes the writable copy anew: the readable copy, then what is staged. A panic leaves the phase BROKEN (X4).
    fn repair(&mut self) {
        self.phase = Phase::Broken;
        self.stats.rebuilds += 1;
        // SAFETY: the readable copy is not written (D1).
        let mut copy = T::rebuild(unsafe { self.core.copy(self.readable) });
        for op in &mut self.log {
            copy.absorb_first(op);
        }
        // SAFETY: the place was drained before the phase left STALE, and has not been readable since (D2).
        let slot = unsafe { self.core.slot_mut(self.writable) };
        drop_each(slot.replace(copy).into_iter());
        self.phase = Phase::Fresh;
    }

    /// Changes the writable copy. `change` must log exactly what it has done when it returns; if it panics, what it has logged is given up and
    /// the copy is made anew (X4).
    ///
    /// Only within a guard.
    #[inline(always)]
    fn change<R>(&mut self, change: impl FnOnce(&mut T, &mut VecDeque<Op>) -> R) -> R {
        if self.phase == Phase::Broken {
            self.repair();
        }
        debug_assert_eq!(self.phase, Phase::Fresh);
        self.phase = Phase::Broken;
        self.staged = self.log.len();
        let undo = Undo(self);
        // SAFETY: a guard exists, so `ready` has drained the place (D2), and nothing else refers to it: what the guard has shown was borrowed from
        // the guard, and a repair comes after `change` has ended.
        let slot = unsafe { undo.0.core.slot_mut(undo.0.writable) };
        // SAFETY: the writable place holds a copy once it is FRESH (X1).
        let copy = unsafe { slot.as_mut().unwrap_unchecked() };
        let answer = change(copy, &mut undo.0.log);
        undo.0.phase = Phase::Fresh;
        std::mem::forget(undo);
        answer
    }

    /// What fell out of the second copy, for somebody who drops it later (X5).
    pub(super) fn take_old(&mut self) -> Vec<T::Old> {
        std::mem::take(&mut self.old)
    }

    /// Whether what falls out of the second copy is left to [`take_old`](Self::take_old).
    pub(super) fn set_keeps_old(&mut self, keeps: bool) {
        self.keeps_old = keeps;
    }

    pub(super) fn stalled(&self) -> Stalled {
        self.stalled
    }

    pub(super) fn core(&self) -> &Arc<Core<T>> {
        &self.core
    }

    /// Whether changes wait for their publish.
    pub(super) fn is_staged(&self) -> bool {
        self.phase != Phase::Stale && !self.log.is_empty()
    }

    /// Asks a copy what it holds.
    #[inline(always)]
    fn measure(&mut self, place: Place) {
        // SAFETY: we are the writer, and write nothing meanwhile.
        let copy = unsafe { self.core.peek(place) };
        *place.of_mut(&mut self.bytes) = copy.map_or(0, T::memory_bytes);
    }

    /// Tells readers what has been done so far.
    #[inline(always)]
    fn tell(&self) {
        let copies: usize = self.bytes.iter().sum();
        let lists =
            self.log.capacity() * size_of::<Op>() + self.old.capacity() * size_of::<T::Old>();
        self.core.gate.told.tell(&self.stats, copies + lists);
    }

    /// Makes the writable copy FRESH, for who applies changes without a guard's drop (X3).
    pub(super) fn freshen(&mut self, patience: Patience<'_>) -> Result<(), GuardError> {
        self.ready(patience).map(drop)
    }

    /// What was logged since the last publish, or by it.
    pub(super) fn log(&self) -> &VecDeque<Op> {
        &self.log
    }

    pub(super) fn publish(&mut self) -> u64 {
        if self.phase == Phase::Broken {
            self.repair();
        }
        self.version += 1;
        self.stats.published += 1;
        // SAFETY: we are the writer; the place is FRESH, so it holds a copy and is drained (X1, X2).
        self.settled = unsafe { self.core.publish(self.writable, self.version) };
        std::mem::swap(&mut self.readable, &mut self.writable);
        self.phase = Phase::Stale;
        self.measure(self.readable);
        self.tell();
        self.version
    }

    /// Takes what is staged out of the log; the copy is made anew before it is used again (X1).
    pub(super) fn take_staged(&mut self) -> Vec<Op> {
        if self.phase == Phase::Stale {
            return Vec::new();
        }
        self.phase = Phase::Broken;
        self.log.drain(..).collect()
    }

    /// Gives up what is staged.
    pub(super) fn discard(&mut self) {
        if self.phase == Phase::Stale || (self.phase == Phase::Fresh && self.log.is_empty()) {
            return;
        }
        self.phase = Phase::Broken;
        drop_each(self.log.drain(..));
    }
}

/// A change under way. Dropped by a panic, it makes the change undone (X4).
struct Undo<'t, T: Absorb<Op>, Op>(&'t mut Twin<T, Op>);

impl<T: Absorb<Op>, Op> Drop for Undo<'_, T, Op> {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        let Self(twin) = self;
        let undoes = !cfg!(quintet_mutation = "retain-panic");
        let staged = if undoes { twin.staged } else { twin.log.len() };
        drop_each(twin.log.drain(staged..));
        // A second panic while one is under way would end the process. If there is one, the phase stays BROKEN.
        if let Err(payload) = caught(|| twin.repair()) {
            drop_each(std::iter::once(payload));
        }
    }
}

impl<T: Absorb<Op>, Op> Drop for Twin<T, Op> {
    fn drop(&mut self) {
        // Waits for nobody: readers keep the copies, and the last of them drops both.
        self.core.gate.arrivals.orphan();
        drop_each(self.log.drain(..));
    }
}

impl<T: Absorb<Op>, Op> std::fmt::Debug for Twin<T, Op> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Twin")
            .field("version", &self.version)
            .field("phase", &self.phase)
            .field("log", &self.log.len())
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl<'a, T: Absorb<Op>, Op> Write<'a, T, Op> {
    /// The twin is FRESH.
    pub(super) fn new(twin: &'a mut Twin<T, Op>) -> Self {
        Self { twin, was_panicking: std::thread::panicking() }
    }

    /// Applies an operation; returns what fell out of the copy.
    pub fn apply(&mut self, mut op: Op) -> Option<T::Old> {
        self.change(|copy, log| {
            log.reserve(1);
            let old = copy.absorb_first(&mut op);
            log.push_back(op);
            old
        })
    }

    /// What waits for the publish.
    pub(super) fn log(&self) -> &VecDeque<Op> {
        &self.twin.log
    }

    pub(super) fn change<R>(&mut self, change: impl FnOnce(&mut T, &mut VecDeque<Op>) -> R) -> R {
        self.twin.change(change)
    }

    /// Makes the changes visible to all readers at one moment; returns the number of the new version. Does so
    /// even if nothing has changed.
    pub fn publish(self) -> u64 {
        self.twin.publish()
    }

    /// Gives up all changes of this batch. The next guard copies the whole structure.
    pub fn discard(self) {
        self.twin.discard();
    }

    /// Gives up the changes behind the first `keep`; the copy is made anew before it is used again (X1).
    pub(super) fn take_back(&mut self, keep: usize) {
        if self.twin.log.len() == keep {
            return;
        }
        self.twin.phase = Phase::Broken;
        drop_each(self.twin.log.drain(keep..));
    }

    /// As [`Twin::take_staged`].
    pub(super) fn take_staged(&mut self) -> Vec<Op> {
        self.twin.take_staged()
    }

    /// Makes a copy in doubt anew, now.
    pub(super) fn make_whole(&mut self) {
        if self.twin.phase == Phase::Broken {
            self.twin.repair();
        }
    }

    /// Publishes without giving up the guard, which is of no use any more.
    pub(super) fn publish_now(&mut self) -> u64 {
        self.twin.publish()
    }

    pub(super) fn is_published(&self) -> bool {
        self.twin.phase == Phase::Stale
    }

    /// How many changes wait for the publish.
    pub fn staged(&self) -> usize {
        self.twin.log.len()
    }

    /// The version that readers see now; the publish makes the next one.
    pub fn version(&self) -> u64 {
        self.twin.version
    }
}

impl<T: Absorb<Op>, Op> Deref for Write<'_, T, Op> {
    type Target = T;

    fn deref(&self) -> &T {
        let is_fresh = self.twin.phase == Phase::Fresh;
        let place = if is_fresh { self.twin.writable } else { self.twin.readable }; // (X2)
        // SAFETY: the guard borrows the writer: nobody writes either place while the reference lives. The readable one holds a copy always (D1), the
        // writable one if it is FRESH (X1).
        unsafe { self.twin.core.copy(place) }
    }
}

impl<T: Absorb<Op>, Op> Drop for Write<'_, T, Op> {
    fn drop(&mut self) {
        if self.twin.phase == Phase::Stale {
            return; // published
        }
        if std::thread::panicking() && !self.was_panicking {
            self.twin.discard();
            return;
        }
        if self.twin.log.is_empty() {
            return;
        }
        if let Err(payload) = caught(|| self.twin.publish()) {
            // The repair panicked again: no copy with this batch can be had.
            drop_each(std::iter::once(payload));
            self.twin.discard();
        }
    }
}

impl<T: Absorb<Op> + std::fmt::Debug, Op> std::fmt::Debug for Write<'_, T, Op> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(out)
    }
}

impl<'a, T: Absorb<Op>, Op> Future for Acquire<'a, T, Op> {
    type Output = Result<Write<'a, T, Op>, GuardError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let twin = self.twin.as_mut().expect("a finished future is not polled again");
        match twin.ready(Patience::Task(context.waker())) {
            Ok(false) => Poll::Pending,
            Ok(true) => Poll::Ready(Ok(Write::new(self.twin.take().expect("looked at above")))),
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl<T: Absorb<Op>, Op> std::fmt::Debug for Acquire<'_, T, Op> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Acquire").field("twin", &self.twin).finish()
    }
}
