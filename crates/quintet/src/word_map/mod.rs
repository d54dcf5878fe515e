//! Words to words, growing without a pause.

mod access;
mod builder;
mod core;
mod grow;
mod handle;
mod iter;
mod overflow;
mod stats;
mod table;
mod typed;
mod word;

#[cfg(all(test, quintet_loom))]
mod loom_tests;
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests;

pub use builder::WordMapBuilder;
pub use handle::{Handle, Pin};
pub use iter::{Drain, Iter};
pub use stats::{TableState, TableStats, WordMapStats};
#[doc(hidden)]
pub use typed::sealed;
pub use typed::{Integer, Word};

use self::core::Core;
use crate::region::AllocError;
use builder::Settings;
use std::marker::PhantomData;

/// A concurrent map from 64-bit words to 64-bit words.
#[derive(Debug)]
pub struct WordMap<K: Word = u64, V: Word = u64> {
    core: Core,
    /// Behaves like a container of keys and values, whatever they are.
    types: PhantomData<(K, V)>,
}

impl<K: Word, V: Word> WordMap<K, V> {
    /// An empty map. Allocates no table until the first insert.
    pub fn new() -> Self {
        WordMapBuilder::default().build()
    }

    /// An empty map with room for `entries` before it grows.
    ///
    /// # Panics
    /// If the memory cannot be had.
    pub fn with_capacity(entries: usize) -> Self {
        WordMapBuilder::default().capacity(entries).build()
    }

    fn with_settings(settings: Settings, now: bool) -> Result<Self, AllocError> {
        let map = Self { core: Core::new(settings), types: PhantomData };
        if now {
            let access = access::Access::of_thread();
            map.core.first_table(&access.enter(&map.core), settings.first_bits)?;
        }
        Ok(map)
    }

    /// A registered access for one thread: the fastest way to work on the map.
    pub fn handle(&self) -> Handle<'_, K, V> {
        Handle::new(self)
    }

    /// Access through the calling thread's seat: for the occasional operation.
    #[inline]
    pub fn pin(&self) -> Pin<'_, K, V> {
        Pin::new(self)
    }

    /// Entries. Exact when nobody writes; otherwise an estimate.
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// True if there are no entries, with the exactness of [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A look inside: load, probe lengths, the chain of tables, memory. Walks over the slots of one table.
    pub fn stats(&self) -> WordMapStats {
        self.core.stats(&access::Access::of_thread())
    }

    /// Bytes held: tables in use, and tables that were left and are not yet given back.
    pub fn memory_bytes(&self) -> usize {
        self.core.bytes(&access::Access::of_thread())
    }

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

impl WordMap {
    /// Sets up a map.
    pub fn builder() -> WordMapBuilder {
        WordMapBuilder::default()
    }
}

impl<K: Word, V: Word> Default for WordMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}
