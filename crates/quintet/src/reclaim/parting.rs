//! A piece whose owner wants it back, instead of having it freed.
//!
//! ```text
//!   unlinked ──begin──▶ LOOSE ──is_over: stamp, heavy barrier──▶ SEALED ──is_over: no section can refer to it──▶ the owner's
//!                         │                                         │
//!                         └───────── dropped: retired ◀─────────────┘        forgotten: the piece leaks, and nothing else that owns anything
//! ```
//!
//! **O1.** What is asked before the piece is handed over is what is asked before a retired one is
//! freed: the stamp is taken after the unlink (`reclaim` E2), the barrier runs after the stamp, and
//! the seats are looked at after the barrier (`reclaim` E4, E1). A refused barrier says "not yet"
//! (`reclaim` E6).
//! **O2.** The barrier runs once: later looks need none (`reclaim` E5).
//! **O3.** A parting does not keep its domain. When that is gone, nobody is left who could be
//! inside: handles and sections keep the domain, or borrow who does. So a parting that outlives it
//! is over.
//! **O4.** Until it is over the piece may be looked at, as by any reader, and not more.

use super::collect::{self, Scan, seal};
use super::domain::{Core, Domain};
use super::local;
use super::retired::Retired;
use super::section::Section;
use crate::sync::Weak;

/// The wait until nobody can refer to a piece that was unlinked.
#[derive(Debug)]
pub(crate) struct Parting {
    core: Weak<Core>,
    /// There until it is handed over.
    piece: Option<Retired>,
    /// It has its stamp, and the barrier has run.
    sealed: bool,
}

impl Domain {
    /// Begins the wait for a piece.
    ///
    /// # Safety
    /// As for [`Visit::retire`](super::Visit::retire): no path from the root leads to the piece any
    /// more, and nobody else retires it.
    pub(crate) unsafe fn part(&self, piece: Retired) -> Parting {
        Parting { core: Weak::of(&self.share()), piece: Some(piece), sealed: false }
    }
}

impl Parting {
    /// Whether nobody can refer to the piece any more. Once it is over it stays so.
    #[must_use]
    pub(crate) fn is_over(&mut self) -> bool {
        let (Some(core), Some(piece)) = (self.core.get(), &mut self.piece) else { return true };
        if !self.sealed {
            let Some(stamp) = seal(&core, std::slice::from_ref(piece)) else { return false };
            piece.retire = stamp;
            self.sealed = true;
        }
        Scan::of(&core).allows(piece)
    }

    /// Whether the calling thread's own seat is inside: then it waits for itself.
    #[must_use]
    pub(crate) fn waits_for_itself(&self) -> bool {
        self.core.get().is_some_and(|core| {
            let seat = local::last(&core).unwrap_or_else(|| local::seat(&core));
            let inside = seat.is_inside();
            // A thread whose locals are gone got a seat for this look.
            seat.vacate_if_orphaned(&core.roster);
            inside
        })
    }

    /// Where the piece is: it may be looked at.
    #[inline(always)]
    pub(crate) fn place(&self) -> *mut () {
        self.piece.as_ref().map_or(std::ptr::null_mut(), Retired::place)
    }

    /// Hands the piece over, if it is over.
    ///
    /// # Errors
    /// The parting, if it is not.
    pub(crate) fn finish(mut self) -> Result<*mut (), Self> {
        if !self.is_over() {
            return Err(self);
        }
        let place = self.place();
        self.piece = None;
        Ok(place)
    }
}

impl Drop for Parting {
    fn drop(&mut self) {
        let Some(piece) = self.piece.take() else { return };
        match self.core.get() {
            Some(core) => {
                let section = Section::enter(&core, local::seat(&core));
                // SAFETY: unlinked, and nobody else's, as who began has promised; handed over only
                // if the place is empty.
                unsafe { section.retire(piece) };
            }
            // O3.
            None => collect::free_whole(vec![piece]),
        }
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    fn begin(domain: &Domain, value: u64) -> Parting {
        // SAFETY: of a box; nobody has seen it.
        let piece = unsafe { Retired::boxed(Box::into_raw(Box::new(value)), domain.era()) };
        // SAFETY: as above.
        unsafe { domain.part(piece) }
    }

    fn value(place: *mut ()) -> u64 {
        // SAFETY: of the box above, handed over.
        *unsafe { Box::from_raw(place.cast::<u64>()) }
    }

    #[test]
    fn a_piece_is_handed_over_when_the_last_section_that_could_see_it_is_left() {
        let domain = Domain::new();
        let handle = domain.join();
        let section = handle.pin();
        let parting = begin(&domain, 7);
        let parting = parting.finish().expect_err("a section is open that began before");
        drop(section);
        // Sections that begin later see nothing of it.
        let _late = handle.pin();
        assert_eq!(parting.finish().map(value).unwrap(), 7);
    }

    #[test]
    fn a_thread_inside_waits_for_itself_and_one_outside_does_not() {
        let domain = Domain::new();
        let section = domain.pin();
        let parting = begin(&domain, 1);
        assert!(parting.waits_for_itself());
        drop(section);
        assert!(!parting.waits_for_itself());
        assert_eq!(parting.finish().map(value).unwrap(), 1);
    }

    #[test]
    fn a_parting_that_outlives_its_domain_is_over() {
        let domain = Domain::new();
        std::mem::forget(domain.pin());
        let (waited, dropped) = (begin(&domain, 3), begin(&domain, 4));
        let waited = waited.finish().expect_err("the forgotten section is inside for ever");
        drop(domain);
        assert_eq!(waited.finish().map(value).unwrap(), 3);
        drop(dropped);
    }

    #[test]
    fn what_is_dropped_before_it_is_over_is_retired() {
        let domain = Domain::new();
        drop(begin(&domain, 5));
        assert_eq!(domain.backlog().items, 1);
        domain.flush();
        assert_eq!(domain.backlog().items, 0);
    }
}
