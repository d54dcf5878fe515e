//! What sets do with each other. All of it is exact when nobody writes; otherwise each element is
//! asked for by itself.

use super::HashSet;
use crate::hash_map::pair::Key;
use crate::item_set::MappedRef;
use std::hash::BuildHasher;
use std::ops::{BitAnd, BitOr, BitXor, Sub};

/// # Algebra
impl<T: Key, S: BuildHasher> HashSet<T, S> {
    /// Whether each element is in the other set, too.
    pub fn is_subset<R: BuildHasher>(&self, other: &HashSet<T, R>) -> bool {
        let (ours, theirs) = (self.pin(), other.pin());
        self.len() <= other.len() && ours.iter().all(|element| theirs.contains(element))
    }

    /// Whether each element of the other set is in this one, too.
    pub fn is_superset<R: BuildHasher>(&self, other: &HashSet<T, R>) -> bool {
        other.is_subset(self)
    }

    /// Whether no element is in both.
    pub fn is_disjoint<R: BuildHasher>(&self, other: &HashSet<T, R>) -> bool {
        self.intersection(other).next().is_none()
    }

    /// The elements that are in both, as this set has them.
    ///
    /// ```
    /// use quintet::HashSet;
    /// let (low, even) = (HashSet::from([1, 2, 3]), HashSet::from([2, 4]));
    /// assert!(low.intersection(&even).map(|number| *number).eq([2]));
    /// assert_eq!(low.union(&even).count(), 4);
    /// assert_eq!(low.difference(&even).count(), 2);
    /// assert_eq!(&low ^ &even, HashSet::from([1, 3, 4]));
    /// ```
    pub fn intersection<'a, R: BuildHasher>(
        &'a self,
        other: &'a HashSet<T, R>,
    ) -> impl Iterator<Item = MappedRef<'a, T>> {
        self.iter().filter(|element| other.contains(&**element))
    }

    /// The elements that are in this set and not in the other.
    pub fn difference<'a, R: BuildHasher>(
        &'a self,
        other: &'a HashSet<T, R>,
    ) -> impl Iterator<Item = MappedRef<'a, T>> {
        self.iter().filter(|element| !other.contains(&**element))
    }

    /// The elements that are in one of the two, and not in both.
    pub fn symmetric_difference<'a, R: BuildHasher>(
        &'a self,
        other: &'a HashSet<T, R>,
    ) -> impl Iterator<Item = MappedRef<'a, T>> {
        self.difference(other).chain(other.difference(self))
    }

    /// The elements that are in one of the two or in both, each once.
    pub fn union<'a, R: BuildHasher>(
        &'a self,
        other: &'a HashSet<T, R>,
    ) -> impl Iterator<Item = MappedRef<'a, T>> {
        self.iter().chain(other.difference(self))
    }
}

/// An operator: a set of its own, with clones of what the method of the same meaning shows.
macro_rules! operator {
    ($($trait:ident $name:ident $method:ident,)*) => {$(
        impl<T: Key + Clone, S: BuildHasher + Default> $trait for &HashSet<T, S> {
            type Output = HashSet<T, S>;

            fn $name(self, other: Self) -> HashSet<T, S> {
                self.$method(other).map(|element| T::clone(&element)).collect()
            }
        }
    )*};
}

operator! {
    BitAnd bitand intersection,
    BitOr bitor union,
    BitXor bitxor symmetric_difference,
    Sub sub difference,
}
