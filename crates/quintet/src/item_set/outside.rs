//! The operations of who is outside between them: of the set itself, on the calling thread's seat,
//! and of a [`Handle`], on its own. Each enters, does what a [`Pin`](super::Pin) does, and hands
//! its section to the [`Ref`]s that it returns.

use super::inside::KeyOf;
use super::item::{Item, Pointer};
use super::iter::{DrainRefs, Refs};
use super::lend::Ref;
use super::{Equivalent, Handle, Inside, ItemSet, ItemSetStats};
use crate::reclaim::Hold;
use crate::region::AllocError;
use crate::vocabulary::{Compute, Computed, Rejected};
use std::hash::{BuildHasher, Hash};
use std::ops::Deref;
use std::sync::Arc;

/// The operations that look, written into an `impl` of each such type.
macro_rules! reads {
    ($way:ty) => {
        /// # Looking up
        impl<P: Pointer, S: BuildHasher> $way {
            /// The item of `key`.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let ages = ItemSet::<Box<(String, u8)>>::from([("ada".to_string(), 36)]);
            /// assert_eq!(ages.get("ada").map(|entry| entry.1), Some(36));
            /// assert!(ages.get("bob").is_none());
            /// ```
            #[inline]
            pub fn get<Q: ?Sized + Hash + Equivalent<KeyOf<P>>>(
                &self,
                key: &Q,
            ) -> Option<Ref<'_, P>> {
                self.pin().lend(|pin| pin.get(key))
            }

            /// The item of `key`, whose [hash](ItemSet::hash_of) is known. With a foreign hash the
            /// item is not found; debug builds panic.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let ages = ItemSet::<Box<(&str, u32)>>::from([("ada", 36)]);
            /// let hash = ages.hash_of("ada");
            /// assert_eq!(ages.get_hashed(hash, "ada").map(|entry| entry.1), Some(36));
            /// ```
            #[inline]
            pub fn get_hashed<Q>(&self, hash: u32, key: &Q) -> Option<Ref<'_, P>>
            where
                Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
            {
                self.pin().lend(|pin| pin.get_hashed(hash, key))
            }

            /// True if there is an item of `key`.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let words = ItemSet::<Box<String>>::from(["apple", "pear"].map(String::from));
            /// assert!(words.contains("apple") && !words.contains("plum"));
            /// ```
            #[inline]
            #[doc(alias = "contains_key")]
            pub fn contains<Q: ?Sized + Hash + Equivalent<KeyOf<P>>>(&self, key: &Q) -> bool {
                self.pin().contains(key)
            }

            /// Looks up many keys at once: `items[i]` becomes the item of the key that comes as
            /// number `i`. Each lookup is linearizable by itself.
            ///
            /// For large sets this is faster than one [`get`](Self::get) after the other: the
            /// memory of later keys is fetched while earlier ones are compared.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let set = ItemSet::<Box<String>>::from(["apple", "pear"].map(String::from));
            /// let mut found = [const { None }; 3];
            /// set.get_many(["pear", "plum", "apple"], &mut found);
            /// assert_eq!(found.map(|word| word.is_some()), [true, false, true]);
            /// ```
            ///
            /// # Panics
            /// If there are not as many places as keys. If [`matches`](Item::matches) panics,
            /// earlier places of `items` may be filled.
            pub fn get_many<'h, 'k, Q, K>(&'h self, keys: K, items: &mut [Option<Ref<'h, P>>])
            where
                Q: ?Sized + Hash + Equivalent<KeyOf<P>> + 'k,
                K: IntoIterator<Item = &'k Q, IntoIter: ExactSizeIterator + Clone>,
            {
                self.pin().lend_many(keys.into_iter(), items, |item| item);
            }

            /// Looks for many keys at once: `found[i]` tells whether there is an item of the key
            /// that comes as number `i`. See [`get_many`](Self::get_many).
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let words = ItemSet::<Box<String>>::from(["apple", "pear"].map(String::from));
            /// let mut found = [false; 3];
            /// words.contains_many(["pear", "plum", "apple"], &mut found);
            /// assert_eq!(found, [true, false, true]);
            /// ```
            ///
            /// # Panics
            /// If there are not as many places as keys.
            pub fn contains_many<'k, Q, K>(&self, keys: K, found: &mut [bool])
            where
                Q: ?Sized + Hash + Equivalent<KeyOf<P>> + 'k,
                K: IntoIterator<Item = &'k Q, IntoIter: ExactSizeIterator + Clone>,
            {
                self.pin().contains_many(keys, found);
            }

            /// Asks the cache for the place of a key that will be looked up soon, by its
            /// [hash](ItemSet::hash_of).
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let ages = ItemSet::<Box<(&str, u32)>>::from([("ada", 36)]);
            /// let hash = ages.hash_of("ada");
            /// ages.prefetch(hash); // and something else meanwhile
            /// assert!(ages.get_hashed(hash, "ada").is_some());
            /// ```
            #[inline]
            pub fn prefetch(&self, hash: u32) {
                self.pin().prefetch(hash);
            }

            /// All items, in no order; in that of their first insertion if the set is
            /// [`ordered`](super::ItemSetBuilder::ordered), until it is first rebuilt (grown,
            /// shrunk or compacted). An item that is there throughout is seen; one that comes or
            /// goes meanwhile may be. Ends a migration under way first.
            ///
            /// While the iterator lives everything that is removed is held back.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let ages = ItemSet::<Box<(&str, u32)>>::from([("ada", 36), ("bob", 40)]);
            /// assert_eq!(ages.iter().map(|entry| entry.1).sum::<u32>(), 76);
            /// ```
            pub fn iter(&self) -> Refs<'_, P> {
                Refs::new(self.pin(), false)
            }

            /// The items that are there now: each that is there throughout is seen exactly once.
            /// Items that are put later are not waited for. When the set is rebuilt meanwhile, the
            /// walk goes on in the table it began with, and may show what was removed since.
            ///
            /// While the iterator lives everything that is removed is held back.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let ages = ItemSet::<Box<(&str, u32)>>::from([("ada", 36), ("bob", 40)]);
            /// assert_eq!(ages.iter_exact().map(|entry| entry.1).sum::<u32>(), 76);
            /// ```
            pub fn iter_exact(&self) -> Refs<'_, P> {
                Refs::new(self.pin(), true)
            }
        }
    };
}

