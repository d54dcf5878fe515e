//! One table: its lines, tags and counters.
//!
//! ```text
//!   0                              homes        lines
//!   +------------------------------+------------+        no wrap-around: keys keep their order,
//!   | lines: `word_map` K0..K3, V0..V3 each   | some more  |─link   so that a migration reads and writes in sequence
//!   +------------------------------+------------+
//!   | tags, four bytes per home    |
//!   +------------------------------+
//!   two value words for the special keys · cells · next · counters · work of the migration
//! ```
//!
//! **WL1.** The home of a key is the line `hash · homes / 2^64`; `hash` is the folded product of
//! its K and a factor of the table. Each lane of a home has a *tag*, a byte: 0, or that of its key,
//! a part of the hash. Whoever stores it stores the same.
//! **WL6.** To claim a lane for a new key:
//! 1. If the lane is not in the key's home: every lane of the lines that were passed has its tag,
//!    or is given it. Their keys were seen.
//! 2. The exchange of the key word.
//! 3. The tag of the lane. Whoever finds a key with a VIRGIN value word stores its tag too, before
//!    it gives the key its first value.
//! 4. The exchange of the value word.
//!
//! So a line in which a lane has no tag, and none that of the key, proves that the key has no value
//! there and is in no later line.

use super::cells::Cells;
use super::more::More;
use super::probe::{Own, Slot};
use super::word::{CLOSED, EMPTY, Folder, Live, OWN, Secrets, Shape, State, tag_of};
use crate::migrate::{Election, FirstTouch, Leave, Link, Work, load_of};
use crate::region::heap::Buffer;
use crate::region::{AllocError, Pages};
use crate::sync::prefetch::prefetch_write;
use crate::sync::quad::{LANES, Quad};
use crate::sync::tags::{ASKED, Tags};
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, MODEL, Ordering, load_hint};
use std::fmt;

/// What a table is made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// log2 of the size.
    pub(crate) bits: u32,
    /// The seed was changed at this size already.
    pub(crate) reseeded: bool,
    pub(crate) pages: Pages,
    pub(crate) secrets: Secrets,
    pub(crate) seed: u64,
    /// Number of this table in its map's life.
    pub(crate) id: u64,
    /// The era before it was published.
    pub(crate) birth: u64,
}

/// One table of the chain. The first fields are read by every operation and change never, or once;
/// the last, on a line of their own, are what writers and movers count.
#[repr(C, align(64))]
pub(crate) struct Table {
    pub(super) lines: Buffer<Quad>,
    /// Of the homes.
    tags: Buffer<Tags>,
    folder: Folder,
    plan: Plan,
    /// When so many slots are used, the table is left.
    threshold: usize,
    /// The successor: set once.
    next: Link<Table>,
    /// How many slots a thread may use before it reports them.
    batch: u8,
    /// Inserts may go as far as it takes: a reseed did not help.
    pub(super) flooded: AtomicBool,
    pub(crate) election: Election,
    pub(super) more: More,
    pub(super) cells: Cells,
    touch: FirstTouch,
    /// The value words of the two special keys (`word` WL3).
    pub(super) extras: [AtomicU64; 2],
    /// Slots that are no longer EMPTY, as far as they have been reported.
    used: AtomicUsize,
    /// Entries removed here, as far as they have been reported.
    removed: AtomicUsize,
    pub(crate) work: Work,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("plan", &self.plan)
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}

impl Leave for Table {
    fn bytes_and_birth(&self) -> (usize, u64) {
        (self.bytes(), self.plan.birth)
    }

    unsafe fn give_back(&mut self) -> bool {
        if self.lines.bytes() > 0 {
            // SAFETY: the caller's promise.
            let last = unsafe { self.lines.give_back() };
            if !last {
                return false;
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.tags.give_back() }
    }
}

impl Table {
    /// A table of EMPTY lanes.
    ///
    /// It is left when the share `max_load` of its size is used; a chunk of a migration has `chunk`
    /// slots.
    pub(crate) fn try_new(
        plan: Plan,
        max_load: f64,
        chunk: usize,
    ) -> Result<Box<Self>, AllocError> {
        if plan.bits > Shape::MAX_BITS {
            return Err(AllocError::CapacityOverflow);
        }
        let shape = Shape::new(plan.bits);
        let chunks = shape.lines().div_ceil(lines_of(chunk)) + 1;
        let refused = |_| AllocError::OutOfMemory { bytes: chunks / 8 };
        let lines = Buffer::try_new(shape.lines(), plan.pages)?;
        let tags = Buffer::try_new(shape.homes(), plan.pages)?;
        Ok(Box::new(Self {
            touch: FirstTouch::of_both(&lines, &tags),
            lines,
            tags,
            folder: Folder::new(plan.seed),
            threshold: (load(plan.bits, max_load) * shape.size() as f64) as usize,
            batch: (shape.size() >> 8).clamp(1, 64) as u8,
            flooded: AtomicBool::new(false),
            election: Election::new(),
            // SAFETY: only sections of the map's domain lead here, and all that they find is used
            // inside of them (`link` M12).
            next: unsafe { Link::empty() },
            extras: [AtomicU64::new(0), AtomicU64::new(0)],
            more: More::new(),
            cells: Cells::new(),
            used: AtomicUsize::new(0),
            removed: AtomicUsize::new(0),
            work: Work::try_new(chunks).map_err(refused)?,
            plan,
        }))
    }

