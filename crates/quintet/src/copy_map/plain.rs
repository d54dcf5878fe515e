//! Plain data, and how an entry of it lies in words.
//!
//! ```text
//!   byte 0            size K            size K + size V      8 · WORDS
//!        [ key ...... | value ......... | zero ............ ]
//! ```
//!
//! **P1.** The bytes of a key and of a value are all there are: no padding, so that every one of
//! them has a value and may lie in an integer.
//! **P2.** A key or a value is made only of words that one entry had at one moment: then they are
//! the bytes of a `K` and of a `V` that somebody has put there. So a type of which not every bit
//! pattern is a value, as `bool`, is as good as any.
//! **P3.** A copy of a key equals the key (`Eq` is reflexive, and keys are `Copy`): equal bytes are
//! equal keys. The opposite need not hold.

use super::bucket::MOST_LANES;
use crate::sync::MODEL;
use std::marker::PhantomData;
use std::num::NonZero;

/// Data that may be copied byte by byte while others write, and put together afterwards.
///
/// Implemented for integers, floats, `bool`, `char`, `()`, non-zero integers, arrays of plain data,
/// and tuples of two to four numbers of one type. For a struct of one's own there is
/// [`plain!`](crate::plain); behind the feature `bytemuck`, [`NoUninit`](crate::copy_map::NoUninit)
/// wraps what is `bytemuck::NoUninit`.
///
/// # Safety
/// The type has no padding and no other bytes without a value (as a `MaybeUninit` has), and holds
/// no pointer or reference: its bytes go through integers, which carry no provenance.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not plain data",
    note = "for a struct of your own, declare it inside of `quintet::plain! {{ .. }}`"
)]
pub unsafe trait Plain: Copy + Send + 'static {}

macro_rules! plain_types {
    ($($type:ty)*) => { $(
        // SAFETY: a number, or one of few: all bytes have values, and it is no pointer.
        unsafe impl Plain for $type {}
    )* };
}
plain_types! {
    () bool char u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64
    NonZero<u8> NonZero<u16> NonZero<u32> NonZero<u64> NonZero<u128> NonZero<usize>
    NonZero<i8> NonZero<i16> NonZero<i32> NonZero<i64> NonZero<i128> NonZero<isize>
}

// SAFETY: an array has no bytes but those of its elements.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

macro_rules! plain_tuples {
    ($($type:ident)*) => { $(
        plain_tuples!(@one ($type, $type), 2 * size_of::<$type>());
        plain_tuples!(@one ($type, $type, $type), 3 * size_of::<$type>());
        plain_tuples!(@one ($type, $type, $type, $type), 4 * size_of::<$type>());
    )* };
    (@one $tuple:ty, $bytes:expr) => {
        const _: () = assert!(size_of::<$tuple>() == $bytes);
        // SAFETY: numbers, and as checked above no bytes besides, in whatever order they lie.
        unsafe impl Plain for $tuple {}
    };
}
plain_tuples! { u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 }

