//! The set itself: many readers, and writers that take turns, all by `&self`.

use super::builder::TwinSetBuilder;
use super::desk::{Desk, Options};
use super::forms::{batches, counts};
use super::reader::{OwnedGuard, ReadGuard, Reader};
use super::refs::{Ref, Refs, refs};
use super::retain::retain;
use super::set_writer::{SetIntoIter, SetIter, SetVersion, SetWriteGuard, SetWriter};
use super::twin::{Twin, TwinStats};
use super::version::Version;
use super::wait::{GuardError, Patience};
use crate::hasher::DefaultHashBuilder;
use crate::region::{AllocError, Pages};
use crate::sync::const_where_possible;
use equivalent::Equivalent;
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::time::{Duration, Instant};

/// A set in two copies: a [`TwinMap`](super::TwinMap) without values.
///
/// # When to use
///
/// A set that is asked all the time and changed now and then: blocked addresses, known names,
/// enabled features. Not for sets that are written as often as they are asked
/// ([`ItemSet`](crate::ItemSet), [`SeenSet`](crate::SeenSet)), and not where two copies of
/// everything are too much memory.
///
/// # Example
///
/// ```
/// use quintet::TwinSet;
///
/// let set = TwinSet::from(["tea", "milk"]);
/// assert!(set.insert("sugar"));
/// assert!(set.remove("milk"));
/// assert!(set.contains("sugar") && !set.contains("milk"));
/// set.replace_all(["water"]);
/// assert_eq!(set.len(), 1);
/// for element in &set.pin() {
///     assert_eq!(*element, "water");
/// }
/// ```
///
/// # Consistency
///
/// As a [`TwinMap`](super::TwinMap#consistency): a guard shows one version, a publish is one moment
/// for all readers, a [`batch`](Self::batch) is one write.
///
/// # Progress
///
/// As a [`TwinMap`](super::TwinMap#progress): reads never wait; writes take turns, and make a third
/// copy rather than wait for long.
///
/// # Growth
///
/// A writer grows a copy in one go, out of the readers' sight.
///
/// # Memory
///
/// Nothing until the first write, pin or handle; then two copies, elements included. More while old
/// versions are held, as for a [`TwinMap`](super::TwinMap#memory).
///
/// # Panics
///
/// As a [`TwinMap`](super::TwinMap#panics): an operation that panicked has not happened, and a
/// thread that would wait for itself is told.
pub struct TwinSet<T, S = DefaultHashBuilder>
where
    T: Hash + Eq + Clone,
    S: BuildHasher + Clone,
{
    pub(super) desk: Desk<SetVersion<T, S>, T, ()>,
}

impl<T: Hash + Eq + Clone> TwinSet<T> {
    const_where_possible! {
        /// An empty set. Allocates nothing.
        ///
        /// ```
        /// static BLOCKED: quintet::TwinSet<&str> = quintet::TwinSet::new();
        /// BLOCKED.insert("eve");
        /// assert!(BLOCKED.contains("eve"));
        /// ```
        pub fn new() -> Self {
            Self::with_hasher(DefaultHashBuilder::new())
        }
    }

    /// An empty set with room for so many elements in each copy.
    ///
    /// ```
    /// let set = quintet::TwinSet::<String>::with_capacity(1000);
    /// assert!(set.capacity() >= 1000);
    /// ```
    ///
    /// # Panics
    /// If there is no memory for it.
    pub fn with_capacity(elements: usize) -> Self {
        TwinSetBuilder::new().capacity(elements).build()
    }

    /// Sets up a set.
    ///
    /// ```
    /// let set = quintet::TwinSet::builder().capacity(9).build();
    /// assert!(set.insert("eve"));
    /// ```
    pub fn builder() -> TwinSetBuilder<T> {
        TwinSetBuilder::new()
    }
}

impl<T: Hash + Eq + Clone, S: BuildHasher + Clone> TwinSet<T, S> {
    const_where_possible! {
        /// An empty set with a hasher of your own. Clones of the hasher must hash alike.
        ///
        /// ```
        /// use std::hash::RandomState;
        ///
        /// let set = quintet::TwinSet::with_hasher(RandomState::new());
        /// assert!(set.insert("eve"));
        /// ```
        pub fn with_hasher(hasher: S) -> Self {
            let blank = SetVersion(Version::with_pages(hasher, Pages::Huge));
            Self { desk: Desk::new(blank, Options::DEFAULT) }
        }
    }

