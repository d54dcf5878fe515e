//! What may be offered to a set, and what may be sought in it.
//!
//! **U1.** What is offered hashes as the record does that it becomes, and equals the same records:
//! `Borrow` promises so.
//! **U2.** A record is made of a borrowed form when its place is known, not before: what is known
//! already costs no allocation. It is made before it is written, so that user code runs while
//! nothing is half done (`arena` R3, `core` I4).
//! **U3.** An offer that has got in is forgotten whole: its bits are the set's, and beside the
//! record it holds nothing that must be dropped.

use super::budget::SeenError;
use super::record::Record;
use equivalent::Equivalent;
use std::borrow::Borrow;
use std::cell::OnceCell;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// What can be inserted into a set of records of type `R`.
///
/// | Set of | takes |
/// |---|---|
/// | `T` | a `T`, or a `&T` that is cloned if it is new |
/// | `String`, `Box<str>`, `Arc<str>` | also `&str` |
/// | `Vec<T>`, `Box<[T]>`, `Arc<[T]>` | also `&[T]` and `&[T; N]` |
/// | `[u8]` | `&[u8]`, `&[u8; N]`, `&Vec<u8>`, `&str`, `&String` |
///
/// A borrowed form is hashed and compared as it is; the record is made only if it is new.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be inserted into a `SeenSet` of `{R}`",
    label = "not a record of this set",
    note = "a set of `T` takes `T` and `&T`, one of `String` also `&str`, one of `Vec<T>` also `&[T]`, one of `[u8]` takes `&[u8]` and `&str`"
)]
pub trait IntoRecord<R: Record + ?Sized> {
    #[doc(hidden)]
    type Offer: Offer<R>;
    #[doc(hidden)]
    fn offer(self) -> Self::Offer;
}

/// What can be sought in a set of records of type `R`: what is [`Equivalent`] to a record and
/// hashes alike, and for byte strings whatever has bytes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sought in a `SeenSet` of `{R}`",
    label = "never equal to a record of this set",
    note = "a set of `T` is asked for `&T` or for what is `Equivalent<T>`, one of `[u8]` for `&[u8]` or `&str`"
)]
pub trait AsRecord<R: ?Sized> {
    #[doc(hidden)]
    fn hash_by(&self, hasher: &impl BuildHasher) -> u64;
    #[doc(hidden)]
    fn is_record(&self, kept: &R) -> bool;
}

/// A record on offer (U1 to U3).
pub trait Offer<R: Record + ?Sized> {
    /// Whether comparing or making it runs user code.
    const USER: bool;
    fn hash_by(&self, hasher: &impl BuildHasher) -> u64;
    fn is(&self, kept: &R) -> bool;
    /// Whether a set of this width takes it.
    #[inline(always)]
    fn fits(&self, _width: Option<usize>) -> Result<(), SeenError> {
        Ok(())
    }
    /// Bytes, of a byte string.
    #[inline(always)]
    fn bytes(&self) -> usize {
        0
    }
    /// Makes the record, if it is not made yet (U2).
    #[inline(always)]
    fn make(&self) {}
    /// Writes the record, behind its length if that is its own.
    ///
    /// # Safety
    /// It is made; at `place` there is aligned room for it that is the caller's alone. One of the
    /// two, offer and place, is forgotten (U3).
    unsafe fn write(&self, place: *mut u8, own_length: bool);
}

/// A record that is given as it is.
#[derive(Debug)]
pub struct Given<T>(T);

/// A record that is made of a borrowed form, once it is known to be new.
#[derive(Debug)]
pub struct Made<'a, B: ?Sized, T> {
    from: &'a B,
    how: fn(&'a B) -> T,
    made: OnceCell<T>,
}

/// A byte string.
#[derive(Debug)]
pub struct Text<'a>(&'a [u8]);

/// Bytes of the length in front of a byte string.
pub(super) const LENGTH: usize = 4;

impl<T: Hash + Eq + Send + Sync> Offer<T> for Given<T> {
    const USER: bool = true;

    #[inline(always)]
    fn hash_by(&self, hasher: &impl BuildHasher) -> u64 {
        hasher.hash_one(&self.0)
    }
    #[inline(always)]
    fn is(&self, kept: &T) -> bool {
        *kept == self.0
    }
    #[inline(always)]
    unsafe fn write(&self, place: *mut u8, _own_length: bool) {
        // SAFETY: the place is ours alone and aligned; whose the bits are then is the caller's
        // promise.
        unsafe { std::ptr::copy_nonoverlapping(&raw const self.0, place.cast::<T>(), 1) };
    }
}

