//! Inserts in the cases that are not the usual one: no table yet, one that is left for another, one
//! that is full.

use super::budget::SeenError;
use super::core::{Attempt, Core, Entry, Outcome, Stop, Worker, write};
use super::table::{Seen, Table};
use super::word::FROZEN;
use crate::reclaim::{Access, Section};

impl Core {
    /// Every other case.
    #[cold]
    #[inline(never)]
    pub(super) fn insert_in_every_case(
        &self,
        worker: &Worker,
        segment: usize,
        tag: u64,
        entry: impl Entry,
    ) -> Result<Outcome, SeenError> {
        let section = worker.access.section();
        let outcome = loop {
            let told = match self.insert_if_calm(worker, &section, segment, tag, entry) {
                Attempt::Done(outcome) => Ok(outcome),
                Attempt::Reported(outcome, due) => {
                    drop(section);
                    self.see_to(worker, segment, due);
                    return Ok(outcome);
                }
                Attempt::Not(Stop::Restart) => {
                    self.insert_slow(worker, &section, segment, tag, entry)
                }
                Attempt::Not(stop) => Err(stop),
            };
            let told = match told {
                Err(Stop::Beyond) => self.leave_small(&section).and(Err(Stop::Restart)),
                told => told,
            };
            match told {
                Ok(outcome) => break Ok(outcome),
                Err(Stop::Error(error)) => break Err(error),
                Err(Stop::Restart | Stop::Beyond) => {}
            }
        };
        drop(section);
        worker.tidy_if_needed(&self.account);
        outcome
    }

    /// An insert while there is no table yet, or it is being left, or is full.
    fn insert_slow(
        &self,
        worker: &Worker,
        section: &Section<'_>,
        segment: usize,
        tag: u64,
        entry: impl Entry,
    ) -> Result<Outcome, Stop> {
        let Some(table) = self.link(segment).follow(section)? else {
            return self.insert_into_small(worker, section, segment, tag, entry);
        };
        worker.untidy.set(true);
        if self.meeting.is_some() {
            return self.insert_together(worker, section, segment, table, tag, entry);
        }
        let next = table.next().follow(section)?;
        self.insert_past(worker, section, segment, (table, next), tag, entry)
    }

    /// An insert into a chain that is growing, or must grow: of a segment, or the small one.
    pub(super) fn insert_past(
        &self,
        worker: &Worker,
        section: &Section<'_>,
        segment: usize,
        (table, next): (&Table, Option<&Table>),
        tag: u64,
        entry: impl Entry,
    ) -> Result<Outcome, Stop> {
        if let Some(next) = next {
            self.help(section, segment, table, next);
        }
        let (mut walk, split) = (table.walk(tag), table.split());
        loop {
            match table.look(&mut walk, tag, |word| entry.same(word, tag, split)) {
                Seen::Same(word) => return Ok(Outcome { id: split.id(word), new: false }),
                Seen::Empty(slot) if next.is_some() => {
                    // Lost: somebody has frozen or filled it; look again (`table` T2).
                    table.take(walk, slot, FROZEN);
                }
                // The growth that brought us here is over.
                Seen::Empty(_) if next.is_none() && table.is_calm() => return Err(Stop::Restart),
                Seen::Empty(_) | Seen::Never => {
                    let Some(next) = next else {
                        // Full, or closed: there must be a successor now.
                        self.make_room(section, segment, table)?;
                        return Err(Stop::Restart);
                    };
                    return self.insert_as_guest(
                        worker,
                        section,
                        segment,
                        (table, next),
                        tag,
                        entry,
                    );
                }
            }
        }
    }

    /// An insert into the successor of a table that is not complete: the key is not in `table` and
    /// never will be (`core` I1).
    fn insert_as_guest(
        &self,
        worker: &Worker,
        section: &Section<'_>,
        segment: usize,
        (table, next): (&Table, &Table),
        tag: u64,
        entry: impl Entry,
    ) -> Result<Outcome, Stop> {
        if !next.admit_guest() {
            return Err(self.catch_up(section, segment, table, next)); // (`grow` G4)
        }
        let (mut walk, split) = (next.walk(tag), next.split());
        loop {
            let ready = |line| table.make_ready(line, next); // (`carry` D4)
            match next.look_when(&mut walk, tag, |word| entry.same(word, tag, split), ready) {
                Seen::Same(word) => return Ok(Outcome { id: split.id(word), new: false }),
                Seen::Empty(slot) => {
                    let id = write(entry, split)?;
                    if next.take(walk, slot, tag | id) {
                        if self.count(worker, segment, next) == Some(true) {
                            self.consider_growing(section, segment, next);
                        }
                        return Ok(Outcome { id, new: true });
                    }
                    entry.take_back();
                }
                Seen::Never => return Err(self.catch_up(section, segment, table, next)),
            }
        }
    }
}
