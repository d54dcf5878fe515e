//! Small worlds. Keys: name, 32-bit key, bucket, age (smaller = older).
use crate::model::*;
use Op::*;

fn key(name: char, key32: u8, bucket: u8, age: u8) -> KeyDef { KeyDef { name, key32, bucket, age } }

fn world(name: &'static str) -> Config {
    Config { name, n: 4, w: 3, slices: 1, tiers: 1, shift: 0, hops: 2, nrec: 5,
        keys: vec![key('a', 1, 0, 1), key('b', 2, 0, 2), key('c', 3, 0, 3), key('m', 4, 1, 4), key('n', 5, 1, 5), key('x', 6, 2, 6)],
        init: vec![], down: vec![], procs: vec![], deaths: 2, mutant: None, eager_death: false }
}
// key ids of the standard world: buckets 0 0 0 1 1 2
const A: u8 = 0; const B: u8 = 1; const C: u8 = 2; const M: u8 = 3; const N: u8 = 4; const X: u8 = 5;

fn seats(ops: Vec<Vec<Op>>) -> Vec<(Option<u8>, Vec<Op>)> { ops.into_iter().enumerate().map(|(i, o)| (Some(i as u8), o)).collect() }

pub fn protocol() -> Vec<Config> {
    let mut v = Vec::new();
    // 1, 4, 5, 8: empty bucket
    v.push(Config { procs: seats(vec![vec![Add(A, 10)], vec![Add(A, 20)], vec![Get(A), Remove(A)]]), ..world("add-empty-same-key") });
    v.push(Config { procs: seats(vec![vec![Add(A, 10)], vec![Add(B, 20)], vec![Get(A), Get(B)]]), ..world("add-empty-two-keys") });
    // a neighbour takes the empty home cell as its hole
    v.push(Config { init: vec![(A, 1)], procs: seats(vec![vec![Add(B, 10)], vec![Add(M, 20)], vec![Get(A), Get(M)]]), ..world("home-taken-as-hole") });
    // 2, 6, 7, 9, 10: collision with space
    v.push(Config { init: vec![(A, 1)], procs: seats(vec![vec![Add(B, 10)], vec![Update(A, 20)], vec![Get(A), Get(B)]]), ..world("collision-update-get") });
    v.push(Config { init: vec![(A, 1), (B, 2)], procs: seats(vec![vec![Add(C, 10)], vec![Remove(A)], vec![Get(A), Get(B)]]), ..world("collision-remove-member") });
    v.push(Config { init: vec![(A, 1), (B, 2)], procs: seats(vec![vec![Add(C, 10)], vec![Remove(B)], vec![Get(A), Get(B)]]), ..world("collision-remove-base") });
    // 16, 17, 20, 22, 23: removals
    v.push(Config { w: 4, init: vec![(A, 1), (B, 2), (C, 3)], procs: seats(vec![vec![Remove(B)], vec![Remove(C)], vec![Get(A), Get(A)]]), ..world("crop-two-removes") });
    v.push(Config { w: 4, init: vec![(A, 1), (B, 2), (C, 3)], procs: seats(vec![vec![Remove(A)], vec![Remove(A)], vec![Remove(C), Get(B)]]), ..world("remove-twice") });
    v.push(Config { init: vec![(A, 1)], procs: seats(vec![vec![Remove(A), Add(A, 10)], vec![Add(A, 20), Remove(A)], vec![Get(A)]]), ..world("alone-remove-add") });
    // 18, 19: updates
    v.push(Config { init: vec![(A, 1)], procs: seats(vec![vec![Update(A, 10)], vec![Set(A, 20)], vec![Get(A), Get(A)]]), ..world("updates-collide") });
    // a freed record is used again while a reader sleeps on it
    v.push(Config { nrec: 2, init: vec![(A, 1)], procs: seats(vec![vec![Update(A, 10), Update(A, 11)], vec![Add(A, 20)], vec![Get(A)]]), ..world("record-reuse") });
    // 11..14: usurp. a and b in bucket 0: b base at 0, a member at 1; adding m usurps cell 1
    v.push(Config { init: vec![(A, 1), (B, 2)], procs: seats(vec![vec![Add(M, 10)], vec![Update(A, 20)], vec![Get(A), Get(M)]]), ..world("usurp-update-get") });
    v.push(Config { init: vec![(A, 1), (B, 2)], procs: seats(vec![vec![Add(M, 10)], vec![Remove(A)], vec![Get(B), Get(A)]]), ..world("usurp-remove-member") });
    v.push(Config { init: vec![(A, 1), (B, 2)], procs: seats(vec![vec![Add(M, 10)], vec![Remove(B)], vec![Get(A), Remove(M)]]), ..world("usurp-remove-base") });
    v.push(Config { init: vec![(A, 1), (B, 2)], procs: seats(vec![vec![Add(M, 10)], vec![Add(N, 20)], vec![Add(C, 30)]]), ..world("three-usurpers") });
    // usurped element has no place: it leaves. a,b,c fill bucket 0's window
    v.push(Config { init: vec![(A, 1), (B, 2), (C, 3)], procs: seats(vec![vec![Add(M, 10)], vec![Add(X, 20)], vec![Get(A), Get(B)]]), ..world("two-usurpers-full") });
    // 3: full window
    v.push(Config { init: vec![(A, 1), (B, 2)], keys: vec![key('a', 1, 0, 1), key('b', 2, 0, 2), key('c', 3, 0, 3), key('m', 4, 1, 4), key('n', 5, 1, 5), key('x', 6, 2, 6)], w: 2,
        procs: seats(vec![vec![Add(C, 10)], vec![Update(A, 20)], vec![Get(A), Get(B)]]), ..world("full-own-oldest-leaves") });
    v.push(Config { w: 2, init: vec![(A, 1), (M, 2)], procs: seats(vec![vec![Add(B, 10)], vec![Remove(M)], vec![Get(A), Get(B)]]), ..world("full-only-bases") });
    v.push(cascade("full-foreign-moves", 1));
    v.push(cascade("cascade-two-hops", 2));
    v.push(cascade("cascade-remove-update", 4));
    v.push(cascade("cascade-no-place", 3));
    // two slices
    v.push(Config { slices: 2, n: 3, w: 2, procs: seats(vec![vec![Add(A, 10)], vec![Add(B, 20)], vec![Get(A), Get(B)]]), ..world("slices-two-adds") });
    v.push(Config { slices: 2, n: 3, w: 2, procs: seats(vec![vec![Add(A, 10)], vec![Set(A, 20)], vec![Remove(A), Get(A)]]), ..world("slices-same-key") });
    v.push(Config { slices: 2, n: 3, w: 2, init: vec![(A, 1), (B, 2)], procs: seats(vec![vec![Add(C, 10)], vec![Add(M, 20)], vec![Get(A), Get(B)]]), ..world("slices-collide-usurp") });
    // tiers
    v.push(Config { tiers: 2, n: 3, w: 2, init: vec![(A, 1)], procs: seats(vec![vec![Evict(A)], vec![Set(A, 20)], vec![Get(A), Get(A)]]), ..world("demote-set-get") });
    v.push(Config { tiers: 2, n: 3, w: 2, init: vec![(A, 1)], procs: seats(vec![vec![Evict(A), Evict(A)], vec![Remove(A)], vec![Get(A)]]), ..world("demote-remove-sink") });
    v.push(Config { tiers: 2, n: 3, w: 2, init: vec![(A, 1), (B, 2)], procs: seats(vec![vec![Add(C, 10)], vec![Set(A, 20)], vec![Get(A), Get(B)]]), ..world("demote-by-full-window") });
    v.push(Config { tiers: 2, n: 3, w: 2, init: vec![(A, 1), (B, 2)], procs: seats(vec![vec![Evict(A), Set(A, 10)], vec![Evict(B)], vec![Get(A), Get(B)]]), ..world("demote-collide-below") });
    v.push(Config { tiers: 2, n: 4, w: 2, shift: 1, init: vec![(A, 1), (B, 2)], procs: seats(vec![vec![Add(M, 10)], vec![Evict(A)], vec![Get(A), Get(M)]]), ..world("shared-ctl-usurp-demote") });
    v.extend(three_tiers());
    // seats: a joiner waits for a dead seat and reuses it
    v.push(Config { init: vec![(A, 1)], procs: vec![(Some(0), vec![Add(B, 10)]), (Some(1), vec![Remove(A)]), (None, vec![Add(C, 20), Get(B)])], ..world("seat-reuse") });
    v.push(Config { init: vec![(A, 1), (B, 2)], procs: vec![(Some(0), vec![Add(M, 10)]), (Some(1), vec![Update(A, 20)]), (None, vec![Get(A), Remove(B)])], ..world("seat-reuse-usurp") });
    v.push(Config { init: vec![(A, 1)], procs: vec![(Some(0), vec![Add(B, 10)]), (Some(1), vec![Remove(A)]), (Some(2), vec![Update(A, 30)]), (None, vec![Add(C, 20)])], ..world("seat-reuse-four") });
    // the recoverer of an unfilled plan dies, a third process repeats the same fill and dies too
    v.push(Config { deaths: 3, init: vec![(A, 1)], procs: seats(vec![vec![Add(B, 10)], vec![Get(C)], vec![Add(C, 20)]]), ..world("same-fill-three-deaths") });
    // bucket 0 wants control word 1 while bucket 1 wants control word 0
    v.push(crossing());
    // equal 32-bit keys in neighbouring buckets
    v.push(twins());
    // three deaths of four
    v.push(Config { deaths: 3, init: vec![(A, 1)], procs: vec![(Some(0), vec![Add(B, 10)]), (Some(1), vec![Remove(A)]), (Some(2), vec![Update(A, 30)]), (None, vec![Get(A)])], ..world("three-deaths") });
    v
}

