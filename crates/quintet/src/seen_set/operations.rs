//! The operations of a set, written once for all ways in.
//!
//! Both ways in, the set and its handle, have these methods of their own, out of sight:
//!
//! | Method | Gives |
//! |---|---|
//! | `set` | the set |
//! | `at` | where to insert, with a worker |
//! | `inside` | tables, records and a section to look them up in; none before the first use |

use super::SeenError;

/// The panic of an insert that was refused.
#[cold]
pub(super) fn refused(error: SeenError) -> ! {
    panic!("SeenSet: {error}; the same on `fallible()` returns this as a value")
}

/// The operations, for an `impl` block of the set or its handle.
macro_rules! operations {
    () => {
        /// Takes a record in, or finds it. Linearizable.
        ///
        /// Also takes borrowed forms, of which a record is made only if it is new: see
        /// [`IntoRecord`].
        ///
        /// ```
        /// use quintet::SeenSet;
        ///
        /// let seen = SeenSet::<String>::new();
        /// let first = seen.insert("a word");
        /// let again = seen.handle().insert("a word"); // allocates nothing
        /// assert!(first.is_new() && !again.is_new() && first.id() == again.id());
        /// ```
        ///
        /// # Panics
        /// If memory is needed and cannot be had, or a byte string has another width than the
        /// set's; [`fallible`](Self::fallible) inserts return an error instead.
        #[inline(always)]
        #[doc(alias("put", "add", "intern"))]
        pub fn insert<Q: IntoRecord<R>>(&self, record: Q) -> Insertion {
            self.fallible().insert(record).unwrap_or_else(|error| refused(error))
        }

        /// [`insert`](Self::insert) that keeps with a new record from where it was reached, if the
        /// set keeps [parents](super::SeenSetBuilder::parents).
        ///
        /// ```
        /// let seen = quintet::SeenSet::<u64>::builder().parents(true).build();
        /// let root = seen.insert(1).id();
        /// let next = seen.insert_from(2, root, 7).id(); // reached by step 7
        /// assert_eq!((seen.parent(next), seen.label(next)), (Some(root), 7));
        /// ```
        ///
        /// # Panics
        /// As `insert`, and if the parent is another set's record.
        #[inline]
        pub fn insert_from<Q: IntoRecord<R>>(
            &self,
            record: Q,
            parent: RecordId,
            label: u32,
        ) -> Insertion {
            let inserted = self.fallible().insert_from(record, parent, label);
            inserted.unwrap_or_else(|error| refused(error))
        }

        /// [`insert`](Self::insert) that numbers new records: the first record that any thread
        /// inserts by this method gets 1, the next 2, and so on. The number costs one shared
        /// counter per new record.
        ///
        /// ```
        /// let seen = quintet::SeenSet::<String>::new();
        /// assert_eq!(seen.insert_counted("a").1, Some(1));
        /// assert_eq!(seen.insert_counted("b").1, Some(2));
        /// assert_eq!(seen.insert_counted("a").1, None); // not new
        /// ```
        ///
        /// # Panics
        /// As `insert`.
        #[inline]
        pub fn insert_counted<Q: IntoRecord<R>>(&self, record: Q) -> (Insertion, Option<u64>) {
            self.fallible().insert_counted(record).unwrap_or_else(|error| refused(error))
        }

        /// [`insert`](Self::insert) of many records. Returns how many were new.
        ///
        /// ```
        /// let seen = quintet::SeenSet::new();
        /// assert_eq!(seen.insert_many([3, 5, 3]), 2);
        /// ```
        ///
        /// Their waits for memory overlap, as told of [`insert_each`](Self::insert_each).
        ///
        /// # Panics
        /// As `insert`; what came before the one that was refused is in the set.
        #[doc(alias = "extend")]
        pub fn insert_many<Q: IntoRecord<R>>(&self, records: impl IntoIterator<Item = Q>) -> usize {
            self.fallible().insert_many(records).unwrap_or_else(|error| refused(error))
        }

        /// Takes many records in, or finds them, and tells of each, in order: what an explorer does
        /// with the successors of a state.
        ///
        /// Each record is inserted as by [`insert`](Self::insert), one after the other; only the
        /// waits for memory overlap. So a set beyond the caches takes in about twice as many
        /// records as by single inserts; one inside them gains nothing. Up to 32 records are taken
        /// from the iterator before the first is told of, and tables that are left meanwhile are
        /// not freed while the iterator or `tell` is at work.
        ///
        /// ```
        /// let seen = quintet::SeenSet::new();
        /// let mut told = Vec::new();
        /// seen.insert_each([3, 5, 3], |insertion| told.push(insertion.is_new()));
        /// assert_eq!(told, [true, true, false]);
        /// ```
        ///
        /// # Panics
        /// As `insert`; what was told of is in the set.
        pub fn insert_each<Q: IntoRecord<R>>(
            &self,
            records: impl IntoIterator<Item = Q>,
            tell: impl FnMut(Insertion),
        ) {
            self.fallible().insert_each(records, tell).unwrap_or_else(|error| refused(error));
        }

        /// [`insert_each`](Self::insert_each) of records with labels, all reached from `parent`.
        ///
        /// ```
        /// let seen = quintet::SeenSet::<u64>::builder().parents(true).build();
        /// let root = seen.insert(1).id();
        /// let mut new = Vec::new();
        /// seen.insert_each_from(root, [(2, 7), (3, 8)], |insertion| new.push(insertion.id()));
        /// assert_eq!(seen.parent(new[1]), Some(root));
        /// assert_eq!(seen.label(new[1]), 8);
        /// ```
        ///
        /// # Panics
        /// As `insert_each`, and if the parent is another set's record.
        pub fn insert_each_from<Q: IntoRecord<R>>(
            &self,
            parent: RecordId,
            records: impl IntoIterator<Item = (Q, u32)>,
            tell: impl FnMut(Insertion),
        ) {
            let told = self.fallible().insert_each_from(parent, records, tell);
            told.unwrap_or_else(|error| refused(error));
        }

        /// True if the record is in the set. Linearizable.
        ///
        /// ```
        /// let seen = quintet::SeenSet::<String>::from(["a", "b"]);
        /// assert!(seen.contains("a") && !seen.contains("c"));
        /// ```
        #[inline]
        #[doc(alias = "contains_key")]
        pub fn contains<Q: AsRecord<R> + ?Sized>(&self, record: &Q) -> bool {
            self.find(record).is_some()
        }

        /// The id of a record. Linearizable.
        ///
        /// ```
        /// let seen = quintet::SeenSet::<String>::new();
        /// let id = seen.insert("a").id();
        /// assert_eq!(seen.find("a"), Some(id));
        /// assert_eq!(seen.find("b"), None);
        /// ```
        #[inline]
        #[doc(alias = "get_index_of")]
        pub fn find<Q: AsRecord<R> + ?Sized>(&self, record: &Q) -> Option<RecordId> {
            let hash = record.hash_by(&self.set().hasher);
            let (inner, section) = self.inside()?;
            inner.find_by(&section, hash, |kept| record.is_record(kept))
        }

        /// [`contains`](Self::contains) of many records, one after the other, whose waits for
        /// memory overlap.
        ///
        /// ```
        /// let seen = quintet::SeenSet::<String>::from(["a", "b"]);
        /// let mut found = [false; 3];
        /// seen.contains_many(["b", "c", "a"], &mut found);
        /// assert_eq!(found, [true, false, true]);
        /// ```
        ///
        /// # Panics
        /// If there are not as many records as places for the answers. If `Eq` or `Hash` panics,
        /// earlier places may be filled.
        pub fn contains_many<'q, Q: AsRecord<R> + ?Sized + 'q>(
            &self,
            records: impl IntoIterator<Item = &'q Q>,
            found: &mut [bool],
        ) {
            let mut records = records.into_iter();
            for found in found.chunks_mut(GROUP) {
                let mut turned = [0; GROUP];
                let asked: Vec<&Q> = records.by_ref().take(found.len()).collect();
                assert_eq!(asked.len(), found.len(), "contains_many needs one record per place");
                for (turned, record) in turned.iter_mut().zip(&asked) {
                    *turned = self.set().split().turn(record.hash_by(&self.set().hasher));
                }
                let Some((inner, section)) = self.inside() else {
                    found.fill(false);
                    continue;
                };
                let (core, turned) = (&inner.core, &turned[..found.len()]);
                core.ask_ahead(&section, turned, |id| inner.records.locate(id));
                for ((found, record), &turned) in found.iter_mut().zip(asked).zip(turned) {
                    let same = |word| record.is_record(inner.records.get(core.split.id(word)));
                    *found = core.find(&section, turned, core.split.tag(turned), same).is_some();
                }
            }
            assert!(records.next().is_none(), "contains_many needs one place per record");
        }

        /// The record of an id. `None` if the id is another set's.
        ///
        /// ```
        /// let seen = quintet::SeenSet::<String>::new();
        /// let id = seen.insert("a").id();
        /// assert_eq!(seen.get(id).unwrap(), "a");
        /// ```
        #[inline]
        #[doc(alias("get_index", "resolve"))]
        pub fn get(&self, id: RecordId) -> Option<&R> {
            self.made()?.get(id)
        }

        /// The record from which this one was first reached. `None` for a record without parent, in
        /// a set that keeps none, and for an id of another set.
        ///
        /// ```
        /// let seen = quintet::SeenSet::<u64>::builder().parents(true).build();
        /// let root = seen.insert(1).id();
        /// let next = seen.insert_from(2, root, 0).id();
        /// assert_eq!(seen.parent(next), Some(root));
        /// assert_eq!(seen.parent(root), None);
        /// ```
        pub fn parent(&self, id: RecordId) -> Option<RecordId> {
            self.made()?.parent(id)
        }

        /// The label with which the record was first inserted; 0 if none was given or kept.
        ///
        /// ```
        /// let seen = quintet::SeenSet::<u64>::builder().parents(true).build();
        /// let root = seen.insert(1).id();
        /// let next = seen.insert_from(2, root, 7).id();
        /// assert_eq!((seen.label(next), seen.label(root)), (7, 0));
        /// ```
        pub fn label(&self, id: RecordId) -> u32 {
            self.made().map_or(0, |inner| inner.origin(id).label)
        }

        /// The way to a record: from the first ancestor to the record itself. An id of another set
        /// leads nowhere else: the way is that id alone.
        ///
        /// ```
        /// let seen = quintet::SeenSet::<u64>::builder().parents(true).build();
        /// let first = seen.insert(1).id();
        /// let second = seen.insert_from(2, first, 0).id();
        /// let third = seen.insert_from(3, second, 0).id();
        /// assert_eq!(seen.trace(third), [first, second, third]);
        /// ```
        pub fn trace(&self, id: RecordId) -> Vec<RecordId> {
            let mut way: Vec<_> = std::iter::successors(Some(id), |&id| self.parent(id)).collect();
            way.reverse();
            way
        }

        /// Records. Exact when nobody inserts; otherwise an estimate.
        ///
        /// ```
        /// let seen = quintet::SeenSet::<String>::from(["a", "b", "a"]);
        /// assert_eq!(seen.len(), 2);
        /// ```
        pub fn len(&self) -> usize {
            self.made().map_or(0, |inner| inner.core.len() as usize)
        }

        /// True if there are no records, with the exactness of [`len`](Self::len).
        ///
        /// ```
        /// let seen = quintet::SeenSet::<String>::from(["a"]);
        /// assert!(!seen.is_empty());
        /// ```
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }

        /// Walks over the records, in no order.
        ///
        /// Weakly consistent: a record that was inserted before is seen exactly once, one that is
        /// inserted meanwhile at most once. While the iterator lives, tables that the set leaves
        /// are not freed.
        ///
        /// ```
        /// let seen = quintet::SeenSet::<u64>::from([3, 5, 3]);
        /// assert_eq!(seen.iter().map(|(_, record)| *record).sum::<u64>(), 8);
        /// ```
        pub fn iter(&self) -> Iter<'_, R, S> {
            Iter::new(self.set())
        }

        /// Records that the tables there are can take before one of them grows. Shards fill up one
        /// after the other, so a few may grow earlier.
        ///
        /// ```
        /// let seen = quintet::SeenSet::<u64>::with_capacity(1000);
        /// seen.insert(3);
        /// assert!(seen.capacity() >= 1000);
        /// ```
        pub fn capacity(&self) -> usize {
            self.made().map_or(0, |inner| inner.core.capacity())
        }

        /// Makes room for so many more records. Moves what is there, in one go.
        ///
        /// ```
        /// let seen = quintet::SeenSet::<u64>::from([3, 5]);
        /// seen.reserve(1000);
        /// assert!(seen.capacity() >= 1000);
        /// ```
        ///
        /// # Panics
        /// If the memory cannot be had; [`try_reserve`](Self::try_reserve) returns an error
        /// instead.
        pub fn reserve(&self, records: usize) {
            self.try_reserve(records).unwrap_or_else(|error| refused(error));
        }

        /// [`reserve`](Self::reserve) that returns an error if the memory cannot be had; some of it
        /// may be there then.
        ///
        /// ```
        /// let seen = quintet::SeenSet::<u64>::from([3, 5]);
        /// seen.try_reserve(1000)?;
        /// assert!(seen.capacity() >= 1000);
        /// # Ok::<(), quintet::seen_set::SeenError>(())
        /// ```
        pub fn try_reserve(&self, records: usize) -> Result<(), SeenError> {
            let at = self.at()?;
            at.inner.core.reserve(&at.worker, records)
        }

        /// Bytes held by tables, in use and left but not yet given back, and by records.
        ///
        /// ```
        /// let seen: quintet::SeenSet<u64> = (0..1000).collect();
        /// assert!(seen.memory_bytes() >= 1000 * 8);
        /// ```
        #[doc(alias = "allocated_bytes")]
        pub fn memory_bytes(&self) -> usize {
            let account =
                |inner: &Inner<R>| inner.core.account.tables() + inner.core.account.records();
            self.made().map_or(0, account)
        }

        /// Bytes held by tables alone: in use, and left but not yet given back.
        ///
        /// ```
        /// let seen: quintet::SeenSet<u64> = (0..1000).collect();
        /// assert!(seen.table_bytes() < seen.memory_bytes()); // which has the records, too
        /// ```
        pub fn table_bytes(&self) -> usize {
            self.made().map_or(0, |inner| inner.core.account.tables())
        }

        /// A look inside: memory, load, growth. Walks over all slots.
        ///
        /// ```
        /// let seen: quintet::SeenSet<u64> = (0..1000).collect();
        /// let stats = seen.stats();
        /// assert_eq!(stats.len, 1000);
        /// assert!(stats.load > 0.0 && stats.load < 1.0);
        /// ```
        pub fn stats(&self) -> SeenStats {
            self.made().map_or_else(SeenStats::default, |inner| inner.core.stats())
        }

        /// Under `Growth::Together`: the handles that a growth under way waits for, by number and
        /// thread.
        ///
        /// ```
        /// use quintet::SeenSet;
        /// use quintet::seen_set::Growth;
        ///
        /// let seen = SeenSet::<u64>::builder().growth(Growth::Together).build();
        /// seen.insert(3);
        /// assert!(seen.waiting_for().is_empty()); // no growth is under way
        /// ```
        pub fn waiting_for(&self) -> Vec<String> {
            let meeting = self.made().and_then(|inner| inner.core.meeting.as_ref());
            meeting.map_or_else(Vec::new, |meeting| meeting.missing())
        }

        /// The same inserts, with a [`SeenError`] where they would panic.
        ///
        /// ```
        /// use quintet::SeenSet;
        /// use quintet::seen_set::SeenError;
        ///
        /// let seen = SeenSet::builder().budget(10_000).build();
        /// let refused = (0..).find_map(|n: u64| seen.fallible().insert(n).err());
        /// assert!(matches!(refused, Some(SeenError::Budget { .. })));
        /// ```
        #[inline(always)]
        #[doc(alias("try_insert", "insert_sync"))]
        pub fn fallible(&self) -> Fallible<'_, Self> {
            Fallible(self)
        }
    };
}
pub(super) use operations;
