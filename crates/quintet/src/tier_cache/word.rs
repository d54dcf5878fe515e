//! The packed words of the map, each a newtype with total functions.
//!
//! | word | bits | meaning |
//! |---|---|---|
//! | [`InputHash`] | 63..32 hash, 31..30 clear, 29..0 bucket | what an add is given |
//! | [`Token`] | as above, bit 31 set, bit 30 the slice | what an add returns |
//! | [`Cell`], first | 63..32 key, 31..0 `cbits` | see the truth table of [`Cbits`] |
//! | [`Cell`], second | [`Link`]: 63..32 record, 31..0 generation | the value and what certifies it |
//! | [`Control`] | 63 locked, 62..48 owner's seat, 47..0 version | one per bucket index |
//! | [`RecordWord`] | 63..62 state, 61..48 seat, 47..0 generation | never reset |
//! | [`Owner`] | 63..48 process slot + 1, 47..0 incarnation | 0 is "nobody" |

use super::MapError;
use std::fmt;

/// Bucket indices are below this.
pub const MAX_BUCKETS: u32 = 1 << 30;
const AUGMENTED: u64 = 1 << 31;
const SLICE: u64 = 1 << 30;
const BUCKET: u64 = SLICE - 1;
const LOW48: u64 = (1 << 48) - 1;

/// A 32-bit hash and the bucket it falls into.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct InputHash(u64);

impl InputHash {
    /// Joins a hash and its bucket. The hash must be neither 0 nor `u32::MAX`, the bucket below
    /// [`MAX_BUCKETS`].
    pub fn new(hash: u32, bucket: u32) -> Result<Self, MapError> {
        if hash == 0 || hash == u32::MAX {
            return Err(MapError::InvalidKey);
        }
        if bucket >= MAX_BUCKETS {
            return Err(MapError::InvalidBucket { bucket, buckets: MAX_BUCKETS });
        }
        Ok(Self((hash as u64) << 32 | bucket as u64))
    }

    /// Joins parts that are known to be legal.
    #[inline(always)]
    pub(crate) const fn of_parts(hash: u32, bucket: u32) -> Self {
        debug_assert!(hash != 0 && hash != u32::MAX && bucket < MAX_BUCKETS);
        Self((hash as u64) << 32 | bucket as u64)
    }

    /// Reads a word made by [`InputHash::word`].
    pub fn from_word(word: u64) -> Result<Self, MapError> {
        Self::new((word >> 32) as u32, word as u32)
    }

    /// The packed word.
    pub const fn word(self) -> u64 {
        self.0
    }

    /// The 32-bit hash, which is the map's key.
    pub const fn hash(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The bucket index.
    pub const fn bucket(self) -> u32 {
        self.0 as u32
    }

    /// The same hash with the slice it lies in.
    pub const fn augment(self, slice: u32) -> Token {
        Token(self.0 | AUGMENTED | if slice == 0 { 0 } else { SLICE })
    }
}

/// An augmented hash: an [`InputHash`] that also names the slice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Token(u64);

impl Token {
    /// Accepts a word only if it is augmented and its key is legal.
    pub fn new(word: u64) -> Result<Self, MapError> {
        if word & AUGMENTED == 0 {
            return Err(MapError::NotAugmented);
        }
        let input = InputHash::new((word >> 32) as u32, (word & BUCKET) as u32)?;
        Ok(input.augment((word & SLICE != 0) as u32))
    }

    /// The packed word.
    pub const fn word(self) -> u64 {
        self.0
    }

    /// The slice, 0 or 1.
    pub const fn slice(self) -> u32 {
        (self.0 & SLICE != 0) as u32
    }

    /// The hash without its slice.
    pub const fn input(self) -> InputHash {
        InputHash(self.0 & !(AUGMENTED | SLICE))
    }
}

/// Where to look for a key: in the slice a token names, or in both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    pub(crate) input: InputHash,
    pub(crate) first: u32,
    pub(crate) last: u32,
}

impl From<Token> for Probe {
    fn from(token: Token) -> Self {
        Self { input: token.input(), first: token.slice(), last: token.slice() }
    }
}

impl From<InputHash> for Probe {
    fn from(input: InputHash) -> Self {
        Self { input, first: 0, last: 1 }
    }
}

