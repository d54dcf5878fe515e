//! One table of a segment: a ring of lines of words, probed line by line.
//!
//! **T1.** The home of a key is a line. A probe looks at the slots from the first of the home on,
//! in order, and ends at the key, at the first EMPTY, at the first FROZEN, or after a full circle.
//! Nobody stores a key behind an EMPTY of its probe; so at the end of a probe the key is known not
//! to be in this table, and at a FROZEN or after a full circle it never will be. The words of a
//! line are read at once, but not at one moment: since slots are written once, a slot seen FULL
//! stays as it was seen, and the one that ends the probe is looked at again before anything is done
//! with it.
//! **T2.** A failed exchange looks at the same line again.
//! **T3.** Words go into a successor of [`FACTOR`] times the size as `carry` says, into another by
//! `copy_in`, which stores a word where its probe ends, unless it meets the word itself (copied
//! already) or a FROZEN (the predecessor is complete). It never finds the ring full: a successor
//! has room for every record of its predecessor beside its guests (`grow` G4), and once the
//! predecessor is complete every copy finds its word.
//! **T4.** A line is *sealed* when it is full or its first EMPTY is FROZEN: then it changes no
//! more. For its FULLs are its first slots: whoever stores into a slot has seen those before it
//! FULL, or has filled them (D2, D4 of `carry`). A chunk is done when its lines are sealed and
//! their FULLs are in the successor. FULL slots stay as they are.

use super::budget::Account;
use super::ground::Lines;
use super::grow::FACTOR;
use super::word::{EMPTY, FROZEN, Split, is_full};
use crate::migrate::{Election, Leave, Link, Work};
use crate::region::AllocError;
use crate::sync::line::{LINE, Line, Slots};
use crate::sync::{Arc, AtomicBool, AtomicU64, AtomicUsize, MODEL, Ordering};
use std::ops::Range;
use std::ptr;

/// Slots of a chunk: 4 KiB.
pub(crate) const CHUNK: usize = if MODEL { 2 } else { 512 };
/// Lines of a chunk.
const CHUNK_LINES: usize = CHUNK / LINE;

/// What a table is made by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) slots: usize,
    /// Slots of the table before this one, 0 for the first.
    pub(crate) before: usize,
    pub(crate) max_load: f64,
    /// How often the segment has grown.
    pub(crate) growths: u32,
    /// The table is for all segments.
    pub(crate) is_small: bool,
    pub(crate) birth: u64,
}

/// What every probe needs comes first; what is written to while the table is used lies on other
/// lines.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Table {
    lines: Lines,
    next: Link<Table>,
    /// Growing was refused and the table is as full as it may get.
    closed: AtomicBool,
    /// Some slot was frozen: clusters have ends.
    any_frozen: AtomicBool,
    batch: u32,
    split: Split,
    threshold: usize,
    account: Arc<Account>,
    plan: Plan,
    pub(crate) work: Work,
    /// FULL slots, as far as handles have reported them.
    used: AtomicUsize,
    /// Inserts that came before the predecessor was complete (`grow` G4).
    guests: AtomicUsize,
    pub(crate) election: Election,
}

/// Records that fit into so many slots before the table should be left.
pub(super) fn room_of(slots: usize, max_load: f64) -> usize {
    ((slots as f64 * max_load) as usize).clamp(1, slots - 1)
}

/// Where a probe stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    line: usize,
    left: usize,
}

/// What a look at one line has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sight {
    /// The first FULL word with the tag sought, or 0.
    pub(crate) word: u64,
    /// The first gap, EMPTY or FROZEN, or [`LINE`].
    pub(crate) gap: usize,
}

/// How a probe ended (T1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The record sought, as this word.
    Same(u64),
    /// Absent, and this slot of the line is free.
    Empty(usize),
    /// Absent from this table for ever.
    Never,
}

impl Leave for Table {
    fn bytes_and_birth(&self) -> (usize, u64) {
        (self.bytes(), self.plan.birth)
    }

