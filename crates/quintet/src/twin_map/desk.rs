//! Many writers: one desk, at which they take turns; those who wait together are published
//! together.
//!
//! ```text
//!   write: lock ── make the copy FRESH ── apply ── somebody waits for the lock? ── no: publish, the round is over
//!                                                                              └─ yes: leave it staged, wait for the end of the round
//! ```
//!
//! **F1.** What a writer has applied is published whole, in one version, before its call returns.
//! The changes of one round are published in the order of the lock.
//! **F2.** A writer whose changes panic takes back those alone. The others of its round are
//! published.
//! **F3.** User code that runs while the desk is locked (`Hash`, `Eq`, `Clone`, the closure of
//! `batch`) may read. If it writes to the same table, it would wait for its own thread: that is
//! noticed by the holder's name and panics, before anything has changed. What fell out of the table
//! is dropped after the lock is released, and may write.
//! **F4.** A writer leaves its changes staged only if another one has said that it will lock: that
//! one publishes them, or leaves them to a third. Every thread that leaves something waits, so the
//! last one finds nobody to leave it to. Who may give up waiting neither says so nor leaves
//! anything: it would have to wait for others.
//! **F5.** Staged changes keep the writable copy drained: who finds some need not wait for readers.
//! **F6.** A thread that has a read guard does not sleep for the lock: it looks from time to time
//! whether the holder waits for that guard, and panics then.
//! **F7.** The end of a round has a lock of its own, which nobody holds while it waits for readers:
//! who waits for a round may have a guard, and the holder of the next round's lock may wait for
//! that guard.
//! **F8.** A task waits in a list, and never with the lock held (`sleepers` Y1 to Y3).

use super::absorb::Absorb;
use super::core::Core;
use super::reader::{OwnedGuard, ReadGuard, Reader};
use super::sleepers::Sleepers;
use super::twin::{Stalled, Twin, TwinStats};
use super::user_code::{Payload, caught};
use super::version::Op;
use super::wait::{GuardError, Patience};
use super::waits::Waiting;
use super::watch::Watches;
use super::write::Write;
use crate::sync::{
    Arc, AtomicUsize, Barrier, Condvar, LazyArc, Mutex, MutexGuard, Ordering, const_where_possible,
    fork, park_timeout,
};
use std::panic::resume_unwind;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

/// How often a thread looks again where it may not sleep.
const SOON: Duration = Duration::from_micros(50);

/// Condition variables wake for no reason as well.
const LONG: Duration = Duration::from_secs(3600);

/// A structure in two copies that many threads read and write. Made at its first write, pin or
/// handle.
pub(super) struct Desk<T: Absorb<Op<K, V>>, K, V> {
    made: LazyArc<Shared<T, K, V>>,
    /// What the first copy is made of.
    pub(super) blank: T,
    pub(super) options: Options,
}

/// How the copies are kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    pub(super) stalled: Stalled,
    pub(super) fences: bool,
}

impl Options {
    pub(super) const DEFAULT: Self = Self { stalled: Stalled::Copy, fences: false };

    pub(super) fn barrier(&self) -> Barrier {
        if self.fences { Barrier::Fence } else { Barrier::detect() }
    }
}

/// What was made.
pub(super) struct Shared<T: Absorb<Op<K, V>>, K, V> {
    core: Arc<Core<T>>,
    turns: Mutex<Turns<T, K, V>>,
    ends: Mutex<Ends>,
    /// A round that somebody waits for is over.
    over: Condvar,
    /// Writers that have said that they will lock (F4).
    waiting: AtomicUsize,
    /// The thread that holds the lock, or 0 (F3).
    holder: AtomicUsize,
    sleepers: std::sync::Arc<Sleepers>,
    pub(super) watches: Watches,
}

struct Turns<T: Absorb<Op<K, V>>, K, V> {
    twin: Twin<T, Op<K, V>>,
    /// Rounds that are over.
    rounds: u64,
    /// Writers that wait for the end of this round.
    left: usize,
}

/// How rounds have ended that somebody waited for (F7). Locked last.
struct Ends {
    /// As many are over, at least.
    rounds: u64,
    /// Rounds that could not be published, and how many are to be told so.
    failed: Vec<(u64, usize)>,
}

