//! Access from inside a section: plain references, for as long as the access is borrowed.

use super::iter::{Drain, ExtractIf, Iter, Keys, Values};
use super::lend::{Show, exchanged, swapped};
use super::pair::{Asked, Given, Key, Pair, Pairs, Value};
use super::{Equivalent, HashMap, Retired};
use crate::hasher::DefaultHashBuilder;
use crate::home::Home;
use crate::item_set::{self, Offline};
use crate::reclaim::{self, Hold, Pinned};
use crate::region::AllocError;
use crate::vocabulary::{Compute, Computed, Fallible, Rejected};
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::ops::Deref;

/// Access to a [`HashMap`] that is inside a section: a [`Pin`] as long as it lives, a
/// [`QuietHandle`] between its quiet points.
///
/// It has the operations of the [map itself](HashMap), and lends plain references: they last as
/// long as the access is borrowed. What each operation does is told there.
pub struct Inside<'m, K: Key, V: Value, S, A> {
    pub(super) inner: Inner<'m, K, V, S, A>,
}

/// The same below.
pub(super) type Inner<'m, K, V, S, A> = item_set::Inside<A, Below<'m, K, V, S>>;

/// The set below the map of a home.
pub(super) struct Below<'m, K: Key, V: Value, S>(Home<'m, HashMap<K, V, S>>);

impl<K: Key, V: Value, S> Deref for Below<'_, K, V, S> {
    type Target = Pairs<K, V, S>;
    #[inline(always)]
    fn deref(&self) -> &Pairs<K, V, S> {
        &self.0.pairs
    }
}

/// A guard: inside on the calling thread's seat, or on that of a [`Handle`](super::Handle), for as
/// long as it lives.
pub type Pin<'m, K, V, S = DefaultHashBuilder> = Inside<'m, K, V, S, Pinned<'m>>;

/// A seat of one's own that is inside except at its quiet points, which its owner names: the
/// fastest way to work on a map.
///
/// It must come to a quiet point now and then ([`quiescent`](Self::quiescent)), where no reference
/// is left:
///
/// ```compile_fail
/// let map = quintet::HashMap::<u64, u64>::new();
/// let mut handle = map.quiet_handle();
/// let number = handle.get(&1);
/// handle.quiescent(); // `number` is still borrowed
/// assert!(number.is_none());
/// ```
///
/// Use what you found first, or copy it:
///
/// ```
/// let map = quintet::HashMap::<u64, u64>::new();
/// let mut handle = map.quiet_handle();
/// let number = handle.get(&1).copied();
/// handle.quiescent();
/// assert!(number.is_none());
/// ```
///
/// It is `Send`, and never `Sync`. It may be held across an `.await`, with what it lends.
pub type QuietHandle<'m, K, V, S = DefaultHashBuilder> = Inside<'m, K, V, S, reclaim::QuietHandle>;

impl<'m, K: Key, V: Value, S> Pin<'m, K, V, S> {
    #[inline(always)]
    pub(super) fn on(access: Pinned<'m>, map: &'m HashMap<K, V, S>) -> Self {
        Self { inner: item_set::Inside::of(access, Below(Home::borrowed(map))) }
    }

    /// Frees nothing: whoever is inside can refer to what was taken out. Flush the map, or the
    /// handle, when the guard is gone.
    pub fn flush(&self) {}
}

impl<'m, K: Key, V: Value, S> QuietHandle<'m, K, V, S> {
    pub(super) fn new(home: Home<'m, HashMap<K, V, S>>) -> Self {
        let access = home.pairs.domain().join_quiet();
        Self { inner: item_set::Inside::of(access, Below(home)) }
    }

    /// A quiet point: no reference is held, as the borrow checker has seen. What was removed before
    /// may be freed.
    #[inline]
    pub fn quiescent(&mut self) {
        self.inner.quiescent();
    }

    /// A quiet point that lasts until the guard drops: for threads that park.
    pub fn offline(&mut self) -> Offline<'_> {
        self.inner.offline()
    }

    /// A quiet point that also frees all it can, and gives back the memory of tables that were
    /// left.
    pub fn flush(&mut self) {
        self.inner.flush();
    }
}

