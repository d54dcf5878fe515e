//! Who is present: seats.
//!
//! A seat is a padded line that one thread writes and others look at. It says what its owner is
//! doing, in whatever terms the room above needs (`S`): the eras it reads in, the copies it looks
//! at.
//!
//! ```text
//!               join: out of its list, then its bit is set
//!      VACANT ─────────────────────────────────────────────▶ TAKEN
//!        ▲                                                     │
//!        └──── drop, vacate: its bit is cleared, then listed ──┘
//! ```
//!
//! Seats come in chunks of 1, 1, 2, 4 and so on up to 64. A chunk has a word with a bit for each of
//! its seats, set while the seat is taken. Vacant seats are in one of two lists: those that their
//! owners left *laden*, with something that the room above wants back, and the rest. So joining and
//! leaving cost the same however many seats there are, and a visitor looks at the taken ones only.
//!
//! **Q1.** A taken seat has one owner, the [`Seat`]; a `Seat` is `Send` but not `Sync`, so one
//! thread at a time writes.
//! **Q2.** Chunks are linked at the front, whole, and stay until the roster drops: a visitor may
//! walk them at any time.
//! **Q3.** Whoever takes a vacant seat sees everything its last owner wrote: both hold the lock of
//! the lists meanwhile, one after the other.
//! **Q4.** Before its first use a seat's bit has been set by a SeqCst read-modify-write followed by
//! a SeqCst fence.
//! **Q5.** The owner leaves its state quiet (as `S` defines it) before the bit is cleared, with
//! Release.
//! **Q6.** An owner that goes while its state is not quiet abandons the seat: it stays TAKEN, by
//! nobody, until somebody who knows that it has become quiet [vacates](Roster::vacate) it, or the
//! roster drops.
//!
//! # A visitor that does not see a bit is right
//!
//! A visitor unlinks something, executes a SeqCst fence, and then loads the chunks and their words.
//! Let it find the bit of an owner not set, or not the chunk.
//!
//! *The owner comes later*: the visitor read from before the owner's read-modify-write, or from
//! before the link of its chunk, which happens before it. Had the owner's fence (Q4) come before
//! the visitor's in the one order of all SeqCst fences, the visitor would have seen both. So it
//! comes after, and everything that the owner loads behind it sees what the visitor unlinked.
//!
//! *The owner has gone*: the visitor read the clearing of the bit or something later in the word's
//! order of changes. All changes of the word are read-modify-writes, so that is in the release
//! sequence of the clearing, and the visitor's load is Acquire: all that the owner did happens
//! before what the visitor does next (Q5).
//!
//! A bit that is seen set says nothing: the visitor looks at the state, which is quiet if the seat
//! has been left since.
//!
//! There is no limit on the number of seats. A thread that ends or panics drops its `Seat` and so
//! vacates it.

use crate::sync::{
    Arc, AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, CachePadded, Mutex, Ordering, fence,
};
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::{NonNull, null, null_mut};

#[cfg(all(test, quintet_loom))]
mod loom_tests;
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests;

/// The most seats of a chunk: its word has a bit for each.
const LARGEST: usize = u64::BITS as usize;

/// All seats of one table or domain.
#[derive(Debug)]
pub(crate) struct Roster<S> {
    /// The chunk made last; each knows the one before.
    newest: AtomicPtr<Chunk<S>>,
    lobby: Mutex<Lobby<S>>,
    /// Seats in the list of laden ones. Changed under the lock.
    laden: AtomicUsize,
    /// How many seats are of a kind that the room above tells apart.
    pub(crate) marked: AtomicUsize,
    /// What the seats were for is gone.
    closed: AtomicBool,
}

/// The lists of vacant seats.
#[derive(Debug)]
struct Lobby<S> {
    vacant: *const Place<S>,
    laden: *const Place<S>,
}

#[derive(Debug)]
struct Chunk<S> {
    /// Bit n is set while seat n is taken.
    taken: AtomicU64,
    seats: Box<[Place<S>]>,
    older: *mut Chunk<S>,
}

type Place<S> = CachePadded<Node<S>>;

#[derive(Debug)]
#[repr(C)]
struct Node<S> {
    state: S,
    /// The chunk of this seat, and its number there. Never change once the chunk is linked.
    chunk: *const Chunk<S>,
    number: u32,
    /// Where the owner wants to leave it. A cell of the owner.
    laden: Cell<bool>,
    /// The next one in its list of vacant seats. A cell of whoever holds the lock.
    next: Cell<*const Place<S>>,
}

// SAFETY: the roster owns its chunks; what links them never changes once they are linked (Q2), and
// the lists are behind a lock.
unsafe impl<S: Send + Sync> Send for Roster<S> {}
// SAFETY: as above; a visitor gets `&S` only, and the cells of a node have one user at a time
// (owner or lock).
unsafe impl<S: Send + Sync> Sync for Roster<S> {}

