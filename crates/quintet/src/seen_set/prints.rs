//! Fingerprints instead of records.

use super::builder::{SeenPrintsBuilder, Settings};
use super::core::{Core, Entry, Outcome, Worker};
use super::many::{GROUP, Kind};
use super::stats::SeenStats;
use super::word::Split;
use super::{SeenError, lend::Lent};
use crate::hash::WordMixer;
use crate::hasher::DefaultHashBuilder;
use crate::home::Home;
use crate::reclaim::{Access, Brief, Section};
use crate::sync::{LazyArc, const_where_possible};
use crate::vocabulary::Fallible;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// A set that keeps 64-bit fingerprints instead of records: 8 bytes per slot and nothing else, at
/// the price of a small [probability](Self::omission_probability) that some record is taken for
/// another.
///
/// All else is as of a [`SeenSet`](super::SeenSet).
///
/// ```
/// use quintet::SeenPrints;
///
/// let seen = SeenPrints::new();
/// assert!(seen.insert("a state"));
/// assert!(!seen.handle().insert("a state"));
/// assert!(seen.omission_probability() < 1e-18);
/// ```
pub struct SeenPrints<S = DefaultHashBuilder> {
    core: LazyArc<Core>,
    settings: Settings,
    hasher: S,
    bits: u32,
}

/// A thread's access to a [`SeenPrints`], by [`SeenPrints::handle`]. `Send` but not `Sync`.
pub struct PrintsHandle<'s, S = DefaultHashBuilder> {
    worker: Worker,
    core: Place,
    /// Behind the worker, whose seat goes first.
    home: Home<'s, SeenPrints<S>>,
}

/// What the set of a home is: there for as long as the home (`carry` D1). No reference, as there
/// (`carry` D3).
struct Place(NonNull<Core>);

// SAFETY: it lends what is `Sync`, and drops nothing.
unsafe impl Send for Place where Core: Sync {}

/// A fingerprint needs no record: it is the word.
#[derive(Clone, Copy)]
struct Print;

impl Entry for Print {
    const USER: bool = false;

    #[inline(always)]
    fn same(self, word: u64, tag: u64, _: Split) -> bool {
        word == tag
    }
    #[inline(always)]
    fn write(self) -> Option<u64> {
        Some(0)
    }
    fn make_room(self) -> Result<(), SeenError> {
        Ok(())
    }
    fn take_back(self) {}
}

impl SeenPrints {
    const_where_possible! {
        /// An empty set. Allocates nothing until it is first used.
        pub fn new() -> Self {
            Self::with_hasher(DefaultHashBuilder::new())
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
    pub fn builder() -> SeenPrintsBuilder {
        SeenPrintsBuilder::new()
    }
}

impl<S> SeenPrints<S> {
    const_where_possible! {
        /// An empty set that hashes by this.
        pub fn with_hasher(hasher: S) -> Self {
            let settings = Settings { id_bits: 0, ..Settings::DEFAULT };
            Self { core: LazyArc::new(), settings, hasher, bits: 64 }
        }
    }

    pub(super) fn set_up(
        settings: Settings,
        hasher: S,
        bits: u32,
        now: bool,
    ) -> Result<Self, SeenError> {
        let set = Self { core: LazyArc::new(), settings, hasher, bits };
        if now {
            set.core().prepare()?;
        }
        Ok(set)
    }

    fn core(&self) -> &Core {
        self.core.get_or_make(|| Core::new(self.settings))
    }

    fn made(&self) -> Option<&Core> {
        self.core.get()
    }

    fn at(&self) -> (&Core, Lent<'_>) {
        (self.core(), self.core().lend())
    }

    fn inside(&self) -> Option<(&Core, Section<'_>)> {
        self.made().map(|core| (core, core.pin()))
    }

    fn set(&self) -> &Self {
        self
    }

    /// A seat of one's own, for a thread that stays: the fastest way in.
    pub fn handle(&self) -> PrintsHandle<'_, S> {
        PrintsHandle::new(Home::borrowed(self))
    }

    /// A [`handle`](Self::handle) that keeps the set alive: for tasks, and threads that are not
    /// scoped.
    pub fn owned_handle(self: &Arc<Self>) -> PrintsHandle<'static, S>
    where
        S: 'static,
    {
        PrintsHandle::new(Home::shared(Arc::clone(self)))
    }
}

impl<S: BuildHasher> SeenPrints<S> {
    /// The fingerprint of a record: its hash, cut to its top bits. Hashers spread alike records
    /// evenly, which is more than chance does; mixed once more, each bit is like any other, and
    /// what is said about omissions holds.
    #[inline(always)]
    fn print<Q: Hash + ?Sized>(&self, record: &Q) -> u64 {
        const MIXER: WordMixer = WordMixer::new(0);
        let hash = MIXER.mix(self.hasher.hash_one(record));
        self.settings.split().print(hash & u64::MAX << (64 - self.bits))
    }

