//! The map without its types: words to words.
//!
//! ```text
//!   root ──▶ T ──next──▶ S         S exists only while T is migrated; S gets a successor only once the root has reached S
//! ```
//!
//! **W1.** An operation takes effect by exactly one successful exchange of a value word, or by one
//! look that decides that nothing changes. The claim of a lane changes nothing that anyone may
//! answer: VIRGIN reads as absent.
//! **W2.** A lookup goes along the chain from the root, and answers at the first table whose word,
//! or EMPTY lane, decides. CLOSED and MOVED lead to the successor. VIRGIN in S decides: a copy
//! comes before MOVED, so the key was absent when T was left. A frozen word is answered as `moving`
//! WL8 says, in T.
//! **W3.** A lookup writes nothing and helps nobody, unless it is slow anyhow. Changes help before
//! they begin, if there is a successor.
//! **W4.** Copies go to the successor of the table they come from, never further (`moving` WL9).
//! **WL11.** The root moves from T to S when all of T is done; whoever sees that may move it.
//!
//! Together: at each moment one word decides for k, in the first table of the chain where k is not
//! MOVED and its lane not CLOSED, and a change is an exchange of that word.

use super::builder::Settings;
use super::desc::Descriptors;
use super::moving::thaw;
use super::probe::{Place, Slot};
use super::table::Table;
use super::word::{CLOSED, PLAIN, State, TOMB, VIRGIN};
use crate::migrate::{Link, Restart};
use crate::reclaim::{Access, Books, Domain, Section, Usual};
use crate::region::AllocError;
use crate::sync::{AtomicU64, AtomicUsize, Ordering, const_where_possible};
use crate::vocabulary::{Compute, Computed};

/// Why an attempt ended without an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    /// Begin again at the root.
    Restart,
    /// A table was needed and could not be had.
    Alloc(AllocError),
}

impl From<Restart> for Stop {
    fn from(Restart: Restart) -> Self {
        Self::Restart
    }
}

impl From<AllocError> for Stop {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

/// What an operation leaves to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// Its table is filling up.
    Growing,
    /// Much was removed from its table.
    Shrinking,
}

/// A map of words.
#[derive(Debug)]
pub(crate) struct Core {
    pub(super) root: Link<Table>,
    pub(super) settings: Settings,
    pub(super) domain: Domain,
    pub(super) descriptors: Descriptors,
    /// Tables made so far.
    pub(super) made: AtomicU64,
    /// Migrations completed.
    pub(super) migrations: AtomicUsize,
    /// Chunks that were handed out a second time.
    pub(super) again: AtomicUsize,
    /// Operations that had to move all the rest of a table.
    pub(super) waited: AtomicUsize,
}

impl Core {
    const_where_possible! {
        /// A map without a table.
        pub(crate) fn new(settings: Settings) -> Self {
            Self {
                // SAFETY: only sections of the map's domain lead here, and all that they find is
                // used inside of them (`link` M12).
                root: unsafe { Link::empty() },
                settings,
                domain: Domain::new(),
                descriptors: Descriptors::new(),
                made: AtomicU64::new(0),
                migrations: AtomicUsize::new(0),
                again: AtomicUsize::new(0),
                waited: AtomicUsize::new(0),
            }
        }
    }

