//! General concurrent maps: any thread reads and writes, a write is seen at once.

mod dashmap;
mod flurry;
mod leapfrog;
mod locked;
mod papaya;
mod scc;

pub use self::dashmap::Dashmap;
pub use self::flurry::Flurry;
pub use self::leapfrog::Leapfrog;
pub use self::locked::{Mutexed, RwLocked};
pub use self::papaya::{Papaya, PapayaBatch};
pub use self::scc::{SccIndex, SccMap};

use crate::{Kind, Label, Words};

/// A concurrent map of `T`'s entries.
pub trait Map<T: Kind>: Sized + Send + Sync + 'static {
    /// Name and version.
    const LABEL: Label;
    /// Whether the answers of concurrent inserts and removes of one key can be believed. A map that
    /// answers wrongly there is no bar for one that answers rightly.
    const EXACT: bool = true;
    /// Whether the map lives through keys that come and go without end.
    const LASTING: bool = true;
    /// What one thread holds while it uses the map.
    type Access<'a>: Access<T>
    where
        Self: 'a;

    /// A map prepared for `capacity` entries; 0 gives the default empty map.
    fn with_capacity(capacity: usize) -> Self;
    /// Access for the calling thread.
    fn access(&self) -> Self::Access<'_>;
}

/// One thread's access to a map.
pub trait Access<T: Kind> {
    /// Calls `f` with the value of `query`.
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R>;
    /// Sets the value of `key`; true if the key was absent.
    fn insert(&mut self, key: T::Key, value: T::Value) -> bool;
    /// Overwrites the value of a present key by the map's cheapest means; false if it was absent
    /// (the entry may then have been created).
    fn update(&mut self, query: &T::Query, value: T::Value) -> bool;
    /// Removes `query`; true if it was present.
    fn remove(&mut self, query: &T::Query) -> bool;
    /// Called between batches of at most [`BATCH`] operations: nothing is borrowed here.
    #[inline(always)]
    fn quiet(&mut self) {}
}

/// Operations on words that tell what was there before: for checking histories, not for racing.
pub trait Precise: Map<Words> {
    /// Sets the value of `key`, and gives back the old one.
    fn exchange(&self, key: u64, value: u64) -> Option<u64>;
    /// Sets the value of `key` only if it is absent; true if it was.
    fn insert_new(&self, key: u64, value: u64) -> bool;
    /// Removes `key`, and gives back its value.
    fn take(&self, key: u64) -> Option<u64>;
    /// Adds to the value of `key`, an absent one counting as zero, and gives back the old one.
    fn fetch_add(&self, key: u64, n: u64) -> Option<u64>;
}

/// The longest run of operations between two calls of [`Access::quiet`].
pub const BATCH: u64 = 256;
