//! Many inserts at once, so that their cache misses overlap.
//!
//! ```text
//!   fill:     take records from the caller, hash them, ask the cache for their lines
//!   look:     a group later the lines are there: read them, ask the cache for the record that each one may be
//!   finish:   the next group has been filled meanwhile and the records are there: insert, one after the other
//! ```
//!
//! **K1.** Only `finish` changes the set, by the very exchange that single inserts use, in the
//! caller's order.
//! **K2.** A word that `look` has found with the right tag names a record of this set, and always
//! will: slots are written once. If that record is the one sought, the answer is Existing, without
//! another look at the table.
//! **K3.** If `look` has found no such word on the home line, but a gap, that gap is where the
//! record goes (`table` T1). What comes before it is FULL and stays; so if the exchange of an EMPTY
//! there succeeds, the record was nowhere in the table, however long ago the look was. If it fails,
//! the insert begins anew. If there was neither, the home line is full of others and stays so: the
//! search goes on behind it.
//! **K4.** One section spans `fill`, `look` and `finish`, so that the tables stay in place. User
//! code runs inside it (the caller's iterator, `Hash`, `Eq`, what is told); it may use the set, by
//! this handle too, in sections and views of its own (I4 of `core`), and if it takes long it holds
//! back the memory of tables that are left meanwhile. The section is renewed when the era has
//! changed, that is, when there is something to hold back.
//! **K5.** No branch of `look` depends on what it reads: lines that arrive late hold up nothing but
//! their own answers.

use super::budget::SeenError;
use super::core::{Attempt, Core, Entry, Outcome, Stop, Worker};
use super::table::Table;
use crate::reclaim::{Access, Brief, Check, Section};
use crate::sync::line::{LINE, Line};
use crate::sync::prefetch::prefetch_read;
use std::mem::MaybeUninit;
use std::ptr;

/// Records that go through a step together.
pub(super) const GROUP: usize = 16;

/// What kind of record goes in, and how.
pub(super) trait Kind<X> {
    fn hash(&self, item: &X) -> u64;
    /// Where the record of an id lies; somewhere for the id 0.
    fn locate(&self, id: u64) -> *const u8;
    /// Whether the record of a word, at a place, is this one.
    ///
    /// # Safety
    /// It is a word of the set, and `locate` gave the place for its id.
    unsafe fn is_at(&self, word: u64, place: *const u8, item: &X) -> bool;
    /// The way of a record into the set. If it gets there as a new one, the item's bits are the
    /// set's.
    fn entry<'x>(&'x self, item: &'x X) -> Result<impl Entry + 'x, SeenError>;
    fn tell(&mut self, outcome: Outcome);
}

/// A section of either kind, for work that goes on while there is nothing to hold back (K4).
trait Current: Check {
    /// The section holds nothing back that was retired after it was entered.
    fn is_current(&self) -> bool;
}

impl Current for Section<'_> {
    #[inline(always)]
    fn is_current(&self) -> bool {
        (**self).is_current()
    }
}

impl Current for Brief<'_> {
    #[inline(always)]
    fn is_current(&self) -> bool {
        self.check()
    }
}

/// Records on their way: those from `next` to `len`, with their turned hashes.
struct Group<X> {
    items: [MaybeUninit<X>; GROUP],
    turned: [u64; GROUP],
    next: usize,
    len: usize,
}

impl<X> Group<X> {
    fn new() -> Self {
        let items = [const { MaybeUninit::uninit() }; GROUP];
        Self { items, turned: [0; GROUP], next: 0, len: 0 }
    }

    /// Puts an item behind the others, which are `index`.
    #[inline(always)]
    fn put(&mut self, index: usize, item: X, turned: u64) {
        debug_assert_eq!(index, self.len);
        self.turned[index] = turned;
        self.items[index].write(item);
        self.len = index + 1;
    }

    /// The first of those that are left.
    #[inline(always)]
    fn first(&self, index: usize) -> &X {
        debug_assert!(index == self.next && index < self.len);
        // SAFETY: `put` has written it, and it has not left.
        unsafe { self.items[index].assume_init_ref() }
    }

    /// Lets the first of those that are left go: to the set, which has its bits, or away.
    #[inline(always)]
    fn leave(&mut self, index: usize, to_set: bool) {
        debug_assert!(index == self.next && index < self.len);
        self.next = index + 1;
        if !to_set && std::mem::needs_drop::<X>() {
            // SAFETY: `put` has written it, and `next` has passed it: it is dropped once.
            unsafe { self.items[index].assume_init_drop() };
        }
    }

    /// All have left.
    #[inline(always)]
    fn clear(&mut self) {
        debug_assert_eq!(self.next, self.len);
        (self.next, self.len) = (0, 0);
    }
}

impl<X> Drop for Group<X> {
    fn drop(&mut self) {
        while self.next < self.len {
            self.leave(self.next, false);
        }
    }
}

/// Two groups that take turns.
struct Groups<X> {
    /// The one that is finished next.
    first: Group<X>,
    other: Group<X>,
    /// The caller has no more.
    is_last: bool,
}

