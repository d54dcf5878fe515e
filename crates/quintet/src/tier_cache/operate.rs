//! One writing operation, store by store: the order that `models/tier/STEPS.md` of the repository
//! gives and its model checks.

use super::MapError;
use super::map::{Handle, Left, Map};
use super::memory::{MAX_HELD, Record};
use super::plan::{Judge, Plan, Stop, Task, Verdict};
use super::planner::plan;
use super::recover;
use super::step::{
    Point, crash_point, exchange, exchange_cell, replace_cell, store, store_payload,
};
use super::sum;
use super::wait::Wait;
use super::word::{Cell, InputHash, Link, Owner, Phase, Probe, RecordState};
use crate::sync::{Ordering, fence};

/// What the running operation holds, as its own thread knows it.
#[derive(Debug)]
pub(crate) struct Frame {
    phase: Phase,
    /// Words held or wanted, in the order of the intent's list.
    words: [u32; MAX_HELD],
    held: usize,
    wanted: usize,
    /// Places of the intent's list that may be in use, by this operation or those before it.
    listed: usize,
    pub(crate) new: Option<Link>,
    /// What the plan lets leave, claimed.
    claimed: Option<Link>,
    pub(crate) plan: Plan,
}

impl Default for Frame {
    fn default() -> Self {
        Self {
            phase: Phase::Idle,
            words: [0; MAX_HELD],
            held: 0,
            wanted: 0,
            listed: MAX_HELD,
            new: None,
            claimed: None,
            plan: Plan::empty(),
        }
    }
}

/// Attempts that met new obstacles each time, before the caller is told.
const MAX_ATTEMPTS: usize = 64;

impl<'a> Handle<'a> {
    /// Steps 1 to 14: after it the operation has taken effect, its words still held. On an error it
    /// has none.
    pub(crate) fn write(
        &mut self,
        probe: Probe,
        value: Option<u64>,
        task: impl Fn(Link) -> Task,
    ) -> Result<u32, MapError> {
        self.map.memory.expect_bucket(probe.input.bucket());
        self.open()?;
        let done = self.prepare_record(probe.input, value).and_then(|new| {
            let task = task(new);
            self.lock_and_plan(probe, task, &|_| Verdict::Present)
        });
        match done {
            Ok(()) => self.carry_out(),
            Err(error) => {
                self.abandon();
                Err(error)
            }
        }
    }

    /// Steps 1 and 2.
    pub(crate) fn open(&mut self) -> Result<(), MapError> {
        let seat = self.map.memory.seat(self.number)?;
        seat.clear(std::mem::take(&mut self.frame.listed));
        seat.set_phase(Point::Open, Phase::Open);
        let frame = &mut self.frame;
        (frame.phase, frame.held, frame.wanted, frame.new) = (Phase::Open, 0, 0, None);
        Ok(())
    }

    /// Steps 3 to 5.
    fn prepare_record(&mut self, input: InputHash, value: Option<u64>) -> Result<Link, MapError> {
        let Some(value) = value else { return Ok(Link { record: 0, generation: 0 }) };
        let (link, record) = match self.take_record()? {
            Some(taken) => taken,
            None => {
                self.map.recover_dead(Wait::new(self.timeout))?;
                self.take_record()?.ok_or(MapError::Full)?
            }
        };
        self.frame.new = Some(link);
        // ORDERING: Release fence: whoever reads a word of the new payload and then passes its own
        // Acquire fence also sees that the generation has moved on. Partner: the fence in
        // `look_up`.
        fence(Ordering::Release);
        store_payload(record.input(), input.word());
        store_payload(record.value(), value);
        let sum = sum::of(input.word(), value, link.generation);
        store_payload(record.tick(), sum::with_tick(sum, self.tick));
        Ok(link)
    }

    /// Names a free record in the intent, then takes it. The cursor is a hint, the record's word
    /// decides.
    fn take_record(&mut self) -> Result<Option<(Link, Record<'a>)>, MapError> {
        let memory = self.map.memory;
        let seat = memory.seat(self.number)?;
        let records = memory.geometry.records;
        for _ in 0..records {
            let index = self.cursor;
            let record = memory.record(index)?;
            let word = record.state();
            if word.state() == Some(RecordState::Free) {
                let link = Link { record: index, generation: word.generation() };
                seat.set_new(link);
                let taken = word.prepared(self.number).0;
                if exchange(Point::TakeRecord, record.word(), word.0, taken) {
                    self.advance();
                    return Ok(Some((link, record)));
                }
            }
            self.advance();
        }
        Ok(None)
    }

    fn advance(&mut self) {
        self.cursor =
            if self.cursor + 1 >= self.map.memory.geometry.records { 0 } else { self.cursor + 1 };
    }

