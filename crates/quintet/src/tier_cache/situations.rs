//! The 24 situations of the map: what two operations on one bucket can be to each other.
//!
//! Each is a list of cases: what happened before, a first and a second operation. The tests run
//! every case in four modes. Cases live in a map of 8 buckets with a window of 4. `tie` is the
//! slice taken when both are equally loaded, `tick` the age (small is old).

use super::Map;
use super::word::Cbits;

/// One operation on one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Add { hash: u32, bucket: u32, tie: u32, tick: u32, value: u64 },
    Update { hash: u32, bucket: u32, value: u64 },
    Remove { hash: u32, bucket: u32 },
    Get { hash: u32, bucket: u32 },
    Set { hash: u32, bucket: u32, tick: u32, value: u64 },
    Demote { hash: u32, bucket: u32 },
    Promote { hash: u32, bucket: u32 },
}

impl Action {
    /// The key: hash and bucket.
    pub(crate) const fn key(self) -> (u32, u32) {
        match self {
            Self::Add { hash, bucket, .. }
            | Self::Update { hash, bucket, .. }
            | Self::Remove { hash, bucket }
            | Self::Get { hash, bucket }
            | Self::Set { hash, bucket, .. }
            | Self::Demote { hash, bucket }
            | Self::Promote { hash, bucket } => (hash, bucket),
        }
    }
}

/// Two operations that meet.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) tiers: usize,
    pub(crate) before: Vec<Action>,
    /// Asserts that the preparation built what the case is about.
    pub(crate) shape: fn(&Map<'_>, &Case),
    pub(crate) first: Action,
    pub(crate) second: Action,
}

