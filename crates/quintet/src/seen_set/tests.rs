use super::*;
use crate::sync::{AtomicUsize, Ordering};
use std::hash::Hash;

const GROWTHS: [Growth; 2] = [Growth::Spread, Growth::Together];

fn builders<R: Record + ?Sized>() -> Vec<SeenSetBuilder<R>> {
    let mut builders = Vec::new();
    for growth in GROWTHS {
        for ids in [Ids::Narrow, Ids::Wide] {
            let base = SeenSet::builder().growth(growth).ids(ids);
            builders.push(base.clone());
            builders.push(base.shards(1).max_load(0.9).parents(true));
        }
    }
    builders
}

#[test]
fn every_record_has_one_id_and_keeps_it() {
    for builder in builders() {
        let set: SeenSet<u64> = builder.build();
        let handle = set.handle();
        let ids: Vec<_> = (0..20_000u64).map(|n| handle.insert(n)).collect();
        assert!(ids.iter().all(|insertion| insertion.is_new()));
        for n in 0..20_000 {
            let id = ids[n as usize].id();
            assert_eq!(handle.insert(n), Insertion::Existing(id));
            assert_eq!(set.get(id), Some(&n));
            assert_eq!(handle.find(&n), Some(id));
        }
        assert!(!set.contains(&20_000));
        assert_eq!(set.len(), 20_000);
        let mut all: Vec<_> = set.iter().map(|(id, &n)| (n, id)).collect();
        all.sort_unstable();
        assert!(all.iter().enumerate().all(|(at, &(n, id))| n == at as u64 && id == ids[at].id()));
        assert_eq!(all.len(), 20_000);
    }
}

#[test]
fn byte_strings_of_any_length_and_of_one() {
    for builder in builders() {
        let set: SeenSet<[u8]> = builder.clone().build();
        let handle = set.handle();
        let text = |n: usize| vec![(n % 251) as u8; n % 300];
        let mut known = std::collections::HashMap::new();
        for n in 0..5_000 {
            let insertion = handle.insert(&text(n));
            assert_eq!(insertion.is_new(), !known.contains_key(&text(n)));
            known.entry(text(n)).or_insert(insertion.id());
        }
        for (text, id) in &known {
            assert_eq!(set.get(*id), Some(&text[..]));
        }
        let huge = vec![7; 100_000];
        assert_eq!(set.get(handle.insert(&huge).id()), Some(&huge[..]));
        assert_eq!(set.iter().count(), known.len() + 1);

        let fixed: SeenSet<[u8]> = builder.width(5).build();
        let handle = fixed.handle();
        for n in 0..5_000u32 {
            let bytes = [0, n as u8, (n >> 8) as u8, 1, 2];
            let id = handle.insert(&bytes).id();
            assert_eq!(fixed.get(id), Some(&bytes[..]));
        }
        assert_eq!(fixed.len(), 5_000);
        let wrong = handle.fallible().insert(&[1; 6]).unwrap_err();
        assert_eq!(wrong, SeenError::Width { expected: 5, found: 6 });
    }
}

#[test]
fn a_trace_leads_from_the_first_ancestor() {
    for ids in [Ids::Narrow, Ids::Wide] {
        let set: SeenSet<u32> = SeenSet::<u32>::builder().ids(ids).parents(true).build();
        let handle = set.handle();
        let mut last = handle.insert(0).id();
        for n in 1..1_000 {
            last = handle.insert_from(n, last, n * 2).id();
        }
        // Reached again: the first way counts.
        let first = set.find(&0).unwrap();
        assert!(!handle.insert_from(999, first, 1).is_new());
        let trace: Vec<_> = set.trace(last).iter().map(|&id| *set.get(id).unwrap()).collect();
        assert_eq!(trace, (0..1_000).collect::<Vec<_>>());
        assert!(set.trace(last)[1..].iter().all(|&id| set.label(id) == set.get(id).unwrap() * 2));
        assert_eq!(set.parent(first), None);
    }
}

#[test]
fn an_id_of_another_set_names_nothing() {
    let (one, other) = (SeenSet::<String>::new(), SeenSet::<String>::new());
    let id = one.handle().insert("a".to_owned()).id();
    other.handle().insert("b".to_owned());
    assert_eq!(other.get(id), None);
    assert_eq!(other.parent(id), None);
    assert_eq!(other.trace(id), [id]);
    let foreign = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        other.handle().insert_from("c".to_owned(), id, 0)
    }));
    assert!(foreign.is_err());
}

