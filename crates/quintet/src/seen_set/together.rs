//! How a set grows under `Growth::Together`: everybody meets.
//!
//! ```text
//!  0 alone       root = T
//!       │  consider_growing, make_room: T.next = S (one wins the race to allocate, the others find S)
//!       ▼
//!  1 moving      every member that comes along takes chunks until none is left (attend)
//!       │  no chunk is left: arrive
//!       ▼
//!  2 waiting     whoever has arrived sleeps until the round is over
//!       │  the last member arrives, or the last one that was missing leaves: it leads; or a visitor comes, and leads at once
//!       ▼
//!  0 alone       the leader has set root = S, retired T, begun the next round, and woken everybody
//! ```
//!
//! **J1.** A member is a handle that is online. A *visitor* is somebody who works on the set
//! without one: it has no place, and nobody waits for it. A member arrives at most once in a round,
//! and does nothing else between arriving and the end of the round. Waiting is a loop over the
//! round's number: a wake-up without a reason goes back to sleep.
//! **J2.** The round ends under the lock, when every chunk is done. It is ended by the one that
//! made as many have arrived as are online, by arriving or by leaving; or by a visitor, who does
//! not wait for members: one of them may be a handle of its own thread. A member takes chunks only
//! before it arrives, and a visitor only under the lock. While a chunk is moved no user code runs
//! and no lock is taken: so whoever has taken one is about to finish it, and the one who leads
//! waits for that and for nothing else. A member that comes too late finds the root moved on.
//! **J3.** A cluster is a run of lines behind one with a gap, up to and with the next that has a
//! gap: FROZEN, once the mover has been there. Nothing runs over from a line with a gap; so the
//! words of a cluster of lines a to b have their homes there, and those whose home is j or later
//! are at most as many as the slots of j to b. S has twice as many lines, and home j becomes 2j or
//! 2j + 1: the words land in the lines 2a to 2b + 1 of S and do not run over from there. (Four
//! times as many lines, or eight, where room was asked for: 4a to 4b + 3, and so on.) Different
//! movers therefore write into different lines of S, with plain stores. Whoever takes a chunk moves
//! the clusters that begin in it. A ring without any gap is one cluster without a beginning: the
//! leader moves it.
//! **J4.** Nobody inserts into S before the round is over: whoever meets a successor attends. So
//! until then T holds everything.

use super::core::{Core, Entry, Outcome, Stop, Worker};
use super::table::{Seen, Table};
use crate::reclaim::{Access, Section};
use crate::sync::{Backoff, Condvar, Mutex, MutexGuard};
use std::io::Write;
use std::time::Duration;

/// The place of a handle that is offline.
pub(crate) const NOWHERE: usize = usize::MAX;
/// The place of a visitor (J1).
pub(crate) const VISITOR: usize = usize::MAX - 1;

/// The rendezvous of a set.
#[derive(Debug)]
pub(crate) struct Meeting {
    state: Mutex<State>,
    over: Condvar,
    /// After how long a wait is reported, and by whom it is delayed.
    report: Option<Duration>,
}

#[derive(Debug, Default)]
struct State {
    /// By place; `None` is free.
    members: Vec<Option<Member>>,
    online: usize,
    arrived: usize,
    round: u64,
}

#[derive(Debug)]
struct Member {
    name: String,
    arrived: bool,
}

impl Meeting {
    pub(crate) fn new(report: Option<Duration>) -> Self {
        Self { state: Mutex::new(State::default()), over: Condvar::new(), report }
    }

    /// A place for a handle of the calling thread.
    pub(crate) fn join(&self) -> usize {
        let name = std::thread::current().name().unwrap_or("without a name").to_owned();
        let mut state = self.state.lock();
        let free = state.members.iter().position(Option::is_none);
        let place = free.unwrap_or_else(|| {
            state.members.push(None);
            state.members.len() - 1
        });
        let name = format!("handle {place} of thread '{name}'");
        state.members[place] = Some(Member { name, arrived: false });
        state.online += 1;
        place
    }

    /// A wake-up without a reason.
    #[cfg(all(test, quintet_loom))]
    pub(crate) fn wake_for_nothing(&self) {
        self.over.notify_all();
    }

    /// Those that a growth under way waits for.
    pub(crate) fn missing(&self) -> Vec<String> {
        missing(&self.state.lock())
    }
}

fn missing(state: &State) -> Vec<String> {
    if state.arrived == 0 {
        return Vec::new();
    }
    let absent = state.members.iter().flatten().filter(|member| !member.arrived);
    absent.map(|member| member.name.clone()).collect()
}

