//! The map's memory: four arrays of atomics, wherever they lie.
//!
//! | array | entries | content |
//! |---|---|---|
//! | `controls` | buckets | one [`Control`] per bucket index, for both slices |
//! | `cells` | tiers × 2 × (buckets + window − 1) | position p of slice s is entry 2p + s, so one line holds both bases of a bucket |
//! | `records` | [`RECORD_WORDS`] each | word, input hash, value, tick |
//! | `seats` | [`SEAT_WORDS`] each | owner, recovery lock, intent |
//!
//! Instead of wrapping around, the cells of a tier end with window − 1 positions that are nobody's
//! home. The tiers follow one another, the youngest first: bucket b of tier t has its home at
//! position t × (buckets + window − 1) + b, and one control word for all tiers. Every index read
//! from memory is checked here; the arrays never move and hold no addresses.

use super::MapError;
use super::plan::{MAX_WRITES, Plan, Write};
#[cfg(test)]
use super::step::crash_point;
use super::step::{Point, store};
use super::word::{Cbits, Cell, Control, InputHash, Link, MAX_BUCKETS, Owner, Phase, RecordWord};
use crate::region::heap::Buffer;
use crate::region::{AllocError, Pages};
use crate::sync::pair::Selected;
use crate::sync::prefetch::prefetch_write;
use crate::sync::{AtomicPair, AtomicU64, Ordering};

/// The seed's window: a base and up to 31 members.
pub const WINDOW: u32 = 32;
/// Control words one operation may hold.
pub(crate) const MAX_HELD: usize = 6;
/// Words of a record.
pub const RECORD_WORDS: usize = 4;
/// Words of a seat, padded to whole cache lines.
pub const SEAT_WORDS: usize = 128;
/// Words of a bucket's book, in a map below a cache with a store: watermark, last version, lease,
/// not used.
pub(crate) const BOOK_WORDS: usize = 4;
/// Tiers that a seat can count apart.
pub const MAX_TIERS: usize = 4;
/// An intent has room for so many control words and stores.
const ROOM_HELD: usize = 12;
const ROOM_WRITES: usize = 20;
const _: () = assert!(MAX_HELD <= ROOM_HELD && MAX_WRITES <= ROOM_WRITES);

/// The sizes of a map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Bucket indices of each slice.
    pub buckets: u32,
    /// Positions a base can reach, itself included: 2 to 32.
    pub window: u32,
    /// Entries the map can hold.
    pub records: u32,
    /// Threads that can write at once.
    pub seats: u32,
}

impl Geometry {
    /// Two cells per record, as the placement needs it.
    pub fn for_records(records: u32, seats: u32) -> Self {
        Self { buckets: records.max(1), window: WINDOW, records, seats }
    }

    /// Refuses sizes that the packed words cannot name.
    pub fn verify(self) -> Result<Self, MapError> {
        if self.buckets == 0 || self.buckets > MAX_BUCKETS {
            return Err(MapError::Geometry("buckets: 1 to 2^30"));
        }
        if !(2..=WINDOW).contains(&self.window) {
            return Err(MapError::Geometry("window: 2 to 32"));
        }
        if self.records == 0 || self.records > MAX_BUCKETS {
            return Err(MapError::Geometry("records: 1 to 2^30"));
        }
        if self.seats == 0 || self.seats > 1 << 13 {
            return Err(MapError::Geometry("seats: 1 to 8192"));
        }
        Ok(self)
    }

    pub(crate) fn positions(self) -> usize {
        self.buckets as usize + self.window as usize - 1
    }

    /// Cells of one tier.
    pub(crate) fn cells(self) -> usize {
        2 * self.positions()
    }
}

