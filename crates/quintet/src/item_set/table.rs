//! One table: lines of six places each. A place holds a tag and an item; beside the lines lie
//! marks, a hash and a birth for each place.
//!
//! ```text
//!   lines    [ t t' . . . . | p p' - - - - ]  [ t" . . . . . | p" - - - - - ]  ...      a ring, probed line by line
//!   marks    [ hb h'b' . . . .   h"b" . . . . .   ...                                   asked by writers only
//!   order    [ - | 0 | 8 | 1 | ... ]       slot to place, in the order of insertion; the first table of an ordered set only
//! ```
//!
//! **T1.** The tag of a place is written once, and its hash after that, under the same locks. So a
//! probe that meets a line with an unused place has met every place of its hash that was there when
//! it began.
//! **T2.** A place belongs to one hash for ever: deleting empties it, and only an item of the same
//! hash may fill it again.
//! **T3.** A place is claimed by its tag first and filled after, under one lock: a claimed place
//! without an item reads as an emptied one. A line lies in the range of one shard, its owner, and
//! its tags are written under the owner's lock, by plain stores: no locked instruction waits for a
//! line that is not in the cache. Who is displaced into the range of another shard takes that one's
//! lock besides its own (`shard` L3), and looks at the line again. A place that another shard has
//! claimed has another hash, or none yet: under the lock of its own shard a hash is found by its
//! marks.
//! **T4.** Fewer places are dealt out than there are: a probe ends. A shard is given a batch of
//! places at a time, which count as used, and deals them out under its lock: its credit. What is
//! left of it when the table is left may count once more for a table that comes to lie at the same
//! address: a batch less one for each shard at most, which is a 16th part of the capacity for all
//! of them.
//! **T5.** A place is dealt out only if there is one. Asking a full table gives nothing, however
//! often: the count runs on, in 64 bits.
//! **T6.** Who takes an item out of its place reads its birth before, and who replaces it notes the
//! new birth after, by plain accesses. So what is read is a birth that was noted for this item or
//! for one before it in this place, never for a later one (the compare-exchanges of a place stand
//! one behind the other). Each was an era before its item was published, hence before a later one
//! was: too early a birth only holds an item longer (`reclaim` E2).
//! **T8.** An item comes into an empty place only under the lock of its hash's shard. From there it
//! goes, or is replaced, by one compare-exchange of whoever knows the table, until its word is
//! *closed*; from then on under the shard's lock alone (`item_word` Y1, Y2). Who copies an item
//! closes it first, and so does a write that finds its item in an old table. So a change needs no
//! look at the root: what is open was not copied yet.
//! **T7.** A table owns its successor until the root has moved on to it. If the root goes another
//! way (`rebuild`), the successor is dropped with the table: whoever knew of it knew it from here,
//! and is gone.

use super::core::Stop;
use super::plan::Plan;
use super::row::Row;
use super::shard::{Locked, Locks, Shard};
use super::word::{Birth, EMPTY};
use crate::migrate::{Address, Election, FirstTouch, Leave, Link, Work};
use crate::region::AllocError;
use crate::region::heap::Buffer;
use crate::sync::item_word::ItemWord;
use crate::sync::prefetch::prefetch_read;
use crate::sync::six::{LANE_BITS, LANES, Lanes, Mark, Six};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Backoff, Ordering};
use std::fmt;
use std::ptr;

/// An item as the table sees it.
pub(crate) type Raw = *mut ();

/// Whether a number stands for a place.
#[inline(always)]
const fn is_place(number: usize) -> bool {
    lane_of(number) < LANES
}

/// The lane of a place in its line.
#[inline(always)]
pub(super) const fn lane_of(place: usize) -> usize {
    place & ((1 << LANE_BITS) - 1)
}

/// One table. The first fields are read by every operation and change never, or once.
#[repr(C)]
pub(crate) struct Table {
    /// Turns a hash into its home: the top `line_bits` of its 32.
    shift: u32,
    line_bits: u32,
    /// Places that a shard is given at a time.
    pub(super) batch: u32,
    locks: Locks,
    /// The table that is being migrated into this one; null when there is none, and for ever after.
    prev: Link<Table>,
    /// The table that will follow this one, set once; this one owns it until the root has moved on
    /// to it (T7).
    next: Link<Table>,
    lines: Buffer<Six>,
    capacity: usize,
    filling_from: usize,
    /// By place.
    marks: Buffer<Mark>,
    /// By slot: its place plus one, or 0 if it is not filled yet. Slot 0 is reserved.
    pub(super) order: Option<Buffer<AtomicU32>>,
    plan: Plan,
    /// Somebody retires it.
    left: AtomicBool,
    /// The root has moved on to `next`.
    followed: AtomicBool,
    touch: FirstTouch,
    touch_marks: FirstTouch,
    pub(crate) election: Election,
    busy: Busy,
}

