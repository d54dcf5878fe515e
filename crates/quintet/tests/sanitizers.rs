//! Scenarios for ThreadSanitizer and AddressSanitizer, in a program without a test harness: a
//! sanitizer does not see inside the precompiled standard library, whose channels and mutexes would
//! raise false alarms. Run without a sanitizer they are short stress tests.
//!
//! `QUINTET_CONTROL=race` and `QUINTET_CONTROL=free` run a deliberate data race and a deliberate
//! use after free: a sanitizer that stays silent there proves nothing elsewhere.

use quintet::internals::tier::{Geometry, Heap, InputHash, Map, MapError, Owner, Peers};
use quintet::internals::{Barrier, Domain, Retired, Visit};
use quintet::item_set::Keyed;
use quintet::{ItemSet, SeenPrints, SeenSet, TwinMap, WordMap, seen_set, twin_map};
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

fn main() {
    match std::env::var("QUINTET_CONTROL").as_deref() {
        Ok("race") => return control_race(),
        Ok("free") => return control_free(),
        Ok(other) => panic!("QUINTET_CONTROL={other}: use race or free"),
        Err(_) => {}
    }
    let scenarios: &[(&str, fn())] = &[
        ("reclaim", reclaim),
        ("word map", word_map),
        ("item set", item_set),
        ("seen set", seen_set),
        ("seen set together", seen_set_together),
        ("seen set nested", seen_set_nested),
        ("twin map", twin_map),
        ("twin map inert", twin_map_inert),
        ("twin map front", twin_map_front),
        ("tier map", tier_map),
    ];
    for (name, scenario) in scenarios {
        scenario();
        println!("scenario {name} ... ok");
    }
    println!("{} passed, 0 failed", scenarios.len());
}

