//! The places of a table: how one is found, dealt out, claimed and filled.

use super::core::Stop;
use super::row::Row;
use super::shard::{Locked, Shard};
use super::table::{Raw, Table, lane_of};
use super::word::{Birth, tag_of};
use crate::sync::Ordering;
use crate::sync::six::{LANE_BITS, Lanes};
use std::ptr;

/// The end of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sought {
    /// The place of what was sought, if it is here.
    pub(crate) place: Option<usize>,
    /// The item in it, else null.
    pub(crate) item: Raw,
    /// An emptied place of the same hash, if nothing was found.
    free: Option<usize>,
    /// The line that ended the search, and its unused places.
    end: usize,
    unused: Lanes,
    /// Lines that were looked at.
    pub(crate) looked_at: usize,
}

impl Table {
    /// Looks for an item of `hash` that is the `same`; null items are passed over. `None` if
    /// `may_follow` forbids to look at an item.
    #[inline(always)]
    pub(crate) fn find(
        &self,
        hash: u32,
        may_follow: impl Fn() -> bool,
        same: impl Fn(Raw) -> bool,
    ) -> Option<Raw> {
        self.search::<false>(hash, may_follow, same)
    }

    /// The same for one who will write: only places of this very hash, as under the lock. Others
    /// may have the same tag, and their items claim to be the same.
    pub(crate) fn find_exact(
        &self,
        hash: u32,
        may_follow: impl Fn() -> bool,
        same: impl Fn(Raw) -> bool,
    ) -> Option<Raw> {
        self.search::<true>(hash, may_follow, same)
    }

    #[inline(always)]
    fn search<const EXACT: bool>(
        &self,
        hash: u32,
        may_follow: impl Fn() -> bool,
        same: impl Fn(Raw) -> bool,
    ) -> Option<Raw> {
        let mut index = self.home(hash);
        loop {
            let line = self.line(index);
            let mut lanes = line.lanes_of(tag_of(hash));
            while !lanes.is_empty() {
                let item = line.first_item(lanes).load();
                // The hash of a place was written before its first item (`table` T1, T3), and
                // stays.
                let is_of = || self.hash_at(index << LANE_BITS | lanes.first()) == hash;
                if !item.is_null() && (!EXACT || is_of()) {
                    if !may_follow() {
                        return None;
                    }
                    if same(item) {
                        return Some(item);
                    }
                }
                lanes = lanes.rest();
            }
            if !line.unused().is_empty() {
                return Some(ptr::null_mut());
            }
            index = self.line_after(index);
        }
    }

    /// The same under the lock of the hash's shard: an emptied place stays empty until it is filled
    /// by the caller, and so does an unused one. What is found may be changed at once until it is
    /// closed (`table` T8).
    #[inline(always)]
    pub(crate) fn seek(
        &self,
        hash: u32,
        may_follow: impl Fn() -> bool,
        same: impl Fn(Raw) -> bool,
    ) -> Option<Sought> {
        let mut end = self.home(hash);
        let mut free = None;
        let mut looked_at = 1;
        loop {
            let line = self.line(end);
            let mut lanes = line.lanes_of(tag_of(hash));
            while !lanes.is_empty() {
                let place = end << LANE_BITS | lanes.first();
                lanes = lanes.rest();
                if self.hash_at(place) != hash {
                    continue;
                }
                let item = line.item(lane_of(place)).load();
                if item.is_null() {
                    free = free.or(Some(place));
                    continue;
                }
                if !may_follow() {
                    return None;
                }
                if same(item) {
                    let (place, free, unused) = (Some(place), None, Lanes::NONE);
                    return Some(Sought { place, item, free, end, unused, looked_at });
                }
            }
            let unused = line.unused();
            if !unused.is_empty() {
                let item = ptr::null_mut();
                return Some(Sought { place: None, item, free, end, unused, looked_at });
            }
            end = self.line_after(end);
            looked_at += 1;
        }
    }

    /// The same for an item that is known by its address, which nobody follows.
    #[inline(always)]
    pub(crate) fn seek_raw(&self, hash: u32, item: Raw) -> Sought {
        self.seek(hash, || true, |other| ptr::eq(other, item))
            .unwrap_or_else(|| unreachable!("nothing forbids to compare addresses"))
    }

    /// Puts another item, or null, in the place of one that was found, and returns the birth of
    /// that; `None` if it is there no longer. The caller holds the lock of its shard.
    #[inline(always)]
    pub(super) fn change(&self, place: usize, from: Raw, to: Raw, birth: Birth) -> Option<Birth> {
        // Before the item is changed, and written after (`table` T6).
        let before = self.birth(place);
        if !self.word(place).change_locked(from, to) {
            return None;
        }
        if !to.is_null() {
            self.set_birth(place, birth);
        }
        Some(before)
    }

