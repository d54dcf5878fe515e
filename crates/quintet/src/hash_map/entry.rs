//! What is asked of one key, in several calls: recorded, and carried out by the last one.
//!
//! An [`Entry`] holds no lock and no place: until its last call nothing has happened. That call is
//! one atomic step on what is there then, so that `and_update(..).or_insert(..)` can lose nothing
//! between its halves.

use super::inside::{Inside, expect};
use super::lend::{Ref, Show};
use super::pair::{Given, Key, Made, Name, ToKey, Value};
use super::{Handle, HashMap};
use crate::reclaim::Hold;
use std::fmt;
use std::hash::BuildHasher;

/// What is asked of one key of a map: from [`HashMap::entry`] and [`HashMap::entry_ref`]. It does
/// nothing until its last call, which is one atomic step.
///
/// ```
/// let map = quintet::HashMap::<String, Vec<u32>>::new();
/// map.entry_ref("primes").or_default();
/// map.entry_ref("primes").and_modify(|list| list.push(2)).or_default();
/// map.entry_ref("primes").and_modify(|list| list.push(3)).get();
/// assert_eq!(*map.get("primes").unwrap(), [2, 3]);
/// ```
///
/// Closures run with no lock held, may use the map, and those that change a value may run more than
/// once: what the last run has made is stored.
#[must_use = "an entry does nothing until its last call: `or_insert`, `or_default`, `insert_entry`, `remove_entry`, `get`"]
pub struct Entry<W, N, U = Untouched> {
    way: W,
    name: N,
    change: U,
}

/// A way into a map, by which an [`Entry`] is carried out: the map, a handle, a guard.
pub trait Way: Copy {
    /// Of the map.
    type Key: Key;
    /// Of the map.
    type Value: Value;
    /// What it lends: a [`Ref`], or a plain reference.
    type Lent;

    #[doc(hidden)]
    fn find(self, name: impl Name<Self::Key>) -> Option<Self::Lent>;
    #[doc(hidden)]
    fn find_or_make(
        self,
        name: impl Name<Self::Key>,
        make: impl FnOnce(&Self::Key) -> Self::Value,
    ) -> Self::Lent;
    #[doc(hidden)]
    fn change(
        self,
        name: impl Name<Self::Key>,
        change: impl FnMut(&Self::Value) -> Option<Self::Value>,
    ) -> Option<Self::Lent>;
    #[doc(hidden)]
    fn change_or_make(
        self,
        name: impl Name<Self::Key>,
        change: impl FnMut(&Self::Value) -> Option<Self::Value>,
        make: impl FnOnce(&Self::Key) -> Self::Value,
    ) -> Self::Lent;
    #[doc(hidden)]
    fn put(self, name: impl Name<Self::Key>, value: Self::Value) -> Self::Lent;
    #[doc(hidden)]
    fn take_out(self, name: impl Name<Self::Key>) -> Option<Self::Lent>;
}

/// What an [`Entry`] is to make of a value that is there.
pub trait Change<V> {
    /// Nothing.
    #[doc(hidden)]
    const NOTHING: bool;

    #[doc(hidden)]
    fn change(&mut self, value: &V) -> Option<V>;
}

/// A value that is there stays as it is.
#[derive(Clone, Copy, Debug)]
pub struct Untouched;

/// A value that is there is changed, and what comes of it once more.
pub struct Then<U, F>(U, F);

impl<V> Change<V> for Untouched {
    const NOTHING: bool = true;

    fn change(&mut self, _value: &V) -> Option<V> {
        None
    }
}

impl<V, U: Change<V>, F: FnMut(&V) -> V> Change<V> for Then<U, F> {
    const NOTHING: bool = false;

    fn change(&mut self, value: &V) -> Option<V> {
        Some(match self.0.change(value) {
            Some(changed) => (self.1)(&changed),
            None => (self.1)(value),
        })
    }
}

impl<W: Way, N: Name<W::Key>> Entry<W, N> {
    fn new(way: W, name: N) -> Self {
        Self { way, name, change: Untouched }
    }

    /// Stores a value, whatever is there, and returns it.
    pub fn insert_entry(self, value: W::Value) -> W::Lent {
        self.way.put(self.name, value)
    }

    /// Removes what is there, and returns it.
    pub fn remove_entry(self) -> Option<W::Lent> {
        self.way.take_out(self.name)
    }
}

impl<W: Way, N: Name<W::Key>, U: Change<W::Value>> Entry<W, N, U> {
    /// The key that is asked for.
    pub fn key(&self) -> &N::Asked {
        self.name.asked()
    }

    /// A value that is there shall be replaced by what the closure makes of it.
    pub fn and_update<F>(self, update: F) -> Entry<W, N, Then<U, F>>
    where
        F: FnMut(&W::Value) -> W::Value,
    {
        let Self { way, name, change } = self;
        Entry { way, name, change: Then(change, update) }
    }