/// One thread's place in a roster. Vacated on drop.
#[derive(Debug)]
pub(crate) struct Seat<S: Send + Sync> {
    roster: Arc<Roster<S>>,
    node: NonNull<Place<S>>,
    /// `Cell` is `Send` but not `Sync` (Q1).
    not_sync: PhantomData<Cell<()>>,
}

// SAFETY: a seat may move to another thread: everything in it is `Send + Sync`, and moving it
// synchronizes.
unsafe impl<S: Send + Sync> Send for Seat<S> {}

/// Names a seat of a roster, for who has abandoned it.
#[derive(Debug)]
pub(crate) struct Address<S>(NonNull<Place<S>>);

impl<S> Clone for Address<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Address<S> {}

impl<S: Send + Sync> Roster<S> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            newest: AtomicPtr::new(null_mut()),
            lobby: Mutex::new(Lobby { vacant: null(), laden: null() }),
            laden: AtomicUsize::new(0),
            marked: AtomicUsize::new(0),
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

    /// Takes a vacant seat, laden ones first, or one of a new chunk, all of whose seats are
    /// `fresh`.
    pub(crate) fn join(this: &Arc<Self>, fresh: impl Fn() -> S) -> Seat<S> {
        let node = {
            let mut lobby = this.lobby.lock();
            let vacant = this.pop_laden(&mut lobby).or_else(|| pop(&mut lobby.vacant));
            vacant.unwrap_or_else(|| this.add_chunk(&mut lobby, fresh))
        };
        Self::sit_down(this, node)
    }

    /// Whether a vacant seat is laden.
    pub(crate) fn has_laden(&self) -> bool {
        // ORDERING: Relaxed: a hint. Who must find one has been told by other means that it is
        // there.
        self.laden.load(Ordering::Relaxed) != 0
    }

    /// Takes a vacant seat that its last owner left laden.
    pub(crate) fn take_laden(this: &Arc<Self>) -> Option<Seat<S>> {
        if !this.has_laden() {
            return None;
        }
        let node = this.pop_laden(&mut this.lobby.lock())?;
        Some(Self::sit_down(this, node))
    }

    fn pop_laden(&self, lobby: &mut Lobby<S>) -> Option<NonNull<Place<S>>> {
        let node = pop(&mut lobby.laden)?;
        // ORDERING: Relaxed: a hint (see `has_laden`); the lock orders the changes.
        self.laden.fetch_sub(1, Ordering::Relaxed);
        Some(node)
    }

    /// Makes a chunk and links it, lists all its seats but one, and returns that one.
    #[cold]
    fn add_chunk(&self, lobby: &mut Lobby<S>, fresh: impl Fn() -> S) -> NonNull<Place<S>> {
        // ORDERING: Relaxed: written under the lock that the caller holds.
        let older = self.newest.load(Ordering::Relaxed);
        let node = |number| Node {
            state: fresh(),
            chunk: null(),
            number,
            laden: Cell::new(false),
            next: Cell::new(null()),
        };
        // SAFETY: linked chunks live as long as the roster (Q2).
        let seats = 0..size_after(unsafe { older.as_ref() }) as u32;
        let seats = seats.map(|number| CachePadded::new(node(number))).collect();
        let chunk = Box::into_raw(Box::new(Chunk { taken: AtomicU64::new(0), seats, older }));
        // SAFETY: fresh from a box, and not linked yet, so this is its only user.
        let unlinked = unsafe { &mut *chunk };
        unlinked.seats.iter_mut().for_each(|seat| seat.chunk = chunk);
        // ORDERING: Release: partner is the Acquire load of `chunks`.
        self.newest.store(chunk, Ordering::Release);
        // SAFETY: as for `older`; from here on it is shared.
        let linked = unsafe { &*chunk };
        let (first, others) = linked.seats.split_first().expect("at least one");
        others.iter().rev().for_each(|seat| push(&mut lobby.vacant, seat));
        NonNull::from(first)
    }

    /// Marks a seat that is in no list as taken.
    fn sit_down(this: &Arc<Self>, node: NonNull<Place<S>>) -> Seat<S> {
        // SAFETY: nodes live as long as the roster (Q2).
        let (chunk, bit) = unsafe { node.as_ref() }.bit();
        // ORDERING: SeqCst RMW and fence: Q4.
        chunk.taken.fetch_or(bit, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        Seat { roster: Arc::clone(this), node, not_sync: PhantomData }
    }

    /// Marks a taken seat as vacant and lists it.
    fn stand_up(&self, node: &Place<S>) {
        let (chunk, bit) = node.bit();
        let laden = node.laden.take();
        // ORDERING: Release: partner is the Acquire load of `visit` (Q5).
        chunk.taken.fetch_and(!bit, Ordering::Release);
        let mut lobby = self.lobby.lock();
        if laden {
            push(&mut lobby.laden, node);
            // ORDERING: Relaxed, as in `pop_laden`.
            self.laden.fetch_add(1, Ordering::Relaxed);
        } else {
            push(&mut lobby.vacant, node);
        }
    }

    /// Vacates an abandoned seat (Q6).
    ///
    /// # Safety
    /// The seat is one of this roster, was [abandoned](Seat::abandon), and is vacated once; its
    /// state is quiet (Q5), and the caller does not touch it any more.
    pub(crate) unsafe fn vacate(&self, seat: Address<S>, laden: bool) {
        // SAFETY: nodes live as long as the roster (Q2), and the seat is one of it.
        let node = unsafe { seat.0.as_ref() };
        // The caller stands for the owner.
        node.laden.set(laden);
        self.stand_up(node);
    }

    /// Looks at every taken seat, abandoned ones too. Behind a SeqCst fence, the rest are quiet or
    /// see what came before the fence (Q4, Q5).
    pub(crate) fn visit(&self, mut look: impl FnMut(&S)) {
        for chunk in self.chunks() {
            // ORDERING: Acquire: partner is the Release of `stand_up` (Q5).
            let mut taken = chunk.taken.load(Ordering::Acquire);
            while taken != 0 {
                look(&chunk.seats[taken.trailing_zeros() as usize].state);
                taken &= taken - 1;
            }
        }
    }

    /// Looks at every seat there is, vacant ones too: for what stays with a seat when its owner
    /// leaves.
    pub(crate) fn visit_all(&self, mut look: impl FnMut(&S)) {
        self.chunks().flat_map(|chunk| &chunk.seats).for_each(|seat| look(&seat.state));
    }

    fn chunks(&self) -> impl Iterator<Item = &Chunk<S>> {
        // ORDERING: Acquire: partner is the Release store of `add_chunk`; older chunks were
        // published by theirs.
        // SAFETY: linked chunks live as long as the roster (Q2).
        let newest = unsafe { self.newest.load(Ordering::Acquire).as_ref() };
        // SAFETY: as above.
        std::iter::successors(newest, |chunk| unsafe { chunk.older.as_ref() })
    }
}