#[test]
fn counted_inserts_are_numbered_without_gaps() {
    let set = SeenSet::<u64>::new();
    let mut numbers: Vec<u64> = std::thread::scope(|scope| {
        let insert = || {
            let handle = set.handle();
            (0..1_000).filter_map(|n| handle.insert_counted(n).1).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(insert)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=1_000).collect::<Vec<_>>());
}

/// A record that counts how many of its kind live.
#[derive(Debug)]
struct Counted<'a>(u64, &'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(number: u64, alive: &'a AtomicUsize) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self(number, alive)
    }
}
impl PartialEq for Counted<'_> {
    fn eq(&self, other: &Self) -> bool {
        assert_ne!(self.0, u64::MAX, "on purpose");
        self.0 == other.0
    }
}
impl Eq for Counted<'_> {}
impl Hash for Counted<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        // The poisoned record has the hash of record 7.
        state.write_u64(if self.0 == u64::MAX { 7 } else { self.0 });
    }
}
impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn each_record_is_dropped_once() {
    for growth in GROWTHS {
        let alive = AtomicUsize::new(0);
        let set: SeenSet<Counted<'_>> = SeenSet::builder().growth(growth).build();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let handle = set.handle();
                    (0..10_000).for_each(|n| _ = handle.insert(Counted::new(n, &alive)));
                });
            }
        });
        assert_eq!(alive.load(Ordering::Relaxed), 10_000);
        drop(set);
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn a_panic_in_eq_changes_nothing() {
    let alive = AtomicUsize::new(0);
    let set = SeenSet::<Counted<'_>>::new();
    let handle = set.handle();
    handle.insert(Counted::new(7, &alive));
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        // Sought against kept: either side of the comparison is the poisoned one.
        handle.find(&Counted::new(u64::MAX, &alive));
    }));
    assert!(outcome.is_err());
    assert!(!handle.insert(Counted::new(7, &alive)).is_new());
    assert!(handle.insert(Counted::new(8, &alive)).is_new());
    assert_eq!((set.len(), alive.load(Ordering::Relaxed)), (2, 2));
}

#[test]
fn a_set_smaller_than_one_chunk_grows_inside_its_bounds() {
    // The whole table is a part of a chunk: the end of the chunk must be clamped to it.
    for growth in GROWTHS {
        for records in 0..200u64 {
            let set: SeenSet<u64> = SeenSet::<u64>::builder().growth(growth).shards(1).build();
            let handle = set.handle();
            (0..records).for_each(|n| assert!(handle.insert(n).is_new()));
            (0..records).for_each(|n| assert!(handle.contains(&n)));
            assert_eq!(set.iter().count() as u64, records);
        }
    }
}

#[test]
fn a_budget_is_an_error_and_nothing_is_lost() {
    for growth in GROWTHS {
        for budget in [0, 1_000, 20_000, 100_000, 1_000_000] {
            let builder = SeenSet::<u64>::builder().growth(growth).budget(budget);
            let set: SeenSet<u64> = builder.build();
            let handle = set.handle();
            let mut kept = Vec::new();
            let mut refused = 0;
            for n in 0..200_000u64 {
                match handle.fallible().insert(n) {
                    Ok(Insertion::Inserted(id)) => kept.push((n, id)),
                    Ok(other) => panic!("{other:?}"),
                    Err(SeenError::Budget { held, .. }) => {
                        assert!(held <= budget);
                        refused += 1;
                    }
                    Err(other) => panic!("{other}"),
                }
                if refused > 1_000 {
                    break;
                }
            }
            assert!(refused > 0, "{budget} bytes hold no 200,000 records");
            assert!(set.memory_bytes() <= budget);
            for &(n, id) in &kept {
                assert_eq!(handle.fallible().insert(n), Ok(Insertion::Existing(id)));
                assert_eq!(set.get(id), Some(&n));
            }
            assert_eq!(set.iter().count(), kept.len());
        }
    }
}

#[test]
fn a_budget_that_ends_in_the_middle_of_a_growth_loses_nothing() {
    // The successor is there, but the arena cannot be extended: inserts fail while the growth goes
    // on.
    for budget in (17_000..19_000).step_by(10) {
        let set: SeenSet<[u8]> =
            SeenSet::<[u8]>::builder().shards(1).budget(budget).width(8).build();
        let handle = set.handle();
        let mut kept = Vec::new();
        for n in 0..2_000u64 {
            if let Ok(insertion) = handle.fallible().insert(&n.to_le_bytes()) {
                kept.push((n, insertion.id()));
            }
        }
        for &(n, id) in &kept {
            assert_eq!(handle.find(&n.to_le_bytes()), Some(id));
        }
    }
}

