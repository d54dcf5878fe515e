//! The table itself: many readers, and writers that take turns, all by `&self`.
//!
//! **U2.** A read of a table that was never written makes nothing: there is nothing to see.

use super::builder::TwinMapBuilder;
use super::desk::{Desk, Options};
use super::forms::counts;
use super::reader::{OwnedGuard, ReadGuard, Reader};
use super::refs::{Ref, Refs, refs};
use super::twin::{Twin, TwinStats};
use super::version::Version;
use super::writer::{MapReader, Writer};
use crate::hasher::DefaultHashBuilder;
use crate::region::Pages;
use crate::sync::const_where_possible;
use equivalent::Equivalent;
use std::hash::{BuildHasher, Hash};

/// A map in two copies: reads cost what a read of a plain `hashbrown` map costs; writes take turns
/// and publish.
///
/// # When to use
///
/// A table that is read all the time and changed now and then: configuration, routing, feature
/// flags, symbol tables. Not for tables that are written as often as they are read
/// ([`WordMap`](crate::WordMap), [`ItemSet`](crate::ItemSet)), and not where two copies of
/// everything are too much memory.
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
/// For a hot loop, a [`handle`](Self::handle) of one's own; for one writer that decides when to
/// publish, [`split`](Self::split).
///
/// # Consistency
///
/// A guard shows one version, whole and unchanged. A publish is one moment for all readers: whoever
/// reads after a write has returned sees that version or a later one, and once any reader has seen
/// a version, no later guard of any reader shows an older one. Writes are atomic, each in one
/// version; a [`batch`](Self::batch) is one write. Writes that wait for each other are published
/// together.
///
/// # Progress
///
/// Reads never wait. Writes take turns. Each needs the copy of the version before the current one:
/// where guards of that version are still held, it waits about as long as a copy of the content
/// takes, and then makes one. So a guard that is held for long costs one copy, and holds up nobody.
/// Guards of two old versions, held by threads ([`pin`](Self::pin), [`get`](Self::get), handles),
/// fill all places: then writes wait for one of them, and a thread that would wait for its own
/// guard is told so by a panic. [`owned_pin`](Self::owned_pin) is never waited for.
/// [`try_batch`](Self::try_batch), [`batch_timeout`](Self::batch_timeout) and
/// [`batch_async`](Self::batch_async) do not block; [`Stalled::Wait`](super::Stalled::Wait) makes
/// no third copy.
///
/// # Growth
///
/// A writer grows a copy in one go, out of the readers' sight: no reader ever pays for it.
///
/// # Memory
///
/// A new table allocates nothing until it is written, pinned or given a handle. Then there are two
/// copies, keys and values included, three while a guard of an old version is held, and one more
/// for each older version that an [`owned_pin`](Self::owned_pin) has: each owns its own (`Clone`);
/// keep large values in an `Arc`. A write costs two table operations, a clone of its key and value,
/// and a process-wide barrier: a tenth of a microsecond alone, several beside busy threads; a batch
/// costs one barrier. What was replaced or removed is freed by a later write.
///
/// # Panics
///
/// A panic in `Hash`, `Eq`, `Clone`, `Drop` or a closure never leaves the copies different; an
/// operation that panicked has not happened. Writes panic if their thread holds an old read guard
/// of this table itself, or is inside of a `batch` of it, or if there is no memory. If `Clone`,
/// `Hash` or `Eq` panics in one writer's change, and again when the copy is made anew, those that
/// share its publish panic as well, with nothing changed.
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
        ///
        /// ```
        /// static SETTINGS: quintet::TwinMap<&str, u32> = quintet::TwinMap::new();
        /// SETTINGS.insert("threads", 8);
        /// assert_eq!(SETTINGS.get("threads").as_deref(), Some(&8));
        /// ```
        pub fn new() -> Self {
            Self::with_hasher(DefaultHashBuilder::new())
        }
    }

    /// An empty map with room for so many entries in each copy.
    ///
    /// ```
    /// let map = quintet::TwinMap::<String, u32>::with_capacity(1000);
    /// assert!(map.capacity() >= 1000);
    /// ```
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
        /// An empty map with a hasher of your own. Clones of the hasher must hash alike; if they do
        /// not, keys may not be found, and nothing worse.
        ///
        /// ```
        /// use std::hash::RandomState;
        ///
        /// let map = quintet::TwinMap::with_hasher(RandomState::new());
        /// map.insert("threads", 8);
        /// assert_eq!(map.get("threads").as_deref(), Some(&8));
        /// ```
        pub fn with_hasher(hasher: S) -> Self {
            Self { desk: Desk::new(Version::with_pages(hasher, Pages::Huge), Options::DEFAULT) }
        }
    }

    /// An empty map with room for so many entries, and a hasher of your own.
    ///
    /// ```
    /// use std::hash::RandomState;
    ///
    /// let map = quintet::TwinMap::with_capacity_and_hasher(1000, RandomState::new());
    /// map.insert("threads", 8);
    /// assert!(map.capacity() >= 1000);
    /// ```
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
    ///
    /// ```
    /// use std::hash::BuildHasher;
    ///
    /// let map = quintet::TwinMap::from([("threads", 8)]);
    /// assert_eq!(map.hasher().hash_one("threads"), map.clone().hasher().hash_one("threads"));
    /// ```
    pub fn hasher(&self) -> &S {
        self.desk.blank.hasher()
    }

    /// One writer, and a first reader to clone: for who decides himself when to publish, waits with
    /// a timeout, or in a task.
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

    /// A table over the copies of a writer. Readers stay. What a forgotten guard has staged is
    /// published by the next write.
    ///
    /// ```
    /// let (mut writer, reader) = quintet::TwinMap::new().split();
    /// writer.guard().insert("threads", 8);
    /// let map = quintet::TwinMap::from_writer(writer);
    /// map.insert("depth", 3);
    /// assert_eq!(reader.pin().len(), 2);
    /// ```
    pub fn from_writer(writer: Writer<K, V, S>) -> Self {
        let twin = writer.into_twin();
        let blank = twin.reader().pin().blank();
        let options = Options { stalled: twin.stalled(), fences: twin.core().gate.has_fences() };
        Self { desk: Desk::over(blank, options, twin) }
    }

    /// Looks at the current version by the calling thread's seat: one version and plain references,
    /// for as long as the guard lives.
    ///
    /// The guard holds back the copy that it shows: if it is held for long, a write makes another
    /// one. It stays on its thread; [`owned_pin`](Self::owned_pin) gives one that does not.
    ///
    /// ```
    /// let map = quintet::TwinMap::from([("threads", 8), ("depth", 3)]);
    /// let version = map.pin();
    /// assert_eq!(version.get("threads"), Some(&8));
    /// assert_eq!(version.values().sum::<i32>(), 11); // of the same version
    /// ```
    ///
    /// # Panics
    /// If a quarter of the address space of guards is alive or forgotten on this thread.
    #[inline]
    #[doc(alias("load", "enter", "read"))]
    pub fn pin(&self) -> ReadGuard<'_, Version<K, V, S>> {
        self.desk.pin()
    }

    /// Looks at the current version through a guard that has no lifetime, may leave its thread, and
    /// be held across `.await`. It owns its version: no writer waits for it.
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

    /// A reader with a seat of its own, for a hot loop, or a thread or task that stays. It owns a
    /// share of the copies: no lifetime.
    ///
    /// ```
    /// let map = quintet::TwinMap::from([("threads", 8)]);
    /// let reader = map.handle();
    /// map.insert("threads", 9);
    /// assert_eq!(reader.get("threads").as_deref(), Some(&9));
    /// ```
    pub fn handle(&self) -> MapReader<K, V, S> {
        self.desk.reader()
    }

    /// The same as [`handle`](Self::handle): it has no lifetime anyway.
    ///
    /// ```
    /// let map = std::sync::Arc::new(quintet::TwinMap::from([("threads", 8)]));
    /// let reader = map.owned_handle();
    /// let thread = std::thread::spawn(move || reader.get("threads").as_deref().copied());
    /// assert_eq!(thread.join().unwrap(), Some(8));
    /// ```
    pub fn owned_handle(self: &std::sync::Arc<Self>) -> MapReader<K, V, S> {
        self.handle()
    }

    /// What has been done so far.
    ///
    /// ```
    /// let map = quintet::TwinMap::new();
    /// map.insert("threads", 8);
    /// map.insert("depth", 3);
    /// assert_eq!(map.stats().published, 2);
    /// ```
    pub fn stats(&self) -> TwinStats {
        self.desk.stats()
    }

    /// Bytes that both copies, the log of changes, and what waits to be freed held at the last
    /// write.
    ///
    /// ```
    /// let squares = quintet::TwinMap::<u64, u64>::new();
    /// squares.insert_many((0..1000).map(|n| (n, n * n)));
    /// assert!(squares.memory_bytes() >= 1000 * 16);
    /// ```
    #[doc(alias = "allocated_bytes")]
    pub fn memory_bytes(&self) -> usize {
        self.desk.memory_bytes()
    }

    /// The version that readers see. It counts the publishes.
    ///
    /// ```
    /// let map = quintet::TwinMap::new();
    /// let before = map.version();
    /// map.insert("threads", 8);
    /// assert_eq!(map.version(), before + 1);
    /// ```
    pub fn version(&self) -> u64 {
        self.look().map_or(0, |version| version.version())
    }

    /// A guard, if there is anything to see (U2).
    #[inline(always)]
    pub(super) fn look(&self) -> Option<ReadGuard<'_, Version<K, V, S>>> {
        self.desk.look()
    }

    pub(super) fn hash_of<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.hasher().hash_one(key)
    }
}

