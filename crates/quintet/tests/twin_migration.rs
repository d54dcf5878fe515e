//! What flashmap, left-right, evmap and arc-swap document, asked of `TwinMap`: the same answer, or
//! the difference that the migration page tells.

use quintet::TwinMap;
use quintet::twin_map::{Absorb, Differs, GuardError, InertMap, ReadGuard, Stalled, Twin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const SOON: Duration = Duration::from_millis(20);

/// Every test that the page names is here.
#[test]
fn the_page_names_these_tests() {
    let (page, tests) =
        (include_str!("../docs/twin_map_migration.md"), include_str!("twin_migration.rs"));
    let named: Vec<&str> =
        page.split("`twin_migration::").skip(1).filter_map(|rest| rest.split('`').next()).collect();
    assert!(named.len() >= 20);
    for name in named {
        assert!(tests.contains(&format!("fn {name}()")), "{name}");
    }
}

// ---- flashmap
// -------------------------------------------------------------------------------------------------------

#[test]
fn a_guard_shows_one_version_and_a_new_one_the_next() {
    let (mut writer, reader) = TwinMap::<String, String>::new().split();
    let guard = reader.pin();
    writer.guard().insert("ferris".to_owned(), "crab".to_owned());
    assert!(!guard.contains_key("ferris"));
    drop(guard);
    assert_eq!(reader.pin()["ferris"], "crab");
}

#[test]
fn the_writer_reads_its_own_writes() {
    let (mut writer, reader) = TwinMap::<&str, &str>::new().split();
    let mut guard = writer.guard();
    guard.insert("apple", "red");
    assert_eq!(guard.get("apple"), Some(&"red"));
    assert_eq!(guard.remove("apple"), Some("red"));
    assert!(!guard.contains_key("apple") && !reader.contains_key("apple"));
}

#[test]
fn dropping_the_write_guard_publishes() {
    let (mut writer, reader) = TwinMap::<u32, u32>::new().split();
    let mut guard = writer.guard();
    guard.insert(1, 1);
    drop(guard);
    assert_eq!(reader.len(), 1);
}

/// flashmap publishes what was done before a panic.
#[test]
fn a_panic_publishes_nothing() {
    let (mut writer, reader) = TwinMap::<u32, u32>::new().split();
    let half = std::panic::AssertUnwindSafe(|| {
        let mut guard = writer.guard();
        guard.insert(1, 1);
        panic!("on purpose");
    });
    assert!(std::panic::catch_unwind(half).is_err());
    assert!(reader.is_empty());
    writer.guard().insert(2, 2);
    assert_eq!(reader.len(), 1);
}

/// An evicted value is shown at once and handed back when no reader can see it.
#[test]
fn evicted_values_come_back() {
    let (mut writer, reader) = InertMap::<u32, String>::builder().build_inert();
    writer.guard().insert(1, "red".to_owned());
    let old = reader.owned_pin();
    assert_eq!(writer.guard().remove(&1).map(String::as_str), Some("red"));
    drop(writer.guard());
    assert_eq!(writer.evicted().next(), None, "a reader can see it");
    assert_eq!(old.get(&1).map(String::as_str), Some("red"));
    drop(old);
    drop(writer.guard());
    assert_eq!(writer.evicted().next().as_deref(), Some("red"));
}

/// A writer that finds readers in its way waits, and the last of them wakes it.
#[test]
fn the_last_reader_wakes_the_writer() {
    let (mut writer, reader) =
        TwinMap::<u32, u32>::builder().stalled(Stalled::Wait).build().split();
    let (begun, has_begun) = mpsc::channel();
    let readers: Vec<_> = (0..3)
        .map(|n| {
            let (reader, begun) = (reader.clone(), begun.clone());
            std::thread::spawn(move || {
                let guard = reader.pin();
                begun.send(()).unwrap();
                std::thread::sleep(n * SOON);
                guard.len()
            })
        })
        .collect();
    (0..3).for_each(|_| has_begun.recv().unwrap());
    writer.guard().insert(1, 1);
    writer.guard().insert(2, 2); // returns when all three have gone
    assert_eq!(reader.len(), 2);
    assert!(readers.into_iter().all(|reader| reader.join().unwrap() == 0));
}

/// `synchronize` blocks until all readers see one version: here that is what a guard waits for
/// before it is there.
#[test]
fn a_guard_is_there_when_all_readers_see_one_version() {
    let (mut writer, reader) =
        TwinMap::<u32, u32>::builder().stalled(Stalled::Wait).build().split();
    let (begun, has_begun) = mpsc::channel();
    let (end, is_over) = mpsc::channel::<()>();
    let other = reader.clone();
    let sleeper = std::thread::spawn(move || {
        let guard = other.pin();
        begun.send(()).unwrap();
        let _ = is_over.recv();
        guard.len()
    });
    has_begun.recv().unwrap();
    writer.guard().insert(1, 1);
    assert!(writer.try_guard().is_err(), "somebody sees the version before");
    drop(end);
    assert_eq!(sleeper.join().unwrap(), 0);
    assert!(writer.try_guard().is_ok());
}

/// In flashmap a publish reaches handle after handle.
#[test]
fn a_publish_is_one_moment_for_all_handles() {
    let (mut writer, reader) = TwinMap::<u32, u32>::new().split();
    let handles: Vec<_> = (0..50).map(|_| reader.clone()).collect();
    let stop = Arc::new(AtomicUsize::new(0));
    let looking = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let mut last = 0;
            while stop.load(Ordering::Relaxed) == 0 {
                for handle in &handles {
                    let version = handle.version();
                    assert!(version >= last, "one handle was told, another not");
                    last = version;
                }
            }
        }
    });
    for n in 0..2_000 {
        writer.guard().insert(0, n);
    }
    stop.store(1, Ordering::Relaxed);
    looking.join().unwrap();
}

