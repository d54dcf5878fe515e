//! What a set holds.

use equivalent::Equivalent;
use std::hash::{Hash, Hasher};
use std::ptr;
use std::sync::Arc;

/// Something that carries its own key.
///
/// A set is asked by a key, or by whatever is [`Equivalent`] to one and feeds a hasher the same: by
/// a `str` where keys are `String`s.
///
/// The methods must agree: an item that [`matches`](Self::matches) a key feeds its hasher exactly
/// what the key's `Hash` feeds it, and two items have the [`same_key`](Self::same_key) if they
/// match the same keys. An item's key does not change while it is in a set. Breaking this loses the
/// item, nothing worse.
///
/// [`matches`](Self::matches) compares an item with a key, [`same_key`](Self::same_key) with
/// another item: an insert has an item in its hands and no key, and the key of an item that has it
/// spread over its fields cannot be borrowed from it.
///
/// Items that hold their key as one field implement [`Keyed`] instead, which is all that is needed.
///
/// ```
/// use quintet::item_set::{Equivalent, Item};
/// use std::hash::{Hash, Hasher};
///
/// /// Its key is spread over two fields.
/// struct Cell {
///     row: u32,
///     column: u32,
///     text: String,
/// }
///
/// impl Item for Cell {
///     type Key = (u32, u32);
///
///     fn matches<Q: ?Sized + Equivalent<(u32, u32)>>(&self, key: &Q) -> bool {
///         key.equivalent(&(self.row, self.column))
///     }
///     fn same_key(&self, other: &Self) -> bool {
///         other.matches(&(self.row, self.column))
///     }
///     fn hash_key<H: Hasher>(&self, state: &mut H) {
///         (self.row, self.column).hash(state);
///     }
/// }
///
/// let sheet = quintet::ItemSet::<Box<Cell>>::new();
/// sheet.insert(Cell { row: 1, column: 2, text: "sum".into() });
/// assert_eq!(sheet.get(&(1, 2)).unwrap().text, "sum");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what its key is",
    label = "an `ItemSet` needs items that carry their key",
    note = "implement `quintet::item_set::Keyed` for it, or `Item` if its key is not one field of it",
    note = "pairs `(K, V)` have their first part as a key if it is a number, a `String` or another listed type"
)]
pub trait Item {
    /// What an item is asked for by.
    type Key: ?Sized + Hash;

    /// True if this is the item of `key`. May read the set, but not write to it.
    fn matches<Q: ?Sized + Equivalent<Self::Key>>(&self, key: &Q) -> bool;

    /// True if both have the same key. May read the set, but not write to it.
    fn same_key(&self, other: &Self) -> bool;

    /// Feeds the hasher what the item's key would feed it.
    fn hash_key<H: Hasher>(&self, state: &mut H);

    /// Boxes of such items are made by this crate, which uses their memory again.
    #[doc(hidden)]
    const OURS: bool = false;
}

/// The easy form of [`Item`]: an item that holds its key.
///
/// ```
/// use quintet::item_set::Keyed;
///
/// struct User {
///     name: String,
///     age: u8,
/// }
///
/// impl Keyed for User {
///     type Key = String;
///     fn key(&self) -> &String {
///         &self.name
///     }
/// }
///
/// let users = quintet::ItemSet::<Box<User>>::new();
/// users.insert(User { name: "ada".into(), age: 36 });
/// assert_eq!(users.get("ada").map(|user| user.age), Some(36));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what its key is",
    label = "an `ItemSet` needs items that carry their key",
    note = "implement `quintet::item_set::Keyed` for it: `type Key` is the type of the key, and `fn key` shows it"
)]
pub trait Keyed {
    /// The key.
    type Key: ?Sized + Hash + Eq;

    /// The item's key.
    fn key(&self) -> &Self::Key;

    /// [`Item::OURS`].
    #[doc(hidden)]
    const OURS: bool = false;
}

impl<T: Keyed> Item for T {
    type Key = T::Key;
    const OURS: bool = T::OURS;

    #[inline(always)]
    fn matches<Q: ?Sized + Equivalent<Self::Key>>(&self, key: &Q) -> bool {
        key.equivalent(self.key())
    }

    #[inline(always)]
    fn same_key(&self, other: &Self) -> bool {
        self.key() == other.key()
    }

    #[inline(always)]
    fn hash_key<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// How a set owns its items: `Box<T>`, or `Arc<T>` to share them with others.
#[diagnostic::on_unimplemented(
    message = "an `ItemSet` cannot hold `{Self}`",
    label = "not a `Box` or an `Arc` of an item",
    note = "write `ItemSet<Box<T>>`, or `ItemSet<Arc<T>>` to share items with others",
    note = "`T` implements `quintet::item_set::Keyed` (or `Item`), `Send` and `Sync`"
)]
pub trait Pointer: Send + Sync + Sized + sealed::Sealed {
    /// The item.
    type Item: Item;

    /// A box, whose memory is used again (`reclaim` E11).
    #[doc(hidden)]
    const REUSED: bool;

    #[doc(hidden)]
    fn into_raw(self) -> *mut ();

    #[doc(hidden)]
    fn as_item(&self) -> &Self::Item;

    /// # Safety
    /// `raw` came from `into_raw`, and is given back once.
    #[doc(hidden)]
    unsafe fn from_raw(raw: *mut ()) -> Self;
}

