//! Small sets: one chain of tables for all segments, until it is left for the row.
//!
//! ```text
//!   8 ──▶ 64 ──▶ 256 ──▶ ... ──▶ 16384 slots ──▶ D       as a segment grows (`grow`), by four
//!
//!   T, next = D:   ├─ share of segment 0 ─┼─ share of segment 1 ─┼ ...        each moved at once, by whoever inserts there
//!                      │ sealed                │
//!   row:           table of segment 0     (empty: still in T)
//! ```
//!
//! A small set has one table and one arena, and grows in few steps: a set of ten thousand records
//! has made six tables instead of three hundred.
//!
//! **Q1.** The last table of the chain is the *door* D: one sealed line, nothing in it, no
//! successor. The root or the last small table gets it as its next by the exchange that would give
//! it any other (`link` M13): so a table is left for a larger one or for the row, never for both.
//! The row is made before the door.
//! **Q2.** Small tables hold narrow words (`word` B4), whose homes are in the order of hashes. So
//! the words of a segment lie in its *share* of T: the lines from its first home to its last, and
//! those behind up to the first that has a gap. A probe for any of its keys ends there.
//! **Q3.** A segment's link is set only once the door is there: to a table made of all its words in
//! T after its share was sealed, or, if the root is D, to an empty one. A sealed line changes no
//! more (`table` T4), and a probe of the segment that ends in a sealed share ends at a word or at a
//! FROZEN. So from the seal on no key of the segment enters T; what is in T then is in the table;
//! and all who make one make the same. One is linked (`link` M13), the others are dropped, seen by
//! nobody.
//! **Q4.** `core` I1 and I2 hold across the move. Whoever finds a key in T, or an EMPTY, has its
//! answer as of that load: at an EMPTY the share is not sealed there, and the link not set. Whoever
//! meets a FROZEN or comes round at the end of the chain looks at the link again: if it is still
//! empty, the key was nowhere at that moment; if not, he begins again, and is led there.
//! **Q5.** A share may run into those of its neighbours, and seals lines there. That ends their
//! inserts into these lines, and so they move their own share.
//! **Q6.** Nobody waits: whoever inserts into a segment that is still in T moves its share, beside
//! anybody who does the same. It takes about as long as to move a chunk. Where the memory cannot be
//! had nothing is sealed, and the insert goes on in T as long as there is room (`grow` G5).
//! **Q7.** When every link is set the root leaves T for D, and T is retired. Whoever comes to D
//! later finds his link set, or the set was never small before.
//! **Q8.** Ids of a small set fit the narrow field. One that does not makes the set leave for the
//! row.

use super::budget::SeenError;
use super::builder::Settings;
use super::core::{Attempt, Core, Entry, Outcome, Stop, Worker};
use super::ground::Lines;
use super::table::{Plan, Seen, Table, room_of};
use super::word::Split;
use crate::migrate::Restart;
use crate::reclaim::{Access, Section};
use crate::sync::MODEL;
use crate::sync::line::LINE;

/// Growths of a small table that has the largest size. The next is the door.
const LAST: u32 = if MODEL { 1 } else { 5 };
/// What `growths` is of a door.
pub(super) const DOOR: u32 = u32::MAX;

/// Slots of a small table after so many growths.
const fn slots_after(growths: u32) -> usize {
    match growths {
        _ if MODEL => LINE << growths,
        0 => LINE,
        // Four times as many each time; the first time eight.
        _ => (2 * LINE) << (2 * growths),
    }
}

impl Settings {
    /// How often a small table must have grown to hold so many records. `None` if none is so large.
    pub(super) fn small_growths_for(&self, records: usize) -> Option<u32> {
        let holds = |growths: &u32| records <= room_of(slots_after(*growths), self.max_load);
        (0..=LAST).find(holds)
    }
}

impl Core {
    /// The number of the chain of small tables.
    #[inline(always)]
    pub(super) fn small(&self) -> usize {
        self.roots.len()
    }