// ---- left-right
// -----------------------------------------------------------------------------------------------------

#[derive(Clone, Default)]
struct Sum(i64);

impl Absorb<i64> for Sum {
    type Old = ();
    fn absorb_first(&mut self, op: &mut i64) -> Option<()> {
        self.0 += *op;
        None
    }
    fn absorb_second(&mut self, op: i64, _: &mut Vec<()>) -> Result<(), Differs> {
        self.0 += op;
        Ok(())
    }
    fn rebuild(from: &Self) -> Self {
        from.clone()
    }
}

#[test]
fn a_structure_of_ones_own_is_absorbed_twice() {
    let (mut twin, reader) = Twin::new(Sum::default());
    for _ in 0..3 {
        let mut write = twin.guard();
        write.apply(2);
        assert_eq!(write.staged(), 1);
        write.publish();
    }
    assert_eq!((reader.pin().0, twin.version()), (6, 3));
}

/// There `enter` gives nothing once the writer is gone; here the last version stays.
#[test]
fn readers_outlive_the_writer() {
    let (mut twin, reader) = Twin::new(Sum::default());
    twin.guard().apply(1);
    let held = reader.pin();
    drop(twin);
    assert!(reader.is_final());
    assert_eq!((held.0, reader.clone().pin().0), (1, 1));
}

/// There a publish waits for the readers of the old copy; here it does not, and neither does the
/// next one.
#[test]
fn a_publish_waits_for_nobody() {
    let (mut twin, reader) = Twin::new(Sum::default());
    let (begun, has_begun) = mpsc::channel();
    let (end, is_over) = mpsc::channel::<()>();
    let other = reader.clone();
    let sleeper = std::thread::spawn(move || {
        let guard = other.pin();
        begun.send(()).unwrap();
        let _ = is_over.recv();
        guard.0
    });
    has_begun.recv().unwrap();
    for _ in 0..10 {
        twin.guard().apply(1);
    }
    assert_eq!((reader.pin().0, twin.stats().left_behind), (10, 1));
    drop(end);
    assert_eq!(sleeper.join().unwrap(), 0);
}

/// `try_publish` says whether it had to wait; here it is the guard that says so, before anything is
/// staged.
#[test]
fn trying_waits_for_nobody() {
    let (mut twin, reader) = Twin::<Sum, i64>::with_stalled(Sum::default(), Stalled::Wait);
    twin.guard().apply(1);
    let guard = reader.pin();
    twin.guard().apply(1);
    assert!(twin.try_guard().is_err(), "the copy before is in use");
    assert_eq!((guard.0, reader.version()), (1, 2), "what was published stays published");
    drop(guard);
    assert_eq!(twin.try_guard().unwrap().0, 2);
}

