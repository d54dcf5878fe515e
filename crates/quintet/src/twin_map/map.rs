//! The table itself: many readers, and writers that take turns, all by `&self`.
//!
//! **U1.** Closures of `update`, `compute` and their kin run with no lock held and no guard: they are shown a clone. What they have said is carried out with the desk
//! locked, if no key they were shown has changed since (W1, W2); else they run again.
//! **U2.** A read of a table that was never written makes nothing: there is nothing to see.

use super::builder::TwinMapBuilder;
use super::desk::{Desk, Options};
use super::reader::{OwnedGuard, ReadGuard, Reader};
use super::refs::{Ref, Refs};
use super::retain::retain;
use super::twin::{Twin, TwinStats};
use super::version::Version;
use super::wait::{GuardError, Patience};
use super::writer::{MapReader, WriteGuard, Writer};
use crate::hasher::DefaultHashBuilder;
use crate::region::{AllocError, Pages};
use crate::sync::const_where_possible;
use crate::vocabulary::{Compute, Computed, Rejected};
use equivalent::Equivalent;
use std::hash::{BuildHasher, Hash};
use std::time::{Duration, Instant};

/// A map in two copies: reads cost what a read of a plain `hashbrown` map costs; writes take turns and publish.
///
/// # When to use
///
/// A table that is read all the time and changed now and then: configuration, routing, feature flags, symbol tables. Not for tables that are written as often as they
/// are read ([`WordMap`](crate::WordMap), [`ItemSet`](crate::ItemSet)), and not where two copies of everything are too much memory.
///
/// # Example
///
/// ```
/// use quintet::TwinMap;
///
/// static SETTINGS: TwinMap<&str, u32> = TwinMap::new();
///
/// SETTINGS.insert("threads", 8);
/// SETTINGS.batch(|write| {
///     write.insert("depth", 3);
///     write.remove("threads");
/// }); // both at one moment
/// assert_eq!(SETTINGS.get("depth").as_deref(), Some(&3));
/// assert_eq!(SETTINGS.update("depth", |old| old + 1), Some(4));
///
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         let version = SETTINGS.pin(); // one version, plain references
///         for (key, value) in &version {
///             assert_eq!((*key, *value), ("depth", 4));
///         }
///     });
/// });
/// ```
///
/// For a hot loop, a [`handle`](Self::handle) of one's own; for one writer that decides when to publish, [`split`](Self::split).
///
/// # Consistency
///
/// A guard shows one version, whole and unchanged. A publish is one moment for all readers: whoever reads after a write has returned sees that version or a later
/// one, and once any reader has seen a version, no later guard of any reader shows an older one. Writes are atomic, each in one version; a [`batch`](Self::batch) is
/// one write. Writes that wait for each other are published together.
///
/// # Progress
///
/// Reads never wait. Writes take turns. Each needs the copy of the version before the current one: where guards of that version are still held, it waits about as long as a copy
/// of the content takes, and then makes one. So a guard that is held for long costs one copy, and holds up nobody. Guards of two old versions, held by threads
/// ([`pin`](Self::pin), [`get`](Self::get), handles), fill all places: then writes wait for one of them, and a thread that would wait for its own guard is told so by
/// a panic. [`owned_pin`](Self::owned_pin) is never waited for. [`try_batch`](Self::try_batch), [`batch_timeout`](Self::batch_timeout) and
/// [`batch_async`](Self::batch_async) do not block; [`Stalled::Wait`](super::Stalled::Wait) makes no third copy.
///
/// # Growth
///
/// A writer grows a copy in one go, out of the readers' sight: no reader ever pays for it.
///
/// # Memory
///
/// A new table allocates nothing until it is written, pinned or given a handle. Then there are two copies, keys and values included, three while a guard of an old version
/// is held, and one more for each older version that an [`owned_pin`](Self::owned_pin) has: each owns its own (`Clone`); keep large values in an `Arc`. A write costs two table operations, a clone of its key and value, and a process-wide barrier: a tenth of a microsecond alone,
/// several beside busy threads; a batch costs one barrier. What was replaced or removed is freed by a later write.
///
/// # Panics
///
/// A panic in `Hash`, `Eq`, `Clone`, `Drop` or a closure never leaves the copies different; an operation that panicked has not happened. Writes panic if their thread
/// holds an old read guard of this table itself, or is inside of a `batch` of it, or if there is no memory. If `Clone`, `Hash` or `Eq` panics in one writer's change, and again when the copy
/// is made anew, those that share its publish panic as well, with nothing changed.
#[doc(alias("DashMap", "ArcSwap", "RwLock", "left-right", "evmap", "flashmap"))]
pub struct TwinMap<K, V, S = DefaultHashBuilder>
where
    K: Hash + Eq + Clone,
    V: Clone,
    S: BuildHasher + Clone,
{
    pub(super) desk: Desk<Version<K, V, S>, K, V>,
}

