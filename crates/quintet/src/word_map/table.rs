//! One table: where a key is, and what a slot may become.
//!
//! **T1.** A slot's key is written once. A key occurs at most once per table: two inserters of one key meet at the first EMPTY of
//! its probe, and a tombstone is revived by its own key only.
//! **T2.** The value changes only in EMPTY → LIVE, LIVE → LIVE and TOMB → LIVE. TOMB, frozen and done keep it.
//! **T3.** A reader may load the first word and then the second, and answer LIVE(k) with what it got: the second word is of a moment
//! not before the first load. If the slot was still LIVE(k) then, that is the answer's moment. If not, by T2 the word is
//! the last value k had here, and by T1 and the first load k had it at some moment in between.
//! **T4.** A probe from the home passes slots of other keys in any state and ends at its own key, at an EMPTY or
//! EMPTY-frozen, or past the reach in the overflow list (O1). Nobody has ever gone past an EMPTY in search of its key.
//! **T5.** A failed exchange looks at the same slot again.
//! **T6.** A probe goes through the slots of a group, beginning at the key's turn and round to it again, and then to the next group.
//! So a group with the key, or with an EMPTY, is the last one of its probe.

use super::aim::{Aim, has_empty};
use super::overflow::Overflow;
use super::word::{GROUP, SPARE_BITS, STEP, Shape, SlotWord, Sought, State};
use crate::hash::WordMixer;
use crate::migrate::{Election, FirstTouch, Leave, Link, Work, load_of};
use crate::region::heap::Buffer;
use crate::region::{AllocError, Pages};
use crate::sync::pair::find;
use crate::sync::prefetch::prefetch_read;
use crate::sync::{AtomicBool, AtomicPair, AtomicUsize, CachePadded, MODEL, Ordering, load_hint};
use std::fmt;

/// What a table is made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// log2 of the size.
    pub(crate) bits: u32,
    pub(crate) seed: u64,
    /// The seed was changed at this size already.
    pub(crate) reseeded: bool,
    /// Share of the size that may be used before the table is left.
    pub(crate) max_load: f64,
    /// Slots in one chunk of a migration.
    pub(crate) chunk: usize,
    pub(crate) pages: Pages,
    /// Number of this table in its map's life.
    pub(crate) id: u64,
    /// The era before it was published.
    pub(crate) birth: u64,
}

/// One table of the chain. The first fields are read by every operation and change never, or once.
#[repr(C)]
pub(crate) struct Table {
    shape: Shape,
    mixer: Mixer,
    slots: Buffer<AtomicPair>,
    reach: usize,
    /// How many slots a thread may use before it reports them.
    batch: u32,
    /// When so many slots are used, the table is left.
    threshold: usize,
    /// The successor: set once.
    next: Link<Table>,
    plan: Plan,
    overflow: Overflow,
    /// Inserts may use the whole reach and then the list: a reseed did not help.
    flooded: AtomicBool,
    pub(crate) election: Election,
    touch: FirstTouch,
    pub(crate) work: CachePadded<Work>,
    /// Slots that are no longer EMPTY, as far as they have been reported.
    used: CachePadded<AtomicUsize>,
    /// Entries removed here, as far as they have been reported.
    removed: CachePadded<AtomicUsize>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("plan", &self.plan)
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}

/// A key's place in a table as a probe saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) state: State,
    word: SlotWord,
    pub(crate) value: u64,
}

impl Leave for Table {
    fn bytes_and_birth(&self) -> (usize, u64) {
        (self.bytes(), self.plan.birth)
    }

    unsafe fn give_back(&mut self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.slots.give_back() }
    }
}

impl Table {
    /// A table of EMPTY slots.
    pub(crate) fn try_new(plan: Plan) -> Result<Box<Self>, AllocError> {
        if plan.bits > Shape::MAX_BITS {
            return Err(AllocError::CapacityOverflow);
        }
        let shape = Shape::new(plan.bits);
        let chunks = shape.slots().div_ceil(plan.chunk) + 1;
        let refused = |_| AllocError::OutOfMemory { bytes: chunks / 8 };
        let slots = Buffer::try_new(shape.slots(), plan.pages)?;
        Ok(Box::new(Self {
            shape,
            mixer: Mixer::new(plan.seed),
            touch: FirstTouch::of(&slots),
            slots,
            reach: shape.reach(),
            batch: (shape.size() >> 8).clamp(1, 64) as u32,
            threshold: (load_of(plan.bits, plan.max_load) * shape.size() as f64) as usize,
            // SAFETY: only sections of the map's domain lead here, and all that they find is used inside of them (M12).
            next: unsafe { Link::empty() },
            plan,
            overflow: Overflow::new(),
            flooded: AtomicBool::new(false),
            election: Election::new(),
            work: CachePadded::new(Work::try_new(chunks).map_err(refused)?),
            used: CachePadded::new(AtomicUsize::new(0)),
            removed: CachePadded::new(AtomicUsize::new(0)),
        }))
    }

