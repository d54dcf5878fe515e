//! The word of a place: no item, an item, or an item whose word is closed.
//!
//! ```text
//!             put                        change
//!   null ─────────────────▶ item ◀──────────────────▶ item'
//!    ▲ ▲                    │  │
//!    │ └───────change───────┘  │ close
//!    │                         ▼
//!    └─────────settle───── item, closed ──settle──▶ item', closed
//! ```
//!
//! **Y1.** A word has a lock that it belongs to. Its holder alone puts an item where none is,
//! closes, and settles what is closed. Anybody changes an open item, by one compare-exchange,
//! without the lock: so the holder changes open items that way, too.
//! **Y2.** A closed word is never opened: who compares with an open item fails. What a closer has
//! seen stays until the lock's holder settles something else. Null is not closed; it is the
//! holder's anyhow.
//! **Y3.** Addresses of items are even. The lowest bit of a closed word is set, and no reader sees
//! it.

use super::{AtomicPtr, Ordering};
use std::ptr;

/// An item, which this does not follow.
type Raw = *mut ();

const CLOSED: usize = 1;

/// The word of one place.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct ItemWord(AtomicPtr<()>);

/// What a word says without its mark.
#[inline(always)]
fn open(word: Raw) -> Raw {
    word.map_addr(|address| address & !CLOSED)
}

#[inline(always)]
fn closed(item: Raw) -> Raw {
    item.map_addr(|address| address | CLOSED)
}

impl ItemWord {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The item, with its content, or null.
    #[inline(always)]
    pub(crate) fn load(&self) -> Raw {
        // ORDERING: Acquire: partners are `put`, `change` and `settle`: an item's content comes
        // with its pointer.
        open(self.0.load(Ordering::Acquire))
    }

    /// Whether there is an item, to be counted and not followed.
    pub(crate) fn is_null(&self) -> bool {
        // ORDERING: Relaxed: as told.
        self.0.load(Ordering::Relaxed).is_null()
    }

    /// Puts an item where none is. The caller holds the lock (Y1), or is alone.
    #[inline(always)]
    pub(crate) fn put(&self, item: Raw) {
        debug_assert_eq!(item.addr() & CLOSED, 0);
        debug_assert!(self.is_null());
        // ORDERING: Release: the item's content comes first; partner: `load`.
        self.0.store(item, Ordering::Release);
    }

    /// Puts another item, or null, in the place of an open one. False if it is no longer there, or
    /// closed.
    #[inline(always)]
    pub(crate) fn change(&self, from: Raw, to: Raw) -> bool {
        debug_assert_eq!((from.addr() | to.addr()) & CLOSED, 0);
        // ORDERING: Release: the item's content, and what was read of the one it replaces, come
        // first; Acquire: what is written of it from now on comes after what was read of those
        // before; partners: each other, `load`, `close`.
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The same by who holds the lock, be it closed or not (Y1, Y2).
    #[inline(always)]
    pub(crate) fn change_locked(&self, from: Raw, to: Raw) -> bool {
        self.change(from, to) || self.change_closed(from, to)
    }

    #[cold]
    fn change_closed(&self, from: Raw, to: Raw) -> bool {
        // ORDERING: Relaxed: closed, so written under this lock.
        let stands = ptr::eq(self.0.load(Ordering::Relaxed), closed(from));
        if stands {
            self.settle(to);
        }
        stands
    }

    /// Closes the word, and returns its item, which nobody but the lock's holder changes from now
    /// on. Null stays as it is.
    #[inline(always)]
    pub(crate) fn close(&self) -> Raw {
        // ORDERING: Acquire, as in `load`.
        let mut word = self.0.load(Ordering::Acquire);
        while !word.is_null() && word.addr() & CLOSED == 0 {
            // ORDERING: AcqRel and Acquire: what the last who changed it did comes before; partner:
            // `change`.
            match self.0.compare_exchange(word, closed(word), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(other) => word = other,
            }
        }
        open(word)
    }

    /// Puts another item, or null, in the place of a closed one. The caller holds the lock.
    #[inline(always)]
    pub(crate) fn settle(&self, item: Raw) {
        // ORDERING: Release, as in `put`.
        self.0.store(if item.is_null() { item } else { closed(item) }, Ordering::Release);
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_closed_word_is_changed_under_its_lock_alone() {
        let [null, first, second] = [0, 64, 128].map(ptr::without_provenance_mut::<()>);
        let word = ItemWord::new();
        assert!(word.is_null() && word.close().is_null() && word.is_null());
        word.put(first);
        assert!(!word.change(second, first) && word.change(first, second));
        assert_eq!(word.load(), second);
        assert_eq!([word.close(), word.close(), word.load()], [second; 3]);
        assert!(!word.change(second, first) && !word.change_locked(first, second));
        assert!(word.change_locked(second, first) && !word.change(first, second), "closed still");
        word.settle(second);
        assert!(!word.change(second, first) && word.load() == second);
        word.settle(null);
        assert!(word.is_null());
        word.put(first);
        assert!(word.change_locked(first, null) && word.is_null());
    }
}
