//! Many inserts at once, so that their cache misses overlap.
//!
//! ```text
//!   fill:     take records from the caller, hash them, ask the cache for their lines
//!   look:     a group later the lines are there: read them, ask the cache for the record that each one may be
//!   finish:   the next group has been filled meanwhile and the records are there: insert, one after the other
//! ```
//!
//! **K1.** Only `finish` changes the set, by the very exchange that single inserts use, in the caller's order.
//! **K2.** A word that `look` has found with the right tag names a record of this set, and always will: slots are written once. If that record is the one
//! sought, the answer is Existing, without another look at the table.
//! **K3.** If `look` has found no such word on the home line, but a gap, that gap is where the record goes (T1). What comes before it is FULL and stays; so
//! if the exchange of an EMPTY there succeeds, the record was nowhere in the table, however long ago the look was. If it fails, the insert begins anew.
//! **K4.** One section spans `fill`, `look` and `finish`, so that the tables stay in place. User code runs inside it (the caller's iterator, `Hash`, `Eq`, what
//! is told); it may use the set, by this handle too, and if it takes long it holds back the memory of tables that are left meanwhile. The section is
//! renewed when the era has changed, that is, when there is something to hold back.
//! **K5.** No branch of `look` depends on what it reads: lines that arrive late hold up nothing but their own answers.

use super::budget::SeenError;
use super::core::{Access, Core};
use super::pass::Pass;
use super::table::Table;
use crate::reclaim::Brief;
use crate::sync::line::{LINE, Line};
use crate::sync::prefetch::prefetch_read;
use std::mem::MaybeUninit;
use std::ptr;

/// Records that go through a step together.
const GROUP: usize = 16;

/// What a look ahead has found.
#[derive(Debug)]
pub(super) struct Ahead<'s, P> {
    /// The section in which the look was.
    pub(super) section: Option<&'s P>,
    /// A word that may be the record's (K2), or 0.
    pub(super) word: u64,
    /// Where the record of that word lies.
    pub(super) place: *const u8,
    /// Where the record goes if there is no such word (K3).
    pub(super) gap: Option<Gap<'s>>,
}

/// A slot that was free. If `slot` is [`LINE`], there was none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap<'s> {
    pub(super) table: &'s Table,
    pub(super) line: &'s Line,
    pub(super) slot: usize,
}

impl Ahead<'_, Brief<'_>> {
    /// Nothing is known.
    pub(super) const NOTHING: Self = Self { section: None, word: 0, place: ptr::null(), gap: None };
}

/// What kind of record goes in, and how.
pub(super) trait Kind<X> {
    fn hash(&self, item: &X) -> u64;
    /// Where the record of a word lies; somewhere for the word 0.
    fn locate(&self, word: u64) -> *const u8;
    /// Inserts one.
    fn finish<P: Pass>(&mut self, item: X, hash: u64, ahead: Ahead<'_, P>)
    -> Result<(), SeenError>;
}

/// Records on their way: those from `next` to `len`.
struct Group<X> {
    items: [MaybeUninit<X>; GROUP],
    hashes: [u64; GROUP],
    next: usize,
    len: usize,
}

impl<X> Group<X> {
    fn new() -> Self {
        let items = [const { MaybeUninit::uninit() }; GROUP];
        Self { items, hashes: [0; GROUP], next: 0, len: 0 }
    }

    /// Puts an item behind the others, which are `index`.
    #[inline(always)]
    fn put(&mut self, index: usize, item: X, hash: u64) {
        debug_assert_eq!(index, self.len);
        self.hashes[index] = hash;
        self.items[index].write(item);
        self.len = index + 1;
    }

    /// Takes the first of those that are left, which is `index`.
    #[inline(always)]
    fn take(&mut self, index: usize) -> X {
        debug_assert!(index == self.next && index < self.len);
        self.next = index + 1;
        // SAFETY: `put` has written it, and `next` has passed it: it is read once.
        unsafe { self.items[index].assume_init_read() }
    }

    /// All have been taken.
    #[inline(always)]
    fn clear(&mut self) {
        debug_assert_eq!(self.next, self.len);
        (self.next, self.len) = (0, 0);
    }
}

impl<X> Drop for Group<X> {
    fn drop(&mut self) {
        while self.next < self.len {
            drop(self.take(self.next));
        }
    }
}

/// Where the records of a group begin to look.
type Aims<'s> = [Option<(&'s Table, &'s Line)>; GROUP];

/// What `look` has read for a group: words, their records' places, gaps.
struct Sights {
    words: [u64; GROUP],
    places: [*const u8; GROUP],
    gaps: [usize; GROUP],
}

impl Core {
    /// Inserts everything, in order (K1). After an error, what comes behind is not inserted.
    pub(super) fn insert_many<X>(
        &self,
        access: &Access,
        items: impl IntoIterator<Item = X>,
        kind: &mut impl Kind<X>,
    ) -> Result<(), SeenError> {
        let mut items = items.into_iter().fuse();
        if self.meeting.is_some() {
            return Self::one_by_one(items, kind);
        }
        let mut groups = (Group::new(), Group::new());
        loop {
            let more = match access.handle.spot().enter() {
                Some(brief) => self.run(access, &brief, &mut items, kind, &mut groups)?,
                None => self.run_slow(access, &mut items, kind, &mut groups)?,
            };
            access.tidy_if_needed(&self.account);
            if !more {
                return Ok(());
            }
        }
    }

