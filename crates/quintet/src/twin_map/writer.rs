//! The writing side of a map.

use super::entry::Entry;
use super::inert::{Inert, InertMap, InertWriter};
use super::reader::{Reader, SharedReader};
use super::table::{Fallen, Op, TwinMap};
use super::twin::{Acquire, Stalled, Twin, TwinStats, Write};
use super::wait::GuardError;
use crate::hasher::DefaultHashBuilder;
use crate::region::{AllocError, Pages};
use crate::sync::Barrier;
use equivalent::Equivalent;
use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// A read handle of a [`TwinMap`].
pub type MapReader<K, V, S = DefaultHashBuilder> = Reader<TwinMap<K, V, S>>;

/// Options of a map to be made.
#[derive(Debug, Clone)]
pub struct Builder<S = DefaultHashBuilder> {
    capacity: usize,
    hasher: S,
    pages: Pages,
    stalled: Stalled,
    barrier: Barrier,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            capacity: 0,
            hasher: DefaultHashBuilder::default(),
            pages: Pages::default(),
            stalled: Stalled::default(),
            barrier: Barrier::detect(),
        }
    }
}

impl Builder {
    /// The defaults: empty, a random seed, huge pages, and a writer that waits for readers.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Builder {
    /// A map whose two copies share keys and values bit by bit: half the memory for what lies on the heap, and no `Clone`. The writer
    /// always waits for readers, and replaced values come back one batch later.
    ///
    /// ```
    /// use quintet::twin_map::Builder;
    /// let (mut writer, reader) = Builder::new().build_inert::<String, Vec<u8>>();
    /// writer.guard().insert("a".to_owned(), vec![1; 1000]);
    /// assert_eq!(writer.guard().remove("a").map(Vec::len), Some(1000));
    /// drop(writer.guard());
    /// assert_eq!(writer.evicted().next().map(|old| old.len()), Some(1000));
    /// assert!(reader.guard().is_empty());
    /// ```
    pub fn build_inert<K, V>(self) -> (InertWriter<K, V>, Reader<InertMap<K, V>>)
    where
        K: Inert + Hash + Eq,
        V: Inert,
    {
        let Self { capacity, hasher, pages, barrier, .. } = self;
        InertWriter::new(TwinMap::with_pages(hasher, pages), capacity, barrier)
    }
}

impl<S> Builder<S> {
    /// Room for so many entries in each copy.
    pub fn capacity(mut self, entries: usize) -> Self {
        self.capacity = entries;
        self
    }

    /// Another hasher. Any will do: nothing about it is trusted.
    pub fn hasher<H>(self, hasher: H) -> Builder<H> {
        let Self { capacity, pages, stalled, barrier, .. } = self;
        Builder { capacity, hasher, pages, stalled, barrier }
    }

    /// Which pages large copies lie in.
    pub fn pages(mut self, pages: Pages) -> Self {
        self.pages = pages;
        self
    }

    /// What the writer does when readers do not leave.
    pub fn stalled(mut self, stalled: Stalled) -> Self {
        self.stalled = stalled;
        self
    }

    /// Readers and the writer use fences instead of the process-wide barrier, as they do where the system has none.
    #[doc(hidden)]
    pub fn fences(mut self) -> Self {
        self.barrier = Barrier::Fence;
        self
    }

