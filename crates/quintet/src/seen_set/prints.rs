//! Fingerprints instead of records.

use super::core::{Core, Entry, Worker};
use super::stats::SeenStats;
use super::{SeenError, SeenSetBuilder};
use crate::hash::WordMixer;
use crate::hasher::DefaultHashBuilder;
use crate::reclaim::{Access, Brief};
use std::hash::{BuildHasher, Hash};

/// A set that keeps 64-bit fingerprints instead of records: 8 bytes per slot and nothing else, at the price of a small
/// [probability](Self::omission_probability) that some record is taken for another.
///
/// ```
/// use quintet::SeenPrints;
///
/// let seen = SeenPrints::new();
/// let handle = seen.handle();
/// assert!(handle.insert("a state"));
/// assert!(!handle.insert("a state"));
/// assert!(seen.omission_probability() < 1e-18);
/// ```
#[derive(Debug)]
pub struct SeenPrints<S = DefaultHashBuilder> {
    core: Core,
    hasher: S,
    bits: u32,
}

/// A thread's access to a [`SeenPrints`]. `Send` but not `Sync`.
#[derive(Debug)]
pub struct PrintsHandle<'s, S = DefaultHashBuilder> {
    set: &'s SeenPrints<S>,
    worker: Worker,
}

/// A fingerprint needs no record: it is the word.
struct Print(u64);

impl Entry for Print {
    const USER: bool = false;

    #[inline(always)]
    fn same(&self, word: u64) -> bool {
        word == self.0
    }
    #[inline(always)]
    fn write(&mut self) -> Option<u64> {
        Some(0)
    }
    fn make_room(&mut self) -> Result<(), SeenError> {
        Ok(())
    }
    fn take_back(&mut self) {}
}

impl SeenPrints {
    /// An empty set.
    pub fn new() -> Self {
        SeenSetBuilder::default().build_prints()
    }

    /// Sets up a set: [`SeenSetBuilder::build_prints`].
    pub fn builder() -> SeenSetBuilder {
        SeenSetBuilder::default()
    }
}

impl Default for SeenPrints {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> SeenPrints<S> {
    pub(super) fn from_builder(builder: SeenSetBuilder, hasher: S) -> Result<Self, SeenError> {
        let core = Core::new(builder.settings(0)?);
        core.prepare(builder.capacity_wanted())?;
        Ok(Self { core, hasher, bits: 64 })
    }

    /// Cuts fingerprints to so many bits: more omissions, for those who want to see some. At least 1, at most 64.
    ///
    /// # Panics
    /// If the set is not empty.
    pub fn with_bits(mut self, bits: u32) -> Self {
        assert!(
            self.is_empty(),
            "SeenPrints: the width of fingerprints is chosen before the first insert"
        );
        self.bits = bits.clamp(1, 64);
        self
    }

    /// A registered access for one thread.
    pub fn handle(&self) -> PrintsHandle<'_, S> {
        PrintsHandle { set: self, worker: self.core.join() }
    }

    /// Fingerprints. Exact when nobody inserts; otherwise an estimate.
    pub fn len(&self) -> usize {
        self.core.len() as usize
    }

    /// True if there are none, with the exactness of [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many records are expected to have been taken for another, so far: for n fingerprints of b bits, n² / 2^(b+1).
    pub fn expected_omissions(&self) -> f64 {
        let prints = 2f64.powi(self.bits as i32);
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
        self.core.stats()
    }

    /// Bytes held by tables.
    pub fn memory_bytes(&self) -> usize {
        self.core.account.tables()
    }

    /// The fingerprint of a hash, in its top bits, turned. Hashers spread alike records evenly, which is more than chance does; mixed
    /// once more, each bit is like any other, and what is said about omissions holds.
    #[inline(always)]
    fn cut(&self, hash: u64) -> u64 {
        const MIXER: WordMixer = WordMixer::new(0);
        self.core.split.turn(MIXER.mix(hash) & u64::MAX << (64 - self.bits))
    }
}

impl<S: BuildHasher> SeenPrints<S> {
    /// True if a record with this fingerprint was inserted. Linearizable.
    pub fn contains<Q: Hash + ?Sized>(&self, record: &Q) -> bool {
        let turned = self.cut(self.hasher.hash_one(record));
        let print = self.core.split.print(turned);
        self.core.find(&self.core.pin(), turned, print, |word| word == print).is_some()
    }
}

impl<S: BuildHasher> PrintsHandle<'_, S> {
    /// Takes the record's fingerprint in. True if it was not there. Linearizable.
    ///
    /// # Panics
    /// If memory is needed and cannot be had; [`try_insert`](Self::try_insert) returns an error instead.
    #[inline]
    pub fn insert<Q: Hash + ?Sized>(&self, record: &Q) -> bool {
        let inserted = self.try_insert(record);
        inserted.unwrap_or_else(|error| {
            panic!("SeenPrints: {error}; try_insert returns this as a value")
        })
    }

    /// [`insert`](Self::insert) that returns an error if memory is needed and cannot be had; the set is then as before.
    #[inline]
    pub fn try_insert<Q: Hash + ?Sized>(&self, record: &Q) -> Result<bool, SeenError> {
        let turned = self.set.cut(self.set.hasher.hash_one(record));
        let word = self.set.core.split.print(turned);
        let inserted =
            self.set.core.insert(&self.worker, None::<&Brief<'_>>, turned, word, &mut Print(word));
        inserted.map(|outcome| outcome.new)
    }

    /// True if a record with this fingerprint was inserted. Linearizable.
    #[inline]
    pub fn contains<Q: Hash + ?Sized>(&self, record: &Q) -> bool {
        let core = &self.set.core;
        let section = self.worker.access.section();
        if core.meeting.is_some() {
            core.attend_if_called(&self.worker, &section);
        }
        let turned = self.set.cut(self.set.hasher.hash_one(record));
        let print = core.split.print(turned);
        core.find(&section, turned, print, |word| word == print).is_some()
    }
}

impl<S> Drop for PrintsHandle<'_, S> {
    fn drop(&mut self) {
        self.set.core.leave(&self.worker);
    }
}
