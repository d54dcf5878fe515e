//! Namespaces: a number with a name, a birth and a generation, so that a flush is one store.
//!
//! A table of slots, found by the hash of the name and then by the whole name. A slot's number is
//! its namespace's.
//!
//! | word | |
//! |---|---|
//! | 0 | hash of the name; bits 1..0: 0 never used, 1 in use, 2 removed |
//! | 1 | its *life*: 63..32 birth, 31..0 generation |
//! | 2 | hits, as handles report them |
//! | 3 | length of the name |
//! | 4.. | the name, up to 96 bytes; of a longer one 80 bytes and a hash of 128 bits |
//!
//! **N1.** A name is in one slot at most: whoever makes or removes one holds the *naming word*,
//! which names its process, and which is taken over on proof of its death. Lookups hold nothing.
//! **N2.** Word 0 is stored last. Who dies before leaves a slot that nobody finds, and that the
//! next one fills anew.
//! **N3.** Entries carry the generation they were written in; those of another one are outlived.
//! The generation only grows, over removals too.
//! **N4.** The birth is the generation that a namespace was made in. It salts the hashes of its
//! keys, and whoever writes compares it: who still holds a namespace that has been removed finds
//! nothing in the one that has its number now, and writes nothing there.

use super::TierCache;
use super::block::{Block, Meta};
use super::error::CacheError;
use super::handle::Handle;
use super::hash::hash;
use super::layout::{MAX_SPACES, SPACE_WORDS};
use super::members::Holding;
use super::quota::Quota;
use super::read::words_of;
use super::reader::Reader;
use super::stats::Count;
use super::view::{Age, Global, View};
use crate::sync::{AtomicU64, Ordering};
use crate::tier_cache::map::{DEFAULT_TIMEOUT, Peers};
use crate::tier_cache::step::{Point, add, exchange, store};
use crate::tier_cache::wait::Wait;
use crate::tier_cache::word::{Owner, RecordState};

/// A namespace as operations use it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Space {
    number: u32,
    salt: u64,
}

/// The bit of a number that tells a flight of the namespace from an entry.
const FLIGHT: u32 = 1 << 16;
const NUMBER: u32 = FLIGHT - 1;
/// Births have so many bits.
const BIRTHS: u32 = (1 << 30) - 1;

impl Space {
    fn new(number: u32, birth: u32) -> Self {
        // Below bit 17 is the length of the key.
        Self { number, salt: (birth as u64) << 34 ^ (number as u64) << 17 }
    }

    #[inline(always)]
    pub(super) fn number(self) -> u32 {
        self.number
    }

    #[inline(always)]
    pub(super) fn salt(self) -> u64 {
        self.salt
    }

    /// Where the flights of this namespace are.
    pub(super) fn flight(self) -> Self {
        Self::new(self.number | FLIGHT, self.birth())
    }

    /// The number is that of a namespace's flights.
    pub(super) fn is_flight(number: u32) -> bool {
        number & FLIGHT != 0
    }

    fn birth(self) -> u32 {
        (self.salt >> 34) as u32
    }
}

/// A part of a cache with keys of its own, flushed as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Namespace(pub(super) Space);

/// What a namespace holds.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NamespaceStats {
    /// Its name, empty for the unnamed one. One longer than 96 bytes is cut off.
    pub name: String,
    /// The namespace.
    pub namespace: Namespace,
    /// Its entries, at some moment each.
    pub entries: u64,
    /// Bytes of their blocks.
    pub bytes: u64,
    /// Lookups that found their key. Handles report them a few milliseconds late, and those that
    /// are killed not all.
    pub hits: u64,
    /// What it is held to.
    pub quota: Quota,
    /// What it has within that, where accounts are kept
    /// ([`CacheBuilder::quotas`](super::CacheBuilder::quotas)).
    pub holds: Option<Holding>,
}

const STATE: usize = 0;
const LIFE: usize = 1;
const HITS: usize = 2;
const LENGTH: usize = 3;
const NAME: usize = 4;
const NAME_WORDS: usize = SPACE_WORDS - NAME;
const LONGEST: usize = NAME_WORDS * 8;
const CUT: usize = LONGEST - 16;

const IN_USE: u64 = 1;
const REMOVED: u64 = 2;

