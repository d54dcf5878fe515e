//! S3-FIFO: two queues and a memory of who left.
//!
//! An entry begins in the *small* queue, a tenth of all. At its end who was used more than once
//! moves to the *main* queue, the others leave and are remembered in the *ghost* queue. Who comes
//! back while it is remembered begins in the main queue. At the end of that, who was used joins it
//! anew with one use less; who was not leaves.

use super::ghost::Ghost;
use super::part::{Ascending, wanted};
use super::{Choose, USE, uses};
use crate::sync::Ordering;
use crate::tier_cache::cache::evict::{Candidate, Ring};
use crate::tier_cache::cache::view::{Age, View};
use crate::tier_cache::step::{Point, exchange};
use crate::tier_cache::word::InputHash;

pub(super) struct S3Fifo;

/// The bit of the main queue.
const MAIN: u32 = 1 << 31;
/// One entry in so many is in the small queue.
const SMALL: usize = 10;
/// Uses that take an entry from the small queue to the main one.
const PROVED: u64 = 2;
/// Looks at one part whose entries are all in use: each takes a use from everyone.
const ROUNDS: usize = 4;

/// A difference of orders, as ticks.
pub(super) fn ticks(difference: u32) -> u32 {
    difference & !MAIN
}

/// The entries of a part, in their queues.
struct Queues {
    small: Ascending,
    main: Ascending,
    /// The small queue is full beyond this length.
    share: usize,
}

/// The older an entry of this age, the smaller its rank.
fn rank(view: &View<'_>, block: u32, age: Age) -> u64 {
    ((MAIN - 1 - view.ticks_in_order(age)) as u64) << 32 | block as u64
}

impl Queues {
    /// The next one to be looked at, and whether it is in the main queue.
    fn next(&mut self, view: &View<'_>) -> Option<(u32, bool)> {
        let main = self.small.len() <= self.share && self.main.len() > 0 || self.small.len() == 0;
        let queue = if main { &mut self.main } else { &mut self.small };
        if queue.is_at_a_run() {
            view.expect_all(queue.coming().iter().map(|rank| *rank as u32));
        }
        queue.next().map(|rank| (rank as u32, main))
    }
}

impl Choose for S3Fifo {
    const MOST_USES: u64 = 3;

    fn enter(view: &View<'_>, input: Option<InputHash>, tick: u32) -> u32 {
        let known = input.is_some_and(|input| Ghost(view.policy).forget(input));
        ticks(tick) | if known { MAIN } else { 0 }
    }

    fn search(view: &View<'_>, tier: usize, ring: &mut Ring, shunned: &[u32]) {
        let part = view.next_part();
        for _ in 0..ROUNDS {
            let (mut small, mut main) = (Vec::new(), Vec::with_capacity(part.blocks.len()));
            let mut chosen = view.look_at(&part, tier, shunned, |block, age| {
                let queue = if age.tick() & MAIN == 0 { &mut small } else { &mut main };
                queue.push(rank(view, block, age));
            });
            let entries = small.len() + main.len();
            let (small, main) = (Ascending::new(small), Ascending::new(main));
            let mut queues = Queues { small, main, share: entries / SMALL };
            while chosen.len() < wanted(entries) {
                let Some((block, main)) = queues.next(view) else { break };
                chosen.extend(view.pass_or_choose(block, main));
            }
            if !chosen.is_empty() || entries == 0 {
                return ring.fill(chosen);
            }
        }
    }

    fn left(view: &View<'_>, input: InputHash, order: u32, blocks: usize) {
        if order & MAIN == 0 {
            Ghost(view.policy).remember(input, view.turn(), blocks);
        }
    }
}

impl View<'_> {
    /// Counts 128ths of the blocks that were filled, whatever the pace of the ticks.
    fn turn(&self) -> u32 {
        self.tick() / (self.sizes.blocks / 128 / self.sizes.pace.max(1)).max(1)
    }

    /// One at the end of its queue: chosen to leave, or moved to the end of the main queue.
    fn pass_or_choose(&self, block: u32, main: bool) -> Option<Candidate> {
        let seen = self.candidate(block)?;
        let (needed, left) = match main {
            true => (1, uses(seen.used).saturating_sub(1)),
            false => (PROVED, 0),
        };
        if uses(seen.used) < needed {
            return Some(seen);
        }
        self.set_use(seen.link, seen.used as u32 as u64 | (left * USE));
        let place = self.ages.get(block as usize)?;
        // ORDERING: Relaxed: a hint.
        let known = Age(place.load(Ordering::Relaxed));
        if known.is_entry() {
            // Fails if the block has been freed or filled meanwhile: then it has a new age.
            let order = ticks(self.tick_of_move()) | MAIN;
            exchange(Point::Age, place, known.0, known.with_tick(order).0);
        }
        None
    }
}