macro_rules! situations {
    ($($name:ident = $number:literal $title:literal),+ $(,)?) => {
        /// What two operations are to each other.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Hash)]
        pub(crate) enum Situation { $(#[doc = $title] $name = $number),+ }

        impl Situation {
            pub(crate) const ALL: [Self; 24] = [$(Self::$name),+];

            pub(crate) const fn title(self) -> &'static str {
                match self { $(Self::$name => $title),+ }
            }

            pub(crate) const fn number(self) -> u32 {
                self as u32
            }
        }
    };
}

situations! {
    AddToEmpty = 1 "add element to empty",
    AddCollisionSpace = 2 "add collision with space",
    AddCollisionFull = 3 "add collision to full",
    AddCollisionAndEmpty = 4 "add collision and empty in the same cycle",
    AddEmptyAndGet = 5 "add to empty and get in the same cycle",
    AddCollisionAndGet = 6 "add to collision and get in the same cycle",
    AddCollisionAndUpdate = 7 "add to collision and update in the same cycle",
    AddEmptyAndDelete = 8 "add to empty and delete in the same cycle",
    AddCollisionAndDeleteMember = 9 "add to collision and delete member in the same cycle",
    AddCollisionAndDeleteBase = 10 "add to collision and delete base in the same cycle",
    UsurpAndGet = 11 "add by usurp and get in the same cycle",
    UsurpAndUpdate = 12 "add by usurp and update in the same cycle",
    UsurpAndDelete = 13 "add by usurp and delete in the same cycle",
    UsurpAndDeleteBase = 14 "add by usurp and delete base in the same cycle",
    Gets = 15 "get multiple without other operations",
    GetsAndDeleteMember = 16 "get one or more with delete member in the same cycle",
    GetsAndDeleteBase = 17 "get one or more with delete base in the same cycle",
    GetsAndUpdate = 18 "get one or more with update in the same cycle",
    UpdatesCollide = 19 "collision update multiple",
    DeleteMembers = 20 "delete multiple members",
    DeleteBaseOnly = 21 "delete base only",
    DeleteBaseAndMembers = 22 "delete base and members in the same cycle",
    DeletesCollide = 23 "delete collision",
    UsurpDeleteInProgress = 24 "usurp delete in progress",
}

const fn add(hash: u32, bucket: u32, tie: u32) -> Action {
    Action::Add { hash, bucket, tie, tick: 100 + hash, value: hash as u64 * 10 }
}

const fn aged(hash: u32, bucket: u32, tie: u32, tick: u32) -> Action {
    Action::Add { hash, bucket, tie, tick, value: hash as u64 * 10 }
}

const fn update(hash: u32, bucket: u32) -> Action {
    Action::Update { hash, bucket, value: hash as u64 * 10 + 1 }
}

const fn remove(hash: u32, bucket: u32) -> Action {
    Action::Remove { hash, bucket }
}

const fn get(hash: u32, bucket: u32) -> Action {
    Action::Get { hash, bucket }
}

/// Bucket of the first operation.
fn home(case: &Case) -> usize {
    case.first.key().1 as usize
}

fn bits(map: &Map<'_>, position: usize) -> Cbits {
    let memory = map.memory();
    memory.cell(memory.at(0, position)).cbits
}

fn any(_: &Map<'_>, _: &Case) {}

fn empty_home(map: &Map<'_>, case: &Case) {
    assert_eq!(bits(map, home(case)).bits(), 0);
}

fn base_home(map: &Map<'_>, case: &Case) {
    assert!(bits(map, home(case)).is_base());
}

fn full_window(map: &Map<'_>, case: &Case) {
    base_home(map, case);
    assert_eq!(map.memory().tbits(0, home(case)), 0b1111);
}

fn member_home(map: &Map<'_>, case: &Case) {
    assert!(bits(map, home(case)).back().is_some(), "{:?}", bits(map, home(case)));
    let memory = map.memory();
    assert!(!memory.cell(memory.at(1, home(case))).is_empty(), "slice 1 is as loaded");
}

/// Bucket 2: slice 0 holds {3 (base), 1}, slice 1 holds {2}.
fn pair() -> Vec<Action> {
    vec![add(1, 2, 0), add(2, 2, 0), add(3, 2, 0)]
}

/// Bucket 2: slice 0 holds {5 (base), 3, 1} in cells 2, 4, 3; slice 1 holds {6 (base), 4, 2}.
fn trio() -> Vec<Action> {
    (1..=6).map(|hash| add(hash, 2, 0)).collect()
}

/// Cells 3 of both slices hold members of bucket 2: an add to bucket 3 with tie 0 usurps in the
/// first slice.
fn usurpable() -> Vec<Action> {
    vec![add(1, 2, 0), add(2, 2, 0), add(3, 2, 0), add(4, 2, 0)]
}

/// As `usurpable`, bucket 2 with three elements per slice.
fn usurpable_trio() -> Vec<Action> {
    trio()
}

/// The window of bucket 2 is full in both slices by its own eight; ticks from `ticks`, oldest first
/// added.
fn full_own(ticks: impl Fn(u32) -> u32) -> Vec<Action> {
    (1..=8).map(|hash| aged(hash, 2, 0, ticks(hash))).collect()
}

/// Slice 0: bucket 1 has four elements in cells 1, 2 (usurped later), 3, 4; bucket 2 is the base of
/// one in cell 2. The oldest in bucket 2's window is a member of bucket 1.
fn full_foreign(oldest: u32) -> Vec<Action> {
    let mut before: Vec<_> = (1..=6).map(|hash| aged(hash, 1, 0, oldest + hash)).collect();
    // Bucket 2 usurps cell 2 in both slices: the members move to cell 4.
    before.push(aged(11, 2, 0, 50));
    before.push(aged(12, 2, 0, 50));
    // Cell 5 is taken by bucket 5.
    before.push(aged(13, 5, 0, 60));
    before.push(aged(14, 5, 0, 60));
    before
}

fn case(before: Vec<Action>, shape: fn(&Map<'_>, &Case), first: Action, second: Action) -> Case {
    Case { tiers: 1, before, shape, first, second }
}

/// Every variant of a situation.
pub(crate) fn cases(situation: Situation) -> Vec<Case> {
    use Situation::*;
    let both = |before: Vec<Action>, shape: fn(&Map<'_>, &Case), first, second| {
        vec![case(before.clone(), shape, first, second), case(before, any, second, first)]
    };
    match situation {
        AddToEmpty => [0, 1, 2, 3, 7]
            .into_iter()
            .flat_map(|bucket| {
                let before = vec![add(40, bucket.max(1) - 1, 0), add(41, (bucket + 1).min(7), 0)];
                let before = if bucket == 2 { Vec::new() } else { before };
                [get(9, bucket), add(9, bucket, 1), add(8, bucket, 0)]
                    .map(|second| case(before.clone(), any, add(9, bucket, 0), second))
            })
            .collect(),
        AddCollisionSpace => (1..=3)
            .flat_map(|count| {
                let before: Vec<_> = (1..=2 * count).map(|hash| add(hash, 2, 0)).collect();
                [get(1, 2), add(9, 2, 1), add(30, 1, 0), add(31, 3, 0), add(30, 7, 0)]
                    .map(|second| case(before.clone(), base_home, add(9, 2, 0), second))
            })
            .collect(),
        AddCollisionFull => {
            let own: Vec<_> =
                [get(1, 2), get(7, 2), add(21, 2, 0), add(22, 3, 0), remove(5, 2)].into();
            let mut all = Vec::new();
            for second in own {
                // The oldest own member leaves; the displaced base is the oldest; equal times.
                all.push(case(full_own(|hash| hash), full_window, aged(20, 2, 0, 99), second));
                all.push(case(full_own(|hash| 90 - hash), full_window, aged(20, 2, 0, 99), second));
                all.push(case(full_own(|_| 7), full_window, aged(20, 2, 0, 99), second));
            }
            for second in
                [get(1, 1), get(11, 2), update(1, 1), remove(1, 1), add(21, 1, 0), add(22, 5, 0)]
            {
                // A foreign member moves on, or leaves.
                all.push(case(full_foreign(10), any, aged(20, 2, 0, 99), second));
                all.push(case(full_foreign(70), any, aged(20, 2, 0, 99), second));
                all.push(case(cascade(), any, aged(20, 2, 0, 99), second));
            }
            // Only bases in the window: the displaced one leaves.
            let singles: Vec<_> = (2..=5)
                .flat_map(|bucket| [add(bucket, bucket, 0), add(bucket + 20, bucket, 0)])
                .collect();
            for second in [get(2, 2), get(3, 3), add(31, 3, 0), remove(2, 2), remove(4, 4)] {
                all.push(case(singles.clone(), full_window, add(30, 2, 0), second));
            }
            // At the end of the array.
            let last: Vec<_> = (1..=8).map(|hash| aged(hash, 7, 0, hash)).collect();
            all.push(case(last.clone(), full_window, aged(20, 7, 0, 99), get(1, 7)));
            all.push(case(last, full_window, aged(20, 7, 0, 99), aged(21, 7, 0, 99)));
            all
        }
        AddCollisionAndEmpty => {
            let mut all = both(Vec::new(), empty_home, add(1, 2, 0), add(2, 2, 0));
            all.extend(both(vec![add(9, 3, 0)], empty_home, add(1, 2, 0), add(2, 2, 1)));
            // Home taken as somebody's hole meanwhile.
            all.extend(both(pair(), empty_home, add(11, 4, 0), add(4, 2, 1)));
            all
        }
        AddEmptyAndGet => both(Vec::new(), empty_home, add(1, 2, 0), get(1, 2)),
        AddCollisionAndGet => [get(3, 2), get(1, 2), get(2, 2), get(9, 2), get(99, 2)]
            .into_iter()
            .flat_map(|second| both(pair(), base_home, add(9, 2, 0), second))
            .collect(),
        AddCollisionAndUpdate => [update(3, 2), update(1, 2), update(9, 2)]
            .into_iter()
            .flat_map(|second| both(pair(), base_home, add(9, 2, 0), second))
            .collect(),
        AddEmptyAndDelete => {
            let mut all = both(Vec::new(), empty_home, add(1, 2, 0), remove(1, 2));
            all.extend(both(vec![add(8, 1, 0), add(9, 3, 0)], any, add(1, 2, 0), remove(1, 2)));
            all
        }
        AddCollisionAndDeleteMember => [(pair(), 1), (trio(), 3), (trio(), 1)]
            .into_iter()
            .flat_map(|(before, hash)| both(before, base_home, add(9, 2, 0), remove(hash, 2)))
            .collect(),
        AddCollisionAndDeleteBase => {
            [(pair(), 3), (trio(), 5), (vec![add(3, 2, 0), add(2, 2, 0)], 3)]
                .into_iter()
                .flat_map(|(before, hash)| both(before, base_home, add(9, 2, 0), remove(hash, 2)))
                .collect()
        }
        UsurpAndGet => [get(1, 2), get(3, 2), get(2, 2), get(9, 3), get(99, 2), get(99, 3)]
            .into_iter()
            .flat_map(|second| both(usurpable(), member_home, add(9, 3, 0), second))
            .chain(full_usurps(get(1, 2)))
            .collect(),
        UsurpAndUpdate => [update(1, 2), update(3, 2), update(9, 3)]
            .into_iter()
            .flat_map(|second| both(usurpable(), member_home, add(9, 3, 0), second))
            .chain(full_usurps(update(1, 2)))
            .collect(),
        UsurpAndDelete => both(usurpable(), member_home, add(9, 3, 0), remove(1, 2))
            .into_iter()
            .chain(full_usurps(remove(1, 2)))
            .collect(),
        UsurpAndDeleteBase => [
            (usurpable(), remove(3, 2)),
            (usurpable_trio(), remove(5, 2)),
            (usurpable(), remove(9, 3)),
        ]
        .into_iter()
        .flat_map(|(before, second)| both(before, member_home, add(9, 3, 0), second))
        .collect(),
        Gets => [1, 3, 5, 99]
            .into_iter()
            .flat_map(|hash| {
                [
                    case(trio(), base_home, get(hash, 2), get(5, 2)),
                    case(trio(), any, get(hash, 2), get(99, 2)),
                ]
            })
            .collect(),
        GetsAndDeleteMember => [1, 3, 5, 6]
            .into_iter()
            .flat_map(|hash| [1, 3].map(|victim| (hash, victim)))
            .flat_map(|(hash, victim)| both(trio(), base_home, remove(victim, 2), get(hash, 2)))
            .collect(),
        GetsAndDeleteBase => [1, 3, 5, 6, 99]
            .into_iter()
            .flat_map(|hash| both(trio(), base_home, remove(5, 2), get(hash, 2)))
            .collect(),
        GetsAndUpdate => [1, 5]
            .into_iter()
            .flat_map(|hash| both(trio(), base_home, update(hash, 2), get(hash, 2)))
            .collect(),
        UpdatesCollide => {
            let other = Action::Update { hash: 1, bucket: 2, value: 77 };
            let mut all = both(trio(), base_home, update(1, 2), other);
            all.extend(both(trio(), base_home, update(1, 2), remove(1, 2)));
            all.extend(both(trio(), base_home, update(1, 2), update(5, 2)));
            all
        }
        DeleteMembers => both(trio(), base_home, remove(1, 2), remove(3, 2)),
        DeleteBaseOnly => {
            let mut all = both(vec![add(1, 2, 0)], base_home, remove(1, 2), get(1, 2));
            all.extend(both(
                vec![add(1, 2, 0), add(2, 1, 0)],
                base_home,
                remove(1, 2),
                add(9, 2, 0),
            ));
            all.extend(both(vec![add(1, 2, 0)], base_home, remove(1, 2), add(1, 2, 0)));
            all
        }
        DeleteBaseAndMembers => [1, 3]
            .into_iter()
            .flat_map(|hash| both(trio(), base_home, remove(5, 2), remove(hash, 2)))
            .chain(both(pair(), base_home, remove(3, 2), remove(1, 2)))
            .collect(),
        DeletesCollide => [1, 3, 5]
            .into_iter()
            .map(|hash| case(trio(), base_home, remove(hash, 2), remove(hash, 2)))
            .collect(),
        UsurpDeleteInProgress => [1, 3]
            .into_iter()
            .map(|hash| case(usurpable(), any, remove(hash, 2), add(9, 3, 0)))
            .collect(),
    }
}

/// Every variant of a situation in three tiers: as it is; with what was there before a tier further
/// down, as far as each case's two operations are about it; and all of it.
pub(crate) fn tiered(situation: Situation) -> Vec<Case> {
    let mut all = Vec::new();
    for case in cases(situation) {
        let demote = |(hash, bucket)| Action::Demote { hash, bucket };
        let there: Vec<_> = case.before.iter().map(|action| action.key()).collect();
        let meant = |key: &&(u32, u32)| [case.first.key(), case.second.key()].contains(key);
        let moved = |keys: Vec<(u32, u32)>| Case {
            tiers: 3,
            shape: any,
            before: case.before.iter().copied().chain(keys.into_iter().map(demote)).collect(),
            ..case.clone()
        };
        all.push(Case { tiers: 3, ..case.clone() });
        let those: Vec<_> = there.iter().filter(meant).copied().collect();
        if !those.is_empty() {
            all.push(moved(those.clone()));
            all.push(moved(those.iter().flat_map(|key| [*key, *key]).collect()));
        }
        all.push(moved(there));
    }
    all
}

/// What meets a move: every other operation on the same key or a neighbour, in three tiers.
pub(crate) fn moves() -> Vec<Case> {
    let set = |hash, bucket| Action::Set { hash, bucket, tick: 150, value: hash as u64 * 10 + 2 };
    let demote = |hash, bucket| Action::Demote { hash, bucket };
    let promote = |hash, bucket| Action::Promote { hash, bucket };
    let below = |before: Vec<Action>, keys: &[u32]| -> Vec<Action> {
        before.into_iter().chain(keys.iter().map(|hash| demote(*hash, 2))).collect()
    };
    let contents = [
        vec![add(1, 2, 0)],
        trio(),
        below(trio(), &[1, 5]),
        below(trio(), &[1, 1, 3, 5]),
        below(full_own(|hash| hash), &[1, 2, 3]),
        // The window of bucket 2 is full in every tier.
        (1..=20).map(|hash| aged(hash, 2, 0, hash)).collect(),
        // In the second tier a member of bucket 2 sits in the home cell of bucket 3.
        below(
            vec![add(1, 2, 0), add(2, 2, 0), add(5, 2, 0), add(6, 2, 0), add(9, 3, 0)],
            &[1, 2, 5, 6],
        ),
    ];
    let mut all = Vec::new();
    for before in contents {
        let firsts = [demote(1, 2), promote(1, 2), set(1, 2), demote(5, 2), demote(9, 3)];
        for first in firsts {
            for second in [
                get(1, 2),
                get(5, 2),
                get(99, 2),
                update(1, 2),
                remove(1, 2),
                remove(5, 2),
                set(1, 2),
                demote(1, 2),
                promote(1, 2),
                demote(5, 2),
                aged(30, 2, 0, 160),
                aged(31, 3, 0, 160),
            ] {
                all.push(Case { tiers: 3, before: before.clone(), shape: any, first, second });
            }
        }
    }
    all
}

/// Usurping a member whose own window is full: it leaves, or an older one does.
fn full_usurps(second: Action) -> Vec<Case> {
    let rising = full_own(|hash| hash);
    let falling = full_own(|hash| 90 - hash);
    vec![
        case(rising, member_home, aged(9, 3, 0, 99), second),
        case(falling, member_home, aged(9, 3, 0, 99), second),
    ]
}

/// Windows of the buckets 1 and 2 are full in slice 0, and the chain of yielding bases is longer
/// than one.
fn cascade() -> Vec<Action> {
    let mut before: Vec<_> = (1..=6).map(|hash| aged(hash, 0, 0, 10 + hash)).collect();
    before.extend((11..=16).map(|hash| aged(hash, 1, 0, 10 + hash)));
    before.extend([aged(31, 2, 0, 60), aged(32, 2, 0, 61)]);
    before.extend((21..=24).map(|hash| aged(hash, 4, 0, 20 + hash)));
    before
}
