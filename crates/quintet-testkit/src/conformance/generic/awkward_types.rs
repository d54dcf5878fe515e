//! Types without bytes, with large alignment, with one hash for all, and with drops that count.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{GenericFamily, GenericMap, expect};
use crate::conformance::memory::refuses_absurd_capacities;
use crate::conformance::threads::LIMIT;
use crate::stress::{Stress, within};

/// Keys and values without bytes.
pub fn zero_sized<F: GenericFamily>() {
    let unit = F::Map::<(), ()>::new();
    expect(&unit, &(), None);
    unit.insert((), ());
    unit.insert((), ());
    expect(&unit, &(), Some(()));
    assert_eq!(unit.entries(), 1);
    assert!(unit.remove(&()));
    assert!(!unit.remove(&()));
    assert_eq!(unit.entries(), 0);

    let set = F::Map::<u64, ()>::new();
    (0..1_000).for_each(|key| set.insert(key, ()));
    (0..1_000).for_each(|key| expect(&set, &key, Some(())));
    expect(&set, &1_000, None);
    assert_eq!(set.entries(), 1_000);
}

/// Aligned to more than a cache line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[repr(align(128))]
struct Aligned(u64);

/// Keys and values aligned to 128 bytes, through growth.
pub fn over_aligned<F: GenericFamily>() {
    let map = F::Map::<Aligned, Aligned>::new();
    for key in 0..1_000 {
        map.insert(Aligned(key), Aligned(key + 1));
    }
    for key in 0..1_000 {
        map.get_with(&Aligned(key), |value| {
            let value = value.expect("the key was inserted");
            assert_eq!(std::ptr::from_ref(value).addr() % 128, 0, "misaligned value");
            assert_eq!(value.0, key + 1);
        });
    }
    (0..1_000).for_each(|key| assert!(map.remove(&Aligned(key))));
    assert_eq!(map.entries(), 0);
}

/// Counts how many of it are alive, over all clones.
#[derive(Debug)]
struct Counted {
    number: u64,
    alive: Arc<AtomicIsize>,
}

impl Counted {
    fn new(number: u64, alive: &Arc<AtomicIsize>) -> Self {
        // ORDERING: a count; read after the threads were joined.
        alive.fetch_add(1, Ordering::Relaxed);
        Self { number, alive: Arc::clone(alive) }
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(self.number, &self.alive)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // ORDERING: as in `new`.
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Counted {}

impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

/// Threads insert, replace and remove; once the map is dropped, every key and value is dropped
/// once.
pub fn drops_everything_once<F: GenericFamily>() {
    let keys_alive = Arc::new(AtomicIsize::new(0));
    let values_alive = Arc::new(AtomicIsize::new(0));
    let map = F::Map::<Counted, Counted>::new();
    Stress::new("drops").threads(4).run(|worker| {
        for turn in 0..5_000 {
            worker.pause();
            let key = Counted::new(worker.rng.u64(0..500), &keys_alive);
            if worker.rng.u32(0..3) == 0 {
                map.remove(&key);
            } else {
                map.insert(key, Counted::new(turn, &values_alive));
            }
        }
        map.settle();
    });
    map.settle();
    drop(map);
    let alive = || [&keys_alive, &values_alive].map(|count| count.load(Ordering::Relaxed));
    // What was retired may be freed a little later by whoever comes next.
    let end = Instant::now() + Duration::from_secs(1);
    while alive() != [0, 0] && Instant::now() < end {
        let other = F::Map::<u64, u64>::new();
        (0..1_000).for_each(|key| other.insert(key % 10, key));
        other.settle();
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(alive(), [0, 0], "keys and values alive after the map: leaked if more than 0");
}

/// All keys have one hash.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Colliding(u64);

impl Hash for Colliding {
    fn hash<H: Hasher>(&self, state: &mut H) {
        0u64.hash(state);
    }
}

/// All keys have one hash: slow, and right.
pub fn colliding_keys<F: GenericFamily>() {
    const KEYS: u64 = 1_500;
    within("colliding_keys", LIMIT, || {
        let map = F::Map::<Colliding, u64>::new();
        (0..KEYS).for_each(|key| map.insert(Colliding(key), key));
        assert_eq!(map.entries(), KEYS as usize);
        (0..KEYS).for_each(|key| expect(&map, &Colliding(key), Some(key)));
        expect(&map, &Colliding(KEYS), None);
        (0..KEYS).step_by(2).for_each(|key| assert!(map.remove(&Colliding(key))));
        (0..KEYS).for_each(|key| expect(&map, &Colliding(key), (key % 2 == 1).then_some(key)));
    });
}

/// Absurd capacities are errors with a text.
pub fn generic_capacity_overflow<F: GenericFamily>() {
    refuses_absurd_capacities(|entries| F::Map::<u64, u64>::try_with_capacity(entries).map(drop));
    refuses_absurd_capacities(|entries| {
        F::Map::<u64, [u64; 512]>::try_with_capacity(entries).map(drop)
    });
}
