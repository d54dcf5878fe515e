//! The set without its records: segments of words, each growing by itself.
//!
//! ```text
//!   hash ──top bits──▶ segment ── root ──▶ T ──next──▶ S        S exists only while T is left for it
//! ```
//!
//! Small sets have one such chain for all segments: see `roots` and `small`.
//!
//! An insert probes T to its end and only then S:
//!
//! ```text
//!                    ┌─ the key: Existing
//!   probe T to its end ─ EMPTY, no successor: write the record, exchange: Inserted (lost: look again)
//!                    ├─ EMPTY, successor: freeze it (lost: look again) ─┐
//!                    └─ FROZEN, or a full circle ───────────────────────┴─▶ probe S, in the same way
//! ```
//!
//! **I1.** A key is in a slot of a segment's chain at most once, but for copies of the same word in
//! T and S. Proof: a key enters T or S by an exchange of the first EMPTY of its probe. Two inserts
//! into one table meet at that slot, and the loser looks again and finds the key. An insert goes to
//! S only past a FROZEN or a full circle of T, from where on the key can no longer enter T (`table`
//! T1 of `table`); if it was in T, the probe has found it before.
//! **I2.** `contains` goes the same way and may stop at an EMPTY of T: nobody has passed it for
//! this key.
//! **I3.** An insert takes effect by its exchange, a lookup by the load that ends its last probe.
//! **I4.** User code runs only while nothing is half done: no lock is held and no record is in
//! flight. `Hash` runs before the section is entered (in a batch, between inserts), `Eq` between
//! the loads of a probe, what makes a record of its borrowed form before it is written. It may use
//! the set, by this handle too, and then its operations nest in this one:
//! - Leaving a nested section ends no outer one, so the table in which this operation probes stays
//!   in place, though it may have been left meanwhile. That is noticed as ever: by FROZEN, by a
//!   full circle, or by a failed exchange.
//! - Every operation has its own view, with its own `upper`. A link is followed only if the view's
//!   check says yes: the era is the upper end that *this* operation knows of, or it has announced
//!   the end of time itself. That a nested operation has announced more does not count: what lies
//!   behind a link that was loaded before may be gone. Otherwise this operation begins again at the
//!   root, a lookup as well as an insert.
//!
//! **I5.** Between the exchange that puts a record in and the moment its caller forgets it nothing
//! panics: no user code runs there. So a record is dropped by its caller or by the set, never by
//! both.

use super::budget::{Account, SeenError};
use super::builder::Settings;
use super::desk::Desk;
use super::ground::Ground;
use super::roots::Roots;
use super::table::{Seen, Table, Walk};
use super::together::Meeting;
use super::word::Split;
use crate::migrate::{Link, Restart};
use crate::reclaim::{Access, Check, Domain, Handle, Section};
use crate::roster::{Roster, Seat};
use crate::sync::line::Line;
use crate::sync::{Arc, AtomicU64, MODEL, Mutex};
use std::cell::Cell;

/// The way of a record into the set. It keeps nothing, so that the usual case has it in registers
/// and every other one gets a copy.
pub(crate) trait Entry: Copy {
    /// Whether comparing runs user code.
    const USER: bool;
    /// Whether the record of this word is the one sought. Upper halves of tags are equal; `split`
    /// is of the table where the word was found, and `tag` the one sought there.
    fn same(self, word: u64, tag: u64, split: Split) -> bool;
    /// Makes what is written, if that is still to be done (`offer` U2).
    #[inline(always)]
    fn make(self) {}
    /// Writes the record and returns its id (`arena` R1). `None`: there is no room at the desk.
    fn write(self) -> Option<u64>;
    /// Makes room at the desk.
    fn make_room(self) -> Result<(), SeenError>;
    /// Takes back what `write` wrote last (`arena` R3).
    fn take_back(self);
}

/// Writes a record, wherever there is room, for a word that is divided so. Returns its id.
#[inline(always)]
pub(super) fn write(entry: impl Entry, split: Split) -> Result<u64, Stop> {
    entry.make();
    loop {
        if let Some(id) = entry.write() {
            if split.id(id) == id {
                return Ok(id);
            }
            entry.take_back();
            return Err(Stop::Beyond);
        }
        entry.make_room()?;
    }
}

