//! Many writers: batches are queued, and whoever holds the writer applies all that wait and publishes once.
//!
//! ```text
//!   commit: queue.push(batch), ticket = its number
//!           lock the writer ── my ticket is done? return its version
//!                           └─ else take the whole queue, apply it in order, publish, done = last ticket taken
//! ```
//!
//! **F1.** A batch is published whole, in one version, in the order of the tickets.
//! **F2.** A batch whose keys panic in `Hash` or `Eq` is left out, and its own committer is told; the others are published.

use super::writer::{MapReader, WriteGuard, Writer};
use crate::hash::DefaultHashBuilder;
use crate::sync::{Arc, Mutex};
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};

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
}

/// A key, and its new value or nothing.
type Change<K, V> = (K, Option<V>);

struct Queue<K, V> {
    batches: Vec<Vec<Change<K, V>>>,
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

/// A batch was not applied: `Hash`, `Eq`, `Clone` or `Drop` of one of its keys or values panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPanicked;

impl std::fmt::Display for BatchPanicked {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(
            "the batch was left out: Hash, Eq, Clone or Drop of its keys or values panicked; correct the type and commit again",
        )
    }
}

impl std::error::Error for BatchPanicked {}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Writer<K, V, S> {
    /// Turns this writer into one that can be cloned and shared.
    pub fn into_front(self) -> Front<K, V, S> {
        let queue = Mutex::new(Queue { batches: Vec::new(), tickets: 0 });
        let writer = Mutex::new(Combiner { writer: self, done: 0, refused: Vec::new() });
        Front { shared: Arc::new(Shared { queue, writer }) }
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Front<K, V, S> {
    /// Applies a batch, `None` removes a key, and returns the version that shows it. It is published when this returns.
    ///
    /// # Panics
    /// As [`Writer::guard`].
    pub fn commit(
        &self,
        batch: impl IntoIterator<Item = (K, Option<V>)>,
    ) -> Result<u64, BatchPanicked> {
        let batch = batch.into_iter().collect();
        let mut queue = self.shared.queue.lock();
        queue.batches.push(batch);
        queue.tickets += 1;
        let ticket = queue.tickets;
        drop(queue);
        let mut combiner = self.shared.writer.lock();
        if combiner.done < ticket {
            combiner.apply(&self.shared.queue);
        }
        if let Some(at) = combiner.refused.iter().position(|refused| *refused == ticket) {
            combiner.refused.swap_remove(at);
            return Err(BatchPanicked);
        }
        Ok(combiner.writer.version())
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

    /// A further reader.
    pub fn reader(&self) -> MapReader<K, V, S> {
        self.shared.writer.lock().writer.reader()
    }

    /// The version that readers see.
    pub fn version(&self) -> u64 {
        self.shared.writer.lock().writer.version()
    }

    /// Runs `f` with the writer itself, while all others wait.
    pub fn with_writer<R>(&self, f: impl FnOnce(&mut Writer<K, V, S>) -> R) -> R {
        f(&mut self.shared.writer.lock().writer)
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Combiner<K, V, S> {
    /// Applies all that wait, and publishes once (F1).
    fn apply(&mut self, queue: &Mutex<Queue<K, V>>) {
        // A guard first: if it panics, the batches still wait.
        let mut write = self.writer.guard();
        let mut queue = queue.lock();
        let (batches, last) = (std::mem::take(&mut queue.batches), queue.tickets);
        drop(queue);
        let first = self.done + 1;
        self.done = last;
        for (ticket, batch) in (first..).zip(batches) {
            if !apply_whole(&mut write, batch) {
                self.refused.push(ticket);
            }
        }
        // No copy can be had: everything taken is discarded, and told so.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| write.publish())) {
            std::mem::forget(payload);
            self.refused.retain(|ticket| *ticket < first);
            self.refused.extend(first..=last);
        }
    }
}

/// Applies a batch, or takes back what it did (F2).
fn apply_whole<K, V, S>(write: &mut WriteGuard<'_, K, V, S>, batch: Vec<Change<K, V>>) -> bool
where
    K: Hash + Eq + Clone,
    V: Clone,
    S: BuildHasher + Clone,
{
    let before = write.staged();
    let applied = catch_unwind(AssertUnwindSafe(|| {
        for (key, value) in batch {
            match value {
                Some(value) => drop(write.insert(key, value)),
                None => drop(write.remove(&key)),
            }
        }
    }));
    if let Err(payload) = applied {
        std::mem::forget(payload);
        write.take_back(before);
        return false;
    }
    true
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
