//! What a reader announces, and what it keeps to itself.
//!
//! | Field | Written by | Read by |
//! |---|---|---|
//! | `lower`, `upper`, `items`, `bytes`, `thread`, `forks` | the owner (or the at-fork sweep) | everybody |
//! | `books` | the owner | its `live` everybody, the rest the owner |
//! | `lists` | the owner | the owner; the domain's drop |
//! | everything else | the owner | the owner |

use super::books::Books;
use super::lists::Lists;
use crate::roster::{Address, Roster};
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Barrier, Ordering};
use std::cell::{Cell, OnceCell};

/// The era that never comes: `lower = NEVER` is "outside", `upper = NEVER` is "everything from
/// lower on".
pub(super) const NEVER: u64 = u64::MAX;

/// "Outside" of a fenced seat: the usual way in looks for [`NEVER`] and need not ask for the fence.
/// Every `lower` from here on is outside.
pub(super) const OUTSIDE: u64 = NEVER - 1;

/// The state of a seat. What every section touches comes first, on one line.
#[repr(C)]
pub(super) struct SeatState {
    pub(super) lower: AtomicU64,
    pub(super) upper: AtomicU64,
    /// 0 in the usual case: one section, no fence, no work for its end. Else [`DUE`], [`ORPHANED`]
    /// and [`FENCED`], and in steps of [`NESTED`] the sections open besides the first.
    unusual: Cell<u64>,
    /// What `lower` is outside: [`NEVER`], or [`OUTSIDE`] if the seat is fenced.
    outside: Cell<u64>,
    pub(super) books: Books,
    pub(super) collecting: Cell<bool>,
    /// Sections entered while the seat was fenced.
    pub(super) pins: Cell<u16>,
    /// How often the process had been forked when a thread took this for its own seat; 32 bits tell
    /// them apart.
    pub(super) forks: AtomicU32,
    /// Garbage on this seat, for statistics and for whoever adopts it.
    pub(super) items: AtomicUsize,
    pub(super) bytes: AtomicUsize,
    /// The garbage itself; there is none before the first piece.
    pub(super) lists: OnceCell<Box<Lists>>,
    /// Names the owning thread if this is a thread-local seat, else 0.
    pub(super) thread: AtomicUsize,
    /// Where this seat is, once it is abandoned (`roster` Q6).
    address: Cell<Option<Address<SeatState>>>,
}

/// A batch is full: collect when the last section is left.
pub(super) const DUE: u64 = 1;
/// Nobody owns the seat: vacate it when the last section is left.
pub(super) const ORPHANED: u64 = 2;
/// Announcing takes a fence (`light` F3).
const FENCED: u64 = 4;
const NESTED: u64 = 8;

// SAFETY: other threads touch the atomics only; the cells belong to the owner of the seat, of which
// there is one at a time (`roster` Q1, handed over by `roster` Q3), some of them to the domain's
// drop as well, when no owner touches those (`local` K4).
unsafe impl Sync for SeatState {}
// SAFETY: the pieces are `Send`, the rest are numbers.
unsafe impl Send for SeatState {}

impl std::fmt::Debug for SeatState {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SeatState")
            .field("lower", &self.lower)
            .field("upper", &self.upper)
            .field("items", &self.items)
            .finish_non_exhaustive()
    }
}

impl SeatState {
    /// A fenced seat.
    pub(super) fn new() -> Self {
        Self {
            lower: AtomicU64::new(OUTSIDE),
            outside: Cell::new(OUTSIDE),
            books: Books::new(),
            upper: AtomicU64::new(0),
            unusual: Cell::new(FENCED),
            collecting: Cell::new(false),
            pins: Cell::new(0),
            forks: AtomicU32::new(0),
            items: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            lists: OnceCell::new(),
            thread: AtomicUsize::new(0),
            address: Cell::new(None),
        }
    }

