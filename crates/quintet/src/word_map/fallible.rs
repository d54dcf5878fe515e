//! The operations that may need memory, with an error where the others panic.

use super::operations::{Tried, Way};
use super::{Handle, Integer, Word, WordMap};
use crate::reclaim::{Access, ThreadSeat};
use crate::region::AllocError;
use crate::vocabulary::{Compute, Computed, Fallible, Rejected};

/// Writes them for a type. `$way` says how `$this`, a value of it, is inside.
macro_rules! fallible {
    ([$($generics:tt)*] $type:ty: $this:ident => $way:expr) => {
        /// On an error nothing has happened.
        impl<$($generics)*> Fallible<'_, $type> {
            /// See [`WordMap::insert`].
            ///
            /// # Errors
            /// If a larger table is needed and cannot be had, as for all of these.
            #[inline]
            pub fn insert(&self, key: K, value: V) -> Result<Option<V>, AllocError> {
                let $this = self.0;
                $way.insert::<Tried>(key, value)
            }

            /// See [`WordMap::insert_new`].
            #[inline]
            pub fn insert_new(
                &self,
                key: K,
                value: V,
            ) -> Result<Result<(), Rejected<V, V>>, AllocError> {
                let $this = self.0;
                $way.insert_new::<Tried>(key, value)
            }

            /// See [`WordMap::get_or_insert`].
            #[inline]
            pub fn get_or_insert(&self, key: K, value: V) -> Result<V, AllocError> {
                let $this = self.0;
                $way.get_or_insert_with::<Tried>(key, || value)
            }

            /// See [`WordMap::get_or_insert_with`].
            #[inline]
            pub fn get_or_insert_with(
                &self,
                key: K,
                make: impl FnOnce() -> V,
            ) -> Result<V, AllocError> {
                let $this = self.0;
                $way.get_or_insert_with::<Tried>(key, make)
            }

            /// See [`WordMap::update_or_insert`].
            #[inline]
            pub fn update_or_insert(
                &self,
                key: K,
                next: impl FnMut(V) -> V,
                value: V,
            ) -> Result<V, AllocError> {
                let $this = self.0;
                $way.update_or_insert_with::<Tried>(key, next, || value)
            }

            /// See [`WordMap::update_or_insert_with`].
            #[inline]
            pub fn update_or_insert_with(
                &self,
                key: K,
                next: impl FnMut(V) -> V,
                make: impl FnOnce() -> V,
            ) -> Result<V, AllocError> {
                let $this = self.0;
                $way.update_or_insert_with::<Tried>(key, next, make)
            }

            /// See [`WordMap::compute`].
            #[inline]
            pub fn compute(
                &self,
                key: K,
                decide: impl FnMut(Option<V>) -> Compute<V>,
            ) -> Result<Computed<V>, AllocError> {
                let $this = self.0;
                $way.compute::<Tried>(key, decide)
            }

            /// See [`WordMap::insert_many`]. On an error the entries before the one that failed are
            /// in the map.
            pub fn insert_many(
                &self,
                entries: impl IntoIterator<Item = (K, V)>,
            ) -> Result<usize, AllocError> {
                let $this = self.0;
                $way.insert_many(entries)
            }
        }

        /// Counting and the like.
        impl<$($generics)*> Fallible<'_, $type> {
            /// See [`WordMap::fetch_add`].
            #[inline]
            pub fn fetch_add(&self, key: K, by: V) -> Result<Option<V>, AllocError>
            where
                V: Integer,
            {
                let $this = self.0;
                $way.fetch_add::<Tried>(key, by)
            }

            /// See [`WordMap::fetch_add_many`]. On an error the entries before the one that failed
            /// are in the map.
            pub fn fetch_add_many(
                &self,
                entries: impl IntoIterator<Item = (K, V)>,
            ) -> Result<usize, AllocError>
            where
                V: Integer,
            {
                let $this = self.0;
                $way.fetch_add_many(entries)
            }

            /// See [`WordMap::fetch_sub`].
            #[inline]
            pub fn fetch_sub(&self, key: K, by: V) -> Result<Option<V>, AllocError>
            where
                V: Integer,
            {
                let $this = self.0;
                $way.fetch_sub::<Tried>(key, by)
            }

            /// See [`WordMap::fetch_max`].
            #[inline]
            pub fn fetch_max(&self, key: K, to: V) -> Result<Option<V>, AllocError>
            where
                V: Integer,
            {
                let $this = self.0;
                $way.fetch_max::<Tried>(key, to)
            }

            /// See [`WordMap::fetch_min`].
            #[inline]
            pub fn fetch_min(&self, key: K, to: V) -> Result<Option<V>, AllocError>
            where
                V: Integer,
            {
                let $this = self.0;
                $way.fetch_min::<Tried>(key, to)
            }

            /// See [`WordMap::fetch_or`].
            #[inline]
            pub fn fetch_or(&self, key: K, bits: V) -> Result<Option<V>, AllocError>
            where
                V: Integer,
            {
                let $this = self.0;
                $way.fetch_or::<Tried>(key, bits)
            }

            /// See [`WordMap::fetch_xor`].
            #[inline]
            pub fn fetch_xor(&self, key: K, bits: V) -> Result<Option<V>, AllocError>
            where
                V: Integer,
            {
                let $this = self.0;
                $way.fetch_xor::<Tried>(key, bits)
            }
        }
    };
}

fallible!([K: Word, V: Word] WordMap<K, V>: map => Way {
    map,
    access: &ThreadSeat::new(&map.core.domain),
});
fallible!([K: Word, V: Word, A: Access] Handle<'_, K, V, A>: handle => handle.way());
