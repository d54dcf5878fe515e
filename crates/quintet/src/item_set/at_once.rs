//! The usual case, in few instructions: one table, and the item in its home line.
//!
//! **O1.** A table without a `prev` has none for ever (`grow` G4). So whoever has once seen the
//! root alone, and finds the same table at the root again, knows that it is alone.
//! **O2.** A handle remembers such a table until its next quiet point. Its section has checked it,
//! so until then it is not freed, and nothing else has its address. It remembers as well which era
//! the section had announced, and asks whether it still is the era.
//! **O3.** A change takes no lock. It looks for its item, of this very hash, runs the user's code
//! on it, and puts the other in its place by one compare-exchange: the same item must still be
//! there (it cannot have been freed, and so none else has its address). If it is closed, the table
//! may have been left (`table` T8).
//! **O4.** The lines from the home line on to the first with an unused place, if none has the tag
//! of a hash, say that there is no item of that hash (`table` T1), nor an emptied place for one
//! (`table` T2). Under the lock they say so until the lock is free: an addition looks there, and
//! runs no user code at all.
//! **O5.** The birth of an addition is the era that its section had announced when the table was
//! found to be at hand: one that was the era then, or is earlier. Too early a birth only holds the
//! item longer (`reclaim` E2), so nobody asks whether it still is the era. What replaces an item
//! shows that one to its caller, and does ask.

use super::core::{Core, Hint};
use super::row::Row;
use super::shard::{self, Locked, Shard};
use super::table::{Raw, Table};
use super::word::{Birth, tag_of};
use crate::reclaim::{Hold, Peek, Visit};
use crate::sync::Ordering;
use crate::sync::item_word::ItemWord;
use crate::sync::prefetch::prefetch_write;
use crate::sync::six::{Lanes, Six};
use std::ptr;

/// An item that was taken out, and now belongs to the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) before: Raw,
    pub(crate) birth: u64,
    pub(crate) hint: Hint,
}

/// What shall happen at once: the item of this hash that is added or replaces another, or null for
/// a removal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) hash: u32,
    pub(crate) item: Raw,
}

/// What a look at a home line tells.
#[derive(Clone, Copy)]
pub(super) enum Home<'t> {
    /// There is an item with the same tag.
    Item(AtHome<'t>),
    /// Nothing of this hash is there (O4).
    Absent,
    Unknown,
}

/// A place in a home line, and the item that was found in it without a lock.
#[derive(Clone, Copy)]
pub(super) struct AtHome<'t> {
    pub(super) item: Raw,
    word: &'t ItemWord,
}

impl<'t> AtHome<'t> {
    /// The item in the first of some lanes of a line, if there is one.
    #[inline(always)]
    fn first(line: &'t Six, lanes: Lanes) -> Option<Self> {
        let word = line.first_item(lanes);
        let item = word.load();
        (!item.is_null()).then_some(Self { item, word })
    }
}

/// Where a write takes place: the shard of its hash, and its home.
#[derive(Clone, Copy)]
pub(super) struct At<'t> {
    pub(super) shard: &'t Shard,
    row: Row<'t>,
}

impl At<'_> {
    /// Asks the cache for the lock: something will be added, as a rule.
    #[inline(always)]
    pub(super) fn prefetch_lock(&self) {
        self.shard.prefetch();
    }

    /// Whether something of this hash may be at home. Waits for the line.
    #[inline(always)]
    pub(super) fn may_have(&self, hash: u32) -> bool {
        !self.row.line().lanes_of(tag_of(hash)).is_empty()
    }
}

impl Core {
    /// Works with the root in the usual case: it is alone, and the section may follow it. `None`
    /// says nothing.
    #[inline(always)]
    pub(super) fn at_hand<A: Hold, R>(
        &self,
        access: &A,
        work: impl FnOnce(&Table) -> Option<R>,
    ) -> Option<R> {
        if !A::REMEMBERS {
            return self.alone_at(&access.recall()).and_then(work);
        }
        // SAFETY: O2; what is remembered is a table.
        unsafe { self.root.with_known(|root| access.knows(root.cast()), work) }
    }

