//! Reading.
//!
//! A match of key and place in one 16-byte load is a hit at that instant: no version, no wait. The
//! record then certifies the value: its generation is the cell's before and after the copy. Only a
//! miss looks at the control word: it must be unlocked and the same on both sides of the search.
//!
//! Tiers are searched from young to old. A key that moves down is linked below before it is
//! unlinked above, so whoever does not find it any more in the one finds it in the next; one that
//! moves up may be missed, and the control word tells.

use super::MapError;
use super::map::Map;
use super::memory::Record;
use super::step::{Point, crash_point};
use super::sum;
use super::wait::Wait;
use super::word::{Cbits, Cell, InputHash, Link, Probe, RecordWord};
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

/// Looks a key up. `may_recover`: the caller can write, so it completes a dead owner's work if it
/// has to wait for it.
///
/// The common case, a hit in a base, is small and inlined: what bounds random lookups in a large
/// map is how many of them the processor has under way at once, hence the number of instructions
/// between their cache misses.
#[inline(always)]
pub(crate) fn look_up(
    map: &Map<'_>,
    probe: Probe,
    timeout: &Duration,
    may_recover: bool,
) -> Result<Option<Found>, MapError> {
    if map.verifies {
        return look_up_slow(map, probe, timeout, may_recover);
    }
    if let Scan::Hit(found) = scan_bases::<false>(map, probe) {
        return Ok(Some(found));
    }
    match scan_members::<false>(map, probe.input, probe.first, probe.last) {
        (value, slice @ (0 | 1)) => Ok(Some(Found { slice, value })),
        _ => look_up_slow(map, probe, timeout, may_recover),
    }
}

#[cold]
#[inline(never)]
fn look_up_slow(
    map: &Map<'_>,
    probe: Probe,
    timeout: &Duration,
    may_recover: bool,
) -> Result<Option<Found>, MapError> {
    map.verify(probe.input)?;
    let mut wait = Wait::new(*timeout);
    let home = probe.input.bucket();
    loop {
        crash_point!(Point::ReadControl);
        let before = map.memory.control(home);
        let scanned =
            if map.verifies { scan::<true>(map, probe) } else { scan::<false>(map, probe) };
        crash_point!(Point::ReadAgain);
        // ORDERING: the cell loads are Acquire, and the fence makes the looks at generations so: a
        // scan that saw a store under the word sees the word locked or one version on. Partner: the
        // Release stores under the word.
        fence(Ordering::Acquire);
        let after = map.memory.control(home);
        let quiet = before == after && before.owner().is_none();
        match (scanned, quiet) {
            (Scan::Hit(found), _) => return Ok(Some(found)),
            (Scan::Nothing, true) => return Ok(None),
            // Under a quiet word no cell of the bucket names a record that has moved on or is
            // damaged.
            (Scan::Stale, true) => return Err(MapError::Corrupt("cell without its record")),
            (_, false) => match after.owner() {
                Some(owner) if may_recover => map.wait_for(owner, &mut wait)?,
                Some(_) => wait.pause()?,
                None => {}
            },
        }
    }
}

/// The whole bucket, in the slices of the probe. `VERIFIES`: the sums of records too.
fn scan<const VERIFIES: bool>(map: &Map<'_>, probe: Probe) -> Scan {
    match scan_bases::<VERIFIES>(map, probe) {
        Scan::Nothing => {
            match scan_members::<VERIFIES>(map, probe.input, probe.first, probe.last) {
                (value, slice @ (0 | 1)) => Scan::Hit(Found { slice, value }),
                (_, STALE) => Scan::Stale,
                _ => scan_older::<VERIFIES>(map, probe.input),
            }
        }
        known => known,
    }
}

