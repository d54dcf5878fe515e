//! One copy of a set, and the writing side: maps whose values are nothing.

use super::absorb::{Absorb, Differs};
use super::iter::{IntoIter, Iter};
use super::reader::{Reader, SharedReader};
use super::set::TwinSet;
use super::twin::{Twin, TwinStats};
use super::version::{Fallen, Op, Version};
use super::wait::GuardError;
use super::write::Write;
use crate::hasher::DefaultHashBuilder;
use crate::region::AllocError;
use equivalent::Equivalent;
use std::hash::{BuildHasher, Hash};
use std::ops::Deref;
use std::time::Duration;

/// One version of a [`TwinSet`]: what its guards show. A plain set that lends plain references.
#[derive(Clone)]
pub struct SetVersion<T, S = DefaultHashBuilder>(pub(super) Version<T, (), S>);

impl<T, S: Default> Default for SetVersion<T, S> {
    fn default() -> Self {
        Self(Version::default())
    }
}

impl<T, S> SetVersion<T, S> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All elements, in no particular order.
    pub fn iter(&self) -> SetIter<'_, T> {
        SetIter(self.0.iter())
    }

    /// How many elements fit before this copy grows.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Bytes that this copy's table holds. A set has two copies.
    pub fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    /// The hasher.
    pub fn hasher(&self) -> &S {
        self.0.hasher()
    }
}

impl<T, S: BuildHasher> SetVersion<T, S> {
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

impl<T: Hash + Eq, S: BuildHasher> PartialEq for SetVersion<T, S> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T: Hash + Eq, S: BuildHasher> Eq for SetVersion<T, S> {}

impl<'a, T, S> IntoIterator for &'a SetVersion<T, S> {
    type Item = &'a T;
    type IntoIter = SetIter<'a, T>;

    fn into_iter(self) -> SetIter<'a, T> {
        self.iter()
    }
}

impl<T, S> IntoIterator for SetVersion<T, S> {
    type Item = T;
    type IntoIter = SetIntoIter<T>;

    fn into_iter(self) -> SetIntoIter<T> {
        SetIntoIter(self.0.into_iter())
    }
}

/// The elements of one version.
#[derive(Debug, Clone)]
pub struct SetIter<'a, T>(Iter<'a, T, ()>);

/// The elements of a version, by value.
#[derive(Debug)]
pub struct SetIntoIter<T>(IntoIter<T, ()>);

macro_rules! elements {
    ($([$($lifetime:lifetime)?] $iter:ty, $item:ty;)+) => { $(
        impl<$($lifetime,)? T> Iterator for $iter {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<$item> {
                self.0.next().map(|(element, _)| element)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.0.size_hint()
            }
        }

        impl<$($lifetime,)? T> ExactSizeIterator for $iter {}
        impl<$($lifetime,)? T> std::iter::FusedIterator for $iter {}
    )+ };
}
elements! {
    ['a] SetIter<'a, T>, &'a T;
    [] SetIntoIter<T>, T;
}

impl<T: Hash + Eq, S: BuildHasher> Extend<T> for SetVersion<T, S> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        self.0.extend(elements.into_iter().map(|element| (element, ())));
    }
}

impl<T: Hash + Eq, S: BuildHasher + Default> FromIterator<T> for SetVersion<T, S> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut set = Self::default();
        set.extend(elements);
        set
    }
}

impl<T: std::fmt::Debug, S> std::fmt::Debug for SetVersion<T, S> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_set().entries(self.iter()).finish()
    }
}

impl<T: Hash + Eq + Clone, S: BuildHasher + Clone> Absorb<Op<T, ()>> for SetVersion<T, S> {
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

    fn prepare(&self, op: &Op<T, ()>) {
        self.0.prepare(op);
    }

    fn rebuild(from: &Self) -> Self {
        Self(Version::rebuild(&from.0))
    }

    fn rebuild_into(&mut self, from: &Self) {
        self.0.rebuild_into(&from.0);
    }