    /// An empty set with room for so many elements, and a hasher of your own.
    ///
    /// ```
    /// use std::hash::RandomState;
    ///
    /// let set = quintet::TwinSet::with_capacity_and_hasher(1000, RandomState::new());
    /// assert!(set.insert("eve") && set.capacity() >= 1000);
    /// ```
    ///
    /// # Panics
    /// If there is no memory for it.
    pub fn with_capacity_and_hasher(elements: usize, hasher: S) -> Self {
        TwinSetBuilder::<T>::new().hasher(hasher).capacity(elements).build()
    }

    /// Nothing is made yet.
    pub(super) fn blank(blank: SetVersion<T, S>, options: Options) -> Self {
        Self { desk: Desk::new(blank, options) }
    }

    /// Keeps two versions that are equal.
    pub(super) fn over_both(
        first: SetVersion<T, S>,
        second: SetVersion<T, S>,
        options: Options,
    ) -> Self {
        let blank = SetVersion(first.0.blank());
        let (twin, _) = Twin::with_both(first, second, options.stalled, options.barrier());
        Self { desk: Desk::over(blank, options, twin) }
    }

    pub(super) fn over(first: SetVersion<T, S>, options: Options) -> Self {
        let second = first.clone();
        Self::over_both(first, second, options)
    }

    /// The hasher.
    ///
    /// ```
    /// use std::hash::BuildHasher;
    ///
    /// let set = quintet::TwinSet::from(["eve"]);
    /// assert_eq!(set.hasher().hash_one("eve"), set.clone().hasher().hash_one("eve"));
    /// ```
    pub fn hasher(&self) -> &S {
        self.desk.blank.hasher()
    }

    /// One writer, and a first reader to clone; as [`TwinMap::split`](super::TwinMap::split).
    ///
    /// ```
    /// let (mut writer, reader) = quintet::TwinSet::new().split();
    /// let mut write = writer.guard();
    /// write.insert("eve");
    /// assert!(!reader.contains("eve")); // not until
    /// write.publish();
    /// assert!(reader.contains("eve"));
    /// ```
    pub fn split(self) -> (SetWriter<T, S>, Reader<SetVersion<T, S>>) {
        let twin = self.desk.into_twin();
        let reader = twin.reader();
        (SetWriter::from_twin(twin), reader)
    }

    /// A set over the copies of a writer. Readers stay.
    ///
    /// ```
    /// let (mut writer, reader) = quintet::TwinSet::new().split();
    /// writer.guard().insert("eve");
    /// let set = quintet::TwinSet::from_writer(writer);
    /// set.insert("mallory");
    /// assert_eq!(reader.pin().len(), 2);
    /// ```
    pub fn from_writer(writer: SetWriter<T, S>) -> Self {
        let twin = writer.into_twin();
        let blank = SetVersion(twin.reader().pin().0.blank());
        let options = Options { stalled: twin.stalled(), fences: twin.core().gate.has_fences() };
        Self { desk: Desk::over(blank, options, twin) }
    }