/// How an insert in the usual case ended.
pub(super) enum Attempt {
    Done(Outcome),
    /// Done, and the handle has reported its share: there may be something to see to.
    Reported(Outcome, bool),
    /// The case is another one; nothing has happened.
    Not(Stop),
}

/// What became of an insert: the record's id, and whether it is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) id: u64,
    pub(crate) new: bool,
}

/// Why an attempt ended without an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    /// Begin again at the root.
    Restart,
    /// The id does not fit a small set (`small` Q8).
    Beyond,
    /// Memory was needed and could not be had.
    Error(SeenError),
}

impl From<Restart> for Stop {
    fn from(Restart: Restart) -> Self {
        Self::Restart
    }
}

impl From<SeenError> for Stop {
    fn from(error: SeenError) -> Self {
        Self::Error(error)
    }
}

#[derive(Debug)]
pub(crate) struct Core {
    pub(super) roots: Roots,
    pub(super) split: Split,
    pub(super) settings: Settings,
    pub(super) domain: Domain,
    pub(super) account: Arc<Account>,
    pub(super) ground: Ground,
    pub(super) desks: Arc<Roster<Desk>>,
    /// Workers for those who have no handle (L1 of `lend`).
    pub(super) idle: Mutex<Vec<Worker>>,
    /// `Growth::Together`.
    pub(super) meeting: Option<Box<Meeting>>,
    /// Growths completed.
    pub(super) growths: AtomicU64,
    /// Inserts that had to move all the rest of a table.
    pub(super) stragglers: AtomicU64,
}

/// One thread's means of working on a set.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(super) access: Handle,
    pub(super) desk: Seat<Desk>,
    /// Place at the meeting, if there is one.
    pub(super) place: Cell<usize>,
    /// A growth was met: there may be tables to free.
    pub(super) untidy: Cell<bool>,
}

impl Worker {
    /// Frees what was left and nobody can be inside of any more. What somebody is still inside of
    /// is looked at again with the next report.
    #[cold]
    fn tidy(&self) {
        self.access.release();
        self.untidy.set(self.access.backlog_bytes() > 0);
    }

    /// Whether what was left is worth a barrier: a small share of all tables.
    #[cold]
    fn is_worth_it(&self, account: &Account) -> bool {
        let backlog = self.access.backlog_bytes();
        self.untidy.set(!MODEL && backlog > 0);
        self.untidy.get() && backlog >= KEPT.max(account.tables() / KEPT_SHARE)
    }
}

/// A handle may keep this part of all table bytes to itself, left but not yet given back.
const KEPT_SHARE: usize = 64;
/// And so many bytes: what the tables of a small set leave is not worth a barrier for each.
const KEPT: usize = 16 << 10;

impl Worker {
    /// There are tables to free.
    #[inline(always)]
    pub(super) fn is_untidy(&self, account: &Account) -> bool {
        self.untidy.get() && self.is_worth_it(account)
    }

    /// Sees to tables that were left, between operations.
    #[inline(always)]
    pub(super) fn tidy_if_needed(&self, account: &Account) {
        if self.is_untidy(account) {
            self.tidy();
        }
    }
}

impl Core {
    pub(crate) fn new(settings: Settings) -> Self {
        let split = settings.split();
        let roots = Roots::new(1 << split.segment_bits);
        if !settings.starts_small {
            roots.make_row();
        }
        let account = Arc::new(Account::new(Some(settings.budget)));
        Self {
            roots,
            split,
            settings,
            domain: Domain::new(),
            ground: Ground::new(settings.pages, &account),
            account,
            desks: Roster::new(),
            idle: Mutex::new(Vec::new()),
            meeting: settings.is_together().then(|| Box::new(Meeting::new(settings.wait_report))),
            growths: AtomicU64::new(0),
            stragglers: AtomicU64::new(0),
        }
    }

    /// A worker for a handle of the calling thread.
    pub(crate) fn join(&self) -> Worker {
        self.worker(self.meeting.as_ref().map_or(0, |meeting| meeting.join()))
    }

    /// A worker with this place at the meeting.
    pub(super) fn worker(&self, place: usize) -> Worker {
        Worker {
            access: self.domain.join(),
            desk: Roster::join(&self.desks, Desk::new),
            place: Cell::new(place),
            untidy: Cell::new(false),
        }
    }

