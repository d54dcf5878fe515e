//! When a table is left, and how everybody moves on.
//!
//! ```text
//!  0 alone:       root = T, no successor
//!        │  prepare: T.next = S
//!        ▼
//!  0 prepared:    root = T, S is there and not used; every change touches some of its pages (`migrate` M10)
//!        │  the last step is dealt out: T is left
//!        ▼
//!  1 migrating:   root = T, S takes what is new; every change moves two chunks of T (help)
//!        │  the last chunk is done
//!        ▼
//!  0 alone:       root = S, T is retired and its memory given back piece by piece
//!
//!  small T:       under its lock all of it is copied into S, and the root is replaced; T stays as it was
//! ```
//!
//! **G1.** A chunk is a group of buckets, inside of one shard's range, and is moved under that
//! shard's lock. With the first chunk of a range goes the shard's list. An entry is moved by where
//! it lies, whatever its home: a chunk depends on no other.
//! **G2.** Whoever takes a shard's lock after somebody who has seen T left sees that too, and adds
//! nothing to T: what a chunk has lost it does not get back. An entry is put into S before its lane
//! in T is cleared.
//! **G3.** Hashes are made of copies, before the lock is taken: they are user code. Under the lock
//! a bucket is moved if its header is the one that was seen: its lanes have the same keys, and what
//! their values are now is moved. Otherwise it is looked at again. As nothing is added to T (G2),
//! and an overwrite of T changes a header while T is left only, that ends.
//! **G4.** A hash that is another one than when its key was put in leads to a wrong home, but not
//! out of its shard ([`Table::hash_in`]): the lock is the right one in any case.
//! **G5.** T.next is set once, by exchange, and only while the root is T; the root leaves T for
//! T.next only. So there are never more than two tables with entries.
//! **G6.** T is empty when every chunk is done, and whoever sees that moves the root on: nobody's
//! sleep outside of a lock stops the others (`migrate` M3).
//! **G7.** The next size follows from the live entries: larger or smaller; never because of a
//! single crowded shard while the table is less than half full (its list takes the rest).
//! **G8.** A failed allocation leaves everything as it was. One who needs the table gets the error;
//! one that only saw that the table is filling up goes on, and S is never full.
//! **G9.** Who still reads a small table that was left began before that, and answers with what
//! held when it was left. Who wants to change it finds that it is not the root (`core` C4). A map
//! that has left its small tables does not come back to them.

use super::bucket::{Header, MOST_LANES};
use super::core::{Core, Due, Stop};
use super::plain::{Entry, Plain, Shape};
use super::shard::{Row, row};
use super::table::{GROUP, Plan, Table};
use crate::migrate::Restart;
use crate::reclaim::Visit;
use crate::region::AllocError;
use crate::sync::{Arc, MODEL, Ordering};
use std::hash::{BuildHasher, Hash};

/// Tables of fewer than so many buckets, as log2, grow by four.
const BY_FOUR: u32 = if MODEL { 0 } else { 11 };

/// A bucket of a chunk: its header, and the hashes of the lanes that it names.
type Seen = (Header, [u64; MOST_LANES]);

impl<K: Plain + Hash, V: Plain, S: BuildHasher> Core<K, V, S> {
    /// Helps, unless that needs memory that cannot be had: an operation that does not need it goes
    /// on (G8).
    #[cold]
    #[inline(never)]
    pub(super) fn help_on_the_way(
        &self,
        visit: &Visit<'_>,
        table: &Table<K, V>,
    ) -> Result<(), Restart> {
        if !table.is_left() {
            let Some(next) = table.next().follow(visit)? else { return Ok(()) };
            if next.touch_ahead() {
                return Ok(());
            }
            table.leave();
        }
        match self.help(visit, table) {
            Err(Stop::Restart) => Err(Restart),
            _ => Ok(()),
        }
    }

