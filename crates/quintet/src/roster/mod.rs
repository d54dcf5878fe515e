//! Who is present: seats.
//!
//! A seat is a padded line that one thread writes and others look at. It says what its owner is doing, in
//! whatever terms the room above needs (`S`): the eras it reads in, the copies it looks at.
//!
//! ```text
//!                 join: CAS false → true (Acquire)
//!      VACANT ───────────────────────────────────▶ TAKEN
//!        ▲                                           │
//!        └─── drop, vacate: store false (Release) ───┘         a new seat is linked TAKEN and is never unlinked
//! ```
//!
//! **Q1.** A taken seat has one owner, the [`Seat`]; a `Seat` is `Send` but not `Sync`, so one thread at a time writes.
//! **Q2.** Seats are linked at the front and stay until the roster drops: a visitor may walk the list at any time.
//! **Q3.** Whoever takes a vacant seat sees everything its last owner wrote (Release of the vacating
//! store, Acquire of the taking exchange).
//! **Q4.** Before its first use a fresh seat has been linked by a SeqCst read-modify-write followed by a SeqCst fence: a
//! visitor whose barrier reaches only linked seats cannot miss it and its announcement both.
//! **Q5.** The owner leaves its state quiet (as `S` defines it) before it vacates.
//! **Q6.** An owner that goes while its state is not quiet abandons the seat: it stays TAKEN, by nobody, until somebody
//! who knows that it has become quiet [vacates](Roster::vacate) it, or the roster drops.
//!
//! There is no limit on the number of seats. A thread that ends or panics drops its `Seat` and so vacates it.

use crate::sync::{Arc, AtomicBool, AtomicPtr, AtomicUsize, CachePadded, Ordering, fence};
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;

/// All seats of one table or domain.
#[derive(Debug)]
pub(crate) struct Roster<S> {
    head: AtomicPtr<CachePadded<Node<S>>>,
    /// Vacant seats, a hint that spares `join` a walk.
    vacant: AtomicUsize,
    /// What the seats were for is gone.
    closed: AtomicBool,
}

#[derive(Debug)]
#[repr(C)]
struct Node<S> {
    state: S,
    taken: AtomicBool,
    next: *mut CachePadded<Node<S>>,
}

// SAFETY: the roster owns its nodes; `next` never changes after the node is linked (Q2).
unsafe impl<S: Send + Sync> Send for Roster<S> {}
// SAFETY: as above; a visitor gets `&S` only.
unsafe impl<S: Send + Sync> Sync for Roster<S> {}

/// One thread's place in a roster. Vacated on drop.
#[derive(Debug)]
pub(crate) struct Seat<S: Send + Sync> {
    roster: Arc<Roster<S>>,
    node: NonNull<CachePadded<Node<S>>>,
    /// `Cell` is `Send` but not `Sync` (Q1).
    not_sync: PhantomData<Cell<()>>,
}

// SAFETY: a seat may move to another thread: everything in it is `Send + Sync`, and moving it synchronizes.
unsafe impl<S: Send + Sync> Send for Seat<S> {}