    /// Opens a section if no other is open and no fence is needed: announces the present era.
    /// Returns the announced `upper`.
    #[inline(always)]
    pub(super) fn enter_usual(&self, era: &AtomicU64) -> Option<u64> {
        // ORDERING: Relaxed: our own store.
        if self.lower.load(Ordering::Relaxed) != NEVER {
            return None;
        }
        let upper = self.announce(era);
        // `barrier` B1: announced before any shared pointer is loaded; partner: the collector's
        // heavy barrier.
        Barrier::Asymmetric.light();
        Some(upper)
    }

    /// Opens a section.
    #[cold]
    pub(super) fn enter_unusual(&self, era: &AtomicU64) -> u64 {
        if self.is_inside() {
            self.unusual.set(self.unusual.get() + NESTED);
            return self.upper();
        }
        let upper = self.announce(era);
        // `barrier` B1, as above.
        Barrier::Fence.light();
        upper
    }

    /// What this seat announces as `upper`.
    #[inline(always)]
    pub(super) fn upper(&self) -> u64 {
        // ORDERING: Relaxed: our own store.
        self.upper.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn announce(&self, era: &AtomicU64) -> u64 {
        // ORDERING: Acquire: partner is the seal's fetch_add. Reading the era of a seal means
        // seeing its unlinks, so what `retire < lower` calls unreachable is unreachable for us.
        let now = era.load(Ordering::Acquire);
        // ORDERING: Release: partner is the scan's Acquire. A scan that reads this announcement has
        // everything our last section did before it. Either order of the two stores is right.
        self.upper.store(now, Ordering::Release);
        self.lower.store(now, Ordering::Release);
        now
    }

    /// Closes a section. True if it was the last and work waits.
    #[inline(always)]
    pub(super) fn leave(&self) -> bool {
        if self.unusual.get() != 0 {
            return self.leave_unusual();
        }
        self.leave_usual();
        false
    }

    #[cold]
    fn leave_unusual(&self) -> bool {
        let unusual = self.unusual.get();
        if unusual >= NESTED {
            self.unusual.set(unusual - NESTED);
            return false;
        }
        self.go_outside();
        unusual & (DUE | ORPHANED) != 0
    }

    /// Closes a section of a light seat that no other is open beside; work that waits goes on
    /// waiting.
    #[inline(always)]
    pub(super) fn leave_usual(&self) {
        debug_assert!(
            self.unusual.get() < FENCED || cfg!(quintet_mutation = "brief-drop"),
            "light, and nobody else inside"
        );
        // ORDERING: Release, as in `go_outside`.
        self.lower.store(NEVER, Ordering::Release);
    }

    /// Closes the section that [`enter_usual`](Self::enter_usual) opened, or, if user code has left
    /// others open that it opened inside, hands the announcement over to them (`reclaim` E10). The
    /// seat is light still: it changes only while it is outside (`light` F1).
    #[inline(always)]
    pub(super) fn leave_briefly(&self) {
        let unusual = self.unusual.get();
        if unusual >= NESTED && !cfg!(quintet_mutation = "brief-drop") {
            self.unusual.set(unusual - NESTED);
        } else {
            self.leave_usual();
        }
    }

    /// Announces that nothing is read any more.
    #[inline(always)]
    pub(super) fn go_outside(&self) {
        // ORDERING: Release: partner is the scan's Acquire: what we read, we read before.
        self.lower.store(self.outside.get(), Ordering::Release);
    }

    #[inline(always)]
    pub(super) fn is_inside(&self) -> bool {
        // ORDERING: Relaxed: our own store.
        self.lower.load(Ordering::Relaxed) < OUTSIDE
    }

    pub(super) fn is_fenced(&self) -> bool {
        self.unusual.get() & FENCED != 0
    }

    /// Changes how a seat announces that is outside (`light` F1).
    pub(super) fn set_fenced(&self, fenced: bool) {
        assert!(!self.is_inside(), "a seat changes while it is read from");
        self.outside.set(if fenced { OUTSIDE } else { NEVER });
        self.unusual.set(self.unusual.get() & !FENCED | if fenced { FENCED } else { 0 });
        self.go_outside();
    }

    /// Counts a section of a fenced seat, if the one before was not long ago, by eras.
    pub(super) fn count_pin(&self, era: &AtomicU64) -> u16 {
        const LONG: u64 = 16;
        // ORDERING: Relaxed: a hint.
        let lately = era.load(Ordering::Relaxed) < self.upper().saturating_add(LONG);
        let pins = if lately { self.pins.get().saturating_add(1) } else { 1 };
        self.pins.set(pins);
        pins
    }

    /// Whether a fenced seat announces the present era and no other, and nothing waits: then
    /// leaving and entering again changes nothing.
    #[inline(always)]
    pub(super) fn is_fresh(&self, era: &AtomicU64) -> bool {
        // ORDERING: Acquire, as in `announce`; the rest are our own stores.
        let now = era.load(Ordering::Acquire);
        self.unusual.get() == FENCED
            && self.lower.load(Ordering::Relaxed) == now
            && self.upper() == now
    }

    /// Notes work for the moment the last section is left.
    pub(super) fn ask(&self, work: u64) {
        self.unusual.set(self.unusual.get() | work);
    }

    pub(super) fn is_asked(&self, work: u64) -> bool {
        self.unusual.get() & work != 0
    }

    pub(super) fn settle(&self, work: u64) {
        self.unusual.set(self.unusual.get() & !work);
    }

    /// Ends every section of this seat, forgotten ones too. The caller knows that no reference is
    /// left.
    pub(super) fn leave_all(&self) {
        self.unusual.set(self.unusual.get() % NESTED);
        self.go_outside();
        // Which is no era: who looks before the seat is inside again fails its check, and enters
        // there (`reclaim` E8).
        // ORDERING: Release, as in `go_outside`: a scan that reads it has seen the end of the
        // sections.
        self.upper.store(0, Ordering::Release);
    }

    /// Widens the interval to the present era, or without end (`reclaim` E3, E7).
    pub(super) fn widen(&self, upper: u64) {
        // ORDERING: Release, as in `announce`; then `barrier` B1, before pointers are loaded again.
        self.upper.store(upper, Ordering::Release);
        if self.is_fenced() { Barrier::Fence } else { Barrier::Asymmetric }.light();
    }

    /// Notes that nobody owns the seat any more: whoever leaves its last section vacates it. Writes
    /// cells of the owner alone (`local` K4).
    pub(super) fn orphan(&self, address: Address<Self>) {
        self.address.set(Some(address));
        self.ask(ORPHANED);
    }

    /// Gives the seat back to its roster if it was abandoned and no section is open. The caller
    /// does not use it any more.
    pub(super) fn vacate_if_orphaned(&self, roster: &Roster<Self>) {
        if !self.is_asked(ORPHANED) || self.is_inside() {
            return;
        }
        self.settle(ORPHANED);
        if let Some(address) = self.address.take() {
            let laden = self.is_laden();
            // SAFETY: abandoned when it was asked to, which happens once and ends here; outside is
            // quiet.
            unsafe { roster.vacate(address, laden) };
        }
    }

    /// Publishes how much garbage lies here.
    #[inline(always)]
    pub(super) fn count(&self, items: usize, bytes: usize) {
        // ORDERING: Relaxed: statistics.
        self.items.store(items, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Whether garbage lies here.
    pub(super) fn is_laden(&self) -> bool {
        self.counted().0 > 0
    }

    /// How much garbage lies here: pieces, and their bytes.
    #[inline(always)]
    pub(super) fn counted(&self) -> (usize, usize) {
        // ORDERING: Relaxed: statistics, and by the owner its own stores.
        (self.items.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}
