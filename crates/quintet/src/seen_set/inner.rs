//! What a set is once it is used.

use super::arena::Shape;
use super::builder::Settings;
use super::core::{Core, Entry, Outcome, Worker};
use super::iter::Words;
use super::many::Kind;
use super::mark::Mark;
use super::offer::Offer;
use super::record::{Incoming, Origin, Record, Records};
use super::{Insertion, RecordId, SeenError};
use crate::reclaim::{Brief, Section};
use crate::sync::AtomicU64;
use std::hash::BuildHasher;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Tables and records. Made at the first use, so that an empty set is small.
#[derive(Debug)]
pub(super) struct Inner<R: Record + ?Sized> {
    pub(super) core: Core,
    pub(super) records: Records<R>,
    /// Records that were counted by `insert_counted`.
    pub(super) counted: AtomicU64,
    /// What tells ids of this set from others'.
    pub(super) mark: Mark,
}

impl<R: Record + ?Sized> Inner<R> {
    pub(super) fn new(settings: Settings, shape: Shape) -> Self {
        let core = Core::new(settings);
        let records = Records::new(&settings, shape, &core.account, &core.ground.spare);
        let mark = Mark::next(settings.id_bits.into());
        Self { core, records, counted: AtomicU64::new(0), mark }
    }

    /// The id of a word of this set.
    #[inline(always)]
    pub(super) fn id(&self, word: u64) -> RecordId {
        RecordId(self.mark.bits() | self.core.split.id(word))
    }

    /// What became of an offer.
    #[inline(always)]
    fn insertion(&self, outcome: Outcome, offer: impl Offer<R>) -> Insertion {
        if outcome.new {
            // Its bits are the set's now (`core` I5, `offer` U3).
            std::mem::forget(offer);
        }
        self.told(outcome)
    }

    #[inline(always)]
    fn told(&self, outcome: Outcome) -> Insertion {
        let id = RecordId(self.mark.bits() | outcome.id);
        if outcome.new { Insertion::Inserted(id) } else { Insertion::Existing(id) }
    }

    /// An insert in every other case than the usual one. It takes the offer as it is, so that the
    /// usual case may have it in registers.
    #[inline(never)]
    fn insert_past_home<O: Offer<R>>(
        &self,
        worker: &Worker,
        turned: u64,
        offer: O,
        origin: Origin,
    ) -> Result<Insertion, SeenError> {
        let entry = Incoming { records: &self.records, desk: &worker.desk, offer: &offer, origin };
        let outcome = self.core.insert_past_home(worker, turned, entry)?;
        Ok(self.insertion(outcome, offer))
    }

    /// The unit of an id, if it is this set's.
    #[inline(always)]
    pub(super) fn unit(&self, id: RecordId) -> Option<u64> {
        let tag = self.core.split.tag_mask();
        if id.0 & tag == self.mark.sure() {
            return Some(id.0 & !tag); // (`mark` O1)
        }
        self.unit_in_crowd(id)
    }

    /// The unit of an id that is not this set's beyond doubt (`mark` O2).
    #[cold]
    #[inline(never)]
    fn unit_in_crowd(&self, id: RecordId) -> Option<u64> {
        let split = self.core.split;
        let unit = split.id(id.0);
        let is_here = self.mark.may_be(id.0 & split.tag_mask())
            && Words::new(&self.core).any(|word| split.id(word) == unit);
        is_here.then_some(unit)
    }

    #[inline(always)]
    pub(super) fn get(&self, id: RecordId) -> Option<&R> {
        Some(self.records.get(self.unit(id)?))
    }

    pub(super) fn origin(&self, id: RecordId) -> Origin {
        self.unit(id).map_or(Origin::default(), |unit| self.records.origin(unit))
    }

    pub(super) fn parent(&self, id: RecordId) -> Option<RecordId> {
        let parent = self.origin(id).parent;
        (parent != 0).then_some(RecordId(self.mark.bits() | parent))
    }

    #[inline(always)]
    pub(super) fn find_by(
        &self,
        section: &Section<'_>,
        hash: u64,
        same: impl Fn(&R) -> bool,
    ) -> Option<RecordId> {
        let split = self.core.split;
        let same = |word| same(self.records.get(split.id(word)));
        let turned = split.turn(hash);
        self.core.find(section, turned, split.tag(turned), same).map(|word| self.id(word))
    }
}

