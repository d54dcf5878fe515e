//! Depth-first exploration of all interleavings, and what must hold.
//!
//! * in every state: a key that is surely present (acknowledged, and nobody has asked to take it away) is found
//!   by a scan that runs alone ("hits never wait", also behind a stopped or dead writer);
//! * no state without a successor unless all processes have finished or died (nobody waits for ever);
//! * no cycle (every schedule ends: no livelock);
//! * at each end, after a janitor has recovered the dead seats: the invariants of `check()`, and the whole
//!   history, followed by a read of every key, is linearizable; sink deliveries are counted.

use crate::model::*;
use crate::plan;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::time::{Duration, Instant};

#[derive(Default, Clone, Copy)]
pub struct Id(u64);
impl Hasher for Id {
    fn finish(&self) -> u64 { self.0 }
    fn write(&mut self, _: &[u8]) { unreachable!() }
    fn write_u128(&mut self, x: u128) { self.0 = x as u64 }
}
type Set = HashSet<u128, BuildHasherDefault<Id>>;

fn fingerprint(b: &[u8]) -> u128 {
    let (mut x, mut y) = (0x9E37_79B9_7F4A_7C15u64, 0xD1B5_4A32_D192_ED03u64);
    for c in b.chunks(8) {
        let mut w = [0u8; 8];
        w[..c.len()].copy_from_slice(c);
        let v = u64::from_le_bytes(w);
        let m = (x ^ v) as u128 * 0xA076_1D64_78BD_642Fu128;
        x = (m as u64) ^ (m >> 64) as u64 ^ y.rotate_left(17);
        let n = (y ^ v.rotate_left(32)) as u128 * 0xE703_7ED1_A0B4_28DBu128;
        y = (n as u64) ^ (n >> 64) as u64 ^ x.rotate_left(41);
    }
    (x as u128) << 64 | y as u128
}

#[derive(Debug)]
pub struct Report {
    pub states: usize,
    pub steps: usize,
    pub ends: usize,
    pub depth: usize,
    pub time: Duration,
    pub bad: Option<(String, Vec<String>)>,
    pub complete: bool,
    /// How often each kind of step was taken, and each kind of plan sealed.
    pub cover: BTreeMap<String, u64>,
}

pub fn initial(c: &Config) -> State {
    let q = Proc { alive: 1, done: 1, seat: NONE, pc: Pc::Idle, opi: 0, lock: [NONE; MAXLOCK], nlock: 0, nheld: 0, i: 0, res: 0, own0: 0, ver0: 0, arr: 0, bits: 0, cell: ZERO, rkey: 0, rval: 0, rs: 0, rd: 0, ri: 0, rfwd: 0, rret: Pc::Idle };
    let z = Seat { owner: 0, rlock: 0, phase: IDLE, ctl: [NONE; MAXLOCK], rec: NONE, rgen: 0, body: NOBODY };
    let mut s = State {
        cells: [ZERO; MAXCELL], recs: [Rec { st: FREE, gen: 1, key: 0, val: 0 }; MAXREC], ctl: [Ctl { own: 0, ver: 0 }; MAXCTL],
        seats: [z; MAXSEAT], procs: [q; MAXPROC], deaths: 0,
        hist: [Hist { status: UNBORN, res: 0, preds: 0, leave: 0 }; MAXOP], sink: [Sunk { key: 0, val: 0, times: 0 }; 4],
    };
    assert!(c.ncells() <= MAXCELL && c.nrec <= MAXREC && c.nops() <= MAXOP && c.procs.len() < MAXPROC);
    let all: Vec<u8> = (0..MAXCTL as u8).collect();
    for &(k, v) in &c.init {
        let r = (0..c.nrec).find(|&r| s.recs[r].st == FREE).expect("a record");
        s.recs[r] = Rec { st: LIVE, gen: s.recs[r].gen, key: k, val: v };
        let b = plan::run(c, &s, &all, Op::Add(k, v), r as u8, s.recs[r].gen, if v >= 50 { 2 } else { 1 }).unwrap_or_else(|_| panic!("init of {} failed", c.name));
        assert!(b.out == NONE, "init overflows");
        apply(&mut s, &b);
    }
    for &k in &c.down {
        let sound = Config { mutant: None, ..c.clone() };
        let b = plan::run(&sound, &s, &all, Op::Evict(k), NONE, 0, 1).unwrap_or_else(|_| panic!("init of {} failed", c.name));
        assert!(b.out == NONE, "init overflows");
        apply(&mut s, &b);
    }
    let mut free = MAXSEAT;
    for (p, (seat, _)) in c.procs.iter().enumerate() {
        let q = &mut s.procs[p];
        q.done = 0;
        match seat { Some(t) => { q.seat = *t; q.pc = Pc::Start; s.seats[*t as usize].owner = p as u8 + 1; free -= 1; } None => q.pc = Pc::Join }
    }
    // seats nobody uses are hidden, so that a joiner has to wait for a freed one
    let _ = free;
    for t in 0..MAXSEAT { if s.seats[t].owner == 0 { s.seats[t].owner = JANITOR as u8 + 1; } }
    s
}

