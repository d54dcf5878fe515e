//! A set of elements of any type: the keys of a map.

mod algebra;
mod ways;

pub use ways::{SetHandle, SetInside, SetPin, SetQuietHandle};

use super::HashMap;
use super::builder::HashMapBuilder;
use super::iter::{IntoKeys, KeyRefs};
use super::pair::Key;
use crate::hasher::DefaultHashBuilder;
use crate::item_set::{ItemSet, MappedRef};
use crate::region::{AllocError, Pages};
use crate::sync::const_where_possible;
use crate::vocabulary::Fallible;
use std::collections;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;

/// A concurrent set of elements of any type.
///
/// # When to use
///
/// For what threads share and ask for by itself: names in use, connections, ids. Where nothing is
/// ever removed, [`SeenSet`](crate::SeenSet) is smaller and gives ids; where elements carry more
/// than their key, [`ItemSet`](crate::ItemSet) tells the two apart.
///
/// # Example
///
/// ```
/// use quintet::HashSet;
///
/// let online = HashSet::<String>::new();
/// std::thread::scope(|scope| {
///     for name in ["ada", "bob", "ada"] {
///         let online = &online;
///         scope.spawn(move || online.insert(name.to_string()));
///     }
/// });
/// assert_eq!(online.len(), 2);
/// let ada = online.get("ada").unwrap(); // no lock: holding it blocks nobody
/// assert!(online.remove("ada") && !online.contains("ada"));
/// assert_eq!(*ada, "ada");
///
/// let invited = HashSet::from(["bob".to_string(), "eve".to_string()]);
/// assert_eq!(&online & &invited, HashSet::from(["bob".to_string()]));
/// ```
///
/// # Ways in
///
/// Those of a [`HashMap`]: the set itself, [`pin`](Self::pin), [`handle`](Self::handle),
/// [`quiet_handle`](Self::quiet_handle).
///
/// # Consistency
///
/// Every operation on one element is linearizable. `len`, `is_empty`, comparisons and set algebra
/// are exact when nobody writes. [`insert`](Self::insert) of an element that is there keeps that
/// one, as std does; [`replace`](Self::replace) keeps the new one.
///
/// # Progress
///
/// Readers never wait. A writer waits for writers of the same shard, never for user code. Holding a
/// reference blocks nobody.
///
/// # Growth
///
/// As a [`HashMap`]: spread over the writes.
///
/// # Memory
///
/// Per element a box, and 27 to 54 bytes besides. Churn at constant size keeps memory flat, and
/// removing gives it back.
///
/// # Panics
///
/// As a [`HashMap`]: a panic of user code leaves the set as it was; a write to a `HashMap`,
/// `HashSet` or `ItemSet` from inside of `Eq` panics with advice.
#[doc(alias = "DashSet")]
#[repr(transparent)]
pub struct HashSet<T: Key, S = DefaultHashBuilder> {
    map: HashMap<T, (), S>,
}

impl<T: Key> HashSet<T> {
    const_where_possible! {
        /// An empty set. Allocates nothing until it is first used.
        pub fn new() -> Self {
            Self { map: HashMap::new() }
        }
    }

    /// An empty set with room for `elements` before it grows.
    ///
    /// # Panics
    /// If the memory cannot be had.
    pub fn with_capacity(elements: usize) -> Self {
        Self { map: HashMap::with_capacity(elements) }
    }

    /// Sets up a set.
    pub fn builder() -> HashSetBuilder<T> {
        HashSetBuilder(HashMap::builder())
    }
}

impl<T: Key, S> HashSet<T, S> {
    const_where_possible! {
        /// An empty set with a hasher of one's own. One without a random key lets those who choose
        /// the elements make them collide.
        pub fn with_hasher(hasher: S) -> Self {
            Self { map: HashMap::over(ItemSet::with_hasher(hasher)) }
        }
    }

    /// An empty set with room for `elements` before it grows, and a hasher of one's own.
    ///
    /// # Panics
    /// If the memory cannot be had.
    pub fn with_capacity_and_hasher(elements: usize, hasher: S) -> Self
    where
        S: BuildHasher,
    {
        Self { map: HashMap::with_capacity_and_hasher(elements, hasher) }
    }