    #[inline(always)]
    pub(crate) fn shape(&self) -> Shape {
        Shape::of_homes(self.tags.len())
    }

    pub(crate) const fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn bytes(&self) -> usize {
        let behind = self.more.blocks().map(size_of_val).sum::<usize>();
        self.lines.bytes() + self.tags.bytes() + self.cells.bytes() + behind
    }

    /// The K of a key, and back (`word` WL2).
    #[inline(always)]
    pub(crate) const fn k(&self, key: u64) -> u64 {
        key ^ self.plan.secrets.add
    }

    #[inline(always)]
    pub(crate) const fn secrets(&self) -> Secrets {
        self.plan.secrets
    }

    /// Where the successor is, or will be.
    #[inline(always)]
    pub(crate) const fn next(&self) -> &Link<Self> {
        &self.next
    }

    /// The same, for who is alone.
    pub(crate) const fn next_mut(&mut self) -> &mut Link<Self> {
        &mut self.next
    }

    #[inline(always)]
    pub(super) fn line(&self, index: usize) -> &Quad {
        debug_assert!(index < self.lines.len());
        // SAFETY: every caller's index is below the number of lines: homes are, and a walk ends
        // there.
        unsafe { self.lines.get_unchecked(index) }
    }

    /// The hash of a K.
    #[inline(always)]
    pub(super) const fn hash(&self, k: u64) -> u64 {
        self.folder.hash(k)
    }

    /// True if a key with this hash has no value in this table (WL6). The last homes have too few
    /// neighbours, and say nothing.
    #[inline(always)]
    pub(super) fn lacks(&self, home: usize, hash: u64) -> bool {
        if home + ASKED > self.tags.len() {
            return false;
        }
        let first = self.tags.as_ptr().wrapping_add(home);
        // SAFETY: neighbours, the last below the number of tags. Who happens after one that saw a
        // value of the key cannot see the tags as they were before, by coherence: so Relaxed is
        // enough.
        let lines = unsafe { &*first.cast::<[Tags; ASKED]>() };
        Tags::lack(lines, tag_of(hash))
    }

    /// Asks the cache for the tags of a home.
    #[inline(always)]
    pub(super) fn fetch_tags(&self, home: usize) {
        prefetch_write(self.tags.as_ptr().wrapping_add(home));
    }

    /// Stores the tag of a lane of a home (WL6.3).
    #[inline(always)]
    pub(super) fn mark(&self, home: usize, lane: usize, hash: u64) {
        debug_assert!(home < self.tags.len());
        // SAFETY: the caller's line is a home.
        unsafe { self.tags.get_unchecked(home) }.set(lane, tag_of(hash));
    }

    /// The same for a key in any slot: only those of homes have a tag.
    pub(super) fn mark_slot(&self, k: u64, slot: Slot<'_>) {
        if let Own::There(index) = slot.own {
            if index / LANES < self.tags.len() {
                self.mark(index / LANES, index % LANES, self.hash(k));
            }
        }
    }

    /// Sees to it that every lane of the homes from `home` to before line `end` has its tag
    /// (WL6.1). All of them have keys.
    pub(super) fn mark_passed(&self, home: usize, end: usize) {
        for index in home..end.min(self.tags.len()) {
            for lane in 0..LANES {
                if self.tags[index].get(lane) == 0 {
                    // ORDERING: Acquire, as every look.
                    let k = self.line(index).key(lane).load(Ordering::Acquire);
                    debug_assert!(k > CLOSED);
                    self.mark(index, lane, self.hash(k));
                }
            }
        }
    }

    /// The value of a live word of a slot (`cells` WL13).
    #[inline(always)]
    pub(crate) fn decode(&self, slot: Slot<'_>, live: Live) -> u64 {
        match live {
            Live::Plain(word) => word ^ self.secrets().flip,
            Live::Own => self.load_cell(self.own_cell(slot)),
            Live::Esc(cell) => self.load_cell(self.cells.numbered(cell)),
        }
    }

    #[cold]
    fn load_cell(&self, cell: &AtomicU64) -> u64 {
        // ORDERING: Relaxed: the value word that led here was loaded with Acquire, and its exchange
        // came after the store.
        cell.load(Ordering::Relaxed)
    }

    fn own_cell<'s>(&'s self, slot: Slot<'s>) -> &'s AtomicU64 {
        match slot.own {
            Own::There(index) => self.cells.own(index),
            Own::Here(cell) => cell,
        }
    }

