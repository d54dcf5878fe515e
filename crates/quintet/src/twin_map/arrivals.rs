//! Who waits for a version to come.
//!
//! A waiter enters the list, fences, looks once more at the version, and parks; the writer stores
//! the new version, fences, and looks at the list. One of the two sees the other.

use super::wait::Parker;
use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering, fence};

/// The waiting threads and tasks, each with a ticket, and whether anything can still come.
#[derive(Debug)]
pub(super) struct Arrivals {
    waiting: Mutex<Vec<(usize, Parker)>>,
    /// How many are in the list: spares the writer the lock.
    expected: AtomicUsize,
    tickets: AtomicUsize,
    orphaned: AtomicBool,
}

impl Arrivals {
    pub(super) fn new() -> Self {
        Self {
            waiting: Mutex::new(Vec::new()),
            expected: AtomicUsize::new(0),
            tickets: AtomicUsize::new(0),
            orphaned: AtomicBool::new(false),
        }
    }

    /// Enters the list. The caller looks once more before it parks.
    pub(super) fn enter(&self, parker: Parker) -> usize {
        // ORDERING: Relaxed: only unique.
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        let mut waiting = self.waiting.lock();
        waiting.push((ticket, parker));
        self.expected.store(waiting.len(), Ordering::Relaxed);
        drop(waiting);
        // ORDERING: SeqCst fence between "I wait" and the look at `readable` or `orphaned`;
        // partner: the fence of `announce`.
        fence(Ordering::SeqCst);
        ticket
    }

    /// Leaves the list.
    pub(super) fn leave(&self, ticket: usize) {
        let mut waiting = self.waiting.lock();
        let own = waiting.iter().position(|(other, _)| *other == ticket);
        let own = own.map(|at| waiting.swap_remove(at));
        self.expected.store(waiting.len(), Ordering::Relaxed);
        drop(waiting);
        drop(own); // a waker's drop may do anything
    }

    pub(super) fn is_orphaned(&self) -> bool {
        // ORDERING: Relaxed: says only that no further version comes.
        self.orphaned.load(Ordering::Relaxed)
    }

    /// The writer is gone.
    pub(super) fn orphan(&self) {
        // ORDERING: Relaxed, then the fence of `announce`.
        self.orphaned.store(true, Ordering::Relaxed);
        self.announce();
    }

    /// Something is new: wakes everybody.
    pub(super) fn announce(&self) {
        // ORDERING: SeqCst fence between the store of what is new and the look at who waits;
        // partner: `enter`.
        fence(Ordering::SeqCst);
        self.announce_fenced();
    }

    /// The same for who has executed that fence.
    pub(super) fn announce_fenced(&self) {
        if self.expected.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut waiting = self.waiting.lock();
        self.expected.store(0, Ordering::Relaxed);
        let woken = std::mem::take(&mut *waiting);
        drop(waiting);
        woken.into_iter().for_each(|(_, parker)| parker.wake());
    }
}