/// The operations that store.
macro_rules! writes {
    ($way:ty) => {
        /// # Storing
        impl<P: Pointer, S: BuildHasher> $way {
            /// Puts an item into the set. Returns the one it replaces, which the set drops when
            /// nobody can refer to it any more.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let ages = ItemSet::<Box<(&str, u32)>>::new();
            /// assert!(ages.insert(("ada", 36)).is_none());
            /// assert_eq!(ages.insert(("ada", 37)).map(|old| old.1), Some(36));
            /// assert_eq!(ages.get("ada").map(|entry| entry.1), Some(37));
            /// ```
            ///
            /// # Panics
            /// If a larger table is needed and memory for it cannot be had, as all that store: see
            /// `fallible`.
            #[inline]
            #[doc(alias = "put")]
            #[doc(alias = "upsert")]
            pub fn insert(&self, item: impl Into<P>) -> Option<Ref<'_, P>> {
                self.pin().lend(|pin| pin.insert(item))
            }

            /// The one operation under all others: puts the item of `key`, or removes it. The hash
            /// is that of the key, and the key that of the item; debug builds check both. With
            /// others the item is lost, nothing worse.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let ages = ItemSet::<Box<(&str, u32)>>::new();
            /// let hash = ages.hash_of("ada");
            /// assert!(ages.put_hashed(hash, "ada", Some(Box::new(("ada", 36)))).is_none());
            /// assert_eq!(ages.put_hashed(hash, "ada", None).map(|old| old.1), Some(36));
            /// assert!(ages.is_empty());
            /// ```
            pub fn put_hashed<Q>(&self, hash: u32, key: &Q, item: Option<P>) -> Option<Ref<'_, P>>
            where
                Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
            {
                self.pin().lend(|pin| pin.put_hashed(hash, key, item))
            }

            /// Puts an item into the set only if there is none of its key. Otherwise returns the
            /// one that is there, and hands this one back.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let owners = ItemSet::<Box<(u32, &str)>>::new();
            /// assert!(owners.insert_new((1, "ada")).is_ok());
            /// let rejected = owners.insert_new((1, "bob")).unwrap_err();
            /// assert_eq!((rejected.current.1, rejected.value.1), ("ada", "bob"));
            /// ```
            #[doc(alias = "try_insert")]
            pub fn insert_new(&self, item: impl Into<P>) -> Result<(), Rejected<Ref<'_, P>, P>> {
                self.pin().lend(|pin| pin.insert_new(item))
            }

            /// The item that has the key of this one; this one, if there was none.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let owners = ItemSet::<Box<(u32, &str)>>::new();
            /// assert_eq!(owners.get_or_insert((1, "ada")).1, "ada");
            /// assert_eq!(owners.get_or_insert((1, "bob")).1, "ada"); // she stays
            /// ```
            pub fn get_or_insert(&self, item: impl Into<P>) -> Ref<'_, P> {
                self.pin().lend(|pin| pin.get_or_insert(item))
            }

            /// The item of `key`; if there is none, the one that `make` returns. `make` runs with
            /// no lock held, so that it may use the set; if another thread puts an item of this key
            /// first, that one is returned and the one just made is dropped. Several threads may
            /// run `make` for one key at once: nobody waits for anybody's.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let words = ItemSet::<Box<String>>::new();
            /// let first = words.get_or_insert_with("tree", || "tree".to_string());
            /// let again = words.get_or_insert_with("tree", || "tree".to_string()); // is not run
            /// assert!(std::ptr::eq(&*first, &*again));
            /// ```
            ///
            /// # Panics
            /// If `make` returns an item of another key.
            #[doc(alias = "or_insert_with")]
            pub fn get_or_insert_with<Q, I: Into<P>>(
                &self,
                key: &Q,
                make: impl FnOnce() -> I,
            ) -> Ref<'_, P>
            where
                Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
            {
                self.pin().lend(|pin| pin.get_or_insert_with(key, make))
            }

            /// Puts an item into the set only if there is one of its key, and returns that one;
            /// otherwise hands the item back.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let ages = ItemSet::<Box<(&str, u32)>>::from([("ada", 36)]);
            /// assert_eq!(ages.replace(("ada", 37)).unwrap().1, 36);
            /// assert_eq!(ages.replace(("bob", 40)).unwrap_err().1, 40); // handed back
            /// ```
            pub fn replace(&self, item: impl Into<P>) -> Result<Ref<'_, P>, P> {
                self.pin().lend(|pin| pin.replace(item))
            }

            /// Replaces the item of `key` by what the closure makes of it, at one moment: nothing
            /// that others write meanwhile is lost. Returns the new one, or nothing if there was
            /// none.
            ///
            /// The closure runs with no lock held, may use the set, and may run more than once:
            /// what its last run has made is stored.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let counts = ItemSet::<Box<(String, u64)>>::from([("hits".to_string(), 0)]);
            /// std::thread::scope(|scope| {
            ///     for _ in 0..4 {
            ///         scope.spawn(|| (0..100).for_each(|_| {
            ///             counts.update("hits", |(name, count)| (name.clone(), count + 1));
            ///         }));
            ///     }
            /// });
            /// assert_eq!(counts.get("hits").map(|entry| entry.1), Some(400));
            /// ```
            ///
            /// # Panics
            /// If the closure makes an item of another key.
            #[doc(alias = "alter")]
            #[doc(alias = "get_mut")]
            pub fn update<Q, I: Into<P>>(
                &self,
                key: &Q,
                update: impl FnMut(&P::Item) -> I,
            ) -> Option<Ref<'_, P>>
            where
                Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
            {
                self.pin().lend(|pin| pin.update(key, update))
            }

            /// [`update`](Self::update)s the item that has the key of this one; puts this one, if
            /// there is none. Returns the new one.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let visits = ItemSet::<Box<(&str, u32)>>::new();
            /// let more = |(page, count): &(&'static str, u32)| (*page, count + 1);
            /// assert_eq!(visits.update_or_insert(more, ("home", 1)).1, 1);
            /// assert_eq!(visits.update_or_insert(more, ("home", 1)).1, 2);
            /// ```
            ///
            /// # Panics
            /// If the closure makes an item of another key.
            #[doc(alias = "and_modify")]
            pub fn update_or_insert<I: Into<P>>(
                &self,
                update: impl FnMut(&P::Item) -> I,
                item: impl Into<P>,
            ) -> Ref<'_, P> {
                self.pin().lend(|pin| pin.update_or_insert(update, item))
            }

            /// [`update`](Self::update)s the item of `key`; puts the one that `make` returns, if
            /// there is none. Returns the new one. `make` runs once at most.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let words = ItemSet::<Box<(usize, String)>>::new();
            /// for word in ["tea", "tree", "life"] {
            ///     let more = |(len, list): &(usize, String)| (*len, format!("{list}, {word}"));
            ///     let make = || (word.len(), word.to_string());
            ///     words.update_or_insert_with(&word.len(), more, make);
            /// }
            /// assert_eq!(words.get(&4).unwrap().1, "tree, life");
            /// ```
            ///
            /// # Panics
            /// If a closure makes an item of another key.
            pub fn update_or_insert_with<Q, I: Into<P>, J: Into<P>>(
                &self,
                key: &Q,
                update: impl FnMut(&P::Item) -> I,
                make: impl FnOnce() -> J,
            ) -> Ref<'_, P>
            where
                Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
            {
                self.pin().lend(|pin| pin.update_or_insert_with(key, update, make))
            }

            /// Shows the closure what is there, and does what it says, at one moment. Returns what
            /// was there, and what is there since.
            ///
            /// The closure runs with no lock held, may use the set, and may run more than once:
            /// what its last run has said is done.
            ///
            /// ```
            /// # use quintet::{Compute, ItemSet};
            /// let left = ItemSet::<Box<(&str, u32)>>::from([("tries", 2)]);
            /// let try_once = || {
            ///     left.compute("tries", |entry| match entry {
            ///         Some((name, 2..)) => Compute::Insert(Box::new((name, 1))),
            ///         Some(_) => Compute::Remove,
            ///         None => Compute::Keep,
            ///     })
            /// };
            /// assert_eq!(try_once().after.map(|entry| entry.1), Some(1));
            /// assert_eq!(try_once().before.map(|entry| entry.1), Some(1));
            /// assert!(left.is_empty() && try_once().before.is_none());
            /// ```
            ///
            /// # Panics
            /// If the closure makes an item of another key.
            #[doc(alias = "entry")]
            pub fn compute<Q>(
                &self,
                key: &Q,
                compute: impl FnMut(Option<&P::Item>) -> Compute<P>,
            ) -> Computed<Ref<'_, P>>
            where
                Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
            {
                self.pin().lend(|pin| pin.compute(key, compute))
            }

            /// Puts `new` in the place of `current`, if that very item is still in the set, and
            /// returns it. Otherwise returns what is there, and hands `new` back.
            ///
            /// An item is itself only: one that is equal to it, or that belongs to another set, is
            /// not.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let ages = ItemSet::<Box<(&str, u32)>>::from([("ada", 36)]);
            /// let ada = ages.get("ada").unwrap();
            /// assert!(ages.compare_exchange(&ada, ("ada", 37)).is_ok());
            /// let rejected = ages.compare_exchange(&ada, ("ada", 38)).unwrap_err();
            /// assert_eq!(rejected.current.map(|entry| entry.1), Some(37));
            /// ```
            ///
            /// # Panics
            /// If the two differ in their keys.
            #[doc(alias = "compare_and_swap")]
            pub fn compare_exchange(
                &self,
                current: &P::Item,
                new: impl Into<P>,
            ) -> Result<Ref<'_, P>, Rejected<Option<Ref<'_, P>>, P>> {
                self.pin().lend(|pin| pin.compare_exchange(current, new))
            }

            /// [Inserts](Self::insert) many items, their waits for memory overlapped; returns how
            /// many keys were new.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let words = ItemSet::<Box<String>>::new();
            /// assert_eq!(words.insert_many(["tea", "tree", "tea"].map(String::from)), 2);
            /// ```
            pub fn insert_many<I: Into<P>>(&self, items: impl IntoIterator<Item = I>) -> usize {
                self.pin().insert_many(items)
            }

            /// Makes room for `additional` more items at once, so that they can be put without
            /// growth.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let words = ItemSet::<Box<String>>::new();
            /// words.reserve(1000);
            /// assert!(words.capacity() >= 1000);
            /// ```
            ///
            /// # Panics
            /// If the memory cannot be had.
            pub fn reserve(&self, additional: usize) {
                self.pin().reserve(additional);
            }

            /// Makes room for `additional` more items at once, or says why that cannot be.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let words = ItemSet::<Box<String>>::new();
            /// words.try_reserve(1000)?;
            /// assert!(words.capacity() >= 1000);
            /// # Ok::<(), quintet::AllocError>(())
            /// ```
            pub fn try_reserve(&self, additional: usize) -> Result<(), AllocError> {
                self.pin().try_reserve(additional)
            }
        }
    };
}