impl<'a, B: Hash + Eq + ?Sized, T: Hash + Eq + Send + Sync + Borrow<B>> Offer<T>
    for Made<'a, B, T>
{
    const USER: bool = true;

    #[inline(always)]
    fn hash_by(&self, hasher: &impl BuildHasher) -> u64 {
        hasher.hash_one(self.from)
    }
    #[inline(always)]
    fn is(&self, kept: &T) -> bool {
        kept.borrow() == self.from
    }
    fn make(&self) {
        self.made.get_or_init(|| (self.how)(self.from));
    }
    #[inline(always)]
    unsafe fn write(&self, place: *mut u8, _own_length: bool) {
        let made = self.made.get().expect("made before it is written");
        // SAFETY: as for a record that is given.
        unsafe { std::ptr::copy_nonoverlapping(made, place.cast::<T>(), 1) };
    }
}

impl Offer<[u8]> for Text<'_> {
    const USER: bool = false;

    #[inline(always)]
    fn hash_by(&self, hasher: &impl BuildHasher) -> u64 {
        hasher.hash_one(self.0)
    }
    #[inline(always)]
    fn is(&self, kept: &[u8]) -> bool {
        kept == self.0
    }
    #[inline(always)]
    fn fits(&self, width: Option<usize>) -> Result<(), SeenError> {
        let (expected, found) = (width.unwrap_or(u32::MAX as usize), self.0.len());
        let fits = if width.is_some() { expected == found } else { found <= expected };
        if fits { Ok(()) } else { Err(SeenError::Width { expected, found }) }
    }
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    unsafe fn write(&self, mut place: *mut u8, own_length: bool) {
        if own_length {
            // SAFETY: the room is ours and begins with the length, which `fits`.
            unsafe { place.cast::<u32>().write_unaligned(self.0.len() as u32) };
            place = place.wrapping_add(LENGTH);
        }
        // SAFETY: so many bytes were asked for, or are the set's width, which it fits.
        unsafe { place.copy_from_nonoverlapping(self.0.as_ptr(), self.0.len()) };
    }
}

impl<T: Hash + Eq + Send + Sync> IntoRecord<T> for T {
    type Offer = Given<T>;

    #[inline(always)]
    fn offer(self) -> Given<T> {
        Given(self)
    }
}

impl<'a, T: Hash + Eq + Send + Sync + Clone> IntoRecord<T> for &'a T {
    type Offer = Made<'a, T, T>;

    #[inline(always)]
    fn offer(self) -> Self::Offer {
        Made { from: self, how: T::clone, made: OnceCell::new() }
    }
}

/// Borrowed forms of records that own what they hold.
macro_rules! made_of {
    (@one ($($generics:tt)*) $from:ty, $borrowed:ty, $to:ty) => {
        impl<'a, $($generics)*> IntoRecord<$to> for &'a $from {
            type Offer = Made<'a, $borrowed, $to>;

            #[inline(always)]
            fn offer(self) -> Self::Offer {
                Made { from: self, how: <$to>::from, made: OnceCell::new() }
            }
        }
    };
    (@each $generics:tt $from:ty, $borrowed:ty => $($to:ty),+) => { $(
        made_of!(@one $generics $from, $borrowed, $to);
    )+ };
    ($($generics:tt $from:ty as $borrowed:ty => ($($to:tt)+);)+) => { $(
        made_of!(@each $generics $from, $borrowed => $($to)+);
    )+ };
}
made_of! {
    () str as str => (String, Box<str>, Arc<str>);
    (T: Hash + Eq + Send + Sync + Clone) [T] as [T] => (Vec<T>, Box<[T]>, Arc<[T]>);
    (T: Hash + Eq + Send + Sync + Clone, const N: usize) [T; N] as [T] => (Vec<T>, Box<[T]>, Arc<[T]>);
}

/// What has bytes, for sets of byte strings.
macro_rules! bytes_of {
    ($(($($generics:tt)*) $from:ty, $view:ident;)+) => { $(
        impl<'a, $($generics)*> IntoRecord<[u8]> for &'a $from {
            type Offer = Text<'a>;

            #[inline(always)]
            fn offer(self) -> Text<'a> {
                Text(self.$view())
            }
        }

        impl<$($generics)*> AsRecord<[u8]> for $from {
            #[inline(always)]
            fn hash_by(&self, hasher: &impl BuildHasher) -> u64 {
                hasher.hash_one(self.$view())
            }
            #[inline(always)]
            fn is_record(&self, kept: &[u8]) -> bool {
                kept == self.$view()
            }
        }
    )+ };
}
bytes_of! {
    () [u8], as_ref;
    (const N: usize) [u8; N], as_slice;
    () Vec<u8>, as_slice;
    () str, as_bytes;
    () String, as_bytes;
}

impl<T, Q: Hash + Equivalent<T> + ?Sized> AsRecord<T> for Q {
    #[inline(always)]
    fn hash_by(&self, hasher: &impl BuildHasher) -> u64 {
        hasher.hash_one(self)
    }
    #[inline(always)]
    fn is_record(&self, kept: &T) -> bool {
        self.equivalent(kept)
    }
}
