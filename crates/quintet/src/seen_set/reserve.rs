//! Room ahead of its use.

use super::budget::SeenError;
use super::core::{Core, Stop, Worker};
use super::small::DOOR;
use super::table::Table;
use crate::reclaim::{Access, Section};

impl Core {
    /// Makes the first tables, for a set that was given a capacity. Small ones are made when
    /// needed.
    pub(super) fn prepare(&self) -> Result<(), SeenError> {
        let section = self.pin();
        if self.settings.starts_small {
            return self.first_small(&section);
        }
        for segment in 0..self.roots.len() {
            self.first_table(&section, segment, self.settings.first_growths)?;
        }
        Ok(())
    }

    /// Records that fit into the tables that there are, before one of them should be left.
    pub(super) fn capacity(&self) -> usize {
        let section = self.pin();
        let room =
            |segment| self.entrance(&section, segment).last().map_or(0, |table| table.room());
        match self.roots.row() {
            Some(row) => (0..row.len()).map(room).sum(),
            None => room(self.small()),
        }
    }

    /// Makes room for so many more records: chain by chain, each moved once, to a table of the size
    /// it takes (`grow` G1, G2).
    pub(super) fn reserve(&self, worker: &Worker, more: usize) -> Result<(), SeenError> {
        let records = (self.len() as usize).saturating_add(more);
        let growths = self.settings.growths_for(records)?;
        self.slots_after(self.roots.len() - 1, growths)?;
        if self.settings.starts_small {
            let small = self.settings.small_growths_for(records);
            self.grow_until(worker, self.small(), small.unwrap_or(DOOR))?;
            if !self.has_door(&worker.access.section()) {
                return Ok(());
            }
        }
        (0..self.roots.len()).try_for_each(|segment| self.grow_until(worker, segment, growths))
    }

    /// Brings a chain to the size that it has after so many growths.
    fn grow_until(&self, worker: &Worker, segment: usize, growths: u32) -> Result<(), SeenError> {
        let mut is_done = false;
        while !is_done {
            is_done = match self.grow_towards(worker, &worker.access.section(), segment, growths) {
                Ok(is_done) => is_done,
                Err(Stop::Restart | Stop::Beyond) => false,
                Err(Stop::Error(error)) => return Err(error),
            };
            worker.untidy.set(true);
            worker.tidy_if_needed(&self.account);
        }
        Ok(())
    }

    /// One step of a chain towards the size it has after so many growths. True if it is there.
    fn grow_towards(
        &self,
        worker: &Worker,
        section: &Section<'_>,
        segment: usize,
        growths: u32,
    ) -> Result<bool, Stop> {
        let Some(table) = self.settle(section, segment)? else {
            self.begin(section, segment, growths)?;
            return Ok(false);
        };
        if let Some(next) = table.next().follow(section)? {
            if next.is_door() {
                return Ok(true); // each segment moves its share
            }
            // Only a meeting leaves a successor to be seen to.
            self.attend(worker, section, segment, table, next);
            return Ok(false);
        }
        if table.plan().growths >= growths {
            return Ok(true);
        }
        if self.may_leave(segment, table) {
            self.start(section, segment, table, growths)?;
        }
        Ok(false)
    }

    /// The first table of a chain that has none, of the size it has after so many growths; of a
    /// segment that is in the small chain, with its share of that.
    fn begin(&self, section: &Section<'_>, segment: usize, growths: u32) -> Result<(), Stop> {
        if segment == self.small() {
            let table = self.make_small(section, growths, 0)?;
            self.roots.small().set_once(table).unwrap_or_else(Table::discard);
            return Ok(());
        }
        match self.roots.small().follow(section)? {
            Some(table) if !table.is_door() => self.move_share(section, segment, table, growths)?,
            _ => self.first_table(section, segment, growths)?, // the door, or never small
        }
        Ok(())
    }
}
