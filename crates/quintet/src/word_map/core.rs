//! The map without its types: words to words.
//!
//! ```text
//!   root ──▶ T ──next──▶ S         S exists only while T is migrated; S gets a successor only once the root has reached S
//! ```
//!
//! **W1.** An operation takes effect by exactly one successful exchange of a place that is not frozen, or by one look that decides
//! that nothing changes.
//! **W2.** A lookup goes along the chain from the root. LIVE(k): the answer is here. TOMB(k): absent. EMPTY: absent, whether or not there
//! is a successor, since nobody goes past an EMPTY to store k further on: an insert that wants to freezes it first.
//! k's done place, or EMPTY-frozen: the successor knows.
//! **W3.** LIVE-frozen(k) in T: a writer copies it and goes on in S. A reader looks into S: if k has never been there (EMPTY at the end of
//! its probe), then at that moment k still had the frozen value. A miss in S alone never means absent.
//! **W4.** Copies go to the successor of the table they come from, never further, and only where the key has never been.
//! **W5.** The root moves from T to S when all of T is done; whoever sees that may move it.
//!
//! Together: at each moment at most one place of k in the whole chain is LIVE or decides for k, and a frozen place does not
//! change any more, so that everybody who meets it goes the same way.

use super::builder::Settings;
use super::table::{Probe, Seen, Table};
use super::word::{GROUPS, State};
use crate::migrate::{Link, Restart};
use crate::reclaim::{Access, Books, Check, Domain, Section, Usual};
use crate::region::AllocError;
use crate::sync::{AtomicU64, AtomicUsize, const_where_possible};
use crate::vocabulary::{Compute, Computed};