    /// Lets an access remember the root, if it is alone (O1).
    pub(super) fn acquaint<A: Hold>(&self, access: &A) {
        let looked = access.look();
        if let Some(table) = self.alone_at(&looked).filter(|_| A::REMEMBERS) {
            access.remember(ptr::from_ref(table).cast(), looked);
        }
    }

    /// The root if it is alone, and the era has not moved on. `None` says nothing.
    #[inline(always)]
    fn alone_at<'v>(&self, peek: &'v Peek<'_>) -> Option<&'v Table> {
        let table = self.root.follow(peek).ok()??;
        // Without a predecessor everything is in this table (`core` S1).
        table.prev().is_empty().then_some(table)
    }

    /// Where a write of `hash` in `table` takes place, if there is no other work to do.
    #[inline(always)]
    pub(super) fn come_to<'t>(&self, table: &'t Table, hash: u32) -> Option<At<'t>> {
        let at = At { shard: table.shard(hash), row: table.row(table.home(hash)) };
        at.row.prefetch_to_write();
        // SAFETY: tables are made and found inside sections of this domain.
        let returning = unsafe { self.domain.is_returning_in_use() };
        // Work to share is not for here.
        let at_work = !table.next().seems_empty() || returning;
        // Who runs user code under a lock is told so by the way that takes the lock from the
        // beginning (`shard` L4).
        (!at_work && !shard::is_busy()).then_some(at)
    }

    /// Adds an item to its home, where nothing of its hash was seen (O4), and returns the lock. It
    /// calls nothing, so that its caller has no registers to save; where that is not enough nothing
    /// has happened, and the lock is returned if it was taken. For `born` see O5.
    #[inline(always)]
    pub(super) fn add_at_home<'t>(
        &self,
        born: impl FnOnce() -> u64,
        table: &Table,
        At { shard, row }: At<'t>,
        Wish { hash, item }: Wish,
    ) -> Result<Locked<'t>, Option<Locked<'t>>> {
        let guard = shard.try_lock().ok_or(None)?;
        shard.count_in();
        let added = self.is_root(table) && table.try_add(shard, row, hash, item, Birth::of(born()));
        if !added {
            shard.count_back();
            return Err(Some(guard));
        }
        Ok(guard)
    }

    /// Whether the table is at the root, under the lock of the shard that is written to (`shard`
    /// L2).
    #[inline(always)]
    fn is_root(&self, table: &Table) -> bool {
        // Under the lock it is up to date with what earlier writers of this shard saw or did.
        self.root.leads_to(table)
    }

    /// Adds an item to `table`, which is at hand, behind its home as well (O4). `None` says that
    /// nothing has happened.
    #[inline(always)]
    pub(super) fn add_at_once(
        &self,
        born: u64,
        table: &Table,
        Wish { hash, item }: Wish,
    ) -> Option<Hint> {
        let at = self.come_to(table, hash)?;
        at.prefetch_lock();
        if at.may_have(hash) {
            return None;
        }
        let shard = at.shard;
        let _guard = shard.lock();
        if !self.is_root(table) {
            return None;
        }
        let end = table.seek_by_tags(hash)?;
        shard.count_in();
        let added = table.add(shard, end, hash, item, Birth::of(born), false);
        let filling = added.inspect_err(|_| shard.count_back()).ok()?;
        Some(if filling { Hint::Filling } else { Hint::Nothing })
    }

    /// Replaces an item in `table`, which is at hand, or removes it if `item` is null (O3). `None`
    /// says that nothing has happened. `expect` is told of the item that will be looked at, to ask
    /// the cache for it.
    #[inline(always)]
    pub(super) fn change_at_once(
        &self,
        visit: &Visit<'_>,
        table: &Table,
        Wish { hash, item }: Wish,
        same: &impl Fn(Raw) -> bool,
        expect: impl Fn(Raw),
        boxes: bool,
    ) -> Option<Taken> {
        // Taken before the item is loaded, and before any user code (`reclaim` E9).
        let peek = visit.peek();
        let row = table.row(table.home(hash));
        let lanes = row.line().lanes_of(tag_of(hash));
        if lanes.is_empty() {
            return None;
        }
        let found = AtHome::first(row.line(), lanes)?;
        expect(found.item);
        let mark = row.mark(lanes);
        prefetch_write(mark);
        // While it is on its way. User code: what it changes is seen below.
        visit.free_some(boxes && !item.is_null());
        // Marked although no lock is held: what a write from inside is answered must not depend on
        // where the item lies (`shard` L4).
        if !(peek.check() && shard::busy(|| same(found.item))) {
            return None;
        }
        // ORDERING: Relaxed: the hash was there before the item. The era is the one that the
        // section announced, so its interval covers the births of both items.
        if mark.hash.load(Ordering::Relaxed) != hash || !peek.check() {
            return None;
        }
        // ORDERING: Relaxed: before the item is changed, and written after (`table` T6).
        let birth = Birth::from_bits(mark.birth.load(Ordering::Relaxed)).era();
        if !found.word.change(found.item, item) {
            return None;
        }
        let removes = item.is_null();
        if !removes {
            mark.birth.store(Birth::of(peek.upper()).bits(), Ordering::Relaxed);
        }
        let hint = if removes { Self::count_out(visit, table, hash) } else { Hint::Nothing };
        Some(Taken { before: found.item, birth, hint })
    }
}