/// The lock, held. User code that runs meanwhile is caught, so that the holder's name is always
/// taken back.
type Held<'a, T, K, V> = MutexGuard<'a, Turns<T, K, V>>;

impl<T: Absorb<Op<K, V>>, K, V> Desk<T, K, V> {
    const_where_possible! {
        /// Nothing is made yet.
        pub(super) fn new(blank: T, options: Options) -> Self {
            Self { made: LazyArc::new(), blank, options }
        }
    }

    /// Over the copies of a writer.
    pub(super) fn over(blank: T, options: Options, twin: Twin<T, Op<K, V>>) -> Self {
        Self { made: LazyArc::from(Arc::new(Shared::new(twin))), blank, options }
    }

    /// What was made, if anything was.
    #[inline(always)]
    pub(super) fn get(&self) -> Option<&Shared<T, K, V>> {
        self.made.get()
    }

    /// What was made, now if not before.
    #[inline(always)]
    pub(super) fn made(&self) -> &Shared<T, K, V> {
        self.made.get_or_make(|| Shared::blank(&self.blank, self.options))
    }

    /// The writer alone. Readers stay.
    pub(super) fn into_twin(self) -> Twin<T, Op<K, V>> {
        let Self { made, blank, options } = self;
        let shared = made.share(|| Shared::blank(&blank, options));
        drop(made);
        let Ok(shared) = Arc::try_unwrap(shared) else { unreachable!("nobody else has a share") };
        let mut twin = shared.turns.into_inner().twin;
        twin.set_keeps_fallen(false);
        twin
    }

    /// Looks at the current version by the calling thread's seat.
    #[inline(always)]
    pub(super) fn pin(&self) -> ReadGuard<'_, T> {
        ReadGuard::of_thread(&self.made().core)
    }

    /// The same, if anything was made: else there is nothing to see.
    #[inline(always)]
    pub(super) fn look(&self) -> Option<ReadGuard<'_, T>> {
        self.get().map(|shared| ReadGuard::of_thread(&shared.core))
    }

    pub(super) fn reader(&self) -> Reader<T> {
        Reader::new(&self.made().core)
    }

    pub(super) fn owned_pin(&self) -> OwnedGuard<T> {
        OwnedGuard::new(&self.made().core)
    }

    pub(super) fn stats(&self) -> TwinStats {
        self.get().map_or(TwinStats::default(), |shared| shared.core.gate.told.stats())
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.get().map_or(0, |shared| shared.core.gate.told.bytes())
    }
}

impl<T: Absorb<Op<K, V>>, K, V> Shared<T, K, V> {
    fn new(mut twin: Twin<T, Op<K, V>>) -> Self {
        twin.set_keeps_fallen(true);
        Self {
            core: Arc::clone(twin.core()),
            turns: Mutex::new(Turns { twin, rounds: 0, left: 0 }),
            ends: Mutex::new(Ends { rounds: 0, failed: Vec::new() }),
            over: Condvar::new(),
            waiting: AtomicUsize::new(0),
            holder: AtomicUsize::new(0),
            sleepers: Sleepers::new(),
            watches: Watches::new(),
        }
    }

    #[cold]
    fn blank(blank: &T, options: Options) -> Self {
        Self::new(Twin::with(T::rebuild(blank), options.stalled, options.barrier()).0)
    }

