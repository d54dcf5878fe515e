//! Exhaustive check of LineMap's word protocol (rules: RULES.md).
//! Sequential consistency, one shared access per step, exact linearizability per key, no waiting (a cycle of states is an error).
//!
//!     rustc -O linemap.rs && ./linemap all | set NAME | one SCENARIO | mutations | mutation NAME
//!
//! Tables that nobody stands in are dropped and the others renumbered, so a run may migrate any number of times: a livelock over
//! ever new tables is a cycle of states too.
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

// Key word; 2 + key is a key.
const EMPTY: u8 = 0;
const CLOSED: u8 = 1;
// Value word.
const VIRGIN: u8 = 0;
const TOMB: u8 = 1;
const MOVED: u8 = 2;
const OWN: u8 = 3; // the value is in the cell of this slot
const FROZEN: u8 = 4; // + seat
const ESC: u8 = 16; // + cell
const PLAIN: u8 = 32; // and above: a value as it is
const SPECIAL: u8 = 0x80; // a value with this bit has no word of its own
const NONE: u8 = 0xff;

const NT: usize = 4; // tables at a time, at most
const NS: usize = 5; // slots of a table, at most
const NC: usize = 3; // cells of a table, at most
const NTH: usize = 4; // threads
const NK: usize = 3; // keys

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op { Get, Ins, InsS, Rem, Cas, CasS, Flip, Grow, Help }
use Op::*;
// Codes in a thread's `op`: 1 get, 2 insert, 3 remove, 4 grow, 5 help, 6 compare and exchange, 7 flip (an update: v becomes v ^ SPECIAL).

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
struct Thr {
    prog: u8, op: u8, key: u8, val: u8, exp: u8, pc: u8, t: u8, i: u8,
    v: u8, dv: u8, nv: u8, fro: u8, x: u8, ci: u8, ret: u8, w: u8,
    cell: u8, cval: u8, seat: u8, mask: u8, sn: [u8; 4], slow: u8, pad: [u8; 7],
}
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
struct Tab { k: [u8; NS], v: [u8; NS], own: [u8; NS], cell: [u8; NC], taken: u8, next: u8, tag: [u8; NS], pad: [u8; 3] }
const LINK: u8 = 15; // the way to further lines; stands in a place of its own
const FRESH: Tab = Tab { k: [0; NS], v: [0; NS], own: [0; NS], cell: [0; NC], taken: 0, next: 0, tag: [0; NS], pad: [0; 3] };
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
struct St { tab: [Tab; NT], th: [Thr; NTH], mon: [u32; NK], root: u8, seats: u8, desc: [u8; NTH], deaths: u8, pad: u8 }

struct Sc {
    name: &'static str, set: &'static str,
    progs: Vec<Vec<Vec<(Op, u8)>>>,
    init: Vec<(u8, u8)>, // key and value, slot by slot; NONE as key: an EMPTY slot
    slots: u8, lanes: u8,
    home: [u8; NK],
    same: bool,        // all threads write the same values
    cells: u8,         // cells per table for writers
    snap: u8,          // 0: lanes one by one in order; 1: lanes in any order; 2: halves in either order; 3: four at once
    proto: bool,       // as the prototype's fast paths: any EMPTY of the snapshot, then `next` must be null
    lazy: bool,        // an insert may stay in T although S is there (G5: S is not ready)
    unfiltered: bool,  // a get may skip the tags
    fixed: bool,       // key 0 has a slot of its own, the last one of every table
    pool: u8,          // helpers share so many seats (0: every thread has its own)
    mortal: u8,        // this thread may die inside of an operation
    limit_tables: u8,
    late: u8,          // this thread's helping begins at the second slot and ends with the first
    link: u8,          // this place is a link: EMPTY, CLOSED, or LINK (the probe goes on)
    mutation: String,
}
impl Sc {
    fn lim(&self) -> u8 { if self.fixed { self.slots - 1 } else { self.slots } }
    fn start(&self, key: u8) -> u8 { if self.fixed && key == 0 { self.slots - 1 } else { self.home[key as usize] } }
    fn next_line(&self, i: u8) -> u8 { if i >= self.lim() { i + 1 } else { ((i / self.lanes + 1) * self.lanes).min(self.lim()) } }
    fn base(&self, i: u8) -> u8 { i - i % self.lanes }
    /// A slot with a tag: not a key's own, and not behind the link.
    fn has_tag(&self, key: u8, i: u8) -> bool { !(self.fixed && key == 0) && i < self.link.min(self.lim()) }
    fn table(&self) -> Tab { let mut t = FRESH; if self.fixed { t.k[self.slots as usize - 1] = 2; } t }
}

// ---- The monitor: the set of (value, what has become of each operation) that the history so far allows, interned.
type Conf = (u8, [u32; NTH]);
const PEND: u32 = 1 << 24;
const DONE: u32 = 2 << 24;
#[derive(Default)]
struct Mon { sets: Vec<Vec<Conf>>, ids: HashMap<Vec<Conf>, u32>, memo: HashMap<(u32, u8, u32), u32> }
thread_local! { static MON: RefCell<Mon> = RefCell::new(Mon::default()); static CUT: RefCell<usize> = const { RefCell::new(0) }; }
fn apply(code: u32, val: u8) -> u8 {
    let (op, new, exp) = ((code >> 16) as u8, (code >> 8) as u8, code as u8);
    match op { 1 => val, 2 => new, 3 => NONE, 6 => if val == exp { new } else { val }, 7 => if val == NONE { NONE } else { val ^ SPECIAL }, _ => unreachable!() }
}
impl Mon {
    fn intern(&mut self, mut set: Vec<Conf>) -> u32 {
        set.sort_unstable(); set.dedup();
        if let Some(&id) = self.ids.get(&set) { return id; }
        let id = self.sets.len() as u32; self.sets.push(set.clone()); self.ids.insert(set, id); id
    }
    fn closure(&self, id: u32) -> Vec<Conf> {
        let mut all = self.sets[id as usize].clone(); let mut seen: HashSet<Conf> = all.iter().copied().collect(); let mut at = 0;
        while at < all.len() {
            let (val, s) = all[at]; at += 1;
            for j in 0..NTH { if s[j] >> 24 == 1 { let mut n = s; n[j] = DONE | val as u32; let c = (apply(s[j] & 0xff_ffff, val), n); if seen.insert(c) { all.push(c); } } }
        }
        all
    }
    fn invoke(&mut self, id: u32, j: usize, code: u32) -> u32 {
        if let Some(&r) = self.memo.get(&(id, j as u8, PEND | code)) { return r; }
        let set = self.sets[id as usize].iter().map(|&(v, mut s)| { s[j] = PEND | code; (v, s) }).collect();
        let r = self.intern(set); self.memo.insert((id, j as u8, PEND | code), r); r
    }
    fn respond(&mut self, id: u32, j: usize, res: u8) -> Option<u32> {
        let e = (id, j as u8, DONE | res as u32);
        if let Some(&r) = self.memo.get(&e) { return (r != u32::MAX).then_some(r); }
        let set: Vec<Conf> = self.closure(id).into_iter().filter(|c| c.1[j] == DONE | res as u32).map(|(v, mut s)| { s[j] = 0; (v, s) }).collect();
        let r = if set.is_empty() { u32::MAX } else { self.intern(set) };
        self.memo.insert(e, r); (r != u32::MAX).then_some(r)
    }
}

// ---- Steps. Each arm makes one shared access at most; what needs none goes on at once.
const DEAD: u8 = 255;
const P_ROOT: u8 = 1; const P_FILT: u8 = 2; const P_FNEXT: u8 = 3; const P_PROBE: u8 = 4; const P_CONC: u8 = 5; const P_VAL: u8 = 6; const P_ACT: u8 = 7; const P_DEC: u8 = 8; const P_DECIDE: u8 = 9;
const P_TAKE: u8 = 10; const P_STORE: u8 = 11; const P_CAS: u8 = 12; const P_TH1: u8 = 13; const P_TH2: u8 = 14; const P_LATEF: u8 = 15; const P_PNEXT: u8 = 16; const P_LATECELL: u8 = 18; const P_PRENEXT: u8 = 19; const P_THAW: u8 = 17; const P_SHARE: u8 = 25; const P_FILT0: u8 = 26; const P_TAG: u8 = 27; const P_PASS: u8 = 28;
const P_ENEXT: u8 = 20; const P_ECLOSE: u8 = 21; const P_EFILT: u8 = 22; const P_EK: u8 = 23; const P_EARLY: u8 = 24;
const C_PROBE: u8 = 30; const C_CONC: u8 = 31; const C_F: u8 = 32; const C_K: u8 = 33; const C_V: u8 = 34; const C_OWN: u8 = 35; const C_VCAS: u8 = 36; const C_MOVED: u8 = 37; const C_TAKE: u8 = 38; const C_STORE: u8 = 39; const C_TAG: u8 = 40; const C_PASS: u8 = 41;
const M_NEXT: u8 = 50; const M_K: u8 = 51; const M_CLOSE: u8 = 52; const M_V: u8 = 53; const M_ACT: u8 = 54; const M_DEC: u8 = 55; const M_DESC: u8 = 56; const M_FRZ: u8 = 57; const M_TH1: u8 = 58; const M_TH2: u8 = 59; const M_KILL: u8 = 60; const M_ROOT: u8 = 61; const M_LATEDESC: u8 = 62;
const X_NEXT: u8 = 70; const X_ROOT: u8 = 71; const X_SET: u8 = 72; const X_HELP: u8 = 73;
const G_NEXT: u8 = 80;
const SLOTRET_HELP: u8 = 1; // after a slot: the next one; else the operation goes on in S

