//! Items that carry their own key, read without a lock.
//!
//! | Room | Holds |
//! |---|---|
//! | `item`, `keys` | [`Item`], [`Keyed`], [`Pointer`]: what a set holds |
//! | `outside`, `handle`, `lend` | the operations of the set itself and of a [`Handle`], and the [`Ref`]s they lend |
//! | `inside` | the same inside a section: [`Pin`], [`QuietHandle`], and plain references |
//! | `iter`, `owned`, `many` | walks; items that have left; many keys at once |
//! | `modify`, `fallible` | read, think, write; errors instead of panics |
//! | `traits`, `serde` | what collections do, too |
//! | `core` | the pair of tables: find, put, remove |
//! | `write` | the ways that a write takes |
//! | `at_once` | the usual case of these, in few instructions |
//! | `grow` | when a table is left, and how everybody moves on |
//! | `table`, `plan`, `row`, `word` | one table, what it is made with, its lines, and its packed words |
//! | `places` | how a place is found, dealt out, claimed and filled |
//! | `shard` | the writers' locks, and the watch over user code under them |
//! | `builder`, `stats` | settings, figures |
#![doc = include_str!("../../docs/item_set.md")]

mod at_once;
mod builder;
mod core;
mod fallible;
mod grow;
mod handle;
mod inside;
mod item;
mod iter;
mod keys;
mod lend;
mod many;
mod modify;
mod outside;
mod own;
mod owned;
#[cfg(feature = "rayon")]
mod par;
mod places;
mod plan;
mod row;
#[cfg(feature = "serde")]
mod serde;
mod shard;
mod stats;
mod table;
mod traits;
mod word;
mod write;

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod holes;
#[cfg(all(test, quintet_loom))]
mod loom_modify;
#[cfg(all(test, quintet_loom))]
mod loom_tests;
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod prepared;
#[cfg(all(test, quintet_shuttle))]
mod shuttle_tests;
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests;

pub use builder::ItemSetBuilder;
pub use equivalent::Equivalent;
pub use handle::Handle;
pub use inside::{Inside, Offline, Pin, QuietHandle};
pub use item::{Duplicate, Item, Keyed, Pointer};
pub use iter::{Drain, DrainRefs, IntoIter, Iter, Refs};
pub use lend::{MappedRef, Ref};
pub(crate) use own::TakenOut;
pub use owned::{ArcRef, Removed};
#[cfg(feature = "rayon")]
pub use par::ParIter;
pub use stats::ItemSetStats;

