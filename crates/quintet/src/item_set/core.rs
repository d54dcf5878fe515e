//! The set without its types: 32-bit hashes to pointers.
//!
//! ```text
//!   root ──▶ S ──prev──▶ T         T exists only while it is migrated into S; S gets a successor only when it has no prev
//! ```
//!
//! **S1.** Everybody starts at the root: one pointer leads to the pair (S, T). `prev` is loaded
//! before S is searched: if T had been finished in between, a miss in S would mean nothing.
//! **S2.** Readers look into S first, then into T. A present answer holds at the moment of its last
//! load; an absent one at some moment between the miss in S and the miss in T.
//! **S3.** Writers change S, and T if the item is there too, before they let go of the lock: under
//! the lock of a shard, where the word in T is closed, the two never disagree about an item that
//! both have. What is absent is never added to T, not even to a place that was emptied. T may be
//! cut off meanwhile, and S, then alone, be changed at once (`table` T8): what is found in T counts
//! only if T is linked after both searches. From then on it stays linked, since its item is not in
//! S yet (`grow` G3).
//! **S4.** A replaced item is retired after both tables were changed, once, and with no lock held:
//! its drop is user code.
//! **S5.** All user code of a write runs before its first change. A panic leaves the tables as they
//! were, and the lock free.
//! **S6.** A table that has left the root is no longer changed. Who still reads it began before it
//! left, and answers with what held when it left.
//! **S7.** An item that `same` has found in one table is looked for in the other by its address:
//! one that calls itself the same now and another then is in both tables nevertheless, and must
//! leave both before it is retired.

use super::at_once::Taken;
use super::builder::Settings;
use super::places::Sought;
use super::shard::{self, Shards};
use super::table::{Full, Raw, Table};
use super::word::Birth;
use crate::migrate::{Link, Restart};
use crate::reclaim::{Domain, Visit};
use crate::region::AllocError;
use crate::sync::{AtomicUsize, const_where_possible};
use std::ptr;

/// What a writer wants to happen to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// The item shall be there, whatever was.
    Put,
    /// The item shall be there if none was.
    New,
    /// The item shall be there if one was.
    Replace,
    /// No item shall be there.
    Remove,
}

/// What has happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// The item that was there, else null.
    pub(crate) before: Raw,
    /// Its birth, if it is there no longer: then the caller owns it and retires it (S4).
    pub(crate) taken: Option<u64>,
    /// The new item, if there was one.
    pub(crate) item: Raw,
    /// The new item is there; otherwise it still belongs to the caller.
    pub(crate) placed: bool,
    /// The books say that another size may fit better.
    hint: Hint,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    Nothing,
    /// Few places are left.
    Filling,
    /// Many were removed.
    Emptying,
    /// The search was long.
    Crowded,
}

/// Why an attempt ended without an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    /// Begin again at the root.
    Restart,
    /// No place is left.
    Full,
}

impl From<Restart> for Stop {
    fn from(Restart: Restart) -> Self {
        Self::Restart
    }
}

impl From<Full> for Stop {
    fn from(Full: Full) -> Self {
        Self::Full
    }
}

/// The tables at one moment (S1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<'v> {
    pub(crate) new: &'v Table,
    pub(crate) old: Option<&'v Table>,
}

/// A set of raw items.
#[derive(Debug)]
pub(crate) struct Core {
    pub(super) root: Link<Table>,
    pub(super) shards: Shards,
    pub(super) settings: Settings,
    pub(super) domain: Domain,
    /// Migrations completed.
    pub(super) migrations: AtomicUsize,
    /// Chunks handed out a second time.
    pub(super) again: AtomicUsize,
    /// Inserts that had to wait for the end of a migration.
    pub(super) waited: AtomicUsize,
    /// Migrations that were redone under all locks.
    pub(super) rebuilt: AtomicUsize,
}

/// Searches of more lines than this ask for a larger table.
const LONG_SEARCH: usize = 32;

/// A seat looks around once in so many removals.
const LOOK_EVERY: i64 = 64;

impl Core {
    const_where_possible! {
        /// A set without a table.
        pub(crate) fn new(settings: Settings) -> Self {
            Self {
                // SAFETY: only views of the set's domain lead here, and all that they find is used
                // in their sections (`link` M12).
                root: unsafe { Link::empty() },
                shards: Shards::new(settings.shard_bits),
                settings,
                domain: Domain::new(),
                migrations: AtomicUsize::new(0),
                again: AtomicUsize::new(0),
                waited: AtomicUsize::new(0),
                rebuilt: AtomicUsize::new(0),
            }
        }
    }

    /// Items: exact when nobody writes, and never too few under all locks (`shard` L7).
    pub(crate) fn len(&self) -> usize {
        // In this order.
        let gone = self.domain.live();
        usize::try_from(self.shards.came() as i64 + gone).unwrap_or(0)
    }

