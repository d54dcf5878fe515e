//! Read-mostly maps: one writer collects changes and publishes them; readers see whole
//! published versions.

mod arc_swap;
mod evmap;
mod flashmap;
mod left_right;
mod plain;

pub use self::arc_swap::ArcSwapped;
pub use self::evmap::Evmap;
pub use self::flashmap::Flashmap;
pub use self::left_right::LeftRight;
pub use self::plain::{Frozen, General, Turns};

use crate::{Kind, Label};

/// The writing side, which also makes readers.
pub trait Writer<T: Kind>: Sized + Send + 'static {
    /// Name and version.
    const LABEL: Label;
    /// The reading side of one thread.
    type Reader: Reader<T>;

    /// An empty map prepared for `capacity` entries.
    fn with_capacity(capacity: usize) -> Self;
    /// A reader for one thread.
    fn reader(&self) -> Self::Reader;
    /// Sets the value of `key` in the next version.
    fn insert(&mut self, key: T::Key, value: T::Value);
    /// Removes `query` from the next version.
    fn remove(&mut self, query: &T::Query);
    /// Makes the changes since the last call visible.
    fn publish(&mut self);
}

/// The reading side of one thread.
pub trait Reader<T: Kind>: Send + 'static {
    /// One read section.
    type Guard<'a>: Guard<T>
    where
        Self: 'a;

    /// Enters a read section; dropping the guard leaves it.
    fn enter(&mut self) -> Self::Guard<'_>;
}

/// What a read section sees.
pub trait Guard<T: Kind> {
    /// Calls `f` with the value of `query`.
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R>;
}
