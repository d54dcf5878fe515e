//! The nine invariants, verified on a map nobody writes to.
//!
//! | | |
//! |---|---|
//! | I1 | a key is live at most once, and in one tier |
//! | I2 | each bit of a base names a member with that back offset, and each member is named by its base |
//! | I3 | an empty cell is all zero |
//! | I4 | the taken bits of a base are the cells that are not empty (true by construction: they are computed) |
//! | I5 | no residue: no word held, no intent open, no deleted key, no seat of a dead peer |
//! | I6 | linked cells = live records; live + free = capacity |
//! | I7 | every link names a live record of that generation, with the same key and bucket, whose sum fits |
//! | I8 | an acknowledged add is found, or was overwritten, removed or delivered (the history says so, not this page) |
//! | I9 | a key is found by the token of the slice it lies in, and by any in an older tier |

use super::map::Map;
use super::word::{Cell, Owner, Phase, RecordState};
use crate::sync::Ordering;
use std::collections::HashSet;

/// What a check counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Entries.
    pub live: u32,
    /// Free records.
    pub free: u32,
    /// Bases, per slice.
    pub bases: [u32; 2],
    /// Members, per slice.
    pub members: [u32; 2],
}

/// The state of a cell, for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CellState {
    /// Nothing here.
    Empty,
    /// A base whose bucket nobody edits.
    Base,
    /// A base whose bucket is held by a seat.
    BaseInOperation(u32),
    /// A member whose base's bucket nobody edits.
    Member,
    /// A member whose base's bucket is held by a seat.
    MemberInOperation(u32),
    /// Bits no operation writes.
    Illegal,
}

impl Map<'_> {
    /// Names the state of the cell at `position` of `slice`, as of now.
    pub fn cell_state(&self, slice: u32, position: u32) -> CellState {
        let cell = self.memory.cell(self.memory.at(slice, position as usize));
        let owner = |bucket: u32| {
            (bucket < self.memory.geometry.buckets).then(|| self.memory.control(bucket).owner())
        };
        match cell.cbits.back() {
            _ if cell.is_empty() => CellState::Empty,
            _ if cell.cbits.is_base() => match owner(position) {
                Some(Some(seat)) => CellState::BaseInOperation(seat),
                Some(None) => CellState::Base,
                None => CellState::Illegal,
            },
            Some(back) => match position.checked_sub(back as u32).and_then(owner) {
                Some(Some(seat)) => CellState::MemberInOperation(seat),
                Some(None) => CellState::Member,
                None => CellState::Illegal,
            },
            None => CellState::Illegal,
        }
    }
}

pub(crate) fn check(map: &Map<'_>) -> Result<Report, String> {
    let mut report = Report::default();
    residue(map)?;
    let mut keys = HashSet::new();
    let mut linked = HashSet::new();
    for slice in 0..2 {
        for position in 0..map.memory.positions() {
            let cell = map.memory.cell(map.memory.at(slice, position));
            if cell.is_empty() {
                continue;
            }
            let base = home_of(map, slice, position, cell)?;
            let home = map.memory.bucket_of(base);
            if cell.key == 0 || cell.key == u32::MAX {
                return Err(format!("I5: deleted or no key at {slice}:{position}: {cell:?}"));
            }
            if !keys.insert((cell.key, home)) {
                return Err(format!("I1: key {:#x} of bucket {home} is there twice", cell.key));
            }
            if !linked.insert(cell.link.record) {
                return Err(format!("I6: record {} is linked twice", cell.link.record));
            }
            record(map, slice, position, home, cell)?;
            match base == position {
                true => report.bases[slice as usize] += 1,
                false => report.members[slice as usize] += 1,
            }
        }
    }
    for index in 0..map.memory.geometry.records {
        let word = map.memory.record(index).map_err(|error| error.to_string())?.state();
        match word.state() {
            Some(RecordState::Free) => report.free += 1,
            Some(RecordState::Live) if linked.contains(&index) => report.live += 1,
            _ => return Err(format!("I6: record {index} is {word:?} and not linked")),
        }
    }
    Ok(report)
}

