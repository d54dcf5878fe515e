//! How a set is set up.

use super::budget::SeenError;
use super::word::Split;
use super::{Record, SeenPrints, SeenSet};
use crate::hasher::DefaultHashBuilder;
use crate::region::{AllocError, Pages};
use crate::sync::MODEL;
use std::time::Duration;

/// Who waits while a set grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Growth {
    /// Nobody: every insert that comes along moves a piece, and a thread inside a long computation stalls no one.
    #[default]
    Spread,
    /// Everybody: all handles stop, move the set together and go on. Least work, but every handle must come
    /// along: see [`Handle::offline`](super::Handle::offline).
    Together,
}

/// How many records a set can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Ids {
    /// 2^32 records (of byte strings with their own lengths: 32 GiB). A slot keeps 32 bits of the hash, so that one lookup in
    /// 2^32 looks at a record in vain.
    #[default]
    Narrow,
    /// 2^40 records (of byte strings with their own lengths: 8 TiB). A slot keeps 24 bits of the hash: one lookup in 2^24 looks at a record
    /// in vain, and beyond 2^24 slots per segment, that is beyond 3 · 10^9 records, ever more lookups do.
    Wide,
}

/// What all tables of a set have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) id_bits: u32,
    pub(crate) segment_bits: u32,
    pub(crate) growth: Growth,
    pub(crate) max_fill: f64,
    pub(crate) first_slots: usize,
    /// Growths that the capacity asked for has saved.
    pub(crate) first_growths: u32,
    pub(crate) pages: Pages,
    pub(crate) budget: Option<usize>,
    pub(crate) wait_report: Option<Duration>,
}

impl Settings {
    pub(crate) fn split(&self) -> Split {
        Split::new(self.id_bits, self.segment_bits)
    }

    pub(crate) fn is_together(&self) -> bool {
        self.growth == Growth::Together
    }
}

/// Sets up a [`SeenSet`] or [`SeenPrints`].
///
/// ```
/// use quintet::SeenSet;
///
/// let seen: SeenSet<[u8]> = SeenSet::<[u8]>::builder().width(16).parents(true).budget(1 << 30).build();
/// assert!(seen.handle().insert(&[0; 16]).is_new());
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct SeenSetBuilder {
    capacity: usize,
    growth: Growth,
    ids: Ids,
    max_fill: f64,
    segments: Option<usize>,
    pages: Pages,
    budget: Option<usize>,
    pub(super) parents: bool,
    pub(super) width: Option<usize>,
    wait_report: Option<Duration>,
}

impl Default for SeenSetBuilder {
    fn default() -> Self {
        Self {
            capacity: 0,
            growth: Growth::Spread,
            ids: Ids::Narrow,
            max_fill: Self::MAX_FILL,
            segments: None,
            pages: Pages::default(),
            budget: None,
            parents: false,
            width: None,
            wait_report: cfg!(debug_assertions).then_some(Duration::from_secs(10)),
        }
    }
}

impl SeenSetBuilder {
    const MAX_FILL: f64 = 0.75;
    const FIRST_SLOTS: usize = if MODEL { 2 } else { 16 };

    /// Room for this many records before the first growth. 0, the default, allocates nothing until the first insert.
    pub fn capacity(mut self, records: usize) -> Self {
        self.capacity = records;
        self
    }

    /// Who waits while the set grows.
    pub fn growth(mut self, growth: Growth) -> Self {
        self.growth = growth;
        self
    }

    /// How many records there may be.
    pub fn ids(mut self, ids: Ids) -> Self {
        self.ids = ids;
        self
    }

    /// The share of a table that is filled before it grows: 0.5 to 0.9, by default 0.75. Values outside are brought to the nearest
    /// end. Less is faster, more is smaller.
    pub fn max_fill(mut self, share: f64) -> Self {
        self.max_fill = if share.is_nan() { Self::MAX_FILL } else { share.clamp(0.5, 0.9) };
        self
    }

    /// Into how many segments the set is divided, each growing by itself: a power of two up to 256, by default 64 (256 for
    /// [`Ids::Wide`]). Others are rounded up. `Growth::Together` has one.
    pub fn segments(mut self, segments: usize) -> Self {
        self.segments = Some(segments);
        self
    }

