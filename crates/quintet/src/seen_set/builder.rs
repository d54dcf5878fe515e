//! How a set is set up.

use super::budget::SeenError;
use super::roots::MOST;
use super::word::Split;
use super::{Record, SeenPrints, SeenSet};
use crate::hasher::DefaultHashBuilder;
use crate::region::{AllocError, Pages};
use crate::sync::MODEL;
use foldhash::fast::FixedState;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// Who waits while a set grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Growth {
    /// Nobody: every insert that comes along moves a piece, and a thread inside a long computation
    /// stalls no one.
    #[default]
    Spread,
    /// Everybody: all handles stop, move the set together and go on. Least work, but every handle
    /// must come along: see [`Handle::offline`](super::Handle::offline).
    Together,
}

/// How many records a set can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Ids {
    /// 2^32 records (of byte strings with their own lengths: 32 GiB). A slot keeps 32 bits of the
    /// hash, so that one lookup in 2^32 looks at a record in vain.
    #[default]
    Narrow,
    /// 2^40 records (of byte strings with their own lengths: 8 TiB). A slot keeps 24 bits of the
    /// hash: one lookup in 2^24 looks at a record in vain, and beyond 2^24 slots per segment, that
    /// is beyond 3 · 10^9 records, ever more lookups do.
    Wide,
}

/// What a set is made by, and all its tables have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) budget: usize,
    pub(crate) max_load: f64,
    pub(crate) wait_report: Option<Duration>,
    /// The length of all byte strings.
    pub(crate) width: Option<usize>,
    /// Growths of the first tables, which the capacity asked for has saved.
    pub(crate) first_growths: u32,
    /// The first table is a small one.
    pub(crate) starts_small: bool,
    pub(crate) segment_bits: u8,
    pub(crate) id_bits: u8,
    pub(crate) growth: Growth,
    pub(crate) pages: Pages,
    pub(crate) parents: bool,
}

impl Settings {
    pub(crate) const FIRST_SLOTS: usize = if MODEL { 2 } else { 16 };
    const MAX_LOAD: f64 = 0.75;
    const REPORT: Option<Duration> =
        if cfg!(debug_assertions) { Some(Duration::from_secs(10)) } else { None };

    /// What a set is made by that nobody has set up.
    pub(crate) const DEFAULT: Self = Self {
        budget: usize::MAX,
        max_load: Self::MAX_LOAD,
        wait_report: Self::REPORT,
        width: None,
        first_growths: 0,
        starts_small: !MODEL,
        segment_bits: if MODEL { 0 } else { 6 },
        id_bits: 32,
        growth: Growth::Spread,
        pages: Pages::Huge,
        parents: false,
    };

    pub(crate) fn split(&self) -> Split {
        Split::new(self.id_bits.into(), self.segment_bits.into())
    }

    /// Ids that exist, the unused 0 included.
    pub(crate) fn ids(&self) -> u64 {
        self.split().ids()
    }

    pub(crate) fn is_wide(&self) -> bool {
        self.id_bits > 32
    }

    pub(crate) fn is_together(&self) -> bool {
        self.growth == Growth::Together
    }

    /// How often a segment must have grown to hold its share of so many records.
    pub(crate) fn growths_for(&self, records: usize) -> Result<u32, SeenError> {
        // Segments do not fill alike: three times the deviation more.
        let share = records as f64 / f64::from(1u32 << self.segment_bits);
        let wanted = (share + 3.0 * share.sqrt()) / self.max_load;
        let growths = (wanted / Self::FIRST_SLOTS as f64).log2().ceil().max(0.0);
        if growths > 64.0 { Err(AllocError::CapacityOverflow.into()) } else { Ok(growths as u32) }
    }
}

/// What the builders of both kinds of sets ask for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wishes {
    capacity: usize,
    shards: Option<usize>,
    settings: Settings,
}

impl Wishes {
    const NONE: Self = Self { capacity: 0, shards: None, settings: Settings::DEFAULT };

