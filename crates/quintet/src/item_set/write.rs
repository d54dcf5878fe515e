//! The ways that a write takes: at once if it can, and under the lock from the beginning if not.

use super::at_once::{Taken, Wish};
use super::core::{Hint, Outcome, Want};
use super::inside::{Inside, KeyOf, expect};
use super::item::Pointer;
use super::shard::Locked;
use super::table::{Raw, Table};
use super::{Equivalent, ItemSet};
use crate::reclaim::Hold;
use crate::region::AllocError;
use crate::sync::prefetch::prefetch_read;
use std::hash::BuildHasher;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr;

/// A raw item that belongs to nobody else yet.
pub(super) struct Unplaced<P: Pointer>(*mut (), PhantomData<P>);

impl<P: Pointer> Unplaced<P> {
    #[inline(always)]
    pub(super) fn new(item: P) -> Self {
        Self(P::into_raw(item), PhantomData)
    }

    /// The item.
    ///
    /// # Safety
    /// It is not dropped while it is borrowed.
    #[inline(always)]
    pub(super) unsafe fn shown<'i>(&self) -> &'i P::Item {
        // SAFETY: a raw item of `P`; the caller's promise.
        unsafe { &*self.0.cast() }
    }

    /// The raw item, which belongs to the caller from now on.
    #[inline(always)]
    fn leave(self) -> *mut () {
        let raw = self.0;
        std::mem::forget(self);
        raw
    }

    fn take_back(self) -> P {
        // SAFETY: made by `into_raw`, and not placed.
        unsafe { P::from_raw(self.leave()) }
    }
}

impl<P: Pointer> Drop for Unplaced<P> {
    fn drop(&mut self) {
        // SAFETY: made by `into_raw`, and not placed: placing forgets.
        drop(unsafe { P::from_raw(self.0) });
    }
}

impl<P: Pointer, S: BuildHasher, A: Hold, H: Deref<Target = ItemSet<P, S>>> Inside<A, H> {
    /// Puts an item whose hash is known.
    #[inline(always)]
    pub(super) fn put_unplaced(&self, hash: u32, item: Unplaced<P>) -> Option<&P::Item> {
        // No user code will run before it is placed, or somebody's again.
        let wish = Wish { hash, item: item.leave() };
        let put = |table: &Table| Some(self.put_in(table, wish));
        self.at_hand(put).unwrap_or_else(|| self.put_slowly(wish, None))
    }

    /// Puts an item into a table that is at hand. All that is rare comes last, and is called with
    /// few values.
    #[inline(always)]
    fn put_in(&self, table: &Table, wish: Wish) -> Option<&P::Item> {
        let core = &self.set().core;
        let Some(at) = core.come_to(table, wish.hash) else { return self.put_slowly(wish, None) };
        at.prefetch_lock();
        if at.may_have(wish.hash) {
            return self.put_over(table, wish);
        }
        match core.add_at_home(|| self.peek().upper(), table, at, wish) {
            Ok(guard) => {
                drop(guard);
                None
            }
            Err(guard) => self.put_slowly(wish, guard),
        }
    }

    /// The same where there may be an item of its key.
    #[inline(never)]
    fn put_over(&self, table: &Table, wish: Wish) -> Option<&P::Item> {
        let item = Unplaced::<P>(wish.item, PhantomData);
        // SAFETY: borrowed until the write has placed it.
        let same = ItemSet::<P, S>::item_matcher(unsafe { item.shown() });
        match self.change_in(table, wish, &same) {
            Some(taken) => {
                std::mem::forget(item);
                self.answer(taken)
            }
            None => self.put_locked(wish.hash, item),
        }
    }

    /// The same otherwise.
    #[inline(never)]
    fn put_slowly(&self, wish: Wish, guard: Option<Locked<'_>>) -> Option<&P::Item> {
        drop(guard);
        match self.add_at_once(wish) {
            Some(hint) => {
                self.take_hint(hint);
                None
            }
            None => self.put_locked(wish.hash, Unplaced(wish.item, PhantomData)),
        }
    }

    fn put_locked(&self, hash: u32, item: Unplaced<P>) -> Option<&P::Item> {
        // SAFETY: borrowed until the write has placed it.
        let same = ItemSet::<P, S>::item_matcher(unsafe { item.shown() });
        self.retire_taken(expect(self.write_locked(hash, same, Want::Put, Some(item))).0)
    }

    /// Adds an item in the usual case. `None` says that nothing has happened.
    #[inline(always)]
    fn add_at_once(&self, wish: Wish) -> Option<Hint> {
        self.at_hand(|table| self.set().core.add_at_once(self.peek().upper(), table, wish))
    }

    /// Replaces an item in the usual case, or removes it. `None` says that nothing has happened.
    #[inline(always)]
    pub(super) fn change_at_once(
        &self,
        wish: Wish,
        same: &impl Fn(*mut ()) -> bool,
    ) -> Option<Taken> {
        self.at_hand(|table| {
            self.set().core.come_to(table, wish.hash)?;
            self.change_in(table, wish, same)
        })
    }

