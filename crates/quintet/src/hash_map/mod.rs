//! Keys and values of any types, read without a lock: faces over [`ItemSet`](crate::ItemSet).
//!
//! | Room | Holds |
//! |---|---|
//! | `pair` | what a map holds, and how a key is named |
//! | `act` | read, think, write: what the operations are made of |
//! | `outside`, `handle`, `lend` | the operations of the map itself and of a [`Handle`], and the [`Ref`]s they lend |
//! | `inside` | the same inside a section: [`Pin`], [`QuietHandle`], and plain references |
//! | `entry` | what is asked of one key, carried out by the last call |
//! | `flight`, `compute` | one maker for a value, and those who wait for it |
//! | `retired` | [`Retired`]: what was taken out for good |
//! | `set` | [`HashSet`]: the keys alone |
//! | `exclusive` | what the only owner may do |
//! | `iter`, `traits`, `serde`, `builder` | walks; what collections do, too; settings |
#![doc = include_str!("../../docs/hash_map.md")]

#[doc = include_str!("../../docs/hash_map_migration.md")]
pub mod migration {}

mod act;
mod builder;
mod compute;
mod entry;
mod exclusive;
mod flight;
mod handle;
mod inside;
mod iter;
mod lend;
mod outside;
mod pair;
#[cfg(feature = "rayon")]
mod par;
mod retired;
#[cfg(feature = "serde")]
mod serde;
mod set;
mod traits;

#[cfg(all(test, quintet_shuttle))]
mod shuttle_tests;

pub use crate::item_set::{Equivalent, ItemSetStats as HashMapStats, MappedRef, Offline};
pub use builder::HashMapBuilder;
pub use entry::{Change, Entry, Then, Untouched, Way};
pub use exclusive::{IterMut, ValuesMut};
pub use flight::WaitError;
pub use handle::Handle;
pub use inside::{Inside, Pin, QuietHandle};
pub use iter::{
    Drain, DrainRefs, ExtractIf, ExtractRefs, IntoIter, IntoKeys, IntoValues, Iter, KeyRefs, Keys,
    Refs, ValueRefs, Values,
};
pub use lend::Ref;
pub use pair::{Given, Key, Made, Name, ToKey, Value};
#[cfg(feature = "rayon")]
pub use par::{ParIter, ParKeys};
pub use retired::{Retired, SetRetired, StillShared};
pub use set::{HashSet, HashSetBuilder, SetHandle, SetInside, SetPin, SetQuietHandle};

use crate::hasher::DefaultHashBuilder;
use crate::home::Home;
use crate::item_set::{self, ItemSet};
use crate::reclaim::Pinned;
use crate::sync::{LazyArc, const_where_possible};
use crate::vocabulary::Fallible;
use flight::Flights;
use pair::{Pair, Pairs};
use std::hash::BuildHasher;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

