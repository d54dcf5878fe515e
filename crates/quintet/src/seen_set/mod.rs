#![doc = include_str!("../../docs/seen_set.md")]

mod arena;
mod budget;
mod builder;
mod carry;
mod core;
mod ground;
mod grow;
mod handle;
mod iter;
mod many;
mod mark;
mod prints;
mod record;
mod slow;
mod spare;
mod stats;
mod table;
mod together;
mod word;

#[cfg(all(test, quintet_loom))]
mod loom_tests;
#[cfg(all(test, quintet_shuttle, not(quintet_loom)))]
mod shuttle_tests;
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests;

pub use budget::SeenError;
pub use builder::{Growth, Ids, SeenSetBuilder};
pub use handle::{Handle, Offline};
pub use iter::Iter;
pub use prints::{PrintsHandle, SeenPrints};
pub use record::Record;
pub use stats::SeenStats;

use self::core::Core;
use crate::hasher::DefaultHashBuilder;
use equivalent::Equivalent;
use mark::Mark;
use record::{Origin, Records};
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Names a record of one set, for as long as the set lives. Other sets know it for a foreign one.
///
/// A process that has made 2^31 sets (2^23 with [`Ids::Wide`]) goes on without that distinction: what it makes then may take a foreign id for
/// that of some record of its own, and searches for the record of an id.
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

/// A set that only grows; see the [page](self).
///
/// # Example
///
/// ```
/// use quintet::SeenSet;
///
/// let seen: SeenSet<(u32, u32)> = SeenSet::new();
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| {
///             let handle = seen.handle();
///             for x in 0..100 {
///                 handle.insert((x, x * x));
///             }
///         });
///     }
/// });
/// assert_eq!(seen.len(), 100);
/// assert!(seen.contains(&(3, 9)) && !seen.contains(&(3, 10)));
/// ```
#[derive(Debug)]
pub struct SeenSet<R: Record + ?Sized = [u8], S = DefaultHashBuilder> {
    core: Core,
    records: Records<R>,
    hasher: S,
    /// Records that were counted by `insert_counted`.
    counted: crate::sync::AtomicU64,
    /// What tells ids of this set from others'.
    mark: Mark,
}

impl<R: Record + ?Sized> SeenSet<R> {
    /// An empty set. Allocates no table until the first insert.
    pub fn new() -> Self {
        SeenSetBuilder::default().build()
    }

    /// An empty set with room for `records` before it grows.
    ///
    /// # Panics
    /// If the memory cannot be had.
    pub fn with_capacity(records: usize) -> Self {
        SeenSetBuilder::default().capacity(records).build()
    }

    /// Sets up a set.
    pub fn builder() -> SeenSetBuilder {
        SeenSetBuilder::default()
    }
}

impl<R: Record + ?Sized> Default for SeenSet<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Record + ?Sized, S> SeenSet<R, S> {
    fn from_builder(builder: SeenSetBuilder, hasher: S) -> Result<Self, SeenError> {
        let core = Core::new(builder.settings(builder.id_bits())?);
        core.prepare(builder.capacity_wanted())?;
        let records = Records::new(&builder, core.split.ids(), &core.account, &core.ground.spare)?;
        let mark = Mark::next(builder.id_bits());
        Ok(Self { core, records, hasher, counted: crate::sync::AtomicU64::new(0), mark })
    }

    /// A registered access for one thread: needed to insert.
    pub fn handle(&self) -> Handle<'_, R, S> {
        Handle::new(self)
    }

    /// The id of a word of this set.
    #[inline(always)]
    fn id(&self, word: u64) -> RecordId {
        RecordId(self.mark.bits() | self.core.split.id(word))
    }

    /// The unit of an id, if it is this set's.
    #[inline(always)]
    fn unit(&self, id: RecordId) -> Option<u64> {
        let tag = self.core.split.tag_mask();
        if id.0 & tag == self.mark.sure() {
            return Some(id.0 & !tag); // (O1)
        }
        self.unit_in_crowd(id)
    }

    /// The unit of an id that is not this set's beyond doubt (O2).
    #[cold]
    #[inline(never)]
    fn unit_in_crowd(&self, id: RecordId) -> Option<u64> {
        let split = self.core.split;
        let unit = split.id(id.0);
        let is_here = self.mark.may_be(id.0 & split.tag_mask())
            && iter::Words::new(&self.core).any(|word| split.id(word) == unit);
        is_here.then_some(unit)
    }

    /// The record of an id. `None` if the id is another set's.
    #[inline]
    pub fn get(&self, id: RecordId) -> Option<&R> {
        Some(self.records.get(self.unit(id)?))
    }

    fn origin(&self, id: RecordId) -> Origin {
        self.unit(id).map_or(Origin::default(), |unit| self.records.origin(unit))
    }

    /// The record from which this one was first reached. `None` for a record without parent, in a set that keeps none, and for an id
    /// of another set.
    pub fn parent(&self, id: RecordId) -> Option<RecordId> {
        let parent = self.origin(id).parent;
        (parent != 0).then_some(RecordId(self.mark.bits() | parent))
    }

    /// The label with which the record was first inserted; 0 if none was given or kept.
    pub fn label(&self, id: RecordId) -> u32 {
        self.origin(id).label
    }

    /// The way to a record: from the first ancestor to the record itself. An id of another set leads nowhere else: the way is that id alone.
    pub fn trace(&self, id: RecordId) -> Vec<RecordId> {
        let mut way: Vec<_> = std::iter::successors(Some(id), |&id| self.parent(id)).collect();
        way.reverse();
        way
    }

    /// Records. Exact when nobody inserts; otherwise an estimate.
    pub fn len(&self) -> usize {
        self.core.len() as usize
    }

    /// True if there are no records, with the exactness of [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Walks over the records, in no order.
    ///
    /// Weakly consistent: a record that was inserted before is seen exactly once, one that is inserted meanwhile at most once. While
    /// the iterator lives, tables that the set leaves are not freed.
    pub fn iter(&self) -> Iter<'_, R, S> {
        Iter::new(self)
    }

    /// A look inside: memory, fill, growth.
    pub fn stats(&self) -> SeenStats {
        self.core.stats()
    }

    /// Bytes held by tables and records.
    pub fn memory_bytes(&self) -> usize {
        self.core.account.tables() + self.core.account.records()
    }

    /// Bytes held by tables alone: in use, and left but not yet given back.
    pub fn table_bytes(&self) -> usize {
        self.core.account.tables()
    }

    /// Under `Growth::Together`: the handles that a growth under way waits for, by number and thread.
    pub fn waiting_for(&self) -> Vec<String> {
        self.core.meeting.as_ref().map_or_else(Vec::new, together::Meeting::missing)
    }
}

