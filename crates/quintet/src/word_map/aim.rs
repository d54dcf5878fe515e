//! A key's home, looked at as a whole: the usual case of every operation. T1 to T6 are those of `table`.

use super::word::{GROUP, STEP, SlotWord, State};
use crate::sync::AtomicPair;
use crate::sync::pair::find;
use std::ptr;

/// The home of a key in a grouped table: what the usual operations look at and nothing else.
#[derive(Clone, Copy)]
pub(crate) struct Aim<'t> {
    pub(super) group: &'t [AtomicPair; GROUP],
    /// The key's word in the first slot, LIVE.
    pub(super) live: SlotWord,
    pub(super) turn: usize,
}

impl<'t> Aim<'t> {
    /// The key's slot and its value, if it is LIVE in its home. No branch depends on which slot it is.
    #[inline(always)]
    pub(crate) fn find(&self) -> Option<(&'t AtomicPair, u64)> {
        let slot = find::<GROUP, STEP>(self.group, self.live.bits())?;
        Some((slot, slot.load_second()))
    }

    /// Replaces the value of a key that was found (T2).
    #[inline(always)]
    pub(crate) fn replace(&self, found: (&AtomicPair, u64), value: u64) -> bool {
        let (slot, before) = found;
        let word = self.word_in(slot).bits();
        slot.compare_exchange((word, before), (word, value)).is_ok()
    }

    /// Removes a key that was found.
    #[inline(always)]
    pub(crate) fn remove(&self, found: (&AtomicPair, u64)) -> bool {
        let (slot, before) = found;
        let word = self.word_in(slot);
        slot.compare_exchange((word.bits(), before), (word.with(State::Tomb).bits(), before))
            .is_ok()
    }

    /// The LIVE word of the key in a slot of its home.
    #[inline(always)]
    fn word_in(&self, slot: &AtomicPair) -> SlotWord {
        let offset = ptr::from_ref(slot).addr() - self.group.as_ptr().addr();
        self.live.further(offset / size_of::<AtomicPair>())
    }

    /// True if the slot where the key's probe begins is EMPTY: then it is absent (T4).
    #[inline(always)]
    pub(crate) fn is_free(&self) -> bool {
        self.group[self.turn].load_first() == SlotWord::EMPTY.bits()
    }

    /// Takes that slot.
    #[inline(always)]
    pub(crate) fn take(&self, value: u64) -> bool {
        let word = self.live.further(self.turn).bits();
        self.group[self.turn].compare_exchange((SlotWord::EMPTY.bits(), 0), (word, value)).is_ok()
    }
}

/// True if a slot of the group is EMPTY; without a branch.
#[inline(always)]
pub(super) fn has_empty(group: &[AtomicPair; GROUP]) -> bool {
    // The top bit of `(x - 1) & !x` says that x is 0.
    let zeros = |bits: u64| bits.wrapping_sub(1) & !bits;
    let any = group.iter().fold(0, |any, slot| any | zeros(slot.load_first()));
    any >> (u64::BITS - 1) != 0
}