    /// The same in a table that is at hand.
    #[inline(always)]
    fn change_in(
        &self,
        table: &Table,
        wish: Wish,
        same: &impl Fn(*mut ()) -> bool,
    ) -> Option<Taken> {
        // Its key lies somewhere in it; items longer than two lines are met half-way.
        let expect = |raw: *mut ()| {
            prefetch_read(raw);
            prefetch_read(raw.wrapping_byte_add(size_of::<P::Item>().min(128) / 8 * 7));
        };
        let core = &self.set().core;
        self.visit(|visit| core.change_at_once(visit, table, wish, same, expect, P::REUSED))
    }

    /// Sees whether another size would fit better.
    #[inline(always)]
    fn take_hint(&self, hint: Hint) {
        if hint != Hint::Nothing {
            self.consider(hint);
        }
    }

    #[cold]
    #[inline(never)]
    fn consider(&self, hint: Hint) {
        self.visit(|visit| self.set().core.take_hint(visit, hint));
    }

    /// Retires an item that was taken out at once, and shows it. What is ready has been freed
    /// before.
    #[inline(always)]
    pub(super) fn answer(&self, taken: Taken) -> Option<&P::Item> {
        self.take_hint(taken.hint);
        let piece = Self::piece(taken.before, taken.birth);
        // SAFETY: as in `retire`.
        unsafe { self.access.retire_only(piece) };
        self.show(taken.before)
    }

    /// Removes the item of a key whose hash is known.
    #[inline(always)]
    pub(super) fn remove_known<Q>(&self, hash: u32, key: &Q) -> Option<&P::Item>
    where
        Q: ?Sized + Equivalent<KeyOf<P>>,
    {
        let same = ItemSet::<P, S>::matcher(key);
        match self.change_at_once(Wish { hash, item: ptr::null_mut() }, &same) {
            Some(taken) => self.answer(taken),
            None => self.retire_taken(expect(self.write_locked(hash, same, Want::Remove, None)).0),
        }
    }

    #[inline(always)]
    pub(super) fn write_item(
        &self,
        want: Want,
        item: P,
    ) -> Result<(Outcome, Option<P>), AllocError> {
        self.write_hashed(self.set().hash_of_item(item.as_item()), want, item)
    }

    /// The same with the hash of its key.
    #[inline(always)]
    pub(super) fn write_hashed(
        &self,
        hash: u32,
        want: Want,
        item: P,
    ) -> Result<(Outcome, Option<P>), AllocError> {
        let unplaced = Unplaced::new(item);
        // SAFETY: borrowed until the write has placed it.
        let same = ItemSet::<P, S>::item_matcher(unsafe { unplaced.shown() });
        self.write_unplaced(hash, same, want, Some(unplaced))
    }

    #[inline(always)]
    pub(super) fn write(
        &self,
        hash: u32,
        same: impl Fn(*mut ()) -> bool,
        want: Want,
        item: Option<P>,
    ) -> Result<(Outcome, Option<P>), AllocError> {
        let unplaced = item.map(Unplaced::new);
        self.write_unplaced(hash, same, want, unplaced)
    }

    /// Writes; hands the item back if it was not placed, and drops it if that panics or fails.
    #[inline(always)]
    fn write_unplaced(
        &self,
        hash: u32,
        same: impl Fn(*mut ()) -> bool,
        want: Want,
        item: Option<Unplaced<P>>,
    ) -> Result<(Outcome, Option<P>), AllocError> {
        let raw = item.as_ref().map_or(ptr::null_mut(), |item| item.0);
        let adds = matches!(want, Want::Put | Want::New);
        let wish = Wish { hash, item: raw };
        let added = if adds { self.add_at_once(wish) } else { None };
        let changes = added.is_none() && want != Want::New;
        let taken = if changes { self.change_at_once(wish, &same) } else { None };
        let Some(hint) = added.or(taken.map(|taken| taken.hint)) else {
            return self.write_locked(hash, same, want, item);
        };
        std::mem::forget(item);
        self.take_hint(hint);
        Ok((Outcome::at_once(taken, raw), None))
    }

    /// The same under the lock from the beginning.
    pub(super) fn write_locked(
        &self,
        hash: u32,
        same: impl Fn(*mut ()) -> bool,
        want: Want,
        item: Option<Unplaced<P>>,
    ) -> Result<(Outcome, Option<P>), AllocError> {
        let raw = item.as_ref().map_or(ptr::null_mut(), |item| item.0);
        let outcome = self.visit(|visit| self.set().core.write(visit, hash, same, want, raw))?;
        self.set().core.acquaint(&self.access);
        match item {
            Some(item) if outcome.placed => {
                std::mem::forget(item);
                Ok((outcome, None))
            }
            item => Ok((outcome, item.map(Unplaced::take_back))),
        }
    }

    /// Retires the item that was taken out, and shows what was there before.
    #[inline(always)]
    pub(super) fn retire_taken(&self, outcome: Outcome) -> Option<&P::Item> {
        if let Some(birth) = outcome.taken {
            self.retire(outcome.before, birth, outcome.placed);
        }
        self.show(outcome.before)
    }
}

impl Outcome {
    /// The item that is there after an addition.
    pub(super) const fn there(&self) -> Raw {
        if self.placed { self.item } else { self.before }
    }
}