impl<K: Key, V: Value, S, A: Hold> Inside<'_, K, V, S, A> {
    /// The map.
    #[inline(always)]
    pub fn map(&self) -> &HashMap<K, V, S> {
        &self.inner.home().0
    }

    /// The same operations, with an [`AllocError`] where they would panic.
    pub fn fallible(&self) -> Fallible<'_, Self> {
        Fallible(self)
    }
}

impl<K: Key, V: Value, S, A: Hold> fmt::Debug for Inside<'_, K, V, S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// # Looking up
impl<K: Key, V: Value, S: BuildHasher, A: Hold> Inside<'_, K, V, S, A> {
    /// [`HashMap::get`].
    #[inline(always)]
    pub fn get<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> Option<&V> {
        self.inner.get(key).show()
    }

    /// [`HashMap::get_key_value`].
    #[inline(always)]
    pub fn get_key_value<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> Option<(&K, &V)> {
        self.inner.get(key).map(|pair| (&pair.key, &pair.value))
    }

    /// [`HashMap::get_cloned`].
    #[inline]
    pub fn get_cloned<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> Option<V>
    where
        V: Clone,
    {
        self.get(key).cloned()
    }

    /// [`HashMap::with`].
    #[inline]
    pub fn with<Q, R>(&self, key: &Q, look: impl FnOnce(&V) -> R) -> Option<R>
    where
        Q: ?Sized + Hash + Equivalent<K>,
    {
        self.get(key).map(look)
    }

    /// [`HashMap::contains_key`].
    #[inline]
    pub fn contains_key<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> bool {
        self.inner.contains(key)
    }

    /// [`HashMap::get_many`]. The references are as those of [`get`](Self::get).
    pub fn get_many<'h, 'k, Q, I>(&'h self, keys: I, values: &mut [Option<&'h V>])
    where
        Q: ?Sized + Hash + Equivalent<K> + 'k,
        I: IntoIterator<Item = &'k Q, IntoIter: ExactSizeIterator + Clone>,
    {
        self.inner.find_each(keys.into_iter(), values, Show::show);
    }

    /// [`HashMap::contains_many`].
    pub fn contains_many<'k, Q, I>(&self, keys: I, found: &mut [bool])
    where
        Q: ?Sized + Hash + Equivalent<K> + 'k,
        I: IntoIterator<Item = &'k Q, IntoIter: ExactSizeIterator + Clone>,
    {
        self.inner.contains_many(keys, found);
    }

    /// [`HashMap::iter`]. Until the next quiet point, or the end of the guard, everything that is
    /// removed is held back.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter(self.inner.iter())
    }

    /// [`HashMap::iter_exact`], as [`iter`](Self::iter) in what it holds back.
    pub fn iter_exact(&self) -> Iter<'_, K, V> {
        Iter(self.inner.iter_exact())
    }

    /// [`HashMap::keys`], as [`iter`](Self::iter) in what it holds back.
    pub fn keys(&self) -> Keys<'_, K, V> {
        Keys(self.iter())
    }

    /// [`HashMap::values`], as [`iter`](Self::iter) in what it holds back.
    pub fn values(&self) -> Values<'_, K, V> {
        Values(self.iter())
    }
}

