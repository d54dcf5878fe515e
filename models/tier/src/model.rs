//! Shared memory, processes and the one-step transition function.
//!
//! Every struct is made of bytes only, so that a state can be hashed as one byte string.
//! One call of `step` performs at most ONE access to memory that another process can observe
//! (a load, a store or a CAS). Two kinds of access are merged with their neighbour, because nobody can tell:
//! a plan body written while `phase = OPEN` (readers of an intent ignore the body then), and reads of cells
//! that are stable under control words already held.

use crate::plan::{self, Outcome};

pub const MAXCELL: usize = 24;
pub const MAXREC: usize = 7;
pub const MAXCTL: usize = 6;
pub const MAXSEAT: usize = 3;
pub const MAXPROC: usize = 5; // the last one is the janitor of the quiescence check
pub const MAXOP: usize = 8;
pub const MAXLOCK: usize = 6;
pub const MAXW: usize = 16;
pub const JANITOR: usize = MAXPROC - 1;
pub const NONE: u8 = 255;
/// More unlocks of one control word than any terminating run of our small scenarios needs.
pub const VERSION_LIMIT: u8 = 60;

// ---- cells -------------------------------------------------------------------------------------
pub const EMPTY: u8 = 0;
pub const BASE: u8 = 1;
pub const MEMBER: u8 = 2;

/// 16 bytes in the real layout: key | cbits, record | generation. Read and written as one atom.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    pub kind: u8,
    pub key: u8,  // the 32-bit key of the seed
    pub bits: u8, // base: cbits with bit 0 set; member: distance back to its base
    pub rec: u8,
    pub gen: u8,
}
pub const ZERO: Cell = Cell { kind: EMPTY, key: 0, bits: 0, rec: 0, gen: 0 };

// ---- records -----------------------------------------------------------------------------------
pub const FREE: u8 = 0;
pub const LIVE: u8 = 200;
/// PREP(seat) is 1 + seat.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rec {
    pub st: u8, // st and gen are one word
    pub gen: u8,
    pub key: u8, // key id: stands for the full key bytes
    pub val: u8,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ctl {
    pub own: u8, // 0 unlocked, else seat + 1
    pub ver: u8,
}

// ---- seats and intents ---------------------------------------------------------------------------
pub const IDLE: u8 = 0;
pub const OPEN: u8 = 1;
/// The body is valid; at most the hole has been filled.
pub const PLANNED: u8 = 2;
/// The hole (if any) is filled; cell stores are under way.
pub const SEALED: u8 = 3;
pub const DONE: u8 = 4;

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Write {
    pub at: u8,
    pub old: Cell,
    pub new: Cell,
}
pub const NOWRITE: Write = Write { at: 0, old: ZERO, new: ZERO };

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Body {
    pub hole: u8, // cell index or NONE
    pub fill: Cell,
    pub nw: u8,
    pub w: [Write; MAXW],
    pub link: u8, // 1: the plan links the new record
    pub kill: u8, // record that dies with the plan, or NONE
    pub kgen: u8,
    pub out: u8, // record that goes to the sink, or NONE
    pub ogen: u8,
}
pub const NOBODY: Body = Body { hole: NONE, fill: ZERO, nw: 0, w: [NOWRITE; MAXW], link: 0, kill: NONE, kgen: 0, out: NONE, ogen: 0 };

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seat {
    pub owner: u8, // 0 free, else process + 1 (process ids are unique: slot + incarnation in reality)
    pub rlock: u8, // recovery lock: 0 or process + 1 (mutant: seat + 1)
    pub phase: u8,
    pub ctl: [u8; MAXLOCK],
    pub rec: u8,
    pub rgen: u8,
    pub body: Body,
}