/// The tiers but the first, one after the other, both slices.
fn scan_older<const VERIFIES: bool>(map: &Map<'_>, input: InputHash) -> Scan {
    let memory = map.memory;
    for tier in 1..memory.tiers() {
        let home = memory.home(tier, input.bucket());
        for slice in 0..2 {
            crash_point!(Point::ReadCell);
            let base = memory.cell(memory.at(slice, home));
            let mut offsets = base.cbits.members() | base.cbits.is_base() as u64;
            while offsets != 0 {
                let offset = offsets.trailing_zeros() as usize;
                offsets &= offsets - 1;
                let cell = match offset {
                    0 => base,
                    _ => {
                        crash_point!(Point::ReadCell);
                        memory.cell(memory.at(slice, home + offset))
                    }
                };
                let ours = offset == 0 || cell.cbits == Cbits::member(offset);
                if ours && cell.key == input.hash() {
                    return certify::<VERIFIES>(map, input, slice, cell.link);
                }
            }
        }
    }
    Scan::Nothing
}

/// A bucket beyond the map holds nothing.
#[inline(always)]
fn scan_bases<const VERIFIES: bool>(map: &Map<'_>, probe: Probe) -> Scan {
    let home = probe.input.bucket() as usize;
    let (mask, base) = (Cell::KEY_AND_BASE, Cell::base_of(probe.input.hash()));
    if probe.first == probe.last {
        crash_point!(Point::ReadCell);
        let cell = map.memory.cell(map.memory.at(probe.first, home));
        return match cell.words().0 & mask == base {
            true => certify::<VERIFIES>(map, probe.input, probe.first, cell.link),
            false => Scan::Nothing,
        };
    }
    // Which slice is a coin toss that no branch could predict.
    let Some(selected) = map.memory.select(home, mask, base) else { return Scan::Nothing };
    match selected.second() {
        Some(link) => {
            certify::<VERIFIES>(map, probe.input, selected.index(), Link::from_word(link))
        }
        None => Scan::Nothing,
    }
}

// What `scan_members` returns beside a value, which fits two registers: the slice of a hit, or one
// of these.
const NOTHING: u32 = 2;
const STALE: u32 = 3;

/// The members of the bases as they are now, in the slices `first` to `last` (apart, so that all
/// fits registers).
#[inline(never)]
fn scan_members<const VERIFIES: bool>(
    map: &Map<'_>,
    input: InputHash,
    first: u32,
    last: u32,
) -> (u64, u32) {
    match map.memory.member(input, first, last) {
        Some((slice, link)) => match certify::<VERIFIES>(map, input, slice, link) {
            Scan::Hit(found) => (found.value, found.slice),
            _ => (0, STALE),
        },
        None => (0, NOTHING),
    }
}

#[inline(always)]
fn certify<const VERIFIES: bool>(map: &Map<'_>, input: InputHash, slice: u32, link: Link) -> Scan {
    let Link { record, generation } = link;
    crash_point!(Point::ReadRecord);
    let Ok(record) = map.memory.record(record) else { return Scan::Stale };
    if record.state().generation() != generation {
        return Scan::Stale;
    }
    crash_point!(Point::ReadValue);
    // ORDERING: Relaxed: certified by the second look below.
    let value = record.value().load(Ordering::Relaxed);
    let whole = !VERIFIES || is_whole(record, input, value, generation);
    // ORDERING: Acquire fence: if the value came from a later use of the record, the load below
    // sees a later generation. Partner: the Release fence of `prepare_record`.
    fence(Ordering::Acquire);
    crash_point!(Point::ReadAgain);
    let again = RecordWord(record.word().load(Ordering::Relaxed));
    if again.generation() != generation || !whole {
        return Scan::Stale;
    }
    Scan::Hit(Found { slice, value })
}

/// The record is this key's, and nobody but a writer has changed it.
#[inline(never)]
fn is_whole(record: Record<'_>, input: InputHash, value: u64, generation: u32) -> bool {
    // ORDERING: Relaxed: certified by the second look at the generation.
    let stored = record.input().load(Ordering::Relaxed);
    let tick = record.tick().load(Ordering::Relaxed);
    stored == input.word() && sum::fits(stored, value, tick, generation)
}