fn apply(s: &mut State, b: &Body) {
    if b.hole != NONE { s.cells[b.hole as usize] = b.fill; }
    for w in &b.w[..b.nw as usize] { s.cells[w.at as usize] = w.new; }
}

struct Frame { fp: u128, label: String, succ: Vec<(String, State)>, }

pub fn explore(c: &Config, limit: Duration, max_states: usize) -> Report {
    let t0 = Instant::now();
    let s0 = initial(c);
    let mut rep = Report { states: 0, steps: 0, ends: 0, depth: 0, time: Duration::ZERO, bad: None, complete: true, cover: BTreeMap::new() };
    let mut seen: Set = Set::default();
    let mut path: Set = Set::default();
    let mut lin: HashMap<Vec<u8>, Option<String>> = HashMap::new();
    let mut stack: Vec<Frame> = Vec::new();
    let mut todo = Some((String::from("start"), s0));
    'run: loop {
        if let Some((label, s)) = todo.take() {
            let fp = fingerprint(s.bytes());
            rep.steps += 1;
            if path.contains(&fp) { rep.bad = Some(("livelock: the same state again".into(), trace(&stack, &label))); break; }
            if seen.insert(fp) {
                rep.states += 1;
                let r = expand(c, &s, &mut rep, &mut lin);
                match r {
                    Err(e) => { rep.bad = Some((e, trace(&stack, &label))); if std::env::var_os("DUMP").is_some() { dump(c, &s); } break; }
                    Ok(succ) => { path.insert(fp); stack.push(Frame { fp, label, succ }); rep.depth = rep.depth.max(stack.len()); }
                }
                if rep.states % 4096 == 0 && (t0.elapsed() > limit || rep.states > max_states) { rep.complete = false; break; }
            }
        }
        loop {
            match stack.last_mut() {
                None => break 'run,
                Some(f) => match f.succ.pop() { Some(n) => { todo = Some(n); break; } None => { path.remove(&f.fp); stack.pop(); } },
            }
        }
    }
    rep.time = t0.elapsed();
    rep
}
fn trace(st: &[Frame], last: &str) -> Vec<String> { st.iter().map(|f| f.label.clone()).chain([last.to_string()]).collect() }

fn expand(c: &Config, s: &State, rep: &mut Report, lin: &mut HashMap<Vec<u8>, Option<String>>) -> Result<Vec<(String, State)>, String> {
    for k in 0..c.keys.len() as u8 {
        if surely_present(c, s, k) && scan(c, s, k).is_none() { return Err(format!("key {} is present but a scan running alone does not find it", c.keys[k as usize].name)); }
    }
    let mut out = Vec::new();
    let np = c.procs.len();
    let active = |p: usize| s.procs[p].alive == 1 && s.procs[p].done == 0;
    for p in 0..np {
        if !active(p) { continue; }
        match step(c, s, p) {
            Step::Blocked => {}
            Step::Next(t, l) => {
                cover(rep, l);
                if s.procs[p].pc == Pc::Publish { cover(rep, &kind(c, s, p)); }
                out.push((format!("P{p} {l}"), t))
            }
            Step::Two(t, u, l) => { out.push((format!("P{p} {l} a"), t)); out.push((format!("P{p} {l} b"), u)); }
            Step::Bad(e) => return Err(e),
        }
    }
    let live_steps = out.len();
    // Everybody is killed here and now: recovery must lead to a sound state from every state there is.
    if c.deaths > 0 && (0..np).any(active) {
        let mut t = *s;
        for d in 0..np { if t.procs[d].alive == 1 && t.procs[d].done == 0 { t.procs[d].alive = 0; t.deaths += 1; } }
        rep.ends += 1;
        quiescent(c, &t, lin).map_err(|e| format!("all killed: {e}"))?;
    }
    // Deaths that others live to see. A death matters only from the moment somebody looks, so a process
    // that is not scheduled is as good as dead until another one waits for it.
    if s.deaths < c.deaths {
        for d in 0..np {
            if s.procs[d].alive == 0 || s.procs[d].pc == Pc::Join && s.procs[d].seat == NONE { continue; }
            if s.procs[d].done == 1 && !(0..np).any(|p| p != d && s.procs[p].pc == Pc::Join) { continue; }
            let wanted = (0..np).any(|p| p != d && active(p) && waits_on(c, s, p, d));
            if c.eager_death || wanted {
                let mut t = *s;
                t.procs[d].alive = 0;
                t.deaths += 1;
                cover(rep, &format!("kill at {:?}", s.procs[d].pc));
                out.push((format!("P{d} KILLED at {:?}", s.procs[d].pc), t));
            }
        }
    }
    let joiners_only = (0..np).all(|p| !active(p) || (s.procs[p].pc == Pc::Join));
    if live_steps == 0 {
        if !joiners_only { return Err(format!("deadlock: {:?}", (0..np).filter(|&p| active(p)).map(|p| (p, s.procs[p].pc)).collect::<Vec<_>>())); }
        rep.ends += 1;
        quiescent(c, s, lin)?;
    }
    Ok(out)
}