    fn is_copied_sooner(&self, operations: usize) -> bool {
        self.0.is_copied_sooner(operations)
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    fn agrees(&self, other: &Self) -> bool {
        self.0.agrees(&other.0)
    }
}

/// The writer of a set that was [split](TwinSet::split).
pub struct SetWriter<T, S = DefaultHashBuilder>
where
    T: Hash + Eq + Clone,
    S: BuildHasher + Clone,
{
    twin: Twin<SetVersion<T, S>, Op<T, ()>>,
}

/// A batch of changes to a [`TwinSet`]: reads its own writes, publishes when dropped.
///
/// Dropped by a panic, it discards the batch. Forgotten, it leaves the batch to the next guard.
#[repr(transparent)]
pub struct SetWriteGuard<'a, T, S = DefaultHashBuilder>
where
    T: Hash + Eq + Clone,
    S: BuildHasher + Clone,
{
    write: Write<'a, SetVersion<T, S>, Op<T, ()>>,
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

    /// The same for tasks: the last reader that leaves wakes the task. Needs no particular runtime.
    ///
    /// ```
    /// # async fn example() -> Result<(), quintet::twin_map::GuardError> {
    /// let (mut writer, reader) = quintet::TwinSet::new().split();
    /// writer.guard_async().await?.insert("a");
    /// assert!(reader.pin().contains("a"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn guard_async(&mut self) -> Result<SetWriteGuard<'_, T, S>, GuardError> {
        Ok(SetWriteGuard { write: self.twin.guard_async().await? })
    }

    /// A set that many threads write, over the same copies. Readers stay.
    pub fn into_set(self) -> TwinSet<T, S> {
        TwinSet::from_writer(self)
    }

    pub(super) fn from_twin(twin: Twin<SetVersion<T, S>, Op<T, ()>>) -> Self {
        Self { twin }
    }

    pub(super) fn into_twin(self) -> Twin<SetVersion<T, S>, Op<T, ()>> {
        self.twin
    }

    /// A further reader.
    pub fn reader(&self) -> Reader<SetVersion<T, S>> {
        self.twin.reader()
    }

    /// A reader that several threads may share.
    pub fn shared_reader(&self) -> SharedReader<SetVersion<T, S>> {
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

impl<'a, T: Hash + Eq + Clone, S: BuildHasher + Clone> SetWriteGuard<'a, T, S> {
    /// The same guard, as the engine lends it.
    pub(super) fn wrap<'g>(write: &'g mut Write<'a, SetVersion<T, S>, Op<T, ()>>) -> &'g mut Self {
        // SAFETY: a transparent wrapper of it.
        unsafe { &mut *std::ptr::from_mut(write).cast::<Self>() }
    }

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
        self.write
            .change_keeping(|set, log, old| set.0.retain(log, old, |element, ()| keep(element)));
    }

    /// Removes everything; keeps the memory.
    pub fn clear(&mut self) {
        self.write.change_keeping(|set, log, old| set.0.clear(log, old));
    }

    /// Adds many; returns how many were new.
    pub fn insert_many(&mut self, elements: impl IntoIterator<Item = T>) -> usize {
        elements.into_iter().map(|element| usize::from(self.insert(element))).sum()
    }

    /// Removes many; returns how many were there.
    pub fn remove_many<'q, Q>(&mut self, elements: impl IntoIterator<Item = &'q Q>) -> usize
    where
        Q: Hash + Equivalent<T> + ?Sized + 'q,
    {
        elements.into_iter().map(|element| usize::from(self.remove(element))).sum()
    }

    /// Puts this content in the place of all that is there.
    pub fn replace_all(&mut self, content: impl IntoIterator<Item = T>) {
        self.clear();
        self.insert_many(content);
    }

    /// Makes room for so many more elements, in both copies.
    ///
    /// # Panics
    /// If there is no memory for it; [`try_reserve`](Self::try_reserve) returns that as a value.
    pub fn reserve(&mut self, more: usize) {
        self.write.change(|set, log| set.0.reserve(log, more));
    }

    /// Makes room for so many more elements.
    pub fn try_reserve(&mut self, more: usize) -> Result<(), AllocError> {
        self.write.change(|set, log| set.0.try_reserve(log, more))
    }

    /// Gives back memory that the elements do not need, in both copies.
    pub fn shrink_to_fit(&mut self) {
        self.write.change(|set, log| set.0.shrink(log));
    }

    /// How many changes wait for the publish.
    pub fn staged(&self) -> usize {
        self.write.staged()
    }

    /// Makes the changes visible to all readers at one moment; returns the number of the new
    /// version.
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
    type Target = SetVersion<T, S>;

    fn deref(&self) -> &SetVersion<T, S> {
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