    /// What follows for a set whose words leave so many bits to ids.
    fn settings(&self, id_bits: u8) -> Result<Settings, SeenError> {
        let usual = if self.settings.is_wide() { 256 } else { 64 };
        let segments = match self.settings.growth {
            Growth::Together => 1,
            Growth::Spread if MODEL => self.shards.unwrap_or(1),
            Growth::Spread => self.shards.unwrap_or(usual).clamp(1, MOST).next_power_of_two(),
        };
        let segment_bits = segments.ilog2() as u8;
        let settings = Settings { segment_bits, id_bits, ..self.settings };
        let small = settings.small_growths_for(self.capacity);
        let small = small.filter(|_| settings.starts_small && !settings.is_together());
        let first_growths = match small {
            Some(growths) => growths,
            None => settings.growths_for(self.capacity)?,
        };
        Ok(Settings { first_growths, starts_small: small.is_some(), ..settings })
    }

    /// Whether tables are made at once: small ones are made when needed.
    fn is_large(&self) -> bool {
        self.capacity >= 1 << 10
    }
}

/// Sets up a [`SeenSet`], by [`SeenSet::builder`].
///
/// ```
/// use quintet::SeenSet;
///
/// let seen = SeenSet::<[u8]>::builder().width(16).parents(true).budget(1 << 30).build();
/// assert!(seen.insert(&[0; 16]).is_new());
/// let words = SeenSet::builder().capacity(100).build();
/// assert!(words.insert("a word".to_owned()).is_new());
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct SeenSetBuilder<R: ?Sized, S = DefaultHashBuilder> {
    wishes: Wishes,
    hasher: S,
    of: PhantomData<fn() -> Box<R>>,
}

/// Sets up a [`SeenPrints`], by [`SeenPrints::builder`].
#[must_use = "a builder does nothing until `build`"]
#[derive(Clone)]
pub struct SeenPrintsBuilder<S = DefaultHashBuilder> {
    wishes: Wishes,
    hasher: S,
    bits: u32,
}

/// The options that both builders have.
macro_rules! options {
    () => {
        /// Room for this many records before the first growth. 0, the default, allocates nothing
        /// until the first insert.
        pub fn capacity(mut self, records: usize) -> Self {
            self.wishes.capacity = records;
            self
        }

        /// Who waits while the set grows.
        pub fn growth(mut self, growth: Growth) -> Self {
            self.wishes.settings.growth = growth;
            self
        }

        /// The share of a table that is filled before it grows: 0.5 to 0.9, by default 0.75. Values
        /// outside are brought to the nearest end. Less is faster, more is smaller.
        pub fn max_load(mut self, share: f64) -> Self {
            let known = !share.is_nan();
            self.wishes.settings.max_load =
                if known { share.clamp(0.5, 0.9) } else { Settings::MAX_LOAD };
            self
        }

        /// Into how many shards the set is divided once it is not small any more, each growing by
        /// itself: a power of two up to 256, by default 64 (256 for [`Ids::Wide`]). Others are
        /// rounded up. `Growth::Together` has one.
        pub fn shards(mut self, shards: usize) -> Self {
            self.wishes.shards = Some(shards);
            self
        }

        /// Which pages large tables and records lie in.
        pub fn pages(mut self, pages: Pages) -> Self {
            self.wishes.settings.pages = pages;
            self
        }

        /// Bytes that tables and records together may take. Beyond, `insert` panics,
        /// [`fallible`](SeenSet::fallible) inserts return [`SeenError::Budget`], and everything
        /// inserted so far stays.
        pub fn budget(mut self, bytes: usize) -> Self {
            self.wishes.settings.budget = bytes;
            self
        }

        /// After how long a growth under `Growth::Together` says on standard error which handles it
        /// waits for. By default 10 s with debug assertions, never without.
        pub fn report_waits(mut self, after: Option<Duration>) -> Self {
            self.wishes.settings.wait_report = after;
            self
        }
    };
}

impl<R: Record + ?Sized> SeenSetBuilder<R> {
    pub(super) fn new() -> Self {
        let hasher = DefaultHashBuilder::new();
        Self { wishes: Wishes::NONE, hasher, of: PhantomData }
    }
}

impl<R: Record + ?Sized, S> SeenSetBuilder<R, S> {
    options!();

    /// How many records there may be.
    pub fn ids(mut self, ids: Ids) -> Self {
        self.wishes.settings.id_bits = if ids == Ids::Wide { 40 } else { 32 };
        self
    }