type Out = Vec<St>;
fn special(v: u8) -> bool { v != NONE && v & SPECIAL != 0 }
fn token(v: u8) -> bool { v == OWN || (ESC..PLAIN).contains(&v) }
impl St {
    fn respond(&mut self, sc: &Sc, j: usize, r: u8) -> Result<(), String> {
        let key = self.th[j].key as usize;
        match MON.with(|m| m.borrow_mut().respond(self.mon[key], j, r)) {
            Some(id) => { self.mon[key] = id; self.end(sc, j); Ok(()) }
            None => Err(format!("thread {j} op {} key {key} answered {r}", self.th[j].op)),
        }
    }
    fn end(&mut self, sc: &Sc, j: usize) {
        if sc.pool > 0 && self.th[j].op == 5 && sc.mutation != "seat_early" { self.seats &= !(1 << self.th[j].seat); }
        self.th[j] = Thr { prog: self.th[j].prog + 1, ..Thr::default() };
    }
    /// The operation goes on in the next table.
    fn onward(&mut self, sc: &Sc, j: usize, fro: u8) {
        let key = self.th[j].key; let t = &mut self.th[j];
        *t = Thr { prog: t.prog, op: t.op, key, val: t.val, exp: t.exp, pc: P_PROBE, t: t.t + 1, i: sc.start(key), fro, cell: NONE, seat: t.seat, slow: t.slow, ..Thr::default() };
    }
    /// The operation begins again at the root.
    fn again(&mut self, j: usize, slow: u8) {
        let t = &mut self.th[j];
        *t = Thr { prog: t.prog, op: t.op, key: t.key, val: t.val, exp: t.exp, pc: P_ROOT, fro: NONE, cell: NONE, seat: t.seat, slow, ..Thr::default() };
    }
    /// The slot in hand is MOVED.
    fn settled(&mut self, sc: &Sc, j: usize) {
        if self.th[j].ret == SLOTRET_HELP { let t = &mut self.th[j]; t.i += 1; (t.v, t.dv, t.x, t.ci, t.w, t.mask, t.sn, t.ret) = (0, 0, 0, 0, 0, 0, [0; 4], 0); t.pc = M_K; } else { self.onward(sc, j, NONE); }
    }
    /// Drops tables that nobody can reach any more.
    fn normalize(&mut self, sc: &Sc) {
        while self.root > 0 && self.th.iter().all(|t| t.pc == 0 || t.pc == P_ROOT || t.pc == DEAD || t.t > 0) {
            self.tab.copy_within(1.., 0); self.tab[NT - 1] = sc.table(); self.root -= 1;
            for t in &mut self.th { if t.pc != 0 && t.pc != P_ROOT && t.pc != DEAD { t.t -= 1; } }
        }
    }
}
fn step(sc: &Sc, s: &St, j: usize, out: &mut Out) -> Result<(), String> {
    let mu = sc.mutation.as_str();
    let th = s.th[j];
    if th.pc == 0 { // choose the next operation
        let prog = &sc.progs[j]; if th.prog as usize >= prog.len() { return Ok(()); }
        for &(op, key) in &prog[th.prog as usize] {
            let mut n = *s; let t = &mut n.th[j];
            (t.key, t.fro, t.cell, t.pc, t.seat) = (key, NONE, NONE, P_ROOT, j as u8);
            let plain = if sc.same { PLAIN } else { PLAIN + (j as u8) * 3 + th.prog };
            (t.op, t.val) = match op { Get => (1, 0), Ins => (2, plain), InsS => (2, plain | SPECIAL), Rem => (3, 0), Grow => (4, 0), Help => (5, 0), Cas => (6, plain), CasS => (6, plain | SPECIAL), Flip => (7, 0) };
            if t.op == 6 { t.exp = sc.init.iter().find(|e| e.0 == key).map_or(NONE - 1, |e| e.1); }
            if op == Help && sc.pool > 0 {
                let Some(seat) = (0..sc.pool).find(|&x| n.seats >> x & 1 == 0) else { continue };
                n.seats |= 1 << seat; n.th[j].seat = seat;
            }
            let t = n.th[j];
            if t.op != 4 && t.op != 5 { let code = (t.op as u32) << 16 | (t.val as u32) << 8 | t.exp as u32; n.mon[key as usize] = MON.with(|m| m.borrow_mut().invoke(n.mon[key as usize], j, code)); }
            out.push(n);
        }
        return Ok(());
    }
    let mut n = *s; let kk = 2 + th.key; let (t, i) = (th.t as usize, th.i as usize); let is_fixed = sc.fixed && th.key == 0;
    let overlap = mu == "grow_early" || mu == "full_ignores_root"; // S may be left before T is complete: then a copy stops at CLOSED, as the first model had it
    let carry = mu.starts_with("carry"); // a get takes the frozen value along to S, as the first model had it
    let sharing = mu.starts_with("share"); // a cell that holds the value already is used again
    macro_rules! go { ($pc:expr) => { n.th[j].pc = $pc } }
    macro_rules! on { ($pc:expr) => {{ n.th[j].pc = $pc; return forward(sc, n, j, out); }} }
    macro_rules! answer { ($r:expr) => {{ n.respond(sc, j, $r)?; out.push(n); return Ok(()); }} }
    macro_rules! off { () => {{ if th.op == 2 { return Err("an insert ran off".into()); } answer!(th.fro) }} }
    match th.pc {
        P_ROOT => {
            n.th[j].t = s.root; n.th[j].i = sc.start(th.key);
            match th.op { 4 => go!(G_NEXT), 5 => { n.th[j].i = 0; go!(M_NEXT) } 1 if !is_fixed && th.slow == 0 && n.th[j].i != sc.link => { if sc.unfiltered { let mut m = n; m.th[j].pc = P_PROBE; out.push(m); } n.th[j].ci = n.th[j].i; go!(if mu == "next_then_tags" { P_FILT0 } else { P_FILT }) } _ => go!(P_PROBE) }
            if mu == "next_before" && th.op <= 3 && th.slow == 0 { go!(P_PRENEXT) }
        }
        P_PRENEXT => if s.tab[t].next == 0 { go!(P_PROBE) } else { n.again(j, 1) },
        P_FILT0 => if s.tab[t].next != 0 { n.th[j].ci = 0; go!(P_PROBE) } else { go!(P_FILT) },
        P_FILT => { // the tags of a line, one after the other; `x`: one of them was 0
            let tag = s.tab[t].tag[th.ci as usize]; let c = th.ci + 1;
            if tag == 0 { n.th[j].x = 1; }
            n.th[j].ci = c;
            if tag == kk { (n.th[j].ci, n.th[j].x) = (0, 0); go!(P_PROBE) }
            else if c % sc.lanes == 0 || c == sc.lim() {
                let zero = n.th[j].x == 1; n.th[j].x = 0;
                if zero { n.th[j].ci = 0; if mu == "tags_ignore_next" || mu == "next_then_tags" { answer!(NONE) } go!(P_FNEXT) }
                else if c == sc.lim() || c == sc.link { n.th[j].ci = 0; go!(P_PROBE) }
            }
        }
        P_FNEXT => if s.tab[t].next == 0 { answer!(NONE) } else { go!(P_PROBE) },
        P_PROBE => {
            if is_fixed { if s.tab[t].k[i] != kk { return Err("the key's own slot".into()); } on!(P_VAL) }
            if th.i >= sc.lim() { if sc.proto && th.slow == 0 { n.again(j, 1); out.push(n); return Ok(()); } off!() }
            if sc.snap > 0 && !(sc.proto && th.slow == 1) { return snapshot(sc, s, j, t, th.i, P_CONC, out); }
            let early = mu == "v_before_k" && th.op == 1; // the value is loaded first, then the key
            if early && th.w == 0 { n.th[j].w = 1; n.th[j].nv = s.tab[t].v[i]; out.push(n); return Ok(()); }
            n.th[j].w = 0;
            let k = s.tab[t].k[i];
            if k == kk { if early { n.th[j].v = th.nv; n.th[j].nv = 0; on!(P_ACT) } go!(P_VAL) } else if k == EMPTY { match th.op { 2 => go!(P_ENEXT), _ => answer!(th.fro) } }
            else if k == CLOSED { if th.fro != NONE { return Err("CLOSED with a frozen value in hand".into()); } n.onward(sc, j, NONE) } else { n.th[j].i += 1 }
        }
        P_CONC => { // what a snapshot says
            let lanes = &th.sn[..sc.lanes as usize]; n.th[j].sn = [0; 4]; n.th[j].mask = 0;
            if th.slow == 2 { n.th[j].slow = 0; }
            let second = th.slow == 2; // a mutation's second look: what is free
            if !second { if let Some(l) = lanes.iter().position(|&k| k == kk) { n.th[j].i += l as u8; on!(P_VAL) } }
            if mu == "two_looks" && !second && th.op == 2 { n.th[j].slow = 2; on!(P_PROBE) }
            let blind = sc.proto || mu == "zeros_ignore_closed" || mu == "next_before";
            let stop = if mu == "last_free" { lanes.iter().rposition(|&k| k <= CLOSED) } else { lanes.iter().position(|&k| k == EMPTY || (k == CLOSED && !blind)) };
            match stop {
                None => { n.th[j].i += sc.lanes; on!(P_PROBE) }
                Some(l) if lanes[l] == CLOSED => { if th.fro != NONE { return Err("CLOSED with a frozen value in hand".into()); } n.onward(sc, j, NONE) }
                Some(l) => { n.th[j].i += l as u8; if sc.proto && mu != "next_before" { on!(P_PNEXT) } if th.op == 2 { if mu == "next_before" { on!(P_EFILT) } on!(P_ENEXT) } answer!(th.fro) }
            }
        }
        P_PNEXT => if s.tab[t].next != 0 { n.again(j, 1) } else if th.op == 2 { go!(P_EFILT) } else { answer!(th.fro) },
        P_VAL => { n.th[j].v = s.tab[t].v[i]; on!(P_ACT) }
        P_ACT => { let v = th.v;
            if v >= PLAIN { n.th[j].dv = v; on!(P_DECIDE) }
            if token(v) { n.th[j].pc = P_DEC; out.push(n); return Ok(()); }
            if v == MOVED { if th.slow == 0 && sc.proto { n.again(j, 1) } else { n.onward(sc, j, NONE) } }
            else if v <= TOMB { match th.op { 1 => answer!(if v == VIRGIN && mu != "carry_virgin_is_absent" { th.fro } else { NONE }), 2 => { n.th[j].dv = NONE; if v == VIRGIN && mu != "virgin_untagged" && mu != "tag_late" && sc.has_tag(th.key, th.i) { go!(P_TAG) } else { on!(P_DECIDE) } } _ => answer!(NONE) } }
            else { go!(P_TH1) } }
        P_DEC => { n.th[j].dv = if th.v == OWN { s.tab[t].own[i] } else { s.tab[t].cell[(th.v - ESC) as usize] }; on!(P_DECIDE) }
        P_DECIDE => {
            let new = match th.op { 1 => answer!(th.dv), 2 => th.val, 3 => NONE, 6 => if th.dv == th.exp { th.val } else { answer!(th.dv) }, _ => th.dv ^ SPECIAL };
            if !special(new) { n.th[j].nv = if new == NONE { if mu == "remove_to_virgin" { VIRGIN } else { TOMB } } else { new }; on!(P_CAS) }
            n.th[j].cval = new;
            if mu == "writer_uses_own" { n.th[j].nv = OWN; on!(P_STORE) }
            if th.cell == NONE || (mu == "share" && th.cval != new) { n.th[j].cell = NONE; on!(if sharing { P_SHARE } else { P_TAKE }) }
            n.th[j].nv = ESC + th.cell;
            on!(if th.cval == new { P_CAS } else { P_STORE })
        }
        P_SHARE => if s.tab[t].cell[0] == th.cval { n.th[j].nv = ESC; go!(P_CAS) } else { go!(P_TAKE) },
        P_TAKE => { let c = s.tab[t].taken;
            if c < sc.cells { n.tab[t].taken += 1; n.th[j].cell = c; n.th[j].nv = ESC + c; go!(if mu == "cell_late" { P_CAS } else { P_STORE }) }
            else if mu == "reuse_cell" { n.th[j].cell = 0; n.th[j].nv = ESC; go!(P_STORE) }
            else { n.th[j].cval = 0; go!(X_NEXT) } }
        P_STORE => { if th.nv == OWN { n.tab[t].own[i] = th.cval } else { n.tab[t].cell[(th.nv - ESC) as usize] = th.cval } go!(P_CAS) }
        P_CAS => { let now = s.tab[t].v[i];
            if now == th.v || mu == "blind_store" { n.tab[t].v[i] = th.nv; if mu == "tag_late" && sc.has_tag(th.key, th.i) { go!(P_LATEF) } else if mu == "cell_late" && token(th.nv) { go!(P_LATECELL) } else { answer!(th.dv) } }
            else { n.th[j].v = now; n.th[j].dv = 0; on!(P_ACT) } }
        P_LATEF => { n.tab[t].tag[i] = kk; answer!(th.dv) }
        P_LATECELL => { n.tab[t].cell[(th.nv - ESC) as usize] = th.cval; answer!(th.dv) }
        P_TH1 => { n.th[j].x = s.desc[(th.v - FROZEN) as usize]; if (mu == "no_recheck" && th.op != 1) || (mu == "get_no_recheck" && th.op == 1) || mu == "carry_no_recheck" { on!(P_THAW) } go!(P_TH2) }
        P_TH2 => { let now = s.tab[t].v[i]; if now == th.v { on!(P_THAW) } n.th[j].v = now; n.th[j].x = 0; on!(P_ACT) }
        P_THAW => { if th.op == 1 { if carry { n.onward(sc, j, th.x) } else { answer!(th.x) } } else { n.th[j].ret = 0; n.th[j].w = th.key; n.th[j].ci = sc.start(th.key); n.th[j].v = 0; go!(C_PROBE) } }
        P_ENEXT => if s.tab[t].next != 0 { if sc.lazy { let mut m = n; m.th[j].pc = P_EFILT; out.push(m); } go!(P_ECLOSE) } else { go!(P_EFILT) },
        P_ECLOSE => { if mu == "skip_empty" { n.onward(sc, j, NONE) } else if s.tab[t].k[i] == EMPTY { n.tab[t].k[i] = CLOSED; n.onward(sc, j, NONE) } else { reprobe(sc, &mut n, j) } }
        P_EFILT => { // the tags of the lines that were passed
            let from = sc.start(th.key); n.th[j].ci = from;
            if mu == "tag_early" && th.i != sc.link { on!(P_EARLY) }
            if from < sc.base(th.i) && mu != "passed_untagged" { on!(P_PASS) } n.th[j].ci = 0; on!(P_EK) }
        P_EARLY => { n.th[j].ci = 0; n.tab[t].tag[i] = kk; go!(P_EK) }
        P_PASS => { let c = th.ci as usize; if sc.has_tag(NONE, th.ci) { n.tab[t].tag[c] = s.tab[t].k[c]; } n.th[j].ci += 1; if th.ci + 1 >= sc.base(th.i) || th.ci + 1 == sc.link { n.th[j].ci = 0; go!(P_EK) } }
        P_EK if th.i == sc.link => { if s.tab[t].k[i] == EMPTY { n.tab[t].k[i] = LINK; } reprobe(sc, &mut n, j) }
        P_EK => if s.tab[t].k[i] == EMPTY { n.tab[t].k[i] = kk; n.th[j].v = VIRGIN; n.th[j].dv = NONE; if mu == "tag_late" || mu == "tag_early" || !sc.has_tag(th.key, th.i) { on!(P_DECIDE) } else { go!(P_TAG) } } else { reprobe(sc, &mut n, j) },
        P_TAG => { n.tab[t].tag[i] = kk; on!(P_DECIDE) }
        // Copy of (w, x) from slot i of t into t + 1.
        C_PROBE => { let d = t + 1;
            if sc.fixed && th.w == 0 { on!(C_V) }
            if th.ci >= sc.lim() { return Err("a copy ran off".into()); }
            if sc.snap > 0 { return snapshot(sc, s, j, d, sc.base(th.ci), C_CONC, out); }
            let k = s.tab[d].k[th.ci as usize];
            if k == 2 + th.w { on!(if mu == "copy_stops_at_virgin" { C_MOVED } else if mu == "copy_found_untagged" { C_V } else { C_TAG }) } else if k == EMPTY { on!(C_F) } else if k == CLOSED { if overlap { go!(C_MOVED) } else { return Err("a copy met CLOSED".into()); } } else { n.th[j].ci += 1 } }
        C_CONC => {
            let lanes = &th.sn[..sc.lanes as usize]; n.th[j].sn = [0; 4]; n.th[j].mask = 0; let b = sc.base(th.ci);
            if let Some(l) = lanes.iter().position(|&k| k == 2 + th.w) { n.th[j].ci = b + l as u8; on!(if mu == "copy_found_untagged" { C_V } else { C_TAG }) }
            match lanes.iter().position(|&k| k <= CLOSED) { None => { n.th[j].ci = b + sc.lanes; on!(C_PROBE) } Some(l) if lanes[l] == CLOSED => return Err("a copy met CLOSED".into()), Some(l) => { n.th[j].ci = b + l as u8; on!(C_F) } } }
        C_F => { n.th[j].nv = sc.start(th.w); if n.th[j].nv < sc.base(th.ci) && mu != "copy_passed_untagged" { on!(C_PASS) } n.th[j].nv = 0; on!(C_K) }
        C_PASS => { let c = th.nv as usize; if sc.has_tag(NONE, th.nv) { n.tab[t + 1].tag[c] = s.tab[t + 1].k[c]; } n.th[j].nv += 1; if th.nv + 1 >= sc.base(th.ci) || th.nv + 1 == sc.link { n.th[j].nv = 0; go!(C_K) } }
        C_K if th.ci == sc.link => { let k = &mut n.tab[t + 1].k[th.ci as usize]; if *k == EMPTY { *k = LINK; } go!(C_PROBE) }
        C_K => { let c = th.ci as usize; if s.tab[t + 1].k[c] == EMPTY { n.tab[t + 1].k[c] = 2 + th.w; on!(C_TAG) } n.th[j].ci = sc.base(th.ci); go!(C_PROBE) }
        C_TAG => { if mu == "copy_tag_late" || !sc.has_tag(th.w, th.ci) { on!(C_V) } n.tab[t + 1].tag[th.ci as usize] = 2 + th.w; on!(C_V) }
        C_V => { if special(th.x) { on!(if mu == "copies_by_counter" { C_TAKE } else { C_OWN }) } n.th[j].nv = th.x; on!(C_VCAS) }
        C_TAKE => { let d = t + 1; let c = s.tab[d].taken; if c >= sc.cells { return Err("no cell for a copy".into()); } n.tab[d].taken += 1; n.th[j].nv = ESC + c; go!(C_STORE) }
        C_STORE => { n.tab[t + 1].cell[(th.nv - ESC) as usize] = th.x; go!(C_VCAS) }
        C_OWN => { n.tab[t + 1].own[th.ci as usize] = th.x; n.th[j].nv = OWN; go!(C_VCAS) }
        C_VCAS => { let v = &mut n.tab[t + 1].v[th.ci as usize]; if *v == VIRGIN || (mu == "copy_revives_tomb" && *v == TOMB) { *v = th.nv; } go!(C_MOVED) }
        C_MOVED => { if mu == "copy_tag_late" && sc.has_tag(th.w, th.ci) { n.tab[t + 1].tag[th.ci as usize] = 2 + th.w; } if !(mu == "writer_leaves_frozen" && th.ret == 0 && th.op != 5) { n.tab[t].v[i] = MOVED; } n.settled(sc, j) }
        // A mover: every slot of t.
        M_NEXT => if s.tab[t].next == 0 { if th.op == 5 { n.end(sc, j) } else { n.again(j, 1) } } else { let late = sc.late as usize == j && th.op == 5; n.th[j].i = u8::from(late); n.th[j].slow = if late { 1 } else { th.slow }; if mu == "early_root" { go!(M_ROOT) } else { go!(M_K) } },
        M_K => {
            if th.op == 5 && th.slow == 1 && th.i >= sc.slots { n.th[j].i = 0; n.th[j].slow = 2; on!(M_K) }
            if th.i >= sc.slots || (th.op == 5 && th.slow == 2 && th.i >= 1) { on!(M_ROOT) } let k = s.tab[t].k[i];
            if k == EMPTY { if mu == "leave_empty" { n.th[j].i += 1; } else { go!(M_CLOSE) } } else if k == CLOSED { n.th[j].i = sc.next_line(th.i) } else if k == LINK { n.th[j].i += 1 } else { n.th[j].w = k - 2; n.th[j].ret = SLOTRET_HELP; go!(M_V) } }
        M_CLOSE => if s.tab[t].k[i] == EMPTY { n.tab[t].k[i] = CLOSED; n.th[j].i = sc.next_line(th.i); go!(M_K) } else { go!(M_K) },
        M_V => { n.th[j].v = s.tab[t].v[i]; on!(M_ACT) }
        M_ACT => { let v = th.v;
            if v == MOVED { n.settled(sc, j) } else if v <= TOMB { go!(M_KILL) }
            else if v >= PLAIN { n.th[j].x = v; go!(M_DESC) } else if token(v) { go!(M_DEC) } else { go!(M_TH1) } }
        M_DEC => { n.th[j].x = if th.v == OWN { s.tab[t].own[i] } else { s.tab[t].cell[(th.v - ESC) as usize] }; go!(M_DESC) }
        M_KILL => { let now = s.tab[t].v[i]; if now == th.v { n.tab[t].v[i] = MOVED; n.settled(sc, j) } else { n.th[j].v = now; on!(M_ACT) } }
        M_DESC => { if mu == "desc_late" { on!(M_FRZ) } n.desc[th.seat as usize] = th.x; go!(M_FRZ) }
        M_FRZ => { let now = s.tab[t].v[i];
            if now == th.v {
                n.tab[t].v[i] = if mu == "moved_before_copy" { MOVED } else { FROZEN + th.seat }; n.th[j].ci = sc.start(th.w); n.th[j].v = 0;
                if mu == "seat_early" && sc.pool > 0 { n.seats &= !(1 << th.seat); }
                if mu == "desc_late" { go!(M_LATEDESC) } else { go!(C_PROBE) }
            } else { n.th[j].v = now; n.th[j].x = 0; on!(M_ACT) } }
        M_LATEDESC => { n.desc[th.seat as usize] = th.x; go!(C_PROBE) }
        M_TH1 => { n.th[j].x = s.desc[(th.v - FROZEN) as usize]; if mu == "no_recheck" { on!(M_TH2) } go!(M_TH2) }
        M_TH2 => { let now = if mu == "no_recheck" { th.v } else { s.tab[t].v[i] }; if now == th.v { n.th[j].ci = sc.start(th.w); n.th[j].v = 0; go!(C_PROBE) } else { n.th[j].v = now; n.th[j].x = 0; on!(M_ACT) } }
        M_ROOT => { if s.root as usize == t { n.root += 1 } if th.op == 5 { n.end(sc, j) } else { n.again(j, 1) } }
        // No cell left in t: the key goes to the successor, which is made if t is the root; else t's predecessor is completed first.
        X_NEXT => if s.tab[t].next != 0 { n.th[j].ret = 0; n.th[j].w = th.key; go!(M_V) } else { go!(X_ROOT) },
        X_ROOT => if s.root as usize == t || mu == "full_ignores_root" { go!(X_SET) } else { go!(X_HELP) },
        X_SET => {
            if t + 1 >= (sc.limit_tables as usize).min(NT) { CUT.with(|c| *c.borrow_mut() += 1); return Ok(()); }
            n.tab[t].next = 1; n.th[j].ret = 0; n.th[j].w = th.key; go!(M_V) }
        X_HELP => { n.th[j].t = s.root; n.th[j].i = 0; n.th[j].cell = NONE; go!(M_NEXT) }
        G_NEXT => { let t = if mu == "grow_early" { (0..NT).find(|&t| s.tab[t].next == 0).unwrap() } else { t }; if (s.root as usize == t || mu == "grow_early") && s.tab[t].next == 0 && t + 1 < sc.limit_tables as usize { n.tab[t].next = 1 } n.end(sc, j) }
        _ => unreachable!(),
    }
    out.push(n);
    Ok(())
}
/// Goes on at once where no shared access is made.
fn forward(sc: &Sc, n: St, j: usize, out: &mut Out) -> Result<(), String> {
    if matches!(n.th[j].pc, P_ACT | P_DECIDE | P_THAW | P_CONC | C_CONC | C_F | C_V | P_EFILT | M_ACT) { return step(sc, &n, j, out); }
    out.push(n);
    Ok(())
}
fn reprobe(sc: &Sc, n: &mut St, j: usize) {
    if sc.proto && n.th[j].slow == 0 { n.again(j, 1); return; }
    n.th[j].pc = P_PROBE;
    if sc.snap > 0 && !sc.proto { n.th[j].i = sc.base(n.th[j].i); }
}
/// One more load of a snapshot of the line at `b`; with the last one the conclusion follows.
fn snapshot(sc: &Sc, s: &St, j: usize, t: usize, b: u8, then: u8, out: &mut Out) -> Result<(), String> {
    let all = (1u8 << sc.lanes) - 1; let half = sc.lanes / 2;
    let units: Vec<u8> = match sc.snap { 1 => (0..sc.lanes).map(|l| 1 << l).collect(), 2 => vec![(1 << half) - 1, all & !((1 << half) - 1)], _ => vec![all] };
    for u in units {
        if s.th[j].mask & u != 0 { continue; }
        let mut n = *s; n.th[j].mask |= u;
        for l in 0..sc.lanes { if u >> l & 1 == 1 { n.th[j].sn[l as usize] = s.tab[t].k[(b + l) as usize]; } }
        if n.th[j].mask == all { n.th[j].pc = then; if then == P_CONC { n.th[j].i = b; } forward(sc, n, j, out)?; } else { out.push(n); }
    }
    Ok(())
}

