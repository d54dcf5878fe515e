//! A thread's registered access.

use super::core::{Entry, Outcome, Worker};
use super::many::Kind;
use super::record::{Origin, Record, Text, Typed};
use super::{Insertion, RecordId, SeenError, SeenSet};
use crate::hasher::DefaultHashBuilder;
use crate::reclaim::{Access, Brief};
use crate::sync::Ordering;
use equivalent::Equivalent;
use std::hash::{BuildHasher, Hash};

/// A thread's access to a [`SeenSet`]: one per thread, kept as long as the thread works on the set.
///
/// A handle is `Send` but not `Sync`.
///
/// ```compile_fail
/// fn shared<T: Sync>() {}
/// shared::<quintet::seen_set::Handle<'_, u64>>();
/// ```
#[derive(Debug)]
pub struct Handle<'s, R: Record + ?Sized, S = DefaultHashBuilder> {
    set: &'s SeenSet<R, S>,
    worker: Worker,
}

/// While this lives, its [`Handle`] is not waited for. See [`Handle::offline`].
#[derive(Debug)]
pub struct Offline<'h, 's, R: Record + ?Sized, S>(&'h mut Handle<'s, R, S>);

/// The panic of an insert that was refused.
#[cold]
fn refused(error: SeenError) -> ! {
    panic!("SeenSet: {error}; the try_ form returns this as a value")
}

impl<'s, R: Record + ?Sized, S> Handle<'s, R, S> {
    pub(super) fn new(set: &'s SeenSet<R, S>) -> Self {
        Self { set, worker: set.core.join() }
    }

    /// The set this handle belongs to.
    pub fn set(&self) -> &'s SeenSet<R, S> {
        self.set
    }

    /// The record of an id. `None` if the id is another set's.
    #[inline]
    pub fn get(&self, id: RecordId) -> Option<&'s R> {
        self.set.get(id)
    }

    /// Takes the handle out of meetings until the guard drops: for a thread that will be busy elsewhere for a while. Only `Growth::Together` has
    /// meetings.
    pub fn offline(&mut self) -> Offline<'_, 's, R, S> {
        self.set.core.leave(&self.worker);
        Offline(self)
    }

    fn origin(&self, parent: RecordId, label: u32) -> Origin {
        let parent = self.set.unit(parent).expect("the parent is a record of this set");
        Origin { parent, label }
    }

    #[inline(always)]
    fn insertion(&self, outcome: Outcome) -> Insertion {
        let id = self.set.id(outcome.word);
        if outcome.new { Insertion::Inserted(id) } else { Insertion::Existing(id) }
    }

    #[inline(always)]
    fn insert_by(&self, hash: u64, entry: &mut impl Entry) -> Result<Outcome, SeenError> {
        let core = &self.set.core;
        let turned = core.split.turn(hash);
        core.insert(&self.worker, None::<&Brief<'_>>, turned, core.split.tag(turned), entry)
    }

    fn ordinal(&self, insertion: Insertion) -> (Insertion, Option<u64>) {
        let counted = &self.set.counted;
        // ORDERING: Relaxed: a number for each, in no order but its own.
        let ordinal = insertion.is_new().then(|| counted.fetch_add(1, Ordering::Relaxed) + 1);
        (insertion, ordinal)
    }

    #[inline(always)]
    fn come_along(&self) {
        if self.set.core.meeting.is_some() {
            self.set.core.attend_if_called(&self.worker, &self.worker.access.section());
        }
    }
}

impl<R: Record + ?Sized, S> Drop for Handle<'_, R, S> {
    fn drop(&mut self) {
        self.set.core.leave(&self.worker);
    }
}

impl<R: Record + ?Sized, S> Drop for Offline<'_, '_, R, S> {
    fn drop(&mut self) {
        let Handle { set, worker } = &*self.0;
        if let Some(meeting) = &set.core.meeting {
            worker.place.set(meeting.join());
        }
    }
}

/// Records on their way into the set, many at once.
struct Many<'h, 's, R: Record + ?Sized, S, F> {
    handle: &'h Handle<'s, R, S>,
    parent: u64,
    tell: F,
}