/// Declares structs of plain data, and checks that they are: every field is, and there is no
/// padding.
///
/// ```
/// quintet::plain! {
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub struct Position {
///         pub x: f64,
///         pub y: f64,
///         pub floor: u32,
///         pub seen: u32,
///     }
///
///     #[derive(Clone, Copy, PartialEq, Eq, Hash)]
///     struct Id([u8; 16]);
/// }
///
/// let places = quintet::CopyMap::<u64, Position>::new();
/// places.insert(7, Position { x: 1.0, y: 2.0, floor: 3, seen: 0 });
/// assert_eq!(places.get(&7).unwrap().floor, 3);
/// ```
///
/// A struct with padding does not compile; fill the gap with a field, or put the fields in another
/// order.
///
/// ```compile_fail
/// quintet::plain! {
///     #[derive(Clone, Copy)]
///     struct Gap {
///         small: u8,
///         large: u32, // three bytes before it have no value
///     }
/// }
/// ```
///
/// Nor does one that holds a pointer.
///
/// ```compile_fail
/// quintet::plain! {
///     #[derive(Clone, Copy)]
///     struct Named(&'static str);
/// }
/// ```
#[macro_export]
macro_rules! plain {
    () => {};
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty),* $(,)?
    } $($rest:tt)*) => {
        $(#[$meta])* $vis struct $name { $($(#[$field_meta])* $field_vis $field: $type),* }
        $crate::plain!(@check $name: $($type),*);
        $crate::plain!($($rest)*);
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident(
        $($(#[$field_meta:meta])* $field_vis:vis $type:ty),* $(,)?
    ); $($rest:tt)*) => {
        $(#[$meta])* $vis struct $name($($(#[$field_meta])* $field_vis $type),*);
        $crate::plain!(@check $name: $($type),*);
        $crate::plain!($($rest)*);
    };
    (@check $name:ident: $($type:ty),*) => {
        const _: () = {
            const fn plain<T: $crate::copy_map::Plain>() -> usize {
                ::core::mem::size_of::<T>()
            }
            assert!(
                ::core::mem::size_of::<$name>() == 0 $(+ plain::<$type>())*,
                "the struct has padding: fill it with a field, or put the fields in another order"
            );
            // SAFETY: every field is plain data, and they are all there is: the sizes say so.
            unsafe impl $crate::copy_map::Plain for $name {}
        };
    };
}

/// A value that is `bytemuck::NoUninit`, as plain data.
#[cfg(feature = "bytemuck")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct NoUninit<T>(pub T);

// SAFETY: `NoUninit` promises that no byte is without a value. It does not exclude pointers by
// name, but a pointer has provenance, and may not be turned into bytes: bytemuck implements it for
// none.
#[cfg(feature = "bytemuck")]
unsafe impl<T: bytemuck::NoUninit + Send> Plain for NoUninit<T> {}

/// The words of the largest entry.
pub(super) const MOST_WORDS: usize = 6;

/// The words of an entry; those behind its own are 0.
pub(super) type Entry = [u64; MOST_WORDS];

/// How entries of `K` and `V` lie in words.
pub(super) struct Shape<K, V>(PhantomData<(K, V)>);

impl<K: Plain, V: Plain> Shape<K, V> {
    const KEY: usize = size_of::<K>();
    const BYTES: usize = Self::KEY + size_of::<V>();

    /// Words of an entry.
    pub(super) const WORDS: usize = {
        assert!(
            Self::BYTES <= 8 * MOST_WORDS,
            "CopyMap: key and value take more than 48 bytes together; use a table that points to its values"
        );
        if Self::BYTES == 0 { 1 } else { Self::BYTES.div_ceil(8) }
    };

    /// Lanes of a bucket. One under a model checker, so that buckets are full sooner.
    pub(super) const LANES: usize = if MODEL { 1 } else { MOST_LANES };

    /// The words with bytes of the value: from here to [`WORDS`](Self::WORDS).
    pub(super) const VALUE_FROM: usize = Self::KEY / 8;

    /// One word has all of the value: it changes by one store.
    pub(super) const VALUE_IN_ONE: bool =
        size_of::<V>() == 0 || Self::VALUE_FROM + 1 == Self::WORDS;

    /// The bytes of the last word of the key that are the key's.
    const KEY_MASK: u64 = {
        let mut bytes = [0; 8];
        let mut index = 0;
        while index < Self::KEY % 8 {
            bytes[index] = 0xff;
            index += 1;
        }
        u64::from_ne_bytes(bytes)
    };

    #[inline(always)]
    pub(super) fn pack(key: K, value: V) -> Entry {
        const { assert!(Self::WORDS <= MOST_WORDS) }
        let mut entry = [0; MOST_WORDS];
        let start = entry.as_mut_ptr().cast::<u8>();
        // SAFETY: within the array, as checked above; no byte of it is without a value (P1).
        unsafe { start.cast::<K>().write_unaligned(key) };
        // SAFETY: as above.
        let rest = unsafe { start.add(Self::KEY) };
        // SAFETY: as above.
        unsafe { rest.cast::<V>().write_unaligned(value) };
        entry
    }

    /// The key of an entry.
    ///
    /// # Safety
    /// The entry was packed by [`pack`](Self::pack), and its words are of one moment (P2).
    #[inline(always)]
    pub(super) unsafe fn key(entry: &Entry) -> K {
        // SAFETY: the bytes of a key begin every entry, as the caller promises.
        unsafe { entry.as_ptr().cast::<K>().read_unaligned() }
    }

    /// The value of an entry.
    ///
    /// # Safety
    /// As for [`key`](Self::key).
    #[inline(always)]
    pub(super) unsafe fn value(entry: &Entry) -> V {
        // SAFETY: within the entry, which has at least so many bytes.
        let place = unsafe { entry.as_ptr().cast::<u8>().add(Self::KEY) };
        // SAFETY: the bytes of a value lie behind the key, as the caller promises.
        unsafe { place.cast::<V>().read_unaligned() }
    }

    /// Whether two entries have the same bytes as key (P3).
    #[inline(always)]
    pub(super) fn same_key(one: &Entry, other: &Entry) -> bool {
        let whole = Self::KEY / 8;
        let rest = |entry: &Entry| {
            if Self::KEY_MASK == 0 { 0 } else { entry[whole] & Self::KEY_MASK }
        };
        one[..whole] == other[..whole] && rest(one) == rest(other)
    }

    /// Whether two entries are the same, byte by byte.
    #[inline(always)]
    pub(super) fn same(one: &Entry, other: &Entry) -> bool {
        one[..Self::WORDS] == other[..Self::WORDS]
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    fn round_trip<K: Plain + PartialEq, V: Plain + PartialEq>(key: K, value: V, words: usize) {
        type S<K, V> = Shape<K, V>;
        let entry = S::<K, V>::pack(key, value);
        // SAFETY: just packed, here and below.
        assert!(unsafe { S::<K, V>::key(&entry) } == key);
        // SAFETY: as above.
        assert!(unsafe { S::<K, V>::value(&entry) } == value);
        assert!(S::<K, V>::same_key(&entry, &entry) && S::<K, V>::same(&entry, &entry));
        assert_eq!(S::<K, V>::WORDS, words);
    }

    #[test]
    fn entries_of_all_sizes_come_out_as_they_went_in() {
        round_trip(1u32, 2u32, 1);
        round_trip((), (), 1);
        round_trip(true, 'x', 1);
        round_trip(1u64, u64::MAX, 2);
        round_trip([7u8; 9], 3u8, 2);
        round_trip([7u8; 16], 1u64, 3);
        round_trip(1u128, 9u32, 3);
        round_trip(5u64, [1u64, 2, 3], 4);
        round_trip(5u64, [1u64; 4], 5);
        round_trip([1u8; 20], [2u8; 28], 6);
        round_trip((1.5f64, 2.5), (1i32, 2, 3, 4), 4);
    }

    #[test]
    fn keys_are_compared_without_the_value() {
        type S = Shape<[u8; 5], u32>;
        let one = S::pack([1, 2, 3, 4, 5], 6);
        assert!(S::same_key(&one, &S::pack([1, 2, 3, 4, 5], 7)));
        assert!(!S::same_key(&one, &S::pack([1, 2, 3, 4, 6], 6)));
        assert!(!S::same(&one, &S::pack([1, 2, 3, 4, 5], 7)));
        type L = Shape<u64, u64>;
        assert!(L::same_key(&L::pack(1, 2), &L::pack(1, 3)));
        assert!(!L::same_key(&L::pack(1, 2), &L::pack(2, 2)));
    }

    #[test]
    fn one_word_holds_the_value_or_it_does_not() {
        let one = [
            (Shape::<u64, u64>::VALUE_IN_ONE, Shape::<u32, u32>::VALUE_IN_ONE),
            (Shape::<u128, u32>::VALUE_IN_ONE, Shape::<u64, ()>::VALUE_IN_ONE),
        ];
        let more = (Shape::<u64, u128>::VALUE_IN_ONE, Shape::<u32, u64>::VALUE_IN_ONE);
        assert_eq!((one, more), ([(true, true); 2], (false, false)));
    }
}
