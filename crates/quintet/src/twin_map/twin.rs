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
//! A publish after a rest goes on from STALE to the same with an empty log, and the places change
//! roles back (`home` H1).
//!
//! **X1.** STALE: the writable copy lacks exactly the operations of the log, or there is none.
//! FRESH: it has exactly those beyond the readable one. BROKEN: it is not to be trusted; the
//! readable copy plus the log is the truth.
//! **X2.** Only a FRESH copy is changed or published, and a guard is given out with a FRESH copy
//! only. While it lives, it shows that copy, or, while no copy with the batch can be had (the
//! repair after a panic has panicked, too), the readable one; never one in doubt.
//! **X3.** The phase is what counts, not whether a guard's drop ran: after a forgotten guard the
//! batch is still staged, and the next guard goes on with it.
//! **X4.** The phase is BROKEN while user code runs on the writable copy: a panic leaves no copy
//! that is trusted wrongly. What the panicking change has logged is taken out of the log again, and
//! the copy is made anew: the change has not happened.
//! **X5.** What falls out is dropped after the copies agree, each piece under its own catch: by the
//! writer, or, for a table that is shared, after its lock is released.
//! **X6.** User code never runs while a lock of this room is held, but for that of a table that is
//! shared (`desk` F3 there); the writer itself is borrowed exclusively, so that nothing it calls
//! can call it.
//! **X7.** A log that is not worth replaying is given up, and the copy made anew: if copying is
//! quicker, if the copy belongs to owned guards (`core` C3), or if its readers do not leave and it
//! is left to them. A writer waits for either about as long as it would take to make a copy: so it
//! never takes much more than twice the time of what would have been best.

use super::absorb::Absorb;
use super::core::Core;
use super::fallen::Fallen;
use super::home::Naps;
use super::pace::Pace;
use super::reader::{Reader, SharedReader};
use super::user_code::{caught, drop_each};
use super::wait::{GuardError, Patience};
use super::word::{PLACES, Place};
use super::write::Write;
use crate::sync::{Arc, Barrier};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Stale,
    Fresh,
    Broken,
}

/// What the writer does when read guards do not leave the copy it wants to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Stalled {
    /// Waits for them.
    Wait,
    /// Waits about as long as it takes to make a copy; then leaves them that copy and makes a third
    /// one from the current version. Waits on only if the third place is occupied as well.
    #[default]
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
    /// How often a copy was left to its readers ([`Stalled::Copy`]) or owners
    /// ([`OwnedGuard`](super::OwnedGuard)).
    pub left_behind: u64,
    /// How often a copy was made anew because the log of changes was too long to be worth
    /// replaying.
    pub copied: u64,
    /// How often readers were sent back at once to the copy they came from, brought up to date: a
    /// copy that is read for most of the time stays in the cache.
    pub returned: u64,
}

/// The writing side of a structure that is kept in two copies.
///
/// [`TwinMap`](crate::TwinMap) and [`TwinSet`](super::TwinSet) stand on it; [`Absorb`] shows how
/// another structure does.
pub struct Twin<T: Absorb<Op>, Op> {
    pub(super) core: Arc<Core<T>>,
    pub(super) log: VecDeque<Op>,
    /// How much was logged when the last change began (X4).
    pub(super) staged: usize,
    /// What fell out (X5).
    pub(super) fallen: Fallen<T, Op>,
    /// Somebody else drops it.
    pub(super) keeps_fallen: bool,
    pub(super) phase: Phase,
    /// Where readers are sent.
    pub(super) readable: Place,
    /// The copy to be written.
    pub(super) writable: Place,
    /// The third place.
    pub(super) spare: Place,
    pub(super) spare_is_empty: bool,
    /// The barrier of the last publish was granted.
    pub(super) settled: bool,
    pub(super) stalled: Stalled,
    pub(super) pace: Pace,
    /// The readable copy is visited only: readers are to go home (`home` H1).
    pub(super) is_visited: bool,
    /// The write under way may wait.
    pub(super) may_nap: bool,
    pub(super) naps: Naps,
    pub(super) version: u64,
    pub(super) stats: TwinStats,
    /// What each copy held when it was last published: it has not changed since, unless it is about
    /// to be published again.
    pub(super) bytes: [usize; PLACES],
}

/// A guard to come; made by [`Twin::guard_async`].
#[must_use = "a future does nothing unless awaited"]
pub struct Acquire<'a, T: Absorb<Op>, Op> {
    twin: Option<&'a mut Twin<T, Op>>,
}

