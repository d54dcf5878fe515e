//! One table: a search array that finds slots, and an item array that holds items.
//!
//! ```text
//!   search   [ EMPTY | h,3 | h',1 | EMPTY | h'',2 | ... ]        2^bits elements, linear probing, a ring
//!                       │      │               │
//!   items    [ - |  p1 ◀──────┘  | p2 ◀────────┘ | p3 ◀ ... ]    slot 0 is reserved; slots are dealt in order
//!   births   [ - |  b1           | b2            | b3   ... ]    read and written under the shard's lock only
//! ```
//!
//! **T1.** An element is written once, by exchange from EMPTY. So a probe that meets an EMPTY has met every element of its hash that was
//! there when it began.
//! **T2.** A slot belongs to one element, and so to one hash, for ever: deleting empties it, and only an item of the same 32-bit hash may
//! fill it again.
//! **T3.** A slot is filled before its element is written: whoever sees the element sees the item.
//! **T4.** There are fewer slots than elements: a probe ends.
//! **T5.** A slot is dealt out only if there is one; asking a full table changes nothing, however often.

use super::word::{Birth, Element, start_of};
use crate::migrate::{Election, Work};
use crate::region::heap::{Buffer, Zeroed};
use crate::region::{AllocError, Pages};
use crate::sync::prefetch::prefetch_read;
use crate::sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, CachePadded, MODEL, Ordering};
use std::fmt;
use std::ptr;

/// Elements that a reader compares at once.
const LANES: usize = if MODEL { 1 } else { 4 };

/// An item as the table sees it.
pub(crate) type Raw = *mut ();

/// A slot of the item array.
#[repr(transparent)]
pub(crate) struct Slot(AtomicPtr<()>);

// SAFETY: natively an atomic pointer has the layout of a pointer, and zero is the null pointer.
unsafe impl Zeroed for Slot {
    fn zeroed() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }
}

/// What a table is made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// log2 of the number of elements.
    pub(crate) bits: u32,
    /// log2 of the number of shards; not above `bits`.
    pub(crate) shard_bits: u32,
    /// Slots over elements.
    pub(crate) load_factor: f64,
    pub(crate) pages: Pages,
    /// The era before it was published.
    pub(crate) birth: u64,
}

impl Plan {
    /// A 32-bit hash has no more starts, and a 32-bit slot number no more slots.
    pub(crate) const MAX_BITS: u32 = 32;

    /// How many items fit.
    pub(crate) fn capacity(&self) -> usize {
        let elements = 1u64 << self.bits;
        let slots = (self.load_factor * elements as f64) as u64;
        slots.clamp(1, (elements - 1).min(u64::from(u32::MAX) - 1)) as usize
    }

    /// log2 of the elements in a chunk of a migration: part of one shard's range.
    pub(crate) fn chunk_bits(&self) -> u32 {
        const CHUNK_BITS: u32 = if MODEL { 2 } else { 5 };
        CHUNK_BITS.min(self.bits - self.shard_bits)
    }
}

/// One table. The first fields are read by every operation and change never, or once.
#[repr(C)]
pub(crate) struct Table {
    elements: Buffer<AtomicU64>,
    slots: Buffer<Slot>,
    bits: u32,
    /// The table that is being migrated into this one; null when there is none, and for ever after.
    prev: AtomicPtr<Table>,
    births: Buffer<AtomicU32>,
    capacity: usize,
    plan: Plan,
    /// Somebody retires it.
    left: AtomicBool,
    pub(crate) election: Election,
    /// The chunks of `prev`.
    pub(crate) work: CachePadded<Work>,
    /// Slots dealt out.
    used: CachePadded<AtomicU64>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Table");
        out.field("plan", &self.plan).field("used", &self.used).finish_non_exhaustive()
    }
}

/// The end of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sought {
    /// The slot of what was sought, if it is here.
    pub(crate) slot: Option<usize>,
    /// The item in it, else null.
    pub(crate) item: Raw,
    /// An emptied slot of the same hash, if nothing was found.
    free: Option<usize>,
    /// The EMPTY element that ended the search.
    end: usize,
    /// Elements that were looked at.
    pub(crate) looked_at: usize,
}

/// No slot is left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Full;

