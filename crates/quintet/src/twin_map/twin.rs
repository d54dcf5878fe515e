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
//! **X5.** What falls out is dropped after the copies agree, each piece under its own catch: by the writer, or, for a table that is shared, after its lock is released.
//! **X6.** User code never runs while a lock of this room is held, but for that of a table that is shared (F3 there); the writer itself is borrowed exclusively, so that
//! nothing it calls can call it.
//! **X7.** A log that is not worth replaying is given up, and the copy made anew: if copying is quicker, if the copy belongs to owned guards (C3), or if its readers do
//! not leave and it is left to them. A writer waits for either about as long as it would take to make a copy: so it never takes much more than twice the
//! time of what would have been best.

use super::absorb::Absorb;
use super::core::Core;
use super::fallen::Fallen;
use super::pace::Pace;
use super::reader::{Reader, SharedReader};
use super::user_code::{caught, drop_each};
use super::wait::{GuardError, Patience};
use super::word::{PLACES, Place};
use crate::sync::{Arc, Barrier, MODEL, park_timeout};
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

/// A copy of so many bytes takes a microsecond, about.
const BYTES_PER_MICROSECOND: usize = 2_000;

/// No wait is shorter: sleeping and waking take as long.
const SHORTEST: Duration = Duration::from_micros(50);

/// What the writer does when read guards do not leave the copy it wants to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Stalled {
    /// Waits for them.
    Wait,
    /// Waits about as long as it takes to make a copy; then leaves them that copy and makes a third one from the current version. Waits on
    /// only if the third place is occupied as well.
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
    /// How often a copy was left to its readers ([`Stalled::Copy`]) or owners ([`OwnedGuard`](super::OwnedGuard)).
    pub left_behind: u64,
    /// How often a copy was made anew because the log of changes was too long to be worth replaying.
    pub copied: u64,
}

