//! A cache that forgets the least recently used key.

use std::collections::{BTreeMap, HashMap};

/// The sequential least-recently-used cache.
#[derive(Clone, Debug)]
pub struct LruModel {
    capacity: usize,
    tick: u64,
    entries: HashMap<u64, (u64, u64)>,
    by_age: BTreeMap<u64, u64>,
}

impl LruModel {
    /// A cache of at most `capacity` keys.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, tick: 0, entries: HashMap::new(), by_age: BTreeMap::new() }
    }

    /// Reads and makes the key the newest.
    pub fn get(&mut self, key: u64) -> Option<u64> {
        let value = self.remove(key)?;
        self.put(key, value);
        Some(value)
    }

    /// Writes and makes the key the newest; returns what had to leave for it.
    pub fn put(&mut self, key: u64, value: u64) -> Option<(u64, u64)> {
        self.remove(key);
        let evicted = if self.entries.len() >= self.capacity { self.evict() } else { None };
        if self.capacity > 0 {
            self.tick += 1;
            self.entries.insert(key, (value, self.tick));
            self.by_age.insert(self.tick, key);
        }
        evicted
    }

    /// Removes.
    pub fn remove(&mut self, key: u64) -> Option<u64> {
        let (value, age) = self.entries.remove(&key)?;
        self.by_age.remove(&age);
        Some(value)
    }

    /// Number of keys present.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    fn evict(&mut self) -> Option<(u64, u64)> {
        let (_, key) = self.by_age.pop_first()?;
        self.entries.remove(&key).map(|(value, _)| (key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_key_leaves() {
        let mut cache = LruModel::new(2);
        assert_eq!(cache.put(1, 10), None);
        assert_eq!(cache.put(2, 20), None);
        assert_eq!(cache.get(1), Some(10));
        assert_eq!(cache.put(3, 30), Some((2, 20)));
        assert_eq!((cache.get(1), cache.get(2), cache.get(3)), (Some(10), None, Some(30)));
    }

    #[test]
    fn overwriting_evicts_nobody_and_refreshes() {
        let mut cache = LruModel::new(2);
        cache.put(1, 10);
        cache.put(2, 20);
        assert_eq!(cache.put(1, 11), None);
        assert_eq!(cache.put(3, 30), Some((2, 20)));
        assert_eq!(cache.remove(1), Some(11));
        assert_eq!(cache.entries(), 1);
    }

    #[test]
    fn agrees_with_a_list_ordered_by_use() {
        let mut rng = crate::Rng::with_seed(1);
        let mut cache = LruModel::new(5);
        let mut list: Vec<(u64, u64)> = Vec::new();
        for value in 0..5_000 {
            let key = rng.u64(0..9);
            let at = list.iter().position(|entry| entry.0 == key);
            let held = at.map(|at| list.remove(at));
            match rng.u32(0..5) {
                0 => assert_eq!(cache.remove(key), held.map(|entry| entry.1)),
                1 | 2 => {
                    assert_eq!(cache.get(key), held.map(|entry| entry.1));
                    list.extend(held);
                }
                _ => {
                    let evicted = (list.len() == 5).then(|| list.remove(0));
                    assert_eq!(cache.put(key, value), evicted);
                    list.push((key, value));
                }
            }
            assert_eq!(cache.entries(), list.len());
        }
    }

    #[test]
    fn a_cache_of_nothing_holds_nothing() {
        let mut cache = LruModel::new(0);
        assert_eq!(cache.put(1, 10), None);
        assert_eq!((cache.get(1), cache.entries()), (None, 0));
    }
}
