//! By `portable-atomic`.

use super::Words;
use portable_atomic::{AtomicU128, Ordering};

/// See the room's page.
#[repr(transparent)]
pub(crate) struct AtomicPair(AtomicU128);

const fn join((first, second): Words) -> u128 {
    first as u128 | (second as u128) << 64
}

const fn split(both: u128) -> Words {
    (both as u64, (both >> 64) as u64)
}

impl AtomicPair {
    pub(crate) const fn new(first: u64, second: u64) -> Self {
        Self(AtomicU128::new(join((first, second))))
    }

    pub(crate) fn supported() -> bool {
        true
    }

    #[inline(always)]
    pub(crate) fn load(&self) -> Words {
        split(self.0.load(Ordering::Acquire))
    }

    /// Processes can share pairs; read-only, only where a load never stores.
    #[allow(dead_code)] // only where segments are
    pub(crate) fn can_be_shared(writable: bool) -> bool {
        AtomicU128::is_lock_free() && writable
    }

    /// `pair` P4.
    #[inline(always)]
    pub(crate) fn store(&self, new: Words) {
        self.0.store(join(new), Ordering::Release);
    }

    #[inline(always)]
    pub(crate) fn compare_exchange(&self, old: Words, new: Words) -> Result<(), Words> {
        match self.0.compare_exchange(join(old), join(new), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(found) => Err(split(found)),
        }
    }
}