    /// Counts an item of `hash` out of `table`. Now and then it looks whether the set may have
    /// become too large for its items.
    #[inline(always)]
    pub(super) fn count_out(visit: &Visit<'_>, table: &Table, hash: u32) -> Hint {
        let books = visit.books();
        books.add(-1);
        let sparse = books.live() % LOOK_EVERY == 0 && table.seems_sparse(hash);
        if sparse { Hint::Emptying } else { Hint::Nothing }
    }

    /// The tables of this moment (S1).
    #[inline(always)]
    pub(super) fn pair<'v>(&self, visit: &'v Visit<'_>) -> Result<Option<Pair<'v>>, Restart> {
        let Some(new) = self.root.follow(visit)? else { return Ok(None) };
        Ok(Some(Pair { new, old: new.prev().follow(visit)? }))
    }

    /// The item of `hash` that is the `same`, or null.
    #[inline(never)]
    pub(crate) fn get(&self, visit: &Visit<'_>, hash: u32, same: impl Fn(Raw) -> bool) -> Raw {
        loop {
            if let Ok(item) = self.try_get::<false>(visit, hash, &same) {
                return item;
            }
        }
    }

    /// The same for one who will write ([`Table::find_exact`]).
    pub(crate) fn get_exact(
        &self,
        visit: &Visit<'_>,
        hash: u32,
        same: impl Fn(Raw) -> bool,
    ) -> Raw {
        loop {
            if let Ok(item) = self.try_get::<true>(visit, hash, &same) {
                return item;
            }
        }
    }

    fn try_get<const EXACT: bool>(
        &self,
        visit: &Visit<'_>,
        hash: u32,
        same: &impl Fn(Raw) -> bool,
    ) -> Result<Raw, Restart> {
        let Some(Pair { new, old }) = self.pair(visit)? else { return Ok(ptr::null_mut()) };
        let find = |table: &Table| {
            let may_follow = || visit.check();
            let found = if EXACT {
                table.find_exact(hash, may_follow, same)
            } else {
                table.find(hash, may_follow, same)
            };
            found.ok_or(Restart)
        };
        let item = find(new)?;
        match old {
            Some(old) if item.is_null() => find(old),
            _ => Ok(item),
        }
    }

    /// Asks the cache for the place of `hash`.
    #[inline(always)]
    pub(crate) fn prefetch(&self, visit: &Visit<'_>, hash: u32) {
        if let Ok(Some(table)) = self.root.follow(visit) {
            table.prefetch(hash);
        }
    }

    /// Does what is wanted with the item of `hash` that is the `same`. `item` is null for a
    /// removal.
    #[inline(always)]
    pub(crate) fn write(
        &self,
        visit: &Visit<'_>,
        hash: u32,
        same: impl Fn(Raw) -> bool,
        want: Want,
        item: Raw,
    ) -> Result<Outcome, AllocError> {
        shard::assert_not_busy();
        self.approach(visit, hash);
        loop {
            match self.try_write(visit, hash, &same, want, item) {
                Ok(outcome) => {
                    if outcome.hint != Hint::Nothing {
                        self.take_hint(visit, outcome.hint);
                    }
                    return Ok(outcome);
                }
                Err(Stop::Restart) => {}
                Err(Stop::Full) => self.make_room(visit)?,
            }
        }
    }

    /// Before the lock: does a share of the migration, and asks for the memory that the search will
    /// need.
    #[inline(always)]
    fn approach(&self, visit: &Visit<'_>, hash: u32) {
        self.domain.return_piece();
        if let Ok(Some(table)) = self.root.follow(visit) {
            table.shard(hash).prefetch();
            table.row(table.home(hash)).prefetch_to_write();
            if !table.prev().seems_empty() {
                if let Ok(Some(old)) = table.prev().follow(visit) {
                    old.prefetch(hash);
                }
                // An error is for those who cannot go on without (`grow` G8).
                let _ = self.help(visit);
            } else if !table.next().seems_empty() {
                self.ready(visit, table);
            }
        }
    }

    /// Where the item is, in both tables (S7). `None` if the section may not follow an item.
    #[inline(always)]
    fn seek_in_both(
        visit: &Visit<'_>,
        Pair { new, old }: Pair<'_>,
        hash: u32,
        same: &impl Fn(Raw) -> bool,
    ) -> Option<(Sought, Option<Sought>)> {
        let seek = |table: &Table| table.seek(hash, || visit.check(), same);
        let here = seek(new)?;
        let Some(old) = old else { return Some((here, None)) };
        if !here.item.is_null() {
            return Some((here, Some(old.seek_raw(hash, here.item))));
        }
        let there = seek(old)?;
        if there.item.is_null() || cfg!(quintet_mutation = "lying-item") {
            return Some((here, Some(there)));
        }
        Some((new.seek_raw(hash, there.item), Some(there)))
    }

