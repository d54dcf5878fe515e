//! What the writer tells of itself, for whoever asks a reader or the table.

use super::twin::TwinStats;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// What the writer has told of itself when it last published. Each number by itself: nobody relies
/// on how they fit together.
#[derive(Debug, Default)]
pub(super) struct Told {
    published: AtomicU64,
    parks: AtomicU64,
    rebuilds: AtomicU64,
    left_behind: AtomicU64,
    copied: AtomicU64,
    returned: AtomicU64,
    /// Bytes that the copies and the log hold.
    bytes: AtomicUsize,
}

impl Told {
    /// Only the writer calls this.
    pub(super) fn tell(&self, stats: &TwinStats, bytes: usize) {
        // ORDERING: Relaxed, all: statistics.
        self.published.store(stats.published, Ordering::Relaxed);
        self.parks.store(stats.parks, Ordering::Relaxed);
        self.rebuilds.store(stats.rebuilds, Ordering::Relaxed);
        self.left_behind.store(stats.left_behind, Ordering::Relaxed);
        self.copied.store(stats.copied, Ordering::Relaxed);
        self.returned.store(stats.returned, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn stats(&self) -> TwinStats {
        // ORDERING: Relaxed, as in `tell`.
        TwinStats {
            published: self.published.load(Ordering::Relaxed),
            parks: self.parks.load(Ordering::Relaxed),
            rebuilds: self.rebuilds.load(Ordering::Relaxed),
            left_behind: self.left_behind.load(Ordering::Relaxed),
            copied: self.copied.load(Ordering::Relaxed),
            returned: self.returned.load(Ordering::Relaxed),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        // ORDERING: Relaxed, as in `tell`.
        self.bytes.load(Ordering::Relaxed)
    }
}