fn cover(rep: &mut Report, l: &str) {
    if let Some(n) = rep.cover.get_mut(l) { *n += 1 } else { rep.cover.insert(l.to_string(), 1); }
}
/// Names the plan that process p is about to publish.
fn kind(c: &Config, s: &State, p: usize) -> String {
    let q = &s.procs[p];
    let op = c.op(p, q.opi);
    let b = &s.seats[q.seat as usize].body;
    let name = format!("{op:?}");
    format!("plan {}: {} hole, {} stores, {} ctl{}{}", name.split('(').next().unwrap_or(""), (b.hole != NONE) as u8, b.nw, q.nheld, if b.kill != NONE { ", kills" } else { "" }, if b.out != NONE { ", to sink" } else { "" })
}

/// A get that runs alone, over the cells only.
pub fn scan(c: &Config, s: &State, k: u8) -> Option<u8> {
    let h = c.home(k);
    let key = c.keys[k as usize].key32;
    for arr in 0..c.arrays() {
        let b = s.cells[arr * c.nc() + h];
        if b.kind != BASE { continue; }
        for i in 0..c.w {
            if b.bits & (1 << i) == 0 { continue; }
            let x = s.cells[arr * c.nc() + h + i];
            let ours = if i == 0 { x.kind == BASE } else { x.kind == MEMBER && x.bits as usize == i };
            if ours && x.key == key {
                let r = s.recs[x.rec as usize];
                if r.gen == x.gen && r.key == k && !(c.is(Mutant::HitNeedsLive) && r.st != LIVE) { return Some(r.val); }
            }
        }
    }
    None
}

fn surely_present(c: &Config, s: &State, k: u8) -> bool {
    let mut there = c.init.iter().any(|x| x.0 == k);
    let mut id = 0;
    for (_, ops) in &c.procs {
        for op in ops {
            let h = s.hist[id];
            if h.leave == k + 1 && h.status != UNBORN { return false; }
            if op.key() == k {
                match op {
                    Op::Remove(_) => if h.status != UNBORN { return false },
                    Op::Add(..) | Op::Set(..) => if h.status == RETURNED && h.res == R_OK { there = true },
                    _ => {}
                }
            }
            id += 1;
        }
    }
    there
}

fn quiescent(c: &Config, s: &State, lin: &mut HashMap<Vec<u8>, Option<String>>) -> Result<(), String> {
    let ndead = s.seats.iter().filter(|x| dead(s, x.owner)).count();
    settle(c, s, [0, 1, 2], lin)?;
    if ndead > 1 { settle(c, s, [2, 1, 0], lin)?; }
    if ndead > 2 { settle(c, s, [1, 2, 0], lin)?; }
    Ok(())
}