#[test]
fn omissions_are_as_many_as_reported() {
    for (bits, records) in [(16, 2_000u64), (20, 20_000), (24, 100_000)] {
        let (mut omitted, mut expected, mut any) = (0.0, 0.0, 0.0);
        for _ in 0..20 {
            let set = SeenPrints::builder().bits(bits).build();
            let handle = set.handle();
            omitted += (0..records).filter(|n| !handle.insert(n)).count() as f64;
            assert!((0..records).all(|n| handle.contains(&n)));
            expected += set.expected_omissions();
            any += set.omission_probability();
        }
        assert!((omitted - expected).abs() < 6.0 * expected.sqrt(), "{omitted} of {expected}");
        assert!(any / 20.0 > 0.99);
    }
    let set = SeenPrints::new();
    let handle = set.handle();
    assert!((0..100_000).all(|n| handle.insert(&n)));
    let probability = set.omission_probability();
    assert!((2e-10..4e-10).contains(&probability), "{probability}");
}

#[test]
fn fingerprints_survive_growth_of_either_kind() {
    for growth in GROWTHS {
        let set = SeenPrints::builder().growth(growth).build();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let handle = set.handle();
                    (0..30_000u64).for_each(|n| _ = handle.insert(&n));
                });
            }
        });
        assert_eq!(set.len(), 30_000);
        assert!((0..30_000u64).all(|n| set.contains(&n)));
    }
}

#[test]
fn memory_stays_below_18_bytes_per_record_from_a_hundred_thousand_on() {
    // One thread: one that the system stops inside an operation would hold back what was there
    // then.
    let set = SeenSet::<u64>::new();
    let handle = set.handle();
    let mut worst = 0f64;
    for n in 0..1_000_000u64 {
        handle.insert(n);
        if n > 100_000 {
            worst = worst.max(set.made().unwrap().core.account.tables() as f64 / n as f64);
        }
    }
    assert!(worst > 8.0 && worst <= 18.0, "{worst} bytes per record");
    eprintln!("at most {worst:.1} bytes of tables per record");
}

#[test]
fn memory_held_back_by_a_reader_is_given_back_soon() {
    let set = SeenSet::<u64>::new();
    let handle = set.handle();
    (0..100_000).for_each(|n| _ = handle.insert(n));
    let reader = set.iter();
    (100_000..400_000).for_each(|n| _ = handle.insert(n));
    let held = set.table_bytes() as f64 / 400_000.0;
    assert!(held > 18.0, "the reader holds tables back: {held}");
    drop(reader);
    (400_000..410_000).for_each(|n| _ = handle.insert(n));
    let held = set.table_bytes() as f64 / 410_000.0;
    assert!(held <= 18.0, "{held} bytes per record");
}

/// Records with repetitions, near and far.
fn repeating(count: u64) -> impl Iterator<Item = u64> {
    (0..count).flat_map(|n| [n, n / 2, n, n.saturating_sub(9)])
}

#[test]
fn many_inserts_are_told_of_as_single_ones_are() {
    for builder in builders() {
        for count in [0, 1, 2, 7, 8, 9, 25, 3_000] {
            let (single, many): (SeenSet<u64>, SeenSet<u64>) =
                (builder.clone().build(), builder.clone().build());
            let one_by_one = single.handle();
            let expected: Vec<_> = repeating(count).map(|n| one_by_one.insert(n)).collect();
            let mut told = Vec::new();
            let handle = many.handle();
            handle.insert_each(repeating(count), |insertion| told.push(insertion));
            assert_eq!(told.len(), expected.len());
            for ((told, expected), record) in told.iter().zip(&expected).zip(repeating(count)) {
                assert_eq!(told.is_new(), expected.is_new());
                assert_eq!(many.get(told.id()), Some(&record));
                assert_eq!(handle.find(&record), Some(told.id()), "each lies where others seek it");
            }
            assert_eq!(many.len(), single.len());
        }
    }
}

/// Hashes every word to one of two values: all tags of a half are alike.
#[derive(Default)]
struct Halves(u64);

