//! When a table is left, and how everybody moves on.
//!
//! ```text
//!  0 alone:       root = T, no successor
//!        │  consider, make_room, resize: T.next = S
//!        ▼
//!  0 prepared:    root = T, S is there and not used; every operation touches some of its pages (`migrate` M10)
//!        │  the last step is dealt out
//!        ▼
//!  1 migrating:   root = T, S takes what is new; every operation moves a chunk of T (help)
//!        │  the last chunk is done
//!        ▼
//!  2 assimilated: nothing is left in T
//!        │  promote: root = S, T is retired and its memory given back piece by piece
//!        ▼
//!  0 alone:       root = S
//! ```
//!
//! **G1.** T.next is set once, by exchange, and only while the root is T: so S has no successor
//! before T is done, and there are never more than two tables with entries.
//! **G2.** Only a table that is the root grows. The check holds until the exchange, since the root
//! leaves T only for T.next.
//! **G3.** An insert that finds no slot in S while T is not done moves the rest of T itself and
//! begins again at the root.
//! **G4.** A failed allocation leaves everything as it was. The operation that needs the table gets
//! the error; one that only saw that the table is filling up goes on.
//! **G5.** Until the successor is ready, inserts go on in T, as those do that have not seen it. One
//! that finds no place there does not wait.

use super::core::{Core, Due, Stop};
use super::moving::Mover;
use super::probe::Slot;
use super::table::{Plan, Table, load};
use super::word::{Secrets, Shape};
use crate::migrate::{MOST_SHRINK, SMALL_BITS, next_capacity};
use crate::reclaim::{Access, Section};
use crate::region::AllocError;
use crate::sync::Ordering;

/// A table is left for a smaller one when fewer than one in so many of the entries that it may have
/// are left: then they fit a fourth of its size, the most that `pace` M7 allows, and half fill it.
/// Smaller steps would move three times as many entries on the way down.
const EMPTIED: usize = 2 * MOST_SHRINK;

impl Core {
    /// Moves one chunk of `table`, if it is being migrated (`migrate` M3).
    #[cold]
    pub(super) fn help(&self, section: &Section<'_>, table: &Table) -> Result<(), Stop> {
        let Some(next) = table.next().follow(section)? else { return Ok(()) };
        if next.touch_ahead() {
            return Ok(());
        }
        if let Some(claim) = table.work.claim() {
            if claim.again {
                // ORDERING: Relaxed: a statistic.
                self.again.fetch_add(1, Ordering::Relaxed);
            }
            let moved = self.with_mover(section, table, next, |all| all.move_chunk(claim.chunk))?;
            next.add_used(moved);
            if !table.work.finish(claim.chunk) || !table.work.is_finished() {
                return Ok(());
            }
        }
        self.promote(section, table);
        Ok(())
    }