/// I5: nothing is held, open or half recovered.
pub(crate) fn residue(map: &Map<'_>) -> Result<(), String> {
    for bucket in 0..map.memory.geometry.buckets {
        if let Some(seat) = map.memory.control(bucket).owner() {
            return Err(format!("I5: control word {bucket} is held by seat {seat}"));
        }
    }
    for number in 0..map.memory.geometry.seats {
        let seat = map.memory.seat(number).map_err(|error| error.to_string())?;
        if seat.phase() != Ok(Phase::Idle) {
            return Err(format!("I5: seat {number} is in phase {:?}", seat.phase()));
        }
        // A recoverer that died after freeing the seat leaves its name; the next one takes it over.
        if seat.recovery() != Owner::NOBODY && !map.peers.is_dead(seat.recovery()) {
            return Err(format!("I5: seat {number} is being recovered by {:?}", seat.recovery()));
        }
        if seat.owner() != Owner::NOBODY && map.peers.is_dead(seat.owner()) {
            return Err(format!("I5: seat {number} belongs to dead {:?}", seat.owner()));
        }
    }
    Ok(())
}

/// I2, I3: the home of the bucket that a cell belongs to, in its tier.
pub(crate) fn home_of(
    map: &Map<'_>,
    slice: u32,
    position: usize,
    cell: Cell,
) -> Result<usize, String> {
    let window = map.memory.geometry.window as usize;
    let wrong = |what: &str| Err(format!("{what} at {slice}:{position}: {cell:?}"));
    if cell.cbits.is_base() {
        if map.memory.bucket_of(position) >= map.memory.geometry.buckets as usize {
            return wrong("I2: base beyond the last bucket");
        }
        for offset in 1..32 {
            let member = map.memory.cell(map.memory.at(slice, position + offset));
            if cell.cbits.has(offset) && (offset >= window || member.cbits.back() != Some(offset)) {
                return wrong("I2: bit without member");
            }
        }
        return Ok(position);
    }
    let Some(back) = cell.cbits.back() else { return wrong("I3: neither empty, base nor member") };
    let Some(home) = position.checked_sub(back) else { return wrong("I2: base before the start") };
    let base = map.memory.cell(map.memory.at(slice, home));
    if back >= window || !base.cbits.is_base() || !base.cbits.has(back) {
        return wrong("I2: member without base");
    }
    Ok(home)
}

/// I7, I9.
fn record(
    map: &Map<'_>,
    slice: u32,
    position: usize,
    home: usize,
    cell: Cell,
) -> Result<(), String> {
    let record = map.memory.record(cell.link.record).map_err(|error| error.to_string())?;
    let word = record.state();
    if word.state() != Some(RecordState::Live) || word.generation() != cell.link.generation {
        return Err(format!("I7: {cell:?} at {slice}:{position} links to {word:?}"));
    }
    // ORDERING: Relaxed: nobody writes.
    let input = record.input().load(Ordering::Relaxed);
    if input != (cell.key as u64) << 32 | home as u64 {
        return Err(format!("I7: {cell:?} of bucket {home} links to a record of {input:#x}"));
    }
    let (value, tick) =
        (record.value().load(Ordering::Relaxed), record.tick().load(Ordering::Relaxed));
    if !super::sum::fits(input, value, tick, cell.link.generation) {
        return Err(format!("I7: the record of {cell:?} at {slice}:{position} is damaged"));
    }
    let token = super::word::InputHash::from_word(input).map_err(|error| error.to_string())?;
    match map.reader().get(token.augment(slice)) {
        Ok(Some(_)) => Ok(()),
        other => Err(format!("I9: token of {cell:?} in slice {slice} finds {other:?}")),
    }
}