/// What of a table all writers change, on a line of its own.
#[repr(align(64))]
struct Busy {
    /// The chunks of `prev`.
    work: Work,
    /// Places dealt out, or given to shards to deal out; the last slot if the table is ordered.
    /// Above the capacity if more were asked for.
    used: AtomicU64,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Table");
        out.field("plan", &self.plan).field("used", &self.busy.used).finish_non_exhaustive()
    }
}

/// No place is left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Full;

impl Leave for Table {
    fn bytes_and_birth(&self) -> (usize, u64) {
        (self.bytes(), self.plan.birth)
    }

    unsafe fn give_back(&mut self) -> bool {
        // SAFETY: the caller's promise.
        if !unsafe { self.lines.give_back() } {
            return false;
        }
        // SAFETY: the caller's promise.
        if !unsafe { self.marks.give_back() } {
            return false;
        }
        // SAFETY: the caller's promise.
        self.order.as_mut().is_none_or(|order| unsafe { order.give_back() })
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
std::thread_local! {
    /// Tables that this thread has dropped.
    pub(super) static DROPPED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) }
}

impl Drop for Table {
    fn drop(&mut self) {
        #[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
        DROPPED.set(DROPPED.get() + 1);
        // ORDERING: Relaxed: alone.
        if !self.followed.load(Ordering::Relaxed) {
            // SAFETY: alone, and nobody else ever owned it (T7).
            drop(unsafe { self.next.take() });
        }
    }
}

impl Table {
    /// An empty table with these shards, into which `prev` will be migrated, which lies at the
    /// address beside it and has the same.
    pub(crate) fn try_new(
        plan: Plan,
        locks: Locks,
        prev: Option<(&Self, Address<Self>)>,
    ) -> Result<Box<Self>, AllocError> {
        if plan.bits > Plan::MAX_BITS {
            return Err(AllocError::CapacityOverflow);
        }
        debug_assert!(plan.line_bits() >= plan.shard_bits);
        let capacity = plan.capacity();
        let lines = 1usize.checked_shl(plan.line_bits()).ok_or(AllocError::CapacityOverflow)?;
        let chunks = prev.as_ref().map_or(0, |(prev, _)| prev.chunks());
        let refused = |_| AllocError::OutOfMemory { bytes: chunks / 8 };
        let order = || Buffer::try_new(capacity + 1, plan.pages);
        let marks = Buffer::try_new(lines * LANES, plan.pages)?;
        let lines = Buffer::try_new(lines, plan.pages)?;
        Ok(Box::new(Self {
            touch: FirstTouch::of(&lines),
            touch_marks: FirstTouch::of(&marks),
            lines,
            marks,
            shift: u32::BITS - plan.line_bits(),
            line_bits: plan.line_bits(),
            batch: plan.batch(),
            locks,
            prev: match prev {
                // SAFETY: as below; the table is retired when it was cut from here, or this one has
                // left the root, or never was there.
                Some((_, address)) => unsafe { Link::to(address) },
                // SAFETY: as below.
                None => unsafe { Link::empty() },
            },
            // SAFETY: only views of the set's domain lead here, and all that they find is used in
            // their sections (`link` M12).
            next: unsafe { Link::empty() },
            capacity,
            filling_from: plan.filling_from(),
            order: plan.ordered.then(order).transpose()?,
            plan,
            left: AtomicBool::new(false),
            followed: AtomicBool::new(false),
            election: Election::new(),
            busy: Busy { work: Work::try_new(chunks).map_err(refused)?, used: AtomicU64::new(0) },
        }))
    }

    pub(crate) const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The chunks of `prev`.
    pub(crate) const fn work(&self) -> &Work {
        &self.busy.work
    }

    /// The shard of a stored hash.
    #[inline(always)]
    pub(crate) fn shard(&self, hash: u32) -> &Shard {
        // SAFETY: tables are found in sections of their set, and its shards outlive all sections
        // (`shard` L5).
        unsafe { self.locks.of(hash) }
    }

    /// Whether a line lies in the range of a hash's own shard (T3).
    #[inline(always)]
    pub(super) fn is_own(&self, line: usize, hash: u32) -> bool {
        self.range_of(line ^ self.home(hash)) == 0
    }