    /// The word of that fingerprint.
    #[inline(always)]
    fn sought<Q: Hash + ?Sized>(&self, record: &Q) -> u64 {
        self.settings.split().turn(self.print(record))
    }
}

/// Takes a fingerprint in. True if it was not there.
#[inline(always)]
fn insert(core: &Core, worker: &Worker, word: u64) -> Result<bool, SeenError> {
    Ok(core.insert(worker, None::<&Brief<'_>>, word, Print)?.new)
}

/// Takes fingerprints in that are not turned yet. Returns how many were not there.
fn insert_many(
    core: &Core,
    worker: &Worker,
    prints: impl Iterator<Item = u64>,
) -> Result<usize, SeenError> {
    let mut many = Many { split: core.split, new: 0 };
    core.insert_many(worker, prints, &mut many)?;
    Ok(many.new)
}

/// Fingerprints on their way into the set, many at once.
struct Many {
    split: Split,
    new: usize,
}

impl Kind<u64> for Many {
    #[inline(always)]
    fn hash(&self, print: &u64) -> u64 {
        *print
    }
    #[inline(always)]
    fn locate(&self, _: u64) -> *const u8 {
        ptr::null()
    }
    #[inline(always)]
    unsafe fn is_at(&self, word: u64, _: *const u8, print: &u64) -> bool {
        word == self.split.turn(*print)
    }
    #[inline(always)]
    fn entry<'x>(&'x self, _: &'x u64) -> Result<impl Entry + 'x, SeenError> {
        Ok(Print)
    }
    #[inline(always)]
    fn tell(&mut self, outcome: Outcome) {
        self.new += usize::from(outcome.new);
    }
}

/// The operations, for an `impl` block of the set or its handle.
macro_rules! operations {
    () => {
        /// Fingerprints. Exact when nobody inserts; otherwise an estimate.
        pub fn len(&self) -> usize {
            self.made().map_or(0, |core| core.len() as usize)
        }

        /// True if there are none, with the exactness of [`len`](Self::len).
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }

        /// How many records are expected to have been taken for another, so far: for n fingerprints
        /// of b bits, n² / 2^(b+1).
        pub fn expected_omissions(&self) -> f64 {
            let prints = 2f64.powi(self.set().bits as i32);
            // n of N prints are in use after -N ln(1 - n/N) distinct records.
            let used = self.len() as f64 / prints;
            if used < 1e-3 {
                return self.len() as f64 * used / 2.0;
            }
            -prints * (1.0 - used.min(1.0 - 1e-12)).ln() - self.len() as f64
        }

        /// The probability that at least one record was taken for another, so far.
        pub fn omission_probability(&self) -> f64 {
            -(-self.expected_omissions()).exp_m1()
        }

        /// A look inside.
        pub fn stats(&self) -> SeenStats {
            self.made().map_or_else(SeenStats::default, Core::stats)
        }

        /// Bytes held by tables, in use and left but not yet given back.
        pub fn memory_bytes(&self) -> usize {
            self.made().map_or(0, |core| core.account.tables())
        }

        /// Fingerprints that the tables there are can take before one of them grows.
        pub fn capacity(&self) -> usize {
            self.made().map_or(0, Core::capacity)
        }

        /// Makes room for so many more fingerprints. Moves what is there, in one go.
        ///
        /// # Panics
        /// If the memory cannot be had; [`try_reserve`](Self::try_reserve) returns an error
        /// instead.
        pub fn reserve(&self, records: usize) {
            self.try_reserve(records).unwrap_or_else(|error| refused(error));
        }

        /// [`reserve`](Self::reserve) that returns an error if the memory cannot be had; some of it
        /// may be there then.
        pub fn try_reserve(&self, records: usize) -> Result<(), SeenError> {
            let (core, worker) = self.at();
            core.reserve(&worker, records)
        }

        /// The same inserts, with a [`SeenError`] where they would panic.
        #[inline(always)]
        #[doc(alias = "try_insert")]
        pub fn fallible(&self) -> Fallible<'_, Self> {
            Fallible(self)
        }
    };
    (hashing) => {
        /// Takes the record's fingerprint in. True if it was not there. Linearizable.
        ///
        /// # Panics
        /// If memory is needed and cannot be had; on [`fallible`](Self::fallible) it is an error
        /// instead.
        #[inline]
        pub fn insert<Q: Hash + ?Sized>(&self, record: &Q) -> bool {
            self.fallible().insert(record).unwrap_or_else(|error| refused(error))
        }

        /// True if a record with this fingerprint was inserted. Linearizable.
        #[inline]
        pub fn contains<Q: Hash + ?Sized>(&self, record: &Q) -> bool {
            let word = self.set().sought(record);
            self.inside().is_some_and(|(core, section)| {
                core.find(&section, word, word, |found| found == word).is_some()
            })
        }
    };
    (many) => {
        /// [`insert`](Self::insert) of many records, whose waits for memory overlap. Returns how
        /// many fingerprints were not there.
        ///
        /// ```
        /// let seen = quintet::SeenPrints::new();
        /// assert_eq!(seen.insert_many(["a", "b", "a"]), 2);
        /// ```
        ///
        /// # Panics
        /// As `insert`; what came before the one that was refused is in the set.
        #[doc(alias = "extend")]
        pub fn insert_many<Q: Hash>(&self, records: impl IntoIterator<Item = Q>) -> usize {
            self.fallible().insert_many(records).unwrap_or_else(|error| refused(error))
        }

        /// [`contains`](Self::contains) of many records, one after the other, whose waits for
        /// memory overlap.
        ///
        /// ```
        /// let seen = quintet::SeenPrints::new();
        /// seen.insert_many(["a", "b"]);
        /// let mut found = [false; 3];
        /// seen.contains_many(["b", "c", "a"], &mut found);
        /// assert_eq!(found, [true, false, true]);
        /// ```
        ///
        /// # Panics
        /// If there are not as many records as places for the answers. If `Hash` panics, earlier
        /// places may be filled.
        pub fn contains_many<'q, Q: Hash + ?Sized + 'q>(
            &self,
            records: impl IntoIterator<Item = &'q Q>,
            found: &mut [bool],
        ) {
            let mut records = records.into_iter();
            for found in found.chunks_mut(GROUP) {
                let mut words = [0; GROUP];
                for word in &mut words[..found.len()] {
                    let record = records.next().expect("contains_many needs one record per place");
                    *word = self.set().sought(record);
                }
                let Some((core, section)) = self.inside() else {
                    found.fill(false);
                    continue;
                };
                core.ask_ahead(&section, &words[..found.len()], |_| ptr::null());
                for (found, &word) in found.iter_mut().zip(&words) {
                    *found = core.find(&section, word, word, |other| other == word).is_some();
                }
            }
            assert!(records.next().is_none(), "contains_many needs one place per record");
        }
    };
    (fallible) => {
        /// As the method of the table, but a refused record is an error, and the set is then as
        /// before.
        #[inline]
        pub fn insert<Q: Hash + ?Sized>(&self, record: &Q) -> Result<bool, SeenError> {
            let sought = self.0.set().sought(record);
            let (core, worker) = self.0.at();
            insert(core, worker.deref(), sought)
        }

        /// As the method of the table, but a refused record is an error: what came before it is in
        /// the set, no other is.
        pub fn insert_many<Q: Hash>(
            &self,
            records: impl IntoIterator<Item = Q>,
        ) -> Result<usize, SeenError> {
            let prints = records.into_iter().map(|record| self.0.set().print(&record));
            let (core, worker) = self.0.at();
            insert_many(core, worker.deref(), prints)
        }
    };
}

impl<S> SeenPrints<S> {
    operations!();
}

impl<S: BuildHasher> SeenPrints<S> {
    operations!(hashing);
    operations!(many);
}

impl<S: BuildHasher> Fallible<'_, SeenPrints<S>> {
    operations!(fallible);
}

