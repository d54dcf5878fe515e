//! Sending readers home: back to the copy that they came from.
//!
//! Two copies are twice the memory. Readers that change to the other copy with every publish find
//! it cold; in a table that is as large as the last-level cache they lose most of the cache that
//! way. So a writer that publishes now and then lets them *visit* the other copy only, for as long
//! as it takes to bring the first one up to date.
//!
//! ```text
//!   publish    readable = B, by its fenced door; heavy barrier           readers visit B
//!   go home    nobody at A? replay the log on A                          A = B
//!              readable = A, by its plain door; fence                    readers are at A again
//!              somebody at A: readable = B, by its plain door            readers stay at B;
//!                                                                        the log waits, as ever
//! ```
//!
//! **H1.** Home is the place that was readable before the publish. Readers return there only after
//! the barrier of the publish was granted, a scan behind it found nobody there (`gate` D2), the
//! copy there was found to be the writer's alone (`core` C2), and the whole log was replayed on it
//! and both copies agree (`twin` X1). Then the phase is STALE with an empty log: the other copy
//! lacks nothing.
//! **H2.** The return shows the version that is shown already: home gets its number before its door
//! opens. The publish is the first exchange, one moment for all readers (`gate` D7); the second one
//! shows nobody anything new or old, announces nothing and counts nowhere but in `returned`.
//! **H3.** A reader that has read the word of home before the publish may confirm it after the
//! return, for the word is the same. If the scan has missed its announcement, its second look
//! follows the barrier (`barrier` B1): it reads the word of the visit, and leaves, or that of the
//! return, which hands over the replayed copy. If the scan has seen the announcement, there was no
//! return.
//! **H4.** Who visits comes by the fenced door, so the return needs a fence and no second heavy
//! barrier (`gate` D8). If visitors have opened the plain door meanwhile (`gate` D9), its exchange
//! says so.
//! **H5.** What stands in the way leaves the table as if nothing had been tried. Guards at home
//! (also the writer's own) and owned guards: the log stays, and the next write drains as ever. A
//! replay that panics or ends differently: the copy is given up, and the next write makes another.
//! **H6.** A reader that does not run cannot leave: with all cores busy the writer itself may have
//! interrupted it. Whoever may wait and has rested long gives way for a moment, once, and is woken
//! by the reader as from every wait (`gate` D6); if in vain, not for the next publishes, twice as
//! many each time. It only hopes: it can do without, so nobody who holds a guard there is told that
//! the writer waits for it (`desk` F6).
//! **H7.** Copies that know which of them is readable (`InertMap`, `inert` N1) are published
//! without a return.

use super::absorb::Absorb;
use super::twin::Twin;
use super::wait::Patience;
use super::word::Places;
use crate::sync::MODEL;
use std::time::{Duration, Instant};

/// Looks at the seats. Readers that run leave within a few.
const LOOKS: usize = if MODEL { 1 } else { 8 };

/// How long a writer gives way at most (H6).
const NAP: Duration = Duration::from_micros(50);

/// It has rested so many times as long before.
const NAPS: u32 = 8;

/// At most so many doublings of the publishes without a nap.
const DOUBLINGS: u32 = 10;

/// Which publishes give way to readers that do not run (H6).
#[derive(Debug, Default)]
pub(super) struct Naps {
    /// In a row.
    in_vain: u32,
    /// Publishes without one.
    without: u32,
}

impl Naps {
    pub(super) fn is_due(&mut self) -> bool {
        let due = self.without == 0;
        self.without = self.without.saturating_sub(1);
        due
    }

    pub(super) fn ended(&mut self, in_vain: bool) {
        self.in_vain = if in_vain { (self.in_vain + 1).min(DOUBLINGS) } else { 0 };
        self.without = if in_vain { 1 << self.in_vain } else { 0 };
    }
}

impl<T: Absorb<Op>, Op> Twin<T, Op> {
    /// Whether the readers of a publish that begins are to return (H1).
    pub(super) fn plans_return(&self) -> bool {
        if !self.pace.is_rare(self.log.len()) {
            return false;
        }
        // SAFETY: the readable copy is not written (`gate` D1).
        let copy = unsafe { self.core.copy(self.readable) };
        !copy.is_copied_sooner(self.log.len())
    }

    /// Ends the visit of readers to the copy that was just published, if it was planned as one.
    #[inline]
    pub(super) fn go_home(&mut self) {
        if std::mem::take(&mut self.is_visited) {
            self.end_visit();
        }
    }

    #[cold]
    #[inline(never)]
    fn end_visit(&mut self) {
        if !self.bring_home() {
            self.core.gate.open_plain(self.readable); // (H5)
        }
        self.tell();
    }

    /// Brings home up to date and readers back to it (H1); false if something is in the way (H5).
    fn bring_home(&mut self) -> bool {
        let home = self.writable;
        self.look_ahead();
        if !self.settled || !(self.is_home_empty() || cfg!(quintet_mutation = "home-occupied")) {
            return false;
        }
        // SAFETY: we are the writer; drained since a settled publish (`gate` D2); the reference is
        // not used.
        if unsafe { self.core.copy_mut(home) }.is_none() {
            return false;
        }
        if !cfg!(quintet_mutation = "home-stale") && !self.replay() {
            self.stats.rebuilds += 1;
            self.fallen.take_log(&mut self.log, 0);
            self.empty(home);
            return false;
        }
        // SAFETY: as above, and the copy is there and ours alone: nobody has come in (`core` C2,
        // `gate` D4).
        self.settled = unsafe { self.core.reopen(home, self.version) };
        std::mem::swap(&mut self.readable, &mut self.writable);
        self.stats.returned += 1;
        self.measure(self.readable);
        true
    }

    /// Whether nobody is at home any more. Gives way to readers that do not run, if that is due
    /// (H6).
    fn is_home_empty(&mut self) -> bool {
        let home = self.writable;
        if self.core.gate.soon_clear(Places::one(home), LOOKS).is_some() {
            return true;
        }
        if !self.may_nap || !self.pace.has_rested(NAP * NAPS) || !self.naps.is_due() {
            return false;
        }
        let brief = Patience::Brief(Instant::now() + NAP);
        let drained = self.core.gate.drain(Places::one(home), brief, &mut self.stats.parks);
        let empty = matches!(drained, Ok(Some(_)));
        self.naps.ended(!empty);
        empty
    }
}
