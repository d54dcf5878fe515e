//! A domain: one era, one roster, one backlog.

use super::collect;
use super::handle::{Handle, QuietHandle};
use super::local;
use super::retired::Retired;
use super::seat::SeatState;
use super::section::{Section, Spot};
use crate::roster::{Roster, Seat};
use crate::sync::{
    Arc, AtomicU64, AtomicUsize, Barrier, CachePadded, LazyArc, Mutex, Ordering,
    const_where_possible, fork,
};

/// Memory that readers share and writers retire. Costs nothing before its first use. Cheap to
/// clone; dropped with its last clone and handle, and with it everything that is still retired.
#[derive(Debug)]
pub struct Domain {
    core: LazyArc<Core>,
    /// The barrier that was chosen, if one was.
    barrier: Option<Barrier>,
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

/// What a domain is once it is used. All of it is written once per batch at most, so it is on the
/// line that every reader looks at.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Core {
    own_line: [CachePadded<()>; 0],
    pub(super) pulse: Pulse,
    pub(super) roster: Arc<Roster<SeatState>>,
    /// Pieces past their grace period that are freed step by step.
    pub(super) returning: Mutex<Vec<Retired>>,
    pub(super) refused: AtomicU64,
    /// Barriers that interrupted all threads, or tried to.
    pub(super) barriers: AtomicU64,
    /// Forks of this process that the seats have been swept for.
    pub(super) forks: AtomicUsize,
}

/// What every reader looks at.
#[derive(Debug)]
pub(super) struct Pulse {
    pub(super) era: AtomicU64,
    /// Pieces in `returning`.
    pub(super) returns: AtomicUsize,
    pub(super) barrier: Barrier,
}

/// The era in which a domain begins.
const FIRST: u64 = 1;

impl Core {
    fn new(barrier: Option<Barrier>) -> Self {
        fork::watch();
        Self {
            own_line: [],
            pulse: Pulse {
                era: AtomicU64::new(FIRST),
                returns: AtomicUsize::new(0),
                barrier: barrier.unwrap_or_else(Barrier::detect),
            },
            roster: Roster::new(),
            returning: Mutex::new(Vec::new()),
            refused: AtomicU64::new(0),
            barriers: AtomicU64::new(0),
            forks: AtomicUsize::new(fork::seen().0),
        }
    }

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

impl Clone for Domain {
    fn clone(&self) -> Self {
        Self { core: self.share().into(), barrier: self.barrier }
    }
}

impl Domain {
    const_where_possible! {
        /// A domain with the cheapest barrier this system grants.
        pub fn new() -> Self {
            Self { core: LazyArc::new(), barrier: None }
        }
    }

    const_where_possible! {
        /// A domain with a chosen barrier.
        pub fn with_barrier(barrier: Barrier) -> Self {
            Self { core: LazyArc::new(), barrier: Some(barrier) }
        }
    }

    #[inline(always)]
    pub(super) fn core(&self) -> &Core {
        self.core.get_or_make(|| Core::new(self.barrier))
    }

    /// The core, for who keeps it.
    pub(super) fn share(&self) -> Arc<Core> {
        self.core.share(|| Core::new(self.barrier))
    }

    /// The barrier in use.
    pub fn barrier(&self) -> Barrier {
        self.barrier.unwrap_or_else(Barrier::detect)
    }

    /// The present era: the birth stamp of what is published next (`reclaim` E2).
    #[inline(always)]
    pub fn era(&self) -> u64 {
        // ORDERING: Relaxed: a stale stamp is an earlier birth, which only holds memory longer.
        self.core.get().map_or(FIRST, |core| core.pulse.era.load(Ordering::Relaxed))
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
        let core = self.core();
        Section::enter(core, local::seat(core))
    }

    /// The calling thread's seat, for a section in the usual case: that it was the last one the
    /// thread used.
    #[inline(always)]
    pub fn spot(&self) -> Option<Spot<'_>> {
        let core = self.core.get()?;
        local::last(core).map(|seat| Spot::new(core, seat))
    }

    /// Seals and frees what can be freed now: the garbage of the calling thread's seat and of
    /// vacated seats. What other threads hold in their own unfilled batches stays with them.
    pub fn flush(&self) {
        let Some(core) = self.core.get() else { return };
        let seat = local::seat(core);
        if !seat.is_inside() {
            collect::collect(core, seat, true);
            collect::return_all(core);
            seat.vacate_if_orphaned(&core.roster);
        }
    }

    /// Frees one step of a large piece, if one is waiting. True if more waits.
    #[inline]
    pub fn return_piece(&self) -> bool {
        self.is_returning() && self.core.get().is_some_and(collect::return_piece)
    }

    /// Whether a large piece waits for its next step.
    #[inline(always)]
    pub fn is_returning(&self) -> bool {
        // ORDERING: Relaxed: a hint.
        self.core.get().is_some_and(|core| core.pulse.returns.load(Ordering::Relaxed) != 0)
    }

    /// Entries that the books of all seats have seen come, less those they have seen go: exact when
    /// nobody writes (`books` A1, A2).
    pub fn live(&self) -> i64 {
        let mut sum = 0;
        if let Some(core) = self.core.get() {
            core.roster.visit_all(|seat| sum += seat.books.live());
        }
        sum
    }

    /// Seats that were ever made.
    pub fn seats(&self) -> usize {
        let mut count = 0;
        if let Some(core) = self.core.get() {
            core.roster.visit_all(|_| count += 1);
        }
        count
    }

    /// [`is_returning`](Self::is_returning) for who is inside a section of this domain, without
    /// asking whether it has been used at all.
    ///
    /// # Safety
    /// A section of this domain was entered before, by the caller or by somebody whose doing
    /// happens before.
    #[inline(always)]
    pub unsafe fn is_returning_in_use(&self) -> bool {
        // SAFETY: the first section makes the core.
        let core = unsafe { self.core.get_made() };
        // ORDERING: Relaxed: a hint.
        core.pulse.returns.load(Ordering::Relaxed) != 0
    }

    /// How much waits.
    pub fn backlog(&self) -> Backlog {
        let mut backlog = Backlog { era: self.era(), ..Backlog::default() };
        let Some(core) = self.core.get() else { return backlog };
        // ORDERING: Relaxed: statistics.
        backlog.refused = core.refused.load(Ordering::Relaxed);
        backlog.barriers = core.barriers.load(Ordering::Relaxed);
        core.roster.visit_all(|seat| {
            backlog.items += seat.items.load(Ordering::Relaxed);
            backlog.bytes += seat.bytes.load(Ordering::Relaxed);
        });
        let returning = core.returning.lock();
        backlog.items += returning.len();
        backlog.bytes += returning.iter().map(Retired::bytes).sum::<usize>();
        backlog
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // No handle is left, and no section but forgotten ones: they hold or borrow the domain.
        // Thread-local seats may still be taken, and announce a forgotten section for ever. Their
        // owners touch the lists only through a domain; a thread that ends just now touches other
        // cells (`local` K4).
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