    /// Moves a share of a table that is left.
    fn help(&self, visit: &Visit<'_>, table: &Table<K, V>) -> Result<(), Stop> {
        let Some(next) = table.next().follow(visit)? else { return Ok(()) };
        for _ in 0..self.settings.quota {
            let Some(claim) = table.work.claim() else {
                self.promote(visit, table);
                return Ok(());
            };
            if claim.again {
                // ORDERING: Relaxed: a statistic.
                self.again.fetch_add(1, Ordering::Relaxed);
            }
            self.move_chunk(table, next, claim.chunk)?;
            if table.work.finish(claim.chunk) && table.work.is_finished() {
                self.promote(visit, table);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Moves one chunk (G1).
    fn move_chunk(
        &self,
        from: &Table<K, V>,
        to: &Table<K, V>,
        chunk: usize,
    ) -> Result<(), AllocError> {
        let first = chunk * GROUP;
        let shard = from.shard_of_bucket(first);
        let is_first = first == 0 || from.shard_of_bucket(first - 1) != shard;
        loop {
            let known = self.look_at_chunk(from, first, shard);
            let shard_lock = from.shard_at(shard).lock();
            let mut as_seen = true;
            for (number, (header, hashes)) in (first..).zip(&known) {
                let bucket = from.bucket(number);
                // Under the same header the lanes have the same keys (`at_home` H1).
                if bucket.own_header() != *header {
                    as_seen = false;
                    continue;
                }
                for lane in bucket.used(*header) {
                    if let Err(error) = to.put_moved(hashes[lane], &bucket.own_entry(lane)) {
                        // What is in S leaves T (G2, G8).
                        let gone = bucket.used(*header).take_while(|other| *other != lane);
                        gone.for_each(|other| bucket.clear(other));
                        return Err(error);
                    }
                }
                bucket.clear_all(*header);
            }
            if is_first {
                Self::move_list(from, to, shard)?;
            }
            drop(shard_lock);
            if as_seen {
                return Ok(());
            }
        }
    }

    /// The headers of a chunk, and the hashes of what they name (G3).
    #[inline(always)]
    fn look_at_chunk(&self, from: &Table<K, V>, first: usize, shard: usize) -> [Seen; GROUP] {
        let mut known = [(Header::NONE, [0; MOST_LANES]); GROUP];
        for (place, seen) in known.iter_mut().enumerate() {
            let bucket = from.bucket(first + place);
            let (header, hashes) = seen;
            *header = bucket.header();
            for lane in bucket.used(*header) {
                let Ok(entry) = bucket.read(*header, lane) else {
                    // Another look later: nobody finds such a header who has the lock.
                    *header = Header::BUSY;
                    break;
                };
                // SAFETY: read at one moment.
                let key = unsafe { Shape::<K, V>::key(&entry) };
                hashes[lane] = from.hash_in(shard, self.hash(&key));
            }
        }
        known
    }

    /// Moves the list of a shard, whose lock is taken.
    fn move_list(from: &Table<K, V>, to: &Table<K, V>, shard: usize) -> Result<(), AllocError> {
        let list = from.spill_of(shard);
        let (mut slot, mut one) = (0, [(0, 0, Entry::default())]);
        while list.count() > 0 && list.some(slot, |_| true, &mut one) > 0 {
            let (found, hash, entry) = one[0];
            to.put(hash, &entry)?;
            list.clear(found);
            slot = found + 1;
        }
        Ok(())
    }

    /// Moves the root on from a table that is empty (G6).
    fn promote(&self, visit: &Visit<'_>, table: &Table<K, V>) {
        let Some(left) = self.root.advance(table, table.next()) else { return };
        // ORDERING: Relaxed: a statistic.
        self.migrations.fetch_add(1, Ordering::Relaxed);
        // SAFETY: only the root has led to the table, since its predecessor, if it had one, was
        // left before (G5); one leaves it (`link` M14).
        unsafe { left.retire(visit) };
    }

    /// Migrates to the end whatever is under way. Returns the root then seen.
    pub(super) fn settle<'v>(
        &self,
        visit: &'v Visit<'_>,
    ) -> Result<Option<&'v Table<K, V>>, AllocError> {
        loop {
            match self.try_settle(visit) {
                Ok(table) => return Ok(table),
                Err(Stop::Alloc(error)) => return Err(error),
                Err(_) => {}
            }
        }
    }

    fn try_settle<'v>(&self, visit: &'v Visit<'_>) -> Result<Option<&'v Table<K, V>>, Stop> {
        loop {
            let Some(table) = self.root.follow(visit)? else { return Ok(None) };
            if table.next().follow(visit)?.is_none() {
                return Ok(Some(table));
            }
            // The pages are not waited for.
            table.leave();
            self.help(visit, table)?;
        }
    }

    /// An empty table of `2^bits` buckets, or of the least number.
    fn table(&self, visit: &Visit<'_>, bits: u32) -> Result<Box<Table<K, V>>, AllocError> {
        let bits = bits.max(self.settings.min_bits());
        let small = bits < self.settings.full_bits();
        let shards: Row =
            if small { Arc::new(row(0)) } else { self.row.share(|| row(self.settings.shard_bits)) };
        let plan = Plan {
            bits,
            shard_bits: if small { 0 } else { self.settings.shard_bits },
            small,
            max_load: self.settings.max_load,
            pages: self.settings.pages,
            birth: visit.era(),
        };
        Table::try_new(plan, shards)
    }

    /// The first table of an empty map.
    pub(super) fn first_table(&self, visit: &Visit<'_>, bits: u32) -> Result<(), AllocError> {
        let table = self.table(visit, bits)?;
        // Who comes late drops its own.
        drop(self.root.set_once(table));
        Ok(())
    }

    /// Gives the root a successor of `2^bits` buckets, unless it has one; from a small one it moves
    /// on at once (G5, G9).
    pub(super) fn start(
        &self,
        visit: &Visit<'_>,
        table: &Table<K, V>,
        bits: u32,
    ) -> Result<(), AllocError> {
        if table.plan().small {
            return self.leave_at_once(visit, table, bits);
        }
        if !self.root.leads_to(table) {
            return Ok(());
        }
        let next = self.table(visit, bits.max(self.settings.full_bits()))?;
        // Who comes late drops its own.
        drop(table.next().set_once(next));
        Ok(())
    }

    /// Copies a small table into another one, and puts that in its place, under its only lock (G9).
    fn leave_at_once(
        &self,
        visit: &Visit<'_>,
        table: &Table<K, V>,
        bits: u32,
    ) -> Result<(), AllocError> {
        let only = table.shard_at(0);
        let left = loop {
            let bits = bits.max(self.settings.bits_for(only.live()));
            let next = self.table(visit, bits)?;
            let _lock = only.lock();
            if !self.root.leads_to(table) {
                return Ok(());
            }
            // What was added before the lock may be too much.
            if next.capacity() < only.live() {
                continue;
            }
            next.shards().for_each(|shard| shard.set_live(0));
            for (hash, entry) in table.all() {
                next.put(hash, &entry)?;
                next.shard(hash).count_in();
            }
            break self.root.replace(table, next);
        };
        // Only here, under that lock, does the root leave a small table.
        let Ok(left) = left else { unreachable!("CopyMap: a small table has left the root") };
        // ORDERING: Relaxed: a statistic.
        self.migrations.fetch_add(1, Ordering::Relaxed);
        // SAFETY: only the root led here; one leaves it (`link` M14).
        unsafe { left.retire(visit) };
        Ok(())
    }

    /// Begins a migration if it is time. Failing to is no error (G8).
    #[cold]
    #[inline(never)]
    pub(super) fn consider(&self, visit: &Visit<'_>, due: Due) {
        let Ok(Some(table)) = self.root.follow(visit) else { return };
        if !table.next().seems_empty() {
            return;
        }
        let (used, bits, live) = (table.used(), table.plan().bits, Self::live(table));
        let fitting = self.settings.bits_for(live.saturating_mul(20) / 11);
        let wanted = match due {
            Due::Nothing => return,
            Due::Filling if used <= table.capacity() => return,
            // While a table is small, moving costs more than memory does.
            Due::Filling => fitting.max(bits + if bits < BY_FOUR { 2 } else { 1 }),
            Due::Crowded if !table.is_crowded(used) => return,
            Due::Crowded => fitting.max(bits + 1),
            Due::Emptying if live >= table.capacity() / 8 => return,
            Due::Emptying => fitting.max(bits.saturating_sub(2)).max(self.least_bits(table)),
        };
        // One thread prepares the next table, the others go on (`work` M6).
        if wanted != bits && table.election.stand() && self.start(visit, table, wanted).is_err() {
            table.election.resign();
        }
    }

    /// log2 of the buckets of the smallest table that may follow this one.
    fn least_bits(&self, table: &Table<K, V>) -> u32 {
        if table.plan().small { self.settings.min_bits() } else { self.settings.full_bits() }
    }

    /// Sees to it that so many entries fit.
    pub(super) fn grow_for(&self, visit: &Visit<'_>, entries: usize) -> Result<(), AllocError> {
        let bits = self.settings.bits_for(entries);
        loop {
            let Some(table) = self.settle(visit)? else {
                return self.first_table(visit, bits);
            };
            if table.plan().bits >= bits {
                return Ok(());
            }
            self.start(visit, table, bits)?;
        }
    }

    /// Moves to the least table for what is there when it begins. Twice at most: the first time a
    /// successor of another size may have been prepared.
    pub(super) fn shrink(&self, visit: &Visit<'_>) -> Result<(), AllocError> {
        for _ in 0..2 {
            let Some(table) = self.settle(visit)? else { return Ok(()) };
            let bits = self.settings.bits_for(Self::live(table)).max(self.least_bits(table));
            if table.plan().bits <= bits {
                return Ok(());
            }
            self.start(visit, table, bits)?;
        }
        self.settle(visit).map(drop)
    }

    /// Prepares a migration to `2^bits` buckets, and leaves it at that.
    #[cfg(all(test, not(quintet_shuttle)))]
    pub(super) fn start_for_test(&self, visit: &Visit<'_>, bits: u32) {
        let Ok(Some(table)) = self.root.follow(visit) else { return };
        self.start(visit, table, bits).unwrap();
        if !table.plan().small {
            table.leave();
        }
    }
}