/// What a writer expects to find. Wrong guesses cost time only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    Present,
    Either,
}

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
                // SAFETY: only sections of the map's domain lead here, and all that they find is used inside of them (M12).
                root: unsafe { Link::empty() },
                settings,
                domain: Domain::new(),
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

    /// The value of `key`.
    #[inline]
    pub(crate) fn get(&self, access: &impl Access, key: u64) -> Option<u64> {
        let glance = access.usual().and_then(|brief| {
            let value = self.lone(&brief).and_then(|table| table.glance(key));
            brief.leave_alone();
            value
        });
        glance.unwrap_or_else(|| self.get_slow(access, key))
    }

    /// The table, if there is just one.
    #[inline(always)]
    fn lone<'s>(&self, section: &'s impl Check) -> Option<&'s Table> {
        let table = self.root.follow(section).ok()??;
        table.next().seems_empty().then_some(table)
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
        self.help(section, table)?;
        Self::walk(section, table, key)
    }

    /// A lookup along the chain from `table` on (W2, W3).
    pub(super) fn walk<'s>(
        section: &'s Section<'_>,
        mut table: &'s Table,
        key: u64,
    ) -> Result<Option<u64>, Restart> {
        // What the table before said if this one has never heard of the key.
        let mut frozen = None;
        loop {
            let seen = table.probe(key).look();
            frozen = match seen.state {
                State::Live => return Ok(Some(seen.value)),
                State::Tomb => return Ok(None),
                State::Empty => return Ok(frozen),
                State::LiveFrozen => Some(seen.value),
                State::EmptyFrozen | State::LiveDone | State::TombFrozen => None,
            };
            table = Self::successor(section, table)?;
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
        self.prefetch_in(&section, keys.iter().copied());
        for (&key, value) in keys.iter().zip(values) {
            let glance = self.lone(&section).and_then(|table| table.glance(key));
            *value = glance.unwrap_or_else(|| self.get_slow(access, key));
        }
    }

    /// Asks the cache for the places of `keys`.
    pub(crate) fn prefetch(&self, access: &impl Access, keys: impl Iterator<Item = u64>) {
        self.prefetch_in(&access.section(), keys);
    }

    #[inline(always)]
    fn prefetch_in(&self, section: &Section<'_>, keys: impl Iterator<Item = u64>) {
        if let Some(table) = self.lone(section) {
            keys.for_each(|key| table.prefetch(key));
        }
    }

    /// Lets `decide` choose what happens to `key`, until one choice takes effect (W1).
    #[inline]
    pub(crate) fn apply<const USER: bool, A: Access>(
        &self,
        access: &A,
        key: u64,
        expect: Expect,
        mut decide: impl FnMut(Option<u64>) -> Compute<u64>,
    ) -> Result<Computed<u64>, AllocError> {
        let at_home = if GROUPS {
            self.apply_at_home::<USER, A>(access, key, expect, &mut decide)
        } else {
            None
        };
        let (change, due) = match at_home.or_else(|| self.apply_at_once(access, key, &mut decide)) {
            Some(outcome) => outcome,
            None => self.apply_slow(access, key, &mut decide)?,
        };
        if due != Due::Nothing {
            self.consider(access, due);
        }
        self.domain.return_piece();
        Ok(change)
    }

    /// The usual case: one table, and the key's home has it or a slot for it. `None` says that nothing has happened.
    #[inline(always)]
    fn apply_at_home<const USER: bool, A: Access>(
        &self,
        access: &A,
        key: u64,
        expect: Expect,
        decide: &mut impl FnMut(Option<u64>) -> Compute<u64>,
    ) -> Option<(Computed<u64>, Due)> {
        let brief = access.usual()?;
        let outcome = self.apply_at_home_in(&brief, key, expect, decide);
        if !USER {
            brief.leave_alone();
        }
        outcome
    }

    #[inline(always)]
    fn apply_at_home_in<'s>(
        &self,
        brief: &impl Usual<'s>,
        key: u64,
        expect: Expect,
        decide: &mut impl FnMut(Option<u64>) -> Compute<u64>,
    ) -> Option<(Computed<u64>, Due)> {
        let table = self.lone(brief)?;
        let aim = table.aim(key)?;
        if expect == Expect::Either && aim.is_free() {
            let Compute::Insert(value) = decide(None) else {
                return Some((done(None, None), Due::Nothing));
            };
            let due = aim.take(value).then(|| Self::account_added(brief.books(), table))?;
            return Some((done(None, Some(value)), due));
        }
        let found = aim.find()?;
        let before = Some(found.1);
        match decide(before) {
            Compute::Keep => Some((done(before, before), Due::Nothing)),
            Compute::Insert(value) => {
                aim.replace(found, value).then_some((done(before, Some(value)), Due::Nothing))
            }
            Compute::Remove => {
                let due = aim.remove(found).then(|| Self::account_removed(brief.books(), table))?;
                Some((done(before, None), due))
            }
        }
    }

    /// The case of one table. `None` says that nothing has happened.
    #[inline(never)]
    fn apply_at_once(
        &self,
        access: &impl Access,
        key: u64,
        decide: &mut impl FnMut(Option<u64>) -> Compute<u64>,
    ) -> Option<(Computed<u64>, Due)> {
        let brief = access.usual()?;
        let table = self.lone(&brief)?;
        let mut probe = table.probe(key);
        loop {
            let seen = probe.look();
            let before = match seen.state {
                State::Live => Some(seen.value),
                State::Tomb | State::Empty => None,
                _ => return None,
            };
            let Some(after) = Self::decided(decide(before), before) else {
                return Some((done(before, before), Due::Nothing));
            };
            if seen.state == State::Empty && probe.is_too_far() {
                return None;
            }
            if Self::exchange(&probe, seen, after) {
                let due = Self::account(brief.books(), table, seen.state, after);
                return Some((done(before, after), due));
            }
        }
    }

    /// The value after, or `None` if nothing changes.
    #[inline(always)]
    fn decided(act: Compute<u64>, before: Option<u64>) -> Option<Option<u64>> {
        match act {
            Compute::Keep => None,
            Compute::Insert(value) => Some(Some(value)),
            Compute::Remove => before.map(|_| None),
        }
    }

    #[inline(always)]
    fn exchange(probe: &Probe<'_>, seen: Seen, after: Option<u64>) -> bool {
        match after {
            Some(value) => probe.exchange(seen, State::Live, value),
            None => probe.exchange(seen, State::Tomb, seen.value),
        }
    }

    #[cold]
    #[inline(never)]
    fn apply_slow(
        &self,
        access: &impl Access,
        key: u64,
        decide: &mut impl FnMut(Option<u64>) -> Compute<u64>,
    ) -> Result<(Computed<u64>, Due), AllocError> {
        let section = access.section();
        loop {
            match self.try_apply(&section, key, decide) {
                Ok(outcome) => return Ok(outcome),
                Err(Stop::Restart) => {}
                Err(Stop::Alloc(error)) => return Err(error),
            }
        }
    }

    fn try_apply(
        &self,
        section: &Section<'_>,
        key: u64,
        decide: &mut impl FnMut(Option<u64>) -> Compute<u64>,
    ) -> Result<(Computed<u64>, Due), Stop> {
        let Some(mut table) = self.root.follow(section)? else {
            return self.apply_to_nothing(section, decide);
        };
        self.help(section, table)?;
        'table: loop {
            let mut probe = table.probe(key);
            loop {
                let seen = probe.look();
                let before = match seen.state {
                    State::Live => Some(seen.value),
                    State::Tomb | State::Empty => None,
                    State::LiveFrozen => {
                        let next = Self::successor(section, table)?;
                        next.add_used(usize::from(probe.carry(seen, next)));
                        table = next;
                        continue 'table;
                    }
                    State::EmptyFrozen | State::LiveDone | State::TombFrozen => {
                        table = Self::successor(section, table)?;
                        continue 'table;
                    }
                };
                let Some(after) = Self::decided(decide(before), before) else {
                    return Ok((done(before, before), Due::Nothing));
                };
                if seen.state == State::Empty {
                    let next = table.next().follow(section)?;
                    // G5.
                    let usable = |next: &&Table| next.is_ready() || probe.is_too_far();
                    if let Some(next) = next.filter(usable) {
                        if probe.exchange(seen, State::EmptyFrozen, 0) {
                            table = next;
                            continue 'table;
                        }
                        continue;
                    }
                    if probe.is_too_far() {
                        self.make_room(section, table)?;
                        continue;
                    }
                }
                if Self::exchange(&probe, seen, after) {
                    let due = Self::account(section.books(), table, seen.state, after);
                    return Ok((done(before, after), due));
                }
            }
        }
    }

    /// The first insert makes the first table.
    #[cold]
    fn apply_to_nothing(
        &self,
        section: &Section<'_>,
        decide: &mut impl FnMut(Option<u64>) -> Compute<u64>,
    ) -> Result<(Computed<u64>, Due), Stop> {
        match decide(None) {
            Compute::Insert(_) => {
                self.first_table(section, self.settings.first_bits)?;
                Err(Stop::Restart)
            }
            Compute::Keep | Compute::Remove => Ok((done(None, None), Due::Nothing)),
        }
    }

    /// Keeps the books after an exchange (A1).
    #[inline(always)]
    fn account(books: &Books, table: &Table, from: State, after: Option<u64>) -> Due {
        match (from, after) {
            (State::Live, Some(_)) => Due::Nothing,
            (State::Live, None) => Self::account_removed(books, table),
            (State::Empty, _) => Self::account_added(books, table),
            _ => {
                books.add(1);
                Due::Nothing
            }
        }
    }

    /// An EMPTY slot was used.
    #[inline(always)]
    fn account_added(books: &Books, table: &Table) -> Due {
        books.add(1);
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

/// The value of a key before and after.
#[inline(always)]
const fn done(before: Option<u64>, after: Option<u64>) -> Computed<u64> {
    Computed { before, after }
}

impl Drop for Core {
    fn drop(&mut self) {
        // SAFETY: alone; each table of the chain is behind one link, and what has left it belongs to the domain.
        unsafe { self.root.drop_chain(Table::next_mut) };
    }
}