impl<T, S, F> Kind<(T, u32)> for Many<'_, '_, T, S, F>
where
    T: Hash + Eq + Send + Sync,
    S: BuildHasher,
    F: FnMut(Insertion),
{
    #[inline(always)]
    fn hash(&self, (record, _): &(T, u32)) -> u64 {
        self.handle.set.hasher.hash_one(record)
    }
    #[inline(always)]
    fn locate(&self, id: u64) -> *const u8 {
        self.handle.set.records.locate(id)
    }
    #[inline(always)]
    unsafe fn is_at(&self, place: *const u8, (record, _): &(T, u32)) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.handle.set.records.is_at(place, record) }
    }
    #[inline(always)]
    fn entry<'x>(&'x self, (record, label): &'x (T, u32)) -> Result<impl Entry + 'x, SeenError> {
        let origin = Origin { parent: self.parent, label: *label };
        Ok(self.handle.entry(record, origin))
    }
    #[inline(always)]
    fn tell(&mut self, outcome: Outcome) {
        (self.tell)(self.handle.insertion(outcome));
    }
}

impl<'r, S, F> Kind<(&'r [u8], u32)> for Many<'_, '_, [u8], S, F>
where
    S: BuildHasher,
    F: FnMut(Insertion),
{
    #[inline(always)]
    fn hash(&self, (record, _): &(&'r [u8], u32)) -> u64 {
        self.handle.set.hasher.hash_one(*record)
    }
    #[inline(always)]
    fn locate(&self, id: u64) -> *const u8 {
        self.handle.set.records.locate(id)
    }
    #[inline(always)]
    unsafe fn is_at(&self, place: *const u8, (record, _): &(&'r [u8], u32)) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.handle.set.records.is_at(place, *record) }
    }
    #[inline(always)]
    fn entry<'x>(
        &'x self,
        (record, label): &'x (&'r [u8], u32),
    ) -> Result<impl Entry + 'x, SeenError> {
        self.handle.entry(record, Origin { parent: self.parent, label: *label })
    }
    #[inline(always)]
    fn tell(&mut self, outcome: Outcome) {
        (self.tell)(self.handle.insertion(outcome));
    }
}

