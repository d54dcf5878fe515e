//! Types that are words.

use std::num::{
    NonZeroI8, NonZeroI16, NonZeroI32, NonZeroI64, NonZeroIsize, NonZeroU8, NonZeroU16, NonZeroU32,
    NonZeroU64, NonZeroUsize,
};

/// Only this crate and its macro say what a word is.
#[doc(hidden)]
pub mod sealed {
    /// What a word is, under a name that no caller of the macro can shadow.
    pub type Bits = u64;

    /// The two directions.
    ///
    /// # Safety
    /// `from_word(x.to_word())` is `x`.
    pub unsafe trait Sealed: Copy + Send + Sync + 'static {
        fn to_word(self) -> u64;

        /// # Safety
        /// The word was made by `to_word` of the same type.
        unsafe fn from_word(word: u64) -> Self;
    }
}
use sealed::Sealed;

/// A key or value of a [`WordMap`](super::WordMap): anything `Copy` that fits into 64 bits.
///
/// Implemented for the integers of all widths up to 64 bits, their `NonZero` forms, `bool`, `char`,
/// `f32` and `f64` (by their bits: as keys, `0.0` and `-0.0` differ and a NaN equals itself), `()`,
/// pairs of integers of up to 32 bits, `[u8; N]`, `[u16; N]` and `[u32; N]` of up to 64 bits in
/// all, `Option`s of `NonZero` integers, and `&'static T` of a `Sync` type (by address: two equal
/// values at two places are two keys). For ids of your own see [`word_type!`](crate::word_type).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no word: keys and values of a `WordMap` are `Copy` and fit into 64 bits",
    label = "no word",
    note = "words are integers of up to 64 bits, pairs and short arrays of small ones, floats, `bool`, `char`, `()` and `&'static` references",
    note = "a newtype of a word becomes one by `quintet::word_type!`; other keys and values go into an `ItemSet` or a `TwinMap`"
)]
pub trait Word: Sealed {}

/// A word one can calculate with: the integers of all widths.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no integer: only integers are counted with",
    label = "no integer",
    note = "`update` and `compute` change values of every type"
)]
pub trait Integer: Word {
    #[doc(hidden)]
    fn wrapping_add(self, other: Self) -> Self;
    #[doc(hidden)]
    fn wrapping_sub(self, other: Self) -> Self;
    #[doc(hidden)]
    fn larger(self, other: Self) -> Self;
    #[doc(hidden)]
    fn smaller(self, other: Self) -> Self;
    #[doc(hidden)]
    fn and(self, other: Self) -> Self;
    #[doc(hidden)]
    fn or(self, other: Self) -> Self;
    #[doc(hidden)]
    fn xor(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($ty:ty)+) => { $(
        // SAFETY: widening and narrowing back keeps an integer.
        unsafe impl Sealed for $ty {
            #[inline(always)]
            fn to_word(self) -> u64 { self as u64 }
            #[inline(always)]
            unsafe fn from_word(word: u64) -> Self { word as Self }
        }
        impl Word for $ty {}
        impl Integer for $ty {
            #[inline(always)]
            fn wrapping_add(self, other: Self) -> Self { <$ty>::wrapping_add(self, other) }
            #[inline(always)]
            fn wrapping_sub(self, other: Self) -> Self { <$ty>::wrapping_sub(self, other) }
            #[inline(always)]
            fn larger(self, other: Self) -> Self { self.max(other) }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self { self.min(other) }
            #[inline(always)]
            fn and(self, other: Self) -> Self { self & other }
            #[inline(always)]
            fn or(self, other: Self) -> Self { self | other }
            #[inline(always)]
            fn xor(self, other: Self) -> Self { self ^ other }
        }
    )+ };
}
integers! { u8 u16 u32 u64 usize i8 i16 i32 i64 isize }

macro_rules! words {
    ($($ty:ty: $value:ident => $to:expr, $word:ident => $from:expr;)+) => { $(
        // SAFETY: the two expressions undo each other.
        unsafe impl Sealed for $ty {
            #[inline(always)]
            fn to_word(self) -> u64 { let $value = self; $to }
            #[inline(always)]
            unsafe fn from_word($word: u64) -> Self { $from }
        }
        impl Word for $ty {}
    )+ };
}
words! {
    (): _value => 0, _word => ();
    bool: value => u64::from(value), word => word != 0;
    char: value => u64::from(u32::from(value)), word => made(char::from_u32(word as u32));
    f32: value => u64::from(value.to_bits()), word => f32::from_bits(word as u32);
    f64: value => value.to_bits(), word => f64::from_bits(word);
    NonZeroU8: value => value.get() as u64, word => made(Self::new(word as _));
    NonZeroU16: value => value.get() as u64, word => made(Self::new(word as _));
    NonZeroU32: value => value.get() as u64, word => made(Self::new(word as _));
    NonZeroU64: value => value.get(), word => made(Self::new(word));
    NonZeroUsize: value => value.get() as u64, word => made(Self::new(word as _));
    NonZeroI8: value => value.get() as u64, word => made(Self::new(word as _));
    NonZeroI16: value => value.get() as u64, word => made(Self::new(word as _));
    NonZeroI32: value => value.get() as u64, word => made(Self::new(word as _));
    NonZeroI64: value => value.get() as u64, word => made(Self::new(word as _));
    NonZeroIsize: value => value.get() as u64, word => made(Self::new(word as _));
}