/// A concurrent map from keys to values of any types.
///
/// # When to use
///
/// For whatever threads share under a key: the table to begin with. Where keys and values are
/// numbers, [`WordMap`](crate::WordMap) is smaller and faster; where records carry their key,
/// [`ItemSet`] keeps it once.
///
/// # Example
///
/// A value that others can see is not changed under their eyes: it is replaced, or it is of a kind
/// that threads change together, such as an atomic number. So this is how one counts:
///
/// ```
/// use quintet::HashMap;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// let counts = HashMap::<String, AtomicU64>::new();
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| {
///             for word in "the cat and the dog".split(' ') {
///                 // Found: no lock, no allocation. Absent: `word` becomes a key.
///                 counts.entry_ref(word).or_default().fetch_add(1, Ordering::Relaxed);
///             }
///         });
///     }
/// });
/// assert_eq!(counts.get("the").unwrap().load(Ordering::Relaxed), 8);
///
/// // The same with plain numbers: each step replaces the number, and none is lost.
/// let counts = HashMap::<String, u64>::new();
/// counts.update_or_insert_with("cat".to_string(), |count| count + 1, || 1);
/// counts.update_or_insert_with("cat".to_string(), |count| count + 1, || 1);
/// let cat = counts.get("cat").unwrap(); // no lock: holding it blocks nobody
/// counts.remove("cat");
/// assert_eq!(*cat, 2);
/// ```
///
/// Who comes from `dashmap` or std will write this, which does not compile, since it would change
/// what others may be looking at:
///
/// ```compile_fail
/// let counts = quintet::HashMap::<String, u64>::new();
/// *counts.entry("cat".to_string()).or_insert(0) += 1;
/// ```
///
/// The line that replaces it:
///
/// ```
/// let counts = quintet::HashMap::<String, u64>::new();
/// counts.entry("cat".to_string()).and_update(|count| count + 1).or_insert(1);
/// ```
///
/// # Ways in
///
/// The map itself, for everything, first of all. A [`pin`](Self::pin) for several operations in a
/// row, and for plain references (`for (key, value) in &map.pin()`). A [`handle`](Self::handle) for
/// a hot loop, or a thread or task that stays ([`owned_handle`](Self::owned_handle)). A
/// [`quiet_handle`](Self::quiet_handle) for the hottest loop, whose author says when it holds
/// nothing; its [owned form](Self::owned_quiet_handle) lends plain references across an `.await`.
///
/// # Consistency
///
/// Every operation on one key is linearizable, those with a closure too. `len` and `is_empty` are
/// exact when nobody writes. Iteration: see [`iter`](Self::iter) and
/// [`iter_exact`](Self::iter_exact). An entry is replaced as a whole: [`insert`](Self::insert) over
/// an equal key keeps the new key, where std keeps the old one.
///
/// # Progress
///
/// Readers never wait. A writer waits for writers of the same shard, never for user code: no
/// closure runs under a lock, so there is nothing that could deadlock. Closures of
/// [`update`](Self::update), [`compute`](Self::compute) and their kin are `FnMut`: they may run
/// again, if another thread has come between. Holding a reference blocks nobody.
/// [`get_or_compute`](Self::get_or_compute) alone waits for user code: that of the one who makes
/// the value.
///
/// # Growth
///
/// Up to 134 entries the map moves at once. Beyond, growth is spread over the writes: each moves 48
/// places of the old table, or, before that, touches a page of the new one. There are never more
/// than two tables in use.
///
/// # Memory
///
/// Per entry a box of key and value, and 27 to 54 bytes besides: places of 19 bytes, of which 0.35
/// to 0.7 are filled while the map grows. Churn at constant size keeps memory flat, and removing
/// gives it back. A reader that sleeps holds back what was there when it fell asleep; one that
/// iterates, or a quiet handle that never comes to a quiet point, holds back all that is removed
/// meanwhile ([`stats`](Self::stats) shows it).
///
/// # Panics
///
/// A panic of user code (`Hash`, `Eq`, `Clone`, closures) leaves the map as it was. A write to this
/// or any other `HashMap` or `ItemSet` from inside of `Eq` of a key panics with advice, in every
/// build, where it could wait for itself; reads are allowed there, except iteration. If memory is
/// needed and cannot be had, operations panic, except [`try_reserve`](Self::try_reserve) and those
/// of [`fallible`](Self::fallible).
#[doc(alias = "DashMap")]
#[doc(alias = "ConcurrentHashMap")]
pub struct HashMap<K: Key, V: Value, S = DefaultHashBuilder> {
    pairs: Pairs<K, V, S>,
    /// Values that are being made.
    flights: LazyArc<Flights<K>>,
}

// A panic of user code leaves the map as it was before the operation.
impl<K: Key, V: Value, S> UnwindSafe for HashMap<K, V, S> {}
impl<K: Key, V: Value, S> RefUnwindSafe for HashMap<K, V, S> {}

impl<K: Key, V: Value> HashMap<K, V> {
    const_where_possible! {
        /// An empty map. Allocates nothing until it is first used.
        ///
        /// ```
        /// static NAMES: quintet::HashMap<u32, String> = quintet::HashMap::new();
        /// NAMES.insert(7, "ada".to_string());
        /// assert_eq!(NAMES.get_cloned(&7).as_deref(), Some("ada"));
        /// ```
        pub fn new() -> Self {
            Self::over(ItemSet::new())
        }
    }

    /// An empty map with room for `entries` before it grows.
    ///
    /// # Panics
    /// If the memory cannot be had.
    pub fn with_capacity(entries: usize) -> Self {
        HashMapBuilder::default().capacity(entries).build()
    }

    /// Sets up a map.
    pub fn builder() -> HashMapBuilder<K, V> {
        HashMapBuilder::default()
    }
}

impl<K: Key, V: Value, S> HashMap<K, V, S> {
    const_where_possible! {
        /// An empty map with a hasher of one's own. One without a random key lets those who choose
        /// the keys make them collide.
        pub fn with_hasher(hasher: S) -> Self {
            Self::over(ItemSet::with_hasher(hasher))
        }
    }

    const_where_possible! {
        /// A map of what is in a set.
        fn over(pairs: Pairs<K, V, S>) -> Self {
            Self { pairs, flights: LazyArc::new() }
        }
    }

    /// An empty map with room for `entries` before it grows, and a hasher of one's own.
    ///
    /// # Panics
    /// If the memory cannot be had.
    pub fn with_capacity_and_hasher(entries: usize, hasher: S) -> Self
    where
        S: BuildHasher,
    {
        HashMapBuilder::default().hasher(hasher).capacity(entries).build()
    }

    /// The hasher.
    pub fn hasher(&self) -> &S {
        self.pairs.hasher()
    }

    /// A guard on the calling thread's seat, below.
    #[inline(always)]
    fn inner(&self) -> item_set::Pin<'_, Box<Pair<K, V>>, S> {
        self.pairs.pin()
    }

    /// A guard on the calling thread's own seat: for several operations in a row, and for plain
    /// references.
    ///
    /// ```
    /// let ages = quintet::HashMap::from([("ada", 36), ("bob", 40)]);
    /// let pin = ages.pin();
    /// let (ada, bob) = (pin.get("ada"), pin.get("bob"));
    /// assert_eq!(ada.max(bob), Some(&40));
    /// for (name, age) in &pin {
    ///     println!("{name}: {age}");
    /// }
    /// ```
    #[inline]
    #[doc(alias = "guard")]
    pub fn pin(&self) -> Pin<'_, K, V, S> {
        Pin::on(Pinned::new(self.pairs.domain()), self)
    }

    /// A seat of one's own, outside between operations: for a hot loop, or a thread that stays.
    pub fn handle(&self) -> Handle<'_, K, V, S> {
        Handle::new(Home::borrowed(self))
    }

    /// A [`handle`](Self::handle) that keeps the map alive: for tasks, and threads that are not
    /// scoped.
    ///
    /// ```
    /// use std::sync::Arc;
    /// let map = Arc::new(quintet::HashMap::<String, u32>::new());
    /// let handle = map.owned_handle();
    /// let thread = std::thread::spawn(move || handle.insert("apple".to_string(), 1).is_none());
    /// assert!(thread.join().unwrap() && map.contains_key("apple"));
    /// ```
    pub fn owned_handle(self: &Arc<Self>) -> Handle<'static, K, V, S> {
        Handle::new(Home::shared(Arc::clone(self)))
    }

    /// A seat of one's own that is inside except at its quiet points: the fastest way to work on
    /// the map, for who says when it holds nothing.
    ///
    /// ```
    /// let map = quintet::HashMap::<u64, u64>::new();
    /// let mut handle = map.quiet_handle();
    /// for number in 0..100 {
    ///     handle.insert(number, number * number);
    ///     handle.quiescent(); // no reference is held here
    /// }
    /// ```
    pub fn quiet_handle(&self) -> QuietHandle<'_, K, V, S> {
        QuietHandle::new(Home::borrowed(self))
    }

    /// A [`quiet_handle`](Self::quiet_handle) that keeps the map alive. It is `Send`, and may be
    /// held across an `.await`, with what it lends.
    #[doc(alias = "owned_guard")]
    #[doc(alias = "pin_owned")]
    pub fn owned_quiet_handle(self: &Arc<Self>) -> QuietHandle<'static, K, V, S> {
        QuietHandle::new(Home::shared(Arc::clone(self)))
    }

    /// The same operations, with an [`AllocError`](crate::AllocError) where they would panic.
    pub fn fallible(&self) -> Fallible<'_, Self> {
        Fallible(self)
    }

    /// Frees what the calling thread has taken out, by the map itself or by guards, and nobody can
    /// refer to any more. Handles flush [themselves](Handle::flush). Does nothing while a guard or
    /// a [`Ref`] of this thread is alive.
    pub fn flush(&self) {
        self.pairs.flush();
    }
}