/// Where a record goes, as far as it is known.
#[derive(Clone, Copy)]
struct Way<'s> {
    /// Where it begins to look. `None`: there is no table, or the section may not follow.
    aim: Option<(&'s Table, &'s Line)>,
    /// A word that may be the record's (K2), or 0.
    word: u64,
    /// Where the record of that word lies.
    place: *const u8,
    /// Where it goes if there is no such word (K3), or [`LINE`].
    gap: usize,
}

impl Way<'_> {
    const UNKNOWN: Self = Self { aim: None, word: 0, place: ptr::null(), gap: LINE };
}

impl Core {
    /// Inserts everything, in order (K1). After an error, what comes behind is not inserted.
    pub(super) fn insert_many<X>(
        &self,
        worker: &Worker,
        items: impl IntoIterator<Item = X>,
        kind: &mut impl Kind<X>,
    ) -> Result<(), SeenError> {
        let mut items = items.into_iter();
        if self.meeting.is_some() {
            return self.one_by_one(worker, items, kind).map(drop);
        }
        // Inside the caches there is nothing to wait for.
        while self.roots.row().is_none() {
            if self.one_by_one(worker, items.by_ref().take(GROUP), kind)? < GROUP {
                return Ok(());
            }
        }
        let mut groups = Groups { first: Group::new(), other: Group::new(), is_last: false };
        loop {
            let more = match worker.access.usual() {
                Some(brief) => self.run(worker, &brief, &mut items, kind, &mut groups)?,
                None => self.run_slow(worker, &mut items, kind, &mut groups)?,
            };
            worker.tidy_if_needed(&self.account);
            if !more {
                return Ok(());
            }
        }
    }

    /// [`run`](Self::run) where the usual section cannot be had: inside another one of this handle,
    /// or where entering takes a fence.
    #[cold]
    #[inline(never)]
    fn run_slow<X>(
        &self,
        worker: &Worker,
        items: &mut impl Iterator<Item = X>,
        kind: &mut impl Kind<X>,
        groups: &mut Groups<X>,
    ) -> Result<bool, SeenError> {
        self.run(worker, &worker.access.section(), items, kind, groups)
    }

    /// Among those who meet each must notice that a meeting is called, and looks for itself.
    /// Returns how many there were.
    #[inline(never)]
    fn one_by_one<X>(
        &self,
        worker: &Worker,
        items: impl Iterator<Item = X>,
        kind: &mut impl Kind<X>,
    ) -> Result<usize, SeenError> {
        let mut count = 0;
        for item in items {
            count += 1;
            let turned = self.split.turn(kind.hash(&item));
            let outcome = self.insert_long(worker, None::<&Brief<'_>>, turned, &item, kind)?;
            if outcome.new {
                // Its bits are the set's now (`core` I5).
                std::mem::forget(item);
            }
            kind.tell(outcome);
        }
        Ok(count)
    }

    /// Works in one section until there is something to hold back (K4): then true, and the first
    /// group waits to be finished. False if nothing is left to do.
    #[inline(always)]
    fn run<X>(
        &self,
        worker: &Worker,
        section: &impl Current,
        items: &mut impl Iterator<Item = X>,
        kind: &mut impl Kind<X>,
        groups: &mut Groups<X>,
    ) -> Result<bool, SeenError> {
        let (mut filling, mut finishing) = (&mut groups.other, &mut groups.first);
        let mut ways = ([Way::UNKNOWN; GROUP], [Way::UNKNOWN; GROUP]);
        let (mut ways_filling, mut ways_finishing) = (&mut ways.1, &mut ways.0);
        for (way, &turned) in ways_finishing.iter_mut().zip(&finishing.turned).take(finishing.len) {
            way.aim = self.aim(section, turned);
        }
        let mut swapped = false;
        loop {
            self.look(finishing, ways_finishing, kind);
            if !groups.is_last {
                groups.is_last = !self.fill(section, items, kind, filling, ways_filling);
            }
            self.finish(worker, section, kind, finishing, ways_finishing)?;
            std::mem::swap(&mut filling, &mut finishing);
            std::mem::swap(&mut ways_filling, &mut ways_finishing);
            swapped = !swapped;
            if finishing.len == 0 {
                return Ok(false);
            }
            if !section.is_current() || worker.is_untidy(&self.account) {
                break;
            }
        }
        if swapped {
            std::mem::swap(&mut groups.first, &mut groups.other);
        }
        Ok(true)
    }

    /// Where a record begins to look.
    #[inline(always)]
    fn aim<'s>(&self, section: &'s impl Check, turned: u64) -> Option<(&'s Table, &'s Line)> {
        let table = self.link(self.split.segment(turned)).follow(section).ok()??;
        let line = table.home(turned);
        prefetch_read(ptr::from_ref(line));
        Some((table, line))
    }