impl<T: Hash + Eq + Send + Sync, S: BuildHasher> SeenSet<T, S> {
    /// True if the record is in the set. Linearizable.
    pub fn contains<Q: Hash + Equivalent<T> + ?Sized>(&self, record: &Q) -> bool {
        self.find(record).is_some()
    }

    /// The id of a record. Linearizable.
    pub fn find<Q: Hash + Equivalent<T> + ?Sized>(&self, record: &Q) -> Option<RecordId> {
        let hash = self.hasher.hash_one(record);
        self.find_by(&self.core.pin(), hash, |kept| record.equivalent(kept))
    }
}

impl<S: BuildHasher> SeenSet<[u8], S> {
    /// True if the record is in the set. Linearizable.
    pub fn contains(&self, record: &[u8]) -> bool {
        self.find(record).is_some()
    }

    /// The id of a record. Linearizable.
    pub fn find(&self, record: &[u8]) -> Option<RecordId> {
        let hash = self.hasher.hash_one(record);
        self.find_by(&self.core.pin(), hash, |kept| kept == record)
    }
}

impl<R: Record + ?Sized, S> SeenSet<R, S> {
    #[inline(always)]
    fn find_by(
        &self,
        section: &crate::reclaim::Section<'_>,
        hash: u64,
        same: impl Fn(&R) -> bool,
    ) -> Option<RecordId> {
        let split = self.core.split;
        let same = |word| same(self.records.get(split.id(word)));
        let turned = split.turn(hash);
        self.core.find(section, turned, split.tag(turned), same).map(|word| self.id(word))
    }
}

impl<R: Record + ?Sized, S> Drop for SeenSet<R, S> {
    fn drop(&mut self) {
        if R::NEEDS_DROP {
            let (core, records) = (&self.core, &self.records);
            let mut panic = None;
            core.for_each_word(|word| {
                // SAFETY: the set goes: whoever has a handle, an iterator or a reference borrows it, and one that was forgotten is not used again. Each
                // word comes once (I1), also if the drop of a record panics.
                let drop_record = || unsafe { records.drop_record(core.split.id(word)) };
                panic = catch_unwind(AssertUnwindSafe(drop_record)).err().or(panic.take());
            });
            if let Some(payload) = panic.filter(|_| !std::thread::panicking()) {
                resume_unwind(payload);
            }
        }
    }
}