impl<S: Send + Sync> Roster<S> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            head: AtomicPtr::new(std::ptr::null_mut()),
            vacant: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        })
    }

    /// Says that what the seats were for is gone: who caches a seat may give it up.
    pub(crate) fn close(&self) {
        // ORDERING: Relaxed: a hint for caches.
        self.closed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_closed(&self) -> bool {
        // ORDERING: Relaxed, as in `close`.
        self.closed.load(Ordering::Relaxed)
    }

    /// Takes a vacant seat, or links a fresh one.
    pub(crate) fn join(this: &Arc<Self>, fresh: impl FnOnce() -> S) -> Seat<S> {
        // ORDERING: Relaxed: a hint; a wrong one costs a walk or a new seat.
        if this.vacant.load(Ordering::Relaxed) > 0 {
            if let Some(seat) = Self::take_vacant(this, |_| true) {
                return seat;
            }
        }
        Self::link(this, fresh())
    }

    /// Takes some vacant seat whose state, looked at from outside, is `wanted`.
    pub(crate) fn take_vacant(this: &Arc<Self>, wanted: impl Fn(&S) -> bool) -> Option<Seat<S>> {
        let mut walk = this.head.load(Ordering::Acquire);
        while let Some(node) = NonNull::new(walk) {
            // SAFETY: linked nodes live as long as the roster (Q2).
            let seat = unsafe { node.as_ref() };
            // ORDERING: Acquire on success: partner is the Release store of `Seat::drop` (Q3).
            if !seat.taken.load(Ordering::Relaxed)
                && wanted(&seat.state)
                && seat
                    .taken
                    .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                this.vacant.fetch_sub(1, Ordering::Relaxed);
                return Some(Seat { roster: Arc::clone(this), node, not_sync: PhantomData });
            }
            walk = seat.next;
        }
        None
    }

    fn link(this: &Arc<Self>, state: S) -> Seat<S> {
        let node = Node { state, taken: AtomicBool::new(true), next: std::ptr::null_mut() };
        let mut node = NonNull::from(Box::leak(Box::new(CachePadded::new(node))));
        let mut head = this.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the node is not linked yet, so this is its only user.
            let unlinked = unsafe { node.as_mut() };
            unlinked.next = head;
            // ORDERING: SeqCst RMW and fence: Q4. Its Release half publishes the node to `visit`'s Acquire load.
            match this.head.compare_exchange_weak(
                head,
                node.as_ptr(),
                Ordering::SeqCst,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(newer) => head = newer,
            }
        }
        fence(Ordering::SeqCst);
        Seat { roster: Arc::clone(this), node, not_sync: PhantomData }
    }

    /// Looks at every seat ever linked, vacant ones too (their state is quiet, Q5).
    pub(crate) fn visit(&self, mut look: impl FnMut(&S)) {
        // ORDERING: Acquire: partner is the linking exchange; older nodes were published by theirs.
        let mut walk = self.head.load(Ordering::Acquire);
        // SAFETY: linked nodes live as long as the roster (Q2).
        while let Some(node) = unsafe { walk.as_ref() } {
            look(&node.state);
            walk = node.next;
        }
    }
}

impl<S: Send + Sync> Roster<S> {
    /// Vacates an abandoned seat (Q6), of which `state` is the state.
    ///
    /// # Safety
    /// The seat was [abandoned](Seat::abandon), and is vacated once; its state is quiet (Q5), and the caller does not touch it any more.
    pub(crate) unsafe fn vacate(&self, state: &S) {
        // ORDERING: Acquire, as in `visit`.
        let mut walk = self.head.load(Ordering::Acquire);
        // SAFETY: linked nodes live as long as the roster (Q2).
        while let Some(node) = unsafe { walk.as_ref() } {
            if std::ptr::eq(&raw const node.state, state) {
                return self.set_vacant(node);
            }
            walk = node.next;
        }
    }

    fn set_vacant(&self, node: &Node<S>) {
        // ORDERING: Release: partner is the Acquire exchange of `take_vacant` (Q3).
        node.taken.store(false, Ordering::Release);
        self.vacant.fetch_add(1, Ordering::Relaxed);
    }
}

impl<S> Drop for Roster<S> {
    fn drop(&mut self) {
        // ORDERING: Relaxed: the last owner of the Arc is alone.
        let mut walk = self.head.load(Ordering::Relaxed);
        while !walk.is_null() {
            // SAFETY: every node was leaked from a box in `link` and is freed once, here.
            let node = unsafe { Box::from_raw(walk) };
            walk = node.next;
        }
    }
}

impl<S: Send + Sync> Seat<S> {
    /// The roster this seat belongs to.
    pub(crate) fn roster(&self) -> &Arc<Roster<S>> {
        &self.roster
    }

    /// The state, for as long as the roster lives.
    ///
    /// # Safety
    /// The caller keeps the roster alive while it uses the reference.
    pub(crate) unsafe fn state_unbound<'a>(&self) -> &'a S {
        // SAFETY: nodes live as long as the roster (Q2), which the caller keeps.
        let node = unsafe { &*self.node.as_ptr().cast_const() };
        &node.state
    }
}

impl<S: Send + Sync> Seat<S> {
    /// Leaves the seat as it is, taken by nobody (Q6). Writes nothing to it.
    pub(crate) fn abandon(self) {
        let this = ManuallyDrop::new(self);
        // SAFETY: read once; `this` is neither used nor dropped any more.
        drop(unsafe { std::ptr::read(&raw const this.roster) });
    }
}

impl<S: Send + Sync> Deref for Seat<S> {
    type Target = S;
    #[inline(always)]
    fn deref(&self) -> &S {
        // SAFETY: nodes live as long as the roster (Q2), which the seat keeps alive.
        let node = unsafe { self.node.as_ref() };
        &node.state
    }
}

