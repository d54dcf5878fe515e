//! The operations, written into every way in: to the map itself, and to its handles and guards.

use super::operations::{Way, granted};
use super::{CopyMap, CopyMapStats, Drain, Handle, Iter, Keys, Plain, Values};
use crate::reclaim::{Access, ThreadSeat};
use crate::region::AllocError;
use crate::vocabulary::{Compute, Computed, Fallible, Rejected};
use equivalent::Equivalent;
use std::hash::{BuildHasher, Hash};

/// Writes the operations into a type. `$way` says how `$this`, a value of it, is inside.
macro_rules! operations {
    ([$($generics:tt)*] $type:ty: $this:ident => $way:expr) => {
        impl<$($generics)*> $type {
            /// The value of `key`. Linearizable.
            ///
            /// ```
            /// let places = quintet::CopyMap::<u64, [f64; 2]>::from([(7, [52.5, 13.4])]);
            /// assert_eq!(places.get(&7), Some([52.5, 13.4]));
            /// assert_eq!(places.get(&8), None);
            /// ```
            #[doc(alias = "read")]
            #[doc(alias = "peek")]
            #[doc(alias = "view")]
            #[inline]
            pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<V> {
                let $this = self;
                $way.get(key)
            }

            /// True if `key` is present. Linearizable.
            ///
            /// ```
            /// let places = quintet::CopyMap::<u64, [f64; 2]>::from([(7, [52.5, 13.4])]);
            /// assert!(places.contains_key(&7) && !places.contains_key(&8));
            /// ```
            #[inline]
            pub fn contains_key<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> bool {
                let $this = self;
                $way.get(key).is_some()
            }

            /// Gives `key` a value and returns the one it had. Linearizable.
            ///
            /// ```
            /// let places = quintet::CopyMap::new();
            /// assert_eq!(places.insert(7, [52.5, 13.4]), None);
            /// assert_eq!(places.insert(7, [48.1, 11.6]), Some([52.5, 13.4]));
            /// assert_eq!(places.get(&7), Some([48.1, 11.6]));
            /// ```
            ///
            /// # Panics
            /// If a larger table is needed and cannot be had; see [`fallible`](Self::fallible).
            #[doc(alias = "upsert")]
            #[inline]
            pub fn insert(&self, key: K, value: V) -> Option<V> {
                let $this = self;
                granted($way.insert(key, value))
            }

            /// Gives `key` a value only if it has none. If it has one, that stays, and is in the
            /// error. Linearizable.
            ///
            /// ```
            /// let owners = quintet::CopyMap::new();
            /// assert!(owners.insert_new([1, 2], 1).is_ok());
            /// let rejected = owners.insert_new([1, 2], 2).unwrap_err();
            /// assert_eq!((rejected.current, rejected.value), (1, 2));
            /// assert_eq!(owners.get(&[1, 2]), Some(1));
            /// ```
            ///
            /// # Errors
            /// [`Rejected`] if the key has a value.
            ///
            /// # Panics
            /// As [`insert`](Self::insert).
            #[doc(alias = "try_insert")]
            #[doc(alias = "insert_if_absent")]
            #[inline]
            pub fn insert_new(&self, key: K, value: V) -> Result<(), Rejected<V, V>> {
                let $this = self;
                granted($way.insert_new(key, value))
            }

            /// The value of `key`, which becomes `value` first if it has none. Linearizable.
            ///
            /// ```
            /// let owners = quintet::CopyMap::new();
            /// assert_eq!(owners.get_or_insert(7, 1), 1);
            /// assert_eq!(owners.get_or_insert(7, 2), 1); // it stays
            /// ```
            ///
            /// # Panics
            /// As [`insert`](Self::insert).
            #[doc(alias = "entry")]
            #[doc(alias = "or_insert")]
            #[inline]
            pub fn get_or_insert(&self, key: K, value: V) -> V {
                let $this = self;
                granted($way.get_or_insert_with(key, || value))
            }

            /// The value of `key`, which is made first if it has none. Linearizable.
            ///
            /// Several threads may make one at the same time; nobody waits, one wins, and all get
            /// that one. `make` may use the map.
            ///
            /// ```
            /// let roots = quintet::CopyMap::new();
            /// assert_eq!(roots.get_or_insert_with(9, || f64::sqrt(9.0)), 3.0);
            /// assert_eq!(roots.get_or_insert_with(9, || unreachable!("it is there")), 3.0);
            /// ```
            ///
            /// # Panics
            /// As [`insert`](Self::insert), and if `make` does; then nothing has happened.
            #[doc(alias = "entry")]
            #[doc(alias = "or_insert_with")]
            #[inline]
            pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
                let $this = self;
                granted($way.get_or_insert_with(key, make))
            }

            /// Replaces the value of `key` by what `next` makes of it, and returns the new one; an
            /// absent key stays absent.
            ///
            /// Linearizable. `next` may run more than once, each time with the value found then:
            /// what the last run has made is stored. It may use the map.
            ///
            /// ```
            /// let places = quintet::CopyMap::<u64, [i32; 2]>::from([(7, [1, 1])]);
            /// assert_eq!(places.update(&7, |[x, y]| [x + 1, y]), Some([2, 1]));
            /// assert_eq!(places.update(&8, |[x, y]| [x + 1, y]), None);
            /// ```
            ///
            /// # Panics
            /// If `next` does; then nothing has happened.
            #[doc(alias = "alter")]
            #[doc(alias = "and_modify")]
            #[doc(alias = "get_mut")]
            #[inline]
            pub fn update<Q: Hash + Equivalent<K> + ?Sized>(
                &self,
                key: &Q,
                next: impl FnMut(V) -> V,
            ) -> Option<V> {
                let $this = self;
                $way.update(key, next)
            }

            /// [`update`](Self::update), or gives an absent key this value. Returns what the key
            /// has then.
            ///
            /// ```
            /// let visits = quintet::CopyMap::new();
            /// assert_eq!(visits.update_or_insert([1, 2], |count| count + 1, 1), 1);
            /// assert_eq!(visits.update_or_insert([1, 2], |count| count + 1, 1), 2);
            /// ```
            ///
            /// # Panics
            /// As [`insert`](Self::insert) and [`update`](Self::update).
            #[doc(alias = "upsert")]
            #[doc(alias = "entry")]
            #[inline]
            pub fn update_or_insert(&self, key: K, next: impl FnMut(V) -> V, value: V) -> V {
                let $this = self;
                granted($way.update_or_insert_with(key, next, || value))
            }

            /// [`update`](Self::update), or gives an absent key a value that is made. Returns what
            /// the key has then.
            ///
            /// ```
            /// let ranges = quintet::CopyMap::new();
            /// for price in [30, 10, 20] {
            ///     let widen = |[low, high]: [i32; 2]| [low.min(price), high.max(price)];
            ///     ranges.update_or_insert_with(7, widen, || [price, price]);
            /// }
            /// assert_eq!(ranges.get(&7), Some([10, 30]));
            /// ```
            ///
            /// # Panics
            /// As [`insert`](Self::insert) and [`update`](Self::update), and if `make` does; then
            /// nothing has happened.
            #[doc(alias = "upsert")]
            #[doc(alias = "entry")]
            #[inline]
            pub fn update_or_insert_with(
                &self,
                key: K,
                next: impl FnMut(V) -> V,
                make: impl FnOnce() -> V,
            ) -> V {
                let $this = self;
                granted($way.update_or_insert_with(key, next, make))
            }

            /// Lets `decide` see what `key` has and say what shall be done. Returns what it was
            /// shown, and what is there since.
            ///
            /// Linearizable. `decide` may run more than once, each time with what was found then:
            /// what the last run has said is done. It may use the map.
            ///
            /// ```
            /// use quintet::Compute;
            ///
            /// let tickets = quintet::CopyMap::<u64, i32>::from([(7, 1)]);
            /// let take = || {
            ///     tickets.compute(7, |left| match left {
            ///         Some(0) | None => Compute::Keep,
            ///         Some(1) => Compute::Remove, // the last one
            ///         Some(left) => Compute::Insert(left - 1),
            ///     })
            /// };
            /// let taken = take();
            /// assert_eq!((taken.before, taken.after), (Some(1), None));
            /// assert_eq!(take().before, None);
            /// ```
            ///
            /// # Panics
            /// As [`insert`](Self::insert), and if `decide` does; then nothing has happened.
            #[doc(alias = "alter")]
            #[doc(alias = "entry")]
            #[inline]
            pub fn compute(
                &self,
                key: K,
                decide: impl FnMut(Option<V>) -> Compute<V>,
            ) -> Computed<V> {
                let $this = self;
                granted($way.compute(key, decide))
            }

            /// Replaces the value of `key` if it is `current`, and returns that. Linearizable.
            ///
            /// ```
            /// let owners = quintet::CopyMap::<u64, [u8; 2]>::from([(7, [1, 1])]);
            /// assert_eq!(owners.compare_exchange(&7, [1, 1], [2, 2]), Ok([1, 1]));
            /// let rejected = owners.compare_exchange(&7, [1, 1], [3, 3]).unwrap_err();
            /// assert_eq!(rejected.current, Some([2, 2]));
            /// ```
            ///
            /// # Errors
            /// [`Rejected`] with what is there instead.
            #[doc(alias = "replace")]
            #[inline]
            pub fn compare_exchange<Q: Hash + Equivalent<K> + ?Sized>(
                &self,
                key: &Q,
                current: V,
                value: V,
            ) -> Result<V, Rejected<Option<V>, V>>
            where
                V: PartialEq,
            {
                let $this = self;
                $way.compare_exchange(key, current, value)
            }

            /// Takes `key` out and returns its value. Linearizable.
            ///
            /// ```
            /// let places = quintet::CopyMap::<u64, [f64; 2]>::from([(7, [52.5, 13.4])]);
            /// assert_eq!(places.remove(&7), Some([52.5, 13.4]));
            /// assert_eq!(places.remove(&7), None);
            /// ```
            #[inline]
            pub fn remove<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<V> {
                let $this = self;
                $way.remove(key)
            }

            /// Takes `key` out if `agree` says so of its value: `Ok` of that, or of `None` if the
            /// key was absent.
            ///
            /// Linearizable. `agree` may run more than once, each time with the value found then:
            /// what the last run has said is done. It may use the map.
            ///
            /// ```
            /// let stock = quintet::CopyMap::<u64, i32>::from([(7, 0), (8, 5)]);
            /// assert_eq!(stock.remove_if(&7, |left| left == 0), Ok(Some(0)));
            /// assert_eq!(stock.remove_if(&8, |left| left == 0), Err(5));
            /// assert_eq!(stock.remove_if(&9, |left| left == 0), Ok(None));
            /// ```
            ///
            /// # Errors
            /// The value that stays.
            ///
            /// # Panics
            /// If `agree` does; then nothing has happened.
            #[inline]
            pub fn remove_if<Q: Hash + Equivalent<K> + ?Sized>(
                &self,
                key: &Q,
                agree: impl FnMut(V) -> bool,
            ) -> Result<Option<V>, V> {
                let $this = self;
                $way.remove_if(key, agree)
            }

            /// Takes out every entry that `keep` refuses. Each removal is linearizable, the walk is
            /// that of [`iter`](Self::iter).
            ///
            /// `keep` may run more than once for an entry that changes meanwhile; it decides about
            /// the value that is then removed. It may use the map.
            ///
            /// ```
            /// let stock = quintet::CopyMap::<u64, i32>::from([(7, 0), (8, 5)]);
            /// stock.retain(|_, left| left > 0);
            /// assert_eq!(stock.iter().collect::<Vec<_>>(), [(8, 5)]);
            /// ```
            pub fn retain(&self, keep: impl FnMut(K, V) -> bool) {
                let $this = self;
                $way.retain(keep);
            }

            /// Takes out every entry found by a walk like that of [`iter`](Self::iter), and gives
            /// back memory that is no longer needed.
            ///
            /// ```
            /// let ages = quintet::CopyMap::<u64, i32>::from([(7, 36), (8, 40)]);
            /// ages.clear();
            /// assert!(ages.is_empty());
            /// ```
            pub fn clear(&self) {
                let $this = self;
                $way.clear();
            }

            /// Takes out entries while walking over them as [`iter`](Self::iter) does; each is
            /// shown by one `drain` only. Entries not reached when the iterator is dropped stay.
            ///
            /// ```
            /// let pending = quintet::CopyMap::<u64, i32>::from([(7, 10), (8, 20)]);
            /// let sum: i32 = pending.drain().map(|(_, amount)| amount).sum();
            /// assert_eq!((sum, pending.len()), (30, 0));
            /// ```
            pub fn drain(&self) -> Drain<'_, K, V, S> {
                let $this = self;
                Drain::new($way.map)
            }

            /// Looks up many keys: `values[i]` becomes the value of `keys[i]`. Each lookup is
            /// linearizable by itself.
            ///
            /// For large maps this is faster than one `get` after the other: the memory of later
            /// keys is fetched while earlier ones are compared.
            ///
            /// ```
            /// let prices = quintet::CopyMap::<u64, i32>::from([(7, 3), (8, 4)]);
            /// let mut found = [None; 3];
            /// prices.get_many(&[8, 9, 7], &mut found);
            /// assert_eq!(found, [Some(4), None, Some(3)]);
            /// ```
            ///
            /// # Panics
            /// If the slices differ in length.
            pub fn get_many<Q: Hash + Equivalent<K>>(&self, keys: &[Q], values: &mut [Option<V>]) {
                let $this = self;
                $way.get_many(keys, values);
            }

            /// Looks for many keys: `there[i]` says whether `keys[i]` is present. Each look is
            /// linearizable by itself, and the memory of later keys is fetched ahead, as by
            /// [`get_many`](Self::get_many).
            ///
            /// ```
            /// let prices = quintet::CopyMap::<u64, i32>::from([(7, 3), (8, 4)]);
            /// let mut there = [false; 3];
            /// prices.contains_many(&[8, 9, 7], &mut there);
            /// assert_eq!(there, [true, false, true]);
            /// ```
            ///
            /// # Panics
            /// If the slices differ in length.
            pub fn contains_many<Q: Hash + Equivalent<K>>(&self, keys: &[Q], there: &mut [bool]) {
                let $this = self;
                $way.contains_many(keys, there);
            }

            /// Inserts many entries, each as [`insert`](Self::insert) does, and returns how many
            /// keys were new. They are taken from the iterator in groups, and the memory of a group
            /// is fetched ahead.
            ///
            /// ```
            /// let squares = quintet::CopyMap::<u64, u64>::from([(1, 1)]);
            /// assert_eq!(squares.insert_many((0..10).map(|n| (n, n * n))), 9);
            /// assert_eq!(squares.get(&5), Some(25));
            /// ```
            ///
            /// # Panics
            /// As [`insert`](Self::insert), and if the iterator does; all groups before are in the
            /// map then.
            pub fn insert_many(&self, entries: impl IntoIterator<Item = (K, V)>) -> usize {
                let $this = self;
                granted($way.insert_many(entries))
            }

            /// Takes many keys out, each as [`remove`](Self::remove) does, and returns how many
            /// were there. They are taken from the iterator in groups, and the memory of a group is
            /// fetched ahead.
            ///
            /// ```
            /// let squares: quintet::CopyMap<u64, u64> = (0..10).map(|n| (n, n * n)).collect();
            /// assert_eq!(squares.remove_many([3, 4, 50]), 2);
            /// assert_eq!(squares.len(), 8);
            /// ```
            pub fn remove_many(&self, keys: impl IntoIterator<Item = K>) -> usize {
                let $this = self;
                $way.remove_many(keys)
            }

            /// Walks over the entries, in no order.
            ///
            /// Weakly consistent: a key that is present all the time is seen exactly once, a key
            /// that comes or goes meanwhile is seen at most once; each value is one that the key
            /// had during the walk. The iterator holds back no memory, and may cross threads.
            ///
            /// ```
            /// let ages = quintet::CopyMap::<u64, i32>::from([(7, 36), (8, 40)]);
            /// let mut entries: Vec<_> = ages.iter().collect();
            /// entries.sort();
            /// assert_eq!(entries, [(7, 36), (8, 40)]);
            /// ```
            #[doc(alias = "scan")]
            pub fn iter(&self) -> Iter<'_, K, V, S> {
                let $this = self;
                Iter::new($way.map)
            }

            /// The keys, as [`iter`](Self::iter) finds them.
            ///
            /// ```
            /// let ages = quintet::CopyMap::<u64, i32>::from([(7, 36), (8, 40)]);
            /// assert_eq!(ages.keys().max(), Some(8));
            /// ```
            pub fn keys(&self) -> Keys<'_, K, V, S> {
                Keys(self.iter())
            }

            /// The values, as [`iter`](Self::iter) finds them.
            ///
            /// ```
            /// let ages = quintet::CopyMap::<u64, i32>::from([(7, 36), (8, 40)]);
            /// assert_eq!(ages.values().sum::<i32>(), 76);
            /// ```
            pub fn values(&self) -> Values<'_, K, V, S> {
                Values(self.iter())
            }

            /// Entries. Exact when nobody writes; otherwise an estimate.
            ///
            /// ```
            /// let ages = quintet::CopyMap::<u64, i32>::from([(7, 36), (8, 40)]);
            /// assert_eq!(ages.len(), 2);
            /// ```
            pub fn len(&self) -> usize {
                let $this = self;
                $way.map.core.len()
            }

            /// True if there are no entries, with the exactness of [`len`](Self::len).
            ///
            /// ```
            /// let ages = quintet::CopyMap::<u64, i32>::from([(7, 36)]);
            /// assert!(!ages.is_empty());
            /// ```
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Entries that fit, those that are there included, before the map grows.
            ///
            /// ```
            /// let ages = quintet::CopyMap::<u64, u64>::with_capacity(1000);
            /// assert!(ages.capacity() >= 1000);
            /// ```
            pub fn capacity(&self) -> usize {
                let $this = self;
                $way.map.core.capacity()
            }

            /// Makes room for `additional` entries more, so that inserting them does not grow the
            /// map.
            ///
            /// ```
            /// let ages = quintet::CopyMap::<u64, i32>::from([(7, 36)]);
            /// ages.reserve(1000);
            /// assert!(ages.capacity() >= 1001);
            /// ```
            ///
            /// # Panics
            /// If the memory cannot be had; [`try_reserve`](Self::try_reserve) returns an error
            /// instead.
            pub fn reserve(&self, additional: usize) {
                let $this = self;
                granted($way.try_reserve(additional));
            }

            /// [`reserve`](Self::reserve) that returns an error.
            ///
            /// ```
            /// let ages = quintet::CopyMap::<u64, i32>::from([(7, 36)]);
            /// ages.try_reserve(1000)?;
            /// assert!(ages.capacity() >= 1001);
            /// # Ok::<(), quintet::AllocError>(())
            /// ```
            ///
            /// # Errors
            /// If the memory cannot be had; the map is then as before.
            pub fn try_reserve(&self, additional: usize) -> Result<(), AllocError> {
                let $this = self;
                $way.try_reserve(additional)
            }

            /// Moves to the smallest table that holds the entries, and gives the larger one back,
            /// unless the memory for the smaller one cannot be had.
            ///
            /// ```
            /// let ages = quintet::CopyMap::<u64, u64>::with_capacity(10_000);
            /// ages.insert(7, 36);
            /// ages.shrink_to_fit();
            /// assert!(ages.capacity() < 10_000);
            /// ```
            pub fn shrink_to_fit(&self) {
                let $this = self;
                $way.shrink_to_fit();
            }

            /// Bytes held: tables in use, and tables that were left and are not yet given back.
            ///
            /// ```
            /// let ages: quintet::CopyMap<u64, u64> = (0..1000).map(|n| (n, n)).collect();
            /// assert!(ages.memory_bytes() >= 1000 * 16);
            /// ```
            pub fn memory_bytes(&self) -> usize {
                let $this = self;
                $way.map.core.bytes()
            }

            /// A look inside: load, tables, memory.
            ///
            /// ```
            /// let ages: quintet::CopyMap<u64, u64> = (0..1000).map(|n| (n, n)).collect();
            /// let stats = ages.stats();
            /// assert_eq!(stats.len, 1000);
            /// assert!(stats.len <= stats.capacity);
            /// ```
            pub fn stats(&self) -> CopyMapStats {
                let $this = self;
                $way.map.core.stats()
            }

            /// Frees tables that this seat has left behind and nobody can be inside of any more.
            /// The map does so by itself, in small steps; this is for who wants the memory back
            /// now. Does nothing while the seat is inside: by a guard, or inside of a closure.
            ///
            /// ```
            /// let ages: quintet::CopyMap<u64, u64> = (0..10_000).map(|n| (n, n)).collect();
            /// ages.flush(); // what it has outgrown
            /// assert_eq!(ages.stats().backlog_bytes, 0);
            /// ```
            pub fn flush(&self) {
                let $this = self;
                $way.access.release();
            }

            /// The same operations, with an [`AllocError`] where these panic because memory is
            /// needed and cannot be had.
            ///
            /// ```
            /// let map = quintet::CopyMap::<u32, u32>::new();
            /// assert_eq!(map.fallible().insert(1, 10)?, None);
            /// # Ok::<(), quintet::AllocError>(())
            /// ```
            #[doc(alias = "try_insert")]
            #[inline]
            pub fn fallible(&self) -> Fallible<'_, Self> {
                Fallible(self)
            }
        }
    };
}

operations!([K: Plain + Hash + Eq, V: Plain, S: BuildHasher] CopyMap<K, V, S>: map => Way {
    map,
    access: &ThreadSeat::new(&map.core.domain),
});
operations!([K: Plain + Hash + Eq, V: Plain, S: BuildHasher, A: Access] Handle<'_, K, V, S, A>: handle => handle.way());