/// A view of the four arrays.
#[derive(Clone, Copy)]
pub struct Memory<'a> {
    pub(crate) geometry: Geometry,
    /// A record has 2 to the power of this many words.
    shift: u32,
    tiers: u32,
    controls: &'a [AtomicU64],
    cells: &'a [AtomicPair],
    records: &'a [AtomicU64],
    seats: &'a [AtomicU64],
    /// A book for each bucket, then a version for each record; empty where there is no store.
    books: &'a [AtomicU64],
}

impl std::fmt::Debug for Memory<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Memory").field("geometry", &self.geometry).finish_non_exhaustive()
    }
}

// Places of a book's words.
pub(crate) const WATERMARK: usize = 0;
pub(crate) const LAST_VERSION: usize = 1;
pub(crate) const BUCKET_LEASE: usize = 2;

// Places of a seat's words.
const OWNER: usize = 0;
const RECOVERY: usize = 1;
const PHASE: usize = 2;
const FLAGS: usize = 3;
const NEW: usize = 4;
const WORDS: usize = 5;
const HOLE: usize = WORDS + ROOM_HELD;
const KILL: usize = HOLE + 3;
const OUT: usize = KILL + 1;
const WRITES: usize = OUT + 1;
/// Entries that operations of this seat added, less those they took away; and what it will be after
/// the planned one.
const COUNT: usize = WRITES + 5 * ROOM_WRITES;
const NEXT_COUNT: usize = COUNT + 1;
/// The same for the tiers but the first, 32 bits each, and what they will be.
const TIERS: usize = NEXT_COUNT + 1;
const NEXT_TIERS: usize = TIERS + TIER_WORDS;
const TIER_WORDS: usize = 2;
const _: () = assert!(NEXT_TIERS + TIER_WORDS <= SEAT_WORDS && MAX_TIERS - 1 <= 2 * TIER_WORDS);

// Bits of the flags word; bits 0..7 count the writes.
const HAS_NEW: u64 = 1 << 8;
const HAS_HOLE: u64 = 1 << 9;
const LINKS: u64 = 1 << 10;
const KILLS: u64 = 1 << 11;
const LEAVES: u64 = 1 << 12;

impl<'a> Memory<'a> {
    /// Views arrays of these sizes. The records have as many words each as their array's length
    /// says, a power of two; there are as many tiers as the cells say.
    pub(crate) fn new(
        geometry: Geometry,
        controls: &'a [AtomicU64],
        cells: &'a [AtomicPair],
        records: &'a [AtomicU64],
        seats: &'a [AtomicU64],
    ) -> Self {
        let words = records.len() / geometry.records as usize;
        let tiers = cells.len() / geometry.cells();
        assert!(
            controls.len() == geometry.buckets as usize
                && (1..=MAX_TIERS).contains(&tiers)
                && cells.len() == tiers * geometry.cells()
                && words >= RECORD_WORDS
                && words.is_power_of_two()
                && records.len() == geometry.records as usize * words
                && seats.len() == geometry.seats as usize * SEAT_WORDS,
            "arrays must have the sizes of the geometry"
        );
        let (shift, tiers) = (words.trailing_zeros(), tiers as u32);
        Self { geometry, shift, tiers, controls, cells, records, seats, books: &[] }
    }

    /// The same with books and versions, none or all of them.
    pub(crate) fn with_books(self, books: &'a [AtomicU64]) -> Self {
        let Geometry { buckets, records, .. } = self.geometry;
        let all = buckets as usize * BOOK_WORDS + records as usize;
        assert!(books.is_empty() || books.len() == all, "books must have the geometry's sizes");
        Self { books, ..self }
    }