    pub(crate) const fn shape(&self) -> Shape {
        self.shape
    }

    pub(crate) const fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn bytes(&self) -> usize {
        self.slots.bytes()
    }

    #[inline(always)]
    pub(crate) const fn hash(&self, key: u64) -> u64 {
        self.mixer.mix(key)
    }

    #[inline(always)]
    pub(crate) const fn key(&self, hash: u64) -> u64 {
        self.mixer.unmix(hash)
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

    /// Starts a probe for `key`.
    #[inline(always)]
    pub(crate) fn probe(&self, key: u64) -> Probe<'_> {
        self.probe_hash(self.hash(key))
    }

    #[inline(always)]
    fn probe_hash(&self, hash: u64) -> Probe<'_> {
        let (home, sought) = self.shape.aim(hash);
        let slots = self.slots.as_ptr();
        let turn = if self.shape.is_grouped() { sought.turn() } else { 0 };
        Probe {
            table: self,
            hash,
            slots,
            first: home,
            end: home + self.reach,
            sought,
            turn,
            step: 0,
        }
    }

    #[cold]
    fn look_in_list(&self, hash: u64) -> (State, u64) {
        self.overflow.look(hash)
    }

    #[cold]
    fn exchange_in_list(&self, hash: u64, old: (State, u64), new: (State, u64)) -> bool {
        self.overflow.exchange(hash, old, new)
    }

    /// The usual answers: the value of `key`, or that it is absent. `None` says nothing.
    #[inline(always)]
    pub(crate) fn glance(&self, key: u64) -> Option<Option<u64>> {
        let Some(aim) = self.aim(key) else { return self.glance_further(key) };
        if let Some(slot) = find::<GROUP, STEP>(aim.group, aim.live.bits()) {
            return Some(Some(slot.load_second()));
        }
        if !has_empty(aim.group) {
            return self.glance_further(key);
        }
        // T6: the key is here or absent. It may be here as TOMB or, if a migration has begun, frozen; without a successor
        // afterwards it was not frozen before.
        // Whoever freezes has seen the successor, and passes that on by its exchange.
        self.next.is_empty().then_some(None)
    }

    /// The same for a key whose home is full, or in a small table.
    #[cold]
    #[inline(never)]
    fn glance_further(&self, key: u64) -> Option<Option<u64>> {
        let seen = self.probe(key).look();
        match seen.state {
            State::Live => Some(Some(seen.value)),
            State::Empty | State::Tomb => Some(None),
            _ => None,
        }
    }

    /// Where `key` is most often found, in a grouped table.
    #[inline(always)]
    pub(crate) fn aim(&self, key: u64) -> Option<Aim<'_>> {
        if !self.shape.is_grouped() {
            return None;
        }
        let (home, sought) = self.shape.aim(self.hash(key));
        Some(Aim { group: self.group(home), live: sought.word(State::Live), turn: sought.turn() })
    }

    /// The slots of one group.
    #[inline(always)]
    fn group(&self, first: usize) -> &[AtomicPair; GROUP] {
        debug_assert!(first + GROUP <= self.slots.len());
        // SAFETY: inside the buffer: a home lies below the size and a group begins at most the reach behind it, less a group.
        let first = unsafe { self.slots.as_ptr().add(first) };
        // SAFETY: the buffer lives as long as the table, and its slots are only ever shared.
        unsafe { &*first.cast() }
    }

    /// Asks the cache for the line where a probe for `key` starts.
    #[inline(always)]
    pub(crate) fn prefetch(&self, key: u64) {
        let (home, _) = self.shape.aim(self.hash(key));
        prefetch_read(self.slots.as_ptr().wrapping_add(home));
    }

    #[inline(always)]
    fn slot(&self, index: usize) -> &AtomicPair {
        debug_assert!(index < self.slots.len());
        // SAFETY: every caller's index is below size + reach: a home lies below the size, a probe
        // adds at most the reach, and a chunk ends at the number of slots.
        unsafe { self.slots.get_unchecked(index) }
    }

    /// Makes some of its memory present. False if all of it is, or will be soon (M10).
    pub(crate) fn touch_ahead(&self) -> bool {
        self.touch.step(&self.slots)
    }

    /// True if entries may come here (M10).
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
        let share = self.shape.size() / 32 + 1;
        // ORDERING: Relaxed, as in `add_used`.
        let before = self.removed.fetch_add(count, Ordering::Relaxed);
        before / share != (before + count) / share
    }

    #[inline(always)]
    pub(crate) const fn threshold(&self) -> usize {
        self.threshold
    }

    /// Above this nobody waits for the winner of the election any more.
    pub(crate) const fn hard_limit(&self) -> usize {
        self.shape.size() - self.shape.size() * 15 / 100
    }

    #[inline(always)]
    pub(crate) const fn batch(&self) -> u32 {
        self.batch
    }

    /// True if few slots are used, with `live` entries in the map: then a long probe is the hash's fault. The live count
    /// knows what has not been reported here yet.
    pub(crate) fn is_sparse(&self, live: usize) -> bool {
        self.used().max(live) < self.shape.size() / 5
    }

    /// From now on inserts use the whole reach, and then the list.
    pub(crate) fn set_flooded(&self) {
        // ORDERING: Relaxed: a permission; using it early or late is the same.
        self.flooded.store(true, Ordering::Relaxed);
    }

    /// The largest displacement an insert may use: half the reach, so that copies find room.
    #[inline(always)]
    fn insert_reach(&self) -> usize {
        // ORDERING: Relaxed, as in `set_flooded`.
        if self.flooded.load(Ordering::Relaxed) { usize::MAX } else { self.reach / 2 }
    }

    /// Puts an entry of the predecessor here unless the key has been here already. True if a slot was used.
    #[inline(always)]
    pub(crate) fn copy_in(&self, hash: u64, value: u64) -> bool {
        let mut probe = self.probe_hash(hash);
        loop {
            let seen = probe.look();
            match seen.state {
                State::Empty if probe.exchange(seen, State::Live, value) => return true,
                State::Empty => {}
                // The key was copied, or (EMPTY-frozen) the predecessor is complete.
                _ => return false,
            }
        }
    }

    /// Freezes and copies one chunk into the successor. Returns how many slots were used there.
    pub(crate) fn migrate(&self, chunk: usize, next: &Self) -> usize {
        let from = chunk * self.plan.chunk;
        if from >= self.slots.len() {
            return self.migrate_list(next);
        }
        let to = (from + self.plan.chunk).min(self.slots.len());
        (from..to).filter(|&index| self.migrate_slot(index, next)).count()
    }

    #[inline(always)]
    fn migrate_slot(&self, index: usize, next: &Self) -> bool {
        let slot = self.slot(index);
        let mut word = SlotWord::from_bits(slot.load_first());
        // T2, T3: the exchange fails if the value is not the word's.
        let mut value = slot.load_second();
        while let Some(frozen) = word.frozen() {
            match slot.compare_exchange((word.bits(), value), (frozen.bits(), value)) {
                Ok(()) => word = frozen,
                Err((found, second)) => (word, value) = (SlotWord::from_bits(found), second),
            }
        }
        if word.state() != State::LiveFrozen {
            return false;
        }
        let used = self.copy_out(self.shape.hash(index, word), value, next);
        // LIVE-frozen becomes LIVE-done and nothing else, so that this needs no exchange (P5).
        slot.settle((word.bits(), value), word.with(State::LiveDone).bits());
        used
    }

    fn migrate_list(&self, next: &Self) -> usize {
        let mut used = 0;
        for (hash, value) in self.overflow.freeze() {
            used += usize::from(self.copy_out(hash, value, next));
            let frozen = (State::LiveFrozen, value);
            let _ = self.overflow.exchange(hash, frozen, (State::LiveDone, value));
        }
        used
    }

    fn copy_out(&self, hash: u64, value: u64, next: &Self) -> bool {
        if self.plan.seed == next.plan.seed {
            return next.copy_in(hash, value);
        }
        next.copy_in(next.hash(self.key(hash)), value)
    }

    /// The key in slot `index`, whatever its state, and its value if it is LIVE (T3).
    pub(crate) fn entry_at(&self, index: usize) -> Option<(u64, Option<u64>)> {
        let slot = self.slot(index);
        let word = SlotWord::from_bits(slot.load_first());
        let key = word.has_key().then(|| self.key(self.shape.hash(index, word)))?;
        Some((key, (word.state() == State::Live).then(|| slot.load_second())))
    }

    /// The keys in the overflow list, in whatever state.
    pub(crate) fn listed_keys(&self) -> Vec<u64> {
        self.overflow.hashes().into_iter().map(|hash| self.key(hash)).collect()
    }

    /// Displacement of the LIVE entry in slot `index`.
    pub(crate) fn displacement_at(&self, index: usize) -> Option<usize> {
        let word = SlotWord::from_bits(self.slot(index).load_first());
        (word.state() == State::Live).then(|| self.shape.displacement(word))
    }
}

