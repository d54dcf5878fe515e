//! Many inserts at once, so that their cache misses overlap.
//!
//! ```text
//!   fill:     take records from the caller, hash them, ask the cache for their lines
//!   look:     a group later the lines are there: read them, ask the cache for the record that each one may be
//!   finish:   a group later the records are there: insert, one after the other
//! ```
//!
//! **K1.** Only `finish` changes the set, by the very insert that single records take, in the caller's order. The steps before are hints.
//! **K2.** A word that `look` has found with the right tag names a record of this set, and always will: slots are written once. If that record is the one
//! sought, the answer is Existing, without another look at the table.
//! **K3.** User code (the caller's iterator, `Hash`, `Eq`, what is told) runs while no section is open that it did not open itself, but for `Eq` (I4).

use super::budget::SeenError;
use super::core::{Access, Core};
use super::table::Table;
use crate::sync::line::Line;
use crate::sync::prefetch::prefetch_read;
use std::array;
use std::ptr;

/// Records that go through a step together.
const GROUP: usize = 8;

/// Records on their way.
struct Group<X> {
    items: [Option<X>; GROUP],
    hashes: [u64; GROUP],
    /// A word with the record's tag, or 0.
    hints: [u64; GROUP],
    len: usize,
}

/// What kind of record goes in, and how.
pub(super) trait Kind<X> {
    fn hash(&self, item: &X) -> u64;
    /// Asks the cache for the record of a word.
    fn fetch(&self, word: u64);
    /// Inserts one. `hint` is a word that may be it, or 0.
    fn finish(&mut self, item: X, hash: u64, hint: u64) -> Result<(), SeenError>;
}

impl<X> Group<X> {
    fn new() -> Self {
        Self { items: array::from_fn(|_| None), hashes: [0; GROUP], hints: [0; GROUP], len: 0 }
    }

    fn fill(&mut self, items: &mut impl Iterator<Item = X>, kind: &impl Kind<X>) {
        self.len = 0;
        for (place, hash) in self.items.iter_mut().zip(&mut self.hashes) {
            let Some(item) = items.next() else { break };
            *hash = kind.hash(&item);
            *place = Some(item);
            self.len += 1;
        }
    }

    fn finish(&mut self, kind: &mut impl Kind<X>) -> Result<(), SeenError> {
        for index in 0..self.len {
            if let Some(item) = self.items[index].take() {
                kind.finish(item, self.hashes[index], self.hints[index])?;
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
        let [mut a, mut b, mut c] = array::from_fn(|_| Group::new());
        // Each group goes on to the next step; none is moved for it.
        while self.step(access, &mut items, kind, (&mut a, &mut b, &mut c))?
            && self.step(access, &mut items, kind, (&mut c, &mut a, &mut b))?
            && self.step(access, &mut items, kind, (&mut b, &mut c, &mut a))?
        {}
        Ok(())
    }

    /// One step for each of three groups. False if nothing is left to do.
    #[inline(always)]
    fn step<X>(
        &self,
        access: &Access,
        items: &mut impl Iterator<Item = X>,
        kind: &mut impl Kind<X>,
        (filling, looking, finishing): (&mut Group<X>, &mut Group<X>, &mut Group<X>),
    ) -> Result<bool, SeenError> {
        filling.fill(items, kind);
        self.fetch_lines(access, &filling.hashes[..filling.len]);
        self.look_ahead(access, looking, kind);
        finishing.finish(kind)?;
        Ok(filling.len + looking.len > 0)
    }

    /// Asks the cache for the lines at which inserts of these hashes begin.
    #[inline(always)]
    fn fetch_lines(&self, access: &Access, hashes: &[u64]) {
        self.each_home(access, hashes, |_, line| prefetch_read(ptr::from_ref(line)));
    }

    /// Reads the lines, and asks the cache for the records that the sought ones may be (K2).
    #[inline(always)]
    fn look_ahead<X>(&self, access: &Access, group: &mut Group<X>, kind: &impl Kind<X>) {
        let Group { hashes, hints, len, .. } = group;
        hints.fill(0);
        // Members of a meeting must notice that it is called: they look for themselves.
        let hinting = self.meeting.is_none();
        self.each_home(access, &hashes[..*len], |index, line| {
            let tag = self.split.tag(hashes[index]);
            let found = line.scan(tag, self.split.tag_mask());
            if let Some(word) = Table::find_in(line, found.alike, |_| true) {
                kind.fetch(word);
                hints[index] = if hinting { word } else { 0 };
            }
        });
    }

    /// Shows the line at which each insert begins, if it can be had without ado.
    #[inline(always)]
    fn each_home(&self, access: &Access, hashes: &[u64], mut show: impl FnMut(usize, &Line)) {
        let Some(brief) = access.handle.spot().enter() else { return };
        for (index, &hash) in hashes.iter().enumerate() {
            let root = &self.roots[self.split.segment(hash)];
            match Self::follow(&brief, root) {
                Ok(Some(table)) => show(index, table.home(self.split.tag(hash))),
                Ok(None) => {}
                Err(_) => return,
            }
        }
    }
}
