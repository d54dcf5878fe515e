//! Recovery of a dead peer's seat: whoever needs it completes or undoes the operation found there.
//!
//! ```text
//!            IDLE ─────────────────────────────────────────────┐
//!            OPEN ── free the new record ── release ── IDLE ───┤
//!  PLANNED ── hole not ours: OPEN ─┘                           ├─ seat free ── unlock
//!  PLANNED ── hole ours: SEALED ─┐                             │
//!            SEALED ── redo the stores ── DONE ─┐              │
//!            DONE ── release ── deliver ── IDLE ┴──────────────┘
//! ```
//!
//! | Step | What |
//! |---|---|
//! | R1 | take the seat's recovery word, or take it over from a process that is proved dead |
//! | R2 | look at the seat's owner again: if it is another, go to R12 |
//! | R3 | PLANNED: SEALED if the hole has its content, else OPEN |
//! | R4 | store what R3 decided |
//! | R5 | SEALED: every cell that still has its old content gets its new one, in order |
//! | R6 | the new record becomes live, the one it replaces is killed |
//! | R7 | DONE |
//! | R8 | OPEN: free the record that was prepared |
//! | R9 | release every listed control word that names this seat |
//! | R10 | DONE: deliver what leaves, and kill it; then IDLE |
//! | R11 | the seat is nobody's |
//! | R12 | give the recovery word back |
//!
//! **V1.** One recoverer at a time: the seat's recovery word names the *process* that recovers, and
//! is taken over on proof of that process's death.
//! **V2.** After taking it the seat's owner is read again: somebody may have been faster.
//! **V3.** Each decision is stored as a phase before anything is freed or released, so that a
//! second recoverer decides the same.
//! **V4.** A control word is released only if it still names the dead seat; its owner is never
//! replaced.
//! **V5.** The seat becomes free last but one: nobody joins a seat that is not repaired.

use super::MapError;
use super::map::Map;
use super::memory::Seat;
use super::step::{Point, exchange, exchange_cell, store};
use super::wait::Wait;
use super::word::{Cell, Link, Owner, Phase, RecordState};

/// Recovers seat `number`, whose owner `dead` is proved dead.
#[cold]
pub(crate) fn seat(
    map: &Map<'_>,
    number: u32,
    dead: Owner,
    wait: &mut Wait,
) -> Result<(), MapError> {
    let me = map.peers.me().ok_or(MapError::Busy)?;
    let seat = map.memory.seat(number)?;
    // R1
    loop {
        if seat.owner() != dead {
            return Ok(());
        }
        let holder = seat.recovery();
        if holder != Owner::NOBODY && !map.peers.is_dead(holder) {
            wait.pause()?;
        } else if exchange(Point::RecoveryLock, seat.recovery_word(), holder.0, me.0) {
            break;
        }
    }
    let repair = Repair { map, seat, number, me };
    // R2
    if seat.owner() != dead {
        repair.unlock();
        return Ok(());
    }
    let result = repair.run(dead);
    repair.unlock();
    result
}

struct Repair<'r, 'a> {
    map: &'r Map<'a>,
    seat: Seat<'a>,
    number: u32,
    me: Owner,
}

impl Repair<'_, '_> {
    /// R3 to R11.
    fn run(&self, dead: Owner) -> Result<(), MapError> {
        let mut phase = self.seat.phase()?;
        if let Some(upper) = self.map.upper {
            upper.recovered(self.number, phase != Phase::Idle);
        }
        if phase == Phase::Planned {
            let plan = self.seat.body()?;
            let (entry, cell) = plan.hole.ok_or(MapError::Corrupt("plan without hole"))?;
            let place = self.map.memory.cell_word(entry as u64)?;
            phase = if Cell::from_words(place.load()) == cell {
                self.seat.set_phase(Point::RecoverySeal, Phase::Sealed);
                Phase::Sealed
            } else {
                self.seat.set_phase(Point::RecoveryOpen, Phase::Open);
                Phase::Open
            };
        }
        if phase == Phase::Open {
            self.free_new()?;
        }
        if phase == Phase::Sealed {
            self.redo()?;
            if self.map.upper.is_some() {
                self.seat.count_plan(Point::RecoveryCount, self.map.memory.tiers());
            }
            self.seat.set_phase(Point::RecoveryDone, Phase::Done);
            phase = Phase::Done;
        }
        if phase != Phase::Idle {
            self.release()?;
            let out = if phase == Phase::Done { self.seat.body()?.out } else { None };
            self.finish(out);
        }
        // R11
        exchange(Point::RecoverySeat, self.seat.owner_word(), dead.0, Owner::NOBODY.0);
        Ok(())
    }

    /// R5 and R6.
    fn redo(&self) -> Result<(), MapError> {
        let plan = self.seat.body()?;
        for write in plan.writes() {
            let place = self.map.memory.cell_word(write.entry as u64)?;
            exchange_cell(Point::RecoveryCell, place, write.old, write.new);
        }
        if let (true, Some(link)) = (plan.link, self.seat.new_record()) {
            let record = self.map.memory.record(link.record)?;
            let word = record.state();
            if self.is_prepared(word.state(), word.generation(), link) {
                store(Point::RecoveryLive, record.word(), word.live().0);
            }
        }
        if let Some(link) = plan.kill {
            self.kill(Point::RecoveryKill, link)?;
        }
        Ok(())
    }

    /// R8.
    fn free_new(&self) -> Result<(), MapError> {
        let Some(link) = self.seat.new_record() else { return Ok(()) };
        let record = self.map.memory.record(link.record)?;
        let word = record.state();
        if self.is_prepared(word.state(), word.generation(), link) {
            self.map.kill(Point::RecoveryFree, link)?;
        }
        Ok(())
    }

    fn is_prepared(&self, state: Option<RecordState>, generation: u32, link: Link) -> bool {
        state == Some(RecordState::Prepared(self.number)) && generation == link.generation
    }

    fn kill(&self, point: Point, link: Link) -> Result<(), MapError> {
        let word = self.map.memory.record(link.record)?.state();
        if word.state() == Some(RecordState::Live) { self.map.kill(point, link) } else { Ok(()) }
    }

    /// R9 (V4).
    fn release(&self) -> Result<(), MapError> {
        for bucket in self.seat.listed() {
            let word = self.map.memory.control_word(bucket)?;
            let seen = self.map.memory.control(bucket);
            if seen.owner() == Some(self.number) {
                store(Point::RecoveryRelease, word, seen.released().0);
            }
        }
        Ok(())
    }

    /// R10. What follows the sink also happens if the sink unwinds.
    fn finish(&self, out: Option<Link>) {
        struct Finish<'f, 'r, 'a>(&'f Repair<'r, 'a>, Option<Link>);
        impl Drop for Finish<'_, '_, '_> {
            fn drop(&mut self) {
                if let Some(link) = self.1 {
                    let _ = self.0.kill(Point::RecoveryKillOut, link);
                }
                self.0.seat.set_phase(Point::RecoveryIdle, Phase::Idle);
                if std::thread::panicking() {
                    self.0.unlock();
                }
            }
        }
        let still_there = out.filter(|link| {
            self.map.memory.record(link.record).is_ok_and(|record| {
                let word = record.state();
                word.state() == Some(RecordState::Live) && word.generation() == link.generation
            })
        });
        let _finish = Finish(self, still_there);
        if let Some(link) = still_there {
            self.map.deliver(link);
        }
    }

    /// R12.
    fn unlock(&self) {
        exchange(Point::RecoveryUnlock, self.seat.recovery_word(), self.me.0, Owner::NOBODY.0);
    }
}