/// A walk from a key's home to its place (T4, T6).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe<'t> {
    table: &'t Table,
    hash: u64,
    /// Where the slots begin; kept here since loads of slots make the compiler forget what lies in memory.
    slots: *const AtomicPair,
    /// The first slot of the group.
    first: usize,
    /// The last slot within reach.
    end: usize,
    /// The key's word in the first slot of the group.
    sought: Sought,
    /// Where the walk through a group begins.
    turn: usize,
    /// How many of the group it has passed.
    step: usize,
}

impl<'t> Probe<'t> {
    /// The place within the group.
    #[inline(always)]
    fn lane(&self) -> usize {
        (self.turn + self.step) % GROUP
    }

    #[inline(always)]
    fn place(&self) -> &'t AtomicPair {
        debug_assert!(self.first + self.lane() <= self.end);
        // SAFETY: inside the buffer: a home lies below the size, `end` at most the reach behind it, and a group that
        // begins before the end ends before it.
        let place = unsafe { self.slots.add(self.first + self.lane()) };
        // SAFETY: the buffer lives as long as the table, and its slots are only ever shared.
        unsafe { &*place }
    }

    /// The key's place, or the end of the probe. Called again it looks at the same slot first (T5).
    #[inline(always)]
    pub(crate) fn look(&mut self) -> Seen {
        while self.first <= self.end {
            while self.step < GROUP {
                let slot = self.place();
                let word = SlotWord::from_bits(slot.load_first());
                if self.sought.further(self.lane()).is(word) {
                    return Seen { state: word.state(), word, value: slot.load_second() };
                }
                if !word.has_key() {
                    return Seen { state: word.state(), word, value: 0 };
                }
                self.step += 1;
            }
            self.step = 0;
            self.first += GROUP;
            self.sought = self.sought.further(GROUP);
        }
        let (state, value) = self.table.look_in_list(self.hash);
        Seen { state, word: SlotWord::EMPTY, value }
    }

    /// Gives the place another state and value if it is still as seen.
    #[inline(always)]
    pub(crate) fn exchange(&self, seen: Seen, state: State, value: u64) -> bool {
        if self.first > self.end {
            let old = (seen.state, seen.value);
            return self.table.exchange_in_list(self.hash, old, (state, value));
        }
        let word = match state {
            State::EmptyFrozen => SlotWord::EMPTY_FROZEN,
            state => self.sought.further(self.lane()).word(state),
        };
        let slot = self.place();
        slot.compare_exchange((seen.word.bits(), seen.value), (word.bits(), value)).is_ok()
    }

    /// True if an insert may not use this place although it is EMPTY.
    #[inline(always)]
    pub(crate) fn is_too_far(&self) -> bool {
        // The end of the probe minus the reach is the home.
        self.first + self.lane() + self.table.reach - self.end > self.table.insert_reach()
    }

    /// Copies this LIVE-frozen place to the successor and marks it done. True if a slot was used there.
    pub(crate) fn carry(&self, seen: Seen, next: &Table) -> bool {
        let used = self.table.copy_out(self.hash, seen.value, next);
        // A failure means that somebody else has done it.
        let _ = self.exchange(seen, State::LiveDone, seen.value);
        used
    }
}

/// The hash of a table: a permutation, so that the table need not keep the keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mixer(WordMixer);

impl Mixer {
    pub(super) const fn new(seed: u64) -> Self {
        Self(WordMixer::new(seed))
    }

    /// Under a model checker keys have 56 bits and choose their own home by the top ones.
    #[inline(always)]
    pub(super) const fn mix(&self, key: u64) -> u64 {
        if MODEL { key << SPARE_BITS } else { self.0.mix(key) }
    }

    #[inline(always)]
    pub(super) const fn unmix(&self, hash: u64) -> u64 {
        if MODEL { hash >> SPARE_BITS } else { self.0.unmix(hash) }
    }
}
