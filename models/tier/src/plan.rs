//! The planner: reads cells, writes nothing, and yields the ordered list of cell stores of one operation.
//!
//! It trusts a cell only if it is guarded by a control word already held (a base and its members: the
//! base's word). All else is a hint: an EMPTY cell is verified by the CAS that fills it, a foreign
//! member makes the planner ask for its base's word, after which planning starts anew.

use crate::model::*;

pub enum Outcome {
    /// Both slices equally loaded: the caller tries both.
    Tie,
    /// One more control word is needed (the set used so far, the new one).
    Need(u8, u8),
    /// Exists / not found: nothing to store.
    Nothing(u8),
    Plan(Box<Body>),
    Bad(String),
}

#[derive(Clone, Copy)]
struct Elem { key: u8, rec: u8, gen: u8 }

struct Sim<'a> {
    c: &'a Config,
    s: &'a State,
    held: &'a [u8],
    home: usize,
    cells: [Cell; MAXCELL],
    body: Body,
    used: Vec<u8>, // cells already part of the chain: never chosen twice
    tie: u8,
    /// `set` of a key that lies in an older tier: that copy. It must stay findable until the new one is linked,
    /// and must never reach the sink, so it is no victim of the moves that its own `set` causes.
    old: u8,
}
type Res<T> = Result<T, Outcome>;

fn base(e: Elem, bits: u8) -> Cell { Cell { kind: BASE, key: e.key, bits, rec: e.rec, gen: e.gen } }
fn member(e: Elem, back: usize) -> Cell { Cell { kind: MEMBER, key: e.key, bits: back as u8, rec: e.rec, gen: e.gen } }
fn elem(x: Cell) -> Elem { Elem { key: x.key, rec: x.rec, gen: x.gen } }