impl std::hash::Hasher for Halves {
    fn write(&mut self, _: &[u8]) {
        unreachable!("words only")
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = (word & 1) << 63 | 1 << 40;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// A word with the right tag may be another record's, and the one sought may lie behind it, on the
/// same line or further on.
#[test]
fn many_inserts_of_records_with_alike_hashes() {
    type Hashing = std::hash::BuildHasherDefault<Halves>;
    for count in [6, 40] {
        let seen = SeenSet::with_hasher(Hashing::default());
        let handle = seen.handle();
        for round in 0..3 {
            let mut next = 0;
            handle.insert_each(0..count, |insertion| {
                assert_eq!(insertion.is_new(), round == 0, "{next}");
                assert_eq!(seen.get(insertion.id()), Some(&next));
                next += 1;
            });
        }
        assert_eq!(seen.iter().count() as u64, count);
    }
}

#[test]
fn many_byte_strings_with_parents_and_labels() {
    let set: SeenSet<[u8]> = SeenSet::<[u8]>::builder().parents(true).build();
    let handle = set.handle();
    let root = handle.insert(b"root").id();
    let texts: Vec<String> = (0..500).map(|n| format!("record {}", n % 400)).collect();
    let records = texts.iter().zip(0..).map(|(text, label)| (text.as_bytes(), label));
    let mut told = Vec::new();
    handle.insert_each_from(root, records, |insertion| told.push(insertion));
    for (n, insertion) in told.iter().enumerate() {
        assert_eq!(insertion.is_new(), n < 400);
        assert_eq!(set.get(insertion.id()), Some(texts[n].as_bytes()));
        assert_eq!(set.parent(insertion.id()), Some(root));
        assert_eq!(set.label(insertion.id()), n as u32 % 400);
    }
    assert_eq!(set.len(), 401);
}

#[test]
fn many_inserts_end_with_an_error_in_order() {
    let set: SeenSet<u64> = SeenSet::<u64>::builder().budget(100_000).build();
    let handle = set.handle();
    let mut told = 0;
    let refused = handle.fallible().insert_each(0..100_000, |insertion| {
        assert!(insertion.is_new());
        told += 1;
    });
    assert!(matches!(refused, Err(SeenError::Budget { .. })), "{refused:?}");
    assert_eq!(set.len() as u64, told);
    assert!((0..told).all(|n| set.contains(&n)) && !set.contains(&told));
}

#[test]
fn many_inserts_drop_each_record_once_whatever_panics() {
    let alive = AtomicUsize::new(0);
    let set = SeenSet::<Counted<'_>>::new();
    for panics_at in [0, 5, 30, 99] {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut told = 0;
            let records = (0..100).map(|n| Counted::new(n, &alive));
            set.handle().insert_each(records, |_| {
                assert_ne!(told, panics_at, "on purpose");
                told += 1;
            });
        }));
        assert!(outcome.is_err());
        assert_eq!(alive.load(Ordering::Relaxed), set.len());
    }
    drop(set);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[test]
fn many_inserts_by_many_threads_agree() {
    for growth in GROWTHS {
        let set: SeenSet<u64> = SeenSet::<u64>::builder().growth(growth).build();
        let new = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let handle = set.handle();
                    handle.insert_each(repeating(20_000), |insertion| {
                        new.fetch_add(usize::from(insertion.is_new()), Ordering::Relaxed);
                    });
                });
            }
        });
        assert_eq!((set.len(), new.load(Ordering::Relaxed)), (20_000, 20_000));
        assert_eq!(set.iter().count(), 20_000);
    }
}

#[test]
fn a_leaving_handle_is_not_waited_for() {
    let set: SeenSet<u64> = SeenSet::<u64>::builder().growth(Growth::Together).build();
    let mut idle = set.handle();
    std::thread::scope(|scope| {
        let offline = idle.offline();
        let busy = scope.spawn(|| {
            let handle = set.handle();
            (0..10_000).for_each(|n| assert!(handle.insert(n).is_new()));
        });
        busy.join().unwrap();
        drop(offline);
        // A handle that leaves while the others wait for it lets them go.
        let busy = scope.spawn(|| {
            let handle = set.handle();
            (10_000..100_000).for_each(|n| assert!(handle.insert(n).is_new()));
        });
        while set.waiting_for().is_empty() {
            std::thread::yield_now();
        }
        let missing = set.waiting_for();
        assert!(missing.len() == 1 && missing[0].starts_with("handle 0 of thread"), "{missing:?}");
        drop(idle);
        busy.join().unwrap();
    });
    assert_eq!(set.len(), 100_000);
    assert!((0..100_000).all(|n| set.contains(&n)));
}

