//! Which entry comes next: the same keys for every table of a round, drawn before any clock runs.
//!
//! A thread reads its keys from an array, one after the other, which all tables and rounds share; a
//! round starts at a place of its own. The array is at least as long as the number of keys up to
//! 2^22, so that a table is met as a whole. To read it costs eight bytes per word (21 per text), a
//! stream that the processor fetches ahead: about a nanosecond per operation, its loop included,
//! and an eighth of a cache line, the same for every table.

use quintet_rivals::{Keys, Kind};
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

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

/// By which law keys are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Law {
    /// Every entry is as likely as every other.
    Uniform,
    /// Skewed by Zipf's law with exponent 0.99.
    Zipf,
    /// Entries that are never inserted, each as likely as every other.
    Absent,
}

/// Entries from here on are never inserted.
const ABSENT: u64 = 1 << 35;
/// The longest array of drawn keys, and the shortest.
const RING: usize = 1 << 22;
const SHORTEST: usize = 1 << 15;
const THETA: f64 = 0.99;

/// One thread's keys of one round.
pub(crate) struct Drawn<T: Kind> {
    keys: Arc<T::Keys>,
    mask: usize,
    place: usize,
}

impl<T: Kind> Drawn<T> {
    /// Keys of the entries below `bound`.
    pub(crate) fn new(law: Law, bound: u64, round: u64, thread: usize) -> Self {
        let length = (bound as usize).next_power_of_two().clamp(SHORTEST, RING);
        let place = Dice::new(round, thread).below(length as u64) as usize & !(GROUP - 1);
        Self { keys: array::<T>(law, bound, thread, length), mask: length - 1, place }
    }

    /// The next key.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> &T::Query {
        let place = self.place & self.mask;
        self.place += 1;
        self.keys.at(place)
    }
}

/// Keys that are taken in groups come in so many.
pub(crate) const GROUP: usize = 64;

impl<T: Kind<Keys = Vec<u64>>> Drawn<T> {
    /// The next group of keys.
    #[inline(always)]
    pub(crate) fn group(&mut self) -> &[u64] {
        let place = self.place & self.mask;
        self.place += GROUP;
        &self.keys[place..place + GROUP]
    }
}

/// What tells arrays apart.
type Name = (TypeId, Law, u64, usize);

/// The array of a thread, drawn once per process.
fn array<T: Kind>(law: Law, bound: u64, thread: usize, length: usize) -> Arc<T::Keys> {
    static ARRAYS: Mutex<Option<HashMap<Name, Arc<dyn Any + Send + Sync>>>> = Mutex::new(None);
    let name = (TypeId::of::<T>(), law, bound, thread);
    let known = |arrays: &Option<HashMap<Name, Arc<dyn Any + Send + Sync>>>| {
        arrays.as_ref().and_then(|arrays| arrays.get(&name).cloned())
    };
    let found = known(&ARRAYS.lock().unwrap_or_else(PoisonError::into_inner));
    let found = found.unwrap_or_else(|| {
        // Outside of the lock: the threads of a crew draw at the same time.
        let drawn: Arc<dyn Any + Send + Sync> = Arc::new(draw::<T>(law, bound, thread, length));
        let mut arrays = ARRAYS.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(arrays.get_or_insert_default().entry(name).or_insert(drawn))
    });
    found.downcast().expect("the name tells the type")
}

fn draw<T: Kind>(law: Law, bound: u64, thread: usize, length: usize) -> T::Keys {
    let mut dice = Dice::new(ARRAY, thread);
    let offset = if law == Law::Absent { ABSENT } else { 0 };
    match law {
        Law::Zipf => {
            let (ring, start) = (ring(bound), dice.below(RING as u64) as usize);
            T::keys((start..start + length).map(|at| u64::from(ring[at & (RING - 1)])))
        }
        _ => T::keys((0..length).map(|_| dice.below(bound) + offset)),
    }
}

/// Separates the draws of arrays and choices from those of rounds.
const ARRAY: u64 = 1 << 20;

/// One thread's choices of operations, 8 random bits each, read from an array as well.
pub(crate) struct Choices {
    choices: Arc<Vec<u8>>,
    place: usize,
}

/// A prime: an array of keys that is read again meets other choices.
const CHOICES: usize = 65_521;

impl Choices {
    /// The choices of one thread in one round.
    pub(crate) fn new(round: u64, thread: usize) -> Self {
        static ARRAY_OF_ALL: Mutex<Option<Arc<Vec<u8>>>> = Mutex::new(None);
        let mut dice = Dice::new(ARRAY + 1, 0);
        let mut array = ARRAY_OF_ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let choices = array.get_or_insert_with(|| {
            Arc::new((0..CHOICES).map(|_| (dice.bits() >> 56) as u8).collect())
        });
        let place = Dice::new(round + ARRAY, thread).below(CHOICES as u64) as usize;
        Self { choices: Arc::clone(choices), place }
    }

    /// The next choice.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> u64 {
        let choice = self.choices[self.place];
        self.place = if self.place + 1 == CHOICES { 0 } else { self.place + 1 };
        u64::from(choice)
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
    use quintet_rivals::Words;

    #[test]
    fn uniform_numbers_stay_below_their_bound_and_spread() {
        let mut dice = Dice::new(1, 0);
        let mut seen = [0u32; 10];
        (0..10_000).for_each(|_| seen[dice.below(10) as usize] += 1);
        assert!(seen.iter().all(|n| (800..1200).contains(n)), "{seen:?}");
    }

    #[test]
    fn zipf_follows_its_law() {
        let mut seen = vec![0u64; 1000];
        ring(1000).iter().for_each(|rank| seen[*rank as usize] += 1);
        // zeta(1000, 0.99) is 7.73: the first rank has 12.9 % of all draws, half of it the second.
        let share = seen[0] as f64 / RING as f64;
        assert!((0.12..0.14).contains(&share), "{share}");
        assert!((1.8..2.2).contains(&(seen[0] as f64 / seen[1] as f64)));
    }

    #[test]
    fn drawn_keys_are_those_of_their_law() {
        let present: std::collections::HashSet<u64> = (0..500).map(Words::key).collect();
        for (law, is_present) in [(Law::Uniform, true), (Law::Zipf, true), (Law::Absent, false)] {
            let mut drawn = Drawn::<Words>::new(law, 500, 3, 1);
            assert!((0..2 * SHORTEST).all(|_| present.contains(drawn.next()) == is_present));
        }
    }

    #[test]
    fn a_large_table_is_met_as_a_whole() {
        let mut drawn = Drawn::<Words>::new(Law::Uniform, 100_000, 1, 0);
        let met: std::collections::HashSet<u64> = (0..1 << 17).map(|_| *drawn.next()).collect();
        assert!(met.len() > 70_000, "{}", met.len());
    }

    #[test]
    fn groups_are_the_keys_in_their_order() {
        let mut one = Drawn::<Words>::new(Law::Uniform, 1000, 5, 1);
        let mut many = Drawn::<Words>::new(Law::Uniform, 1000, 5, 1);
        for _ in 0..2 * SHORTEST / GROUP {
            many.group().iter().for_each(|key| assert_eq!(key, one.next()));
        }
    }

    #[test]
    fn threads_and_rounds_draw_different_numbers() {
        let first = |round, thread| Dice::new(round, thread).bits();
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
        assert_eq!(first(3, 1), first(3, 1));
        let keys = |thread| *Drawn::<Words>::new(Law::Uniform, 1000, 1, thread).next();
        assert_ne!(keys(0), keys(1));
    }
}
