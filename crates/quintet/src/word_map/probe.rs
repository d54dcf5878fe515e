//! Where a key is, and how a lane becomes a key's.
//!
//! **WL5.** A probe goes through the lanes of the home in order, then through the next lines within
//! reach, then through the link (`moving` WL9.5). It ends at its key, or at the first lane that is
//! EMPTY or CLOSED. What is concluded comes from one look at each lane; the lanes of a line may be
//! looked at in any order.
//! 1. *A lane is the key*: found. Right at any time, since a key word is written once.
//! 2. *No lane is, the first free one is EMPTY*: absent at the moment this lane was loaded. A lane
//!    is claimed only by one who saw every lane before it taken, and a taken lane keeps its key. So
//!    while the lane is EMPTY the key is nowhere behind it.
//! 3. *No lane is, the first free one is CLOSED*: the successor knows.
//! 4. Instead of looking for CLOSED one may ask after the look whether there is a successor: if
//!    not, no lane was CLOSED.
//! 5. Only the first EMPTY lane of a line is closed (`moving` WL10, WL8.4), and the lanes behind it
//!    stay EMPTY, since nobody claims a lane behind one that is not taken. So if a look has seen
//!    EMPTY lanes, CLOSED can be in the lane before the first of them and nowhere else; if it has
//!    seen none, in the last lane. What was seen not EMPTY does not change: that lane may be loaded
//!    once more.
//!
//! **WL7.** The value word is loaded after the key was found, or before: the key word does not
//! change. A value word is right about its key in this table until it says FROZEN or MOVED.

use super::more::{End, More};
use super::table::Table;
use super::word::{CLOSED, EMPTY, PLAIN, TOMB};
use crate::reclaim::Books;
use crate::sync::prefetch::{prefetch_read, prefetch_write};
use crate::sync::quad::{LANES, Look, Quad, first};
use crate::sync::{AtomicU64, Ordering};

/// A slot that has, or had, or is to have a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot<'t> {
    pub(crate) value: &'t AtomicU64,
    pub(super) own: Own<'t>,
}

impl<'t> Slot<'t> {
    /// The slot of a lane behind the table.
    pub(super) fn behind(line: &'t Quad, own: &'t [AtomicU64; LANES], lane: usize) -> Self {
        Self { value: line.value(lane), own: Own::Here(&own[lane]) }
    }
}

/// The own cell of a slot (`cells` WL13).
#[derive(Clone, Copy, Debug)]
pub(super) enum Own<'t> {
    /// Among those of the table.
    There(usize),
    /// In a block behind it.
    Here(&'t AtomicU64),
}

/// A lane that nobody has claimed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane<'t> {
    key: &'t AtomicU64,
    pub(crate) slot: Slot<'t>,
}