impl Table {
    /// The end of a search, if the tags of few lines tell that nothing of `hash` is there (O4).
    #[inline(never)]
    fn seek_by_tags(&self, hash: u32) -> Option<(usize, Lanes)> {
        const FEW: usize = 4;
        let mut line = self.home(hash);
        for _ in 0..FEW {
            let (same, lanes) = self.line(line).lanes_of_and_unused(tag_of(hash));
            if !same.is_empty() {
                return None;
            }
            if !lanes.is_empty() {
                return Some((line, lanes));
            }
            line = self.line_after(line);
        }
        None
    }

    /// What is in the home line under the tag of `hash`. Needs no lock; a later look decides.
    /// Without a loop, so that little of it stands between two lookups of a caller.
    #[inline(always)]
    pub(super) fn look_home(&self, hash: u32) -> Home<'_> {
        let home = self.home(hash);
        let line = self.line(home);
        let lanes = line.lanes_of(tag_of(hash));
        if lanes.is_empty() {
            return if line.unused().is_empty() { Home::Unknown } else { Home::Absent };
        }
        AtHome::first(line, lanes).map_or(Home::Unknown, Home::Item)
    }

    /// The item of `hash` that is the `same`, or null, as far as one look at its home line tells:
    /// that is where most are. `None` says nothing.
    #[inline(always)]
    pub(crate) fn glance(
        &self,
        hash: u32,
        may_follow: impl FnOnce() -> bool,
        same: impl Fn(Raw) -> bool,
    ) -> Option<Raw> {
        match self.look_home(hash) {
            Home::Item(found) if may_follow() && same(found.item) => Some(found.item),
            Home::Absent => Some(ptr::null_mut()),
            _ => None,
        }
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::super::ItemSet;
    use super::super::tests::{Record, record};

    /// A table of a later era is not looked into before that era is announced: nothing would keep
    /// it.
    #[test]
    fn a_root_of_a_later_era_is_not_at_hand() {
        let set = ItemSet::<Box<Record>>::new();
        let mut writer = set.quiet_handle();
        writer.insert(record(1, 10));
        let section = set.core.domain.pin();
        assert!(set.core.alone_at(&section.peek()).is_some());
        writer.insert(record(1, 11));
        writer.flush();
        assert!(set.core.alone_at(&section.peek()).is_none());
        assert!(!section.check() && section.check(), "announced");
        assert!(set.core.alone_at(&section.peek()).is_some());
    }
}
