//! How one is inside: four kinds of access, one way to use them.
//!
//! | Access | Whose seat | When inside |
//! |---|---|---|
//! | [`Handle`] | its own | during each operation |
//! | [`ThreadSeat`] | the calling thread's | during each operation |
//! | [`Pinned`] | the calling thread's, or a [`Handle`]'s | for as long as it lives |
//! | [`QuietHandle`] | its own | always, except at its quiet points |
//!
//! ```text
//!                 usual(): Some ──▶ a look in few instructions ──▶ done
//!   operation ──┤                        │ "no"
//!                 usual(): None ─────────┴──▶ section(): every case
//! ```
//!
//! **H1.** An operation begins with a view of its own (`reclaim` E9): a [`Usual`], a [`Section`] or
//! what [`Hold::view`] lends. It takes it before it loads its root, and follows links by that view
//! only.
//! **H2.** A [`Usual`] view has no slow half, so that what its caller holds in registers stays
//! there. Where it says no, the operation gives up with nothing done, and begins again in a
//! section.
//! **H3.** A [`Hold`] is inside between operations too: what one of them has confirmed stays valid
//! for as long as the access is borrowed. A quiet point takes it mutably, and the end of a guard
//! takes it whole; one that is forgotten stays inside.
//! **H4.** What a quiet seat remembers of a table, its address and the `upper` under which it was
//! seen, it forgets at every quiet point before it goes outside: behind that point the table may
//! have been freed, and another may lie at its address.

use super::books::Books;
use super::domain::Domain;
use super::handle::{Handle, QuietHandle};
use super::retired::Retired;
use super::section::{Brief, Check, Held, Peek, Section, Stay, Visit};
use std::marker::PhantomData;

/// How a thread is inside of a table: see [`Handle`], [`ThreadSeat`], [`Pinned`], [`QuietHandle`].
pub trait Access: sealed::Sealed {
    /// Inside for one operation, in the usual case.
    #[doc(hidden)]
    type Usual<'a>: Usual<'a>
    where
        Self: 'a;

    /// Begins an operation in the usual case (H2). `None`: the case is another one, enter a
    /// [`section`](Self::section).
    #[doc(hidden)]
    fn usual(&self) -> Option<Self::Usual<'_>>;

    /// Begins an operation, in every case. Also for what outlasts an operation.
    #[doc(hidden)]
    fn section(&self) -> Section<'_>;

    /// Frees what this seat has retired and nobody can reach any more. Does nothing while the seat
    /// is inside.
    #[doc(hidden)]
    fn release(&self);
}

/// Inside for one operation in the usual case (H2).
pub trait Usual<'a>: Check {
    /// The books of this seat.
    fn books(&self) -> &'a Books;
    /// Ends the operation, for who has run no user code in it: no section was opened inside
    /// (`reclaim` E10).
    fn leave_alone(self);
}

/// An [`Access`] that is inside between operations too, so that references last (H3).
pub trait Hold: Access {
    /// Remembers a table from one operation to the next.
    #[doc(hidden)]
    const REMEMBERS: bool;

    /// Whether this is the table it remembers. Never true of null.
    #[doc(hidden)]
    fn knows(&self, table: *const ()) -> bool;

    /// Remembers a table that this section has checked, until it ends (H4).
    #[doc(hidden)]
    fn remember(&self, table: *const (), looked: Peek<'_>);

    /// A look with what it remembers. To be taken by an operation before its root is loaded, or
    /// before any user code has run since (H1).
    #[doc(hidden)]
    fn recall(&self) -> Peek<'_>;

    /// A look with what the section announces now. To be taken as [`recall`](Self::recall) is.
    #[doc(hidden)]
    fn look(&self) -> Peek<'_>;

    /// Lends one operation a view of its own, for every case (H1).
    #[doc(hidden)]
    fn view<R>(&self, work: impl FnOnce(&Visit<'_>) -> R) -> R;

    /// [`Visit::retire_only`]. On the way of every overwrite: a closure would be a call.
    ///
    /// # Safety
    /// As there.
    #[doc(hidden)]
    unsafe fn retire_only(&self, piece: Retired);

    /// Boxes a value, in the memory of a piece that is past its grace period if there is one
    /// (`reclaim` E11). Runs the drop of that piece's value, with nothing locked.
    ///
    /// # Safety
    /// All pieces of this domain that [`Retired::reusable`] has marked are boxes of the same `T`.
    #[doc(hidden)]
    unsafe fn boxed<T>(&self, value: T) -> Box<T>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Handle {}
    impl Sealed for super::ThreadSeat<'_> {}
    impl Sealed for super::Pinned<'_> {}
    impl Sealed for super::QuietHandle {}
}

/// The calling thread's seat: each operation enters and leaves.
#[derive(Clone, Copy, Debug)]
pub struct ThreadSeat<'d> {
    domain: &'d Domain,
    /// What is begun by it belongs to the calling thread.
    not_send: PhantomData<*mut ()>,
}

/// Inside on the calling thread's seat, or on that of a [`Handle`], for as long as this lives.
#[derive(Debug)]
pub struct Pinned<'d>(Section<'d>);

impl<'d> ThreadSeat<'d> {
    /// The calling thread's seat in a domain.
    #[inline(always)]
    pub fn new(domain: &'d Domain) -> Self {
        Self { domain, not_send: PhantomData }
    }
}

impl<'d> Pinned<'d> {
    /// Enters on the calling thread's seat.
    #[inline(always)]
    pub fn new(domain: &'d Domain) -> Self {
        Self(domain.pin())
    }

