//! Bounded caches in one process.

mod moka;
mod quick;
mod weighted;

pub use self::moka::Moka;
pub use self::quick::QuickCache;
pub use self::weighted::{ByValue, Weighted, WeightedMoka, WeightedQuick};

use crate::{Kind, Label};

/// A cache of `T`'s entries that evicts beyond its capacity.
pub trait Cache<T: Kind>: Sized + Send + Sync + 'static {
    /// Name and version.
    const LABEL: Label;

    /// A cache of at most `capacity` entries.
    fn with_capacity(capacity: usize) -> Self;
    /// Calls `f` with the value of `query`.
    fn get<R>(&self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R>;
    /// Sets the value of `key`.
    fn insert(&self, key: T::Key, value: T::Value);
    /// Removes `query`.
    fn remove(&self, query: &T::Query);
    /// Finishes work that the cache has put off; called outside the measured time.
    fn settle(&self) {}
}
