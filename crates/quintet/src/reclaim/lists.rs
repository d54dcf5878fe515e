//! The garbage of a seat: what waits for its batch to fill, what some section holds back, what may
//! go.

use super::collect::{BATCH, BATCH_BYTES};
use super::retired::Retired;
use std::cell::{Cell, RefCell};

/// The lists of one seat. Made when its first piece comes: who only reads has none.
#[derive(Debug)]
pub(super) struct Lists {
    /// Pieces that wait for their batch.
    pub(super) bag: RefCell<Vec<Retired>>,
    /// So much, by weight, is a batch.
    pub(super) batch: Cell<usize>,
    /// Weight of the pieces in `bag`.
    pub(super) bag_weight: Cell<usize>,
    /// One of them is large, or not ours: they are looked at one by one.
    pub(super) bag_mixed: Cell<bool>,
    pub(super) kept: RefCell<Kept>,
    /// Pieces past their grace period, freed one by one.
    pub(super) ready: RefCell<Vec<Retired>>,
}

impl Lists {
    /// Empty lists, for batches of such a weight.
    pub(super) fn new(batch: usize) -> Self {
        Self {
            bag: RefCell::new(Vec::new()),
            batch: Cell::new(batch),
            bag_weight: Cell::new(0),
            bag_mixed: Cell::new(false),
            kept: RefCell::new(Kept::default()),
            ready: RefCell::new(Vec::new()),
        }
    }

    /// Takes what waits for its batch.
    pub(super) fn take_bag(&self) -> Vec<Retired> {
        self.bag_weight.set(0);
        self.bag_mixed.set(false);
        self.bag.take()
    }

    /// Takes all, with the memory of the lists.
    pub(super) fn take_all(&self) -> [Vec<Retired>; 3] {
        [self.take_bag(), self.kept.borrow_mut().take(), self.ready.take()]
    }
}

/// Sealed pieces that some seat still holds back (`reclaim` E5).
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The last batch, and its stamp, which its pieces do not have yet. In the usual case it goes
    /// as a whole at the next collection.
    pub(super) last: (u64, Vec<Retired>),
    pieces: Vec<Retired>,
    /// Weight of the pieces.
    weight: usize,
    /// The smallest `lower` at the last collection: while it stands, looking again at each piece
    /// finds little.
    floor: u64,
    /// Look again when there are this many, or this much by weight: each piece is looked at a
    /// bounded number of times, and what nobody holds back is at most as much as what somebody
    /// does.
    look_at: usize,
    look_at_weight: usize,
}

impl Kept {
    pub(super) fn push(&mut self, piece: Retired) {
        self.weight += piece.weight();
        self.pieces.push(piece);
    }

    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Is it worth looking at each piece again, now that `floor` is the smallest `lower`?
    pub(super) fn is_worth_a_look(&self, floor: u64) -> bool {
        floor > self.floor || self.len() >= self.look_at || self.weight >= self.look_at_weight
    }

    /// Takes out what `may` be freed.
    pub(super) fn look(&mut self, mut may: impl FnMut(Retired) -> Option<Retired>) {
        self.weight = 0;
        for piece in std::mem::take(&mut self.pieces) {
            if let Some(piece) = may(piece) {
                self.push(piece);
            }
        }
        self.look_at = (2 * self.len()).max(BATCH);
        self.look_at_weight = 2 * self.weight + BATCH_BYTES;
    }

    /// Notes the smallest `lower` behind which pieces came here or stay.
    pub(super) fn set_floor(&mut self, floor: u64) {
        self.floor = floor;
    }

    /// Gives the last batch its stamp, piece by piece, and hands it over.
    pub(super) fn take_last(&mut self) -> Vec<Retired> {
        let (stamp, mut pieces) = std::mem::take(&mut self.last);
        pieces.iter_mut().for_each(|piece| piece.retire = stamp);
        pieces
    }

    /// Takes over what another seat has left; the next look is due at once.
    pub(super) fn adopt(&mut self, pieces: impl Iterator<Item = Retired>) {
        pieces.for_each(|piece| self.push(piece));
        self.look_at = 0;
    }

    /// Takes all.
    pub(super) fn take(&mut self) -> Vec<Retired> {
        let mut pieces = self.take_last();
        pieces.append(&mut std::mem::take(self).pieces);
        pieces
    }
}
