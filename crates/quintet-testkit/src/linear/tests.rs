use super::*;
use crate::Rng;
use crate::model::{Cell, Op, Ret, accepts};

fn op(thread: u32, invoked: u64, returned: u64, op: Op, ret: Ret) -> Operation {
    Operation { key: 1, op, ret, thread, invoked, returned }
}

fn verdict(operations: &[Operation]) -> Report {
    check(&History::from_operations(operations.to_vec()))
}

#[test]
fn a_read_after_a_write_must_see_it() {
    let write = op(0, 1, 2, Op::Insert(5), Ret::Value(None));
    let stale = op(1, 3, 4, Op::Get, Ret::Value(None));
    let report = verdict(&[write, stale]);
    assert_eq!(report.violations.len(), 1);
    assert_eq!(report.violations[0].culprit, stale);
    assert_eq!(report.violations[0].possible, [Some(5)]);
    assert_eq!(report.violations[0].before, [write]);
}

#[test]
fn an_overlapping_read_may_see_either() {
    let write = op(0, 1, 4, Op::Insert(5), Ret::Value(None));
    for seen in [None, Some(5)] {
        assert!(verdict(&[write, op(1, 2, 3, Op::Get, Ret::Value(seen))]).passed());
    }
    assert!(!verdict(&[write, op(1, 2, 3, Op::Get, Ret::Value(Some(6)))]).passed());
}

#[test]
fn two_reads_cannot_go_back_in_time() {
    let write = op(0, 1, 9, Op::Insert(5), Ret::Value(None));
    let new = op(1, 2, 3, Op::Get, Ret::Value(Some(5)));
    let old = op(2, 4, 5, Op::Get, Ret::Value(None));
    assert!(!verdict(&[write, new, old]).passed());
}

#[test]
fn a_lost_update_is_found() {
    let add = |thread, old| op(thread, 1, 5, Op::FetchAdd(1), Ret::Value(old));
    assert!(verdict(&[add(0, None), add(1, Some(1)), add(2, Some(2))]).passed());
    assert!(!verdict(&[add(0, None), add(1, Some(1)), add(2, Some(1))]).passed());
}

#[test]
fn only_one_insert_of_a_new_key_wins() {
    let insert = |thread, won| op(thread, 1, 5, Op::InsertNew(7), Ret::Flag(won));
    assert!(verdict(&[insert(0, true), insert(1, false)]).passed());
    assert!(!verdict(&[insert(0, true), insert(1, true)]).passed());
}

#[test]
fn an_unknown_outcome_may_or_may_not_have_happened() {
    let broken_off = op(0, 1, 2, Op::Insert(5), Ret::Unknown);
    for seen in [None, Some(5)] {
        let read = op(1, 3, 4, Op::Get, Ret::Value(seen));
        assert!(verdict(&[broken_off, read]).passed(), "{seen:?}");
        let changed = op(1, 5, 6, Op::Get, Ret::Value(if seen.is_some() { None } else { Some(5) }));
        assert!(!verdict(&[broken_off, read, changed]).passed(), "{seen:?}");
    }
}

#[test]
fn a_forgetful_table_may_forget_but_not_remember_again() {
    let write = op(0, 1, 2, Op::Put(5), Ret::Done);
    let gone = op(0, 3, 4, Op::Get, Ret::Value(None));
    let back = op(0, 5, 6, Op::Get, Ret::Value(Some(5)));
    let history = |operations: &[Operation]| History::from_operations(operations.to_vec());
    let forgetful = Checker::default().forgetful();
    assert!(forgetful.check(&history(&[write, gone])).passed());
    assert!(!check(&history(&[write, gone])).passed());
    assert!(!forgetful.check(&history(&[write, gone, back])).passed());
}

#[test]
fn what_the_table_held_before_counts() {
    let mut model = MapModel::new();
    model.set(1, Some(5));
    let read = History::from_operations(vec![op(0, 1, 2, Op::Get, Ret::Value(Some(5)))]);
    assert!(Checker::default().initial(model).check(&read).passed());
    assert!(!check(&read).passed());
}

