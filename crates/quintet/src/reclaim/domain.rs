//! A domain: one era, one roster, one backlog.

use super::collect;
use super::handle::{Handle, QuietHandle};
use super::local;
use super::retired::Retired;
use super::seat::SeatState;
use super::section::{Section, Spot};
use crate::roster::{Roster, Seat};
use crate::sync::{Arc, AtomicU64, AtomicUsize, Barrier, CachePadded, Mutex, Ordering, fork};

/// Memory that readers share and writers retire. Cheap to clone; dropped with its last clone and handle, and with it
/// everything that is still retired.
#[derive(Debug, Clone)]
pub struct Domain {
    pub(super) core: Arc<Core>,
}

/// How much is retired and not yet free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Pieces that wait.
    pub items: usize,
    /// Bytes they hold.
    pub bytes: usize,
    /// Barriers the system refused: nothing was freed by those rounds.
    pub refused: u64,
    /// Barriers that interrupted all threads of the process, or were refused.
    pub barriers: u64,
    /// Sealed batches so far.
    pub era: u64,
}

#[derive(Debug)]
pub(super) struct Core {
    pub(super) pulse: CachePadded<Pulse>,
    pub(super) roster: Arc<Roster<SeatState>>,
    /// Pieces past their grace period that are freed step by step.
    pub(super) returning: Mutex<Vec<Retired>>,
    pub(super) refused: AtomicU64,
    /// Barriers that interrupted all threads, or tried to.
    pub(super) barriers: AtomicU64,
    /// Seats that may announce without a fence (F1).
    pub(super) light: AtomicUsize,
    /// Forks of this process that the seats have been swept for.
    pub(super) forks: AtomicUsize,
}

/// The line every reader looks at; written once per batch.
#[derive(Debug)]
pub(super) struct Pulse {
    pub(super) era: AtomicU64,
    /// Pieces in `returning`.
    pub(super) returns: AtomicUsize,
    pub(super) barrier: Barrier,
}

impl Core {
    /// A free seat, or a new one, fenced.
    pub(super) fn take_seat(&self) -> Seat<SeatState> {
        let seat = Roster::join(&self.roster, SeatState::new);
        self.weigh_down(&seat);
        seat.pins.set(0);
        if let Some(lists) = seat.lists.get() {
            lists.batch.set(self.batch());
        }
        seat
    }
}

impl Default for Domain {
    fn default() -> Self {
        Self::new()
    }
}

impl Domain {
    /// A domain with the cheapest barrier this system grants.
    pub fn new() -> Self {
        Self::with_barrier(Barrier::detect())
    }

    /// A domain with a chosen barrier.
    pub fn with_barrier(barrier: Barrier) -> Self {
        fork::watch();
        let pulse = Pulse { era: AtomicU64::new(1), returns: AtomicUsize::new(0), barrier };
        Self {
            core: Arc::new(Core {
                pulse: CachePadded::new(pulse),
                roster: Roster::new(),
                returning: Mutex::new(Vec::new()),
                refused: AtomicU64::new(0),
                barriers: AtomicU64::new(0),
                light: AtomicUsize::new(0),
                forks: AtomicUsize::new(fork::seen().0),
            }),
        }
    }

    /// The barrier in use.
    pub fn barrier(&self) -> Barrier {
        self.core.pulse.barrier
    }

    /// The present era: the birth stamp of what is published next (E2).
    #[inline(always)]
    pub fn era(&self) -> u64 {
        // ORDERING: Relaxed: a stale stamp is an earlier birth, which only holds memory longer.
        self.core.pulse.era.load(Ordering::Relaxed)
    }

    /// A seat of one's own.
    pub fn join(&self) -> Handle {
        Handle::new(self)
    }

    /// A seat that is inside for as long as it is not at a quiet point.
    pub fn join_quiet(&self) -> QuietHandle {
        QuietHandle::new(self)
    }

    /// Enters a read section on the calling thread's seat.
    #[inline]
    pub fn pin(&self) -> Section<'_> {
        let seat = local::seat(&self.core);
        Section::enter(&self.core, seat)
    }

    /// The calling thread's seat, for a section in the usual case: that it was the last one the thread used.
    #[inline(always)]
    pub fn spot(&self) -> Option<Spot<'_>> {
        local::last(&self.core).map(|seat| Spot::new(&self.core, seat))
    }

    /// Seals and frees what can be freed now: the garbage of the calling thread's seat and of vacated seats. What
    /// other threads hold in their own unfilled batches stays with them.
    pub fn flush(&self) {
        let seat = local::seat(&self.core);
        if !seat.is_inside() {
            collect::collect(&self.core, seat, true);
            collect::return_all(&self.core);
            seat.vacate_if_orphaned(&self.core.roster);
        }
    }

    /// Frees one step of a large piece, if one is waiting. True if more waits.
    #[inline]
    pub fn return_piece(&self) -> bool {
        self.is_returning() && collect::return_piece(&self.core)
    }

    /// Whether a large piece waits for its next step.
    #[inline(always)]
    pub fn is_returning(&self) -> bool {
        // ORDERING: Relaxed: a hint.
        self.core.pulse.returns.load(Ordering::Relaxed) != 0
    }

    /// Entries that the books of all seats have seen come, less those they have seen go: exact when nobody writes (A1, A2).
    pub fn live(&self) -> i64 {
        let mut sum = 0;
        self.core.roster.visit_all(|seat| sum += seat.books.live());
        sum
    }

    /// How much waits.
    pub fn backlog(&self) -> Backlog {
        let mut backlog = Backlog {
            // ORDERING: Relaxed: statistics.
            refused: self.core.refused.load(Ordering::Relaxed),
            barriers: self.core.barriers.load(Ordering::Relaxed),
            era: self.era(),
            ..Backlog::default()
        };
        self.core.roster.visit_all(|seat| {
            backlog.items += seat.items.load(Ordering::Relaxed);
            backlog.bytes += seat.bytes.load(Ordering::Relaxed);
        });
        let returning = self.core.returning.lock();
        backlog.items += returning.len();
        backlog.bytes += returning.iter().map(Retired::bytes).sum::<usize>();
        backlog
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // No handle is left, and no section but forgotten ones: they hold or borrow the domain. Thread-local seats may still be taken,
        // and announce a forgotten section for ever. Their owners touch the lists only through a domain; a thread that ends
        // just now touches other cells (K4).
        self.roster.close();
        let mut pieces = std::mem::take(self.returning.get_mut());
        self.roster.visit_all(|seat| {
            if let Some(lists) = seat.lists.get() {
                pieces.extend(lists.take_all().into_iter().flatten());
                seat.count(0, 0);
            }
        });
        collect::free_whole(pieces);
    }
}
