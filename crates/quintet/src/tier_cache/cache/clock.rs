//! Time: milliseconds of the wall clock that never go back, and the ticks of recency.
//!
//! Expiry is measured by the wall clock, from the creation of the segment on: it counts while the
//! machine is suspended or off, and means the same in every namespace. Somebody can set that clock
//! back; so the segment keeps a *floor*, a moment that has been. Recency has a clock of its own,
//! which counts insertions: it moves on once for every 128th part of the blocks that was filled,
//! and once in a *span* of eight seconds while the cache is used, so that a hit seldom has to store
//! anything.
//!
//! **T0.** The segment's time is the wall clock's, or the floor if that is later. The floor only
//! rises (an atomic maximum): to the present at each look at the clock that finds it a second
//! behind, and whenever something is found expired, before that is told. So a clock that is set
//! back freezes time where it was, up to a second, until it has caught up, and what was found
//! expired once stays expired. Who may only read raises nothing.
//! **T1.** Whoever notices first that a new span has begun moves the ticks on and *marks* the
//! moment: (span, tick). What carries that tick or an earlier one was not used after that span.
//! **T2.** Of every power of two of spans, sixteen marks are kept: how long an entry was not used
//! is known up to a seventh (a mark of the next power may be needed one part in sixteen early).
//! **T3.** A handle looks at the clock after so many operations as it makes in some ten
//! milliseconds, 64 at most. One that has been idle may stamp so many uses with the tick of its
//! last look, as if they had happened then.

use super::handle::Handle;
use super::layout::{MARK_LEVELS, MARKS, MAX_EXPIRY};
use super::view::{Global, View};
use crate::region::shm::Segment;
use crate::sync::MODEL;
use crate::sync::Ordering;
use crate::tier_cache::step::{Point, add, exchange, raise, store_hint};
use std::time::Duration;

/// The system's coarse monotonic clock, in milliseconds: for the pace of one process.
pub(super) fn monotonic_ms() -> u64 {
    if MODEL {
        return 1000;
    }
    coarse_ms()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn coarse_ms() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure outlives the call and is written by it.
    let told = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    if told != 0 {
        return 1;
    }
    (time.tv_sec as u64).wrapping_mul(1000).wrapping_add(time.tv_nsec as u64 / 1_000_000)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn coarse_ms() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_millis() as u64 + 1
}

/// How far the floor may be behind a look at the clock.
const FLOOR_LAG_MS: u64 = 1_000;

impl View<'_> {
    /// The segment's time in milliseconds, at least 1 (T0).
    pub(super) fn now(&self) -> u64 {
        self.moment(Segment::wall_ms())
    }

    /// The segment's time at a moment of the wall clock.
    fn moment(&self, wall: u64) -> u64 {
        // ORDERING: Relaxed: written before the segment could be attached to.
        let since = wall.saturating_sub(self.created.load(Ordering::Relaxed));
        // ORDERING: Relaxed: a maximum that only rises; an older one delays an expiry, and each
        // thread sees its own.
        since.max(self.global(Global::Floor).load(Ordering::Relaxed)).max(1)
    }

    /// A moment has come. If so, it has come for everybody and for good.
    pub(super) fn has_passed(&self, moment: u64) -> bool {
        let now = self.now();
        if moment > now {
            return false;
        }
        self.raise_floor(moment);
        true
    }

    /// No moment before this one comes again.
    fn raise_floor(&self, moment: u64) {
        let floor = self.global(Global::Floor);
        // ORDERING: Relaxed, as in `moment`.
        if self.writable && floor.load(Ordering::Relaxed) < moment {
            raise(Point::Time, floor, moment);
        }
    }

    /// When an entry that lives so long from now on expires; 0 for never.
    pub(super) fn expiry(&self, ttl: Option<Duration>) -> u64 {
        match ttl {
            None => 0,
            Some(ttl) => {
                let ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
                self.now().saturating_add(ms).min(MAX_EXPIRY)
            }
        }
    }

    /// How long an entry of this expiry will live; `None` if it does not expire.
    pub(super) fn left(&self, expiry: u64) -> Option<Duration> {
        (expiry != 0).then(|| Duration::from_millis(expiry.saturating_sub(self.now())))
    }

    /// A look at the clock: the floor follows.
    fn note(&self, now: u64) {
        // ORDERING: Relaxed, as in `moment`.
        let floor = self.global(Global::Floor).load(Ordering::Relaxed);
        if floor.saturating_add(FLOOR_LAG_MS) <= now {
            self.raise_floor(now);
        }
    }

    /// An insertion of a handle that had made `before` of them. Moves the clock of recency on when
    /// it is time.
    pub(super) fn count_insertion(&self, before: u64) {
        let pace = self.sizes.pace.max(1) as u64;
        if before % pace == pace - 1 {
            add(Point::Tick, self.global(Global::Tick), 1);
        }
    }

    /// The tick of an access. Where every access counts, it moves the clock on.
    #[inline(always)]
    pub(super) fn tick_of_access(&self) -> u32 {
        if self.sizes.pace == 0 {
            return (add(Point::Tick, self.global(Global::Tick), 1) as u32).wrapping_add(1);
        }
        self.tick()
    }
}

/// Milliseconds of a span: the shorter, the more hits store their tick.
const SPAN_MS: u64 = 8_000;

