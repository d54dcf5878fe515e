//! The writing side of a map.

use super::entry::Entry;
use super::map::TwinMap;
use super::reader::{Reader, SharedReader};
use super::twin::{Acquire, Twin, TwinStats};
use super::version::{Op, Version};
use super::wait::GuardError;
use super::write::Write;
use crate::hasher::DefaultHashBuilder;
use crate::region::AllocError;
use crate::vocabulary::{Compute, Computed, Rejected};
use equivalent::Equivalent;
use std::collections::VecDeque;
use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// A read handle of a [`TwinMap`].
pub type MapReader<K, V, S = DefaultHashBuilder> = Reader<Version<K, V, S>>;

/// The writer of a map that was [split](TwinMap::split). There is one: it collects changes, and
/// publishes them when it is told to.
pub struct Writer<K, V, S = DefaultHashBuilder>
where
    K: Hash + Eq + Clone,
    V: Clone,
    S: BuildHasher + Clone,
{
    twin: Twin<Version<K, V, S>, Op<K, V>>,
}

/// A batch of changes to a [`TwinMap`]: reads its own writes, publishes when dropped.
///
/// Dropped by a panic, it discards the batch. Forgotten, it leaves the batch to the next guard.
#[repr(transparent)]
pub struct WriteGuard<'a, K, V, S = DefaultHashBuilder>
where
    K: Hash + Eq + Clone,
    V: Clone,
    S: BuildHasher + Clone,
{
    write: Write<'a, Version<K, V, S>, Op<K, V>>,
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
    acquire: Acquire<'a, Version<K, V, S>, Op<K, V>>,
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Writer<K, V, S> {
    /// Starts a batch of changes, or goes on with the one a forgotten guard has left. Waits for
    /// readers that still look at the version before the current one.
    ///
    /// # Panics
    /// If this thread itself holds such a read guard ([`GuardError::WouldDeadlock`]), or if the
    /// system has come to refuse the barrier. [`guard_timeout`](Self::guard_timeout) returns these
    /// as values. And if the `Drop` of a removed key or value panics; the writer stays usable.
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
    pub fn shared_reader(&self) -> SharedReader<Version<K, V, S>> {
        self.twin.shared_reader()
    }

    /// A table that many threads write, over the same copies. Readers stay.
    pub fn into_map(self) -> TwinMap<K, V, S> {
        TwinMap::from_writer(self)
    }

    pub(super) fn from_twin(twin: Twin<Version<K, V, S>, Op<K, V>>) -> Self {
        Self { twin }
    }

    pub(super) fn into_twin(self) -> Twin<Version<K, V, S>, Op<K, V>> {
        self.twin
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
    /// The same guard, as the engine lends it.
    pub(super) fn wrap<'g>(write: &'g mut Write<'a, Version<K, V, S>, Op<K, V>>) -> &'g mut Self {
        // SAFETY: a transparent wrapper of it.
        unsafe { &mut *std::ptr::from_mut(write).cast::<Self>() }
    }

    /// What waits for the publish.
    pub(super) fn log(&self) -> &VecDeque<Op<K, V>> {
        self.write.log()
    }

    /// Sets the value of a key; returns the old one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.write.change(|map, log| map.put(log, key, value))
    }

    /// Sets the value of a key that is absent; else says what is there.
    pub fn insert_new(&mut self, key: K, value: V) -> Result<(), Rejected<V, V>> {
        let hash = self.hash(&key);
        match self.find(hash, &key) {
            Some((_, current)) => Err(Rejected { current: current.clone(), value }),
            None => {
                self.put(hash, key, value);
                Ok(())
            }
        }
    }

    /// What is there, or what is given.
    pub fn get_or_insert(&mut self, key: K, value: V) -> V {
        self.get_or_insert_with(key, || value)
    }

    /// What is there, or what is made.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> V {
        let hash = self.hash(&key);
        match self.find(hash, &key) {
            Some((_, value)) => value.clone(),
            None => self.put_shown(hash, key, make()),
        }
    }

    /// Puts a value made from the old one in its place; returns the new one. Does nothing if the
    /// key is absent.
    pub fn update<Q>(&mut self, key: &Q, update: impl FnOnce(&V) -> V) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let hash = self.hash(key);
        let (key, value) = self.find(hash, key)?;
        let (key, value) = (key.clone(), update(value));
        Some(self.put_shown(hash, key, value))
    }

    /// Changes a clone of a value and puts it in its place; returns the new one. Does nothing if
    /// the key is absent.
    pub fn modify<Q>(&mut self, key: &Q, modify: impl FnOnce(&mut V)) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.update(key, |old| {
            let mut new = old.clone();
            modify(&mut new);
            new
        })
    }

    /// [`update`](Self::update), or stores what is given; returns the new value.
    pub fn update_or_insert(&mut self, key: K, update: impl FnOnce(&V) -> V, value: V) -> V {
        self.update_or_insert_with(key, update, || value)
    }

    /// [`update`](Self::update), or stores what is made; returns the new value.
    pub fn update_or_insert_with(
        &mut self,
        key: K,
        update: impl FnOnce(&V) -> V,
        make: impl FnOnce() -> V,
    ) -> V {
        let hash = self.hash(&key);
        let value = self.find(hash, &key).map(|(_, value)| update(value));
        let value = value.unwrap_or_else(make);
        self.put_shown(hash, key, value)
    }

    /// The closure sees what is there, and says what is to be done.
    pub fn compute(
        &mut self,
        key: K,
        compute: impl FnOnce(Option<&V>) -> Compute<V>,
    ) -> Computed<V> {
        let hash = self.hash(&key);
        let found = self.find(hash, &key).map(|(_, value)| value);
        let (before, answer) = (found.cloned(), compute(found));
        let after = match answer {
            Compute::Keep => before.clone(),
            Compute::Insert(value) => Some(self.put_shown(hash, key, value)),
            Compute::Remove => {
                self.remove(&key);
                None
            }
        };
        Computed { before, after }
    }

    pub(super) fn put(&mut self, hash: u64, key: K, value: V) -> Option<V> {
        self.write.change(|map, log| map.put_hashed(log, hash, key, value))
    }

    /// The same; returns what was put in.
    fn put_shown(&mut self, hash: u64, key: K, value: V) -> V {
        let shown = value.clone();
        let old = self.put(hash, key, value);
        self.keep(old);
        shown
    }

    /// Removes a key; returns its value.
    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.write.change(|map, log| map.remove(log, key))
    }

    /// Removes a key whose value the closure agrees to: `Ok` of what was removed, `Err` of what
    /// stays.
    pub fn remove_if<Q>(&mut self, key: &Q, agrees: impl FnOnce(&V) -> bool) -> Result<Option<V>, V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        match self.get(key) {
            Some(value) if !agrees(value) => Err(value.clone()),
            Some(_) => Ok(self.remove(key)),
            None => Ok(None),
        }
    }

    /// Keeps the entries for which `keep` is true.
    pub fn retain(&mut self, keep: impl FnMut(&K, &V) -> bool) {
        self.write.change_keeping(|map, log, old| map.retain(log, old, keep));
    }

    /// Removes everything; keeps the memory.
    pub fn clear(&mut self) {
        self.write.change_keeping(|map, log, old| map.clear(log, old));
    }

    /// Stores many; returns how many keys were new.
    pub fn insert_many(&mut self, entries: impl IntoIterator<Item = (K, V)>) -> usize {
        let insert = |(key, value)| usize::from(!self.replace(key, value));
        entries.into_iter().map(insert).sum()
    }

    /// Sets the value of a key; true if there was one. That is dropped later.
    fn replace(&mut self, key: K, value: V) -> bool {
        let old = self.insert(key, value);
        self.keep(old)
    }

    /// Leaves a value to be dropped later (`twin` X5); true if there is one.
    pub(super) fn keep(&mut self, old: Option<V>) -> bool {
        let is_some = old.is_some();
        if is_some {
            self.write.keep((None, old));
        }
        is_some
    }

    /// Removes many; returns how many were there.
    pub fn remove_many<'q, Q>(&mut self, keys: impl IntoIterator<Item = &'q Q>) -> usize
    where
        Q: Hash + Equivalent<K> + ?Sized + 'q,
    {
        let remove = |key| {
            let old = self.remove(key);
            usize::from(self.keep(old))
        };
        keys.into_iter().map(remove).sum()
    }

    /// Puts this content in the place of all that is there.
    pub fn replace_all(&mut self, content: impl IntoIterator<Item = (K, V)>) {
        self.clear();
        self.extend(content);
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

    /// Makes the changes visible to all readers at one moment; returns the number of the new
    /// version. Does so even if nothing has changed.
    pub fn publish(self) -> u64 {
        self.write.publish()
    }

    /// Gives up all changes of this batch. The next guard copies the whole map.
    pub fn discard(self) {
        self.write.discard();
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
        entries.into_iter().for_each(|(key, value)| {
            self.replace(key, value);
        });
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> Deref for WriteGuard<'_, K, V, S> {
    type Target = Version<K, V, S>;

    fn deref(&self) -> &Version<K, V, S> {
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
