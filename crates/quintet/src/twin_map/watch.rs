//! What has changed since: for closures that run with no lock held.
//!
//! ```text
//!   update: watch ── read ── the closure ── lock ── disturbed? no: apply
//!                                                             yes: unlock, again
//!   publish (locked): readable = new ── tell all watches what the log has changed
//! ```
//!
//! **W1.** A watch is set before its owner reads. A publish tells the watches after it has shown
//! the new version, and before the lock is released. So whoever set a watch too late to be told
//! reads that version, and whoever locks the writer has been told of every publish that it has not
//! read.
//! **W2.** What is staged, and not published yet, is in the log: the owner looks there too, with
//! the writer locked.
//! **W3.** A watch on one key asks for the hash: a change of another key with the same hash costs
//! one more run, and nothing else.

use super::version::{Op, Touch};
use crate::sync::Mutex;
use std::collections::HashSet;

/// All watches of one table.
#[derive(Debug)]
pub(super) struct Watches(Mutex<Book>);

#[derive(Debug)]
struct Book {
    next: u64,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    /// None: all keys.
    hash: Option<u64>,
    changed: Changed,
}

/// What a watch was told.
#[derive(Debug, Default)]
pub(super) struct Changed {
    hashes: HashSet<u64>,
    everything: bool,
}

/// A watch that is set. Dropped, it is taken back.
pub(super) struct Watch<'t> {
    watches: &'t Watches,
    number: u64,
}

impl Watches {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Book { next: 0, entries: Vec::new() }))
    }

    /// Sets a watch on the keys of one hash, or on all (W1).
    pub(super) fn set(&self, hash: Option<u64>) -> Watch<'_> {
        let mut book = self.0.lock();
        let number = book.next;
        book.next += 1;
        book.entries.push(Entry { number, hash, changed: Changed::default() });
        Watch { watches: self, number }
    }

    /// Tells what was published (W1). The writer is locked.
    pub(super) fn tell<'l, K: 'l, V: 'l>(&self, log: impl Iterator<Item = &'l Op<K, V>> + Clone) {
        if cfg!(quintet_mutation = "deaf-watch") {
            return;
        }
        let mut book = self.0.lock();
        for entry in &mut book.entries {
            entry.changed.note(entry.hash, log.clone());
        }
    }
}

impl Changed {
    fn note<'l, K: 'l, V: 'l>(
        &mut self,
        asked: Option<u64>,
        log: impl Iterator<Item = &'l Op<K, V>>,
    ) {
        for op in log {
            match op.touches() {
                Touch::Nothing => {}
                Touch::Everything => self.everything = true,
                Touch::Hash(hash) if asked.is_none_or(|asked| asked == hash) => {
                    self.hashes.insert(hash);
                }
                Touch::Hash(_) => {}
            }
        }
    }

    /// Whether a key of this hash may have changed.
    pub(super) fn has(&self, hash: u64) -> bool {
        self.everything || self.hashes.contains(&hash)
    }
}

impl Watch<'_> {
    /// What has changed since the watch was set, up to what is staged now (W2). The writer is
    /// locked.
    pub(super) fn changed<'l, K: 'l, V: 'l>(
        &self,
        staged: impl Iterator<Item = &'l Op<K, V>>,
    ) -> Changed {
        let mut book = self.watches.0.lock();
        let own = book.entries.iter_mut().find(|entry| entry.number == self.number);
        let mut changed = Changed::default();
        if let Some(entry) = own {
            changed = std::mem::take(&mut entry.changed);
            changed.note(entry.hash, staged);
        }
        changed
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.watches.0.lock().entries.retain(|entry| entry.number != self.number);
    }
}
