//! Where tables lie.
//!
//! ```text
//!   generation g      ├─ segment 0 ─┼─ segment 1 ──┼─ segment 2 ───┼ ... ┤      one mapping, every table of the generation at its place
//!   generation g + 1  ├──── segment 0 ─────┼───── segment 1 ──────┼ ...   ┤
//! ```
//!
//! Segments grow one after the other, in the order of their sizes (G6 of `grow`). So the tables of
//! a generation come into use from the front of their mapping to its end, while those of the
//! generation before go, from the front to the end: what is present is what is in use, in whole
//! pages, and large pages pay even if single tables are small.
//!
//! **F1.** A plot is taken once at a time. Whoever finds it taken, or cannot have a mapping, gets a
//! buffer of its own: nobody waits.
//! **F2.** A plot is zero when it is taken: it was never written, or its pages were released and
//! its segment will not use it again.
//! **F3.** A page is given back when every plot it touches has been left. Only whole plots are
//! left, and only after the grace period of their table.
//! **F4.** What a table has left may be kept for records, which need fresh memory at the same pace
//! and need not find it zero: see `spare`. Such a plot is *reused*: no page is given back on its
//! account but those that lie in what was not kept.

use super::budget::Account;
use super::spare::{Piece, Spare};
use crate::region::heap::{Buffer, PIECE};
use crate::region::{AllocError, Pages, is_mapped, mapping::Mapping};
use crate::sync::line::Line;
use crate::sync::{Arc, Mutex};
use std::ops::Deref;

/// Generations from this size on have large pages: one that is partly in use is a small share of
/// them.
const LARGE: usize = 2 << 20;
/// Generations below this size are left to the global allocator.
const SMALLEST: usize = 1 << 20;

/// The mappings of a set.
#[derive(Debug)]
pub(crate) struct Ground {
    pages: Pages,
    pub(super) spare: Arc<Spare>,
    generations: Mutex<Vec<(u32, Arc<Generation>)>>,
}

#[derive(Debug)]
pub(super) struct Generation {
    mapping: Mapping,
    /// Where each segment's plot begins, in bytes, and where the last one ends.
    bounds: Vec<usize>,
    states: Mutex<Vec<State>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nobody has used the plot.
    Fresh,
    Taken,
    /// Its table is gone.
    Left,
    /// Its table is gone, and parts of it are kept for records (F4).
    Reused,
}

/// The lines of a table.
#[derive(Debug)]
pub(crate) struct Lines {
    first: *const Line,
    len: usize,
    home: Home,
    unused: bool,
}

#[derive(Debug)]
enum Home {
    Own(Buffer<Line>),
    /// `held`: bytes not yet given back. `reused`: others were kept (F4).
    Plot {
        generation: Arc<Generation>,
        segment: usize,
        held: usize,
        reused: bool,
        spare: Arc<Spare>,
    },
}

// SAFETY: lines are shared by atomic access; a plot belongs to one owner (F1).
unsafe impl Send for Lines {}
// SAFETY: as above.
unsafe impl Sync for Lines {}

impl Ground {
    pub(crate) fn new(pages: Pages, account: &Arc<Account>) -> Self {
        let spare = Arc::new(Spare::new(account));
        Self { pages, spare, generations: Mutex::new(Vec::new()) }
    }

    /// Lines for the table of a segment, all zero. `sizes` gives the lines of every segment's table
    /// of this generation.
    pub(crate) fn lines(
        &self,
        generation: u32,
        segment: usize,
        sizes: impl Fn(usize) -> Option<usize>,
        segments: usize,
    ) -> Result<Lines, AllocError> {
        if let Some(lines) = self.plot(generation, segment, &sizes, segments) {
            return Ok(lines);
        }
        Lines::own(sizes(segment).ok_or(AllocError::CapacityOverflow)?, self.pages)
    }

    fn plot(
        &self,
        number: u32,
        segment: usize,
        sizes: &impl Fn(usize) -> Option<usize>,
        segments: usize,
    ) -> Option<Lines> {
        // The last segment's is the largest.
        let most = sizes(segments - 1)?.checked_mul(segments * size_of::<Line>())?;
        if most < SMALLEST {
            return None;
        }
        let mut generations = self.generations.lock();
        let known = generations.iter().find(|(of, _)| *of == number);
        let generation = match known {
            Some((_, generation)) => Arc::clone(generation),
            None => {
                let fresh = Arc::new(Generation::try_new(sizes, segments, self.pages)?);
                generations.retain(|(_, old)| !old.is_over());
                generations.push((number, Arc::clone(&fresh)));
                fresh
            }
        };
        drop(generations);
        Generation::take(generation, segment, &self.spare)
    }
}

