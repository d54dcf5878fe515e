//! What a map looks like inside.

use super::core::Core;
use super::table::Table;
use crate::migrate::Restart;
use crate::reclaim::Section;
use crate::sync::Ordering;

/// How a table takes part in its map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableState {
    /// The only table.
    Alone,
    /// Its entries are being moved to the next table.
    Migrating,
    /// All its entries have been moved; about to be retired.
    Assimilated,
    /// Takes what is new, and the entries of the table before it.
    Receiving,
}

/// One table of the chain.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TableStats {
    /// How it takes part.
    pub state: TableState,
    /// Slots that loads are shares of.
    pub size: usize,
    /// Slots that hold an entry or the trace of a removed one, as far as threads have reported
    /// them.
    pub used: usize,
    /// Chunks handed out for migration, of how many.
    pub moved: (usize, usize),
    /// Bytes of its lines, tags and cells.
    pub bytes: usize,
}

/// A look inside a map, by [`WordMap::stats`](super::WordMap::stats). Everything is an estimate
/// while others write.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WordMapStats {
    /// Entries.
    pub len: usize,
    /// Entries per home of the newest table.
    pub load: f64,
    /// The tables in use, oldest first: none, one, or two during a migration.
    pub tables: Vec<TableStats>,
    /// `probes[d]` entries of the oldest table lie `d` lines of four slots from their home; the
    /// last counts all that lie further.
    pub probes: [usize; 16],
    /// Migrations completed: to larger, equal and smaller tables.
    pub migrations: usize,
    /// Chunks that were handed out a second time because their mover had not finished.
    pub chunks_again: usize,
    /// Inserts that had to move the whole rest of a table before they could go on.
    pub stragglers: usize,
    /// Bytes of tables that were left and are not yet given back.
    pub backlog_bytes: usize,
    /// All bytes held: tables in use, and the backlog.
    pub bytes: usize,
}

impl Core {
    pub(super) fn stats(&self) -> WordMapStats {
        self.with_chain(|chain| self.stats_of(chain))
    }

    fn stats_of(&self, chain: &[&Table]) -> WordMapStats {
        let tables: Vec<_> =
            chain.iter().enumerate().map(|(nth, table)| describe(nth, table)).collect();
        let len = self.len();
        let backlog_bytes = self.domain.backlog().bytes;
        WordMapStats {
            len,
            load: chain.last().map_or(0.0, |table| len as f64 / table.shape().size() as f64),
            probes: chain.first().map_or([0; 16], |table| probes(table)),
            // ORDERING: Relaxed: statistics.
            migrations: self.migrations.load(Ordering::Relaxed),
            chunks_again: self.again.load(Ordering::Relaxed),
            stragglers: self.waited.load(Ordering::Relaxed),
            backlog_bytes,
            bytes: backlog_bytes + tables.iter().map(|table| table.bytes).sum::<usize>(),
            tables,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let tables: usize = self.with_chain(|chain| chain.iter().map(|table| table.bytes()).sum());
        tables + self.domain.backlog().bytes
    }

    /// Entries that fit into the newest table before it is left.
    pub(super) fn capacity(&self) -> usize {
        self.with_chain(|chain| chain.last().map_or(0, |table| table.threshold()))
    }

    /// Looks at the tables in use, oldest first.
    fn with_chain<R>(&self, look: impl FnOnce(&[&Table]) -> R) -> R {
        let section = self.domain.pin();
        loop {
            if let Ok(chain) = self.chain(&section) {
                return look(&chain);
            }
        }
    }

    fn chain<'s>(&self, section: &'s Section<'_>) -> Result<Vec<&'s Table>, Restart> {
        let mut chain = Vec::new();
        let mut next = self.root.follow(section)?;
        while let Some(table) = next {
            chain.push(table);
            next = table.next().follow(section)?;
        }
        Ok(chain)
    }
}

fn describe(nth: usize, table: &Table) -> TableStats {
    let left = !table.next().seems_empty();
    TableStats {
        state: match (nth, left) {
            (0, false) => TableState::Alone,
            (_, false) => TableState::Receiving,
            (_, true) if table.work.is_finished() => TableState::Assimilated,
            (_, true) => TableState::Migrating,
        },
        size: table.shape().size(),
        used: table.used(),
        moved: table.work.progress(),
        bytes: table.bytes(),
    }
}

fn probes(table: &Table) -> [usize; 16] {
    let mut counts = [0; 16];
    for index in 0..table.walked() {
        if let Some(displacement) = table.displacement_at(index) {
            counts[displacement.min(15)] += 1;
        }
    }
    counts
}
