//! Items that come back to their emptied place, and removals that find nothing (`at_once` O6).

use super::*;

/// A set of one emptied place, whose table both know.
fn emptied() -> (Shared<Set>, Member, Member) {
    let (set, ours, theirs) = set_of(LOW);
    assert_eq!((ours.remove(LOW), theirs.get(LOW)), (Some(10), None));
    (set, ours, theirs)
}

#[test]
fn loom_two_that_fill_one_emptied_place_see_each_other_once() {
    model(|| {
        let (set, ours, theirs) = emptied();
        let other = theirs.spawn(|theirs| theirs.insert(LOW, 1));
        let mine = ours.insert(LOW, 2);
        let theirs = other.join().unwrap();
        assert!(matches!(
            (mine, theirs, ours.get(LOW)),
            (None, Some(2), Some(1)) | (Some(1), None, Some(2))
        ));
        assert_eq!(set.len(), 1);
    });
}

#[test]
fn loom_an_item_that_comes_back_is_not_lost_by_a_growth() {
    model(|| {
        let (set, ours, theirs) = emptied();
        let starter = Member::of(&set);
        let other = theirs.spawn(|theirs| (theirs.insert(LOW, 1), theirs.get(LOW)));
        starter.resize(1);
        assert_eq!(other.join().unwrap(), (None, Some(1)));
        assert_eq!((ours.get(LOW), set.len()), (Some(1), 1));
    });
}

/// One of them comes first, and the other sees it.
#[test]
fn loom_a_removal_finds_nothing_only_where_nothing_is() {
    model(|| {
        let (set, ours, theirs) = emptied();
        let other = theirs.spawn(|theirs| (theirs.insert(LOW, 1), theirs.insert(LOW, 2)));
        let mine = ours.remove(LOW);
        let theirs = other.join().unwrap();
        let left = ours.get(LOW);
        assert!(matches!(
            (mine, theirs, left),
            (None, (None, Some(1)), Some(2))
                | (Some(1), (None, None), Some(2))
                | (Some(2), (None, Some(1)), None)
        ));
        assert_eq!(set.len(), usize::from(left.is_some()));
    });
}

/// What is there all the time is found by who removes it, wherever it is just then.
#[test]
fn loom_a_removal_during_a_growth_never_misses() {
    model(|| {
        let (set, ours, theirs) = set_of(LOW);
        let starter = Member::of(&set);
        let other = theirs.spawn(|theirs| theirs.remove(LOW));
        starter.resize(1);
        assert_eq!(other.join().unwrap(), Some(10));
        assert_eq!((ours.get(LOW), set.len()), (None, 0));
    });
}
