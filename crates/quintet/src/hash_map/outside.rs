//! The operations of who is outside between them: of the map itself, on the calling thread's seat,
//! and of a [`Handle`], on its own. Each enters, does what a [`Pin`](super::Pin) does, and hands
//! its section to the [`Ref`]s that it returns.

use super::inside::expect;
use super::iter::{DrainRefs, ExtractRefs, KeyRefs, Refs, ValueRefs};
use super::lend::{Ref, Show, exchanged, swapped};
use super::pair::{Asked, Given, Key, Pair, Value};
use super::{Equivalent, Handle, HashMap, HashMapStats, Inside, Retired};
use crate::item_set;
use crate::reclaim::Hold;
use crate::region::AllocError;
use crate::vocabulary::{Compute, Computed, Fallible, Rejected};
use std::hash::{BuildHasher, Hash};

/// The operations that look, written into an `impl` of each such type.
macro_rules! reads {
    ($way:ty) => {
        /// # Looking up
        impl<K: Key, V: Value, S: BuildHasher> $way {
            /// The value of `key`, with its key.
            ///
            /// ```
            /// let ages = quintet::HashMap::from([("ada".to_string(), 36)]);
            /// assert_eq!(ages.get("ada").as_deref(), Some(&36));
            /// assert!(ages.get("bob").is_none());
            /// ```
            #[inline]
            pub fn get<Q>(&self, key: &Q) -> Option<Ref<'_, K, V>>
            where
                Q: ?Sized + Hash + Equivalent<K>,
            {
                self.inner().lend(|pin| pin.get(key)).show()
            }

            /// The value of `key`, with its key: [`get`](Self::get) by the name that std has for
            /// it.
            ///
            /// ```
            /// let ages = quintet::HashMap::from([("ada".to_string(), 36)]);
            /// let entry = ages.get_key_value("ada").unwrap();
            /// assert_eq!((entry.key().as_str(), *entry), ("ada", 36));
            /// ```
            #[inline]
            pub fn get_key_value<Q>(&self, key: &Q) -> Option<Ref<'_, K, V>>
            where
                Q: ?Sized + Hash + Equivalent<K>,
            {
                self.get(key)
            }

            /// A clone of the value of `key`, which holds nothing back.
            ///
            /// ```
            /// let ages = quintet::HashMap::from([("ada", 36)]);
            /// assert_eq!(ages.get_cloned("ada"), Some(36));
            /// assert_eq!(ages.get_cloned("bob"), None);
            /// ```
            #[inline]
            pub fn get_cloned<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> Option<V>
            where
                V: Clone,
            {
                self.with(key, V::clone)
            }

            /// What the closure makes of the value of `key`. It runs with no lock held, and may use
            /// the map.
            ///
            /// ```
            /// let names = quintet::HashMap::from([(7, "ada".to_string())]);
            /// assert_eq!(names.with(&7, |name| name.len()), Some(3));
            /// assert_eq!(names.with(&8, |name| name.len()), None);
            /// ```
            #[inline]
            #[doc(alias = "view")]
            #[doc(alias = "read")]
            pub fn with<Q, R>(&self, key: &Q, look: impl FnOnce(&V) -> R) -> Option<R>
            where
                Q: ?Sized + Hash + Equivalent<K>,
            {
                self.inner().get(key).map(|pair| look(&pair.value))
            }

            /// True if there is a value of `key`.
            ///
            /// ```
            /// let ages = quintet::HashMap::from([("ada", 36)]);
            /// assert!(ages.contains_key("ada") && !ages.contains_key("bob"));
            /// ```
            #[inline]
            pub fn contains_key<Q: ?Sized + Hash + Equivalent<K>>(&self, key: &Q) -> bool {
                self.inner().contains(key)
            }

            /// Looks up many keys at once: `values[i]` becomes the value of the key that comes as
            /// number `i`. Each lookup is linearizable by itself.
            ///
            /// For large maps this is faster than one [`get`](Self::get) after the other: the
            /// memory of later keys is fetched while earlier ones are compared.
            ///
            /// ```
            /// let prices = quintet::HashMap::from([("apple", 3), ("pear", 4)]);
            /// let mut found = [const { None }; 3];
            /// prices.get_many(["pear", "plum", "apple"], &mut found);
            /// assert_eq!(found.map(|price| price.as_deref().copied()), [Some(4), None, Some(3)]);
            /// ```
            ///
            /// # Panics
            /// If there are not as many places as keys. If a key's `Eq` panics, earlier places of
            /// `values` may be filled.
            pub fn get_many<'h, 'k, Q, I>(&'h self, keys: I, values: &mut [Option<Ref<'h, K, V>>])
            where
                Q: ?Sized + Hash + Equivalent<K> + 'k,
                I: IntoIterator<Item = &'k Q, IntoIter: ExactSizeIterator + Clone>,
            {
                self.inner().lend_many(keys.into_iter(), values, Show::show);
            }

            /// Looks for many keys at once: `found[i]` tells whether there is a value of the key
            /// that comes as number `i`. See [`get_many`](Self::get_many).
            ///
            /// ```
            /// let prices = quintet::HashMap::from([("apple", 3), ("pear", 4)]);
            /// let mut found = [false; 3];
            /// prices.contains_many(["pear", "plum", "apple"], &mut found);
            /// assert_eq!(found, [true, false, true]);
            /// ```
            ///
            /// # Panics
            /// If there are not as many places as keys.
            pub fn contains_many<'k, Q, I>(&self, keys: I, found: &mut [bool])
            where
                Q: ?Sized + Hash + Equivalent<K> + 'k,
                I: IntoIterator<Item = &'k Q, IntoIter: ExactSizeIterator + Clone>,
            {
                self.inner().contains_many(keys, found);
            }

            /// All entries, in no order. One that is there throughout is seen; one that comes or
            /// goes meanwhile may be. Ends a migration under way first. Nobody is blocked
            /// meanwhile, whatever is done with the map.
            ///
            /// While the iterator lives everything that is removed is held back.
            ///
            /// ```
            /// let ages = quintet::HashMap::from([("ada", 36), ("bob", 40)]);
            /// for entry in &ages {
            ///     ages.insert(entry.key(), *entry + 1); // by the way
            /// }
            /// assert_eq!(ages.get("bob").as_deref(), Some(&41));
            /// ```
            pub fn iter(&self) -> Refs<'_, K, V> {
                Refs(item_set::Refs::new(self.inner(), false))
            }

            /// The entries that are there now: each that is there throughout is seen exactly once.
            /// Entries that are put later are not waited for. When the map is rebuilt meanwhile,
            /// the walk goes on in the table it began with, and may show what was removed since.
            ///
            /// While the iterator lives everything that is removed is held back.
            ///
            /// ```
            /// let ages = quintet::HashMap::from([("ada", 36), ("bob", 40)]);
            /// assert_eq!(ages.iter_exact().map(|age| *age).sum::<i32>(), 76);
            /// ```
            pub fn iter_exact(&self) -> Refs<'_, K, V> {
                Refs(item_set::Refs::new(self.inner(), true))
            }

            /// The keys, as [`iter`](Self::iter) sees them.
            ///
            /// ```
            /// let ages = quintet::HashMap::from([("ada", 36), ("bob", 40)]);
            /// let mut names: Vec<_> = ages.keys().map(|name| *name).collect();
            /// names.sort();
            /// assert_eq!(names, ["ada", "bob"]);
            /// ```
            pub fn keys(&self) -> KeyRefs<'_, K, V> {
                KeyRefs(self.iter())
            }

            /// The values, as [`iter`](Self::iter) sees them.
            ///
            /// ```
            /// let ages = quintet::HashMap::from([("ada", 36), ("bob", 40)]);
            /// assert_eq!(ages.values().map(|age| *age).sum::<i32>(), 76);
            /// ```
            pub fn values(&self) -> ValueRefs<'_, K, V> {
                ValueRefs(self.iter())
            }
        }
    };
}