/// Three tiers. Keys a to e in bucket 0 (a the oldest), m and n in bucket 1.
fn three(name: &'static str) -> Config {
    let keys = vec![key('a', 1, 0, 1), key('b', 2, 0, 2), key('c', 3, 0, 3), key('d', 4, 0, 4), key('e', 5, 0, 5), key('m', 6, 1, 6), key('n', 7, 1, 7)];
    Config { keys, tiers: 3, n: 3, w: 2, nrec: 7, ..world(name) }
}
const D: u8 = 3; const E: u8 = 4; const M3: u8 = 5; const N3: u8 = 6;

/// Seven keys of bucket 0.
fn crowd() -> Vec<KeyDef> { (0..7).map(|i| key((b'a' + i) as char, i + 1, 0, i + 1)).collect() }

fn three_tiers() -> Vec<Config> {
    let two_down = || vec![A, A];
    vec![
        // the whole way down while others set, remove and look
        Config { init: vec![(A, 1)], procs: seats(vec![vec![Evict(A), Evict(A)], vec![Set(A, 20)], vec![Get(A), Get(A)]]), ..three("tiers3-down-set-get") },
        Config { init: vec![(A, 1)], procs: seats(vec![vec![Evict(A), Evict(A), Evict(A)], vec![Remove(A)], vec![Get(A)]]), ..three("tiers3-down-remove-sink") },
        // a key in the last tier: set, removed, promoted
        Config { init: vec![(A, 1), (B, 2)], down: two_down(), procs: seats(vec![vec![Set(A, 20)], vec![Evict(B)], vec![Get(A), Get(B)]]), ..three("tiers3-set-oldest-evict") },
        Config { init: vec![(A, 1)], down: two_down(), procs: seats(vec![vec![Set(A, 20)], vec![Remove(A)], vec![Get(A), Get(A)]]), ..three("tiers3-set-remove-oldest") },
        Config { init: vec![(A, 1)], down: two_down(), procs: seats(vec![vec![Promote(A)], vec![Evict(A)], vec![Get(A), Get(A)]]), ..three("tiers3-up-and-down") },
        Config { init: vec![(A, 1)], down: vec![A], procs: seats(vec![vec![Promote(A)], vec![Remove(A)], vec![Set(A, 30)]]), ..three("tiers3-up-remove-set") },
        Config { init: vec![(A, 1)], down: vec![A], procs: seats(vec![vec![Promote(A)], vec![Promote(A)], vec![Get(A), Get(A)]]), ..three("tiers3-two-promotions") },
        // full windows: an add pushes one element into each tier below, or out of the last
        Config { init: vec![(A, 1), (B, 2), (C, 3), (D, 4)], procs: seats(vec![vec![Add(E, 10)], vec![Update(A, 20)], vec![Get(A), Get(C)]]), ..three("tiers3-chain-down") },
        Config { n: 1, keys: crowd(), init: vec![(A, 1), (B, 2), (C, 3), (D, 4), (E, 5), (N3, 6)], procs: seats(vec![vec![Add(M3, 10)], vec![Remove(A)], vec![Get(B)]]), ..three("tiers3-chain-out") },
        // the copy that a set replaces lies where its own chain passes
        Config { init: vec![(A, 1), (B, 2), (C, 3), (D, 4)], procs: seats(vec![vec![Set(A, 20)], vec![Evict(D)], vec![Get(A), Get(B)]]), ..three("tiers3-set-through-its-copy") },
        Config { init: vec![(A, 1), (B, 2), (C, 3), (D, 4)], procs: seats(vec![vec![Promote(A)], vec![Update(B, 20)], vec![Get(A), Get(B)]]), ..three("tiers3-up-through-its-copy") },
        Config { init: vec![(A, 1), (B, 2), (C, 3)], procs: seats(vec![vec![Set(A, 20)], vec![Update(B, 30)], vec![Get(A), Get(B)]]), ..three("tiers3-set-empties-its-hole") },
        // every cell is taken: the oldest of all is the copy that a set replaces, and yet it is another one that leaves
        Config { n: 1, keys: crowd(), init: vec![(A, 1), (B, 2), (C, 3), (D, 4), (E, 5), (M3, 6)], procs: seats(vec![vec![Set(A, 20)], vec![Update(C, 30)], vec![Get(A), Get(B)]]), ..three("tiers3-set-when-full") },
        // usurped in a lower tier: m's home is taken there by a member of bucket 0
        Config { init: vec![(A, 1), (B, 2), (M3, 3)], down: vec![A, B], procs: seats(vec![vec![Evict(M3)], vec![Remove(A)], vec![Get(M3), Get(B)]]), ..three("tiers3-usurp-below") },
        Config { slices: 2, n: 2, w: 2, init: vec![(A, 1), (B, 2)], down: vec![A], procs: seats(vec![vec![Evict(B)], vec![Set(A, 20)], vec![Get(A), Get(B)]]), ..three("tiers3-slices") },
        // two movers and a writer die in turn
        Config { deaths: 3, init: vec![(A, 1)], down: vec![A], procs: seats(vec![vec![Evict(A)], vec![Promote(A)], vec![Get(A), Set(A, 30)]]), ..three("tiers3-three-deaths") },
    ]
}

