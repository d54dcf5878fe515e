//! What the only owner may do: change values in place. Nobody else has the map, a handle of it or a
//! reference into it, so that no lock is taken and nothing is copied.
//!
//! **Y1.** `&mut` of a map means that no guard, handle, [`Ref`](super::Ref) or walk of it is alive:
//! they borrow it, or own a share of it.
//! **Y2.** A key has one entry, and each entry one box: two references that are lent lead to
//! different boxes.
//! **Y3.** References are made of the set's own pointers, never of shared references to what they
//! lead to.

use super::pair::{Key, Pair, Value};
use super::{Equivalent, HashMap};
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// # As the only owner
impl<K: Key, V: Value, S: BuildHasher> HashMap<K, V, S> {
    /// The value of `key`, to be changed in place.
    ///
    /// ```
    /// let mut counts = quintet::HashMap::from([("apple", 1)]);
    /// *counts.get_mut("apple").unwrap() += 1; // nobody else can look: it is borrowed mutably
    /// assert_eq!(counts.get_cloned("apple"), Some(2));
    /// ```
    pub fn get_mut<Q: ?Sized + Hash + Equivalent<K>>(&mut self, key: &Q) -> Option<&mut V> {
        let raw = self.pairs.pin().find_key(key).cast::<Pair<K, V>>();
        // SAFETY: null, or an entry of the set, which nobody else can look at while the map is
        // borrowed (Y1, Y3).
        unsafe { raw.as_mut() }.map(|pair| &mut pair.value)
    }

    /// All entries, their values to be changed in place.
    ///
    /// ```
    /// let mut ages = quintet::HashMap::from([("ada", 36), ("bob", 40)]);
    /// for (_, age) in ages.iter_mut() {
    ///     *age += 1;
    /// }
    /// assert_eq!(ages.values_mut().map(|age| *age).sum::<i32>(), 78);
    /// ```
    ///
    /// # Panics
    /// If a migration is under way, its new table turned out too small, and memory for another
    /// cannot be had.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        let mut pairs = Vec::with_capacity(self.len());
        let pin = self.pairs.pin();
        let mut walk = pin.iter_exact();
        while let Some(pair) = walk.next_raw() {
            pairs.push(pair);
        }
        IterMut { pairs: pairs.into_iter(), borrowed: PhantomData }
    }

    /// All values, to be changed in place.
    pub fn values_mut(&mut self) -> ValuesMut<'_, K, V> {
        ValuesMut(self.iter_mut())
    }
}

/// The iterator of [`HashMap::iter_mut`].
pub struct IterMut<'a, K, V> {
    pairs: std::vec::IntoIter<NonNull<Pair<K, V>>>,
    borrowed: PhantomData<&'a mut Pair<K, V>>,
}

/// The iterator of [`HashMap::values_mut`].
pub struct ValuesMut<'a, K, V>(IterMut<'a, K, V>);

// SAFETY: it lends what `&mut [Pair<K, V>]` would, and keys may be looked at by both threads.
unsafe impl<K: Send + Sync, V: Send> Send for IterMut<'_, K, V> {}
// SAFETY: shared, it lends nothing.
unsafe impl<K: Sync, V: Sync> Sync for IterMut<'_, K, V> {}

impl<'a, K, V> Iterator for IterMut<'a, K, V> {
    type Item = (&'a K, &'a mut V);

    fn next(&mut self) -> Option<(&'a K, &'a mut V)> {
        let pair = self.pairs.next()?.as_ptr();
        // SAFETY: an entry of a map that is borrowed mutably (Y1), and of no other item of this
        // walk (Y2).
        let pair = unsafe { &mut *pair };
        Some((&pair.key, &mut pair.value))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.pairs.size_hint()
    }
}

impl<'a, K, V> Iterator for ValuesMut<'a, K, V> {
    type Item = &'a mut V;

    fn next(&mut self) -> Option<&'a mut V> {
        self.0.next().map(|(_, value)| value)
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K, V> ExactSizeIterator for IterMut<'_, K, V> {}
impl<K, V> ExactSizeIterator for ValuesMut<'_, K, V> {}
impl<K, V> FusedIterator for IterMut<'_, K, V> {}
impl<K, V> FusedIterator for ValuesMut<'_, K, V> {}

impl<K, V> fmt::Debug for IterMut<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterMut").field("left", &self.len()).finish_non_exhaustive()
    }
}

impl<K, V> fmt::Debug for ValuesMut<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValuesMut").field("left", &self.len()).finish_non_exhaustive()
    }
}

impl<'a, K: Key, V: Value, S: BuildHasher> IntoIterator for &'a mut HashMap<K, V, S> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> IterMut<'a, K, V> {
        self.iter_mut()
    }
}