// ---- processes -----------------------------------------------------------------------------------
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(dead_code)]
pub enum Pc {
    Idle, Join, 
    // writers
    Start, PickRec, TakeRec, WriteKey, WriteVal, List, Lock, Plan, Publish, Hole, Reopen, Seal, Writes, MarkLive, Kill, MarkDone, Release, Deliver, KillOut, Clear,
    NoFree, NoRelease, NoClear, ReRelease,
    // readers
    GCtl, GBase, GMember, GGen, GKey, GVal, GGen2, GVerify, GWait,
    // recovery
    RLock, RCheck, RPhase, RTake, RHole, RSeal, RWrites, RLive, RFreeNew, RKill, RDone, RRelease, RDeliver, RKillOut, RClear, RFreeSeat, RUnlock,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proc {
    pub alive: u8,
    pub done: u8,
    pub seat: u8,
    pub pc: Pc,
    pub opi: u8,
    // writer
    pub lock: [u8; MAXLOCK],
    pub nlock: u8,
    pub nheld: u8,
    pub i: u8,
    pub res: u8,
    // reader
    pub own0: u8,
    pub ver0: u8,
    pub arr: u8,
    pub bits: u8,
    pub cell: Cell,
    pub rkey: u8,
    pub rval: u8,
    // recovery
    pub rs: u8,
    pub rd: u8,
    pub ri: u8,
    pub rfwd: u8,
    pub rret: Pc,
}

// ---- ghosts: what an outside observer has seen -----------------------------------------------------
pub const UNBORN: u8 = 0;
pub const PENDING: u8 = 1;
pub const RETURNED: u8 = 2;
pub const R_OK: u8 = 100;
pub const R_NO: u8 = 101; // exists / not found / miss
pub const R_FULL: u8 = 102;

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hist {
    pub status: u8,
    pub res: u8,   // R_*, or the value of a hit
    pub preds: u8, // operations that had returned before this one was called
    pub leave: u8, // key id + 1 that the operation's last plan sends to the sink
}
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sunk {
    pub key: u8, // id + 1
    pub val: u8,
    pub times: u8,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    pub cells: [Cell; MAXCELL],
    pub recs: [Rec; MAXREC],
    pub ctl: [Ctl; MAXCTL],
    pub seats: [Seat; MAXSEAT],
    pub procs: [Proc; MAXPROC],
    pub deaths: u8,
    pub hist: [Hist; MAXOP],
    pub sink: [Sunk; 4],
}
impl State {
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: every field, recursively, is a u8 or an array of u8-only repr(C) structs: no padding.
        unsafe { std::slice::from_raw_parts(self as *const State as *const u8, std::mem::size_of::<State>()) }
    }
}

// ---- configuration ---------------------------------------------------------------------------------
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op { Add(u8, u8), Set(u8, u8), Update(u8, u8), Remove(u8), Evict(u8), Promote(u8), Get(u8) }
impl Op {
    pub fn key(self) -> u8 { match self { Op::Add(k, _) | Op::Set(k, _) | Op::Update(k, _) | Op::Remove(k) | Op::Evict(k) | Op::Promote(k) | Op::Get(k) => k } }
    pub fn val(self) -> u8 { match self { Op::Add(_, v) | Op::Set(_, v) | Op::Update(_, v) => v, _ => NONE } }
}
#[derive(Clone)]
pub struct KeyDef { pub name: char, pub key32: u8, pub bucket: u8, pub age: u8 }
#[derive(Clone)]
pub struct Config {
    pub name: &'static str,
    pub n: usize,       // bucket indices
    pub w: usize,       // window
    pub slices: usize,
    pub tiers: usize,
    pub shift: u32,     // ctl index = bucket >> shift (several buckets may share one word)
    pub hops: usize,
    pub nrec: usize,
    pub keys: Vec<KeyDef>,
    pub init: Vec<(u8, u8)>, // initial adds, done in order by the sequential code
    pub down: Vec<u8>, // then these keys move down a tier, in order
    pub procs: Vec<(Option<u8>, Vec<Op>)>,
    pub deaths: u8,
    pub mutant: Option<Mutant>,
    pub eager_death: bool,
}
impl Config {
    pub fn nc(&self) -> usize { self.n + self.w - 1 }
    pub fn arrays(&self) -> usize { self.slices * self.tiers }
    pub fn ncells(&self) -> usize { self.nc() * self.arrays() }
    pub fn ctl_of(&self, bucket: usize) -> u8 { (bucket >> self.shift) as u8 }
    pub fn home(&self, k: u8) -> usize { self.keys[k as usize].bucket as usize }
    pub fn id(&self, key32: u8, bucket: usize) -> Option<u8> {
        self.keys.iter().position(|d| d.key32 == key32 && d.bucket as usize == bucket).map(|i| i as u8)
    }
    pub fn is(&self, m: Mutant) -> bool { self.mutant == Some(m) }
    pub fn op(&self, p: usize, i: u8) -> Op { self.procs[p].1[i as usize] }
    pub fn opid(&self, p: usize, i: u8) -> usize { self.procs[..p].iter().map(|x| x.1.len()).sum::<usize>() + i as usize }
    pub fn nops(&self) -> usize { self.procs.iter().map(|x| x.1.len()).sum() }
}

/// One broken rule each. Names say what is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    LockBeforeIntent, UnlinkBeforeCopy, RecovererTakesOwner, SeatBeforeRecovery, NoGeneration, CropZeroesFirst,
    NoDoneMark, RecoveryNoDoneMark, UndecidedRelease, RlockNamesSeat, NoRecheck, NoSealMark, NoBackCheck, MissUnvalidated, PopBeforeIntent, UndoVisibleAdd,
    KillBeforeUnlink, BlockOutOfOrder, TryLockOnly, LockTwice, ClearBeforeRelease, OutForgotten, DeliverAfterKill, FreeSeatFirst, HitNeedsLive,
    MoveUnlinksFirst, SetKeepsOlderCopy, RemoveOnlyYoungest, OldCopyMayLeave,
}

