//! Every operation of `SeenSet`, on the set itself and on its handles.

use quintet::seen_set::{Growth, Handle, Ids, Insertion, RecordId, SeenError};
use quintet::{SeenPrints, SeenSet};
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const GROWTHS: [Growth; 2] = [Growth::Spread, Growth::Together];

/// The operations of the column, in one story that both ways in tell alike.
macro_rules! story {
    ($way:expr) => {{
        let way = $way;
        assert!(way.is_empty() && !way.contains("a"));
        let a = way.insert("a");
        assert!(
            a.is_new()
                && !way.insert("a".to_owned()).is_new()
                && !way.insert(&"a".to_owned()).is_new()
        );
        assert_eq!((way.get(a.id()).map(String::as_str), way.find("a")), (Some("a"), Some(a.id())));
        let b = way.insert_from("b", a.id(), 7).id();
        assert_eq!((way.parent(b), way.label(b)), (Some(a.id()), 7));
        assert_eq!(way.trace(b), [a.id(), b]);
        assert_eq!(way.insert_counted("c").1, Some(1));
        assert_eq!(way.insert_counted("c").1, None);
        assert_eq!(way.insert_many(["c", "d", "d", "e"]), 2);
        let mut told = Vec::new();
        way.insert_each(["e", "f"], |insertion| told.push(insertion.is_new()));
        assert_eq!(told, [false, true]);
        let mut last = None;
        way.insert_each_from(b, [("f", 1), ("g", 2)], |insertion| last = Some(insertion.id()));
        assert_eq!((way.parent(last.unwrap()), way.label(last.unwrap())), (Some(b), 2));
        let mut found = [true; 3];
        way.contains_many(["a", "z", "g"], &mut found);
        assert_eq!(found, [true, false, true]);
        assert_eq!((way.len(), way.iter().count()), (7, 7));
        way.reserve(10_000);
        assert!(way.capacity() >= 10_000 && way.try_reserve(usize::MAX).is_err());
        let growths = way.stats().growths;
        assert_eq!(way.insert_many((0..10_000).map(|n| n.to_string())), 10_000);
        assert_eq!(way.stats().growths, growths, "there was room");
        assert!(way.memory_bytes() > way.table_bytes() && way.stats().len == 10_007);
        assert!(way.waiting_for().is_empty());
        let fallible = way.fallible();
        assert_eq!(fallible.insert("a"), Ok(Insertion::Existing(a.id())));
        assert!(fallible.insert_from("h", b, 1).unwrap().is_new());
        assert_eq!(fallible.insert_counted("i").unwrap().1, Some(2));
        assert_eq!(fallible.insert_many(["h", "j"]), Ok(1));
        assert_eq!(fallible.insert_each(["k"], |_| ()), Ok(()));
        assert_eq!(fallible.insert_each_from(b, [("l", 1)], |_| ()), Ok(()));
        assert_eq!(way.len(), 10_012);
    }};
}

#[test]
fn every_operation_on_every_way_in() {
    for growth in GROWTHS {
        for ids in [Ids::Narrow, Ids::Wide] {
            let make =
                || SeenSet::<String>::builder().growth(growth).ids(ids).parents(true).build();
            story!(make());
            let set = make();
            story!(set.handle());
            story!(Arc::new(make()).owned_handle());
        }
    }
}