/// Foreign members in a full window. Buckets 0,1,2,... with window 3.
fn cascade(name: &'static str, kind: u8) -> Config {
    // keys: p,q at 0; r,s at 1; t,u at 2; z at 3
    let keys = vec![key('p', 1, 0, 9), key('q', 2, 0, 9), key('r', 3, 1, 2), key('s', 4, 1, 8), key('t', 5, 2, 1), key('u', 6, 2, 8), key('z', 7, 3, 7)];
    let (p, q, r, s, t, u, z) = (0, 1, 2, 3, 4, 5, 6);
    let base = Config { keys, nrec: 7, n: 4, w: 3, ..world(name) };
    match kind {
        // r is displaced by s from 1 to 2; p is at 0. Window of 0 = {0,1,2} full; oldest member r (base 1) moves to 3
        1 => Config { init: vec![(p, 1), (r, 2), (s, 3)], procs: seats(vec![vec![Add(q, 10)], vec![Update(r, 20)], vec![Get(r), Get(p)]]), ..base },
        // window 4: p@0 s@1 u@2 r@3 (of 1) t@4 (of 2), 5 empty. Adding q moves t to 5, r to 4, p to 3: words 0, 1, 2
        2 => Config { w: 4, init: vec![(p, 1), (r, 2), (t, 3), (s, 4), (u, 5)], procs: seats(vec![vec![Add(q, 10)], vec![Add(z, 20)], vec![Get(t), Get(r)]]), ..base },
        4 => Config { w: 4, init: vec![(p, 1), (r, 2), (t, 3), (s, 4), (u, 5)], procs: seats(vec![vec![Add(q, 10)], vec![Remove(t)], vec![Update(r, 30)]]), ..base },
        _ => Config { n: 4, init: vec![(p, 1), (r, 2), (s, 3), (z, 5), ], procs: seats(vec![vec![Add(q, 10)], vec![Add(t, 20)], vec![Get(r), Get(p)]]), ..base },
    }
}

