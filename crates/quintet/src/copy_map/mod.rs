//! Plain data inline, read without a lock: [`CopyMap`].
//!
//! | Room | Holds |
//! |---|---|
//! | `plain` | [`Plain`], and how an entry lies in words |
//! | `bucket` | a header and its lanes, which lie apart: versioned reads and writes |
//! | `table` | one table: homes, ways, lists |
//! | `seek` | looking for a key in it |
//! | `owner` | changing it, with the lock |
//! | `spill` | the list of a shard |
//! | `shard` | the writers' locks |
//! | `core` | lookups along the chain of tables, and changes |
//! | `at_home` | the usual case of a change, in few instructions |
//! | `grow` | when a table is left, and how everybody moves on |
//! | `operations` | what each operation does, for every way in |
//! | `methods`, `fallible` | the operations, written into the map, its handles and its guards |
//! | `handle`, `iter`, `par`, `builder`, `stats`, `traits` | the rest of the public face |
//!
//! The page [`algorithm`] tells how it works.

#[doc = include_str!("../../docs/copy_map.md")]
pub mod algorithm {}

mod at_home;
mod bucket;
mod builder;
mod core;
mod fallible;
mod grow;
mod handle;
mod iter;
mod methods;
mod operations;
mod owner;
#[cfg(feature = "rayon")]
mod par;
mod plain;
mod seek;
mod shard;
mod spill;
mod stats;
mod table;
mod traits;

#[cfg(all(test, quintet_loom))]
mod loom_tests;
#[cfg(all(test, quintet_shuttle, not(quintet_loom)))]
mod shuttle_tests;
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests;

pub use builder::CopyMapBuilder;
pub use equivalent::Equivalent;
pub use handle::{Handle, Pin};
pub use iter::{Drain, IntoIter, Iter, Keys, Values};
#[cfg(feature = "rayon")]
pub use par::ParIter;
#[cfg(feature = "bytemuck")]
pub use plain::NoUninit;
pub use plain::Plain;
pub use stats::CopyMapStats;

use self::core::Core;
use crate::hasher::DefaultHashBuilder;
use crate::region::AllocError;
use crate::sync::const_where_possible;
use builder::Settings;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

/// A concurrent map whose keys and values are plain data, up to 48 bytes together, and lie in the
/// table itself.
///
/// # When to use
/// Small keys and small values without pointers, read and written by many threads: positions,
/// prices, sessions by id, sizes by digest. A hit is a header, a word of which eight share a line,
/// and the line of its entry, or two that are adjacent; no entry is allocated. Values go in and
/// come out by copy. If key and value are a word each, and counting is what you do, `WordMap`
/// counts without a lock; if values own memory, use a table of items.
///
/// # Example
/// ```
/// use quintet::CopyMap;
///
/// quintet::plain! {
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     struct Price {
///         bid: f64,
///         ask: f64,
///         time: u64,
///     }
/// }
///
/// let prices = CopyMap::<u64, Price>::new();
/// prices.insert(7, Price { bid: 9.5, ask: 9.7, time: 1 });
/// std::thread::scope(|scope| {
///     for time in 2..6 {
///         let prices = &prices;
///         scope.spawn(move || prices.update(&7, |price| Price { time: price.time.max(time), ..price }));
///     }
/// });
/// assert_eq!(prices.get(&7), Some(Price { bid: 9.5, ask: 9.7, time: 5 }));
/// ```
///
/// # Consistency
/// Every operation on one key is linearizable, those with a closure too; a value is never seen
/// half-written. `iter`, `retain`, `clear` and `drain` walk while others write; each says what it
/// guarantees. `len` is exact when nobody writes.
///
/// # Progress
/// `get` takes no lock, also while the map grows. A copy that meets a writer on its very bucket is
/// made again; after 64 attempts the reader takes the writers' lock of that shard. Overwriting a
/// value that lies in one word of 8 bytes disturbs no reader. A reader takes the lock, too, where a
/// key's hash collides with those of hundreds of others. Writers of one shard wait for each other;
/// no user code runs under a lock. Closures given to `update` and its kin may run more than once.
///
/// # Growth
/// Up to 384 entries the map moves at once. Beyond, growth is spread over the changes: each moves
/// 16 buckets, or, before that, touches a page of the new table. There are never more than two
/// tables in use.
///
/// # Memory
/// For `u64` to `u64` a lane takes 18 bytes; 0.37 to 0.75 of them are used while the map grows: 24
/// to 48 bytes per entry. Below some thousand entries a smaller share may be used, since small
/// tables grow by four. Removing gives memory back. Nothing is retired but tables: overwriting and
/// removing leave nothing behind, whoever reads meanwhile. An iterator holds nothing back; a guard
/// holds back the tables that the map leaves meanwhile.
///
/// # Panics
/// A panic of `Hash`, `Eq` or a closure goes through, and leaves the map as if the operation had
/// not begun. If memory is needed and cannot be had, operations panic, except
/// [`try_reserve`](Self::try_reserve) and those of [`fallible`](Self::fallible). Key and value of
/// more than 48 bytes together do not compile:
///
/// ```compile_fail
/// quintet::CopyMap::<u64, [u8; 41]>::new().insert(1, [0; 41]);
/// ```
#[doc(alias = "DashMap")]
#[doc(alias = "HashMap")]
pub struct CopyMap<K, V, S = DefaultHashBuilder> {
    core: Core<K, V, S>,
    types: Invariant<(K, V)>,
}

/// Keys and values go in and come out through a shared reference.
type Invariant<T> = PhantomData<fn(T) -> T>;

impl<K: Plain, V: Plain> CopyMap<K, V> {
    const_where_possible! {
        /// An empty map. Allocates nothing until it is first used.
        ///
        /// ```
        /// static SIZES: quintet::CopyMap<[u8; 16], u64> = quintet::CopyMap::new();
        /// SIZES.insert([7; 16], 4096);
        /// assert_eq!(SIZES.get(&[7; 16]), Some(4096));
        /// ```
        pub fn new() -> Self {
            Self::with_hasher(DefaultHashBuilder::new())
        }
    }

    /// An empty map with room for `entries` before it grows.
    ///
    /// # Panics
    /// If the memory cannot be had.
    pub fn with_capacity(entries: usize) -> Self
    where
        K: Hash + Eq,
    {
        CopyMapBuilder::default().capacity(entries).build()
    }

    /// Sets up a map.
    pub fn builder() -> CopyMapBuilder<K, V> {
        CopyMapBuilder::default()
    }
}

impl<K: Plain, V: Plain, S> CopyMap<K, V, S> {
    const_where_possible! {
        /// An empty map with a hasher of one's own. One without a random key lets those who choose
        /// the keys make them collide.
        pub fn with_hasher(hasher: S) -> Self {
            Self { core: Core::new(Settings::usual::<K, V>(), hasher), types: PhantomData }
        }
    }

    /// The hasher.
    pub const fn hasher(&self) -> &S {
        &self.core.hasher
    }
}

impl<K: Plain + Hash + Eq, V: Plain, S: BuildHasher> CopyMap<K, V, S> {
    fn with_settings(settings: Settings, hasher: S, now: bool) -> Result<Self, AllocError> {
        let map = Self { core: Core::new(settings, hasher), types: PhantomData };
        if now {
            map.core.first_table(&map.core.domain.pin(), settings.first_bits)?;
        }
        Ok(map)
    }
}