    /// The book of a bucket, where there is a store.
    pub(crate) fn book(&self, bucket: u32) -> Option<&'a [AtomicU64; BOOK_WORDS]> {
        let from = bucket as usize * BOOK_WORDS;
        self.books.get(from..from + BOOK_WORDS)?.try_into().ok()
    }

    /// The version of a record, where there is a store.
    pub(crate) fn version_word(&self, record: u32) -> Option<&'a AtomicU64> {
        let from = self.geometry.buckets as usize * BOOK_WORDS;
        self.books.get(from + record as usize)
    }

    /// The last version that a bucket gave out.
    pub(crate) fn last_version(&self, bucket: u32) -> u64 {
        // ORDERING: Acquire; partner: the Release store of whoever gave it out under the control
        // word.
        self.book(bucket).map_or(0, |book| book[LAST_VERSION].load(Ordering::Acquire))
    }

    /// How many tiers.
    pub fn tiers(&self) -> usize {
        self.tiers as usize
    }

    /// Positions of all tiers.
    pub(crate) fn positions(&self) -> usize {
        self.tiers() * self.geometry.positions()
    }

    /// The bucket that a position of any tier belongs to as a home.
    pub(crate) fn bucket_of(&self, position: usize) -> usize {
        if self.tiers == 1 { position } else { position % self.geometry.positions() }
    }

    /// The tier of a position.
    pub(crate) fn tier_of(&self, position: usize) -> usize {
        if self.tiers == 1 { 0 } else { position / self.geometry.positions() }
    }

    /// Where a bucket has its home in a tier.
    pub(crate) fn home(&self, tier: usize, bucket: u32) -> usize {
        tier * self.geometry.positions() + bucket as usize
    }

    /// The entry of a position in a slice.
    pub(crate) fn at(&self, slice: u32, position: usize) -> usize {
        2 * position + slice as usize
    }

    #[inline(always)]
    pub(crate) fn cell(&self, entry: usize) -> Cell {
        // ORDERING: the pair's load is Acquire; partner: `exchange_cell`.
        self.cells.get(entry).map_or(Cell::EMPTY, |cell| Cell::from_words(cell.load()))
    }

    /// The slice at whose `position` the first word is `word` under `mask`; the cells of both
    /// slices lie side by side.
    #[inline(always)]
    pub(crate) fn select(&self, position: usize, mask: u64, word: u64) -> Option<Selected> {
        let both: &[AtomicPair; 2] =
            self.cells.get(2 * position..2 * position + 2)?.try_into().ok()?;
        // Tests let things happen between the two loads.
        #[cfg(test)]
        {
            crash_point!(Point::ReadCell);
            let zero = both[0].load();
            crash_point!(Point::ReadCell);
            Some(Selected::of([zero, both[1].load()], mask, word))
        }
        // ORDERING: as in `cell`.
        #[cfg(not(test))]
        Some(crate::sync::pair::select(both, mask, word))
    }

    /// What the base of a key names, if one of its two bases is the key's.
    #[inline(always)]
    pub(crate) fn base_link(&self, input: InputHash) -> Option<Link> {
        let (home, base) = (input.bucket() as usize, Cell::base_of(input.hash()));
        self.select(home, Cell::KEY_AND_BASE, base)?.second().map(Link::from_word)
    }

    /// The first member of a key's bucket with its hash, in the slices `first` to `last`, and its
    /// slice.
    #[inline(always)]
    pub(crate) fn member(&self, input: InputHash, first: u32, last: u32) -> Option<(u32, Link)> {
        let (home, hash) = (input.bucket() as usize, input.hash());
        // Bit i of the low half: a member at offset i in slice 0; of the high half, in slice 1.
        let members = |slice: u32| {
            #[cfg(test)]
            crash_point!(Point::ReadCell);
            self.cell(self.at(slice, home)).cbits.members() << (32 * slice)
        };
        let mut members = match first == last {
            true => members(first),
            false => members(0) | members(1),
        };
        while members != 0 {
            let at = members.trailing_zeros();
            let (slice, offset) = (at >> 5, (at & 31) as usize);
            members &= members - 1;
            #[cfg(test)]
            crash_point!(Point::ReadCell);
            let cell = self.cell(self.at(slice, home + offset));
            // The back offset in the same load: a neighbour's member may have an equal key.
            if cell.key == hash && cell.cbits == Cbits::member(offset) {
                return Some((slice, cell.link));
            }
        }
        None
    }

    /// What a member of a key's bucket names, if one has its hash. Apart: a few lookups in a
    /// hundred come here.
    #[inline(never)]
    pub(crate) fn member_link(&self, input: InputHash) -> Option<Link> {
        self.member(input, 0, 1).map(|(_, link)| link)
    }

    pub(crate) fn cell_word(&self, entry: u64) -> Result<&'a AtomicPair, MapError> {
        self.cells.get(entry as usize).ok_or(MapError::Corrupt("cell index"))
    }

    pub(crate) fn cells(&self) -> &'a [AtomicPair] {
        self.cells
    }

    #[inline(always)]
    pub(crate) fn control(&self, bucket: u32) -> Control {
        // ORDERING: Acquire; partner: the Release of whoever unlocked it.
        Control(self.controls[bucket as usize].load(Ordering::Acquire))
    }

    pub(crate) fn control_word(&self, bucket: u32) -> Result<&'a AtomicU64, MapError> {
        self.controls.get(bucket as usize).ok_or(MapError::Corrupt("control index"))
    }

    /// The words of a record.
    #[inline(always)]
    pub(crate) fn record(&self, record: u32) -> Result<Record<'a>, MapError> {
        let from = (record as usize) << self.shift;
        match self.records.get(from..from + (1 << self.shift)) {
            Some(words) => Ok(Record(words)),
            None => Err(MapError::Corrupt("record index")),
        }
    }

    /// A writer is on its way to a bucket: asks for its control word and its bases.
    #[inline(always)]
    pub(crate) fn expect_bucket(&self, bucket: u32) {
        if let Some(word) = self.controls.get(bucket as usize) {
            prefetch_write(word);
        }
        if let Some(cell) = self.cells.get(2 * bucket as usize) {
            prefetch_write(cell);
        }
    }

    /// A record is going to be freed.
    #[inline(always)]
    pub(crate) fn expect_record(&self, link: Link) {
        if let Some(word) = self.records.get((link.record as usize) << self.shift) {
            prefetch_write(word);
        }
    }

    pub(crate) fn seat(&self, seat: u32) -> Result<Seat<'a>, MapError> {
        let from = seat as usize * SEAT_WORDS;
        match self.seats.get(from..from + SEAT_WORDS) {
            Some(words) => Ok(Seat(words)),
            None => Err(MapError::Corrupt("seat index")),
        }
    }

    /// The taken bits of a position: bit i is set if the cell i further on is not empty.
    pub fn tbits(&self, slice: u32, position: usize) -> u32 {
        (0..self.geometry.window as usize)
            .filter(|offset| !self.cell(self.at(slice, position + offset)).is_empty())
            .fold(0, |bits, offset| bits | 1 << offset)
    }
}

