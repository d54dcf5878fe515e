//! One link of a chain of tables.
//!
//! A chain begins at a root and goes on by links that lie in its tables. Which way it goes, and
//! what is copied, is the family's business:
//!
//! ```text
//!   root ──▶ T ──next──▶ S        the root is at the old table until all of it is in S, then leaves T for S
//!   root ──▶ S ──prev──▶ T        the root is at the new table; S is cut from T when all of it is in S
//! ```
//!
//! **M11.** What a link leads to came out of a box. It belongs to the chain while a path from the
//! root leads to it, then to the one that has unlinked it, and in the end to the domain, which
//! frees it. A table that nobody has seen belongs to the one that has made it.
//! **M12.** A link is followed by the view of an operation (`reclaim` E9) in the domain that frees
//! what it leads to. The view is asked after the load: a yes says that the table is not freed
//! before the section is left, and the reference is used only until then. Where nothing is, there
//! is nothing to ask.
//! **M13.** A link that is empty is set once, by exchange. The loser gets its table back, and
//! nobody has seen it.
//! **M14.** A link leaves a table by one exchange from its address, and never comes back. Who names
//! the table has a reference to it: it is not freed, and no other table lies at its address. So of
//! all those that try one succeeds.
//! **M15.** The one that succeeds retires the table, after the last path to it is gone. Where two
//! links lead to a table the family says who does.
//! **M16.** A table is freed by the address that its box had, never by one made from a reference:
//! an [`Address`] comes out of a link only.
//! **M17.** Dropping a link frees nothing. Who is alone with a chain takes it apart
//! ([`Link::take`]).
//!
//! A panic leaves every link whole, since each changes by one exchange. A forgotten section holds
//! its tables back for ever; a forgotten `Address` leaks its table.

use super::leave::{Leave, retire};
use crate::reclaim::{Check, Visit};
use crate::sync::{AtomicPtr, Ordering, const_where_possible};
use std::ptr;

/// A link may not be followed: begin again at the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Restart;

/// A link to a table, or to nothing.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Link<T>(AtomicPtr<T>);

/// Where a table lies, for the one that retires it or links it elsewhere (M16).
#[derive(Debug)]
pub(crate) struct Address<T>(*mut T);

impl<T> Link<T> {
    const_where_possible! {
        /// A link to nothing.
        ///
        /// # Safety
        /// It is followed as M12 says: every view is of the domain to which its tables are retired,
        /// and what it has found is used only while the view's section is open.
        pub(crate) unsafe fn empty() -> Self {
            Self(AtomicPtr::new(ptr::null_mut()))
        }
    }

    /// A second link to a table.
    ///
    /// # Safety
    /// As for [`empty`](Self::empty); and the table is not retired before this link has left it, or
    /// is out of reach itself.
    pub(crate) unsafe fn to(table: Address<T>) -> Self {
        Self(AtomicPtr::new(table.0))
    }