    /// A small table after so many growths, or the door (Q1).
    pub(super) fn make_small(
        &self,
        section: &Section<'_>,
        growths: u32,
        before: usize,
    ) -> Result<Box<Table>, SeenError> {
        let is_door = growths > LAST;
        if is_door {
            self.roots.make_row();
        }
        let plan = Plan {
            slots: if is_door { LINE } else { slots_after(growths) },
            before,
            max_load: self.settings.max_load,
            growths: if is_door { DOOR } else { growths },
            is_small: true,
            birth: section.era(),
        };
        let bytes = Table::bytes_for(plan.slots);
        self.account.book_table(bytes)?;
        let table = Lines::own(plan.slots / LINE, self.settings.pages)
            .and_then(|lines| Table::try_new(plan, self.split.narrow(), lines, &self.account));
        let table = table.inspect_err(|_| self.account.give_back(bytes))?;
        if is_door {
            table.seal(0, |_| ());
        }
        Ok(table)
    }

    /// An insert whose home line had no answer, or every other case. A call of its own, so that the
    /// usual case keeps in registers what it has there.
    #[inline(never)]
    pub(super) fn insert_past_home<E: Entry>(
        &self,
        worker: &Worker,
        turned: u64,
        entry: E,
    ) -> Result<Outcome, SeenError> {
        let (segment, tag) = (self.split.segment(turned), self.split.tag(turned));
        let told = match worker.access.usual() {
            Some(section) => {
                let told = self.insert_if_calm(worker, &section, segment, tag, entry);
                if !E::USER {
                    section.leave_alone();
                }
                told
            }
            None => Attempt::Not(Stop::Restart),
        };
        let otherwise = || self.insert_in_every_case(worker, segment, tag, entry);
        self.conclude(worker, segment, told, otherwise)
    }

    /// Every other case of such an insert.
    pub(super) fn insert_into_small(
        &self,
        worker: &Worker,
        section: &Section<'_>,
        segment: usize,
        tag: u64,
        entry: impl Entry,
    ) -> Result<Outcome, Stop> {
        let Some(table) = self.roots.small().follow(section)? else {
            match self.settings.starts_small {
                true => self.first_small(section)?,
                false => self.first_table(section, segment, self.settings.first_growths)?,
            }
            return Err(Stop::Restart);
        };
        worker.untidy.set(true);
        if table.is_door() {
            self.first_table(section, segment, 0)?; // (Q3)
            return Err(Stop::Restart);
        }
        let next = table.next().follow(section)?;
        let narrow = self.split.narrow_tag(tag, segment);
        if next.is_some_and(Table::is_door) {
            let Err(error) = self.move_share(section, segment, table, 0) else {
                return Err(Stop::Restart);
            };
            // No memory: what is here can be answered, and there may be room (Q6).
            if table.is_at_limit() {
                let same = |word| entry.same(word, narrow, table.split());
                return match table.look(&mut table.walk(narrow), narrow, same) {
                    Seen::Same(word) => Ok(Outcome { id: table.split().id(word), new: false }),
                    _ => Err(error.into()),
                };
            }
            let walk = (table, table.walk(narrow));
            return match self.insert_along(worker, segment, walk, narrow, entry) {
                Attempt::Done(outcome) | Attempt::Reported(outcome, _) => Ok(outcome),
                Attempt::Not(_) => Err(error.into()),
            };
        }
        self.insert_past(worker, section, self.small(), (table, next), narrow, entry)
    }

    /// The first small table.
    #[cold]
    pub(super) fn first_small(&self, section: &Section<'_>) -> Result<(), SeenError> {
        let table = self.make_small(section, self.settings.first_growths, 0)?;
        self.roots.small().set_once(table).unwrap_or_else(Table::discard);
        Ok(())
    }

