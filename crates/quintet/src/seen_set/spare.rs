//! Memory that tables have left, kept for records.
//!
//! **E1.** A piece belongs to one owner: the pool, or the arena that took it. Nobody else refers to
//! its memory, and it is never given back to the system before its mapping goes.
//! **E2.** The pool holds at most a small share of what the tables hold, and is on their account.

use super::budget::Account;
use super::ground::Generation;
use crate::sync::{Arc, Mutex};
use std::ops::Range;

/// The pool may hold this part of all table bytes.
const SHARE: usize = 16;

/// A part of a mapping, present and owned (E1). Any bytes may be in it.
#[derive(Debug)]
pub(crate) struct Piece {
    /// Keeps the mapping.
    generation: Arc<Generation>,
    range: Range<usize>,
}

/// The pool.
#[derive(Debug)]
pub(crate) struct Spare {
    account: Arc<Account>,
    pieces: Mutex<Vec<Piece>>,
}

impl Piece {
    pub(super) fn new(generation: &Arc<Generation>, range: Range<usize>) -> Self {
        Self { generation: Arc::clone(generation), range }
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.generation.place(self.range.start)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.range.len()
    }
}

impl Spare {
    pub(crate) fn new(account: &Arc<Account>) -> Self {
        Self { account: Arc::clone(account), pieces: Mutex::new(Vec::new()) }
    }

    /// Keeps a piece, if there is room for it (E2). If not, the piece is its owner's as before.
    pub(super) fn offer(&self, piece: Piece) -> bool {
        let mut pieces = self.pieces.lock();
        let held: usize = pieces.iter().map(Piece::bytes).sum();
        let fits = (held + piece.bytes()).saturating_mul(SHARE) <= self.account.tables();
        if fits {
            self.account.keep(piece.bytes());
            pieces.push(piece);
        }
        fits
    }

    /// Takes a piece of at least so many bytes, which hold records from now on.
    pub(super) fn take(&self, least: usize) -> Option<Piece> {
        let mut pieces = self.pieces.lock();
        let index = pieces.iter().position(|piece| piece.bytes() >= least)?;
        let piece = pieces.swap_remove(index);
        self.account.hand_over(piece.bytes());
        Some(piece)
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use crate::SeenSet;

    /// Records move into what tables have left, and neither table nor record is any the worse for
    /// it.
    #[test]
    fn records_that_lie_where_tables_lay_are_found() {
        const RECORDS: u64 = 300_000;
        let seen = SeenSet::<[u64; 4]>::new();
        let record = |n: u64| [n, !n, n.rotate_left(32), 7];
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let seen = &seen;
                scope.spawn(move || {
                    let handle = seen.handle();
                    (thread..RECORDS).step_by(2).for_each(|n| {
                        assert!(handle.insert(record(n)).is_new());
                    });
                });
            }
        });
        let handle = seen.handle();
        for n in 0..RECORDS {
            let id = handle.find(&record(n)).expect("inserted before");
            assert_eq!(seen.get(id), Some(&record(n)));
        }
        assert_eq!(seen.iter().count() as u64, RECORDS);
        if crate::region::is_mapped(1 << 20) {
            assert!(seen.made().unwrap().records.arenas.reused() > 0, "nothing was kept");
        }
    }
}
