//! The usual case, in few instructions: one table, and the item in its home line.
//!
//! **O1.** A table without a `prev` has none for ever (G4). So whoever has once seen the root alone, and finds the same table at the root
//! again, knows that it is alone.
//! **O2.** A handle remembers such a table until its next quiet point. Its section has checked it, so until then it is not freed, and nothing
//! else has its address. It remembers as well which era the section had announced, and asks whether it still is the era.
//! **O3.** A change looks for its item before it takes the lock: user code runs without it, and memory arrives meanwhile. Under the lock the
//! same item must still be there (it cannot have been freed, and so none else has its address), its place must be of this
//! hash, or the lock is not its own (L1), and the table must still be the root (L2).
//! **O4.** The lines from the home line on to the first with an unused place, if none has the tag of a hash, say that there is no item of that hash (T1), nor an emptied place for
//! one (T2). Under the lock they say so until the lock is free: an addition looks there, and runs no user code at all.

use super::core::{Core, Hint, Want};
use super::entrance::Entrance;
use super::shard::{self, Shard};
use super::table::{Raw, Sought, Table};
use super::word::{Birth, tag_of};
use crate::reclaim::{Peek, Visit};
use crate::sync::prefetch::prefetch_write;
use crate::sync::six::{Lanes, Six};
use crate::sync::{AtomicPtr, Ordering};
use std::ptr;

/// An item that was taken out, and now belongs to the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) before: Raw,
    pub(crate) birth: u64,
    hint: Hint,
}

/// What shall happen at once: what is wanted of the item with this hash, and the new item, which is null for a removal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) hash: u32,
    pub(crate) want: Want,
    pub(crate) item: Raw,
}

/// What has happened at once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AtOnce {
    /// An item was taken out, and the new one put in its place, if there is one.
    Changed(Taken),
    /// There was none, and the new one was added.
    Added(Hint),
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
    place: &'t AtomicPtr<()>,
    lane: usize,
}

impl<'t> AtHome<'t> {
    /// The item in the first of some lanes of a line, if there is one.
    #[inline(always)]
    fn first(line: &'t Six, lanes: Lanes) -> Option<Self> {
        let place = line.first_item(lanes);
        // ORDERING: Acquire, as in `item_at`.
        let item = place.load(Ordering::Acquire);
        (!item.is_null()).then(|| Self { item, place, lane: lanes.first() })
    }
}

/// Where a write takes place: the table, the shard of its hash, and the home line.
#[derive(Clone, Copy)]
struct At<'t> {
    table: &'t Table,
    shard: &'t Shard,
    home: usize,
}

impl Core {
    /// Works with the root in the usual case: it is alone, and the section may follow it. `None` says nothing.
    #[inline(always)]
    pub(super) fn at_hand<E: Entrance, R>(
        &self,
        entrance: &E,
        work: impl FnOnce(&Table) -> Option<R>,
    ) -> Option<R> {
        if !E::REMEMBERS {
            return self.alone_at(entrance.peek()).and_then(work);
        }
        // ORDERING: Acquire: partner is the exchange that published the table.
        let root = self.root.load(Ordering::Acquire);
        if !entrance.knows(root.cast()) {
            return None;
        }
        // SAFETY: O2; what is remembered is a table.
        work(unsafe { &*root })
    }

    /// Lets an entrance remember the root, if it is alone (O1).
    pub(super) fn acquaint<E: Entrance>(&self, entrance: &E) {
        let looked = entrance.look();
        if let Some(table) = self.alone_at(looked).filter(|_| E::REMEMBERS) {
            entrance.remember(ptr::from_ref(table).cast(), looked);
        }
    }

    /// The root if it is alone, and the era has not moved on. `None` says nothing.
    #[inline(always)]
    fn alone_at<'a>(&'a self, peek: Peek<'a>) -> Option<&'a Table> {
        // ORDERING: Acquire: partner is the exchange that published the table.
        let root = self.root.load(Ordering::Acquire);
        if !peek.check() {
            return None;
        }
        // SAFETY: as in `follow`.
        let table = unsafe { root.as_ref() }?;
        // ORDERING: Acquire: partner is `complete`: without a predecessor everything is in this table (S1).
        table.prev().load(Ordering::Acquire).is_null().then_some(table)
    }

    /// Does what is wanted in `table`, which is at hand. `None` says that nothing has happened. `expect` is told of the item that will be looked at, to ask
    /// the cache for it.
    #[inline(always)]
    pub(crate) fn write_at_once(
        &self,
        visit: &Visit<'_>,
        table: &Table,
        wish: Wish,
        same: &impl Fn(Raw) -> bool,
        expect: impl Fn(Raw),
    ) -> Option<AtOnce> {
        let Wish { hash, want, .. } = wish;
        shard::assert_not_busy(self.name());
        let at = At { table, shard: self.shard(hash), home: table.home(hash) };
        at.shard.prefetch();
        table.prefetch_to_write(at.home);
        // ORDERING: Relaxed: only asks whether there is work to share, which is not for here.
        if !table.next().load(Ordering::Relaxed).is_null() || self.domain.is_returning() {
            return None;
        }
        let line = table.line(at.home);
        let lanes = line.lanes_of(tag_of(hash));
        if lanes.is_empty() {
            let adds = matches!(want, Want::Put | Want::New);
            return if adds { self.add_at_once(visit.peek(), wish, at) } else { None };
        }
        let found = AtHome::first(line, lanes)?;
        if want == Want::New {
            return None;
        }
        self.change_at_once(visit, wish, same, expect, at, found)
    }

