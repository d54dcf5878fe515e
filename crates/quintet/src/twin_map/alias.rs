//! Values of which several bitwise duplicates exist, of which one is dropped.
//!
//! **N5.** A duplicate is bytes that nobody claims: a `MaybeUninit`, in which neither a `Box` nor a
//! reference asserts that it is the only one. It is looked at through shared references alone, and
//! becomes a value again, claims and all, when it is the last duplicate in use.

use equivalent::Equivalent;
use std::hash::{Hash, Hasher};
use std::mem::MaybeUninit;

/// Types of which two bitwise duplicates may be looked at, at the same time and from several
/// threads, as long as one is dropped.
///
/// # Safety
/// The bytes of the value itself hold no `UnsafeCell` (what it points to may), and `Hash` and `Eq`,
/// where the type has them, always give the same answers for the same values and do not panic.
#[diagnostic::on_unimplemented(
    message = "two copies cannot share a `{Self}` bit by bit",
    label = "not `Inert`",
    note = "implement `Inert` for your own type if it holds no cell inline; else build a `TwinMap` whose copies own their values"
)]
pub unsafe trait Inert {}

macro_rules! inert {
    ($($(#[$meta:meta])* [$($generics:tt)*] $ty:ty;)+) => { $(
        // SAFETY: plain bytes, or owned or shared memory whose pointer is plain bytes, compared by
        // what is Inert itself.
        unsafe impl<$($generics)*> Inert for $ty {}
    )+ };
}
inert! {
    [] (); [] bool; [] char; [] u8; [] u16; [] u32; [] u64; [] u128; [] usize;
    [] i8; [] i16; [] i32; [] i64; [] i128; [] isize; [] f32; [] f64;
    [] String; [] Box<str>; [] &'static str; [] std::time::Duration; [] std::time::Instant;
    [T: Inert] Vec<T>; [T: Inert] Box<T>; [T: Inert] Box<[T]>; [T: Inert] Option<T>; [T: Inert, const N: usize] [T; N];
    [T: Inert + ?Sized] std::sync::Arc<T>; [T: Inert] (T,); [A: Inert, B: Inert] (A, B); [A: Inert, B: Inert, C: Inert] (A, B, C);
    [A: Inert, B: Inert, C: Inert, D: Inert] (A, B, C, D);
}
// SAFETY: what an `Arc<str>` points to has no `UnsafeCell`, and is compared by its bytes.
unsafe impl Inert for str {}
// SAFETY: as its elements.
unsafe impl<T: Inert> Inert for [T] {}

/// One of the bitwise duplicates of a value, always one that was written (N5). Dropping it does
/// nothing.
pub(super) struct Alias<X>(MaybeUninit<X>);

impl<X> Alias<X> {
    pub(super) fn new(value: X) -> Self {
        Self(MaybeUninit::new(value))
    }

    /// The value, to look at.
    #[inline(always)]
    pub(super) fn get(&self) -> &X {
        // SAFETY: written by `new`, or copied from one that was. Nobody has made the value itself
        // of any duplicate yet, and nobody changes it: it is Inert, and only shared references to
        // it exist.
        unsafe { self.0.assume_init_ref() }
    }

    /// The value itself.
    ///
    /// # Safety
    /// No other duplicate, nor a reference to one, is used any more, and this is called for one of
    /// them.
    pub(super) unsafe fn own(self) -> X {
        // SAFETY: written, as for `get`; the caller's promise makes it the only one.
        unsafe { self.0.assume_init() }
    }

    pub(super) fn duplicate(&self) -> Self {
        // SAFETY: the place is valid, and what is read are bytes without claims (N5): as many as
        // you like may exist.
        Self(unsafe { std::ptr::read(&raw const self.0) })
    }
}

impl<X> Clone for Alias<X> {
    fn clone(&self) -> Self {
        self.duplicate()
    }
}

impl<X: PartialEq> PartialEq for Alias<X> {
    fn eq(&self, other: &Self) -> bool {
        *self.get() == *other.get()
    }
}
impl<X: Eq> Eq for Alias<X> {}
impl<X: Hash> Hash for Alias<X> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.get().hash(state);
    }
}

/// A borrowed key, asking for an alias.
pub(super) struct Ask<'q, Q: ?Sized>(pub(super) &'q Q);

impl<Q: Hash + ?Sized> Hash for Ask<'_, Q> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
impl<K, Q: Equivalent<K> + ?Sized> Equivalent<Alias<K>> for Ask<'_, Q> {
    #[inline]
    fn equivalent(&self, key: &Alias<K>) -> bool {
        self.0.equivalent(key.get())
    }
}