    /// The number of the shard in whose range a line lies.
    #[inline(always)]
    fn range_of(&self, line: usize) -> usize {
        line >> (self.line_bits - self.plan.shard_bits)
    }

    /// Locks the shard in whose range a line lies, for one who holds the lock of the hash's shard,
    /// which is another (T3, `shard` L3).
    pub(super) fn lock_owner(&self, line: usize, hash: u32) -> Result<Locked<'_>, Stop> {
        let (own, owner) = (self.range_of(self.home(hash)), self.range_of(line));
        // SAFETY: as in `shard`; a range is a shard's.
        let shard = unsafe { self.locks.at(owner) };
        if owner > own {
            return Ok(shard.lock());
        }
        shard.try_lock().ok_or_else(|| {
            Backoff::new().snooze();
            Stop::Restart
        })
    }

    /// Whether the shards of this table are those of another (`shard` L6).
    #[inline(always)]
    pub(crate) fn is_locked_like(&self, other: &Self) -> bool {
        self.locks.are(&other.locks)
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    /// With fewer items than this it is too large for them.
    pub(crate) const fn sparse_below(&self) -> usize {
        self.capacity / 8
    }

    /// Whether few items lie in some lines from this one on: fewer than one and a half times as
    /// many as there would be if the table was just [sparse](Self::sparse_below).
    #[cold]
    #[inline(never)]
    pub(crate) fn seems_sparse(&self, hash: u32) -> bool {
        const LOOKED_AT: usize = 8;
        let looked_at = LOOKED_AT.min(self.lines.len());
        let lines =
            std::iter::successors(Some(self.home(hash)), |line| Some(self.line_after(*line)));
        let items = |line: usize| {
            let there = |lane: &usize| !self.line(line).item(*lane).is_null();
            (0..LANES).filter(there).count()
        };
        let found: usize = lines.take(looked_at).map(items).sum();
        found * self.lines.len() <= looked_at * self.sparse_below() * 3 / 2
    }

    /// The numbers of its places; some stand for none.
    pub(crate) const fn places(&self) -> usize {
        1 << self.plan.bits
    }

    /// Chunks of its migration.
    pub(crate) fn chunks(&self) -> usize {
        1 << (self.line_bits - self.plan.chunk_bits())
    }

    #[inline(always)]
    pub(crate) const fn prev(&self) -> &Link<Self> {
        &self.prev
    }

    /// The same, for who is alone.
    pub(crate) const fn prev_mut(&mut self) -> &mut Link<Self> {
        &mut self.prev
    }

    #[inline(always)]
    pub(crate) const fn next(&self) -> &Link<Self> {
        &self.next
    }

    /// The root has moved on to `next`, which is its own master from now on (T7).
    pub(crate) fn let_next_go(&self) {
        // ORDERING: Relaxed: read when the table is dropped, which comes after every section that
        // could be here.
        self.followed.store(true, Ordering::Relaxed);
    }

    /// Makes some of its memory present. False if all of it is, or will be soon (`migrate` M10).
    pub(crate) fn touch_ahead(&self) -> bool {
        self.touch.step(&self.lines) || self.touch_marks.step(&self.marks)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lines.bytes() + self.marks.bytes() + self.order.as_ref().map_or(0, Buffer::bytes)
    }

    /// True for the one that shall retire the table.
    pub(crate) fn take_leave(&self) -> bool {
        // ORDERING: Relaxed: decides who, hands over nothing.
        !self.left.swap(true, Ordering::Relaxed)
    }

    /// Places dealt out so far, or given to shards to deal out.
    #[inline(always)]
    pub(crate) fn used(&self) -> usize {
        // ORDERING: Relaxed: a count; what is in a place is ordered by its item.
        usize::try_from(self.busy.used.load(Ordering::Relaxed))
            .unwrap_or(usize::MAX)
            .min(self.capacity)
    }

    /// So many places are dealt out that the next table should be prepared.
    #[inline(always)]
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.used() >= self.filling_from
    }

    pub(crate) fn is_full(&self) -> bool {
        self.used() >= self.capacity
    }

    /// Where iteration ends: the last slot of an ordered table, else the last place.
    pub(crate) fn end_of_walk(&self) -> usize {
        if self.order.is_some() { self.used() } else { self.places() }
    }

    /// The item that iteration meets at `step`, from 1 to its end; or null.
    pub(crate) fn walk_at(&self, step: usize) -> Raw {
        let Some(order) = &self.order else { return self.item_at(step - 1) };
        // ORDERING: Acquire: partner is the Release in `add_slowly`: whoever knows of an item finds
        // its place here.
        match order[step].load(Ordering::Acquire) {
            0 => ptr::null_mut(),
            filled => self.item_at(filled as usize - 1),
        }
    }

    #[inline(always)]
    pub(super) fn line(&self, index: usize) -> &Six {
        debug_assert!(index < self.lines.len());
        // SAFETY: a home has `line_bits` bits, and `line_after` stays within the ring of
        // 2^line_bits lines.
        unsafe { self.lines.get_unchecked(index) }
    }

    #[inline(always)]
    fn mark(&self, place: usize) -> &Mark {
        self.row(place >> LANE_BITS).mark(Lanes::only(lane_of(place)))
    }

    /// All lines, and their marks.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.lines.len()).map(|index| self.row(index))
    }

    /// The hashes of the items in a table that nobody changes.
    pub(super) fn live_hashes(&self) -> impl Iterator<Item = u32> {
        let live = |place: &usize| !self.item_at(*place).is_null();
        (0..self.places()).filter(live).map(|place| self.hash_at(place))
    }

    /// A line, and its marks.
    #[inline(always)]
    pub(super) fn row(&self, index: usize) -> Row<'_> {
        let line = self.line(index);
        let marks = self.marks.as_ptr().wrapping_add(index * LANES).cast::<[Mark; LANES]>();
        // SAFETY: there are LANES marks for each line; for lines see `line`.
        Row::new(line, unsafe { &*marks })
    }

    /// The hash at a place; EMPTY if it has none, or is just being claimed by another shard.
    #[inline(always)]
    pub(crate) fn hash_at(&self, place: usize) -> u32 {
        if !is_place(place) {
            return EMPTY;
        }
        // ORDERING: Relaxed: who reads hashes holds the lock of their shard, or is alone (T3).
        self.mark(place).hash.load(Ordering::Relaxed)
    }

    /// The item at a place, or null.
    #[inline(always)]
    pub(crate) fn item_at(&self, place: usize) -> Raw {
        if !is_place(place) {
            return ptr::null_mut();
        }
        self.word(place).load()
    }

    /// The word of a place (T8).
    #[inline(always)]
    pub(super) fn word(&self, place: usize) -> &ItemWord {
        self.line(place >> LANE_BITS).item(lane_of(place))
    }

    /// Notes the birth of the item that is at a place now (T6).
    #[inline(always)]
    pub(super) fn set_birth(&self, place: usize, birth: Birth) {
        // ORDERING: Relaxed (T6).
        self.mark(place).birth.store(birth.bits(), Ordering::Relaxed);
    }

    /// The birth of the item at a place, or an earlier one (T6).
    #[inline(always)]
    pub(crate) fn birth(&self, place: usize) -> Birth {
        // ORDERING: Relaxed (T6).
        Birth::from_bits(self.mark(place).birth.load(Ordering::Relaxed))
    }

    #[inline(always)]
    pub(crate) fn home(&self, hash: u32) -> usize {
        // In 64 bits, which may be shifted by all of 32.
        (u64::from(hash) >> self.shift) as usize
    }

    #[inline(always)]
    pub(crate) const fn line_after(&self, line: usize) -> usize {
        (line + 1) & ((1 << self.line_bits) - 1)
    }

    /// True if a probe goes on behind this line.
    #[inline(always)]
    pub(crate) fn is_passed(&self, line: usize) -> bool {
        self.line(line).unused().is_empty()
    }

    /// Asks the cache for the line where a search starts.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u32) {
        prefetch_read(self.lines.as_ptr().wrapping_add(self.home(hash)));
    }

    /// Deals out a batch of places to a shard, which uses one of them (T5): its slot, if the table
    /// is ordered, and whether the next table should be prepared.
    pub(super) fn deal_batch(&self, shard: &Shard) -> Result<(usize, bool), Full> {
        let batch = self.batch as usize;
        // ORDERING: Relaxed, as in `used`. At once: a look before, or after, would fetch the line
        // again that all inserts share. 64 bits keep it from coming round.
        let before = self.busy.used.fetch_add(batch as u64, Ordering::Relaxed);
        let before = usize::try_from(before).unwrap_or(usize::MAX).min(self.capacity);
        let given = batch.min(self.capacity - before);
        if given == 0 {
            return Err(Full);
        }
        shard.grant(ptr::from_ref(self).cast(), given as u32 - 1);
        Ok((before + 1, before + given >= self.filling_from))
    }
}