    /// Adds an item, to its home line as a rule (O4).
    #[inline(always)]
    fn add_at_once(
        &self,
        peek: Peek<'_>,
        Wish { hash, item, .. }: Wish,
        At { table, shard, home }: At<'_>,
    ) -> Option<AtOnce> {
        let _guard = shard.lock();
        // ORDERING: Relaxed: as in `change_at_once`. The era must be the announced one: a section may have announced eras to come, and no birth is among
        // them.
        if !(ptr::eq(self.root.load(Ordering::Relaxed), table) && peek.check()) {
            return None;
        }
        let sought = table.seek_by_tags(home, hash)?;
        let filling = table.place(shard, hash, &sought, item, Birth::of(peek.upper())).ok()?;
        shard.count_in();
        Some(AtOnce::Added(if filling { Hint::Filling } else { Hint::Nothing }))
    }

    /// Replaces an item, or removes it if `item` is null (O3).
    #[inline(always)]
    fn change_at_once(
        &self,
        visit: &Visit<'_>,
        Wish { hash, item, .. }: Wish,
        same: &impl Fn(Raw) -> bool,
        expect: impl Fn(Raw),
        At { table, shard, home }: At<'_>,
        found: AtHome<'_>,
    ) -> Option<AtOnce> {
        expect(found.item);
        let mark = table.mark_of(home, found.lane);
        prefetch_write(mark);
        // While it is on its way.
        visit.free_some();
        let peek = visit.peek();
        // Marked although no lock is held: what a write from inside is answered must not depend on where the item lies (L4).
        if !(peek.check() && shard::busy(self.name(), || same(found.item))) {
            return None;
        }
        let _guard = shard.lock();
        // ORDERING: Relaxed: under the lock all are up to date with what earlier writers of this shard saw or did (L2). The era is
        // the one that the section announced, so its interval covers the births of both items.
        let stands = ptr::eq(self.root.load(Ordering::Relaxed), table)
            && mark.hash.load(Ordering::Relaxed) == hash
            && ptr::eq(found.place.load(Ordering::Relaxed), found.item)
            && peek.check();
        if !stands {
            return None;
        }
        let birth = Birth::from_bits(mark.birth.load(Ordering::Relaxed)).era();
        mark.birth.store(Birth::of(peek.upper()).bits(), Ordering::Relaxed);
        // ORDERING: Release: the item's content comes first; partner: `item_at`.
        found.place.store(item, Ordering::Release);
        let emptying = item.is_null() && shard.count_out();
        let hint = if emptying { Hint::Emptying } else { Hint::Nothing };
        Some(AtOnce::Changed(Taken { before: found.item, birth, hint }))
    }

    /// Afterwards: sees whether another size would fit better.
    #[inline(always)]
    pub(crate) fn after_write(&self, visit: &Visit<'_>, done: &AtOnce) {
        let (AtOnce::Added(hint) | AtOnce::Changed(Taken { hint, .. })) = *done;
        if hint != Hint::Nothing {
            self.take_hint(visit, hint);
        }
    }
}

impl Table {
    /// The end of a search from `home` on, if the tags of few lines tell that nothing of `hash` is there (O4).
    #[inline(always)]
    fn seek_by_tags(&self, home: usize, hash: u32) -> Option<Sought> {
        const FEW: usize = 4;
        let mut end = home;
        for _ in 0..FEW {
            let line = self.line(end);
            let unused = line.unused();
            if !line.lanes_of(tag_of(hash)).is_empty() {
                return None;
            }
            if !unused.is_empty() {
                return Some(Sought::nothing(end, unused));
            }
            end = self.line_after(end);
        }
        None
    }

    /// What is in the home line under the tag of `hash`. Needs no lock; a later look decides. Without a loop, so that little of it stands between two
    /// lookups of a caller.
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

    /// The item of `hash` that is the `same`, or null, as far as one look at its home line tells: that is where most are. `None` says
    /// nothing.
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

    /// A table of a later era is not looked into before that era is announced: nothing would keep it.
    #[test]
    fn a_root_of_a_later_era_is_not_at_hand() {
        let set = ItemSet::<Box<Record>>::new();
        let mut writer = set.handle();
        writer.put(record(1, 10));
        let section = set.core.domain.pin();
        assert!(set.core.alone_at(section.peek()).is_some());
        writer.put(record(1, 11));
        writer.flush();
        assert!(set.core.alone_at(section.peek()).is_none());
        assert!(!section.check() && section.check(), "announced");
        assert!(set.core.alone_at(section.peek()).is_some());
    }
}