/// Slice 0: b@0, a@1 (member of 0). Slice 1: p@0, s@1, r@2 (member of 1), window of 0 full.
/// Adding q to bucket 0 goes to slice 1 and displaces r: words 0, 1. Adding t to bucket 1 goes to slice 0 and usurps a: words 1, 0.
fn crossing() -> Config {
    let keys = vec![key('a', 1, 0, 5), key('b', 2, 0, 6), key('p', 3, 0, 7), key('q', 4, 0, 8), key('r', 5, 1, 1), key('s', 6, 1, 4), key('t', 7, 1, 9)];
    let (a, b, p, q, r, s, t) = (0, 1, 2, 3, 4, 5, 6);
    Config { keys, slices: 2, n: 3, w: 3, nrec: 7, init: vec![(a, 1), (p, 2), (b, 3), (r, 4), (s, 50)],
        procs: seats(vec![vec![Add(q, 10)], vec![Add(t, 20)], vec![Get(a), Get(r)]]), ..world("crossing-usurpers") }
}

/// Bucket 0 and bucket 1 hold different elements with the same 32-bit key.
fn twins() -> Config {
    let keys = vec![key('a', 1, 0, 1), key('b', 2, 0, 2), key('k', 7, 0, 3), key('K', 7, 1, 4), key('n', 5, 1, 5)];
    let (a, b, k, kk, n) = (0, 1, 2, 3, 4);
    let _ = (b, k);
    Config { keys, w: 3, init: vec![(kk, 1), (a, 2), (b, 3)], procs: seats(vec![vec![Remove(a)], vec![Add(n, 20)], vec![Get(k)]]), ..world("equal-key32") }
}

