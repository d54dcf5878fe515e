//! For model checkers: one word that names an interned pair.

use super::Words;
use crate::sync::{AtomicU64, Ordering};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Equal pairs have equal names, so comparing names compares pairs. (0, 0) is named 0.
#[derive(Default)]
struct Names {
    of: HashMap<Words, u64>,
    pairs: Vec<Words>,
}

static NAMES: LazyLock<Mutex<Names>> =
    LazyLock::new(|| Mutex::new(Names { of: HashMap::from([((0, 0), 0)]), pairs: vec![(0, 0)] }));

fn name(pair: Words) -> u64 {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let fresh = names.pairs.len() as u64;
    let name = *names.of.entry(pair).or_insert(fresh);
    if name == fresh {
        names.pairs.push(pair);
    }
    name
}

fn pair(name: u64) -> Words {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner).pairs[name as usize]
}

/// See the room's page.
#[derive(Debug)]
pub(crate) struct AtomicPair(AtomicU64);

impl AtomicPair {
    pub(crate) fn new(first: u64, second: u64) -> Self {
        Self(AtomicU64::new(name((first, second))))
    }

    pub(crate) fn supported() -> bool {
        true
    }

    pub(crate) fn load(&self) -> Words {
        pair(self.0.load(Ordering::Acquire))
    }

    /// Processes can share pairs; read-only, only where a load never stores.
    #[allow(dead_code)] // only where segments are
    pub(crate) fn can_be_shared(writable: bool) -> bool {
        let _ = writable;
        false
    }

    /// `pair` P4.
    pub(crate) fn store(&self, new: Words) {
        self.0.store(name(new), Ordering::Release);
    }

    pub(crate) fn compare_exchange(&self, old: Words, new: Words) -> Result<(), Words> {
        match self.0.compare_exchange(name(old), name(new), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(found) => Err(pair(found)),
        }
    }
}