/// The membership bits of a cell.
///
/// | cell | bit 0 | bit 31 | others |
/// |---|---|---|---|
/// | empty | 0 | 0 | all 0 |
/// | base | 1 | any | bit i: a member at offset i |
/// | member | 0 | 1 | bits 1..5: distance back to its base |
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cbits(pub(crate) u32);

const MEMBER: u32 = 1 << 31;

impl Cbits {
    pub(crate) const ALONE: Self = Self(1);

    pub(crate) const fn member(back: usize) -> Self {
        Self(MEMBER | (back as u32 & 31) << 1)
    }

    /// The raw bits.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The cell is a base.
    pub const fn is_base(self) -> bool {
        self.0 & 1 == 1
    }

    /// The distance back to the base, if the cell is a member with a legal one.
    pub const fn back(self) -> Option<usize> {
        let back = (self.0 & !MEMBER) >> 1;
        if self.0 & (MEMBER | 1) == MEMBER && back >= 1 && back <= 31 {
            Some(back as usize)
        } else {
            None
        }
    }

    pub(crate) const fn with(self, offset: usize) -> Self {
        Self(self.0 | 1 << offset)
    }

    pub(crate) const fn without(self, offset: usize) -> Self {
        Self(self.0 & !(1 << offset))
    }

    pub(crate) const fn has(self, offset: usize) -> bool {
        self.0 >> offset & 1 == 1
    }

    /// Bit i: a member at offset i. None if the cell is no base.
    pub(crate) const fn members(self) -> u64 {
        (self.0 & !1 & (self.0 & 1).wrapping_neg()) as u64
    }

    /// The farthest member of a base, 0 if it is alone.
    pub(crate) const fn farthest(self) -> usize {
        31 - (self.0 | 1).leading_zeros() as usize
    }
}

impl fmt::Debug for Cbits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.is_base(), self.back()) {
            (0, ..) => out.write_str("empty"),
            (_, true, _) => write!(out, "base {:#034b}", self.0),
            (.., Some(back)) => write!(out, "member -{back}"),
            _ => write!(out, "illegal {:#x}", self.0),
        }
    }
}

/// A record and the generation at which it was linked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Index of the record.
    pub record: u32,
    /// The low 32 bits of its generation.
    pub generation: u32,
}

impl Link {
    pub(crate) const fn word(self) -> u64 {
        (self.record as u64) << 32 | self.generation as u64
    }

    pub(crate) const fn from_word(word: u64) -> Self {
        Self { record: (word >> 32) as u32, generation: word as u32 }
    }
}

/// The content of a cell, always read and written as one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// The 32-bit key; 0 in an empty cell.
    pub key: u32,
    /// Base, member or empty.
    pub cbits: Cbits,
    /// The record; 0 in an empty cell.
    pub link: Link,
}

impl Cell {
    pub(crate) const EMPTY: Self =
        Self { key: 0, cbits: Cbits(0), link: Link { record: 0, generation: 0 } };

    pub(crate) const fn words(self) -> (u64, u64) {
        ((self.key as u64) << 32 | self.cbits.0 as u64, self.link.word())
    }

    pub(crate) const fn from_words((first, second): (u64, u64)) -> Self {
        Self {
            key: (first >> 32) as u32,
            cbits: Cbits(first as u32),
            link: Link::from_word(second),
        }
    }

    /// What of the first word tells a base and its key.
    pub(crate) const KEY_AND_BASE: u64 = (u32::MAX as u64) << 32 | 1;

    /// The first word of any base that holds `key`, under [`Cell::KEY_AND_BASE`].
    #[inline(always)]
    pub(crate) const fn base_of(key: u32) -> u64 {
        (key as u64) << 32 | 1
    }

    /// Nothing is here: all words are zero.
    pub fn is_empty(self) -> bool {
        self.words() == (0, 0)
    }

    pub(crate) const fn with_bits(self, cbits: Cbits) -> Self {
        Self { cbits, ..self }
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return out.write_str("Cell(empty)");
        }
        let Link { record, generation } = self.link;
        write!(out, "Cell(key {:#x}, {:?}, record {record}@{generation})", self.key, self.cbits)
    }
}

/// A control word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Control(pub(crate) u64);

impl Control {
    const LOCKED: u64 = 1 << 63;

    /// The seat that holds the word, if it is held.
    pub const fn owner(self) -> Option<u32> {
        if self.0 & Self::LOCKED != 0 { Some((self.0 >> 48) as u32 & 0x7fff) } else { None }
    }

