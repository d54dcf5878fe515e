//! Tables of any types: awkward types, and user code that panics or comes back.
//!
//! | Check | Story |
//! |---|---|
//! | [`zero_sized`] | keys and values without bytes |
//! | [`over_aligned`] | keys and values aligned to 128 bytes, through growth |
//! | [`drops_everything_once`] | every key and value is dropped once, none leaks |
//! | [`panicking_hash`], [`panicking_eq`] | a panic there changes nothing and wedges nobody |
//! | [`panicking_drop`] | a panic in a value's drop loses no other entry |
//! | [`panicking_closure`] | a panic in an update leaves the old value |
//! | [`forgotten_guard`] | a guard that is never dropped blocks nobody |
//! | [`reentry_reads`], [`reentry_writes`] | the table is used while a reference into it is held |
//! | [`colliding_keys`] | all keys have one hash |
//! | [`references_survive_removal`] | what a guard shows stays valid while others remove it |
//! | [`generic_capacity_overflow`] | absurd capacities are errors with a text |

mod awkward_types;
mod guards;
mod user_panics;

use std::hash::Hash;

pub use awkward_types::{
    colliding_keys, drops_everything_once, generic_capacity_overflow, over_aligned, zero_sized,
};
pub use guards::{forgotten_guard, reentry_reads, reentry_writes, references_survive_removal};
pub use user_panics::{panicking_closure, panicking_drop, panicking_eq, panicking_hash};

/// A table that takes any key and value.
pub trait GenericFamily: 'static {
    /// The table for some key and value.
    type Map<K, V>: GenericMap<K, V>
    where
        K: Hash + Eq + Clone + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static;
}

/// A map shared by threads. A table with handles or a writer takes them inside each call.
pub trait GenericMap<K, V>: Send + Sync + Sized + 'static {
    /// An empty map with as little room as possible.
    fn new() -> Self;

    /// Inserts or replaces.
    fn insert(&self, key: K, value: V);

    /// Shows the value under a guard that lives as long as the call.
    fn get_with<R>(&self, key: &K, show: impl FnOnce(Option<&V>) -> R) -> R;

    /// Removes; tells whether the key was there.
    fn remove(&self, key: &K) -> bool;

    /// Number of entries.
    fn entries(&self) -> usize;

    /// Drops what waits to be dropped, as far as the map lets the user ask for it.
    fn settle(&self) {}

    /// Replaces the value by what the closure makes of it; tells whether the key was there.
    fn update(&self, _key: &K, _change: impl FnMut(&V) -> V) -> bool {
        panic!("the adapter offers no update: leave out panicking_closure")
    }

    /// Takes a guard on the key and forgets it.
    fn forget_guard(&self, _key: &K) {
        panic!("the adapter offers no forget_guard: leave out forgotten_guard")
    }

    /// A map with room for `entries`, or the text of the error.
    fn try_with_capacity(entries: usize) -> Result<Self, String> {
        panic!("the adapter offers no try_with_capacity({entries}): leave out capacity_overflow")
    }
}

/// Expects a value, by clone.
#[track_caller]
fn expect<K, V>(map: &impl GenericMap<K, V>, key: &K, value: Option<V>)
where
    V: Clone + PartialEq + std::fmt::Debug,
{
    assert_eq!(map.get_with(key, |found| found.cloned()), value);
}