    /// Entries: exact when nobody writes.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.domain.live()).unwrap_or(0)
    }

    /// The value of `key`. What is not seen at the key's home ends in another half, as in
    /// [`apply`](Self::apply).
    #[inline]
    pub(crate) fn get(&self, access: &impl Access, key: u64) -> Option<u64> {
        if let Some(brief) = access.usual() {
            let table = self.root.follow(&brief).ok().flatten();
            let value = table.and_then(|table| table.glance(key, brief.books()));
            brief.leave_alone();
            if let Some(value) = value {
                return value;
            }
        }
        self.get_further(access, key)
    }

    /// The same in one table, wherever the key lies there.
    #[inline(never)]
    fn get_further(&self, access: &impl Access, key: u64) -> Option<u64> {
        if let Some(brief) = access.usual() {
            let table = self.root.follow(&brief).ok().flatten();
            let value = table.and_then(|table| table.glance_further(key));
            brief.leave_alone();
            if let Some(value) = value {
                return value;
            }
        }
        self.get_slow(access, key)
    }

    /// A lookup that takes its share of the work and goes along the chain.
    #[cold]
    #[inline(never)]
    fn get_slow(&self, access: &impl Access, key: u64) -> Option<u64> {
        let section = access.section();
        loop {
            if let Ok(value) = self.try_get(&section, key) {
                return value;
            }
        }
    }

    fn try_get(&self, section: &Section<'_>, key: u64) -> Result<Option<u64>, Restart> {
        let Some(table) = self.root.follow(section)? else { return Ok(None) };
        self.help_on_the_way(section, table)?;
        self.walk(section, table, key)
    }

    /// Helps, unless that needs memory that cannot be had: an operation that does not need it goes
    /// on (`grow` G4).
    pub(super) fn help_on_the_way(
        &self,
        section: &Section<'_>,
        table: &Table,
    ) -> Result<(), Restart> {
        match self.help(section, table) {
            Err(Stop::Restart) => Err(Restart),
            Ok(()) | Err(Stop::Alloc(_)) => Ok(()),
        }
    }

    /// A lookup along the chain from `table` on (W2).
    pub(super) fn walk<'s>(
        &self,
        section: &'s Section<'_>,
        mut table: &'s Table,
        key: u64,
    ) -> Result<Option<u64>, Restart> {
        loop {
            match table.probe(table.k(key)) {
                Place::Slot(slot) => {
                    if let Some(answer) = self.ask(table, slot) {
                        return Ok(answer);
                    }
                }
                Place::Empty(..) | Place::End(_) => return Ok(None),
                Place::Closed => {}
            }
            table = Self::successor(section, table)?;
        }
    }

    /// What a slot says about its key; `None` if the successor knows.
    fn ask(&self, table: &Table, slot: Slot<'_>) -> Option<Option<u64>> {
        // ORDERING: Acquire: partners are the exchanges of value words.
        let mut word = slot.value.load(Ordering::Acquire);
        loop {
            match State::of(word) {
                State::Absent => return Some(None),
                State::Live(live) => return Some(Some(table.decode(slot, live))),
                State::Moved => return None,
                State::Frozen(number) => match thaw(&self.descriptors, slot.value, word, number) {
                    Ok(value) => return Some(Some(value)),
                    Err(now) => word = now,
                },
            }
        }
    }

    /// The successor of a table in which something frozen was seen.
    pub(super) fn successor<'s>(
        section: &'s Section<'_>,
        table: &Table,
    ) -> Result<&'s Table, Restart> {
        // Whoever froze the place had seen the successor, and its exchange passed that on.
        table.next().follow(section)?.ok_or(Restart)
    }

    /// Several lookups; the memory of all is asked for before the first is compared.
    pub(crate) fn get_many(&self, access: &impl Access, keys: &[u64], values: &mut [Option<u64>]) {
        let section = access.section();
        self.prefetch_in(&section, keys.iter().copied(), false);
        for (&key, value) in keys.iter().zip(values) {
            let table = self.root.follow(&section).ok().flatten();
            let glance = table.and_then(|table| table.glance(key, section.books()));
            *value = glance.unwrap_or_else(|| self.get_further(access, key));
        }
    }

    /// Asks the cache for the places of `keys`, which will be changed.
    pub(crate) fn prefetch(&self, access: &impl Access, keys: impl Iterator<Item = u64>) {
        self.prefetch_in(&access.section(), keys, true);
    }

    #[inline(always)]
    fn prefetch_in(&self, section: &Section<'_>, keys: impl Iterator<Item = u64>, write: bool) {
        if let Ok(Some(table)) = self.root.follow(section) {
            keys.for_each(|key| table.prefetch(key, write));
        }
    }

    /// Lets `decide` choose what happens to `key`, until one choice takes effect (W1).
    ///
    /// Here is the usual case: one table, the key's home has it or a lane for it, and nobody else
    /// is at it. Whatever else there is ends in a half that gives the answer itself, by `finish`:
    /// so that it is a jump, and nothing is saved for it on the usual way. For the same reason the
    /// closures own what they use.
    #[inline(always)]
    pub(crate) fn apply<const USER: bool, A: Access, R>(
        &self,
        access: &A,
        key: u64,
        mut decide: impl FnMut(Option<u64>) -> Compute<u64>,
        finish: impl FnOnce(Result<Computed<u64>, AllocError>) -> R,
    ) -> R {
        if let Some(brief) = access.usual() {
            let outcome = match self.root.follow(&brief) {
                Ok(Some(table)) => Self::apply_at_home(brief.books(), table, key, &mut decide),
                _ => None,
            };
            leave::<USER>(brief);
            if let Some((change, due)) = outcome {
                return self.conclude(access, due, finish(Ok(change)));
            }
        }
        self.apply_further::<USER, A, R>(access, key, decide, finish)
    }

    /// One try at the home of a key. `None`: nothing has happened that anyone may answer.
    #[inline(always)]
    fn apply_at_home(
        books: &Books,
        table: &Table,
        key: u64,
        decide: &mut impl FnMut(Option<u64>) -> Compute<u64>,
    ) -> Option<(Computed<u64>, Due)> {
        let k = table.k(key);
        if k <= CLOSED {
            return None;
        }
        let aim = table.aim(k);
        aim.fetch();
        let look = aim.look();
        // After the look (`probe` WL5.4). With a successor there is work to do first (W3).
        if !table.next().seems_empty() {
            return None;
        }
        if look.same != 0 {
            let place = aim.found(look);
            // ORDERING: Acquire: partners are the exchanges of value words.
            let word = place.load(Ordering::Acquire);
            Self::change_word(books, table, place, word, decide).ok().flatten()
        } else if look.zero != 0 {
            Self::put_first(books, table, || aim.claim(look), decide)
        } else {
            None
        }
    }

    /// The same in one table, wherever the key lies there, and until it has happened.
    #[inline(never)]
    fn apply_further<const USER: bool, A: Access, R>(
        &self,
        access: &A,
        key: u64,
        mut decide: impl FnMut(Option<u64>) -> Compute<u64>,
        finish: impl FnOnce(Result<Computed<u64>, AllocError>) -> R,
    ) -> R {
        if let Some(brief) = access.usual() {
            let outcome = match self.root.follow(&brief) {
                Ok(Some(table)) => Self::try_further(brief.books(), table, key, &mut decide),
                _ => None,
            };
            leave::<USER>(brief);
            if let Some((change, due)) = outcome {
                return self.conclude(access, due, finish(Ok(change)));
            }
        }
        self.apply_slow(access, key, decide, finish)
    }

    #[inline(always)]
    fn try_further(
        books: &Books,
        table: &Table,
        key: u64,
        decide: &mut impl FnMut(Option<u64>) -> Compute<u64>,
    ) -> Option<(Computed<u64>, Due)> {
        if !table.next().seems_empty() {
            return None; // (W3)
        }
        let k = table.k(key);
        match table.probe(k) {
            Place::Slot(slot) => Self::change_found(books, table, slot.value, decide),
            Place::Empty(lane, lines) if !table.is_too_far(lines) => {
                let claim = || table.claim(k, lane).then_some(lane.slot.value);
                Self::put_first(books, table, claim, decide)
            }
            Place::Empty(..) | Place::End(_) | Place::Closed => None,
        }
    }

    /// Returns `answer`, after what is left to do: a table to be made, a piece of memory to be
    /// given back.
    #[inline(always)]
    fn conclude<R>(&self, access: &impl Access, due: Due, answer: R) -> R {
        // SAFETY: the operation was inside of the domain.
        let returning = unsafe { self.domain.is_returning_in_use() };
        if due == Due::Nothing && !returning { answer } else { self.tidy(access, due, answer) }
    }

    /// What is left to do. It takes the answer along: a jump, as the other cold halves are.
    #[cold]
    #[inline(never)]
    fn tidy<R>(&self, access: &impl Access, due: Due, answer: R) -> R {
        if due != Due::Nothing {
            self.consider(access, due);
        }
        self.domain.return_piece();
        answer
    }

    /// Changes the value of a key that has a slot.
    #[inline(always)]
    fn change_found(
        books: &Books,
        table: &Table,
        place: &AtomicU64,
        decide: &mut impl FnMut(Option<u64>) -> Compute<u64>,
    ) -> Option<(Computed<u64>, Due)> {
        // ORDERING: Acquire: partners are the exchanges of value words.
        let mut word = place.load(Ordering::Acquire);
        loop {
            match Self::change_word(books, table, place, word, decide) {
                Ok(outcome) => return outcome,
                Err(now) => word = now,
            }
        }
    }

    /// One try, from the word that was seen. The error is the word that is there by now.
    #[inline(always)]
    fn change_word(
        books: &Books,
        table: &Table,
        place: &AtomicU64,
        word: u64,
        decide: &mut impl FnMut(Option<u64>) -> Compute<u64>,
    ) -> Result<Option<(Computed<u64>, Due)>, u64> {
        let before = match word {
            PLAIN.. => Some(word ^ table.secrets().flip),
            TOMB => None,
            // Also VIRGIN: the key has no tag perhaps (`table` WL6.3).
            _ => return Ok(None),
        };
        let Some(after) = Self::decided(decide(before), before) else {
            return Ok(Some((done(before, before), Due::Nothing)));
        };
        let to = match after.map(|value| table.secrets().plain(value)) {
            Some(Some(word)) => word,
            Some(None) => return Ok(None),
            None => TOMB,
        };
        exchange(place, word, to)?;
        let due = Self::account(books, table, before, after);
        Ok(Some((done(before, after), due)))
    }

    /// Gives a key its first value, in a lane that `claim` gets for it. `None` says that nothing
    /// has happened that anyone may answer.
    #[inline(always)]
    fn put_first<'t>(
        books: &Books,
        table: &Table,
        claim: impl FnOnce() -> Option<&'t AtomicU64>,
        decide: &mut impl FnMut(Option<u64>) -> Compute<u64>,
    ) -> Option<(Computed<u64>, Due)> {
        let Compute::Insert(value) = decide(None) else {
            return Some((done(None, None), Due::Nothing));
        };
        let word = table.secrets().plain(value)?;
        let place = claim()?;
        let due = Self::account_used(books, table);
        // Another writer of the key may have been faster: then the slow half goes on.
        exchange(place, VIRGIN, word).ok()?;
        books.add(1);
        Some((done(None, Some(value)), due))
    }

    /// The value after, or `None` if nothing changes.
    #[inline(always)]
    pub(super) fn decided(act: Compute<u64>, before: Option<u64>) -> Option<Option<u64>> {
        match act {
            Compute::Keep => None,
            Compute::Insert(value) => Some(Some(value)),
            Compute::Remove => before.map(|_| None),
        }
    }

    /// Every case.
    #[cold]
    #[inline(never)]
    fn apply_slow<A: Access, R>(
        &self,
        access: &A,
        key: u64,
        mut decide: impl FnMut(Option<u64>) -> Compute<u64>,
        finish: impl FnOnce(Result<Computed<u64>, AllocError>) -> R,
    ) -> R {
        let (change, due) = {
            let section = access.section();
            loop {
                match self.try_apply(&section, key, &mut decide) {
                    Ok(outcome) => break outcome,
                    Err(Stop::Restart) => {}
                    Err(Stop::Alloc(error)) => {
                        drop(section);
                        return finish(Err(error));
                    }
                }
            }
        };
        self.conclude(access, due, finish(Ok(change)))
    }

    /// Keeps the books after an exchange (`books` A1).
    #[inline(always)]
    pub(super) fn account(
        books: &Books,
        table: &Table,
        before: Option<u64>,
        after: Option<u64>,
    ) -> Due {
        match (before, after) {
            (Some(_), None) => Self::account_removed(books, table),
            (None, Some(_)) => {
                books.add(1);
                Due::Nothing
            }
            _ => Due::Nothing,
        }
    }

    /// A lane was claimed.
    #[inline(always)]
    pub(super) fn account_used(books: &Books, table: &Table) -> Due {
        match books.count_used(table.plan().id, table.batch()) {
            Some(used) if table.add_used(used) >= table.threshold() => Due::Growing,
            _ => Due::Nothing,
        }
    }

    /// An entry was removed.
    #[inline(always)]
    fn account_removed(books: &Books, table: &Table) -> Due {
        books.add(-1);
        match books.count_removed(table.plan().id, table.batch()) {
            Some(removed) if table.add_removed(removed) => Due::Shrinking,
            _ => Due::Nothing,
        }
    }
}

/// Ends an operation in the usual case.
#[inline(always)]
fn leave<'s, const USER: bool>(brief: impl Usual<'s>) {
    if !USER {
        brief.leave_alone();
    }
}

/// A writer's exchange of a value word.
#[inline(always)]
pub(super) fn exchange(place: &AtomicU64, from: u64, to: u64) -> Result<u64, u64> {
    // ORDERING: Release: the cell, and what the user published with the value. Acquire, also of a
    // failure: what came with the value that was there. Partner: every other access to the word.
    place.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
}

/// The value of a key before and after.
#[inline(always)]
pub(super) const fn done(before: Option<u64>, after: Option<u64>) -> Computed<u64> {
    Computed { before, after }
}

impl Drop for Core {
    fn drop(&mut self) {
        // SAFETY: alone; each table of the chain is behind one link, and what has left it belongs
        // to the domain.
        unsafe { self.root.drop_chain(Table::next_mut) };
    }
}
