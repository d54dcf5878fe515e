//! One table of a segment: a ring of words, probed linearly.
//!
//! **T1.** A probe starts at the home and ends at the key, at the first EMPTY, at the first FROZEN, or after a full circle.
//! Nobody stores a key behind an EMPTY of its probe; so at the end of a probe the key is known not to be in this table, and at a FROZEN
//! or after a full circle it never will be.
//! **T2.** A failed exchange looks at the same slot again.
//! **T3.** `copy_in` stores a word where its probe ends, unless it meets the word itself (copied already) or a FROZEN (the
//! predecessor is complete). It never finds the ring full: a successor has room for every record of its
//! predecessor beside its guests (G4), and once the predecessor is complete every copy finds its word.
//! **T4.** A chunk is done when each of its EMPTYs is FROZEN and each of its FULLs is in the successor. FULL slots stay as they are.

use super::budget::Account;
use super::word::{EMPTY, FROZEN, Split, is_full};
use crate::migrate::{Election, Work};
use crate::region::heap::Buffer;
use crate::region::{AllocError, Pages};
use crate::sync::{
    Arc, AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, CachePadded, MODEL, Ordering,
};
use std::ops::Range;

/// Slots of a chunk: 4 KiB.
pub(crate) const CHUNK: usize = if MODEL { 2 } else { 512 };

/// What a table is made by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) split: Split,
    pub(crate) slots: usize,
    /// Slots of the table before this one, 0 for the first.
    pub(crate) before: usize,
    pub(crate) max_fill: f64,
    pub(crate) pages: Pages,
    /// How often the segment has grown.
    pub(crate) growths: u32,
    pub(crate) birth: u64,
}

#[derive(Debug)]
pub(crate) struct Table {
    slots: Buffer<AtomicU64>,
    next: AtomicPtr<Table>,
    /// Growing was refused and the table is as full as it may get.
    closed: AtomicBool,
    plan: Plan,
    threshold: usize,
    batch: u32,
    pub(crate) election: Election,
    pub(crate) work: Work,
    /// Some slot was frozen: clusters have ends.
    any_frozen: AtomicBool,
    /// FULL slots, as far as handles have reported them.
    used: CachePadded<AtomicUsize>,
    /// Inserts that came before the predecessor was complete (G4).
    guests: AtomicUsize,
    account: Arc<Account>,
    bytes: usize,
}

/// Where a probe stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    index: usize,
    left: usize,
}

/// How a probe ended (T1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The record sought, as this word.
    Same(u64),
    /// Absent, and this slot is free.
    Empty,
    /// Absent from this table for ever.
    Never,
}

impl Table {
    /// Bytes of a table with so many slots.
    pub(crate) fn bytes_for(slots: usize) -> usize {
        slots.saturating_mul(8).saturating_add(size_of::<Self>() + slots.div_ceil(CHUNK * 64) * 8)
    }

    /// A table whose bytes are booked already; they are given back when it drops.
    pub(crate) fn try_new(plan: Plan, account: &Arc<Account>) -> Result<Box<Self>, AllocError> {
        let slots = Buffer::try_new(plan.slots, plan.pages)?;
        let chunks = plan.slots.div_ceil(CHUNK);
        let refused = |_| AllocError::OutOfMemory { bytes: chunks / 8 };
        let threshold = (plan.slots as f64 * plan.max_fill) as usize;
        Ok(Box::new(Self {
            slots,
            next: AtomicPtr::new(std::ptr::null_mut()),
            closed: AtomicBool::new(false),
            plan,
            threshold: threshold.clamp(1, plan.slots - 1),
            batch: (plan.slots / 512).clamp(1, 256) as u32,
            election: Election::new(),
            work: Work::try_new(chunks).map_err(refused)?,
            any_frozen: AtomicBool::new(false),
            used: CachePadded::new(AtomicUsize::new(0)),
            guests: AtomicUsize::new(0),
            account: Arc::clone(account),
            bytes: Self::bytes_for(plan.slots),
        }))
    }