    /// The hasher.
    pub fn hasher(&self) -> &S {
        self.map.hasher()
    }

    /// The map whose keys are the elements, shared.
    fn share(self: &Arc<Self>) -> Arc<HashMap<T, (), S>> {
        let map = Arc::into_raw(Arc::clone(self)).cast::<HashMap<T, (), S>>();
        // SAFETY: of an `Arc` of a type that is transparent over this one, and the count that was
        // just added.
        unsafe { Arc::from_raw(map) }
    }

    /// A guard on the calling thread's own seat: for several operations in a row, and for plain
    /// references.
    #[inline]
    pub fn pin(&self) -> SetPin<'_, T, S> {
        SetInside(self.map.pin())
    }

    /// A seat of one's own, outside between operations: for a hot loop, or a thread that stays.
    pub fn handle(&self) -> SetHandle<'_, T, S> {
        SetHandle(self.map.handle())
    }

    /// A [`handle`](Self::handle) that keeps the set alive: for tasks, and threads that are not
    /// scoped.
    pub fn owned_handle(self: &Arc<Self>) -> SetHandle<'static, T, S> {
        SetHandle(self.share().owned_handle())
    }

    /// A seat of one's own that is inside except at its quiet points: the fastest way to work on
    /// the set, for who says when it holds nothing.
    pub fn quiet_handle(&self) -> SetQuietHandle<'_, T, S> {
        SetInside(self.map.quiet_handle())
    }

    /// A [`quiet_handle`](Self::quiet_handle) that keeps the set alive. It is `Send`, and may be
    /// held across an `.await`, with what it lends.
    pub fn owned_quiet_handle(self: &Arc<Self>) -> SetQuietHandle<'static, T, S> {
        SetInside(self.share().owned_quiet_handle())
    }

    /// The same operations, with an [`AllocError`] where they would panic.
    pub fn fallible(&self) -> Fallible<'_, Self> {
        Fallible(self)
    }

    /// Frees what the calling thread has taken out, as [`HashMap::flush`] does.
    pub fn flush(&self) {
        self.map.flush();
    }
}

/// Sets up a [`HashSet`].
///
/// ```
/// let set = quintet::HashSet::builder().capacity(10_000).shards(64).build();
/// assert!(set.insert("apple"));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct HashSetBuilder<T, S = DefaultHashBuilder>(HashMapBuilder<T, (), S>);

impl<T: Key, S> HashSetBuilder<T, S> {
    /// [`HashMapBuilder::capacity`].
    pub fn capacity(self, elements: usize) -> Self {
        Self(self.0.capacity(elements))
    }

    /// [`HashMapBuilder::max_load`].
    pub fn max_load(self, ratio: f64) -> Self {
        Self(self.0.max_load(ratio))
    }

    /// [`HashMapBuilder::shards`].
    pub fn shards(self, count: usize) -> Self {
        Self(self.0.shards(count))
    }

    /// [`HashMapBuilder::pages`].
    pub fn pages(self, pages: Pages) -> Self {
        Self(self.0.pages(pages))
    }

    /// [`HashMapBuilder::hasher`].
    pub fn hasher<H>(self, hasher: H) -> HashSetBuilder<T, H> {
        HashSetBuilder(self.0.hasher(hasher))
    }

    /// [`HashMapBuilder::seed`].
    pub fn seed(self, seed: u64) -> HashSetBuilder<T, foldhash::fast::FixedState> {
        HashSetBuilder(self.0.seed(seed))
    }

    /// [`HashMapBuilder::build`].
    ///
    /// # Panics
    /// If the memory for the capacity cannot be had.
    pub fn build(self) -> HashSet<T, S>
    where
        S: BuildHasher,
    {
        HashSet { map: self.0.build() }
    }

    /// [`HashMapBuilder::try_build`].
    pub fn try_build(self) -> Result<HashSet<T, S>, AllocError>
    where
        S: BuildHasher,
    {
        self.0.try_build().map(|map| HashSet { map })
    }
}