    /// One attempt.
    #[inline(always)]
    fn try_write(
        &self,
        visit: &Visit<'_>,
        hash: u32,
        same: &impl Fn(Raw) -> bool,
        want: Want,
        item: Raw,
    ) -> Result<Outcome, Stop> {
        let adds = matches!(want, Want::Put | Want::New);
        let Some(table) = self.root.follow(visit)? else {
            return if adds { Err(Stop::Full) } else { Ok(Outcome::nothing(ptr::null_mut())) };
        };
        let shard = table.shard(hash);
        let _guard = shard.lock();
        // Again under the lock (`shard` L2), which may have turned out to be another's (`shard`
        // L6).
        let Some(pair) = self.pair(visit)?.filter(|pair| pair.new.is_locked_like(table)) else {
            return Err(Stop::Restart);
        };
        let Pair { new, old } = pair;
        // S5: user code, and no change yet.
        let sought = shard::busy(|| Self::seek_in_both(visit, pair, hash, same));
        let (here, there) = sought.ok_or(Stop::Restart)?;
        let in_old = there.and_then(|there| there.place);
        if old.is_some_and(|old| in_old.is_some() && !new.prev().leads_to(old)) {
            return Err(Stop::Restart); // S3
        }
        let before = match there {
            Some(there) if here.item.is_null() => there.item,
            _ => here.item,
        };
        let birth = Birth::of(visit.era());
        // Whatever the answer: afterwards the section's interval covers the birth of the item to
        // come, as it covers that of the one found. Both may be shown to the caller after the lock
        // is free.
        let _ = visit.check();
        if if before.is_null() { !adds } else { want == Want::New } {
            return Ok(Outcome::nothing(before));
        }
        let mut outcome =
            Outcome { before, taken: None, item, placed: !item.is_null(), hint: Hint::Nothing };
        // All that can fail comes before the first change, or is it. What was found without it
        // being closed may have been changed since (`table` T8).
        if let (Some(old), Some(place)) = (old, in_old) {
            if !ptr::eq(old.close(place), before) {
                return Err(Stop::Restart);
            }
        }
        if let Some(place) = here.place {
            let taken = new.change(place, before, item, birth).ok_or(Stop::Restart)?;
            outcome.taken = Some(taken.era());
        } else if !item.is_null() {
            let comes = before.is_null();
            if comes {
                shard.count_in();
            }
            let placed = new.place(shard, hash, &here, item, birth, false);
            let filling = placed.inspect_err(|_| {
                if comes {
                    shard.count_back();
                }
            })?;
            if filling {
                outcome.hint = Hint::Filling;
            } else if here.looked_at > LONG_SEARCH {
                outcome.hint = Hint::Crowded;
            }
        }
        if let (Some(old), Some(place)) = (old, in_old) {
            outcome.taken = Some(old.birth(place).era());
            old.settle(place, item, birth);
        }
        if item.is_null() {
            outcome.hint = Self::count_out(visit, new, hash);
        }
        Ok(outcome)
    }

    #[cold]
    pub(super) fn take_hint(&self, visit: &Visit<'_>, hint: Hint) {
        match hint {
            Hint::Nothing => {}
            Hint::Filling => self.consider_growing(visit),
            Hint::Crowded => self.consider_spreading(visit),
            Hint::Emptying => self.consider_shrinking(visit),
        }
    }
}

impl Core {
    /// Takes all items out of a set that nobody else uses, and frees its tables.
    pub(crate) fn dismantle(&mut self, mut take: impl FnMut(Raw)) {
        // SAFETY: alone, and only the root led to it.
        let Some(mut new) = (unsafe { self.root.take() }) else { return };
        // SAFETY: alone, and only `prev` led to it.
        if let Some(old) = unsafe { new.prev_mut().take() } {
            for place in 0..old.places() {
                let item = old.item_at(place);
                let both = || new.seek_raw(old.hash_at(place), item).place.is_some();
                if !item.is_null() && !both() {
                    take(item);
                }
            }
        }
        let items = (0..new.places()).map(|place| new.item_at(place));
        items.filter(|item| !item.is_null()).for_each(take);
    }
}

impl Outcome {
    /// Of what was done at once with `item`, which is null for a removal; what was taken out, if it
    /// is not an addition.
    #[inline(always)]
    pub(crate) const fn at_once(taken: Option<Taken>, item: Raw) -> Self {
        let (before, taken) = match taken {
            Some(Taken { before, birth, .. }) => (before, Some(birth)),
            None => (ptr::null_mut(), None),
        };
        Self { before, taken, item, placed: !item.is_null(), hint: Hint::Nothing }
    }

    /// Nothing was changed.
    const fn nothing(before: Raw) -> Self {
        Self { before, taken: None, item: ptr::null_mut(), placed: false, hint: Hint::Nothing }
    }
}
