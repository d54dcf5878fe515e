//! A look inside.

use super::core::Core;
use super::plain::Plain;
use super::table::Table;
use crate::migrate::Restart;
use crate::reclaim::Visit;
use crate::sync::Ordering;
use std::hash::{BuildHasher, Hash};

/// What a map holds and has done: from [`CopyMap::stats`](super::CopyMap::stats). Everything is an
/// estimate while others write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyMapStats {
    /// Entries.
    pub len: usize,
    /// Entries that fit before the newest table is left.
    pub capacity: usize,
    /// Lanes of the newest table.
    pub lanes: usize,
    /// Entries that found no lane within reach of their home, and lie in lists.
    pub spilled: usize,
    /// A migration is under way: so many of so many chunks have been handed out.
    pub migrating: Option<(usize, usize)>,
    /// Bytes of the tables in use, and of the one that is being prepared.
    pub table_bytes: usize,
    /// Bytes of tables that were left and are not yet given back.
    pub backlog_bytes: usize,
    /// Migrations completed: growth and shrinking.
    pub migrations: usize,
    /// Chunks that were handed out a second time because their mover had not finished.
    pub chunks_again: usize,
}

impl<K: Plain + Hash, V: Plain, S: BuildHasher> Core<K, V, S> {
    pub(super) fn stats(&self) -> CopyMapStats {
        let mut stats = CopyMapStats {
            backlog_bytes: self.domain.backlog().bytes,
            // ORDERING: Relaxed: statistics.
            migrations: self.migrations.load(Ordering::Relaxed),
            chunks_again: self.again.load(Ordering::Relaxed),
            ..CopyMapStats::default()
        };
        self.with_chain(|old, new| {
            let newest = new.or(old);
            stats.len = old.map_or(0, Self::live);
            stats.capacity = newest.map_or(0, Table::capacity);
            stats.lanes = newest.map_or(0, Table::lanes);
            stats.spilled = [old, new].into_iter().flatten().map(Table::spilled).sum();
            stats.table_bytes = [old, new].into_iter().flatten().map(Table::bytes).sum();
            stats.migrating = old.filter(|old| old.is_left()).map(|old| old.work.progress());
        });
        stats
    }

    pub(super) fn bytes(&self) -> usize {
        let stats = self.stats();
        stats.table_bytes + stats.backlog_bytes
    }

    pub(super) fn capacity(&self) -> usize {
        self.stats().capacity
    }

    /// Looks at the tables in use.
    fn with_chain(&self, look: impl FnOnce(Option<&Table<K, V>>, Option<&Table<K, V>>)) {
        let section = self.domain.pin();
        loop {
            if let Ok((old, new)) = self.chain(&section) {
                return look(old, new);
            }
        }
    }

    #[allow(clippy::type_complexity)] // the root, and the next one
    fn chain<'v>(
        &self,
        visit: &'v Visit<'_>,
    ) -> Result<(Option<&'v Table<K, V>>, Option<&'v Table<K, V>>), Restart> {
        let Some(table) = self.root.follow(visit)? else { return Ok((None, None)) };
        Ok((Some(table), table.next().follow(visit)?))
    }
}