/// The words a slot holds for a name, its length first.
fn name_words(seed: u64, name: &str) -> [u64; 1 + NAME_WORDS] {
    let mut words = [0; 1 + NAME_WORDS];
    words[0] = name.len() as u64;
    let shown = if name.len() <= LONGEST { name.len() } else { CUT };
    let bytes = &name.as_bytes()[..shown];
    words[1..].iter_mut().zip(words_of(bytes)).for_each(|(place, word)| *place = word);
    if name.len() > LONGEST {
        words[NAME_WORDS - 1] = hash(seed, 1 << 62, name.as_bytes());
        words[NAME_WORDS] = hash(seed, 1 << 61, name.as_bytes());
    }
    words
}

fn life(birth: u32, generation: u32) -> u64 {
    ((birth & BIRTHS) as u64) << 32 | generation as u64
}

impl<'a> View<'a> {
    fn slot(&self, space: u32) -> &'a [AtomicU64] {
        let from = (space & NUMBER) as usize * SPACE_WORDS;
        self.spaces.get(from..from + SPACE_WORDS).unwrap_or(&[])
    }

    /// Birth and generation of a namespace.
    #[inline(always)]
    pub(super) fn life_word(&self, space: u32) -> Option<&'a AtomicU64> {
        self.spaces.get((space & NUMBER) as usize * SPACE_WORDS + LIFE)
    }

    fn life(&self, space: u32) -> u64 {
        // ORDERING: Acquire; partner: the exchange of a flush. Who sees the flush sees the entries
        // before it gone.
        self.life_word(space).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// The present generation of a namespace. One that does not exist has none, and no entries.
    #[inline(always)]
    pub(super) fn space_generation(&self, space: u32) -> u32 {
        self.life(space) as u32
    }

    /// The generation that an entry of this namespace is written in. `None` if the namespace has
    /// been removed (N4).
    pub(super) fn generation_for(&self, space: Space) -> Option<u32> {
        let life = self.life(space.number);
        ((life >> 32) as u32 == space.birth()).then_some(life as u32)
    }

    /// The namespace that has this number now.
    pub(super) fn space_of(&self, number: u32) -> Space {
        Space::new(number, (self.life(number) >> 32) as u32)
    }

    /// The namespace of an entry; `None` if that has been cleared since. By one look: the number
    /// may be another namespace's a moment later.
    pub(super) fn space_written_in(&self, block: Block<'a>, meta: Meta) -> Option<Space> {
        let life = self.life(meta.space());
        let (_, generation) = block.next_and_space();
        let same = life as u32 == generation;
        same.then(|| Space::new(meta.space(), (life >> 32) as u32))
    }

    /// The slots where a name can be, in the order of search, and the hash they have in word 0.
    fn slots_of(&self, name: &str) -> (u64, impl Iterator<Item = u32>) {
        let hash = hash(self.seed, 1 << 63, name.as_bytes());
        let named = self.sizes.spaces as u64 - 1;
        let slots = (0..named).map(move |step| 1 + ((hash >> 2) % named + step) as u32);
        let wrapped =
            slots.map(move |slot| if slot as u64 > named { slot - named as u32 } else { slot });
        (hash & !3, wrapped)
    }

    fn find_space(&self, name: &str) -> Option<Space> {
        if name.is_empty() {
            return Some(Space::default());
        }
        let words = name_words(self.seed, name);
        let (hash, mut slots) = self.slots_of(name);
        let state = |slot: &[AtomicU64]| {
            // ORDERING: Acquire; partner: the store that published the name (N2).
            slot.first().map_or(0, |word| word.load(Ordering::Acquire))
        };
        let named = |slot: &[AtomicU64]| {
            let stored = slot[LENGTH..].iter().map(|word| word.load(Ordering::Acquire));
            state(slot) == hash | IN_USE && stored.eq(words)
        };
        let number = slots
            .by_ref()
            .take_while(|number| state(self.slot(*number)) != 0)
            .find(|number| named(self.slot(*number)))?;
        let found = self.space_of(number);
        // The same slot, and still this name's: what lies between belongs to it.
        named(self.slot(number)).then_some(found)
    }

    /// Makes a namespace. The caller holds the naming word (N1), and there is none of this name.
    fn make_space(&self, name: &str) -> Option<Space> {
        let (hash, mut slots) = self.slots_of(name);
        let number = slots.find(|number| {
            // ORDERING: Acquire, as above.
            self.slot(*number)
                .first()
                .is_some_and(|word| word.load(Ordering::Acquire) & 3 != IN_USE)
        })?;
        let slot = self.slot(number);
        for (place, word) in slot[LENGTH..].iter().zip(name_words(self.seed, name)) {
            store(Point::Space, place, word);
        }
        store(Point::Space, &slot[HITS], 0);
        self.open_space_account(number);
        let generation = self.space_generation(number).wrapping_add(1);
        store(Point::Space, &slot[LIFE], life(generation, generation));
        store(Point::Space, &slot[STATE], hash | IN_USE);
        Some(self.space_of(number))
    }

    fn space_name(&self, number: u32) -> Option<String> {
        let slot = self.slot(number);
        // ORDERING: Acquire, as above.
        let load = |word: &AtomicU64| word.load(Ordering::Acquire);
        if number == 0 {
            return Some(String::new());
        }
        if load(slot.first()?) & 3 != IN_USE {
            return None;
        }
        let bytes: Vec<u8> =
            slot[NAME..].iter().flat_map(|word| load(word).to_le_bytes()).collect();
        let length = load(&slot[LENGTH]) as usize;
        let end = if length > LONGEST { CUT } else { length };
        let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
        Some(if length > LONGEST { text + "…" } else { text })
    }

    /// All entries of a namespace are outlived from here on, and its next generation begins.
    /// `ends`: so is the namespace.
    fn outlive(&self, number: u32, ends: bool) {
        let Some(word) = self.life_word(number) else { return };
        // Before and after: a sweep in between has not seen them all.
        store(Point::Space, self.global(Global::Flushed), 1);
        loop {
            let old = self.life(number);
            let generation = (old as u32).wrapping_add(1);
            let birth = if ends { generation } else { (old >> 32) as u32 };
            if exchange(Point::Space, word, old, life(birth, generation)) {
                break;
            }
        }
        self.empty_space_account(number);
        store(Point::Space, self.global(Global::Flushed), 1);
    }
}

