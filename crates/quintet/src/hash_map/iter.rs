//! Walking over a map that changes: the walks of the set below, as keys and values.

use super::inside::{Inner, Inside};
use super::lend::{Lent, Ref, Show};
use super::pair::{Key, Pair, Value};
use super::{Handle, HashMap};
use crate::hasher::DefaultHashBuilder;
use crate::item_set::{self, MappedRef};
use crate::reclaim::Hold;
use std::fmt;
use std::hash::BuildHasher;
use std::iter::FusedIterator;

/// The iterator of [`Inside::iter`] and [`Inside::iter_exact`].
pub struct Iter<'h, K: Key + 'h, V: Value + 'h>(pub(super) item_set::Iter<'h, Box<Pair<K, V>>>);

/// The iterator of [`Inside::keys`].
pub struct Keys<'h, K: Key + 'h, V: Value + 'h>(pub(super) Iter<'h, K, V>);

/// The iterator of [`Inside::values`].
pub struct Values<'h, K: Key + 'h, V: Value + 'h>(pub(super) Iter<'h, K, V>);

/// The iterator of [`HashMap::iter`] and [`HashMap::iter_exact`]: each entry is kept by a section
/// of its own, and the walk by another.
pub struct Refs<'a, K: Key + 'a, V: Value + 'a>(pub(super) item_set::Refs<'a, Box<Pair<K, V>>>);

/// The iterator of [`HashMap::keys`].
pub struct KeyRefs<'a, K: Key + 'a, V: Value + 'a>(pub(super) Refs<'a, K, V>);

/// The iterator of [`HashMap::values`].
pub struct ValueRefs<'a, K: Key + 'a, V: Value + 'a>(pub(super) Refs<'a, K, V>);

/// The iterator of [`Inside::drain`]. What it has not come to when it is dropped is taken out then.
#[allow(clippy::type_complexity)] // a walk, and the access it writes by
pub struct Drain<'h, K: Key + 'h, V: Value + 'h, S, A>(
    pub(super) item_set::Drain<'h, Box<Pair<K, V>>, Inner<'h, K, V, S, A>>,
);

/// The iterator of [`HashMap::drain`]. What it has not come to when it is dropped is taken out
/// then.
pub struct DrainRefs<'a, K: Key + 'a, V: Value + 'a, S: BuildHasher = DefaultHashBuilder>(
    pub(super) item_set::DrainRefs<'a, Box<Pair<K, V>>, S>,
);

/// The iterator of [`Inside::extract_if`]. What it has not come to stays.
pub struct ExtractIf<'h, K: Key + 'h, V: Value + 'h, S, A, F> {
    pub(super) pairs: item_set::Iter<'h, Box<Pair<K, V>>>,
    pub(super) inner: &'h Inner<'h, K, V, S, A>,
    pub(super) pick: F,
}

/// The iterator of [`HashMap::extract_if`]. What it has not come to stays.
pub struct ExtractRefs<'a, K: Key + 'a, V: Value + 'a, S, F> {
    pub(super) pairs: item_set::Refs<'a, Box<Pair<K, V>>>,
    /// Another section of the same seat, to write by.
    pub(super) pin: item_set::Pin<'a, Box<Pair<K, V>>, S>,
    pub(super) pick: F,
}

/// What a map held: the iterator of a map that is consumed.
pub struct IntoIter<K, V>(item_set::IntoIter<Box<Pair<K, V>>>);

/// The keys that a map held: from [`HashMap::into_keys`].
pub struct IntoKeys<K, V>(IntoIter<K, V>);

/// The values that a map held: from [`HashMap::into_values`].
pub struct IntoValues<K, V>(IntoIter<K, V>);

/// An iterator over another one.
macro_rules! iterator {
    (
        $name:ident<$($life:lifetime,)? $($param:ident),*> => $item:ty; |$own:ident| $next:expr
    ) => {
        impl<$($life,)? $($param),*> Iterator for $name<$($life,)? $($param),*>
        where
            K: Key,
            V: Value,
        {
            type Item = $item;

            fn next(&mut self) -> Option<$item> {
                let $own = self;
                $next
            }
        }
    };
}

iterator!(Iter<'h, K, V> => (&'h K, &'h V);
    |own| own.0.next().map(|pair| (&pair.key, &pair.value)));
iterator!(Keys<'h, K, V> => &'h K; |own| own.0.next().map(|(key, _)| key));
iterator!(Values<'h, K, V> => &'h V; |own| own.0.next().map(|(_, value)| value));
iterator!(Refs<'a, K, V> => Ref<'a, K, V>; |own| own.0.next().show());
iterator!(KeyRefs<'a, K, V> => MappedRef<'a, K>; |own| own.0.next().map(Ref::into_key));
iterator!(ValueRefs<'a, K, V> => MappedRef<'a, V>;
    |own| own.0.next().map(|entry| Ref::map(entry, |value| value)));

impl<'h, K: Key, V: Value, S, A> Iterator for Drain<'h, K, V, S, A> {
    type Item = (&'h K, &'h V);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|pair| (&pair.key, &pair.value))
    }
}

