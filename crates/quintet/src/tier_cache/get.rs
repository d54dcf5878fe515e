//! Reading.
//!
//! A match of key and place in one 16-byte load is a hit at that instant: no version, no wait. The record then
//! certifies the value: its generation is the cell's before and after the copy. Only a miss looks at the
//! control word: it must be unlocked and the same on both sides of the search.

use super::MapError;
use super::map::Map;
use super::step::{Point, crash_point};
use super::wait::Wait;
use super::word::{Cbits, Cell, Link, Probe, RecordWord};
use crate::sync::{Ordering, fence};
use std::time::Duration;

/// A hit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) slice: u32,
    pub(crate) value: u64,
}

enum Scan {
    Hit(Found),
    Nothing,
    /// A cell named a record that has moved on: the cell is outdated by now.
    Stale,
}

/// Looks a key up. `may_recover`: the caller can write, so it completes a dead owner's work if it has to wait for it.
#[inline]
pub(crate) fn look_up(
    map: &Map<'_>,
    probe: Probe,
    timeout: Duration,
    may_recover: bool,
) -> Result<Option<Found>, MapError> {
    map.verify(probe.input)?;
    match scan(map, probe) {
        Scan::Hit(found) => Ok(Some(found)),
        _ => look_up_slow(map, probe, timeout, may_recover),
    }
}

#[cold]
fn look_up_slow(
    map: &Map<'_>,
    probe: Probe,
    timeout: Duration,
    may_recover: bool,
) -> Result<Option<Found>, MapError> {
    let mut wait = Wait::new(timeout);
    let home = probe.input.bucket();
    loop {
        crash_point!(Point::ReadControl);
        let before = map.memory.control(home);
        let scanned = scan(map, probe);
        crash_point!(Point::ReadAgain);
        // ORDERING: the cell loads are Acquire: a scan that saw a store under the word sees the word locked or one version on.
        let after = map.memory.control(home);
        let quiet = before == after && before.owner().is_none();
        match (scanned, quiet) {
            (Scan::Hit(found), _) => return Ok(Some(found)),
            (Scan::Nothing, true) => return Ok(None),
            // Under a quiet word no cell of the bucket names a record that has moved on.
            (Scan::Stale, true) => return Err(MapError::Corrupt("cell without record")),
            (_, false) => match after.owner() {
                Some(owner) if may_recover => map.wait_for(owner, &mut wait)?,
                Some(_) => wait.pause()?,
                None => {}
            },
        }
    }
}

#[inline(always)]
fn scan(map: &Map<'_>, probe: Probe) -> Scan {
    let home = probe.input.bucket() as usize;
    let key = probe.input.hash();
    for slice in probe.first..=probe.last {
        crash_point!(Point::ReadCell);
        let base = map.memory.cell(map.memory.at(slice, home));
        if !base.cbits.is_base() {
            continue;
        }
        if base.key == key {
            return certify(map, probe, slice, base);
        }
        let mut members = base.cbits.bits() & !1;
        while members != 0 {
            let offset = members.trailing_zeros() as usize;
            members &= members - 1;
            crash_point!(Point::ReadCell);
            let cell = map.memory.cell(map.memory.at(slice, home + offset));
            // The back offset in the same load: a neighbour's member may have an equal key.
            if cell.key == key && cell.cbits == Cbits::member(offset) {
                return certify(map, probe, slice, cell);
            }
        }
    }
    Scan::Nothing
}

#[inline(always)]
fn certify(map: &Map<'_>, probe: Probe, slice: u32, cell: Cell) -> Scan {
    let Link { record, generation } = cell.link;
    crash_point!(Point::ReadRecord);
    let Ok(record) = map.memory.record(record) else { return Scan::Stale };
    if record.state().generation() != generation {
        return Scan::Stale;
    }
    crash_point!(Point::ReadValue);
    // ORDERING: Relaxed: certified by the second look below.
    let (input, value) =
        (record.input().load(Ordering::Relaxed), record.value().load(Ordering::Relaxed));
    // ORDERING: Acquire fence: if either word came from a later use of the record, the load below sees a later
    // generation. Partner: the Release fence of `prepare_record`.
    fence(Ordering::Acquire);
    crash_point!(Point::ReadAgain);
    let again = RecordWord(record.word().load(Ordering::Relaxed));
    if again.generation() != generation || input != probe.input.word() {
        return Scan::Stale;
    }
    Scan::Hit(Found { slice, value })
}