/// One record.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a>(&'a [AtomicU64]);

impl<'a> Record<'a> {
    #[inline(always)]
    pub(crate) fn word(self) -> &'a AtomicU64 {
        &self.0[0]
    }

    #[inline(always)]
    pub(crate) fn state(self) -> RecordWord {
        // ORDERING: Acquire: the payload is read behind it. Partner: the exchange that prepared the
        // record.
        RecordWord(self.0[0].load(Ordering::Acquire))
    }

    pub(crate) fn input(self) -> &'a AtomicU64 {
        &self.0[1]
    }

    pub(crate) fn value(self) -> &'a AtomicU64 {
        &self.0[2]
    }

    pub(crate) fn tick(self) -> &'a AtomicU64 {
        &self.0[3]
    }

    /// All words, for whoever stores more in a record than the map does.
    #[inline(always)]
    pub(crate) fn words(self) -> &'a [AtomicU64] {
        self.0
    }
}

/// One seat: its owner, its recovery lock, its intent.
#[derive(Clone, Copy)]
pub(crate) struct Seat<'a>(&'a [AtomicU64]);

impl<'a> Seat<'a> {
    fn load(self, place: usize) -> u64 {
        // ORDERING: Acquire; partner: the Release stores of the owner and of recoverers.
        self.0[place].load(Ordering::Acquire)
    }

