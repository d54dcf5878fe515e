//! Correct tables, as simple as they can be.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::conformance::{GenericFamily, GenericMap, HandleUnderTest, TableUnderTest};
use crate::model::{Kind, Op, Ret, run};

pub(super) const SHARDS: usize = 16;

/// Every kind of operation.
pub(super) const ALL_KINDS: &[Kind] = &[
    Kind::Get,
    Kind::Contains,
    Kind::Put,
    Kind::Insert,
    Kind::InsertNew,
    Kind::GetOrInsert,
    Kind::Remove,
    Kind::Delete,
    Kind::CompareExchange,
    Kind::FetchAdd,
    Kind::AddIfPresent,
    Kind::SetInsert,
];

/// Locks, whether or not user code panicked under the lock.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Words behind mutexes.
#[derive(Debug)]
pub struct MutexMap {
    shards: [Mutex<HashMap<u64, u64>>; SHARDS],
    next_id: AtomicU64,
}

impl MutexMap {
    /// A map with room for `entries`.
    pub fn with_capacity(entries: usize) -> Self {
        let shard = |_| Mutex::new(HashMap::with_capacity(entries / SHARDS));
        Self { shards: std::array::from_fn(shard), next_id: AtomicU64::new(1) }
    }
}

impl TableUnderTest for MutexMap {
    const OPS: &'static [Kind] = ALL_KINDS;
    type Handle<'t> = &'t MutexMap;

    fn handle(&self) -> &MutexMap {
        self
    }

    fn entries(&self) -> Option<usize> {
        Some(self.shards.iter().map(|shard| lock(shard).len()).sum())
    }

    fn memory_bytes(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).capacity() * 17).sum()
    }

    fn try_with_capacity(entries: usize) -> Result<Self, String> {
        let map = Self::with_capacity(0);
        for shard in &map.shards {
            let room = lock(shard).try_reserve(entries.div_ceil(SHARDS));
            room.map_err(|error| error.to_string())?;
        }
        Ok(map)
    }
}

impl HandleUnderTest for &MutexMap {
    fn apply(&mut self, key: u64, op: Op) -> Ret {
        let mut shard = lock(&self.shards[key as usize % SHARDS]);
        let mut cell = shard.get(&key).copied();
        // ORDERING: only has to be unique.
        let ret = run(&mut cell, op, self.next_id.fetch_add(1, Ordering::Relaxed));
        match cell {
            Some(value) => shard.insert(key, value),
            None => shard.remove(&key),
        };
        if shard.capacity() > 64 && shard.len() < shard.capacity() / 8 {
            shard.shrink_to_fit();
        }
        ret
    }
}

/// Any types behind one mutex.
#[derive(Debug)]
pub struct MutexFamily;

impl GenericFamily for MutexFamily {
    type Map<K, V>
        = Mutex<HashMap<K, Arc<V>>>
    where
        K: Hash + Eq + Clone + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static;
}

impl<K, V> GenericMap<K, V> for Mutex<HashMap<K, Arc<V>>>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    fn new() -> Self {
        Mutex::default()
    }

    fn insert(&self, key: K, value: V) {
        let value = Arc::new(value);
        let old = lock(self).insert(key, value);
        drop(old);
    }

    fn get_with<R>(&self, key: &K, show: impl FnOnce(Option<&V>) -> R) -> R {
        let value = lock(self).get(key).cloned();
        show(value.as_deref())
    }

    fn remove(&self, key: &K) -> bool {
        let old = lock(self).remove(key);
        old.is_some()
    }

    fn entries(&self) -> usize {
        lock(self).len()
    }

    fn update(&self, key: &K, mut change: impl FnMut(&V) -> V) -> bool {
        let mut map = lock(self);
        let Some(value) = map.get_mut(key) else { return false };
        *value = Arc::new(change(value));
        true
    }

    fn forget_guard(&self, key: &K) {
        std::mem::forget(lock(self).get(key).cloned());
    }

    fn try_with_capacity(entries: usize) -> Result<Self, String> {
        let mut map = HashMap::new();
        map.try_reserve(entries).map_err(|error| error.to_string())?;
        Ok(Mutex::new(map))
    }
}
