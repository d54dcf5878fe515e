//! Copies that share their values: each is dropped once, and not while a reader may look.

use super::super::*;
use crate::sync::{AtomicBool, AtomicU64, Ordering, thread};
use quintet_testkit::Rng;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Knows whether it lives: dropping it twice, or looking at it afterwards, is seen.
struct Counted {
    number: u64,
    alive: Box<AtomicU64>,
    live: &'static AtomicU64,
}

impl Counted {
    fn new(number: u64, live: &'static AtomicU64) -> Self {
        live.fetch_add(1, Ordering::Relaxed);
        Self { number, alive: Box::new(AtomicU64::new(1)), live }
    }

    fn look(&self) -> u64 {
        assert_eq!(self.alive.load(Ordering::Relaxed), 1, "looked at after its drop");
        self.number
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        assert_eq!(self.alive.fetch_sub(1, Ordering::Relaxed), 1, "dropped twice");
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.look() == other.look()
    }
}
impl Eq for Counted {}
impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.look().hash(state);
    }
}

// SAFETY: the atomic lies on the heap; Eq and Hash depend on the number alone (and fail a test, not
// the program, if misused).
unsafe impl Inert for Counted {}

type Guarded<'a> = InertWriteGuard<'a, Counted, Counted>;

fn step(
    rng: &mut Rng,
    write: &mut Guarded<'_>,
    staged: &mut HashMap<u64, u64>,
    live: &'static AtomicU64,
) {
    let (key, value) = (rng.u64(0..24), rng.u64(..));
    let asked = Counted::new(key, live);
    match rng.u8(0..12) {
        0..=5 => {
            let old = write.insert(Counted::new(key, live), Counted::new(value, live));
            assert_eq!(old.map(Counted::look), staged.insert(key, value));
        }
        6..=9 => assert_eq!(write.remove(&asked).map(Counted::look), staged.remove(&key)),
        10 => {
            write.retain(|key, _| key.look() % 3 != 0);
            staged.retain(|key, _| key % 3 != 0);
        }
        _ if rng.bool() => {
            let caught =
                catch_unwind(AssertUnwindSafe(|| write.retain(|_, _| panic!("on purpose"))));
            assert_eq!(caught.is_err(), !staged.is_empty());
        }
        _ => {
            write.clear();
            staged.clear();
        }
    }
    assert_eq!(write.get(&asked).map(Counted::look), staged.get(&key).copied());
    assert_eq!(write.len(), staged.len());
}

fn all_live(map: &InertMap<Counted, Counted>) -> bool {
    map.iter().all(|(key, value)| key.look() == key.number && value.look() == value.number)
}

fn run(seed: u64, live: &'static AtomicU64) {
    let mut rng = Rng::with_seed(seed);
    let (mut writer, reader) = InertMap::<Counted, Counted>::builder().build_inert();
    let (mut published, mut staged) = (HashMap::new(), HashMap::new());
    for _ in 0..rng.usize(1..80) {
        let mut write = writer.guard();
        let held = reader.owned_pin();
        for _ in 0..rng.usize(0..8) {
            step(&mut rng, &mut write, &mut staged, live);
        }
        match rng.u8(0..8) {
            0 => {
                write.discard();
                staged = published.clone();
            }
            1 => std::mem::forget(write),
            2 => {
                let unwound = catch_unwind(AssertUnwindSafe(|| {
                    let _write = write;
                    std::panic::resume_unwind(Box::new("on purpose"));
                }));
                assert!(unwound.is_err());
                staged = published.clone();
            }
            _ => {
                write.publish();
                published = staged.clone();
            }
        }
        let guard = reader.pin();
        assert_eq!(guard.len(), published.len());
        assert!(guard.iter().all(|(key, value)| published[&key.look()] == value.look()));
        drop(guard);
        if rng.u8(0..4) == 0 {
            assert!(writer.evicted().all(|old| old.look() == old.number));
        }
        // What the batch took out is still there for who held the version before it.
        assert!(all_live(&held));
    }
    if rng.bool() {
        let old = reader.owned_pin();
        writer.guard().clear();
        drop(writer);
        assert!(all_live(&old));
        assert!(reader.pin().is_empty() || !old.is_empty());
    } else {
        drop(reader);
    }
}

#[test]
fn shared_values_are_dropped_once_and_not_early() {
    static LIVE: AtomicU64 = AtomicU64::new(0);
    for seed in 0..300 {
        run(seed, &LIVE);
        assert_eq!(LIVE.load(Ordering::Relaxed), 0, "seed {seed}");
    }
}

#[test]
fn readers_look_while_shared_values_come_and_go() {
    static LIVE: AtomicU64 = AtomicU64::new(0);
    static STOP: AtomicBool = AtomicBool::new(false);
    let (mut writer, reader) = InertMap::<u64, Counted>::builder().build_inert();
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let reader = reader.clone();
            thread::spawn(move || {
                while !STOP.load(Ordering::Relaxed) {
                    let guard = reader.pin();
                    assert!(guard.iter().all(|(key, value)| value.look() % 16 == *key));
                }
            })
        })
        .collect();
    for round in 0..2_000u64 {
        let mut write = writer.guard();
        write.insert(round % 16, Counted::new(round, &LIVE));
        if round % 5 == 0 {
            write.remove(&((round / 5) % 16));
        }
    }
    STOP.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    drop(writer);
    drop(reader);
    assert_eq!(LIVE.load(Ordering::Relaxed), 0);
}