impl Table {
    /// An empty table, into which `prev` will be migrated.
    pub(crate) fn try_new(plan: Plan, prev: Option<&Self>) -> Result<Box<Self>, AllocError> {
        if plan.bits > Plan::MAX_BITS {
            return Err(AllocError::CapacityOverflow);
        }
        let capacity = plan.capacity();
        let elements = 1usize.checked_shl(plan.bits).ok_or(AllocError::CapacityOverflow)?;
        let chunks = prev.map_or(0, |prev| 1 << (prev.bits - prev.plan.chunk_bits()));
        let refused = |_| AllocError::OutOfMemory { bytes: chunks / 8 };
        Ok(Box::new(Self {
            elements: Buffer::try_new(elements, plan.pages)?,
            slots: Buffer::try_new(capacity + 1, plan.pages)?,
            bits: plan.bits,
            prev: AtomicPtr::new(
                prev.map_or(ptr::null_mut(), |prev| ptr::from_ref(prev).cast_mut()),
            ),
            births: Buffer::try_new(capacity + 1, plan.pages)?,
            capacity,
            plan,
            left: AtomicBool::new(false),
            election: Election::new(),
            work: CachePadded::new(Work::try_new(chunks).map_err(refused)?),
            used: CachePadded::new(AtomicU64::new(0)),
        }))
    }

    pub(crate) const fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    #[inline(always)]
    pub(crate) const fn prev(&self) -> &AtomicPtr<Self> {
        &self.prev
    }

    pub(crate) fn bytes(&self) -> usize {
        self.elements.bytes() + self.slots.bytes() + self.births.bytes()
    }

    pub(crate) fn bytes_and_birth(&self) -> (usize, u64) {
        (self.bytes(), self.plan.birth)
    }

    /// True for the one that shall retire the table.
    pub(crate) fn take_leave(&self) -> bool {
        // ORDERING: Relaxed: decides who, hands over nothing.
        !self.left.swap(true, Ordering::Relaxed)
    }

    /// Slots dealt out so far.
    pub(crate) fn used(&self) -> usize {
        // ORDERING: Relaxed: dealing hands out numbers; what is in a slot is ordered by its element.
        usize::try_from(self.used.load(Ordering::Relaxed)).unwrap_or(usize::MAX).min(self.capacity)
    }