#[test]
fn keys_are_independent_and_each_has_its_witness() {
    let on = |key, ret| Operation { key, ..op(key as u32, 1, 2, Op::Get, Ret::Value(ret)) };
    let report = verdict(&[on(1, None), on(2, Some(1)), on(3, Some(2))]);
    assert_eq!(report.violations.iter().map(|w| w.key).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(report.operations, 3);
}

/// Overlapping writes that return nothing, and a read that fits none: every order is a candidate.
#[test]
fn beyond_the_budget_the_answer_is_unknown() {
    let mut operations: Vec<_> =
        (0..20).map(|i| op(i, 1, 10, Op::Put(u64::from(i)), Ret::Done)).collect();
    operations.push(op(20, 11, 12, Op::Get, Ret::Value(Some(99))));
    let history = History::from_operations(operations);
    let report = Checker::default().step_budget(10_000).check(&history);
    assert_eq!((report.unknown, report.violations.len()), (1, 0));
    assert!(!report.passed());
}

/// Without rule 2 this takes 2^40 configurations.
#[test]
fn overlapping_reads_do_not_branch() {
    let mut operations: Vec<_> =
        (0..40).map(|i| op(i, 2, 10, Op::Get, Ret::Value(Some(1)))).collect();
    operations.push(op(40, 0, 1, Op::Put(1), Ret::Done));
    operations.push(op(41, 2, 11, Op::Get, Ret::Value(Some(2))));
    let report = verdict(&operations);
    assert_eq!((report.violations.len(), report.unknown), (1, 0));
    assert!(report.steps < 2_000, "{}", report.steps);
}

#[test]
fn overlap_tells_turns_from_concurrency() {
    let turn = |i: u64| op(0, 2 * i, 2 * i + 1, Op::Get, Ret::Value(None));
    let turns = verdict(&(0..50).map(turn).collect::<Vec<_>>());
    assert_eq!((turns.steps, turns.overlapping), (50, 0));
    let crowd: Vec<_> = (0..8).map(|i| op(i, 1, 9, Op::Get, Ret::Value(None))).collect();
    let crowd = verdict(&crowd);
    assert_eq!(crowd.overlapping, 8);
    assert!(crowd.overlap() > 2.0);
}

#[test]
fn the_witness_reads_well() {
    let write = op(0, 1, 2, Op::Insert(5), Ret::Value(None));
    let stale = op(1, 3, 6, Op::Get, Ret::Value(Some(9)));
    let beside = op(2, 4, 7, Op::Insert(6), Ret::Value(Some(5)));
    let text = verdict(&[write, stale, beside]).violations[0].to_string();
    let expected = "\
key 1: nothing explains
    [3..6] thread 1: key 1 Get -> Value(Some(9))
  when the key could hold 6 or 5
  after
    [1..2] thread 0: key 1 Insert(5) -> Value(None)
    [4..7] thread 2: key 1 Insert(6) -> Value(Some(5))";
    assert_eq!(text, expected);
}

/// The definition, literally: some order of all operations (those of unknown outcome may be left
/// out) respects real time and the model.
fn by_definition(open: &mut Vec<Operation>, cell: Cell, forgetful: bool) -> bool {
    if open.is_empty() {
        return true;
    }
    for at in 0..open.len() {
        let next = open[at];
        if open.iter().any(|other| other.returned < next.invoked) {
            continue;
        }
        let mut afters = vec![accepts(cell, next.op, next.ret)];
        if forgetful {
            afters.push(accepts(None, next.op, next.ret));
        }
        if next.ret == Ret::Unknown {
            afters.push(Some(cell));
        }
        open.remove(at);
        let found = afters.into_iter().flatten().any(|after| by_definition(open, after, forgetful));
        open.insert(at, next);
        if found {
            return true;
        }
    }
    false
}

/// Small random histories, most of them almost right: simulated with a random point of effect,
/// then one answer in some of them is changed.
fn random_history(rng: &mut Rng) -> Vec<Operation> {
    let mut cell = None;
    let mut operations = Vec::new();
    for point in 0..rng.u64(1..8) {
        let value = rng.u64(0..3);
        let call = match rng.u32(0..9) {
            0 => Op::Get,
            1 => Op::Put(value),
            2 => Op::Insert(value),
            3 => Op::InsertNew(value),
            4 => Op::Remove,
            5 => Op::FetchAdd(value),
            6 => Op::CompareExchange { expected: value, new: rng.u64(0..3) },
            7 => Op::GetOrInsert(value),
            _ => Op::Delete,
        };
        let mut ret = crate::model::run(&mut cell, call, 0);
        if rng.u32(0..8) == 0 {
            ret = crate::model::run(&mut Some(value), call, 0);
        }
        if rng.u32(0..12) == 0 {
            ret = Ret::Unknown;
        }
        let at = 10 * point + 100;
        let thread = operations.len() as u32;
        operations.push(op(thread, at - rng.u64(0..40), at + rng.u64(0..40), call, ret));
    }
    operations
}

#[test]
fn agrees_with_the_definition_on_small_histories() {
    let mut rng = Rng::with_seed(0x5eed);
    let mut violations = 0;
    for round in 0..20_000 {
        let operations = random_history(&mut rng);
        for forgetful in [false, true] {
            let checker = Checker { forgetful, ..Checker::default() };
            let report = checker.check(&History::from_operations(operations.clone()));
            let expected = by_definition(&mut operations.clone(), None, forgetful);
            assert_eq!(report.passed(), expected, "round {round}: {operations:#?}");
            violations += u32::from(!expected);
        }
    }
    assert!((4_000..36_000).contains(&violations), "{violations}");
}