    /// Records: exact when nobody inserts.
    pub(crate) fn len(&self) -> u64 {
        let mut sum = 0;
        self.desks.visit_all(|desk| sum += desk.inserted());
        sum
    }

    /// The link to the table of a segment.
    #[inline(always)]
    pub(super) fn link(&self, segment: usize) -> &Link<Table> {
        self.roots.link(segment)
    }

    /// The link to the first table of a segment's chain, or of the small one.
    pub(super) fn root(&self, segment: usize) -> &Link<Table> {
        if segment == self.small() { self.roots.small() } else { self.roots.link(segment) }
    }

    /// Takes a record in, or finds it; in a section that is open already, if there is one.
    #[inline(always)]
    pub(crate) fn insert<E: Entry>(
        &self,
        worker: &Worker,
        section: Option<&impl Check>,
        turned: u64,
        entry: E,
    ) -> Result<Outcome, SeenError> {
        match self.insert_at_home_line(worker, section, turned, entry) {
            Some(outcome) => Ok(outcome),
            None => self.insert_past_home(worker, turned, entry),
        }
    }

    /// The same if the home line has the answer. `None`: the case is another one, and nothing has
    /// happened.
    #[inline(always)]
    pub(super) fn insert_at_home_line<E: Entry>(
        &self,
        worker: &Worker,
        section: Option<&impl Check>,
        turned: u64,
        entry: E,
    ) -> Option<Outcome> {
        let (outcome, report) = match section {
            Some(section) => self.insert_at_home(worker, section, turned, entry)?,
            None => {
                let section = worker.access.usual()?;
                let told = self.insert_at_home(worker, &section, turned, entry);
                if !E::USER {
                    section.leave_alone();
                }
                told?
            }
        };
        if let Some(due) = report {
            self.see_to(worker, self.split.segment(turned), due);
        }
        Some(outcome)
    }

    /// What there is to do after the usual case, or instead of it.
    #[inline(always)]
    pub(super) fn conclude(
        &self,
        worker: &Worker,
        segment: usize,
        told: Attempt,
        otherwise: impl FnOnce() -> Result<Outcome, SeenError>,
    ) -> Result<Outcome, SeenError> {
        match told {
            Attempt::Done(outcome) => Ok(outcome),
            Attempt::Reported(outcome, due) => {
                self.see_to(worker, segment, due);
                Ok(outcome)
            }
            Attempt::Not(Stop::Error(error)) => Err(error),
            Attempt::Not(Stop::Restart | Stop::Beyond) => otherwise(),
        }
    }

