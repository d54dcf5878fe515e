//! How a segment grows under `Growth::Spread`: everybody helps, nobody waits.
//!
//! ```text
//!  0 alone:      root = T, no successor
//!        │  consider_growing (the fill is reached), make_room (no slot was found): T.next = S
//!        ▼
//!  1 leaving:    root = T; every operation that comes here moves a chunk of T (help), then inserts into S
//!        │  every chunk is done
//!        ▼
//!  2 complete:   every line of T is sealed, every record of T is in S
//!        │  promote: root = S, T is retired and its memory given back
//!        ▼
//!  0 alone:      root = S
//! ```
//!
//! **G1.** T.next is set once, by exchange, and only while the root is T: S has no successor before
//! T is complete.
//! **G2.** Words go from T to T.next and nowhere else, as `carry` says.
//! **G3.** A chunk that its mover abandoned is handed out again (M3 of `migrate`): completion needs
//! nobody in particular.
//! **G4.** S has more slots than T. Inserts into S before T is complete are guests, at most as many
//! as S has slots more than T; so copies always find a slot. A guest too many completes T first:
//! the one path whose length is that of a table, and it is counted.
//! **G5.** A failed allocation leaves everything as it was. The insert that cannot do without gets
//! the error; one that only saw the table filling up goes on, until a tenth of the slots is left.
//! **G6.** Sizes are `first · FACTOR^growths · 2^(i/n)` for segment i of n, in whole lines, and
//! grow by [`FACTOR`] exactly from the fifth growth on: at any time the segments stand at different
//! points of their growth, so that the sum of their sizes is steady and one segment's old table is
//! all that is held twice.

use super::budget::SeenError;
use super::builder::Settings;
use super::core::{Core, Stop};
use super::table::{Plan, Table};
use crate::migrate::Restart;
use crate::reclaim::Section;
use crate::region::AllocError;
use crate::sync::line::LINE;
use crate::sync::{MODEL, Ordering};

/// How many times as large the next table of a segment is (G6). What is stored plainly while others
/// store, too, depends on it: D1 of `carry`, J3 of `together`.
pub(super) const FACTOR: usize = 2;

/// After so many growths sizes are fine enough for every segment to have its own; from there on
/// they grow by [`FACTOR`] exactly.
const FINE: u32 = if MODEL { 0 } else { 5 };

impl Core {
    /// Slots of segment number `segment` after so many growths (G6).
    pub(super) fn slots_after(&self, segment: usize, growths: u32) -> Result<usize, SeenError> {
        let share = segment as f64 / self.roots.len() as f64;
        let fine = Settings::FIRST_SLOTS / LINE * FACTOR.pow(FINE);
        let lines = (fine as f64 * share.exp2()).ceil() as usize;
        let lines = match growths.checked_sub(FINE) {
            None => Some(lines / FACTOR.pow(FINE - growths)),
            Some(more) => FACTOR.checked_pow(more).and_then(|times| lines.checked_mul(times)),
        };
        // A home is one of 2^32.
        let lines = lines.filter(|&lines| lines.ilog2() < 32);
        lines.and_then(|lines| lines.checked_mul(LINE)).ok_or(AllocError::CapacityOverflow.into())
    }

    pub(super) fn make(
        &self,
        section: &Section<'_>,
        segment: usize,
        growths: u32,
        before: Option<&Table>,
    ) -> Result<Box<Table>, SeenError> {
        let before = before.map_or(0, |table| table.plan().slots);
        if segment == self.small() {
            return self.make_small(section, growths, before);
        }
        let plan = Plan {
            slots: self.slots_after(segment, growths)?,
            before,
            max_load: self.settings.max_load,
            growths,
            is_small: false,
            birth: section.era(),
        };
        let bytes = Table::bytes_for(plan.slots);
        self.account.book_table(bytes)?;
        let lines = |segment| self.slots_after(segment, growths).ok().map(|slots| slots / LINE);
        let table = self
            .ground
            .lines(growths, segment, lines, self.roots.len())
            .and_then(|lines| Table::try_new(plan, self.split, lines, &self.account));
        Ok(table.inspect_err(|_| self.account.give_back(bytes))?)
    }