impl<'a> Sim<'a> {
    fn guard(&self, bucket: usize) -> Res<()> {
        let x = self.c.ctl_of(bucket);
        if self.c.is(Mutant::LockTwice) && bucket != self.home && self.c.ctl_of(self.home) == x { return Err(Outcome::Need(0, x)); }
        if self.held.contains(&x) { Ok(()) } else { Err(Outcome::Need(0, x)) }
    }
    fn at(&self, arr: usize, pos: usize) -> usize { arr * self.c.nc() + pos }
    fn store(&mut self, at: usize, new: Cell) -> Res<()> {
        let i = self.body.nw as usize;
        if i == MAXW { return Err(Outcome::Bad("plan longer than an intent".into())); }
        // A redo compares with `old`: within one plan a cell must never return to an earlier content.
        if self.body.w[..i].iter().any(|w| w.at as usize == at && w.old == new) { return Err(Outcome::Bad("plan repeats a cell content".into())); }
        self.body.w[i] = Write { at: at as u8, old: self.cells[at], new };
        self.body.nw += 1;
        self.cells[at] = new;
        Ok(())
    }
    fn fill(&mut self, at: usize, new: Cell) -> Res<()> {
        if self.body.hole != NONE || self.body.nw != 0 { return Err(Outcome::Bad("hole must be the first store of a plan".into())); }
        self.body.hole = at as u8;
        self.body.fill = new;
        self.cells[at] = new;
        Ok(())
    }
    fn hole(&self, arr: usize, b: usize) -> Option<usize> {
        if self.body.hole != NONE || self.body.nw != 0 { return None; }
        (1..self.c.w).map(|i| b + i).find(|&x| self.cells[self.at(arr, x)].kind == EMPTY)
    }
    fn age(&self, rec: u8) -> u8 { self.c.keys[self.s.recs[rec as usize].key as usize].age }
    /// Oldest member in the window of b, own members first on equal age, then smallest offset. Members of others only if `foreign`.
    fn oldest(&self, arr: usize, b: usize, foreign: bool) -> Option<(usize, usize)> {
        (1..self.c.w)
            .filter_map(|i| {
                let x = self.cells[self.at(arr, b + i)];
                if x.kind != MEMBER || x.rec == self.old || !foreign && x.bits as usize != i || self.used.contains(&(self.at(arr, b + i) as u8)) { return None; }
                Some((self.age(x.rec), (x.bits as usize != i) as u8, b + i, b + i - x.bits as usize))
            })
            .min()
            .map(|t| (t.2, t.3))
    }
    /// The element leaves array `arr`: to the next tier if there is one, else to the sink. Emitted before its unlink.
    fn leave(&mut self, arr: usize, bucket: usize, e: Elem) -> Res<()> {
        if e.rec == self.old { return Err(Outcome::Bad("the older copy of the key being set would leave".into())); }
        let tier = arr / self.c.slices;
        if tier + 1 < self.c.tiers { let t = self.slice(tier + 1, bucket)?; return self.insert(t, bucket, e, 0); }
        if self.body.out != NONE { return Err(Outcome::Bad("two elements leave in one plan".into())); }
        self.body.out = e.rec;
        self.body.ogen = e.gen;
        Ok(())
    }
    /// Least loaded slice of a tier.
    fn slice(&self, tier: usize, b: usize) -> Res<usize> {
        if self.c.slices == 1 { return Ok(tier); }
        let load = |a: usize| { let x = self.cells[self.at(a, b)]; match x.kind { EMPTY => 0, BASE => x.bits.count_ones(), _ => 1 } };
        let (a, z) = (tier * 2, tier * 2 + 1);
        if load(a) < load(z) { return Ok(a); }
        if load(a) > load(z) { return Ok(z); }
        match self.tie { 0 => Err(Outcome::Tie), 1 => Ok(a), _ => Ok(z) }
    }
    /// Makes cell x of a foreign base free to be overwritten: its element moves within its own window.
    /// Afterwards x still holds the old copy, unlisted.
    fn vacate(&mut self, arr: usize, x: usize, hops: usize) -> Res<()> {
        let ax = self.at(arr, x);
        let o = self.cells[ax];
        let d = o.bits as usize;
        let b = x - d;
        self.guard(b)?;
        let ab = self.at(arr, b);
        if self.cells[ab].kind != BASE || self.cells[ab].bits & (1 << d) == 0 { return Err(Outcome::Bad(format!("member {x} not listed by its base {b} although its control word is held"))); }
        if let Some(e) = self.hole(arr, b) {
            self.fill(self.at(arr, e), member(elem(o), e - b))?;
            let mut n = self.cells[ab];
            n.bits = (n.bits | 1 << (e - b)) & !(1 << d);
            return self.store(ab, n);
        }
        self.used.push(ax as u8);
        let pick = self.oldest(arr, b, hops > 0);
        // the element itself competes
        let pick = pick.filter(|&(y, _)| self.age(self.cells[self.at(arr, y)].rec) < self.age(o.rec));
        match pick {
            None => { // o itself leaves
                self.leave(arr, b, elem(o))?;
                let mut n = self.cells[ab];
                n.bits &= !(1 << d);
                self.store(ab, n)
            }
            Some((y, yb)) => {
                let ay = self.at(arr, y);
                if yb == b { self.leave(arr, b, elem(self.cells[ay]))?; } else { self.vacate(arr, y, hops - 1)?; }
                self.store(ay, member(elem(o), y - b))?;
                let mut n = self.cells[ab];
                n.bits = (n.bits | 1 << (y - b)) & !(1 << d);
                self.store(ab, n)
            }
        }
    }
    fn insert(&mut self, arr: usize, h: usize, e: Elem, hops: usize) -> Res<()> {
        self.guard(h)?;
        let ah = self.at(arr, h);
        let x = self.cells[ah];
        match x.kind {
            EMPTY if self.c.is(Mutant::MoveUnlinksFirst) => self.store(ah, base(e, 1)),
            EMPTY => if self.body.nw == 0 && self.body.hole == NONE { self.fill(ah, base(e, 1)) } else { Err(Outcome::Bad("empty home after other stores".into())) },
            MEMBER if x.rec == self.old && self.hole(arr, h - x.bits as usize).is_none() => self.leave(arr, h, e),
            MEMBER => { // usurp
                self.vacate(arr, h, hops)?;
                self.store(ah, base(e, 1))
            }
            _ => {
                if let Some(p) = self.hole(arr, h) {
                    self.fill(self.at(arr, p), member(elem(x), p - h))?;
                    return self.store(ah, base(e, x.bits | 1 << (p - h)));
                }
                let pick = self.oldest(arr, h, hops > 0).filter(|&(y, _)| self.age(self.cells[self.at(arr, y)].rec) < self.age(x.rec));
                match pick {
                    None if x.rec == self.old => self.leave(arr, h, e),
                    None => { self.leave(arr, h, elem(x))?; self.store(ah, base(e, x.bits)) }
                    Some((y, yb)) => {
                        let ay = self.at(arr, y);
                        if yb == h { self.leave(arr, h, elem(self.cells[ay]))?; } else { self.vacate(arr, y, hops)?; }
                        self.store(ay, member(elem(x), y - h))?;
                        let bits = self.cells[ah].bits;
                        self.store(ah, base(e, bits | 1 << (y - h)))
                    }
                }
            }
        }
    }
    fn find(&self, k: u8, from_tier: usize) -> Option<(usize, usize)> {
        let h = self.c.home(k);
        let key = self.c.keys[k as usize].key32;
        for arr in from_tier * self.c.slices..self.c.arrays() {
            let b = self.cells[self.at(arr, h)];
            if b.kind != BASE { continue; }
            if b.key == key { return Some((arr, 0)); }
            for i in 1..self.c.w {
                if b.bits & (1 << i) != 0 { let x = self.cells[self.at(arr, h + i)]; if x.kind == MEMBER && x.bits as usize == i && x.key == key { return Some((arr, i)); } }
            }
        }
        None
    }
    /// Unlink the element at offset i of bucket h; crop: the farthest member moves into the hole.
    fn unlink(&mut self, arr: usize, h: usize, i: usize) -> Res<()> {
        let ah = self.at(arr, h);
        let b = self.cells[ah];
        let j = (7 - b.bits.leading_zeros()) as usize;
        let (ai, aj) = (self.at(arr, h + i), self.at(arr, h + j));
        let far = self.cells[aj];
        if self.c.is(Mutant::CropZeroesFirst) && j > i { self.store(aj, ZERO)?; }
        if i == 0 {
            if j == 0 { return self.store(ah, ZERO); }
            self.store(ah, base(elem(far), b.bits & !(1 << j)))?;
        } else {
            if i != j { self.store(ai, member(elem(far), i))?; }
            let mut n = b;
            n.bits &= !(1 << j);
            self.store(ah, n)?;
        }
        if self.c.is(Mutant::CropZeroesFirst) && j > i { return Ok(()); }
        self.store(aj, ZERO)
    }
}