impl<R: Record + ?Sized> Drop for Inner<R> {
    fn drop(&mut self) {
        if R::NEEDS_DROP {
            let (core, records) = (&self.core, &self.records);
            let mut panic = None;
            core.for_each_word(|word| {
                // SAFETY: the set goes: whoever has a handle, an iterator or a reference borrows it
                // or keeps it, and one that was forgotten is not used again. Each word comes once
                // (`core` I1), also if the drop of a record panics.
                let drop_record = || unsafe { records.drop_record(core.split.id(word)) };
                panic = catch_unwind(AssertUnwindSafe(drop_record)).err().or(panic.take());
            });
            if let Some(payload) = panic.filter(|_| !std::thread::panicking()) {
                resume_unwind(payload);
            }
        }
    }
}

/// Where records are inserted: at a set, by a worker that is a handle's or lent.
pub(super) struct At<'a, R: Record + ?Sized, S, W> {
    pub(super) inner: &'a Inner<R>,
    pub(super) hasher: &'a S,
    pub(super) worker: W,
}

impl<R: Record + ?Sized, S: BuildHasher, W: Deref<Target = Worker>> At<'_, R, S, W> {
    #[inline(always)]
    fn entry<'x, O: Offer<R>>(
        &'x self,
        offer: &'x O,
        origin: Origin,
    ) -> Result<Incoming<'x, R, O>, SeenError> {
        let records = &self.inner.records;
        records.check(offer)?;
        Ok(Incoming { records, desk: &self.worker.desk, offer, origin })
    }

    /// Takes a record in, or finds it.
    #[inline(always)]
    pub(super) fn insert<O: Offer<R>>(
        &self,
        offer: O,
        origin: Origin,
    ) -> Result<Insertion, SeenError> {
        let core = &self.inner.core;
        let turned = core.split.turn(offer.hash_by(self.hasher));
        let entry = self.entry(&offer, origin)?;
        match core.insert_at_home_line(&self.worker, None::<&Brief<'_>>, turned, entry) {
            Some(outcome) => Ok(self.inner.insertion(outcome, offer)),
            None => self.inner.insert_past_home(&self.worker, turned, offer, origin),
        }
    }

    /// The same for many, with labels, and tells of each.
    #[inline(always)]
    pub(super) fn insert_each<O: Offer<R>>(
        &self,
        parent: u64,
        offers: impl Iterator<Item = (O, u32)>,
        tell: impl FnMut(Insertion),
    ) -> Result<(), SeenError> {
        let kind = &mut Many { at: self, parent, tell };
        self.inner.core.insert_many(&self.worker, offers, kind)
    }

    /// From where a record was reached.
    ///
    /// # Panics
    /// If the parent is another set's record.
    #[inline(always)]
    pub(super) fn origin(&self, parent: RecordId, label: u32) -> Origin {
        let parent = self.inner.unit(parent).expect("the parent is a record of this set");
        Origin { parent, label }
    }
}

/// Records on their way into the set, many at once.
struct Many<'a, 's, R: Record + ?Sized, S, W, F> {
    at: &'a At<'s, R, S, W>,
    parent: u64,
    tell: F,
}

impl<R, O, S, W, F> Kind<(O, u32)> for Many<'_, '_, R, S, W, F>
where
    R: Record + ?Sized,
    O: Offer<R>,
    S: BuildHasher,
    W: Deref<Target = Worker>,
    F: FnMut(Insertion),
{
    #[inline(always)]
    fn hash(&self, (offer, _): &(O, u32)) -> u64 {
        offer.hash_by(self.at.hasher)
    }
    #[inline(always)]
    fn locate(&self, id: u64) -> *const u8 {
        self.at.inner.records.locate(id)
    }
    #[inline(always)]
    unsafe fn is_at(&self, _: u64, place: *const u8, (offer, _): &(O, u32)) -> bool {
        // SAFETY: the caller's promise.
        offer.is(unsafe { self.at.inner.records.at(place) })
    }
    #[inline(always)]
    fn entry<'x>(&'x self, (offer, label): &'x (O, u32)) -> Result<impl Entry + 'x, SeenError> {
        self.at.entry(offer, Origin { parent: self.parent, label: *label })
    }
    #[inline(always)]
    fn tell(&mut self, outcome: Outcome) {
        (self.tell)(self.at.inner.told(outcome));
    }
}