    /// The writer, and a first reader to clone.
    pub fn build<K, V>(self) -> (Writer<K, V, S>, MapReader<K, V, S>)
    where
        K: Hash + Eq + Clone,
        V: Clone,
        S: BuildHasher + Clone,
    {
        let mut map = TwinMap::with_pages(self.hasher, self.pages);
        map.make_room(self.capacity);
        let (twin, reader) = Twin::with(map, self.stalled, self.barrier);
        (Writer { twin }, reader)
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> TwinMap<K, V, S> {
    /// Keeps this map in two copies: a writer for them, and a first reader to clone.
    pub fn split(self) -> (Writer<K, V, S>, Reader<Self>) {
        let (twin, reader) = Twin::new(self);
        (Writer { twin }, reader)
    }
}

/// The writer of a [`TwinMap`]. There is one; [`Front`](super::Front) is for many.
pub struct Writer<K, V, S = DefaultHashBuilder>
where
    K: Hash + Eq + Clone,
    V: Clone,
    S: BuildHasher + Clone,
{
    twin: Twin<TwinMap<K, V, S>, Op<K, V>>,
}

/// A batch of changes to a [`TwinMap`]: reads its own writes, publishes when dropped.
///
/// Dropped by a panic, it discards the batch. Forgotten, it leaves the batch to the next guard.
pub struct WriteGuard<'a, K, V, S = DefaultHashBuilder>
where
    K: Hash + Eq + Clone,
    V: Clone,
    S: BuildHasher + Clone,
{
    write: Write<'a, TwinMap<K, V, S>, Op<K, V>>,
}

/// A [`WriteGuard`] to come; made by [`Writer::guard_async`].
#[must_use = "a future does nothing unless awaited"]
#[derive(Debug)]
pub struct AcquireMap<'a, K, V, S = DefaultHashBuilder>
where
    K: Hash + Eq + Clone,
    V: Clone,
    S: BuildHasher + Clone,
{
    acquire: Acquire<'a, TwinMap<K, V, S>, Op<K, V>>,
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Writer<K, V, S> {
    /// Starts a batch of changes, or goes on with the one a forgotten guard has left. Waits for readers that
    /// still look at the version before the current one.
    ///
    /// # Panics
    /// If this thread itself holds such a read guard ([`GuardError::WouldDeadlock`]), or if the system has come to refuse the
    /// barrier. [`guard_timeout`](Self::guard_timeout) returns these as values. And if the `Drop` of a removed key or value
    /// panics; the writer stays usable.
    pub fn guard(&mut self) -> WriteGuard<'_, K, V, S> {
        WriteGuard { write: self.twin.guard() }
    }

    /// The same without waiting.
    pub fn try_guard(&mut self) -> Result<WriteGuard<'_, K, V, S>, GuardError> {
        Ok(WriteGuard { write: self.twin.try_guard()? })
    }

    /// The same, waiting at most so long.
    pub fn guard_timeout(&mut self, most: Duration) -> Result<WriteGuard<'_, K, V, S>, GuardError> {
        Ok(WriteGuard { write: self.twin.guard_timeout(most)? })
    }

    /// The same for tasks: the last reader that leaves wakes the task. Needs no particular runtime.
    pub fn guard_async(&mut self) -> AcquireMap<'_, K, V, S> {
        AcquireMap { acquire: self.twin.guard_async() }
    }

    /// A further reader.
    pub fn reader(&self) -> MapReader<K, V, S> {
        self.twin.reader()
    }

    /// A reader that several threads may share.
    pub fn shared_reader(&self) -> SharedReader<TwinMap<K, V, S>> {
        self.twin.shared_reader()
    }

    /// Leaves what falls out of the second copy to `take_old`.
    pub(super) fn keep_old(&mut self) {
        self.twin.keep_old();
    }

    /// What fell out of the second copy and is to be dropped.
    pub(super) fn take_old(&mut self) -> Vec<Fallen<K, V>> {
        self.twin.take_old()
    }

    /// The version that readers see. It counts the publishes.
    pub fn version(&self) -> u64 {
        self.twin.version()
    }

    /// What has been done so far.
    pub fn stats(&self) -> TwinStats {
        self.twin.stats()
    }
}

