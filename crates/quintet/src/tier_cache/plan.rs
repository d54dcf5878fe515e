//! The planner: reads cells, stores nothing, and yields the ordered cell stores of one operation.
//!
//! **P1.** It relies on a cell only if the control word that guards it is held: a base and its members are guarded by the
//! word of the base's bucket. All else is a hint: an empty cell is proved by the exchange that fills it,
//! a foreign member makes the planner ask for the word of its base ([`Stop::Need`]) and start anew.
//! **P2.** At most one hole, and it is the first store of the plan.
//! **P3.** Within one plan a cell never returns to an earlier content: a redo compares with `old`.
//! **P4.** Each element is present in a findable cell after every prefix of the stores (far end first).
//! **P5.** At most one element leaves, at most [`MAX_HELD`] words are held.
//!
//! A cell is read once per plan; what the plan stores is seen by its later reads.

use super::MapError;
use super::memory::{MAX_HELD, Memory};
use super::word::{Cbits, Cell, InputHash, Link, Probe};
use crate::sync::Ordering;

/// Cell stores of the longest plan: five bases yield (two stores each), then two at home.
pub(crate) const MAX_WRITES: usize = 12;
/// How many yielding bases may pass the problem on.
pub(crate) const MAX_HOPS: usize = 4;

/// One cell store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Write {
    pub(crate) entry: usize,
    pub(crate) old: Cell,
    pub(crate) new: Cell,
}

/// The stores of one operation, in order.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Filled first, by an exchange with "empty".
    pub(crate) hole: Option<(usize, Cell)>,
    writes: [Write; MAX_WRITES],
    count: usize,
    /// The new record becomes live.
    pub(crate) link: bool,
    /// This record dies with the plan.
    pub(crate) kill: Option<Link>,
    /// This record goes to the sink.
    pub(crate) out: Option<Link>,
    /// The slice the key lies in afterwards.
    pub(crate) slice: u32,
    /// The record that carried the key before.
    pub(crate) found: Option<(Link, Verdict)>,
}

impl Plan {
    pub(crate) const fn empty() -> Self {
        let none = Write { entry: 0, old: Cell::EMPTY, new: Cell::EMPTY };
        Self {
            hole: None,
            writes: [none; MAX_WRITES],
            count: 0,
            link: false,
            kill: None,
            out: None,
            slice: 0,
            found: None,
        }
    }

    /// By how much the number of entries changes.
    pub(crate) fn change(&self) -> i64 {
        self.link as i64 - self.kill.is_some() as i64 - self.out.is_some() as i64
    }

    pub(crate) fn writes(&self) -> &[Write] {
        &self.writes[..self.count]
    }

    pub(crate) fn push(&mut self, write: Write) -> bool {
        let room = self.count < MAX_WRITES;
        if room {
            self.writes[self.count] = write;
            self.count += 1;
        }
        room
    }

    /// Forgets everything; the writes behind `count` are nobody's.
    fn reset(&mut self) {
        self.hole = None;
        self.count = 0;
        self.link = false;
        self.kill = None;
        self.out = None;
        self.found = None;
    }

    fn is_fresh(&self) -> bool {
        self.hole.is_none() && self.count == 0
    }
}

/// What is asked of the planner.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    /// Link the record in the less loaded slice, or in `tie`'s.
    Add { new: Link, tie: u32 },
    /// Link the record instead of the present one.
    Update { new: Link },
    /// Unlink the key.
    Remove,
    /// Link the record, whether the key is present or not, as far as that is wanted. `spare`: nothing may leave for it; who would have
    /// to is told with the error.
    Place { new: Link, tie: u32, want: Want, spare: bool },
    /// Unlink the key if its record is as wanted.
    Take { want: Want },
    /// Only hold the bucket of a key that is present.
    Hold,
}

/// Which state of the key an operation asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Want {
    Any,
    Absent,
    Present,
    Exactly(Link),
}

/// What a record with the right hash turns out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Another key's.
    Other,
    /// The key's.
    Present,
    /// The key's, and outlived: as good as absent.
    Outlived,
}

/// Tells whether a record with the right hash is the key's. Asked under the control word of its bucket.
pub(crate) type Judge<'j> = &'j dyn Fn(Link) -> Verdict;

/// Why there is no plan (yet).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// One more control word is needed.
    Need(u32),
    /// A word is needed, but the list is full of words of earlier attempts.
    Crowded(u32),
    /// Nothing to store.
    Nothing(MapError),
}

impl From<MapError> for Stop {
    fn from(error: MapError) -> Self {
        Self::Nothing(error)
    }
}

type Step<T> = Result<T, Stop>;

/// What an earlier read of this plan saw, or a store of this plan left, as words: they stay in registers.
pub(crate) type Seen = Vec<(usize, (u64, u64))>;