    /// Gives the chain its door, after whatever it is about (Q1).
    #[cold]
    pub(super) fn leave_small(&self, section: &Section<'_>) -> Result<(), Stop> {
        let Some(table) = self.settle(section, self.small())? else {
            let door = self.make_small(section, DOOR, 0)?;
            self.roots.small().set_once(door).unwrap_or_else(Table::discard);
            return Err(Stop::Restart);
        };
        if !table.is_door() && self.may_leave(self.small(), table) {
            self.start(section, self.small(), table, DOOR)?;
        }
        Ok(())
    }

    /// The chain has its door.
    pub(super) fn has_door(&self, section: &Section<'_>) -> bool {
        self.entrance(section, self.small()).last().is_some_and(|table| table.is_door())
    }

    /// Moves the share of a segment out of the last small table, into one that has grown at least
    /// so often (Q3).
    #[cold]
    pub(super) fn move_share(
        &self,
        section: &Section<'_>,
        segment: usize,
        table: &Table,
        least: u32,
    ) -> Result<(), SeenError> {
        let row = self.roots.make_row();
        let mut words = Vec::new();
        let mut growths = least;
        // As large as it would have grown by itself. What comes in before the seal may make it too
        // small.
        while row[segment].is_empty() {
            words.clear();
            table.visit_share(self.split, segment, |word| words.push(word));
            while room_of(self.slots_after(segment, growths)?, self.settings.max_load)
                <= words.len()
            {
                growths += 1;
            }
            let next = self.make(section, segment, growths, None)?;
            words.clear();
            table.seal_share(self.split, segment, |word| words.push(word));
            if words.len() >= next.len() {
                next.discard();
                continue;
            }
            words.iter().for_each(|&word| next.place(word));
            next.add_used(words.len());
            // Dropped as it is if another was faster: it was written to.
            drop(row[segment].set_once(next));
        }
        if row.iter().all(|link| !link.is_empty()) {
            let Ok(Some(door)) = table.next().follow(section) else { return Ok(()) };
            self.promote(section, self.small(), table, door); // (Q7)
        }
        Ok(())
    }

    /// The word of a key whose segment is in the small chain, if it is here (Q4).
    #[inline(never)]
    pub(super) fn find_small(
        &self,
        section: &Section<'_>,
        segment: usize,
        tag: u64,
        same: &mut impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, Restart> {
        let tag = self.split.narrow_tag(tag, segment);
        let widen = |word| self.split.widen(word).0;
        let mut table = self.roots.small().follow(section)?;
        while let Some(here) = table {
            match here.look(&mut here.walk(tag), tag, |word| same(widen(word))) {
                Seen::Same(word) => return Ok(Some(widen(word))),
                Seen::Empty(_) => return Ok(None),
                Seen::Never => table = here.next().follow(section)?,
            }
        }
        if self.link(segment).is_empty() { Ok(None) } else { Err(Restart) }
    }
}

impl Table {
    /// Nothing is in it, and nothing will be: the row is behind it (Q1).
    pub(super) fn is_door(&self) -> bool {
        self.plan().growths == DOOR
    }

    /// Seals the share of a segment, and hands out its words as the segment's table has them (Q2).
    fn seal_share(&self, split: Split, segment: usize, mut each: impl FnMut(u64)) {
        let lines = self.lines();
        let (first, last) = split.share(segment, lines);
        for line in first..first + lines {
            let gap = self.seal(line % lines, |word| {
                let (word, of) = split.widen(word);
                if of == segment {
                    each(word);
                }
            });
            if gap && line >= last {
                return;
            }
        }
    }

    /// The same words as far as they are there, without sealing anything.
    fn visit_share(&self, split: Split, segment: usize, mut each: impl FnMut(u64)) {
        let lines = self.lines();
        let (first, last) = split.share(segment, lines);
        for line in first..first + lines {
            let mut gap = false;
            for slot in 0..LINE {
                match self.word_at(line % lines * LINE + slot).map(|word| split.widen(word)) {
                    Some((word, of)) if of == segment => each(word),
                    Some(_) => {}
                    None => gap = true,
                }
            }
            if gap && line >= last {
                return;
            }
        }
    }
}