    pub(crate) const fn locked_by(self, seat: u32) -> Self {
        Self(self.0 & LOW48 | Self::LOCKED | (seat as u64 & 0x7fff) << 48)
    }

    /// Unlocked, one version on.
    pub(crate) const fn released(self) -> Self {
        Self(self.0.wrapping_add(1) & LOW48)
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Control({:?}, version {})", self.owner(), self.0 & LOW48)
    }
}

/// What a record is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordState {
    /// May be taken.
    Free,
    /// Taken by a seat, perhaps already linked.
    Prepared(u32),
    /// Linked, and its operation complete.
    Live,
    /// Belongs to another record, which its second word names.
    Chained,
}

/// State, seat and generation of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RecordWord(pub(crate) u64);

impl RecordWord {
    /// The state, `None` for bits no operation writes.
    pub const fn state(self) -> Option<RecordState> {
        match self.0 >> 62 {
            0 => Some(RecordState::Free),
            1 => Some(RecordState::Prepared((self.0 >> 48) as u32 & 0x3fff)),
            2 => Some(RecordState::Live),
            _ => Some(RecordState::Chained),
        }
    }

    /// The part of the generation that a cell holds.
    pub const fn generation(self) -> u32 {
        self.0 as u32
    }

    pub(crate) const fn prepared(self, seat: u32) -> Self {
        Self(self.0 & LOW48 | 1 << 62 | (seat as u64 & 0x3fff) << 48)
    }

    pub(crate) const fn live(self) -> Self {
        Self(self.0 & LOW48 | 2 << 62)
    }

    pub(crate) const fn chained(self) -> Self {
        Self(self.0 & LOW48 | 3 << 62)
    }

    /// Live, and claimed by a seat that is about to evict it.
    pub(crate) const fn claimed(self, seat: u32) -> Self {
        Self(self.0 & LOW48 | 2 << 62 | ((seat as u64 + 1) & 0x3fff) << 48)
    }

    /// The seat that claims a live record.
    pub(crate) const fn claimant(self) -> Option<u32> {
        let live = (self.0 >> 62 == 2) as u32;
        ((self.0 >> 48) as u32 & 0x3fff & live.wrapping_neg()).checked_sub(1)
    }

    /// Free, one generation on: no link to the record counts any more.
    pub(crate) const fn freed(self) -> Self {
        Self(self.0.wrapping_add(1) & LOW48)
    }
}

impl fmt::Debug for RecordWord {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "RecordWord({:?}, generation {})", self.state(), self.0 & LOW48)
    }
}

/// A process that takes part: its slot and how often that slot has been taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner(pub(crate) u64);

impl Owner {
    pub(crate) const NOBODY: Self = Self(0);

    pub(crate) const fn new(slot: u32, incarnation: u64) -> Self {
        Self((slot as u64 + 1) << 48 | incarnation & LOW48)
    }

    /// Reads a packed name, `None` for nobody's.
    pub const fn from_word(word: u64) -> Option<Self> {
        if word >> 48 == 0 { None } else { Some(Self(word)) }
    }

    /// The slot; meaningless for nobody.
    pub const fn slot(self) -> usize {
        ((self.0 >> 48) as usize).wrapping_sub(1)
    }

    /// How often the slot had been taken.
    pub const fn incarnation(self) -> u64 {
        self.0 & LOW48
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NOBODY => out.write_str("Owner(nobody)"),
            _ => write!(out, "Owner(process {}, incarnation {})", self.slot(), self.incarnation()),
        }
    }
}

/// How far the operation of a seat has come (see the room's page).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Phase {
    /// Nothing of the intent counts.
    Idle = 0,
    /// The listed words and the new record count.
    Open = 1,
    /// The body counts; at most the hole has been filled.
    Planned = 2,
    /// Cell stores are under way: always rolled forward.
    Sealed = 3,
    /// Only release and delivery remain.
    Done = 4,
}

impl Phase {
    pub(crate) const fn from_word(word: u64) -> Option<Self> {
        match word {
            0 => Some(Self::Idle),
            1 => Some(Self::Open),
            2 => Some(Self::Planned),
            3 => Some(Self::Sealed),
            4 => Some(Self::Done),
            _ => None,
        }
    }
}