    /// Moves something from a table to its successor, with the number of this seat in hand (`desc`
    /// WL14.4).
    fn with_mover<R>(
        &self,
        section: &Section<'_>,
        from: &Table,
        to: &Table,
        work: impl FnOnce(&Mover<'_>) -> Result<R, AllocError>,
    ) -> Result<R, AllocError> {
        let hand = self.descriptors.hand(section.books())?;
        let seats = || self.domain.seats();
        let descriptors = &self.descriptors;
        let chunk = self.settings.quota;
        let done = work(&Mover { from, to, descriptors, hand: &hand, chunk, seats: &seats });
        hand.put_back();
        done
    }

    /// An operation has found no cell for the special value that it is to store under the K `k`
    /// (`cells` WL13.5): afterwards the slot is MOVED, and the operation goes on in the successor.
    ///
    /// If there is none it is made, as a rule of the same size; but only the root grows (G2): if
    /// `table` is not the root, what is under way is ended first.
    #[cold]
    pub(super) fn leave_full_cells(
        &self,
        section: &Section<'_>,
        table: &Table,
        slot: Slot<'_>,
        k: u64,
    ) -> Result<(), Stop> {
        if table.next().follow(section)?.is_none() {
            if !self.root.leads_to(table) {
                self.settle(section)?;
                return Err(Stop::Restart);
            }
            let plan = table.plan();
            let bits = self.next_bits(table);
            self.start(section, table, bits, plan.seed, plan.reseeded && bits == plan.bits)?;
        }
        let next = Self::successor(section, table)?;
        let moved = self.with_mover(section, table, next, |one| one.move_slot(slot, k))?;
        next.add_used(usize::from(moved));
        Ok(())
    }

    /// Moves the root on from a table of which everything is done (`core` WL11).
    fn promote(&self, section: &Section<'_>, table: &Table) {
        let Some(left) = self.root.advance(table, table.next()) else { return };
        // ORDERING: Relaxed: a statistic.
        self.migrations.fetch_add(1, Ordering::Relaxed);
        // SAFETY: only the root has led to the table, since its predecessor, if it had one, was
        // left before (G1); one leaves it (`link` M14).
        unsafe { left.retire(section) };
    }

    /// Migrates to the end whatever is under way. Returns the root then seen.
    pub(super) fn settle<'s>(&self, section: &'s Section<'_>) -> Result<Option<&'s Table>, Stop> {
        loop {
            let Some(table) = self.root.follow(section)? else { return Ok(None) };
            if table.next().follow(section)?.is_none() {
                return Ok(Some(table));
            }
            self.help(section, table)?;
        }
    }

    /// The first table of an empty map.
    pub(super) fn first_table(&self, section: &Section<'_>, bits: u32) -> Result<(), AllocError> {
        let seed = self.settings.first_seed();
        let table = self.make(section, bits, Secrets::of(seed), seed, false)?;
        // Who comes late drops its own.
        drop(self.root.set_once(table));
        Ok(())
    }

    fn make(
        &self,
        section: &Section<'_>,
        bits: u32,
        secrets: Secrets,
        seed: u64,
        reseeded: bool,
    ) -> Result<Box<Table>, AllocError> {
        let plan = Plan {
            bits,
            secrets,
            seed,
            reseeded,
            pages: self.settings.pages,
            // ORDERING: Relaxed: only tells tables apart.
            id: self.made.fetch_add(1, Ordering::Relaxed),
            birth: section.era(),
        };
        Table::try_new(plan, self.settings.max_load, self.settings.quota)
    }

    /// Gives the root a successor of size `2^bits`, unless it has one (G1).
    pub(super) fn start(
        &self,
        section: &Section<'_>,
        table: &Table,
        bits: u32,
        seed: u64,
        reseeded: bool,
    ) -> Result<(), AllocError> {
        let next = self.make(section, bits, table.secrets(), seed, reseeded)?;
        // Who comes late drops its own.
        drop(table.next().set_once(next));
        Ok(())
    }

    /// Begins a migration if it is time. Failing to is no error: whoever cannot go on without will
    /// hear of it (G4).
    #[cold]
    #[inline(never)]
    pub(super) fn consider(&self, access: &impl Access, due: Due) {
        let section = access.section();
        let Ok(Some(table)) = self.root.follow(&section) else { return };
        let wanted = match due {
            Due::Nothing => false,
            Due::Growing => table.used() >= table.threshold(),
            Due::Shrinking => {
                let few = self.len().saturating_mul(EMPTIED) < table.threshold();
                few && self.next_bits(table) < table.plan().bits
            }
        };
        if !wanted || !table.next().seems_empty() {
            return;
        }
        // One thread prepares the next table, the others go on; late ones do not wait for it
        // (`work` M6).
        if table.election.stand() || table.used() >= table.hard_limit() {
            let plan = table.plan();
            let bits = self.next_bits(table);
            let reseeded = plan.reseeded && bits == plan.bits;
            if self.start(&section, table, bits, plan.seed, reseeded).is_err() {
                table.election.resign();
            }
        }
    }

    fn next_bits(&self, table: &Table) -> u32 {
        let plan = table.plan();
        let load = |bits| load(bits, self.settings.max_load);
        next_capacity(self.len(), plan.bits, load, Shape::MIN_BITS, SMALL_BITS)
    }

    /// An insert has found no slot: afterwards the table has a successor, or takes more, or is no
    /// longer the root.
    #[cold]
    pub(super) fn make_room(&self, section: &Section<'_>, table: &Table) -> Result<(), Stop> {
        if !self.root.leads_to(table) {
            // G3.
            // ORDERING: Relaxed: a statistic.
            self.waited.fetch_add(1, Ordering::Relaxed);
            self.settle(section)?;
            return Err(Stop::Restart);
        }
        let plan = table.plan();
        if !table.is_sparse(self.len()) {
            let bits = self.next_bits(table).max(plan.bits + 1);
            return Ok(self.start(section, table, bits, plan.seed, false)?);
        }
        if plan.reseeded {
            table.set_flooded();
            return Ok(());
        }
        let seed = self.settings.next_seed(plan.seed);
        Ok(self.start(section, table, plan.bits, seed, true)?)
    }

    /// Sees to it that the table has at least size `2^bits`.
    pub(super) fn grow_to(&self, access: &impl Access, bits: u32) -> Result<(), AllocError> {
        self.resize(access, bits.max(Shape::MIN_BITS), |now, bits| now < bits)
    }

    /// Sees to it that the table has at most size `2^bits`.
    pub(super) fn shrink_to(&self, access: &impl Access, bits: u32) -> Result<(), AllocError> {
        self.resize(access, bits.max(Shape::MIN_BITS), |now, bits| now > bits)
    }

    /// Ends the migration under way, and does one more if `wanted` says so about the size then
    /// found.
    fn resize(
        &self,
        access: &impl Access,
        bits: u32,
        wanted: fn(u32, u32) -> bool,
    ) -> Result<(), AllocError> {
        let section = access.section();
        loop {
            match self.try_resize(&section, bits, wanted) {
                Ok(()) => return Ok(()),
                Err(Stop::Restart) => {}
                Err(Stop::Alloc(error)) => return Err(error),
            }
        }
    }

    fn try_resize(
        &self,
        section: &Section<'_>,
        bits: u32,
        wanted: fn(u32, u32) -> bool,
    ) -> Result<(), Stop> {
        let Some(table) = self.settle(section)? else {
            return if wanted(0, bits) { Ok(self.first_table(section, bits)?) } else { Ok(()) };
        };
        if wanted(table.plan().bits, bits) {
            self.start(section, table, bits, table.plan().seed, false)?;
            self.settle(section)?;
        }
        Ok(())
    }
}