impl Generation {
    fn try_new(
        sizes: &impl Fn(usize) -> Option<usize>,
        segments: usize,
        pages: Pages,
    ) -> Option<Self> {
        let mut bounds = vec![0usize];
        for segment in 0..segments {
            let bytes = sizes(segment)?.checked_mul(size_of::<Line>())?;
            bounds.push(bounds[segment].checked_add(bytes)?);
        }
        let total = bounds[segments];
        if total < SMALLEST || !is_mapped(total.max(PIECE)) {
            return None;
        }
        let pages = if total < LARGE { Pages::Small } else { pages };
        let mapping = Mapping::try_new(total, pages)?;
        Some(Self { mapping, bounds, states: Mutex::new(vec![State::Fresh; segments]) })
    }

    /// The plot of a segment, if nobody has it (F1, F2).
    fn take(this: Arc<Self>, segment: usize, spare: &Arc<Spare>) -> Option<Lines> {
        let mut states = this.states.lock();
        if states[segment] != State::Fresh {
            return None;
        }
        states[segment] = State::Taken;
        drop(states);
        let (from, to) = (this.bounds[segment], this.bounds[segment + 1]);
        if to - from <= PIECE / 2 {
            // At once is cheaper than one by one; more would be felt.
            this.mapping.populate(from, to - from);
        }
        let first = this.mapping.start().as_ptr().wrapping_add(from).cast::<Line>();
        let len = (to - from) / size_of::<Line>();
        let (held, spare) = (to - from, Arc::clone(spare));
        let home = Home::Plot { generation: this, segment, held, reused: false, spare };
        Some(Lines { first, len, home, unused: false })
    }

    fn is_over(&self) -> bool {
        self.states.lock().iter().all(|state| matches!(state, State::Left | State::Reused))
    }

    /// Where an offset lies.
    pub(super) fn place(&self, offset: usize) -> *mut u8 {
        self.mapping.start().as_ptr().wrapping_add(offset)
    }

    /// Gives back the pages that only plots touch that were left (F3).
    fn leave(&self, segment: usize) {
        let mut states = self.states.lock();
        states[segment] = State::Left;
        let left = |plot: &usize| states[*plot] == State::Left;
        let first = (0..=segment).rev().take_while(left).last().unwrap_or(segment);
        let last = (segment..states.len()).take_while(left).last().unwrap_or(segment);
        let run = self.bounds[first]..self.bounds[last + 1];
        let own = self.bounds[segment]..self.bounds[segment + 1];
        // SAFETY: the tables in the run are gone, nobody refers to their lines, and no plot of the
        // run is taken again.
        unsafe { self.mapping.give_back(own, run) };
    }
}

impl Lines {
    /// Lines in a buffer of their own, all zero.
    pub(super) fn own(len: usize, pages: Pages) -> Result<Self, AllocError> {
        let buffer = Buffer::try_new(len, pages)?;
        Ok(Self { first: buffer.as_ptr(), len, home: Home::Own(buffer), unused: false })
    }

    /// Gives back one piece from the end. True when the rest goes with the drop.
    ///
    /// # Safety
    /// No reference to a line exists, and none is made afterwards: only `give_back` and drop
    /// follow.
    pub(crate) unsafe fn give_back(&mut self) -> bool {
        match &mut self.home {
            // SAFETY: the caller's promise.
            Home::Own(buffer) => unsafe { buffer.give_back() },
            Home::Plot { generation, segment, held, reused, spare } => {
                if *held <= PIECE {
                    return true;
                }
                *held -= PIECE;
                let from = generation.bounds[*segment] + *held;
                let range = from..from + PIECE;
                if spare.offer(Piece::new(generation, range.clone())) {
                    *reused = true;
                } else {
                    // SAFETY: the range is inside the plot, to whose lines nobody refers.
                    unsafe { generation.mapping.give_back(range.clone(), range) };
                }
                false
            }
        }
    }

    /// Says that nobody has written here: a plot can be taken again (F2).
    pub(crate) fn set_unused(&mut self) {
        self.unused = true;
    }
}

impl Deref for Lines {
    type Target = [Line];