/// Records of any type.
impl<T: Hash + Eq + Send + Sync, S: BuildHasher> Handle<'_, T, S> {
    #[inline(always)]
    fn entry<'x>(&'x self, record: &'x T, origin: Origin) -> Typed<'x, T> {
        let SeenSet { core, records, .. } = self.set;
        Typed { records, desk: &self.worker.desk, record, origin, id_mask: !core.split.tag_mask() }
    }

    #[inline(always)]
    fn put(&self, record: T, origin: Origin) -> Result<Insertion, SeenError> {
        let hash = self.set.hasher.hash_one(&record);
        let outcome = self.insert_by(hash, &mut self.entry(&record, origin))?;
        if outcome.new {
            // Its bits are the set's now (I5).
            std::mem::forget(record);
        }
        Ok(self.insertion(outcome))
    }

    /// Takes a record in, or finds it. Linearizable.
    ///
    /// # Panics
    /// If memory is needed and cannot be had; [`try_insert`](Self::try_insert) returns an error instead.
    #[inline]
    pub fn insert(&self, record: T) -> Insertion {
        self.try_insert(record).unwrap_or_else(|error| refused(error))
    }

    /// [`insert`](Self::insert) that returns an error if memory is needed and cannot be had; the set is then as before.
    #[inline]
    pub fn try_insert(&self, record: T) -> Result<Insertion, SeenError> {
        self.put(record, Origin::default())
    }

    /// [`insert`](Self::insert) that keeps with a new record from where it was reached, if the set keeps
    /// [parents](super::SeenSetBuilder::parents).
    ///
    /// # Panics
    /// As `insert`, and if the parent is another set's record.
    #[inline]
    pub fn insert_from(&self, record: T, parent: RecordId, label: u32) -> Insertion {
        self.try_insert_from(record, parent, label).unwrap_or_else(|error| refused(error))
    }

    /// [`insert_from`](Self::insert_from) that returns an error if memory is needed and cannot be had.
    ///
    /// # Panics
    /// If the parent is another set's record.
    #[inline]
    pub fn try_insert_from(
        &self,
        record: T,
        parent: RecordId,
        label: u32,
    ) -> Result<Insertion, SeenError> {
        self.put(record, self.origin(parent, label))
    }

    /// [`insert`](Self::insert) that numbers new records: the first record that any thread inserts by this method gets 1, the next 2, and so
    /// on. The number costs one shared counter per new record.
    ///
    /// # Panics
    /// As `insert`.
    #[inline]
    pub fn insert_counted(&self, record: T) -> (Insertion, Option<u64>) {
        self.ordinal(self.insert(record))
    }

    /// Takes many records in, or finds them, and tells of each, in order: what an explorer does with the successors of a state.
    ///
    /// Each record is inserted as by [`insert`](Self::insert), one after the other; only the waits for memory overlap. So a set beyond the caches takes
    /// in about twice as many records as by single inserts; one inside them gains nothing. Up to 32 records are taken from the iterator before the first is told of,
    /// and tables that are left meanwhile are not freed while the iterator or `tell` is at work.
    ///
    /// ```
    /// let seen = quintet::SeenSet::<u64>::new();
    /// let mut new = 0;
    /// seen.handle().insert_many([3, 5, 3], |insertion| new += u32::from(insertion.is_new()));
    /// assert_eq!(new, 2);
    /// ```
    ///
    /// # Panics
    /// As `insert`; what was told of is in the set.
    pub fn insert_many(&self, records: impl IntoIterator<Item = T>, tell: impl FnMut(Insertion)) {
        self.try_insert_many(records, tell).unwrap_or_else(|error| refused(error));
    }

    /// [`insert_many`](Self::insert_many) that returns an error if memory is needed and cannot be had: every record told of is in the
    /// set, no other is.
    pub fn try_insert_many(
        &self,
        records: impl IntoIterator<Item = T>,
        tell: impl FnMut(Insertion),
    ) -> Result<(), SeenError> {
        let items = records.into_iter().map(|record| (record, 0));
        self.set.core.insert_many(&self.worker, items, &mut Many { handle: self, parent: 0, tell })
    }

    /// [`insert_many`](Self::insert_many) of records with labels, all reached from `parent`.
    ///
    /// # Panics
    /// As `insert_many`, and if the parent is another set's record.
    pub fn insert_many_from(
        &self,
        parent: RecordId,
        records: impl IntoIterator<Item = (T, u32)>,
        tell: impl FnMut(Insertion),
    ) {
        self.try_insert_many_from(parent, records, tell).unwrap_or_else(|error| refused(error));
    }

    /// [`insert_many_from`](Self::insert_many_from) that returns an error if memory is needed and cannot be had, like
    /// [`try_insert_many`](Self::try_insert_many).
    ///
    /// # Panics
    /// If the parent is another set's record.
    pub fn try_insert_many_from(
        &self,
        parent: RecordId,
        records: impl IntoIterator<Item = (T, u32)>,
        tell: impl FnMut(Insertion),
    ) -> Result<(), SeenError> {
        let parent = self.origin(parent, 0).parent;
        self.set.core.insert_many(&self.worker, records, &mut Many { handle: self, parent, tell })
    }

    /// True if the record is in the set. Linearizable.
    #[inline]
    pub fn contains<Q: Hash + Equivalent<T> + ?Sized>(&self, record: &Q) -> bool {
        self.find(record).is_some()
    }

    /// The id of a record. Linearizable.
    #[inline]
    pub fn find<Q: Hash + Equivalent<T> + ?Sized>(&self, record: &Q) -> Option<RecordId> {
        self.come_along();
        let hash = self.set.hasher.hash_one(record);
        self.set.find_by(&self.worker.access.section(), hash, |kept| record.equivalent(kept))
    }
}