/// The writing side of a structure that is kept in two copies.
///
/// [`TwinMap`](crate::TwinMap) and [`TwinSet`](super::TwinSet) stand on it; [`Absorb`] shows how another structure does.
pub struct Twin<T: Absorb<Op>, Op> {
    core: Arc<Core<T>>,
    log: VecDeque<Op>,
    /// How much was logged when the last change began (X4).
    staged: usize,
    /// What fell out (X5).
    fallen: Fallen<T, Op>,
    /// Somebody else drops it.
    keeps_fallen: bool,
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
    pace: Pace,
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
        if self.phase == Phase::Stale && !self.catch_up(patience) {
            self.phase = Phase::Broken;
            self.fallen.take_log(&mut self.log, 0);
            self.renew();
        }
        if self.phase == Phase::Broken {
            self.repair();
        }
        self.phase = Phase::Fresh;
        self.log.shrink_to(KEPT);
        match if self.keeps_fallen { None } else { self.fallen.drop_all() } {
            None => Ok(true),
            Some(panic) => resume_unwind(panic),
        }
    }

    /// Waits until nobody is at the writable place, or takes another one instead (X7).
    fn drain(&mut self, patience: Patience<'_>) -> Result<bool, GuardError> {
        let first = if self.stalled == Stalled::Wait { patience } else { self.little(patience) };
        let (gate, parks) = (&self.core.gate, &mut self.stats.parks);
        let drained = gate.drain(self.writable, first, parks);
        if self.stalled == Stalled::Wait
            || matches!(drained, Ok(true) | Err(GuardError::BarrierRefused))
        {
            return drained;
        }
        if !gate.is_clear(self.spare) {
            match gate.drain(self.writable, patience, parks) {
                // Our own guard does not leave; another one may.
                Err(GuardError::WouldDeadlock) => match gate.drain(self.spare, patience, parks) {
                    Ok(true) => {}
                    occupied => return occupied,
                },
                drained => return drained,
            }
        }
        std::mem::swap(&mut self.writable, &mut self.spare);
        self.empty(self.writable);
        self.spare_is_empty = false;
        self.stats.left_behind += 1;
        Ok(true)
    }

    /// As much of a patience as it takes to make a copy (X7). A task cannot be woken by a clock: it does not wait.
    fn little(&self, patience: Patience<'_>) -> Patience<'static> {
        let bytes = self.bytes.iter().max().copied().unwrap_or(0);
        let most = Duration::from_micros((bytes / BYTES_PER_MICROSECOND) as u64).max(SHORTEST);
        match patience {
            _ if MODEL => Patience::None,
            Patience::None | Patience::Task(_) => Patience::None,
            Patience::Forever => Patience::Until(Instant::now() + most),
            Patience::Until(end) => Patience::Until(end.min(Instant::now() + most)),
        }
    }

    /// Gives up the copy at a place that is drained.
    fn empty(&mut self, place: Place) {
        // SAFETY: we are the writer; not readable since a settled publish, and drained (D2).
        self.fallen.editions.extend(unsafe { self.core.put(place, None) });
        *place.of_mut(&mut self.bytes) = 0;
    }

    /// Gives up the copy that was left behind, once its readers have gone.
    fn sweep_spare(&mut self) {
        if !self.spare_is_empty && self.core.gate.is_clear(self.spare) {
            self.empty(self.spare);
            self.spare_is_empty = true;
        }
    }

    /// Brings the stale copy up to date by the log; false if it is to be made anew (X7).
    fn catch_up(&mut self, patience: Patience<'_>) -> bool {
        // SAFETY: the readable copy is not written (D1).
        let truth = unsafe { self.core.copy(self.readable) };
        // SAFETY: we are the writer.
        let is_there = unsafe { self.core.peek(self.writable) }.is_some();
        if !is_there {
            return false; // left behind
        }
        if truth.is_copied_sooner(self.log.len()) {
            self.stats.copied += 1;
            return false;
        }
        if !self.await_owners(patience) {
            self.stats.left_behind += 1;
            return false;
        }
        if !self.replay() {
            self.stats.rebuilds += 1;
            return false;
        }
        true
    }

    /// Waits a little until the writable copy is ours alone (C3); false if it is not.
    fn await_owners(&self, patience: Patience<'_>) -> bool {
        let patience = self.little(patience);
        loop {
            // SAFETY: `ready` has drained the place (D2); the reference is not used.
            if unsafe { self.core.copy_mut(self.writable) }.is_some() {
                return true;
            }
            match patience {
                Patience::Until(end) if Instant::now() < end => park_timeout(SHORTEST),
                _ => return false,
            }
        }
    }

    /// Applies the log to the stale copy, one operation at a time; false if the copy is not to be trusted.
    fn replay(&mut self) -> bool {
        // SAFETY: the readable copy is not written (D1).
        let truth = unsafe { self.core.copy(self.readable) };
        // SAFETY: `ready` has drained the place (D2), and `await_owners` has found the copy to be ours alone.
        let copy = unsafe { self.core.copy_mut_again(self.writable) };
        let (log, old) = (&mut self.log, &mut self.fallen.old);
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

    /// Makes a copy in doubt anew. A panic leaves the phase BROKEN (X4).
    fn repair(&mut self) {
        self.stats.rebuilds += 1;
        self.renew();
    }

    /// Makes the writable copy anew: the readable copy, then what is staged. A panic leaves the phase BROKEN (X4).
    fn renew(&mut self) {
        self.phase = Phase::Broken;
        // SAFETY: the readable copy is not written (D1).
        let truth = unsafe { self.core.copy(self.readable) };
        let keeps_memory = !std::mem::needs_drop::<T::Old>();
        // SAFETY: the place was drained before the phase left STALE, and has not been readable since (D2).
        match unsafe { self.core.copy_mut(self.writable) } {
            Some(copy) if keeps_memory => copy.rebuild_into(truth),
            _ => {
                let copy = T::rebuild(truth);
                // SAFETY: as above; the reference to the old copy is gone.
                self.fallen.editions.extend(unsafe { self.core.put(self.writable, Some(copy)) });
            }
        }
        // SAFETY: as above; there is a copy now, and it is ours alone.
        let copy = unsafe { self.core.copy_mut_again(self.writable) };
        for op in &mut self.log {
            self.fallen.old.extend(copy.absorb_first(op));
        }
        self.phase = Phase::Fresh;
    }

    /// Changes the writable copy. `change` must log exactly what it has done when it returns; if it panics, what it has logged is given up and
    /// the copy is made anew (X4).
    ///
    /// Only within a guard.
    #[inline(always)]
    fn change<R>(
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
        // SAFETY: a guard exists, so `ready` has drained the place (D2), and holds a copy that is ours alone, once it is FRESH (X1). Nothing else refers to it: what the
        // guard has shown was borrowed from the guard, and a repair comes after `change` has ended.
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
    fn measure(&mut self, place: Place) {
        // SAFETY: we are the writer, and write nothing meanwhile.
        let copy = unsafe { self.core.peek(place) };
        *place.of_mut(&mut self.bytes) = copy.map_or(0, T::memory_bytes);
    }

    /// Tells readers what has been done so far.
    #[inline(always)]
    fn tell(&self) {
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

    pub(super) fn publish(&mut self) -> u64 {
        if self.phase == Phase::Broken {
            self.repair();
        }
        self.version += 1;
        self.stats.published += 1;
        let fenced = self.pace.begin(self.version, self.core.gate.peek().is_fenced());
        let fenced = fenced && !self.core.gate.has_fences();
        // SAFETY: we are the writer; the place is FRESH, so it holds a copy that is ours alone and is drained (X1, X2).
        self.settled = unsafe { self.core.publish(self.writable, self.version, fenced) };
        self.pace.end(fenced);
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
        self.twin.change(|copy, log, _| change(copy, log))
    }

    /// The same for a change whose pieces fall into a list, to be dropped later (X5).
    pub(super) fn change_keeping<R>(
        &mut self,
        change: impl FnOnce(&mut T, &mut VecDeque<Op>, &mut Vec<T::Old>) -> R,
    ) -> R {
        self.twin.change(change)
    }

    /// A piece that fell out, to be dropped later (X5).
    pub(super) fn keep(&mut self, old: T::Old) {
        if std::mem::needs_drop::<T::Old>() {
            self.twin.fallen.old.push(old);
        }
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
        self.twin.fallen.take_log(&mut self.twin.log, keep);
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
