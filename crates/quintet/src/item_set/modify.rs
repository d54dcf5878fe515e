//! Read, think, write: what a closure makes of an item takes its place, if that is still the item.
//!
//! ```text
//!   find the item ──▶ closure, no lock ──▶ write ──▶ the same pointer at the place of its hash?  yes: swap or remove
//!        ▲                                                                                     no ──┐
//!        └──────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! **U1.** The closure runs with no lock held, on an item that the section protects. So it may use
//! any set, panic, and take its time; no two sets can wait for each other by it.
//! **U2.** What it answered is carried out in one step, without a lock as a rule, and only if the
//! pointer that it was shown is in one of the tables. The section protects the item from the look
//! until then, so that no other item can have come to lie at its address. An `Arc` that was taken
//! out and put back is the item that was seen.
//! **U3.** Look and write ask the same question, by all bits of the hash: what one finds and the
//! other does not would send the operation round for ever. Where nothing was seen, the new item is
//! placed only if there is none of its key, which the lock decides.
//! **U4.** So the answer takes effect at the moment of the write, on what the closure was shown. If
//! it comes too late somebody else's write has come between: all together never stand still.
//! **U5.** What is made has the key it was made for: checked before the lock is taken. An item of
//! another key would be lost in a place of a foreign hash.

use super::core::Want;
use super::inside::{Inside, KeyOf, expect};
use super::item::{Item, Pointer};
use super::table::Table;
use super::{Equivalent, ItemSet};
use crate::reclaim::Hold;
use crate::region::AllocError;
use crate::vocabulary::{Compute, Computed, Fallible, Rejected};
use std::hash::{BuildHasher, Hash};
use std::ops::Deref;
use std::ptr;

/// The only way to recognize an item that was seen (U2).
fn is(seen: *mut ()) -> impl Fn(*mut ()) -> bool {
    move |other| ptr::eq(other, seen)
}

fn raw<I>(item: &I) -> *mut () {
    ptr::from_ref(item).cast_mut().cast()
}

/// An item that was seen, and the one in its place.
pub(crate) struct Swapped<'a, I> {
    pub(crate) before: &'a I,
    pub(crate) after: &'a I,
}

/// U5.
#[track_caller]
pub(super) fn assert_key(same: bool) {
    assert!(same, "ItemSet: a closure must return an item of the key it was called for");
}

impl<P: Pointer, S: BuildHasher, A: Hold, H: Deref<Target = ItemSet<P, S>>> Inside<A, H> {
    /// The item of this very hash that is the `same`, or null: what is found here is found under
    /// the lock (U3).
    pub(super) fn look(&self, hash: u32, same: impl Fn(*mut ()) -> bool) -> *mut () {
        let peek = self.peek();
        let find = |table: &Table| table.find_exact(hash, || peek.check(), &same);
        if let Some(item) = self.at_hand(find) {
            return item;
        }
        let item = self.visit(|visit| self.set().core.get_exact(visit, hash, same));
        self.set().core.acquaint(&self.access);
        item
    }

    /// The item of `key`, whose hash this is, for one who will write (U3).
    pub(crate) fn look_for<Q>(&self, hash: u32, key: &Q) -> Option<&P::Item>
    where
        Q: ?Sized + Equivalent<KeyOf<P>>,
    {
        self.show(self.look(hash, ItemSet::<P, S>::matcher(key)))
    }

    /// Puts `item` in the place of the one that was seen, and returns both; or hands it back, if
    /// that is no longer there (U2).
    pub(crate) fn swap(
        &self,
        hash: u32,
        seen: &P::Item,
        item: P,
    ) -> Result<Result<Swapped<'_, P::Item>, P>, AllocError> {
        let (outcome, back) = self.write(hash, is(raw(seen)), Want::Replace, Some(item))?;
        if let Some(item) = back {
            return Ok(Err(item));
        }
        let both = self.retire_taken(outcome).zip(self.show(outcome.item));
        let (before, after) = both.unwrap_or_else(|| unreachable!("one in the place of the other"));
        Ok(Ok(Swapped { before, after }))
    }

    /// Takes out the item that was seen, if it is still there (U2).
    pub(crate) fn take(&self, hash: u32, seen: &P::Item) -> bool {
        let (outcome, _) = expect(self.write(hash, is(raw(seen)), Want::Remove, None));
        self.retire_taken(outcome);
        outcome.taken.is_some()
    }

    /// The same where the hash of its key is not known.
    pub(crate) fn take_seen(&self, seen: &P::Item) -> bool {
        self.take(self.set().hash_of_item(seen), seen)
    }

    /// Places `item`, of this hash, where nothing of its key was seen, and returns it; or hands it
    /// back (U3).
    #[allow(clippy::type_complexity)] // an error of memory around what happened
    pub(crate) fn add_item(&self, hash: u32, item: P) -> Result<Result<&P::Item, P>, AllocError> {
        let (outcome, back) = self.write_hashed(hash, Want::New, item)?;
        match back {
            Some(item) => Ok(Err(item)),
            None => Ok(Ok(self.show(outcome.item).unwrap_or_else(|| unreachable!("placed")))),
        }
    }

    /// Places `item` where nothing was seen that is the `same`, and returns it; or hands it back
    /// (U3).
    fn add(
        &self,
        hash: u32,
        same: impl Fn(*mut ()) -> bool,
        item: P,
    ) -> Result<Result<&P::Item, P>, AllocError> {
        let (outcome, back) = self.write(hash, same, Want::New, Some(item))?;
        match back {
            Some(item) => Ok(Err(item)),
            None => Ok(Ok(self.show(outcome.item).unwrap_or_else(|| unreachable!("placed")))),
        }
    }
}

