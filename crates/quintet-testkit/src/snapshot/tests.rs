use super::*;
use crate::model::Cell;

/// Version 1 in [10..20], 2 in [30..40], 3 in [50..60]; each sets keys 1 and 2 to its number.
fn published() -> Vec<Published> {
    let version = |n: u64| Published {
        changes: vec![(1, Some(n)), (2, Some(n))],
        started: 20 * n - 10,
        finished: 20 * n,
    };
    (1..=3).map(version).collect()
}

fn guard(handle: u32, asked: u64, taken: u64, one: Cell, two: Cell) -> GuardView {
    GuardView { handle, asked, taken, version: None, seen: vec![(1, one), (2, two)] }
}

fn broken(guards: &[GuardView], publish: Publish) -> Vec<Broken> {
    let history = SnapshotHistory { published: published(), guards: guards.to_vec() };
    check(&history, publish).violations.iter().map(|violation| violation.broken).collect()
}

#[test]
fn guards_of_single_versions_pass() {
    let guards = [
        guard(0, 1, 2, None, None),
        guard(0, 11, 12, None, None),
        guard(1, 13, 14, Some(1), Some(1)),
        guard(0, 41, 42, Some(2), Some(2)),
        guard(1, 70, 71, Some(3), Some(3)),
    ];
    assert_eq!(broken(&guards, Publish::AtOnce), []);
}

#[test]
fn half_a_publish_is_seen() {
    let guards = [guard(0, 35, 36, Some(2), Some(1))];
    assert_eq!(broken(&guards, Publish::AtOnce), [Broken::OneVersion]);
    assert_eq!(broken(&guards, Publish::HandleByHandle), [Broken::OneVersion]);
}

#[test]
fn a_version_from_the_future_is_no_version_yet() {
    let guards = [guard(0, 25, 26, Some(2), Some(2))];
    assert_eq!(broken(&guards, Publish::HandleByHandle), [Broken::OneVersion]);
}

#[test]
fn one_handle_never_goes_back() {
    let guards = [guard(0, 35, 36, Some(2), Some(2)), guard(0, 37, 38, Some(1), Some(1))];
    assert_eq!(broken(&guards, Publish::AtOnce), [Broken::NeverBack]);
    assert_eq!(broken(&guards, Publish::HandleByHandle), [Broken::NeverBack]);
}

#[test]
fn a_publish_is_one_moment_for_all_handles() {
    let guards = [guard(0, 35, 36, Some(2), Some(2)), guard(1, 37, 38, Some(1), Some(1))];
    assert_eq!(broken(&guards, Publish::AtOnce), [Broken::AtOnce]);
    assert_eq!(broken(&guards, Publish::HandleByHandle), []);
    let overlapping = [guard(0, 35, 38, Some(2), Some(2)), guard(1, 37, 39, Some(1), Some(1))];
    assert_eq!(broken(&overlapping, Publish::AtOnce), []);
}

#[test]
fn a_guard_after_a_publish_sees_it() {
    let guards = [guard(0, 41, 42, Some(1), Some(1))];
    assert_eq!(broken(&guards, Publish::AtOnce), [Broken::AtOnce]);
    assert_eq!(broken(&guards, Publish::HandleByHandle), []);
}

#[test]
fn a_guard_must_show_the_version_it_tells() {
    let telling =
        |version| GuardView { version: Some(version), ..guard(0, 35, 36, Some(2), Some(2)) };
    assert_eq!(broken(&[telling(2)], Publish::AtOnce), []);
    assert_eq!(broken(&[telling(1)], Publish::AtOnce), [Broken::OneVersion]);
}
