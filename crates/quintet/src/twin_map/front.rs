//! Many writers: batches are queued, and whoever holds the writer applies all that wait and publishes once.
//!
//! ```text
//!   commit: queue.push(batch), ticket = its number
//!           lock the writer ── my ticket is done? return its version
//!                           └─ else take the whole queue, apply it in order, publish, done = last ticket taken
//! ```
//!
//! **F1.** A batch is published whole, in one version, in the order of the tickets.
//! **F2.** A batch whose keys panic in `Hash` or `Eq` is left out, and its own committer is told; the others are published. A batch whose committer panics
//! before it was taken out of the queue is withdrawn.
//! **F3.** User code that runs while the writer is locked (`Hash`, `Eq`, `Clone`, the closure of `with_writer`) may read. If it writes to the same front, it
//! would wait for its own thread: that is noticed by the holder's name and panics, before anything is queued. What fell out of the map is dropped
//! after the lock is released, and may write.

use super::reader::SharedReader;
use super::table::{Fallen, TwinMap};
use super::user_code::drop_each;
use super::writer::{MapReader, WriteGuard, Writer};
use crate::hasher::DefaultHashBuilder;
use crate::sync::{Arc, AtomicUsize, MODEL, Mutex, MutexGuard, Ordering, fork};
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A cloneable writer for many threads, made by [`Writer::into_front`]. Batches that arrive together are published together.
///
/// ```
/// let (writer, reader) = quintet::twin_map::new::<u32, &str>();
/// let front = writer.into_front();
/// std::thread::scope(|scope| {
///     scope.spawn(|| front.commit([(1, Some("one")), (2, Some("two"))]));
///     scope.spawn(|| front.insert(3, "three"));
/// });
/// assert_eq!(front.remove(3).unwrap(), front.version());
/// assert_eq!(reader.guard().len(), 2);
/// ```
pub struct Front<K, V, S = DefaultHashBuilder>
where
    K: Hash + Eq + Clone,
    V: Clone,
    S: BuildHasher + Clone,
{
    shared: Arc<Shared<K, V, S>>,
}

struct Shared<K, V, S>
where
    K: Hash + Eq + Clone,
    V: Clone,
    S: BuildHasher + Clone,
{
    queue: Mutex<Queue<K, V>>,
    writer: Mutex<Combiner<K, V, S>>,
    /// The thread that holds the writer, or 0 (F3).
    holder: AtomicUsize,
    /// For those who only ask: they never wait.
    reader: SharedReader<TwinMap<K, V, S>>,
}

/// The writer, locked.
struct Held<'a, K, V, S>
where
    K: Hash + Eq + Clone,
    V: Clone,
    S: BuildHasher + Clone,
{
    combiner: MutexGuard<'a, Combiner<K, V, S>>,
    holder: &'a AtomicUsize,
}

/// A ticket whose batch may still be in the queue. Dropped by a panic, it takes the batch out (F2).
struct Ticket<'a, K, V> {
    queue: &'a Mutex<Queue<K, V>>,
    number: u64,
}

/// A key, and its new value or nothing.
type Change<K, V> = (K, Option<V>);

/// What is committed at once.
type Batch<K, V> = Vec<Change<K, V>>;

struct Queue<K, V> {
    batches: Vec<(u64, Batch<K, V>)>,
    /// Tickets given out.
    tickets: u64,
}

struct Combiner<K, V, S>
where
    K: Hash + Eq + Clone,
    V: Clone,
    S: BuildHasher + Clone,
{
    writer: Writer<K, V, S>,
    /// Tickets up to here are done.
    done: u64,
    /// Tickets among them that were left out, until their committers have been told.
    refused: Vec<u64>,
}

/// A batch was not applied: `Hash`, `Eq` or `Clone` of one of its keys or values panicked, or `Drop` of one of its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPanicked;

impl std::fmt::Display for BatchPanicked {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(
            "the batch was left out: Hash, Eq or Clone of its keys or values, or Drop of its keys panicked; correct the type and commit again",
        )
    }
}