    /// Asks the cache for the lines of a few records that are sought, then for the records that may
    /// be these.
    #[inline(always)]
    pub(super) fn ask_ahead(
        &self,
        section: &impl Check,
        turned: &[u64],
        locate: impl Fn(u64) -> *const u8,
    ) {
        let mask = self.split.tag_mask();
        let mut lines = [None; GROUP];
        for (line, &turned) in lines.iter_mut().zip(turned) {
            *line = self.aim(section, turned);
        }
        for (line, &turned) in lines.iter().zip(turned) {
            if let Some((_, line)) = line {
                prefetch_read(locate(Table::sight(line, turned, mask).word & !mask));
            }
        }
    }

    /// Takes records from the caller. False if there are no more.
    #[inline(always)]
    fn fill<'s, X>(
        &self,
        section: &'s impl Check,
        items: &mut impl Iterator<Item = X>,
        kind: &impl Kind<X>,
        group: &mut Group<X>,
        ways: &mut [Way<'s>; GROUP],
    ) -> bool {
        for (way, index) in ways.iter_mut().zip(0..) {
            let Some(item) = items.next() else { return false };
            let turned = self.split.turn(kind.hash(&item));
            way.aim = self.aim(section, turned);
            group.put(index, item, turned);
        }
        true
    }

    /// Reads the lines, and asks the cache for the records that the sought ones may be (K2, K3,
    /// K5).
    #[inline(always)]
    fn look<X>(&self, group: &Group<X>, ways: &mut [Way<'_>; GROUP], kind: &impl Kind<X>) {
        let mask = self.split.tag_mask();
        let len = group.len.min(GROUP);
        for (way, &turned) in ways[..len].iter_mut().zip(&group.turned[..len]) {
            let Some((_, line)) = way.aim else {
                (way.word, way.gap) = (0, LINE);
                continue;
            };
            let sight = Table::sight(line, turned, mask);
            (way.word, way.gap) = (sight.word, sight.gap);
            way.place = kind.locate(sight.word & !mask);
            // The line is full of others: the record will be sought on the next one.
            let beyond = sight.word == 0 && sight.gap == LINE;
            let after = ptr::from_ref(line).wrapping_add(1).cast();
            prefetch_read(if beyond { after } else { way.place });
        }
    }

    #[inline(always)]
    fn finish<X>(
        &self,
        worker: &Worker,
        section: &impl Check,
        kind: &mut impl Kind<X>,
        group: &mut Group<X>,
        ways: &[Way<'_>; GROUP],
    ) -> Result<(), SeenError> {
        for (index, way) in ways[..group.len.min(GROUP)].iter().enumerate() {
            let (item, turned) = (group.first(index), group.turned[index]);
            let outcome = match self.insert_there(worker, way, turned, item, kind) {
                Some(outcome) => outcome,
                None => self.insert_further(worker, section, way, turned, item, kind)?,
            };
            group.leave(index, outcome.new);
            kind.tell(outcome);
        }
        group.clear();
        Ok(())
    }

    /// Ends an insert where its way has led, if it can.
    #[inline(always)]
    fn insert_there<X>(
        &self,
        worker: &Worker,
        way: &Way<'_>,
        turned: u64,
        item: &X,
        kind: &impl Kind<X>,
    ) -> Option<Outcome> {
        if way.word != 0 {
            // SAFETY: the word was found in the set, and this is its record's place.
            let same = unsafe { kind.is_at(way.word, way.place, item) };
            return same.then_some(Outcome { id: self.split.id(way.word), new: false }); // (K2)
        }
        let (table, line) = way.aim?;
        if way.gap == LINE || !table.is_calm() {
            return None;
        }
        let (segment, tag) = (self.split.segment(turned), self.split.tag(turned));
        let entry = kind.entry(item).ok()?;
        let told = self.put_in(worker, segment, (table, line), way.gap, tag, entry)?; // (K3)
        if let (_, Some(due)) = told {
            self.see_to(worker, segment, due);
        }
        Some(told.0)
    }

    /// An insert that looks on behind its home, if that was full of others (K3), or else for
    /// itself.
    #[inline(never)]
    fn insert_further<X>(
        &self,
        worker: &Worker,
        section: &impl Check,
        way: &Way<'_>,
        turned: u64,
        item: &X,
        kind: &impl Kind<X>,
    ) -> Result<Outcome, SeenError> {
        let (Some((table, home)), 0, LINE) = (way.aim, way.word, way.gap) else {
            return self.insert_long(worker, Some(section), turned, item, kind);
        };
        let (segment, tag) = (self.split.segment(turned), self.split.tag(turned));
        let entry = kind.entry(item)?;
        let walk = (table, table.walk_on(home));
        let told = match table.is_calm() {
            true => self.insert_along(worker, segment, walk, tag, entry),
            false => Attempt::Not(Stop::Restart),
        };
        let otherwise = || self.insert_past_home(worker, turned, entry);
        self.conclude(worker, segment, told, otherwise)
    }

    /// An insert that looks for itself.
    #[inline(never)]
    fn insert_long<X>(
        &self,
        worker: &Worker,
        section: Option<&impl Check>,
        turned: u64,
        item: &X,
        kind: &impl Kind<X>,
    ) -> Result<Outcome, SeenError> {
        self.insert(worker, section, turned, kind.entry(item)?)
    }
}