/// The operations that store.
macro_rules! writes {
    ($way:ty) => {
        /// # Storing
        impl<K: Key, V: Value, S: BuildHasher> $way {
            /// Stores a value, and its key with it. Returns the entry it replaces, which the map
            /// drops when nobody can refer to it any more.
            ///
            /// ```
            /// let ages = quintet::HashMap::new();
            /// assert!(ages.insert("ada", 36).is_none());
            /// assert_eq!(ages.insert("ada", 37).as_deref(), Some(&36));
            /// assert_eq!(ages.get("ada").as_deref(), Some(&37));
            /// ```
            ///
            /// # Panics
            /// If a larger table is needed and memory for it cannot be had, as all that store: see
            /// `fallible`.
            #[inline]
            #[doc(alias = "upsert")]
            pub fn insert(&self, key: K, value: V) -> Option<Ref<'_, K, V>> {
                self.inner().lend(|pin| pin.insert(pin.boxed(Pair { key, value }))).show()
            }

            /// Stores a value only if there is none of its key. Otherwise returns the one that is
            /// there, and hands this one back.
            ///
            /// ```
            /// let owners = quintet::HashMap::new();
            /// assert!(owners.insert_new("seat 1", "ada").is_ok());
            /// let rejected = owners.insert_new("seat 1", "bob").unwrap_err();
            /// assert_eq!((*rejected.current, rejected.value), ("ada", "bob"));
            /// ```
            #[doc(alias = "try_insert")]
            pub fn insert_new(&self, key: K, value: V) -> Result<(), Rejected<Ref<'_, K, V>, V>> {
                expect(self.fallible().insert_new(key, value))
            }

            /// The value of `key`; this one, if there was none.
            ///
            /// ```
            /// let owners = quintet::HashMap::new();
            /// assert_eq!(*owners.get_or_insert("seat 1", "ada"), "ada");
            /// assert_eq!(*owners.get_or_insert("seat 1", "bob"), "ada"); // she stays
            /// ```
            pub fn get_or_insert(&self, key: K, value: V) -> Ref<'_, K, V> {
                expect(self.fallible().get_or_insert(key, value))
            }

            /// The value of `key`; if there is none, the one that `make` returns. `make` runs with
            /// no lock held, so that it may use the map; if another thread stores a value of this
            /// key first, that one is returned and the one just made is dropped. Several threads
            /// may run `make` for one key at once: nobody waits for anybody's. Where that is too
            /// dear, [`get_or_compute`](Self::get_or_compute) has one maker.
            ///
            /// ```
            /// let lengths = quintet::HashMap::new();
            /// assert_eq!(*lengths.get_or_insert_with("tree", || "tree".len()), 4);
            /// assert_eq!(*lengths.get_or_insert_with("tree", || unreachable!("it is there")), 4);
            /// ```
            #[doc(alias = "or_insert_with")]
            pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> Ref<'_, K, V> {
                expect(self.fallible().get_or_insert_with(key, make))
            }

            /// Replaces the value of `key` by what the closure makes of it, at one moment: nothing
            /// that others write meanwhile is lost. Returns the new one, or nothing if there was
            /// none.
            ///
            /// The closure runs with no lock held, may use the map, and may run more than once:
            /// what its last run has made is stored. One that itself writes to this very key comes
            /// between itself, for ever. The new entry gets a clone of the key.
            ///
            /// ```
            /// let counts = quintet::HashMap::from([("hits", 0)]);
            /// std::thread::scope(|scope| {
            ///     for _ in 0..4 {
            ///         scope.spawn(|| (0..100).for_each(|_| {
            ///             counts.update("hits", |count| count + 1);
            ///         }));
            ///     }
            /// });
            /// assert_eq!(counts.get_cloned("hits"), Some(400));
            /// ```
            #[doc(alias = "alter")]
            #[doc(alias = "get_mut")]
            pub fn update<Q>(&self, key: &Q, update: impl FnMut(&V) -> V) -> Option<Ref<'_, K, V>>
            where
                Q: ?Sized + Hash + Equivalent<K>,
                K: Clone,
            {
                expect(self.fallible().update(key, update))
            }

            /// [`update`](Self::update)s the value of `key`; stores this one, if there is none.
            /// Returns the new one.
            ///
            /// ```
            /// let visits = quintet::HashMap::new();
            /// assert_eq!(*visits.update_or_insert("home", |count| count + 1, 1), 1);
            /// assert_eq!(*visits.update_or_insert("home", |count| count + 1, 1), 2);
            /// ```
            #[doc(alias = "and_modify")]
            pub fn update_or_insert(
                &self,
                key: K,
                update: impl FnMut(&V) -> V,
                value: V,
            ) -> Ref<'_, K, V> {
                expect(self.fallible().update_or_insert(key, update, value))
            }

            /// [`update`](Self::update)s the value of `key`; stores the one that `make` returns, if
            /// there is none. Returns the new one. `make` runs once at most.
            ///
            /// ```
            /// let words = quintet::HashMap::new();
            /// for word in ["tea", "tree", "life"] {
            ///     let more = |list: &String| format!("{list}, {word}");
            ///     words.update_or_insert_with(word.len(), more, || word.to_string());
            /// }
            /// assert_eq!(*words.get(&4).unwrap(), "tree, life");
            /// ```
            pub fn update_or_insert_with(
                &self,
                key: K,
                update: impl FnMut(&V) -> V,
                make: impl FnOnce() -> V,
            ) -> Ref<'_, K, V> {
                expect(self.fallible().update_or_insert_with(key, update, make))
            }

            /// Shows the closure what is there, and does what it says, at one moment. Returns what
            /// was there, and what is there since.
            ///
            /// The closure runs with no lock held, may use the map, and may run more than once:
            /// what its last run has said is done.
            ///
            /// ```
            /// use quintet::Compute;
            /// let left = quintet::HashMap::from([("tries", 2)]);
            /// let try_once = || {
            ///     left.compute("tries", |left| match left {
            ///         Some(2..) => Compute::Insert(1),
            ///         Some(_) => Compute::Remove,
            ///         None => Compute::Keep,
            ///     })
            /// };
            /// assert_eq!(try_once().after.as_deref(), Some(&1));
            /// assert_eq!(try_once().before.as_deref(), Some(&1));
            /// assert!(left.is_empty() && try_once().before.is_none());
            /// ```
            pub fn compute(
                &self,
                key: K,
                compute: impl FnMut(Option<&V>) -> Compute<V>,
            ) -> Computed<Ref<'_, K, V>> {
                expect(self.fallible().compute(key, compute))
            }

            /// Stores `new` in the place of a value of `key` that is equal to `current`, and
            /// returns that. Otherwise returns what is there, and hands `new` back.
            ///
            /// The values are compared with no lock held.
            ///
            /// ```
            /// let owners = quintet::HashMap::from([("seat 1", "ada")]);
            /// assert!(owners.compare_exchange("seat 1", &"ada", "bob").is_ok());
            /// let rejected = owners.compare_exchange("seat 1", &"ada", "eve").unwrap_err();
            /// assert_eq!(rejected.current.as_deref(), Some(&"bob"));
            /// ```
            #[doc(alias = "compare_and_swap")]
            #[allow(clippy::type_complexity)] // one shape for all tables
            pub fn compare_exchange<Q>(
                &self,
                key: &Q,
                current: &V,
                new: V,
            ) -> Result<Ref<'_, K, V>, Rejected<Option<Ref<'_, K, V>>, V>>
            where
                Q: ?Sized + Hash + Equivalent<K>,
                K: Clone,
                V: PartialEq,
            {
                expect(self.fallible().compare_exchange(key, current, new))
            }

            /// Exchanges the value of a key that is there, and returns the old one; otherwise hands
            /// this one back.
            ///
            /// ```
            /// let ages = quintet::HashMap::from([("ada", 36)]);
            /// assert_eq!(ages.swap("ada", 37).as_deref(), Ok(&36));
            /// assert_eq!(ages.swap("bob", 40).err(), Some(40));
            /// ```
            #[doc(alias = "replace")]
            pub fn swap<Q>(&self, key: &Q, value: V) -> Result<Ref<'_, K, V>, V>
            where
                Q: ?Sized + Hash + Equivalent<K>,
                K: Clone,
            {
                expect(self.fallible().swap(key, value))
            }

            /// [Inserts](Self::insert) many entries, their waits for memory overlapped; returns how
            /// many keys were new.
            ///
            /// ```
            /// let squares = quintet::HashMap::from([(1, 1)]);
            /// assert_eq!(squares.insert_many((0..10).map(|n| (n, n * n))), 9);
            /// assert_eq!(squares.get_cloned(&5), Some(25));
            /// ```
            pub fn insert_many(&self, entries: impl IntoIterator<Item = (K, V)>) -> usize {
                expect(self.fallible().insert_many(entries))
            }

            /// Makes room for `additional` more entries at once, so that they can be stored without
            /// growth.
            ///
            /// ```
            /// let ages = quintet::HashMap::from([("ada", 36)]);
            /// ages.reserve(1000);
            /// assert!(ages.capacity() >= 1001);
            /// ```
            ///
            /// # Panics
            /// If the memory cannot be had.
            pub fn reserve(&self, additional: usize) {
                expect(self.try_reserve(additional));
            }

            /// Makes room for `additional` more entries at once, or says why that cannot be.
            ///
            /// ```
            /// let ages = quintet::HashMap::from([("ada", 36)]);
            /// ages.try_reserve(1000)?;
            /// assert!(ages.capacity() >= 1001);
            /// # Ok::<(), quintet::AllocError>(())
            /// ```
            pub fn try_reserve(&self, additional: usize) -> Result<(), AllocError> {
                self.inner().try_reserve(additional)
            }
        }

        impl<'a, K: Key, V: Value, S: BuildHasher> Fallible<'a, $way> {
            /// [`HashMap::insert`].
            pub fn insert(self, key: K, value: V) -> Result<Option<Ref<'a, K, V>>, AllocError> {
                let pair = Pair { key, value };
                Ok(self.0.inner().lend(|pin| pin.fallible().insert(pin.boxed(pair)))?.show())
            }

            /// [`HashMap::insert_new`].
            pub fn insert_new(
                self,
                key: K,
                value: V,
            ) -> Result<Result<(), Rejected<Ref<'a, K, V>, V>>, AllocError> {
                Ok(self.0.inner().lend(|pin| pin.add_new(key, value))?.show())
            }

            /// [`HashMap::get_or_insert`].
            pub fn get_or_insert(self, key: K, value: V) -> Result<Ref<'a, K, V>, AllocError> {
                Ok(self.0.inner().lend(|pin| pin.get_or_make(Given::new(key), |_| value))?.show())
            }

            /// [`HashMap::get_or_insert_with`].
            pub fn get_or_insert_with(
                self,
                key: K,
                make: impl FnOnce() -> V,
            ) -> Result<Ref<'a, K, V>, AllocError> {
                Ok(self.0.inner().lend(|pin| pin.get_or_make(Given::new(key), |_| make()))?.show())
            }

            /// [`HashMap::update`].
            pub fn update<Q>(
                self,
                key: &Q,
                mut update: impl FnMut(&V) -> V,
            ) -> Result<Option<Ref<'a, K, V>>, AllocError>
            where
                Q: ?Sized + Hash + Equivalent<K>,
                K: Clone,
            {
                let (name, change) = (Asked::new(key), |value: &V| Some(update(value)));
                Ok(self.0.inner().lend(|pin| pin.revise(name, change))?.show())
            }

            /// [`HashMap::update_or_insert`].
            pub fn update_or_insert(
                self,
                key: K,
                update: impl FnMut(&V) -> V,
                value: V,
            ) -> Result<Ref<'a, K, V>, AllocError> {
                self.update_or_insert_with(key, update, || value)
            }

            /// [`HashMap::update_or_insert_with`].
            pub fn update_or_insert_with(
                self,
                key: K,
                mut update: impl FnMut(&V) -> V,
                make: impl FnOnce() -> V,
            ) -> Result<Ref<'a, K, V>, AllocError> {
                let (name, change) = (Given::new(key), |value: &V| Some(update(value)));
                Ok(self.0.inner().lend(|pin| pin.upsert(name, change, |_| make()))?.show())
            }

            /// [`HashMap::compute`].
            pub fn compute(
                self,
                key: K,
                mut compute: impl FnMut(Option<&V>) -> Compute<V>,
            ) -> Result<Computed<Ref<'a, K, V>>, AllocError> {
                let (name, decide) = (Given::new(key), |found: Option<&V>, _| compute(found));
                Ok(self.0.inner().lend(|pin| pin.decide(name, decide))?.show())
            }

            /// [`HashMap::compare_exchange`].
            #[allow(clippy::type_complexity)] // one shape for all tables, and an error of memory around it
            pub fn compare_exchange<Q>(
                self,
                key: &Q,
                current: &V,
                new: V,
            ) -> Result<Result<Ref<'a, K, V>, Rejected<Option<Ref<'a, K, V>>, V>>, AllocError>
            where
                Q: ?Sized + Hash + Equivalent<K>,
                K: Clone,
                V: PartialEq,
            {
                let (name, fits) = (Asked::new(key), |value: &V| value == current);
                Ok(exchanged(self.0.inner().lend(|pin| pin.exchange(name, fits, new))?))
            }

            /// [`HashMap::swap`].
            pub fn swap<Q>(self, key: &Q, value: V) -> Result<Result<Ref<'a, K, V>, V>, AllocError>
            where
                Q: ?Sized + Hash + Equivalent<K>,
                K: Clone,
            {
                let name = Asked::new(key);
                Ok(swapped(self.0.inner().lend(|pin| pin.exchange(name, |_| true, value))?))
            }

            /// [`HashMap::insert_many`].
            pub fn insert_many(
                self,
                entries: impl IntoIterator<Item = (K, V)>,
            ) -> Result<usize, AllocError> {
                self.0.pin().fallible().insert_many(entries)
            }
        }
    };
}

