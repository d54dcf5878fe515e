//! What a set looks like inside.

use super::core::Core;
use crate::sync::Ordering;

/// A look inside a set. Everything is an estimate while others insert.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SeenStats {
    /// Records.
    pub len: usize,
    /// Shards.
    pub shards: usize,
    /// Slots of all tables in use; while a shard grows, of its old and its new one.
    pub slots: usize,
    /// Records per slot.
    pub load: f64,
    /// Shards that are growing now.
    pub growing: usize,
    /// Growths completed.
    pub growths: u64,
    /// Inserts that had to move the whole rest of a table before they could go on.
    pub stragglers: u64,
    /// `probes[d]` records lie `d` lines of 8 slots from their home; the last counts all that lie
    /// further.
    pub probes: [usize; 16],
    /// Bytes of tables: in use, and left but not yet given back.
    pub table_bytes: usize,
    /// The most that `table_bytes` has been.
    pub table_bytes_peak: usize,
    /// Bytes of records, the room for further ones in each handle's arena included.
    pub record_bytes: usize,
}

impl Core {
    pub(super) fn stats(&self) -> SeenStats {
        let section = self.pin();
        let (mut slots, mut growing, mut probes) = (0, 0, [0; 16]);
        for segment in 0..=self.small() {
            let chain = self.entrance(&section, segment);
            let chain: Vec<_> = chain.into_iter().filter(|table| !table.is_door()).collect();
            growing += usize::from(chain.len() > 1);
            slots += chain.iter().map(|table| table.len()).sum::<usize>();
            if let Some(table) = chain.first() {
                for index in 0..table.len() {
                    // What has moved out of a small table is counted where it went.
                    let is_here = |word: &u64| {
                        segment < self.small() || self.link(self.split.widen(*word).1).is_empty()
                    };
                    if let Some(word) = table.word_at(index).filter(is_here) {
                        probes[table.displacement(index, word).min(15)] += 1;
                    }
                }
            }
        }
        let len = self.len() as usize;
        SeenStats {
            len,
            shards: self.roots.len(),
            slots,
            load: if slots == 0 { 0.0 } else { len as f64 / slots as f64 },
            growing,
            growths: self.growths_done(),
            // ORDERING: Relaxed: a statistic.
            stragglers: self.stragglers.load(Ordering::Relaxed),
            probes,
            table_bytes: self.account.tables(),
            table_bytes_peak: self.account.tables_peak(),
            record_bytes: self.account.records(),
        }
    }
}
