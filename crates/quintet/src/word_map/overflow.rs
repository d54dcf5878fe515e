//! The list behind a table, for entries that find no slot within reach of their home.
//!
//! A table with a sound hash never needs it: only a copy that meets a run longer than the reach, or a flood of
//! keys that collide under two seeds, ends here. So it is small, and a lock guards it.
//!
//! **O1.** The list behaves like one more slot at the end of every probe. Open without the key it is EMPTY, closed without
//! it EMPTY-frozen; an entry has the states and transitions of a slot.
//! **O2.** Entries are never unlinked: a removed one stays as TOMB, or a late copier would bring it back.
//! **O3.** `busy` is set, under the lock, before the first entry or the closing can be seen. As long as it is not set, a probe that comes
//! here has found EMPTY.
//! **O4.** No user code runs under the lock.

use super::word::State;
use crate::sync::{AtomicBool, Mutex, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    hash: u64,
    state: State,
    value: u64,
}

#[derive(Debug, Default)]
struct List {
    closed: bool,
    entries: Vec<Entry>,
}

impl List {
    fn end(&self) -> State {
        if self.closed { State::EmptyFrozen } else { State::Empty }
    }
}

#[derive(Debug)]
pub(crate) struct Overflow {
    busy: AtomicBool,
    list: Mutex<List>,
}

impl Overflow {
    pub(crate) fn new() -> Self {
        Self { busy: AtomicBool::new(false), list: Mutex::new(List::default()) }
    }

    /// The state of `hash` in the list, and its value.
    pub(crate) fn look(&self, hash: u64) -> (State, u64) {
        // ORDERING: Acquire, partner: the Release store in `exchange` (O3).
        if !self.busy.load(Ordering::Acquire) {
            return (State::Empty, 0);
        }
        let list = self.list.lock();
        match list.entries.iter().find(|entry| entry.hash == hash) {
            Some(entry) => (entry.state, entry.value),
            None => (list.end(), 0),
        }
    }

    /// Replaces state and value if both are as expected, as a slot's compare-exchange does (O1).
    pub(crate) fn exchange(&self, hash: u64, old: (State, u64), new: (State, u64)) -> bool {
        let mut list = self.list.lock();
        // ORDERING: Release, partner: the Acquire load in `look` (O3).
        self.busy.store(true, Ordering::Release);
        let end = list.end();
        match list.entries.iter_mut().find(|entry| entry.hash == hash) {
            Some(entry) if (entry.state, entry.value) == old => {
                (entry.state, entry.value) = new;
                true
            }
            None if old.0 == State::Empty && end == State::Empty => {
                if new.0 == State::EmptyFrozen {
                    list.closed = true;
                } else {
                    list.entries.push(Entry { hash, state: new.0, value: new.1 });
                }
                true
            }
            _ => false,
        }
    }

    /// Closes the list and freezes every entry; returns those that are still to be copied.
    pub(crate) fn freeze(&self) -> Vec<(u64, u64)> {
        let mut list = self.list.lock();
        // ORDERING: Release, as in `exchange`.
        self.busy.store(true, Ordering::Release);
        list.closed = true;
        for entry in &mut list.entries {
            entry.state = match entry.state {
                State::Live => State::LiveFrozen,
                State::Tomb => State::TombFrozen,
                other => other,
            };
        }
        let pending = list.entries.iter().filter(|entry| entry.state == State::LiveFrozen);
        pending.map(|entry| (entry.hash, entry.value)).collect()
    }

    /// The hashes in the list, whatever their states.
    pub(crate) fn hashes(&self) -> Vec<u64> {
        // ORDERING: Acquire, as in `look`.
        if !self.busy.load(Ordering::Acquire) {
            return Vec::new();
        }
        self.list.lock().entries.iter().map(|entry| entry.hash).collect()
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn an_open_list_is_an_empty_slot_and_a_closed_one_is_frozen() {
        let list = Overflow::new();
        assert_eq!(list.look(1), (State::Empty, 0));
        assert!(list.exchange(1, (State::Empty, 0), (State::Live, 10)));
        assert!(!list.exchange(1, (State::Empty, 0), (State::Live, 11)), "taken");
        assert_eq!(list.look(1), (State::Live, 10));
        assert!(!list.exchange(1, (State::Live, 9), (State::Tomb, 9)), "another value");
        assert!(list.exchange(1, (State::Live, 10), (State::Tomb, 10)));
        assert_eq!(list.look(1), (State::Tomb, 10));
        assert!(list.exchange(2, (State::Empty, 0), (State::EmptyFrozen, 0)));
        assert_eq!(list.look(2), (State::EmptyFrozen, 0));
        assert!(!list.exchange(3, (State::Empty, 0), (State::Live, 1)), "closed");
        assert!(list.exchange(1, (State::Tomb, 10), (State::Live, 12)), "entries still change");
    }

    #[test]
    fn freezing_closes_and_names_what_to_copy() {
        let list = Overflow::new();
        for (hash, value) in [(1, 10), (2, 20)] {
            assert!(list.exchange(hash, (State::Empty, 0), (State::Live, value)));
        }
        assert!(list.exchange(2, (State::Live, 20), (State::Tomb, 20)));
        assert_eq!(list.freeze(), [(1, 10)]);
        assert_eq!(list.look(2), (State::TombFrozen, 20));
        assert_eq!(list.look(3), (State::EmptyFrozen, 0));
        assert!(list.exchange(1, (State::LiveFrozen, 10), (State::LiveDone, 10)));
        assert!(list.freeze().is_empty());
    }
}