impl<T: Key, S: Default> Default for HashSet<T, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<T: Key, S: BuildHasher + Default> FromIterator<T> for HashSet<T, S> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Self { map: elements.into_iter().map(|element| (element, ())).collect() }
    }
}

impl<T: Key, const N: usize> From<[T; N]> for HashSet<T, DefaultHashBuilder> {
    fn from(elements: [T; N]) -> Self {
        elements.into_iter().collect()
    }
}

/// With a hasher of its own.
impl<T: Key, S: BuildHasher + Default, R> From<collections::HashSet<T, R>> for HashSet<T, S> {
    fn from(elements: collections::HashSet<T, R>) -> Self {
        elements.into_iter().collect()
    }
}

/// With a hasher of its own.
impl<T: Key, S, R: BuildHasher + Default> From<HashSet<T, S>> for collections::HashSet<T, R> {
    fn from(set: HashSet<T, S>) -> Self {
        set.into_iter().collect()
    }
}

impl<T: Key, S: BuildHasher> Extend<T> for &HashSet<T, S> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        (&self.map).extend(elements.into_iter().map(|element| (element, ())));
    }
}

impl<T: Key, S: BuildHasher> Extend<T> for HashSet<T, S> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        (&*self).extend(elements);
    }
}

impl<'e, T: Key + Copy, S: BuildHasher> Extend<&'e T> for HashSet<T, S> {
    fn extend<I: IntoIterator<Item = &'e T>>(&mut self, elements: I) {
        (&*self).extend(elements.into_iter().copied());
    }
}

/// A set of its own, with the settings of this one, and copies of what is there during the walk.
impl<T: Key + Clone, S: BuildHasher + Clone> Clone for HashSet<T, S> {
    fn clone(&self) -> Self {
        Self { map: self.map.clone() }
    }
}

/// Whether both hold equal elements. Exact when nobody writes.
impl<T: Key, S: BuildHasher, R: BuildHasher> PartialEq<HashSet<T, R>> for HashSet<T, S> {
    fn eq(&self, other: &HashSet<T, R>) -> bool {
        self.map == other.map
    }
}

impl<T: Key, S: BuildHasher> Eq for HashSet<T, S> {}

/// Shows the elements, as [`iter`](HashSet::iter) sees them.
impl<T: Key + fmt::Debug, S: BuildHasher> fmt::Debug for HashSet<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(&self.pin()).finish()
    }
}

impl<T: Key, S> IntoIterator for HashSet<T, S> {
    type Item = T;
    type IntoIter = IntoKeys<T, ()>;

    fn into_iter(self) -> IntoKeys<T, ()> {
        self.map.into_keys()
    }
}

impl<'a, T: Key, S: BuildHasher> IntoIterator for &'a HashSet<T, S> {
    type Item = MappedRef<'a, T>;
    type IntoIter = KeyRefs<'a, T, ()>;

    fn into_iter(self) -> KeyRefs<'a, T, ()> {
        self.iter()
    }
}

#[cfg(feature = "serde")]
mod serde {
    use super::{HashSet, Key};
    use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
    use serde::ser::{Serialize, Serializer};
    use std::fmt;
    use std::hash::BuildHasher;
    use std::marker::PhantomData;

    impl<T: Key + Serialize, S: BuildHasher> Serialize for HashSet<T, S> {
        fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
            serializer.collect_seq(&self.pin())
        }
    }

    struct Elements<T, S>(PhantomData<(T, S)>);

    impl<'de, T, S> Visitor<'de> for Elements<T, S>
    where
        T: Key + Deserialize<'de>,
        S: BuildHasher + Default,
    {
        type Value = HashSet<T, S>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("a sequence of elements")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
            let set = HashSet::default();
            while let Some(element) = elements.next_element()? {
                set.insert(element);
            }
            Ok(set)
        }
    }

    impl<'de, T, S> Deserialize<'de> for HashSet<T, S>
    where
        T: Key + Deserialize<'de>,
        S: BuildHasher + Default,
    {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_seq(Elements(PhantomData))
        }
    }
}
