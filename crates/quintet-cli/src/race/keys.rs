//! Which entry comes next: the same numbers for every table of a round.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A source of entry numbers below some bound.
pub(crate) trait Draw {
    /// The next entry number.
    fn next(&mut self) -> u64;
}

/// A small inline generator (xorshift with a multiplied output).
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// A generator for one thread of one round.
    pub(crate) fn new(round: u64, thread: usize) -> Self {
        // Never zero: the mixer maps one number to zero, and this sum does not reach it.
        Self(quintet_rivals::mix((round << 8) + thread as u64 + 1) | 1)
    }

    /// 64 random bits.
    #[inline(always)]
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`, which must be below 2^32.
    #[inline(always)]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((self.bits() >> 32) * bound) >> 32
    }
}

/// Every entry is as likely as every other.
#[derive(Clone, Debug)]
pub(crate) struct Uniform {
    dice: Dice,
    bound: u64,
}

impl Uniform {
    /// Numbers below `bound`.
    pub(crate) fn new(bound: u64, round: u64, thread: usize) -> Self {
        Self { dice: Dice::new(round, thread), bound }
    }
}

impl Draw for Uniform {
    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.dice.below(self.bound)
    }
}

/// Skewed by Zipf's law with exponent 0.99, read from a ring drawn beforehand.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    ring: Arc<Vec<u32>>,
    position: usize,
}

const RING: usize = 1 << 22;
const THETA: f64 = 0.99;

impl Zipf {
    /// Numbers below `bound`, starting at a place of the ring given by round and thread.
    pub(crate) fn new(bound: u64, round: u64, thread: usize) -> Self {
        let position = Dice::new(round, thread).below(RING as u64) as usize;
        Self { ring: ring(bound), position }
    }
}

impl Draw for Zipf {
    #[inline(always)]
    fn next(&mut self) -> u64 {
        let rank = self.ring[self.position & (RING - 1)];
        self.position += 1;
        u64::from(rank)
    }
}

/// The ring for `bound`, drawn once per process.
fn ring(bound: u64) -> Arc<Vec<u32>> {
    static RINGS: Mutex<Option<HashMap<u64, Arc<Vec<u32>>>>> = Mutex::new(None);
    let mut rings = RINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let rings = rings.get_or_insert_with(HashMap::new);
    Arc::clone(rings.entry(bound).or_insert_with(|| Arc::new(draw_ring(bound))))
}

/// Draws ranks as Gray et al. do ("Quickly generating billion-record synthetic databases").
fn draw_ring(bound: u64) -> Vec<u32> {
    let zeta = |n: u64| (1..=n).map(|i| (i as f64).powf(-THETA)).sum::<f64>();
    let (all, two) = (zeta(bound), zeta(bound.min(2)));
    let alpha = 1.0 / (1.0 - THETA);
    let eta = (1.0 - (2.0 / bound as f64).powf(1.0 - THETA)) / (1.0 - two / all);
    let mut dice = Dice::new(0, 0);
    let rank = |uniform: f64| {
        let scaled = uniform * all;
        if scaled < 1.0 {
            0
        } else if scaled < two {
            1
        } else {
            (bound as f64 * (eta * uniform - eta + 1.0).powf(alpha)) as u64
        }
    };
    (0..RING)
        .map(|_| rank((dice.bits() >> 11) as f64 / (1u64 << 53) as f64).min(bound - 1) as u32)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_numbers_stay_below_their_bound_and_spread() {
        let mut draw = Uniform::new(10, 1, 0);
        let mut seen = [0u32; 10];
        (0..10_000).for_each(|_| seen[draw.next() as usize] += 1);
        assert!(seen.iter().all(|n| (800..1200).contains(n)), "{seen:?}");
    }

    #[test]
    fn zipf_follows_its_law() {
        let mut draw = Zipf::new(1000, 1, 0);
        let mut seen = vec![0u64; 1000];
        (0..RING).for_each(|_| seen[draw.next() as usize] += 1);
        // zeta(1000, 0.99) is 7.73: the first rank has 12.9 % of all draws, half of it the second.
        let share = seen[0] as f64 / RING as f64;
        assert!((0.12..0.14).contains(&share), "{share}");
        assert!((1.8..2.2).contains(&(seen[0] as f64 / seen[1] as f64)));
    }

    #[test]
    fn threads_and_rounds_draw_different_numbers() {
        let first = |round, thread| Dice::new(round, thread).bits();
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
        assert_eq!(first(3, 1), first(3, 1));
    }
}
