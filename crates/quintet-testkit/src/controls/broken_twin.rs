//! Two-copy maps: one that is right, one that tears snapshots, one that goes back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;

use super::BUG_RATE;
use super::mutex_map::lock;
use crate::Rng;
use crate::model::Cell;
use crate::snapshot::{SnapshotReader, SnapshotUnderTest, SnapshotWriter, View};

type Map = BTreeMap<u64, u64>;

/// Publishes by swapping a pointer. With `TORN`, 1 in [`BUG_RATE`] guards follows the pointer on
/// every read; with `BACK`, it shows the version before the published one.
#[derive(Clone, Debug)]
pub struct Twin<const TORN: bool, const BACK: bool> {
    shared: Arc<Mutex<[Arc<Map>; 2]>>,
    rng: Rng,
}

/// What a guard of a [`Twin`] shows.
struct Guard<'t> {
    map: Arc<Map>,
    /// Reads go here instead, once there is a newer version, if the snapshot is torn.
    torn: Option<&'t Mutex<[Arc<Map>; 2]>>,
}

impl View for Guard<'_> {
    fn get(&self, key: u64) -> Cell {
        let Some(shared) = self.torn else { return self.map.get(&key).copied() };
        let mut newest = Arc::clone(&lock(shared)[0]);
        for _ in 0..100 {
            if !Arc::ptr_eq(&newest, &self.map) {
                break;
            }
            thread::yield_now();
            newest = Arc::clone(&lock(shared)[0]);
        }
        newest.get(&key).copied()
    }
}

impl<const TORN: bool, const BACK: bool> SnapshotUnderTest for Twin<TORN, BACK> {
    type Writer = Self;
    type Reader = Self;

    fn pair() -> (Self, Self) {
        let twin = Self { shared: Arc::default(), rng: Rng::with_seed(1) };
        (twin.clone(), twin)
    }
}

impl<const TORN: bool, const BACK: bool> SnapshotWriter for Twin<TORN, BACK> {
    fn publish(&mut self, changes: &[(u64, Cell)]) {
        let published = Arc::clone(&lock(&self.shared)[0]);
        let mut map = Map::clone(&published);
        for &(key, cell) in changes {
            match cell {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
        }
        *lock(&self.shared) = [Arc::new(map), published];
    }
}

impl<const TORN: bool, const BACK: bool> SnapshotReader for Twin<TORN, BACK> {
    fn with_guard(&mut self, show: &mut dyn FnMut(&dyn View)) {
        let due = self.rng.u32(0..BUG_RATE) == 0;
        let map = Arc::clone(&lock(&self.shared)[usize::from(BACK && due)]);
        show(&Guard { map, torn: (TORN && due).then_some(&*self.shared) });
    }
}
