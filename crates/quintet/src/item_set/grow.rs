//! When a table is left, and how everybody moves on.
//!
//! ```text
//!  0 alone:      root = T, no prev
//!        │  prepare: T.next = S
//!        ▼
//!  0 prepared:   root = T, S is there and not used; every write touches some of its pages (ready, `migrate` M10)
//!        │  begin: root = S, S.prev = T                       (no lock held)
//!        ▼
//!  1 migrating:  every write moves a chunk of T (help); a shard's first chunk is also its sweep
//!        │  the last chunk is done                            │  a copy finds S full
//!        ▼  complete: S.prev = null, T is retired             ▼  rebuild: all locks, root = S', S and T are retired together
//!  0 alone:      root = S                                     0 alone: root = S'
//! ```
//!
//! **G1.** A chunk is a range of lines inside one shard's range, and is copied under that shard's
//! lock. Of the places in its range those of the shard are copied; others are displaced from the
//! shard before. The shard's last chunk goes on behind its range up to the first line with an
//! unused place: by `table` T1 all that the shard has displaced lies before its end.
//! **G2.** Whoever takes a shard's lock after a chunk of it was copied sees S (`shard` L2), and
//! adds nothing to T. Whoever added to T before held the lock before, so the copier sees it. No
//! sweep over all locks is needed, and nobody can be late.
//! **G3.** Copying closes the item (`table` T8), under the lock, looks for the same pointer in S,
//! and adds it if it is not there, which the tags of its home tell as a rule (`at_once` O4): no
//! user code, no look at the item, and doing it twice does nothing, for as long as T is linked. A
//! copier that comes late finds that T is not: an item may have been replaced in S alone since, and
//! copying it would bring it back. Since S alone is changed without the shard's lock (`table` T8),
//! a copier that has not found an item in S looks at the link again. If T is still linked then,
//! nobody changed S at once before: the item is not in S, its chunk is not done, and T stays linked
//! for as long as the lock is held.
//! **G4.** S gets a successor only when its prev is null, and once null it stays null: never more
//! than two tables.
//! **G5.** T is complete when every chunk is done, and whoever sees that completes: nobody's sleep
//! outside of a lock stops the others (`migrate` M3).
//! **G6.** The next size follows from the live items: larger, the same (a table full of emptied
//! places), or smaller.
//! **G7.** By `pace` M8 a table does not fill up before its prev is done, unless items were put
//! back into emptied places of T between the count and the start. Then a copy finds S full, and the
//! set is rebuilt under all locks into a table with room for all: rare, counted, never wedged.
//! **G9.** T.next is set once, by exchange, and only when T has no prev. Until the root has moved
//! on to it, writes go on in T; one that finds no place there does not wait for the pages.
//! **G10.** A small table has one shard, no prev and no next. It is left at once: under its lock
//! all its items, a few dozen, are copied into the next one, and the root is replaced. If the next
//! one is not small, its shards are others (`shard` L6): nobody else uses them before the root
//! leads there. A set that has left its small tables never comes back to them.
//! **G8.** A failed allocation leaves everything as it was. The operation that needs the table gets
//! the error; one that only saw that the table is filling up goes on.

use super::core::{Core, Pair, Stop};
use super::shard;
use super::table::{Raw, Table};
use super::word::{Birth, shard_of};
use crate::migrate::{Address, next_capacity};
use crate::reclaim::Visit;
use crate::region::AllocError;
use crate::sync::six::LANES;
use crate::sync::{MODEL, Ordering};
use std::ptr;

/// Tables of this size, or less, grow by four (`pace` M7): a hundred kilobytes, lines and marks.
const SMALL_BITS: u32 = if MODEL { 0 } else { 13 };

impl Core {
    /// Places that each write moves at least (`pace` M8).
    fn quota(&self) -> usize {
        self.settings.quota
    }

