//! Words to words, growing without a pause: [`WordMap`].
//!
//! | Room | Holds |
//! |---|---|
//! | `word` | what a key word and a value word say; secrets, hash and home |
//! | `table` | one table: lines, tags, counters |
//! | `probe` | where a key is, and how a lane becomes a key's |
//! | `more` | more lines behind a table |
//! | `cells` | where special values lie |
//! | `desc` | descriptors: where a mover leaves what it has frozen |
//! | `moving` | close, freeze, copy |
//! | `core` | the map of plain words: lookups along the chain, and changes in the usual case |
//! | `change` | changes in every case |
//! | `grow` | when a table is left, and how everybody moves on |
//! | `operations` | what each operation does, for every way in |
//! | `methods`, `fallible` | the operations, written into the map, its handles and its guards |
//! | `handle`, `iter`, `builder`, `stats`, `typed`, `traits` | the rest of the public face |
//!
//! The page [`algorithm`] tells how it works, with pictures and listings.

#[doc = include_str!("../../docs/word_map.md")]
pub mod algorithm {}

mod builder;
mod cells;
mod change;
mod core;
mod desc;
mod fallible;
mod grow;
mod handle;
mod iter;
mod methods;
mod more;
mod moving;
mod operations;
mod probe;
mod stats;
mod table;
mod traits;
mod typed;
mod word;

#[cfg(all(test, quintet_loom))]
mod loom_tests;
#[cfg(all(test, quintet_shuttle, not(quintet_loom)))]
mod shuttle_tests;
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod special_tests;
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests;

pub use builder::WordMapBuilder;
pub use handle::{Handle, Pin};
pub use iter::{Drain, IntoIter, Iter, Keys, Values};
pub use stats::{TableState, TableStats, WordMapStats};
#[doc(hidden)]
pub use typed::sealed;
pub use typed::{Integer, Word};

use self::core::Core;
use crate::region::AllocError;
use crate::sync::const_where_possible;
use builder::Settings;
use std::marker::PhantomData;

/// A concurrent map from words to words: integers, ids, counters, pointers, 64 bits each.
///
/// # When to use
/// Many threads read *and write* small keys and small values. Every word is a legal key and a legal
/// value. If values are larger than a word, or keys are strings, use a general map; if one thread
/// writes now and then, a map with two copies reads faster.
///
/// # Example
/// ```
/// use quintet::WordMap;
///
/// let stock: WordMap<u32, u64> = WordMap::from([(7, 10), (8, 20)]);
/// assert_eq!(stock.insert(9, 30), None);
/// assert_eq!(stock.update(7, |count| count - 1), Some(9)); // atomic, also among threads
/// assert_eq!(stock.remove_if(8, |count| count == 0), Err(20));
///
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| {
///             let stock = stock.handle(); // a seat of one's own, for the hot loop
///             for item in 0..100 {
///                 stock.fetch_add(item, 1);
///             }
///         });
///     }
/// });
/// assert_eq!((stock.len(), stock.get(7)), (100, Some(13)));
/// for (item, count) in &stock {
///     assert!(item < 100 && count >= 4);
/// }
/// ```
///
/// # Consistency
/// Every operation on one key is linearizable: it takes effect at one moment between call and
/// return. `iter`, `retain`, `clear` and `drain` walk while others write; each says what it
/// guarantees. `len` is exact when nobody writes.
///
/// # Progress
/// `get` takes no lock and waits for nobody, also while the map grows. Changes are lock-free but
/// for two rare cases: allocation, and an insert that finds no slot although a migration is under
/// way: it moves the rest by itself ([`WordMapStats::stragglers`] counts those). Closures given to
/// `update` and its kin may run more than once.
///
/// # Growth
/// By the number of live entries: to a larger table, to one of the same size (which drops the
/// traces of removed keys) or to a smaller one. Each operation that has to moves at most M slots
/// ([`WordMapBuilder::m`]) while that lasts, or, before that, touches one page of the new table for
/// the first time.
///
/// # Memory
/// 17 bytes per slot; at most 70 % of the slots are used, at least 35 % after growing; half of that
/// in tables of up to half a megabyte, where speed is worth more. A map with one entry takes a
/// kilobyte. A table that was left is given back in pieces of 2 MiB as soon as no operation can be
/// inside. An idle or forgotten handle holds nothing back; a live iterator does, and so does a
/// guard.
///
/// # Panics
/// Only if memory is needed and cannot be had; the operations of [`fallible`](Self::fallible)
/// return [`AllocError`] instead. A panic of a closure goes through, and leaves the map as if the
/// operation had not begun.
pub struct WordMap<K = u64, V = u64> {
    core: Core,
    types: Invariant<(K, V)>,
}

/// Keys and values go in and come out through a shared reference.
type Invariant<T> = PhantomData<fn(T) -> T>;

/// There are maps of words only, and they are the ones with a default: asked for in this form, the
/// error for another type is one, and says what a word is.
impl<K, V> WordMap<K, V> {
    const_where_possible! {
        /// An empty map. Allocates nothing until it is first used.
        ///
        /// ```
        /// static VISITS: quintet::WordMap<u32, u64> = quintet::WordMap::new();
        /// VISITS.fetch_add(7, 1);
        /// assert_eq!(VISITS.get(7), Some(1));
        /// ```
        pub fn new() -> Self
        where
            Self: Default,
        {
            Self { core: Core::new(Settings::DEFAULT), types: PhantomData }
        }
    }

    /// An empty map with room for `entries` before it grows.
    ///
    /// # Panics
    /// If the memory cannot be had.
    pub fn with_capacity(entries: usize) -> Self
    where
        Self: Default,
    {
        Self::builder().capacity(entries).build()
    }

    /// Sets up a map.
    pub fn builder() -> WordMapBuilder<K, V>
    where
        Self: Default,
    {
        WordMapBuilder::new()
    }
}

impl<K, V> WordMap<K, V> {
    fn with_settings(settings: Settings, now: bool) -> Result<Self, AllocError> {
        let map = Self { core: Core::new(settings), types: PhantomData };
        if now {
            map.core.first_table(&map.core.domain.pin(), settings.first_bits)?;
        }
        Ok(map)
    }
}

impl<K: Word, V: Word> WordMap<K, V> {
    #[inline(always)]
    fn key(word: u64) -> K {
        // SAFETY: keys come into the core only through `to_word` of this type.
        unsafe { K::from_word(word) }
    }

    #[inline(always)]
    fn value(word: u64) -> V {
        // SAFETY: values come into the core only through `to_word` of this type.
        unsafe { V::from_word(word) }
    }
}