    #[inline(always)]
    pub(crate) fn next(&self) -> &AtomicPtr<Table> {
        &self.next
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The slots, to be given back piece by piece.
    pub(crate) fn slots_mut(&mut self) -> &mut Buffer<AtomicU64> {
        &mut self.slots
    }

    /// True if the table is as it mostly is: no successor, open for inserts.
    #[inline(always)]
    pub(crate) fn is_calm(&self) -> bool {
        // ORDERING: Relaxed: only chooses between a short way and the long one, which looks again.
        self.next.load(Ordering::Relaxed).is_null() && !self.closed.load(Ordering::Relaxed)
    }

    /// Closes the table for inserts, or opens it again.
    pub(crate) fn set_closed(&self, closed: bool) {
        // ORDERING: Relaxed: a limit, not a lock; a late insert is harmless.
        self.closed.store(closed, Ordering::Relaxed);
    }

    /// How many inserts a handle may keep to itself before it reports them.
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

    /// The table takes no more inserts if it cannot grow.
    pub(crate) fn is_at_limit(&self) -> bool {
        self.used() >= self.plan.slots - self.plan.slots.div_ceil(10)
    }

    /// Room for one more insert while the predecessor is not complete (G4).
    pub(crate) fn admit_guest(&self) -> bool {
        let room = self.plan.slots - self.plan.before;
        // ORDERING: Relaxed: only the sum counts; who is admitted stores by an exchange of its slot.
        self.guests.fetch_add(1, Ordering::Relaxed) < room
    }

    /// A probe for a tag or a word, at its home.
    #[inline(always)]
    pub(crate) fn walk(&self, tag: u64) -> Walk {
        Walk { index: self.plan.split.home(tag, self.slots.len()), left: self.slots.len() }
    }

    /// Goes on to the end of the probe (T1). Called again it looks at the same slot first (T2).
    #[inline(always)]
    pub(crate) fn look(
        &self,
        walk: &mut Walk,
        tag: u64,
        mut same: impl FnMut(u64) -> bool,
    ) -> Seen {
        let mask = self.plan.split.tag_mask();
        while walk.left > 0 {
            // ORDERING: Acquire: partner is the exchange that filled the slot: the record comes with its id.
            let word = self.slots[walk.index].load(Ordering::Acquire);
            if word == EMPTY {
                return Seen::Empty;
            }
            if word & mask == tag && is_full(word) && same(word) {
                return Seen::Same(word);
            }
            if word == FROZEN {
                return Seen::Never;
            }
            walk.index = if walk.index + 1 == self.slots.len() { 0 } else { walk.index + 1 };
            walk.left -= 1;
        }
        Seen::Never
    }

    /// Fills or freezes the EMPTY slot at which the probe ended. False if it is no longer EMPTY.
    #[inline(always)]
    pub(crate) fn take(&self, walk: Walk, word: u64) -> bool {
        // ORDERING: Release: the record was written before (S5); partner: `look`. Acquire: the loser looks again.
        self.slots[walk.index]
            .compare_exchange(EMPTY, word, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Puts a word of the predecessor here, unless it is here (T3). True if it was not.
    fn copy_in(&self, word: u64) -> bool {
        let mut walk = self.walk(word);
        while walk.left > 0 {
            let slot = &self.slots[walk.index];
            // ORDERING: Acquire, as in `look`.
            let mut found = slot.load(Ordering::Acquire);
            if found == EMPTY {
                // ORDERING: AcqRel: passes on what came with the word from the predecessor.
                match slot.compare_exchange(EMPTY, word, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => return true,
                    Err(other) => found = other, // (T2)
                }
            }
            if found == word || found == FROZEN {
                return false;
            }
            walk.index = if walk.index + 1 == self.slots.len() { 0 } else { walk.index + 1 };
            walk.left -= 1;
        }
        debug_assert!(false, "T3: a successor is never full");
        false
    }

    fn chunk(&self, chunk: usize) -> Range<usize> {
        // Clamped: the last chunk, or the only one, may be smaller.
        chunk * CHUNK..((chunk + 1) * CHUNK).min(self.slots.len())
    }

    /// What the slot holds, after an EMPTY was frozen.
    #[inline(always)]
    fn freeze(&self, index: usize) -> u64 {
        let slot = &self.slots[index];
        // ORDERING: Acquire: the record comes with the word, and goes on with the copy's Release.
        let word = slot.load(Ordering::Acquire);
        if word != EMPTY {
            return word;
        }
        // ORDERING: AcqRel: whoever meets FROZEN here goes to the successor, which was published before.
        match slot.compare_exchange(EMPTY, FROZEN, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => FROZEN,
            Err(other) => other,
        }
    }

    /// Makes a chunk done, beside anybody who does the same (T4).
    pub(crate) fn move_chunk(&self, chunk: usize, next: &Self) {
        let mut copied = 0;
        for index in self.chunk(chunk) {
            let word = self.freeze(index);
            copied += usize::from(is_full(word) && next.copy_in(word));
        }
        next.add_used(copied);
    }

    /// Moves the clusters that begin in a chunk, alone (J3 in `together`).
    pub(crate) fn move_clusters(&self, chunk: usize, next: &Self) {
        let slots = self.slots.len();
        let range = self.chunk(chunk);
        let (mut copied, mut any_frozen) = (0, false);
        // A cluster begins behind a FROZEN, and may end beyond the chunk.
        let mut mine = self.freeze((range.start + slots - 1) % slots) == FROZEN;
        for index in range.start.. {
            if index >= range.end && !mine {
                break;
            }
            let word = self.freeze(index % slots);
            if word == FROZEN {
                mine = index + 1 < range.end;
                any_frozen = true;
            } else if mine {
                next.place(word);
                copied += 1;
            }
        }
        next.add_used(copied);
        if any_frozen {
            // ORDERING: Relaxed: read after the rendezvous, which orders it (J2).
            self.any_frozen.store(true, Ordering::Relaxed);
        }
    }

    /// Moves the one cluster of a ring without a gap, alone and after everybody has tried (J3).
    pub(crate) fn move_ring(&self, next: &Self) {
        // ORDERING: Relaxed, as in `move_clusters`.
        if !self.any_frozen.load(Ordering::Relaxed) {
            self.words().for_each(|word| next.place(word));
            next.add_used(self.slots.len());
        }
    }

    /// Stores a word at the end of its probe. Nobody else writes into that run of slots (J3).
    fn place(&self, word: u64) {
        let slots = self.slots.len();
        let mut index = self.plan.split.home(word, slots);
        // ORDERING: Relaxed: only this thread writes here.
        while self.slots[index].load(Ordering::Relaxed) != EMPTY {
            index = (index + 1) % slots;
        }
        // ORDERING: Release: passes on the record to those who look in from outside; partner: `look`.
        self.slots[index].store(word, Ordering::Release);
    }

    /// Every word of the table, in order of slots.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> + '_ {
        // ORDERING: Acquire, as in `look`.
        self.slots.iter().map(|slot| slot.load(Ordering::Acquire)).filter(|&word| is_full(word))
    }

    /// The word in one slot, if it is FULL.
    pub(crate) fn word_at(&self, index: usize) -> Option<u64> {
        // ORDERING: Acquire, as in `look`.
        Some(self.slots.get(index)?.load(Ordering::Acquire)).filter(|&word| is_full(word))
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// How far a FULL word lies from its home.
    pub(crate) fn displacement(&self, index: usize, word: u64) -> usize {
        let home = self.plan.split.home(word, self.slots.len());
        (index + self.slots.len() - home) % self.slots.len()
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.account.give_back(self.bytes);
    }
}