impl<K: Hash + Eq + Clone, V: Clone> TwinMap<K, V> {
    const_where_possible! {
        /// An empty map. Allocates nothing.
        pub fn new() -> Self {
            Self::with_hasher(DefaultHashBuilder::new())
        }
    }

    /// An empty map with room for so many entries in each copy.
    ///
    /// # Panics
    /// If there is no memory for it.
    pub fn with_capacity(entries: usize) -> Self {
        TwinMapBuilder::new().capacity(entries).build()
    }

    /// Sets up a map.
    ///
    /// ```
    /// use quintet::TwinMap;
    /// use quintet::twin_map::Stalled;
    /// let map = TwinMap::builder().capacity(9).stalled(Stalled::Copy).build();
    /// map.insert("key", 1);
    /// ```
    pub fn builder() -> TwinMapBuilder<K, V> {
        TwinMapBuilder::new()
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> TwinMap<K, V, S> {
    const_where_possible! {
        /// An empty map with a hasher of your own. Clones of the hasher must hash alike; if they do not, keys may not be found, and nothing worse.
        pub fn with_hasher(hasher: S) -> Self {
            Self { desk: Desk::new(Version::with_pages(hasher, Pages::Huge), Options::DEFAULT) }
        }
    }

    /// An empty map with room for so many entries, and a hasher of your own.
    ///
    /// # Panics
    /// If there is no memory for it.
    pub fn with_capacity_and_hasher(entries: usize, hasher: S) -> Self {
        TwinMapBuilder::<K, V>::new().hasher(hasher).capacity(entries).build()
    }

    /// Nothing is made yet.
    pub(super) fn blank(blank: Version<K, V, S>, options: Options) -> Self {
        Self { desk: Desk::new(blank, options) }
    }

    /// Keeps a version in two copies.
    pub(super) fn over(first: Version<K, V, S>, options: Options) -> Self {
        let second = first.clone();
        Self::over_both(first, second, options)
    }

    /// The same with two versions that are equal.
    pub(super) fn over_both(
        first: Version<K, V, S>,
        second: Version<K, V, S>,
        options: Options,
    ) -> Self {
        let blank = first.blank();
        let (twin, _) = Twin::with_both(first, second, options.stalled, options.barrier());
        Self { desk: Desk::over(blank, options, twin) }
    }

    /// The hasher.
    pub fn hasher(&self) -> &S {
        self.desk.blank.hasher()
    }

    /// One writer, and a first reader to clone: for who decides himself when to publish, waits with a timeout, or in a task.
    ///
    /// ```
    /// let (mut writer, reader) = quintet::TwinMap::new().split();
    /// let mut write = writer.guard();
    /// write.insert("threads", 8);
    /// assert_eq!(write.get("threads"), Some(&8)); // the writer reads its own writes
    /// assert_eq!(reader.pin().len(), 0); // readers do not, until
    /// write.publish();
    /// assert_eq!(reader.pin().len(), 1);
    /// let map = writer.into_map(); // the other way back
    /// assert!(map.contains_key("threads"));
    /// ```
    pub fn split(self) -> (Writer<K, V, S>, MapReader<K, V, S>) {
        let twin = self.desk.into_twin();
        let reader = twin.reader();
        (Writer::from_twin(twin), reader)
    }

    /// A table over the copies of a writer. Readers stay. What a forgotten guard has staged is published by the next write.
    pub fn from_writer(writer: Writer<K, V, S>) -> Self {
        let twin = writer.into_twin();
        let blank = twin.reader().pin().blank();
        let options = Options { stalled: twin.stalled(), fences: twin.core().gate.has_fences() };
        Self { desk: Desk::over(blank, options, twin) }
    }

    /// Looks at the current version by the calling thread's seat: one version and plain references, for as long as the guard lives.
    ///
    /// The guard holds back the copy that it shows: if it is held for long, a write makes another one. It stays on its thread; [`owned_pin`](Self::owned_pin) gives one that
    /// does not.
    ///
    /// # Panics
    /// If a quarter of the address space of guards is alive or forgotten on this thread.
    #[inline]
    #[doc(alias("load", "enter", "read"))]
    pub fn pin(&self) -> ReadGuard<'_, Version<K, V, S>> {
        self.desk.pin()
    }

    /// Looks at the current version through a guard that has no lifetime, may leave its thread, and be held across `.await`. It owns its version: no writer waits for it.
    ///
    /// ```
    /// let map = quintet::TwinMap::from([("a", 1)]);
    /// let version = map.owned_pin();
    /// map.clear();
    /// std::thread::spawn(move || assert_eq!(version.len(), 1)).join().unwrap();
    /// ```
    #[doc(alias = "load_full")]
    pub fn owned_pin(&self) -> OwnedGuard<Version<K, V, S>> {
        self.desk.owned_pin()
    }

    /// A reader with a seat of its own, for a hot loop, or a thread or task that stays. It owns a share of the copies: no lifetime.
    pub fn handle(&self) -> MapReader<K, V, S> {
        self.desk.reader()
    }

    /// The same as [`handle`](Self::handle): it has no lifetime anyway.
    pub fn owned_handle(self: &std::sync::Arc<Self>) -> MapReader<K, V, S> {
        self.handle()
    }

    /// What has been done so far.
    pub fn stats(&self) -> TwinStats {
        self.desk.stats()
    }

    /// Bytes that both copies, the log of changes, and what waits to be freed held at the last write.
    #[doc(alias = "allocated_bytes")]
    pub fn memory_bytes(&self) -> usize {
        self.desk.memory_bytes()
    }

    /// The version that readers see. It counts the publishes.
    pub fn version(&self) -> u64 {
        self.look().map_or(0, |version| version.version())
    }

    /// A guard, if there is anything to see (U2).
    #[inline(always)]
    fn look(&self) -> Option<ReadGuard<'_, Version<K, V, S>>> {
        self.desk.look()
    }