/// # Storing
impl<K: Key, V: Value, S: BuildHasher, A: Hold> Inside<'_, K, V, S, A> {
    /// [`HashMap::insert`].
    #[inline]
    pub fn insert(&self, key: K, value: V) -> Option<&V> {
        self.inner.insert(self.inner.boxed(Pair { key, value })).show()
    }

    /// [`HashMap::insert_new`].
    pub fn insert_new(&self, key: K, value: V) -> Result<(), Rejected<&V, V>> {
        expect(self.inner.add_new(key, value)).show()
    }

    /// [`HashMap::get_or_insert`].
    pub fn get_or_insert(&self, key: K, value: V) -> &V {
        expect(self.inner.get_or_make(Given::new(key), |_| value)).show()
    }

    /// [`HashMap::get_or_insert_with`].
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> &V {
        expect(self.inner.get_or_make(Given::new(key), |_| make())).show()
    }

    /// [`HashMap::update`].
    pub fn update<Q>(&self, key: &Q, update: impl FnMut(&V) -> V) -> Option<&V>
    where
        Q: ?Sized + Hash + Equivalent<K>,
        K: Clone,
    {
        expect(self.fallible().update(key, update))
    }

    /// [`HashMap::update_or_insert`].
    pub fn update_or_insert(&self, key: K, update: impl FnMut(&V) -> V, value: V) -> &V {
        expect(self.fallible().update_or_insert(key, update, value))
    }

    /// [`HashMap::update_or_insert_with`].
    pub fn update_or_insert_with(
        &self,
        key: K,
        update: impl FnMut(&V) -> V,
        make: impl FnOnce() -> V,
    ) -> &V {
        expect(self.fallible().update_or_insert_with(key, update, make))
    }

    /// [`HashMap::compute`].
    pub fn compute(&self, key: K, compute: impl FnMut(Option<&V>) -> Compute<V>) -> Computed<&V> {
        expect(self.fallible().compute(key, compute))
    }

    /// [`HashMap::compare_exchange`].
    pub fn compare_exchange<Q>(
        &self,
        key: &Q,
        current: &V,
        new: V,
    ) -> Result<&V, Rejected<Option<&V>, V>>
    where
        Q: ?Sized + Hash + Equivalent<K>,
        K: Clone,
        V: PartialEq,
    {
        expect(self.fallible().compare_exchange(key, current, new))
    }

    /// [`HashMap::swap`].
    pub fn swap<Q>(&self, key: &Q, value: V) -> Result<&V, V>
    where
        Q: ?Sized + Hash + Equivalent<K>,
        K: Clone,
    {
        expect(self.fallible().swap(key, value))
    }

    /// [`HashMap::insert_many`].
    pub fn insert_many(&self, entries: impl IntoIterator<Item = (K, V)>) -> usize {
        expect(self.fallible().insert_many(entries))
    }

    /// [`HashMap::reserve`].
    pub fn reserve(&self, additional: usize) {
        expect(self.try_reserve(additional));
    }

    /// [`HashMap::try_reserve`].
    pub fn try_reserve(&self, additional: usize) -> Result<(), AllocError> {
        self.inner.try_reserve(additional)
    }
}

/// # Taking out
impl<K: Key, V: Value, S: BuildHasher, A: Hold> Inside<'_, K, V, S, A> {
    /// [`HashMap::remove`].
    #[inline]
    pub fn remove<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> Option<&V> {
        self.inner.remove(key).show()
    }

    /// [`HashMap::remove_entry`].
    pub fn remove_entry<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> Option<(&K, &V)> {
        self.inner.remove(key).map(|pair| (&pair.key, &pair.value))
    }

    /// [`HashMap::take`]. This very guard, or the quiet handle until its next quiet point, keeps
    /// the value from being owned.
    pub fn take<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> Option<Retired<K, V>> {
        self.inner.take_out(key).map(Retired::new)
    }

    /// [`HashMap::remove_if`].
    pub fn remove_if<Q>(
        &self,
        key: &Q,
        mut condition: impl FnMut(&V) -> bool,
    ) -> Result<Option<&V>, &V>
    where
        Q: ?Sized + Hash + Equivalent<K>,
    {
        self.inner.remove_if(key, |pair| condition(&pair.value)).show()
    }

    /// [`HashMap::retain`].
    pub fn retain(&self, mut keep: impl FnMut(&K, &V) -> bool) {
        self.inner.retain(|pair| keep(&pair.key, &pair.value));
    }

    /// [`HashMap::clear`].
    pub fn clear(&self) {
        self.inner.clear();
    }

    /// [`HashMap::drain`].
    pub fn drain(&self) -> Drain<'_, K, V, S, A> {
        let inner: &Inner<'_, K, V, S, A> = &self.inner;
        Drain(inner.drain())
    }

    /// [`HashMap::extract_if`].
    pub fn extract_if<F>(&self, pick: F) -> ExtractIf<'_, K, V, S, A, F>
    where
        F: FnMut(&K, &V) -> bool,
    {
        ExtractIf { pairs: self.inner.iter_exact(), inner: &self.inner, pick }
    }

    /// [`HashMap::remove_many`].
    pub fn remove_many<'k, Q>(&self, keys: impl IntoIterator<Item = &'k Q>) -> usize
    where
        Q: ?Sized + Hash + Equivalent<K> + 'k,
    {
        self.inner.remove_many(keys)
    }

    /// [`HashMap::shrink_to_fit`].
    pub fn shrink_to_fit(&self) {
        self.inner.shrink_to_fit();
    }
}