impl std::error::Error for BatchPanicked {}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Writer<K, V, S> {
    /// Turns this writer into one that can be cloned and shared.
    pub fn into_front(mut self) -> Front<K, V, S> {
        self.keep_old();
        let reader = self.shared_reader();
        let queue = Mutex::new(Queue { batches: Vec::new(), tickets: 0 });
        let writer = Mutex::new(Combiner { writer: self, done: 0, refused: Vec::new() });
        Front { shared: Arc::new(Shared { queue, writer, holder: AtomicUsize::new(0), reader }) }
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Shared<K, V, S> {
    /// Refuses to wait for itself (F3).
    fn check(&self) {
        // A model checker runs all its threads on one.
        // ORDERING: Relaxed: if it is our key, we wrote it.
        let is_inside = self.holder.load(Ordering::Relaxed) == fork::thread_key();
        if !MODEL && is_inside && !cfg!(quintet_mutation = "front-reentry") {
            panic!(
                "a Front is written to from inside itself: by Hash, Eq, Clone or Drop of a key or value, or by the closure of with_writer; it \
                 would wait for its own thread. Write after the outer call has returned"
            );
        }
    }

    /// Locks the writer.
    fn hold(&self) -> Held<'_, K, V, S> {
        self.check();
        let combiner = self.writer.lock();
        // ORDERING: Relaxed: only this thread looks for this key.
        self.holder.store(fork::thread_key(), Ordering::Relaxed);
        Held { combiner, holder: &self.holder }
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Drop for Held<'_, K, V, S> {
    fn drop(&mut self) {
        // ORDERING: Relaxed, as in `hold`; the lock is released after this.
        self.holder.store(0, Ordering::Relaxed);
    }
}

impl<K, V> Drop for Ticket<'_, K, V> {
    fn drop(&mut self) {
        let mut queue = self.queue.lock();
        let at = queue.batches.iter().position(|(number, _)| *number == self.number);
        let batch = at.map(|at| queue.batches.remove(at).1);
        drop(queue);
        drop_each(batch.into_iter().flatten());
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Front<K, V, S> {
    /// Applies a batch, `None` removes a key, and returns the version that shows it. It is published when this returns.
    ///
    /// # Panics
    /// As [`Writer::guard`]; the batch is withdrawn then. If the `Drop` of what the batch replaced or removed panics; the batch is published then. And if it is
    /// called from inside this front: by `Hash`, `Eq` or `Clone` of a key or value, by the `Drop` of a key that was not needed, or by the closure of
    /// [`with_writer`](Self::with_writer). The `Drop` of a value may call it.
    pub fn commit(
        &self,
        batch: impl IntoIterator<Item = (K, Option<V>)>,
    ) -> Result<u64, BatchPanicked> {
        let batch = batch.into_iter().collect();
        let Shared { queue, .. } = &*self.shared;
        self.shared.check();
        let ticket = Ticket::new(queue, batch);
        let mut held = self.shared.hold();
        let mut fallen = Vec::new();
        if held.combiner.done < ticket.number {
            held.combiner.apply(queue, &mut fallen);
        }
        let told = held.combiner.answer(ticket.number);
        std::mem::forget(ticket);
        drop(held);
        drop_all(fallen);
        told
    }

    /// Sets one value.
    ///
    /// # Panics
    /// As [`Writer::guard`].
    pub fn insert(&self, key: K, value: V) -> Result<u64, BatchPanicked> {
        self.commit([(key, Some(value))])
    }

    /// Removes one key.
    ///
    /// # Panics
    /// As [`Writer::guard`].
    pub fn remove(&self, key: K) -> Result<u64, BatchPanicked> {
        self.commit([(key, None)])
    }

    /// A further reader. Never waits.
    pub fn reader(&self) -> MapReader<K, V, S> {
        self.shared.reader.reader()
    }

    /// The version that readers see. Never waits.
    pub fn version(&self) -> u64 {
        self.shared.reader.guard().version()
    }

    /// Runs `f` with the writer itself, while all others wait. A writer of another map that `f` leaves in its place is written to from then on;
    /// [`reader`](Self::reader) and [`version`](Self::version) stay with the first.
    ///
    /// # Panics
    /// If called from inside this front, as [`commit`](Self::commit).
    pub fn with_writer<R>(&self, f: impl FnOnce(&mut Writer<K, V, S>) -> R) -> R {
        let mut held = self.shared.hold();
        let answer = f(&mut held.combiner.writer);
        let fallen = held.combiner.writer.take_old();
        drop(held);
        drop_all(fallen);
        answer
    }
}

impl<'a, K, V> Ticket<'a, K, V> {
    /// Queues a batch.
    fn new(queue: &'a Mutex<Queue<K, V>>, batch: Batch<K, V>) -> Self {
        let mut waiting = queue.lock();
        waiting.tickets += 1;
        let number = waiting.tickets;
        waiting.batches.push((number, batch));
        Self { queue, number }
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Combiner<K, V, S> {
    /// Applies all that wait, and publishes once (F1). Returns in `fallen` what is to be dropped without the lock (F3).
    fn apply(&mut self, queue: &Mutex<Queue<K, V>>, fallen: &mut Vec<Fallen<K, V>>) {
        // A guard first: if it panics, the batches still wait.
        let mut write = self.writer.guard();
        fallen.append(&mut write.take_old());
        let mut queue = queue.lock();
        let batches = std::mem::take(&mut queue.batches);
        self.done = queue.tickets;
        drop(queue);
        let tickets: Vec<u64> = batches.iter().map(|(ticket, _)| *ticket).collect();
        let told = self.refused.len();
        for (ticket, batch) in batches {
            if !apply_whole(&mut write, batch, fallen) {
                self.refused.push(ticket);
            }
        }
        // No copy can be had: everything taken is discarded, and told so.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| write.publish())) {
            std::mem::forget(payload);
            self.refused.truncate(told);
            self.refused.extend(tickets);
        }
    }

    /// What became of a ticket that is done.
    fn answer(&mut self, ticket: u64) -> Result<u64, BatchPanicked> {
        if let Some(at) = self.refused.iter().position(|refused| *refused == ticket) {
            self.refused.swap_remove(at);
            return Err(BatchPanicked);
        }
        Ok(self.writer.version())
    }
}

/// Applies a batch, or takes back what it did (F2).
fn apply_whole<K, V, S>(
    write: &mut WriteGuard<'_, K, V, S>,
    batch: Batch<K, V>,
    fallen: &mut Vec<Fallen<K, V>>,
) -> bool
where
    K: Hash + Eq + Clone,
    V: Clone,
    S: BuildHasher + Clone,
{
    let before = write.staged();
    let applied = catch_unwind(AssertUnwindSafe(|| {
        for (key, value) in batch {
            let old = match value {
                Some(value) => (None, write.insert(key, value)),
                None => {
                    let old = write.remove(&key);
                    (Some(key), old)
                }
            };
            fallen.push(old);
        }
    }));
    if let Err(payload) = applied {
        std::mem::forget(payload);
        write.take_back(before);
        return false;
    }
    true
}

/// Drops what fell out of the map, without the lock; tells the first panic.
fn drop_all<K, V>(fallen: Vec<Fallen<K, V>>) {
    if let Some(payload) = drop_each(fallen.into_iter()) {
        resume_unwind(payload);
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Clone for Front<K, V, S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> std::fmt::Debug for Front<K, V, S> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Front").finish_non_exhaustive()
    }
}
