//! Operations that may need memory, with an error where the usual forms panic. An item that cannot
//! be stored for want of it is dropped, and the set is as it was.
//!
//! For who is inside, what begins with a look at an item is in `modify`, and what takes many in
//! `many`.

use super::core::Want;
use super::inside::{Inside, KeyOf};
use super::item::{Item, Pointer};
use super::iter::Iter;
use super::lend::Ref;
use super::modify::assert_key;
use super::{Equivalent, Handle, ItemSet};
use crate::reclaim::Hold;
use crate::region::AllocError;
use crate::vocabulary::{Compute, Computed, Fallible, Rejected};
use std::hash::{BuildHasher, Hash};
use std::ops::Deref;

impl<'a, P: Pointer, S: BuildHasher, A: Hold, H: Deref<Target = ItemSet<P, S>>>
    Fallible<'a, Inside<A, H>>
{
    /// [`ItemSet::insert`].
    pub fn insert(self, item: impl Into<P>) -> Result<Option<&'a P::Item>, AllocError> {
        let (outcome, _) = self.0.write_item(Want::Put, item.into())?;
        Ok(self.0.retire_taken(outcome))
    }

    /// [`ItemSet::insert_new`].
    #[allow(clippy::type_complexity)] // one shape for all tables, and an error of memory around it
    pub fn insert_new(
        self,
        item: impl Into<P>,
    ) -> Result<Result<(), Rejected<&'a P::Item, P>>, AllocError> {
        let (outcome, back) = self.0.write_item(Want::New, item.into())?;
        let rejected = back.zip(self.0.show(outcome.before));
        Ok(rejected.map_or(Ok(()), |(value, current)| Err(Rejected { current, value })))
    }

    /// [`ItemSet::get_or_insert`].
    pub fn get_or_insert(self, item: impl Into<P>) -> Result<&'a P::Item, AllocError> {
        let (outcome, _) = self.0.write_item(Want::New, item.into())?;
        Ok(self.0.show(outcome.there()).unwrap_or_else(|| unreachable!("either placed or found")))
    }

    /// [`ItemSet::get_or_insert_with`].
    pub fn get_or_insert_with<Q, I: Into<P>>(
        self,
        key: &Q,
        make: impl FnOnce() -> I,
    ) -> Result<&'a P::Item, AllocError>
    where
        Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
    {
        let hash = self.0.set().hash_of(key);
        if let Some(found) = self.0.show(self.0.find(hash, key)) {
            return Ok(found);
        }
        let item: P = make().into();
        assert_key(item.as_item().matches(key));
        let same = ItemSet::<P, S>::matcher(key);
        let (outcome, _) = self.0.write(hash, same, Want::New, Some(item))?;
        Ok(self.0.show(outcome.there()).unwrap_or_else(|| unreachable!("either placed or found")))
    }

    /// [`ItemSet::replace`].
    pub fn replace(self, item: impl Into<P>) -> Result<Result<&'a P::Item, P>, AllocError> {
        Ok(match self.0.write_item(Want::Replace, item.into())? {
            (_, Some(item)) => Err(item),
            (outcome, None) => Ok(self.0.retire_taken(outcome).unwrap_or_else(|| unreachable!())),
        })
    }

    /// [`ItemSet::iter`].
    pub fn iter(self) -> Result<Iter<'a, P>, AllocError> {
        self.0.visit(|visit| Iter::try_new(&self.0.set().core, visit, false))
    }
}

/// The same for who is outside between operations.
macro_rules! fallible {
    ($way:ty) => {
        impl<'a, P: Pointer, S: BuildHasher> Fallible<'a, $way> {
            /// [`ItemSet::insert`].
            pub fn insert(self, item: impl Into<P>) -> Result<Option<Ref<'a, P>>, AllocError> {
                self.0.pin().lend(|pin| pin.fallible().insert(item))
            }

            /// [`ItemSet::insert_new`].
            #[allow(clippy::type_complexity)] // one shape for all tables, and an error of memory around it
            pub fn insert_new(
                self,
                item: impl Into<P>,
            ) -> Result<Result<(), Rejected<Ref<'a, P>, P>>, AllocError> {
                self.0.pin().lend(|pin| pin.fallible().insert_new(item))
            }

            /// [`ItemSet::get_or_insert`].
            pub fn get_or_insert(self, item: impl Into<P>) -> Result<Ref<'a, P>, AllocError> {
                self.0.pin().lend(|pin| pin.fallible().get_or_insert(item))
            }

            /// [`ItemSet::get_or_insert_with`].
            pub fn get_or_insert_with<Q, I: Into<P>>(
                self,
                key: &Q,
                make: impl FnOnce() -> I,
            ) -> Result<Ref<'a, P>, AllocError>
            where
                Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
            {
                self.0.pin().lend(|pin| pin.fallible().get_or_insert_with(key, make))
            }

            /// [`ItemSet::replace`].
            pub fn replace(self, item: impl Into<P>) -> Result<Result<Ref<'a, P>, P>, AllocError> {
                self.0.pin().lend(|pin| pin.fallible().replace(item))
            }

            /// [`ItemSet::update`].
            pub fn update<Q, I: Into<P>>(
                self,
                key: &Q,
                update: impl FnMut(&P::Item) -> I,
            ) -> Result<Option<Ref<'a, P>>, AllocError>
            where
                Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
            {
                self.0.pin().lend(|pin| pin.fallible().update(key, update))
            }

            /// [`ItemSet::update_or_insert`].
            pub fn update_or_insert<I: Into<P>>(
                self,
                update: impl FnMut(&P::Item) -> I,
                item: impl Into<P>,
            ) -> Result<Ref<'a, P>, AllocError> {
                self.0.pin().lend(|pin| pin.fallible().update_or_insert(update, item))
            }

            /// [`ItemSet::update_or_insert_with`].
            pub fn update_or_insert_with<Q, I: Into<P>, J: Into<P>>(
                self,
                key: &Q,
                update: impl FnMut(&P::Item) -> I,
                make: impl FnOnce() -> J,
            ) -> Result<Ref<'a, P>, AllocError>
            where
                Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
            {
                self.0.pin().lend(|pin| pin.fallible().update_or_insert_with(key, update, make))
            }

            /// [`ItemSet::compute`].
            pub fn compute<Q>(
                self,
                key: &Q,
                compute: impl FnMut(Option<&P::Item>) -> Compute<P>,
            ) -> Result<Computed<Ref<'a, P>>, AllocError>
            where
                Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
            {
                self.0.pin().lend(|pin| pin.fallible().compute(key, compute))
            }

            /// [`ItemSet::compare_exchange`].
            #[allow(clippy::type_complexity)] // as above
            pub fn compare_exchange(
                self,
                current: &P::Item,
                new: impl Into<P>,
            ) -> Result<Result<Ref<'a, P>, Rejected<Option<Ref<'a, P>>, P>>, AllocError> {
                self.0.pin().lend(|pin| pin.fallible().compare_exchange(current, new))
            }

            /// [`ItemSet::insert_many`].
            pub fn insert_many<I: Into<P>>(
                self,
                items: impl IntoIterator<Item = I>,
            ) -> Result<usize, AllocError> {
                self.0.pin().fallible().insert_many(items)
            }
        }
    };
}

fallible!(ItemSet<P, S>);
fallible!(Handle<'_, P, S>);