    pub(crate) fn owner_word(self) -> &'a AtomicU64 {
        &self.0[OWNER]
    }

    pub(crate) fn owner(self) -> Owner {
        Owner(self.load(OWNER))
    }

    pub(crate) fn recovery_word(self) -> &'a AtomicU64 {
        &self.0[RECOVERY]
    }

    pub(crate) fn recovery(self) -> Owner {
        Owner(self.load(RECOVERY))
    }

    pub(crate) fn phase(self) -> Result<Phase, MapError> {
        Phase::from_word(self.load(PHASE)).ok_or(MapError::Corrupt("phase"))
    }

    pub(crate) fn set_phase(self, point: Point, phase: Phase) {
        store(point, &self.0[PHASE], phase as u64);
    }

    /// Step 1: nothing is listed. At most the first `listed` places are in use.
    pub(crate) fn clear(self, listed: usize) {
        store(Point::ClearLists, &self.0[FLAGS], 0);
        for place in WORDS..WORDS + listed.min(MAX_HELD) {
            if self.load(place) != 0 {
                store(Point::ClearLists, &self.0[place], 0);
            }
        }
    }

    /// Names the record the operation is about to take.
    pub(crate) fn set_new(self, link: Link) {
        // A later candidate replaces an earlier one under the flag: the earlier was not taken.
        store(Point::NameRecord, &self.0[NEW], link.word());
        store(Point::NameRecord, &self.0[FLAGS], HAS_NEW);
    }

    pub(crate) fn new_record(self) -> Option<Link> {
        (self.load(FLAGS) & HAS_NEW != 0).then(|| Link::from_word(self.load(NEW)))
    }

    pub(crate) fn list(self, place: usize, bucket: u32) {
        store(Point::ListWord, &self.0[WORDS + place], bucket as u64 + 1);
    }

    /// The listed control words.
    pub(crate) fn listed(self) -> impl Iterator<Item = u32> + 'a {
        (WORDS..WORDS + MAX_HELD)
            .map(move |place| self.load(place))
            .filter(|word| *word != 0)
            .map(|word| (word - 1) as u32)
    }

    /// Writes the body of a plan; nobody reads it before the phase says so.
    pub(crate) fn set_body(self, plan: &Plan, counts: bool, tiers: usize) {
        if counts {
            let next = self.load(COUNT).wrapping_add(plan.change() as u64);
            store(Point::Body, &self.0[NEXT_COUNT], next);
            if tiers > 1 {
                self.set_next_tiers(plan.change_of_tiers());
            }
        }
        let put = |place: usize, value: u64| store(Point::Body, &self.0[place], value);
        let mut flags = self.load(FLAGS) & HAS_NEW | plan.writes().len() as u64;
        if let Some((entry, cell)) = plan.hole {
            flags |= HAS_HOLE;
            put(HOLE, entry as u64);
            put(HOLE + 1, cell.words().0);
            put(HOLE + 2, cell.words().1);
        }
        for (index, write) in plan.writes().iter().enumerate() {
            let from = WRITES + 5 * index;
            let (old, new) = (write.old.words(), write.new.words());
            for (offset, value) in
                [write.entry as u64, old.0, old.1, new.0, new.1].iter().enumerate()
            {
                put(from + offset, *value);
            }
        }
        if plan.link {
            flags |= LINKS;
        }
        if let Some(link) = plan.kill {
            flags |= KILLS;
            put(KILL, link.word());
        }
        if let Some(link) = plan.out {
            flags |= LEAVES;
            put(OUT, link.word());
        }
        put(FLAGS, flags);
    }

    fn set_next_tiers(self, change: [i32; MAX_TIERS]) {
        for word in 0..TIER_WORDS {
            let before = self.load(TIERS + word);
            let of = |half: usize| {
                let by = change.get(2 * word + half + 1).copied().unwrap_or(0);
                u64::from(((before >> (32 * half)) as u32).wrapping_add_signed(by))
            };
            store(Point::Body, &self.0[NEXT_TIERS + word], of(1) << 32 | of(0));
        }
    }

    /// The numbers of entries follow the plan. Repeating it changes nothing.
    pub(crate) fn count_plan(self, point: Point, tiers: usize) {
        store(point, &self.0[COUNT], self.load(NEXT_COUNT));
        if tiers > 1 {
            for word in 0..TIER_WORDS {
                store(point, &self.0[TIERS + word], self.load(NEXT_TIERS + word));
            }
        }
    }

    /// What operations of this seat added to a tier, less what they took away from it; not of the
    /// first.
    pub(crate) fn count_in(self, tier: usize) -> u32 {
        let at = tier - 1;
        (self.load(TIERS + at / 2) >> (32 * (at % 2))) as u32
    }

    /// Entries that operations of this seat added, less those they took away.
    pub(crate) fn count(self) -> u64 {
        self.load(COUNT)
    }

    /// Reads the body back, for recovery.
    pub(crate) fn body(self) -> Result<Plan, MapError> {
        let flags = self.load(FLAGS);
        let count = (flags & 0xff) as usize;
        if count > MAX_WRITES {
            return Err(MapError::Corrupt("number of writes"));
        }
        let cell = |place: usize| Cell::from_words((self.load(place), self.load(place + 1)));
        let link = |flag: u64, place: usize| {
            (flags & flag != 0).then(|| Link::from_word(self.load(place)))
        };
        let mut plan = Plan::empty();
        plan.hole = (flags & HAS_HOLE != 0).then(|| (self.load(HOLE) as usize, cell(HOLE + 1)));
        plan.link = flags & LINKS != 0;
        plan.kill = link(KILLS, KILL);
        plan.out = link(LEAVES, OUT);
        for index in 0..count {
            let from = WRITES + 5 * index;
            let entry = self.load(from) as usize;
            plan.push(Write { entry, old: cell(from + 1), new: cell(from + 3) });
        }
        Ok(plan)
    }
}

