//! What a set holds, what it may hold, and what it answers when it may not.

use crate::region::AllocError;
use crate::sync::{AtomicUsize, Ordering};

/// A record could not be taken in. The set is as before, and everything in it can be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SeenError {
    /// The budget would be exceeded.
    Budget {
        /// Bytes that were needed in one piece.
        needed: usize,
        /// Bytes that were held.
        held: usize,
        /// The budget.
        budget: usize,
    },
    /// The system refused memory, or a table would exceed what can be addressed.
    Alloc(AllocError),
    /// All record ids are in use; `Ids::Wide` has more.
    Ids,
    /// The record has another width than the set was made for.
    Width {
        /// The width of the set.
        expected: usize,
        /// The width of the record.
        found: usize,
    },
}

impl std::fmt::Display for SeenError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Budget { needed, held, budget } => write!(
                out,
                "memory budget used up: {held} of {budget} bytes are held and {needed} more are needed; raise the \
                 budget, or keep fingerprints instead of records"
            ),
            Self::Alloc(error) => error.fmt(out),
            Self::Ids => out.write_str("record ids used up: make the set with Ids::Wide"),
            Self::Width { expected, found } => write!(
                out,
                "a record of {found} bytes in a set of records of {expected} bytes: leave the width open, or cut the \
                 record to it"
            ),
        }
    }
}

impl std::error::Error for SeenError {}

impl From<AllocError> for SeenError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

/// The books of a set: bytes of tables (with those that wait to be freed) and bytes of records.
///
/// **A1.** Bytes are booked before they are asked of the system and given back after they were
/// returned to it, so `held` is never below what is really held; a booking that would exceed the
/// budget is undone and refused.
#[derive(Debug)]
pub(crate) struct Account {
    budget: usize,
    tables: AtomicUsize,
    records: AtomicUsize,
    tables_peak: AtomicUsize,
}

impl Account {
    pub(crate) fn new(budget: Option<usize>) -> Self {
        Self {
            budget: budget.unwrap_or(usize::MAX),
            tables: AtomicUsize::new(0),
            records: AtomicUsize::new(0),
            tables_peak: AtomicUsize::new(0),
        }
    }

    /// Books bytes of a table (A1).
    pub(crate) fn book_table(&self, bytes: usize) -> Result<(), SeenError> {
        self.book(&self.tables, bytes)?;
        // ORDERING: Relaxed, here and below: sums and limits, which order nothing.
        self.tables_peak.fetch_max(self.tables(), Ordering::Relaxed);
        Ok(())
    }

    /// Books bytes of records (A1).
    pub(crate) fn book_records(&self, bytes: usize) -> Result<(), SeenError> {
        self.book(&self.records, bytes)
    }

    fn book(&self, side: &AtomicUsize, bytes: usize) -> Result<(), SeenError> {
        side.fetch_add(bytes, Ordering::Relaxed);
        let held = self.tables() + self.records();
        if held > self.budget {
            side.fetch_sub(bytes, Ordering::Relaxed);
            let held = held.saturating_sub(bytes);
            return Err(SeenError::Budget { needed: bytes, held, budget: self.budget });
        }
        Ok(())
    }

    /// Bytes of a table that was given back stay with the set.
    pub(crate) fn keep(&self, bytes: usize) {
        self.tables.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that were kept hold records from now on.
    pub(crate) fn hand_over(&self, bytes: usize) {
        self.records.fetch_add(bytes, Ordering::Relaxed);
        self.tables.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes of a table were returned.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.tables.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes of records were refused by the system.
    pub(crate) fn give_back_records(&self, bytes: usize) {
        self.records.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn tables(&self) -> usize {
        self.tables.load(Ordering::Relaxed)
    }

    pub(crate) fn records(&self) -> usize {
        self.records.load(Ordering::Relaxed)
    }

    pub(crate) fn tables_peak(&self) -> usize {
        self.tables_peak.load(Ordering::Relaxed)
    }
}