impl<S> PrintsHandle<'_, S> {
    operations!();
}

impl<S: BuildHasher> PrintsHandle<'_, S> {
    operations!(hashing);
    operations!(many);
}

impl<S: BuildHasher> Fallible<'_, PrintsHandle<'_, S>> {
    operations!(fallible);
}

/// The panic of an insert that was refused.
#[cold]
fn refused(error: SeenError) -> ! {
    panic!("SeenPrints: {error}; the same on `fallible()` returns this as a value")
}

impl<'s, S> PrintsHandle<'s, S> {
    fn new(home: Home<'s, SeenPrints<S>>) -> Self {
        let core = home.core();
        Self { worker: core.join(), core: Place(NonNull::from(core)), home }
    }

    /// The set this handle belongs to.
    pub fn set(&self) -> &SeenPrints<S> {
        &self.home
    }
}

impl<S> PrintsHandle<'_, S> {
    #[inline(always)]
    fn core(&self) -> &Core {
        // SAFETY: the home keeps the set, which keeps what it has made; borrowed from the handle
        // (`carry` D1, D2).
        unsafe { self.core.0.as_ref() }
    }

    fn made(&self) -> Option<&Core> {
        Some(self.core())
    }

    #[inline(always)]
    fn at(&self) -> (&Core, &Worker) {
        (self.core(), &self.worker)
    }

    /// Comes to a meeting that is called, and goes inside.
    #[inline(always)]
    fn inside(&self) -> Option<(&Core, Section<'_>)> {
        let section = self.worker.access.section();
        if self.core().meeting.is_some() {
            self.core().attend_if_called(&self.worker, &section);
        }
        Some((self.core(), section))
    }
}

impl<S> fmt::Debug for PrintsHandle<'_, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PrintsHandle").field("set", self.set()).finish_non_exhaustive()
    }
}

impl<S> Drop for PrintsHandle<'_, S> {
    fn drop(&mut self) {
        self.core().leave(&self.worker);
    }
}