/// A [`Pointer`] that can be cloned: a `Box` of what can be, with its content, or an `Arc`, which
/// is shared.
pub trait Duplicate: Pointer {
    /// # Safety
    /// `raw` came from `into_raw`, and is not given back meanwhile.
    #[doc(hidden)]
    unsafe fn duplicate(raw: *mut ()) -> Self;
}

impl<T: Item + Send + Sync + Clone> Duplicate for Box<T> {
    unsafe fn duplicate(raw: *mut ()) -> Self {
        // SAFETY: the caller's promise; only looked at.
        Self::new(unsafe { &*raw.cast::<T>() }.clone())
    }
}

impl<T: Item + Send + Sync> Duplicate for Arc<T> {
    unsafe fn duplicate(raw: *mut ()) -> Self {
        // SAFETY: the caller's promise: the count of the set is there.
        unsafe { Self::increment_strong_count(raw.cast_const().cast::<T>()) };
        // SAFETY: the count that was just added.
        unsafe { Self::from_raw(raw.cast_const().cast()) }
    }
}

mod sealed {
    pub trait Sealed {}
    impl<T> Sealed for Box<T> {}
    impl<T> Sealed for std::sync::Arc<T> {}
}

impl<T: Item + Send + Sync> Pointer for Box<T> {
    type Item = T;
    const REUSED: bool = T::OURS;

    #[inline(always)]
    fn into_raw(self) -> *mut () {
        if align_of::<T>() > 1 { Self::into_raw(self).cast() } else { into_even(self) }
    }

    #[inline(always)]
    fn as_item(&self) -> &T {
        self
    }

    unsafe fn from_raw(raw: *mut ()) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::from_raw(raw.cast()) }
    }
}

/// The raw pointer of a box whose type does not say that its address is even, at one that is
/// (`item_word` Y3).
fn into_even<T>(boxed: Box<T>) -> *mut () {
    if size_of::<T>() == 0 {
        std::mem::forget(boxed);
        // What has no bytes lies anywhere.
        return ptr::without_provenance_mut(2);
    }
    let Some(boxed) = moved(boxed, |address| address % 2 == 0) else {
        panic!("ItemSet: the allocator has odd addresses only for items that are bytes")
    };
    Box::into_raw(boxed).cast()
}

/// The same value in a box at an address that fits, unless none is found in many attempts.
fn moved<T>(boxed: Box<T>, mut fits: impl FnMut(usize) -> bool) -> Option<Box<T>> {
    const ATTEMPTS: usize = 64;
    if fits(ptr::from_ref(&*boxed).addr()) {
        return Some(boxed);
    }
    // Kept until one is found, or the same would come again.
    let mut others = Vec::new();
    for _ in 0..ATTEMPTS {
        let mut room = Box::<T>::new_uninit();
        if fits(room.as_ptr().addr()) {
            room.write(*boxed);
            // SAFETY: just written.
            return Some(unsafe { room.assume_init() });
        }
        others.push(room);
    }
    None
}

impl<T: Item + Send + Sync> Pointer for Arc<T> {
    type Item = T;
    const REUSED: bool = false;

    #[inline(always)]
    fn into_raw(self) -> *mut () {
        Self::into_raw(self).cast_mut().cast()
    }

    #[inline(always)]
    fn as_item(&self) -> &T {
        self
    }

    unsafe fn from_raw(raw: *mut ()) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::from_raw(raw.cast_const().cast()) }
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;
    use crate::ItemSet;

    /// Ten bytes, or none.
    #[derive(Debug, PartialEq, Eq)]
    struct Bytes<const N: usize>([u8; N]);

    impl<const N: usize> Keyed for Bytes<N> {
        type Key = [u8; N];
        fn key(&self) -> &[u8; N] {
            &self.0
        }
    }

    #[test]
    fn items_that_are_bytes_lie_at_even_addresses() {
        for _ in 0..100 {
            let raw = Box::new(Bytes([7; 3])).into_raw();
            assert_eq!(raw.addr() % 2, 0);
            // SAFETY: made above.
            assert_eq!(*unsafe { <Box<Bytes<3>> as Pointer>::from_raw(raw) }, Bytes([7; 3]));
        }
        let set = ItemSet::<Box<Bytes<1>>>::new();
        (0..200).for_each(|byte| assert!(set.insert(Bytes([byte])).is_none()));
        (0..200).for_each(|byte| assert!(set.insert(Bytes([byte])).is_some()));
        (0..200).for_each(|byte| assert_eq!(set.remove(&[byte]).map(|old| old.0), Some([byte])));
    }

    #[test]
    fn items_without_bytes_lie_anywhere() {
        let set = ItemSet::<Box<Bytes<0>>>::new();
        assert!(set.insert(Bytes([])).is_none());
        assert!(set.insert(Bytes([])).is_some() && set.contains(&[]));
        assert!(set.remove(&[]).is_some() && set.is_empty());
    }

    #[test]
    fn an_item_is_moved_until_its_address_fits() {
        let mut asked = 0;
        let fits_at = |last| {
            let mut asked = 0;
            move |_| {
                asked += 1;
                asked > last
            }
        };
        let text = || Box::new(String::from("a text"));
        for moves in [0, 1, 5] {
            assert_eq!(*moved(text(), fits_at(moves)).unwrap(), "a text");
        }
        let never = |_| {
            asked += 1;
            false
        };
        assert!(moved(text(), never).is_none());
        assert_eq!(asked, 65);
    }
}
