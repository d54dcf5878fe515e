//! A look inside.

use super::core::{Core, Pair};
use super::table::Table;
use crate::reclaim::Visit;
use crate::sync::Ordering;

/// What a set holds and has done: from [`ItemSet::stats`](super::ItemSet::stats).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ItemSetStats {
    /// Items.
    pub len: usize,
    /// Items that fit before the table is left.
    pub capacity: usize,
    /// Places of the table that have been dealt out, emptied ones too, or were given to the shards
    /// to deal them out: up to a 16th part.
    pub places_used: usize,
    /// Places of the table.
    pub places: usize,
    /// A migration is under way: so many of so many chunks have been handed out.
    pub migrating: Option<(usize, usize)>,
    /// Bytes of the tables in use, and of the one that is being prepared.
    pub table_bytes: usize,
    /// Items and tables that were removed and may still be read by somebody.
    pub backlog_items: usize,
    /// Bytes they hold; of items only what lies in them, not behind them.
    pub backlog_bytes: usize,
    /// Migrations completed: growth, compaction, shrinking.
    pub migrations: usize,
    /// Chunks that were moved again because their mover seemed asleep.
    pub chunks_again: usize,
    /// Puts that found the table full before its predecessor was done, and had to see to that
    /// first.
    pub waited: usize,
    /// Migrations that were redone under all locks because the new table turned out too small.
    pub rebuilt: usize,
}

impl Core {
    pub(super) fn stats(&self, visit: &Visit<'_>) -> ItemSetStats {
        let backlog = self.domain.backlog();
        let mut stats = ItemSetStats {
            len: self.len(),
            backlog_items: backlog.items,
            backlog_bytes: backlog.bytes,
            // ORDERING: Relaxed: statistics.
            migrations: self.migrations.load(Ordering::Relaxed),
            chunks_again: self.again.load(Ordering::Relaxed),
            waited: self.waited.load(Ordering::Relaxed),
            rebuilt: self.rebuilt.load(Ordering::Relaxed),
            ..ItemSetStats::default()
        };
        let pair = loop {
            if let Ok(pair) = self.pair(visit) {
                break pair;
            }
        };
        if let Some(Pair { new, old }) = pair {
            stats.capacity = new.capacity();
            stats.places_used = new.used();
            stats.places = new.places();
            let next = new.next().follow(visit).ok().flatten();
            let tables = [Some(new), old, next];
            stats.table_bytes = tables.into_iter().flatten().map(Table::bytes).sum();
            stats.migrating = old.map(|_| new.work().progress());
        }
        stats
    }
}