    /// Which pages large tables and records lie in.
    pub fn pages(mut self, pages: Pages) -> Self {
        self.pages = pages;
        self
    }

    /// Bytes that tables and records together may take. Beyond, `try_insert` returns [`SeenError::Budget`], `insert` panics, and
    /// everything inserted so far stays.
    pub fn budget(mut self, bytes: usize) -> Self {
        self.budget = Some(bytes);
        self
    }

    /// Keeps a parent and a label with each record, for traces: 8 bytes more per record, 16 with [`Ids::Wide`].
    pub fn parents(mut self, keep: bool) -> Self {
        self.parents = keep;
        self
    }

    /// All byte strings have this length: saves 4 to 11 bytes per record. Only for `SeenSet<[u8]>`.
    pub fn width(mut self, bytes: usize) -> Self {
        self.width = Some(bytes);
        self
    }

    /// After how long a growth under `Growth::Together` says on standard error which handles it waits for. By default 10 s with debug
    /// assertions, never without.
    pub fn report_waits(mut self, after: Option<Duration>) -> Self {
        self.wait_report = after;
        self
    }

    /// Builds the set.
    ///
    /// # Panics
    /// If the memory for the capacity cannot be had; [`try_build`](Self::try_build) returns an error instead.
    pub fn build<R: Record + ?Sized>(self) -> SeenSet<R> {
        self.try_build().unwrap_or_else(|error| panic!("SeenSet: {error}"))
    }

    /// Builds the set, or says why its memory cannot be had.
    pub fn try_build<R: Record + ?Sized>(self) -> Result<SeenSet<R>, SeenError> {
        self.try_build_with_hasher(DefaultHashBuilder::default())
    }

    /// [`try_build`](Self::try_build) with a hasher of one's own. Its high bits must be as good as its low ones.
    pub fn try_build_with_hasher<R: Record + ?Sized, S>(
        self,
        hasher: S,
    ) -> Result<SeenSet<R, S>, SeenError> {
        SeenSet::from_builder(self, hasher)
    }

    /// Builds a set of fingerprints.
    ///
    /// # Panics
    /// As [`build`](Self::build).
    pub fn build_prints(self) -> SeenPrints {
        self.try_build_prints().unwrap_or_else(|error| panic!("SeenPrints: {error}"))
    }

    /// Builds a set of fingerprints, or says why its memory cannot be had.
    pub fn try_build_prints(self) -> Result<SeenPrints, SeenError> {
        SeenPrints::from_builder(self, DefaultHashBuilder::default())
    }

    pub(super) fn id_bits(&self) -> u32 {
        match self.ids {
            Ids::Narrow => 32,
            Ids::Wide => 40,
        }
    }

    pub(super) fn pages_wanted(&self) -> Pages {
        self.pages
    }

    pub(super) fn capacity_wanted(&self) -> usize {
        self.capacity
    }

    pub(super) fn settings(&self, id_bits: u32) -> Result<Settings, SeenError> {
        let usual = if self.ids == Ids::Wide { 256 } else { 64 };
        let segments = match self.growth {
            Growth::Together => 1,
            Growth::Spread if MODEL => 1,
            Growth::Spread => self.segments.unwrap_or(usual).clamp(1, 256).next_power_of_two(),
        };
        let mut settings = Settings {
            id_bits,
            segment_bits: segments.ilog2(),
            growth: self.growth,
            max_fill: self.max_fill,
            first_slots: Self::FIRST_SLOTS,
            first_growths: 0,
            pages: self.pages,
            budget: self.budget,
            wait_report: self.wait_report,
        };
        // Segments do not fill alike: three times the deviation more.
        let share = self.capacity as f64 / segments as f64;
        let wanted = (share + 3.0 * share.sqrt()) / self.max_fill;
        let growths = (wanted / settings.first_slots as f64).log2().ceil().max(0.0);
        if growths > 64.0 {
            return Err(AllocError::CapacityOverflow.into());
        }
        settings.first_growths = growths as u32;
        Ok(settings)
    }
}