    /// The first table of a segment, as large as if it had grown so often. There is a row, and
    /// nothing in the small chain (`small` Q3).
    #[cold]
    pub(super) fn first_table(
        &self,
        section: &Section<'_>,
        segment: usize,
        growths: u32,
    ) -> Result<(), SeenError> {
        let row = self.roots.make_row();
        if row[segment].is_empty() {
            let table = self.make(section, segment, growths, None)?;
            row[segment].set_once(table).unwrap_or_else(Table::discard);
        }
        Ok(())
    }

    /// True while `table` is the root and has no successor (G1). The first part holds until the
    /// exchange, since the root leaves a table only for its successor.
    pub(super) fn may_leave(&self, segment: usize, table: &Table) -> bool {
        // That the root has reached the table means that its predecessor is complete.
        self.root(segment).leads_to(table) && table.next().is_empty()
    }

    /// Gives the root a successor, unless it has one (G1): of the size after so many growths, which
    /// are more than its own.
    pub(super) fn start(
        &self,
        section: &Section<'_>,
        segment: usize,
        table: &Table,
        growths: u32,
    ) -> Result<(), SeenError> {
        let next = self.make(section, segment, growths, Some(table))?;
        table.next().set_once(next).unwrap_or_else(Table::discard);
        table.set_closed(false);
        Ok(())
    }

    /// The table is filling up: one thread prepares the next, the others go on.
    #[cold]
    pub(super) fn consider_growing(&self, section: &Section<'_>, segment: usize, table: &Table) {
        if !table.is_due()
            || !self.may_leave(segment, table)
            || !(table.is_at_limit() || table.election.stand())
        {
            return;
        }
        if self.start(section, segment, table, table.plan().growths + 1).is_err() {
            // G5: whoever cannot do without will hear of it.
            table.election.resign();
            table.set_closed(table.is_at_limit());
        }
    }

    /// An insert has found no slot, or the table is closed: afterwards there is a successor, or an
    /// error.
    #[cold]
    pub(super) fn make_room(
        &self,
        section: &Section<'_>,
        segment: usize,
        table: &Table,
    ) -> Result<(), Stop> {
        if self.may_leave(segment, table) {
            self.start(section, segment, table, table.plan().growths + 1)?;
        }
        Ok(())
    }

    /// Moves one chunk of a table that is being left (G2, G3).
    pub(super) fn help(&self, section: &Section<'_>, segment: usize, table: &Table, next: &Table) {
        if let Some(claim) = table.work.claim() {
            table.move_chunk(claim.chunk, next);
            if !table.work.finish(claim.chunk) || !table.work.is_finished() {
                return;
            }
        }
        self.promote(section, segment, table, next);
    }

    /// Moves the root on from a complete table. Whoever sees that it is complete may.
    pub(super) fn promote(
        &self,
        section: &Section<'_>,
        segment: usize,
        table: &Table,
        next: &Table,
    ) {
        let Some(left) = self.root(segment).advance(table, table.next()) else { return };
        if self.meeting.is_none() {
            // What was reported to T is in S now. Handles report the rest to S.
            next.add_used(table.used());
        }
        // ORDERING: Relaxed: a statistic.
        self.growths.fetch_add(1, Ordering::Relaxed);
        // SAFETY: only the root has led to the table, since its predecessor, if it had one, was
        // left before (G1); one leaves it (`link` M14).
        unsafe { left.retire(section) };
    }

    /// Completes `table` whoever sleeps, so that `next` can take more (G4).
    #[cold]
    pub(super) fn catch_up(
        &self,
        section: &Section<'_>,
        segment: usize,
        table: &Table,
        next: &Table,
    ) -> Stop {
        // ORDERING: Relaxed: a statistic.
        self.stragglers.fetch_add(1, Ordering::Relaxed);
        // Where the root has left the table its successor is complete.
        while self.root(segment).leads_to(table) {
            self.help(section, segment, table, next);
        }
        Stop::Restart
    }

    /// Ends the growth under way in a segment. Returns the root then seen.
    pub(super) fn settle<'s>(
        &self,
        section: &'s Section<'_>,
        segment: usize,
    ) -> Result<Option<&'s Table>, Restart> {
        loop {
            let Some(table) = self.root(segment).follow(section)? else { return Ok(None) };
            let Some(next) = table.next().follow(section)? else { return Ok(Some(table)) };
            // Everything is in the old table until the meeting ends, or its share was moved
            // (`small` Q3).
            if self.meeting.is_some() || next.is_door() {
                return Ok(Some(table));
            }
            self.help(section, segment, table, next);
        }
    }
}