/// How many seats come after the chunk `older`: as many as there are, up to a limit.
fn size_after<S>(older: Option<&Chunk<S>>) -> usize {
    match older {
        None => 1,
        Some(first) if first.older.is_null() => first.seats.len(),
        Some(older) => (2 * older.seats.len()).min(LARGEST),
    }
}

impl<S> Node<S> {
    /// The chunk of this seat, and its bit there.
    fn bit(&self) -> (&Chunk<S>, u64) {
        // SAFETY: set when the chunk was made; chunks live as long as the roster (Q2), and so as
        // long as their nodes.
        (unsafe { &*self.chunk }, 1 << self.number)
    }
}

/// Takes the first seat out of a list. The caller holds the lock.
fn pop<S>(list: &mut *const Place<S>) -> Option<NonNull<Place<S>>> {
    let first = NonNull::new(list.cast_mut())?;
    // SAFETY: nodes live as long as the roster (Q2), whose lock the caller holds.
    *list = unsafe { first.as_ref() }.next.get();
    Some(first)
}

/// Puts a seat into a list. The caller holds the lock.
fn push<S>(list: &mut *const Place<S>, seat: &Place<S>) {
    seat.next.set(*list);
    *list = seat;
}

impl<S> Drop for Roster<S> {
    fn drop(&mut self) {
        // ORDERING: Relaxed: the last owner of the Arc is alone.
        let mut walk = self.newest.load(Ordering::Relaxed);
        while !walk.is_null() {
            // SAFETY: every chunk was made from a box in `add_chunk` and is freed once, here.
            let chunk = unsafe { Box::from_raw(walk) };
            walk = chunk.older;
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

    /// Says whether the seat is laden when it is left. Not laden if nobody says so.
    pub(crate) fn set_laden(&self, laden: bool) {
        // SAFETY: as in `deref`.
        let node = unsafe { self.node.as_ref() };
        node.laden.set(laden);
    }

    /// Bytes of a seat with all that belongs to it.
    #[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
    pub(crate) const BYTES: usize = size_of::<Place<S>>();

    /// Bytes of a roster and of one chunk, besides their seats.
    #[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
    pub(crate) const SHARED: usize = size_of::<Roster<S>>() + size_of::<Chunk<S>>();

    /// The name of the seat.
    pub(crate) fn address(&self) -> Address<S> {
        Address(self.node)
    }

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
        self.roster.stand_up(node);
    }
}