/// The operations that take out.
macro_rules! removals {
    ($way:ty) => {
        /// # Taking out
        impl<P: Pointer, S: BuildHasher> $way {
            /// Removes the item of `key`, and returns it. The set drops it when nobody can refer to
            /// it any more.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let ages = ItemSet::<Box<(&str, u32)>>::from([("ada", 36)]);
            /// assert_eq!(ages.remove("ada").map(|old| old.1), Some(36));
            /// assert!(ages.remove("ada").is_none());
            /// ```
            #[inline]
            pub fn remove<Q>(&self, key: &Q) -> Option<Ref<'_, P>>
            where
                Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
            {
                self.pin().lend(|pin| pin.remove(key))
            }

            /// Removes the item of `key` if the closure agrees to that very item: `Ok` of what was
            /// removed, or of nothing if there was none, `Err` of what stays. The closure runs with
            /// no lock held, and may run more than once.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let stock = ItemSet::<Box<(&str, u32)>>::from([("apple", 0), ("pear", 5)]);
            /// assert_eq!(stock.remove_if("apple", |item| item.1 == 0).unwrap().unwrap().1, 0);
            /// assert_eq!(stock.remove_if("pear", |item| item.1 == 0).unwrap_err().1, 5);
            /// assert!(stock.remove_if("plum", |item| item.1 == 0).unwrap().is_none());
            /// ```
            pub fn remove_if<Q>(
                &self,
                key: &Q,
                condition: impl FnMut(&P::Item) -> bool,
            ) -> Result<Option<Ref<'_, P>>, Ref<'_, P>>
            where
                Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
            {
                self.pin().lend(|pin| pin.remove_if(key, condition))
            }

            /// Removes the items for which `keep` says no; each one that it has said no to, if it
            /// is still the one in the set. `keep` runs with no lock held.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let stock = ItemSet::<Box<(&str, u32)>>::from([("apple", 0), ("pear", 5)]);
            /// stock.retain(|item| item.1 > 0);
            /// assert!(stock.contains("pear") && stock.len() == 1);
            /// ```
            pub fn retain(&self, keep: impl FnMut(&P::Item) -> bool) {
                self.pin().retain(keep);
            }

            /// Removes the items that are there now.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let words = ItemSet::<Box<String>>::from(["apple", "pear"].map(String::from));
            /// words.clear();
            /// assert!(words.is_empty());
            /// ```
            pub fn clear(&self) {
                self.pin().clear();
            }

            /// Removes the items that are there now, and shows them. What the iterator has not come
            /// to is removed when it is dropped.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let pending = ItemSet::<Box<(&str, u32)>>::from([("ada", 10), ("bob", 20)]);
            /// let sum: u32 = pending.drain().map(|item| item.1).sum();
            /// assert_eq!((sum, pending.len()), (30, 0));
            /// ```
            pub fn drain(&self) -> DrainRefs<'_, P, S> {
                DrainRefs::new(self.pin(), self.pin())
            }

            /// [Removes](Self::remove) the items of many keys, their waits for memory overlapped;
            /// returns how many were there.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let words = ItemSet::<Box<String>>::from(["apple", "pear"].map(String::from));
            /// assert_eq!(words.remove_many(["apple", "plum"]), 1);
            /// assert_eq!(words.len(), 1);
            /// ```
            pub fn remove_many<'k, Q>(&self, keys: impl IntoIterator<Item = &'k Q>) -> usize
            where
                Q: ?Sized + Hash + Equivalent<KeyOf<P>> + 'k,
            {
                self.pin().remove_many(keys)
            }

            /// Moves to the smallest table that holds what is there.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let squares: ItemSet<Box<(u64, u64)>> = (0..10_000).map(|n| (n, n * n)).collect();
            /// squares.retain(|item| item.0 < 10);
            /// let before = squares.capacity();
            /// squares.shrink_to_fit();
            /// assert!(squares.capacity() < before && squares.len() == 10);
            /// ```
            pub fn shrink_to_fit(&self) {
                self.pin().shrink_to_fit();
            }
        }
    };
}

