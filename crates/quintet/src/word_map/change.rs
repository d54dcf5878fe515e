//! Changes in every case: along the chain, during a migration, with special values, and where there
//! is no room. The usual case is in `core`, and so are `core` W1 to W4.
//!
//! **WL8.4.** An insert at an EMPTY lane whose table has a successor that is ready closes the lane
//! and goes on in the successor. If that is not ready it may claim the lane. It never goes on
//! without closing: a lookup that sees the lane EMPTY afterwards would not follow.

use super::core::{Core, Due, Stop, done, exchange};
use super::moving::{carry, thaw};
use super::probe::{Place, Slot};
use super::table::Table;
use super::word::{ESC, State, TOMB, VIRGIN};
use crate::migrate::Restart;
use crate::reclaim::Section;
use crate::region::AllocError;
use crate::sync::Ordering;
use crate::vocabulary::{Compute, Computed};

/// How an attempt in one table ended.
enum Step {
    Done(Computed<u64>, Due),
    /// The successor knows.
    Onward,
    /// Look again.
    Again,
}

impl Core {
    pub(super) fn try_apply(
        &self,
        section: &Section<'_>,
        key: u64,
        decide: &mut impl FnMut(Option<u64>) -> Compute<u64>,
    ) -> Result<(Computed<u64>, Due), Stop> {
        let Some(mut table) = self.root.follow(section)? else {
            return self.apply_to_nothing(section, decide);
        };
        self.help_on_the_way(section, table)?;
        let mut due = Due::Nothing;
        loop {
            let k = table.k(key);
            let step = match table.probe(k) {
                Place::Slot(slot) => self.change_slot(section, table, slot, k, None, decide)?,
                Place::Closed => Step::Onward,
                Place::Empty(lane, lines) => match decide(None) {
                    Compute::Insert(value) => {
                        if self.goes_on(section, table, lines)? {
                            if lane.close() { Step::Onward } else { Step::Again }
                        } else if table.is_too_far(lines) {
                            self.make_room(section, table)?;
                            Step::Again
                        } else if table.claim(k, lane) {
                            due = Self::account_used(section.books(), table);
                            let first = Some(value);
                            self.change_slot(section, table, lane.slot, k, first, decide)?
                        } else {
                            Step::Again
                        }
                    }
                    Compute::Keep | Compute::Remove => Step::Done(done(None, None), Due::Nothing),
                },
                Place::End(more) => match decide(None) {
                    Compute::Insert(_) => {
                        if self.goes_on(section, table, usize::MAX)? {
                            if more.close() { Step::Onward } else { Step::Again }
                        } else if table.is_too_far(usize::MAX) {
                            self.make_room(section, table)?;
                            Step::Again
                        } else {
                            more.extend()?;
                            Step::Again
                        }
                    }
                    Compute::Keep | Compute::Remove => Step::Done(done(None, None), Due::Nothing),
                },
            };
            match step {
                Step::Done(change, Due::Nothing) => return Ok((change, due)),
                Step::Done(change, due) => return Ok((change, due)),
                Step::Onward => table = Self::successor(section, table)?,
                Step::Again => {}
            }
        }
    }

    /// Whether an insert that has found an EMPTY lane closes it and goes on in the successor: if
    /// that is ready, or if the lane is too far (`moving` WL8.4, `grow` G5).
    fn goes_on(&self, section: &Section<'_>, table: &Table, lines: usize) -> Result<bool, Restart> {
        let next = table.next().follow(section)?;
        Ok(next.is_some_and(|next| next.is_ready() || table.is_too_far(lines)))
    }

    /// Changes the value of a key that has a slot, in every case. `first` was decided for a key
    /// that is absent.
    fn change_slot(
        &self,
        section: &Section<'_>,
        table: &Table,
        slot: Slot<'_>,
        k: u64,
        mut first: Option<u64>,
        decide: &mut impl FnMut(Option<u64>) -> Compute<u64>,
    ) -> Result<Step, Stop> {
        // The cell that this operation has taken here (`cells` WL13.1).
        let mut cell = None;
        // ORDERING: Acquire: partners are the exchanges of value words.
        let mut word = slot.value.load(Ordering::Acquire);
        loop {
            let before = match State::of(word) {
                State::Absent => None,
                State::Live(live) => Some(table.decode(slot, live)),
                State::Moved => return Ok(Step::Onward),
                State::Frozen(number) => {
                    match thaw(&self.descriptors, slot.value, word, number) {
                        Ok(value) => {
                            let next = Self::successor(section, table)?;
                            next.add_used(usize::from(carry(slot.value, next, k, value)?));
                            return Ok(Step::Onward);
                        }
                        Err(now) => word = now,
                    }
                    continue;
                }
            };
            let act = match first.take() {
                Some(value) if before.is_none() => Compute::Insert(value),
                _ => decide(before),
            };
            let Some(after) = Self::decided(act, before) else {
                return Ok(Step::Done(done(before, before), Due::Nothing));
            };
            let to = match after {
                None => TOMB,
                Some(value) => match table.secrets().plain(value) {
                    Some(word) => word,
                    None => match self.put_in_cell(table, &mut cell, value)? {
                        Some(word) => word,
                        None => {
                            self.leave_full_cells(section, table, slot, k)?;
                            return Ok(Step::Onward);
                        }
                    },
                },
            };
            if word == VIRGIN {
                table.mark_slot(k, slot); // (`table` WL6.3)
            }
            match exchange(slot.value, word, to) {
                Ok(_) => {
                    let due = Self::account(section.books(), table, before, after);
                    return Ok(Step::Done(done(before, after), due));
                }
                Err(now) => word = now,
            }
        }
    }

    /// Stores a special value in this operation's cell of the table, and returns the word that says
    /// so. `None`: there is no cell left.
    #[cold]
    fn put_in_cell(
        &self,
        table: &Table,
        cell: &mut Option<usize>,
        value: u64,
    ) -> Result<Option<u64>, AllocError> {
        if cell.is_none() {
            table.make_cells(self.domain.seats())?;
            *cell = table.cells.take();
        }
        let Some(number) = *cell else { return Ok(None) };
        // ORDERING: Relaxed: the exchange of the value word comes after it.
        table.cells.numbered(number).store(value, Ordering::Relaxed);
        Ok(Some(ESC + number as u64))
    }

    /// The first insert makes the first table.
    #[cold]
    fn apply_to_nothing(
        &self,
        section: &Section<'_>,
        decide: &mut impl FnMut(Option<u64>) -> Compute<u64>,
    ) -> Result<(Computed<u64>, Due), Stop> {
        match decide(None) {
            Compute::Insert(_) => {
                self.first_table(section, self.settings.first_bits)?;
                Err(Stop::Restart)
            }
            Compute::Keep | Compute::Remove => Ok((done(None, None), Due::Nothing)),
        }
    }
}