#[test]
fn types_are_inferred_and_borrowed_forms_go_in() {
    let seen = SeenSet::new();
    assert!(seen.insert(5u64).is_new() && !seen.insert(5).is_new());
    let built = SeenSet::builder().capacity(9).build();
    assert!(built.insert((1u8, 2u8)).is_new());
    let collected: SeenSet<_> = (0..10u32).collect();
    assert_eq!(collected.len(), 10);
    let texts = SeenSet::<Box<str>>::from(["a", "b", "a"]);
    let shared: SeenSet<Arc<str>> = ["a", "b"].into_iter().collect();
    assert_eq!((texts.len(), shared.len()), (2, 2));
    let lists = SeenSet::<Vec<u8>>::new();
    assert!(lists.insert(&[1, 2][..]).is_new() && !lists.insert(&[1, 2]).is_new());
    assert!(!lists.insert(vec![1, 2]).is_new() && lists.contains(&[1u8, 2][..]));
    let bytes = SeenSet::<[u8]>::new();
    assert!(bytes.insert("abc").is_new() && !bytes.insert(b"abc").is_new());
    assert!(!bytes.insert(&b"abc"[..]).is_new() && !bytes.insert(&b"abc".to_vec()).is_new());
    assert!(bytes.contains("abc") && bytes.contains(b"abc") && !bytes.contains(&vec![1]));
    let numbers = SeenSet::with_hasher(std::hash::RandomState::new());
    assert!(numbers.insert(7i32).is_new());
    let seeded = || SeenSet::<u64>::builder().seed(7).build();
    let order = |set: SeenSet<u64, _>| set.iter().map(|(_, n)| *n).collect::<Vec<_>>();
    let filled = || {
        let set = seeded();
        set.insert_many(0..100);
        set
    };
    assert_eq!(order(filled()), order(filled()), "the seed decides");
}

#[test]
fn sets_compare_show_and_extend_like_others() {
    let mut one: SeenSet<u64> = SeenSet::from([1, 2, 3]);
    let other: SeenSet<u64> = [3, 2, 1].into_iter().collect();
    assert_eq!(one, other);
    one.extend([4]);
    assert_ne!(one, other);
    (&other).extend(&[4, 5]);
    assert_ne!(one, other);
    assert_eq!(SeenSet::<u64>::new(), SeenSet::default());
    let sum: u64 = (&one).into_iter().map(|(_, n)| n).sum();
    assert_eq!(sum, 10);
    let handle = one.handle();
    let shown = [format!("{one:?}"), format!("{handle:?}"), format!("{:?}", one.iter())];
    assert!(shown.iter().all(|shown| shown.contains('4') && !shown.contains("0x")), "{shown:?}");
}

#[test]
fn an_owned_handle_outlives_its_arc_on_another_thread() {
    for growth in GROWTHS {
        let seen = Arc::new(SeenSet::<String>::builder().growth(growth).build());
        seen.insert("before");
        let handle = seen.owned_handle();
        drop(seen);
        let thread = std::thread::spawn(move || {
            (0..3_000).for_each(|n| assert!(handle.insert(n.to_string()).is_new()));
            assert!(handle.contains("before") && handle.iter().count() == 3_001);
            handle
        });
        let handle: Handle<'static, String> = thread.join().unwrap();
        let id = handle.find("2999").unwrap();
        assert_eq!(handle.get(id).map(String::as_str), Some("2999"));
        // The last owner, by value.
        drop(handle);
    }
    let prints = Arc::new(SeenPrints::new());
    let handle = prints.owned_handle();
    drop(prints);
    let thread = std::thread::spawn(move || handle.insert("x") && handle.contains("x"));
    assert!(thread.join().unwrap());
}

/// Threads with and without handles insert the same records.
#[test]
fn inserts_by_all_ways_in_lose_nothing() {
    const RECORDS: u64 = 6_000;
    for growth in GROWTHS {
        let seen = SeenSet::<u64>::builder().growth(growth).build();
        let new = AtomicUsize::new(0);
        let insert = |insertion: Insertion| {
            new.fetch_add(usize::from(insertion.is_new()), Ordering::Relaxed);
        };
        std::thread::scope(|scope| {
            scope.spawn(|| (0..RECORDS).for_each(|n| insert(seen.insert(n))));
            scope.spawn(|| (0..RECORDS).rev().for_each(|n| insert(seen.insert(n))));
            scope.spawn(|| {
                let handle = seen.handle();
                (0..RECORDS).for_each(|n| insert(handle.insert(n * 5 % RECORDS)));
            });
            scope.spawn(|| seen.handle().insert_each(0..RECORDS, insert));
        });
        assert_eq!((seen.len() as u64, new.load(Ordering::Relaxed) as u64), (RECORDS, RECORDS));
        let all: HashSet<u64> = seen.iter().map(|(_, n)| *n).collect();
        assert_eq!(all.len() as u64, RECORDS);
    }
}