/// The form of shared items.
macro_rules! shared {
    ($way:ty) => {
        impl<T: Item + Send + Sync, S: BuildHasher> $way {
            /// A share of the item of `key`, to keep. [`Ref::as_arc`] shows it without counting it
            /// up.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// # use std::sync::Arc;
            /// let ages = ItemSet::<Arc<(&str, u32)>>::from([("ada", 36)]);
            /// let ada: Arc<(&str, u32)> = ages.get_arc("ada").unwrap();
            /// drop(ages);
            /// assert_eq!(ada.1, 36);
            /// ```
            pub fn get_arc<Q: ?Sized + Hash + Equivalent<T::Key>>(
                &self,
                key: &Q,
            ) -> Option<Arc<T>> {
                self.pin().get_arc(key).map(|found| Arc::clone(&found))
            }
        }
    };
}

/// Figures of the set, the same by every way in.
macro_rules! figures {
    ($way:ty $(where $($more:tt)*)?) => {
        /// # Figures
        impl<P: Pointer, S, $($($more)*)?> $way {
            /// Items. Exact when nobody writes; otherwise an estimate.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let words = ItemSet::<Box<String>>::from(["apple", "pear"].map(String::from));
            /// assert_eq!(words.len(), 2);
            /// ```
            pub fn len(&self) -> usize {
                self.set().core.len()
            }

            /// True if there are no items, with the exactness of [`len`](Self::len).
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let words = ItemSet::<Box<String>>::from(["apple", "pear"].map(String::from));
            /// assert!(!words.is_empty());
            /// ```
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Items that fit before the set grows.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let words = ItemSet::<Box<String>>::with_capacity(1000);
            /// assert!(words.capacity() >= 1000);
            /// ```
            pub fn capacity(&self) -> usize {
                self.stats().capacity
            }

            /// A look inside: load, migration, memory, what is held back.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let squares: ItemSet<Box<(u64, u64)>> = (0..1000).map(|n| (n, n * n)).collect();
            /// let stats = squares.stats();
            /// assert_eq!(stats.len, 1000);
            /// assert!(stats.places_used <= stats.places);
            /// ```
            pub fn stats(&self) -> ItemSetStats {
                let core = &self.set().core;
                core.stats(&core.domain.pin())
            }

            /// Bytes held: tables, and items and tables that were removed and are not yet given
            /// back. Items in the set are not counted.
            ///
            /// ```
            /// # use quintet::ItemSet;
            /// let squares: ItemSet<Box<(u64, u64)>> = (0..1000).map(|n| (n, n * n)).collect();
            /// assert!(squares.memory_bytes() >= 1000 * 19); // without the items
            /// ```
            pub fn memory_bytes(&self) -> usize {
                let stats = self.stats();
                stats.table_bytes + stats.backlog_bytes
            }
        }
    };
}

reads!(ItemSet<P, S>);
reads!(Handle<'_, P, S>);
writes!(ItemSet<P, S>);
writes!(Handle<'_, P, S>);
removals!(ItemSet<P, S>);
removals!(Handle<'_, P, S>);
shared!(ItemSet<Arc<T>, S>);
shared!(Handle<'_, Arc<T>, S>);
figures!(ItemSet<P, S>);
figures!(Handle<'_, P, S>);
figures!(Inside<A, H> where A: Hold, H: Deref<Target = ItemSet<P, S>>);