/// A map's memory on the heap of this process.
pub struct Heap {
    geometry: Geometry,
    controls: Buffer<AtomicU64>,
    cells: Buffer<AtomicPair>,
    records: Buffer<AtomicU64>,
    seats: Buffer<AtomicU64>,
}

impl std::fmt::Debug for Heap {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Heap").field("geometry", &self.geometry).finish_non_exhaustive()
    }
}

impl Heap {
    /// Allocates an empty map.
    pub fn try_new(geometry: Geometry) -> Result<Self, AllocError> {
        Self::try_with_tiers(geometry, 1)
    }

    /// Allocates an empty map with so many tiers, each with the buckets of the geometry; at most
    /// [`MAX_TIERS`].
    pub fn try_with_tiers(geometry: Geometry, tiers: usize) -> Result<Self, AllocError> {
        let pages = Pages::default();
        if !AtomicPair::supported() || !(1..=MAX_TIERS).contains(&tiers) {
            return Err(AllocError::Unsupported);
        }
        Ok(Self {
            geometry,
            controls: Buffer::try_new(geometry.buckets as usize, pages)?,
            cells: Buffer::try_new(tiers * geometry.cells(), pages)?,
            records: Buffer::try_new(geometry.records as usize * RECORD_WORDS, pages)?,
            seats: Buffer::try_new(geometry.seats as usize * SEAT_WORDS, pages)?,
        })
    }

    /// The arrays.
    pub fn memory(&self) -> Memory<'_> {
        Memory::new(self.geometry, &self.controls, &self.cells, &self.records, &self.seats)
    }
}
