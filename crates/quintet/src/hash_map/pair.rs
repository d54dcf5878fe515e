//! What a map holds: a key and its value, in one box.

use crate::item_set::{Equivalent, ItemSet, Keyed};
use std::hash::Hash;
use std::sync::Arc;

/// What can be a key of a [`HashMap`](crate::HashMap) or an element of a
/// [`HashSet`](crate::HashSet): whatever can be hashed, compared and shared by threads. There is
/// nothing to implement.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key that threads share",
    note = "a key is `Hash`, `Eq`, `Send` and `Sync`: derive the first two, and keep what is not `Sync` in a `Mutex`, outside of the key"
)]
pub trait Key: Hash + Eq + Send + Sync {}
impl<K: Hash + Eq + Send + Sync> Key for K {}

/// What can be a value of a [`HashMap`](crate::HashMap): whatever threads can share. There is
/// nothing to implement.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a value that threads share",
    note = "a value is `Send` and `Sync`, since several threads may look at it at once: put what is not `Sync` into a `Mutex`"
)]
pub trait Value: Send + Sync {}
impl<V: Send + Sync> Value for V {}

/// A key and its value. It is replaced as a whole, and never changed while others can see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair<K, V> {
    pub(super) key: K,
    pub(super) value: V,
}

impl<K: Hash + Eq, V> Keyed for Pair<K, V> {
    type Key = K;
    const OURS: bool = true;
    #[inline(always)]
    fn key(&self) -> &K {
        &self.key
    }
}

/// The set under a map.
pub(super) type Pairs<K, V, S> = ItemSet<Box<Pair<K, V>>, S>;

/// A borrowed form of a key from which the key can be made: for
/// [`entry_ref`](crate::HashMap::entry_ref), which makes one only where it is needed.
///
/// ```
/// use quintet::hash_map::ToKey;
/// use std::sync::Arc;
///
/// let owned: String = "apple".to_key();
/// let shared: Arc<str> = "apple".to_key();
/// let number: u64 = 7.to_key();
/// assert_eq!((owned.as_str(), &*shared, number), ("apple", "apple", 7));
/// ```
#[diagnostic::on_unimplemented(
    message = "no key `{K}` can be made of a `{Self}`",
    note = "implement `quintet::hash_map::ToKey<{K}>` for it, or give an owned key to `entry`"
)]
pub trait ToKey<K>: Hash + Equivalent<K> {
    /// The key.
    fn to_key(&self) -> K;
}

impl<K: Hash + Eq + Clone> ToKey<K> for K {
    fn to_key(&self) -> K {
        self.clone()
    }
}

/// Texts, bytes and paths, owned, boxed and shared.
macro_rules! to_key {
    ($($borrowed:ty: $($owned:ty),+;)*) => {$($(
        impl ToKey<$owned> for $borrowed {
            fn to_key(&self) -> $owned {
                self.into()
            }
        }
    )+)*};
}

to_key! {
    str: String, Box<str>, Arc<str>;
    [u8]: Vec<u8>, Box<[u8]>, Arc<[u8]>;
    std::path::Path: std::path::PathBuf, Box<std::path::Path>, Arc<std::path::Path>;
    std::ffi::OsStr: std::ffi::OsString, Box<std::ffi::OsStr>, Arc<std::ffi::OsStr>;
}

/// How an operation names the key it is about, and where the key of a new entry comes from: by a
/// key that is [given](Given), or one that is [made](Made) when it is needed.
pub trait Name<K: Key> {
    /// What is asked for.
    type Asked: ?Sized + Hash + Equivalent<K>;

    /// What is asked for. To be called while the key is not away.
    fn asked(&self) -> &Self::Asked;

    /// A key for the new entry, in the place of the one that was seen.
    #[doc(hidden)]
    fn take(&mut self, seen: Option<&K>) -> K;

    /// The entry was not stored: its key comes back.
    #[doc(hidden)]
    fn give_back(&mut self, key: K);
}

/// A key that was handed over. It is there except while its entry is being written.
#[derive(Debug)]
pub struct Given<K>(Option<K>);

impl<K> Given<K> {
    pub(super) fn new(key: K) -> Self {
        Self(Some(key))
    }
}

impl<K: Key> Name<K> for Given<K> {
    type Asked = K;

    fn asked(&self) -> &K {
        self.0.as_ref().unwrap_or_else(|| unreachable!("the key is away"))
    }
    fn take(&mut self, _seen: Option<&K>) -> K {
        self.0.take().unwrap_or_else(|| unreachable!("the key is away"))
    }
    fn give_back(&mut self, key: K) {
        self.0 = Some(key);
    }
}

/// A key that is only asked for: a new entry gets a clone of that in the old one. Not for
/// operations that add.
pub(super) struct Asked<'q, Q: ?Sized, K> {
    query: &'q Q,
    spare: Option<K>,
}

impl<'q, Q: ?Sized, K> Asked<'q, Q, K> {
    pub(super) fn new(query: &'q Q) -> Self {
        Self { query, spare: None }
    }
}

impl<K: Key + Clone, Q: ?Sized + Hash + Equivalent<K>> Name<K> for Asked<'_, Q, K> {
    type Asked = Q;

    fn asked(&self) -> &Q {
        self.query
    }
    fn take(&mut self, seen: Option<&K>) -> K {
        let spare = self.spare.take().or_else(|| seen.cloned());
        spare.unwrap_or_else(|| unreachable!("nothing is added for a key that is only asked for"))
    }
    fn give_back(&mut self, key: K) {
        self.spare = Some(key);
    }
}

/// A key that is made when it is needed.
#[derive(Debug)]
pub struct Made<'q, Q: ?Sized, K> {
    query: &'q Q,
    spare: Option<K>,
}

impl<'q, Q: ?Sized, K> Made<'q, Q, K> {
    pub(super) fn new(query: &'q Q) -> Self {
        Self { query, spare: None }
    }
}

impl<K: Key, Q: ?Sized + ToKey<K>> Name<K> for Made<'_, Q, K> {
    type Asked = Q;

    fn asked(&self) -> &Q {
        self.query
    }
    fn take(&mut self, _seen: Option<&K>) -> K {
        self.spare.take().unwrap_or_else(|| self.query.to_key())
    }
    fn give_back(&mut self, key: K) {
        self.spare = Some(key);
    }
}