impl<S: Send + Sync> Drop for Seat<S> {
    fn drop(&mut self) {
        // SAFETY: as in `deref`.
        let node = unsafe { self.node.as_ref() };
        self.roster.set_vacant(node);
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;
    use crate::sync::AtomicU64;

    fn count<S: Send + Sync>(roster: &Roster<S>) -> usize {
        let mut seats = 0;
        roster.visit(|_| seats += 1);
        seats
    }

    #[test]
    fn a_vacated_seat_is_taken_again() {
        let roster = Roster::<AtomicU64>::new();
        let first = Roster::join(&roster, || AtomicU64::new(1));
        let second = Roster::join(&roster, || AtomicU64::new(2));
        assert_eq!(count(&roster), 2);
        drop(first);
        let third = Roster::join(&roster, || AtomicU64::new(3));
        assert_eq!(count(&roster), 2);
        assert_eq!(third.load(Ordering::Relaxed), 1, "the state stays as it was left");
        assert_eq!(second.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_thread_that_panics_gives_its_seat_back() {
        let roster = Roster::<AtomicU64>::new();
        for _ in 0..10 {
            let roster = Arc::clone(&roster);
            let outcome = std::thread::spawn(move || {
                let _seat = Roster::join(&roster, || AtomicU64::new(0));
                std::panic::resume_unwind(Box::new("on purpose"));
            });
            assert!(outcome.join().is_err());
        }
        assert_eq!(count(&roster), 1);
    }

    #[test]
    fn an_abandoned_seat_is_nobodys_until_it_is_vacated() {
        let roster = Roster::<AtomicU64>::new();
        Roster::join(&roster, || AtomicU64::new(1)).abandon();
        drop(Roster::join(&roster, || AtomicU64::new(2)));
        assert_eq!((count(&roster), Arc::strong_count(&roster)), (2, 1));
        roster.visit(|seat| {
            if seat.load(Ordering::Relaxed) == 1 {
                // SAFETY: abandoned above, and vacated here only.
                unsafe { roster.vacate(seat) };
            }
        });
        let seats: Vec<_> = (0..2).map(|_| Roster::join(&roster, || AtomicU64::new(3))).collect();
        assert_eq!((count(&roster), seats.len()), (2, 2), "both are taken again");
    }

    #[test]
    fn thousands_of_threads_find_a_seat_each() {
        let roster = Roster::<AtomicU64>::new();
        let seats: Vec<_> =
            (0..2_000).map(|_| Roster::join(&roster, || AtomicU64::new(0))).collect();
        seats.iter().for_each(|seat| seat.store(1, Ordering::Relaxed));
        let mut sum = 0;
        roster.visit(|seat| sum += seat.load(Ordering::Relaxed));
        assert_eq!(sum, 2_000);
    }

    #[test]
    fn only_a_wanted_vacant_seat_is_taken() {
        let roster = Roster::<AtomicU64>::new();
        let seats: Vec<_> = (0..5).map(|n| Roster::join(&roster, || AtomicU64::new(n))).collect();
        let three = |seat: &AtomicU64| seat.load(Ordering::Relaxed) == 3;
        assert!(Roster::take_vacant(&roster, three).is_none(), "taken seats are nobody else's");
        drop(seats);
        assert!(Roster::take_vacant(&roster, three).is_some());
    }
}

#[cfg(all(test, quintet_loom))]
mod loom_tests {
    use super::*;
    use crate::sync::{AtomicU64, thread};

    /// Two threads join, write and leave: each seat has one owner, and who takes a seat over sees what was left (Q1, Q3).
    #[test]
    fn loom_seats_have_one_owner() {
        loom::model(|| {
            let roster = Roster::<AtomicU64>::new();
            let work = |roster: Arc<Roster<AtomicU64>>| {
                let seat = Roster::join(&roster, || AtomicU64::new(0));
                let seen = seat.load(Ordering::Relaxed);
                seat.store(seen + 1, Ordering::Relaxed);
            };
            let other = Arc::clone(&roster);
            let thread = thread::spawn(move || work(other));
            work(Arc::clone(&roster));
            thread.join().unwrap();
            let mut sum = 0;
            roster.visit(|seat| sum += seat.load(Ordering::Relaxed));
            assert_eq!(sum, 2);
        });
    }
}