/// Not being delivered already, and ticks since the last use: the greatest leaves first.
type Rank = (bool, u32);

struct Planner<'p> {
    memory: Memory<'p>,
    held: &'p [u32],
    now: u32,
    plan: &'p mut Plan,
    seen: &'p mut Seen,
    spare: bool,
    /// Cells whose element is on the move already: no victims.
    moving: [usize; MAX_HOPS + 1],
    moves: usize,
}

/// Plans `task` for the key of `probe` with the words `held`, into `plan`.
#[allow(clippy::too_many_arguments)] // what the planner reads, what it is asked, where the answer goes
pub(crate) fn plan(
    memory: Memory<'_>,
    held: &[u32],
    probe: Probe,
    task: Task,
    judge: Judge<'_>,
    now: u32,
    seen: &mut Seen,
    plan: &mut Plan,
) -> Step<()> {
    seen.clear();
    plan.reset();
    let (moving, moves) = ([0; MAX_HOPS + 1], 0);
    let spare = matches!(task, Task::Place { spare: true, .. });
    let mut planner = Planner { memory, held, now, plan, seen, spare, moving, moves };
    let home = probe.input.bucket() as usize;
    let found = planner.find(probe, judge);
    let present = found.filter(|place| place.verdict == Verdict::Present);
    if let Some(place) = found {
        planner.plan.found = Some((place.link, place.verdict));
    }
    let (absent, exists) = (Stop::Nothing(MapError::NotFound), Stop::Nothing(MapError::Exists));
    let is = |want: Link| found.is_some_and(|place| place.link == want);
    match (task, found) {
        (Task::Add { .. }, Some(_)) => Err(exists),
        (Task::Add { new, tie }, None) => planner.add(probe, new, tie),
        (Task::Update { new }, Some(place)) => planner.replace(home, place, new),
        (Task::Remove | Task::Take { want: Want::Any }, Some(place)) => planner.take(home, place),
        (Task::Take { want: Want::Exactly(link) }, Some(place)) if is(link) => {
            planner.take(home, place)
        }
        (Task::Hold, Some(_)) if present.is_some() => Ok(()),
        (Task::Place { want, .. }, _) => match want {
            Want::Absent if present.is_some() => Err(exists),
            Want::Present if present.is_none() => Err(absent),
            Want::Exactly(_) if present.is_none() => Err(absent),
            Want::Exactly(link) if !is(link) => Err(exists),
            _ => planner.place(probe, found, task),
        },
        _ => Err(absent),
    }
}

/// Where a key lies.
#[derive(Clone, Copy)]
struct Found {
    slice: u32,
    offset: usize,
    link: Link,
    verdict: Verdict,
}