impl<'a, K, V, S, A> Fallible<'a, Inside<'_, K, V, S, A>>
where
    K: Key,
    V: Value,
    S: BuildHasher,
    A: Hold,
{
    /// [`HashMap::insert`].
    pub fn insert(self, key: K, value: V) -> Result<Option<&'a V>, AllocError> {
        let inner = &self.0.inner;
        Ok(inner.fallible().insert(inner.boxed(Pair { key, value }))?.show())
    }

    /// [`HashMap::insert_new`].
    pub fn insert_new(
        self,
        key: K,
        value: V,
    ) -> Result<Result<(), Rejected<&'a V, V>>, AllocError> {
        Ok(self.0.inner.add_new(key, value)?.show())
    }

    /// [`HashMap::get_or_insert`].
    pub fn get_or_insert(self, key: K, value: V) -> Result<&'a V, AllocError> {
        Ok(self.0.inner.get_or_make(Given::new(key), |_| value)?.show())
    }

    /// [`HashMap::get_or_insert_with`].
    pub fn get_or_insert_with(self, key: K, make: impl FnOnce() -> V) -> Result<&'a V, AllocError> {
        Ok(self.0.inner.get_or_make(Given::new(key), |_| make())?.show())
    }

    /// [`HashMap::update`].
    pub fn update<Q>(
        self,
        key: &Q,
        mut update: impl FnMut(&V) -> V,
    ) -> Result<Option<&'a V>, AllocError>
    where
        Q: ?Sized + Hash + Equivalent<K>,
        K: Clone,
    {
        Ok(self.0.inner.revise(Asked::new(key), |value| Some(update(value)))?.show())
    }

    /// [`HashMap::update_or_insert`].
    pub fn update_or_insert(
        self,
        key: K,
        update: impl FnMut(&V) -> V,
        value: V,
    ) -> Result<&'a V, AllocError> {
        self.update_or_insert_with(key, update, || value)
    }

    /// [`HashMap::update_or_insert_with`].
    pub fn update_or_insert_with(
        self,
        key: K,
        mut update: impl FnMut(&V) -> V,
        make: impl FnOnce() -> V,
    ) -> Result<&'a V, AllocError> {
        let change = |value: &V| Some(update(value));
        Ok(self.0.inner.upsert(Given::new(key), change, |_| make())?.show())
    }

    /// [`HashMap::compute`].
    pub fn compute(
        self,
        key: K,
        mut compute: impl FnMut(Option<&V>) -> Compute<V>,
    ) -> Result<Computed<&'a V>, AllocError> {
        Ok(self.0.inner.decide(Given::new(key), |found, _| compute(found))?.show())
    }

    /// [`HashMap::compare_exchange`].
    #[allow(clippy::type_complexity)] // one shape for all tables, and an error of memory around it
    pub fn compare_exchange<Q>(
        self,
        key: &Q,
        current: &V,
        new: V,
    ) -> Result<Result<&'a V, Rejected<Option<&'a V>, V>>, AllocError>
    where
        Q: ?Sized + Hash + Equivalent<K>,
        K: Clone,
        V: PartialEq,
    {
        Ok(exchanged(self.0.inner.exchange(Asked::new(key), |value| value == current, new)?))
    }

    /// [`HashMap::swap`].
    pub fn swap<Q>(self, key: &Q, value: V) -> Result<Result<&'a V, V>, AllocError>
    where
        Q: ?Sized + Hash + Equivalent<K>,
        K: Clone,
    {
        Ok(swapped(self.0.inner.exchange(Asked::new(key), |_| true, value)?))
    }

    /// [`HashMap::insert_many`]. What came before the error is stored; the rest of its group is
    /// dropped.
    pub fn insert_many(
        self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<usize, AllocError> {
        let inner = &self.0.inner;
        let boxed = |(key, value)| inner.boxed(Pair { key, value });
        inner.fallible().insert_many(entries.into_iter().map(boxed))
    }

    /// [`HashMap::iter`].
    pub fn iter(self) -> Result<Iter<'a, K, V>, AllocError> {
        self.0.inner.fallible().iter().map(Iter)
    }
}

pub(super) fn expect<R>(result: Result<R, AllocError>) -> R {
    result.unwrap_or_else(|error| panic!("HashMap: {error}"))
}
