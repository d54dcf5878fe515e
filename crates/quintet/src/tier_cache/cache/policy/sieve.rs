//! SIEVE: a hand walks from the oldest entry to the newest and on to the oldest again. Who was used
//! since it last passed stays where it is and counts as not used from then on; who was not leaves.
//!
//! Entries keep their place in the order, so new ones, which come behind the hand's back at the
//! young end, are looked at soon, while those that proved themselves wait for its next round.

use super::part::{Ascending, wanted};
use super::{Choose, uses};
use crate::sync::Ordering;
use crate::tier_cache::cache::evict::{Candidate, Ring};
use crate::tier_cache::cache::view::View;
use crate::tier_cache::step::{Point, store_hint};

pub(super) struct Sieve;

/// Where the hand of a part is: the entry it looked at last, as (tick it was stored, block).
#[derive(Clone, Copy)]
struct Hand {
    /// Ticks grow to here.
    now: u32,
    place: u64,
}

impl Hand {
    /// Turns (tick, block) into a rank and back: an entry's distance ahead of the hand.
    fn turned(self, word: u64) -> u64 {
        let age = self.now.wrapping_sub((word >> 32) as u32);
        u64::from(u32::MAX - age) << 32 | word as u32 as u64
    }

    fn rank(self, tick: u32, block: u32) -> u64 {
        let word = (tick as u64) << 32 | block as u64;
        self.turned(word).wrapping_sub(self.turned(self.place)).wrapping_sub(1)
    }

    /// The (tick, block) of a rank.
    fn word(self, rank: u64) -> u64 {
        let turned = rank.wrapping_add(1).wrapping_add(self.turned(self.place));
        let age = u32::MAX - (turned >> 32) as u32;
        (self.now.wrapping_sub(age) as u64) << 32 | turned as u32 as u64
    }
}

impl Choose for Sieve {
    const MOST_USES: u64 = 1;

    fn search(view: &View<'_>, tier: usize, ring: &mut Ring, shunned: &[u32]) {
        let part = view.next_part();
        let Some(place) = view.policy.get(part.number) else { return };
        // The second time nobody counts as used, but for those that are used just now.
        for _ in 0..2 {
            // ORDERING: Relaxed: a hint.
            let hand = Hand { now: view.tick(), place: place.load(Ordering::Relaxed) };
            let mut ranks = Vec::with_capacity(part.blocks.len());
            let mut chosen = view.look_at(&part, tier, shunned, |block, age| {
                ranks.push(hand.rank(age.tick(), block));
            });
            let wanted = wanted(ranks.len());
            let mut order = Ascending::new(ranks);
            let mut last = None;
            while chosen.len() < wanted {
                if order.is_at_a_run() {
                    view.expect_all(order.coming().iter().map(|rank| hand.word(*rank) as u32));
                }
                let Some(rank) = order.next() else { break };
                last = Some(rank);
                chosen.extend(view.sift(hand.word(rank) as u32));
            }
            if let Some(rank) = last {
                store_hint(Point::Age, place, hand.word(rank));
            }
            if !chosen.is_empty() || last.is_none() {
                return ring.fill(chosen);
            }
        }
    }
}

impl View<'_> {
    /// The entry that begins at a block, if it was not used; from now on it was not.
    fn sift(&self, block: u32) -> Option<Candidate> {
        let seen = self.candidate(block)?;
        if uses(seen.used) == 0 {
            return Some(seen);
        }
        self.set_use(seen.link, seen.used as u32 as u64);
        None
    }
}