    unsafe fn give_back(&mut self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.lines.give_back() }
    }
}

impl Table {
    /// Bytes of a table with so many slots.
    pub(crate) fn bytes_for(slots: usize) -> usize {
        slots.saturating_mul(8).saturating_add(size_of::<Self>() + slots.div_ceil(CHUNK * 64) * 8)
    }

    /// A table whose bytes are booked already; they are given back when it drops.
    pub(crate) fn try_new(
        plan: Plan,
        split: Split,
        lines: Lines,
        account: &Arc<Account>,
    ) -> Result<Box<Self>, AllocError> {
        debug_assert_eq!(lines.len() * LINE, plan.slots);
        let chunks = plan.slots.div_ceil(CHUNK);
        let refused = |_| AllocError::OutOfMemory { bytes: chunks / 8 };
        Ok(Box::new(Self {
            lines,
            // SAFETY: only sections of the set's domain lead here, and all that they find is used
            // inside of them (`link` M12).
            next: unsafe { Link::empty() },
            closed: AtomicBool::new(false),
            any_frozen: AtomicBool::new(false),
            batch: (plan.slots / 512).clamp(1, 256) as u32,
            split,
            threshold: room_of(plan.slots, plan.max_load),
            plan,
            election: Election::new(),
            work: Work::try_new(chunks).map_err(refused)?,
            used: AtomicUsize::new(0),
            guests: AtomicUsize::new(0),
            account: Arc::clone(account),
        }))
    }

    /// Drops a table that nobody has seen.
    pub(crate) fn discard(mut self: Box<Self>) {
        self.lines.set_unused();
    }

    #[inline(always)]
    pub(crate) fn next(&self) -> &Link<Table> {
        &self.next
    }