/// A janitor recovers the dead seats in the given order, alone; then everything is checked.
fn settle(c: &Config, s: &State, order: [usize; MAXSEAT], lin: &mut HashMap<Vec<u8>, Option<String>>) -> Result<(), String> {
    let mut s = *s;
    for t in order {
        if dead(&s, s.seats[t].owner) {
            let q = &mut s.procs[JANITOR];
            q.rs = t as u8; q.rd = s.seats[t].owner; q.ri = 0; q.rret = Pc::Idle; q.pc = Pc::RLock;
            let mut n = 0;
            while s.procs[JANITOR].pc != Pc::Idle {
                match step(c, &s, JANITOR) { Step::Next(x, _) => s = x, Step::Bad(e) => return Err(format!("janitor: {e}")), _ => return Err("recovery waits for ever".into()) }
                n += 1;
                if n > 300 { return Err("recovery does not end".into()); }
            }
        }
    }
    invariants(c, &s)?;
    // history
    let mut sig: Vec<u8> = Vec::new();
    for i in 0..c.nops() { let h = s.hist[i]; sig.extend([h.status, h.res, h.preds, h.leave]); }
    for k in 0..c.keys.len() as u8 { sig.push(scan(c, &s, k).unwrap_or(NONE)); }
    for e in &s.sink { sig.extend([e.key, e.val, e.times]); }
    sig.push((s.deaths > 0) as u8);
    if let Some(r) = lin.get(&sig) { return match r { None => Ok(()), Some(e) => Err(e.clone()) }; }
    let r = history(c, &s);
    lin.insert(sig, r.clone().err());
    r
}

