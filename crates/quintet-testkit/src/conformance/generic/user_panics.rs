//! User code that panics: nothing is lost, nothing is wedged.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::{GenericFamily, GenericMap, expect};
use crate::conformance::threads::LIMIT;
use crate::stress::within;

const KEYS: u64 = 300;

/// Where a [`Touchy`] key panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Panic {
    InHash,
    InEq,
}

thread_local! {
    static ARMED: Cell<Option<Panic>> = const { Cell::new(None) };
}

/// Panics, without a message on standard error, if the thread armed this place.
fn perhaps_panic(place: Panic) {
    if ARMED.get() == Some(place) {
        resume_unwind(Box::new("user code"));
    }
}

/// Runs with panics armed; tells whether one came out.
fn panics(place: Panic, work: impl FnOnce()) -> bool {
    ARMED.set(Some(place));
    let result = catch_unwind(AssertUnwindSafe(work));
    ARMED.set(None);
    result.is_err()
}

/// A key whose hash and comparison panic on demand. Few hashes, so that keys are compared.
#[derive(Clone, Debug)]
struct Touchy(u64);

impl Hash for Touchy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        perhaps_panic(Panic::InHash);
        (self.0 % 64).hash(state);
    }
}

impl PartialEq for Touchy {
    fn eq(&self, other: &Self) -> bool {
        perhaps_panic(Panic::InEq);
        self.0 == other.0
    }
}

impl Eq for Touchy {}

/// A panic in `Hash` changes nothing and wedges nobody.
pub fn panicking_hash<F: GenericFamily>() {
    panicking_key::<F>(Panic::InHash);
}

/// A panic in `Eq` changes nothing and wedges nobody.
pub fn panicking_eq<F: GenericFamily>() {
    panicking_key::<F>(Panic::InEq);
}

fn panicking_key<F: GenericFamily>(place: Panic) {
    within("a panicking key", LIMIT, || {
        let map = F::Map::<Touchy, u64>::new();
        let mut came_out = 0;
        for key in 0..KEYS {
            // Panics while it grows, too: every insertion is preceded by failing calls.
            came_out += u32::from(panics(place, || map.insert(Touchy(key / 2), 999)));
            came_out += u32::from(panics(place, || map.get_with(&Touchy(key / 2), |_| ())));
            came_out += u32::from(panics(place, || _ = map.remove(&Touchy(key / 2))));
            map.insert(Touchy(key / 2), key / 2);
            map.insert(Touchy(key), key);
        }
        assert!(
            came_out > 100,
            "user code panicked only {came_out} times: the check checks little"
        );
        (0..KEYS).for_each(|key| expect(&map, &Touchy(key), Some(key)));
        usable_by_another_thread(&map, Touchy);
    });
}

/// All entries can be read, replaced and removed by a thread that saw no panic.
fn usable_by_another_thread<K, V>(map: &impl GenericMap<K, V>, key: fn(u64) -> K)
where
    V: From<u64>,
{
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..KEYS {
                map.get_with(&key(number), |_| ());
                map.insert(key(number), V::from(number));
                map.insert(key(KEYS + number), V::from(number));
            }
            assert_eq!(map.entries() as u64, 2 * KEYS);
            (0..2 * KEYS).for_each(|number| assert!(map.remove(&key(number)), "{number}"));
            assert_eq!(map.entries(), 0);
        });
    });
}

/// A value whose drop panics once when armed.
#[derive(Clone, Debug)]
struct Bomb {
    number: u64,
    armed: Option<Arc<AtomicBool>>,
}

impl From<u64> for Bomb {
    fn from(number: u64) -> Self {
        Bomb { number, armed: None }
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        if let Some(armed) = &self.armed {
            // ORDERING: decides who panics, hands over nothing.
            if armed.swap(false, Ordering::Relaxed) && !thread::panicking() {
                resume_unwind(Box::new("a drop"));
            }
        }
    }
}

/// A panic in a value's drop, wherever the map drops it, loses no other entry.
pub fn panicking_drop<F: GenericFamily>() {
    within("panicking_drop", LIMIT, || {
        let map = F::Map::<u64, Bomb>::new();
        let armed = Arc::new(AtomicBool::new(false));
        let quietly = |work: &dyn Fn()| drop(catch_unwind(AssertUnwindSafe(work)));
        let mut went_off = 0;
        for key in 0..KEYS {
            quietly(&|| map.insert(key, Bomb { number: key, armed: Some(Arc::clone(&armed)) }));
            armed.store(true, Ordering::Relaxed);
            match key % 3 {
                0 => quietly(&|| map.insert(key, Bomb::from(key))),
                1 => quietly(&|| _ = map.remove(&key)),
                _ => {
                    quietly(&|| _ = map.remove(&key));
                    quietly(&|| map.settle());
                }
            }
            went_off += u32::from(!armed.swap(false, Ordering::Relaxed));
            quietly(&|| map.insert(key, Bomb::from(key)));
        }
        eprintln!("panicking_drop: {went_off} drops panicked at once, the others later or never");
        for key in 0..KEYS {
            map.get_with(&key, |bomb| assert_eq!(bomb.map(|bomb| bomb.number), Some(key)));
        }
        usable_by_another_thread(&map, |key| key);
        map.insert(0, Bomb { number: 0, armed: Some(Arc::clone(&armed)) });
        armed.store(true, Ordering::Relaxed);
        quietly(&|| _ = map.remove(&0));
        drop(catch_unwind(AssertUnwindSafe(|| drop(map))));
    });
}

/// A panic in an update leaves the old value, and wedges nobody.
pub fn panicking_closure<F: GenericFamily>() {
    within("panicking_closure", LIMIT, || {
        let map = F::Map::<u64, u64>::new();
        for key in 0..KEYS {
            map.insert(key, key);
            let update = AssertUnwindSafe(|| {
                map.update(&key, |_| resume_unwind(Box::new("a closure")));
            });
            assert!(catch_unwind(update).is_err(), "the panic comes out");
            expect(&map, &key, Some(key));
            assert!(map.update(&key, |old| old + 1));
            expect(&map, &key, Some(key + 1));
        }
        assert!(!map.update(&KEYS, |old| old + 1), "an absent key is not updated");
        usable_by_another_thread(&map, |key| key);
    });
}