/// There a thread with a guard that publishes twice waits for itself for ever.
#[test]
fn a_thread_with_a_guard_may_publish() {
    let (mut twin, reader) = Twin::new(Sum::default());
    let guard = reader.pin();
    for _ in 0..10 {
        twin.guard().apply(1);
    }
    let second = reader.pin();
    twin.guard().apply(1);
    assert!(matches!(twin.guard_timeout(SOON).err(), Some(GuardError::WouldDeadlock)), "told");
    assert_eq!((guard.0, second.0, reader.pin().0), (0, 10, 11));
}

#[test]
fn a_guard_is_mapped_to_a_part() {
    let map = TwinMap::from([("a", vec![1, 2, 3])]);
    let part = ReadGuard::map(map.pin(), |version| &version["a"][1..]);
    assert_eq!(*part, [2, 3]);
    assert!(ReadGuard::filter_map(map.pin(), |version| version.get("b")).is_err());
}

/// A handle stays on one thread at a time; what several threads share makes handles, and reads by
/// itself.
#[test]
fn a_shared_reader_is_the_factory() {
    let (mut writer, reader) = TwinMap::<u32, u32>::new().split();
    writer.guard().insert(1, 1);
    let shared = reader.shared();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!((shared.pin().len(), shared.reader().len()), (1, 1)));
        }
    });
}

// ---- evmap
// ----------------------------------------------------------------------------------------------------------

#[test]
fn nothing_is_seen_before_the_publish() {
    let (mut writer, reader) = TwinMap::<char, u32>::new().split();
    assert!(reader.get(&'x').is_none(), "a map that was never published is empty, and can be read");
    let mut write = writer.guard();
    write.insert('x', 42);
    assert!(reader.get(&'x').is_none());
    write.publish();
    assert_eq!(reader.get(&'x').as_deref(), Some(&42));
}

/// Several values per key, `update`, `empty` and `clear` of a key.
#[test]
fn many_values_per_key_are_a_list() {
    let map = TwinMap::<char, Vec<u32>>::new();
    let add =
        |value| map.update_or_insert('x', |old| [old.as_slice(), &[value]].concat(), vec![value]);
    assert_eq!((add(1), add(2)), (vec![1], vec![1, 2]));
    map.insert('x', vec![3]);
    assert_eq!(map.get(&'x').as_deref(), Some(&vec![3]));
    assert_eq!(map.remove(&'x'), Some(vec![3]));
    assert!(map.is_empty());
}

/// `purge`, `remove_value`, `retain`, `has_pending`, `extend`, `map_into`, `contains_value`.
#[test]
fn bags_are_cleared_filtered_and_listed() {
    let (mut writer, reader) = TwinMap::<char, Vec<u32>>::new().split();
    let mut write = writer.guard();
    assert_eq!(write.staged(), 0);
    write.extend([('x', vec![1, 2, 3]), ('y', vec![4])]);
    let mut calls = 0;
    write.modify(&'x', |bag| {
        calls += 1;
        bag.retain(|value| value % 2 == 1);
    });
    assert_eq!((write.staged() > 0, calls), (true, 1), "the closure runs once, on one copy");
    write.publish();
    writer.guard().publish();
    assert_eq!((&reader.pin()[&'x'], calls), (&vec![1, 3], 1), "the other copy is alike");
    let mut keys: Vec<char> = reader.pin().iter().map(|(key, _)| *key).collect();
    keys.sort_unstable();
    assert_eq!(keys, ['x', 'y']);
    assert!(reader.pin()[&'y'].contains(&4));
    writer.guard().clear();
    assert!(reader.is_empty() && !reader.is_final());
}

/// There lookups give nothing once the writer is gone.
#[test]
fn lookups_go_on_when_the_writer_is_gone() {
    let (mut writer, reader) = TwinMap::<char, u32>::new().split();
    writer.guard().insert('x', 1);
    drop(writer);
    assert_eq!(reader.get(&'x').as_deref(), Some(&1));
}