/// The invariants of the map, as far as cells and records show them.
pub fn invariants(c: &Config, s: &State) -> Result<(), String> {
    let nc = c.nc();
    let mut linked = vec![0; c.nrec];
    let mut keys = vec![0; c.keys.len()];
    for arr in 0..c.arrays() {
        for pos in 0..nc {
            let x = s.cells[arr * nc + pos];
            match x.kind {
                EMPTY => { if x != ZERO { return Err(format!("I3: empty cell {pos} not zero")); } continue; }
                BASE => {
                    if x.bits & 1 == 0 || pos >= c.n { return Err(format!("I2: base {pos} malformed")); }
                    for i in 1..c.w {
                        let y = s.cells[arr * nc + pos + i];
                        let is = y.kind == MEMBER && y.bits as usize == i;
                        if is != (x.bits & (1 << i) != 0) { return Err(format!("I2: base {pos} bit {i} does not match its cell (array {arr})")); }
                    }
                }
                _ => { let b = pos.wrapping_sub(x.bits as usize); if b >= c.n || s.cells[arr * nc + b].kind != BASE { return Err(format!("I2/I5: member {pos} without base (array {arr})")); } }
            }
            let bucket = if x.kind == BASE { pos } else { pos - x.bits as usize };
            let r = s.recs[x.rec as usize];
            if r.st != LIVE || r.gen != x.gen { return Err(format!("I7: cell {pos} points to a record that is {} at generation {} (cell says {})", r.st, r.gen, x.gen)); }
            match c.id(x.key, bucket) { Some(k) if k == r.key => keys[k as usize] += 1, _ => return Err(format!("I7: cell {pos} and record {} disagree on the key", x.rec)) }
            linked[x.rec as usize] += 1;
        }
    }
    if let Some(k) = keys.iter().position(|&n| n > 1) { return Err(format!("I1: key {} is live {} times", c.keys[k].name, keys[k])); }
    for r in 0..c.nrec {
        match s.recs[r].st { FREE => {}, LIVE => if linked[r] != 1 { return Err(format!("I6: record {r} is LIVE but linked {} times", linked[r])) }, x => return Err(format!("I5/I6: record {r} left in preparation by seat {}", x - 1)) }
    }
    for (i, w) in s.ctl.iter().enumerate() { if w.own != 0 { return Err(format!("I5: control word {i} still locked by seat {}", w.own - 1)); } }
    for (i, t) in s.seats.iter().enumerate() {
        if t.phase != IDLE { return Err(format!("I5: intent of seat {i} in phase {}", t.phase)); }
        if dead(s, t.owner) { return Err(format!("I5: seat {i} still belongs to the dead")); }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Ev { Put(u8), PutNew(u8), NoNew, Upd(u8), NoUpd, Del, NoDel, Hit(u8), Miss, Leave }

/// Per key: is there an order of the operations, consistent with real time, that explains all results,
/// the final content and the sink? Operations of the dead may or may not have happened.
fn history(c: &Config, s: &State) -> Result<(), String> {
    let ops: Vec<Op> = c.procs.iter().flat_map(|p| p.1.iter().copied()).collect();
    for k in 0..c.keys.len() as u8 {
        let mut ev: Vec<(Ev, u8, bool, usize)> = Vec::new(); // event, preds, must, operation
        for (i, op) in ops.iter().enumerate() {
            let h = s.hist[i];
            if h.status == UNBORN { continue; }
            let must = h.status == RETURNED;
            if h.leave == k + 1 { ev.push((Ev::Leave, h.preds, must, i)); }
            if op.key() != k { continue; }
            let e = match (op, must, h.res) {
                (_, true, R_FULL) => continue,
                (Op::Evict(_) | Op::Promote(_), _, _) => continue,
                (Op::Add(_, v), true, R_OK) | (Op::Add(_, v), false, _) => Ev::PutNew(*v),
                (Op::Add(..), true, _) => Ev::NoNew,
                (Op::Set(_, v), _, _) => Ev::Put(*v),
                (Op::Update(_, v), true, R_OK) | (Op::Update(_, v), false, _) => Ev::Upd(*v),
                (Op::Update(..), _, _) => Ev::NoUpd,
                (Op::Remove(_), true, R_OK) | (Op::Remove(_), false, _) => Ev::Del,
                (Op::Remove(_), _, _) => Ev::NoDel,
                (Op::Get(_), false, _) => continue,
                (Op::Get(_), _, R_NO) => Ev::Miss,
                (Op::Get(_), _, v) => Ev::Hit(v),
            };
            ev.push((e, h.preds, must, i));
        }
        let init = c.init.iter().find(|x| x.0 == k).map(|x| x.1);
        let fin = scan(c, s, k);
        let mut sunk: Vec<u8> = s.sink.iter().filter(|e| e.key == k + 1).map(|e| e.val).collect();
        sunk.sort();
        if !search(&ev, 0, init, &mut Vec::new(), fin, &sunk) {
            return Err(format!("history of key {} is not linearizable: {} final {:?} sink {:?}", c.keys[k as usize].name, ev.iter().map(|e| format!("op{}:{:?}/{}", e.3, ops[e.3], s.hist[e.3].res)).collect::<Vec<_>>().join(" "), fin, sunk));
        }
        if s.deaths == 0 { if let Some(e) = s.sink.iter().find(|e| e.key == k + 1 && e.times != 1) { return Err(format!("sink got key {} {} times without a death", c.keys[k as usize].name, e.times)); } }
    }
    Ok(())
}
fn search(ev: &[(Ev, u8, bool, usize)], used: u32, cur: Option<u8>, left: &mut Vec<u8>, fin: Option<u8>, sunk: &[u8]) -> bool {
    if (0..ev.len()).all(|i| used & (1 << i) != 0 || !ev[i].2) && cur == fin {
        let mut l = left.clone();
        l.sort();
        if l == sunk { return true; }
    }
    for i in 0..ev.len() {
        if used & (1 << i) != 0 { continue; }
        // everything that returned before this one was called must already be in the order
        if (0..ev.len()).any(|j| used & (1 << j) == 0 && ev[j].2 && ev[i].1 & (1 << ev[j].3) != 0) { continue; }
        let next = match (ev[i].0, cur) {
            (Ev::Put(v), _) => Some(v),
            (Ev::PutNew(v), None) => Some(v),
            (Ev::NoNew, Some(v)) => Some(v),
            (Ev::Upd(v), Some(_)) => Some(v),
            (Ev::NoUpd, None) | (Ev::NoDel, None) | (Ev::Miss, None) => None,
            (Ev::Del, Some(_)) => None,
            (Ev::Hit(v), Some(w)) if v == w => Some(v),
            (Ev::Leave, Some(w)) => { left.push(w); if search(ev, used | 1 << i, None, left, fin, sunk) { return true; } left.pop(); continue; }
            _ => continue,
        };
        if search(ev, used | 1 << i, next, left, fin, sunk) { return true; }
    }
    false
}

pub fn dump(c: &Config, s: &State) {
    for a in 0..c.arrays() {
        eprintln!("array {a}");
        for p in 0..c.nc() { eprintln!("  {p}: {:?}", s.cells[a * c.nc() + p]); }
    }
    for r in 0..c.nrec { eprintln!("rec {r}: {:?}", s.recs[r]); }
    eprintln!("ctl {:?}", s.ctl);
    for t in &s.seats { eprintln!("seat owner {} rlock {} phase {} ctl {:?} rec {} hole {} nw {}", t.owner, t.rlock, t.phase, t.ctl, t.rec, t.body.hole, t.body.nw); }
    for q in &s.procs[..c.procs.len()] { eprintln!("{:?}", q); }
    eprintln!("hist {:?} sink {:?}", &s.hist[..c.nops()], s.sink);
}