    /// Looks at the current version by the calling thread's seat; as
    /// [`TwinMap::pin`](super::TwinMap::pin).
    ///
    /// ```
    /// let set = quintet::TwinSet::from(["eve", "mallory"]);
    /// let version = set.pin();
    /// assert!(version.contains("eve") && version.contains("mallory")); // at one moment
    /// ```
    #[inline]
    pub fn pin(&self) -> ReadGuard<'_, SetVersion<T, S>> {
        self.desk.pin()
    }

    /// Looks at the current version through a guard that has no lifetime, may leave its thread, and
    /// be held across `.await`. It owns its version: no writer waits for it.
    ///
    /// ```
    /// let set = quintet::TwinSet::from(["a"]);
    /// let version = set.owned_pin();
    /// set.clear();
    /// std::thread::spawn(move || assert_eq!(version.len(), 1)).join().unwrap();
    /// ```
    #[doc(alias = "load_full")]
    pub fn owned_pin(&self) -> OwnedGuard<SetVersion<T, S>> {
        self.desk.owned_pin()
    }

    /// A reader with a seat of its own. It owns a share of the copies: no lifetime.
    ///
    /// ```
    /// let set = quintet::TwinSet::from(["eve"]);
    /// let reader = set.handle();
    /// set.insert("mallory");
    /// assert!(reader.contains("mallory"));
    /// ```
    pub fn handle(&self) -> Reader<SetVersion<T, S>> {
        self.desk.reader()
    }

    /// The same as [`handle`](Self::handle): it has no lifetime anyway.
    ///
    /// ```
    /// let set = std::sync::Arc::new(quintet::TwinSet::from(["eve"]));
    /// let reader = set.owned_handle();
    /// let thread = std::thread::spawn(move || reader.contains("eve"));
    /// assert!(thread.join().unwrap());
    /// ```
    pub fn owned_handle(self: &std::sync::Arc<Self>) -> Reader<SetVersion<T, S>> {
        self.handle()
    }

    /// What has been done so far.
    ///
    /// ```
    /// let set = quintet::TwinSet::new();
    /// set.insert("eve");
    /// set.insert("mallory");
    /// assert_eq!(set.stats().published, 2);
    /// ```
    pub fn stats(&self) -> TwinStats {
        self.desk.stats()
    }

    /// Bytes that both copies, the log of changes, and what waits to be freed held at the last
    /// write.
    ///
    /// ```
    /// let numbers = quintet::TwinSet::<u64>::new();
    /// numbers.insert_many(0..1000);
    /// assert!(numbers.memory_bytes() >= 1000 * 8);
    /// ```
    pub fn memory_bytes(&self) -> usize {
        self.desk.memory_bytes()
    }

    /// The version that readers see. It counts the publishes.
    ///
    /// ```
    /// let set = quintet::TwinSet::new();
    /// let before = set.version();
    /// set.insert("eve");
    /// assert_eq!(set.version(), before + 1);
    /// ```
    pub fn version(&self) -> u64 {
        self.look().map_or(0, |version| version.version())
    }

    #[inline(always)]
    fn look(&self) -> Option<ReadGuard<'_, SetVersion<T, S>>> {
        self.desk.look()
    }
}

/// What a set and its handles read, as `reads` of maps.
macro_rules! reads {
    () => {
        /// The stored element that equals this one. The [`Ref`] is a guard: it holds back the copy
        /// that it shows.
        ///
        /// ```
        /// let set = quintet::TwinSet::from(["eve".to_string()]);
        /// assert_eq!(set.get("eve").unwrap().as_str(), "eve");
        /// assert!(set.get("ada").is_none());
        /// ```
        #[inline]
        pub fn get<Q: Hash + Equivalent<T> + ?Sized>(&self, element: &Q) -> Option<Ref<'_, T>> {
            ReadGuard::filter_map(self.look()?, |version| version.get(element)).ok()
        }

        /// True if the element is there.
        ///
        /// ```
        /// let set = quintet::TwinSet::from(["eve".to_string()]);
        /// assert!(set.contains("eve") && !set.contains("ada"));
        /// ```
        #[inline]
        pub fn contains<Q: Hash + Equivalent<T> + ?Sized>(&self, element: &Q) -> bool {
            self.look().is_some_and(|version| version.contains(element))
        }

        counts!("elements");

        /// All elements of the current version, in no particular order. The iterator and each
        /// [`Ref`] are guards.
        ///
        /// ```
        /// let set = quintet::TwinSet::from(["eve", "mallory"]);
        /// assert_eq!(set.iter().map(|name| name.len()).sum::<usize>(), 10);
        /// ```
        pub fn iter(&self) -> Refs<'_, (T, ()), T> {
            refs(self.look(), |version| &version.0, |(element, ())| element)
        }
    };
}

impl<T: Hash + Eq + Clone, S: BuildHasher + Clone> TwinSet<T, S> {
    reads!();
}

impl<T, S: BuildHasher> Reader<SetVersion<T, S>> {
    #[inline(always)]
    #[allow(clippy::unnecessary_wraps)] // a handle always sees something
    fn look(&self) -> Option<ReadGuard<'_, SetVersion<T, S>>> {
        Some(self.pin())
    }

    reads!();
}