    /// Closes the word of a place, and returns its item (`table` T8). The caller holds the lock of
    /// its shard.
    #[inline(always)]
    pub(super) fn close(&self, place: usize) -> Raw {
        self.word(place).close()
    }

    /// Puts another item, or null, in the place of one that is closed. The caller holds the lock of
    /// its shard.
    #[inline(always)]
    pub(super) fn settle(&self, place: usize, item: Raw, birth: Birth) {
        self.set_birth(place, birth);
        self.word(place).settle(item);
    }

    /// Adds an item that was sought in vain. The caller has held the lock of its shard since, or is
    /// `alone` with the table. Says whether the table is filling up; an error says that nothing has
    /// happened.
    #[inline(always)]
    pub(crate) fn place(
        &self,
        shard: &Shard,
        hash: u32,
        sought: &Sought,
        item: Raw,
        birth: Birth,
        alone: bool,
    ) -> Result<bool, Stop> {
        if let Some(place) = sought.free {
            self.row(place >> LANE_BITS).fill(Lanes::only(lane_of(place)), item, birth);
            return Ok(false);
        }
        self.add(shard, (sought.end, sought.unused), hash, item, birth, alone)
    }

    /// The same where the search has met nothing of that hash, and ended in a line with unused
    /// `lanes`.
    #[inline(always)]
    pub(super) fn add(
        &self,
        shard: &Shard,
        (line, lanes): (usize, Lanes),
        hash: u32,
        item: Raw,
        birth: Birth,
        alone: bool,
    ) -> Result<bool, Stop> {
        if self.is_own(line, hash)
            && self.try_claim(shard, self.row(line), lanes, hash, item, birth)
        {
            return Ok(false);
        }
        self.add_slowly(shard, hash, item, birth, alone)
    }

    /// Adds an item to its home, which is `row`. False if that cannot be: an item of its hash may
    /// be there (`at_once` O4), no lane is unused, or no credit is left. The caller holds the lock
    /// of its shard.
    #[inline(always)]
    pub(super) fn try_add(
        &self,
        shard: &Shard,
        row: Row<'_>,
        hash: u32,
        item: Raw,
        birth: Birth,
    ) -> bool {
        let (same, lanes) = row.line().lanes_of_and_unused(tag_of(hash));
        same.is_empty() && !lanes.is_empty() && self.try_claim(shard, row, lanes, hash, item, birth)
    }

    /// Fills the first of some unused lanes of a line in the shard's own range, if the shard has
    /// credit.
    #[inline(always)]
    fn try_claim(
        &self,
        shard: &Shard,
        row: Row<'_>,
        lanes: Lanes,
        hash: u32,
        item: Raw,
        birth: Birth,
    ) -> bool {
        let credit = self.credit_of(shard);
        if credit > 0 {
            row.claim(hash, lanes);
            shard.spend(credit);
            row.fill(lanes, item, birth);
        }
        credit > 0
    }

    /// Places that a shard may deal out (`table` T4).
    #[inline(always)]
    fn credit_of(&self, shard: &Shard) -> u32 {
        shard.credit(ptr::from_ref(self).cast(), self.batch - 1)
    }

    /// The same without credit, or in the range of another shard. All that can fail comes before
    /// the first change.
    #[inline(never)]
    fn add_slowly(
        &self,
        shard: &Shard,
        hash: u32,
        item: Raw,
        birth: Birth,
        alone: bool,
    ) -> Result<bool, Stop> {
        let (line, lanes, _owner) = self.room_for(hash, alone)?;
        let mut filling = false;
        match self.credit_of(shard) {
            0 => {
                let (slot, is_filling) = self.deal_batch(shard)?;
                filling = is_filling;
                if let Some(order) = &self.order {
                    let place = line << LANE_BITS | lanes.first();
                    // ORDERING: Release: partner is the walk's Acquire; the item follows.
                    order[slot].store(place as u32 + 1, Ordering::Release);
                }
            }
            credit => shard.spend(credit),
        }
        let row = self.row(line);
        row.claim(hash, lanes);
        row.fill(lanes, item, birth);
        Ok(filling)
    }

    /// The first line with unused lanes on the way of a hash, and the lock of its owner if that is
    /// another shard (`table` T3).
    fn room_for(&self, hash: u32, alone: bool) -> Result<(usize, Lanes, Option<Locked<'_>>), Stop> {
        let mut line = self.home(hash);
        loop {
            let lanes = self.line(line).unused();
            if !lanes.is_empty() {
                if alone || self.is_own(line, hash) {
                    return Ok((line, lanes, None));
                }
                let owner = self.lock_owner(line, hash)?;
                // The owner may have filled it meanwhile.
                let lanes = self.line(line).unused();
                if !lanes.is_empty() {
                    return Ok((line, lanes, Some(owner)));
                }
            }
            line = self.line_after(line);
        }
    }
}