/// Where a probe ends (WL5).
#[derive(Debug)]
pub(crate) enum Place<'t> {
    Slot(Slot<'t>),
    /// With the number of lines between it and the home.
    Empty(Lane<'t>, usize),
    /// An EMPTY link.
    End(&'t More),
    Closed,
}

/// Lines between home and lane of one that lies behind the table.
const BEHIND: usize = usize::MAX;

/// How many hits follow a miss before the tags are not asked any more.
const WARY: u8 = 32;

impl Table {
    /// The usual answers: the value of `key`, or that it is absent. `None` says nothing.
    #[inline(always)]
    pub(crate) fn glance(&self, key: u64, books: &Books) -> Option<Option<u64>> {
        let k = self.k(key);
        if k <= CLOSED {
            return None;
        }
        let hash = self.hash(k);
        let home = self.shape().home(hash);
        // The hint is loaded where it is needed: a register would be one too many.
        if books.hint() == 0 || !self.lacks(home, hash) {
            let line = self.line(home);
            let look = line.look(k);
            if look.same != 0 {
                // ORDERING: Acquire: partners are the exchanges of value words.
                let word = line.value(first(look.same)).load(Ordering::Acquire);
                if word >= PLAIN {
                    if books.hint() != 0 {
                        books.set_hint(books.hint() - 1);
                    }
                    return Some(Some(word ^ self.secrets().flip));
                }
                return (word <= TOMB).then_some(None);
            }
            if look.zero == 0 {
                return None;
            }
        }
        if books.hint() != WARY {
            books.set_hint(WARY);
        }
        // WL5.4, `table` WL6: no tag, or an EMPTY lane; without a successor afterwards the lanes
        // before it were not CLOSED.
        self.next().seems_empty().then_some(None)
    }

    /// The same for a key that is not special, wherever it lies.
    pub(crate) fn glance_further(&self, key: u64) -> Option<Option<u64>> {
        match self.probe(self.k(key)) {
            Place::Slot(slot) => {
                // ORDERING: Acquire, as in `glance`.
                let word = slot.value.load(Ordering::Acquire);
                match word {
                    PLAIN.. => Some(Some(word ^ self.secrets().flip)),
                    ..=TOMB => Some(None),
                    _ => None,
                }
            }
            // A probe ends at the first CLOSED lane (WL5.3).
            Place::Empty(..) | Place::End(_) => Some(None),
            Place::Closed => None,
        }
    }

    /// The home of a key that is not special, looked at as a whole.
    #[inline(always)]
    pub(crate) fn aim(&self, k: u64) -> Aim<'_> {
        let hash = self.hash(k);
        let home = self.shape().home(hash);
        Aim { table: self, k, hash, home, line: self.line(home) }
    }

    /// Asks the cache for the line where a probe for `key` starts; `write` says whether it will
    /// be written.
    #[inline(always)]
    pub(crate) fn prefetch(&self, key: u64, write: bool) {
        let home = self.shape().home(self.hash(self.k(key)));
        let ask = if write { prefetch_write } else { prefetch_read };
        ask(self.lines.as_ptr().wrapping_add(home));
    }

    /// The place of a key (WL5).
    pub(crate) fn probe(&self, k: u64) -> Place<'_> {
        if k <= CLOSED {
            return Place::Slot(self.extra(k as usize));
        }
        let hash = self.hash(k);
        self.probe_from(k, hash, self.shape().home(hash), 0)
    }

    /// The same for who knows that the key is not in the first `passed` lines, and that these are
    /// full.
    fn probe_from(&self, k: u64, hash: u64, home: usize, passed: usize) -> Place<'_> {
        debug_assert_eq!(home, self.shape().home(hash));
        let end = (home + self.shape().reach()).min(self.lines.len());
        for index in home + passed..end {
            let own = |lane| Own::There(index * LANES + lane);
            if let Some(place) = look_through(self.line(index), k, own, index - home) {
                return place;
            }
        }
        self.probe_behind(k)
    }

    #[cold]
    fn probe_behind(&self, k: u64) -> Place<'_> {
        let mut more = &self.more;
        loop {
            match more.end() {
                End::Empty => return Place::End(more),
                End::Closed => return Place::Closed,
                End::Block(block) => {
                    for (line, own) in block.lines() {
                        let own = |lane: usize| Own::Here(&own[lane]);
                        if let Some(place) = look_through(line, k, own, BEHIND) {
                            return place;
                        }
                    }
                    more = block.more();
                }
            }
        }
    }

    /// The slot of a special key (`word` WL3). It counts as claimed from the start.
    pub(super) fn extra(&self, which: usize) -> Slot<'_> {
        Slot { value: &self.extras[which], own: Own::There(self.lines.len() * LANES + which) }
    }

    /// The slot of a lane of the table.
    #[inline(always)]
    pub(super) fn slot(&self, index: usize, lane: usize) -> Slot<'_> {
        Slot { value: self.line(index).value(lane), own: Own::There(index * LANES + lane) }
    }

    /// Claims an EMPTY lane for a key (`table` WL6). False: somebody was faster, look again.
    pub(crate) fn claim(&self, k: u64, lane: Lane<'_>) -> bool {
        let home = self.shape().home(self.hash(k));
        let end = match lane.slot.own {
            Own::There(index) => index / LANES,
            Own::Here(_) => home + self.shape().reach(),
        };
        self.mark_passed(home, end);
        let claimed = claim(lane.key, k);
        if claimed {
            self.mark_slot(k, lane.slot);
        }
        claimed
    }

    /// True if an insert may not use a place so many lines from its home although it is EMPTY: half
    /// the reach is for copies.
    pub(crate) fn is_too_far(&self, lines: usize) -> bool {
        // ORDERING: Relaxed, as in `set_flooded`.
        lines > self.shape().reach() / 2 && !self.flooded.load(Ordering::Relaxed)
    }
}