    fn hash_of<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.hasher().hash_one(key)
    }
}

/// What a table and its handles read, each by a guard for as long as it needs. `look` gives the guard, or None where there is nothing to see.
macro_rules! reads {
    () => {
        /// The value of a key. The [`Ref`] is a guard: it holds back the copy that it shows.
        #[inline]
        pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<Ref<'_, V>> {
            ReadGuard::filter_map(self.look()?, |version| version.get(key)).ok()
        }

        /// True if the key is there.
        #[inline]
        pub fn contains_key<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> bool {
            self.look().is_some_and(|version| version.contains_key(key))
        }

        /// The number of entries.
        pub fn len(&self) -> usize {
            self.look().map_or(0, |version| version.len())
        }

        /// True if there are no entries.
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }

        /// How many entries fit before a copy grows.
        pub fn capacity(&self) -> usize {
            self.look().map_or(0, |version| version.capacity())
        }

        /// All entries of the current version, in no particular order. The iterator and each [`Ref`] are guards.
        pub fn iter(&self) -> Refs<'_, (K, V), (K, V)> {
            refs(self.look(), |entry| entry)
        }

        /// All keys of the current version.
        pub fn keys(&self) -> Refs<'_, (K, V), K> {
            refs(self.look(), |(key, _)| key)
        }

        /// All values of the current version.
        pub fn values(&self) -> Refs<'_, (K, V), V> {
            refs(self.look(), |(_, value)| value)
        }
    };
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> TwinMap<K, V, S> {
    reads!();
}