    /// The word that says `value` in this slot, for a copy (`cells` WL13.2).
    #[inline(always)]
    pub(super) fn word_of_copy(&self, slot: Slot<'_>, value: u64) -> u64 {
        self.secrets().plain(value).unwrap_or_else(|| self.put_in_own_cell(slot, value))
    }

    #[cold]
    fn put_in_own_cell(&self, slot: Slot<'_>, value: u64) -> u64 {
        // ORDERING: Relaxed: the exchange of the value word comes after it.
        self.own_cell(slot).store(value, Ordering::Relaxed);
        OWN
    }

    /// Makes the cells that special values need (`cells` WL13.6).
    pub(crate) fn make_cells(&self, seats: usize) -> Result<(), AllocError> {
        self.cells.make(self.lines.len() * LANES + self.extras.len(), seats)
    }

    /// Makes some of its memory present. False if all of it is, or will be soon (`migrate` M10).
    pub(crate) fn touch_ahead(&self) -> bool {
        self.touch.step_both(&self.lines, &self.tags)
    }

    /// True if entries may come here (`migrate` M10).
    #[inline(always)]
    pub(crate) fn is_ready(&self) -> bool {
        self.touch.is_dealt()
    }

    /// Reports `count` slots as used; returns all that were reported.
    pub(crate) fn add_used(&self, count: usize) -> usize {
        // ORDERING: Relaxed: a threshold, not a proof; the reach limits what the counter misses.
        self.used.fetch_add(count, Ordering::Relaxed) + count
    }

    pub(crate) fn used(&self) -> usize {
        load_hint(&self.used)
    }

    /// Reports `count` removals; true each time a 32nd of the table has been removed.
    pub(crate) fn add_removed(&self, count: usize) -> bool {
        let share = self.shape().size() / 32 + 1;
        // ORDERING: Relaxed, as in `add_used`.
        let before = self.removed.fetch_add(count, Ordering::Relaxed);
        before / share != (before + count) / share
    }

    #[inline(always)]
    pub(crate) const fn threshold(&self) -> usize {
        self.threshold
    }

    /// Above this nobody waits for the winner of the election any more.
    pub(crate) fn hard_limit(&self) -> usize {
        self.shape().size() - self.shape().size() * 15 / 100
    }

    #[inline(always)]
    pub(crate) const fn batch(&self) -> u8 {
        self.batch
    }

    /// True if few slots are used, with `live` entries in the map: then a long probe is the hash's
    /// fault. The live count knows what has not been reported here yet.
    pub(crate) fn is_sparse(&self, live: usize) -> bool {
        self.used().max(live) < self.shape().size() / 5
    }

    /// From now on inserts go as far as it takes.
    pub(crate) fn set_flooded(&self) {
        // ORDERING: Relaxed: a permission; using it early or late is the same.
        self.flooded.store(true, Ordering::Relaxed);
    }

    /// Slots that a walk goes through one by one; the rest are [listed](Self::listed_keys).
    pub(crate) fn walked(&self) -> usize {
        self.lines.len() * LANES
    }

    /// The key in slot `index`, whatever its state, and its value if that is there.
    pub(crate) fn entry_at(&self, index: usize) -> Option<(u64, Option<u64>)> {
        let (line, lane) = (index / LANES, index % LANES);
        // ORDERING: Acquire: partner is the claim.
        let k = self.line(line).key(lane).load(Ordering::Acquire);
        if k <= CLOSED {
            return None;
        }
        let slot = self.slot(line, lane);
        // ORDERING: Acquire, as in `glance`.
        let value = match State::of(slot.value.load(Ordering::Acquire)) {
            State::Live(live) => Some(self.decode(slot, live)),
            _ => None,
        };
        Some((self.k(k), value))
    }

    /// The keys behind the table, in whatever state, and the two special ones.
    pub(crate) fn listed_keys(&self) -> Vec<u64> {
        let mut keys = vec![self.k(EMPTY), self.k(CLOSED)];
        for (line, _) in self.more.blocks().flat_map(|block| block.lines()) {
            for lane in 0..LANES {
                // ORDERING: Acquire, as in `entry_at`.
                let k = line.key(lane).load(Ordering::Acquire);
                if k > CLOSED {
                    keys.push(self.k(k));
                }
            }
        }
        keys
    }

    /// Lines between its home and the live entry in slot `index`.
    pub(crate) fn displacement_at(&self, index: usize) -> Option<usize> {
        let (key, value) = self.entry_at(index)?;
        value.map(|_| index / LANES - self.shape().home(self.folder.hash(self.k(key))))
    }
}

/// The share of a table that may be filled, if that of large tables is `max_load`. The smallest
/// tables are filled like the largest: they are one or two lines, whatever is in them.
pub(super) fn load(bits: u32, max_load: f64) -> f64 {
    if bits <= Shape::MIN_BITS && !MODEL { max_load } else { load_of(bits, max_load) }
}

/// How many lines hold so many slots.
pub(super) const fn lines_of(slots: usize) -> usize {
    slots.div_ceil(LANES)
}