macro_rules! options {
    ($($ty:ident)+) => { $(
        // SAFETY: 0 is no value of the type, and so stands for none.
        unsafe impl Sealed for Option<$ty> {
            #[inline(always)]
            fn to_word(self) -> u64 { self.map_or(0, Sealed::to_word) }
            #[inline(always)]
            unsafe fn from_word(word: u64) -> Self { $ty::new(word as _) }
        }
        impl Word for Option<$ty> {}
    )+ };
}
options! {
    NonZeroU8 NonZeroU16 NonZeroU32 NonZeroU64 NonZeroUsize
    NonZeroI8 NonZeroI16 NonZeroI32 NonZeroI64 NonZeroIsize
}

macro_rules! pairs {
    ([$($first:ident)+] $seconds:tt) => { $(pairs! { $first $seconds })+ };
    ($first:ident [$($second:ident)+]) => { $(
        // SAFETY: the second has the low bits to itself, the first those above, of which there are
        // enough.
        unsafe impl Sealed for ($first, $second) {
            #[inline(always)]
            fn to_word(self) -> u64 {
                const { assert!($first::BITS + $second::BITS <= u64::BITS) };
                (self.0 as u64) << $second::BITS | self.1 as u64 & ((1 << $second::BITS) - 1)
            }
            #[inline(always)]
            unsafe fn from_word(word: u64) -> Self {
                ((word >> $second::BITS) as $first, word as $second)
            }
        }
        impl Word for ($first, $second) {}
    )+ };
}
pairs! { [u8 u16 u32 i8 i16 i32] [u8 u16 u32 i8 i16 i32] }

macro_rules! arrays {
    ($($ty:ident: $($length:literal)+;)+) => { $($(
        // SAFETY: each has bits of its own, the first the lowest, and there are enough.
        unsafe impl Sealed for [$ty; $length] {
            #[inline(always)]
            fn to_word(self) -> u64 {
                const { assert!($length * $ty::BITS <= u64::BITS) };
                self.iter().rev().fold(0, |word, part| word << $ty::BITS | *part as u64)
            }
            #[inline(always)]
            unsafe fn from_word(word: u64) -> Self {
                std::array::from_fn(|index| (word >> (index as u32 * $ty::BITS)) as $ty)
            }
        }
        impl Word for [$ty; $length] {}
    )+)+ };
}
arrays! {
    u8: 1 2 3 4 5 6 7 8;
    u16: 1 2 3 4;
    u32: 1 2;
}

/// A word that `to_word` made is always a value.
#[inline(always)]
fn made<T>(value: Option<T>) -> T {
    value.expect("a word of this type, made by `to_word`")
}

// SAFETY: an address with exposed provenance gives the reference back.
unsafe impl<T: Sync> Sealed for &'static T {
    #[inline(always)]
    fn to_word(self) -> u64 {
        std::ptr::from_ref(self).expose_provenance() as u64
    }
    #[inline(always)]
    unsafe fn from_word(word: u64) -> Self {
        // SAFETY: the caller's word was made by `to_word` from a reference that lives for ever, and
        // whose provenance was exposed there.
        unsafe { &*std::ptr::with_exposed_provenance::<T>(word as usize) }
    }
}
impl<T: Sync> Word for &'static T {}

/// Makes a newtype of yours a [`Word`](crate::word_map::Word).
///
/// ```
/// use quintet::{WordMap, word_type};
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct UserId(u32);
/// word_type!(UserId(u32));
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct Point((i32, i32));
/// word_type!(Point((i32, i32)));
///
/// let last_seen: WordMap<UserId, Point> = WordMap::new();
/// last_seen.insert(UserId(7), Point((3, -4)));
/// assert_eq!(last_seen.iter().next(), Some((UserId(7), Point((3, -4)))));
/// ```
#[macro_export]
macro_rules! word_type {
    ($name:ident($inner:ty)) => {
        // The field has this very type. Values and references coerce where another type is expected
        // (`&&T` becomes `&T`, and is another word); pointers to values of two types do not.
        const _: fn(&mut $name) -> *mut $inner = |value| &raw mut value.0;
        // SAFETY: both directions are those of the only field: `Self(..)` compiles for one field
        // alone, and the line above for its type alone.
        unsafe impl $crate::word_map::sealed::Sealed for $name {
            #[inline(always)]
            fn to_word(self) -> $crate::word_map::sealed::Bits {
                $crate::word_map::sealed::Sealed::to_word(self.0)
            }
            #[inline(always)]
            unsafe fn from_word(word: $crate::word_map::sealed::Bits) -> Self {
                // SAFETY: made by `to_word` above, so by that of the field, whose type is `$inner`.
                Self(unsafe { <$inner as $crate::word_map::sealed::Sealed>::from_word(word) })
            }
        }
        impl $crate::word_map::Word for $name where $inner: $crate::word_map::Word {}
    };
}