/// A thread that has a handle, and uses the set itself besides: with `Growth::Together` everybody
/// would wait for its handle.
#[test]
fn a_thread_with_a_handle_may_use_the_set_itself() {
    for growth in GROWTHS {
        let seen = SeenSet::<u64>::builder().growth(growth).build();
        let idle = seen.handle();
        let busy = seen.handle();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let busy = busy;
                for n in 0..5_000 {
                    busy.insert(n * 2);
                }
            });
            (0..20_000).for_each(|n| _ = seen.insert(n * 2 + 1));
            drop(idle);
            thread.join().unwrap();
        });
        seen.reserve(100_000);
        assert_eq!((seen.len(), seen.iter().count()), (25_000, 25_000));
    }
}

/// A record whose `Eq`, `Hash` and `Clone` use the set that asks them, or panic.
#[derive(Debug)]
struct Meddler(u64);

thread_local! {
    static SET: std::cell::RefCell<Option<Arc<SeenSet<Meddler>>>> = const { std::cell::RefCell::new(None) };
    static PANICS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn meddle() {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    assert!(!PANICS.get(), "on purpose");
    if let Some(set) = SET.with_borrow_mut(Option::take) {
        let base = 1_000_000 + 100 * TURN.fetch_add(1, Ordering::Relaxed) as u64;
        assert!(set.insert(Meddler(base)).is_new());
        assert!(set.handle().insert(Meddler(base + 1)).is_new());
        assert_eq!(set.insert_many((2..60).map(|n| Meddler(base + n))), 58);
        assert!(set.contains(&Meddler(base)) && set.iter().count() > 59);
        SET.with_borrow_mut(|next| *next = Some(set));
    }
}

impl Clone for Meddler {
    fn clone(&self) -> Self {
        meddle();
        Self(self.0)
    }
}
impl PartialEq for Meddler {
    fn eq(&self, other: &Self) -> bool {
        meddle();
        self.0 == other.0
    }
}
impl Eq for Meddler {}
impl Hash for Meddler {
    fn hash<H: Hasher>(&self, state: &mut H) {
        meddle();
        self.0.hash(state);
    }
}

#[test]
fn user_code_uses_the_set_that_calls_it() {
    for growth in GROWTHS {
        let seen = Arc::new(SeenSet::<Meddler>::builder().growth(growth).build());
        SET.with_borrow_mut(|set| *set = Some(Arc::clone(&seen)));
        for n in 0..40 {
            let record = Meddler(n);
            assert!(seen.insert(&record).is_new());
        }
        assert!(seen.contains(&Meddler(39)));
        let set = SET.with_borrow_mut(Option::take);
        assert!((0..40).all(|n| !seen.insert(Meddler(n)).is_new()));
        let all: HashSet<u64> = seen.iter().map(|(_, record)| record.0).collect();
        assert_eq!((all.len(), seen.len()), (seen.len(), seen.iter().count()));
        drop(set);
    }
}

#[test]
fn a_panic_in_user_code_changes_nothing() {
    for growth in GROWTHS {
        let seen = SeenSet::<Meddler>::builder().growth(growth).build();
        seen.insert_many((0..100).map(Meddler));
        for n in [5, 500] {
            PANICS.set(true);
            let record = Meddler(n);
            assert!(catch_unwind(AssertUnwindSafe(|| seen.insert(&record))).is_err());
            assert!(catch_unwind(AssertUnwindSafe(|| seen.insert_many([Meddler(n)]))).is_err());
            let records = std::iter::repeat_with(|| panic!("on purpose"));
            assert!(
                catch_unwind(AssertUnwindSafe(|| seen.insert_many::<Meddler>(records))).is_err()
            );
            PANICS.set(false);
        }
        assert_eq!((seen.len(), seen.iter().count()), (100, 100));
        assert!(seen.insert(Meddler(500)).is_new() && !seen.insert(Meddler(5)).is_new());
    }
}

#[test]
fn what_is_lent_stays_while_others_insert_and_the_set_grows() {
    for growth in GROWTHS {
        let seen = SeenSet::<String>::builder().growth(growth).build();
        let ids: Vec<RecordId> = (0..20).map(|n| seen.insert(n.to_string()).id()).collect();
        let lent: Vec<&String> = ids.iter().map(|id| seen.get(*id).unwrap()).collect();
        let mut iter = seen.iter();
        let first = iter.next().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let seen = &seen;
                scope.spawn(move || {
                    let handle = seen.handle();
                    (0..4_000).for_each(|n| _ = handle.insert(format!("{thread} {n}")));
                });
            }
        });
        assert!(lent.iter().enumerate().all(|(n, text)| **text == n.to_string()));
        let walked: HashSet<RecordId> = iter.map(|(id, _)| id).chain([first.0]).collect();
        assert!(ids.iter().all(|id| walked.contains(id)));
    }
}