    /// Steps 6 to 10.
    pub(crate) fn lock_and_plan(
        &mut self,
        probe: Probe,
        task: Task,
        judge: Judge<'_>,
    ) -> Result<(), MapError> {
        let home = probe.input.bucket();
        self.frame.words[0] = home;
        self.frame.wanted = 1;
        let memory = self.map.memory;
        let seat = memory.seat(self.number)?;
        let mut wait = Wait::new(self.timeout);
        let mut attempts = 0;
        while attempts < MAX_ATTEMPTS {
            attempts += 1;
            self.lock_wanted()?;
            let held = &self.frame.words[..self.frame.held];
            let (seen, into) = (&mut self.seen, &mut self.frame.plan);
            match plan(&memory, held, probe, task, judge, self.tick, seen, into) {
                Err(Stop::Nothing(error)) => return Err(error),
                Err(Stop::Need(word)) => self.want(word),
                Err(Stop::Crowded(word)) => {
                    self.release_all(Point::Relock);
                    self.frame.words[0] = home.min(word);
                    self.frame.words[1] = home.max(word);
                    self.frame.wanted = 2;
                }
                // Somebody is delivering it: its departure is theirs. Then it is gone, or may leave
                // here.
                Ok(()) if !self.claim_leaver() => {
                    self.release_all(Point::Relock);
                    wait.pause()?;
                    attempts = 0;
                }
                Ok(()) => {
                    seat.set_body(&self.frame.plan, self.map.upper.is_some(), memory.tiers());
                    let Some((entry, cell)) = self.frame.plan.hole else {
                        self.set_phase(Point::Planned, Phase::Sealed);
                        return Ok(());
                    };
                    self.set_phase(Point::Planned, Phase::Planned);
                    let place = memory.cell_word(entry as u64)?;
                    if exchange_cell(Point::Hole, place, Cell::EMPTY, cell) {
                        self.set_phase(Point::Sealed, Phase::Sealed);
                        return Ok(());
                    }
                    self.set_phase(Point::Reopen, Phase::Open);
                }
            }
        }
        Err(MapError::Busy)
    }

    /// Claims what the plan lets leave, so that nobody else delivers it. False if somebody does.
    fn claim_leaver(&mut self) -> bool {
        let (Some(upper), out) = (self.map.upper, self.frame.plan.out) else { return true };
        if out == self.frame.claimed {
            return true;
        }
        self.unclaim();
        let claimed = out.is_none_or(|link| upper.claim(self.number, link));
        self.frame.claimed = out.filter(|_| claimed);
        claimed
    }

    fn unclaim(&mut self) {
        if let (Some(upper), Some(link)) = (self.map.upper, self.frame.claimed.take()) {
            upper.unclaim(self.number, link);
        }
    }

    fn set_phase(&mut self, point: Point, phase: Phase) {
        if let Ok(seat) = self.map.memory.seat(self.number) {
            seat.set_phase(point, phase);
        }
        self.frame.phase = phase;
    }

    fn want(&mut self, word: u32) {
        // The planner asks only while there is room.
        self.frame.words[self.frame.held] = word;
        self.frame.wanted = self.frame.held + 1;
    }

    /// Steps 6 and 7 until every wanted word is held. Waits in ascending order only.
    fn lock_wanted(&mut self) -> Result<(), MapError> {
        let mut wait = Wait::new(self.timeout);
        let seat = self.map.memory.seat(self.number)?;
        while self.frame.held < self.frame.wanted {
            let place = self.frame.held;
            let word = self.frame.words[place];
            let control = self.map.memory.control_word(word)?;
            seat.list(place, word);
            self.frame.listed = self.frame.listed.max(place + 1);
            let mut below = self.frame.words[..place].iter();
            let out_of_order = below.any(|held| *held > word);
            loop {
                let seen = self.map.memory.control(word);
                match seen.owner() {
                    None => {
                        let locked = seen.locked_by(self.number);
                        if exchange(Point::Lock, control, seen.0, locked.0) {
                            self.frame.held += 1;
                            break;
                        }
                    }
                    Some(_) if out_of_order => {
                        self.release_all(Point::Relock);
                        let wanted = self.frame.wanted;
                        self.frame.words[..wanted].sort_unstable();
                        break;
                    }
                    Some(owner) => self.map.wait_for(owner, &mut wait)?,
                }
            }
        }
        Ok(())
    }

    /// Unlocks every held word, one version on.
    fn release_all(&mut self, point: Point) {
        while self.frame.held > 0 {
            self.frame.held -= 1;
            let word = self.frame.words[self.frame.held];
            if let Ok(control) = self.map.memory.control_word(word) {
                let seen = self.map.memory.control(word);
                if seen.owner() == Some(self.number) {
                    store(point, control, seen.released().0);
                }
            }
        }
    }