/// All multisets of three operations, one per process, over a few starting contents.
pub fn sweeps() -> Vec<(&'static str, Vec<Config>)> {
    let triples = |mk: &dyn Fn() -> Config, ops: &[Op]| -> Vec<Config> {
        let mut v = Vec::new();
        for i in 0..ops.len() { for j in i..ops.len() { for k in j..ops.len() {
            let fix = |o: Op, n: u8| match o { Add(x, v) => Add(x, v + n), Set(x, v) => Set(x, v + n), Update(x, v) => Update(x, v + n), o => o };
            v.push(Config { procs: seats(vec![vec![fix(ops[i], 0)], vec![fix(ops[j], 1)], vec![fix(ops[k], 2)]]), ..mk() });
        } } }
        v
    };
    let ops = [Add(C, 10), Add(M, 20), Set(A, 30), Remove(A), Remove(B), Evict(B), Get(A)];
    let tier_ops = [Add(C, 10), Add(M3, 20), Set(A, 30), Remove(A), Evict(B), Evict(A), Promote(A), Get(A)];
    let full_ops = [Add(E, 10), Add(M3, 20), Set(A, 30), Remove(A), Evict(B), Promote(B), Get(A)];
    vec![
        ("w3, {a,b}", triples(&|| Config { init: vec![(A, 1), (B, 2)], nrec: 6, ..world("sweep") }, &ops)),
        ("w3, {a,b,m}", triples(&|| Config { init: vec![(A, 1), (B, 2), (M, 3)], nrec: 6, ..world("sweep") }, &ops)),
        ("w2 full, {a,b}", triples(&|| Config { w: 2, init: vec![(A, 1), (B, 2)], nrec: 6, ..world("sweep") }, &ops)),
        ("w3 full, {a,b,c}", triples(&|| Config { init: vec![(A, 1), (B, 2), (C, 3)], nrec: 6, ..world("sweep") }, &ops)),
        ("2 slices w2, {a,b}", triples(&|| Config { slices: 2, n: 3, w: 2, init: vec![(A, 1), (B, 2)], nrec: 6, ..world("sweep") }, &ops)),
        ("2 tiers w2, {a,b}", triples(&|| Config { tiers: 2, n: 3, w: 2, init: vec![(A, 1), (B, 2)], nrec: 6, ..world("sweep") }, &ops)),
        ("3 tiers w2, a below", triples(&|| Config { init: vec![(A, 1), (B, 2)], down: vec![A], ..three("sweep") }, &tier_ops)),
        ("3 tiers w2, a at the bottom", triples(&|| Config { init: vec![(A, 1), (B, 2)], down: vec![A, A], ..three("sweep") }, &tier_ops)),
        ("3 tiers w2, full", triples(&|| Config { init: vec![(A, 1), (B, 2), (C, 3), (D, 4)], ..three("sweep") }, &full_ops)),
        ("2 tiers w2, shared ctl", triples(&|| Config { tiers: 2, n: 3, w: 2, shift: 1, init: vec![(A, 1), (B, 2)], nrec: 6, ..world("sweep") }, &ops)),
    ]
}