// ---- Checks of states.
fn check(sc: &Sc, s: &St) -> Result<(), String> {
    for t in 0..NT { for key in 0..NK as u8 { if s.tab[t].k[..sc.slots as usize].iter().filter(|&&k| k == 2 + key).count() > 1 { return Err(format!("key {key} twice in table {t}")); } } }
    Ok(())
}
/// A sequential get of each key: first by the tags, then by a walk.
fn last_look(sc: &Sc, s: &St) -> Result<(), String> {
    for key in 0..NK as u8 {
        let mut t = s.root as usize; let mut fro = NONE;
        let r = 'o: {
            if !(sc.fixed && key == 0) && s.tab[t].next == 0 && no_tag(sc, &s.tab[t], key) { break 'o NONE; }
            'table: loop {
                let mut i = sc.start(key);
                loop {
                    if i >= sc.slots || (i >= sc.lim() && !(sc.fixed && key == 0)) { break 'o fro; }
                    let k = s.tab[t].k[i as usize];
                    if k == EMPTY { break 'o fro; }
                    if k == CLOSED { fro = NONE; t += 1; continue 'table; }
                    if k == 2 + key {
                        let v = s.tab[t].v[i as usize];
                        if v >= PLAIN { break 'o v; }
                        if v == OWN { break 'o s.tab[t].own[i as usize]; }
                        if v >= ESC { break 'o s.tab[t].cell[(v - ESC) as usize]; }
                        match v { VIRGIN => break 'o fro, TOMB => break 'o NONE, MOVED => fro = NONE, _ => fro = s.desc[(v - FROZEN) as usize] }
                        t += 1; continue 'table;
                    }
                    i += 1;
                }
            }
        };
        let ok = MON.with(|m| m.borrow().closure(s.mon[key as usize]).iter().any(|c| c.0 == r));
        if !ok { return Err(format!("at the end key {key} is {r}")); }
    }
    Ok(())
}

/// The tags say that the key is absent.
fn no_tag(sc: &Sc, t: &Tab, key: u8) -> bool {
    let mut b = sc.start(key);
    while b < sc.lim() && b != sc.link {
        let line = &t.tag[b as usize..sc.next_line(b) as usize];
        if line.contains(&(2 + key)) { return false; }
        if line.contains(&0) { return true; }
        b = sc.next_line(b);
    }
    false
}

// ---- The explorer: depth first; a state met again on its own path is a cycle.
#[derive(Default)]
struct Id(u64);
impl Hasher for Id { fn finish(&self) -> u64 { self.0 } fn write(&mut self, _: &[u8]) { unreachable!() } fn write_u128(&mut self, x: u128) { self.0 = x as u64 } }
type Set = HashSet<u128, BuildHasherDefault<Id>>;
fn fp(s: &St) -> u128 {
    const N: usize = size_of::<St>() / 4;
    // SAFETY: `St` is made of integers without padding (checked below), read as words of its alignment.
    let w: &[u32; N] = unsafe { &*std::ptr::from_ref(s).cast() };
    let (mut a, mut b) = (0x9e37_79b9_7f4a_7c15u64, 0xc2b2_ae3d_27d4_eb4fu64);
    for c in w.chunks(2) {
        let x = c[0] as u64 | (*c.get(1).unwrap_or(&0) as u64) << 32;
        let m = (a ^ x) as u128 * 0xd6e8_feb8_6659_fd93; a = (m as u64) ^ ((m >> 64) as u64).rotate_left(17) ^ x;
        let m = (b ^ x.rotate_left(32)) as u128 * 0xa076_1d64_78bd_642f; b = (m as u64).rotate_left(29) ^ (m >> 64) as u64 ^ x.wrapping_mul(0xe703_7ed1_a0b4_28db);
    }
    (a as u128) << 64 | b as u128
}
const _: () = assert!(size_of::<Thr>() == 32 && size_of::<Tab>() == 28 && size_of::<St>() == 28 * NT + 32 * NTH + 4 * NK + 8);
struct Found { states: usize, cut: usize, error: Option<String> }
fn explore(sc: &Sc, limit: usize) -> Found {
    MON.with(|m| *m.borrow_mut() = Mon::default()); CUT.with(|c| *c.borrow_mut() = 0);
    let absent = MON.with(|m| m.borrow_mut().intern(vec![(NONE, [0; NTH])]));
    let mut s = St { tab: [sc.table(); NT], th: Default::default(), mon: [absent; NK], root: 0, seats: 0, desc: [0; NTH], deaths: 0, pad: 0 };
    let mut taken = 0;
    for (at, &(key, v)) in sc.init.iter().enumerate() {
        if key == NONE { continue; }
        let i = if sc.fixed && key == 0 { sc.slots as usize - 1 } else { at };
        s.tab[0].k[i] = 2 + key; s.tab[0].tag[i] = 2 + key;
        if v >= PLAIN { s.mon[key as usize] = MON.with(|m| m.borrow_mut().intern(vec![(v, [0; NTH])])); }
        s.tab[0].v[i] = if v >= PLAIN && special(v) { if (taken as u8) < sc.cells { s.tab[0].cell[taken] = v; taken += 1; ESC + taken as u8 - 1 } else { s.tab[0].own[i] = v; OWN } } else { v };
    }
    s.tab[0].taken = taken as u8;
    let mut seen = Set::default(); let mut path = Set::default();
    let cut = || CUT.with(|c| *c.borrow());
    let expand = |s: &St| -> Result<Out, String> {
        let mut out = vec![];
        for j in 0..sc.progs.len() {
            if s.th[j].pc == DEAD { continue; }
            step(sc, s, j, &mut out)?;
            if sc.mortal as usize == j && s.th[j].pc > P_ROOT { let mut n = *s; if sc.mutation == "dead_seat_reused" { n.seats &= !(1 << s.th[j].seat); } n.th[j] = Thr { pc: DEAD, ..Thr::default() }; n.deaths += 1; out.push(n); }
        }
        for n in &mut out { n.normalize(sc); check(sc, n)?; }
        Ok(out)
    };
    let f0 = fp(&s); seen.insert(f0); path.insert(f0);
    let done = |states, error| Found { states, cut: cut(), error };
    let first = match expand(&s) { Ok(v) => v, Err(e) => return done(1, Some(e)) };
    let mut stack: Vec<(u128, Out)> = vec![(f0, first)];
    while let Some(top) = stack.last_mut() {
        let Some(n) = top.1.pop() else { let (f, _) = stack.pop().unwrap(); path.remove(&f); continue };
        let f = fp(&n);
        if !seen.insert(f) { if path.contains(&f) { return done(seen.len(), Some("a cycle: nobody gets on".into())); } continue; }
        if seen.len() > limit { return done(seen.len(), Some("limit".into())); }
        let before = cut();
        let next = match expand(&n) { Ok(v) => v, Err(e) => return done(seen.len(), Some(e)) };
        if next.is_empty() && cut() == before { if let Err(e) = last_look(sc, &n) { return done(seen.len(), Some(e)); } continue; }
        path.insert(f); stack.push((f, next));
    }
    done(seen.len(), None)
}

// ---- Scenarios.
type Prog = Vec<Vec<(Op, u8)>>;
fn scenarios() -> Vec<Sc> {
    let all0 = vec![(Get, 0), (Ins, 0), (Rem, 0)]; let wr0 = vec![(Ins, 0), (Rem, 0)]; let wr1 = vec![(Ins, 1), (Rem, 1)]; let get0 = vec![(Get, 0)]; let ins0 = vec![(Ins, 0)]; let ins1 = vec![(Ins, 1)];
    let sp0 = vec![(Get, 0), (InsS, 0), (Rem, 0)]; let spw0 = vec![(InsS, 0), (Rem, 0)]; let mix0 = vec![(Get, 0), (InsS, 0), (CasS, 0), (Flip, 0), (Rem, 0)]; let cas0 = vec![(Cas, 0), (CasS, 0), (Flip, 0)]; let flip0 = vec![(Flip, 0)]; let inss0 = vec![(InsS, 0)]; let inss1 = vec![(InsS, 1)];
    let g = vec![(Grow, 0)]; let h = vec![(Help, 0)];
    let gh: Prog = vec![g.clone(), h.clone()]; let ghgh: Prog = vec![g.clone(), h.clone(), g.clone(), h.clone()];
    let (live, tomb, two, tombfirst, none) = (vec![(0, 110)], vec![(0, TOMB)], vec![(1, 111), (0, 110)], vec![(1, TOMB), (0, 110)], vec![]);
    let slive = vec![(0, 110 | SPECIAL)]; let stwo = vec![(1, 111 | SPECIAL), (0, 110 | SPECIAL)];
    let mk = |set, name, progs: Vec<Prog>, init: &Vec<(u8, u8)>, slots: u8| Sc { name, set, progs, init: init.clone(), slots, lanes: slots, home: [0; NK], same: false, cells: 3, snap: 0, proto: false, lazy: false, unfiltered: false, fixed: false, pool: 0, mortal: NONE, limit_tables: 3, late: NONE, link: NONE, mutation: String::new() };
    let p = |ops: &[&Vec<(Op, u8)>]| -> Prog { ops.iter().map(|&o| o.clone()).collect() };
    let mut v = vec![
        // L1 to L12 with L10, one line.
        mk("base", "2w-1k-absent", vec![p(&[&all0]), p(&[&all0]), gh.clone(), p(&[&h])], &none, 2),
        mk("base", "2w-1k-live", vec![p(&[&all0]), p(&[&all0]), gh.clone(), p(&[&h])], &live, 2),
        mk("base", "2w-1k-tomb", vec![p(&[&all0]), p(&[&all0]), gh.clone(), p(&[&h])], &tomb, 2),
        mk("base", "w2x2-1k-live", vec![p(&[&wr0, &wr0]), p(&[&wr0, &get0]), gh.clone()], &live, 2),
        mk("base", "w2x2-1k-absent", vec![p(&[&wr0, &wr0]), p(&[&wr0, &get0]), gh.clone()], &none, 2),
        mk("base", "2k-two-live", vec![p(&[&all0]), p(&[&wr1]), gh.clone(), p(&[&h])], &two, 3),
        mk("base", "2k-tomb-first", vec![p(&[&all0]), p(&[&wr1]), gh.clone(), p(&[&h])], &tombfirst, 3),
        Sc { same: true, ..mk("base", "same-values", vec![p(&[&wr0, &wr0]), p(&[&all0]), gh.clone(), p(&[&h])], &vec![(0, PLAIN)], 2) },
        mk("base", "2k-absent", vec![p(&[&wr0, &get0]), p(&[&wr1]), gh.clone()], &none, 3),
        Sc { lazy: true, unfiltered: true, ..mk("base", "lazy-2w-1k", vec![p(&[&all0, &get0]), p(&[&wr0]), gh.clone()], &none, 2) },
        Sc { lazy: true, unfiltered: true, ..mk("base", "lazy-2k", vec![p(&[&all0]), p(&[&wr1]), gh.clone(), p(&[&h])], &none, 3) },
        Sc { lanes: 2, home: [0, 2, 0], lazy: true, ..mk("base", "2-lines-2-homes", vec![p(&[&all0]), p(&[&wr1, &vec![(Get, 1)]]), gh.clone(), p(&[&h])], &none, 4) },
        Sc { lanes: 2, ..mk("base", "2-lines-spill", vec![p(&[&all0]), p(&[&ins1]), gh.clone(), p(&[&h])], &vec![(2, 112)], 4) },
        Sc { lanes: 1, ..mk("base", "3-lines-of-1", vec![p(&[&all0]), p(&[&wr1]), gh.clone(), p(&[&h])], &none, 3) },
        // A lane without its tag is passed, by an insert and by a copy.
        Sc { lanes: 1, ..mk("base", "pass-insert", vec![p(&[&ins0, &get0]), p(&[&ins1]), gh.clone()], &none, 3) },
        Sc { lanes: 1, ..mk("base", "pass-copy", vec![p(&[&get0]), p(&[&ins1]), gh.clone()], &live, 3) },
        Sc { lanes: 2, ..mk("base", "pass-2-lanes", vec![p(&[&ins0, &get0]), p(&[&ins1]), gh.clone()], &vec![(2, 112)], 4) },
        // Three and four tables.
        mk("three", "w2-1k-live-2grow", vec![p(&[&wr0, &all0]), ghgh.clone(), p(&[&h])], &live, 2),
        mk("three", "w-r-live-2grow", vec![p(&[&wr0]), p(&[&get0]), ghgh.clone(), p(&[&h])], &live, 2),
        mk("three", "w-w-live-2grow", vec![p(&[&wr0]), p(&[&wr0]), ghgh.clone(), p(&[&h])], &live, 2),
        mk("three", "w-w-absent-2grow", vec![p(&[&wr0]), p(&[&wr0]), ghgh.clone(), p(&[&h])], &none, 2),
        mk("three", "w-w-tomb-2grow", vec![p(&[&wr0]), p(&[&wr0]), ghgh.clone(), p(&[&h])], &tomb, 2),
        mk("three", "w2-r-live-2grow", vec![p(&[&wr0, &wr0]), p(&[&get0, &get0]), ghgh.clone()], &live, 2),
        Sc { lazy: true, unfiltered: true, ..mk("three", "lazy-2k-2grow", vec![p(&[&wr0, &get0]), p(&[&wr1]), ghgh.clone()], &none, 3) },
        mk("three", "2k-live-2grow", vec![p(&[&all0]), p(&[&wr1]), ghgh.clone()], &two, 3),
        mk("three", "2-helpers-2grow", vec![p(&[&wr0, &get0]), ghgh.clone(), p(&[&h, &h])], &live, 2),
        Sc { same: true, ..mk("three", "same-values-2grow", vec![p(&[&wr0, &wr0]), ghgh.clone(), p(&[&h])], &vec![(0, PLAIN)], 2) },
        Sc { limit_tables: 4, ..mk("three", "w-r-3grow", vec![p(&[&wr0, &get0]), p(&[&get0]), vec![g.clone(), h.clone(), g.clone(), h.clone(), g.clone(), h.clone()]], &live, 2) },
        Sc { limit_tables: 4, ..mk("three", "w-w-3grow", vec![p(&[&wr0, &wr0]), p(&[&wr0]), vec![g.clone(), h.clone(), g.clone(), h.clone(), g.clone(), h.clone()]], &none, 2) },
        mk("three", "eager-grow", vec![p(&[&wr0]), p(&[&all0]), vec![g.clone(), g.clone(), h.clone(), h.clone()]], &vec![(1, 111)], 2),
        mk("three", "2k-live-2grow-2h", vec![p(&[&wr0]), p(&[&wr1]), ghgh.clone(), p(&[&h])], &two, 2),
        mk("three", "4-threads-2grow", vec![p(&[&wr0]), p(&[&wr0]), p(&[&get0]), ghgh.clone()], &live, 2),
        // Special values: enough cells.
        mk("special", "sp-2w-absent", vec![p(&[&sp0]), p(&[&sp0]), gh.clone(), p(&[&h])], &none, 2),
        mk("special", "sp-2w-live", vec![p(&[&sp0]), p(&[&wr0]), gh.clone(), p(&[&h])], &slive, 2),
        mk("special", "sp-mix-live", vec![p(&[&mix0]), p(&[&cas0]), gh.clone()], &slive, 2),
        mk("special", "sp-mix-plain", vec![p(&[&mix0, &get0]), p(&[&cas0]), gh.clone()], &live, 2),
        mk("special", "sp-flips", vec![p(&[&flip0, &flip0]), p(&[&flip0, &get0]), gh.clone()], &slive, 2),
        mk("special", "sp-flips-2-helpers", vec![p(&[&flip0, &flip0]), gh.clone(), p(&[&h])], &slive, 2),
        mk("special", "sp-2grow", vec![p(&[&mix0]), p(&[&get0]), ghgh.clone()], &slive, 2),
        mk("special", "sp-2grow-2-helpers", vec![p(&[&spw0, &get0]), ghgh.clone(), p(&[&h])], &slive, 2),
        mk("special", "sp-2k", vec![p(&[&sp0]), p(&[&inss1, &vec![(Rem, 1)]]), gh.clone()], &stwo, 3),
        mk("special", "sp-2k-2-helpers", vec![p(&[&get0]), gh.clone(), p(&[&h]), p(&[&inss1])], &stwo, 2),
        Sc { same: true, ..mk("special", "sp-same-values", vec![p(&[&spw0, &spw0]), p(&[&sp0]), gh.clone()], &vec![(0, PLAIN | SPECIAL)], 2) },
        mk("special", "sp-shared", vec![p(&[&flip0]), p(&[&inss1]), p(&[&ins0, &vec![(Get, 1)]])], &vec![(0, PLAIN + 3)], 2),
        // Special values: few cells. A writer without one makes a successor.
        Sc { cells: 1, ..mk("cells", "c1-1w-r", vec![p(&[&inss0, &inss0, &inss0]), p(&[&get0])], &none, 2) },
        Sc { cells: 1, ..mk("cells", "c1-1w-h", vec![p(&[&inss0, &inss0, &flip0]), p(&[&g, &h])], &slive, 2) },
        Sc { cells: 2, limit_tables: 4, ..mk("cells", "c2-2w", vec![p(&[&inss0]), p(&[&inss0])], &none, 2) },
        Sc { cells: 2, limit_tables: 4, ..mk("cells", "c2-2w-used", vec![p(&[&inss0, &get0]), p(&[&inss0])], &slive, 2) },
        Sc { cells: 2, limit_tables: 4, ..mk("cells", "c2-2w-more", vec![p(&[&inss0, &inss0]), p(&[&inss0, &inss0])], &slive, 2) },
        Sc { cells: 2, ..mk("cells", "c2-2w-r", vec![p(&[&inss0, &inss0]), p(&[&inss0]), p(&[&get0])], &slive, 2) },
        Sc { cells: 2, ..mk("cells", "c2-2w-rem", vec![p(&[&inss0, &inss0]), p(&[&spw0]), p(&[&wr0])], &slive, 2) },
        Sc { cells: 2, ..mk("cells", "c2-2k", vec![p(&[&inss0, &inss0]), p(&[&inss1, &inss1])], &stwo, 2) },
        Sc { cells: 2, ..mk("cells", "c2-2w-h", vec![p(&[&inss0, &inss0]), p(&[&inss0]), gh.clone()], &slive, 2) },
        Sc { cells: 3, ..mk("cells", "c3-3w", vec![p(&[&inss0]), p(&[&inss0]), p(&[&inss0])], &stwo, 2) },
        Sc { cells: 2, ..mk("cells", "c2-flips", vec![p(&[&flip0, &flip0]), p(&[&flip0, &flip0])], &slive, 2) },
        Sc { cells: 1, limit_tables: 4, ..mk("cells", "c1-full-behind", vec![p(&[&inss0, &inss0]), p(&[&vec![(Ins, 2)]]), gh.clone()], &vec![(1, 111)], 3) },
        Sc { cells: 2, limit_tables: 4, ..mk("cells", "c2-2w-2h", vec![p(&[&inss0]), p(&[&inss0]), gh.clone(), p(&[&h])], &slive, 2) },
        Sc { cells: 2, limit_tables: 4, ..mk("cells", "c2-2w-long", vec![p(&[&inss0, &inss0, &inss0]), p(&[&inss0, &inss0, &inss0])], &slive, 2) },
        Sc { cells: 3, limit_tables: 4, ..mk("cells", "c3-3w-more", vec![p(&[&inss0, &inss0]), p(&[&inss0]), p(&[&inss0])], &slive, 2) },
        Sc { cells: 3, limit_tables: 4, ..mk("cells", "c3-3w-2k", vec![p(&[&inss0, &inss0]), p(&[&inss0]), p(&[&inss1])], &stwo, 2) },
        // Too few cells for so many writers: expected to fail.
        Sc { cells: 1, limit_tables: 4, ..mk("short", "short-c1-2w", vec![p(&[&inss0]), p(&[&inss0])], &none, 2) },
        Sc { cells: 1, limit_tables: 4, ..mk("cells", "c1-2w-2k", vec![p(&[&inss0]), p(&[&inss1])], &none, 2) },
        Sc { cells: 2, limit_tables: 4, ..mk("short", "short-c2-3w", vec![p(&[&inss0]), p(&[&inss0]), p(&[&inss0])], &none, 2) },
        // A key with a slot of its own in every table (K of 0 or 1).
        Sc { fixed: true, ..mk("keys", "own-2w-absent", vec![p(&[&all0]), p(&[&all0]), gh.clone(), p(&[&h])], &none, 2) },
        Sc { fixed: true, ..mk("keys", "own-2w-live", vec![p(&[&all0]), p(&[&wr0]), gh.clone(), p(&[&h])], &live, 2) },
        Sc { fixed: true, ..mk("keys", "own-2grow", vec![p(&[&all0]), p(&[&wr0]), ghgh.clone()], &none, 2) },
        Sc { fixed: true, ..mk("keys", "own-special", vec![p(&[&mix0]), p(&[&spw0]), gh.clone()], &none, 2) },
        Sc { fixed: true, cells: 2, ..mk("keys", "own-cells", vec![p(&[&inss0, &inss0]), p(&[&inss0]), p(&[&get0])], &none, 2) },
        Sc { fixed: true, ..mk("keys", "own-and-other", vec![p(&[&all0]), p(&[&wr1]), gh.clone(), p(&[&h])], &none, 2) },
    ];
    v.push(Sc { fixed: true, cells: 2, snap: 2, lanes: 2, limit_tables: 4, unfiltered: true, ..mk("keys", "all-at-once", vec![p(&[&vec![(Get, 0), (InsS, 0), (Rem, 0), (InsS, 1)], &vec![(Get, 1), (Flip, 0)]]), p(&[&vec![(InsS, 1), (InsS, 0), (Flip, 0)]]), gh.clone()], &slive, 3) });
    v.push(Sc { lanes: 1, link: 1, ..mk("keys", "link-2k", vec![p(&[&all0]), p(&[&ins1]), gh.clone(), p(&[&h])], &none, 3) });
    v.push(Sc { lanes: 1, link: 1, ..mk("keys", "link-live", vec![p(&[&all0]), p(&[&wr0]), gh.clone(), p(&[&h])], &vec![(1, 111)], 3) });
    v.push(Sc { lanes: 1, link: 0, ..mk("keys", "link-first-2grow", vec![p(&[&wr0]), p(&[&all0]), ghgh.clone()], &none, 2) });
    // Snapshots of a line.
    let names = [["any-2ins", "any-3k", "any-grow", "any-grow-2k", "any-spill", "any-2helpers", "any-2grow"], ["halves-2ins", "halves-3k", "halves-grow", "halves-grow-2k", "halves-spill", "halves-2helpers", "halves-2grow"], ["proto-2ins", "proto-3k", "proto-grow", "proto-grow-2k", "proto-spill", "proto-2helpers", "proto-2grow"]];
    for (m, name) in names.iter().enumerate() {
        let (snap, proto) = [(1, false), (2, false), (2, true)][m];
        let w = |sc: Sc| Sc { snap, proto, unfiltered: true, ..sc };
        v.push(w(mk("lanes", name[0], vec![p(&[&wr0, &get0]), p(&[&all0]), p(&[&ins1])], &none, 4)));
        v.push(w(mk("lanes", name[1], vec![p(&[&all0]), p(&[&ins0]), p(&[&ins1]), p(&[&vec![(Ins, 2)]])], &none, 4)));
        v.push(w(mk("lanes", name[2], vec![p(&[&all0]), p(&[&wr0]), gh.clone()], &none, 4)));
        v.push(w(mk("lanes", name[3], vec![p(&[&all0]), p(&[&ins1]), gh.clone()], &vec![(2, 112)], 4)));
        v.push(w(Sc { lanes: 2, ..mk("lanes", name[4], vec![p(&[&all0]), p(&[&ins0]), p(&[&ins1]), gh.clone()], &none, 4) }));
        v.push(w(Sc { lanes: 2, ..mk("lanes", name[5], vec![p(&[&all0]), p(&[&ins0]), gh.clone(), p(&[&h])], &vec![(1, TOMB)], 2) }));
        v.push(w(Sc { lanes: 2, ..mk("lanes", name[6], vec![p(&[&wr0]), p(&[&get0]), ghgh.clone()], &none, 2) }));
    }
    v.push(Sc { snap: 1, unfiltered: true, ..mk("lanes", "any-4-threads", vec![p(&[&wr0]), p(&[&all0]), p(&[&ins1]), gh.clone()], &none, 4) });
    v.push(Sc { snap: 1, unfiltered: true, ..mk("lanes", "any-special", vec![p(&[&sp0]), p(&[&inss0]), gh.clone()], &none, 4) });
    v.push(Sc { snap: 2, unfiltered: true, ..mk("lanes", "halves-4-threads-2h", vec![p(&[&all0]), p(&[&ins1]), gh.clone(), p(&[&h])], &vec![(2, 112)], 4) });
    v.push(Sc { snap: 2, proto: true, unfiltered: true, ..mk("lanes", "proto-4-threads-2h", vec![p(&[&all0]), p(&[&ins1]), gh.clone(), p(&[&h])], &vec![(2, 112)], 4) });
    // Seats that come and go; movers that die.
    v.extend([
        Sc { pool: 1, ..mk("seats", "one-seat-r", vec![p(&[&get0]), p(&[&wr0]), gh.clone(), p(&[&h])], &two, 2) },
        Sc { pool: 1, ..mk("seats", "one-seat-2grow", vec![p(&[&get0]), p(&[&wr0]), ghgh.clone(), p(&[&h])], &two, 2) },
        Sc { pool: 1, ..mk("seats", "one-seat-special", vec![p(&[&get0]), p(&[&flip0]), gh.clone(), p(&[&h])], &stwo, 2) },
        Sc { pool: 1, ..mk("seats", "one-seat-special-2grow", vec![p(&[&get0]), p(&[&flip0]), ghgh.clone(), p(&[&h])], &stwo, 2) },
        Sc { pool: 2, ..mk("seats", "two-seats-3-helpers", vec![p(&[&wr0]), gh.clone(), p(&[&h]), p(&[&h])], &stwo, 2) },
        Sc { mortal: 3, ..mk("seats", "dying-mover", vec![p(&[&all0, &get0]), p(&[&wr0]), gh.clone(), p(&[&h])], &live, 2) },
        Sc { mortal: 3, ..mk("seats", "dying-mover-special", vec![p(&[&sp0, &get0]), gh.clone(), p(&[&vec![(Get, 1)]]), p(&[&h])], &stwo, 2) },
        Sc { mortal: 0, ..mk("seats", "dying-writer", vec![p(&[&wr0]), p(&[&all0]), gh.clone(), p(&[&h])], &live, 2) },
        Sc { mortal: 0, ..mk("seats", "dying-inserter", vec![p(&[&inss0]), p(&[&all0, &get0]), gh.clone()], &none, 2) },
        Sc { mortal: 3, pool: 2, ..mk("seats", "dying-mover-pool", vec![p(&[&wr0]), gh.clone(), p(&[&get0]), p(&[&h])], &two, 2) },
        Sc { mortal: 3, pool: 2, late: 3, lanes: 1, ..mk("seats", "dying-mover-late", vec![p(&[&wr0]), gh.clone(), p(&[&get0]), p(&[&h])], &two, 2) },
        Sc { pool: 1, late: 3, lanes: 1, ..mk("seats", "one-seat-late", vec![p(&[&wr0]), gh.clone(), p(&[&get0]), p(&[&h])], &two, 2) },
        Sc { pool: 2, late: 3, lanes: 1, ..mk("seats", "two-seats-late-special", vec![p(&[&flip0]), gh.clone(), p(&[&get0]), p(&[&h])], &stwo, 2) },
        Sc { mortal: 2, ..mk("seats", "dying-mover-2grow", vec![p(&[&wr0]), ghgh.clone(), p(&[&h])], &two, 2) },
    ]);
    v
}
/// What each mutation must be caught by (a set), or "holds" for a change that is allowed.
const MUTATIONS: &[(&str, &str, bool)] = &[
    ("blind_store", "base", true), ("copy_stops_at_virgin", "base", true), ("remove_to_virgin", "base", true), ("tag_late", "base", true), ("tag_early", "base", true), ("virgin_untagged", "base", true), ("passed_untagged", "base", true),
    ("tags_ignore_next", "base", true), ("copy_tag_late", "base", false), ("copy_tag_late", "three", false), ("copy_found_untagged", "base", true), ("copy_passed_untagged", "base", true), ("skip_empty", "base", true), ("copy_revives_tomb", "base", true), ("desc_late", "base", true), ("leave_empty", "base", true), ("moved_before_copy", "base", true), ("writer_leaves_frozen", "base", true), ("v_before_k", "base", false), ("next_then_tags", "base", false), ("get_no_recheck", "base", true), ("no_recheck", "base", false),
    ("carry", "base", false), ("carry_no_recheck", "base", false), ("carry_virgin_is_absent", "base", true),
    ("early_root", "three", true), ("grow_early", "three", true), ("no_recheck", "three", false), ("carry", "three", false), ("v_before_k", "three", false), ("next_then_tags", "three", false), ("get_no_recheck", "three", true),
    ("cell_late", "special", true), ("writer_uses_own", "special", true), ("no_recheck", "special", true), ("carry", "special", false), ("share", "special", false), ("share_rewritten", "special", true),
    ("reuse_cell", "cells", true), ("copies_by_counter", "cells", true), ("full_ignores_root", "cells", true), ("share", "cells", false),
    ("two_looks", "lanes", true), ("last_free", "lanes", true), ("zeros_ignore_closed", "lanes", true), ("next_before", "lanes", true),
    ("seat_early", "seats", true), ("dead_seat_reused", "seats", true), ("no_recheck", "seats", true), ("get_no_recheck", "seats", true), ("carry", "seats", false),
];
const LIMIT: usize = 60_000_000;
fn run(sc: &Sc) -> bool {
    let t = std::time::Instant::now(); let f = explore(sc, LIMIT);
    let cut = if f.cut > 0 { format!(" ({} runs cut at {} tables)", f.cut, sc.limit_tables) } else { String::new() };
    println!("{:<9} {:<24} {:>10} states {:>6.1}s {}{cut}", sc.set, sc.name, f.states, t.elapsed().as_secs_f64(), f.error.as_deref().unwrap_or("holds"));
    f.error.is_none()
}
fn mutate(name: &str, set: &str, caught: bool) {
    let mut found = false;
    for mut sc in scenarios().into_iter().filter(|s| s.set == set) {
        sc.mutation = name.into();
        let f = explore(&sc, LIMIT);
        if let Some(e) = f.error { println!("{name:<22} {set:<8} {:<22} {:>9} states: {e}", sc.name, f.states); found = true; break; }
    }
    println!("{name:<22} {set:<8} {}", match (found, caught) { (true, true) => "CAUGHT", (false, false) => "HOLDS, as expected", (true, false) => "UNEXPECTED: caught", (false, true) => "UNEXPECTED: not caught" });
}
fn main() {
    let args: Vec<String> = std::env::args().collect(); let a = |i: usize| args.get(i).map_or("", |s| s.as_str());
    match a(1) {
        "set" => for sc in scenarios().iter().filter(|s| s.set == a(2)) { run(sc); },
        "one" => for mut sc in scenarios().into_iter().filter(|s| s.name == a(2)) { sc.mutation = a(3).into(); run(&sc); },
        "mutations" => for &(m, set, c) in MUTATIONS { mutate(m, set, c) },
        "mutation" => for &(m, set, c) in MUTATIONS.iter().filter(|m| m.0 == a(2)) { mutate(m, set, c) },
        _ => for sc in &scenarios() { let ok = run(sc); if ok == (sc.set == "short") { println!("UNEXPECTED"); } },
    }
}
