//! Tables of any types, each with one fault.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::goes_red;
use crate::conformance::generic;
use crate::conformance::{GenericFamily, GenericMap};

/// User code runs under a lock that a panic poisons.
const POISONED: u8 = 0;
/// Replaced values are never dropped.
const LEAKS: u8 = 1;
/// Insertions are counted, not entries.
const MISCOUNTS: u8 = 2;
/// Equal hashes are taken for equal keys.
const TRUSTS_HASHES: u8 = 3;
/// Any capacity is promised.
const PROMISES: u8 = 4;

struct Faulty<const FAULT: u8>;

struct FaultyMap<K, V, const FAULT: u8> {
    entries: Mutex<HashMap<(u64, Option<K>), V>>,
    insertions: AtomicUsize,
    hasher: RandomState,
}

impl<const FAULT: u8> GenericFamily for Faulty<FAULT> {
    type Map<K, V>
        = FaultyMap<K, V, FAULT>
    where
        K: Hash + Eq + Clone + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static;
}

impl<K: Hash + Eq + Clone, V, const FAULT: u8> FaultyMap<K, V, FAULT> {
    fn id(&self, key: &K) -> (u64, Option<K>) {
        (self.hasher.hash_one(key), (FAULT != TRUSTS_HASHES).then(|| key.clone()))
    }
}

impl<K, V, const FAULT: u8> GenericMap<K, V> for FaultyMap<K, V, FAULT>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    fn new() -> Self {
        Self {
            entries: Mutex::default(),
            insertions: AtomicUsize::new(0),
            hasher: RandomState::new(),
        }
    }

    fn insert(&self, key: K, value: V) {
        self.insertions.fetch_add(1, Ordering::Relaxed);
        let mut entries = self.entries.lock().unwrap();
        let old = entries.insert(self.id(&key), value);
        if FAULT == LEAKS {
            std::mem::forget(old);
        }
    }

    fn get_with<R>(&self, key: &K, show: impl FnOnce(Option<&V>) -> R) -> R {
        let entries = self.entries.lock().unwrap();
        show(entries.get(&self.id(key)))
    }

    fn remove(&self, key: &K) -> bool {
        let mut entries = self.entries.lock().unwrap();
        entries.remove(&self.id(key)).is_some()
    }

    fn entries(&self) -> usize {
        match FAULT {
            MISCOUNTS => self.insertions.load(Ordering::Relaxed),
            _ => self.entries.lock().unwrap().len(),
        }
    }

    fn update(&self, key: &K, mut change: impl FnMut(&V) -> V) -> bool {
        let mut entries = self.entries.lock().unwrap();
        let Some(value) = entries.get_mut(&self.id(key)) else { return false };
        *value = change(value);
        true
    }

    fn try_with_capacity(_entries: usize) -> Result<Self, String> {
        if FAULT == PROMISES { Ok(Self::new()) } else { Err("no room".to_owned()) }
    }
}

#[test]
fn a_poisoned_lock_is_noticed_by_every_panicking_check() {
    goes_red(generic::panicking_hash::<Faulty<POISONED>>);
    goes_red(generic::panicking_eq::<Faulty<POISONED>>);
    goes_red(generic::panicking_drop::<Faulty<POISONED>>);
    goes_red(generic::panicking_closure::<Faulty<POISONED>>);
}

#[test]
fn leaks_are_noticed() {
    goes_red(generic::drops_everything_once::<Faulty<LEAKS>>);
}

#[test]
fn a_wrong_count_is_noticed() {
    goes_red(generic::zero_sized::<Faulty<MISCOUNTS>>);
}

#[test]
fn trusting_hashes_is_noticed() {
    goes_red(generic::colliding_keys::<Faulty<TRUSTS_HASHES>>);
}

#[test]
fn promising_any_capacity_is_noticed_and_so_is_granting_none() {
    goes_red(generic::generic_capacity_overflow::<Faulty<PROMISES>>);
    goes_red(generic::generic_capacity_overflow::<Faulty<LEAKS>>);
}