#[test]
fn errors_are_values_on_fallible() {
    let seen = SeenSet::<[u8]>::builder().width(4).budget(30_000).build();
    let wrong = Err(SeenError::Width { expected: 4, found: 5 });
    assert_eq!(
        (seen.fallible().insert(b"12345"), seen.handle().fallible().insert("12345")),
        (wrong, wrong)
    );
    let bytes: Vec<_> = (0..100_000u32).map(u32::to_le_bytes).collect();
    assert!(matches!(seen.fallible().insert_many(&bytes), Err(SeenError::Budget { .. })));
    let kept = seen.len();
    assert!(bytes[..kept].iter().all(|bytes| seen.contains(bytes)) && !seen.contains(&bytes[kept]));
    assert!(catch_unwind(AssertUnwindSafe(|| seen.insert_many(&bytes))).is_err());
}

#[test]
fn fingerprints_by_every_way_in() {
    for growth in GROWTHS {
        let prints = SeenPrints::builder().growth(growth).capacity(100).build();
        let handle = prints.handle();
        assert!(prints.insert("a") && !handle.insert("a") && handle.contains("a"));
        assert!(prints.fallible().insert("b").unwrap() && !handle.fallible().insert("b").unwrap());
        drop(handle);
        (&prints).extend(0..5_000);
        prints.reserve(20_000);
        assert!(prints.capacity() >= 20_000 && (0..5_000).all(|n| prints.contains(&n)));
        assert_eq!((prints.len(), prints.handle().len()), (5_002, 5_002));
        assert_eq!(
            (prints.insert_many(["a", "c", "c"]), prints.handle().insert_many(["c", "d"])),
            (1, 1)
        );
        assert_eq!(prints.fallible().insert_many(["d", "e"]), Ok(1));
        let mut found = [false; 3];
        prints.contains_many(["e", "f", "a"], &mut found);
        assert_eq!(found, [true, false, true]);
        let wrong = AssertUnwindSafe(|| prints.contains_many(["a", "b"], &mut [false; 3]));
        assert!(catch_unwind(wrong).is_err(), "a place for each record");
        assert!(!format!("{prints:?} {:?}", prints.handle()).contains("0x"));
    }
}

#[cfg(feature = "serde")]
#[test]
fn a_set_is_a_sequence_to_serde() {
    let seen: SeenSet<String> = SeenSet::from(["a", "b"]);
    let text = serde_json::to_string(&seen).unwrap();
    assert_eq!(serde_json::from_str::<SeenSet<String>>(&text).unwrap(), seen);
    let bytes: SeenSet<[u8]> = SeenSet::from([&[1u8, 2][..], &[]]);
    let text = serde_json::to_string(&bytes).unwrap();
    assert_eq!(serde_json::from_str::<SeenSet<[u8]>>(&text).unwrap(), bytes);
}