    #[inline(always)]
    fn deref(&self) -> &[Line] {
        // SAFETY: so many lines are there until `give_back`, whose caller promises to make no
        // reference any more.
        unsafe { std::slice::from_raw_parts(self.first, self.len) }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let Home::Plot { generation, segment, held, reused, spare } = &self.home else { return };
        let from = generation.bounds[*segment];
        let rest = from..from + held;
        if self.unused {
            generation.states.lock()[*segment] = State::Fresh;
        } else if spare.offer(Piece::new(generation, rest.clone())) {
            generation.states.lock()[*segment] = State::Reused;
        } else if *reused {
            generation.states.lock()[*segment] = State::Reused;
            // SAFETY: the range is what is left of the plot, to whose lines nobody refers.
            unsafe { generation.mapping.give_back(rest.clone(), rest) };
        } else {
            generation.leave(*segment);
        }
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;
    use crate::sync::Ordering;

    fn sizes(segment: usize) -> Option<usize> {
        Some(20_000 + segment * 100)
    }

    fn ground(pages: Pages) -> Ground {
        Ground::new(pages, &Arc::new(Account::new(None)))
    }

    fn is_zero(lines: &Lines) -> bool {
        let zero = |line: &Line| line.words().iter().all(|word| word.load(Ordering::Relaxed) == 0);
        lines.iter().all(zero)
    }

    fn fill(lines: &Lines) {
        let words = lines.iter().flat_map(|line| line.words());
        words.for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
    }

    #[test]
    fn plots_lie_side_by_side_and_are_zero() {
        let ground = ground(Pages::default());
        let plots: Vec<_> =
            (0..4).map(|segment| ground.lines(3, segment, sizes, 4).unwrap()).collect();
        for (segment, plot) in plots.iter().enumerate() {
            assert_eq!(plot.len(), sizes(segment).unwrap());
            assert!(is_zero(plot));
            fill(plot);
        }
        if crate::region::is_mapped(PIECE) {
            assert!(plots.windows(2).all(|two| two[0].as_ptr_range().end == two[1].as_ptr()));
        }
    }

    #[test]
    fn a_plot_that_is_taken_gives_way_to_a_buffer() {
        let ground = ground(Pages::default());
        let first = ground.lines(1, 0, sizes, 2).unwrap();
        let mut second = ground.lines(1, 0, sizes, 2).unwrap();
        fill(&first);
        assert!(is_zero(&second), "two owners of one plot");
        second.set_unused();
        drop(second);
        let mut third = ground.lines(1, 1, sizes, 2).unwrap();
        let place = third.as_ptr();
        third.set_unused();
        drop(third);
        if crate::region::is_mapped(PIECE) {
            assert_eq!(ground.lines(1, 1, sizes, 2).unwrap().as_ptr(), place, "handed out again");
        }
    }

    /// Whatever the order: neighbours keep what they hold, and in the end nothing is held.
    #[test]
    fn plots_are_left_in_any_order() {
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
            let ground = ground(Pages::Small);
            let mut plots: Vec<_> =
                (0..4).map(|segment| ground.lines(1, segment, sizes, 4).ok()).collect();
            plots.iter().flatten().for_each(fill);
            for leaving in order {
                let mut plot = plots[leaving].take().unwrap();
                // SAFETY: no reference to a line is alive.
                while !unsafe { plot.give_back() } {}
                drop(plot);
                for plot in plots.iter().flatten() {
                    let words = plot.iter().flat_map(|line| line.words());
                    assert!(words.into_iter().all(|word| word.load(Ordering::Relaxed) == u64::MAX));
                }
            }
            let generations = ground.generations.lock();
            for (_, generation) in generations.iter() {
                assert!(generation.is_over());
                assert_eq!(generation.mapping.present(), 0, "every page was given back");
            }
        }
    }

    /// A plot that is kept for records keeps its content, whatever its neighbours do (F4).
    #[test]
    fn a_kept_plot_is_nobodys_page_to_give_back() {
        if !crate::region::is_mapped(PIECE) {
            return;
        }
        for order in [[0, 2, 3], [3, 2, 0], [2, 0, 3]] {
            let account = Arc::new(Account::new(None));
            let ground = Ground::new(Pages::Small, &account);
            let mut plots: Vec<_> =
                (0..4).map(|segment| ground.lines(1, segment, sizes, 4).ok()).collect();
            plots.iter().flatten().for_each(fill);
            // As if there were tables enough for all of it, but only while this one goes.
            account.keep(1 << 30);
            drop(plots[1].take());
            account.give_back(1 << 30);
            let bytes = sizes(1).unwrap() * size_of::<Line>();
            assert_eq!((account.tables(), account.records()), (bytes, 0), "kept, and booked");
            let kept = ground.spare.take(1).expect("kept");
            assert_eq!((account.tables(), account.records()), (0, bytes), "on the records' side");
            // SAFETY: the piece is ours alone.
            unsafe { kept.start().write_bytes(0x5a, kept.bytes()) };
            for leaving in order {
                drop(plots[leaving].take());
            }
            // SAFETY: as above, and written before.
            let bytes = unsafe { std::slice::from_raw_parts(kept.start(), kept.bytes()) };
            assert!(bytes.iter().all(|byte| *byte == 0x5a), "given back under a record");
        }
    }
}