    /// Where the records of a segment are sought first: a table, and the tag by which they are
    /// sought there.
    #[inline(always)]
    fn way_in<'s>(
        &self,
        section: &'s impl Check,
        segment: usize,
        tag: u64,
    ) -> Option<(&'s Table, u64)> {
        if let Some(table) = self.link(segment).follow(section).ok()? {
            return Some((table, tag));
        }
        let table = self.roots.small().follow(section).ok()??;
        Some((table, self.split.narrow_tag(tag, segment)))
    }

    /// The most usual case: there is a table, it is not being left, and the home line has the
    /// answer. Short, so that the waits of several inserts for memory overlap. With what is to be
    /// reported, if anything.
    #[inline(always)]
    fn insert_at_home(
        &self,
        worker: &Worker,
        section: &impl Check,
        turned: u64,
        entry: impl Entry,
    ) -> Option<(Outcome, Option<bool>)> {
        let segment = self.split.segment(turned);
        let (table, tag) = self.way_in(section, segment, self.split.tag(turned))?;
        if !table.next().seems_empty() {
            return None;
        }
        let (line, split) = (table.home(tag), table.split());
        match table.look_at_home(line, tag, |word| entry.same(word, tag, split))? {
            Seen::Same(word) => Some((Outcome { id: split.id(word), new: false }, None)),
            Seen::Empty(slot) if table.is_calm() => {
                self.put_in(worker, segment, (table, line), slot, tag, entry)
            }
            Seen::Empty(_) | Seen::Never => None,
        }
    }

    /// Takes a record in at the EMPTY where its probe has ended, or not at all: where there is no
    /// room at the desk, say.
    #[inline(always)]
    pub(super) fn put_in(
        &self,
        worker: &Worker,
        segment: usize,
        (table, line): (&Table, &Line),
        slot: usize,
        tag: u64,
        entry: impl Entry,
    ) -> Option<(Outcome, Option<bool>)> {
        entry.make();
        let id = entry.write()?;
        if table.split().id(id) != id || !Table::take_at(line, slot, tag | id) {
            entry.take_back();
            return None;
        }
        Some((Outcome { id, new: true }, self.count(worker, segment, table)))
    }

    /// The usual case: there is a table, it is not being left, and the record or an EMPTY is found.
    #[inline(always)]
    pub(super) fn insert_if_calm(
        &self,
        worker: &Worker,
        section: &impl Check,
        segment: usize,
        tag: u64,
        entry: impl Entry,
    ) -> Attempt {
        match self.way_in(section, segment, tag) {
            Some((table, tag)) if table.is_calm() => {
                self.insert_along(worker, segment, (table, table.walk(tag)), tag, entry)
            }
            _ => Attempt::Not(Stop::Restart),
        }
    }

    /// The usual case, in a table that is calm, from where a probe stands.
    #[inline(always)]
    pub(super) fn insert_along(
        &self,
        worker: &Worker,
        segment: usize,
        (table, mut walk): (&Table, Walk),
        tag: u64,
        entry: impl Entry,
    ) -> Attempt {
        let split = table.split();
        loop {
            match table.look(&mut walk, tag, |word| entry.same(word, tag, split)) {
                Seen::Same(word) => {
                    return Attempt::Done(Outcome { id: split.id(word), new: false });
                }
                Seen::Empty(slot) => {
                    let id = match write(entry, split) {
                        Ok(id) => id,
                        Err(stop) => return Attempt::Not(stop),
                    };
                    if table.take(walk, slot, tag | id) {
                        let outcome = Outcome { id, new: true };
                        return match self.count(worker, segment, table) {
                            None => Attempt::Done(outcome),
                            Some(due) => Attempt::Reported(outcome, due),
                        };
                    }
                    entry.take_back();
                }
                Seen::Never => return Attempt::Not(Stop::Restart),
            }
        }
    }

    /// Counts a record of a segment that was inserted into this table. If the handle has reported
    /// what it has counted: whether the table should be left.
    #[inline(always)]
    pub(super) fn count(&self, worker: &Worker, segment: usize, table: &Table) -> Option<bool> {
        let desk = &worker.desk;
        desk.count_insert();
        let place = match table.is_small() {
            true => desk.small(),
            false => desk.pending(segment, self.roots.len()),
        };
        let pending = u32::from(place.get()) + 1;
        if pending < table.batch() {
            place.set(pending as u8);
            return None;
        }
        place.set(0);
        Some(table.add_used(pending as usize))
    }

    /// A handle has reported: the table may have to be left, and tables that were left may have to
    /// be freed.
    #[cold]
    #[inline(never)]
    pub(super) fn see_to(&self, worker: &Worker, segment: usize, due: bool) {
        if due {
            let section = worker.access.section();
            let segment = if self.link(segment).is_empty() { self.small() } else { segment };
            if let Ok(Some(table)) = self.root(segment).follow(&section) {
                self.consider_growing(&section, segment, table);
            }
        }
        worker.tidy_if_needed(&self.account);
    }

    /// The word of a record, if it is here.
    #[inline(always)]
    pub(crate) fn find(
        &self,
        section: &Section<'_>,
        turned: u64,
        tag: u64,
        mut same: impl FnMut(u64) -> bool,
    ) -> Option<u64> {
        loop {
            match self.try_find(section, self.split.segment(turned), tag, &mut same) {
                Ok(found) => return found,
                Err(_) => continue,
            }
        }
    }

    #[inline(always)]
    fn try_find(
        &self,
        section: &Section<'_>,
        segment: usize,
        tag: u64,
        same: &mut impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, Restart> {
        let mut table = self.link(segment).follow(section)?;
        if table.is_none() {
            return self.find_small(section, segment, tag, same);
        }
        while let Some(here) = table {
            match here.look(&mut here.walk(tag), tag, &mut *same) {
                Seen::Same(word) => return Ok(Some(word)),
                Seen::Empty(_) => return Ok(None), // (I2)
                Seen::Never => table = here.next().follow(section)?,
            }
        }
        Ok(None)
    }

    /// The calling thread's section, for lookups without a handle.
    #[inline]
    pub(crate) fn pin(&self) -> Section<'_> {
        self.domain.pin()
    }
}