    /// [`run`](Self::run) where the usual section cannot be had: inside another one of this handle, or where entering takes a fence.
    #[cold]
    #[inline(never)]
    fn run_slow<X>(
        &self,
        access: &Access,
        items: &mut impl Iterator<Item = X>,
        kind: &mut impl Kind<X>,
        groups: &mut (Group<X>, Group<X>),
    ) -> Result<bool, SeenError> {
        self.run(access, &access.handle.pin(), items, kind, groups)
    }

    /// Among those who meet each must notice that a meeting is called, and looks for itself.
    #[cold]
    fn one_by_one<X>(
        items: impl Iterator<Item = X>,
        kind: &mut impl Kind<X>,
    ) -> Result<(), SeenError> {
        for item in items {
            let hash = kind.hash(&item);
            kind.finish(item, hash, Ahead::NOTHING)?;
        }
        Ok(())
    }

    /// Works in one section until there is something to hold back (K4): then true, and the first group waits to be finished. False if nothing is left
    /// to do.
    #[inline(always)]
    fn run<X>(
        &self,
        access: &Access,
        section: &impl Pass,
        items: &mut impl Iterator<Item = X>,
        kind: &mut impl Kind<X>,
        groups: &mut (Group<X>, Group<X>),
    ) -> Result<bool, SeenError> {
        let (mut filling, mut finishing) = (&mut groups.1, &mut groups.0);
        let (mut aims, mut other): (Aims<'_>, Aims<'_>) = ([None; GROUP], [None; GROUP]);
        let (mut aims_filling, mut aims_finishing) = (&mut aims, &mut other);
        for (aim, &hash) in aims_finishing.iter_mut().zip(&finishing.hashes).take(finishing.len) {
            *aim = self.aim(section, hash);
        }
        let mut turned = false;
        loop {
            let sights = self.look(finishing, aims_finishing, kind);
            self.fill(section, items, kind, filling, aims_filling);
            self.finish(section, kind, finishing, aims_finishing, &sights)?;
            std::mem::swap(&mut filling, &mut finishing);
            std::mem::swap(&mut aims_filling, &mut aims_finishing);
            turned = !turned;
            if finishing.len == 0 {
                return Ok(false);
            }
            if !section.is_current() || access.is_untidy() {
                break;
            }
        }
        if turned {
            std::mem::swap(&mut groups.0, &mut groups.1);
        }
        Ok(true)
    }

    /// Where a record begins to look.
    #[inline(always)]
    fn aim<'s>(&self, section: &'s impl Pass, hash: u64) -> Option<(&'s Table, &'s Line)> {
        let table = Self::follow(section, self.link(self.split.segment(hash))).ok()??;
        let line = table.home(self.split.tag(hash));
        prefetch_read(ptr::from_ref(line));
        Some((table, line))
    }

    #[inline(always)]
    fn fill<'s, X>(
        &self,
        section: &'s impl Pass,
        items: &mut impl Iterator<Item = X>,
        kind: &impl Kind<X>,
        group: &mut Group<X>,
        aims: &mut Aims<'s>,
    ) {
        for (aim, index) in aims.iter_mut().zip(0..) {
            let Some(item) = items.next() else { break };
            let hash = kind.hash(&item);
            *aim = self.aim(section, hash);
            group.put(index, item, hash);
        }
    }

    /// Reads the lines, and asks the cache for the records that the sought ones may be (K2, K3, K5).
    #[inline(always)]
    fn look<X>(&self, group: &Group<X>, aims: &Aims<'_>, kind: &impl Kind<X>) -> Sights {
        let mut sights =
            Sights { words: [0; GROUP], places: [ptr::null(); GROUP], gaps: [0; GROUP] };
        let mask = self.split.tag_mask();
        for (index, aim) in aims.iter().enumerate().take(group.len) {
            let Some((_, line)) = aim else { continue };
            let sight = Table::sight(line, self.split.tag(group.hashes[index]), mask);
            sights.words[index] = sight.word;
            sights.gaps[index] = sight.gap;
            sights.places[index] = kind.locate(sight.word);
            // The line is full of others: the record will be sought on the next one.
            let beyond = sight.word == 0 && sight.gap == LINE;
            let after = ptr::from_ref(*line).wrapping_add(1).cast();
            prefetch_read(if beyond { after } else { sights.places[index] });
        }
        sights
    }

    #[inline(always)]
    fn finish<'s, X>(
        &self,
        section: &'s impl Pass,
        kind: &mut impl Kind<X>,
        group: &mut Group<X>,
        aims: &Aims<'s>,
        sights: &Sights,
    ) -> Result<(), SeenError> {
        for (index, aim) in aims.iter().enumerate().take(group.len) {
            let slot = sights.gaps[index];
            let gap = aim.map(|(table, line)| Gap { table, line, slot });
            let (word, place) = (sights.words[index], sights.places[index]);
            let ahead = Ahead { section: Some(section), word, place, gap };
            let hash = group.hashes[index];
            kind.finish(group.take(index), hash, ahead)?;
        }
        group.clear();
        Ok(())
    }
}
