//! The planner: reads cells, stores nothing, and yields the ordered cell stores of one operation.
//!
//! **P1.** It relies on a cell only if the control word that guards it is held: a base and its
//! members are guarded by the word of the base's bucket. All else is a hint: an empty cell is
//! proved by the exchange that fills it, a foreign member makes the planner ask for the word of its
//! base ([`Stop::Need`]) and start anew.
//! **P2.** At most one hole, and it is the first store of the plan.
//! **P3.** Within one plan a cell never returns to an earlier content: a redo compares with `old`.
//! **P4.** Each element is present in a findable cell after every prefix of the stores (far end
//! first).
//! **P5.** At most one element leaves, at most [`MAX_HELD`] words are held.
//! **P6.** A home, a base, a window are positions of one tier; the word that guards them is their
//! bucket's, the same in every tier.
//! **P7.** What leaves the window of a tier is linked in the tier below before it is unlinked
//! above, and leaves the map only from the last tier, or where the words or stores of one plan do
//! not suffice. Below the first tier nobody else's members yield, but for the one that sits in the
//! home cell.
//! **P8.** The older copy of a key that is set or promoted is never a victim of the moves that its
//! own plan causes.
//!
//! A cell is read once per plan; what the plan stores is seen by its later reads.

use super::MapError;
use super::memory::{MAX_HELD, MAX_TIERS, Memory};
use super::plan::{
    Judge, MAX_SHIFTS, MAX_WRITES, Plan, Shift, Stop, Task, Verdict, Want, Way, Write,
};
use super::word::{Cbits, Cell, Link, Probe};
use crate::sync::Ordering;

/// Stores that link an element in the tier below: two at home, two of the base whose member is
/// usurped there.
const WRITES_BELOW: usize = 4;
/// Stores that unlink an element.
const WRITES_UNLINK: usize = 3;
/// How many yielding bases may pass the problem on.
pub(crate) const MAX_HOPS: usize = 4;

type Step<T> = Result<T, Stop>;

/// What an earlier read of this plan saw, or a store of this plan left, as words: they stay in
/// registers.
pub(crate) type Seen = Vec<(usize, (u64, u64))>;

/// Not being delivered already, and ticks since the last use: the greatest leaves first.
type Rank = (bool, u32);

/// `SINGLE`: there is one tier, and nothing is computed for others.
struct Planner<'p, const SINGLE: bool> {
    memory: &'p Memory<'p>,
    held: &'p [u32],
    now: u32,
    plan: &'p mut Plan,
    seen: &'p mut Seen,
    spare: bool,
    tie: u32,
    /// Cells whose element is on the move already: no victims.
    moving: [usize; MAX_MOVES],
    moves: usize,
    /// The older copy of the key that is linked anew (P8).
    old: Option<Link>,
    /// Stores that follow those of the step under way.
    owed: usize,
}

const MAX_MOVES: usize = MAX_HOPS + 1 + MAX_TIERS;

/// Plans `task` for the key of `probe` with the words `held`, into `plan`.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // what the planner reads, what it is asked, where the answer goes
pub(crate) fn plan(
    memory: &Memory<'_>,
    held: &[u32],
    probe: Probe,
    task: Task,
    judge: Judge<'_>,
    now: u32,
    seen: &mut Seen,
    plan: &mut Plan,
) -> Step<()> {
    match memory.tiers() {
        1 => plan_in::<true>(memory, held, probe, task, judge, now, seen, plan),
        _ => plan_in::<false>(memory, held, probe, task, judge, now, seen, plan),
    }
}