use self::core::Core;
use crate::hasher::DefaultHashBuilder;
use crate::home::Home;
use crate::reclaim::{Domain, Pinned};
use crate::region::AllocError;
use crate::sync::const_where_possible;
use crate::vocabulary::Fallible;
use builder::Settings;
use inside::KeyOf;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// A concurrent set of items that carry their own key.
///
/// # When to use
///
/// For records that many threads look up and some replace: sessions, routes, a cache of parsed
/// things. The key is part of the record, and is kept once. Where the key is no part of the value,
/// [`HashMap`](crate::HashMap) is simpler; for plain numbers `WordMap` is smaller and faster.
///
/// # Example
///
/// ```
/// use quintet::{ItemSet, item_set::Keyed};
///
/// struct Session {
///     token: String,
///     user: u32,
/// }
///
/// impl Keyed for Session {
///     type Key = String;
///     fn key(&self) -> &String {
///         &self.token
///     }
/// }
///
/// let sessions = ItemSet::<Box<Session>>::new();
/// std::thread::scope(|scope| {
///     for user in 0..4 {
///         let sessions = &sessions;
///         scope.spawn(move || {
///             for number in 0..100 {
///                 sessions.insert(Session { token: format!("{user}-{number}"), user });
///             }
///         });
///     }
/// });
/// assert_eq!(sessions.len(), 400);
/// let session = sessions.get("3-99").unwrap(); // no lock: holding it blocks nobody
/// sessions.remove("3-99");
/// assert_eq!(session.user, 3);
/// ```
///
/// Items of the standard library need no more than their name: `ItemSet<Box<String>>` is a set of
/// texts, `ItemSet<Box<(String, u64)>>` a map from texts to numbers.
///
/// # Ways in
///
/// The set itself, for everything, first of all. A [`pin`](Self::pin) for several operations in a
/// row, and for plain references. A [`handle`](Self::handle) for a hot loop, or a thread or task
/// that stays ([`owned_handle`](Self::owned_handle)). A [`quiet_handle`](Self::quiet_handle) for
/// the hottest loop, whose author says when it holds nothing.
///
/// # Consistency
///
/// Every operation on one key is linearizable, those with a closure too. `len` and `is_empty` are
/// exact when nobody writes. Iteration: see [`iter`](Self::iter) and
/// [`iter_exact`](Self::iter_exact).
///
/// # Progress
///
/// Readers never wait. A writer waits for writers of the same shard. Holding a reference blocks
/// nobody.
///
/// # Growth
///
/// Up to 134 items the set moves at once. Beyond, growth is spread over the writes: each moves 48
/// places of the old table, or, before that, touches a page of the new one. There are never more
/// than two tables in use.
///
/// # Memory
///
/// Per item 27 to 54 bytes, besides the item: places of 19 bytes, of which 0.35 to 0.7 are filled
/// while the set grows, and half as many below 8,600 items. Churn at constant size keeps memory
/// flat, and removing gives it back. A
/// reader that sleeps holds back what was there when it fell asleep; one that iterates, or a quiet
/// handle that never comes to a quiet point, holds back all that is removed meanwhile
/// ([`ItemSetStats`] shows it).
///
/// # Panics
///
/// A panic of user code (`Hash`, `Eq`, [`Item`]) leaves the set as it was. A write to this or any
/// other `ItemSet` from inside [`Item::matches`] or [`Item::same_key`] panics with advice, in every
/// build, where it could wait for itself; reads are allowed there, except iteration. If memory is
/// needed and cannot be had, operations panic, except [`try_reserve`](Self::try_reserve) and those
/// of [`fallible`](Self::fallible).
#[doc(alias = "DashMap")]
#[doc(alias = "DashSet")]
#[doc(alias = "HashIndex")]
pub struct ItemSet<P: Pointer, S = DefaultHashBuilder> {
    core: Core,
    hasher: S,
    /// Items go in and come out through a shared reference: invariant in `P`.
    items: PhantomData<fn(P) -> P>,
}

impl<P: Pointer> ItemSet<P> {
    const_where_possible! {
        /// An empty set. Allocates nothing until it is first used.
        pub fn new() -> Self {
            Self {
                core: Core::new(Settings::DEFAULT),
                hasher: DefaultHashBuilder::new(),
                items: PhantomData,
            }
        }
    }

    /// An empty set with room for `items` before it grows.
    ///
    /// # Panics
    /// If the memory cannot be had.
    pub fn with_capacity(items: usize) -> Self {
        ItemSetBuilder::default().capacity(items).build()
    }

    /// Sets up a set.
    pub fn builder() -> ItemSetBuilder<P> {
        ItemSetBuilder::default()
    }
}

impl<P: Pointer, S> ItemSet<P, S> {
    const_where_possible! {
        /// An empty set with a hasher of one's own. One without a random key lets those who choose
        /// the keys make them collide.
        pub fn with_hasher(hasher: S) -> Self {
            Self { core: Core::new(Settings::DEFAULT), hasher, items: PhantomData }
        }
    }

    /// An empty set with room for `items` before it grows, and a hasher of one's own.
    ///
    /// # Panics
    /// If the memory cannot be had.
    pub fn with_capacity_and_hasher(items: usize, hasher: S) -> Self
    where
        S: BuildHasher,
    {
        ItemSetBuilder::default().hasher(hasher).capacity(items).build()
    }

    fn with_settings(settings: Settings, hasher: S, now: bool) -> Result<Self, AllocError> {
        let set = Self { core: Core::new(settings), hasher, items: PhantomData };
        if now {
            set.core.first_table(&set.core.domain.pin(), settings.first_bits)?;
        }
        Ok(set)
    }

    /// The hasher.
    pub(crate) fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Where the set's memory is kept until nobody refers to it: for a face that has seats of its
    /// own.
    #[inline(always)]
    pub(crate) fn domain(&self) -> &Domain {
        &self.core.domain
    }

    /// The set that this is, as handles have one.
    #[inline(always)]
    fn set(&self) -> &Self {
        self
    }