/// Writes. Each publishes before it returns, as those of [`TwinMap`](super::TwinMap).
impl<T: Hash + Eq + Clone, S: BuildHasher + Clone> TwinSet<T, S> {
    batches!(
        SetWriteGuard<T, S>,
        "let set = quintet::TwinSet::new();",
        "set.batch_async(|write| write.insert(\"a\")).await?;"
    );

    /// Adds an element; true if it was absent. An equal element that is there already stays.
    ///
    /// ```
    /// let set = quintet::TwinSet::new();
    /// assert!(set.insert("eve"));
    /// assert!(!set.insert("eve")); // it is there
    /// ```
    pub fn insert(&self, element: T) -> bool {
        self.batch(|write| write.insert(element))
    }

    /// Takes out an element; true if it was there.
    ///
    /// ```
    /// let set = quintet::TwinSet::from(["eve"]);
    /// assert!(set.remove("eve"));
    /// assert!(!set.remove("eve"));
    /// ```
    pub fn remove<Q: Hash + Equivalent<T> + ?Sized>(&self, element: &Q) -> bool {
        self.desk.get().is_some() && self.batch(|write| write.remove(element))
    }

    /// Takes out what the closure refuses, in one version; as
    /// [`TwinMap::retain`](super::TwinMap::retain).
    ///
    /// ```
    /// let set = quintet::TwinSet::from(["eve", "mallory"]);
    /// set.retain(|name| name.len() > 3);
    /// assert!(set.contains("mallory") && set.len() == 1);
    /// ```
    pub fn retain(&self, mut keep: impl FnMut(&T) -> bool) {
        retain(&self.desk, |set| &set.0, |set| &mut set.0, |element, ()| keep(element));
    }

    /// Takes out everything; keeps the memory.
    ///
    /// ```
    /// let set = quintet::TwinSet::from(["eve", "mallory"]);
    /// set.clear();
    /// assert!(set.is_empty());
    /// ```
    pub fn clear(&self) {
        if self.desk.get().is_some() {
            self.batch(|write| write.clear());
        }
    }

    /// Adds many, in one version; returns how many were new. The iterator runs before the lock is
    /// taken.
    ///
    /// ```
    /// let set = quintet::TwinSet::from(["eve"]);
    /// assert_eq!(set.insert_many(["eve", "mallory"]), 1);
    /// ```
    pub fn insert_many(&self, elements: impl IntoIterator<Item = T>) -> usize {
        let elements: Vec<_> = elements.into_iter().collect();
        self.batch(|write| write.insert_many(elements))
    }

    /// Takes out many, in one version; returns how many were there. The iterator runs before the
    /// lock is taken.
    ///
    /// ```
    /// let set = quintet::TwinSet::from(["eve", "mallory"]);
    /// assert_eq!(set.remove_many(["eve", "ada"]), 1);
    /// assert_eq!(set.len(), 1);
    /// ```
    pub fn remove_many<'q, Q>(&self, elements: impl IntoIterator<Item = &'q Q>) -> usize
    where
        Q: Hash + Equivalent<T> + ?Sized + 'q,
    {
        let elements: Vec<_> = elements.into_iter().collect();
        self.batch(|write| write.remove_many(elements))
    }

    /// Puts this content in the place of all that is there, in one version. The iterator runs
    /// before the lock is taken.
    ///
    /// ```
    /// let set = quintet::TwinSet::from(["eve", "mallory"]);
    /// set.replace_all(["trudy"]);
    /// assert!(set.contains("trudy") && set.len() == 1);
    /// ```
    pub fn replace_all(&self, content: impl IntoIterator<Item = T>) {
        let content: Vec<_> = content.into_iter().collect();
        self.batch(|write| write.replace_all(content));
    }

    /// Makes room for so many more elements, in both copies.
    ///
    /// ```
    /// let set = quintet::TwinSet::from(["eve"]);
    /// set.reserve(1000);
    /// assert!(set.capacity() >= 1001);
    /// ```
    ///
    /// # Panics
    /// If there is no memory for it; [`try_reserve`](Self::try_reserve) returns that as a value.
    pub fn reserve(&self, more: usize) {
        self.batch(|write| write.reserve(more));
    }

    /// Makes room for so many more elements.
    ///
    /// ```
    /// let set = quintet::TwinSet::from(["eve"]);
    /// set.try_reserve(1000)?;
    /// assert!(set.capacity() >= 1001);
    /// # Ok::<(), quintet::AllocError>(())
    /// ```
    pub fn try_reserve(&self, more: usize) -> Result<(), AllocError> {
        self.batch(|write| write.try_reserve(more))
    }

    /// Gives back memory that the elements do not need, in both copies.
    ///
    /// ```
    /// let numbers: quintet::TwinSet<u64> = (0..10_000).collect();
    /// numbers.retain(|n| *n < 10);
    /// let before = numbers.capacity();
    /// numbers.shrink_to_fit();
    /// assert!(numbers.capacity() < before && numbers.len() == 10);
    /// ```
    pub fn shrink_to_fit(&self) {
        if self.desk.get().is_some() {
            self.batch(|write| write.shrink_to_fit());
        }
    }
}