    /// A value that is there shall be replaced by a clone that the closure has changed.
    #[allow(clippy::type_complexity)] // the closure has no name
    pub fn and_modify(
        self,
        mut modify: impl FnMut(&mut W::Value),
    ) -> Entry<W, N, Then<U, impl FnMut(&W::Value) -> W::Value>>
    where
        W::Value: Clone,
    {
        self.and_update(move |value| {
            let mut value = value.clone();
            modify(&mut value);
            value
        })
    }

    /// What is there, after its changes; nothing, if nothing is there.
    pub fn get(mut self) -> Option<W::Lent> {
        if U::NOTHING {
            return self.way.find(self.name);
        }
        self.way.change(self.name, |value| self.change.change(value))
    }

    /// What is there, after its changes; this value, if nothing is there.
    pub fn or_insert(self, value: W::Value) -> W::Lent {
        self.or_insert_with(|| value)
    }

    /// What is there, after its changes; what `make` returns, if nothing is there. `make` runs once
    /// at most. Several threads may run theirs for one key at once: nobody waits for anybody's.
    pub fn or_insert_with(self, make: impl FnOnce() -> W::Value) -> W::Lent {
        self.or_insert_with_key(|_| make())
    }

    /// The same with the key as an argument.
    pub fn or_insert_with_key(mut self, make: impl FnOnce(&W::Key) -> W::Value) -> W::Lent {
        if U::NOTHING {
            return self.way.find_or_make(self.name, make);
        }
        self.way.change_or_make(self.name, |value| self.change.change(value), make)
    }

    /// What is there, after its changes; the default value, if nothing is there.
    pub fn or_default(self) -> W::Lent
    where
        W::Value: Default,
    {
        self.or_insert_with(W::Value::default)
    }
}

impl<W, N, U> fmt::Debug for Entry<W, N, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").finish_non_exhaustive()
    }
}

impl<U, F> fmt::Debug for Then<U, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Then").finish_non_exhaustive()
    }
}

/// Does something below by a way that is outside, and lends what it shows.
macro_rules! outside {
    ($way:expr, |$pin:ident| $work:expr) => {
        $way.inner().lend(|$pin| $work)
    };
}

/// Does something below by a way that is inside.
macro_rules! inside {
    ($way:expr, |$pin:ident| $work:expr) => {{
        let $pin = &$way.inner;
        $work
    }};
}

/// One way in.
macro_rules! way {
    ($way:ty, [$($more:tt)*], $do:ident, $lent:ty) => {
        impl<'a, K: Key, V: Value, S: BuildHasher, $($more)*> Way for &'a $way {
            type Key = K;
            type Value = V;
            type Lent = $lent;

            #[inline]
            fn find(self, name: impl Name<K>) -> Option<$lent> {
                $do!(self, |pin| pin.get(name.asked())).show()
            }
            #[inline]
            fn find_or_make(self, name: impl Name<K>, make: impl FnOnce(&K) -> V) -> $lent {
                expect($do!(self, |pin| pin.get_or_make(name, make))).show()
            }
            fn change(
                self,
                name: impl Name<K>,
                change: impl FnMut(&V) -> Option<V>,
            ) -> Option<$lent> {
                expect($do!(self, |pin| pin.revise(name, change))).show()
            }
            fn change_or_make(
                self,
                name: impl Name<K>,
                change: impl FnMut(&V) -> Option<V>,
                make: impl FnOnce(&K) -> V,
            ) -> $lent {
                expect($do!(self, |pin| pin.upsert(name, change, make))).show()
            }
            fn put(self, name: impl Name<K>, value: V) -> $lent {
                expect($do!(self, |pin| pin.put(name, value))).show()
            }
            fn take_out(self, name: impl Name<K>) -> Option<$lent> {
                $do!(self, |pin| pin.remove(name.asked())).show()
            }
        }

        /// # By entry
        impl<K: Key, V: Value, S: BuildHasher, $($more)*> $way {
            /// What is asked of a key: recorded, and carried out by its last call, at one moment.
            ///
            /// ```
            /// let counts = quintet::HashMap::<String, u64>::new();
            /// for word in ["the", "cat", "the"] {
            ///     counts.entry(word.to_string()).and_update(|count| count + 1).or_insert(1);
            /// }
            /// assert_eq!(counts.get_cloned("the"), Some(2));
            /// ```
            pub fn entry(&self, key: K) -> Entry<&Self, Given<K>> {
                Entry::new(self, Given::new(key))
            }

            /// The same of a borrowed key. An owned one is [made](ToKey) only for an entry that is
            /// stored.
            ///
            /// ```
            /// let lengths = quintet::HashMap::<String, usize>::new();
            /// let length = lengths.entry_ref("apple").or_insert_with_key(|key| key.len());
            /// assert_eq!(*length, 5);
            /// ```
            pub fn entry_ref<'q, Q: ?Sized + ToKey<K>>(
                &self,
                key: &'q Q,
            ) -> Entry<&Self, Made<'q, Q, K>> {
                Entry::new(self, Made::new(key))
            }
        }
    };
}

way!(HashMap<K, V, S>, [], outside, Ref<'a, K, V>);
way!(Handle<'_, K, V, S>, [], outside, Ref<'a, K, V>);
way!(Inside<'_, K, V, S, A>, [A: Hold], inside, &'a V);
