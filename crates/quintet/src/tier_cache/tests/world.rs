//! A map on the heap whose "processes" die when the test says so.

use crate::sync::{Arc, AtomicBool, Ordering};
use crate::tier_cache::*;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

/// Every rare path is near.
pub(super) const SMALL: Geometry = Geometry { buckets: 8, window: 4, records: 40, seats: 4 };
pub(super) const PROCESSES: usize = 6;

#[derive(Debug, Default)]
pub(super) struct Deaths([AtomicBool; PROCESSES]);

pub(super) struct Peer {
    deaths: Arc<Deaths>,
    slot: u32,
}

impl Peers for Peer {
    fn me(&self) -> Option<Owner> {
        Some(Owner::new(self.slot, 1))
    }

    fn is_dead(&self, owner: Owner) -> bool {
        owner.incarnation() != 1
            || self.deaths.0.get(owner.slot()).is_some_and(|dead| dead.load(Ordering::Acquire))
    }
}

type OwnedSink = Box<dyn Fn(Left) + Sync + Send>;

pub(super) struct World {
    heap: Heap,
    peers: Vec<Peer>,
    deaths: Arc<Deaths>,
    left: Arc<Mutex<Vec<Left>>>,
    sink: OwnedSink,
}

impl World {
    pub(super) fn new(geometry: Geometry) -> Self {
        Self::with_tiers(geometry, 1)
    }

    pub(super) fn with_tiers(geometry: Geometry, tiers: usize) -> Self {
        let deaths = Arc::new(Deaths::default());
        let left = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&left);
        Self {
            heap: Heap::try_with_tiers(geometry.verify().unwrap(), tiers).unwrap(),
            peers: (0..PROCESSES as u32)
                .map(|slot| Peer { deaths: Arc::clone(&deaths), slot })
                .collect(),
            deaths,
            left,
            sink: Box::new(move |entry| log.lock().unwrap().push(entry)),
        }
    }

    /// Eight buckets, a window of four: every rare path is near.
    pub(super) fn small() -> Self {
        Self::new(SMALL)
    }

    pub(super) fn map(&self, process: usize) -> Map<'_> {
        Map::new(self.heap.memory(), &self.peers[process], &*self.sink)
    }

    /// A handle of `process` that never waits.
    pub(super) fn handle(&self, process: usize) -> Handle<'_> {
        let mut handle = self.map(process).handle().unwrap();
        handle.set_timeout(Duration::ZERO);
        handle
    }

    pub(super) fn kill(&self, process: usize) {
        self.deaths.0[process].store(true, Ordering::Release);
    }

    pub(super) fn left(&self) -> Vec<Left> {
        self.left.lock().unwrap().clone()
    }

    pub(super) fn contents(&self) -> BTreeMap<(u32, u32), u64> {
        contents(&self.map(0))
    }
}

/// Every entry: (hash, bucket) to value.
pub(super) fn contents(map: &Map<'_>) -> BTreeMap<(u32, u32), u64> {
    let memory = map.memory();
    let mut found = BTreeMap::new();
    for slice in 0..2 {
        for position in 0..memory.positions() {
            let cell = memory.cell(memory.at(slice, position));
            let home = match cell.cbits.back() {
                Some(back) => position - back,
                None => position,
            };
            let home = memory.bucket_of(home);
            if cell.key != 0 {
                let input = InputHash::new(cell.key, home as u32).unwrap();
                let value = map.reader().get(input.augment(slice)).unwrap().unwrap();
                assert_eq!(found.insert((cell.key, home as u32), value), None);
            }
        }
    }
    found
}

pub(super) fn key(hash: u32, bucket: u32) -> InputHash {
    InputHash::new(hash, bucket).unwrap()
}

/// Adds with a chosen tie bit.
pub(super) fn add_tie(
    handle: &mut Handle<'_>,
    input: InputHash,
    tie: u32,
    value: u64,
) -> Result<Token, MapError> {
    Ok(handle.commit(Prepared::with_tie(input, tie), value)?.complete())
}