impl Planner<'_> {
    fn place(&mut self, probe: Probe, found: Option<Found>, task: Task) -> Step<()> {
        let Task::Place { new, tie, .. } = task else { return Ok(()) };
        match found {
            Some(place) => self.replace(probe.input.bucket() as usize, place, new),
            None => self.add(probe, new, tie),
        }
    }

    fn add(&mut self, probe: Probe, new: Link, tie: u32) -> Step<()> {
        let home = probe.input.bucket() as usize;
        let slice = self.lighter_slice(home, tie);
        self.plan.link = true;
        self.insert(slice, home, probe.input, new)?;
        self.plan.slice = slice;
        Ok(())
    }

    fn replace(&mut self, home: usize, place: Found, new: Link) -> Step<()> {
        let entry = self.memory.at(place.slice, home + place.offset);
        let cell = self.cell(entry);
        self.memory.expect_record(cell.link);
        self.plan.link = true;
        self.plan.kill = Some(cell.link);
        self.plan.slice = place.slice;
        self.store(entry, Cell { link: new, ..cell })
    }

    fn take(&mut self, home: usize, place: Found) -> Step<()> {
        self.memory.expect_record(place.link);
        self.plan.kill = Some(place.link);
        self.plan.slice = place.slice;
        self.unlink(place.slice, home, place.offset)
    }

    /// The content of a cell, the same for the whole plan unless the plan stores to it.
    #[inline]
    fn cell(&mut self, entry: usize) -> Cell {
        if let Some((_, words)) = self.seen.iter().find(|(known, _)| *known == entry) {
            return Cell::from_words(*words);
        }
        let words = self.memory.cell(entry).words();
        self.seen.push((entry, words));
        Cell::from_words(words)
    }

    fn note(&mut self, entry: usize, cell: Cell) {
        match self.seen.iter_mut().find(|(known, _)| *known == entry) {
            Some(place) => place.1 = cell.words(),
            None => self.seen.push((entry, cell.words())),
        }
    }

    /// Adds a store (P3).
    fn store(&mut self, entry: usize, new: Cell) -> Step<()> {
        let old = self.cell(entry);
        let repeats =
            self.plan.writes().iter().any(|write| write.entry == entry && write.old == new);
        if repeats || !self.plan.push(Write { entry, old, new }) {
            return Err(Stop::Nothing(MapError::Corrupt("a plan that does not end")));
        }
        self.note(entry, new);
        Ok(())
    }

    /// Makes the hole the first store (P2).
    fn fill(&mut self, entry: usize, cell: Cell) {
        debug_assert!(self.plan.is_fresh());
        self.plan.hole = Some((entry, cell));
        self.note(entry, cell);
    }

    fn can_guard(&self, bucket: usize) -> bool {
        self.held.contains(&(bucket as u32)) || self.held.len() < MAX_HELD
    }

    fn guard(&self, bucket: usize) -> Step<()> {
        match (self.held.contains(&(bucket as u32)), self.held.len() < MAX_HELD) {
            (true, _) => Ok(()),
            (false, true) => Err(Stop::Need(bucket as u32)),
            (false, false) => Err(Stop::Crowded(bucket as u32)),
        }
    }

    /// Where the key lies: several with equal hashes may, and the judge tells them apart.
    fn find(&mut self, probe: Probe, judge: Judge<'_>) -> Option<Found> {
        let home = probe.input.bucket() as usize;
        let key = probe.input.hash();
        for slice in probe.first..=probe.last {
            let base = self.cell(self.memory.at(slice, home));
            if !base.cbits.is_base() {
                continue;
            }
            let mut members = base.cbits.members() & ((1 << self.memory.geometry.window) - 1) | 1;
            while members != 0 {
                let offset = members.trailing_zeros() as usize;
                members &= members - 1;
                let cell = self.cell(self.memory.at(slice, home + offset));
                if cell.key != key || offset != 0 && cell.cbits != Cbits::member(offset) {
                    continue;
                }
                let (link, verdict) = (cell.link, judge(cell.link));
                if verdict != Verdict::Other {
                    return Some(Found { slice, offset, link, verdict });
                }
            }
        }
        None
    }

    /// The slice whose bucket has fewer elements. A member of somebody else counts as one.
    fn lighter_slice(&mut self, home: usize, tie: u32) -> u32 {
        let mut load = |slice: u32| {
            let cell = self.cell(self.memory.at(slice, home));
            if cell.cbits.is_base() {
                cell.cbits.bits().count_ones()
            } else {
                !cell.is_empty() as u32
            }
        };
        let (zero, one) = (load(0), load(1));
        match zero.cmp(&one) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Greater => 1,
            std::cmp::Ordering::Equal => tie & 1,
        }
    }

    /// An empty cell in the window of `base`, while the plan may still have one (P2).
    fn free_cell(&mut self, slice: u32, base: usize) -> Option<usize> {
        if !self.plan.is_fresh() {
            return None;
        }
        (base + 1..base + self.memory.geometry.window as usize)
            .find(|position| self.cell(self.memory.at(slice, *position)).is_empty())
    }

    /// Ticks since the record was written.
    fn age(&self, link: Link) -> u32 {
        let Ok(record) = self.memory.record(link.record) else { return 0 };
        // ORDERING: Relaxed: ages decide who leaves, nothing depends on their truth.
        self.now.wrapping_sub(record.tick().load(Ordering::Relaxed) as u32)
    }

    fn rank(&self, link: Link) -> Rank {
        let record = self.memory.record(link.record);
        let claimed = record.is_ok_and(|record| record.state().claimant().is_some());
        (!claimed, self.age(link))
    }

    /// Position and base of the member in the window of `base` that leaves first, if it leaves before `than`; of equals
    /// an own member first, then the nearest. Foreign ones only while `foreign` is set and their word can be had.
    fn oldest(
        &mut self,
        slice: u32,
        base: usize,
        than: Rank,
        foreign: bool,
    ) -> Option<(usize, usize)> {
        let mut best: Option<((Rank, bool), usize, usize)> = None;
        for offset in 1..self.memory.geometry.window as usize {
            let entry = self.memory.at(slice, base + offset);
            let cell = self.cell(entry);
            let Some(back) = cell.cbits.back().filter(|back| *back <= base + offset) else {
                continue;
            };
            let of = base + offset - back;
            let allowed = of == base || foreign && self.can_guard(of);
            if !allowed || self.moving[..self.moves].contains(&entry) {
                continue;
            }
            let rank = (self.rank(cell.link), of == base);
            if rank.0 > than && best.is_none_or(|(known, ..)| rank > known) {
                best = Some((rank, base + offset, of));
            }
        }
        best.map(|(_, position, of)| (position, of))
    }

    fn leave(&mut self, link: Link) -> Step<()> {
        if self.plan.out.replace(link).is_some() {
            return Err(Stop::Nothing(MapError::Corrupt("two elements leave")));
        }
        if self.spare { Err(Stop::Nothing(MapError::Full)) } else { Ok(()) }
    }

    /// Lets the element at `position`, a member of somebody else, move within its own window. Afterwards the cell
    /// still holds the old copy, unlisted, and may be overwritten.
    fn vacate(&mut self, slice: u32, position: usize, hops: usize) -> Step<()> {
        let entry = self.memory.at(slice, position);
        let element = self.cell(entry);
        let back = element.cbits.back().filter(|back| *back <= position);
        let back = back.ok_or(Stop::Nothing(MapError::Corrupt("member bits")))?;
        let base = position - back;
        self.guard(base)?;
        let base_entry = self.memory.at(slice, base);
        let base_cell = self.cell(base_entry);
        if !base_cell.cbits.is_base() || !base_cell.cbits.has(back) {
            return Err(Stop::Nothing(MapError::Corrupt("member without base")));
        }
        let listed = base_cell.cbits.without(back);
        if let Some(free) = self.free_cell(slice, base) {
            self.fill(self.memory.at(slice, free), element.with_bits(Cbits::member(free - base)));
            return self.store(base_entry, base_cell.with_bits(listed.with(free - base)));
        }
        if self.moves == self.moving.len() {
            return Err(Stop::Nothing(MapError::Corrupt("a cascade that does not end")));
        }
        self.moving[self.moves] = entry;
        self.moves += 1;
        let Some((next, of)) = self.oldest(slice, base, self.rank(element.link), hops > 0) else {
            self.leave(element.link)?;
            return self.store(base_entry, base_cell.with_bits(listed));
        };
        let next_entry = self.memory.at(slice, next);
        if of == base {
            let oldest = self.cell(next_entry).link;
            self.leave(oldest)?;
        } else {
            self.vacate(slice, next, hops - 1)?;
        }
        self.store(next_entry, element.with_bits(Cbits::member(next - base)))?;
        // The base's bits as they are now: a hop further on may have changed them.
        let bits = self.cell(base_entry).cbits.without(back).with(next - base);
        let base_cell = self.cell(base_entry);
        self.store(base_entry, base_cell.with_bits(bits))
    }

    /// The new element takes the home cell; whoever was there moves on.
    fn insert(&mut self, slice: u32, home: usize, input: InputHash, new: Link) -> Step<()> {
        let entry = self.memory.at(slice, home);
        let first = self.cell(entry);
        let base = |cbits| Cell { key: input.hash(), cbits, link: new };
        if first.is_empty() {
            self.fill(entry, base(Cbits::ALONE));
            return Ok(());
        }
        if !first.cbits.is_base() {
            self.vacate(slice, home, MAX_HOPS)?;
            return self.store(entry, base(Cbits::ALONE));
        }
        if let Some(free) = self.free_cell(slice, home) {
            self.fill(self.memory.at(slice, free), first.with_bits(Cbits::member(free - home)));
            return self.store(entry, base(first.cbits.with(free - home)));
        }
        let Some((next, of)) = self.oldest(slice, home, self.rank(first.link), true) else {
            self.leave(first.link)?;
            return self.store(entry, base(first.cbits));
        };
        let next_entry = self.memory.at(slice, next);
        if of == home {
            let oldest = self.cell(next_entry).link;
            self.leave(oldest)?;
        } else {
            self.vacate(slice, next, MAX_HOPS)?;
        }
        self.store(next_entry, first.with_bits(Cbits::member(next - home)))?;
        let bits = self.cell(entry).cbits.with(next - home);
        self.store(entry, base(bits))
    }

    /// Unlinks the element at `offset`; the farthest member takes its cell, so that the bucket stays short.
    fn unlink(&mut self, slice: u32, home: usize, offset: usize) -> Step<()> {
        let base_entry = self.memory.at(slice, home);
        let base = self.cell(base_entry);
        let far = base.cbits.farthest();
        let far_entry = self.memory.at(slice, home + far);
        let last = self.cell(far_entry);
        let left = base.cbits.without(far);
        if far == 0 {
            return self.store(base_entry, Cell::EMPTY);
        }
        if last.cbits != Cbits::member(far) {
            return Err(Stop::Nothing(MapError::Corrupt("base bit without member")));
        }
        if offset == 0 {
            self.store(base_entry, last.with_bits(left))?;
        } else {
            if offset != far {
                let entry = self.memory.at(slice, home + offset);
                self.store(entry, last.with_bits(Cbits::member(offset)))?;
            }
            let base = self.cell(base_entry);
            self.store(base_entry, base.with_bits(left))?;
        }
        self.store(far_entry, Cell::EMPTY)
    }
}
