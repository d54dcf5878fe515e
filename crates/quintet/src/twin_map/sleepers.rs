//! Tasks that wait for their turn to write.
//!
//! **Y1.** A task enters the list before it asks for the lock. Whoever releases the lock looks at
//! the list afterwards. The list has a lock of its own: either the one sees the entry, or the other
//! the released lock.
//! **Y2.** Who has had the lock and found readers in its way is woken when one of them leaves: the
//! list itself is the waker that the gate is given, and wakes everybody. So it does not matter
//! whose turn it was, nor whether that task is still there.
//! **Y3.** A task that releases the lock because readers are in its way wakes only those that wait
//! for the lock: two such tasks do not wake each other in turns. Anybody else wakes all: it may
//! have taken back what the gate was given.

use crate::sync::Mutex;
use std::sync::Arc;
use std::task::{Wake, Waker};

/// The tasks, and whether each has had the lock since it entered.
#[derive(Debug)]
pub(super) struct Sleepers(Mutex<Vec<(Waker, bool)>>);

impl Sleepers {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Vec::new())))
    }

    /// Enters the list, or begins anew (Y1).
    pub(super) fn enter(&self, waker: &Waker) {
        self.leave(waker);
        self.0.lock().push((waker.clone(), false));
    }

    /// The task has the lock.
    pub(super) fn note_turn(&self, waker: &Waker) {
        let mut list = self.0.lock();
        list.iter_mut()
            .filter(|(other, _)| other.will_wake(waker))
            .for_each(|entry| entry.1 = true);
    }

    pub(super) fn leave(&self, waker: &Waker) {
        let mut list = self.0.lock();
        let (left, stay) =
            std::mem::take(&mut *list).into_iter().partition(|(other, _)| other.will_wake(waker));
        *list = stay;
        drop(list);
        drop::<Vec<_>>(left); // a waker's drop may do anything
    }

    /// The lock was released: wakes all, or those that wait for the lock (Y3).
    pub(super) fn wake(&self, all: bool) {
        let mut list = self.0.lock();
        if list.is_empty() {
            return;
        }
        let (woken, stay): (Vec<_>, _) =
            std::mem::take(&mut *list).into_iter().partition(|(_, had_turn)| all || !had_turn);
        *list = stay;
        drop(list);
        woken.into_iter().for_each(|(waker, _)| waker.wake());
    }
}

/// A reader has left (Y2).
impl Wake for Sleepers {
    fn wake(self: Arc<Self>) {
        Self::wake(&self, true);
    }
}