/// The operations that take out.
macro_rules! removals {
    ($way:ty) => {
        /// # Taking out
        impl<K: Key, V: Value, S: BuildHasher> $way {
            /// Removes the entry of `key`, and returns it. The map drops it when nobody can refer
            /// to it any more.
            ///
            /// ```
            /// let ages = quintet::HashMap::from([("ada", 36)]);
            /// assert_eq!(ages.remove("ada").as_deref(), Some(&36));
            /// assert!(ages.remove("ada").is_none());
            /// ```
            #[inline]
            pub fn remove<Q>(&self, key: &Q) -> Option<Ref<'_, K, V>>
            where
                Q: ?Sized + Hash + Equivalent<K>,
            {
                self.inner().lend(|pin| pin.remove(key)).show()
            }

            /// Removes the entry of `key`, and returns it: [`remove`](Self::remove) by the name
            /// that std has for it.
            ///
            /// ```
            /// let ages = quintet::HashMap::from([("ada", 36)]);
            /// let entry = ages.remove_entry("ada").unwrap();
            /// assert_eq!((*entry.key(), *entry), ("ada", 36));
            /// ```
            pub fn remove_entry<Q>(&self, key: &Q) -> Option<Ref<'_, K, V>>
            where
                Q: ?Sized + Hash + Equivalent<K>,
            {
                self.remove(key)
            }

            /// Removes the entry of `key`, and gives back its value as its owner's: once nobody can
            /// be looking at it any more. See [`Retired`].
            ///
            /// Dearer than [`remove`](Self::remove), whose value the map drops by itself.
            ///
            /// ```
            /// let files = quintet::HashMap::from([("a", vec![1, 2, 3])]);
            /// let mut file: Vec<i32> = files.take("a").unwrap().wait().unwrap();
            /// file.push(4);
            /// assert!(files.take("a").is_none());
            /// ```
            #[doc(alias = "remove_owned")]
            pub fn take<Q>(&self, key: &Q) -> Option<Retired<K, V>>
            where
                Q: ?Sized + Hash + Equivalent<K>,
            {
                self.inner().take_out(key).map(Retired::new)
            }

            /// Removes the entry of `key` if the closure agrees to that very value: `Ok` of what
            /// was removed, or of nothing if there was none, `Err` of what stays. The closure runs
            /// with no lock held, and may run more than once.
            ///
            /// ```
            /// let stock = quintet::HashMap::from([("apple", 0), ("pear", 5)]);
            /// assert!(stock.remove_if("apple", |left| *left == 0).unwrap().is_some());
            /// assert_eq!(*stock.remove_if("pear", |left| *left == 0).unwrap_err(), 5);
            /// assert!(stock.remove_if("plum", |left| *left == 0).unwrap().is_none());
            /// ```
            pub fn remove_if<Q>(
                &self,
                key: &Q,
                mut condition: impl FnMut(&V) -> bool,
            ) -> Result<Option<Ref<'_, K, V>>, Ref<'_, K, V>>
            where
                Q: ?Sized + Hash + Equivalent<K>,
            {
                self.inner().lend(|pin| pin.remove_if(key, |pair| condition(&pair.value))).show()
            }

            /// Removes the entries for which `keep` says no; each one that it has said no to, if it
            /// is still the one in the map. `keep` runs with no lock held.
            ///
            /// ```
            /// let stock = quintet::HashMap::from([("apple", 0), ("pear", 5)]);
            /// stock.retain(|_, left| *left > 0);
            /// assert!(stock.contains_key("pear") && stock.len() == 1);
            /// ```
            pub fn retain(&self, mut keep: impl FnMut(&K, &V) -> bool) {
                self.inner().retain(|pair| keep(&pair.key, &pair.value));
            }

            /// Removes the entries that are there now.
            ///
            /// ```
            /// let ages = quintet::HashMap::from([("ada", 36), ("bob", 40)]);
            /// ages.clear();
            /// assert!(ages.is_empty());
            /// ```
            pub fn clear(&self) {
                self.inner().clear();
            }

            /// Removes the entries that are there now, and shows them. What the iterator has not
            /// come to is removed when it is dropped.
            ///
            /// ```
            /// let pending = quintet::HashMap::from([("ada", 10), ("bob", 20)]);
            /// let sum: i32 = pending.drain().map(|amount| *amount).sum();
            /// assert_eq!((sum, pending.len()), (30, 0));
            /// ```
            pub fn drain(&self) -> DrainRefs<'_, K, V, S> {
                DrainRefs(item_set::DrainRefs::new(self.inner(), self.inner()))
            }

            /// Removes the entries that are there now and for which `pick` says yes, and shows
            /// them. What the iterator has not come to stays.
            ///
            /// ```
            /// let ages = quintet::HashMap::from([("ada", 36), ("bob", 17)]);
            /// let minors: Vec<_> = ages.extract_if(|_, age| *age < 18).map(|entry| *entry.key()).collect();
            /// assert_eq!((minors, ages.len()), (vec!["bob"], 1));
            /// ```
            pub fn extract_if<F>(&self, pick: F) -> ExtractRefs<'_, K, V, S, F>
            where
                F: FnMut(&K, &V) -> bool,
            {
                let pairs = item_set::Refs::new(self.inner(), true);
                ExtractRefs { pairs, pin: self.inner(), pick }
            }

            /// [Removes](Self::remove) the entries of many keys, their waits for memory overlapped;
            /// returns how many were there.
            ///
            /// ```
            /// let ages = quintet::HashMap::from([("ada", 36), ("bob", 40)]);
            /// assert_eq!(ages.remove_many(["ada", "eve"]), 1);
            /// assert_eq!(ages.len(), 1);
            /// ```
            pub fn remove_many<'k, Q>(&self, keys: impl IntoIterator<Item = &'k Q>) -> usize
            where
                Q: ?Sized + Hash + Equivalent<K> + 'k,
            {
                self.inner().remove_many(keys)
            }

            /// Moves to the smallest table that holds what is there.
            ///
            /// ```
            /// let squares: quintet::HashMap<u64, u64> = (0..10_000).map(|n| (n, n * n)).collect();
            /// squares.retain(|n, _| *n < 10);
            /// let before = squares.capacity();
            /// squares.shrink_to_fit();
            /// assert!(squares.capacity() < before && squares.len() == 10);
            /// ```
            pub fn shrink_to_fit(&self) {
                self.inner().shrink_to_fit();
            }
        }
    };
}

