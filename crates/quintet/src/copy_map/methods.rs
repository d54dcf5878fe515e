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
            #[doc(alias = "read")]
            #[doc(alias = "peek")]
            #[doc(alias = "view")]
            #[inline]
            pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<V> {
                let $this = self;
                $way.get(key)
            }

            /// True if `key` is present. Linearizable.
            #[inline]
            pub fn contains_key<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> bool {
                let $this = self;
                $way.get(key).is_some()
            }

            /// Gives `key` a value and returns the one it had. Linearizable.
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
            pub fn retain(&self, keep: impl FnMut(K, V) -> bool) {
                let $this = self;
                $way.retain(keep);
            }

            /// Takes out every entry found by a walk like that of [`iter`](Self::iter), and gives
            /// back memory that is no longer needed.
            pub fn clear(&self) {
                let $this = self;
                $way.clear();
            }

            /// Takes out entries while walking over them as [`iter`](Self::iter) does; each is
            /// shown by one `drain` only. Entries not reached when the iterator is dropped stay.
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
            pub fn remove_many(&self, keys: impl IntoIterator<Item = K>) -> usize {
                let $this = self;
                $way.remove_many(keys)
            }

            /// Walks over the entries, in no order.
            ///
            /// Weakly consistent: a key that is present all the time is seen exactly once, a key
            /// that comes or goes meanwhile is seen at most once; each value is one that the key
            /// had during the walk. The iterator holds back no memory, and may cross threads.
            #[doc(alias = "scan")]
            pub fn iter(&self) -> Iter<'_, K, V, S> {
                let $this = self;
                Iter::new($way.map)
            }

            /// The keys, as [`iter`](Self::iter) finds them.
            pub fn keys(&self) -> Keys<'_, K, V, S> {
                Keys(self.iter())
            }

            /// The values, as [`iter`](Self::iter) finds them.
            pub fn values(&self) -> Values<'_, K, V, S> {
                Values(self.iter())
            }

            /// Entries. Exact when nobody writes; otherwise an estimate.
            pub fn len(&self) -> usize {
                let $this = self;
                $way.map.core.len()
            }

            /// True if there are no entries, with the exactness of [`len`](Self::len).
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Entries that fit, those that are there included, before the map grows.
            pub fn capacity(&self) -> usize {
                let $this = self;
                $way.map.core.capacity()
            }

            /// Makes room for `additional` entries more, so that inserting them does not grow the
            /// map.
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
            /// # Errors
            /// If the memory cannot be had; the map is then as before.
            pub fn try_reserve(&self, additional: usize) -> Result<(), AllocError> {
                let $this = self;
                $way.try_reserve(additional)
            }

            /// Moves to the smallest table that holds the entries, and gives the larger one back,
            /// unless the memory for the smaller one cannot be had.
            pub fn shrink_to_fit(&self) {
                let $this = self;
                $way.shrink_to_fit();
            }

            /// Bytes held: tables in use, and tables that were left and are not yet given back.
            pub fn memory_bytes(&self) -> usize {
                let $this = self;
                $way.map.core.bytes()
            }

            /// A look inside: load, tables, memory.
            pub fn stats(&self) -> CopyMapStats {
                let $this = self;
                $way.map.core.stats()
            }

            /// Frees tables that this seat has left behind and nobody can be inside of any more.
            /// The map does so by itself, in small steps; this is for who wants the memory back
            /// now. Does nothing while the seat is inside: by a guard, or inside of a closure.
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