    /// Keeps a parent and a label with each record, for traces: 8 bytes more per record, 16 with
    /// [`Ids::Wide`].
    pub fn parents(mut self, keep: bool) -> Self {
        self.wishes.settings.parents = keep;
        self
    }

    /// Hashes by this. Its high bits must be as good as its low ones.
    pub fn hasher<T>(self, hasher: T) -> SeenSetBuilder<R, T> {
        SeenSetBuilder { wishes: self.wishes, hasher, of: PhantomData }
    }

    /// Hashes by a fixed seed instead of a random one: repeatable, and open to collision attacks.
    pub fn seed(self, seed: u64) -> SeenSetBuilder<R, FixedState> {
        self.hasher(FixedState::with_seed(seed))
    }

    /// Builds the set.
    ///
    /// # Panics
    /// If the memory for the capacity cannot be had; [`try_build`](Self::try_build) returns an
    /// error instead.
    pub fn build(self) -> SeenSet<R, S> {
        self.try_build().unwrap_or_else(|error| panic!("SeenSet: {error}"))
    }

    /// Builds the set, or says why its memory cannot be had.
    pub fn try_build(self) -> Result<SeenSet<R, S>, SeenError> {
        let settings = self.wishes.settings(self.wishes.settings.id_bits)?;
        SeenSet::set_up(settings, self.hasher, self.wishes.is_large())
    }
}

#[cfg(all(test, any(quintet_loom, quintet_shuttle)))]
impl<R: Record + ?Sized, S> SeenSetBuilder<R, S> {
    /// Starts small, as sets do where no model checker counts the steps.
    pub(super) fn small(mut self) -> Self {
        self.wishes.settings.starts_small = true;
        self
    }
}

impl<S> SeenSetBuilder<[u8], S> {
    /// All byte strings have this length: saves 4 to 11 bytes per record.
    pub fn width(mut self, bytes: usize) -> Self {
        self.wishes.settings.width = Some(bytes);
        self
    }
}

impl SeenPrintsBuilder {
    pub(super) fn new() -> Self {
        Self { wishes: Wishes::NONE, hasher: DefaultHashBuilder::new(), bits: 64 }
    }
}

impl<S> SeenPrintsBuilder<S> {
    options!();

    /// Cuts fingerprints to so many bits: more omissions, for those who want to see some. At least
    /// 1, at most 64.
    pub fn bits(mut self, bits: u32) -> Self {
        self.bits = bits.clamp(1, 64);
        self
    }

    /// Hashes by this.
    pub fn hasher<T>(self, hasher: T) -> SeenPrintsBuilder<T> {
        SeenPrintsBuilder { wishes: self.wishes, hasher, bits: self.bits }
    }

    /// Hashes by a fixed seed instead of a random one: repeatable, and open to collision attacks.
    pub fn seed(self, seed: u64) -> SeenPrintsBuilder<FixedState> {
        self.hasher(FixedState::with_seed(seed))
    }

    /// Builds the set.
    ///
    /// # Panics
    /// If the memory for the capacity cannot be had; [`try_build`](Self::try_build) returns an
    /// error instead.
    pub fn build(self) -> SeenPrints<S> {
        self.try_build().unwrap_or_else(|error| panic!("SeenPrints: {error}"))
    }

    /// Builds the set, or says why its memory cannot be had.
    pub fn try_build(self) -> Result<SeenPrints<S>, SeenError> {
        let settings = self.wishes.settings(0)?;
        SeenPrints::set_up(settings, self.hasher, self.bits, self.wishes.is_large())
    }
}

impl<R: ?Sized, S: Clone> Clone for SeenSetBuilder<R, S> {
    fn clone(&self) -> Self {
        Self { wishes: self.wishes, hasher: self.hasher.clone(), of: PhantomData }
    }
}

impl<R: ?Sized, S> fmt::Debug for SeenSetBuilder<R, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SeenSetBuilder").field("wishes", &self.wishes).finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for SeenPrintsBuilder<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wishes, bits, .. } = self;
        let mut show = out.debug_struct("SeenPrintsBuilder");
        show.field("wishes", wishes).field("bits", bits).finish_non_exhaustive()
    }
}