/// Figures of the map, the same by every way in.
macro_rules! figures {
    ($way:ty, |$own:ident| $map:expr $(, where $($more:tt)*)?) => {
        /// # Figures
        impl<K: Key, V: Value, S, $($($more)*)?> $way {
            /// Entries. Exact when nobody writes; otherwise an estimate.
            ///
            /// ```
            /// let ages = quintet::HashMap::from([("ada", 36), ("bob", 40)]);
            /// assert_eq!(ages.len(), 2);
            /// ```
            pub fn len(&self) -> usize {
                let $own = self;
                $map.pairs.len()
            }

            /// True if there are no entries, with the exactness of [`len`](Self::len).
            ///
            /// ```
            /// let ages = quintet::HashMap::from([("ada", 36)]);
            /// assert!(!ages.is_empty());
            /// ```
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Entries that fit before the map grows.
            ///
            /// ```
            /// let ages = quintet::HashMap::<String, u32>::with_capacity(1000);
            /// assert!(ages.capacity() >= 1000);
            /// ```
            pub fn capacity(&self) -> usize {
                self.stats().capacity
            }

            /// A look inside: load, migration, memory, what is held back.
            ///
            /// ```
            /// let squares: quintet::HashMap<u64, u64> = (0..1000).map(|n| (n, n * n)).collect();
            /// let stats = squares.stats();
            /// assert_eq!(stats.len, 1000);
            /// assert!(stats.places_used <= stats.places);
            /// ```
            pub fn stats(&self) -> HashMapStats {
                let $own = self;
                $map.pairs.stats()
            }

            /// Bytes held: tables, entries, and entries and tables that were removed and are not
            /// yet given back. What lies behind keys and values is not counted, nor is what an
            /// allocator adds to a block.
            ///
            /// ```
            /// let squares: quintet::HashMap<u64, u64> = (0..1000).map(|n| (n, n * n)).collect();
            /// assert!(squares.memory_bytes() >= 1000 * 16);
            /// ```
            pub fn memory_bytes(&self) -> usize {
                let stats = self.stats();
                stats.table_bytes + stats.backlog_bytes + stats.len * size_of::<Pair<K, V>>()
            }
        }
    };
}

reads!(HashMap<K, V, S>);
reads!(Handle<'_, K, V, S>);
writes!(HashMap<K, V, S>);
writes!(Handle<'_, K, V, S>);
removals!(HashMap<K, V, S>);
removals!(Handle<'_, K, V, S>);
figures!(HashMap<K, V, S>, |own| own);
figures!(Handle<'_, K, V, S>, |own| own.map());
figures!(Inside<'_, K, V, S, A>, |own| own.map(), where A: Hold);