impl<K, V, S: BuildHasher> Reader<Version<K, V, S>> {
    #[inline(always)]
    #[allow(clippy::unnecessary_wraps)] // a handle always sees something
    fn look(&self) -> Option<ReadGuard<'_, Version<K, V, S>>> {
        Some(self.pin())
    }

    reads!();
}

fn refs<'a, K, V, S, U>(
    guard: Option<ReadGuard<'a, Version<K, V, S>>>,
    part: fn(&(K, V)) -> &U,
) -> Refs<'a, (K, V), U> {
    let entries = guard.map(|guard| {
        // SAFETY: the guard stays on its place, as the hold beside the entries.
        let version = unsafe { guard.unbound() };
        (version.entries(), guard.into_hold())
    });
    // SAFETY: entries and guard are of one version.
    unsafe { Refs::new(entries, part) }
}

/// Writes. Each waits for its turn and for readers of the version before the current one, and publishes before it returns; see the cost under
/// [Memory](TwinMap#memory), and [`batch`](Self::batch) for many.
impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> TwinMap<K, V, S> {
    fn write<R>(&self, work: impl FnOnce(&mut WriteGuard<'_, K, V, S>) -> R) -> R {
        self.desk.made().write(|write| work(WriteGuard::wrap(write)))
    }

    /// Many changes in one version, published when the closure returns. Other writers wait meanwhile. If it panics, none of them has happened.
    ///
    /// # Panics
    /// If this thread holds an old read guard of this table, or is inside of a batch of it; [`try_batch`](Self::try_batch) returns the first as a value.
    #[doc(alias("commit", "rcu", "publish"))]
    pub fn batch<R>(&self, work: impl FnOnce(&mut WriteGuard<'_, K, V, S>) -> R) -> R {
        self.write(work)
    }

    /// [`batch`](Self::batch) without waiting, for other writers or for readers.
    pub fn try_batch<R>(
        &self,
        work: impl FnOnce(&mut WriteGuard<'_, K, V, S>) -> R,
    ) -> Result<R, GuardError> {
        let shared = self.desk.made();
        shared.write_within(Patience::None, |write| work(WriteGuard::wrap(write)))
    }

    /// [`batch`](Self::batch), waiting at most so long for its turn and for readers.
    pub fn batch_timeout<R>(
        &self,
        most: Duration,
        work: impl FnOnce(&mut WriteGuard<'_, K, V, S>) -> R,
    ) -> Result<R, GuardError> {
        let patience = Instant::now().checked_add(most).map_or(Patience::Forever, Patience::Until);
        self.desk.made().write_within(patience, |write| work(WriteGuard::wrap(write)))
    }

    /// [`batch`](Self::batch) for tasks: waits for its turn and for readers without blocking a thread. Needs no particular runtime. The closure runs in one go, when it can.
    ///
    /// ```
    /// # async fn example() -> Result<(), quintet::twin_map::GuardError> {
    /// let map = quintet::TwinMap::new();
    /// map.batch_async(|write| write.insert("a", 1)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn batch_async<R>(
        &self,
        work: impl FnOnce(&mut WriteGuard<'_, K, V, S>) -> R,
    ) -> Result<R, GuardError> {
        let (shared, mut work) = (self.desk.made(), Some(work));
        std::future::poll_fn(|task| {
            shared.poll_write(task.waker(), |write| {
                let work = work.take().expect("a finished future is not polled again");
                work(WriteGuard::wrap(write))
            })
        })
        .await
    }

    /// Stores a value; returns what was there.
    pub fn insert(&self, key: K, value: V) -> Option<V> {
        self.write(|write| write.insert(key, value))
    }

    /// Stores a value where nothing is; else says what is there, and gives the value back.
    #[doc(alias = "try_insert")]
    pub fn insert_new(&self, key: K, value: V) -> Result<(), Rejected<V, V>> {
        self.write(|write| write.insert_new(key, value))
    }

    /// What is there, or what is given, which is stored.
    pub fn get_or_insert(&self, key: K, value: V) -> V {
        if let Some(found) = self.get(&key) {
            return found.clone();
        }
        self.write(|write| write.get_or_insert(key, value))
    }

    /// What is there, or what is made, which is stored. Several makers may run, and one wins; the maker runs with no lock held.
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
        if let Some(found) = self.get(&key) {
            return found.clone();
        }
        let value = make();
        self.write(|write| write.get_or_insert(key, value))
    }

    /// Puts a value made from the old one in its place; returns the new one, or None where nothing is. The closure is shown a clone, runs with no lock held, and may
    /// run again if the value has changed meanwhile.
    #[doc(alias("alter", "get_mut", "entry"))]
    pub fn update<Q>(&self, key: &Q, mut update: impl FnMut(&V) -> V) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.change(
            key,
            |found| found.map_or(Compute::Keep, |old| Compute::Insert(update(old))),
            None,
        )
        .after
    }

    /// [`update`](Self::update), or stores what is given; returns the new value.
    #[doc(alias = "upsert")]
    pub fn update_or_insert(&self, key: K, update: impl FnMut(&V) -> V, value: V) -> V {
        self.update_or_insert_with(key, update, || value.clone())
    }

    /// [`update`](Self::update), or stores what is made; returns the new value.
    pub fn update_or_insert_with(
        &self,
        key: K,
        mut update: impl FnMut(&V) -> V,
        mut make: impl FnMut() -> V,
    ) -> V {
        let mut answer = |found: Option<&V>| match found {
            Some(old) => Compute::Insert(update(old)),
            None => Compute::Insert(make()),
        };
        let computed = self.change(&key, &mut answer, Some(&key));
        computed.after.expect("something was inserted")
    }

    /// The closure sees what is there, and says what is to be done. It is shown a clone, runs with no lock held, and may run again if
    /// the value has changed meanwhile.
    pub fn compute(&self, key: K, compute: impl FnMut(Option<&V>) -> Compute<V>) -> Computed<V> {
        self.change(&key, compute, Some(&key))
    }

    /// [`compute`](Self::compute) (U1). A key that is absent is inserted if it is given.
    fn change<Q>(
        &self,
        key: &Q,
        mut compute: impl FnMut(Option<&V>) -> Compute<V>,
        own: Option<&K>,
    ) -> Computed<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let shared = match own {
            Some(_) => self.desk.made(),
            None => match self.desk.get() {
                Some(shared) => shared,
                None => return Computed { before: None, after: None },
            },
        };
        let hash = self.hash_of(key);
        loop {
            let watch = shared.watches.set(Some(hash));
            let before = self.look().and_then(|version| Some(version.find(hash, key)?.1.clone()));
            let answer = compute(before.as_ref());
            if let Compute::Keep = answer {
                return Computed { after: before.clone(), before };
            }
            let done = self.write(|write| {
                if watch.changed(write.log().iter()).has(hash) {
                    return None;
                }
                Some(carry_out(write, hash, key, own, answer))
            });
            if let Some(after) = done {
                return Computed { before, after };
            }
        }
    }

    /// Takes out a key; returns what was there.
    pub fn remove<Q>(&self, key: &Q) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.desk.get()?;
        self.write(|write| write.remove(key))
    }

    /// Takes out a key whose value the closure agrees to: `Ok` of what was taken out, `Err` of what stays. The closure runs as that of
    /// [`update`](Self::update).
    pub fn remove_if<Q>(&self, key: &Q, mut agrees: impl FnMut(&V) -> bool) -> Result<Option<V>, V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let answer = |found: Option<&V>| match found {
            Some(value) if agrees(value) => Compute::Remove,
            _ => Compute::Keep,
        };
        let Computed { before, after } = self.change(key, answer, None);
        after.map_or(Ok(before), Err)
    }

    /// Takes out what the closure refuses, in one version. The closure is shown a clone of each entry, runs with no lock held, and again for entries that have changed
    /// meanwhile: for a large table `batch(|write| write.retain(..))` clones nothing, while other writers wait.
    pub fn retain(&self, keep: impl FnMut(&K, &V) -> bool) {
        retain(&self.desk, |version| version, |version| version, keep);
    }

    /// Takes out everything; keeps the memory.
    pub fn clear(&self) {
        if self.desk.get().is_some() {
            self.write(|write| write.clear());
        }
    }

    /// Stores many, in one version; returns how many keys were new. The iterator runs before the lock is taken.
    #[doc(alias = "extend")]
    pub fn insert_many(&self, entries: impl IntoIterator<Item = (K, V)>) -> usize {
        let entries: Vec<_> = entries.into_iter().collect();
        self.write(|write| write.insert_many(entries))
    }

    /// Takes out many, in one version; returns how many were there. The iterator runs before the lock is taken.
    pub fn remove_many<'q, Q>(&self, keys: impl IntoIterator<Item = &'q Q>) -> usize
    where
        Q: Hash + Equivalent<K> + ?Sized + 'q,
    {
        let keys: Vec<_> = keys.into_iter().collect();
        self.write(|write| write.remove_many(keys))
    }

    /// Puts this content in the place of all that is there, in one version. The iterator runs before the lock is taken.
    #[doc(alias("store", "swap"))]
    pub fn replace_all(&self, content: impl IntoIterator<Item = (K, V)>) {
        let content: Vec<_> = content.into_iter().collect();
        self.write(|write| write.replace_all(content));
    }

    /// Makes room for so many more entries, in both copies.
    ///
    /// # Panics
    /// If there is no memory for it; [`try_reserve`](Self::try_reserve) returns that as a value.
    pub fn reserve(&self, more: usize) {
        self.write(|write| write.reserve(more));
    }

    /// Makes room for so many more entries.
    pub fn try_reserve(&self, more: usize) -> Result<(), AllocError> {
        self.write(|write| write.try_reserve(more))
    }

    /// Gives back memory that the entries do not need, in both copies.
    pub fn shrink_to_fit(&self) {
        if self.desk.get().is_some() {
            self.write(|write| write.shrink_to_fit());
        }
    }
}

/// Does what a closure has said; returns what is there since.
fn carry_out<K, V, S, Q>(
    write: &mut WriteGuard<'_, K, V, S>,
    hash: u64,
    key: &Q,
    own: Option<&K>,
    answer: Compute<V>,
) -> Option<V>
where
    K: Hash + Eq + Clone,
    V: Clone,
    S: BuildHasher + Clone,
    Q: Hash + Equivalent<K> + ?Sized,
{
    match answer {
        Compute::Keep => unreachable!("looked at before"),
        Compute::Remove => {
            let old = write.remove(key);
            write.keep(old);
            None
        }
        Compute::Insert(value) => {
            let stored = write.find(hash, key).map(|(key, _)| key);
            let key = stored.or(own)?.clone();
            let shown = value.clone();
            let old = write.put(hash, key, value);
            write.keep(old);
            Some(shown)
        }
    }
}
