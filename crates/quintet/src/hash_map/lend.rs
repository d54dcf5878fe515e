//! What is lent by who is outside between operations: an entry, and the section that keeps it
//! (`lend` N1 to N3 of the set).

use super::pair::{Key, Pair, Value};
use crate::item_set::{self, MappedRef};
use crate::vocabulary::{Computed, Rejected};
use std::fmt;
use std::ops::Deref;

/// An entry of the set below, and the section that keeps it.
pub(super) type Lent<'a, K, V> = item_set::Ref<'a, Box<Pair<K, V>>>;

/// A value with its key, and the read section that keeps them: from the operations of a
/// [`HashMap`](crate::HashMap) and of a [`Handle`](super::Handle).
///
/// It is no lock: holding one blocks nobody, in any order. It holds back the memory of its entry,
/// and of what else was there when it was found.
///
/// ```
/// let ages = quintet::HashMap::from([("ada".to_string(), 36)]);
/// let ada = ages.get("ada").unwrap();
/// ages.insert("ada".to_string(), 37); // blocks nobody, and is not blocked
/// assert_eq!((ada.key().as_str(), *ada), ("ada", 36)); // still there for who holds it
/// ```
pub struct Ref<'a, K: Key + 'a, V: Value + 'a>(Lent<'a, K, V>);

impl<'a, K: Key, V: Value> Ref<'a, K, V> {
    /// The key of the entry.
    #[inline(always)]
    pub fn key(&self) -> &K {
        &self.0.key
    }

    /// The value.
    #[inline(always)]
    pub fn value(&self) -> &V {
        &self.0.value
    }

    /// Both.
    #[inline(always)]
    pub fn pair(&self) -> (&K, &V) {
        (&self.0.key, &self.0.value)
    }

    /// A part of the value, kept as the value is.
    ///
    /// ```
    /// use quintet::{HashMap, hash_map::Ref};
    /// let names = HashMap::from([(7, ("ada".to_string(), 36))]);
    /// let name = Ref::map(names.get(&7).unwrap(), |entry| entry.0.as_str());
    /// assert_eq!(&*name, "ada");
    /// ```
    pub fn map<T: ?Sized>(this: Self, part: impl FnOnce(&V) -> &T) -> MappedRef<'a, T> {
        item_set::Ref::map(this.0, |pair| part(&pair.value))
    }

    /// The key, kept as the value is.
    pub fn into_key(this: Self) -> MappedRef<'a, K> {
        item_set::Ref::map(this.0, |pair| &pair.key)
    }

    /// The same entry, kept by one more section. An associated function: `clone` of a `Ref` is that
    /// of its value.
    #[allow(clippy::should_implement_trait)] // as it is with `std::cell::Ref`
    pub fn clone(this: &Self) -> Self {
        Self(item_set::Ref::clone(&this.0))
    }
}

impl<K: Key, V: Value> Deref for Ref<'_, K, V> {
    type Target = V;

    #[inline(always)]
    fn deref(&self) -> &V {
        &self.0.value
    }
}

impl<K: Key, V: Value + fmt::Debug> fmt::Debug for Ref<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<K: Key, V: Value + fmt::Display> fmt::Display for Ref<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Compares the values.
impl<K: Key, V: Value + PartialEq> PartialEq for Ref<'_, K, V> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<K: Key, V: Value + Eq> Eq for Ref<'_, K, V> {}

/// An entry of the set below, as the map shows it: a [`Ref`] to who is outside, the value itself to
/// who is inside.
pub(super) trait Show {
    /// What the map shows.
    type Shown;
    fn show(self) -> Self::Shown;
}

impl<'a, K: Key, V: Value> Show for Lent<'a, K, V> {
    type Shown = Ref<'a, K, V>;
    #[inline(always)]
    fn show(self) -> Ref<'a, K, V> {
        Ref(self)
    }
}

impl<'a, K, V> Show for &'a Pair<K, V> {
    type Shown = &'a V;
    #[inline(always)]
    fn show(self) -> &'a V {
        &self.value
    }
}

impl<T: Show> Show for Option<T> {
    type Shown = Option<T::Shown>;
    #[inline(always)]
    fn show(self) -> Self::Shown {
        self.map(T::show)
    }
}

impl<T: Show> Show for Computed<T> {
    type Shown = Computed<T::Shown>;
    fn show(self) -> Self::Shown {
        Computed { before: self.before.show(), after: self.after.show() }
    }
}

/// Of `insert_new`.
impl<T: Show, K, V> Show for Result<(), Rejected<T, Box<Pair<K, V>>>> {
    type Shown = Result<(), Rejected<T::Shown, V>>;
    fn show(self) -> Self::Shown {
        self.map_err(|Rejected { current, value }| Rejected {
            current: current.show(),
            value: value.value,
        })
    }
}

/// Of `remove_if`.
impl<T: Show> Show for Result<Option<T>, T> {
    type Shown = Result<Option<T::Shown>, T::Shown>;
    fn show(self) -> Self::Shown {
        self.map(Show::show).map_err(T::show)
    }
}

/// What was stored in the place of `before`, or why not: of `compare_exchange`.
pub(super) fn exchanged<T: Show, V>(
    (done, back): (Computed<T>, Option<V>),
) -> Result<T::Shown, Rejected<Option<T::Shown>, V>> {
    match (done.before, back) {
        (Some(before), None) => Ok(before.show()),
        (current, Some(value)) => Err(Rejected { current: current.show(), value }),
        (None, None) => unreachable!("nothing is stored where nothing is"),
    }
}

/// The same where it matters only whether something was there: of `swap`.
pub(super) fn swapped<T: Show, V>(exchange: (Computed<T>, Option<V>)) -> Result<T::Shown, V> {
    exchanged(exchange).map_err(|rejected| rejected.value)
}
