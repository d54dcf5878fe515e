//! Sets: maps whose values are nothing.

use super::absorb::{Absorb, Differs};
use super::reader::{Reader, SharedReader};
use super::table::{Fallen, Op, TwinMap};
use super::twin::{Twin, TwinStats, Write};
use super::wait::GuardError;
use crate::hasher::DefaultHashBuilder;
use equivalent::Equivalent;
use std::hash::{BuildHasher, Hash};
use std::ops::Deref;
use std::time::Duration;

/// One version of a set: what read guards and the writer's guard show, and what a set is before it is
/// [split](Self::split) into a writer and readers. A [`TwinMap`] without values; its promises are the same.
///
/// ```
/// use quintet::TwinSet;
///
/// let (mut writer, reader) = TwinSet::<&str>::from_iter(["tea", "milk"]).split();
/// let mut write = writer.guard();
/// write.insert("sugar");
/// write.remove("milk");
/// write.publish();
/// assert!(reader.guard().contains("sugar"));
/// assert_eq!(reader.guard().len(), 2);
/// ```
#[derive(Clone)]
pub struct TwinSet<T, S = DefaultHashBuilder>(TwinMap<T, (), S>);

impl<T> TwinSet<T> {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<T, S: Default> Default for TwinSet<T, S> {
    fn default() -> Self {
        Self(TwinMap::default())
    }
}

impl<T, S> TwinSet<T, S> {
    /// An empty set with a hasher of your own. Clones of the hasher must hash alike.
    pub fn with_hasher(hasher: S) -> Self {
        Self(TwinMap::with_hasher(hasher))
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All elements, in no particular order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> + Clone {
        self.0.keys()
    }
}

impl<T, S: BuildHasher> TwinSet<T, S> {
    /// True if the element is there.
    #[inline]
    pub fn contains<Q: Hash + Equivalent<T> + ?Sized>(&self, element: &Q) -> bool {
        self.0.contains_key(element)
    }

    /// The stored element that equals this one.
    #[inline]
    pub fn get<Q: Hash + Equivalent<T> + ?Sized>(&self, element: &Q) -> Option<&T> {
        self.0.get_key_value(element).map(|(element, ())| element)
    }
}

impl<T: Hash + Eq + Clone, S: BuildHasher + Clone> TwinSet<T, S> {
    /// Keeps this set in two copies: a writer for them, and a first reader to clone.
    pub fn split(self) -> (SetWriter<T, S>, Reader<Self>) {
        let (twin, reader) = Twin::new(self);
        (SetWriter { twin }, reader)
    }
}

impl<T: Hash + Eq, S: BuildHasher> Extend<T> for TwinSet<T, S> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        self.0.extend(elements.into_iter().map(|element| (element, ())));
    }
}

impl<T: Hash + Eq, S: BuildHasher + Default> FromIterator<T> for TwinSet<T, S> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut set = Self::default();
        set.extend(elements);
        set
    }
}

impl<T: std::fmt::Debug, S> std::fmt::Debug for TwinSet<T, S> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_set().entries(self.iter()).finish()
    }
}

impl<T: Hash + Eq + Clone, S: BuildHasher + Clone> Absorb<Op<T, ()>> for TwinSet<T, S> {
    type Old = Fallen<T, ()>;

    fn absorb_first(&mut self, op: &mut Op<T, ()>) -> Option<Fallen<T, ()>> {
        self.0.absorb_first(op)
    }

    fn absorb_second(
        &mut self,
        op: Op<T, ()>,
        old: &mut Vec<Fallen<T, ()>>,
    ) -> Result<(), Differs> {
        self.0.absorb_second(op, old)
    }

    fn rebuild(from: &Self) -> Self {
        Self(TwinMap::rebuild(&from.0))
    }

    fn agrees(&self, other: &Self) -> bool {
        self.0.agrees(&other.0)
    }
}

/// The writer of a [`TwinSet`].
pub struct SetWriter<T, S = DefaultHashBuilder>
where
    T: Hash + Eq + Clone,
    S: BuildHasher + Clone,
{
    twin: Twin<TwinSet<T, S>, Op<T, ()>>,
}

/// A batch of changes to a [`TwinSet`]: reads its own writes, publishes when dropped.
///
/// Dropped by a panic, it discards the batch. Forgotten, it leaves the batch to the next guard.
pub struct SetWriteGuard<'a, T, S = DefaultHashBuilder>
where
    T: Hash + Eq + Clone,
    S: BuildHasher + Clone,
{
    write: Write<'a, TwinSet<T, S>, Op<T, ()>>,
}

impl<T: Hash + Eq + Clone, S: BuildHasher + Clone> SetWriter<T, S> {
    /// Starts a batch of changes; see [`Writer::guard`](super::Writer::guard).
    ///
    /// # Panics
    /// As there.
    pub fn guard(&mut self) -> SetWriteGuard<'_, T, S> {
        SetWriteGuard { write: self.twin.guard() }
    }

    /// The same without waiting.
    pub fn try_guard(&mut self) -> Result<SetWriteGuard<'_, T, S>, GuardError> {
        Ok(SetWriteGuard { write: self.twin.try_guard()? })
    }

    /// The same, waiting at most so long.
    pub fn guard_timeout(&mut self, most: Duration) -> Result<SetWriteGuard<'_, T, S>, GuardError> {
        Ok(SetWriteGuard { write: self.twin.guard_timeout(most)? })
    }

    /// A further reader.
    pub fn reader(&self) -> Reader<TwinSet<T, S>> {
        self.twin.reader()
    }

    /// A reader that several threads may share.
    pub fn shared_reader(&self) -> SharedReader<TwinSet<T, S>> {
        self.twin.shared_reader()
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

impl<T: Hash + Eq + Clone, S: BuildHasher + Clone> SetWriteGuard<'_, T, S> {
    /// Adds an element; true if it was absent. An equal element that is there already stays.
    pub fn insert(&mut self, element: T) -> bool {
        self.write.change(|set, log| set.0.put(log, element, ())).is_none()
    }

    /// Removes an element; true if it was present.
    pub fn remove<Q: Hash + Equivalent<T> + ?Sized>(&mut self, element: &Q) -> bool {
        self.write.change(|set, log| set.0.remove(log, element)).is_some()
    }

    /// Keeps the elements for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.write.change(|set, log| set.0.retain(log, |element, ()| keep(element)));
    }

    /// Removes everything; keeps the memory.
    pub fn clear(&mut self) {
        self.write.change(|set, log| set.0.clear(log));
    }

    /// Makes the changes visible to all readers at one moment; returns the number of the new version.
    pub fn publish(self) -> u64 {
        self.write.publish()
    }

    /// Gives up all changes of this batch. The next guard copies the whole set.
    pub fn discard(self) {
        self.write.discard();
    }
}

impl<T: Hash + Eq + Clone, S: BuildHasher + Clone> Extend<T> for SetWriteGuard<'_, T, S> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        for element in elements {
            self.insert(element);
        }
    }
}

impl<T: Hash + Eq + Clone, S: BuildHasher + Clone> Deref for SetWriteGuard<'_, T, S> {
    type Target = TwinSet<T, S>;

    fn deref(&self) -> &TwinSet<T, S> {
        &self.write
    }
}

impl<T: Hash + Eq + Clone, S: BuildHasher + Clone> std::fmt::Debug for SetWriter<T, S> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.twin.fmt(out)
    }
}

impl<T, S> std::fmt::Debug for SetWriteGuard<'_, T, S>
where
    T: Hash + Eq + Clone + std::fmt::Debug,
    S: BuildHasher + Clone,
{
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(out)
    }
}