pub fn plan(c: &Config, s: &State, p: usize, tie: u8) -> Outcome {
    let q = &s.procs[p];
    let op = c.op(p, q.opi);
    let seat = &s.seats[q.seat as usize];
    match run(c, s, &q.lock[..q.nheld as usize], op, seat.rec, seat.rgen, tie) { Ok(b) => Outcome::Plan(Box::new(b)), Err(o) => o }
}

pub fn run(c: &Config, s: &State, held: &[u8], op: Op, rec: u8, rgen: u8, tie: u8) -> Result<Body, Outcome> {
    let k = op.key();
    let h = c.home(k);
    let mut m = Sim { c, s, held, home: h, cells: s.cells, body: NOBODY, used: vec![], tie, old: NONE };
    let found = m.find(k, 0).filter(|&(arr, _)| !(c.is(Mutant::RemoveOnlyYoungest) && matches!(op, Op::Remove(_)) && arr >= c.slices));
    let new = Elem { key: c.keys[k as usize].key32, rec, gen: rgen };
    match (op, found) {
        (Op::Add(..), Some(_)) => return Err(Outcome::Nothing(R_NO)),
        (Op::Update(..), None) | (Op::Remove(_), None) | (Op::Evict(_), None) | (Op::Promote(_), None) => return Err(Outcome::Nothing(R_NO)),
        (Op::Update(..), Some((arr, i))) => replace(&mut m, arr, h, i, new)?,
        (Op::Set(..), Some((arr, i))) if arr < c.slices => replace(&mut m, arr, h, i, new)?,
        (Op::Add(..), None) | (Op::Set(..), _) => {
            m.body.link = 1;
            if let (Some((arr, i)), false) = (found, c.is(Mutant::OldCopyMayLeave)) { m.old = m.cells[m.at(arr, h + i)].rec; }
            let a = m.slice(0, h)?;
            m.insert(a, h, new, c.hops)?;
            if found.is_some() && !c.is(Mutant::SetKeepsOlderCopy) { // the older tier's copy goes after the new one is linked
                let (arr, i) = match m.find(k, 1) { Some(x) => x, None => return Err(Outcome::Bad("older copy vanished in plan".into())) };
                let x = m.cells[m.at(arr, h + i)];
                m.body.kill = x.rec;
                m.body.kgen = x.gen;
                m.unlink(arr, h, i)?;
            }
        }
        (Op::Remove(_), Some((arr, i))) => {
            let x = m.cells[m.at(arr, h + i)];
            m.body.kill = x.rec;
            m.body.kgen = x.gen;
            m.unlink(arr, h, i)?;
        }
        (Op::Evict(_), Some((arr, i))) => {
            let x = m.cells[m.at(arr, h + i)];
            if c.is(Mutant::MoveUnlinksFirst) && arr / c.slices + 1 < c.tiers {
                m.unlink(arr, h, i)?;
                return m.leave(arr, h, elem(x)).map(|_| m.body);
            }
            m.leave(arr, h, elem(x))?;
            m.unlink(arr, h, i)?;
        }
        (Op::Promote(_), Some((arr, _))) if arr < c.slices => return Err(Outcome::Nothing(R_NO)),
        (Op::Promote(_), Some((arr, i))) => { // the same record, linked above before it is unlinked below
            let x = m.cells[m.at(arr, h + i)];
            if !c.is(Mutant::OldCopyMayLeave) { m.old = x.rec; }
            let a = m.slice(0, h)?;
            m.insert(a, h, elem(x), c.hops)?;
            let (arr, i) = match m.find(k, 1) { Some(x) => x, None => return Err(Outcome::Bad("older copy vanished in plan".into())) };
            m.unlink(arr, h, i)?;
        }
        (Op::Get(_), _) => unreachable!(),
    }
    Ok(m.body)
}

fn replace(m: &mut Sim, arr: usize, h: usize, i: usize, new: Elem) -> Res<()> {
    let at = m.at(arr, h + i);
    let x = m.cells[at];
    m.body.link = 1;
    m.body.kill = x.rec;
    m.body.kgen = x.gen;
    m.store(at, Cell { rec: new.rec, gen: new.gen, ..x })
}