    /// Steps 12 to 14. A cell that is not as planned although its word is held was written by no
    /// operation.
    pub(crate) fn carry_out(&mut self) -> Result<u32, MapError> {
        let memory = self.map.memory;
        let mut intact = true;
        for write in self.frame.plan.writes() {
            let place = memory.cell_word(write.entry as u64)?;
            intact &= replace_cell(Point::CellStore, place, write.old, write.new);
        }
        if let (true, Some(link)) = (self.frame.plan.link, self.frame.new) {
            let record = memory.record(link.record)?;
            let live = record.state().live();
            store(Point::Live, record.word(), live.0);
        }
        if let Some(link) = self.frame.plan.kill {
            match self.map.upper.filter(|_| self.keeps) {
                Some(upper) => {
                    upper.free(Point::Kill, link, true)?;
                    self.kept.push(link.record);
                }
                None => self.map.kill(Point::Kill, link)?,
            }
            // A hint: the next record is taken here instead of after a search.
            self.cursor = link.record.min(memory.geometry.records - 1);
        }
        if intact {
            return Ok(self.frame.plan.slice);
        }
        self.complete();
        Err(MapError::Corrupt("cell changed under its word"))
    }

    /// Steps 15 to 19.
    pub(crate) fn complete(&mut self) {
        if self.frame.phase != Phase::Sealed {
            return;
        }
        if self.map.upper.is_some() {
            if let Ok(seat) = self.map.memory.seat(self.number) {
                seat.count_plan(Point::Count, self.map.memory.tiers());
            }
        }
        self.set_phase(Point::Done, Phase::Done);
        self.release_all(Point::Release);
        let out = self.frame.plan.out;
        let map = self.map;
        // Runs on return and if the sink unwinds: the departed record is freed once, the seat is
        // usable again.
        struct Finish<'f, 'a>(&'f mut Handle<'a>, Option<Link>);
        impl Drop for Finish<'_, '_> {
            fn drop(&mut self) {
                if let Some(link) = self.1 {
                    let _ = self.0.map.kill(Point::KillOut, link);
                }
                self.0.unclaim();
                self.0.set_phase(Point::Idle, Phase::Idle);
            }
        }
        let _finish = Finish(self, out);
        if let Some(link) = out {
            map.deliver(link);
        }
    }

    /// Leaves without effect: the new record is freed, the words released.
    pub(crate) fn abandon(&mut self) {
        if let Some(link) = self.frame.new {
            if let Ok(record) = self.map.memory.record(link.record) {
                if record.state().state() == Some(RecordState::Prepared(self.number)) {
                    let _ = self.map.kill(Point::Undo, link);
                }
            }
        }
        self.unclaim();
        self.release_all(Point::Release);
        self.set_phase(Point::Idle, Phase::Idle);
    }

    /// Ends what a forgotten [`Committed`](super::map::Committed) left open.
    pub(crate) fn settle(&mut self) -> Result<(), MapError> {
        self.complete();
        Ok(())
    }
}

impl Map<'_> {
    /// A pause behind the owner of a word; whoever finds it dead recovers it first.
    pub(crate) fn wait_for(&self, owner: u32, wait: &mut Wait) -> Result<(), MapError> {
        #[cfg(test)]
        if super::step::is_stopped() {
            return Err(MapError::Busy);
        }
        if wait.is_long() {
            let name = self.memory.seat(owner)?.owner();
            if name != Owner::NOBODY && self.peers.is_dead(name) {
                return recover::seat(self, owner, name, wait);
            }
        }
        wait.pause()
    }

    /// Frees a live record that nothing links to any more.
    pub(crate) fn kill(&self, point: Point, link: Link) -> Result<(), MapError> {
        if let Some(upper) = self.upper {
            return upper.free(point, link, false);
        }
        let record = self.memory.record(link.record)?;
        let word = record.state();
        if word.generation() == link.generation && word.state() != Some(RecordState::Free) {
            store(point, record.word(), word.freed().0);
        }
        Ok(())
    }

    /// Hands a record that left to the sink. What lies above lets only go what nobody wants
    /// delivered.
    pub(crate) fn deliver(&self, link: Link) {
        if self.upper.is_some() {
            return;
        }
        let Ok(record) = self.memory.record(link.record) else { return };
        // ORDERING: Relaxed: the record is reachable from our plan only.
        let (input, value) =
            (record.input().load(Ordering::Relaxed), record.value().load(Ordering::Relaxed));
        if crash_point!(Point::Delivered) {
            return;
        }
        if let Ok(input) = InputHash::from_word(input) {
            (self.sink)(Left { input, generation: link.generation, value });
        }
    }
}