    /// So many slots are dealt out that the next table should be prepared.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.used() >= self.capacity - self.capacity / 16
    }

    pub(crate) fn is_full(&self) -> bool {
        self.used() >= self.capacity
    }

    #[inline(always)]
    fn element(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < self.elements.len());
        // SAFETY: a start has `bits` bits, and `next` stays within the ring of 2^bits elements.
        unsafe { self.elements.get_unchecked(index) }
    }

    /// The element at `index`.
    #[inline(always)]
    pub(crate) fn element_at(&self, index: usize) -> Element {
        // ORDERING: Acquire: partner is the exchange in `place`: with the element comes what is in its slot (T3).
        Element::from_bits(self.element(index).load(Ordering::Acquire))
    }

    #[inline(always)]
    fn slot(&self, slot: usize) -> &AtomicPtr<()> {
        debug_assert!(slot != 0 && slot < self.slots.len());
        // SAFETY: slot numbers come from `deal`, which gives 1 to `capacity`, directly or by an element.
        &unsafe { self.slots.get_unchecked(slot) }.0
    }

    /// The item in a slot, or null.
    #[inline(always)]
    pub(crate) fn item_at(&self, slot: usize) -> Raw {
        // ORDERING: Acquire: partner is the Release in `set`: a replaced item's content comes with its pointer.
        self.slot(slot).load(Ordering::Acquire)
    }

    #[inline(always)]
    pub(crate) fn start(&self, hash: u32) -> usize {
        start_of(hash, self.bits)
    }

    #[inline(always)]
    pub(crate) const fn next(&self, index: usize) -> usize {
        self.wrap(index + 1)
    }

    #[inline(always)]
    const fn wrap(&self, index: usize) -> usize {
        index & ((1 << self.bits) - 1)
    }

    /// Asks the cache for the line where a search starts.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u32) {
        prefetch_read(self.elements.as_ptr().wrapping_add(self.start(hash)));
    }

    /// Asks the cache for what copying this element needs.
    pub(crate) fn prefetch_slot(&self, element: Element) {
        prefetch_read(self.slots.as_ptr().wrapping_add(element.slot()));
        prefetch_read(self.births.as_ptr().wrapping_add(element.slot()));
    }

    /// Looks for an item of `hash` that is the `same`; null items are passed over. `None` if `may_follow` forbids to look at an
    /// item.
    #[inline(always)]
    pub(crate) fn find(
        &self,
        hash: u32,
        may_follow: impl Fn() -> bool,
        same: impl Fn(Raw) -> bool,
    ) -> Option<Raw> {
        let mut index = self.start(hash);
        loop {
            let stops = self.stops(index, hash);
            if stops == 0 {
                index = self.wrap(index + LANES);
                continue;
            }
            index = self.wrap(index + stops.trailing_zeros() as usize);
            let element = self.element_at(index);
            if element.is_empty() {
                return Some(ptr::null_mut());
            }
            // An element that was EMPTY a moment ago may be another hash's now.
            if element.hash() == hash {
                let item = self.item_at(element.slot());
                if !item.is_null() {
                    if !may_follow() {
                        return None;
                    }
                    if same(item) {
                        return Some(item);
                    }
                }
            }
            index = self.next(index);
        }
    }

    /// Which of the next elements end a search or hold `hash`, one bit each. Without a branch for each: how far a hash lies from its
    /// start cannot be predicted, and a wrong guess costs as much as the search.
    #[inline(always)]
    fn stops(&self, index: usize, hash: u32) -> u32 {
        (0..LANES).fold(0, |stops, lane| {
            let element = self.element_at(self.wrap(index + lane));
            stops | u32::from(element.is_empty() | (element.hash() == hash)) << lane
        })
    }

    /// The same under the lock of the hash's shard: what is found stays until it is changed by the caller.
    #[inline(always)]
    pub(crate) fn seek(&self, hash: u32, same: impl Fn(Raw) -> bool) -> Sought {
        let mut index = self.start(hash);
        let mut free = None;
        let mut looked_at = 1;
        loop {
            let element = self.element_at(index);
            if element.is_empty() {
                return Sought { slot: None, item: ptr::null_mut(), free, end: index, looked_at };
            }
            if element.hash() == hash {
                let slot = element.slot();
                let item = self.item_at(slot);
                if item.is_null() {
                    free = free.or(Some(slot));
                } else if same(item) {
                    return Sought { slot: Some(slot), item, free: None, end: index, looked_at };
                }
            }
            index = self.next(index);
            looked_at += 1;
        }
    }

    /// The birth of the item in a slot. The caller holds the lock of its shard.
    pub(crate) fn birth(&self, slot: usize) -> Birth {
        // ORDERING: Relaxed: births are touched under the shard's lock only.
        Birth::from_bits(self.births[slot].load(Ordering::Relaxed))
    }

    /// Puts another item, or null, into a slot. The caller holds the lock of its shard.
    #[inline(always)]
    pub(crate) fn set(&self, slot: usize, item: Raw, birth: Birth) {
        // ORDERING: Relaxed, as in `birth`.
        self.births[slot].store(birth.bits(), Ordering::Relaxed);
        // ORDERING: Release: the item's content comes first; partner: `item_at`.
        self.slot(slot).store(item, Ordering::Release);
    }

    /// Adds an item that was sought in vain. The caller has held the lock of its shard since.
    #[inline(always)]
    pub(crate) fn place(
        &self,
        hash: u32,
        sought: &Sought,
        item: Raw,
        birth: Birth,
    ) -> Result<(), Full> {
        if let Some(slot) = sought.free {
            self.set(slot, item, birth);
            return Ok(());
        }
        let slot = self.deal()?;
        self.set(slot as usize, item, birth);
        let element = Element::new(hash, slot).bits();
        let mut index = sought.end;
        loop {
            // ORDERING: Release: the slot was filled before (T3), partner: `element_at`. On failure another shard's element
            // came first: the next one.
            let exchanged = self.element(index).compare_exchange(
                Element::EMPTY.bits(),
                element,
                Ordering::Release,
                Ordering::Relaxed,
            );
            if exchanged.is_ok() {
                return Ok(());
            }
            index = self.next(index);
        }
    }

    /// Deals out a slot (T5).
    #[inline(always)]
    fn deal(&self) -> Result<u32, Full> {
        if self.is_full() {
            return Err(Full);
        }
        // ORDERING: Relaxed, as in `used`. The check above keeps the counter within the number of threads of its end, and 64
        // bits keep it from coming round.
        let dealt = self.used.fetch_add(1, Ordering::Relaxed) + 1;
        if dealt > self.capacity as u64 {
            return Err(Full);
        }
        u32::try_from(dealt).map_err(|_| Full)
    }

    /// Gives back memory, step by step; true when all is gone.
    ///
    /// # Safety
    /// Nobody else can reach the table, and nothing but this and drop follows.
    pub(crate) unsafe fn give_back(&mut self) -> bool {
        // SAFETY: the caller's promise.
        if !unsafe { self.elements.give_back() } {
            return false;
        }
        // SAFETY: the caller's promise.
        if !unsafe { self.slots.give_back() } {
            return false;
        }
        // SAFETY: the caller's promise.
        unsafe { self.births.give_back() }
    }
}