/// There values are shared between the copies, whatever they are; here each copy has its own, and
/// both may lead to one.
#[test]
fn copies_do_not_share_cells() {
    use std::sync::Mutex;
    let (mut writer, reader) = TwinMap::<u32, Arc<AtomicUsize>>::new().split();
    writer.guard().insert(1, Arc::default());
    for n in 1..=4 {
        reader.pin()[&1].fetch_add(1, Ordering::Relaxed);
        writer.guard().publish();
        assert_eq!(reader.pin()[&1].load(Ordering::Relaxed), n);
    }
    #[derive(Default)]
    struct Cell(Mutex<Vec<u32>>);
    impl Clone for Cell {
        fn clone(&self) -> Self {
            Self(Mutex::new(self.0.lock().unwrap().clone()))
        }
    }
    let (mut writer, reader) = TwinMap::<u32, Cell>::new().split();
    writer.guard().insert(1, Cell::default());
    reader.pin()[&1].0.lock().unwrap().push(1);
    writer.guard().publish();
    assert!(reader.pin()[&1].0.lock().unwrap().is_empty());
}

#[test]
fn a_batch_is_seen_whole() {
    let map = TwinMap::<u32, u32>::new();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..500 {
                map.batch(|write| write.extend([(0, n), (1, n)]));
            }
        });
        while !writer.is_finished() {
            let version = map.pin();
            assert_eq!(version.get(&0), version.get(&1));
        }
    });
}

// ---- arc-swap
// -------------------------------------------------------------------------------------------------------

#[test]
fn a_load_shows_what_was_stored() {
    let map = TwinMap::from([("a", 1)]);
    let before = map.owned_pin();
    map.replace_all([("b", 2)]);
    assert_eq!((before.get("a"), before.get("b")), (Some(&1), None));
    assert_eq!((map.pin().get("a"), map.pin().get("b")), (None, Some(&2)));
}

/// Old versions live as long as somebody owns them, and hold up nobody.
#[test]
fn old_versions_live_as_long_as_their_owners() {
    let value = Arc::new(());
    let map = TwinMap::new();
    let versions: Vec<_> = (0..20)
        .map(|n| {
            map.insert(n, Arc::clone(&value));
            map.owned_pin()
        })
        .collect();
    assert!(versions.iter().enumerate().all(|(at, version)| version.len() == at + 1));
    drop(versions);
    map.clear();
    map.clear();
    map.clear();
    assert_eq!(Arc::strong_count(&value), 1);
}

/// `swap` gives the old content; `compare_and_swap` stores only if the content is the one that was
/// seen.
#[test]
fn contents_are_exchanged_and_compared_by_version() {
    let map = TwinMap::from([(1, "one")]);
    let old: Vec<_> = map.batch(|write| {
        let old = write.iter().map(|(key, value)| (*key, *value)).collect();
        write.replace_all([(2, "two")]);
        old
    });
    assert_eq!((old, map.get(&2).as_deref()), (vec![(1, "one")], Some(&"two")));
    let store_if = |seen: u64, value| {
        map.batch(|write| {
            let same = write.version() == seen;
            if same {
                write.replace_all([(3, value)]);
            }
            same
        })
    };
    let seen = map.version();
    assert!(store_if(seen, "first"));
    assert!(!store_if(seen, "late"));
    assert_eq!(map.get(&3).as_deref(), Some(&"first"));
}

/// What `rcu` does with the whole content, `update` does with one entry: the closure runs again if
/// it was too late.
#[test]
fn updates_of_many_threads_lose_nothing() {
    let map = TwinMap::from([(0, 0)]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..100).all(|_| map.update(&0, |old| old + 1).is_some()));
        }
    });
    assert_eq!(map.get(&0).as_deref(), Some(&400));
}

/// A guard may be kept for long, also by the thread that writes: one version of it is free of
/// charge but for a copy.
#[test]
fn a_guard_kept_for_long_costs_a_copy() {
    let map = TwinMap::from([(0, 0)]);
    let before = map.memory_bytes();
    let kept = map.pin();
    for n in 1..10 {
        map.insert(n, n);
    }
    assert_eq!((kept.len(), map.len(), map.stats().left_behind), (1, 10, 1));
    assert!(map.memory_bytes() > before);
}