    /// Moves a share of the old table, if there is one.
    #[cold]
    pub(super) fn help(&self, visit: &Visit<'_>) -> Result<(), AllocError> {
        let mut moved = 0;
        while moved < self.quota() {
            let Ok(Some(Pair { new, old: Some(old) })) = self.pair(visit) else { return Ok(()) };
            let Some(claim) = new.work().claim() else {
                self.complete(visit, new, old);
                return Ok(());
            };
            if claim.again {
                // ORDERING: Relaxed: a statistic.
                self.again.fetch_add(1, Ordering::Relaxed);
            }
            match self.migrate_chunk(new, old, claim.chunk) {
                Ok(()) => moved += LANES << old.plan().chunk_bits(),
                Err(Stop::Restart) => continue,
                // An error leaves the chunk undone: the next one tries again (G8).
                Err(Stop::Full) => return self.rebuild(visit),
            }
            if new.work().finish(claim.chunk) && new.work().is_finished() {
                self.complete(visit, new, old);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Copies one chunk under its shard's lock (G1).
    pub(super) fn migrate_chunk(&self, new: &Table, old: &Table, chunk: usize) -> Result<(), Stop> {
        let range_bits = old.plan().line_bits() - old.plan().shard_bits;
        let first = chunk << old.plan().chunk_bits();
        let last = first + (1 << old.plan().chunk_bits());
        let shard = first >> range_bits;
        let _guard = self.shards.row()[shard].lock();
        // Under the lock both are up to date with what earlier writers of this shard saw (`shard`
        // L2, G3).
        if !new.prev().leads_to(old) || !self.root.leads_to(new) {
            return Err(Stop::Restart);
        }
        for line in first..last {
            self.migrate_line(new, old, line, shard)?;
        }
        let ends_shard = last & ((1 << range_bits) - 1) == 0;
        let mut line = last - 1;
        while ends_shard && old.is_passed(line) {
            line = old.line_after(line);
            self.migrate_line(new, old, line, shard)?;
        }
        Ok(())
    }

    /// Copies what is of this shard in one line.
    #[inline(always)]
    fn migrate_line(
        &self,
        new: &Table,
        old: &Table,
        line: usize,
        shard: usize,
    ) -> Result<(), Stop> {
        let ours = |hash| shard_of(hash, self.settings.shard_bits) == shard;
        let copy = |hash, item, birth| self.migrate_item(new, hash, item, birth, Some(old));
        old.row(line).close(ours, copy)
    }

    /// Copies the item of one place of `old`, whose shard is locked (G3); or, if no table is named,
    /// by one who is alone with the new table.
    #[inline(always)]
    fn migrate_item(
        &self,
        new: &Table,
        hash: u32,
        item: Raw,
        birth: Birth,
        old: Option<&Table>,
    ) -> Result<(), Stop> {
        let shard = new.shard(hash);
        if item.is_null() || new.try_add(shard, new.row(new.home(hash)), hash, item, birth) {
            return Ok(());
        }
        let there = new.seek_raw(hash, item);
        if there.place.is_some() {
            return Ok(());
        }
        if old.is_some_and(|old| !new.prev().leads_to(old)) {
            return Err(Stop::Restart);
        }
        new.place(shard, hash, &there, item, birth, old.is_none()).map(drop)
    }

    /// Unlinks the old table, all of which is done (G5).
    fn complete(&self, visit: &Visit<'_>, new: &Table, old: &Table) {
        // Who finds no `prev` finds all that was copied: the copiers' chunks were acquired by
        // `is_finished` or `claim`.
        let Some(left) = new.prev().cut(old) else { return };
        // ORDERING: Relaxed: a statistic.
        self.migrations.fetch_add(1, Ordering::Relaxed);
        if old.take_leave() {
            // SAFETY: the root has left it before, for the table that it is cut from now; nobody
            // else takes its leave.
            unsafe { left.retire(visit) };
        }
    }

    /// Migrates to the end whatever is under way. Returns the root then seen.
    pub(super) fn settle<'v>(&self, visit: &'v Visit<'_>) -> Result<Option<&'v Table>, AllocError> {
        shard::assert_not_busy();
        loop {
            match self.pair(visit) {
                Ok(None) => return Ok(None),
                Ok(Some(Pair { new, old: None })) => return Ok(Some(new)),
                Ok(Some(Pair { old: Some(_), .. })) => self.help(visit)?,
                Err(_) => {}
            }
        }
    }

    /// Moves all items of both tables into one with room for them, under all locks (G7).
    #[cold]
    pub(super) fn rebuild(&self, visit: &Visit<'_>) -> Result<(), AllocError> {
        let guards: Vec<_> = self.shards.row().iter().map(|shard| shard.lock()).collect();
        let pair = loop {
            if let Ok(pair) = self.pair(visit) {
                break pair;
            }
        };
        let Some(Pair { new, old: Some(old) }) = pair else { return Ok(()) };
        let Some(behind) = new.prev().address_of(old) else { return Ok(()) };
        let bits =
            self.settings.bits_for(self.len().saturating_mul(2)).max(self.settings.full_bits());
        let merged = self.table(visit, bits, false, None)?;
        for from in [new, old] {
            // All items of S are closed: if T is linked still, nobody has changed S alone, and
            // nobody will (G3).
            if ptr::eq(from, old) && !new.prev().leads_to(old) {
                return Ok(());
            }
            let copied = from.rows().try_for_each(|row| {
                let copy = |hash, item, birth| self.migrate_item(&merged, hash, item, birth, None);
                row.close(|_| true, copy)
            });
            if copied.is_err() {
                // Under all locks the count is exact, and the table has room for twice as many.
                unreachable!("ItemSet: {} items do not fit into {merged:?}", self.len());
            }
        }
        let replaced = self.root.replace(new, merged);
        drop(guards);
        // If not, the migration was completed meanwhile, and the next one was started.
        let Ok(left) = replaced else { return Ok(()) };
        // ORDERING: Relaxed: a statistic.
        self.rebuilt.fetch_add(1, Ordering::Relaxed);
        // S keeps its link to T: a reader that is on its way from S still needs it.
        if old.take_leave() {
            // SAFETY: only by the new table, which the root has left, is it still reached; nobody
            // else takes its leave.
            unsafe { behind.retire(visit) };
        }
        // SAFETY: only the root led here, since what came before is retired or has been cut; one
        // leaves it (`link` M14).
        unsafe { left.retire(visit) };
        Ok(())
    }

    /// An empty table of `2^bits` places, or of the least number, into which `prev` will be
    /// migrated.
    fn table(
        &self,
        visit: &Visit<'_>,
        bits: u32,
        ordered: bool,
        prev: Option<(&Table, Address<Table>)>,
    ) -> Result<Box<Table>, AllocError> {
        let plan = self.settings.plan(bits, visit.era(), ordered);
        Table::try_new(plan, self.shards.locks(plan.small), prev)
    }

    /// The first table of an empty set: the only one that may keep the order of insertion.
    pub(super) fn first_table(&self, visit: &Visit<'_>, bits: u32) -> Result<(), AllocError> {
        let table = self.table(visit, bits, self.settings.ordered, None)?;
        // Who comes late drops its own.
        drop(self.root.set_once(table));
        Ok(())
    }

    /// Gives the root, which has no prev and is not small, a successor, unless it has one (G4, G9).
    fn prepare(&self, visit: &Visit<'_>, table: &Table, bits: u32) -> Result<bool, AllocError> {
        // The root has left it only if it has a successor.
        let Some(address) = self.root.address_of(table) else { return Ok(false) };
        let bits = bits.max(self.settings.full_bits());
        let next = self.table(visit, bits, false, Some((table, address)))?;
        debug_assert!(next.is_locked_like(table));
        Ok(table.next().set_once(next).is_ok())
    }

    /// Makes some memory of the prepared successor present; if there is no more to do, begins to
    /// use it (`migrate` M10).
    #[cold]
    pub(super) fn ready(&self, visit: &Visit<'_>, table: &Table) {
        if let Ok(Some(next)) = table.next().follow(visit) {
            if !next.touch_ahead() {
                self.begin(table);
            }
        }
    }

    /// Moves the root on to the successor of `table`, if `table` still is the root.
    fn begin(&self, table: &Table) {
        // The successor leads to it: it is not to be retired yet.
        if self.root.advance(table, table.next()).is_some() {
            table.let_next_go();
        }
    }

    /// Moves from a small root to a table of `2^bits` places, or as many more as are needed, under
    /// its only lock (G10).
    fn leave_at_once(&self, visit: &Visit<'_>, table: &Table, bits: u32) -> Result<(), AllocError> {
        let only = table.shard(0);
        let left = loop {
            let bits = bits.max(self.settings.bits_for(self.len()));
            let next = self.table(visit, bits, false, None)?;
            let _guard = only.lock();
            if !self.root.leads_to(table) {
                return Ok(());
            }
            // What was added before the lock may be too much. Under the lock nothing comes, and
            // what went may not be counted yet (`shard` L7).
            if next.plan().room() < self.len() {
                continue;
            }
            let each = |hash, item, birth| self.migrate_item(&next, hash, item, birth, None);
            if table.rows().try_for_each(|row| row.close(|_| true, each)).is_err() {
                unreachable!("ItemSet: {} items do not fit into {next:?}", self.len());
            }
            if !next.plan().small {
                self.shards.hand_over(table.live_hashes());
            }
            break self.root.replace(table, next);
        };
        // Only here, under that lock, does the root leave a small table.
        let Ok(left) = left else { unreachable!("ItemSet: a small table has left the root") };
        // SAFETY: only the root led here; one leaves it (`link` M14).
        unsafe { left.retire(visit) };
        Ok(())
    }

    /// Moves on from the root, which has no prev, at once: to the successor that is prepared, else
    /// to one of `2^bits` places.
    fn start(&self, visit: &Visit<'_>, table: &Table, bits: u32) -> Result<(), AllocError> {
        if table.plan().small {
            return self.leave_at_once(visit, table, bits);
        }
        // Somebody may have been faster.
        if table.next().seems_empty() {
            self.prepare(visit, table, bits)?;
        }
        if !table.next().is_empty() {
            self.begin(table);
        }
        Ok(())
    }

    /// Prepares a migration and leaves it at that.
    #[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
    pub(super) fn prepare_for_test(&self, visit: &Visit<'_>, bits: u32) {
        let table = self.alone(visit).unwrap();
        assert!(self.prepare(visit, table, bits).unwrap());
    }

    /// Starts a migration and leaves it at that.
    #[cfg(all(test, not(quintet_shuttle)))]
    pub(super) fn start_for_test(&self, visit: &Visit<'_>, bits: u32) {
        let table = self.alone(visit).unwrap();
        self.start(visit, table, bits).unwrap();
        assert!(self.alone(visit).is_none());
    }

    fn next_bits(&self, table: &Table) -> u32 {
        let least = self.least_bits(table);
        let share = |_| self.settings.share();
        next_capacity(self.len(), table.plan().bits, share, least, SMALL_BITS)
    }

    /// log2 of the places of the smallest table that may follow this one: a set that has been large
    /// has no small tables any more.
    fn least_bits(&self, table: &Table) -> u32 {
        if table.plan().small { self.settings.min_bits() } else { self.settings.full_bits() }
    }

    /// The root, if it is alone.
    fn alone<'v>(&self, visit: &'v Visit<'_>) -> Option<&'v Table> {
        match self.pair(visit) {
            Ok(Some(Pair { new, old: None })) => Some(new),
            _ => None,
        }
    }

    /// Prepares a migration to `2^bits` places if nobody else does.
    fn try_prepare(&self, visit: &Visit<'_>, table: &Table, bits: u32) {
        if !table.election.stand() {
            return;
        }
        if table.plan().small {
            // G8: whoever cannot go on without will hear of it.
            let left = self.leave_at_once(visit, table, bits);
            return left.unwrap_or_else(|_| table.election.resign());
        }
        match self.prepare(visit, table, bits) {
            // A small table has no pages to wait for.
            Ok(_) => self.ready(visit, table),
            // G8: whoever cannot go on without will hear of it.
            Err(_) => table.election.resign(),
        }
    }

    /// The table is filling up: one thread prepares the next, the others go on.
    pub(super) fn consider_growing(&self, visit: &Visit<'_>) {
        if let Some(table) = self.alone(visit).filter(|table| table.is_nearly_full()) {
            self.try_prepare(visit, table, self.next_bits(table));
        }
    }

    /// Searches are long. A larger table helps only if this one is loaded; otherwise hashes
    /// collide, and patience must do.
    pub(super) fn consider_spreading(&self, visit: &Visit<'_>) {
        let loaded = |table: &&Table| self.len() > table.capacity() / 2;
        if let Some(table) = self.alone(visit).filter(loaded) {
            self.try_prepare(visit, table, table.plan().bits + 1);
        }
    }

    /// Much was removed: perhaps a smaller table will do.
    pub(super) fn consider_shrinking(&self, visit: &Visit<'_>) {
        let sparse = |table: &&Table| {
            table.plan().bits > self.least_bits(table) && self.len() < table.sparse_below()
        };
        if let Some(table) = self.alone(visit).filter(sparse) {
            self.try_prepare(visit, table, self.next_bits(table));
        }
    }

    /// An insert has found no place: afterwards there is another table, or none is under way any
    /// more.
    #[cold]
    pub(super) fn make_room(&self, visit: &Visit<'_>) -> Result<(), AllocError> {
        match self.pair(visit) {
            Err(_) => Ok(()),
            Ok(None) => self.first_table(visit, self.settings.first_bits),
            Ok(Some(Pair { new, old: None })) if new.is_full() => {
                self.start(visit, new, self.next_bits(new))
            }
            Ok(Some(Pair { old: None, .. })) => Ok(()),
            Ok(Some(Pair { old: Some(_), .. })) => {
                // ORDERING: Relaxed: a statistic.
                self.waited.fetch_add(1, Ordering::Relaxed);
                self.settle(visit).map(drop)
            }
        }
    }

    /// Moves to the least table for what is there when it begins.
    ///
    /// Twice at most: the first time a successor of another size may have been prepared. What is
    /// added meanwhile, by other threads or by the drop of what is freed on the way, may not fit
    /// into that size, and then the set is rebuilt into a larger one (G7): it has its reason.
    pub(super) fn shrink(&self, visit: &Visit<'_>) -> Result<(), AllocError> {
        for _ in 0..2 {
            let Some(table) = self.settle(visit)? else { return Ok(()) };
            let bits = self.settings.bits_for(self.len()).max(self.least_bits(table));
            if table.plan().bits <= bits {
                return Ok(());
            }
            self.start(visit, table, bits)?;
        }
        self.settle(visit).map(drop)
    }

    /// Ends the migration under way, and moves on for as long as `wanted` says so about the size
    /// then found.
    pub(super) fn resize(
        &self,
        visit: &Visit<'_>,
        bits: u32,
        wanted: fn(u32, u32) -> bool,
    ) -> Result<(), AllocError> {
        let bits = bits.max(self.settings.min_bits());
        loop {
            let Some(table) = self.settle(visit)? else {
                return if wanted(0, bits) { self.first_table(visit, bits) } else { Ok(()) };
            };
            if !wanted(table.plan().bits, bits) {
                return Ok(());
            }
            // Another size may have been prepared before: then it is moved on from that.
            self.start(visit, table, bits)?;
        }
    }
}