/// Byte strings.
impl<S: BuildHasher> Handle<'_, [u8], S> {
    #[inline(always)]
    fn entry<'x>(&'x self, record: &'x [u8], origin: Origin) -> Result<Text<'x>, SeenError> {
        let SeenSet { core, records, .. } = self.set;
        records.check_width(record)?;
        let id_mask = !core.split.tag_mask();
        Ok(Text { records, desk: &self.worker.desk, record, origin, id_mask })
    }

    #[inline(always)]
    fn put(&self, record: &[u8], origin: Origin) -> Result<Insertion, SeenError> {
        let hash = self.set.hasher.hash_one(record);
        let outcome = self.insert_by(hash, &mut self.entry(record, origin)?)?;
        Ok(self.insertion(outcome))
    }

    /// Takes a record in, or finds it. Linearizable.
    ///
    /// # Panics
    /// If memory is needed and cannot be had, or the record has the wrong width; [`try_insert`](Self::try_insert) returns an error
    /// instead.
    #[inline]
    pub fn insert(&self, record: &[u8]) -> Insertion {
        self.try_insert(record).unwrap_or_else(|error| refused(error))
    }

    /// [`insert`](Self::insert) that returns an error if memory is needed and cannot be had; the set is then as before.
    #[inline]
    pub fn try_insert(&self, record: &[u8]) -> Result<Insertion, SeenError> {
        self.put(record, Origin::default())
    }

    /// [`insert`](Self::insert) that keeps with a new record from where it was reached, if the set keeps
    /// [parents](super::SeenSetBuilder::parents).
    ///
    /// # Panics
    /// As `insert`, and if the parent is another set's record.
    #[inline]
    pub fn insert_from(&self, record: &[u8], parent: RecordId, label: u32) -> Insertion {
        self.try_insert_from(record, parent, label).unwrap_or_else(|error| refused(error))
    }

    /// [`insert_from`](Self::insert_from) that returns an error if memory is needed and cannot be had.
    ///
    /// # Panics
    /// If the parent is another set's record.
    #[inline]
    pub fn try_insert_from(
        &self,
        record: &[u8],
        parent: RecordId,
        label: u32,
    ) -> Result<Insertion, SeenError> {
        self.put(record, self.origin(parent, label))
    }

    /// [`insert`](Self::insert) that numbers new records: the first record that any thread inserts by this method gets 1, the next 2, and so
    /// on. The number costs one shared counter per new record.
    ///
    /// # Panics
    /// As `insert`.
    #[inline]
    pub fn insert_counted(&self, record: &[u8]) -> (Insertion, Option<u64>) {
        self.ordinal(self.insert(record))
    }

    /// Takes many records in, or finds them, and tells of each, in order: what an explorer does with the successors of a state.
    ///
    /// Each record is inserted as by [`insert`](Self::insert), one after the other; only the waits for memory overlap. So a set beyond the caches takes
    /// in about twice as many records as by single inserts; one inside them gains nothing. Up to 32 records are taken from the iterator before the first is told of,
    /// and tables that are left meanwhile are not freed while the iterator or `tell` is at work.
    ///
    /// ```
    /// let seen = quintet::SeenSet::<[u8]>::new();
    /// let mut new = 0;
    /// seen.handle().insert_many([&b"3"[..], b"5", b"3"], |insertion| new += u32::from(insertion.is_new()));
    /// assert_eq!(new, 2);
    /// ```
    ///
    /// # Panics
    /// As `insert`; what was told of is in the set.
    pub fn insert_many<'r>(
        &self,
        records: impl IntoIterator<Item = &'r [u8]>,
        tell: impl FnMut(Insertion),
    ) {
        self.try_insert_many(records, tell).unwrap_or_else(|error| refused(error));
    }

    /// [`insert_many`](Self::insert_many) that returns an error if memory is needed and cannot be had: every record told of is in the
    /// set, no other is.
    pub fn try_insert_many<'r>(
        &self,
        records: impl IntoIterator<Item = &'r [u8]>,
        tell: impl FnMut(Insertion),
    ) -> Result<(), SeenError> {
        let items = records.into_iter().map(|record| (record, 0));
        self.set.core.insert_many(&self.worker, items, &mut Many { handle: self, parent: 0, tell })
    }

    /// [`insert_many`](Self::insert_many) of records with labels, all reached from `parent`.
    ///
    /// # Panics
    /// As `insert_many`, and if the parent is another set's record.
    pub fn insert_many_from<'r>(
        &self,
        parent: RecordId,
        records: impl IntoIterator<Item = (&'r [u8], u32)>,
        tell: impl FnMut(Insertion),
    ) {
        self.try_insert_many_from(parent, records, tell).unwrap_or_else(|error| refused(error));
    }

    /// [`insert_many_from`](Self::insert_many_from) that returns an error if memory is needed and cannot be had, like
    /// [`try_insert_many`](Self::try_insert_many).
    ///
    /// # Panics
    /// If the parent is another set's record.
    pub fn try_insert_many_from<'r>(
        &self,
        parent: RecordId,
        records: impl IntoIterator<Item = (&'r [u8], u32)>,
        tell: impl FnMut(Insertion),
    ) -> Result<(), SeenError> {
        let parent = self.origin(parent, 0).parent;
        self.set.core.insert_many(&self.worker, records, &mut Many { handle: self, parent, tell })
    }

    /// True if the record is in the set. Linearizable.
    #[inline]
    pub fn contains(&self, record: &[u8]) -> bool {
        self.find(record).is_some()
    }

    /// The id of a record. Linearizable.
    #[inline]
    pub fn find(&self, record: &[u8]) -> Option<RecordId> {
        self.come_along();
        let hash = self.set.hasher.hash_one(record);
        self.set.find_by(&self.worker.access.section(), hash, |kept| kept == record)
    }
}