impl<'a, K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> WriteGuard<'a, K, V, S> {
    /// Sets the value of a key; returns the old one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.write.change(|map, log| map.put(log, key, value))
    }

    /// Puts a value made from the old one in its place; returns the old one. Does nothing if the key is absent.
    pub fn replace<Q>(&mut self, key: &Q, new: impl FnOnce(&V) -> V) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let hash = self.hash(key);
        let (key, value) = self.find(hash, key)?;
        let (key, value) = (key.clone(), new(value));
        self.write.change(|map, log| map.put_hashed(log, hash, key, value))
    }

    /// Changes a clone of a value and puts it in its place; returns the old one. Does nothing if the key is absent.
    pub fn update<Q>(&mut self, key: &Q, change: impl FnOnce(&mut V)) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.replace(key, |old| {
            let mut new = old.clone();
            change(&mut new);
            new
        })
    }

    /// Removes a key; returns its value.
    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.write.change(|map, log| map.remove(log, key))
    }

    /// Keeps the entries for which `keep` is true.
    pub fn retain(&mut self, keep: impl FnMut(&K, &V) -> bool) {
        self.write.change(|map, log| map.retain(log, keep));
    }

    /// Removes everything; keeps the memory.
    pub fn clear(&mut self) {
        self.write.change(|map, log| map.clear(log));
    }

    /// Makes room for so many more entries, in both copies.
    ///
    /// # Panics
    /// If there is no memory for it; [`try_reserve`](Self::try_reserve) returns that as a value.
    pub fn reserve(&mut self, more: usize) {
        self.write.change(|map, log| map.reserve(log, more));
    }

    /// Makes room for so many more entries.
    pub fn try_reserve(&mut self, more: usize) -> Result<(), AllocError> {
        self.write.change(|map, log| map.try_reserve(log, more))
    }

    /// Gives back memory that the entries do not need, in both copies.
    pub fn shrink_to_fit(&mut self) {
        self.write.change(|map, log| map.shrink(log));
    }

    /// Looks a key up in order to change it.
    pub fn entry<'g>(&'g mut self, key: K) -> Entry<'g, 'a, K, V, S> {
        let hash = self.hash(&key);
        let occupied = self.find(hash, &key).is_some();
        Entry::new(&mut self.write, hash, key, occupied)
    }

    /// Makes the changes visible to all readers at one moment; returns the number of the new version. Does so
    /// even if nothing has changed.
    pub fn publish(self) -> u64 {
        self.write.publish()
    }

    /// Gives up all changes of this batch. The next guard copies the whole map.
    pub fn discard(self) {
        self.write.discard();
    }

    /// As [`Writer::take_old`].
    pub(super) fn take_old(&mut self) -> Vec<Fallen<K, V>> {
        self.write.take_old()
    }

    /// Gives up the changes behind the first `keep`; the copy is made anew before it is used again.
    pub(super) fn take_back(&mut self, keep: usize) {
        self.write.take_back(keep);
    }

    /// How many changes wait for the publish.
    pub fn staged(&self) -> usize {
        self.write.staged()
    }

    /// The version that readers see now; the publish makes the next one.
    pub fn version(&self) -> u64 {
        self.write.version()
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Extend<(K, V)>
    for WriteGuard<'_, K, V, S>
{
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        entries.into_iter().for_each(|(key, value)| drop(self.insert(key, value)));
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Deref for WriteGuard<'_, K, V, S> {
    type Target = TwinMap<K, V, S>;

    fn deref(&self) -> &TwinMap<K, V, S> {
        &self.write
    }
}

impl<'a, K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Future
    for AcquireMap<'a, K, V, S>
{
    type Output = Result<WriteGuard<'a, K, V, S>, GuardError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let write = Pin::new(&mut self.acquire).poll(context);
        write.map(|write| write.map(|write| WriteGuard { write }))
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> std::fmt::Debug for Writer<K, V, S> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.twin.fmt(out)
    }
}

impl<K, V, S> std::fmt::Debug for WriteGuard<'_, K, V, S>
where
    K: Hash + Eq + Clone + std::fmt::Debug,
    V: Clone + std::fmt::Debug,
    S: BuildHasher + Clone,
{
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(out)
    }
}