    /// The same, for who is alone.
    pub(crate) fn next_mut(&mut self) -> &mut Link<Table> {
        &mut self.next
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn bytes(&self) -> usize {
        Self::bytes_for(self.plan.slots)
    }

    /// True if the table is as it mostly is: no successor, open for inserts.
    #[inline(always)]
    pub(crate) fn is_calm(&self) -> bool {
        // ORDERING: Relaxed: only chooses between a short way and the long one, which looks again.
        self.next.seems_empty() && !self.closed.load(Ordering::Relaxed)
    }

    /// Closes the table for inserts, or opens it again.
    pub(crate) fn set_closed(&self, closed: bool) {
        // ORDERING: Relaxed: a limit, not a lock; a late insert is harmless.
        self.closed.store(closed, Ordering::Relaxed);
    }

    /// How many inserts a handle may keep to itself before it reports them: up to 256, so that a
    /// byte counts those it keeps.
    #[inline(always)]
    pub(crate) fn batch(&self) -> u32 {
        self.batch
    }

    pub(crate) fn used(&self) -> usize {
        // ORDERING: Relaxed: an estimate.
        self.used.load(Ordering::Relaxed)
    }

    /// Reports FULL slots. True if the table should be left.
    pub(crate) fn add_used(&self, slots: usize) -> bool {
        // ORDERING: Relaxed: an estimate.
        self.used.fetch_add(slots, Ordering::Relaxed) + slots >= self.threshold
    }

    /// Records that fit before the table should be left.
    pub(crate) fn room(&self) -> usize {
        self.threshold
    }

    /// The table is as full as it should get.
    pub(crate) fn is_due(&self) -> bool {
        self.used() >= self.threshold
    }

    /// The table takes no more inserts if it cannot grow.
    pub(crate) fn is_at_limit(&self) -> bool {
        self.used() >= self.plan.slots - self.plan.slots.div_ceil(10)
    }

    /// Room for one more insert while the predecessor is not complete (`grow` G4).
    pub(crate) fn admit_guest(&self) -> bool {
        let room = self.plan.slots - self.plan.before;
        // ORDERING: Relaxed: only the sum counts; who is admitted stores by an exchange of its
        // slot.
        self.guests.fetch_add(1, Ordering::Relaxed) < room
    }

    /// A probe for a tag or a word, at its home.
    #[inline(always)]
    pub(crate) fn walk(&self, tag: u64) -> Walk {
        Walk { line: self.split.home(tag, self.lines.len()), left: self.lines.len() }
    }

    /// A probe that has passed its home, which is this line.
    #[inline(always)]
    pub(super) fn walk_on(&self, home: &Line) -> Walk {
        let passed = (ptr::from_ref(home).addr() - self.lines.as_ptr().addr()) / size_of::<Line>();
        Walk { line: self.after(passed), left: self.lines.len() - 1 }
    }

    /// The line on which the probe for a tag or a word begins.
    #[inline(always)]
    pub(super) fn home(&self, tag: u64) -> &Line {
        self.line(self.split.home(tag, self.lines.len()))
    }

    /// How many lines there are.
    pub(super) fn lines(&self) -> usize {
        self.lines.len()
    }

    /// The number of the line on which the probe for a word begins.
    #[inline(always)]
    pub(super) fn home_of(&self, word: u64) -> usize {
        self.split.home(word, self.lines.len())
    }

    #[inline(always)]
    pub(super) fn line(&self, index: usize) -> &Line {
        debug_assert!(index < self.lines.len());
        // SAFETY: homes lie below the number of lines (`word` B2), and walks and chunks stay there.
        unsafe { self.lines.get_unchecked(index) }
    }

    #[inline(always)]
    pub(super) fn after(&self, line: usize) -> usize {
        if line + 1 == self.lines.len() { 0 } else { line + 1 }
    }

    /// Some FULL word of a line that `same` takes for the one sought.
    #[inline(always)]
    pub(crate) fn find_in(
        line: &Line,
        alike: Slots,
        mut same: impl FnMut(u64) -> bool,
    ) -> Option<u64> {
        for slot in alike {
            // ORDERING: Acquire: partner is the exchange that filled the slot: the record comes
            // with its id.
            let word = line.words()[slot].load(Ordering::Acquire);
            if is_full(word) && same(word) {
                return Some(word);
            }
        }
        None
    }

    /// A look at one line that goes no further, without a branch on what it reads.
    #[inline(always)]
    pub(crate) fn sight(line: &Line, tag: u64, mask: u64) -> Sight {
        let found = line.scan(tag, mask);
        let full = found.alike.without(found.gaps);
        // ORDERING: Acquire, as in `find_in`.
        let word = line.words()[full.first_or_end() % LINE].load(Ordering::Acquire);
        Sight { word: if full.is_empty() { 0 } else { word }, gap: found.gaps.first_or_end() }
    }

    /// The table holds all segments (`small` Q2).
    #[inline(always)]
    pub(super) fn is_small(&self) -> bool {
        self.plan.is_small
    }

    /// How the words of this table are divided.
    #[inline(always)]
    pub(super) fn split(&self) -> Split {
        self.split
    }

    /// A look at the home line alone. `None`: it is full of others, or its first gap was filled
    /// meanwhile; look for yourself.
    #[inline(always)]
    pub(super) fn look_at_home(
        &self,
        home: &Line,
        tag: u64,
        same: impl FnMut(u64) -> bool,
    ) -> Option<Seen> {
        let found = home.scan(tag, self.split.tag_mask());
        if let Some(word) = Self::find_in(home, found.alike, same) {
            return Some(Seen::Same(word));
        }
        Self::at_gap(home, found.gaps)
    }

    /// How a probe ends at the first gap of a line. `None`: there is none, or it was filled since:
    /// perhaps by the one sought.
    #[inline(always)]
    fn at_gap(line: &Line, gaps: Slots) -> Option<Seen> {
        if gaps.is_empty() {
            return None;
        }
        let slot = gaps.first();
        // ORDERING: Acquire, as in `find_in`.
        match line.words()[slot].load(Ordering::Acquire) {
            EMPTY => Some(Seen::Empty(slot)),
            FROZEN => Some(Seen::Never),
            _ => None,
        }
    }

    /// Goes on to the end of the probe (T1). Called again it looks at the same line first (T2).
    #[inline(always)]
    pub(crate) fn look(&self, walk: &mut Walk, tag: u64, same: impl FnMut(u64) -> bool) -> Seen {
        self.look_when(walk, tag, same, |_| ())
    }

    /// [`look`](Self::look) in a table whose lines must be made ready first (`carry` D4).
    #[inline(always)]
    pub(crate) fn look_when(
        &self,
        walk: &mut Walk,
        tag: u64,
        mut same: impl FnMut(u64) -> bool,
        mut ready: impl FnMut(usize),
    ) -> Seen {
        let mask = self.split.tag_mask();
        while walk.left > 0 {
            ready(walk.line);
            let line = self.line(walk.line);
            let found = line.scan(tag, mask);
            if let Some(word) = Self::find_in(line, found.alike, &mut same) {
                return Seen::Same(word);
            }
            if let Some(seen) = Self::at_gap(line, found.gaps) {
                return seen;
            }
            if !found.gaps.is_empty() {
                continue;
            }
            walk.line = self.after(walk.line);
            walk.left -= 1;
        }
        Seen::Never
    }

    /// Fills or freezes the EMPTY slot at which the probe ended. False if it is no longer EMPTY.
    #[inline(always)]
    pub(crate) fn take(&self, walk: Walk, slot: usize, word: u64) -> bool {
        Self::take_at(self.line(walk.line), slot, word)
    }

    /// Fills or freezes a slot. False if it is not EMPTY.
    #[inline(always)]
    pub(crate) fn take_at(line: &Line, slot: usize, word: u64) -> bool {
        // ORDERING: Release: the record was written before (`core` S5); partner: `look`. Acquire:
        // the loser looks again.
        line.words()[slot]
            .compare_exchange(EMPTY, word, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Puts a word of the predecessor here, unless it is here (T3).
    pub(super) fn copy_in(&self, word: u64, mut ready: impl FnMut(usize)) {
        let mut walk = self.walk(word);
        loop {
            match self.look_when(&mut walk, word, |found| found == word, &mut ready) {
                Seen::Same(_) => return,
                // Lost: look again (T2).
                Seen::Empty(slot) if !self.take(walk, slot, word) => {}
                Seen::Empty(_) => return,
                Seen::Never => {
                    debug_assert!(walk.left > 0, "T3: a successor is never full");
                    return;
                }
            }
        }
    }

    /// The lines of a chunk.
    pub(super) fn chunk(&self, chunk: usize) -> Range<usize> {
        // Clamped: the last chunk, or the only one, may be smaller.
        chunk * CHUNK_LINES..((chunk + 1) * CHUNK_LINES).min(self.lines.len())
    }

    /// Seals a line and hands out its FULL words. True if it has a gap (T4).
    #[inline(always)]
    pub(super) fn seal(&self, line: usize, mut each: impl FnMut(u64)) -> bool {
        for slot in self.line(line).words() {
            match Self::freeze(slot) {
                FROZEN => return true,
                word => each(word),
            }
        }
        false
    }

    /// What the slot holds, after an EMPTY was frozen.
    #[inline(always)]
    fn freeze(slot: &AtomicU64) -> u64 {
        // ORDERING: Acquire: the record comes with the word, and goes on with the copy's Release.
        let word = slot.load(Ordering::Acquire);
        if word != EMPTY {
            return word;
        }
        // ORDERING: AcqRel: whoever meets FROZEN here goes to the successor, which was published
        // before.
        match slot.compare_exchange(EMPTY, FROZEN, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => FROZEN,
            Err(other) => other,
        }
    }

    /// Makes a chunk done, beside anybody who does the same (T4).
    pub(crate) fn move_chunk(&self, chunk: usize, next: &Self) {
        if self.is_carried_to(next) {
            return self.carry_chunk(chunk, next);
        }
        for line in self.chunk(chunk) {
            self.seal(line, |word| next.copy_in(word, |_| ()));
        }
    }

    /// Makes a line of the successor ready for an exchange, while this table is not complete.
    #[inline(always)]
    pub(crate) fn make_ready(&self, line: usize, next: &Self) {
        if self.is_carried_to(next) {
            self.carry_to(line, next);
        }
    }

    /// The lines of a cluster become lines of their own in the successor only if that has so many
    /// times as many: plain stores rely on it (`together` J3).
    fn assert_carries(&self, next: &Self) {
        let times = next.lines() / self.lines();
        let is_power = times.is_power_of_two() && times >= FACTOR;
        assert!(is_power && next.lines() == times * self.lines(), "J3: sizes that do not fit");
        const { assert!(FACTOR.is_power_of_two()) };
    }

    /// Moves the clusters that begin in a chunk, alone (`together` J3 in `together`).
    pub(crate) fn move_clusters(&self, chunk: usize, next: &Self) {
        self.assert_carries(next);
        let lines = self.lines.len();
        let range = self.chunk(chunk);
        let (mut copied, mut any_frozen) = (0, false);
        // A cluster begins behind a line with a gap, and may end beyond the chunk.
        let mut mine = self.seal((range.start + lines - 1) % lines, |_| ());
        for index in range.start.. {
            if index >= range.end && !mine {
                break;
            }
            let gap = self.seal(index % lines, |word| {
                if mine {
                    next.place(word);
                    copied += 1;
                }
            });
            if gap {
                mine = index + 1 < range.end;
                any_frozen = true;
            }
        }
        next.add_used(copied);
        if any_frozen {
            // ORDERING: Relaxed: read after the rendezvous, which orders it (`together` J2).
            self.any_frozen.store(true, Ordering::Relaxed);
        }
    }

    /// Moves the one cluster of a ring without a gap, alone and after everybody has tried
    /// (`together` J3).
    pub(crate) fn move_ring(&self, next: &Self) {
        self.assert_carries(next);
        // ORDERING: Relaxed, as in `move_clusters`.
        if !self.any_frozen.load(Ordering::Relaxed) {
            self.words().for_each(|word| next.place(word));
            next.add_used(self.plan.slots);
        }
    }

    /// Stores a word at the end of its probe. Nobody else writes into that run of lines (`together`
    /// J3), or has seen the table (`small` Q3).
    pub(super) fn place(&self, word: u64) {
        let mut line = self.split.home(word, self.lines.len());
        loop {
            // ORDERING: Relaxed: only this thread writes here.
            let free = |slot: &&AtomicU64| slot.load(Ordering::Relaxed) == EMPTY;
            if let Some(slot) = self.line(line).words().iter().find(free) {
                // ORDERING: Release: passes on the record to those who look in from outside;
                // partner: `look`.
                return slot.store(word, Ordering::Release);
            }
            line = self.after(line);
        }
    }

    /// Every word of the table, in order of slots.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> + '_ {
        let slots = self.lines.iter().flat_map(|line| line.words());
        // ORDERING: Acquire, as in `find_in`.
        slots.map(|slot| slot.load(Ordering::Acquire)).filter(|&word| is_full(word))
    }

    /// The word in one slot, if it is FULL.
    pub(crate) fn word_at(&self, index: usize) -> Option<u64> {
        let slot = &self.lines.get(index / LINE)?.words()[index % LINE];
        // ORDERING: Acquire, as in `find_in`.
        Some(slot.load(Ordering::Acquire)).filter(|&word| is_full(word))
    }

    pub(crate) fn len(&self) -> usize {
        self.plan.slots
    }

    /// How many lines a FULL word lies from its home.
    pub(crate) fn displacement(&self, index: usize, word: u64) -> usize {
        let lines = self.lines.len();
        (index / LINE + lines - self.split.home(word, lines)) % lines
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.account.give_back(self.bytes());
    }
}
