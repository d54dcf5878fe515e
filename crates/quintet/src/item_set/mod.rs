//! Items that carry their own key, read without a lock.
//!
//! | Room | Holds |
//! |---|---|
//! | `item` | [`Item`], [`Keyed`], [`Pointer`]: what a set holds |
//! | `handle`, `owned`, `iter` | a thread's access, and what it is given |
//! | `core` | the pair of tables: find, put, remove |
//! | `write` | the ways that a write takes |
//! | `at_once`, `many` | the usual case of these, in few instructions; many lookups at once |
//! | `grow` | when a table is left, and how everybody moves on |
//! | `table`, `plan`, `row`, `word` | one table, what it is made with, its lines, and its packed words |
//! | `places` | how a place is found, dealt out, claimed and filled |
//! | `shard` | the writers' locks, and the watch over user code under them |
//! | `builder`, `stats` | settings, figures |
#![doc = include_str!("../../docs/item_set.md")]

mod at_once;
mod builder;
mod core;
mod grow;
mod handle;
mod item;
mod iter;
mod many;
mod owned;
mod places;
mod plan;
mod row;
mod shard;
mod stats;
mod table;
mod word;
mod write;

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod holes;
#[cfg(all(test, quintet_loom))]
mod loom_tests;
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod prepared;
#[cfg(all(test, quintet_shuttle))]
mod shuttle_tests;
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests;

pub use builder::ItemSetBuilder;
pub use handle::{Handle, Offline, Pin};
pub use item::{Item, Keyed, Pointer};
pub use iter::Iter;
pub use owned::{ArcRef, Removed};
pub use stats::ItemSetStats;

use self::core::Core;
use crate::hasher::DefaultHashBuilder;
use crate::region::AllocError;
use crate::sync::const_where_possible;
use builder::Settings;
use handle::KeyOf;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind, resume_unwind};

/// A concurrent set of items that carry their own key.
///
/// # When to use
///
/// For records that many threads look up and some replace: sessions, routes, a cache of parsed things. The key is part of the record,
/// and is kept once. For plain numbers `WordMap` is smaller and faster.
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
///     type Key = str;
///     fn key(&self) -> &str {
///         &self.token
///     }
/// }
///
/// let sessions = ItemSet::<Box<Session>>::new();
/// std::thread::scope(|scope| {
///     for user in 0..4 {
///         let sessions = &sessions;
///         scope.spawn(move || {
///             let mut handle = sessions.handle();
///             for number in 0..100 {
///                 handle.put(Session { token: format!("{user}-{number}"), user });
///                 handle.quiescent(); // once per turn of the loop: no reference is held here
///             }
///         });
///     }
/// });
/// assert_eq!(sessions.len(), 400);
/// assert_eq!(sessions.pin().get("3-99").map(|session| session.user), Some(3));
/// ```
///
/// # Consistency
///
/// Every operation on one key is linearizable. `len` and `is_empty` are exact when nobody writes. Iteration: see
/// [`Handle::iter`] and [`Handle::iter_exact`].
///
/// # Progress
///
/// Readers never wait. A writer waits for writers of the same shard. Holding a reference blocks nobody.
///
/// # Growth
///
/// Up to 134 items the set moves at once. Beyond, growth is spread over the writes: each moves 48 places of the old table, or, before that, touches a page of the new one. There are never more than two tables in
/// use.
///
/// # Memory
///
/// Per item 27 to 54 bytes, besides the item: places of 19 bytes, of which 0.35 to 0.7 are filled while the set grows. Churn at constant size
/// keeps memory flat, and removing gives it back. A reader that sleeps holds back what was there when it fell asleep; an access that iterates, or
/// never comes to a quiet point, holds back all that is removed meanwhile ([`ItemSetStats`] shows it).
///
/// # Panics
///
/// A panic of user code (`Hash`, `Eq`, [`Item`]) leaves the set as it was. A write to this or any other `ItemSet` from inside [`Item::matches`] or
/// [`Item::same_key`] panics with advice, in every build, where it could wait for itself; reads are allowed there, except iteration. If memory is needed and cannot be
/// had, operations panic, except those that begin with `try_`.
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
    fn with_settings(settings: Settings, hasher: S, now: bool) -> Result<Self, AllocError> {
        let set = Self { core: Core::new(settings), hasher, items: PhantomData };
        if now {
            set.core.first_table(&set.core.domain.pin(), settings.first_bits)?;
        }
        Ok(set)
    }

    /// A registered access for one thread, with quiet points: the fastest way to work on the set.
    pub fn handle(&self) -> Handle<'_, P, S> {
        Handle::new(self)
    }

    /// A guard on the calling thread's own seat: for the occasional operation.
    #[inline]
    pub fn pin(&self) -> Pin<'_, P, S> {
        Handle::pin(self)
    }

    /// Items. Exact when nobody writes; otherwise an estimate.
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// True if there are no items, with the exactness of [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A look inside: load, migration, memory, what is held back.
    pub fn stats(&self) -> ItemSetStats {
        self.core.stats(&self.core.domain.pin())
    }

    /// Bytes held: tables, and items and tables that were removed and are not yet given back. Items in the set are not counted.
    pub fn memory_used(&self) -> usize {
        let stats = self.stats();
        stats.table_bytes + stats.backlog_bytes
    }

    /// Frees what the calling thread's guards have left behind and nobody can refer to any more. Handles flush
    /// [themselves](Handle::flush). Does nothing while a guard of this thread is alive.
    pub fn flush(&self) {
        self.core.domain.flush();
    }
}

impl<P: Pointer, S: BuildHasher> ItemSet<P, S> {
    /// The hash of a key as this set uses it, for the `_hashed` forms.
    #[inline]
    pub fn hash_of(&self, key: &KeyOf<P>) -> u32 {
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
    fn matcher(key: &KeyOf<P>) -> impl Fn(*mut ()) -> bool {
        // SAFETY: the core shows raw items that are not null and not freed: linked under the lock, or checked by the section.
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

impl<P: Pointer> Default for ItemSet<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Pointer, S> fmt::Debug for ItemSet<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemSet").field("len", &self.len()).finish_non_exhaustive()
    }
}
