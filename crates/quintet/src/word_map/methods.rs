//! The operations, written into every way in: to the map itself, and to its handles and guards.

use super::operations::{Granted, Way, granted};
use super::{Drain, Handle, Integer, Iter, Keys, Values, Word, WordMap, WordMapStats};
use crate::reclaim::{Access, ThreadSeat};
use crate::region::AllocError;
use crate::vocabulary::{Compute, Computed, Fallible, Rejected};

/// Writes the operations into a type. `$way` says how `$this`, a value of it, is inside.
macro_rules! operations {
    ([$($generics:tt)*] $type:ty: $this:ident => $way:expr) => {
        impl<$($generics)*> $type {
            /// The value of `key`. Linearizable.
            ///
            /// ```
            /// let ages = quintet::WordMap::from([(7, 36)]);
            /// assert_eq!(ages.get(7), Some(36));
            /// assert_eq!(ages.get(8), None);
            /// ```
            #[doc(alias = "read")]
            #[doc(alias = "peek")]
            #[doc(alias = "view")]
            #[inline]
            pub fn get(&self, key: K) -> Option<V> {
                let $this = self;
                $way.get(key)
            }

            /// True if `key` is present. Linearizable.
            ///
            /// ```
            /// let ages = quintet::WordMap::from([(7, 36)]);
            /// assert!(ages.contains_key(7) && !ages.contains_key(8));
            /// ```
            #[inline]
            pub fn contains_key(&self, key: K) -> bool {
                let $this = self;
                $way.get(key).is_some()
            }

            /// Gives `key` a value and returns the one it had. Linearizable.
            ///
            /// ```
            /// let ages = quintet::WordMap::new();
            /// assert_eq!(ages.insert(7, 36), None);
            /// assert_eq!(ages.insert(7, 37), Some(36));
            /// assert_eq!(ages.get(7), Some(37));
            /// ```
            ///
            /// # Panics
            /// If a larger table is needed and cannot be had; see [`fallible`](Self::fallible).
            #[doc(alias = "upsert")]
            #[inline]
            pub fn insert(&self, key: K, value: V) -> Option<V> {
                let $this = self;
                $way.insert::<Granted>(key, value)
            }

            /// Gives `key` a value only if it has none. If it has one, that stays, and is in the
            /// error. Linearizable.
            ///
            /// ```
            /// let owners = quintet::WordMap::new();
            /// assert!(owners.insert_new(7, 1).is_ok());
            /// let rejected = owners.insert_new(7, 2).unwrap_err();
            /// assert_eq!((rejected.current, rejected.value), (1, 2));
            /// assert_eq!(owners.get(7), Some(1));
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
                $way.insert_new::<Granted>(key, value)
            }

            /// The value of `key`, which becomes `value` first if it has none. Linearizable.
            ///
            /// ```
            /// let owners = quintet::WordMap::new();
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
                $way.get_or_insert_with::<Granted>(key, || value)
            }

            /// The value of `key`, which is made first if it has none. Linearizable.
            ///
            /// Several threads may make one at the same time; nobody waits, one wins, and all get
            /// that one. `make` may use the map.
            ///
            /// ```
            /// let squares = quintet::WordMap::new();
            /// assert_eq!(squares.get_or_insert_with(9, || 9 * 9), 81);
            /// assert_eq!(squares.get_or_insert_with(9, || unreachable!("it is there")), 81);
            /// ```
            ///
            /// # Panics
            /// As [`insert`](Self::insert), and if `make` does; then nothing has happened.
            #[doc(alias = "entry")]
            #[doc(alias = "or_insert_with")]
            #[inline]
            pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
                let $this = self;
                $way.get_or_insert_with::<Granted>(key, make)
            }

            /// Replaces the value of `key` by what `next` makes of it, and returns the new one; an
            /// absent key stays absent.
            ///
            /// Linearizable. `next` may run more than once, each time with the value found then:
            /// what the last run has made is stored. It may use the map.
            ///
            /// ```
            /// let prices = quintet::WordMap::from([(7, 100)]);
            /// assert_eq!(prices.update(7, |price| price / 2), Some(50));
            /// assert_eq!(prices.update(8, |price| price / 2), None);
            /// ```
            ///
            /// # Panics
            /// If `next` does; then nothing has happened.
            #[doc(alias = "alter")]
            #[doc(alias = "and_modify")]
            #[doc(alias = "get_mut")]
            #[inline]
            pub fn update(&self, key: K, next: impl FnMut(V) -> V) -> Option<V> {
                let $this = self;
                $way.update(key, next)
            }

            /// [`update`](Self::update), or gives an absent key this value. Returns what the key
            /// has then.
            ///
            /// ```
            /// let visits = quintet::WordMap::new();
            /// assert_eq!(visits.update_or_insert(7, |count| count + 1, 1), 1);
            /// assert_eq!(visits.update_or_insert(7, |count| count + 1, 1), 2);
            /// ```
            ///
            /// # Panics
            /// As [`insert`](Self::insert) and [`update`](Self::update).
            #[doc(alias = "upsert")]
            #[doc(alias = "entry")]
            #[inline]
            pub fn update_or_insert(&self, key: K, next: impl FnMut(V) -> V, value: V) -> V {
                let $this = self;
                $way.update_or_insert_with::<Granted>(key, next, || value)
            }

            /// [`update`](Self::update), or gives an absent key a value that is made. Returns what
            /// the key has then.
            ///
            /// ```
            /// let longest = quintet::WordMap::new();
            /// for word in ["a", "tree", "of", "life"] {
            ///     let len = word.len();
            ///     longest.update_or_insert_with(7, |most: usize| most.max(len), || len);
            /// }
            /// assert_eq!(longest.get(7), Some(4));
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
                $way.update_or_insert_with::<Granted>(key, next, make)
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
            /// let tickets = quintet::WordMap::from([(7, 1)]);
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
                $way.compute::<Granted>(key, decide)
            }

            /// Replaces the value of `key` if it is `current`, and returns that. Values are
            /// compared as words. Linearizable.
            ///
            /// ```
            /// let owners = quintet::WordMap::from([(7, 1)]);
            /// assert_eq!(owners.compare_exchange(7, 1, 2), Ok(1));
            /// let rejected = owners.compare_exchange(7, 1, 3).unwrap_err();
            /// assert_eq!(rejected.current, Some(2));
            /// ```
            ///
            /// # Errors
            /// [`Rejected`] with what is there instead.
            #[doc(alias = "replace")]
            #[inline]
            pub fn compare_exchange(
                &self,
                key: K,
                current: V,
                value: V,
            ) -> Result<V, Rejected<Option<V>, V>> {
                let $this = self;
                $way.compare_exchange(key, current, value)
            }

            /// Takes `key` out and returns its value. Linearizable.
            ///
            /// ```
            /// let ages = quintet::WordMap::from([(7, 36)]);
            /// assert_eq!(ages.remove(7), Some(36));
            /// assert_eq!(ages.remove(7), None);
            /// ```
            #[inline]
            pub fn remove(&self, key: K) -> Option<V> {
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
            /// let stock = quintet::WordMap::from([(7, 0), (8, 5)]);
            /// assert_eq!(stock.remove_if(7, |left| left == 0), Ok(Some(0)));
            /// assert_eq!(stock.remove_if(8, |left| left == 0), Err(5));
            /// assert_eq!(stock.remove_if(9, |left| left == 0), Ok(None));
            /// ```
            ///
            /// # Errors
            /// The value that stays.
            ///
            /// # Panics
            /// If `agree` does; then nothing has happened.
            #[inline]
            pub fn remove_if(
                &self,
                key: K,
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
            /// let stock = quintet::WordMap::from([(7, 0), (8, 5)]);
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
            /// let ages = quintet::WordMap::from([(7, 36), (8, 40)]);
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
            /// let pending = quintet::WordMap::from([(7, 10), (8, 20)]);
            /// let sum: i32 = pending.drain().map(|(_, amount)| amount).sum();
            /// assert_eq!((sum, pending.len()), (30, 0));
            /// ```
            pub fn drain(&self) -> Drain<'_, K, V> {
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
            /// let prices = quintet::WordMap::from([(7, 3), (8, 4)]);
            /// let mut found = [None; 3];
            /// prices.get_many(&[8, 9, 7], &mut found);
            /// assert_eq!(found, [Some(4), None, Some(3)]);
            /// ```
            ///
            /// # Panics
            /// If the slices differ in length.
            pub fn get_many(&self, keys: &[K], values: &mut [Option<V>]) {
                let $this = self;
                $way.get_many(keys, values);
            }

            /// Looks for many keys: `there[i]` says whether `keys[i]` is present. Each look is
            /// linearizable by itself, and the memory of later keys is fetched ahead, as by
            /// [`get_many`](Self::get_many).
            ///
            /// ```
            /// let prices = quintet::WordMap::from([(7, 3), (8, 4)]);
            /// let mut there = [false; 3];
            /// prices.contains_many(&[8, 9, 7], &mut there);
            /// assert_eq!(there, [true, false, true]);
            /// ```
            ///
            /// # Panics
            /// If the slices differ in length.
            pub fn contains_many(&self, keys: &[K], there: &mut [bool]) {
                let $this = self;
                $way.contains_many(keys, there);
            }

            /// Inserts many entries, each as [`insert`](Self::insert) does, and returns how many
            /// keys were new. They are taken from the iterator in groups, and the memory of a group
            /// is fetched ahead.
            ///
            /// ```
            /// let squares = quintet::WordMap::from([(1, 1)]);
            /// assert_eq!(squares.insert_many((0..10).map(|n| (n, n * n))), 9);
            /// assert_eq!(squares.get(5), Some(25));
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
            /// let squares: quintet::WordMap<_, _> = (0..10).map(|n| (n, n * n)).collect();
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
            /// had during the walk. While the iterator lives, tables that the map leaves are not
            /// freed. Ends a migration that is under way before it begins. The iterator may cross
            /// threads.
            ///
            /// ```
            /// let ages = quintet::WordMap::from([(7, 36), (8, 40)]);
            /// let mut entries: Vec<_> = ages.iter().collect();
            /// entries.sort();
            /// assert_eq!(entries, [(7, 36), (8, 40)]);
            /// ```
            #[doc(alias = "scan")]
            pub fn iter(&self) -> Iter<'_, K, V> {
                let $this = self;
                Iter::new($way.map)
            }

            /// The keys, as [`iter`](Self::iter) finds them.
            ///
            /// ```
            /// let ages = quintet::WordMap::from([(7, 36), (8, 40)]);
            /// assert_eq!(ages.keys().max(), Some(8));
            /// ```
            pub fn keys(&self) -> Keys<'_, K, V> {
                Keys(self.iter())
            }

            /// The values, as [`iter`](Self::iter) finds them.
            ///
            /// ```
            /// let ages = quintet::WordMap::from([(7, 36), (8, 40)]);
            /// assert_eq!(ages.values().sum::<i32>(), 76);
            /// ```
            pub fn values(&self) -> Values<'_, K, V> {
                Values(self.iter())
            }

            /// Entries. Exact when nobody writes; otherwise an estimate.
            ///
            /// ```
            /// let ages = quintet::WordMap::from([(7, 36), (8, 40)]);
            /// assert_eq!(ages.len(), 2);
            /// ```
            pub fn len(&self) -> usize {
                let $this = self;
                $way.map.core.len()
            }

            /// True if there are no entries, with the exactness of [`len`](Self::len).
            ///
            /// ```
            /// let ages = quintet::WordMap::from([(7, 36)]);
            /// assert!(!ages.is_empty());
            /// ```
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Entries that fit, those that are there included, before the map grows.
            ///
            /// ```
            /// let ages = quintet::WordMap::<u64, u64>::with_capacity(1000);
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
            /// let ages = quintet::WordMap::from([(7, 36)]);
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
            /// let ages = quintet::WordMap::from([(7, 36)]);
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
            /// let ages: quintet::WordMap<u64, u64> = (0..10_000).map(|n| (n, n)).collect();
            /// ages.retain(|n, _| n < 10);
            /// let before = ages.capacity();
            /// ages.shrink_to_fit();
            /// assert!(ages.capacity() < before && ages.len() == 10);
            /// ```
            pub fn shrink_to_fit(&self) {
                let $this = self;
                $way.shrink_to_fit();
            }

            /// Bytes held: tables in use, and tables that were left and are not yet given back.
            ///
            /// ```
            /// let ages: quintet::WordMap<u64, u64> = (0..1000).map(|n| (n, n)).collect();
            /// assert!(ages.memory_bytes() >= 1000 * 16);
            /// ```
            pub fn memory_bytes(&self) -> usize {
                let $this = self;
                $way.map.core.bytes()
            }

            /// A look inside: load, probe lengths, the chain of tables, memory. Walks over the
            /// slots of one table.
            ///
            /// ```
            /// let ages: quintet::WordMap<u64, u64> = (0..1000).map(|n| (n, n)).collect();
            /// let stats = ages.stats();
            /// assert_eq!(stats.len, 1000);
            /// assert!(stats.load > 0.0 && stats.load < 1.0);
            /// ```
            pub fn stats(&self) -> WordMapStats {
                let $this = self;
                $way.map.core.stats()
            }

            /// Frees tables that this seat has left behind and nobody can be inside of any more.
            /// The map does so by itself, in small steps; this is for who wants the memory back
            /// now. Does nothing while the seat is inside: by a guard, or inside of a closure.
            ///
            /// ```
            /// let ages: quintet::WordMap<u64, u64> = (0..10_000).map(|n| (n, n)).collect();
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
            /// let map = quintet::WordMap::<u32, u32>::new();
            /// assert_eq!(map.fallible().insert(1, 10)?, None);
            /// # Ok::<(), quintet::AllocError>(())
            /// ```
            #[doc(alias = "try_insert")]
            #[inline]
            pub fn fallible(&self) -> Fallible<'_, Self> {
                Fallible(self)
            }
        }

        /// Counting and the like. All return the value before; an absent key counts as zero where
        /// that makes sense. All are linearizable.
        impl<$($generics)*> $type {
            /// Adds to the value of `key`, wrapping around. An absent key counts as zero.
            ///
            /// ```
            /// let visits = quintet::WordMap::new();
            /// assert_eq!(visits.fetch_add(7, 1), None);
            /// assert_eq!(visits.fetch_add(7, 5), Some(1));
            /// assert_eq!(visits.get(7), Some(6));
            /// ```
            ///
            /// # Panics
            /// As [`insert`](Self::insert), like all of these.
            #[inline]
            pub fn fetch_add(&self, key: K, by: V) -> Option<V>
            where
                V: Integer,
            {
                let $this = self;
                $way.fetch_add::<Granted>(key, by)
            }

            /// Adds to the values of many keys, each as [`fetch_add`](Self::fetch_add) does, and
            /// returns how many were absent. They are taken from the iterator in groups, and the
            /// memory of a group is fetched ahead.
            ///
            /// ```
            /// let counts = quintet::WordMap::new();
            /// let letters = "abracadabra".bytes();
            /// assert_eq!(counts.fetch_add_many(letters.map(|letter| (letter, 1))), 5);
            /// assert_eq!(counts.get(b'a'), Some(5));
            /// ```
            pub fn fetch_add_many(&self, entries: impl IntoIterator<Item = (K, V)>) -> usize
            where
                V: Integer,
            {
                let $this = self;
                granted($way.fetch_add_many(entries))
            }

            /// Subtracts from the value of `key`, wrapping around. An absent key counts as zero.
            ///
            /// ```
            /// let stock = quintet::WordMap::from([(7, 10)]);
            /// assert_eq!(stock.fetch_sub(7, 3), Some(10));
            /// assert_eq!(stock.get(7), Some(7));
            /// ```
            #[inline]
            pub fn fetch_sub(&self, key: K, by: V) -> Option<V>
            where
                V: Integer,
            {
                let $this = self;
                $way.fetch_sub::<Granted>(key, by)
            }

            /// Raises the value of `key` to `to` if it is smaller or absent.
            ///
            /// ```
            /// let records = quintet::WordMap::from([(7, 10)]);
            /// records.fetch_max(7, 4);
            /// records.fetch_max(7, 12);
            /// assert_eq!(records.get(7), Some(12));
            /// ```
            #[inline]
            pub fn fetch_max(&self, key: K, to: V) -> Option<V>
            where
                V: Integer,
            {
                let $this = self;
                $way.fetch_max::<Granted>(key, to)
            }

            /// Lowers the value of `key` to `to` if it is larger or absent.
            ///
            /// ```
            /// let records = quintet::WordMap::from([(7, 10)]);
            /// records.fetch_min(7, 4);
            /// records.fetch_min(7, 12);
            /// assert_eq!(records.get(7), Some(4));
            /// ```
            #[inline]
            pub fn fetch_min(&self, key: K, to: V) -> Option<V>
            where
                V: Integer,
            {
                let $this = self;
                $way.fetch_min::<Granted>(key, to)
            }

            /// Keeps of the value of `key` the bits in `bits`. An absent key stays absent.
            ///
            /// ```
            /// let flags = quintet::WordMap::from([(7, 0b110)]);
            /// assert_eq!(flags.fetch_and(7, 0b011), Some(0b110));
            /// assert_eq!(flags.get(7), Some(0b010));
            /// ```
            #[inline]
            pub fn fetch_and(&self, key: K, bits: V) -> Option<V>
            where
                V: Integer,
            {
                let $this = self;
                $way.fetch_and(key, bits)
            }

            /// Adds `bits` to the value of `key`. An absent key counts as zero.
            ///
            /// ```
            /// let flags = quintet::WordMap::from([(7, 0b100)]);
            /// assert_eq!(flags.fetch_or(7, 0b001), Some(0b100));
            /// assert_eq!(flags.get(7), Some(0b101));
            /// ```
            #[inline]
            pub fn fetch_or(&self, key: K, bits: V) -> Option<V>
            where
                V: Integer,
            {
                let $this = self;
                $way.fetch_or::<Granted>(key, bits)
            }

            /// Flips `bits` in the value of `key`. An absent key counts as zero.
            ///
            /// ```
            /// let flags = quintet::WordMap::from([(7, 0b110)]);
            /// assert_eq!(flags.fetch_xor(7, 0b011), Some(0b110));
            /// assert_eq!(flags.get(7), Some(0b101));
            /// ```
            #[inline]
            pub fn fetch_xor(&self, key: K, bits: V) -> Option<V>
            where
                V: Integer,
            {
                let $this = self;
                $way.fetch_xor::<Granted>(key, bits)
            }
        }
    };
}

operations!([K: Word, V: Word] WordMap<K, V>: map => Way {
    map,
    access: &ThreadSeat::new(&map.core.domain),
});
operations!([K: Word, V: Word, A: Access] Handle<'_, K, V, A>: handle => handle.way());