impl<'a, K: Key, V: Value, S: BuildHasher> Iterator for DrainRefs<'a, K, V, S> {
    type Item = Ref<'a, K, V>;

    fn next(&mut self) -> Option<Ref<'a, K, V>> {
        self.0.next().show()
    }
}

impl<'h, K, V, S, A, F> Iterator for ExtractIf<'h, K, V, S, A, F>
where
    K: Key,
    V: Value,
    S: BuildHasher,
    A: Hold,
    F: FnMut(&K, &V) -> bool,
{
    type Item = (&'h K, &'h V);

    fn next(&mut self) -> Option<Self::Item> {
        let (inner, pick) = (self.inner, &mut self.pick);
        let picked = |pair: &&Pair<K, V>| pick(&pair.key, &pair.value) && inner.take_seen(pair);
        self.pairs.find(picked).map(|pair| (&pair.key, &pair.value))
    }
}

impl<'a, K, V, S, F> Iterator for ExtractRefs<'a, K, V, S, F>
where
    K: Key,
    V: Value,
    S: BuildHasher,
    F: FnMut(&K, &V) -> bool,
{
    type Item = Ref<'a, K, V>;

    fn next(&mut self) -> Option<Ref<'a, K, V>> {
        let (pin, pick) = (&self.pin, &mut self.pick);
        let picked = |pair: &Lent<'_, K, V>| pick(&pair.key, &pair.value) && pin.take_seen(pair);
        self.pairs.find(picked).show()
    }
}

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.0.next().map(|pair| (pair.key, pair.value))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K, V> Iterator for IntoKeys<K, V> {
    type Item = K;

    fn next(&mut self) -> Option<K> {
        self.0.next().map(|(key, _)| key)
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K, V> Iterator for IntoValues<K, V> {
    type Item = V;

    fn next(&mut self) -> Option<V> {
        self.0.next().map(|(_, value)| value)
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K, V> ExactSizeIterator for IntoIter<K, V> {}
impl<K, V> ExactSizeIterator for IntoKeys<K, V> {}
impl<K, V> ExactSizeIterator for IntoValues<K, V> {}
impl<K, V> FusedIterator for IntoIter<K, V> {}
impl<K, V> FusedIterator for IntoKeys<K, V> {}
impl<K, V> FusedIterator for IntoValues<K, V> {}
impl<K: Key, V: Value> FusedIterator for Iter<'_, K, V> {}
impl<K: Key, V: Value> FusedIterator for Keys<'_, K, V> {}
impl<K: Key, V: Value> FusedIterator for Values<'_, K, V> {}
impl<K: Key, V: Value> FusedIterator for Refs<'_, K, V> {}
impl<K: Key, V: Value> FusedIterator for KeyRefs<'_, K, V> {}
impl<K: Key, V: Value> FusedIterator for ValueRefs<'_, K, V> {}

/// Walks say no more than what they are.
macro_rules! debug {
    ($($name:ident<$($param:tt),*> $(where [$($bound:tt)*])?;)*) => {$(
        impl<K, V, $($($bound)*)?> fmt::Debug for $name<$($param),*>
        where
            K: Key,
            V: Value,
        {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

debug! {
    Iter<'_, K, V>;
    Keys<'_, K, V>;
    Values<'_, K, V>;
    Refs<'_, K, V>;
    KeyRefs<'_, K, V>;
    ValueRefs<'_, K, V>;
    Drain<'_, K, V, S, A> where [S, A];
    DrainRefs<'_, K, V, S> where [S: BuildHasher];
    ExtractIf<'_, K, V, S, A, F> where [S, A, F];
    ExtractRefs<'_, K, V, S, F> where [S, F];
    IntoIter<K, V>;
    IntoKeys<K, V>;
    IntoValues<K, V>;
}

impl<K: Key, V: Value, S> HashMap<K, V, S> {
    /// The keys, and an end of the map.
    pub fn into_keys(self) -> IntoKeys<K, V> {
        IntoKeys(self.into_iter())
    }

    /// The values, and an end of the map.
    pub fn into_values(self) -> IntoValues<K, V> {
        IntoValues(self.into_iter())
    }
}

impl<K: Key, V: Value, S> IntoIterator for HashMap<K, V, S> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        IntoIter(self.pairs.into_iter())
    }
}

impl<'h, K: Key, V: Value, S: BuildHasher, A: Hold> IntoIterator for &'h Inside<'_, K, V, S, A> {
    type Item = (&'h K, &'h V);
    type IntoIter = Iter<'h, K, V>;

    fn into_iter(self) -> Iter<'h, K, V> {
        self.iter()
    }
}

impl<'a, K: Key, V: Value, S: BuildHasher> IntoIterator for &'a HashMap<K, V, S> {
    type Item = Ref<'a, K, V>;
    type IntoIter = Refs<'a, K, V>;

    fn into_iter(self) -> Refs<'a, K, V> {
        self.iter()
    }
}

impl<'a, K: Key, V: Value, S: BuildHasher> IntoIterator for &'a Handle<'_, K, V, S> {
    type Item = Ref<'a, K, V>;
    type IntoIter = Refs<'a, K, V>;

    fn into_iter(self) -> Refs<'a, K, V> {
        self.iter()
    }
}