impl Core {
    /// An insert that met a successor, or found no slot.
    pub(super) fn insert_together(
        &self,
        worker: &Worker,
        section: &Section<'_>,
        segment: usize,
        table: &Table,
        tag: u64,
        entry: impl Entry,
    ) -> Result<Outcome, Stop> {
        if let Some(next) = table.next().follow(section)? {
            self.attend(worker, section, segment, table, next);
            return Err(Stop::Restart);
        }
        // Full, or closed: only what is here already can be answered.
        let split = table.split();
        match table.look(&mut table.walk(tag), tag, |word| entry.same(word, tag, split)) {
            Seen::Same(word) => return Ok(Outcome { id: split.id(word), new: false }),
            // The growth that brought us here is over.
            Seen::Empty(_) if table.is_calm() => {}
            Seen::Empty(_) | Seen::Never => self.make_room(section, segment, table)?,
        }
        Err(Stop::Restart)
    }

    /// Comes to the meeting if one is called: for operations that would not notice.
    #[cold]
    pub(super) fn attend_if_called(&self, worker: &Worker, section: &Section<'_>) {
        for (segment, root) in self.roots.make_row().iter().enumerate() {
            let Ok(Some(table)) = root.follow(section) else { continue };
            let Ok(Some(next)) = table.next().follow(section) else { continue };
            self.attend(worker, section, segment, table, next);
        }
    }

    /// Moves chunks until none is left, then waits for the others, or leads (J2).
    pub(super) fn attend(
        &self,
        worker: &Worker,
        section: &Section<'_>,
        segment: usize,
        table: &Table,
        next: &Table,
    ) {
        let Some(meeting) = &self.meeting else { return };
        let is_visitor = worker.place.get() == VISITOR;
        if !is_visitor {
            move_chunks(table, next);
        }
        let mut state = meeting.state.lock();
        if !self.root(segment).leads_to(table) {
            return; // the round was over before we came: no member, or an old look at the root
        }
        if is_visitor {
            return self.lead(meeting, state, section, segment, table, next);
        }
        let Some(Some(member)) = state.members.get_mut(worker.place.get()) else {
            // An offline guard was forgotten: the handle is a member again.
            drop(state);
            worker.place.set(meeting.join());
            return;
        };
        member.arrived = true;
        state.arrived += 1;
        if state.arrived == state.online {
            self.lead(meeting, state, section, segment, table, next);
        } else {
            wait(meeting, state);
        }
    }

    /// Ends the round (J2).
    fn lead(
        &self,
        meeting: &Meeting,
        mut state: MutexGuard<'_, State>,
        section: &Section<'_>,
        segment: usize,
        table: &Table,
        next: &Table,
    ) {
        move_chunks(table, next);
        let mut backoff = Backoff::new();
        while !table.work.is_finished() {
            backoff.snooze();
        }
        table.move_ring(next);
        self.promote(section, segment, table, next);
        state.round += 1;
        state.arrived = 0;
        state.members.iter_mut().flatten().for_each(|member| member.arrived = false);
        meeting.over.notify_all();
    }

    /// Gives a handle's place back. If everybody else waits for it, it leads before it goes.
    pub(crate) fn leave(&self, worker: &Worker) {
        let Some(meeting) = &self.meeting else { return };
        let section = worker.access.section();
        let mut state = meeting.state.lock();
        let Some(place) = state.members.get_mut(worker.place.replace(NOWHERE)) else { return };
        *place = None;
        state.online -= 1;
        if state.arrived == 0 || state.arrived < state.online {
            return;
        }
        loop {
            // Somebody has arrived, so there is a growth; the lock keeps it from ending.
            let Ok(Some(table)) = self.root(0).follow(&section) else { continue };
            let Ok(Some(next)) = table.next().follow(&section) else { continue };
            return self.lead(meeting, state, &section, 0, table, next);
        }
    }
}

/// Sleeps until the round is over (J1).
fn wait(meeting: &Meeting, mut state: MutexGuard<'_, State>) {
    let round = state.round;
    let mut reported = false;
    while state.round == round {
        let longest = meeting.report.unwrap_or(Duration::from_secs(3600));
        let late;
        (state, late) = meeting.over.wait_for(state, longest);
        if late && meeting.report.is_some() && state.round == round && !reported {
            reported = true;
            // Whoever has closed standard error hears nothing, and waits on: this must not panic,
            // with the member counted as arrived.
            let _ = writeln!(
                std::io::stderr(),
                "quintet: a SeenSet that grows together has waited {longest:?} for {}; a handle whose thread is busy \
                 elsewhere must be taken offline()",
                missing(&state).join(", ")
            );
        }
    }
}

/// Moves chunks until all have been taken.
fn move_chunks(table: &Table, next: &Table) {
    // Taken a second time means that somebody is at work on it: J3 leaves it to them.
    while let Some(claim) = table.work.claim().filter(|claim| !claim.again) {
        table.move_clusters(claim.chunk, next);
        table.work.finish(claim.chunk);
    }
}