/// What a table and its handles read, each by a guard for as long as it needs. `look` gives the
/// guard, or None where there is nothing to see.
macro_rules! reads {
    () => {
        /// The value of a key. The [`Ref`] is a guard: it holds back the copy that it shows.
        ///
        /// ```
        /// let map = quintet::TwinMap::from([("threads", 8)]);
        /// assert_eq!(map.get("threads").as_deref(), Some(&8));
        /// assert!(map.get("depth").is_none());
        /// ```
        #[inline]
        pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<Ref<'_, V>> {
            ReadGuard::filter_map(self.look()?, |version| version.get(key)).ok()
        }

        /// True if the key is there.
        ///
        /// ```
        /// let map = quintet::TwinMap::from([("threads", 8)]);
        /// assert!(map.contains_key("threads") && !map.contains_key("depth"));
        /// ```
        #[inline]
        pub fn contains_key<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> bool {
            self.look().is_some_and(|version| version.contains_key(key))
        }

        counts!("entries");

        /// All entries of the current version, in no particular order. The iterator and each
        /// [`Ref`] are guards.
        ///
        /// ```
        /// let map = quintet::TwinMap::from([("threads", 8), ("depth", 3)]);
        /// for entry in map.iter() {
        ///     let (key, value) = &*entry;
        ///     assert_eq!(map.get(key).as_deref(), Some(value));
        /// }
        /// assert_eq!(map.iter().count(), 2);
        /// ```
        pub fn iter(&self) -> Refs<'_, (K, V), (K, V)> {
            refs(self.look(), |version| version, |entry| entry)
        }

        /// All keys of the current version.
        ///
        /// ```
        /// let map = quintet::TwinMap::from([("threads", 8), ("depth", 3)]);
        /// let mut names: Vec<_> = map.keys().map(|name| *name).collect();
        /// names.sort();
        /// assert_eq!(names, ["depth", "threads"]);
        /// ```
        pub fn keys(&self) -> Refs<'_, (K, V), K> {
            refs(self.look(), |version| version, |(key, _)| key)
        }

        /// All values of the current version.
        ///
        /// ```
        /// let map = quintet::TwinMap::from([("threads", 8), ("depth", 3)]);
        /// assert_eq!(map.values().map(|value| *value).sum::<i32>(), 11);
        /// ```
        pub fn values(&self) -> Refs<'_, (K, V), V> {
            refs(self.look(), |version| version, |(_, value)| value)
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