    /// Enters on the seat of a handle.
    #[inline(always)]
    pub fn on(handle: &'d Handle) -> Self {
        Self(handle.pin())
    }

    /// The same section for who looks no further.
    #[inline(always)]
    pub fn stay(self) -> Stay<'d> {
        self.0.stay()
    }
}

impl<'a> Usual<'a> for Brief<'a> {
    #[inline(always)]
    fn books(&self) -> &'a Books {
        Brief::books(self)
    }
    #[inline(always)]
    fn leave_alone(self) {
        Brief::leave_alone(self);
    }
}

impl<'a> Usual<'a> for Held<'a> {
    #[inline(always)]
    fn books(&self) -> &'a Books {
        Held::books(self)
    }
    #[inline(always)]
    fn leave_alone(self) {}
}

impl Access for Handle {
    type Usual<'a> = Brief<'a>;

    #[inline(always)]
    fn usual(&self) -> Option<Brief<'_>> {
        self.spot().enter()
    }
    #[inline(always)]
    fn section(&self) -> Section<'_> {
        self.pin()
    }
    fn release(&self) {
        self.flush();
    }
}

impl<'d> Access for ThreadSeat<'d> {
    type Usual<'a>
        = Brief<'a>
    where
        'd: 'a;

    #[inline(always)]
    fn usual(&self) -> Option<Brief<'_>> {
        self.domain.spot()?.enter()
    }
    #[inline(always)]
    fn section(&self) -> Section<'_> {
        self.domain.pin()
    }
    fn release(&self) {
        self.domain.flush();
    }
}

impl<'d> Access for Pinned<'d> {
    type Usual<'a>
        = Held<'a>
    where
        'd: 'a;

    #[inline(always)]
    fn usual(&self) -> Option<Held<'_>> {
        Some(self.0.held())
    }
    #[inline(always)]
    fn section(&self) -> Section<'_> {
        self.0.another()
    }
    fn release(&self) {}
}

impl Hold for Pinned<'_> {
    // Most guards live for one operation.
    const REMEMBERS: bool = false;

    #[inline(always)]
    fn knows(&self, _table: *const ()) -> bool {
        false
    }
    #[inline(always)]
    fn remember(&self, _table: *const (), _looked: Peek<'_>) {}
    #[inline(always)]
    fn recall(&self) -> Peek<'_> {
        self.look()
    }
    #[inline(always)]
    fn look(&self) -> Peek<'_> {
        self.0.visit().peek()
    }
    #[inline(always)]
    fn view<R>(&self, work: impl FnOnce(&Visit<'_>) -> R) -> R {
        if cfg!(quintet_mutation = "shared-view") {
            return work(&self.0);
        }
        work(&self.0.visit())
    }
    #[inline(always)]
    unsafe fn retire_only(&self, piece: Retired) {
        // SAFETY: as the caller promises.
        unsafe { self.0.visit().retire_only(piece) };
    }
    #[inline(always)]
    unsafe fn boxed<T>(&self, value: T) -> Box<T> {
        // SAFETY: as the caller promises.
        unsafe { self.0.visit().boxed(value) }
    }
}

impl Access for QuietHandle {
    type Usual<'a> = Held<'a>;

    #[inline(always)]
    fn usual(&self) -> Option<Held<'_>> {
        Some(self.held())
    }
    #[inline(always)]
    fn section(&self) -> Section<'_> {
        self.enter()
    }
    fn release(&self) {}
}

impl Hold for QuietHandle {
    const REMEMBERS: bool = true;

    #[inline(always)]
    fn knows(&self, table: *const ()) -> bool {
        self.memory().knows(table)
    }
    #[inline(always)]
    fn remember(&self, table: *const (), looked: Peek<'_>) {
        self.memory().remember(table, looked);
    }
    #[inline(always)]
    fn recall(&self) -> Peek<'_> {
        self.peek_at(self.memory().upper())
    }
    #[inline(always)]
    fn look(&self) -> Peek<'_> {
        self.peek()
    }
    #[inline(always)]
    fn view<R>(&self, work: impl FnOnce(&Visit<'_>) -> R) -> R {
        work(&self.visit())
    }
    #[inline(always)]
    unsafe fn retire_only(&self, piece: Retired) {
        // SAFETY: as the caller promises.
        unsafe { self.visit().retire_only(piece) };
    }
    #[inline(always)]
    unsafe fn boxed<T>(&self, value: T) -> Box<T> {
        // SAFETY: as the caller promises.
        unsafe { self.visit().boxed(value) }
    }
}