    /// Applies changes, and publishes them before it returns (F1).
    ///
    /// # Panics
    /// If waiting would never end (F3, F6), if the barrier is refused, and if user code panics.
    pub(super) fn write<R>(&self, work: impl FnOnce(&mut Write<'_, T, Op<K, V>>) -> R) -> R {
        self.write_within(Patience::Forever, work).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same, waiting no longer than the patience allows.
    pub(super) fn write_within<R>(
        &self,
        patience: Patience<'_>,
        work: impl FnOnce(&mut Write<'_, T, Op<K, V>>) -> R,
    ) -> Result<R, GuardError> {
        let turns = self.hold(patience)?;
        self.write_held(turns, patience, work)
    }

    /// The same for a task: it is woken when it is worth asking again (F8). `work` runs once, and
    /// only if the answer is there.
    pub(super) fn poll_write<R>(
        &self,
        waker: &Waker,
        work: impl FnOnce(&mut Write<'_, T, Op<K, V>>) -> R,
    ) -> Poll<Result<R, GuardError>> {
        let all = Waker::from(std::sync::Arc::clone(&self.sleepers));
        let patience = Patience::Task(&all);
        self.sleepers.enter(waker);
        let written = match self.hold(patience) {
            Ok(turns) => {
                self.sleepers.note_turn(waker);
                self.write_held(turns, patience, work)
            }
            Err(error) => Err(error),
        };
        if let Err(GuardError::Occupied) = written {
            return Poll::Pending;
        }
        self.sleepers.leave(waker);
        Poll::Ready(written)
    }

    fn write_held<R>(
        &self,
        mut turns: Held<'_, T, K, V>,
        patience: Patience<'_>,
        work: impl FnOnce(&mut Write<'_, T, Op<K, V>>) -> R,
    ) -> Result<R, GuardError> {
        let applied = apply(&mut turns.twin, patience, work);
        let mut fallen = turns.twin.take_fallen();
        let in_round = matches!(applied, Ok(Ok(_)));
        let finished =
            caught(|| self.finish(turns, patience, in_round)).and_then(|finished| finished);
        let dropped = fallen.drop_all().map_or(Ok(()), Err); // (F3)
        let answer = first_panic(applied, finished);
        first_panic(answer, dropped).unwrap_or_else(|payload| resume_unwind(payload))
    }

    /// Publishes what is staged, or leaves it to the next one and waits for the end of the round
    /// (F4). Who has nothing in the round does not wait.
    fn finish(
        &self,
        mut turns: Held<'_, T, K, V>,
        patience: Patience<'_>,
        in_round: bool,
    ) -> Result<(), Payload> {
        let staged = turns.twin.is_staged();
        let may_wait = matches!(patience, Patience::Forever);
        // ORDERING: Relaxed: whoever has said that it will lock, and has not, comes after us by the
        // lock. An old value only means one publish more.
        let leaves = may_wait && self.waiting.load(Ordering::Relaxed) != 0;
        let published = if staged && !leaves { self.publish(&mut turns) } else { Ok(()) };
        // ORDERING: Relaxed, as in `hold`; the lock is released after this.
        self.holder.store(0, Ordering::Relaxed);
        let round = turns.rounds;
        let waits = staged && leaves && in_round;
        turns.left += usize::from(waits);
        drop(turns); // (F7)
        self.sleepers.wake(in_round || !matches!(patience, Patience::Task(_))); // (`sleepers` Y1, Y3)
        if !waits {
            return published;
        }
        assert!(
            self.wait_for(round),
            "nothing was changed: Clone, Hash or Eq of another writer's key or value panicked, and again when the copy was made anew"
        );
        Ok(())
    }

    /// Waits for the end of a round, with the desk released; false if it could not be published.
    #[cold]
    fn wait_for(&self, round: u64) -> bool {
        let mut ends = self.ends.lock();
        while ends.rounds <= round {
            ends = self.over.wait_for(ends, LONG).0;
        }
        !ends.has_failed(round)
    }

    /// Publishes the round, or gives it up if no copy with it can be had.
    fn publish(&self, turns: &mut Turns<T, K, V>) -> Result<(), Payload> {
        let published = caught(|| turns.twin.show(true));
        if published.is_ok() {
            self.watches.tell(turns.twin.log().iter()); // (`watch` W1)
        } else {
            turns.twin.discard();
        }
        let round = turns.rounds;
        turns.rounds += 1;
        let left = std::mem::take(&mut turns.left);
        if left > 0 {
            self.end(round, left, published.is_ok());
        }
        turns.twin.go_home();
        published.map(drop)
    }

    /// Tells those who wait for a round how it has ended.
    #[cold]
    fn end(&self, round: u64, left: usize, published: bool) {
        let mut ends = self.ends.lock();
        if !published {
            ends.failed.push((round, left));
        }
        ends.rounds = round + 1;
        self.over.notify_all();
    }

    /// Every publish sends readers home.
    #[cfg(all(test, not(quintet_loom)))]
    pub(super) fn insist_on_returns(&self) {
        self.turns.lock().twin.pace.insists = true;
    }

    /// Locks the desk.
    fn hold(&self, patience: Patience<'_>) -> Result<Held<'_, T, K, V>, GuardError> {
        // ORDERING: Relaxed: if it is our key, we wrote it.
        let is_inside = self.holder.load(Ordering::Relaxed) == fork::thread_key();
        if is_inside && !cfg!(quintet_mutation = "front-reentry") {
            panic!(
                "a table is written to from inside itself: by Hash, Eq, Clone or Drop of a key or value, or by the closure of a batch; it \
                 would wait for its own thread. Write after the outer call has returned"
            );
        }
        let turns = match self.turns.try_lock() {
            Some(turns) => turns,
            None => self.hold_slowly(patience)?,
        };
        // ORDERING: Relaxed: only this thread looks for this key.
        self.holder.store(fork::thread_key(), Ordering::Relaxed);
        Ok(turns)
    }

    #[cold]
    fn hold_slowly(&self, patience: Patience<'_>) -> Result<Held<'_, T, K, V>, GuardError> {
        let forever = matches!(patience, Patience::Forever);
        if forever && !self.core.gate.is_inside() {
            let waiting = Waiting::for_lock(&self.holder).ok_or(GuardError::WouldDeadlock)?; // (`waits` K1)
            // ORDERING: Relaxed: read and changed back by who holds the lock (F4).
            self.waiting.fetch_add(1, Ordering::Relaxed);
            let turns = self.turns.lock();
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            drop(waiting);
            return Ok(turns);
        }
        loop {
            match patience {
                Patience::None | Patience::Task(_) => return Err(GuardError::Occupied),
                Patience::Until(end) if Instant::now() >= end => return Err(GuardError::TimedOut),
                _ => {}
            }
            if self.core.gate.is_awaited() {
                return Err(GuardError::WouldDeadlock); // (F6)
            }
            let waiting = if forever {
                Some(Waiting::for_lock(&self.holder).ok_or(GuardError::WouldDeadlock)?) // (`waits` K1)
            } else {
                None
            };
            park_timeout(SOON);
            drop(waiting);
            if let Some(turns) = self.turns.try_lock() {
                return Ok(turns);
            }
        }
    }
}

impl Ends {
    /// Whether a round could not be published. Each who waited for it asks once.
    fn has_failed(&mut self, round: u64) -> bool {
        let Some(at) = self.failed.iter().position(|(failed, _)| *failed == round) else {
            return false;
        };
        self.failed[at].1 -= 1;
        if self.failed[at].1 == 0 {
            self.failed.swap_remove(at);
        }
        true
    }
}

/// Makes the copy FRESH and applies changes, which stay staged. If they panic, they are taken back
/// (F2).
fn apply<T: Absorb<Op<K, V>>, K, V, R>(
    twin: &mut Twin<T, Op<K, V>>,
    patience: Patience<'_>,
    work: impl FnOnce(&mut Write<'_, T, Op<K, V>>) -> R,
) -> Result<Result<R, GuardError>, Payload> {
    if let Err(error) = caught(|| twin.freshen(patience))? {
        return Ok(Err(error));
    }
    let mut write = Write::new(twin);
    let before = write.staged();
    let ran = caught(|| work(&mut write));
    if ran.is_err() {
        write.take_back(before);
    }
    std::mem::forget(write); // staged (`twin` X3)
    ran.map(Ok)
}

/// The answer, or the first panic of two. A payload may panic when it is dropped.
fn first_panic<R>(answer: Result<R, Payload>, then: Result<(), Payload>) -> Result<R, Payload> {
    match (answer, then) {
        (Ok(answer), Ok(())) => Ok(answer),
        (Ok(_), Err(payload)) => Err(payload),
        (Err(payload), then) => {
            std::mem::forget(then);
            Err(payload)
        }
    }
}