/// Runs the tasks in threads and joins them one by one: a scope's end is invisible to
/// ThreadSanitizer, a join is not.
fn crew<const N: usize>(tasks: [Box<dyn FnOnce() + Send>; N]) {
    let threads = tasks.map(std::thread::spawn);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

struct Piece {
    value: u64,
    birth: u64,
}

/// A piece behind a pointer that a writer replaces and readers follow.
struct Cell {
    domain: Domain,
    root: AtomicPtr<Piece>,
    stop: AtomicBool,
}

impl Cell {
    fn fresh(&self, value: u64) -> *mut Piece {
        Box::into_raw(Box::new(Piece { value, birth: self.domain.era() }))
    }

    fn look(&self, visit: &Visit<'_>) {
        let mut last = 0;
        loop {
            let place = self.root.load(Ordering::Acquire);
            if visit.check() {
                // SAFETY: checked, so the piece lives until the section ends.
                let value = unsafe { &*place }.value;
                assert!(value >= std::mem::replace(&mut last, value));
                return;
            }
        }
    }

    fn replace(&self, value: u64) {
        let section = self.domain.pin();
        let old = self.root.swap(self.fresh(value), Ordering::AcqRel);
        // SAFETY: only this thread retires pieces, so the old one is alive.
        let birth = unsafe { &*old }.birth;
        // SAFETY: made from a box by `fresh`.
        let old = unsafe { Retired::boxed(old, birth) };
        // SAFETY: unlinked by the swap, retired once.
        unsafe { section.retire(old) };
    }
}

/// Readers by pins and by quiet points, a writer that retires.
fn reclaim() {
    for barrier in [Barrier::Fence, Barrier::detect()] {
        let cell = Arc::new(Cell {
            domain: Domain::with_barrier(barrier),
            root: AtomicPtr::new(std::ptr::null_mut()),
            stop: AtomicBool::new(false),
        });
        cell.root.store(cell.fresh(0), Ordering::Release);
        let (pins, quiet, writes) = (Arc::clone(&cell), Arc::clone(&cell), Arc::clone(&cell));
        crew([
            Box::new(move || {
                let handle = pins.domain.join();
                while !pins.stop.load(Ordering::Relaxed) {
                    pins.look(&handle.pin());
                }
            }),
            Box::new(move || {
                let mut handle = quiet.domain.join_quiet();
                while !quiet.stop.load(Ordering::Relaxed) {
                    quiet.look(&handle.visit());
                    handle.quiescent();
                }
            }),
            Box::new(move || {
                (1..20_000).for_each(|value| writes.replace(value));
                writes.stop.store(true, Ordering::Relaxed);
            }),
        ]);
        // SAFETY: all threads have ended.
        drop(unsafe { Box::from_raw(cell.root.load(Ordering::Relaxed)) });
    }
}

/// Four threads on private and shared keys of a tiny map: it grows, shrinks and compacts under
/// them.
fn word_map() {
    let map = Arc::new(WordMap::<u64, u64>::new());
    let task = |thread: u64, map: Arc<WordMap<u64, u64>>| -> Box<dyn FnOnce() + Send> {
        Box::new(move || {
            let handle = map.handle();
            for key in 0..4_000u64 {
                let own = key * 4 + thread;
                assert_eq!(handle.insert(own, key), None);
                handle.fetch_add(u64::MAX - key % 16, 1);
                assert_eq!(handle.get(own), Some(key));
                if key % 8 != 0 {
                    assert_eq!(handle.remove(own), Some(key));
                }
            }
        })
    };
    crew([0, 1, 2, 3].map(|thread| task(thread, Arc::clone(&map))));
    let shared: u64 = (0..16).filter_map(|key| map.pin().get(u64::MAX - key)).sum();
    assert_eq!((shared, map.len()), (16_000, 2_016));
}

struct Record {
    key: u64,
    value: u64,
}

impl Keyed for Record {
    type Key = u64;
    fn key(&self) -> &u64 {
        &self.key
    }
}

/// Writers replace, change and remove boxed items while readers follow references to them, by every
/// way in.
fn item_set() {
    let set = Arc::new(ItemSet::<Box<Record>>::new());
    let task = |thread: u64, set: Arc<ItemSet<Box<Record>>>| -> Box<dyn FnOnce() + Send> {
        Box::new(move || {
            let (mut handle, own) = (set.quiet_handle(), set.owned_handle());
            for round in 0..6_000u64 {
                let key = (round * 7 + thread) % 512;
                let right = |record: &Record| assert_eq!(record.value % 512, key);
                if thread < 2 {
                    handle.get(&key).into_iter().for_each(right);
                    let lent = [own.get(&key), set.get(&key)];
                    lent.iter().flatten().for_each(|record| right(record));
                } else if round % 7 == 0 {
                    let next = |old: &Record| Record { key, value: old.value + 512 };
                    own.update(&key, next).iter().for_each(|record| right(record));
                } else if round % 5 == 0 {
                    handle.remove(&key);
                } else {
                    handle.insert(Box::new(Record { key, value: key + 512 * round }));
                }
                if round % 32 == 0 {
                    handle.quiescent();
                }
            }
        })
    };
    crew([0, 1, 2, 3].map(|thread| task(thread, Arc::clone(&set))));
}

/// Four threads take the same boxed records in, alone and in batches, while the set grows many
/// times and a fifth walks over it: of each one stays, the others are dropped. Tables are left and
/// freed, and records lie where tables lay.
fn seen_set() {
    let set = Arc::new(SeenSet::<Box<[u64; 2]>>::builder().parents(true).build());
    let task = |thread: u64, set: Arc<SeenSet<Box<[u64; 2]>>>| -> Box<dyn FnOnce() + Send> {
        Box::new(move || {
            let handle = set.handle();
            let record = |n: u64| Box::new([n, !n]);
            let root = handle.insert(record(u64::MAX)).id();
            for n in 0..6_000 {
                let n = (n * 7 + thread * 1_500) % 6_000;
                match n % 3 {
                    0 => {
                        let insertion = handle.insert_from(record(n), root, n as u32);
                        let id = insertion.id();
                        assert_eq!(set.get(id).map(|kept| kept[1]), Some(!n));
                        // A batch may have been first, without a parent.
                        let origin = (set.parent(id), set.label(id));
                        assert!(!insertion.is_new() || origin == (Some(root), n as u32));
                    }
                    _ => handle.insert_each((n..n + 3).map(record), |insertion| {
                        assert!(set.get(insertion.id()).is_some_and(|kept| kept[0] == !kept[1]));
                    }),
                }
                assert!(handle.contains(&record(n)));
            }
        })
    };
    let walk = Arc::clone(&set);
    let [first, second, third, fourth] = [0, 1, 2, 3].map(|thread| task(thread, Arc::clone(&set)));
    let fifth = Box::new(move || {
        for _ in 0..20 {
            assert!(walk.iter().all(|(id, record)| {
                record[0] == !record[1] && walk.get(id).is_some_and(|kept| kept == record)
            }));
        }
    });
    crew([first, second, third, fourth, fifth]);
    assert_eq!(set.iter().count(), set.len());
    assert!((6_001..6_004).contains(&set.len()), "{}", set.len());
}

/// Everybody meets, moves the set and goes on; byte strings of all lengths, and fingerprints.
fn seen_set_together() {
    let together = seen_set::Growth::Together;
    let set = Arc::new(SeenSet::<[u8]>::builder().growth(together).build());
    let prints = Arc::new(SeenPrints::builder().growth(together).build());
    let task = |thread: u64, set: Arc<SeenSet<[u8]>>, prints: Arc<SeenPrints>| {
        let work = move || {
            let (mut handle, other) = (set.handle(), prints.handle());
            for n in 0..3_000u64 {
                let n = (n + thread * 1_000) % 3_000;
                let text = vec![n as u8; (n % 40) as usize];
                let id = handle.insert(&text).id();
                assert_eq!(set.get(id), Some(&text[..]));
                assert!(handle.contains(&text));
                if n % 256 == 0 {
                    drop(handle.offline());
                }
            }
            drop(handle);
            (0..3_000).for_each(|n| {
                other.insert(&n);
            });
        };
        Box::new(work) as Box<dyn FnOnce() + Send>
    };
    crew([0, 1, 2].map(|thread| task(thread, Arc::clone(&set), Arc::clone(&prints))));
    assert_eq!((set.iter().count(), prints.len()), (set.len(), 3_000));
}

/// User code that works on the set from inside its operations, while another thread makes it grow.
fn seen_set_nested() {
    let set = Arc::new(SeenSet::<u64>::new());
    let task = |thread: u64, set: Arc<SeenSet<u64>>| -> Box<dyn FnOnce() + Send> {
        Box::new(move || {
            let handle = set.handle();
            let base = thread << 32;
            let records = (0..600).map(|n| base + n).inspect(|n| {
                (0..8).for_each(|more| {
                    handle.insert(1 << 60 | n << 8 | more);
                });
            });
            handle.insert_each(records, |insertion| {
                let own = *set.get(insertion.id()).unwrap();
                handle.insert_each((0..4).map(|n| 1 << 61 | own << 8 | n), |inner| {
                    assert!(set.get(inner.id()).is_some());
                });
                if own % 64 == 0 {
                    assert!(set.iter().take(50).all(|(id, _)| set.get(id).is_some()));
                }
            });
        })
    };
    crew([0, 1, 2].map(|thread| task(thread, Arc::clone(&set))));
    assert_eq!((set.iter().count(), set.len()), (3 * 600 * 13, 3 * 600 * 13));
}

/// One writer publishes, readers check that each guard sees one version.
fn twin_map() {
    let (mut writer, reader) = TwinMap::<u64, u64>::new().split();
    let read = |reader: twin_map::MapReader<u64, u64>| -> Box<dyn FnOnce() + Send> {
        Box::new(move || {
            for _ in 0..20_000 {
                let guard = reader.pin();
                let seen = guard.get(&0).copied();
                assert!((1..4u64).all(|key| guard.get(&key).copied() == seen));
            }
        })
    };
    // The last owner is this thread: the fence in `Arc`'s drop is invisible to ThreadSanitizer.
    let readers = [reader.clone(), reader.clone(), reader.clone()].map(read);
    let [first, second, third] = readers;
    crew([
        first,
        second,
        third,
        Box::new(move || {
            for version in 0..500 {
                let mut guard = writer.guard();
                for key in 0..4 {
                    guard.insert(key, version);
                }
                guard.publish();
            }
        }),
    ]);
    drop(reader);
}

/// Boxes of which two copies hold the same bytes: replaced, removed and handed back while readers
/// look.
fn twin_map_inert() {
    let (mut writer, reader) = twin_map::InertMap::<u64, Box<u64>>::builder().build_inert();
    let task = |reader: twin_map::Reader<twin_map::InertMap<u64, Box<u64>>>| {
        let work = move || {
            for _ in 0..5_000 {
                assert!(reader.pin().iter().all(|(key, value)| **value % 16 == *key));
            }
        };
        Box::new(work) as Box<dyn FnOnce() + Send>
    };
    let [first, second] = [reader.clone(), reader.clone()].map(task);
    let write = Box::new(move || {
        for round in 0..1_000u64 {
            let mut guard = writer.guard();
            guard.insert(round % 16, Box::new(round));
            if round % 5 == 0 {
                guard.remove(&(round / 5 % 16));
            }
            match round % 11 {
                0 => guard.discard(),
                _ => assert!(guard.publish() > 0),
            }
            assert!(writer.evicted().all(|old| *old < 1_000));
        }
        drop(writer);
    });
    crew([first, second, write]);
    drop(reader);
}

/// Many writers by one table, whose batches are published together.
fn twin_map_front() {
    let map = Arc::new(TwinMap::<u64, Box<u64>>::new());
    let task = |thread: u64, map: Arc<TwinMap<u64, Box<u64>>>| -> Box<dyn FnOnce() + Send> {
        Box::new(move || {
            for n in 0..300 {
                let key = thread * 1_000 + n % 10;
                map.batch(|write| {
                    write.insert(key, Box::new(n));
                    write.remove(&(key + 500));
                });
                map.update(&(thread * 1_000), |old| Box::new(**old + 1));
                assert_eq!(map.get(&key).is_some(), map.pin().contains_key(&key));
            }
        })
    };
    crew([0, 1, 2].map(|thread| task(thread, Arc::clone(&map))));
    assert_eq!(map.len(), 30);
}

/// Everybody lives.
struct Alive;

impl Peers for Alive {
    fn me(&self) -> Option<Owner> {
        Owner::from_word(1 << 48 | 1)
    }
    fn is_dead(&self, _: Owner) -> bool {
        false
    }
}

/// Writers move, replace and remove entries of few buckets while readers follow them: a value is
/// always its key's own.
fn tier_map() {
    let geometry = Geometry { buckets: 8, window: 8, records: 120, seats: 4 };
    let heap = Arc::new(Heap::try_new(geometry).unwrap());
    let task = |thread: u32, heap: Arc<Heap>| -> Box<dyn FnOnce() + Send> {
        Box::new(move || {
            let map = Map::new(heap.memory(), &Alive, &|_| {});
            let mut handle = map.handle().unwrap();
            for round in 0..4_000u32 {
                let hash = 1 + (round * 7 + thread) % 64;
                let input = InputHash::new(hash, hash % 8).unwrap();
                handle.set_tick(round);
                let value = u64::from(hash) << 32 | u64::from(round);
                let answer = match (thread, round % 4) {
                    (0 | 1, _) => handle.get(input).map(|found| {
                        assert!(found.is_none_or(|value| value >> 32 == u64::from(hash)));
                    }),
                    (_, 0) => handle.remove(input),
                    (_, 1) => handle.update(input, value).map(drop),
                    _ => handle.add(input, value).map(drop),
                };
                let fine = matches!(answer, Ok(()) | Err(MapError::Exists | MapError::NotFound));
                assert!(fine, "{answer:?}");
            }
        })
    };
    crew([0, 1, 2, 3].map(|thread| task(thread, Arc::clone(&heap))));
    Map::new(heap.memory(), &Alive, &|_| {}).check().unwrap();
}

struct Racy(UnsafeCell<u64>);
// SAFETY: none; this is the control that must be flagged.
unsafe impl Send for Racy {}
// SAFETY: none; this is the control that must be flagged.
unsafe impl Sync for Racy {}

fn control_race() {
    let cell = Arc::new(Racy(UnsafeCell::new(0)));
    let task = |cell: Arc<Racy>| -> Box<dyn FnOnce() + Send> {
        Box::new(move || {
            for _ in 0..100_000 {
                // SAFETY: none; this is the control that must be flagged.
                unsafe { *cell.0.get() += 1 };
            }
        })
    };
    crew([task(Arc::clone(&cell)), task(Arc::clone(&cell))]);
    println!("control race: {:?}", cell.0.get());
}

fn control_free() {
    let place = Box::into_raw(Box::new([7u64; 8]));
    // SAFETY: made from a box.
    drop(unsafe { Box::from_raw(place) });
    // SAFETY: none; this is the control that must be flagged.
    let stale = unsafe { std::ptr::read_volatile(place) };
    println!("control free: {}", stale[0]);
}
