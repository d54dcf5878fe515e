//! What fell out of a structure, to be dropped when nobody can be disturbed by it (`twin` X5).

use super::absorb::Absorb;
use super::core::Edition;
use super::user_code::{Payload, drop_each};
use crate::sync::Arc;
use std::collections::VecDeque;

/// Lists keep room for so many pieces.
const KEPT: usize = 1024;

/// Replaced and removed pieces, copies that are not used any more, and operations that were given
/// up.
pub(super) struct Fallen<T: Absorb<Op>, Op> {
    pub(super) old: Vec<T::Old>,
    pub(super) editions: Vec<Arc<Edition<T>>>,
    pub(super) operations: VecDeque<Op>,
}

impl<T: Absorb<Op>, Op> Fallen<T, Op> {
    pub(super) const fn new() -> Self {
        Self { old: Vec::new(), editions: Vec::new(), operations: VecDeque::new() }
    }

    /// Takes the operations of a log behind the first `keep`.
    pub(super) fn take_log(&mut self, log: &mut VecDeque<Op>, keep: usize) {
        if std::mem::needs_drop::<Op>() {
            self.operations.extend(log.drain(keep..));
        } else {
            log.truncate(keep);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.old.is_empty() && self.editions.is_empty() && self.operations.is_empty()
    }

    /// Drops each piece under its own catch; returns the first panic. Keeps a little room.
    pub(super) fn drop_all(&mut self) -> Option<Payload> {
        if self.is_empty() {
            return None;
        }
        let panics = [
            drop_each(self.old.drain(..)),
            drop_each(self.operations.drain(..)),
            drop_each(self.editions.drain(..)),
        ];
        self.old.shrink_to(KEPT);
        self.operations = VecDeque::new();
        let mut panics = panics.into_iter().flatten();
        let first = panics.next();
        // A payload may panic when it is dropped, too.
        panics.for_each(std::mem::forget);
        first
    }

    /// Bytes that the lists hold.
    pub(super) fn bytes(&self) -> usize {
        self.old.capacity() * size_of::<T::Old>() + self.operations.capacity() * size_of::<Op>()
    }
}