#[inline(always)]
fn claim(key: &AtomicU64, k: u64) -> bool {
    // ORDERING: Release: the tags of what was passed come first (`table` WL6); partner: the looks
    // of writers. Failure: a new look follows.
    key.compare_exchange(EMPTY, k, Ordering::Release, Ordering::Relaxed).is_ok()
}

impl Lane<'_> {
    /// Closes it, so that whoever comes here goes on in the successor (`moving` WL8.4). False:
    /// somebody was faster, look again.
    pub(crate) fn close(self) -> bool {
        close(self.key).is_ok()
    }
}

/// Closes an EMPTY key word. The word that is there if it is another.
#[inline(always)]
pub(super) fn close(key: &AtomicU64) -> Result<u64, u64> {
    // ORDERING: Release: the successor, which the caller has seen, is seen by who sees this;
    // partner: the looks. Failure: Acquire, as every look.
    key.compare_exchange(EMPTY, CLOSED, Ordering::Release, Ordering::Acquire)
}

/// One look at a line (WL5).
#[inline(always)]
fn look_through<'t>(
    line: &'t Quad,
    k: u64,
    own: impl Fn(usize) -> Own<'t>,
    lines: usize,
) -> Option<Place<'t>> {
    let look = line.look(k);
    let slot = |lane| Slot { value: line.value(lane), own: own(lane) };
    if look.same != 0 {
        return Some(Place::Slot(slot(first(look.same))));
    }
    // WL5.5: where CLOSED is, if it is anywhere.
    let free = if look.zero == 0 { LANES } else { first(look.zero) };
    // ORDERING: Acquire: partner is the close. The word was seen taken or CLOSED, and is the same
    // now.
    if free > 0 && line.key(free - 1).load(Ordering::Acquire) == CLOSED {
        return Some(Place::Closed);
    }
    (free < LANES).then(|| Place::Empty(Lane { key: line.key(free), slot: slot(free) }, lines))
}

/// The home of a key: what the usual operations look at and nothing else.
#[derive(Clone, Copy)]
pub(crate) struct Aim<'t> {
    table: &'t Table,
    k: u64,
    hash: u64,
    home: usize,
    line: &'t Quad,
}

impl<'t> Aim<'t> {
    /// Asks for the line as one that is written: an exchange after a look at a line of another
    /// core would fetch it twice.
    #[inline(always)]
    pub(crate) fn fetch(&self) {
        prefetch_write(self.line);
    }

    #[inline(always)]
    pub(crate) fn look(&self) -> Look {
        self.line.look(self.k)
    }

    /// The value word of a key that was seen.
    #[inline(always)]
    pub(crate) fn found(&self, look: Look) -> &'t AtomicU64 {
        self.line.value(first(look.same))
    }

    /// Claims the first lane that was seen EMPTY (`table` WL6). The value word, or nothing if
    /// somebody was faster.
    #[inline(always)]
    pub(crate) fn claim(&self, look: Look) -> Option<&'t AtomicU64> {
        let lane = first(look.zero);
        // On its way while the exchanges wait for the line.
        self.table.fetch_tags(self.home);
        let claimed = claim(self.line.key(lane), self.k);
        claimed.then(|| {
            self.table.mark(self.home, lane, self.hash);
            self.line.value(lane)
        })
    }
}