fn named(name: &str) -> Config { protocol().into_iter().find(|c| c.name == name).unwrap_or_else(|| panic!("no scenario {name}")) }

pub fn mutants() -> Vec<(Mutant, Vec<Config>)> {
    use Mutant::*;
    let all = || { let mut v = protocol(); v.retain(|c| !c.name.contains("four") && c.name != "three-deaths"); v };
    vec![
        (LockBeforeIntent, vec![named("collision-update-get")]),
        (UnlinkBeforeCopy, vec![named("collision-update-get")]),
        (RecovererTakesOwner, vec![named("collision-update-get")]),
        (SeatBeforeRecovery, vec![named("seat-reuse")]),
        (NoGeneration, vec![named("record-reuse")]),
        (CropZeroesFirst, vec![named("crop-two-removes")]),
        (NoDoneMark, vec![named("collision-remove-base")]),
        (RecoveryNoDoneMark, vec![named("collision-remove-base")]),
        (UndecidedRelease, vec![named("same-fill-three-deaths")]),
        (RlockNamesSeat, vec![named("seat-reuse-four"), named("three-deaths")]),
        (NoRecheck, vec![named("seat-reuse"), named("seat-reuse-four")]),
        (NoSealMark, vec![named("demote-by-full-window")]),
        (NoBackCheck, vec![named("equal-key32")]),
        (MissUnvalidated, all()),
        (PopBeforeIntent, vec![named("add-empty-same-key")]),
        (UndoVisibleAdd, vec![named("add-empty-same-key")]),
        (KillBeforeUnlink, vec![named("updates-collide"), named("collision-remove-base")]),
        (BlockOutOfOrder, vec![named("crossing-usurpers")]),
        (TryLockOnly, vec![named("crossing-usurpers")]),
        (LockTwice, vec![named("shared-ctl-usurp-demote")]),
        (ClearBeforeRelease, vec![named("collision-update-get")]),
        (OutForgotten, vec![named("full-own-oldest-leaves")]),
        (DeliverAfterKill, vec![named("full-own-oldest-leaves")]),
        (HitNeedsLive, vec![named("updates-collide")]),
        (FreeSeatFirst, vec![named("seat-reuse")]),
        (MoveUnlinksFirst, vec![named("tiers3-down-set-get")]),
        (SetKeepsOlderCopy, vec![named("tiers3-set-remove-oldest")]),
        (RemoveOnlyYoungest, vec![named("tiers3-down-remove-sink")]),
        (OldCopyMayLeave, vec![named("tiers3-set-when-full")]),
        (MissUnvalidated, vec![named("tiers3-up-and-down")]),
        (NoSealMark, vec![named("tiers3-set-empties-its-hole")]),
    ]
}