/// A mark: the span, and the tick that began in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Mark {
    span: u32,
    tick: u32,
}

impl Mark {
    fn of(word: u64) -> Self {
        Self { span: (word >> 32) as u32, tick: word as u32 }
    }

    fn word(self) -> u64 {
        (self.span as u64) << 32 | self.tick as u64
    }
}

impl View<'_> {
    /// T1: moves the ticks on if nobody has in this span.
    pub(super) fn mark_time(&self) {
        self.mark_moment(self.now());
    }

    pub(super) fn mark_moment(&self, now: u64) {
        self.note(now);
        self.mark(now);
    }

    fn mark(&self, now: u64) {
        let (span, place) = (now / SPAN_MS, self.global(Global::Span));
        // ORDERING: Relaxed: hints. The exchange lets one of many mark.
        let known = place.load(Ordering::Relaxed);
        if span == known || !exchange(Point::Time, place, known, span) {
            return;
        }
        let tick = (add(Point::Tick, self.global(Global::Tick), 1) as u32).wrapping_add(1);
        let mark = Mark { span: span as u32, tick };
        for (level, marks) in self.marks.chunks_exact(MARKS).enumerate() {
            let place = &marks[(mark.span >> level) as usize % MARKS];
            // ORDERING: Relaxed: a hint.
            let last = Mark::of(place.load(Ordering::Relaxed));
            if last.tick == 0 || last.span >> level != mark.span >> level {
                store_hint(Point::Time, place, mark.word());
            }
        }
    }

    /// What carries this tick or an earlier one was not used in the last `ms` milliseconds (T1).
    /// `None` if no mark is old enough.
    pub(super) fn tick_before(&self, ms: u64) -> Option<u32> {
        let before = self.now().saturating_sub(ms) / SPAN_MS;
        // ORDERING: Relaxed: hints.
        let marks = self.marks.iter().map(|place| Mark::of(place.load(Ordering::Relaxed)));
        let old = marks.filter(|mark| mark.tick != 0 && mark.span as u64 + 1 < before);
        old.max_by_key(|mark| mark.span).map(|mark| mark.tick)
    }
}

impl View<'_> {
    /// What was used so many ticks ago was used after this time before now, as the marks say.
    /// Nothing is older than the cache.
    pub(super) fn unused_at_most(&self, ticks: u32) -> Duration {
        // ORDERING: Relaxed: hints.
        let marks = self.marks.iter().map(|place| Mark::of(place.load(Ordering::Relaxed)));
        let before = marks.filter(|mark| mark.tick != 0 && self.ticks_to(*mark) >= ticks);
        let last = before.max_by_key(|mark| mark.span);
        self.since_span(last.map_or(0, |mark| mark.span as u64))
    }

    /// What was used so many ticks ago was not used since this time before now; zero if it may have
    /// been just now.
    pub(super) fn unused_at_least(&self, ticks: u32) -> Duration {
        // ORDERING: Relaxed: hints.
        let marks = self.marks.iter().map(|place| Mark::of(place.load(Ordering::Relaxed)));
        let later = marks.filter(|mark| mark.tick != 0 && self.ticks_to(*mark) < ticks);
        let next = later.min_by_key(|mark| mark.span);
        next.map_or(Duration::ZERO, |mark| self.since_span(mark.span as u64 + 1))
    }

    fn ticks_to(&self, mark: Mark) -> u32 {
        self.tick().wrapping_sub(mark.tick)
    }

    fn since_span(&self, span: u64) -> Duration {
        Duration::from_millis(self.now().saturating_sub(span.saturating_mul(SPAN_MS)))
    }
}

/// When a handle looks at the clock next (T3).
#[derive(Debug)]
pub(super) struct Watch {
    left: u32,
    stride: u32,
    looked: u64,
}

/// A stride should take so long.
const STRIDE_MS: u64 = 10;
const LONGEST_STRIDE: u32 = 64;

impl Watch {
    pub(super) fn new() -> Self {
        Self { left: 1, stride: 1, looked: 0 }
    }

    /// As if it had not looked for so long, and would not for some operations.
    #[cfg(test)]
    pub(super) fn idle(&mut self, ms: u64) {
        (self.left, self.looked) = (64, Segment::wall_ms() - ms);
    }

    fn look(&mut self, now: u64) {
        let took = now.wrapping_sub(self.looked);
        self.looked = now;
        self.stride = match took {
            0..STRIDE_MS => (self.stride * 2).min(LONGEST_STRIDE),
            _ => (self.stride as u64 * STRIDE_MS / took).max(1) as u32,
        };
        self.left = self.stride;
    }
}

impl Handle<'_> {
    /// An operation: now and then it looks at the clock.
    #[inline(always)]
    pub(super) fn pass_time(&mut self) {
        self.watch.left -= 1;
        if self.watch.left == 0 {
            self.look_at_the_clock();
        }
    }

    #[cold]
    #[inline(never)]
    fn look_at_the_clock(&mut self) {
        // A clock that was set makes the stride short for once.
        let wall = Segment::wall_ms();
        self.watch.look(wall);
        self.report_hits();
        self.view.mark_moment(self.view.moment(wall));
    }
}

const _: () = assert!(MARK_LEVELS < 32);