#[allow(clippy::too_many_arguments)] // as above
fn plan_in<const SINGLE: bool>(
    memory: &Memory<'_>,
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
    let (moving, moves, owed) = ([0; MAX_MOVES], 0, WRITES_UNLINK);
    let spare = matches!(task, Task::Place { spare: true, .. } | Task::Move { spare: true, .. });
    let tie = match task {
        Task::Add { tie, .. } | Task::Place { tie, .. } | Task::Move { tie, .. } => tie,
        _ => 0,
    };
    let old = None;
    let mut planner =
        Planner::<SINGLE> { memory, held, now, plan, seen, spare, tie, moving, moves, old, owed };
    let found = planner.find(probe, judge);
    let present = found.filter(|place| place.verdict == Verdict::Present);
    if let Some(place) = found {
        planner.plan.found = Some((place.link, place.verdict));
        planner.plan.tier = planner.tier_of(place.home);
    }
    let (absent, exists) = (Stop::Nothing(MapError::NotFound), Stop::Nothing(MapError::Exists));
    let is = |want: Link| found.is_some_and(|place| place.link == want);
    match (task, found) {
        (Task::Add { .. }, Some(_)) => Err(exists),
        (Task::Add { new, .. }, None) => planner.add(probe, new),
        (Task::Update { new }, Some(place)) => planner.replace(place, new),
        (Task::Remove | Task::Take { want: Want::Any }, Some(place)) => planner.take(place),
        (Task::Take { want: Want::Exactly(link) }, Some(place)) if is(link) => planner.take(place),
        (Task::Move { from: Some(tier), .. }, Some(place))
            if planner.tier_of(place.home) != tier =>
        {
            Err(absent)
        }
        (Task::Move { way, .. }, Some(place)) => planner.shift(probe, place, way),
        (Task::Hold, Some(_)) if present.is_some() => Ok(()),
        (Task::Place { want, .. }, _) => match want {
            Want::Absent if present.is_some() => Err(exists),
            Want::Present if present.is_none() => Err(absent),
            Want::Exactly(_) if present.is_none() => Err(absent),
            Want::Exactly(link) if !is(link) => Err(exists),
            Want::Since(last)
                if found.is_some() || memory.last_version(probe.input.bucket()) != last =>
            {
                Err(absent)
            }
            _ => planner.place(probe, found, task),
        },
        _ => Err(absent),
    }
}

/// Where a key lies.
#[derive(Clone, Copy)]
struct Found {
    /// Of its bucket, in its tier.
    home: usize,
    slice: u32,
    offset: usize,
    link: Link,
    verdict: Verdict,
}

