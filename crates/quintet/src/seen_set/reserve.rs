//! Room ahead of its use.

use super::budget::SeenError;
use super::core::{Core, Worker};
use crate::migrate::Restart;
use crate::reclaim::{Access, Section};

impl Core {
    /// Makes the first tables of all segments, for a set that was given a capacity. Small ones are made when needed.
    pub(super) fn prepare(&self) -> Result<(), SeenError> {
        let section = self.pin();
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
        (0..self.roots.len()).map(room).sum()
    }

    /// Makes room for so many more records: segment by segment, each moved once, to a table of the size it takes (G1, G2).
    pub(super) fn reserve(&self, worker: &Worker, more: usize) -> Result<(), SeenError> {
        let records = (self.len() as usize).saturating_add(more);
        let growths = self.settings.growths_for(records)?;
        self.slots_after(self.roots.len() - 1, growths)?;
        for segment in 0..self.roots.len() {
            let mut is_done = false;
            while !is_done {
                is_done =
                    match self.grow_towards(worker, &worker.access.section(), segment, growths) {
                        Ok(is_done) => is_done?,
                        Err(Restart) => false,
                    };
                worker.untidy.set(true);
                worker.tidy_if_needed(&self.account);
            }
        }
        Ok(())
    }

    /// One step of a segment towards the size it has after so many growths. True if it is there.
    fn grow_towards(
        &self,
        worker: &Worker,
        section: &Section<'_>,
        segment: usize,
        growths: u32,
    ) -> Result<Result<bool, SeenError>, Restart> {
        let Some(table) = self.settle(section, segment)? else {
            return Ok(self.first_table(section, segment, growths).map(|()| true));
        };
        if let Some(next) = table.next().follow(section)? {
            // Only a meeting leaves a successor to be seen to.
            self.attend(worker, section, segment, table, next);
            return Ok(Ok(false));
        }
        if table.plan().growths >= growths {
            return Ok(Ok(true));
        }
        match self.may_leave(segment, table) {
            true => Ok(self.start(section, segment, table, growths).map(|()| false)),
            false => Ok(Ok(false)),
        }
    }
}