impl<T: Absorb<Op>, Op> Twin<T, Op> {
    /// Keeps `first` in two copies.
    pub fn new(first: T) -> (Self, Reader<T>) {
        Self::with(first, Stalled::default(), Barrier::detect())
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
            fallen: Fallen::new(),
            keeps_fallen: false,
            phase: Phase::Stale,
            readable: Place::ALL[0],
            writable: Place::ALL[1],
            spare: Place::ALL[2],
            spare_is_empty: true,
            settled: true,
            stalled,
            pace: Pace::default(),
            is_visited: false,
            may_nap: false,
            naps: Naps::default(),
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

    /// Starts a batch of changes, or goes on with the one a forgotten guard has left. Waits for
    /// readers that still look at the version before the current one.
    ///
    /// # Panics
    /// If this thread itself holds such a read guard ([`GuardError::WouldDeadlock`]), or if the
    /// system has come to refuse the barrier. [`guard_timeout`](Self::guard_timeout) returns these
    /// as values.
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

    /// Changes the writable copy. `change` must log exactly what it has done when it returns; if it
    /// panics, what it has logged is given up and the copy is made anew (X4).
    ///
    /// Only within a guard.
    #[inline(always)]
    pub(super) fn change<R>(
        &mut self,
        change: impl FnOnce(&mut T, &mut VecDeque<Op>, &mut Vec<T::Old>) -> R,
    ) -> R {
        if self.phase == Phase::Broken {
            self.repair();
        }
        debug_assert_eq!(self.phase, Phase::Fresh);
        self.phase = Phase::Broken;
        self.staged = self.log.len();
        let undo = Undo(self);
        // SAFETY: a guard exists, so `ready` has drained the place (`gate` D2), and holds a copy
        // that is ours alone, once it is FRESH (X1). Nothing else refers to it: what the guard has
        // shown was borrowed from the guard, and a repair comes after `change` has ended.
        let copy = unsafe { undo.0.core.copy_mut_again(undo.0.writable) };
        let answer = change(copy, &mut undo.0.log, &mut undo.0.fallen.old);
        undo.0.phase = Phase::Fresh;
        std::mem::forget(undo);
        answer
    }

    /// What fell out, for somebody who drops it later (X5).
    pub(super) fn take_fallen(&mut self) -> Fallen<T, Op> {
        std::mem::replace(&mut self.fallen, Fallen::new())
    }

    /// Whether what falls out is left to [`take_fallen`](Self::take_fallen).
    pub(super) fn set_keeps_fallen(&mut self, keeps: bool) {
        self.keeps_fallen = keeps;
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
    pub(super) fn measure(&mut self, place: Place) {
        // SAFETY: we are the writer, and write nothing meanwhile.
        let copy = unsafe { self.core.peek(place) };
        *place.of_mut(&mut self.bytes) = copy.map_or(0, T::memory_bytes);
    }

    /// Tells readers what has been done so far.
    #[inline(always)]
    pub(super) fn tell(&self) {
        let copies: usize = self.bytes.iter().sum();
        let lists = self.log.capacity() * size_of::<Op>() + self.fallen.bytes();
        self.core.gate.told.tell(&self.stats, copies + lists);
    }

    /// Makes the writable copy FRESH, for who applies changes without a guard's drop (X3).
    pub(super) fn freshen(&mut self, patience: Patience<'_>) -> Result<(), GuardError> {
        if self.ready(patience)? { Ok(()) } else { Err(GuardError::Occupied) }
    }

    /// What was logged since the last publish, or by it.
    pub(super) fn log(&self) -> &VecDeque<Op> {
        &self.log
    }

    /// Publishes. Readers stay at the copy that was written (`home` H7).
    pub(super) fn publish(&mut self) -> u64 {
        self.show(false)
    }

    /// Publishes, and sends readers home if that is worth it (`home` H1).
    pub(super) fn publish_and_return(&mut self) -> u64 {
        let version = self.show(true);
        self.go_home();
        version
    }

    /// The publish itself. If `returns`, the caller calls [`go_home`](Self::go_home) next, when it
    /// needs the log no more.
    pub(super) fn show(&mut self, returns: bool) -> u64 {
        if self.phase == Phase::Broken {
            self.repair();
        }
        let hasty = self.pace.begin(self.version + 1, self.core.gate.peek().is_fenced());
        let visit = returns && self.plans_return();
        self.version += 1;
        self.stats.published += 1;
        let fenced = (hasty || visit) && !self.core.gate.has_fences();
        // SAFETY: we are the writer; the place is FRESH, so it holds a copy that is ours alone and
        // is drained (X1, X2).
        self.settled = unsafe { self.core.publish(self.writable, self.version, fenced) };
        self.pace.end(fenced && !visit);
        self.is_visited = visit;
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
        self.fallen.take_log(&mut self.log, 0);
    }

    /// What readers see, by value: a copy of it if a reader is left.
    pub(super) fn into_readable(self) -> T {
        let (core, place) = (Arc::clone(&self.core), self.readable);
        drop(self);
        match Arc::try_unwrap(core) {
            Ok(core) => core.into_copy(place),
            // SAFETY: the writer is gone: nobody writes.
            Err(core) => T::rebuild(unsafe { core.copy(place) }),
        }
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
        twin.fallen.take_log(&mut twin.log, staged);
        // A second panic while one is under way would end the process. If there is one, the phase
        // stays BROKEN.
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
        self.fallen.drop_all();
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