impl<T: Hash + Eq + Clone, S: BuildHasher + Clone + Default> Default for TwinSet<T, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

/// A set of its own with the same content.
impl<T: Hash + Eq + Clone, S: BuildHasher + Clone> Clone for TwinSet<T, S> {
    fn clone(&self) -> Self {
        match self.desk.look() {
            Some(version) => Self::over(version.clone(), self.desk.options),
            None => Self::blank(self.desk.blank.clone(), self.desk.options),
        }
    }
}

impl<T: Hash + Eq + Clone + fmt::Debug, S: BuildHasher + Clone> fmt::Debug for TwinSet<T, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.desk.look() {
            Some(version) => version.fmt(out),
            None => self.desk.blank.fmt(out),
        }
    }
}

/// Compares one version of each.
impl<T: Hash + Eq + Clone, S: BuildHasher + Clone> PartialEq for TwinSet<T, S> {
    fn eq(&self, other: &Self) -> bool {
        match (self.desk.look(), other.desk.look()) {
            (Some(own), Some(other)) => *own == *other,
            (own, other) => own.or(other).is_none_or(|version| version.is_empty()),
        }
    }
}

impl<T: Hash + Eq + Clone, S: BuildHasher + Clone> Eq for TwinSet<T, S> {}

impl<T: Hash + Eq + Clone, S: BuildHasher + Clone + Default> FromIterator<T> for TwinSet<T, S> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Self::over(elements.into_iter().collect(), Options::DEFAULT)
    }
}

impl<T: Hash + Eq + Clone, const N: usize> From<[T; N]> for TwinSet<T> {
    fn from(elements: [T; N]) -> Self {
        elements.into_iter().collect()
    }
}

/// The content; the hasher is the set's own.
impl<T: Hash + Eq + Clone, H> From<HashSet<T, H>> for TwinSet<T> {
    fn from(elements: HashSet<T, H>) -> Self {
        elements.into_iter().collect()
    }
}

/// In one version, as [`TwinSet::insert_many`].
impl<T: Hash + Eq + Clone, S: BuildHasher + Clone> Extend<T> for TwinSet<T, S> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        self.insert_many(elements);
    }
}

/// In one version, as [`TwinSet::insert_many`].
impl<T: Hash + Eq + Clone, S: BuildHasher + Clone> Extend<T> for &TwinSet<T, S> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        self.insert_many(elements);
    }
}

impl<'a, T: Hash + Eq + Clone, S: BuildHasher + Clone> IntoIterator for &'a TwinSet<T, S> {
    type Item = Ref<'a, T>;
    type IntoIter = Refs<'a, (T, ()), T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The elements of the current version; clones of them if a reader or an owned guard is left that
/// may look at it still.
impl<T: Hash + Eq + Clone, S: BuildHasher + Clone> IntoIterator for TwinSet<T, S> {
    type Item = T;
    type IntoIter = SetIntoIter<T>;

    fn into_iter(self) -> SetIntoIter<T> {
        self.desk.into_twin().into_readable().into_iter()
    }
}

impl<'g, T, S> IntoIterator for &'g ReadGuard<'_, SetVersion<T, S>> {
    type Item = &'g T;
    type IntoIter = SetIter<'g, T>;

    fn into_iter(self) -> SetIter<'g, T> {
        self.iter()
    }
}
