//! How a thread comes inside of a map.

use super::core::Core;
use crate::reclaim::{Brief, Handle, Section};

/// Where sections are entered.
#[derive(Debug)]
enum Entrance {
    /// A seat of one's own.
    Own(Handle),
    /// The calling thread's seat.
    Thread,
}

/// One thread's means of working on a map.
#[derive(Debug)]
pub(crate) struct Access {
    entrance: Entrance,
}

impl Access {
    pub(crate) fn own(core: &Core) -> Self {
        Self::new(Entrance::Own(core.domain.join()))
    }

    pub(crate) fn of_thread() -> Self {
        Self::new(Entrance::Thread)
    }

    fn new(entrance: Entrance) -> Self {
        Self { entrance }
    }

    /// Enters a section; it ends with the operation.
    #[inline(always)]
    pub(crate) fn enter<'s>(&'s self, core: &'s Core) -> Section<'s> {
        match &self.entrance {
            Entrance::Own(handle) => handle.pin(),
            Entrance::Thread => core.domain.pin(),
        }
    }

    /// Enters a section in the usual case; see [`Brief`].
    #[inline(always)]
    pub(crate) fn enter_briefly<'s>(&'s self, core: &'s Core) -> Option<Brief<'s>> {
        let spot = match &self.entrance {
            Entrance::Own(handle) => handle.spot(),
            Entrance::Thread => core.domain.spot()?,
        };
        spot.enter()
    }

    /// Frees what this thread has retired and nobody can reach any more.
    pub(crate) fn flush(&self, core: &Core) {
        match &self.entrance {
            Entrance::Own(handle) => handle.flush(),
            Entrance::Thread => core.domain.flush(),
        }
    }
}