    /// A guard on the calling thread's own seat: for several operations in a row, and for plain
    /// references.
    #[inline]
    #[doc(alias = "guard")]
    pub fn pin(&self) -> Pin<'_, P, S> {
        Pin::new(Pinned::new(&self.core.domain), self)
    }

    /// A seat of one's own, outside between operations: for a hot loop, or a thread that stays.
    pub fn handle(&self) -> Handle<'_, P, S> {
        Handle::new(Home::borrowed(self))
    }

    /// A [`handle`](Self::handle) that keeps the set alive: for tasks, and threads that are not
    /// scoped.
    ///
    /// ```
    /// # use quintet::ItemSet;
    /// # use std::sync::Arc;
    /// let set = Arc::new(ItemSet::<Box<String>>::new());
    /// let handle = set.owned_handle();
    /// let thread = std::thread::spawn(move || handle.insert("apple".to_string()).is_none());
    /// assert!(thread.join().unwrap() && set.contains("apple"));
    /// ```
    pub fn owned_handle(self: &Arc<Self>) -> Handle<'static, P, S> {
        Handle::new(Home::shared(Arc::clone(self)))
    }

    /// A seat of one's own that is inside except at its quiet points: the fastest way to work on
    /// the set, for who says when it holds nothing.
    ///
    /// ```
    /// # use quintet::ItemSet;
    /// # let set = ItemSet::<Box<String>>::new();
    /// let mut handle = set.quiet_handle();
    /// for number in 0..100 {
    ///     handle.insert(number.to_string());
    ///     handle.quiescent(); // no reference is held here
    /// }
    /// ```
    pub fn quiet_handle(&self) -> QuietHandle<'_, P, S> {
        QuietHandle::new(Home::borrowed(self))
    }

    /// A [`quiet_handle`](Self::quiet_handle) that keeps the set alive. It may be held across an
    /// `.await`, with what it lends.
    #[doc(alias = "owned_guard")]
    pub fn owned_quiet_handle(self: &Arc<Self>) -> QuietHandle<'static, P, S> {
        QuietHandle::new(Home::shared(Arc::clone(self)))
    }

    /// The same operations, with an [`AllocError`] where they would panic.
    pub fn fallible(&self) -> Fallible<'_, Self> {
        Fallible(self)
    }

    /// Frees what the calling thread has taken out, by the set itself or by guards, and nobody can
    /// refer to any more. Handles flush [themselves](Handle::flush). Does nothing while a guard or
    /// a [`Ref`] of this thread is alive.
    pub fn flush(&self) {
        self.core.domain.flush();
    }
}

impl<P: Pointer, S: BuildHasher> ItemSet<P, S> {
    /// The hash of a key as this set uses it, for the `_hashed` forms.
    #[inline]
    pub fn hash_of<Q: ?Sized + Hash + Equivalent<KeyOf<P>>>(&self, key: &Q) -> u32 {
        word::fold(self.hasher.hash_one(key))
    }

    #[inline(always)]
    fn hash_of_item(&self, item: &P::Item) -> u32 {
        let mut state = self.hasher.build_hasher();
        item.hash_key(&mut state);
        word::fold(state.finish())
    }

    /// Recognizes the item of `key` among raw ones.
    #[inline(always)]
    fn matcher<Q: ?Sized + Equivalent<KeyOf<P>>>(key: &Q) -> impl Fn(*mut ()) -> bool {
        // SAFETY: the core shows raw items that are not null and not freed: linked under the lock,
        // or checked by the section.
        move |raw| unsafe { &*raw.cast::<P::Item>() }.matches(key)
    }

    /// Recognizes the item with the key of `item` among raw ones.
    #[inline(always)]
    fn item_matcher(item: &P::Item) -> impl Fn(*mut ()) -> bool {
        // SAFETY: as in `matcher`.
        move |raw| unsafe { &*raw.cast::<P::Item>() }.same_key(item)
    }
}

impl<P: Pointer, S> Drop for ItemSet<P, S> {
    fn drop(&mut self) {
        let mut panic = None;
        self.core.dismantle(|raw| {
            // SAFETY: made by `into_raw`, taken out once.
            let item = unsafe { P::from_raw(raw) };
            panic = catch_unwind(AssertUnwindSafe(|| drop(item))).err().or(panic.take());
        });
        if let Some(payload) = panic.filter(|_| !std::thread::panicking()) {
            resume_unwind(payload);
        }
    }
}

// A panic of user code leaves the set as it was before the operation.
impl<P: Pointer, S> UnwindSafe for ItemSet<P, S> {}
impl<P: Pointer, S> RefUnwindSafe for ItemSet<P, S> {}

impl<P: Pointer, S: Default> Default for ItemSet<P, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<P: Pointer, S> fmt::Debug for ItemSet<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemSet").field("len", &self.len()).finish_non_exhaustive()
    }
}