/// The naming word, held (N1).
struct Naming<'c> {
    word: &'c AtomicU64,
    me: Owner,
}

impl Drop for Naming<'_> {
    fn drop(&mut self) {
        exchange(Point::Space, self.word, self.me.0, Owner::NOBODY.0);
    }
}

impl TierCache {
    fn name_spaces(&self) -> Result<Naming<'_>, CacheError> {
        if !self.segment.is_writable() {
            return Err(CacheError::ReadOnly);
        }
        let me = Peers::me(&*self.segment).ok_or(CacheError::ReadOnly)?;
        let word = self.view().global(Global::Naming);
        let mut wait = Wait::new(DEFAULT_TIMEOUT);
        loop {
            // ORDERING: Acquire; partner: the exchange of whoever held it.
            let holder = Owner(word.load(Ordering::Acquire));
            let free = holder == Owner::NOBODY || Peers::is_dead(&*self.segment, holder);
            if free && exchange(Point::Space, word, holder.0, me.0) {
                return Ok(Naming { word, me });
            }
            wait.pause()?;
        }
    }

    /// The namespace of this name, made if there is none. The empty name is the namespace every
    /// handle begins in. Names of any length are told apart; one longer than 96 bytes is shown cut
    /// off.
    pub fn namespace(&self, name: &str) -> Result<Namespace, CacheError> {
        let view = self.view();
        if let Some(space) = view.find_space(name) {
            return Ok(Namespace(space));
        }
        let _naming = self.name_spaces()?;
        let made = view.find_space(name).or_else(|| view.make_space(name));
        made.map(Namespace).ok_or(CacheError::TooManyNamespaces)
    }

    /// The namespace of this name, if there is one.
    pub fn find_namespace(&self, name: &str) -> Option<Namespace> {
        self.view().find_space(name).map(Namespace)
    }

    /// Removes a namespace and its entries; its place is free for another one. False if there was
    /// none. Whoever still uses it finds nothing, and is told [`CacheError::NoNamespace`] when it
    /// writes. The unnamed one is only flushed.
    pub fn remove_namespace(&self, name: &str) -> Result<bool, CacheError> {
        let _naming = self.name_spaces()?;
        let view = self.view();
        let Some(space) = view.find_space(name) else { return Ok(false) };
        view.outlive(space.number, space.number != 0);
        if let (Some(state), false) = (view.slot(space.number).first(), space.number == 0) {
            // ORDERING: Relaxed: only who holds the naming word changes it.
            let hash = state.load(Ordering::Relaxed) & !3;
            store(Point::Space, state, hash | REMOVED);
        }
        Ok(true)
    }

    /// All namespaces with their names, the unnamed one first.
    pub fn namespaces(&self) -> Vec<(String, Namespace)> {
        let view = self.view();
        let named = |number: u32| {
            let (name, space) = (view.space_name(number)?, view.space_of(number));
            // The same name before and after: what lies between belongs to it.
            (view.space_name(number)? == name).then_some((name, Namespace(space)))
        };
        (0..view.sizes.spaces).filter_map(named).collect()
    }

    /// What each namespace holds. Looks at every entry, and stops nobody.
    pub fn namespace_stats(&self) -> Vec<NamespaceStats> {
        let view = self.view();
        let block_bytes = view.sizes.block_words as u64 * 8;
        let mut counts = vec![(0, 0); view.sizes.spaces as usize];
        for (index, age) in view.ages.iter().enumerate() {
            // ORDERING: Relaxed: a hint.
            let Ok(record) = view.memory.record(index as u32) else { break };
            if !Age(age.load(Ordering::Relaxed)).is_entry()
                || record.state().state() != Some(RecordState::Live)
            {
                continue;
            }
            let block = Block::of(record);
            let meta = block.meta();
            if let (Some((entries, bytes)), false) =
                (counts.get_mut(meta.space() as usize), view.is_outlived(block, meta))
            {
                *entries += 1;
                *bytes += view.sizes.blocks_for(meta.key(), meta.value()) as u64 * block_bytes;
            }
        }
        let stats = |(name, namespace): (String, Namespace)| {
            let number = namespace.0.number;
            let (entries, bytes) = counts.get(number as usize).copied().unwrap_or_default();
            // ORDERING: Relaxed: a count.
            let hits = view.slot(number).get(HITS).map_or(0, |word| word.load(Ordering::Relaxed));
            let account = view.account_of_space(number);
            let (holds, quota) =
                account.map_or((None, Quota::default()), |(holds, quota)| (Some(holds), quota));
            NamespaceStats { name, namespace, entries, bytes, hits, quota, holds }
        };
        self.namespaces().into_iter().map(stats).collect()
    }

    /// Removes every entry of a namespace, by one store. Their blocks are reclaimed as they are
    /// needed.
    pub fn clear_namespace(&self, space: Namespace) -> Result<(), CacheError> {
        if !self.segment.is_writable() {
            return Err(CacheError::ReadOnly);
        }
        let view = self.view();
        if view.generation_for(space.0).is_some() {
            view.outlive(space.0.number, false);
        }
        Ok(())
    }

    /// Removes every entry of every namespace.
    pub fn clear(&self) -> Result<(), CacheError> {
        self.namespaces().into_iter().try_for_each(|(_, space)| self.clear_namespace(space))
    }
}

impl Handle<'_> {
    /// The namespace that the operations of this handle work in.
    pub fn set_namespace(&mut self, space: Namespace) {
        self.report_hits();
        self.space = space.0;
    }

    /// Adds the hits since the last report to those of the namespace.
    pub(super) fn report_hits(&mut self) {
        let view = self.view;
        let hits = view.counted(self.inner.number, Count::Hits);
        let new = hits.wrapping_sub(std::mem::replace(&mut self.reported, hits));
        if let (Some(word), 1.., Some(_)) =
            (view.slot(self.space.number).get(HITS), new, view.generation_for(self.space))
        {
            add(Point::Stat, word, new);
        }
    }
}

impl Reader<'_> {
    /// The namespace that the operations of this reader work in.
    pub fn set_namespace(&mut self, space: Namespace) {
        self.space = space.0;
    }
}

const _: () =
    assert!(LONGEST == 96 && NAME + NAME_WORDS == SPACE_WORDS && MAX_SPACES <= NUMBER + 1);