pub enum Step {
    /// Not enabled: waits for somebody else.
    Blocked,
    Next(State, &'static str),
    Two(State, State, &'static str),
    Bad(String),
}

fn free_rec(s: &mut State, r: u8) { let x = &mut s.recs[r as usize]; x.st = FREE; x.gen += 1; }
pub fn dead(s: &State, owner: u8) -> bool { owner != 0 && s.procs[owner as usize - 1].alive == 0 }
const SEATWORD: u8 = 100; // mutant only: recovery lock that names a seat
fn rlock_dead(c: &Config, s: &State, word: u8) -> bool {
    if c.is(Mutant::RlockNamesSeat) && word >= SEATWORD { dead(s, s.seats[(word - SEATWORD) as usize].owner) } else { dead(s, word) }
}
fn rlock_name(c: &Config, s: &State, p: usize) -> u8 {
    if c.is(Mutant::RlockNamesSeat) && s.procs[p].seat != NONE { SEATWORD + s.procs[p].seat } else { p as u8 + 1 }
}

fn invoke(c: &Config, s: &mut State, p: usize) {
    let me = c.opid(p, s.procs[p].opi);
    if s.hist[me].status == UNBORN {
        let mut m = 0u8;
        for i in 0..c.nops() { if s.hist[i].status == RETURNED { m |= 1 << i; } }
        s.hist[me] = Hist { status: PENDING, res: 0, preds: m, leave: s.hist[me].leave };
    }
}
fn respond(c: &Config, s: &mut State, p: usize, res: u8) {
    let me = c.opid(p, s.procs[p].opi);
    s.hist[me].status = RETURNED;
    s.hist[me].res = res;
    let q = &mut s.procs[p];
    q.opi += 1;
    reset(q);
    if q.opi as usize == c.procs[p].1.len() { q.done = 1; q.pc = Pc::Idle; } else { q.pc = Pc::Start; }
}
fn reset(q: &mut Proc) {
    q.lock = [NONE; MAXLOCK]; q.nlock = 0; q.nheld = 0; q.i = 0; q.res = 0;
    q.own0 = 0; q.ver0 = 0; q.arr = 0; q.bits = 0; q.cell = ZERO; q.rkey = 0; q.rval = 0;
}
fn recover(s: &mut State, p: usize, seat: u8, ret: Pc) {
    let d = s.seats[seat as usize].owner;
    let q = &mut s.procs[p];
    q.rs = seat; q.rd = d; q.ri = 0; q.rfwd = 0; q.rret = ret; q.pc = Pc::RLock;
}
fn end_recovery(s: &mut State, p: usize) {
    let q = &mut s.procs[p];
    q.pc = q.rret; q.rs = 0; q.rd = 0; q.ri = 0; q.rfwd = 0; q.rret = Pc::Idle;
}
/// Is process `p` at a point where the death of process `d` would let it go on?
pub fn waits_on(c: &Config, s: &State, p: usize, d: usize) -> bool {
    let q = &s.procs[p];
    if q.alive == 0 { return false; }
    let own = |w: u8| w != 0 && s.seats[w as usize - 1].owner as usize == d + 1;
    match q.pc {
        Pc::List if c.is(Mutant::LockBeforeIntent) => own(s.ctl[q.lock[q.nheld as usize] as usize].own),
        Pc::Lock if !c.is(Mutant::LockBeforeIntent) => own(s.ctl[q.lock[q.nheld as usize] as usize].own),
        Pc::GWait => own(s.ctl[c.ctl_of(c.home(c.op(p, q.opi).key())) as usize].own),
        Pc::RLock => { let w = s.seats[q.rs as usize].rlock; w as usize == d + 1 || (w >= SEATWORD && s.seats[(w - SEATWORD) as usize].owner as usize == d + 1) }
        Pc::Join => s.seats.iter().all(|x| x.owner != 0),
        _ => false,
    }
}

/// The atomic step of process `p`.
pub fn step(c: &Config, s0: &State, p: usize) -> Step {
    use Pc::*;
    let mut s = *s0;
    let q0 = s0.procs[p];
    let seat = q0.seat as usize;
    let op = if p == JANITOR || q0.opi as usize >= c.procs[p].1.len() { Op::Get(0) } else { c.op(p, q0.opi) };
    macro_rules! go { ($pc:expr, $l:expr) => {{ s.procs[p].pc = $pc; return Step::Next(s, $l); }}; }
    match q0.pc {
        Idle => Step::Blocked,
        Join => {
            for i in 0..MAXSEAT {
                if s.seats[i].owner == 0 || (c.is(Mutant::SeatBeforeRecovery) && dead(&s, s.seats[i].owner)) {
                    s.seats[i].owner = p as u8 + 1;
                    s.procs[p].seat = i as u8;
                    go!(Start, "join: claim seat");
                }
            }
            for i in 0..MAXSEAT { if dead(&s, s.seats[i].owner) { recover(&mut s, p, i as u8, Join); return Step::Next(s, "join: dead seat found"); } }
            Step::Blocked
        }
        // ---------------------------------------------------------------- writers
        Start => {
            if let Op::Get(k) = op {
                invoke(c, &mut s, p);
                let w = s.ctl[c.ctl_of(c.home(k)) as usize];
                let q = &mut s.procs[p];
                q.own0 = w.own; q.ver0 = w.ver; q.arr = 0;
                go!(GBase, "get: load ctl");
            }
            invoke(c, &mut s, p);
            let x = &mut s.seats[seat];
            x.ctl = [NONE; MAXLOCK]; x.rec = NONE; x.rgen = 0; x.body = NOBODY;
            x.phase = OPEN;
            let q = &mut s.procs[p];
            q.lock[0] = c.ctl_of(c.home(op.key())); q.nlock = 1; q.nheld = 0;
            go!(if op.val() == NONE { List } else { PickRec }, "intent: phase=OPEN")
        }
        PickRec => {
            let r = match (0..c.nrec).find(|&r| s.recs[r].st == FREE) { Some(r) => r, None => { s.procs[p].res = R_FULL; go!(NoClear, "no free record") } };
            if c.is(Mutant::PopBeforeIntent) {
                s.recs[r].st = 1 + seat as u8; s.procs[p].i = r as u8;
                go!(TakeRec, "MUTANT record taken before the intent names it");
            }
            s.seats[seat].rec = r as u8; s.seats[seat].rgen = s.recs[r].gen;
            go!(TakeRec, "intent: record")
        }
        TakeRec => {
            if c.is(Mutant::PopBeforeIntent) {
                let r = s.procs[p].i; s.procs[p].i = 0;
                s.seats[seat].rec = r; s.seats[seat].rgen = s.recs[r as usize].gen;
                go!(WriteKey, "MUTANT intent: record");
            }
            let (r, g) = (s.seats[seat].rec as usize, s.seats[seat].rgen);
            if s.recs[r].st == FREE && s.recs[r].gen == g { s.recs[r].st = 1 + seat as u8; go!(WriteKey, "record CAS FREE->PREP") }
            go!(PickRec, "record CAS failed")
        }
        WriteKey => { let r = s.seats[seat].rec as usize; s.recs[r].key = op.key(); go!(WriteVal, "record key") }
        WriteVal => { let r = s.seats[seat].rec as usize; s.recs[r].val = op.val(); go!(List, "record value") }
        List => {
            if c.is(Mutant::LockBeforeIntent) { // lock first, list after
                match lock(c, &mut s, p) { Some(true) => {}, Some(false) => return Step::Next(s, "dead owner or relock"), None => return Step::Blocked }
                let h = s.procs[p].nheld; s.procs[p].nheld = h; s.procs[p].pc = Lock;
                return Step::Next(s, "MUTANT ctl locked before listed");
            }
            let h = q0.nheld as usize;
            s.seats[seat].ctl[h] = q0.lock[h];
            go!(Lock, "intent: list ctl")
        }
        Lock => {
            if c.is(Mutant::LockBeforeIntent) {
                let h = q0.nheld as usize - 1;
                s.seats[seat].ctl[h] = q0.lock[h];
                go!(if q0.nheld < q0.nlock { List } else { Plan }, "MUTANT intent: list ctl")
            }
            match lock(c, &mut s, p) {
                None => Step::Blocked,
                Some(true) => { let q = &s.procs[p]; go!(if q.nheld < q.nlock { List } else { Plan }, "ctl CAS lock") }
                Some(false) => Step::Next(s, "ctl busy: dead owner, or release all and relock ascending"),
            }
        }
        Plan => {
            match plan::plan(c, &s, p, 0) {
                Outcome::Tie => {
                    let mut t = s;
                    if let Some(e) = apply_plan(c, &mut s, p, plan::plan(c, s0, p, 1)) { return Step::Bad(e); }
                    if let Some(e) = apply_plan(c, &mut t, p, plan::plan(c, s0, p, 2)) { return Step::Bad(e); }
                    Step::Two(s, t, "plan (tie)")
                }
                o => match apply_plan(c, &mut s, p, o) { Some(e) => Step::Bad(e), None => Step::Next(s, "plan") },
            }
        }
        ReRelease => {
            let h = q0.nheld as usize - 1;
            if let Some(e) = unlock(&mut s, q0.lock[h], seat) { return Step::Bad(e); }
            let q = &mut s.procs[p];
            q.nheld -= 1;
            if q.nheld == 0 {
                let n = q.nlock as usize;
                if !c.is(Mutant::TryLockOnly) { q.lock[..n].sort(); } else { q.nlock = 1; for x in 1..MAXLOCK { q.lock[x] = NONE; } }
                q.pc = List;
            }
            Step::Next(s, "release to relock in order")
        }
        Publish => {
            let b = s.seats[seat].body;
            let early = c.is(Mutant::UnlinkBeforeCopy) || (c.is(Mutant::KillBeforeUnlink) && b.kill != NONE);
            s.seats[seat].phase = if b.hole != NONE && !early { PLANNED } else if c.is(Mutant::NoSealMark) { PLANNED } else { SEALED };
            if c.is(Mutant::KillBeforeUnlink) && b.kill != NONE { go!(Kill, "intent: phase=SEALED") }
            go!(if b.hole != NONE && !early { Hole } else { Writes }, "intent: body, phase=PLANNED (SEALED if no hole)")
        }
        Hole => {
            let b = s.seats[seat].body;
            let x = &mut s.cells[b.hole as usize];
            if x.kind != EMPTY { go!(Reopen, "hole CAS failed") }
            *x = b.fill;
            if c.is(Mutant::UnlinkBeforeCopy) { go!(MarkLive, "MUTANT hole filled last") }
            go!(if c.is(Mutant::NoSealMark) { Writes } else { Seal }, "hole CAS EMPTY->copy")
        }
        Seal => { s.seats[seat].phase = SEALED; go!(Writes, "intent: phase=SEALED") }
        Reopen => { s.seats[seat].phase = OPEN; s.seats[seat].body = NOBODY; go!(Plan, "intent: phase=OPEN again") }
        Writes => {
            let b = s.seats[seat].body;
            let i = q0.i as usize;
            if i < b.nw as usize {
                let w = b.w[i];
                if s.cells[w.at as usize] != w.old && !c.is(Mutant::UnlinkBeforeCopy) { return Step::Bad(format!("P{p}: cell {} changed under a held control word: {:?} expected {:?}", w.at, s.cells[w.at as usize], w.old)); }
                s.cells[w.at as usize] = w.new;
                s.procs[p].i += 1;
                return Step::Next(s, "cell store");
            }
            s.procs[p].i = 0;
            if c.is(Mutant::UnlinkBeforeCopy) && b.hole != NONE { s.procs[p].pc = Hole; return step(c, &s, p); }
            s.procs[p].pc = MarkLive;
            step(c, &s, p)
        }
        MarkLive => {
            let b = s.seats[seat].body;
            if b.link == 1 { let r = s.seats[seat].rec as usize; s.recs[r].st = LIVE; go!(Kill, "record LIVE") }
            s.procs[p].pc = Kill;
            step(c, &s, p)
        }
        Kill => {
            let b = s.seats[seat].body;
            if c.is(Mutant::KillBeforeUnlink) {
                if q0.res == 1 { s.procs[p].res = 0; s.procs[p].pc = MarkDone; return step(c, &s, p); }
                s.procs[p].res = 1;
                if b.kill != NONE { free_rec(&mut s, b.kill); go!(if b.hole != NONE { Hole } else { Writes }, "MUTANT kill first") }
                s.procs[p].res = 0;
                s.procs[p].pc = MarkDone;
                return step(c, &s, p);
            }
            if b.kill != NONE { free_rec(&mut s, b.kill); go!(MarkDone, "kill old record (generation+1, FREE)") }
            s.procs[p].pc = MarkDone;
            step(c, &s, p)
        }
        MarkDone => {
            if c.is(Mutant::NoDoneMark) { s.procs[p].pc = Release; return step(c, &s, p); }
            if c.is(Mutant::ClearBeforeRelease) { s.seats[seat].phase = IDLE; go!(Release, "MUTANT phase=IDLE before release") }
            s.seats[seat].phase = DONE;
            go!(Release, "intent: phase=DONE")
        }
        Release => {
            let h = q0.nheld as usize - 1;
            if let Some(e) = unlock(&mut s, q0.lock[h], seat) { return Step::Bad(e); }
            s.procs[p].nheld -= 1;
            if s.procs[p].nheld > 0 { go!(Release, "release ctl, version+1") }
            go!(if s.seats[seat].body.out != NONE && !c.is(Mutant::OutForgotten) { if c.is(Mutant::DeliverAfterKill) { KillOut } else { Deliver } } else { Clear }, "release ctl, version+1")
        }
        Deliver => {
            let b = s.seats[seat].body;
            if !c.is(Mutant::DeliverAfterKill) || s.recs[b.out as usize].gen == b.ogen + 1 { deliver(&mut s, b.out); }
            go!(if c.is(Mutant::DeliverAfterKill) { Clear } else { KillOut }, "deliver to sink")
        }
        KillOut => { let b = s.seats[seat].body; free_rec(&mut s, b.out); go!(if c.is(Mutant::DeliverAfterKill) { Deliver } else { Clear }, "kill delivered record") }
        Clear => { s.seats[seat].phase = IDLE; let r = s.procs[p].res; respond(c, &mut s, p, if r == 0 { R_OK } else { r }); Step::Next(s, "intent: phase=IDLE; return") }
        // nothing to do: exists / not found
        NoFree => {
            let r = s.seats[seat].rec;
            if r != NONE { free_rec(&mut s, r); go!(NoRelease, "free unused record") }
            s.procs[p].pc = NoRelease;
            step(c, &s, p)
        }
        NoRelease => {
            let h = q0.nheld as usize - 1;
            if let Some(e) = unlock(&mut s, q0.lock[h], seat) { return Step::Bad(e); }
            s.procs[p].nheld -= 1;
            go!(if s.procs[p].nheld > 0 { NoRelease } else { NoClear }, "release ctl")
        }
        NoClear => { s.seats[seat].phase = IDLE; let r = q0.res; respond(c, &mut s, p, r); Step::Next(s, "intent: phase=IDLE; return") }
        // ---------------------------------------------------------------- readers
        GCtl => {
            let w = s.ctl[c.ctl_of(c.home(op.key())) as usize];
            let q = &mut s.procs[p];
            q.own0 = w.own; q.ver0 = w.ver; q.arr = 0; q.cell = ZERO; q.bits = 0;
            go!(GBase, "get: load ctl")
        }
        GBase => {
            let h = c.home(op.key());
            let x = s.cells[q0.arr as usize * c.nc() + h];
            let q = &mut s.procs[p];
            if x.kind == BASE && x.key == c.keys[op.key() as usize].key32 { q.cell = x; go!(GGen, "get: base matches") }
            q.bits = if x.kind == BASE { x.bits & !1 } else { 0 };
            if q.bits != 0 { go!(GMember, "get: load base") }
            next_array(c, q);
            Step::Next(s, "get: load base")
        }
        GMember => {
            let h = c.home(op.key());
            let i = q0.bits.trailing_zeros() as usize;
            let x = s.cells[q0.arr as usize * c.nc() + h + i];
            let q = &mut s.procs[p];
            q.bits &= !(1 << i);
            let ours = (x.kind == MEMBER && x.bits as usize == i) || (c.is(Mutant::NoBackCheck) && x.kind != EMPTY);
            if ours && x.key == c.keys[op.key() as usize].key32 { q.cell = x; q.bits = 0; go!(GGen, "get: member matches") }
            if q.bits != 0 { return Step::Next(s, "get: load member"); }
            next_array(c, q);
            Step::Next(s, "get: load member")
        }
        GGen => {
            if c.is(Mutant::NoGeneration) { s.procs[p].pc = GKey; return step(c, &s, p); }
            if c.is(Mutant::HitNeedsLive) && s.recs[q0.cell.rec as usize].st != LIVE { go!(GCtl, "MUTANT record not LIVE, again") }
            if s.recs[q0.cell.rec as usize].gen != q0.cell.gen { go!(GCtl, "get: generation differs, again") }
            go!(GKey, "get: generation")
        }
        GKey => {
            if s.recs[q0.cell.rec as usize].key != op.key() && c.is(Mutant::NoGeneration) { go!(GCtl, "get: other key, again") }
            s.procs[p].rkey = s.recs[q0.cell.rec as usize].key; go!(GVal, "get: copy key")
        }
        GVal => {
            s.procs[p].rval = s.recs[q0.cell.rec as usize].val;
            if c.is(Mutant::NoGeneration) { let v = s.procs[p].rval; respond(c, &mut s, p, v); return Step::Next(s, "get: copy value, hit"); }
            go!(GGen2, "get: copy value")
        }
        GGen2 => {
            if s.recs[q0.cell.rec as usize].gen != q0.cell.gen { go!(GCtl, "get: generation changed, again") }
            if q0.rkey != op.key() { return Step::Bad(format!("P{p}: certified record carries key id {} instead of {}", q0.rkey, op.key())); }
            respond(c, &mut s, p, q0.rval);
            Step::Next(s, "get: hit")
        }
        GVerify => {
            let w = s.ctl[c.ctl_of(c.home(op.key())) as usize];
            if (w.own == 0 && q0.own0 == 0 && w.ver == q0.ver0) || c.is(Mutant::MissUnvalidated) { respond(c, &mut s, p, R_NO); return Step::Next(s, "get: validated miss"); }
            go!(GWait, "get: miss not valid")
        }
        GWait => {
            let w = s.ctl[c.ctl_of(c.home(op.key())) as usize];
            if w.own == 0 { s.procs[p].pc = GCtl; return step(c, &s, p); }
            let o = w.own - 1;
            if dead(&s, s.seats[o as usize].owner) { recover(&mut s, p, o, GWait); return Step::Next(s, "get: owner dead"); }
            Step::Blocked
        }
        // ---------------------------------------------------------------- recovery of seat rs, whose process rd is dead
        RLock => {
            let t = q0.rs as usize;
            if s.seats[t].owner != q0.rd && !c.is(Mutant::NoRecheck) { end_recovery(&mut s, p); return Step::Next(s, "recovery: done by another"); }
            let w = s.seats[t].rlock;
            if w == 0 || rlock_dead(c, &s, w) { s.seats[t].rlock = rlock_name(c, &s, p); go!(RCheck, "recovery: lock (or steal from a dead recoverer)") }
            Step::Blocked
        }
        RCheck => {
            let t = q0.rs as usize;
            if s.seats[t].owner != q0.rd && !c.is(Mutant::NoRecheck) { go!(RUnlock, "recovery: seat is no longer the dead one's") }
            if c.is(Mutant::FreeSeatFirst) { s.seats[t].owner = 0; go!(RPhase, "MUTANT seat freed before repair") }
            if c.is(Mutant::RecovererTakesOwner) { go!(RTake, "recovery: seat word re-read") }
            go!(RPhase, "recovery: seat word re-read")
        }
        RTake => { // mutant only
            let t = q0.rs as usize;
            let me = s.procs[p].seat;
            if me == NONE { go!(RPhase, "MUTANT recoverer has no seat") }
            for i in 0..MAXLOCK { let x = s.seats[t].ctl[i]; if x != NONE && s.ctl[x as usize].own == t as u8 + 1 { s.ctl[x as usize].own = me + 1; return Step::Next(s, "MUTANT recoverer takes ctl"); } }
            go!(RPhase, "MUTANT owner taken")
        }
        RPhase => {
            let t = q0.rs as usize;
            s.procs[p].ri = 0;
            match s.seats[t].phase {
                IDLE => go!(RFreeSeat, "recovery: idle"),
                OPEN => go!(RFreeNew, "recovery: open, undo"),
                PLANNED => go!(RHole, "recovery: planned"),
                SEALED => go!(RWrites, "recovery: sealed, redo"),
                _ => go!(RRelease, "recovery: done, only release"),
            }
        }
        RHole => {
            let t = q0.rs as usize;
            let b = s.seats[t].body;
            if b.hole == NONE { go!(RWrites, "recovery: no hole, redo") } // mutants only
            let visible_undo = c.is(Mutant::UndoVisibleAdd);
            if s.cells[b.hole as usize] == b.fill || c.is(Mutant::UnlinkBeforeCopy) {
                if visible_undo && b.nw == 0 && b.link == 1 { s.cells[b.hole as usize] = ZERO; s.seats[t].phase = OPEN; go!(RFreeNew, "MUTANT visible add undone") }
                go!(if c.is(Mutant::NoSealMark) { RWrites } else { RSeal }, "recovery: hole was filled, redo")
            }
            if c.is(Mutant::UndecidedRelease) { go!(RFreeNew, "MUTANT undo without storing the decision") }
            s.seats[t].phase = OPEN;
            go!(RFreeNew, "recovery: hole not filled, phase=OPEN")
        }
        RSeal => { s.seats[q0.rs as usize].phase = SEALED; go!(RWrites, "recovery: phase=SEALED") }
        RWrites => {
            let t = q0.rs as usize;
            let b = s.seats[t].body;
            let i = q0.ri as usize;
            if i < b.nw as usize {
                let w = b.w[i];
                if s.cells[w.at as usize] == w.old { s.cells[w.at as usize] = w.new; }
                s.procs[p].ri += 1;
                return Step::Next(s, "recovery: redo cell store (if still old)");
            }
            s.procs[p].ri = 0;
            s.procs[p].pc = RLive;
            step(c, &s, p)
        }
        RLive => {
            let t = q0.rs as usize;
            let b = s.seats[t].body;
            if b.link == 1 {
                let r = s.seats[t].rec as usize;
                if s.recs[r].st == 1 + t as u8 && s.recs[r].gen == s.seats[t].rgen { s.recs[r].st = LIVE; }
                go!(RKill, "recovery: record LIVE")
            }
            s.procs[p].pc = RKill;
            step(c, &s, p)
        }
        RKill => {
            let t = q0.rs as usize;
            let b = s.seats[t].body;
            let next = if c.is(Mutant::RecoveryNoDoneMark) || c.is(Mutant::NoDoneMark) { RRelease } else { RDone };
            if b.kill != NONE {
                if s.recs[b.kill as usize].st == LIVE && s.recs[b.kill as usize].gen == b.kgen { free_rec(&mut s, b.kill); }
                go!(next, "recovery: kill old record")
            }
            s.procs[p].pc = next;
            step(c, &s, p)
        }
        RDone => { let t = q0.rs as usize; s.seats[t].phase = DONE; go!(RRelease, "recovery: phase=DONE") }
        RFreeNew => {
            let t = q0.rs as usize;
            let r = s.seats[t].rec;
            if r != NONE {
                if s.recs[r as usize].st == 1 + t as u8 && s.recs[r as usize].gen == s.seats[t].rgen { free_rec(&mut s, r); }
                go!(RRelease, "recovery: free unlinked record")
            }
            s.procs[p].pc = RRelease;
            step(c, &s, p)
        }
        RRelease => {
            let t = q0.rs as usize;
            let i = q0.ri as usize;
            if i < MAXLOCK && s.seats[t].ctl[i] != NONE {
                let x = s.seats[t].ctl[i] as usize;
                let mine = s.procs[p].seat;
                if s.ctl[x].own == t as u8 + 1 || (c.is(Mutant::RecovererTakesOwner) && mine != NONE && s.ctl[x].own == mine + 1) { s.ctl[x].own = 0; s.ctl[x].ver += 1; }
                s.procs[p].ri += 1;
                return Step::Next(s, "recovery: release ctl if still the dead seat's");
            }
            s.procs[p].ri = 0;
            let b = s.seats[t].body;
            let redone = s.seats[t].phase == DONE || ((c.is(Mutant::RecoveryNoDoneMark) || c.is(Mutant::NoDoneMark)) && s.seats[t].phase == SEALED);
            let out = redone && b.out != NONE && s.recs[b.out as usize].st == LIVE && s.recs[b.out as usize].gen == b.ogen;
            s.procs[p].pc = if out { RDeliver } else { RClear };
            step(c, &s, p)
        }
        RDeliver => { let o = s.seats[q0.rs as usize].body.out; deliver(&mut s, o); go!(RKillOut, "recovery: deliver to sink") }
        RKillOut => { let o = s.seats[q0.rs as usize].body.out; free_rec(&mut s, o); go!(RClear, "recovery: kill delivered record") }
        RClear => { s.seats[q0.rs as usize].phase = IDLE; go!(RFreeSeat, "recovery: phase=IDLE") }
        RFreeSeat => {
            let t = q0.rs as usize;
            if s.seats[t].owner == q0.rd { s.seats[t].owner = 0; }
            go!(RUnlock, "recovery: seat FREE")
        }
        RUnlock => { s.seats[q0.rs as usize].rlock = 0; end_recovery(&mut s, p); Step::Next(s, "recovery: unlock") }
    }
}

fn next_array(c: &Config, q: &mut Proc) {
    q.arr += 1;
    q.pc = if (q.arr as usize) < c.arrays() { Pc::GBase } else { Pc::GVerify };
    if q.pc == Pc::GVerify { q.arr = 0; }
}

fn deliver(s: &mut State, r: u8) {
    let x = s.recs[r as usize];
    for e in s.sink.iter_mut() {
        if e.key == 0 { *e = Sunk { key: x.key + 1, val: x.val, times: 1 }; break; }
        if e.key == x.key + 1 && e.val == x.val { e.times += 1; break; }
    }
    // the sink is a set: keep a canonical order
    s.sink.sort_by_key(|e| if e.key == 0 { (255, 0) } else { (e.key, e.val) });
}

fn unlock(s: &mut State, x: u8, seat: usize) -> Option<String> {
    let w = &mut s.ctl[x as usize];
    if w.own != seat as u8 + 1 { return Some(format!("seat {seat} releases ctl {x} owned by {:?}", w)); }
    w.own = 0;
    w.ver += 1;
    if w.ver > VERSION_LIMIT { return Some("livelock: a control word was released more often than any finite run needs".into()); }
    None
}

/// Some(true): locked. Some(false): other way taken (pc set). None: blocked.
fn lock(c: &Config, s: &mut State, p: usize) -> Option<bool> {
    let q = s.procs[p];
    let h = q.nheld as usize;
    let x = q.lock[h];
    let w = s.ctl[x as usize];
    if w.own == 0 { s.ctl[x as usize].own = q.seat + 1; s.procs[p].nheld += 1; return Some(true); }
    let below = q.lock[..h].iter().any(|&y| y > x);
    if (below && !c.is(Mutant::BlockOutOfOrder)) || (c.is(Mutant::TryLockOnly) && h > 0) {
        s.procs[p].pc = Pc::ReRelease; // never wait for a lower word while holding a higher one
        return Some(false);
    }
    let o = w.own - 1;
    if dead(s, s.seats[o as usize].owner) { let pc = q.pc; recover(s, p, o, pc); return Some(false); }
    None
}

fn apply_plan(c: &Config, s: &mut State, p: usize, o: Outcome) -> Option<String> {
    let me = c.opid(p, s.procs[p].opi);
    let seat = s.procs[p].seat as usize;
    let q = &mut s.procs[p];
    s.hist[me].leave = 0;
    match o {
        Outcome::Tie => unreachable!(),
        Outcome::Bad(e) => return Some(e),
        Outcome::Nothing(r) => { q.res = r; q.pc = Pc::NoFree; }
        Outcome::Need(used, x) => {
            let held = &q.lock[..q.nheld as usize];
            if !c.is(Mutant::LockTwice) { assert!(!held.contains(&x)); }
            if held.len() >= MAXLOCK { return Some("more control words than an intent can list".into()); }
            let _ = used;
            q.lock[q.nheld as usize] = x; q.nlock = q.nheld + 1; q.pc = Pc::List;
        }
        Outcome::Plan(b) => {
            if b.out != NONE { s.hist[me].leave = s.recs[b.out as usize].key + 1; }
            s.seats[seat].body = *b;
            q.pc = Pc::Publish;
        }
    }
    None
}
