//! The set.

use super::builder::{SeenSetBuilder, Settings};
use super::inner::{At, Inner};
use super::iter::Iter;
use super::lend::Lent;
use super::many::GROUP;
use super::offer::{AsRecord, IntoRecord};
use super::operations::{operations, refused};
use super::record::{Record, Records};
use super::word::Split;
use super::{Handle, Insertion, RecordId, SeenError, SeenStats};
use crate::hasher::DefaultHashBuilder;
use crate::home::Home;
use crate::reclaim::Section;
use crate::sync::{LazyArc, const_where_possible};
use crate::vocabulary::Fallible;
use std::hash::BuildHasher;
use std::sync::Arc;

/// A set that only grows: every record gets an id once. The [page](super) tells how it works.
///
/// # When to use
/// When nothing is ever removed, and the question is "have I seen this before?", asked by many
/// threads: search, crawling, model checking, deduplication, interning. If elements are removed,
/// use an [`ItemSet`](crate::ItemSet).
///
/// # Example
/// ```
/// use quintet::SeenSet;
///
/// let seen = SeenSet::new();
/// assert!(seen.insert((3, 9)).is_new());
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| {
///             let seen = seen.handle(); // for a loop: the fastest way in
///             for x in 0..100 {
///                 seen.insert((x, x * x));
///             }
///         });
///     }
/// });
/// assert_eq!(seen.len(), 100);
/// assert!(seen.contains(&(4, 16)) && !seen.contains(&(3, 10)));
/// ```
///
/// # Consistency
/// `insert`, `contains` and `find` are linearizable: of all threads that insert equal records
/// exactly one is told `Inserted`, all the others `Existing` with the same id. `len` is exact when
/// nobody inserts. `iter` sees every record inserted before it began exactly once, later ones at
/// most once.
///
/// # Progress
/// Nobody waits for anybody, also while the set grows; locks are taken for a moment when a
/// [`Handle`] is made or gets new memory for records, and by every insert on the set itself: it
/// takes a seat and a place for records from a pool and puts them back, twice a short lock. With
/// [`Growth::Together`](super::Growth::Together) handles wait for each other while the set grows;
/// an insert on the set itself waits only for those that are moving records at this moment, also if
/// its thread has a handle.
///
/// # Growth
/// One table up to 12,288 records; then by shards, each doubled at three quarters, one after the
/// other. Every insert that comes along moves a piece.
///
/// # Memory
/// 15 bytes of tables per record on average, at most 18 from 10^5 on, and the records. An empty set
/// has allocated nothing. Nothing shrinks before the set is dropped.
///
/// # Panics
/// `insert` panics if memory cannot be had; inserts on [`fallible`](Self::fallible) return a
/// [`SeenError`] instead. A panic in `Eq` or `Hash` of a record leaves the set as it was.
pub struct SeenSet<R: Record + ?Sized = [u8], S = DefaultHashBuilder> {
    inner: LazyArc<Inner<R>>,
    settings: Settings,
    pub(super) hasher: S,
}

impl<R: Record + ?Sized> SeenSet<R> {
    const_where_possible! {
        /// An empty set. Allocates nothing until it is first used.
        ///
        /// ```
        /// static NAMES: quintet::SeenSet<String> = quintet::SeenSet::new();
        /// assert!(NAMES.insert("quintet").is_new());
        /// ```
        pub fn new() -> Self {
            Self { inner: LazyArc::new(), settings: Settings::DEFAULT, hasher: DefaultHashBuilder::new() }
        }
    }

    /// An empty set with room for `records` before it grows.
    ///
    /// # Panics
    /// If the memory cannot be had.
    pub fn with_capacity(records: usize) -> Self {
        Self::builder().capacity(records).build()
    }

    /// Sets up a set.
    pub fn builder() -> SeenSetBuilder<R> {
        SeenSetBuilder::new()
    }
}

impl<R: Record + ?Sized, S> SeenSet<R, S> {
    const_where_possible! {
        /// An empty set that hashes by this. Its high bits must be as good as its low ones.
        pub fn with_hasher(hasher: S) -> Self {
            Self { inner: LazyArc::new(), settings: Settings::DEFAULT, hasher }
        }
    }

    /// The same with room for `records` before it grows.
    ///
    /// # Panics
    /// If the memory cannot be had.
    pub fn with_capacity_and_hasher(records: usize, hasher: S) -> Self {
        SeenSetBuilder::new().capacity(records).hasher(hasher).build()
    }

    pub(super) fn set_up(settings: Settings, hasher: S, now: bool) -> Result<Self, SeenError> {
        let set = Self { inner: LazyArc::new(), settings, hasher };
        Records::<R>::shape(&settings)?;
        if now {
            set.inner()?.core.prepare()?;
        }
        Ok(set)
    }

    /// What the set is once it is used.
    #[inline(always)]
    pub(super) fn inner(&self) -> Result<&Inner<R>, SeenError> {
        match self.made() {
            Some(inner) => Ok(inner),
            None => self.make(),
        }
    }

    #[cold]
    fn make(&self) -> Result<&Inner<R>, SeenError> {
        let shape = Records::<R>::shape(&self.settings)?;
        Ok(self.inner.get_or_make(|| Inner::new(self.settings, shape)))
    }

    #[inline(always)]
    pub(super) fn made(&self) -> Option<&Inner<R>> {
        self.inner.get()
    }

    #[inline(always)]
    pub(super) fn at(&self) -> Result<At<'_, R, S, Lent<'_>>, SeenError> {
        let inner = self.inner()?;
        Ok(At { inner, hasher: &self.hasher, worker: inner.core.lend() })
    }

    #[inline(always)]
    fn inside(&self) -> Option<(&Inner<R>, Section<'_>)> {
        self.made().map(|inner| (inner, inner.core.pin()))
    }

    #[inline(always)]
    fn set(&self) -> &Self {
        self
    }

    /// How hashes are divided.
    #[inline(always)]
    pub(super) fn split(&self) -> Split {
        self.settings.split()
    }

    /// A seat and a place for records of one's own, for a thread that stays: the fastest way in.
    ///
    /// # Panics
    /// If no memory is large enough for the records.
    pub fn handle(&self) -> Handle<'_, R, S> {
        Handle::new(Home::borrowed(self))
    }

    /// A [`handle`](Self::handle) that keeps the set alive: for tasks, and threads that are not
    /// scoped.
    ///
    /// ```
    /// use quintet::SeenSet;
    /// use std::sync::Arc;
    ///
    /// let seen = Arc::new(SeenSet::new());
    /// let handle = seen.owned_handle();
    /// drop(seen);
    /// let thread = std::thread::spawn(move || handle.insert(7u64).is_new());
    /// assert!(thread.join().unwrap());
    /// ```
    ///
    /// # Panics
    /// As `handle`.
    pub fn owned_handle(self: &Arc<Self>) -> Handle<'static, R, S>
    where
        R: 'static,
        S: 'static,
    {
        Handle::new(Home::shared(Arc::clone(self)))
    }
}

impl<R: Record + ?Sized, S: BuildHasher> SeenSet<R, S> {
    operations!();
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
impl<R: Record + ?Sized, S> SeenSet<R, S> {
    /// Makes this set one of those that were made after the last mark was given.
    pub(super) fn crowd(&mut self, id_bits: u32) {
        let shape = Records::<R>::shape(&self.settings).expect("small records");
        let mut inner = Inner::new(self.settings, shape);
        inner.mark = super::mark::Mark::crowd(id_bits);
        self.inner = crate::sync::Arc::new(inner).into();
    }
}
