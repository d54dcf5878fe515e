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

use crate::{Kind, Label};

/// A concurrent map of `T`'s entries.
pub trait Map<T: Kind>: Sized + Send + Sync + 'static {
    /// Name and version.
    const LABEL: Label;
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

/// The longest run of operations between two calls of [`Access::quiet`].
pub const BATCH: u64 = 256;