impl<'a, P: Pointer, S: BuildHasher, A: Hold, H: Deref<Target = ItemSet<P, S>>>
    Fallible<'a, Inside<A, H>>
{
    /// [`ItemSet::update`].
    pub fn update<Q, I: Into<P>>(
        self,
        key: &Q,
        mut update: impl FnMut(&P::Item) -> I,
    ) -> Result<Option<&'a P::Item>, AllocError>
    where
        Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
    {
        let hash = self.0.set().hash_of(key);
        while let Some(seen) = self.0.look_for(hash, key) {
            let item: P = update(seen).into();
            assert_key(item.as_item().matches(key));
            if let Ok(Swapped { after, .. }) = self.0.swap(hash, seen, item)? {
                return Ok(Some(after));
            }
        }
        Ok(None)
    }

    /// [`ItemSet::update_or_insert`].
    pub fn update_or_insert<I: Into<P>>(
        self,
        mut update: impl FnMut(&P::Item) -> I,
        item: impl Into<P>,
    ) -> Result<&'a P::Item, AllocError> {
        let mut given: P = item.into();
        let hash = self.0.set().hash_of_item(given.as_item());
        loop {
            let same = ItemSet::<P, S>::item_matcher(given.as_item());
            let Some(seen) = self.0.show(self.0.look(hash, same)) else {
                match self.0.add_item(hash, given)? {
                    Ok(placed) => return Ok(placed),
                    Err(back) => given = back,
                }
                continue;
            };
            let item: P = update(seen).into();
            assert_key(item.as_item().same_key(given.as_item()));
            if let Ok(Swapped { after, .. }) = self.0.swap(hash, seen, item)? {
                return Ok(after);
            }
        }
    }

    /// [`ItemSet::update_or_insert_with`].
    pub fn update_or_insert_with<Q, I: Into<P>, J: Into<P>>(
        self,
        key: &Q,
        mut update: impl FnMut(&P::Item) -> I,
        make: impl FnOnce() -> J,
    ) -> Result<&'a P::Item, AllocError>
    where
        Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
    {
        let hash = self.0.set().hash_of(key);
        let (mut make, mut made) = (Some(make), None::<P>);
        loop {
            if let Some(seen) = self.0.look_for(hash, key) {
                let item: P = update(seen).into();
                assert_key(item.as_item().matches(key));
                if let Ok(Swapped { after, .. }) = self.0.swap(hash, seen, item)? {
                    return Ok(after);
                }
                continue;
            }
            let item = made.take().or_else(|| make.take().map(|make| make().into()));
            let item = item.unwrap_or_else(|| unreachable!("made once, and handed back since"));
            assert_key(item.as_item().matches(key));
            match self.0.add(hash, ItemSet::<P, S>::matcher(key), item)? {
                Ok(placed) => return Ok(placed),
                Err(back) => made = Some(back),
            }
        }
    }

    /// [`ItemSet::compute`].
    pub fn compute<Q>(
        self,
        key: &Q,
        mut compute: impl FnMut(Option<&P::Item>) -> Compute<P>,
    ) -> Result<Computed<&'a P::Item>, AllocError>
    where
        Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
    {
        let hash = self.0.set().hash_of(key);
        loop {
            let before = self.0.look_for(hash, key);
            let after = match (compute(before), before) {
                (Compute::Keep, _) => before,
                (Compute::Remove, None) => None,
                (Compute::Remove, Some(seen)) => {
                    if !self.0.take(hash, seen) {
                        continue;
                    }
                    None
                }
                (Compute::Insert(item), _) => {
                    assert_key(item.as_item().matches(key));
                    let placed = match before {
                        Some(seen) => self.0.swap(hash, seen, item)?.map(|swapped| swapped.after),
                        None => self.0.add(hash, ItemSet::<P, S>::matcher(key), item)?,
                    };
                    let Ok(after) = placed else { continue };
                    Some(after)
                }
            };
            return Ok(Computed { before, after });
        }
    }

    /// [`ItemSet::compare_exchange`].
    #[allow(clippy::type_complexity)] // one shape for all tables, and an error of memory around it
    pub fn compare_exchange(
        self,
        current: &P::Item,
        new: impl Into<P>,
    ) -> Result<Result<&'a P::Item, Rejected<Option<&'a P::Item>, P>>, AllocError> {
        let mut new: P = new.into();
        let same = new.as_item().same_key(current);
        assert!(same, "ItemSet: `compare_exchange` must be given an item of the key it replaces");
        let hash = self.0.set().hash_of_item(current);
        loop {
            match self.0.swap(hash, current, new)? {
                Ok(Swapped { before, .. }) => return Ok(Ok(before)),
                Err(back) => new = back,
            }
            let same = ItemSet::<P, S>::item_matcher(new.as_item());
            let found = self.0.look(hash, same);
            // It may have come back since.
            if !ptr::eq(found, raw(current)) {
                return Ok(Err(Rejected { current: self.0.show(found), value: new }));
            }
        }
    }
}
