//! For tools that understand locks: a spin lock beside the words.

use super::Words;
use crate::sync::{AtomicU64, Backoff, Ordering};

/// See the room's page. Zero is "unlocked".
#[repr(C, align(16))]
pub(crate) struct AtomicPair {
    first: AtomicU64,
    second: AtomicU64,
    lock: AtomicU64,
}

impl AtomicPair {
    pub(crate) const fn new(first: u64, second: u64) -> Self {
        Self {
            first: AtomicU64::new(first),
            second: AtomicU64::new(second),
            lock: AtomicU64::new(0),
        }
    }

    pub(crate) fn supported() -> bool {
        true
    }

    fn locked<R>(&self, body: impl FnOnce() -> R) -> R {
        let mut backoff = Backoff::new();
        // ORDERING: Acquire of the lock, partner: the Release store below.
        while self.lock.swap(1, Ordering::Acquire) != 0 {
            backoff.snooze();
        }
        let result = body();
        self.lock.store(0, Ordering::Release);
        result
    }

    fn words(&self) -> Words {
        // ORDERING: Relaxed, under the lock.
        (self.first.load(Ordering::Relaxed), self.second.load(Ordering::Relaxed))
    }

    pub(crate) fn load(&self) -> Words {
        self.locked(|| self.words())
    }

    /// Processes can share pairs; read-only, only where a load never stores.
    #[allow(dead_code)] // only where segments are
    pub(crate) fn can_be_shared(writable: bool) -> bool {
        writable
    }

    /// `pair` P4.
    pub(crate) fn store(&self, new: Words) {
        self.locked(|| {
            // ORDERING: Relaxed, under the lock.
            self.first.store(new.0, Ordering::Relaxed);
            self.second.store(new.1, Ordering::Relaxed);
        });
    }

    pub(crate) fn compare_exchange(&self, old: Words, new: Words) -> Result<(), Words> {
        self.locked(|| {
            let found = self.words();
            if found != old {
                return Err(found);
            }
            // ORDERING: Relaxed, under the lock.
            self.first.store(new.0, Ordering::Relaxed);
            self.second.store(new.1, Ordering::Relaxed);
            Ok(())
        })
    }
}