impl<const SINGLE: bool> Planner<'_, SINGLE> {
    #[inline(always)]
    fn tiers(&self) -> usize {
        if SINGLE { 1 } else { self.memory.tiers() }
    }

    #[inline(always)]
    fn tier_of(&self, position: usize) -> usize {
        if SINGLE { 0 } else { self.memory.tier_of(position) }
    }

    #[inline(always)]
    fn bucket_of(&self, position: usize) -> u32 {
        (if SINGLE { position } else { self.memory.bucket_of(position) }) as u32
    }

    #[inline(always)]
    fn home(&self, tier: usize, bucket: u32) -> usize {
        if SINGLE { bucket as usize } else { self.memory.home(tier, bucket) }
    }

    #[inline(always)]
    fn place(&mut self, probe: Probe, found: Option<Found>, task: Task) -> Step<()> {
        let Task::Place { new, .. } = task else { return Ok(()) };
        match found {
            Some(place) if self.tier_of(place.home) > 0 => self.renew(probe, place, new),
            Some(place) => self.replace(place, new),
            None => self.add(probe, new),
        }
    }

    fn add(&mut self, probe: Probe, new: Link) -> Step<()> {
        let home = probe.input.bucket() as usize;
        let slice = self.lighter_slice(home, self.tie);
        self.plan.link = true;
        self.note_shift(new, None, Some(0));
        self.insert(slice, home, probe.input.hash(), new, MAX_HOPS)?;
        self.plan.slice = slice;
        Ok(())
    }

    /// Sets a key that lies in an older tier: linked anew in the first, then unlinked there.
    fn renew(&mut self, probe: Probe, place: Found, new: Link) -> Step<()> {
        self.memory.expect_record(place.link);
        self.old = Some(place.link);
        self.add(probe, new)?;
        let place = self.locate(place)?;
        self.plan.kill = Some(place.link);
        self.note_shift(place.link, Some(self.tier_of(place.home)), None);
        self.unlink(place.slice, place.home, place.offset)
    }

    /// Moves a key with its record: linked there, then unlinked here.
    fn shift(&mut self, probe: Probe, place: Found, way: Way) -> Step<()> {
        let (tier, link) = (self.tier_of(place.home), place.link);
        let (to, hops) = match way {
            Way::Down => (tier + 1, 0),
            Way::Up => (0, MAX_HOPS),
        };
        if to == tier || to >= self.tiers() {
            return Err(Stop::Nothing(MapError::NotFound));
        }
        if way == Way::Up {
            self.old = Some(link);
        }
        let home = self.home(to, probe.input.bucket());
        let slice = self.lighter_slice(home, self.tie);
        self.insert(slice, home, probe.input.hash(), link, hops)?;
        let place = if way == Way::Up { self.locate(place)? } else { place };
        self.note_shift(link, Some(self.tier_of(place.home)), Some(to));
        self.plan.slice = slice;
        self.unlink(place.slice, place.home, place.offset)
    }

    /// Where the older copy is after the moves that the plan has caused.
    fn locate(&mut self, place: Found) -> Step<Found> {
        let bucket = self.bucket_of(place.home);
        for tier in 1..self.tiers() {
            let home = self.home(tier, bucket);
            for slice in 0..2 {
                let mut offsets = self.offsets(slice, home);
                while offsets != 0 {
                    let offset = offsets.trailing_zeros() as usize;
                    offsets &= offsets - 1;
                    let cell = self.cell(self.memory.at(slice, home + offset));
                    let ours = offset == 0 || cell.cbits == Cbits::member(offset);
                    if ours && cell.link == place.link {
                        return Ok(Found { home, slice, offset, ..place });
                    }
                }
            }
        }
        Err(Stop::Nothing(MapError::Corrupt("older copy")))
    }

    /// Bit i: an element of the bucket at offset i, the base included. 0 if there is no base.
    #[inline(always)]
    fn offsets(&mut self, slice: u32, home: usize) -> u64 {
        let base = self.cell(self.memory.at(slice, home));
        match base.cbits.is_base() {
            true => base.cbits.members() & ((1 << self.memory.geometry.window) - 1) | 1,
            false => 0,
        }
    }

    #[inline(always)]
    fn note_shift(&mut self, link: Link, from: Option<usize>, to: Option<usize>) {
        if self.tiers() > 1 && self.plan.shifted < MAX_SHIFTS {
            let tier = |tier: Option<usize>| tier.map(|tier| tier as u8);
            self.plan.shifts[self.plan.shifted] = Shift { link, from: tier(from), to: tier(to) };
            self.plan.shifted += 1;
        }
    }

    fn replace(&mut self, place: Found, new: Link) -> Step<()> {
        let entry = self.memory.at(place.slice, place.home + place.offset);
        let cell = self.cell(entry);
        self.memory.expect_record(cell.link);
        let tier = Some(self.tier_of(place.home));
        self.note_shift(cell.link, tier, None);
        self.note_shift(new, None, tier);
        self.plan.link = true;
        self.plan.kill = Some(cell.link);
        self.plan.slice = place.slice;
        self.store(entry, Cell { link: new, ..cell })
    }

    fn take(&mut self, place: Found) -> Step<()> {
        self.memory.expect_record(place.link);
        self.note_shift(place.link, Some(self.tier_of(place.home)), None);
        self.plan.kill = Some(place.link);
        self.plan.slice = place.slice;
        self.unlink(place.slice, place.home, place.offset)
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

    /// The word of the bucket whose home is at `position` is held, or there is room for it.
    fn can_guard(&self, position: usize) -> bool {
        let bucket = self.bucket_of(position);
        self.held.contains(&bucket) || self.held.len() < MAX_HELD
    }

    fn guard(&self, position: usize) -> Step<()> {
        let bucket = self.bucket_of(position);
        match (self.held.contains(&bucket), self.held.len() < MAX_HELD) {
            (true, _) => Ok(()),
            (false, true) => Err(Stop::Need(bucket)),
            (false, false) => Err(Stop::Crowded(bucket)),
        }
    }

    /// Where the key lies, young tiers first: several with equal hashes may, and the judge tells
    /// them apart. A token names a slice of the first tier only.
    fn find(&mut self, probe: Probe, judge: Judge<'_>) -> Option<Found> {
        let found = self.find_in(0, probe, judge);
        if SINGLE || found.is_some() {
            return found;
        }
        let both = Probe::from(probe.input);
        (1..self.tiers()).find_map(|tier| self.find_older(tier, both, judge))
    }

    #[inline(never)]
    fn find_older(&mut self, tier: usize, probe: Probe, judge: Judge<'_>) -> Option<Found> {
        self.find_in(tier, probe, judge)
    }

    #[inline(always)]
    fn find_in(&mut self, tier: usize, probe: Probe, judge: Judge<'_>) -> Option<Found> {
        let home = self.home(tier, probe.input.bucket());
        let key = probe.input.hash();
        for slice in probe.first..=probe.last {
            let mut members = self.offsets(slice, home);
            while members != 0 {
                let offset = members.trailing_zeros() as usize;
                members &= members - 1;
                let cell = self.cell(self.memory.at(slice, home + offset));
                if cell.key != key || offset != 0 && cell.cbits != Cbits::member(offset) {
                    continue;
                }
                let (link, verdict) = (cell.link, judge(cell.link));
                if verdict != Verdict::Other {
                    return Some(Found { home, slice, offset, link, verdict });
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

    /// Position and base of the member in the window of `base` that leaves first, if it leaves
    /// before `than`; of equals an own member first, then the nearest. Foreign ones only while
    /// `foreign` is set and their word can be had.
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
            let known = self.moving[..self.moves].contains(&entry);
            if !allowed || known || self.old == Some(cell.link) {
                continue;
            }
            let rank = (self.rank(cell.link), of == base);
            if rank.0 > than && best.is_none_or(|(known, ..)| rank > known) {
                best = Some((rank, base + offset, of));
            }
        }
        best.map(|(_, position, of)| (position, of))
    }

    /// An element of the bucket at `home` leaves its window: to the tier below, or the map (P7).
    fn leave(&mut self, home: usize, element: Cell) -> Step<()> {
        let (tier, link) = (self.tier_of(home), element.link);
        if self.old == Some(link) {
            return Err(Stop::Nothing(MapError::Corrupt("the older copy leaves")));
        }
        if tier + 1 < self.tiers() && self.owed + WRITES_BELOW <= MAX_WRITES {
            let below = home + self.memory.geometry.positions();
            let slice = self.lighter_slice(below, self.tie);
            let first = self.cell(self.memory.at(slice, below));
            let usurped = first.cbits.back().map(|back| below - back);
            if usurped.is_none_or(|base| self.can_guard(base)) {
                self.note_shift(link, Some(tier), Some(tier + 1));
                return self.insert(slice, below, element.key, link, 0);
            }
        }
        self.note_shift(link, Some(tier), None);
        if self.plan.out.replace(link).is_some() {
            return Err(Stop::Nothing(MapError::Corrupt("two elements leave")));
        }
        if self.spare { Err(Stop::Nothing(MapError::Full)) } else { Ok(()) }
    }

    /// Lets the element at `position`, a member of somebody else, move within its own window.
    /// Afterwards the cell still holds the old copy, unlisted, and may be overwritten.
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
        self.owed += 2;
        let Some((next, of)) = self.oldest(slice, base, self.rank(element.link), hops > 0) else {
            self.leave(base, element)?;
            return self.store(base_entry, base_cell.with_bits(listed));
        };
        let next_entry = self.memory.at(slice, next);
        if of == base {
            let oldest = self.cell(next_entry);
            self.leave(base, oldest)?;
        } else {
            self.vacate(slice, next, hops - 1)?;
        }
        self.store(next_entry, element.with_bits(Cbits::member(next - base)))?;
        // The base's bits as they are now: a hop further on may have changed them.
        let bits = self.cell(base_entry).cbits.without(back).with(next - base);
        let base_cell = self.cell(base_entry);
        self.store(base_entry, base_cell.with_bits(bits))
    }

    /// The element takes the home cell; whoever was there moves on. With `hops`, members of others
    /// may have to.
    fn insert(&mut self, slice: u32, home: usize, key: u32, new: Link, hops: usize) -> Step<()> {
        let entry = self.memory.at(slice, home);
        let first = self.cell(entry);
        let base = |cbits| Cell { key, cbits, link: new };
        if first.is_empty() {
            self.fill(entry, base(Cbits::ALONE));
            return Ok(());
        }
        if !first.cbits.is_base() {
            if self.is_stuck(slice, home, first) {
                return self.leave(home, base(Cbits::ALONE));
            }
            self.owed += 2;
            self.vacate(slice, home, hops)?;
            return self.store(entry, base(Cbits::ALONE));
        }
        if let Some(free) = self.free_cell(slice, home) {
            self.fill(self.memory.at(slice, free), first.with_bits(Cbits::member(free - home)));
            return self.store(entry, base(first.cbits.with(free - home)));
        }
        self.owed += 2;
        let Some((next, of)) = self.oldest(slice, home, self.rank(first.link), hops > 0) else {
            if self.old == Some(first.link) {
                return self.leave(home, base(Cbits::ALONE));
            }
            self.leave(home, first)?;
            return self.store(entry, base(first.cbits));
        };
        let next_entry = self.memory.at(slice, next);
        if of == home {
            let oldest = self.cell(next_entry);
            self.leave(home, oldest)?;
        } else {
            self.vacate(slice, next, hops)?;
        }
        self.store(next_entry, first.with_bits(Cbits::member(next - home)))?;
        let bits = self.cell(entry).cbits.with(next - home);
        self.store(entry, base(bits))
    }

    /// The home cell is taken by the older copy, which has nowhere to go in its own window: whoever
    /// was to come here goes on (P8).
    fn is_stuck(&mut self, slice: u32, home: usize, first: Cell) -> bool {
        let back = first.cbits.back().filter(|back| *back <= home);
        self.old == Some(first.link)
            && back.is_none_or(|back| self.free_cell(slice, home - back).is_none())
    }

    /// Unlinks the element at `offset`; the farthest member takes its cell, so that the bucket
    /// stays short.
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