    /// What the link leads to, if the view may follow it (M12).
    #[inline(always)]
    pub(crate) fn follow<'v>(&self, view: &'v impl Check) -> Result<Option<&'v T>, Restart> {
        // ORDERING: Acquire: partners are the exchanges that put the table here.
        let table = self.0.load(Ordering::Acquire);
        if table.is_null() {
            return Ok(None);
        }
        if !view.check() {
            return Err(Restart);
        }
        // SAFETY: not null, and out of a box (M11). The view has said yes after the load, by what
        // this operation itself has announced (`reclaim` E9), whatever has run inside of it: the
        // table is not freed before the section is left, which a panic does late enough and a
        // forgotten guard never. Foreign views are excluded by whoever made the link.
        Ok(Some(unsafe { &*table }))
    }

    /// Works with what the link leads to, if that is known by its address. No view is asked.
    ///
    /// By a closure: a reference in an `Option` would cost another comparison with null.
    ///
    /// # Safety
    /// `knows` says yes only of a table that an open section has followed and keeps until `work` is
    /// done; never of null.
    #[inline(always)]
    pub(crate) unsafe fn with_known<R>(
        &self,
        knows: impl FnOnce(*const T) -> bool,
        work: impl FnOnce(&T) -> Option<R>,
    ) -> Option<R> {
        // ORDERING: Acquire, as in `follow`.
        let table = self.0.load(Ordering::Acquire);
        if !knows(table) {
            return None;
        }
        // SAFETY: the caller's promise: not freed, so that nothing else has its address.
        work(unsafe { &*table })
    }

    /// Whether it seems to lead to nothing. A hint, which a later exchange or `follow` confirms or
    /// not.
    #[inline(always)]
    pub(crate) fn seems_empty(&self) -> bool {
        // ORDERING: Relaxed: a hint; nothing is followed.
        self.0.load(Ordering::Relaxed).is_null()
    }

    /// Whether it leads to nothing. If it was cut from a table, all that was done before is seen.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        // ORDERING: Acquire: partner is `cut`.
        self.0.load(Ordering::Acquire).is_null()
    }

    /// Whether it leads to this table. If not, all that was done before it has left the table is
    /// seen.
    #[inline(always)]
    pub(crate) fn leads_to(&self, table: &T) -> bool {
        // ORDERING: Acquire: partners are the exchanges that put a table here.
        ptr::eq(self.0.load(Ordering::Acquire), table)
    }

    /// The address of this table, if the link leads to it.
    pub(crate) fn address_of(&self, table: &T) -> Option<Address<T>> {
        // ORDERING: Acquire, as in `leads_to`.
        let address = self.0.load(Ordering::Acquire);
        ptr::eq(address, table).then_some(Address(address))
    }

    /// Makes an empty link lead to `table`, or gives it back (M13).
    pub(crate) fn set_once(&self, table: Box<T>) -> Result<(), Box<T>> {
        self.exchange(ptr::null_mut(), table).map(drop)
    }

    /// Leaves one table for another, or gives that back (M14).
    pub(crate) fn replace(&self, from: &T, to: Box<T>) -> Result<Address<T>, Box<T>> {
        self.exchange(ptr::from_ref(from).cast_mut(), to)
    }

    /// Leaves a table for the one that `next` leads to, which is set and stays so. `None`: somebody
    /// else has done it (M14).
    pub(crate) fn advance(&self, from: &T, next: &Self) -> Option<Address<T>> {
        // ORDERING: Acquire: partner is `set_once`; what it published is passed on by the exchange.
        let to = next.0.load(Ordering::Acquire);
        debug_assert!(!to.is_null());
        self.leave(from, to)
    }

    /// Leaves a table for nothing. `None`: somebody else has done it (M14).
    pub(crate) fn cut(&self, from: &T) -> Option<Address<T>> {
        self.leave(from, ptr::null_mut())
    }

    fn leave(&self, from: &T, to: *mut T) -> Option<Address<T>> {
        let from = ptr::from_ref(from).cast_mut();
        // ORDERING: Release: whoever finds the new link finds what was done before, copies above
        // all; partners: `follow`, `is_empty`. Acquire: who retires stands on what the others did
        // to get here. Failure: nothing is learnt.
        let left = self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
        left.ok().map(Address)
    }

    fn exchange(&self, from: *mut T, to: Box<T>) -> Result<Address<T>, Box<T>> {
        let to = Box::into_raw(to);
        // ORDERING: Release: publishes the table; partner: `follow`. Failure: nothing is learnt.
        match self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(left) => Ok(Address(left)),
            // SAFETY: out of the box above, and nobody has seen it.
            Err(_) => Err(unsafe { Box::from_raw(to) }),
        }
    }

    /// Takes out what the link leads to, and leaves it empty.
    ///
    /// # Safety
    /// Nobody else can reach the table, and it is taken by this link alone (M11, M17).
    pub(crate) unsafe fn take(&mut self) -> Option<Box<T>> {
        // ORDERING: Relaxed: alone.
        let table = self.0.load(Ordering::Relaxed);
        self.0.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: out of a box; by the caller's promise it has one owner, who is here.
        (!table.is_null()).then(|| unsafe { Box::from_raw(table) })
    }

    /// Drops all tables from this link on.
    ///
    /// # Safety
    /// As for [`take`](Self::take), of the link `next` in each of them as well.
    pub(crate) unsafe fn drop_chain(&mut self, next: impl Fn(&mut T) -> &mut Self) {
        // SAFETY: the caller's promise.
        let mut first = unsafe { self.take() };
        while let Some(mut table) = first {
            // SAFETY: the caller's promise.
            first = unsafe { next(&mut table).take() };
        }
    }
}

impl<T: Leave> Address<T> {
    /// Hands the table to the domain, which frees it when nobody can be inside any more (M15).
    ///
    /// # Safety
    /// No path from the root leads to the table, any thread may drop it, the view is of the table's
    /// domain (M12), and nobody else retires it.
    pub(crate) unsafe fn retire(self, visit: &Visit<'_>) {
        // SAFETY: the caller's promise; the address is the one of the box (M16).
        unsafe { retire(visit, self.0) };
    }
}
