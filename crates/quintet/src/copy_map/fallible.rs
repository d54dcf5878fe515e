//! The operations that may need memory, with an error where the others panic.

use super::operations::Way;
use super::{CopyMap, Handle, Plain};
use crate::reclaim::{Access, ThreadSeat};
use crate::region::AllocError;
use crate::vocabulary::{Compute, Computed, Fallible, Rejected};
use std::hash::{BuildHasher, Hash};

/// Writes them for a type. `$way` says how `$this`, a value of it, is inside.
macro_rules! fallible {
    ([$($generics:tt)*] $type:ty: $this:ident => $way:expr) => {
        /// On an error nothing has happened.
        impl<$($generics)*> Fallible<'_, $type> {
            /// See [`CopyMap::insert`].
            ///
            /// # Errors
            /// If a larger table is needed and cannot be had, as for all of these.
            #[inline]
            pub fn insert(&self, key: K, value: V) -> Result<Option<V>, AllocError> {
                let $this = self.0;
                $way.insert(key, value)
            }

            /// See [`CopyMap::insert_new`].
            #[inline]
            pub fn insert_new(
                &self,
                key: K,
                value: V,
            ) -> Result<Result<(), Rejected<V, V>>, AllocError> {
                let $this = self.0;
                $way.insert_new(key, value)
            }

            /// See [`CopyMap::get_or_insert`].
            #[inline]
            pub fn get_or_insert(&self, key: K, value: V) -> Result<V, AllocError> {
                let $this = self.0;
                $way.get_or_insert_with(key, || value)
            }

            /// See [`CopyMap::get_or_insert_with`].
            #[inline]
            pub fn get_or_insert_with(
                &self,
                key: K,
                make: impl FnOnce() -> V,
            ) -> Result<V, AllocError> {
                let $this = self.0;
                $way.get_or_insert_with(key, make)
            }

            /// See [`CopyMap::update_or_insert`].
            #[inline]
            pub fn update_or_insert(
                &self,
                key: K,
                next: impl FnMut(V) -> V,
                value: V,
            ) -> Result<V, AllocError> {
                let $this = self.0;
                $way.update_or_insert_with(key, next, || value)
            }

            /// See [`CopyMap::update_or_insert_with`].
            #[inline]
            pub fn update_or_insert_with(
                &self,
                key: K,
                next: impl FnMut(V) -> V,
                make: impl FnOnce() -> V,
            ) -> Result<V, AllocError> {
                let $this = self.0;
                $way.update_or_insert_with(key, next, make)
            }

            /// See [`CopyMap::compute`].
            #[inline]
            pub fn compute(
                &self,
                key: K,
                decide: impl FnMut(Option<V>) -> Compute<V>,
            ) -> Result<Computed<V>, AllocError> {
                let $this = self.0;
                $way.compute(key, decide)
            }

            /// See [`CopyMap::insert_many`]. On an error the entries before the one that failed are
            /// in the map.
            pub fn insert_many(
                &self,
                entries: impl IntoIterator<Item = (K, V)>,
            ) -> Result<usize, AllocError> {
                let $this = self.0;
                $way.insert_many(entries)
            }
        }
    };
}

fallible!([K: Plain + Hash + Eq, V: Plain, S: BuildHasher] CopyMap<K, V, S>: map => Way {
    map,
    access: &ThreadSeat::new(&map.core.domain),
});
fallible!([K: Plain + Hash + Eq, V: Plain, S: BuildHasher, A: Access] Handle<'_, K, V, S, A>: handle => handle.way());
