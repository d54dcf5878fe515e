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
//! **K3.** If `look` has found no such word before the first EMPTY of the probe, that EMPTY is where the record goes (T1). What comes before it is FULL and stays; so
//! if the exchange succeeds, the record was nowhere in the table, however long ago the look was. If it fails, the insert begins anew.
//! **K4.** One section spans `look` and `finish`, so that the table stays in place. User code runs inside it (the caller's iterator, `Hash`, `Eq`, what
//! is told); it may use the set, by this handle too, and if it takes long it holds back the memory of tables that are left meanwhile.

use super::budget::SeenError;
use super::core::{Access, Core};
use super::table::{Seen, Table, Walk};
use crate::reclaim::Brief;
use crate::sync::line::Line;
use crate::sync::prefetch::prefetch_read;
use std::array;
use std::ptr;

/// Records that go through a step together.
const GROUP: usize = 16;

/// What a look ahead has found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead<'t> {
    /// A word that may be the record's (K2), or 0.
    pub(super) word: u64,
    /// Where the record of that word lies.
    pub(super) place: *const u8,
    /// Where the record goes if it is new (K3).
    pub(super) free: Option<(&'t Table, Walk, usize)>,
}

impl Ahead<'_> {
    /// Nothing is known.
    pub(super) const NOTHING: Self = Self { word: 0, place: ptr::null(), free: None };
}

/// Records on their way.
struct Group<X> {
    items: [Option<X>; GROUP],
    hashes: [u64; GROUP],
    len: usize,
}

/// What kind of record goes in, and how.
pub(super) trait Kind<X> {
    fn hash(&self, item: &X) -> u64;
    /// Where the record of a word lies.
    fn locate(&self, word: u64) -> *const u8;
    /// Inserts one.
    fn finish(&mut self, item: X, hash: u64, ahead: Ahead<'_>) -> Result<(), SeenError>;
}

impl<X> Group<X> {
    fn new() -> Self {
        Self { items: array::from_fn(|_| None), hashes: [0; GROUP], len: 0 }
    }

    #[inline(always)]
    fn fill(
        &mut self,
        items: &mut impl Iterator<Item = X>,
        kind: &impl Kind<X>,
        mut fetch: impl FnMut(u64),
    ) {
        self.len = 0;
        while self.len < GROUP {
            let Some(item) = items.next() else { break };
            let hash = kind.hash(&item);
            fetch(hash);
            self.hashes[self.len] = hash;
            self.items[self.len] = Some(item);
            self.len += 1;
        }
    }

    #[inline(always)]
    fn finish(
        &mut self,
        kind: &mut impl Kind<X>,
        ahead: &[Ahead<'_>; GROUP],
    ) -> Result<(), SeenError> {
        let group = self.items.iter_mut().zip(&self.hashes).zip(ahead);
        for ((item, &hash), &ahead) in group.take(self.len) {
            if let Some(item) = item.take() {
                kind.finish(item, hash, ahead)?;
            }
        }
        self.len = 0;
        Ok(())
    }
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
        let (mut one, mut other) = (Group::new(), Group::new());
        // Groups take turns; none is moved.
        while self.step(access, &mut items, kind, &mut one, &mut other)?
            && self.step(access, &mut items, kind, &mut other, &mut one)?
        {}
        Ok(())
    }

    /// Fills one group and finishes the other. False if nothing is left to do.
    #[inline(always)]
    fn step<X>(
        &self,
        access: &Access,
        items: &mut impl Iterator<Item = X>,
        kind: &mut impl Kind<X>,
        filling: &mut Group<X>,
        finishing: &mut Group<X>,
    ) -> Result<bool, SeenError> {
        let section = access.handle.spot().enter();
        let mut ahead = [Ahead::NOTHING; GROUP];
        if let Some(section) = &section {
            self.look(section, finishing, kind, &mut ahead);
        }
        filling.fill(items, kind, |hash| {
            if let Some((_, line)) = section.as_ref().and_then(|section| self.home(section, hash)) {
                prefetch_read(ptr::from_ref(line));
            }
        });
        let finished = finishing.finish(kind, &ahead);
        drop(section);
        access.tidy_if_needed(&self.account);
        finished?;
        Ok(filling.len > 0)
    }

    /// The table that an insert begins with, and the line.
    #[inline(always)]
    fn home<'s>(&self, section: &'s Brief<'_>, hash: u64) -> Option<(&'s Table, &'s Line)> {
        let table = Self::follow(section, &self.roots[self.split.segment(hash)]).ok()??;
        Some((table, table.home(self.split.tag(hash))))
    }

    /// Reads the lines, and asks the cache for the records that the sought ones may be (K2, K3).
    #[inline(always)]
    fn look<'s, X>(
        &self,
        section: &'s Brief<'_>,
        group: &Group<X>,
        kind: &impl Kind<X>,
        ahead: &mut [Ahead<'s>; GROUP],
    ) {
        if self.meeting.is_some() {
            // A member must notice that a meeting is called: it looks for itself.
            return;
        }
        for (&hash, ahead) in group.hashes[..group.len].iter().zip(ahead) {
            let Some((table, _)) = self.home(section, hash) else { return };
            let tag = self.split.tag(hash);
            let mut walk = table.walk(tag);
            match table.look(&mut walk, tag, |_| true) {
                Seen::Same(word) => {
                    ahead.word = word;
                    ahead.place = kind.locate(word);
                    prefetch_read(ahead.place);
                }
                Seen::Empty(slot) if table.is_calm() => ahead.free = Some((table, walk, slot)),
                Seen::Empty(_) | Seen::Never => {}
            }
        }
    }
}
