#![doc = include_str!("../../docs/seen_set.md")]

mod arena;
mod budget;
mod builder;
mod carry;
mod core;
mod desk;
mod fallible;
mod ground;
mod grow;
mod handle;
mod inner;
mod iter;
mod lend;
mod many;
mod mark;
mod offer;
mod operations;
mod prints;
mod record;
mod reserve;
mod roots;
#[cfg(feature = "serde")]
mod serde;
mod set;
mod slow;
mod small;
mod spare;
mod stats;
mod table;
mod together;
mod traits;
mod word;

#[cfg(all(test, quintet_loom))]
mod loom_tests;
#[cfg(all(test, quintet_shuttle, not(quintet_loom)))]
mod shuttle_tests;
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod small_tests;
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod table_tests;
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests;

pub use budget::SeenError;
pub use builder::{Growth, Ids, SeenPrintsBuilder, SeenSetBuilder};
pub use handle::{Handle, Offline};
pub use iter::Iter;
pub use offer::{AsRecord, IntoRecord};
pub use prints::{PrintsHandle, SeenPrints};
pub use record::Record;
pub use set::SeenSet;
pub use stats::SeenStats;

/// Names a record of one set, for as long as the set lives. Other sets know it for a foreign one.
///
/// A process that has made 2^31 sets (2^23 with [`Ids::Wide`]) goes on without that distinction:
/// what it makes then may take a foreign id for that of some record of its own, and searches for
/// the record of an id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(u64);

impl std::fmt::Debug for RecordId {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "RecordId({:#x})", self.0)
    }
}

impl RecordId {
    /// The id as a number: different for different records of a set, and meaningless to others.
    pub fn to_bits(self) -> u64 {
        self.0
    }
}

/// What an insert found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion {
    /// The record is new, and has this id now.
    Inserted(RecordId),
    /// The record was there already, under this id.
    Existing(RecordId),
}

impl Insertion {
    /// The id, new or not.
    pub fn id(self) -> RecordId {
        match self {
            Self::Inserted(id) | Self::Existing(id) => id,
        }
    }

    /// True if the record was not there before.
    pub fn is_new(self) -> bool {
        matches!(self, Self::Inserted(_))
    }
}