#[test]
fn a_forgotten_offline_guard_wedges_nobody() {
    let set: SeenSet<u64> = SeenSet::<u64>::builder().growth(Growth::Together).build();
    let mut first = set.handle();
    std::mem::forget(first.offline());
    let second = set.handle(); // takes the place that the first has left
    std::thread::scope(|scope| {
        scope.spawn(move || (0..10_000).for_each(|n| _ = second.insert(n)));
        (0..10_000).for_each(|n| _ = first.insert(n));
        drop(first);
    });
    assert_eq!(set.len(), 10_000);
}

#[test]
fn a_growth_that_ends_meanwhile_is_not_answered_by_another() {
    // An insert that met a growth finds it over when it looks again: it must go on, not grow the
    // set once more.
    for growth in GROWTHS {
        for _ in 0..20 {
            let builder = SeenSet::<u64>::builder().growth(growth).shards(1);
            let set: SeenSet<u64> = builder.build();
            std::thread::scope(|scope| {
                for thread in 0..3u64 {
                    let set = &set;
                    scope.spawn(move || {
                        let handle = set.handle();
                        (0..3_000).for_each(|n| _ = handle.insert(n * 3 + thread));
                    });
                }
            });
            assert_eq!(set.len(), 9_000);
            let (slots, fill) = (set.stats().slots, set.stats().load);
            assert!(fill > 0.25, "{slots} slots");
        }
    }
}

/// What is made when the marks are used up knows its own ids, and takes no foreign one for a record
/// that is not there.
#[test]
fn sets_beyond_the_last_mark_search_for_their_records() {
    for (ids, id_bits) in [(Ids::Narrow, 32), (Ids::Wide, 40)] {
        let crowded = || {
            let mut set = SeenSet::<String>::builder().ids(ids).parents(true).build();
            set.crowd(id_bits);
            set
        };
        let (set, other) = (crowded(), crowded());
        let handle = set.handle();
        let root = handle.insert("root".to_owned()).id();
        for n in 0..3_000 {
            let id = handle.insert_from(n.to_string(), root, n).id();
            if n % 100 == 0 {
                assert_eq!(set.get(id).map(String::as_str), Some(&*n.to_string()));
                assert_eq!((set.parent(id), set.label(id)), (Some(root), n));
                assert_eq!(set.trace(id), [root, id]);
                // The other set has the extent's first unit only, once it has any.
                assert_eq!(other.get(id), None);
                assert_eq!(other.trace(id), [id]);
            }
        }
        let alone = other.handle().insert("alone".to_owned()).id();
        assert_eq!(other.get(alone).map(String::as_str), Some("alone"));
        let foreign = SeenSet::<String>::new().handle().insert("x".to_owned()).id();
        assert_eq!(set.get(foreign), None);
    }
}

#[test]
fn many_fingerprints_are_taken_in_as_single_ones_are() {
    for growth in GROWTHS {
        for count in [0, 1, 15, 16, 17, 3_000, 40_000u64] {
            let (single, many) = (
                SeenPrints::builder().growth(growth).seed(7).build(),
                SeenPrints::builder().growth(growth).seed(7).build(),
            );
            let expected = repeating(count).filter(|n| single.insert(n)).count();
            assert_eq!(many.handle().insert_many(repeating(count)), expected);
            assert_eq!(many.insert_many(repeating(count)), 0);
            let asked: Vec<_> = (0..count + 40).collect();
            let mut found = vec![false; asked.len()];
            many.contains_many(&asked, &mut found);
            assert!(found.iter().zip(&asked).all(|(&found, &n)| found == (n < count)));
            many.handle().contains_many(&asked, &mut found);
            assert!(found.iter().zip(&asked).all(|(&found, &n)| found == (n < count)));
        }
    }
}

#[test]
fn a_walk_goes_on_on_another_thread() {
    for records in [1_000, 100_000u64] {
        let set: SeenSet<u64> = (0..records).collect();
        let mut walk = set.iter();
        let here = walk.by_ref().take(500).count();
        let there = std::thread::scope(|scope| {
            let more = scope.spawn(|| set.insert_many(records..records * 3));
            let there = scope.spawn(move || walk.filter(|(_, n)| **n < records).count());
            more.join().unwrap();
            there.join().unwrap()
        });
        assert_eq!(here + there, records as usize);
    }
}
